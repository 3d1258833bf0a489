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

bool is_quiet_sed(const Form& form) {
  FileProgram program;
  find_file_program("sed"sv, program);
  bool given = false;
  Part first;
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next();) {
    if (!each.is_option) {
      if (!first.word) first = each.part;
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
  if (given) return true;
  return first.word && is_certain(*first.word) && QuietSed(first.text).is_quiet();
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

// what starts another program ---------------------------------------------------------------------

// True if the form only reads or prints, runs tests, or starts what is allowed.
bool is_usual(const Subject& subject, const Form& form);

bool is_allowed(const Subject& subject, const Form& form) {
  return is_usual(subject, form) || is_listed_allowed(subject, form);
}

// timeout 5 COMMAND, nohup COMMAND, env A=b COMMAND
bool starts_allowed(const Subject& subject, const Form& form, std::string_view name) {
  constexpr unsigned deepest = 8;
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
  return i < form.size && form.level < deepest && is_allowed(subject, form.from(i));
}

// sh -lc 'SCRIPT': the commands in it are judged next.
bool runs_script(const Form& form) {
  return form.size == 3 && is_any(form.words[1].text, "-c", "-lc", "-cl", "-ec", "-euc") &&
         is_certain(form.words[2]) && !form.words[2].process;
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
    // The last condition: a [ has a ( or ` anywhere behind it; npos + 1 is 0.
    if ((careful && options && may_be_option(word)) || (filters && may_be_several(word)) ||
        (starts_with(text, "-"sv) && usual.refused.has(text)) ||
        (usual.counts && text.find('[') < text.find_last_of("(`"sv) + 1))
      return false;
  }
  std::size_t operands = 0;
  for (Arguments each(form, program.syntax, Order::options_anywhere); each.next();) {
    if (each.is(usual.refused) || each.is(program.writes)) return false;
    operands += !each.is_option;
  }
  return !filters || operands < 2;
}

// The usual options of a program that runs tests; what it tests is code of the workspace. Of an
// operand with = nothing is known.
bool is_test_run(const Form& form, const UsualProgram& usual) {
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

bool is_usual(const Subject& subject, const Form& form) {
  if (form.size == 0 || !is_certain(form.words[0])) return false;
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
    if (words == 0 || usual.kind != UsualProgram::Kind::shell) return false;
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
             !may_be_option(form.words[2]) && !starts_with(form.words[2].text, "-"sv);
    case UsualProgram::Kind::sed:
      return is_quiet_sed(form);
    case UsualProgram::Kind::shell:
      return runs_script(form);
    case UsualProgram::Kind::starts:
      return starts_allowed(subject, form, name);
    case UsualProgram::Kind::tests:
      return is_test_run(form.from(words - 1), usual);
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
