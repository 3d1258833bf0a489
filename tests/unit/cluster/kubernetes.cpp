// Pods of a real Kubernetes of one node, helpers/kubernetes.sh: what commands see of them.

#include "kubernetes_support.hpp"

#include <chrono>
#include <fstream>
#include <string>

using codeexec::Outcome;
using kubernetes::apply;
using kubernetes::is_missing;
using kubernetes::kubectl;
using kubernetes::KubernetesOptions;
using kubernetes::no_pod_is_left;
using kubernetes::PlaceExecutor;
using kubernetes::pod_of;
using kubernetes::Pods;
using kubernetes::pods;
using kubernetes::Result;
using namespace support;

namespace {

// Of a pod's specification.
std::string field_of(const std::string& pod, const std::string& path) {
  return kubectl({"get", "pod", pod, "-o", "jsonpath={" + path + "}"}).out;
}

}  // namespace

TEST_CASE("kubernetes: commands run in one pod, which is gone with the executor") {
  if (is_missing()) return;
  Pods f;
  f.options.agent_id = "Agent_7!";
  ::setenv("CODEEXEC_TEST_SECRET", "of the server", 1);
  {
    const PlaceExecutor there = f.executor();
    const Result r = there.run("id -u; pwd; echo \"${CODEEXEC_TEST_SECRET-}$HOME\"; exit 3");
    CHECK(r.outcome == Outcome::exited);
    CHECK(r.exit_code == 3);
    CHECK_MESSAGE(r.out == "1000\n/workspace\n/tmp\n", describe(r));
    const std::string pod = pod_of(r);
    CHECK(begins(pod, "codeexec-agent-7-"));
    CHECK(pods() == pod + "\n");
    CHECK(field_of(pod, ".metadata.labels.codeexec/agent") == "agent-7");
    CHECK(field_of(pod, ".spec.activeDeadlineSeconds") == "86400");
    CHECK(field_of(pod, ".spec.automountServiceAccountToken") == "false");
    CHECK(there.run("ls /var/run/secrets").exit_code != 0);
    CHECK(there.run("grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status").out ==
          "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    CHECK(there.run("kill -KILL $$").signal == SIGKILL);
    CHECK(there.run("kill -9 -1; echo lived").outcome != Outcome::not_started);
    CHECK(there.run("hostname").out == pod + "\n");
  }
  ::unsetenv("CODEEXEC_TEST_SECRET");
  CHECK(no_pod_is_left());
}

TEST_CASE("kubernetes: bytes come as they are, and files are those of the pod") {
  if (is_missing()) return;
  Pods f;
  const PlaceExecutor there = f.executor();
  check_streams(there);
  const codeexec::Files files = there.files();
  REQUIRE(files.write("note.txt", "from here\n"));
  CHECK(there.run("cat /workspace/note.txt").out == "from here\n");
}

TEST_CASE("kubernetes: limits and a claim are handed on") {
  if (is_missing()) return;
  Pods f;
  f.options.limits = {"memory=64Mi", "cpu=500m", "ephemeral-storage=100Mi"};
  {
    const PlaceExecutor there = f.executor();
    const std::string pod = pod_of(there.run("true"));
    CHECK(field_of(pod, ".spec.containers[0].resources.requests.memory") == "64Mi");
    CHECK(field_of(pod, ".spec.volumes[0].emptyDir.sizeLimit") == "100Mi");
    const Result r = there.run("head -c 200000000 /dev/zero | tail -c 150000000 > /dev/null");
    CHECK(!(r.succeeded() && r.err.empty()));
  }
  f.options.limits.clear();
  f.options.claim = "nosuch";
  f.options.start_timeout = std::chrono::seconds(3);
  const std::string refusal = f.refusal();
  CHECK_MESSAGE(has(refusal, "persistentvolumeclaim \"nosuch\" not found"), refusal);
  CHECK(has(refusal, "it stays there: try again later"));
}

TEST_CASE("kubernetes: a pod of the operator's own, with the agent in it") {
  if (is_missing()) return;
  Pods f;
  const TempDir folder;
  const std::string agent = CODEEXEC_STATIC;
  const std::size_t slash = agent.rfind('/');
  std::ofstream(folder / "pod.yaml")
      << "apiVersion: v1\nkind: Pod\nmetadata: {name: theirs, labels: "
         "{team: red}}\nspec:\n  restartPolicy: Never\n"
         "  activeDeadlineSeconds: 900\n  containers:\n"
         "  - name: main\n    image: localhost/busybox:1\n"
         "    workingDir: /tmp\n    command: [sleep, '3600']\n"
         "    volumeMounts: [{name: agent, mountPath: /agent}]\n"
         "  volumes: [{name: agent, hostPath: {path: "
      << agent.substr(0, slash) << "}}]\n";
  f.options.image.clear();
  f.options.pod_template = folder / "pod.yaml";
  f.options.agent = "/agent/" + agent.substr(slash + 1);
  {
    codeexec::PlaceOptions place = f.place();
    place.workspace.clear();
    const auto there = PlaceExecutor::create(place);
    REQUIRE_MESSAGE(there, there.error().message);
    const Result r = there->run("pwd");
    CHECK(r.out == "/tmp\n");
    const std::string pod = pod_of(r);
    CHECK(begins(pod, "codeexec-agent-"));
    CHECK(field_of(pod, ".metadata.labels.team") == "red");
    CHECK(field_of(pod, ".spec.activeDeadlineSeconds") == "900");
  }
  f.options.agent = "/nonexistent/codeexec-mcp";
  CHECK_MESSAGE(has(f.refusal(), "there is no such program there"), f.refusal());
  std::ofstream(folder / "pod.yaml") << "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
  CHECK_MESSAGE(has(f.refusal(), "must hold one Pod and nothing else"), f.refusal());
  f.options.pod_template = folder / "none.yaml";
  CHECK_MESSAGE(has(f.refusal(), "does not exist"), f.refusal());
  CHECK(no_pod_is_left());
}

TEST_CASE("kubernetes: options that are none, or do not go together") {
  const auto message = [](const KubernetesOptions& options) {
    const auto engine = codeexec::kubernetes_pods(options);
    REQUIRE(!engine);
    CHECK(engine.error().code == codeexec::ErrorCode::invalid_argument);
    return engine.error().message;
  };
  for (const char* word : {"", "-n", "--context=lab", "1", "Context=lab"}) {
    KubernetesOptions options;
    options.image = "x";
    options.options = {word};
    CHECK(begins(message(options), "kubernetes_option must be "));
  }
  for (const char* limit : {"", "memory", "memory=", "=1Gi"}) {
    KubernetesOptions options;
    options.image = "x";
    options.limits = {limit};
    CHECK(begins(message(options), "kubernetes_limit must be "));
  }
  KubernetesOptions options;
  CHECK(has(message(options), "and 0 were given"));
  options.image = options.warm_pool = "x";
  CHECK(has(message(options), "and 2 were given"));
  options.image.clear();
  options.claim = "x";
  CHECK(message(options) == "kubernetes_claim has no effect without kubernetes_image");
  options.claim.clear();
  options.lifetime = std::chrono::seconds(0);
  CHECK(message(options) == "kubernetes_lifetime must be at least 1");
}

TEST_CASE("kubernetes: without kubectl") {
  const TempDir folder;
  const std::string path = std::getenv("PATH");
  KubernetesOptions options;
  options.image = "x";
  const auto engine = codeexec::kubernetes_pods(options);
  REQUIRE(engine);
  codeexec::PlaceOptions place;
  place.engine = *engine;
  place.workspace = folder.path();
  const auto there = PlaceExecutor::create(place);
  REQUIRE(there);
  REQUIRE(::symlink("/bin/sh", (folder / "sh").c_str()) == 0);
  ::setenv("PATH", folder.path().c_str(), 1);
  const Result r = there->run("true");
  ::setenv("PATH", path.c_str(), 1);
  CHECK(r.outcome == Outcome::not_started);
  CHECK_MESSAGE(has(r.message, "install kubectl here"), r.message);
}
