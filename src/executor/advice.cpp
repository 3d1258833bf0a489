// Why a command may have failed here and not elsewhere, and what a result says then.
//
//   question                            answer                                   function
//   did it fail?                        no: no advice                            cause_of_failure()
//   which text stands in its output?    the first row of symptoms; stderr first  cause_in()
//   can that be, as it is held here?    no: the next row                         possible()
//   no text, not the host's network?    a row of quiet_failures                  cause_of_failure()
//   what is allowed, what allows more?  a note of the result                     advice_for()
//
// Called by conclude(), once for each command. The output is hostile and may show any of these
// texts: the worst that follows is a note that does not fit, as nothing else depends on it. Only
// the last 64 KiB of each stream that is kept are searched.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Why a command may fail here and not elsewhere.
enum class Cause : char {
  none,
  repository,
  dialect,
  semaphores,
  pseudo_terminals,
  socket_files,
  system_v,
  counters,
  shims,
  identity,
  signals,
  network,
  refused_connection,
  files,
  processes
};

// What programs print then, in lower case. The first row that is found counts. Some texts come from
// the variables of such a command, see offline_variables().
struct Symptom {
  Cause cause;
  const char* printed;
  const char* before = "";  // stands at most a few lines before it
};
constexpr Symptom symptoms[] = {
    {Cause::repository, "not a git repository"},
    {Cause::dialect, "[[: not found"},
    {Cause::dialect, ": source: not found"},
    {Cause::dialect, ": shopt: not found"},
    {Cause::dialect, ": declare: not found"},
    {Cause::dialect, ": typeset: not found"},
    {Cause::dialect, ": mapfile: not found"},
    {Cause::dialect, ": readarray: not found"},
    {Cause::dialect, ": pushd: not found"},
    {Cause::dialect, ": let: not found"},
    {Cause::dialect, "++: not found"},
    {Cause::dialect, "illegal option -o pipefail"},
    {Cause::dialect, "bad for loop variable"},
    {Cause::dialect, "syntax error: \"(\" unexpected"},
    {Cause::dialect, "redirection unexpected"},
    {Cause::dialect, "bad substitution"},
    {Cause::dialect, "bad fd number"},
    {Cause::dialect, "expecting primary"},
    {Cause::semaphores, "permission denied", "semlock"},
    {Cause::semaphores, "permission denied", "/dev/shm"},
    {Cause::semaphores, "permission denied", "shm_open"},
    {Cause::pseudo_terminals, "out of pty devices"},
    {Cause::pseudo_terminals, "permission denied", "pseudo-terminal"},
    {Cause::pseudo_terminals, "permission denied", "openpty"},
    {Cause::pseudo_terminals, "too many files are open"},  // what expect says
    {Cause::pseudo_terminals, "fork failed: permission denied"},
    {Cause::socket_files, "permission denied", "af_unix"},
    {Cause::socket_files, "permission denied", "unix_events.py"},
    {Cause::socket_files, "permission denied", "unix socket"},
    {Cause::socket_files, "permission denied", "dial unix"},
    {Cause::socket_files, "permission denied", "error connecting to /"},
    {Cause::socket_files, "permission denied", "socket(1, "},
    {Cause::socket_files, "permission denied", "process_singleton"},
    {Cause::socket_files, "permission denied", "unix_listener"},
    {Cause::socket_files, "failed to start agent"},
    {Cause::system_v, "shmget(", "function not implemented"},
    {Cause::system_v, "semget(", "function not implemented"},
    {Cause::system_v, "function not implemented", "message channels"},
    {Cause::counters, "perf_event_open"},
    {Cause::shims, "pyenv: cannot rehash"},
    {Cause::identity, "tell me who you are"},
    {Cause::signals, "operation not permitted", "kill"},
    {Cause::signals, "no such process", "kill"},
    {Cause::network, "could not resolve host"},
    {Cause::network, "name resolution"},
    {Cause::network, "eai_again"},
    {Cause::network, "network is unreachable"},
    {Cause::network, "enetunreach"},
    {Cause::network, "failed to connect to"},
    {Cause::network, "dns error"},
    {Cause::network, "failed to establish a new connection"},
    {Cause::network, "connect eacces"},
    {Cause::network, "syscall: 'connect'", "eacces"},
    {Cause::network, "urlopen error [errno 13]"},
    {Cause::network, "permission denied", "socket"},
    {Cause::network, "permission denied", "connecting to"},
    {Cause::network, "enotcached"},
    {Cause::network, "offline mode"},
    {Cause::network, "--offline was specified"},
    {Cause::network, "could not be found in registry index"},
    {Cause::network, "network was disabled"},
    {Cause::network, "goproxy=off"},
    {Cause::network, "no matching distribution found"},
    {Cause::refused_connection, "connection refused"},
    {Cause::refused_connection, "econnrefused"},
    {Cause::files, "permission denied"},
    {Cause::files, "accessdeniedexception"},
    {Cause::files, "read-only file system"},
    {Cause::processes, "cannot fork"},
    {Cause::processes, "can't start new thread"},
    {Cause::processes, "resource temporarily unavailable"},
};

struct SymptomSource {
  static constexpr std::size_t count = std::size(symptoms);
  static constexpr std::size_t columns = 2;
  static constexpr std::string_view text(std::size_t row, std::size_t column) {
    return column == 0 ? symptoms[row].printed : symptoms[row].before;
  }
  static constexpr char separator(std::size_t) { return '\0'; }
};
constexpr auto packed_symptoms = pack_names<SymptomSource>();
constexpr auto symptom_causes =
    pack_entries<symptoms>([](const Symptom& symptom) { return symptom.cause; });

// Programs that print nothing when an option asks for it, and what they exit with then.
struct QuietFailure {
  char program[5];
  int exit_code;
};
constexpr QuietFailure quiet_failures[] = {{"wget", 4}, {"curl", 6}, {"curl", 7}};

// Whether a text has `printed`, and `before` at most a few lines before it.
bool shows(std::string_view text, std::string_view printed, std::string_view before) {
  constexpr std::size_t few_lines = 400;
  const std::size_t at = text.rfind(printed);
  if (at == std::string_view::npos) return false;
  const std::size_t begin = at - std::min(at, few_lines);
  return text.substr(begin, at - begin).find(before) != text.npos;
}

// Whether a command that is held so can fail for that.
// Keeps the advice from naming options that would change nothing: what is not confined fails for
// another reason.
bool possible(Cause cause, const Result& told, Network network, const GitAdvice& git) {
  const bool confined = told.sandbox && told.sandbox->mode != SandboxMode::off;
  const auto names = [&](const std::vector<std::string>& features, std::string_view name) {
    for (const std::string& feature : features)
      if (starts_with(feature, name)) return true;
    return false;
  };
  switch (cause) {
    case Cause::repository:
      return !git.problem.empty();
    case Cause::dialect:
      return true;
    case Cause::network:
      return network != Network::host;
    case Cause::socket_files:
      return confined && network != Network::host;
    case Cause::refused_connection:
      return network == Network::loopback || network == Network::allow;
    case Cause::identity:
      return confined || !told.container.empty() || !told.place.empty();
    case Cause::files:
      // Status 126: the file is no program, and would not run without a sandbox either.
      return confined && told.exit_code != 126 && names(told.sandbox->enforced, "filesystem"sv);
    case Cause::processes:
      return confined && (names(told.sandbox->enforced, "processes"sv) ||
                          names(told.sandbox->missing, "processes"sv));
    case Cause::none:
    case Cause::semaphores:
    case Cause::pseudo_terminals:
    case Cause::system_v:
    case Cause::counters:
    case Cause::shims:
    case Cause::signals:
      break;
  }
  return confined;
}

// A row whose cause cannot be is skipped, and the next rows are looked at: "permission denied"
// stands in several. Rows of one cause stand together, so that possible() is asked once for them.
Cause cause_in(std::string_view output, const Result& told, Network network, const GitAdvice& git) {
  constexpr std::size_t most = std::size_t{64} << 10;  // the reason stands at the end
  std::string text(output.substr(output.size() - std::min(output.size(), most)));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const NameTable table = packed_symptoms.table();
  Cause cause = Cause::none;
  bool can_be = false;
  for (std::size_t row = 0; row < table.rows; ++row) {
    if (cause != symptom_causes[row]) {
      cause = symptom_causes[row];
      can_be = possible(cause, told, network, git);
    }
    if (can_be && shows(text, table.name(row), table.at(row, 1).first())) return cause;
  }
  return Cause::none;
}

// A program that was asked to be quiet is known by its exit status, and only where nothing stands
// in stderr.
Cause cause_of_failure(const ProcessResult& ended, const Result& told, Network network,
                       const GitAdvice& git) {
  if (ended.succeeded()) return Cause::none;
  for (const std::string* output : {&ended.err, &ended.out}) {
    const Cause cause = cause_in(*output, told, network, git);
    if (cause != Cause::none) return cause;
  }
  if (network == Network::host || !ended.err.empty()) return Cause::none;
  for (const QuietFailure& failure : quiet_failures)
    if (ended.exit_code == failure.exit_code &&
        told.command.find(failure.program) != std::string::npos)
      return Cause::network;
  return Cause::none;
}

// What is allowed, and which option allows more.
// Read by a model, so each says what commands can do here; options are named for the operator.
std::string advice_for(Cause cause, Network network, const GitAdvice& git,
                       const std::string& writable) {
  switch (cause) {
    case Cause::none:
      break;
    case Cause::repository:
      return concat(
          "%: commands do not get there. Where that repository is the user's, its folder can be "
          "allowed, too (option allowed_paths)",
          {git.problem});
    case Cause::dialect:
      return concat(
          "the shell is a POSIX sh, without [[, source and arrays: %, or execute_code "
          "with language bash",
          {use_bash});
    case Cause::semaphores:
      return "/dev/shm is closed to commands here (option shared_memory)";
    case Cause::pseudo_terminals:
      return "commands can make no terminals here (option terminals)";
    case Cause::socket_files:
      return "sockets with a path are closed to commands here (option unix_sockets)";
    case Cause::system_v:
      return "System V shared memory, semaphores and queues are closed to commands here (option "
             "pid_namespace)";
    case Cause::counters:
      return "perf needs what the kernel counts, which is closed to commands in a sandbox (option "
             "sandbox)";
    case Cause::shims:
      return "pyenv's own files cannot be changed here: use the pip of a .venv in the workspace";
    case Cause::identity:
      return "no user.name and user.email are known here: set them in the repository, with `git "
             "config`";
    case Cause::signals:
      return "a command can signal only what it has started itself; kill_background_shell ends a "
             "background command";
    case Cause::refused_connection:
    case Cause::network:
      if (network == Network::allow)
        return "Commands have a 127.0.0.1 of their own here, and reach the names that the operator "
               "allows only through the proxy in HTTPS_PROXY, which not every program uses "
               "(network: allow)";
      if (network != Network::loopback)
        return concat("The network is switched off for commands here (network: %)",
                      {name(network)});
      return "Commands have a 127.0.0.1 of their own here, and nothing else of the network "
             "(network: loopback): a server that runs in the background is reached there";
    case Cause::files:
      return concat(
          "Commands can change files only below %, and read only these, the system and its tools "
          "(options allowed_paths, read_only)%%",
          {writable, git.allowed.empty() ? "" : ". ", git.allowed});
    case Cause::processes:
      return "the processes and threads of commands are limited here (option limit_processes), and "
             "others of the user may count, too";
  }
  return {};
}

// What operators ask for by options, its name in a report, and what then holds in its place.
struct AskedFeature {
  const char* name;
  const char* words;
  std::string_view stand_in;
};
constexpr AskedFeature asked_features[] = {
    {"filesystem", "allowed paths", ""sv},
    {"forbidden_roots", "forbidden paths in allowed ones", ""sv},
    {"read_only_roots", "read-only paths in writable ones", ""sv},
    {"protected_paths", "protected paths", ""sv},
    {"hidden_paths", "hidden paths", ""sv},
    {"pid_namespace", "a process table of its own", ""sv},
    {"memory", "the limit of memory", "memory_per_process"sv},
    {"processes", "the limit of processes", "processes_per_user"sv},
    {"disk", "the limit of the disk", ""sv}};

}  // namespace

inline namespace inner {

// What only a plain sh lacks is no advice for another shell. `writable` is called when there is a
// cause, since most commands succeed.
std::string advice_on(const ProcessResult& ended, const Result& told, Network network,
                      std::string_view shell, const GitAdvice& git,
                      FunctionRef<std::string()> writable) {
  const Cause cause = cause_of_failure(ended, told, network, git);
  if (cause == Cause::none || (cause == Cause::dialect && held_by(shell) != HeldBy::sh)) return {};
  return advice_for(cause, network, git, writable());
}

// An entry of the report begins with the feature, then a colon and the reason.
std::string_view reason_missing(const SandboxReport& report, std::string_view feature) {
  for (const std::string& gap : report.missing)
    if (starts_with(gap, concat("%: ", {feature})))
      return std::string_view(gap).substr(feature.size() + 2);
  return {};
}

// A limit that another one stands in for is no gap: it is in force in another form.
std::string note_of_gaps(const SandboxReport& report, Network asked) {
  const auto is_missing = [&report](const char* feature) {
    return !reason_missing(report, feature).empty();
  };
  std::string gaps;
  const auto add = [&gaps](std::string_view words) {
    append_all(gaps, {gaps.empty() ? "" : ", ", words});
  };
  for (const AskedFeature& feature : asked_features)
    if (is_missing(feature.name) && !is_one_of(feature.stand_in, report.enforced))
      add(feature.words);
  if (report.mode != SandboxMode::off && is_missing("network"))
    add(concat("network % (it is %)", {name(asked), name(report.network)}));
  if (gaps.empty()) return {};
  return concat("the operator asked for what is not in force here: %", {gaps});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
