// The verdict of a case, and variables that its script never sets.

#include "policy/case_internal.hpp"

#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::size_t Case::rank_of(Rule rule) const {
  const bool asks = (terms.ask_rules & bit(rule)) != 0;
  if (!asks && (terms.rules & bit(rule))) return static_cast<std::size_t>(rule);
  // A block list would mean nothing if its commands could hide in what is not known; nor would the
  // list of commands to ask about.
  const bool hides = rule == Rule::opaque_shell_input || rule == Rule::unknown_command;
  if (hides && !terms.blocked.empty()) return blocked_rank;
  if (asks) return ask_rank + static_cast<std::size_t>(rule);
  return hides && !terms.asked.empty() ? ask_listed_rank : no_rank;
}

void Case::refuse(Rule rule, std::size_t new_rank, std::size_t begin, std::size_t end,
                  std::string_view detail, std::string_view instead) {
  const RuleTexts& texts = texts_of(rule);
  refuse_as(
      new_rank, texts.name,
      concat("Potentially dangerous command detected: % (%); %",
             {texts.message, detail, instead.empty() ? std::string_view(texts.instead) : instead}),
      begin, end);
}

void Case::refuse_as(std::size_t new_rank, std::string_view name, std::string message,
                     std::size_t begin, std::size_t end) {
  rank = new_rank;
  if (!in_file.empty()) append_all(message, {" (in the file ", shown(in_file), ")"});
  verdict = refusal(name, std::move(message), begin, end);
  verdict.must_ask = new_rank >= ask_rank;
}

std::string_view Case::written(const shell::Word& word) const {
  const std::size_t begin = std::min(word.begin, script.size());
  return script.substr(begin, std::max(word.end, begin) - begin);
}

// variables that the script never sets ------------------------------------------------------------
//
//   rm -rf "$x"/*      kept as a removal, if nothing is left of the word without $x but / and *
//   x=a, [ "$x" ]      x is set or tested: removals behind it are not kept
//   set -u, . file     from here on no removal is kept
//   trap               a handler runs late: variables that are set behind a removal count, too
//   the end            what is kept is refused

void UnsetVariables::note(const shell::Command& command) {
  for (const shell::Assignment& assignment : command.assignments)
    names_.push_back(hash_of_name(assignment.name));
  if (command.words.empty()) return;
  const std::string_view name = command.words[0].text;
  const bool tests = is_any(name, "[", "[[", "test");
  trapped_ |= name == "trap"sv;
  if (is_any(name, "source", ".")) trust_all();
  const bool sets = name == "set"sv;
  if (!tests && !sets) return;
  for (const shell::Word& word : command.words) {
    // A script that tests a variable knows that it may be empty.
    for (const std::uint16_t variable : word.unset)
      if (tests && variable) names_.push_back(std::uint32_t{variable});
    if (sets && (word.text == "nounset" ||
                 (starts_with(word.text, "-"sv) && word.text.find('u') != std::string::npos)))
      trust_all();
  }
}

bool UnsetVariables::is_set(std::uint16_t name) const {
  for (const std::uint32_t known : names_)
    if (known == name) return true;
  return false;
}

bool UnsetVariables::is_one_set(const std::array<std::uint16_t, 4>& names) const {
  return std::any_of(names.begin(), names.end(),
                     [this](std::uint16_t name) { return name != 0 && is_set(name); });
}

void UnsetVariables::check_removal(const Case& judged, const shell::Command& command,
                                   const Part& part) {
  constexpr std::size_t most = 16;
  const shell::Word& word = *part.word;
  if (!word.unset[0] || command.defined || all_trusted_ || removals_.size() == most) return;
  // Take the variables, which are all that is not known, out of the word. Nothing but / or /* is
  // left of a dangerous one.
  std::string text = word.text;
  text.erase(std::remove(text.begin(), text.end(), '\0'), text.end());
  if (word.text.size() - text.size() != word.count_unset()) return;
  PathText path;
  enter(path, text, false);
  const bool sweeping = path.names.size() == 1 && word.glob && sweeps(path.names[0]);
  if (path.root != PathText::Root::slash || (!path.names.empty() && !sweeping)) return;
  if (is_one_set(word.unset)) return;
  for (const std::string_view name : given_variables.list())
    for (const std::uint16_t variable : word.unset)
      if (hash_of_name(name) == variable) return;
  removals_.push_back({word.unset, word.begin, word.end,
                       concat("% is % then", {shown(judged.written(word)), text_of(path)})});
}

void UnsetVariables::finish(Case& judged) const {
  for (const Removal& removal : removals_)
    if (judged.wants(Rule::rm_unset_variable) && !(trapped_ && is_one_set(removal.names)))
      judged.refuse(Rule::rm_unset_variable, removal.begin, removal.end, removal.detail);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
