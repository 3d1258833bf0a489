// Input and output of commands.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::Result;
using codeexec::SandboxMode;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::begins;
using support::child;
using support::dies;
using support::ends;
using support::has;
using support::in;
using support::make;
using support::output_of;
using support::Stopwatch;

TEST_CASE("W-10: standard input is empty, or what was given") {
  const LocalExecutor here = make({});
  CHECK(output_of(here, "cat; read x || echo end") == "end\n");
  Command command = Command::shell("head -c 3; echo; cat");
  command.input = "onetwo";
  CHECK(output_of(here, command) == "one\ntwo");
  command.script = "wc -c";
  command.input = std::string(3000000, 'x');
  CHECK(std::atoi(output_of(here, command).c_str()) == 3000000);
}

TEST_CASE("run() does not wait for input that nobody can write") {
  const LocalExecutor here = make({});
  Command command = Command::shell("cat; echo end");
  command.keep_input_open = true;
  const Stopwatch watch;
  CHECK(output_of(here, command) == "end\n");
  command.input = "given ";
  CHECK(output_of(here, command) == "given end\n");
  CHECK(watch.soon());
}

TEST_CASE("merged streams are in order") {
  const LocalExecutor here = make({});
  Command command = Command::shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
  command.merge_streams = true;
  const Result r = here.run(command);
  CHECK(r.out == "1\n2\n3\n4\n");
  CHECK(r.err.empty());
}

TEST_CASE("W-17: of long output the head and the tail are kept, and the counts are exact") {
  LocalOptions options;
  options.max_output = 1024;
  const LocalExecutor here = make(options);
  const Result r = here.run("seq 1 20000; seq 1 30000 >&2");
  CHECK(r.succeeded());
  CHECK(r.out_counts.total_bytes == 108894);
  CHECK(r.err_counts.total_bytes == 168894);
  CHECK(begins(r.out, "1\n2\n3\n"));
  CHECK(ends(r.out, "\n19999\n20000\n"));
  CHECK(begins(r.err, "1\n2\n3\n"));
  CHECK(ends(r.err, "\n29999\n30000\n"));
  CHECK(r.out_counts.dropped_bytes == 108894 - 1024);
  CHECK(has(r.out, "\n... (truncated, exceeded 1024 bytes: 107870 bytes omitted) ...\n"));
  CHECK(has(r.summary(), "(shortened)"));
  CHECK(r.out_file.empty());
  const Result fits = here.run("seq 1 100");
  CHECK(fits.out_counts.dropped_bytes == 0);
  CHECK(!has(fits.out, "truncated"));
}

TEST_CASE("with spill_dir the whole of a long stream is in a file") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.max_output = 1024;
  {
    const support::DirectoryGuard moved(place.path());
    place.directory("spill");
    options.spill_dir = "spill";
    const LocalExecutor here = make(options);
    const Result small = here.run("seq 1 100");
    CHECK(small.out_file.empty());
    const support::DirectoryGuard away("/");
    const Result r = here.run("seq 1 20000; seq 1 20000 >&2");
    REQUIRE(begins(r.out_file, place / "spill/codeexec-"));
    REQUIRE(begins(r.err_file, place / "spill/codeexec-"));
    const std::string whole = support::read_file(r.out_file);
    CHECK(whole.size() == 108894);
    CHECK(ends(whole, "\n19999\n20000\n"));
    CHECK(has(whole, "\n10000\n"));
    CHECK(support::read_file(r.err_file) == whole);
    CHECK(r.out_counts.file_bytes == 108894);
    struct stat status {};
    REQUIRE(::stat(r.out_file.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
}

TEST_CASE("a command cannot lead the whole of a stream elsewhere") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.max_output = 1024;
  options.spill_dir = place.directory("spill");
  const std::string other = place.directory("other");
  const LocalExecutor here = make(options);
  const Result r = here.run("mv spill moved; ln -s " + other + " spill; seq 1 20000");
  CHECK(r.out_counts.file_bytes == 108894);
  CHECK(support::names_in(other).empty());
  CHECK(support::names_in(place / "moved").size() == 1);

  // By hand, as run_process() takes it.
  codeexec::ProcessOptions process;
  process.argv = {"/bin/sh", "-c", "mv moved spilled; ln -s " + other + " moved; seq 1 20000"};
  process.environment = {"PATH=/usr/bin:/bin"};
  process.work_dir = place.path();
  process.max_output = 1024;
  process.spill_dir = place / "moved";
  CHECK(codeexec::run_process(process).out_counts.file_bytes == 108894);
  CHECK(support::names_in(other).empty());
}

TEST_CASE("a sandbox reads the spill_dir and does not write to it") {
  const support::TempDir place;
  const support::TempDir spill;
  LocalOptions options = in(place);
  options.max_output = 1024;
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.spill_dir = place.directory("spill");
  const auto refused = LocalExecutor::create(options);
  REQUIRE(!refused);
  CHECK(has(refused.error().message, "spill_dir: "));
  CHECK(has(refused.error().message, "lies where commands may write"));

  options.spill_dir.clear();
  options.audit_file = place / "spill/audit";
  const auto unsafe = LocalExecutor::create(options);
  REQUIRE(!unsafe);
  CHECK(has(unsafe.error().message, "audit_file: "));
  options.audit_file.clear();

  options.spill_dir = spill.path();
  const LocalExecutor here = make(options);
  const Result r = here.run("seq 1 20000");
  REQUIRE(!r.out_file.empty());
  CHECK(here.file_rules().permission(r.out_file) == codeexec::Permission::read);
  CHECK(output_of(here, "sed -n 10000p " + r.out_file) == "10000\n");
  const auto& enforced = here.sandbox_report().enforced;
  if (std::find(enforced.begin(), enforced.end(), "filesystem") == enforced.end()) return;
  CHECK(!here.run("echo more >> " + r.out_file).succeeded());
  CHECK(!here.run("echo new > " + spill / "new").succeeded());
  CHECK(support::names_in(spill.path()).size() == 1);
}

TEST_CASE("the files of a private spill directory are bounded, each and together") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.max_output = 1024;
  options.private_spill_dir = true;
  options.max_spill = 50000;
  options.max_spill_total = 120000;
  std::string directory;
  {
    const LocalExecutor here = make(options);
    directory = here.options().spill_dir;
    const Result first = here.run("seq 1 20000");
    CHECK(first.out_counts.file_bytes == 50000);
    CHECK(has(first.message, "is not complete: max_spill is 50000 bytes"));
    const Result second = here.run("seq 1 20000");
    CHECK(second.notes.empty());
    CHECK(support::exists(first.out_file));
    const Result third = here.run("seq 1 20000");
    REQUIRE(third.notes.size() == 1);
    CHECK(third.notes[0] ==
          "1 of the oldest files of long output were removed: all together may have 120000 bytes");
    CHECK(!support::exists(first.out_file));
    CHECK(support::exists(second.out_file));
    CHECK(support::exists(third.out_file));
    Command less = Command::shell("seq 1 100");
    CHECK(here.run(less).out_file.empty());
    less.max_output = 100;
    const Result cut = here.run(less);
    CHECK(cut.out_counts.dropped_bytes == 192);
    CHECK(cut.out_counts.file_bytes == 292);
  }
  CHECK(!support::exists(directory));
}

TEST_CASE("private spill directories are made while others look for what was left") {
  LocalOptions options;
  options.private_spill_dir = true;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k)
        if (!LocalExecutor::create(options)) ++failed;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

TEST_CASE("with roots and no sandbox, tools read the spill_dir") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.roots = {{place.directory("work"), codeexec::Permission::write}};
  options.workspace = options.roots[0].path;
  options.spill_dir = place.directory("spill");
  const LocalExecutor here = make(options);
  CHECK(here.file_rules().permission(place / "spill/x") == codeexec::Permission::read);
  CHECK(here.file_rules().permission(place / "x") == codeexec::Permission::none);
  CHECK(here.paths().permission(place / "spill/x") == codeexec::Permission::none);
}

TEST_CASE("W-15 W-16: output is repaired where it is not UTF-8, and else left as it is") {
  const LocalExecutor here = make({});
  const Result r = here.run("printf 'ok\\377\\n'; exit 7");
  CHECK(r.exit_code == 7);
  CHECK(r.out == "ok\xEF\xBF\xBD\n");
  CHECK(r.out_counts.invalid_bytes == 1);
  CHECK(r.out_counts.total_bytes == 4);
  CHECK(output_of(here, "printf 'a\\rb\\r\\nc'") == "a\rb\r\nc");
}

TEST_CASE("W-13: a background job neither delays the result nor outlives it") {
  const LocalExecutor here = make({});
  const Stopwatch watch;
  const Result r = here.run("sleep 300 & echo $!");
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 0);
  CHECK(dies(std::atoi(r.out.c_str())));
  CHECK(watch.soon());
}

TEST_CASE("a background job that was ended is told") {
  if (!support::has_supervisor()) return;
  const LocalExecutor here = make({});
  const auto notes_of = [&](const std::string& script) {
    std::string notes;
    for (const std::string& note : here.run(script).notes) notes += note + "|";
    return notes;
  };
  CHECK(notes_of("sleep 300 &") == "1 process that the command left behind was ended|");
  CHECK(notes_of("nohup sleep 300 > /dev/null 2>&1 & sleep 300 & exit 3") ==
        "2 processes that the command left behind were ended|");
  CHECK(notes_of("sleep 300 & kill $!; wait") == "");
  Command command = Command::shell("sleep 300 & sleep 300");
  command.timeout = std::chrono::milliseconds(100);
  CHECK(here.run(command).notes.empty());
}

TEST_CASE("W-09 W-33: nothing of a command outlives it, or a host that is killed") {
  if (!support::has_supervisor()) return;
  const std::string leave = "setsid sleep 300 > /dev/null 2>&1 < /dev/null & echo $!; ";
  for (const SandboxMode mode : {SandboxMode::off, SandboxMode::best_effort}) {
    CAPTURE(name(mode));
    LocalOptions options;
    options.sandbox.mode = mode;
    const LocalExecutor here = make(options);
    CHECK(dies(std::atoi(output_of(here, Command::shell(leave + "sleep 0.1")).c_str())));

    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    std::fflush(nullptr);
    const pid_t host = ::fork();
    if (host == 0) {
      Command command = Command::shell(leave + "sleep 300");
      command.on_output = [&](Stream, std::string_view bytes) {
        (void)!::write(ends[1], bytes.data(), bytes.size());
      };
      (void)here.run(command);
      ::_exit(0);
    }
    char text[32] = {};
    CHECK(::read(ends[0], text, sizeof text - 1) > 0);
    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
    CHECK(dies(std::atoi(text)));
    for (const int end : ends) ::close(end);
  }
}

TEST_CASE("of long output only the end is kept where that is wanted") {
  LocalOptions options;
  options.max_output = 1024;
  const LocalExecutor here = make(options);
  Command command = Command::shell("printf 'x%.0s' $(seq 5000); printf end; echo err >&2");
  command.keep_end_only = true;
  for (const Result& r : {here.run(command), here.start(command).wait()}) {
    CHECK(r.out == "\n... (truncated, exceeded 1024 bytes: 3979 bytes omitted) ...\n" +
                       std::string(1021, 'x') + "end");
    CHECK(r.out_counts.dropped_bytes == 3979);
    CHECK(r.err == "err\n");
  }
}

TEST_CASE("live output and signs of life reach the caller of run() in its own thread") {
  const LocalExecutor here = make({});
  const std::thread::id caller = std::this_thread::get_id();
  bool own_thread = true;
  std::string out;
  std::string err;
  int beats = 0;
  Command command = Command::program({child, "close-early"});
  command.heartbeat = milliseconds(20);
  command.on_heartbeat = [&] {
    ++beats;
    own_thread = own_thread && std::this_thread::get_id() == caller;
  };
  CHECK(here.run(command).exit_code == 4);
  CHECK(beats > 0);
  Command speaker = Command::shell("printf 'a\\377'; printf b >&2");
  speaker.on_output = [&](Stream stream, std::string_view bytes) {
    (stream == Stream::out ? out : err) += bytes;
    own_thread = own_thread && std::this_thread::get_id() == caller;
  };
  CHECK(here.run(speaker).succeeded());
  CHECK(out == "a\xff");
  CHECK(err == "b");
  CHECK(own_thread);
}
