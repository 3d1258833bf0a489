// Directories and globs, read within a budget.
#pragma once

#include "paths/paths.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Where a name of the table below must stand for a path to be auto-generated.
enum class GeneratedScope {
  tree,       // anywhere in it: the thing itself, or a directory around it
  directory,  // at its end, and it is a directory
  file,       // at its end, and it is none
};

bool is_generated_name(std::string_view name, GeneratedScope scope);

// The canonical path of a directory entry itself: links on the way to it are followed, and not the
// one that it may be.
Expected<std::string> canonical_entry(std::string_view path, std::string_view base = {});

// How much of a directory tree may still be listed.
struct WalkBudget {
  std::size_t entries = DeleteGuard::max_entries;
  std::size_t bytes = DeleteGuard::max_entry_bytes;
  bool take(std::size_t path_size) {
    if (entries == 0 || bytes < path_size) return false;
    --entries;
    bytes -= path_size;
    return true;
  }
};

// Calls `visit` with the name of each entry of a directory, which was opened for reading, and what
// it is. `path` is for the errors.
Expected<void> list_open_directory(UniqueFd fd, const std::string& path, WalkBudget& budget,
                                   FunctionRef<void(const char*, const struct stat&)> visit);

// The existing paths that an absolute pattern stands for now, as a shell would find them: `*` does
// not mean hidden files. Fails when the budget does not reach.
Expected<std::vector<std::string>> expand_glob(std::string_view pattern, WalkBudget& budget);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
