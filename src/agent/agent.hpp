// What runs commands elsewhere for this program: in a container, on another machine.
#pragma once

#include "base/base.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// The description that an agent gave of its place when it was reached.
struct PlaceFacts {
  std::string version = {};  // of the agent
  std::string machine = {};  // its processor, as `uname -m` says it
  std::string host = {};     // its name
  std::uint64_t uid = 0;     // of the agent, and of its commands
  std::string home = {};     // the meaning of `~`; empty: not known
  // The canonical path there of a workspace that is only there, or copied to another path. Empty:
  // the path is the same as here.
  std::string workspace = {};
  SandboxReport sandbox = SandboxReport();
};

// A place that this library has made, as it was found in an engine.
struct FoundPlace {
  std::string name = {};          // in the engine
  std::string agent = {};         // the agent_id of its executor; empty: none
  std::chrono::seconds age = {};  // less than 0: not known
  std::string host = {};          // of the program that has made it
  std::string pid = {};           // of that program
  // Whether that program still runs. Empty: it is of another machine or user.
  std::optional<bool> maker_runs = {};
  std::string state = {};    // in the engine's words
  bool was_removed = false;  // by the call that found it
};

// The agent of containers: takes orders on descriptor `in` and answers on `out` until the input
// ends; then all that it has started is killed, and it returns. It starts programs with the
// variables and the rights of this process. One thread at a time: the calling one, and no other.
// Both descriptors are borrowed; `out` does not block while it runs. On Linux, other processes of
// the user are kept from looking into this one (PR_SET_DUMPABLE). Errors are written to standard
// error.
// Returns the exit status of a program that does nothing else: 0 when the input ended, 1 otherwise.
// place_main() is the agent of other machines, too. This one refuses a workspace that is only there
// or copied, and questions about its files.
int agent_main(int in, int out);

}  // namespace v0_1
}  // namespace codeexec
