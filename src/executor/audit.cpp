// Audit records and their file.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string seconds_text(std::chrono::milliseconds time) {
  if (time == no_limit) return "unlimited";
  const auto seconds = time.count() / 1000;
  const auto rest = std::abs(time.count() % 1000);
  std::string text = concat({time.count() < 0 && seconds == 0 ? "-" : "", std::to_string(seconds)});
  if (rest == 0) return text;
  std::string fraction = std::to_string(1000 + rest).substr(1);
  while (fraction.back() == '0') fraction.pop_back();
  return concat({text, ".", fraction});
}

std::string utc_timestamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(now.tv_nsec / 1000000));
  return utc_time(now.tv_sec) + fraction;
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

Expected<UniqueFd> anonymous_file(std::string_view content) {
#if defined(__linux__)
  UniqueFd fd(above_standard_streams(::memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
#else
  char path[] = "/tmp/codeexec-XXXXXX";
  UniqueFd fd(above_standard_streams(::mkostemp(path, O_CLOEXEC)));
  if (fd) ::unlink(path);
#endif
  if (!fd) return system_error(errno, "cannot make a file for the script");
  if (const int error = write_all(fd.get(), content); error != 0)
    return system_error(error, "cannot write the script");
#if defined(__linux__)
  // The running script cannot rewrite itself.
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
#endif
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return system_error(errno, "cannot rewind the script");
  return fd;
}

bool is_program(const std::string& path) {
  struct stat status {};
  return path.find('/') != std::string::npos && ::stat(path.c_str(), &status) == 0 &&
         S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

Expected<std::string> usable_directory(const char* option, const std::string& given, int mode) {
  if (given.empty()) return std::string();
  auto path = canonical_path(given);
  if (!path) return with_prefix(concat({option, ": "}), path.error());
  struct stat status {};
  int error = 0;
  if (::stat(path->c_str(), &status) != 0 || ::access(path->c_str(), mode) != 0)
    error = errno;
  else if (!S_ISDIR(status.st_mode))
    error = ENOTDIR;
  if (error != 0) return system_error(error, concat({option, ": ", quoted(*path)}));
  return path;
}

Expected<UniqueFd> open_audit_file(const std::string& path) {
  const std::string subject = concat({"audit_file: ", quoted(path)});
  if (has_nul(path))
    return make_error(ErrorCode::invalid_argument, concat({subject, " has a NUL byte"}));
  UniqueFd fd(above_standard_streams(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK,
      0600)));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return system_error(errno, subject);
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))
    return make_error(ErrorCode::invalid_argument,
                      concat({subject, " is neither a file nor a device"}));
  return fd;
}

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

void set_sandbox_fields(Json& object, const Result& r) {
  if (r.sandbox && r.sandbox->mode != SandboxMode::off) {
    Json sandbox = Json::object();
    sandbox.set("mode", name(r.sandbox->mode));
    sandbox.set("network", name(r.sandbox->network));
    if (!r.sandbox->missing.empty()) sandbox.set("missing", list_of(r.sandbox->missing));
    object.set("sandbox", std::move(sandbox));
  }
  if (!r.container.empty()) object.set("container", r.container);
  if (!r.limits_reached.empty()) object.set("limits_reached", list_of(r.limits_reached));
  if (!r.changed_files.empty()) object.set("changed_files", list_of(r.changed_files));
  const std::uint64_t redactions = r.out_counts.redactions + r.err_counts.redactions;
  if (redactions > 0) object.set("redactions", redactions);
}

}  // namespace inner

Json AuditRecord::to_json() const {
  const Result& r = *result;
  const auto milliseconds = [](std::chrono::microseconds span) {
    return static_cast<double>(span.count()) / 1000.0;
  };
  Json record = Json::object();
  record.set("time", time);
  if (!agent_id.empty()) record.set("agent_id", agent_id);
  record.set("tool", tool);
  const auto set_cut = [&record](std::string field, const std::string& text) {
    record.set(field, std::string(utf8_prefix(text, longest_audited_text)));
    if (text.size() > longest_audited_text) record.set(field + "_bytes", text.size());
  };
  set_cut("command", r.command);
  if (!code.empty()) set_cut("code", code);
  record.set("work_dir", r.work_dir);
  record.set("allowed", r.outcome != Outcome::refused);
  if (!r.rule.empty()) record.set("rule", r.rule);
  if (r.rule_end > r.rule_begin) {
    record.set("rule_begin", r.rule_begin);
    record.set("rule_end", r.rule_end);
  }
  if (!r.message.empty()) record.set("message", r.message);
  record.set("outcome", name(r.outcome));
  record.set("exit_code", r.exit_code);
  if (r.signal != 0) record.set("signal", r.signal);
  record.set("duration_ms", milliseconds(r.wall_time));
  record.set("cpu_ms", milliseconds(r.cpu_time));
  record.set("stdout_bytes", static_cast<std::int64_t>(r.out_counts.total_bytes));
  record.set("stderr_bytes", static_cast<std::int64_t>(r.err_counts.total_bytes));
  set_sandbox_fields(record, r);
  return record;
}

}  // namespace v0_1
}  // namespace codeexec
