// Every system call of the library made to fail, one at a time:
//   codeexec-test-faults [--all [--every N]] [--jobs N] [--told] [SCENARIO[:WHO:CALL[:NTH...]]]...
// A scenario is a use of the library. It runs once to learn which calls it makes, and then again in
// a fresh process for each fault. By default that is the first and the last call of a kind by each
// of host, child and grandchild (see Who); with --all it is every call with every errno it may
// give, or every Nth of these. What must hold each time:
//   - the result is as without the fault, or says what failed, and nothing is called a success that
//     is none, nor a program not started that was executed;
//   - it does not hang, crash or throw;
//   - no descriptor, thread, process, zombie, file or cgroup is left, and the signal mask is as it
//     was;
//   - the same again in the same process gives the right result.
// Prints a line for each scenario and each failure; --told also what was said of each fault. Exit
// status 1 after a failure, 77 where processes cannot be traced.
#if defined(__linux__) && defined(__x86_64__)

#include <atomic>
#include <exception>

#include "../helpers/support.hpp"
#include "scenarios.hpp"
#include "snapshot.hpp"
#include "tracer.hpp"

namespace {

using faults::Fault;
using faults::Kind;
using faults::Place;
using faults::Report;
using faults::Snapshot;
using faults::Trace;
using faults::Who;
using std::chrono::seconds;
using support::has;

struct Scenario {
  const char* name;
  void (*run)(Place& place, Report& report);
  bool runs_once = true;  // one program and no other
};

constexpr Scenario scenarios[] = {
    {"plain", faults::plain},
    {"handles", faults::handles},
    {"input", faults::input},
    {"timeout", faults::timeout},
    {"cancel", faults::cancel},
    {"background", faults::background},
    {"spill", faults::spill},
    {"supervised", faults::supervised},
    {"supervised-timeout", faults::supervised_timeout},
    {"held", faults::held},
    {"start", faults::start},
    {"abandoned", faults::abandoned},
    {"strict", faults::strict},
    {"best-effort", faults::best_effort},
    {"limits", faults::limits},
    {"ordinary-user", faults::ordinary_user},
    {"audited", faults::audited},
    {"session", faults::session, false},
    {"jobs", faults::jobs},
    {"code", faults::code},
    {"files", faults::files},
    {"serve", faults::serve},
    {"docker", faults::docker, false},
    {"no-docker", faults::no_docker},
};
constexpr std::size_t scenario_count = sizeof scenarios / sizeof scenarios[0];

bool removes(long number) {
  return number == SYS_rmdir || number == SYS_unlink || number == SYS_unlinkat;
}

std::string report_of(const Scenario& scenario, const std::string& directory, const Fault* fault) {
  Place place(directory);
  support::make_directories(place.workspace());
  support::make_directories(place / "tmp");
  if (::setenv("TMPDIR", (place / "tmp").c_str(), 1) != 0) support::fail("setenv", "TMPDIR");
  if (::setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1) != 0) support::fail("setenv", "PATH");
  if (scenario.run == faults::ordinary_user) faults::become_ordinary(place);
  std::string text;
  const auto judge = [&](const char* when, Report& report) {
    const Snapshot before(place);
    try {
      scenario.run(place, report);
    } catch (const std::exception& thrown) {
      report.problem(std::string("thrown: ") + thrown.what());
    }
    const std::string left = faults::in_time([&] { return before.difference(Snapshot(place)); });
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
  const std::string children = faults::in_time([&] {
    if (!faults::has_children().empty()) codeexec::run_process(faults::program(place, {"true"}));
    return faults::has_children();
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
    if (trace.executed && scenarios[one.scenario].runs_once &&
        support::begins(all.told, "not started"))
      all.problems.push_back("it was executed, and is told as " + all.told);
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
