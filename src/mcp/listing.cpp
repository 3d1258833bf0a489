// Tools, as they are checked and listed.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

bool is_tool_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  return all_are(name, [](char c) { return is_name_char(c) || c == '-' || c == '.'; });
}

// The problem with a schema, or an empty text.
std::string schema_problem(const Json& schema) {
  if (schema.is_null()) return {};
  if (schema["type"sv].as_string() != "object") return "must have \"type\":\"object\"";
  if (depth_of(schema, deepest_output - 8) > deepest_output - 8) return "is nested too deeply";
  return {};
}

std::string parameter_problem(const Parameter& parameter) {
  if (parameter.name.empty() || !is_utf8(parameter.name)) return "must have a name in UTF-8";
  if (!is_numeric(parameter.type) &&
      (parameter.minimum || parameter.greater_than || parameter.maximum))
    return "has bounds but is not a number";
  if (parameter.type != ParameterType::string && !parameter.choices.empty())
    return "has choices but is not a string";
  if (parameter.type != ParameterType::array && parameter.items)
    return "has an item type but is not an array";
  if (parameter.items.value_or(ParameterType::null) != ParameterType::object &&
      !parameter.fields.empty())
    return "has fields but its items are no objects";
  if (parameter.default_value.is_null()) return {};
  if (parameter.required) return "is required and has a default";
  const std::string problem = problem_of(parameter, parameter.default_value);
  return problem.empty() ? problem : concat("has a default that %", {problem});
}

}  // namespace

inline namespace inner {

std::string tool_problem(const Tool& tool) {
  if (!is_tool_name(tool.name)) return "name must be 1 to 64 of A-Z a-z 0-9 _ - .";
  if (!tool.handler) return "handler is empty";
  if (!tool.parameters.empty() && !tool.input_schema.is_null())
    return "parameters and input_schema exclude each other";
  std::string problem = schema_problem(tool.input_schema);
  if (!problem.empty()) return concat("input_schema %", {problem});
  problem = schema_problem(tool.output_schema);
  if (!problem.empty()) return concat("output_schema %", {problem});
  for (const Parameter& parameter : tool.parameters) {
    problem = parameter_problem(parameter);
    if (problem.empty() && find_parameter(tool.parameters, parameter.name) != &parameter)
      problem = "is there twice";
    if (!problem.empty()) return concat("parameter % %", {in_quotes(parameter.name), problem});
  }
  return {};
}

}  // namespace inner

namespace {

void append_bound(std::string& out, const char* name, const std::optional<double>& bound) {
  if (bound) append_all(out, ",\"%\":%", {name, Json(*bound).dump()});
}

// The beginning of a type's schema. Providers refuse objects without properties and arrays without
// items.
std::string beginning_of_schema(ParameterType type) {
  return concat("\"type\":\"%\"%",
                {type_name(type), type == ParameterType::object  ? ",\"properties\":{}"
                                  : type == ParameterType::array ? ",\"items\":{}"
                                                                 : ""});
}

std::string properties_of(const std::vector<Parameter>& parameters);

// The JSON Schema of one argument, in the words that every provider of models takes: one type, and
// no null in an enumeration, no exclusive bound. The check of a call therefore accepts null where
// the schema does not say so, and knows `greater_than`, which it does not name.
std::string schema_of(const Parameter& parameter) {
  std::string text = "{";
  // Which fields an item must have, the answer to a call says that lacks one.
  if (parameter.items)
    append_all(text, "\"type\":\"array\",\"items\":{%}",
               {parameter.fields.empty() ? beginning_of_schema(*parameter.items)
                                         : properties_of(parameter.fields)});
  else
    text += beginning_of_schema(parameter.type);
  append_optional(text, "description"sv, parameter.description);
  if (!parameter.choices.empty()) {
    Json choices = Json::array();
    for (const std::string& choice : parameter.choices) choices.push_back(choice);
    append_all(text, ",\"enum\":%", {choices.dump()});
  }
  append_bound(text, "minimum", parameter.minimum);
  append_bound(text, "maximum", parameter.maximum);
  if (!parameter.default_value.is_null())
    append_all(text, ",\"default\":%", {parameter.default_value.dump()});
  text += '}';
  return text;
}

std::string properties_of(const std::vector<Parameter>& parameters) {
  std::string properties;
  for (const Parameter& parameter : parameters) {
    if (!properties.empty()) properties += ',';
    append_string(properties, parameter.name);
    append_all(properties, ":%", {schema_of(parameter)});
  }
  return concat("\"type\":\"object\",\"properties\":{%}", {properties});
}

// The JSON Schema of all arguments. It does not say that there are no others: some providers refuse
// additionalProperties, and a call with an unknown argument gets an answer that names a known one.
std::string schema_of(const std::vector<Parameter>& parameters) {
  Json required = Json::array();
  for (const Parameter& parameter : parameters)
    if (parameter.required) required.push_back(parameter.name);
  std::string text = concat("{%", {properties_of(parameters)});
  if (required.size() > 0) append_all(text, ",\"required\":%", {required.dump()});
  text += '}';
  return text;
}

// A schema that a program has written is sent as it is, but for what every provider wants.
std::string schema_of(Json schema) {
  if (!schema.find("properties"sv)) schema.set("properties"sv, Json::object());
  return schema.dump();
}

// The hints for a user interface, as members of an object after a comma; empty: none. The title
// stands here alone, where clients of every revision look for it: models pay for each byte.
std::string annotations_of(const Tool& tool) {
  std::string text;
  append_optional(text, "title"sv, tool.title);
  const std::pair<const char*, std::optional<bool>> hints[] = {
      {"readOnlyHint", tool.read_only},
      {"destructiveHint", tool.destructive},
      {"idempotentHint", tool.idempotent},
      {"openWorldHint", tool.open_world},
  };
  for (const auto& [name, hint] : hints)
    if (hint) append_all(text, ",\"%\":%", {name, *hint ? "true" : "false"});
  return text;
}

}  // namespace

inline namespace inner {

std::string listing_of(const Tool& tool, bool tasks, bool schema) {
  const bool raw_schema = !tool.input_schema.is_null();
  std::string text = "{";
  append_member(text, "name"sv, tool.name);
  append_optional(text, "description"sv, tool.description);
  append_all(text, ",\"inputSchema\":%",
             {raw_schema ? schema_of(tool.input_schema) : schema_of(tool.parameters)});
  if (schema && !tool.output_schema.is_null())
    append_all(text, ",\"outputSchema\":%", {tool.output_schema.dump()});
  const std::string annotations = annotations_of(tool);
  if (!annotations.empty())
    append_all(text, ",\"annotations\":{%}", {std::string_view(annotations).substr(1)});
  if (tasks && tool.tasks) text += ",\"execution\":{\"taskSupport\":\"optional\"}";
  text += '}';
  return text;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
