// The parser: lists, pipelines and compound commands.

#include "shell/parser_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The grammar, and the functions that read it:
//
//   list       and_or (; or & or newline) ...              parse_list
//   and_or     pipeline (&& or ||) ...                     parse_and_or
//   pipeline   [!] [time] command | ...                    parse_pipeline
//   command    ( list )  { list; }  if  for  case ...      parse_command; a function for each
//              assignments, words, redirections            parse_simple
//
// Each function leaves at_ behind what it has read, and gives the index of a node. Behind an error
// it gives what there is, so that the commands before the error are in the tree. A construct that
// holds lists is a level deeper: enter() counts it.

std::uint32_t ShellParser::parse() {
  const std::uint32_t node = parse_list(true);
  if (!failed_ && at_ < text_.size()) unexpected();
  return node;
}

std::uint32_t ShellParser::parse_here_document_body() {
  const std::size_t parts = syntax_.pending_parts.size();
  while (!failed_ && !at_end()) read_quoted_piece(ShellQuotes::here_document);
  return end_word(parts, 0, at_);
}

std::uint32_t ShellParser::parse_arithmetic_text() {
  const std::size_t parts = syntax_.pending_parts.size();
  while (!failed_ && !at_end()) {
    if (peek() == '\'') {
      // Some shells take it as a quote here, some do not: where the text ends is not certain.
      fail_here("single quote in arithmetic"sv);
    } else if (peek() == '"') {
      ++at_;
    } else {
      read_quoted_piece(ShellQuotes::arithmetic);
    }
  }
  return end_word(parts, 0, at_);
}

std::uint32_t ShellParser::parse_list(bool may_be_empty) {
  ShellNode list = node_at(ShellNode::Kind::list, at_);
  const std::size_t from = begin_list();
  for (;;) {
    skip_newlines();
    if (failed_ || at_end()) break;
    const char c = peek();
    if (c == ')') break;
    if (c == ';' && (peek(1) == ';' || peek(1) == '&')) break;
    if (ends_list(word_here())) break;
    const std::size_t size = syntax_.pending.size();
    const std::uint32_t node = parse_and_or();
    cut(syntax_.pending, size);  // of what failed, nothing is kept
    if (failed_) break;
    add(node);
    skip_blanks();
    if (peek() == '&') {
      syntax_.nodes[node].background = true;
      ++at_;
    } else if (peek() == ';' && peek(1) != ';' && peek(1) != '&') {
      ++at_;
    } else if (peek() != '\n') {
      break;
    }
  }
  const bool empty = begin_list() == from;
  list.nodes = end_list(from);
  if (!failed_ && empty && !may_be_empty) unexpected();
  return add_node(list, at_);
}

std::uint32_t ShellParser::parse_and_or() {
  ShellNode chain = node_at(ShellNode::Kind::and_or, at_);
  const std::size_t from = begin_list();
  char joint = 0;
  for (;;) {
    const std::uint32_t node = parse_pipeline();
    if (node != no_index) {
      syntax_.nodes[node].joint = joint;
      add(node);
    }
    if (failed_) break;
    skip_blanks();
    if (!looking_at("&&"sv) && !looking_at("||"sv)) break;
    joint = peek();
    at_ += 2;
    skip_newlines();
  }
  if (begin_list() == from + 1 && joint == 0) {
    const std::uint32_t only = syntax_.pending.back();
    syntax_.pending.pop_back();
    return only;
  }
  chain.nodes = end_list(from);
  return add_node(chain, at_);
}

std::uint32_t ShellParser::parse_pipeline() {
  ShellNode pipeline = node_at(ShellNode::Kind::pipeline, at_);
  const std::size_t from = begin_list();
  const bool timed = skip_pipeline_prefixes();
  if (timed && (at_end() || peek() == ';' || peek() == '\n')) {
    ShellNode nothing = node_at(ShellNode::Kind::list, at_);
    return add_node(nothing, at_);
  }
  for (;;) {
    skip_blanks();
    if (ends_list(word_here())) {
      unexpected();
      break;
    }
    const std::uint32_t node = parse_command();
    if (node != no_index) add(node);
    if (failed_) break;
    skip_blanks();
    if (peek() != '|' || peek(1) == '|') break;
    ++at_;
    if (peek() == '&') {
      if (!bash()) fail_here("unexpected '&'"sv);
      dialect_dependent_ = true;
      ++at_;
    }
    skip_newlines();
  }
  if (begin_list() == from + 1) {
    const std::uint32_t only = syntax_.pending.back();
    syntax_.pending.pop_back();
    return only;
  }
  pipeline.nodes = end_list(from);
  return add_node(pipeline, at_);
}

bool ShellParser::skip_pipeline_prefixes() {
  bool timed = false;
  for (;;) {
    skip_blanks();
    const std::string_view word = word_here();
    if (word == "!"sv) {
      take_word();
    } else if (peek() == '!' && peek(1) == '(') {
      ++at_;
    } else if (word == "time"sv && bash()) {
      dialect_dependent_ = true;
      timed = true;
      take_word();
      skip_blanks();
      if (word_here() == "-p"sv) take_word();
      skip_blanks();
      if (word_here() == "--"sv) take_word();
    } else {
      return timed;
    }
  }
}

std::uint32_t ShellParser::parse_command() {
  skip_blanks();
  const std::size_t begin = at_;
  const char c = peek();
  if (c == '(') {
    if (peek(1) == '(' && bash()) {
      dialect_dependent_ = true;
      const std::size_t end = arithmetic_end(at_ + 2);
      if (end != std::string_view::npos) return parse_arithmetic_command(end);
    }
    return parse_subshell();
  }
  // Only these can begin a reserved word.
  if ("{[fiwucs"sv.find(c) != std::string_view::npos) {
    const std::string_view word = word_here();
    if (word == "{"sv) return parse_group();
    if (word == "if"sv) return parse_if();
    if (is_any(word, "while", "until")) return parse_loop(word);
    if (word == "for"sv) return parse_for(word);
    if (word == "case"sv) return parse_case();
    if (bash() && is_any(word, "select", "function", "coproc", "[[")) {
      dialect_dependent_ = true;
      if (word == "select"sv) return parse_for(word);
      if (word == "function"sv) return parse_function_keyword();
      if (word == "coproc"sv) return parse_coprocess();
      return parse_condition();
    }
  }
  const std::uint32_t node = parse_simple();
  if (!failed_ && at_ == begin) unexpected();
  return node;
}

std::uint32_t ShellParser::finish(ShellNode& node, std::size_t nodes_from) {
  node.nodes = end_list(nodes_from);
  if (failed_) return add_node(node, at_);
  const std::size_t end = at_;
  for (skip_blanks(); !failed_ && at_redirection(); skip_blanks()) parse_redirection(node);
  return add_node(node, node.redirections.first == no_index ? end : last_token_end(end));
}

std::uint32_t ShellParser::parse_subshell() {
  ShellNode node = node_at(ShellNode::Kind::subshell, at_);
  const std::size_t from = begin_list();
  const std::size_t begin = at_++;
  if (!enter()) return no_index;
  add(parse_list(false));
  if (!failed_ && at_end()) unterminated("("sv, begin);
  if (!failed_ && peek() != ')') unexpected();
  if (!failed_) ++at_;
  --depth_;
  return finish(node, from);
}

std::uint32_t ShellParser::parse_group() {
  ShellNode node = node_at(ShellNode::Kind::group, at_);
  const std::size_t from = begin_list();
  const std::size_t begin = at_;
  take_word();
  if (!enter()) return no_index;
  add(parse_list(false));
  expect("}"sv, begin, "{"sv);
  --depth_;
  return finish(node, from);
}

std::uint32_t ShellParser::parse_if() {
  ShellNode node = node_at(ShellNode::Kind::if_clause, at_);
  const std::size_t from = begin_list();
  const std::size_t begin = at_;
  take_word();
  if (!enter()) return no_index;
  for (;;) {
    add(parse_list(false));
    if (!expect("then"sv, begin, "if"sv)) break;
    add(parse_list(false));
    if (failed_) break;
    if (word_here() == "elif"sv) {
      take_word();
      continue;
    }
    if (word_here() == "else"sv) {
      take_word();
      add(parse_list(false));
    }
    expect("fi"sv, begin, "if"sv);
    break;
  }
  --depth_;
  return finish(node, from);
}

std::uint32_t ShellParser::parse_loop(std::string_view word) {
  ShellNode node = node_at(ShellNode::Kind::loop, at_);
  const std::size_t from = begin_list();
  const std::size_t begin = at_;
  take_word();
  if (!enter()) return no_index;
  add(parse_list(false));
  parse_do(begin, word);
  --depth_;
  return finish(node, from);
}

void ShellParser::parse_do(std::size_t begin, std::string_view construct) {
  if (!expect("do"sv, begin, construct)) return;
  add(parse_list(false));
  expect("done"sv, begin, construct);
}

//   for x in a b; do ...; done     node.words: a b; `flag`: there is an `in`
//   for x; do ...; done            no words: the positional parameters
//   for ((a; b; c)) { ...; }       one word, which is arithmetic; braces may stand for do and done

std::uint32_t ShellParser::parse_for(std::string_view word) {
  ShellNode node = node_at(ShellNode::Kind::for_clause, at_);
  const std::size_t begin = at_;
  take_word();
  if (!enter()) return no_index;
  skip_blanks();
  const std::size_t words_from = begin_list();
  if (looking_at("(("sv) && bash()) {
    dialect_dependent_ = true;
    const std::size_t end = arithmetic_end(at_ + 2);
    if (end == std::string_view::npos) fail_here("for (( is not closed by ))"sv);
    if (failed_) return no_index;
    node.kind = ShellNode::Kind::arithmetic_for;
    at_ += 2;
    add(arithmetic_word(end));
    at_ = end + 2;
  } else {
    const std::size_t name_begin = at_;
    while (is_name_char(peek())) ++at_;
    node.name = text_.substr(name_begin, at_ - name_begin);
    if (!is_name(node.name)) fail(ErrorCode::parse, concat("% needs a variable name", {word}), at_);
    skip_newlines();
    if (word_here() == "in"sv) {
      node.flag = true;
      take_word();
      for (skip_blanks(); !failed_ && !at_end() && (!ends_word(peek()) || at_process());
           skip_blanks())
        add(parse_word());
    }
  }
  node.words = end_list(words_from);
  skip_blanks();
  if (peek() == ';') ++at_;
  skip_newlines();
  const std::size_t from = begin_list();
  if (!failed_ && word_here() == "{"sv && bash()) {
    add(parse_group());
  } else {
    parse_do(begin, word);
  }
  --depth_;
  return finish(node, from);
}

//   case word in (a | b) list ;; c) list ;& ... esac
//
// node.words: the subject, then the patterns of all arms; node.nodes: a list for each arm. Which
// pattern belongs to which arm is not kept, as all arms are walked.

std::uint32_t ShellParser::parse_case() {
  ShellNode node = node_at(ShellNode::Kind::case_clause, at_);
  const std::size_t begin = at_;
  take_word();
  if (!enter()) return no_index;
  skip_blanks();
  // The words of all arms are listed first, their bodies then.
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> bodies;
  if (at_end() || (ends_word(peek()) && !at_process())) fail_here("case needs a word"sv);
  if (!failed_) words.push_back(parse_word());
  skip_newlines();
  expect("in"sv, begin, "case"sv);
  for (;;) {
    skip_newlines();
    if (failed_ || word_here() == "esac"sv) break;
    if (peek() == '(') ++at_;
    parse_patterns(words, begin);
    if (failed_) break;
    bodies.push_back(parse_list(true));
    if (failed_) break;
    if (looking_at(";;&"sv) || looking_at(";&"sv)) {
      if (!bash()) fail_here("unexpected ';&'"sv);
      dialect_dependent_ = true;
      at_ += looking_at(";;&"sv) ? 3U : 2U;
    } else if (looking_at(";;"sv)) {
      at_ += 2;
    } else {
      break;
    }
  }
  expect("esac"sv, begin, "case"sv);
  const std::size_t words_from = begin_list();
  for (const std::uint32_t word : words) add(word);
  node.words = end_list(words_from);
  const std::size_t from = begin_list();
  for (const std::uint32_t body : bodies) add(body);
  --depth_;
  return finish(node, from);
}

void ShellParser::parse_patterns(std::vector<std::uint32_t>& words, std::size_t begin) {
  for (;;) {
    skip_blanks();
    if (at_end()) return unterminated("case"sv, begin);
    if (ends_word(peek())) return unexpected();
    words.push_back(parse_word());
    if (failed_) return;
    skip_blanks();
    if (peek() == ')') break;
    if (peek() != '|') {
      if (at_end()) return unterminated("case"sv, begin);
      return unexpected(" in a case pattern"sv);
    }
    ++at_;
  }
  ++at_;
}

// [[ ]]: the operators are skipped, as they change no word. Only behind =~ do ( and | belong to the
// word. A subscript in a word may be evaluated; ShellRunner::run_test() looks for that.

std::uint32_t ShellParser::parse_condition() {
  ShellNode node = node_at(ShellNode::Kind::condition, at_);
  const std::size_t begin = at_;
  take_word();
  const std::size_t from = begin_list();
  bool after_match = false;  // =~ stood before
  for (;;) {
    skip_newlines();
    if (failed_) break;
    if (at_end()) {
      unterminated("[["sv, begin);
      break;
    }
    if (word_here() == "]]"sv) {
      take_word();
      break;
    }
    if (looking_at("&&"sv) || looking_at("||"sv)) {
      at_ += 2;
    } else if (!after_match && (peek() == '(' || peek() == ')')) {
      ++at_;
    } else if (!at_process() && (peek() == '<' || peek() == '>')) {
      ++at_;
    } else if (ends_word(peek()) && !at_process() && peek() != '(') {
      unexpected(" in [["sv);
    } else {
      const std::size_t word_begin = at_;
      add(parse_word(after_match ? Context::pattern : Context::command));
      after_match = text_.substr(word_begin, at_ - word_begin) == "=~";
      continue;
    }
    after_match = false;
  }
  node.words = end_list(from);
  return finish(node, begin_list());
}

std::uint32_t ShellParser::parse_arithmetic_command(std::size_t end) {
  ShellNode node = node_at(ShellNode::Kind::arithmetic, at_);
  at_ += 2;
  const std::size_t from = begin_list();
  add(arithmetic_word(end));
  at_ = end + 2;
  node.words = end_list(from);
  return finish(node, begin_list());
}

std::uint32_t ShellParser::parse_coprocess() {
  ShellNode node = node_at(ShellNode::Kind::coprocess, at_);
  const std::size_t begin = at_;
  take_word();
  if (!enter()) return no_index;
  skip_blanks();
  // A name is only taken in front of a compound command.
  std::size_t end = at_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  std::size_t next = end;
  while (next < text_.size() && is_shell_blank(text_[next])) ++next;
  if (end > at_ && next > end && next < text_.size() &&
      (text_[next] == '{' || text_[next] == '(')) {
    const std::string_view name = text_.substr(at_, end - at_);
    if (is_name(name) && !is_reserved(name)) at_ = next;
  }
  const std::size_t from = begin_list();
  const std::uint32_t body = parse_command();
  if (body != no_index) add(body);
  if (!failed_ && at_ == begin) fail_here("coproc needs a command"sv);
  --depth_;
  node.nodes = end_list(from);
  return add_node(node, at_);
}

bool ShellParser::is_reserved(std::string_view word) {
  return is_any(word, "if", "while", "until", "for", "case", "select", "function", "time",
                "coproc");
}

std::uint32_t ShellParser::parse_function_keyword() {
  const std::size_t begin = at_;
  take_word();
  skip_blanks();
  const std::size_t name_begin = at_;
  while (!at_end() && !ends_word(peek())) ++at_;
  const std::string_view name = text_.substr(name_begin, at_ - name_begin);
  if (name.empty()) fail_here("function needs a name"sv);
  skip_blanks();
  at_parentheses();
  return parse_function_body(name, begin);
}

std::uint32_t ShellParser::parse_function_body(std::string_view name, std::size_t begin) {
  ShellNode node = node_at(ShellNode::Kind::function, begin);
  node.name = name;
  if (!enter()) return no_index;
  skip_newlines();
  const std::size_t from = begin_list();
  const std::uint32_t body = failed_ ? no_index : parse_command();
  if (body != no_index) add(body);
  --depth_;
  node.nodes = end_list(from);
  return add_node(node, at_);
}

std::uint32_t ShellParser::parse_simple() {
  ShellNode node = node_at(ShellNode::Kind::simple, at_);
  const std::size_t begin = at_;
  const std::size_t from = begin_list();
  bool declares = false;
  for (skip_blanks(); !failed_ && !at_end(); skip_blanks()) {
    if (at_redirection()) {
      parse_redirection(node);
      continue;
    }
    if (ends_word(peek()) && !at_process()) break;
    const bool first = begin_list() == from;
    std::size_t bracket = 0;
    if (first || declares) {
      ShellAssignment assignment;
      if (parse_assignment(assignment, !first, bracket)) {
        add_to_chain(syntax_.assignments, assignment, node.assignments);
        continue;
      }
      if (failed_) break;
    }
    const std::size_t word_begin = at_;
    const std::uint32_t word = parse_word();
    if (at_ < bracket) fail_here("blank or operator in a subscript"sv);
    if (failed_) break;
    add(word);
    if (!first) continue;
    const std::string_view name = text_.substr(word_begin, at_ - word_begin);
    declares = bash() && is_any(name, "declare", "typeset", "local", "export", "readonly");
    if (node.assignments.first == no_index && node.redirections.first == no_index &&
        at_parentheses()) {
      cut(syntax_.pending, from);
      return parse_function_body(name, begin);
    }
  }
  node.words = end_list(from);
  if (++syntax_.simple > syntax_.most_simple)
    fail(ErrorCode::limit, concat("more than % commands", {syntax_.most_simple}), begin);
  return add_node(node, last_token_end(begin));
}

bool ShellParser::at_parentheses() {
  std::size_t at = at_;
  while (at < text_.size() && is_shell_blank(text_[at])) ++at;
  if (at >= text_.size() || text_[at] != '(') return false;
  for (++at; at < text_.size() && is_shell_blank(text_[at]);) ++at;
  if (at >= text_.size() || text_[at] != ')') return false;
  at_ = at + 1;
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
