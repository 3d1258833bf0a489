// Places that an engine of a cluster makes.
#pragma once

#include "base/base.hpp"
#include "place/place.hpp"

namespace codeexec {
inline namespace v0_1 {

struct SlurmOptions {
  // More of salloc's, without `--` and with the value in the same word: "partition=debug",
  // "mem=4G", "time=60". They say what a job may have; Slurm judges them.
  std::vector<std::string> options = {};
  std::string agent_id = {};  // part of the job's name, codeexec-AGENT
  // The agent's program on the nodes. Empty: the transport leads to a shell, for
  // PlaceOptions::agent.
  std::string agent = "codeexec-mcp";
  // How long a command waits for a job to begin. After that the job stays in the queue, and the
  // next command waits for it again.
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);
  // Gets what happens meanwhile, a line each, in any thread.
  Function<void(std::string_view)> on_progress = {};
};

// One job of Slurm, which the first command asks for and all commands of an executor run in, by the
// programs salloc, srun, squeue and scancel and with the variables of this process. The job gets
// PATH, HOME, USER, LOGNAME, SHELL and LANG of them. A job that has ended is replaced when the next
// command comes; no command is run twice.
//
// The job ends with the engine, and with this process, also when that is killed: salloc, which
// holds it, reads its input until then. Where salloc was killed, too, the job is cancelled when
// another is asked for on this machine.
//   Errors: invalid_argument for an option that is none.
Expected<std::shared_ptr<PlaceEngine>> slurm_jobs(const SlurmOptions& options);

}  // namespace v0_1
}  // namespace codeexec
