// Output and input, and what Capture keeps of it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <pthread.h>
#include <signal.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Capture;
using codeexec::OutputCounts;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using codeexec::Stream;
using support::child;
using support::describe;
using support::in_other_host;
using support::program;
using support::run_clean;
using support::shell;

// Output and input --------------------------------------------------------------------------------

TEST_CASE("W-17: huge output is counted to the byte and kept at both ends") {
  ProcessOptions options = shell("echo first; head -c 300000000 /dev/zero | tr '\\0' z; echo last");
  options.max_output = 10000;
  const ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(r.out_counts.total_bytes == 300000011);
  CHECK(r.out_counts.dropped_bytes == 300000011 - 10000);
  CHECK(r.out.substr(0, 6) == "first\n");
  CHECK(r.out.substr(r.out.size() - 5) == "last\n");
  CHECK(r.out.find("\n... (truncated, exceeded 10000 bytes: 299990011 bytes omitted) ...\n") ==
        5000);
}

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

TEST_CASE("a lot on one stream before the other does not deadlock") {
  const ProcessResult r = run_clean(shell("head -c 2000000 /dev/zero >&2; echo done"));
  CHECK(r.succeeded());
  CHECK(r.out == "done\n");
  CHECK(r.err_counts.total_bytes == 2000000);
}

TEST_CASE("output around the size of a pipe is complete") {
  for (const int size : {1, 4095, 4096, 4097, 65535, 65536, 65537, 131072}) {
    const ProcessResult r = run_process(child({"flood", "1", std::to_string(size)}));
    CHECK(r.out == std::string(static_cast<std::size_t>(size), 'x'));
  }
}

TEST_CASE("single-byte writes arrive whole and in order") {
  const ProcessResult r = run_process(child({"dribble", "2000"}));
  REQUIRE(r.out.size() == 2000);
  for (std::size_t i = 0; i < 2000; ++i)
    if (r.out[i] != static_cast<char>('a' + i % 26)) FAIL_CHECK("wrong byte at " << i);
}

TEST_CASE("NUL bytes and a missing newline at the end are kept") {
  const ProcessResult r = run_process(shell("printf 'a\\0b'"));
  CHECK(r.out == std::string("a\0b", 3));
}

TEST_CASE("W-16: carriage returns are kept") {
  CHECK(run_process(shell("printf 'a\\rb\\r\\nc'")).out == "a\rb\r\nc");
}

TEST_CASE("W-15: output that is not UTF-8 is replaced and counted, and the status is kept") {
  const ProcessResult r = run_process(shell("printf 'ok\\377\\376\\n'; exit 7"));
  CHECK(r.exit_code == 7);
  CHECK(r.out == "ok\xef\xbf\xbd\xef\xbf\xbd\n");
  CHECK(r.out_counts.invalid_bytes == 2);
  CHECK(r.out_counts.total_bytes == 5);
}

TEST_CASE("merged streams keep the true order") {
  ProcessOptions options = shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
  options.merge_streams = true;
  const ProcessResult r = run_clean(options);
  CHECK(r.out == "1\n2\n3\n4\n");
  CHECK(r.err.empty());
  CHECK(r.err_counts.total_bytes == 0);
}

TEST_CASE("on_output sees the raw bytes of both streams") {
  ProcessOptions options = shell("printf 'a\\377'; printf b >&2");
  std::string out;
  std::string err;
  options.on_output = [&](Stream stream, std::string_view bytes) {
    (stream == Stream::out ? out : err).append(bytes);
  };
  run_process(options);
  CHECK(out == "a\xff");
  CHECK(err == "b");
}

TEST_CASE("a program can open /dev/stdout again") {
  CHECK(run_process(child({"reopen-stdout"})).out == "reopened\n");
}

TEST_CASE("W-10: without input, standard input is at its end at once") {
  const ProcessResult r = run_clean(shell("cat; read x; echo $?"));
  CHECK(r.succeeded());
  CHECK(r.out == "1\n");
}

TEST_CASE("8 MB of input come back without deadlock") {
  ProcessOptions options = program({"cat"});
  options.input.resize(8000000);
  for (std::size_t i = 0; i < options.input.size(); ++i)
    options.input[i] = static_cast<char>('a' + i % 23);
  options.max_output = 16000000;
  const ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(r.out == options.input);
}

TEST_CASE("a program that closes its input early is no error and SIGPIPE does not strike") {
  for (const bool ignored : {false, true}) {
    const std::string problem = in_other_host([&]() -> std::string {
      ::signal(SIGPIPE, ignored ? SIG_IGN : SIG_DFL);
      ProcessOptions options = program({"head", "-c", "3"});
      options.input.assign(4000000, 'q');
      for (int i = 0; i < 20; ++i) {
        const ProcessResult r = run_process(options);
        if (!r.succeeded() || r.out != "qqq") return describe(r);
      }
      // Many times: whether a write meets the closed end is a race.
      for (int i = 0; i < 40; ++i) {
        ProcessOptions closes = i == 0 ? child({"no-input"}) : child({"no-input", "after-a-sip"});
        closes.input.assign(4000000, 'q');
        const ProcessResult r = run_process(closes);
        if (!r.succeeded()) return describe(r);
      }
      sigset_t pending;
      sigpending(&pending);
      return sigismember(&pending, SIGPIPE) == 0 ? "" : "a SIGPIPE is left";
    });
    CAPTURE(ignored);
    CHECK(problem == "");
  }
}

TEST_CASE("a SIGPIPE that was pending before stays pending") {
  const std::string problem = in_other_host([]() -> std::string {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::pthread_kill(::pthread_self(), SIGPIPE);
    ProcessOptions options = child({"no-input", "after-a-sip"});
    options.input.assign(4000000, 'q');
    for (int i = 0; i < 20; ++i)
      if (!run_process(options).succeeded()) return "run failed";
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1 ? "" : "the host's SIGPIPE is gone";
  });
  CHECK(problem == "");
}

TEST_CASE("the whole of a stream that outgrows its buffer is in the spill file") {
  const support::TempDir directory;
  ProcessOptions options = shell("head -c 500000 /dev/urandom | od -x; echo small >&2");
  options.max_output = 20000;
  options.spill_dir = directory.path();
  std::string whole;
  options.on_output = [&](Stream stream, std::string_view bytes) {
    if (stream == Stream::out) whole.append(bytes);
  };
  const ProcessResult r = run_clean(options);
  CHECK(r.out_counts.dropped_bytes > 0);
  REQUIRE(!r.out_file.empty());
  CHECK(r.out_file.substr(0, directory.path().size() + 1) == directory.path() + "/");
  CHECK(support::read_file(r.out_file) == whole);
  CHECK(r.out_counts.file_bytes == whole.size());
  CHECK(r.err_file.empty());
  struct stat status {};
  REQUIRE(::stat(r.out_file.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(r.message.empty());
}

TEST_CASE("a spill file that was cut or could not be made is told") {
  const support::TempDir directory;
  ProcessOptions options = child({"flood", "1", "100000"});
  options.max_output = 1000;
  options.spill_dir = directory.path();
  options.max_spill = 5000;
  ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(support::read_file(r.out_file) == std::string(5000, 'x'));
  CHECK(r.out_counts.file_bytes == 5000);
  CHECK(r.out_counts.total_bytes == 100000);
  CHECK(r.message.find("max_spill") != std::string::npos);

  options.spill_dir = directory / "missing";
  r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(r.out_file.empty());
  CHECK(r.message.find("No such file") != std::string::npos);

  options = child({"flood", "1", "1000"});
  options.max_output = 1000;
  options.spill_dir = directory.path();
  CHECK(run_clean(options).out_file.empty());
}

// Capture -----------------------------------------------------------------------------------------

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
  Capture::Chunk chunk = capture.read(0, false);
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
      const Capture::Chunk chunk = capture.read(cursor, false);
      told += chunk.text;
      cursor = chunk.next;
    }
    CHECK(told == text);
  }
}

TEST_CASE("Capture tells what a late reader missed") {
  Capture capture(10);
  capture.add("0123456789abcdefghij");
  Capture::Chunk chunk = capture.read(0, false);
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
    const Capture::Chunk chunk = capture.read(cursor, false);
    CHECK(chunk.missed == 0);
    followed += chunk.text;
    cursor = chunk.next;
  }
  CHECK(followed == all);
}
