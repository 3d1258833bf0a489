// The walker: operations that cut or replace, and arithmetic.

#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool ShellWalker::edit(const ShellPart& part, const std::string& operand, std::string& text) {
  switch (part.operation) {
    case '^':
    case ',':
      if (!operand.empty()) return false;
      for (std::size_t i = 0;
           i < (part.doubled ? text.size() : std::min<std::size_t>(text.size(), 1)); ++i) {
        char& c = text[i];
        if (part.operation == '^' && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        if (part.operation == ',' && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      }
      return true;
    case '%':
    case '#':
      return remove_match(part, operand, text);
    case '/':
      return replace(part, operand, text);
    case ':':
      return take_substring(operand, text);
    case '@':
      if (has_entry("U L"sv, operand)) {
        for (char& c : text) {
          if (operand == "U" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
          if (operand == "L" && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        }
        return true;
      }
      return false;
    default:
      return false;
  }
}

bool ShellWalker::remove_match(const ShellPart& part, std::string_view pattern, std::string& text) {
  const bool front = part.operation == '#';
  const bool star = !pattern.empty() && (front ? pattern.front() : pattern.back()) == '*';
  if (star) pattern = front ? pattern.substr(1) : pattern.substr(0, pattern.size() - 1);
  if (has_glob(pattern) || pattern.find('\\') != std::string_view::npos) return false;
  if (!star) {
    if (front && starts_with(text, pattern)) text.erase(0, pattern.size());
    if (!front && ends_with(text, pattern)) text.erase(text.size() - pattern.size());
    return true;
  }
  const bool first = front != part.doubled;
  const std::size_t at = first ? text.find(pattern) : text.rfind(pattern);
  if (at == std::string::npos) return true;
  if (front)
    text.erase(0, at + pattern.size());
  else
    text.erase(at);
  return true;
}

bool ShellWalker::replace(const ShellPart& part, std::string_view operand, std::string& text) {
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
    text_bytes_ += with.size();
    if (!part.doubled || text_bytes_ > options_.limits.max_text) break;
  }
  result.append(text, std::min(at, text.size()), std::string::npos);
  text = std::move(result);
  return true;
}

bool ShellWalker::take_slice(const ShellPart& part, std::string_view operand,
                             Parameter& parameter) {
  std::vector<ShellText>& elements = parameter.elements;
  const std::size_t colon = operand.find(':');
  const bool positional = has_entry("@ *"sv, part.text);
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

bool ShellWalker::take_substring(std::string_view operand, std::string& text) {
  const std::size_t colon = operand.find(':');
  std::string_view offset_text = operand.substr(0, colon);
  while (!offset_text.empty() && offset_text[0] == ' ') offset_text.remove_prefix(1);
  const auto size = static_cast<long long>(text.size());
  long long offset = 0;
  long long length = size;
  if (!is_ascii(text) || (!offset_text.empty() && !read_decimal(offset_text, offset))) return false;
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

std::string ShellWalker::arithmetic(std::uint32_t index) {
  const ShellText text = expand_single(index);
  long long number = 0;
  run_arithmetic_text(text.text);
  if (text.assumed || !read_integer(text.text, number) || text.text[0] == '0') return {};
  return std::to_string(number);
}

void ShellWalker::run_arithmetic_text(std::string_view text) {
  const bool assigns = text.find('=') != std::string_view::npos ||
                       text.find("++") != std::string_view::npos ||
                       text.find("--") != std::string_view::npos;
  if (has_substitution(text)) run_expansion_text(std::string(text));
  for (std::size_t at = 0; at < text.size() && !stopped();) {
    std::size_t end = at;
    while (end < text.size() && is_name_char(text[end])) ++end;
    if (end > at && is_name_start(text[at])) {
      run_arithmetic_value(text.substr(at, end - at));
      if (assigns) assign_unknown(text.substr(at, end - at));
    }
    at = std::max(end, at + 1);
  }
}

void ShellWalker::run_arithmetic_value(std::string_view name) {
  const ShellValue value = value_of(name);
  for (const ShellText& element : value.elements)
    if (has_substitution(element.text)) run_expansion_text(element.text);
}

bool ShellWalker::has_subscript(std::string_view text) {
  const std::size_t open = text.find('[');
  return open != std::string_view::npos && open > 0 && is_name_char(text[open - 1]);
}

void ShellWalker::run_subscripts(const shell::Command& command) {
  for (const shell::Word& word : command.words)
    if (has_subscript(word.text) && has_substitution(word.text)) run_expansion_text(word.text);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
