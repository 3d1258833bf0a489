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
void ContainerExecutor::Exec::wait_for_start(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::milliseconds patience = std::chrono::seconds(2);
  if (PlaceCommand::wait_for_start(lock, later(Clock::now(), patience))) return;
  lock.unlock();
  container_->forget();
  const auto there = container_->ensure({});
  lock.lock();
  if (there)
    PlaceCommand::wait_for_start(lock, later(Clock::now(), container_->options.start_timeout));
}

// Its agent does not answer, which may be stopped with the container.
std::optional<ProcessOptions> ContainerExecutor::Exec::next_measure(const ProcessResult* last) {
  const EngineOptions& engine = container_->options.engine;
  if (!last) return engine_call(engine, words_of({"kill", container_->name}), engine.call_timeout);
  container_->forget();
  message_ = last->succeeded() || says(*last, "No such container") || says(*last, "is not running")
                 ? "its container had to be killed"
                 : concat({"some of its processes may still be running: ",
                           engine_error(engine, *last, "kill the container").message});
  return std::nullopt;
}

void ContainerExecutor::Exec::finish(ProcessResult& result) {
  PlaceCommand::finish(result);
  if (message_.empty() && !was_killed_with_agent()) return;
  result.outcome = Outcome::signaled;
  result.signal = SIGKILL;
  result.message = message_.empty()
                       ? "its container was stopped, or all processes of its user in it were killed"
                       : message_;
}

}  // namespace v0_1
}  // namespace codeexec
