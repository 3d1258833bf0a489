// --client-config: what a client's configuration needs to start this server, and --write.
//
//   read the file -> edit its text -> parse the result again -> show the difference
//                                                            -> link FILE.bak to the old file
//                                                            -> rename a new file into its place
//
// The text is edited in place: other servers and unknown members keep their bytes. A file that is
// not understood for certain (comments in JSON, YAML, unusual TOML) stays as it is, and what to
// paste is printed. The formats are those that the clients documented in November 2026.

#include "tools/options_internal.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "code/code_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "files/files.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

enum class ClientFormat : char { json, typed_json, toml, yaml };  // typed: an entry has a "type"

// Where a client keeps its servers. The user's file is $variable/file, or ~/folder/file. Texts are
// arrays, as each pointer would need a relocation.
struct Client {
  char name[15];
  ClientFormat format;
  char key[12];  // of the object with the servers
  char variable[18];
  char folder[17];  // with a `/`
  char file[34];
  char project[22];  // the file in a project, for the same servers
  char replaced[3];  // the sign at which the client puts values into arguments; or empty
};

constexpr Client clients[] = {
    {"claude-code", ClientFormat::typed_json, "mcpServers", "CLAUDE_CONFIG_DIR", "", ".claude.json",
     ".mcp.json", "${"},
    {"claude-desktop", ClientFormat::json, "mcpServers", "XDG_CONFIG_HOME", ".config/",
     "Claude/claude_desktop_config.json", "", ""},
    {"cursor", ClientFormat::json, "mcpServers", "", "", ".cursor/mcp.json", ".cursor/mcp.json",
     "${"},
    {"vscode", ClientFormat::typed_json, "servers", "XDG_CONFIG_HOME", ".config/",
     "Code/User/mcp.json", ".vscode/mcp.json", "${"},
    {"codex", ClientFormat::toml, "", "CODEX_HOME", ".codex/", "config.toml", ".codex/config.toml",
     ""},
    {"gemini", ClientFormat::json, "mcpServers", "", "", ".gemini/settings.json",
     ".gemini/settings.json", "$"},
    {"massgen", ClientFormat::yaml, "", "", ".config/massgen/", "config.yaml", "", "${"}};

constexpr std::string_view server_name = "codeexec";
constexpr std::string_view codex_header = "[mcp_servers.codeexec]";
constexpr std::string_view json_blanks = " \t\r\n";
constexpr std::size_t npos = std::string_view::npos;
// Of a client's file, which is read whole.
constexpr std::size_t longest_client_file = std::size_t{8} << 20;

// A JSON string. TOML's basic strings and YAML's double-quoted ones know all of its escapes.
std::string json_string(std::string_view text) { return Json(text).dump(); }

// What goes into the file of one client.
struct ClientEntry {
  std::string quoted_words() const { return list_of(words).dump(); }

  // JSON at a level: 0 the server's own object, 1 the object with it as a member, 2 the whole file.
  // `line` is a line end and the indentation of the line it begins on, or empty for one line.
  std::string json(int level, const std::string& line) const {
    const std::string inner_line = line.empty() ? line : concat({line, unit});
    const std::string_view next = line.empty() ? " "sv : std::string_view(inner_line);
    if (level > 0)
      return concat("{%%: %%}", {inner_line, json_string(level == 2 ? client->key : server_name),
                                 json(level - 1, inner_line), line});
    const bool typed = client->format == ClientFormat::typed_json;
    return concat("{%%%\"command\": %,%\"args\": %%}",
                  {inner_line, typed ? "\"type\": \"stdio\"," : "", typed ? next : "",
                   json_string(program), next, quoted_words(), line});
  }

  // MassGen's YAML has its own name for the server, so that it adds none and the tool keeps its id.
  std::string whole() const {
    if (client->format < ClientFormat::toml) return json(2, "\n");
    const char* const form =
        client->format == ClientFormat::toml
            ? "[mcp_servers.codeexec]\ncommand = %\nargs = %"
            : "mcp_servers:\n  - name: command_line\n    type: stdio\n    command: %\n    args: %";
    return concat(form, {json_string(program), quoted_words()});
  }

  const Client* client;
  std::string program = {};
  const std::vector<std::string>& words;
  std::string unit = "  ";  // of indentation
};

// JSON -------------------------------------------------------------------------------------------

// Behind the value that begins at text[at], in a text that is valid JSON.
std::size_t json_value_end(std::string_view text, std::size_t at) {
  if ("\"{["sv.find(text[at]) == npos) return text.find_first_of(",]} \t\r\n", at);
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

// A member of an object in such a text, or the last member if none has the name.
struct MemberPlace {
  std::size_t name = npos;  // where its name begins; npos: the object is empty
  std::size_t value = npos;
  std::size_t end = npos;  // of its value
  bool found = false;
};

// A name that is spelled with escapes is not found.
MemberPlace find_member(std::string_view text, std::size_t object, std::string_view name) {
  MemberPlace place;
  for (std::size_t at = object + 1; !place.found; at = place.end) {
    at = text.find_first_not_of(" \t\r\n,", at);
    if (text[at] == '}') break;
    place.name = at;
    at = json_value_end(text, at);
    place.found = text.substr(place.name + 1, at - place.name - 2) == name;
    place.value = text.find_first_not_of(" \t\r\n:", at);
    place.end = json_value_end(text, place.value);
  }
  return place;
}

// The line end and the blanks before text[at]; empty when something else stands on its line.
std::string line_before(std::string_view text, std::size_t at) {
  const std::size_t last = at == 0 ? npos : text.find_last_not_of(" \t", at - 1);
  if (last == npos || text[last] != '\n') return {};
  return concat(
      {last > 0 && text[last - 1] == '\r' ? "\r\n" : "\n", text.substr(last + 1, at - last - 1)});
}

// Puts our entry among the servers. Everything else keeps its bytes. Returns what is wrong with the
// text, or nothing.
std::string edit_json(std::string& text, ClientEntry& entry) {
  const std::size_t root = text.find_first_not_of(json_blanks);
  JsonLimits limits;
  limits.unique_names = true;
  const auto value = Json::parse(text, limits);
  if (!value) return concat("it is not plain JSON: %", {value.error().message});
  if (!value->is_object()) return "it is no JSON object";
  std::string line = line_before(text, text.find_first_not_of(json_blanks, root + 1));
  const std::size_t end_size = starts_with(line, "\r"sv) ? 2 : 1;
  if (line.size() > end_size) entry.unit = line.substr(end_size);
  line = end_size == 2 ? "\r\n" : "\n";

  int level = 1;
  std::size_t object = root;
  std::string_view name = entry.client->key;
  MemberPlace place = find_member(text, root, name);
  if (place.found) {
    if (text[place.value] != '{') return concat("its % is no object", {name});
    level = 0;
    object = place.value;
    line = line_before(text, place.name);
    name = server_name;
    place = find_member(text, object, name);
  }
  if (place.name == npos) {  // the object is empty
    ++level;
    place.value = object;
    place.end = json_value_end(text, object);
    place.found = true;
  } else {
    line = line_before(text, place.name);
  }
  std::string added = entry.json(level, line);
  if (!place.found) {
    place.value = place.end;
    added = concat(",%%: %", {line.empty() ? " " : line, json_string(name), added});
  }
  text.replace(place.value, place.end - place.value, added);
  // What was written must be what was meant; names that are spelled with escapes occur twice now.
  const auto again = Json::parse(text, limits);
  if (!again || (*again)[entry.client->key][server_name]["args"].dump() != entry.quoted_words())
    return "a name in it has escapes, so it cannot be edited for certain";
  return {};
}

// TOML -------------------------------------------------------------------------------------------

// Puts our table in the place of the one that is there, or at the end. The text is read by lines:
// one with strings of several lines is not clear, nor one that may have our table in another form,
// or a value of several lines in it. Returns as edit_json().
std::string edit_toml(std::string& text, const ClientEntry& entry) {
  bool is_clear = text.find("\"\"\""sv) == npos && text.find("'''"sv) == npos &&
                  !starts_with(text, "\xef\xbb\xbf"sv);
  std::string_view header;
  std::size_t begin = npos;  // of our table
  std::size_t end = npos;
  std::size_t number = 0;
  const std::string_view whole = text;
  for (std::string_view rest = whole; is_clear && !rest.empty(); ++number) {
    const std::size_t at = text.size() - rest.size();
    std::string_view line = without_blanks(take_part(rest, '\n'));
    line = without_blanks(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const bool is_ours = line == codex_header;
    if (line[0] == '[') header = line;
    const std::string_view key = line.substr(0, line[0] == '[' ? npos : line.find('='));
    const bool is_about = header.find("mcp_servers"sv) != npos && header != codex_header;
    // A name in quotes may be spelled with escapes.
    const std::size_t first = std::min(key.find_first_not_of("[ \t"sv), key.size());
    const bool is_quoted = key.find_first_of("\"'"sv, first) == first;
    const bool may_be_ours = key.find('\\') != npos || key.find("mcp_servers"sv) != npos;
    is_clear = !starts_with(key, "mcp_servers"sv) && !(is_quoted && may_be_ours) &&
               (!is_about || (key.find(server_name) == npos && key.find('\\') == npos));
    if (is_ours && begin != npos) is_clear = false;
    if (is_ours) begin = at;
    if (header != codex_header) continue;
    is_clear = is_clear && (is_ours || (is_name_start(key[0]) && key.size() < line.size() &&
                                        (line.back() != '[' && line.back() != ',')));
    end = text.size() - rest.size();
  }
  if (!is_clear) return concat("its TOML is not clear at line %", {number});
  std::string added = concat({entry.whole(), "\n"});
  if (begin == npos) {
    if (!text.empty()) added = concat({ends_with(text, "\n"sv) ? "\n" : "\n\n", added});
    begin = end = text.size();
  }
  if (text.find("\r\n"sv) != npos)
    for (std::size_t at = 0; (at = added.find('\n', at)) != npos; at += 2)
      added.insert(at, 1, '\r');
  text.replace(begin, end - begin, added);
  return {};
}

// The difference ---------------------------------------------------------------------------------

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) lines.push_back(take_part(text, '\n'));
  return lines;
}

// Lines from `begin` up to `end` for a terminal, each behind `sign`, and at most 400 bytes of each.
void append_lines(std::string& out, char sign, const Lines& lines, std::size_t begin,
                  std::size_t end) {
  for (; begin < end; ++begin) {
    std::string_view line = lines[begin].substr(0, 400);
    out += sign;
    for (bool first = true; first || !line.empty(); first = false)
      append_all(out, {first ? "" : "\t", printable(take_part(line, '\t'))});
    out += lines[begin].size() > 400 ? " ...\n" : "\n";
  }
}

// A unified diff of one hunk: all edits are in one place.
std::string unified_diff(std::string_view path, const Lines& old, const Lines& edited) {
  constexpr std::size_t most_context = 3;
  const std::size_t shorter = std::min(old.size(), edited.size());
  std::size_t above = 0;  // lines that are the same at the start, and then at the end
  while (above < shorter && old[above] == edited[above]) ++above;
  std::size_t below = 0;
  while (below < shorter - above &&
         old[old.size() - 1 - below] == edited[edited.size() - 1 - below])
    ++below;
  const std::size_t begin = above - std::min(above, most_context);
  const std::size_t more = std::min(below, most_context);
  const std::size_t old_end = old.size() - below;
  std::string diff =
      concat("--- %\n+++ %\n@@ -%,% +%,% @@\n",
             {old.empty() ? "/dev/null" : path, path, old.empty() ? 0 : begin + 1,
              old_end + more - begin, begin + 1, edited.size() - below + more - begin});
  append_lines(diff, ' ', old, begin, above);
  append_lines(diff, '-', old, above, old_end);
  append_lines(diff, '+', edited, above, edited.size() - below);
  append_lines(diff, ' ', old, old_end, old_end + more);
  return diff;
}

// Files ------------------------------------------------------------------------------------------

// The user's file of a client; empty when the variables name no folder for it.
std::string client_file(const Client& client) {
  const char* folder = std::getenv(client.variable);
  const bool has_own = folder && folder[0] == '/';
  if (!has_own) folder = std::getenv("HOME");
  if (!folder || folder[0] != '/') return {};
  return concat("%/%%", {folder, has_own ? "" : client.folder, client.file});
}

// Gives the old file a second name, which stays when a new file takes its first one: `name`, and
// whether it is new. A name that is in use is not taken, unless it has the same bytes. Returns what
// is wrong, or nothing.
std::string keep_old_file(const std::string& path, const std::string& text, std::string& name,
                          bool& is_new) {
  for (int number = 0; number < 100; ++number) {
    name = concat("%.bak", {path});
    if (number > 0) append_all(name, ".%", {number});
    is_new = ::link(path.c_str(), name.c_str()) == 0;
    if (!is_new && errno != EEXIST) return concat("%: %", {in_quotes(name), errno_text(errno)});
    // A link could lead to the file that is replaced.
    struct stat status {};
    const bool is_file = ::lstat(name.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (!is_new && !is_file) continue;
    const auto kept = read_whole_file(name, longest_client_file, "backup"sv);
    if (kept && *kept == text) return {};
    if (!is_new) continue;
    (void)::unlink(name.c_str());
    return "it changed meanwhile; end the client and try again";
  }
  return "it has 100 backups";
}

// Shows the difference, and puts the new text into the file. A symbolic link is followed once, and
// the file that it leads to is replaced. `path` becomes that of the file, and `backup` that of the
// old one, if there was one. Returns what is wrong, or nothing.
std::string write_client_file(ClientEntry& entry, std::string& path, std::string& backup) {
  if (entry.client->format == ClientFormat::yaml) return "YAML is not edited here";
  auto found = canonical_path(path);
  if (!found) return found.error().message;
  path = std::move(*found);
  const auto old = read_whole_file(path, longest_client_file, "file of the client"sv);
  FileWrite how;
  how.only_new = !old && old.error().system_error == ENOENT;
  if (!old && !how.only_new) return old.error().message;
  const std::string text = old ? *old : std::string();
  std::string edited = text;
  std::string problem;
  if (entry.client->format == ClientFormat::toml)
    problem = edit_toml(edited, entry);
  else if (text.find_first_not_of(json_blanks) == npos)
    edited = concat({entry.whole(), "\n"});
  else
    problem = edit_json(edited, entry);
  if (!problem.empty() || edited == text) return problem;
  if (!print(unified_diff(printable(path), lines_of(text), lines_of(edited))))
    return "cannot write to standard output";
  bool has_link = false;
  if (old) problem = keep_old_file(path, text, backup, has_link);
  if (!problem.empty()) return problem;
  ::umask(077);  // an option may hold a secret
  const auto written = Files(PathRules(), "/").write(path, edited, how);
  if (written) return problem;
  if (has_link) (void)::unlink(backup.c_str());
  return written.error().message;
}

}  // namespace

inline namespace inner {

// What to paste goes to standard output, or the difference; all else to standard error.
int run_client_config(const Invocation& invocation) {
  const Client* client = clients;
  while (client != std::end(clients) && *invocation.client_config != client->name) ++client;
  if (client == std::end(clients))
    return fail(2, concat("--client-config: % is none of claude-code, claude-desktop, cursor, "
                          "vscode, codex, gemini, massgen",
                          {in_quotes(*invocation.client_config)}));
  for (const std::string& word : invocation.words) {
    if (!is_utf8(word)) return fail(2, concat("%: not UTF-8", {in_quotes(word)}));
    if (client->replaced[0] && word.find(client->replaced) != npos)
      warn(concat("%: this client takes what follows % for a variable",
                  {in_quotes(word), client->replaced}));
  }
  ClientEntry entry = {client, {}, invocation.words};
  if (auto program = canonical_path("/proc/self/exe")) entry.program = std::move(*program);
  // A program that was replaced since it started has lost its path.
  if (::access(entry.program.c_str(), X_OK) != 0)
    return fail(1, concat("%: this program is not there any more", {in_quotes(entry.program)}));
  std::string path = invocation.write ? *invocation.write : std::string();
  if (path.empty()) path = client_file(*client);
  if (path.empty()) return fail(1, "HOME names no folder: give the client's file, as --write FILE");
  std::string message;
  if (invocation.write) {
    std::string backup;
    const std::string problem = write_client_file(entry, path, backup);
    if (problem.empty())
      return fail(0,
                  concat(backup.empty() ? "% has this entry" : "% is changed; the file before is %",
                         {printable(path), printable(backup)}));
    message = concat("%: %; nothing was written, paste this", {in_quotes(path), problem});
  } else {
    message = concat(
        client->format == ClientFormat::yaml
            ? "put this below backend: of an agent, in % or any other file of yours%%"
            : "put this into %%%; --write puts it there",
        {printable(path), client->project[0] ? ", or of one project: " : "", client->project});
  }
  if (!print(concat({entry.whole(), "\n"}))) return fail(1, "cannot write to standard output");
  return fail(invocation.write ? 1 : 0, message);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
