// What commands in containers need, checked.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What a command in a container tells of the place, a line for each thing: its name and the value.
constexpr char probe_script[] =
    "exec 2>/dev/null; echo user $(id -u):$(id -g); "
    "( : >.codeexec-probe ) && rm -f .codeexec-probe && echo workspace yes; "
    "( : >/codeexec-probe ) && rm -f /codeexec-probe && echo root yes; "
    "while read -r i _; do case $i in lo:*) ;; *:*) echo interface $i;; esac; done </proc/net/dev; "
    "cd /sys/fs/cgroup; for f in memory.max memory/memory.limit_in_bytes; do "
    "read -r v <$f && echo memory $v; done; "
    "for f in pids.max pids/pids.max; do read -r v <$f && echo pids $v; done; :";

std::string probed(const std::string& output, std::string_view key) {
  const std::string lines = concat("\n%", {output});
  const std::size_t at = lines.find(concat("\n% ", {key}));
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 2;
  return lines.substr(begin, lines.find('\n', begin) - begin);
}

// In what the engine says of itself; empty: it says none.
Expected<std::string> version_of(std::string_view info) {
  const auto parsed = Json::parse(info);
  if (!parsed) return parsed.failure();
  const std::string& version = (*parsed)["ServerVersion"sv].as_string();
  return version.empty() ? (*parsed)["version"sv]["Version"sv].as_string() : version;
}

}  // namespace

std::vector<EngineCheck> check_engine(const ContainerExecutorOptions& options) {
  std::vector<EngineCheck> checks;
  const auto add = [&checks](const char* subject, bool ok, const char* message, Pieces values) {
    checks.push_back({subject, ok, concat(message, values)});
    return ok;
  };
  ContainerExecutorOptions probe = options;
  probe.policy = {};
  probe.policy.disabled_rules = {"rm-protected"};  // a file of its own in /
  probe.delete_guard = false;
  probe.audit_file.clear();
  probe.on_audit = {};
  probe.container.persistent = false;
  probe.container.packages = {};
  probe.container.log_file.clear();
  const auto executor = ContainerExecutor::create(probe);
  if (!executor) {
    add("options", false, "%", {executor.error().message});
    return checks;
  }
  const Container& container = executor->container();
  const ContainerOptions& wanted = container.options();
  const EngineOptions& engine = wanted.engine;
  auto told = ask_engine(engine, words_of({"info", "--format", "{{json .}}"}), engine.call_timeout,
                         "reach the container engine"sv);
  if (told) told = version_of(*told);
  if (!told) {
    add("engine", false, "%", {told.error().message});
    return checks;
  }
  if (told->empty()) {
    add("engine", false, "no engine answers %", {in_quotes(engine.program)});
    return checks;
  }
  add("engine", true, "%, engine version %", {engine.program, printable(*told)});
  const auto image = inspect(engine, "image", wanted.image);
  if (!image) {
    add("image", false, "%", {image.error().message});
    return checks;
  }
  if (image->is_null()) {
    add("image", false, "% is not here: build it (sh docker/build.sh%), or pull it (% pull %)",
        {wanted.image, wanted.sudo ? " --sudo" : "", engine.program, wanted.image});
    return checks;
  }
  add("image", true, "% is here", {wanted.image});
  auto ours = ask_engine(engine,
                         words_of({"ps", "-a", "--filter", "label=codeexec.managed=1", "--format",
                                   "{{.Names}} ({{.Status}})"}),
                         engine.call_timeout, "list containers"sv);
  if (!ours) {
    add("containers", false, "%", {ours.error().message});
  } else {
    std::replace(ours->begin(), ours->end(), '\n', ' ');
    add("containers", true, "%%",
        {ours->empty() ? "none of codeexec are there" : "of codeexec, also of other programs: ",
         printable(*ours)});
  }
  if (const auto ok = container.ensure(); !ok) {
    add("container", false, "%", {ok.error().message});
    return checks;
  }
  const Result result = executor->run(Command::shell(probe_script));
  if (!add("command", result.succeeded(), "%", {result.summary()})) return checks;
  const auto has = [&result](std::string_view key) { return !probed(result.out, key).empty(); };
  const bool writes = has("workspace");
  add("workspace", writes, "%%",
      {printable(executor->workspace()),
       writes
           ? " can be written to by commands"
           : " cannot be written to by commands: give it to the user of the commands, or make it "
             "a root that may be written to"});
  const std::string user = user_of(wanted);
  const std::string runs_as = probed(result.out, "user"sv);
  add("user", runs_as == user || !is_number(std::string_view(user).substr(0, user.find(':'))),
      "commands run as %%",
      {printable(runs_as),
       starts_with(runs_as, "0:"sv) ? ", root without capabilities: the workspace is root's" : ""});
  const bool alone = !has("interface"sv);
  const std::string network_name = network(wanted);
  add("network", alone == (network_name == "none"), "network %%",
      {network_name, alone ? ": nothing is reached" : ""});
  std::string missing;
  const auto check_bound = [&](const char* key, std::uint64_t bound) {
    if (bound != 0 && probed(result.out, key) != std::to_string(bound))
      append_all(missing, " %", {key});
  };
  check_bound("memory", wanted.memory);
  check_bound("pids", wanted.pids);
  if (*wanted.read_only_root && has("root"sv)) missing += " read_only_root";
  if (missing.empty())
    add("limits", true, "all bounds are in force", {});
  else
    add("limits", false,
        "not in force:% (the engine may not use cgroups for it: rootless, cgroup v1)", {missing});
  if (const std::string weak = weakened_by(wanted); !weak.empty())
    add("options", false, "the container is held less by %", {weak});
  const Result again = executor->run("true");
  add("agent", again.succeeded(), "a command takes % s",
      {seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(again.wall_time))});
  return checks;
}

}  // namespace v0_1
}  // namespace codeexec
