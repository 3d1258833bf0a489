// Asks the person at the client whether a command may run.
//
// A command is hostile: it may try to hide its end, or to look like a part of the question. So it
// is shown whole or not asked about; each line of it stands behind a mark and is broken where a
// client might wrap it; and what would not show, or would move other text, is spelled out:
//
//   Command:
//     | git commit -m 'x\u{202e}'
//     | git push

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "mcp/streams_internal.hpp"
#include "process/start_internal.hpp"
#include "regex/regex_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What a question may have: more is not read.
constexpr std::size_t longest_question = 8192;
constexpr int most_question_lines = 200;

// Pairs, first and last: controls, marks upon other characters, blanks that are no space, what
// changes the direction of text, and what shows nothing.
constexpr std::uint32_t unseen[] = {
    0,      0x1f,   0x7f,   0xa0,   0xad,    0xad,    0x300,   0x36f,   0x61c,   0x61c,
    0x115f, 0x1160, 0x1680, 0x1680, 0x17b4,  0x17b5,  0x180b,  0x180f,  0x2000,  0x200f,
    0x2028, 0x202f, 0x205f, 0x206f, 0x20d0,  0x20ff,  0x2800,  0x2800,  0x3000,  0x3000,
    0x3164, 0x3164, 0xe000, 0xf8ff, 0xfe00,  0xfe0f,  0xfe20,  0xfe2f,  0xfeff,  0xfeff,
    0xffa0, 0xffa0, 0xfff0, 0xffff, 0x1bca0, 0x1bca3, 0x1d173, 0x1d17a, 0xe0000, 0x10ffff};

// Takes the first character off well-formed text, as it is shown.
std::string take_visible(std::string_view& text) {
  const RegexChar c = regex_char_at(text, 0);
  std::string shown(text.substr(0, c.size));
  text.remove_prefix(c.size);
  bool is_unseen = false;
  for (std::size_t i = 0; i < std::size(unseen); i += 2)
    is_unseen = is_unseen || (c.code >= unseen[i] && c.code <= unseen[i + 1]);
  if (!is_unseen) return shown;
  char digits[16];
  std::snprintf(digits, sizeof digits, "\\u{%x}", static_cast<unsigned>(c.code));
  return digits;
}

// Adds a text of others. An empty one is left out.
void append_marked(std::string& question, std::string_view title, std::string_view text) {
  constexpr std::size_t longest_line = 100;
  if (text.empty()) return;
  append_all(question, "\n%:\n  | ", {title});
  const std::string whole = to_utf8(text.substr(0, longest_question));
  std::size_t column = 0;
  for (std::string_view rest = whole; !rest.empty();) {
    if (rest[0] == '\n') {
      question += "\n  | ";
      rest.remove_prefix(1);
      column = 0;
      continue;
    }
    if (column++ == longest_line) {
      question += "\n  + ";
      column = 1;
    }
    question += take_visible(rest);
  }
}

// Empty: it would be too long.
std::string question_of(const Approval& approval, const Executor* executor) {
  const Command& given = *approval.given;
  std::string variables;
  for (const auto& [name, value] : given.environment)
    append_all(variables, "%%=%", {variables.empty() ? "" : "\n", name, value});
  if (approval.command.size() + given.code.size() + given.input.size() + variables.size() >
      longest_question)
    return {};
  const auto masked = [&](const std::string& text) {
    return executor ? executor->redact(text) : text;
  };
  std::string question = "May this command run?";
  append_marked(question, "Command", approval.command);
  append_marked(question, "Code that it runs", masked(given.code));
  append_marked(question, "Its standard input", masked(given.input));
  append_marked(question, "With these variables", masked(variables));
  append_marked(question, "Folder", approval.work_dir);
  append_marked(question, "It runs these files, which can change; then it is asked again",
                masked(joined(approval.runs, "\n"sv)));
  append_marked(question, concat("Asked because of %", {approval.rule}), approval.message);
  question +=
      "\nonce: it runs now. session: it runs, and exactly the same is not asked again until the "
      "server ends. ";
  if (!approval.prefix.empty())
    append_all(question,
               "prefix: it runs, and in this folder no command that begins with `%` is asked about "
               "again for the same rule. ",
               {approval.prefix});
  question += "no: it does not run, and the model is told so.";
  const auto lines = std::count(question.begin(), question.end(), '\n');
  return question.size() > longest_question || lines > most_question_lines ? "" : question;
}

// Sends progress while a person is asked: a client that sees no progress would give up.
class SignsOfLife {
 public:
  explicit SignsOfLife(const mcp::Call& call) {
    if (!call.wants_progress()) return;
    const auto tell = [call, over = over_] {
      constexpr int interval = 2;
      for (int time = interval;
           !wait_for_event(over, {}, Clock::now() + std::chrono::seconds(interval));
           time += interval)
        call.progress(time, {}, "waiting for a person's approval");
    };
    has_thread_ = mcp::start_own_thread(thread_, tell) == 0;
  }
  SignsOfLife(const SignsOfLife&) = delete;
  SignsOfLife& operator=(const SignsOfLife&) = delete;
  ~SignsOfLife() {
    over_.cancel();
    if (has_thread_) ::pthread_join(thread_, nullptr);
  }

 private:
  const CancelToken over_ = {};
  pthread_t thread_ = {};
  bool has_thread_ = false;
};

}  // namespace

inline namespace inner {

void ask_client(const mcp::Call& call, Approval& approval, std::chrono::milliseconds timeout,
                const Executor* executor) {
  const auto no = [&approval](std::string problem) { approval.problem = std::move(problem); };
  const std::string question = question_of(approval, executor);
  if (question.empty())
    return no(
        concat("a question of more than % bytes or % lines is not asked: give what needs it "
               "as a short command of its own",
               {longest_question, most_question_lines}));
  Json choices = Json::array({"once", "session"});
  if (!approval.prefix.empty()) choices.push_back("prefix");
  choices.push_back("no");
  const Json schema = Json::object(
      {{"type", "object"},
       {"properties",
        Json::object({{"answer", Json::object({{"type", "string"}, {"enum", choices}})}})},
       {"required", Json::array({"answer"})}});
  const SignsOfLife signs(call);
  const Expected<Json> reply = call.elicit(question, schema, timeout);
  if (!reply && reply.error().code == ErrorCode::unsupported)
    return no("this client cannot ask its user");
  approval.asked = concat("the user of %", {call.client().empty() ? "the client" : call.client()});
  if (!reply && reply.error().system_error == ETIMEDOUT)
    return no(concat("nobody answered within %", {count_of_seconds(timeout)}));
  if (!reply) return no(concat("asking failed (%)", {reply.error().message}));
  const std::string& action = (*reply)["action"sv].as_string();
  const std::string& text = (*reply)["content"sv]["answer"sv].as_string();
  if (action == "cancel") return no("the question was closed without an answer");
  // A client without a person at it declines by itself.
  if (action == "decline") return no("the client declined, for its user or by itself");
  if (text == "no") return;
  approval.for_session = text == "session";
  approval.for_prefix = text == "prefix" && !approval.prefix.empty();
  approval.allowed =
      action == "accept" && (text == "once" || approval.for_session || approval.for_prefix);
  if (!approval.allowed) no("the client's answer was none of once, session and no");
}

// A call that waits for a person holds a thread of the server, as one that waits for a shell does.
void let_ask(ToolSet& set, Command& command, const mcp::Call& call) {
  command.on_ask = [&set, call](Approval& approval) {
    const Clock::time_point begin = Clock::now();
    if (set.waiters.fetch_add(1) < set.options.max_waiters)
      ask_client(call, approval, set.options.ask_timeout, &set.executor);
    else
      approval.problem = "as many calls wait already as may: try again later";
    --set.waiters;
    set.use->give_back(Clock::now() - begin);
  };
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
