// What a person wrote who took a file for something else than JSON.

#include "json/json_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Where a text stopped being JSON.
struct JsonStop {
  std::string_view before = {};  // without white space at its end
  std::string_view rest = {};
  char next() const { return rest.empty() ? '\0' : rest[0]; }
  char last() const { return before.empty() ? '\0' : before.back(); }
  // `#`, `//` and `/*`, also where they stand right behind a value.
  bool is_comment() const {
    return next() == '#' || starts_with(rest, "//"sv) || starts_with(rest, "/*"sv);
  }
  bool is_behind_comma() const { return last() == ',' && (next() == '}' || next() == ']'); }
  bool is_at_word() const { return is_letter(next()) || next() == '_'; }
  bool is_at_name() const { return is_at_word() && (last() == '{' || last() == ','); }
  bool is_at_value() const {
    return next() == '"' || next() == '{' || next() == '[' || next() == '-' || is_digit(next()) ||
           is_at_word();
  }

 private:
  static bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
};

// True for a text whose first line is no JSON, but has a key, a section or an item of a list.
bool is_yaml_or_toml(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (starts_with(text, "---"sv) || starts_with(text, "- "sv)) return true;
  if (starts_with(text, "["sv)) text.remove_prefix(1);
  const std::string_view line = text.substr(0, text.find('\n'));
  return all_are(line.substr(0, line.find_first_of(":=]")),
                 [](char c) { return is_name_char(c) || c == '-' || c == '.' || c == ' '; }) &&
         line.find_first_of(":=]") != std::string_view::npos && !is_digit(line[0]) &&
         line[0] != '-' && line[0] != ']';
}

// What to change, after the place where the text stopped being JSON; null: it is not known.
const char* json_remedy(std::string_view text, const JsonStop& stop) {
  if (starts_with(text, "\xef\xbb\xbf"sv))
    return "the file begins with a byte order mark: save it as UTF-8 without one";
  if (starts_with(text, "\xff\xfe"sv) || starts_with(text, "\xfe\xff"sv))
    return "the file is UTF-16: save it as UTF-8";
  if (stop.before.empty() && stop.rest.empty()) return "the file is empty; {} has no options";
  if (stop.is_comment()) return "JSON has no comments: remove it";
  if (is_yaml_or_toml(text))
    return "this looks like YAML or TOML: write JSON, such as {\"timeout\": 120}";
  if (stop.is_behind_comma()) return "a comma may not stand before the closing bracket: remove it";
  if (stop.next() == '\'') return "JSON has only double quotes: write \" for '";
  if (starts_with(stop.rest, "\xe2\x80\x9c"sv) || starts_with(stop.rest, "\xe2\x80\x9d"sv))
    return "these are typographic quotes: write \"";
  if (starts_with(stop.rest, "True"sv) || starts_with(stop.rest, "False"sv) ||
      starts_with(stop.rest, "None"sv))
    return "JSON writes true, false and null";
  if (stop.is_at_name()) return "a name stands in double quotes";
  if (stop.next() == '=') return "a colon stands between a name and its value";
  if (stop.next() == '}' || stop.next() == ']') return "a bracket or a value is missing before it";
  const bool is_open = stop.last() == ':' || stop.last() == '[' || stop.last() == ',';
  if (stop.is_at_value() && !is_open && !is_digit(stop.next()))
    return "a comma is missing before it";
  if (stop.is_at_word()) return "a text stands in double quotes";
  return nullptr;
}

}  // namespace

inline namespace inner {

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::string_view row = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto column = std::count_if(row.begin(), row.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not inside of a character
  });
  return concat("line %, column %", {line, column + 1});
}

SharedError json_file_error(std::string_view text, const Error& error) {
  const std::size_t offset = std::min(error.offset, text.size());
  Error told = error;
  told.message.resize(std::min(told.message.rfind(" at byte "), told.message.size()));
  append_all(told.message, " at %", {line_and_column(text, offset)});
  std::string_view before = text.substr(0, offset);
  before = before.substr(0, before.find_last_not_of(" \t\r\n") + 1);  // npos + 1 is 0
  const JsonStop stop = {before, text.substr(offset)};
  // The others say by themselves what is wrong.
  const bool is_of_form = starts_with(error.message, "expected"sv) || stop.is_comment();
  const char* const remedy = is_of_form ? json_remedy(text, stop) : nullptr;
  if (remedy) append_all(told.message, "; %", {remedy});
  return told;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
