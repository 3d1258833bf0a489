// Files that the user's own tools run or obey later, outside of any sandbox.
#pragma once

#include "base/base.hpp"
#include "executor/executor.hpp"

namespace codeexec {
inline namespace v0_1 {

// Whether a file with this path, relative to a folder of commands, is one of those that
// LocalOptions::watch_files keeps as they are: by its name alone, at any depth.
//   in .git, in its modules and worktrees: hooks but samples, info/attributes, commondir; config
//     and config.worktree, where what starts no program comes through, such as remotes, branches
//     and user.name; a file .git, unless it leads to what git keeps for a submodule or a worktree
//   all in .husky .githooks .lefthook .vscode .idea .zed .fleet .devcontainer .claude .codex
//     .cursor .gemini .windsurf .opencode .kiro .roo .continue .qwen .mise .ssh .github/workflows
//     .config/git .config/fish .yarn/plugins .yarn/releases
//   .envrc .mise.toml mise.toml .gdbinit .lldbinit .inputrc .pythonstartup .gitconfig .hg/hgrc
//   .pre-commit-config.yaml .pre-commit-config.yml .lefthook.yml lefthook.yml .gitlab-ci.yml .npmrc
//   .pnpmfile.cjs .yarnrc .yarnrc.yml .cargo/config .cargo/config.toml .bazelrc .vimrc .exrc
//   .nvimrc .nvim.lua .dir-locals.el .devcontainer.json .mcp.json .aider.conf.yml opencode.json
//   .profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshenv .zprofile .zshrc
//   .zlogin .zlogout .kshrc .cshrc .tcshrc .login
// The executor keeps, besides, the same files of a repository without that name, and what
// core.hooksPath, include.path, addresses of remotes and links in hooks lead to in its folders.
//
// A repository that a command makes in a folder of its own keeps what else it came with, as a
// change. What is gone with its folder stays so. What others change while a command runs counts as
// the command's.
//   Bounds: 8192 files; 256 of one folder; 4096 folders and 100,000 entries that are looked
//   through, the upper levels first; 256 KiB of a file and 16 MiB of all: one that is longer and
//   changes is reported, and stays so.
bool runs_later(std::string_view path);

}  // namespace v0_1
}  // namespace codeexec
