// The names of what runs later.

#include "later/later.hpp"
#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// In a folder that is searched. With a slash at the end: all that lies in it and below.
constexpr auto later_paths = NameList{
    // What a shell, a version manager or a debugger reads by itself in a folder or a home.
    ".envrc",
    ".mise.toml",
    ".mise/",
    "mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    "mise/config.toml",
    ".config/mise/",
    ".rvmrc",
    ".profile",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".config/fish/",
    ".inputrc",
    ".gdbinit",
    ".lldbinit",
    ".pythonstartup",
    ".pdbrc",
    ".Rprofile",
    ".irbrc",
    ".pryrc",
    ".iex.exs",
    ".ghci",
    ".ocamlinit",
    ".octaverc",
    // Other systems of versions, hooks for git, and what lies beside.
    ".gitconfig",
    ".config/git/",
    ".hg/hgrc",
    ".hg/hgrc-not-shared",
    ".hg/sharedpath",
    ".jj/repo/config.toml",
    ".sl/config",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".husky/",
    ".huskyrc",
    ".githooks/",
    ".git-hooks/",
    ".overcommit.yml",
    "prek.toml",
    ".lintstagedrc",
    ".lintstagedrc.json",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    "lefthook-local.yml",
    ".lefthook.yml",
    ".lefthook-local.yml",
    ".lefthook/",
    ".github/workflows/",
    ".github/hooks/",
    ".gitea/workflows/",
    ".forgejo/workflows/",
    ".gitlab-ci.yml",
    ".ssh/",
    // Package managers.
    ".npmrc",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    "bunfig.toml",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarn/plugins/",
    ".yarn/releases/",
    ".yarn/sdks/",
    ".cargo/config",
    ".cargo/config.toml",
    ".bazelrc",
    // Editors.
    ".vscode/",
    ".idea/",
    ".zed/",
    ".fleet/",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".nvim/",
    ".lvimrc",
    ".helix/",
    ".theia/",
    ".vs/",
    ".lite_project.lua",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".devcontainer/",
    ".devcontainer.json",
    // Agents.
    ".mcp.json",
    ".claude/",
    ".codex/",
    ".cursor/",
    ".gemini/",
    ".windsurf/",
    ".opencode/",
    ".kiro/",
    ".roo/",
    ".continue/",
    ".qwen/",
    ".aider.conf.yml",
    "opencode.json",
    "opencode.jsonc",
    "crush.json",
    ".crush.json",
    ".amazonq/",
    ".kilocode/",
    ".factory/",
    ".augment/",
    ".junie/",
    ".trae/",
};

// What runs of the path of a file below a folder `.git`, at any depth in modules and worktrees.
bool is_later_of_git(std::string_view path) {
  const std::string_view last = base_name(path);
  const std::string inside = concat("/%", {path});
  return path.empty() || is_any(last, "config", "config.worktree", "commondir", "hooks") ||
         inside.find("/hooks/") != std::string::npos || starts_with(inside, "/remotes/"sv) ||
         starts_with(inside, "/branches/"sv) || ends_with(inside, "/info/attributes");
}

bool begins_later(std::string_view path) {
  for (const std::string_view name : later_paths) {
    const bool is_folder = ends_with(name, "/"sv);
    const std::string_view whole = is_folder ? name.substr(0, name.size() - 1) : name;
    if (path == whole) return true;
    if (is_folder && starts_with(path, name))
      return !starts_with(path.substr(name.size()), "worktrees/"sv);
  }
  if (path == ".git"sv) return true;
  return starts_with(path, ".git/"sv) && is_later_of_git(path.substr(5));
}

}  // namespace

bool runs_later(std::string_view path) {
  for (std::string_view rest = path; !rest.empty(); take_part(rest, '/'))
    if (begins_later(rest)) return true;
  return false;
}

inline namespace inner {

bool is_later_name(std::string_view entry) {
  for (const std::string_view path : later_paths)
    if (path.substr(0, path.find('/')) == entry) return true;
  return is_any(entry, ".git", "HEAD", "commondir", "objects", "refs");
}

// Tools fill these with what others wrote, in very many folders.
bool is_searched(std::string_view name) {
  return !is_any(name, "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox",
                 "site-packages", ".mypy_cache", ".pytest_cache", ".ruff_cache");
}

void for_each_later_path(std::string_view entry, FunctionRef<void(std::string_view)> use) {
  for (const std::string_view path : later_paths)
    if (entry.empty() || path.substr(0, path.find('/')) == entry) use(path);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
