// Programs that start another one, such as env, su and watch.
//
// A wrapper is peeled off: its own words are skipped, and what follows is a form that is judged as
// if it stood alone. The row of a program says how, see wrapper_columns_internal.hpp. Most rows
// need only their options and flags, and peel_plain() reads them all in the same way:
//
//   nice -n 5 rm -rf /           options, then the form
//   timeout -k 5 10 rm -rf /     options, one word (word_before), then the form
//   watch -n 1 rm -rf /          options, then words that are joined to a script (joins_words)
//   git -C /x bisect run make    options, then a command of its own (has_commands), which has a row
//
// A row with a Kind has a function for its program, which peel() calls.

#include "policy/subject_internal.hpp"
#include "policy/typed_internal.hpp"

#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// True if all that is not known of a value is what the script was started with.
bool comes_from_outside(const shell::Word& word, std::string_view value) {
  const auto unknown = static_cast<std::size_t>(std::count(value.begin(), value.end(), '\0'));
  return unknown <= word.count_unset();
}

}  // namespace

inline namespace inner {

bool steers_programs(std::string_view name) {
  return is_any(name, "BASH_ENV", "ENV", "IFS", "PATH") || prompt_variables.has(name) ||
         command_variables.has(name) || starts_with(name, "GIT_"sv) || starts_with(name, "LD_"sv) ||
         starts_with(name, "PYTHON"sv);
}

void judge_variable(Subject& subject, const Form& form, const shell::Word& word,
                    std::string_view name, std::string_view value) {
  if (starts_with(name, "BASH_FUNC_"sv))
    subject.refuse_opaque(form, word, "a shell would run what is not known before it runs"sv);
  note_editing(subject.judged, name);
  if (prompt_variables.has(name) && !comes_from_outside(word, value))
    subject.refuse_opaque(form, word, "a shell at a terminal would run what is not known"sv);
  // One that is not known may be any of them.
  if (command_variables.has(name) || is_unknown(name)) run_guess(subject, form, value);
  if (starts_with(name, "GIT_CONFIG_"sv)) judge_git_variable(subject, form, name, value);
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
    if (wrapper.has(Wrapper::reads_input) && form.input->kind != shell::Input::Kind::unknown)
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
  if (wrapper.has(Wrapper::elsewhere) && !vague && is_blank_or_unknown(rest.words[0].text)) {
    Form unknown = rest;
    unknown.holes = subject.command.holes;
    subject.refuse_unknown(unknown);
  }
  subject.add_form(rest);
  if (vague || wrapper.has(Wrapper::maybe_word)) subject.add_form(rest.from(1));
}

// The command of the program's own at word `i`; with q, another one behind each `;`.
void peel_verb(Subject& subject, const Wrapper& wrapper, const Form& form, std::size_t i) {
  while (i < form.size) {
    Form one = form.from(i);
    std::size_t end = 0;
    while (end < one.size && !(wrapper.has(Wrapper::command_list) && one.words[end].text == ";"))
      ++end;
    one.size = end;
    i += end + 1;
    peel_command(subject, wrapper.name, one);
  }
}

// Notes what an option says, and runs the script that it has.
void take_argument(Subject& subject, const Wrapper& wrapper, const Form& form,
                   const Arguments& argument, Started& started) {
  if (!argument.is_option) {
    if (wrapper.has(Wrapper::operands_are_scripts)) run_option(subject, form, argument.part);
  } else if (!argument.part.word) {
    if (wrapper.has(Wrapper::toggles_joining) && argument.is(wrapper.programs))
      started.joins = !started.joins;
  } else if (argument.is(wrapper.scripts)) {
    run_option(subject, form, argument.part);
  } else if (wrapper.has(Wrapper::git_settings) && argument.has("c", "config")) {
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
  started.joins = wrapper.has(Wrapper::joins_words);
  const bool anywhere = wrapper.has(Wrapper::no_command);
  Arguments each(form, wrapper.syntax, anywhere ? Order::options_anywhere : Order::stop_at_operand);
  while (each.next()) take_argument(subject, wrapper, form, each, started);
  std::size_t i = each.at();
  if (wrapper.has(Wrapper::behind_dashes))
    for (std::size_t behind = 1; behind < form.size; ++behind)
      if (form.words[behind].text == "--")
        return peel_rest(subject, wrapper, form, behind + 1, started);
  if (anywhere) return;
  const bool has_word = wrapper.has(Wrapper::word_before);
  if (wrapper.has(Wrapper::has_commands) || wrapper.has(Wrapper::command_list))
    return peel_verb(subject, wrapper, form, i + has_word);
  if (wrapper.has(Wrapper::shows) && started.joins) return;
  // Skip what stands before the command: -, NAME=value, a word, more options.
  while (i < form.size && form.words[i].text == "-") ++i;
  if (wrapper.has(Wrapper::assignments_before))
    while (i < form.size && is_assignment(form.words[i].text)) ++i;
  if (has_word && i < form.size) {
    Arguments more(form.from(i), wrapper.syntax, Order::stop_at_operand);
    while (wrapper.has(Wrapper::options_again) && more.next())
      take_argument(subject, wrapper, form, more, started);
    i += more.at();
  }
  peel_rest(subject, wrapper, form, i, started);
}

// A variable that env gives to a shell which is not there yet: what it expands, and what it reads.
void judge_given(Subject& subject, const Form& form, const shell::Word& word,
                 const std::string& name, std::string_view value) {
  if (is_any(name, "BASH_ENV", "ENV")) {
    for (shell::Assignment& start : subject.start_files)
      if (start.name == name) start.name.clear();
    shell::Assignment start;
    start.name = name;
    start.value = word_like(word, value);
    start.value.process = word.process;
    if (!value.empty()) subject.start_files.push_back(std::move(start));
  }
  if (!prompt_variables.has(name)) return;
  Form code = form;
  code.code = true;
  std::string text = name + "=";
  append_quoted(text, value);
  subject.add_payload(code, text, false);
}

// env A=b COMMAND: the assignments hold for the shells that the command starts, too.
void peel_env(Subject& subject, const Wrapper& wrapper, const Form& form) {
  Part script;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next())
    if (each.is("S", "s", "split-string")) script = each.part;
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
    judge_given(subject, form, word, name, value);
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
    if (is_any(form.words[i].text, "--", "==")) return judge_shell(subject, form.from(i));
}

// script runs a command, and writes what that prints to a file.
void peel_script(Subject& subject, const Wrapper& wrapper, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (form.words[i].text == "--") return subject.add_form(form.from(i + 1));
  Part file;
  for (Arguments each(form, wrapper.syntax, Order::options_anywhere); each.next();) {
    if (each.is("c", "command") && each.part.word) run_string(subject, form, each.part);
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
    if (each.is("c", "command", "session-command")) script = each.part;
    operands += !each.is_option && each.part.text != "-"sv;
  }
  if (script.word) return run_string(subject, form, script);
  if (operands <= 1) read_input(subject, form, form.size, false);
}

// runuser -u USER COMMAND; else as su.
void peel_runuser(Subject& subject, const Wrapper& wrapper, const Form& form) {
  bool direct = false;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) direct |= each.has("u", "user");
  if (direct) return subject.add_form(form.from(each.at()));
  peel_su(subject, wrapper, form);
}

// sg GROUP COMMAND. ast-grep has the same name, and options or commands of its own.
void peel_group(Subject& subject, const Wrapper& wrapper, const Form& form) {
  static constexpr auto searches =
      NameSet{"completions", "help", "lsp", "new", "outline", "run", "scan", "test"};
  if (form.size < 2) return;
  const std::string_view first = form.words[1].text;
  const bool is_option = first.size() > 1 && first[0] == '-';
  if (!is_option && !searches.has(first)) peel_plain(subject, wrapper, form);
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

// What it does with input that is not known is not the script's doing.
void peel_input(Subject& subject, const Form& form) {
  if (form.input->kind == shell::Input::Kind::known) read_input(subject, form, form.size, false);
}

void peel_files(Subject& subject, const Wrapper& wrapper, const Form& form) {
  FileProgram program;
  if (find_file_program(wrapper.programs.first(), program)) judge_files(subject, program, form);
}

void peel_git_and_its_command(Subject& subject, const Wrapper& wrapper, const Form& form) {
  if (wrapper.has(Wrapper::has_commands)) peel_plain(subject, wrapper, form);
  peel_git(subject, wrapper, form);
}

// The form, with what is known of the programs that a wrapper starts.
Form form_for(const Subject& subject, const Wrapper& wrapper, const Form& whole) {
  Form form = whole;
  form.holes = form.holes || wrapper.has(Wrapper::known_in_part) || wrapper.has(Wrapper::elsewhere);
  // `ssh HOST sh < FILE` passes, as `sh FILE` does: the policy reads no files.
  static const shell::Input sent = {};
  if (wrapper.has(Wrapper::elsewhere) && reads_file(subject.command)) form.input = &sent;
  static const shell::Input received = {shell::Input::Kind::unknown};
  if (wrapper.has(Wrapper::feeds_input)) form.input = &received;
  return form;
}

}  // namespace

inline namespace inner {

void peel(Subject& subject, const Wrapper& wrapper, const Form& whole) {
  if (whole.level > max_peeled_levels) {
    subject.judged.too_complex = true;
    return;
  }
  const Form form = form_for(subject, wrapper, whole);
  if (wrapper.has(Wrapper::reaches_host)) check_host_access(subject, wrapper, form);
  check_code_input(subject, wrapper, form);
  switch (wrapper.kind) {
    case Wrapper::Kind::plain:
      return peel_plain(subject, wrapper, form);
    case Wrapper::Kind::console:
      return peel_console(subject, wrapper, form);
    case Wrapper::Kind::sed:
      return peel_sed(subject, wrapper, form);
    case Wrapper::Kind::group:
      return peel_group(subject, wrapper, form);
    case Wrapper::Kind::env:
      return peel_env(subject, wrapper, form);
    case Wrapper::Kind::find:
      return peel_find(subject, form);
    case Wrapper::Kind::fd:
      return peel_fd(subject, wrapper, form);
    case Wrapper::Kind::files:
      return peel_files(subject, wrapper, form);
    case Wrapper::Kind::capsh:
      return peel_capsh(subject, form);
    case Wrapper::Kind::input_only:
      return peel_input(subject, form);
    case Wrapper::Kind::git:
      return peel_git_and_its_command(subject, wrapper, form);
    case Wrapper::Kind::git_config:
      return peel_git_config(subject, wrapper, form);
    case Wrapper::Kind::make:
      return peel_make(subject, wrapper, form);
    case Wrapper::Kind::screen:
      return peel_screen(subject, wrapper, form);
    case Wrapper::Kind::parallel:
      return peel_parallel(subject, wrapper, form);
    case Wrapper::Kind::runuser:
      return peel_runuser(subject, wrapper, form);
    case Wrapper::Kind::keys:
      return peel_keys(subject, wrapper, form);
    case Wrapper::Kind::tar:
      return peel_tar(subject, wrapper, form);
    case Wrapper::Kind::su:
      return peel_su(subject, wrapper, form);
    case Wrapper::Kind::script:
      return peel_script(subject, wrapper, form);
    case Wrapper::Kind::xargs:
      return peel_xargs(subject, wrapper, form);
    case Wrapper::Kind::interpreter:
      // Some have commands of their own: bun exec.
      if (!peel_command(subject, wrapper.name, form.from(1)))
        peel_interpreter(subject, wrapper, form);
      return;
    case Wrapper::Kind::nested:
      return peel_nested(subject, form);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
