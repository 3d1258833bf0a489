// A differential test of Regex against RE2: random patterns over random texts, from a fixed seed.
// A program of its own, since it alone needs RE2 (Debian: libre2-dev). Prints one summary line and
// exits with status 1 when the two disagree.   usage: regex_re2 [patterns] [seed]
#include <re2/re2.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "codeexec.hpp"
#include "regex_patterns.hpp"

namespace {

using codeexec::Regex;
using regex_patterns::with_text_end;

// A small multiplicative generator: the same sequence on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2862933555777941757u + 3037000493u) {}
  std::size_t below(std::size_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_;
};

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
    answers.begin = span->data() - text.data();
    answers.end = answers.begin + static_cast<std::ptrdiff_t>(span->size());
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
    regex_patterns::Generator<Random> generator(random);
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
      std::string text;
      for (std::size_t left = random.below(12); left > 0; --left) text += generator.text_piece();
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
