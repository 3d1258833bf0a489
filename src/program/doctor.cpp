// --doctor: checks that commands can run, and prints a line for each thing that they need.
//
// For a container a probe runs in it, and its output is compared with the options: an engine may
// ignore bounds without an error.

#include "program/program_internal.hpp"

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "place/place.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Prints names and values of the surroundings of a command, one a line.
constexpr char probe_script[] =
    "exec 2>/dev/null; echo user $(id -u):$(id -g); "
    "( : >.codeexec-probe ) && rm -f .codeexec-probe && echo workspace yes; "
    "( : >/codeexec-probe ) && rm -f /codeexec-probe && echo root yes; "
    "while read -r i _; do case $i in lo:*) ;; *:*) echo interface $i;; esac; done </proc/net/dev; "
    "cd /sys/fs/cgroup; for f in memory.max memory/memory.limit_in_bytes; do "
    "read -r v <$f && echo memory $v; done; "
    "for f in pids.max pids/pids.max; do read -r v <$f && echo pids $v; done; :";

// The value of a name in that output; empty: it is not there.
std::string probed(const std::string& output, std::string_view key) {
  const std::string lines = concat("\n%", {output});
  const std::size_t at = lines.find(concat("\n% ", {key}));
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 2;
  return lines.substr(begin, lines.find('\n', begin) - begin);
}

// The steps of the examination, in their order. Each adds its lines; false: the next ones make no
// sense.

// The engine itself may not answer though its program is there. Docker and podman have the version
// in different members.
bool check_version(const ContainerExecutor& executor, DoctorReport& report) {
  const EngineOptions& engine = executor.container_options().engine;
  const auto info = ask_engine(engine, words_of({"info", "--format", "{{json .}}"}),
                               engine.call_timeout, "reach the container engine"sv);
  if (!info) return report.add("engine", false, "%", {info.error().message});
  const auto parsed = Json::parse(*info);
  if (!parsed) return report.add("engine", false, "%", {parsed.error().message});
  const std::string* version = &(*parsed)["ServerVersion"sv].as_string();
  if (version->empty()) version = &(*parsed)["version"sv]["Version"sv].as_string();
  if (version->empty())
    return report.add("engine", false, "no engine answers %", {in_quotes(engine.program)});
  return report.add("engine", true, "%, engine version %", {engine.program, *version});
}

bool check_image(const ContainerExecutor& executor, DoctorReport& report) {
  const ContainerOptions& wanted = executor.container_options();
  const auto image = inspect(wanted.engine, "image", wanted.image);
  if (!image) return report.add("image", false, "%", {image.error().message});
  if (!image->is_null()) return report.add("image", true, "% is here", {wanted.image});
  return report.add(
      "image", false, "% is not here: build it (sh docker/build.sh%), or pull it (% pull %)",
      {wanted.image, wanted.sudo ? " --sudo" : "", wanted.engine.program, wanted.image});
}

// For information: containers of other servers are no fault.
bool list_ours(const ContainerExecutor& executor, DoctorReport& report) {
  const EngineOptions& engine = executor.container_options().engine;
  auto ours = ask_engine(engine,
                         words_of({"ps", "-a", "--filter", "label=codeexec.managed=1", "--format",
                                   "{{.Names}} ({{.Status}})"}),
                         engine.call_timeout, "list containers"sv);
  if (!ours) {
    report.add("containers", false, "%", {ours.error().message});
    return true;
  }
  std::replace(ours->begin(), ours->end(), '\n', ' ');
  return report.add(
      "containers", true, "%%",
      {ours->empty() ? "none of codeexec are there" : "of codeexec, also of other programs: ",
       *ours});
}

// Commands run as the owner of the workspace, unless an option says otherwise. They must be able to
// write to it.
void check_user(const ContainerExecutor& executor, const std::string& probes,
                DoctorReport& report) {
  const bool writes = !probed(probes, "workspace").empty();
  report.add("workspace", writes, "%%",
             {executor.workspace(),
              writes ? " can be written to by commands"
                     : " cannot be written to by commands: give it to the user of the commands, or "
                       "make it a root that may be written to"});
  const std::string user = user_of(executor.container_options());
  const std::string runs_as = probed(probes, "user"sv);
  report.add(
      "user", runs_as == user || !is_number(std::string_view(user).substr(0, user.find(':'))),
      "commands run as %%",
      {runs_as,
       starts_with(runs_as, "0:"sv) ? ", root without capabilities: the workspace is root's" : ""});
}

// The network is compared both ways: a container that reaches nothing though it should is wrong,
// too. The bounds are read from the cgroup of the command, where both versions have them at two
// places.
void check_limits(const ContainerOptions& wanted, const std::string& probes, DoctorReport& report) {
  const bool alone = probed(probes, "interface"sv).empty();
  const std::string network_name = network(wanted);
  report.add("network", alone == (network_name == "none"), "network %%",
             {network_name, alone ? ": nothing is reached" : ""});
  std::string missing;
  for (const auto& [key, bound] :
       {std::pair<const char*, std::uint64_t>("memory", wanted.memory), {"pids", wanted.pids}})
    if (bound != 0 && probed(probes, key) != concat({bound})) append_all(missing, " %", {key});
  if (*wanted.read_only_root && !probed(probes, "root"sv).empty()) missing += " read_only_root";
  report.add(
      "limits", missing.empty(), "%%%",
      {missing.empty() ? "all bounds are in force" : "not in force:", missing,
       missing.empty() ? "" : " (the engine may not use cgroups for it: rootless, cgroup v1)"});
  if (const std::string weak = weakened_by(wanted); !weak.empty())
    report.add("options", false, "the container is held less by %", {weak});
}

bool check_commands(const ContainerExecutor& executor, DoctorReport& report) {
  if (const auto ok = executor.ensure(); !ok)
    return report.add("container", false, "%", {ok.error().message});
  const Result result = executor.run(probe_script);
  if (!report.add("command", result.succeeded(), "%", {result.summary()})) return false;
  check_user(executor, result.out, report);
  check_limits(executor.container_options(), result.out, report);
  // The first command has waited for the agent.
  const Result again = executor.run("true");
  return report.add(
      "agent", again.succeeded(), "a command takes % s",
      {seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(again.wall_time))});
}

// Colours are for people at a terminal who have not switched them off (no-color.org).
bool shows_colours() {
  const char* const off = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && !(off && *off) && !(terminal && terminal == "dumb"sv);
}

struct StateColour {
  std::string_view state;
  const char* colour;
};
constexpr StateColour state_colours[] = {
    {"ok   ", "\033[32m"}, {"warn ", "\033[33m"}, {"FAIL ", "\033[1;31m"}};

std::string coloured(std::string_view lines) {
  std::string result;
  while (!lines.empty()) {
    const std::string_view line = take_part(lines, '\n');
    for (const auto& [state, colour] : state_colours)
      if (starts_with(line, state))
        append_all(result, "%%\033[0m%\n", {colour, state, line.substr(state.size())});
  }
  return result;
}

}  // namespace

inline namespace inner {

bool DoctorReport::add(std::string_view subject, bool is_well, const char* form, Pieces values) {
  all_is_well = all_is_well && is_well;
  add_line(is_well ? "ok   " : "FAIL ", subject, concat(form, values));
  return is_well;
}

void DoctorReport::doubt(std::string_view subject, const char* form, Pieces values) {
  add_line("warn ", subject, concat(form, values));
}

void DoctorReport::add_line(const char* state, std::string_view subject, std::string_view message) {
  append_all(text, "%%%%\n",
             {state, printable(subject), message.empty() ? "" : ": ", printable(message)});
}

int DoctorReport::print() const {
  return print_answer(shows_colours() ? coloured(text) : text, all_is_well ? 0 : 1);
}

// The probe is a command of ours: it must not be refused by the policy, recorded, or leave a
// container or a log behind.
DoctorReport examine_container(ContainerExecutorOptions options) {
  DoctorReport report;
  options.policy = {};
  options.policy.disabled_rules = {"rm-protected"};  // a file of its own in /
  options.delete_guard = false;
  options.audit_file.clear();
  options.audit_key.clear();
  options.audit_syslog.clear();
  options.on_audit = {};
  options.container.persistent = false;
  options.container.system_packages = {};
  options.container.python_packages = {};
  options.container.npm_packages = {};
  options.container.log_file.clear();
  const auto executor = ContainerExecutor::create(options);
  if (!executor) {
    report.add("options", false, "%", {executor.error().message});
    return report;
  }
  for (const auto step : {check_version, check_image, list_ours, check_commands})
    if (!step(*executor, report)) break;
  return report;
}

DoctorReport examine_place(const ServerConfig& config, const CommandPlace& place) {
  DoctorReport report;
  if (config.use & Option::places) {
    const PlaceFacts facts = static_cast<const PlaceExecutor&>(*place.executor).facts();
    report.add("place", true, "% (%), agent %, user %, home %",
               {facts.host, facts.machine, facts.version, facts.uid, facts.home});
    // A place that was reached without a workspace of its own has the same files.
    report.add("workspace", true, "%%",
               {place.executor->workspace(),
                facts.workspace.empty() ? " has the same files there" : " is only there"});
  }
  examine_protection(config, place, report);
  if (const std::string note = note_of_no_project(config); !note.empty())
    report.doubt("project", "%", {note});
  return report;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
