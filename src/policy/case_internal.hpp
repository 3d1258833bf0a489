// The case: one script, what the policy asks of it, and what has been found in it so far.
//
// All objections to a script are collected, and the one whose rule comes first is the verdict. The
// number of a rule is its rank, and Case::rank is the rank of the verdict so far. A check asks
// Case::wants() first, so that nothing is computed for an objection that would not count:
//
//   0 ... rule_count - 1   the sanitizer's rules, in their order
//   blocked_rank           a pattern of the block list matches
//   allowed_rank           no pattern of the allow list matches
//   ask_rank + a rule      a question in place of that rule's refusal: PolicyOptions::ask_rules
//   ask_listed_rank        a pattern of ask_commands matches: a question, too
//   no_rank                no objection
#pragma once

#include "policy/policy_internal.hpp"

#include "regex/regex.hpp"
#include "regex/regex_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// See Guard::with_files().
using FileTexts = Function<std::optional<std::string>(const std::string&)>;

inline Verdict refusal(std::string_view rule, std::string message, std::size_t begin,
                       std::size_t end) {
  Verdict verdict;
  verdict.allowed = false;
  verdict.rule = std::string(rule);
  verdict.message = std::move(message);
  verdict.begin = begin;
  verdict.end = end;
  return verdict;
}

// For a message: a command in one line, cut after 100 bytes.
inline std::string shown(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::string line(utf8_prefix(text, longest));
  std::replace(line.begin(), line.end(), '\0', '?');
  line = printable(line);
  if (text.size() > longest) line += "...";
  return line;
}

// The name of the block list, or of that of what is asked about, and its message without the
// pattern.
const char* listed_name(bool asks);
const char* listed_message(bool asks);

// What is said of a command that is not allowed: the patterns that are nearest to it, and how many
// more there are. `usual`: the usual commands are allowed, too.
std::string not_allowed_message(const std::vector<std::string>& patterns, bool usual,
                                std::string_view command);
// Adds why a pattern is there, if that was said.
void append_reason(std::string& message,
                   const std::vector<std::pair<std::string, std::string>>& reasons,
                   std::string_view pattern);

// What a policy was compiled to, as far as judging a script needs it.
struct Terms {
  std::uint32_t rules = 0;  // the bits of those in force
  const std::list<Regex>& allowed;
  bool allow_usual = false;
  const std::list<Regex>& blocked;
  const std::vector<std::string>& allowed_patterns;  // as the operator wrote them
  std::uint32_t ask_rules = 0;                       // the bits of those in force that ask
  const std::list<Regex>& asked;
  const std::vector<std::pair<std::string, std::string>>* reasons = nullptr;

  bool allows_all() const { return allowed.empty() && !allow_usual; }
};

inline constexpr std::size_t blocked_rank = rule_count;
inline constexpr std::size_t allowed_rank = rule_count + 1;
inline constexpr std::size_t ask_rank = rule_count + 2;
inline constexpr std::size_t ask_listed_rank = ask_rank + rule_count;
inline constexpr std::size_t no_rank = ask_listed_rank + 1;

// What reads the standard input of a script and runs what it reads.
enum class Reader : unsigned char { none, program, shell };

// The texts of files that earlier commands have written, as a script finds them: see
// Guard::with_files(). They are judged like texts of the script, but for two things: a text that
// cannot be judged, as it is too much, is as if it was not there; and where no allow list is asked,
// what is not known in them passes. So a script that was fetched, or that a program has made, is
// refused for what it surely does.
class EarlierFiles {
 public:
  explicit EarlierFiles(const FileTexts& texts) : texts_(texts) {}
  // A file by its absolute path, with its text; null: no earlier command has written it.
  using File = std::pair<const std::string, shell::Input>;
  const File* find(const std::string& path);
  bool any() const { return any_; }

 private:
  static constexpr std::size_t most = 16;  // files of one script

  const FileTexts& texts_;
  std::map<std::string, shell::Input> found_ = {};
  bool any_ = false;
};

// A script that is judged, with its verdict so far. A script that bash and a POSIX shell read in
// different ways is walked twice, once for each of them, and both walks share one case.
struct Case {
  const Terms& terms;
  std::string_view script = {};
  PathText start = {};     // where the script will run; relative: not known
  bool workspace = false;  // a project lies there: what is in it may be removed

  // The walk that is going on.
  shell::Dialect dialect = shell::Dialect::bash;
  Judgement* collected = nullptr;  // gets its commands and files; null: the caller wants none
  // Where the first walk found [[ ]] and (( )). A POSIX shell reads parts of them as commands, as
  // `$a == b` in [[ -f x && $a == b ]]: a command there may have any name.
  std::vector<NumberRange> tests = {};

  // Aliases of git that the script has set: name and value.
  std::map<std::string, std::string, std::less<>> git_aliases = {};
  EarlierFiles* files = nullptr;  // null: it finds none
  std::string_view in_file = {};  // the one of them that is judged now
  // More of the input may follow, so that an end in a construct is none.
  bool may_go_on = false;

  // Findings.
  std::size_t rank = no_rank;
  Verdict verdict = {};
  bool understood = true;  // see Judgement::complete
  Reader reader = Reader::none;
  bool open = false;         // the script, or what a shell in it reads, ends in a construct
  bool edits_lines = false;  // it changes what a terminal or a shell makes of a line that is typed
  bool too_complex = false;  // the bounds below are used up: the verdict is a refusal
  std::size_t judged_words = 0;
  std::size_t generated_bytes = 0;

  std::size_t rank_of(Rule rule) const;
  // False: the rule is off, or the verdict so far is of this rule or of one before it.
  bool wants(Rule rule) const { return rank_of(rule) < rank; }
  // Makes this the verdict. Call it only where wants() is true. The rank is that of the rule.
  // `instead`: what to do; empty: what the rule says.
  void refuse(Rule rule, std::size_t begin, std::size_t end, std::string_view detail,
              std::string_view instead = {}) {
    refuse(rule, rank_of(rule), begin, end, detail, instead);
  }
  void refuse(Rule rule, std::size_t new_rank, std::size_t begin, std::size_t end,
              std::string_view detail, std::string_view instead = {});
  void refuse_as(std::size_t new_rank, std::string_view name, std::string message,
                 std::size_t begin, std::size_t end);

  // Notes that an input is read, by a program that runs what it reads.
  void note_reader(const shell::Input& input, Reader by) {
    if (!input.script) reader = std::max(reader, by);
  }

  // The bytes of the script that a word was read from.
  std::string_view written(const shell::Word& word) const;
  bool in_test(const shell::Word& word) const {
    return is_in_ranges(tests, static_cast<std::uint32_t>(word.begin), word.end);
  }

  // Wrappers around wrappers, globs and xargs multiply what there is to judge. These bound the time
  // and the memory; false: the bound is reached.
  bool charge_words(std::size_t count) {
    judged_words += count + 1;
    if (judged_words > max_judged_words) too_complex = true;
    return !too_complex;
  }
  bool charge_bytes(std::size_t count) {
    generated_bytes += count + 1;
    if (generated_bytes > max_generated_bytes) too_complex = true;
    return !too_complex;
  }
};

// True for variables that make later commands run something, or something else.
bool steers_programs(std::string_view name);

// Finds `rm -r "$x"/*` where the script never sets x: it is then `rm -r /*`. Such removals are kept
// until the walk is over, as the handler of a trap runs after the assignments that follow it.
class UnsetVariables {
 public:
  // Notes assignments, tests of variables, set -u, and files that are sourced.
  void note(const shell::Command& command);
  // From here on, any variable may be set, or the shell stops at one that is not.
  void trust_all() { all_trusted_ = true; }
  void check_removal(const Case& judged, const shell::Command& command, const Part& part);
  // After the last command of the walk.
  void finish(Case& judged) const;

 private:
  struct Removal {
    std::array<std::uint16_t, 4> names = {};  // see shell::Word::unset
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string detail = {};
  };
  bool is_set(std::uint16_t name) const;
  bool is_one_set(const std::array<std::uint16_t, 4>& names) const;

  std::list<Removal> removals_ = {};
  std::vector<std::uint32_t> names_ = {};  // hashes of those that were set or tested so far
  bool all_trusted_ = false;
  bool trapped_ = false;
};

// Links that the script makes: `ln -s / l; rm -rf l/*` removes what is in /. Only links that leave
// the place where the script starts are of interest.
class Links {
 public:
  // From here on, `name` leads to `target`, unless there are too many links already.
  void note(const PathText& name, const PathText& target);
  void forget(const PathText& name);
  // Goes through the links that a path names. `last`: its last name may be one as well.
  void follow(PathText& path, bool last) const;

 private:
  struct Link {
    PathText name = {};
    PathText target = {};
  };
  std::list<Link> links_ = {};  // the newest first
  // The paths are views of these, and so are those that follow() has led through a link that is
  // forgotten by now. So texts stay.
  std::set<std::string> texts_ = {};
};

// Finds what known programs print to be evaluated: eval "$(brew shellenv)". It sets variables and
// defines functions of those programs, and is not judged.
class KnownOutput {
 public:
  struct Output {
    bool known = false;             // may be evaluated
    std::string_view instead = {};  // what to do where it may not
  };
  // Notes variables that hold such output, and functions and aliases with the name of such a
  // program, after which nothing of it is known.
  void note(const Case& judged, const shell::Command& command);
  // Of a word of eval or source that is not known. All of it must be such output.
  Output find(const Case& judged, const shell::Word& word) const;
  // Of eval: what it evaluates comes as commands that are not known.
  void pass(const shell::Command& command) { passed_ = {command.begin, command.end}; }
  bool has_passed(const shell::Word& word) const {
    return passed_.second != 0 && passed_.first == word.begin && passed_.second == word.end;
  }

 private:
  struct Variable {
    std::uint16_t name = 0;  // a hash
    Output output = {};      // known: all that it was set to is
  };
  std::vector<Variable> variables_ = {};
  std::pair<std::size_t, std::size_t> passed_ = {0, 0};
  bool shadowed_ = false;
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
