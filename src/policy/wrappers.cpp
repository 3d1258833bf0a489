// The judge: programs that start another one, such as env, su and watch.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Whether a text has no known part.
bool is_blank_or_unknown(std::string_view text) {
  return is_unknown(text) &&
         text.find_first_not_of(std::string_view("\0 \n", 3)) == std::string_view::npos;
}

}  // namespace

inline namespace inner {

bool find_wrapper(std::string_view name, Wrapper& wrapper) {
  std::size_t low = 0, high = wrapper_table.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const std::size_t before = middle ? wrapper_table.rfind('\n', middle - 1) : middle;
    const std::size_t at = before == std::string_view::npos ? 0 : before + (middle != 0);
    const std::size_t end = wrapper_table.find('\n', at);
    const int order = name_of_row(at).compare(name);
    if (order < 0) {
      low = end + 1;
    } else if (order > 0) {
      high = at;
    } else {
      std::string_view row = wrapper_table.substr(at, end - at);
      wrapper.name = take_part(row, ';');
      wrapper.flags = take_part(row, ';');
      if (starts_with(wrapper.flags, "="sv)) return find_wrapper(wrapper.flags.substr(1), wrapper);
      wrapper.syntax.letters = take_part(row, ';');
      wrapper.syntax.longs = take_part(row, ';');
      wrapper.scripts = take_part(row, ';');
      wrapper.programs = take_part(row, ';');
      wrapper.syntax.twice = take_part(row, ';');
      return true;
    }
  }
  return false;
}

void Judge::peel(const Wrapper& wrapper, Form form) {
  if (form.level > max_peeled_levels) {
    case_.too_complex = true;
    return;
  }
  form.holes = form.holes || wrapper.has('h') || wrapper.has('e');
  // A file that is sent elsewhere is no more unknown than one that is named there.
  static const shell::Input sent = {};
  if (wrapper.has('e') && reads_file()) form.input = &sent;
  for (const char flag : wrapper.flags) {
    switch (flag) {
      case 'C':
        return peel_console(wrapper, form);
      case 'D':
        return peel_sed(wrapper, form);
      case 'E':
        return peel_env(wrapper, form);
      case 'F':
        return peel_find(form);
      case 'H':
        return peel_capsh(form);
      case 'I':
        // What it does with input that is not known is not the script's doing.
        if (form.input->kind == shell::Input::Kind::known) read_input(form, form.size, false);
        return;
      case 'K':
        return peel_git_config(wrapper, form);
      case 'M':
        return peel_make(wrapper, form);
      case 'N':
        return peel_screen(wrapper, form);
      case 'P':
        return peel_parallel(wrapper, form);
      case 'R':
        return peel_runuser(wrapper, form);
      case 'S':
        return peel_keys(wrapper, form);
      case 'T':
        return peel_tar(wrapper, form);
      case 'U':
        return peel_su(wrapper, form);
      case 'W':
        return peel_script(wrapper, form);
      case 'X':
        return peel_xargs(wrapper, form);
      case 'Y':
        return peel_interpreter(wrapper, form);
      case 'Z':
        return peel_nested(form);
      default:
        break;
    }
  }
  peel_plain(wrapper, form);
}

bool Judge::reads_file() const {
  for (const shell::Redirection& redirection : command_->redirections)
    if (redirection.kind == shell::Redirection::Kind::read && redirection.fd == 0)
      return redirection.target.known() && !redirection.target.process;
  return false;
}

void Judge::peel_plain(const Wrapper& wrapper, const Form& form) {
  bool joins = wrapper.has('j');
  Part program;
  const auto on_option = [&](std::string_view name, const Part& argument) {
    if (!argument.word) {
      if (wrapper.has('t') && lists_option(wrapper.programs, name)) joins = !joins;
    } else if (lists_option(wrapper.scripts, name)) {
      run_option(form, argument);
    } else if (wrapper.has('G') && has_entry("c config"sv, name)) {
      std::string_view value = argument.text;
      const std::string_view setting = take_part(value, '=');
      judge_setting(form, setting, value);
    } else if (lists_option(wrapper.programs, name)) {
      program = argument;
    }
  };
  const Order order = wrapper.has('o') ? Order::options_anywhere : Order::stop_at_operand;
  std::size_t i = read_arguments(form, wrapper.syntax, order, on_option, [&](const Part& operand) {
    if (wrapper.has('p')) run_option(form, operand);
  });
  std::size_t behind = wrapper.has('d') ? 1 : form.size;
  while (behind < form.size && form.words[behind].text != "--") ++behind;
  if (behind < form.size) return peel_rest(wrapper, form, behind + 1, program, joins);
  if (wrapper.has('o')) return;
  const std::size_t digit = wrapper.flags.find('1');
  if (wrapper.has('v') || wrapper.has('q'))
    return peel_verb(wrapper, form, i + (digit != std::string_view::npos));
  if (wrapper.has('L') && joins) return;
  while (i < form.size && form.words[i].text == "-") ++i;
  if (wrapper.has('a'))
    while (i < form.size && is_assignment(form.words[i].text)) ++i;
  if (digit != std::string_view::npos && i < form.size)
    i += wrapper.has('r')
             ? read_arguments(form.from(i), wrapper.syntax, order, on_option, ignore_part)
             : 1;
  peel_rest(wrapper, form, i, program, joins);
}

void Judge::peel_rest(const Wrapper& wrapper, const Form& form, std::size_t i, const Part& program,
                      bool joins) {
  const Form rest = form.from(i);
  if (program.word && !program.text.empty()) {
    std::vector<shell::Word> words;
    words.push_back(word_like(*program.word, std::string(program.text)));
    for (std::size_t k = 0; k < rest.size; ++k) words.push_back(shell::Word(rest.words[k]));
    return add_form(rest, std::move(words));
  }
  if (rest.size == 0) {
    if (wrapper.has('i') && form.input->kind == shell::Input::Kind::known)
      read_input(form, form.size, false);
    return;
  }
  if (joins) {
    const std::string script = join(rest);
    return run_string(rest, {script, rest.words});
  }
  // An unquoted $OPTIONS may be any number of words: the one behind may be the command, too.
  bool vague = false;
  for (std::size_t k = 1; k < i; ++k)
    vague = vague || (form.words[k].split && is_blank_or_unknown(form.words[k].text));
  if (wrapper.has('e') && !vague && is_blank_or_unknown(rest.words[0].text)) {
    Form unknown = rest;
    unknown.holes = command_->holes;
    refuse_unknown(unknown);
  }
  add_form(rest);
  if (vague) add_form(rest.from(1));
}

void Judge::peel_verb(const Wrapper& wrapper, Form form, std::size_t i) {
  while (i < form.size) {
    Form one = form.from(i);
    std::size_t end = 0;
    while (end < one.size && !(wrapper.has('q') && one.words[end].text == ";")) ++end;
    one.size = end;
    i += end + 1;
    Wrapper verb;
    if (end && find_wrapper(concat({wrapper.name, " ", one.words[0].text}), verb)) peel(verb, one);
  }
}

void Judge::peel_env(const Wrapper& wrapper, const Form& form) {
  Part script;
  std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part& argument) {
        if (lists_option("S s split-string"sv, name)) script = argument;
      },
      ignore_part);
  if (script.word) return run_words(form, std::string(script.text), i, *script.word);
  // For env, any word with = in it is an assignment.
  for (; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    const std::size_t equals = word.text.find('=');
    if (word.text != "-" && equals == std::string::npos) break;
    if (equals == std::string::npos) continue;
    const std::string name = word.text.substr(0, equals);
    const std::string value = word.text.substr(equals + 1);
    judge_variable(form, word, name, value);
    if (!is_name(name) || !case_.charge_bytes(word.text.size())) continue;
    environment_ += name + "=";
    append_quoted(environment_, value);
    environment_ += '\n';
  }
  add_form(form.from(i));
}

void Judge::judge_variable(const Form& form, const shell::Word& word, std::string_view name,
                           std::string_view value) {
  if (starts_with(name, "BASH_FUNC_"sv))
    refuse_opaque(form, word, "a shell would run what is not known before it runs"sv);
  if (has_entry(command_variables, name) || starts_with(name, "GIT_CONFIG_VALUE_"sv))
    run_guess(form, value);
  if (name != "BASH_ENV"sv && name != "ENV"sv) return;
  const std::string path = join_shell_path(command_->work_dir.text, value);
  if (word.process || is_unknown(value) || starts_with(path, "/dev/"sv) ||
      starts_with(path, "/proc/"sv))
    start_file_ = &word;
}

void Judge::judge_exported(const Form& form, const shell::Word& word) {
  std::string_view value = word.text;
  const std::string_view name = take_part(value, '=');
  judge_variable(form, word, name, value);
}

void Judge::run_words(const Form& form, std::string script, std::size_t first,
                      const shell::Word& word) {
  if (is_unknown(script)) refuse_opaque(form, word, "part of it is not known before it runs"sv);
  for (std::size_t i = first; i < form.size; ++i) {
    script += ' ';
    append_quoted(script, form.words[i].text);
  }
  add_payload(form, std::move(script), false);
}

void Judge::run_string(const Form& form, const Part& part, std::size_t first_argument) {
  Form unknown = form;
  unknown.holes = form.holes && !is_blank_or_unknown(part.text);
  if (is_unknown(part.text) || part.glob())
    refuse_opaque(unknown, *part.word, "the script is not known before it runs"sv);
  add_payload(form, std::string(part.text), false, first_argument);
}

void Judge::run_option(const Form& form, const Part& part) {
  // ProxyCommand=..., exec=..., SYSTEM:...
  std::string_view text = part.text;
  const std::size_t at = text.find_first_of("=: ");
  const std::string key = in_lower_case(text.substr(0, at));
  if (at != std::string_view::npos &&
      (has_entry("exec system shell"sv, key) || ends_with(key, "command"sv)))
    text.remove_prefix(at + 1);
  if (form.holes) return run_guess(form, text);
  run_string(form, {text, part.word});
}

void Judge::run_guess(Form form, std::string_view script) {
  // git and less have marks before it.
  const std::size_t begin = script.find_first_not_of("|!- ");
  if (begin == std::string_view::npos) return;
  form.holes = true;
  add_payload(form, std::string(script.substr(begin)), false);
}

void Judge::peel_capsh(const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (has_entry("-- =="sv, form.words[i].text)) return judge_shell(form.from(i));
}

void Judge::peel_script(const Wrapper& wrapper, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (form.words[i].text == "--") return add_form(form.from(i + 1));
  Part file;
  read_arguments(
      form, wrapper.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (lists_option("c command"sv, name) && argument.word) run_string(form, argument);
      },
      [&](const Part& operand) {
        // Behind the file, BSD has a command.
        if (file.word && file.word == operand.word - 1)
          add_form(form.from(static_cast<std::size_t>(operand.word - form.words)));
        else
          use_file(Use::write, operand, false, form);
        file = operand;
      });
}

void Judge::peel_runuser(const Wrapper& wrapper, const Form& form) {
  bool direct = false;
  const std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part&) { direct |= has_entry("u user"sv, name); },
      ignore_part);
  if (direct) return add_form(form.from(i));
  peel_su(wrapper, form);
}

void Judge::peel_su(const Wrapper& wrapper, const Form& form) {
  Part script;
  std::size_t operands = 0;
  read_arguments(
      form, wrapper.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (lists_option("c command session-command"sv, name)) script = argument;
      },
      [&](const Part& operand) { operands += operand.text != "-"; });
  if (script.word) return run_string(form, script);
  if (operands <= 1) read_input(form, form.size, false);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
