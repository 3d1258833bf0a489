// The network of commands as a feature of the server: --network allow with --allow-domains.

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "proxy/proxy.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr Choice all_network_modes[] = {{"host", Network::host},
                                        {"none", Network::none},
                                        {"loopback", Network::loopback},
                                        {"allow", Network::allow}};

constexpr Option network_rows[] = {
    // In place of the server's own row.
    Option::of<&ServerConfig::local, &LocalOptions::sandbox, &SandboxOptions::network>("network")
        .value("MODE")
        .usual("host")
        .in(Option::confinement)
        .where(Option::commands)
        .often()
        .one_of(all_network_modes)
        .help("host, none, loopback, or allow some. What commands reach in the sandbox. none: "
              "nothing; loopback: 127.0.0.1 of their own; allow: that, and --allow-domains"),
    Option::of<&ServerConfig::local, &LocalOptions::allowed_domains>("allow-domains")
        .value("NAME...")
        .in(Option::confinement)
        .where(Option::commands)
        .often()
        .help(
            "with network allow: example.org '*.x.org'. Names of hosts, with a port "
            "(github.com:22) or without, and sets of names (python): --list-domains prints these"),
    Option::of<&ServerConfig::local, &LocalOptions::denied_domains>("deny-domains")
        .value("NAME[=REASON]...")
        .in(Option::confinement)
        .where(Option::commands)
        .help(
            "with network allow: not these, whatever is allowed. On any port, or with a port; the "
            "model is given the reason"),
    Option::of<&ServerConfig::invocation, &Invocation::list_domains>("list-domains")
        .in(Option::command_line)
        .after("list-rules")
        .help("print the sets of names for --allow-domains"),
};
static_assert(are_complete(network_rows),
              "a row lacks a column, or has one that its kind has no use for");

void begin_network(ServerConfig& config) { config.wings.network = open_network; }

// A variable of this process, in the spelling that curl takes first.
const char* variable_of(const char* lower, const char* upper) {
  const char* const value = std::getenv(lower);
  return value ? value : std::getenv(upper);
}

// Uses the proxy that programs of this user go through, if it is one that can be used.
Expected<void> settle_network(ServerConfig& config) {
  LocalOptions& local = config.local;
  const char* const url = variable_of("https_proxy", "HTTPS_PROXY");
  if (local.allowed_domains.empty() || !url || !*url) return {};
  if (!starts_with(in_lower_case(url), "http://"sv)) {
    warn("HTTPS_PROXY is no http:// proxy: commands do not go through it");
    return {};
  }
  local.parent_proxy = url;
  const char* const direct = variable_of("no_proxy", "NO_PROXY");
  std::string_view rest = direct ? direct : "";
  while (!rest.empty()) local.direct_domains.push_back(std::string(take_part(rest, ',')));
  return {};
}

std::optional<int> answer_of_network(const ServerStep& step) {
  if (step.moment == ServerStep::called && step.config.invocation.list_domains)
    return print_answer(std::string(domain_sets()));
  return {};
}

constexpr Feature network_feature = [] {
  Feature feature;
  feature.options = [] { return Rows<Option>(network_rows); };
  feature.begin = begin_network;
  feature.settle = settle_network;
  feature.answer = answer_of_network;
  return feature;
}();

}  // namespace

namespace features {

const ServerFeature& network = network_feature;

}  // namespace features

}  // namespace v0_1
}  // namespace codeexec
