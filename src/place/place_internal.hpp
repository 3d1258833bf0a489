// The frames that agent and client exchange, and the client.
//
// The agent begins with a line: greeting_mark, the number of the protocol and a newline. The client
// looks for that line behind all that ssh or a login script prints. After it both directions carry
// frames, whose numbers are little-endian. A payload has at most 64 KiB.
//
//   0         4      5         9
//   +---------+------+---------+---- ... ----+
//   | size of | kind | number  | payload     |      13 bytes for "ls\n" of command 7:
//   | payload |      | of the  |             |
//   |         |      | command |             |      03 00 00 00  09  07 00 00 00  6c 73 0a
//   +---------+------+---------+---- ... ----+
//
//   kind         by      of       payload
//   ping         both    0        nothing, or a newline; a sign of life
//   hello        client  0        JSON: see new_hello()
//   hello        agent   0        JSON: what the agent has found, or `error`
//   request      client  command  part of a request, when that is too long for one frame
//   start        client  command  the last part, see PlaceRequest; the command begins. One without
//                                 a program answers a FileMessage: see answer_question()
//   input        client  command  bytes for standard input
//   input_end    client  command  nothing
//   credit       both    command  a Channel in one byte; so many more bytes, in 4, may be sent
//   signal       client  command  its number in one byte; SIGKILL is for all of the command
//   started      agent   command  its number in the place's process table, in 4 bytes, when asked
//   out, err     agent   command  bytes of that stream
//   input_closed agent   command  nothing: the command reads standard input no more
//   told         agent   command  part of what was written to descriptor 3, before the end
//   end          agent   command  JSON: what became of it; it also ends one that did not start
//   bye          agent   0        nothing: it ends, and all that it has started is dead
//   resize       client  command  rows and columns of its terminal, in 4 bytes each; only to an
//                                 agent that has `resizes` in its hello
//   connect      agent   itself   a command, in 4 bytes, has made a connection to the proxy, which
//                                 is on the side of a client that has `connections` in its hello
//
// A connection has a number of its own with the highest bit set, which the agent chooses. Its bytes
// are `out` and `input`, each with `credit`. An empty `out` and `input_end` end one direction, an
// empty `end` of the agent all of it. The client asks for that by SIGKILL, or by SIGHUP for when
// all input has been written.
//
// The life of a connection, and of a command on it:
//
//   client                               agent
//     | starts the transport ------------> |   a shell there is given the agent first: bring_text()
//     | <----------- "codeexec-place/1\n"  |
//     | hello ----------------------------> |   finds or copies the workspace, makes the sandbox
//     | <------------------------- hello    |
//     | start 1, input 1 -----------------> |   starts the program
//     | <------------ started 1, out 1 ...  |
//     | credit 1 -------------------------> |   as far as `out` was read
//     | <------------------------- end 1    |
//     |      ... a third of keep_alive ...  |
//     | ping --------- and -------- ping    |
//     X  the connection is lost             X   no frame for keep_alive, or the end of the pipe:
//     commands end as `unknown`             commands are killed, and the agent ends
//     the next command connects again
//
// At first stream_window bytes of each stream may be on their way. The receiver allows more by
// `credit` when its reader has taken them, up to the stream's share of most_window, which is
// 400 MiB a second if a round trip takes 20 ms. So a flood of one command does not hold up another
// one, and memory is bounded: 200 commands whose output is not read hold 150 MiB, see PlaceWindow.
#pragma once

#include "place/place.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/remote_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The ground that the agent's program is asked about: see answer_question().
inline constexpr const char* question_variable = "CODEEXEC_PLACE_QUESTION";
// The folder of the shell that has brought the agent, which begins there.
inline constexpr const char* start_variable = "CODEEXEC_PLACE_START";
inline constexpr int place_protocol = 1;
inline constexpr std::string_view greeting_mark = "codeexec-place/";
inline constexpr std::size_t longest_payload = std::size_t{64} << 10;
inline constexpr std::size_t stream_window = std::size_t{256} << 10;
inline constexpr std::size_t most_window = std::size_t{8} << 20;
inline constexpr std::size_t longest_request = std::size_t{64} << 20;

inline constexpr std::uint32_t connection_bit = std::uint32_t{1} << 31;
inline constexpr std::string_view kill_text = "\x09"sv;  // SIGKILL

}  // namespace inner

// Not in `inner`: parts of classes have members of these.
enum class FrameKind : unsigned char {
  ping,
  hello,
  request,
  start,
  input,
  input_end,
  credit,
  signal,
  started,
  out,
  err,
  input_closed,
  told,
  end,
  bye,
  resize,
  connect
};
enum class Channel : unsigned char { out, err, input };

inline namespace inner {

struct Frame {
  FrameKind kind;  // any number, as it came
  std::uint32_t id;
  std::string_view payload;
};

void put_frame(std::string& out, FrameKind kind, std::uint32_t id, std::string_view payload);
std::string number_bytes(std::size_t value);  // four of them
std::uint32_t number_in(std::string_view bytes);
// The payload of a credit frame. read_credit() is false for a frame that is none.
std::string credit_text(Channel channel, std::size_t bytes);
bool read_credit(const Frame& frame, Channel& channel, std::size_t& bytes);
// The payload of an `end`. read_end() is false for a text that no agent writes.
std::string end_text(const ProcessResult& result);
bool read_end(std::string_view text, ProcessResult& result);
// A text of an agent, of at most 4 KiB.
std::string bounded(const Json& value);

// Gives a pipe more room, so that both ends wake up less often for a flood. A failure is ignored.
void widen_pipe(int fd);

Json to_json(const SandboxOptions& options);
SandboxOptions sandbox_options_from(const Json& object);
Json to_json(const SandboxReport& report);
SandboxReport sandbox_report_from(const Json& object);
std::vector<std::string> texts_in(const Json& list);

// A file in a folder, which shows an agent that it has the same folder. The destructor removes it.
class Nonce {
 public:
  explicit Nonce(const std::string& folder);
  Nonce(const Nonce&) = delete;
  Nonce& operator=(const Nonce&) = delete;
  ~Nonce();
  const std::string& path() const { return path_; }
  const std::string& content() const { return content_; }
  // The reason why there is no such file, or empty.
  const std::string& problem() const { return problem_; }

 private:
  const std::string name_ = ".codeexec-" + random_hex(16);
  const std::string content_ = random_hex(16);
  UniqueFd folder_ = UniqueFd();
  std::string path_ = {};
  std::string problem_ = {};
};

// The first frame of every client, to which a client adds its wishes:
//
//   sandbox      what commands are held to; without it, they are in a strict one
//   ground       the workspace and the roots, see ground_of(); empty: any
//   remote       the workspace is only there, and the ground is looked up, unless `found`
//   copy         the workspace is copied there, see copy_options(). `marked`: see CopyMark
//   venv         a virtual environment, and `auto_venv`: those of workspaces count
//   lines        the way to the client holds back what ends in no newline
//   connections  commands reach the client's proxy, and nothing else
//   nonces       files, whose contents are the answer
//   container    the agent is in one: it gives up its capabilities, unless it `keeps` them, sees to
//                HOME and USER, and reports when memory has run out. `home`, `gitconfig`: the text
//                of a .gitconfig for a home that has none, `user`: UID:GID, or its name there, that
//                commands become
//   prepare      see prepare_container(), if the agent is not in the namespace `mounts`
Json new_hello(std::chrono::milliseconds keep_alive);
// The answer in all that an agent has printed; empty: it has not answered yet.
std::optional<Json> answer_in(std::string_view printed);

// In the agent: for each path the content of the file, null if this user may not read it, or the
// error.
Json answers_to(const Json& nonces);

// What identifies a program among all of its machine, also after the machine was restarted.
struct ProgramIdentity {
  std::string host = {};
  std::string boot = {};
  // Its user, and the process table in which its number means something.
  std::string space = {};
  std::string pid = {};
  std::string start = {};
};

ProgramIdentity own_identity();

// The text that marks what a program has made in an engine: its parts with a `;` between them.
std::string owner_text(const ProgramIdentity& program);
// Takes those parts off the text, with the `;` after the last one.
ProgramIdentity take_owner(std::string_view& text);

// Whether a program still runs. Empty: it is of another machine or user.
std::optional<bool> still_runs(const ProgramIdentity& maker, const ProgramIdentity& own);

// Since a time as of RFC 3339, such as 2026-01-31T12:00:00.5+01:00; -1 when it is none.
std::chrono::seconds age_since(const std::string& time);

// How often memory has run out in the container of this process.
std::uint64_t oom_kills_here();

// By root in a new container: a name for the uid and gid of its commands, whose home is `home`, or
// empty; `folders` that everybody may write to. Returns which of `programs` are not there.
Json prepare_container(const Json& wanted);

// Sees to capabilities, HOME, USER and .gitconfig, as a hello has it, and finds out what commands
// become. False: there is no such user.
bool settle_in_container(const Json& hello, long& uid, long& gid);

// The script for a shell that becomes the agent. If the file is not there, the script writes
// bring_mark and reads the file from the same pipe.
std::string bring_text(std::string_view file);
inline constexpr std::string_view bring_mark = "codeexec-bring\n";

// A workspace, and each root after a NUL and its Permission as a digit.
std::string ground_of(std::string_view workspace, const std::vector<Root>& roots);
std::vector<Root> roots_in(std::string_view ground, std::string& workspace);

// Puts the home of the agent's user in place of a `~` at the start.
void look_at_home(std::string& path);

// Makes its paths canonical as they are on this host.
Expected<void> find_ground(std::string& ground);

// Reads a FileMessage from one descriptor, and writes the answer to the other. The ground is a text
// in JSON. Returns 0, or 1. The agent starts its own program once more for that, with the argument
// --place and the ground in question_variable: so a disk that does not answer holds up no other
// command, and the program has the user of commands.
int answer_question(std::string_view ground, int in, int out);

// Both ends say that they live each third of the time after which they are given up.
inline std::chrono::milliseconds ping_after(std::chrono::milliseconds keep_alive) {
  return keep_alive / 3;
}

}  // namespace inner

// Finds the frames in bytes that come in any pieces. Holds one frame at most.
class PlaceFrames {
 public:
  // Calls `use` with each whole frame, and with each piece of one of a stream, as long as it
  // returns true. False: it did not, or a payload is too long.
  bool add(std::string_view bytes, FunctionRef<bool(const Frame&)> use);

 private:
  std::string held_ = {};
  std::size_t left_ = 0;  // to come of a stream's frame
  unsigned char kind_ = 0;
  std::uint32_t id_ = 0;
};

// Bytes on their way to a descriptor that does not block. Linear in what goes through it.
struct PlaceQueue {
  std::string bytes = {};  // frames are added at its end
  std::size_t written = 0;

  bool empty() const { return written == bytes.size(); }
  std::size_t size() const { return bytes.size() - written; }
  void clear() { *this = {}; }
  // As write(2), of all that waits.
  ssize_t write_to(int fd);
};

// What the receiver of a stream has allowed the sender. The last one of n commands gets
// most_window / n, and each at least stream_window: together at most
// (1 + ln n) * most_window + n * stream_window.
struct PlaceWindow {
  std::size_t left = stream_window;     // bytes that may still come
  std::size_t allowed = stream_window;  // `left` after the last credit, and what had come

  // So many came. False: that is more than was allowed.
  bool use(std::size_t bytes) {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
  // So many more may come, when `held` of those that came are not taken, while so many commands
  // run; 0 as long as that is not worth a frame.
  std::size_t credit(std::size_t held, std::size_t commands);
};

// A command, as the payload of `start` has it: an object of JSON, then these texts, each with a NUL
// after it, then the script.
struct PlaceRequest {
  std::string work_dir = {};
  std::string venv = {};  // its `bin` goes before the PATH there; empty: none
  std::vector<std::string> argv = {};
  std::vector<std::string> set = {};    // NAME=value
  std::vector<std::string> unset = {};  // names
  bool has_script = false;              // becomes descriptor 3
  std::string script = {};
  bool tells = false;  // descriptor 3 is a pipe to the session
  bool merge_streams = false;
  int terminal_rows = 0;
  int terminal_cols = 0;
  bool has_input = false;
  bool waited_for = false;  // `started` is wanted
  std::chrono::milliseconds timeout = no_limit;
  std::chrono::milliseconds kill_grace = std::chrono::milliseconds(0);

  // A program of the agent's own, which answers questions until its input ends.
  static PlaceRequest question();
  std::string text() const;
  // False: it is not as text() makes it.
  bool read(std::string_view text);
};

class PlaceCommand;

// The streams of a command there, or of a connection of one. The mutex of the link guards them.
struct PlaceStreams {
  // One on its way to its reader.
  struct Flow {
    UniqueFd reader = UniqueFd();
    UniqueFd writer = UniqueFd();
    PlaceQueue waiting = PlaceQueue();  // does not fit into the pipe
    PlaceWindow window = PlaceWindow();
    std::size_t untaken = 0;  // bytes that came and were not read
    bool ended = false;       // no more come
    bool is_socket = false;   // the writer is read from, too
    // False: they come from an agent that does not keep to the window.
    bool take(std::string_view bytes);
    void write();
    // Writes, and returns the credit that the sender then gets, or 0; so many share the room.
    std::size_t pass(std::size_t sharers);
  };
  // Where input comes from: a pipe, or a connection's socket until that ends, then until it closes.
  enum class Source : unsigned char { pipe, socket, closing, nothing };

  Flow out = Flow();
  Flow err = Flow();
  UniqueFd input_reader = UniqueFd();
  std::string_view input = {};  // sent before the bytes in that pipe
  std::size_t input_window = stream_window;
  std::uint32_t id = 0;
  bool running = false;  // it has begun there, and no end has come
  Source source = Source::pipe;

  int input_fd() const {
    return source == Source::pipe      ? input_reader.get()
           : source == Source::nothing ? -1
                                       : out.writer.get();
  }
  Flow& flow(Channel channel) { return channel == Channel::out ? out : err; }
  // False: no agent sends such a frame.
  bool take_credit(const Frame& frame, Channel wanted);
};

// One connection to an agent, and the thread that serves it. The agent may be hostile: a frame that
// is not as the table above has it ends the connection.
//
//            greeting_mark             hello                accepted
//   --> called -----------> speaking ---------> answered ---------------> open
//         |                    |                   |                       |  end of the pipe,
//         v                    v                   v                       v  silence, wrong frame
//       failed <---------------+-------------------+                      lost
//                                                     settle(): all commands end
//
// The thread writes what comes into the commands' pipes and never waits for one of them: what does
// not fit stays in PlaceStreams::Flow::waiting, which is no more than the window. It reads the
// pipes of their input as far as the agent has given credit.
class PlaceLink {
 public:
  struct Wanted {
    std::string name = {};  // for messages
    ProcessOptions transport = ProcessOptions();
    std::string agent = {};  // a file that a shell there gets; empty: an agent is there
    std::chrono::milliseconds connect_timeout = {};
    Json hello = {};                       // see new_hello()
    std::string workspace = {};            // that must be the same there; empty: any
    Function<void()> meanwhile = {};       // called once the transport has been started
    Function<std::string()> account = {};  // see PlaceEngine::Way
  };

  // Returns when the agent has answered, and the workspace was found to be the same.
  static Expected<std::shared_ptr<PlaceLink>> open(const Wanted& wanted,
                                                   const std::optional<CancelToken>& cancel);
  explicit PlaceLink(const Wanted& wanted)
      : name_(wanted.name),
        keep_alive_(wanted.hello["keep_alive"sv].as_integer()),
        is_container_(wanted.hello["container"sv].as_bool()),
        account_(wanted.account),
        last_heard_(Clock::now()) {}
  PlaceLink(const PlaceLink&) = delete;
  PlaceLink& operator=(const PlaceLink&) = delete;
  // What runs there is killed.
  ~PlaceLink();

  const std::string& name() const { return name_; }
  const PlaceFacts& facts() const { return facts_; }
  // The workspace and the roots there, as the agent has answered.
  const std::string& ground() const { return ground_; }
  // True only when the reason is known, which may take some seconds.
  bool is_lost() const;
  // In UTF-8.
  std::string reason() const;

 private:
  friend class PlaceCommand;

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
  Expected<void> greet(const Wanted& wanted, const std::optional<CancelToken>& cancel);
  Expected<void> wait_for_agent(const Wanted& wanted, const std::optional<CancelToken>& cancel,
                                Life until);
  Expected<void> take_greeting(const Wanted& wanted, std::string_view nonce);
  bool pump(int cancel, Clock::time_point deadline);
  void watch(std::vector<pollfd>& set, std::vector<Watched>& watched, Clock::time_point& deadline);
  void receive();
  void take_bytes(std::string_view bytes);
  bool take_frame(const Frame& frame);
  bool take_for_connection(const Frame& frame);
  bool take_connect(const Frame& frame);
  bool take_end(PlaceCommand& command, std::string_view text);
  PlaceStreams* find(std::uint32_t id);
  void read_input(PlaceStreams& streams);
  void serve(PlaceStreams& connection);
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
  std::string ground_ = {};
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
  std::string_view cargo_ = {};  // the agent's program, until the shell there asks for it
  std::size_t brought_ = 0;      // its size, when it was sent
  std::optional<Json> greeting_ = {};
  PlaceFrames reader_ = {};
  PlaceQueue queue_ = PlaceQueue();  // for the agent
  Clock::time_point last_heard_;
  Clock::time_point last_sent_ = {};
  std::uint32_t last_id_ = 0;
  // Null: the command is gone here, and its end is still to come.
  std::map<std::uint32_t, PlaceCommand*> commands_ = {};
  std::map<std::uint32_t, PlaceStreams> connections_ = {};
};

// The options of an executor that its commands need.
struct PlaceSettings {
  PlaceSettings(Environment variables, std::string shell_path, const Variables& set);
  Environment environment;
  std::string shell;
  bool sets_path;  // the options set PATH, which then replaces that of the place
  bool sets_lang;
  const pid_t owner = ::getpid();  // a fork of the program cannot use the connection
};

// One command there. The mutex of the link guards all fields.
//
//   launch() --> running  --> started_ --> end_: `end` has come --> finish()
//                   |            |
//                   +------------+-------> lost_: the connection was lost, the outcome is unknown
//
// The destructor of one that runs kills it.
class PlaceCommand : public RemoteCommand {
 public:
  // Fills the request in, unless the admission then says why the command cannot be.
  static Expected<void> request_for(const Command& command, Executor::Admission& admission,
                                    const PlaceSettings& settings, PlaceRequest& request);
  PlaceCommand(std::shared_ptr<PlaceLink> link, PlaceRequest&& request)
      : link_(std::move(link)), request_(std::move(request)) {}
  PlaceCommand(const PlaceCommand&) = delete;
  PlaceCommand& operator=(const PlaceCommand&) = delete;
  ~PlaceCommand() override;

  // The bytes that it wrote to its descriptor 3.
  const std::string& told() const { return told_; }

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
  friend class PlaceLink;

  void come_to_an_end();
  void tell_end(ProcessResult& result) const;

  const std::shared_ptr<PlaceLink> link_;
  PlaceRequest request_;
  PlaceStreams streams_ = PlaceStreams();
  UniqueFd input_writer_ = UniqueFd();
  bool started_ = false;
  CancelToken begun_ = {};  // an event: it has started, or never will
  bool lost_ = false;
  int pid_ = -1;
  std::string told_ = {};
  std::optional<ProcessResult> end_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
