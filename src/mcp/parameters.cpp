// Parameters of tools: their schemas, and arguments checked against them.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"

#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

const char* type_name(ParameterType type) {
  switch (type) {
    case ParameterType::string:
      return "string";
    case ParameterType::integer:
      return "integer";
    case ParameterType::number:
      return "number";
    case ParameterType::boolean:
      return "boolean";
    case ParameterType::array:
      return "array";
    case ParameterType::object:
      break;
  }
  return "object";
}

const char* kind_name(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "a boolean";
    case Json::Kind::integer:
    case Json::Kind::number:
      return "a number";
    case Json::Kind::string:
      return "a string";
    case Json::Kind::array:
      return "an array";
    case Json::Kind::object:
      break;
  }
  return "an object";
}

bool is_of(const Json& value, ParameterType type) {
  switch (type) {
    case ParameterType::string:
      return value.is_string();
    case ParameterType::integer:
      return value.is_integer();
    case ParameterType::number:
      return value.is_number();
    case ParameterType::boolean:
      return value.is_bool();
    case ParameterType::array:
      return value.is_array();
    case ParameterType::object:
      break;
  }
  return value.is_object();
}

std::string with_article(const char* noun) {
  const bool vowel = noun[0] == 'a' || noun[0] == 'i' || noun[0] == 'o';
  return concat({vowel ? "an " : "a ", noun});
}

// A bound as a person writes it: 3600, not 3600.0.
std::string number_text(double number) {
  if (std::floor(number) == number && std::fabs(number) < 1e15)
    return std::to_string(static_cast<long long>(number));
  return Json(number).dump();
}

// "command (string, required), timeout (number)"
std::string signature_of(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    if (!text.empty()) text += ", ";
    append_all(
        text, "% (%%",
        {parameter.name, type_name(parameter.type), parameter.required ? ", required)" : ")"});
  }
  return text.empty() ? "none" : text;
}

std::string list_of_choices(const std::vector<std::string>& choices) {
  std::string text;
  for (const std::string& choice : choices) {
    if (!text.empty()) text += ", ";
    text += in_quotes(choice);
  }
  return text;
}

// What is wrong with a number's size, or an empty text.
std::string range_problem(const Parameter& parameter, double number) {
  if (parameter.minimum && number < *parameter.minimum)
    return concat("must be at least %", {number_text(*parameter.minimum)});
  if (parameter.greater_than && number <= *parameter.greater_than)
    return concat("must be greater than %", {number_text(*parameter.greater_than)});
  if (parameter.maximum && number > *parameter.maximum)
    return concat("must be at most %", {number_text(*parameter.maximum)});
  return {};
}

// A text that is exactly what is wanted: a number as JSON has it, or a boolean. Null: it is not.
Json value_of_text(const std::string& text, ParameterType type) {
  constexpr std::size_t longest = 64;
  const bool wanted = is_numeric(type) || type == ParameterType::boolean;
  // The parser of a whole JSON text would let white space pass.
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  if (!wanted || text.empty() || text.size() > longest || is_space(text.front()) ||
      is_space(text.back()))
    return {};
  const auto value = Json::parse(text);
  return value && is_of(*value, type) ? *value : Json();
}

std::string name_without_case(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return plain;
}

// What else may have been meant by a name that no parameter has: one that holds it, or lies in it;
// or else one whose description has it.
std::string problem_of_name(const std::vector<Parameter>& parameters, std::string_view name) {
  constexpr std::size_t shortest = 3;
  constexpr std::size_t longest = 64;
  const std::string plain = name_without_case(name.substr(0, longest));
  for (const bool described : {false, true}) {
    for (const Parameter& parameter : parameters) {
      std::string_view text = parameter.description;
      const std::string other = name_without_case(described ? text : parameter.name);
      const bool alike =
          other.find(plain) != std::string::npos || plain.find(other) != std::string::npos;
      if (!alike || std::min(plain.size(), other.size()) < shortest) continue;
      if (ends_with(text, "."sv)) text.remove_suffix(1);
      return concat("is unknown; % is known: %", {parameter.name, text});
    }
  }
  return "is unknown";
}

// The first few problems are enough to mend a call; hostile input could have a million.
class Problems {
 public:
  void add(std::string_view name, std::string_view problem) {
    if (++count_ > 8) return;
    if (!text_.empty()) text_ += "; ";
    append_all(text_, "argument % %", {in_quotes(name), problem});
  }
  std::size_t count() const { return count_; }
  const std::string& text() const { return text_; }

 private:
  std::size_t count_ = 0;
  std::string text_ = {};
};

}  // namespace

inline namespace inner {

bool is_numeric(ParameterType type) {
  return type == ParameterType::integer || type == ParameterType::number;
}

Json number_value(double number) {
  if (std::floor(number) == number && std::fabs(number) < 1e15)
    return Json(static_cast<long long>(number));
  return Json(number);
}

Json schema_of(const Parameter& parameter) {
  Json schema;
  if (parameter.nullable) {
    set_member(schema, "type", Json::array({type_name(parameter.type), "null"}));
  } else {
    set_member(schema, "type", type_name(parameter.type));
  }
  if (!parameter.description.empty()) set_member(schema, "description", parameter.description);
  if (parameter.items) {
    Json items;
    set_member(items, "type", type_name(*parameter.items));
    set_member(schema, "items", std::move(items));
  }
  if (!parameter.choices.empty()) {
    Json choices = Json::array();
    for (const std::string& choice : parameter.choices) choices.push_back(choice);
    if (parameter.nullable) choices.push_back(nullptr);
    set_member(schema, "enum", std::move(choices));
  }
  if (parameter.minimum) set_member(schema, "minimum", number_value(*parameter.minimum));
  if (parameter.greater_than)
    set_member(schema, "exclusiveMinimum", number_value(*parameter.greater_than));
  if (parameter.maximum) set_member(schema, "maximum", number_value(*parameter.maximum));
  if (!parameter.default_value.is_null()) set_member(schema, "default", parameter.default_value);
  return schema;
}

Json schema_of(const std::vector<Parameter>& parameters) {
  Json schema;
  set_member(schema, "type", "object");
  Json properties = Json::object();
  Json required = Json::array();
  for (const Parameter& parameter : parameters) {
    properties.set(parameter.name, schema_of(parameter));
    if (parameter.required) required.push_back(parameter.name);
  }
  if (!parameters.empty()) set_member(schema, "properties", std::move(properties));
  if (required.size() > 0) set_member(schema, "required", std::move(required));
  set_member(schema, "additionalProperties", false);
  return schema;
}

std::string problem_of(const Parameter& parameter, const Json& value) {
  if (value.is_null() && parameter.nullable) return {};
  if (!is_of(value, parameter.type)) {
    const bool fraction = parameter.type == ParameterType::integer && value.is_number();
    constexpr std::size_t longest = 40;
    const bool short_text = value.is_string() && value.as_string().size() <= longest;
    return concat(
        "must be %, not %%",
        {with_article(type_name(parameter.type)), fraction ? "a fraction" : kind_name(value),
         short_text ? concat(" (%)", {in_quotes(value.as_string())}) : ""});
  }
  if (value.has_lone_surrogate())
    return "holds an unpaired surrogate, which cannot be encoded as UTF-8";
  if (is_numeric(parameter.type)) return range_problem(parameter, value.as_number());
  if (!parameter.choices.empty()) {
    const auto& choices = parameter.choices;
    if (!is_one_of(value.as_string(), choices))
      return concat("must be one of %", {list_of_choices(choices)});
  }
  if (parameter.items) {
    for (const Json& item : value.items())
      if (!is_of(item, *parameter.items))
        return concat("must hold only items of type %, not %",
                      {type_name(*parameter.items), kind_name(item)});
  }
  return {};
}

const Parameter* find_parameter(const std::vector<Parameter>& parameters, std::string_view name) {
  for (const Parameter& parameter : parameters)
    if (parameter.name == name || (!name.empty() && parameter.other_name == name))
      return &parameter;
  return nullptr;
}

std::string check_arguments(const Tool& tool, const Json& arguments, Json& converted) {
  Problems problems;
  const bool raw_schema = !tool.input_schema.is_null();
  for (const Json::Member& member : arguments.members()) {
    const Parameter* const parameter = find_parameter(tool.parameters, member.name);
    if (parameter) {
      Json value;
      if (member.value.is_string())
        value = value_of_text(member.value.as_string(), parameter->type);
      const std::string problem = problem_of(*parameter, value.is_null() ? member.value : value);
      if (!problem.empty()) problems.add(member.name, problem);
      const bool other_name = member.name != parameter->name;
      if (other_name && arguments.find(parameter->name))
        problems.add(member.name, concat("is another name of %", {parameter->name}));
      if (other_name && value.is_null()) value = member.value;
      if (!value.is_null()) converted.set(parameter->name, std::move(value));
    } else if (!raw_schema) {
      problems.add(member.name, problem_of_name(tool.parameters, member.name));
    } else if (member.value.has_lone_surrogate()) {
      problems.add(member.name, "holds an unpaired surrogate, which cannot be encoded as UTF-8"sv);
    }
  }
  for (const Parameter& parameter : tool.parameters)
    if (parameter.required && !arguments.find(parameter.name) && !converted.find(parameter.name))
      problems.add(parameter.name, "is missing"sv);
  if (problems.count() == 0) return {};
  std::string text = concat("Invalid arguments for %: %.", {tool.name, problems.text()});
  if (!raw_schema) append_all(text, " Arguments: %.", {signature_of(tool.parameters)});
  return text;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
