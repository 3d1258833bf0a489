// The table of options beside what the program does without them.
#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "codeexec.hpp"
#include "tools/options_internal.hpp"

using codeexec::Option;
using codeexec::ServerConfig;

TEST_CASE("the default that help shows of a number or a choice is the one that holds") {
  std::size_t count = 0;
  for (const Option* option = Option::table; option != Option::end(); ++option) {
    const std::string name(option->part(Option::name));
    const std::string usual(option->part(Option::usual));
    CAPTURE(name);
    const bool is_number = option->kind >= Option::seconds && option->kind <= Option::decimal;
    const bool is_text = option->kind == Option::text && option->group != Option::environment;
    const bool is_choice = option->kind == Option::choice || is_text;
    if (usual.empty() || usual.find(' ') != std::string::npos || !(is_number || is_choice))
      continue;
    // These depend on other options, and are empty until they are read.
    if (std::set<std::string>{"timeout", "execution-mode", "max-artifact-size", "docker-image",
                              "spill-dir"}
            .count(name) == 1)
      continue;
    if (usual == "never" || name == "place-pool") continue;
    ServerConfig without;
    ServerConfig given;
    const auto set = codeexec::set_option("x", {usual}, option->target(given));
    REQUIRE_MESSAGE(set, set.error().message);
    const Option::Target before = option->target(without);
    const Option::Target after = option->target(given);
    if (is_text) {
      CHECK(*static_cast<std::string*>(before.place) == *static_cast<std::string*>(after.place));
    } else {
      const std::size_t size = option->kind == Option::choice ? sizeof(int) : sizeof(double);
      CHECK(std::memcmp(before.place, after.place, size) == 0);
    }
    ++count;
  }
  CHECK(count >= 30);
  const ServerConfig config;
  CHECK(config.usual_timeout == std::chrono::seconds(60));
  CHECK(config.place_pool == 0);  // which cannot be given
  CHECK(config.usual_artifact == std::uint64_t{50} << 20);
}

TEST_CASE("groups stand together, and the names of options differ") {
  std::set<std::string> names;
  unsigned group = 0;
  for (const Option* option = Option::table; option != Option::end(); ++option) {
    CHECK(names.insert(std::string(option->part(Option::name))).second);
    CHECK(option->group >= group);
    group = option->group;
  }
  for (const codeexec::Special& special : codeexec::specials)
    CHECK(names.insert(std::string(Option::part(special.row, Option::name))).second);
}
