// The judge: visits commands, and finds for each form of a command the parts that judge it.

#include "policy/judge_internal.hpp"
#include "policy/subject_internal.hpp"

#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A program may be refused, use files and set variables. Besides, it is one of a wrapper, a shell,
// an interpreter with a version, and a builtin: the first that fits.
void judge_program(Subject& subject, const Form& form, std::string_view name) {
  check_refused(subject, form, name);
  FileProgram program;
  if (find_file_program(name, program)) {
    judge_files(subject, program, form);
    note_fetched(subject, program, form);
  }
  if (is_any(name, "export", "declare", "typeset", "readonly")) {
    for (std::size_t i = 1; i < form.size; ++i) {
      std::string_view value = form.words[i].text;
      const std::string_view variable = take_part(value, '=');
      judge_variable(subject, form, form.words[i], variable, value);
    }
  }
  Wrapper wrapper;
  const bool loader = starts_with(name, "ld-"sv) && name.find(".so") != std::string_view::npos;
  if (find_wrapper(loader ? "ld.so"sv : name, wrapper)) return peel(subject, wrapper, form);
  if (shells.has(name)) return judge_shell(subject, form);
  // python3.11 is python.
  const std::string_view language = name.substr(0, name.find_last_not_of("0123456789.") + 1);
  if (language.size() < name.size() && find_wrapper(language, wrapper) &&
      wrapper.kind == Wrapper::Kind::interpreter)
    return peel(subject, wrapper, form);
  judge_builtin(subject, form, name);
}

// A pattern may stand for any of the programs that the tables know: judges it as each of them.
void judge_pattern(Subject& subject, const Form& form, std::string_view pattern) {
  constexpr std::size_t longest = 256;
  constexpr std::size_t cost = 64;
  Case& judged = subject.judged;
  if (!judged.charge_words(cost)) return;
  bool matched = false;
  const auto try_name = [&](std::string_view name) {
    if (pattern.size() > longest || !glob_matches(pattern, name)) return;
    matched = true;
    if (judged.charge_words(form.size)) judge_program(subject, form, name);
  };
  for (const NameTable& table : {refused_table(), file_table(), wrapper_table()})
    for (std::size_t row = 0; row < table.rows; ++row) try_name(table.name(row));
  for (const std::string_view name : shells.list()) try_name(name);
  const bool blocking = !judged.terms.blocked.empty();
  if (blocking || (!matched && form.words[0].text.find('/') == std::string::npos))
    return subject.refuse_unknown(form);
  subject.refuse_unknown(form, true);
}

// Finds the name of the program. A word that is known in part still shows it when the part behind
// the last slash is known: "$VENV/bin/python" is some python.
void judge_form(Subject& subject, const Form& form) {
  if (!subject.judged.charge_words(form.size)) return;
  const shell::Word& word = form.words[0];
  const std::string_view name = base_name(word.text);
  if (form.roots && is_found(form)) return judge_found(subject, form);
  if (!word.known() || word.process) {
    const bool known_name = name.size() < word.text.size() && !name.empty() && !is_unknown(name);
    const bool blocking = !subject.judged.terms.blocked.empty();
    if ((word.split && blocking) || word.process || !known_name)
      return subject.refuse_unknown(form);
    // If $PY is empty, the next word is the command.
    if (word.split) {
      subject.refuse_unknown(form, true);
      subject.add_form(form.from(1));
    }
  }
  if (word.glob && is_pattern(name)) {
    // build/* is some file of the workspace, and names no program.
    if (sweeps(name) && subject.is_own_path(part_of(word)))
      return subject.refuse_unknown(form, true);
    return judge_pattern(subject, form, name);
  }
  run_written_file(subject, form);
  if (!name.empty()) judge_program(subject, form, name);
}

}  // namespace

inline namespace inner {

void Judge::visit(const shell::Visit& visit) {
  if (case_.too_complex) return;
  const shell::Command& command = visit.command;
  Subject subject(case_, variables_, visit);
  variables_.note(command);
  if (case_.dialect == shell::Dialect::bash && !command.words.empty() &&
      is_any(command.words[0].text, "[[", "(("))
    case_.tests.push_back(
        {static_cast<std::uint32_t>(command.begin), static_cast<std::uint32_t>(command.end)});
  if (case_.collected && !command.compound)
    case_.collected->commands.push_back(simple_command(command));

  const Form whole = subject.whole();
  if (command.fork_bomb && case_.wants(Rule::fork_bomb))
    case_.refuse(Rule::fork_bomb, command.begin, command.end, shown(join(whole)));
  for (const shell::Redirection& redirection : command.redirections)
    use_redirection(subject, redirection);
  for (const shell::Assignment& assignment : command.assignments)
    judge_variable(subject, whole, assignment.value, assignment.name, assignment.value.text);
  subject.add_form(whole);
  // Judging a form may add others to the end of the list.
  for (const Form& form : subject.forms) {
    if (case_.too_complex) break;
    // A call of the script's own function: the commands in its body are visited by themselves.
    if (!command.own || form.level) judge_form(subject, form);
    if (!form.code) check_listed(subject, form);
  }
  if (!command.tolerant && !command.holes && !command.compound && !case_.terms.allows_all())
    check_allowed(subject);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
