// Commands that run in a place or a container.
#pragma once

#include "process/process.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A command in a place. Executors of places implement it, and RemoteRun drives it: launch() is
// called once and first, finish() once and last. Only signal() may be called by several threads.
class RemoteCommand {
 public:
  virtual ~RemoteCommand() = default;

  // Starts it. Without `wait` a failed start is only known at the end. False: it has not started,
  // and `failure` says why.
  virtual bool launch(bool wait, const std::optional<CancelToken>& cancel,
                      ProcessResult& failure) = 0;

  // From here on: valid after launch().
  virtual UniqueFd take_out() = 0;
  virtual UniqueFd take_err() = 0;
  // The pipe for standard input, or none. Bytes that it takes off `given` are sent before those of
  // the pipe, and are read from where they lie until finish().
  virtual UniqueFd take_input(std::string_view& given) = 0;
  virtual int pid() const = 0;  // as its place sees it

  // Accepts bytes that came through a stream, and calls `use` with the command's own ones.
  virtual void take(Stream stream, std::string_view bytes,
                    FunctionRef<void(std::string_view)> use) = 0;
  virtual bool ended() const = 0;                    // its end is known, and all output has come
  virtual bool is_lost() const { return false; }     // its end will not come: recover() now
  virtual bool signal(int number) = 0;               // to all of its processes
  virtual bool can_resize() const { return false; }  // its terminal
  virtual void resize(TerminalSize) {}
  // How long after SIGKILL its end may take. After that, recover() is called.
  virtual std::chrono::milliseconds kill_time() const { return std::chrono::seconds(1); }
  // The next program that kills the command or finds out how it ended; `last` is the result of the
  // one before. Null, when there is no other: the run ends.
  virtual std::shared_ptr<Process::State> recover(const ProcessResult* last);
  // Sets outcome, exit_code, signal, limits_reached and message, and frees what the run needed.
  virtual void finish(ProcessResult& result) = 0;
};

}  // namespace v0_1
}  // namespace codeexec
