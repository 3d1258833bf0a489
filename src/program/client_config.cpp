// --client-config: what a client's configuration needs to start this server; --write, --only-shell
// and --remove.
//
//   read the files -> edit their texts -> what will be protected, the difference -> write
//
// What to paste goes to standard output, or the difference; all else to standard error. A file that
// is not understood for certain (comments in JSON, YAML, unusual TOML) stays as it is, and what to
// paste is printed.

#include "program/client_files_internal.hpp"
#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "code/code_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// One run of the command.
struct ClientCommand {
  const Client& client;
  const ProgramConfig& call;
  const ServerConfig& config;
  ClientPlace place = {};
  ClientFile servers = {};
  ClientFile settings = {};  // not read when the setting stands among the servers
  EntryChange change = {};

  bool has_settings_file() const { return place.settings != place.file; }
  // Where the setting stands.
  ClientFile& shell_file() { return has_settings_file() ? settings : servers; }
};

// Of options of a server, that a client or its shell may take for something else.
std::string check_client_words(const Client& client, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!is_utf8(word)) return concat("%: not UTF-8", {in_quotes(word)});
    if (client.replaced[0] && word.find(client.replaced) != std::string::npos)
      warn(concat("%: this client takes what follows % for a variable",
                  {in_quotes(word), client.replaced}));
  }
  return {};
}

// Our members of the entry, with the approval if there is one.
Json whole_entry(const ClientCommand& command) {
  Json members = command.change.members;
  if (command.change.approve)
    members.set(command.client.approval_member, *Json::parse(command.client.approval_value));
  return members;
}

void tell_protection(const ClientCommand& command) {
  const Client& client = command.client;
  warn(protection_text(command.config));
  for (const std::string& line : protection_warnings(command.config)) warn(line);
  if (command.change.approve)
    warn(concat("approval: % is set, as the policy and the sandbox hold the commands; %",
                {client.approval_member, client.approval_words}));
  else if (client.approval_value)
    warn(concat("approval: % is not set, as commands are not confined; %",
                {client.approval_member, client.approval_words}));
  else if (client.approval_words[0])
    warn(concat("approval: %", {client.approval_words}));
}

// What to paste, and why it was not written.
int print_entry(const ClientCommand& command, int status, const std::string& message) {
  if (!print(entry_text(command.client, whole_entry(command))))
    return fail(1, "cannot write to standard output");
  return fail(status, message);
}

int refuse_file(const ClientCommand& command, const std::string& file, const std::string& problem) {
  return print_entry(command, 1,
                     concat("%: %; nothing was written, paste this", {in_quotes(file), problem}));
}

// Asks the person at the terminal. No answer is no.
bool ask_person(const Client& client) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return false;
  const std::string question =
      concat("Switch %'s own % off, so that commands go through codeexec only? [y/N] ",
             {client.title, client.own_shell.tool});
  if (write_all(STDERR_FILENO, question) != 0) return false;
  std::string answer;
  for (char c = '\0'; answer.size() < 100 && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';)
    answer += c;
  answer = in_lower_case(without_blanks(answer));
  return answer == "y" || answer == "yes";
}

// Switches the client's own command tool off, when that is wanted. Returns what is wrong, or
// nothing; `told` becomes what the person has to know of it.
std::string edit_shell(ClientCommand& command, std::string& told) {
  const Client& client = command.client;
  const OwnShell& shell = client.own_shell;
  const bool wanted = command.call.only_shell;
  if (!shell.tool) {
    if (wanted) told = concat("% has no setting for a command tool of its own", {client.title});
    return {};
  }
  if (!shell.has_setting()) {
    told = concat("%'s own % is on, and no setting of its files switches it off: %",
                  {client.title, shell.tool, shell.by_hand});
    return {};
  }
  if (command.place.settings.empty()) {
    told =
        concat("whether %'s own % is on is not known: its settings go with its usual file%%",
               {client.title, shell.tool, client.project[0] ? " and with " : "", client.project});
    return wanted ? told : std::string();
  }
  if (command.has_settings_file()) {
    std::string problem = command.settings.read(command.place.settings, command.place.project);
    if (!problem.empty())
      return wanted ? concat("%: %", {in_quotes(command.settings.path), problem}) : std::string();
  }
  ClientFile& file = command.shell_file();
  const auto is_off = is_shell_off(client, file.text);
  if (!is_off && !wanted) return {};
  if (!is_off) return concat("%: %", {in_quotes(file.path), is_off.error().message});
  if (*is_off) return {};
  if (!wanted && !ask_person(client)) {
    told = concat("%'s own % stays on, and nothing here confines it: --only-shell switches it off",
                  {client.title, shell.tool});
    return {};
  }
  std::string before;
  std::string problem = add_shell_setting(client, file.text, before);
  if (!problem.empty()) return concat("%: %", {in_quotes(file.path), problem});
  command.change.shell_before = before;
  return {};
}

// Shows the differences of both files.
bool print_differences(const ClientCommand& command) {
  return print(concat({command.servers.difference(), command.settings.difference()}));
}

// Writes a file that differs. `done` gets the words for it.
std::string write_changed(ClientFile& file, const char* what, std::vector<std::string>& done) {
  if (file.difference().empty()) return {};
  std::string problem = file.write();
  if (!problem.empty()) return problem;
  done.push_back(file.backup.empty() ? concat("% has this %", {printable(file.path), what})
                                     : concat("% is changed; the file before is %",
                                              {printable(file.path), printable(file.backup)}));
  return {};
}

// Writes both. When the second one fails, the first is said to be done.
int write_both(ClientCommand& command, bool setting_first) {
  std::vector<std::string> done;
  for (const bool is_first : {true, false}) {
    const bool is_setting = is_first == setting_first;
    ClientFile& file = is_setting ? command.settings : command.servers;
    const std::string problem = write_changed(file, is_setting ? "setting" : "entry", done);
    if (problem.empty()) continue;
    for (const std::string& line : done) warn(line);
    if (done.empty() && !command.call.remove) return refuse_file(command, file.path, problem);
    return fail(1, concat("%: %; it is as it was", {in_quotes(file.path), problem}));
  }
  for (const std::string& line : done) warn(line);
  return 0;
}

int write_entry(ClientCommand& command) {
  const Client& client = command.client;
  if (client.format == EntryFormat::yaml)
    return refuse_file(command, command.place.file, "YAML is not edited here");
  ClientFile& servers = command.servers;
  std::string problem = servers.read(command.place.file, command.place.project);
  if (!problem.empty()) return refuse_file(command, servers.path, problem);
  const auto entry = find_entry(client, servers.text);
  if (!entry) return refuse_file(command, servers.path, entry.error().message);
  problem = lost_protection(*entry, command.config);
  if (!problem.empty())
    return fail(1, concat("%: %; nothing was written", {in_quotes(servers.path), problem}));
  std::string told;
  problem = edit_shell(command, told);
  if (!problem.empty()) return fail(1, concat("%; nothing was written", {problem}));
  problem = change_entry(client, servers.text, command.change);
  if (!problem.empty()) return refuse_file(command, servers.path, problem);
  if (servers.difference().empty() && command.settings.difference().empty()) {
    if (!told.empty()) warn(told);
    return fail(0, concat("% has this entry", {printable(servers.path)}));
  }
  if (!seems_installed(client)) warn(concat("% does not seem to be installed", {client.title}));
  tell_protection(command);
  if (!told.empty()) warn(told);
  if (!print_differences(command)) return fail(1, "cannot write to standard output");
  return write_both(command, false);
}

// Takes the setting out of its file, if it was made here.
std::string restore_shell(ClientCommand& command, const FoundEntry& entry, std::string& told) {
  const Client& client = command.client;
  if (!client.own_shell.has_setting() || command.place.settings.empty()) return {};
  if (command.has_settings_file()) {
    std::string problem = command.settings.read(command.place.settings, command.place.project);
    if (!problem.empty()) return concat("%: %", {in_quotes(command.settings.path), problem});
  }
  ClientFile& file = command.shell_file();
  bool was_ours = false;
  const std::string problem = remove_shell_setting(client, file.text, entry.shell_before, was_ours);
  if (!problem.empty()) return concat("%: %", {in_quotes(file.path), problem});
  const auto is_off = is_shell_off(client, file.text);
  if (is_off && *is_off)
    told =
        concat("%'s own % stays off: that was not set here", {client.title, client.own_shell.tool});
  return {};
}

int remove_all(ClientCommand& command) {
  const Client& client = command.client;
  if (client.format == EntryFormat::yaml)
    return fail(1, "YAML is not edited here: take the server command_line out by hand");
  ClientFile& servers = command.servers;
  const auto refused = [](const std::string& why) {
    return fail(1, concat("%; nothing was written", {why}));
  };
  std::string problem = servers.read(command.place.file, command.place.project);
  if (!problem.empty()) return refused(concat("%: %", {in_quotes(servers.path), problem}));
  const auto entry = find_entry(client, servers.text);
  if (!entry) return refused(concat("%: %", {in_quotes(servers.path), entry.error().message}));
  std::string told;
  if (problem = restore_shell(command, *entry, told); !problem.empty()) return refused(problem);
  if (problem = remove_entry(client, servers.text); !problem.empty())
    return refused(concat("%: %", {in_quotes(servers.path), problem}));
  if (!told.empty()) warn(told);
  if (servers.difference().empty() && command.settings.difference().empty())
    return fail(0, concat("% has no entry for this server", {printable(servers.path)}));
  if (!print_differences(command)) return fail(1, "cannot write to standard output");
  return write_both(command, true);
}

int show_entry(const ClientCommand& command) {
  const Client& client = command.client;
  tell_protection(command);
  const bool is_yaml = client.format == EntryFormat::yaml;
  return print_entry(
      command, 0,
      concat(is_yaml ? "put this below backend: of an agent, in % or any other file of yours%%"
                     : "put this into %%%; --write puts it there",
             {printable(command.place.file), client.project[0] ? ", or of one project: " : "",
              client.project}));
}

}  // namespace

inline namespace inner {

int run_client_config(const ServerConfig& config) {
  const ProgramConfig& call = *config.program;
  const Client* const client = find_client(*call.client_config);
  if (!client)
    return fail(2, concat("--client-config: % is none of %",
                          {in_quotes(*call.client_config), client_names()}));
  if (const std::string problem = check_client_words(*client, call.words); !problem.empty())
    return fail(2, problem);
  ClientCommand command = {*client, call, config};
  auto place = client_place_of(*client, call.write.value_or(std::string()));
  if (!place) return fail(1, place.error().message);
  command.place = std::move(*place);
  if (call.remove) return remove_all(command);
  const auto program = own_program();
  if (!program) return fail(1, program.error().message);
  command.change.members = entry_members(*client, *program, call.words);
  command.change.approve = client->approval_value && is_confined(config);
  command.change.disapprove = client->approval_value && !is_confined(config);
  return call.write ? write_entry(command) : show_entry(command);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
