// The options of containers.

#include "containers/containers_internal.hpp"

#include "base/base.hpp"
#include "docker/docker.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Members of what ContainerConfig has.
template <auto... members>
constexpr Option of_containers(std::string_view name) {
  return Option::of<&ServerConfig::containers, members...>(name);
}
template <auto... members>
constexpr Option of_users(std::string_view name) {
  return of_containers<&ContainerConfig::user, members...>(name);
}
template <auto... members>
constexpr Option of_container(std::string_view name) {
  return of_users<&UserContainerOptions::container, members...>(name);
}
template <auto... members>
constexpr Option of_engine(std::string_view name) {
  return of_container<&ContainerOptions::engine, members...>(name);
}

constexpr Choice pull_policies[] = {{"never", ImagePolicy::never},
                                    {"missing", ImagePolicy::missing},
                                    {"always", ImagePolicy::always}};
constexpr Choice engine_networks[] = {"none", "bridge", "host"};
constexpr Choice profile_values[] = {"commands", "user-container"};

constexpr Option container_rows[] = {
    of_container<&ContainerOptions::image>("docker-image")
        .value("IMAGE")
        .usual("codeexec/runtime:latest")
        .in(Option::contained)
        .where(Option::containers)
        .often()
        .help("their image. With --enable-sudo codeexec/runtime-sudo:latest, with profile "
              "user-container codeexec/executor:latest"),
    of_container<&ContainerOptions::image_policy>("docker-image-policy")
        .value("POLICY")
        .usual("missing")
        .in(Option::contained)
        .where(Option::containers)
        .one_of(pull_policies)
        .help("pull the image: never, when missing, always"),
    of_containers<&ContainerConfig::network>("docker-network-mode")
        .value("MODE")
        .usual("none")
        .in(Option::contained)
        .where(Option::containers)
        .often()
        .one_of(engine_networks)
        .help("none, bridge (the world), host. bridge: the engine's own network, which reaches the "
              "world; host: also services on the host's 127.0.0.1"),
    of_container<&ContainerOptions::network_name>("docker-network")
        .value("NAME")
        .in(Option::contained)
        .where(Option::containers)
        .help("a network of the engine's own, in place of a mode"),
    of_container<&ContainerOptions::engine_options>("docker-dns")
        .keyed_list("dns")
        .value("ADDRESS...")
        .usual("the engine's")
        .in(Option::contained)
        .where(Option::containers)
        .help("name servers"),
    of_container<&ContainerOptions::engine_options>("docker-add-host")
        .keyed_list("add-host")
        .value("NAME:ADDRESS...")
        .in(Option::contained)
        .where(Option::containers)
        .help("names with their addresses"),
    of_engine<&EngineOptions::program>("docker-program")
        .value("PROGRAM")
        .usual("docker")
        .in(Option::contained)
        .where(Option::containers)
        .help("what speaks to the engine: docker, podman, nerdctl, or a path"),
    of_engine<&EngineOptions::context>("docker-context")
        .value("NAME")
        .usual("as the program finds it")
        .in(Option::contained)
        .where(Option::containers)
        .help("of the engine, for the program's --context"),
    of_engine<&EngineOptions::host>("docker-host")
        .value("ADDRESS")
        .usual("as the program finds it")
        .in(Option::contained)
        .where(Option::containers)
        .help("of the engine, for the program's --host. DOCKER_HOST and the like count, too"),
    of_container<&ContainerOptions::engine_options>("docker-runtime")
        .keyed("runtime")
        .value("NAME")
        .usual("the engine's")
        .in(Option::contained)
        .where(Option::containers)
        .help("of the engine, such as runsc (gVisor) or kata"),
    of_container<&ContainerOptions::engine_options>("docker-gpus")
        .keyed("gpus")
        .value("GPUS")
        .in(Option::contained)
        .where(Option::containers)
        .help("such as all"),
    of_container<&ContainerOptions::engine_options>("docker-option")
        .value("WORD...")
        .in(Option::contained)
        .where(Option::containers)
        .help("more options of the engine's `run`, by long names without dashes: device=/dev/fuse, "
              "ulimit=nproc=99, platform=linux/arm64, security-opt=seccomp=/profile.json"),
    of_container<&ContainerOptions::memory>("docker-memory-limit")
        .bytes_or_0()
        .value("SIZE")
        .usual("2g")
        .in(Option::contained)
        .where(Option::containers)
        .help("of all in the container, swap included. 0: no limit"),
    of_container<&ContainerOptions::cpus>("docker-cpu-limit")
        .value("CPUS")
        .usual("2")
        .in(Option::contained)
        .where(Option::containers)
        .help("processors, such as 1.5. 0: no limit; no more than the engine's machine has"),
    of_container<&ContainerOptions::pids>("docker-pids-limit")
        .or_0()
        .value("N")
        .usual("256")
        .in(Option::contained)
        .where(Option::containers)
        .help("processes and threads. 0: no limit"),
    of_container<&ContainerOptions::shm_size>("docker-shm-size")
        .bytes_or_0()
        .value("SIZE")
        .usual("64m")
        .in(Option::contained)
        .where(Option::containers)
        .help("of /dev/shm, which is memory"),
    of_container<&ContainerOptions::tmp_size>("docker-tmp-size")
        .bytes_or_0()
        .value("SIZE")
        .usual("512m")
        .in(Option::contained)
        .where(Option::containers)
        .help("of /tmp, which is memory"),
    of_container<&ContainerOptions::read_only_root>("docker-read-only-root")
        .value("BOOL")
        .usual("true, unless sudo or packages need to write")
        .in(Option::contained)
        .where(Option::containers)
        .help("whether nothing in the image can be changed"),
    of_container<&ContainerOptions::user>("docker-user")
        .value("USER")
        .usual("the owner of the workspace")
        .in(Option::contained)
        .where(Option::containers)
        .help("runs the commands: UID:GID, or a user of the image"),
    Option::of_list<add_mount, &ServerConfig::containers, &ContainerConfig::user,
                    &UserContainerOptions::container, &ContainerOptions::mounts>("docker-mount")
        .value("SRC[:DST][:ro|:rw]...")
        .in(Option::contained)
        .where(Option::containers)
        .help("more of the host. Read-only and at the same path, unless said"),
    of_users<&UserContainerOptions::tools_dir>("tools-path")
        .value("DIR")
        .in(Option::contained)
        .where(Option::containers)
        .help("read-only as /tools of the container. With profile user-container: ./tools"),
    of_users<&UserContainerOptions::skills_dir>("skills-path")
        .value("DIR")
        .in(Option::contained)
        .where(Option::containers)
        .help("read-only as /skills of the container. With profile user-container: ./skills"),
    of_container<&ContainerOptions::sudo>("enable-sudo")
        .in(Option::contained)
        .other_key("docker_enable_sudo")
        .help("commands may become root of the container. It then keeps its capabilities, and its "
              "image has sudo; no effect in local mode"),
    of_containers<&ContainerConfig::credentials>("docker-credentials")
        .value("JSON")
        .in(Option::contained)
        .where(Option::containers)
        .help("what of the user's own it gets: {\"mount\": [\"ssh_keys\"]}"),
    of_containers<&ContainerConfig::packages>("docker-packages")
        .value("JSON")
        .in(Option::contained)
        .where(Option::containers)
        .help("to install when it is made: {\"preinstall\": {\"python\": [\"requests>=2\"], "
              "\"npm\": [], \"system\": []}}"),
    of_container<&ContainerOptions::packages_required>("docker-packages-required")
        .in(Option::contained)
        .where(Option::containers)
        .help("no container without its packages. Otherwise the first result has a note"),
    of_container<&ContainerOptions::cache>("docker-cache")
        .value("NAME")
        .in(Option::contained)
        .where(Option::containers)
        .help("a volume that keeps what pip, uv, npm, cargo and go fetch. It is "
              "codeexec-cache-NAME, for all containers of that name"),
    of_container<&ContainerOptions::persistent>("docker-persistent")
        .in(Option::contained)
        .where(Option::containers)
        .help("keep the container. It is found again by --agent-id and --instance-id"),
    of_container<&ContainerOptions::instance_id>("instance-id")
        .value("ID")
        .in(Option::contained)
        .help("which of an agent's containers. No effect in local mode"),
    of_container<&ContainerOptions::log_file>("docker-log-file")
        .value("FILE")
        .in(Option::contained)
        .where(Option::containers)
        .help("gets what happened in the container when it is removed"),
    of_container<&ContainerOptions::start_timeout>("docker-start-timeout")
        .value("SECONDS")
        .usual("15")
        .in(Option::contained)
        .where(Option::containers)
        .help("until a command has begun"),
    of_engine<&EngineOptions::call_timeout>("docker-call-timeout")
        .value("SECONDS")
        .usual("15")
        .in(Option::contained)
        .where(Option::containers)
        .help("of a small call of the program"),
    of_engine<&EngineOptions::run_timeout>("docker-run-timeout")
        .value("SECONDS")
        .usual("60")
        .in(Option::contained)
        .where(Option::containers)
        .help("of making a container"),
    of_engine<&EngineOptions::pull_timeout>("docker-pull-timeout")
        .value("SECONDS")
        .usual("600")
        .in(Option::contained)
        .where(Option::containers)
        .help("of fetching an image"),
    of_containers<&ContainerConfig::profile>("profile")
        .value("NAME")
        .usual("commands")
        .in(Option::contained)
        .one_of(profile_values)
        .help("commands, or user-container: the tools of one user's container"),
    of_containers<&ContainerConfig::user_id>("user-id")
        .value("ID")
        .in(Option::contained)
        .where(Option::users)
        .help("whose container, with profile user-container"),
    of_users<&UserContainerOptions::workspace_size>("workspace-size")
        .bytes_or_0()
        .value("SIZE")
        .usual("512m")
        .in(Option::contained)
        .where(Option::users)
        .help("of a user's /workspace"),
    of_users<&UserContainerOptions::artifacts_size>("artifacts-size")
        .bytes_or_0()
        .value("SIZE")
        .usual("256m")
        .in(Option::contained)
        .where(Option::users)
        .help("of a user's /artifacts"),
    of_users<&UserContainerOptions::max_artifact>("max-artifact-size")
        .bytes_or_0()
        .value("SIZE")
        .usual("50m")
        .in(Option::contained)
        .where(Option::users)
        .help("of a file of /artifacts that is given away"),
    Option::of<&ServerConfig::agent>("place-agent")
        .value("FILE")
        .usual("this program")
        .in(Option::contained)
        .where(Option::agents)
        .help("a static codeexec-mcp of the processor there, which is mounted into containers"),
    place_option,
};
static_assert(are_complete(container_rows),
              "a row lacks a column, or has one that its kind has no use for");

}  // namespace

inline namespace inner {

Rows<Option> container_feature_options() { return container_rows; }

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
