// Opening directories without following links.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

#ifndef CODEEXEC_HAS_OPENAT2
#if defined(__linux__) && defined(SYS_openat2)  // Linux 5.6
#define CODEEXEC_HAS_OPENAT2 1
#else
#define CODEEXEC_HAS_OPENAT2 0
#endif
#endif

namespace codeexec {
inline namespace v0_1 {

// A directory of this host that commands have at another path, where this host has another one.
struct MovedDirectory {
  std::string seen = {};                // by commands
  std::string real = {};                // here
  std::vector<std::string> stays = {};  // paths in `seen` that are not of it

  // The path here of what commands call so; empty when it is no other one. A relative path is from
  // `base`.
  std::string here(std::string_view path, std::string_view base) const;
  // As commands call it.
  std::string as_seen(std::string path) const;
  Error as_seen(Error error) const;
};

inline namespace inner {

#if defined(O_PATH)
inline constexpr int open_directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
#elif defined(O_SEARCH)
inline constexpr int open_directory_flags = O_SEARCH | O_DIRECTORY | O_CLOEXEC;
#else
inline constexpr int open_directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

// Opens the directory that has exactly this canonical path. The errno in the error is ENOTDIR when
// the last name is something else, a link included, and ENOENT when there is no such name.
Expected<UniqueFd> open_canonical_directory(const std::string& path);

// Whether a path is one of some directories, or lies in one.
template <class Directories>
bool lies_in_one_of(std::string_view path, const Directories& directories) {
  for (const std::string_view directory : directories)
    if (codeexec::is_within(path, directory)) return true;
  return false;
}

// Absolute, with no empty name, `.`, `..` or NUL in it.
bool is_canonical_form(std::string_view path);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
