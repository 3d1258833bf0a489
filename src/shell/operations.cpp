// The walker: parameters in a word, and the operations on them.

#include "shell/shell_internal.hpp"
#include "shell/words_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

namespace {

// True if the value has no blanks that split it: numbers, and $PWD, which is taken for one path.
bool is_one_word(std::string_view name) { return is_any(name, "PWD", "#", "?", "$", "!", "-"); }

}  // namespace

void ShellExpander::expand_parameter(const ShellPart& part) {
  ShellParameter parameter = ShellParameters(runner_).read(part);
  if ((part.operation != 0 || part.length) && apply_operation(part, parameter) == Left::nothing)
    return;
  add_parameter(part, parameter);
}

void ShellExpander::add_parameter(const ShellPart& part, const ShellParameter& parameter) {
  switch (parameter.state) {
    case ShellParameter::State::unset:
      if (part.quoted && !parameter.all) add_text({}, true);
      return;
    case ShellParameter::State::environment:
    case ShellParameter::State::unknown: {
      const bool whole = part.quoted || (!parameter.many && is_one_word(part.text));
      add_unknown(whole && !(parameter.all && part.quoted));
      if (parameter.all && part.quoted && !single_) word_.split = true;
      if (parameter.state == ShellParameter::State::environment && part.operation != '?' &&
          !part.indirect && walk_.scopes.read(part.text).values.size() == 1)
        word_.add_unset(hash_of_name(part.text));
      return;
    }
    case ShellParameter::State::set:
      break;
  }
  const bool separate = parameter.many && !single_ && (parameter.all || !part.quoted);
  for (std::size_t i = 0; i < parameter.elements.size() && !walk_.budget.stopped(); ++i) {
    if (i > 0 && separate && started_) end_field();
    if (i > 0 && !separate) add_text(parameter.all ? " " : joint(), true);
    add_value_text(parameter.elements[i], part.quoted);
    // An element with an unquoted unknown part may be several words, or none. The word that is left
    // is certain if splitting has put the unknown part into a word before it.
    if (parameter.many && parameter.elements[i].split && !single_) word_.split = !word_.known();
  }
  if (parameter.elements.empty() && part.quoted && !parameter.all) add_text({}, true);
}

std::string ShellExpander::joint() {
  const ShellValue& ifs = walk_.scopes.value_of("IFS"sv);
  if (ifs.unset) return " ";
  return ifs.elements.empty() ? std::string() : ifs.elements[0].text.substr(0, 1);
}

// Operations on a parameter.
//
//   state of the parameter   set      set, empty    unset    environment         unknown
//   ${x-word}                value    value         word     word, assumed       unknown
//   ${x:-word}               value    word          word     word, assumed       unknown
//   ${x=word}, ${x:=word}    the same, and x is word from here on
//   ${x?word}, ${x:?word}    value    as with -     unknown  unknown, x is set   unknown
//   ${x+word}                word     word          nothing  reported twice: word, nothing
//   ${x:+word}               word     nothing       nothing  reported twice: word, nothing
//   ${x%word} ...            edited   edited        nothing  unknown             unknown
//
// Where the word is not used, it is walked all the same: the shell may find another value.

ShellExpander::Left ShellExpander::apply_operation(const ShellPart& part,
                                                   ShellParameter& parameter) {
  using State = ShellParameter::State;
  if (part.length) {
    add_length(parameter);
    return Left::nothing;
  }
  const bool blank = parameter.elements.empty() ||
                     (parameter.elements.size() == 1 && parameter.elements[0].text.empty());
  const bool empty =
      parameter.state == State::unset || (part.colon && parameter.state == State::set && blank);
  switch (part.operation) {
    case '-':
    case '=':
    case '?':
      return apply_default(part, parameter, empty);
    case '+':
      add_alternative(part, parameter, empty);
      return Left::nothing;
    default:
      edit(part, parameter);
      return Left::parameter;
  }
}

void ShellExpander::add_length(const ShellParameter& parameter) {
  bool known = parameter.is_known_string() && !parameter.many;
  // A character of more than one byte counts as one, or not, as the locale is.
  for (std::size_t i = 0; known && i < parameter.elements[0].text.size(); ++i)
    known = (parameter.elements[0].text[i] & 0x80) == 0;
  if (!known) return add_unknown(true);
  add_text(std::string(Piece(parameter.elements[0].text.size())), true);
}

ShellExpander::Left ShellExpander::apply_default(const ShellPart& part,
                                                 const ShellParameter& parameter, bool empty) {
  using State = ShellParameter::State;
  const bool environment = parameter.state == State::environment;
  if (!environment && !empty) {
    walk_operand(part);
    // What is not known may be empty.
    if (part.operation == '=' && parameter.state == State::unknown)
      ShellSteering(runner_).report_added(assigned_name(part), runner_.expand_single(part.operand));
    return Left::parameter;
  }
  if (part.operation == '?') {
    // What comes behind it runs only where the variable is set.
    if (environment) walk_operand(part);
    add_unknown(part.quoted);
    if (environment && is_name(part.text) && part.subscript == no_index)
      walk_.scopes.set_unknown(part.text);
  } else if (environment) {
    assume_operand(part);
  } else if (part.operation == '=') {
    assign_operand(part);
  } else {
    add_operand(part);
  }
  return Left::nothing;
}

void ShellExpander::add_alternative(const ShellPart& part, const ShellParameter& parameter,
                                    bool empty) {
  using State = ShellParameter::State;
  if (parameter.state == State::environment || parameter.state == State::unknown)
    add_either(part);
  else if (!empty)
    add_operand(part);
  else
    walk_operand(part);
  if (part.quoted) add_text({}, true);
}

namespace {

// True if the operand means the same with and without its quotes, and with and without extglob.
bool is_plain_pattern(const ShellSyntax& syntax, const ShellPart& part, std::string_view operand) {
  if (part.operation == ':' || part.operation == '@' || part.operand == no_index) return true;
  if (operand.find('(') != std::string_view::npos) return false;
  return !syntax.words[part.operand].quoted ||
         operand.find_first_of("*?[]\\/&") == std::string_view::npos;
}

}  // namespace

void ShellExpander::edit(const ShellPart& part, ShellParameter& parameter) {
  using State = ShellParameter::State;
  const ShellText operand = runner_.expand_single(part.operand);
  if (part.operation == '@' && operand.text == "P") run_prompt(parameter);
  if (part.operation == ':' && walk_.budget.bash()) ShellEvaluation(runner_).evaluate(operand.text);
  if (parameter.state != State::set) return;
  bool known = operand.known() && is_plain_pattern(walk_.syntax, part, operand.text);
  if (part.operation == ':' && parameter.many) {
    known = known && take_slice(part, operand.text, parameter);
  } else {
    for (ShellText& element : parameter.elements)
      known = known && element.known() && !element.home &&
              edit_shell_text(part, operand.text, walk_.budget, element.text);
  }
  if (known) return;
  parameter.state = State::unknown;
  // Whatever is left of it may be evaluated later.
  for (const ShellText& element : parameter.elements)
    ShellEvaluation(runner_).expand_lost(element.text);
}

// ${name@P}: the value is expanded as a prompt.

void ShellExpander::run_prompt(const ShellParameter& parameter) {
  bool known = parameter.state != ShellParameter::State::unknown;
  for (const ShellText& element : parameter.elements) {
    known = known && element.known();
    ShellEvaluation(runner_).expand_prompt(element.text);
  }
  if (!known) runner_.run_anything();
}

void ShellExpander::add_operand(const ShellPart& part) {
  if (part.operand == no_index) return;
  expand_parts(walk_.syntax.words[part.operand].parts, true);
  if (part.quoted) add_text({}, true);
}

void ShellExpander::add_either(const ShellPart& part) {
  const ShellValue& value = walk_.scopes.value_of(concat("+%", {part.text}));
  if (&value == &walk_.scopes.unknown) return add_unknown(part.quoted);
  if (!value.unset) return assume_operand(part);
  word_.assumed = true;
  walk_operand(part);
}

void ShellExpander::assume_operand(const ShellPart& part) {
  const bool outer = std::exchange(assumed_, true);
  if (part.operation == '=')
    add_value_text(runner_.expand_single(part.operand), part.quoted);
  else
    add_operand(part);
  if (part.quoted) add_text({}, true);
  word_.assumed = true;
  assumed_ = outer;
  if (part.operation != '=') return;
  ShellText text = runner_.expand_single(part.operand);
  text.assumed = true;
  runner_.assign(assigned_name(part), scalar_value(std::move(text)));
}

std::string ShellExpander::assigned_name(const ShellPart& part) {
  if (!part.indirect) return std::string(part.text);
  const ShellValue& value = walk_.scopes.value_of(part.text);
  if (value.elements.size() == 1 && is_name(value.elements[0].text)) return value.elements[0].text;
  walk_.scopes.use_references();
  ShellSteering(runner_).note_reference(unknown_part);
  return std::string(part.text);
}

void ShellExpander::assign_operand(const ShellPart& part) {
  const ShellText value = runner_.expand_single(part.operand);
  runner_.assign(assigned_name(part), scalar_value(value));
  add_value_text(value, part.quoted);
  if (part.quoted) add_text({}, true);
}

void ShellExpander::walk_operand(const ShellPart& part) {
  walk_.scopes.open_frame();
  runner_.expand_single(part.operand);
  walk_.scopes.take_frame();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
