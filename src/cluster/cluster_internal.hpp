// What the parts of this room share: calls of the programs of a cluster, and pods.
#pragma once

#include "cluster/cluster.hpp"

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Whether an option is written without `--`, as in "mem=4G".
bool is_long_option(const std::string& word);

// A program and its options, each with `--` before it.
std::vector<std::string> with_long_options(const char* program,
                                           const std::vector<std::string>& options);

// Adds the agent that a transport leads to, or a shell where there is none.
void add_agent(std::vector<std::string>& transport, const std::string& agent);

// Runs `words` and `more` for at most 30 seconds, with `variables` before those of this process:
// the first one of a name counts. The output has at most 16 MiB.
ProcessResult call_cluster(const std::vector<std::string>& words, Pieces more,
                           Pieces variables = {});

// Why a call has failed: what the program wrote, or why it did not run.
const std::string& complaint_of(const ProcessResult& result);

// Reports the places that were removed, or `trouble` and why they could not be listed.
void report_removed(const Function<void(std::string_view)>& on_progress,
                    const Expected<std::vector<FoundPlace>>& found, std::string_view trouble,
                    std::string_view removed);

inline constexpr char claim_kind[] = "sandboxclaims.extensions.agents.x-k8s.io";

// What to do about what kubectl or a status says; empty when that is not known.
std::string_view kubectl_help(std::string_view said);

// What kubectl said in vain, on one line, and what to do about it.
std::string kubectl_trouble(std::string_view said);

// The object to be created under that name, in JSON on one line.
Expected<std::string> pod_object(const KubernetesOptions& options, const std::string& name);

// Of an agent, where a label may have it; "agent" when nothing is left of it.
std::string agent_label(std::string_view agent_id);

enum PodState { pod_waits = 1, pod_ready = 2, pod_ended = 4 };

// Looks at a pod or a claim until it is in one of the states `until`, or the deadline has passed.
// Returns its state then, and in `why` what Kubernetes says of that.
struct PodWatch {
  const std::vector<std::string>& kubectl;
  const char* kind;
  const std::string& name;
  int until;
  std::string why = {};
  Json seen = {};  // the object, as it was then
  Function<void(std::string_view)> on_progress = {};

  Expected<PodState> wait(const std::optional<CancelToken>& cancel,
                          std::chrono::steady_clock::time_point deadline);

 private:
  PodState look_at(const Json& event);
};

// What Kubernetes has warned of last, or nothing.
std::string last_warning(const std::vector<std::string>& kubectl, const std::string& name);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
