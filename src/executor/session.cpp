// Sessions: what a command leaves to those after it.
//
// Each command of a session has a shell of its own. The shell writes its folder and its exported
// variables into a pipe, at its start and at its end; what differs becomes the session's.
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
//   reset   since the command began: all stays, without a note      take()
//
// What holds: the state changes under its mutex and only in take() and reset(), so that a command
// never finds half of what another one left. Each case in which something stays puts a note into
// the result, but for a reset. What comes through the pipe is hostile text: it is read as the
// output of `export -p` alone, nothing in it is expanded, and no shell ever runs it.

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
// options, then NAME=value, the value in any of the quotes that shells know. Expands nothing.
class ExportList {
 public:
  explicit ExportList(std::string_view text) : text_(text) {}

  Expected<Variables> read() {
    Variables variables;
    while (at_ < text_.size())
      if (!read_line(variables))
        return make_error(ErrorCode::parse,
                          "what the shell told of its variables was not understood at byte %",
                          {at_}, at_);
    return variables;
  }

 private:
  bool read_line(Variables& variables) {
    std::string word;
    if (!read_word(word) || !is_any(word, "export", "declare", "typeset")) return false;
    bool wanted = true;
    std::string variable;
    while (next_is(' ')) {
      if (!read_word(word)) return false;
      if (!variable.empty()) {
        if (wanted) return false;  // only an array has more words
      } else if (starts_with(word, "-"sv)) {
        // Read-only, a function, an array, tied to one.
        wanted = wanted && word.find_first_of("rfaAT") == std::string::npos;
      } else {
        variable = word;
      }
    }
    if (!next_is('\n')) return false;
    const std::size_t equals = variable.find('=');
    if (wanted && equals != std::string::npos && is_name(variable.substr(0, equals)))
      variables.push_back({variable.substr(0, equals), variable.substr(equals + 1)});
    return true;
  }

  bool next_is(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool read_word(std::string& word) {
    word.clear();
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\n') {
      const char c = text_[at_++];
      if (c == '\'') {
        if (!read_quoted(word, '\'', ""sv)) return false;
      } else if (c == '"') {
        if (!read_quoted(word, '"', "$`\"\\"sv)) return false;
      } else if (c == '$') {
        if (!next_is('\'') || !read_ansi(word)) return false;
      } else if (c == '\\') {
        if (at_ == text_.size()) return false;
        word += text_[at_++];
      } else if (std::strchr("`&|;<>", c)) {
        return false;
      } else {
        word += c;
      }
    }
    return true;
  }

  // To the quote that ends it. A backslash stands for itself, but before one of `escaped`.
  bool read_quoted(std::string& word, char quote, std::string_view escaped) {
    while (at_ < text_.size()) {
      char c = text_[at_++];
      if (c == quote) return true;
      if (c == '\\' && at_ < text_.size() && escaped.find(text_[at_]) != std::string_view::npos)
        c = text_[at_++];
      word += c;
    }
    return false;
  }

  bool read_ansi(std::string& word) {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\'') return true;
      if (c != '\\')
        word += c;
      else if (const int byte = read_escape(); byte > 0)
        word += static_cast<char>(byte);
      else
        return false;
    }
    return false;
  }

  // What follows a backslash: a byte, or -1. zsh has \C-x and \M-x for control and meta, and
  // \M-\C-x for both. More levels no shell writes; they could be as many as use up the stack.
  int read_escape(int levels = 2) {
    if (at_ == text_.size()) return -1;
    const char c = text_[at_];
    if (c >= '0' && c <= '7') return read_number(8, 3);
    ++at_;
    if (c == 'x') return read_number(16, 2);
    if ((c == 'M' || c == 'C') && next_is('-') && at_ < text_.size()) {
      int byte = static_cast<unsigned char>(text_[at_++]);
      if (byte == '\\' && (levels == 0 || (byte = read_escape(levels - 1)) < 0)) return -1;
      return c == 'M' ? byte | 0x80 : byte == '?' ? 0x7f : byte & 0x1f;
    }
    if (c == 'e' || c == 'E') return '\033';
    if (c == '\'' || c == '"' || c == '?') return c;
    const char known = escaped_character(c);
    return known ? known : -1;
  }

  int read_number(unsigned base, std::size_t most) {
    const std::size_t begin = at_;
    const int byte = static_cast<int>(read_digits(text_, at_, most, base));
    return at_ > begin && byte < 256 ? byte : -1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

inline namespace inner {

std::string session_script(std::string_view shell, int descriptor, std::string_view mark,
                           std::size_t parts) {
  const std::string_view program = base_name(shell);
  static constexpr auto carrying =
      NameSet{"ash", "bash", "dash", "ksh", "ksh93", "lksh", "mksh", "oksh", "sh", "yash", "zsh"};
  if (!carrying.has(program)) return {};
  // Functions and aliases of these names that the script has defined must not run here.
  const char* const own = program == "zsh"sv ? "builtin " : "\\command ";
  const std::string echo = concat("%echo %", {own, mark});
  const std::string list = concat("%&&%export -p&&%", {echo, own, echo});
  const std::string tell = concat("{ %pwd -P&&%; } 2>/dev/null >&8", {own, list});
  const std::string fd = std::to_string(descriptor);
  std::string script = "set --;";
  for (std::size_t i = 1; i <= parts; ++i) append_all(script, "$%", {i});
  // The report goes to descriptor 8. That is closed for the script, and the shell has it back for
  // the trap; ksh, zsh and yash would not, so it stays open in them. The script begins on the first
  // line, so that errors name its own lines. Once $2 is the mark, the lines after the script
  // report, and our trap adds nothing. A trap of the script's own on EXIT takes the place of ours,
  // and sees the script's $?.
  return concat(
      "%{ %; } 2>/dev/null >&8;trap '{ case ${2-} in %);;*)%;esac; } 2>/dev/null||:' EXIT;case "
      "${KSH_VERSION-}${ZSH_VERSION-}${YASH_VERSION-} in ?*)eval \"%\";;*)eval \"%\" 8>&-;esac\n{ "
      "set -- \"$?\" %;set +x; } 2>/dev/null\n%||:\nexit \"$1\"",
      {descriptor == 8 ? std::string()
                       : concat("{ true; } 2>/dev/null >&%&&exec 8>&% %>&-;", {fd, fd, fd}),
       list, mark, tell, script, script, mark, tell});
}

// mark, variables, mark, folder, mark, variables, mark: each mark is a line.
Expected<SessionState> parse_session_state(std::string_view text, std::string_view mark) {
  const std::string line = concat("%\n", {mark});
  std::array<std::string_view, 4> parts;
  bool complete = !mark.empty() && !has_nul(text);
  for (std::string_view& part : parts) {
    std::size_t end = 0;
    while (complete && !starts_with(text.substr(end), line)) {
      end = text.find('\n', end);
      complete = end++ != std::string_view::npos;
    }
    if (!complete) break;
    part = text.substr(0, end);
    text.remove_prefix(end + line.size());
  }
  if (!complete || !parts[0].empty() || !text.empty() || !starts_with(parts[2], "/"sv))
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
  std::string text(longest_session_text, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t part = ::read(told.get(), &text[size], text.size() - size);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    size += static_cast<std::size_t>(part);
  }
  text.resize(size);
  return text;
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

// A variable that the command itself brings is set, also where the session has another value for it
// or has unset it.
void Executor::Admission::enter(const Command& given, const std::string& workspace) {
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
}

// A note on what the session does not take over, and why; empty when it takes all. It does not
// take a folder in which the next command would be refused.
std::string Executor::Admission::Ending::hand_on(const ProcessResult& ended,
                                                 const PathRules& paths) const {
  constexpr std::string_view all = "the session keeps its folder and variables as they were: ";
  if (ended.outcome != Outcome::exited) return concat("%the command did not end by itself", {all});
  auto told = parse_session_state(session_text(), mark);
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
  if (session->take(*told, folder, resets)) return note;
  return concat("%more than 256 variables or 64 KiB changed", {all});
}

}  // namespace v0_1
}  // namespace codeexec
