// What a shell holds, from what it says of that: for each thing the text that makes it again.
//
//   text        bash               sh        what is kept                              its key
//   options     shopt -ps, set +o  set +o    those of `kept_options` that are on       1, 5
//   aliases     alias -p           alias     those of one line without quotes          4
//   variables   declare -p         set       those that are not the shell's own        3
//   functions   declare -f         -         each that is one function and no more     2
//
// The keys are in the order in which a shell must take the texts: extglob changes how functions are
// read, aliases would be put into their bodies, allexport would export the variables. What would be
// evaluated when it is set (the value of an integer, the target of a name reference, the subscript
// of an array) is kept only where it is plain. All other values are quoted anew.

#include "shell/held_internal.hpp"

#include "base/names_internal.hpp"
#include "shell/parser_internal.hpp"
#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// All are off in a new shell. Not kept: what would end or blind the next command (errexit, noexec,
// xtrace, verbose), and what makes the same text another script (posix, xpg_echo, autocd).
constexpr auto kept_options =
    NameSet{"allexport", "dotglob",         "expand_aliases", "extglob",    "failglob",
            "globstar",  "inherit_errexit", "lastpipe",       "nocaseglob", "nocasematch",
            "noclobber", "noglob",          "nounset",        "nullglob",   "pipefail"};

// Those of the shell, and PATH: what it leads to is judged where it is exported.
constexpr auto left_variables = NameList{
    "BASH*",  "COLUMNS", "COMP_*",   "COPROC",   "DIRSTACK",   "EPOCH*", "EUID",     "FUNCNAME",
    "GROUPS", "HISTCMD", "HOSTNAME", "HOSTTYPE", "LINENO",     "LINES",  "MACHTYPE", "MAIL*",
    "OPTERR", "OPTIND",  "OSTYPE",   "PATH",     "PIPESTATUS", "PPID",   "PS?",      "PROMPT_*",
    "RANDOM", "SECONDS", "SRANDOM",  "TMOUT",    "UID"};

class HeldReader {
 public:
  HeldReader(bool bash, std::vector<std::string>& left_out) : bash_(bash), left_out_(left_out) {}

  // The words are "shopt -s NAME" or "set -o NAME" for each that is on.
  void read_options(std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = take_part(text, '\n');
      const std::string_view name = line.substr(line.rfind(' ') + 1);
      const bool is_set = line == concat("set -o %", {name});
      if (!kept_options.has(name) || !(is_set || line == concat("shopt -s %", {name}))) continue;
      keep(is_set || name == "expand_aliases"sv ? '5' : '1', name, concat("%\n", {line}));
    }
  }

  bool read_aliases(std::string_view text) {
    PrintedWords words(text);
    std::string word;
    while (!words.at_end()) {
      bool read = words.read(word);
      for (const char* before : {"alias", "--"})
        if (read && word == before) read = words.skip(' ') && words.read(word);
      const std::size_t equals = word.find('=');
      if (!read || !words.skip('\n') || equals == std::string::npos) return false;
      keep_alias(word.substr(0, equals), word.substr(equals + 1));
    }
    return true;
  }

  // NAME=value, one in a line.
  bool read_set(std::string_view text) {
    PrintedWords words(text);
    while (!words.at_end()) {
      std::string name;
      std::string value;
      if (!words.read(name, "=\n"sv) || !words.skip('=')) return false;
      const bool is_array = words.next() == '(';
      if (!words.read(value)) return false;
      while (is_array && words.skip(' '))
        if (!words.read(value)) return false;
      if (!words.skip('\n')) return false;
      if (is_name(name) && !is_array && !left_variables.match(name)) keep_scalar(name, value);
    }
    return true;
  }

  // declare -FLAGS NAME, NAME=value or NAME=([subscript]=value ...).
  bool read_declared(std::string_view text) {
    PrintedWords words(text);
    while (!words.at_end())
      if (!read_declaration(words)) return false;
    return true;
  }

  // A line that looks like the head of a function may stand in a here-document of another one.
  void read_functions(std::string_view text) {
    constexpr std::size_t most_parts = 8;
    std::vector<std::size_t> heads;
    for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1)
      if (!name_in_head(text.substr(at)).empty() || is_export(text.substr(at))) heads.push_back(at);
    heads.push_back(text.size());
    for (std::size_t i = 0; i + 1 < heads.size();) {
      const std::string_view name = name_in_head(text.substr(heads[i]));
      std::size_t end = i + 1;
      const auto part = [&] { return text.substr(heads[i], heads[end] - heads[i]); };
      while (!name.empty() && !is_function(part(), name)) {
        if (end - i == most_parts || end + 1 == heads.size()) {
          left_out_.push_back(concat("function %", {name}));
          end = i;
          break;
        }
        ++end;
      }
      if (end > i && !name.empty()) keep('2', name, std::string(part()));
      if (name.empty()) export_function(text.substr(heads[i]));
      i = std::max(end, i + 1);
    }
  }

  TextMap held = {};

 private:
  void keep(char kind, std::string_view name, std::string text) {
    held[concat("%%", {std::string_view(&kind, 1), name})] = std::move(text);
  }

  // bash looks at aliases only where it is at a terminal, or with this option.
  void keep_alias(const std::string& name, const std::string& value) {
    const bool is_plain = !name.empty() && name[0] != '-' && all_are(name, [](char c) {
      return is_name_char(c) || "-.:+@%,"sv.find(c) != std::string_view::npos;
    });
    if (!is_plain || is_of_restoring(name) || !is_plain_alias(value))
      return left_out_.push_back(concat("alias %", {printable(name)}));
    keep('4', name, concat("alias %=%\n", {name, shell_word(value)}));
    if (bash_) keep('5', "expand_aliases", "shopt -s expand_aliases\n");
  }

  void keep_scalar(const std::string& name, const std::string& value) {
    keep('3', name, concat("%=%\n", {name, shell_word(value)}));
  }

  bool read_declaration(PrintedWords& words) {
    std::string flags;
    std::string name;
    if (!words.read(name) || name != "declare" || !words.skip(' ') || !words.read(flags) ||
        !words.skip(' ') || !words.read(name, "=\n"sv))
      return false;
    const bool has_value = words.skip('=');
    std::string value;
    bool is_plain = true;
    if (has_value && !(words.skip('(') ? read_elements(words, flags, value, is_plain)
                                       : read_value(words, flags, value, is_plain)))
      return false;
    if (!words.skip('\n')) return false;
    flags.erase(
        std::remove_if(flags.begin(), flags.end(), [](char c) { return c == '-' || c == 't'; }),
        flags.end());
    // Exported and nothing else: the session has it already.
    if (flags == "x" || (!has_value && flags.find_first_not_of("rx") == std::string::npos))
      return true;
    if (!is_name(name) || left_variables.match(name)) return true;
    if (!is_plain || flags.find_first_not_of("aAilnrux") != std::string::npos)
      left_out_.push_back(concat("variable %", {name}));
    else if (flags.empty() || (flags == "a" && has_value))
      keep('3', name, concat("%%\n", {name, value}));
    else
      keep('3', name, concat("declare -% %%\n", {flags, name, value}));
    return true;
  }

  // What is evaluated when it is assigned must be a number, or a name.
  static bool is_plain_value(const std::string& flags, const std::string& value) {
    const std::size_t sign = starts_with(value, "-"sv);
    if (flags.find('i') != std::string::npos)
      return value.size() > sign && all_are(std::string_view(value).substr(sign), is_digit);
    return flags.find('n') == std::string::npos || is_name(value);
  }

  static bool read_value(PrintedWords& words, const std::string& flags, std::string& value,
                         bool& is_plain) {
    std::string word;
    if (!words.read(word, "\n"sv)) return false;
    is_plain = is_plain_value(flags, word);
    value = concat("=%", {shell_word(word)});
    return true;
  }

  static bool read_elements(PrintedWords& words, const std::string& flags, std::string& value,
                            bool& is_plain) {
    const bool named = flags.find('A') != std::string::npos;
    std::string key;
    std::string word;
    bool in_order = !named;
    std::size_t count = 0;
    value = "=(";
    while (!words.skip(')')) {
      if (!words.skip('[') || !words.read(key, "]\n"sv) || !words.skip(']') || !words.skip('=') ||
          !words.read(word, " )\n"sv))
        return false;
      words.skip(' ');
      is_plain = is_plain && is_plain_value(flags, word) && !key.empty() &&
                 (named || all_are(key, is_digit));
      in_order = in_order && key == std::to_string(count++);
      if (!in_order) append_all(value, "[%]=", {named ? shell_word(key) : key});
      append_all(value, "% ", {shell_word(word)});
    }
    value += ')';
    return true;
  }

  // What the texts here and the shell of a session begin with: a function or an alias of that name
  // would run in its place, where no guard looks.
  static bool is_of_restoring(std::string_view name) {
    static constexpr auto names =
        NameSet{"alias", "command", "declare", "export", "set", "shopt", "unset"};
    return names.has(name);
  }

  static std::string_view line_of(std::string_view text) { return text.substr(0, text.find('\n')); }

  // NAME () or function NAME ()
  static std::string_view name_in_head(std::string_view text) {
    std::string_view line = line_of(text);
    if (!ends_with(line, " () "sv)) return {};
    line.remove_suffix(4);
    if (starts_with(line, "function "sv)) line.remove_prefix(9);
    return line.find_first_of(" \t'\"\\$`&|;<>(){}*?#~=") == std::string_view::npos ? line : ""sv;
  }

  static bool is_export(std::string_view text) { return starts_with(text, "declare -fx "sv); }

  void export_function(std::string_view text) {
    const std::string name(line_of(text).substr(12));
    const auto at = held.find(concat("2%", {name}));
    if (at != held.end()) append_all(at->second, "export -f %\n", {name});
  }

  // True if a text defines one function and has nothing else in it.
  static bool is_function(std::string_view text, std::string_view name) {
    if (is_of_restoring(name)) return false;
    ShellSyntax syntax;
    const shell::Options options;
    syntax.most_simple = options.limits.max_written;
    ShellParser parser(syntax, options, text, {0, static_cast<std::uint32_t>(text.size()), true},
                       0);
    const std::uint32_t root = parser.parse();
    if (root == no_index || parser.failed()) return false;
    const ShellRange nodes = syntax.nodes[root].nodes;
    if (nodes.end != nodes.begin + 1) return false;
    const ShellNode& only = syntax.nodes[syntax.lists[nodes.begin]];
    return only.kind == ShellNode::Kind::function && !only.background && only.name == name;
  }

  bool bash_;
  std::vector<std::string>& left_out_;
};

}  // namespace

inline namespace inner {

Expected<TextMap> read_held(const std::vector<std::string>& told, bool bash,
                            std::vector<std::string>& left_out) {
  HeldReader reader(bash, left_out);
  const auto not_read = [](const char* what) {
    return make_error(ErrorCode::parse, "what its shell told of its % was not understood", {what});
  };
  if (told.size() != 4) return not_read("state");
  reader.read_options(told[0]);
  if (!reader.read_aliases(told[1])) return not_read("aliases");
  if (!(bash ? reader.read_declared(told[2]) : reader.read_set(told[2])))
    return not_read("variables");
  if (bash) reader.read_functions(told[3]);
  return std::move(reader.held);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
