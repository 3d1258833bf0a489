// The parser: from text to the tree, in one pass and by recursive descent.
//
//   ShellParser ............ lists, pipelines, compound commands: the grammar
//     ShellCommandParser ... assignments, redirections, here-documents
//       ShellExpansionParser $name, ${ }, $( ), $(( )), backquotes, <( )
//         ShellWordParser .. words: quotes, tildes, literal text
//           ShellScanner ... characters, blanks, reserved words, errors, the tables of the tree
//
// Each layer is a base of the one above it, and calls what is above in two places only: the list
// in a substitution, and the expansion in a word. So at_ is the one position of all of them.
#pragma once

#include "shell/shell_internal.hpp"
#include "shell/tree_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

class ShellParser;

// Quotation around an expansion.
enum class ShellQuotes { none, doubled, here_document, arithmetic };

// Stands at a position of a text, and compares what is there with the grammar. Keeps the first
// error. Every loop looks at failed_, so that it ends after an error.
class ShellScanner {
 public:
  ShellScanner(ShellSyntax& syntax, const shell::Options& options, std::string_view text,
               ShellOrigin origin, unsigned depth)
      : syntax_(syntax), options_(options), text_(text), origin_(origin), depth_(depth) {}

  bool failed() const { return failed_; }
  const Error& error() const { return error_; }
  bool dialect_dependent() const { return dialect_dependent_; }
  // The text ends in a construct or in a here-document.
  bool open() const { return open_; }

 protected:
  // A here-document that has begun in this line.
  struct HereDocument {
    std::uint32_t redirection = 0;
    std::string delimiter = {};
    bool quoted = false;
    bool strip_tabs = false;
  };

  ~ShellScanner() = default;
  bool bash() const { return options_.dialect == shell::Dialect::bash; }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool at_end() const { return at_ >= text_.size(); }
  bool looking_at(std::string_view token) const { return text_.substr(at_, token.size()) == token; }
  std::uint32_t position(std::size_t at) const {
    return origin_.exact ? origin_.begin + static_cast<std::uint32_t>(at) : origin_.begin;
  }
  std::uint32_t end_position(std::size_t at) const;
  std::string_view token_here() const;
  void fail(ErrorCode code, std::string_view message, std::size_t at);
  void fail_here(std::string_view message) { fail(ErrorCode::parse, message, at_); }
  // Fails: what stands here may not stand here. `where` is for the message.
  void unexpected(std::string_view where = {});
  // What began at `at` is not closed.
  void unterminated(std::string_view what, std::size_t at) {
    open_ = true;
    fail(ErrorCode::parse, concat("unterminated %", {what}), at);
  }
  bool enter();
  // Reserves room for one more word or node.
  bool room();
  // Tables of the tree. A list of indices is under construction in `pending` from begin_list() on.

  std::size_t begin_list() const { return syntax_.pending.size(); }
  void add(std::uint32_t index) { syntax_.pending.push_back(std::uint32_t{index}); }
  ShellRange end_list(std::size_t from);
  std::uint32_t add_node(ShellNode& node, std::size_t end);
  ShellNode node_at(ShellNode::Kind kind, std::size_t at) const;
  // Blanks, comments and joined lines; only called between tokens.
  void skip_blanks();
  // Reserved words.

  // The plain word of at most eight characters that stands here, such as a reserved word, or an
  // empty view. take_word() consumes it.
  std::string_view word_here();
  // The same where lines are joined in it or behind it.
  std::string_view joined_word_here();
  void take_word() { at_ = word_end_; }
  // True if the word ends a list.
  static bool ends_list(std::string_view word) {
    return is_any(word, "then", "else", "elif", "fi", "do", "done", "esac", "}");
  }
  // Consumes a reserved word that must be here.
  bool expect(std::string_view word, std::size_t begin, std::string_view construct);
  static bool ends_word(char c) { return word_end.has(c); }
  bool at_process() const { return bash() && (peek() == '<' || peek() == '>') && peek(1) == '('; }

  ShellSyntax& syntax_;
  const shell::Options& options_;
  std::string_view text_;
  ShellOrigin origin_;
  unsigned depth_ = 0;
  std::size_t at_ = 0;
  unsigned substitutions_ = 0;  // around what is read now
  std::size_t word_end_ = 0;    // of the word that word_here() has found
  bool failed_ = false;
  bool open_ = false;
  bool dialect_dependent_ = false;
  Error error_ = {};
  std::list<HereDocument> here_documents_ = {};  // whose bodies follow after this line
};

// Reads words: a word is a row of parts, each literal or an expansion, each quoted or not. Parts
// are collected in `pending_parts` until the word ends.
class ShellWordParser : public ShellScanner {
 protected:
  using ShellScanner::ShellScanner;
  ~ShellWordParser() = default;
  // What a word is part of.
  enum class Context {
    command,
    pattern,  // after =~ in [[ ]], where ( and | belong to it
    element,  // of an array, where it may begin with [subscript]=
  };

  // The expansion that begins here with $, a backquote, <( or >(.
  virtual void read_expansion(ShellQuotes quotes) = 0;
  // Moves the parts from pending_parts[from] on into a new word.
  std::uint32_t end_word(std::size_t from, std::size_t begin, std::size_t end, bool braces = false);
  ShellPart& add_part(ShellPart::Kind kind, bool quoted);
  // NUL bytes in it are unknown parts of a payload.
  void add_literal(std::string_view text, bool quoted);
  void add_quoted_literal(std::string_view text);
  // Text in quotes is expanded again where bash evaluates it, as in ${a['$(command)']}: adds a part
  // for each such text in pending_parts[from] and behind it.
  virtual void add_again(std::size_t from) = 0;
  // Reads a word of which at least one character is there.
  std::uint32_t parse_word(Context context = Context::command, bool assigned_value = false);
  void note_braces(std::string_view text);
  void read_tilde();
  // An unquoted run, an escape, a quotation or an expansion.
  void read_piece(bool stop_at_colon = false);
  void read_single_quotes();
  void read_ansi_c_quotes();
  void read_double_quotes();
  // What stands in double quotes, a here-document or arithmetic.
  void read_quoted_piece(ShellQuotes quotes);
  // ?( *( +( @( !( : a pattern, if extglob is on; else a syntax error, so that nothing runs.
  void read_extended_glob();

  bool in_braces_ = false;  // in the word of ${ }, where \} is an escape in double quotes
};

// Reads expansions. What stands in one is a list, a word or arithmetic, one level deeper; in
// backquotes and arithmetic it is a text of its own, with a parser of its own.
class ShellExpansionParser : public ShellWordParser {
 protected:
  using ShellWordParser::ShellWordParser;
  ~ShellExpansionParser() = default;
  // Commands up to the end of the text, a closing parenthesis, ;; or a reserved word that ends a
  // list. Only some lists may be empty.
  virtual std::uint32_t parse_list(bool may_be_empty) = 0;
  void read_expansion(ShellQuotes quotes) override;
  void add_again(std::size_t from) override;
  // $( ), $(( )), ${ }, $name, $'..', $"..", or a plain $.
  void read_dollar(ShellQuotes quotes);
  // Shells join lines even in the middle of $name. The only reason to write that is to hide.
  bool joins_lines(std::size_t at);
  static bool is_special_parameter(char c) { return "@*#?-$!"sv.find(c) != std::string_view::npos; }

  void read_command_substitution(bool quoted);
  void read_process_substitution();
  // A list up to `close`, which is consumed. Here-documents that begin in it end in it.
  std::uint32_t parse_nested(char close, std::string_view what, std::size_t begin);
  // Reads a text within this one by a parser of its own, whose error is ours.
  std::uint32_t parse_text(std::string_view text, ShellOrigin origin,
                           std::uint32_t (ShellParser::*read)());
  void read_backquotes(bool in_double_quotes);
  // Where the arithmetic that begins at `at` (behind two opening parentheses) has its `))`; npos
  // when these parentheses are those of nested subshells.
  std::size_t arithmetic_end(std::size_t at) const;
  // Behind the bracket that closes the one at `at`, or npos: quotes and substitutions hide it.
  std::size_t subscript_end(std::size_t at) const;
  // Arithmetic: it begins `skip` bytes behind here, ends at `end`, and `close` bytes close it.
  void read_arithmetic(bool quoted, std::size_t skip, std::size_t end, std::size_t close);
  std::uint32_t arithmetic_word(std::size_t end);
  // ${...}, from the dollar on.
  void read_braced_parameter(ShellQuotes quotes);
  void read_parameter_name(ShellPart& part);
  void read_parameter_operation(ShellPart& part, ShellQuotes quotes);
  // The word up to an unquoted `close`. An opening bracket, for a subscript, is skipped first.
  // `pattern`: single quotes quote even within double quotes.
  std::uint32_t read_until(char close, std::string_view what, ShellQuotes quotes,
                           bool pattern = true);

  // A single quote in "${x:-'..'}" stays in the text, but in bash it hides a closing brace.
  void read_quote_in_quotes(ShellQuotes quotes);
};

// Reads what stands in a command beside its words: assignments, redirections, here-documents.
class ShellCommandParser : public ShellExpansionParser {
 protected:
  using ShellExpansionParser::ShellExpansionParser;
  ~ShellCommandParser() = default;
  void skip_newlines() {
    for (skip_blanks(); !failed_ && peek() == '\n'; skip_blanks()) newline();
  }

  // The end of a line, behind which the bodies of its here-documents stand.
  void newline();
  // The lines up to the delimiter, or to the end of the text.
  void read_here_document(const HereDocument& document);
  // A line of a here-document without its newline, which is consumed. Lines of an unquoted one that
  // end with a backslash are joined before the delimiter is looked for.
  std::string_view read_line(bool is_quoted, std::string& storage);
  // A command ends where its last token ends, not where the blanks behind it do.
  std::size_t last_token_end(std::size_t begin) const;
  // NAME=value, NAME+=value, NAME[subscript]=value, NAME=(elements). False: something else stands
  // here, and nothing was consumed. `arrays_only`: in the operands of declare and its like.
  // `bracket` is set behind the subscript, which bash takes for a part of the word whatever is in
  // it.
  bool parse_assignment(ShellAssignment& assignment, bool arrays_only, std::size_t& bracket);
  void parse_elements(ShellAssignment& assignment);
  // True if a redirection begins here, with its number or {name}.
  bool at_redirection() const;
  void parse_redirection(ShellNode& node);
  // The delimiter; the body follows after the end of the line.
  void begin_here_document();
};

// Reads one text into the tree.
class ShellParser final : public ShellCommandParser {
 public:
  using ShellCommandParser::ShellCommandParser;

  // The list node of the whole text. After a failure it holds what stands before the error.
  std::uint32_t parse();
  // The word that a here-document makes, and the one of arithmetic.
  std::uint32_t parse_here_document_body();
  std::uint32_t parse_arithmetic_text();

 private:
  std::uint32_t parse_list(bool may_be_empty) override;
  std::uint32_t parse_and_or();
  std::uint32_t parse_pipeline();
  // ! and time, in any number and order. True: bash's time, which needs no command behind it.
  bool skip_pipeline_prefixes();
  std::uint32_t parse_command();
  // Ends a compound command: the redirections behind it.
  std::uint32_t finish(ShellNode& node, std::size_t nodes_from);
  std::uint32_t parse_subshell();
  std::uint32_t parse_group();
  std::uint32_t parse_if();
  std::uint32_t parse_loop(std::string_view word);
  // do ... done
  void parse_do(std::size_t begin, std::string_view construct);
  // for, and select, which is the same to us.
  std::uint32_t parse_for(std::string_view word);
  std::uint32_t parse_case();
  // pattern | pattern ... )
  void parse_patterns(std::vector<std::uint32_t>& words, std::size_t begin);
  // [[ ... ]]
  std::uint32_t parse_condition();
  std::uint32_t parse_arithmetic_command(std::size_t end);
  std::uint32_t parse_coprocess();
  static bool is_reserved(std::string_view word);
  std::uint32_t parse_function_keyword();
  std::uint32_t parse_function_body(std::string_view name, std::size_t begin);
  std::uint32_t parse_simple();
  // () of a function definition; consumes it.
  bool at_parentheses();
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
