// Public functions: a script is parsed, then walked.

#include "shell/budget_internal.hpp"
#include "shell/parser_internal.hpp"
#include "shell/runner_internal.hpp"
#include "shell/scopes_internal.hpp"
#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

bool same_words(const std::vector<shell::Word>& left, const std::vector<shell::Word>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const shell::Word& a, const shell::Word& b) { return a.text == b.text; });
}
// Whether two commands that begin at the same place are reported alike.
bool same_command(const shell::Command& left, const shell::Command& right) {
  const auto same_value = [](const shell::Assignment& a, const shell::Assignment& b) {
    return a.name == b.name && a.value.text == b.value.text;
  };
  const auto same_target = [](const shell::Redirection& a, const shell::Redirection& b) {
    return a.kind == b.kind && a.fd == b.fd && a.target.text == b.target.text;
  };
  return left.end == right.end && left.defined == right.defined &&
         left.work_dir.text == right.work_dir.text && left.input.kind == right.input.kind &&
         left.input.text == right.input.text && same_words(left.words, right.words) &&
         std::equal(left.assignments.begin(), left.assignments.end(), right.assignments.begin(),
                    right.assignments.end(), same_value) &&
         std::equal(left.redirections.begin(), left.redirections.end(), right.redirections.begin(),
                    right.redirections.end(), same_target);
}

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

}  // namespace

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
    walk.lastpipe = script.find("lastpipe") != std::string_view::npos;
    if (!options.work_dir.empty())
      walk.scopes.assign(work_dir_key, scalar_value({options.work_dir}));
    Input input;
    ShellRunner runner(walk, input);
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

Script parse(std::string_view script, const Options& options) {
  Script result;
  // Commands of loops and functions are come to more than once. By place in the script the last
  // one that begins there, by command the one before it: numbers from 1, or 0.
  std::vector<std::size_t> last(script.size() + 1);
  std::vector<std::size_t> before;
  static_cast<Outcome&>(result) = walk(script, options, [&](const Visit& visit) {
    std::size_t& here = last[std::min(visit.command.begin, script.size())];
    for (std::size_t i = here; i != 0; i = before[i - 1])
      if (same_command(result.commands[i - 1], visit.command)) return;
    before.push_back(std::size_t{here});
    result.commands.push_back(visit.command);
    here = result.commands.size();
  });
  return result;
}

}  // namespace shell

}  // namespace v0_1
}  // namespace codeexec
