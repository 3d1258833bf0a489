// Granted paths, opened by name once, and the ruleset of Landlock.

#include "sandbox/child_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

bool open_at(const UniqueFd& directory, const char* entry, UniqueFd& fd, struct stat& status) {
  constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  fd.reset(::openat(directory.get(), entry, flags));
  return fd && ::fstat(fd.get(), &status) == 0;
}

// Walks from `/` name by name, and leaves the last file in `grant`. An errno, or 0. A link that may
// not be followed ends the walk: its path is put in `planted`.
int walk_by_name(const std::string& path,
                 FunctionRef<bool(const UniqueFd&, const std::string&)> may_follow,
                 OpenedGrant& grant, std::string& planted) {
  constexpr int most_links_followed = 40;
  if (!open_at(grant.fd, "/", grant.fd, grant.status)) return errno;
  std::string todo = path;
  std::size_t at = 0;
  int links = 0;
  while (at < todo.size()) {
    const std::size_t end = std::min(todo.find('/', at), todo.size());
    const std::string part = todo.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    UniqueFd next;
    if (!open_at(grant.fd, part.c_str(), next, grant.status)) return errno;
    if (!S_ISLNK(grant.status.st_mode)) {
      grant.fd = std::move(next);
      if (part != "..")
        append_all(grant.path, "/%", {part});
      else if (!grant.path.empty())
        grant.path.resize(grant.path.rfind('/'));
      continue;
    }
    if (!may_follow(grant.fd, grant.path)) {
      planted = concat("%/%", {grant.path, part});
      return 0;
    }
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(next.get(), "", target, sizeof target);
    if (size < 0) return errno;
    if (++links > most_links_followed) return ELOOP;
    const std::string_view rest = std::string_view(todo).substr(std::min(at, todo.size()));
    todo = concat("%/%", {std::string_view(target, static_cast<std::size_t>(size)), rest});
    at = 0;
    if (target[0] != '/') continue;
    if (!open_at(grant.fd, "/", grant.fd, grant.status)) return errno;
    grant.path.clear();
  }
  return 0;
}

}  // namespace

inline namespace inner {

bool link_is_trusted(const UniqueFd& directory, const std::string& path) {
  return path.empty() || ::faccessat(directory.get(), ".", W_OK, AT_EACCESS) != 0;
}

Expected<OpenedGrant> open_by_name(
    const std::string& path, FunctionRef<bool(const UniqueFd&, const std::string&)> may_follow) {
  OpenedGrant grant;
  std::string planted;
  const int error = walk_by_name(path, may_follow, grant, planted);
  const std::string subject = concat("grants: %", {in_quotes(path)});
  if (!planted.empty())
    return make_error(ErrorCode::permission_denied,
                      "% leads through the symbolic link %; name the real directory",
                      {subject, in_quotes(planted)});
  if (error != 0) return system_error(error, "%", {subject});
  if (grant.path.empty()) grant.path = "/";
  return grant;
}

Expected<OpenedGrant> open_grant(const std::string& path) {
  return open_by_name(path, [](const UniqueFd& directory, const std::string& lies_in) {
    return link_is_trusted(directory, lies_in);
  });
}

const char* objection_to_writing(const OpenedGrant& grant) {
  if (is_above_system(grant.path)) return "is a directory of the system, or above one";
  static constexpr auto of_kernel = NameSet{"/boot", "/dev", "/proc", "/sys"};
  if (lies_in_one_of(grant.path, of_kernel) && !starts_with(grant.path, "/dev/shm/"sv))
    return "belongs to the system";
  if (!S_ISDIR(grant.status.st_mode) && !S_ISREG(grant.status.st_mode))
    return "is neither a directory nor a regular file";
  return nullptr;
}

}  // namespace inner

namespace {

// The ruleset -------------------------------------------------------------------------------------

// What each ABI of Landlock can forbid. Of a newer ABI only what the last one here can.
constexpr std::uint64_t rights_of_abi[] = {0,      0x1fff, 0x3fff, 0x7fff, 0x7fff,
                                           0xffff, 0xffff, 0xffff, 0xffff, 0x1ffff};
constexpr int newest_known_abi = 9;

constexpr int tcp_abi = 4;

}  // namespace

inline namespace inner {

bool Ruleset::create(int abi, Network network, bool unix_sockets) {
  const int known = std::min(abi, newest_known_abi);
  attributes_.handled_fs = rights_of_abi[known];
  // Sockets with a path can be reached with the network of the host, or when the option says so.
  if (network == Network::host || unix_sockets) attributes_.handled_fs &= ~right_resolve_unix;
  size_ = sizeof attributes_.handled_fs;
  if (known >= tcp_abi) {
    constexpr std::uint64_t bind_and_connect = 3;
    size_ += sizeof attributes_.handled_net;
    if (network == Network::none) attributes_.handled_net = bind_and_connect;
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

bool Ruleset::add(UniqueFd file, mode_t mode, std::uint64_t rights, const std::string& path) {
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
  reaches_tmp_ = reaches_tmp_ || codeexec::is_within(path, "/tmp"sv);
  if (keep_names_) named.push_back({rule.rights, path});
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
    add(std::move(file), status.st_mode, rights, path);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
