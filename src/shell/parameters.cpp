// The walker: what parameters stand for.

#include "shell/shell_internal.hpp"
#include "shell/words_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The kinds of parameters, in the order in which they are looked for:
//
//   ${!name}                 the parameter that the value of name names
//   $@ $*                    all positional parameters
//   $1 ${12}                 one of them
//   $#                       how many there are
//   $? $! $$ $-              only a run knows them
//   ${name[i]} ${name[@]}    elements of an array
//   $PWD                     where cd has led, unless the script sets it
//   $name                    a value of the variable

ShellParameter ShellParameters::read(const ShellPart& part) {
  ShellParameter parameter;
  const std::string_view name = part.text;
  if (part.indirect) return indirect(part);
  if (is_any(name, "@", "*")) {
    parameter.many = true;
    parameter.all = name == "@"sv;
    read_elements(walk_.scopes.value_of(positional_key), parameter);
    return parameter;
  }
  if (is_digit(name[0]) && name != "0"sv) return positional(name);
  if (name == "#"sv) return count();
  if (name.size() == 1 && !is_name_start(name[0]) && name != "0"sv) {
    parameter.state = ShellParameter::State::unknown;
    return parameter;
  }
  if (part.subscript != no_index) return element(part);
  if (name == "PWD"sv && walk_.scopes.read(name).values[0].environment) {
    read_elements(walk_.scopes.value_of(work_dir_key), parameter);
    if (parameter.state == ShellParameter::State::set && !parameter.elements[0].is_whole_path())
      parameter.state = ShellParameter::State::unknown;
    return parameter;
  }
  const ShellValue& value = walk_.scopes.value_of(name);
  if (value.array && (value.elements.size() > 1 || !value.indexes.empty())) {
    // Without a subscript, an array is its first element.
    if (!value.indexes.empty() && value.indexes[0] != 0)
      parameter.state = ShellParameter::State::unset;
    else
      parameter.elements.push_back(ShellText(value.elements[0]));
    return parameter;
  }
  read_elements(value, parameter);
  return parameter;
}

void ShellParameters::read_elements(const ShellValue& value, ShellParameter& parameter) {
  walk_.budget.charge(value.elements.size());
  parameter.indexes = std::vector<long long>(value.indexes);
  if (value.unset || (value.array && value.elements.empty() && !parameter.many)) {
    parameter.state = ShellParameter::State::unset;
  } else if (value.environment) {
    parameter.state = ShellParameter::State::environment;
  } else if (value.elements.size() == 1 && value.elements[0].text == unknown_part &&
             (!value.array || value.elements[0].split)) {
    parameter.state = ShellParameter::State::unknown;
  } else {
    parameter.elements = std::vector<ShellText>(value.elements);
  }
}

// Behind an element that may be several words, or none, positions are not certain: after
// `set -- $(ls) b`, $1 and $# are unknown.

ShellParameter ShellParameters::positional(std::string_view name) {
  ShellParameter parameter;
  const ShellValue& value = walk_.scopes.value_of(positional_key);
  long long number = 0;
  const bool read = read_integer(name, number);
  const std::size_t index = read ? static_cast<std::size_t>(number) - 1 : value.elements.size();
  walk_.budget.charge(std::min(index, value.elements.size()));
  if (value.is_uncertain(index + 1))
    parameter.state = ShellParameter::State::unknown;
  else if (index < value.elements.size())
    parameter.elements.push_back(ShellText(value.elements[index]));
  else
    parameter.state = ShellParameter::State::unset;
  return parameter;
}

ShellParameter ShellParameters::count() {
  ShellParameter parameter;
  const ShellValue& value = walk_.scopes.value_of(positional_key);
  walk_.budget.charge(value.elements.size());
  if (value.is_uncertain(value.elements.size()))
    parameter.state = ShellParameter::State::unknown;
  else
    parameter.elements.push_back({std::to_string(value.elements.size())});
  return parameter;
}

ShellParameter ShellParameters::element(const ShellPart& part) {
  ShellParameter parameter;
  const ShellText subscript = runner_.expand_single(part.subscript);
  long long index = 0;
  const bool number = read_decimal(subscript.text, index);
  const bool all = is_any(subscript.text, "@", "*");
  if (!number && !all && walk_.budget.bash()) ShellEvaluation(runner_).evaluate(subscript.text);
  const ShellValue& value = walk_.scopes.value_of(part.text);
  if (all) {
    parameter.many = true;
    parameter.all = subscript.text == "@";
    read_elements(value, parameter);
    return parameter;
  }
  if (value.environment || !number) {
    parameter.state = ShellParameter::State::unknown;
    return parameter;
  }
  const auto size = static_cast<long long>(value.elements.size());
  if (index < 0) index += value.indexes.empty() ? size : value.indexes.back() + 1;
  const auto at = std::lower_bound(value.indexes.begin(), value.indexes.end(), index);
  if (!value.indexes.empty())
    index = at != value.indexes.end() && *at == index ? at - value.indexes.begin() : -1;
  // What is wholly unknown may be an array.
  const bool any = !value.array && size > 0 && !value.elements[0].known();
  if (any || value.is_uncertain(static_cast<std::size_t>(index < 0 ? size : index + 1)))
    parameter.state = ShellParameter::State::unknown;
  else if (index >= 0 && index < size && !value.unset)
    parameter.elements.push_back(ShellText(value.elements[static_cast<std::size_t>(index)]));
  else
    parameter.state = ShellParameter::State::unset;
  return parameter;
}

ShellParameter ShellParameters::indirect(const ShellPart& part) {
  ShellParameter parameter;
  parameter.state = ShellParameter::State::unknown;
  ShellPart direct = part;
  direct.indirect = false;
  direct.operation = 0;
  const ShellParameter named = read(direct);
  for (const ShellText& element : named.elements)
    ShellEvaluation(runner_).expand_subscript(element.text);
  const bool prefix =
      part.operand != no_index && size(walk_.syntax.words[part.operand].parts) == 0;  // ${!name*}
  if (prefix || named.state != ShellParameter::State::set || named.elements.size() != 1 ||
      !is_name(named.elements[0].text))
    return parameter;
  direct.text = walk_.syntax.keep(named.elements[0].text);
  direct.subscript = no_index;
  return read(direct);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
