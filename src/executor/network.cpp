// The network of a local executor's commands, by names.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "executor/local_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "process/process.hpp"
#include "proxy/proxy_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

// True: some were refused, as a note then says.
bool tell_of_network(const ProxyReport& report, const DomainRules& rules, const Redactor& redactor,
                     Result& told) {
  if (report.records.empty()) return false;
  told.connections = Json::array();
  for (const ProxyRecord& record : report.records) {
    Json object = Json::object();
    object.set("name"sv, redactor.redact(record.name));
    object.set("port"sv, record.port);
    object.set("verdict"sv, record.verdict);
    if (!record.reason.empty()) object.set("reason"sv, redactor.redact(record.reason));
    object.set("sent"sv, record.sent);
    object.set("received"sv, record.received);
    told.connections.push_back(std::move(object));
  }
  if (report.omitted > 0) {
    Json object = Json::object();
    object.set("omitted"sv, report.omitted);
    told.connections.push_back(std::move(object));
  }
  if (report.refused.empty()) return false;
  const bool all = report.refused.size() < ProxyReport::most_refused;
  add_note(told.notes, "% not allowed over the network; the operator allows: %",
           {joined(report.refused, ", "sv) +
                (all ? report.refused.size() == 1 ? " is" : " are" : " and perhaps others are"),
            utf8_prefix(rules.text(), 1000)});
  return true;
}

}  // namespace

Expected<void> LocalExecutor::Place::make_proxy(const LocalOptions& options,
                                                const SandboxReport& known) {
  const bool wanted = options.sandbox.network == Network::allow;
  if (wanted == options.allowed_domains.empty())
    return make_error(ErrorCode::invalid_argument,
                      wanted
                          ? "network: 'allow' needs allowed_domains: the names that commands may "
                            "reach"
                          : "allowed_domains: it needs network allow");
  if (!wanted) return {};
  auto rules = DomainRules::create(options.allowed_domains);
  if (!rules) return rules.failure();
  // What was not to be an open network must not become one.
  if (known.network == Network::host)
    return make_error(ErrorCode::unsupported,
                      "network: 'allow' cannot be had here: %; set network to host or none",
                      {joined(known.missing, "; "sv)});
  if (known.network != Network::allow) return {};
  auto made = DomainProxy::create(std::move(*rules));
  if (!made) return made.failure();
  proxy = std::move(*made);
  return {};
}

void LocalExecutor::Place::connect(Admission& admission) const {
  if (!proxy) return;
  const auto number = new_shared<std::uint64_t>(0u);
  admission.process.on_listener = [proxy = proxy, number](UniqueFd listener) {
    *number = proxy->serve(std::move(listener));
  };
  admission.ending.end_network = [proxy = proxy, number](Result& told, const Redactor& redactor) {
    return tell_of_network(proxy->finish(*number), proxy->rules(), redactor, told);
  };
}

#else

Expected<void> LocalExecutor::Place::make_proxy(const LocalOptions& options, const SandboxReport&) {
  if (options.sandbox.network != Network::allow && options.allowed_domains.empty()) return {};
  return make_error(ErrorCode::unsupported, "network: 'allow' needs Linux");
}

void LocalExecutor::Place::connect(Admission&) const {}

#endif

}  // namespace v0_1
}  // namespace codeexec
