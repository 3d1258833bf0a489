// The next step: what a caller can do after a result that is no success, in one sentence.
//
//   how it ended                                 the step                     function
//   refused                                      in the refusal itself
//   timed out                                    more time, the background    after_timeout()
//   killed, or at the limit of memory            smaller parts                step_after()
//   exit status 127                              where else the program is    missing_program()
//   a text of `step_symptoms` in its output      that row's                   step_of_symptom()
//   nothing printed, and nothing to read         give it an input             lacks_input()
//   /bin/sh has read a script for bash           use bash                     bash_idiom_in()
//
// The output is hostile and may show any of these texts: the worst that follows is a sentence that
// does not fit. Names are taken from it only as far as they are made of a few harmless characters.
// Only the last 16 KiB of each stream are searched.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/jobs.hpp"
#include "process/process.hpp"
#include "shell/script_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

enum class StepNeed : char { none, terminal, port, python_module, node_module, input };

// What programs print, in lower case, and the step. With a need, the step is made for it.
struct StepSymptom {
  const char* printed;
  const char* step;
  StepNeed need = StepNeed::none;
};
constexpr StepSymptom step_symptoms[] = {
    {"address already in use", "", StepNeed::port},
    {"eaddrinuse", "", StepNeed::port},
    {"only one usage of each socket address", "", StepNeed::port},
    {"no module named", "", StepNeed::python_module},
    {"cannot find module '", "", StepNeed::node_module},
    {"cannot find package '", "", StepNeed::node_module},
    {"eoferror: eof when reading a line", "", StepNeed::input},
    {"terminal is dumb, but editor unset",
     "no editor can be used here: give the text by an option, as in `git commit -m TEXT`"},
    {"[y/n] abort", "nobody answers questions here: use the option that answers them, such as -y"},
    {"could not read username", "no password can be typed here: the user has to give git access"},
    {"terminal prompts disabled", "no password can be typed here: the user has to give git access"},
    {"host key verification failed",
     "nobody can confirm the key of that host here: the user has to connect to it once"},
    {"no space left on device", "the disk is full: `df -h .` and `du -sh *` say by what"},
    {"argument list too long", "give the names by `find ... -exec ... {} +` or `xargs`"},
    {"not a tty", "", StepNeed::terminal},
    {"not a terminal", "", StepNeed::terminal},
    {"not from a terminal", "", StepNeed::terminal},
    {"not to a terminal", "", StepNeed::terminal},
    {"input device is not a tty", "", StepNeed::terminal},
    {"inappropriate ioctl for device", "", StepNeed::terminal},
    {"must be run from a terminal", "", StepNeed::terminal},
    {"no tty present", "", StepNeed::terminal},
    {"a terminal is required", "", StepNeed::terminal},
    {"cannot open /dev/tty", "", StepNeed::terminal},
    {"error opening terminal", "", StepNeed::terminal},
    {"setupterm: could not find terminal", "", StepNeed::terminal},
    {"memoryerror", "it got no more memory: do the work in smaller parts"},
    {"std::bad_alloc", "it got no more memory: do the work in smaller parts"},
    {"cannot allocate memory", "it got no more memory: do the work in smaller parts"},
    {"javascript heap out of memory", "it got no more memory: do the work in smaller parts"},
};

// Programs that are often missing, and what does the same. `needs`: the program that does it.
struct Substitute {
  const char* missing;
  const char* needs;
  const char* instead;
};
constexpr Substitute substitutes[] = {
    {"python", "python3", "python3"},
    {"pip", "python3", "python3 -m pip"},
    {"pip3", "python3", "python3 -m pip"},
    {"node", "nodejs", "nodejs"},
    {"rg", "grep", "grep -rnE"},
    {"ag", "grep", "grep -rnE"},
    {"fd", "find", "find . -name"},
    {"fdfind", "find", "find . -name"},
    {"tree", "find", "find . -maxdepth 2"},
    {"bat", "cat", "cat"},
    {"jq", "python3", "python3 -m json.tool, or python3 -c"},
    {"xxd", "od", "od -An -tx1"},
    {"hexdump", "od", "od -An -tx1"},
    {"ifconfig", "ip", "ip addr"},
    {"netstat", "ss", "ss -ltnp"},
    {"lsof", "ss", "ss -ltnp"},
    {"nslookup", "getent", "getent hosts"},
    {"dig", "getent", "getent hosts"},
    {"host", "getent", "getent hosts"},
    {"wget", "curl", "curl -LO"},
    {"curl", "wget", "wget -O -"},
    {"unzip", "python3", "python3 -m zipfile -e"},
    {"zip", "python3", "python3 -m zipfile -c"},
    {"make", "gmake", "gmake"},
    {"gcc", "cc", "cc"},
    {"clang", "cc", "cc"},
};

// Python's modules whose package has another name.
constexpr const char* python_packages[][2] = {
    {"yaml", "pyyaml"},
    {"PIL", "pillow"},
    {"cv2", "opencv-python"},
    {"sklearn", "scikit-learn"},
    {"bs4", "beautifulsoup4"},
    {"dotenv", "python-dotenv"},
    {"dateutil", "python-dateutil"},
    {"Crypto", "pycryptodome"},
    {"skimage", "scikit-image"},
    {"serial", "pyserial"},
    {"OpenSSL", "pyopenssl"},
    {"git", "GitPython"},
};

constexpr const char* folders_of_programs[] = {
    "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/games", "/usr/local/bin", "/usr/bin", "/bin"};

// The name that a text begins with, of characters that mean nothing to a shell; else empty.
std::string_view harmless_name(std::string_view text) {
  constexpr std::size_t longest = 64;
  const std::size_t end =
      std::min(text.find_first_not_of(
                   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+@/-"),
               text.size());
  return end == 0 || end > longest || text[0] == '-' ? std::string_view() : text.substr(0, end);
}

// What stands in a line before ": not found", as shells write it.
std::string_view name_before(std::string_view text, std::string_view message) {
  const std::size_t at = text.rfind(message);
  if (at == text.npos) return {};
  const std::string_view before = text.substr(0, at);
  const std::size_t begin = before.find_last_of(" \n") + 1;  // npos + 1 is 0
  const std::string_view name = before.substr(begin);
  return harmless_name(name).size() == name.size() ? name : std::string_view();
}

bool is_here(const Result& result) { return result.container.empty() && result.place.empty(); }

std::string place_of_program(std::string_view name) {
  for (const char* const folder : folders_of_programs) {
    std::string path = concat("%/%", {folder, name});
    if (is_program(path)) return path;
  }
  return {};
}

// What this host has is no answer for commands elsewhere.
std::string missing_program(const Result& result) {
  std::string_view name;
  for (const std::string_view message : {": command not found"sv, ": not found"sv})
    if (name.empty()) name = name_before(result.err, message);
  if (name.empty()) return {};
  if (name.find('/') != name.npos) return concat("there is no file %: see `ls`", {name});
  const bool here = is_here(result);
  if (here)
    if (const std::string path = place_of_program(name); !path.empty())
      return concat("% is not in the PATH: it is %", {name, path});
  for (const Substitute& row : substitutes)
    if (row.missing == name && (!here || !place_of_program(row.needs).empty()))
      return concat("% is not installed here: use `%`%",
                    {name, row.instead, here ? "" : " if that is there"});
  if (here && is_program("/usr/lib/command-not-found"))
    return concat("% is not installed here: `/usr/lib/command-not-found %` says what has it",
                  {name, name});
  return concat("% is not installed here, or not in the PATH: do it with another program", {name});
}

std::string after_timeout(const ToolSet& set, const Result& result) {
  const auto most = set.executor.options().max_timeout;
  const char* const argument = result.idle ? "idle_timeout" : "timeout";
  const auto had = result.idle ? result.idle_timeout : result.timeout;
  std::string step;
  if (set.options.running_time == no_limit && had < most) {
    step = concat("pass a longer %", {argument});
    if (most != no_limit) append_all(step, {" (at most ", seconds_text(most), " s)"});
  }
  if (!is_disabled(set.options, "start_background_shell"sv))
    append_all(step, {step.empty() ? "use" : ", or use", " start_background_shell"});
  return step.empty() ? "do the work in smaller parts" : step;
}

// A port is not looked for among processes: those of a command may have a network of their own.
std::string holder_of_port(const ToolSet& set) {
  std::string running;
  for (const JobStatus& job : set.jobs.list())
    if (job.state == JobState::running) append_all(running, {running.empty() ? "" : ", ", job.id});
  if (running.empty() || is_disabled(set.options, "kill_background_shell"sv))
    return "another process has that port: take another one; `ss -ltnp` lists them";
  return concat(
      "another process has that port, perhaps a background shell of yours (%): end it by "
      "kill_background_shell, or take another port",
      {running});
}

std::string missing_python_module(std::string_view after) {
  after.remove_prefix(std::min(after.find_first_not_of(" '\""), after.size()));
  const std::string_view module = harmless_name(after);
  const std::string_view top = module.substr(0, module.find('.'));
  if (top.empty()) return {};
  std::string_view package = top;
  for (const auto& row : python_packages)
    if (row[0] == top) package = row[1];
  return concat(
      "if that is no file of this project: `python3 -m venv .venv && .venv/bin/pip install %`, "
      "then "
      "`.venv/bin/python`",
      {package});
}

std::string missing_node_module(std::string_view after) {
  const std::string_view name = harmless_name(after);
  if (name.empty()) return {};
  if (name[0] == '.' || name[0] == '/') return concat("there is no file %: see `ls`", {name});
  return concat("`npm install %` in the folder of package.json installs it", {name});
}

std::string need_of_input(std::string_view tool) {
  if (tool == "execute_command")
    return "its standard input is empty: give it by the argument stdin, or by a here-document";
  return "its standard input is empty: the code must have its data in itself";
}

std::string need_of_terminal(const ToolSet& set) {
  if (is_disabled(set.options, "start_background_shell"sv))
    return "commands have no terminal here: use options that need none";
  return "execute_command has no terminal: use start_background_shell with terminal: true";
}

// In the last bytes of a stream, as it was printed; empty: none of the texts stands there.
std::string step_of_symptom(const ToolSet& set, std::string_view tool, std::string_view output) {
  constexpr std::size_t most = std::size_t{16} << 10;
  output.remove_prefix(output.size() - std::min(output.size(), most));
  const std::string text = in_lower_case(output);
  for (const StepSymptom& row : step_symptoms) {
    const std::size_t at = text.rfind(row.printed);
    if (at == text.npos) continue;
    const std::string_view after = output.substr(at + std::string_view(row.printed).size());
    std::string step = row.step;
    if (row.need == StepNeed::terminal) step = need_of_terminal(set);
    if (row.need == StepNeed::port) step = holder_of_port(set);
    if (row.need == StepNeed::python_module) step = missing_python_module(after);
    if (row.need == StepNeed::node_module) step = missing_node_module(after);
    if (row.need == StepNeed::input) step = need_of_input(tool);
    if (!step.empty()) return step;
  }
  return {};
}

// Whether the last thing that a script does is to read an input that nothing gives it: `python3`,
// `read x`. Called where nothing was printed.
bool lacks_input(std::string_view script) {
  bool lacks = false;
  shell::Options options;
  options.limits.max_commands = 256;
  const shell::Outcome outcome = shell::walk(script, options, [&](const shell::Visit& visit) {
    const shell::Command& command = visit.command;
    if (command.words.empty()) return;
    const std::string_view name = base_name(command.words[0].text);
    const bool alone =
        command.words.size() == 1 || (command.words.size() == 2 && command.words[1].text == "-");
    const bool reads = name == "read" ||
                       (alone && (starts_with(name, "python") ||
                                  is_any(name, "node", "ruby", "perl", "php", "bash", "sh", "cat",
                                         "sqlite3", "psql", "mysql", "bc", "xargs", "wc", "sort")));
    lacks = reads && command.input.kind == shell::Input::Kind::inherited && !command.pipeline;
    for (const shell::Redirection& redirection : command.redirections)
      lacks = lacks && redirection.fd != 0;
  });
  return outcome.complete && lacks;
}

// `sh` may be bash, which is known of this host.
bool is_plain_shell(const Executor& executor, const Result& result) {
  std::string shell = executor.options().shell;
  if (held_by(shell) != HeldBy::sh) return false;
  char path[PATH_MAX];
  if (is_here(result) && ::realpath(shell.c_str(), path) != nullptr) shell = path;
  return held_by(shell) == HeldBy::sh || base_name(shell) == "busybox"sv;
}

std::string step_after(const ToolSet& set, const Command& command, const Result& result) {
  const std::string_view tool = command.caller.tool;
  const bool has_timed_out = result.outcome == Outcome::timed_out;
  if (is_one_of("memory"sv, result.limits_reached))
    return "do the work in smaller parts, which take less memory";
  if (result.outcome == Outcome::signaled && result.signal == SIGKILL)
    return "if nothing of yours killed it, the system had no more memory: use smaller parts";
  if (result.outcome != Outcome::exited && !has_timed_out) return {};
  std::string step;
  if (result.exit_code == 127) step = missing_program(result);
  for (const std::string* output : {&result.err, &result.out})
    if (step.empty() && !result.succeeded()) step = step_of_symptom(set, tool, *output);
  if (has_timed_out && step.empty()) return after_timeout(set, result);
  const bool is_silent = result.out.empty() && result.err.empty();
  if (is_silent && command.input.empty() && lacks_input(command.script)) step = need_of_input(tool);
  return step;
}

}  // namespace

inline namespace inner {

void add_next_step(const ToolSet& set, const Command& command, Result& result) {
  add_note(result.notes, "%", {step_after(set, command, result)});
  if (result.outcome != Outcome::exited || command.script.empty() ||
      !is_plain_shell(set.executor, result))
    return;
  // The advice of the executor on a failure.
  for (const std::string& note : result.notes)
    if (note.find(use_bash) != note.npos) return;
  const std::string idiom = bash_idiom_in(command.script);
  if (idiom.empty()) return;
  add_note(
      result.notes, "% reads `%` otherwise than bash does: %%",
      {to_utf8(set.executor.options().shell), idiom, use_bash,
       is_disabled(set.options, "execute_code"sv) ? "" : ", or execute_code with language bash"});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
