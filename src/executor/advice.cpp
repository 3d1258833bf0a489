// Why a command may have failed here and not elsewhere, and what a result says then.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
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
  shims,
  identity,
  signals,
  network,
  refused_connection,
  files,
  processes
};

// What programs print then, in lower case, a line each. What stands before `|` stands at most a few
// lines before the rest.
struct Symptoms {
  Cause cause;
  const char* lines;
};

// The first that is found counts. Some come from the variables of such a command, see
// offline_variables().
constexpr Symptoms symptoms[] = {
    {Cause::repository, "not a git repository"},
    {Cause::dialect,
     "[[: not found\n: source: not found\n: shopt: not found\n: declare: not found\n"
     ": typeset: not found\n: mapfile: not found\n: readarray: not found\n: pushd: not found\n"
     ": let: not found\n++: not found\nillegal option -o pipefail\nbad for loop variable\n"
     "syntax error: \"(\" unexpected\nredirection unexpected\nbad substitution"},
    {Cause::semaphores, "semlock|permission denied\n/dev/shm|permission denied"},
    {Cause::pseudo_terminals, "out of pty devices\npseudo-terminal|permission denied"},
    {Cause::shims, "pyenv: cannot rehash"},
    {Cause::identity, "tell me who you are"},
    {Cause::signals, "kill|operation not permitted\nkill|no such process"},
    {Cause::network,
     "could not resolve host\nname resolution\neai_again\nnetwork is unreachable\nenetunreach\n"
     "failed to connect to\nfailed to establish a new connection\nconnect eacces\n"
     "eacces|syscall: 'connect'\nurlopen error [errno 13]\nsocket|permission denied\n"
     "connecting to|permission denied\nenotcached\noffline mode\n--offline was specified\n"
     "could not be found in registry index\nnetwork was disabled\ngoproxy=off\n"
     "no matching distribution found"},
    {Cause::refused_connection, "connection refused\neconnrefused"},
    {Cause::files, "permission denied\nread-only file system"},
    {Cause::processes, "cannot fork\ncan't start new thread\nresource temporarily unavailable"},
};

// Programs that print nothing when an option asks for it, and what they exit with then.
struct QuietFailure {
  char program[5];
  int exit_code;
};
constexpr QuietFailure quiet_failures[] = {{"wget", 4}, {"curl", 6}, {"curl", 7}};

bool shows(std::string_view text, std::string_view symptom) {
  constexpr std::size_t few_lines = 400;
  const std::size_t bar = symptom.find('|');
  const bool alone = bar == std::string_view::npos;
  const std::size_t at = text.rfind(alone ? symptom : symptom.substr(bar + 1));
  if (at == std::string_view::npos) return false;
  const std::size_t begin = at - std::min(at, few_lines);
  return alone || text.substr(begin, at - begin).find(symptom.substr(0, bar)) != text.npos;
}

// Whether a command that is held so can fail for that.
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
    case Cause::refused_connection:
      return network == Network::loopback || network == Network::allow;
    case Cause::identity:
      return confined || !told.container.empty() || !told.place.empty();
    case Cause::files:
      // A file that is no program is refused everywhere.
      return confined && told.exit_code != 126 && names(told.sandbox->enforced, "filesystem"sv);
    case Cause::processes:
      return confined && (names(told.sandbox->enforced, "processes"sv) ||
                          names(told.sandbox->missing, "processes"sv));
    case Cause::none:
    case Cause::semaphores:
    case Cause::pseudo_terminals:
    case Cause::shims:
    case Cause::signals:
      break;
  }
  return confined;
}

Cause cause_in(std::string_view output, const Result& told, Network network, const GitAdvice& git) {
  constexpr std::size_t most = std::size_t{64} << 10;  // the reason stands at the end
  std::string text(output.substr(output.size() - std::min(output.size(), most)));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const auto& [cause, lines] : symptoms) {
    std::string_view rest = possible(cause, told, network, git) ? lines : ""sv;
    while (!rest.empty())
      if (shows(text, take_part(rest, '\n'))) return cause;
  }
  return Cause::none;
}

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
      return "the shell is a POSIX sh, without [[, source and arrays: use `bash -c '...'`, or "
             "execute_code with language bash";
    case Cause::semaphores:
      return "/dev/shm is closed to commands here (option shared_memory)";
    case Cause::pseudo_terminals:
      return "commands can make no terminals here (option terminals)";
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
      return "Each command has a 127.0.0.1 of its own here, and nothing else of the network "
             "(network: loopback): run a server and its client in one command";
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
    {"pid_namespace", "a process table of its own", ""sv},
    {"memory", "the limit of memory", "memory_per_process"sv},
    {"processes", "the limit of processes", "processes_per_user"sv},
    {"disk", "the limit of the disk", ""sv}};

}  // namespace

inline namespace inner {

std::string advice_on(const ProcessResult& ended, const Result& told, Network network,
                      std::string_view shell, const GitAdvice& git,
                      FunctionRef<std::string()> writable) {
  const Cause cause = cause_of_failure(ended, told, network, git);
  const bool is_plain = has_entry("sh dash ash"sv, base_name(shell));
  if (cause == Cause::none || (cause == Cause::dialect && !is_plain)) return {};
  return advice_for(cause, network, git, writable());
}

std::string_view reason_missing(const SandboxReport& report, std::string_view feature) {
  for (const std::string& gap : report.missing)
    if (starts_with(gap, concat("%: ", {feature})))
      return std::string_view(gap).substr(feature.size() + 2);
  return {};
}

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
