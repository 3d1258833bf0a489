// Regex beside RE2 and Python's re: the patterns that operators and the sanitizer use, on a command
// and on long text, and patterns that are made to be slow. All take turns. Python's matcher is
// exponential on the last ones, which are therefore small for it. Ends with status 1 and a line
// "GATE FAILED: ..." when the time grows faster than the text.
//
//   sh tests/bench/run.sh regex
//
// --quick: fewer rounds.
#include "codeexec.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "report.hpp"

#if __has_include(<re2/re2.h>)
#define BENCH_HAS_RE2 1
#include <re2/re2.h>
#else
#define BENCH_HAS_RE2 0
#endif

namespace {

using codeexec::Regex;

// The first nine are MassGen's, which every command meets there.
const char* const block_patterns[] = {
    R"(\brm\s+-rf\s+/)",
    R"(\bmv\b.*?\s+/dev/null)",
    R"(\bdd\b)",
    R"(>\s*/dev/sd[a-z][1-9]?)",
    R"(:\(\)\{\s*:\|\:&\s*\};:)",
    R"(\bsudo\b)",
    R"(\bsu\b)",
    R"(\bchown\b)",
    R"(\bchmod\b)",
    R"(git\s+push(\s+--force)?)",
    R"((curl|wget)\s.*\|\s*(ba|da|z)?sh\b)",
    R"(^(npm|pnpm|yarn)\s+(publish|unpublish)\b)",
};

const char command[] =
    "cd /repo && python -m pytest -q tests/test_parser.py -k 'not slow' 2>&1 | tail -20; "
    "grep -rn \"def main\" --include='*.py' src/ | head -50";

std::string long_text(std::size_t size) {
  const char* const lines[] = {
      "[ 42%] Building CXX object src/CMakeFiles/core.dir/module.cpp.o\n",
      "src/module.cpp:118:24: warning: unused variable \"count\" [-Wunused-variable]\n",
      "\tat com.example.Main.run(Main.java:42)\n",
      "tests/test_api.py::test_create PASSED                                    [ 12%]\n",
      "Successfully installed charset-normalizer-3.3.2 idna-3.6 requests-2.31.0\n",
  };
  std::string text;
  for (unsigned i = 0; text.size() < size; ++i) text += lines[(i * 7 + i / 5) % 5];
  text.resize(size);
  return text;
}

// What is searched for, in what, and how many searches are one round.
struct Case {
  const char* what;
  std::vector<std::string> patterns;
  std::string text;
  int times;
};

std::vector<Case> cases() {
  const std::vector<std::string> blocks(std::begin(block_patterns), std::end(block_patterns));
  return {
      {"search a command for 12 block patterns", blocks, command, 100},
      {"search 64 KiB of text for 12 block patterns", blocks, long_text(65536), 1},
      {"search 64 KiB of text for error|fatal", {"error|fatal"}, long_text(65536), 1},
      {"search 20 letters a for (a|a)*b", {"(a|a)*b"}, std::string(20, 'a'), 10},
      {"search 20 letters a for (a?){20}a{20}", {"(a?){20}a{20}"}, std::string(20, 'a'), 10},
  };
}

// Only for ours and RE2: Python would not come back.
std::vector<Case> hopeless_cases() {
  return {
      {"search 64 KiB of letters a for (a|a)*b", {"(a|a)*b"}, std::string(65536, 'a'), 1},
      {"search 30 letters a for (a?){30}a{30}", {"(a?){30}a{30}"}, std::string(30, 'a'), 10},
      {"search 64 KiB of letters a for (a?){30}a{30}b",
       {"(a?){30}a{30}b"},
       std::string(65536, 'a'),
       1},
  };
}

volatile int sink = 0;

class OurPatterns {
 public:
  explicit OurPatterns(const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      auto compiled = Regex::compile(pattern);
      if (!compiled) fail("Regex::compile", compiled.error().message);
      compiled_.push_back(*std::move(compiled));
    }
  }
  // How many of them are found.
  int search(const std::string& text) const {
    int found = 0;
    for (const Regex& pattern : compiled_) found += pattern.search(text) ? 1 : 0;
    return found;
  }

 private:
  std::vector<Regex> compiled_ = {};
};

#if BENCH_HAS_RE2
class Re2Patterns {
 public:
  explicit Re2Patterns(const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      compiled_.push_back(std::make_unique<RE2>(pattern, RE2::Quiet));
      if (!compiled_.back()->ok()) fail("RE2", compiled_.back()->error());
    }
  }
  int search(const std::string& text) const {
    int found = 0;
    for (const auto& pattern : compiled_) found += RE2::PartialMatch(text, *pattern) ? 1 : 0;
    return found;
  }

 private:
  std::vector<std::unique_ptr<RE2>> compiled_ = {};
};
#endif

std::string python_literal(const std::string& text) {
  std::string literal = "'";
  for (const char c : text) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(c) & 0xff);
    literal += escaped;
  }
  return literal + "'";
}

// For a Python program: the text may be longer than an argument can be.
class TextFile {
 public:
  explicit TextFile(const std::string& text) {
    const int fd = ::mkstemp(path_);
    if (fd < 0 || ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      fail("mkstemp");
    ::close(fd);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() { ::unlink(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/codeexec-bench-XXXXXX";
};

// Prints the microseconds of one search of all patterns, and what they found.
std::string python_script(const Case& one, const TextFile& text) {
  std::string script = "import re, sys, time\npatterns = [";
  for (const std::string& pattern : one.patterns)
    script += "re.compile(" + python_literal(pattern) + "), ";
  script += std::string("]\ntext = open('") + text.path() + "').read()\n";
  script += "times = " + std::to_string(one.times);
  return script +
         "\nfor line in sys.stdin:\n"
         "  begin = time.perf_counter()\n"
         "  for i in range(times):\n"
         "    found = sum(1 for p in patterns if p.search(text))\n"
         "  print((time.perf_counter() - begin) * 1e6 / times, found)\n";
}

template <class Patterns>
double search_time(const Patterns& patterns, const Case& one) {
  return microseconds([&] {
           for (int i = 0; i < one.times; ++i) sink = sink + patterns.search(one.text);
         }) /
         one.times;
}

void compare(const Case& one, int rounds, bool with_python) {
  const OurPatterns ours(one.patterns);
  Samples a;
  Samples b;
  Samples c;
#if BENCH_HAS_RE2
  const Re2Patterns theirs(one.patterns);
  if (ours.search(one.text) != theirs.search(one.text)) fail("different from RE2", one.what);
#endif
  for (int i = 0; i < rounds; ++i) {
    a.add(search_time(ours, one));
#if BENCH_HAS_RE2
    b.add(search_time(theirs, one));
#endif
  }
  if (BENCH_HAS_RE2)
    report(one.what, "us", a, "RE2", b);
  else
    skipped(one.what, "RE2", "re2/re2.h is not installed (libre2-dev)");
  if (!with_python) return;
  const TextFile text(one.text);
  Python python(python_script(one, text));
  if (!python.there()) return skipped(one.what, "Python re", "there is no python3");
  // One search of the slow ones takes it a second.
  const int python_rounds = one.text.size() == 20 ? 2 : rounds;
  Samples again;
  for (int i = 0; i < python_rounds; ++i) {
    again.add(search_time(ours, one));
    c.add(python.ask());
  }
  report(one.what, "us", again, "Python re", c);
}

void compare_compiling(int rounds) {
  const std::vector<std::string> patterns(std::begin(block_patterns), std::end(block_patterns));
  const std::string what = "compile 12 block patterns";
  Samples a;
  Samples b;
  for (int i = 0; i < rounds; ++i) {
    a.add(microseconds([&] { sink = sink + OurPatterns(patterns).search(""); }));
#if BENCH_HAS_RE2
    b.add(microseconds([&] { sink = sink + Re2Patterns(patterns).search(""); }));
#endif
  }
  if (BENCH_HAS_RE2)
    report(what, "us", a, "RE2", b);
  else
    skipped(what, "RE2", "re2/re2.h is not installed (libre2-dev)");
}

// Whether time grows with the text, and not faster.
void grow(int rounds) {
  const OurPatterns patterns({"(a|a)*b"});
  Samples small;
  Samples big;
  const Case one = {"", {}, std::string(std::size_t{1} << 15, 'a'), 1};
  const Case other = {"", {}, std::string(std::size_t{1} << 16, 'a'), 1};
  for (int i = 0; i < rounds; ++i) {
    small.add(search_time(patterns, one));
    big.add(search_time(patterns, other));
  }
  report("time to search twice as many letters a for (a|a)*b", "times",
         figure(best_ratio(big, small)), {"<=", 2.7});
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = has_argument(argc, argv, "--quick") ? 7 : 51;
  compare_compiling(rounds);
  for (const Case& one : cases()) compare(one, rounds, true);
  for (const Case& one : hopeless_cases()) compare(one, rounds, false);
  grow(rounds);
  return finish();
}
