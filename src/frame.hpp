// codeexec.hpp - run commands for an AI agent, from one C++17 header.         v0.1.0   MIT licence
// Made from the parts in src/ by `python3 src/join.py`: change those, not this file.
//
// DO THIS
//   in exactly one .cpp file                    in every other file
//     #define CODEEXEC_IMPLEMENTATION             #include "codeexec.hpp"
//     #include "codeexec.hpp"
//   (That compiles all of it. WINGS, below: how a program compiles only what it uses.)
//   Build with any C++17 compiler on Linux (macOS and BSD: the portable parts), and -pthread;
//   on 32-bit Linux with -D_FILE_OFFSET_BITS=64, too. Nothing else is needed. CMake users link
//   codeexec::impl and never write the macro.
//
// A WHOLE PROGRAM                                                            (examples/hello.cpp)
//
//   #define CODEEXEC_IMPLEMENTATION
//   #include "codeexec.hpp"
//
//   #include <cstdio>
//
//   int main() {
//     codeexec::Result r = codeexec::run("echo hello; echo oops >&2; exit 3");
//     std::printf("%s\n%s%s", r.summary().c_str(), r.out.c_str(), r.err.c_str());
//   }
//
//   examples/in_process.cpp   embedding: run, stream, cancel, inspect
//   examples/core_only.cpp    the core alone; examples/tiny_server.cpp: the smallest MCP server
//   examples/mcp_server.cpp   the whole server; examples/custom_tool.cpp: one with your own tool
//   README.md                 what it is; docs/README.md has the pages, by task
//
// WHAT YOU CAN RELY ON
//   A run returns: at the latest its timeout plus kill_grace plus 3 seconds after its start, even
//   if the command ignores SIGTERM, stops itself, daemonises, leaves a process that holds its pipe
//   open, or writes for ever.
//   Its processes end with it. On Linux each command of an executor has a supervisor, in a sandbox
//   or not: no process of a command outlives the command, its timeout or a SIGKILL of your program.
//   A plain run_process() has one when ProcessOptions::supervised or a sandbox asks for it.
//   Without a supervisor, a timeout or cancel kills the process group and, on Linux, every process
//   found by descent, by its session, by the run's mark in its environment or by the pipes it
//   holds. After a run that ended by itself, its group and the holders of its pipes are killed. (A
//   process that left all of these on purpose is not found, and a SIGKILL of your program does not
//   end the command.)
//   In a container both hold for the processes there. If the engine stops answering, a run returns
//   up to 20 seconds later and says what may be left.
//   Memory is bounded. Of each stream max_output bytes are kept, its head and its tail, cut between
//   characters, with exact counts; on request the whole stream goes to a file.
//   Results are complete and true. A Result reports how the run ended, what was cut, and which rule
//   refused what. Partial output is kept. A run that was not seen to succeed is no success.
//   One gate. run(), start() and every tool pass the same policy, path check, limits and audit.
//   It fails closed. A bad pattern, unknown key or missing path is an error when you create the
//   executor, never a rule that silently does not apply.
//   Without memory a command does not start, or its message says what is missing; nothing is left.
//   Linear time in the input's size: patterns, JSON, buffers. Names of a large object are sorted.
//
// WHAT IT IS NOT
//   Not sandboxed unless you ask: LocalOptions::sandbox is off, and a command that is allowed runs
//   with the rights of your process. (The server turns it on when it is given allowed paths.) The
//   stronger boundary is a container: ContainerExecutor, which uses an installed docker, podman or
//   nerdctl. The policy is a guard rail against mistakes and cheap attacks: it reads a command as a
//   shell does. It does not see what the started programs do, nor read scripts in files.
//   Windows is not supported.
//
// ERRORS
//   What a command does wrong is data in its Result. If the caller, the operator or the system is
//   at fault, the function returns an Expected<T> that holds an Error: a code, errno, and a message
//   that says what failed, where, and which option to change. A bug in the calling program aborts
//   with a message. The library throws only std::bad_alloc, which run() and start() of an executor
//   do not. It works the same with -fno-exceptions -fno-rtti; a lack of memory ends it then.
//
// THREADS AND YOUR PROCESS
//   Different objects may be used from different threads. Of one object, const members may be
//   called from any thread, other members from one thread at a time; comments name the exceptions.
//   The library installs no signal handler, leaves SIGCHLD, SIGPIPE and your signal masks as they
//   are, and never calls waitpid(-1), chdir, umask, setenv or setlocale. Every descriptor it opens
//   is close-on-exec and above 2. It prints nothing. It never copies your process by a fork.
//   It needs no SIGCHLD: a status is right even if you ignore that signal or reap all children of
//   the process (this needs Linux 6.15; before it, the outcome is then `unknown`, never a success).
//   run() uses the calling thread only. start() uses one thread for all commands, and when they are
//   needed one for callbacks, one that ends commands, one that starts what had to wait: until the
//   last handle goes. mcp::Server::serve() ends its threads, except for handlers that go on.
//   server_main() is the exception: it is a program's main() and owns its signals.
//
// UNITS
//   Time is std::chrono (but for Limits::cpu_time, in seconds); sizes are bytes; offsets count
//   bytes from 0. Text is UTF-8. Where a program prints other bytes, each invalid sequence becomes
//   U+FFFD and is counted.
//
// SECTIONS (search for "// name/" to find the parts of a section)
//   base         needs: -             errors, results, callbacks, descriptors, UTF-8
//   json         needs: base          value, strict parser, writer
//   regex        needs: base          patterns in linear time
//   shell        needs: base          a script becomes its simple commands; starts nothing
//   policy       needs: base regex shell    sanitizer rules, block and allow lists, verdicts
//   paths        needs: base          allowed roots, safe opening, which files may be deleted
//   files        needs: base regex paths    reading, editing, searching within the roots
//   environment  needs: base paths    variables, venv, prefix of a command; starts nothing
//   sandbox      needs: base paths    Landlock, seccomp, limits: one compiled policy
//   terminal     needs: base          the screen that a program's output draws; keys
//   process      needs: base sandbox terminal    spawn, capture, wait, kill the tree
//   executor     needs: base (policy) paths (files) environment sandbox terminal process  the gate
//   proxy        needs: base process executor   which names commands reach; lets them through
//   audit        needs: base json process sandbox executor    records of commands, the file of them
//   later        needs: base paths executor    what the user's tools run later, kept as it is
//   agent        needs: base json paths environment sandbox process executor  commands elsewhere
//   copy         needs: base json paths files process executor agent    a workspace kept alike
//   place        needs: base json paths files environment sandbox process executor agent copy
//                                     commands on another machine
//   cluster      needs: base json process executor agent place    jobs of Slurm, pods of Kubernetes
//   jobs         needs: base regex terminal process executor          background commands
//   code         needs: base shell paths files process executor       code by language
//   docker       needs: base json (policy) paths files environment process executor agent
//                                     containers
//   mcp          needs: base json     a Model Context Protocol server for any tools
//   report       needs: base json executor audit    audit logs as a page, as Markdown
//   tools        needs: base json regex shell policy paths files environment sandbox terminal
//                       process executor audit jobs code mcp    tools of MCP; the server
//   containers   needs: base json policy paths files sandbox executor agent docker mcp tools
//                                     feature of the server: commands in containers
//   places       needs: base shell executor place cluster tools
//                                     feature of the server: commands on other machines
//   network      needs: base sandbox executor proxy tools    feature of the server: hosts by names
//   program      needs: base json paths files sandbox process executor audit agent place cluster
//                       code docker report tools containers places
//                                     feature of the server: doctor, files of clients, MassGen
//   Each line of code stands in the section whose job it is, and a section uses only the sections
//   that it needs; of one in parentheses, its declarations alone. Both halves of this header list
//   the sections in this order.
//
// WINGS
//   Instead of CODEEXEC_IMPLEMENTATION a program may define, before its include, the macros of the
//   wings that it uses: in one file, or in several that then compile in parallel. No option is
//   ignored because its wing is missing: it is an error of create(), or of the linker, which names
//   the function. CMake has a library for each, such as codeexec::core.
//   CODEEXEC_IMPLEMENT_CORE base paths environment sandbox terminal process executor
//   CODEEXEC_IMPLEMENT_POLICY regex shell policy
//   CODEEXEC_IMPLEMENT_MCP json mcp
//   CODEEXEC_IMPLEMENT_AGENT agent
//   CODEEXEC_IMPLEMENT_TOOLS audit later files jobs code tools
//   CODEEXEC_IMPLEMENT_CONTAINERS docker containers
//   CODEEXEC_IMPLEMENT_PLACES copy place cluster places
//   CODEEXEC_IMPLEMENT_NETWORK proxy network
//   CODEEXEC_IMPLEMENT_PROGRAM report program
//
// WHEN IT DOES NOT LINK
//   undefined reference to `codeexec::v0_1::...'    no file implements it: see DO THIS and WINGS.
//                                                   "// name/" above the definition is its section.
//   multiple definition of `codeexec::v0_1::...'    two files implement it: only one may.
//   undefined reference to `codeexec::v0_2::...'    your files include different versions.
//
// VENDORING TWICE
//   A library that carries its own copy renames it, in all of its files:
//     #define codeexec acme_codeexec
//     #include "codeexec.hpp"
//
// WHAT STAYS THE SAME
//   The names and fields in the declarations, the option names and the JSON keys. While the version
//   begins with 0, a new minor version may change them. The inline namespace then changes too, so
//   that mixed versions do not link. No macro changes a declaration, a type or a default.
//
// CHANGING IT  src/README.md is the plan of the house; `sh tests/run.sh` runs the tests.
// The licence is at the end.
#ifndef CODEEXEC_HPP
#define CODEEXEC_HPP

// Names that Qt's headers and AssertMacros.h define as macros, which are put away while this header
// is read. A program that has one calls, for example, (executor.check)(command).
// MACROS: check signals slots
// each macro: #pragma push_macro("MACRO")
// each macro: #undef MACRO

#include "base/version.hpp"

#include "agent/agent.hpp"
#include "audit/audit.hpp"
#include "base/base.hpp"
#include "cluster/cluster.hpp"
#include "code/code.hpp"
#include "containers/containers.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "files/files.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "later/later.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "proxy/proxy.hpp"
#include "regex/regex.hpp"
#include "sandbox/sandbox.hpp"
#include "shell/shell.hpp"
#include "terminal/terminal.hpp"
#include "tools/tools.hpp"

// each macro: #pragma pop_macro("MACRO")

#endif  // CODEEXEC_HPP

// Editors that cannot know about the macro should still colour the code below.
#if defined(__INTELLISENSE__) || defined(__JETBRAINS_IDE__) || defined(Q_CREATOR_RUN) || \
    defined(__CDT_PARSER__)
#define CODEEXEC_IMPLEMENTATION
#endif

#if defined(CODEEXEC_IMPLEMENTATION)
// each wing: #undef CODEEXEC_IMPLEMENT_WING
// each wing: #define CODEEXEC_IMPLEMENT_WING
#endif

// any wing

// each macro: #pragma push_macro("MACRO")
// each macro: #undef MACRO

// What the parts share. Wings in files of their own find each other's by its name.
#if !defined(CODEEXEC_INNER)
#if defined(CODEEXEC_IMPLEMENTATION)
#define CODEEXEC_INNER namespace
#else
#define CODEEXEC_INNER inline namespace inner
#endif
#endif

// with --only: // Some functions are called by the sections that this header lacks.
// with --only: #pragma GCC diagnostic push
// with --only: #pragma GCC diagnostic ignored "-Wunused-function"

#include "base/errors.cpp"
#include "base/glob.cpp"
#include "base/handles.cpp"
#include "base/io.cpp"
#include "base/memory.cpp"
#include "base/names.cpp"
#include "base/printed_words.cpp"
#include "base/sha256.cpp"
#include "base/sha256_blocks.cpp"
#include "base/text.cpp"
#include "base/utf8.cpp"

#include "json/mistakes.cpp"
#include "json/numbers.cpp"
#include "json/parse.cpp"
#include "json/strings.cpp"
#include "json/value.cpp"
#include "json/write.cpp"

#include "regex/characters.cpp"
#include "regex/items.cpp"
#include "regex/lines.cpp"
#include "regex/matcher.cpp"
#include "regex/parser.cpp"

#include "shell/bodies.cpp"
#include "shell/braces.cpp"
#include "shell/budget.cpp"
#include "shell/builtins.cpp"
#include "shell/commands.cpp"
#include "shell/control.cpp"
#include "shell/dollar.cpp"
#include "shell/editing.cpp"
#include "shell/evaluation.cpp"
#include "shell/expansion.cpp"
#include "shell/files.cpp"
#include "shell/functions.cpp"
#include "shell/grammar.cpp"
#include "shell/held.cpp"
#include "shell/lexer.cpp"
#include "shell/operations.cpp"
#include "shell/parameters.cpp"
#include "shell/printing.cpp"
#include "shell/read.cpp"
#include "shell/scanner.cpp"
#include "shell/scopes.cpp"
#include "shell/simple.cpp"
#include "shell/steering.cpp"
#include "shell/strings.cpp"
#include "shell/walker.cpp"
#include "shell/words.cpp"

#include "policy/allowance.cpp"
#include "policy/case.cpp"
#include "policy/code.cpp"
#include "policy/code_input.cpp"
#include "policy/code_lexer.cpp"
#include "policy/code_reader.cpp"
#include "policy/code_strings.cpp"
#include "policy/file_table.cpp"
#include "policy/file_uses.cpp"
#include "policy/find.cpp"
#include "policy/git.cpp"
#include "policy/host_access.cpp"
#include "policy/interpreters.cpp"
#include "policy/judge.cpp"
#include "policy/known_output.cpp"
#include "policy/links.cpp"
#include "policy/lists.cpp"
#include "policy/modes.cpp"
#include "policy/nested_shells.cpp"
#include "policy/operands.cpp"
#include "policy/policy.cpp"
#include "policy/programs.cpp"
#include "policy/protected_paths.cpp"
#include "policy/refused_table.cpp"
#include "policy/rules.cpp"
#include "policy/subject.cpp"
#include "policy/typed.cpp"
#include "policy/usual.cpp"
#include "policy/usual_table.cpp"
#include "policy/words.cpp"
#include "policy/wrapped_languages.cpp"
#include "policy/wrapper_table.cpp"
#include "policy/wrappers.cpp"
#include "policy/written_files.cpp"
#include "policy/xargs.cpp"

#include "paths/delete_guard.cpp"
#include "paths/moved.cpp"
#include "paths/rules.cpp"

#include "files/diff.cpp"
#include "files/docstring.cpp"
#include "files/edit.cpp"
#include "files/elsewhere.cpp"
#include "files/files.cpp"
#include "files/ignore.cpp"
#include "files/list.cpp"
#include "files/python_lexer.cpp"
#include "files/read.cpp"
#include "files/search.cpp"
#include "files/write.cpp"

#include "environment/environment.cpp"

#include "sandbox/broker.cpp"
#include "sandbox/builder.cpp"
#include "sandbox/cgroup.cpp"
#include "sandbox/child.cpp"
#include "sandbox/devices.cpp"
#include "sandbox/explain.cpp"
#include "sandbox/filter.cpp"
#include "sandbox/fitting.cpp"
#include "sandbox/limits.cpp"
#include "sandbox/listener.cpp"
#include "sandbox/namespaces.cpp"
#include "sandbox/places.cpp"
#include "sandbox/plan.cpp"
#include "sandbox/ruleset.cpp"
#include "sandbox/sandbox.cpp"
#include "sandbox/system_calls.cpp"
#include "sandbox/tool_grants.cpp"
#include "sandbox/tree_grants.cpp"
#include "sandbox/trial.cpp"

#include "terminal/keys.cpp"
#include "terminal/screen.cpp"
#include "terminal/sequences.cpp"
#include "terminal/widths.cpp"

#include "process/capture.cpp"
#include "process/child.cpp"
#include "process/child_output.cpp"
#include "process/clone.cpp"
#include "process/delivery.cpp"
#include "process/kill.cpp"
#include "process/local_run.cpp"
#include "process/posix.cpp"
#include "process/process.cpp"
#include "process/reactor.cpp"
#include "process/reap.cpp"
#include "process/redactor.cpp"
#include "process/remote.cpp"
#include "process/start.cpp"
#include "process/supervised_start.cpp"
#include "process/supervisor.cpp"
#include "process/terminal.cpp"

#include "executor/advice.cpp"
#include "executor/approval.cpp"
#include "executor/command.cpp"
#include "executor/confinement.cpp"
#include "executor/ending.cpp"
#include "executor/execution.cpp"
#include "executor/gate.cpp"
#include "executor/git_folders.cpp"
#include "executor/git_identity.cpp"
#include "executor/guard.cpp"
#include "executor/local.cpp"
#include "executor/network.cpp"
#include "executor/private_home.cpp"
#include "executor/session.cpp"
#include "executor/shared.cpp"
#include "executor/slots.cpp"
#include "executor/spill.cpp"
#include "executor/words.cpp"

#include "proxy/addresses.cpp"
#include "proxy/connection.cpp"
#include "proxy/parent.cpp"
#include "proxy/proxy.cpp"
#include "proxy/requests.cpp"
#include "proxy/resolver.cpp"
#include "proxy/rules.cpp"

#include "audit/file.cpp"
#include "audit/lines.cpp"
#include "audit/log.cpp"
#include "audit/record.cpp"
#include "audit/syslog.cpp"

#include "later/addresses.cpp"
#include "later/events.cpp"
#include "later/git_settings.cpp"
#include "later/keep.cpp"
#include "later/look.cpp"
#include "later/names.cpp"
#include "later/put_back.cpp"

#include "agent/agent.cpp"
#include "agent/command.cpp"
#include "agent/connections.cpp"
#include "agent/contained.cpp"
#include "agent/flow.cpp"
#include "agent/frames.cpp"
#include "agent/hello.cpp"
#include "agent/identity.cpp"
#include "agent/link.cpp"
#include "agent/link_connections.cpp"
#include "agent/link_thread.cpp"
#include "agent/messages.cpp"
#include "agent/nonce.cpp"
#include "agent/piped_program.cpp"
#include "agent/start.cpp"

#include "copy/copy.cpp"
#include "copy/folder.cpp"
#include "copy/report.cpp"
#include "copy/send.cpp"
#include "copy/take.cpp"
#include "copy/tree.cpp"
#include "copy/wire.cpp"

#include "place/bring.cpp"
#include "place/place_executor.cpp"
#include "place/pool.cpp"
#include "place/workspace.cpp"

#include "cluster/calls.cpp"
#include "cluster/kubernetes.cpp"
#include "cluster/kubernetes_rights.cpp"
#include "cluster/pod_object.cpp"
#include "cluster/pod_watch.cpp"
#include "cluster/slurm.cpp"

#include "jobs/held.cpp"
#include "jobs/job.cpp"
#include "jobs/jobs.cpp"

#include "code/language.cpp"
#include "code/markdown.cpp"
#include "code/run.cpp"

#include "docker/container.cpp"
#include "docker/container_executor.cpp"
#include "docker/create.cpp"
#include "docker/credentials.cpp"
#include "docker/engine.cpp"
#include "docker/env_file.cpp"
#include "docker/exec.cpp"
#include "docker/manager.cpp"
#include "docker/options.cpp"
#include "docker/plan.cpp"
#include "docker/remove.cpp"
#include "docker/users.cpp"

#include "mcp/content.cpp"
#include "mcp/ids.cpp"
#include "mcp/input.cpp"
#include "mcp/listeners.cpp"
#include "mcp/listing.cpp"
#include "mcp/messages.cpp"
#include "mcp/output.cpp"
#include "mcp/parameters.cpp"
#include "mcp/protocol.cpp"
#include "mcp/questions.cpp"
#include "mcp/replies.cpp"
#include "mcp/requests.cpp"
#include "mcp/roots.cpp"
#include "mcp/schema.cpp"
#include "mcp/server.cpp"
#include "mcp/serving.cpp"
#include "mcp/session.cpp"
#include "mcp/tasks.cpp"
#include "mcp/threads.cpp"

#include "report/records.cpp"
#include "report/transcript.cpp"
#include "report/write.cpp"

#include "tools/arguments.cpp"
#include "tools/ask.cpp"
#include "tools/background.cpp"
#include "tools/binary.cpp"
#include "tools/catalogue.cpp"
#include "tools/check.cpp"
#include "tools/config_file.cpp"
#include "tools/describe.cpp"
#include "tools/execute_code.cpp"
#include "tools/execute_command.cpp"
#include "tools/executors.cpp"
#include "tools/features.cpp"
#include "tools/file_tools.cpp"
#include "tools/hands.cpp"
#include "tools/help.cpp"
#include "tools/idioms.cpp"
#include "tools/live.cpp"
#include "tools/nearest.cpp"
#include "tools/option_setter.cpp"
#include "tools/option_table.cpp"
#include "tools/output.cpp"
#include "tools/project.cpp"
#include "tools/readable.cpp"
#include "tools/results.cpp"
#include "tools/roots.cpp"
#include "tools/server.cpp"
#include "tools/steps.cpp"
#include "tools/terminal.cpp"
#include "tools/use.cpp"

#include "containers/feature.cpp"
#include "containers/option_table.cpp"
#include "containers/user_tools.cpp"

#include "places/feature.cpp"
#include "places/option_table.cpp"

#include "network/feature.cpp"

#include "program/client_config.cpp"
#include "program/client_entry.cpp"
#include "program/client_examine.cpp"
#include "program/client_protection.cpp"
#include "program/client_table.cpp"
#include "program/client_write.cpp"
#include "program/doctor.cpp"
#include "program/feature.cpp"
#include "program/help_json.cpp"
#include "program/json_edit.cpp"
#include "program/list_places.cpp"
#include "program/massgen.cpp"
#include "program/option_table.cpp"
#include "program/own_program.cpp"
#include "program/protection.cpp"
#include "program/replay.cpp"
#include "program/sandbox_report.cpp"
#include "program/srt_settings.cpp"
#include "program/toml_edit.cpp"

// with --only: #pragma GCC diagnostic pop
// each macro: #pragma pop_macro("MACRO")

#endif  // the wings

// MIT License
//
// Copyright (c) 2026 codeexec.hpp contributors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.
