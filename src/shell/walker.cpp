// What other rooms call: a script is parsed, then walked.
//
//   walk()          checks the size and the bytes, begins with the working directory
//   walk_script()   ShellParser makes the tree; ShellRunner runs what there is of it, although the
//                   end of the script may be a syntax error: a shell runs the lines before it
//   walk_script()   once more, if only bash stumbled over a quote in "${x:-it's}"
//   run_traps()     what the script has left for its end

#include "shell/parser_internal.hpp"
#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Functions that the script defines outside of branches: others may call them before.
void expect_functions(ShellWalk& walk, ShellRange nodes) {
  for (std::size_t i = 0; i < size(nodes); ++i) {
    const ShellNode& one = walk.node(walk.item(nodes, i));
    if (one.kind == ShellNode::Kind::function && !one.background) walk.names.expect(one.name);
  }
}

// Parses the script and runs what could be read of it. False: `error` ends it.
bool walk_script(ShellRunner& runner, std::string_view script, Error& error) {
  ShellWalk& walk = runner.walk;
  shell::Outcome& outcome = walk.budget.outcome;
  ShellParser parser(walk.syntax, walk.budget.options, script,
                     {0, static_cast<std::uint32_t>(script.size()), true}, 0);
  const std::uint32_t root = parser.parse();
  outcome.dialect_dependent = outcome.dialect_dependent || parser.dialect_dependent();
  if (root != no_index) {
    if (!walk.syntax.plain_quotes) expect_functions(walk, walk.node(root).nodes);
    runner.run(root);
  }
  if (parser.failed()) error = parser.error();
  return !parser.failed();
}

void begin_with_variables(ShellRunner& runner, const shell::Options& options) {
  if (!options.variables) return;
  shell::Command command;
  command.compound = true;
  for (const auto& [name, value] : *options.variables) {
    if (!is_name(name)) continue;
    runner.store(name, scalar_value({value}));
    shell::Assignment assignment;
    assignment.name = name;
    assignment.value.text = value;
    command.assignments.push_back(std::move(assignment));
  }
  if (!command.assignments.empty()) runner.report({}, command);
}

// It is read as bash reads it also where the script is not, as it stays what it is.
void begin_with_held(ShellRunner& runner, const shell::Options& options) {
  if (options.held.empty()) return;
  ShellWalk& walk = runner.walk;
  shell::Options reading;
  ShellParser parser(walk.syntax, reading, options.held, {0, 0, false}, 0);
  const std::uint32_t root = parser.parse();
  ShellRunner before(runner);
  before.place.held = true;
  if (root != no_index) before.run(root);
  if (parser.failed() && parser.error().code == ErrorCode::limit)
    walk.budget.stop(ErrorCode::limit, parser.error().message, 0);
}

}  // namespace

inline namespace inner {

namespace shell {

Outcome walk(std::string_view script, const Options& options,
             FunctionRef<void(const Visit&)> visit) {
  ShellWalk walk(options, visit);
  ShellBudget& budget = walk.budget;
  const std::size_t nul = script.find('\0');
  if (script.size() > 0x7fffffff) {
    budget.stop(ErrorCode::limit, "longer than 2 GiB"sv, 0);
  } else if (nul != std::string_view::npos) {
    budget.stop(ErrorCode::parse, "NUL byte"sv, nul);
  } else {
    walk.syntax.most_simple = options.limits.max_written;
    walk.syntax.expect(script.size());
    walk.lastpipe = script.find("lastpipe") != std::string_view::npos ||
                    options.held.find("lastpipe") != std::string_view::npos;
    if (!options.work_dir.empty())
      walk.scopes.assign(work_dir_key, scalar_value({options.work_dir}));
    Input input = options.input;
    ShellRunner runner(walk, input);
    begin_with_variables(runner, options);
    begin_with_held(runner, options);
    Error error;
    bool whole = walk_script(runner, script, error);
    if (!whole && walk.syntax.pairs_quotes && error.code == ErrorCode::parse && !budget.stopped()) {
      // bash cannot read it. A POSIX shell may: in "${x:-it's}" it takes the quote as it is.
      walk.syntax.plain_quotes = true;
      Error other;
      whole = walk_script(runner, script, other);
    }
    runner.run_traps();
    if (!whole && !budget.stopped()) {
      budget.outcome.complete = false;
      budget.outcome.error = std::move(error);
    }
  }
  return std::move(budget.outcome);
}

}  // namespace shell

SimpleCommand simple_command(const shell::Command& command) {
  SimpleCommand simple;
  for (const shell::Word& word : command.words) simple.words.push_back(word.text);
  for (const shell::Assignment& each : command.assignments)
    simple.assignments.push_back(concat("%=%", {each.name, each.value.text}));
  simple.begin = command.begin;
  simple.end = command.end;
  return simple;
}

}  // namespace inner

Expected<std::vector<SimpleCommand>> simple_commands(std::string_view script) {
  std::vector<SimpleCommand> commands;
  shell::Outcome outcome = shell::walk(script, {}, [&](const shell::Visit& visit) {
    if (!visit.command.compound) commands.push_back(simple_command(visit.command));
  });
  if (!outcome.complete) return outcome.error;
  return commands;
}

}  // namespace v0_1
}  // namespace codeexec
