// The walker: the builtins that change what later commands mean.

#include "shell/builtins_internal.hpp"

#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A command is reported first, and does what it does then. What it does is found in three steps:
//
//   name_at()           behind `command -p`, `builtin --`, `jobs -x`
//   shell_verb_of()     the verb: a row of known_verbs
//   ShellBuiltin::run() a function for each verb, or ShellPrinter for those that print
//
// A program that is not known changes nothing in the shell, and its output is unknown.
//
//   builtin                 what later commands find
//   alias, hash -p          another command behind a name
//   break, continue, return what follows may not run: ShellScopes::left
//   cd, pushd, popd         the working directory, under work_dir_key
//   declare, local ...      values and attributes; in a function, local variables
//   eval, trap, compgen     what the commands in a string do
//   exec < file             another standard input
//   history -s, fc          a command that fc runs
//   read, mapfile, getopts  variables, of lines if the input is known
//   set, shift              the positional parameters, under positional_key
//   let, unset              variables; subscripts in their operands are run

std::string join_shell_path(std::string_view directory, std::string_view path) {
  if (starts_with(path, "/"sv) || starts_with(path, "~"sv)) directory = {};
  const std::string joined = concat({directory, directory.empty() ? "" : "/", path});
  const bool absolute = starts_with(joined, "/"sv);
  std::string result;
  for (std::string_view rest = joined; !rest.empty();) {
    const std::string_view name = take_part(rest, '/');
    if (name.empty() || name == "."sv) continue;
    const bool climbs = name == ".."sv;
    if (climbs && !result.empty() && base_name(result) != "..") {
      const std::size_t slash = result.rfind('/');
      result.resize(slash == std::string::npos ? 0 : slash);
    } else if (!climbs || !absolute) {
      if (!result.empty() || absolute) result += '/';
      result += name;
    }
  }
  if (result.empty()) result = absolute ? "/" : ".";
  return result;
}

namespace {

// A row for each command that the walk knows, sorted by name.
struct KnownVerb {
  char name[10];
  ShellVerb verb;
};
constexpr KnownVerb known_verbs[] = {
    {":", ShellVerb::silent},
    {"[", ShellVerb::silent},
    {"alias", ShellVerb::alias},
    {"basename", ShellVerb::base_name},
    {"break", ShellVerb::leave},
    {"cat", ShellVerb::cat},
    {"cd", ShellVerb::change_directory},
    {"chdir", ShellVerb::change_directory},
    {"compgen", ShellVerb::compgen},
    {"continue", ShellVerb::leave},
    {"cp", ShellVerb::copy},
    {"declare", ShellVerb::declare},
    {"dirname", ShellVerb::directory_name},
    {"echo", ShellVerb::echo},
    {"eval", ShellVerb::eval},
    {"exec", ShellVerb::exec},
    {"exit", ShellVerb::exit},
    {"export", ShellVerb::declare},
    {"false", ShellVerb::silent},
    {"fc", ShellVerb::fix},
    {"getopts", ShellVerb::read},
    {"hash", ShellVerb::hash},
    {"history", ShellVerb::history},
    {"install", ShellVerb::copy},
    {"let", ShellVerb::let},
    {"ln", ShellVerb::copy},
    {"local", ShellVerb::declare},
    {"ls", ShellVerb::ls},
    {"mapfile", ShellVerb::read},
    {"mv", ShellVerb::copy},
    {"popd", ShellVerb::pop_directory},
    {"printf", ShellVerb::printf},
    {"pushd", ShellVerb::change_directory},
    {"pwd", ShellVerb::pwd},
    {"read", ShellVerb::read},
    {"readarray", ShellVerb::read},
    {"readonly", ShellVerb::declare},
    {"return", ShellVerb::leave},
    {"set", ShellVerb::set},
    {"shift", ShellVerb::shift},
    {"sleep", ShellVerb::silent},
    {"tee", ShellVerb::tee},
    {"test", ShellVerb::silent},
    {"trap", ShellVerb::trap},
    {"true", ShellVerb::silent},
    {"typeset", ShellVerb::declare},
    {"unset", ShellVerb::unset},
    {"wait", ShellVerb::silent},
};

constexpr bool verbs_in_order() {
  for (std::size_t i = 1; i < std::size(known_verbs); ++i)
    if (!(std::string_view(known_verbs[i - 1].name) < known_verbs[i].name)) return false;
  return true;
}
static_assert(verbs_in_order(), "sort the rows by name, each once");

ShellVerb shell_verb_of(std::string_view name) {
  std::size_t low = 0, high = std::size(known_verbs);
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const int order = order_of(known_verbs[middle].name, name);
    if (order == 0) return known_verbs[middle].verb;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return ShellVerb::none;
}

}  // namespace

std::size_t ShellBuiltin::name_at(const std::vector<shell::Word>& words) {
  std::size_t at = 0;
  while (at + 1 < words.size() && is_any(words[at].text, "command", "builtin", "jobs")) {
    if (words[at].text == "jobs" && words[at + 1].text != "-x") break;
    ++at;
    while (at + 1 < words.size() && is_any(words[at].text, "-p", "-x", "--")) ++at;
  }
  return at;
}

bool ShellBuiltin::names_variables(ShellVerb verb) {
  return verb == ShellVerb::declare || verb == ShellVerb::let || verb == ShellVerb::read ||
         verb == ShellVerb::silent || verb == ShellVerb::unset;
}

bool ShellBuiltin::looks_up() const {
  if (words_.size() < 2 || words_.size() > 3) return false;
  const shell::Word& name = words_.back();
  const std::string& option = words_[1].text;
  const bool is = words_.size() == 2 ? words_[0].text == "which"
                                     : (words_[0].text == "command" && option == "-v"sv) ||
                                           (words_[0].text == "type" && is_any(option, "-P", "-p"));
  return is && name.known() && !name.home && !name.glob && !name.text.empty() &&
         name.text[0] != '-' && name.text.find_first_of("/ \t\n") == std::string::npos;
}

void ShellBuiltin::run() {
  const ShellVerb verb = shell_verb_of(words_[at_].text);
  if (looks_up()) {
    output_.write_unknown();
    return output_.write(concat("/%", {words_.back().text}));
  }
  if (names_variables(verb)) ShellEvaluation(runner_).expand_words(command_);
  switch (verb) {
    case ShellVerb::alias:
      return run_alias();
    case ShellVerb::change_directory:
      return run_cd();
    case ShellVerb::compgen:
      return run_compgen();
    case ShellVerb::declare:
      return run_declare();
    case ShellVerb::eval:
      return run_eval();
    case ShellVerb::exec:
      if (stays_redirected(command_)) run_exec();
      return output_.write_unknown();
    case ShellVerb::exit:  // whether the list writes more behind it is not known
    case ShellVerb::none:
      return output_.write_unknown();
    case ShellVerb::fix:
      if (at_ + 1 == words_.size() || !starts_with(words_[at_ + 1].text, "-l"sv))
        runner_.run_anything();
      return output_.write_unknown();
    case ShellVerb::hash:
      return run_hash();
    case ShellVerb::history:
      return run_history();
    case ShellVerb::leave:
      scopes_.left = std::max(scopes_.left,
                              words_[0].text == "return" ? ShellLeft::function : ShellLeft::loop);
      return;
    case ShellVerb::let:
      for (std::size_t i = at_ + 1; i < words_.size(); ++i)
        ShellEvaluation(runner_).evaluate(words_[i].text);
      return;
    case ShellVerb::pop_directory:
      return set_work_dir(unknown_text());
    case ShellVerb::read:
      return run_read();
    case ShellVerb::set:
      return run_set();
    case ShellVerb::shift:
      return run_shift();
    case ShellVerb::silent:
      return;
    case ShellVerb::trap:
      return run_trap();
    case ShellVerb::unset:
      return run_unset();
    default:
      return ShellPrinter(runner_, command_, at_).run(verb);
  }
}

void ShellBuiltin::run_eval() {
  std::string text;
  std::size_t i = at_ + 1;
  if (i < words_.size() && words_[i].text == "--") ++i;
  for (; i < words_.size(); ++i) {
    if (!text.empty()) text += ' ';
    text += words_[i].text;
  }
  if (!text.empty()) runner_.run_text(std::move(text), command_, false);
}

bool ShellBuiltin::stays_redirected(const shell::Command& command) {
  const std::vector<shell::Word>& words = command.words;
  std::size_t at = name_at(words);
  if (at >= words.size() || shell_verb_of(words[at].text) != ShellVerb::exec) return false;
  for (++at; at < words.size(); ++at) {
    const std::string& text = words[at].text;
    if (text == "-a") ++at;
    // A word that may be nothing is no program for certain.
    if (!starts_with(text, "-"sv) && !(words[at].split && text == unknown_part)) return false;
  }
  return true;
}

// A shell that reads its script from there goes on with what it finds: as `. /dev/stdin` does.

void ShellBuiltin::run_exec() {
  shell::Input& input = *runner_.place.input;
  if (input.script && !command_.input.script) {
    ShellRunner inner(runner_);
    inner.place.keep = nullptr;
    ShellNode here;
    here.begin = static_cast<std::uint32_t>(command_.begin);
    here.end = static_cast<std::uint32_t>(command_.end);
    shell::Command rest;
    for (const char* const text : {".", "/dev/stdin"}) {
      shell::Word word;
      word.text = text;
      word.begin = command_.begin;
      word.end = command_.end;
      rest.words.push_back(std::move(word));
    }
    rest.redirections = command_.redirections;
    rest.input = command_.input;
    rest.compound = true;
    inner.report(here, rest);
  }
  const bool script = input.script;
  // A command before it may have left the body.
  input = scopes_.left == ShellLeft::nothing ? command_.input : unknown_input();
  input.script = input.script || script;
}

void ShellBuiltin::run_trap() {
  std::size_t handler = at_ + 1;
  const bool operands = handler < words_.size() && words_[handler].text == "--";
  if (operands) ++handler;
  if (handler + 1 >= words_.size()) return;
  const std::string& text = words_[handler].text;
  if (text.empty() || text == "-" || (!operands && starts_with(text, "-"sv))) return;
  ShellRunner inner(runner_);
  inner.place.output = &runner_.walk.nowhere;
  ShellInputs inputs(*inner.place.input);
  scopes_.open_frame();
  inner.run_text(text, command_, false);
  scopes_.merge_maybe(scopes_.take_frame());
  inputs.next();
  inputs.merge(true);
  if (runner_.place.handler) return;
  auto& traps = runner_.walk.traps;
  for (const ShellWalk::Trap& trap : traps)
    if (trap.text == text) return;
  constexpr std::size_t max_traps = 64;
  if (traps.size() < max_traps)
    return traps.push_back({text, command_.begin, command_.end, runner_.place.file});
  budget_.over_limit(max_traps, "traps"sv, command_.begin);
}

void ShellBuiltin::run_alias() {
  ShellRunner inner(runner_);
  shell::Input input = *runner_.place.input;
  inner.place.defined = true;
  inner.place.input = &input;
  inner.place.output = &runner_.walk.nowhere;
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    const shell::Word& word = words_[i];
    const std::size_t equals = word.text.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = word.text.substr(0, equals);
    // bash replaces such a word before it reads the command that begins with it.
    if (budget_.bash() && is_reserved_word(name))
      return budget_.stop(ErrorCode::parse, "alias of a reserved word"sv, command_.begin);
    std::string value = word.text.substr(equals + 1);
    if (!runner_.place.held)
      budget_.outcome.definitions.push_back({name, true, word.begin, word.end});
    runner_.walk.names.set_alias(scopes_, name, value);
    scopes_.open_frame();
    inner.run_text(std::move(value), command_, true);
    scopes_.take_frame();
  }
}

//   cd a      below the directory of before       cd     $HOME
//   cd /a ~   whole paths                         cd -   unknown, as are $X and patterns

void ShellBuiltin::run_cd() {
  std::size_t operand = at_ + 1;
  while (operand < words_.size() && words_[operand].text.size() > 1 &&
         words_[operand].text[0] == '-')
    ++operand;
  ShellText target;
  if (operand < words_.size()) {
    target = words_[operand];
  } else {
    const ShellValue& home = scopes_.value_of("HOME"sv);
    target = home.elements.size() == 1 ? home.elements[0] : unknown_text();
  }
  const ShellValue& directory = scopes_.value_of(work_dir_key);
  const ShellText from = directory.elements.empty() ? unknown_text() : directory.elements[0];
  const bool whole = target.is_whole_path();
  if (!target.known() || target.text == "-" || target.glob || (!whole && !from.known()))
    return set_work_dir(unknown_text());
  ShellText result;
  result.home = whole ? target.home : from.home;
  result.assumed = target.assumed || (!whole && from.assumed);
  result.text =
      join_shell_path(whole ? std::string_view() : std::string_view(from.text), target.text);
  // Above a home directory the name is no longer that of one.
  if (result.home && !starts_with(result.text, "~"sv)) result = ShellText{"/home"};
  set_work_dir(std::move(result));
}

void ShellBuiltin::run_declare() {
  const std::string& builtin = words_[at_].text;
  const bool local = is_any(builtin, "local", "declare", "typeset");
  bool changes_value = false;  // -a, -i, -l, -u ...: what is stored is not what is written
  bool keeps_value = builtin == "readonly";
  bool array = false;      // -a alone
  bool reference = false;  // -n
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    const shell::Word& word = words_[i];
    if (!word.text.empty() && (word.text[0] == '-' || word.text[0] == '+')) {
      changes_value = changes_value || word.text.find_first_of("aAilun") != std::string::npos;
      reference = reference || word.text.find('n') != std::string::npos;
      if (reference) scopes_.use_references();
      array = word.text == "-a";
      keeps_value = keeps_value || word.text.find('r') != std::string::npos;
      continue;
    }
    const std::size_t equals = word.text.find('=');
    const std::string_view declared = std::string_view(word.text).substr(0, equals);
    if (local) runner_.walk.names.make_local(scopes_, declared);
    if (changes_value && !array) scopes_.set_attribute(declared, 'i');
    if (reference && local)
      ShellSteering(runner_).note_reference(equals == std::string::npos
                                                ? unknown_part
                                                : std::string_view(word.text).substr(equals + 1));
    if (equals == std::string::npos) {
      if (keeps_value) scopes_.set_attribute(declared, 'r');
      continue;
    }
    const bool append = equals > 0 && word.text[equals - 1] == '+';
    const std::string name = word.text.substr(0, equals - (append ? 1 : 0));
    if (!is_name(name)) {
      runner_.assign_unknown(name);
      continue;
    }
    ShellText text = word;
    text.text.erase(0, equals + 1);
    text.home = starts_with(text.text, "~"sv);
    if (changes_value) ShellEvaluation(runner_).expand_value(name, scalar_value(text));
    const bool elements = budget_.bash() && starts_with(text.text, "("sv) &&
                          ends_with(text.text, ")"sv) && (changes_value || holds_array(name));
    // declare -a a='(b $(c))' is a=(b $(c)).
    if (elements) runner_.run_text(concat("%=%", {name, text.text}), command_, true);
    // The word says what is assigned, unless more than that is.
    if (append) {
      report_appended(name, text);
    } else if (changes_value) {
      ShellSteering(runner_).report(name, scalar_value({in_lower_case(text.text)}));
    }
    if (changes_value || append || elements) text = unknown_text();
    runner_.store(name, scalar_value(std::move(text)));
    if (keeps_value) scopes_.set_attribute(name, 'r');
  }
}

void ShellBuiltin::report_appended(std::string_view name, const ShellText& text) {
  ShellSteering steering(runner_);
  for (const ShellValue& value : std::vector<ShellValue>(scopes_.read(name).values)) {
    const bool known = value.elements.size() == 1 && value.elements[0].known();
    if (known && !value.unset)
      steering.report(name, scalar_value({concat({value.elements[0].text, text.text})}));
    else
      steering.report_added(name, text);
    if (!known && !value.unset) steering.report(name, unknown_scalar());
  }
}

bool ShellBuiltin::holds_array(std::string_view name) {
  for (const ShellValue& value : scopes_.read(name).values)
    if (value.array) return true;
  return false;
}

void ShellBuiltin::run_unset() {
  bool functions = false;
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    const std::string& text = words_[i].text;
    functions = functions || text == "-f";
    runner_.walk.names.forget(runner_, text, words_[i].known());
    if (functions) continue;
    if (!is_name(text)) {
      runner_.assign_unknown(text);
      continue;
    }
    ShellValue value;
    value.unset = true;
    runner_.assign(text, std::move(value));
  }
}

void ShellBuiltin::run_compgen() {
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    ShellEvaluation(runner_).expand_if_needed(words_[i].text);
    if (ends_with(words_[i].text, "C"sv) && i + 1 < words_.size())
      runner_.run_text(words_[i + 1].text, command_, true);
  }
}

void ShellBuiltin::run_history() {
  output_.write_unknown();
  if (at_ + 2 >= words_.size() || words_[at_ + 1].text != "-s") return;
  std::string text;
  for (std::size_t i = at_ + 2; i < words_.size(); ++i) append_all(text, "% ", {words_[i].text});
  runner_.run_text(std::move(text), command_, true);
}

void ShellBuiltin::run_hash() {
  for (std::size_t i = at_ + 1; i + 2 < words_.size(); ++i)
    if (ends_with(words_[i].text, "p"sv) && starts_with(words_[i].text, "-"sv))
      runner_.walk.names.set_alias(scopes_, words_[i + 2].text, words_[i + 1].text);
}

// `set -e -o pipefail a b`: what stands behind the options are $1 and $2. Options change no value.

void ShellBuiltin::run_set() {
  std::size_t i = at_ + 1;
  bool given = false;
  for (; i < words_.size() && !given; ++i) {
    const std::string& word = words_[i].text;
    if (word == "--") {
      given = true;
    } else if (word.empty() || (word[0] != '-' && word[0] != '+')) {
      break;
    } else if (is_any(word, "-o", "+o")) {
      ++i;
    }
    // With history expansion a shell changes lines before it reads them.
    if (word == "-H" || (word == "-o" && i < words_.size() && words_[i].text == "histexpand"))
      runner_.run_anything();
  }
  if (!given && i >= words_.size()) return;
  ShellValue value = empty_array();
  for (; i < words_.size(); ++i) value.elements.push_back(words_[i]);
  ShellEvaluation(runner_).expand_arguments(value.elements);
  runner_.assign(positional_key, std::move(value));
}

// A count that is not known, or elements that may be several words: then no parameter is known.

void ShellBuiltin::run_shift() {
  long long count = 1;
  if (at_ + 1 < words_.size() && !read_integer(words_[at_ + 1].text, count)) count = -1;
  ShellValue value = scopes_.value_of(positional_key);
  budget_.charge(value.elements.size());
  const auto size = static_cast<long long>(value.elements.size());
  if (count < 0 || value.is_uncertain(static_cast<std::size_t>(count))) {
    value = unknown_array();
  } else if (count <= size) {
    value.elements.erase(value.elements.begin(),
                         value.elements.begin() + static_cast<std::ptrdiff_t>(count));
  }
  runner_.assign(positional_key, std::move(value));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
