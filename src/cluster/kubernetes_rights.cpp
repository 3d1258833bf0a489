// What the user of kubectl needs in the cluster.

#include "cluster/cluster.hpp"
#include "cluster/cluster_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What a user must be allowed to do.
struct ClusterRight {
  std::string_view group;  // of the API; empty: its core
  std::string_view resource;
  std::string_view below;  // the resource; empty: it is the resource itself
  Names verbs;
};
constexpr auto manage_verbs = NameList{"create", "get", "list", "watch", "delete"};
constexpr auto start_verbs = NameList{"create", "get"};
constexpr auto watch_verbs = NameList{"get", "watch"};
constexpr auto list_verbs = NameList{"list"};
constexpr auto get_verbs = NameList{"get"};

constexpr ClusterRight rights_on_pods[] = {
    {"", "pods", "", manage_verbs},
    {"", "pods", "exec", start_verbs},
    {"", "events", "", list_verbs},
};
constexpr ClusterRight rights_on_claims[] = {
    {"", "pods", "", watch_verbs},
    {"", "pods", "exec", start_verbs},
    {"", "events", "", list_verbs},
    {"extensions.agents.x-k8s.io", "sandboxclaims", "", manage_verbs},
    {"agents.x-k8s.io", "sandboxes", "", get_verbs},
};

}  // namespace

// For --doctor: asks for each right that pods or claims need, and prints a Role that has them all,
// to be given to who may grant it. Without a connection there is nothing to ask.
std::string kubernetes_rights(const KubernetesOptions& options) {
  const std::vector<std::string> kubectl = with_long_options("kubectl", options.options);
  const ProcessResult version = call_cluster(kubectl, {"version", "-o", "json"});
  if (!version.succeeded())
    return concat("FAIL kubectl: %\n", {kubectl_trouble(complaint_of(version))});
  std::string answers = "ok   kubectl\n";
  std::string role =
      "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: codeexec}\nrules:\n";
  const auto add = [&](const ClusterRight& right) {
    const std::string kind =
        concat("%%%", {right.resource, right.group.empty() ? "" : ".", right.group});
    const std::string below = concat("%%", {right.below.empty() ? "" : "/", right.below});
    std::string list;
    for (const std::string_view verb : right.verbs) {
      const ProcessResult may = call_cluster(kubectl, {"auth", "can-i", std::string(verb), kind,
                                                       concat("--subresource=%", {right.below})});
      append_all(answers, "%% %%\n", {may.succeeded() ? "ok   " : "FAIL ", verb, kind, below});
      append_all(list, {list.empty() ? "" : ", ", verb});
    }
    append_all(role, "- {apiGroups: [\"%\"], resources: [%%], verbs: [%]}\n",
               {right.group, right.resource, below, list});
  };
  if (options.warm_pool.empty())
    std::for_each(std::begin(rights_on_pods), std::end(rights_on_pods), add);
  else
    std::for_each(std::begin(rights_on_claims), std::end(rights_on_claims), add);
  return answers + role;
}

}  // namespace v0_1
}  // namespace codeexec
