// The agent's end of the connections that commands make to the client's proxy.
#pragma once

#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/network_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A socket of this host's 127.0.0.1 that listens on any free port; none, and errno.
UniqueFd listen_for_proxy(unsigned& port);

}  // namespace inner

// Accepts connections and moves their bytes, as long as the client has room for them. It holds a
// window of what came for each, and nothing of what it reads. The thread of the agent calls it.
//
//   set = ...; watch(set); poll; serve(set)     take() with each frame of a connection
class ProxyConnections {
 public:
  using Send = Function<void(FrameKind, std::uint32_t, std::string_view)>;
  explicit ProxyConnections(Send send) : send_(std::move(send)) {}

  // Has the command make its connections by that listening socket.
  void add(std::uint32_t command, UniqueFd listener) {
    listeners_.push_back({command, std::move(listener)});
  }
  // The command has ended, and so do its connections.
  void remove(std::uint32_t command);
  void clear();
  // Adds its descriptors; `room`: so many bytes may be sent now, `commands`: so many run. Returns
  // when to do so again.
  Clock::time_point watch(std::vector<pollfd>& set, std::size_t room, std::size_t commands);
  // Does what is possible by the events of that set, with a buffer of longest_payload.
  void serve(const std::vector<pollfd>& set, char* buffer);
  // False: no client sends such a frame.
  bool take(const Frame& frame);

 private:
  struct Listener {
    std::uint32_t command;
    UniqueFd socket;
    std::size_t connections = 0;
  };
  // `out` leads to the command, and input comes from it.
  struct Connection : RemoteStreams {
    Listener* listener = nullptr;
    bool is_over() const { return source == Source::nothing && out.ended && out.waiting.empty(); }
  };
  using Iterator = std::list<Connection>::iterator;

  bool has_room(const Listener& listener) const {
    return retry_ == Clock::time_point::max() &&
           may_connect(listener.connections, connections_.size());
  }
  Iterator find(std::uint32_t id);
  Iterator drop(Iterator connection);  // returns the next one
  void accept_all(Listener& listener);
  void read(Connection& connection, char* buffer);
  void write(Connection& connection);

  const Send send_;
  std::list<Listener> listeners_ = {};
  std::list<Connection> connections_ = {};
  [[maybe_unused]] std::uint32_t last_id_ = 0;          // on Linux
  Clock::time_point retry_ = Clock::time_point::max();  // when there were no descriptors
  std::size_t first_ = 0;  // in the set, the place of the first descriptor
  std::size_t room_ = 0;
  std::size_t commands_ = 0;
};

}  // namespace v0_1
}  // namespace codeexec
