// Pods of a real Kubernetes: refusals, and what ends a pod.

#include "kubernetes_support.hpp"

#include <chrono>
#include <string>

using codeexec::Command;
using codeexec::Outcome;
using kubernetes::apply;
using kubernetes::helper;
using kubernetes::is_missing;
using kubernetes::kubectl;
using kubernetes::no_pod_is_left;
using kubernetes::PlaceExecutor;
using kubernetes::pod_of;
using kubernetes::Pods;
using kubernetes::pods;
using kubernetes::Result;
using kubernetes::Strings;
using namespace support;

namespace {

// A command that is running there when `end` ends its pod.
template <class End>
Result result_of(const PlaceExecutor& there, End end) {
  const codeexec::Execution started =
      there.start(Command::shell("echo ran >> ran; echo begun; sleep 600"));
  REQUIRE(prints_text(started, "begun\n"));
  end();
  const Result r = started.wait();
  CHECK(r.outcome == Outcome::unknown);
  CHECK(r.out == "begun\n");
  return r;
}

class Namespace {
 public:
  explicit Namespace(const std::string& name) : name_(name) {
    apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}");
  }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;
  ~Namespace() { kubectl({"delete", "namespace", name_, "--wait=false"}); }

 private:
  const std::string name_;
};

}  // namespace

TEST_CASE("kubernetes: a refusal is one line that says what to do, and leaves nothing") {
  if (is_missing()) return;
  Pods f;
  f.options.options = {"context=nosuch"};
  CHECK_MESSAGE(has(f.refusal(), "`kubectl config get-contexts` lists them"), f.refusal());
  f.options.options = {"namespace=nosuch"};
  CHECK_MESSAGE(has(f.refusal(), "`kubectl get namespaces` lists them"), f.refusal());
  f.options.options = {"nosuch=1"};
  CHECK_MESSAGE(has(f.refusal(), "`kubectl options` lists them"), f.refusal());
  f.options.options = {"server=https://127.0.0.1:1"};
  CHECK_MESSAGE(has(f.refusal(), "is the cluster up, and the context right?"), f.refusal());
  f.options.options = {};
  f.options.warm_pool = "nosuch";
  f.options.image.clear();
  if (!kubectl({"get", "crd", "sandboxclaims.extensions.agents.x-k8s.io"}).succeeded())
    CHECK_MESSAGE(has(f.refusal(), "agent-sandbox v1beta1 is not installed there"), f.refusal());
  f.options.warm_pool.clear();
  f.options.image = "nosuch.invalid/image:1";
  CHECK_MESSAGE(has(f.refusal(), "is its name right, and may the node get it?"), f.refusal());
  f.options.image = "Not an image";
  CHECK_MESSAGE(has(f.refusal(), "InvalidImageName"), f.refusal());
  CHECK(no_pod_is_left());
}

TEST_CASE("kubernetes: a pod that no node takes yet stays, and the next command waits for it") {
  if (is_missing()) return;
  Pods f;
  f.options.start_timeout = std::chrono::seconds(2);
  const auto engine = codeexec::kubernetes_pods(f.options);
  REQUIRE(engine);
  REQUIRE(kubectl({"cordon", "localhost"}).succeeded());
  const auto first = (*engine)->reach({});
  const std::string waiting = pods();
  codeexec::CancelToken cancel;
  cancel.cancel();
  const auto second = (*engine)->reach(cancel);
  CHECK(pods() == waiting);
  CHECK(kubectl({"uncordon", "localhost"}).succeeded());
  REQUIRE(!first);
  CHECK_MESSAGE(has(first.error().message, "is not ready after 2 s: Unschedulable"),
                first.error().message);
  CHECK(has(first.error().message, "it stays there: try again later"));
  CHECK(has(f.progress(), "Unschedulable"));
  REQUIRE(!second);
  CHECK(second.error().system_error == ECANCELED);
  CHECK(comes_true([&] { return (*engine)->reach({}).has_value(); }));
  CHECK(pods() == waiting);
}

TEST_CASE("kubernetes: what a user may not do is said for each verb") {
  if (is_missing()) return;
  Pods f;
  const Namespace space("codeexec-rights");
  const std::string config = helper("user", "one").out;
  f.options.options = {"kubeconfig=" + (config.substr(0, config.size() - 1)),
                       "namespace=codeexec-rights"};
  const auto grant = [](const std::string& rules) {
    apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: codeexec, "
        "namespace: codeexec-rights}\nrules: [" +
        rules +
        "]\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: "
        "codeexec, namespace: codeexec-rights}\nroleRef: {apiGroup: rbac.authorization.k8s.io, "
        "kind: Role, name: codeexec}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: "
        "User, name: one}]\n");
  };
  const auto pod_rule = [](const std::string& verbs) {
    return "{apiGroups: [''], resources: [pods], verbs: [" + verbs + "]}";
  };
  const std::string help = "this user may not do that: --doctor prints the Role that is needed";
  for (const auto& [verbs, said] : {std::pair{"delete", "cannot create"},
                                    {"create, delete", "cannot get"},
                                    {"create, delete, get", "Forbidden"}}) {
    grant(pod_rule(verbs));
    CHECK_MESSAGE(comes_true([&, text = said] { return has(f.refusal(), text); }), f.refusal());
    CHECK_MESSAGE(has(f.refusal(), help), f.refusal());
  }
  const std::string rights = codeexec::kubernetes_rights(f.options);
  CHECK_MESSAGE(has(rights, "ok   kubectl\nok   create pods\nok   get pods\n"), rights);
  CHECK_MESSAGE(has(rights, "FAIL create pods/exec\n"), rights);
  grant(pod_rule("create, delete, get, watch"));
  CHECK(comes_true([&] { return has(f.refusal(), "pods/exec"); }));
  CHECK_MESSAGE(has(f.progress(), "cannot look for what programs have left: "), f.progress());
  // What it prints is enough.
  const std::size_t rules = rights.find("\nrules:\n");
  REQUIRE(rules != std::string::npos);
  std::string role = rights.substr(rights.find("apiVersion:"));
  role.replace(role.find("{name: codeexec}"), 16, "{name: codeexec, namespace: codeexec-rights}");
  apply(role);
  CHECK(comes_true([&] { return !has(codeexec::kubernetes_rights(f.options), "FAIL "); }));
  CHECK(f.executor().run("echo ran").out == "ran\n");
  CHECK(no_pod_is_left());
}

TEST_CASE("kubernetes: a quota says how to go on") {
  if (is_missing()) return;
  Pods f;
  const Namespace space("codeexec-quota");
  apply(
      "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: codeexec-quota}, "
      "spec: {hard: {pods: '0'}}}");
  f.options.options = {"namespace=codeexec-quota"};
  CHECK_MESSAGE(has(f.refusal(), "exceeded quota"), f.refusal());
  CHECK_MESSAGE(has(f.refusal(), "the namespace has no room"), f.refusal());
}

TEST_CASE("kubernetes: a pod that is deleted or evicted is told of, and replaced by another") {
  if (is_missing()) return;
  Pods f;
  const PlaceExecutor there = f.executor();
  const std::string first = pod_of(there.run("true"));
  const Result deleted = result_of(there, [&] {
    REQUIRE(kubectl({"delete", "pod", first, "--wait=false"}).succeeded());
  });
  CHECK_MESSAGE(has(deleted.message, "the connection to Kubernetes pod " + first + " was lost"),
                deleted.message);
  CHECK_MESSAGE(has(deleted.message, "; it was deleted"), deleted.message);
  const Result next = there.run("cat ran; echo again");
  REQUIRE_MESSAGE(next.out == "again\n", describe(next));
  const std::string second = pod_of(next);
  CHECK(second != first);
  REQUIRE(next.notes.size() == 1);
  CHECK_MESSAGE(has(next.notes[0], "and so are the files that it alone had"), next.notes[0]);
  const Result evicted = result_of(there, [&] {
    const kubernetes::ProcessResult r = kubectl(
        {"create", "-f", "-", "--raw", "/api/v1/namespaces/default/pods/" + second + "/eviction"},
        "{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"" +
            second + "\", \"namespace\": \"default\"}}");
    REQUIRE_MESSAGE(r.succeeded(), r.err);
  });
  CHECK_MESSAGE(has(evicted.message, "EvictionByEvictionAPI"), evicted.message);
  CHECK(there.run("echo again").out == "again\n");
}

TEST_CASE("kubernetes: a pod whose time is up is told of") {
  if (is_missing()) return;
  Pods f;
  f.options.lifetime = std::chrono::seconds(8);
  const PlaceExecutor there = f.executor();
  const Result r = result_of(there, [] {});
  CHECK_MESSAGE(has(r.message, "DeadlineExceeded"), r.message);
}

TEST_CASE("kubernetes: a node that vanishes is told of, and its pod is replaced") {
  if (is_missing()) return;
  Pods f;
  f.options.start_timeout = std::chrono::seconds(30);
  const PlaceExecutor there = f.executor();
  const std::string first = pod_of(there.run("true"));
  const Result r = result_of(there, [] {
    const kubernetes::ProcessResult down = helper("node", "down");
    REQUIRE_MESSAGE(down.succeeded(), down.err);
  });
  CHECK_MESSAGE(has(r.message, "the connection to Kubernetes pod " + first + " was lost"),
                r.message);
  const Result meanwhile = there.run("echo ran");
  CHECK(meanwhile.outcome == Outcome::not_started);
  const kubernetes::ProcessResult up = helper("node", "up");
  REQUIRE_MESSAGE(up.succeeded(), up.err);
  CHECK(comes_true([&] { return there.run("echo again").out == "again\n"; }));
}

TEST_CASE("kubernetes: a server that is killed leaves no pod") {
  if (is_missing()) return;
  Pods f;
  const pid_t server = ::fork();
  REQUIRE(server >= 0);
  if (server == 0) {
    ::execl(CODEEXEC_MCP, CODEEXEC_MCP, "--execution-mode", "kubernetes", "--kubernetes-image",
            "localhost/busybox:1", "--place-agent", CODEEXEC_STATIC, "--run",
            "echo begun > begun; sleep 600", nullptr);
    ::_exit(97);
  }
  REQUIRE(comes_true([] { return !pods().empty(); }));
  const std::string pod = lines_of(pods()).at(0);
  REQUIRE(comes_true([&] {
    return kubectl({"exec", pod, "--", "test", "-e", "/workspace/begun"}).succeeded();
  }));
  const Stopwatch watch;
  REQUIRE(::kill(server, SIGKILL) == 0);
  REQUIRE(::waitpid(server, nullptr, 0) == server);
  CHECK(no_pod_is_left());
  CHECK(watch.soon());
}

TEST_CASE("kubernetes: pods that programs have left are deleted, those of others never") {
  if (is_missing()) return;
  Pods f;
  const PlaceExecutor living = f.executor();
  const std::string kept = pod_of(living.run("true"));
  const std::string owner =
      kubectl({"get", "pod", kept, "-o", "jsonpath={.metadata.annotations.codeexec/owner}"}).out;
  const std::string pid = ";" + std::to_string(::getpid()) + ";";
  const std::size_t at = owner.find(pid);
  REQUIRE(at != std::string::npos);
  const auto leave = [](const std::string& name, const std::string& maker) {
    apply("{apiVersion: v1, kind: Pod, metadata: {name: " + name +
          ", labels: {app.kubernetes.io/managed-by: codeexec}, annotations: {codeexec/owner: '" +
          maker +
          "'}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "
          "'localhost/busybox:1', command: [sleep, '3600']}]}}");
  };
  // A program of that number that began before.
  leave("left", owner.substr(0, at) + pid + "1");
  leave("elsewhere", "other-host;x;y;1;1");
  leave("nobodys", "");
  const PlaceExecutor another = f.executor();
  const std::string its_own = pod_of(another.run("true"));
  CHECK(has(f.progress(), "deleted left, which a program that has ended had left"));
  CHECK(comes_true([] { return !has(pods(), "left\n"); }));
  CHECK(lines_of(pods()).size() == 4);
  CHECK(living.run("hostname").out == kept + "\n");
  CHECK(kubectl({"delete", "pod", "elsewhere", "nobodys", "--now"}).succeeded());
}
