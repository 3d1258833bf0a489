// The command line.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A word where an option should be: what to write in its place.
std::string meant_instead_of(std::string_view word, const ServerConfig& config) {
  if (word.find('/') != std::string_view::npos || word == "."sv || word == ".."sv || word == "~"sv)
    return "; a folder follows --workspace or --allowed-paths";
  const std::string meant = meant_option(word, config);
  return meant.empty() ? "; options begin with --, and a command follows --run: --run 'ls -la'"
                       : meant;
}

// `before` is the option before it, or null.
SharedError unknown_option(const Argument& argument, const Argument* before,
                           const ServerConfig& config) {
  std::string meant = meant_option(argument.name, config);
  const bool of_command = before && (before->name == "--run" || before->name == "--check");
  if (of_command)
    append_all(meant, "% if it belongs to the command, quote that as one word: % 'ls --all'",
               {meant.empty() ? ";" : " Or", before->name});
  else if (meant.empty())
    meant = concat("; --% lists all", {config.options.find("help-all") ? "help-all" : "help"});
  return make_error(ErrorCode::invalid_argument, "unknown option %%",
                    {in_quotes(argument.name), meant});
}

}  // namespace

inline namespace inner {

// Every option takes the words up to the next option; --run and --check take the next word whatever
// it is.
Expected<std::vector<Argument>> split_arguments(int argc, char** argv, const ServerConfig& config) {
  std::vector<Argument> arguments;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "-h"sv) word = "--help"sv;
    if (!starts_with(word, "--"sv)) {
      if (arguments.empty())
        return make_error(ErrorCode::invalid_argument, "unexpected argument %%",
                          {in_quotes(word), meant_instead_of(word, config)});
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

SharedError given_twice(std::string_view option) {
  return make_error(ErrorCode::invalid_argument, "% is given twice", {option});
}

// An option of a single value may be given once: the second would silently win. Lists add up.
Expected<void> set_argument(const Argument& argument, const Option& option, ServerConfig& config) {
  if (option.group() == Option::command_line) {
    const bool is_given = option.kind() == Option::one_text &&
                          *static_cast<std::optional<std::string>*>(option.variable(config));
    if (is_given) return given_twice(argument.name);
    return set_option(argument.name, argument.words, option, config);
  }
  Options& given = config.invocation.given;
  if (!option.is_list() && contains(given, &option)) return given_twice(argument.name);
  if (auto ok = set_option(argument.name, argument.words, option, config); !ok) return ok;
  given.push_back(&option);
  return {};
}

// Settles where commands run. An option that has no effect there is an error: an operator who sets
// it relies on it.
Expected<void> settle_mode(ServerConfig& config) {
  for (const Feature* const feature : config.features)
    if (feature->choose_mode)
      if (auto ok = feature->choose_mode(config); !ok) return ok;
  if (config.execution_mode.empty()) config.execution_mode = local_mode.name;
  const std::string& mode = config.execution_mode;
  const std::vector<ServerMode> modes = modes_of(config);
  const auto found = find_where(modes, [&](const ServerMode& known) { return known.name == mode; });
  if (found == modes.end()) {
    std::string names;
    for (std::size_t i = 0; i < modes.size(); ++i)
      append_all(names, "%'%'",
                 {i == 0                 ? ""
                  : i + 1 < modes.size() ? ", "
                                         : " or ",
                  modes[i].name});
    return make_error(ErrorCode::invalid_argument,
                      "Invalid command_line_execution_mode: %. Must be %.%",
                      {in_quotes(mode), names, meant_mode(mode, config)});
  }
  config.use = found->use;
  for (const Feature* const feature : config.features)
    if (feature->check)
      if (auto ok = feature->check(config); !ok) return ok;
  for (const Option* option : config.invocation.given)
    if (!(option->where() & config.use)) return without_effect(*option, config);
  return {};
}

// Refuses options of the command line that exclude each other.
Expected<void> check_invocation(ServerConfig& config) {
  const Invocation& invocation = config.invocation;
  // By its agent-id a container's first process is known.
  if (invocation.place && invocation.arguments.size() > (config.local.agent_id.empty() ? 1u : 2u))
    return make_error(ErrorCode::invalid_argument,
                      "--place takes no option but --agent-id: who uses the place says all");
  if (invocation.run && invocation.check)
    return make_error(ErrorCode::invalid_argument, "--run and --check exclude each other");
  for (const Feature* const feature : config.features)
    if (feature->check_call)
      if (auto ok = feature->check_call(config); !ok) return ok;
  return {};
}

}  // namespace

inline namespace inner {

SharedError without_effect(const Option& option, const ServerConfig& config, const char* advice) {
  return make_error(
      ErrorCode::invalid_argument, "% has no effect with %: leave one of them out%",
      {option.key(),
       config.profile_text.empty() ? concat("execution_mode %", {config.execution_mode})
                                   : config.profile_text,
       advice});
}

// The command line may hold an option of a single value once, and lists several times: their values
// add up. The configuration file comes last, so that it knows which options are given already.
Expected<void> read_command_line(int argc, char** argv, ServerConfig& config) {
  auto arguments = split_arguments(argc, argv, config);
  if (!arguments) return arguments.failure();
  Invocation& invocation = config.invocation;
  invocation.arguments = std::move(*arguments);
  const Argument* before = nullptr;
  for (const Argument& argument : invocation.arguments) {
    const Option* const option = config.options.find(std::string_view(argument.name).substr(2));
    if (!option) return unknown_option(argument, before, config);
    if (auto ok = set_argument(argument, *option, config); !ok) return ok;
    before = &argument;
  }
  invocation.is_single = invocation.run || invocation.check;
  if (invocation.config)
    if (auto ok = read_config(*invocation.config, config); !ok) return ok;
  if (auto ok = settle_mode(config); !ok) return ok;
  return check_invocation(config);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
