// The proxy: one thread for all connections of all commands of an executor.
//
//   event                            what follows                    function
//   a command starts                 its socket is watched           serve(), start's thread
//   a command elsewhere connects     it gets one end of a pair       connect(), link's thread
//   a client connects                it is accepted, with room       accept_all(), proxy thread
//   bytes, or a server has answered  a step of the connection        handle(), proxy thread
//   a name is looked up              the connection gets addresses   handle(), proxy thread
//   a deadline has passed            the connection refuses or ends  expire(), proxy thread
//   no descriptors for accept4()     a new try after 100 ms          listen_again()
//   the command has ended            its connections are closed      finish(), any thread
//   the executor ends                the thread is woken and joined  ~DomainProxy()
//
// What holds under the mutex: a slot has a connection and its client, or neither; a client goes
// away after its connections. A socket without room for more connections is not watched, and what
// connects to it waits in the kernel. Keys are never used again, so that a late event finds
// nothing.

#include "proxy/connection_internal.hpp"
#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

// Those of commands elsewhere are counted there, where they may have ended earlier than here.
constexpr std::size_t most_slots = 2 * most_connections;

// Keys of events: a number that is never used again and, of a connection, its place and its end.
//   connection: number << 11 | place << 2 | far_bit;  listener: number << 11 | 2;  resolver: 3
constexpr std::uint64_t listener_key = 2;
constexpr std::uint64_t resolver_key = 3;
constexpr int place_shift = 2;
constexpr int number_shift = 11;
static_assert(most_slots << place_shift == std::size_t{1} << number_shift);

// Counts and keeps a bounded number of connections, of refused names a few: a command can make
// many.
void add_connection(NetworkReport& report, Connection&& connection) {
  if (connection.verdict == "refused"sv) {
    std::string text = concat("%:%", {connection.name, connection.port});
    if (!connection.reason.empty()) append_all(text, " (%)", {connection.reason});
    if (report.refused.size() < NetworkReport::most_refused && !is_one_of(text, report.refused))
      report.refused.push_back(std::move(text));
  }
  if (report.connections.size() == NetworkReport::most_connections)
    ++report.omitted;
  else
    report.connections.push_back(std::move(connection));
}

}  // namespace

// All of it but the context is under the mutex, which is never held while something is waited for.
struct DomainProxy::State {
  State(DomainRules rules, ParentProxy parent) : context(std::move(rules), std::move(parent)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // A command with its listening socket.
  struct Client {
    std::uint64_t number = 0;
    UniqueFd listener = {};
    std::uint32_t watched = 0;
    std::size_t connections = 0;
    NetworkReport report = {};
  };
  struct Slot {
    std::unique_ptr<ProxyConnection> connection = {};
    Client* client = nullptr;
  };

  static void* thread_main(void* self);
  void loop();
  void handle(const epoll_event& event, Clock::time_point now);
  int expire(Clock::time_point now);
  bool has_room(const Client& client) const { return may_connect(client.connections, count); }
  std::list<Client>::iterator client_of(std::uint64_t number) {
    return find_where(clients, [=](const Client& client) { return client.number == number; });
  }
  void accept_all(Client& client, Clock::time_point now);
  void add(Client& client, UniqueFd fd, Clock::time_point now);
  void listen_again();
  Slot* find(std::uint64_t key);
  void close(Slot& slot);

  ProxyContext context;
  const pid_t owner = ::getpid();
  pthread_t thread = {};
  bool has_thread = false;
  std::mutex mutex = {};
  bool ending = false;
  std::uint64_t last_number = 0;
  std::list<Client> clients = {};
  std::size_t count = 0;
  Slot slots[most_slots] = {};
  Clock::time_point retry = Clock::time_point::max();  // when there were no descriptors
};

Expected<std::shared_ptr<DomainProxy>> DomainProxy::create(DomainRules rules, ParentProxy parent) {
  auto resolver = Resolver::create();
  if (!resolver) return resolver.failure();
  auto state = std::make_unique<State>(std::move(rules), std::move(parent));
  ProxyContext& context = state->context;
  context.resolver = std::move(*resolver);
  context.poll.reset(above_standard_streams(::epoll_create1(EPOLL_CLOEXEC)));
  std::uint32_t watched = 0;
  if (!context.poll ||
      !context.watch(context.resolver->descriptor(), resolver_key, watched, EPOLLIN))
    return system_error(errno, "network: epoll");
  return new_shared<DomainProxy>(std::move(state));
}

DomainProxy::DomainProxy(std::unique_ptr<State> state) : state_(std::move(state)) {}

// In a fork of this program there is no thread: what that may hold is left as it is.
DomainProxy::~DomainProxy() {
  if (state_->owner != ::getpid()) {
    (void)state_.release();
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->ending = true;
  }
  state_->context.resolver->end();
  if (state_->has_thread) ::pthread_join(state_->thread, nullptr);
}

const std::string& DomainProxy::allowed() const noexcept { return state_->context.rules.text(); }

std::uint64_t DomainProxy::serve(UniqueFd listener) {
  State& state = *state_;
  const std::lock_guard<std::mutex> lock(state.mutex);
  // Without a thread connections wait until the next command, or the end of this one.
  if (!state.has_thread)
    state.has_thread = start_thread(&state.thread, State::thread_main, &state) == 0;
  State::Client& client = state.clients.emplace_back();
  client.number = ++state.last_number;
  client.listener = std::move(listener);
  state.listen_again();
  return client.number;
}

UniqueFd DomainProxy::connect(std::uint64_t command) {
  State& state = *state_;
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto client = state.client_of(command);
  int ends[2] = {-1, -1};
  if (client == state.clients.end() || state.count >= most_connections + 32 ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return {};
  UniqueFd near(above_standard_streams(ends[0]));
  UniqueFd far(above_standard_streams(ends[1]));
  if (!near || !far) return {};
  state.add(*client, std::move(far), Clock::now());
  state.context.resolver->wake();  // the thread waits for another deadline now
  return near;
}

NetworkReport DomainProxy::finish(std::uint64_t command) {
  State& state = *state_;
  if (state.owner != ::getpid()) return {};  // a thread that is not here may hold the mutex
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto client = state.client_of(command);
  if (client == state.clients.end()) return {};
  client->listener.reset();
  for (State::Slot& slot : state.slots)
    if (slot.client == &*client) state.close(slot);
  NetworkReport report = std::move(client->report);
  state.clients.erase(client);
  return report;
}

void* DomainProxy::State::thread_main(void* self) {
  static_cast<State*>(self)->loop();
  return nullptr;
}

void DomainProxy::State::loop() {
  constexpr int most_events = 64;
  epoll_event events[most_events];
  int time = -1;
  for (;;) {
    const int ready = ::epoll_wait(context.poll.get(), events, most_events, time);
    const std::lock_guard<std::mutex> lock(mutex);
    if (ending) return;
    const Clock::time_point now = Clock::now();
    for (int i = 0; i < ready; ++i) handle(events[i], now);
    time = expire(now);
  }
}

// An event whose connection or client has gone meanwhile is dropped.
void DomainProxy::State::handle(const epoll_event& event, Clock::time_point now) {
  const std::uint64_t key = event.data.u64;
  if (key == resolver_key) {
    for (Lookup& lookup : context.resolver->take()) {
      Slot* const slot = find(lookup.key);
      if (slot && !slot->connection->take(std::move(lookup), now)) close(*slot);
    }
  } else if ((key & resolver_key) == listener_key) {
    const auto client = client_of(key >> number_shift);
    if (client != clients.end()) accept_all(*client, now);
  } else if (Slot* const slot = find(key)) {
    if (!slot->connection->step((key & far_bit) != 0, now)) close(*slot);
  }
}

// Ends what has waited too long. Returns the time until the next deadline, for epoll_wait().
int DomainProxy::State::expire(Clock::time_point now) {
  if (now >= retry) listen_again();
  Clock::time_point next = retry;
  for (Slot& slot : slots) {
    if (slot.connection && now >= slot.connection->deadline() && !slot.connection->expire(now))
      close(slot);
    if (slot.connection) next = std::min(next, slot.connection->deadline());
  }
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0)) + 1;
}

void DomainProxy::State::accept_all(Client& client, Clock::time_point now) {
  constexpr int most_at_once = 64;  // a command that never stops must not hold up the others
  for (int taken = 0; has_room(client); ++taken) {
    if (taken == most_at_once) return;  // epoll reports the rest again
    UniqueFd fd(above_standard_streams(
        ::accept4(client.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      retry = later(now, std::chrono::milliseconds(100));
      break;
    }
    add(client, std::move(fd), now);
  }
  // The others wait in the kernel.
  context.watch(client.listener.get(), 0, client.watched, 0);
}

void DomainProxy::State::add(Client& client, UniqueFd fd, Clock::time_point now) {
  Slot* slot = slots;
  while (slot->connection) ++slot;
  const auto place = static_cast<std::uint64_t>(slot - slots);
  slot->client = &client;
  slot->connection = std::make_unique<ProxyConnection>(
      context, ++last_number << number_shift | place << place_shift, client.number, std::move(fd),
      now);
  ++count;
  ++client.connections;
  if (!slot->connection->step(false, now)) close(*slot);
}

// Accepts connections again after a time in which there was no room for more.
void DomainProxy::State::listen_again() {
  retry = Clock::time_point::max();
  for (Client& client : clients)
    if (client.listener && has_room(client))
      context.watch(client.listener.get(), client.number << number_shift | listener_key,
                    client.watched, EPOLLIN);
}

DomainProxy::State::Slot* DomainProxy::State::find(std::uint64_t key) {
  Slot& slot = slots[(key >> place_shift) % most_slots];
  return slot.connection && slot.connection->key() == (key & ~far_bit) ? &slot : nullptr;
}

// The record goes into the report of the command, unless nothing was asked for.
void DomainProxy::State::close(Slot& slot) {
  Client& client = *std::exchange(slot.client, nullptr);
  const auto connection = std::move(slot.connection);
  context.resolver->forget(connection->key());
  if (!connection->record.verdict.empty())
    add_connection(client.report, std::move(connection->record));
  --client.connections;
  --count;
  listen_again();
}

#endif

Expected<std::shared_ptr<CommandNetwork>> open_network(
    [[maybe_unused]] const ExecutorOptions& options) {
#if defined(__linux__)
  auto rules = DomainRules::create(options.allowed_domains, options.denied_domains);
  if (!rules) return rules.failure();
  auto parent = ParentProxy::create(options.parent_proxy, options.direct_domains);
  if (!parent) return parent.failure();
  auto proxy = DomainProxy::create(std::move(*rules), std::move(*parent));
  if (!proxy) return proxy.failure();
  return std::shared_ptr<CommandNetwork>(std::move(*proxy));
#else
  return make_error(ErrorCode::unsupported, "network: 'allow' needs Linux");
#endif
}

}  // namespace v0_1
}  // namespace codeexec
