// The program here that leads to a place.

#include "agent/link_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

Expected<void> PipedProgram::start(const ProcessOptions& options) {
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
  Spawned spawned = spawn(launch.plan, none);
  if (spawned.error != 0)
    return with_message(system_error(spawned.error, ""),
                        describe_failure(options, launch, spawned.step, spawned.error, {}));
  child = std::move(spawned);
  for (const UniqueFd* end : {&input, &out, &err}) set_nonblocking(*end);
  return {};
}

void PipedProgram::end() {
  for (UniqueFd* end : {&input, &out, &err}) end->reset();
  if (child.pid < 0 || owner != ::getpid()) return;
  ::kill(child.pid, SIGKILL);
  // It needs milliseconds to die. A later start reaps it.
  abandon_child(child.pid);
  if (!child.is_pidfd) ::pthread_detach(child.waiter);
  child = ChildHandle();
}

}  // namespace v0_1
}  // namespace codeexec
