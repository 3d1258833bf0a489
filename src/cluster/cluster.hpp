// Places that an engine of a cluster makes.
#pragma once

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "place/place.hpp"

namespace codeexec {
inline namespace v0_1 {

struct SlurmOptions {
  // More of salloc's, without `--` and with the value in the same word: "partition=debug",
  // "mem=4G", "time=60". They say what a job may have; Slurm judges them.
  std::vector<std::string> options = {};
  std::string agent_id = {};  // part of the job's name, codeexec-AGENT
  // The agent's program on the nodes. Empty: the transport leads to a shell, for
  // PlaceOptions::agent.
  std::string agent = "codeexec-mcp";
  // How long a command waits for a job to begin. After that the job stays in the queue, and the
  // next command waits for it again.
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);
  // Gets what happens meanwhile, a line each, in any thread.
  Function<void(std::string_view)> on_progress = {};
};

// One job of Slurm, which the first command asks for and all commands of an executor run in, by the
// programs salloc, srun, squeue and scancel and with the variables of this process. The job gets
// PATH, HOME, USER, LOGNAME, SHELL and LANG of them. A job that has ended is replaced when the next
// command comes; no command is run twice.
//
// The job ends with the engine, and with this process, also when that is killed: salloc, which
// holds it, reads its input until then. Where salloc was killed, too, the job is cancelled when
// another is asked for on this machine.
//   Errors: invalid_argument for an option that is none.
Expected<std::shared_ptr<PlaceEngine>> slurm_jobs(const SlurmOptions& options);

// The jobs of this user that slurm_jobs() has made anywhere and that have not ended. With
// `remove_left` those of programs that have ended are cancelled, and no others.
//   Errors: io, with what Slurm said; the first job that cannot be cancelled ends it.
Expected<std::vector<FoundPlace>> slurm_places(bool remove_left = false);
// Exactly one of image, pod_template and warm_pool.
struct KubernetesOptions {
  // More of kubectl's, without `--` and with the value in the same word: "context=lab",
  // "namespace=agents". Without them it takes what its configuration has.
  std::vector<std::string> options = {};
  // Of a pod that this makes: it has `sh`, runs as user 1000 without capabilities, privileges and
  // token, and HOME is /tmp. The workspace /workspace is its own, or a claim.
  std::string image = {};
  std::vector<std::string> limits = {};  // NAME=QUANTITY, also requested: "memory=1Gi", "cpu=2"
  std::string claim = {};                // a PersistentVolumeClaim for /workspace
  // A file with a Pod of the operator's own, in JSON or YAML. It is given a name, labels, an owner
  // and, where it has none, activeDeadlineSeconds. Its first container must run on by itself.
  std::string pod_template = {};
  // A SandboxWarmPool of kubernetes-sigs/agent-sandbox (agents.x-k8s.io/v1beta1), from which a
  // SandboxClaim takes a pod.
  std::string warm_pool = {};
  // After which Kubernetes ends the pod, whatever became of this program. In whole seconds.
  std::chrono::seconds lifetime = std::chrono::hours(24);
  std::string agent_id = {};  // part of the pod's name, and its label codeexec/agent
  // The agent's program in the pod. Empty: the transport leads to a shell, for PlaceOptions::agent.
  std::string agent = "codeexec-mcp";
  // How long a command waits for a pod to be ready. After that a pod that may still become ready
  // stays, and the next command waits for it again.
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);
  // Gets what happens meanwhile, a line each, in any thread.
  Function<void(std::string_view)> on_progress = {};
};

// One pod of Kubernetes for all commands of an executor, by the program kubectl with the variables
// of this process. A pod that has ended is replaced when the next command comes; no command is run
// twice. Its files are its own: PlaceWorkspace::remote, unless the operator shares a claim.
//
// The pod goes with the engine, and with this process, also when that is killed: a shell that reads
// its input until then deletes it. Where that shell was killed, too, the pod is deleted when
// another is asked for on this machine, or ends after its lifetime.
//   Errors: invalid_argument for options that are none or do not go together.
Expected<std::shared_ptr<PlaceEngine>> kubernetes_pods(const KubernetesOptions& options);

// The pods, or with a warm_pool the claims, that kubernetes_pods() has made for any user in that
// namespace and that are there still. With `remove_left` those of programs of this machine that
// have ended are deleted, and no others.
//   Errors: io, with what kubectl said; the first one that cannot be deleted ends it.
Expected<std::vector<FoundPlace>> kubernetes_places(const KubernetesOptions& options,
                                                    bool remove_left = false);

// What the user of kubectl needs there and has, a line each that begins with "ok   " or "FAIL ",
// and after those the Role that grants it, as YAML. Takes some seconds.
std::string kubernetes_rights(const KubernetesOptions& options);

}  // namespace v0_1
}  // namespace codeexec
