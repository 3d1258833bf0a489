// The parts that the tools share: results, errors, sessions, and the declarations of their
// handlers.
//
// The way of a call of a tool:
//
//   mcp::Server -> handler (one of ToolSet's, below) -> Executor or BackgroundShells or Files
//                    |                                        |
//                    |  command_of(), listen()                |  Result
//                    v                                        v
//               exceeds a bound: refuse()         show_as_on_terminal(): as a terminal shows it
//                                                 fit_output():  at most max_output of both streams
//                                                 result_json(): at most the room of one reply
//                                                 as_read():     and the lines that models read
#pragma once

#include "tools/tools.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "code/code.hpp"
#include "executor/executor.hpp"
#include "files/files.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "terminal/terminal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// How long get_background_shell_output waits by default.
inline constexpr std::chrono::milliseconds usual_wait = std::chrono::seconds(30);
inline constexpr std::chrono::milliseconds longest_wait = std::chrono::hours(1);

// The most bytes of a configuration file, which is read whole.
inline constexpr std::size_t longest_config = std::size_t{1} << 20;

// The key exit_code; see to_json(Result).
int json_exit_code(const Result& result);

// The message that stderr ends with: of a timeout, a refusal or a failed start. Else empty.
std::string closing_message(const Result& result);

// The output schema of execute_command.
Json execution_schema();

struct ToolSet;

// A reply repeats at most so many bytes of a text that the client has sent, unless full_results.
inline constexpr std::size_t longest_echo = 200;

// What the byte at `at` of a text takes in JSON, by the escapes of Json::dump().
std::size_t bytes_in_json(std::string_view text, std::size_t at);

// Shortens the longest of the texts until all of them fit into `room` bytes of a reply, or none has
// more than longest_echo bytes. Calls `cut` for each cut. Each step halves the text it shortens, so
// that all of them together cost no more than a few times the first.
void shorten(std::initializer_list<std::string*> texts, std::size_t room,
             FunctionRef<void(const std::string&, std::size_t omitted)> cut);

// The room for long texts in a reply of so many bytes.
std::size_t room_for_texts(std::size_t max_bytes);

// A text as a terminal shows it: `\r` and backspaces applied within their lines, without
// escape sequences. Linear; takes four bytes for each of the longest such line.
std::string as_on_terminal(std::string_view text);

// Bytes of an escape sequence at the end of a text whose rest has not come yet.
std::size_t unfinished_escape(std::string_view text);

// Both streams as a terminal shows them, which is what a model can use. Full results are for
// programs, and keep every character. A secret may come together only by this, and is then masked
// by the executor.
void show_as_on_terminal(const ToolOptions& options, Result& result,
                         const Executor* executor = nullptr, std::string_view how_to_see = {});

// Puts a line in place of a text of which a fifth is no text; it says what it is, how long and how
// it can be seen. False: it is text.
bool summarize_binary(std::string& text, OutputCounts& counts, std::string_view how_to_see);

// A result with its text: lines, see readable.cpp, or as JSON. An image is its own.
mcp::ToolResult as_read(bool as_json, mcp::ToolResult result);

// Adds the name of the right tool to a note about processes that were left behind.
void name_tool(const ToolOptions& options, Result& result);

// Adds a note on what the caller can do after a result that is no success, or looks like one and is
// none. Called before the output is cut.
void add_next_step(const ToolSet& set, const Command& command, Result& result);

// What a plain sh reads otherwise than bash does, with no error that must follow: the first such
// command of a script, as far as one line shows it; else empty.
std::string bash_idiom_in(std::string_view script);

// A result as a model gets it: see ToolOptions::full_results. First cuts the texts of `result`, so
// that they fit into `room` bytes of a reply. With `is_running` it has no exit code.
Json result_json(const ToolOptions& options, Result& result, std::size_t room,
                 bool is_running = false);

// A command, path or argument of the client, as a reply repeats it.
std::string echoed(const ToolOptions& options, const std::string& text);

// The reply of a failure that no command has caused. `rule` is that of a refusal.
mcp::ToolResult failed(std::string_view message, std::string_view rule = {});

// The same, for a message in which secrets of the executor must be masked.
mcp::ToolResult failed_here(const ToolSet& set, const Error& error);

// The reply of a success.
mcp::ToolResult answer_with(Json&& object);

// A text argument; empty when it was left out.
const std::string& argument_text(const mcp::Call& call, const char* name);

// Seconds of an argument. A thousand years at most, which still fits the clock.
std::chrono::milliseconds milliseconds_of(const Json& seconds);

// A whole number of an argument, which the schema has checked to be 0 or more.
std::uint64_t count_of(const Json& number);

// The first bytes of both streams as they are, for an answer in base64.
class RawOutput {
 public:
  explicit RawOutput(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  void add(Stream stream, std::string_view bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string& text = stream == Stream::out ? out_ : err_;
    text.append(bytes.substr(0, max_bytes_ - text.size()));
  }
  // Leaves of both what takes so many bytes in base64, and takes the texts out of the result, whose
  // counts then are those of these bytes.
  void fit(std::size_t room, Result& result);
  // Puts both into the object that is made of the result.
  void put(Json& object) const;

 private:
  const std::size_t max_bytes_;
  mutable std::mutex mutex_ = {};
  std::string out_ = {};
  std::string err_ = {};
};

// Counts what calls_per_minute and running_time bound. All members are safe from any thread.
class UseCounter {
 public:
  explicit UseCounter(const ToolOptions& options)
      : calls_per_minute_(options.calls_per_minute), running_time_(options.running_time) {}

  // Counts a call. Its refusal, or an empty text.
  std::string refusal_of_call(const std::string& tool);

  // What commands may still take, in all; zero or less: nothing.
  std::chrono::milliseconds time_left() const;
  std::string refusal_of_command() const;
  // Takes back time in which a command waited for a person.
  void give_back(Clock::duration time) {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_ -= time;
  }
  // Counts the time of a command from now on, until what is returned is called for the first time.
  static Function<void()> begin(const std::shared_ptr<UseCounter>& counter);

 private:
  static constexpr std::chrono::seconds window{60};

  std::chrono::milliseconds time_used(Clock::time_point now) const;
  void end(Clock::time_point begin);

  const std::uint64_t calls_per_minute_;
  const std::chrono::milliseconds running_time_;
  mutable std::mutex mutex_ = {};
  // Of each tool those of the last minute, the oldest first.
  std::vector<std::pair<std::string, std::vector<Clock::time_point>>> calls_ = {};
  int running_ = 0;
  Clock::duration starts_{0};  // the sum of when those that run began
  Clock::duration finished_{0};
};

// The sessions of a server by their names, the one that was used last at the end. A session is a
// handle, whose copies are about the same.
template <class Handle>
class SessionTable {
 public:
  Handle of(const std::string& id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto found = find_where(sessions_, [&](const auto& known) { return known.first == id; });
    if (found == sessions_.end()) {
      if (sessions_.size() == max_sessions) sessions_.erase(sessions_.begin());
      found = sessions_.emplace(sessions_.end(), id, Handle());
    }
    std::rotate(found, found + 1, sessions_.end());
    return sessions_.back().second;
  }

 private:
  static constexpr std::size_t max_sessions = 100;
  std::mutex mutex_ = {};
  std::vector<std::pair<std::string, Handle>> sessions_ = {};
};

// A session whose commands run in a terminal: see live.cpp. When its handle goes, the command is
// still a background shell.
class LiveSession {
 public:
  struct State {
    std::string shell_id = {};  // of the command that runs; empty: none does
    std::uint64_t next = 0;     // the offset of what it prints next
  };
  struct Shared {
    std::mutex mutex = {};  // held for the time of a call
    State state = {};
  };
  Shared* operator->() const { return shared_.get(); }

 private:
  std::shared_ptr<Shared> shared_ = new_shared<Shared>();
};

// 1 to 64 of A-Z a-z 0-9 . _ -
bool is_session_id(std::string_view id);

using ExecutorPointer = std::shared_ptr<const Executor>;

// What the handlers of one server share, whichever executor runs their commands.
struct SharedTools {
  SharedTools(ExecutorPointer first, const ToolOptions& how)
      : executor(std::move(first)),
        options(how),
        use(new_shared<UseCounter>(how)),
        jobs(*executor, how.jobs) {}

  const ExecutorPointer executor;  // that there was at the start
  const ToolOptions options;
  const std::shared_ptr<UseCounter> use;
  std::atomic<std::size_t> waiters{0};
  SessionTable<Session> sessions = {};
  SessionTable<LiveSession> live_sessions = {};
  Jobs jobs;
};

// What the model hears of the place of its commands, beside their results.
struct PlaceNotes {
  std::string standing = {};           // with each command, and each failure of a file tool
  std::vector<std::string> news = {};  // with the first command
};

// The state that handlers have of one executor: a server has one for each set of roots that its
// client has named. Handlers run in several threads.
struct ToolSet {
  ToolSet(std::shared_ptr<SharedTools> all, ExecutorPointer where, PlaceNotes notes = {})
      : shared(std::move(all)),
        owner(std::move(where)),
        executor(*owner),
        files(executor.files()),
        notes_(std::move(notes)) {}

  // Adds to the notes of a result those that it is to have.
  void tell(std::vector<std::string>& notes);
  // For the next result.
  void add_news(std::string note) {
    const std::lock_guard<std::mutex> lock(mutex_);
    notes_.news.push_back(std::move(note));
  }
  const std::string& standing_note() const { return notes_.standing; }

  const std::shared_ptr<SharedTools> shared;
  const ExecutorPointer owner;
  const Executor& executor;
  const Files files;
  const ToolOptions& options = shared->options;
  const std::shared_ptr<UseCounter>& use = shared->use;
  std::atomic<std::size_t>& waiters = shared->waiters;
  SessionTable<Session>& sessions = shared->sessions;
  Jobs& jobs = shared->jobs;

 private:
  std::mutex mutex_ = {};
  PlaceNotes notes_;
};

// Chooses the tools of a call. `in_folder`: the call is about files or starts a command, so that
// the roots of its client count, and are waited for. Null: the call was cancelled meanwhile.
using ToolChoice = Function<std::shared_ptr<ToolSet>(const mcp::Call&, bool in_folder)>;

// Adds the tools; their texts are those for `executor`.
Expected<void> add_chosen_tools(mcp::Server& server, const Executor& executor,
                                const ToolOptions& options, ToolChoice choose);

// Keeps the executor for as long as the command may run, and calls `ended` at its end.
Function<void(const Result&)> keep_executor(const ToolSet& set, Function<void()> ended);

// Takes the session of a command out of a folder in which no command may start any more, unless the
// call names a folder. Returns a note on that, or an empty text.
std::string leave_closed_folder(const ToolSet& set, Command& command);

bool is_disabled(const ToolOptions& options, std::string_view tool);

// Of a call that exceeds such a bound; on the audit log like any other refusal.
Result refused_result(const ToolSet& set, const mcp::Call& call, const char* bound,
                      std::string message);

mcp::ToolResult refuse(const ToolSet& set, const mcp::Call& call, const char* bound,
                       std::string message);

// True for a script of blanks only.
bool is_empty_script(const std::string& script);

// The size of a terminal that a call asks for: what it does not say is as in `otherwise`. The
// terminal checks it.
TerminalSize size_asked(const mcp::Call& call, TerminalSize otherwise);

// How long this call may take before it is answered; no_limit: as long as it likes.
std::chrono::milliseconds time_to_answer(const ToolSet& set, const mcp::Call& call);

// Runs a command that goes on in the background when it runs for longer than `foreground`, or than
// the client waits: it then has an id, and its end is announced. Else `ended` was called.
JobStatus run_for_call(ToolSet& set, const mcp::Call& call, Command& command,
                       std::chrono::milliseconds foreground, Function<void()>& ended);

// What there is of a command that goes on in the background, cut to `most` bytes of each stream,
// with a note on what can be done with it.
Result output_so_far(ToolSet& set, const JobStatus& job, std::size_t most, RawOutput* raw);

// A path with the secrets of the executor masked: a name may have one in it.
std::string shown_path(const ToolSet& set, const std::string& path);

// Bounds the command by what is left of the running time and counts it. False: there is nothing
// left. `ended` is to be called when it has ended, or did not start.
bool count_time(const ToolSet& set, Command& command, Function<void()>& ended);

// URIs of background shells are this and the shell_id.
inline constexpr const char* shell_uris = "codeexec://shell/";

// Announces the end of a background shell to clients that listen. The end calls `ended`, which this
// changes; the id is known to the function that is returned. The later of the two announces.
Function<void(const std::string&)> announce_end(const mcp::Call& call, Function<void()>& ended);

// The bytes of both streams in the answer: as the call asks, and at most as the operator allows.
std::size_t wanted_output(const ToolSet& set, const mcp::Call& call);

// Has so much kept of each stream of a command, and the whole in a file if it may be cut.
void bound_output(Command& command, std::size_t most);

// Cuts a text of an ended command that is far longer than so many bytes to these, from both of its
// ends, and counts what is dropped.
void keep_ends(std::size_t most, std::string& text, OutputCounts& counts);

// Cuts both streams to so many bytes together, and adds to `dropped` what it took out of each.
void cut_streams(std::string& out, std::string& err, std::size_t room, std::uint64_t (&dropped)[2]);

// What both streams begin with in an answer of so many bytes.
std::pair<std::string_view, std::string_view> first_of_streams(std::string_view out,
                                                               std::string_view err,
                                                               std::size_t room);

// The same of what they end with.
std::pair<std::string_view, std::string_view> last_of_streams(std::string_view out,
                                                              std::string_view err,
                                                              std::size_t room);

// The note for a stream that is not complete. `file` is empty when there is no file of it.
std::string note_of_rest(const ToolOptions& options, Stream stream, std::uint64_t total,
                         const std::string& file, std::uint64_t file_bytes);

// Adds a note for each stream of a result that is not complete, and removes the file of one that
// is, unless it still grows.
void note_rest(const ToolOptions& options, Result& result, bool is_running);

// Cuts both streams of a result so that it takes `most` bytes.
void cut_result(const ToolOptions& options, std::size_t most, Result& result);
// The same, with such notes.
void fit_output(const ToolOptions& options, std::size_t most, Result& result, bool is_running);

// The command of a call: its script from that argument (empty: none), work_dir, timeout, and the
// client for the audit log.
Command command_of(const mcp::Call& call, const char* argument);

// Sends the output to a client that wants progress, and to `raw` if it is given.
// Masks the secrets of the executor in what a terminal's signs put together.
void listen(Command& command, const mcp::Call& call, const std::shared_ptr<RawOutput>& raw,
            const Executor* executor = nullptr);

// Asks the person at the client whether the command may run, and waits for the answer. Masks the
// secrets of the executor.
void ask_client(const mcp::Call& call, Approval& approval, std::chrono::milliseconds timeout,
                const Executor* executor = nullptr);
// Has the command ask so.
void let_ask(ToolSet& set, Command& command, const mcp::Call& call);

// Starts a background command, and counts its time. `failure` gets the result of one that did not
// start.
Expected<JobStatus> start_job(ToolSet& set, const mcp::Call& call, Command& command,
                              Result& failure);

// Adds the session of a command to its result.
void put_session(const ToolSet& set, const Command& command, const Json& id, Json& object);

// execute_command with session_live.
mcp::ToolResult execute_live(ToolSet& set, const mcp::Call& call);

// The tools of the same names.
mcp::ToolResult execute_command(ToolSet& set, const mcp::Call& call);
mcp::ToolResult start_background_shell(ToolSet& set, const mcp::Call& call);
mcp::ToolResult get_background_shell_output(ToolSet& set, const mcp::Call& call);
mcp::ToolResult get_background_shell_status(ToolSet& set, const mcp::Call& call);
mcp::ToolResult list_background_shells(ToolSet& set, const mcp::Call& call);
mcp::ToolResult write_background_shell(ToolSet& set, const mcp::Call& call);
mcp::ToolResult kill_background_shell(ToolSet& set, const mcp::Call& call);
mcp::ToolResult execute_code(ToolSet& set, const mcp::Call& call);
mcp::ToolResult read_file(ToolSet& set, const mcp::Call& call);
mcp::ToolResult write_file(ToolSet& set, const mcp::Call& call);
mcp::ToolResult edit_file(ToolSet& set, const mcp::Call& call);
mcp::ToolResult list_files(ToolSet& set, const mcp::Call& call);
mcp::ToolResult search_files(ToolSet& set, const mcp::Call& call);
mcp::ToolResult read_docstring(ToolSet& set, const mcp::Call& call);

// Adds a sentence to a description.
void say(std::string& text, const char* sentence, Pieces values = {});

// Disables all tools but this one.
void disable_other_tools(ToolOptions& options, std::string_view tool);

// Fails if ToolOptions::disabled_tools names a tool that there is not.
Expected<void> check_disabled(const ToolOptions& options);

// Writes to standard output. False: that has failed.
bool print(const std::string& text);

// Writes a line to standard error. Returns the status.
int fail(int status, const std::string& message);

// Prints the answer to an option. Returns `status`, or 1 after a message if it cannot be written.
int print_answer(const std::string& text, int status = 0);

// The exit status of --check: judges a script, or each line of standard input for "-".
int check(const Executor& executor, const std::string& script);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
