// Every allocation of a command made to fail, one at a time:
//   codeexec-test-memory [--told] [SCENARIO[:N]]...
// A scenario is a use of an executor. For n = 1, 2, ... the n-th allocation of this process fails
// from the moment on when the command is given to the executor, in whatever thread of the library
// it is; then those from the n-th to the (n + 7)-th, for every third n. What must hold each time:
//   - nothing is thrown, aborts or hangs;
//   - the result is as without the fault, or says in words what failed, or what is missing in it;
//     what is told not to have started has not run;
//   - on_end is called once for each command that has started, and with what wait() gives;
//   - no process, zombie, thread, descriptor or file is left, and the next command works.
// A worker does it, whose place another one takes when it dies. Exit status 1 after a failure, 77
// where a lack of memory cannot be caught.
#if defined(__linux__) && defined(__cpp_exceptions)

#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>

#include "../helpers/support.hpp"
#include "scenarios.hpp"
#include "snapshot.hpp"

namespace {

// The allocations of this process -----------------------------------------------------------------

std::atomic<bool> is_counting{false};
std::atomic<long> allocations{0};
std::atomic<long> first_failing{0};
std::atomic<long> last_failing{0};

bool fails_now() noexcept {
  if (!is_counting.load(std::memory_order_relaxed)) return false;
  const long n = ++allocations;
  return n >= first_failing.load() && n <= last_failing.load();
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (fails_now()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* const place = allocate(size, alignment);
  if (!place) throw std::bad_alloc();
  return place;
}

}  // namespace

// NOLINTBEGIN(misc-definitions-in-headers,cert-dcl58-cpp)
void* operator new(std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void operator delete(void* place) noexcept { std::free(place); }
void operator delete[](void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }
void operator delete[](void* place, std::size_t) noexcept { std::free(place); }
void operator delete(void* place, std::align_val_t) noexcept { std::free(place); }
void operator delete[](void* place, std::align_val_t) noexcept { std::free(place); }
void operator delete(void* place, std::size_t, std::align_val_t) noexcept { std::free(place); }
void operator delete[](void* place, std::size_t, std::align_val_t) noexcept { std::free(place); }
void operator delete(void* place, const std::nothrow_t&) noexcept { std::free(place); }
void operator delete[](void* place, const std::nothrow_t&) noexcept { std::free(place); }
// NOLINTEND(misc-definitions-in-headers,cert-dcl58-cpp)

namespace {

constexpr const char* out_of = "out of memory";

using codeexec::Command;
using codeexec::Execution;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using faults::Place;
using faults::Snapshot;
using std::chrono::milliseconds;
using std::chrono::seconds;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_slow = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool is_slow = true;
#else
constexpr bool is_slow = false;
#endif
#else
constexpr bool is_slow = false;
#endif

// Allocations fail while there is one.
class Shortage {
 public:
  Shortage() { is_counting.store(true); }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;
  ~Shortage() { end(); }
  void end() { is_counting.store(false); }
};

// What one use has shown. Its members take no memory while there is a shortage.
struct Use {
  const Place& place;
  std::string problem = {};
  int told = 0;  // results that say that something failed

  void check(bool holds, const std::string& what) {
    if (!holds && problem.empty()) problem = what;
  }
  std::string mark(int i = 0) const { return place.workspace() + "/mark" + std::to_string(i); }

  // A command leaves a file if it runs; `expected` is how it ends, and `size` is that of its output
  // as it is kept, of `printed` bytes.
  void judge(const Result& r, Outcome expected, std::size_t size, int i = 0) {
    judge_kept(r, expected, size, size, i);
  }
  void judge_kept(const Result& r, Outcome expected, std::size_t size, std::uint64_t printed,
                  int i = 0) {
    std::string words = r.message;
    for (const std::string& note : r.notes) words += "; " + note;
    const std::string how =
        std::string(name(r.outcome)) + " with " + std::to_string(r.out.size()) + " bytes: " + words;
    const bool has_run = support::exists(mark(i));
    ::unlink(mark(i).c_str());
    if (r.outcome == Outcome::not_started) {
      ++told;
      check(!has_run, "it has run, and is told as " + how);
      check(!r.message.empty() && !r.step.empty(), "without a word: " + how);
      check(r.out.empty() && r.exit_code == -1, "what was not started has an end: " + how);
      return;
    }
    check(r.outcome == expected, "another end: " + how);
    check(expected != Outcome::exited || r.exit_code == 0, "a failure: " + how);
    check(has_run, "it has not run, and is told as " + how);
    if (r.out.size() == size) return;
    ++told;
    check(support::has(words, out_of), "output is missing: " + how);
    check(r.out_counts.total_bytes == printed || support::has(words, "output and notes"),
          "the bytes are not counted: " + how);
  }
};

// Callbacks, which take no memory.
struct Heard {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<int> ends{0};
  std::atomic<int> records{0};
  std::atomic<Outcome> outcome{Outcome::unknown};
};

Command heard_by(Heard& heard, Command command) {
  command.on_output = [&heard](codeexec::Stream, std::string_view bytes) {
    heard.bytes += bytes.size();
  };
  command.on_end = [&heard](const Result& r) {
    heard.outcome = r.outcome;
    ++heard.ends;
  };
  return command;
}

// Scenarios ---------------------------------------------------------------------------------------

constexpr const char* marked = ": > mark0; echo hello";
constexpr std::size_t hello = 6;
constexpr std::size_t much = 900000;
constexpr const char* prints_much = ": > mark0; head -c 900000 /dev/zero | tr '\\0' a";

void run(Use& use, const LocalExecutor& executor) {
  Result r;
  {
    const Shortage shortage;
    r = executor.run(marked);
  }
  use.judge(r, Outcome::exited, hello);
}

void output(Use& use, const LocalExecutor& executor) {
  Heard heard;
  const Command command = heard_by(heard, Command::shell(prints_much));
  Result r;
  {
    const Shortage shortage;
    r = executor.run(command);
  }
  use.judge(r, Outcome::exited, much);
  use.check(heard.ends == 0, "on_end was called in run()");
  const bool has_all = heard.bytes == much || r.outcome == Outcome::not_started;
  use.check(has_all || support::has(r.message, out_of), "on_output has missed something");
}

// Started commands, of which there is a handle until the end.
void end_of(Use& use, const Heard& heard, const Result& r, Outcome expected, std::size_t size,
            int i = 0) {
  use.judge(r, expected, size, i);
  const bool started = r.outcome != Outcome::not_started;
  use.check(heard.ends == (started ? 1 : 0),
            "on_end was called " + std::to_string(heard.ends.load()) + " times: " + r.message);
  use.check(!started || heard.outcome == r.outcome, "on_end had another outcome");
}

void start(Use& use, const LocalExecutor& executor) {
  Heard heard;
  const Command command = heard_by(heard, Command::shell(prints_much));
  Result r;
  {
    const Shortage shortage;
    const Execution handle = executor.start(command);
    r = handle.wait();
  }
  end_of(use, heard, r, Outcome::exited, much);
}

void cancel(Use& use, const LocalExecutor& executor) {
  Heard heard;
  const Command command = heard_by(heard, Command::shell(": > mark0; exec sleep 100"));
  const std::string mark = use.mark();
  Result r;
  {
    const Shortage shortage;
    const Execution handle = executor.start(command);
    while (!handle.done() && ::access(mark.c_str(), F_OK) != 0) ::poll(nullptr, 0, 1);
    handle.cancel();
    r = handle.wait();
  }
  end_of(use, heard, r, Outcome::cancelled, 0);
}

// The event loop of a program, for its callbacks.
class Tasks {
 public:
  codeexec::Function<void(codeexec::Function<void()>)> post() {
    return [this](codeexec::Function<void()> task) {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_[(first_ + count_++) % most] = std::move(task);
      added_.notify_one();
    };
  }
  // Does one, if there is one soon.
  void turn() {
    codeexec::Function<void()> task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!added_.wait_for(lock, milliseconds(5), [this] { return count_ > 0; })) return;
      task = std::exchange(tasks_[first_], nullptr);
      first_ = (first_ + 1) % most;
      --count_;
    }
    task();
  }

 private:
  static constexpr std::size_t most = 16;  // there is one at a time of each command
  std::mutex mutex_ = {};
  std::condition_variable added_ = {};
  codeexec::Function<void()> tasks_[most] = {};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

Tasks& tasks() {
  static Tasks all;
  return all;
}

void posted(Use& use, const LocalExecutor& executor) {
  Heard heard;
  const Command command = heard_by(heard, Command::shell(prints_much));
  Result r;
  {
    const Shortage shortage;
    const Execution handle = executor.start(command);
    const bool never = handle.done() && handle.pid() < 0;
    while (!never && heard.ends == 0) tasks().turn();
    r = handle.wait();
  }
  end_of(use, heard, r, Outcome::exited, much);
}

void timeout(Use& use, const LocalExecutor& executor) {
  Command command = Command::shell("exec sleep 100");
  command.timeout = milliseconds(20);
  support::write_file(use.mark(), "");  // it may have no time to do so
  Result r;
  {
    const Shortage shortage;
    r = executor.run(command);
  }
  if (r.outcome == Outcome::not_started) ::unlink(use.mark().c_str());
  use.judge(r, Outcome::timed_out, 0);
}

void session(Use& use, const LocalExecutor& executor) {
  Command command = Command::shell(": > mark0; mkdir -p sub; cd sub; export A=b; echo hello");
  command.session.emplace();
  const codeexec::Session kept = *command.session;
  Result r;
  {
    const Shortage shortage;
    r = executor.run(command);
  }
  ::rmdir((use.place.workspace() + "/sub").c_str());
  use.judge(r, Outcome::exited, hello);
  const bool is_told = !r.message.empty() || !r.notes.empty();
  use.check(is_told || !kept.work_dir().empty(), "the session has lost its folder in silence");
}

void queued(Use& use, const LocalExecutor& executor) {
  constexpr int count = 4;
  Heard heard[count];
  Command commands[count];
  for (int i = 0; i < count; ++i)
    commands[i] =
        heard_by(heard[i], Command::shell(": > mark" + std::to_string(i) + "; echo hello"));
  Result results[count];
  {
    const Shortage shortage;
    Execution handles[count];
    for (int i = 0; i < count; ++i) handles[i] = executor.start(commands[i]);
    for (int i = 0; i < count; ++i) results[i] = handles[i].wait();
  }
  for (int i = 0; i < count; ++i) end_of(use, heard[i], results[i], Outcome::exited, hello, i);
}

std::atomic<int> records{0};

void audited(Use& use, const LocalExecutor& executor) {
  records = 0;
  Heard heard;
  const Command command = heard_by(heard, Command::shell(marked));
  Result r;
  {
    const Shortage shortage;
    const Execution handle = executor.start(command);
    r = handle.wait();
  }
  end_of(use, heard, r, Outcome::exited, hello);
  const std::string file = use.place / "audit";
  const auto lines = support::lines_of(support::read_file(file));
  const std::string words = r.message + (r.notes.empty() ? "" : r.notes.back());
  const bool is_told = support::has(words, out_of) || support::has(words, "Cannot allocate memory");
  use.check(is_told || (lines.size() == 1 && records == 1), "no record, and no word of it");
  for (const std::string& line : lines)
    use.check(line.front() == '{' && line.back() == '}', "half a record: " + line);
  (void)executor.run("true");
  const std::size_t before = lines.size();
  use.check(support::lines_of(support::read_file(file)).size() >= before + 1,
            "no record of the next command");
  ::unlink(file.c_str());
}

void spilled(Use& use, const LocalExecutor& executor) {
  const Command command = Command::shell(": > mark0; head -c 300000 /dev/zero | tr '\\0' a");
  Result r;
  {
    const Shortage shortage;
    r = executor.run(command);
  }
  const bool is_whole = r.out_counts.file_bytes == 300000 && !r.out_file.empty();
  use.check(is_whole || !r.message.empty(), "the file is not whole, without a word");
  if (!r.out_file.empty()) ::unlink(r.out_file.c_str());
  static std::size_t usual = r.out.size();  // of the use without a shortage
  use.judge_kept(r, Outcome::exited, usual, 300000);
}

// What the executor of a scenario is made with.
void plain(LocalOptions&, const Place&) {}
void posts(LocalOptions& options, const Place&) { options.post = tasks().post(); }
void two(LocalOptions& options, const Place&) { options.max_concurrent = 2; }
void audit(LocalOptions& options, const Place& place) {
  options.audit_file = place / "audit";
  options.on_audit = [](const codeexec::AuditRecord&) { ++records; };
}
void spills(LocalOptions& options, const Place& place) {
  options.spill_dir = place / "spilled";
  options.max_output = 1024;
}
void sandbox(LocalOptions& options, const Place&) {
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.private_home = codeexec::PrivateHome::command;
}

struct Scenario {
  const char* name;
  void (*use)(Use& use, const LocalExecutor& executor);
  void (*set)(LocalOptions& options, const Place& place);
};

constexpr Scenario scenarios[] = {
    {"run", run, plain},          {"output", output, plain},   {"start", start, plain},
    {"cancel", cancel, plain},    {"posted", posted, posts},   {"timeout", timeout, plain},
    {"session", session, plain},  {"queued", queued, two},     {"audited", audited, audit},
    {"spilled", spilled, spills}, {"sandboxed", run, sandbox}, {"sandboxed-start", start, sandbox},
};

// All of them -------------------------------------------------------------------------------------

// Of a worker, for the one that watches it.
struct Progress {
  std::atomic<long> n{0};  // what it does, or has done when it ends
  std::atomic<int> failures{0};
  std::atomic<int> done{0};
  std::atomic<int> told{0};
};

void print(const std::string& line) {
  const std::string whole = line + "\n";
  (void)!::write(1, whole.data(), whole.size());
}

// Children that send no signal at their end, too.
std::string has_children() {
  siginfo_t info = {};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) return {};
  return info.si_pid == 0 ? "a process is left" : "a zombie is left";
}

// One use, in which the allocations from n to `last` fail; n is 0 for none. False: it has fewer.
bool one_use(const Scenario& scenario, const Place& place, long n, long last, Use& use) {
  const Snapshot before(place);
  {
    LocalOptions options = faults::local(place);
    scenario.set(options, place);
    const auto executor = LocalExecutor::create(options);
    if (!executor) support::fail("create", executor.error().message);
    allocations = 0;
    first_failing = n;
    last_failing = last;
    try {
      scenario.use(use, *executor);
    } catch (const std::exception& thrown) {
      is_counting = false;
      use.check(false, std::string("thrown: ") + thrown.what());
    }
    const Result next = executor->run("echo next");
    use.check(next.out == "next\n", "the next command: " + next.summary() + next.message);
    ::unlink((place / "audit").c_str());
  }
  const std::string left = faults::in_time([&] { return before.difference(Snapshot(place)); });
  use.check(left.empty(), left);
  const std::string files = before.difference_of_files(Snapshot(place));
  use.check(files.empty(), files);
  const std::string children = faults::in_time(has_children);
  use.check(children.empty(), children);
  return allocations >= n;
}

// For each n from `from` on.
void work(const Scenario& scenario, long from, long burst, long step, bool all_told,
          Progress& progress) {
  constexpr unsigned patience = 60;  // it is killed then
  const support::TempDir directory;
  const Place place(directory.path());
  support::make_directories(place.workspace());
  support::make_directories(place / "spilled");
  Use dry{place};
  (void)one_use(scenario, place, 0, -1, dry);
  if (!dry.problem.empty()) {
    print(std::string("FAILED: ") + scenario.name + " without a fault: " + dry.problem);
    ++progress.failures;
    return;
  }
  for (long n = from;; n += step) {
    progress.n = n;
    ::alarm(patience);
    Use use{place};
    const bool is_reached = one_use(scenario, place, n, n + burst - 1, use);
    if (is_reached) ++progress.done;
    if (use.told > 0) ++progress.told;
    const std::string name = std::string(scenario.name) + ":" + std::to_string(n);
    if (all_told && use.told > 0) print("told: " + name);
    if (!use.problem.empty()) {
      print("FAILED: " + name + " (" + std::to_string(burst) + "): " + use.problem);
      ++progress.failures;
    }
    if (!is_reached) break;
  }
  ::alarm(0);
}

// Goes on behind what has ended a worker.
void watch(const Scenario& scenario, long from, long burst, long step, bool all_told,
           Progress& progress) {
  for (;;) {
    const pid_t pid = ::fork();
    if (pid < 0) support::fail("fork", "");
    if (pid == 0) {
      work(scenario, from, burst, step, all_told, progress);
      std::_Exit(0);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return;
    print(std::string("FAILED: ") + scenario.name + ":" + std::to_string(progress.n.load()) + " (" +
          std::to_string(burst) + "): it died of signal " + std::to_string(WTERMSIG(status)) +
          (WTERMSIG(status) == SIGALRM ? ": it hangs" : ""));
    if (++progress.failures > 50) return;
    from = progress.n + step;
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool all_told = false;
  std::vector<std::string> only;
  for (int i = 1; i < argc; ++i)
    if (argv[i] == std::string("--told"))
      all_told = true;
    else
      only.emplace_back(argv[i]);
  void* const memory = ::mmap(nullptr, 2 * sizeof(Progress), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) support::fail("mmap", "");
  if (is_slow) print("SKIPPED: memory: with a sanitizer every seventh allocation fails, not each");
  int failures = 0;
  int done = 0;
  for (const Scenario& scenario : scenarios) {
    long from = 1;
    bool is_wanted = only.empty();
    for (const std::string& word : only) {
      const std::size_t colon = std::min(word.find(':'), word.size());
      if (word.substr(0, colon) != scenario.name) continue;
      is_wanted = true;
      if (colon < word.size()) from = std::atol(word.c_str() + colon + 1);
    }
    if (!is_wanted) continue;
    // Both at the same time, as they mostly wait.
    Progress* const single = ::new (memory) Progress;
    Progress* const several = ::new (static_cast<void*>(single + 1)) Progress;
    const pid_t other = ::fork();
    if (other < 0) support::fail("fork", "");
    if (other == 0) {
      watch(scenario, from, 8, is_slow ? 21 : 3, all_told, *several);
      std::_Exit(0);
    }
    watch(scenario, from, 1, is_slow ? 7 : 1, all_told, *single);
    int status = 0;
    while (::waitpid(other, &status, 0) < 0 && errno == EINTR) {
    }
    const int wrong = single->failures + several->failures + (status == 0 ? 0 : 1);
    const int shortages = single->done + several->done;
    print((wrong == 0 ? "ok: " : "failed: ") + std::string(scenario.name) + ": " +
          std::to_string(shortages) + " shortages, " +
          std::to_string(single->told + several->told) + " of them told");
    failures += wrong;
    done += shortages;
  }
  print("memory: " + std::to_string(done) + " shortages, " + std::to_string(failures) +
        " failures");
  return failures == 0 && done > 0 ? 0 : 1;
}

#else

#include <cstdio>

int main() {
  std::puts(
      "SKIPPED: memory: without exceptions the C++ library ends a program that has none left");
  return 77;
}

#endif
