// The pod, or the claim for one, that Kubernetes is asked for.

#include "cluster/cluster_internal.hpp"

#include "agent/identity_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The first process reaps what loses its parent, and ends at once when it is asked to.
constexpr std::string_view pod_start =
    R"({"apiVersion":"v1","kind":"Pod","spec":{"restartPolicy":"Never",)"
    R"("terminationGracePeriodSeconds":5,"automountServiceAccountToken":false,)"
    R"("enableServiceLinks":false,"securityContext":{"runAsNonRoot":true,"runAsUser":1000,)"
    R"("runAsGroup":1000,"fsGroup":1000,"seccompProfile":{"type":"RuntimeDefault"}},)"
    R"("containers":[{"name":"agent","workingDir":"/workspace",)"
    R"("command":["sh","-c","trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"],)"
    R"("env":[{"name":"HOME","value":"/tmp"}],)"
    R"("securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}},)"
    R"("volumeMounts":[{"name":"workspace","mountPath":"/workspace"}],"image":)";

// From a claim's pool, a template of the user, or an image: in this order, as kubernetes_pods() has
// checked that one is given. kubectl reads a template, so that YAML needs no reader here.
Expected<Json> object_of(const KubernetesOptions& options) {
  if (!options.warm_pool.empty()) {
    const std::string end = utc_time(::time(nullptr) + options.lifetime.count());
    return Json::parse(concat({R"({"apiVersion":"extensions.agents.x-k8s.io/v1beta1",)",
                               R"("kind":"SandboxClaim","spec":{"warmPoolRef":{"name":)",
                               Json(options.warm_pool).dump(), R"(},"lifecycle":{"shutdownTime":")",
                               end, R"(Z","shutdownPolicy":"Delete"}}})"}));
  }
  if (!options.pod_template.empty()) {
    const ProcessResult read =
        call_cluster(with_long_options("kubectl", options.options),
                     {"create", "--dry-run=client", "-o", "json", "-f", options.pod_template});
    if (!read.succeeded())
      return make_error(ErrorCode::io, "kubernetes_pod_template: %",
                        {kubectl_trouble(complaint_of(read))});
    auto object = Json::parse(read.out);
    if (!object || (*object)["kind"sv].as_string() != "Pod")
      return make_error(ErrorCode::invalid_argument,
                        "kubernetes_pod_template: % must hold one Pod and nothing else",
                        {in_quotes(options.pod_template)});
    return object;
  }
  std::string limits;
  std::string_view disk;
  for (const std::string& limit : options.limits) {
    std::string_view value = limit;
    const std::string_view name = take_part(value, '=');
    append_all(limits, "%%:%", {limits.empty() ? "" : ",", Json(name).dump(), Json(value).dump()});
    if (name == "ephemeral-storage") disk = value;
  }
  const std::string volume =
      !options.claim.empty()
          ? concat({R"("persistentVolumeClaim":{"claimName":)", Json(options.claim).dump()})
      : disk.empty() ? std::string(R"("emptyDir":{)")
                     : concat({R"("emptyDir":{"sizeLimit":)", Json(disk).dump()});
  return Json::parse(concat({pod_start, Json(options.image).dump(), R"(,"resources":{"limits":{)",
                             limits, R"(},"requests":{)", limits,
                             R"(}}}],"volumes":[{"name":"workspace",)", volume, "}}]}}"}));
}

}  // namespace

inline namespace inner {

// Lower case letters, digits and single dashes, not at its ends: what names and labels may have.
std::string agent_label(std::string_view agent_id) {
  std::string label;
  for (const char c : in_lower_case(agent_id)) {
    const bool plain = is_letter(c) || is_digit(c);
    if (plain || (!label.empty() && label.back() != '-')) label += plain ? c : '-';
    if (label.size() == 32) break;
  }
  while (!label.empty() && label.back() == '-') label.pop_back();
  return label.empty() ? "agent" : label;
}

// Adds a name, who made it, and how long it may live, to what the object has: a template's own
// labels and its own deadline stay.
Expected<std::string> pod_object(const KubernetesOptions& options, const std::string& name) {
  auto object = object_of(options);
  if (!object) return object.failure();
  Json metadata = (*object)["metadata"sv];
  Json labels = metadata["labels"sv];
  Json annotations = metadata["annotations"sv];
  set_member(labels, "app.kubernetes.io/managed-by", "codeexec");
  set_member(labels, "codeexec/agent", agent_label(options.agent_id));
  set_member(annotations, "codeexec/owner", owner_text(own_identity()));
  set_member(metadata, "labels", std::move(labels));
  set_member(metadata, "annotations", std::move(annotations));
  set_member(metadata, "name", name);
  // It goes where kubectl's other calls look for it.
  for (const char* const other : {"generateName", "namespace"}) set_member(metadata, other, Json());
  set_member(*object, "metadata", std::move(metadata));
  if (options.warm_pool.empty() && (*object)["spec"sv]["activeDeadlineSeconds"sv].is_null()) {
    Json spec = (*object)["spec"sv];
    set_member(spec, "activeDeadlineSeconds", static_cast<long long>(options.lifetime.count()));
    set_member(*object, "spec", std::move(spec));
  }
  return object->dump();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
