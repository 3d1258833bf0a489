// From the options of the server to the executor of its commands.
//
// settle_options() completes ServerConfig once, in place, and asks the features to settle theirs.
// create_place() then makes what the mode says: a LocalExecutor of config.local, or the executor of
// a feature.
//
// Variables of this process that are defaults of options are read here and in the same steps of
// features, and nowhere in the library.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Output goes to a model, which reads no colours and pagers. Variables that the operator sets or
// keeps win. Not CI=1, which makes package managers keep to their lock files and builds fail for
// warnings.
void set_terminal(EnvironmentOptions& options) {
  struct Setting {
    char name[12];
    char value[8];
    bool may_be_kept;  // the others are kept of every host
  };
  constexpr Setting settings[] = {{"NO_COLOR", "1", false},
                                  {"TERM", "dumb", false},
                                  {"PAGER", "cat", true},
                                  {"GIT_PAGER", "cat", true}};
  for (const Setting& setting : settings) {
    bool is_set = setting.may_be_kept && is_kept(setting.name, options) &&
                  std::getenv(setting.name) != nullptr;
    for (const auto& given : options.set) is_set |= given.first == setting.name;
    if (!is_set) options.set.push_back({setting.name, setting.value});
  }
}

// An error about a root that no option names is one about the workspace.
Error in_words_of_folders(Error error, const ServerConfig& config) {
  constexpr std::string_view of_roots = "allowed_paths: ";
  if (!config.narrows_roots && starts_with(error.message, of_roots))
    error.message.replace(0, of_roots.size(), "workspace: ");
  return error;
}

// Where the library has another name for what an option sets.
constexpr OptionName option_names[] = {
    {"allowed_domains", "allow_domains"},
    {"ask_rules", "ask_rule"},
    {"denied_domains", "deny_domains"},
    {"disabled_rules", "disable_rule"},
    {"disabled_tools", "disable_tool"},
    {"keep", "keep_env"},
    {"max_output", "max_output_size"},
    {"secret", "secret_env"},
    {"set", "set_env"},
    {"skills_dir", "local_skills_directory"},
};

std::string_view option_for(std::string_view in_library, Rows<OptionName> names) {
  for (const OptionName& row : names)
    if (row.in_library == in_library) return row.option;
  return {};
}

// Models write for bash, and its start takes half a millisecond more than that of dash. What is at
// other places is not known yet, but each has a sh.
void settle_shell(ServerConfig& config) {
  std::string& shell = config.local.shell;
  if (shell != usual_shell) return;
  shell = LocalOptions().shell;
  if (config.use != Option::local) return;
  for (const char* const bash : {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
                                 "/opt/homebrew/bin/bash", "/run/current-system/sw/bin/bash"})
    if (is_program(bash)) {
      shell = bash;
      return;
    }
}

}  // namespace

inline namespace inner {

Expected<void> settle_options(ServerConfig& config) {
  LocalOptions& local = config.local;
  if (config.policy_mode == "compat")
    local.policy.compat = true;
  else if (config.policy_mode != "strict")
    return bad_value("policy"sv, config.policy_mode, "strict or compat"sv);
  local.audit_output = static_cast<std::size_t>(config.audit_output);
  for (const Feature* const feature : config.features)
    if (feature->settle)
      if (auto ok = feature->settle(config); !ok) return ok;
  if (!(config.use & Option::commands)) return {};

  settle_shell(config);
  if (auto ok = settle_folders(config); !ok) return ok;
  // Background commands keep more than one answer shows.
  if (config.max_output < 1024 || config.max_output > local.max_output)
    local.max_output = static_cast<std::size_t>(config.max_output);
  if (local.timeout.count() == 0) local.timeout = std::min(config.usual_timeout, local.max_timeout);
  set_terminal(local.environment);
  return {};
}

SharedError in_our_words(Error error, Rows<OptionName> names) {
  constexpr std::string_view limits = "limits: ";
  std::string& message = error.message;
  if (starts_with(message, limits)) message.replace(0, limits.size(), "limit_");
  const std::string_view first = std::string_view(message).substr(0, message.find_first_of(": "));
  std::string_view ours = option_for(first, names);
  if (ours.empty()) ours = option_for(first, option_names);
  if (!ours.empty()) message.replace(0, first.size(), ours);
  return error;
}

void warn(const std::string& message) {
  std::fprintf(stderr, "codeexec-mcp: %s\n", message.c_str());
}

Expected<CommandPlace> create_local(const ServerConfig& config) {
  auto executor = LocalExecutor::create(config.local, config.wings);
  if (!executor) return in_our_words(in_words_of_folders(executor.error(), config));
  CommandPlace place;
  place.sandbox = executor->sandbox_report();
  place.executor = owned_executor(std::move(*executor));
  return place;
}

Expected<CommandPlace> create_place(const ServerConfig& config) {
  const std::vector<ServerMode> modes = modes_of(config);
  return find_where(modes, [&](const ServerMode& mode) { return mode.use == config.use; })
      ->create(config);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
