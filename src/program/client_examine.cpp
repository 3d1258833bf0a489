// What the files of clients say of this server, for --doctor.

#include "program/client_files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What the file of a client says of this server.
struct ClientState {
  const Client* client;
  std::string file = {};
  std::string problem = {};  // why it cannot be read; then the rest is not known
  bool has_entry = false;
  bool is_ours = false;  // the entry starts this server
  bool is_confined = false;
  std::optional<bool> own_shell = {};  // whether its own command tool is on; empty: not known
};

// Whether the client's own command tool is on; empty: there is none, or no file says so.
std::optional<bool> own_shell_of(const Client& client, const ClientPlace& place,
                                 const ClientFile& servers) {
  if (!client.own_shell.has_setting() || place.settings.empty()) return {};
  ClientFile file = servers;
  if (place.settings != place.file && !file.read(place.settings, {}).empty()) return {};
  const auto is_off = is_shell_off(client, file.text);
  if (!is_off) return {};
  return !*is_off;
}

// The words about a file.
std::string state_text(const ClientState& state) {
  if (!state.problem.empty()) return concat("%: %", {in_quotes(state.file), state.problem});
  if (!state.has_entry)
    return concat("% has no entry for this server (--client-config % --write)",
                  {in_quotes(state.file), state.client->name});
  if (!state.is_ours)
    return concat("% has an entry % that starts another program",
                  {in_quotes(state.file), server_name});
  const OwnShell& shell = state.client->own_shell;
  std::string own;
  if (shell.tool && !shell.has_setting())
    own = concat("; its own % is no matter of its files: %", {shell.tool, shell.by_hand});
  else if (shell.tool && !state.own_shell)
    own = concat("; whether its own % is on is not known", {shell.tool});
  else if (shell.tool && *state.own_shell)
    own =
        concat("; its own % is on, and not confined here (--client-config % --write --only-shell)",
               {shell.tool, state.client->name});
  else if (shell.tool)
    own = concat("; its own % is off", {shell.tool});
  return concat(
      "% starts this server, %%",
      {in_quotes(state.file),
       state.is_confined ? "confined" : "NOT confined: leave --sandbox off out of it", own});
}

// Whether its commands run here, and confined. A client without our entry may be meant so.
bool is_well(const ClientState& state) {
  if (!state.problem.empty()) return false;
  return !state.is_ours || (state.is_confined && state.own_shell != true);
}

// Of those clients whose file is there.
std::vector<ClientState> examine_clients() {
  std::vector<ClientState> states;
  for (const Client& client : known_clients()) {
    if (client.format == EntryFormat::yaml) continue;
    const auto place = client_place_of(client, {});
    if (!place) continue;
    ClientFile file;
    ClientState state;
    state.client = &client;
    state.problem = file.read(place->file, {});
    state.file = file.path;
    if (state.problem.empty() && file.is_new) continue;
    if (state.problem.empty()) {
      const auto entry = find_entry(client, file.text);
      if (!entry) state.problem = entry.error().message;
      state.has_entry = entry && entry->is_there;
      state.is_ours = entry && entry->is_ours;
      state.is_confined = state.is_ours && words_confine(entry->words);
      state.own_shell = own_shell_of(client, *place, file);
    }
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace

inline namespace inner {

void add_clients(DoctorReport& report) {
  for (const ClientState& state : examine_clients()) {
    const std::string subject = concat({"client ", state.client->title});
    if (is_well(state))
      report.add(subject, true, "%", {state_text(state)});
    else
      report.doubt(subject, "%", {state_text(state)});
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
