// Containers, with a real engine: DOCKER_HOST says which, CODEEXEC_TEST_DOCKER=1 that it is meant
// for tests. Without that, what needs one is skipped.
#include "executor_support.hpp"

namespace {

using codeexec::ContainerOptions;

bool has_engine() {
  if (std::getenv("CODEEXEC_TEST_DOCKER")) return true;
  MESSAGE("SKIPPED: no container engine for tests (CODEEXEC_TEST_DOCKER is not set)");
  return false;
}

}  // namespace

TEST_CASE("container options: defaults are filled in") {
  auto options = codeexec::complete({});
  REQUIRE(options);
  CHECK(options->image == "codeexec/runtime:latest");
}

TEST_CASE("a container is made when it is needed") {
  if (!has_engine()) return;
}
