// The words that run a command, wherever it runs.
//
//   command                       words                                   descriptor 3
//   argv                          as given                                nothing
//   script of a session           SHELL -c WRAPPER SHELL HELD... PART...  the session's pipe
//   script that fits              SHELL -c SCRIPT                         nothing
//   longer script                 SHELL /dev/fd/3                         the script
//   each, with a prefix           SHELL -c 'PREFIX "$@"' sh WORDS...      the same
//
// In the rows above the last, SHELL is the interpreter that the command names, or the executor's; a
// prefix is always read by the executor's. A script that fits has one byte less than an argument
// may have: as_operand() may add a blank.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A script as an argument of a shell. The blank keeps one like "-x" from being read as an option.
std::string as_operand(const std::string& script) {
  const bool like_option = starts_with(script, "-"sv) || starts_with(script, "+"sv);
  return concat({like_option ? " " : "", script});
}

// A prefix, if there is one, goes before the command line as a whole, never before its first simple
// command only: the shell that reads the prefix gets the rest as arguments.
std::vector<std::string> prefixed(const std::string& prefix, const std::string& shell,
                                  std::vector<std::string> words) {
  if (prefix.empty()) return words;
  std::vector<std::string> all = words_of({shell, "-c", concat("% \"$@\"", {prefix}), "sh"});
  for (std::string& word : words) all.push_back(std::move(word));
  return all;
}

}  // namespace

// The mark is random, so that no script prints it by accident. One that reads it from its shell can
// report what it likes, as it can set that, too.
bool Executor::Admission::follow_session(const std::string& text, std::vector<std::string>& words) {
  const std::string shell = words.back();
  // The executor's shell elsewhere may be another one.
  if (held_by(shell) != ending.holder) {
    ending.holder = HeldBy::none;
    held.clear();
  }
  const auto parts_of = [](const std::string& whole) {
    return (whole.size() + longest_inline_script - 1) / longest_inline_script;
  };
  std::string& mark = ending.mark;
  mark = random_hex(16);
  const std::string wrapper =
      session_script(shell, 3, mark, parts_of(text), ending.holder, parts_of(held));
  if (mark.empty())
    fail(system_error(errno, "cannot get random bytes for the session"), "setup");
  else if (wrapper.empty())
    reject("command", "a session needs a POSIX shell, and % is not known as one",
           {in_quotes(shell)});
  add_words(words, {"-c", wrapper, shell});
  for (const std::string* whole : {&static_cast<const std::string&>(held), &text})
    for (std::size_t i = 0; i < parts_of(*whole); ++i)
      words.push_back(whole->substr(i * longest_inline_script, longest_inline_script));
  return admitted();
}

std::vector<std::string> Executor::Admission::words_to_run(const Command& command,
                                                           const std::string& shell,
                                                           const std::string& prefix) {
  std::vector<std::string> words = command.argv;
  if (words.empty()) {
    words.push_back(command.interpreter.empty() ? shell : command.interpreter);
    if (command.session) {
      third = Third::session;
      if (!follow_session(command.script, words)) return {};
    } else if (command.script.size() < longest_inline_script) {
      add_words(words, {"-c", as_operand(command.script)});
    } else {
      third = Third::script;
      words.push_back("/dev/fd/3");
    }
  }
  return prefixed(prefix, shell, std::move(words));
}

}  // namespace v0_1
}  // namespace codeexec
