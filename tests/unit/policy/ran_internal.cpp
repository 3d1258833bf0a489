// What the shells really ran of the corpus, beside what the parser and the judge found.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/shell_support.hpp"
#include "../../helpers/support.hpp"
#include "codeexec.hpp"
#include "corpus.hpp"
#include "policy/judge_internal.hpp"

namespace shell = codeexec::shell;
using codeexec::Json;
using shell::Command;
using shell::Word;
using support::read_lines;
using support::rows;
using support::strings;

namespace {

// Whether a word with unknown parts can stand for the text.
bool can_be(std::string_view pattern, std::string_view text) {
  const std::size_t unknown = pattern.find('\0');
  if (unknown == std::string_view::npos) return pattern == text;
  if (text.substr(0, unknown) != pattern.substr(0, unknown)) return false;
  text.remove_prefix(unknown);
  pattern.remove_prefix(unknown + 1);
  for (std::size_t i = 0; i <= text.size(); ++i)
    if (can_be(pattern, text.substr(i))) return true;
  return false;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A word as the sandbox of verify.py has it.
std::string in_sandbox(const Word& word) {
  if (!word.home) return word.text;
  const std::size_t end = std::min(word.text.find('/'), word.text.size());
  const std::string user = word.text.substr(1, end - 1);
  return (user == "root" ? "/root" : "/home/u") + word.text.substr(end);
}

// The words of a command from one that may be the name of a program it starts.
class Candidate {
 public:
  Candidate(const Command& command, std::size_t first) : words_(command.words), first_(first) {
    for (std::size_t i = 0; i < first; ++i) {
      const std::string_view name = base_name(words_[i].text);
      if (name != "xargs" && name != "find" && name != "parallel") continue;
      appends_ = true;
      replaced_.insert("{}");
      for (std::size_t k = i + 1; k < first; ++k) {
        const std::string& option = words_[k].text;
        if (option == "-I" && k + 1 < first) replaced_.insert(words_[k + 1].text);
        if (option.size() > 2 && option.compare(0, 2, "-I") == 0)
          replaced_.insert(option.substr(2));
      }
    }
  }

  bool starts(const std::vector<std::string>& argv) const {
    const Word& name = words_[first_];
    if (name.glob) {  // may stand for several names, of which all but the first are arguments
      for (std::size_t arg = 1; arg <= argv.size(); ++arg)
        if (rest(first_ + 1, argv, arg)) return true;
      return false;
    }
    if (can_be(base_name(name.text), argv[0])) return rest(first_ + 1, argv, 1);
    // An unquoted unknown part may have more than the name in it.
    return name.split && rest(first_, argv, 0);
  }

 private:
  // Whether the words from `word` on can be the arguments from `arg` on.
  bool rest(std::size_t word, const std::vector<std::string>& argv, std::size_t arg) const {
    if (word == words_.size() || (appends_ && ends(words_[word].text)))
      return arg == argv.size() || appends_;
    const Word& next = words_[word];
    const bool any_number = next.split || next.glob;
    if (any_number && rest(word + 1, argv, arg)) return true;
    if (arg == argv.size()) return false;
    if (any_number) return rest(word, argv, arg + 1) || rest(word + 1, argv, arg + 1);
    bool fits = can_be(in_sandbox(next), argv[arg]);
    for (const std::string& text : replaced_)
      if (!text.empty() && next.text.find(text) != std::string::npos) fits = true;
    return fits && rest(word + 1, argv, arg + 1);
  }

  static bool ends(const std::string& text) { return text == ";" || text == "+" || text == ":::"; }

  const std::vector<Word>& words_;
  std::size_t first_;
  bool appends_ = false;
  std::set<std::string> replaced_ = {};
};

bool found(const std::vector<Command>& commands, const std::vector<std::string>& argv) {
  for (const Command& command : commands) {
    for (std::size_t i = 0; i < command.words.size(); ++i) {
      if (Candidate(command, i).starts(argv)) return true;
      // The name of the program may come with its arguments.
      if (base_name(command.words[i].text) == "xargs" &&
          std::string_view(command.input.text).find(argv[0]) != std::string_view::npos)
        return true;
    }
  }
  return false;
}

// The commands of a script and of the strings that its commands run. False: it cannot be read.
bool visit_all(std::string_view script, std::vector<Command>& commands) {
  const std::list<codeexec::Regex> no_patterns;
  const codeexec::Terms terms = {~0u, no_patterns, false, no_patterns, {}, 0, no_patterns};
  codeexec::Case judged = {terms, script};
  codeexec::Judge judge(judged);
  const shell::Outcome outcome = shell::walk(script, {}, [&](const shell::Visit& visit) {
    commands.push_back(visit.command);
    judge.visit(visit);
  });
  return outcome.complete || outcome.error.code != codeexec::ErrorCode::parse;
}

}  // namespace

TEST_CASE("corpus: whatever bash and dash started is among what the parser found") {
  std::map<std::string, const Json*> by_id;
  for (const Json& row : rows()) by_id[row["id"].as_string()] = &row;
  int programs = 0;
  for (const Json& ran : read_lines("ran.jsonl")) {
    const std::string& id = ran["id"].as_string();
    REQUIRE_MESSAGE(by_id.count(id) == 1, id);
    const Json& row = *by_id[id];
    const std::string& rule = row["rule"].as_string();
    // What an unread part of the script started cannot be found in it.
    if (rule == "opaque-shell-input" || rule == "unknown-command" || rule == "syntax") continue;
    if (row["category"].as_string() == "interp") continue;
    const std::string& script = row["command"].as_string();
    std::vector<Command> commands;
    // Not read to its end, and refused for that.
    if (!visit_all(script, commands)) continue;
    shell::Options posix;
    posix.dialect = shell::Dialect::posix;
    for (const Command& command : support::parse(script, posix).commands)
      commands.push_back(command);
    const std::vector<std::string> shells = strings(row["shells"]);
    for (const std::string shell : {"bash", "dash"}) {
      // visit_all() reads payloads as bash does.
      if (shell == "dash" && shells == std::vector<std::string>{"dash"}) continue;
      for (const Json& argv : ran[shell].items()) {
        ++programs;
        CHECK_MESSAGE(found(commands, strings(argv)), id, ": ", row["command"].dump(), "\n  ",
                      shell, " ran ", argv.dump());
      }
    }
  }
  MESSAGE("programs started: ", programs);
}
