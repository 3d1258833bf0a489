// Pods of a warm pool of agent-sandbox, by its own controller, and the manifests of the examples.

#include "kubernetes_support.hpp"

#include <chrono>
#include <string>

using codeexec::Command;
using codeexec::Outcome;
using kubernetes::apply;
using kubernetes::is_missing;
using kubernetes::kubectl;
using kubernetes::PlaceExecutor;
using kubernetes::pod_of;
using kubernetes::Pods;
using kubernetes::ProcessResult;
using kubernetes::Result;
using kubernetes::Strings;
using namespace support;

namespace {

bool has_no_sandboxes() {
  if (is_missing()) return true;
  if (kubectl({"get", "crd", "sandboxclaims.extensions.agents.x-k8s.io"}).succeeded()) return false;
  MESSAGE("SKIPPED: the Kubernetes of CODEEXEC_TEST_KUBERNETES=1 has no agent-sandbox");
  return true;
}

std::string names(const char* kind) { return kubectl({"get", kind, "-o", "name"}).out; }

class Pool {
 public:
  Pool() {
    apply(
        "apiVersion: extensions.agents.x-k8s.io/v1beta1\nkind: SandboxTemplate\n"
        "metadata: {name: codeexec-test}\nspec:\n  podTemplate:\n    spec:\n"
        "      restartPolicy: Never\n      terminationGracePeriodSeconds: 0\n"
        "      containers: [{name: agent, image: 'localhost/busybox:1', workingDir: /tmp, "
        "command: [sleep, '3600']}]\n---\n"
        "apiVersion: extensions.agents.x-k8s.io/v1beta1\nkind: SandboxWarmPool\n"
        "metadata: {name: codeexec-test}\n"
        "spec: {replicas: 1, sandboxTemplateRef: {name: codeexec-test}}\n");
    REQUIRE(comes_true([] {
      return kubectl({"get", "sandboxwarmpool", "codeexec-test", "-o",
                      "jsonpath={.status.readyReplicas}"})
                 .out == "1";
    }));
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { kubectl({"delete", "sandboxwarmpool,sandboxtemplate", "codeexec-test"}); }
};

}  // namespace

TEST_CASE("kubernetes: a pod of a warm pool is claimed, and given back with the executor") {
  if (has_no_sandboxes()) return;
  const Pool pool;
  const std::string warm = names("pods");
  Pods f;
  f.options.image.clear();
  f.options.warm_pool = "codeexec-test";
  {
    codeexec::PlaceOptions place = f.place();
    place.workspace = "/tmp";
    const auto there = PlaceExecutor::create(place);
    REQUIRE_MESSAGE(there, there.error().message);
    const Result r = there->run("hostname; exit 3");
    CHECK(r.exit_code == 3);
    CHECK_MESSAGE(has(warm, pod_of(r)), warm);
    CHECK(r.out == pod_of(r) + "\n");
    CHECK(begins(names("sandboxclaims"), "sandboxclaim.extensions.agents.x-k8s.io/codeexec-"));
    const codeexec::Execution started = there->start(Command::shell("echo begun; sleep 600"));
    REQUIRE(support::prints_text(started, "begun\n"));
    REQUIRE(kubectl({"delete", "sandboxclaims", "--all"}).succeeded());
    const Result lost = started.wait();
    CHECK(lost.outcome == Outcome::unknown);
    CHECK_MESSAGE(has(lost.message, "it was deleted"), lost.message);
    const Result next = there->run("echo again");
    CHECK_MESSAGE(next.out == "again\n", describe(next));
    CHECK(pod_of(next) != pod_of(r));
  }
  CHECK(comes_true([] { return names("sandboxclaims").empty(); }));
  f.options.warm_pool = "nosuch";
  CHECK_MESSAGE(has(f.refusal(), "`kubectl get sandboxwarmpools` lists them"), f.refusal());
  CHECK(comes_true([] { return names("sandboxclaims").empty(); }));
}

TEST_CASE("kubernetes: a pool has pods ready, and one that was deleted is not given away") {
  if (is_missing()) return;
  Pods f;
  {
    const auto pool = codeexec::PlacePool::create(
        [&f]() -> std::shared_ptr<codeexec::PlaceEngine> {
          const auto engine = codeexec::kubernetes_pods(f.options);
          return engine ? *engine : nullptr;
        },
        2);
    REQUIRE(pool);
    REQUIRE(comes_true([&] { return pool->ready() == 2; }));
    const Strings ready = lines_of(kubernetes::pods());
    REQUIRE(ready.size() == 2);
    codeexec::PlaceOptions place = f.place();
    place.engine = pool->take();
    const auto first = PlaceExecutor::create(place);
    REQUIRE_MESSAGE(first, first.error().message);
    const std::string pod = pod_of(first->run("true"));
    const std::string other = pod == ready[0] ? ready[1] : ready[0];
    CHECK((pod == ready[0] || pod == ready[1]));
    REQUIRE(kubectl({"delete", "pod", other, "--now"}).succeeded());
    place.engine = pool->take();
    const auto second = PlaceExecutor::create(place);
    REQUIRE_MESSAGE(second, second.error().message);
    const std::string next = pod_of(second->run("true"));
    CHECK(next != pod);
    CHECK(next != other);
    // A connection that was lost does not cost the pod.
    const codeexec::Execution running =
        first->start(Command::shell("echo kept > kept; echo begun; sleep 600"));
    REQUIRE(support::prints_text(running, "begun"));
    REQUIRE(kubectl({"exec", pod, "--", "sh", "-c",
                     "for p in /proc/[0-9]*; do case $(tr '\\0' ' ' < $p/cmdline) in *[-]-place*) "
                     "kill -9 ${p#/proc/};; esac; done"})
                .succeeded());
    CHECK(running.wait().outcome == Outcome::unknown);
    // Its supervisor may go before the agent does.
    Result again;
    CHECK_MESSAGE(comes_true([&] {
                    again = first->run("cat kept");
                    return again.out == "kept\n";
                  }),
                  describe(again));
    CHECK(pod_of(again) == pod);
  }
  CHECK(kubernetes::no_pod_is_left());
}

TEST_CASE("kubernetes: pods are listed with their owners") {
  if (is_missing()) return;
  Pods f;
  f.options.agent_id = "Lister 7";
  const PlaceExecutor there = f.executor();
  const std::string pod = pod_of(there.run("true"));
  const support::TempDir workspace;
  const ProcessResult listed = kubernetes::run_words(
      {CODEEXEC_MCP, "--execution-mode", "kubernetes", "--places-remove", "--json"});
  REQUIRE_MESSAGE(listed.succeeded(), listed.err);
  const auto places = codeexec::Json::parse(listed.out);
  REQUIRE(places);
  REQUIRE(places->size() == 1);
  const codeexec::Json& place = (*places)[0];
  CHECK(place["name"].as_string() == pod);
  CHECK(place["agent"].as_string() == "lister-7");
  CHECK(place["pid"].as_string() == std::to_string(::getpid()));
  CHECK(place["owner"].as_string() == "running");
  CHECK(place["state"].as_string() == "running");
  CHECK(place["age"].as_integer(-1) >= 0);
  CHECK(there.run("true").succeeded());
  const ProcessResult none =
      kubernetes::run_words({CODEEXEC_MCP, "--execution-mode", "kubernetes", "--kubernetes-option",
                             "context=nosuch", "--places"});
  CHECK(none.exit_code == 1);
  CHECK(has(none.err, "get-contexts"));
}

TEST_CASE("kubernetes: the API server takes the manifests of the examples") {
  if (is_missing()) return;
  const std::string folder = CODEEXEC_ROOT "/examples/kubernetes/";
  REQUIRE(kubectl({"apply", "-f", folder + "namespace.yaml"}).succeeded());
  for (const char* name : {"rbac.yaml", "network.yaml", "pod.yaml", "server.yaml", "pool.yaml"}) {
    if (name == std::string("pool.yaml") && has_no_sandboxes()) continue;
    const ProcessResult r =
        kubectl({"apply", "--namespace=agents", "--dry-run=server", "-f", folder + name});
    CHECK_MESSAGE(r.succeeded(), name, ": ", r.err);
    CHECK_MESSAGE(!has(r.err, "Warning"), name, ": ", r.err);
  }
  CHECK(kubectl({"delete", "namespace", "agents", "--wait=false"}).succeeded());
}
