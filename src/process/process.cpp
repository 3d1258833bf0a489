// Public functions, and the thread that watches all started programs.

#include "process/process.hpp"
#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/remote_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Out of line: each file that uses one would have its own copies otherwise.
ProcessResult::ProcessResult() = default;
ProcessResult::ProcessResult(const ProcessResult&) = default;
ProcessResult::ProcessResult(ProcessResult&&) noexcept = default;
ProcessResult& ProcessResult::operator=(const ProcessResult&) = default;
ProcessResult& ProcessResult::operator=(ProcessResult&&) noexcept = default;
ProcessResult::~ProcessResult() = default;

ProcessResult run_process(const ProcessOptions& options) {
  const CancellationPause pause;
  return LocalRun(options).run();
}

// Many children -----------------------------------------------------------------------------------

namespace {

// Id of the process in which this thread calls callbacks, or 0. A fork made in a callback copies
// the value and has no such thread, so the id is compared.
thread_local pid_t event_thread_of = 0;

}  // namespace

inline namespace inner {

bool in_event_thread() noexcept { return event_thread_of != 0 && event_thread_of == ::getpid(); }

void abort_in_callback(const char* function) {
  std::fprintf(stderr,
               "codeexec: %s was called in a callback of a started program, on the thread that it "
               "would wait for\n",
               function);
  std::abort();
}

}  // namespace inner

// The thread owns `running`; handles hand over through `incoming` and wake it by the pipe.
//
// The last handle joins the thread. One that is dropped in a callback, on the thread itself, cannot
// do that: it leaves its reference to `self`, and the thread ends when nothing runs any more.
struct Process::Reactor {
  static std::shared_ptr<Reactor> shared(int& error);
  Reactor() = default;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  void add(std::shared_ptr<State> state);
  void wake();
  // Takes the reference of a handle that may not wait.
  void keep(std::shared_ptr<Reactor> handle);
  // False in a fork of the process that made it, which has no such thread.
  bool is_ours() const { return owner == ::getpid(); }

 private:
  int begin();
  static void* thread_main(void* self);
  void loop();

  pid_t owner = -1;
  pthread_t thread = {};
  bool has_thread = false;
  UniqueFd wake_in = UniqueFd();
  UniqueFd wake_out = UniqueFd();
  std::list<std::shared_ptr<State>> running = {};
  std::mutex mutex = {};
  std::list<std::shared_ptr<State>> incoming = {};
  std::shared_ptr<Reactor> self = {};
  bool ending = false;
};

std::shared_ptr<Process::Reactor> Process::Reactor::shared(int& error) {
  struct Shared {
    std::mutex mutex = {};
    std::weak_ptr<Reactor> reactor = {};
  };
  // Never destroyed: handles in static objects may end after it would.
  static Shared& current = *new Shared;
  const std::lock_guard<std::mutex> lock(current.mutex);
  std::shared_ptr<Reactor> reactor = current.reactor.lock();
  if (reactor && reactor->is_ours()) return reactor;
  reactor = new_shared<Reactor>();
  error = reactor->begin();
  if (error != 0) return nullptr;
  current.reactor = reactor;
  return reactor;
}

int Process::Reactor::begin() {
  owner = ::getpid();
  if (!make_pipe(wake_out, wake_in)) return errno;
  set_nonblocking(wake_out);
  set_nonblocking(wake_in);
  const int error = start_thread(&thread, thread_main, this);
  has_thread = error == 0;
  return error;
}

Process::Reactor::~Reactor() {
  if (!has_thread) return;
  if (::pthread_equal(thread, ::pthread_self())) {
    event_thread_of = 0;
    ::pthread_detach(thread);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  wake();
  ::pthread_join(thread, nullptr);
}

void Process::Reactor::add(std::shared_ptr<State> state) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    incoming.push_back(std::move(state));
  }
  wake();
}

void Process::Reactor::wake() {
  // A full pipe wakes the thread as well. If the kernel lacks memory, this tries again: after a
  // lost wake-up the thread would wait without end.
  while (::write(wake_in.get(), "", 1) < 0 && (errno == EINTR || errno == ENOMEM))
    ::poll(nullptr, 0, 1);
}

// Under the mutex to the end: with the reference the thread may destroy this object.
void Process::Reactor::keep(std::shared_ptr<Reactor> handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  self.swap(handle);
  wake();
}

void* Process::Reactor::thread_main(void* self) {
  event_thread_of = ::getpid();
  static_cast<Reactor*>(self)->loop();
  return nullptr;
}

void Process::Reactor::loop() {
  State::ReadBuffer buffer;
  std::vector<pollfd> set;
  for (;;) {
    Clock::time_point deadline = Clock::time_point::max();
    std::shared_ptr<Reactor> last;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (ending) return;
      // A request to a new run may have woken this thread before the run was in the list. That
      // wake-up is spent, so each new run gets one step without waiting.
      if (!incoming.empty()) deadline = Clock::now();
      running.splice(running.end(), incoming);
      if (running.empty()) last.swap(self);
    }
    last.reset();
    if (!in_event_thread()) return;  // that was the last reference, and this object is gone
    set.clear();
    set.push_back({wake_out.get(), POLLIN, 0});
    for (const std::shared_ptr<State>& state : running) {
      state->add_descriptors(set);
      deadline = std::min(deadline, state->deadline());
    }
    wait_for_events(set, deadline);
    if (set[0].revents) (void)!::read(wake_out.get(), buffer.data(), State::buffer_size);
    for (const std::shared_ptr<State>& state : running) state->step(set, buffer);
    for (auto at = running.begin(); at != running.end();)
      at = (*at)->over() ? running.erase(at) : std::next(at);
  }
}

Expected<Process> Process::start(ProcessOptions options,
                                 Function<void(const ProcessResult&)> on_end,
                                 ProcessResult* failure) {
  return State::launch(new_run(std::move(options)), std::move(on_end), failure);
}

Expected<Process> Process::State::launch(std::shared_ptr<State> state,
                                         Function<void(const ProcessResult&)> on_end,
                                         ProcessResult* failure) {
  const CancellationPause pause;
  state->on_end = std::move(on_end);
  int error = 0;
  std::shared_ptr<Reactor> reactor = Reactor::shared(error);
  if (!reactor)
    state->fail(SpawnStep::setup, error,
                concat("cannot start the thread for processes: %", {errno_text(error)}));
  if (!reactor || !state->start(false)) {
    if (failure) *failure = state->result;
    return with_message(system_error(state->result.system_error, ""), state->result.message);
  }
  state->forget_start();
  reactor->add(state);
  return Process(std::move(state), std::move(reactor));
}

Process::Process(std::shared_ptr<State> state, std::shared_ptr<Reactor> reactor) noexcept
    : state_(std::move(state)), reactor_(std::move(reactor)) {}

Process::Process(Process&& other) noexcept = default;

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  end();
  state_ = std::move(other.state_);
  reactor_ = std::move(other.reactor_);
  return *this;
}

Process::~Process() { end(); }

void Process::end() noexcept {
  if (!state_) return;
  if (!reactor_->is_ours()) {
    // In a fork of the host both objects are leaked on purpose: the process and the thread that
    // their destructors would end do not exist here. This takes no memory from the heap, which the
    // fork may have left locked.
    alignas(std::shared_ptr<State>) unsigned char state[sizeof state_];
    alignas(std::shared_ptr<Reactor>) unsigned char reactor[sizeof reactor_];
    ::new (static_cast<void*>(state)) std::shared_ptr<State>(std::move(state_));
    ::new (static_cast<void*>(reactor)) std::shared_ptr<Reactor>(std::move(reactor_));
    return;
  }
  const CancellationPause pause;
  state_->kill_asked.store(true);
  if (in_event_thread()) {
    Reactor& reactor = *reactor_;
    reactor.keep(std::move(reactor_));
  } else {
    reactor_->wake();
    (void)wait();
  }
  state_.reset();
  reactor_.reset();
}

int Process::pid() const noexcept { return state_->pid(); }

bool Process::done() const { return state_->ended_within(std::chrono::milliseconds(0)); }

bool Process::wait_for(std::chrono::milliseconds time) const {
  const CancellationPause pause;
  return state_->ended_within(time);
}

const ProcessResult& Process::wait() const {
  if (!wait_for(no_limit)) abort_in_callback("wait()");
  return state_->result;
}

int Process::descriptor() const { return state_->end_descriptor(); }

void Process::cancel() const {
  state_->cancel_asked.store(true);
  reactor_->wake();
}

bool Process::signal(int number) const { return state_->signal_group(number); }

Expected<void> Process::write(std::string_view bytes) const {
  auto queued = state_->queue_input(bytes);
  if (queued) reactor_->wake();
  return queued;
}

void Process::close_input() const {
  state_->end_input();
  reactor_->wake();
}

Expected<TerminalScreen> Process::screen() const { return state_->screen(); }

Expected<void> Process::resize(TerminalSize size) const {
  auto asked = state_->resize(size);
  if (asked) reactor_->wake();
  return asked;
}

OutputChunk Process::read(Stream stream, std::uint64_t cursor, std::size_t max_lines) const {
  return state_->read(stream, cursor, max_lines);
}

}  // namespace v0_1
}  // namespace codeexec
