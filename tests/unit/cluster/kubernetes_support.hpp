// A Kubernetes of the tests, helpers/kubernetes.sh, as the tests of it see it.
#ifndef CODEEXEC_TESTS_KUBERNETES_SUPPORT_HPP
#define CODEEXEC_TESTS_KUBERNETES_SUPPORT_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

// Where no static program can be made.
#ifndef CODEEXEC_STATIC
#define CODEEXEC_STATIC ""
#endif

namespace kubernetes {

using codeexec::KubernetesOptions;
using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::ProcessResult;
using codeexec::Result;
using Strings = std::vector<std::string>;

inline bool is_missing() {
  if (!std::getenv("CODEEXEC_TEST_KUBERNETES")) {
    MESSAGE(
        "SKIPPED: needs CODEEXEC_TEST_KUBERNETES=1 and $KUBECONFIG of a Kubernetes of the tests");
    return true;
  }
  if (*CODEEXEC_STATIC) return false;
  MESSAGE("SKIPPED: needs a codeexec-mcp that runs in any image, and none can be made here");
  return true;
}

inline std::string folder() {
  const std::string path = std::getenv("KUBECONFIG");
  return path.substr(0, path.rfind('/'));
}

inline ProcessResult run_words(const Strings& words, const std::string& input = {}) {
  codeexec::ProcessOptions options;
  options.argv = words;
  options.input = input;
  options.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + folder()};
  for (const char* const name : {"KUBECONFIG", "CODEEXEC_KUBERNETES_BIN"})
    if (const char* const value = std::getenv(name))
      options.environment.push_back(std::string(name) + "=" + value);
  options.timeout = 2 * support::safety;
  return codeexec::run_process(options);
}

inline ProcessResult kubectl(Strings words, const std::string& input = {}) {
  words.insert(words.begin(), "kubectl");
  return run_words(words, input);
}

inline void apply(const std::string& objects) {
  const ProcessResult r = kubectl({"apply", "-f", "-"}, "---\n" + objects);
  REQUIRE_MESSAGE(r.succeeded(), r.err);
}

inline ProcessResult helper(const std::string& command, const std::string& what) {
  return run_words({"sh", CODEEXEC_ROOT "/tests/helpers/kubernetes.sh", command, folder(), what});
}

// Of ours, in any namespace.
inline std::string pods() {
  return kubectl({"get", "pods", "-A", "-l", "app.kubernetes.io/managed-by=codeexec", "-o",
                  "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"})
      .out;
}

inline bool no_pod_is_left() {
  return support::comes_true([] { return pods().empty(); });
}

inline std::string pod_of(const Result& result) {
  const std::string start = "Kubernetes pod ";
  REQUIRE_MESSAGE(support::begins(result.place, start), support::describe(result));
  return result.place.substr(start.size());
}

// kubectl keeps what it has learned of a cluster in its home.
class Pods {
 public:
  KubernetesOptions options = {};

  Pods() {
    REQUIRE(no_pod_is_left());
    ::setenv("HOME", folder().c_str(), 1);
    options.image = "localhost/busybox:1";
    options.agent.clear();
    options.on_progress = [this](std::string_view what) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_ += std::string(what) + "\n";
    };
  }
  ~Pods() { ::setenv("HOME", home_.c_str(), 1); }
  Pods(const Pods&) = delete;
  Pods& operator=(const Pods&) = delete;

  PlaceOptions place() const {
    PlaceOptions place;
    const auto engine = codeexec::kubernetes_pods(options);
    REQUIRE_MESSAGE(engine, engine.error().message);
    place.engine = *engine;
    place.workspace_mode = codeexec::PlaceWorkspace::remote;
    place.workspace = "/workspace";
    if (options.agent.empty()) place.agent = CODEEXEC_STATIC;
    place.timeout = 2 * support::safety;
    return place;
  }
  PlaceExecutor executor() const {
    auto made = PlaceExecutor::create(place());
    REQUIRE_MESSAGE(made, made.error().message);
    return *std::move(made);
  }
  // Why there is no executor; on one line.
  std::string refusal() const {
    const auto made = PlaceExecutor::create(place());
    REQUIRE(!made);
    CHECK(!support::has(made.error().message, "\n"));
    return made.error().message;
  }
  std::string progress() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }

 private:
  const std::string home_ = std::getenv("HOME") ? std::getenv("HOME") : "/";
  mutable std::mutex mutex_ = {};
  std::string told_ = {};
};

}  // namespace kubernetes

#endif  // CODEEXEC_TESTS_KUBERNETES_SUPPORT_HPP
