// Files that a script writes and then runs: `echo ls > a; sh a`, `cat <<X > b; python b`, `./c`.
//
// The walk knows their texts, and gives them with the words that name the files. So a shell reads
// them as it reads <( ): see nested_shells.cpp. Here is what else runs them, and what makes a text
// unknown. A file that the script has not written is not looked at.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The words behind #!, those of a shell where there are none.
std::vector<shell::Word> words_of_first_line(std::string_view text, const shell::Word& place) {
  std::vector<shell::Word> words;
  std::string_view line = take_part(text, '\n');
  if (starts_with(line, "#!"sv)) {
    line.remove_prefix(2);
    // The kernel makes one argument of what stands behind the name; env -S cuts it up.
    while (!line.empty() && words.size() < 16) {
      const std::string_view word = take_part(line, line.find(' ') < line.find('\t') ? ' ' : '\t');
      if (!word.empty() && word != "-S"sv) words.push_back(word_like(place, word));
    }
  }
  if (words.empty()) words.push_back(word_like(place, "sh"sv));
  return words;
}

// What stands in a URL behind the last slash, without a query.
std::string_view name_in_url(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  return url.substr(url.rfind('/') + 1);
}

}  // namespace

inline namespace inner {

void run_written_file(Subject& subject, const Form& form) {
  if (form.holes) return;
  const shell::Word& file = form.words[0];
  if (file.text.find('/') == std::string::npos) return;
  subject.run.push_back(file.text);
  for (const shell::Input* each = file.printed; each != nullptr; each = each->also) {
    if (each->piece) continue;
    if (each->kind != shell::Input::Kind::known) {
      subject.refuse_opaque(form, file, "what it does is not known before it runs"sv);
      continue;
    }
    std::vector<shell::Word> words = words_of_first_line(each->text, file);
    for (std::size_t i = 0; i < form.size; ++i) words.push_back(shell::Word(form.words[i]));
    subject.add_form(form.from(0), std::move(words));
  }
}

void note_fetched(Subject& subject, const FileProgram& program, const Form& form) {
  const std::string_view name = form.size > 0 ? base_name(form.words[0].text) : "";
  if (!is_any(name, "curl", "wget") || form.holes) return;
  bool named = program.operands == FileProgram::Operands::unpack;
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next();) {
    named = named || (name == "curl"sv && each.is(program.modes));
    if (each.part.word && each.is(program.writes))
      subject.fetched.push_back(std::string(each.part.text));
  }
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next() && named;)
    if (!each.is_option) subject.fetched.push_back(std::string(name_in_url(each.part.text)));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
