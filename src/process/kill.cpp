// Killing what belongs to a run, wherever it has gone.

#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

constexpr std::size_t most_digits = 9;  // of a process or a descriptor: both fit into an int

// The numbers among the names in a directory of /proc. False when it could not be read to its end.
bool read_numbers(const std::string& path, std::vector<int>& numbers) {
  const int error = for_each_entry(path, [&numbers](std::string_view text) {
    std::size_t end = 0;
    const int number = static_cast<int>(read_digits(text, end, most_digits, 10));
    if (end == text.size()) numbers.push_back(int{number});
    return true;
  });
  return error == 0 || error == ENOENT;
}

std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> numbers;
  (void)read_numbers(path, numbers);
  return numbers;
}

// True when the process has an end for writing of one of the pipes, named as /proc names them.
bool writes_to(pid_t pid, const std::vector<std::string>& pipes) {
  const std::string directory = concat("/proc/%/fd", {pid});
  for (const int fd : numbers_in(directory)) {
    const std::string path = concat("%/%", {directory, fd});
    const std::string target = link_target(path);
    if (!is_one_of(target, pipes)) continue;
    // The link's permissions are the descriptor's.
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && (status.st_mode & S_IWUSR) != 0) return true;
  }
  return false;
}

// True when the process was started with this variable in its environment.
bool has_variable(pid_t pid, const std::string& variable) {
  constexpr std::size_t most = std::size_t{4} << 20;
  const std::string path = concat("/proc/%/environ", {pid});
  const auto content = read_whole_file(path, most, "environment"sv);
  if (!content) return false;
  const std::string_view variables = *content;
  const std::size_t at = variables.find(variable);
  return at != std::string_view::npos && (at == 0 || variables[at - 1] == '\0');
}

}  // namespace

inline namespace inner {

bool read_stat(pid_t pid, ProcessStat& stat) {
  char text[1024];
  // Without memory of the heap, as what is killed must not go on because there is none.
  std::snprintf(text, sizeof text, "/proc/%d/stat", static_cast<int>(pid));
  const UniqueFd file(::open(text, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
  if (size <= 0) return false;
  text[size] = '\0';
  // The name in parentheses may hold anything, more parentheses, too.
  const char* rest = std::strrchr(text, ')');
  if (!rest) return false;
  unsigned long long start = 0;
  unsigned long long stack = 0;
  char state = '?';
  const int fields =
      std::sscanf(rest + 1,
                  " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu"
                  " %*u %*d %*u %*u %*u %llu",
                  &state, &stat.parent, &stat.group, &stat.session, &start, &stack);
  stat.start = start;
  stat.dead = state == 'Z' || state == 'X';
  stat.stack = stack;
  return fields >= 5;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = concat("/proc/%/task", {pid});
  for (const int task : numbers_in(tasks)) {
    auto content =
        read_whole_file(concat("%/%/children", {tasks, task}), std::size_t{1} << 24, "children");
    if (!content) continue;
    // Each has a blank after it.
    for (std::size_t at = 0; at < content->size(); ++at)
      children.push_back(static_cast<pid_t>(read_digits(*content, at, most_digits, 10)));
  }
  return children;
}

std::uint64_t start_of(const std::vector<KnownProcess>& known, pid_t pid) {
  for (std::size_t i = known.size(); i-- > 0;)
    if (known[i].pid == pid) return known[i].start;
  return 0;
}

bool signal_pidfd(int pidfd, int number, unsigned flags) {
  return ::syscall(SYS_pidfd_send_signal, static_cast<long>(pidfd), static_cast<long>(number), 0L,
                   static_cast<long>(flags)) == 0;
}

std::string link_target(const std::string& path) {
  char text[512];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

std::uint64_t ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1000000000u;
}

void signal_same(pid_t pid, std::uint64_t start, int number) {
  const UniqueFd handle(open_pidfd(pid));
  ProcessStat stat;
  if (!read_stat(pid, stat) || stat.start != start) return;
  // Fails where a filter refuses it.
  const bool done = handle && (signal_pidfd(handle.get(), number) || errno == ESRCH);
  if (!done) ::kill(pid, number);
}

bool kill_marked(const RunMarks& marks) {
  constexpr int most_rounds = 16;
  const pid_t self = ::getpid();
  ProcessStat own;
  if (!read_stat(self, own)) return false;
  constexpr pid_t kernel_threads = 2;  // the parent of all of them
  std::vector<KnownProcess> killed;
  bool whole = false;
  bool found = true;
  bool executing = true;
  for (int round = 0; round < most_rounds && (!whole || found || executing); ++round) {
    const std::size_t before = killed.size();
    executing = false;
    const auto stop_all = [&] {
      std::vector<pid_t> all;
      whole = read_numbers("/proc", all);
      for (const pid_t pid : all) {
        if (pid == self || pid == 1 || pid == marks.session) continue;
        ProcessStat stat;
        if (!read_stat(pid, stat) || stat.start < marks.since || stat.dead) continue;
        if (stat.session == own.session) continue;
        if (start_of(killed, pid) == stat.start) continue;
        // This is read before its pipes are looked at, because they are gone once it has executed
        // its program. During execve() it has no stack.
        const bool our_fork = own.stack != 0 && (stat.stack == 0 || stat.stack == own.stack);
        const bool marked = stat.session == marks.session || has_variable(pid, marks.variable) ||
                            (!our_fork && !marks.pipes.empty() && writes_to(pid, marks.pipes));
        // During execve() it has no variables either: it is looked at once more.
        executing = executing || (!marked && stat.stack == 0 && stat.parent != kernel_threads);
        if (!marked) continue;
        // A stopped process cannot start another one before all of them are killed.
        killed.push_back({pid, stat.start});
        signal_same(pid, stat.start, SIGSTOP);
      }
    };
    // Without memory for all of a round it still kills what it has stopped.
    if (!enough_memory(stop_all)) whole = false;
    found = killed.size() > before;
    for (std::size_t i = before; i < killed.size(); ++i)
      signal_same(killed[i].pid, killed[i].start, SIGKILL);
  }
  return whole && !found;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
