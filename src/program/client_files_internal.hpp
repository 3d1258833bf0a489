// The files of MCP clients: where they are, what stands in them, and how they are changed.
//
//   client_table.cpp       the clients, and the files that belong together
//   client_entry.cpp       what goes into such a file, and what a file has of it
//   client_protection.cpp  what an entry protects, and what a new one would lose
//   json_edit.cpp, toml_edit.cpp     changes within a text, which keep all other bytes
//   client_write.cpp       a changed file takes the place of the one before
//   client_config.cpp      the command, --client-config
//   client_examine.cpp     what --doctor says of them
#pragma once

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The table ---------------------------------------------------------------------------------------

// The form of an entry in a client's file.
enum class EntryFormat : char {
  json,           // {"command": PROGRAM, "args": [...]}
  typed_json,     // with "type": "stdio"
  copilot_json,   // with "type": "local" and "tools"
  opencode_json,  // {"type": "local", "command": [PROGRAM, ...], "enabled": true}
  toml,
  yaml
};

// The names that lead to a value in a file, from the outermost object on.
using MemberPath = std::vector<std::string_view>;

// Where a file is: $variable/file, or ~/folder/file when the variable has no absolute path.
struct UserFile {
  const char* variable;
  const char* folder;  // empty, or with a `/`
  const char* file;
};

// The setting of a client that switches its own command tool off.
struct OwnShell {
  constexpr bool has_setting() const { return path[0] != nullptr; }
  MemberPath member() const {
    MemberPath names;
    for (const char* const name : path)
      if (name) names.emplace_back(name);
    return names;
  }
  // A file of its own, for the user and for a project. Else it stands in the file with the servers.
  constexpr bool has_file() const { return user.file != nullptr; }

  const char* tool = nullptr;   // as the client's documents call it; null: it has none
  const char* by_hand = "";     // what to do where there is no setting in a file
  const char* path[5] = {};     // of the member
  const char* value = nullptr;  // in it, or what the member is
  bool is_list = false;         // the value is one of a list
  UserFile user = {"", "", nullptr};
  const char* project = nullptr;
};

// A client. Each function sets the columns that its name and arguments name.
struct Client {
  constexpr Client(const char* its_name, const char* its_title, EntryFormat its_format)
      : name(its_name), title(its_title), format(its_format) {}

  // `servers`: the name of the object with the servers.
  constexpr Client& user_file(const char* servers, UserFile file) {
    key = servers;
    user = file;
    return *this;
  }
  // The file of one project, for the same servers.
  constexpr Client& project_file(const char* file) {
    project = file;
    return *this;
  }
  // A folder of the home that is there when the client is; else that of its file.
  constexpr Client& sign(const char* folder) {
    installed = folder;
    return *this;
  }
  // The sign at which the client puts values into arguments.
  constexpr Client& replaces(const char* text) {
    replaced = text;
    return *this;
  }
  // Its member of an entry that lets the model call the tools without a question each time.
  constexpr Client& approval(const char* member, const char* value, const char* words) {
    approval_member = member;
    approval_value = value;
    approval_words = words;
    return *this;
  }
  // A member of the file that switches the tool off.
  constexpr Client& shell(const char* tool, OwnShell setting) {
    own_shell = setting;
    own_shell.tool = tool;
    return *this;
  }
  // There is none, and the person does it.
  constexpr Client& shell_by_hand(const char* tool, const char* how) {
    own_shell.tool = tool;
    own_shell.by_hand = how;
    return *this;
  }

  const char* name;
  const char* title;
  EntryFormat format;
  const char* key = "";
  UserFile user = {"", "", ""};
  const char* project = "";
  const char* installed = "";
  const char* replaced = "";
  const char* approval_member = nullptr;
  const char* approval_value = nullptr;  // JSON
  const char* approval_words = "";       // how it asks, and what to do without a person
  OwnShell own_shell = {};
};

// The clients in the order of the documents.
struct Clients {
  const Client* first;
  const Client* last;
  const Client* begin() const { return first; }
  const Client* end() const { return last; }
};
Clients known_clients();

// That client, or null.
const Client* find_client(std::string_view name);

// The names of all, with commas.
std::string client_names();

// Whether a folder of the client, or its file, is there.
bool seems_installed(const Client& client);

// Where an entry of a client goes, and its setting.
struct ClientPlace {
  std::string file = {};
  std::string settings = {};  // empty: there is none that goes with such a file
  std::string project = {};   // a folder that neither file may be outside of; or empty
};

// `file` as the user gave it; empty: the client's usual one. Fails when there is none.
Expected<ClientPlace> client_place_of(const Client& client, const std::string& file);

// The text of a file -----------------------------------------------------------------------------

// Functions that change a text return what is wrong with it, or nothing. A text in which something
// is wrong is not changed for good.

// Sets the value of a member, and makes the objects around it.
std::string set_json_member(std::string& text, const MemberPath& path, const Json& value);

// Adds a text to the list at `path`, which is made when it is not there.
std::string add_to_json_list(std::string& text, const MemberPath& path, std::string_view item);

// Takes a member out, and the objects around it that have no other, but not the outermost one.
std::string remove_json_member(std::string& text, const MemberPath& path);

// Takes a text out of a list, and the list with it when it had no other.
std::string remove_from_json_list(std::string& text, const MemberPath& path, std::string_view item);

// Why a text is no JSON object that can be edited; empty: it is one. A text of blanks is.
std::string json_trouble(std::string_view text);

// A table of a TOML file, as far as it is read here: by lines.
struct TomlTable {
  const char* header;  // such as "[mcp_servers.codeexec]"
  const char* first;   // the first name in it
  const char* last;    // and the last, when there are two
};
inline constexpr TomlTable codex_server = {"[mcp_servers.codeexec]", "mcp_servers", "codeexec"};
inline constexpr TomlTable codex_features = {"[features]", "features", ""};

// A line of a table: the key, and all behind its `=`.
struct TomlLine {
  std::size_t begin = 0;  // in the text
  std::size_t end = 0;    // behind its line end
  std::string_view key = {};
  std::string_view value = {};
};
struct TomlLines {
  bool is_there = false;
  std::size_t begin = 0;  // of the header
  std::size_t end = 0;    // of the last line that is not empty
  std::vector<TomlLine> lines = {};
};

// The lines of a table; those of none when it is not there. Fails for a text that may have it in
// another form, or a value of several lines in it.
Expected<TomlLines> read_toml_table(std::string_view text, const TomlTable& table);

// A value of one line: a text, a list of texts or a truth. Null: it is another one.
Json toml_value(std::string_view value);

// Sets keys of a table, which is made when it is not there.
std::string set_toml_keys(std::string& text, const TomlTable& table, const Json& members);

// Takes keys out; with no key in `keys` the whole table. A table without keys goes, too.
std::string remove_toml_keys(std::string& text, const TomlTable& table,
                             const std::vector<std::string_view>& keys);

// A file -----------------------------------------------------------------------------------------

// A file that is read, edited, shown and then written.
struct ClientFile {
  // Reads it. A symbolic link is followed, and `path` becomes that of the file, but not out of
  // `project`. Returns what is wrong, or nothing.
  std::string read(const std::string& name, const std::string& project);
  // The difference; empty when there is none.
  std::string difference() const;
  // Replaces the file. Returns what is wrong, or nothing.
  std::string write();

  std::string path = {};
  bool is_new = false;
  std::string before = {};
  std::string text = {};
  std::string backup = {};  // after write(): the file with the old bytes, or empty
};

// The most bytes of a client's file, which is read whole.
inline constexpr std::size_t longest_client_file = std::size_t{8} << 20;

// An entry ---------------------------------------------------------------------------------------

inline constexpr std::string_view server_name = "codeexec";

// The variable of our entry that says that its setting was made here, and what was there before.
// In TOML a comment behind the setting does.
inline constexpr const char* shell_variable = "CODEEXEC_ONLY_SHELL";

// The entry of this server in a file, as it was found.
struct FoundEntry {
  bool is_there = false;
  bool is_ours = true;  // it starts a program that may be this one
  std::string program = {};
  std::vector<std::string> words = {};
  bool has_approval = false;
  bool is_approved = false;                      // with the value that is written here
  std::optional<std::string> shell_before = {};  // the variable's value
};

// The members of an entry, but for the approval.
Json entry_members(const Client& client, const std::string& program,
                   const std::vector<std::string>& words);

// The whole file with nothing but such an entry, for a person to paste.
std::string entry_text(const Client& client, const Json& members);

// Fails when the text cannot be read.
Expected<FoundEntry> find_entry(const Client& client, std::string_view text);

// What of an entry in `text` is to be changed.
struct EntryChange {
  Json members = {};
  bool approve = false;
  bool disapprove = false;
  std::optional<std::string> shell_before = {};  // the variable is set to it
};
std::string change_entry(const Client& client, std::string& text, const EntryChange& change);
std::string remove_entry(const Client& client, std::string& text);

// Whether the setting is in force in that text, and of which bytes it was before.
Expected<bool> is_shell_off(const Client& client, std::string_view text);
// `before` becomes what remove_shell_setting() needs to put it back.
std::string add_shell_setting(const Client& client, std::string& text, std::string& before);
// Only a setting that was made here. `was_ours`: it was, and is gone.
std::string remove_shell_setting(const Client& client, std::string& text,
                                 const std::optional<std::string>& before, bool& was_ours);

// Protection -------------------------------------------------------------------------------------

// Whether commands of a server with these options are held to some place.
bool is_confined(const ServerConfig& config);

// Whether such words of an entry hold them, as far as words show.
bool words_confine(const std::vector<std::string>& words);

// What the options protect, in a line.
std::string protection_text(const ServerConfig& config);

// Lines about what they do not.
std::vector<std::string> protection_warnings(const ServerConfig& config);

// What the entry has that the new options do not: why it is not replaced; or empty.
std::string lost_protection(const FoundEntry& entry, const ServerConfig& config);

// --doctor ---------------------------------------------------------------------------------------

// A line for each client whose file is there: is our entry in it, and is its own shell on?
void add_clients(DoctorReport& report);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
