// The judge: visits commands, and finds for each form of a command the parts that judge it.

#include "policy/judge_internal.hpp"
#include "policy/subject_internal.hpp"
#include "policy/typed_internal.hpp"

#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The row of programs that have many names: ld-linux-x86-64.so.2 loads a program, qemu-x86_64 runs
// one for another machine.
std::string_view family_of(std::string_view name) {
  if (starts_with(name, "ld-"sv) && name.find(".so") != std::string_view::npos) return "ld.so"sv;
  if (!starts_with(name, "qemu-"sv)) return name;
  const std::string_view kind = name.substr(5, name.find_first_of("-.", 5) - 5);
  return is_any(kind, "ga", "img", "io", "nbd", "pr", "storage", "system") ? name : "qemu-user"sv;
}

// A program may be refused, use files and set variables. Besides, it is one of a wrapper, a shell,
// an interpreter with a version, and a builtin: the first that fits.
void judge_program(Subject& subject, const Form& form, std::string_view name) {
  // rimraf@5: a package with its version.
  if (const std::size_t at = name.find('@', 1); at != std::string_view::npos)
    name = name.substr(0, at);
  check_refused(subject, form, name);
  note_editing(subject.judged, form, name);
  FileProgram program;
  if (find_file_program(name, program)) {
    judge_files(subject, program, form);
    note_fetched(subject, program, form);
  }
  if (is_any(name, "export", "declare", "local", "typeset", "readonly")) {
    for (std::size_t i = 1; i < form.size; ++i) {
      std::string_view value = form.words[i].text;
      const std::string_view variable = take_part(value, '=');
      judge_variable(subject, form, form.words[i], variable, value);
    }
  }
  Wrapper wrapper;
  if (find_wrapper(family_of(name), wrapper)) return peel(subject, wrapper, form);
  if (shells.has(name)) return judge_shell(subject, form);
  if (starts_with(name, "git-"sv)) return peel_git_program(subject, form, name);
  // python3.11 is python.
  const std::string_view language = name.substr(0, name.find_last_not_of("0123456789.") + 1);
  if (language.size() < name.size() && find_wrapper(language, wrapper) &&
      wrapper.kind == Wrapper::Kind::interpreter)
    return peel(subject, wrapper, form);
  judge_builtin(subject, form, name);
}

// Calls `take` with the names of all programs that the tables know.
void each_program(FunctionRef<void(std::string_view)> take) {
  for (const NameTable& table : {refused_table(), file_table(), wrapper_table()})
    for (std::size_t row = 0; row < table.rows; ++row) take(table.name(row));
  for (const std::string_view name : shells.list()) take(name);
}

// True if a program that a blocked pattern names may be the one that a name with * stands for.
bool may_be_blocked(const Case& judged, const Form& form, std::string_view name) {
  const std::string text = join(form);
  const std::string_view rest = std::string_view(text).substr(form.words[0].text.size());
  for (const Regex& regex : judged.terms.blocked) {
    // The words of the pattern are what it may be about.
    const std::string_view pattern = regex.pattern();
    for (std::size_t i = 0; i < pattern.size();) {
      std::size_t end = i;
      while (end < pattern.size() && (is_name_char(pattern[end]) || pattern[end] == '-')) ++end;
      const std::string_view word = pattern.substr(i, end - i);
      if (!word.empty() && glob_matches(name, word) && regex.full_match(concat({word, rest})))
        return true;
      i = end + 1;
    }
  }
  return false;
}

// A pattern may stand for any of the programs that the tables know: judges it as each of them.
void judge_pattern(Subject& subject, const Form& form, std::string_view pattern) {
  constexpr std::size_t longest = 256;
  constexpr std::size_t cost = 64;
  Case& judged = subject.judged;
  if (!judged.charge_words(cost)) return;
  const bool own = subject.is_own_path(part_of(form.words[0]));
  std::string_view matched;
  bool several = false;
  if (pattern.size() <= longest)
    each_program([&](std::string_view name) {
      if (!glob_matches(pattern, name)) return;
      several = several || (!matched.empty() && matched != name);
      matched = name;
    });
  const std::size_t rank = judged.rank;
  const Verdict before = several && own ? judged.verdict : Verdict();
  if (!matched.empty())
    each_program([&](std::string_view name) {
      if (glob_matches(pattern, name) && judged.charge_words(form.size))
        judge_program(subject, form, name);
    });
  // Which of several it is stays open: the refusal names none of them.
  if (own && several && judged.rank < rank && judged.rank_of(Rule::unknown_command) < rank) {
    judged.rank = rank;
    judged.verdict = before;
    return subject.refuse_unknown(form);
  }
  const bool hides = own ? may_be_blocked(judged, form, pattern) : !judged.terms.blocked.empty();
  if (hides || (matched.empty() && form.words[0].text.find('/') == std::string::npos))
    return subject.refuse_unknown(form);
  subject.refuse_unknown(form, true);
}

// The list of users has the name of a program, and is none.
bool is_user_list(Subject& subject, const shell::Word& word) {
  return base_name(word.text) == "passwd"sv && word.text.size() > "passwd"sv.size() &&
         text_of(subject.path_of(part_of(word))) == "/etc/passwd";
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
    // A variable that is not quoted may bring a blocked command with it.
    const bool hides = word.split && !subject.judged.terms.blocked.empty() &&
                       subject.judged.written(word).find_first_of("(`") == std::string_view::npos;
    const bool refused = hides || word.process || !known_name;
    if (refused || word.split) subject.refuse_unknown(form, !refused);
    // If $PY is empty, the next word is the command: also in what only bash takes for arithmetic.
    const bool posix = subject.judged.dialect == shell::Dialect::posix;
    if (word.split && form.size > 1 && (!refused || posix)) subject.add_form(form.from(1));
    if (refused) return;
  }
  if (word.glob && is_pattern(name)) {
    // build/* is some file of the workspace, and names no program.
    if (sweeps(name) && subject.is_own_path(part_of(word)))
      return subject.refuse_unknown(form, true);
    // Elsewhere, such a pattern names all programs and none.
    if (sweeps(name) && !subject.judged.terms.blocked.empty()) return subject.refuse_unknown(form);
    return judge_pattern(subject, form, name);
  }
  run_written_file(subject, form);
  if (word.text.find('/') != std::string::npos) judge_start_files(subject, form);
  if (!name.empty() && !is_user_list(subject, word)) judge_program(subject, form, name);
}

void note_run(Case& judged, const shell::Command& command, std::string_view word) {
  constexpr std::size_t most = 256;
  std::string path = join_shell_path(command.work_dir.text, word);
  if (!is_unknown(path) && judged.collected->runs.size() < most)
    judged.collected->runs.push_back(std::move(path));
}

}  // namespace

inline namespace inner {

void Judge::visit(const shell::Visit& visit) {
  if (case_.too_complex) return;
  const shell::Command& command = visit.command;
  Subject subject(case_, variables_, links_, copies_, output_, visit);
  variables_.note(command);
  output_.note(case_, command);
  if (case_.dialect == shell::Dialect::bash && !command.words.empty() &&
      is_any(command.words[0].text, "[[", "(("))
    case_.tests.push_back(
        {static_cast<std::uint32_t>(command.begin), static_cast<std::uint32_t>(command.end)});
  if (case_.collected && !command.compound)
    case_.collected->commands.push_back(simple_command(command));

  const Form whole = subject.whole();
  case_.in_file = whole.file;
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
    case_.in_file = form.file;
    // A call of the script's own function: the commands in its body are visited by themselves.
    if (!command.own || form.level) judge_form(subject, form);
    check_listed(subject, form);
  }
  case_.in_file = whole.file;
  if (!command.tolerant && !command.holes && !command.compound && !case_.terms.allows_all())
    check_allowed(subject);
  case_.in_file = {};
  if (case_.collected)
    for (const std::string& word : visit.run) note_run(case_, command, word);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
