// The network of commands, by names.
//
//   step    what is done                                        function, and its thread
//   make    one network for all commands of an executor         make_network(), of create()
//   serve   the network takes the command's listening socket    on_listener, thread of the start
//           or a number for connections that come by a link     connect_by(), in place()
//   finish  connections end, and what they did is reported      end_network, of conclude()
//   drop    the command did not start, or its result is made    ~ServedCommand(), any thread
//
// What holds: a command that is served is finished, once in conclude() or else when the last that
// holds it goes away; a second finish() finds nothing. Names come from the command: they are masked
// here.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "executor/network_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Moves a report into a result. True: some connections were refused, as a note then says.
bool report_network(NetworkReport&& report, const std::string& allowed, const Redactor& redactor,
                    Result& result) {
  for (Connection& connection : report.connections) {
    connection.name = redactor.redact(connection.name);
    connection.reason = redactor.redact(connection.reason);
  }
  result.connections = std::move(report.connections);
  result.connections_omitted = report.omitted;
  if (report.refused.empty()) return false;
  const bool all = report.refused.size() < NetworkReport::most_refused;
  add_note(result.notes, "% not allowed over the network; the operator allows: %",
           {joined(report.refused, ", "sv) +
                (all ? report.refused.size() == 1 ? " is" : " are" : " and perhaps others are"),
            utf8_prefix(allowed, 1000)});
  return true;
}

// A command that a network serves, until its result is recorded.
struct ServedCommand {
  const std::shared_ptr<CommandNetwork> network;
  std::uint64_t number = 0;  // 0: it is not served yet
  std::shared_ptr<ProxyPorts> ports = {};
  std::uint16_t port = 0;  // of these

  explicit ServedCommand(std::shared_ptr<CommandNetwork> by) : network(std::move(by)) {}
  ServedCommand(const ServedCommand&) = delete;
  ServedCommand& operator=(const ServedCommand&) = delete;
  ~ServedCommand() {
    network->finish(number);
    if (port != 0) ports->give_back(port);
  }
};

std::shared_ptr<ServedCommand> serve_by(const std::shared_ptr<CommandNetwork>& network,
                                        Executor::Admission& admission) {
  if (!network) return {};
  auto served = new_shared<ServedCommand>(network);
  admission.ending.end_network = [served](Result& result, const Redactor& redactor) {
    CommandNetwork& by = *served->network;
    return report_network(by.finish(served->number), by.allowed(), redactor, result);
  };
  return served;
}

}  // namespace

std::uint16_t ProxyPorts::take() {
  constexpr std::size_t most = 4096;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  const auto index = static_cast<std::size_t>(free - taken_.begin());
  if (index == most) return 0;
  if (free == taken_.end())
    taken_.push_back(true);
  else
    *free = true;
  return static_cast<std::uint16_t>(proxy_port + index);
}

void ProxyPorts::give_back(std::uint16_t port) {
  const std::lock_guard<std::mutex> lock(mutex_);
  taken_[port - proxy_port] = false;
}

inline namespace inner {

Expected<std::shared_ptr<CommandNetwork>> make_network(const ExecutorOptions& options,
                                                       const ExecutorWings& wings,
                                                       Network network) {
  const bool wanted = network == Network::allow;
  if (wanted == options.allowed_domains.empty())
    return make_error(ErrorCode::invalid_argument,
                      wanted
                          ? "network: 'allow' needs allowed_domains: the names that commands may "
                            "reach"
                          : "allowed_domains: it needs network allow");
  if (!wanted && !options.denied_domains.empty())
    return make_error(ErrorCode::invalid_argument, "denied_domains: it needs network allow");
  if (!wanted) return std::shared_ptr<CommandNetwork>();
  if (!wings.network)
    return make_error(
        ErrorCode::invalid_argument,
        "allowed_domains: this executor was made without what serves names, which it needs");
  return wings.network(options);
}

std::string describe_network(const std::shared_ptr<CommandNetwork>& network, const char* loopback) {
  if (!network) return {};
  return concat(
      " The network reaches nothing but these, through a proxy that variables such as "
      "HTTPS_PROXY name, and 127.0.0.1 within %: %.",
      {loopback, to_utf8(network->allowed())});
}

std::uint16_t listen_by(const std::shared_ptr<CommandNetwork>& network,
                        const std::shared_ptr<ProxyPorts>& ports, Executor::Admission& admission) {
  const auto served = serve_by(network, admission);
  if (!served) return 0;
  served->ports = ports;
  served->port = ports->take();
  admission.process.listener_port = served->port;
  admission.process.on_listener = [served](UniqueFd listener) {
    served->number = served->network->serve(std::move(listener));
  };
  return served->port;
}

Function<UniqueFd()> connect_by(const std::shared_ptr<CommandNetwork>& network,
                                Executor::Admission& admission) {
  if (const auto served = serve_by(network, admission)) {
    served->number = network->serve({});
    return [served] { return served->network->connect(served->number); };
  }
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
