// The steps of one connection.
//
//   phase       event                                   next         function
//   head        the request is not complete             head         read_head()
//   head        it is bad, or its name is not allowed   refusing     read_head()
//   head        its name is allowed                     looking_up   read_head(): asks the resolver
//   head        10 s, or the client ends                over         expire()
//   looking_up  addresses have come                     connecting   take()
//   looking_up  20 s                                    refusing     expire()
//   connecting  the server answers                      relaying     end_connecting()
//   connecting  the parent answers, and it is a tunnel  asking       ask_parent()
//   connecting  an error, or 10 s: the next address     connecting   connect_next()
//   connecting  no address is left                      refusing     connect_next()
//   asking      the tunnel of the parent is open        relaying     read_answer()
//   asking      it is not, 20 s, or a head above 16 KiB refusing     read_answer(), expire()
//   relaying    both ends have ended, or an error       over         step()
//   relaying    no byte for 10 minutes                  over         expire()
//   relaying    the client has the end, none for 1 min  over         expire()
//   refusing    the client ends, or 2 s                 over         step(), expire()
//
// What holds: there is a socket to a server in connecting, asking and relaying alone, and the rules
// have allowed its name and its address before it was made. Of what goes by a parent proxy they
// have allowed the name, and the socket is the parent's. Bytes of the client go to a server only
// while relaying. All runs under the mutex of the proxy, most of it in its thread, and nothing
// blocks. What the client sends is hostile, and so is what the server sends; the proxy reads only a
// request.

#include "proxy/connection_internal.hpp"
#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

constexpr auto head_time = std::chrono::seconds(10);
constexpr auto lookup_time = std::chrono::seconds(20);
constexpr auto connect_time = std::chrono::seconds(10);  // for each address
constexpr auto answer_time = std::chrono::seconds(20);   // of the parent, which connects meanwhile
constexpr auto idle_time = std::chrono::minutes(10);     // without a byte in either direction
constexpr auto ended_time = std::chrono::minutes(1);     // the same, once the server has ended
constexpr auto refusal_time = std::chrono::seconds(2);   // until the client has read its answer

static_assert(RelayBuffer::capacity >= 2 * longest_head, "there is room for a head written anew");

// Without the address of the proxy's own socket, which no client needs.
std::string socks_answer(char code) {
  return {'\x05', code, '\0', '\x01', '\0', '\0', '\0', '\0', '\0', '\0'};
}

void send_at_once(const UniqueFd& fd) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

bool ProxyContext::watch(int fd, std::uint64_t key, std::uint32_t& watched,
                         std::uint32_t events) const {
  if (watched == events) return true;
  epoll_event event = {};
  event.events = events;
  event.data.u64 = key;
  const int change = events == 0 ? EPOLL_CTL_DEL : watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  watched = events;
  return ::epoll_ctl(poll.get(), change, fd, &event) == 0;
}

char* RelayBuffer::room(std::size_t& size) {
  if (!bytes_) bytes_.reset(new char[capacity]);
  if (empty()) clear();
  size = capacity - end_;
  return bytes_.get() + end_;
}

void RelayBuffer::add(std::string_view text) {
  std::size_t size = 0;
  char* const place = room(size);
  size = text.copy(place, size);
  add(size);
}

ProxyConnection::ProxyConnection(const ProxyContext& context, std::uint64_t key,
                                 std::uint64_t command, UniqueFd client, Clock::time_point now)
    : context_(context), key_(key), command_(command), deadline_(now + head_time) {
  near_.fd = std::move(client);
  send_at_once(near_.fd);
}

// Called for an event of either end. False: the connection is over, and the proxy closes it.
bool ProxyConnection::step(bool far_event, Clock::time_point now) {
  if (phase_ == Phase::connecting && far_event) end_connecting(now);
  if (phase_ == Phase::asking && far_event) read_answer(now);
  if (phase_ == Phase::head) {
    if (!receive(near_, now)) return false;
    read_head(now);
  }
  if (phase_ == Phase::relaying) {
    if (!receive(near_, now) || !send(near_, far_, now) || !receive(far_, now) ||
        !send(far_, near_, now) || (near_.closed && far_.closed))
      return false;
    return wait_for_more();
  }
  if (!send(far_, near_, now)) return false;
  if (phase_ == Phase::refusing) {
    near_.from.clear();
    if (!receive(near_, now) || near_.ended) return false;
    near_.from.clear();
  }
  return wait_for_more();
}

bool ProxyConnection::take(Lookup&& lookup, Clock::time_point now) {
  if (phase_ != Phase::looking_up) return true;
  lookup_ = std::move(lookup);
  connect_next(now);
  return wait_for_more();
}

bool ProxyConnection::expire(Clock::time_point now) {
  if (phase_ == Phase::connecting)
    connect_next(now);
  else if (phase_ == Phase::looking_up)
    refuse("failed", "its name could not be looked up in time", now);
  else if (phase_ == Phase::asking)
    refuse("failed", "the parent proxy did not answer in time", now);
  else
    return false;
  return wait_for_more();
}

// The request is read again as more of it comes. Its record is a failure until there is a
// connection, for the case that the command ends meanwhile.
void ProxyConnection::read_head(Clock::time_point now) {
  RelayBuffer& input = near_.from;
  ProxyRequest request = read_proxy_request(input.text(), seen_);
  seen_ = input.text().size();
  if (request.protocol == ProxyRequest::socks && request.taken > 0 &&
      !std::exchange(greeted_, true))
    far_.from.add("\x05\x00"sv);
  if (request.state == ProxyRequest::incomplete || request.state == ProxyRequest::greeting) {
    if (near_.ended) deadline_ = now;
    return;
  }
  request_ = std::move(request);
  record.name = printable(request_.wanted.host);
  record.port = request_.wanted.port;
  if (request_.state == ProxyRequest::bad) return refuse("bad request", request_.problem, now);
  if (const std::string* const reason = context_.rules.denial(request_.wanted))
    return refuse("refused", *reason, now);
  if (!context_.rules.allow(request_.wanted)) return refuse("refused", {}, now);
  record.verdict = "failed";
  record.reason = "the command ended before it was connected";
  const std::string_view after = input.text().substr(request_.taken);
  const std::string rest(after.substr(
      0, static_cast<std::size_t>(std::min<std::uint64_t>(after.size(), request_.body))));
  request_.body -= rest.size();
  by_parent_ = context_.parent.serves(request_.wanted);
  if (by_parent_ && !request_.tunnel)
    request_.head = context_.parent.forwarded(request_.head, request_.wanted);
  input.clear();
  input.add(request_.head);
  input.add(rest);
  phase_ = Phase::looking_up;
  deadline_ = now + lookup_time;
  context_.resolver->ask(key_, command_, by_parent_ ? context_.parent.address() : request_.wanted);
}

// Tries the next address that may be reached.
void ProxyConnection::connect_next(Clock::time_point now) {
  far_.fd.reset();
  far_.watched = 0;
  while (next_address_ < lookup_.count) {
    const SocketAddress& address = lookup_.addresses[next_address_++];
    if (!by_parent_ && !context_.rules.allow_address(address, lookup_.wanted.port)) {
      const bool denied = context_.rules.denial({address.text(), lookup_.wanted.port, true});
      barred_ = concat("its address % is %",
                       {address.text(), denied ? "denied" : "private or this host's"});
      continue;
    }
    far_.fd.reset(above_standard_streams(
        ::socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
    if (far_.fd &&
        (::connect(far_.fd.get(), &address.any, address.size()) == 0 || errno == EINPROGRESS)) {
      phase_ = Phase::connecting;
      deadline_ = now + connect_time;
      return;
    }
    lookup_.problem = errno_text(errno);
    far_.fd.reset();
  }
  if (lookup_.problem.empty() && !barred_.empty()) return refuse("refused", barred_, now);
  refuse("failed",
         concat("%%", {by_parent_ ? "the parent proxy: " : "",
                       lookup_.problem.empty() ? "it did not answer in time" : lookup_.problem}),
         now);
}

void ProxyConnection::end_connecting(Clock::time_point now) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(far_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    lookup_.problem = errno_text(error);
    return connect_next(now);
  }
  send_at_once(far_.fd);
  if (by_parent_ && request_.tunnel) return ask_parent(now);
  begin_relaying(now);
}

// The request is short, and the socket has taken nothing before it.
void ProxyConnection::ask_parent(Clock::time_point now) {
  const std::string request = context_.parent.tunnel_request(request_.wanted);
  const ssize_t sent = ::send(far_.fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request.size()))
    return refuse("failed", "the parent proxy takes no request", now);
  phase_ = Phase::asking;
  deadline_ = now + answer_time;
}

// What follows the head is of the server.
void ProxyConnection::read_answer(Clock::time_point now) {
  constexpr std::string_view end = "\r\n\r\n";
  char bytes[4096];
  const ssize_t taken = ::recv(far_.fd.get(), bytes, sizeof bytes, 0);
  if (taken < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (taken <= 0) return refuse("failed", "the parent proxy closes the connection", now);
  const std::size_t seen = answer_.size();
  answer_.append(bytes, static_cast<std::size_t>(taken));
  const std::size_t head = answer_.find(end, seen - std::min(seen, end.size() - 1));
  if (head == answer_.npos) {
    if (answer_.size() > longest_head) refuse("failed", "the parent proxy gives no answer", now);
    return;
  }
  if (const char* const problem = ParentProxy::problem_of(answer_))
    return refuse("failed", problem, now);
  begin_relaying(now);
  const std::string_view rest = std::string_view(answer_).substr(head + end.size());
  record.received += rest.size();
  far_.from.add(rest);
  answer_ = {};
}

void ProxyConnection::begin_relaying(Clock::time_point now) {
  phase_ = Phase::relaying;
  deadline_ = now + idle_time;
  record.verdict = "allowed";
  record.reason.clear();
  if (request_.protocol == ProxyRequest::socks)
    far_.from.add(socks_answer('\0'));
  else if (request_.tunnel)
    far_.from.add("HTTP/1.1 200 Connection established\r\n\r\n"sv);
}

// The client is given the reason, as far as its protocol has words.
void ProxyConnection::refuse(const char* verdict, std::string reason, Clock::time_point now) {
  constexpr std::size_t longest_rules = 1000;
  const bool failed = verdict == "failed"sv;
  const bool bad = verdict == "bad request"sv;
  if (request_.protocol == ProxyRequest::socks) {
    // RFC 1928: ff no such method; 2 not allowed, 4 unreachable, 7 no such command.
    far_.from.add(!greeted_ ? "\x05\xff" : socks_answer(failed ? '\x04' : bad ? '\x07' : '\x02'));
  } else if (request_.protocol == ProxyRequest::http) {
    const std::string wanted = request_.wanted.text();
    std::string text = reason;
    if (failed) text = concat("% cannot be reached: %", {wanted, reason});
    if (!failed && !bad)
      text = concat("% is not allowed%%; the operator allows: %",
                    {wanted, reason.empty() ? "" : ": ", reason,
                     utf8_prefix(context_.rules.text(), longest_rules)});
    far_.from.add(
        concat("HTTP/1.1 %\r\nContent-Type: text/plain\r\nConnection: close\r\n"
               "Content-Length: %\r\n\r\n%\n",
               {bad      ? "400 Bad Request"
                : failed ? "502 Bad Gateway"
                         : "403 Forbidden",
                text.size() + 1, text}));
  }
  record.verdict = verdict;
  record.reason = std::move(reason);
  phase_ = Phase::refusing;
  far_.ended = true;
  far_.fd.reset();
  far_.watched = 0;
  deadline_ = now + refusal_time;
}

// Reads what has come, as far as there is room. False: the connection is over.
bool ProxyConnection::receive(RelayEnd& end, Clock::time_point now) {
  if (end.ended || end.from.full()) return true;
  std::size_t size = 0;
  char* const place = end.from.room(size);
  if (phase_ == Phase::head) size = longest_head - end.from.text().size();
  const ssize_t taken = ::recv(end.fd.get(), place, size, 0);
  if (taken < 0) return errno == EAGAIN || errno == EINTR;
  end.ended = taken == 0;
  auto wanted = static_cast<std::uint64_t>(taken);
  if (phase_ == Phase::relaying) {
    deadline_ = now + (near_.closed ? ended_time : idle_time);
    // What follows the body of a request is dropped: this connection has no second one.
    if (&end == &near_)
      request_.body -= wanted = std::min(wanted, request_.body);
    else
      record.received += wanted;
  }
  end.from.add(static_cast<std::size_t>(wanted));
  return true;
}

// Writes what the other end has sent. False: the connection is over.
bool ProxyConnection::send(RelayEnd& from, RelayEnd& to, Clock::time_point now) {
  while (!from.from.empty()) {
    const std::string_view text = from.from.text();
    const ssize_t written = ::send(to.fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno == EAGAIN;
    from.from.remove(static_cast<std::size_t>(written));
    if (&to == &far_) record.sent += static_cast<std::uint64_t>(written);
    if (phase_ == Phase::relaying) deadline_ = now + (near_.closed ? ended_time : idle_time);
  }
  if (!from.ended || std::exchange(to.closed, true)) return true;
  return ::shutdown(to.fd.get(), SHUT_WR) == 0;
}

// Has epoll report what the connection waits for. False: it cannot.
bool ProxyConnection::wait_for_more() {
  const auto events_of = [](bool in, bool out) {
    return (in ? std::uint32_t{EPOLLIN} : 0u) | (out ? std::uint32_t{EPOLLOUT} : 0u);
  };
  const auto reads = [](const RelayEnd& end) { return !end.ended && !end.from.full(); };
  const bool relaying = phase_ == Phase::relaying;
  const bool connecting = phase_ == Phase::connecting;
  const bool asking = phase_ == Phase::asking;
  const bool idle = connecting || asking || phase_ == Phase::looking_up;
  if (!context_.watch(near_.fd.get(), key_, near_.watched,
                      events_of(!idle && reads(near_), !far_.from.empty())))
    return false;
  return !far_.fd || context_.watch(far_.fd.get(), key_ | far_bit, far_.watched,
                                    events_of(asking || (relaying && reads(far_)),
                                              connecting || (relaying && !near_.from.empty())));
}

#endif

}  // namespace v0_1
}  // namespace codeexec
