// Audit records, and small things that the parts share.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string head_and_tail(const std::string& text, std::size_t bytes, std::uint64_t total) {
  if (text.size() <= bytes) return text;
  const std::string_view head = utf8_prefix(text, bytes - bytes / 2);
  const std::string_view tail = utf8_suffix(text, bytes / 2);
  return concat(
      {head, Capture::gap(std::max<std::uint64_t>(text.size(), total) - head.size() - tail.size()),
       tail});
}

std::string seconds_text(std::chrono::milliseconds time) {
  if (time == no_limit) return "unlimited";
  const auto seconds = time.count() / 1000;
  const auto rest = std::abs(time.count() % 1000);
  std::string text = concat({time.count() < 0 && seconds == 0 ? "-" : "", seconds});
  if (rest == 0) return text;
  std::string fraction = std::to_string(1000 + rest).substr(1);
  while (fraction.back() == '0') fraction.pop_back();
  return concat("%.%", {text, fraction});
}

std::string count_of_seconds(std::chrono::milliseconds time) {
  return seconds_text(time) + (time == std::chrono::seconds(1) ? " second" : " seconds");
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
  if (!path) return with_prefix("%: ", {option}, path.error());
  struct stat status {};
  int error = 0;
  if (::stat(path->c_str(), &status) != 0 || ::access(path->c_str(), mode) != 0)
    error = errno;
  else if (!S_ISDIR(status.st_mode))
    error = ENOTDIR;
  if (error != 0) return system_error(error, "%: %", {option, in_quotes(*path)});
  return path;
}

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

void set_sandbox_fields(Json& object, const Result& r) {
  if (r.sandbox && r.sandbox->mode != SandboxMode::off) {
    Json sandbox = Json::object();
    sandbox.set("mode"sv, name(r.sandbox->mode));
    sandbox.set("network"sv, name(r.sandbox->network));
    if (!r.sandbox->missing.empty()) sandbox.set("missing"sv, list_of(r.sandbox->missing));
    object.set("sandbox"sv, std::move(sandbox));
  }
  if (!r.container.empty()) object.set("container"sv, r.container);
  if (!r.place.empty()) object.set("place"sv, r.place);
  if (!r.limits_reached.empty()) object.set("limits_reached"sv, list_of(r.limits_reached));
  if (!r.changed_files.empty()) object.set("changed_files"sv, list_of(r.changed_files));
  const std::uint64_t redactions = r.out_counts.redactions + r.err_counts.redactions;
  if (redactions > 0) object.set("redactions"sv, redactions);
}

}  // namespace inner

namespace {

void set_verdict_fields(Json& object, const Result& r) {
  const auto set_known = [&object](std::string_view field, const std::string& text) {
    if (!text.empty()) object.set(field, text);
  };
  object.set("allowed"sv, r.outcome != Outcome::refused);
  set_known("rule"sv, r.rule);
  if (r.rule_end > r.rule_begin) {
    object.set("rule_begin"sv, r.rule_begin);
    object.set("rule_end"sv, r.rule_end);
  }
  set_known("message"sv, r.message);
  set_known("asked"sv, r.asked);
  set_known("answer"sv, r.answer);
}

}  // namespace

Json to_json(const AuditRecord& record) {
  const Result& r = *record.result;
  const auto milliseconds = [](std::chrono::microseconds span) {
    return static_cast<double>(span.count()) / 1000.0;
  };
  Json object = Json::object();
  const auto set_text = [&object](std::string_view field, const std::string& text) {
    object.set(field, text);
  };
  const auto set_known = [&set_text](std::string_view field, const std::string& text) {
    if (!text.empty()) set_text(field, text);
  };
  set_text("time"sv, record.time);
  set_text("host"sv, record.host);
  object.set("pid"sv, record.pid);
  set_known("agent_id"sv, record.agent_id);
  set_known("client"sv, record.client);
  set_known("request"sv, record.request);
  set_known("session_id"sv, record.session_id);
  set_known("shell_id"sv, record.shell_id);
  set_text("tool"sv, record.tool);
  const auto set_cut = [&](std::string_view field, const std::string& text) {
    set_text(field, std::string(utf8_prefix(text, longest_audited_text)));
    if (text.size() > longest_audited_text) object.set(concat("%_bytes", {field}), text.size());
  };
  set_cut("command"sv, r.command);
  if (!record.code.empty()) set_cut("code"sv, record.code);
  if (!record.input_sha256.empty()) {
    object.set("input_bytes"sv, record.input_bytes);
    set_text("input_sha256"sv, record.input_sha256);
  }
  set_text("work_dir"sv, r.work_dir);
  set_verdict_fields(object, r);
  object.set("outcome"sv, name(r.outcome));
  if (r.idle) object.set("idle"sv, true);
  object.set("exit_code"sv, r.exit_code);
  if (r.signal != 0) object.set("signal"sv, r.signal);
  object.set("duration_ms"sv, milliseconds(r.wall_time));
  object.set("cpu_ms"sv, milliseconds(r.cpu_time));
  if (r.peak_memory > 0) object.set("peak_memory"sv, r.peak_memory);
  const auto set_stream = [&](std::string_view field, const std::string& text,
                              const OutputCounts& counts) {
    object.set(concat("%_bytes", {field}), counts.total_bytes);
    if (counts.total_bytes == 0) return;
    set_known(concat("%_sha256", {field}), counts.sha256);
    if (record.max_output > 0)
      set_text(field, head_and_tail(text, record.max_output, counts.total_bytes));
  };
  set_stream("stdout"sv, r.out, r.out_counts);
  set_stream("stderr"sv, r.err, r.err_counts);
  if (!r.connections.is_null()) object.set("connections"sv, r.connections);
  set_sandbox_fields(object, r);
  return object;
}

}  // namespace v0_1
}  // namespace codeexec
