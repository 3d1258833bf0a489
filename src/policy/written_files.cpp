// Files that are written and then run: `echo ls > a; sh a`, `cat <<X > b; python b`, `./c`.
//
// The walk knows the texts that the script gives them, and has them with the words that name the
// files. What an earlier command has written is handed in: see Guard::with_files(). So a shell
// reads either as it reads <( ): see nested_shells.cpp. Here is what else runs them, and what makes
// a text unknown.

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

const EarlierFiles::File* EarlierFiles::find(const std::string& path) {
  auto found = found_.find(path);
  if (found == found_.end()) {
    if (found_.size() == most) return nullptr;
    found = found_.emplace(path, shell::Input()).first;
    auto written = texts_(path);
    if (written && !is_unknown(*written)) {
      found->second.kind = shell::Input::Kind::known;
      found->second.text = std::move(*written);
      any_ = true;
    }
  }
  return found->second.kind == shell::Input::Kind::known ? &*found : nullptr;
}

void each_text(Subject& subject, const shell::Word& word,
               FunctionRef<void(const shell::Input&, std::string_view)> take) {
  const shell::Input* const printed = word.printed;
  for (const shell::Input* each = printed; each != nullptr; each = each->also) take(*each, {});
  const bool whole = printed != nullptr && !printed->added;
  EarlierFiles* const files = subject.judged.files;
  if (!files || whole || word.process || !is_certain(word) || word.home) return;
  PathText from = subject.path_of(part_of(word), true);
  subject.copies.follow(from, true);
  const std::string path = text_of(from);
  if (!starts_with(path, "/"sv) || is_unknown(path)) return;
  const EarlierFiles::File* const file = files->find(path);
  if (!file) return;
  const auto& [name, earlier] = *file;
  if (!printed) return take(earlier, name);
  shell::Input both = *printed;
  both.text = concat({std::string_view(earlier.text), std::string_view(printed->text)});
  take(both, name);
}

const shell::Word* input_file(Subject& subject, const Form& form) {
  if (form.holes || form.input != &subject.command.input) return nullptr;
  const shell::Redirection* input = nullptr;
  for (const shell::Redirection& redirection : subject.command.redirections)
    if (redirection.fd == 0) input = &redirection;
  if (!input || input->kind != shell::Redirection::Kind::read || input->target.printed)
    return nullptr;
  subject.run.push_back(input->target.text);
  return &input->target;
}

void run_written_file(Subject& subject, const Form& form) {
  if (form.holes) return;
  const shell::Word& file = form.words[0];
  if (file.text.find('/') == std::string::npos) return;
  subject.run.push_back(file.text);
  each_text(subject, file, [&](const shell::Input& text, std::string_view from) {
    if (text.piece) return;
    if (text.kind != shell::Input::Kind::known)
      return subject.refuse_opaque(form, file, "what it does is not known before it runs"sv);
    std::vector<shell::Word> words = words_of_first_line(text.text, file);
    for (std::size_t i = 0; i < form.size; ++i) words.push_back(shell::Word(form.words[i]));
    subject.add_form(subject.in_file(form.from(0), from), std::move(words));
  });
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
