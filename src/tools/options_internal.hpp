// Options of the server: the table, the command line, the configuration file.
//
// One table lists every option: its name, its kind, its help and where its value goes. The command
// line, the configuration file and --help are all read off that table.
#pragma once

#include "tools/tools.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "cluster/cluster.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"
#include "shells/shells.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

struct ServerConfig {
  ServerConfig() {
    local.kill_grace = std::chrono::milliseconds(300);
    local.timeout = std::chrono::milliseconds(0);  // not given: the default, or max_timeout if less
  }

  // When the client goes away, commands that ignore SIGTERM must be gone before serve() returns.
  LocalOptions local = LocalOptions();
  std::chrono::milliseconds usual_timeout = local.timeout;
  ToolOptions tools = ToolOptions();
  std::uint64_t max_output = tools.max_output;
  std::uint64_t audit_output = 0;
  std::uint64_t max_concurrent = 16;  // as mcp::ServerOptions has it
  std::string policy_mode = "strict";
  std::vector<std::string> read_only = {};
  std::string sandbox = {};  // not given: best_effort when the paths are, else off
  std::string network = "host";
  std::string private_home = name(local.private_home);
  bool no_watch_files = false;
  bool no_supervisor = false;
  bool enable_sudo = false;
  bool no_auto_venv = false;
  bool no_git_identity = false;
  std::uint64_t max_background_shells = tools.shells.max_running;
  // Containers
  std::string execution_mode = {};  // not given: local, or docker when the profile needs that
  std::string profile = "commands";
  std::string user_id = {};
  ContainerOptions container = ContainerOptions();
  std::string image_policy = name(container.image_policy);
  std::string container_network = name(container.network);
  std::string runtime = {};
  std::string gpus = {};
  std::vector<std::string> add_host = {};
  std::vector<std::string> dns = {};
  Json credentials = {};
  Json packages = {};
  bool packages_required = false;
  UserContainerOptions user = UserContainerOptions();
  // Places
  std::string place_command = {};
  std::string place_host = {};
  static constexpr char usual_agent[] = "codeexec-mcp";
  std::string place_agent = usual_agent;
  std::string place_workspace = {};  // not given: shared, or remote in a pod
  PlaceCopyOptions copy = PlaceCopyOptions();
  std::chrono::milliseconds keep_alive = PlaceOptions().keep_alive;
  SlurmOptions slurm = {};
  KubernetesOptions kubernetes = {};
  std::chrono::milliseconds start_timeout = slurm.start_timeout;
  std::uint64_t kubernetes_lifetime = static_cast<std::uint64_t>(kubernetes.lifetime.count());
  std::uint64_t place_pool = 0;
  bool reach_place = false;  // now, and not when a command needs it
  unsigned use = 0;  // an Option::Where: where commands run; settled when all options are read
};

struct Option {
  // Where its value goes, which decides what it may be. A size may have a unit, such as 512m.
  struct Target {
    enum class Kind {
      text,
      texts,
      roots,
      variables,
      mounts,
      seconds,
      whole,
      whole_or_0,
      size,
      size_or_0,
      decimal,
      flag,
      truth,
      json
    };
    Target(std::string* text) : kind(Kind::text), place(text) {}
    Target(std::vector<std::string>* texts) : kind(Kind::texts), place(texts) {}
    Target(std::vector<Root>* roots) : kind(Kind::roots), place(roots) {}
    Target(Variables* variables) : kind(Kind::variables), place(variables) {}
    Target(std::vector<Mount>* mounts) : kind(Kind::mounts), place(mounts) {}
    Target(std::chrono::milliseconds* time) : kind(Kind::seconds), place(time) {}
    Target(std::uint64_t* number) : kind(Kind::whole), place(number) {}
    Target(Kind number_kind, std::uint64_t* number) : kind(number_kind), place(number) {}
    Target(double* number) : kind(Kind::decimal), place(number) {}
    Target(bool* flag) : kind(Kind::flag), place(flag) {}
    Target(std::optional<bool>* truth) : kind(Kind::truth), place(truth) {}
    Target(Json* json) : kind(Kind::json), place(json) {}
    bool is_list() const { return kind >= Kind::texts && kind <= Kind::mounts; }

    Kind kind;
    void* place;
  };
  // What it has an effect in; a set. Everywhere else it is an error.
  enum Where : unsigned {
    local = 1,
    docker = 2,
    command = 8,
    ssh = 16,
    slurm = 32,
    kubernetes = 64,
    made = slurm | kubernetes,  // by an engine
    installed = ssh | made,     // where the agent is started by its name
    places = command | installed,
    kernel = local | places,  // where a sandbox of ours can be
    commands = local | docker | places,
    users = 4,
    containers = docker | users,
    engines = made | containers,  // where places of ours can be listed
    agents = containers | places,
    all = commands | users
  };
  std::string_view name;   // of the command line; the configuration's key has `_` for `-`
  std::string_view value;  // what --help calls it; empty: it has none
  std::string_view help;
  std::string_view other_key;  // another key that means the same, or empty
  Target target;
  Where use;
};

std::vector<Option> option_table(ServerConfig& config);

std::string key_of(const Option& option);

SharedError bad_value(std::string_view option, std::string_view value, std::string_view expected);

// Puts the words that follow an option on the command line, or stand in the configuration, where
// they belong. `label` is how the user wrote the option.
Expected<void> set_option(std::string_view label, const std::vector<std::string>& words,
                          Option::Target target);

using Options = std::vector<const Option*>;

bool contains(const Options& options, const Option* option);

// Those in `given` are set already; what is set here is added to them.
Expected<void> read_config(const std::string& path, const std::vector<Option>& table,
                           Options& given);

// The words of the command line that are not options of the table.
struct Invocation {
  bool help = false;
  bool version = false;
  std::optional<std::string> config = {};
  bool list_rules = false;
  bool place = false;
  std::optional<std::string> verify_audit = {};
  bool sandbox_report = false;
  bool doctor = false;
  bool places = false;
  bool places_remove = false;
  bool json = false;
  std::optional<std::string> run = {};
  std::optional<std::string> check = {};
};

// The command line wins: what it sets, the configuration file does not.
Expected<Invocation> read_command_line(int argc, char** argv, ServerConfig& config);

std::string help_text();

std::string rules_text();

// The program's name of an option where the library has another one; those of ContainerOptions only
// where there is a container.
SharedError in_our_words(Error error, bool container = false);

void warn(const std::string& message);

Expected<UserContainers> create_user_containers(const ServerConfig& config);

// Options that stand for several others, settled; nothing is started.
Expected<LocalOptions> local_options(const ServerConfig& config);

Expected<ContainerOptions> container_options(const ServerConfig& config);

KubernetesOptions kubernetes_options(const ServerConfig& config);

// Where commands run.
struct CommandPlace {
  std::optional<PlacePool> pool = {};  // that the executor takes from
  std::unique_ptr<const Executor> executor = {};
  SandboxReport sandbox = SandboxReport();              // where they run, but for containers
  std::optional<ContainerExecutorOptions> wanted = {};  // of a container
  std::optional<PlaceFacts> facts = {};                 // of a place
};

Expected<CommandPlace> create_place(const ServerConfig& config);

// The exit status of --places and --places-remove.
int list_places(const ServerConfig& config, bool remove_left, bool as_json);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
