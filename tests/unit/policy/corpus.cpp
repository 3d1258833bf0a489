// The corpus of labelled commands (oracle/corpus/README.md) against the strict policy, and what the
// shells really ran of it against what the parser found.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../helpers/support.hpp"
#include "codeexec.hpp"

using codeexec::Json;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
using codeexec::shell::Command;
using codeexec::shell::Word;

namespace {

std::vector<Json> read_lines(const std::string& name) {
  const std::string text = support::read_file(CODEEXEC_CORPUS "/" + name);
  std::vector<Json> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto json = Json::parse(std::string_view(text).substr(begin, end - begin));
    REQUIRE_MESSAGE(json.has_value(), name, ": ", json.error().message);
    result.push_back(*json);
    begin = end + 1;
  }
  REQUIRE(!result.empty());
  return result;
}

// The first line of commands.jsonl is no row: it holds the patterns of the two lists.
const Json& header() {
  static const Json result = read_lines("commands.jsonl").front();
  return result;
}

const std::vector<Json>& rows() {
  static const std::vector<Json> result = [] {
    std::vector<Json> lines = read_lines("commands.jsonl");
    lines.erase(lines.begin());
    return lines;
  }();
  return result;
}

std::vector<std::string> strings(const Json& array) {
  std::vector<std::string> result;
  for (const Json& item : array.items()) result.push_back(item.as_string());
  return result;
}

// A policy of one list alone, without the sanitizer; or of the sanitizer alone.
Policy policy_of(const std::string& column) {
  PolicyOptions options;
  if (column == "whitelist") options.allowed = strings(header()["whitelist_patterns"]);
  if (column == "blacklist") options.blocked = strings(header()["blacklist_patterns"]);
  if (column != "sanitizer")
    for (const auto& rule : Policy::rules()) options.disabled_rules.push_back(rule.name);
  const auto policy = Policy::create(options);
  REQUIRE_MESSAGE(policy.has_value(), policy.error().message);
  return *policy;
}

struct Count {
  int deny = 0;
  int allow = 0;
  int false_deny = 0;
  int false_allow = 0;
};

std::string told(const Count& count) {
  return std::to_string(count.deny) + " to refuse, " + std::to_string(count.allow) +
         " to allow; wrongly allowed " + std::to_string(count.false_allow) + ", wrongly refused " +
         std::to_string(count.false_deny);
}

// Every row but those of interpreters, which are best effort, must have the verdict of its label.
void judge(const std::string& column) {
  const Policy policy = policy_of(column);
  Count count;
  Count interpreters;
  for (const Json& row : rows()) {
    const std::string& command = row["command"].as_string();
    const bool best_effort = row["category"].as_string() == "interp";
    const bool allowed = row[column].as_string() == "allow";
    const Verdict verdict = policy.check(command);
    Count& counted = best_effort ? interpreters : count;
    ++(allowed ? counted.allow : counted.deny);
    const std::string which = row["id"].as_string() + ": " + row["command"].dump();
    const std::string got = verdict.rule + ": " + verdict.message;
    if (verdict.allowed != allowed) {
      ++(allowed ? counted.false_deny : counted.false_allow);
      if (!best_effort && allowed) FAIL_CHECK(which, "\n  should pass, but: ", got);
      if (!best_effort && !allowed)
        FAIL_CHECK(which, "\n  should be refused: ", row["rule"].as_string());
    } else if (column == "sanitizer" && !allowed && !best_effort) {
      const bool named =
          verdict.rule == row["rule"].as_string() || verdict.rule == row["or_rule"].as_string();
      CHECK_MESSAGE(named, which, "\n  should be ", row["rule"].as_string(), ", is ", got);
    }
  }
  MESSAGE(column, ": ", told(count));
  if (interpreters.deny != 0) MESSAGE(column, ", interpreters: ", told(interpreters));
}

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
          command.input.text.find(argv[0]) != std::string::npos)
        return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("corpus: the sanitizer refuses what is labelled so, by its rule, and nothing else") {
  judge("sanitizer");
}

TEST_CASE("corpus: allowed patterns let pass what is labelled so, and nothing else") {
  judge("whitelist");
}

TEST_CASE("corpus: blocked patterns refuse what is labelled so, and nothing else") {
  judge("blacklist");
}

TEST_CASE("corpus: whatever bash and dash started is among what the parser found") {
  std::map<std::string, const Json*> by_id;
  for (const Json& row : rows()) by_id[row["id"].as_string()] = &row;
  const Policy policy = policy_of("sanitizer");
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
    const codeexec::Judgement judgement = policy.judge(script);
    // Not read to its end, and refused for that.
    if (judgement.verdict.rule == "syntax") continue;
    std::vector<Command> commands = judgement.commands;
    codeexec::shell::Options posix;
    posix.dialect = codeexec::shell::Dialect::posix;
    for (Command& command : codeexec::shell::parse(script, posix).commands)
      commands.push_back(std::move(command));
    const std::vector<std::string> shells = strings(row["shells"]);
    for (const std::string shell : {"bash", "dash"}) {
      // judge() tells payloads as bash reads them.
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
