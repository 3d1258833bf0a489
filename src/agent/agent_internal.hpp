// The agent: the program elsewhere that starts the commands there.
#pragma once

#include "agent/connections_internal.hpp"
#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// What an agent of another machine does besides: it finds or copies the workspace, and answers
// questions about its files. The agent of a container has none of it.
class AgentWorkspace {
 public:
  virtual ~AgentWorkspace() = default;
  // Finds or makes the workspace and the roots that a hello asks for, writes them as they are here
  // into `root_list`, and sets what of the variables of commands depends on them. An error refuses
  // the hello, and its message is what the client reports.
  virtual Expected<void> settle(const Json& hello, std::string& root_list,
                                EnvironmentOptions& variables) = 0;
  // The variable, as NAME=value, with which this program is started once more, with the argument
  // --place, for questions about the files there: so a disk that does not answer holds up no other
  // command, and the program has the user of commands.
  virtual std::string question() const = 0;
};

// One thread drives all: the orders, the commands, the answers. It holds at most queue_limit bytes
// and a frame of each command's output, a window of each command's input, and one request.
//
//   state    event                                        next     function
//   waiting  the hello                                    greeted  take() -> greet(), also if it is
//                                                                  refused: the answer has `error`
//   waiting  any other frame but ping                     ending   receive() -> end()
//   greeted  a request, then `start`                      greeted  take() -> start()
//   greeted  a second hello, what no client sends         ending   receive() -> end()
//   greeted  nothing was heard for keep_alive             ending   loop() -> end()
//   both     the input has ended, or cannot be read       ending   receive() -> end()
//   both     the output cannot be written                 ending   flush() -> end()
//   ending   no command is left                           (none)   loop(), run() says `bye`
//
// What holds: in `waiting` there are no commands and no deadline, as a client that has gone ends
// the pipe. In `greeted`, one frame at least is sent in each third of keep_alive. In `ending`, the
// input is not read, nothing is queued, and all commands are killed; their output is read and
// dropped, so that none of them holds up its own end. problem_ says why, and is empty where the
// input has ended: that is how a client ends an agent, and the exit status is 0.
class CommandAgent {
 public:
  // Without a workspace, the agent serves a container.
  CommandAgent(int in, int out, AgentWorkspace* workspace)
      : in_(in), out_(out), workspace_(workspace) {}
  CommandAgent(const CommandAgent&) = delete;
  CommandAgent& operator=(const CommandAgent&) = delete;
  int run();

 private:
  using State = Process::State;

  static constexpr std::size_t queue_limit = std::size_t{64} << 10;
  static constexpr std::size_t most_commands = 1024;

  struct Running {
    std::uint32_t id = 0;
    std::shared_ptr<State> state = {};
    std::size_t credit[2] = {stream_window, stream_window};
    StreamWindow input_window = {};
    std::uint64_t oom_kills = 0;  // at the start, in its container
    bool has_input = false;
    bool input_watched = false;  // until the client has been sent input_closed
    UniqueFd session_pipe = UniqueFd();
  };

  void loop();
  // So many bytes may be added to the queue.
  std::size_t room() const {
    const std::size_t left = queue_limit - std::min(queue_limit, queue_.size());
    return left < longest_payload / 2 ? 0 : left;
  }
  void make_room(Running& command);
  void receive();
  bool take(const Frame& frame);
  bool greet(std::string_view text);
  Expected<void> settle(const Json& hello, Json& answer);
  Expected<void> settle_workspace(const Json& hello, std::string& root_list);
  Expected<void> settle_sandbox(const Json& hello, std::string_view root_list, Json& answer);
  bool start(std::uint32_t id, std::string_view text);
  Expected<void> prepare(StartRequest& request, Running& command, UniqueFd& passed,
                         ProcessOptions& options);
  Expected<void> resolve_variables(const StartRequest& request, ProcessOptions& options);
  Expected<void> give_proxy(Running& command, ProcessOptions& options);
  void pass_on(std::uint32_t id, Stream stream, std::string_view bytes);
  void watch_input(Running& command);
  Running* find(std::uint32_t id);
  void send(FrameKind kind, std::uint32_t id, std::string_view payload);
  void stay_heard();  // sends what waits, and something where that is due
  void flush();
  void end(const char* why);

  const int in_;
  const int out_;
  AgentWorkspace* const workspace_;
  bool ending_ = false;
  bool killing_ = false;
  std::string problem_ = {};  // why it ends; empty: the input has ended
  bool greeted_ = false;
  bool ends_lines_ = false;  // the way to the client holds back what ends in no newline
  bool contained_ = false;
  bool has_proxy_ = false;  // the client has one
  bool is_remote_ = false;  // the workspace is only here
  long uid_ = -1;           // that commands become
  long gid_ = -1;
  std::chrono::milliseconds keep_alive_ = std::chrono::seconds(30);
  Clock::time_point last_heard_ = Clock::now();
  Clock::time_point last_sent_ = Clock::now();
  std::optional<Environment> environment_ = {};
  Sandbox sandbox_ = {};
  std::shared_ptr<const PrivateFolder> home_ = {};  // of commands in a sandbox
  std::vector<std::string> weak_variables_ = {};    // that any other setting of them replaces
  FrameReader reader_ = {};
  std::unique_ptr<char[]> bytes_{new char[longest_payload]};
  State::ReadBuffer buffer_ = {};
  std::string request_ = {};  // the parts so far
  std::uint32_t request_id_ = 0;
  SendQueue queue_ = SendQueue();
  UniqueFd oom_score_ = UniqueFd();
  std::string own_oom_score_ = {};
  std::list<Running> commands_ = {};
  ProxyConnections connections_{[this](FrameKind kind, std::uint32_t id, std::string_view payload) {
    send(kind, id, payload);
  }};
};

}  // namespace v0_1
}  // namespace codeexec
