// The network of commands, by names.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "executor/network_internal.hpp"

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

// A command that a proxy serves, until its result is recorded.
struct ServedCommand {
  const std::shared_ptr<DomainProxy> proxy;
  std::uint64_t number = 0;  // 0: it is not served yet

  explicit ServedCommand(std::shared_ptr<DomainProxy> server) : proxy(std::move(server)) {}
  ServedCommand(const ServedCommand&) = delete;
  ServedCommand& operator=(const ServedCommand&) = delete;
  ~ServedCommand() { proxy->finish(number); }
};

std::shared_ptr<ServedCommand> serve_by(const std::shared_ptr<DomainProxy>& proxy,
                                        Executor::Admission& admission) {
  if (!proxy) return {};
  auto served = new_shared<ServedCommand>(proxy);
  admission.ending.end_network = [served](Result& told, const Redactor& redactor) {
    DomainProxy& by = *served->proxy;
    return tell_of_network(by.finish(served->number), by.rules(), redactor, told);
  };
  return served;
}

}  // namespace

#endif

inline namespace inner {

Expected<std::shared_ptr<DomainProxy>> make_proxy(const ExecutorOptions& options, Network network) {
  const bool wanted = network == Network::allow;
  if (wanted == options.allowed_domains.empty())
    return make_error(ErrorCode::invalid_argument,
                      wanted
                          ? "network: 'allow' needs allowed_domains: the names that commands may "
                            "reach"
                          : "allowed_domains: it needs network allow");
  if (!wanted) return std::shared_ptr<DomainProxy>();
#if defined(__linux__)
  auto rules = DomainRules::create(options.allowed_domains);
  if (!rules) return rules.failure();
  return DomainProxy::create(std::move(*rules));
#else
  return make_error(ErrorCode::unsupported, "network: 'allow' needs Linux");
#endif
}

std::string describe_proxy([[maybe_unused]] const std::shared_ptr<DomainProxy>& proxy,
                           [[maybe_unused]] const char* loopback) {
#if defined(__linux__)
  if (proxy)
    return concat(
        " The network reaches nothing but these, through a proxy that variables such as "
        "HTTPS_PROXY name, and 127.0.0.1 within %: %.",
        {loopback, to_utf8(proxy->rules().text())});
#endif
  return {};
}

void listen_by([[maybe_unused]] const std::shared_ptr<DomainProxy>& proxy,
               [[maybe_unused]] Executor::Admission& admission) {
#if defined(__linux__)
  if (const auto served = serve_by(proxy, admission))
    admission.process.on_listener = [served](UniqueFd listener) {
      served->number = served->proxy->serve(std::move(listener));
    };
#endif
}

Function<UniqueFd()> connect_by([[maybe_unused]] const std::shared_ptr<DomainProxy>& proxy,
                                [[maybe_unused]] Executor::Admission& admission) {
#if defined(__linux__)
  if (const auto served = serve_by(proxy, admission)) {
    served->number = proxy->serve({});
    return [served] { return served->proxy->connect(served->number); };
  }
#endif
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
