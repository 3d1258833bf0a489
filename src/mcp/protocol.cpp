// Versions of the protocol, and how deep and heavy a value is.

#include "mcp/mcp_internal.hpp"

#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
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

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

std::size_t depth_of(const Json& value, std::size_t limit) {
  std::vector<std::pair<const Json*, std::size_t>> open;
  std::size_t deepest = 0;
  const auto visit = [&](const Json& child, std::size_t depth) {
    if (!child.is_array() && !child.is_object()) return;
    deepest = std::max(deepest, depth);
    open.emplace_back(&child, depth);
  };
  visit(value, 1);
  while (!open.empty() && deepest <= limit) {
    const auto [container, depth] = open.back();
    open.pop_back();
    for (const Json& item : container->items()) visit(item, depth + 1);
    for (const Json::Member& member : container->members()) visit(member.value, depth + 1);
  }
  return deepest;
}

std::size_t weight_of(const Json& value) {
  constexpr std::size_t of_value = 48;
  std::size_t weight = of_value;
  std::vector<const Json*> open = {&value};
  while (!open.empty()) {
    const Json& container = *open.back();
    open.pop_back();
    weight += container.as_string().size();
    weight += container.size() * of_value;
    for (const Json& item : container.items()) open.push_back(&item);
    for (const Json::Member& member : container.members()) {
      weight += sizeof(std::string) + member.name.size();
      open.push_back(&member.value);
    }
  }
  return weight;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
