// What a program gets, and how a start fails.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>

#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using support::child;
using support::describe;
using support::has_zombie;
using support::in_other_host;
using support::program;
using support::run_clean;
using support::same_mask;

// What the program gets ---------------------------------------------------------------------------

TEST_CASE("the environment is exactly what was given, and a mark that differs for each run") {
  support::EnvironmentGuard guard("CODEEXEC_SECRET", "hidden");
  ProcessOptions options = program({"/usr/bin/env"});
  options.environment = {"A=1", "CODEEXEC_RUN_ID=forged", "B=two words"};
  const std::string given = "A=1\nB=two words\nCODEEXEC_RUN_ID=";
  const std::string first = run_process(options).out;
  const std::string second = run_process(options).out;
  for (const std::string& out : {first, second}) {
    CHECK(out.substr(0, given.size()) == given);
    CHECK(out.find("forged") == out.npos);
    CHECK(out.find('\n', given.size()) == out.size() - 1);
  }
  CHECK(first != second);
}

TEST_CASE("the program runs in work_dir, and the host stays where it is") {
  const support::TempDir directory;
  ProcessOptions options = program({"pwd"});
  options.work_dir = directory.path();
  CHECK(run_process(options).out == directory.path() + "\n");

  const int fd = ::open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  options.work_dir_fd = fd;
  CHECK(run_process(options).out == "/usr\n");
  CHECK(support::descriptor_is_open(fd));
  ::close(fd);
}

TEST_CASE("the program has a session of its own, no terminal and no core dumps") {
  const std::string problem = in_other_host([]() -> std::string {
    rlimit core{};
    ::getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = core.rlim_max = std::max<rlim_t>(core.rlim_max, 4096);
    ::setrlimit(RLIMIT_CORE, &core);
    const ProcessResult r = run_process(child({"session"}));
    return r.out == "session leader\ngroup leader\nno terminal\nno core\n" ? "" : describe(r);
  });
  CHECK(problem == "");
}

TEST_CASE("no descriptor of the host reaches the program") {
  const int leaky = ::fcntl(1, F_DUPFD, 77);  // not CLOEXEC
  REQUIRE(leaky >= 77);
  const ProcessResult r = run_process(child({"descriptors"}));
  ::close(leaky);
  CHECK(r.out == "0 1 2 \n");
}

TEST_CASE("another user's program may open its streams by name") {
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: only root can start a program as another user");
    return;
  }
  for (const bool supervised : {false, true}) {
    CAPTURE(supervised);
    ProcessOptions options =
        program({"sh", "-c", "cat /dev/stdin; echo out > /dev/stdout; echo err > /dev/stderr"});
    options.uid = options.gid = 12345;
    options.supervised = supervised;
    options.input = "in\n";
    const ProcessResult r = run_process(options);
    CHECK(r.out == "in\nout\n");
    CHECK(r.err == "err\n");
    options.merge_streams = true;
    CHECK(run_process(options).out == "in\nout\nerr\n");
  }
  // What is not its own stays as it is.
  struct stat status {};
  CHECK(::stat("/dev/null", &status) == 0);
  CHECK(status.st_uid == 0);
}

TEST_CASE("pass_fd becomes descriptor 3 and nothing else") {
  const support::TempDir directory;
  const std::string path = directory.file("passed", "hello");
  for (const bool is_third : {true, false}) {
    const std::string problem = in_other_host([&]() -> std::string {
      const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (is_third && opened > 3) return "";  // that number is the sandbox's
      const int number = is_third ? ::dup2(opened, 3) : ::fcntl(opened, F_DUPFD, 60);
      ::fcntl(number, F_SETFD, FD_CLOEXEC);
      if (opened != number) ::close(opened);
      ProcessOptions options = child({"copy", "3"});
      options.pass_fd = number;
      const ProcessResult r = run_process(options);
      if (r.out != "hello") return describe(r);
      ProcessOptions list = child({"descriptors"});
      list.pass_fd = number;
      const ProcessResult all = run_process(list);
      return all.out == "0 1 2 3 \n" ? "" : describe(all);
    });
    CAPTURE(is_third);
    CHECK(problem == "");
  }
}

TEST_CASE("PATH is searched in the program's environment") {
  const support::TempDir directory;
  directory.file("tool", "#!/bin/sh\necho mine\n", 0755);
  directory.file("blocked/tool", "#!/bin/sh\necho blocked\n", 0644);
  ProcessOptions options = program({"tool"});
  options.environment = {"PATH=/nowhere:" + (directory / "blocked") + ":" + directory.path()};
  CHECK(run_process(options).out == "mine\n");
  options.environment = {};  // /bin:/usr/bin
  options.argv = {"echo", "found"};
  CHECK(run_process(options).out == "found\n");
}

TEST_CASE("a script without a first line is given to sh") {
  const support::TempDir directory;
  ProcessOptions options = program({directory.file("script", "echo \"$0 $1\"\n", 0755), "arg"});
  CHECK(run_process(options).out == (directory / "script") + " arg\n");
}

// Failed starts -----------------------------------------------------------------------------------

TEST_CASE("every failed start tells errno, step and a sentence") {
  const support::TempDir directory;
  const std::string plain = directory.file("plain", "text", 0644);
  const std::string orphan = directory.file("orphan", "#!/no/such/interpreter\n", 0755);
  struct Case {
    const char* what;
    std::vector<std::string> argv;
    std::string work_dir;
    int error;
    const char* step;
    std::string message;
  };
  const Case cases[] = {
      {"missing in PATH",
       {"nosuch"},
       "",
       ENOENT,
       "exec",
       "cannot start 'nosuch': No such file or directory (exec; looked in PATH=/usr/bin:/bin)"},
      {"missing",
       {"/no/such"},
       "",
       ENOENT,
       "exec",
       "cannot start '/no/such': No such file or directory (exec)"},
      {"directory", {"/etc"}, "", EACCES, "exec", "cannot start '/etc': Permission denied (exec)"},
      {"not executable",
       {plain},
       "",
       EACCES,
       "exec",
       "cannot start '" + plain + "': Permission denied (exec)"},
      {"interpreter",
       {orphan},
       "",
       ENOENT,
       "exec",
       "cannot start '" + orphan +
           "': No such file or directory (exec; its interpreter "
           "'/no/such/interpreter' is missing)"},
      {"path through a file", {plain + "/x"}, "", ENOENT, "exec", "cannot start "},
      {"empty name", {""}, "", ENOENT, "exec", "cannot start '': No such file or directory"},
      {"argument too long",
       {"true", std::string(3 << 20, 'a')},
       "",
       E2BIG,
       "exec",
       "cannot start 'true': Argument list too long (exec"},
      {"work_dir missing",
       {"true"},
       "/no/dir",
       ENOENT,
       "work_dir",
       "cannot enter work_dir '/no/dir': No such file or directory"},
      {"work_dir a file",
       {"true"},
       plain,
       ENOTDIR,
       "work_dir",
       "cannot enter work_dir '" + plain + "': Not a directory"},
      {"no argv", {}, "", EINVAL, "setup", "argv is empty"},
      {"NUL in argv",
       {"true", std::string("a\0b", 3)},
       "",
       EINVAL,
       "setup",
       "cannot start 'true': argv has a NUL byte"},
      {"NUL in work_dir",
       {"true"},
       std::string("/\0x", 3),
       EINVAL,
       "setup",
       "cannot start 'true': work_dir has a NUL byte"},
  };
  for (const Case& expected : cases) {
    CAPTURE(expected.what);
    ProcessOptions options = program(expected.argv);
    options.work_dir = expected.work_dir;
    const ProcessResult r = run_clean(options);
    CHECK(r.outcome == Outcome::not_started);
    CHECK(r.system_error == expected.error);
    CHECK(r.step == expected.step);
    CHECK(r.message.substr(0, expected.message.size()) == expected.message);
    CHECK(r.exit_code == -1);
    CHECK(r.pid == -1);

    ProcessResult failure;
    const auto started = Process::start(options, {}, &failure);
    REQUIRE(!started);
    CHECK(started.error().system_error == expected.error);
    CHECK(started.error().message == r.message);
    CHECK(failure.step == expected.step);
  }
}

TEST_CASE("NUL bytes in the environment keep a program from being started") {
  ProcessOptions options = program({"true"});
  options.environment.push_back(std::string("A=\0", 3));
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.step == "setup");
  CHECK(r.message.find("environment") != std::string::npos);
}

TEST_CASE("a bad work_dir_fd and a bad pass_fd are told apart") {
  ProcessOptions options = program({"true"});
  options.work_dir_fd = 4000;
  CHECK(run_clean(options).step == "work_dir");
  options.work_dir_fd = -1;
  options.pass_fd = 4000;
  const ProcessResult r = run_clean(options);
  CHECK(r.step == "pass_fd");
  CHECK(r.system_error == EBADF);
}

TEST_CASE("a program that is still open for writing is tried again for a moment") {
  const support::TempDir directory;
  const std::string path = directory.file("busy", support::read_file("/bin/true"), 0755);
  const auto open_for_writing = [&] {
    const int writer = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(writer >= 0);
    return writer;
  };
  int writer = open_for_writing();
  const ProcessResult busy = run_clean(program({path}));
  CHECK(busy.outcome == Outcome::not_started);
  CHECK(busy.system_error == ETXTBSY);
  ::close(writer);
  // The first try has failed when the kernel closes the file that it has opened. The writer closes
  // it then. Where that comes too late for the last try, all of it is done again.
  const int events = ::inotify_init1(IN_CLOEXEC);
  REQUIRE(events >= 0);
  ProcessResult r;
  const support::Stopwatch watch;
  do {
    writer = open_for_writing();
    const int watched = ::inotify_add_watch(events, path.c_str(), IN_CLOSE_NOWRITE);
    REQUIRE(watched >= 0);
    std::thread closer([&] {
      pollfd first_try = {events, POLLIN, 0};
      CHECK(::poll(&first_try, 1, static_cast<int>(support::safety.count()) * 1000) == 1);
      ::close(writer);
    });
    r = run_process(program({path}));
    closer.join();
    REQUIRE(::inotify_rm_watch(events, watched) == 0);
    char seen[4096];
    REQUIRE(::read(events, seen, sizeof seen) > 0);
  } while (r.system_error == ETXTBSY && watch.soon());
  ::close(events);
  CHECK_MESSAGE(r.succeeded(), describe(r));
}

TEST_CASE("running out of descriptors at any point is told and leaks none") {
  const std::string problem = in_other_host([]() -> std::string {
    int failures = 0;
    for (int limit = 3; limit < 20; ++limit) {
      const rlimit few = {static_cast<rlim_t>(limit), 4096};
      ::setrlimit(RLIMIT_NOFILE, &few);
      const int before = support::count_leftovers();
      ProcessOptions options = program({"true"});
      options.input = "x";
      const ProcessResult r = run_process(options);
      if (support::count_leftovers() != before)
        return "leak with a limit of " + std::to_string(limit);
      if (has_zombie()) return "zombie";
      if (r.succeeded()) continue;
      ++failures;
      if (r.outcome != Outcome::not_started || r.message.empty()) return describe(r);
      if (r.system_error != EMFILE) return describe(r);
    }
    return failures >= 4 ? "" : "only " + std::to_string(failures) + " failures";
  });
  CHECK(problem == "");
}

TEST_CASE("running out of processes is told, and the signal mask is as before") {
  if (::geteuid() == 0) {
    const std::string problem = in_other_host([]() -> std::string {
      const rlimit none = {1, 1};
      if (::setrlimit(RLIMIT_NPROC, &none) != 0 || ::setuid(65534) != 0) return "";
      sigset_t before;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
      const ProcessResult r = run_process(program({"true"}));
      sigset_t after;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
      if (!same_mask(before, after)) return "mask changed";
      if (r.outcome != Outcome::not_started) return describe(r);
      if (r.system_error != EAGAIN || r.step != "start") return describe(r);
      return "";
    });
    CHECK(problem == "");
  } else {
    MESSAGE("SKIPPED: lowering RLIMIT_NPROC to nothing needs a user without processes (root)");
  }
}
