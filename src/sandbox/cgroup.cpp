// cgroups, version 1 and 2: limits of memory and processes.

#include "sandbox/grants_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

// cgroups -----------------------------------------------------------------------------------------
//
// A run's leaf is made below the group that this program is in, so that whatever holds this program
// holds its commands, too. With cgroup v2 a group that has processes cannot have such children,
// unless it is the root; then the leaf is made beside it, but only where that escapes no limit.

// Writes a control file of a cgroup. The kernel wants all of it in one call. An errno, or 0.
int write_control(const std::string& path, std::string_view text) {
  const UniqueFd fd(above_standard_streams(::open(path.c_str(), O_WRONLY | O_CLOEXEC)));
  if (!fd) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

// A control file, or nothing. They are short.
constexpr std::size_t most_control = 65536;
std::string read_control(const std::string& path) {
  auto text = read_whole_file(path, most_control, "cgroup"sv);
  return text ? std::move(*text) : std::string();
}

bool has_word(std::string_view text, std::string_view word, char separator) {
  while (!text.empty()) {
    const std::string_view part = take_part(text, separator);
    if (part == word ||
        (part.size() == word.size() + 1 && ends_with(part, "\n"sv) && starts_with(part, word)))
      return true;
  }
  return false;
}

}  // namespace

inline namespace inner {

std::uint64_t counter_in(const std::string& text, std::string_view word) {
  for (std::string_view lines = text; !lines.empty();) {
    const std::string_view line = take_part(lines, '\n');
    if (!starts_with(line, word) || line.size() <= word.size() || line[word.size()] != ' ')
      continue;
    // The first digits are enough: all that matters is whether it is 0.
    std::size_t at = word.size() + 1;
    return read_digits(line, at, 9, 10);
  }
  return 0;
}

std::string own_group(std::string_view groups, std::string_view controller) {
  while (!groups.empty()) {
    const std::string_view line = take_part(groups, '\n');
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool matches =
        controller.empty() ? controllers.empty() : has_word(controllers, controller, ',');
    if (matches) return std::string(line.substr(second + 1));
  }
  return {};
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t end = i + 1;
    const std::uint32_t code = text[i] == '\\' ? read_digits(text, end, 3, 8) : 0;
    if (end == i + 4) {
      result += static_cast<char>(code);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string group_directory(std::string_view mounts, const std::string& group,
                            std::string_view controller) {
  while (!mounts.empty()) {
    // id parent device ROOT PLACE options [tags] - TYPE source SUPER_OPTIONS
    std::string_view line = take_part(mounts, '\n');
    std::string_view fields[5];
    for (std::string_view& field : fields) field = take_part(line, ' ');
    while (!line.empty() && take_part(line, ' ') != "-"sv) {
    }
    const std::string_view type = take_part(line, ' ');
    (void)take_part(line, ' ');
    const bool matches =
        controller.empty() ? type == "cgroup2"sv
                           : type == "cgroup"sv && has_word(take_part(line, ' '), controller, ',');
    const std::string root = unescaped(fields[3]);
    if (!matches || !codeexec::is_within(group, root)) continue;
    std::string below = root == "/" ? group : group.substr(root.size());
    if (below == "/") below.clear();
    return unescaped(fields[4]) + below;
  }
  return {};
}

}  // namespace inner

namespace {

// A name that no other program's leaf has, and no other run's.
std::string new_leaf_name() {
  static std::atomic<std::uint64_t> runs{0};
  return concat("codeexec-%-%", {::getpid(), runs.fetch_add(1)});
}

// Removes what programs left that were killed. A leaf with processes in it stays.
void remove_dead_leaves(const std::string& directory) {
  constexpr std::string_view prefix = "codeexec-";
  for (const std::string& path : paths_in(directory)) {
    const std::string_view leaf = base_name(path);
    if (!starts_with(leaf, prefix)) continue;
    std::size_t end = prefix.size();
    const auto pid = static_cast<pid_t>(read_digits(leaf, end, 10, 10));
    if (end == leaf.size() || leaf[end] != '-' || pid <= 0) continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) ::rmdir(path.c_str());
  }
}

// Gives a leaf its limits; 0 is none. An errno, or 0.
int limit_leaf(const std::string& leaf, bool unified, std::uint64_t memory,
               std::uint64_t processes) {
  if (memory != 0) {
    const std::string bytes = std::to_string(memory);
    const int error =
        write_control(leaf + (unified ? "/memory.max" : "/memory.limit_in_bytes"), bytes);
    if (error != 0) return error;
    // Without this a command swaps instead of ending. The file is missing where swap is not
    // accounted for, so errors do not count.
    if (unified)
      write_control(leaf + "/memory.swap.max", "0");
    else
      write_control(leaf + "/memory.memsw.limit_in_bytes", bytes);
  }
  return processes == 0 ? 0 : write_control(leaf + "/pids.max", std::to_string(processes));
}

// Whether leaves with these limits can really be made in a directory: an errno, or 0.
int try_leaf(const std::string& directory, bool unified, bool memory, bool processes) {
  constexpr std::uint64_t some_memory = std::uint64_t{1} << 30;
  constexpr std::uint64_t some_processes = 1024;
  const std::string leaf = concat("%/%", {directory, new_leaf_name()});
  if (::mkdir(leaf.c_str(), 0755) != 0) return errno;
  int error = limit_leaf(leaf, unified, memory ? some_memory : 0, processes ? some_processes : 0);
  if (!UniqueFd(::open((leaf + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC))) error = errno;
  return ::rmdir(leaf.c_str()) == 0 ? error : errno;
}

}  // namespace

inline namespace inner {

CgroupBase find_cgroup_base(bool memory) {
  const std::string_view controller = memory ? "memory"sv : "pids"sv;
  CgroupBase base;
  constexpr std::size_t most_mounts = std::size_t{16} << 20;
  const auto groups = read_whole_file("/proc/self/cgroup", most_control, "cgroup");
  const auto mounts = read_whole_file("/proc/self/mountinfo", most_mounts, "mounts");
  if (!groups || !mounts) {
    base.error = (groups ? mounts : groups).error().system_error;
    return base;
  }
  std::string group = own_group(*groups, controller);
  if (!group.empty()) {
    base.directory = group_directory(*mounts, group, controller);
  } else {
    base.unified = true;
    group = own_group(*groups, {});
    if (group.empty()) return base;
    base.directory = group_directory(*mounts, group, {});
    const auto gives = [&](const std::string& directory) {
      return has_word(read_control(directory + "/cgroup.subtree_control"), controller, ' ');
    };
    if (!base.directory.empty() && !gives(base.directory)) {
      const std::string own_limit =
          read_control(base.directory + (memory ? "/memory.max" : "/pids.max"));
      base.directory.resize(base.directory.rfind('/'));
      if (own_limit != "max\n" || !gives(base.directory)) base.directory.clear();
    }
  }
  if (base.directory.empty()) return base;
  remove_dead_leaves(base.directory);
  base.error = try_leaf(base.directory, base.unified, memory, !memory);
  if (base.error != 0) base.directory.clear();
  return base;
}

}  // namespace inner

Expected<void> RunCgroup::make(const SandboxState& state) {
  const Limits& limits = state.options.limits;
  const std::string& for_memory = state.memory_base.directory;
  const std::string& for_processes = state.process_base.directory;
  const std::uint64_t memory = for_memory.empty() ? 0 : limits.memory;
  const std::uint64_t processes = for_processes.empty() ? 0 : limits.processes;
  const bool together = for_memory == for_processes;
  if (memory != 0)
    if (auto added = add(state.memory_base, memory, together ? processes : 0); !added) return added;
  if (processes != 0 && !(together && memory != 0)) return add(state.process_base, 0, processes);
  return {};
}

Expected<void> RunCgroup::add(const CgroupBase& base, std::uint64_t memory,
                              std::uint64_t processes) {
  Leaf& leaf = leaves_[count_];
  leaf.directory = concat("%/%", {base.directory, new_leaf_name()});
  leaf.unified = base.unified;
  leaf.memory = memory != 0;
  leaf.tasks = processes != 0;
  const std::string subject = concat("limits: cgroup %", {in_quotes(leaf.directory)});
  if (::mkdir(leaf.directory.c_str(), 0755) != 0) return system_error(errno, "%", {subject});
  ++count_;
  if (const int error = limit_leaf(leaf.directory, leaf.unified, memory, processes); error != 0)
    return system_error(error, "%", {subject});
  leaf.processes.reset(above_child_descriptors(
      ::open((leaf.directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC)));
  if (!leaf.processes) return system_error(errno, "%", {subject});
  descriptors_[count_ - 1] = leaf.processes.get();
  return {};
}

std::vector<std::string> RunCgroup::finish() {
  std::vector<std::string> reached;
  for (std::size_t i = 0; i < count_; ++i) {
    Leaf& leaf = leaves_[i];
    const std::string events =
        leaf.directory + (leaf.unified ? "/memory.events" : "/memory.oom_control");
    if (leaf.memory && counter_in(read_control(events), "oom_kill") != 0)
      reached.push_back("memory");
    if (leaf.tasks && counter_in(read_control(leaf.directory + "/pids.events"), "max") != 0)
      reached.push_back("processes");
    leaf.processes.reset();
    // The dead stay in their group until somebody has waited for them. A leaf that outlasts all
    // attempts is removed by a create() of another program, after the end of this one.
    constexpr int attempts = 50;
    for (int n = 0; n < attempts && ::rmdir(leaf.directory.c_str()) != 0 && errno == EBUSY; ++n) {
      if (!leaf.unified || write_control(leaf.directory + "/cgroup.kill", "1") != 0) {
        const std::string left = read_control(leaf.directory + "/cgroup.procs");
        for (std::string_view lines = left; !lines.empty();) {
          const std::string_view line = take_part(lines, '\n');
          std::size_t end = 0;
          const auto pid = static_cast<pid_t>(read_digits(line, end, 9, 10));
          if (pid > 0) ::kill(pid, SIGKILL);
        }
      }
      ::poll(nullptr, 0, 1);
    }
  }
  count_ = 0;
  return reached;
}

#endif

}  // namespace v0_1
}  // namespace codeexec
