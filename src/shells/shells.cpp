// All background commands, and the public functions.

#include "shells/shells.hpp"
#include "shells/shell_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct BackgroundShells::State {
  using ShellPointer = std::shared_ptr<Shell>;

  State(const Executor& its_executor, ShellOptions its_options)
      : executor(its_executor), options(its_options) {}

  Expected<ShellPointer> make_shell(Command& command) const;
  Expected<void> reserve();
  void give_back();
  void add(const ShellPointer& shell, bool reserved);
  bool to_background(Shell& shell);
  void remove(const Shell& shell);
  Expected<ShellPointer> find(std::string_view id);
  std::vector<ShellPointer> all();

  const Executor& executor;
  const ShellOptions options;
  const pid_t owner = ::getpid();
  std::mutex mutex = {};
  std::vector<ShellPointer> shells = {};  // in the order of start
  std::size_t starting = 0;  // places that are taken by shells which are not in the list yet
  bool closing = false;

 private:
  bool has_room() const;
  std::vector<ShellPointer> take_old();
};

// A shell for a command, which becomes what will be started.
Expected<BackgroundShells::State::ShellPointer> BackgroundShells::State::make_shell(
    Command& command) const {
  auto shell = new_shared<Shell>();
  const std::string random = random_hex(8);
  if (random.empty()) return system_error(errno, "cannot make a name for a background shell");
  shell->id = concat("shell_%", {random});
  command.background = true;
  command.shell_id = shell->id;
  const bool asked = command.timeout.has_value();
  if (!asked) command.timeout = options.timeout;
  if (*command.timeout > options.max_timeout) {
    if (asked)
      add_note(
          shell->notes,
          "timeout reduced from % to % seconds, the longest that background shells may have here",
          {seconds_text(*command.timeout), seconds_text(options.max_timeout)});
    command.timeout = options.max_timeout;
  }
  return shell;
}

// Needs the mutex.
bool BackgroundShells::State::has_room() const {
  std::size_t running = starting;
  for (const ShellPointer& shell : shells)
    if (!shell->foreground && !shell->events->ended.load()) ++running;
  return running < options.max_running;
}

// Takes out what nobody needs to know any more, for the caller to destroy without the mutex, which
// this needs. As a rule one at most: each costs a look at all of them.
std::vector<BackgroundShells::State::ShellPointer> BackgroundShells::State::take_old() {
  constexpr std::size_t most_command_bytes = std::size_t{64} << 20;
  const Clock::time_point now = Clock::now();
  std::vector<ShellPointer> old;
  for (;;) {
    std::size_t finished = 0;
    std::size_t command_bytes = 0;
    auto oldest = shells.end();
    for (auto at = shells.begin(); at != shells.end(); ++at) {
      const Shell& shell = **at;
      if (shell.foreground || !shell.events->ended.load()) continue;
      ++finished;
      command_bytes += shell.execution.asked().command.size();
      if (oldest == shells.end() || shell.events->ended_at < (*oldest)->events->ended_at)
        oldest = at;
    }
    if (oldest == shells.end() ||
        (finished <= options.max_finished && command_bytes <= most_command_bytes &&
         now < later((*oldest)->events->ended_at, options.keep_finished)))
      return old;
    old.push_back(std::move(*oldest));
    shells.erase(oldest);
  }
}

// Takes a place for a shell that is going to be started, for add() or give_back().
Expected<void> BackgroundShells::State::reserve() {
  std::vector<ShellPointer> old;
  const std::lock_guard<std::mutex> lock(mutex);
  old = take_old();
  if (!has_room())
    return make_error(ErrorCode::limit,
                      "as many background shells are running as may run at once (%): wait for one "
                      "to end, or kill one that is not needed any more",
                      {options.max_running});
  ++starting;
  return {};
}

void BackgroundShells::State::give_back() {
  const std::lock_guard<std::mutex> lock(mutex);
  --starting;
}

void BackgroundShells::State::add(const ShellPointer& shell, bool reserved) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (reserved) --starting;
  shell->foreground = !reserved;
  shells.push_back(shell);
  // Somebody ended this object meanwhile, and did not see this one.
  if (closing) shell->execution.cancel();
}

// False when there is no room for it.
bool BackgroundShells::State::to_background(Shell& shell) {
  std::vector<ShellPointer> old;
  const std::lock_guard<std::mutex> lock(mutex);
  old = take_old();
  if (closing || !has_room()) return false;
  shell.foreground = false;
  return true;
}

void BackgroundShells::State::remove(const Shell& shell) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto at = shells.begin(); at != shells.end(); ++at)
    if (at->get() == &shell) {
      shells.erase(at);
      return;
    }
}

Expected<BackgroundShells::State::ShellPointer> BackgroundShells::State::find(std::string_view id) {
  std::vector<ShellPointer> old;
  const std::lock_guard<std::mutex> lock(mutex);
  old = take_old();
  for (const ShellPointer& shell : shells)
    if (shell->id == id && !shell->foreground) return shell;
  return make_error(
      ErrorCode::not_found,
      "there is no background shell % (any more): list the shells, or start a new one",
      {in_quotes(id)});
}

// What is told of, in the order of start.
std::vector<BackgroundShells::State::ShellPointer> BackgroundShells::State::all() {
  std::vector<ShellPointer> old;
  std::vector<ShellPointer> told;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    old = take_old();
    for (const ShellPointer& shell : shells)
      if (!shell->foreground) told.push_back(shell);
  }
  return told;
}

BackgroundShells::BackgroundShells(const Executor& executor, ShellOptions options)
    : state_(new_shared<State>(executor, options)) {}

BackgroundShells::~BackgroundShells() {
  if (state_->owner != ::getpid()) {
    // This fork of the host has neither the shells nor the thread that would tell of their end, and
    // its heap may be locked: the object is moved to where nobody destroys it.
    alignas(std::shared_ptr<State>) unsigned char place[sizeof state_];
    ::new (static_cast<void*>(place)) std::shared_ptr<State>(std::move(state_));
    return;
  }
  std::vector<State::ShellPointer> all;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closing = true;
    all.swap(state_->shells);
  }
  for (const State::ShellPointer& shell : all) shell->execution.cancel();
  for (const State::ShellPointer& shell : all) shell->execution.wait_for(no_limit);
}

Expected<ShellStatus> BackgroundShells::start(const Command& command, Result* failure) {
  const CancellationPause pause;
  State& state = *state_;
  if (auto place = state.reserve(); !place) return place.failure();
  Command changed = command;
  auto made = state.make_shell(changed);
  if (!made) {
    state.give_back();
    return made.failure();
  }
  Shell& shell = **made;
  changed.keep_end_only = true;
  Result unwanted;
  Result& failed = failure ? *failure : unwanted;
  if (shell.start(state.executor, changed, failed)) {
    state.add(*made, true);
    return shell.status();
  }
  state.give_back();
  Error error = failed.outcome == Outcome::refused ? make_error(ErrorCode::permission_denied, "")
                                                   : system_error(failed.system_error, "");
  error.message = failed.message;
  return error;
}

ForegroundRun BackgroundShells::run(const Command& command, std::chrono::milliseconds time) {
  const CancellationPause pause;
  const std::shared_ptr<State> state = state_;
  const Clock::time_point deadline = later(Clock::now(), time);
  ForegroundRun run;
  run.ended = true;
  const auto fail = [&](const Error& error) {
    run.result.system_error = error.system_error;
    run.result.step = step_name(SpawnStep::setup);
    run.result.message = error.message;
  };
  Command changed = command;
  auto made = state->make_shell(changed);
  if (!made) {
    fail(made.error());
    return run;
  }
  Shell& shell = **made;
  Shell::Waiter waiter(shell.events, false);
  if (auto ok = waiter.problem(command.cancel); !ok) {
    fail(ok.error());
    return run;
  }
  // The token is looked at here, as it must not reach into the background. One that is cancelled
  // already tells the executor not to start.
  if (changed.cancel && !changed.cancel->cancelled()) changed.cancel.reset();
  if (!shell.start(state->executor, changed, run.result)) return run;
  state->add(*made, false);
  ShellWait until;
  until.cancel = command.cancel;
  ShellWaitEnd end = shell.wait(waiter, until, deadline);
  if (end == ShellWaitEnd::timed_out) {
    if (state->to_background(shell)) {
      run.ended = false;
      run.shell = shell.status();
      return run;
    }
    // Somebody waits for it, so it must come back.
    const auto longest =
        command.timeout ? no_limit : std::max(time, state->executor.options().timeout);
    end = shell.wait(waiter, until, later(shell.started, longest));
    if (end == ShellWaitEnd::timed_out)
      add_note(shell.notes,
               "ended after the % that a command may take in the foreground, because as many run "
               "in the background as may",
               {count_of_seconds(longest)});
  }
  if (end != ShellWaitEnd::ended) shell.execution.cancel();
  run.result = shell.result();
  state->remove(shell);
  return run;
}

Expected<ShellStatus> BackgroundShells::status(std::string_view id) const {
  const auto shell = state_->find(id);
  if (!shell) return shell.failure();
  return (*shell)->status();
}

std::vector<ShellStatus> BackgroundShells::list() const {
  std::vector<ShellStatus> result;
  for (const State::ShellPointer& shell : state_->all()) result.push_back(shell->status());
  return result;
}

Expected<ShellOutput> BackgroundShells::read(std::string_view id, ShellCursor since) const {
  const auto shell = state_->find(id);
  if (!shell) return shell.failure();
  const Execution& execution = (*shell)->execution;
  const std::size_t max_lines = state_->options.max_lines;
  // The status first, so that what is read after it is complete when it has ended.
  return ShellOutput{(*shell)->status(), execution.read(Stream::out, since.out, max_lines),
                     execution.read(Stream::err, since.err, max_lines)};
}

Expected<ShellWaitEnd> BackgroundShells::wait(std::string_view id, const ShellWait& until) const {
  const CancellationPause pause;
  const Clock::time_point deadline = later(Clock::now(), until.time);
  const auto shell = state_->find(id);
  if (!shell) return shell.failure();
  Shell::Waiter waiter((*shell)->events, until.pattern.has_value());
  if (auto ok = waiter.problem(until.cancel); !ok) return ok.failure();
  return (*shell)->wait(waiter, until, deadline);
}

Expected<void> BackgroundShells::write(std::string_view id, std::string_view bytes) const {
  const auto shell = state_->find(id);
  if (!shell) return shell.failure();
  if ((*shell)->has_ended())
    return make_error(ErrorCode::io, "background shell % has ended: it reads no input",
                      {in_quotes(id)});
  return (*shell)->execution.write(bytes);
}

Expected<void> BackgroundShells::close_input(std::string_view id) const {
  const auto shell = state_->find(id);
  if (!shell) return shell.failure();
  (*shell)->execution.close_input();
  return {};
}

Expected<bool> BackgroundShells::kill(std::string_view id) const {
  const auto found = state_->find(id);
  if (!found) return found.failure();
  const State::ShellPointer& shell = *found;
  if (shell->has_ended()) return false;
  const bool first = !shell->kill_asked.exchange(true);
  shell->execution.cancel();
  shell->execution.wait_for(no_limit);
  return first && shell->status().result.outcome == Outcome::cancelled;
}

}  // namespace v0_1
}  // namespace codeexec
