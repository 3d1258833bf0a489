// The head and the tail that are kept of a stream, from inside.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "../../helpers/support.hpp"
#include "helpers.hpp"
#include "process/capture_internal.hpp"

using codeexec::Capture;
using codeexec::OutputChunk;
using codeexec::OutputCounts;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Stream;
using support::run_clean;
using support::shell;

TEST_CASE("W-17: what a flood leaves is its true head and tail, and the listener saw all of it") {
  for (const std::size_t max : {131072u, 200001u, 1u << 20}) {
    ProcessOptions options = shell("seq 1 700000");
    options.max_output = max;
    std::string whole;
    options.on_output = [&](Stream, std::string_view bytes) { whole.append(bytes); };
    const ProcessResult r = run_clean(options);
    Capture expected(max);
    expected.add(whole);
    CHECK(whole.size() == r.out_counts.total_bytes);
    CHECK(whole.substr(whole.size() - 7) == "700000\n");
    CHECK((r.out == expected.text()));
  }
}

TEST_CASE("Capture keeps exactly head and tail, whatever the pieces") {
  support::Random random;
  for (int round = 0; round < 300; ++round) {
    const std::size_t max = random.below(round % 2 ? 60000 : 40);
    Capture capture(max);
    std::string all;
    const std::size_t pieces = random.below(12);
    for (std::size_t i = 0; i < pieces; ++i) {
      std::string piece(random.below(round % 2 ? 40000 : 20), '\0');
      for (char& c : piece) c = static_cast<char>('a' + random.below(26));
      capture.add(piece);
      all += piece;
    }
    OutputCounts counts;
    const std::string text = capture.text(&counts);
    CHECK(counts.total_bytes == all.size());
    if (all.size() <= max) {
      CHECK(text == all);
      CHECK(counts.dropped_bytes == 0);
      continue;
    }
    const std::size_t dropped = all.size() - max;
    CHECK(counts.dropped_bytes == dropped);
    CHECK(text == all.substr(0, max / 2) + "\n... (truncated, exceeded " + std::to_string(max) +
                      " bytes: " + std::to_string(dropped) + " bytes omitted) ...\n" +
                      all.substr(all.size() - (max - max / 2)));
  }
}

TEST_CASE("Capture cuts at characters and counts what it cuts") {
  for (std::size_t max = 0; max < 40; ++max) {
    Capture capture(max);
    std::string all;
    for (int i = 0; i < 30; ++i) all += i % 2 ? "\xe2\x82\xac" : "\xf0\x9f\x98\x80";
    capture.add(all);
    OutputCounts counts;
    const std::string text = capture.text(&counts);
    CHECK(codeexec::is_utf8(text));
    CHECK(text.find("\xef\xbf\xbd") == std::string::npos);
    CHECK(counts.invalid_bytes == 0);
    const std::size_t marker = text.find("\n... (truncated");
    REQUIRE(marker != std::string::npos);
    const std::size_t tail = text.size() - text.find(") ...\n") - 6;
    CHECK(counts.dropped_bytes == all.size() - marker - tail);
    CHECK(marker + tail <= max);
    CHECK(all.substr(0, marker) == text.substr(0, marker));
    CHECK(all.substr(all.size() - tail) == text.substr(text.size() - tail));
  }
}

TEST_CASE("Capture gives what is new since a cursor, whole characters only") {
  Capture capture(1000);
  capture.add("abc\xe2\x82");
  OutputChunk chunk = capture.read(0, false);
  CHECK(chunk.text == "abc");
  CHECK(chunk.next == 3);
  capture.add("\xac!");
  chunk = capture.read(chunk.next, false);
  CHECK(chunk.text == "\xe2\x82\xac!");
  CHECK(chunk.next == 7);
  CHECK(chunk.missed == 0);
  CHECK(capture.read(7, false).text.empty());
  CHECK(capture.read(99, false).next == 7);
  capture.add("\xe2");
  CHECK(capture.read(7, false).text.empty());
  CHECK(capture.read(7, true).text == "\xef\xbf\xbd");
}

TEST_CASE("Capture lets a character wait that lies across the border of head and tail") {
  const std::string text = "ab\xf0\x9f\x98\x80x\xf0\x9f\x98\x80y";
  for (std::size_t head = 0; head <= 8; ++head) {
    CAPTURE(head);
    Capture capture(16, head);
    std::uint64_t cursor = 0;
    std::string told;
    for (const char c : text) {
      capture.add(std::string_view(&c, 1));
      const OutputChunk chunk = capture.read(cursor, false);
      told += chunk.text;
      cursor = chunk.next;
    }
    CHECK(told == text);
  }
}

TEST_CASE("Capture tells what a late reader missed") {
  Capture capture(10);
  capture.add("0123456789abcdefghij");
  OutputChunk chunk = capture.read(0, false);
  CHECK(chunk.text == "01234\n... (10 bytes omitted) ...\nfghij");
  CHECK(chunk.missed == 10);
  CHECK(chunk.next == 20);
  chunk = capture.read(7, false);
  CHECK(chunk.missed == 8);
  CHECK(chunk.text == "\n... (8 bytes omitted) ...\nfghij");
  chunk = capture.read(17, false);
  CHECK(chunk.missed == 0);
  CHECK(chunk.text == "hij");
}

TEST_CASE("following a stream by cursor loses nothing while the reader keeps up") {
  support::Random random(7);
  Capture capture(4096);
  std::string all;
  std::string followed;
  std::uint64_t cursor = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string piece(random.below(1500), static_cast<char>('a' + i % 26));
    capture.add(piece);
    all += piece;
    const OutputChunk chunk = capture.read(cursor, false);
    CHECK(chunk.missed == 0);
    followed += chunk.text;
    cursor = chunk.next;
  }
  CHECK(followed == all);
}

TEST_CASE("the last lines of a Capture are those of its text") {
  support::Random random(7);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = 1 + random.below(40);
    const std::size_t head = random.below(3) ? 0 : random.below(size + 1);
    Capture capture(size, head);
    std::string all;
    const std::size_t total = random.below(80);
    while (all.size() < total) {
      std::string piece;
      for (std::size_t i = random.below(9); i > 0; --i) piece += random.below(3) ? 'x' : '\n';
      capture.add(piece);
      all += piece;
    }
    const std::uint64_t cursor = random.below(all.size() + 2);
    const std::size_t most = random.below(6);
    const OutputChunk whole = capture.read(cursor, true);
    const OutputChunk chunk = capture.read(cursor, true, most);
    CAPTURE(all);
    CAPTURE(cursor);
    CAPTURE(most);
    CAPTURE(size);
    CAPTURE(head);
    CAPTURE(whole.text);
    CAPTURE(chunk.text);
    const std::string note =
        chunk.missed ? "\n... (" + std::to_string(chunk.missed) + " bytes omitted) ...\n" : "";
    const std::size_t at = chunk.text.find(note);
    REQUIRE(at != std::string::npos);
    const std::string before = chunk.text.substr(0, at);
    const std::string after = chunk.text.substr(at + note.size());
    CHECK(chunk.next == all.size());
    const std::size_t new_bytes = all.size() - std::min<std::size_t>(cursor, all.size());
    CHECK(before.size() + after.size() + chunk.missed == new_bytes);
    CHECK(all.substr(all.size() - after.size()) == after);
    const std::size_t lines = support::lines_of(before).size() + support::lines_of(after).size();
    CHECK(lines <= most);
    if (whole.missed == chunk.missed) {
      CHECK(whole.text == chunk.text);
    } else if (head == 0 && most > 0) {
      // As many lines as may be, of which the first is whole.
      CHECK(lines == most);
      CHECK(all[all.size() - after.size() - 1] == '\n');
    }
  }
}
