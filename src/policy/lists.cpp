// The judge: the lists of what is blocked and of what is allowed.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base_internal.hpp"
#include "regex/regex.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void Judge::check_blocked(const Form& form) {
  if (blocked_rank >= case_.rank) return;
  const std::string text = join(form);
  if (refuse_blocked(text, form)) return;
  if (form.level == 0 && !command_->assignments.empty() &&
      refuse_blocked(with_assignments(text), form))
    return;
  const std::string_view name = base_name(form.words[0].text);
  const std::string_view rest = std::string_view(text).substr(form.words[0].text.size());
  if (name.size() < form.words[0].text.size() && refuse_blocked(concat({name, rest}), form)) return;
  // Options may stand between the name and the command.
  Wrapper wrapper;
  if (!find_wrapper(name, wrapper) || !wrapper.has('v')) return;
  const std::size_t i =
      read_arguments(form, wrapper.syntax, Order::stop_at_operand, ignore_option, ignore_part);
  if (i == 1 || i >= form.size) return;
  refuse_blocked(concat({name, " ", join(form.from(i))}), form);
}

bool Judge::refuse_blocked(const std::string& text, const Form& form) {
  for (const Regex& regex : case_.terms.blocked) {
    if (!regex.full_match(text)) continue;
    std::string message = concat({"Command matches blocked pattern: '", regex.pattern(), "'"});
    if (text != case_.script) message += concat({" (", shown(text), ")"});
    const bool own = form.level == 0;
    const std::size_t begin = own ? command_->begin : form.words[0].begin;
    std::size_t end = own ? command_->end : begin;
    for (std::size_t i = 0; i < form.size && !own; ++i) end = std::max(end, form.words[i].end);
    object(blocked_rank, "blocked-commands", std::move(message), begin, end);
    return true;
  }
  return false;
}

std::string Judge::with_assignments(std::string_view words) const {
  std::string text;
  for (const shell::Assignment& assignment : command_->assignments)
    text += concat({assignment.name, "=", assignment.value.text, " "});
  text += words;
  return text;
}

void Judge::check_allowed() {
  if (allowed_rank >= case_.rank) return;
  std::vector<std::string> texts;
  if (texts_to_allow(texts)) {
    for (const Regex& regex : case_.terms.allowed) {
      const auto matches = [&regex](const std::string& text) { return regex.full_match(text); };
      if (std::all_of(texts.begin(), texts.end(), matches)) return;
    }
  }
  std::string text = with_assignments(join(whole()));
  if (command_->words.empty() && !text.empty()) text.pop_back();
  object(allowed_rank, "allowed-commands",
         concat({case_.terms.allowed_message, " (not allowed: ", shown(text), ")"}),
         command_->begin, command_->end);
}

bool Judge::texts_to_allow(std::vector<std::string>& texts) const {
  static constexpr std::string_view guesses[] = {"",   "a", "-x", "/",        "..",          " ; ",
                                                 "\n", "'", "$",  "\xc3\xa9", "a b/-c=\"d\n"};
  bool known = true, may_vanish = false;
  for (const shell::Assignment& assignment : command_->assignments)
    if (!assignment.value.known() || assignment.value.assumed) return false;
  for (std::size_t i = 0; i < command_->words.size(); ++i) {
    const shell::Word& word = command_->words[i];
    const bool certain = word.known() && !word.assumed;
    if (i == 0 && (!certain || (word.glob && is_pattern(word.text)))) return false;
    // 'w a/../b' is not the program w: the text would not show where the name ends.
    if (i == 0 && word.text.find_first_of(" \t\n") != std::string::npos) return false;
    known = known && certain;
    may_vanish = may_vanish || (word.split && word.text.size() == 1);
  }
  if (known) {
    texts.push_back(text_with(""));
    return true;
  }
  for (const std::string_view guess : guesses) texts.push_back(text_with(guess));
  if (may_vanish) texts.push_back(text_with("", true));
  return true;
}

std::string Judge::text_with(std::string_view guess, bool vanish) const {
  std::string text = with_assignments({});
  for (const shell::Word& word : command_->words) {
    // The last one leaves the place where any text may stand: 'w .*' matches `w $X` as `w $X y`.
    const bool last = &word == &command_->words.back();
    if (vanish && !last && word.split && word.text.size() == 1) continue;
    if (word.assumed) {
      text += guess;
    } else {
      for (const char c : word.text) {
        if (c == '\0')
          text += guess;
        else
          text += c;
      }
    }
    text += ' ';
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
