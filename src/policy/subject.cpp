// A command that is judged: its words, its paths, its forms and its payloads.
//
// A refusal names the word that caused it by its bytes in the script. Words that the judge makes
// itself, of {} or of an input, have the place of the word that they come from.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// name[subscript]=value, name+=value: bash assigns; a POSIX shell would look for a program with
// this name.
bool is_bash_assignment(std::string_view text) {
  const std::size_t plus = text.find("+=");
  if (plus != std::string_view::npos && is_name(text.substr(0, plus))) return true;
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || !is_name(text.substr(0, open))) return false;
  const std::size_t equals = text.find('=', open);
  return equals != std::string_view::npos &&
         (text[equals - 1] == ']' || (text[equals - 1] == '+' && text[equals - 2] == ']'));
}

}  // namespace

inline namespace inner {

Form Subject::whole() const {
  Form form;
  form.words = command.words.data();
  form.size = command.words.size();
  form.code = command.tolerant;
  form.holes = command.holes;
  form.input = &command.input;
  return in_file(form, command.file);
}

Form Subject::in_file(const Form& form, std::string_view file) const {
  Form made = form;
  if (file.empty()) return made;
  made.file = file;
  made.lenient = judged.terms.allows_all();
  return made;
}

void Subject::refuse(Rule rule, const shell::Word& place, const Form& form,
                     std::string_view follows) {
  judged.refuse(rule, place.begin, place.end, concat({shown(join(form)), follows}));
}

void Subject::refuse_opaque(const Form& form, const shell::Word& word, std::string_view why,
                            std::string_view instead) {
  judged.understood = false;
  if (form.code || form.holes || form.lenient || command.defined ||
      !judged.wants(Rule::opaque_shell_input))
    return;
  judged.refuse(Rule::opaque_shell_input, word.begin, word.end,
                concat("%: %", {shown(form.file.empty() ? judged.written(word) : join(form)), why}),
                instead);
}

void Subject::refuse_unknown(const Form& form, bool for_asking) {
  if (for_asking && judged.terms.asked.empty()) return;
  judged.understood = false;
  const shell::Word& word = form.words[0];
  const std::size_t rank = for_asking ? ask_listed_rank : judged.rank_of(Rule::unknown_command);
  if (form.code || form.holes || form.lenient || command.defined || rank >= judged.rank) return;
  if (output.has_passed(word)) return;
  const std::string_view text = judged.written(word);
  if (judged.dialect == shell::Dialect::posix && (judged.in_test(word) || is_bash_assignment(text)))
    return;
  judged.refuse(Rule::unknown_command, rank, word.begin, word.end, shown(text));
}

// paths -------------------------------------------------------------------------------------------

const PathText& Subject::base() {
  if (!has_base_) {
    enter(base_, command.work_dir.text, command.work_dir.home);
    links.follow(base_, true);
    has_base_ = true;
  }
  return base_;
}

PathText Subject::path_from(const PathText& directory, const Part& part, bool last) const {
  PathText path = directory;
  enter(path, part.text, part.home());
  links.follow(path, last || ends_with(part.text, "/"sv) || ends_with(part.text, "/."sv));
  return path;
}

bool Subject::is_own_path(const Part& part) {
  return is_relative(part) && part.text.find('/') != std::string_view::npos &&
         lies_inside(path_of(part));
}

bool Subject::lies_inside(const PathText& path) const {
  for (const std::string_view name : path.names)
    if (is_unknown(name)) return false;
  if (path.root == PathText::Root::relative) return path.names.empty() || path.names[0] != ".."sv;
  return in_workspace(path);
}

bool Subject::removal_is_protected(const Part& part, const PathText& path) {
  // The directory one is in is removed by its contents: `find . -delete` is `rm -rf *`.
  const bool contents = is_relative(part) && path.names == base().names && path.root == base().root;
  return is_kept(path, contents, part.glob());
}

bool Subject::is_kept(const PathText& path, bool contents, bool glob) const {
  if (in_workspace(path) && (contents || path.names.size() > judged.start.names.size()))
    return false;
  return is_protected(path, contents, glob);
}

// forms and payloads ------------------------------------------------------------------------------

void Subject::add_form(const Form& form) {
  if (form.size == 0) return;
  if (form.level > max_peeled_levels)
    judged.too_complex = true;
  else
    forms.push_back(form);
}

void Subject::add_form(const Form& form, std::vector<shell::Word>&& words) {
  std::size_t bytes = 0;
  for (const shell::Word& word : words) bytes += word.text.size() + sizeof word;
  if (!judged.charge_bytes(bytes)) return;
  generated.push_back(std::move(words));
  Form made = form;
  made.words = generated.back().data();
  made.size = generated.back().size();
  add_form(made);
}

void Subject::add_payload(const Form& form, std::string_view text, bool same_shell,
                          std::size_t first_argument) {
  if (!judged.charge_bytes(text.size())) return;
  shell::Payload payload;
  payload.text = concat({same_shell ? std::string_view() : environment, text});
  payload.same_shell = same_shell;
  payload.tolerant = form.code;
  payload.holes = form.holes;
  payload.path = std::string(form.file);
  payload.input = *form.input;
  for (std::size_t i = first_argument; i < form.size; ++i)
    payload.arguments.push_back(shell::Word(form.words[i]));
  payloads.push_back(std::move(payload));
}

// words that the script does not have -------------------------------------------------------------

bool is_blank_or_unknown(std::string_view text) {
  return is_unknown(text) &&
         text.find_first_not_of(std::string_view("\0 \n", 3)) == std::string_view::npos;
}

shell::Word word_like(const shell::Word& place, std::string_view text) {
  shell::Word word;
  word.text = text;
  word.begin = place.begin;
  word.end = place.end;
  return word;
}

shell::Word unknown_word(const shell::Word& place) {
  shell::Word word = word_like(place, std::string_view("\0", 1));
  word.split = true;
  return word;
}

shell::Word replace_all(Case& judged, const shell::Word& word, std::string_view mark,
                        const shell::Word& by) {
  std::size_t at = mark.empty() ? std::string::npos : word.text.find(mark);
  if (at == std::string::npos) return word;
  shell::Word result = by;
  result.begin = word.begin;
  result.end = word.end;
  result.home = by.home && at == 0;
  if (word.text.size() == mark.size()) return result;
  result.text.clear();
  std::size_t from = 0;
  for (; at != std::string::npos; at = word.text.find(mark, from)) {
    if (!judged.charge_bytes(by.text.size())) return word;
    result.text.append(word.text, from, at - from).append(by.text);
    from = at + mark.size();
  }
  result.text.append(word.text, from, std::string::npos);
  return result;
}

void add_replaced(Subject& subject, const Form& form, std::string_view mark,
                  const shell::Word& by) {
  std::vector<shell::Word> words;
  for (std::size_t i = 0; i < form.size; ++i)
    words.push_back(replace_all(subject.judged, form.words[i], mark, by));
  subject.add_form(form, std::move(words));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
