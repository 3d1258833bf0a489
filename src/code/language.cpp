// Guessing the language of code.

#include "code/code.hpp"
#include "code/code_internal.hpp"

#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr auto common_commands = NameSet{
    "apt",    "apt-get", "awk",    "bash",   "brew",    "cargo",  "cat",  "cd",    "chmod", "cmake",
    "conda",  "cp",      "curl",   "docker", "echo",    "export", "find", "git",   "go",    "grep",
    "head",   "ls",      "make",   "mkdir",  "mv",      "node",   "npm",  "npx",   "pip",   "pip3",
    "pnpm",   "pwd",     "pytest", "python", "python3", "rm",     "sed",  "set",   "sh",    "sort",
    "source", "sudo",    "tail",   "tar",    "touch",   "uv",     "wget", "which", "yarn"};
// Words that begin a compound command of a shell.
constexpr auto shell_keywords = NameSet{"case", "for", "if", "until", "while"};
// What stands behind the name of a variable in Python.
constexpr auto python_operators =
    NameSet{"!=", "*=", "+=", "-=", "/=", "=", "==", "and", "if", "in", "is", "not", "or"};
// Words that begin a statement of Python, and one with a block.
constexpr auto python_statements = NameSet{"assert", "await", "del", "raise"};
constexpr auto python_blocks =
    NameSet{"async", "class", "def", "for", "if", "match", "try", "try:", "while", "with"};

bool is_dotted_name(std::string_view text) {
  return is_name_start(text.empty() ? '\0' : text.front()) && text.back() != '.' &&
         all_are(text, [](char c) { return is_name_char(c) || c == '.'; });
}

// The first word of a line of a shell.
std::string_view first_word(std::string_view line) {
  return line.substr(0, line.find_first_of(" \t;|&<>"));
}

// Whether a line is one of a shell and could not be one of Python.
bool is_shell_line(std::string_view line) {
  std::string_view word = first_word(line);
  // Variables of a command.
  for (std::size_t equals = word.find('='); equals != std::string_view::npos;
       equals = word.find('=')) {
    const std::string_view value = word.substr(equals + 1);
    if (!is_name(word.substr(0, equals))) return false;
    if (starts_with(value, "$"sv) || starts_with(value, "`"sv) || starts_with(value, "\"$"sv))
      return true;
    line = without_blanks(line.substr(word.size()));
    word = first_word(line);
    if (word.empty()) return false;
  }
  const auto has = [line](std::string_view part) {
    return line.find(part) != std::string_view::npos;
  };
  if (shell_keywords.has(word))
    return has("; then"sv) || has("; do"sv) || starts_with(line, "if ["sv) ||
           starts_with(line, "while ["sv) || word == "until"sv ||
           (word == "case"sv && ends_with(line, " in"sv));
  if (starts_with(word, "./"sv)) return true;
  if (!common_commands.has(word)) return false;
  // What is a variable of Python that happens to have such a name.
  const std::string_view rest = without_blanks(line.substr(word.size()));
  const std::string_view next = rest.substr(0, rest.find_first_of(" \t"));
  return !python_operators.has(next);
}

enum class Guess { yes, no, open };

// Whether a line with an `=` is an assignment in Python. `equals` is where that is.
Guess guess_assignment(std::string_view line, std::size_t equals) {
  const std::string_view value = line.substr(equals + 1);
  if (starts_with(value, "="sv)) return Guess::no;
  std::string_view target = line.substr(0, equals);
  const bool spaced = target.size() != without_blanks(target).size();
  if (is_dotted_name(target) && !spaced && !value.empty() && !is_shell_blank(value.front()))
    return Guess::open;
  if (!target.empty() && "+-*/%|&^@"sv.find(target.back()) != std::string_view::npos)
    target.remove_suffix(1);
  // An annotation.
  target = target.substr(0, target.find(": "));
  char before = ',';
  for (const char c : without_blanks(target)) {
    const bool part = is_name_char(c) || ".,*()[]'\""sv.find(c) != std::string_view::npos;
    const bool blank_after_comma = c == ' ' && before == ',';
    if (!part && !blank_after_comma) return Guess::no;
    before = c;
  }
  return is_name_start(target.empty() ? '\0' : target.front()) ? Guess::yes : Guess::no;
}

// Whether a line is one of Python; open: it may be a shell's as well.
Guess guess_python(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  const auto decided = [](bool yes) { return yes ? Guess::yes : Guess::no; };
  const std::string_view rest = without_blanks(line.substr(word.size()));
  const char last = line.back();
  if (last == ';') return Guess::no;
  if (starts_with(line, "\"\"\""sv) || starts_with(line, "'''"sv)) return Guess::yes;
  if (line.front() == '@') return decided(is_dotted_name(line.substr(1, line.find('(') - 1)));
  if (word == "import"sv)
    return decided(all_are(
        rest, [](char c) { return is_name_char(c) || c == '.' || c == ',' || is_shell_blank(c); }));
  if (word == "from"sv) return decided(rest.find(" import ") != std::string_view::npos);
  if (python_statements.has(word)) return Guess::yes;
  if (python_blocks.has(word)) {
    if (last == '{' || last == '}') return Guess::no;
    return decided(line.find(':') != std::string_view::npos || last == '(' || last == ',');
  }
  const std::size_t sign = line.find_first_of("(=");
  if (sign == std::string_view::npos || sign == 0) return Guess::no;
  if (line[sign] == '=') return guess_assignment(line, sign);
  const std::string_view callee = line.substr(0, sign);
  if (is_dotted_name(callee))
    return decided(last != '{' && !starts_with(callee, "console."sv) && callee != "require"sv);
  const std::size_t equals = line.find(" = ");
  return equals == std::string_view::npos ? Guess::no : guess_assignment(line, equals + 1);
}

std::string language_of_interpreter(std::string_view line) {
  line = without_blanks(line.substr(2));
  std::string_view program = line.substr(0, line.find_first_of(" \t"));
  if (ends_with(program, "/env"sv)) {
    line = without_blanks(line.substr(program.size()));
    if (starts_with(line, "-S "sv)) line = without_blanks(line.substr(3));
    program = line.substr(0, line.find_first_of(" \t"));
  }
  program = base_name(program);
  if (is_any(program, "sh", "ash", "dash")) return "sh";
  if (program == "bash") return "bash";
  if (program == "node"sv) return "javascript";
  return starts_with(program, "python"sv) ? "python" : "";
}

}  // namespace

std::string infer_language(std::string_view code) {
  if (starts_with(code, "#!"sv)) return language_of_interpreter(take_line(code));
  bool assigns = false;
  while (!code.empty()) {
    const std::string_view line = without_blanks(take_line(code));
    if (line.empty() || line.front() == '#') continue;
    if (is_shell_line(line)) return "sh";
    const Guess guess = guess_python(line);
    if (guess != Guess::open) return guess == Guess::yes ? "python" : "";
    assigns = true;
  }
  return assigns ? "python" : "";
}

}  // namespace v0_1
}  // namespace codeexec
