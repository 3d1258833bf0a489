// The walker: {a,b} and {1..3}.

#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::expand_braces(const ShellWord& word, Fields& fields) {
  std::vector<BracePiece> pieces;
  for (std::uint32_t i = word.parts.begin; i < word.parts.end; ++i)
    add_brace_pieces(syntax_.parts[i], pieces);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].mark == '{') open.push_back(std::size_t{i});
    if (pieces[i].mark == ',' && !open.empty()) pieces[open.back()].comma = true;
    if (pieces[i].mark == '}' && !open.empty()) {
      pieces[open.back()].close = i;
      open.pop_back();
    }
  }
  for (const BraceWord& parts : brace_words(pieces, 0, pieces.size(), word.begin)) {
    for (std::size_t i = 0; i < parts.size() && !stopped(); ++i) {
      if (i == 0 && !parts[0].quoted && parts[0].kind == ShellPart::Kind::literal &&
          starts_with(parts[0].text, "~"sv))
        expand_leading_tilde(parts[0], parts.size() == 1, fields);
      else
        expand_part(parts[i], fields, false);
    }
    if (fields.started) end_field(fields);
  }
}

void ShellWalker::expand_leading_tilde(const ShellPart& part, bool alone, Fields& fields) {
  const std::size_t end = std::min(part.text.find('/'), part.text.size());
  if (end == part.text.size() && !alone) return expand_part(part, fields, false);
  ShellPart tilde = part;
  tilde.kind = ShellPart::Kind::tilde;
  tilde.text = part.text.substr(1, end - 1);
  expand_part(tilde, fields, false);
  ShellPart rest = part;
  rest.text = part.text.substr(end);
  if (!rest.text.empty()) expand_part(rest, fields, false);
}

void ShellWalker::add_brace_pieces(const ShellPart& part, std::vector<BracePiece>& pieces) {
  BracePiece piece;
  piece.part = part;
  if (part.kind != ShellPart::Kind::literal || part.quoted) {
    pieces.push_back(piece);
    return;
  }
  std::string_view text = part.text;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("{,}"), text.size());
    const std::size_t count = end == 0 ? 1 : end;
    piece.part.text = text.substr(0, count);
    piece.mark = end == 0 ? text[0] : '\0';
    pieces.push_back(piece);
    text.remove_prefix(count);
  }
}

ShellWalker::BraceWords ShellWalker::brace_words(const std::vector<BracePiece>& pieces,
                                                 std::size_t from, std::size_t to, std::size_t at) {
  BraceWords words;
  words.emplace_back();
  for (std::size_t i = from; i < to && !stopped(); ++i) {
    const BracePiece& piece = pieces[i];
    BraceWords alternatives;
    if (piece.mark == '{' && piece.close != 0 && piece.close < to) {
      if (piece.comma)
        alternatives = brace_list(pieces, i, at);
      else
        alternatives = brace_sequence(pieces, i);
    }
    if (alternatives.empty()) {
      for (BraceWord& word : words) word.push_back(piece.part);
      if (words.size() > 1) brace_parts_ += words.size();
    } else {
      BraceWords product;
      for (const BraceWord& word : words) {
        for (const BraceWord& alternative : alternatives) {
          product.push_back(word);
          for (const ShellPart& part : alternative) product.back().push_back(part);
          brace_parts_ += product.back().size() + 1;
          if (brace_parts_ > options_.limits.max_words) break;
        }
      }
      words = std::move(product);
      i = piece.close;
    }
    if (brace_parts_ > options_.limits.max_words)
      over_limit(options_.limits.max_words, "words from braces"sv, at);
  }
  return words;
}

ShellWalker::BraceWords ShellWalker::brace_list(const std::vector<BracePiece>& pieces,
                                                std::size_t open, std::size_t at) {
  BraceWords all;
  if (++brace_depth_ > options_.limits.max_depth) {
    stop(ErrorCode::limit, too_deep(options_), at);
    return all;
  }
  std::size_t from = open + 1;
  for (std::size_t i = from; i <= pieces[open].close && !stopped(); ++i) {
    if (pieces[i].mark == '{' && pieces[i].close != 0) {
      i = pieces[i].close;
      continue;
    }
    if (pieces[i].mark != ',' && i != pieces[open].close) continue;
    all.splice(all.end(), brace_words(pieces, from, i, at));
    from = i + 1;
  }
  --brace_depth_;
  return all;
}

ShellWalker::BraceWords ShellWalker::brace_sequence(const std::vector<BracePiece>& pieces,
                                                    std::size_t open) {
  if (pieces[open].close != open + 2 || pieces[open + 1].part.kind != ShellPart::Kind::literal ||
      pieces[open + 1].part.quoted)
    return {};
  const std::string_view text = pieces[open + 1].part.text;
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {};
  std::string_view first = text.substr(0, dots);
  std::string_view last = text.substr(dots + 2);
  std::string_view step_text = "1";
  if (const std::size_t more = last.find(".."); more != std::string_view::npos) {
    step_text = last.substr(more + 2);
    last = last.substr(0, more);
  }
  long long from = 0;
  long long to = 0;
  long long step = 0;
  if (!read_integer(step_text, step)) return {};
  const bool letters = first.size() == 1 && last.size() == 1 && !is_digit(first[0]) &&
                       !is_digit(last[0]) && is_name_start(first[0]) && is_name_start(last[0]);
  if (letters) {
    from = first[0];
    to = last[0];
  } else if (!read_integer(first, from) || !read_integer(last, to)) {
    return {};
  }
  step = std::max(step < 0 ? -step : step, 1LL);
  const bool padded = !letters && (is_padded(first) || is_padded(last));
  const std::size_t width = padded ? std::max(first.size(), last.size()) : 0;
  BraceWords words;
  for (long long value = from; from <= to ? value <= to : value >= to;
       value += from <= to ? step : -step) {
    std::string member =
        letters ? std::string(1, static_cast<char>(value)) : padded_number(value, width);
    syntax_.texts.push_back(std::move(member));
    ShellPart part;
    part.quoted = true;
    part.text = syntax_.texts.back();
    words.emplace_back();
    words.back().push_back(part);
    if (++brace_parts_ > options_.limits.max_words) break;
  }
  return words;
}

bool ShellWalker::read_integer(std::string_view text, long long& value) {
  if (text.empty() || text.size() > 9) return false;
  if (text[0] == '+') text.remove_prefix(1);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

bool ShellWalker::is_padded(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0';
}

std::string ShellWalker::padded_number(long long value, std::size_t width) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  const std::size_t sign = value < 0 ? 1 : 0;
  if (digits.size() + sign < width) digits.insert(0, width - sign - digits.size(), '0');
  return value < 0 ? concat({"-", digits}) : digits;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
