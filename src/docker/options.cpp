// Options of a container, checked and completed.

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What can stand in an argv as a word of its own, and in one line.
Expected<void> check_words(std::string_view option, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.empty() || word[0] == '-' || word != printable(word))
      return bad_option(option, concat({quoted(word),
                                        " is empty, begins with - or has bytes that "
                                        "are no text"}));
  return {};
}

// Sockets by which an engine is told what to do: whoever reaches one owns the machine.
std::vector<std::string> engine_sockets(const EngineOptions& engine) {
  std::vector<std::string> sockets = {"/run/docker.sock", "/run/podman/podman.sock",
                                      "/run/containerd/containerd.sock"};
  const auto add_below = [&sockets](const char* variable, std::string_view below) {
    const char* const value = std::getenv(variable);
    if (value && *value == '/') sockets.push_back(concat({value, below}));
  };
  add_below("XDG_RUNTIME_DIR", "/docker.sock");
  add_below("XDG_RUNTIME_DIR", "/podman/podman.sock");
  add_below("HOME", "/.docker/run/docker.sock");
  constexpr std::string_view scheme = "unix://";
  for (const char* variable : {"DOCKER_HOST", "CONTAINER_HOST"}) {
    const char* const value = std::getenv(variable);
    if (value && starts_with(value, scheme)) sockets.emplace_back(value + scheme.size());
  }
  if (starts_with(engine.host, scheme)) sockets.push_back(engine.host.substr(scheme.size()));
  for (std::string& socket : sockets)
    if (auto path = canonical_path(socket)) socket = std::move(*path);
  return sockets;
}

// Why a file or directory of the host must not be seen in a container; null when it may be.
const char* why_not_shared(const std::string& path, bool writable, const EngineOptions& engine) {
  if (path == "/") return "is the whole host";
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) return "is a socket";
  const char* const home = std::getenv("HOME");
  const auto own = canonical_path(home && *home ? home : "/root");
  if (path == "/root" || (own && codeexec::is_within(*own, path)))
    return "is the home directory, or holds it";
  for (const std::string& socket : engine_sockets(engine))
    if (codeexec::is_within(socket, path)) return "holds the socket of a container engine";
  for (const char* kernel : {"/proc", "/sys", "/dev"})
    if (codeexec::is_within(path, kernel) && !starts_with(path, "/dev/shm/"))
      return "belongs to the kernel";
  for (const char* folder : {"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32",
                             "/sbin", "/usr", "/var", "/var/lib", "/run", "/home", "/Users"}) {
    const auto real = canonical_path(folder);
    if (!real) continue;
    if (path == *real) return "is a folder of the host's system";
    const std::string_view base = folder;
    const bool may_hold_work = base == "/usr" || base == "/run" || base == "/home" ||
                               base == "/Users" || starts_with(base, "/var");
    if (writable && !may_hold_work && codeexec::is_within(path, *real))
      return "is in a folder of the host's system, and would be writable";
  }
  return nullptr;
}

Expected<void> complete_mount(Mount& mount, const EngineOptions& engine) {
  const auto given = with_home(mount.source);
  if (!given) return with_prefix({"mounts: "}, given.error());
  auto source = canonical_path(*given);
  if (!source) return with_prefix({"mounts: "}, source.error());
  mount.source = std::move(*source);
  if (mount.target.empty()) mount.target = mount.source;
  const std::string subject = quoted(mount.source);
  struct stat status {};
  if (::stat(mount.source.c_str(), &status) != 0)
    return with_prefix({"mounts: "}, system_error(errno, {subject}));
  if (const char* why = why_not_shared(mount.source, mount.permission == Permission::write, engine))
    return bad_option("mounts", concat({subject, " ", why, ", which no container is given"}));
  if (mount.permission == Permission::none && !S_ISDIR(status.st_mode))
    return bad_option("mounts", concat({subject, " must be a directory to be kept away"}));
  return {};
}

// Where something appears in a container.
Expected<void> check_target(std::string_view option, const std::string& target,
                            std::string_view forbidden, std::set<std::string>& targets) {
  const char* problem = nullptr;
  if (!is_canonical_form(target) || target == "/")
    problem = " must be an absolute path without . and .., and not /";
  else if (target != printable(target) || target.find_first_of(forbidden) != std::string::npos)
    problem = " has a character that the engine cannot take in a path";
  else if (codeexec::is_within(target, "/proc") || codeexec::is_within(target, "/sys") ||
           (codeexec::is_within(target, "/dev") && !starts_with(target, "/dev/shm/")))
    problem = " belongs to the kernel in the container, too";
  else if (!targets.insert(target).second)
    problem = " is where something else appears already";
  if (problem) return bad_option(option, concat({quoted(target), problem}));
  return {};
}

Expected<void> complete_mounts(ContainerOptions& options) {
  std::vector<Mount> mounts;
  for (Mount mount : options.mounts) {
    if (auto ok = complete_mount(mount, options.engine); !ok) return ok.error();
    const auto is_same = [&mount](const Mount& other) {
      return mount.source == other.source && mount.target == other.target &&
             mount.permission == other.permission;
    };
    if (std::none_of(mounts.begin(), mounts.end(), is_same)) mounts.push_back(std::move(mount));
  }
  // What is not mounted need not be kept away.
  const auto is_moot = [&mounts](const Mount& mount) {
    const auto holds = [&mount](const Mount& other) {
      return other.permission != Permission::none &&
             codeexec::is_within(mount.target, other.target);
    };
    return mount.permission == Permission::none &&
           std::none_of(mounts.begin(), mounts.end(), holds);
  };
  std::vector<Mount> wanted;
  for (const Mount& mount : mounts)
    if (!is_moot(mount)) wanted.push_back(mount);
  options.mounts = std::move(wanted);
  // The engine reads a tmpfs up to a colon.
  std::set<std::string> targets;
  for (const Mount& mount : options.mounts) {
    if (auto ok = check_target("mounts", mount.target, "", targets); !ok) return ok.error();
    std::set<std::string> none;
    if (auto ok = check_target("mounts", mount.source, "", none); !ok) return ok.error();
  }
  for (const auto& scratch : options.scratch)
    if (auto ok = check_target("scratch", scratch.first, ",:\"", targets); !ok) return ok.error();
  return {};
}

// What the credentials come to. A home that holds some of them is one that commands can write to.
Expected<void> complete_credentials(ContainerOptions& options) {
  auto credentials = load_credentials(options.credentials);
  if (!credentials) return credentials.error();
  for (const std::string& note : credentials->notes) options.on_progress(note);
  Variables& variables = credentials->variables;
  if (!credentials->mounts.empty()) {
    options.scratch.emplace_back(container_home, options.tmp_size);
    variables.emplace_back("HOME", container_home);
  }
  options.mounts.insert(options.mounts.end(), credentials->mounts.begin(),
                        credentials->mounts.end());
  if (!options.cache.empty())
    for (const auto& [variable, below] : {std::pair<const char*, const char*>("XDG_CACHE_HOME", ""),
                                          {"npm_config_cache", "/npm"},
                                          {"CARGO_HOME", "/cargo"},
                                          {"GOMODCACHE", "/go-mod"}})
      variables.emplace_back(variable, concat({cache_folder, below}));
  if (!options.cache.empty()) variables.emplace_back("PIP_NO_CACHE_DIR", "0");
  variables.insert(variables.end(), options.environment.begin(), options.environment.end());
  options.environment = std::move(variables);
  options.secrets.insert(options.secrets.end(), credentials->secrets.begin(),
                         credentials->secrets.end());
  options.credentials = CredentialOptions();
  return {};
}

Expected<void> check_packages(const ContainerOptions& options) {
  const PackageOptions& packages = options.packages;
  if (packages.empty()) return {};
  for (const auto* list : {&packages.system, &packages.python, &packages.npm})
    if (auto ok = check_words("packages", *list); !ok) return ok.error();
  if (network(options) == "none")
    return bad_option("packages", "installing needs a network: set network to bridge");
  if (!options.sudo && !(packages.system.empty() && packages.npm.empty()))
    return bad_option("packages", "system and npm packages need sudo");
  if (!*options.read_only_root) return {};
  return bad_option("packages", "read_only_root leaves no place to install them");
}

// Whether the name of an engine's option is one of a list, which begins and ends with a blank.
bool is_listed(std::string_view word, std::string_view list) {
  return list.find(concat({" ", word.substr(0, word.find('=')), " "})) != std::string_view::npos;
}

// What is set here, and what would part the container from this program.
Expected<void> check_engine_words(std::vector<std::string>& words) {
  for (std::string& word : words) {
    word.erase(0, std::min(word.find_first_not_of('-'), word.size()));
    const std::string_view option = std::string_view(word).substr(0, word.find('='));
    if (!is_plain(option, "-") || option.size() < 2 || word != printable(word))
      return bad_option("engine_options",
                        concat({quoted(word), " is no long option such as device=/dev/fuse"}));
    if (is_listed(word,
                  " attach cidfile detach detach-keys entrypoint help interactive label label-file "
                  "name net network pull restart rm sig-proxy stop-signal tty user "))
      return bad_option("engine_options", concat({quoted(option), " is set by codeexec itself"}));
  }
  return {};
}

Expected<void> check_bounds(const ContainerOptions& options) {
  constexpr std::uint64_t least_memory = std::uint64_t{6} << 20;
  if (options.memory != 0 && options.memory < least_memory)
    return bad_option("memory", "must be 6 MiB or more, or 0 for no bound");
  constexpr double most_cpus = 1e6;
  if (!(options.cpus == 0 || (options.cpus >= 0.01 && options.cpus <= most_cpus)))
    return bad_option("cpus", "must be 0.01 or more, or 0 for no bound");
  constexpr std::size_t most_warm = 64;
  if (options.warm > most_warm) return bad_option("warm", "must be 64 or less");
  if (options.start_timeout.count() <= 0 || options.packages.timeout.count() <= 0)
    return bad_option("timeouts of a container", "must be more than zero");
  return {};
}

}  // namespace

inline namespace inner {

Error bad_option(std::string_view option, std::string_view problem) {
  return make_error(ErrorCode::invalid_argument, {option, ": ", problem});
}

bool is_plain(std::string_view text, std::string_view more) {
  constexpr std::size_t longest = 512;
  if (text.empty() || text.size() > longest || more.find(text[0]) != std::string_view::npos)
    return false;
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return is_name_char(c) || more.find(c) != std::string_view::npos;
  });
}

std::string network(const ContainerOptions& options) {
  return options.network_name.empty() ? name(options.network) : options.network_name;
}

std::string weakened_by(const ContainerOptions& options) {
  std::string found;
  for (const std::string& word : options.engine_options) {
    const bool is_unconfined = word.find("unconfined") != std::string::npos ||
                               word.find("disable") != std::string::npos ||
                               word.find("false") != std::string::npos;
    const bool is_shared = ends_with(word, "=host");
    if (is_listed(
            word,
            " cap-add cgroup-parent device device-cgroup-rule gpus group-add mount privileged "
            "sysctl volume volumes-from ") ||
        (is_unconfined && is_listed(word, " security-opt ")) ||
        (is_shared && is_listed(word, " cgroupns ipc pid userns uts ")))
      found += concat({found.empty() ? "" : " ", word});
  }
  return found;
}

Expected<void> check_engine_options(const EngineOptions& engine) {
  if (auto ok = check_words("engine program", {engine.program}); !ok) return ok.error();
  for (const std::string* value : {&engine.context, &engine.host})
    if (!value->empty())
      if (auto ok = check_words("engine context or host", {*value}); !ok) return ok.error();
  if (!engine.context.empty() && !engine.host.empty())
    return bad_option("engine context", "there is a host, too: leave one of them out");
  for (const auto time : {engine.call_timeout, engine.run_timeout, engine.pull_timeout})
    if (time.count() <= 0) return bad_option("engine timeouts", "must be more than zero");
  return {};
}

}  // namespace inner

Expected<ContainerOptions> complete(const ContainerOptions& options) {
  ContainerOptions complete = options;
  if (complete.image.empty())
    complete.image = options.sudo ? "codeexec/runtime-sudo:latest" : "codeexec/runtime:latest";
  if (!complete.read_only_root) complete.read_only_root = !options.sudo && options.packages.empty();
  if (auto ok = check_engine_options(complete.engine); !ok) return ok.error();
  if (!is_plain(complete.image, "./:@-"))
    return bad_option("image", concat({quoted(complete.image), " is no name of an image"}));
  if (!complete.user.empty() && !is_plain(complete.user, ".:-"))
    return bad_option("user", concat({quoted(complete.user), " is no user of a container"}));
  for (const auto& id : {complete.agent_id, complete.instance_id})
    if (has_nul(id) || id.size() > 4096)
      return bad_option("agent_id", "has a NUL byte or is longer than 4096 bytes");
  for (const auto& [variable, value] : complete.environment)
    if (variable.empty() || variable.find('=') != std::string::npos ||
        variable != printable(variable) || has_nul(value))
      return bad_option("environment", concat({quoted(variable), " cannot be a variable"}));
  if (auto ok = check_bounds(complete); !ok) return ok.error();
  if (auto ok = check_engine_words(complete.engine_options); !ok) return ok.error();
  if (!complete.network_name.empty() && !is_plain(complete.network_name, ".-"))
    return bad_option("network",
                      concat({quoted(complete.network_name), " is no name of a network"}));
  if (!complete.cache.empty() && !is_plain(complete.cache, ".-"))
    return bad_option("cache", concat({quoted(complete.cache), " is no name of a cache"}));
  if (const std::string weak = weakened_by(complete); !weak.empty())
    complete.on_progress(concat({"engine_options: the container is held less by ", weak}));
  if (auto ok = check_packages(complete); !ok) return ok.error();
  if (auto ok = complete_credentials(complete); !ok) return ok.error();
  if (auto ok = complete_mounts(complete); !ok) return ok.error();
  if (complete.log_file.empty()) return complete;
  auto log_file = canonical_path(complete.log_file);
  if (!log_file) return with_prefix({"log_file: "}, log_file.error());
  complete.log_file = std::move(*log_file);
  for (const Mount& mount : complete.mounts)
    if (mount.permission == Permission::write &&
        codeexec::is_within(complete.log_file, mount.source))
      return bad_option("log_file",
                        concat({quoted(complete.log_file), " lies where commands may write"}));
  return complete;
}

}  // namespace v0_1
}  // namespace codeexec
