// A client's file is read, and a changed one takes its place.
//
//   read -> (edits) -> difference -> link FILE.bak to the old file -> rename a new one to its name

#include "program/client_files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "code/code_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Gives the old file a second name, which stays when a new file takes its first one: `name`, and
// whether it is new. A name that is in use is not taken, unless it has the same bytes. Returns what
// is wrong, or nothing.
std::string keep_old_file(const std::string& path, const std::string& text, std::string& name,
                          bool& is_new) {
  for (int number = 0; number < 100; ++number) {
    name = concat("%.bak", {path});
    if (number > 0) append_all(name, ".%", {number});
    is_new = ::link(path.c_str(), name.c_str()) == 0;
    if (!is_new && errno != EEXIST) return concat("%: %", {in_quotes(name), errno_text(errno)});
    // A link could lead to the file that is replaced.
    struct stat status {};
    const bool is_file = ::lstat(name.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (!is_new && !is_file) continue;
    const auto kept = read_whole_file(name, longest_client_file, "backup"sv);
    if (kept && *kept == text) return {};
    if (!is_new) continue;
    (void)::unlink(name.c_str());
    return "it changed meanwhile; end the client and try again";
  }
  return "it has 100 backups";
}

}  // namespace

inline namespace inner {

std::string ClientFile::read(const std::string& name, const std::string& project) {
  path = name;
  auto found = canonical_path(name);
  if (!found) return found.error().message;
  path = std::move(*found);
  if (!project.empty()) {
    const auto folder = canonical_path(project);
    if (!folder) return folder.error().message;
    if (!codeexec::is_within(path, *folder))
      return concat(
          "a link leads out of the project, to %: give that name to --write, if it is "
          "meant",
          {in_quotes(path)});
  }
  const auto old = read_whole_file(path, longest_client_file, "file of the client"sv);
  is_new = !old && old.error().system_error == ENOENT;
  if (!old && !is_new) return old.error().message;
  if (old) before = *old;
  text = before;
  return {};
}

std::string ClientFile::difference() const {
  return text == before ? std::string() : unified_diff(printable(path), before, text);
}

std::string ClientFile::write() {
  std::string kept;
  bool has_link = false;
  if (!is_new) {
    if (std::string problem = keep_old_file(path, before, kept, has_link); !problem.empty())
      return problem;
  }
  FileWrite how;
  how.only_new = is_new;
  ::umask(077);  // an option may hold a secret
  if (const auto written = Files(PathRules(), "/").write(path, text, how); !written) {
    if (has_link) (void)::unlink(kept.c_str());
    return written.error().message;
  }
  backup = kept;
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
