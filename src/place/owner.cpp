// Which program has made what is left in an engine.

#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// When a process has started, as the kernel counts; empty when that cannot be told.
std::string start_of_process([[maybe_unused]] pid_t pid) {
#if defined(__linux__)
  ProcessStat stat;
  if (read_stat(pid, stat)) return std::to_string(stat.start);
#endif
  return {};
}

}  // namespace

inline namespace inner {

ProgramIdentity own_identity() {
  ProgramIdentity own;
  char text[256] = "";
  if (::gethostname(text, sizeof text - 1) == 0) own.host = text;
  if (auto boot = read_whole_file("/proc/sys/kernel/random/boot_id", 4096, "boot"))
    own.boot = without_line_ends(*boot);
  own.space = concat({::geteuid(), " ", own_namespace("pid")});
  own.pid = std::to_string(::getpid());
  own.start = start_of_process(::getpid());
  return own;
}

Maker maker_of(const ProgramIdentity& maker, const ProgramIdentity& own) {
  if (maker.host != own.host || maker.space != own.space) return Maker::unknown;
  if (maker.boot != own.boot) return Maker::gone;
  const pid_t pid = static_cast<pid_t>(std::strtol(maker.pid.c_str(), nullptr, 10));
  if (own.start.empty() || maker.start.empty() || pid <= 0) return Maker::unknown;
  const std::string now = start_of_process(pid);
  if (!now.empty()) return now == maker.start ? Maker::running : Maker::gone;
  return ::kill(pid, 0) != 0 && errno == ESRCH ? Maker::gone : Maker::unknown;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
