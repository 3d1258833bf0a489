// The frames that agent and client exchange, and the client.
//
// The agent begins with a line, greeting_mark, the number of the protocol and a newline, so that
// what ssh or a login script has printed before can be told from it. All else, in both directions,
// are frames: the size of the payload in 4 bytes, the kind in one, the command's number in 4, the
// payload. Numbers are little-endian. A payload has at most 64 KiB.
//
//   kind         by      of       payload
//   ping         both    0        nothing, or a newline; a sign of life
//   hello        client  0        JSON: who it is, what commands are held to, what to look for
//   hello        agent   0        JSON: who it is, what it has found, or `error`
//   request      client  command  part of a request, when that is too long for one frame
//   start        client  command  the last part, see PlaceRequest; the command begins. One without
//                                 a program answers a FileMessage: see answer_question()
//   input        client  command  bytes for standard input
//   input_end    client  command  nothing
//   credit       both    command  a Channel in one byte; so many more bytes, in 4, may be sent
//   signal       client  command  its number in one byte; SIGKILL is for all of the command
//   started      agent   command  its number in the place's process table, in 4 bytes, when asked
//   out, err     agent   command  bytes of that stream
//   input_closed agent   command  nothing: nobody reads standard input any more
//   told         agent   command  part of what was written to descriptor 3, before the end
//   end          agent   command  JSON: what became of it; it also ends one that did not start
//   bye          agent   0        nothing: it ends, and all that it has started is dead
//
// Of each stream at most stream_window bytes may be on their way at first; more is allowed by
// `credit` when somebody has taken them. Who receives a flood allows as much as its share of
// most_window, which is 400 MiB a second to where a round trip takes 20 ms. So a flood of one
// command neither holds up another nor takes memory: 200 commands whose output nobody takes hold
// 150 MiB at most, see PlaceWindow.
#pragma once

#include "place/place.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// By which the agent's program learns of which ground it is to answer_question().
inline constexpr const char* question_variable = "CODEEXEC_PLACE_QUESTION";
// Where a shell stood that has brought the agent, which begins there.
inline constexpr const char* start_variable = "CODEEXEC_PLACE_START";
inline constexpr int place_protocol = 1;
inline constexpr std::string_view greeting_mark = "codeexec-place/";
inline constexpr std::size_t longest_payload = std::size_t{64} << 10;
inline constexpr std::size_t stream_window = std::size_t{256} << 10;
inline constexpr std::size_t most_window = std::size_t{8} << 20;
inline constexpr std::size_t longest_request = std::size_t{64} << 20;

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
  bye
};

enum class Channel : unsigned char { out, err, input };

struct Frame {
  FrameKind kind;  // any number, as it came
  std::uint32_t id;
  std::string_view payload;
};

void put_frame(std::string& out, FrameKind kind, std::uint32_t id, std::string_view payload);
void put_credit(std::string& out, std::uint32_t id, Channel channel, std::size_t bytes);
std::string number_bytes(std::size_t value);  // four of them
std::uint32_t number_in(std::string_view bytes);
// Of a credit frame; false when it is none.
bool read_credit(const Frame& frame, Channel& channel, std::size_t& bytes);

// Both ends of a connection wake up less often for a flood. Where that cannot be, or it is no pipe,
// it stays as it is.
void widen_pipe(int fd);

Json to_json(const SandboxOptions& options);
SandboxOptions sandbox_options_from(const Json& object);
Json to_json(const SandboxReport& report);
SandboxReport sandbox_report_from(const Json& object);
std::vector<std::string> texts_in(const Json& list);

// A file of a folder, which an agent that has the same folder finds. It is gone again when this
// object is.
class Nonce {
 public:
  explicit Nonce(const std::string& folder);
  Nonce(const Nonce&) = delete;
  Nonce& operator=(const Nonce&) = delete;
  ~Nonce();
  const std::string& path() const { return path_; }
  const std::string& content() const { return content_; }
  // Why there is none, or empty.
  const std::string& problem() const { return problem_; }

 private:
  const std::string name_ = ".codeexec-" + random_hex(16);
  const std::string content_ = random_hex(16);
  UniqueFd folder_ = UniqueFd();
  std::string path_ = {};
  std::string problem_ = {};
};

// What every client says first, and what an agent has answered, in all that it has printed. Empty:
// it has not yet.
Json new_hello(std::chrono::milliseconds keep_alive);
std::optional<Json> answer_in(std::string_view printed);

// In the agent. Of each path the content of the file, null where this user may not look, or why
// there is none.
Json answers_to(const Json& nonces);

// A program by what tells it from all others on its machine, also after a restart of that.
struct ProgramIdentity {
  std::string host = {};
  std::string boot = {};
  // Its user, and the process table in which its number means something.
  std::string space = {};
  std::string pid = {};
  std::string start = {};
};

ProgramIdentity own_identity();

// As it is written on what is left in an engine, with a `;` between its parts.
std::string owner_text(const ProgramIdentity& program);
ProgramIdentity owner_in(std::string_view text);

using Maker = PlaceMaker;
Maker maker_of(const ProgramIdentity& maker, const ProgramIdentity& own);

// Since a time as of RFC 3339, such as 2026-01-31T12:00:00.5+01:00; -1 when it is none.
std::chrono::seconds age_since(const std::string& time);

// How often memory has run out in the container that this is in.
std::uint64_t oom_kills_here();

// By root in a new container: a name for the uid and gid of its commands, whose home is `home`, or
// empty; `folders` that everybody may write to. Returns which of `programs` are not there.
Json prepare_container(const Json& wanted);

// Sees to capabilities, HOME, USER and .gitconfig, as PlaceLink::Wanted has it, and finds out what
// commands become. False: there is no such user.
bool settle_in_container(const Json& hello, long& uid, long& gid);

// What a shell is sent that shall become the agent. Where it has no such file, it asks for that by
// bring_mark.
std::string bring_text(std::string_view file);
inline constexpr std::string_view bring_mark = "codeexec-bring\n";

// A workspace, and each root after a NUL and its Permission as a digit.
std::string ground_of(std::string_view workspace, const std::vector<Root>& roots);
std::vector<Root> roots_in(std::string_view ground, std::string& workspace);

// A `~` at the start of an option means the home of whoever the agent runs as.
void look_at_home(std::string& path);

// Makes its paths canonical as they are on this host.
Expected<void> find_ground(std::string& ground);

// Reads a FileMessage from one descriptor, and writes the answer to the other. The ground is a text
// in JSON. 0, or 1.
// The agent does so by starting its own program once more, with the argument --place and the ground
// in question_variable: a disk that does not answer holds up nobody, and it runs as the user that
// commands run as.
int answer_question(std::string_view ground, int in, int out);

// Both ends say that they live each third of the time after which they are given up.
inline std::chrono::milliseconds ping_after(std::chrono::milliseconds keep_alive) {
  return keep_alive / 3;
}

}  // namespace inner

// Takes frames apart that come in any pieces. Holds one frame at most.
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

// Of a stream, where it is received. Of n commands the last one is given most_window / n, and none
// less than stream_window: together at most (1 + ln n) * most_window + n * stream_window.
struct PlaceWindow {
  std::size_t left = stream_window;     // bytes that may still come
  std::size_t allowed = stream_window;  // that and what has come, when it was last told

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

// What makes a command there, in the payload of `start`: an object of JSON, then these texts, each
// with a NUL after it, then the script.
struct PlaceRequest {
  std::string work_dir = {};
  std::string venv = {};  // its `bin` goes before the PATH there; empty: none
  std::vector<std::string> argv = {};
  std::vector<std::string> set = {};    // NAME=value
  std::vector<std::string> unset = {};  // names
  bool has_script = false;              // becomes descriptor 3
  std::string script = {};
  bool tells = false;  // descriptor 3 is a pipe for what a session is told
  bool merge_streams = false;
  bool has_input = false;
  bool waited_for = false;  // `started` is wanted
  std::chrono::milliseconds timeout = no_limit;
  std::chrono::milliseconds kill_grace = std::chrono::milliseconds(0);

  std::string text() const;
  // False: it is not as text() makes it.
  bool read(std::string_view text);
};

class PlaceCommand;

// One connection to an agent, and the thread that serves it. What comes from there is hostile: all
// that is not as the table of frames has it ends the connection.
//
// The thread writes what comes into the commands' pipes and never waits for one of them: what does
// not fit stays in PlaceCommand::Flow::waiting, which is no more than the window. It reads the
// pipes of their input as far as the agent has given credit.
class PlaceLink {
 public:
  struct Wanted {
    std::string name = {};  // for messages
    ProcessOptions transport = ProcessOptions();
    std::string agent = {};  // a file that a shell there gets; empty: an agent is there
    std::chrono::milliseconds connect_timeout = {};
    std::chrono::milliseconds keep_alive = {};
    SandboxOptions sandbox = SandboxOptions();
    std::string workspace = {};  // that must be the same there; empty: any
    std::string ground = {};     // that and the roots, see ground_of(); empty: any
    // The workspace is only there, where the agent looks for virtual environments.
    bool is_remote = false;
    bool is_found = false;  // the ground is canonical
    Json copy = {};         // of a workspace that is copied, see copy_options(); or null
    std::string venv_path = {};
    bool auto_venv = false;
    // The agent gives up its capabilities, unless it keeps them, sees to HOME and USER, and reports
    // memory that ran out.
    bool in_container = false;
    bool keeps_capabilities = false;
    std::string user = {};  // UID:GID, or its name there, that commands become; empty: the agent's
    std::string gitconfig = {};                // the text of a .gitconfig, for a home that has none
    Function<void()> meanwhile = {};           // called once the transport has been started
    const Environment* environment = nullptr;  // of commands, whose HOME that is, where it has one
    bool whole_lines = false;                  // the transport holds back what ends in no newline
    Function<std::string()> account = {};      // see PlaceEngine::Way
  };

  // Returns when the agent has answered, and the workspace was found to be the same.
  static Expected<std::shared_ptr<PlaceLink>> open(const Wanted& wanted,
                                                   const std::optional<CancelToken>& cancel);
  explicit PlaceLink(const Wanted& wanted)
      : name_(wanted.name),
        keep_alive_(wanted.keep_alive),
        is_container_(wanted.in_container),
        account_(wanted.account),
        last_heard_(Clock::now()) {}
  PlaceLink(const PlaceLink&) = delete;
  PlaceLink& operator=(const PlaceLink&) = delete;
  // What runs there is killed.
  ~PlaceLink();

  const std::string& name() const { return name_; }
  const PlaceFacts& facts() const { return facts_; }
  // As the agent has found it, or says so.
  const std::string& ground() const { return ground_; }
  // Returns when it is known why, too.
  bool is_lost() const;
  // In UTF-8.
  std::string reason() const;

 private:
  friend class PlaceCommand;

  static void* thread_main(void* self);
  SharedError failure() const;
  Expected<void> greet(const Wanted& wanted, const std::optional<CancelToken>& cancel);
  Expected<void> wait_for_agent(const Wanted& wanted, const std::optional<CancelToken>& cancel,
                                bool to_greet);
  Expected<void> take_greeting(const Wanted& wanted, std::string_view nonce);
  bool pump(int cancel, Clock::time_point deadline);
  void receive();
  void take_bytes(std::string_view bytes);
  bool take_frame(const Frame& frame);
  bool take_stream(PlaceCommand& command, Channel channel, std::string_view bytes);
  bool take_end(PlaceCommand& command, std::string_view text);
  void read_input(PlaceCommand& command);
  void send(std::string_view frames);
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
  Carrier::Line line_ = {};
  bool lost_ = false;
  CancelToken settled_ = {};  // an event: all commands have been told so
  bool closing_ = false;
  bool has_left_ = false;    // the agent, which said so
  std::string reason_ = {};  // that it was lost
  Capture said_{4096};       // on standard error since it is open, and before the mark
  bool is_open_ = false;     // the greeting was accepted
  std::string unmarked_ = {};
  bool marked_ = false;
  std::string_view cargo_ = {};  // the agent, while nobody has asked for it
  std::size_t brought_ = 0;      // its size, when it was sent
  std::optional<Json> greeting_ = {};
  PlaceFrames reader_ = {};
  PlaceQueue queue_ = PlaceQueue();  // for the agent
  Clock::time_point last_heard_;
  Clock::time_point last_sent_ = {};
  std::uint32_t last_id_ = 0;
  std::map<std::uint32_t, PlaceCommand*> commands_ = {};
  std::set<std::uint32_t> forgotten_ = {};  // nobody waits for their end, which is still to come
};

// How an executor's commands are made for a place.
struct PlaceSettings {
  PlaceSettings(Environment variables, std::string shell_path, const Variables& set);
  Environment environment;
  std::string shell;
  bool sets_path;  // by the options: the place's own does not count
  bool sets_lang;
  const pid_t owner = ::getpid();  // whose connections are used by it alone
};

// One command there. The fields below belong to the link's mutex.
class PlaceCommand : public Carrier {
 public:
  // Nothing when the admission says why it cannot be.
  static Expected<std::optional<PlaceRequest>> request_for(const Command& command,
                                                           Executor::Admission& admission,
                                                           const PlaceSettings& settings);
  PlaceCommand(std::shared_ptr<PlaceLink> link, PlaceRequest request)
      : link_(std::move(link)), request_(std::move(request)) {}
  PlaceCommand(const PlaceCommand&) = delete;
  PlaceCommand& operator=(const PlaceCommand&) = delete;
  ~PlaceCommand() override;

  // What it wrote to its descriptor 3.
  const std::string& told() const { return told_; }

  bool launch(bool wait, const std::optional<CancelToken>& cancel, ProcessResult& failure) override;
  int exit_descriptor() const override { return -1; }  // the ends of its pipes tell
  UniqueFd take_out() override { return std::move(out_.reader); }
  UniqueFd take_err() override { return std::move(err_.reader); }
  UniqueFd take_input(std::string_view& given) override;
  int pid() const override { return pid_; }
  void take(Stream stream, std::string_view bytes,
            FunctionRef<void(std::string_view)> use) override;
  bool ended() const override;
  bool signal(int number) override;
  void kill() override { signal(SIGKILL); }
  std::chrono::milliseconds kill_time() const override { return std::chrono::milliseconds(2500); }
  std::optional<ProcessOptions> next_measure(const ProcessResult*) override { return {}; }
  void finish(ProcessResult& result) override;

 protected:
  // During launch(), under the mutex: until it has begun or ended.
  virtual void wait_for_start(std::unique_lock<std::mutex>& lock,
                              const std::optional<CancelToken>& cancel) {
    wait_for_start(lock, cancel, Clock::time_point::max());
  }
  void wait_for_start(std::unique_lock<std::mutex>& lock, const std::optional<CancelToken>& cancel,
                      Clock::time_point deadline) const;
  // Nothing more comes, and neither its end was told nor that of the agent.
  bool was_lost() const;
  bool has_started() const { return started_; }
  bool has_begun() const { return begun_.cancelled(); }  // or has ended

 private:
  friend class PlaceLink;

  // A stream on its way to its reader.
  struct Flow {
    UniqueFd reader = UniqueFd();
    UniqueFd writer = UniqueFd();
    PlaceQueue waiting = PlaceQueue();  // does not fit into the pipe
    PlaceWindow window = PlaceWindow();
    std::size_t untaken = 0;  // bytes that came and were not read
    void write(bool ended);
  };

  Flow& flow(Channel channel) { return channel == Channel::out ? out_ : err_; }
  void come_to_an_end();
  void tell_end(ProcessResult& result) const;

  const std::shared_ptr<PlaceLink> link_;
  PlaceRequest request_;
  Flow out_ = Flow();
  Flow err_ = Flow();
  UniqueFd input_writer_ = UniqueFd();
  UniqueFd input_reader_ = UniqueFd();
  std::string_view input_ = {};  // to be sent before what is in that
  std::size_t input_window_ = stream_window;
  std::uint32_t id_ = 0;
  bool running_ = false;  // `start` was sent, and no end has come
  bool started_ = false;
  CancelToken begun_ = {};  // an event: it has started, or never will
  bool lost_ = false;
  int pid_ = -1;
  std::string told_ = {};
  std::optional<ProcessResult> end_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
