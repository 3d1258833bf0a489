// Scenarios of faults.cpp: commands of an executor, in a sandbox or not, code and files.
#include "scenarios.hpp"

#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "region.hpp"

namespace faults {
namespace {

using codeexec::Outcome;
using codeexec::Result;
using std::chrono::seconds;
using support::has;

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

}  // namespace

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

void jobs(Place& place, Report& report) {
  codeexec::Command command =
      codeexec::Command::shell("read line; echo got $line; setsid sleep 1000 & sleep 1000");
  command.keep_input_open = true;
  const codeexec::LocalOptions options = local(place);
  const auto pattern = codeexec::Regex::compile("^got");
  Result failure;
  Region region;
  const auto executor = codeexec::LocalExecutor::create(options);
  if (!report.judge(executor, "create")) return;
  codeexec::Jobs all(*executor);
  const auto status = all.start(command, &failure);
  if (!status) {
    // There is none of what was not tried.
    if (!failure.command.empty()) report.judge(failure, false);
    return report.told("start", status.error());
  }
  if (!report.judge(all.write(status->id, "hi\n"), "write")) return;
  codeexec::Jobs::Wait wait;
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
  if (*waited == codeexec::Jobs::WaitEnd::matched && output->out.text == "got hi\n" && *killed &&
      after->state == codeexec::JobState::killed)
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
  const std::vector<codeexec::Root> roots = {{place.workspace()}};
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

}  // namespace faults
