// The lists of what is blocked, of what is asked about, and of what is allowed.
//
// The block list, and that of what is asked about, looks at each form of a command, with and
// without the directory of its program: `env /bin/rm x` is `/bin/rm x` and `rm x`, too.
//
// The allow list looks at the command as it stands, and one pattern must match all of it. A word
// that is not known may come to anything in a run, so the pattern must match with each of some
// guesses for it: nothing, a word, an option, a path, an operator and others.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string with_assignments(const shell::Command& command, std::string_view words) {
  std::string text;
  for (const shell::Assignment& assignment : command.assignments)
    append_all(text, "%=% ", {assignment.name, assignment.value.text});
  text += words;
  return text;
}

}  // namespace inner

namespace {

bool refuse_listed(Subject& subject, bool asks, const std::string& text, const Form& form) {
  for (const Regex& regex : asks ? subject.judged.terms.asked : subject.judged.terms.blocked) {
    if (!regex.full_match(text)) continue;
    std::string message = concat("%'%'", {listed_message(asks), regex.pattern()});
    if (text != subject.judged.script) append_all(message, " (%)", {shown(text)});
    if (subject.judged.terms.reasons)
      append_reason(message, *subject.judged.terms.reasons, regex.pattern());
    const bool own = form.level == 0;
    const std::size_t begin = own ? subject.command.begin : form.words[0].begin;
    std::size_t end = own ? subject.command.end : begin;
    for (std::size_t i = 0; i < form.size && !own; ++i) end = std::max(end, form.words[i].end);
    subject.judged.refuse_as(asks ? ask_listed_rank : blocked_rank, listed_name(asks),
                             std::move(message), begin, end);
    return true;
  }
  return false;
}

// One of the two lists.
void check_list(Subject& subject, bool asks, const Form& form) {
  const Terms& terms = subject.judged.terms;
  if ((asks ? terms.asked : terms.blocked).empty() ||
      (asks ? ask_listed_rank : blocked_rank) >= subject.judged.rank)
    return;
  const std::string text = join(form);
  if (refuse_listed(subject, asks, text, form)) return;
  if (form.level == 0 && !subject.command.assignments.empty() &&
      refuse_listed(subject, asks, with_assignments(subject.command, text), form))
    return;
  const std::string_view name = base_name(form.words[0].text);
  const std::string_view rest = std::string_view(text).substr(form.words[0].text.size());
  if (name.size() < form.words[0].text.size() &&
      refuse_listed(subject, asks, concat({name, rest}), form))
    return;
  // Options may stand between the name and the command.
  Wrapper wrapper;
  if (!find_wrapper(name, wrapper) || !wrapper.has(Wrapper::has_commands)) return;
  const std::size_t i = Arguments(form, wrapper.syntax, Order::stop_at_operand).skip();
  if (i == 1 || i >= form.size) return;
  refuse_listed(subject, asks, concat("% %", {name, join(form.from(i))}), form);
}

// The form with `guess` for what is not known. `vanish`: without words that are all unknown.
std::string text_with(const Form& form, std::string text, std::string_view guess, bool vanish) {
  for (std::size_t i = 0; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    // The last word stays: without it `w $X` would be "w", which 'w .*' does not match.
    const bool last = i + 1 == form.size;
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

// What the form may come to; an allowed pattern must match each of these texts. False: that is not
// known. The command as it stands has its assignments before it.
bool texts_to_allow(const shell::Command& command, const Form& form,
                    std::vector<std::string>& texts) {
  static constexpr auto guesses =
      NameList{"", "a", "-x", "/", "..", " ; ", "\n", "'", "$", "\xc3\xa9", "a b/-c=\"d\n"};
  bool known = true, may_vanish = false;
  const bool whole = form.level == 0;
  for (const shell::Assignment& assignment : command.assignments)
    if (whole && (!assignment.value.known() || assignment.value.assumed)) return false;
  const std::string before = whole ? with_assignments(command, {}) : std::string();
  for (std::size_t i = 0; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    const bool certain = word.known() && !word.assumed;
    if (i == 0 && !is_certain(word)) return false;
    // 'w a/../b' is not the program w: the text would not show where the name ends.
    if (i == 0 && word.text.find_first_of(" \t\n") != std::string::npos) return false;
    known = known && certain;
    may_vanish = may_vanish || (word.split && word.text.size() == 1);
  }
  if (known) {
    texts.push_back(text_with(form, before, {}, false));
    return true;
  }
  for (const std::string_view guess : guesses)
    texts.push_back(text_with(form, before, guess, false));
  if (may_vanish) texts.push_back(text_with(form, before, {}, true));
  return true;
}

}  // namespace

inline namespace inner {

const char* listed_name(bool asks) { return asks ? "ask-commands" : "blocked-commands"; }

const char* listed_message(bool asks) {
  return asks ? "Command matches a pattern that a person must approve: "
              : "Command matches blocked pattern: ";
}

void append_reason(std::string& message,
                   const std::vector<std::pair<std::string, std::string>>& reasons,
                   std::string_view pattern) {
  for (const auto& [of, reason] : reasons)
    if (of == pattern) return append_all(message, "; %", {printable(reason)});
}

void check_listed(Subject& subject, const Form& form) {
  for (const bool asks : {false, true}) check_list(subject, asks, form);
}

bool is_listed_allowed(const Subject& subject, const Form& form) {
  std::vector<std::string> texts;
  if (!texts_to_allow(subject.command, form, texts)) return false;
  for (const Regex& regex : subject.judged.terms.allowed) {
    bool matches = true;
    for (const std::string& text : texts) matches = matches && regex.full_match(text);
    if (matches) return true;
  }
  return false;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
