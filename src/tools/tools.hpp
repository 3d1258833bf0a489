// Binds an executor to MCP tools; the server program's whole main().
#pragma once

#include "base/base.hpp"
#include "code/code.hpp"
#include "executor/executor.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

// The answer of the tool `execute_command` as an object: success, exit_code, stdout, stderr,
// execution_time (seconds), command and work_dir, in this order, then
//   outcome (name of an Outcome), timed_out, stdout_bytes, stderr_bytes, stdout_truncated,
//   stderr_truncated, and where they apply: signal, rule, stdout_invalid_bytes,
//   stderr_invalid_bytes, stdout_file, stderr_file, output_held_open, notes, sandbox (when its mode
//   is not off: {"mode","network","missing"?}), container, limits_reached, changed_files,
//   put_back, redactions.
// exit_code is the status of a program that left by itself, minus the signal of one that was
// killed, and -1 otherwise; success is true for exactly the exit code 0 of a program that left by
// itself and in time. stderr ends with the message of a timeout, refusal or failed start.
Json to_json(const Result& result);

// A judgement as --check prints it, an object: allowed; must_ask, when that is true; rule, message,
// begin and end of the refusal, which are null when it is allowed; then commands, the simple
// commands in the order of the script, each with its words, assignments (["NAME=value"]; left out
// when there are none), begin and end. A word or assignment known only at run time is null.
// Offsets count bytes.
Json to_json(const Judgement& judgement);

struct ToolOptions {
  // Bytes that the result of a command takes as JSON: of long streams it has the head and the tail.
  // A call may ask for less of both streams. With ExecutorOptions::spill_dir or private_spill_dir a
  // note names a file that has the whole.
  std::size_t max_output = 24000;
  JobOptions jobs = JobOptions();
  // Of an execute_command that does not say it: after so long a command that is still running goes
  // on in the background. no_limit: it stays in the foreground.
  std::chrono::milliseconds run_in_background_after = no_limit;
  // For clients that give up by a clock of their own: a command that still runs after so long goes
  // on in the background, with the timeout that it has, and the call is answered; so is a call that
  // waits for a job. Not for a client that wants progress, nor for tasks; not for executors with
  // max_concurrent. 0: never.
  std::chrono::milliseconds answer_within = std::chrono::seconds(50);
  // For the answer when a person is asked through the client, see PolicyOptions::ask_commands. As
  // many calls as max_waiters says wait for answers at a time; more are refused.
  std::chrono::milliseconds ask_timeout = std::chrono::minutes(5);
  std::vector<CodeLanguage> languages = default_languages();
  // Calls that wait for jobs at a time. More are errors: each holds a thread of the server, and
  // one must be left for those that end a job.
  std::size_t max_waiters = mcp::ServerOptions().max_concurrent / 2;
  // Bounds on what one client may have done. What exceeds one is refused with its name.
  std::uint64_t calls_per_minute = 0;  // of each tool, in any 60 seconds; 0: any number
  // Of all commands of the server together, those in the background included. What is left of it
  // when a command starts is the longest that it may take.
  std::chrono::milliseconds running_time = no_limit;
  std::vector<std::string> disabled_tools = {};  // names
  // Results for programs: with all members of to_json(Result), and output with every character that
  // was printed. Otherwise output is as a terminal shows it, and what a model learns nothing from
  // is left out: outcome "exited", a key that is false, stdout_bytes and stderr_bytes when the
  // stream is there as it was, sandbox, blocks 1, no code_file, no files; and of a command or a
  // work_dir that is longer than 200 bytes stands the beginning. The first seven keys always come,
  // but for the exit code of a command that still runs.
  bool full_results = false;
  // The text of a result is its object as JSON, as it is with full_results. Otherwise it is lines
  // for a model to read: how a command ended, notes, then its streams as they are.
  bool json_text = false;
};

// Adds the tools, by default all of these. The executor is borrowed: it must outlive serve(). What
// runs in the background belongs to the server and is killed when that is destroyed.
//
// A failure that no command has caused is an error result: {"success": false, "error": message}.
// Times are in seconds, sizes in bytes. A shell_id that is not known is such a failure.
//
//   execute_command(command, timeout?, work_dir?, session_id?, session_live?,
//   run_in_background_after?, encoding?, max_output?, stdin?, idle_timeout?)
//     A work_dir may be called cwd, here and below, and stdin input.
//     to_json(Result). With encoding "base64": stdout and stderr are base64 of their first bytes,
//     `encoding` says so, and the message that would end stderr is one of the notes. When the
//     command goes on in the background: what there is so far, outcome "running", success true,
//     exit_code null, and shell_id. A client that wants progress gets the seconds and the last line
//     of output: "12 s: Compiling foo.c". With a session_id (1 to 64 of A-Z a-z 0-9 . _ -) the
//     commands of one name share a Session, which the first makes; the answer ends with session_id
//     and session_work_dir, its folder now. A server has 100 of them; then the one goes that was
//     not used for the longest. With session_live the command of the session runs in a terminal, as
//     a background shell whose end the call waits for: both streams are `stdout`. After the timeout
//     ctrl-c is typed; after idle_timeout (30) of silence the outcome is "running", and an empty
//     command waits on.
//   start_background_shell(command, work_dir?, timeout?, terminal?, rows?, cols?, idle_timeout?)
//     {shell_id, status, command, pid, work_dir, notes?}; or {success, error, rule?} when it was
//     refused. Its standard input stays open.
//   get_background_shell_output(shell_id, since?, tail?, wait_for?, timeout?, max_output?)
//     {shell_id, stdout, stderr, status, exit_code, next, wait?, stdout_missed_bytes?,
//     stderr_missed_bytes?, notes?}. `next` as `since` gives what comes after. `tail`: the last
//     lines alone. wait_for is a pattern (see Regex) that a line after `since` must match, or
//     "exit"; `wait` then says how the waiting ended: matched, ended, timed_out (after `timeout`,
//     30 by default, and answer_within at most, with a note).
//   get_background_shell_status(shell_id)
//     {shell_id, status, exit_code, pid, command, cwd, start_time, duration_seconds, stdout_bytes,
//     stderr_bytes} and, when it has ended, what to_json(Result) adds. status is a JobState.
//   write_background_shell(shell_id, input?, keys?, close_input?, rows?, cols?)
//     {shell_id, status, written, signals?, input?: "closed", message?}. The input is that of
//     start_background_shell, or of an execute_command with run_in_background_after and without
//     stdin. Without a terminal the keys are ctrl-c, ctrl-\, ctrl-d and enter; with and without
//     one, names of signals (SIGTERM), which go to the process group. A call that does nothing gets
//     a message on what can be done.
//   kill_background_shell(shell_id)
//     {shell_id, status: "killed", signal: "SIGTERM"}; or {shell_id, status, signal: null, message}
//     when it had ended before.
//   list_background_shells()                                   {shells, count}
//   execute_code(code, language?, timeout?, work_dir?, max_output?, idle_timeout?)
//     to_json(Result) of all blocks together, then code_file, files and blocks (that ran; there may
//     be 100); as of execute_command when a block goes on in the background, which is the last to
//     run. Without a language it is inferred; what does not look like code is taken for Markdown,
//     as with the language "markdown", when it has fenced blocks.
//   read_file(file_path, offset?, count?, unit?, encoding?)
//     {file_path, content, encoding, size, offset, begin, lines, next, more, cut_line?}, of which
//     next and offset are in the unit, "lines" or "bytes", and begin is in bytes. Images come as
//     image content, other binary files as base64 when that is asked for.
//   write_file(file_path, content, encoding?)                  {success, file_path, bytes}
//   edit_file(file_path, edits: [{old_text, new_text, all?}])
//     {success, file_path, replaced, diff}: see Files::edit().
//   list_files(path?, depth?)
//     {path, entries: [{path, type, size, modified, closed?}], ignored?, more}
//   search_files(pattern, path?, glob?, context?, files_only?)
//     {path, matches, text, ignored?, binary?, unreadable?, more}: see Files::search(). At most 500
//     matches and 16 KiB of text; at most 100 lines of context.
//   read_docstring(file_path, function_name?)        {file_path, function_name, docstring}
//
//   Errors: invalid_argument when the server has a tool of such a name, or a disabled one does not
//   exist.
Expected<void> add_execution_tools(mcp::Server& server, const Executor& executor,
                                   const ToolOptions& options = {});

// Describes to a model the place where its commands run, for ServerOptions::instructions: only what
// is in force.
std::string describe(const Executor& executor, const ToolOptions& options = {});

// What a server can do beside running commands on this host. A feature brings its options, with
// their help, and the code for them: a program that does not name one is linked without that code.
struct ServerFeature;

namespace features {

// --execution-mode docker: commands in containers; --profile user-container.
extern const ServerFeature& containers;
// --execution-mode ssh, slurm, kubernetes and command: commands on other machines.
extern const ServerFeature& places;
// --network allow with --allow-domains: commands reach the hosts of these names alone.
extern const ServerFeature& network;
// What a person wants of the program: --help-all, --doctor, --sandbox-report, --client-config,
// --report, --replay, --transcript, --places and others; and to be MassGen's server.
extern const ServerFeature& program;

}  // namespace features

// The server program: reads the command line (`--help` lists all of it) and the configuration file,
// then serves MCP on descriptors 0 and 1 until the input ends or SIGTERM, SIGINT or SIGHUP comes.
// With --run it runs one command, prints its result as one line of JSON and returns; with --check
// it judges one, or each line of the input, and prints what to_json(Judgement) gives; with
// --sandbox-report it prints an object: mode, network, landlock_abi, enforced and missing; with
// --doctor lines on what commands are kept from and what they need where they run. Commands run on
// this host, in a sandbox, best_effort, unless an option says otherwise: in the allowed paths, else
// in the roots that the client names, else in the current directory, and in an empty folder when
// that is `/`, a home or a directory of the system; with --execution-mode docker in a container,
// and nowhere else, which is made for the first of them. It owns the process while it runs: it
// takes those three signals, ignores SIGPIPE and SIGXFSZ, overwrites the variables of its
// environment that neither commands see nor the program needs that speaks to a container engine,
// and, on Linux, keeps other processes of the user from looking into this one (PR_SET_DUMPABLE).
// Returns the exit status: 0; 2 when an option, key or value is wrong, after one line on stderr
// that says which; 1 for other failures; with --run 0 when the command succeeded, 1 when it ran and
// failed, 125 when it was refused or could not start; with --check 0 when it is allowed, 3 when a
// person must approve it, 1 when it is refused, 2 when a line of the input is not a command (of
// several lines: 2, then 1, then 3 is stronger); with --sandbox-report 0 when nothing is missing, 1
// when something is; with --doctor 1 when a line begins with FAIL, else 0. 2, too, when a strict
// sandbox cannot be had.
//
// Of what stands here a server has only what its features bring. An option of a feature that it
// lacks is an unknown option, on the command line and in the configuration file.
int server_main(int argc, char** argv, std::initializer_list<const ServerFeature*> features);

// With all features.
inline int server_main(int argc, char** argv) {
  return server_main(
      argc, argv,
      {&features::network, &features::program, &features::containers, &features::places});
}

}  // namespace v0_1
}  // namespace codeexec
