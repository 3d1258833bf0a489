// What stands in the frames: wishes, answers, commands and their ends.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The first frame of every client, to which a client adds its wishes:
//
//   sandbox      what commands are held to; without it, they are in a strict one
//   ground       the workspace and the roots, see root_list_of(); empty: any
//   remote       the workspace is only there, and the roots are looked up, unless `found`
//   copy         the workspace is copied there, see copy_options(). `marked`: see CopyMark
//   venv         a virtual environment, and `auto_venv`: those of workspaces count
//   lines        the way to the client holds back what ends in no newline
//   connections  commands reach the client's proxy, and nothing else
//   nonces       files, whose contents are the answer
//   container    the agent is in one: it gives up its capabilities, unless it `keeps` them, sees to
//                HOME and USER, and reports when memory has run out. `home`, `gitconfig`: the text
//                of a .gitconfig for a home that has none, `user`: UID:GID, or its name there, that
//                commands become
//   prepare      see prepare_container(), if the agent is not in the namespace `mounts`
Json new_hello(std::chrono::milliseconds keep_alive);
// The answer in all that an agent has printed; empty: it has not answered yet.
std::optional<Json> answer_in(std::string_view printed);

// The payload of an `end`. read_end() is false for a text that no agent writes.
std::string end_text(const ProcessResult& result);
bool read_end(std::string_view text, ProcessResult& result);
// A text of an agent, of at most 4 KiB.
std::string bounded(const Json& value);

Json to_json(const SandboxOptions& options);
SandboxOptions sandbox_options_from(const Json& object);
Json to_json(const SandboxReport& report);
SandboxReport sandbox_report_from(const Json& object);
std::vector<std::string> texts_in(const Json& list);

// A workspace, and each root after a NUL and its Permission as a digit.
std::string root_list_of(std::string_view workspace, const std::vector<Root>& roots);
std::vector<Root> roots_in(std::string_view list, std::string& workspace);

}  // namespace inner

// A command, as the payload of `start` has it: an object of JSON, then these texts, each with a NUL
// after it, then the script.
struct StartRequest {
  std::string work_dir = {};
  std::string venv = {};  // its `bin` goes before the PATH there; empty: none
  std::vector<std::string> argv = {};
  std::vector<std::string> set = {};    // NAME=value
  std::vector<std::string> unset = {};  // names
  bool has_script = false;              // becomes descriptor 3
  std::string script = {};
  bool follows_session = false;  // descriptor 3 is a pipe to the session
  bool merge_streams = false;
  std::optional<TerminalSize> terminal = {};
  bool has_input = false;
  bool waited_for = false;  // `started` is wanted
  std::chrono::milliseconds timeout = no_limit;
  std::chrono::milliseconds kill_grace = std::chrono::milliseconds(0);

  // A program of the agent's own, which answers questions until its input ends.
  static StartRequest question();
  std::string text() const;
  // False: it is not as text() makes it.
  bool read(std::string_view text);
};

}  // namespace v0_1
}  // namespace codeexec
