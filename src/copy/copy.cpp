// The copy of a workspace: its end elsewhere, and its end here with the commands that use it.

#include "copy/copy_internal.hpp"
#include "copy/tree_internal.hpp"
#include "copy/wire_internal.hpp"

#include "agent/command_internal.hpp"
#include "agent/messages_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "process/child_internal.hpp"
#include "process/remote_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The orders from here to the other side: to take what follows, or to send.
constexpr char copy_takes = 'T';
constexpr char copy_sends = 'S';

}  // namespace

inline namespace inner {

// Two items, while a root list is a text: answer_question() looks at that.
Json copy_subject(std::string_view root_list, const Json& options) {
  Json pair = Json::array();
  pair.push_back(Json(take_part(root_list, '\0')));
  pair.push_back(options);
  return pair;
}

// A program of its own, so that a slow disk holds up no command, and with the rights of commands.
// It ends when the wire or the folder has gone.
int serve_copy(const Json& subject, int in, int out) {
  const auto opened = CopyTree::of(subject[0].as_string(), PathRules(), subject[1]);
  if (!opened) return 1;
#if defined(__linux__)
  ::prctl(PR_SET_DUMPABLE, 0);  // as the agent
#endif
  CopyTree& tree = **opened;
  CopyWire wire{UniqueFd(::dup(in)), UniqueFd(::dup(out))};
  char asked = 0;
  while (wire.get(&asked, 1) && !tree.is_gone()) {
    if (asked == copy_takes) {
      if (!tree.take(wire)) return 1;
      continue;
    }
    const bool ok = tree.scan();
    const std::string& problem = tree.report.problem;
    if (ok ? !tree.send(wire)
           : !wire.put_numbers({copy_failed, 0, 0, problem.size()}) || !wire.put(problem) ||
                 !wire.flush())
      return 1;
  }
  return 0;
}

}  // namespace inner

// A mark that cannot be made is no error: the copy then gets a folder of its own, which is always
// right.
CopyMark::CopyMark(const std::string& workspace) {
  auto folder = open_canonical_directory(workspace);
  if (!folder) return;
  const UniqueFd file(::openat(folder->get(), name_.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file) folder_ = std::move(*folder);
}

// The other side has looked by then: open() returns when the agent has answered.
CopyMark::~CopyMark() {
  if (folder_) ::unlinkat(folder_.get(), name_.c_str(), 0);
}

// Starts the program at the other side, by the link of the commands, and one wire that stays for
// all of them. Nothing is sent yet.
Expected<std::shared_ptr<WorkspaceCopy>> WorkspaceCopy::open(std::shared_ptr<AgentLink> link,
                                                             const std::string& workspace,
                                                             const PathRules& paths,
                                                             const Json& options) {
  auto copy = new_shared<WorkspaceCopy>(std::move(link));
  std::string_view root_list = copy->link_->root_list();
  copy->here_ = workspace;
  copy->there_ = std::string(take_part(root_list, '\0'));
  if (!is_canonical_form(copy->there_))
    return make_error(ErrorCode::io, "% has reported a path that is none", {copy->link_->name()});
  auto tree = CopyTree::of(workspace, paths, options);
  if (!tree) return tree.failure();
  copy->tree_ = std::move(*tree);
  StartRequest request = StartRequest::question();
  request.merge_streams = true;  // there is one reader
  auto command = std::make_unique<AgentCommand>(copy->link_, std::move(request));
  ProcessResult failure;
  if (!command->launch(false, {}, failure))
    return make_error(ErrorCode::io, "%", {failure.message});
  std::string_view nothing;
  UniqueFd out = command->take_out();
  copy->wire_ = std::make_unique<CopyWire>(std::move(out), command->take_input(nothing));
  copy->wire_->taken = [command = command.get()](std::string_view bytes) {
    command->take(Stream::out, bytes, [](std::string_view) {});
  };
  copy->command_ = std::move(command);
  return copy;
}

// The notes of the last scan, send or take; `where` is the direction.
std::string WorkspaceCopy::report(std::string_view where) {
  return tree_->report.text(concat("workspace %%", {where, link_->name()}), said_);
}

// A cancelled command does not start, and no more is sent for it; the copy stays usable. If the
// disk there is full, the command does not start either: it would work on half of the workspace.
Expected<void> WorkspaceCopy::send(const std::optional<CancelToken>& cancel,
                                   std::vector<std::string>& notes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  tree_->cancel = cancel;
  const auto lost = [this] {
    lost_ = true;
    return make_error(ErrorCode::io, "workspace: the copy in % was lost", {link_->name()});
  };
  if (lost_) return lost();
  if (!tree_->scan())
    return make_error(ErrorCode::limit, "workspace: it cannot be copied to %: %",
                      {link_->name(), tree_->report.problem});
  if (tree_->has_changes() && (!wire_->put({&copy_takes, 1}) || !tree_->send(*wire_)))
    return lost();
  const int error = tree_->report.error;
  const std::string note = report("to ");
  if (cancel && cancel->cancelled()) return cancelled_before_start();
  if (is_full_disk(error)) return make_error(ErrorCode::io, "%", {note});
  add_note(notes, "%", {note});
  return {};
}

// Never fails the command, which has run: a note says what has not come. After a lost wire the copy
// is lost, as the sides no longer know of each other what they have.
std::string WorkspaceCopy::fetch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool ok = !lost_ && wire_->put({&copy_sends, 1}) && wire_->flush() && tree_->take(*wire_);
  if (ok && tree_->report.problem.empty()) return report("from ");
  lost_ = !ok;
  return concat("what the command changed in the workspace has not come back from %: %",
                {link_->name(), ok ? tree_->report.problem : "the copy there was lost"});
}

// Only whole names: /work is not the beginning of /workshop.
void WorkspaceCopy::translate(std::string& path) const {
  if (codeexec::is_within(path, here_)) path.replace(0, here_.size(), there_);
}

// The folder is in the line behind the mark. A session whose folder has left the workspace stays
// there, as it is no folder of this side.
std::string WorkspaceCopy::with_local_folder(std::string text, const std::string& mark) const {
  const std::string begin = concat("%\n%", {mark, there_});
  const std::size_t at = text.find(begin);
  if (at == std::string::npos || at + begin.size() == text.size()) return text;
  const char next = text[at + begin.size()];
  if (next == '/' || next == '\n')
    text.replace(at + begin.size() - there_.size(), there_.size(), here_);
  return text;
}

namespace {

// A fetch in the form of a program that runs. It has a thread of its own, as the thread of all
// commands must not wait for a disk or a connection. The end of its output, an empty pipe, is what
// wakes that thread; finish() then has the note as its message. Without a pipe or a thread the
// changes stay there, and the next command's fetch brings them.
class CopyFetch final : public RemoteCommand {
 public:
  explicit CopyFetch(std::shared_ptr<WorkspaceCopy> copy) : copy_(std::move(copy)) {}
  CopyFetch(const CopyFetch&) = delete;
  CopyFetch& operator=(const CopyFetch&) = delete;
  ~CopyFetch() override { join(); }

  bool launch(bool, const std::optional<CancelToken>&, ProcessResult& failure) override {
    int error = make_pipe(reader_, writer_) ? 0 : errno;
    if (error == 0) error = start_thread(&thread_, thread_main, this);
    has_thread_ = error == 0;
    if (error == 0) return true;
    failure.outcome = Outcome::not_started;
    failure.message = concat("what the command changed has not come back: %", {errno_text(error)});
    return false;
  }
  UniqueFd take_out() override { return std::move(reader_); }
  UniqueFd take_err() override { return {}; }
  UniqueFd take_input(std::string_view&) override { return {}; }
  int pid() const override { return -1; }
  void take(Stream, std::string_view, FunctionRef<void(std::string_view)>) override {}
  bool ended() const override { return done_.load(); }
  bool signal(int) override { return false; }
  void finish(ProcessResult& result) override {
    join();
    result.message.swap(note_);
  }

 private:
  static void* thread_main(void* self) {
    auto& fetch = *static_cast<CopyFetch*>(self);
    fetch.note_ = fetch.copy_->fetch();
    fetch.done_ = true;
    fetch.writer_.reset();
    return nullptr;
  }
  // Once, whether finish() or the destructor comes first.
  void join() {
    if (std::exchange(has_thread_, false)) ::pthread_join(thread_, nullptr);
  }

  const std::shared_ptr<WorkspaceCopy> copy_;
  std::string note_ = {};
  UniqueFd reader_ = UniqueFd();
  UniqueFd writer_ = UniqueFd();
  pthread_t thread_ = {};
  bool has_thread_ = false;
  std::atomic<bool> done_{false};
};

}  // namespace

// Called when the command has ended there: the fetch is what it still has to do. `last` is the
// result of that. Null: it is done.
std::shared_ptr<Process::State> CopiedCommand::recover(const ProcessResult* last) {
  if (last) note_ = last->message;
  if (std::exchange(has_fetched_, true)) return nullptr;
  return new_run({}, new_shared<CopyFetch>(copy_));
}

}  // namespace v0_1
}  // namespace codeexec
