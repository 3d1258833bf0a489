// One command in a container: the start in a container that does not answer, and the last measures
// when its agent is lost. See container_internal.hpp for the drawing.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/command_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A command that has not begun in time may be in a container that is paused or gone. ensure() wakes
// the container or makes another one; then the command gets its time once more.
void ContainerExecutor::Exec::wait_for_start(std::unique_lock<std::mutex>& lock,
                                             const std::optional<CancelToken>& cancel) {
  constexpr std::chrono::milliseconds patience = std::chrono::seconds(2);
  AgentCommand::wait_for_start(lock, cancel, later(Clock::now(), patience));
  if (has_begun() || (cancel && cancel->cancelled())) return;
  lock.unlock();
  container_->forget();
  const auto there = container_->ensure(cancel);
  lock.lock();
  if (there)
    AgentCommand::wait_for_start(lock, cancel,
                                 later(Clock::now(), container_->options.start_timeout));
}

// Called when the agent is lost or does not answer, at first without `last`, then with the result
// of each call that was returned before. Nothing: there is no more to do.
std::shared_ptr<Process::State> ContainerExecutor::Exec::recover(const ProcessResult* last) {
  const EngineOptions& engine = container_->options.engine;
  container_->forget();
  if (!last) return new_run(container_->incarnation_call());
  const bool is_gone = says(*last, "No such container"sv) || says(*last, "is not running"sv);
  if (!killing_) {
    killing_ = !is_gone && (!last->succeeded() || incarnation_.empty() ||
                            without_line_ends(last->out) == concat("\"%\"", {incarnation_}));
    if (killing_)
      return new_run(
          engine_call(engine, words_of({"kill", container_->name}), engine.call_timeout));
    message_ = "its container was stopped";
  } else if (is_gone) {
    killing_ = false;
    message_ = "its container was stopped";
  } else if (last->succeeded()) {
    message_ = "its container had to be killed";
  } else {
    message_ = concat("some of its processes may still be running: %",
                      {engine_error(engine, *last, "kill the container").error().message});
  }
  measured_ = true;
  return nullptr;
}

// Adds to the result how the command was ended, where its agent could not say. A kill of the
// container is a kill of the command, unless that is not known to have begun, or was lost together
// with its agent: it may have ended before by itself.
void ContainerExecutor::Exec::finish(ProcessResult& result) {
  AgentCommand::finish(result);
  if (!measured_) return;
  if (!has_started() || (killing_ && was_lost())) {
    result.message += concat("; %", {message_});
    return;
  }
  result.outcome = Outcome::signaled;
  result.signal = SIGKILL;
  result.message = message_;
}

}  // namespace v0_1
}  // namespace codeexec
