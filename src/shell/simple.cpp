// The walker: simple commands, their assignments and redirections.

#include "shell/builtins_internal.hpp"
#include "shell/shell_internal.hpp"
#include "shell/words_internal.hpp"

#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool is_special_builtin(std::string_view name) {
  static constexpr auto names =
      NameSet{".",        ":",      "break", "continue", "eval",   "exec",  "exit", "export",
              "readonly", "return", "set",   "shift",    "source", "times", "trap", "unset"};
  return names.has(name);
}

void ShellSimple::run() {
  std::list<ShellChanges> branches;
  ShellPrinted& output = *runner_.place.output;
  const std::size_t written = output.text.size();
  std::string printed;
  bool differs = false;
  ShellInputs inputs(*runner_.place.input);
  walk_.scopes.for_each_choice([&] {
    const std::size_t from = output.text.size();
    walk_.scopes.open_frame();
    run_once();
    inputs.next();
    branches.push_back(walk_.scopes.take_frame());
    if (branches.size() == 1) {
      printed = output.text.substr(from);
    } else {
      differs = differs || output.text.compare(from, std::string::npos, printed) != 0;
      output.text.resize(from);
    }
  });
  inputs.merge(false);
  if (branches.size() == 1) return walk_.scopes.set(std::move(branches.front()));
  walk_.scopes.merge(branches, false);
  if (!differs) return;
  output.text.resize(written);
  output.write_unknown();
}

// A command in the order of a shell: words, assignments, redirections; then it is reported; then it
// does what it does. Assignments in front of a command are for it alone, so they have a frame:
//
//   x=1 read y     frame: x=1, y=?     y is set again behind the frame, x is not
//   x=1            no frame            x stays

void ShellSimple::run_once() {
  ShellScopes& scopes = walk_.scopes;
  ShellBudget& budget = walk_.budget;
  shell::Command command;
  expand_words(command.words);
  for (shell::Word& word : command.words) runner_.find_text(word);
  std::uint32_t next = node_.assignments.first;
  const bool temporary = !command.words.empty() && next != no_index;
  if (temporary) scopes.open_frame();
  while (next != no_index && !budget.stopped()) {
    const ShellAssignment assignment = walk_.syntax.assignments[next];
    next = assignment.next;
    run_assignment(assignment, command);
  }
  command.input = *runner_.place.input;
  expand_redirections(command.redirections, command.input);
  runner_.report(node_, command);
  if (!budget.stopped()) run_effects(command);
  if (!temporary) return;
  const ShellChanges changes = scopes.take_frame();
  // What the command itself has set stays: IFS= read x.
  for (const auto& [name, variable] : changes)
    if (!is_temporary(name)) scopes.set(name, ShellVariable(variable));
  // In front of a special builtin they stay, by POSIX; in bash only when it is called sh.
  if (!is_special_builtin(command.words[0].text)) return;
  budget.outcome.dialect_dependent = true;
  if (!budget.bash()) scopes.set(changes);
}

// bash does not split what is assigned by an operand: `export x=$y`. Some POSIX shells do.

void ShellSimple::expand_words(std::vector<shell::Word>& out) {
  ShellBudget& budget = walk_.budget;
  ShellExpander expander(runner_, out, false);
  bool declares = false, named = false;
  out.reserve(out.size() + size(node_.words));
  for (std::size_t i = 0; i < size(node_.words) && !budget.stopped(); ++i) {
    const std::uint32_t index = walk_.item(node_.words, i);
    const bool single = declares && is_assignment(index);
    const std::size_t from = out.size();
    if (single)
      ShellExpander(runner_, out, true).expand_word(index);
    else
      expander.expand_word(index);
    if (single && out.back().text.find_first_of(" \t\n") != std::string::npos)
      budget.outcome.dialect_dependent = true;
    if (named || !budget.bash() || out.size() == from ||
        is_any(out[from].text, "command", "builtin"))
      continue;
    named = true;
    declares = is_any(out[from].text, "declare", "typeset", "local", "export", "readonly");
  }
}

bool ShellSimple::is_assignment(std::uint32_t word) const {
  const ShellRange parts = walk_.syntax.words[word].parts;
  if (size(parts) == 0) return false;
  const ShellPart& first = walk_.syntax.parts[parts.begin];
  if (first.quoted || first.kind != ShellPart::Kind::literal) return false;
  const std::size_t end = first.text.find_first_of("=+[");
  return end != std::string_view::npos && is_name(first.text.substr(0, end));
}

bool ShellSimple::is_temporary(std::string_view name) const {
  const std::vector<ShellAssignment>& table = walk_.syntax.assignments;
  for (std::uint32_t i = node_.assignments.first; i != no_index; i = table[i].next)
    if (table[i].name == name && !table[i].declared) return true;
  return false;
}

//   x=a          the value of x
//   x+=a         behind the value that x has: appended()
//   x[1]=a       an element: with_element()
//   x=(a b)      all elements: with_elements()
//   x=([2]=a)    an element of these: put_subscripted()
//
// What is reported is the text of the value; what is stored is the value with all that is known.

void ShellSimple::run_assignment(const ShellAssignment& assignment, shell::Command& command) {
  ShellValue value;
  shell::Assignment reported;
  reported.name = std::string(assignment.name);
  shell::Word& shown = reported.value;
  const bool element = assignment.subscript != no_index;
  const bool behind_environment =
      assignment.append && walk_.scopes.value_of(assignment.name).environment;
  if (assignment.array) {
    value = with_elements(assignment, empty_array());
    // The elements of an associative array have no order.
    for (const shell::Word& word : command.words)
      if (assignment.declared && starts_with(word.text, "-"sv) &&
          word.text.find('A') != std::string::npos)
        value = unknown_array();
  } else {
    shell::Word word = runner_.expand_single(assignment.value);
    shown.unset = word.unset;
    value.elements.push_back(std::move(word));
    if (assignment.append && !element) {
      const ShellText added = value.elements[0];
      value = appended(assignment, std::move(value));
      if (has_nul(value.elements[0].text))
        ShellSteering(runner_).report_added(assignment.name, added);
    }
  }
  if (behind_environment) shown.add_unset(hash_of_name(assignment.name));
  for (const ShellText& each : value.elements) {
    if (&each != &value.elements[0]) shown.text += ' ';
    shown.text += each.text;
    shown.assumed = shown.assumed || each.assumed;
    shown.glob = shown.glob || each.glob;
  }
  if (!value.elements.empty()) shown.home = value.elements[0].home;
  shown.begin = assignment.begin;
  shown.end = assignment.end;
  if (!assignment.declared) command.assignments.push_back(std::move(reported));
  if (is_command_table(assignment.name) && element && !assignment.append && !value.elements.empty())
    return runner_.run_table_entry(
        assignment.name, runner_.expand_single(assignment.subscript).text, value.elements[0].text);
  if (element) value = with_element(assignment, std::move(value));
  // The elements of an array are texts of their own, and what is added to one is not all of it.
  if (assignment.array || (element && assignment.append)) {
    ShellValue added = value;
    if (assignment.array && behind_environment && !value.elements.empty())
      added.elements.erase(added.elements.begin());
    ShellSteering(runner_).report(assignment.name, added);
  }
  runner_.store(assignment.name, std::move(value));
}

ShellValue ShellSimple::with_element(const ShellAssignment& assignment, ShellValue value) {
  ShellValue whole = walk_.scopes.value_of(assignment.name);
  const ShellText subscript = runner_.expand_single(assignment.subscript);
  ShellEvaluation(runner_).evaluate(subscript.text);
  walk_.budget.charge(whole.elements.size());
  if (whole.unset) whole = ShellValue();
  whole.array = whole.array || whole.environment;
  // bash refuses NAME[subscript]=().
  if (assignment.append || value.elements.empty() || whole.is_uncertain(whole.elements.size()))
    return unknown_array();
  whole.array = true;
  whole.environment = false;
  walk_.budget.charge(whole.put(subscript.text, std::move(value.elements[0])));
  return whole;
}

ShellValue ShellSimple::appended(const ShellAssignment& assignment, ShellValue value) {
  ShellValue whole = walk_.scopes.value_of(assignment.name);
  if (whole.unset) return value;
  if (whole.environment) whole = unknown_scalar();
  if (whole.elements.empty()) whole.elements.push_back(ShellText());
  if (!whole.indexes.empty() && whole.indexes[0] != 0) walk_.budget.charge(whole.put("0"sv, {}));
  ShellText& target = whole.elements[0];
  const ShellText& added = value.elements[0];
  walk_.budget.charge(target.text.size());
  target.text += added.home ? unknown_part : std::string_view(added.text);
  target.assumed = target.assumed || added.assumed;
  target.glob = target.glob || added.glob;
  return whole;
}

ShellValue ShellSimple::with_elements(const ShellAssignment& assignment, ShellValue array) {
  if (assignment.append) {
    array = ShellValue(walk_.scopes.value_of(assignment.name));
    if (array.unset) array = ShellValue();
    if (array.environment) array = unknown_array();
    array.array = true;
    walk_.budget.charge(array.elements.size());
  }
  for (std::size_t i = 0; i < size(assignment.elements) && !walk_.budget.stopped(); ++i) {
    const std::uint32_t index = walk_.item(assignment.elements, i);
    if (put_subscripted(index, array)) continue;
    std::vector<shell::Word> words;
    ShellExpander(runner_, words, false).expand_word(index);
    for (const shell::Word& word : words) {
      const long long next = array.indexes.empty() ? static_cast<long long>(array.elements.size())
                                                   : array.indexes.back() + 1;
      if (!array.indexes.empty()) array.indexes.push_back(+next);
      array.elements.push_back(word);
    }
  }
  return array;
}

bool ShellSimple::put_subscripted(std::uint32_t index, ShellValue& array) {
  const ShellRange parts = walk_.syntax.words[index].parts;
  if (size(parts) == 0) return false;
  const ShellPart& first = walk_.syntax.parts[parts.begin];
  if (first.quoted || !starts_with(first.text, "["sv)) return false;
  ShellText text = runner_.expand_single(index);
  const std::size_t close = text.text.find("]=");
  const bool adds = close == std::string::npos && text.text.find("]+=") != std::string::npos;
  if (close == std::string::npos && !adds) return false;
  const std::string subscript = adds ? std::string() : text.text.substr(1, close - 1);
  text.text.erase(0, close + 2);
  ShellEvaluation(runner_).evaluate(subscript);
  walk_.budget.charge(array.put(subscript, std::move(text)));
  return true;
}

// Redirections.
//
// Only standard input and output are followed. Behind `< file` the input is unknown, behind a
// here-document it is that text; behind `> file` the command prints nothing for its place.

namespace {

bool is_descriptor(std::string_view text) {
  if (text == "-"sv || text == unknown_part) return true;
  if (ends_with(text, "-"sv)) text.remove_suffix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// What standard input is behind a redirection of it.
void read_from(const shell::Redirection& redirection, shell::Input& input) {
  using Kind = shell::Redirection::Kind;
  const shell::Word& target = redirection.target;
  if (redirection.kind == Kind::write || redirection.kind == Kind::append) return;
  if (redirection.kind == Kind::duplicate && target.text == "0") return;
  input = unknown_input();
  if (target.printed != nullptr && target.printed->is_certain()) input = *target.printed;
  if (redirection.kind == Kind::here_document || redirection.kind == Kind::here_string) {
    input.kind = shell::Input::Kind::known;
    input.text = concat({target.text, redirection.kind == Kind::here_string ? "\n" : ""});
    input.glob = target.glob;
    input.home = target.home;
  } else if (is_any(target.text, "/dev/null", "-")) {
    input.kind = shell::Input::Kind::known;
  }
}

}  // namespace

void ShellSimple::expand_redirections(std::vector<shell::Redirection>& out, shell::Input& input) {
  using Kind = shell::Redirection::Kind;
  for (std::uint32_t next = node_.redirections.first;
       next != no_index && !walk_.budget.stopped();) {
    const ShellRedirection parsed = walk_.syntax.redirections[next];
    next = parsed.next;
    shell::Redirection redirection;
    redirection.kind = parsed.kind;
    redirection.fd = parsed.fd;
    std::vector<shell::Word> words;
    if (parsed.target != no_index) ShellExpander(runner_, words, true).expand_word(parsed.target);
    if (!words.empty()) redirection.target = std::move(words[0]);
    if (redirection.target.glob) widen_extended_globs(redirection.target.text);
    if (parsed.kind == Kind::duplicate && !is_descriptor(redirection.target.text)) {
      // >&name is &>name in bash.
      redirection.kind = parsed.output ? Kind::write : Kind::read;
      walk_.budget.outcome.dialect_dependent = true;
    }
    if (redirection.kind == Kind::read) runner_.find_text(redirection.target);
    if (redirection.fd == 0) read_from(redirection, input);
    out.push_back(std::move(redirection));
  }
}

bool ShellSimple::redirects_output() const {
  const std::vector<ShellRedirection>& table = walk_.syntax.redirections;
  for (std::uint32_t i = node_.redirections.first; i != no_index; i = table[i].next)
    if (table[i].output && table[i].fd == 1) return true;
  return false;
}

// What a command does, once it is reported.

namespace {

bool writes_elsewhere(const shell::Command& command) {
  for (const shell::Redirection& redirection : command.redirections)
    if (redirection.fd == 1 &&
        (redirection.writes() || redirection.kind == shell::Redirection::Kind::duplicate))
      return true;
  return false;
}

// True if what it prints is made of files that the script has not written.
bool filters_files(const shell::Command& command) {
  static constexpr auto filters =
      NameSet{"cat", "cut", "envsubst", "grep", "head", "sed", "sort", "tail", "tr", "uniq"};
  if (command.pipeline || command.words.size() < 2 || !filters.has(command.words[0].text) ||
      command.input.kind == shell::Input::Kind::known)
    return false;
  for (const shell::Word& word : command.words)
    if (word.printed != nullptr || word.process) return false;
  return true;
}

}  // namespace

void ShellSimple::run_effects(const shell::Command& command) {
  ShellRunner inner(runner_);
  // What it redirects holds for all that it runs in this shell, and that of exec from here on.
  shell::Input input = command.input;
  if (redirects_input(command.redirections) && !ShellBuiltin::stays_redirected(command))
    inner.place.input = &input;
  ShellPrinted redirected = recorder_of(walk_.budget, command.redirections);
  const bool elsewhere = writes_elsewhere(command);
  if (elsewhere) inner.place.output = &redirected;
  ShellPrinted& output = *inner.place.output;
  const std::vector<shell::Word>& words = command.words;
  if (words.empty()) {
    if (!command.redirections.empty()) output.write_unknown();  // $(<file)
  } else if (!words[0].known()) {
    // It may be anything, cd too.
    output.write_unknown();
    walk_.scopes.assign(work_dir_key, unknown_scalar());
  } else if (!walk_.names.run_alias(inner, node_, command) &&
             !walk_.names.run_function(inner, command)) {
    ShellBuiltin(inner, command).run();
  }
  runner_.write_redirected(command.redirections, redirected, filters_files(command));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
