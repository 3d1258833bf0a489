// The broker: a supervisor makes, replaces and removes single files for its command.

#include "sandbox/broker_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/filter_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

// What headers of older systems lack.
constexpr std::uint32_t answer_user_notification = 0x7fc00000;  // SECCOMP_RET_USER_NOTIF

// The kernel's seccomp_notif, with room for what newer kernels may add to it.
struct BrokerRequest {
  std::uint64_t id;
  std::uint32_t pid;
  std::uint32_t flags;
  seccomp_data data;
  char room[176];
};
constexpr std::size_t size_of_request = offsetof(BrokerRequest, room);

// The kernel's seccomp_notif_resp. An error is negative.
struct BrokerAnswer {
  std::uint64_t id;
  std::int64_t value;
  std::int32_t error;
  std::uint32_t flags;
};

// The kernel's seccomp_notif_addfd.
struct BrokerDescriptor {
  std::uint64_t id;
  std::uint32_t flags;
  std::uint32_t source;
  std::uint32_t wanted;
  std::uint32_t descriptor_flags;
};

constexpr unsigned long receive_request = _IOC(_IOC_READ | _IOC_WRITE, '!', 0, size_of_request);
constexpr unsigned long send_answer = _IOC(_IOC_READ | _IOC_WRITE, '!', 1, sizeof(BrokerAnswer));
constexpr unsigned long add_descriptor = _IOC(_IOC_WRITE, '!', 3, sizeof(BrokerDescriptor));

// The calls that ask. Those with a descriptor of a directory are let through, and so the supervisor
// is not asked for what it does itself.
enum class Asks : char { to_make, to_remove, to_move };
struct BrokeredCall {
  unsigned number;
  Asks asks;
  signed char directory;  // the argument that must be AT_FDCWD; -1: there is none
  signed char path;       // the argument; the second path of a move follows after `step`
  signed char step;
  signed char flags;  // the argument; -1: there is none
};
constexpr BrokeredCall brokered_calls[] = {
#if defined(__x86_64__)
    {SYS_open, Asks::to_make, -1, 0, 0, 1},     {SYS_unlink, Asks::to_remove, -1, 0, 0, -1},
    {SYS_rename, Asks::to_move, -1, 0, 1, -1},
#endif
    {SYS_openat, Asks::to_make, 0, 1, 0, 2},    {SYS_unlinkat, Asks::to_remove, 0, 1, 0, 2},
    {SYS_renameat, Asks::to_move, 0, 1, 2, -1}, {SYS_renameat2, Asks::to_move, 0, 1, 2, 4},
};

// A lock file is made so: it must not be there.
constexpr std::uint32_t new_file_flags = O_CREAT | O_EXCL;

#if defined(__x86_64__)
constexpr std::uint32_t broker_architecture = AUDIT_ARCH_X86_64;
#else
constexpr std::uint32_t broker_architecture = AUDIT_ARCH_AARCH64;
#endif

// Both architectures have the lower half of an argument first.
std::size_t offset_of_argument(int index) {
  return offsetof(seccomp_data, args) + static_cast<std::size_t>(index) * sizeof(std::uint64_t);
}

std::vector<sock_filter> broker_filter() {
  FilterProgram program;
  const FilterLabel allow = program.answer(SECCOMP_RET_ALLOW);
  const FilterLabel ask = program.answer(answer_user_notification);
  FilterLabel targets[std::size(brokered_calls)] = {};
  for (std::size_t i = 0; i < std::size(brokered_calls); ++i) {
    const BrokeredCall& call = brokered_calls[i];
    targets[i] = ask;
    if (call.asks == Asks::to_make) {
      program.branch(BPF_JEQ, new_file_flags, ask, allow);
      program.mask(new_file_flags);
      targets[i] = program.load(offset_of_argument(call.flags));
    }
    if (call.directory < 0) continue;
    program.branch(BPF_JEQ, static_cast<std::uint32_t>(AT_FDCWD), targets[i], allow);
    targets[i] = program.load(offset_of_argument(call.directory));
  }
  FilterLabel next = allow;
  for (std::size_t i = 0; i < std::size(brokered_calls); ++i)
    next = program.branch(BPF_JEQ, brokered_calls[i].number, targets[i], next);
  next = program.load(offsetof(seccomp_data, nr));
  program.branch(BPF_JEQ, broker_architecture, next, allow);
  program.load(offsetof(seccomp_data, arch));
  return program.finish();
}

CODEEXEC_IN_CHILD bool is_same_text(const char* one, const char* other) {
  while (*one != '\0' && *one == *other) {
    ++one;
    ++other;
  }
  return *one == *other;
}

constexpr std::size_t longest_brokered = broker_buffer_size / 2;

// "/proc/PID/", and a name of four characters at most.
struct ProcessPath {
  char text[24];
};
CODEEXEC_IN_CHILD void set_process_path(ProcessPath& path, std::uint32_t pid, const char* name) {
  std::size_t size = 0;
  for (const char* c = "/proc/"; *c != '\0'; ++c) path.text[size++] = *c;
  size = append_number(path.text, size, pid);
  path.text[size++] = '/';
  while (*name != '\0') path.text[size++] = *name++;
  path.text[size] = '\0';
}

// The text at an address of another process. False: it cannot be read, or is too long. Not by
// process_vm_readv(), which the filter that a supervisor may have refuses.
CODEEXEC_IN_CHILD bool read_path(std::uint32_t pid, std::uint64_t address, char* text) {
  ProcessPath path;
  set_process_path(path, pid, "mem");
  const long memory = raw(SYS_openat, AT_FDCWD, &path.text[0], O_RDONLY | O_CLOEXEC, 0);
  if (memory < 0) return false;
  // It ends where memory ends that can be read.
  const long size = raw(SYS_pread64, memory, text, longest_brokered, address);
  raw(SYS_close, memory);
  for (long i = 0; i < size; ++i)
    if (text[i] == '\0') return true;
  return false;
}

// The working directory of a process, without a NUL; its length, or a negative errno.
CODEEXEC_IN_CHILD long read_directory(std::uint32_t pid, char* text) {
  ProcessPath path;
  set_process_path(path, pid, "cwd");
  return raw(SYS_readlinkat, AT_FDCWD, &path.text[0], text, longest_brokered);
}

// Appends a path name by name. No file system is asked, which might not answer: a path that leads
// through a link is not one of those that are granted.
CODEEXEC_IN_CHILD bool append_path(const char* path, char* text, std::size_t size) {
  while (*path != '\0') {
    std::size_t length = 0;
    while (path[length] != '\0' && path[length] != '/') ++length;
    if (length == 2 && path[0] == '.' && path[1] == '.') {
      while (size > 0 && text[--size] != '/') {
      }
    } else if (length > 1 || (length == 1 && path[0] != '.')) {
      if (size + length + 2 > longest_brokered) return false;
      text[size++] = '/';
      for (std::size_t i = 0; i < length; ++i) text[size++] = path[i];
    }
    path += length;
    while (*path == '/') ++path;
  }
  text[size] = '\0';
  return true;
}

// The granted file that a path of a process means, or null.
CODEEXEC_IN_CHILD const BrokeredFile* find_brokered(const SandboxPlan& plan, std::uint32_t pid,
                                                    std::uint64_t address, char* buffer) {
  char* const path = buffer + longest_brokered;
  if (!read_path(pid, address, buffer)) return nullptr;
  const long begin = buffer[0] == '/' ? 0 : read_directory(pid, path);
  if (begin < 0 || !append_path(buffer, path, begin == 1 ? 0 : static_cast<std::size_t>(begin)))
    return nullptr;
  for (std::size_t i = 0; i < plan.brokered_count; ++i)
    if (is_same_text(plan.brokered[i].path, path)) return &plan.brokered[i];
  return nullptr;
}

// Makes a file, and hands it over as the result of the call. True: the process has its answer.
CODEEXEC_IN_CHILD bool make_brokered(const BrokeredFile& file, int listener, std::uint64_t id,
                                     std::uint64_t flags, std::uint64_t mode, long& error) {
  constexpr std::uint64_t kept = O_ACCMODE | O_CLOEXEC;
  constexpr std::uint64_t permissions = 0666;
  const long made =
      raw(SYS_openat, file.directory, file.name,
          (flags & kept) | new_file_flags | O_NOFOLLOW | O_CLOEXEC, mode & permissions);
  error = made < 0 ? made : 0;
  if (made < 0) return false;
  BrokerDescriptor descriptor;
  descriptor.id = id;
  descriptor.flags = 2;  // SECCOMP_ADDFD_FLAG_SEND
  descriptor.source = static_cast<std::uint32_t>(made);
  descriptor.wanted = 0;
  descriptor.descriptor_flags = static_cast<std::uint32_t>(flags & O_CLOEXEC);
  const long handed = raw(SYS_ioctl, listener, add_descriptor, &descriptor);
  raw(SYS_close, made);
  if (handed >= 0) return true;
  error = handed;
  raw(SYS_unlinkat, file.directory, file.name, 0);
  return false;
}

// Does what a request asks. False: the process has its answer already.
CODEEXEC_IN_CHILD bool answer_request(const SandboxPlan& plan, int listener,
                                      const BrokerRequest& request, char* buffer,
                                      BrokerAnswer& answer) {
  const auto& arguments = request.data.args;
  const BrokeredCall* call = &brokered_calls[0];
  while (call->number != static_cast<unsigned>(request.data.nr)) ++call;
  answer.flags = 1;  // SECCOMP_USER_NOTIF_FLAG_CONTINUE
  const std::uint64_t flags = call->flags < 0 ? 0 : arguments[call->flags];
  if (call->asks != Asks::to_make && flags != 0) return true;
  const BrokeredFile* const file = find_brokered(plan, request.pid, arguments[call->path], buffer);
  if (!file) return true;
  long result = 0;
  if (call->asks == Asks::to_make) {
    if (make_brokered(*file, listener, request.id, flags, arguments[call->flags + 1], result))
      return false;
  } else if (call->asks == Asks::to_remove) {
    result = raw(SYS_unlinkat, file->directory, file->name, 0);
  } else {
    const BrokeredFile* const target =
        find_brokered(plan, request.pid, arguments[call->path + call->step], buffer);
    if (!target) return true;
    result = raw(SYS_renameat2, file->directory, file->name, target->directory, target->name, 0);
  }
  answer.flags = 0;
  answer.error = static_cast<std::int32_t>(result);
  return true;
}

}  // namespace

inline namespace inner {

void plan_broker(SandboxState& state) {
  for (const std::string& path : state.options.replaceable) {
    const std::size_t slash = path.rfind('/');
    auto opened = open_grant(path.substr(0, slash));
    if (!opened || !S_ISDIR(opened->status.st_mode) || opened->status.st_uid != ::geteuid() ||
        objection_to_writing(*opened))
      continue;
    int directory = -1;
    for (const BrokeredDirectory& known : state.broker_directories)
      if (known.path == opened->path) directory = known.fd.get();
    if (directory < 0) {
      if (state.broker_directories.size() == most_broker_directories) continue;
      state.broker_directories.push_back(
          {opened->path, UniqueFd(above_child_descriptors(opened->fd.release()))});
      directory = state.broker_directories.back().fd.get();
    }
    state.brokered_paths.push_back(concat("%%", {opened->path, path.substr(slash)}));
    const std::string& known = state.brokered_paths.back();
    if (directory >= 0 && known.size() < longest_brokered)
      state.brokered.push_back({known.c_str(), known.c_str() + opened->path.size() + 1, directory});
  }
  if (state.brokered.empty()) return;
  state.broker_filter = broker_filter();
  SandboxPlan& plan = state.plan;
  plan.brokered = state.brokered.data();
  plan.brokered_count = state.brokered.size();
  for (const BrokeredDirectory& known : state.broker_directories)
    plan.broker_directories[plan.broker_directory_count++] = known.fd.get();
  plan.broker_filter = state.broker_filter.data();
  plan.broker_filter_size = static_cast<unsigned short>(state.broker_filter.size());
}

CODEEXEC_IN_CHILD long start_broker(const SandboxPlan& plan) {
  constexpr int set_mode_filter = 1;  // SECCOMP_SET_MODE_FILTER
  constexpr int new_listener = 8;     // SECCOMP_FILTER_FLAG_NEW_LISTENER
  const long result = raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (result < 0) return result;
  sock_fprog program;
  program.len = plan.broker_filter_size;
  program.filter = const_cast<sock_filter*>(plan.broker_filter);
  return raw(SYS_seccomp, set_mode_filter, new_listener, &program);
}

CODEEXEC_IN_CHILD void serve_broker(const SandboxPlan& plan, int listener, char* buffer) {
  BrokerRequest request;
  auto* bytes = reinterpret_cast<volatile unsigned char*>(&request);
  for (std::size_t i = 0; i < sizeof request; ++i) bytes[i] = 0;
  // The process may have been killed meanwhile; then no process waits for an answer.
  if (raw(SYS_ioctl, listener, receive_request, &request) < 0) return;
  BrokerAnswer answer;
  answer.id = request.id;
  answer.value = 0;
  answer.error = 0;
  answer.flags = 0;
  if (answer_request(plan, listener, request, buffer, answer))
    raw(SYS_ioctl, listener, send_answer, &answer);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
