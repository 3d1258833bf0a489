// Delivers what started programs bring to their callbacks, and ends commands.
//
//   state of a mailbox  event                         next       function, and its thread
//   empty               output, a heartbeat, the end  full       put() beat() end(), engine
//   full                the engine has seen it        claimed    claim(), engine; it is in a queue
//   claimed             its turn has come             delivered  deliver(), delivery thread
//   delivered           more has come meanwhile       claimed    deliver(): back to the queue
//   delivered           nothing has                   empty      rest()
//   delivered           nothing has, after the end    -          complete()
//
// With ProcessOptions::post the thread puts what is for callbacks into a second mailbox of the same
// kind, which a task of the program empties: claimed by post_rest(), delivered by take_posted(),
// whose end is on_end.
//
// What holds: one command is in one delivery thread alone, and in one task at a time, so that its
// callbacks come in order. The engine thread never calls them, nor does it free what they hold.

#include "process/delivery_internal.hpp"

#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/reactor_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// An exception ends this program: what it has cut short could not be reported.
void call_back(FunctionRef<void()> callback) noexcept { callback(); }

}  // namespace

void Mailbox::Content::visit(FunctionRef<void(Stream, std::string_view)> visitor) const {
  std::string_view rest = bytes;
  for (const Piece& piece : pieces) {
    if (piece.size == 0) continue;
    visitor(piece.stream, rest.substr(0, piece.size));
    rest.remove_prefix(piece.size);
  }
}

void Mailbox::put(Stream stream, std::string_view bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // In an order in which a lack of memory leaves a piece without bytes, and no bytes without one.
  if (content_.pieces.empty() || content_.pieces.back().stream != stream)
    content_.pieces.push_back({stream, 0});
  content_.bytes += bytes;
  content_.pieces.back().size += bytes.size();
}

void Mailbox::beat() {
  const std::lock_guard<std::mutex> lock(mutex_);
  content_.beat = true;
}

void Mailbox::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
}

std::size_t Mailbox::room() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t size = content_.bytes.size();
  if (size < most_bytes) return most_bytes - size;
  content_.has_room = true;
  return 0;
}

bool Mailbox::claim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return (!is_empty() || ended_) && !std::exchange(claimed_, true);
}

void Mailbox::unclaim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  claimed_ = false;
}

void Mailbox::take(Content& content) {
  content.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::swap(content_, content);
}

void Mailbox::free(Content& content) {
  content = {};
  take(content);
  content = {};
}

bool Mailbox::rest(bool& ended) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_empty()) return false;
  ended = ended_;
  claimed_ = ended_;
  quiet_since_ = Clock::now();
  return true;
}

Clock::time_point Mailbox::quiet_since() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return claimed_ || !is_empty() ? Clock::now() : quiet_since_;
}

// One command -------------------------------------------------------------------------------------

int Process::State::Delivery::prepare(std::shared_ptr<Reactor>& reactor) {
  const ProcessOptions& wanted = state_.options;
  if (wanted.on_output || wanted.on_heartbeat) has_callbacks = true;
  if (has_callbacks || conclude || wanted.hash_output) mailbox = std::make_unique<Mailbox>();
  if (has_callbacks && wanted.post) posted = std::make_unique<Mailbox>();
  int error = 0;
  reactor = Reactor::shared(error);
  if (reactor) error = reactor->begin_delivery(state_);
  engine = reactor.get();
  return error;
}

void Process::State::Delivery::put(Output& output, std::string_view bytes) {
  if (!mailbox) return hand_on(output, bytes);
  if (!state_.options.hash_output && !state_.options.on_output) return;
  mailbox->put(output.stream, bytes);
  state_.io.out.room = state_.io.err.room = room();
}

void Process::State::Delivery::beat() {
  if (mailbox) return mailbox->beat();
  heartbeat();
}

void Process::State::Delivery::end() {
  if (mailbox) return mailbox->end();
  complete();
}

// Once the last handle has gone nothing waits for the program's tasks: the thread that does them
// may be the one in which it goes.
std::size_t Process::State::Delivery::room() {
  const std::size_t here = mailbox->room();
  return posted && !is_dropped_ && !state_.kill_asked ? std::min(here, posted->room()) : here;
}

Clock::time_point Process::State::Delivery::quiet_since() {
  const Clock::time_point here = mailbox->quiet_since();
  return posted ? std::max(here, posted->quiet_since()) : here;
}

bool Process::State::Delivery::deliver(const std::shared_ptr<State>& self) {
  mailbox->take(content_);
  if (content_.has_room) wake_engine();
  content_.visit([&](Stream stream, std::string_view bytes) {
    hand_on(stream == Stream::out ? state_.io.out : state_.io.err, bytes);
  });
  if (content_.beat) heartbeat();
  post_rest(self);
  bool ended = false;
  if (!mailbox->rest(ended)) return true;
  if (ended && !std::exchange(is_complete_, true)) {
    mailbox->free(content_);
    complete();
    post_rest(self);
  }
  return false;
}

// Called once for each piece of output, masked and in order.
void Process::State::Delivery::hand_on(Output& output, std::string_view bytes) {
  if (state_.options.hash_output) output.hash.add(bytes);
  if (!posted)
    call_back([&] { state_.options.on_output(output.stream, bytes); });
  else if (state_.options.on_output && !is_dropped_)
    await_memory([&] { posted->put(output.stream, bytes); });
}

void Process::State::Delivery::heartbeat() {
  if (posted) return posted->beat();
  call_back([&] { state_.options.on_heartbeat(); });
}

// The last step of a run, when all of its output was handed on.
void Process::State::Delivery::complete() {
  ProcessResult& last = state_.result;
  const auto add_hashes = [&] {
    if (!state_.io.out.is_cut) last.out_counts.sha256 = state_.io.out.hash.hex();
    if (!state_.io.err.is_cut) last.err_counts.sha256 = state_.io.err.hash.hex();
  };
  if (state_.options.hash_output && !enough_memory(add_hashes))
    tell_of_memory(last.message, "the hashes of its output are");
  call_back([&] {
    if (!enough_memory([&] { conclude(last); })) tell_of_memory(last.message, "notes are");
  });
  // A container that they hold may take long to go away, so that a thread that waits for this end
  // must not be the one to free it.
  conclude = nullptr;
  state_.release();
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    state_.done = true;
    if (state_.end_token) state_.end_token->cancel();
  }
  if (posted) {
    posted->end();
  } else {
    call_back([&] { on_end(last); });
    on_end = nullptr;
  }
  const std::lock_guard<std::mutex> lock(state_.mutex);
  state_.is_delivered = true;
  state_.ended_event.notify_all();
}

// A task of the program may come when the engine has gone.
void Process::State::Delivery::wake_engine() const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  if (!state_.done) engine->wake();
}

// Tasks of the program ----------------------------------------------------------------------------

// One task. It was dropped if it goes away without a call, once it is owed.
struct Process::State::Delivery::Turn {
  explicit Turn(std::shared_ptr<State> its_state) : state(std::move(its_state)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (is_owed) state->delivery.drop_posted();
  }
  void take() {
    if (std::exchange(is_owed, false)) state->delivery.take_posted(state);
  }

  const std::shared_ptr<State> state;
  bool is_owed = false;
};

// One task at a time, for all that waits.
void Process::State::Delivery::post_rest(const std::shared_ptr<State>& self) {
  if (posted && !is_dropped_ && posted->claim()) post_turn(self);
}

void Process::State::Delivery::post_turn(const std::shared_ptr<State>& self) {
  Function<void()> task;
  await_memory([&] {
    const auto turn = new_shared<Turn>(self);
    task = [turn] { turn->take(); };
    turn->is_owed = true;
  });
  call_back([&] { state_.options.post(std::move(task)); });
}

void Process::State::Delivery::take_posted(const std::shared_ptr<State>& self) {
  posted->take(posted_content_);
  if (posted_content_.has_room) wake_engine();
  posted_content_.visit([&](Stream stream, std::string_view bytes) {
    call_back([&] { state_.options.on_output(stream, bytes); });
  });
  if (posted_content_.beat) call_back([&] { state_.options.on_heartbeat(); });
  bool ended = false;
  // If more has come, the tasks of others have their turn first.
  if (!posted->rest(ended)) return post_turn(self);
  if (!ended) return;
  call_back([&] { on_end(state_.result); });
  on_end = nullptr;
  posted->free(posted_content_);
}

void Process::State::Delivery::drop_posted() {
  is_dropped_ = true;
  Mailbox::Content dropped;
  posted->take(dropped);
  wake_engine();
}

// The threads -------------------------------------------------------------------------------------

int TaskThread::begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (runs_) return 0;
  const int error = start_thread(&thread_, thread_main, this);
  runs_ = error == 0;
  return error;
}

TaskThread::Task TaskThread::task(Function<void()> function) {
  Task task;
  task.push_back(std::move(function));
  return task;
}

void TaskThread::add(Task&& task) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.splice(tasks_.end(), task);
  added_.notify_one();
}

TaskThread::~TaskThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!runs_) return;
    ending_ = true;
    added_.notify_one();
  }
  ::pthread_join(thread_, nullptr);
}

void* TaskThread::thread_main(void* self) {
  auto& thread = *static_cast<TaskThread*>(self);
  if (thread.kind_ == Kind::calls_back) become_event_thread();
  thread.loop();
  return nullptr;
}

void TaskThread::loop() {
  for (;;) {
    Task tasks;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      added_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      tasks.swap(tasks_);
    }
    // What a task holds goes away with it.
    for (Function<void()>& task : tasks) std::exchange(task, nullptr)();
  }
}

}  // namespace v0_1
}  // namespace codeexec
