// Glob patterns, as a shell matches them.

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

GlobBracket glob_bracket(std::string_view pattern, std::size_t at, char c) {
  constexpr std::size_t longest_class = 32;
  const auto byte = [](char x) { return static_cast<unsigned char>(x); };
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (const std::size_t first = i; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > first) return {i + 1, found != negated};
    const char kind = pattern[i] == '[' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (kind == ':' || kind == '=' || kind == '.') {
      const char ending[] = {kind, ']'};
      const std::size_t size =
          pattern.substr(i + 2, longest_class).find(std::string_view(ending, sizeof ending));
      if (size != std::string_view::npos) {
        found = !negated;
        i += size + 3;
        continue;
      }
    }
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (byte(pattern[i]) <= byte(c) && byte(c) <= byte(pattern[i + 2]));
      i += 2;
      continue;
    }
    found = found || pattern[i] == c;
  }
  return {};
}

std::size_t find_extended_glob(std::string_view text) {
  for (std::size_t at = text.find('('); at != std::string_view::npos; at = text.find('(', at + 1))
    if (at > 0 && "?*+@!"sv.find(text[at - 1]) != std::string_view::npos) return at - 1;
  return std::string_view::npos;
}

bool has_glob(std::string_view text) {
  for (const char c : text)
    if (c == '*' || c == '?' || c == '[') return true;
  return find_extended_glob(text) != std::string_view::npos;
}

bool glob_matches(std::string_view pattern, std::string_view name) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t p = 0, n = 0, star = none, star_n = 0;
  while (n < name.size()) {
    std::size_t next = none;  // where the pattern goes on after it has taken a character
    if (p < pattern.size()) {
      if (pattern[p] == '*') {
        star = p++;
        star_n = n;
        continue;
      }
      const GlobBracket bracket =
          pattern[p] == '[' ? glob_bracket(pattern, p, name[n]) : GlobBracket();
      if (bracket.end != none) {
        if (bracket.holds) next = bracket.end;
      } else if (pattern[p] == '?' || pattern[p] == name[n]) {
        next = p + 1;
      }
    }
    if (next != none) {
      p = next;
      ++n;
    } else if (star != none) {
      p = star + 1;
      n = ++star_n;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
