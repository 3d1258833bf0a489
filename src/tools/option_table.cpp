// The table of options.

#include "tools/options_internal.hpp"
#include "tools/tools.hpp"

#include "base/base_internal.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"
#include "shells/shells.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::vector<Option> option_table(ServerConfig& config) {
  using Where = Option::Where;
  using Kind = Option::Target::Kind;
  LocalOptions& local = config.local;
  SandboxOptions& sandbox = local.sandbox;
  Limits& limits = sandbox.limits;
  ContainerOptions& box = config.container;
  KubernetesOptions& cluster = config.kubernetes;
  std::vector<Option> table;
  table.reserve(128);
  // A row's lines: its name, what --help calls its value, its help, and another key of it.
  const auto add = [&table](const char* lines, Option::Target target,
                            Option::Where use = Option::commands) {
    std::string_view row = lines;
    const std::string_view name = take_part(row, '\n');
    const std::string_view value = take_part(row, '\n');
    const std::string_view help = take_part(row, '\n');
    table.push_back({name, value, help, row, target, use});
  };
  add("allowed-paths\nDIR...\n"
      "where commands may work; none: anywhere",
      &local.roots);
  add("read-only\nDIR...\n"
      "where they may work, but not change anything",
      &config.read_only);
  add("workspace\nDIR\n"
      "where commands start (default: the current directory)",
      &local.workspace);
  add("timeout\nSECONDS\n"
      "for commands that give none (default: 60)",
      &local.timeout, Where::all);
  add("max-timeout\nSECONDS\n"
      "the most a command may ask for (default: 3600)",
      &local.max_timeout);
  add("max-output-size\nSIZE\n"
      "shown per stream: its head and its tail (default: 30000)",
      {Kind::size, &config.max_output});
  add("policy\nMODE\n"
      "strict: understands the shell (default); compat: as MassGen judges",
      &config.policy_mode, Where::all);
  add("allowed-commands\nPATTERN...\n"
      "every command of a script must match one of these\nwhitelist_patterns",
      &local.policy.allowed, Where::all);
  add("allow-usual\n\n"
      "and cd, echo, cat, grep, head ... where they only read or print",
      &local.policy.allow_usual, Where::all);
  add("blocked-commands\nPATTERN...\n"
      "no command of a script may match one of these\nblacklist_patterns",
      &local.policy.blocked, Where::all);
  add("disable-rule\nNAME...\n"
      "switch rules off; --list-rules tells what there are",
      &local.policy.disabled_rules, Where::all);
  add("delete-guard\n\n"
      "refuse to delete files that no command has read or made",
      &local.delete_guard);
  add("sandbox\nMODE\n"
      "off, best-effort, strict; default: best-effort with allowed paths",
      &config.sandbox, Where::kernel);
  add("network\nMODE\n"
      "what a sandbox lets them reach: host (default), none, loopback",
      &config.network, Where::kernel);
  add("private-home\nMODE\n"
      "HOME and TMPDIR in a sandbox: executor (default), command, off",
      &config.private_home, Where::local);
  add("unix-sockets\n\n"
      "let them reach sockets with a path, where the network is off",
      &sandbox.unix_sockets, Where::kernel);
  add("shared-memory\n\n"
      "let them use /dev/shm, as Python's multiprocessing does",
      &sandbox.shared_memory, Where::kernel);
  add("terminals\n\n"
      "let them make pseudo-terminals; they reach the user's others, too",
      &sandbox.terminals, Where::kernel);
  add("pid-namespace\n\n"
      "a process table of their own",
      &sandbox.pid_namespace, Where::kernel);
  add("protected-paths\nNAME...\n"
      "keep these below each writable directory: .git/hooks ...",
      &sandbox.protected_paths, Where::kernel);
  add("no-watch-files\n\n"
      "do not look for changes of .git/hooks, .vscode and the like",
      &config.no_watch_files, Where::local);
  add("no-supervisor\n\n"
      "without a sandbox: let daemons live on after their command",
      &config.no_supervisor, Where::local);
  add("limit-cpu\nSECONDS\n"
      "whole ones, of each process of a command",
      &limits.cpu_time, Where::kernel);
  add("limit-memory\nSIZE\n"
      "of a command; without cgroups of each process, or refused",
      {Kind::size, &limits.memory}, Where::kernel);
  add("limit-address-space\nSIZE\n"
      "of each process; better --limit-memory",
      {Kind::size, &limits.address_space}, Where::kernel);
  add("limit-processes\nN\n"
      "and threads of a command; without cgroups as --limit-memory",
      &limits.processes, Where::kernel);
  add("limit-open-files\nN\n"
      "descriptors of each process",
      &limits.open_files, Where::kernel);
  add("limit-file-size\nSIZE\n"
      "of each file that is written",
      {Kind::size, &limits.file_size}, Where::kernel);
  add("limit-disk\nSIZE\n"
      "by which the disk may fill up during a command",
      {Kind::size, &limits.disk}, Where::kernel);
  add("execution-mode\nMODE\n"
      "local (default), docker, ssh, slurm, kubernetes, command",
      &config.execution_mode, Where::all);
  add("place-command\nWORDS\n"
      "with mode command: what leads to a codeexec-mcp --place elsewhere",
      &config.place_command, Where::command);
  add("place-host\nHOST\n"
      "with mode ssh: the machine, as ssh calls it",
      &config.place_host, Where::ssh);
  add("place-agent-path\nPATH\n"
      "of this program there (default: codeexec-mcp)",
      &config.place_agent, Where::installed);
  add("place-workspace\nMODE\n"
      "shared (default), remote: only there (default in pods), or copy",
      &config.place_workspace, Where::places);
  add("place-copy-files\nN\n"
      "of a workspace that is copied, at most (default: 100000)",
      &config.copy.max_files, Where::places);
  add("place-copy-size\nSIZE\n"
      "of all its files, at most (default: 1g)",
      {Kind::size, &config.copy.max_bytes}, Where::places);
  add("place-copy-exclude\nPATTERN...\n"
      "what is not copied, as lines of a .gitignore",
      &config.copy.exclude, Where::places);
  add("place-copy-gitignore\n\n"
      "what .gitignore files name is not copied",
      &config.copy.gitignore, Where::places);
  add("place-start-timeout\nSECONDS\n"
      "that a command waits for its place to be made (default: 60)",
      &config.start_timeout, Where::made);
  add("place-pool\nN\n"
      "places kept ready beside the one in use (default: 0)",
      &config.place_pool, Where::made);
  add("slurm-option\nWORD...\n"
      "more options of salloc, such as partition=debug or mem=4G",
      &config.slurm.options, Where::slurm);
  add("kubernetes-option\nWORD...\n"
      "more options of kubectl, such as context=lab or namespace=agents",
      &cluster.options, Where::kubernetes);
  add("kubernetes-image\nNAME\n"
      "of the pod that commands run in",
      &cluster.image, Where::kubernetes);
  add("kubernetes-limit\nNAME=QUANTITY...\n"
      "what the pod gets and may have: memory=1Gi cpu=2",
      &cluster.limits, Where::kubernetes);
  add("kubernetes-claim\nNAME\n"
      "a PersistentVolumeClaim for its /workspace",
      &cluster.claim, Where::kubernetes);
  add("kubernetes-pod-template\nFILE\n"
      "your own pod in place of an image, as JSON or YAML",
      &cluster.pod_template, Where::kubernetes);
  add("kubernetes-warm-pool\nNAME\n"
      "take the pod from this pool of agent-sandbox",
      &cluster.warm_pool, Where::kubernetes);
  add("kubernetes-lifetime\nSECONDS\n"
      "after which Kubernetes ends the pod (default: 86400)",
      &config.kubernetes_lifetime, Where::kubernetes);
  add("place-keep-alive\nSECONDS\n"
      "without a sign of life, then the connection is lost (default: 30)",
      &config.keep_alive, Where::places);
  add("docker-program\nPROGRAM\n"
      "what speaks to the engine: docker (default), podman, nerdctl",
      &box.engine.program, Where::containers);
  add("docker-context\nNAME\n"
      "of the engine, for the program's --context",
      &box.engine.context, Where::containers);
  add("docker-host\nADDRESS\n"
      "of the engine, for the program's --host",
      &box.engine.host, Where::containers);
  add("docker-call-timeout\nSECONDS\n"
      "of a small call of the program (default: 15)",
      &box.engine.call_timeout, Where::containers);
  add("docker-run-timeout\nSECONDS\n"
      "of making a container (default: 60)",
      &box.engine.run_timeout, Where::containers);
  add("docker-pull-timeout\nSECONDS\n"
      "of fetching an image (default: 600)",
      &box.engine.pull_timeout, Where::containers);
  add("docker-image\nIMAGE\n"
      "default: codeexec/runtime:latest, or -sudo, or codeexec/executor",
      &box.image, Where::containers);
  add("docker-image-policy\nPOLICY\n"
      "pull it: missing (default), never, always",
      &config.image_policy, Where::containers);
  add("docker-network-mode\nMODE\n"
      "of the container: none (default), bridge, host",
      &config.container_network, Where::containers);
  add("docker-network\nNAME\n"
      "a network of the engine's own, in place of a mode",
      &box.network_name, Where::containers);
  add("docker-dns\nADDRESS...\n"
      "name servers",
      &config.dns, Where::containers);
  add("docker-add-host\nNAME:ADDRESS...\n"
      "names with their addresses",
      &config.add_host, Where::containers);
  add("docker-runtime\nNAME\n"
      "of the engine, such as runsc (gVisor)",
      &config.runtime, Where::containers);
  add("docker-gpus\nGPUS\n"
      "such as all",
      &config.gpus, Where::containers);
  add("docker-option\nWORD...\n"
      "more of its `run`, such as device=/dev/fuse; see the README",
      &box.engine_options, Where::containers);
  add("docker-memory-limit\nSIZE\n"
      "of the container, such as 512m; 0: none (default: 2g)",
      {Kind::size_or_0, &box.memory}, Where::containers);
  add("docker-cpu-limit\nCPUS\n"
      "such as 1.5; 0: none (default: 2)",
      &box.cpus, Where::containers);
  add("docker-pids-limit\nN\n"
      "processes and threads; 0: none (default: 256)",
      {Kind::whole_or_0, &box.pids}, Where::containers);
  add("docker-shm-size\nSIZE\n"
      "of /dev/shm (default: 64m)",
      {Kind::size_or_0, &box.shm_size}, Where::containers);
  add("docker-tmp-size\nSIZE\n"
      "of /tmp (default: 512m)",
      {Kind::size_or_0, &box.tmp_size}, Where::containers);
  add("docker-read-only-root\nBOOL\n"
      "default: true, unless sudo or packages need to write",
      &box.read_only_root, Where::containers);
  add("docker-user\nUSER\n"
      "UID:GID or a name (default: the owner of the workspace)",
      &box.user, Where::containers);
  add("docker-mount\nSRC[:DST][:ro|:rw]...\n"
      "more of the host; default: :ro",
      &box.mounts, Where::containers);
  add("docker-credentials\nJSON\n"
      "what of the user's own it gets; see the README",
      &config.credentials, Where::containers);
  add("docker-packages\nJSON\n"
      "to install: {\"preinstall\": {\"python\": [\"requests>=2\"]}}",
      &config.packages, Where::containers);
  add("docker-packages-required\n\n"
      "a package that cannot be had fails the container",
      &config.packages_required, Where::containers);
  add("docker-cache\nNAME\n"
      "a volume that keeps what pip, uv, npm, cargo and go fetch",
      &box.cache, Where::containers);
  add("docker-persistent\n\n"
      "keep the container and find it again (with its agent-id)",
      &box.persistent, Where::containers);
  add("place-agent\nFILE\n"
      "a static codeexec-mcp for containers (default: this) or a place",
      &box.agent, Where::agents);
  add("docker-start-timeout\nSECONDS\n"
      "until a command has begun (default: 15)",
      &box.start_timeout, Where::containers);
  add("docker-log-file\nFILE\n"
      "gets what happened in the container when it is removed",
      &box.log_file, Where::containers);
  add("tools-path\nDIR\n"
      "/tools of the container (profile user-container: ./tools)",
      &config.user.tools_dir, Where::containers);
  add("skills-path\nDIR\n"
      "/skills of the container (profile user-container: ./skills)",
      &config.user.skills_dir, Where::containers);
  add("profile\nNAME\n"
      "commands (default); user-container: tools of one user's container",
      &config.profile, Where::all);
  add("user-id\nID\n"
      "whose container, with profile user-container",
      &config.user_id, Where::users);
  add("workspace-size\nSIZE\n"
      "of a user's /workspace (default: 512m)",
      {Kind::size_or_0, &config.user.workspace_size}, Where::users);
  add("artifacts-size\nSIZE\n"
      "of a user's /artifacts (default: 256m)",
      {Kind::size_or_0, &config.user.artifacts_size}, Where::users);
  add("max-artifact-size\nSIZE\n"
      "of a file of /artifacts that is given away (default: 50m)",
      {Kind::size_or_0, &config.user.max_artifact}, Where::users);
  add("agent-id\nID\n"
      "for the audit log; whose container it is",
      &local.agent_id);
  add("instance-id\nID\n"
      "which of its containers; has no effect in local mode",
      &box.instance_id, Where::all);
  add("enable-sudo\n\n"
      "in a container, whose image then has it; no effect in local mode\ndocker_enable_sudo",
      &config.enable_sudo, Where::all);
  add("local-skills-directory\nDIR\n"
      "linked as .agent/skills in the workspace, if not there",
      &local.skills_dir, Where::local);
  add("command-prefix\nWORDS\n"
      "put before every command line, for instance \"uv run\"\ncommand_execution_prefix",
      &local.environment.command_prefix);
  add("venv-path\nDIR\n"
      "Python virtual environment for every command\ncommand_execution_venv_path",
      &local.environment.venv_path);
  add("no-auto-venv\n\n"
      "do not use the .venv of the work_dir or workspace",
      &config.no_auto_venv);
  add("no-git-identity\n\n"
      "keep the name and address of the user's git from their commits",
      &config.no_git_identity);
  add("keep-env\nNAME...\n"
      "variables of the server that commands see, too",
      &local.environment.keep, Where::local);
  add("set-env\nNAME=VALUE...\n"
      "variables for all commands",
      &local.environment.set);
  add("secret-env\nNAME...\n"
      "the same, but their values are masked in what commands print",
      &local.environment.secret);
  add("shell\nPATH\n"
      "runs the commands (default: /bin/sh)",
      &local.shell);
  add("audit-file\nFILE\n"
      "append a line of JSON for every command",
      &local.audit_file, Where::all);
  add("audit-output\nSIZE\n"
      "of each stream in these lines: its head and its tail (default: 0)",
      {Kind::size_or_0, &config.audit_output}, Where::all);
  add("spill-dir\nDIR\n"
      "long outputs go whole to files here (default: a private folder)",
      &local.spill_dir);
  add("max-concurrent\nN\n"
      "commands at a time; others wait (default: 16)",
      &config.max_concurrent, Where::all);
  add("run-in-background-after\nSECONDS\n"
      "what still runs then goes on in the background",
      &config.tools.run_in_background_after);
  add("max-background-shells\nN\n"
      "running in the background at a time (default: 10)",
      &config.max_background_shells);
  add("max-background-time\nSECONDS\n"
      "the most one may take (default: no limit)",
      &config.tools.shells.max_timeout);
  add("calls-per-minute\nN\n"
      "of each tool; more are refused (default: no limit)",
      &config.tools.fair_use.calls_per_minute);
  add("running-time\nSECONDS\n"
      "of all commands together; then all are refused",
      &config.tools.fair_use.running_time);
  add("disable-tool\nNAME...\n"
      "tools that are not offered",
      &config.tools.disabled_tools);
  add("full-results\n\n"
      "all keys of a result, and the whole command in it",
      &config.tools.full_results);
  return table;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
