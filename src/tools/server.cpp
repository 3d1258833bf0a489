// The server program.
//
//   server_main
//     run_next_fastmcp                    called as fastmcp, for another server of MassGen
//     read_command_line, answer_at_once   --help and others that need nothing: print and return
//     place_main                          --place: this is the agent at the far end
//     list_places                         --places
//     settle_options
//     serve_user                          profile user-container: containers by users
//     serve_commands                      create_place, then --doctor, --sandbox-report, --check,
//                                         --run, --replay or serve()
//
// Nothing but the protocol, or the answer to such an option, is written to standard output.

#include "tools/client_files_internal.hpp"
#include "tools/options_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "cluster/cluster.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "proxy/proxy.hpp"
#include "report/report_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Turns SIGTERM, SIGINT and SIGHUP into a cancelled token. The signals are blocked in this thread,
// hence in all that it starts later, and taken by one thread of its own; so nothing happens inside
// a signal handler.
class TerminationSignals {
 public:
  TerminationSignals() {
    sigemptyset(&signals_);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, number);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    error_ = start_thread(&thread_, wait_for_signal, this);
  }
  ~TerminationSignals() {
    if (error_ == 0) {
      if (!token_.cancelled()) ::pthread_kill(thread_, SIGTERM);
      ::pthread_join(thread_, nullptr);
    }
    take_pending();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;
  const CancelToken& token() const { return token_; }
  int error() const { return error_; }  // an errno, or 0

 private:
  static void* wait_for_signal(void* self) {
    auto& signals = *static_cast<TerminationSignals*>(self);
    int number = 0;
    ::sigwait(&signals.signals_, &number);
    signals.token_.cancel();
    return nullptr;
  }

  // A second signal during the end would kill the program as soon as the mask is lifted.
  void take_pending() {
    sigset_t pending;
    sigpending(&pending);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
      if (sigismember(&pending, number) != 1) continue;
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, number);
      int taken = 0;
      ::sigwait(&one, &taken);
    }
  }

  sigset_t signals_ = {};
  sigset_t before_ = {};
  CancelToken token_ = {};
  pthread_t thread_ = {};
  int error_ = 0;
};

}  // namespace

inline namespace inner {

bool print(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

int fail(int status, const std::string& message) {
  warn(message);
  return status;
}

int print_answer(const std::string& text, int status) {
  return print(text) ? status : fail(1, "cannot write to standard output");
}

}  // namespace inner

namespace {

// Removes the variables of this process that commands do not see; the server needs no others. They
// are overwritten in their memory, which /proc/PID/environ shows to commands of root. Call it
// before there are other threads.
void drop_variables(EnvironmentOptions options, bool container) {
  // The program that speaks to the engine finds it, and its way there, by these.
  if (container)
    add_words(options.keep,
              {"DOCKER_*", "CONTAINER*", "NERDCTL_*", "REGISTRY_AUTH_FILE", "XDG_*", "SSH_*",
               "SSL_CERT_*", "DBUS_SESSION_BUS_ADDRESS", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
               "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"});
  char** kept = ::environ;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = std::min(text.find('='), text.size());
    if (is_kept(text.substr(0, equals), options))
      *kept++ = *entry;
    else
      std::memset(*entry, 0, text.size());
  }
  if (kept) *kept = nullptr;
}

// In strict mode a pattern must match a whole command. A pattern without signs, such as `git push`
// in lists for other systems, is likely meant to match it with arguments, too.
void warn_of_bare_patterns(const ServerConfig& config) {
  if (config.policy_mode != "strict") return;
  const PolicyOptions& policy = config.local.policy;
  for (const bool asks : {false, true})
    for (const std::string& pattern : asks ? policy.ask_commands : policy.blocked) {
      if (pattern.find_first_of("\\^$.|?*+()[]{}") != std::string::npos) continue;
      const std::string shown = printable(pattern);
      warn(concat("%: '%' matches only this exact command; write '%( .*)?' to % it with arguments",
                  {asks ? "ask_commands" : "blocked_commands", shown, shown,
                   asks ? "ask about" : "refuse"}));
    }
}

// Started elsewhere, as clients do, without a workspace every command would be refused.
void warn_of_workspace(const Executor& executor) {
  const PathRules rules = executor.file_rules();
  if (!rules.restricted() || rules.permission(executor.workspace()) != Permission::none) return;
  warn(
      concat("workspace: commands start in %, which is not in allowed_paths: each needs a "
             "work_dir, or set the workspace",
             {printable(executor.workspace())}));
}

// A home directory has the keys and settings of all programs in it.
void warn_of_wide_roots(const ServerConfig& config) {
  if (config.use != Option::local || config.local.sandbox.mode == SandboxMode::off) return;
  for (const Root& root : config.local.roots) {
    const std::string problem = project_problem(root.path);
    if (problem.empty() || root.permission == Permission::none) continue;
    const bool writes = root.permission == Permission::write;
    warn(concat("%: % %: commands can % all that is in it; name the folder of a project",
                {!writes                ? "read_only"
                 : config.narrows_roots ? "allowed_paths"
                                        : "workspace",
                 printable(root.path), problem, writes ? "change" : "read"}));
  }
}

// Warns once that the sandbox has gaps here: an operator relies on it.
void warn_of_gaps(const SandboxReport& report) {
  if (report.mode == SandboxMode::off || report.missing.empty()) return;
  warn(concat("sandbox: missing here: %", {printable(joined(report.missing, "; "sv))}));
}

std::string no_thread(int error) { return concat("cannot start a thread: %", {errno_text(error)}); }

// --explain: the report and its rules under the names that these begin with.
std::string explained(const SandboxReport& report) {
  std::string text = concat("mode %, network %, Landlock ABI %\n",
                            {name(report.mode), name(report.network), report.landlock_abi});
  for (const std::string& feature : report.missing)
    append_all(text, "missing: %\n", {printable(feature)});
  if (report.rules.empty()) text += "there are no rules: nothing is enforced here\n";
  std::string_view heading;
  for (const std::string& rule : report.rules) {
    std::string_view left = rule;
    const std::string_view feature = take_part(left, ':');
    if (feature != heading) append_all(text, "\n%\n", {printable(feature)});
    heading = feature;
    text += ' ';  // and the blank that the rule begins with
    add_wrapped(text, printable(left), 4);
  }
  return text;
}

// --sandbox-report. The status is 1 if something is missing.
int print_report(const SandboxReport& report, const Invocation& invocation) {
  Json object;
  set_member(object, "mode", name(report.mode));
  set_member(object, "network", name(report.network));
  set_member(object, "landlock_abi", report.landlock_abi);
  set_member(object, "enforced", list_of(report.enforced));
  set_member(object, "missing", list_of(report.missing));
  if (invocation.explain) set_member(object, "rules", list_of(report.rules));
  const bool as_text = invocation.explain && !invocation.json;
  return print_answer(as_text ? explained(report) : object.dump() + "\n",
                      report.missing.empty() ? 0 : 1);
}

int print_result(const Result& result) {
  if (!print(to_json(result).dump() + "\n")) return fail(1, "cannot write to standard output");
  if (result.outcome == Outcome::refused || result.outcome == Outcome::not_started) return 125;
  return result.succeeded() ? 0 : 1;
}

// --run. The result has the whole output up to max_output, and SIGTERM cancels the command.
int run_once(const Executor& executor, const ServerConfig& config, const std::string& script,
             const CancelToken& stop) {
  Command command = Command::shell(script);
  command.max_output = static_cast<std::size_t>(config.max_output);
  command.cancel = stop;
  Result result = executor.run(command);
  add_note(result.notes, "%", {note_of_no_project(config)});
  return print_result(result);
}

// A person who starts the server on a terminal would see nothing: it waits for a client's messages.
void greet(const ServerConfig& config) {
  if (!config.greeting.empty()) return warn(config.greeting);
  if (::isatty(STDIN_FILENO) == 0) return;
  std::fputs(
      "codeexec-mcp is an MCP server: a client starts it, and speaks to it on standard input.\n"
      "  codeexec-mcp --client-config claude-code --write   adds it to a client\n"
      "  codeexec-mcp --run 'echo hello'                    tries it\n"
      "  codeexec-mcp --help                                prints the options\n"
      "It now waits for a client's messages. Ctrl-C ends it.\n",
      stderr);
}

// Who started the server without a word on folders may expect that commands work anywhere.
void warn_of_confinement(const ServerConfig& config, const Executor& executor) {
  if (!config.is_bare || config.use != Option::local) return;
  const std::string note = note_of_no_project(config);
  if (!note.empty()) return warn(concat("%; --sandbox off lets them work anywhere", {note}));
  warn(
      concat("commands are confined to %, where the server was started, or to the roots of the "
             "client: --allowed-paths DIR names others, --sandbox off lets them work anywhere",
             {printable(executor.workspace())}));
}

// Serves the tools that `add` adds.
int serve(const ServerConfig& config, std::string instructions, const CancelToken& stop,
          FunctionRef<Expected<void>(mcp::Server&)> add) {
  mcp::ServerOptions options;
  options.name = "codeexec";
  options.title = "Command Execution";
  options.version = CODEEXEC_VERSION_STRING;
  options.instructions = std::move(instructions);
  options.announced = shell_uris;
  options.ask_roots = config.takes_roots;
  options.max_concurrent = static_cast<std::size_t>(config.max_concurrent);
  mcp::Server server(options);
  if (auto ok = add(server); !ok) return fail(2, ok.error().message);
  greet(config);
  const auto served = server.serve(stop);
  if (served) return 0;
  const int status = fail(1, served.error().message);
  // A handler that did not return still uses what this function's callers would destroy.
  if (served.error().code == ErrorCode::limit && served.error().system_error == 0) ::_exit(status);
  return status;
}

// A transcript must not lie where commands may write.
Expected<void> check_transcript(const ServerConfig& config, const Executor& executor) {
  if (config.transcript.empty()) return {};
  const auto path = canonical_path(config.transcript);
  if (!path) return with_prefix("transcript: ", {}, path.error());
  const PathRules rules = executor.file_rules();
  if (!rules.restricted() || rules.permission(*path) != Permission::write) return {};
  return make_error(ErrorCode::invalid_argument,
                    "transcript: % lies where commands may write: choose a place outside",
                    {in_quotes(*path)});
}

// Half of the server's threads may wait for background commands, so that the other half can run the
// calls that those wait for.
int serve(const ExecutorPointer& executor, ServerConfig& config, const CancelToken& stop) {
  ToolOptions& tools = config.tools;
  tools.max_output = static_cast<std::size_t>(config.max_output);
  tools.jobs.max_running = static_cast<std::size_t>(config.max_background_shells);
  tools.max_waiters = std::max<std::size_t>(1, static_cast<std::size_t>(config.max_concurrent) / 2);
  warn_of_confinement(config, *executor);
  const auto folders = new_shared<ClientFolders>(
      config, executor,
      [&config](const Executor& other) { return check_transcript(config, other); });
  const ToolChoice choose = [folders](const mcp::Call& call, bool in_folder) {
    return folders->choose(call, in_folder);
  };
  return serve(
      config, describe(*executor, tools) + describe_folders(config, *executor), stop,
      [&](mcp::Server& server) { return add_chosen_tools(server, *executor, tools, choose); });
}

// With profile user-container.
int serve_user(ServerConfig& config, const Invocation& invocation) {
  const auto containers = create_user_containers(config);
  if (!containers) return fail(2, containers.error().message);
  drop_variables(config.local.environment, true);
  warn_of_bare_patterns(config);
  if (invocation.doctor) {
    return examine_container({ExecutorOptions(), containers->options().container, {}}).print();
  }
  const TerminationSignals signals;
  if (signals.error() != 0) return fail(1, no_thread(signals.error()));
  if (invocation.run) {
    Command command = Command::shell(*invocation.run);
    command.cancel = signals.token();
    const auto result = containers->execute_bash(config.user_id, std::move(command));
    return result ? print_result(*result) : fail(125, result.error().message);
  }
  return serve(config, describe(*containers), signals.token(), [&](mcp::Server& server) {
    return add_user_container_tools(server, *containers, config.user_id);
  });
}

// Makes glibc give memory back after a large result. By default it keeps an arena for each thread
// and raises its thresholds with each large block, so that the memory of one burst was kept for
// ever.
void give_memory_back() {
#if defined(__GLIBC__)
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 64 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
}

// --report. Its findings go where the page does not.
int report(const std::vector<std::string>& files, const std::optional<std::string>& output) {
  const auto text = write_report(files, output.value_or(std::string()));
  if (!text) return fail(2, text.error().message);
  if (output && !print(*text)) return fail(1, "cannot write to standard output");
  if (!output) warn(text->substr(0, text->size() - 1));
  return 0;
}

// The options that print something and need no place for commands. Nothing: it is none of them.
std::optional<int> answer_at_once(const Invocation& invocation, const ServerConfig& config) {
  if (invocation.help_all && invocation.json) return print(help_json()) ? 0 : 1;
  if (invocation.help || invocation.help_all) return print(help_text(invocation.help_all)) ? 0 : 1;
  if (invocation.version) return print("codeexec-mcp " CODEEXEC_VERSION_STRING "\n") ? 0 : 1;
  if (invocation.verify_audit) return verify_audit(*invocation.verify_audit);
  if (!invocation.report.empty()) return report(invocation.report, invocation.output);
  if (invocation.client_config) return run_client_config(invocation, config);
  if (invocation.massgen_path) return print_massgen_path();
  if (invocation.list_domains) return print(std::string(domain_sets())) ? 0 : 1;
  if (!invocation.list_rules) return std::nullopt;
  if (const auto policy = Policy::create(config.local.policy); !policy)
    return fail(2, in_our_words(policy.error()).error().message);
  return print(rules_text()) ? 0 : 1;
}

// Makes the place of the commands. A place without a folder for temporary files has none for long
// output; then it is made without one.
Expected<CommandPlace> create_place_with_spills(ServerConfig& config) {
  auto place = create_place(config);
  if (place || !starts_with(place.error().message, "private_spill_dir: "sv)) return place;
  warn(concat("%; long output is cut, and goes to no file", {place.error().message}));
  config.local.private_spill_dir = false;
  return create_place(config);
}

// --doctor, where there is a place or the reason why there is none.
int run_doctor(const ServerConfig& config, const Expected<CommandPlace>& place) {
  if (!place) {
    DoctorReport report;
    report.add("place", false, "%", {place.error().message});
    return report.print();
  }
  DoctorReport report = config.use == Option::docker
                            ? examine_container(container_executor_options(config))
                            : examine_place(config, *place);
  add_clients(report);
  return report.print();
}

// Commands on this host, in one container or in a place of one program.
int serve_commands(ServerConfig& config, const Invocation& invocation) {
  // A single command's files of long output would be removed with this program.
  config.local.private_spill_dir = !invocation.run && !invocation.check && !invocation.doctor &&
                                   !invocation.sandbox_report && !invocation.replay;
  // Nor does it need another place.
  if (!config.local.private_spill_dir) config.place_pool = 0;
  config.local.sandbox.explain = invocation.explain || invocation.doctor;
  config.reach_place = invocation.doctor || invocation.sandbox_report;
  if (invocation.doctor && config.use == Option::kubernetes) {
    const std::string rights = kubernetes_rights(kubernetes_options(config));
    if (!print(rights)) return fail(1, "cannot write to standard output");
    if (rights.find("FAIL ") != std::string::npos) return 1;
  }
  Transcript transcript;
  if (!config.transcript.empty()) {
    if (auto ok = transcript.open(config.transcript); !ok) return fail(2, ok.error().message);
    config.local.on_audit = [&transcript](const AuditRecord& record) {
      if (const std::string problem = transcript.add(record); !problem.empty()) warn(problem);
    };
  } else if (invocation.replay) {
    config.local.on_audit = [](const AuditRecord&) {};  // so that output is hashed
  }
  const auto place = create_place_with_spills(config);
  if (!place && invocation.doctor && (config.use & Option::places))
    return run_doctor(config, place);
  if (!place) return fail(2, place.error().message);
  const Executor& executor = *place->executor;
  if (auto ok = check_transcript(config, executor); !ok) return fail(2, ok.error().message);
  if (auto ok = check_disabled(config.tools); !ok)
    return fail(2, in_our_words(ok.error()).error().message);
  // The way to a place may need any of them, and again.
  if (!(config.use & Option::places))
    drop_variables(config.local.environment, config.use == Option::docker);
  if (config.user.container.sudo && config.use == Option::local)
    warn("enable_sudo has no effect in local mode");
  warn_of_bare_patterns(config);
  warn_of_wide_roots(config);
  if (invocation.sandbox_report) return print_report(place->sandbox, invocation);
  if (invocation.doctor) return run_doctor(config, place);
  warn_of_gaps(place->sandbox);
  if (invocation.check) return check(executor, *invocation.check);
  const TerminationSignals signals;
  if (signals.error() != 0) return fail(1, no_thread(signals.error()));
  if (invocation.run) return run_once(executor, config, *invocation.run, signals.token());
  if (invocation.replay)
    return replay(executor, *invocation.replay, invocation.json, signals.token());
  warn_of_workspace(executor);
  return serve(place->executor, config, signals.token());
}

}  // namespace

int server_main(int argc, char** argv) {
  const bool for_massgen = is_called_fastmcp(argc, argv);
  if (for_massgen && !starts_massgen_server(argc, argv)) return run_next_fastmcp(argv);
  give_memory_back();
  ServerConfig config;
  const auto invocation =
      for_massgen ? read_massgen_call(argc, argv, config) : read_command_line(argc, argv, config);
  if (!invocation) return fail(2, invocation.error().message);
  if (const auto status = answer_at_once(*invocation, config)) return *status;
  // A client that goes away must not kill the server before it has ended what it runs; nor must a
  // limit for files, when its output or its log goes to one.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  if (invocation->place) return place_main(STDIN_FILENO, STDOUT_FILENO);
#if defined(__linux__)
  // Commands run as the same user. They must not read this program's memory and variables, nor
  // write to its descriptors, through /proc.
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
  if (invocation->places || invocation->places_remove)
    return list_places(config, invocation->places_remove, invocation->json);
  if (auto ok = settle_options(config); !ok) return fail(2, ok.error().message);
  if (config.use == Option::users) return serve_user(config, *invocation);
  return serve_commands(config, *invocation);
}

}  // namespace v0_1
}  // namespace codeexec
