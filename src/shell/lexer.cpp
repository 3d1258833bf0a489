// Sets of characters, and the escapes of $'...', echo and printf.

#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::uint16_t hash_of_name(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<std::uint16_t>((hash >> 16) | 1U);
}

std::string too_deep(const shell::Options& options) {
  return concat("nested deeper than % levels", {options.limits.max_depth});
}

// The escapes differ between $'..', echo, %b and the format of printf; see EscapeStyle:
//
//              $'..'      echo, %b     format
//   \a .. \v   yes        yes          yes
//   \c         \cx        the end      as it stands
//   octal      \ooo       \0ooo, \ooo  \ooo
//   \xHH       bash       bash         bash

bool decode_escape(std::string_view text, std::size_t& at, EscapeStyle style,
                   shell::Dialect dialect, std::string& out) {
  const bool bash = dialect == shell::Dialect::bash;
  if (++at == text.size()) {
    out += '\\';
    return true;
  }
  const char c = text[at++];
  if (const char known = escaped_character(c)) {
    out += known;
    return true;
  }
  if (c == 'e' || (c == 'E' && bash)) {
    out += '\033';
    return true;
  }
  if ((c == '\'' || c == '"' || c == '?') && style == EscapeStyle::ansi_c) {
    out += c;
    return true;
  }
  if (c == '"' && style == EscapeStyle::format && bash) {
    out += c;
    return true;
  }
  if (c == 'c' && (style == EscapeStyle::echo || style == EscapeStyle::b)) return false;
  if (c == 'c' && style == EscapeStyle::ansi_c && at < text.size()) {
    out += static_cast<char>(text[at++] & 0x1f);
    return true;
  }
  if (c >= '0' && c <= '7') {
    // \0ddd in the strings of echo and %b; \ddd everywhere but in bash's echo.
    const bool zero_in_front = c == '0' && (style == EscapeStyle::echo || style == EscapeStyle::b);
    if (style == EscapeStyle::echo && bash && !zero_in_front) {
      out += '\\';
      out += c;
      return true;
    }
    if (!zero_in_front) --at;
    out += static_cast<char>(read_digits(text, at, 3, 8) & 0xff);
    return true;
  }
  if ((c == 'x' || c == 'u' || c == 'U') && bash) {
    const std::size_t digits_at = at;
    const std::uint32_t code = read_digits(text, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    if (at != digits_at) {
      if (c == 'x')
        out += static_cast<char>(code);
      else
        append_utf8(code, out);
      return true;
    }
  }
  out += '\\';
  out += c;
  return true;
}

std::string decode_ansi_c(std::string_view text) {
  std::string value;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      value += text[at++];
      continue;
    }
    const std::size_t size = value.size();
    decode_escape(text, at, EscapeStyle::ansi_c, shell::Dialect::bash, value);
    if (value.size() > size && value[size] == '\0') {
      value.resize(size);
      break;
    }
  }
  return value;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
