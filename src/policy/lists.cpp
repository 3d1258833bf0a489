// The judge: the lists of what is blocked and of what is allowed.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base_internal.hpp"
#include "regex/regex.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Whether a run cannot make something else of a word.
bool is_certain(const shell::Word& word) {
  return word.known() && !word.assumed && !(word.glob && is_pattern(word.text));
}

bool may_be_several(const shell::Word& word) {
  return word.split || word.assumed || (word.glob && is_pattern(word.text));
}

// Whether it may become an option, or be followed by one.
bool may_be_option(const shell::Word& word) {
  if (word.process || is_certain(word)) return false;
  return word.split || word.assumed || word.text.find_first_of(std::string_view("\0*?[-", 5)) == 0;
}

}  // namespace

inline namespace inner {

std::string usual_commands() {
  std::string text;
  for (std::string_view table = usual_programs; !table.empty();) {
    std::string_view row = take_part(table, '\n');
    append_all(text, {text.empty() ? "" : " ", take_part(row, '|')});
  }
  return text;
}

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
    if (text != case_.script) append_all(message, {" (", shown(text), ")"});
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
    append_all(text, {assignment.name, "=", assignment.value.text, " "});
  text += words;
  return text;
}

bool Judge::is_usual() const {
  const Form form = whole();
  if (!command_->assignments.empty() || form.size == 0 || !is_certain(form.words[0])) return false;
  const std::string_view name = form.words[0].text;
  std::string_view names, refused;
  for (std::string_view table = usual_programs; !has_entry(names, name);) {
    if (table.empty()) return false;
    refused = take_part(table, '\n');
    names = take_part(refused, '|');
  }
  FileProgram program;
  find_file_program(name, program);
  const bool counts = has_entry(names, "["sv);
  const bool filters = program.operands == FileProgram::Operands::filter;
  const bool careful = !counts && (!refused.empty() || !program.writes.empty());
  bool harmless = true, options = true;
  for (std::size_t i = 1; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    const std::string_view text = word.text;
    options = options && text != "--"sv;
    if ((careful && options && may_be_option(word)) || (filters && may_be_several(word)) ||
        has_entry(refused, starts_with(text, "-"sv) ? text : ""sv) ||
        (counts && text.find('[') < text.find_last_of("(`"sv) + 1))
      harmless = false;
  }
  std::size_t operands = 0;
  read_arguments(
      form, program.syntax, Order::options_anywhere,
      [&](std::string_view option, const Part&) {
        if (lists_option(refused, option) || lists_option(program.writes, option)) harmless = false;
      },
      [&](const Part&) { ++operands; });
  return harmless && (!filters || operands < 2);
}

void Judge::check_allowed() {
  if (allowed_rank >= case_.rank || (case_.terms.allow_usual && is_usual())) return;
  std::vector<std::string> texts;
  if (texts_to_allow(texts)) {
    for (const Regex& regex : case_.terms.allowed) {
      bool matches = true;
      for (const std::string& text : texts) matches = matches && regex.full_match(text);
      if (matches) return;
    }
  }
  std::string text = with_assignments(join(whole()));
  if (command_->words.empty() && !text.empty()) text.pop_back();
  object(allowed_rank, "allowed-commands",
         concat({case_.terms.allowed_message, " (not allowed: ", shown(text), ")"}),
         command_->begin, command_->end);
}

bool Judge::texts_to_allow(std::vector<std::string>& texts) const {
  // With | between them; the first is nothing at all.
  std::string_view guesses = "|a|-x|/|..| ; |\n|'|$|\xc3\xa9|a b/-c=\"d\n";
  bool known = true, may_vanish = false;
  for (const shell::Assignment& assignment : command_->assignments)
    if (!assignment.value.known() || assignment.value.assumed) return false;
  for (std::size_t i = 0; i < command_->words.size(); ++i) {
    const shell::Word& word = command_->words[i];
    const bool certain = word.known() && !word.assumed;
    if (i == 0 && !is_certain(word)) return false;
    // 'w a/../b' is not the program w: the text would not show where the name ends.
    if (i == 0 && word.text.find_first_of(" \t\n") != std::string::npos) return false;
    known = known && certain;
    may_vanish = may_vanish || (word.split && word.text.size() == 1);
  }
  if (known) {
    texts.push_back(text_with(""));
    return true;
  }
  while (!guesses.empty()) texts.push_back(text_with(take_part(guesses, '|')));
  if (may_vanish) texts.push_back(text_with(""sv, true));
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
