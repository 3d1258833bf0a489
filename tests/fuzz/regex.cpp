// Regex agrees with RE2 where both mean the same by a pattern, with itself everywhere, and refuses
// the rest with a place in the pattern.                    sh tests/fuzz/run.sh [seconds] regex
//   An input is the pattern up to a byte 0xff, then the text. When it begins with a NUL, its bytes
// choose pieces of a pattern and of a text that both engines understand alike.
#include "../oracle/regex_patterns.hpp"
#include "fuzz.hpp"

#if __has_include(<re2/re2.h>)
#include <re2/re2.h>
#define HAS_RE2 1
#endif

namespace {

using codeexec::Regex;
using regex_patterns::with_text_end;

// Far more of both costs seconds, as it may: their product bounds the time.
constexpr std::size_t longest_pattern = 300;
constexpr std::size_t longest_text = 200;

void expect_sound(const Regex& regex, std::string_view text) {
  const bool search = regex.search(text);
  const bool match = regex.match(text);
  const bool full_match = regex.full_match(text);
  const auto found = regex.find(text);
  EXPECT_WITH(!full_match || match, regex.pattern());
  EXPECT_WITH(!match || search, regex.pattern());
  EXPECT_WITH(search == found.has_value(), regex.pattern());
  if (!found) return;
  const std::size_t begin = static_cast<std::size_t>(found->data() - text.data());
  const std::size_t end = begin + found->size();
  EXPECT_WITH(begin <= text.size() && end <= text.size(), regex.pattern());
  EXPECT_WITH(!match || begin == 0, regex.pattern());
  // No character is cut in two, where there are characters.
  if (codeexec::is_utf8(text)) {
    EXPECT_WITH(codeexec::is_utf8(text.substr(0, begin)), regex.pattern());
    EXPECT_WITH(codeexec::is_utf8(text.substr(0, end)), regex.pattern());
  }
  const auto same = regex.find(text, begin);
  EXPECT_WITH(same && same->data() == found->data() && same->size() == found->size(),
              regex.pattern());
}

#ifdef HAS_RE2

// How far the two can be compared.
enum class Alike { no, found, span };

void expect_alike(const std::string& ours, const std::string& theirs, std::string_view text,
                  Alike alike) {
  const auto mine = Regex::compile(ours);
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(std::int64_t{64} << 20);
  const RE2 other(theirs, options);
  if (!mine || !other.ok()) return;
  const re2::StringPiece whole(text.data(), text.size());
  const auto ask = [&](RE2::Anchor anchor, re2::StringPiece* span) {
    return other.Match(whole, 0, whole.size(), anchor, span, span ? 1 : 0);
  };
  const std::string shown = ours + "\n--- in\n" + std::string(text);
  EXPECT_WITH(mine->match(text) == ask(RE2::ANCHOR_START, nullptr), shown);
  EXPECT_WITH(mine->full_match(text) == ask(RE2::ANCHOR_BOTH, nullptr), shown);
  const auto found = mine->find(text);
  re2::StringPiece span;
  EXPECT_WITH(found.has_value() == ask(RE2::UNANCHORED, &span), shown);
  if (!found) return;
  EXPECT_WITH(found->data() == span.data(), shown);
  if (alike == Alike::span)
    EXPECT_WITH(found->size() == static_cast<std::size_t>(span.size()), shown);
}

// A pattern as it came: of characters that mean the same to both. What repeats may match nothing,
// and may then end elsewhere.
Alike likeness(std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool plain = std::string_view("abcxyzAB019_ .()|*+?^[]-").find(c) != pattern.npos;
    if (!plain || pattern.substr(i, 2) == "[[") return Alike::no;
    if (pattern.substr(i, 2) == "(?" && pattern.substr(i, 3) != "(?:") return Alike::no;
  }
  return Alike::found;
}

void compare_built(std::string_view input) {
  fuzz::Bytes choices(input);
  constexpr std::size_t most_pieces = 40;
  regex_patterns::Generator<fuzz::Bytes> generator(choices, most_pieces);
  const std::string pattern = generator.pattern();
  std::string text;
  while (!choices.empty() && text.size() < longest_text) text += generator.text_piece();
  // (?a), since RE2's \w, \s and \b are ASCII.
  const std::string ours = "(?a)" + with_text_end(pattern, "\\Z");
  const auto compiled = Regex::compile(ours);
  if (!compiled) {
    EXPECT_WITH(compiled.error().code == codeexec::ErrorCode::limit, ours);
    return;
  }
  expect_sound(*compiled, text);
  if (generator.has_case_in_alternation()) return;
  expect_alike(ours, with_text_end(pattern, "\\z"), text,
               generator.repeats_empty() ? Alike::found : Alike::span);
}

#endif

}  // namespace

void fuzz::regex(std::string_view input) {
#ifdef HAS_RE2
  if (!input.empty() && input[0] == '\0') return compare_built(input.substr(1));
#endif
  Bytes bytes(input);
  const std::string pattern(bytes.part().substr(0, longest_pattern));
  const std::string_view text = bytes.rest().substr(0, longest_text);
  const auto regex = Regex::compile(pattern);
  if (!regex) {
    EXPECT_WITH(regex.error().offset <= pattern.size(), pattern);
    EXPECT_WITH(!regex.error().message.empty(), pattern);
    return;
  }
  EXPECT_WITH(regex->pattern() == pattern, pattern);
  expect_sound(*regex, text);
  const auto wider = Regex::compile(pattern, "ims");
  EXPECT_WITH(wider || wider.error().code == codeexec::ErrorCode::limit, pattern);
  if (wider) expect_sound(*wider, text);
#ifdef HAS_RE2
  if (likeness(pattern) != Alike::no && codeexec::is_utf8(text))
    expect_alike(pattern, pattern, text, likeness(pattern));
#endif
}
