// Where git keeps what belongs to a folder of commands, when that is outside of the folder.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"

namespace codeexec {
inline namespace v0_1 {

// Canonical paths outside of all folders that commands may use.
struct GitFolders {
  std::vector<std::string> writable = {};
  std::vector<std::string> readable = {};
  std::vector<std::string> replaceable = {};  // single files: SandboxOptions::replaceable
  std::vector<std::string> shared = {};       // repositories that linked worktrees belong to
  std::vector<std::string> own = {};          // writable, with settings in them that git trusts
  std::string problem = {};                   // why the repository of a folder is not among these
};

inline namespace inner {

// Looks at folders that commands may change or read, and at those directly below them; and at
// GIT_DIR among the variables that the operator sets. All that a command may have written before is
// hostile: a `.git` file counts only when what it leads to leads back to it.
GitFolders find_git_folders(const std::vector<std::string>& writable,
                            const std::vector<std::string>& readable, const Variables& set);

// Calls back with each setting in the text of a git configuration: "section.key" in lower
// case, and the value. What cannot be read is passed over.
void for_each_git_setting(std::string_view text,
                          FunctionRef<void(std::string_view, const std::string&)> callback);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
