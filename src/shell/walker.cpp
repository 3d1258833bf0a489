// Public functions, and the walker's beginning and limits.

#include "shell/parser_internal.hpp"
#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

shell::Outcome ShellWalker::walk(std::string_view script) {
  if (script.size() > 0x7fffffff) {
    stop(ErrorCode::limit, "longer than 2 GiB"sv, 0);
    return std::move(outcome_);
  }
  const std::size_t nul = script.find('\0');
  if (nul != std::string_view::npos) {
    stop(ErrorCode::parse, "NUL byte"sv, nul);
    return std::move(outcome_);
  }
  syntax_.most_simple = options_.limits.max_written;
  last_in_shell_ = script.find("lastpipe") != std::string_view::npos;
  if (!options_.work_dir.empty()) set_work_dir({options_.work_dir});
  ShellParser parser(syntax_, options_, script,
                     {0, static_cast<std::uint32_t>(script.size()), true}, 0);
  const std::uint32_t root = parser.parse();
  outcome_.dialect_dependent = outcome_.dialect_dependent || parser.dialect_dependent();
  if (root != no_index) {
    for (std::size_t i = 0; i < size(node(root).nodes); ++i) {
      const ShellNode& one = node(item(node(root).nodes, i));
      if (one.kind == ShellNode::Kind::function && !one.background) later_[std::string(one.name)];
    }
    run(root);
  }
  Error error = parser.error();
  bool failed = parser.failed();
  if (failed && syntax_.pairs_quotes && error.code == ErrorCode::parse && !stopped()) {
    // bash cannot read it. A POSIX shell may: in "${x:-it's}" it takes the quote as it is.
    syntax_.plain_quotes = true;
    ShellParser plain(syntax_, options_, script,
                      {0, static_cast<std::uint32_t>(script.size()), true}, 0);
    const std::uint32_t other = plain.parse();
    if (other != no_index) run(other);
    failed = plain.failed();
  }
  run_traps();
  if (failed && outcome_.complete) {
    outcome_.complete = false;
    outcome_.error = std::move(error);
  }
  return std::move(outcome_);
}

void ShellWalker::stop(ErrorCode code, std::string_view message, std::size_t at) {
  if (stopped()) return;
  outcome_.complete = false;
  outcome_.error = make_error(code, {message}, at);
}

}  // namespace inner

namespace {

bool same_words(const std::vector<shell::Word>& left, const std::vector<shell::Word>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const shell::Word& a, const shell::Word& b) { return a.text == b.text; });
}
// Whether two commands that begin at the same place are told alike.
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

}  // namespace

namespace shell {

Outcome walk(std::string_view script, const Options& options,
             FunctionRef<void(const Visit&)> visit) {
  return ShellWalker(options, visit).walk(script);
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
