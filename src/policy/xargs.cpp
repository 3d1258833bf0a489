// xargs and parallel, which repeat a command for the arguments that they read.
//
// If the walk knows the input, as in `echo a b | xargs rm`, its arguments are added to the command.
// If it does not, an unknown word stands for all of them. If find or ls writes the input, protected
// directories that it would name are added as well: `find / | xargs rm -r` removes /.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// arguments that are known ------------------------------------------------------------------------

bool is_item_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Arguments between delimiters; empty ones are left out.
std::vector<std::string> split_plain(Case& judged, std::string_view text, char delimiter) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::string_view item = take_part(text, delimiter);
    if (item.empty()) continue;
    if (!judged.charge_bytes(item.size() + sizeof(std::string))) break;
    items.push_back(std::string(item));
  }
  return items;
}

// Arguments as xargs reads them: quotes and \ are taken out. `lines`: each line is one, without
// the blanks before it; else blanks divide them.
std::vector<std::string> split_quoted(Case& judged, std::string_view text, bool lines) {
  std::vector<std::string> items;
  std::string item;
  bool in_item = false;
  const auto finish = [&] {
    if (in_item && judged.charge_bytes(item.size() + sizeof item)) items.push_back(item);
    item.clear();
    in_item = false;
  };
  for (std::size_t i = 0; i < text.size() && !judged.too_complex; ++i) {
    const char c = text[i];
    if (lines ? c == '\n' : is_item_blank(c)) {
      finish();
      continue;
    }
    if (lines && !in_item && is_item_blank(c)) continue;
    in_item = true;
    const std::size_t close = c == '"' || c == '\'' ? text.find(c, i + 1) : std::string_view::npos;
    if (close != std::string_view::npos) {
      item += text.substr(i + 1, close - i - 1);
      i = close;
    } else if (c == '\\' && i + 1 < text.size()) {
      item += text[++i];
    } else {
      item += c;
    }
  }
  finish();
  return items;
}

// One of the arguments that the form's input has.
shell::Word item_word(const Form& form, const std::string& item) {
  shell::Word word = word_like(form.words[0], item);
  word.glob = form.input->glob && is_pattern(item);
  word.home = form.input->home && starts_with(item, "~"sv);
  return word;
}

bool input_is_unknown(const Form& form) {
  return form.input->kind == shell::Input::Kind::unknown || is_unknown(form.input->text);
}

// arguments that are not known --------------------------------------------------------------------

// The protected files and directories that the command before the pipe would name. Only find and ls
// are understood; other commands name none.
class ProtectedNames {
 public:
  explicit ProtectedNames(Subject& subject) : subject_(subject) {
    if (!subject.producer || subject.producer->words.empty()) return;
    Form form;
    form.words = subject.producer->words.data();
    form.size = subject.producer->words.size();
    const std::string_view name = base_name(form.words[0].text);
    if (name == "find"sv) add_roots(form);
    if (name == "ls"sv) add_listed(form);
  }
  std::vector<shell::Word> words = {};

 private:
  void add(const Part& part, bool tested = false) {
    if (part.text.empty()) return;
    const PathText path = subject_.path_of(part);
    if (!subject_.removal_is_protected(part, path)) return;
    if (!tested || !is_known_path(path, PathKind::scratch))
      words.push_back(shell::Word(*part.word));
  }
  void add_roots(const Form& form) {
    const FindRoots roots = roots_of(form);
    const bool tested = has_test(form, roots.last);
    for (std::size_t i = roots.first; i < roots.last; ++i) add(part_of(form.words[i]), tested);
    if (roots.first == roots.last) add(part_of(word_like(form.words[0], ".")), tested);
  }
  // ls -d names its operands; ls names what is in directories, and files as they are given.
  void add_listed(const Form& form) {
    bool directories = false;
    for (Arguments each(form, {}, Order::options_anywhere); each.next();)
      directories |= each.has("d", "directory");
    if (!directories) {
      shell::Word all = word_like(form.words[0], "*");
      all.glob = true;
      add(part_of(all));
    }
    for (Arguments each(form, {}, Order::options_anywhere); each.next();)
      if (!each.is_option && (directories || each.part.glob())) add(each.part);
  }

  Subject& subject_;
};

// xargs -------------------------------------------------------------------------------------------

char delimiter_of(std::string_view text) {
  if (text.size() == 2 && text[0] == '\\') return text[1] == 't' ? '\t' : '\n';
  return text.size() == 1 ? text[0] : '\n';
}

void run_with_unknown(Subject& subject, const Form& command, std::string_view mark) {
  const ProtectedNames names(subject);
  if (!mark.empty()) {
    add_replaced(subject, command, mark, unknown_word(command.words[0]));
    if (!names.words.empty()) add_replaced(subject, command, mark, names.words[0]);
    return;
  }
  std::vector<shell::Word> words(command.words, command.words + command.size);
  words.push_back(unknown_word(command.words[0]));
  for (const shell::Word& name : names.words) words.push_back(shell::Word(name));
  subject.add_form(command, std::move(words));
}

// How many of the arguments, or of the lines that have them, come to one command. 0: not said.
struct Portions {
  std::size_t items = 0;
  std::size_t lines = 0;
};

std::size_t count_in(const Part& part) {
  std::size_t count = 0;
  for (const char c : part.text.substr(0, 6))
    if (is_digit(c)) count = 10 * count + static_cast<std::size_t>(c - '0');
  return count ? count : 1;
}

// The command with arguments behind it, as often as it takes.
void run_with_items(Subject& subject, const Form& form, const Form& command,
                    const std::vector<std::string>& items, std::size_t most) {
  for (std::size_t from = 0;; from += most) {
    const std::size_t end = most && most < items.size() - from ? from + most : items.size();
    std::vector<shell::Word> words(command.words, command.words + command.size);
    for (std::size_t i = from; i < end; ++i) words.push_back(item_word(form, items[i]));
    if (!subject.judged.charge_words(words.size())) return;
    subject.add_form(command, std::move(words));
    if (end == items.size()) return;
  }
}

// With -L, each command gets the arguments of some lines.
void run_with_lines(Subject& subject, const Form& form, const Form& command, std::string_view text,
                    std::size_t most) {
  while (!text.empty() && !subject.judged.too_complex) {
    std::size_t end = 0;
    for (std::size_t line = 0; line < most && end < text.size(); ++line)
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
    run_with_items(subject, form, command, split_quoted(subject.judged, text.substr(0, end), false),
                   0);
    text.remove_prefix(end);
  }
}

// parallel ----------------------------------------------------------------------------------------

// parallel joins its words with one argument, which it quotes, and gives that to a shell.
void run_parallel(Subject& subject, const Form& form, const Form& command, std::string_view mark,
                  const shell::Word& argument) {
  if (command.size == 0) {
    if (!argument.known())
      subject.refuse_opaque(form, argument, "its commands are not known before it runs"sv);
    return subject.add_payload(form, argument.text, false);
  }
  shell::Word quoted_argument = argument;
  quoted_argument.text.clear();
  // Quotes would make a ~ or * plain, so these stand bare where they can.
  if ((argument.home || argument.glob) &&
      argument.text.find_first_of(" \t\n'\"\\$`;&|<>(){}#!") == std::string::npos)
    quoted_argument.text = argument.text;
  else
    append_quoted(quoted_argument.text, argument.text);
  shell::Word script = word_like(command.words[0], join(command));
  if (!subject.judged.charge_bytes(script.text.size())) return;
  if (!mark.empty() && script.text.find(mark) != std::string::npos)
    script = replace_all(subject.judged, script, mark, quoted_argument);
  else
    append_all(script.text, " %", {quoted_argument.text});
  subject.add_payload(form, script.text, false);
}

}  // namespace

inline namespace inner {

void peel_xargs(Subject& subject, const Wrapper& wrapper, const Form& form) {
  std::string_view mark;  // of -I: stands for the argument, which is a line
  char delimiter = '\0';  // of -0 and -d; none: as split_quoted() has it
  bool from_file = false, nulls = false;
  Portions portions;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    const Part& argument = each.part;
    if (each.has("I")) mark = argument.text;
    if (each.has("i", "replace")) mark = argument.word ? argument.text : "{}";
    if (each.has("a", "arg-file")) from_file = true;
    if (each.has("0", "null")) nulls = true;
    if (each.has("d", "delimiter")) delimiter = delimiter_of(argument.text);
    if (each.is("n", "max-args")) portions.items = count_in(argument);
    if (each.is("L", "l", "max-lines")) portions.lines = count_in(argument);
    // A short line has one, or more.
    if (each.is("s", "max-chars")) portions.items = 1;
  }
  if (each.at() >= form.size) return;
  static const shell::Input nothing = {shell::Input::Kind::known, ""};
  Form command = form.from(each.at());
  command.input = &nothing;
  subject.judged.note_reader(*form.input, Reader::program);
  std::string text(form.input->text);
  if (nulls) {
    // A NUL byte may be one, or an unknown part.
    delimiter = '\n';
    std::replace(text.begin(), text.end(), '\0', '\n');
  }
  if (from_file || input_is_unknown(form)) {
    run_with_unknown(subject, command, mark);
    if (text.empty() || is_unknown(text)) return;
  }
  const std::vector<std::string> items = delimiter
                                             ? split_plain(subject.judged, text, delimiter)
                                             : split_quoted(subject.judged, text, !mark.empty());
  if (mark.empty() && portions.lines && !delimiter)
    return run_with_lines(subject, form, command, text, portions.lines);
  if (mark.empty())
    return run_with_items(subject, form, command, items,
                          portions.lines ? portions.lines : portions.items);
  for (const std::string& item : items) {
    if (!subject.judged.charge_words(command.size)) return;
    add_replaced(subject, command, mark, item_word(form, item));
  }
}

void peel_parallel(Subject& subject, const Wrapper& wrapper, const Form& form) {
  std::string_view mark = "{}";
  bool unknown = false;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    if (each.has("I")) mark = each.part.text;
    if (each.has("a", "arg-file")) unknown = true;
  }
  const std::size_t first = each.at();
  std::size_t last = first;
  while (last < form.size && !starts_with(form.words[last].text, ":::"sv)) ++last;
  Form command = form.from(first);
  command.size = last - std::min(first, last);
  // Behind ::: stand arguments, behind :::: files that have them; without both, the input has them.
  std::vector<shell::Word> arguments;
  bool in_files = false;
  for (std::size_t i = last; i < form.size; ++i) {
    if (starts_with(form.words[i].text, ":::"sv)) {
      in_files = starts_with(form.words[i].text, "::::"sv);
      unknown |= in_files;
    } else if (!in_files) {
      arguments.push_back(shell::Word(form.words[i]));
    }
  }
  if (last >= form.size) subject.judged.note_reader(*form.input, Reader::program);
  if (last >= form.size && input_is_unknown(form)) {
    unknown = true;
  } else if (last >= form.size) {
    for (const std::string& line : split_plain(subject.judged, form.input->text, '\n'))
      arguments.push_back(item_word(form, line));
  }
  if (unknown) {
    for (shell::Word& name : ProtectedNames(subject).words) arguments.push_back(std::move(name));
    arguments.push_back(unknown_word(form.words[0]));
  }
  for (const shell::Word& argument : arguments) {
    if (!subject.judged.charge_words(command.size)) return;
    run_parallel(subject, form, command, mark, argument);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
