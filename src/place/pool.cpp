// Places kept ready.

#include "place/place.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t most_threads = 16;
// A place that ends sooner is a failure. Without that, places would be made in a loop.
constexpr std::chrono::seconds shortest_life(60);

}  // namespace

Expected<PlaceEngine::Way> PlaceEngine::current() {
  return make_error(ErrorCode::not_found, "there is no place");
}

// A place is in one of these states, which is the list that its engine is in, or whose hands it is
// in:
//
//   state    event                                       next     function
//   (none)   too few are ready or being made             making   make_one(), by source()
//   making   it is up                                    ready    make_one()
//   making   it cannot be made                           unready  make_one() -> fail()
//   unready  too few are ready, and the pool is not      making   make_one(), which takes these
//            stopped                                              before new ones
//   ready    an executor needs one                       taken    take(), Taken::reach()
//   ready    it has ended                                dead     work(); early: a failure
//   taken    it has ended, and a command comes           dead     take(), which gives another one
//   taken    its executor goes                           (none)   ~Taken()
//   dead     a thread is free                            (none)   remove_one()
//   ready,   the pool goes                               dead     work(), in ~State()
//   unready
//
// What holds: `mutex` guards the lists and is never held while an engine works, which takes
// seconds; what an engine works on is in no list meanwhile, and `making` counts those. After a
// failure the pool is `stopped`: nothing new is made until an executor waits, so that a cluster
// that refuses is not asked in a loop. `failures` grows with each, so that who waits knows whether
// one came since.
//
// Each thread takes the first of these that applies, again and again: see work().
//
//   a place in `ready` has ended, or the pool is closed -> it goes to `dead`
//   the pool is closed, and `unready` is not empty      -> it goes to `dead`
//   `dead` is not empty                                 -> removes one
//   the pool is closed                                  -> ends
//   too few are ready or being made, and not `stopped`  -> makes one: it goes to `ready`, or if it
//                                                          fails to `unready`, and all stop
//   else                                                -> waits for a change
struct PlacePool::State {
  // A place that no executor has taken.
  struct Spare {
    std::shared_ptr<PlaceEngine> engine = {};
    CancelToken ended = {};
    Clock::time_point since = {};
  };

  State(Source from, std::size_t wanted, Function<void(const Error&)> report)
      : source(std::move(from)), size(wanted), on_failure(std::move(report)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  // A place that is ready, in exchange for one that has ended, or null.
  Expected<std::shared_ptr<PlaceEngine>> take(std::shared_ptr<PlaceEngine> old,
                                              const std::optional<CancelToken>& cancel);
  static void* thread_main(void* self);

  const Source source;
  const std::size_t size;
  const Function<void(const Error&)> on_failure;
  const pid_t owner = ::getpid();  // a fork of the program has no such threads
  pthread_t threads[most_threads] = {};
  std::size_t thread_count = 0;
  const CancelToken closing = {};
  std::mutex mutex = {};
  CancelToken changed = {};  // an event; each has its own
  std::vector<Spare> ready = {};
  std::vector<Spare> unready = {};  // could not be made yet, and may wait in a queue
  std::vector<Spare> dead = {};     // to be removed
  std::size_t making = 0;
  std::size_t waiting = 0;  // executors that need one
  bool stopped = false;     // since a failure
  std::uint64_t failures = 0;
  Error failure = {};

 private:
  static Spare take_first(std::vector<Spare>& list);
  void signal_change();
  void fail(std::unique_lock<std::mutex>& lock, const Error& why);
  void remove_one(std::unique_lock<std::mutex>& lock);
  void make_one(std::unique_lock<std::mutex>& lock);
  void wait(std::unique_lock<std::mutex>& lock);
  void work();
};

PlacePool::State::Spare PlacePool::State::take_first(std::vector<Spare>& list) {
  Spare first = std::move(list.front());
  list.erase(list.begin());
  return first;
}

// Waits for the threads, each of which removes what is left before it ends. A place that is being
// made is cancelled. A fork has the object and not the threads, and leaves the places alone.
PlacePool::State::~State() {
  if (owner != ::getpid()) return;
  closing.cancel();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    signal_change();
  }
  for (std::size_t i = 0; i < thread_count; ++i) ::pthread_join(threads[i], nullptr);
}

void* PlacePool::State::thread_main(void* self) {
  static_cast<State*>(self)->work();
  return nullptr;
}

// Wakes all that wait. A token cannot be reset, so that each change has one of its own: who waits
// takes a copy under the mutex, before it lets go of that, and misses nothing.
void PlacePool::State::signal_change() { std::exchange(changed, CancelToken()).cancel(); }

// One step a round, as the lists may be others after each.
void PlacePool::State::work() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    const bool closes = closing.cancelled();
    const auto gone = find_where(
        ready, [closes](const Spare& spare) { return closes || spare.ended.cancelled(); });
    if (gone != ready.end()) {
      const bool is_odd = !closes && Clock::now() < gone->since + shortest_life;
      dead.push_back(std::move(*gone));
      ready.erase(gone);
      if (is_odd)
        fail(lock, make_error(ErrorCode::io, "a place that was kept ready has ended by itself"));
    } else if (closes && !unready.empty()) {
      dead.push_back(take_first(unready));
    } else if (!dead.empty()) {
      remove_one(lock);
    } else if (closes) {
      return;
    } else if (!stopped && ready.size() + making < size + waiting) {
      make_one(lock);
    } else {
      wait(lock);
    }
  }
}

// The executors that wait get the error, or on_failure if none waits.
void PlacePool::State::fail(std::unique_lock<std::mutex>& lock, const Error& why) {
  const bool is_reported = stopped || waiting > 0 || closing.cancelled();
  stopped = true;
  failure = why;
  ++failures;
  signal_change();
  if (is_reported || !on_failure) return;
  lock.unlock();
  on_failure(why);
  lock.lock();
}

// Without the mutex: the destructor of the engine waits for the end of its place.
void PlacePool::State::remove_one(std::unique_lock<std::mutex>& lock) {
  Spare old = take_first(dead);
  lock.unlock();
  old.engine.reset();
  lock.lock();
}

// Makes a place without the mutex. One that could not be made may wait in a queue of its cluster,
// and is kept: to ask for another one would lose its turn there.
void PlacePool::State::make_one(std::unique_lock<std::mutex>& lock) {
  ++making;
  Spare spare;
  if (!unready.empty()) spare = take_first(unready);
  lock.unlock();
  if (!spare.engine) spare.engine = source();
  Expected<PlaceEngine::Way> way =
      spare.engine ? spare.engine->reach(closing)
                   : make_error(ErrorCode::invalid_argument, "there is no engine for a place");
  lock.lock();
  --making;
  if (way) {
    spare.ended = way->ended;
    spare.since = Clock::now();
    ready.push_back(std::move(spare));
    signal_change();
    return;
  }
  if (spare.engine) unready.push_back(std::move(spare));
  fail(lock, way.error());
}

// Until anything changes, or a place that is ready ends. Without a descriptor for that, as all are
// in use, it looks again every 50 ms.
void PlacePool::State::wait(std::unique_lock<std::mutex>& lock) {
  const CancelToken change = changed;
  std::vector<pollfd> set = {{change.descriptor(), POLLIN, 0}};
  for (const Spare& spare : ready) set.push_back({spare.ended.descriptor(), POLLIN, 0});
  const bool blind = set[0].fd < 0;
  lock.unlock();
  wait_for_events(
      set, blind ? later(Clock::now(), std::chrono::milliseconds(50)) : Clock::time_point::max());
  lock.lock();
}

// Gives the first place that is ready, and waits while one is being made. It begins anew where the
// pool was stopped, as it is needed now. Errors: a cancel; a failure since it began to wait, once
// no other attempt is under way; not a failure of before, whose cause may be gone.
Expected<std::shared_ptr<PlaceEngine>> PlacePool::State::take(
    std::shared_ptr<PlaceEngine> old, const std::optional<CancelToken>& cancel) {
  if (owner != ::getpid())
    return make_error(ErrorCode::unsupported,
                      "this process is a fork of the one that keeps the places");
  std::unique_lock<std::mutex> lock(mutex);
  if (old) dead.push_back({std::move(old), {}, {}});
  const std::uint64_t known = failures;
  ++waiting;
  if (making == 0) stopped = false;
  signal_change();
  Expected<std::shared_ptr<PlaceEngine>> taken = cancelled_before_start();
  for (bool waits = true; waits && ready.empty() && (making != 0 || failures == known);) {
    // All places that were being made have gone to others: make one more.
    if (making == 0 && std::exchange(stopped, false)) signal_change();
    const CancelToken change = changed;
    lock.unlock();
    waits = wait_for_event(change, cancel, Clock::time_point::max());
    lock.lock();
  }
  if (!ready.empty())
    taken = take_first(ready).engine;
  else if (making == 0 && failures != known)
    taken = failure;
  --waiting;
  signal_change();
  return taken;
}

// The engine of an executor that takes its places from a pool.
class PlacePool::Taken final : public PlaceEngine {
 public:
  explicit Taken(const std::shared_ptr<State>& pool) : pool_(pool) {}
  Expected<Way> reach(const std::optional<CancelToken>& cancel) override {
    // A place may have ended since it was made ready.
    for (;;) {
      if (auto way = current()) return way;
      const std::shared_ptr<State> pool = pool_.lock();
      if (!pool) return make_error(ErrorCode::not_found, "the pool of places is gone");
      auto taken = pool->take(std::move(engine_), cancel);
      if (!taken) return taken.failure();
      engine_ = std::move(*taken);
    }
  }
  Expected<Way> current() override { return engine_ ? engine_->current() : PlaceEngine::current(); }

 private:
  const std::weak_ptr<State> pool_;
  std::shared_ptr<PlaceEngine> engine_ = {};
};

Expected<PlacePool> PlacePool::create(Source source, std::size_t size,
                                      Function<void(const Error&)> on_failure) {
  constexpr std::size_t most = 1000;
  if (size == 0 || size > most)
    return make_error(ErrorCode::invalid_argument, "place_pool must be from 1 to %, and not %",
                      {most, size});
  PlacePool pool;
  pool.state_ = new_shared<State>(std::move(source), size, std::move(on_failure));
  State& state = *pool.state_;
  while (state.thread_count < std::min(size, most_threads)) {
    if (const int error =
            start_thread(&state.threads[state.thread_count], State::thread_main, &state);
        error != 0)
      return system_error(error, "cannot start a thread");
    ++state.thread_count;
  }
  return pool;
}

std::shared_ptr<PlaceEngine> PlacePool::take() const { return new_shared<Taken>(state_); }

std::size_t PlacePool::ready() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->ready.size();
}

}  // namespace v0_1
}  // namespace codeexec
