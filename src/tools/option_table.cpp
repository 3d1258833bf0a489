// The table of options.
//
// A row has its texts, the places where the option has an effect, and the member of ServerConfig
// that it sets, with the kind that its values are parsed as. The order is that of --help.

#include "jobs/jobs.hpp"
#include "tools/options_internal.hpp"
#include "tools/tools.hpp"

#include "base/base.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The kind of an option is that of the variable it sets, unless its row names another one.
constexpr Option::Kind kind_for(std::string*) { return Option::text; }
constexpr Option::Kind kind_for(std::vector<std::string>*) { return Option::texts; }
constexpr Option::Kind kind_for(std::vector<Root>*) { return Option::roots; }
constexpr Option::Kind kind_for(Variables*) { return Option::variables; }
constexpr Option::Kind kind_for(std::vector<Mount>*) { return Option::mounts; }
constexpr Option::Kind kind_for(std::chrono::milliseconds*) { return Option::seconds; }
constexpr Option::Kind kind_for(std::uint64_t*) { return Option::whole; }
constexpr Option::Kind kind_for(double*) { return Option::decimal; }
constexpr Option::Kind kind_for(bool*) { return Option::flag; }
constexpr Option::Kind kind_for(std::optional<bool>*) { return Option::truth; }
constexpr Option::Kind kind_for(Json*) { return Option::json; }
template <class Choice, class = std::enable_if_t<std::is_enum_v<Choice>>>
constexpr Option::Kind kind_for(Choice*) {
  static_assert(sizeof(Choice) == sizeof(int), "set_choice() writes an int");
  return Option::choice;
}

}  // namespace

inline namespace inner {

// Where a row's value goes: a member of ServerConfig, or a member of a member.
#define CODEEXEC_AS(kind, member) kind, offsetof(ServerConfig, member)
#define CODEEXEC_AT(member) \
  CODEEXEC_AS(kind_for(static_cast<decltype(ServerConfig::member)*>(nullptr)), member)

// ServerConfig has members with base classes. GCC and Clang know the offsets in these, too.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// See Option::row for the parts of a text.
const Option Option::table[] = {
    {"allowed-paths\nDIR...\nwhere commands may work; none: anywhere", commands,
     CODEEXEC_AT(local.roots)},
    {"read-only\nDIR...\nwhere they may work, but not change anything", commands,
     CODEEXEC_AT(read_only)},
    {"workspace\nDIR\nwhere commands start (default: the current directory)", commands,
     CODEEXEC_AT(local.workspace)},
    {"timeout\nSECONDS\nfor commands that give none (default: 60)", all,
     CODEEXEC_AT(local.timeout)},
    {"max-timeout\nSECONDS\nthe most a command may ask for (default: 3600)", commands,
     CODEEXEC_AT(local.max_timeout)},
    {"idle-timeout\nSECONDS\nend commands that print nothing for so long (default: no limit)",
     commands, CODEEXEC_AT(local.idle_timeout)},
    {"max-output-size\nSIZE\nshown per stream: its head and its tail (default: 30000)", commands,
     CODEEXEC_AS(bytes, max_output)},
    {"policy\nMODE\nstrict: understands the shell (default); compat: as MassGen judges", all,
     CODEEXEC_AT(policy_mode)},
    {"allowed-commands\nPATTERN...\nevery command of a script must match one of "
     "these\nwhitelist_patterns",
     all, CODEEXEC_AT(local.policy.allowed)},
    {"allow-usual\n\nand cd, echo, cat, grep, head ... where they only read or print", all,
     CODEEXEC_AT(local.policy.allow_usual)},
    {"blocked-commands\nPATTERN...\nno command of a script may match one of "
     "these\nblacklist_patterns",
     all, CODEEXEC_AT(local.policy.blocked)},
    {"disable-rule\nNAME...\nswitch rules off; --list-rules tells what there are", all,
     CODEEXEC_AT(local.policy.disabled_rules)},
    {"ask-commands\nPATTERN...\na person must approve commands that match one of these", all,
     CODEEXEC_AT(local.policy.ask_commands)},
    {"ask-rule\nNAME...\na person must approve what these rules would refuse", all,
     CODEEXEC_AT(local.policy.ask_rules)},
    {"ask-timeout\nSECONDS\nfor the person's answer; then it is no (default: 300)", commands,
     CODEEXEC_AT(tools.ask_timeout)},
    {"delete-guard\n\nrefuse to delete files that no command has read or made", commands,
     CODEEXEC_AT(local.delete_guard)},
    {"sandbox\nMODE\noff, best-effort, strict; default: best-effort with allowed paths\n\noff, "
     "best_effort, strict",
     kernel, CODEEXEC_AT(sandbox)},
    {"network\nMODE\nwhat they reach in it: host (default), none, loopback, allow\n\n"
     "host, none, loopback, allow",
     kernel, CODEEXEC_AT(local.sandbox.network)},
    {"allow-domains\nNAME...\nwith network allow: example.org *.example.org host:22 python", local,
     CODEEXEC_AT(local.allowed_domains)},
    {"private-home\nMODE\nHOME and TMPDIR in a sandbox: executor (default), command, off\n\noff, "
     "command, executor",
     local, CODEEXEC_AT(local.private_home)},
    {"unix-sockets\n\nlet them reach sockets with a path, where the network is off", kernel,
     CODEEXEC_AT(local.sandbox.unix_sockets)},
    {"shared-memory\n\nlet them use /dev/shm, as Python's multiprocessing does", kernel,
     CODEEXEC_AT(local.sandbox.shared_memory)},
    {"terminals\n\nlet them make pseudo-terminals; they reach the user's others, too", kernel,
     CODEEXEC_AT(local.sandbox.terminals)},
    {"pid-namespace\n\na process table of their own", kernel,
     CODEEXEC_AT(local.sandbox.pid_namespace)},
    {"protected-paths\nNAME...\nkeep these below each writable directory: .git/hooks ...", kernel,
     CODEEXEC_AT(local.sandbox.protected_paths)},
    {"no-watch-files\n\ndo not look for changes of .git/hooks, .vscode and the like", local,
     CODEEXEC_AS(off, local.watch_files)},
    {"no-supervisor\n\nwithout a sandbox: let daemons live on after their command", local,
     CODEEXEC_AS(off, local.supervised)},
    {"limit-cpu\nSECONDS\nwhole ones, of each process of a command", kernel,
     CODEEXEC_AT(local.sandbox.limits.cpu_time)},
    {"limit-memory\nSIZE\nof a command; without cgroups of each process, or refused", kernel,
     CODEEXEC_AS(bytes, local.sandbox.limits.memory)},
    {"limit-address-space\nSIZE\nof each process; better --limit-memory", kernel,
     CODEEXEC_AS(bytes, local.sandbox.limits.address_space)},
    {"limit-processes\nN\nand threads of a command; without cgroups as --limit-memory", kernel,
     CODEEXEC_AT(local.sandbox.limits.processes)},
    {"limit-open-files\nN\ndescriptors of each process", kernel,
     CODEEXEC_AT(local.sandbox.limits.open_files)},
    {"limit-file-size\nSIZE\nof each file that is written", kernel,
     CODEEXEC_AS(bytes, local.sandbox.limits.file_size)},
    {"limit-disk\nSIZE\nby which the disk may fill up during a command", kernel,
     CODEEXEC_AS(bytes, local.sandbox.limits.disk)},
    {"execution-mode\nMODE\nlocal (default), docker, ssh, slurm, kubernetes, command", all,
     CODEEXEC_AT(execution_mode)},
    {"place-command\nWORDS\nwith mode command: what leads to a codeexec-mcp --place elsewhere",
     command, CODEEXEC_AT(place_command)},
    {"place-host\nHOST\nwith mode ssh: the machine, as ssh calls it", ssh, CODEEXEC_AT(place_host)},
    {"place-agent-path\nPATH\nof this program there (default: codeexec-mcp)", installed,
     CODEEXEC_AT(place_agent)},
    {"place-workspace\nMODE\nshared (default), remote: only there (default in pods), or "
     "copy\n\nshared, remote, copy",
     places, CODEEXEC_AT(place_workspace)},
    {"place-copy-files\nN\nof a workspace that is copied, at most (default: 100000)", places,
     CODEEXEC_AT(place.copy_max_files)},
    {"place-copy-size\nSIZE\nof all its files, at most (default: 1g)", places,
     CODEEXEC_AS(bytes, place.copy_max_bytes)},
    {"place-copy-exclude\nPATTERN...\nwhat is not copied, as lines of a .gitignore", places,
     CODEEXEC_AT(place.copy_exclude)},
    {"place-copy-gitignore\n\nwhat .gitignore files name is not copied", places,
     CODEEXEC_AT(place.copy_gitignore)},
    {"place-start-timeout\nSECONDS\nthat a command waits for its place to be made (default: 60)",
     made, CODEEXEC_AT(start_timeout)},
    {"place-pool\nN\nplaces kept ready beside the one in use (default: 0)", made,
     CODEEXEC_AT(place_pool)},
    {"slurm-option\nWORD...\nmore options of salloc, such as partition=debug or mem=4G", slurm,
     CODEEXEC_AT(slurm.options)},
    {"kubernetes-option\nWORD...\nmore options of kubectl, such as context=lab or namespace=agents",
     kubernetes, CODEEXEC_AT(kubernetes.options)},
    {"kubernetes-image\nNAME\nof the pod that commands run in", kubernetes,
     CODEEXEC_AT(kubernetes.image)},
    {"kubernetes-limit\nNAME=QUANTITY...\nwhat the pod gets and may have: memory=1Gi cpu=2",
     kubernetes, CODEEXEC_AT(kubernetes.limits)},
    {"kubernetes-claim\nNAME\na PersistentVolumeClaim for its /workspace", kubernetes,
     CODEEXEC_AT(kubernetes.claim)},
    {"kubernetes-pod-template\nFILE\nyour own pod in place of an image, as JSON or YAML",
     kubernetes, CODEEXEC_AT(kubernetes.pod_template)},
    {"kubernetes-warm-pool\nNAME\ntake the pod from this pool of agent-sandbox", kubernetes,
     CODEEXEC_AT(kubernetes.warm_pool)},
    {"kubernetes-lifetime\nSECONDS\nafter which Kubernetes ends the pod (default: 86400)",
     kubernetes, CODEEXEC_AT(kubernetes_lifetime)},
    {"place-keep-alive\nSECONDS\nwithout a sign of life, then the connection is lost (default: 30)",
     places, CODEEXEC_AT(place.keep_alive)},
    {"docker-program\nPROGRAM\nwhat speaks to the engine: docker (default), podman, nerdctl",
     containers, CODEEXEC_AT(user.container.engine.program)},
    {"docker-context\nNAME\nof the engine, for the program's --context", containers,
     CODEEXEC_AT(user.container.engine.context)},
    {"docker-host\nADDRESS\nof the engine, for the program's --host", containers,
     CODEEXEC_AT(user.container.engine.host)},
    {"docker-call-timeout\nSECONDS\nof a small call of the program (default: 15)", containers,
     CODEEXEC_AT(user.container.engine.call_timeout)},
    {"docker-run-timeout\nSECONDS\nof making a container (default: 60)", containers,
     CODEEXEC_AT(user.container.engine.run_timeout)},
    {"docker-pull-timeout\nSECONDS\nof fetching an image (default: 600)", containers,
     CODEEXEC_AT(user.container.engine.pull_timeout)},
    {"docker-image\nIMAGE\ndefault: codeexec/runtime:latest, or -sudo, or codeexec/executor",
     containers, CODEEXEC_AT(user.container.image)},
    {"docker-image-policy\nPOLICY\npull it: missing (default), never, always\n\nnever, missing, "
     "always",
     containers, CODEEXEC_AT(user.container.image_policy)},
    {"docker-network-mode\nMODE\nof the container: none (default), bridge, host", containers,
     CODEEXEC_AT(container_network)},
    {"docker-network\nNAME\na network of the engine's own, in place of a mode", containers,
     CODEEXEC_AT(user.container.network_name)},
    {"docker-dns\nADDRESS...\nname servers\n\ndns", containers,
     CODEEXEC_AS(keyed_texts, user.container.engine_options)},
    {"docker-add-host\nNAME:ADDRESS...\nnames with their addresses\n\nadd-host", containers,
     CODEEXEC_AS(keyed_texts, user.container.engine_options)},
    {"docker-runtime\nNAME\nof the engine, such as runsc (gVisor)\n\nruntime", containers,
     CODEEXEC_AS(keyed_text, user.container.engine_options)},
    {"docker-gpus\nGPUS\nsuch as all\n\ngpus", containers,
     CODEEXEC_AS(keyed_text, user.container.engine_options)},
    {"docker-option\nWORD...\nmore of its `run`, such as device=/dev/fuse; see the README",
     containers, CODEEXEC_AT(user.container.engine_options)},
    {"docker-memory-limit\nSIZE\nof the container, such as 512m; 0: none (default: 2g)", containers,
     CODEEXEC_AS(bytes_or_0, user.container.memory)},
    {"docker-cpu-limit\nCPUS\nsuch as 1.5; 0: none (default: 2)", containers,
     CODEEXEC_AT(user.container.cpus)},
    {"docker-pids-limit\nN\nprocesses and threads; 0: none (default: 256)", containers,
     CODEEXEC_AS(whole_or_0, user.container.pids)},
    {"docker-shm-size\nSIZE\nof /dev/shm (default: 64m)", containers,
     CODEEXEC_AS(bytes_or_0, user.container.shm_size)},
    {"docker-tmp-size\nSIZE\nof /tmp (default: 512m)", containers,
     CODEEXEC_AS(bytes_or_0, user.container.tmp_size)},
    {"docker-read-only-root\nBOOL\ndefault: true, unless sudo or packages need to write",
     containers, CODEEXEC_AT(user.container.read_only_root)},
    {"docker-user\nUSER\nUID:GID or a name (default: the owner of the workspace)", containers,
     CODEEXEC_AT(user.container.user)},
    {"docker-mount\nSRC[:DST][:ro|:rw]...\nmore of the host; default: :ro", containers,
     CODEEXEC_AT(user.container.mounts)},
    {"docker-credentials\nJSON\nwhat of the user's own it gets; see the README", containers,
     CODEEXEC_AT(credentials)},
    {"docker-packages\nJSON\nto install: {\"preinstall\": {\"python\": [\"requests>=2\"]}}",
     containers, CODEEXEC_AT(packages)},
    {"docker-packages-required\n\na package that cannot be had fails the container", containers,
     CODEEXEC_AT(user.container.packages_required)},
    {"docker-cache\nNAME\na volume that keeps what pip, uv, npm, cargo and go fetch", containers,
     CODEEXEC_AT(user.container.cache)},
    {"docker-persistent\n\nkeep the container and find it again (with its agent-id)", containers,
     CODEEXEC_AT(user.container.persistent)},
    {"place-agent\nFILE\na static codeexec-mcp for containers (default: this) or a place", agents,
     CODEEXEC_AT(user.container.agent)},
    {"docker-start-timeout\nSECONDS\nuntil a command has begun (default: 15)", containers,
     CODEEXEC_AT(user.container.start_timeout)},
    {"docker-log-file\nFILE\ngets what happened in the container when it is removed", containers,
     CODEEXEC_AT(user.container.log_file)},
    {"tools-path\nDIR\n/tools of the container (profile user-container: ./tools)", containers,
     CODEEXEC_AT(user.tools_dir)},
    {"skills-path\nDIR\n/skills of the container (profile user-container: ./skills)", containers,
     CODEEXEC_AT(user.skills_dir)},
    {"profile\nNAME\ncommands (default); user-container: tools of one user's container", all,
     CODEEXEC_AT(profile)},
    {"user-id\nID\nwhose container, with profile user-container", users, CODEEXEC_AT(user_id)},
    {"workspace-size\nSIZE\nof a user's /workspace (default: 512m)", users,
     CODEEXEC_AS(bytes_or_0, user.workspace_size)},
    {"artifacts-size\nSIZE\nof a user's /artifacts (default: 256m)", users,
     CODEEXEC_AS(bytes_or_0, user.artifacts_size)},
    {"max-artifact-size\nSIZE\nof a file of /artifacts that is given away (default: 50m)", users,
     CODEEXEC_AS(bytes_or_0, user.max_artifact)},
    {"agent-id\nID\nfor the audit log; whose container it is", commands,
     CODEEXEC_AT(local.agent_id)},
    {"instance-id\nID\nwhich of its containers; has no effect in local mode", all,
     CODEEXEC_AT(user.container.instance_id)},
    {"enable-sudo\n\nin a container, whose image then has it; no effect in local "
     "mode\ndocker_enable_sudo",
     all, CODEEXEC_AT(user.container.sudo)},
    {"local-skills-directory\nDIR\nlinked as .agent/skills in the workspace, if not there", local,
     CODEEXEC_AT(local.skills_dir)},
    {"command-prefix\nWORDS\nput before every command line, for instance \"uv "
     "run\"\ncommand_execution_prefix",
     commands, CODEEXEC_AT(local.environment.command_prefix)},
    {"venv-path\nDIR\nPython virtual environment for every command\ncommand_execution_venv_path",
     commands, CODEEXEC_AT(local.environment.venv_path)},
    {"no-auto-venv\n\ndo not use the .venv of the work_dir or workspace", commands,
     CODEEXEC_AS(off, local.environment.auto_venv)},
    {"no-git-identity\n\nkeep the name and address of the user's git from their commits", commands,
     CODEEXEC_AS(off, local.git_identity)},
    {"keep-env\nNAME...\nvariables of the server that commands see, too", local,
     CODEEXEC_AT(local.environment.keep)},
    {"set-env\nNAME=VALUE...\nvariables for all commands", commands,
     CODEEXEC_AT(local.environment.set)},
    {"secret-env\nNAME...\nthe same, but their values are masked in what commands print", commands,
     CODEEXEC_AT(local.environment.secret)},
    {"shell\nPATH\nruns the commands (default: /bin/sh)", commands, CODEEXEC_AT(local.shell)},
    {"audit-file\nFILE\nappend a line of JSON for every command", all,
     CODEEXEC_AT(local.audit_file)},
    {"audit-output\nSIZE\nof each stream in these lines: its head and its tail (default: 0)", all,
     CODEEXEC_AS(bytes_or_0, audit_output)},
    {"transcript\nFILE\nappend each command and how it ended, as Markdown", commands,
     CODEEXEC_AT(transcript)},
    {"spill-dir\nDIR\nlong outputs go whole to files here (default: a private folder)", commands,
     CODEEXEC_AT(local.spill_dir)},
    {"max-concurrent\nN\ncommands at a time; others wait (default: 16)", all,
     CODEEXEC_AT(max_concurrent)},
    {"run-in-background-after\nSECONDS\nwhat still runs then goes on in the background", commands,
     CODEEXEC_AT(tools.run_in_background_after)},
    {"max-background-shells\nN\nrunning in the background at a time (default: 10)", commands,
     CODEEXEC_AT(max_background_shells)},
    {"max-background-time\nSECONDS\nthe most one may take (default: no limit)", commands,
     CODEEXEC_AT(tools.jobs.max_timeout)},
    {"calls-per-minute\nN\nof each tool; more are refused (default: no limit)", commands,
     CODEEXEC_AT(tools.calls_per_minute)},
    {"running-time\nSECONDS\nof all commands together; then all are refused", commands,
     CODEEXEC_AT(tools.running_time)},
    {"disable-tool\nNAME...\ntools that are not offered", commands,
     CODEEXEC_AT(tools.disabled_tools)},
    {"full-results\n\nall keys of a result, and the whole command in it", commands,
     CODEEXEC_AT(tools.full_results)},
};

#pragma GCC diagnostic pop
#undef CODEEXEC_AT
#undef CODEEXEC_AS

const Option* Option::end() { return std::end(table); }

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
