// A differential test of Regex against RE2: random patterns over random texts, from a fixed seed.
// A program of its own, since it alone needs RE2 (Debian: libre2-dev). Prints one summary line and
// exits with status 1 when the two disagree.   usage: regex_re2 [patterns] [seed]
#include <re2/re2.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "codeexec.hpp"

namespace {

using codeexec::Regex;

// A small multiplicative generator: the same sequence on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2862933555777941757u + 3037000493u) {}
  std::size_t below(std::size_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state_ >> 33) % bound;
  }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <std::size_t size>
  const char* pick(const char* const (&choices)[size]) {
    return choices[below(size)];
  }

 private:
  std::uint64_t state_;
};

// Only what both understand alike. The end of the text is spelled \Z for one and \z for the other
// (the byte 1 stands for it), and $ is used under (?m) only, where both mean the same by it.
class Generator {
 public:
  explicit Generator(Random& random) : random_(random) {}

  std::string pattern() {
    static const char* const flags[] = {"", "", "(?i)", "(?s)", "(?m)", "(?im)", "(?ms)"};
    const std::string chosen = random_.pick(flags);
    multi_line_ = chosen.find('m') != std::string::npos;
    return chosen + alternatives(random_.below(4)).text;
  }

  // Whether the pattern repeats what can match nothing. RE2 rewrites such loops before it runs
  // them, and may end a match elsewhere.
  bool repeats_empty() const { return repeats_empty_; }

  // RE2 looks at \B byte by byte, and finds it inside of a character, too.
  std::string text(bool ascii) {
    static const char* const plain[] = {"a", "b", "c", "ab", "aa", "A", "B", "_", "1", " ", "\n"};
    static const char* const others[] = {"\xe6\x97\xa5", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    std::string result;
    for (std::size_t length = random_.below(12); length > 0; --length)
      result += !ascii && random_.one_in(5) ? random_.pick(others) : random_.pick(plain);
    return result;
  }

 private:
  struct Part {
    std::string text;
    bool may_be_empty = false;
  };

  Part alternatives(std::size_t depth) {
    Part result = sequence(depth);
    for (std::size_t more = random_.below(6); more > 3; --more) {
      const Part other = sequence(depth);
      result.text += "|" + other.text;
      result.may_be_empty = result.may_be_empty || other.may_be_empty;
    }
    return result;
  }

  Part sequence(std::size_t depth) {
    Part result{"", true};
    const std::size_t shortest = random_.one_in(8) ? 0 : 1;
    for (std::size_t pieces = shortest + random_.below(4); pieces > 0; --pieces) {
      const Part next = piece(depth);
      result.text += next.text;
      result.may_be_empty = result.may_be_empty && next.may_be_empty;
    }
    return result;
  }

  Part piece(std::size_t depth) {
    static const char* const optional[] = {"*", "?", "*?", "??", "{0,2}", "{0,1}", "{0,3}?"};
    static const char* const needed[] = {"+", "+?", "{2}", "{1,3}?", "{2,}", "{2,}?", "{1,2}"};
    static const char* const edges[] = {"^", "\\A", "\\b", "\\B", "\x01"};
    if (random_.one_in(10))
      return {multi_line_ && random_.one_in(2) ? "$" : random_.pick(edges), true};
    Part result = atom(depth);
    if (random_.one_in(2)) return result;
    repeats_empty_ = repeats_empty_ || result.may_be_empty;
    const bool is_optional = random_.one_in(2);
    result.text += is_optional ? random_.pick(optional) : random_.pick(needed);
    result.may_be_empty = result.may_be_empty || is_optional;
    return result;
  }

  Part atom(std::size_t depth) {
    static const char* const characters[] = {"a",
                                             "b",
                                             "c",
                                             "a",
                                             "b",
                                             "A",
                                             "_",
                                             "1",
                                             " ",
                                             ".",
                                             "\\n",
                                             "\\.",
                                             "\\x61",
                                             "[abc]",
                                             "[^a]",
                                             "[a-c]",
                                             "\\d",
                                             "\\w",
                                             "\\s",
                                             "\\W",
                                             "\\S",
                                             "\\D",
                                             "[^\\w]",
                                             "[\\s\\d]",
                                             "[B-b]",
                                             "\xe6\x97\xa5",
                                             "[\xe2\x82\xac-\xe6\x97\xa5]",
                                             "[^\xe6\x97\xa5]"};
    static const char* const openings[] = {"(", "(?:", "(?:", "(?i:", "(?s:", "(?-i:"};
    if (depth == 0 || random_.one_in(2)) return {random_.pick(characters), false};
    const std::string opening = random_.pick(openings);
    Part inner = alternatives(depth - 1);
    inner.text = opening + inner.text + ")";
    return inner;
  }

  Random& random_;
  bool multi_line_ = false;
  bool repeats_empty_ = false;
};

std::string with_text_end(const std::string& pattern, const char* spelling) {
  std::string result;
  for (const char c : pattern) c == '\x01' ? result += spelling : result += c;
  return result;
}

struct Answers {
  bool match = false;
  bool full_match = false;
  bool search = false;
  std::ptrdiff_t begin = -1;
  std::ptrdiff_t end = -1;
  bool operator==(const Answers& other) const {
    return match == other.match && full_match == other.full_match && search == other.search &&
           begin == other.begin && end == other.end;
  }
};

Answers ask_ours(const Regex& regex, const std::string& text) {
  Answers answers;
  answers.match = regex.match(text);
  answers.full_match = regex.full_match(text);
  answers.search = regex.search(text);
  if (const auto span = regex.find(text)) {
    answers.begin = static_cast<std::ptrdiff_t>(span->begin);
    answers.end = static_cast<std::ptrdiff_t>(span->end);
  }
  return answers;
}

Answers ask_re2(const RE2& regex, const std::string& text) {
  Answers answers;
  const auto ask = [&](RE2::Anchor anchor, re2::StringPiece* span) {
    return regex.Match(text, 0, text.size(), anchor, span, span ? 1 : 0);
  };
  answers.match = ask(RE2::ANCHOR_START, nullptr);
  answers.full_match = ask(RE2::ANCHOR_BOTH, nullptr);
  answers.search = ask(RE2::UNANCHORED, nullptr);
  re2::StringPiece span;
  if (ask(RE2::UNANCHORED, &span)) {
    answers.begin = span.data() - text.data();
    answers.end = answers.begin + static_cast<std::ptrdiff_t>(span.size());
  }
  return answers;
}

void print(const char* who, const Answers& a) {
  std::printf("  %s: match %d full_match %d search %d span %td..%td\n", who, a.match, a.full_match,
              a.search, a.begin, a.end);
}

}  // namespace

int main(int argc, char** argv) {
  const long patterns = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 4000;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  long pairs = 0;
  long whole = 0;
  long found = 0;
  long disagreements = 0;
  for (long i = 0; i < patterns; ++i) {
    Generator generator(random);
    const std::string pattern = generator.pattern();
    // (?a), since RE2's \w, \s and \b are ASCII.
    const auto ours = Regex::compile("(?a)" + with_text_end(pattern, "\\Z"));
    const RE2 theirs(with_text_end(pattern, "\\z"), RE2::Quiet);
    if (!ours || !theirs.ok()) {
      ++disagreements;
      std::printf("pattern '%s': %s / %s\n", pattern.c_str(),
                  ours ? "fine" : ours.error().message.c_str(), theirs.error().c_str());
      continue;
    }
    for (int n = 0; n < 8; ++n) {
      const std::string text = generator.text(pattern.find("\\B") != std::string::npos);
      const Answers a = ask_ours(*ours, text);
      Answers b = ask_re2(theirs, text);
      ++pairs;
      if (generator.repeats_empty())
        b.end = a.end;
      else
        ++whole;
      found += a.search;
      if (a == b) continue;
      ++disagreements;
      std::printf("pattern '%s' text '%s'\n", pattern.c_str(), text.c_str());
      print("ours", a);
      print("RE2 ", b);
    }
  }
  std::printf(
      "regex_re2: %ld patterns, %ld pairs (%ld of them with the end of the span), %ld with a "
      "match, "
      "%ld disagreements\n",
      patterns, pairs, whole, found, disagreements);
  // A run in which hardly anything matched would have compared nothing.
  return disagreements == 0 && found * 5 > pairs ? 0 : 1;
}
