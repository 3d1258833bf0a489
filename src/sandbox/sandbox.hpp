// What the kernel holds a command to: one compiled object per policy.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

// How much of a sandbox must be there for a command to run.
enum class SandboxMode {
  off,          // none: commands have the rights of this process; only Limits apply
  best_effort,  // what this kernel offers; the report lists what is missing
  strict,       // all that was asked for, or nothing runs
};
const char* name(SandboxMode mode) noexcept;

// What commands can reach over sockets.
enum class Network {
  host,      // what this process can reach
  none,      // nothing: no socket of a network family can be made
  loopback,  // only each other, on 127.0.0.1 and ::1: a network namespace
  allow,     // as loopback, and names by a proxy: ExecutorOptions::allowed_domains
};
const char* name(Network network) noexcept;

// Bounds on what one command may use, each no_bound unless set; never more than this process has
// itself.
// ProcessResult::limits_reached names the members that a command has reached, as far as that can be
// seen from outside.
struct Limits {
  std::uint64_t cpu_time =
      no_bound;  // seconds of each process (RLIMIT_CPU), then SIGXCPU and SIGKILL
  // Bytes. Where a cgroup can be made: of all processes together, and the largest is killed.
  // Elsewhere of each process: its private writable memory (RLIMIT_DATA); allocations fail. The
  // report then has memory_per_process enforced and memory missing, and strict mode refuses.
  std::uint64_t memory = no_bound;
  // Bytes of addresses in each process (RLIMIT_AS). Better left off: it counts what is reserved and
  // never used. Node reserves 16 GiB for a WebAssembly, and Java 4 GiB.
  std::uint64_t address_space = no_bound;
  // Where a cgroup can be made: processes and threads of the command. Elsewhere those of the user
  // in all (RLIMIT_NPROC), which the kernel does not count for root. The report then has processes
  // missing and, but for root, processes_per_user enforced; strict mode refuses. Without it, and
  // with SandboxOptions::tmp, all commands of a sandbox together have at most 2,048 where the
  // kernel counts theirs alone: Linux 5.14, and not for root. The report then has
  // processes_in_common enforced.
  std::uint64_t processes = no_bound;
  std::uint64_t open_files = no_bound;  // descriptors of each process (RLIMIT_NOFILE)
  std::uint64_t file_size =
      no_bound;  // bytes of each file that is written (RLIMIT_FSIZE), then SIGXFSZ
  // Bytes by which each of the file systems of the writable directories may fill up during a
  // command; what other programs write counts, too. The library looks four times a second, and
  // kills the command. It looks again when the command has ended, and then only reports. Also the
  // most that one file may have, as with file_size.
  std::uint64_t disk = no_bound;
};

struct SandboxOptions {
  SandboxMode mode = SandboxMode::off;
  // Directories, or single files, with all below them. Absolute paths. A path that leads through a
  // symbolic link which a command could have put there is not granted; see create().
  std::vector<std::string> writable = {};
  std::vector<std::string> readable = {};
  // Single files that commands may make, replace and remove in directories that they cannot change
  // otherwise: absolute paths in at most 8 directories of this user's. For lock files: they are
  // made with O_EXCL, moved to another name of this list, and removed. Needs Linux 5.14; before it
  // commands get EACCES.
  std::vector<std::string> replaceable = {};
  // The PATH of the commands. The prefixes of its directories outside of the system (~/.cargo,
  // ~/.pyenv ...) become readable, but for what looks like a secret. So do the programs that links
  // in these directories lead to, unless a link lies in a writable directory.
  std::string search_path = {};
  Network network = Network::host;
  // With Network::loopback and allow: one network for all commands of this sandbox, so that one
  // reaches what another serves, and no other program does. Else each command has its own.
  bool common_network = false;
  // With every Network but host: sockets with a path, which reach the services of this host
  // (docker.sock among them) as far as file permissions let them. Pairs of connected stream sockets
  // are always there.
  bool unix_sockets = false;
  // A directory that commands have as /tmp, where they may have mounts of their own: an absolute
  // path, which outlives the sandbox. With it they have a /dev/shm in memory, pseudo-terminals and
  // System V IPC of their own, in common with all commands of this sandbox. Granted paths below
  // /tmp stay where they are, and so do /tmp/.X11-unix and SSH_AUTH_SOCK where sockets with a path
  // can be reached. /tmp stays the host's when it is granted itself, or when a linked git worktree
  // or a directory of `search_path` lies in it. SandboxReport::places says what they have. An
  // ordinary user needs user namespaces for it. Everything but the writable directories is mounted
  // read-only there, see `metadata`; each of them is a mount of its own. Empty: they have none of
  // it.
  std::string tmp = {};
  // The host's /dev/shm is writable, for Python's multiprocessing across sandboxes.
  bool shared_memory = false;
  // The host's /dev/pts is theirs, so that they can make pseudo-terminals (script, tmux, expect).
  // Other terminals of the user are there as well, to be read from and written to.
  bool terminals = false;
  // Devices that commands may use: absolute paths of character devices, and "gpu" for what drivers
  // make of GPUs, as far as it is there (/dev/nvidia*, /dev/dri, /dev/kfd). Commands do with them
  // what the driver lets this user do. No disk, nor the memory of the machine, can be granted.
  std::vector<std::string> devices = {};
  // A process table of the command's own: it sees and reaches no process of the host, and none of
  // its processes can outlive it whatever becomes of this program. An ordinary user needs user
  // namespaces for it; costs about 0.2 ms. Everything but the writable directories is mounted
  // read-only for it, so that modes, times and attributes of files elsewhere stay as well.
  bool pid_namespace = false;
  // Files and directories that commands can neither change nor replace, though they lie in a
  // writable directory: relative to each of these, such as ".git/hooks". At most 64. What is not
  // there when a command begins is not made and not protected. What a link leads to is not
  // protected. Mounts everything else as with pid_namespace, and costs about 0.2 ms.
  std::vector<std::string> protected_paths = {};
  // Files and directories that commands cannot read, though they lie in a granted directory:
  // absolute paths, of an executor also relative to the workspace. At most 64. A command finds a
  // device or a directory there that it cannot open; it cannot change or move it, nor move the
  // directories around it. What is not there when a command begins is not hidden from it, and other
  // names of a file, made by `ln`, are not hidden either. Mounts everything else as with
  // pid_namespace, and costs about 0.2 ms.
  std::vector<std::string> hidden_paths = {};
  Limits limits = {};
  // Describe each rule, in SandboxReport::rules. Commands are held in the same way.
  bool explain = false;
};

// What is in force. Each name stands in exactly one of the two lists when the mode is not off:
//   filesystem         writes and reads only where granted (Landlock, Linux 5.13)
//   rename             files can be moved between directories (ABI 2)
//   truncate           files outside cannot be emptied (ABI 3, or the filter)
//   devices            no device can be made, and ioctl only on harmless ones (ABI 5)
//   signals            no signals to processes outside (ABI 6)
//   abstract_sockets   no connections to abstract sockets outside (ABI 6, or the network's)
//   system_calls       the filter (seccomp) refuses what an agent's command does not need
//   privileges         no_new_privs, and no capabilities
//   network            as in `network`
//   containment        nothing of a command outlives it, this program's SIGKILL included
//   metadata           modes, times and attributes of files stay where nothing can be written: with
//                      pid_namespace, protected_paths or hidden_paths; with `tmp`, where it can be
//   pid_namespace, protected_paths, hidden_paths, memory, processes and so on: what was asked for
struct SandboxReport {
  SandboxMode mode = SandboxMode::off;
  Network network = Network::host;  // what commands really have
  int landlock_abi = 0;             // of the kernel; 0: there is no Landlock
  std::vector<std::string> enforced = {};
  std::vector<std::string> missing = {};  // the name, then why: "signals: needs Landlock ABI 6"
  // With SandboxOptions::tmp, for people: "tmp: own", or "tmp: none (why); what helps"; likewise
  // shared_memory and terminals, or "the host's", and "metadata: none (why)" where it is not
  // enforced. No mode refuses for it. With devices, which of them are there: "devices:
  // /dev/dri/card0 /dev/dri/renderD128".
  std::vector<std::string> places = {};
  // With SandboxOptions::explain, what the kernel is given, for people: a name as above, `limits`
  // or `namespaces`, then one rule: "system_calls: EPERM bpf ...: parts of the kernel". Rules with
  // one name follow each other. Empty: nothing is enforced.
  std::vector<std::string> rules = {};
};

// A policy, compiled once and applied in each child between clone and exec; the host itself is
// never restricted. Copies share it. Does not change after create(); any thread may use it.
//
// A command takes less than a tenth more time than without a sandbox, as the supervisor of one that
// has ended waits for the next: up to 16 processes without work, which share this program's memory
// (less than 100 KiB each) and end with the last copy. Of this program they have the limits
// (setrlimit), priority, processors and cgroup that it had when the first of them was made; its
// directory, root and umask are the current ones, but with namespaces. After a change of the user
// or group they are made anew. protected_paths, hidden_paths and Network::allow have a supervisor
// made for each command.
//
// What it does not hold back, on Linux up to 7.0: reading names, sizes and times of files
// anywhere; chmod, utimes and setxattr on files that the user owns, unless `metadata` is enforced;
// with Network::host everything the network reaches. docs/sandbox.md has the list, with an answer
// to each.
class Sandbox {
 public:
  // No sandbox and no limits.
  Sandbox() = default;

  // Builds the policy and tries it in a child that attempts what is forbidden: what only claims to
  // work counts as missing. In strict mode anything missing is an error (ErrorCode::unsupported)
  // that names all of it, and so is a grant that cannot be given; best_effort leaves the grant out.
  //   Errors in both: invalid_argument for a path that is not absolute or has a NUL in it, for a
  //   grant of `/` or of a directory above the system's, and for a limit that cannot be had.
  static Expected<Sandbox> create(const SandboxOptions& options);

  const SandboxReport& report() const noexcept;

  // Whether every granted path still is the file it was at create(). The kernel's rules belong to
  // the files, not to the paths: a path that now leads elsewhere gives no new rights, but it is a
  // sign that something is wrong.
  Expected<void> check_grants() const;

 private:
  friend class Process;
  struct State;
  std::shared_ptr<const State> state_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
