// Which files are left out: patterns as in a .gitignore.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

// Lines as in a .gitignore: `*` `?` `[]` within a name, `**` for any folders, `/` at the start or
// in the middle for a path from the folder of the file, `/` at the end for folders only, `!` for
// not, `#` for a comment. The last one that fits counts, of the innermost folder.
//   What a folder adds does not change those of the folders around it: copies share them.
class IgnoreRules {
 public:
  // Lines of all files that count for one folder; those below are not read.
  static constexpr std::size_t most = 1024;

  // The folder that they stand in, with a slash at its end; or empty.
  void add(std::string_view folder, std::string_view lines);
  // The .gitignore in an open folder. One that is no file, is a link or cannot be read has no
  // rules, as in git; of a long one the first 64 KiB count. A fifo is not waited for.
  void read(int directory, std::string_view folder);
  bool excludes(std::string_view path, bool is_folder) const;
  bool empty() const { return !last_; }

 private:
  struct Pattern {
    std::string glob = {};
    bool negates = false;
    bool for_folders = false;
    bool has_path = false;  // it is for a path, and not for a name
  };
  struct Level {
    std::shared_ptr<const Level> around = {};
    std::size_t count = 0;  // of patterns, with those of the levels around
    std::string folder = {};
    std::vector<Pattern> patterns = {};
  };
  std::shared_ptr<const Level> last_ = {};
};

inline namespace inner {

// The rules of the directories around a canonical one, up to that of its repository, as far as the
// roots reach. The paths that they are for begin with `prefix`. Without a repository: none.
IgnoreRules rules_around(const PathRules& rules, const std::string& directory, std::string& prefix);

// A directory whose content is not looked at: of version control, or generated.
bool is_closed_by_name(std::string_view name);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
