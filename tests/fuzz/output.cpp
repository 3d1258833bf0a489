// What commands print: Capture keeps its ends and Redactor masks secrets in it, whatever the pieces
// are that it comes in. Both against the whole text at once.
//                                                          sh tests/fuzz/run.sh [seconds] output
//   The first byte of an input chooses the reader.
#include <algorithm>

#include "fuzz.hpp"
#include "process/capture_internal.hpp"

namespace {

using codeexec::Capture;
using codeexec::OutputChunk;
using codeexec::Redactor;

constexpr std::size_t of_all = std::string::npos;

// Redactor ----------------------------------------------------------------------------------------

// With few letters secrets occur, overlap and repeat themselves.
std::string with_few_letters(std::string_view text) {
  std::string result;
  for (const char c : text) result += static_cast<unsigned char>(c) < 4 ? '\n' : "abc"[(c & 7) / 3];
  return result;
}

std::string masked_plainly(const std::vector<std::string>& secrets, const std::string& text,
                           std::uint64_t& count) {
  // Which secret that begins at a byte is the longest.
  std::vector<std::size_t> longest(text.size(), 0);
  for (std::string secret : secrets) {
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.size() < Redactor::min_size) continue;
    for (std::size_t at = text.find(secret); at != of_all; at = text.find(secret, at + 1))
      longest[at] = std::max(longest[at], secret.size());
  }
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (longest[i] == 0) {
      result += text[i++];
      continue;
    }
    std::size_t end = i + longest[i];
    while (++i < end)
      if (longest[i] > 0) end = std::max(end, i + longest[i]);
    result += Redactor::mask;
    ++count;
  }
  return result;
}

void redact(fuzz::Bytes bytes) {
  const bool few = bytes.below(2) == 0;
  const std::size_t size = 1 + bytes.below(20);
  std::vector<std::string> secrets;
  for (std::size_t left = 1 + bytes.below(5); left > 0; --left)
    secrets.push_back(few ? with_few_letters(bytes.part()) : std::string(bytes.part()));
  const std::string text = few ? with_few_letters(bytes.rest()) : std::string(bytes.rest());
  std::uint64_t count = 0;
  const std::string wanted = masked_plainly(secrets, text, count);
  Redactor redactor(secrets);
  EXPECT_WITH(redactor.redact(text) == wanted, text);
  std::string got;
  for (int round = 0; round < 2; ++round) {
    got.clear();
    for (std::size_t at = 0; at < text.size(); at += size)
      got += redactor.add(std::string_view(text).substr(at, size));
    got += redactor.finish();
    EXPECT_WITH(got == wanted, text);
  }
  EXPECT_WITH(redactor.empty() || redactor.count() == 2 * count, text);
}

// Capture -----------------------------------------------------------------------------------------

void expect_text(const Capture& capture, const std::string& all, std::size_t most,
                 std::size_t head) {
  codeexec::OutputCounts counts;
  const std::string text = capture.text(&counts);
  EXPECT_WITH(codeexec::is_utf8(text), all);
  EXPECT_WITH(counts.total_bytes == all.size() && capture.total_bytes() == all.size(), all);
  if (all.size() <= most) {
    std::uint64_t invalid = 0;
    EXPECT_WITH(text == codeexec::to_utf8(all, &invalid), all);
    EXPECT_WITH(counts.invalid_bytes == invalid && counts.dropped_bytes == 0, all);
    return;
  }
  // Of the two ends at most a character each is cut.
  const std::size_t gone = all.size() - most;
  EXPECT_WITH(counts.dropped_bytes >= gone && counts.dropped_bytes <= gone + 6, all);
  const auto cut = static_cast<std::size_t>(counts.dropped_bytes) - gone;
  const std::string line = "\n... (truncated, exceeded " + std::to_string(most) +
                           " bytes: " + std::to_string(gone + cut) + " bytes omitted) ...\n";
  bool fits = false;
  for (std::size_t of_head = 0; of_head <= std::min<std::size_t>({cut, 3, head}); ++of_head) {
    const std::size_t tail = most - head;
    if (cut - of_head > std::min<std::size_t>(3, tail)) continue;
    fits = fits || text == codeexec::to_utf8(all.substr(0, head - of_head)) + line +
                               codeexec::to_utf8(all.substr(all.size() - tail + cut - of_head));
  }
  EXPECT_WITH(fits, all);
}

// Of what is there, by a reader that comes now and then.
void expect_read(const Capture& capture, const std::string& all, std::uint64_t& cursor, bool ended,
                 std::string& told, bool& whole) {
  const OutputChunk chunk = capture.read(cursor, ended);
  EXPECT_WITH(codeexec::is_utf8(chunk.text), all);
  EXPECT_WITH(chunk.next >= cursor && chunk.next <= all.size(), all);
  EXPECT_WITH(chunk.missed <= all.size() - cursor, all);
  EXPECT_WITH(!ended || chunk.next == all.size(), all);
  EXPECT_WITH(ended || all.size() - chunk.next <= 3, all);
  if (chunk.missed > 0) EXPECT_WITH(chunk.text.find(Capture::gap(chunk.missed)) != of_all, all);
  whole = whole && chunk.missed == 0;
  told += chunk.text;
  cursor = chunk.next;
}

void capture(fuzz::Bytes bytes) {
  const std::size_t most = 1 + bytes.below(60);
  const std::size_t head = bytes.below(most + 1);
  const std::size_t size = 1 + bytes.below(40);
  const std::size_t pause = 1 + bytes.below(4);
  Capture capture(most, head);
  std::string_view rest = bytes.rest();
  std::string all;
  std::string told;
  std::uint64_t cursor = 0;
  bool whole = true;
  for (std::size_t i = 0; !rest.empty(); ++i) {
    const std::string_view piece = rest.substr(0, 1 + (size * (i + 1)) % 23);
    rest.remove_prefix(piece.size());
    capture.add(piece);
    all += piece;
    if (i % pause == 0) expect_read(capture, all, cursor, false, told, whole);
  }
  expect_text(capture, all, most, head);
  expect_read(capture, all, cursor, true, told, whole);
  EXPECT_WITH(!whole || told == codeexec::to_utf8(all), all);
  // The last lines are an end of what there is.
  const std::string everything = capture.read(0, true).text;
  for (const std::size_t lines : {0u, 1u, 2u, 5u}) {
    const OutputChunk chunk = capture.read(0, true, lines);
    EXPECT_WITH(codeexec::is_utf8(chunk.text) && chunk.next == all.size(), all);
    if (all.size() > most) continue;
    EXPECT_WITH(chunk.text.size() <= everything.size() + Capture::gap(chunk.missed).size(), all);
    std::string text = chunk.text;
    if (chunk.missed > 0) {
      const std::string gap = Capture::gap(chunk.missed);
      EXPECT_WITH(text.compare(0, gap.size(), gap) == 0, all);
      text.erase(0, gap.size());
    }
    if (!text.empty()) text.pop_back();
    EXPECT_WITH(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) <=
                    std::max<std::size_t>(lines, 1) - 1,
                all);
  }
}

}  // namespace

void fuzz::output(std::string_view input) {
  Bytes bytes(input);
  if (bytes.below(2) == 0) return redact(bytes);
  capture(bytes);
}
