// The options that only the whole program has.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "paths/paths.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Members of what ProgramConfig has.
template <auto... members>
constexpr Option of_program(std::string_view name) {
  return Option::of<&ServerConfig::program, members...>(name);
}

constexpr Choice client_values[] = {
    "claude-code", "claude-desktop", "cursor",   "vscode",  "codex", "gemini",   "qwen",
    "opencode",    "cline",          "continue", "copilot", "zed",   "windsurf", "massgen"};

constexpr Option program_rows[] = {
    of_program<&ProgramConfig::transcript>("transcript")
        .value("FILE")
        .in(Option::records)
        .after("audit-output")
        .where(Option::commands)
        .often()
        .help("append commands and their output as Markdown"),
    of_program<&ProgramConfig::client_config>("client-config")
        .value("NAME")
        .in(Option::command_line)
        .after("check")
        .one_of(client_values)
        .help("print what this MCP client needs to start this server with the options beside it, "
              "and into which file that goes. NAME is claude-code, claude-desktop, cursor, vscode, "
              "codex, gemini, qwen, opencode, cline, continue, copilot, zed, windsurf or massgen"),
    of_program<&ProgramConfig::write>("write")
        .value("[FILE]")
        .usual("the client's own file")
        .bare()
        .in(Option::command_line)
        .help("put it there, or into FILE, and show the difference"),
    of_program<&ProgramConfig::only_shell>("only-shell")
        .in(Option::command_line)
        .help("with --write: switch the client's own command tool off, too. By its own settings; "
              "--remove switches it on again"),
    of_program<&ProgramConfig::remove>("remove")
        .in(Option::command_line)
        .help("with --client-config: take our entry out again. And what --only-shell has set; "
              "--write FILE names the file"),
    of_program<&ProgramConfig::massgen_path>("massgen-path")
        .in(Option::command_line)
        .help("print a folder in which this program is called fastmcp, as MassGen starts its "
              "servers. PATH=$(codeexec-mcp --massgen-path):$PATH massgen --config agents.yaml "
              "then runs commands by this program, and everything else as before"),
    of_program<&ProgramConfig::doctor>("doctor")
        .in(Option::command_line)
        .help("print what commands are kept from here and what not, and what is missing, a line "
              "each with its remedy. Of containers: engine, image, limits and so on. Exit status "
              "0: no line begins with FAIL; 1: one does"),
    of_program<&ProgramConfig::sandbox_report>("sandbox-report")
        .in(Option::command_line)
        .help("print as JSON what the sandbox enforces here and what is missing. Exit status 0: "
              "nothing is missing; 1: something is"),
    of_program<&ProgramConfig::explain>("explain")
        .in(Option::command_line)
        .help("with --sandbox-report: print each rule of the sandbox. What commands may read and "
              "write, which system calls are refused and with what error, namespaces and limits"),
    of_program<&ProgramConfig::verify_audit>("verify-audit")
        .value("FILE")
        .in(Option::command_line)
        .after("list-rules")
        .help(
            "print the lines of an audit log that are not as they were written. With --audit-key "
            "FILE those, too, that were not written with that key. Exit status 0: there are none; "
            "1: there are"),
    of_program<&ProgramConfig::last_hash>("last-hash")
        .value("HASH")
        .in(Option::command_line)
        .help("with --verify-audit: a hash that this log had at its end, as that printed it or as "
              "the log of the system has it. An error when no line has it"),
    of_program<&ProgramConfig::report>("report")
        .value("FILE...")
        .in(Option::command_line)
        .help("show audit logs as one page of HTML"),
    of_program<&ProgramConfig::output>("output")
        .value("FILE")
        .usual("standard output")
        .in(Option::command_line)
        .help("where that page goes"),
    of_program<&ProgramConfig::replay>("replay")
        .value("FILE")
        .in(Option::command_line)
        .help("run the commands of an audit log again, and print what differs"),
    of_program<&ProgramConfig::places>("places")
        .in(Option::command_line)
        .help("list our jobs, pods or containers that are in the engine"),
    of_program<&ProgramConfig::places_remove>("places-remove")
        .in(Option::command_line)
        .help("the same, and remove those of servers that are gone"),
    of_program<&ProgramConfig::json>("json")
        .in(Option::command_line)
        .help(
            "print these lists as JSON. So do --replay, --help-all and --sandbox-report --explain"),
    of_program<&ProgramConfig::help_all>("help-all")
        .in(Option::command_line)
        .after("help")
        .help("print all options"),
};
static_assert(are_complete(program_rows),
              "a row lacks a column, or has one that its kind has no use for");

// Options for the person who sets a client up, and not for the server.
constexpr std::string_view client_options[] = {"--client-config", "--write", "--only-shell",
                                               "--remove"};

// Collects the words that a client is to start the server with. It starts it in a folder of its own
// choice, so a file's relative path becomes an absolute one, unless it begins with a variable or
// `~`, or cannot be resolved. Returns the option that excludes --client-config, or null.
const Argument* keep_words(const ServerConfig& config, std::vector<std::string>& kept) {
  for (const Argument& argument : config.invocation.arguments) {
    if (is_one_of(argument.name, client_options)) continue;
    const Option* const option = config.options.find(std::string_view(argument.name).substr(2));
    if (option->group() == Option::command_line && option->name() != "config"sv) return &argument;
    const std::string_view value = option->value();
    const bool is_path = starts_with(value, "DIR"sv) || starts_with(value, "FILE"sv);
    kept.push_back(argument.name);
    for (const std::string& word : argument.words) {
      // A word with dashes was given with a `=`: else it would be another option.
      if (starts_with(word, "--"sv) || word == "-h") {
        append_all(kept.back(), {"=", word});
        continue;
      }
      kept.push_back(word);
      if (!is_path || "/$~"sv.find(word[0]) != std::string_view::npos) continue;
      if (auto path = canonical_path(word)) kept.back() = std::move(*path);
    }
  }
  return nullptr;
}

}  // namespace

inline namespace inner {

Rows<Option> program_options() { return program_rows; }

Expected<void> check_program_call(ServerConfig& config) {
  const auto wrong = [](const char* why, Pieces values = {}) {
    return make_error(ErrorCode::invalid_argument, why, values);
  };
  ProgramConfig& call = *config.program;
  Invocation& invocation = config.invocation;
  if (call.replay && (invocation.run || invocation.check))
    return wrong("--replay excludes --run and --check");
  if (call.replay && config.use == Option::users)
    return wrong("--replay has no commands for --profile");
  if (call.output && call.report.empty()) return wrong("--output is for --report");
  if (call.last_hash && !call.verify_audit) return wrong("--last-hash is for --verify-audit");
  if (call.sandbox_report && !(config.use & Option::kernel))
    return wrong("--sandbox-report has nothing to tell of a container; ask --doctor");
  if (call.lists_places() && !(config.use & Option::engines))
    return wrong("execution_mode % makes no places to list", {config.execution_mode});
  if (call.explain && !call.sandbox_report) return wrong("--explain is for --sandbox-report");
  if (call.json && !call.lists_places() && !call.replay && !call.help_all && !call.explain)
    return wrong("--json is for --places, --places-remove, --replay, --help-all and --explain");
  if (call.write && !call.client_config) return wrong("--write is for --client-config");
  if (call.remove && !call.client_config) return wrong("--remove is for --client-config");
  if (call.only_shell && (!call.write || call.remove))
    return wrong("--only-shell is for --client-config NAME --write");
  invocation.is_single |= call.doctor || call.sandbox_report || call.replay;
  if (!call.client_config) return {};
  if (const Argument* const other = keep_words(config, call.words))
    return wrong("--client-config and % exclude each other", {other->name});
  if (call.remove && !call.words.empty())
    return wrong("--remove and % exclude each other", {call.words[0]});
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
