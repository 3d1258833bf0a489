// The network feature of the server: one more mode, and the names for it.
#include <doctest/doctest.h>

#include "codeexec.hpp"
#include "tools/server_internal.hpp"

using codeexec::Network;
using codeexec::ServerConfig;
namespace features = codeexec::features;

TEST_CASE("network allow and its names are options of the feature alone") {
  ServerConfig with({&features::network});
  ServerConfig without;
  const codeexec::Option* const row = with.options.find("network");
  REQUIRE(row);
  CHECK(codeexec::set_option("network", {"allow"}, *row, with));
  CHECK(with.local.sandbox.network == Network::allow);
  CHECK(row != without.options.find("network"));
  CHECK_FALSE(
      codeexec::set_option("network", {"allow"}, *without.options.find("network"), without));
  CHECK(without.local.sandbox.network == Network::host);
  CHECK(with.options.find("allow-domains"));
  CHECK_FALSE(without.options.find("allow-domains"));
  CHECK_FALSE(without.options.find("list-domains"));
}

TEST_CASE("both rows of network agree in the modes that both have") {
  const ServerConfig with({&features::network});
  const ServerConfig without;
  const auto more = with.options.find("network")->choices();
  const codeexec::Choice* known = more.begin();
  for (const codeexec::Choice& choice : without.options.find("network")->choices()) {
    REQUIRE(known != more.end());
    CHECK(choice.name == known->name);
    CHECK(choice.value == known->value);
    ++known;
  }
  REQUIRE(known != more.end());
  CHECK(known->name == "allow");
}
