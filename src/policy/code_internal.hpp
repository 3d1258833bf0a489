// Code of other languages: what its literals show of the programs that it starts.
//
//   find_starts()   code.cpp         a piece of code, and the code in its strings; Tcl and m4
//     CodeReader    code_reader.cpp  expressions and calls, as far as they are made of literals
//       CodeLexer   code_lexer.cpp   names, strings, comments and patterns of a language
//
// Code is read without its grammar. What would be put into a text at run time is a NUL byte in it:
//
//   os.system("rm -rf " + path)              script    rm -rf \0
//   subprocess.run(["rm", "-rf", "/"])       command   rm -rf /
//   shutil.rmtree("/etc")                    removed   /etc
//   `ls $dir`                                script    ls \0
#pragma once

#include "policy/tables_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What a piece of code would start or remove.
struct CodeFindings {
  std::vector<std::string> scripts = {};              // for a shell
  std::list<std::vector<std::string>> commands = {};  // programs with their arguments
  std::vector<std::string> removed = {};              // directories, with all they hold
  bool opaque = false;                                // a statement of it is not known
  // Of awk: a command is what the code reads, or a text that it makes of that.
  bool unknown_command = false;
  std::vector<std::pair<std::string, std::string>> readers = {};  // scripts, and what they read
};

// A value that literals make.
struct CodeValue {
  enum class Kind : unsigned char { unknown, text, list };
  Kind kind = Kind::unknown;
  bool named = false;  // an argument with a name that is none of the command: cwd=
  std::vector<std::string> texts = {};

  bool is_text() const { return kind == Kind::text; }
  bool is_list() const { return kind == Kind::list; }
  void set_text(std::string text);
  // This one, with another behind it.
  void append(CodeValue&& next);
};

using CodeVariables = std::map<std::string, CodeValue, std::less<>>;

// A piece of code: what was given to an interpreter, or what stands in a string of that.
struct CodePiece {
  std::string text = {};
  unsigned depth = 0;
  bool page = false;  // of PHP: the code stands between <?php and ?>
};

struct CodeToken {
  enum class Kind : unsigned char { end, name, text, list, script, mark };
  // Marks of several characters; all others are that character. A line's end is '\n'.
  enum : char { other = 1, attribute = 2, joint = 3, assign = 4, add = 5 };
  Kind kind = Kind::end;
  char mark = '\0';
  bool spaced = false;                  // a blank stands before it
  bool variable = false;                // of a name: a sigil stands before it
  std::string_view name = {};           // of a name
  std::vector<std::string> texts = {};  // of a text, which has one, of a script and of a list

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_mark(char wanted) const { return kind == Kind::mark && mark == wanted; }
};

// What the pieces of one code have in common.
struct CodeScope {
  Language language = Language::awk;
  CodeFindings findings = {};
  CodeVariables variables = {};  // the last literal that each was set to
  std::list<CodePiece> pieces = {};
  std::size_t budget = 0;  // bytes that variables and pieces may still add

  bool is(Language wanted) const { return language == wanted; }
  bool charge(std::size_t bytes);
  // Code in a string, or in what is put into one, is read later.
  void add_piece(std::string_view text, const CodePiece& from, bool page = false);
  // The known value of a variable, or null.
  const CodeValue* value_of(std::string_view name) const;
};

// Takes a piece of code apart. Reads each byte once.
class CodeLexer {
 public:
  // `divides`: a slash that may begin a pattern or divide does divide.
  CodeLexer(CodeScope& scope, const CodePiece& piece, bool divides)
      : scope_(scope), piece_(piece), code_(piece.text), page_(piece.page), divides_(divides) {}

  CodeToken next();
  // True if there was such a slash.
  bool ambiguous() const { return ambiguous_; }

 private:
  static constexpr std::size_t npos = std::string_view::npos;

  bool is(Language wanted) const { return scope_.is(wanted); }
  char at(std::size_t offset) const {
    return at_ + offset < code_.size() ? code_[at_ + offset] : '\0';
  }
  bool looking_at(std::string_view text) const { return starts_with(code_.substr(at_), text); }
  bool ends_statement() const;

  void leave_page();
  bool skip_comment();
  bool skip_to(std::string_view end);
  void end_line(CodeToken& token);
  void read_mark(CodeToken& token);
  void read_name(CodeToken& token);
  // Strings, in code_strings.cpp.
  bool read_text(CodeToken& token);
  bool read_quoted(CodeToken& token, char quote, bool raw, bool formatted);
  bool read_delimited(CodeToken& token, std::size_t letters);
  bool read_percent(CodeToken& token);
  bool read_quote_operator(CodeToken& token);
  bool read_pattern(CodeToken& token);
  bool read_long_bracket(CodeToken& token);
  bool read_here_document(CodeToken& token);
  // The text up to a closing character, with those that open it inside; false: it does not end.
  bool find_close(char open, char close, std::string_view& body);
  // A text as its quotes read it, with values put in.
  std::string decoded(std::string_view body, char quote, bool formatted);
  void append_escape(std::string_view body, std::size_t& at, std::string& text) const;
  std::size_t interpolate(std::string_view rest, char quote, bool formatted, std::string& text);

  CodeScope& scope_;
  const CodePiece& piece_;
  std::string_view code_;
  std::size_t at_ = 0;
  std::size_t here_end_ = 0;  // where the here-documents of this line end
  bool page_;
  bool divides_;
  bool ambiguous_ = false;
  // Up to where a quote or bracket was looked for, and not found.
  std::size_t unclosed_[256] = {};
  std::size_t& unclosed(char c) { return unclosed_[static_cast<unsigned char>(c)]; }
  CodeToken::Kind last_ = CodeToken::Kind::end;
  char last_mark_ = '\n';
  std::string_view last_name_ = {};
};

// Reads a piece of code; what it finds goes to the scope.
void read_piece(CodeScope& scope, const CodePiece& piece);

// What a piece of code would start. `given`: variables that it is started with, each as
// NAME=VALUE.
CodeFindings find_starts(Language language, std::string_view code, bool page,
                         const std::vector<std::string_view>& given);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
