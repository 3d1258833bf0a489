// What known programs print to be evaluated by a shell: `eval "$(brew shellenv)"`.
//
//   {"brew", verbs("shellenv")},
//
// A row has a program, and its commands of that kind. Without them, only options may follow. Where
// instead() names a form that can be judged, the output is refused all the same, with this advice.

#include "policy/case_internal.hpp"

#include "policy/columns_internal.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

struct OutputColumns : ProgramColumns {
  enum : std::size_t { verbs_column = 1, columns };
  static constexpr TableText<verbs_column> verbs(const char* text) { return {text}; }
  struct Instead {
    const char* text;
  };
  static constexpr Instead instead(const char* text) { return {text}; }

  struct Row : ProgramRow<columns> {
    using ProgramRow<columns>::add;
    template <class... More>
    constexpr Row(const char* name, More... more) : ProgramRow<columns>(name) {
      (add(more), ...);
    }
    constexpr void add(Instead given) { advice = given.text; }

    const char* advice = nullptr;
  };
};

struct OutputRows : OutputColumns {
  static constexpr Row rows[] = {
      {"brew", verbs("shellenv")},
      {"conda", verbs("shell.bash shell.dash shell.posix shell.zsh"),
       instead("run the command in it: conda run -n NAME COMMAND")},
      {"dircolors"},
      {"direnv", verbs("export hook"), instead("run the command with it: direnv exec . COMMAND")},
      {"docker-machine", verbs("env")},
      {"fnm", verbs("completions env"),
       instead("run the command with it: fnm exec --using VERSION COMMAND")},
      {"fzf"},
      {"gh", verbs("completion")},
      {"goenv", verbs("init"), instead("run the command with it: goenv exec COMMAND")},
      {"gpg-agent"},
      {"helm", verbs("completion")},
      {"jenv", verbs("init"), instead("run the command with it: jenv exec COMMAND")},
      {"keychain"},
      {"kubectl", verbs("completion")},
      {"luarocks", verbs("path")},
      {"mamba", verbs("shell shell.bash"),
       instead("run the command in it: mamba run -n NAME COMMAND")},
      {"micromamba", verbs("shell"),
       instead("run the command in it: micromamba run -n NAME COMMAND")},
      {"minikube", verbs("completion docker-env")},
      {"mise", verbs("activate env hook-env"),
       instead("run the command with it: mise exec -- COMMAND")},
      {"nodenv", verbs("init"), instead("run the command with it: nodenv exec COMMAND")},
      {"npm", verbs("completion")},
      {"opam", verbs("config env"), instead("run the command with it: opam exec -- COMMAND")},
      {"pip", verbs("completion")},
      {"pixi", verbs("completion shell-hook"),
       instead("run the command with it: pixi run COMMAND")},
      {"poetry", verbs("completions")},
      {"pyenv", verbs("init virtualenv-init"),
       instead("run the command with it: pyenv exec COMMAND")},
      {"rbenv", verbs("init"), instead("run the command with it: rbenv exec COMMAND")},
      {"resize"},
      {"ssh-agent", instead("run the command under it: ssh-agent COMMAND")},
      {"starship", verbs("init")},
      {"thefuck"},
      {"tset"},
      {"uv", verbs("generate-shell-completion")},
      {"zoxide", verbs("init")},
  };
};

constexpr auto packed_output = pack_names<ProgramSource<OutputRows>>();
static_assert(packed_output.is_sorted(), "sort the rows by name, each once");

// getopt quotes what it is given, in its present form: with -o, and without -u.
bool is_quoting(const shell::Command& command) {
  bool present = false;
  for (const shell::Word& word : command.words) {
    if (word.text == "--") break;
    present = present || starts_with(word.text, "-o"sv) || starts_with(word.text, "--o"sv);
    if (starts_with(word.text, "-u"sv) || starts_with(word.text, "--u"sv)) return false;
  }
  return present;
}

// Not a program that the script may have made.
bool is_installed(std::string_view program) {
  const std::size_t slash = program.find('/');
  if (slash == std::string_view::npos) return !is_unknown(program);
  if (program[0] != '/') return (program[0] == '~' || program[0] == '\0');
  return !starts_with(program, "/tmp/"sv) && !starts_with(program, "/var/tmp/"sv) &&
         !starts_with(program, "/dev/"sv) && !starts_with(program, "/proc/"sv);
}

KnownOutput::Output output_of(const shell::Command& command) {
  if (command.words.empty() || !is_installed(command.words[0].text)) return {};
  const std::string_view name = base_name(command.words[0].text);
  if (name == "getopt"sv) return {is_quoting(command), {}};
  const NameTable table = packed_output.table();
  const std::size_t row = table.find(name);
  if (row == table.rows) return {};
  const Names verbs = table.at(row, OutputColumns::verbs_column);
  bool known = verbs.empty();
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string_view text = command.words[i].text;
    if (starts_with(text, "-"sv)) continue;
    known = verbs.has(text);
    break;
  }
  const char* const advice = OutputRows::rows[row].advice;
  if (!known || !advice) return {known, {}};
  return {false, advice};
}

// The command in $(...), `...` or <(...), without quotes around it; empty: it is none of these.
std::string_view substituted(std::string_view text) {
  if (text.size() > 1 && text[0] == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  if (starts_with(text, "set -- "sv)) text.remove_prefix(7);
  if (text.size() > 2 && text[0] == '`' && text.back() == '`')
    return text.substr(1, text.size() - 2);
  const bool opened = starts_with(text, "$("sv) || starts_with(text, "<("sv);
  return opened && ends_with(text, ")"sv) ? text.substr(2, text.size() - 3) : std::string_view();
}

// The name in $name or ${name}; empty: it is something else.
std::string_view variable_in(std::string_view text) {
  if (text.size() > 1 && text[0] == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  if (!starts_with(text, "$"sv)) return {};
  text.remove_prefix(1);
  if (starts_with(text, "{"sv) && ends_with(text, "}"sv)) text = text.substr(1, text.size() - 2);
  return is_name(text) ? text : std::string_view();
}

// True if a loop may set the variable: for NAME in ...
bool is_looped(std::string_view script, std::string_view variable) {
  for (const char* keyword : {"for", "select"})
    if (script.find(concat("% %", {keyword, variable})) != std::string_view::npos) return true;
  return false;
}

// True if a script begins with the name of such a program: most do not, and are not read.
bool begins_with_program(std::string_view script) {
  script.remove_prefix(std::min(script.find_first_not_of(" \t\n\"'"), script.size()));
  const std::string_view name = base_name(script.substr(0, script.find_first_of(" \t\n\"'")));
  const NameTable table = packed_output.table();
  return name == "getopt"sv || table.find(name) != table.rows;
}

// The output of a text that is a substitution with one command.
KnownOutput::Output output_in(const Case& judged, std::string_view text) {
  const std::string_view script = substituted(text);
  if (script.empty() || !begins_with_program(script)) return {};
  std::size_t commands = 0;
  KnownOutput::Output output;
  shell::Options options;
  options.dialect = judged.dialect;
  const shell::Outcome outcome = shell::walk(script, options, [&](const shell::Visit& visit) {
    ++commands;
    output = output_of(visit.command);
  });
  return outcome.complete && commands == 1 ? output : KnownOutput::Output();
}

}  // namespace

inline namespace inner {

void KnownOutput::note(const Case& judged, const shell::Command& command) {
  for (const shell::Assignment& assignment : command.assignments) {
    std::string_view text = judged.written(assignment.value);
    if (starts_with(text, assignment.name)) take_part(text, '=');
    const Output output = assignment.value.known() ? Output() : output_in(judged, text);
    const std::uint16_t name = hash_of_name(assignment.name);
    const auto found = std::find_if(variables_.begin(), variables_.end(),
                                    [name](const Variable& one) { return one.name == name; });
    if (found != variables_.end())
      found->output.known = found->output.known && output.known;
    else if (output.known || !output.instead.empty())
      variables_.push_back({name, output});
  }
  if (command.words.empty()) return;
  const std::string_view name = command.words[0].text;
  const NameTable table = packed_output.table();
  // What else sets variables.
  if (!variables_.empty() && is_any(name, "read", "mapfile", "readarray", "getopts", "printf",
                                    "source", ".", "declare", "local"))
    variables_.clear();
  shadowed_ = shadowed_ || name == "alias"sv ||
              (command.own && (name == "getopt"sv || table.find(name) != table.rows));
}

KnownOutput::Output KnownOutput::find(const Case& judged, const shell::Word& word) const {
  if (shadowed_) return {};
  const std::string_view text = judged.written(word);
  const std::string_view variable = variable_in(text);
  if (variable.empty()) return output_in(judged, text);
  if (is_looped(judged.script, variable)) return {};
  const std::uint16_t name = hash_of_name(variable);
  for (const Variable& one : variables_)
    if (one.name == name) return one.output;
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
