// Options, and what a host finds unchanged.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <functional>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::Expected;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::has;
using support::in;
using support::LeakCheck;
using support::long_script;
using support::make;
using support::output_of;

TEST_CASE("every wrong option is an error of create() that names it") {
  const support::TempDir place;
  const std::string file = place.file("file", "#!/bin/sh\n", 0755);
  const std::string plain = place.file("plain");
  const std::string missing = place / "missing";
  support::make_symlink(plain, place / "link");
  REQUIRE(::mkfifo((place / "fifo").c_str(), 0600) == 0);
  const std::string nul("/bin/sh\0x", 9);
  struct Case {
    const char* named;
    std::function<void(LocalOptions&)> spoil;
  };
  const std::vector<Case> cases = {
      {"timeout", [](LocalOptions& o) { o.timeout = milliseconds(0); }},
      {"timeout", [](LocalOptions& o) { o.timeout = milliseconds(-500); }},
      {"max_timeout", [](LocalOptions& o) { o.max_timeout = milliseconds(0); }},
      {"kill_grace", [](LocalOptions& o) { o.kill_grace = milliseconds(0); }},
      {"max_timeout", [](LocalOptions& o) { o.max_timeout = seconds(59); }},
      {"max_output", [](LocalOptions& o) { o.max_output = 1023; }},
      {"max_output", [](LocalOptions& o) { o.max_output = 0; }},
      {"max_spill", [](LocalOptions& o) { o.max_spill = 0; }},
      {"max_spill_total", [](LocalOptions& o) { o.max_spill_total = 0; }},
      {"workspace", [&](LocalOptions& o) { o.workspace = missing; }},
      {"workspace", [&](LocalOptions& o) { o.workspace = file; }},
      {"workspace", [&](LocalOptions& o) { o.workspace = nul; }},
      {"allowed_paths",
       [&](LocalOptions& o) {
         o.roots = {{missing, Permission::write}};
       }},
      {"allowed_paths",
       [&](LocalOptions& o) {
         o.roots = {{file, Permission::write}};
       }},
      {"allowed_paths",
       [&](LocalOptions& o) {
         o.roots = {{"", Permission::write}};
       }},
      {"allowed_commands", [](LocalOptions& o) { o.policy.allowed = {"("}; }},
      {"blocked_commands",
       [](LocalOptions& o) {
         o.policy.blocked = {"ok", "(?=x)"};
       }},
      {"disabled_rules", [](LocalOptions& o) { o.policy.disabled_rules = {"sodu"}; }},
      {"spill_dir", [&](LocalOptions& o) { o.spill_dir = missing; }},
      {"spill_dir", [&](LocalOptions& o) { o.spill_dir = file; }},
      {"spill_dir", [&](LocalOptions& o) { o.spill_dir = nul; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = missing + "/log"; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place.path(); }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place / "fifo"; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place / "link"; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place.path() + nul; }},
      {"shell", [&](LocalOptions& o) { o.shell = missing; }},
      {"shell", [&](LocalOptions& o) { o.shell = plain; }},
      {"shell", [&](LocalOptions& o) { o.shell = place.path(); }},
      {"shell", [](LocalOptions& o) { o.shell = ""; }},
      {"shell", [](LocalOptions& o) { o.shell = "sh"; }},
      {"shell", [&](LocalOptions& o) { o.shell = nul; }},
      {"skills_dir", [&](LocalOptions& o) { o.skills_dir = missing; }},
      {"skills_dir", [&](LocalOptions& o) { o.skills_dir = file; }},
      {"venv_path", [&](LocalOptions& o) { o.environment.venv_path = missing; }},
      {"venv_path", [&](LocalOptions& o) { o.environment.venv_path = place.path(); }},
      {"command_prefix", [](LocalOptions& o) { o.environment.command_prefix = " "; }},
      {"command_prefix", [](LocalOptions& o) { o.environment.command_prefix = "a\nb"; }},
      {"keep", [](LocalOptions& o) { o.environment.keep = {"A=B"}; }},
      {"set",
       [](LocalOptions& o) {
         o.environment.set = {{"", "x"}};
       }},
  };
  for (const Case& each : cases) {
    LocalOptions options = in(place);
    each.spoil(options);
    const LeakCheck leaks;
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    CAPTURE(each.named);
    REQUIRE(!made);
    CAPTURE(made.error().message);
    CHECK(has(made.error().message, each.named));
    CHECK(!has(made.error().message, "\n"));
    CHECK(!has(made.error().message, std::string_view("\0", 1)));
    CHECK(leaks.clean());
  }
  CHECK(LocalExecutor::create(in(place)));
}

TEST_CASE("defaults are what the declarations say") {
  const LocalExecutor here = make({});
  CHECK(here.options().timeout == seconds(60));
  CHECK(here.options().max_timeout == seconds(3600));
  CHECK(LocalOptions().max_output == 1048576);
  CHECK(output_of(here, "echo $0") == "/bin/sh\n");
}

TEST_CASE("copies of an executor are the same executor") {
  LocalOptions options;
  options.policy.blocked = {"ls.*"};
  std::optional<LocalExecutor> first = make(options);
  const LocalExecutor copy = *first;
  first.reset();
  CHECK(copy.run("ls").rule == "blocked-commands");
  CHECK(output_of(copy, "echo x") == "x\n");
}

TEST_CASE("W-24: skills are linked once, and never in place of something else") {
  const support::TempDir skills;
  skills.file("skill.md", "text");
  SUBCASE("linked before the first command that runs") {
    const support::TempDir place;
    LocalOptions options = in(place);
    options.skills_dir = skills.path() + "/.";
    const LocalExecutor here = make(options);
    CHECK(here.run("sudo ls").outcome == Outcome::refused);
    CHECK(!support::exists(place / ".agent"));
    CHECK(output_of(here, "cat .agent/skills/skill.md") == "text");
    CHECK(support::real_path(place / ".agent/skills") == skills.path());
    CHECK(here.run("true").notes.empty());
    CHECK(make(options).run("true").notes.empty());  // as it was left
  }
  SUBCASE("a directory of the user's own stays") {
    const support::TempDir place;
    place.file(".agent/skills/mine.md", "mine");
    LocalOptions options = in(place);
    options.skills_dir = skills.path();
    const LocalExecutor here = make(options);
    const Result r = here.run("cat .agent/skills/mine.md");
    CHECK(r.out == "mine");
    REQUIRE(r.notes.size() == 1);
    CHECK(has(r.notes[0], "cannot link the skills as "));
    CHECK(support::read_file(place / ".agent/skills/mine.md") == "mine");
  }
  SUBCASE("a link to something else stays") {
    const support::TempDir place;
    const support::TempDir other;
    place.directory(".agent");
    support::make_symlink(other.path(), place / ".agent/skills");
    LocalOptions options = in(place);
    options.skills_dir = skills.path();
    CHECK(make(options).run("true").notes.size() == 1);
    CHECK(support::real_path(place / ".agent/skills") == other.path());
  }
  SUBCASE("a file in the way stays, and the command runs") {
    const support::TempDir place;
    place.file(".agent", "a file");
    LocalOptions options = in(place);
    options.skills_dir = skills.path();
    const Result r = make(options).run("cat .agent");
    CHECK(r.succeeded());
    CHECK(r.out == "a file");
    CHECK(r.notes.size() == 1);
  }
  SUBCASE("no link is made where a link leads") {
    const support::TempDir place;
    const support::TempDir outside;
    support::make_symlink(outside.path(), place / ".agent");
    LocalOptions options = in(place);
    options.skills_dir = skills.path();
    const Result r = make(options).run("true");
    CHECK(!support::exists(outside / "skills"));
    REQUIRE(r.notes.size() == 1);
    CHECK(has(r.notes[0], "cannot link the skills as "));
  }
}

TEST_CASE("the summary of every outcome") {
  Result r;
  r.wall_time = milliseconds(1250);
  r.out_counts.total_bytes = 10;
  r.err_counts.total_bytes = 3;
  const std::string tail = " in 1.25 s; 10 bytes on stdout, 3 on stderr";
  r.outcome = Outcome::exited;
  r.exit_code = 3;
  CHECK(r.summary() == "exited with status 3" + tail);
  r.outcome = Outcome::signaled;
  r.signal = 9;
  CHECK(r.summary() == "killed by SIGKILL" + tail);
  r.outcome = Outcome::timed_out;
  r.timeout = milliseconds(1500);
  CHECK(r.summary() == "timed out after 1.5 s" + tail);
  r.outcome = Outcome::cancelled;
  CHECK(r.summary() == "cancelled" + tail);
  r.outcome = Outcome::unknown;
  CHECK(r.summary() == "ended, but its status could not be learned" + tail);
  r.err_counts.dropped_bytes = 1;
  CHECK(r.summary() == "ended, but its status could not be learned" + tail + " (shortened)");
  r.message = "because";
  r.outcome = Outcome::not_started;
  CHECK(r.summary() == "not started: because");
  r.outcome = Outcome::refused;
  r.rule = "dd";
  CHECK(r.summary() == "refused (dd): because");
}

TEST_CASE("the host's directory, descriptors and signal dispositions are left alone") {
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  const std::string before = support::real_path(".");
  struct sigaction old_child {};
  ::sigaction(SIGCHLD, nullptr, &old_child);
  const LeakCheck leaks;
  here.run("cd /; exit 1");
  here.run("sudo ls");
  here.run(long_script(200000));
  here.start(Command::shell("true")).wait();
  CHECK(support::real_path(".") == before);
  CHECK(leaks.clean());
  struct sigaction now_child {};
  ::sigaction(SIGCHLD, nullptr, &now_child);
  CHECK((now_child.sa_handler == old_child.sa_handler));
}
