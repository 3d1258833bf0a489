// The copy of a workspace in the place that a link leads to, at both ends.
#pragma once

#include "copy/tree_internal.hpp"
#include "copy/wire_internal.hpp"

#include "agent/command_internal.hpp"
#include "agent/link_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

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
//
//   state   event                                        next    function
//   (none)  the agent's program for it has started       alike   open()
//   alike   a command comes, the changes here are sent   alike   send()
//   alike   the workspace here is too large              alike   send() fails: no command starts
//   alike   a command has ended, its changes are here    alike   fetch()
//   alike   the copy there is too large, or unreadable   alike   fetch() says so
//   alike   the wire is lost                             lost    send(), fetch()
//
// What holds: in `alike`, both sides have a CopyTree in the state `agreed`, and paths that differ
// are marked as `own`, or are found by the next scan. In `lost`, changes there are lost with the
// folder; Target::connect() in the room place sees it and makes a new connection, and with that a
// new copy, which begins empty.
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

// A command in a place with a copy. It ends when its changes have come here: the run then calls
// recover() twice, first for the CopyFetch and then with the result of that, which is a note or
// empty.
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
