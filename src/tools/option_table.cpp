// The table of options.
//
// A row has its texts, its group, the places where the option has an effect, and the member of
// ServerConfig that it sets, with the kind that its values are parsed as. The order is that of
// help. Every list that is shown to users is made from these rows, so a fact about an option stands
// here and nowhere else.

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
#include "report/packed_internal.hpp"
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

// Where a row's value goes: a member of ServerConfig, or a member of a member.
#define CODEEXEC_AS(kind, member) kind, offsetof(ServerConfig, member)
#define CODEEXEC_AT(member) \
  CODEEXEC_AS(kind_for(static_cast<decltype(ServerConfig::member)*>(nullptr)), member)

// ServerConfig has members with base classes. GCC and Clang know the offsets in these, too.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// See Option::row for the parts of a text. The first sentence of its help is for --help.
struct OptionRow {
  const char* text;
  Option::Group group;
  Option::Where use;
  Option::Kind kind;
  std::size_t offset;
  bool is_often_needed = false;
};
struct OptionRows : Option {
  static constexpr OptionRow rows[] = {
    // clang-format off: two columns more would break a third of the texts anew
    {"allowed-paths\nDIR...\nproject\nwhere commands may start and write. Without it: the "
     "roots that the client names, or the current directory; not one that is /, a home or a "
     "directory of the system. See --sandbox",
     location, commands, CODEEXEC_AT(local.roots), often},
    {"read-only\nDIR...\n\nwhere they may start and read, but not write. In a sandbox these must "
     "not lie in a directory that they may write to",
     location, commands, CODEEXEC_AT(read_only), often},
    {"workspace\nDIR\nthe project\nwhere commands start. Without it: the "
     "first root that the client names, the current directory, or the first allowed path when that "
     "is in none. With it the client's roots do not count, and without --allowed-paths it is all "
     "that commands may write",
     location, commands, CODEEXEC_AT(local.workspace), often},
    {"execution-mode\nMODE\nlocal\nwhere: local, docker, or other places. local: on this host; "
     "docker: in a container; ssh, slurm, kubernetes and command: on another machine\n\nlocal, "
     "docker, ssh, slurm, kubernetes, command",
     location, all, CODEEXEC_AT(execution_mode), often},
    {"policy\nMODE\nstrict\nstrict: understands the shell; compat: as MassGen judges. compat has "
     "the verdicts of MassGen's server, with its false alarms and gaps\n\nstrict, compat",
     policy, all, CODEEXEC_AT(policy_mode)},
    {"allowed-commands\nPATTERN...\nall\nevery command of a script must match one. A pattern is a "
     "regular expression for a whole command, its words joined by one blank\nwhitelist_patterns",
     policy, all, CODEEXEC_AT(local.policy.allowed), often},
    {"allow-usual\n\n\nallow cd, echo, cat, grep and such, besides. Only where they read or print; "
     "alone, or beside --allowed-commands",
     policy, all, CODEEXEC_AT(local.policy.allow_usual), often},
    {"blocked-commands\nPATTERN...\n\nno command may match one of these. Write 'git push.*' to "
     "refuse git push with arguments, too\nblacklist_patterns",
     policy, all, CODEEXEC_AT(local.policy.blocked), often},
    {"disable-rule\nNAME...\n\nswitch rules off; --list-rules prints them all", policy, all,
     CODEEXEC_AT(local.policy.disabled_rules), often},
    {"ask-commands\nPATTERN...\n\na person must approve what matches", policy, all,
     CODEEXEC_AT(local.policy.ask_commands), often},
    {"ask-rule\nNAME...\n\na person must approve what these rules would refuse", policy, all,
     CODEEXEC_AT(local.policy.ask_rules)},
    {"ask-timeout\nSECONDS\n300\nfor the person's answer; then it is no", policy, commands,
     CODEEXEC_AT(tools.ask_timeout)},
    {"delete-guard\n\n\nrefuse to delete what no command read or made", policy, commands,
     CODEEXEC_AT(local.delete_guard), often},
    {"sandbox\nMODE\nbest-effort\noff, best-effort or strict. off: commands may do all that the "
     "user can; best-effort: what this kernel offers, and what is missing is reported; strict: all "
     "that is asked for, or the server does not start\n\noff, best_effort, strict",
     confinement, kernel, CODEEXEC_AT(sandbox), often},
    {"network\nMODE\nhost\nhost, none, loopback, or allow some. What commands reach in the "
     "sandbox. none: nothing; loopback: 127.0.0.1 within one command; allow: that, and "
     "--allow-domains; a container has docker_network_mode, or this one\n\nhost, none, loopback, "
     "allow",
     confinement, commands, CODEEXEC_AT(local.sandbox.network), often},
    {"allow-domains\nNAME...\n\nwith network allow: example.org '*.x.org'. Names of hosts, with a "
     "port (github.com:22) or without, and sets of names (python): --list-domains prints these",
     confinement, commands, CODEEXEC_AT(local.allowed_domains), often},
    {"private-home\nMODE\nexecutor\nHOME and TMPDIR of commands in a sandbox. executor: one for "
     "all of them; command: a new one for each; off: the user's\n\noff, command, executor",
     confinement, local, CODEEXEC_AT(local.private_home)},
    {"unix-sockets\n\n\nlet them reach sockets with a path, where the network is off. docker.sock "
     "is among these",
     confinement, kernel, CODEEXEC_AT(local.sandbox.unix_sockets)},
    {"shared-memory\n\n\nlet them use /dev/shm, as Python's multiprocessing does", confinement,
     kernel, CODEEXEC_AT(local.sandbox.shared_memory)},
    {"terminals\n\n\nlet them make pseudo-terminals (script, tmux). They then reach the user's "
     "other terminals, too",
     confinement, kernel, CODEEXEC_AT(local.sandbox.terminals)},
    {"pid-namespace\n\n\na process table of their own. Modes and times of files elsewhere stay as "
     "they are, too",
     confinement, kernel, CODEEXEC_AT(local.sandbox.pid_namespace)},
    {"protected-paths\nNAME...\n\nkeep .git/hooks and such in allowed paths. What is there can be "
     "neither changed nor replaced. Relative to each allowed path",
     confinement, kernel, CODEEXEC_AT(local.sandbox.protected_paths), often},
    {"no-watch-files\n\n\ndo not look for changes of .git/hooks, .mcp.json and the like",
     confinement, local, CODEEXEC_AS(off, local.watch_files)},
    {"no-supervisor\n\n\noutside of a sandbox: let daemons live on after their command. Commands "
     "then also outlive a server that is killed",
     confinement, local, CODEEXEC_AS(off, local.supervised)},
    {"timeout\nSECONDS\n60\nof a command that asks for none. Fractions are allowed", limits, all,
     CODEEXEC_AT(local.timeout), often},
    {"max-timeout\nSECONDS\n3600\nthe most a command may ask for. More is capped, with a note",
     limits, commands, CODEEXEC_AT(local.max_timeout)},
    {"idle-timeout\nSECONDS\nno limit\nend commands that print nothing for so long", limits,
     commands, CODEEXEC_AT(local.idle_timeout)},
    {"max-output-size\nSIZE\n30000\nshown per stream: its head and its tail. A call may ask for "
     "less (max_output)",
     limits, commands, CODEEXEC_AS(bytes, max_output), often},
    {"limit-cpu\nSECONDS\nno limit\nprocessor time of each process of a command, in whole seconds",
     limits, kernel, CODEEXEC_AT(local.sandbox.limits.cpu_time)},
    {"limit-memory\nSIZE\nno limit\nof all processes of a command. In a cgroup; where none can be "
     "made, --sandbox strict refuses and best-effort limits each process",
     limits, kernel, CODEEXEC_AS(bytes, local.sandbox.limits.memory), often},
    {"limit-address-space\nSIZE\nno limit\nof each process. Node and Java reserve many GiB, so "
     "better --limit-memory",
     limits, kernel, CODEEXEC_AS(bytes, local.sandbox.limits.address_space)},
    {"limit-processes\nN\nno limit\nprocesses and threads of a command. In a cgroup; where none "
     "can be made, --sandbox strict refuses and best-effort counts all of the user's, which has no "
     "effect for root",
     limits, kernel, CODEEXEC_AT(local.sandbox.limits.processes), often},
    {"limit-open-files\nN\nno limit\ndescriptors of each process", limits, kernel,
     CODEEXEC_AT(local.sandbox.limits.open_files)},
    {"limit-file-size\nSIZE\nno limit\nof each file that is written", limits, kernel,
     CODEEXEC_AS(bytes, local.sandbox.limits.file_size)},
    {"limit-disk\nSIZE\nno limit\nwhat a command may add to the disk. Of each disk with a writable "
     "directory, and the most that one file may have",
     limits, kernel, CODEEXEC_AS(bytes, local.sandbox.limits.disk), often},
    {"max-concurrent\nN\n16\ncommands at a time; others wait", limits, all,
     CODEEXEC_AT(max_concurrent)},
    {"calls-per-minute\nN\nno limit\nof each tool. More are refused as calls_per_minute", limits,
     commands, CODEEXEC_AT(tools.calls_per_minute)},
    {"running-time\nSECONDS\nno limit\nof all commands together. Then all are refused as "
     "running_time; each may take what is left when it starts",
     limits, commands, CODEEXEC_AT(tools.running_time)},
    {"keep-env\nNAME...\n\nmore variables of the server for commands. They see PATH, HOME, LANG "
     "and a few others without it; GIT_* names a family",
     environment, local, CODEEXEC_AT(local.environment.keep), often},
    {"set-env\nNAME=VALUE...\n\nvariables for all commands", environment, commands,
     CODEEXEC_AT(local.environment.set), often},
    {"secret-env\nNAME...\n\nas --keep-env, but masked in what they print. In output, results and "
     "the audit log",
     environment, commands, CODEEXEC_AT(local.environment.secret), often},
    {"venv-path\nDIR\nthe .venv found\ntheir Python environment. Without it: the .venv of the "
     "work_dir, then of the workspace\ncommand_execution_venv_path",
     environment, commands, CODEEXEC_AT(local.environment.venv_path), often},
    {"no-auto-venv\n\n\ndo not use the .venv of the work_dir or workspace", environment, commands,
     CODEEXEC_AS(off, local.environment.auto_venv)},
    {"command-prefix\nWORDS\n\nput before every command line, such as \"uv "
     "run\"\ncommand_execution_prefix",
     environment, commands, CODEEXEC_AT(local.environment.command_prefix)},
    {"no-git-identity\n\n\nkeep name and address of the user's git from commands. They find these "
     "otherwise where they have a HOME of their own",
     environment, commands, CODEEXEC_AS(off, local.git_identity)},
    {"shell\nPATH\n/bin/sh\nruns the commands. Any that knows -c; tools name it to the model. The "
     "policy reads a script as both bash and dash would",
     environment, commands, CODEEXEC_AT(local.shell)},
    {"local-skills-directory\nDIR\n\nlinked as .agent/skills in the workspace, if not there",
     environment, local, CODEEXEC_AT(local.skills_dir)},
    {"run-in-background-after\nSECONDS\nnever\nthen it becomes a background shell. What a client "
     "still waits for then goes on without it waiting",
     background, commands, CODEEXEC_AT(tools.run_in_background_after), often},
    {"max-background-shells\nN\n10\nrunning at a time; more are refused", background, commands,
     CODEEXEC_AT(max_background_shells)},
    {"max-background-time\nSECONDS\nno limit\nthe most a background shell may take", background,
     commands, CODEEXEC_AT(tools.jobs.max_timeout)},
    {"disable-tool\nNAME...\n\ntools that are not offered", background, commands,
     CODEEXEC_AT(tools.disabled_tools)},
    {"full-results\n\n\nall keys of a result, and the whole command in it", background, commands,
     CODEEXEC_AT(tools.full_results)},
    {"audit-file\nFILE\n\nappend a line of JSON for every command. And for each file that a tool "
     "wrote; refused ones are there, too",
     records, all, CODEEXEC_AT(local.audit_file), often},
    {"audit-output\nSIZE\n0\nof each stream in these lines: its head and its tail", records, all,
     CODEEXEC_AS(bytes_or_0, audit_output)},
    {"transcript\nFILE\n\nappend commands and their output as Markdown", records, commands,
     CODEEXEC_AT(transcript), often},
    {"spill-dir\nDIR\na private folder in $TMPDIR or /tmp\nlong outputs go whole to files here. At "
     "most 64 MiB each; commands and read_file may read them and not change them. The private "
     "folder goes with the server; of more than 256 MiB the oldest files go before",
     records, commands, CODEEXEC_AT(local.spill_dir)},
    {"agent-id\nID\n\nfor the audit log. In docker mode also whose container it is", records,
     commands, CODEEXEC_AT(local.agent_id)},
    {"docker-image\nIMAGE\ncodeexec/runtime:latest\ntheir image. With --enable-sudo "
     "codeexec/runtime-sudo:latest, with profile user-container codeexec/executor:latest",
     contained, containers, CODEEXEC_AT(user.container.image), often},
    {"docker-image-policy\nPOLICY\nmissing\npull the image: never, when missing, always\n\nnever, "
     "missing, always",
     contained, containers, CODEEXEC_AT(user.container.image_policy)},
    {"docker-network-mode\nMODE\nnone\nnone, bridge (the world), host. bridge: the engine's own "
     "network, which reaches the world; host: also services on the host's 127.0.0.1\n\nnone, "
     "bridge, host",
     contained, containers, CODEEXEC_AT(container_network), often},
    {"docker-network\nNAME\n\na network of the engine's own, in place of a mode", contained,
     containers, CODEEXEC_AT(user.container.network_name)},
    {"docker-dns\nADDRESS...\nthe engine's\nname servers\n\ndns", contained, containers,
     CODEEXEC_AS(keyed_texts, user.container.engine_options)},
    {"docker-add-host\nNAME:ADDRESS...\n\nnames with their addresses\n\nadd-host", contained,
     containers, CODEEXEC_AS(keyed_texts, user.container.engine_options)},
    {"docker-program\nPROGRAM\ndocker\nwhat speaks to the engine: docker, podman, nerdctl, or a "
     "path",
     contained, containers, CODEEXEC_AT(user.container.engine.program)},
    {"docker-context\nNAME\nas the program finds it\nof the engine, for the program's --context",
     contained, containers, CODEEXEC_AT(user.container.engine.context)},
    {"docker-host\nADDRESS\nas the program finds it\nof the engine, for the program's --host. "
     "DOCKER_HOST and the like count, too",
     contained, containers, CODEEXEC_AT(user.container.engine.host)},
    {"docker-runtime\nNAME\nthe engine's\nof the engine, such as runsc (gVisor) or kata\n\nruntime",
     contained, containers, CODEEXEC_AS(keyed_text, user.container.engine_options)},
    {"docker-gpus\nGPUS\n\nsuch as all\n\ngpus", contained, containers,
     CODEEXEC_AS(keyed_text, user.container.engine_options)},
    {"docker-option\nWORD...\n\nmore options of the engine's `run`, by long names without dashes: "
     "device=/dev/fuse, ulimit=nproc=99, platform=linux/arm64, security-opt=seccomp=/profile.json",
     contained, containers, CODEEXEC_AT(user.container.engine_options)},
    {"docker-memory-limit\nSIZE\n2g\nof all in the container, swap included. 0: no limit",
     contained, containers, CODEEXEC_AS(bytes_or_0, user.container.memory)},
    {"docker-cpu-limit\nCPUS\n2\nprocessors, such as 1.5. 0: no limit; no more than the engine's "
     "machine has",
     contained, containers, CODEEXEC_AT(user.container.cpus)},
    {"docker-pids-limit\nN\n256\nprocesses and threads. 0: no limit", contained, containers,
     CODEEXEC_AS(whole_or_0, user.container.pids)},
    {"docker-shm-size\nSIZE\n64m\nof /dev/shm, which is memory", contained, containers,
     CODEEXEC_AS(bytes_or_0, user.container.shm_size)},
    {"docker-tmp-size\nSIZE\n512m\nof /tmp, which is memory", contained, containers,
     CODEEXEC_AS(bytes_or_0, user.container.tmp_size)},
    {"docker-read-only-root\nBOOL\ntrue, unless sudo or packages need to write\nwhether nothing in "
     "the image can be changed",
     contained, containers, CODEEXEC_AT(user.container.read_only_root)},
    {"docker-user\nUSER\nthe owner of the workspace\nruns the commands: UID:GID, or a user of the "
     "image",
     contained, containers, CODEEXEC_AT(user.container.user)},
    {"docker-mount\nSRC[:DST][:ro|:rw]...\n\nmore of the host. Read-only and at the same path, "
     "unless said",
     contained, containers, CODEEXEC_AT(user.container.mounts)},
    {"tools-path\nDIR\n\nread-only as /tools of the container. With profile user-container: "
     "./tools",
     contained, containers, CODEEXEC_AT(user.tools_dir)},
    {"skills-path\nDIR\n\nread-only as /skills of the container. With profile user-container: "
     "./skills",
     contained, containers, CODEEXEC_AT(user.skills_dir)},
    {"enable-sudo\n\n\ncommands may become root of the container. It then keeps its capabilities, "
     "and its image has sudo; no effect in local mode\ndocker_enable_sudo",
     contained, all, CODEEXEC_AT(user.container.sudo)},
    {"docker-credentials\nJSON\n\nwhat of the user's own it gets: {\"mount\": [\"ssh_keys\"]}",
     contained, containers, CODEEXEC_AT(credentials)},
    {"docker-packages\nJSON\n\nto install when it is made: {\"preinstall\": {\"python\": "
     "[\"requests>=2\"], \"npm\": [], \"system\": []}}",
     contained, containers, CODEEXEC_AT(packages)},
    {"docker-packages-required\n\n\nno container without its packages. Otherwise the first result "
     "has a note",
     contained, containers, CODEEXEC_AT(user.container.packages_required)},
    {"docker-cache\nNAME\n\na volume that keeps what pip, uv, npm, cargo and go fetch. It is "
     "codeexec-cache-NAME, for all containers of that name",
     contained, containers, CODEEXEC_AT(user.container.cache)},
    {"docker-persistent\n\n\nkeep the container. It is found again by --agent-id and --instance-id",
     contained, containers, CODEEXEC_AT(user.container.persistent)},
    {"instance-id\nID\n\nwhich of an agent's containers. No effect in local mode", contained, all,
     CODEEXEC_AT(user.container.instance_id)},
    {"docker-log-file\nFILE\n\ngets what happened in the container when it is removed", contained,
     containers, CODEEXEC_AT(user.container.log_file)},
    {"docker-start-timeout\nSECONDS\n15\nuntil a command has begun", contained, containers,
     CODEEXEC_AT(user.container.start_timeout)},
    {"docker-call-timeout\nSECONDS\n15\nof a small call of the program", contained, containers,
     CODEEXEC_AT(user.container.engine.call_timeout)},
    {"docker-run-timeout\nSECONDS\n60\nof making a container", contained, containers,
     CODEEXEC_AT(user.container.engine.run_timeout)},
    {"docker-pull-timeout\nSECONDS\n600\nof fetching an image", contained, containers,
     CODEEXEC_AT(user.container.engine.pull_timeout)},
    {"profile\nNAME\ncommands\ncommands, or user-container: the tools of one user's "
     "container\n\ncommands, user-container",
     contained, all, CODEEXEC_AT(profile)},
    {"user-id\nID\n\nwhose container, with profile user-container", contained, users,
     CODEEXEC_AT(user_id)},
    {"workspace-size\nSIZE\n512m\nof a user's /workspace", contained, users,
     CODEEXEC_AS(bytes_or_0, user.workspace_size)},
    {"artifacts-size\nSIZE\n256m\nof a user's /artifacts", contained, users,
     CODEEXEC_AS(bytes_or_0, user.artifacts_size)},
    {"max-artifact-size\nSIZE\n50m\nof a file of /artifacts that is given away", contained, users,
     CODEEXEC_AS(bytes_or_0, user.max_artifact)},
    {"place-host\nHOST\n\nmode ssh: the machine, as ssh calls it", elsewhere, ssh,
     CODEEXEC_AT(place_host), often},
    {"place-command\nWORDS\n\nmode command: leads to codeexec-mcp --place. A program that gives "
     "the streams of one elsewhere. Split into words as a shell does; no shell reads it",
     elsewhere, command, CODEEXEC_AT(place_command), often},
    {"place-agent-path\nPATH\ncodeexec-mcp\nof this program there", elsewhere, installed,
     CODEEXEC_AT(place_agent)},
    {"place-agent\nFILE\nthis program for containers, none for other places\na static codeexec-mcp "
     "of the processor there. It is copied to places that have none, and mounted into containers",
     elsewhere, agents, CODEEXEC_AT(user.container.agent)},
    {"place-workspace\nMODE\nshared, in pods remote\nshared: here and there, with the same files; "
     "remote: only there; copy: here, and copied there for each command\n\nshared, remote, copy",
     elsewhere, places, CODEEXEC_AT(place_workspace)},
    {"place-copy-files\nN\n100000\nwith copy: files and folders, at most. A workspace of more is "
     "refused before anything is sent",
     elsewhere, places, CODEEXEC_AT(place.copy_max_files)},
    {"place-copy-size\nSIZE\n1g\nwith copy: of all files together, at most", elsewhere, places,
     CODEEXEC_AS(bytes, place.copy_max_bytes)},
    {"place-copy-exclude\nPATTERN...\n\nwith copy: what is not copied, as lines of a .gitignore: "
     "node_modules/ /build '*.iso'",
     elsewhere, places, CODEEXEC_AT(place.copy_exclude)},
    {"place-copy-gitignore\n\n\nwith copy: what .gitignore files name is not copied", elsewhere,
     places, CODEEXEC_AT(place.copy_gitignore)},
    {"place-start-timeout\nSECONDS\n60\nthat a command waits for its job to begin, or its pod to "
     "be ready",
     elsewhere, made, CODEEXEC_AT(start_timeout)},
    {"place-pool\nN\n0\nplaces kept ready beside the one in use, with modes slurm and kubernetes",
     elsewhere, made, CODEEXEC_AT(place_pool)},
    {"place-keep-alive\nSECONDS\n30\nwithout a sign of life for so long each end gives up. "
     "Commands there are then killed",
     elsewhere, places, CODEEXEC_AT(place.keep_alive)},
    {"slurm-option\nWORD...\n\nmore options of salloc, without dashes: partition=debug mem=4G",
     elsewhere, slurm, CODEEXEC_AT(slurm.options)},
    {"kubernetes-option\nWORD...\n\nmore options of kubectl, without dashes: context=lab "
     "namespace=agents",
     elsewhere, kubernetes, CODEEXEC_AT(kubernetes.options)},
    {"kubernetes-image\nNAME\n\nof the pod that is made. Or one of the next two", elsewhere,
     kubernetes, CODEEXEC_AT(kubernetes.image)},
    {"kubernetes-pod-template\nFILE\n\na Pod of your own, as JSON or YAML", elsewhere, kubernetes,
     CODEEXEC_AT(kubernetes.pod_template)},
    {"kubernetes-warm-pool\nNAME\n\na SandboxWarmPool of agent-sandbox, which has pods ready",
     elsewhere, kubernetes, CODEEXEC_AT(kubernetes.warm_pool)},
    {"kubernetes-limit\nNAME=QUANTITY...\n\nwhat the pod gets and may have: memory=1Gi cpu=2",
     elsewhere, kubernetes, CODEEXEC_AT(kubernetes.limits)},
    {"kubernetes-claim\nNAME\n\na PersistentVolumeClaim for its /workspace. Without it that is the "
     "pod's own",
     elsewhere, kubernetes, CODEEXEC_AT(kubernetes.claim)},
    {"kubernetes-lifetime\nSECONDS\n86400\nafter which Kubernetes ends the pod", elsewhere,
     kubernetes, CODEEXEC_AT(kubernetes_lifetime)},
    // clang-format on
  };
};

#pragma GCC diagnostic pop
#undef CODEEXEC_AT
#undef CODEEXEC_AS

// The texts of all rows, one behind the other: packed, they take half of their size.
struct OptionTable {
  Option rows[std::size(OptionRows::rows)] = {};
  std::size_t size = 0;  // of the texts
};
constexpr OptionTable make_table(char* texts) {
  OptionTable table;
  Option* option = table.rows;
  for (const OptionRow& row : OptionRows::rows) {
    option->row_begin = static_cast<std::uint16_t>(table.size);
    for (const char c : std::string_view(row.text)) {
      if (texts) texts[table.size] = c;
      ++table.size;
    }
    option->row_end = static_cast<std::uint16_t>(table.size);
    option->group = row.group;
    option->use = row.use;
    option->kind = row.kind;
    option->offset = static_cast<std::uint16_t>(row.offset);
    option->is_often_needed = row.is_often_needed;
    ++option;
  }
  return table;
}
constexpr OptionTable option_table = make_table(nullptr);

struct OptionTexts {
  char all[option_table.size + 1] = {};
};
constexpr OptionTexts join_texts() {
  OptionTexts texts;
  make_table(texts.all);
  return texts;
}
constexpr OptionTexts option_texts = join_texts();
constexpr auto packed_options =
    pack<pack_text(option_texts.all, option_table.size, nullptr)>(option_texts.all);

}  // namespace

inline namespace inner {

const Option* const Option::table = option_table.rows;
const Option* Option::end() { return std::end(option_table.rows); }

std::string_view Option::row() const {
  static const std::string texts_of_rows = packed_options.text();
  return std::string_view(texts_of_rows).substr(row_begin, std::size_t(row_end) - row_begin);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
