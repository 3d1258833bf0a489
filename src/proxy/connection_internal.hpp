// One connection that the proxy carries.
#pragma once

#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

// What all connections of a proxy share.
struct ProxyContext {
  ProxyContext(DomainRules given, ParentProxy above)
      : rules(std::move(given)), parent(std::move(above)) {}

  const DomainRules rules;
  const ParentProxy parent;
  UniqueFd poll = {};
  std::shared_ptr<Resolver> resolver = {};

  // Has epoll report these events, and nothing at all when they are none: it would go on reporting
  // the end of a socket. `watched` are those that it reports so far.
  bool watch(int fd, std::uint64_t key, std::uint32_t& watched, std::uint32_t events) const;
};

inline namespace inner {

// Of a key of events: the end of a connection that has an event.
inline constexpr std::uint64_t far_bit = 1;

}  // namespace inner

// Bytes that came from one end and wait for the other: at most 32 KiB, on the heap once there are
// some.
class RelayBuffer {
 public:
  static constexpr std::size_t capacity = std::size_t{32} << 10;

  bool empty() const { return begin_ == end_; }
  bool full() const { return begin_ < end_ && end_ == capacity; }
  std::string_view text() const { return {bytes_.get() + begin_, end_ - begin_}; }
  void clear() { begin_ = end_ = 0; }
  void remove(std::size_t size) { begin_ += size; }
  // Room behind the text; what was written to it is then added by its size.
  char* room(std::size_t& size);
  void add(std::size_t size) { end_ += size; }
  void add(std::string_view text);

 private:
  std::unique_ptr<char[]> bytes_ = {};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// One end of a connection.
struct RelayEnd {
  UniqueFd fd = {};
  RelayBuffer from = {};      // what came from it
  bool ended = false;         // nothing more comes from it
  bool closed = false;        // nothing more goes to it: it has got the end
  std::uint32_t watched = 0;  // events that epoll reports; 0: epoll does not know the descriptor
};

// A connection of a command as a state machine without a thread. It never blocks: each step does
// what can be done now, and names events and a deadline for the next one.
//
//   head --> looking_up --> connecting --> [asking the parent] --> relaying -----------> (over)
//    |           |              |                  |                                       ^
//    '-----------'--------------'------------------'--> refusing: the answer goes out, what comes
//                                                       is dropped
class ProxyConnection {
 public:
  ProxyConnection(const ProxyContext& context, std::uint64_t key, std::uint64_t command,
                  UniqueFd client, Clock::time_point now);

  std::uint64_t key() const noexcept { return key_; }
  Clock::time_point deadline() const noexcept { return deadline_; }

  // Each of them: false when it is over.
  bool step(bool far_event, Clock::time_point now);
  bool take(Lookup&& lookup, Clock::time_point now);
  bool expire(Clock::time_point now);

  Connection record = {};  // its verdict is empty as long as nothing was asked for

 private:
  enum class Phase { head, looking_up, connecting, asking, relaying, refusing };

  void read_head(Clock::time_point now);
  void connect_next(Clock::time_point now);
  void end_connecting(Clock::time_point now);
  void ask_parent(Clock::time_point now);
  void read_answer(Clock::time_point now);
  void begin_relaying(Clock::time_point now);
  void refuse(const char* verdict, std::string reason, Clock::time_point now);
  bool receive(RelayEnd& end, Clock::time_point now);
  bool send(RelayEnd& from, RelayEnd& to, Clock::time_point now);
  bool wait_for_more();

  const ProxyContext& context_;
  const std::uint64_t key_;
  const std::uint64_t command_;
  Phase phase_ = Phase::head;
  RelayEnd near_ = {};    // the command's
  RelayEnd far_ = {};     // the server's
  std::size_t seen_ = 0;  // bytes of an incomplete request
  bool greeted_ = false;
  ProxyRequest request_ = {};
  Lookup lookup_ = {};
  std::size_t next_address_ = 0;
  bool by_parent_ = false;
  std::string answer_ = {};  // of the parent, to the end of its head
  std::string barred_ = {};  // why an address may not be reached
  Clock::time_point deadline_;
};

#endif

}  // namespace v0_1
}  // namespace codeexec
