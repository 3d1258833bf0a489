// One command in a container.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "place/place_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A command that has not begun by then may be in a container that is paused, or has gone.
void ContainerExecutor::Exec::wait_for_start(std::unique_lock<std::mutex>& lock,
                                             const std::optional<CancelToken>& cancel) {
  constexpr std::chrono::milliseconds patience = std::chrono::seconds(2);
  PlaceCommand::wait_for_start(lock, cancel, later(Clock::now(), patience));
  if (has_begun() || (cancel && cancel->cancelled())) return;
  lock.unlock();
  container_->forget();
  const auto there = container_->ensure(cancel);
  lock.lock();
  if (there)
    PlaceCommand::wait_for_start(lock, cancel,
                                 later(Clock::now(), container_->options.start_timeout));
}

// Its agent is lost, or does not answer. All that is left is killed with the container, unless that
// has ended meanwhile, or was started again.
std::optional<ProcessOptions> ContainerExecutor::Exec::next_measure(const ProcessResult* last) {
  const EngineOptions& engine = container_->options.engine;
  container_->forget();
  if (!last) return container_->incarnation_call();
  const bool is_gone = says(*last, "No such container"sv) || says(*last, "is not running"sv);
  if (!killing_) {
    killing_ = !is_gone && (!last->succeeded() || incarnation_.empty() ||
                            without_line_ends(last->out) == concat("\"%\"", {incarnation_}));
    if (killing_)
      return engine_call(engine, words_of({"kill", container_->name}), engine.call_timeout);
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
  return std::nullopt;
}

void ContainerExecutor::Exec::finish(ProcessResult& result) {
  PlaceCommand::finish(result);
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
