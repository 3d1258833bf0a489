// The agent in a container.

#include "agent/contained_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Appends to a file of the system, or makes it. A failure is ignored: a root may be read-only.
void add_to(const char* path, std::string_view text, mode_t mode) {
  const UniqueFd file(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, mode));
  if (file) (void)write_all(file.get(), text);
}

// The number of a user or group; -1 for a text that is not one of the kernel's.
long id_in(const std::string& text) {
  constexpr long long most = 0xfffffffe;
  if (text.empty() || !all_are(text, is_digit)) return -1;
  const long long number = std::strtoll(text.c_str(), nullptr, 10);
  return number > most ? -1 : static_cast<long>(number);
}

bool is_in_path(std::string_view name) {
  const char* const path = std::getenv("PATH");
  for (std::string_view rest = path ? path : "/bin:/usr/bin"; !rest.empty();)
    if (::access(concat("%/%", {take_part(rest, ':'), name}).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace

inline namespace inner {

// Of cgroup v2, or of v1. Where neither is seen it is 0 before and after, and no command is said to
// have run out of memory.
std::uint64_t oom_kills_here() {
#if CODEEXEC_HAS_SANDBOX
  for (const char* path :
       {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"})
    if (const auto text = read_whole_file(path, 4096, "file"sv))
      return counter_in(*text, "oom_kill"sv);
#endif
  return 0;
}

// Programs such as ssh and sudo serve only users that have a name, and the engine runs commands by
// number. A step that fails is left out, as the root may be read-only: what commands then lack is
// reported by the command that needs it.
Json prepare_container(const Json& wanted) {
  const std::string& uid = wanted["uid"sv].as_string();
  bool is_known = uid.empty();
  for (const SystemUser& user : system_users("/etc/passwd")) is_known = is_known || user.uid == uid;
  if (!is_known)
    add_to("/etc/passwd",
           concat("user%:x:%:%::%:/bin/sh\n",
                  {uid, uid, wanted["gid"sv].as_string(), wanted["home"sv].as_string()}),
           0644);
  if (!uid.empty()) {
    constexpr char rule[] = "/etc/sudoers.d/codeexec";
    (void)::unlink(rule);
    add_to(rule, concat("#% ALL=(ALL:ALL) NOPASSWD: ALL\n", {uid}), 0440);
  }
  for (const std::string& path : texts_in(wanted["folders"sv])) {
    (void)::mkdir(path.c_str(), 0777);
    (void)::chmod(path.c_str(), 01777);
  }
  std::vector<std::string> lacks;
  for (std::string& program : texts_in(wanted["programs"sv]))
    if (!is_in_path(program)) lacks.push_back(std::move(program));
  return list_of(lacks);
}

// The engine has made the process of the right user, or root's where commands may use sudo. Here it
// loses its capabilities, and commands get what a login would set: USER, LOGNAME, and a HOME that
// they may write to, which is /tmp where theirs is not their own. A .gitconfig that is there is
// kept.
bool settle_in_container(const Json& hello, long& uid, long& gid) {
#if CODEEXEC_HAS_SANDBOX
  const CapabilityHeader header = {};
  const CapabilityData none[2] = {};
  if (!hello["keeps"sv].as_bool()) ::syscall(SYS_capset, &header, &none[0]);
#endif
  std::string_view group = hello["user"sv].as_string();
  SystemUser user;
  user.uid = take_part(group, ':');
  user.gid = group;
  const bool becomes = !user.uid.empty();
  if (!becomes) user.uid = std::to_string(::getuid());
  user.name = concat("user%", {user.uid});
  for (SystemUser& known : system_users("/etc/passwd")) {
    if (known.uid != user.uid && (known.name != user.uid || !becomes)) continue;
    if (!user.gid.empty()) known.gid.swap(user.gid);
    user = std::move(known);
  }
  if (becomes) {
    for (const SystemUser& known : system_users("/etc/group"))
      if (known.name == user.gid) user.gid = known.uid;
    uid = id_in(user.uid);
    gid = id_in(user.gid);
    if (uid < 0 || gid < 0) return false;
  } else if (const char* const given = std::getenv("HOME")) {
    user.home = given;
  }
  if (const std::string& given = hello["home"sv].as_string(); !given.empty()) user.home = given;
  struct stat status {};
  const bool is_own =
      ::stat(user.home.c_str(), &status) == 0 &&
      (becomes ? status.st_uid == static_cast<uid_t>(uid) || (status.st_mode & S_IWOTH) != 0
               : ::access(user.home.c_str(), W_OK) == 0);
  if (!is_own) user.home = "/tmp";
  ::setenv("HOME", user.home.c_str(), 1);
  if (const std::string& text = hello["gitconfig"sv].as_string();
      !text.empty() && !std::getenv("GIT_CONFIG_GLOBAL")) {
    const UniqueFd file(::open(concat("%/.gitconfig", {user.home}).c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (file) (void)write_all(file.get(), text);
    if (file && becomes)
      (void)!::fchown(file.get(), static_cast<uid_t>(uid), static_cast<gid_t>(gid));
  }
  for (const char* variable : {"USER", "LOGNAME"})
    ::setenv(variable, user.name.c_str(), becomes ? 1 : 0);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
