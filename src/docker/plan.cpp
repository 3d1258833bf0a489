// The plan of a container: the arguments of `run`, its labels, and the work of its agent.
//
// A container is hardened by its arguments: no capabilities, no new privileges, a read-only root,
// bounds for memory, processors and processes. The options `sudo` and `engine_options` take some of
// that away.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/frames_internal.hpp"
#include "agent/identity_internal.hpp"
#include "agent/messages_internal.hpp"
#include "agent/nonce_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A path in --mount, which the engine reads as a line of comma-separated values.
std::string csv_field(std::string_view key, const std::string& path) {
  if (path.find_first_of(",\"") == std::string::npos) return concat({key, path});
  std::string field = concat("\"%", {key});
  for (const char c : path) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}

// Adds a directory in memory that everybody can write to.
void add_scratch(std::vector<std::string>& words, std::string_view path, std::uint64_t size) {
  add_option(words, "--tmpfs"sv, "%:rw,exec,nosuid,nodev,mode=1777", {path});
  if (size != 0) append_all(words.back(), ",size=%", {size});
}

}  // namespace

// A persistent container is found again by its name, which follows from the agent and the instance.
// Others have a random name, as one may still be going away when the next is made.
ContainerPlan::ContainerPlan(ContainerOptions given)
    : options(std::move(given)),
      name(concat(
          "codeexec-%-%",
          {plain_name(options.agent_id, 24),
           options.persistent ? content_digits(concat({options.agent_id, std::string_view("\0", 1),
                                                       options.instance_id}))
                                    .substr(0, 8)
                              : random_hex(4)})),
      user(user_of(options)) {
  std::vector<std::string> words = configuration({});
  for (const auto* list :
       {&options.system_packages, &options.python_packages, &options.npm_packages}) {
    words.insert(words.end(), list->begin(), list->end());
    words.emplace_back();
  }
  // A persistent container is used again only if all of this is the same.
  words.push_back(wanted_there().dump());
  words.emplace_back(CODEEXEC_VERSION_STRING);
  digits = content_digits(joined(words, "\n"sv));
}

// Commands of root could kill a first process that is root's. Then it runs as another user.
bool ContainerPlan::held_by_root() const {
  return user != "0" && user != "root" && !starts_with(user, "0:"sv);
}

bool ContainerPlan::has_own_tmp() const {
  return std::none_of(options.mounts.begin(), options.mounts.end(),
                      [](const Mount& mount) { return mount.target == "/tmp"; });
}

// That of the image is found by its PATH.
const char* ContainerPlan::agent_program() const {
  return options.agent.empty() ? "codeexec-mcp" : agent_target;
}

// No time limit: it runs as long as its connection.
ProcessOptions ContainerPlan::agent_call(std::string_view as) const {
  return engine_call(options.engine,
                     words_of({"exec", "-i", "-u", as, name, agent_program(), "--place"}),
                     no_limit);
}

// Prints nothing for one that does not run, and fails for one that is not there.
ProcessOptions ContainerPlan::incarnation_call() const {
  return engine_call(options.engine,
                     words_of({"container", "inspect", "--format",
                               "{{if .State.Running}}{{json .State.StartedAt}}{{end}}", name}),
                     options.engine.call_timeout);
}

// By labels: the name alone could be that of a container which the user made. Agent and instance
// must be the same, as two of them may share the beginning of a name.
bool ContainerPlan::is_own(const Json& container) const {
  return label_of(container, "codeexec.managed"sv) == "1" &&
         label_of(container, "codeexec.user"sv) == to_utf8(options.agent_id) &&
         label_of(container, "codeexec.instance"sv) == to_utf8(options.instance_id);
}

SharedError ContainerPlan::foreign() const {
  return make_error(ErrorCode::invalid_argument,
                    "there is a container % that was not made for this agent: remove or rename it, "
                    "or set another agent_id or instance_id",
                    {name});
}

// Values are words of their own or stand behind `=`, so that none can become an option.
std::vector<std::string> ContainerPlan::configuration(std::string_view version) const {
  // The first line names the program. A later one names the engine, which docker's program, too,
  // may speak to.
  constexpr std::string_view podman = "Podman Engine";
  const bool is_podman = version.substr(0, version.find('\n')).find(podman) != std::string::npos;
  std::vector<std::string> words =
      words_of({"--init", "--user", held_by_root() ? "0:0" : "65534:65534", "--network",
                network(options), "--pull", "never", "--ulimit", "nofile=4096:4096", "--ulimit",
                "core=0:0", "--stop-signal", "KILL"});
  if (!options.sudo) add_words(words, {"--cap-drop", "ALL", "--security-opt", "no-new-privileges"});
  // Without a number for swap, the engine allows as much of it again.
  if (options.memory != 0)
    for (const char* option : {"--memory", "--memory-swap"})
      add_option(words, option, "%b", {options.memory});
  if (cpus > 0)
    add_option(words, "--cpus"sv, "%",
               {seconds_text(std::chrono::milliseconds(std::llround(cpus * 1000)))});
  add_option(words, "--pids-limit"sv, "%",
             {options.pids == 0 ? "-1" : std::to_string(options.pids)});
  if (options.shm_size != 0) add_option(words, "--shm-size"sv, "%b", {options.shm_size});
  // A rootless podman maps user ids to others unless it has this option.
  if (is_podman && ::geteuid() != 0) add_words(words, {"--userns", "keep-id"});
  if (*options.read_only_root) {
    add_words(words, {"--read-only"});
    if (has_own_tmp()) add_scratch(words, "/tmp"sv, options.tmp_size);
  }
  for (const auto& [path, size] : options.scratch) add_scratch(words, path, size);
  for (const std::string& word : options.engine_options) words.push_back(concat("--%", {word}));
  for (const Mount& mount : options.mounts) {
    // Permission::none: an empty directory covers it. Podman would copy the covered files into the
    // empty one unless `notmpcopyup` is given. Docker's program refuses that word in --mount, but
    // passes it on in --tmpfs, where a path with a colon is an error.
    if (mount.permission == Permission::none && !is_podman &&
        version.find(podman) != std::string::npos)
      add_option(words, "--tmpfs"sv, "%:ro,mode=0555,notmpcopyup", {mount.target});
    else if (mount.permission == Permission::none)
      add_option(words, "--mount"sv, "type=tmpfs,%,tmpfs-mode=0555,ro%",
                 {csv_field("dst="sv, mount.target), is_podman ? ",notmpcopyup" : ""});
    else
      add_option(words, "--mount"sv, "type=bind,%,%%",
                 {csv_field("src="sv, mount.source), csv_field("dst="sv, mount.target),
                  mount.permission == Permission::write ? "" : ",readonly"});
  }
  if (!options.agent.empty())
    add_option(words, "--mount"sv, "type=bind,%,dst=%,readonly",
               {csv_field("src="sv, options.agent), agent_target});
  if (!options.cache.empty())
    add_option(words, "--mount"sv, "type=volume,src=codeexec-cache-%,dst=%%",
               {options.cache, cache_folder, is_podman ? "" : ",volume-label=codeexec.managed=1"});
  add_words(words, {"--entrypoint", agent_program(), options.image, "--place", "--agent-id", name});
  return words;
}

// The maker is written in parts, as `docker ps --filter` and people read them; still_runs() takes
// the same.
void ContainerPlan::add_labels(std::vector<std::string>& words) const {
  const ProgramIdentity program = own_identity();
  const std::string agent = to_utf8(options.agent_id);
  const std::string instance = to_utf8(options.instance_id);
  for (const auto& [label, value] :
       {std::pair<const char*, std::string_view>("managed", "1"),
        std::pair<const char*, std::string_view>("kind",
                                                 options.persistent ? "persistent" : "ephemeral"),
        std::pair<const char*, std::string_view>("user", agent),
        std::pair<const char*, std::string_view>("instance", instance),
        std::pair<const char*, std::string_view>("cfg", digits),
        std::pair<const char*, std::string_view>("ns", program.space),
        std::pair<const char*, std::string_view>("host", program.host),
        std::pair<const char*, std::string_view>("boot", program.boot),
        std::pair<const char*, std::string_view>("pid", program.pid),
        std::pair<const char*, std::string_view>("start", program.start)})
    add_option(words, "--label"sv, "codeexec.%=%", {label, value});
}

// Only for folders with the same path there: others need not be of this machine. A folder that
// cannot be written to is not compared, as there is no other proof.
Nonces ContainerPlan::make_nonces() const {
  Nonces nonces;
  for (const Mount& mount : options.mounts)
    if (mount.permission != Permission::none && mount.target == mount.source &&
        !nonces.emplace_back(mount.source).problem().empty())
      nonces.pop_back();
  return nonces;
}

// The agent makes these folders writable, gives the user a name and a home, and reports which of
// the programs are missing. See prepare_container().
Json ContainerPlan::wanted_there() const {
  Json wanted = Json::object();
  const std::size_t colon = user.find(':');
  const std::string uid = user.substr(0, colon);
  const std::string gid = user.substr(colon + 1);  // npos + 1 is 0
  if (is_number(uid) && is_number(gid) && uid != "0") {
    set_member(wanted, "uid", uid);
    set_member(wanted, "gid", gid);
  }
  const char* home = "/tmp";
  for (const auto& [variable, value] : options.environment)
    if (variable == "HOME") home = value.c_str();
  set_member(wanted, "home", home);
  std::vector<std::string> folders;
  if (has_own_tmp()) folders.push_back("/tmp");
  if (!options.cache.empty()) folders.emplace_back(cache_folder);
  for (const auto& scratch : options.scratch) folders.push_back(scratch.first);
  set_member(wanted, "folders", list_of(folders));
  std::vector<std::string> programs;
  constexpr std::pair<std::string_view, const char*> clients[] = {
      {"/.ssh", "ssh"}, {"/.gitconfig", "git"}, {"/.config/gh", "gh"}, {"/.npmrc", "npm"}};
  for (const Mount& mount : options.mounts)
    for (const auto& [path, client] : clients)
      if (options.system_packages.empty() && mount.target == concat({container_home, path}))
        programs.emplace_back(client);
  set_member(wanted, "programs", list_of(programs));
  return wanted;
}

// The keep_alive is a hundred years, as this agent may stay for as long as its container, and
// no client sends it signs of life: the end of its input is what ends it.
std::string ContainerPlan::preparation(const Nonces& nonces) const {
  Json hello = new_hello(std::chrono::hours(24 * 365 * 100));
  set_member(hello, "mounts", own_namespace("mnt"));
  set_member(hello, "prepare", wanted_there());
  std::vector<std::string> paths;
  for (const Nonce& nonce : nonces) paths.push_back(nonce.path());
  set_member(hello, "nonces", list_of(paths));
  std::string frame;
  put_frame(frame, FrameKind::hello, 0, hello.dump());
  return frame;
}

}  // namespace v0_1
}  // namespace codeexec
