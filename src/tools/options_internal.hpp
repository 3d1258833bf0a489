// Options of the server: the table, the command line, the configuration file.
//
// One table lists every option: its name, its kind, its help and where its value goes. The command
// line, the configuration file and --help are all read off that table.
#pragma once

#include "tools/tools.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
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
  LocalOptions local = {};
  std::uint64_t max_output = ToolOptions().max_output;
  std::uint64_t audit_output = 0;
  std::uint64_t max_concurrent = mcp::ServerOptions{}.max_concurrent;
  std::string policy_mode = "strict";
  std::vector<std::string> read_only = {};
  std::string sandbox = {};  // not given: best_effort when the paths are, else off
  std::string network = "host";
  std::string private_home = name(LocalOptions().private_home);
  bool no_watch_files = false;
  bool no_supervisor = false;
  bool enable_sudo = false;
  bool no_auto_venv = false;
  ToolOptions tools = {};
  std::uint64_t max_background_shells = ShellOptions().max_running;
  // Containers
  std::string execution_mode = {};  // not given: local, or docker when the profile needs that
  std::string profile = "commands";
  std::string user_id = {};
  ContainerOptions container = {};
  std::string image_policy = name(ContainerOptions().image_policy);
  std::string container_network = name(ContainerOptions().network);
  std::uint64_t warm = ContainerOptions().warm;
  std::string runtime = {};
  std::string gpus = {};
  std::vector<std::string> add_host = {};
  std::vector<std::string> dns = {};
  Json credentials = {};
  Json packages = {};
  bool packages_required = false;
  UserContainerOptions user = {};
  unsigned use = 0;  // an Option::Where: where commands run; settled when all options are read
};

// A whole number; a size may have a unit, such as 512m.
struct Amount {
  std::uint64_t* target;
  bool is_size;
  bool may_be_0 = true;
};

// Where the value of an option goes decides its kind.
struct Option {
  using Target = std::variant<std::string*, std::vector<std::string>*, std::chrono::milliseconds*,
                              std::uint64_t*, bool*, std::vector<Root>*, Variables*, Amount,
                              double*, std::optional<bool>*, std::vector<Mount>*, Json*>;
  // What it has an effect in; a set. Everywhere else it is an error.
  enum Where : unsigned {
    local = 1,
    docker = 2,
    commands = local | docker,
    users = 4,
    containers = docker | users,
    all = commands | users
  };
  const char* name;   // of the command line; the configuration's key has `_` for `-`
  const char* value;  // what --help calls it
  const char* help;
  Target target;
  Where use = commands;
  const char* other_key = "";  // another key that means the same
};

std::vector<Option> option_table(ServerConfig& config);

template <class T>
bool is_list(std::vector<T>*) {
  return true;
}
template <class T>
bool is_list(const T&) {
  return false;
}

std::string key_of(const Option& option);

Error bad_value(std::string_view option, std::string_view value, std::string_view expected);

// Puts the words that follow an option on the command line, or stand in the configuration, where
// they belong. `label` is how the user wrote the option.
class OptionSetter {
 public:
  OptionSetter(std::string label, const std::vector<std::string>& words)
      : label_(std::move(label)), words_(words) {}

  Expected<void> operator()(std::string* target) const;
  Expected<void> operator()(std::vector<std::string>* target) const;
  Expected<void> operator()(std::vector<Root>* target) const;
  Expected<void> operator()(Variables* target) const;
  Expected<void> operator()(std::chrono::milliseconds* target) const;
  Expected<void> operator()(std::uint64_t* target) const;
  Expected<void> operator()(Amount amount) const;
  Expected<void> operator()(double* target) const;
  Expected<void> operator()(std::optional<bool>* target) const;
  Expected<void> operator()(std::vector<Mount>* target) const;
  Expected<void> operator()(Json* target) const;
  Expected<void> operator()(bool* target) const;

 private:
  Expected<void> single() const;
  // An empty list must not quietly mean "no restriction".
  Expected<void> some() const;
  // An empty word is what an unset variable of a script leaves, and would mean "no limit" as well.
  Expected<void> no_blanks() const;
  std::string label_;
  const std::vector<std::string>& words_;
};

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
  std::optional<std::string> verify_audit = {};
  bool sandbox_report = false;
  bool doctor = false;
  std::optional<std::string> run = {};
  std::optional<std::string> check = {};
};

// The command line wins: what it sets, the configuration file does not.
Expected<Invocation> read_command_line(int argc, char** argv, ServerConfig& config);

std::string help_text();

std::string rules_text();

// The program's name of an option where the library has another one; those of ContainerOptions only
// where there is a container.
Error in_our_words(Error error, bool container = false);

void warn(const std::string& message);

Expected<UserContainers> create_user_containers(const ServerConfig& config);

// Options that stand for several others, settled; nothing is started.
Expected<LocalOptions> local_options(const ServerConfig& config);

Expected<ContainerOptions> container_options(const ServerConfig& config);

// Where commands run.
struct CommandPlace {
  std::unique_ptr<const Executor> executor = {};
  SandboxReport sandbox = {};                           // of this host
  std::optional<ContainerExecutorOptions> wanted = {};  // of a container
};

Expected<CommandPlace> create_place(const ServerConfig& config);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
