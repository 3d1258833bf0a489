// The texts of tools: a row for each tool, and in it a row for each parameter.
#pragma once

#include "tools/tools.hpp"

#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "mcp/mcp.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What a tool does. Clients ask their users by that.
enum class ToolEffect : char { reads, writes, runs };

// What a parameter takes.
enum class Takes : char {
  text,
  required_text,
  texts,     // a list
  encoding,  // utf-8 or base64
  unit,      // lines or bytes
  seconds,   // more than none, also with a fraction
  from_0,    // a whole number
  from_1,
  truth,
  edits,  // a list of what FileEdit has
};

struct ToolParameter {
  const char* name = "";
  Takes takes = Takes::text;
  const char* description = "";
  const char* other_name = "";  // which models use, too
};

// A name in braces in a description is replaced by its value.
struct ToolText {
  static constexpr std::size_t most_parameters = 10;

  const char* name;
  const char* title;
  ToolEffect effect;
  const char* description;
  ToolParameter parameters[most_parameters] = {};
};

// What a packed row of texts does not have.
struct ToolFacts {
  ToolEffect effect = ToolEffect::reads;
  Takes takes[ToolText::most_parameters] = {};
};
constexpr ToolFacts facts_of(const ToolText& tool) {
  ToolFacts facts;
  facts.effect = tool.effect;
  for (std::size_t i = 0; i < ToolText::most_parameters; ++i)
    facts.takes[i] = tool.parameters[i].takes;
  return facts;
}

// The columns: name, title and description of the tool, then those of each parameter.
enum ToolColumn : std::size_t { name_column, title_column, description_column, parameter_columns };
enum ParameterColumn : std::size_t {
  parameter_name,
  other_name,
  parameter_description,
  columns_of_parameter
};

// The texts of rows that have a ToolText, for pack_names().
template <const auto& Rows>
struct ToolTextSource {
  static constexpr std::size_t count = std::size(Rows);
  static constexpr std::size_t columns =
      parameter_columns + columns_of_parameter * ToolText::most_parameters;
  static constexpr std::string_view text(std::size_t row, std::size_t column) {
    const ToolText& tool = Rows[row].text;
    if (column == name_column) return tool.name;
    if (column == title_column) return tool.title;
    if (column == description_column) return tool.description;
    const ToolParameter& parameter =
        tool.parameters[(column - parameter_columns) / columns_of_parameter];
    const std::size_t part = (column - parameter_columns) % columns_of_parameter;
    return part == parameter_name ? parameter.name
           : part == other_name   ? parameter.other_name
                                  : parameter.description;
  }
  static constexpr char separator(std::size_t) { return '\0'; }
};

// Makes the tool of a packed row; `value` gives the value of a name in braces.
mcp::Tool tool_of(const NameTable& texts, std::size_t row, const ToolFacts& facts,
                  FunctionRef<std::string(std::string_view)> value);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
