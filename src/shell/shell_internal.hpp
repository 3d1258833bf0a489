// Classes of characters, and the escapes of $'...', echo and printf.
#pragma once

#include "shell/script_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Characters, for fast tests.
struct CharSet {
  std::array<std::uint32_t, 8> members = {};
  constexpr explicit CharSet(std::string_view characters) {
    for (const char c : characters) members[place(c) / 32] |= std::uint32_t{1} << place(c) % 32;
  }
  constexpr bool has(char c) const { return (members[place(c) / 32] >> place(c) % 32 & 1) != 0; }

 private:
  static constexpr unsigned place(char c) { return static_cast<unsigned char>(c); }
};
constexpr CharSet word_end(" \t\n&|;<>()");
constexpr CharSet ends_plain_run(" \t\n&|;<>()\\'\"`${}]");
constexpr CharSet ends_quoted_run("\\'\"`$}]");

// Where a text stands in the script. If `exact`, byte i of it is at begin + i. If not, the script
// does not have the text as it is: it comes from somewhere between begin and end.
struct ShellOrigin {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool exact = true;
};

// What may follow a backslash, in $'...' and in the strings of echo and printf.
enum class EscapeStyle {
  ansi_c,  // $'...'
  echo,    // echo; \c ends all output
  b,       // the operand of printf's %b; the same
  format,  // printf's format
};

// Decodes the escape after the backslash at text[at]; leaves `at` behind it. False: \c, the end of
// the output.
bool decode_escape(std::string_view text, std::size_t& at, EscapeStyle style,
                   shell::Dialect dialect, std::string& out);

// The value of $'text'. A NUL ends it.
std::string decode_ansi_c(std::string_view text);

// A number other than 0 for a name. Different names mostly have different numbers.
std::uint16_t hash_of_name(std::string_view name);

// The message of the limit max_depth.
std::string too_deep(const shell::Options& options);

// Puts a path behind a directory and takes `.`, `..` and doubled slashes out of it. A `~` at the
// start is a name like others, so `~/..` becomes `.`.
std::string join_shell_path(std::string_view directory, std::string_view path);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
