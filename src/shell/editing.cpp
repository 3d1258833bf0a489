// The walker: operations that cut or replace.

#include "shell/shell_internal.hpp"
#include "shell/words_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Where the pattern is plain text, the result is certain. Otherwise the value is unknown behind the
// operation: what matches `?`, `[a-z]` or an extended glob is for the shell to say.
//
//   ${x#a} ${x##*/} ${x%.c} ${x%%.*}    cut    at the front, or at the end
//   ${x/a/b} ${x//a/b}                  replace the first, or all
//   ${x^} ${x^^} ${x,} ${x,,} ${x@U}    change the case of ASCII letters
//   ${x:1:2}                            take a part

namespace {

bool is_plain_text(std::string_view text) {
  for (const char c : text)
    if ((c & 0x80) != 0) return false;
  return true;
}

// Of the first `count` letters.
void change_case(bool upper, std::size_t count, std::string& text) {
  const char first = upper ? 'a' : 'A';
  for (std::size_t i = 0; i < std::min(count, text.size()); ++i)
    if (text[i] >= first && text[i] < first + 26) text[i] = static_cast<char>(text[i] ^ 0x20);
}

// Cuts what matches. Only for patterns of plain characters, with a star at the far end or none: the
// usual ones for names of files. False: another pattern.
bool remove_match(const ShellPart& part, std::string_view pattern, std::string& text) {
  const bool front = part.operation == '#';
  const bool star = !pattern.empty() && (front ? pattern.front() : pattern.back()) == '*';
  if (star) pattern = front ? pattern.substr(1) : pattern.substr(0, pattern.size() - 1);
  if (has_glob(pattern) || pattern.find('\\') != std::string_view::npos) return false;
  if (!star) {
    if (front && starts_with(text, pattern)) text.erase(0, pattern.size());
    if (!front && ends_with(text, pattern)) text.erase(text.size() - pattern.size());
    return true;
  }
  // The shortest cut at the front and the longest at the end go to the first place that matches.
  const bool first = front != part.doubled;
  const std::size_t at = first ? text.find(pattern) : text.rfind(pattern);
  if (at == std::string::npos) return true;
  if (front)
    text.erase(0, at + pattern.size());
  else
    text.erase(at);
  return true;
}

bool replace_match(const ShellPart& part, std::string_view operand, ShellBudget& budget,
                   std::string& text) {
  const std::size_t slash = operand.find('/');
  const std::string_view pattern = operand.substr(0, slash);
  const std::string_view with =
      slash == std::string_view::npos ? std::string_view() : operand.substr(slash + 1);
  if (pattern.empty() || has_glob(pattern) || pattern.find('\\') != std::string_view::npos ||
      with.find_first_of("&\\") != std::string_view::npos ||
      (!part.doubled && (pattern[0] == '#' || pattern[0] == '%')))
    return false;
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t found = text.find(pattern, at);
    if (found == std::string::npos) break;
    result.append(text, at, found - at);
    result += with;
    at = found + pattern.size();
    budget.add_bytes(with.size());
    if (!part.doubled || budget.out_of_text()) break;
  }
  result.append(text, std::min(at, text.size()), std::string::npos);
  text = std::move(result);
  return true;
}

bool take_substring(std::string_view operand, std::string& text) {
  const std::size_t colon = operand.find(':');
  std::string_view offset_text = operand.substr(0, colon);
  while (!offset_text.empty() && offset_text[0] == ' ') offset_text.remove_prefix(1);
  const auto size = static_cast<long long>(text.size());
  long long offset = 0;
  long long length = size;
  if (!is_plain_text(text) || (!offset_text.empty() && !read_decimal(offset_text, offset)))
    return false;
  if (colon != std::string_view::npos && !read_decimal(operand.substr(colon + 1), length))
    return false;
  if (offset < 0) offset += size;
  if (length < 0) length += size - offset;
  if (offset < 0 || offset > size || length < 0) {
    text.clear();
    return true;
  }
  text = text.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  return true;
}

}  // namespace

bool edit_shell_text(const ShellPart& part, const std::string& operand, ShellBudget& budget,
                     std::string& text) {
  switch (part.operation) {
    case '^':
    case ',':
      if (!operand.empty()) return false;
      change_case(part.operation == '^', part.doubled ? text.size() : 1, text);
      return true;
    case '%':
    case '#':
      return remove_match(part, operand, text);
    case '/':
      return replace_match(part, operand, budget, text);
    case ':':
      return take_substring(operand, text);
    case '@':
      if (!is_any(operand, "U", "L")) return false;
      change_case(operand == "U", text.size(), text);
      return true;
    default:
      return false;
  }
}

bool take_slice(const ShellPart& part, std::string_view operand, ShellParameter& parameter) {
  std::vector<ShellText>& elements = parameter.elements;
  const std::size_t colon = operand.find(':');
  const bool positional = is_any(part.text, "@", "*");
  long long offset = 0;
  long long length = static_cast<long long>(elements.size());
  if (!read_decimal(operand.substr(0, colon), offset) || offset < (positional ? 1 : 0))
    return false;
  if (colon != std::string_view::npos &&
      (!read_decimal(operand.substr(colon + 1), length) || length < 0))
    return false;
  for (const ShellText& element : elements)
    if (element.split) return false;
  const std::vector<long long>& indexes = parameter.indexes;
  if (!indexes.empty())
    offset = std::lower_bound(indexes.begin(), indexes.end(), offset) - indexes.begin();
  const std::size_t from =
      std::min(static_cast<std::size_t>(offset) - (positional ? 1U : 0U), elements.size());
  const std::size_t count = std::min(static_cast<std::size_t>(length), elements.size() - from);
  const auto begin = elements.begin() + static_cast<std::ptrdiff_t>(from);
  elements.erase(begin + static_cast<std::ptrdiff_t>(count), elements.end());
  elements.erase(elements.begin(), begin);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
