// Values checked against a JSON Schema, member by member and item by item. The check ends at the
// first place that does not match. It recurses: schemas and results have a bounded depth.

#include "mcp/mcp_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

bool is_of_type(const Json& value, std::string_view type) {
  if (type == "null"sv) return value.is_null();
  if (type == "boolean"sv) return value.is_bool();
  if (type == "integer"sv) return is_whole(value);
  if (type == "number"sv) return value.is_number();
  if (type == "string"sv) return value.is_string();
  if (type == "array"sv) return value.is_array();
  return type != "object"sv || value.is_object();
}

// True if the value has the type, or one of the types of an array.
bool matches_type(const Json& types, const Json& value) {
  if (types.is_string()) return is_of_type(value, types.as_string());
  for (const Json& type : types.items())
    if (is_of_type(value, type.as_string())) return true;
  return false;
}

// True if the number is within the bounds of the schema. A bound that is not a number counts as
// none.
bool within_bounds(const Json& schema, double number) {
  return number >= schema["minimum"sv].as_number(number) &&
         number <= schema["maximum"sv].as_number(number) &&
         (!schema["exclusiveMinimum"sv].is_number() ||
          number > schema["exclusiveMinimum"sv].as_number()) &&
         (!schema["exclusiveMaximum"sv].is_number() ||
          number < schema["exclusiveMaximum"sv].as_number());
}

}  // namespace

inline namespace inner {

std::string mismatch(const Json& schema, const Json& value, const std::string& place) {
  const Json* const types = schema.find("type"sv);
  if (types && !matches_type(*types, value))
    return concat("% is not of the type %", {place, types->dump()});
  const Json& choices = schema["enum"sv];
  if (choices.is_array() && find_in(choices.items(), value) == choices.items().end())
    return concat("% is none of %", {place, choices.dump()});
  if (const Json* only = schema.find("const"sv); only && *only != value)
    return concat("% is not %", {place, only->dump()});
  if (value.is_number() && !within_bounds(schema, value.as_number()))
    return concat("% is out of bounds", {place});
  if (value.is_object())
    for (const Json& name : schema["required"sv].items())
      if (!value.find(name.as_string()))
        return concat("% has no %", {place, in_quotes(name.as_string())});
  const Json& others = schema["additionalProperties"sv];
  for (const Json::Member& member : value.members()) {
    const Json* inner = schema["properties"sv].find(member.name);
    if (!inner && others.is_bool() && !others.as_bool())
      return concat("% has an unknown %", {place, in_quotes(member.name)});
    std::string problem =
        mismatch(inner ? *inner : others, member.value, concat("%.%", {place, member.name}));
    if (!problem.empty()) return problem;
  }
  std::size_t index = 0;
  for (const Json& item : value.items()) {
    std::string problem = mismatch(schema["items"sv], item, concat("%[%]", {place, index++}));
    if (!problem.empty()) return problem;
  }
  return {};
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
