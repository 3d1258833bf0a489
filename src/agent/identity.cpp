// The programs that have made places, and whether they still run.

#include "agent/identity_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The start of a process, as the kernel counts time; empty if it is not known.
std::string start_of_process([[maybe_unused]] pid_t pid) {
#if defined(__linux__)
  ProcessStat stat;
  if (read_stat(pid, stat)) return std::to_string(stat.start);
#endif
  return {};
}

}  // namespace

inline namespace inner {

// A process number alone comes again. With the time of its start it is one process of one boot; the
// namespace says in which process table it counts, and the user who may look. What cannot be found
// out stays empty, and still_runs() then does not know.
ProgramIdentity own_identity() {
  ProgramIdentity own;
  char text[256] = "";
  if (::gethostname(text, sizeof text - 1) == 0) own.host = text;
  if (auto boot = read_whole_file("/proc/sys/kernel/random/boot_id", 4096, "boot"))
    own.boot = without_line_ends(*boot);
  own.space = concat("% %", {::geteuid(), own_namespace("pid")});
  own.pid = std::to_string(::getpid());
  own.start = start_of_process(::getpid());
  return own;
}

// Engines keep it as a label, an annotation or a comment. No part has a `;`, but for a host name
// that is set to be odd: such a program is then another one's, and its places are left alone.
std::string owner_text(const ProgramIdentity& program) {
  return concat("%;%;%;%;%",
                {program.host, program.boot, program.space, program.pid, program.start});
}

ProgramIdentity take_owner(std::string_view& text) {
  ProgramIdentity program;
  for (std::string* const part :
       {&program.host, &program.boot, &program.space, &program.pid, &program.start})
    *part = take_part(text, ';');
  return program;
}

//   of the maker                         answer
//   another host, user or process table  not known: its process cannot be seen from here
//   another boot of this host            false: all processes of that have ended
//   no start time, here or of it         not known: a number alone may be another process
//   a process of that number, same start true
//   a process of that number, other one  false: the number was given again
//   no process of that number (ESRCH)    false
//   else: one that may not be looked at  not known
//
// What removes the places that programs have left behind takes only those whose maker has ended for
// sure.
std::optional<bool> still_runs(const ProgramIdentity& maker, const ProgramIdentity& own) {
  if (maker.host != own.host || maker.space != own.space) return std::nullopt;
  if (maker.boot != own.boot) return false;
  const pid_t pid = static_cast<pid_t>(std::strtol(maker.pid.c_str(), nullptr, 10));
  if (own.start.empty() || maker.start.empty() || pid <= 0) return std::nullopt;
  const std::string now = start_of_process(pid);
  if (!now.empty()) return now == maker.start;
  if (::kill(pid, 0) != 0 && errno == ESRCH) return false;
  return std::nullopt;
}

// Fractions of a second are ignored. Engines write the zone as Z or as a distance, which is taken
// off.
std::chrono::seconds age_since(const std::string& time) {
  std::tm parts{};
  if (std::sscanf(time.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6)
    return std::chrono::seconds(-1);
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  // Behind the seconds stand their fraction and a Z or the distance from UTC.
  const std::size_t zone = time.find_first_of("+-", 19);
  if (zone != std::string::npos) {
    int hours = 0;
    int minutes = 0;
    (void)std::sscanf(time.c_str() + zone + 1, "%2d:%2d", &hours, &minutes);
    parts.tm_min -= (time[zone] == '-' ? -1 : 1) * (hours * 60 + minutes);
  }
  return std::chrono::seconds(::time(nullptr) - ::timegm(&parts));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
