// Which files of a workspace are not copied.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Lines as in a .gitignore: `*` `?` `[]` within a name, `**` for any folders, `/` at the start or
// in the middle for a path from the folder of the file, `/` at the end for folders only, `!` for
// not, `#` for a comment. The last one that fits counts.
class CopyRules {
 public:
  // Lines of all files that count for one folder; those above are not read.
  static constexpr std::size_t most = 1024;

  // The folder that they stand in, with a slash at its end; or empty.
  void add(std::string_view folder, std::string_view lines);
  std::size_t size() const { return patterns_.size(); }
  void cut(std::size_t size) {
    while (patterns_.size() > size) patterns_.pop_back();
  }
  bool excludes(std::string_view path, bool is_folder) const;

 private:
  std::vector<std::string> patterns_ = {};  // flags, the folder, a NUL, the pattern
};

}  // namespace v0_1
}  // namespace codeexec
