// The walker: the builtins that change what later commands mean.

#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

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

ShellWalker::Builtin ShellWalker::builtin_of(std::string_view name) {
  // A line for each enumerator.
  std::string_view lines =
      "alias\n"
      "basename\n"
      "cat\n"
      "cd chdir pushd\n"
      "declare export local readonly typeset\n"
      "compgen\n"
      "dirname\n"
      "echo\n"
      "eval\n"
      "exec\n"
      "exit\n"
      "hash\n"
      "break continue return\n"
      "let\n"
      "ls\n"
      "popd\n"
      "printf\n"
      "pwd\n"
      "getopts mapfile read readarray\n"
      "set\n"
      "shift\n"
      ": [ false sleep test true wait\n"
      "tee\n"
      "trap\n"
      "unset\n";
  unsigned line = 0;
  for (; !lines.empty(); ++line)
    if (has_entry(take_part(lines, '\n'), name)) break;
  return static_cast<Builtin>(line);
}

bool ShellWalker::names_variables(Builtin builtin) {
  return builtin == Builtin::declare || builtin == Builtin::let || builtin == Builtin::read ||
         builtin == Builtin::silent || builtin == Builtin::unset;
}

void ShellWalker::run_builtin(const shell::Command& command, std::size_t at) {
  const Builtin builtin = builtin_of(command.words[at].text);
  if (looks_up(command)) {
    write_unknown();
    return write_output(concat({"/", command.words.back().text}));
  }
  if (names_variables(builtin)) run_subscripts(command);
  switch (builtin) {
    case Builtin::none:
      return write_unknown();
    case Builtin::alias:
      return run_alias_definitions(command, at);
    case Builtin::base_name:
      return run_path_part(command, at, true);
    case Builtin::directory_name:
      return run_path_part(command, at, false);
    case Builtin::ls:
      return run_ls(command, at);
    case Builtin::pwd:
      return run_pwd(command, at);
    case Builtin::cat:
      return run_cat(command, at);
    case Builtin::change_directory:
      return run_cd(command, at);
    case Builtin::declare:
      return run_declare(command, at);
    case Builtin::echo:
      return run_echo(command, at);
    case Builtin::eval:
      return run_eval(command, at);
    case Builtin::exec:
      if (at + 1 == command.words.size()) input_ = command.input;
      return write_unknown();
    case Builtin::let:
      for (std::size_t i = at + 1; i < command.words.size(); ++i)
        run_arithmetic_text(command.words[i].text);
      return;
    case Builtin::compgen:
      return run_compgen(command, at);
    case Builtin::exit:
      return write_unknown();  // whether more comes
    case Builtin::hash:
      return run_hash(command, at);
    case Builtin::leave:
      left_ = std::max(left_, command.words[0].text == "return" ? Left::function : Left::loop);
      return;
    case Builtin::pop_directory:
      return set_work_dir(unknown_text());
    case Builtin::printf:
      return run_printf(command, at);
    case Builtin::read:
      return run_read(command, at);
    case Builtin::set:
      return run_set(command, at);
    case Builtin::shift:
      return run_shift(command, at);
    case Builtin::silent:
      return;
    case Builtin::tee:
      return write_input(command.input);
    case Builtin::trap:
      return run_trap(command, at);
    case Builtin::unset:
      return run_unset(command, at);
  }
}

void ShellWalker::run_eval(const shell::Command& command, std::size_t at) {
  std::string text;
  if (at + 1 < command.words.size() && command.words[at + 1].text == "--") ++at;
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    if (!text.empty()) text += ' ';
    text += command.words[i].text;
  }
  if (!text.empty()) run_text(std::move(text), command, false);
}

void ShellWalker::run_traps() {
  in_traps_ = true;
  for (const Trap& trap : traps_) {
    if (stopped()) return;
    shell::Command command;
    command.begin = trap.begin;
    command.end = trap.end;
    run_text(trap.text, command, false);
  }
}

void ShellWalker::run_trap(const shell::Command& command, std::size_t at) {
  std::size_t handler = at + 1;
  bool operands = false;
  if (handler < command.words.size() && command.words[handler].text == "--") {
    operands = true;
    ++handler;
  }
  if (handler + 1 >= command.words.size()) return;
  const std::string& text = command.words[handler].text;
  if (text.empty() || text == "-" || (!operands && starts_with(text, "-"sv))) return;
  Output* const output = std::exchange(output_, nullptr);
  open_frame();
  run_text(text, command, false);
  merge_one(take_frame());
  output_ = output;
  if (in_traps_) return;
  for (const Trap& trap : traps_)
    if (trap.text == text) return;
  if (traps_.size() < 64) return traps_.push_back({text, command.begin, command.end});
  over_limit(64, "traps"sv, command.begin);
}

void ShellWalker::run_alias_definitions(const shell::Command& command, std::size_t at) {
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    const shell::Word& word = command.words[i];
    const std::size_t equals = word.text.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = word.text.substr(0, equals);
    std::string value = word.text.substr(equals + 1);
    outcome_.definitions.push_back({name, true, word.begin, word.end});
    set_alias(name, value);
    const bool outer = std::exchange(defined_, true);
    Output* const output = std::exchange(output_, nullptr);
    open_frame();
    run_text(std::move(value), command, true);
    take_frame();
    output_ = output;
    defined_ = outer;
  }
}

void ShellWalker::run_cd(const shell::Command& command, std::size_t at) {
  std::size_t operand = at + 1;
  while (operand < command.words.size() && command.words[operand].text.size() > 1 &&
         command.words[operand].text[0] == '-')
    ++operand;
  ShellText target;
  if (operand < command.words.size()) {
    target = text_of(command.words[operand]);
  } else {
    const ShellValue& home = value_of("HOME"sv);
    target = home.elements.size() == 1 ? home.elements[0] : unknown_text();
  }
  const ShellValue& directory = value_of(work_dir_key);
  const ShellText from = directory.elements.empty() ? unknown_text() : directory.elements[0];
  const bool whole = is_whole_path(target);
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

void ShellWalker::make_local(std::string_view name) {
  if (activations_.empty() || !is_name(name)) return;
  auto& locals = activations_.back().locals;
  for (const auto& local : locals)
    if (local.first == name) return;
  if (locals.size() < 64) locals.emplace_back(std::string(name), find_variable(name));
}

void ShellWalker::run_declare(const shell::Command& command, std::size_t at) {
  const std::string& builtin = command.words[at].text;
  const bool local = has_entry("local declare typeset"sv, builtin);
  bool changes_value = false;  // -a, -i, -l, -u ...: what is stored is not what is written
  bool keeps_value = builtin == "readonly";
  bool array = false;  // -a alone
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    const shell::Word& word = command.words[i];
    if (!word.text.empty() && (word.text[0] == '-' || word.text[0] == '+')) {
      changes_value = changes_value || word.text.find_first_of("aAilun") != std::string::npos;
      if (word.text.find('n') != std::string::npos) use_references();
      array = word.text == "-a";
      keeps_value = keeps_value || word.text.find('r') != std::string::npos;
      continue;
    }
    const std::size_t equals = word.text.find('=');
    const std::string_view declared = std::string_view(word.text).substr(0, equals);
    if (local) make_local(declared);
    if (changes_value && !array) set_attribute(declared, 'i');
    if (equals == std::string::npos) {
      if (keeps_value) set_attribute(declared, 'r');
      continue;
    }
    const bool append = equals > 0 && word.text[equals - 1] == '+';
    const std::string name = word.text.substr(0, equals - (append ? 1 : 0));
    if (!is_name(name)) {
      assign_unknown(name);
      continue;
    }
    ShellText text = text_of(word);
    text.text.erase(0, equals + 1);
    text.home = starts_with(text.text, "~"sv);
    if (changes_value || append) text = unknown_text();
    assign(name, scalar_value(std::move(text)));
    if (keeps_value) set_attribute(name, 'r');
  }
}

void ShellWalker::run_unset(const shell::Command& command, std::size_t at) {
  bool functions = false;
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    const std::string& text = command.words[i].text;
    functions = functions || text == "-f";
    functions_lost_ = functions_lost_ || !command.words[i].known();
    if (functions_.find(text) != functions_.end()) mark_own(text, false);
    if (functions) continue;
    if (!is_name(command.words[i].text)) {
      assign_unknown(command.words[i].text);
      continue;
    }
    ShellValue value;
    value.unset = true;
    assign(command.words[i].text, std::move(value));
  }
}

void ShellWalker::assign_unknown(std::string_view text) {
  const std::string_view name = text.substr(0, text.find('['));
  if (is_name(name)) assign(name, unknown_value_);
}

void ShellWalker::run_read(const shell::Command& command, std::size_t at) {
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    assign_unknown(word);
    if (word.size() < 2 || word[0] != '-') continue;
    // A cluster of options: -a and -v may have their name in it, -C its command.
    for (std::size_t from = 2; from < std::min<std::size_t>(word.size(), 8); ++from)
      assign_unknown(std::string_view(word).substr(from));
    const std::size_t callback = word.find('C');
    if (callback == std::string::npos) continue;
    if (callback + 1 < word.size())
      run_text(word.substr(callback + 1), command, true);
    else if (i + 1 < command.words.size())
      run_text(command.words[i + 1].text, command, true);
  }
  assign("REPLY"sv, unknown_value_);
  assign("MAPFILE"sv, unknown_value_);
  if (command.words[at].text == "read" && command.input.kind == shell::Input::Kind::known)
    run_known_read(command, at);
}

void ShellWalker::run_known_read(const shell::Command& command, std::size_t at) {
  bool raw = false, sure = false;
  for (const shell::Redirection& redirection : command.redirections)
    sure = sure || (redirection.fd == 0 && redirection.kind != shell::Redirection::Kind::duplicate);
  std::size_t i = at + 1;
  for (; i < command.words.size() && starts_with(command.words[i].text, "-"sv); ++i) {
    const std::string& option = command.words[i].text;
    const std::size_t argument = std::min(option.find_first_not_of("-reEs"), option.size());
    raw = raw || option.find('r') < argument;
    // Other options than -r and -p may be none, or end it before the line does.
    sure = sure && option.find_first_not_of("-rp") == std::string::npos;
    if (argument == option.size()) continue;
    if (option[argument] != 'p' && option[argument] != 't') return;
    if (argument + 1 == option.size()) ++i;
  }
  std::vector<std::string_view> names;
  for (; i < command.words.size(); ++i) {
    names.push_back(command.words[i].text);
    if (!is_name(names.back())) return;
  }
  std::string separators;
  if (!names.empty()) {
    separators = separators_of(value_of("IFS"sv));
  } else {
    names.push_back("REPLY"sv);
    sure = sure && bash();
  }
  if (has_nul(separators)) return;
  std::vector<ShellVariable> read(names.size());
  if (!sure)
    for (ShellVariable& variable : read) variable.values.push_back(ShellValue(unknown_value_));
  const std::string_view unknown("\0", 1);
  std::string_view rest = command.input.text;
  do {
    std::string_view line = take_part(rest, '\n');
    charge(line.size() + 1);
    if (!raw && line.find('\\') != std::string_view::npos) line = unknown;
    if (has_nul(line)) line = line.substr(0, line.find('\0') + 1);
    read_line(line, command.input, separators, read);
  } while (!sure && !rest.empty() && read[0].values.size() < max_values && !stopped());
  for (i = 0; i < names.size(); ++i) {
    if (read[i].values.size() == 1) {
      assign(names[i], std::move(read[i].values[0]));
    } else if (!has_attribute(names[i], 'r') && !has_attribute(names[i], 'i')) {
      for (const ShellValue& value : read[i].values) run_value(names[i], value);
      set_variable(names[i], std::move(read[i]));
    }
  }
}

void ShellWalker::read_line(std::string_view line, const shell::Input& input,
                            std::string_view separators, std::vector<ShellVariable>& names) {
  bool blank = false;
  std::size_t at = skip_separator(line, 0, separators, blank);
  for (ShellVariable& name : names) {
    const bool last = &name == &names.back();
    const std::size_t end =
        last ? line.size() : std::min(line.find_first_of(separators, at), line.size());
    std::string_view field = line.substr(at, end - at);
    while (last && !field.empty() && separators.find(field.back()) != std::string_view::npos) {
      // Whether another separator than a blank is kept depends on what stands before it.
      if (is_shell_blank(field.back()))
        field.remove_suffix(1);
      else
        line = field = std::string_view("\0", 1);
    }
    const bool glob = input.glob && has_glob(field);
    merge_value(name, scalar_value({std::string(field), input.glob, glob, input.home}));
    blank = true;
    at = skip_separator(line, end, separators, blank);
    // What comes behind may be a part of these names of files, or anything.
    if (!glob && !has_nul(field)) continue;
    line = glob ? field : line.substr(line.size() - 1);
    at = 0;
  }
}

void ShellWalker::run_compgen(const shell::Command& command, std::size_t at) {
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    if (has_substitution(command.words[i].text)) run_expansion_text(command.words[i].text);
    if (ends_with(command.words[i].text, "C"sv) && i + 1 < command.words.size())
      run_text(command.words[i + 1].text, command, true);
  }
}

void ShellWalker::run_hash(const shell::Command& command, std::size_t at) {
  for (std::size_t i = at + 1; i + 2 < command.words.size(); ++i)
    if (ends_with(command.words[i].text, "p"sv) && starts_with(command.words[i].text, "-"sv))
      set_alias(command.words[i + 2].text, command.words[i + 1].text);
}

void ShellWalker::set_alias(const std::string& name, std::string value) {
  std::string& alias = aliases_[name];
  if (alias != value) ++definitions_;
  alias = std::move(value);
}

void ShellWalker::run_set(const shell::Command& command, std::size_t at) {
  std::size_t i = at + 1;
  bool given = false;
  for (; i < command.words.size() && !given; ++i) {
    const std::string& word = command.words[i].text;
    if (word == "--") {
      given = true;
    } else if (word.empty() || (word[0] != '-' && word[0] != '+')) {
      break;
    } else if (has_entry("-o +o"sv, word)) {
      ++i;
    }
  }
  if (!given && i >= command.words.size()) return;
  ShellValue value = empty_array();
  for (; i < command.words.size(); ++i) value.elements.push_back(text_of(command.words[i]));
  assign(positional_key, std::move(value));
}

void ShellWalker::run_shift(const shell::Command& command, std::size_t at) {
  long long count = 1;
  if (at + 1 < command.words.size() && !read_integer(command.words[at + 1].text, count)) count = -1;
  ShellValue value = value_of(positional_key);
  charge(value.elements.size());
  const auto size = static_cast<long long>(value.elements.size());
  if (count < 0 || is_uncertain(value, static_cast<std::size_t>(count))) {
    value = unknown_array();
  } else if (count <= size) {
    value.elements.erase(value.elements.begin(),
                         value.elements.begin() + static_cast<std::ptrdiff_t>(count));
  }
  assign(positional_key, std::move(value));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
