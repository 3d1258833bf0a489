// Options of the server: the table, the command line, the configuration file.
//
// One table lists every option: its name, its kind, its help and the member that its value goes to.
//
//   command line ---split_arguments()--> words --+
//                                                +--> set_option() --> ServerConfig, as given
//   configuration ---config_words()----> words --+          |
//                                                           | settle_mode(): where commands run
//                                                           | settle_options(): options that stand
//                                                           |   for others, and the defaults that
//                                                           v   variables of this process give
//                                          create_place() or create_user_containers()
//
// The command line is read first, and wins. --help prints the same table; docs/options.md, the man
// page and the completions of shells are made from it by docs/options.py.
#pragma once

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "cluster/cluster.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// An enumeration's value until an option gives one.
template <class Choice>
inline constexpr Choice no_choice = static_cast<Choice>(-1);

// The options of the server. The table says which option sets which member.
struct ServerConfig {
  ServerConfig() {
    // When the client goes away, commands that ignore SIGTERM must be gone before serve() returns.
    local.kill_grace = std::chrono::milliseconds(300);
    local.timeout = std::chrono::milliseconds(0);  // not given: the default, or max_timeout if less
    user.max_artifact = 0;
  }

  LocalOptions local = LocalOptions();
  std::chrono::milliseconds usual_timeout = local.timeout;
  ToolOptions tools = ToolOptions();
  std::uint64_t max_output = tools.max_output;
  std::uint64_t audit_output = 0;
  std::string transcript = {};
  std::uint64_t max_concurrent = 16;  // as mcp::ServerOptions has it
  std::string policy_mode = "strict";
  std::vector<std::string> read_only = {};
  SandboxMode sandbox = SandboxMode::best_effort;
  std::uint64_t max_background_shells = tools.jobs.max_running;
  // Containers
  std::string execution_mode = {};  // not given: local, or docker when the profile needs that
  std::string profile = "commands";
  std::string user_id = {};
  Json credentials = {};
  Json packages = {};
  // Its container is that of every profile; its max_artifact is 0 when not given.
  UserContainerOptions user = UserContainerOptions();
  std::uint64_t usual_artifact = user.max_artifact;
  std::string container_network = codeexec::name(user.container.network);
  // Places
  std::string place_command = {};
  std::string place_host = {};
  static constexpr char usual_agent[] = "codeexec-mcp";
  std::string place_agent = usual_agent;
  PlaceWorkspace place_workspace = no_choice<PlaceWorkspace>;  // then shared, or remote in a pod
  // Its members of names that begin with copy_ are options, and keep_alive.
  PlaceOptions place = PlaceOptions();
  SlurmOptions slurm = {};
  KubernetesOptions kubernetes = {};
  std::chrono::milliseconds start_timeout = slurm.start_timeout;
  std::uint64_t kubernetes_lifetime = static_cast<std::uint64_t>(kubernetes.lifetime.count());
  std::uint64_t place_pool = 0;
  std::string greeting =
      {};  // for standard error, when it serves; empty: for a person on a terminal
  bool reach_place = false;  // at the start, and not when the first command needs it
  unsigned use = 0;  // an Option::Where: where commands run; settled when all options are read
  // What settle_options() finds of the folders of commands.
  bool is_bare = false;         // no option says where commands may work
  bool takes_roots = false;     // the roots of the client choose where
  bool narrows_roots = false;   // within the allowed paths alone
  std::string no_project = {};  // the folder it was started in, and why it is no project
  std::shared_ptr<const PrivateFolder> empty_folder = {};  // that commands then have in its place
};

// A row of the table of options. Rows are constant: their texts are parsed where they are used.
struct Option {
  // The form of a value, which has one parser; see set_option(). A size may have a unit, such as
  // 512m.
  enum Kind : unsigned char {
    text,
    keyed_text,  // KEY=value for the engine's `run`; the row's last part is the KEY
    choice,      // an enumerator; the row's last part has the names of all
    texts,       // this and those up to mounts are lists
    keyed_texts,
    roots,
    variables,
    mounts,
    seconds,
    whole,
    whole_or_0,
    bytes,
    bytes_or_0,
    decimal,
    flag,
    off,  // a flag that makes its variable false
    truth,
    json
  };
  // Where commands run, as a set. An option is an error where it has no effect.
  enum Where : unsigned char {
    local = 1,
    docker = 2,
    users = 4,
    command = 8,
    ssh = 16,
    slurm = 32,
    kubernetes = 64,
    made = slurm | kubernetes,  // by an engine
    installed = ssh | made,     // where the agent is started by its name
    places = command | installed,
    kernel = local | places,  // where a sandbox of ours can be
    commands = local | docker | places,
    containers = docker | users,
    engines = made | containers,  // where places of ours can be listed
    agents = containers | places,
    all = commands | users
  };
  // What help lists an option under: the headings of groups in help.cpp, in their order.
  enum Group : unsigned char {
    location,
    policy,
    confinement,
    limits,
    environment,
    background,
    records,
    contained,
    elsewhere,
    command_line  // on the command line only: `specials`
  };
  static constexpr bool often = true;
  // A variable that a value is written to, and how.
  struct Target {
    Kind kind;
    void* place;
    std::string_view detail = {};  // the last part of the row
    bool is_list() const { return kind >= texts && kind <= mounts; }
  };
  // The parts of a row, one a line; empty or missing ones are none.
  enum Part {
    name,       // of the command line; the configuration's key has `_` for `-`
    value,      // its name in --help; empty: it has none
    usual,      // the default, in words
    help,       // the first sentence for --help, all of it for --help-all
    other_key,  // of the configuration, that means the same
    detail      // see Kind; of a text: the values that there are, for the completions of shells
  };
  std::string_view row() const;
  std::string_view part(Part wanted) const { return part(row(), wanted); }
  static std::string_view part(std::string_view row, Part wanted);
  std::string key() const;
  Target target(ServerConfig& config) const;

  std::uint16_t row_begin = 0;  // in the texts of all rows
  std::uint16_t row_end = 0;
  std::uint16_t offset = 0;  // in ServerConfig
  Group group = location;
  Where use = all;
  Kind kind = text;
  bool is_often_needed = false;  // stands in --help

  static const Option* const table;  // in the order of help, group by group
  static const Option* end();        // of the table
};

// The row for which `passes` is true, or null.
const Option* find_option(FunctionRef<bool(const Option&)> passes);

// "OPTION: 'VALUE' is not EXPECTED".
SharedError bad_value(std::string_view option, std::string_view value, std::string_view expected);

// Finds the one of several names that another one was likely meant to be. Takes a time that does
// not grow with what was given.
class NearestName {
 public:
  explicit NearestName(std::string_view wanted);
  void consider(std::string_view name);
  // ": did you mean NAME?", with the prefix before the name; empty: none is near.
  std::string suggestion(std::string_view prefix = {}) const;

 private:
  const std::string wanted_;
  std::string found_ = {};
  std::size_t penalty_ = std::size_t(-1);  // of the one that was found
};

// What to write in place of an unknown option, key of the configuration file, execution mode, or
// word that is none of the choices: the end of a message, or nothing.
std::string meant_option(std::string_view name);
std::string meant_key(std::string_view key);
std::string meant_mode(std::string_view mode, std::string_view modes);
std::string meant_choice(std::string_view word, std::string_view choices);

// Puts the words that follow an option on the command line, or stand in the configuration, where
// they belong. `label` is how the user wrote the option. Errors: invalid_argument, which names it.
Expected<void> set_option(std::string_view label, const std::vector<std::string>& words,
                          const Option::Target& target);

using Options = std::vector<const Option*>;

bool contains(const Options& options, const Option* option);

// Options in `given` were set by the command line and are skipped. Adds those that it sets.
Expected<void> read_config(const std::string& path, ServerConfig& config, Options& given);

// The words of the command line that are not options of the table.
struct Invocation {
  bool help = false;
  bool help_all = false;
  bool version = false;
  std::optional<std::string> config = {};
  bool list_rules = false;
  bool list_domains = false;
  bool place = false;
  std::optional<std::string> verify_audit = {};
  std::vector<std::string> report = {};  // audit logs
  std::optional<std::string> output = {};
  std::optional<std::string> replay = {};
  bool sandbox_report = false;
  bool explain = false;
  bool doctor = false;
  bool places = false;
  bool places_remove = false;
  bool json = false;
  bool massgen_path = false;
  std::optional<std::string> run = {};
  std::optional<std::string> check = {};
  std::optional<std::string> client_config = {};
  std::optional<std::string> write = {};  // empty: the client's usual file
  bool only_shell = false;
  bool remove = false;
  // Options of the table that the command line or the configuration file has.
  Options given = {};
  // Of the command line, as a client is to give them: without these two options, and with files as
  // absolute paths.
  std::vector<std::string> words = {};
};

// An option that is no setting of the server, and where it goes: one of the last three.
struct Special {
  const char* row;  // as in Option
  bool Invocation::*flag;
  std::optional<std::string> Invocation::*text = nullptr;
  std::vector<std::string> Invocation::*texts = nullptr;
};

inline constexpr Special specials[] = {
    {"config\nFILE\n\nread options from a JSON object; the command line wins", nullptr,
     &Invocation::config},
    {"run\nCOMMAND\n\nrun one command instead of serving, and print its result as JSON. Exit "
     "status 0: it succeeded; 1: it failed; 125: it was refused or not started",
     nullptr, &Invocation::run},
    {"check\nCOMMAND\n\nprint whether a command would be refused, and why, without running it. - "
     "reads JSON strings from standard input, one per line. Exit status 0: allowed; 1: refused; 3: "
     "a person must approve it",
     nullptr, &Invocation::check},
    {"client-config\nNAME\n\nprint what this MCP client needs to start this server with the "
     "options beside it, and into which file that goes. NAME is claude-code, claude-desktop, "
     "cursor, vscode, codex, gemini, qwen, opencode, cline, continue, copilot, zed, windsurf or "
     "massgen\n\n"
     "claude-code, claude-desktop, cursor, vscode, codex, gemini, qwen, opencode, cline, continue, "
     "copilot, zed, windsurf, massgen",
     nullptr, &Invocation::client_config},
    {"write\n[FILE]\nthe client's own file\nput it there, or into FILE, and show the difference",
     nullptr, &Invocation::write},
    {"only-shell\n\n\nwith --write: switch the client's own command tool off, too. By its own "
     "settings; --remove switches it on again",
     &Invocation::only_shell},
    {"remove\n\n\nwith --client-config: take our entry out again. And what --only-shell has set; "
     "--write FILE names the file",
     &Invocation::remove},
    {"massgen-path\n\n\nprint a folder in which this program is called fastmcp, as MassGen starts "
     "its servers. PATH=$(codeexec-mcp --massgen-path):$PATH massgen --config agents.yaml then "
     "runs "
     "commands by this program, and everything else as before",
     &Invocation::massgen_path},
    {"doctor\n\n\nprint what commands are kept from here and what not, and what is missing, a line "
     "each with its remedy. Of containers: engine, image, limits and so on. Exit status 0: no line "
     "begins with FAIL; 1: one does",
     &Invocation::doctor},
    {"sandbox-report\n\n\nprint as JSON what the sandbox enforces here and what is missing. Exit "
     "status 0: nothing is missing; 1: something is",
     &Invocation::sandbox_report},
    {"explain\n\n\nwith --sandbox-report: print each rule of the sandbox. What commands may read "
     "and write, which system calls are refused and with what error, namespaces and limits",
     &Invocation::explain},
    {"list-rules\n\n\nprint what the sanitizer's rules refuse", &Invocation::list_rules},
    {"list-domains\n\n\nprint the sets of names for --allow-domains", &Invocation::list_domains},
    {"verify-audit\nFILE\n\nprint the lines of an audit log that are not as they were written",
     nullptr, &Invocation::verify_audit},
    {"report\nFILE...\n\nshow audit logs as one page of HTML", nullptr, nullptr,
     &Invocation::report},
    {"output\nFILE\nstandard output\nwhere that page goes", nullptr, &Invocation::output},
    {"replay\nFILE\n\nrun the commands of an audit log again, and print what differs", nullptr,
     &Invocation::replay},
    {"places\n\n\nlist our jobs, pods or containers that are in the engine", &Invocation::places},
    {"places-remove\n\n\nthe same, and remove those of servers that are gone",
     &Invocation::places_remove},
    {"json\n\n\nprint these lists as JSON. So do --replay, --help-all and --sandbox-report "
     "--explain",
     &Invocation::json},
    {"place\n\n\ntake orders on standard input, as the far end of a place. Modes ssh and command "
     "start it",
     &Invocation::place},
    {"help\n\n\nprint the options that are needed most often", &Invocation::help},
    {"help-all\n\n\nprint all options", &Invocation::help_all},
    {"version\n\n\nprint the version", &Invocation::version},
};

// One option of the command line and the words that follow it, up to the next option.
struct Argument {
  std::string name;  // with its dashes
  std::vector<std::string> words;
};
Expected<std::vector<Argument>> split_arguments(int argc, char** argv);

// Reads the command line and then the configuration file it names, into `config`. Starts nothing.
Expected<Invocation> read_command_line(int argc, char** argv, ServerConfig& config);

// The path of this program. Error: io; one that was replaced since it started has lost its path.
Expected<std::string> own_program();

// Whether this program was called under the name of the program that starts MassGen's servers.
bool is_called_fastmcp(int argc, char** argv);

// Whether a call under that name starts MassGen's code execution server, which this program is then
// itself.
bool starts_massgen_server(int argc, char** argv);

// Reads the arguments of that server into `config`. Errors: those of read_command_line(), and
// invalid_argument for what MassGen's server does not know, or what is not held here.
Expected<Invocation> read_massgen_call(int argc, char** argv, ServerConfig& config);

// Becomes the next program of that name on the PATH. Returns only when there is none: the exit
// status, after a message.
int run_next_fastmcp(char** argv);

// The exit status of --massgen-path.
int print_massgen_path();

// Holds commands to the settings of the sandbox-runtime, in a strict sandbox. `paths` are the
// directories that commands may start in. Nothing that the settings deny is allowed: what cannot be
// held is an error, and what they allow and is not granted is a warning.
Expected<void> apply_srt_settings(const std::string& file, const std::vector<std::string>& paths,
                                  ServerConfig& config);

// --help, and --help-all.
std::string help_text(bool all);

// All options as JSON, one object for each, in the order of --help-all.
std::string help_json();

std::string rules_text();

// Adds the words of a text to that of a list, and ends the line. Lines are broken before column 80;
// those that follow begin after `indent` blanks.
void add_wrapped(std::string& list, std::string_view text, std::size_t indent);

// Replaces the library's name of an option, with which an error begins, by that of the program.
// `container`: the error may be of ContainerOptions.
SharedError in_our_words(Error error, bool container = false);

// Writes a line to standard error.
void warn(const std::string& message);

// Settles options that stand for several others, in the members that the library's options are
// made of, and reads the variables of this process that are defaults of options. Starts nothing. It
// makes an empty folder for commands that have no project.
// Called once, after read_command_line(); what follows needs it.
Expected<void> settle_options(ServerConfig& config);

// The part of it that is about the workspace, the roots and the mode of the sandbox.
Expected<void> settle_folders(ServerConfig& config);

// Why a directory is no project of a user, such as "is a home directory"; empty: it may be one.
std::string project_problem(const std::string& path);

// What results say when there is no project; empty: there is one.
std::string note_of_no_project(const ServerConfig& config);

Expected<UserContainers> create_user_containers(ServerConfig& config);

ContainerExecutorOptions container_executor_options(const ServerConfig& config);

KubernetesOptions kubernetes_options(const ServerConfig& config);

// Where commands run.
struct CommandPlace {
  std::optional<PlacePool> pool = {};  // that the executor takes from
  ExecutorPointer executor = {};
  SandboxReport sandbox = SandboxReport();  // where they run, but for containers
  std::optional<PlaceFacts> facts = {};     // of a place
};

Expected<CommandPlace> create_place(const ServerConfig& config);

// The folders that commands of a client work in: those of its roots, as far as the operator allows
// them, or those that there were at the start. Safe from any thread.
class ClientFolders {
 public:
  // `config` must outlive it. `check` may refuse an executor of other folders.
  ClientFolders(const ServerConfig& config, ExecutorPointer first,
                Function<Expected<void>(const Executor&)> check);

  // See ToolChoice. The first call that needs the roots waits for them, for two seconds at most.
  std::shared_ptr<ToolSet> choose(const mcp::Call& call, bool in_folder);

 private:
  using RootList = std::shared_ptr<const Json>;

  std::shared_ptr<ToolSet> current();
  std::shared_ptr<ToolSet> take(const RootList& list);
  Expected<std::shared_ptr<ToolSet>> set_of(const std::vector<Root>& roots);

  const ServerConfig& config_;
  PathRules named_;  // the roots that options name
  const Function<Expected<void>(const Executor&)> check_;
  const std::shared_ptr<SharedTools> shared_;
  std::mutex mutex_ = {};  // guards all that follows
  std::shared_ptr<ToolSet> first_ = {};
  std::shared_ptr<ToolSet> current_ = {};
  RootList list_ = {};  // that `current_` was made for
  bool told_silence_ = false;
  std::vector<std::pair<std::string, std::shared_ptr<ToolSet>>> sets_ = {};  // last used at the end
};

// Sentences for the instructions, about what describe() does not know; each after a blank.
std::string describe_folders(const ServerConfig& config, const Executor& executor);

// The lines of --doctor. Each begins with "ok   ", "warn " or "FAIL ", and what is not well ends
// with a remedy. Only FAIL makes the exit status 1: what the operator may well want is a warning.
struct DoctorReport {
  // Adds the line of a subject, and returns `is_well`. The message says what was found, and how to
  // mend what is wrong; empty: the subject says all.
  bool add(std::string_view subject, bool is_well, const char* form = "", Pieces values = {});
  // Adds a warning.
  void doubt(std::string_view subject, const char* form, Pieces values = {});
  void add_line(const char* state, std::string_view subject, std::string_view message);
  // Prints the lines, in colours on a terminal. Returns the exit status.
  int print() const;

  std::string text = {};
  bool all_is_well = true;
};

// Examines whether commands can run in such a container: their engine, image, container, user,
// network and limits. Ends at the first step without which the others make no sense.
DoctorReport examine_container(ContainerExecutorOptions options);

// Of commands that run anywhere else.
DoctorReport examine_place(const ServerConfig& config, const CommandPlace& place);

// What holds commands back there, and what does not, in words of a user; then each feature of the
// sandbox by its name in a report.
void examine_protection(const ServerConfig& config, const CommandPlace& place,
                        DoctorReport& report);

// The exit status of --client-config, with --write or --remove.
int run_client_config(const Invocation& invocation, const ServerConfig& config);

// The exit status of --places and --places-remove.
int list_places(const ServerConfig& config, bool remove_left, bool as_json);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
