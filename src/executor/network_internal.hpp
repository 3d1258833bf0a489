// The network of commands by names, for all executors.
#pragma once

#include "executor/executor.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// What a command did over the network.
struct NetworkReport {
  static constexpr std::size_t most_connections = 100;
  static constexpr std::size_t most_refused = 5;
  std::vector<Connection> connections = {};
  std::uint64_t omitted = 0;              // connections beyond them
  std::vector<std::string> refused = {};  // a few names, each once
};

// What lets the connections of commands through to the names that an operator allows, and to no
// other. One serves all commands of an executor. Members are safe from any thread.
class CommandNetwork {
 public:
  virtual ~CommandNetwork() = default;
  // Serves the listening socket of a command, or one that has none. Returns its number.
  virtual std::uint64_t serve(UniqueFd listener) = 0;
  // Opens a connection as a program of the command does by its socket. None: there is no room.
  virtual UniqueFd connect(std::uint64_t command) = 0;
  // Closes the socket and all connections that came by it.
  virtual NetworkReport finish(std::uint64_t command) = 0;
  // The names that are allowed, for a message, as given.
  virtual const std::string& allowed() const noexcept = 0;

 protected:
  CommandNetwork() = default;
  CommandNetwork(const CommandNetwork&) = default;
  CommandNetwork& operator=(const CommandNetwork&) = default;
};

// The ports that commands of an executor have in their network, for its proxy: a port shows whose a
// connection is. The lowest that is free comes first. Any thread may use it.
class ProxyPorts {
 public:
  // 0: all are taken.
  std::uint16_t take();
  void give_back(std::uint16_t port);

 private:
  std::mutex mutex_ = {};
  std::vector<bool> taken_ = {};
};

inline namespace inner {

// The most connections of all commands: each takes two descriptors.
inline constexpr std::size_t most_connections = 256;

// Whether a command with so many of `all` connections may have another one: at most four times as
// many as are free, 205 if it is alone, so that several greedy ones leave some to the others.
constexpr bool may_connect(std::size_t own, std::size_t all) {
  return all < most_connections && own < 4 * (most_connections - all);
}

// The network for Network::allow; null: another network is wanted.
//   Errors: invalid_argument, also where `wings` have none; unsupported, without Linux.
Expected<std::shared_ptr<CommandNetwork>> make_network(const ExecutorOptions& options,
                                                       const ExecutorWings& wings, Network network);

// For a model, with the meaning of 127.0.0.1. Empty without a network.
std::string describe_network(const std::shared_ptr<CommandNetwork>& network, const char* loopback);

// Each has the result show what the command did over the network, and does nothing without one.
// Of a command here: the network serves its socket. Returns the port of that, or 0.
std::uint16_t listen_by(const std::shared_ptr<CommandNetwork>& network,
                        const std::shared_ptr<ProxyPorts>& ports, Executor::Admission& admission);
// Of a command elsewhere: each call opens a connection of it.
Function<UniqueFd()> connect_by(const std::shared_ptr<CommandNetwork>& network,
                                Executor::Admission& admission);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
