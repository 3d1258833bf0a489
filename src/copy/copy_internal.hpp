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

#include "agent/command_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/messages_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A message begins with four numbers: its kind, and with copy_put the mode, 8 bits up; the size;
// the time of modification; the size of the path or the text that follows.
constexpr std::uint64_t copy_note = 1;
constexpr std::uint64_t copy_gone = 2;
constexpr std::uint64_t copy_put = 3;
constexpr std::uint64_t copy_done = 4;
constexpr std::uint64_t copy_failed = 5;

// In place of the size of a piece: that many zeros more than copy_hole; the file cannot be read on.
constexpr std::size_t copy_hole = std::size_t{1} << 24;
constexpr std::size_t copy_broken = 0xffffffff;

constexpr std::uint64_t copy_end = ~std::uint64_t{0};  // in place of the number of a refusal
constexpr int copy_conflict = 0xffff;                  // in place of an errno

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

// The subject of a question: the workspace, and the options of its copy.
Json copy_subject(std::string_view root_list, const Json& options);

// The program of the other side: it answers until the input ends.
int serve_copy(const Json& subject, int in, int out);

// The folder of a copy of the workspace of that path, which becomes its own: an empty one of that
// path, where it can be had and the workspace itself is marked, so that it is not empty, or one in
// $XDG_CACHE_HOME, ~/.cache, /var/tmp or /tmp.
Expected<std::shared_ptr<const PrivateFolder>> folder_for_copy(std::string& workspace,
                                                               bool is_marked);

}  // namespace inner

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

// Bytes to and from the other side, in the calling thread.
class CopyWire {
 public:
  CopyWire(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}

  bool put(std::string_view bytes);
  bool put_numbers(std::initializer_list<std::uint64_t> numbers);
  bool flush();
  bool get(void* bytes, std::size_t size);
  // Some bytes, at most so many; none when the other side has gone.
  std::string_view get_some(std::size_t most);
  // Called with the bytes that were read, for the credit of the command that sends them.
  Function<void(std::string_view)> taken = {};

 private:
  bool fill();

  UniqueFd in_;
  UniqueFd out_;
  std::string sending_ = {};
  std::unique_ptr<char[]> buffer_{new char[longest_payload]};
  std::string_view got_ = {};
};

// One side. What comes over the wire is hostile: paths and their order, sizes, numbers.
class CopyTree {
 public:
  // Of the workspace `base`. The other side may see and change what the rules permit.
  static Expected<std::unique_ptr<CopyTree>> of(const std::string& base, const PathRules& rules,
                                                const Json& options);

  const std::optional<CancelToken>* cancel = nullptr;  // of send()
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
  bool list_folder(int folder, std::string& path, int depth);
  bool list_name(int folder, const std::string& name, std::string& path, int depth);
  void read_rules(int folder, std::string_view path);
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
  CopyRules excluded_ = CopyRules();
  CopyRules ignored_ = CopyRules();
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

// A file in the workspace while the other side chooses a folder for the copy: where it is in the
// folder of the same path there, too, both are one, which must not become its own copy. No copy has
// files of such names. Without a workspace there is none.
class CopyMark {
 public:
  explicit CopyMark(const std::string& workspace);
  CopyMark(const CopyMark&) = delete;
  CopyMark& operator=(const CopyMark&) = delete;
  ~CopyMark();

  bool is_made() const { return static_cast<bool>(folder_); }

 private:
  UniqueFd folder_ = UniqueFd();
  const std::string name_ = concat({CopyTree::partial, random_hex(8)});
};

// The copy of a workspace in the place that a link leads to. Safe from any thread, one at a time.
class WorkspaceCopy {
 public:
  static Expected<std::shared_ptr<WorkspaceCopy>> open(std::shared_ptr<AgentLink> link,
                                                       const std::string& workspace,
                                                       const PathRules& paths, const Json& options);
  explicit WorkspaceCopy(std::shared_ptr<AgentLink> link) : link_(std::move(link)) {}

  const std::string& workspace() const { return there_; }
  // The other end has gone: the copy is not known any more.
  bool is_lost() const { return lost_.load(); }
  const std::shared_ptr<AgentLink>& link() const { return link_; }
  // Before a command: sends the changes of this side.
  Expected<void> send(const std::optional<CancelToken>& cancel, std::vector<std::string>& notes);
  // After it: takes the changes of the other side. Returns a note, or nothing.
  std::string fetch();
  // A path that begins with the workspace, as the other side has it.
  void translate(std::string& path) const;
  // The report of a session, with its folder as it is here.
  std::string with_local_folder(std::string text, const std::string& mark) const;

 private:
  std::string report(std::string_view where);

  mutable std::mutex mutex_ = {};
  const std::shared_ptr<AgentLink> link_;
  std::string here_ = {};
  std::string there_ = {};
  std::unique_ptr<AgentCommand> command_ = {};
  std::unique_ptr<CopyWire> wire_ = {};
  std::unique_ptr<CopyTree> tree_ = {};
  std::string said_ = {};
  std::atomic<bool> lost_{false};
};

// A command in a place with a copy. It ends when its changes have come here.
class CopiedCommand final : public AgentCommand {
 public:
  CopiedCommand(StartRequest&& request, const std::shared_ptr<WorkspaceCopy>& copy)
      : AgentCommand(copy->link(), std::move(request)), copy_(copy) {}
  bool ended() const override { return has_fetched_ && AgentCommand::ended(); }
  bool is_lost() const override { return !has_fetched_ && AgentCommand::ended(); }
  std::shared_ptr<Process::State> recover(const ProcessResult* last) override;
  const std::string& note() const { return note_; }

 private:
  const std::shared_ptr<WorkspaceCopy> copy_;
  std::string note_ = {};
  bool has_fetched_ = false;
};

}  // namespace v0_1
}  // namespace codeexec
