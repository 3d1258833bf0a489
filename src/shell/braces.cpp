// The walker: {a,b} and {1..3}.

#include "shell/shell_internal.hpp"
#include "shell/words_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

std::string padded_number(long long value, std::size_t width) {
  std::string digits = Piece(value < 0 ? -value : value);
  const std::size_t sign = value < 0 ? 1 : 0;
  if (digits.size() + sign < width) digits.insert(0, width - sign - digits.size(), '0');
  return value < 0 ? concat("-%", {digits}) : digits;
}

}  // namespace

inline namespace inner {

// a{b,c{d,e}} is cut into pieces; each { that has its } and a comma is a list:
//
//   pieces   a   {   b   ,   c   {   d   ,   e   }   }
//                \_______________ \_______________/   /      close of the outer {: the last piece
//                 \_________________________________/
//
// words(from, to) makes the words of a range: the product of what stands in a row, where a list
// stands for the words of its ranges. list() and words() call each other, a level deeper each time.

ShellBraces::Words ShellBraces::expand(const ShellWord& word) {
  at_ = word.begin;
  for (std::uint32_t i = word.parts.begin; i < word.parts.end; ++i)
    add_pieces(walk_.syntax.parts[i]);
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].mark == '{') open.push_back(std::size_t{i});
    if (pieces_[i].mark == ',' && !open.empty()) pieces_[open.back()].comma = true;
    if (pieces_[i].mark == '}' && !open.empty()) {
      pieces_[open.back()].close = i;
      open.pop_back();
    }
  }
  return words(0, pieces_.size());
}

void ShellBraces::add_pieces(const ShellPart& part) {
  Piece piece;
  piece.part = part;
  if (part.kind != ShellPart::Kind::literal || part.quoted) {
    pieces_.push_back(piece);
    return;
  }
  std::string_view text = part.text;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("{,}"), text.size());
    const std::size_t count = end == 0 ? 1 : end;
    piece.part.text = text.substr(0, count);
    piece.mark = end == 0 ? text[0] : '\0';
    pieces_.push_back(piece);
    text.remove_prefix(count);
  }
}

ShellBraces::Words ShellBraces::words(std::size_t from, std::size_t to) {
  ShellBudget& budget = walk_.budget;
  Words words;
  words.emplace_back();
  for (std::size_t i = from; i < to && !budget.stopped(); ++i) {
    const Piece& piece = pieces_[i];
    Words alternatives;
    if (piece.mark == '{' && piece.close != 0 && piece.close < to) {
      if (piece.comma)
        alternatives = list(i);
      else
        alternatives = sequence(i);
    }
    if (alternatives.empty()) {
      for (Word& word : words) word.push_back(piece.part);
      if (words.size() > 1) budget.count_braces(words.size());
    } else {
      Words product;
      for (const Word& word : words) {
        for (const Word& alternative : alternatives) {
          product.push_back(word);
          for (const ShellPart& part : alternative) product.back().push_back(part);
          if (!budget.count_braces(product.back().size() + 1)) break;
        }
      }
      words = std::move(product);
      i = piece.close;
    }
    if (!budget.count_braces(0))
      budget.over_limit(budget.options.limits.max_words, "words from braces"sv, at_);
  }
  return words;
}

ShellBraces::Words ShellBraces::list(std::size_t open) {
  Words all;
  ShellBudget& budget = walk_.budget;
  if (++depth_ > budget.options.limits.max_depth) {
    budget.stop(ErrorCode::limit, too_deep(budget.options), at_);
    return all;
  }
  std::size_t from = open + 1;
  for (std::size_t i = from; i <= pieces_[open].close && !budget.stopped(); ++i) {
    if (pieces_[i].mark == '{' && pieces_[i].close != 0) {
      i = pieces_[i].close;
      continue;
    }
    if (pieces_[i].mark != ',' && i != pieces_[open].close) continue;
    all.splice(all.end(), words(from, i));
    from = i + 1;
  }
  --depth_;
  return all;
}

ShellBraces::Words ShellBraces::sequence(std::size_t open) {
  if (pieces_[open].close != open + 2 || pieces_[open + 1].part.kind != ShellPart::Kind::literal ||
      pieces_[open + 1].part.quoted)
    return {};
  const std::string_view text = pieces_[open + 1].part.text;
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
  Words words;
  for (long long value = from; from <= to ? value <= to : value >= to;
       value += from <= to ? step : -step) {
    ShellPart part;
    part.quoted = true;
    part.text = walk_.syntax.keep(letters ? std::string(1, static_cast<char>(value))
                                          : padded_number(value, width));
    words.emplace_back();
    words.back().push_back(part);
    if (!walk_.budget.count_braces(1)) break;
  }
  return words;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
