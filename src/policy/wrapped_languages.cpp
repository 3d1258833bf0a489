// Programs whose own language starts others: editors, make, sed, tar, terminals.
//
// Each language is read only as far as needed to find the texts that it hands to a shell, and the
// files that it writes. What the language itself would put into such a text is a hole in it.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// True if the file that an option names is standard input, and known.
bool is_input(Subject& subject, const Part& file, const Form& form) {
  const bool input = is_any(file.text, "-", "/dev/stdin");
  if (file.word->process || (input && form.input->kind == shell::Input::Kind::unknown))
    subject.refuse_opaque(form, *file.word, "what it reads is not known before it runs"sv);
  return input && form.input->kind == shell::Input::Kind::known;
}

// editors and debuggers ---------------------------------------------------------------------------

// A command of vim or gdb. Some are for a shell: !ls, shell ls.
void judge_console(Subject& subject, const Form& form, const Part& command) {
  std::string_view text = command.text;
  text.remove_prefix(std::min(text.find_first_not_of(": \t"), text.size()));
  const std::size_t shell = text.find('!');
  if (shell != std::string_view::npos) {
    // exe "!ls"
    const bool quoted = shell > 0 && (text[shell - 1] == '"' || text[shell - 1] == '\'');
    const std::size_t end = quoted ? text.find(text[shell - 1], shell) : text.size();
    return run_guess(subject, form, text.substr(shell + 1, end - shell - 1));
  }
  std::string_view rest = text;
  if (is_any(take_part(rest, ' '), "shell", "pipe", "system", "terminal", "term"))
    return run_guess(subject, form, rest);
  // :call system('...'), python os.system("...")
  read_code(subject, Language::lua, text, form, *command.word);
}

// What comes in, line by line. Of ed, `!ls`, `r !ls` and `1,$w !ls`, but not in the text behind a.
void judge_console_input(Subject& subject, const Form& form) {
  bool in_text = false;
  std::string_view lines = form.input->text;
  while (!lines.empty()) {
    std::string_view line = take_part(lines, '\n');
    if (in_text) {
      in_text = line != "."sv;
      continue;
    }
    line.remove_prefix(std::min(line.find_first_not_of("0123456789,.$;%+-:\\ \t"), line.size()));
    in_text = is_any(line, "a", "i", "c");
    if (!line.empty() && "rwWe"sv.find(line[0]) != std::string_view::npos) {
      line.remove_prefix(1);
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      if (!starts_with(line, "!"sv)) continue;
    }
    std::string_view rest = line;
    const std::string_view first = take_part(rest, ' ');
    if (starts_with(line, "!"sv))
      run_guess(subject, form, line.substr(1));
    else if (is_any(first, "shell", "system"))
      run_guess(subject, form, rest);
  }
}

// make --------------------------------------------------------------------------------------------

// Makes one script of the commands of all lines, with holes for what make expands. A line of
// commands begins with a tab; more stand behind the ; of a rule, behind != and in $(shell ).
void judge_makefile(Subject& subject, const Form& form, std::string_view text) {
  if (!subject.judged.charge_bytes(text.size())) return;
  std::string script;
  while (!text.empty()) {
    std::string_view line = take_part(text, '\n');
    if (!starts_with(line, "\t"sv)) {
      const std::size_t rule = line.find(':');
      const std::size_t end = rule == std::string_view::npos ? rule : line.find(';', rule);
      const std::size_t assigned = line.find("!=");
      const std::size_t called = line.find("$(shell ");
      if (called != std::string_view::npos)
        append_all(script, "%\n", {line.substr(called + 8, line.rfind(')') - called - 8)});
      if (assigned != std::string_view::npos)
        line.remove_prefix(assigned + 2);
      else
        line.remove_prefix(std::min(end, line.size() - 1) + 1);
    }
    line.remove_prefix(std::min(line.find_first_not_of("\t @-+"), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '$' || i + 1 == line.size()) {
        script += line[i];
      } else if (line[++i] == '$') {
        script += '$';
      } else if (starts_with(line.substr(i), "(shell "sv)) {
        script += "$(";
        i += 6;
      } else {
        script += '\0';
        if (line[i] == '(' || line[i] == '{')
          i = std::min(line.find_first_of(")}", i), line.size());
      }
    }
    script += '\n';
  }
  run_guess(subject, form, script);
}

// sed ---------------------------------------------------------------------------------------------

// What a replacement puts in. & and \1 are parts of the input, which is not known. Nor is the rest
// of the line, which stands behind the replacement.
std::string sed_replacement(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 1 < text.size();
    i += escaped;
    const bool group = escaped ? is_digit(text[i]) : text[i] == '&';
    result += group ? '\0' : escaped && text[i] == 'n' ? '\n' : text[i];
  }
  if (result.find(' ') != std::string::npos) result += '\0';
  return result;
}

// Reads a sed script, command by command. Judges the files that it writes, and what it gives to a
// shell:
//
//   1,$ s/a/b/e     an address, which is skipped; a letter; two parts; flags, of which e runs b
//   /x/ w FILE      a file that is written, to the end of the line
//   $ e COMMAND     a command for a shell, to the end of the line
class SedReader {
 public:
  SedReader(Subject& subject, const Form& form, const Part& script)
      : subject_(subject), form_(form), script_(script), text_(script.text) {}

  void read() {
    while (skip_address(), at_ < text_.size()) read_command(text_[at_++]);
  }

 private:
  // What stands before a command: 1,$!  /x/,+3
  void skip_address();
  void read_command(char letter);
  void read_substitution();
  // Up to `end`, which is skipped.
  std::string_view read_part(char end);
  std::string_view read_to(std::string_view ends) {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(ends, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }
  void write(std::string_view file) {
    file.remove_prefix(std::min(file.find_first_not_of(' '), file.size()));
    use_file(subject_, Use::write, {file, script_.word}, false, form_);
  }
  void run(std::string_view command);

  Subject& subject_;
  const Form& form_;
  const Part& script_;
  const std::string_view text_;
  std::size_t at_ = 0;
};

void SedReader::skip_address() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if ("0123456789$,~+!; \t\n{}IM"sv.find(c) != std::string_view::npos) {
      ++at_;
    } else if (c == '/' || (c == '\\' && at_ + 1 < text_.size())) {
      at_ += c == '\\';
      read_part(text_[at_++]);
    } else {
      return;
    }
  }
}

std::string_view SedReader::read_part(char end) {
  const std::size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != end) at_ += text_[at_] == '\\' ? 2U : 1U;
  const std::string_view part = text_.substr(begin, std::min(at_, text_.size()) - begin);
  at_ = std::min(at_ + 1, text_.size());
  return part;
}

void SedReader::read_command(char letter) {
  switch (letter) {
    case 's':
    case 'y':
      return read_substitution();
    case 'e':
      return run(read_to("\n"));
    case 'w':
    case 'W':
      return write(read_to("\n"));
    case 'a':
    case 'i':
    case 'c':
      // A backslash at the end of a line continues the text.
      read_to("\n");
      while (at_ < text_.size() && text_[at_ - 1] == '\\') {
        ++at_;
        read_to("\n");
      }
      return;
    case 'r':
    case 'R':
    case '#':
      read_to("\n");
      return;
    case 'b':
    case 't':
    case 'T':
    case ':':
      read_to(";\n}");
      return;
    default:  // without arguments
      return;
  }
}

// s/pattern/replacement/flags: the flag e runs what it makes, w FILE is the last one.
void SedReader::read_substitution() {
  const char end = at_ < text_.size() ? text_[at_++] : '\n';
  read_part(end);
  const std::string_view replacement = read_part(end);
  bool runs = false;
  while (at_ < text_.size() && is_name_char(text_[at_]) && text_[at_] != 'w')
    runs |= text_[at_++] == 'e';
  if (at_ < text_.size() && text_[at_] == 'w') write(read_to("\n").substr(1));
  if (runs) run(sed_replacement(replacement));
}

// Runs a command, and the input, too, as sed may make the command of that.
void SedReader::run(std::string_view command) {
  run_guess(subject_, form_, command);
  if (form_.input->kind == shell::Input::Kind::known)
    run_guess(subject_, form_, form_.input->text);
  else if (command.find_first_not_of(std::string_view("\0 ", 2)) == std::string_view::npos)
    subject_.refuse_opaque(form_, *script_.word, "what it runs is not known before it runs"sv);
}

}  // namespace

inline namespace inner {

void peel_console(Subject& subject, const Wrapper& wrapper, const Form& form) {
  const auto take = [&](const Part& script) {
    if (wrapper.has(Wrapper::for_shell)) return run_option(subject, form, script);
    judge_console(subject, form, script);
  };
  for (std::size_t i = 1; i < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    if (starts_with(text, "+"sv)) take({text.substr(1), &form.words[i]});
    if (text.size() < 2 || text[0] != '-') continue;
    std::string_view value = text.substr(1 + (text[1] == '-'));
    const std::string_view name = take_part(value, '=');
    if (wrapper.programs.has(name)) return subject.add_form(form.from(i + 1));
    if (!value.empty() && wrapper.scripts.has(name))
      take({value, &form.words[i]});
    else if (wrapper.scripts.has(name) && i + 1 < form.size)
      take(part_of(form.words[++i]));
    else if (wrapper.scripts.has(text.substr(1, 1)))
      take({text.substr(2), &form.words[i]});
  }
  if (wrapper.has(Wrapper::reads_input) && form.input->kind == shell::Input::Kind::known)
    judge_console_input(subject, form);
}

void peel_make(Subject& subject, const Wrapper& wrapper, const Form& form) {
  for (Arguments each(form, wrapper.syntax, Order::options_anywhere); each.next();) {
    const Part& part = each.part;
    if (!part.word) continue;
    if (each.has("eval", "E")) judge_makefile(subject, form, part.text);
    if (each.is("f", "file", "makefile") && is_input(subject, part, form))
      judge_makefile(subject, form, form.input->text);
    if (!each.is_option && starts_with(part.text, "SHELL="sv))
      run_guess(subject, form, part.text.substr(6));
  }
}

void peel_sed(Subject& subject, const Wrapper& wrapper, const Form& form) {
  bool given = false;
  Part first;
  for (Arguments each(form, wrapper.syntax, Order::options_anywhere); each.next();) {
    const Part& part = each.part;
    if (!each.is_option && !first.word) first = part;
    given = given || each.is("e", "f", "expression", "file");
    if (part.word && each.is("e", "expression")) SedReader(subject, form, part).read();
    if (part.word && each.is("f", "file") && is_input(subject, part, form))
      SedReader(subject, form, {form.input->text, part.word}).read();
  }
  if (!given && first.word) SedReader(subject, form, first).read();
}

void peel_tar(Subject& subject, const Wrapper& wrapper, const Form& form) {
  for (Arguments each(form, wrapper.syntax, Order::options_anywhere); each.next();)
    if (each.part.word && each.is(wrapper.scripts)) run_option(subject, form, each.part);
  // Without a dash, the arguments of the letters are the words behind them.
  if (form.size < 2 || starts_with(form.words[1].text, "-"sv)) return;
  std::size_t i = 2;
  for (const char letter : form.words[1].text) {
    if (wrapper.syntax.letters.find(letter) == std::string_view::npos) continue;
    if ((letter == 'I' || letter == 'F') && i < form.size)
      run_guess(subject, form, form.words[i].text);
    ++i;
  }
}

void peel_screen(Subject& subject, const Wrapper& wrapper, const Form& form) {
  bool commands = false, attaches = false;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    commands |= each.has("X");
    attaches |= each.has("r", "R", "x");
  }
  if (attaches) return;
  const Form rest = form.from(each.at());
  if (!commands) return subject.add_form(rest);
  if (rest.size < 2) return;
  if (rest.words[0].text == "stuff") return peel_keys(subject, wrapper, rest);
  if (is_any(rest.words[0].text, "exec", "screen")) subject.add_form(rest.from(1));
}

void peel_keys(Subject& subject, const Wrapper& wrapper, const Form& form) {
  std::string text;
  const std::size_t first = Arguments(form, wrapper.syntax, Order::stop_at_operand).skip();
  for (std::size_t i = first; i < form.size; ++i) {
    std::string_view word = form.words[i].text;
    if (is_any(word, "Enter", "KPEnter", "C-m", "C-j")) word = "^M";
    if (word == "Space"sv) word = " ";
    while (!word.empty()) {
      std::size_t size = 0;
      for (const std::string_view key : {"^M", "^J", "\\n", "\\r", "\\015", "\\012", "\r"})
        if (starts_with(word, key)) size = key.size();
      text += size ? '\n' : word[0];
      word.remove_prefix(std::max<std::size_t>(size, 1));
    }
  }
  if (first < form.size) run_string(subject, form, {text, &form.words[first]});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
