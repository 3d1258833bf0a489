// Programs that run elsewhere and are carried by one that runs here.

#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
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

}  // namespace inner

Expected<void> Carrier::Line::start(const ProcessOptions& options) {
  const CancellationPause pause;
  reap_abandoned();
  const std::string run_variable = next_run_variable(0);
  Launch launch(options, run_variable);
  UniqueFd child_in;
  UniqueFd child_out;
  UniqueFd child_err;
  if (!make_pipe(child_in, input) || !make_pipe(out, child_out) || !make_pipe(err, child_err))
    return system_error(errno, "cannot make the pipes of %", {in_quotes(options.argv[0])});
  launch.plan.input = child_in.get();
  launch.plan.output = child_out.get();
  launch.plan.error_output = child_err.get();
  Supervisor none;
  Spawned child = spawn(launch.plan, none);
  if (child.error != 0)
    return with_message(system_error(child.error, ""),
                        describe_failure(options, launch, child.step, child.error, {}));
  pid = child.pid;
  exit_event = std::move(child.exit_event);
  is_pidfd = child.is_pidfd;
  waiter = child.waiter;
  for (const UniqueFd* end : {&input, &out, &err}) set_nonblocking(*end);
  return {};
}

void Carrier::Line::end() {
  for (UniqueFd* end : {&input, &out, &err}) end->reset();
  if (pid < 0 || owner != ::getpid()) return;
  ::kill(pid, SIGKILL);
  // The engines' programs need milliseconds to die.
  abandon_child(pid);
  if (!is_pidfd) ::pthread_detach(waiter);
  exit_event.reset();
  pid = -1;
}

}  // namespace v0_1
}  // namespace codeexec
