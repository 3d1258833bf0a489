// Tools, as they are checked and listed.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

bool is_tool_name(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  return all_are(name, [](char c) { return is_name_char(c) || c == '-' || c == '.'; });
}

// What is wrong with a schema, or an empty text.
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

Json annotations_of(const Tool& tool) {
  Json annotations = Json::object();
  if (!tool.title.empty()) set_member(annotations, "title", tool.title);
  const auto add = [&](const char* name, const std::optional<bool>& hint) {
    if (hint) annotations.set(name, *hint);
  };
  add("readOnlyHint", tool.annotations.read_only);
  add("destructiveHint", tool.annotations.destructive);
  add("idempotentHint", tool.annotations.idempotent);
  add("openWorldHint", tool.annotations.open_world);
  return annotations;
}

}  // namespace

inline namespace inner {

std::string listing_of(const Tool& tool) {
  Json listing;
  set_member(listing, "name", tool.name);
  if (!tool.title.empty()) set_member(listing, "title", tool.title);
  if (!tool.description.empty()) set_member(listing, "description", tool.description);
  set_member(listing, "inputSchema",
             tool.input_schema.is_null() ? schema_of(tool.parameters) : tool.input_schema);
  if (!tool.output_schema.is_null()) set_member(listing, "outputSchema", tool.output_schema);
  Json annotations = annotations_of(tool);
  if (annotations.size() > 0) set_member(listing, "annotations", std::move(annotations));
  return listing.dump();
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
