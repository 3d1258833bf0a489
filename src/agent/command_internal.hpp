// One command elsewhere, at the client.
#pragma once

#include "agent/flow_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "process/process.hpp"
#include "process/remote_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// The options of an executor that its commands need.
struct CommandSettings {
  CommandSettings(Environment variables, std::string shell_path, const Variables& set);
  Environment environment;
  std::string shell;
  bool sets_path;  // the options set PATH, which then replaces that of the place
  bool sets_lang;
  const pid_t owner = ::getpid();  // a fork of the program cannot use the connection
};

// One command there. The mutex of the link guards all fields.
//
//   state     event                            next      function
//   new       `start` is sent                  running   launch()
//   new       the link is lost already         lost      launch(), whose caller gets `not_started`
//   running   `started`, if it is waited for   started   AgentLink::take_frame()
//   running   no `started` before the deadline running   launch() returns false
//   running,  `end`                            ended     AgentLink::take_end(), come_to_an_end()
//   started   the link is lost                 lost      AgentLink::settle(), come_to_an_end()
//             it is destroyed                  (none)    ~AgentCommand() sends SIGKILL
//   ended,    its streams were read to the end ended     take(); from then on ended() is true
//   lost      finish()                         (none)    report_end()
//
// What holds: in `running` and `started` (streams_.running), commands_ of the link has this command
// by its number, so that frames find it. One that was destroyed leaves null there, until its `end`
// has come: no other command gets the number meanwhile. In `ended`, end_ has the result. In `lost`,
// it has none: what became of the command is not known here, and the outcome is `unknown`. In both,
// no more comes into the pipes than what waits for room in them, and begun_ is cancelled.
class AgentCommand : public RemoteCommand {
 public:
  // Fills the request in, unless the admission then says why the command cannot be.
  static Expected<void> request_for(const Command& command, Executor::Admission& admission,
                                    const CommandSettings& settings, StartRequest& request);
  AgentCommand(std::shared_ptr<AgentLink> link, StartRequest&& request)
      : link_(std::move(link)), request_(std::move(request)) {}
  AgentCommand(const AgentCommand&) = delete;
  AgentCommand& operator=(const AgentCommand&) = delete;
  ~AgentCommand() override;

  // The bytes that it wrote to its descriptor 3.
  const std::string& session_data() const { return session_data_; }

  // Set before launch(): opens a connection of it to the proxy. Null: there is no proxy.
  Function<UniqueFd()> connect = {};

  bool launch(bool wait, const std::optional<CancelToken>& cancel, ProcessResult& failure) override;
  UniqueFd take_out() override { return std::move(streams_.out.reader); }
  UniqueFd take_err() override { return std::move(streams_.err.reader); }
  UniqueFd take_input(std::string_view& given) override;
  int pid() const override { return pid_; }
  void take(Stream stream, std::string_view bytes,
            FunctionRef<void(std::string_view)> use) override;
  bool ended() const override;
  bool signal(int number) override;
  bool can_resize() const override;
  void resize(TerminalSize size) override;
  std::chrono::milliseconds kill_time() const override { return std::chrono::milliseconds(2500); }
  void finish(ProcessResult& result) override;

 protected:
  // During launch(), under the mutex: until it has begun or ended.
  virtual void wait_for_start(std::unique_lock<std::mutex>& lock,
                              const std::optional<CancelToken>& cancel) {
    wait_for_start(lock, cancel, Clock::time_point::max());
  }
  void wait_for_start(std::unique_lock<std::mutex>& lock, const std::optional<CancelToken>& cancel,
                      Clock::time_point deadline) const;
  // The connection was lost before its end came, or the `bye` of the agent.
  bool was_lost() const;
  bool has_started() const { return started_; }
  bool has_begun() const { return begun_.cancelled(); }  // or has ended

 private:
  friend class AgentLink;

  void come_to_an_end();
  void report_end(ProcessResult& result) const;

  const std::shared_ptr<AgentLink> link_;
  StartRequest request_;
  RemoteStreams streams_ = RemoteStreams();
  UniqueFd input_writer_ = UniqueFd();
  bool started_ = false;
  CancelToken begun_ = {};  // an event: it has started, or never will
  bool lost_ = false;
  int pid_ = -1;
  std::string session_data_ = {};
  std::optional<ProcessResult> end_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
