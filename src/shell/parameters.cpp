// The walker: parameters and the operations on them that choose a value.

#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::expand_parameter(const ShellPart& part, Fields& fields) {
  Parameter parameter = read_parameter(part);
  if (part.operation != 0 || part.length) {
    if (apply_operation(part, parameter, fields)) return;
  }
  add_parameter(part, parameter, fields);
}

void ShellWalker::add_parameter(const ShellPart& part, const Parameter& parameter, Fields& fields) {
  switch (parameter.state) {
    case Parameter::State::unset:
      if (part.quoted && !parameter.all) add_text(fields, {}, true);
      return;
    case Parameter::State::environment:
    case Parameter::State::unknown: {
      // The working directory is one path, however it is called; numbers have no blanks.
      const bool whole = part.quoted || (!parameter.many && is_whole(part.text));
      add_unknown(fields, whole && !(parameter.all && part.quoted));
      if (parameter.all && part.quoted && !fields.single) fields.word.split = true;
      if (parameter.state == Parameter::State::environment && part.operation != '?' &&
          !part.indirect && variable_of(part.text).values.size() == 1)
        fields.word.unset = hash_of_name(part.text);
      return;
    }
    case Parameter::State::set:
      break;
  }
  const bool separate = parameter.many && !fields.single && (parameter.all || !part.quoted);
  for (std::size_t i = 0; i < parameter.elements.size() && !stopped(); ++i) {
    if (i > 0 && separate && fields.started) end_field(fields);
    if (i > 0 && !separate) add_text(fields, parameter.all ? " " : joint(), true);
    add_value_text(fields, parameter.elements[i], part.quoted);
    // What was not known when it became an element may have been several, or none. Behind a blank
    // of it stands a word that is known.
    if (parameter.many && parameter.elements[i].split && !fields.single)
      fields.word.split = !fields.word.known();
  }
  if (parameter.elements.empty() && part.quoted && !parameter.all) add_text(fields, {}, true);
}

std::string ShellWalker::joint() {
  const ShellValue& ifs = value_of("IFS"sv);
  if (ifs.unset) return " ";
  return ifs.elements.empty() ? std::string() : ifs.elements[0].text.substr(0, 1);
}

ShellWalker::Parameter ShellWalker::read_parameter(const ShellPart& part) {
  Parameter parameter;
  const std::string_view name = part.text;
  if (part.indirect) return indirect_parameter(part);
  if (has_entry("@ *"sv, name)) {
    parameter.many = true;
    parameter.all = name == "@"sv;
    read_elements(value_of(positional_key), parameter);
    return parameter;
  }
  if (is_digit(name[0]) && name != "0"sv) return positional_parameter(name);
  if (name == "#"sv) return count_parameter();
  if (name.size() == 1 && !is_name_start(name[0]) && name != "0"sv) {
    parameter.state = Parameter::State::unknown;
    return parameter;
  }
  if (part.subscript != no_index) return element_parameter(part);
  if (name == "PWD"sv && variable_of(name).values[0].environment) {
    read_elements(value_of(work_dir_key), parameter);
    if (parameter.state == Parameter::State::set && !is_whole_path(parameter.elements[0]))
      parameter.state = Parameter::State::unknown;
    return parameter;
  }
  const ShellValue& value = value_of(name);
  if (value.array && (value.elements.size() > 1 || !value.indexes.empty())) {
    // Without a subscript, an array is its first element.
    if (!value.indexes.empty() && value.indexes[0] != 0)
      parameter.state = Parameter::State::unset;
    else
      parameter.elements.push_back(ShellText(value.elements[0]));
    return parameter;
  }
  read_elements(value, parameter);
  return parameter;
}

void ShellWalker::read_elements(const ShellValue& value, Parameter& parameter) {
  charge(value.elements.size());
  parameter.indexes = std::vector<long long>(value.indexes);
  if (value.unset || (value.array && value.elements.empty() && !parameter.many)) {
    parameter.state = Parameter::State::unset;
  } else if (value.environment) {
    parameter.state = Parameter::State::environment;
  } else if (value.elements.size() == 1 && value.elements[0].text == std::string_view("\0", 1) &&
             (!value.array || value.elements[0].split)) {
    parameter.state = Parameter::State::unknown;
  } else {
    parameter.elements = std::vector<ShellText>(value.elements);
  }
}

ShellWalker::Parameter ShellWalker::positional_parameter(std::string_view name) {
  Parameter parameter;
  const ShellValue& value = value_of(positional_key);
  long long number = 0;
  const bool read = read_integer(name, number);
  const std::size_t index = read ? static_cast<std::size_t>(number) - 1 : value.elements.size();
  charge(std::min(index, value.elements.size()));
  // Behind words that may be several, positions are not certain.
  if (is_uncertain(value, index + 1))
    parameter.state = Parameter::State::unknown;
  else if (index < value.elements.size())
    parameter.elements.push_back(ShellText(value.elements[index]));
  else
    parameter.state = Parameter::State::unset;
  return parameter;
}

ShellWalker::Parameter ShellWalker::count_parameter() {
  Parameter parameter;
  const ShellValue& value = value_of(positional_key);
  charge(value.elements.size());
  if (is_uncertain(value, value.elements.size()))
    parameter.state = Parameter::State::unknown;
  else
    parameter.elements.push_back({std::to_string(value.elements.size())});
  return parameter;
}

ShellWalker::Parameter ShellWalker::element_parameter(const ShellPart& part) {
  Parameter parameter;
  const ShellText subscript = expand_single(part.subscript);
  const ShellValue& value = value_of(part.text);
  if (has_entry("@ *"sv, subscript.text)) {
    parameter.many = true;
    parameter.all = subscript.text == "@";
    read_elements(value, parameter);
    return parameter;
  }
  long long index = 0;
  if (value.environment || !read_decimal(subscript.text, index)) {
    parameter.state = Parameter::State::unknown;
    return parameter;
  }
  const auto size = static_cast<long long>(value.elements.size());
  if (index < 0) index += value.indexes.empty() ? size : value.indexes.back() + 1;
  const auto at = std::lower_bound(value.indexes.begin(), value.indexes.end(), index);
  if (!value.indexes.empty())
    index = at != value.indexes.end() && *at == index ? at - value.indexes.begin() : -1;
  // What is wholly unknown may be an array.
  const bool any = !value.array && size > 0 && !value.elements[0].known();
  if (any || is_uncertain(value, static_cast<std::size_t>(index < 0 ? size : index + 1)))
    parameter.state = Parameter::State::unknown;
  else if (index >= 0 && index < size && !value.unset)
    parameter.elements.push_back(ShellText(value.elements[static_cast<std::size_t>(index)]));
  else
    parameter.state = Parameter::State::unset;
  return parameter;
}

ShellWalker::Parameter ShellWalker::indirect_parameter(const ShellPart& part) {
  Parameter parameter;
  parameter.state = Parameter::State::unknown;
  ShellPart direct = part;
  direct.indirect = false;
  direct.operation = 0;
  const Parameter named = read_parameter(direct);
  if (part.operation == '*' || part.operation == '@' || named.state != Parameter::State::set ||
      named.elements.size() != 1 || !is_name(named.elements[0].text))
    return parameter;
  syntax_.texts.push_back(std::string(named.elements[0].text));
  direct.text = syntax_.texts.back();
  direct.subscript = no_index;
  return read_parameter(direct);
}

bool ShellWalker::apply_operation(const ShellPart& part, Parameter& parameter, Fields& fields) {
  using State = Parameter::State;
  if (part.length) {
    const bool known = parameter.state == State::set && !parameter.many &&
                       parameter.elements.size() == 1 && parameter.elements[0].known() &&
                       is_ascii(parameter.elements[0].text) && !parameter.elements[0].home;
    if (known)
      add_text(fields, std::to_string(parameter.elements[0].text.size()), true);
    else
      add_unknown(fields, true);
    return true;
  }
  const bool empty = parameter.state == State::unset ||
                     (part.colon && parameter.state == State::set &&
                      (parameter.elements.empty() ||
                       (parameter.elements.size() == 1 && parameter.elements[0].text.empty())));
  switch (part.operation) {
    case '-':
    case '=':
    case '?':
      if (parameter.state == State::environment) {
        if (part.operation == '?') {
          // What comes behind it runs only where the variable is set.
          walk_operand(part);
          add_unknown(fields, part.quoted);
          if (is_name(part.text) && part.subscript == no_index) set_unknown(part.text);
          return true;
        }
        assume_operand(part, fields);
        return true;
      }
      if (parameter.state == State::unknown || !empty) {
        walk_operand(part);
        return false;
      }
      if (part.operation == '=') {
        if (part.indirect) use_references();
        // What it gives is the variable's value, split like one.
        const ShellText value = expand_single(part.operand);
        assign(part.text, scalar_value(value));
        add_value_text(fields, value, part.quoted);
        if (part.quoted) add_text(fields, {}, true);
        return true;
      }
      if (part.operation == '?') add_unknown(fields, part.quoted);
      if (part.operation != '?') add_operand(part, fields);
      return true;
    case '+':
      if (parameter.state == State::environment || parameter.state == State::unknown)
        add_either(part, fields);
      else if (!empty)
        add_operand(part, fields);
      else
        walk_operand(part);
      if (part.quoted) add_text(fields, {}, true);
      return true;
    default:
      break;
  }
  const ShellText operand = expand_single(part.operand);
  if (part.operation == '@' && operand.text == "P") run_prompt(parameter);
  if (parameter.state == State::unset) return false;
  bool known = parameter.state == State::set && operand.known() && is_plain_pattern(part, operand);
  if (part.operation == ':' && parameter.many) {
    known = known && take_slice(part, operand.text, parameter);
  } else {
    for (ShellText& element : parameter.elements)
      known = known && element.known() && !element.home && edit(part, operand.text, element.text);
  }
  if (!known && parameter.state == State::set) parameter.state = State::unknown;
  return false;
}

bool ShellWalker::is_plain_pattern(const ShellPart& part, const ShellText& operand) const {
  if (part.operation == ':' || part.operation == '@' || part.operand == no_index) return true;
  if (operand.text.find('(') != std::string::npos) return false;
  return !syntax_.words[part.operand].quoted ||
         operand.text.find_first_of("*?[]\\/&") == std::string::npos;
}

void ShellWalker::add_operand(const ShellPart& part, Fields& fields) {
  if (part.operand == no_index) return;
  const ShellRange parts = syntax_.words[part.operand].parts;
  for (std::uint32_t i = parts.begin; i < parts.end && !stopped(); ++i)
    expand_part(ShellPart(syntax_.parts[i]), fields, true);
  if (part.quoted) add_text(fields, {}, true);
}

void ShellWalker::add_either(const ShellPart& part, Fields& fields) {
  const ShellValue& value = value_of(concat({"+", part.text}));
  if (&value == &unknown_value_) return add_unknown(fields, part.quoted);
  if (!value.unset) return assume_operand(part, fields);
  fields.word.assumed = true;
  walk_operand(part);
}

void ShellWalker::assume_operand(const ShellPart& part, Fields& fields) {
  const bool outer = std::exchange(fields.assumed, true);
  if (part.operation == '=')
    add_value_text(fields, expand_single(part.operand), part.quoted);
  else
    add_operand(part, fields);
  if (part.quoted) add_text(fields, {}, true);
  fields.word.assumed = true;
  fields.assumed = outer;
  if (part.operation != '=') return;
  if (part.indirect) use_references();
  if (steers_programs(part.text)) {
    ShellNode here;
    here.begin = fields.begin;
    here.end = fields.end;
    tell_assignment(here, part.text, variable_of(part.text));
  }
  ShellText text = expand_single(part.operand);
  text.assumed = true;
  assign(part.text, scalar_value(std::move(text)));
}

void ShellWalker::walk_operand(const ShellPart& part) {
  open_frame();
  expand_single(part.operand);
  take_frame();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
