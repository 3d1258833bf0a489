// The feature of a server to run commands in containers: its part of the configuration, and what
// the program uses of it.
#pragma once

#include "containers/containers.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "docker/docker.hpp"
#include "json/json.hpp"
#include "tools/server_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

struct ContainerConfig {
  ContainerConfig() { user.max_artifact = 0; }

  // Its container is that of every profile; its max_artifact is 0 when not given.
  UserContainerOptions user = UserContainerOptions();
  std::uint64_t usual_artifact = UserContainerOptions().max_artifact;
  std::string network = name(user.container.network);
  Json credentials = {};
  Json packages = {};
  std::string profile = "commands";
  std::string user_id = {};
};

// The parser of --docker-mount: SOURCE[:TARGET][:ro|:rw], as in `docker run --volume`.
const char* add_mount(std::string_view word, std::vector<Mount>& mounts);

Rows<Option> container_feature_options();

Expected<UserContainers> create_user_containers(ServerConfig& config);

ContainerExecutorOptions container_executor_options(const ServerConfig& config);

// in_our_words() of an error that may be one of ContainerOptions.
SharedError in_words_of_containers(Error error);

// The value of a key in the lines between two `---` at the start of a text.
std::string_view front_matter(std::string_view text, std::string_view key);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
