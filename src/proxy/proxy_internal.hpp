// Rules of names, requests, addresses, and the proxy between them.
//
// A command in a network of its own reaches nothing but this proxy. It asks for a host by name
// (HTTP CONNECT, plain HTTP by absolute URI, SOCKS5). The name is judged first, and only an allowed
// one is resolved. Then each address is judged, and the connection goes to exactly one of these, so
// that a name cannot come to mean another address in between.
#pragma once

#include "proxy/proxy.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/network_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

// A host and a port. The host is in lower case without a dot at its end, or the canonical text of
// an address.
struct Destination {
  std::string host = {};  // empty: the text was no destination
  unsigned port = 0;
  bool literal = false;  // the host is an address
  std::string text() const;
};

inline namespace inner {

// Of "host", "host:port", "[::1]:port". Without a port it is `usual_port`; 0: it must have one.
// Refused are other spellings of IPv4 addresses, names that are not ASCII, and what is odd.
Destination destination_of(std::string_view text, unsigned usual_port = 0);

}  // namespace inner

// An address of a host and its port.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;

  socklen_t size() const { return any.sa_family == AF_INET ? sizeof v4 : sizeof v6; }
  std::string text() const;  // without the port
};

inline namespace inner {

// Whether it is one of the internet's: not private, of a link, of many, of this host, nor another
// form of one that is.
bool is_public_address(const SocketAddress& address);

}  // namespace inner

// What an operator allows and denies. Does not change after create().
class DomainRules {
 public:
  // Of names (example.org), names below another one (*.example.org), addresses and names of sets.
  // What is allowed has a port, or is allowed for the ports 80 and 443; what is denied has a port,
  // or is denied for all of them, and may have a reason behind a `=`. Errors: invalid_argument.
  static Expected<DomainRules> create(const std::vector<std::string>& allowed,
                                      const std::vector<std::string>& denied = {});

  bool allow(const Destination& wanted) const;
  // Why it is denied, whatever is allowed; null: it is not.
  const std::string* denial(const Destination& wanted) const;
  // A name's address: public, or listed itself, and not denied.
  bool allow_address(const SocketAddress& address, unsigned port) const;
  const std::string& text() const noexcept { return text_; }  // what is allowed, as given

 private:
  // The host begins with a dot for the names below one. Port 0 is any.
  struct Rule {
    std::string host = {};
    unsigned port = 0;
    std::string reason = {};

    bool holds(const Destination& wanted) const;
  };
  static bool read(std::string_view entry, std::vector<Rule>& rules);

  std::vector<Rule> allowed_ = {};
  std::vector<Rule> denied_ = {};
  std::string text_ = {};
};

// Another proxy between this one and the world. Does not change after create().
class ParentProxy {
 public:
  // `url`: http://[USER:PASSWORD@]HOST[:PORT], port 80 without one; empty: there is none. `direct`:
  // what it does not serve, as in NO_PROXY. Errors: invalid_argument.
  static Expected<ParentProxy> create(std::string_view url, const std::vector<std::string>& direct);

  bool serves(const Destination& wanted) const;
  const Destination& address() const noexcept { return address_; }
  std::string tunnel_request(const Destination& wanted) const;
  std::string forwarded(std::string_view head, const Destination& wanted) const;
  // Of the head of its answer to a tunnel_request(); null: the tunnel is open.
  static const char* problem_of(std::string_view answer);

 private:
  Destination address_ = {};
  std::string authorization_ = {};  // a line of the head
  std::vector<std::string> direct_ = {};
};

// What a client asks for, once enough of it has come.
struct ProxyRequest {
  enum State { incomplete, greeting, ready, bad };
  enum Protocol { unknown, http, socks };
  State state = incomplete;
  Protocol protocol = unknown;
  std::size_t taken = 0;     // bytes of the input that it had
  const char* problem = "";  // of a bad one
  Destination wanted = {};
  bool tunnel = true;     // the client waits for an answer of the proxy, and all is passed on
  std::string head = {};  // for the server, in place of what was taken
  std::uint64_t body = std::uint64_t(-1);  // bytes for the server after that
};

inline namespace inner {

inline constexpr std::size_t longest_head = std::size_t{16} << 10;

std::string_view without_blanks_around(std::string_view text);

// Reads the beginning of a connection, of which the first `seen` bytes were incomplete. Any input
// of at most longest_head bytes gives an answer in linear time.
ProxyRequest read_proxy_request(std::string_view input, std::size_t seen);

}  // namespace inner

// One lookup: the name, then its addresses or why there are none.
struct Lookup {
  std::uint64_t key = 0;      // of the connection that waits for it
  std::uint64_t command = 0;  // whose connection that is
  Destination wanted = {};
  SocketAddress addresses[8] = {};
  std::size_t count = 0;
  std::string problem = {};
};

// Looks names up on a few threads of its own, as getaddrinfo() blocks. The threads are never
// joined: each keeps the resolver alive, and ends after its lookup when the owner is gone. Slow
// names of one command do not hold up others: it has at most as many threads as are free.
class Resolver {
 public:
  // Writes to the descriptor, an eventfd, when a lookup is done.
  static Expected<std::shared_ptr<Resolver>> create();
  int descriptor() const noexcept { return done_event_.get(); }
  void ask(std::uint64_t key, std::uint64_t command, const Destination& wanted);
  // Drops what the connection waits for, unless it is being looked up.
  void forget(std::uint64_t key);
  // Those that are done since.
  std::list<Lookup> take();
  // Its threads end soon. Writes to the descriptor, too.
  void end();
  // Writes to the descriptor.
  void wake() const;

 private:
  static constexpr unsigned most_threads = 8;
  static void* thread_main(void* self);
  void serve();
  std::list<Lookup>::iterator next();

  std::mutex mutex_ = {};
  std::condition_variable work_ = {};
  UniqueFd done_event_ = {};
  std::weak_ptr<Resolver> self_ = {};
  std::list<Lookup> waiting_ = {};
  std::list<Lookup> done_ = {};
  unsigned threads_ = 0;
  unsigned idle_ = 0;
  std::uint64_t served_[most_threads] = {};  // the command of each lookup that runs; 0: none
  bool ending_ = false;
};

// The proxy of an executor, with one thread for the connections of all its commands. Members are
// safe from any thread.
class DomainProxy final : public CommandNetwork {
 public:
  struct State;
  static Expected<std::shared_ptr<DomainProxy>> create(DomainRules rules, ParentProxy parent);
  explicit DomainProxy(std::unique_ptr<State> state);
  DomainProxy(const DomainProxy&) = delete;
  DomainProxy& operator=(const DomainProxy&) = delete;
  ~DomainProxy() override;

  std::uint64_t serve(UniqueFd listener) override;
  UniqueFd connect(std::uint64_t command) override;
  NetworkReport finish(std::uint64_t command) override;
  const std::string& allowed() const noexcept override;

 private:
  std::unique_ptr<State> state_;
};

#endif

}  // namespace v0_1
}  // namespace codeexec
