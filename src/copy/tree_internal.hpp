// Copied workspaces: the tree of one side, its changes, and how those go to the other side.
//
// Both sides have a CopyTree with the same list of paths, the agreed one, which holds for each path
// what the file system of that side says of it. A difference from the list is a change.
//
//   here                                       there
//   before a command
//     scan, compare with the list
//     'T' gone d/e, gone d, put a, done ---->  takes each that is as it was agreed
//     <------- numbers of the refused, end
//   the command runs there, and has ended
//     'S' --------------------------------->   scan, compare with the list
//     <--------- note c, put a, put b, done
//     takes each that is as it was agreed
//     numbers of the refused, end --------->
//
//   note     paths that are left out, and why
//   gone     a path, in falling order
//   put      a path, in rising order, then pieces of its content: the size in 4 bytes, the bytes
//   done     the other side answers with the numbers of those that it has refused
//   failed   a text: nothing is sent
//
//   on the receiver   on the sender   then
//   as agreed         changed         the change is taken
//   as agreed         gone            removed
//   changed           changed         each side keeps its own, which is marked, until they are the
//                                     same again or one is removed: then the other one is sent
//   changed           gone            it stays, and is new for the sender
//   gone              changed         the change is taken: it is stronger than a removal
#pragma once

#include "copy/wire_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/ignore_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

constexpr std::size_t longest_copied_path = 4095;

// Whether `a` is before `b`. The paths in a folder come right behind it.
bool copy_order(std::string_view a, std::string_view b);

// FNV-1a with 64 bits: it finds changes, and is no protection against forged ones.
constexpr std::uint64_t copy_prime = 0x100000001b3;
std::uint64_t copy_hash(std::uint64_t hash, std::string_view bytes);
int copy_hash_of(int fd, std::uint64_t& hash);  // 0 or errno

// Whether the same may succeed later.
inline bool is_full_disk(int error) { return error == ENOSPC || error == EDQUOT || error == EIO; }

inline std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.size() - std::min(path.size(), base_name(path).size() + 1));
}

}  // namespace inner

// At most 120 bytes and the path of each, twice while it is compared.
struct CopyEntry {
  std::string path = {};
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970
  std::int64_t changed = 0;   // the same of st_ctime; -1: to be sent again
  std::uint64_t hash = 0;     // of its content, when that went over the wire
  std::uint32_t mode = 0;     // with its type; 0: it is not there
  bool own = false;           // only on this side, or another one there
  bool is_recent = false;     // its time would be the same after another change
  bool is_sent = false;       // it is a change
  bool is_closed = false;     // a folder that cannot be listed

  void set(const struct stat& status);
};

// Names for a note: how many, and the first few of them.
struct CopyNames {
  std::size_t count = 0;
  std::string text = {};
  void add(std::string_view path);
};

// The notes on one copy.
struct CopyReport {
  enum Kind { conflict, special, unreadable, deep, not_writable, failed, kinds };
  CopyNames names[kinds] = {};
  int error = 0;             // of the first that failed
  std::string problem = {};  // that ended all of it

  void add(int error, std::string_view path);
  // Names that the other side has left out. False: there is no such kind.
  bool take(std::uint64_t kind, std::uint64_t count, std::string_view text);
  // A note, or nothing. A note on paths that are left out is not repeated: `said` holds those.
  std::string text(std::string_view where, std::string& said) const;
};

// One side. What comes over the wire is hostile: paths and their order, sizes, numbers.
//
//   state    event                                  next     function
//   agreed   a scan finds no change                 agreed   scan() -> compare()
//   agreed   a scan finds changes                   scanned  scan() -> compare()
//   agreed   too many files, or none can be read    agreed   scan() is false, see report.problem
//   agreed   the other side sends its changes       agreed   take() -> finish_folders(), merge()
//   scanned  all is sent, the refusals have come    agreed   send() -> take_refusals(), merge()
//   scanned  it is cancelled meanwhile              agreed   send(); the next scan finds the rest
//   both     the wire ends, or speaks nonsense      (none)   send(), take() are false
//
// What holds: in `agreed`, agreed_ has all paths that both sides have, in order; found_, gone_ and
// added_ have no meaning. In `scanned`, found_ is the next list, with is_sent at each change, gone_
// has the paths that are no longer here, and agreed_ is empty. After a lost wire it is not known
// what the other side has: the tree is not used again, and the copy is made anew.
//
// A path in the list is in one of these states, by the fields of its CopyEntry:
//
//   path     event                                  next     function
//   agreed   it is another one now                  sent     compare(): is_sent
//   agreed   it is not there any more               gone     compare() puts it into gone_
//   agreed   it is left out now, or lies in such    (none)   compare() forgets it
//   agreed   the other side sends another one       agreed   put_file(), put_folder()
//   agreed   the same, but it has changed here      own      may_replace()
//   agreed   the other side has removed it          (none)   remove(): mode = 0; merge() drops it
//   sent     the other side has taken it            agreed   take_refusals()
//   sent     refused: changed there, not writable   own      take_refusals()
//   sent     refused: the disk there is full        again    take_refusals(): changed = -1
//   sent     it cannot be read here                 own      send_one(), send_file()
//   sent     it has gone, or a cancel               again    send_one(), send_file(), send()
//   own      it is another one now                  sent     compare()
//   own      it is removed here                     gone     compare()
//   again    the next scan                          sent     compare(), by is_same()
//
// `own` is a path of which each side has another one, or that this side alone has: nothing that the
// other side sends replaces it, unless both are the same by now.
class CopyTree {
 public:
  // Of the workspace `base`. The other side may see and change what the rules permit.
  static Expected<std::unique_ptr<CopyTree>> of(const std::string& base, const PathRules& rules,
                                                const Json& options);

  std::optional<CancelToken> cancel = {};  // of send()
  CopyReport report = CopyReport();

  // Lists the files. False: they are too many, or cannot be read; report.problem says which.
  bool scan();
  bool has_changes() const { return changes_ != 0; }
  // False: the other side has gone, or speaks another language.
  bool send(CopyWire& wire);
  bool take(CopyWire& wire);
  bool is_gone() const;  // the folder

  static constexpr std::string_view partial = ".codeexec-part-";

 private:
  CopyTree(UniqueFd root, const std::string& base, const PathRules& rules, const Json& options);
  Permission permission(std::string_view path) const {
    return rules_.restricted() ? rules_.permission(concat("%/%", {base_, path}))
                               : Permission::write;
  }
  bool stopped() const { return cancel && cancel->cancelled(); }
  bool list_folder(int folder, std::string& path, int depth);
  bool list_name(int folder, const std::string& name, std::string& path, int depth);
  void compare();
  bool is_same(const CopyEntry& now, CopyEntry& agreed) const;
  bool send_file(CopyWire& wire, CopyEntry& entry, int fd);
  bool send_one(CopyWire& wire, CopyEntry& entry);
  bool take_refusals(CopyWire& wire);
  // Returns an errno, copy_conflict or 0. `lost`: the wire was lost.
  int take_one(CopyWire& wire, CopyEntry& entry, bool& lost);
  static int take_link(CopyWire& wire, std::string& target, bool& lost);
  int take_content(CopyWire& wire, CopyEntry& entry, int fd, bool& lost);
  int put_file(CopyEntry& entry, int parent, const char* part, int fd);
  int put_folder(CopyEntry& entry, int parent);
  bool may_replace(CopyEntry& entry, int parent, bool& is_there);
  void remove(const std::string& path);
  UniqueFd open_folder(std::string_view path) const;
  int open_parent(std::string_view path);
  CopyEntry* find(std::string_view path);
  void keep(CopyEntry&& entry);
  void finish_folders();
  void merge();

  UniqueFd root_;
  const std::string base_;
  const PathRules rules_;
  std::uint64_t most_files_;
  std::uint64_t most_bytes_;
  bool gitignore_;
  IgnoreRules excluded_ = IgnoreRules();
  IgnoreRules ignored_ = IgnoreRules();
  std::vector<CopyEntry> agreed_ = {};
  std::vector<CopyEntry> found_ = {};
  std::vector<CopyEntry> gone_ = {};
  std::vector<CopyEntry> added_ = {};    // to the agreed paths
  std::vector<CopyEntry> folders_ = {};  // whose rights are set when all is in them
  std::uint64_t bytes_ = 0;
  std::uint64_t changes_ = 0;
  const std::string part_ = concat({partial, random_hex(8)});  // a file that is not whole yet
  UniqueFd parent_ = UniqueFd();                               // of what is put
  std::string parent_path_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
