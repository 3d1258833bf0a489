// The ways in which a host uses the library, each with its verdict.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "host.hpp"

namespace hosts {

codeexec::ProcessOptions shell(const std::string& script) {
  codeexec::ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.work_dir = "/";
  options.timeout = patience;
  return options;
}

codeexec::LocalOptions local() {
  codeexec::LocalOptions options;
  options.workspace = workspace;
  options.timeout = patience;
  options.kill_grace = std::chrono::milliseconds(100);
  options.environment.auto_venv = false;
  return options;
}

std::string with_mark(std::string script) {
  for (std::size_t at; (at = script.find("$MARK")) != std::string::npos;)
    script.replace(at, 5, mark);
  return script;
}

namespace {

using codeexec::Command;
using codeexec::Jobs;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Stream;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

std::string describe(const ProcessResult& r) {
  return std::string(name(r.outcome)) + " " + std::to_string(r.exit_code) + " signal " +
         std::to_string(r.signal) + " out '" + r.out.substr(0, 100) + "' err '" +
         r.err.substr(0, 100) + "' " + r.step + " " + r.message + (r.pipe_held ? " (held)" : "");
}

std::string wrong(const ProcessResult& r) { return "WRONG: " + describe(r); }

// What a run that was not as it should be may be, when it says so.
std::string excuse(const ProcessResult& r) {
  if (r.outcome == Outcome::not_started && !r.message.empty() && r.exit_code == -1)
    return "refused: " + r.message;
  if (r.outcome == Outcome::unknown && !r.message.empty() && r.exit_code == -1)
    return "unknown: " + r.message;
  return wrong(r);
}

std::string refused(const codeexec::Error& error) {
  return error.message.empty() ? "WRONG: an error without a message" : "refused: " + error.message;
}

std::string judge_seven(const ProcessResult& r, const char* out, const char* err) {
  // What holds a pipe can be a fork of this program.
  const bool whole = r.out == out && r.err == err && (own_children || !r.pipe_held);
  if (r.outcome != Outcome::exited || r.exit_code != 7 || !whole) return excuse(r);
  return r.message.empty() ? "ok" : "told: " + r.message;
}

// The end of a run that was stopped: its outcome, its output, and that it came in time.
template <class Run>
std::string judge_timeout(Run&& run) {
  // Twice as long each time, for a machine on which the shell takes its time.
  for (milliseconds timeout(150);; timeout *= 2) {
    const auto begin = Clock::now();
    const ProcessResult r = run(timeout);
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    if (r.outcome == Outcome::not_started) return excuse(r);
    if (took > timeout + std::chrono::seconds(30))
      return "WRONG: took " + std::to_string(took.count()) + " ms of " +
             std::to_string(timeout.count());
    if (r.outcome == Outcome::timed_out && r.out == "before\n")
      return r.message.empty() ? "ok" : "told: " + r.message;
    if (r.outcome != Outcome::timed_out || timeout > patience / 2) return excuse(r);
  }
}

const char* const daemon_script = "(setsid sleep $MARK </dev/null >/dev/null 2>&1 &); ";

std::string run_plain() {
  ProcessOptions options = shell("cat; echo err >&2; exit 7");
  options.input = "in";
  return judge_seven(run_process(options), "in", "err\n");
}

std::string run_until_timeout() {
  return judge_timeout([](milliseconds timeout) {
    ProcessOptions options = shell(with_mark("echo before; setsid sleep $MARK & sleep $MARK"));
    options.timeout = timeout;
    options.kill_grace = milliseconds(100);
    return run_process(options);
  });
}

std::string run_many() {
  for (int i = 0; i < 100; ++i) {
    const ProcessResult r = run_process(shell("echo out; exit 7"));
    if (r.exit_code != 7 || r.out != "out\n") return excuse(r);
  }
  return "ok";
}

// Nor is it killed for holding a pipe of the program's.
std::string fork_during_run() {
  ProcessOptions options = shell("echo ready; exit 7");
  std::vector<pid_t> forks;
  options.on_output = [&forks](Stream, std::string_view) {
    forks.push_back(make_orphan());
    forks.push_back(::fork());
    if (forks.back() == 0)
      for (;;) ::pause();
  };
  const ProcessResult r = run_process(options);
  std::string verdict =
      r.exit_code == 7 && r.out == "ready\n" && r.pipe_held && forks.size() == 2 ? "ok" : wrong(r);
  for (const pid_t pid : forks) {
    if (pid < 0 || is_dead(pid)) verdict = "WRONG: a fork of the host was killed";
    if (pid > 0) ::kill(pid, SIGKILL);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
  }
  return verdict;
}

// A fork of the host that is made while a program runs does not keep its standard input open.
std::string fork_after_start() {
  for (int i = 0; i < 20; ++i) {
    ProcessOptions options = shell("cat; exit 7");
    options.input = "in";
    auto process = codeexec::Process::start(std::move(options));
    if (!process) return refused(process.error());
    const pid_t pid = ::fork();
    if (pid == 0)
      for (;;) ::pause();
    const bool ended = process->wait_for(std::chrono::seconds(20));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    if (!ended) return "WRONG: it waits for the end of its input";
    if (process->wait().out != "in") return wrong(process->wait());
  }
  return "ok";
}

std::string start_and_cancel() {
  ProcessOptions options = shell(with_mark("echo ready; sleep $MARK & sleep $MARK"));
  const codeexec::CancelToken token;
  options.cancel = token;
  options.on_output = [token](Stream, std::string_view) { token.cancel(); };
  ProcessResult failure;
  auto process = codeexec::Process::start(std::move(options), {}, &failure);
  if (!process) return refused(process.error());
  if (!process->wait_for(patience)) return "WRONG: it goes on";
  const ProcessResult& r = process->wait();
  return r.outcome == Outcome::cancelled && r.out == "ready\n" ? "ok" : excuse(r);
}

std::string run_supervised() {
  ProcessOptions options = shell(with_mark(daemon_script) + "echo out; exit 7");
  options.supervised = true;
  return judge_seven(run_process(options), "out\n", "");
}

std::string time_out_supervised() {
  return judge_timeout([](milliseconds timeout) {
    ProcessOptions options = shell(with_mark(daemon_script) + "echo before; sleep " + mark);
    options.supervised = true;
    options.timeout = timeout;
    options.kill_grace = milliseconds(100);
    return run_process(options);
  });
}

std::string run_in_sandbox() {
  LocalOptions options = local();
  options.sandbox.mode = codeexec::SandboxMode::strict;
  if (!workspace.empty()) options.roots = {{workspace, codeexec::Permission::write}};
  auto executor = LocalExecutor::create(options);
  if (!executor) return refused(executor.error());
  const codeexec::Result r = executor->run(with_mark(daemon_script) +
                                           "(echo in > in && cat in) 2>/dev/null || echo cannot; "
                                           "(echo > /var/tmp/codeexec-host-out) 2>/dev/null && "
                                           "echo outside; exit 7");
  if (r.out == "cannot\n" && r.exit_code == 7) return "told: it cannot write to its workspace";
  return judge_seven(r, "in\n", "");
}

std::string run_script() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  return judge_seven(executor->run("echo out; echo err >&2; exit 7"), "out\n", "err\n");
}

std::string keep_all_variables() {
  LocalOptions options = local();
  options.environment.keep_all = true;
  auto executor = LocalExecutor::create(options);
  if (!executor) return refused(executor.error());
  return judge_seven(executor->run("echo out; exit 7"), "out\n", "");
}

std::string background_shell() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  Jobs jobs(*executor);
  const auto started =
      jobs.start(Command::shell(with_mark("echo ready; sleep $MARK & sleep $MARK")));
  if (!started) return refused(started.error());
  codeexec::Jobs::Wait until;
  until.pattern = *codeexec::Regex::compile("ready");
  until.time = patience;
  const auto end = jobs.wait(started->id, until);
  if (!end) return "told: " + end.error().message;
  const auto killed = jobs.kill(started->id);
  if (!killed || !*killed) return "WRONG: it was not the kill that ended it";
  const auto output = jobs.read(started->id);
  if (!output || output->out.text != "ready\n") return "WRONG: its output is not there";
  const codeexec::Result& r = output->status.result;
  if (output->status.state == codeexec::JobState::killed) return "ok";
  return excuse(r);
}

std::string use_session() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  Command command = Command::shell("export CARRIED=on; cd / && cd usr");
  const codeexec::Session session;
  command.session = session;
  const codeexec::Result first = executor->run(command);
  if (!first.succeeded()) return excuse(first);
  command.script = "pwd; echo $CARRIED; exit 7";
  return judge_seven(executor->run(command), "/usr\non\n", "");
}

std::string run_file() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  codeexec::CodeLanguage language;
  language.names = {"plain"};
  language.extension = "plain";
  language.program = {"/bin/sh"};
  codeexec::CodeOptions options;
  options.languages = {language};
  const codeexec::CodeResult r =
      codeexec::run_code(*executor, "plain", "echo out\nexit 7\n", options);
  if (r.results.empty())
    return r.message.empty() ? "WRONG: neither a result nor a message" : "refused: " + r.message;
  return judge_seven(r.results[0], "out\n", "");
}

// Long output that goes to a file, and a record of it.
std::string write_files() {
  LocalOptions options = local();
  options.max_output = 1024;
  options.spill_dir = workspace;
  options.audit_file = (workspace.empty() ? std::string("audit") : workspace + "/audit");
  auto executor = LocalExecutor::create(options);
  if (!executor) return refused(executor.error());
  const std::string line = "a line of some fifty bytes, again and again ....";
  const std::size_t size = 3000 * (line.size() + 1);
  const codeexec::Result r =
      executor->run("i=0; while [ $i -lt 3000 ]; do echo '" + line + "'; i=$((i+1)); done; exit 7");
  std::string said = r.message;
  for (const std::string& note : r.notes) said += " " + note;
  if (r.outcome != Outcome::exited || r.exit_code != 7 || r.out_counts.total_bytes != size)
    return excuse(r);
  struct stat audit {};
  const bool recorded = ::stat(options.audit_file.c_str(), &audit) == 0 && audit.st_size > 100;
  if (r.out_counts.file_bytes == size && recorded) return "ok";
  return said.empty() ? "WRONG: files are not whole, and nothing says so" : "told: " + said;
}

// At each number of descriptors there may be: a command runs, or it is refused before it has done
// anything.
std::string run_with_few_descriptors() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const std::string trace = workspace + "/trace";
  std::string verdict = "ok";
  int refusals = 0;
  for (rlim_t most = 5; most < 40 && verdict == "ok"; ++most) {
    const rlimit few = {most, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (const bool supervised : {false, true}) {
      ::unlink(trace.c_str());
      ProcessOptions options = shell(with_mark("touch " + trace + "; setsid sleep $MARK & exit 7"));
      options.supervised = supervised;
      const ProcessResult r = run_process(options);
      const bool ran = ::access(trace.c_str(), F_OK) == 0;
      const bool is_refusal = r.outcome == Outcome::not_started && r.system_error == EMFILE;
      if (is_refusal) ++refusals;
      if (is_refusal ? ran : r.outcome != Outcome::exited || r.exit_code != 7)
        verdict = wrong(r) + " with " + std::to_string(most) + (ran ? ", and it ran" : "");
    }
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  return verdict == "ok" && refusals < 4 ? "WRONG: hardly a refusal" : verdict;
}

// What a run costs does not depend on how many descriptors there could be.
std::string cost_of_run() {
  const auto used = [] {
    double sum = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage usage{};
      ::getrusage(who, &usage);
      for (const timeval& time : {usage.ru_utime, usage.ru_stime})
        sum += static_cast<double>(time.tv_sec) * 1000 + static_cast<double>(time.tv_usec) / 1000;
    }
    return sum;
  };
  constexpr int runs = 20;
  const double before = used();
  for (int i = 0; i < runs; ++i) {
    ProcessOptions options = shell("exit 7");
    options.supervised = i % 2 == 1;
    const ProcessResult r = run_process(options);
    if (r.exit_code != 7) return excuse(r);
  }
  const double each = (used() - before) / runs;
  return each < 25 ? "ok" : "WRONG: " + std::to_string(each) + " ms of CPU for each";
}

// Arguments that no system takes.
std::string run_too_long() {
  ProcessOptions options = shell("exit 7");
  options.argv.push_back(std::string(std::size_t{4} << 20, 'x'));
  const ProcessResult r = run_process(options);
  if (r.outcome == Outcome::not_started && r.system_error == E2BIG) return "ok";
  return wrong(r);
}

// A thread with the smallest stack there is.
std::string on_small_stack(std::size_t size, std::string (*way)()) {
  struct Job {
    std::string (*way)();
    std::string verdict;
  } job = {way, ""};
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  if (::pthread_attr_setstacksize(&attributes, size) != 0) return "WRONG: no such stack";
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    auto* own = static_cast<Job*>(argument);
    own->verdict = own->way();
    return nullptr;
  };
  const int error = ::pthread_create(&thread, &attributes, body, &job);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) return std::string("WRONG: ") + std::strerror(error);
  ::pthread_join(thread, nullptr);
  return job.verdict;
}

std::string on_all_small_stacks() {
  constexpr std::size_t size = 128 * 1024;
  for (auto* way : {run_plain, run_until_timeout, start_and_cancel, run_supervised, run_script,
                    run_in_sandbox, background_shell, use_session, run_file}) {
    const std::string verdict = on_small_stack(size, way);
    if (verdict != "ok") return verdict;
  }
  return "ok";
}

// A fork of the host has only its own thread, in the middle of whatever the others did.
std::string use_in_fork() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  Jobs jobs(*executor);
  const auto started = jobs.start(Command::shell(with_mark("echo ready; sleep $MARK")));
  if (!started) return refused(started.error());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "WRONG: no pipe";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    std::string verdict = "ok";
    for (auto* way : {run_plain, run_until_timeout, start_and_cancel, run_supervised, run_script,
                      background_shell, use_session, run_file})
      if (verdict == "ok") verdict = way();
    // The objects that were there before, too.
    if (verdict == "ok") verdict = judge_seven(executor->run("echo out; exit 7"), "out\n", "");
    if (verdict == "ok") {
      const codeexec::Execution run = executor->start(Command::shell("echo out; exit 7"));
      verdict = run.wait_for(patience) ? judge_seven(run.wait(), "out\n", "") : "WRONG: it goes on";
    }
    if (verdict == "ok") {
      const auto more = jobs.start(Command::shell("echo out"));
      verdict = more ? "ok" : refused(more.error());
    }
    say(verdict, ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string verdict;
  char buffer[512];
  pollfd wanted = {ends[0], POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&wanted, 1, 80000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      verdict = "WRONG: the fork hangs";
      ::kill(pid, SIGKILL);
      break;
    }
    const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
    if (size <= 0) break;
    verdict.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return "WRONG: the fork ended with " + std::to_string(status);
  if (verdict != "ok") return verdict;
  const auto now = jobs.status(started->id);
  return now && now->state == codeexec::JobState::running ? "ok"
                                                          : "WRONG: the fork ended a job of ours";
}

}  // namespace

// The implementation in a shared library that comes and goes.
std::string use_plugin(const std::string& path) {
  for (int i = 0; i < 3; ++i) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return std::string("WRONG: ") + ::dlerror();
    using Run = int (*)(const char*);
    void* symbol = ::dlsym(handle, "run_all");
    Run run = nullptr;
    std::memcpy(&run, &symbol, sizeof run);
    const int failed = run ? run(mark.c_str()) : -1;
    if (failed != 0) return "WRONG: step " + std::to_string(failed) + " of the plugin";
    if (::dlclose(handle) != 0) return "WRONG: it cannot be closed";
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) return "WRONG: it is still there";
  }
  return "ok";
}

std::vector<Way> ways() {
  return {
      {"run", run_plain},
      {"timeout", run_until_timeout},
      {"cancel", start_and_cancel},
      {"supervised", run_supervised},
      {"supervised-timeout", time_out_supervised},
      {"script", run_script},
      {"sandbox", run_in_sandbox},
      {"shell", background_shell},
      {"session", use_session},
      {"code", run_file},
      {"files", write_files},
      {"many", run_many},
      {"fork-after-start", fork_after_start},
      {"fork-during-run", fork_during_run},
      {"too-long", run_too_long},
      {"few-descriptors", run_with_few_descriptors},
      {"cost", cost_of_run},
      {"keep-all", keep_all_variables},
      {"small-stacks", on_all_small_stacks},
      {"fork", use_in_fork},
  };
}

}  // namespace hosts
