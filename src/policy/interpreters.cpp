// Code of interpreters, as far as it starts programs or removes files.
//
// Code is read without its grammar: as comments, strings, names and single characters, in one pass.
// A call is a name of starting_functions or removing_functions, and what stands in its parentheses.
// Its strings show what it does; what the code would put into them at run time is a NUL byte:
//
//   os.system("rm -rf " + path)              script    rm -rf \0
//   subprocess.run(["rm", "-rf", "/"])       command   rm -rf /
//   shutil.rmtree("/etc")                    removed   /etc
//   `ls $dir`                                script    ls \0
//
// This finds what is written plainly. Code that hides what it runs is not found: keeping it from
// harm is the job of the sandbox.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What a piece of code would start or remove, as far as its string literals show.
struct CodeFindings {
  std::vector<std::string> scripts = {};              // for a shell
  std::list<std::vector<std::string>> commands = {};  // programs with their arguments
  std::vector<std::string> removed = {};              // directories, with all they hold
};

// Finds the calls in a piece of code, and what they would start or remove. Reads each byte once.
class CodeReader {
 public:
  CodeReader(Language language, std::string_view code) : language_(language), code_(code) {}

  CodeFindings read() {
    while (at_ < code_.size()) {
      const char c = code_[at_];
      if (is_comment())
        at_ = std::min(code_.find('\n', at_), code_.size());
      else if (is_quote(c))
        read_lone_string();
      else if (is_name_char(c))
        read_identifier();
      else
        read_operator(c);
    }
    return std::move(findings_);
  }

 private:
  bool is(Language a) const { return language_ == a; }
  bool is_quote(char c) const {
    if (c == '"') return true;
    if (c == '\'') return !is(Language::awk);
    return c == '`' && !is(Language::python) && !is(Language::awk) && !is(Language::lua);
  }
  bool is_comment() const {
    const std::string_view rest = code_.substr(at_);
    if (is(Language::node)) return starts_with(rest, "//"sv);
    if (is(Language::lua)) return starts_with(rest, "--"sv);
    if (is(Language::php) && starts_with(rest, "//"sv)) return true;
    const bool after_sigil = at_ > 0 && (code_[at_ - 1] == '$' || code_[at_ - 1] == '@');
    return rest[0] == '#' && !after_sigil;
  }
  void skip_blanks() {
    while (at_ < code_.size() && " \t\r\n"sv.find(code_[at_]) != npos) ++at_;
  }
  bool next_is(char c) const { return at_ < code_.size() && code_[at_] == c; }

  // Where a language puts values into a string: $x, ${x}, #{x}, {x}. Gives what it skips.
  std::size_t interpolation(char quote, bool formatted) const {
    const std::string_view rest = code_.substr(at_);
    const auto braced = [rest](std::size_t open) {
      const std::size_t close = rest.substr(0, 256).find('}', open);
      return close == npos ? open + 1 : close + 1;
    };
    if (is(Language::python)) {
      if (!formatted || rest[0] != '{') return 0;
      return rest.size() > 1 && rest[1] == '{' ? 0 : braced(0);
    }
    if (is(Language::node)) return quote == '`' && starts_with(rest, "${"sv) ? braced(1) : 0;
    if (quote == '\'') return 0;
    if (is(Language::ruby)) return starts_with(rest, "#{"sv) ? braced(1) : 0;
    if (!is(Language::perl) && !is(Language::php)) return 0;
    if ((rest[0] != '$' && rest[0] != '@') || rest.size() < 2) return 0;
    if (rest[1] == '{') return braced(1);
    std::size_t end = 1;
    while (end < rest.size() && is_name_char(rest[end])) ++end;
    return end > 1 ? end : 0;
  }
  void append_escape(std::string& text) {
    const char c = code_[at_++];
    if (c == 'n') {
      text += '\n';
    } else if (c == 't') {
      text += '\t';
    } else if (c == 'x' && at_ + 1 < code_.size()) {
      std::size_t end = at_;
      const std::uint32_t value = read_digits(code_, end, 2, 16);
      if (end != at_ + 2) return;
      text += static_cast<char>(value);
      at_ = end;
    } else if (c != '\n') {
      text += c;
    }
  }
  // From the opening quote to behind the closing one.
  std::string read_string(bool raw = false, bool formatted = false) {
    const char quote = code_[at_];
    const std::string_view triple = code_.substr(at_, 3);
    const bool is_triple =
        is(Language::python) && triple.size() == 3 && triple[1] == quote && triple[2] == quote;
    at_ += is_triple ? 3 : 1;
    std::string text;
    while (at_ < code_.size()) {
      const char c = code_[at_];
      if (c == quote && (!is_triple || code_.substr(at_, 3) == triple)) {
        at_ += is_triple ? 3 : 1;
        return text;
      }
      if (c == '\\' && !raw && at_ + 1 < code_.size()) {
        ++at_;
        append_escape(text);
      } else if (const std::size_t size = interpolation(quote, formatted)) {
        text += '\0';
        at_ += size;
      } else {
        text += c;
        ++at_;
      }
    }
    return text;
  }
  // qx{...}, %x(...)
  std::string read_delimited() {
    constexpr std::string_view opening = "([{<", closing = ")]}>";
    const std::size_t kind = opening.find(code_[at_]);
    const char end = kind == npos ? code_[at_] : closing[kind];
    ++at_;
    const std::size_t close = std::min(code_.find(end, at_), code_.size());
    std::string text(code_.substr(at_, close - at_));
    at_ = std::min(close + 1, code_.size());
    return text;
  }

  void read_lone_string() {
    const char quote = code_[at_];
    const bool piped = pipe_;
    pipe_ = false;
    std::string text = read_string();
    if (quote == '`') {
      if (!is(Language::node)) findings_.scripts.push_back(std::move(text));
      return;
    }
    if (!is(Language::awk)) return;
    // print | "command", and "command" | getline
    std::size_t i = code_.find_first_not_of(" \t", at_);
    if (!piped) {
      if (i == npos || code_[i] != '|') return;
      i = code_.find_first_not_of(" \t&", i + 1);
      if (i == npos || !starts_with(code_.substr(i), "getline"sv)) return;
    }
    findings_.scripts.push_back(std::move(text));
  }

  void read_operator(char c) {
    ++at_;
    if (c == '|') {
      pipe_ = !next_is('|');
      if (!pipe_) ++at_;
    } else if (c == '%' && is(Language::ruby) && next_is('x') && at_ + 1 < code_.size() &&
               !is_name_char(code_[at_ + 1])) {
      ++at_;
      findings_.scripts.push_back(read_delimited());
    } else if (c != ' ' && c != '\t' && c != '&') {
      pipe_ = false;
    }
  }

  void read_identifier() {
    pipe_ = false;
    const std::size_t begin = at_;
    while (at_ < code_.size() && is_name_char(code_[at_])) ++at_;
    const std::string_view name = code_.substr(begin, at_ - begin);
    if (name == "qx"sv && is(Language::perl)) {
      skip_blanks();
      if (at_ < code_.size()) findings_.scripts.push_back(read_delimited());
      return;
    }
    const std::size_t after = at_;
    skip_blanks();
    const bool parenthesised = next_is('(');
    if (parenthesised) ++at_;
    const bool without = is(Language::perl) || is(Language::ruby) || is(Language::lua);
    const bool called = parenthesised || (without && at_ < code_.size() && is_quote(code_[at_]));
    const bool starts = called && starting_functions.has(name);
    if (!called || (!starts && !removing_functions.has(name))) {
      at_ = after;
      return;
    }
    read_call(starts, parenthesised);
  }

  // A string within a call, with the letters in front of it: r"..", f'..'
  std::string read_argument() {
    bool raw = false, formatted = false;
    for (std::size_t i = at_; i > 0 && is_name_char(code_[i - 1]) && at_ - i < 2; --i) {
      raw = raw || (code_[i - 1] | 0x20) == 'r';
      formatted = formatted || (code_[i - 1] | 0x20) == 'f';
    }
    return read_string(raw, formatted);
  }

  // The strings of a call: those of its first list, or all up to its end.
  //
  //   next                what happens
  //   a string            continues the one before, as in "a" "b", if no comma stands between
  //   [ as first, second  the list begins that holds the words of a command
  //   ] of this list      the call is judged by what stands before; what follows are options
  //   , ( [ {             the next string is another one
  //   a name, + . % $     adds an unknown part to the string before
  //   ) of the call       the end; without parentheses, also ; and the end of the line
  void read_call(bool starts, bool parenthesised) {
    std::vector<std::string> strings;
    std::size_t depth = 0, list_depth = 0;  // list_depth: of what is in the list; 0: in none
    bool joined = false;                    // the next string continues the one before
    bool first_is_list = false;
    bool list_was_read = false;
    while (at_ < code_.size()) {
      const char c = code_[at_];
      if (is_quote(c)) {
        std::string text = read_argument();
        if (joined && !strings.empty())
          strings.back() += text;
        else
          strings.push_back(std::move(text));
        joined = true;
        continue;
      }
      ++at_;
      if (c == '(' || c == '[' || c == '{') {
        if (c == '[' && list_depth == 0 && strings.size() <= 1 && depth == 0) {
          list_depth = depth + 1;
          first_is_list = strings.empty();
        }
        ++depth;
        joined = false;
      } else if (c == ')' || c == ']' || c == '}') {
        if (depth == 0) break;
        if (list_depth != 0 && depth == list_depth) {
          list_depth = 0;
          if (!list_was_read) finish_list(starts, first_is_list, strings);
          list_was_read = true;
        }
        --depth;
      } else if (c == ',') {
        joined = false;
      } else if ((c == ';' || c == '\n') && !parenthesised) {
        break;
      } else if (is_name_char(c) || c == '+' || c == '.' || c == '%' || c == '$') {
        // "rm -rf " + path, "..." % x, "...".format(x)
        if (joined && !is_prefix(c) && (strings.back().empty() || strings.back().back() != '\0'))
          strings.back() += '\0';
      }
    }
    if (!list_was_read) finish_call(starts, std::move(strings));
  }
  // A letter in front of a quote: r"..", f'..'
  bool is_prefix(char c) const {
    return is_name_char(c) && at_ < code_.size() &&
           (is_quote(code_[at_]) || is_name_char(code_[at_]));
  }

  void finish_list(bool starts, bool first_is_list, const std::vector<std::string>& strings) {
    if (strings.empty()) return;
    if (!starts) {
      for (const std::string& text : strings) findings_.removed.push_back(text);
      return;
    }
    findings_.commands.push_back(strings);
    if (!first_is_list) findings_.scripts.push_back(strings.front());
  }
  void finish_call(bool starts, std::vector<std::string> strings) {
    if (strings.empty()) return;
    if (!starts) {
      for (std::string& text : strings) findings_.removed.push_back(std::move(text));
      return;
    }
    findings_.scripts.push_back(strings.front());
    if (strings.size() > 1) findings_.commands.push_back(std::move(strings));
  }

  static constexpr std::size_t npos = std::string_view::npos;
  Language language_;
  std::string_view code_;
  std::size_t at_ = 0;
  bool pipe_ = false;  // awk: a string here is a command
  CodeFindings findings_ = {};
};

// The code in a file that the script has written.
void read_code_file(Subject& subject, Language language, const Form& form,
                    const shell::Word& word) {
  if (form.holes) return;
  subject.run.push_back(word.text);
  for (const shell::Input* each = word.printed; each != nullptr; each = each->also) {
    if (each->kind == shell::Input::Kind::known)
      read_code(subject, language, each->text, form, word);
    else
      subject.refuse_opaque(form, word, "its code is not known before it runs"sv);
  }
}

}  // namespace

inline namespace inner {

// interpreters ------------------------------------------------------------------------------------

void peel_interpreter(Subject& subject, const Wrapper& wrapper, const Form& form) {
  const Language language = wrapper.language;
  bool has_code = false;   // given by an option
  bool from_file = false;  // or in a file that an option names
  bool prints = false, in_place = false;
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    if (each.part.word && each.is(wrapper.scripts)) {
      has_code = true;
      read_code(subject, language, each.part.text, form, *each.part.word);
    }
    from_file |= each.has("m", "f", "file");
    prints |= each.has("p", "print");
    in_place |= each.has("i");
  }
  std::size_t i = each.at();
  if (has_code || from_file) {
    // perl -i and ruby -i change the files they are given.
    for (; in_place && i < form.size; ++i)
      use_file(subject, Use::write, part_of(form.words[i]), false, form);
    return;
  }
  const bool operand_is_code =
      wrapper.has(Wrapper::operand_is_code) || (prints && language == Language::node);
  if (operand_is_code) {
    if (i < form.size) read_code(subject, language, form.words[i].text, form, form.words[i]);
  } else if (i < form.size && form.words[i].text != "-") {
    use_file(subject, Use::read, part_of(form.words[i]), false, form);
    read_code_file(subject, language, form, form.words[i]);
  } else {
    subject.judged.note_reader(*form.input, Reader::program);
    if (form.input->kind == shell::Input::Kind::known)
      read_code(subject, language, form.input->text, form, form.words[0]);
  }
}

void read_code(Subject& subject, Language language, std::string_view code, const Form& form,
               const shell::Word& word) {
  CodeFindings findings = CodeReader(language, code).read();
  Form started = form.from(0);
  started.code = true;
  for (const std::string& script : findings.scripts) subject.add_payload(started, script, false);
  for (const std::vector<std::string>& command : findings.commands) {
    std::vector<shell::Word> words;
    for (const std::string& text : command) words.push_back(word_like(word, text));
    subject.add_form(started, std::move(words));
  }
  for (const std::string& path : findings.removed) {
    shell::Word removed = word_like(word, path);
    removed.home = starts_with(removed.text, "~"sv);
    use_file(subject, Use::remove_tree, part_of(removed), true, form);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
