// What the user of kubectl needs in the cluster.

#include "cluster/cluster.hpp"
#include "cluster/cluster_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Group, resource and verbs, a line each.
constexpr std::string_view rules_of_pods =
    " pods create get list watch delete\n pods/exec create get\n events list\n";
constexpr std::string_view rules_of_claims =
    " pods get watch\n pods/exec create get\n events list\n"
    "extensions.agents.x-k8s.io sandboxclaims create get list watch delete\n"
    "agents.x-k8s.io sandboxes get\n";

}  // namespace

// For --doctor: asks for each right that pods or claims need, and prints a Role that has them all,
// to be given to who may grant it. Without a connection there is nothing to ask.
std::string kubernetes_rights(const KubernetesOptions& options) {
  const std::vector<std::string> kubectl = with_long_options("kubectl", options.options);
  const ProcessResult version = call_cluster(kubectl, {"version", "-o", "json"});
  if (!version.succeeded())
    return concat("FAIL kubectl: %\n", {kubectl_trouble(complaint_of(version))});
  std::string report = "ok   kubectl\n";
  std::string role =
      "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: codeexec}\nrules:\n";
  std::string_view rules = options.warm_pool.empty() ? rules_of_pods : rules_of_claims;
  while (!rules.empty()) {
    std::string_view verbs = take_part(rules, '\n');
    const std::string_view group = take_part(verbs, ' ');
    const std::string_view resource = take_part(verbs, ' ');
    std::string list;
    std::string what(resource);
    if (!group.empty()) append_all(what, ".%", {group});
    while (!verbs.empty()) {
      const std::string verb(take_part(verbs, ' '));
      std::string_view of = what;
      const std::string_view kind = take_part(of, '/');
      const ProcessResult may =
          call_cluster(kubectl, {"auth", "can-i", verb, kind, concat("--subresource=%", {of})});
      append_all(report, "%% %\n", {may.succeeded() ? "ok   " : "FAIL ", verb, what});
      append_all(list, {list.empty() ? "" : ", ", verb});
    }
    append_all(role, "- {apiGroups: [\"%\"], resources: [%], verbs: [%]}\n",
               {group, resource, list});
  }
  return report + role;
}

}  // namespace v0_1
}  // namespace codeexec
