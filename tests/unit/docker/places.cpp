// Lists of containers in a real engine, and what is removed from it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "container_helpers.hpp"

using codeexec::FoundPlace;
using codeexec::Json;
using namespace support;

namespace {

// How long the containers of a killed server may stay, as docs/places.md says it.
constexpr std::chrono::seconds stated_time(30);

// Those of an agent.
std::vector<FoundPlace> found_of(const std::string& agent, bool remove_left = false) {
  const auto found = codeexec::container_places({}, remove_left);
  REQUIRE_MESSAGE(found, found.error().message);
  std::vector<FoundPlace> own;
  for (const FoundPlace& place : *found)
    if (place.agent == agent) own.push_back(place);
  return own;
}

Server::Options listed_server(const TempDir& workspace, const std::string& agent) {
  Server::Options options;
  options.arguments = {"--execution-mode",
                       "docker",
                       "--docker-image",
                       busybox_image,
                       "--docker-image-policy",
                       "never",
                       "--workspace",
                       workspace.path(),
                       "--agent-id",
                       agent};
  options.environment = {"HOME=/nonexistent"};
  for (const char* name : {"DOCKER_HOST", "DOCKER_CONTEXT", "CODEEXEC_PLACE_AGENT"})
    if (const char* const value = std::getenv(name))
      options.environment.push_back(std::string(name) + "=" + value);
  return options;
}

}  // namespace

TEST_CASE("container lists: before a server and after it was killed they are the same") {
  if (!has_engine_with(busybox_image)) return;
  const TempDir workspace;
  const std::string agent = fresh_agent();
  const Server::Options options = listed_server(workspace, agent);
  Server server(options);
  CHECK(found_of(agent).empty());
  CHECK(server.execute("echo hi")["stdout"] == Json("hi\n"));
  const auto running = found_of(agent, true);
  REQUIRE(running.size() == 1);
  CHECK(begins(running[0].name, "codeexec-"));
  CHECK(running[0].maker_runs == true);
  CHECK(running[0].pid == std::to_string(server.pid()));
  CHECK(running[0].state == "running");
  CHECK(!running[0].was_removed);
  CHECK(running[0].age.count() >= 0);
  CHECK(running[0].age < std::chrono::minutes(10));

  Strings words = options.arguments;
  words.insert(words.end(), {"--places", "--json"});
  const auto told = run_program(words, "/", options.environment);
  CHECK(told.err == "");
  bool is_listed = false;
  const Json list = parsed(told.out);
  for (const Json& place : list.items())
    if (place["name"] == Json(running[0].name)) is_listed = place["agent"] == Json(agent);
  CHECK(is_listed);

  server.signal(SIGKILL);
  CHECK(server.wait() == -SIGKILL);
  CHECK(comes_true([&] { return found_of(agent).empty(); }, stated_time));
}

TEST_CASE("container lists: persistent ones stay, and say that they are") {
  if (!has_engine_with(busybox_image)) return;
  codeexec::ContainerOptions options = small(fresh_agent());
  options.persistent = true;
  const support::Container container = make(options);
  require(container->ensure());
  const auto found = found_of(options.agent_id, true);
  REQUIRE(found.size() == 1);
  CHECK(found[0].state == "running, persistent");
  CHECK(found[0].maker_runs == true);
  require(container->remove());
  CHECK(found_of(options.agent_id).empty());
}
