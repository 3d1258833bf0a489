// The client's end of a connection to an agent.
#pragma once

#include "agent/agent.hpp"
#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/remote_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What a shell writes when it wants the program of an agent: see AgentUpload.
inline constexpr std::string_view upload_mark = "codeexec-bring\n";

}  // namespace inner

class AgentCommand;

// A program of this host with pipes for its three streams. The caller reads and writes them.
struct PipedProgram {
  ChildHandle child = ChildHandle();
  UniqueFd input = UniqueFd();
  UniqueFd out = UniqueFd();
  UniqueFd err = UniqueFd();
  pid_t owner = ::getpid();  // a fork of this program only has a copy

  PipedProgram() = default;
  PipedProgram(const PipedProgram&) = delete;
  PipedProgram& operator=(const PipedProgram&) = delete;
  ~PipedProgram() { end(); }

  Expected<void> start(const ProcessOptions& options);
  // Kills the program without waiting for its end.
  void end();
};

// The program of an agent, for a shell at the other end, which becomes that.
struct AgentUpload {
  // For the shell. It writes upload_mark where it has no such program, and reads that from the same
  // pipe.
  std::string script = {};
  std::string program = {};
};

// One connection to an agent, and the thread that serves it. The agent may be hostile: a frame that
// is not as the table in frames_internal.hpp has it ends the connection.
//
//   state     event                                    next      function
//   called    the shell there writes upload_mark       called    take_bytes() sends the program
//   called    a greeting of this protocol              speaking  take_bytes()
//   called    a greeting of another protocol           answered  take_bytes(); then refused
//   called    64 KiB without a greeting                failed    take_bytes() -> lose()
//   called    connect_timeout has passed               failed    wait_for_agent() -> lose()
//   speaking  the agent's hello                        answered  take_frame()
//   speaking  any other frame but ping                 failed    take_bytes() -> lose()
//   speaking  connect_timeout has passed               failed    wait_for_agent() -> lose()
//   answered  the hello is what was wanted             open      greet()
//   answered  it is not                                (none)    take_greeting(): open() fails
//   open      a frame that no agent sends              lost      take_bytes() -> lose()
//   open      `bye`                                    open      take_frame(): all there is dead
//   but called: nothing came for keep_alive            failed *  check_life() -> lose()
//   each of these: the pipe has ended                  failed *  receive() -> lose()
//   failed, lost: the thread looks at it               the same  settle(), once: commands end
//                                                      * `lost`, if it was open
//
// What holds: in `called`, nothing that came is a frame, and connect_timeout alone bounds the wait.
// Until `open`, the thread that calls open() drives the link, and there are no commands; from then
// on the link's own thread does. In `failed` and `lost`, the transport is killed and the queue is
// empty; output that came before still goes to its readers. `settled_` is cancelled once no command
// runs any more, and is_lost() waits for that: so who sees a lost link sees the reason, too.
//
// The thread writes what comes into the commands' pipes and never waits for one of them: what does
// not fit stays in RemoteStreams::Flow::waiting, which is no more than the window. It reads the
// pipes of their input as far as the agent has given credit.
class AgentLink {
 public:
  struct Wanted {
    std::string name = {};  // for messages
    ProcessOptions transport = ProcessOptions();
    std::chrono::milliseconds connect_timeout = {};
    Json hello = {};                  // see new_hello()
    std::string workspace = {};       // that must be the same there; empty: any
    Function<void()> meanwhile = {};  // called once the transport has been started
    // Fills in what a shell at the other end is given; empty: an agent is there. Called once the
    // transport has been started.
    Function<Expected<void>(AgentUpload&)> upload = {};
    // Returns why the other end has gone, on one line; empty: not known. Called once the connection
    // was lost, in the thread of the link.
    Function<std::string()> account = {};
  };

  // Returns when the agent has answered, and the workspace was found to be the same.
  static Expected<std::shared_ptr<AgentLink>> open(const Wanted& wanted,
                                                   const std::optional<CancelToken>& cancel);
  explicit AgentLink(const Wanted& wanted)
      : name_(wanted.name),
        keep_alive_(wanted.hello["keep_alive"sv].as_integer()),
        is_container_(wanted.hello["container"sv].as_bool()),
        account_(wanted.account),
        last_heard_(Clock::now()) {}
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;
  // What runs there is killed.
  ~AgentLink();

  const std::string& name() const { return name_; }
  const PlaceFacts& facts() const { return facts_; }
  // The workspace and the roots there, as the agent has answered.
  const std::string& root_list() const { return root_list_; }
  // True only when the reason is known, which may take some seconds.
  bool is_lost() const;
  // In UTF-8.
  std::string reason() const;

 private:
  friend class AgentCommand;

  // A pipe of a command that is waited for.
  struct Watched {
    std::uint32_t id;
    Channel channel;
  };
  enum class Life { called, speaking, answered, open, failed, lost };

  bool speaks() const { return life_ >= Life::speaking && life_ <= Life::open; }
  bool lost() const { return life_ >= Life::failed; }
  static void* thread_main(void* self);
  SharedError failure() const;
  // Opening, in the thread of the caller.
  Expected<void> bring(const Wanted& wanted, const std::optional<CancelToken>& cancel);
  Expected<void> greet(const Wanted& wanted, const std::optional<CancelToken>& cancel);
  Expected<void> wait_for_agent(const Wanted& wanted, const std::optional<CancelToken>& cancel,
                                Life until);
  Expected<void> take_greeting(const Wanted& wanted, std::string_view nonce);
  // What the thread does. All but pump(), which takes the mutex, are called under it.
  bool pump(int cancel, Clock::time_point deadline);
  void watch(std::vector<pollfd>& set, std::vector<Watched>& watched, Clock::time_point& deadline);
  void receive();
  void take_bytes(std::string_view bytes);
  bool take_frame(const Frame& frame);
  bool take_for_connection(const Frame& frame);
  bool take_connect(const Frame& frame);
  bool take_end(AgentCommand& command, std::string_view text);
  RemoteStreams* find(std::uint32_t id);
  void read_input(RemoteStreams& streams);
  void serve(RemoteStreams& connection);
  void send(std::string_view bytes);
  void send(FrameKind kind, std::uint32_t id, std::string_view payload);
  void flush();
  void wake();
  void lose(const char* reason, Pieces values = {});
  void settle(std::unique_lock<std::mutex>& lock);
  void check_life(Clock::time_point now);

  const std::string name_;
  const std::chrono::milliseconds keep_alive_;
  const bool is_container_;
  const Function<std::string()> account_;
  const pid_t owner_ = ::getpid();  // a fork of the program has no such thread
  PlaceFacts facts_ = PlaceFacts();
  std::string root_list_ = {};
  pthread_t thread_ = {};
  bool has_thread_ = false;
  UniqueFd wake_in_ = UniqueFd();
  UniqueFd wake_out_ = UniqueFd();
  std::unique_ptr<char[]> buffer_ = {};

  mutable std::mutex mutex_ = {};
  PipedProgram line_ = {};
  Life life_ = Life::called;
  CancelToken settled_ = {};  // an event: all commands have ended
  bool closing_ = false;
  bool has_left_ = false;    // the agent has said `bye`
  std::string reason_ = {};  // why it was lost
  bool resizes_ = false;     // so its agent can
  Capture said_{4096};       // standard error, and before the mark standard output
  std::string unmarked_ = {};
  std::string_view upload_ = {};  // the agent's program, until the shell there asks for it
  std::size_t uploaded_ = 0;      // its size, when it was sent
  std::optional<Json> greeting_ = {};
  FrameReader reader_ = {};
  SendQueue queue_ = SendQueue();  // for the agent
  Clock::time_point last_heard_;
  Clock::time_point last_sent_ = {};
  std::uint32_t last_id_ = 0;
  // Null: the command is gone here, and its end is still to come.
  std::map<std::uint32_t, AgentCommand*> commands_ = {};
  std::map<std::uint32_t, RemoteStreams> connections_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
