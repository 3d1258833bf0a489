// Helpers that several tests of containers share.
#ifndef CODEEXEC_TESTS_UNIT_DOCKER_CONTAINER_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_DOCKER_CONTAINER_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

inline codeexec::ContainerOptions small(const std::string& agent,
                                        const char* image = busybox_image) {
  codeexec::ContainerOptions options;
  options.image = image;
  options.image_policy = codeexec::ImagePolicy::never;
  options.agent_id = agent;
  options.agent = engine_agent;
  options.cpus = 1;
  return options;
}

// A container by itself. All of them have one workspace, so that a persistent one is found again.
class Container {
 public:
  explicit Container(const codeexec::ContainerOptions& options) {
    codeexec::ContainerExecutorOptions wanted;
    static const TempDir workspace;
    wanted.workspace = workspace.path();
    wanted.agent_id = options.agent_id;
    wanted.container = options;
    auto made = codeexec::ContainerExecutor::create(wanted);
    REQUIRE_MESSAGE(made, made.error().message);
    executor_.emplace(std::move(*made));
  }
  const codeexec::ContainerExecutor* operator->() const { return &*executor_; }
  const std::string& name() const { return executor_->container_name(); }

 private:
  std::optional<codeexec::ContainerExecutor> executor_ = {};
};

inline Container make(const codeexec::ContainerOptions& options) { return Container(options); }

inline void require(const codeexec::Expected<void>& done) {
  REQUIRE_MESSAGE(done, done.error().message);
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_DOCKER_CONTAINER_HELPERS_HPP
