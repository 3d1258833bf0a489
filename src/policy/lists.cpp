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

namespace {

// True if a run cannot make something else of a word.
bool is_certain(const shell::Word& word) {
  return word.known() && !word.assumed && !(word.glob && is_pattern(word.text));
}

bool may_be_several(const shell::Word& word) {
  return word.split || word.assumed || (word.glob && is_pattern(word.text));
}

// True if it may become an option, or be followed by one.
bool may_be_option(const shell::Word& word) {
  if (word.process || is_certain(word)) return false;
  return word.split || word.assumed || word.text.find_first_of(std::string_view("\0*?[-", 5)) == 0;
}

// The assignments before a command, and its words.
std::string with_assignments(const shell::Command& command, std::string_view words) {
  std::string text;
  for (const shell::Assignment& assignment : command.assignments)
    append_all(text, "%=% ", {assignment.name, assignment.value.text});
  text += words;
  return text;
}

bool refuse_listed(Subject& subject, bool asks, const std::string& text, const Form& form) {
  for (const Regex& regex : asks ? subject.judged.terms.asked : subject.judged.terms.blocked) {
    if (!regex.full_match(text)) continue;
    std::string message = concat("%'%'", {listed_message(asks), regex.pattern()});
    if (text != subject.judged.script) append_all(message, " (%)", {shown(text)});
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

// True if it is a command of usual_programs that only reads or prints.
bool is_usual(const Form& form, const shell::Command& command) {
  if (!command.assignments.empty() || form.size == 0 || !is_certain(form.words[0])) return false;
  const std::string_view name = form.words[0].text;
  UsualProgram usual;
  if (!find_usual(name, usual)) return false;
  FileProgram program;
  find_file_program(name, program);
  const bool filters = program.operands == FileProgram::Operands::filter;
  // Some options are refused: then no word may become one in a run.
  const bool careful = !usual.counts && (!usual.refused.empty() || !program.writes.empty());
  bool harmless = true, options = true;
  for (std::size_t i = 1; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    const std::string_view text = word.text;
    options = options && text != "--"sv;
    // The last condition: a [ has a ( or ` anywhere behind it; npos + 1 is 0.
    if ((careful && options && may_be_option(word)) || (filters && may_be_several(word)) ||
        (starts_with(text, "-"sv) && usual.refused.has(text)) ||
        (usual.counts && text.find('[') < text.find_last_of("(`"sv) + 1))
      harmless = false;
  }
  std::size_t operands = 0;
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next();) {
    if (each.is(usual.refused) || each.is(program.writes)) harmless = false;
    operands += !each.is_option;
  }
  return harmless && (!filters || operands < 2);
}

// The command with `guess` for what is not known. `vanish`: without words that are all unknown.
std::string text_with(const shell::Command& command, std::string_view guess, bool vanish) {
  std::string text = with_assignments(command, {});
  for (const shell::Word& word : command.words) {
    // The last word stays: without it `w $X` would be "w", which 'w .*' does not match.
    const bool last = &word == &command.words.back();
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

// What the command may come to; an allowed pattern must match each of these texts. False: that
// is not known.
bool texts_to_allow(const shell::Command& command, std::vector<std::string>& texts) {
  static constexpr auto guesses =
      NameList{"", "a", "-x", "/", "..", " ; ", "\n", "'", "$", "\xc3\xa9", "a b/-c=\"d\n"};
  bool known = true, may_vanish = false;
  for (const shell::Assignment& assignment : command.assignments)
    if (!assignment.value.known() || assignment.value.assumed) return false;
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const shell::Word& word = command.words[i];
    const bool certain = word.known() && !word.assumed;
    if (i == 0 && !is_certain(word)) return false;
    // 'w a/../b' is not the program w: the text would not show where the name ends.
    if (i == 0 && word.text.find_first_of(" \t\n") != std::string::npos) return false;
    known = known && certain;
    may_vanish = may_vanish || (word.split && word.text.size() == 1);
  }
  if (known) {
    texts.push_back(text_with(command, {}, false));
    return true;
  }
  for (const std::string_view guess : guesses) texts.push_back(text_with(command, guess, false));
  if (may_vanish) texts.push_back(text_with(command, {}, true));
  return true;
}

}  // namespace

inline namespace inner {

const char* listed_name(bool asks) { return asks ? "ask-commands" : "blocked-commands"; }

const char* listed_message(bool asks) {
  return asks ? "Command matches a pattern that a person must approve: "
              : "Command matches blocked pattern: ";
}

void check_listed(Subject& subject, const Form& form) {
  for (const bool asks : {false, true}) check_list(subject, asks, form);
}

void check_allowed(Subject& subject) {
  if (allowed_rank >= subject.judged.rank ||
      (subject.judged.terms.allow_usual && is_usual(subject.whole(), subject.command)))
    return;
  std::vector<std::string> texts;
  if (texts_to_allow(subject.command, texts)) {
    for (const Regex& regex : subject.judged.terms.allowed) {
      bool matches = true;
      for (const std::string& text : texts) matches = matches && regex.full_match(text);
      if (matches) return;
    }
  }
  std::string text = with_assignments(subject.command, join(subject.whole()));
  if (subject.command.words.empty() && !text.empty()) text.pop_back();
  const Terms& terms = subject.judged.terms;
  subject.judged.refuse_as(
      allowed_rank, "allowed-commands",
      concat("% (not allowed: %)",
             {not_allowed_message(terms.allowed_patterns, terms.allow_usual, text), shown(text)}),
      subject.command.begin, subject.command.end);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
