// What runs later: how it looks at one moment, and what of it may change.
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
  bool is_git = false;    // of a repository, and not of its work tree
  std::size_t tree = 0;   // how much of its path is the folder that it was searched for in
  mode_t mode = 0;
  std::string print = {};  // what the kernel keeps of it, which a command cannot set back
  // The bytes of a regular file, or where a link leads. Null: it is neither, or too long.
  std::shared_ptr<const std::string> text = {};
};

// A folder that was searched.
struct LaterFolder {
  std::size_t depth = 0;
  std::string identity = {};  // its device and number: another folder may take its place
};

// By their paths, which are canonical, so that a folder comes before what is in it.
using LaterFiles = std::map<std::string, LaterFile, std::less<>>;

// What a look has found.
struct LaterState {
  LaterFiles files = {};
  std::map<std::string, LaterFolder> searched = {};
  std::vector<std::string> trees = {};      // folders with a .git
  std::set<std::string> named = {};         // by settings and links: files and folders
  std::set<std::string> repositories = {};  // the folders that are ones, with their settings
  std::set<std::string> overfull = {};      // of a folder that runs later, with too many entries
  bool is_whole = true;                     // no bound was met
};

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
  bool failed_ = false;   // the system has no more of them
  std::size_t most_ = 0;  // of the user's, whose other programs need them, too
  std::map<int, Kind> kinds_ = {};
};

// Opens the directory with this canonical path, through no link. One of ours in `folders` that a
// command has closed to us is opened again. Empty and errno on failure.
UniqueFd open_later_folder(const std::string& path, const std::vector<std::string>& folders);

// The files in some folders, as they are now.
class LaterLook {
 public:
  static constexpr std::size_t max_files = 8192;       // in all
  static constexpr std::size_t max_entries = 1024;     // of one directory that runs later
  static constexpr std::size_t max_folders = 4096;     // that are searched
  static constexpr std::size_t max_listed = 100'000;   // entries of all that are searched
  static constexpr std::size_t max_depth = 3;          // of what is searched below a folder
  static constexpr std::size_t max_repositories = 64;  // submodules, and linked worktrees
  static constexpr std::size_t max_named = 64;         // that settings and links name
  static constexpr std::size_t max_text = std::size_t{256} << 10;  // of one file
  static constexpr std::size_t max_texts = std::size_t{16} << 20;  // of all

  // `before` is an earlier look, whose texts are taken where nothing has changed, and whose folders
  // are searched before others.
  LaterLook(const std::vector<std::string>& folders, const LaterState& before, LaterEvents& events);

  // Whether a file is as it was.
  static bool is_there(const std::string& path, const LaterFile& file);

  LaterState state = {};

 private:
  struct Folder {
    std::string path;
    std::size_t depth;
  };
  // What a setting or a link names, from a folder.
  struct Naming {
    std::string path;
    std::string folder;
    LaterRole role;
  };

  int directory(const std::string& path);
  bool has(const std::string& folder, const char* name);
  bool is_repository(const std::string& path);
  // True when it is a directory, and not a link to one. What is known already stays as it is.
  bool add(const std::string& path, LaterRole role);
  std::shared_ptr<const std::string> text_of(int in, const std::string& name,
                                             const std::string& path, const struct stat& status,
                                             const std::string& print);
  std::vector<std::string> names_in(const std::string& path, std::size_t most);
  void add_tree(const std::string& path, LaterRole role, std::size_t depth);
  void add_contents(const std::string& path, LaterRole role, std::size_t depth);
  void add_later_paths(const std::string& folder, std::string_view entry);
  // Of a repository. `shared` is what its commondir is.
  void add_settings(const std::string& git, LaterRole shared);
  // Of what is in a folder of repositories.
  void add_repositories(const std::string& path, std::size_t depth, LaterRole shared,
                        std::size_t& left);
  void add_inner_repositories(const std::string& git);
  void add_repository(const std::string& tree);
  void add_bare_repository(const std::string& folder);
  void search(const Folder& folder);
  bool search_entries(const Folder& folder, UniqueFd fd);
  void add_naming(Naming naming);
  void add_all_named();
  void read_names(const std::string& text, const std::string& folder);
  void read_outer_names(const std::string& tree);
  void add_named(const Naming& naming);

  const std::vector<std::string>& folders_;
  const LaterState& before_;
  LaterEvents& events_;
  std::vector<Folder> queue_ = {};
  std::vector<Naming> namings_ = {};
  std::string opened_ = {};  // the path of the directory below, which was opened last
  UniqueFd opened_fd_ = {};
  std::size_t tree_ = 0;  // of what is added
  bool naming_ = false;
  bool is_git_ = false;
  std::size_t listed_ = 0;
  std::size_t texts_ = 0;
};

// The time of the processor that this thread has had, so that nothing depends on what runs beside.
std::chrono::nanoseconds thread_time();

// The path of the folder around a path.
std::string later_folder_of(std::string_view path);

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

// Whether a value that names a place is one that starts no program.
enum class GitPlace { repository, work_tree };
using IsSafePlace = FunctionRef<bool(GitPlace kind, const std::string& value)>;

// The text of a file that was `before` and that a command has made `now`: with what starts no
// program, and without what does. `names` has keys that did not come through, 20 at most.
std::string safe_git_settings(std::string_view before, std::string_view now, IsSafePlace is_safe,
                              std::vector<std::string>& names);

// Whether a file .git leads to what a repository keeps for a submodule or a linked worktree.
bool leads_to_own_repository(const LaterState& state, const std::string& path,
                             const LaterFile& file);

// Settings of git, for what their values name.
struct GitSettingsFile {
  const std::string& path;
  std::size_t tree;
  // Of the step, by thread_time(): a value can be made to take long, and is not safe then.
  std::chrono::nanoseconds begin;
};
bool is_safe_git_place(const LaterState& state, const std::vector<std::string>& folders,
                       const GitSettingsFile& file, GitPlace kind, const std::string& value);

// The path that a text names from a folder, by the text alone: where no link lies in it.
std::string written_path(std::string_view text, const std::string& folder);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
