// Changes of a TOML text, by lines: keys of one table are set or taken out, all other bytes stay.
//
// A text is not clear when the table may be in it in another form (inline, with dots, quotes or
// escapes), when strings have several lines, or when a value of the table has.

#include "program/client_files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "code/code_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A line of the text, without blanks and comment. A `#` within a string ends it, too, which is
// enough to see what a line begins with.
struct TomlSource {
  bool is_header() const { return line[0] == '['; }
  std::string_view key() const { return is_header() ? line : line.substr(0, line.find('=')); }
  // Whether a value is all of it, as far as its ends show.
  bool has_value() const {
    return is_name_start(line[0]) && key().size() < line.size() && line.back() != '[' &&
           line.back() != ',';
  }

  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view line = {};
};

// Whether a line below `header` says for certain whether it is about the table.
bool is_clear_line(const TomlSource& source, std::string_view header, const TomlTable& table) {
  const std::string_view key = source.key();
  const std::size_t first = std::min(key.find_first_not_of("[ \t"sv), key.size());
  // A name in quotes may be spelled with escapes.
  const bool is_quoted = key.find_first_of("\"'"sv, first) == first;
  const bool may_name_it =
      key.find('\\') != std::string_view::npos || key.find(table.first) != std::string_view::npos;
  const bool is_about =
      header.find(table.first) != std::string_view::npos && header != table.header;
  const bool has_last = table.last[0] != '\0';
  const bool names_last = has_last && (key.find(table.last) != std::string_view::npos ||
                                       key.find('\\') != std::string_view::npos);
  const bool is_spaced = !has_last && source.is_header() && first > 1 && may_name_it;
  return !starts_with(key, table.first) && !is_spaced && !(is_quoted && may_name_it) &&
         !(is_about && names_last);
}

SharedError not_clear(std::size_t number, const char* why = "") {
  return make_error(ErrorCode::parse, "its TOML is not clear at line %%", {number, why});
}

bool is_of_windows(std::string_view text) { return text.find("\r\n"sv) != std::string_view::npos; }

std::string with_line_ends(std::string text, bool of_windows) {
  for (std::size_t at = 0; of_windows && (at = text.find('\n', at)) != std::string_view::npos;
       at += 2)
    text.insert(at, 1, '\r');
  return text;
}

// Reads a text in quotes at value[at], and goes behind it. Nothing: there is none.
std::optional<std::string> take_toml_text(std::string_view value, std::size_t& at) {
  const char quote = at < value.size() ? value[at] : '\0';
  if (quote != '"' && quote != '\'') return {};
  const std::size_t begin = at++;
  while (at < value.size() && value[at] != quote) at += quote == '"' && value[at] == '\\' ? 2u : 1u;
  if (at >= value.size()) return {};
  ++at;
  if (quote == '\'') return std::string(value.substr(begin + 1, at - begin - 2));
  const auto text = Json::parse(value.substr(begin, at - begin));
  if (!text || !text->is_string()) return {};
  return text->as_string();
}

// Whether nothing but a comment follows.
bool ends_there(std::string_view value, std::size_t at) {
  at = value.find_first_not_of(" \t\r\n", at);
  return at == std::string_view::npos || value[at] == '#';
}

// A key with its value; a setting of the client gets the mark of this program.
std::string toml_line(const TomlTable& table, const Json::Member& member) {
  const bool is_setting = table.last[0] == '\0';
  return concat("% = %%\n", {member.name, member.value.dump(),
                             is_setting ? "  # by codeexec-mcp --only-shell" : ""});
}

}  // namespace

inline namespace inner {

Json toml_value(std::string_view value) {
  std::size_t at = value.find_first_not_of(" \t");
  if (at == std::string_view::npos) return Json();
  for (const bool truth : {true, false}) {
    const std::string_view word = truth ? "true"sv : "false"sv;
    if (value.substr(at, word.size()) == word && ends_there(value, at + word.size()))
      return Json(truth);
  }
  if (value[at] != '[') {
    const auto text = take_toml_text(value, at);
    return text && ends_there(value, at) ? Json(*text) : Json();
  }
  Json list = Json::array();
  for (++at;;) {
    at = value.find_first_not_of(" \t,", at);
    if (at == std::string_view::npos) return Json();
    if (value[at] == ']') return ends_there(value, at + 1) ? list : Json();
    const auto item = take_toml_text(value, at);
    if (!item) return Json();
    list.push_back(Json(*item));
  }
}

Expected<TomlLines> read_toml_table(std::string_view text, const TomlTable& table) {
  if (has_nul(text)) return make_error(ErrorCode::parse, "it has a byte 0, so it is no text");
  if (starts_with(text, "\xef\xbb\xbf"sv))
    return not_clear(1, ": it begins with a byte order mark (BOM)");
  TomlLines found;
  std::string_view header;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++number;
    TomlSource source;
    source.begin = text.size() - rest.size();
    const std::string_view line = take_part(rest, '\n');
    source.end = text.size() - rest.size();
    if (line.find("\"\"\""sv) != std::string_view::npos ||
        line.find("'''"sv) != std::string_view::npos)
      return not_clear(number, ": a string may have several lines");
    source.line = without_blanks(line);
    source.line = without_blanks(source.line.substr(0, source.line.find('#')));
    if (source.line.empty()) continue;
    if (source.is_header()) header = source.line;
    if (!is_clear_line(source, header, table)) return not_clear(number);
    if (header != table.header) continue;
    if (!source.is_header()) {
      if (!source.has_value()) return not_clear(number);
      const std::size_t equals = line.find('=');
      found.lines.push_back({source.begin, source.end, without_blanks(line.substr(0, equals)),
                             line.substr(equals + 1)});
    } else if (found.is_there) {
      return not_clear(number);
    } else {
      found.is_there = true;
      found.begin = source.begin;
    }
    found.end = source.end;
  }
  return found;
}

std::string set_toml_keys(std::string& text, const TomlTable& table, const Json& members) {
  const auto found = read_toml_table(text, table);
  if (!found) return found.error().message;
  const bool of_windows = is_of_windows(text);
  // Lines of keys that are there, the last one first, so that the places of the others stay.
  std::string added;
  std::string edited = text;
  for (const Json::Member& member : members.members()) {
    const bool is_there = find_where(found->lines, [&](const TomlLine& line) {
                            return line.key == member.name;
                          }) != found->lines.end();
    if (!is_there) added += toml_line(table, member);
  }
  if (!added.empty()) {
    if (!found->is_there) added = concat({text.empty() ? "" : "\n", table.header, "\n", added});
    const std::size_t at = found->is_there ? found->end : text.size();
    if (at > 0 && text[at - 1] != '\n') added.insert(0, 1, '\n');
    edited.insert(at, with_line_ends(added, of_windows));
  }
  for (std::size_t i = found->lines.size(); i-- > 0;) {
    const TomlLine& line = found->lines[i];
    for (const Json::Member& member : members.members())
      if (line.key == member.name && toml_value(line.value) != member.value)
        edited.replace(line.begin, line.end - line.begin,
                       with_line_ends(toml_line(table, member), of_windows));
  }
  text = std::move(edited);
  return {};
}

std::string remove_toml_keys(std::string& text, const TomlTable& table,
                             const std::vector<std::string_view>& keys) {
  const auto found = read_toml_table(text, table);
  if (!found) return found.error().message;
  std::vector<TomlLine> gone;
  for (const TomlLine& line : found->lines)
    if (keys.empty() || find_in(keys, line.key) != keys.end()) gone.push_back(line);
  if (!found->is_there || (gone.empty() && !keys.empty())) return {};
  if (gone.size() == found->lines.size()) {
    std::size_t begin = found->begin;  // with one empty line before it
    for (const std::string_view blank : {"\r\n\r\n"sv, "\n\n"sv})
      if (ends_with(std::string_view(text).substr(0, begin), blank)) begin -= blank.size() / 2;
    std::size_t end = found->end;  // or behind it, at the start of the text
    while (begin == 0 && end < text.size() && (text[end] == '\r' || text[end] == '\n')) ++end;
    text.erase(begin, end - begin);
    return {};
  }
  for (std::size_t i = gone.size(); i-- > 0;)
    text.erase(gone[i].begin, gone[i].end - gone[i].begin);
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
