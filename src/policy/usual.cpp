// What is allowed: by a pattern, or by PolicyOptions::allow_usual; usual_table.cpp has the names.
//
// A program is allowed for what it is asked to do here, so what is not understood is not allowed.
// sed and awk are read for what they would start or write; what timeout and the like start, and
// the commands in a script for a shell, are judged for themselves.

#include "policy/code_internal.hpp"
#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

bool may_be_several(const shell::Word& word) {
  return word.split || word.assumed || (word.glob && is_pattern(word.text));
}

// True if it may become an option, or be followed by one.
bool may_be_option(const shell::Word& word) {
  if (word.process || is_certain(word)) return false;
  return word.split || word.assumed || word.text.find_first_of(std::string_view("\0*?[-", 5)) == 0;
}

// Variables that change how a program prints, and not what it does.
constexpr auto printing_variables = NameSet{"CI",
                                            "COLUMNS",
                                            "DEBUG",
                                            "FORCE_COLOR",
                                            "LANG",
                                            "LANGUAGE",
                                            "LC_ALL",
                                            "LC_COLLATE",
                                            "LC_CTYPE",
                                            "LINES",
                                            "NODE_ENV",
                                            "NO_COLOR",
                                            "OMP_NUM_THREADS",
                                            "PYTHONDONTWRITEBYTECODE",
                                            "PYTHONUNBUFFERED",
                                            "TERM",
                                            "TZ"};

// sed ---------------------------------------------------------------------------------------------

// Reads a script of sed; whatever could write or start something is not allowed, and what sed
// programs read in different ways is not, either.
class QuietSed {
 public:
  explicit QuietSed(std::string_view script) : text_(script) {}

  bool is_quiet() {
    while (ok_ && skip_address()) read_command();
    return ok_;
  }

 private:
  char at() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip(std::string_view these) {
    at_ = std::min(text_.find_first_not_of(these, at_), text_.size());
  }
  // False: the script ends.
  bool skip_address() {
    for (;;) {
      skip(" \t\n;{}!,+~0123456789$"sv);
      if (at() != '/' && at() != '\\') return at_ < text_.size();
      at_ += at() == '\\';
      const char end = at();
      ++at_;
      read_part(end);
      skip("IM"sv);
      if (!ok_) return false;
    }
  }
  // Up to the closing character, which is skipped. A bracket that may hide it is not understood.
  void read_part(char end) {
    const bool usable = end != '\0' && end != '\n' && end != '\\' && !is_name_char(end);
    ok_ = ok_ && usable;
    bool bracket = false;
    for (; ok_ && at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == end && !bracket) {
        ++at_;
        return;
      }
      if (c == '\\' && !bracket) ++at_;
      // A ] that stands first in the brackets does not close them.
      if (bracket && c == ']') bracket = false;
      if (c == '[' && !bracket) {
        const std::size_t first = at_ + 1 + (at_ + 1 < text_.size() && text_[at_ + 1] == '^');
        const std::size_t close = text_.find(']', first + 1);
        const std::string_view inside = text_.substr(at_, close - at_);
        // Programs differ in what such a one holds.
        ok_ = close != std::string_view::npos && inside.find(end) == std::string_view::npos &&
              inside.find_first_of("\\\n"sv) == std::string_view::npos;
        at_ = close;
      }
    }
    ok_ = false;
  }
  void read_command() {
    const char letter = at();
    ++at_;
    if (letter == 's' || letter == 'y') {
      const char end = at();
      ++at_;
      read_part(end);
      if (ok_) read_part(end);
      if (letter == 's') skip("gpIiMm0123456789"sv);
    } else if ("btT:"sv.find(letter) != std::string_view::npos) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      ok_ = ok_ && letter != '\0' && "pPdDqQ=lnNgGhHxF"sv.find(letter) != std::string_view::npos;
      skip("0123456789"sv);
    }
    skip(" \t"sv);
    ok_ = ok_ && (at_ >= text_.size() || ";}\n"sv.find(at()) != std::string_view::npos);
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// The files that sed -i changes must lie in the workspace, by what their names say.
bool are_own_files(Subject& subject, const std::vector<Part>& files) {
  for (const Part& file : files)
    if (file.word->process || !subject.lies_inside(subject.path_of(file))) return false;
  return true;
}

// What follows the letter i in its word is no option, but an ending for the file that is kept.
bool ends_words_with_i(const Form& form) {
  for (std::size_t k = 1; k < form.size; ++k) {
    const std::string_view text = form.words[k].text;
    const std::size_t letter = text.find('i');
    if (starts_with(text, "-"sv) && !starts_with(text, "--"sv) &&
        letter != std::string_view::npos && letter + 1 < text.size())
      return false;
  }
  return true;
}

bool is_quiet_sed(Subject& subject, const Form& form) {
  FileProgram program;
  find_file_program("sed"sv, program);
  bool given = false, in_place = false;
  std::vector<Part> operands;
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next();) {
    if (!each.is_option) {
      operands.push_back(each.part);
    } else if (each.has("i", "in-place")) {
      // What is kept has this behind its name, or in place of the * in it.
      in_place = true;
      if (each.part.word && each.part.text.find_first_of("/*"sv) != std::string_view::npos)
        return false;
    } else if (each.has("e", "expression") && each.part.word) {
      given = true;
      if (!is_certain(*each.part.word) || !QuietSed(each.part.text).is_quiet()) return false;
    } else if (!each.has("n", "E", "r", "s", "u", "z", "quiet", "silent", "regexp-extended",
                         "separate", "unbuffered", "null-data", "posix", "sandbox", "debug")) {
      return false;
    }
  }
  for (std::size_t i = 1; i < form.size; ++i)
    if (may_be_option(form.words[i])) return false;
  if (!given) {
    // sed -i '' s/a/b/ a: where -i takes an argument, the script is the next word.
    if (operands.empty() || !is_certain(*operands[0].word) ||
        (in_place && operands[0].text.empty()) || !QuietSed(operands[0].text).is_quiet())
      return false;
    operands.erase(operands.begin());
  }
  return !in_place || (ends_words_with_i(form) && are_own_files(subject, operands));
}

// awk ---------------------------------------------------------------------------------------------

// True if the code starts nothing and writes nothing, however a slash in it is read.
bool is_quiet_awk(std::string_view code, bool divides) {
  CodeScope scope;
  scope.language = Language::awk;
  const CodePiece piece = {std::string(code), 0, false};
  CodeLexer lexer(scope, piece, divides);
  bool prints = false;
  for (CodeToken token = lexer.next(); !token.is(CodeToken::Kind::end); token = lexer.next()) {
    if (token.is(CodeToken::Kind::name)) {
      if (is_any(token.name, "system", "getline", "close", "fflush", "extension") ||
          is_unknown(token.name))
        return false;
      prints = prints || is_any(token.name, "print", "printf");
    } else if (token.is(CodeToken::Kind::mark)) {
      if (token.is_mark('|') || token.is_mark('@') || token.is_mark('"') || token.is_mark('\\') ||
          (prints && (token.is_mark('>') || token.is_mark(CodeToken::other))))
        return false;
      if (";{}\n"sv.find(token.mark) != std::string_view::npos) prints = false;
    }
  }
  return true;
}

bool is_quiet_awk(const Form& form) {
  Wrapper wrapper;
  find_wrapper("awk"sv, wrapper);
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next())
    if (!each.has("F", "v", "field-separator", "assign") || !each.part.word) return false;
  for (std::size_t i = 1; i <= each.at() && i < form.size; ++i)
    if (!is_certain(form.words[i]) && !(form.words[i].known() && i == each.at())) return false;
  if (each.at() >= form.size) return false;
  const std::string& code = form.words[each.at()].text;
  return is_quiet_awk(code, false) && is_quiet_awk(code, true);
}

// True if no word is an option, or may become one.
bool has_no_options(const Form& files) {
  for (std::size_t i = 0; i < files.size; ++i)
    if (may_be_option(files.words[i]) || starts_with(files.words[i].text, "-"sv)) return false;
  return true;
}

// a[$(x)]: true if a [ has a ( or ` anywhere behind it; npos + 1 is 0.
bool may_run_as_number(std::string_view text) {
  return text.find('[') < text.find_last_of("(`"sv) + 1;
}

// Options and operands as the row of the program wants them.
bool is_plain_usual(const Form& form, const UsualProgram& usual, std::string_view name) {
  FileProgram program;
  find_file_program(name, program);
  const bool filters = program.operands == FileProgram::Operands::filter;
  // Some options are refused: then no word may become one in a run.
  const bool careful = !usual.counts && (!usual.refused.empty() || !program.writes.empty());
  bool options = true;
  for (std::size_t i = 1; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    const std::string_view text = word.text;
    options = options && text != "--"sv;
    if ((careful && options && may_be_option(word)) || (filters && may_be_several(word)) ||
        (starts_with(text, "-"sv) && usual.refused.has(text)) ||
        (starts_with(text, "@"sv) && usual.refused.has("@"sv)) ||
        (usual.counts && may_run_as_number(text)))
      return false;
  }
  std::size_t operands = 0;
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next();) {
    if (each.is(usual.refused) || each.is(program.writes)) return false;
    operands += !each.is_option;
  }
  return !filters || operands < 2;
}

// what starts another program ---------------------------------------------------------------------

// True if the form only reads or prints, runs tests, or starts what is allowed.
bool is_usual(Subject& subject, const Form& form);

bool is_allowed(Subject& subject, const Form& form) {
  return is_usual(subject, form) || is_listed_allowed(subject, form);
}

constexpr unsigned deepest_start = 8;

// timeout 5 COMMAND, nohup COMMAND, env A=b COMMAND
bool starts_allowed(Subject& subject, const Form& form, std::string_view name) {
  std::size_t i = 1;
  if (name == "env"sv) {
    for (; i < form.size; ++i) {
      std::string_view value = form.words[i].text;
      if (value.find('=') == std::string_view::npos) break;
      if (!is_certain(form.words[i]) || !printing_variables.has(take_part(value, '=')))
        return false;
    }
    if (i == form.size) return true;
    if (i == 1) return false;
  } else {
    Wrapper wrapper;
    if (!find_wrapper(name, wrapper)) return false;
    i = Arguments(form, wrapper.syntax, Order::stop_at_operand).skip() +
        wrapper.has(Wrapper::word_before);
    for (std::size_t k = 1; k < i && k < form.size; ++k)
      if (!is_certain(form.words[k])) return false;
  }
  return i < form.size && form.level < deepest_start && is_allowed(subject, form.from(i));
}

bool are_certain(const Form& form, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i)
    if (!is_certain(form.words[i]) || form.words[i].process) return false;
  return true;
}

// A command that find or xargs starts with words that are known only then. `mark` stands for some.
bool starts_with_unknown(Subject& subject, const Form& command, std::string_view mark) {
  if (command.size == 0 || command.level >= deepest_start) return false;
  std::vector<shell::Word> words;
  for (std::size_t i = 0; i < command.size; ++i) {
    const shell::Word& word = command.words[i];
    const bool marked = !mark.empty() && word.text.find(mark) != std::string::npos;
    words.push_back(marked ? unknown_word(word) : shell::Word(word));
  }
  words.push_back(unknown_word(command.words[0]));
  Form made = command;
  made.words = words.data();
  made.size = words.size();
  return is_allowed(subject, made);
}

// Takes the commands of -exec out of the words of find; false: one is not allowed.
bool take_commands(Subject& subject, const Form& form, std::vector<shell::Word>& rest) {
  for (std::size_t i = 0; i < form.size; ++i) {
    if (!is_any(form.words[i].text, "-exec", "-execdir", "-ok", "-okdir")) {
      rest.push_back(shell::Word(form.words[i]));
      continue;
    }
    const std::size_t end = end_of_exec(form, i + 1);
    Form command = form.from(i + 1);
    command.size = end - std::min(i + 1, end);
    if (!are_certain(form, i, end) || !starts_with_unknown(subject, command, "{}"sv)) return false;
    i = end;
  }
  return true;
}

bool is_usual_find(Subject& subject, const Form& form, const UsualProgram& usual) {
  std::vector<shell::Word> rest;
  if (!take_commands(subject, form, rest)) return false;
  Form only = form;
  only.words = rest.data();
  only.size = rest.size();
  return is_plain_usual(only, usual, "find"sv);
}

bool is_usual_xargs(Subject& subject, const Form& form) {
  Wrapper wrapper;
  find_wrapper("xargs"sv, wrapper);
  std::string_view mark;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    if (each.has("I", "i", "replace"))
      mark = each.part.word ? each.part.text : "{}"sv;
    else if (!each.has("0", "null", "d", "delimiter", "n", "max-args", "L", "max-lines", "P",
                       "max-procs", "r", "no-run-if-empty", "t", "verbose"))
      return false;
  }
  return each.at() < form.size && are_certain(form, 0, each.at()) &&
         starts_with_unknown(subject, form.from(each.at()), mark);
}

// True if a pattern allows python with whatever it is given: then it may run any file.
bool allows_any_python(const Subject& subject, const Form& form) {
  const shell::Word words[] = {word_like(form.words[0], "python"), unknown_word(form.words[0])};
  Form python = form.from(0);
  python.words = words;
  python.size = std::size(words);
  return is_listed_allowed(subject, python);
}

// . DIR/bin/activate of a virtual environment, where any file may be run as python anyway.
bool is_activation(const Subject& subject, const Form& form) {
  return form.size == 2 && are_certain(form, 1, 2) &&
         ends_with(form.words[1].text, "/bin/activate"sv) && allows_any_python(subject, form);
}

// sh -lc 'SCRIPT': the commands in it are judged next.
bool runs_script(const Form& form) {
  return form.size == 3 && is_any(form.words[1].text, "-c", "-lc", "-cl", "-ec", "-euc") &&
         is_certain(form.words[2]) && !form.words[2].process;
}

// True if an address names this host. Of what follows nothing needs to be known.
bool is_of_this_host(std::string_view address) {
  for (const std::string_view scheme : {"http://"sv, "https://"sv}) {
    if (!starts_with(address, scheme)) continue;
    address.remove_prefix(scheme.size());
    break;
  }
  for (const std::string_view host : {"localhost"sv, "127.0.0.1"sv, "[::1]"sv}) {
    if (!starts_with(address, host)) continue;
    address.remove_prefix(host.size());
    if (starts_with(address, ":"sv)) address.remove_prefix(1);
    address.remove_prefix(std::min(address.find_first_not_of("0123456789"sv), address.size()));
    return address.empty() || address[0] == '/';
  }
  return false;
}

// curl that gets pages of this host and prints them.
bool is_quiet_curl(const Form& form, const UsualProgram& usual) {
  FileProgram program;
  find_file_program("curl"sv, program);
  bool gets = false;
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next();) {
    const Part& part = each.part;
    if (part.word && (part.word->split || part.word->assumed || part.word->process)) return false;
    if (!each.is_option) {
      gets = true;
      if (!is_of_this_host(part.text)) return false;
      continue;
    }
    if (!usual.options.has(each.option) || (part.word && !is_certain(*part.word))) return false;
    if (each.has("o", "output") && part.text != "/dev/null"sv) return false;
    // A format may be read from a file, and may write to one.
    if (each.has("w", "write-out") &&
        (starts_with(part.text, "@"sv) || part.text.find("output{") != std::string_view::npos))
      return false;
  }
  return gets;
}

// The usual options of a program that runs tests, and of some others; what it tests is code of the
// workspace. Of an operand with = nothing is known.
bool has_listed_options(const Form& form, const UsualProgram& usual) {
  for (std::size_t i = 1; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    std::string_view text = word.text;
    if (may_be_option(word) || word.process) return false;
    if (!starts_with(text, "-"sv)) {
      if (text.find('=') != std::string_view::npos) return false;
      continue;
    }
    text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
    const std::string_view name = take_part(text, '=');
    // -n4, -vv, -xvs
    bool letter = !name.empty() && !is_digit(name[0]);
    for (const char c : name)
      letter = letter && (is_digit(c) || usual.options.has(std::string_view(&c, 1)));
    if (!letter && !usual.options.has(name)) return false;
  }
  return true;
}

// Finds the row of a program, or of a program and the words behind it: "python -m pytest". Gives
// how many words its name has; 0: there is none.
std::size_t find_usual_form(const Form& form, std::string_view first, UsualProgram& usual) {
  constexpr std::size_t longest = 3;
  for (std::size_t words = std::min(longest, form.size); words > 0; --words) {
    std::string name(first);
    bool certain = true;
    for (std::size_t i = 1; i < words; ++i) {
      certain = certain && is_certain(form.words[i]);
      append_all(name, {" ", form.words[i].text});
    }
    if (certain && find_usual(name, usual)) return words;
  }
  return 0;
}

// Variables in small letters by which zsh can be made to run something else.
constexpr auto zsh_variables = NameSet{
    "argv",    "builtins",   "commands", "dirstack", "functions", "mapfile", "modules", "nameddirs",
    "options", "parameters", "patchars", "prompt",   "reswords",  "status",  "userdirs"};

// A variable of the script's own, as far as its name shows: in small letters, and none that zsh or
// programs look at.
bool is_own_variable(std::string_view name) {
  for (const std::string_view ending : {"_proxy"sv, "aliases"sv, "path"sv})
    if (ends_with(name, ending)) return false;
  for (const std::string_view beginning : {"dis_"sv, "npm_"sv, "functions_"sv})
    if (starts_with(name, beginning)) return false;
  if (zsh_variables.has(name)) return false;
  for (const char c : name)
    if (c != '_' && !is_digit(c) && (c < 'a' || c > 'z')) return false;
  return !name.empty();
}

// NAME=value without a command. A value may be read as arithmetic later.
bool only_assigns(const shell::Command& command) {
  for (const shell::Assignment& assignment : command.assignments)
    if (!is_own_variable(assignment.name) || may_run_as_number(assignment.value.text)) return false;
  return command.words.empty() && !command.assignments.empty();
}

// python and such of a virtual environment of the workspace, under the same condition.
bool is_of_environment(Subject& subject, const Form& form) {
  const std::string& program = form.words[0].text;
  const std::string_view name = base_name(program);
  if (!ends_with(std::string_view(program).substr(0, program.size() - name.size()), "/bin/"sv) ||
      !allows_any_python(subject, form) ||
      !subject.lies_inside(subject.path_of(part_of(form.words[0]))))
    return false;
  std::vector<shell::Word> words(form.words, form.words + form.size);
  words[0].text = std::string(name);
  Form made = form.from(0);
  made.words = words.data();
  return is_listed_allowed(subject, made);
}

bool is_usual(Subject& subject, const Form& form) {
  if (form.size == 0) return form.level == 0 && only_assigns(subject.command);
  if (!is_certain(form.words[0])) return false;
  const bool whole = form.level == 0;
  for (const shell::Assignment& assignment : subject.command.assignments)
    if (whole && (!is_certain(assignment.value) || !printing_variables.has(assignment.name)))
      return false;
  std::string_view name = form.words[0].text;
  if (whole && !subject.command.assignments.empty()) return is_allowed(subject, form.from(0));
  // A program of the system that only says what it is.
  if (form.size == 2 && is_any(form.words[1].text, "--version", "--help") &&
      name.find('/') == std::string_view::npos)
    return true;
  UsualProgram usual;
  std::size_t words = find_usual_form(form, name, usual);
  if (words == 0) {
    // A shell is one by its usual path, too.
    for (const std::string_view folder : {"/bin/"sv, "/usr/bin/"sv})
      if (starts_with(name, folder)) name.remove_prefix(folder.size());
    words = find_usual_form(form, name, usual);
    if (words == 0 || usual.kind != UsualProgram::Kind::shell)
      return is_of_environment(subject, form);
  }
  switch (usual.kind) {
    case UsualProgram::Kind::plain:
      return is_plain_usual(form, usual, name);
    case UsualProgram::Kind::asks:
      return form.size > 1 && is_any(form.words[1].text, "-v", "-V");
    case UsualProgram::Kind::awk:
      return is_quiet_awk(form);
    case UsualProgram::Kind::mode:
      return form.size > 2 && is_any(form.words[1].text, "+x", "u+x", "a+x", "755", "644") &&
             has_no_options(form.from(2));
    case UsualProgram::Kind::finds:
      return is_usual_find(subject, form, usual);
    case UsualProgram::Kind::repeats:
      return is_usual_xargs(subject, form);
    case UsualProgram::Kind::sources:
      return is_activation(subject, form);
    case UsualProgram::Kind::sed:
      return is_quiet_sed(subject, form);
    case UsualProgram::Kind::shell:
      return runs_script(form);
    case UsualProgram::Kind::starts:
      return starts_allowed(subject, form, name);
    case UsualProgram::Kind::listed:
      return has_listed_options(form.from(words - 1), usual);
    case UsualProgram::Kind::fetches:
      return is_quiet_curl(form, usual);
  }
  return false;
}

}  // namespace

inline namespace inner {

void check_allowed(Subject& subject) {
  if (allowed_rank >= subject.judged.rank ||
      (subject.judged.terms.allow_usual && is_usual(subject, subject.whole())) ||
      is_listed_allowed(subject, subject.whole()))
    return;
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
