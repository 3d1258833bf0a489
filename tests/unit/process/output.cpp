// Output and input.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <pthread.h>
#include <signal.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

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
