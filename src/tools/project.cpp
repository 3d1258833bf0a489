// The folder that commands are confined to when no option names one: the project that the server
// was started in, or an empty folder when that is none.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A file by what the kernel knows it by: a bind mount and another spelling are the same one.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity& other) const {
    return device == other.device && inode == other.inode;
  }
};

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino};
}

bool is_same_file(const FileIdentity& one, const std::string& path) {
  const auto other = identity_of(path);
  return other && one == *other;
}

// Directories that hold those of users, each in one of its own.
constexpr const char* parents_of_homes[] = {"/home", "/Users"};

// Directories of a system. A project may lie below one, and is never one as a whole.
constexpr const char* system_directories[] = {
    "/",          "/bin",           "/boot",          "/dev",       "/etc",         "/home",
    "/lib",       "/lib64",         "/media",         "/mnt",       "/nix",         "/opt",
    "/proc",      "/root",          "/run",           "/sbin",      "/snap",        "/srv",
    "/sys",       "/tmp",           "/usr",           "/usr/bin",   "/usr/include", "/usr/lib",
    "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/sbin",  "/usr/share",   "/var",
    "/var/cache", "/var/lib",       "/var/log",       "/var/spool", "/var/tmp",     "/dev/shm",
    "/Library",   "/System",        "/Applications",  "/Users",     "/Volumes",     "/private"};

// All of what these have in them belongs to the kernel.
constexpr const char* kernel_directories[] = {"/proc", "/sys", "/dev"};

// Whether the directory is the home of this user, or lies around it.
bool is_around_home(const FileIdentity& directory) {
  const char* const home = std::getenv("HOME");
  const auto path = canonical_path(home && *home == '/' ? home : "/");
  if (!path) return false;
  for (std::string at = *path; !at.empty(); at.resize(at.rfind('/')))
    if (is_same_file(directory, at)) return true;
  return false;
}

}  // namespace

inline namespace inner {

// The directory is opened once, and judged by what was opened.
std::string project_problem(const std::string& path) {
  const auto canonical = canonical_path(path);
  if (!canonical) return canonical.error().message;
  const auto directory = open_canonical_directory(*canonical);
  if (!directory && directory.error().system_error == ENOTDIR) return "is not a directory";
  struct stat status {};
  if (!directory || ::fstat(directory->get(), &status) != 0)
    return concat("cannot be used: %",
                  {errno_text(directory ? errno : directory.error().system_error)});
  const FileIdentity identity = {status.st_dev, status.st_ino};
  struct stat above {};
  const bool has_above = ::fstatat(directory->get(), "..", &above, 0) == 0;
  for (const char* const parent : parents_of_homes)
    if (has_above && is_same_file({above.st_dev, above.st_ino}, parent) &&
        !is_same_file(identity, "/"))
      return "is a home directory";
  for (const char* const kernel : kernel_directories)
    if (codeexec::is_within(*canonical, kernel)) return "belongs to the system";
  for (const char* const one : system_directories)
    if (is_same_file(identity, one))
      return std::string_view(one) == "/root" ? "is a home directory"
                                              : "is a directory of the system";
  if (is_around_home(identity)) return "is a home directory, or lies around one";
  return {};
}

}  // namespace inner

namespace {

// The directory that commands start in; empty: the current one. Clients start servers anywhere:
// when commands may not work in the current directory, it is the first allowed path.
std::string workspace_of(const ServerConfig& config) {
  const std::vector<Root>& allowed = config.local.roots;
  if (!config.local.workspace.empty() || allowed.empty()) return config.local.workspace;
  if (config.works_elsewhere) return allowed[0].path;
  const auto rules = PathRules::create(allowed);
  const auto here = canonical_path("."sv);
  const bool may_work_here = !rules || !here || rules->permission(*here) != Permission::none;
  return may_work_here ? std::string() : allowed[0].path;
}

// What commands may change when no option says it: the workspace, and nothing when that is one of
// the read-only paths itself; all when they are not confined.
void add_implied_root(ServerConfig& config, bool confined) {
  LocalOptions& local = config.local;
  if (!confined) return local.roots.push_back({"/", Permission::write});
  const std::string workspace = local.workspace.empty() ? "." : local.workspace;
  const auto canonical = canonical_path(workspace);
  for (const std::string& path : config.read_only) {
    const auto other = canonical_path(path);
    if (config.use == Option::local && canonical && other && *canonical == *other) return;
  }
  local.roots.push_back({workspace, Permission::write});
}

// The variables of this process are dropped before an executor is made for other roots.
void keep_secrets(EnvironmentOptions& options) {
  for (const std::string& name : options.secret) {
    const char* const value = std::getenv(name.c_str());
    if (value && !sets_variable(options.set, name)) options.set.push_back({name, value});
  }
}

// Takes the current directory for the workspace, or an empty folder when it is no project. At a
// place elsewhere no such folder can be made: create_place() then refuses.
Expected<void> settle_project(ServerConfig& config) {
  LocalOptions& local = config.local;
  const auto here = canonical_path("."sv);
  if (!here) return with_prefix("workspace: ", {}, here.error());
  const std::string problem = project_problem(*here);
  if (problem.empty()) {
    local.workspace = *here;
    return {};
  }
  config.no_project = concat("% %", {printable(*here), problem});
  if (config.use != Option::local) return {};
  auto folder = PrivateFolder::create("workspace", "codeexec-empty-"sv);
  if (!folder) return folder.failure();
  if (::unlinkat((*folder)->fd(), "tmp", AT_REMOVEDIR) != 0)
    return system_error(errno, "workspace: cannot empty %", {in_quotes((*folder)->path())});
  config.empty_folder = std::move(*folder);
  local.workspace = config.empty_folder->path();
  return {};
}

}  // namespace

inline namespace inner {

Expected<void> settle_folders(ServerConfig& config) {
  LocalOptions& local = config.local;
  const bool names_none = local.roots.empty() && local.workspace.empty();
  config.is_bare = names_none && config.sandbox == SandboxMode::best_effort;
  local.sandbox.mode = config.sandbox;
  const bool confined = config.use == Option::docker || local.sandbox.mode != SandboxMode::off;
  config.takes_roots = config.use == Option::local && local.workspace.empty();
  config.narrows_roots = !local.roots.empty();
  if (names_none && confined && (config.use & Option::kernel) && !config.works_elsewhere)
    if (auto ok = settle_project(config); !ok) return ok;
  if (config.use == Option::local && !local.workspace.empty())
    if (const auto found = PathRules().open_work_dir(local.workspace, "."); !found)
      return with_prefix("workspace: ", {}, found.error());
  local.workspace = workspace_of(config);
  if (config.takes_roots) keep_secrets(local.environment);
  const bool is_here = config.use == Option::local && confined;
  if (local.roots.empty() && (is_here || !config.read_only.empty()))
    add_implied_root(config, confined);
  for (const std::string& path : config.read_only) local.roots.push_back({path, Permission::read});
  return {};
}

std::string note_of_no_project(const ServerConfig& config) {
  if (config.no_project.empty()) return {};
  return concat(
      "commands run in an empty folder, as %: set --allowed-paths DIR, or start the "
      "server in a project",
      {config.no_project});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
