// The folder of a copy on the other side.

#include "copy/copy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Makes the folder, with those around it, or takes one that is empty. None where that cannot be: it
// has files, is another user's, cannot be written to, or is the copy of another agent, which holds
// a lock. Folders around it that were made stay.
UniqueFd copy_folder_at(const std::string& path) {
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    (void)::mkdir(path.substr(0, end).c_str(), 0700);
  }
  auto found = open_canonical_directory(path);
  if (!found) return UniqueFd();
  UniqueFd folder(
      above_standard_streams(::openat(found->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0 ||
      (status.st_uid != ::geteuid() && status.st_uid != 0) ||
      ::faccessat(folder.get(), ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0 ||
      ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
    return UniqueFd();
  bool is_empty = true;
  if (for_each_entry_in(folder.get(), [&](const char*) { return is_empty = false; }) != 0)
    return UniqueFd();
  return is_empty ? std::move(folder) : UniqueFd();
}

}  // namespace

inline namespace inner {

// The same path as here is best, as paths that commands print or that tools have stored then hold
// on both sides. It is not tried without the mark: if both ends see one disk, an empty workspace
// would become its own copy, and be removed with it. Else the first folder that can be made; the
// last error, if none can.
Expected<std::shared_ptr<const PrivateFolder>> folder_for_copy(std::string& workspace,
                                                               bool is_marked) {
  if (UniqueFd same = is_marked ? copy_folder_at(workspace) : UniqueFd())
    return new_shared<const PrivateFolder>(workspace, std::move(same));
  const char* const home = std::getenv("HOME");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const auto folders =
      words_of({cache ? cache : "", concat("%/.cache", {home ? home : ""}), "/var/tmp", "/tmp"});
  SharedError problem;
  for (const std::string& folder : folders) {
    if (!starts_with(folder, "/"sv)) continue;
    auto made = PrivateFolder::create("workspace", "codeexec-copy-"sv, folder);
    if (!made) {
      problem = made.failure();
      continue;
    }
    workspace = concat("%/%", {(*made)->path(), base_name(workspace)});
    if (::mkdir(workspace.c_str(), 0700) != 0)
      return system_error(errno, "workspace: cannot make %", {in_quotes(workspace)});
    return made;
  }
  return problem;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
