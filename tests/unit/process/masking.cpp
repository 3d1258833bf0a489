// Secrets are masked in every stream, wherever it is cut.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using codeexec::Stream;
using support::first_number;
using support::run_clean;
using support::shell;
using support::without_supervisor;

namespace {

// A program that has printed a part of the secret waits for a line here before it prints the rest.
class Gate {
 public:
  Gate() : path_(directory_ / "gate") {
    if (::mkfifo(path_.c_str(), 0600) != 0) support::fail("mkfifo", path_);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0) support::fail("open", path_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { ::close(fd_); }
  std::string wait() const { return "read line < " + path_ + "; "; }  // for a script
  void open() const {
    if (::write(fd_, "go\n", 3) != 3) support::fail("write", path_);
  }

 private:
  support::TempDir directory_ = {};
  std::string path_;
  int fd_ = -1;
};

}  // namespace

TEST_CASE("a secret that comes in two pieces is masked in both streams and for the listener") {
  for (const bool merged : {false, true}) {
    CAPTURE(merged);
    const Gate gate;
    ProcessOptions options =
        shell("printf 'out: hun'; " + gate.wait() + "printf 'ter2 in'; " +
              "printf 'err: correct' >&2; " + gate.wait() + "printf ' horse in hunter' >&2");
    options.secrets = {"hunter2", "correct horse"};
    options.merge_streams = merged;
    std::string heard[2];
    options.on_output = [&](Stream stream, std::string_view bytes) {
      std::string& text = heard[stream == Stream::out ? 0 : 1];
      text += bytes;
      if (bytes == "out: " || support::has(bytes, "err: ")) gate.open();
    };
    const ProcessResult r = run_clean(options);
    CHECK(r.succeeded());
    if (merged) {
      CHECK(r.out == "out: [redacted] inerr: [redacted] in hunter");
      CHECK(r.out_counts.redactions == 2);
    } else {
      CHECK(r.out == "out: [redacted] in");
      CHECK(r.err == "err: [redacted] in hunter");
      CHECK(r.out_counts.redactions == 1);
      CHECK(r.err_counts.redactions == 1);
      CHECK(r.err_counts.total_bytes == r.err.size());
    }
    CHECK(heard[0] == r.out);
    CHECK(heard[1] == r.err);
  }
}

TEST_CASE(
    "what is read of a running program is masked, and the end of a stream frees what is held") {
  ProcessOptions options =
      shell("printf 'a hun'; read line; printf 'ter2 b hunt'; read line; exec >&-; read line");
  options.secrets = {"hunter2"};
  options.keep_input_open = true;
  auto process = Process::start(options);
  REQUIRE(process);
  const auto wait_for = [&](const std::string& expected) {
    std::string text;
    while ((text = process->read(Stream::out, 0).text).size() < expected.size() && !process->done())
      std::this_thread::yield();
    CHECK(text == expected);
  };
  wait_for("a ");
  CHECK(process->write("go\n"));
  wait_for("a [redacted] b ");
  CHECK(process->write("go\n"));
  wait_for("a [redacted] b hunt");
  CHECK(!process->done());
  process->close_input();
  CHECK(process->wait().out == "a [redacted] b hunt");
  CHECK(process->wait().out_counts.redactions == 1);
}

TEST_CASE("what was held back is not lost when somebody still holds the pipe, or at a cancel") {
  ProcessOptions options = shell("sleep 300 2>&- & echo $! >&2; printf hunt");
  options.secrets = {"hunter2"};
  without_supervisor(options);  // which would kill it at once
  options.keep_background = true;
  std::string heard;
  options.on_output = [&](Stream stream, std::string_view bytes) {
    if (stream == Stream::out) heard += bytes;
  };
  ProcessResult r = run_clean(options);
  CHECK(r.pipe_held);
  CHECK(r.out == "hunt");
  CHECK(heard == "hunt");
  CHECK(::kill(first_number(r.err), SIGKILL) == 0);

  options = shell("printf 'go hunt'; exec sleep 300");
  options.secrets = {"hunter2"};
  options.cancel.emplace();
  options.on_output = [&](Stream, std::string_view bytes) {
    if (bytes == "go ") options.cancel->cancel();
  };
  r = run_process(options);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.out == "go hunt");
}

TEST_CASE("a secret at the border of two reads is masked") {
  for (const std::size_t before : {65530u, 65535u, 65536u, 131070u}) {
    ProcessOptions options = shell("cat");
    options.input = std::string(before, 'x') + "hunter2";
    options.secrets = {"hunter2"};
    const ProcessResult r = run_process(options);
    CHECK((r.out == std::string(before, 'x') + "[redacted]"));
  }
}

TEST_CASE("secrets that are too short mask nothing, and too many start nothing") {
  ProcessOptions options = shell("echo abc abc");
  options.secrets = {"", "abc", "a", "\n\n\n\n"};
  CHECK(run_process(options).out == "abc abc\n");
  options.secrets = {std::string(std::size_t{1} << 20, 'x')};
  CHECK(run_process(options).out == "abc abc\n");
  options.secrets.push_back("y");
  const ProcessResult r = run_process(options);
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.step == "setup");
  CHECK(r.message == "cannot start '/bin/sh': secrets has more than 1048576 bytes");
}
