// Files on another machine, as executors know them.
#pragma once

#include "paths/paths.hpp"

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

struct FileMessage;

// Files on another machine, where Files::answer() reads and writes them. Errors are those of Files,
// or say that it was not reached. All members are safe from any thread.
class FilesElsewhere {
 public:
  std::string workspace = {};  // canonical there, as the roots are
  std::vector<Root> roots = {};
  std::string here = {};  // a canonical directory that is on this host all the same; or empty
  // What is in an answer may be untrue, but for `path`, which is canonical in form.
  virtual Expected<void> ask(FileMessage& message) const = 0;
  // canonical_path() there.
  virtual Expected<std::string> canonical(std::string_view path, std::string_view base) const = 0;

 protected:
  ~FilesElsewhere() = default;
};

}  // namespace v0_1
}  // namespace codeexec
