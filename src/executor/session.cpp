// Sessions: what a command leaves to those after it.
//
// Each command of a session has a shell of its own. The shell writes its folder and its exported
// variables into a pipe, at its start and at its end; what differs becomes the session's. What else
// bash and sh hold (variables, functions, aliases, options) they write at their end. Each thing
// becomes a text that makes it again, which the next shell runs first, and the guard knows.
//
//   step    what is done, and what follows when it fails            function, and its thread
//   enter   copies folder, variables and number of resets           enter(), the caller's
//   judge   the copy is judged like any other command               screen(), the caller's
//   wrap    no POSIX shell: refused                                 follow_session(), the caller's
//   pipe    no pipe: not started                                    make_session_pipe()
//   write   what does not fit is lost: the report is not complete   session_script(), in the shell
//   end     ended by a signal, timeout or cancel: all stays         hand_on(), of conclude()
//   parse   not complete, or of another form: all stays             parse_session_state()
//   folder  outside of the roots: the session stays in its folder   hand_on()
//   take    more than 256 variables or 64 KiB: all stays            take()
//   held    not complete, not read, too much: that stays            hand_on_held()
//   judge   a function or an alias is refused: it is not kept       hand_on_held()
//   reset   since the command began: all stays, without a note      take()
//
// What holds: the state changes under its mutex and only in take() and reset(), so that a command
// never finds half of what another one left. Each case in which something stays puts a note into
// the result, but for a reset. What comes through the pipe is hostile text: it is read as what
// shells print of themselves, nothing in it is expanded, and no shell ever runs it but functions,
// each of which has been parsed and judged.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "environment/environment.hpp"
#include "paths/paths.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Not carried: what shells set by themselves, what belongs to one command (CODEEXEC_*), and what
// changes how the next script is read or what runs with it.
bool is_carried(std::string_view variable) {
  static constexpr auto left = NameList{"CODEEXEC_*", "BASH*",     "PWD",
                                        "OLDPWD",     "SHLVL",     "_",
                                        "ENV",        "IFS",       "PS4",
                                        "CDPATH",     "FPATH",     "ZDOTDIR",
                                        "GLOBIGNORE", "SHELLOPTS", "POSIXLY_CORRECT",
                                        "LD_PRELOAD", "LD_AUDIT",  "DYLD_INSERT_LIBRARIES"};
  return !left.match(variable);
}

// Reads what `export -p` prints in dash, bash, busybox, ksh93, mksh, zsh and yash: a command and
// options, then NAME=value, the value in any of the quotes that shells know.
class ExportList {
 public:
  explicit ExportList(std::string_view text) : text_(text) {}

  Expected<Variables> read() {
    Variables variables;
    while (!text_.at_end())
      if (!read_line(variables))
        return make_error(ErrorCode::parse,
                          "what the shell told of its variables was not understood at byte %",
                          {text_.at()}, text_.at());
    return variables;
  }

 private:
  bool read_line(Variables& variables) {
    std::string word;
    if (!text_.read(word) || !is_any(word, "export", "declare", "typeset")) return false;
    bool wanted = true;
    std::string variable;
    while (text_.skip(' ')) {
      if (!text_.read(word)) return false;
      if (!variable.empty()) {
        if (wanted) return false;  // only an array has more words
      } else if (starts_with(word, "-"sv)) {
        // Read-only, a function, an array, tied to one.
        wanted = wanted && word.find_first_of("rfaAT") == std::string::npos;
      } else {
        variable = word;
      }
    }
    if (!text_.skip('\n')) return false;
    const std::size_t equals = variable.find('=');
    if (wanted && equals != std::string::npos && is_name(variable.substr(0, equals)))
      variables.push_back({variable.substr(0, equals), variable.substr(equals + 1)});
    return true;
  }

  PrintedWords text_;
};

std::string joined_texts(const TextMap& texts) {
  std::string all;
  for (const auto& each : texts) all += each.second;
  return all;
}

}  // namespace

inline namespace inner {

HeldBy held_by(std::string_view shell) {
  const std::string_view program = base_name(shell);
  if (program == "bash"sv) return HeldBy::bash;
  return is_any(program, "sh", "dash", "ash") ? HeldBy::sh : HeldBy::none;
}

std::string session_script(std::string_view shell, int descriptor, std::string_view mark,
                           std::size_t parts, HeldBy holder, std::size_t held_parts) {
  const std::string_view program = base_name(shell);
  static constexpr auto carrying =
      NameSet{"ash", "bash", "dash", "ksh", "ksh93", "lksh", "mksh", "oksh", "sh", "yash", "zsh"};
  if (!carrying.has(program)) return {};
  // Functions and aliases of these names that the script has defined must not run here.
  const char* const own = program == "zsh"sv ? "builtin " : "\\command ";
  const std::string echo = concat("%echo %", {own, mark});
  const std::string list = concat("%&&%export -p&&%", {echo, own, echo});
  // What is held may have the name of any builtin but this: without it the others are found.
  const char* const bare = holder == HeldBy::none ? "" : "\\unset -f command;";
  std::string tell = concat("{ %%pwd -P&&%", {bare, own, list});
  if (holder == HeldBy::bash)
    append_all(tell, "&&%shopt -ps&&%set +o&&%&&%alias -p&&%&&%declare -p&&%&&%declare -f&&%",
               {own, own, echo, own, echo, own, echo, own, echo});
  else if (holder == HeldBy::sh)
    append_all(tell, "&&%set +o&&%&&%alias&&%&&%set&&%&&%",
               {own, echo, own, echo, own, echo, echo});
  tell += "; } 2>/dev/null >&8";
  const std::string fd = std::to_string(descriptor);
  const char* const sure = holder == HeldBy::none ? "" : own;
  const char* const run = held_parts > 0 ? own : "";
  std::string held;
  if (held_parts > 0)
    held = concat("%eval \"$1%\" 2>/dev/null;%shift %;",
                  {own, held_parts > 1 ? "$2" : "", own, held_parts});
  const std::string close =
      holder == HeldBy::none ? concat("set -- \"$?\" %;set +x", {mark})
                             : concat("CODEEXEC_STATUS=$?;%%set -- \"$CODEEXEC_STATUS\" %;%set +x",
                                      {bare, own, mark, own});
  std::string script = concat("%set --;", {sure});
  for (std::size_t i = 1; i <= parts; ++i) append_all(script, "$%", {i});
  // The report goes to descriptor 8. That is closed for the script, and the shell has it back for
  // the trap; ksh, zsh and yash would not, so it stays open in them. The script begins on the first
  // line, so that errors name its own lines. Once $2 is the mark, the lines after the script
  // report, and our trap adds nothing. A trap of the script's own on EXIT takes the place of ours,
  // and sees the script's $?.
  return concat(
      "%{ %; } 2>/dev/null >&8;trap '{ case ${2-} in %);;*)%;esac; } 2>/dev/null||:' EXIT;%case "
      "${KSH_VERSION-}${ZSH_VERSION-}${YASH_VERSION-} in ?*)%eval \"%\";;*)%eval \"%\" 8>&-;esac\n"
      "{ %; } 2>/dev/null\n%||:\n%exit \"$1\"",
      {descriptor == 8 ? std::string()
                       : concat("{ true; } 2>/dev/null >&%&&exec 8>&% %>&-;", {fd, fd, fd}),
       list, mark, tell, held, run, script, run, script, close, tell, sure});
}

// mark, variables, mark, folder, mark, variables, mark: each mark is a line. Then four times what
// else the shell holds, and a mark.
Expected<SessionState> parse_session_state(std::string_view text, std::string_view mark,
                                           HeldBy holder) {
  const std::string line = concat("%\n", {mark});
  const auto next_part = [&](std::string_view& part) {
    std::size_t end = 0;
    while (!starts_with(text.substr(end), line)) {
      end = text.find('\n', end);
      if (end++ == std::string_view::npos) return false;
    }
    part = text.substr(0, end);
    text.remove_prefix(end + line.size());
    return true;
  };
  std::array<std::string_view, 4> parts;
  bool complete = !mark.empty() && !has_nul(text);
  for (std::string_view& part : parts) complete = complete && next_part(part);
  const bool tells_held = holder != HeldBy::none;
  if (!complete || !parts[0].empty() || (!tells_held && !text.empty()) ||
      !starts_with(parts[2], "/"sv))
    return make_error(ErrorCode::parse,
                      "its shell did not tell all of them at its end (it ended in exec or set a "
                      "trap on EXIT, the folder is gone, or they are more than 256 KiB)");
  SessionState state;
  state.work_dir = std::string(parts[2].substr(0, parts[2].size() - 1));
  auto before = ExportList(parts[1]).read();
  if (!before) return before.failure();
  state.before = std::move(*before);
  auto variables = ExportList(parts[3]).read();
  if (!variables) return variables.failure();
  state.variables = std::move(*variables);
  std::string_view part;
  while (tells_held && next_part(part)) state.held.push_back(std::string(part));
  if (state.held.size() != 4 || !text.empty()) state.held.clear();
  return state;
}

// The reader must not block when a process that was left behind holds the pipe open, nor the shell
// when the pipe is full. Where the pipe cannot be made larger it has the usual 64 KiB.
Expected<void> make_session_pipe(UniqueFd& told, UniqueFd& writer) {
  if (!make_pipe(told, writer)) return system_error(errno, "cannot make a pipe for the session");
  set_nonblocking(told);
  set_nonblocking(writer);
#if defined(__linux__)
  ::fcntl(told.get(), F_SETPIPE_SZ, static_cast<int>(longest_session_text));
#endif
  return {};
}

// Called once the command has ended. An empty pipe ends the text as its end does.
std::string read_session_text(const UniqueFd& told) {
  return read_up_to(told, longest_session_text);
}

}  // namespace inner

Session::Session() : state_(new_shared<State>()) {}

std::string Session::work_dir() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->work_dir;
}

Variables Session::variables() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  Variables variables;
  for (const auto& [variable, value] : state_->changes)
    if (!value.empty()) variables.push_back({variable, value.substr(1)});
  return variables;
}

void Session::reset() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->work_dir.clear();
  state_->changes.clear();
  for (TextMap& held : state_->held) held.clear();
  ++state_->resets;
}

// Takes the changes of a command over into the session, whose folder was `folder` when the command
// began. False: there are too many variables, and nothing is taken. After a reset of the session
// nothing is taken either.
bool Session::State::take(const SessionState& told, const std::string& folder,
                          std::uint64_t reset) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (reset != resets) return true;
  auto changed = changes;
  decltype(changes) gone;
  for (const auto& [variable, value] : told.before)
    if (is_carried(variable)) gone[variable] = value;
  for (const auto& [variable, value] : told.variables) {
    if (!is_carried(variable)) continue;
    const auto before = gone.find(variable);
    if (before == gone.end() || before->second != value) changed[variable] = concat("=%", {value});
    if (before != gone.end()) gone.erase(before);
  }
  for (const auto& variable : gone)
    if (variable.first != "HOME") changed[variable.first].clear();
  std::size_t bytes = 0;
  for (const auto& [variable, value] : changed)
    bytes += variable.size() + value.size() - (value.empty() ? 0 : 1);
  if (changed.size() > max_variables || bytes > max_bytes) return false;
  changes = std::move(changed);
  if (told.work_dir != folder || work_dir.empty()) work_dir = told.work_dir;
  return true;
}

// The same of what else a shell holds, which was `before` when the command began.
bool Session::State::take_held(HeldBy holder, const TextMap& before, const TextMap& now,
                               std::uint64_t reset) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (reset != resets) return true;
  TextMap& all = held[static_cast<std::size_t>(holder)];
  TextMap changed = all;
  for (const auto& [key, text] : before)
    if (now.find(key) == now.end()) changed.erase(key);
  for (const auto& [key, text] : now)
    if (const auto old = before.find(key); old == before.end() || old->second != text)
      changed[key] = text;
  if (changed.size() > max_held || joined_texts(changed).size() > max_held_bytes) return false;
  all = std::move(changed);
  return true;
}

const std::shared_ptr<const Guard>& Executor::Admission::guard_of(const Gate& gate) const {
  return guard ? guard : gate.guard;
}

// A variable that the command itself brings is set, also where the session has another value for it
// or has unset it.
void Executor::Admission::enter(const Command& given, const Gate& gate) {
  const std::string& workspace = gate.options.workspace;
  ending.session = Session::State::of(*given.session);
  Command& command = in_session.emplace(given);
  const std::lock_guard<std::mutex> lock(ending.session->mutex);
  ending.resets = ending.session->resets;
  ending.folder = ending.session->work_dir.empty() ? workspace : ending.session->work_dir;
  if (command.work_dir.empty()) command.work_dir = ending.session->work_dir;
  command.environment.clear();
  for (const auto& [variable, value] : ending.session->changes)
    if (!value.empty())
      command.environment.push_back({variable, value.substr(1)});
    else
      unset.push_back(variable);
  for (const auto& variable : given.environment) {
    command.environment.push_back(variable);
    for (auto at = unset.begin(); at != unset.end();)
      at = *at == variable.first ? unset.erase(at) : at + 1;
  }
  ending.guard = gate.guard;
  if (gate.guard->with_held({}))
    ending.holder = held_by(given.interpreter.empty() ? gate.options.shell : given.interpreter);
  ending.held = ending.session->held[static_cast<std::size_t>(ending.holder)];
  for (const auto& variable : given.environment) ending.held.erase(concat("3%", {variable.first}));
  held = joined_texts(ending.held);
  if (!held.empty()) guard = gate.guard->with_held(held);
}

// A note on what of all else that a shell holds the session does not take over.
std::string Executor::Admission::Ending::hand_on_held(const SessionState& told) const {
  if (holder == HeldBy::none) return {};
  constexpr std::string_view all =
      "the session keeps its functions and unexported variables as they were: ";
  if (told.held.empty()) return concat("%with what is exported they are more than 256 KiB", {all});
  std::vector<std::string> left_out;
  auto read = guard->held_by_shell(told.held, holder == HeldBy::bash, left_out);
  if (!read) return concat({all, read.error().message});
  TextMap now;
  TextMap exported;
  if (holder == HeldBy::sh)
    for (const auto& variable : told.variables) exported[variable.first];
  for (auto& [key, text] : *read) {
    const std::string_view name = std::string_view(key).substr(1);
    const auto before = held.find(key);
    const bool is_new = before == held.end() || before->second != text;
    if (key[0] == '3' && (!is_carried(name) || exported.find(name) != exported.end())) continue;
    // Functions and aliases are commands: what runs them may not show what they are.
    if (is_new && (key[0] == '2' || key[0] == '4') &&
        !guard->judge_reading(text, {}, told.work_dir, false, told.variables).verdict)
      left_out.push_back(concat({key[0] == '2' ? "function "sv : "alias "sv, name}));
    else
      now[key] = std::move(text);
  }
  if (now != held && !guard->with_held(joined_texts(now))
                          ->judge_reading({}, {}, told.work_dir, false, told.variables)
                          .verdict)
    return concat("%no later command could be judged with them", {all});
  if (!session->take_held(holder, held, now, resets))
    return concat("%they are more than 1,024 or 256 KiB", {all});
  if (left_out.empty()) return {};
  constexpr std::size_t longest = 200;
  return concat("the session does not keep %: a later command could not be judged with it",
                {utf8_prefix(to_utf8(joined(left_out, ", "sv)), longest)});
}

// A note on what the session does not take over, and why; empty when it takes all. It does not
// take a folder in which the next command would be refused.
std::string Executor::Admission::Ending::hand_on(const ProcessResult& ended,
                                                 const PathRules& paths) const {
  constexpr std::string_view all = "the session keeps its folder and variables as they were: ";
  if (ended.outcome != Outcome::exited) return concat("%the command did not end by itself", {all});
  auto told = parse_session_state(session_text(), mark, holder);
  if (!told) return concat({all, told.error().message});
  std::string note;
  if (paths.permission(told->work_dir) == Permission::none) {
    const std::string there = shell_word(to_utf8(told->work_dir));
    note = concat(
        "the session stays in %, because % is not within the folders that commands may start in; "
        "`cd % && ...` works in one command",
        {printable(folder), there, there});
    told->work_dir = folder;
  }
  if (!session->take(*told, folder, resets))
    return concat("%more than 256 variables or 64 KiB changed", {all});
  const std::string other = hand_on_held(*told);
  return concat("%%%", {note, note.empty() || other.empty() ? "" : "; ", other});
}

}  // namespace v0_1
}  // namespace codeexec
