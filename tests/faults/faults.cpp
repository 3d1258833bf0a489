// Every system call of the library made to fail, one at a time:
//   codeexec-test-faults [--all [--every N]] [--jobs N] [--told] [SCENARIO[:WHO:CALL[:NTH...]]]...
// A scenario is a use of the library. It runs once to learn which calls it makes, and then again in
// a fresh process for each fault. By default that is the first and the last call of a kind by each
// of host, child and grandchild (see Who); with --all it is every call with every errno it may
// give, or every Nth of these. What must hold each time:
//   - the result is as without the fault, or says what failed, and nothing is called a success that
//     is none;
//   - it does not hang, crash or throw;
//   - no descriptor, thread, process, zombie, file or cgroup is left, and the signal mask is as it
//     was;
//   - the same again in the same process gives the right result.
// Prints a line for each scenario and each failure; --told also what was said of each fault. Exit
// status 1 after a failure, 77 where processes cannot be traced.
#if defined(__linux__) && defined(__x86_64__)

#include "codeexec.hpp"

#include <grp.h>
#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "../helpers/fake_engine.hpp"
#include "../helpers/support.hpp"
#include "tracer.hpp"

namespace {

using codeexec::Expected;
using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Result;
using faults::Fault;
using faults::Kind;
using faults::Region;
using faults::Trace;
using faults::Who;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::has;

// What a scenario found out.
class Report {
 public:
  explicit Report(int error) : error_(error) {}

  bool is_fault(int error) const { return error_ == error; }
  void problem(const std::string& text) { problems_.push_back(text); }
  void right() { told_ = "no difference"; }
  // A failure was told with these words.
  void told(const std::string& how, const std::string& message, int system_error) {
    told_ = how + ": " + message;
    if (message.empty()) problem(how + " without a message");
    if (!names_error(message, system_error)) problem("the errno is not told: " + told_);
    if (has(message, "\n")) problem("the message has more than a line: " + told_);
  }
  void told(const std::string& how, const codeexec::Error& error) {
    told(how, error.message, error.system_error);
  }

  // Of a program, and of a command.
  void judge(const ProcessResult& r, bool as_without) { judge(r, as_without, r.message); }
  void judge(const Result& r, bool as_without) {
    std::string words = r.message;
    for (const std::string& note : r.notes) words += (words.empty() ? "" : "; ") + note;
    if (r.sandbox)
      for (const std::string& missing : r.sandbox->missing)
        words += (words.empty() ? "missing: " : "; missing: ") + missing;
    judge(r, as_without, words);
  }
  template <class T>
  bool judge(const Expected<T>& value, const char* what) {
    if (value) return true;
    told(what, value.error());
    return false;
  }

  const std::string& told() const { return told_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  // The errno, or what it means for what was asked.
  bool names_error(const std::string& message, int system_error) const {
    if (system_error == error_ || has(message, std::strerror(error_))) return true;
    for (const char* meaning :
         {"shell must be the path of a program", "a trial got around it",
          "/proc has no lists of children here", "its exit status was lost",
          "there is no cgroup for it",
          // pthread_create() has this errno only.
          "thread: Resource temporarily unavailable",
          "cannot start the thread for processes: Resource temporarily unavailable"})
      if (has(message, meaning)) return true;
    return false;
  }
  void judge(const ProcessResult& r, bool as_without, const std::string& words) {
    if (as_without) {
      right();
      if (!words.empty()) told_ += " but: " + words;
      return;
    }
    if (r.outcome == Outcome::not_started) {
      told("not started", words, r.system_error);
      if (r.step.empty()) problem("a start that failed names no step");
      if (!r.out.empty() || !r.err.empty()) problem("what was not started has output");
      if (r.exit_code != -1 || r.signal != 0) problem("what was not started has a status");
      return;
    }
    const std::string how = std::string(name(r.outcome)) + " " + std::to_string(r.exit_code) +
                            " with " + std::to_string(r.out.size()) + "+" +
                            std::to_string(r.err.size()) + " bytes";
    told_ = how + ": " + words;
    if (words.empty()) problem("wrong without a word: " + how);
  }

  int error_;
  std::string told_ = {};
  std::vector<std::string> problems_ = {};
};

// Directories of a run, which it may fill.
class Place {
 public:
  explicit Place(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string workspace() const { return path_ + "/workspace"; }
  std::string operator/(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

template <class Body>
auto in_region(Body body) {
  const Region region;
  return body();
}

ProcessOptions program(const Place& place, std::vector<std::string> argv) {
  ProcessOptions options;
  options.argv = std::move(argv);
  options.environment = {"PATH=/nonexistent:/usr/local/bin:/usr/bin:/bin"};
  options.work_dir = place.workspace();
  options.timeout = seconds(10);
  return options;
}

ProcessOptions script(const Place& place, const std::string& text) {
  return program(place, {"sh", "-c", text});
}

ProcessResult run_in_region(const ProcessOptions& options) {
  return in_region([&] { return codeexec::run_process(options); });
}

bool exited(const ProcessResult& r, int code, const std::string& out, const std::string& err = {}) {
  return r.outcome == Outcome::exited && r.exit_code == code && r.out == out && r.err == err;
}

// Scenarios ---------------------------------------------------------------------------------------

void plain(Place& place, Report& report) {
  const ProcessResult r = run_in_region(script(place, "echo out; echo err >&2; exit 3"));
  report.judge(r, exited(r, 3, "out\n", "err\n"));
}

// Descriptors for the directory and for the program, one stream for both, a script without #!.
void handles(Place& place, Report& report) {
  support::write_file(place / "program", "echo out; echo err >&2; read line <&3; echo $line", 0755);
  support::write_file(place / "passed", "given\n");
  const int folder = ::open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int passed = ::open((place / "passed").c_str(), O_RDONLY | O_CLOEXEC);
  ProcessOptions options = program(place, {"./program"});
  options.work_dir_fd = folder;
  options.pass_fd = passed;
  options.merge_streams = true;
  const ProcessResult r = run_in_region(options);
  ::close(folder);
  ::close(passed);
  ::unlink((place / "program").c_str());
  ::unlink((place / "passed").c_str());
  report.judge(r, exited(r, 0, "out\nerr\ngiven\n"));
}

void input(Place& place, Report& report) {
  ProcessOptions options = program(place, {"cat"});
  options.input = std::string(200000, 'i') + "end";
  const ProcessResult r = run_in_region(options);
  report.judge(r, exited(r, 0, options.input));
}

void timeout(Place& place, Report& report) {
  ProcessOptions options =
      script(place, "trap '' TERM; echo ready; sleep 1000 & setsid sleep 1000 & wait; sleep 1000");
  options.timeout = milliseconds(60);
  options.kill_grace = milliseconds(10);
  const ProcessResult r = run_in_region(options);
  const bool printed = r.out.empty() || r.out == "ready\n";
  report.judge(r, r.outcome == Outcome::timed_out && printed && r.message.empty());
}

void cancel(Place& place, Report& report) {
  std::mutex mutex;
  std::condition_variable event;
  bool ready = false;
  ProcessOptions options = script(place, "echo ready; exec sleep 1000");
  options.kill_grace = milliseconds(10);
  options.cancel.emplace();
  options.on_output = [&](codeexec::Stream, std::string_view) {
    const std::lock_guard<std::mutex> lock(mutex);
    ready = true;
    event.notify_all();
  };
  std::thread canceller([&] {
    std::unique_lock<std::mutex> lock(mutex);
    event.wait(lock, [&] { return ready; });
    lock.unlock();
    options.cancel->cancel();
  });
  const ProcessResult r = in_region([&] {
    ProcessResult result = codeexec::run_process(options);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      ready = true;
    }
    event.notify_all();
    canceller.join();
    options.cancel.reset();
    return result;
  });
  report.judge(r, r.outcome == Outcome::cancelled && r.out == "ready\n" && r.message.empty());
}

// A process in a session of its own, that is there when the next command runs.
const char* const escape =
    "mkfifo gone; setsid sh -c 'echo > gone; exec sleep 1000' & read line < gone; rm gone; ";

// What holds the pipe and has left the group and its parents is found and killed.
void background(Place& place, Report& report) {
  ProcessOptions options = script(place, std::string(escape) + "echo ready");
  options.drain = milliseconds(50);
  options.max_drain = milliseconds(200);
  const ProcessResult r = run_in_region(options);
  report.judge(r, exited(r, 0, "ready\n"));
}

void spill(Place& place, Report& report) {
  ProcessOptions options = script(place, "head -c 100000 /dev/zero | tr '\\0' x");
  options.max_output = 1000;
  options.spill_dir = place.workspace();
  const ProcessResult r = run_in_region(options);
  const bool kept = r.outcome == Outcome::exited && r.exit_code == 0 && r.out.size() > 1000 &&
                    r.out_counts.total_bytes == 100000;
  bool whole = false;
  if (!r.out_file.empty() && support::exists(r.out_file)) {
    whole = support::read_file(r.out_file) == std::string(100000, 'x') &&
            r.out_counts.file_bytes == 100000;
    if (!whole && r.out_counts.file_bytes != support::read_file(r.out_file).size())
      report.problem("file_bytes is not the size of the spill file");
    ::unlink(r.out_file.c_str());
  }
  report.judge(r, kept && whole);
}

void supervised(Place& place, Report& report) {
  ProcessOptions options = script(place, std::string(escape) + "echo out; echo err >&2; exit 3");
  options.supervised = true;
  const ProcessResult r = run_in_region(options);
  report.judge(r, exited(r, 3, "out\n", "err\n"));
}

void supervised_timeout(Place& place, Report& report) {
  ProcessOptions options =
      script(place, "trap '' TERM; echo ready; setsid sleep 1000 & while :; do sleep 1000; done");
  options.supervised = true;
  options.timeout = milliseconds(60);
  options.kill_grace = milliseconds(10);
  const ProcessResult r = run_in_region(options);
  const bool printed = r.out.empty() || r.out == "ready\n";
  report.judge(r, r.outcome == Outcome::timed_out && printed && r.message.empty());
}

// A supervisor has nothing of the host's: what the host closes is closed.
void held(Place& place, Report& report) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) support::fail("pipe", "");
  ProcessOptions options = script(place, "echo out; exec cat");
  options.supervised = true;
  options.keep_input_open = true;
  Region region;
  ProcessResult failure;
  auto process = codeexec::Process::start(options, {}, &failure);
  bool closed = false;
  if (process) {
    ::close(ends[1]);
    pollfd end = {ends[0], POLLIN, 0};
    int ready = -1;
    while (ready < 0) ready = ::poll(&end, 1, 5000);
    closed = ready == 1;
    process->close_input();
    failure = process->wait();
    { const codeexec::Process last = std::move(*process); }
  } else {
    ::close(ends[1]);
  }
  region.end();
  ::close(ends[0]);
  if (process && !closed) report.problem("somebody else holds the host's pipe");
  report.judge(failure, exited(failure, 0, "out\n"));
}

// With input while it runs, on the library's own thread.
void start(Place& place, Report& report) {
  ProcessOptions options = program(place, {"cat"});
  options.keep_input_open = true;
  int ends = 0;
  ProcessResult failure;
  Region region;
  auto process = codeexec::Process::start(
      options, [&](const ProcessResult&) { ++ends; }, &failure);
  if (!process) {
    region.end();
    if (failure.message != process.error().message || failure.outcome != Outcome::not_started)
      report.problem("two stories of the failure");
    return report.judge(failure, false);
  }
  const auto written = process->write("hello\n");
  process->close_input();
  const ProcessResult r = process->wait();
  const std::string read = process->read(codeexec::Stream::out, 0).text;
  { const codeexec::Process last = std::move(*process); }
  region.end();
  if (ends != 1) report.problem("on_end was not called once");
  if (r.out != read) report.problem("two stories of the output");
  if (!written) return report.told("write", written.error());
  report.judge(r, exited(r, 0, "hello\n"));
}

// Its handle ends it.
void abandoned(Place& place, Report& report) {
  ProcessOptions options = script(place, "trap '' TERM; echo ready; sleep 1000");
  Region region;
  auto process = codeexec::Process::start(options);
  if (process) {
    { const codeexec::Process last = std::move(*process); }
    region.end();
    return report.right();
  }
  region.end();
  report.told("start", process.error());
}

codeexec::LocalOptions local(const Place& place) {
  codeexec::LocalOptions options;
  options.workspace = place.workspace();
  options.roots = {{place.workspace()}};
  options.timeout = seconds(10);
  return options;
}

Result run_local(const codeexec::LocalOptions& options, const codeexec::Command& command) {
  const auto executor = codeexec::LocalExecutor::create(options);
  if (executor) return executor->run(command);
  Result failed;
  failed.step = "create";
  failed.system_error = executor.error().system_error;
  failed.message = executor.error().message;
  return failed;
}

Result run_in_region(const codeexec::LocalOptions& options, const codeexec::Command& command) {
  const Region region;
  return run_local(options, command);
}

// A command in a sandbox that tries to leave it.
void confined(Place& place, Report& report, const codeexec::SandboxOptions& sandbox) {
  codeexec::LocalOptions options = local(place);
  options.sandbox = sandbox;
  const std::string outside = place / "outside";
  const Result r = run_in_region(
      options, codeexec::Command::shell("echo in > inside && cat inside; (echo x > '" + outside +
                                        "') 2>/dev/null && echo ESCAPED; "
                                        "while read name value; do case $name in Seccomp:) "
                                        "echo filter $value ;; esac; done < /proc/self/status; "
                                        "exit 4"));
  const bool strict = sandbox.mode == codeexec::SandboxMode::strict;
  bool told = false;
  bool filter_told = false;
  if (r.sandbox) {
    for (const std::string& missing : r.sandbox->missing) {
      told |= has(missing, "filesystem");
      filter_told |= has(missing, "system_calls");
    }
  }
  const bool unfiltered = has(r.out, "filter 0");
  if (unfiltered && (strict || !filter_told)) report.problem("its system calls are not filtered");
  const bool escaped = support::exists(outside) || has(r.out, "ESCAPED");
  if (escaped && (strict || !told)) report.problem("the command was not confined");
  if (strict && r.sandbox && !r.sandbox->missing.empty())
    report.problem("strict, and missing: " + r.sandbox->missing[0]);
  ::unlink(outside.c_str());
  ::unlink((place.workspace() + "/inside").c_str());
  // What a lesser sandbox lacks is told in its report.
  report.judge(r, exited(r, 4,
                         std::string(escaped ? "in\nESCAPED\n" : "in\n") +
                             (unfiltered ? "filter 0\n" : "filter 2\n")));
}

void strict(Place& place, Report& report) {
  codeexec::SandboxOptions sandbox;
  sandbox.mode = codeexec::SandboxMode::strict;
  sandbox.network = codeexec::Network::none;
  confined(place, report, sandbox);
}

void best_effort(Place& place, Report& report) {
  codeexec::SandboxOptions sandbox;
  sandbox.mode = codeexec::SandboxMode::best_effort;
  sandbox.network = codeexec::Network::loopback;
  sandbox.pid_namespace = true;
  confined(place, report, sandbox);
}

void limits(Place& place, Report& report) {
  codeexec::SandboxOptions sandbox;
  sandbox.mode = codeexec::SandboxMode::strict;
  sandbox.limits.memory = std::uint64_t{256} << 20;
  sandbox.limits.processes = 64;
  sandbox.limits.cpu_time = 10;
  sandbox.limits.open_files = 100;
  sandbox.limits.disk = std::uint64_t{1} << 40;
  confined(place, report, sandbox);
}

void become_ordinary(const Place& place) {
  if (::geteuid() != 0) return;
  constexpr unsigned nobody = 65534;
  for (const char* folder : {"/workspace", "/tmp", ""})
    if (::chown((place.path() + folder).c_str(), nobody, nobody) != 0) support::fail("chown", "");
  if (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0)
    support::fail("setuid", "");
  // Or nothing of this process in /proc were its own.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

void ordinary_user(Place& place, Report& report) {
  become_ordinary(place);
  strict(place, report);
}

// With an audit log, a home of its own for each command and secrets.
void audited(Place& place, Report& report) {
  codeexec::LocalOptions options = local(place);
  options.audit_file = place / "audit";
  options.private_home = codeexec::PrivateHome::command;
  options.sandbox.mode = codeexec::SandboxMode::strict;
  options.environment.set = {{"TOKEN", "a secret"}};
  options.environment.secret = {"TOKEN"};
  const Result r = run_in_region(options, codeexec::Command::shell("echo $TOKEN; exit 5"));
  std::string log;
  if (support::exists(options.audit_file)) log = support::read_file(options.audit_file);
  ::unlink(options.audit_file.c_str());
  if (has(r.out, "a secret") || has(log, "a secret")) report.problem("a secret was told");
  const bool logged = support::lines_of(log).size() == 1 && has(log, "\"exit_code\":5");
  if (r.outcome == Outcome::exited && !logged && r.notes.empty())
    report.problem("the audit log has no record of it, and no note says so");
  report.judge(r, exited(r, 5, "[redacted]\n") && logged);
}

void session(Place& place, Report& report) {
  support::make_directories(place.workspace() + "/sub");
  const codeexec::LocalOptions options = local(place);
  std::vector<Result> results;
  std::string where;
  {
    const Region region;
    const codeexec::Session shared;
    for (const char* text : {"cd sub; export A=1; exit 6", "pwd; echo $A"}) {
      codeexec::Command command = codeexec::Command::shell(text);
      command.session = shared;
      results.push_back(run_local(options, command));
      if (results.back().outcome != Outcome::exited) break;
    }
    where = shared.work_dir();
  }
  support::remove_all(place.workspace() + "/sub");
  const Result& first = results.front();
  if (!exited(first, 6, "") || results.size() == 1 || !first.notes.empty())
    return report.judge(first, false);
  if (where != place.workspace() + "/sub") report.problem("the session is not where it should be");
  report.judge(results[1], exited(results[1], 0, place.workspace() + "/sub\n1\n"));
}

void shells(Place& place, Report& report) {
  codeexec::Command command =
      codeexec::Command::shell("read line; echo got $line; setsid sleep 1000 & sleep 1000");
  command.keep_input_open = true;
  const codeexec::LocalOptions options = local(place);
  const auto pattern = codeexec::Regex::compile("^got");
  Result failure;
  Region region;
  const auto executor = codeexec::LocalExecutor::create(options);
  if (!report.judge(executor, "create")) return;
  codeexec::BackgroundShells all(*executor);
  const auto status = all.start(command, &failure);
  if (!status) {
    // There is none of what was not tried.
    if (!failure.command.empty()) report.judge(failure, false);
    return report.told("start", status.error());
  }
  if (!report.judge(all.write(status->id, "hi\n"), "write")) return;
  codeexec::ShellWait wait;
  wait.pattern = *pattern;
  wait.time = seconds(10);
  const auto waited = all.wait(status->id, wait);
  if (!report.judge(waited, "wait")) return;
  const auto output = all.read(status->id);
  if (!report.judge(output, "read")) return;
  const auto killed = all.kill(status->id);
  if (!report.judge(killed, "kill")) return;
  const auto after = all.status(status->id);
  if (!report.judge(after, "status")) return;
  if (*waited == codeexec::ShellWaitEnd::matched && output->out.text == "got hi\n" && *killed &&
      after->state == codeexec::ShellState::killed)
    return report.right();
  report.judge(after->result, false);
}

void code(Place& place, Report& report) {
  codeexec::CodeOptions options;
  options.languages.push_back({{"note"}, "note", {"/bin/sh"}, false});
  const std::string text = "# filename: notes/job.note\necho ran; exit 7\n";
  const std::string file = place.workspace() + "/notes/job.note";
  codeexec::CodeResult r;
  Region region;
  const auto executor = codeexec::LocalExecutor::create(local(place));
  if (executor) r = codeexec::run_code(*executor, "note", text, options);
  region.end();
  if (!report.judge(executor, "create")) return;
  if (support::exists(file) && support::read_file(file) != text)
    report.problem("there is something else in the file");
  support::remove_all(place.workspace() + "/notes");
  if (r.results.empty()) {
    if (r.succeeded) report.problem("a success of nothing");
    return report.told("code", r.message, 0);
  }
  report.judge(r.results[0], exited(r.results[0], 7, "ran\n") && r.files.size() == 1);
}

void files(Place& place, Report& report) {
  const std::string file = place.workspace() + "/a";
  const std::string before(3000, 'b');
  const std::string after(5000, 'a');
  support::write_file(file, before);
  codeexec::PathOptions roots;
  roots.roots = {{place.workspace()}};
  Region region;
  auto rules = codeexec::PathRules::create(roots);
  if (!report.judge(rules, "rules")) return;
  const codeexec::Files all(std::move(*rules), place.workspace());
  const auto written = all.write("a", after);
  const auto made = all.write("new/deep/b", after);
  const auto read = all.read("a");
  const auto listed = all.list(".", 3);
  region.end();
  const std::string now = support::read_file(file);
  if (now != before && now != after) report.problem("the file is neither the old nor the new");
  if (written && now != after) report.problem("a write was called a success");
  if (!written && now == after && !has(written.error().message, "not yet on the disk"))
    report.problem("a write was called a failure");
  if (made && support::read_file(place.workspace() + "/new/deep/b") != after)
    report.problem("a new file was called a success");
  if (!made && support::exists(place.workspace() + "/new/deep/b") &&
      !has(made.error().message, "not yet on the disk"))
    report.problem("a new file was called a failure");
  if (read && read->bytes != now) report.problem("what was read is not in the file");
  if (listed && !listed->more) {
    std::string names;
    bool closed = false;
    for (const codeexec::FileEntry& entry : listed->entries) {
      names += entry.path + " ";
      closed |= entry.closed;
    }
    const char* const all_names = made ? "a new new/deep new/deep/b " : "a ";
    if (!closed && names.compare(0, made ? 26 : 2, all_names) != 0)
      report.problem("the list lacks something: " + names);
  }
  support::remove_all(place.workspace() + "/new");
  ::unlink(file.c_str());
  report.right();
  if (!listed) report.told("list", listed.error());
  if (!read) report.told("read", read.error());
  if (!made) report.told("make", made.error());
  if (!written) report.told("write", written.error());
}

// A client of a server that is this process, on descriptors 0 and 1 as usual.
class Client {
 public:
  explicit Client(const Place& place) : transcript_(place / "transcript") {
    int to[2];
    int from[2];
    int started[2];
    for (int* pipe : {to, from, started})
      if (::pipe2(pipe, O_CLOEXEC) != 0) support::fail("pipe", "");
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(transcript_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::signal(SIGPIPE, SIG_IGN);
      ::dup2(from[0], 0);
      ::dup2(to[1], 1);
      ::dup2(file, 2);
      ::execl("/bin/sh", "sh", "-c", conversation, static_cast<char*>(nullptr));
      ::_exit(127);
    }
    old_in_ = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
    old_out_ = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
    ::dup2(to[0], 0);
    ::dup2(from[1], 1);
    for (const int end : {to[0], to[1], from[0], from[1], started[1]}) ::close(end);
    // The calls before it executes its program are not those that are to fail.
    char byte = 0;
    while (::read(started[0], &byte, 1) < 0 && errno == EINTR) {
    }
    ::close(started[0]);
  }
  // What the server has answered.
  std::string finish() {
    ::dup2(old_in_, 0);
    ::dup2(old_out_, 1);
    ::close(old_in_);
    ::close(old_out_);
    ::waitpid(pid_, nullptr, 0);
    const std::string text = support::read_file(transcript_);
    ::unlink(transcript_.c_str());
    return text;
  }

 private:
  static constexpr const char* conversation =
      "say() { printf '%s\\n' \"$1\"; }\n"
      "say '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
      "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
      "\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}'\n"
      "say '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}'\n"
      "say '{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
      "\"name\":\"execute_command\",\"arguments\":{\"command\":\"echo called; exit 8\"}}}'\n"
      "while read -r line; do\n"
      "  printf '%s\\n' \"$line\" >&2\n"
      "  case $line in *'\"id\":2,'*) break ;; esac\n"
      "done\n";
  std::string transcript_;
  pid_t pid_ = -1;
  int old_in_ = -1;
  int old_out_ = -1;
};

std::string file_of_descriptor(int fd) { return support::path_of_descriptor(fd); }

void serve(Place& place, Report& report) {
  Client client(place);
  const std::string streams = file_of_descriptor(0) + file_of_descriptor(1);
  std::mutex mutex;
  std::string logged;
  Expected<void> served;
  Region region;
  const auto executor = codeexec::LocalExecutor::create(local(place));
  Expected<void> added;
  if (executor) {
    codeexec::mcp::ServerOptions options;
    options.log = [&](std::string_view line) {
      const std::lock_guard<std::mutex> lock(mutex);
      logged.append(line);
    };
    codeexec::mcp::Server server(options);
    added = codeexec::add_execution_tools(server, *executor);
    if (added) served = server.serve();
  }
  region.end();
  if (file_of_descriptor(0) + file_of_descriptor(1) != streams)
    report.problem("descriptors 0 and 1 are others");
  const std::vector<std::string> replies = support::lines_of(client.finish());
  if (!report.judge(executor, "create") || !report.judge(added, "add")) return;
  const bool greeted = !replies.empty() && has(replies[0], "\"id\":1,\"result\"");
  const bool answered = replies.size() == 2 && has(replies[1], "\"id\":2,\"result\"");
  if (greeted && answered && has(replies[1], "\"stdout\":\"called\\n\"") &&
      has(replies[1], "\"exit_code\":8"))
    return report.right();
  if (!served) return report.told("serve", served.error());
  // So does a terminal that has gone.
  // Calls that have not ended by then are cancelled.
  if (report.is_fault(EIO)) return report.told("served", "the input has ended", EIO);
  if (greeted && answered && has(replies[1], "\"success\":false"))
    return report.told("answered", replies[1], 0);
  report.told("served with " + std::to_string(replies.size()) + " replies", logged, 0);
}

void docker(Place& place, Report& report) {
  const support::FakeEngine engine;
  codeexec::ContainerExecutorOptions options;
  options.workspace = place.workspace();
  options.timeout = seconds(10);
  options.container.engine.program = engine.program();
  options.container.user = "0:0";
  Result r;
  Region region;
  {
    const auto executor = codeexec::ContainerExecutor::create(options);
    if (!report.judge(executor, "create")) return;
    r = executor->run("echo out; echo err >&2; exit 3");
  }
  region.end();
  report.judge(r, exited(r, 3, "out\n", "err\n"));
}

void no_docker(Place& place, Report& report) {
  codeexec::ContainerExecutorOptions options;
  options.workspace = place.workspace();
  options.container.engine.program = place / "nothing";
  options.container.user = "0:0";
  Result r;
  Region region;
  {
    const auto executor = codeexec::ContainerExecutor::create(options);
    if (!report.judge(executor, "create")) return;
    r = executor->run("echo out");
  }
  region.end();
  if (r.outcome != Outcome::not_started || r.message.empty())
    report.problem("a command of no engine was started");
  report.right();
}

struct Scenario {
  const char* name;
  void (*run)(Place& place, Report& report);
};

constexpr Scenario scenarios[] = {
    {"plain", plain},
    {"handles", handles},
    {"input", input},
    {"timeout", timeout},
    {"cancel", cancel},
    {"background", background},
    {"spill", spill},
    {"supervised", supervised},
    {"supervised-timeout", supervised_timeout},
    {"held", held},
    {"start", start},
    {"abandoned", abandoned},
    {"strict", strict},
    {"best-effort", best_effort},
    {"limits", limits},
    {"ordinary-user", ordinary_user},
    {"audited", audited},
    {"session", session},
    {"shells", shells},
    {"code", code},
    {"files", files},
    {"serve", serve},
    {"docker", docker},
    {"no-docker", no_docker},
};
constexpr std::size_t scenario_count = sizeof scenarios / sizeof scenarios[0];

// What must be as before --------------------------------------------------------------------------

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory))
    if (entry->d_name[0] != '.' || std::strlen(entry->d_name) > 2)
      names.emplace_back(entry->d_name);
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

// What begins with `prefix` in a tree; "" for everything.
void find_in(const std::string& path, const std::string& prefix, int depth,
             std::vector<std::string>& found) {
  for (const std::string& name : names_in(path)) {
    const std::string whole = path + "/" + name;
    if (support::begins(name, prefix)) found.push_back(whole);
    struct stat status {};
    const bool deeper = depth > 0 && ::lstat(whole.c_str(), &status) == 0;
    if (deeper && S_ISDIR(status.st_mode)) find_in(whole, prefix, depth - 1, found);
  }
}

// The directories of the cgroups that this process is in, of either version, where they are usual.
const std::vector<std::string>& own_groups() {
  static const std::vector<std::string> groups = [] {
    std::vector<std::string> found;
    for (const std::string& line : support::lines_of(support::read_file("/proc/self/cgroup"))) {
      const std::size_t path = line.find('/');
      const std::size_t name = line.find(':') + 1;
      const std::string controller = line.substr(name, line.find(':', name) - name);
      for (const char* base : {"/sys/fs/cgroup/", "/sys/fs/cgroup/unified/"})
        if (path != std::string::npos) found.push_back(base + controller + line.substr(path));
    }
    return found;
  }();
  return groups;
}

class Snapshot {
 public:
  explicit Snapshot(const Place& place) {
    for (const std::string& fd : names_in("/proc/self/fd")) {
      const std::string target = support::path_of_descriptor(std::atoi(fd.c_str()));
      // The directory itself has been closed again.
      if (!target.empty()) things_.push_back("descriptor " + fd + " -> " + target);
    }
    find_in(place.path(), "", 8, files_);
    for (const std::string& group : own_groups())
      find_in(group, "codeexec-" + std::to_string(::getpid()) + "-", 0, files_);
    for (const std::string& task : names_in("/proc/self/task")) things_.push_back("thread " + task);
    sigset_t set;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &set);
    for (int number = 1; number < NSIG; ++number)
      if (sigismember(&set, number) == 1)
        things_.push_back("blocked signal " + std::to_string(number));
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action {};
      if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL)
        things_.push_back("handler of signal " + std::to_string(number));
    }
    if (::access(".", F_OK) == 0) things_.push_back("in " + support::real_path("."));
    std::sort(things_.begin(), things_.end());
    std::sort(files_.begin(), files_.end());
  }
  // What the other has and this has not, and the other way round; empty when there is nothing.
  std::string difference(const Snapshot& after) const {
    return missing_in(things_, after.things_, "left: ") +
           missing_in(after.things_, things_, "gone: ");
  }
  std::string difference_of_files(const Snapshot& after) const {
    return missing_in(files_, after.files_, "left: ") + missing_in(after.files_, files_, "gone: ");
  }

 private:
  static std::string missing_in(const std::vector<std::string>& list,
                                const std::vector<std::string>& other, const char* what) {
    std::string text;
    for (const std::string& thing : other)
      if (!std::binary_search(list.begin(), list.end(), thing))
        text += (text.empty() ? what : ", ") + thing;
    return text;
  }
  std::vector<std::string> things_ = {};
  std::vector<std::string> files_ = {};
};

// Threads and children that have ended may take a moment to go.
template <class Question>
std::string in_time(Question question) {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + seconds(1);
  while (!(text = question()).empty() && std::chrono::steady_clock::now() < end)
    ::poll(nullptr, 0, 10);
  return text;
}

std::string has_children() {
  siginfo_t info = {};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return {};
  return info.si_pid == 0 ? "a process is left" : "a zombie is left";
}

bool removes(long number) {
  return number == SYS_rmdir || number == SYS_unlink || number == SYS_unlinkat;
}

std::string report_of(const Scenario& scenario, const std::string& directory, const Fault* fault) {
  Place place(directory);
  support::make_directories(place.workspace());
  support::make_directories(place / "tmp");
  if (::setenv("TMPDIR", (place / "tmp").c_str(), 1) != 0) support::fail("setenv", "TMPDIR");
  if (::setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1) != 0) support::fail("setenv", "PATH");
  if (scenario.run == ordinary_user) become_ordinary(place);
  std::string text;
  const auto judge = [&](const char* when, Report& report) {
    const Snapshot before(place);
    try {
      scenario.run(place, report);
    } catch (const std::exception& thrown) {
      report.problem(std::string("thrown: ") + thrown.what());
    }
    const std::string left = in_time([&] { return before.difference(Snapshot(place)); });
    if (!left.empty()) report.problem(left);
    for (const std::string& problem : report.problems()) text += when + problem + "\n";
  };
  const Snapshot before_all(place);
  Report first(fault ? fault->error : 0);
  judge("problem: ", first);
  text += "told: " + first.told() + "\n";
  Report second(0);
  judge("problem: the second time: ", second);
  if (!support::begins(second.told(), "no difference"))
    text += "problem: the second time: " + second.told() + "\n";
  // What one run could not remove, the next one has: but for what cannot be removed now.
  const std::string files = before_all.difference_of_files(Snapshot(place));
  if (!files.empty() && !(fault && removes(fault->number))) text += "problem: " + files + "\n";
  // Those that take their time to die are taken away by a later start.
  const std::string children = in_time([&] {
    std::string left = has_children();
    if (!left.empty()) codeexec::run_process(program(place, {"true"}));
    return left;
  });
  if (!children.empty()) text += "problem: " + children + "\n";
  return text;
}

// All faults --------------------------------------------------------------------------------------

struct Case {
  std::size_t scenario;
  Fault fault;
};

// Of all workers.
struct Shared {
  std::atomic<std::size_t> next{0};
  std::atomic<int> failures{0};
  std::atomic<int> injected[scenario_count] = {};
  std::atomic<int> told[scenario_count] = {};
  std::atomic<int> missed[scenario_count] = {};
};

struct Options {
  bool all = false;
  bool told = false;
  int jobs = 2;
  std::size_t every = 1;
  std::vector<std::string> only = {};
};

void print(const std::string& line) {
  const std::string whole = line + "\n";
  (void)!::write(1, whole.data(), whole.size());
}

std::string error_name(int error) {
  const char* const known = ::strerrorname_np(error);
  return known ? known : std::to_string(error);
}

std::string name_of(const Case& one) {
  const Kind* const kind = faults::find_kind(one.fault.number);
  return std::string(scenarios[one.scenario].name) + ":" + name(one.fault.who) + ":" + kind->name +
         ":" + std::to_string(one.fault.nth) + ":" + error_name(one.fault.error);
}

// Whether one was asked for; `name` is of a case, or the beginning of one's.
bool wanted(const Options& options, const std::string& name) {
  if (options.only.empty()) return true;
  for (const std::string& only : options.only)
    if (support::begins(name + ":", only + ":") || support::begins(only + ":", name + ":"))
      return true;
  return false;
}

struct Outcomes {
  std::string told = {};
  std::vector<std::string> problems = {};
};

Outcomes outcomes_of(const Trace& trace) {
  Outcomes all;
  for (const std::string& line : support::lines_of(trace.report)) {
    if (support::begins(line, "told: ")) all.told = line.substr(6);
    if (support::begins(line, "problem: ")) all.problems.push_back(line.substr(9));
  }
  if (trace.hung) {
    all.problems.push_back("it hangs: " + trace.left[0]);
  } else if (WIFSIGNALED(trace.status)) {
    all.problems.push_back("it died of signal " + std::to_string(WTERMSIG(trace.status)));
  } else {
    const bool said = has(all.told, "may still be running");
    for (const std::string& left : trace.left)
      if (!said) all.problems.push_back("it left behind: " + left);
    if (all.told.empty()) all.problems.push_back("it has told nothing");
  }
  return all;
}

constexpr seconds patience(25);

Trace run_case(faults::Tracer& tracer, std::size_t scenario, const Fault* fault) {
  const support::TempDir directory;
  return tracer.run([&] { return report_of(scenarios[scenario], directory.path(), fault); }, fault);
}

// The calls that a scenario makes become the faults of it. False: it is wrong without any.
bool learn(const Options& options, std::size_t scenario, std::vector<Case>& cases) {
  faults::Tracer tracer(patience);
  const Trace trace = run_case(tracer, scenario, nullptr);
  Outcomes all = outcomes_of(trace);
  if (all.told != "no difference") all.problems.push_back("not right: " + all.told);
  if (trace.calls.empty()) all.problems.push_back("it makes no calls");
  for (const auto& [who_and_number, count] : trace.calls) {
    const Who who = who_and_number.first;
    const long number = who_and_number.second;
    const Kind* const kind = faults::find_kind(number);
    if (!kind) {
      all.problems.push_back("there is no errno for the system call " + std::to_string(number));
      continue;
    }
    const auto add = [&](int nth, int error) {
      const Case one = {scenario, {who, number, nth, error}};
      if (wanted(options, name_of(one))) cases.push_back(one);
    };
    if (options.all || !options.only.empty()) {
      for (int nth = 1; nth <= count; ++nth)
        for (const int error : kind->errors) add(nth, error);
    } else {
      add(1, kind->errors.front());
      if (count > 1) add(count, kind->errors.back());
    }
  }
  for (const std::string& problem : all.problems)
    print(std::string("FAILED: ") + scenarios[scenario].name + " without a fault: " + problem);
  return all.problems.empty();
}

void work(const Options& options, const std::vector<Case>& cases, Shared& shared) {
  faults::Tracer tracer(patience);
  for (std::size_t i = 0; (i = shared.next++) < cases.size();) {
    const Case& one = cases[i];
    const Trace trace = run_case(tracer, one.scenario, &one.fault);
    Outcomes all = outcomes_of(trace);
    if (!trace.injected) {
      // How often some are called is a matter of time.
      ++shared.missed[one.scenario];
      if (trace.hung || all.told != "no difference") print("missed: " + name_of(one));
    } else {
      ++shared.injected[one.scenario];
      if (!support::begins(all.told, "no difference")) ++shared.told[one.scenario];
      if (options.told) print("told: " + name_of(one) + ": " + all.told);
    }
    for (const std::string& problem : all.problems)
      print("FAILED: " + name_of(one) + ": " + problem);
    if (!all.problems.empty()) ++shared.failures;
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--all")
      options.all = true;
    else if (word == "--told")
      options.told = true;
    else if (word == "--every" && i + 1 < argc)
      options.every = static_cast<std::size_t>(std::max(1, std::atoi(argv[++i])));
    else if (word == "--jobs" && i + 1 < argc)
      options.jobs = std::max(1, std::atoi(argv[++i]));
    else
      options.only.push_back(word);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!faults::Tracer::permitted()) {
    print("SKIPPED: faults: processes cannot be traced here (ptrace)");
    return 77;
  }
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) support::fail("mmap", "");
  Shared& shared = *::new (memory) Shared;
  std::vector<Case> cases;
  for (std::size_t scenario = 0; scenario < scenario_count; ++scenario)
    if (wanted(options, scenarios[scenario].name) && !learn(options, scenario, cases))
      ++shared.failures;
  std::vector<Case> chosen;
  for (std::size_t i = 0; i < cases.size(); i += options.every) chosen.push_back(cases[i]);
  std::vector<pid_t> workers;
  for (int i = 0; i < options.jobs; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) support::fail("fork", "");
    if (pid == 0) {
      work(options, chosen, shared);
      ::_exit(0);
    }
    workers.push_back(pid);
  }
  for (const pid_t worker : workers) {
    int status = 0;
    while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) continue;
    print("FAILED: a worker ended with status " + std::to_string(status));
    ++shared.failures;
  }
  int injected = 0;
  for (std::size_t i = 0; i < scenario_count; ++i) {
    injected += shared.injected[i];
    if (shared.injected[i] > 0)
      print(std::string("ok: ") + scenarios[i].name + ": " + std::to_string(shared.injected[i]) +
            " faults, " + std::to_string(shared.told[i]) + " of them told, " +
            std::to_string(shared.missed[i]) + " not reached");
  }
  rusage usage = {};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  print("faults: " + std::to_string(injected) + " injected, " + std::to_string(shared.failures) +
        " failures, " + std::to_string(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
        " CPU-seconds");
  return shared.failures == 0 && injected > 0 ? 0 : 1;
}

#else

#include <cstdio>

int main() {
  std::puts("SKIPPED: faults: only Linux on x86_64 is traced");
  return 77;
}

#endif
