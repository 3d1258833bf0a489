// Helpers that several tests of containers share.
#ifndef CODEEXEC_TESTS_UNIT_DOCKER_CONTAINER_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_DOCKER_CONTAINER_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

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
  options.cpus = 1;
  return options;
}

inline codeexec::Container make(const codeexec::ContainerOptions& options) {
  const auto complete = codeexec::complete(options);
  REQUIRE_MESSAGE(complete, complete.error().message);
  return codeexec::Container(*complete);
}

inline void require(const codeexec::Expected<void>& done) {
  REQUIRE_MESSAGE(done, done.error().message);
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_DOCKER_CONTAINER_HELPERS_HPP
