// Parameters of tools: arguments are checked against them.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"

#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

struct ParameterTypeWords {
  ParameterType type;
  const char* name;    // in a schema
  const char* phrase;  // in a message
};
constexpr ParameterTypeWords parameter_type_words[] = {
    {ParameterType::null, "null", "null"},
    {ParameterType::boolean, "boolean", "a boolean"},
    {ParameterType::integer, "integer", "an integer"},
    {ParameterType::number, "number", "a number"},
    {ParameterType::string, "string", "a string"},
    {ParameterType::array, "array", "an array"},
    {ParameterType::object, "object", "an object"},
};

constexpr bool types_in_order() {
  std::size_t place = 0;
  for (const ParameterTypeWords& row : parameter_type_words)
    if (static_cast<std::size_t>(row.type) != place++) return false;
  return place == static_cast<std::size_t>(ParameterType::object) + 1;
}
static_assert(types_in_order(), "a row for each type, in the order of Json::Kind");

const ParameterTypeWords& words_of_type(ParameterType type) {
  return parameter_type_words[static_cast<std::size_t>(type)];
}

const char* kind_name(const Json& value) {
  return words_of_type(value.is_number() ? ParameterType::number : value.kind()).phrase;
}

bool is_of(const Json& value, ParameterType type) {
  return value.kind() == type || (type == ParameterType::number && value.is_number());
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

// The bound that a number breaks, or an empty text.
std::string range_problem(const Parameter& parameter, double number) {
  if (parameter.minimum && number < *parameter.minimum)
    return concat("must be at least %", {Json(*parameter.minimum).dump()});
  if (parameter.greater_than && number <= *parameter.greater_than)
    return concat("must be greater than %", {Json(*parameter.greater_than).dump()});
  if (parameter.maximum && number > *parameter.maximum)
    return concat("must be at most %", {Json(*parameter.maximum).dump()});
  return {};
}

// The number or boolean that a text spells exactly as JSON does. Null if the text does not, or if
// the type is another one.
Json value_of_text(const std::string& text, ParameterType type) {
  constexpr std::size_t longest = 64;
  const bool wanted = is_numeric(type) || type == ParameterType::boolean;
  // Json::parse() would accept white space around the value.
  if (!wanted || text.size() > longest || text.find_first_of(" \t\r\n") != std::string::npos)
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

// The problem with a name that no parameter has. It names a parameter that may have been meant: one
// whose name contains this one or is part of it, or else one whose description contains it.
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
      return concat("is unknown; % is known%%", {parameter.name, text.empty() ? "" : ": ", text});
    }
  }
  return "is unknown";
}

// Collects the problems of a call. The first few are enough to correct it; hostile input could have
// a million.
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

void check_members(const std::vector<Parameter>& parameters, const Json& object, bool takes_others,
                   Json& converted, Problems& problems);

// The items of an array with what each must have. An object alone is an array of one, and a text
// may be JSON of either. Null: there is a problem, or it is none.
Json checked_items(const Parameter& parameter, const Json& value, Problems& problems) {
  if (value.is_string()) {
    const auto parsed = Json::parse(value.as_string());
    return parsed && !parsed->is_string() ? checked_items(parameter, *parsed, problems) : Json();
  }
  if (!value.is_array() && !value.is_object()) return {};
  Json items = Json::array();
  const std::size_t before = problems.count();
  const auto take = [&](const Json& item) {
    if (!item.is_object()) return problems.add(parameter.name, "must hold only objects"sv);
    Json converted;
    check_members(parameter.fields, item, false, converted, problems);
    Json whole = item;
    for (const Json::Member& member : converted.members()) whole.set(member.name, member.value);
    items.push_back(std::move(whole));
  };
  if (value.is_object()) take(value);
  if (value.is_array())
    for (const Json& item : value.items()) take(item);
  return problems.count() == before ? items : Json();
}

void check_members(const std::vector<Parameter>& parameters, const Json& object, bool takes_others,
                   Json& converted, Problems& problems) {
  for (const Json::Member& member : object.members()) {
    const Parameter* const parameter = find_parameter(parameters, member.name);
    if (parameter) {
      const std::size_t before = problems.count();
      Json value;
      if (!parameter->fields.empty())
        value = checked_items(*parameter, member.value, problems);
      else if (member.value.is_string())
        value = value_of_text(member.value.as_string(), parameter->type);
      const std::string problem = problem_of(*parameter, value.is_null() ? member.value : value);
      if (!problem.empty() && problems.count() == before) problems.add(member.name, problem);
      const bool other_name = member.name != parameter->name;
      if (other_name && object.find(parameter->name))
        problems.add(member.name, concat("is another name of %", {parameter->name}));
      if (other_name && value.is_null()) value = member.value;
      if (!value.is_null()) converted.set(parameter->name, std::move(value));
    } else if (!takes_others) {
      problems.add(member.name, problem_of_name(parameters, member.name));
    } else if (member.value.has_lone_surrogate()) {
      problems.add(member.name, "holds an unpaired surrogate, which cannot be encoded as UTF-8"sv);
    }
  }
  for (const Parameter& parameter : parameters)
    if (parameter.required && !object.find(parameter.name) && !converted.find(parameter.name))
      problems.add(parameter.name, "is missing"sv);
}

}  // namespace

inline namespace inner {

bool is_numeric(ParameterType type) {
  return type == ParameterType::integer || type == ParameterType::number;
}

const char* type_name(ParameterType type) { return words_of_type(type).name; }

std::string problem_of(const Parameter& parameter, const Json& value) {
  if (value.is_null() && parameter.nullable) return {};
  if (!is_of(value, parameter.type)) {
    const bool fraction = parameter.type == ParameterType::integer && value.is_number();
    constexpr std::size_t longest = 40;
    const bool short_text = value.is_string() && value.as_string().size() <= longest;
    return concat("must be %, not %%",
                  {words_of_type(parameter.type).phrase, fraction ? "a fraction" : kind_name(value),
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

// Each argument is converted if it has another name or is the text of a number, and then checked.
// All problems are reported together, with the signature of the tool, so that a model corrects the
// call at once.
std::string check_arguments(const Tool& tool, const Json& arguments, Json& converted) {
  Problems problems;
  const bool raw_schema = !tool.input_schema.is_null();
  check_members(tool.parameters, arguments, raw_schema, converted, problems);
  if (problems.count() == 0) return {};
  std::string text = concat("Invalid arguments for %: %.", {tool.name, problems.text()});
  if (!raw_schema) append_all(text, " Arguments: %.", {signature_of(tool.parameters)});
  return text;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
