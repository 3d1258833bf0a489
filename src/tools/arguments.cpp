// The command line.

#include "tools/options_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "docker/docker.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A word where an option should be: what to write in its place.
std::string meant_instead_of(std::string_view word) {
  if (word.find('/') != std::string_view::npos || word == "."sv || word == ".."sv || word == "~"sv)
    return "; a folder follows --workspace or --allowed-paths";
  const std::string meant = meant_option(word);
  return meant.empty() ? "; options begin with --, and a command follows --run: --run 'ls -la'"
                       : meant;
}

// `before` is the option before it, or null.
SharedError unknown_option(const Argument& argument, const Argument* before) {
  std::string meant = meant_option(argument.name);
  const bool of_command = before && (before->name == "--run" || before->name == "--check");
  if (of_command)
    append_all(meant, "% if it belongs to the command, quote that as one word: % 'ls --all'",
               {meant.empty() ? ";" : " Or", before->name});
  else if (meant.empty())
    meant = "; --help-all lists all";
  return make_error(ErrorCode::invalid_argument, "unknown option %%",
                    {in_quotes(argument.name), meant});
}

// Every option takes the words up to the next option; --run and --check take the next word whatever
// it is.
Expected<std::vector<Argument>> split_arguments(int argc, char** argv) {
  std::vector<Argument> arguments;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "-h"sv) word = "--help"sv;
    if (!starts_with(word, "--"sv)) {
      if (arguments.empty())
        return make_error(ErrorCode::invalid_argument, "unexpected argument %%",
                          {in_quotes(word), meant_instead_of(word)});
      add_words(arguments.back().words, {word});
      continue;
    }
    const std::size_t equals = word.find('=');
    arguments.push_back({std::string(word.substr(0, equals)), {}});
    if (equals != std::string_view::npos)
      add_words(arguments.back().words, {word.substr(equals + 1)});
    else if ((word == "--run"sv || word == "--check"sv) && i + 1 < argc)
      add_words(arguments.back().words, {argv[++i]});
  }
  return arguments;
}

}  // namespace inner

namespace {

// An option of the table by the word of the command line, or null.
const Option* option_called(std::string_view word) {
  return find_option(
      [&](const Option& known) { return known.part(Option::name) == word.substr(2); });
}

SharedError given_twice(std::string_view option) {
  return make_error(ErrorCode::invalid_argument, "% is given twice", {option});
}

// Such an option may be given once. Its word may be empty for --run and --check only.
Expected<void> take_special(const Argument& argument, const Special& special,
                            Invocation& invocation) {
  if (special.flag)
    return set_option(argument.name, argument.words, {Option::flag, &(invocation.*special.flag)});
  if (special.texts)
    return set_option(argument.name, argument.words, {Option::texts, &(invocation.*special.texts)});
  std::optional<std::string>& text = invocation.*special.text;
  if (text) return given_twice(argument.name);
  std::string& target = text.emplace();
  if (&text == &invocation.write && argument.words.empty()) return {};
  // To run nothing is allowed.
  const bool command = &text == &invocation.run || &text == &invocation.check;
  if (command && argument.words.size() == 1 && argument.words[0].empty()) return {};
  return set_option(argument.name, argument.words, {Option::text, &target});
}

// Options for the person who sets a client up, and not for the server.
constexpr std::string_view client_options[] = {"--client-config", "--write", "--only-shell",
                                               "--remove"};

// Collects the words that a client is to start the server with. It starts it in a folder of its own
// choice, so a file's relative path becomes an absolute one, unless it begins with a variable or
// `~`, or cannot be resolved. Returns the option that excludes --client-config, or null.
const Argument* keep_words(const std::vector<Argument>& arguments, std::vector<std::string>& kept) {
  for (const Argument& argument : arguments) {
    if (is_one_of(argument.name, client_options)) continue;
    std::string_view value = "FILE";
    if (argument.name != "--config") {
      const Option* const option = option_called(argument.name);
      if (!option) return &argument;
      value = option->part(Option::value);
    }
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

// Settles where commands run. An option that has no effect there is an error: an operator who sets
// it relies on it.
Expected<void> settle_mode(ServerConfig& config, const Options& given) {
  const auto invalid = [](const char* option, std::string_view value, const char* choices) {
    return make_error(ErrorCode::invalid_argument, "Invalid %: %. Must be %.",
                      {option, in_quotes(value), choices});
  };
  std::replace(config.profile.begin(), config.profile.end(), '_', '-');
  const bool for_user = config.profile == "user-container";
  if (!for_user && config.profile != "commands")
    return invalid("profile", config.profile, "'commands' or 'user-container'");
  if (config.execution_mode.empty()) config.execution_mode = for_user ? "docker" : "local";
  const std::string& mode = config.execution_mode;
  config.use = mode == "local"        ? Option::local
               : mode == "docker"     ? Option::docker
               : mode == "command"    ? Option::command
               : mode == "ssh"        ? Option::ssh
               : mode == "slurm"      ? Option::slurm
               : mode == "kubernetes" ? Option::kubernetes
                                      : Option::Where{};
  if (config.place_workspace == no_choice<PlaceWorkspace>)
    config.place_workspace =
        config.use == Option::kubernetes ? PlaceWorkspace::remote : PlaceWorkspace::shared;
  if (config.use == 0)
    return make_error(ErrorCode::invalid_argument,
                      "Invalid command_line_execution_mode: %. Must be 'local', 'docker', 'ssh', "
                      "'slurm', 'kubernetes' or 'command'.%",
                      {in_quotes(mode),
                       meant_mode(mode, option_called("--execution-mode")->part(Option::detail))});
  if (for_user && config.use != Option::docker)
    return make_error(ErrorCode::invalid_argument,
                      "profile user-container has no execution_mode '%'", {mode});
  if (for_user && config.user_id.empty())
    return make_error(ErrorCode::invalid_argument, "profile user-container needs a user_id");
  const bool lacks_command = config.use == Option::command && config.place_command.empty();
  if (lacks_command || (config.use == Option::ssh && config.place_host.empty()))
    return make_error(ErrorCode::invalid_argument, "execution_mode % needs a %",
                      {mode, lacks_command ? "place_command" : "place_host"});
  for (const ContainerNetwork network :
       {ContainerNetwork::none, ContainerNetwork::bridge, ContainerNetwork::host})
    if (config.container_network == name(network)) config.user.container.network = network;
  if (config.container_network != name(config.user.container.network))
    return invalid("command_line_docker_network_mode", config.container_network,
                   "'none', 'bridge', or 'host'");
  if (for_user) config.use = Option::users;
  const bool is_named = config.local.sandbox.network == Network::allow;
  for (const Option* option : given)
    if (!(option->use & config.use) ||
        (config.use == Option::docker && !is_named && option->key() == "network"sv))
      return make_error(
          ErrorCode::invalid_argument, "% has no effect with %: leave one of them out%",
          {option->key(),
           for_user ? "profile user-container"
                    : concat("execution_mode %", {config.execution_mode}),
           option->key() == "network"sv
               ? "; a container has a docker_network_mode or docker_network, or network allow"
               : ""});
  if (config.use == Option::docker && is_named == config.local.allowed_domains.empty())
    return make_error(ErrorCode::invalid_argument,
                      "network: 'allow' and allow_domains need each other");
  return {};
}

// Refuses the special options that exclude each other, or that the settings leave no meaning for.
Expected<void> check_invocation(const Invocation& invocation, const ServerConfig& config,
                                std::size_t count) {
  const auto wrong = [](const char* why, Pieces values = {}) {
    return make_error(ErrorCode::invalid_argument, why, values);
  };
  // By its agent-id a container's first process is known.
  if (invocation.place && count > (config.local.agent_id.empty() ? 1u : 2u))
    return wrong("--place takes no option but --agent-id: who uses the place says all");
  if (invocation.run && invocation.check) return wrong("--run and --check exclude each other");
  if (invocation.replay && (invocation.run || invocation.check))
    return wrong("--replay excludes --run and --check");
  if (invocation.replay && config.use == Option::users)
    return wrong("--replay has no commands for --profile");
  if (invocation.output && invocation.report.empty()) return wrong("--output is for --report");
  if (invocation.sandbox_report && !(config.use & Option::kernel))
    return wrong("--sandbox-report has nothing to tell of a container; ask --doctor");
  const bool lists = invocation.places || invocation.places_remove;
  if (lists && !(config.use & Option::engines))
    return wrong("execution_mode % makes no places to list", {config.execution_mode});
  if (invocation.explain && !invocation.sandbox_report)
    return wrong("--explain is for --sandbox-report");
  if (invocation.json && !lists && !invocation.replay && !invocation.help_all &&
      !invocation.explain)
    return wrong("--json is for --places, --places-remove, --replay, --help-all and --explain");
  if (invocation.write && !invocation.client_config) return wrong("--write is for --client-config");
  if (invocation.remove && !invocation.client_config)
    return wrong("--remove is for --client-config");
  if (invocation.only_shell && (!invocation.write || invocation.remove))
    return wrong("--only-shell is for --client-config NAME --write");
  if (invocation.check && config.use == Option::users)
    return wrong("--check has no policy to ask with --profile");
  return {};
}

}  // namespace

inline namespace inner {

// The command line may hold an option of a single value once, and lists several times: their values
// add up. The configuration file comes last, so that it knows which options are given already.
Expected<Invocation> read_command_line(int argc, char** argv, ServerConfig& config) {
  auto arguments = split_arguments(argc, argv);
  if (!arguments) return arguments.failure();
  Invocation invocation;
  Options given;
  for (const Argument& argument : *arguments) {
    const std::string_view name = std::string_view(argument.name).substr(2);
    const Special* const special = find_where(specials, [&](const Special& known) {
      return Option::part(known.row, Option::name) == name;
    });
    if (special != std::end(specials)) {
      if (auto ok = take_special(argument, *special, invocation); !ok) return ok.failure();
      continue;
    }
    const Option* const option = option_called(argument.name);
    if (!option)
      return unknown_option(argument, &argument == arguments->data() ? nullptr : &argument - 1);
    const Option::Target target = option->target(config);
    // Of a single value the second would silently win; lists add up.
    if (!target.is_list() && contains(given, option)) return given_twice(argument.name);
    if (auto ok = set_option(argument.name, argument.words, target); !ok) return ok.failure();
    given.push_back(option);
  }
  if (invocation.config) {
    if (auto ok = read_config(*invocation.config, config, given); !ok) return ok.failure();
  }
  if (auto ok = settle_mode(config, given); !ok) return ok.failure();
  if (auto ok = check_invocation(invocation, config, arguments->size()); !ok) return ok.failure();
  invocation.given = given;
  if (invocation.client_config) {
    if (const Argument* const other = keep_words(*arguments, invocation.words))
      return make_error(ErrorCode::invalid_argument, "--client-config and % exclude each other",
                        {other->name});
    if (invocation.remove && !invocation.words.empty())
      return make_error(ErrorCode::invalid_argument, "--remove and % exclude each other",
                        {invocation.words[0]});
  }
  return invocation;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
