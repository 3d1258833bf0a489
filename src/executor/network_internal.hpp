// The network of commands by names, for all executors.
#pragma once

#include "executor/executor.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "proxy/proxy_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The proxy for Network::allow; null: another network is wanted.
//   Errors: invalid_argument; unsupported, without Linux.
Expected<std::shared_ptr<DomainProxy>> make_proxy(const ExecutorOptions& options, Network network);

// For a model, with the meaning of 127.0.0.1. Empty without a proxy.
std::string describe_proxy(const std::shared_ptr<DomainProxy>& proxy, const char* loopback);

// Each has the result show what the command did over the network, and does nothing without a proxy.
// Of a command here: the proxy serves its socket.
void listen_by(const std::shared_ptr<DomainProxy>& proxy, Executor::Admission& admission);
// Of a command elsewhere: each call opens a connection of it.
Function<UniqueFd()> connect_by(const std::shared_ptr<DomainProxy>& proxy,
                                Executor::Admission& admission);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
