// What the tools share: results, errors, sessions, their handlers.
#pragma once

#include "tools/tools.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "code/code.hpp"
#include "executor/executor.hpp"
#include "files/files.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "shells/shells.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// How long get_background_shell_output waits when it is not told.
inline constexpr std::chrono::milliseconds usual_wait = std::chrono::seconds(30);
inline constexpr std::chrono::milliseconds longest_wait = std::chrono::hours(1);

// A configuration file is read whole; nobody needs a longer one.
inline constexpr std::size_t longest_config = std::size_t{1} << 20;

int json_exit_code(const Result& result);

// What the caller must read besides the program's own words, or nothing.
std::string closing_message(const Result& result);

Json execution_schema();

struct ToolSet;

// What stands in a reply at most of what the client has given, unless it wants full results.
inline constexpr std::size_t longest_echo = 200;

// Bytes that a text takes in a reply, which holds it twice: in the object, escaped once, and in the
// text block, escaped once more. Follows the escapes of Json::dump().
std::size_t bytes_in_reply(std::string_view text);

// Shortens the longest of the texts until all of them fit into `room` bytes of a reply, or none has
// more than longest_echo bytes, and tells of each cut. Each step halves the text it shortens, hence
// all of them together cost no more than a few times the first.
void shorten(const std::vector<std::string*>& texts, std::size_t room,
             FunctionRef<void(const std::string&, std::size_t omitted)> cut);

// Leaves `most` bytes of a longer text, its head and its tail, and a line that says why. How many
// bytes were left out.
std::size_t cut_middle(std::string& text, std::size_t most, std::string_view why);

// What is left for long texts in a reply of so many bytes.
std::size_t room_for_texts(std::size_t max_bytes);

// What a terminal would show of a text: `\r` and backspaces applied within their lines, without
// escape sequences. Linear; takes four bytes for each of the longest such line.
std::string as_on_terminal(std::string_view text);

// Bytes of an escape sequence at the end of a text whose rest has not come yet.
std::size_t unfinished_escape(std::string_view text);

// The streams as a model gets them. Secrets that come together by that are masked, where there is
// an executor.
void show_as_on_terminal(Result& result, const Executor* executor = nullptr);

// Adds to a note which tool does what the command could not.
void name_tool(const ToolOptions& options, Result& result);

// A result as a model gets it: see ToolOptions::full_results. First cuts from `result` what is not
// told, so that the texts fit into `room` bytes of a reply.
Json result_json(const ToolOptions& options, Result& result, std::size_t room);

// A command, path or argument as it is told to the one who gave it.
std::string echoed(const ToolOptions& options, const std::string& text);

// A failure that no command has caused, and the rule of a refusal.
mcp::ToolReply failed(std::string_view message, std::string_view rule = {});

// The same of what the executor's secrets may be in.
mcp::ToolReply failed_here(const ToolSet& set, const Error& error);

// An answer that is an object.
mcp::ToolReply answer_with(Json&& object);

// An argument that is a text, or an empty one.
const std::string& argument_text(const mcp::Call& call, const char* name);

// Anything above a thousand years is as good as that, and still fits the clock.
std::chrono::milliseconds milliseconds_of(const Json& seconds);

// Whole numbers from 0 that the schema has let pass.
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
  // Instead of the text in `object`; bytes that are not in it are told as truncated.
  void put(Json& object, const Result& result) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_member(object, "stdout", to_base64(out_));
    set_member(object, "stderr", to_base64(err_));
    set_cut(object, "stdout_truncated", "stdout_bytes", result.out_counts.total_bytes, out_.size());
    set_cut(object, "stderr_truncated", "stderr_bytes", result.err_counts.total_bytes, err_.size());
    set_member(object, "encoding", "base64");
  }

 private:
  static void set_cut(Json& object, const char* truncated, const char* bytes, std::uint64_t total,
                      std::uint64_t kept) {
    const bool cut = total > kept;
    if (cut || object.find(truncated)) set_member(object, truncated, cut);
    if (cut) set_member(object, bytes, total);
  }

  const std::size_t max_bytes_;
  mutable std::mutex mutex_ = {};
  std::string out_ = {};
  std::string err_ = {};
};

// Counts what FairUse bounds. All members are safe from any thread.
class UseCounter {
 public:
  explicit UseCounter(const FairUse& bounds) : bounds_(bounds) {}

  // Counts a call. Its refusal, or an empty text.
  std::string refusal_of_call(const std::string& tool);

  // What commands may still take, in all; zero or less: nothing.
  std::chrono::milliseconds time_left() const;
  std::string refusal_of_command() const;
  // Counts the time of a command from now on, until what is returned is called for the first time.
  static Function<void()> begin(const std::shared_ptr<UseCounter>& counter);

 private:
  static constexpr std::chrono::seconds window{60};

  std::chrono::milliseconds time_used(Clock::time_point now) const;
  void end(Clock::time_point begin);

  const FairUse bounds_;
  mutable std::mutex mutex_ = {};
  // Of each tool those of the last minute, the oldest first.
  std::vector<std::pair<std::string, std::vector<Clock::time_point>>> calls_ = {};
  int running_ = 0;
  Clock::duration starts_{0};  // the sum of when those that run began
  Clock::duration finished_{0};
};

// The sessions of a server by their names, the one that was used last at the end.
class SessionTable {
 public:
  Session of(const std::string& id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto found = find_where(sessions_, [&](const auto& known) { return known.first == id; });
    if (found == sessions_.end()) {
      if (sessions_.size() == max_sessions) sessions_.erase(sessions_.begin());
      found = sessions_.emplace(sessions_.end(), id, Session());
    }
    std::rotate(found, found + 1, sessions_.end());
    return sessions_.back().second;
  }

 private:
  static constexpr std::size_t max_sessions = 100;
  std::mutex mutex_ = {};
  std::vector<std::pair<std::string, Session>> sessions_ = {};
};

bool is_session_id(std::string_view id);

// What the handlers of one server share.
struct ToolSet {
  ToolSet(const Executor& where, const ToolOptions& how)
      : executor(where),
        options(how),
        files(where.files()),
        use(new_shared<UseCounter>(how.fair_use)),
        shells(where, how.shells) {}

  const Executor& executor;
  const ToolOptions options;
  const Files files;
  const std::shared_ptr<UseCounter> use;
  std::atomic<std::size_t> waiters{0};
  SessionTable sessions = {};
  BackgroundShells shells;
};

bool is_disabled(const ToolOptions& options, std::string_view tool);

// Of a call that exceeds a bound of FairUse; on the audit log like any other refusal.
Result refused_result(const ToolSet& set, const mcp::Call& call, const char* bound,
                      std::string message);

mcp::ToolReply refuse(const ToolSet& set, const mcp::Call& call, const char* bound,
                      std::string message);

// A command of nothing but blanks.
bool is_empty_script(const std::string& script);

// A name, too, may have a secret in it.
std::string shown_path(const ToolSet& set, const std::string& path);

// Bounds the command by what is left of the running time and counts it. False: there is nothing
// left. `ended` is to be called when it has ended, or did not start.
bool count_time(const ToolSet& set, Command& command, Function<void()>& ended);

// Bytes of each stream in the answer: those that the call asks for, as far as the operator allows.
std::size_t wanted_output(const ToolSet& set, const mcp::Call& call);

// Cuts one stream down to that; 0: it was not longer.
std::size_t cut_output(std::string& text, std::size_t most);

// What to say of a stream that is not all there. `file` may be empty.
std::string note_of_rest(const ToolOptions& options, Stream stream, std::uint64_t total,
                         const std::string& file, std::uint64_t file_bytes);

// Both streams of a result, with a note for each that is not all there.
void fit_output(const ToolOptions& options, std::size_t most, Result& result);

Command command_of(const mcp::Call& call, const char* argument);

// Sends what the command prints to a client that wants it, and to `raw`, when given.
void listen(Command& command, const mcp::Call& call, const std::shared_ptr<RawOutput>& raw);

mcp::ToolReply execute_command(ToolSet& set, const mcp::Call& call);

mcp::ToolReply start_background_shell(ToolSet& set, const mcp::Call& call);

mcp::ToolReply get_background_shell_output(ToolSet& set, const mcp::Call& call);

mcp::ToolReply get_background_shell_status(ToolSet& set, const mcp::Call& call);

mcp::ToolReply list_background_shells(ToolSet& set, const mcp::Call& call);

mcp::ToolReply write_background_shell(ToolSet& set, const mcp::Call& call);

mcp::ToolReply kill_background_shell(ToolSet& set, const mcp::Call& call);

mcp::ToolReply execute_code(ToolSet& set, const mcp::Call& call);

mcp::ToolReply read_file(ToolSet& set, const mcp::Call& call);

mcp::ToolReply write_file(ToolSet& set, const mcp::Call& call);

mcp::ToolReply list_files(ToolSet& set, const mcp::Call& call);

mcp::ToolReply read_docstring(ToolSet& set, const mcp::Call& call);

// The value of a key in the lines between two `---` at the start of a text.
std::string_view front_matter(std::string_view text, std::string_view key);

// " name (description), ..." of the folders that have a SKILL.md.
std::string list_skills(const std::string& folder);

// Adds a parameter that may be left out; it stays where it is until the next one.
mcp::Parameter& add_parameter(mcp::Tool& tool, const char* name, mcp::ParameterType type,
                              std::string_view description);

// A text that may not be left out.
void required(mcp::Tool& tool, const char* name, std::string_view description);

mcp::Parameter& count(mcp::Tool& tool, const char* name, std::string_view description);

void seconds(mcp::Tool& tool, const char* name, std::string_view description);

// What a tool may do to the world, for the client's questions to its user.
enum class Effect { reads, writes_files, runs };

mcp::Tool make_tool(const char* name, const char* title, Effect effect,
                    std::string_view description);

Expected<void> check_disabled(const Executor& executor, const ToolOptions& options);

bool print(const std::string& text);

int fail(int status, const std::string& message);

int check(const Executor& executor, const std::string& script);

// The exit status of --verify-audit: 1 for a file with a line that is not as it was written.
int verify_audit(const std::string& path);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
