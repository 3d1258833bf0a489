// The feature of the server for other machines: what its modes need, and what they settle.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../../helpers/command_line.hpp"
#include "codeexec.hpp"
#include "places/places_internal.hpp"
#include "tools/server_internal.hpp"

using codeexec::PlaceWorkspace;
using codeexec::ServerConfig;
using support::read_options;
namespace features = codeexec::features;

namespace {

codeexec::Expected<void> settle(ServerConfig& config) { return config.features[0]->settle(config); }

}  // namespace

TEST_CASE("a mode needs the option that says where") {
  ServerConfig ssh({&features::places});
  CHECK(read_options(ssh, {"--execution-mode", "ssh"}) == "execution_mode ssh needs a place_host");
  ServerConfig command({&features::places});
  CHECK(read_options(command, {"--execution-mode", "command"}) ==
        "execution_mode command needs a place_command");
}

TEST_CASE("the workspace is only there in pods, and where an option says it") {
  struct Row {
    std::vector<std::string> words;
    bool works_elsewhere;
  };
  const Row rows[] = {
      {{"--execution-mode", "kubernetes"}, true},
      {{"--execution-mode", "kubernetes", "--place-workspace", "shared"}, false},
      {{"--execution-mode", "slurm"}, false},
      {{"--execution-mode", "slurm", "--place-workspace", "remote"}, true},
      {{}, false},
  };
  for (const Row& row : rows) {
    ServerConfig config({&features::places});
    CHECK(read_options(config, row.words) == "");
    CHECK(config.works_elsewhere == row.works_elsewhere);
  }
}

TEST_CASE("a single command keeps no places ready, and the variables of the way there stay") {
  ServerConfig serving({&features::places});
  CHECK(read_options(serving, {"--execution-mode", "slurm", "--place-pool", "2"}) == "");
  CHECK(settle(serving));
  CHECK(serving.places->pool == 2);
  CHECK(serving.keeps_variables);
  ServerConfig single({&features::places});
  CHECK(read_options(single, {"--execution-mode", "slurm", "--place-pool", "2", "--run", "true"}) ==
        "");
  CHECK(settle(single));
  CHECK(single.places->pool == 0);
  ServerConfig here({&features::places});
  CHECK(read_options(here, {}) == "");
  CHECK(settle(here));
  CHECK_FALSE(here.keeps_variables);
}
