// What is said of a command that no pattern allows.

#include "policy/case_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// How many a refusal names.
constexpr std::size_t most_named = 8;

// A few names, and how many more there are.
std::string named(const std::vector<std::string_view>& names, std::string_view between) {
  std::string text;
  const std::size_t count = std::min(names.size(), most_named);
  for (std::size_t i = 0; i < count; ++i) append_all(text, {i ? between : ""sv, names[i]});
  if (count < names.size()) append_all(text, " and % more", {names.size() - count});
  return text;
}

// How many bytes two texts begin with in common.
std::size_t common_start(std::string_view a, std::string_view b) {
  std::size_t size = 0;
  while (size < a.size() && size < b.size() && a[size] == b[size]) ++size;
  return size;
}

}  // namespace

inline namespace inner {

std::string not_allowed_message(const std::vector<std::string>& patterns, bool usual,
                                std::string_view command) {
  std::vector<std::string_view> nearest(patterns.begin(), patterns.end());
  if (nearest.size() > most_named)
    std::stable_sort(nearest.begin(), nearest.end(), [&](std::string_view a, std::string_view b) {
      return common_start(a, command) > common_start(b, command);
    });
  std::string text = "Command not in allowed list. Allowed patterns: " + named(nearest, ", "sv);
  if (!usual) return text;
  append_all(text, "%; and in their usual forms: %",
             {patterns.empty() ? "none" : "", named(usual_commands(), " "sv)});
  return text;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
