// Options, the filter, cgroups, and the state of a sandbox.
#pragma once

#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

struct NamedLimit {
  const char* name;
  std::uint64_t Limits::*value;
};

inline constexpr NamedLimit limit_names[] = {
    {"cpu_time", &Limits::cpu_time},
    {"memory", &Limits::memory},
    {"address_space", &Limits::address_space},
    {"processes", &Limits::processes},
    {"open_files", &Limits::open_files},
    {"file_size", &Limits::file_size},
    {"disk", &Limits::disk},
};

// The features that a report lists, in its order, where a sandbox is asked for.
inline constexpr const char* sandbox_features[] = {
    "filesystem",       "rename",       "truncate",   "devices", "signals",
    "abstract_sockets", "system_calls", "privileges", "network", "containment"};

// The errors of create() that are the same in every mode and on every system.
Expected<void> check_sandbox_options(const SandboxOptions& options);

// Whether commands get a view of the file systems of their own.
bool wants_mounts(const SandboxOptions& options);

}  // namespace inner

#if CODEEXEC_HAS_SANDBOX
// The cgroup of one run, or two of them with cgroup v1, made by the parent before the start. Empty
// when no limit needs one. Removed by finish(), or by the destructor.
class RunCgroup {
 public:
  RunCgroup() = default;
  RunCgroup(const RunCgroup&) = delete;
  RunCgroup& operator=(const RunCgroup&) = delete;
  ~RunCgroup() {
    // Without memory to read what is in it, it is removed if it is empty.
    if (!enough_memory([&] { finish(); })) remove_empty();
  }
  Expected<void> make(const SandboxState& state);

  // Open for writing: a process joins by writing "0" to each. They are closed on exec.
  const int* descriptors() const noexcept { return descriptors_; }
  std::size_t count() const noexcept { return count_; }

  // Kills what is left in it, removes it, and gives the names of the limits that were reached.
  std::vector<std::string> finish();

 private:
  struct Leaf {
    std::string directory = {};
    UniqueFd processes = UniqueFd();
    bool unified = false;
    bool memory = false;
    bool tasks = false;
  };
  Expected<void> add(const CgroupBase& base, std::uint64_t memory, std::uint64_t processes);
  void remove_empty() noexcept {
    for (const Leaf& leaf : leaves_)
      if (!leaf.directory.empty()) ::rmdir(leaf.directory.c_str());
  }

  // One for memory and one for processes at most.
  Leaf leaves_[2] = {};
  int descriptors_[2] = {};
  std::size_t count_ = 0;
};
#endif

inline namespace inner {

#if CODEEXEC_HAS_SANDBOX
// Where leaves, the cgroups of runs, can be made with a limit of memory or of processes. The
// directory is empty when there is no such place.
CgroupBase find_cgroup_base(bool memory);

// The count after a word in a control file of lines like "oom_kill 3".
std::uint64_t counter_in(const std::string& text, std::string_view word);

// This process's group in the hierarchy of a controller; an empty `controller` is cgroup v2.
std::string own_group(std::string_view groups, std::string_view controller);

// Undoes the octal escapes in which mountinfo writes blanks and backslashes.
std::string unescaped(std::string_view text);

// The directory of this process's group, as it is mounted here.
std::string group_directory(std::string_view mounts, const std::string& group,
                            std::string_view controller);
#endif

}  // namespace inner

struct Sandbox::State : SandboxState {};

}  // namespace v0_1
}  // namespace codeexec
