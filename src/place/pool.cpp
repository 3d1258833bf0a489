// Places kept ready.

#include "place/place.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t most_threads = 16;
// One that ends sooner by itself is a failure, or places would be made in a loop.
constexpr std::chrono::seconds shortest_life(60);

}  // namespace

Expected<PlaceEngine::Way> PlaceEngine::current() {
  return make_error(ErrorCode::not_found, "there is no place");
}

// Each thread does what there is to do: it removes, makes, or waits for a change.
struct PlacePool::State {
  // A place that nobody has taken.
  struct Spare {
    std::shared_ptr<PlaceEngine> engine = {};
    CancelToken ended = {};
    Clock::time_point since = {};
  };

  State(Source from, std::size_t wanted, Function<void(const Error&)> told)
      : source(std::move(from)), size(wanted), on_failure(std::move(told)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Expected<PlaceEngine::Way> take(std::shared_ptr<PlaceEngine>& engine,
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
  void tell_change();
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

PlacePool::State::~State() {
  if (owner != ::getpid()) return;
  closing.cancel();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    tell_change();
  }
  for (std::size_t i = 0; i < thread_count; ++i) ::pthread_join(threads[i], nullptr);
}

void* PlacePool::State::thread_main(void* self) {
  static_cast<State*>(self)->work();
  return nullptr;
}

void PlacePool::State::tell_change() { std::exchange(changed, CancelToken()).cancel(); }

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

// Those who wait get it as their error.
void PlacePool::State::fail(std::unique_lock<std::mutex>& lock, const Error& why) {
  const bool is_told = stopped || waiting > 0 || closing.cancelled();
  stopped = true;
  failure = why;
  ++failures;
  tell_change();
  if (is_told || !on_failure) return;
  lock.unlock();
  on_failure(why);
  lock.lock();
}

void PlacePool::State::remove_one(std::unique_lock<std::mutex>& lock) {
  Spare old = take_first(dead);
  lock.unlock();
  old.engine.reset();
  lock.lock();
}

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
    tell_change();
    return;
  }
  if (spare.engine) unready.push_back(std::move(spare));
  fail(lock, way.error());
}

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

Expected<PlaceEngine::Way> PlacePool::State::take(std::shared_ptr<PlaceEngine>& engine,
                                                  const std::optional<CancelToken>& cancel) {
  if (owner != ::getpid())
    return make_error(ErrorCode::unsupported,
                      "this process is a fork of the one that keeps the places");
  std::unique_lock<std::mutex> lock(mutex);
  // What is left of the last one.
  if (engine) dead.push_back({std::exchange(engine, {}), {}, {}});
  const std::uint64_t known = failures;
  Expected<PlaceEngine::Way> way = Error();
  ++waiting;
  if (making == 0) stopped = false;
  tell_change();
  for (;;) {
    if (!ready.empty()) {
      Spare spare = take_first(ready);
      --waiting;
      tell_change();
      lock.unlock();
      way = spare.engine->current();
      if (way) {
        engine = std::move(spare.engine);
        return way;
      }
      lock.lock();
      ++waiting;
      dead.push_back(std::move(spare));
      tell_change();
      continue;
    }
    if (making == 0 && failures != known) {
      way = failure;
      break;
    }
    // A failure of before, which was told; what was being made then has been taken by others.
    if (making == 0 && std::exchange(stopped, false)) tell_change();
    const CancelToken change = changed;
    lock.unlock();
    const bool came = wait_for_event(change, cancel, Clock::time_point::max());
    lock.lock();
    if (came) continue;
    way = with_message(system_error(ECANCELED, ""), "cancelled before it was started");
    break;
  }
  --waiting;
  tell_change();
  return way;
}

// What an executor has of a pool.
class PlacePool::Taken final : public PlaceEngine {
 public:
  explicit Taken(const std::shared_ptr<State>& pool) : pool_(pool) {}
  Expected<Way> reach(const std::optional<CancelToken>& cancel) override {
    auto way = current();
    if (way) return way;
    const std::shared_ptr<State> pool = pool_.lock();
    if (!pool) return make_error(ErrorCode::not_found, "the pool of places is gone");
    return pool->take(engine_, cancel);
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
