// Granted paths, opened by name once, and the ruleset of Landlock.

#include "sandbox/child_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

bool link_is_trusted(const UniqueFd& directory, const std::string& path) {
  return path.empty() || ::faccessat(directory.get(), ".", W_OK, AT_EACCESS) != 0;
}

Expected<OpenedGrant> open_by_name(
    const std::string& path, FunctionRef<bool(const UniqueFd&, const std::string&)> may_follow) {
  constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  constexpr int most_links_followed = 40;
  const std::string subject = concat({"grants: ", quoted(path)});
  OpenedGrant grant;
  grant.fd.reset(::open("/", flags));
  if (!grant.fd || ::fstat(grant.fd.get(), &grant.status) != 0)
    return system_error(errno, {subject});
  std::string todo = path;
  std::size_t at = 0;
  int links = 0;
  while (at < todo.size()) {
    const std::size_t end = std::min(todo.find('/', at), todo.size());
    const std::string part = todo.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    UniqueFd next(::openat(grant.fd.get(), part.c_str(), flags));
    if (!next || ::fstat(next.get(), &grant.status) != 0) return system_error(errno, {subject});
    if (!S_ISLNK(grant.status.st_mode)) {
      grant.fd = std::move(next);
      if (part != "..") {
        grant.path += '/';
        grant.path += part;
      } else if (!grant.path.empty()) {
        grant.path.resize(grant.path.rfind('/'));
      }
      continue;
    }
    const std::string link = concat({grant.path, "/", part});
    if (!may_follow(grant.fd, grant.path))
      return make_error(ErrorCode::permission_denied, {subject, " leads through the symbolic link ",
                                                       quoted(link), "; name the real directory"});
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(next.get(), "", target, sizeof target);
    if (size < 0) return system_error(errno, {subject});
    if (++links > most_links_followed) return system_error(ELOOP, {subject});
    const std::string rest = at < todo.size() ? todo.substr(at) : std::string();
    todo = concat({{target, static_cast<std::size_t>(size)}, "/", rest});
    at = 0;
    if (target[0] != '/') continue;
    grant.fd.reset(::open("/", flags));
    if (!grant.fd || ::fstat(grant.fd.get(), &grant.status) != 0)
      return system_error(errno, {subject});
    grant.path.clear();
  }
  if (grant.path.empty()) grant.path = "/";
  return grant;
}

Expected<OpenedGrant> open_grant(const std::string& path) {
  return open_by_name(path, [](const UniqueFd& directory, const std::string& lies_in) {
    return link_is_trusted(directory, lies_in);
  });
}

const char* objection_to_writing(const OpenedGrant& grant) {
  for (const std::string_view directory : system_directories)
    if (codeexec::is_within(directory, grant.path))
      return "is a directory of the system, or above one";
  for (const std::string_view directory : {"/proc", "/sys", "/dev", "/boot"})
    if (codeexec::is_within(grant.path, directory) && !starts_with(grant.path, "/dev/shm/"))
      return "belongs to the system";
  if (!S_ISDIR(grant.status.st_mode) && !S_ISREG(grant.status.st_mode))
    return "is neither a directory nor a regular file";
  return nullptr;
}

}  // namespace inner

namespace {

// The ruleset -------------------------------------------------------------------------------------

// What each ABI of Landlock can forbid; of newer ones than the last only that.
constexpr std::uint64_t rights_of_abi[] = {0,      0x1fff, 0x3fff, 0x7fff, 0x7fff,
                                           0xffff, 0xffff, 0xffff, 0xffff, 0x1ffff};
constexpr int newest_known_abi = 9;

constexpr int tcp_abi = 4;

}  // namespace

inline namespace inner {

bool Ruleset::create(int abi, const SandboxOptions& options) {
  const int known = std::min(abi, newest_known_abi);
  attributes_.handled_fs = rights_of_abi[known];
  // Sockets with a path are the user's to allow, and belong to the network otherwise.
  if (options.network == Network::host || options.unix_sockets)
    attributes_.handled_fs &= ~right_resolve_unix;
  size_ = sizeof attributes_.handled_fs;
  if (known >= tcp_abi) {
    constexpr std::uint64_t bind_and_connect = 3;
    size_ += sizeof attributes_.handled_net;
    if (options.network == Network::none) attributes_.handled_net = bind_and_connect;
  }
  if (known >= scope_abi) {
    constexpr std::uint64_t abstract_sockets_and_signals = 3;
    size_ += sizeof attributes_.scoped;
    attributes_.scoped = abstract_sockets_and_signals;
  }
  const long fd = ::syscall(number_of_landlock_create_ruleset, &attributes_, size_, 0);
  fd_.reset(above_child_descriptors(static_cast<int>(fd)));
  return static_cast<bool>(fd_);
}

bool Ruleset::add(UniqueFd file, mode_t mode, std::uint64_t rights) {
  if (!S_ISDIR(mode)) rights &= file_rights;
  LandlockRule rule;
  rule.rights = rights & attributes_.handled_fs;
  rule.fd = file.get();
  // The kernel refuses a rule without rights, which says nothing anyway.
  if (rule.rights == 0) return true;
  if (::syscall(number_of_landlock_add_rule, fd_.get(), rule_path_beneath, &rule, 0) != 0) {
    error_ = errno;
    return false;
  }
  if (keep_) {
    rules.push_back(rule);
    files.push_back(std::move(file));
  }
  return true;
}

void Ruleset::add_path(const std::string& path, std::uint64_t rights, int flags) {
  UniqueFd file(above_standard_streams(::open(path.c_str(), O_PATH | O_CLOEXEC | flags)));
  struct stat status {};
  if (file && ::fstat(file.get(), &status) == 0 && !S_ISLNK(status.st_mode))
    add(std::move(file), status.st_mode, rights);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
