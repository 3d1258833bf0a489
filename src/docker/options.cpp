// Options of a container, checked and completed.
//
// complete_options() runs the steps in a row; each completes some options in their places, and the
// first error ends it. What is mounted is checked with care: a container is only as separate from
// the host as its mounts let it be. Refused are the whole host, sockets, the home directory,
// folders of the system that would be writable, and each folder with the socket of an engine, as
// that socket gives all rights on the machine.

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

// The option that is wrong stands first in each message, as a user writes it.
Expected<void> bad_option(std::string_view option, std::string_view problem) {
  return make_error(ErrorCode::invalid_argument, "%: %", {option, problem});
}

// Fails for a word that an argv would take for an option, or that does not fit on one line.
Expected<void> check_words(std::string_view option, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.empty() || word[0] == '-' || word != printable(word))
      return bad_option_value(option, word,
                              " is empty, begins with - or has bytes that are no text"sv);
  return {};
}

// Empty, as if it were not set, which for these means the same.
std::string_view variable_of_host(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// Whether a path of the host, or where it leads, lies in a directory.
bool leads_into(std::string_view directory, std::string_view path) {
  const auto real = canonical_path(path);
  return codeexec::is_within(real ? std::string_view(*real) : path, directory);
}

// True if a directory has the socket of an engine. A command that reaches one owns the machine.
bool has_engine_socket(const std::string& directory, const EngineOptions& engine) {
  struct {
    const char* variable;
    std::string_view below;
  } constexpr sockets[] = {{"", "/run/docker.sock"},
                           {"", "/run/podman/podman.sock"},
                           {"", "/run/containerd/containerd.sock"},
                           {"XDG_RUNTIME_DIR", "/docker.sock"},
                           {"XDG_RUNTIME_DIR", "/podman/podman.sock"},
                           {"HOME", "/.docker/run/docker.sock"}};
  for (const auto& socket : sockets) {
    const std::string_view start = variable_of_host(socket.variable);
    if ((!*socket.variable || starts_with(start, "/"sv)) &&
        leads_into(directory, concat({start, socket.below})))
      return true;
  }
  constexpr std::string_view scheme = "unix://";
  for (const std::string_view address :
       {variable_of_host("DOCKER_HOST"), variable_of_host("CONTAINER_HOST"),
        std::string_view(engine.host)})
    if (starts_with(address, scheme) && leads_into(directory, address.substr(scheme.size())))
      return true;
  return false;
}

// True for paths below /proc, /sys and /dev, but for files in /dev/shm.
bool belongs_to_kernel(std::string_view path) {
  for (const char* kernel : {"/proc", "/sys", "/dev"})
    if (codeexec::is_within(path, kernel)) return !starts_with(path, "/dev/shm/"sv);
  return false;
}

// Why a file or directory of the host must not be seen in a container; null when it may be.
const char* why_not_shared(const std::string& path, mode_t mode, bool writable,
                           const EngineOptions& engine) {
  if (path == "/") return "is the whole host";
  if (S_ISSOCK(mode)) return "is a socket";
  const std::string_view home = variable_of_host("HOME");
  const auto own = canonical_path(home.empty() ? "/root"sv : home);
  if (path == "/root" || (own && codeexec::is_within(*own, path)))
    return "is the home directory, or holds it";
  if (has_engine_socket(path, engine)) return "holds the socket of a container engine";
  if (belongs_to_kernel(path)) return "belongs to the kernel";
  // Folders below those after the empty one may hold work, and may be writable.
  bool may_hold_work = false;
  for (const std::string_view folder :
       {"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "", "/usr", "/var",
        "/var/lib", "/run", "/home", "/Users"}) {
    may_hold_work = may_hold_work || folder.empty();
    const auto real = canonical_path(folder);
    if (!real) continue;
    if (path == *real) return "is a folder of the host's system";
    if (writable && !may_hold_work && codeexec::is_within(path, *real))
      return "is in a folder of the host's system, and would be writable";
  }
  return nullptr;
}

// Follows links and fills in the target. Fails for a source that no container is given.
Expected<void> complete_mount(Mount& mount, const EngineOptions& engine) {
  auto source = with_home(mount.source);
  if (source) source = canonical_path(*source);
  if (!source) return with_prefix("mounts: ", {}, source.error());
  mount.source = std::move(*source);
  if (mount.target.empty()) mount.target = mount.source;
  struct stat status {};
  if (::stat(mount.source.c_str(), &status) != 0)
    return system_error(errno, "mounts: %", {in_quotes(mount.source)});
  if (const char* why = why_not_shared(mount.source, status.st_mode,
                                       mount.permission == Permission::write, engine))
    return bad_option_value("mounts", mount.source,
                            concat(" %, which no container is given", {why}));
  if (mount.permission == Permission::none && !S_ISDIR(status.st_mode))
    return bad_option_value("mounts"sv, mount.source, " must be a directory to be kept away"sv);
  return {};
}

// Where something appears in a container.
Expected<void> check_target(std::string_view option, const std::string& target,
                            std::string_view forbidden, std::vector<std::string>& targets) {
  const char* problem = nullptr;
  if (!is_canonical_form(target) || target == "/")
    problem = " must be an absolute path without . and .., and not /";
  else if (target != printable(target) || target.find_first_of(forbidden) != std::string::npos)
    problem = " has a character that the engine cannot take in a path";
  else if (belongs_to_kernel(target))
    problem = " belongs to the kernel in the container, too";
  else if (is_one_of(target, targets))
    problem = " is where something else appears already";
  targets.push_back(target);
  return problem ? bad_option_value(option, target, problem) : Expected<void>();
}

// The same mount may come from a root, from the options and from the credentials.
bool has_same(const std::vector<Mount>& mounts, const Mount& wanted) {
  for (const Mount& mount : mounts)
    if (mount.source == wanted.source && mount.target == wanted.target &&
        mount.permission == wanted.permission)
      return true;
  return false;
}

// True for a folder that is to be kept away and is not below any that is mounted.
bool is_moot(const std::vector<Mount>& mounts, const Mount& wanted) {
  if (wanted.permission != Permission::none) return false;
  for (const Mount& mount : mounts)
    if (mount.permission != Permission::none && codeexec::is_within(wanted.target, mount.target))
      return false;
  return true;
}

// Leaves out mounts that are given twice, and those that keep away what is not seen anyway. Two
// mounts with one target are an error.
Expected<void> complete_mounts(ContainerOptions& options) {
  std::vector<Mount> mounts;
  for (Mount& mount : options.mounts) {
    if (auto ok = complete_mount(mount, options.engine); !ok) return ok;
    if (!has_same(mounts, mount)) mounts.push_back(std::move(mount));
  }
  options.mounts.clear();
  std::vector<std::string> targets;
  for (Mount& mount : mounts) {
    if (is_moot(mounts, mount)) continue;
    std::vector<std::string> none;
    if (auto ok = check_target("mounts"sv, mount.target, ""sv, targets); !ok) return ok;
    if (auto ok = check_target("mounts"sv, mount.source, ""sv, none); !ok) return ok;
    options.mounts.push_back(mount);
  }
  // The engine reads a tmpfs up to a colon.
  for (const auto& scratch : options.scratch)
    if (auto ok = check_target("scratch"sv, scratch.first, ",:\""sv, targets); !ok) return ok;
  return {};
}

// Adds the mounts and variables of the credentials. Files of the user are mounted into a home that
// commands can write to otherwise.
Expected<void> complete_credentials(ContainerOptions& options) {
  auto credentials = load_credentials(options);
  if (!credentials) return credentials.failure();
  for (const std::string& note : credentials->notes) options.on_progress(note);
  Variables& variables = credentials->variables;
  const auto add = [&variables](std::string_view name, std::string_view value) {
    variables.push_back({std::string(name), std::string(value)});
  };
  bool needs_home = !credentials->mounts.empty();
  for (const Mount& mount : options.mounts)
    needs_home = needs_home || codeexec::is_within(mount.target, container_home);
  if (needs_home) {
    options.scratch.push_back({std::string(container_home), options.tmp_size});
    add("HOME"sv, container_home);
  }
  for (const Mount& mount : credentials->mounts) options.mounts.push_back(mount);
  if (!options.cache.empty()) {
    constexpr const char* folders[][2] = {{"XDG_CACHE_HOME", ""},
                                          {"npm_config_cache", "/npm"},
                                          {"CARGO_HOME", "/cargo"},
                                          {"GOMODCACHE", "/go-mod"}};
    for (const auto& folder : folders) add(folder[0], concat({cache_folder, folder[1]}));
    add("PIP_NO_CACHE_DIR"sv, "0"sv);
  }
  for (const auto& variable : options.environment) variables.push_back(variable);
  options.environment = std::move(variables);
  options.secrets.insert(options.secrets.end(), credentials->secrets.begin(),
                         credentials->secrets.end());
  options.credentials = {};
  options.env_file = {};
  options.env_vars_from_file = {};
  options.pass_all_env = false;
  options.env_vars = {};
  return {};
}

// Installing needs a network and a writable root; system and npm packages need sudo besides.
Expected<void> check_packages(ContainerOptions& options) {
  if (!has_packages(options)) return {};
  for (const auto* list :
       {&options.system_packages, &options.python_packages, &options.npm_packages})
    if (auto ok = check_words("packages"sv, *list); !ok) return ok;
  if (network(options) == "none")
    return bad_option("packages", "installing needs a network: set network to bridge");
  if (!options.sudo && !(options.system_packages.empty() && options.npm_packages.empty()))
    return bad_option("packages", "system and npm packages need sudo");
  if (!*options.read_only_root) return {};
  return bad_option("packages"sv, "read_only_root leaves no place to install them"sv);
}

// Whether the name of an engine's option is one of a list, which begins and ends with a blank.
bool is_listed(std::string_view word, std::string_view list) {
  return list.find(concat(" % ", {word.substr(0, word.find('='))})) != std::string_view::npos;
}

// Refuses options that this library sets itself, or that would detach the container from it.
Expected<void> check_engine_words(ContainerOptions& options) {
  for (std::string& word : options.engine_options) {
    word.erase(0, std::min(word.find_first_not_of('-'), word.size()));
    const std::string_view option = std::string_view(word).substr(0, word.find('='));
    if (!is_plain(option, "-"sv) || option.size() < 2 || word != printable(word))
      return bad_option_value("engine_options", word,
                              " is no long option such as device=/dev/fuse"sv);
    if (is_listed(word,
                  " attach cidfile detach detach-keys entrypoint help interactive label label-file "
                  "name net network pull restart rm sig-proxy stop-signal tty user "))
      return bad_option_value("engine_options"sv, option, " is set by codeexec itself"sv);
  }
  if (const std::string weak = weakened_by(options); !weak.empty())
    options.on_progress(concat("engine_options: the container is held less by %", {weak}));
  return {};
}

// An engine's own errors for bad bounds name no option, so that they are checked here.
Expected<void> check_bounds(ContainerOptions& options) {
  constexpr std::uint64_t least_memory = std::uint64_t{6} << 20;
  if (options.memory != 0 && options.memory < least_memory)
    return bad_option("memory"sv, "must be 6 MiB or more, or 0 for no bound"sv);
  constexpr double most_cpus = 1e6;
  if (!(options.cpus == 0 || (options.cpus >= 0.01 && options.cpus <= most_cpus)))
    return bad_option("cpus"sv, "must be 0.01 or more, or 0 for no bound"sv);
  if (options.start_timeout.count() <= 0 || options.package_timeout.count() <= 0)
    return bad_option("timeouts of a container"sv, "must be more than zero"sv);
  return {};
}

// Texts that become words of the engine's command line have only the characters that it takes.
Expected<void> check_texts(ContainerOptions& options) {
  struct {
    const char* option;
    std::string ContainerOptions::*value;
    std::string_view signs;  // besides letters, digits and _
    const char* problem;
  } constexpr words[] = {
      {"image", &ContainerOptions::image, "./:@-", " is no name of an image"},
      {"user", &ContainerOptions::user, ".:-", " is no user of a container"},
      {"network", &ContainerOptions::network_name, ".-", " is no name of a network"},
      {"cache", &ContainerOptions::cache, ".-", " is no name of a cache"}};
  for (const auto& word : words)
    if (const std::string& value = options.*word.value; !value.empty())
      if (!is_plain(value, word.signs)) return bad_option_value(word.option, value, word.problem);
  for (const std::string* id : {&options.agent_id, &options.instance_id})
    if (has_nul(*id) || id->size() > 4096)
      return bad_option("agent_id"sv, "has a NUL byte or is longer than 4096 bytes"sv);
  for (const auto& [variable, value] : options.environment)
    if (variable.empty() || variable.find('=') != std::string::npos ||
        variable != printable(variable) || has_nul(value))
      return bad_option_value("environment"sv, variable, " cannot be a variable"sv);
  return {};
}

// Fails for a file that commands could change, as its folder is mounted writable.
Expected<void> keep_from_commands(std::string_view option, const std::string& path,
                                  const ContainerOptions& options) {
  for (const Mount& mount : options.mounts)
    if (mount.permission == Permission::write && codeexec::is_within(path, mount.source))
      return bad_option_value(option, path, " lies where commands may write"sv);
  return {};
}

// A log where commands may write could be a link that they have made, to a file of the user.
Expected<void> complete_log_file(ContainerOptions& options) {
  if (options.log_file.empty()) return {};
  auto log_file = canonical_path(options.log_file);
  if (!log_file) return with_prefix("log_file: ", {}, log_file.error());
  options.log_file = std::move(*log_file);
  return keep_from_commands("log_file"sv, options.log_file, options);
}

// The agent is a file of the engine's machine, which is mounted by itself. A command that could
// write to it would run as root with the next container.
Expected<void> complete_agent(ContainerOptions& options) {
  if (options.agent.empty()) return {};
  auto agent = canonical_path(options.agent);
  if (!agent) return with_prefix("agent: ", {}, agent.error());
  struct stat status {};
  if (::stat(agent->c_str(), &status) != 0)
    return system_error(errno, "agent: %", {in_quotes(*agent)});
  if (!S_ISREG(status.st_mode)) return bad_option_value("agent", options.agent, " is no file");
  options.agent = std::move(*agent);
  constexpr mode_t needed = S_IROTH | S_IXOTH;
  if ((status.st_mode & needed) != needed)
    options.on_progress(
        concat("agent: % may not be read and executed by others", {in_quotes(options.agent)}));
  // This program may lie in the workspace while it is developed.
  struct stat own {};
  if (::stat("/proc/self/exe", &own) == 0 && own.st_ino == status.st_ino &&
      own.st_dev == status.st_dev)
    return {};
  return keep_from_commands("agent"sv, options.agent, options);
}

// For the list of steps, which all take the options of the container.
Expected<void> check_engine_of(ContainerOptions& options) {
  return check_engine_options(options.engine);
}

}  // namespace

inline namespace inner {

Expected<void> bad_option_value(std::string_view option, std::string_view value,
                                std::string_view problem) {
  return bad_option(option, concat({in_quotes(value), problem}));
}

bool is_plain(std::string_view text, std::string_view more) {
  constexpr std::size_t longest = 512;
  if (text.empty() || text.size() > longest || more.find(text[0]) != std::string_view::npos)
    return false;
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return is_name_char(c) || more.find(c) != std::string_view::npos;
  });
}

// Of any of the three kinds: each needs a network, and a root that may be written to.
bool has_packages(const ContainerOptions& options) {
  return !(options.system_packages.empty() && options.python_packages.empty() &&
           options.npm_packages.empty());
}

// In the words of the engine: a name of its own, or none, bridge or host.
std::string network(const ContainerOptions& options) {
  return options.network_name.empty() ? name(options.network) : options.network_name;
}

// Not complete: an engine has too many options. These are the usual ones.
std::string weakened_by(const ContainerOptions& options) {
  std::string found;
  for (const std::string& word : options.engine_options) {
    const bool is_unconfined = word.find("unconfined") != std::string::npos ||
                               word.find("disable") != std::string::npos ||
                               word.find("false") != std::string::npos;
    const bool is_shared = ends_with(word, "=host"sv);
    if (is_listed(
            word,
            " cap-add cgroup-parent device device-cgroup-rule gpus group-add mount privileged "
            "sysctl volume volumes-from ") ||
        (is_unconfined && is_listed(word, " security-opt "sv)) ||
        (is_shared && is_listed(word, " cgroupns ipc pid userns uts "sv)))
      append_all(found, {found.empty() ? "" : " ", word});
  }
  return found;
}

// Of the engine's program: no value may be taken for an option, and only one of context and host
// may be given.
Expected<void> check_engine_options(const EngineOptions& engine) {
  if (auto ok = check_words("engine program"sv, {engine.program}); !ok) return ok;
  for (const std::string* value : {&engine.context, &engine.host})
    if (!value->empty())
      if (auto ok = check_words("engine context or host"sv, {*value}); !ok) return ok;
  if (!engine.context.empty() && !engine.host.empty())
    return bad_option("engine context"sv, "there is a host, too: leave one of them out"sv);
  for (const auto time : {engine.call_timeout, engine.run_timeout, engine.pull_timeout})
    if (time.count() <= 0) return bad_option("engine timeouts"sv, "must be more than zero"sv);
  return {};
}

// Each step may use what those before it have completed: credentials add mounts, and files must not
// lie in any of the mounts. The first error ends it. Complete options stay as they are.
Expected<void> complete_options(ContainerOptions& options) {
  if (options.image.empty())
    options.image = options.sudo ? "codeexec/runtime-sudo:latest" : "codeexec/runtime:latest";
  if (!options.read_only_root) options.read_only_root = !options.sudo && !has_packages(options);
  for (const auto step :
       {check_engine_of, check_texts, check_bounds, check_engine_words, check_packages,
        complete_credentials, complete_mounts, complete_agent, complete_log_file})
    if (auto ok = step(options); !ok) return ok;
  return {};
}

}  // namespace inner

Expected<ContainerOptions> complete(const ContainerOptions& options) {
  ContainerOptions complete = options;
  if (auto ok = complete_options(complete); !ok) return ok.failure();
  return complete;
}

}  // namespace v0_1
}  // namespace codeexec
