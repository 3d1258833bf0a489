// The table of options beside what the program does without them.
#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "codeexec.hpp"
#include "containers/containers_internal.hpp"
#include "places/places_internal.hpp"
#include "tools/server_internal.hpp"

using codeexec::Option;
using codeexec::ServerConfig;
namespace features = codeexec::features;

namespace {

const std::initializer_list<const codeexec::ServerFeature*> all_features = {
    &features::network, &features::program, &features::containers, &features::places};

}  // namespace

TEST_CASE("the default that help shows of a number or a choice is the one that holds") {
  std::size_t count = 0;
  const ServerConfig known(all_features);
  for (const Option* const option : known.options) {
    const std::string name(option->name());
    const std::string usual(option->usual());
    CAPTURE(name);
    const bool is_number = option->kind() >= Option::seconds && option->kind() <= Option::decimal;
    const bool is_text = option->kind() == Option::text && option->group() != Option::environment;
    const bool is_choice = option->kind() == Option::choice || is_text;
    if (usual.empty() || usual.find(' ') != std::string::npos || !(is_number || is_choice))
      continue;
    // These depend on other options, and are empty until they are read.
    if (std::set<std::string>{"timeout", "execution-mode", "max-artifact-size", "docker-image",
                              "spill-dir"}
            .count(name) == 1)
      continue;
    if (usual == "never" || name == "place-pool") continue;
    ServerConfig without(all_features);
    ServerConfig given(all_features);
    const auto set = codeexec::set_option("x", {usual}, *option, given);
    REQUIRE_MESSAGE(set, set.error().message);
    const void* const before = option->variable(without);
    const void* const after = option->variable(given);
    if (is_text) {
      CHECK(*static_cast<const std::string*>(before) == *static_cast<const std::string*>(after));
    } else {
      const std::size_t size = option->kind() == Option::choice ? sizeof(int) : sizeof(double);
      CHECK(std::memcmp(before, after, size) == 0);
    }
    ++count;
  }
  CHECK(count >= 30);
  CHECK(known.usual_timeout == std::chrono::seconds(60));
  CHECK(known.places->pool == 0);  // which cannot be given
  CHECK(known.containers->usual_artifact == std::uint64_t{50} << 20);
}

TEST_CASE("groups stand together, and the names of options differ") {
  std::set<std::string> names;
  unsigned group = 0;
  const ServerConfig config(all_features);
  for (const Option* const option : config.options) {
    CHECK(names.insert(std::string(option->name())).second);
    CHECK(option->group() >= group);
    group = option->group();
  }
}

TEST_CASE("a choice sets the enumerator of its name") {
  std::size_t count = 0;
  ServerConfig config(all_features);
  for (const Option* const option : config.options) {
    if (option->kind() != Option::choice) continue;
    CAPTURE(std::string(option->name()));
    int expected = 0;  // in the order of the enumeration
    for (const codeexec::Choice& choice : option->choices()) {
      REQUIRE(codeexec::set_option("x", {std::string(choice.name)}, *option, config));
      int value = -1;
      std::memcpy(&value, option->variable(config), sizeof value);
      CHECK(value == expected++);
    }
    CHECK(expected >= 3);
    ++count;
  }
  CHECK(count >= 5);
}

TEST_CASE("a row that has not what its kind needs is not complete") {
  const auto flag = [] {
    return Option(Option::of<&ServerConfig::reach_place>("flag").help("does something"));
  };
  CHECK(flag().is_complete());
  CHECK_FALSE(flag().value("TEXT").is_complete());
  CHECK_FALSE(flag().help("").is_complete());
  CHECK_FALSE(Option::of<&ServerConfig::reach_place>("Flag").help("x").is_complete());
  Option list = Option::of<&ServerConfig::read_only>("list").help("x");
  CHECK_FALSE(list.is_complete());
  CHECK_FALSE(list.value("DIR").is_complete());
  CHECK(list.value("DIR...").is_complete());
  Option choice = Option::of<&ServerConfig::sandbox>("choice").value("MODE").help("x");
  CHECK_FALSE(choice.is_complete());
  const codeexec::Choice modes[] = {"off"};
  CHECK(choice.one_of(modes).is_complete());
  const Option rows[] = {flag(), flag()};
  CHECK_FALSE(codeexec::are_complete(rows));
}
