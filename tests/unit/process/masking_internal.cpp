// The masking of a stream, from inside.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"
#include "process/capture_internal.hpp"

using codeexec::Capture;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Redactor;
using codeexec::run_process;
using codeexec::Stream;
using support::shell;

namespace {

// What is known of a masked stream of which only `text` has come: worked out from the definition,
// in quadratic time. With `ended`, nothing may be held back.
struct Masked {
  std::string text = {};
  std::uint64_t count = 0;
};

Masked naively_masked(const std::vector<std::string>& secrets, const std::string& text,
                      bool ended) {
  std::size_t certain = text.size();  // no secret that goes on begins before it
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    std::size_t longest = 0;
    for (std::string secret : secrets) {
      while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
      if (secret.size() < Redactor::min_size) continue;
      if (text.compare(begin, secret.size(), secret) == 0)
        longest = std::max(longest, secret.size());
      const std::size_t left = text.size() - begin;
      const bool goes_on = left < secret.size() && secret.compare(0, left, text, begin) == 0;
      if (!ended && goes_on) certain = std::min(certain, begin);
    }
    if (longest == 0) continue;
    if (found.empty() || begin >= found.back().second)
      found.emplace_back(begin, begin + longest);
    else
      found.back().second = std::max(found.back().second, begin + longest);
  }
  Masked result;
  std::size_t at = 0;
  for (const auto& [begin, end] : found) {
    if (begin > certain) break;
    result.text += text.substr(at, begin - at) + std::string(Redactor::mask);
    ++result.count;
    at = end;
  }
  if (at < certain) result.text += text.substr(at, certain - at);
  return result;
}

std::string masked(const std::vector<std::string>& secrets, const std::string& text) {
  return Redactor(secrets).redact(text);
}

// What becomes of a text that comes in two pieces, cut at every place: the same, or an empty text.
std::string masked_in_two(const std::vector<std::string>& secrets, const std::string& text) {
  std::string first;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Redactor redactor(secrets);
    std::string result(redactor.add(text.substr(0, cut)));
    result += redactor.add(text.substr(cut));
    result += redactor.finish();
    if (cut == 0) first = result;
    if (result != first) return {};
  }
  return first;
}

}  // namespace

TEST_CASE("a Redactor masks each secret wherever the stream is cut") {
  const std::vector<std::string> secrets = {"hunter2", "correct horse", "hunter2hunter2",
                                            std::string("nul\0bytes", 9), "\xff\xfe\xff\xfe"};
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"nothing here", "nothing here"},
      {"hunter2", "[redacted]"},
      {"my hunter2!", "my [redacted]!"},
      {"hunter", "hunter"},
      {"hunterhunter2", "hunter[redacted]"},
      {"hunter2hunter2", "[redacted]"},
      {"hunter2hunter", "[redacted]hunter"},
      {"hunter2 hunter2", "[redacted] [redacted]"},
      {"hunter2correct horse", "[redacted][redacted]"},
      {std::string("a nul\0bytes b", 13), "a [redacted] b"},
      {std::string("a nul\0byte b", 12), std::string("a nul\0byte b", 12)},
      {"\xff\xff\xfe\xff\xfe\xff", "\xff[redacted]\xff"},
      {"[redacted]", "[redacted]"},
  };
  for (const auto& each : cases) {
    const std::string& text = each.first;
    CAPTURE(text);
    CHECK(masked(secrets, text) == each.second);
    CHECK(masked_in_two(secrets, text) == each.second);
  }
}

TEST_CASE("a Redactor masks every byte of secrets that overlap, touch or lie in each other") {
  CHECK(masked({"abcd", "cdef"}, "xabcdefx") == "x[redacted]x");
  CHECK(masked({"abcd", "efgh"}, "xabcdefghx") == "x[redacted][redacted]x");
  CHECK(masked({"abcd", "efgh", "dedd"}, "abcdefgh") == "[redacted][redacted]");
  CHECK(masked({"abcd", "efgh", "cdef"}, "abcdefgh") == "[redacted]");
  CHECK(masked({"bcde", "abcdefg"}, "abcdefg abcdef") == "[redacted] a[redacted]f");
  CHECK(masked({"1111", "2222", "x1111y2222z"}, "x1111y2222z") == "[redacted]");
  CHECK(masked({"1111", "2222", "x1111y2222z"}, "x1111y2222y") == "x[redacted]y[redacted]y");
  CHECK(masked({"aaaa"}, "aaaaaaaaa") == "[redacted]");
  CHECK(masked({"aaaa"}, "aaa aaaa") == "aaa [redacted]");
  Redactor redactor({"abcd", "abcd", "cdab"});
  CHECK(redactor.add("abcdabcd abcd") == "[redacted] [redacted]");
  CHECK(redactor.count() == 2);
}

TEST_CASE("a Redactor leaves out what is too short, and line ends at the end of a secret") {
  CHECK(Redactor().empty());
  CHECK(Redactor({"", "abc", "abc\n", "ab\r\n", "\n\n\n\n\n"}).empty());
  CHECK(!Redactor({"abcd"}).empty());
  CHECK(masked({}, "abcd") == "abcd");
  CHECK(masked({"", "abc"}, "abcd") == "abcd");
  CHECK(masked({"secret\n"}, "secret") == "[redacted]");
  CHECK(masked({"secret\r\n\n"}, "a secret\nb") == "a [redacted]\nb");
  CHECK(masked({"two\nlines\n"}, "two\nlines two") == "[redacted] two");
}

TEST_CASE("a Redactor returns at once what cannot become a secret any more") {
  Redactor redactor({"hunter2", "hunter2 and more"});
  CHECK(redactor.add("password: ") == "password: ");
  CHECK(redactor.add("hunt") == "");
  CHECK(redactor.add("x") == "huntx");
  CHECK(redactor.add("huhunter") == "hu");
  CHECK(redactor.add("2") == "[redacted]");
  CHECK(redactor.add(" and") == "");
  CHECK(redactor.add("!") == " and!");
  CHECK(redactor.add("hunter2 and mor") == "[redacted]");
  CHECK(redactor.add("e") == "");
  CHECK(redactor.add("h") == "");
  CHECK(redactor.finish() == "h");
  CHECK(redactor.finish() == "");
  CHECK(redactor.count() == 2);
  CHECK(redactor.add("unter2") == "unter2");  // the end of one stream and the next are no secret
}

TEST_CASE("copies of a Redactor go on by themselves") {
  Redactor one({"hunter2"});
  CHECK(one.add("hun") == "");
  Redactor other = one;
  CHECK(one.add("ter2") == "[redacted]");
  CHECK(other.add("gry") == "hungry");
  CHECK(one.redact("hunter2") == "[redacted]");
  CHECK(one.count() == 1);
  CHECK(other.count() == 0);
}

TEST_CASE("a Redactor does what its definition says, whatever the secrets and the pieces are") {
  support::Random random;
  for (int round = 0; round < 3000; ++round) {
    // Of few letters most of a text is about to become a secret, of many hardly anything is.
    const std::size_t letters = round % 2 == 0 ? 1 + random.below(3) : 26;
    const auto random_text = [&](std::size_t longest) {
      std::string text;
      for (std::size_t left = random.below(longest + 1); left > 0; --left)
        text += random.below(40) == 0 ? '\n' : static_cast<char>('a' + random.below(letters));
      return text;
    };
    std::vector<std::string> secrets;
    for (std::size_t left = random.below(5); left > 0; --left) secrets.push_back(random_text(12));
    std::string text = random_text(60);
    for (const std::string& secret : secrets) text.insert(random.below(text.size() + 1), secret);
    Redactor redactor(secrets);
    std::string result;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t size = 1 + random.below(text.size() - at);
      result += redactor.add(text.substr(at, size));
      at += size;
      const Masked expected = naively_masked(secrets, text.substr(0, at), false);
      if (result == expected.text && redactor.count() == expected.count) continue;
      std::string all = "text '" + text.substr(0, at) + "' secrets";
      for (const std::string& secret : secrets) all += " '" + secret + "'";
      FAIL(all << ": got '" << result << "', expected '" << expected.text << "'");
    }
    result += redactor.finish();
    const Masked expected = naively_masked(secrets, text, true);
    REQUIRE(result == expected.text);
    REQUIRE(redactor.count() == expected.count);
    REQUIRE(redactor.redact(text) == expected.text);
  }
}

// Each of these takes minutes where a byte costs as much as a secret is long.
TEST_CASE("a Redactor is linear for the worst secrets and streams") {
  constexpr std::size_t size = 300000;
  SUBCASE("a stream that is always about to become the secret, byte by byte") {
    const std::string secret = std::string(size, 'a') + "b";
    Redactor redactor({secret});
    std::size_t returned = 0;
    for (std::size_t i = 0; i < 2 * size; ++i) returned += redactor.add("a").size();
    CHECK(returned == size);
    CHECK(redactor.add("b") == Redactor::mask);
    CHECK(redactor.finish() == "");
  }
  SUBCASE("many secrets within one that does not come") {
    std::string secret;
    while (secret.size() < size) secret += "1111y";
    Redactor redactor({"1111", secret + "z"});
    std::uint64_t returned = 0;
    for (std::size_t i = 0; i < 2 * size; ++i)
      returned += redactor.add(std::string(1, "1111y"[i % 5])).size();
    returned += redactor.finish().size();
    CHECK(redactor.count() == 2 * size / 5);
    CHECK(returned == 2 * size / 5 * (Redactor::mask.size() + 1));
  }
  SUBCASE("secrets that are the ends of each other") {
    std::vector<std::string> secrets;
    for (std::size_t length = 4; length < 1000; ++length)
      secrets.push_back("c" + std::string(length, 'a') + "b");
    const Redactor redactor(secrets);
    const std::string longer = "c" + std::string(1200, 'a') + "b";
    std::string text;
    std::string expected;
    while (text.size() < size) {
      text += longer + "c" + std::string(9, 'a') + "b";
      expected += longer + std::string(Redactor::mask);
    }
    CHECK(redactor.redact(text) == expected);
  }
}

TEST_CASE("the head, the tail and the spill file are cut from the masked stream") {
  const support::TempDir directory;
  const std::string secret = "0123456789abcdef";
  // Without masking, each cut of max_output would go through a secret.
  ProcessOptions options =
      shell("i=0; while [ $i -lt 20000 ]; do printf 'k=" + secret + "\\n'; i=$((i+1)); done");
  options.secrets = {secret, "unrelated"};
  std::string whole;
  for (int i = 0; i < 20000; ++i) whole += "k=[redacted]\n";
  for (const bool spilled : {false, true}) {
    for (const std::size_t max : {100u, 101u, 131072u, 1u << 20}) {
      CAPTURE(spilled);
      CAPTURE(max);
      options.max_output = max;
      if (spilled) options.spill_dir = directory.path();
      std::string heard;
      options.on_output = [&](Stream, std::string_view bytes) { heard += bytes; };
      const ProcessResult r = run_process(options);
      Capture expected(max);
      expected.add(whole);
      CHECK((r.out == expected.text()));
      CHECK((heard == whole));
      CHECK(r.out_counts.total_bytes == whole.size());
      CHECK(r.out_counts.redactions == 20000);
      CHECK(r.out_file.empty() == (!spilled || whole.size() <= max));
      if (r.out_file.empty()) continue;
      CHECK((support::read_file(r.out_file) == whole));
      CHECK(r.out_counts.file_bytes == whole.size());
    }
  }
}
