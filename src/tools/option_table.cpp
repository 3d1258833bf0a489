// The options about running commands on this host.
//
// The order is that of help. Every list that is shown to users is made from these rows and those of
// the features, so a fact about an option stands here and nowhere else.

#include "jobs/jobs.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"

#include "base/base.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Members of what ServerConfig has.
template <auto... members>
constexpr Option of_call(std::string_view name) {
  return Option::of<&ServerConfig::invocation, members...>(name);
}
template <auto... members>
constexpr Option of_tools(std::string_view name) {
  return Option::of<&ServerConfig::tools, members...>(name);
}
template <auto... members>
constexpr Option of_local(std::string_view name) {
  return Option::of<&ServerConfig::local, members...>(name);
}
template <auto... members>
constexpr Option of_policy(std::string_view name) {
  return of_local<&LocalOptions::policy, members...>(name);
}
template <auto... members>
constexpr Option of_environment(std::string_view name) {
  return of_local<&LocalOptions::environment, members...>(name);
}
template <auto... members>
constexpr Option of_sandbox(std::string_view name) {
  return of_local<&LocalOptions::sandbox, members...>(name);
}
template <auto... members>
constexpr Option of_limits(std::string_view name) {
  return of_sandbox<&SandboxOptions::limits, members...>(name);
}

constexpr Choice policy_values[] = {"strict", "compat"};
constexpr Choice result_texts[] = {
    {"auto", ResultText::automatic}, {"plain", ResultText::plain}, {"json", ResultText::json}};
constexpr Choice sandbox_modes[] = {{"off", SandboxMode::off},
                                    {"best_effort", SandboxMode::best_effort},
                                    {"strict", SandboxMode::strict}};
// The feature `network` has one more.
constexpr Choice network_modes[] = {
    {"host", Network::host}, {"none", Network::none}, {"loopback", Network::loopback}};
constexpr Choice home_modes[] = {{"off", PrivateHome::off},
                                 {"command", PrivateHome::command},
                                 {"executor", PrivateHome::executor}};

constexpr Option server_rows[] = {
    of_local<&LocalOptions::roots>("allowed-paths")
        .value("DIR...")
        .usual("project")
        .in(Option::location)
        .where(Option::commands)
        .often()
        .help("where commands may start and write. Without it: the roots that the client names, or "
              "the current directory; not one that is /, a home or a directory of the system. See "
              "--sandbox"),
    Option::of<&ServerConfig::read_only>("read-only")
        .value("DIR...")
        .in(Option::location)
        .where(Option::commands)
        .often()
        .help("where they may start and read, but not write. In a sandbox these must not lie in a "
              "directory that they may write to"),
    of_local<&LocalOptions::workspace>("workspace")
        .value("DIR")
        .usual("the project")
        .in(Option::location)
        .where(Option::commands)
        .often()
        .help("where commands start. Without it: the first root that the client names, the current "
              "directory, or the first allowed path when that is in none. With it the client's "
              "roots do not count, and without --allowed-paths it is all that commands may write"),
    Option::of<&ServerConfig::execution_mode>("execution-mode")
        .value("MODE")
        .usual("local")
        .in(Option::location)
        .often()
        .help("where: local"),
    Option::of<&ServerConfig::policy_mode>("policy")
        .value("MODE")
        .usual("strict")
        .in(Option::policy)
        .one_of(policy_values)
        .help("strict: understands the shell; compat: as MassGen judges. compat has the verdicts "
              "of MassGen's server, with its false alarms and gaps"),
    of_policy<&PolicyOptions::allowed>("allowed-commands")
        .value("PATTERN...")
        .usual("all")
        .in(Option::policy)
        .often()
        .other_key("whitelist_patterns")
        .help("every command of a script must match one. A pattern is a regular expression for a "
              "whole command, its words joined by one blank"),
    of_policy<&PolicyOptions::allow_usual>("allow-usual")
        .in(Option::policy)
        .often()
        .help("allow cd, cat, grep, sed and such in their usual forms, besides. Also tests, as "
              "pytest, which run what lies in the workspace; alone, or beside --allowed-commands"),
    of_policy<&PolicyOptions::blocked>("blocked-commands")
        .value("PATTERN...")
        .in(Option::policy)
        .often()
        .other_key("blacklist_patterns")
        .help("no command may match one of these. Write 'git push.*' to refuse git push with "
              "arguments, too"),
    of_policy<&PolicyOptions::disabled_rules>("disable-rule")
        .value("NAME...")
        .in(Option::policy)
        .often()
        .help("switch rules off; --list-rules prints them all"),
    of_policy<&PolicyOptions::ask_commands>("ask-commands")
        .value("PATTERN...")
        .in(Option::policy)
        .often()
        .help("a person must approve what matches"),
    of_policy<&PolicyOptions::ask_rules>("ask-rule")
        .value("NAME...")
        .in(Option::policy)
        .help("a person must approve what these rules would refuse"),
    of_tools<&ToolOptions::ask_timeout>("ask-timeout")
        .value("SECONDS")
        .usual("300")
        .in(Option::policy)
        .where(Option::commands)
        .help("for the person's answer; then it is no"),
    of_local<&LocalOptions::delete_guard>("delete-guard")
        .in(Option::policy)
        .where(Option::commands)
        .often()
        .help("refuse to delete what no command read or made"),
    Option::of<&ServerConfig::sandbox>("sandbox")
        .value("MODE")
        .usual("best-effort")
        .in(Option::confinement)
        .where(Option::kernel)
        .often()
        .one_of(sandbox_modes)
        .help("off, best-effort or strict. off: commands may do all that the user can; "
              "best-effort: what this kernel offers, and what is missing is reported; strict: all "
              "that is asked for, or the server does not start"),
    of_sandbox<&SandboxOptions::network>("network")
        .value("MODE")
        .usual("host")
        .in(Option::confinement)
        .where(Option::commands)
        .often()
        .one_of(network_modes)
        .help("host, none or loopback. What commands reach in the sandbox. none: nothing; "
              "loopback: 127.0.0.1 of their own"),
    of_local<&LocalOptions::private_home>("private-home")
        .value("MODE")
        .usual("executor")
        .in(Option::confinement)
        .where(Option::local)
        .one_of(home_modes)
        .help("HOME and TMPDIR of commands in a sandbox. executor: one for all of them; command: a "
              "new one for each; off: the user's"),
    of_local<&LocalOptions::private_tmp>("no-private-tmp")
        .off()
        .in(Option::confinement)
        .where(Option::local)
        .help("do not give commands in a sandbox a /tmp, a /dev/shm and terminals of their own"),
    of_sandbox<&SandboxOptions::unix_sockets>("unix-sockets")
        .in(Option::confinement)
        .where(Option::kernel)
        .help("let them reach sockets with a path, where the network is off. docker.sock is among "
              "these"),
    of_sandbox<&SandboxOptions::shared_memory>("shared-memory")
        .in(Option::confinement)
        .where(Option::kernel)
        .help("let them use the host's /dev/shm instead of their own"),
    of_sandbox<&SandboxOptions::terminals>("terminals")
        .in(Option::confinement)
        .where(Option::kernel)
        .help("let them make pseudo-terminals among the host's instead of their own. They then "
              "reach the user's other terminals, too"),
    of_sandbox<&SandboxOptions::devices>("devices")
        .value("gpu|PATH...")
        .in(Option::confinement)
        .where(Option::kernel)
        .help("devices that they may use: gpu for /dev/nvidia*, /dev/dri and /dev/kfd, or the "
              "paths of others. Neither disks nor memory"),
    of_sandbox<&SandboxOptions::pid_namespace>("pid-namespace")
        .in(Option::confinement)
        .where(Option::kernel)
        .help("a process table of their own. Modes and times of files elsewhere stay as they are, "
              "too"),
    of_sandbox<&SandboxOptions::protected_paths>("protected-paths")
        .value("NAME...")
        .in(Option::confinement)
        .where(Option::kernel)
        .often()
        .help("keep .git/hooks and such in allowed paths. What is there can be neither changed nor "
              "replaced. Relative to each allowed path"),
    of_sandbox<&SandboxOptions::hidden_paths>("hidden-paths")
        .value("PATH...")
        .in(Option::confinement)
        .where(Option::local)
        .help("files and folders in allowed paths that neither they nor the tools can read. "
              "Relative to the workspace"),
    of_local<&LocalOptions::watch_files>("no-watch-files")
        .off()
        .in(Option::confinement)
        .where(Option::local)
        .help(
            "do not keep what the user's own tools run later: .git/hooks, .mcp.json and the like"),
    of_local<&LocalOptions::allow_later>("allow-later")
        .value("PATH...")
        .in(Option::confinement)
        .where(Option::local)
        .help(
            "what commands may change although the user's own tools run it later, such as "
            ".github/workflows: in each allowed path, or absolute. \".\" for all. Otherwise it is "
            "put back when a command has ended"),
    of_local<&LocalOptions::put_back_dir>("put-back-dir")
        .value("DIR")
        .usual("codeexec/put-back in $XDG_STATE_HOME or ~/.local/state")
        .in(Option::confinement)
        .where(Option::local)
        .help("the folder for what commands had made of that"),
    of_local<&LocalOptions::supervised>("no-supervisor")
        .off()
        .in(Option::confinement)
        .where(Option::local)
        .help("outside of a sandbox: let daemons live on after their command. Commands then also "
              "outlive a server that is killed"),
    of_local<&LocalOptions::timeout>("timeout")
        .value("SECONDS")
        .usual("60")
        .in(Option::limits)
        .often()
        .help("of a command that asks for none. Fractions are allowed"),
    of_local<&LocalOptions::max_timeout>("max-timeout")
        .value("SECONDS")
        .usual("3600")
        .in(Option::limits)
        .where(Option::commands)
        .help("the most a command may ask for. More is capped, with a note"),
    of_local<&LocalOptions::idle_timeout>("idle-timeout")
        .value("SECONDS")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::commands)
        .help("end commands that print nothing for so long"),
    Option::of<&ServerConfig::max_output>("max-output-size")
        .bytes()
        .value("SIZE")
        .usual("24000")
        .in(Option::limits)
        .where(Option::commands)
        .often()
        .help("of a result, as it is sent. Of long output it has the head and the tail; a call may "
              "ask for less (max_output)"),
    of_limits<&Limits::cpu_time>("limit-cpu")
        .value("SECONDS")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::kernel)
        .help("processor time of each process of a command, in whole seconds"),
    of_limits<&Limits::memory>("limit-memory")
        .bytes()
        .value("SIZE")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::kernel)
        .often()
        .help("of all processes of a command. In a cgroup; where none can be made, --sandbox "
              "strict refuses and best-effort limits each process"),
    of_limits<&Limits::address_space>("limit-address-space")
        .bytes()
        .value("SIZE")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::kernel)
        .help("of each process. Node and Java reserve many GiB, so better --limit-memory"),
    of_limits<&Limits::processes>("limit-processes")
        .value("N")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::kernel)
        .often()
        .help("processes and threads of a command. In a cgroup; where none can be made, --sandbox "
              "strict refuses and best-effort counts all of the user's, which has no effect for "
              "root"),
    of_limits<&Limits::open_files>("limit-open-files")
        .value("N")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::kernel)
        .help("descriptors of each process"),
    of_limits<&Limits::file_size>("limit-file-size")
        .bytes()
        .value("SIZE")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::kernel)
        .help("of each file that is written"),
    of_limits<&Limits::disk>("limit-disk")
        .bytes()
        .value("SIZE")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::kernel)
        .often()
        .help("what a command may add to the disk. Of each disk with a writable directory, and the "
              "most that one file may have"),
    Option::of<&ServerConfig::max_concurrent>("max-concurrent")
        .value("N")
        .usual("16")
        .in(Option::limits)
        .help("commands at a time; others wait"),
    of_tools<&ToolOptions::calls_per_minute>("calls-per-minute")
        .value("N")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::commands)
        .help("of each tool. More are refused as calls_per_minute"),
    of_tools<&ToolOptions::running_time>("running-time")
        .value("SECONDS")
        .usual("no limit")
        .in(Option::limits)
        .where(Option::commands)
        .help("of all commands together. Then all are refused as running_time; each may take what "
              "is left when it starts"),
    of_environment<&EnvironmentOptions::keep>("keep-env")
        .value("NAME...")
        .in(Option::environment)
        .where(Option::local)
        .often()
        .help("more variables of the server for commands. They see PATH, HOME, LANG and a few "
              "others without it; GIT_* names a family"),
    of_environment<&EnvironmentOptions::set>("set-env")
        .value("NAME=VALUE...")
        .in(Option::environment)
        .where(Option::commands)
        .often()
        .help("variables for all commands"),
    of_environment<&EnvironmentOptions::secret>("secret-env")
        .value("NAME...")
        .in(Option::environment)
        .where(Option::commands)
        .often()
        .help("as --keep-env, but masked in what they print. In output, results and the audit log"),
    of_environment<&EnvironmentOptions::venv_path>("venv-path")
        .value("DIR")
        .usual("the .venv found")
        .in(Option::environment)
        .where(Option::commands)
        .often()
        .other_key("command_execution_venv_path")
        .help("their Python environment. Without it: the .venv of the work_dir, then of the "
              "workspace"),
    of_environment<&EnvironmentOptions::auto_venv>("no-auto-venv")
        .off()
        .in(Option::environment)
        .where(Option::commands)
        .help("do not use the .venv of the work_dir or workspace"),
    of_environment<&EnvironmentOptions::command_prefix>("command-prefix")
        .value("WORDS")
        .in(Option::environment)
        .where(Option::commands)
        .other_key("command_execution_prefix")
        .help("put before every command line, such as \"uv run\""),
    of_local<&LocalOptions::git_identity>("no-git-identity")
        .off()
        .in(Option::environment)
        .where(Option::commands)
        .help("keep name and address of the user's git from commands. They find these otherwise "
              "where they have a HOME of their own"),
    of_local<&LocalOptions::shell>("shell")
        .value("PATH")
        .usual(usual_shell)
        .in(Option::environment)
        .where(Option::commands)
        .help("runs the commands. Any that knows -c, or auto: bash if commands run on this host "
              "and it has one, and else /bin/sh. Tools name it to the model. The policy reads a "
              "script as both bash and dash would"),
    of_local<&LocalOptions::skills_dir>("local-skills-directory")
        .value("DIR")
        .in(Option::environment)
        .where(Option::local)
        .help("linked as .agent/skills in the workspace, if not there"),
    of_tools<&ToolOptions::run_in_background_after>("run-in-background-after")
        .value("SECONDS")
        .usual("never")
        .in(Option::background)
        .where(Option::commands)
        .often()
        .help("then it becomes a background shell. What a client still waits for then goes on "
              "without it waiting"),
    of_tools<&ToolOptions::answer_within>("answer-within")
        .or_0()
        .value("SECONDS")
        .usual("50")
        .in(Option::background)
        .where(Option::commands)
        .help("what runs longer goes on in the background. This is for clients that give up by a "
              "clock of their own; one that asked for progress waits. Timeouts stay in force. 0: "
              "never"),
    Option::of<&ServerConfig::max_background_shells>("max-background-shells")
        .value("N")
        .usual("10")
        .in(Option::background)
        .where(Option::commands)
        .help("running at a time; more are refused"),
    of_tools<&ToolOptions::jobs, &JobOptions::max_timeout>("max-background-time")
        .value("SECONDS")
        .usual("no limit")
        .in(Option::background)
        .where(Option::commands)
        .help("the most a background shell may take"),
    of_tools<&ToolOptions::disabled_tools>("disable-tool")
        .value("NAME...")
        .in(Option::background)
        .where(Option::commands)
        .help("tools that are not offered"),
    of_tools<&ToolOptions::full_results>("full-results")
        .in(Option::background)
        .where(Option::commands)
        .help("all keys of a result, and the whole command in it. Its text is JSON, then"),
    Option::of<&ServerConfig::result_text>("result-text")
        .value("FORM")
        .usual("auto")
        .in(Option::background)
        .one_of(result_texts)
        .help(
            "auto: lines for the model, and an object for programs. Clients that are known to show "
            "the model the object instead get the lines alone; plain: all clients do; json: the "
            "text is the object, too"),
    of_local<&LocalOptions::audit_file>("audit-file")
        .value("FILE")
        .in(Option::records)
        .often()
        .help("append a line of JSON for every command. And for each file that a tool wrote; "
              "refused ones are there, too"),
    of_local<&LocalOptions::audit_key>("audit-key")
        .value("FILE")
        .in(Option::records)
        .help("make the hashes of these lines with this key. At least 16 bytes, where commands "
              "cannot read it. Only who has it can write lines that --verify-audit takes for "
              "yours"),
    of_local<&LocalOptions::audit_syslog>("audit-syslog")
        .value("SOCKET")
        .in(Option::records)
        .help("send each record to the log of the system, too (usually /dev/log). In the form of "
              "RFC 5424, without output and with at most 2 KiB of the command"),
    Option::of<&ServerConfig::audit_output>("audit-output")
        .bytes_or_0()
        .value("SIZE")
        .usual("0")
        .in(Option::records)
        .help("of each stream in these lines: its head and its tail"),
    of_local<&LocalOptions::spill_dir>("spill-dir")
        .value("DIR")
        .usual("a private folder in $TMPDIR or /tmp")
        .in(Option::records)
        .where(Option::commands)
        .help("long outputs go whole to files here. At most 64 MiB each; commands and read_file "
              "may read them and not change them. The private folder goes with the server; of more "
              "than 256 MiB the oldest files go before"),
    of_local<&LocalOptions::agent_id>("agent-id")
        .value("ID")
        .in(Option::records)
        .where(Option::commands)
        .help("for the audit log"),
    of_call<&Invocation::config>("config")
        .value("FILE")
        .in(Option::command_line)
        .help("read options from a JSON object; the command line wins"),
    of_call<&Invocation::run>("run")
        .value("COMMAND")
        .empty()
        .in(Option::command_line)
        .help("run one command instead of serving, and print its result as JSON. Exit status 0: it "
              "succeeded; 1: it failed; 125: it was refused or not started"),
    of_call<&Invocation::check>("check")
        .value("COMMAND")
        .empty()
        .in(Option::command_line)
        .help("print whether a command would be refused, and why, without running it. - reads JSON "
              "strings from standard input, one per line. Exit status 0: allowed; 1: refused; 3: a "
              "person must approve it"),
    of_call<&Invocation::list_rules>("list-rules")
        .in(Option::command_line)
        .help("print what the sanitizer's rules refuse"),
    of_call<&Invocation::help>("help")
        .in(Option::command_line)
        .help("print the options that are needed most often"),
    of_call<&Invocation::version>("version").in(Option::command_line).help("print the version"),
};
static_assert(are_complete(server_rows),
              "a row lacks a column, or has one that its kind has no use for");

}  // namespace

inline namespace inner {

Rows<Option> server_options() { return server_rows; }

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
