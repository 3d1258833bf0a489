// The walker: simple commands, their assignments and redirections.

#include "shell/parser_internal.hpp"
#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::run_simple(const ShellNode& node) {
  // Each choice starts from the same state, and what they change is merged.
  std::list<Changes> branches;
  const std::size_t written = output_size();
  std::string printed;
  bool differs = false;
  for_each_choice([&] {
    const std::size_t from = output_size();
    open_frame();
    run_simple_once(node);
    branches.push_back(take_frame());
    if (output_ == nullptr) return;
    if (branches.size() == 1) {
      printed = output_->text.substr(from);
    } else {
      differs = differs || output_->text.compare(from, std::string::npos, printed) != 0;
      output_->text.resize(from);
    }
  });
  merge(branches, false);
  if (!differs) return;
  output_->text.resize(written);
  write_unknown();
}

void ShellWalker::run_simple_once(const ShellNode& node) {
  shell::Command command;
  Fields fields{command.words};
  for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
    expand_word(item(node.words, i), fields);
  const bool temporary = !command.words.empty() && size(node.assignments) > 0;
  if (temporary) open_frame();
  for (std::uint32_t i = node.assignments.begin; i < node.assignments.end && !stopped(); ++i)
    run_assignment(ShellAssignment(syntax_.assignments[i]), command);
  command.input = input_;
  expand_redirections(node, command.redirections, command.input);
  const shell::Command told = tell(node, std::move(command));
  if (!stopped()) run_effects(node, told);
  if (!temporary) return;
  const Changes changes = take_frame();
  // What the command itself has set stays: IFS= read x.
  for (const auto& [name, variable] : changes)
    if (!is_temporary(node, name)) set_variable(name, variable);
  // In front of a special builtin they stay, by POSIX; in bash only when it is called sh.
  if (!is_special_builtin(told.words[0].text)) return;
  outcome_.dialect_dependent = true;
  if (bash()) return;
  for (const auto& [name, variable] : changes) set_variable(name, variable);
}

bool ShellWalker::is_special_builtin(std::string_view name) {
  return has_entry(
      ". : break continue eval exec exit export readonly return set shift source times trap "
      "unset"sv,
      name);
}

bool ShellWalker::is_temporary(const ShellNode& node, std::string_view name) const {
  for (std::uint32_t i = node.assignments.begin; i < node.assignments.end; ++i)
    if (syntax_.assignments[i].name == name && !syntax_.assignments[i].declared) return true;
  return false;
}

void ShellWalker::run_assignment(const ShellAssignment& assignment, shell::Command& command) {
  ShellValue value;
  if (assignment.array) {
    value = with_elements(assignment, empty_array());
    // The elements of an associative array have no order.
    for (const shell::Word& word : command.words)
      if (assignment.declared && starts_with(word.text, "-"sv) &&
          word.text.find('A') != std::string::npos)
        value = unknown_array();
  } else {
    value.elements.push_back(expand_single(assignment.value));
    if (assignment.append && assignment.subscript == no_index)
      value = appended(assignment, std::move(value));
  }
  shell::Assignment told;
  told.name = std::string(assignment.name);
  for (const ShellText& element : value.elements) {
    if (&element != &value.elements[0]) told.value.text += ' ';
    told.value.text += element.text;
    told.value.assumed = told.value.assumed || element.assumed;
    told.value.glob = told.value.glob || element.glob;
  }
  if (!value.elements.empty()) told.value.home = value.elements[0].home;
  told.value.begin = assignment.begin;
  told.value.end = assignment.end;
  if (!assignment.declared) command.assignments.push_back(std::move(told));
  if (assignment.subscript != no_index) value = appended(assignment, std::move(value));
  assign(assignment.name, std::move(value));
}

ShellValue ShellWalker::appended(const ShellAssignment& assignment, ShellValue value) {
  ShellValue whole = value_of(assignment.name);
  if (assignment.subscript != no_index) {
    const ShellText subscript = expand_single(assignment.subscript);
    charge(whole.elements.size());
    if (whole.unset) whole = ShellValue();
    whole.array = whole.array || whole.environment;
    if (assignment.append || is_uncertain(whole, whole.elements.size())) return unknown_array();
    whole.array = true;
    whole.environment = false;
    put_element(whole, subscript.text, std::move(value.elements[0]));
    return whole;
  }
  if (whole.unset) return value;
  if (whole.environment) return unknown_scalar();
  if (whole.elements.empty()) whole.elements.push_back(ShellText());
  if (!whole.indexes.empty() && whole.indexes[0] != 0) put_element(whole, "0"sv, {});
  ShellText& target = whole.elements[0];
  charge(target.text.size());
  target.text += value.elements[0].home ? std::string(1, '\0') : value.elements[0].text;
  target.assumed = target.assumed || value.elements[0].assumed;
  target.glob = target.glob || value.elements[0].glob;
  return whole;
}

ShellValue ShellWalker::with_elements(const ShellAssignment& assignment, ShellValue array) {
  if (assignment.append) {
    array = ShellValue(value_of(assignment.name));
    if (array.unset) array = ShellValue();
    if (array.environment) array = unknown_array();
    array.array = true;
    charge(array.elements.size());
  }
  for (std::size_t i = 0; i < size(assignment.elements) && !stopped(); ++i) {
    const std::uint32_t index = item(assignment.elements, i);
    const ShellRange parts = syntax_.words[index].parts;
    if (size(parts) > 0 && !syntax_.parts[parts.begin].quoted &&
        starts_with(syntax_.parts[parts.begin].text, "["sv)) {
      ShellText text = expand_single(index);
      const std::size_t close = text.text.find("]=");
      const bool adds = close == std::string::npos && text.text.find("]+=") != std::string::npos;
      if (close != std::string::npos || adds) {
        const std::string subscript = adds ? std::string() : text.text.substr(1, close - 1);
        text.text.erase(0, close + 2);
        put_element(array, subscript, std::move(text));
        continue;
      }
    }
    std::vector<shell::Word> words;
    Fields fields{words};
    expand_word(index, fields);
    for (shell::Word& word : words) {
      const long long next = array.indexes.empty() ? static_cast<long long>(array.elements.size())
                                                   : array.indexes.back() + 1;
      if (!array.indexes.empty()) array.indexes.push_back(+next);
      array.elements.push_back(text_of(word));
    }
  }
  return array;
}

void ShellWalker::put_element(ShellValue& array, std::string_view index, ShellText text) {
  long long number = 0;
  if (!read_decimal(index, number) || number < 0 || is_uncertain(array, array.elements.size())) {
    array = unknown_array();
    return;
  }
  const auto count = static_cast<long long>(array.elements.size());
  if (array.indexes.empty() && number != count)
    for (long long i = 0; i < count; ++i) array.indexes.push_back(+i);
  charge(array.indexes.size());
  if (array.indexes.empty() && number == count) {
    array.elements.push_back(std::move(text));
    return;
  }
  const auto at = std::lower_bound(array.indexes.begin(), array.indexes.end(), number);
  std::size_t i = array.indexes.size();
  if (at != array.indexes.end() && *at == number) {
    array.elements[static_cast<std::size_t>(at - array.indexes.begin())] = std::move(text);
    return;
  }
  array.indexes.push_back(+number);
  array.elements.push_back(std::move(text));
  for (; i > 0 && array.indexes[i] < array.indexes[i - 1]; --i) {
    std::swap(array.indexes[i], array.indexes[i - 1]);
    std::swap(array.elements[i], array.elements[i - 1]);
  }
}

bool ShellWalker::is_uncertain(const ShellValue& value, std::size_t count) {
  for (std::size_t i = 0; i < count && i < value.elements.size(); ++i)
    if (value.elements[i].split || (!value.array && !value.elements[i].known())) return true;
  return false;
}

void ShellWalker::expand_redirections(const ShellNode& node, std::vector<shell::Redirection>& out,
                                      shell::Input& input) {
  using Kind = shell::Redirection::Kind;
  for (std::uint32_t i = node.redirections.begin; i < node.redirections.end && !stopped(); ++i) {
    const ShellRedirection parsed = syntax_.redirections[i];
    shell::Redirection redirection;
    redirection.kind = parsed.kind;
    redirection.fd = parsed.fd;
    std::vector<shell::Word> words;
    Fields fields{words, true};
    if (parsed.target != no_index) expand_word(parsed.target, fields);
    if (!words.empty()) redirection.target = std::move(words[0]);
    if (parsed.kind == Kind::duplicate && !is_descriptor(redirection.target.text)) {
      // >&name is &>name in bash.
      redirection.kind = parsed.output ? Kind::write : Kind::read;
      outcome_.dialect_dependent = true;
    }
    if (redirection.fd == 0) read_from(redirection, input);
    out.push_back(std::move(redirection));
  }
}

bool ShellWalker::is_descriptor(std::string_view text) {
  if (text == "-"sv || text == std::string_view("\0", 1)) return true;
  if (ends_with(text, "-"sv)) text.remove_suffix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

void ShellWalker::read_from(const shell::Redirection& redirection, shell::Input& input) {
  using Kind = shell::Redirection::Kind;
  const std::string& target = redirection.target.text;
  if (redirection.kind == Kind::write || redirection.kind == Kind::append) return;
  if (redirection.kind == Kind::duplicate && target == "0") return;
  input = unknown_input();
  if (redirection.target.printed.kind == shell::Input::Kind::known)
    input = redirection.target.printed;
  if (redirection.kind == Kind::here_document || redirection.kind == Kind::here_string) {
    input.kind = shell::Input::Kind::known;
    input.text = target;
    input.glob = redirection.target.glob;
    input.home = redirection.target.home;
    if (redirection.kind == Kind::here_string) input.text += '\n';
  } else if (has_entry("/dev/null -"sv, target)) {
    input.kind = shell::Input::Kind::known;
  }
}

bool ShellWalker::redirects_output(const ShellNode& node) const {
  for (std::uint32_t i = node.redirections.begin; i < node.redirections.end; ++i) {
    const ShellRedirection& redirection = syntax_.redirections[i];
    if (redirection.output && redirection.fd == 1) return true;
  }
  return false;
}

shell::Command ShellWalker::tell(const ShellNode& node, shell::Command command) {
  if (stopped()) return command;
  command.begin = node.begin;
  command.end = node.end;
  command.depth = depth_;
  command.pipeline = pipeline_;
  command.background = background_;
  command.defined = defined_;
  command.tolerant = tolerant_;
  command.holes = holes_;
  command.widened = widened_;
  const ShellValue& directory = value_of(work_dir_key);
  if (!directory.elements.empty()) {
    charge(directory.elements[0].text.size());
    command.work_dir.text = directory.elements[0].text;
    command.work_dir.home = directory.elements[0].home;
    command.work_dir.assumed = directory.elements[0].assumed;
  }
  command.own = is_own(command);
  command.fork_bomb = is_fork_bomb(command);
  if (++commands_ > options_.limits.max_commands) {
    over_limit(options_.limits.max_commands, "commands"sv, command.begin);
    return command;
  }
  if (keep_ != nullptr) *keep_ = new_shared<shell::Command>(command);
  std::vector<shell::Payload> payloads;
  visit_({command, producer_, payloads});
  for (shell::Payload& payload : payloads)
    if (!stopped()) follow(std::move(payload), command);
  return command;
}

void ShellWalker::follow(shell::Payload payload, const shell::Command& command) {
  const bool same_shell = payload.same_shell;
  if (!same_shell) {
    ++shells_;
    open_frame();
    ShellValue arguments = empty_array();
    for (std::size_t i = 1; i < payload.arguments.size(); ++i)
      arguments.elements.push_back(text_of(payload.arguments[i]));
    if (!payload.arguments.empty()) assign("0"sv, scalar_value(text_of(payload.arguments[0])));
    assign(positional_key, std::move(arguments));
  }
  std::swap(payload.input, input_);
  Output* const output = same_shell ? output_ : std::exchange(output_, nullptr);
  const bool outer = std::exchange(tolerant_, tolerant_ || payload.tolerant);
  const bool whole = std::exchange(holes_, holes_ || payload.holes);
  run_text(std::move(payload.text), command, tolerant_ || holes_);
  tolerant_ = outer;
  holes_ = whole;
  output_ = output;
  std::swap(payload.input, input_);
  if (same_shell) return;
  take_frame();
  --shells_;
}

void ShellWalker::run_text(std::string text, const shell::Command& command, bool tolerant) {
  if (!enter(command.begin)) return;
  const bool is_known = !has_nul(text);
  // Strings that are run count together, and more than once where they are run so.
  syntax_.most_simple = 4 * options_.limits.max_written;
  syntax_.texts.push_back(std::move(text));
  const auto begin = static_cast<std::uint32_t>(command.begin);
  const auto end = static_cast<std::uint32_t>(command.end);
  ShellParser parser(syntax_, options_, syntax_.texts.back(), {begin, end, false}, depth_);
  const std::uint32_t root = parser.parse();
  outcome_.dialect_dependent = outcome_.dialect_dependent || parser.dialect_dependent();
  if (root != no_index) run(root);
  // What unknown parts make of a string is not for the parser to say.
  tolerant = tolerant || !is_known;
  if (parser.failed() && (!tolerant || parser.error().code == ErrorCode::limit) && !stopped()) {
    outcome_.complete = false;
    outcome_.error = parser.error();
    outcome_.error.message =
        concat({"in the string that this command runs: ", parser.error().message});
  }
  --depth_;
}

void ShellWalker::run_expansion_text(const std::string& text) {
  shell::Command command;
  command.begin = here_begin_;
  command.end = here_end_;
  run_text(concat({": \"", text, "\""}), command, true);
}

void ShellWalker::run_effects(const ShellNode& node, const shell::Command& command) {
  Output* const output = output_;
  if (writes_elsewhere(command)) output_ = nullptr;
  const std::vector<shell::Word>& words = command.words;
  std::size_t at = 0;
  while (at + 1 < words.size() && has_entry("command builtin"sv, words[at].text)) {
    ++at;
    while (at + 1 < words.size() && has_entry("-p --"sv, words[at].text)) ++at;
  }
  if (words.empty()) {
    if (!command.redirections.empty()) write_unknown();  // $(<file)
  } else if (!words[0].known()) {
    // It may be anything, cd too.
    write_unknown();
    set_work_dir(unknown_text());
  } else if (!run_alias(node, command) && !run_function(command)) {
    run_builtin(command, at);
  }
  output_ = output;
}

bool ShellWalker::looks_up(const shell::Command& command) {
  const std::vector<shell::Word>& words = command.words;
  if (words.size() < 2 || words.size() > 3) return false;
  const shell::Word& name = words.back();
  const std::string& option = words[1].text;
  const bool is = words.size() == 2 ? words[0].text == "which"
                                    : (words[0].text == "command" && option == "-v"sv) ||
                                          (words[0].text == "type" && has_entry("-P -p"sv, option));
  return is && name.known() && !name.home && !name.glob && !name.text.empty() &&
         name.text[0] != '-' && name.text.find_first_of("/ \t\n") == std::string::npos;
}

bool ShellWalker::writes_elsewhere(const shell::Command& command) {
  for (const shell::Redirection& redirection : command.redirections)
    if (redirection.fd == 1 &&
        (redirection.writes() || redirection.kind == shell::Redirection::Kind::duplicate))
      return true;
  return false;
}

bool ShellWalker::run_function(const shell::Command& command) {
  if (functions_.empty()) return false;
  const auto at = functions_.find(command.words[0].text);
  if (at == functions_.end()) return false;
  if (defined_)
    write_unknown();
  else
    call(command, at->second);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
