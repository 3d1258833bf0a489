// The feature of a server to run commands on other machines: its part of the configuration, and
// what the program uses of it.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "cluster/cluster.hpp"
#include "place/place.hpp"
#include "tools/server_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Until an option gives one.
inline constexpr auto no_workspace_mode = static_cast<PlaceWorkspace>(-1);

struct PlaceConfig {
  std::string command = {};
  std::string host = {};
  static constexpr char usual_agent[] = "codeexec-mcp";
  std::string agent_path = usual_agent;
  PlaceWorkspace workspace = no_workspace_mode;  // then shared, or remote in a pod
  // Its members of names that begin with copy_ are options, and keep_alive.
  PlaceOptions place = PlaceOptions();
  SlurmOptions slurm = {};
  KubernetesOptions kubernetes = {};
  std::chrono::milliseconds start_timeout = slurm.start_timeout;
  std::uint64_t kubernetes_lifetime = static_cast<std::uint64_t>(kubernetes.lifetime.count());
  std::uint64_t pool = 0;
};

Rows<Option> place_feature_options();

// Needed by --places and --doctor, too, which make no pod.
KubernetesOptions kubernetes_options(const ServerConfig& config);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
