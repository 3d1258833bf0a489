// Commands elsewhere.

#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
#include "process/remote_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string next_run_variable(std::uint64_t ticks) {
  static std::atomic<std::uint64_t> runs{0};
  return concat("%%-%-%", {run_variable_name, ::getpid(), ticks, runs.fetch_add(1)});
}

std::shared_ptr<Process::State> new_run(ProcessOptions&& options,
                                        std::shared_ptr<RemoteCommand> remote) {
  auto given = std::make_unique<ProcessOptions>(std::move(options));
  if (remote) return new_shared<RemoteRun>(std::move(given), std::move(remote));
  return new_shared<LocalRun>(std::move(given));
}

}  // namespace inner

std::shared_ptr<Process::State> RemoteCommand::recover(const ProcessResult*) { return nullptr; }

bool RemoteRun::start(bool at_once) {
  if (!prepare()) return false;
  const Clock::time_point asked = Clock::now();
  if (!command_->launch(!at_once, options.cancel, result)) return end_start();
  io.out.pipe = command_->take_out();
  io.err.pipe = command_->take_err();
  io.input = command_->take_input(io.unwritten);
  result.pid = command_->pid();
  io.out.open = true;
  io.err.open = !one_stream();
  // The way there and back counts. Longer waits do not: the place was still to be made.
  times.started = Clock::now();
  if (times.started - asked < std::chrono::seconds(1)) times.started = asked;
  set_times();
  for (Output* output : {&io.out, &io.err})
    if (!enough_memory([&] { take_bytes(*output, {}); })) output->is_cut = true;
  return true;
}

void RemoteRun::take_bytes(Output& output, std::string_view bytes) {
  command_->take(output.stream, bytes, [&](std::string_view text) { take_output(output, text); });
}

void RemoteRun::add_descriptors(std::vector<pollfd>& set) {
  recovery_ ? recovery_->add_descriptors(set) : State::add_descriptors(set);
}

Clock::time_point RemoteRun::deadline() const {
  return recovery_ ? recovery_->deadline() : State::deadline();
}

void RemoteRun::step(const std::vector<pollfd>& set, ReadBuffer& buffer) {
  if (!recovery_) return State::step(set, buffer);
  recovery_->step(set, buffer);
  if (recovery_->over()) recover();
}

bool RemoteRun::find_end(bool, ReadBuffer& buffer, Clock::time_point now) {
  if (!command_->ended() && !command_->is_lost()) return false;
  if (phase != Phase::draining) times.ended = now;
  phase = Phase::draining;
  for (Output* output : {&io.out, &io.err}) {
    // All that it wrote before its end is in the pipe.
    std::uint64_t before = 0;
    do {
      before = output->bytes_read;
      if (output->open && !command_->ended()) read_output(*output, buffer, now);
    } while (output->bytes_read != before);
  }
  if (io.is_full()) return true;
  if (command_->ended())
    finish();
  else
    recover();
  return true;
}

void RemoteRun::outlive_kill(Clock::time_point now) {
  times.ended = now;
  recover();
}

// Starts the next program of the recovery that can be started. Without one the run ends.
void RemoteRun::recover() {
  phase = Phase::recovering;
  do {
    recovery_ = command_->recover(recovery_ ? &recovery_->result : nullptr);
    if (!recovery_) return finish();
  } while (!recovery_->begin(false));
}

}  // namespace v0_1
}  // namespace codeexec
