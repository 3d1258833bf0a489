// A program that embeds the library, under a mixed load that never ends by itself. Started and
// watched by soak.py:
//
//   codeexec-soak-host DIRECTORY SEED THREADS
//
// The threads share one LocalExecutor and one Jobs, which work in DIRECTORY. A line on
// standard input is an order, and each is answered by one line:
//   pause      after what runs has ended and all jobs are gone: `paused` and the figures below
//   go MILLIS  the threads go on, with so many milliseconds between two actions of each
//   stop       the same as pause, and the program ends
// Figures: actions, cancels, failures, and the bytes of the heap that are in use (0: not known).
// What is not as expected is told at once, as a line that begins with `FAILED: `.
#include <malloc.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "codeexec.hpp"

namespace {

using codeexec::Command;
using codeexec::Outcome;
using codeexec::Result;
using std::chrono::milliseconds;

constexpr std::size_t max_output = std::size_t{1} << 16;
constexpr std::size_t flood = std::size_t{10} << 20;

// splitmix64: the same numbers from the same seed, whatever the standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }

 private:
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  std::uint64_t state_;
};

struct Host {
  std::unique_ptr<codeexec::LocalExecutor> executor = {};
  std::unique_ptr<codeexec::Jobs> jobs = {};
  std::uint64_t seed = 0;

  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool going = false;
  bool stopping = false;
  int busy = 0;
  milliseconds pause{0};
  unsigned long long actions = 0;
  unsigned long long cancels = 0;
  unsigned long long failures = 0;
  std::vector<std::string> forgotten = {};  // jobs that go on after the action that made them
};

void failed(Host& host, const char* what, const Result& result) {
  const std::lock_guard<std::mutex> lock(host.mutex);
  ++host.failures;
  std::printf("FAILED: soak host: %s: %s; %s; exit code %d; %zu and %zu bytes: %.200s\n", what,
              result.summary().c_str(), result.message.c_str(), result.exit_code, result.out.size(),
              result.err.size(), result.command.c_str());
  std::fflush(stdout);
}

void failed(Host& host, const std::string& what) {
  Result none;
  failed(host, what.c_str(), none);
}

// actions -----------------------------------------------------------------------------------------

void both_streams(Host& host, Random& random) {
  const std::string number = std::to_string(random.below(1000000));
  const int code = random.below(200);
  const Result result = host.executor->run("echo out" + number + "; echo err" + number +
                                           " >&2; exit " + std::to_string(code));
  if (result.outcome != Outcome::exited || result.exit_code != code ||
      result.out != "out" + number + "\n" || result.err != "err" + number + "\n")
    failed(host, "both streams", result);
}

void with_input(Host& host, Random& random) {
  Command command = Command::program({"cat"});
  command.input = std::string(static_cast<std::size_t>(1 + random.below(60000)), 'i');
  const Result result = host.executor->run(command);
  if (!result.succeeded() || result.out != command.input) failed(host, "input", result);
}

void floods(Host& host, Random& random) {
  unsigned long long seen = 0;
  Command command = Command::shell("yes 0123456789abcde | head -c " + std::to_string(flood));
  command.merge_streams = random.below(2) == 0;
  command.on_output = [&seen](codeexec::Stream, std::string_view bytes) { seen += bytes.size(); };
  const Result result = host.executor->run(command);
  const bool whole = result.out_counts.total_bytes == flood && seen == flood &&
                     result.out_counts.dropped_bytes == flood - max_output;
  if (!result.succeeded() || !whole || result.out.compare(0, 16, "0123456789abcde\n") != 0)
    failed(host, "flood", result);
}

void times_out(Host& host, Random& random) {
  const char* const scripts[] = {"sleep 600", "trap '' TERM; sleep 600; sleep 600",
                                 "setsid sleep 600 & trap '' TERM; while :; do sleep 1; done",
                                 "yes > /dev/null & yes > /dev/null & wait"};
  Command command = Command::shell(scripts[random.below(4)]);
  command.timeout = milliseconds(50 + random.below(500));
  const Result result = host.executor->run(command);
  if (result.outcome != Outcome::timed_out) failed(host, "timeout", result);
}

void leaves_a_daemon(Host& host, Random& random) {
  const bool holds = random.below(2) == 0;
  const Result result = host.executor->run(holds ? "setsid sleep 600 & echo left"
                                                 : "setsid sleep 600 > /dev/null 2>&1 & echo left");
  if (!result.succeeded() || result.out != "left\n") failed(host, "daemon", result);
}

void cancels(Host& host, Random& random) {
  Command command = Command::shell(random.below(2) == 0 ? "sleep 600" : "trap '' TERM; sleep 600");
  const codeexec::CancelToken token;
  command.cancel = token;
  const codeexec::Execution running = host.executor->start(command);
  running.wait_for(milliseconds(random.below(200)));
  if (random.below(2) == 0)
    token.cancel();
  else
    running.cancel();
  const Result result = running.wait();
  if (result.outcome != Outcome::cancelled) failed(host, "cancel", result);
  const std::lock_guard<std::mutex> lock(host.mutex);
  ++host.cancels;
}

// A started command whose handle goes away is killed.
void drops_a_handle(Host& host, Random& random) {
  const codeexec::Execution running = host.executor->start(Command::shell("sleep 600"));
  running.wait_for(milliseconds(random.below(50)));
}

void is_written_to(Host& host, Random& random) {
  Command command = Command::shell("cat; exit 5");
  command.keep_input_open = true;
  const codeexec::Execution running = host.executor->start(command);
  const std::string line = "line " + std::to_string(random.below(1000)) + "\n";
  const bool written = running.write(line).has_value() && running.write(line).has_value();
  running.close_input();
  const Result result = running.wait();
  if (!written || result.exit_code != 5 || result.out != line + line) failed(host, "write", result);
}

void refuses(Host& host, Random& random) {
  const char* const scripts[] = {"sudo ls", "rm -rf /", "git push --force", "echo ok; su root"};
  const Result result = host.executor->run(scripts[random.below(4)]);
  if (result.outcome != Outcome::refused || result.rule.empty()) failed(host, "refusal", result);
  const Result missing = host.executor->run(Command::program({"/nonexistent/program"}));
  if (missing.outcome != Outcome::not_started) failed(host, "no program", missing);
}

void keeps_a_session(Host& host, Random& random) {
  Command command = Command::shell("export N=$((${N:-0} + 1)); echo $N; cd /tmp");
  command.session = codeexec::Session();
  const int times = 1 + random.below(4);
  for (int count = 1; count <= times; ++count) {
    const Result result = host.executor->run(command);
    if (!result.succeeded() || result.out != std::to_string(count) + "\n")
      failed(host, "session", result);
  }
}

void runs_code(Host& host, Random& random) {
  const std::string number = std::to_string(random.below(8));
  const codeexec::CodeResult ran =
      random.below(4) == 0
          ? codeexec::run_code(*host.executor, "python", "print(" + number + " + 1 - 1)")
          : codeexec::run_code(*host.executor, "sh", "echo " + number);
  if (!ran.succeeded || ran.results.size() != 1)
    failed(host, "code: " + ran.message);
  else if (ran.results[0].out != number + "\n")
    failed(host, "code", ran.results[0]);
}

void keeps_jobs(Host& host, Random& random) {
  Command command = Command::shell("echo ready; read x; echo got $x; exec sleep 600");
  command.keep_input_open = true;
  const auto started = host.jobs->start(command);
  // Others have as many running as may run.
  if (!started && started.error().code == codeexec::ErrorCode::limit) return;
  if (!started) return failed(host, "start of a job: " + started.error().message);
  const std::string& id = started->id;
  codeexec::Jobs::Wait until;
  until.pattern = *codeexec::Regex::compile("^got [0-9]+$");
  const std::string number = std::to_string(random.below(1000));
  const bool written = host.jobs->write(id, number + "\n").has_value();
  const auto waited = host.jobs->wait(id, until);
  const auto read = host.jobs->read(id);
  if (!written || !waited || *waited != codeexec::Jobs::WaitEnd::matched || !read ||
      read->out.text != "ready\ngot " + number + "\n")
    failed(host, "job " + (read ? read->out.text : read.error().message));
  if (random.below(3) == 0) {
    const std::lock_guard<std::mutex> lock(host.mutex);
    host.forgotten.push_back(id);
    return;
  }
  const auto killed = host.jobs->kill(id);
  if (!killed || !*killed) failed(host, "kill of a job");
}

void ends_forgotten(Host& host, Random&) {
  std::vector<std::string> ids;
  {
    const std::lock_guard<std::mutex> lock(host.mutex);
    ids.swap(host.forgotten);
  }
  for (const std::string& id : ids) {
    const auto killed = host.jobs->kill(id);
    if (!killed || !*killed) failed(host, "kill of a forgotten job");
  }
}

void goes_to_the_background(Host& host, Random& random) {
  const auto ran = host.jobs->run(Command::shell("echo begun; sleep 0.2; echo done"),
                                  milliseconds(random.below(400)));
  if (ran.id.empty()) {
    if (!ran.result.succeeded() || ran.result.out != "begun\ndone\n")
      failed(host, "foreground", ran.result);
    return;
  }
  const auto waited = host.jobs->wait(ran.id);
  const auto read = host.jobs->read(ran.id);
  if (!waited || *waited != codeexec::Jobs::WaitEnd::ended || !read ||
      read->out.text != "begun\ndone\n")
    failed(host, "background " + (read ? read->out.text : read.error().message));
}

using Action = void (*)(Host&, Random&);

// How often each is done, in parts of all.
constexpr struct {
  int weight;
  Action action;
} actions[] = {{20, both_streams},   {6, with_input},
               {2, floods},          {6, times_out},
               {6, leaves_a_daemon}, {10, cancels},
               {4, drops_a_handle},  {8, is_written_to},
               {10, refuses},        {8, keeps_a_session},
               {6, runs_code},       {8, keeps_jobs},
               {2, ends_forgotten},  {4, goes_to_the_background}};

void act(Host& host, Random& random) {
  int sum = 0;
  for (const auto& each : actions) sum += each.weight;
  int drawn = random.below(sum);
  for (const auto& each : actions) {
    drawn -= each.weight;
    if (drawn < 0) return each.action(host, random);
  }
}

// threads -----------------------------------------------------------------------------------------

void work(Host& host, std::uint64_t number) {
  Random random(host.seed * 1000 + number);
  std::unique_lock<std::mutex> lock(host.mutex);
  for (;;) {
    host.changed.wait(lock, [&host] { return host.going || host.stopping; });
    if (host.stopping) return;
    ++host.busy;
    const milliseconds pause = host.pause;
    lock.unlock();
    act(host, random);
    lock.lock();
    ++host.actions;
    --host.busy;
    host.changed.notify_all();
    host.changed.wait_for(lock, pause, [&host] { return !host.going || host.stopping; });
  }
}

// Of what was taken from the heap, what is in use: unlike the resident set it does not depend on
// how the pieces lie.
unsigned long long heap_in_use() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  malloc_trim(0);
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

void make_jobs(Host& host) {
  codeexec::JobOptions options;
  options.max_running = 4;
  options.max_finished = 8;
  host.jobs.reset();
  host.jobs = std::make_unique<codeexec::Jobs>(*host.executor, options);
}

void report(Host& host, const char* word) {
  std::unique_lock<std::mutex> lock(host.mutex);
  host.going = false;
  host.changed.notify_all();
  host.changed.wait(lock, [&host] { return host.busy == 0; });
  host.forgotten = {};
  make_jobs(host);
  std::printf("%s %llu %llu %llu %llu\n", word, host.actions, host.cancels, host.failures,
              heap_in_use());
  std::fflush(stdout);
}

bool make_executor(Host& host, const char* directory) {
  codeexec::LocalOptions options;
  options.workspace = directory;
  options.max_output = max_output;
  options.policy.blocked = {"git push.*"};
  options.on_audit = [](const codeexec::AuditRecord& record) { to_json(record).dump(); };
  // What soak.py finds processes again by.
  if (const char* mark = std::getenv("CODEEXEC_SOAK"))
    options.environment.set = {{"CODEEXEC_SOAK", mark}};
  auto made = codeexec::LocalExecutor::create(options);
  if (!made) {
    std::printf("FAILED: soak host: %s\n", made.error().message.c_str());
    return false;
  }
  host.executor = std::make_unique<codeexec::LocalExecutor>(std::move(*made));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: codeexec-soak-host DIRECTORY SEED THREADS\n");
    return 2;
  }
  Host host;
  host.seed = std::strtoull(argv[2], nullptr, 10);
  if (!make_executor(host, argv[1])) return 2;
  make_jobs(host);
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < std::strtoull(argv[3], nullptr, 10); ++number)
    threads.emplace_back([&host, number] { work(host, number); });

  char line[64];
  while (std::fgets(line, sizeof line, stdin)) {
    if (std::strcmp(line, "pause\n") == 0) {
      report(host, "paused");
    } else if (std::strncmp(line, "go ", 3) == 0) {
      const std::lock_guard<std::mutex> lock(host.mutex);
      host.pause = milliseconds(std::strtol(line + 3, nullptr, 10));
      host.going = true;
      host.changed.notify_all();
      std::printf("going\n");
      std::fflush(stdout);
    } else {
      break;
    }
  }
  {
    const std::lock_guard<std::mutex> lock(host.mutex);
    host.stopping = true;
    host.changed.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  report(host, "stopped");
  host.jobs.reset();
  return host.failures == 0 ? 0 : 1;
}
