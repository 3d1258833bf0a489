// Text that is typed to a program that runs.
//
// What a shell reads a piece at a time is one text, so it is judged as one: what was typed before,
// and the new piece behind it, as the input of the script. So a `cd` or a variable of an earlier
// line counts, and a word may come in two pieces.
//
//   the script reads       on a pipe                          on a terminal
//   no commands            anything passes                    anything passes
//   commands               judged; the last line may lack     judged; whole lines of ASCII, no open
//                          its end, as EOF would end it       construct, no expansion of history
//
// A terminal edits: what its program reads is what was typed only if no key has moved the cursor
// or recalled another line. Behind such a key the line is not known, until ctrl-c drops it. `typed`
// then ends in the mark below, which no text has. So an open construct does not pass, either: what
// becomes of it at the next ctrl-c would depend on what the program does meanwhile. Nor does a line
// when the script, or a line before, has given keys or signs another meaning.

#include "policy/typed_internal.hpp"

#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t most_typed = std::size_t{64} << 10;
constexpr char unknown_line = '\x1b';

Verdict refused_text(std::string_view why) { return refusal("typed-text", std::string(why), 0, 0); }

// Reads what a terminal gets: text, keys that edit, keys that do something else.
class TerminalReader {
 public:
  // `lines` is what was typed before; the new lines are added.
  TerminalReader(std::string_view text, std::string& lines) : text_(text), lines_(lines) {
    unknown_ = ends_with(lines, std::string_view(&unknown_line, 1));
    if (unknown_) lines.pop_back();
  }

  // Null, or why the program may read something else.
  const char* read() {
    while (at_ < text_.size())
      if (const char* const problem = read_next()) return problem;
    const std::size_t line = lines_.rfind('\n') + 1;  // npos + 1 is 0
    if (lines_.find_first_not_of(' ', line) != std::string::npos)
      return "the last line is not finished: end it with a newline, or with the key enter";
    if (unknown_) lines_ += unknown_line;
    return nullptr;
  }

 private:
  const char* read_next() {
    const char c = text_[at_];
    if (c == '\r' || c == '\n' || (c >= ' ' && c <= '~')) {
      if (unknown_ && c != ' ')
        return "which line stands there is not known after keys that edit it: press ctrl-c first, "
               "and type the whole line";
      lines_ += c == '\r' ? '\n' : c;
      ++at_;
      return nullptr;
    }
    if (!lines_.empty() && lines_.back() != '\n' && lines_.back() != ' ') return unknown_text;
    // Those that end, stop or redraw: ctrl-c, -d, -l, -q, -s, -u, -z and ctrl-backslash.
    if (c != '\0' && std::strchr("\x03\x04\x0c\x11\x13\x15\x1a\x1c", c)) {
      if (c == '\x03') unknown_ = false;
      ++at_;
      return nullptr;
    }
    unknown_ = true;
    return skip_editing_key() ? nullptr : unknown_text;
  }

  // tab, backspace, escape alone, ESC [ ... final, ESC O final
  bool skip_editing_key() {
    const char c = text_[at_++];
    if (c == '\t' || c == '\x7f') return true;
    if (c != '\x1b') return false;
    if (at_ == text_.size()) return true;
    const char kind = text_[at_++];
    if (kind != '[' && kind != 'O') return false;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '?') ++at_;
    return at_ < text_.size() && text_[at_] >= '@' && text_[at_++] <= '~';
  }

  static constexpr const char* unknown_text =
      "a terminal edits what is typed, so that controls, escapes, tabs and other characters than "
      "those of ASCII may make another line of it: write such a text to a file and run that, or "
      "start the program without a terminal";

  std::string_view text_;
  std::string& lines_;
  std::size_t at_ = 0;
  bool unknown_ = false;
};

// True if a shell at a terminal would put an earlier line in place of a part of this one.
bool recalls_history(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = take_part(lines, '\n');
    if (starts_with(line, "^"sv)) return true;
    for (std::size_t at = line.find('!'); at < line.size(); at = line.find('!', at + 1))
      if (at + 1 < line.size() && !std::strchr(" =(\"';)]", line[at + 1])) return true;
  }
  return false;
}

bool ends_in_backslash(std::string_view lines) {
  if (ends_with(lines, "\n"sv)) lines.remove_suffix(1);
  std::size_t slashes = 0;
  while (slashes < lines.size() && lines[lines.size() - slashes - 1] == '\\') ++slashes;
  return slashes % 2 == 1;
}

shell::Input input_of_lines(std::string_view lines) {
  shell::Input input;
  input.kind = shell::Input::Kind::known;
  input.text = std::string(lines);
  return input;
}

// Null, or why a shell at a terminal may run something else than these lines.
const char* problem_of_shell(std::string_view added, std::string_view lines, bool open) {
  if (open || ends_in_backslash(lines))
    return "the text ends within a command: type all of its lines in one call";
  if (recalls_history(added))
    return "a shell at a terminal puts an earlier line in place of ! and ^: write the text to a "
           "file and run that, or start the shell without a terminal";
  return nullptr;
}

}  // namespace

inline namespace inner {

void note_editing(Case& judged, const Form& form, std::string_view program) {
  static constexpr auto editing = NameSet{"bind", "reset", "setterm", "tabs", "tput", "tset"};
  // What stty only shows, and whether what is typed is shown.
  static constexpr auto harmless =
      NameSet{"--all", "--save", "-a", "-echo", "-g", "echo", "size", "speed"};
  judged.edits_lines = judged.edits_lines || editing.has(program);
  const bool is_stty = program == "stty"sv;
  if (!is_stty && program != "set"sv) return;
  for (std::size_t i = 1; i < form.size; ++i) {
    const std::string_view word = form.words[i].text;
    if (is_stty ? !harmless.has(word) : is_any(word, "emacs", "vi") || is_unknown(word))
      judged.edits_lines = true;
  }
}

void note_editing(Case& judged, std::string_view variable) {
  if (is_any(variable, "histchars", "INPUTRC")) judged.edits_lines = true;
}

Verdict judge_typed_text(FunctionRef<ReadVerdict(const shell::Input&)> judge, bool terminal,
                         std::string_view text, std::string& typed) {
  if (typed.size() + text.size() > most_typed) {
    shell::Input unknown;
    unknown.kind = shell::Input::Kind::unknown;
    if (judge(unknown).reader == Reader::none) return {};
    return refused_text(
        "more than 64 KiB were typed to a program that runs commands, more than can be judged "
        "together: start another one, or write a file and run that");
  }
  std::string lines = concat({typed, text});
  ReadVerdict found = judge(input_of_lines(lines));
  if (found.reader != Reader::none && terminal) {
    lines = typed;
    const std::size_t before = typed.size() - ends_with(typed, std::string_view(&unknown_line, 1));
    if (const char* const problem = TerminalReader(text, lines).read())
      return refused_text(problem);
    std::string_view known = lines;
    if (ends_with(known, std::string_view(&unknown_line, 1))) known.remove_suffix(1);
    found = judge(input_of_lines(known));
    const std::string_view added = known.substr(before);
    const char* const problem =
        found.reader == Reader::shell ? problem_of_shell(added, known, found.open) : nullptr;
    if (found.verdict && problem) return refused_text(problem);
    if (found.verdict && found.edits_lines)
      return refused_text(
          "stty, bind, set -o vi, INPUTRC and the like change what a terminal makes of a "
          "line: run it as a command, or start the program without a terminal");
  }
  if (found.verdict) typed = std::move(lines);
  return std::move(found.verdict);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
