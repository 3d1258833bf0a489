// Versions of the protocol, and how deep and heavy a value is.

#include "mcp/mcp_internal.hpp"

#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

// Calls `visit` with a value and all values inside of it, and their depth, which begins at 1, until
// it returns false. Does not recurse, as a client may choose how deep the value is.
void visit_all(const Json& value, FunctionRef<bool(const Json&, std::size_t)> visit) {
  std::vector<std::pair<const Json*, std::size_t>> open = {{&value, 1}};
  while (!open.empty()) {
    const auto [each, depth] = open.back();
    open.pop_back();
    if (!visit(*each, depth)) return;
    for (const Json& item : each->items()) open.emplace_back(&item, depth + 1);
    for (const Json::Member& member : each->members()) open.emplace_back(&member.value, depth + 1);
  }
}

}  // namespace

inline namespace inner {

bool served_legacy_version(std::string_view version) {
  return version == "2025-11-25"sv || version == "2025-06-18"sv || version == "2025-03-26"sv ||
         version == "2024-11-05"sv;
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  append_string(out, name);
  out += ':';
  append_string(out, text);
}

void append_optional(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out += ',';
  append_member(out, name, text);
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

std::size_t depth_of(const Json& value, std::size_t limit) {
  std::size_t deepest = 0;
  visit_all(value, [&](const Json& each, std::size_t depth) {
    if (each.is_array() || each.is_object()) deepest = std::max(deepest, depth);
    return deepest <= limit;
  });
  return deepest;
}

std::size_t weight_of(const Json& value) {
  constexpr std::size_t of_value = 48;
  std::size_t weight = 0;
  visit_all(value, [&](const Json& each, std::size_t) {
    weight += of_value + each.as_string().size();
    for (const Json::Member& member : each.members())
      weight += sizeof(std::string) + member.name.size();
    return true;
  });
  return weight;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
