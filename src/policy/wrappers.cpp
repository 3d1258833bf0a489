// Programs that start another one, such as env, su and watch.
//
// A wrapper is peeled off: its own words are skipped, and what follows is a form that is judged as
// if it stood alone. The row of a program in wrapper_table says how. Most rows need only their
// options and flags, in small letters, and peel_plain() reads them all in the same way:
//
//   nice -n 5 rm -rf /           options, then the form
//   timeout -k 5 10 rm -rf /     options, one word (flag 1), then the form
//   watch -n 1 rm -rf /          options, then words that are joined to a script (j)
//   git -C /x bisect run make    options, then a command of its own (v), which has a row, too
//
// A capital in the flags names a function for a program that has its own way.

#include "policy/subject_internal.hpp"

#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

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

void judge_variable(Subject& subject, const Form& form, const shell::Word& word,
                    std::string_view name, std::string_view value) {
  if (starts_with(name, "BASH_FUNC_"sv))
    subject.refuse_opaque(form, word, "a shell would run what is not known before it runs"sv);
  if (has_entry(command_variables, name) || starts_with(name, "GIT_CONFIG_VALUE_"sv))
    run_guess(subject, form, value);
  if (name != "BASH_ENV"sv && name != "ENV"sv) return;
  const std::string path = join_shell_path(subject.command.work_dir.text, value);
  if (word.process || is_unknown(value) || starts_with(path, "/dev/"sv) ||
      starts_with(path, "/proc/"sv))
    subject.start_file = &word;
}

}  // namespace inner

namespace {

// Peels a command of the program's own, which is the first word: its row is "git commit". False:
// there is no such row.
bool peel_command(Subject& subject, std::string_view program, const Form& form) {
  Wrapper verb;
  if (form.size == 0 || !find_wrapper(concat("% %", {program, form.words[0].text}), verb))
    return false;
  peel(subject, verb, form);
  return true;
}

// True if standard input is a file that the command names.
bool reads_file(const shell::Command& command) {
  for (const shell::Redirection& redirection : command.redirections)
    if (redirection.kind == shell::Redirection::Kind::read && redirection.fd == 0)
      return redirection.target.known() && !redirection.target.process;
  return false;
}

// What the options of a wrapper say of the command behind them.
struct Started {
  Part program = {};   // given by an option, the words are its arguments
  bool joins = false;  // the words are one script
};

// The command that begins at word `i`.
void peel_rest(Subject& subject, const Wrapper& wrapper, const Form& form, std::size_t i,
               const Started& started) {
  const Form rest = form.from(i);
  const Part& program = started.program;
  if (program.word && !program.text.empty()) {
    std::vector<shell::Word> words;
    words.push_back(word_like(*program.word, program.text));
    for (std::size_t k = 0; k < rest.size; ++k) words.push_back(shell::Word(rest.words[k]));
    return subject.add_form(rest, std::move(words));
  }
  if (rest.size == 0) {
    if (wrapper.has('i') && form.input->kind == shell::Input::Kind::known)
      read_input(subject, form, form.size, false);
    return;
  }
  if (started.joins) {
    const std::string script = join(rest);
    return run_string(subject, rest, {script, rest.words});
  }
  // An unquoted $OPTIONS may be any number of words: the one behind may be the command, too.
  bool vague = false;
  for (std::size_t k = 1; k < i; ++k)
    vague = vague || (form.words[k].split && is_blank_or_unknown(form.words[k].text));
  if (wrapper.has('e') && !vague && is_blank_or_unknown(rest.words[0].text)) {
    Form unknown = rest;
    unknown.holes = subject.command.holes;
    subject.refuse_unknown(unknown);
  }
  subject.add_form(rest);
  if (vague) subject.add_form(rest.from(1));
}

// The command of the program's own at word `i`; with q, another one behind each `;`.
void peel_verb(Subject& subject, const Wrapper& wrapper, const Form& form, std::size_t i) {
  while (i < form.size) {
    Form one = form.from(i);
    std::size_t end = 0;
    while (end < one.size && !(wrapper.has('q') && one.words[end].text == ";")) ++end;
    one.size = end;
    i += end + 1;
    peel_command(subject, wrapper.name, one);
  }
}

// Notes what an option says, and runs the script that it has.
void take_argument(Subject& subject, const Wrapper& wrapper, const Form& form,
                   const Arguments& argument, Started& started) {
  if (!argument.is_option) {
    if (wrapper.has('p')) run_option(subject, form, argument.part);
  } else if (!argument.part.word) {
    if (wrapper.has('t') && argument.is(wrapper.programs)) started.joins = !started.joins;
  } else if (argument.is(wrapper.scripts)) {
    run_option(subject, form, argument.part);
  } else if (wrapper.has('G') && argument.has("c config"sv)) {
    std::string_view value = argument.part.text;
    const std::string_view setting = take_part(value, '=');
    judge_setting(subject, form, setting, value);
  } else if (argument.is(wrapper.programs)) {
    started.program = argument.part;
  }
}

// Programs without a capital in their flags.
void peel_plain(Subject& subject, const Wrapper& wrapper, const Form& form) {
  Started started;
  started.joins = wrapper.has('j');
  const bool anywhere = wrapper.has('o');
  Arguments each(form, wrapper.syntax, anywhere ? Order::options_anywhere : Order::stop_at_operand);
  while (each.next()) take_argument(subject, wrapper, form, each, started);
  std::size_t i = each.at();
  if (wrapper.has('d'))
    for (std::size_t behind = 1; behind < form.size; ++behind)
      if (form.words[behind].text == "--")
        return peel_rest(subject, wrapper, form, behind + 1, started);
  if (anywhere) return;
  const bool has_word = wrapper.has('1');
  if (wrapper.has('v') || wrapper.has('q')) return peel_verb(subject, wrapper, form, i + has_word);
  if (wrapper.has('L') && started.joins) return;
  // Skip what stands before the command: -, NAME=value, a word, more options.
  while (i < form.size && form.words[i].text == "-") ++i;
  if (wrapper.has('a'))
    while (i < form.size && is_assignment(form.words[i].text)) ++i;
  if (has_word && i < form.size) {
    Arguments more(form.from(i), wrapper.syntax, Order::stop_at_operand);
    while (wrapper.has('r') && more.next()) take_argument(subject, wrapper, form, more, started);
    i += more.at();
  }
  peel_rest(subject, wrapper, form, i, started);
}

// env A=b COMMAND: the assignments hold for the shells that the command starts, too.
void peel_env(Subject& subject, const Wrapper& wrapper, const Form& form) {
  Part script;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next())
    if (each.is("S s split-string"sv)) script = each.part;
  std::size_t i = each.at();
  if (script.word) return run_words(subject, form, script.text, i, *script.word);
  // For env, any word with = in it is an assignment.
  for (; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    const std::size_t equals = word.text.find('=');
    if (word.text != "-" && equals == std::string::npos) break;
    if (equals == std::string::npos) continue;
    const std::string name = word.text.substr(0, equals);
    const std::string value = word.text.substr(equals + 1);
    judge_variable(subject, form, word, name, value);
    if (!is_name(name) || !subject.judged.charge_bytes(word.text.size())) continue;
    subject.environment += name + "=";
    append_quoted(subject.environment, value);
    subject.environment += '\n';
  }
  subject.add_form(form.from(i));
}

// capsh -- and capsh == start a shell, with the words behind as its arguments.
void peel_capsh(Subject& subject, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (has_entry("-- =="sv, form.words[i].text)) return judge_shell(subject, form.from(i));
}

// script runs a command, and writes what that prints to a file.
void peel_script(Subject& subject, const Wrapper& wrapper, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (form.words[i].text == "--") return subject.add_form(form.from(i + 1));
  Part file;
  for (Arguments each(form, wrapper.syntax, Order::options_anywhere); each.next();) {
    if (each.is("c command"sv) && each.part.word) run_string(subject, form, each.part);
    if (each.is_option) continue;
    // Behind the file, BSD has a command.
    if (file.word && file.word == each.part.word - 1)
      subject.add_form(form.from(static_cast<std::size_t>(each.part.word - form.words)));
    else
      use_file(subject, Use::write, each.part, false, form);
    file = each.part;
  }
}

// su -c SCRIPT; without it, the shell reads what comes in.
void peel_su(Subject& subject, const Wrapper& wrapper, const Form& form) {
  Part script;
  std::size_t operands = 0;
  for (Arguments each(form, wrapper.syntax, Order::options_anywhere); each.next();) {
    if (each.is("c command session-command"sv)) script = each.part;
    operands += !each.is_option && each.part.text != "-"sv;
  }
  if (script.word) return run_string(subject, form, script);
  if (operands <= 1) read_input(subject, form, form.size, false);
}

// runuser -u USER COMMAND; else as su.
void peel_runuser(Subject& subject, const Wrapper& wrapper, const Form& form) {
  bool direct = false;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) direct |= each.has("u user"sv);
  if (direct) return subject.add_form(form.from(each.at()));
  peel_su(subject, wrapper, form);
}

// Words of tmux that are a command of tmux, or strings that hold one of tmux or of a shell.
void peel_nested(Subject& subject, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i) {
    if (peel_command(subject, "tmux"sv, form.from(i))) return;
    const std::string& text = form.words[i].text;
    if (text.find(' ') == std::string::npos) continue;
    run_guess(subject, form, text);
    run_guess(subject, form, concat("tmux %", {text}));
  }
}

}  // namespace

inline namespace inner {

void peel(Subject& subject, const Wrapper& wrapper, const Form& whole) {
  if (whole.level > max_peeled_levels) {
    subject.judged.too_complex = true;
    return;
  }
  Form form = whole;
  form.holes = form.holes || wrapper.has('h') || wrapper.has('e');
  // `ssh HOST sh < FILE` passes, as `sh FILE` does: the policy reads no files.
  static const shell::Input sent = {};
  if (wrapper.has('e') && reads_file(subject.command)) form.input = &sent;
  for (const char flag : wrapper.flags) {
    switch (flag) {
      case 'C':
        return peel_console(subject, wrapper, form);
      case 'D':
        return peel_sed(subject, wrapper, form);
      case 'E':
        return peel_env(subject, wrapper, form);
      case 'F':
        return peel_find(subject, form);
      case 'H':
        return peel_capsh(subject, form);
      case 'I':
        // What it does with input that is not known is not the script's doing.
        if (form.input->kind == shell::Input::Kind::known)
          read_input(subject, form, form.size, false);
        return;
      case 'K':
        return peel_git_config(subject, wrapper, form);
      case 'M':
        return peel_make(subject, wrapper, form);
      case 'N':
        return peel_screen(subject, wrapper, form);
      case 'P':
        return peel_parallel(subject, wrapper, form);
      case 'R':
        return peel_runuser(subject, wrapper, form);
      case 'S':
        return peel_keys(subject, wrapper, form);
      case 'T':
        return peel_tar(subject, wrapper, form);
      case 'U':
        return peel_su(subject, wrapper, form);
      case 'W':
        return peel_script(subject, wrapper, form);
      case 'X':
        return peel_xargs(subject, wrapper, form);
      case 'Y':
        // Some have commands of their own: bun exec.
        if (!peel_command(subject, wrapper.name, form.from(1)))
          peel_interpreter(subject, wrapper, form);
        return;
      case 'Z':
        return peel_nested(subject, form);
      default:
        break;
    }
  }
  peel_plain(subject, wrapper, form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
