// Helpers for the programs that show what the shell section reads: its internals.
#ifndef CODEEXEC_TESTS_SHELL_SUPPORT_HPP
#define CODEEXEC_TESTS_SHELL_SUPPORT_HPP

#include "codeexec.hpp"
#include "shell/script_internal.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace support {

// The letters of a word's marks: a)ssumed, g)lob, h)ome, s)plit, p)rocess.
inline std::string marks_of(const codeexec::shell::Word& word) {
  std::string marks;
  if (word.assumed) marks += 'a';
  if (word.glob) marks += 'g';
  if (word.home) marks += 'h';
  if (word.split) marks += 's';
  if (word.process) marks += 'p';
  return marks;
}

// True if two commands that begin at the same place are reported alike.
inline bool same_command(const codeexec::shell::Command& left,
                         const codeexec::shell::Command& right) {
  namespace shell = codeexec::shell;
  const auto same_word = [](const shell::Word& a, const shell::Word& b) {
    return a.text == b.text;
  };
  const auto same_value = [](const shell::Assignment& a, const shell::Assignment& b) {
    return a.name == b.name && a.value.text == b.value.text;
  };
  const auto same_target = [](const shell::Redirection& a, const shell::Redirection& b) {
    return a.kind == b.kind && a.fd == b.fd && a.target.text == b.target.text;
  };
  return left.end == right.end && left.defined == right.defined &&
         left.work_dir.text == right.work_dir.text && left.input.kind == right.input.kind &&
         left.input.text == right.input.text &&
         std::equal(left.words.begin(), left.words.end(), right.words.begin(), right.words.end(),
                    same_word) &&
         std::equal(left.assignments.begin(), left.assignments.end(), right.assignments.begin(),
                    right.assignments.end(), same_value) &&
         std::equal(left.redirections.begin(), left.redirections.end(), right.redirections.begin(),
                    right.redirections.end(), same_target);
}

// What shell::walk() visits, in its order; a command that is visited again in the same way is left
// out.
struct Script : codeexec::shell::Outcome {
  std::vector<codeexec::shell::Command> commands = {};
};

inline Script parse(std::string_view script, const codeexec::shell::Options& options = {}) {
  Script result;
  // By place in the script the last command that begins there, by command the one before it:
  // numbers from 1, or 0.
  std::vector<std::size_t> last(script.size() + 1);
  std::vector<std::size_t> before;
  const auto visit = [&](const codeexec::shell::Visit& visited) {
    std::size_t& here = last[std::min(visited.command.begin, script.size())];
    for (std::size_t i = here; i != 0; i = before[i - 1])
      if (same_command(result.commands[i - 1], visited.command)) return;
    before.push_back(here);
    result.commands.push_back(visited.command);
    here = result.commands.size();
  };
  static_cast<codeexec::shell::Outcome&>(result) = codeexec::shell::walk(script, options, visit);
  return result;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_SHELL_SUPPORT_HPP
