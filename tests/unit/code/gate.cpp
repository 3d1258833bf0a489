// Running code is running commands: judged, confined, bounded and recorded as those are.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::CancelToken;
using codeexec::CodeBlock;
using codeexec::CodeOptions;
using codeexec::CodeResult;
using codeexec::Expected;
using codeexec::infer_language;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::run_code;
using codeexec::SandboxMode;
using codeexec::Stream;
using support::Audit;
using support::audited;
using support::begins;
using support::describe;
using support::executor_in;
using support::has;
using support::in;
using support::make;
using support::names_in;
using support::output_of;
using support::safety;
using support::Strings;

// the gate ----------------------------------------------------------------------------------------

TEST_CASE("a shell's code is judged as the script it is, before anything is written") {
  const support::TempDir workspace;
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  const LocalExecutor executor = make(local);
  for (const char* language : {"sh", "bash"})
    for (const char* code : {"rm -rf /", "echo ok\nsudo rm -rf /\n", "# a.sh\nrm -rf /"}) {
      const std::string text = code;
      CAPTURE(text);
      audit = {};
      const CodeResult r = run_code(executor, {{language, text}, {"sh", "touch second"}});
      CHECK_FALSE(r.succeeded);
      CHECK(r.message == "");
      REQUIRE(r.results.size() == 1);
      CHECK(r.results[0].outcome == Outcome::refused);
      CHECK(r.results[0].rule != "");
      CHECK(r.results[0].command == text);
      CHECK(r.files.empty());
      CHECK(audit.commands == Strings{text});
      CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
    }
  CHECK(names_in(workspace.path()).empty());
}

TEST_CASE("of other languages the policy sees the command line, and what the code starts") {
  const support::TempDir workspace;
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  local.policy.allowed = {"^python3 .*"};
  const LocalExecutor executor = make(local);
  const CodeResult r = run_code(executor, "python", "print('rm -rf /')");
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].command == "python3 -u " + r.files[0]);
  CHECK(run_code(executor, "sh", "echo a").results.at(0).outcome == Outcome::refused);

  local.policy.allowed = {"^echo .*"};
  const LocalExecutor strict = make(local);
  audit = {};
  const std::string code = "print('never')\n";
  const CodeResult refused = run_code(strict, "python", "# never.py\n" + code);
  REQUIRE(refused.results.size() == 1);
  CHECK(refused.results[0].outcome == Outcome::refused);
  CHECK(refused.files.empty());
  CHECK_FALSE(support::exists(workspace / "never.py"));
  // A refusal is told with the code, too.
  CHECK(audit.codes == Strings{"# never.py\n" + code});
  CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
}

TEST_CASE("what code starts is judged as if the script started it, but for the allow list") {
  const support::TempDir workspace;
  LocalOptions local = in(workspace);
  local.policy.allowed = {"python3 .*"};
  local.policy.blocked = {"true push.*"};
  const std::string code = "import os\nos.system('true push -f')\n";
  const CodeResult refused = run_code(make(local), "python", code);
  REQUIRE(refused.results.size() == 1);
  CHECK(refused.results[0].outcome == Outcome::refused);
  CHECK(refused.results[0].rule == "blocked-commands");
  CHECK(refused.results[0].message ==
        "Command matches blocked pattern: 'true push.*' (true push -f)");
  CHECK(refused.files.empty());
  CHECK(names_in(workspace.path()).empty());
  CHECK(run_code(make(local), "python", "import os\nos.system('true pull')\n").succeeded);

  local.policy.blocked.clear();
  local.policy.ask_commands = {"true push.*"};
  std::string question;
  local.on_ask = [&question](codeexec::Approval& approval) {
    question = approval.message;
    approval.allowed = true;
  };
  CHECK(run_code(make(local), "python", code).succeeded);
  CHECK(has(question, "'true push.*' (true push -f)"));
}

TEST_CASE("W-53: Python is on the audit log with its code") {
  const support::TempDir workspace;
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  local.environment.set = {{"API_KEY", "s3cret-value"}};
  local.environment.secret = {"API_KEY"};
  const LocalExecutor executor = make(local);
  CodeOptions options;
  options.command.caller.tool = "execute_code";
  const std::string code = "x = 's3cret-value'\nprint(x)\n";
  const CodeResult r = run_code(executor, {{"python", code}, {"sh", "echo hi"}}, options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].out == "[redacted]\n");
  CHECK(audit.commands == Strings{"save '" + r.files[0] + "'", "python3 -u " + r.files[0],
                                  "save '" + r.files[1] + "'", "echo hi"});
  CHECK(audit.codes == Strings{"", "x = '[redacted]'\nprint(x)\n", "", ""});
  CHECK(support::read_file(r.files[0]) == code);
}

TEST_CASE("files that code leaves may be deleted afterwards") {
  const support::TempDir workspace;
  workspace.file("mine", "x");
  LocalOptions local = in(workspace);
  local.delete_guard = true;
  const LocalExecutor executor = make(local);
  CHECK(output_of(executor, "python", "# made.py\nprint(1)") == "1\n");
  CHECK(run_code(executor, "css", "/* made.css */").succeeded);
  CHECK(output_of(executor, "sh", "rm made.py made.css") == "");
  const CodeResult r = run_code(executor, "sh", "rm mine");
  REQUIRE(r.results.size() == 1);
  CHECK(r.results[0].rule == "delete-guard");
}

TEST_CASE("the command's options hold for each block") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  options.command.environment = {{"GREETING", "hello"}};
  options.command.input = "typed";
  options.command.script = "exit 9";
  options.command.argv = {"false"};
  options.command.interpreter = "false";
  std::string live;
  options.command.on_output = [&live](Stream, std::string_view bytes) { live += bytes; };
  const std::vector<CodeBlock> blocks = {
      {"python", "import os, sys\nprint(os.environ['GREETING'], sys.stdin.read())"},
      {"sh", "echo $GREETING $(cat) >&2"}};
  const CodeResult r = run_code(executor, blocks, options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  REQUIRE(r.results.size() == 2);
  CHECK(r.results[0].out == "hello typed\n");
  CHECK(r.results[1].err == "hello typed\n");
  CHECK(live == "hello typed\nhello typed\n");

  options.command.merge_streams = true;
  const CodeResult merged = run_code(executor, blocks, options);
  CHECK(merged.results.at(1).out == "hello typed\n");

  options.command.timeout = std::chrono::milliseconds(0);
  const CodeResult never = run_code(executor, "sh", "# never.sh\n", options);
  CHECK(never.results.at(0).rule == "timeout");
  CHECK(never.files.empty());

  options.command.timeout = {};
  options.command.cancel = CancelToken();
  options.command.cancel->cancel();
  const CodeResult cancelled = run_code(executor, blocks, options);
  REQUIRE(cancelled.results.size() == 1);
  CHECK(cancelled.results[0].outcome == Outcome::cancelled);
}

TEST_CASE("python3 is that of the virtual environment") {
  const support::TempDir workspace;
  workspace.file(".venv/bin/python3", "#!/bin/sh\necho mine \"$1\"\n", 0755);
  workspace.file(".venv/pyvenv.cfg");
  LocalOptions local = in(workspace);
  local.environment.venv_path = workspace / ".venv";
  const LocalExecutor executor = make(local);
  CHECK(output_of(executor, "python", "print(1)") == "mine -u\n");
}

TEST_CASE("a program that is missing is told") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  options.languages = {{{"x"}, "x", {"codeexec-no-such-program"}, false}};
  const CodeResult r = run_code(executor, "x", "1", options);
  CHECK_FALSE(r.succeeded);
  REQUIRE(r.results.size() == 1);
  CHECK(r.results[0].outcome == Outcome::not_started);
  CHECK(has(r.results[0].message, "codeexec-no-such-program"));
}

// hostile code ------------------------------------------------------------------------------------

TEST_CASE("W-52: much output before the end does not block") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  constexpr std::size_t size = std::size_t{300} << 10;
  const std::string out = output_of(
      executor, "python", "import sys\nsys.stdout.write('x' * 300 * 1024)\nsys.stdout.flush()");
  CHECK(out == std::string(size, 'x'));
  const CodeResult both = run_code(
      executor, "python",
      "import os\nfor i in range(300):\n  os.write(2, b'e' * 1024)\n  os.write(1, b'o' * 1024)");
  CHECK_MESSAGE(both.succeeded, describe(both));
  CHECK(both.results[0].out == std::string(size, 'o'));
  CHECK(both.results[0].err == std::string(size, 'e'));
  CHECK(output_of(executor, "sh", "head -c 307200 /dev/zero | tr '\\0' x") ==
        std::string(size, 'x'));
}

TEST_CASE("W-53: nothing of code survives its timeout, and what it printed is kept") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const char* const codes[] = {
      "import subprocess, time\n"
      "p = subprocess.Popen(['sh', '-c', 'sleep 1000 & echo $!; wait'], start_new_session=True,\n"
      "                     stdout=subprocess.PIPE, text=True)\n"
      "print('pids', p.pid, p.stdout.readline().strip())\n"
      "time.sleep(1000)\n",
      "sh -c 'sleep 1000 & echo pids $$ $!; wait'"};
  for (const char* code : codes) {
    CodeOptions options;
    options.command.timeout = std::chrono::milliseconds(250);
    CodeResult r;
    // However slow the machine is, at some time the code comes far enough.
    do {
      *options.command.timeout *= 2;
      r = run_code(executor, infer_language(code), code, options);
      REQUIRE(r.results.size() == 1);
      REQUIRE_MESSAGE(r.results[0].outcome == Outcome::timed_out, describe(r));
      CHECK_FALSE(r.succeeded);
    } while (r.results[0].out.empty() && *options.command.timeout < safety);
    int outer = 0;
    int inner = 0;
    REQUIRE(std::sscanf(r.results[0].out.c_str(), "pids %d %d", &outer, &inner) == 2);
    REQUIRE(outer > 1);
    REQUIRE(inner > 1);
    CHECK(support::dies(outer));
    CHECK(support::dies(inner));
  }
}

TEST_CASE("code of any bytes arrives as it is") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const std::string quoting = "'\"'\"`touch injected`$(touch injected)\\n$HOME%s!!&|;<>*?[]{}~#";
  CHECK(output_of(executor, "python", "print(r'''" + quoting + " ''')") == quoting + " \n");
  CHECK(output_of(executor, "sh", "cat <<'EOF'\n" + quoting + "\nEOF\n") == quoting + "\n");
  CHECK(output_of(executor, "bash", "cat <<'EOF'\n" + quoting + "\nEOF\n") == quoting + "\n");
  CHECK_FALSE(support::exists(workspace / "injected"));
  CHECK(output_of(executor, "sh", "-x 2>/dev/null; echo $?") == "127\n");
  CHECK(output_of(executor, "python", "print('\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80')") ==
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n");
  CHECK(output_of(executor, "python", "# coding: latin-1\nprint(ord('\xe4'))") == "228\n");
  CHECK(output_of(executor, "sh", "printf '\xff\xfe' | od -An -tx1") == " ff fe\n");
  CHECK(output_of(executor, "python", "if True:\r\n    print(1)\r\n") == "1\n");
}

TEST_CASE("a NUL byte in code is an error, and nothing is saved") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  for (const char* language : {"sh", "bash", "python", "html"}) {
    const CodeResult r = run_code(executor, language, std::string("a\0b", 3));
    CHECK(r.message == "the code has a NUL byte (at byte 1)");
    CHECK(r.results.empty());
    CHECK_FALSE(r.succeeded);
  }
  CHECK(names_in(workspace.path()).empty());
}

TEST_CASE("a MiB of code runs") {
  const support::TempDir workspace;
  Audit audit;
  const LocalExecutor executor = make(audited(in(workspace), audit));
  constexpr std::size_t size = std::size_t{1} << 20;
  const std::string text(size, 'x');
  CHECK(output_of(executor, "python", "s = '" + text + "'\nprint(len(s))") == "1048576\n");
  CHECK(audit.codes.at(1).size() > size);
  std::string comments;
  while (comments.size() < size) comments += "# " + std::string(77, 'x') + "\n";
  // Of a shell's code the policy has its own bound, and says so.
  const CodeResult r = run_code(executor, "bash", comments + "echo done");
  REQUIRE(r.results.size() == 1);
  if (r.succeeded)
    CHECK(r.results[0].out == "done\n");
  else
    CHECK_MESSAGE(r.results[0].outcome == Outcome::refused, describe(r));
  CHECK(output_of(executor, "bash", comments.substr(0, size / 4 / 80 * 80) + "echo done") ==
        "done\n");
}

#if defined(__linux__)

TEST_CASE("W-53: code is in the sandbox") {
  const support::TempDir outside("/var/tmp");  // /tmp is another one there
  const support::TempDir workspace;
  outside.file("secret", "for nobody");
  LocalOptions local = in(workspace);
  local.sandbox.mode = SandboxMode::strict;
  // Python may be anywhere; what is here is whether the sandbox holds it.
  local.environment.set = {{"PATH", "/usr/bin:/bin"}};
  const Expected<LocalExecutor> executor = LocalExecutor::create(local);
  if (!executor) {
    MESSAGE(std::string("SKIPPED: no sandbox here: ").append(executor.error().message));
    return;
  }
  CHECK(output_of(*executor, "sh", "echo a > b; cat b") == "a\n");
  CHECK(run_code(*executor, "sh", "cat " + outside / "secret").results.at(0).exit_code == 1);
  CHECK(begins(run_code(*executor, "css", "/* filename: " + outside / "x.css" + " */\n").message,
               "Filename is not in the workspace: "));
  CHECK(names_in(outside.path()) == Strings{"secret"});
  if (::access("/usr/bin/python3", X_OK) != 0) {
    MESSAGE("SKIPPED: no /usr/bin/python3 here");
    return;
  }
  CHECK(output_of(*executor, "python",
                  "# x.py\nopen('c', 'w').write('d')\nprint(open('c').read())") == "d\n");
  const CodeResult r = run_code(*executor, "python", "open('" + outside / "secret" + "')");
  REQUIRE(r.results.size() == 1);
  CHECK(has(r.results[0].err, "PermissionError"));
  CHECK(r.results[0].sandbox->mode == SandboxMode::strict);
}

#endif
