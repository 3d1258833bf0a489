// Files that the user's own tools run or obey later, outside of any sandbox.
#pragma once

#include "base/base.hpp"
#include "executor/executor.hpp"

namespace codeexec {
inline namespace v0_1 {

// Whether a file with this path, relative to a folder of commands, is one of those that
// LocalOptions::watch_files keeps as they are: by its name alone, at any depth.
//   in .git, in its modules and worktrees: hooks but samples, info/attributes, commondir, remotes,
//     branches; config and config.worktree, where what starts no program comes through, such as
//     remotes, branches and user.name; a file .git, unless it leads to what git keeps for a
//     submodule or a worktree
//   all in .husky .githooks .git-hooks .lefthook .vscode .idea .zed .fleet .nvim .helix .theia .vs
//     .devcontainer .claude .codex .cursor .gemini .windsurf .opencode .kiro .roo .continue .qwen
//     .amazonq .kilocode .factory .augment .junie .trae .mise .ssh .github/workflows .github/hooks
//     .gitea/workflows .forgejo/workflows .config/git .config/fish .config/mise .yarn/plugins
//     .yarn/releases .yarn/sdks; not in folders `worktrees` of these
//   .envrc .mise.toml mise.toml .mise.local.toml mise.local.toml mise/config.toml .rvmrc .gdbinit
//   .lldbinit .inputrc .pythonstartup .pdbrc .Rprofile .irbrc .pryrc .iex.exs .ghci .ocamlinit
//   .octaverc .gitconfig .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .jj/repo/config.toml
//   .sl/config .pre-commit-config.yaml .pre-commit-config.yml .huskyrc .overcommit.yml prek.toml
//   .lintstagedrc .lintstagedrc.json, lefthook.yml and its other names, .gitlab-ci.yml .npmrc
//   .pnpmfile.cjs .pnpmfile.mjs .yarnrc .yarnrc.yml bunfig.toml .cargo/config .cargo/config.toml
//   .bazelrc .vimrc .exrc .nvimrc .nvim.lua .lvimrc .lite_project.lua .dir-locals.el
//   .dir-locals-2.el .devcontainer.json .mcp.json .aider.conf.yml opencode.json opencode.jsonc
//   crush.json .crush.json .profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases
//   .zshenv .zprofile .zshrc .zlogin .zlogout .kshrc .cshrc .tcshrc .login
// The executor keeps, besides, the same files of a repository without that name, and what
// core.hooksPath, include.path and links in hooks lead to in its folders.
//
// A repository that a command makes in a folder of its own keeps what else it came with, as a
// change. What is gone with its folder stays so. What others change while a command runs counts as
// the command's.
//   Bounds: 8192 files; 1024 of one folder; 4096 folders and 100,000 entries that are looked
//   through, the upper levels first; 256 KiB of a file and 16 MiB of all: one that is longer and
//   changes is reported, and stays so.
bool runs_later(std::string_view path);

}  // namespace v0_1
}  // namespace codeexec
