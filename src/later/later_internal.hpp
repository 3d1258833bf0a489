// What runs later: how it looks at one moment, what of it may change, and how it is put back.
#pragma once

#include "later/later.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What becomes of a file that a command has made or changed.
enum class LaterRole {
  entry,       // it goes
  folder,      // a folder all of which runs later: likewise
  hooks,       // a folder that git makes with nothing but samples: it stays
  repository,  // a folder with settings, which stays; one that is gone is not made again
  settings,    // of git: what starts no program comes through
  git_link,    // a file .git: it stays if it leads to a submodule's or a worktree's folder
  shared,      // commondir of a linked worktree: it stays if it says what git writes
};

struct LaterFile {
  bool is_readable() const { return S_ISREG(mode) && text != nullptr; }

  LaterRole role = LaterRole::entry;
  bool is_named = false;  // by a setting or a link, and not by what it is called
  mode_t mode = 0;
  std::string print = {};  // what the kernel keeps of it, which a command cannot set back
  // The bytes of a regular file, or where a link leads. Null: it is neither, or too long.
  std::shared_ptr<const std::string> text = {};
};

// By their paths, which are canonical, so that a folder comes before what is in it.
using LaterFiles = std::map<std::string, LaterFile, std::less<>>;

// Says whether something has happened to these files since it was last asked.
class LaterEvents {
 public:
  // What of a directory counts; each includes the ones before.
  enum class Kind {
    repository,  // the names of git that count
    searched,    // all names of what runs later, and new directories
    whole,       // everything
  };

  LaterEvents();
  // Where it does not, happened() is always true.
  bool works() const { return static_cast<bool>(fd_) && !failed_; }
  // To be called before a look at the directory, or after one at a file.
  void add(const std::string& path, Kind kind);
  void add_file(const std::string& path);
  // Whether something counted since the last call; true without events.
  bool happened();

 private:
  void watch(const std::string& path, std::uint32_t events, Kind kind);
  bool counts(const void* event) const;

  UniqueFd fd_ = {};
  bool failed_ = false;  // the system has no more of them
  std::map<int, Kind> kinds_ = {};
};

// The files in some folders, as they are now.
class LaterLook {
 public:
  static constexpr std::size_t max_files = 8192;      // in all
  static constexpr std::size_t max_entries = 256;     // of one directory that runs later
  static constexpr std::size_t max_folders = 4096;    // that are searched
  static constexpr std::size_t max_listed = 100'000;  // entries of all that are searched
  static constexpr std::size_t max_depth = 3;         // of what is searched below a folder
  static constexpr std::size_t max_repositories = 64;
  static constexpr std::size_t max_text = std::size_t{256} << 10;  // of one file
  static constexpr std::size_t max_texts = std::size_t{16} << 20;  // of all

  // `known` is an earlier look, whose texts are taken where nothing has changed.
  LaterLook(const std::vector<std::string>& folders, const LaterFiles& known, LaterEvents& events);

  // Whether a file is as it was.
  static bool is_there(const std::string& path, const LaterFile& file);

  LaterFiles files = {};
  std::set<std::string> searched = {};  // the folders
  std::set<std::string> named = {};     // by settings and links: files and folders

 private:
  // A directory and its path, with a slash at the end.
  struct Place {
    int fd;
    std::string start;
  };
  struct Folder {
    std::string path;
    std::size_t depth;
  };

  // True when it is a directory, and not a link to one.
  bool add(const Place& place, const std::string& name, LaterRole role);
  std::shared_ptr<const std::string> text_of(const Place& place, const std::string& name,
                                             const std::string& path, const struct stat& status,
                                             const std::string& print);
  void add_tree(const Place& place, const std::string& path, LaterRole role, std::size_t depth);
  void add_later_paths(const Place& place, std::string_view entry);
  // Of the repository whose paths begin so. `shared` is what its commondir is.
  void add_settings(const Place& place, const std::string& begin, LaterRole shared);
  // Of what is in a folder of repositories.
  void add_repositories(const Place& place, const std::string& path, std::size_t depth,
                        LaterRole shared);
  void add_repository(const Place& place, const std::string& git);
  // What the settings of a repository name.
  void add_named(const Place& place, const std::string& git, const std::string& tree);
  // A file outside of what is listed, if it lies in one of the folders.
  void add_elsewhere(const std::string& path, std::string_view from, LaterRole role);
  void add_address(const std::string& address, const std::string& tree);
  void search(const Folder& folder);
  void search_entries(const Place& place, const Folder& folder, DIR* listing);

  const std::vector<std::string>& folders_;
  const LaterFiles& known_;
  LaterEvents& events_;
  std::vector<Folder> queue_ = {};
  bool naming_ = false;
  std::size_t repositories_ = 0;
  std::size_t listed_ = 0;
  std::size_t texts_ = 0;
};

// Whether a path of what runs later begins so, or a folder may be a repository for having it.
bool is_later_name(std::string_view entry);
// Whether what runs later is looked for in a folder of this name.
bool is_searched(std::string_view name);
// The paths that begin with it: with a slash at its end, all that is below. All with "".
void for_each_later_path(std::string_view entry, FunctionRef<void(std::string_view)> use);

// A setting in a file of git.
struct GitSetting {
  std::string key = {};  // section.key in lower case, with `.*.` where a subsection stands
  std::string subsection = {};
  std::string value = {};
  std::size_t begin = 0;  // its bytes, with the line end
  std::size_t end = 0;
};

// Reads a file of git as strictly as no other reader could read it in another way. Nothing: it
// cannot.
std::optional<std::vector<GitSetting>> read_git_settings(std::string_view text);

// The text of a file that was `before` and that a command has made `now`: with what starts no
// program, and without what does. `names` has the keys that did not come through.
std::string safe_git_settings(std::string_view before, std::string_view now, bool of_submodule,
                              std::vector<std::string>& names);

// Whether the text of a file .git in this folder leads to what a repository of one of the folders
// keeps for submodules or for linked worktrees.
bool leads_to_own_folder(std::string_view text, std::string_view folder,
                         const std::vector<std::string>& folders);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
