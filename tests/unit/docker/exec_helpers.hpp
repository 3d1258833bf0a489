// Helpers that several tests of commands in containers share.
#ifndef CODEEXEC_TESTS_UNIT_DOCKER_EXEC_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_DOCKER_EXEC_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

inline const char* const bash_image = "codeexec-test/debian-bash:latest";

// Of its own programs, which are not those that run as root.
inline const char* const ordinary_user = "1000:1000";

// The same as `debian` with bash as its sh.
inline void make_bash_image() {
  const std::string name = "codeexec-test-" + std::to_string(::getpid());
  if (!docker({"run", "--name", name, "--network", "none", debian_image, "ln", "-sf", "bash",
               "/bin/sh"})
           .succeeded())
    return;
  docker({"commit", "--change", "CMD [\"bash\"]", name, bash_image});
  docker({"rm", "-f", name});
}

inline const std::vector<std::string>& images() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    for (const char* image : {busybox_image, debian_image})
      if (has_image(image)) found.emplace_back(image);
    if (has_image(debian_image) && !has_image(bash_image)) make_bash_image();
    if (has_image(bash_image)) found.emplace_back(bash_image);
    return found;
  }();
  return all;
}

inline bool has_images() {
  if (!support::has_engine()) return false;
  if (!images().empty()) return true;
  MESSAGE("SKIPPED: the engine has none of the images for tests");
  return false;
}

inline bool has_debian() { return support::has_engine_with(debian_image); }

using Change = std::function<void(codeexec::ContainerExecutorOptions&)>;

// An executor with a container and a workspace of its own.
class Box {
 public:
  explicit Box(const std::string& image, const Change& change = {}) {
    if (::chown(workspace.path().c_str(), 1000, 1000) != 0) support::fail("chown", "");
    codeexec::ContainerExecutorOptions options;
    options.workspace = workspace.path();
    options.container.image = image;
    options.container.user = ordinary_user;
    options.container.agent = engine_agent;
    options.on_audit = log.callback();
    if (change) change(options);
    codeexec::Expected<codeexec::ContainerExecutor> made =
        codeexec::ContainerExecutor::create(options);
    REQUIRE_MESSAGE(made, made.error().message);
    executor_ = std::make_unique<codeexec::ContainerExecutor>(*std::move(made));
  }
  ~Box() {
    if (executor_) docker({"rm", "-f", name()});
  }
  const codeexec::ContainerExecutor& executor() const { return *executor_; }
  const std::string& name() const { return executor_->container_name(); }
  codeexec::Result run(const std::string& script) const { return executor_->run(script); }
  codeexec::Result run(const codeexec::Command& command) const { return executor_->run(command); }
  // Its last handle, so that its container goes away.
  void drop() { executor_.reset(); }

  support::TempDir workspace = support::TempDir();
  support::AuditLog log = {};

 private:
  std::unique_ptr<codeexec::ContainerExecutor> executor_ = {};
};

// For tests that leave a container as it was.
inline const Box& shared_box(const std::string& image) {
  static std::map<std::string, std::unique_ptr<Box>> boxes;
  std::unique_ptr<Box>& box = boxes[image];
  if (!box) box = std::make_unique<Box>(image);
  return *box;
}

// A program that no other test starts, and that does not end by itself.
inline std::string endless_program() {
  static std::atomic<int> count{0};
  return "sleep " + std::to_string(700000000 + ::getpid() % 10000 * 10000 + ++count);
}

// What runs in a container, as the host sees it.
inline std::string processes(const std::string& container) {
  return docker({"top", container, "-eo", "pid,args"}).out;
}

// Whether a program is in a container, once what was killed had time to die.
inline bool left_in(const std::string& container, const std::string& program) {
  return !comes_true([&] { return !has(processes(container), program); }, std::chrono::seconds(60));
}

// The next command of the same executor is well.
inline void check_usable(const Box& box) {
  const codeexec::Result result = box.run("echo still here");
  CHECK_MESSAGE(result.succeeded(), describe(result));
  CHECK(result.out == "still here\n");
}

// A program of the engine's that does something else than `docker`.
inline std::string fake_engine(const support::TempDir& folder, const std::string& script) {
  return folder.file("engine", "#!/bin/sh\n" + script, 0755);
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_DOCKER_EXEC_HELPERS_HPP
