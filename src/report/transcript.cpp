// --transcript: what happens, as Markdown.

#include "report/report_internal.hpp"

#include "audit/audit_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Of each stream; a command may have longest_audited_text.
constexpr std::size_t longest_shown_output = 2048;

// Adds a text in a fence that is longer than any run of backticks in it. Control characters are
// escaped, as the file may be read in a terminal.
void append_fenced(std::string& out, std::string_view language, std::string_view text) {
  std::size_t longest = 2;
  std::size_t run = 0;
  std::string body;
  std::size_t begin = 0;  // of what is not yet in the body
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : '\0';
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (at < text.size() && c != '\n' && c != '\t') continue;
    body += printable(text.substr(begin, at - begin));
    if (at < text.size()) body += c;
    begin = at + 1;
  }
  const std::string fence(longest + 1, '`');
  append_all(out, "\n%%\n%%%\n",
             {fence, language, body, ends_with(body, "\n"sv) || body.empty() ? "" : "\n", fence});
}

// Adds ", LABEL `TEXT`" unless the text is empty.
void append_named(std::string& out, const char* label, const std::string& text) {
  if (text.empty()) return;
  std::string shown = printable(text);
  std::replace(shown.begin(), shown.end(), '`', '\'');
  append_all(out, "%% `%`", {out.empty() ? "" : ", ", label, shown});
}

void append_output(std::string& out, const char* name, const std::string& text,
                   const OutputCounts& counts) {
  if (counts.total_bytes == 0) return;
  append_all(out, "\n%, % bytes:\n", {name, counts.total_bytes});
  append_fenced(out, "text"sv, head_and_tail(text, longest_shown_output, counts.total_bytes));
}

std::string in_markdown(const AuditRecord& record) {
  const Result& r = *record.result;
  const bool refused = r.outcome == Outcome::refused;
  std::string text = concat("\n## % %: %\n", {record.time, printable(record.caller.tool),
                                              refused ? concat("refused by %", {printable(r.rule)})
                                                      : printable(r.summary())});
  std::string caller;
  append_named(caller, "agent", record.agent_id);
  append_named(caller, "client", record.caller.client);
  append_named(caller, "session", record.caller.session_id);
  append_named(caller, "shell", record.caller.shell_id);
  append_named(caller, "in", r.work_dir);
  append_named(caller, "container", r.container);
  append_named(caller, "place", r.place);
  append_all(text, "\n%\n", {caller});
  append_fenced(text, "sh"sv, head_and_tail(r.command, longest_audited_text, 0));
  if (!record.code.empty())
    append_fenced(text, ""sv, head_and_tail(record.code, longest_audited_text, 0));
  if (!record.input.empty())
    append_fenced(text, "text"sv, head_and_tail(record.input, longest_audited_text, 0));
  if (!r.message.empty()) append_fenced(text, "text"sv, r.message);
  append_output(text, "stdout", r.out, r.out_counts);
  append_output(text, "stderr", r.err, r.err_counts);
  return text;
}

}  // namespace

inline namespace inner {

Expected<void> Transcript::open(const std::string& path) {
  path_ = path;
  file_.reset(above_standard_streams(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW,
      0600)));
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0)
    return system_error(errno, "transcript: %", {in_quotes(path)});
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))
    return make_error(ErrorCode::invalid_argument, "transcript: % is neither a file nor a device",
                      {in_quotes(path)});
  return {};
}

std::string Transcript::add(const AuditRecord& record) {
  const std::string text = in_markdown(record);
  const ssize_t written = write_to_file(file_.get(), text);
  if (written == static_cast<ssize_t>(text.size()) || failed_.exchange(true)) return {};
  return concat("the transcript % could not be written: %; its commands may be missing or cut",
                {in_quotes(path_), errno_text(written < 0 ? errno : ENOSPC)});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
