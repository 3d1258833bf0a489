// The server program.
//
//   server_main
//     read_command_line           or a feature's own reader
//     answer_at_once              --help and others that need nothing: print and return
//     settle_options
//     serve_commands              create_place, then --check, --run or serve(); or what a feature
//                                 serves
//
// At each ServerStep::Moment features may answer in place of what follows.
//
// Nothing but the protocol, or the answer to such an option, is written to standard output.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

TerminationSignals::TerminationSignals() {
  sigemptyset(&signals_);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, number);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  error_ = start_thread(&thread_, wait_for_signal, this);
}

TerminationSignals::~TerminationSignals() {
  if (error_ == 0) {
    if (!token_.cancelled()) ::pthread_kill(thread_, SIGTERM);
    ::pthread_join(thread_, nullptr);
  }
  take_pending();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::string TerminationSignals::problem() const {
  return error_ == 0 ? "" : concat("cannot start a thread: %", {errno_text(error_)});
}

void* TerminationSignals::wait_for_signal(void* self) {
  auto& signals = *static_cast<TerminationSignals*>(self);
  int number = 0;
  ::sigwait(&signals.signals_, &number);
  signals.token_.cancel();
  return nullptr;
}

// A second signal during the end would kill the program as soon as the mask is lifted.
void TerminationSignals::take_pending() {
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

void drop_variables(const ServerConfig& config) {
  if (config.keeps_variables) return;
  EnvironmentOptions options = config.local.environment;
  options.keep.insert(options.keep.end(), config.kept_variables.begin(),
                      config.kept_variables.end());
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

int print_result(const Result& result) {
  if (!print(to_json(result).dump() + "\n")) return fail(1, "cannot write to standard output");
  if (result.outcome == Outcome::refused || result.outcome == Outcome::not_started) return 125;
  return result.succeeded() ? 0 : 1;
}

}  // namespace inner

namespace {

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

// --run. The result has the whole output up to max_output, and SIGTERM cancels the command.
int run_once(const Executor& executor, const ServerConfig& config, const CancelToken& stop) {
  Command command = Command::shell(*config.invocation.run);
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
  const char* const client =
      config.options.find("client-config")
          ? "  codeexec-mcp --client-config claude-code --write   adds it to a client\n"
          : "";
  std::fprintf(
      stderr,
      "codeexec-mcp is an MCP server: a client starts it, and speaks to it on standard input.\n"
      "%s"
      "  codeexec-mcp --run 'echo hello'                    tries it\n"
      "  codeexec-mcp --help                                prints the options\n"
      "It now waits for a client's messages. Ctrl-C ends it.\n",
      client);
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

// The clients that show their model structuredContent in place of the text, or beside it, by the
// beginning of their names. docs/clients.md says how they were asked.
std::vector<std::string> text_only_clients(const ServerConfig& config) {
  if (config.result_text == ResultText::plain) return {""};
  if (config.result_text == ResultText::json || config.tools.full_results) return {};
  return words_of({"claude-code", "codex-mcp-client", "qwen-cli-mcp-client"});
}

}  // namespace

inline namespace inner {

int serve_tools(const ServerConfig& config, std::string instructions, const CancelToken& stop,
                FunctionRef<Expected<void>(mcp::Server&)> add) {
  mcp::ServerOptions options;
  options.name = "codeexec";
  options.title = "Command Execution";
  options.version = CODEEXEC_VERSION_STRING;
  options.instructions = std::move(instructions);
  options.announced = shell_uris;
  options.ask_roots = config.takes_roots;
  options.text_only_clients = text_only_clients(config);
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

}  // namespace inner

namespace {

Expected<void> check_executor(const ServerConfig& config, const Executor& executor) {
  for (const Feature* const feature : config.features)
    if (feature->check_executor)
      if (auto ok = feature->check_executor(config, executor); !ok) return ok;
  return {};
}

// Half of the server's threads may wait for background commands, so that the other half can run the
// calls that those wait for.
int serve(const ExecutorPointer& executor, ServerConfig& config, const CancelToken& stop) {
  ToolOptions& tools = config.tools;
  tools.max_output = static_cast<std::size_t>(config.max_output);
  tools.json_text = config.result_text == ResultText::json;
  tools.jobs.max_running = static_cast<std::size_t>(config.max_background_shells);
  tools.max_waiters = std::max<std::size_t>(1, static_cast<std::size_t>(config.max_concurrent) / 2);
  warn_of_confinement(config, *executor);
  const auto folders = new_shared<ClientFolders>(
      config, executor, [&config](const Executor& other) { return check_executor(config, other); });
  const ToolChoice choose = [folders](const mcp::Call& call, bool in_folder) {
    return folders->choose(call, in_folder);
  };
  return serve_tools(
      config, describe(*executor, tools) + describe_folders(config, *executor), stop,
      [&](mcp::Server& server) { return add_chosen_tools(server, *executor, tools, choose); });
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

// Asks the features for an answer. Nothing: there is none, and the server goes on.
std::optional<int> answer_of_features(const ServerStep& step) {
  for (const Feature* const feature : step.config.features)
    if (feature->answer)
      if (const auto status = feature->answer(step)) return status;
  return {};
}

// The options that print something and need no place for commands.
std::optional<int> answer_at_once(ServerConfig& config) {
  const Invocation& invocation = config.invocation;
  if (invocation.ended) return invocation.ended;
  if (invocation.help) return print(help_text(config, false)) ? 0 : 1;
  if (invocation.version) return print("codeexec-mcp " CODEEXEC_VERSION_STRING "\n") ? 0 : 1;
  if (!invocation.list_rules) return answer_of_features({ServerStep::called, config});
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

// Commands where the mode says.
int serve_commands(ServerConfig& config) {
  const Invocation& invocation = config.invocation;
  // A single command's files of long output would be removed with this program.
  config.local.private_spill_dir = !invocation.is_single;
  const auto place = create_place_with_spills(config);
  const auto answer = [&](ServerStep::Moment moment, const CancelToken* stop = nullptr) {
    return answer_of_features({moment, config, &place, stop});
  };
  if (!place) {
    if (const auto status = answer(ServerStep::unplaced)) return *status;
    return fail(2, place.error().message);
  }
  const Executor& executor = *place->executor;
  if (auto ok = check_executor(config, executor); !ok) return fail(2, ok.error().message);
  if (auto ok = check_disabled(config.tools); !ok)
    return fail(2, in_our_words(ok.error()).error().message);
  drop_variables(config);
  warn_of_bare_patterns(config);
  warn_of_wide_roots(config);
  if (const auto status = answer(ServerStep::examined)) return *status;
  warn_of_gaps(place->sandbox);
  if (invocation.check) return check(executor, *invocation.check);
  const TerminationSignals signals;
  if (!signals.problem().empty()) return fail(1, signals.problem());
  if (invocation.run) return run_once(executor, config, signals.token());
  if (const auto status = answer(ServerStep::ready, &signals.token())) return *status;
  warn_of_workspace(executor);
  return serve(place->executor, config, signals.token());
}

Expected<void> read_any_command_line(int argc, char** argv, ServerConfig& config) {
  for (const Feature* const feature : config.features) {
    if (!feature->read) continue;
    const auto was_read = feature->read(argc, argv, config);
    if (!was_read) return was_read.failure();
    if (*was_read) return {};
  }
  return read_command_line(argc, argv, config);
}

}  // namespace

int server_main(int argc, char** argv, std::initializer_list<const ServerFeature*> of_server) {
  give_memory_back();
  ServerConfig config(of_server);
  if (auto ok = read_any_command_line(argc, argv, config); !ok) return fail(2, ok.error().message);
  if (const auto status = answer_at_once(config)) return *status;
  // A client that goes away must not kill the server before it has ended what it runs; nor must a
  // limit for files, when its output or its log goes to one.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  if (config.invocation.place) return config.run_agent(STDIN_FILENO, STDOUT_FILENO);
#if defined(__linux__)
  // Commands run as the same user. They must not read this program's memory and variables, nor
  // write to its descriptors, through /proc.
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
  if (const auto status = answer_of_features({ServerStep::guarded, config})) return *status;
  if (auto ok = settle_options(config); !ok) return fail(2, ok.error().message);
  if (const auto status = answer_of_features({ServerStep::settled, config})) return *status;
  return config.serve ? config.serve(config) : serve_commands(config);
}

}  // namespace v0_1
}  // namespace codeexec
