// What may be read and written: the rules of Landlock, and the classes that find them.
#pragma once

#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

#if CODEEXEC_HAS_SANDBOX
struct OpenedGrant {
  UniqueFd fd = UniqueFd();  // O_PATH
  std::string path = {};     // without links
  struct stat status = {};
};

// No command can have put a link into `/`, nor into a directory that this process cannot change.
bool link_is_trusted(const UniqueFd& directory, const std::string& path);

// Opens a path name by name, so that no link is followed but those that may be, also when the path
// is changed meanwhile. `may_follow` gets the directory that a link lies in, and its path.
Expected<OpenedGrant> open_by_name(
    const std::string& path, FunctionRef<bool(const UniqueFd&, const std::string&)> may_follow);

Expected<OpenedGrant> open_grant(const std::string& path);

// Whether a path is a directory that a system consists of, or above one. Write access to one of
// these is control of the system. Directories below them, like a workspace in /var/lib, are not
// meant.
bool is_above_system(std::string_view path);

// Why a directory may not be written to by any command, or null.
const char* objection_to_writing(const OpenedGrant& grant);

inline constexpr int rename_abi = 2;
inline constexpr int truncate_abi = 3;

inline constexpr int ioctl_abi = 5;
inline constexpr int scope_abi = 6;

// What a rule grants, and where.
struct NamedRule {
  std::uint64_t rights;
  std::string path;
};

// A ruleset while it is built.
class Ruleset {
 public:
  // False and errno: there is none.
  bool create(int abi, Network network, bool unix_sockets);

  // Keep the files of all rules open, for a second ruleset.
  void keep_files() { keep_ = true; }

  // Keep the paths of all rules.
  void keep_names() { keep_names_ = true; }

  // False and errno when there can be no such rule. `path` is that of the file.
  bool add(UniqueFd file, mode_t mode, std::uint64_t rights, const std::string& path);

  // The file that a path leads to, but not through a link at its end when `flags` is O_NOFOLLOW;
  // what is missing needs no rule.
  void add_path(const std::string& path, std::uint64_t rights, int flags = 0);

  // Whether a rule is for what lies in /tmp.
  bool reaches_tmp() const { return reaches_tmp_; }

  // The errno of the last rule that there could not be, or 0.
  int error() const { return error_; }
  UniqueFd take() { return std::move(fd_); }
  const LandlockAttributes& attributes() const { return attributes_; }
  std::size_t size() const { return size_; }

  std::vector<LandlockRule> rules = {};
  std::list<UniqueFd> files = {};
  std::vector<NamedRule> named = {};

 private:
  UniqueFd fd_ = UniqueFd();
  LandlockAttributes attributes_ = {};
  std::size_t size_ = 0;
  int error_ = 0;
  bool reaches_tmp_ = false;
  bool keep_ = false;
  bool keep_names_ = false;
};

// The paths of what a directory holds, at most so many.
inline constexpr std::size_t most_paths = 10000;
std::vector<std::string> paths_in(const std::string& directory);

// What a path leads to, without links; empty when it cannot be learned.
std::string real_path_of(const std::string& path);

// A home directory, or one that holds homes.
bool holds_a_home(const std::string& path, const std::string& home);

// The user's home without links, or "".
std::string own_home();

// A program by what it begins with. A mode says less: a command may change it.
bool is_program_file(const std::string& path);

// The one judge of what commands must not read: by its name, or because its owner shows it to
// fewer than everybody (in /etc), or than the directory around it (among tools).
struct SecretSearch {
  // Where an entry stands: a name may be that of a secret in one place only. Bits of a set.
  enum Place : unsigned {
    prefix = 1,    // of tools: a directory of PATH, or the one around it
    near_top = 2,  // in a tree of tools, on its first two levels
    deep = 4,      // and below
    settings = 8,  // in /etc
  };
  // `unknown`: the tree is deeper or larger than is looked at, or cannot be read.
  enum class Finding { nothing, secret, unknown };

  // Directories that installers fill. Only their first level is looked at: the umask of the user
  // who installs may hide all files of a library, which would not work without them.
  static bool is_installed_part(std::string_view name);

  static bool has_secret_name(std::string_view name, Place where, bool is_directory);

  // `parent` is the directory that it lies in.
  bool is_secret(const std::string& path, const struct stat& status, const struct stat& parent,
                 int depth) const;

  // Looks at a directory and all below it. Each entry takes one from the budget.
  Finding look_into(const std::string& directory, int depth, std::size_t& budget) const;

  bool of_settings;
  int deepest;
};

// Adds directories of tools without their secrets: at once where there is none, entry by entry
// elsewhere. Installed trees are large, so all looking is within a budget. What it does not reach
// is granted in the parts that installers fill, and left out elsewhere.
class TreeGrants {
 public:
  explicit TreeGrants(Ruleset& ruleset) : ruleset_(ruleset) {}

  // Whether it has been added, or lies in what has.
  bool covers(std::string_view path) const;

  void add_directory(const std::string& path) { add(path, 0); }

  // Adds each entry of a directory. `of_system`: a directory of root's that is too large to be
  // looked at is added as well.
  void add_entries(const std::string& directory, bool of_system = false);

  void add_entry(const std::string& path, int depth = 0);

  void add_rule(const std::string& path, std::uint64_t rights);

 private:
  void add(const std::string& path, int depth);

  static constexpr std::size_t most_of_one = 500;
  static constexpr SecretSearch search_ = {false, 3};
  Ruleset& ruleset_;
  std::vector<std::string> done_ = {};
  std::size_t budget_ = 2000;      // entries that are looked at
  std::size_t rules_left_ = 1000;  // each costs every command
  bool of_system_ = false;
};

// Adds what commands need of the system: programs, their settings, harmless devices.
class SystemGrants {
 public:
  SystemGrants(Ruleset& ruleset, TreeGrants& trees) : ruleset_(ruleset), trees_(trees) {}

  void add(const SandboxOptions& options);

  static bool covers(std::string_view path);

 private:
  static constexpr auto readable_system = NameList{"/usr",
                                                   "/bin",
                                                   "/sbin",
                                                   "/lib",
                                                   "/lib32",
                                                   "/lib64",
                                                   "/libx32",
                                                   "/nix/store",
                                                   "/var/lib/texmf",  // formats of LaTeX
                                                   "/run/current-system",
                                                   "/proc",
                                                   "/sys/devices/system/cpu",
                                                   "/sys/devices/system/node",
                                                   "/sys/fs/cgroup",
                                                   "/sys/kernel/mm/transparent_hugepage"};

  // Entry by entry where there is a secret in a directory, at once where there is none.
  void add_settings(const std::string& directory, int depth);

  // Settings that are kept elsewhere: /etc/resolv.conf in /run. A file only.
  void add_link(const std::string& path);

  static constexpr SecretSearch search_ = {true, 6};
  Ruleset& ruleset_;
  TreeGrants& trees_;
  std::size_t budget_ = 20000;  // entries that are looked at
};

// Adds the directories of PATH that lie outside of the system, and what their programs need.
//
// A link on the way to one may have been planted: never one in a directory that commands may write
// to is followed. What commands of another policy could write to cannot be known, so whatever a
// link leads to has to look like a tool itself, by its place and by what is in it.
class ToolGrants {
 public:
  ToolGrants(Ruleset& ruleset, TreeGrants& trees, const std::list<SandboxGrant>& grants)
      : ruleset_(ruleset), trees_(trees), grants_(grants) {}

  void add(std::string_view search_path);

 private:
  struct Place {
    std::string path = {};  // without links; empty: it leads nowhere, or through a planted link
    bool linked = false;    // a link on the way lies where this user may write
  };

  Place place_of(const std::string& path) const;

  void add_directory(std::string_view given);

  bool is_granted(std::string_view path, bool for_writing = false) const;
  bool is_known(const std::string& path) const {
    return SystemGrants::covers(path) || is_granted(path) || trees_.covers(path);
  }

  // What stays out, whatever PATH says: a home directory, a directory of the system or one above
  // it, one with the name of a secret, and one that everybody can write to.
  bool is_never_granted(const std::string& path) const;

  static bool is_bin(const std::string& path);

  // Whether each hidden directory on the path is a known one of tools; others may hold secrets.
  static bool lies_among_tools(std::string_view path);

  // The prefix of a `bin` directly below `/` would be a whole part of the system.
  bool is_prefix(const std::string& path) const;

  // The directory, and its prefix when it is the `bin` of one: all of it, or only what installers
  // fill when it holds other things as well, or when a link led there.
  void add_tools(const std::string& directory, bool linked);

  // ~/.local and ~/.config hold the data of all programs, keyrings among it.
  static bool is_shared_prefix(const std::string& prefix);
  static bool is_tool_part(std::string_view entry);

  // Programs in a directory are often links to where they are installed.
  void add_targets(const std::string& directory);

  // A program that its owner shows to everybody.
  bool is_tool(const std::string& path) const;

  Ruleset& ruleset_;
  TreeGrants& trees_;
  const std::list<SandboxGrant>& grants_;
  std::string home_ = own_home();
};

inline bool is_readable_system(std::string_view path) { return SystemGrants::covers(path); }
inline bool is_home_directory(const std::string& path) { return holds_a_home(path, own_home()); }
#else
// No grant is made here.
inline bool is_readable_system(std::string_view) { return false; }
inline bool is_home_directory(const std::string&) { return false; }
#endif

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
