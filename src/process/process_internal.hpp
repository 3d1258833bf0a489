// Killing and reaping, and what /proc says of processes.
#pragma once

#include "process/process.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace detail {

// A process, and when it was started: numbers are used again.
struct KnownProcess {
  pid_t pid = -1;
  std::uint64_t start = 0;  // as ProcessStat has it
};

}  // namespace detail

inline namespace inner {

using detail::KnownProcess;

#if defined(__linux__)
// What /proc/<pid>/stat says about a process.
struct ProcessStat {
  pid_t parent = -1;
  pid_t group = -1;
  pid_t session = -1;
  std::uint64_t start = 0;  // clock ticks since the system's start
  bool dead = false;        // a zombie, or on its way
  // Where its stack begins, or 0: the same in the forks of a program until they execute another.
  std::uint64_t stack = 0;
};

bool read_stat(pid_t pid, ProcessStat& stat);

// 0: it is none of them. They are searched one by one, which takes less than a look into /proc.
std::uint64_t start_of(const std::vector<KnownProcess>& known, pid_t pid);

// Needs CONFIG_PROC_CHILDREN, which distributions have; without it none are found.
std::vector<pid_t> children_of(pid_t pid);

bool signal_pidfd(int pidfd, int number, unsigned flags = 0);

std::string link_target(const std::string& path);

// Clock ticks since the system's start, as /proc/<pid>/stat counts them.
std::uint64_t ticks_now();

// Signals a process only if it is still the one that was looked at.
void signal_same(pid_t pid, std::uint64_t start, int number);

// Marks that only the processes of one run have, wherever they went.
struct RunMarks {
  pid_t session = -1;
  std::string variable = {};            // of their environment
  std::vector<std::string> pipes = {};  // that only they can write to
  std::uint64_t since = 0;              // the run's start, in ticks
};

// Kills the processes that bear a mark of the run, in rounds until there are none: those that left
// the group, and whose parents are dead. What was there before the run is not ours, whatever pipe
// it was given; nor is a fork of the host that merely caught one, such as the beginning of another
// command. What is in the host's session cannot be of a run, which has another, and no process
// comes back from there. False: there were always more, or they cannot be looked for.
bool kill_marked(const RunMarks& marks);
#endif

// Why nothing was started. Takes no memory.
void fail_without_memory(ProcessResult& result);

// Adds a part to the message of a run, in as many words as there is memory for.
void add_to_message(std::string& message, std::string_view text);

// How a child ended, as waitid() reports it.
struct ExitStatus {
  bool known = false;
  bool exited = false;
  int value = 0;  // exit status or signal
  rusage usage = {};
};

#if defined(__linux__)
// Waits for a child, named by its pidfd or its pid, and takes the zombie away. False: this process
// has no such child.
bool take_child(bool by_pidfd, int id, siginfo_t& info, rusage* usage);
#endif

// Takes the zombie away. Never claims success for a status that is lost.
ExitStatus reap(const UniqueFd& exit_event, bool is_pidfd, pid_t pid);

void abandon_child(pid_t pid);

void reap_abandoned();

// A new file in an open directory, for the whole of a stream. -1 and errno on failure.
int open_spill_file(int directory, std::string_view suffix, std::string& name);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
