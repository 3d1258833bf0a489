// --replay: runs the commands of an audit log again, and compares what they do.
//
// Of each record that is a command which ran:
//
//   reason_to_skip()  --> counted, with its reason
//   command_again()   --> Executor::run() --> to_json(AuditRecord), as the log would have it
//                                                |
//   the log's record ----------------------------+--> difference_of(), a line for each command
//
// Policy, sandbox and limits are those of this server's options.

#include "program/program_internal.hpp"

#include "audit/audit.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "report/report_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Why a record is not run again.
enum class Skip { none, refused, unfinished, no_command, cut, input, secret, elsewhere };
constexpr const char* skip_texts[] = {"",
                                      "refused",
                                      "did not run to an end",
                                      "no command line",
                                      "cut in the log",
                                      "its input is not in the log",
                                      "a secret in it is masked",
                                      "its folder is not below that of the first command"};

Skip reason_to_skip(const Json& record) {
  const std::string& outcome = record["outcome"sv].as_string();
  if (outcome == "refused" || !record["allowed"sv].as_bool()) return Skip::refused;
  static constexpr auto endings = NameSet{"exited", "signaled", "timed_out"};
  static constexpr auto tools =
      NameSet{"execute_code", "execute_command", "run", "start_background_shell"};
  if (!endings.has(outcome)) return Skip::unfinished;
  if (!tools.has(record["tool"sv].as_string()) || record.find("code"sv)) return Skip::no_command;
  if (record.find("command_bytes"sv)) return Skip::cut;
  if (record.find("input_bytes"sv)) return Skip::input;
  if (record["command"sv].as_string().find(Redactor::mask) != std::string::npos)
    return Skip::secret;
  return Skip::none;
}

// Runs records again, and keeps count.
class Replay {
 public:
  Replay(const Executor& executor, bool as_json, const CancelToken& stop)
      : executor_(executor), as_json_(as_json), stop_(stop) {}

  // False when the answer cannot be written.
  bool run(const Json& record, std::uint64_t line) {
    if (const Skip reason = reason_to_skip(record); reason != Skip::none) {
      ++skipped_[static_cast<int>(reason)];
      return true;
    }
    Command command = command_again(record);
    if (command.work_dir.empty()) {
      ++skipped_[static_cast<int>(Skip::elsewhere)];
      return true;
    }
    const Result result = executor_.run(command);
    if (stop_.cancelled()) return true;
    AuditRecord again;
    again.result = &result;
    ++ran_;
    const Json difference = difference_of(record, to_json(again));
    if (difference.size() == 0) return true;
    ++different_;
    return print(as_json_ ? as_object(record, line, difference, result)
                          : as_text(record, line, difference, result));
  }

  // The last line, and the exit status.
  int finish(bool is_whole) {
    const bool stopped = stop_.cancelled();
    Json skipped = Json::object();
    std::string reasons;
    for (std::size_t i = 0; i < std::size(skip_texts); ++i) {
      if (skipped_[i] == 0) continue;
      set_member(skipped, skip_texts[i], static_cast<unsigned long long>(skipped_[i]));
      append_all(reasons, "; % skipped: %", {skipped_[i], skip_texts[i]});
    }
    Json object = Json::object();
    set_member(object, "ran", static_cast<unsigned long long>(ran_));
    set_member(object, "different", static_cast<unsigned long long>(different_));
    set_member(object, "skipped", std::move(skipped));
    if (stopped) set_member(object, "stopped", true);
    const std::string text =
        concat("% commands ran again, % of them differently%%\n",
               {ran_, different_, reasons, stopped ? "; stopped before the end" : ""});
    return print_answer(as_json_ ? object.dump() + "\n" : text,
                        different_ == 0 && is_whole && !stopped ? 0 : 1);
  }

 private:
  // The folder of the first command stands for the workspace: folders below it are taken below the
  // workspace of this server. Empty for all others: these may be what the copy is to keep as it is.
  std::string folder_again(const std::string& recorded) {
    if (base_.empty()) base_ = recorded;
    if (!codeexec::is_within(recorded, base_) || recorded.find("/..") != std::string::npos)
      return {};
    return executor_.workspace() + recorded.substr(base_ == "/" ? 0 : base_.size());
  }

  Command command_again(const Json& record) {
    Command command = Command::shell(record["command"sv].as_string());
    command.work_dir = folder_again(record["work_dir"sv].as_string());
    // The log does not say which time the command was given, but that it needed this one.
    const double needed = 2 * record["duration_ms"sv].as_number();
    if (needed > static_cast<double>(executor_.options().timeout.count()) &&
        record["outcome"sv].as_string() == "exited")
      command.timeout = std::chrono::milliseconds(static_cast<long long>(std::min(needed, 1e12)));
    command.cancel = stop_;
    command.caller.tool = "replay";
    if (const std::string& id = record["session_id"sv].as_string(); !id.empty())
      command.session = sessions_.of(
          concat("% % %", {record["host"sv].as_string(), record["pid"sv].as_integer(), id}));
    return command;
  }

  // {"MEMBER":[recorded, now]} for each that the record has and that differs. Hashes are compared
  // where the lengths are equal.
  static Json difference_of(const Json& recorded, const Json& now) {
    Json difference = Json::object();
    const auto differs = [&](const char* name) {
      const Json* const before = recorded.find(name);
      if (!before || *before == now[name]) return false;
      Json both = Json::array();
      both.push_back(*before).push_back(now[name]);
      set_member(difference, name, std::move(both));
      return true;
    };
    if (differs("outcome")) return difference;
    differs("exit_code");
    differs("signal");
    if (!differs("stdout_bytes")) differs("stdout_sha256");
    if (!differs("stderr_bytes")) differs("stderr_sha256");
    return difference;
  }

  static std::string as_object(const Json& record, std::uint64_t line, const Json& difference,
                               const Result& result) {
    Json object = Json::object();
    set_member(object, "line", static_cast<unsigned long long>(line));
    set_member(object, "command", record["command"sv]);
    set_member(object, "difference", difference);
    if (!result.rule.empty()) set_member(object, "rule", result.rule);
    if (!result.message.empty()) set_member(object, "message", result.message);
    return object.dump() + "\n";
  }

  static std::string as_text(const Json& record, std::uint64_t line, const Json& difference,
                             const Result& result) {
    std::string what;
    for (const Json::Member& member : difference.members()) {
      const bool is_hash = ends_with(member.name, "_sha256"sv);
      const std::string_view name = std::string_view(member.name).substr(0, 6);
      if (is_hash)
        append_all(what, "; % differs, with as many bytes", {name});
      else
        append_all(what, "; % was %, now %",
                   {member.name, printable(utf8_prefix(member.value[0].dump(), 200)),
                    member.value[1].dump()});
    }
    const std::string shown = printable(utf8_prefix(record["command"sv].as_string(), 200));
    return concat(
        "line %: %%%\n",
        {line, shown, what,
         result.message.empty() ? std::string() : concat(" (%)", {printable(result.message)})});
  }

  const Executor& executor_;
  bool as_json_;
  const CancelToken& stop_;
  SessionTable<Session> sessions_ = {};
  std::string base_ = {};  // the folder of the first command
  std::uint64_t ran_ = 0;
  std::uint64_t different_ = 0;
  std::uint64_t skipped_[std::size(skip_texts)] = {};  // by the reason
};

}  // namespace

inline namespace inner {

int replay(const Executor& executor, const std::string& path, bool as_json,
           const CancelToken& stop) {
  AuditReader reader;
  if (auto ok = reader.open(path); !ok) return fail(2, ok.error().message);
  Replay again(executor, as_json, stop);
  // A line that was changed is not run, either.
  for (std::uint64_t bad = 0; !stop.cancelled() && reader.next(); bad = reader.bad()) {
    Json record;
    if (reader.bad() == bad && reader.read(record) && !again.run(record, reader.number()))
      return fail(1, "cannot write to standard output");
  }
  if (auto ok = reader.finish(); !ok) return fail(2, ok.error().message);
  std::string findings = reader.findings();
  if (!findings.empty()) {
    findings.pop_back();
    warn(findings);
  }
  return again.finish(findings.empty());
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
