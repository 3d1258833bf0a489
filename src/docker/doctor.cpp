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
  const std::string lines = concat({"\n", output});
  const std::size_t at = lines.find(concat({"\n", key, " "}));
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 2;
  return lines.substr(begin, lines.find('\n', begin) - begin);
}

}  // namespace

std::vector<EngineCheck> check_engine(const ContainerExecutorOptions& options) {
  std::vector<EngineCheck> checks;
  const auto add = [&checks](const char* subject, bool ok, std::string message) {
    checks.push_back({subject, ok, std::move(message)});
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
    add("options", false, executor.error().message);
    return checks;
  }
  const Container& container = executor->container();
  const ContainerOptions& wanted = container.options();
  const EngineOptions& engine = wanted.engine;
  const auto told = ask_engine(engine, {"info", "--format", "{{json .}}"}, engine.call_timeout,
                               "reach the container engine");
  const auto info = told ? Json::parse(*told) : Expected<Json>(told.error());
  std::string version = info ? (*info)["ServerVersion"].as_string() : std::string();
  if (info && version.empty()) version = (*info)["version"]["Version"].as_string();
  if (!add("engine", !version.empty(),
           !info             ? info.error().message
           : version.empty() ? concat({"no engine answers ", quoted(engine.program)})
                             : concat({engine.program, ", engine version ", printable(version)})))
    return checks;
  const auto image = inspect(engine, "image", {wanted.image});
  if (!add("image", image && !image->is_null(),
           !image             ? image.error().message
           : image->is_null() ? concat({wanted.image, " is not here: build it (sh docker/build.sh",
                                        wanted.sudo ? " --sudo" : "", "), or pull it (",
                                        engine.program, " pull ", wanted.image, ")"})
                              : concat({wanted.image, " is here"})))
    return checks;
  if (const auto ok = container.ensure(); !ok) {
    add("container", false, ok.error().message);
    return checks;
  }
  const Result result = executor->run(Command::shell(probe_script));
  if (!add("command", result.succeeded(), result.summary())) return checks;
  const auto has = [&result](std::string_view key) { return !probed(result.out, key).empty(); };
  const bool writes = has("workspace");
  add("workspace", writes,
      concat({printable(executor->workspace()),
              writes ? " can be written to by commands"
                     : " cannot be written to by commands: give it to the user of the commands, "
                       "or make it a root that may be written to"}));
  const std::string user = user_of(wanted);
  const std::string runs_as = probed(result.out, "user");
  const bool expected = runs_as == user || !is_number(user.substr(0, user.find(':')));
  add("user", expected,
      concat({"commands run as ", printable(runs_as),
              starts_with(runs_as, "0:") ? ", root without capabilities: the workspace is root's"
                                         : ""}));
  const bool alone = !has("interface");
  add("network", alone == (wanted.network == ContainerNetwork::none),
      concat({"network ", name(wanted.network), alone ? ": nothing is reached" : ""}));
  const auto in_force = [&](const char* key, std::uint64_t bound) {
    return bound == 0 || probed(result.out, key) == std::to_string(bound);
  };
  std::string missing;
  if (!in_force("memory", wanted.memory)) missing += " memory";
  if (!in_force("pids", wanted.pids)) missing += " pids";
  if (*wanted.read_only_root && has("root")) missing += " read_only_root";
  add("limits", missing.empty(),
      missing.empty() ? "all bounds are in force"
                      : concat({"not in force:", missing,
                                " (the engine may not use cgroups for it: rootless, cgroup v1)"}));
  const Result again = executor->run("true");
  add("warm", again.succeeded(),
      concat({"a command takes ",
              seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(again.wall_time)),
              " s"}));
  return checks;
}

}  // namespace v0_1
}  // namespace codeexec
