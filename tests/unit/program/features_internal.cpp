// Servers that have some of the features: their options, modes, help and advice.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "../../helpers/command_line.hpp"
#include "../../helpers/support.hpp"
#include "codeexec.hpp"
#include "tools/server_internal.hpp"

using codeexec::ServerConfig;
using support::has;
using support::read_options;
namespace features = codeexec::features;

namespace {

using Features = std::initializer_list<const codeexec::ServerFeature*>;

std::string read(Features of_server, std::vector<std::string> words) {
  ServerConfig config(of_server);
  return read_options(config, std::move(words));
}

}  // namespace

TEST_CASE("an option of a feature that the server lacks is unknown, and never ignored") {
  struct Row {
    std::vector<std::string> words;
    const codeexec::ServerFeature* feature;
  };
  const Row rows[] = {
      {{"--docker-image", "x"}, &features::containers},
      {{"--place-host", "x"}, &features::places},
      {{"--allow-domains", "example.org"}, &features::network},
      {{"--doctor"}, &features::program},
      {{"--transcript", "/tmp/x"}, &features::program},
      {{"--help-all"}, &features::program},
      {{"--place"}, &features::containers},
      {{"--place"}, &features::places},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words[0]);
    CHECK(has(read({}, row.words), "unknown option '--"));
    CHECK_FALSE(has(read({row.feature}, row.words), "unknown option"));
  }
}

TEST_CASE("its key of the configuration file is unknown, too") {
  const support::TempDir dir;
  const std::string file = dir.path() + "/config.json";
  const auto error_of = [&](const char* text, Features of_server) {
    std::ofstream(file) << text;
    return read(of_server, {"--config", file});
  };
  CHECK(error_of(R"({"timeout": 5})", {}).empty());
  CHECK(has(error_of(R"({"docker_image": "x"})", {}), "unknown key"));
  CHECK(has(error_of(R"({"command_line_docker_enable_sudo": true})", {}), "unknown key"));
  CHECK(error_of(R"({"command_line_docker_enable_sudo": true})", {&features::containers}).empty());
  CHECK(has(error_of(R"({"allow_domains": ["a.org"]})", {}), "unknown key"));
}

TEST_CASE("a mode, and a value of an option, that a missing feature would bring is refused") {
  CHECK(read({}, {"--execution-mode", "local"}).empty());
  const std::string error = read({}, {"--execution-mode", "docker"});
  CHECK(has(error, "Must be 'local'."));
  CHECK(read({&features::containers}, {"--execution-mode", "docker"}).empty());
  CHECK(has(read({&features::containers}, {"--execution-mode", "ssh"}),
            "Must be 'local' or 'docker'."));
  CHECK(has(read({&features::containers, &features::places}, {"--execution-mode", "x"}),
            "Must be 'local', 'docker', 'ssh', 'slurm', 'kubernetes' or 'command'."));
  CHECK(has(read({}, {"--network", "allow"}), "is not one of host, none, loopback"));
  CHECK(read({&features::network}, {"--network", "allow", "--allow-domains", "a.org"}).empty());
}

TEST_CASE("help and advice name only what the server has") {
  const ServerConfig tiny;
  const std::string help = codeexec::help_text(tiny, false);
  for (const char* other : {"docker", "ssh", "place", "--allow-domains", "--help-all", "--report",
                            "--doctor", "--client-config"})
    CHECK_FALSE(has(help, other));
  CHECK(has(help, "--limit-open-files"));  // not often needed, but nothing else shows it
  CHECK(has(help, "where: local [local]"));
  const ServerConfig with_containers({&features::containers});
  CHECK(has(codeexec::help_text(with_containers, false), "where: local or docker"));
  const codeexec::Option* const mode = with_containers.options.find("execution-mode");
  CHECK(codeexec::full_help(*mode, with_containers) ==
        "where: local or docker. local: on this host; docker: in a container");

  CHECK(has(read({}, {"--docker"}), "--help lists all"));
  CHECK(has(read({&features::containers}, {"--docker"}), "use --execution-mode docker"));
  CHECK(has(read({}, {"--cwd"}), "use --workspace DIR"));
  CHECK_FALSE(has(read({}, {"--execution-mode", "podman"}), "--docker-program"));
  CHECK(has(read({&features::containers}, {"--execution-mode", "podman"}), "--docker-program"));
}

TEST_CASE("the order of the features changes nothing but the order of help") {
  const ServerConfig one(
      {&features::network, &features::program, &features::containers, &features::places});
  const ServerConfig other(
      {&features::places, &features::containers, &features::program, &features::network});
  std::vector<std::string> names[2];
  for (const codeexec::Option* const option : one.options) names[0].emplace_back(option->name());
  for (const codeexec::Option* const option : other.options) names[1].emplace_back(option->name());
  for (auto& list : names) std::sort(list.begin(), list.end());
  CHECK(names[0] == names[1]);
  for (const codeexec::Option* const option : one.options) {
    const codeexec::Option* const same = other.options.find(option->name());
    CAPTURE(std::string(option->name()));
    REQUIRE(same);
    CHECK(same->where() == option->where());
    CHECK(same->kind() == option->kind());
  }
}
