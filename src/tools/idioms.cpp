// What a plain sh takes for something else than bash does, and reports no error.
//
//   echo {1..3}, &> log, $'a\tb', ((i=1))   the two readings of the script have other commands
//   echo -e, read -a, printf %q             options that a plain sh lacks
//   source f; echo done                     commands that it lacks, where the script goes on
//   $RANDOM                                 variables that are empty there
//
// The script is read as both shells would, by the parser that the policy uses: what stands in
// quotes, comments and here-documents is no command.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "shell/script_internal.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A command as it would run, and where it stands in the script.
struct ReadCommand {
  std::string text = {};
  std::size_t begin = 0;
  std::size_t end = 0;
};

// As far as two readings of it may differ.
std::string reading_of(const shell::Command& command) {
  std::string text;
  for (const shell::Assignment& assignment : command.assignments)
    append_all(text, {assignment.name, "=", assignment.value.text, "\n"});
  for (const shell::Word& word : command.words) append_all(text, {word.text, "\n"});
  for (const shell::Redirection& redirection : command.redirections)
    append_all(text, {static_cast<int>(redirection.kind), " ", redirection.fd, " ",
                      redirection.target.text, "\n"});
  if (command.background) text += '&';
  return text;
}

bool has_option_letter(std::string_view word, std::string_view letters) {
  return starts_with(word, "-") && word.find_first_of(letters) != word.npos;
}

bool names_word(const shell::Command& command, std::string_view wanted) {
  for (const shell::Word& word : command.words)
    if (word.text == wanted) return true;
  return false;
}

// $(<file), and what bash alone takes for a connection.
bool redirects_as_bash(const shell::Command& command) {
  for (const shell::Redirection& redirection : command.redirections) {
    const std::string_view target = redirection.target.text;
    if (starts_with(target, "/dev/tcp/") || starts_with(target, "/dev/udp/")) return true;
  }
  return command.words.empty() && command.assignments.empty() && !command.compound &&
         command.depth > 0 && command.redirections.size() == 1 &&
         command.redirections[0].kind == shell::Redirection::Kind::read;
}

// Whether a plain sh lacks the command, or the option that it is given.
bool is_of_bash(const shell::Command& command) {
  if (redirects_as_bash(command)) return true;
  if (command.words.empty()) return false;
  const std::string_view name = command.words[0].text;
  const std::string_view first =
      command.words.size() > 1 ? std::string_view(command.words[1].text) : std::string_view();
  if (is_any(name, "source", "[[", "((", "let", "declare", "typeset", "pushd", "popd", "dirs",
             "shopt", "mapfile", "readarray", "disown", "builtin", "enable", "caller", "compgen"))
    return true;
  // What follows the letters is text: `echo -e` prints its own option.
  if (name == "echo")
    return has_option_letter(first, "eE") && first.find_first_not_of("-neE") == first.npos;
  if (name == "read") return has_option_letter(first, "aNntsdiue");
  if (name == "printf") return first == "-v" || first.find("%q") != first.npos;
  if (name == "export") return has_option_letter(first, "fn");
  if (name == "wait") return first == "-n";
  if (name == "type") return has_option_letter(first, "tpaPf");
  if (name == "kill") return starts_with(first, "-SIG");
  if (name == "trap")
    return names_word(command, "ERR") || names_word(command, "DEBUG") ||
           names_word(command, "RETURN");
  if (name == "test" || name == "[") return names_word(command, "==");
  return false;
}

// Variables that bash sets and a plain sh does not.
constexpr const char* variables_of_bash[] = {
    "RANDOM",   "SRANDOM",    "SECONDS",      "UID",           "EUID",     "HOSTNAME",
    "OSTYPE",   "HOSTTYPE",   "MACHTYPE",     "BASH_VERSION",  "BASHPID",  "BASH_SOURCE",
    "FUNCNAME", "PIPESTATUS", "EPOCHSECONDS", "EPOCHREALTIME", "DIRSTACK",
};
static_assert(std::size(variables_of_bash) <= 32);

// Those that a word has and nothing in the script sets, a bit each. Other names may have the same
// numbers.
std::uint32_t variables_in(const shell::Word& word) {
  std::uint32_t found = 0;
  for (const std::uint16_t number : word.unset)
    for (std::size_t i = 0; number != 0 && i < std::size(variables_of_bash); ++i)
      if (hash_of_name(variables_of_bash[i]) == number) found |= std::uint32_t{1} << i;
  return found;
}

// Of a value that is assigned only its text says what it is made of.
std::uint32_t variables_in(const shell::Command& command, std::string_view script) {
  std::uint32_t found = 0;
  for (const shell::Word& word : command.words) found |= variables_in(word);
  for (const shell::Redirection& redirection : command.redirections)
    found |= variables_in(redirection.target);
  for (const shell::Assignment& assignment : command.assignments) {
    const shell::Word& value = assignment.value;
    if (value.known() || value.begin > value.end || value.end > script.size()) continue;
    const std::string_view text = script.substr(value.begin, value.end - value.begin);
    for (std::size_t i = 0; i < std::size(variables_of_bash); ++i)
      if (text.find(variables_of_bash[i]) != text.npos) found |= std::uint32_t{1} << i;
  }
  return found;
}

struct Reading {
  std::vector<ReadCommand> commands = {};
  std::size_t of_bash = std::string::npos;  // the first that a plain sh lacks
  std::uint32_t variables = 0;
  shell::Outcome outcome = {};
};

Reading read_as(shell::Dialect dialect, std::string_view script) {
  Reading reading;
  shell::Options options;
  options.dialect = dialect;
  options.limits.max_text = std::size_t{1} << 20;
  options.limits.max_commands = 4096;
  reading.outcome = shell::walk(script, options, [&](const shell::Visit& visit) {
    const shell::Command& command = visit.command;
    if (reading.of_bash == std::string::npos && is_of_bash(command))
      reading.of_bash = reading.commands.size();
    reading.variables |= variables_in(command, script);
    reading.commands.push_back({reading_of(command), command.begin, command.end});
  });
  return reading;
}

// Where one of these variables stands: $RANDOM, ${RANDOM}, $((RANDOM % 6)).
std::size_t variable_of_bash(std::string_view script, std::uint32_t variables) {
  for (std::size_t row = 0; row < std::size(variables_of_bash); ++row) {
    const std::string_view name = variables_of_bash[row];
    const bool stands_in_a_word = (variables >> row & 1) != 0;
    for (std::size_t at = script.find(name); at != script.npos; at = script.find(name, at + 1)) {
      const std::string_view before = script.substr(0, at);
      const std::string_view after = script.substr(at + name.size());
      if (!after.empty() && is_name_char(after[0])) continue;
      for (const std::string_view mark : {"$"sv, "${"sv})
        if (stands_in_a_word && ends_with(before, mark)) return at - mark.size();
      // Also in texts in quotes, where it is rare.
      const std::size_t arithmetic = before.rfind("$((");
      if (before.empty() || arithmetic == before.npos || is_name_char(before.back())) continue;
      if (before.find('\'', arithmetic) == before.npos &&
          before.find("))", arithmetic) == before.npos)
        return arithmetic;
    }
  }
  return script.npos;
}

std::string excerpt_at(std::string_view script, std::size_t begin, std::size_t end) {
  constexpr std::size_t longest = 60;
  begin = std::min(begin, script.size());
  const std::string_view text = script.substr(begin, std::max(end, begin) - begin);
  const std::string_view line = text.substr(0, text.find('\n'));
  return printable(utf8_prefix(line, longest)) + (line.size() > longest ? "..." : "");
}

}  // namespace

inline namespace inner {

std::string bash_idiom_in(std::string_view script) {
  const Reading bash = read_as(shell::Dialect::bash, script);
  if (!bash.outcome.complete) return {};
  const auto shown = [&](const ReadCommand& command) {
    return excerpt_at(script, command.begin, command.end);
  };
  if (bash.of_bash != std::string::npos) return shown(bash.commands[bash.of_bash]);
  if (const std::size_t at = variable_of_bash(script, bash.variables); at != std::string_view::npos)
    return excerpt_at(script, at, script.find_first_of(" \t;\"'&|)/", at));
  if (!bash.outcome.dialect_dependent) return {};
  const Reading plain = read_as(shell::Dialect::posix, script);
  if (!plain.outcome.complete || plain.commands.size() != bash.commands.size())
    return excerpt_at(script, 0, script.size());
  // To bash `time` is a word of the language, and to others a program that does the same.
  for (std::size_t i = 0; i < bash.commands.size(); ++i)
    if (plain.commands[i].text != bash.commands[i].text &&
        plain.commands[i].text != "time\n" + bash.commands[i].text)
      return shown(bash.commands[i]);
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
