// One container: how it is stopped and removed.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/identity_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Removes the container that a failed attempt has left, if this program made it. `at_once`: the
// attempt was cancelled, maybe as the engine does not answer. Then the engine is not asked; the
// next attempt or the end finds the container.
void Container::discard(bool at_once) {
  std::optional<Process> stuck;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    std::swap(stuck, holder);
  }
  stuck.reset();
  if (at_once) return;
  const ProgramIdentity program = own_identity();
  const auto found = look();
  if (found && !found->is_null() && is_own(*found) &&
      label_of(*found, "codeexec.pid"sv) == program.pid &&
      label_of(*found, "codeexec.start"sv) == program.start)
    (void)clear((*found)["Id"sv].as_string(), {});
}

// `kill` ends all processes at once. `docker stop` would wait ten seconds for a first process that
// ignores SIGTERM.
Expected<void> Container::stop() {
  if (!options.persistent) return remove();
  if (auto ok = take_turn({}); !ok) return ok;
  Expected<void> done;
  const auto found = look();
  if (!found)
    done = found.error();
  else if (!found->is_null() && !is_own(*found))
    done = foreign();
  else if (info_of(*found).running || info_of(*found).status == "paused")
    if (auto killed = ask(words_of({"kill", (*found)["Id"sv].as_string()}), "stop"); !killed)
      done = killed.error();
  if (done) report(concat("the container % was stopped", {name}));
  end_turn(false);
  return done;
}

// Saves the log first: `rm` takes the state of the container, which is a part of it. A container
// that is not ours is left alone, and that is the error.
bool Container::begin_removal() {
  (void)take_turn({});
  unremoved = options.log_file.empty() ? Expected<void>() : save_log(options.log_file);
  const auto found = look();
  if (!found) {
    unremoved = found.error();
  } else if (!found->is_null() && !is_own(*found)) {
    unremoved = foreign();
  } else if (!found->is_null()) {
    ProcessOptions call =
        engine_call(options.engine, words_of({"rm", "-f", (*found)["Id"sv].as_string()}),
                    options.engine.call_timeout);
    // The thread of callbacks, which drops an executor with its last command, waits for no handle.
    if (in_event_thread()) {
      unremoved = removed(run_process(call));
    } else if (auto started = Process::start(std::move(call))) {
      removal = std::move(*started);
    } else {
      unremoved = started.error();
    }
  }
  return unremoved.has_value();
}

// A container that is gone, or is being removed, is as good as removed.
Expected<void> Container::removed(const ProcessResult& result) const {
  if (result.succeeded() || says(result, "such container"sv) ||
      says(result, "already in progress"sv))
    return {};
  return engine_error(options.engine, result, concat("remove the container %", {name}));
}

// Ends the holder after the engine has removed the container: then its program ends by itself.
// The wait is bounded, as an engine that hangs must not hold up the end of this program.
Expected<void> Container::finish_removal() {
  Expected<void> done;
  if (removal) {
    done = removed(removal->wait());
    removal.reset();
  }
  std::optional<Process> held;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    std::swap(held, holder);
    made = !done;
  }
  if (held) {
    held->close_input();
    (void)held->wait_for(std::chrono::seconds(2));
    held.reset();
  }
  log(done ? concat("the container % was removed", {name}) : done.error().message);
  const Expected<void> result = unremoved ? done : unremoved;
  end_turn(false);
  return result;
}

// The log says how it went, also when the engine did not do it.
// One that cannot be removed stays known, and may be tried again.
Expected<void> Container::remove() {
  (void)begin_removal();
  return finish_removal();
}

Expected<void> Container::remove_all(std::vector<Container*> containers) {
  // In one order for all callers, because each holds the turns of all.
  for (auto next = containers.begin(); next != containers.end(); ++next)
    std::swap(*next, *std::min_element(next, containers.end(), std::less<Container*>()));
  for (Container* const container : containers) (void)container->begin_removal();
  Expected<void> result;
  for (Container* const container : containers) {
    auto removed = container->finish_removal();
    if (result) result = removed;
  }
  return result;
}

// The head has the state of the container, as its engine has it now; below it are the events.
// Follows no link, and does not wait for the reader of a fifo. Folders of the path are made. An
// engine that does not answer is written into the log, and is no reason not to save it.
Expected<void> Container::save_log(const std::string& path) {
  auto found = look();
  ContainerInfo health;
  if (found) health = info_of(*found);
  if (!health.exists) health.status = "none";
  if (!found) health.error = found.error().message;
  const auto truth = [](bool value) { return value ? "True" : "False"; };
  std::string text = concat(
      "# Docker Container Logs for agent: %\n# Container Status: %\n# Running: %\n# Exit Code: "
      "%\n# OOM Killed: %\n# Error: %\n# Started At: %\n# Finished At: "
      "%\n#===============================================================================\n",
      {printable(options.agent_id), health.status, truth(health.running), health.exit_code,
       truth(health.oom_killed), events->redactor.redact(health.error), health.started_at,
       health.finished_at});
  {
    const std::lock_guard<std::mutex> lock(events->mutex);
    text += events->lines.text();
  }
  const std::string subject = concat("log of a container %", {in_quotes(path)});
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (::mkdir(path.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST)
      return system_error(errno, "%", {subject});
  const UniqueFd file(above_standard_streams(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)));
  if (!file || ::fchmod(file.get(), 0600) != 0) return system_error(errno, "%", {subject});
  if (const int error = write_all(file.get(), text); error != 0)
    return system_error(error, "%", {subject});
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
