// The server program: its configuration, its features, and the steps from one to the other.
//
//   command line ---split_arguments()--> words --+
//                                                +--> set_option() --> ServerConfig, as given
//   configuration ---config_words()----> words --+          |
//                                                           | settle_mode(): where commands run
//                                                           | settle_options(): options that stand
//                                                           |   for others, and the defaults that
//                                                           v   variables of this process give
//                                                       create_place()
//
// The command line is read first, and wins.
//
// The server runs commands on this host. All else comes by features, each of a room that knows what
// it is about (`containers`, `places`, `network`, `program`): a Feature has its rows for the
// table of options, its modes for --execution-mode, and functions that the server calls at its
// steps. Nothing here names a function of such a room, so that a server without the feature links
// without the room.
#pragma once

#include "tools/option_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// The tag that server_main() takes.
struct ServerFeature {};

inline namespace inner {

// One option of the command line and the words that follow it, up to the next option.
struct Argument {
  std::string name;  // with its dashes
  std::vector<std::string> words;
};

// What the command line asks for beside settings. A feature has more of it in its own part of the
// configuration.
struct Invocation {
  bool help = false;
  bool version = false;
  bool list_rules = false;
  bool list_domains = false;
  bool place = false;  // the option --place, of all features that have agents
  std::optional<std::string> config = {};
  std::optional<std::string> run = {};
  std::optional<std::string> check = {};
  // It answers one question or runs one command, and does not serve.
  bool is_single = false;
  // The command line was another program's, which has been called instead: its exit status.
  std::optional<int> ended = {};
  std::vector<Argument> arguments = {};
  // Settings that the command line or the configuration file has.
  Options given = {};
};

// Where commands run.
struct CommandPlace {
  std::shared_ptr<void> owner = {};  // of what the executor uses
  ExecutorPointer executor = {};
  SandboxReport sandbox = SandboxReport();  // where they run, but for containers
};

// What features set; see their rooms. A server without a feature has none of it.
struct ContainerConfig;
struct PlaceConfig;
struct ProgramConfig;
struct Feature;

// What the text of a result is, and who gets the object beside it: --result-text.
enum class ResultText { automatic, plain, json };

// The options of the server, and what is made of them. The table says which option sets which
// member.
struct ServerConfig {
  explicit ServerConfig(std::initializer_list<const ServerFeature*> of_server = {});

  LocalOptions local = LocalOptions();
  std::chrono::milliseconds usual_timeout = local.timeout;
  ToolOptions tools = ToolOptions();
  std::uint64_t max_output = tools.max_output;
  ResultText result_text = ResultText::automatic;
  std::uint64_t audit_output = 0;
  std::uint64_t max_concurrent = 16;  // as mcp::ServerOptions has it
  std::string policy_mode = "strict";
  std::vector<std::string> read_only = {};
  SandboxMode sandbox = SandboxMode::best_effort;
  std::uint64_t max_background_shells = tools.jobs.max_running;
  std::string execution_mode = {};  // not given: local, or as the profile needs it
  std::string agent = {};           // --place-agent, of all features that have agents
  Invocation invocation = {};
  std::shared_ptr<ContainerConfig> containers = {};
  std::shared_ptr<PlaceConfig> places = {};
  std::shared_ptr<ProgramConfig> program = {};

  const std::vector<const Feature*> features;
  OptionTable options = {};  // of the server and its features
  ExecutorWings wings = {create_guard, open_audit_log, nullptr,
                         {},           keep_later,     runs_later};  // the network is a feature

  // What features find in their options, and the server goes by.
  std::string greeting = {};      // to standard error, when it serves; empty: to a person alone
  bool reach_place = false;       // at the start, and not when the first command needs it
  bool works_elsewhere = false;   // the workspace is at the place, and not here
  std::string profile_text = {};  // what the options must fit; empty: the mode
  // Variables that this process keeps although commands do not see them; a `*` as in
  // EnvironmentOptions::keep. keeps_variables: all of them.
  std::vector<std::string> kept_variables = {};
  bool keeps_variables = false;
  int (*serve)(ServerConfig& config) = nullptr;  // in place of serve_commands()
  int (*run_agent)(int in, int out) = nullptr;   // for --place

  unsigned use = 0;  // an Option::Where: where commands run; settled when all options are read
  // What settle_options() finds of the folders of commands.
  bool is_bare = false;         // no option says where commands may work
  bool takes_roots = false;     // the roots of the client choose where
  bool narrows_roots = false;   // within the allowed paths alone
  std::string no_project = {};  // the folder it was started in, and why it is no project
  std::shared_ptr<const PrivateFolder> empty_folder = {};  // that commands then have in its place
};

// Features ---------------------------------------------------------------------------------------

// A value of --execution-mode. An Option::Where of each is known to all rooms, as options name
// those in which they have an effect.
struct ServerMode {
  std::string_view name;
  Option::Where use;
  Expected<CommandPlace> (*create)(const ServerConfig& config);
};

// What a feature adds to the help of an option that is not its own.
struct OptionNote {
  std::string_view option;
  std::string_view text;
};

// Names of the library and the options that they are, for errors.
struct OptionName {
  std::string_view in_library;
  std::string_view option;
};

// The server at one of the moments when a feature may answer in place of it.
struct ServerStep {
  enum Moment {
    called,    // the command line is read; for what needs no place and no settled options
    guarded,   // signals are ignored, and other processes of the user cannot look into this one
    settled,   // options are settled
    unplaced,  // the place could not be made
    examined,  // the place is there, and warnings about its options are out
    ready      // `stop` is cancelled by SIGTERM and the like
  };
  Moment moment;
  ServerConfig& config;
  const Expected<CommandPlace>* place = nullptr;  // from `unplaced` on
  const CancelToken* stop = nullptr;
};

// What a ServerFeature is: there are no others. Each function may be null.
struct Feature : ServerFeature {
  Rows<Option> (*options)() = nullptr;
  Rows<ServerMode> modes = {};
  // The modes in the help of --execution-mode: in its first sentence, and in the others.
  std::string_view modes_in_short = {};
  std::string_view modes_in_full = {};
  Rows<OptionNote> notes = {};

  // Makes the feature's part of a configuration.
  void (*begin)(ServerConfig& config) = nullptr;
  // Reads a command line that is not of this program's usual form. False: it is.
  Expected<bool> (*read)(int argc, char** argv, ServerConfig& config) = nullptr;
  // Chooses the mode, when no option has; refuses what the modes do not decide.
  Expected<void> (*choose_mode)(ServerConfig& config) = nullptr;
  // Checks the options as they were given, and settles what other checks go by.
  Expected<void> (*check)(ServerConfig& config) = nullptr;
  // Refuses options of the command line that exclude each other, or that the settings leave no
  // meaning for.
  Expected<void> (*check_call)(ServerConfig& config) = nullptr;
  // Settles options that stand for others; see settle_options().
  Expected<void> (*settle)(ServerConfig& config) = nullptr;
  // The exit status, when the program has ended by this.
  std::optional<int> (*answer)(const ServerStep& step) = nullptr;
  // Refuses an executor that the options do not fit. Called for each that is made.
  Expected<void> (*check_executor)(const ServerConfig& config, const Executor& executor) = nullptr;
};

// The option whose value is a mode, and the mode of a server without features.
inline constexpr std::string_view mode_option = "execution-mode";
Expected<CommandPlace> create_local(const ServerConfig& config);
inline constexpr ServerMode local_mode = {"local", Option::local, create_local};

// The rows of a server without features.
Rows<Option> server_options();

// The modes of a server: that of this host, then those of its features.
std::vector<ServerMode> modes_of(const ServerConfig& config);

// Of an option of that server: its help with what features add, and the words its value may be.
std::string full_help(const Option& option, const ServerConfig& config);
std::vector<std::string> choices_of(const Option& option, const ServerConfig& config);

// The option --place, of features that have agents: their agent is this program.
inline constexpr Option place_option =
    Option::of<&ServerConfig::invocation, &Invocation::place>("place")
        .in(Option::command_line)
        .after("list-rules")
        .help(
            "take orders on standard input, as the far end of a place. Modes ssh and command start "
            "it");

// Options -----------------------------------------------------------------------------------------

// Reads the configuration file. Options that the command line has given are skipped; adds those
// that it sets.
Expected<void> read_config(const std::string& path, ServerConfig& config);

Expected<std::vector<Argument>> split_arguments(int argc, char** argv, const ServerConfig& config);

// Reads the command line and then the configuration file it names, into `config`. Starts nothing.
Expected<void> read_command_line(int argc, char** argv, ServerConfig& config);

// Of an option that the mode or the profile has no use for.
SharedError without_effect(const Option& option, const ServerConfig& config,
                           const char* advice = "");

// --help, or with `all` --help-all. A server without --help-all shows all options.
std::string help_text(const ServerConfig& config, bool all);

// The heading of a group.
std::string_view group_name(Option::Group group);

std::string rules_text();

// Adds the words of a text to that of a list, and ends the line. Lines are broken before column 80;
// those that follow begin after `indent` blanks.
void add_wrapped(std::string& list, std::string_view text, std::size_t indent);

// Replaces the library's name of an option, with which an error begins, by that of the program.
// Names of a feature go before those of the server.
SharedError in_our_words(Error error, Rows<OptionName> names = {});

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

Expected<CommandPlace> create_place(const ServerConfig& config);

template <class T>
ExecutorPointer owned_executor(T&& executor) {
  return new_shared<const std::decay_t<T>>(std::forward<T>(executor));
}

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

// Serving -----------------------------------------------------------------------------------------

// Turns SIGTERM, SIGINT and SIGHUP into a cancelled token. The signals are blocked in this thread,
// hence in all that it starts later, and taken by one thread of its own; so nothing happens inside
// a signal handler.
class TerminationSignals {
 public:
  TerminationSignals();
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;
  const CancelToken& token() const { return token_; }
  // Why there is no such thread; empty: there is one.
  std::string problem() const;

 private:
  static void* wait_for_signal(void* self);
  void take_pending();

  sigset_t signals_ = {};
  sigset_t before_ = {};
  CancelToken token_ = {};
  pthread_t thread_ = {};
  int error_ = 0;
};

// Removes the variables of this process that commands do not see, but for those that features keep;
// the server needs no others. They are overwritten in their memory, which /proc/PID/environ shows
// to commands of root. Call it before there are other threads.
void drop_variables(const ServerConfig& config);

// In strict mode a pattern must match a whole command. A pattern without signs, such as `git push`
// in lists for other systems, is likely meant to match it with arguments, too.
void warn_of_bare_patterns(const ServerConfig& config);

// Prints the result of --run. Returns the exit status.
int print_result(const Result& result);

// Serves the tools that `add` adds. Returns the exit status.
int serve_tools(const ServerConfig& config, std::string instructions, const CancelToken& stop,
                FunctionRef<Expected<void>(mcp::Server&)> add);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
