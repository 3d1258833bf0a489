// Changes of a JSON text: a member is set or taken out, and all other bytes stay.

#include "program/client_files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::string_view json_blanks = " \t\r\n";
constexpr std::size_t npos = std::string_view::npos;

// Behind the value that begins at text[at], in a text that is valid JSON.
std::size_t json_value_end(std::string_view text, std::size_t at) {
  if ("\"{["sv.find(text[at]) == npos)
    return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
  std::size_t depth = 0;
  do {
    const char c = text[at++];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    for (; text[at] != '"'; ++at)
      if (text[at] == '\\') ++at;
    ++at;
  } while (depth > 0);
  return at;
}

// A member of an object in such a text, or an item of a list.
struct JsonPart {
  std::size_t name = npos;  // where it begins, with its name
  std::size_t value = npos;
  std::size_t end = npos;  // of its value
};

// A part, or the last one when none passes; and the end of the part before it.
struct FoundPart : JsonPart {
  bool found = false;
  std::size_t before = npos;  // npos: it is the first
  bool is_empty() const { return name == npos; }
};

// Walks through the members of an object, or the items of a list, up to the one that passes.
FoundPart find_part(std::string_view text, std::size_t container,
                    FunctionRef<bool(const JsonPart&)> passes) {
  const bool has_names = text[container] == '{';
  FoundPart part;
  for (std::size_t at = container + 1; !part.found;) {
    at = text.find_first_not_of(" \t\r\n,", at);
    if (text[at] == '}' || text[at] == ']') break;
    part.before = part.end;
    part.name = part.value = at;
    if (has_names) part.value = text.find_first_not_of(" \t\r\n:", json_value_end(text, at));
    at = part.end = json_value_end(text, part.value);
    part.found = passes(part);
  }
  return part;
}

// A name that is spelled with escapes is not found.
FoundPart find_member(std::string_view text, std::size_t object, std::string_view name) {
  const std::string spelled = Json(name).dump();
  return find_part(text, object, [&](const JsonPart& part) {
    return text.substr(part.name, json_value_end(text, part.name) - part.name) == spelled;
  });
}

// The line end and the blanks before text[at]; empty when something else stands on its line.
std::string line_before(std::string_view text, std::size_t at) {
  const std::size_t last = at == 0 ? npos : text.find_last_not_of(" \t", at - 1);
  if (last == npos || text[last] != '\n') return {};
  return concat(
      {last > 0 && text[last - 1] == '\r' ? "\r\n" : "\n", text.substr(last + 1, at - last - 1)});
}

// How the outermost object is laid out.
struct JsonLayout {
  explicit JsonLayout(std::string_view text) : root(text.find_first_not_of(json_blanks)) {
    const std::size_t first = text.find_first_not_of(json_blanks, root + 1);
    const std::string line = line_before(text, first);
    const std::size_t end_size = starts_with(line, "\r"sv) ? 2 : 1;
    if (line.size() > end_size) unit = line.substr(end_size);
    line_end = end_size == 2 ? "\r\n" : "\n";
  }
  std::size_t root;
  std::string unit = "  ";
  std::string line_end = {};
};

JsonLimits strict_limits() {
  JsonLimits limits;
  limits.unique_names = true;
  return limits;
}

// The value with a member set, as the text must say it afterwards.
Json with_member(const Json& object, const MemberPath& path, std::size_t depth, const Json& value) {
  if (depth == path.size()) return value;
  Json changed = object.is_object() ? object : Json::object();
  changed.set(path[depth], with_member(object[path[depth]], path, depth + 1, value));
  return changed;
}

// Names with escapes occur twice after an edit that did not find them.
const char* check_edit(std::string_view text, const Json& wanted) {
  const auto now = Json::parse(text, strict_limits());
  return now && *now == wanted ? ""
                               : "a name in it has escapes, so it cannot be edited for certain";
}

// A value in lines: objects in several, lists in one. `line` is a line end and the indentation of
// the line it begins on, or empty for one line; `unit` is what each level adds.
std::string laid_out(const Json& value, const std::string& line, const std::string& unit) {
  if (!value.is_object() || value.size() == 0) return value.dump();
  const std::string inner_line = line.empty() ? line : concat({line, unit});
  std::string text = "{";
  for (const Json::Member& member : value.members()) {
    if (text.size() > 1) append_all(text, {",", line.empty() ? " " : ""});
    append_all(text, {inner_line, Json(member.name).dump(), ": ",
                      laid_out(member.value, inner_line, unit)});
  }
  return concat({text, line, "}"});
}

// What other programs may read and this one does not edit, outside of strings.
std::string extension_in(std::string_view text) {
  std::size_t comma = npos;  // the last sign, when that is one
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
    }
    if (c == '/' && (next == '/' || next == '*'))
      return concat("it has a comment at %, and would lose it", {line_and_column(text, at)});
    if ((c == '}' || c == ']') && comma != npos)
      return concat("it has a comma before a closing bracket at %", {line_and_column(text, comma)});
    if (json_blanks.find(c) == npos) comma = c == ',' ? at : npos;
  }
  return {};
}

}  // namespace

inline namespace inner {

std::string json_trouble(std::string_view text) {
  if (text.find_first_not_of(json_blanks) == npos) return {};
  if (starts_with(text, "\xef\xbb\xbf"sv))
    return "it is not plain JSON: it begins with a byte order mark (BOM)";
  const auto value = Json::parse(text, strict_limits());
  if (value) return value->is_object() ? "" : "it is no JSON object";
  const std::string extension = extension_in(text);
  return concat("it is not plain JSON: %", {extension.empty() ? value.error().message : extension});
}

std::string set_json_member(std::string& text, const MemberPath& path, const Json& value) {
  if (std::string problem = json_trouble(text); !problem.empty()) return problem;
  if (text.find_first_not_of(json_blanks) == npos) {
    text = concat({laid_out(with_member(Json(), path, 0, value), "\n", "  "), "\n"});
    return {};
  }
  const Json before = *Json::parse(text, strict_limits());
  const JsonLayout layout(text);
  std::string line = layout.line_end;
  std::size_t object = layout.root;
  std::size_t depth = 0;
  FoundPart part;
  for (;; ++depth) {
    part = find_member(text, object, path[depth]);
    if (!part.found || depth + 1 == path.size()) break;
    if (text[part.value] != '{') return concat("its % is no object", {path[depth]});
    line = line_before(text, part.name);
    object = part.value;
  }
  const Json added = with_member(
      Json(), MemberPath(path.begin() + static_cast<std::ptrdiff_t>(depth) + 1, path.end()), 0,
      value);
  if (part.found || !part.is_empty()) line = line_before(text, part.name);
  std::string piece = laid_out(added, line, layout.unit);
  if (part.found) {
    text.replace(part.value, part.end - part.value, piece);
  } else if (part.is_empty()) {
    const Json whole = Json::object({{std::string(path[depth]), added}});
    text.replace(object, json_value_end(text, object) - object, laid_out(whole, line, layout.unit));
  } else {
    text.insert(part.end,
                concat(",%%: %", {line.empty() ? " " : line, Json(path[depth]).dump(), piece}));
  }
  return check_edit(text, with_member(before, path, 0, value));
}

std::string add_to_json_list(std::string& text, const MemberPath& path, std::string_view item) {
  if (std::string problem = json_trouble(text); !problem.empty()) return problem;
  const auto value = Json::parse(text, strict_limits());
  const Json* list = value ? &*value : nullptr;
  for (std::size_t i = 0; list && i < path.size(); ++i) list = list->find(path[i]);
  if (!list) return set_json_member(text, path, Json::array({Json(item)}));
  if (!list->is_array()) return concat("its % is no list", {path.back()});
  for (const Json& one : list->items())
    if (one == Json(item)) return {};
  Json longer = *list;
  longer.push_back(Json(item));
  std::size_t at = text.find_first_not_of(json_blanks);
  for (const std::string_view name : path) {
    const FoundPart part = find_member(text, at, name);
    if (!part.found) return "a name in it has escapes, so it cannot be edited for certain";
    at = part.value;
  }
  const FoundPart last = find_part(text, at, [](const JsonPart&) { return false; });
  const std::string added = Json(item).dump();
  if (last.is_empty()) {
    text.replace(at, json_value_end(text, at) - at, concat({"[", added, "]"}));
  } else {
    const std::string line = line_before(text, last.name);
    text.insert(last.end, concat({",", line.empty() ? " " : line, added}));
  }
  return check_edit(text, with_member(*value, path, 0, longer));
}

}  // namespace inner

namespace {

// Takes a part out of its object or list, with the comma and the line that go with it.
void cut_part(std::string& text, std::size_t container, const FoundPart& part) {
  const std::size_t next = text.find_first_not_of(json_blanks, part.end);
  if (part.before != npos)
    text.erase(part.before, part.end - part.before);
  else if (text[next] == ',')
    text.erase(part.name, text.find_first_not_of(json_blanks, next + 1) - part.name);
  else
    text.erase(container + 1, next - container - 1);
}

// The places of the members of a path; shorter when one is not there.
std::vector<std::size_t> containers_on(std::string_view text, const MemberPath& path) {
  std::vector<std::size_t> places = {text.find_first_not_of(json_blanks)};
  for (const std::string_view name : path) {
    if (places.back() == npos || text[places.back()] != '{') break;
    const FoundPart part = find_member(text, places.back(), name);
    if (!part.found) break;
    places.push_back(part.value);
  }
  return places;
}

}  // namespace

inline namespace inner {

std::string remove_json_member(std::string& text, const MemberPath& path) {
  if (std::string problem = json_trouble(text); !problem.empty()) return problem;
  MemberPath left = path;
  for (bool is_emptied = true; is_emptied && !left.empty(); left.pop_back()) {
    const std::vector<std::size_t> places = containers_on(text, left);
    if (places.size() <= left.size()) return {};
    const std::size_t object = places[left.size() - 1];
    cut_part(text, object, find_member(text, object, left.back()));
    is_emptied = find_member(text, object, ""sv).is_empty();
  }
  return json_trouble(text);
}

std::string remove_from_json_list(std::string& text, const MemberPath& path,
                                  std::string_view item) {
  if (std::string problem = json_trouble(text); !problem.empty()) return problem;
  const std::vector<std::size_t> places = containers_on(text, path);
  if (places.size() <= path.size() || text[places.back()] != '[') return {};
  const std::string spelled = Json(item).dump();
  const std::string_view whole = text;
  const FoundPart part = find_part(text, places.back(), [&](const JsonPart& one) {
    return whole.substr(one.value, one.end - one.value) == spelled;
  });
  if (!part.found) return {};
  cut_part(text, places.back(), part);
  const bool is_emptied =
      find_part(text, places.back(), [](const JsonPart&) { return false; }).is_empty();
  return is_emptied ? remove_json_member(text, path) : json_trouble(text);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
