// Running code: its programs, its order, and the files that it becomes.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::CodeOptions;
using codeexec::CodeResult;
using codeexec::extract_code;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::run_code;
using support::Audit;
using support::audited;
using support::begins;
using support::describe;
using support::ends;
using support::executor_in;
using support::has;
using support::in;
using support::make;
using support::names_in;
using support::output_of;
using support::safety;
using support::Strings;

namespace {

// False says why a test that needs the program is left out.
bool is_installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (::access((rest.substr(0, end) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.erase(0, end + 1);
  }
  MESSAGE(std::string("SKIPPED: no " + program + " here"));
  return false;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

TEST_CASE("each language runs with its own program") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CHECK(output_of(executor, "sh", "echo ${BASH_VERSION:+bash} sh") == "sh\n");
  CHECK(output_of(executor, "shell", "echo $((6 * 7))") == "42\n");
  CHECK(output_of(executor, "bash", "a=(1 2 3); echo ${#a[@]}") == "3\n");
  for (const char* name : {"python", "Python", "py", "PY", "python3"})
    CHECK(output_of(executor, name, "import sys\nprint(sys.version_info[0])") == "3\n");
  CHECK(output_of(executor, "", "print('guessed')") == "guessed\n");
  CHECK(output_of(executor, "", "echo guessed") == "guessed\n");
}

TEST_CASE("JavaScript runs in node") {
  if (!is_installed("node")) return;
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  for (const char* name : {"javascript", "js", "JavaScript", "node"})
    CHECK(output_of(executor, name, "console.log([1, 2].map(x => x * 2).join())") == "2,4\n");
}

TEST_CASE("a caller adds languages") {
  if (!is_installed("perl")) return;
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  options.languages.push_back({{"Perl", "pl"}, "pl", {"perl", "-w"}, false});
  CHECK(output_of(executor, "PERL", "print 'a' x 3, $^W", options) == "aaa1");
  CHECK(output_of(executor, "pl", "# x.pl\nprint $0", options) == workspace / "x.pl");
  // One in place of all others; no extension.
  options.languages = {{{"words"}, "", {"cat"}, false}};
  const CodeResult r = run_code(executor, "words", "a b\n", options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].out == "a b\n");
  CHECK(base_name(r.files[0]).size() == std::string("tmp_code_0123456789abcdef").size());
  CHECK(run_code(executor, "python", "1", options).message ==
        "unknown language python; known are words");
  // A shell gets its script by -c, where arguments for a file would be wrong.
  options.languages = {{{"sh"}, "sh", {"sh", "-e"}, true}};
  CHECK(has(run_code(executor, "sh", "true", options).message, "a shell takes no arguments"));
}

TEST_CASE("W-53: without blocks there is no crash, and no success") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult r = run_code(executor, extract_code("no code"));
  CHECK(r.message == "no code blocks to execute");
  CHECK_FALSE(r.succeeded);
  CHECK(r.results.empty());
  CHECK(r.files.empty());
}

TEST_CASE("blocks run in their order, up to the first that fails") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult good =
      run_code(executor,
               {{"sh", "echo 1 > a; echo one"}, {"python", "print(open('a').read())"}, {"sh", ""}});
  CHECK_MESSAGE(good.succeeded, describe(good));
  REQUIRE(good.results.size() == 3);
  CHECK(good.results[0].out == "one\n");
  CHECK(good.results[1].out == "1\n\n");
  CHECK(good.files.size() == 3);

  const CodeResult bad =
      run_code(executor, {{"sh", "echo first"}, {"sh", "exit 3"}, {"sh", "touch third"}});
  CHECK_FALSE(bad.succeeded);
  CHECK(bad.message == "");
  REQUIRE(bad.results.size() == 2);
  CHECK(bad.results[0].out == "first\n");
  CHECK(bad.results[1].exit_code == 3);
  CHECK(bad.files.size() == 2);
  CHECK_FALSE(support::exists(workspace / "third"));
}

TEST_CASE("an unknown language stops what comes after it") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult r =
      run_code(executor, {{"sh", "echo first"}, {"C#", "x"}, {"sh", "touch third"}});
  CHECK_FALSE(r.succeeded);
  CHECK(r.message == "unknown language C#; known are sh, bash, python, javascript, html, css");
  CHECK(r.results.size() == 1);
  CHECK(r.files.size() == 1);
  CHECK_FALSE(support::exists(workspace / "third"));

  CHECK(begins(run_code(executor, "", "using System;").message,
               "the language of the code is not known; known are sh, "));
  const std::string longest = run_code(executor, std::string(1 << 20, 'x') + "\n", "x").message;
  CHECK(longest.size() < 1000);
  CHECK_FALSE(has(run_code(executor, "a\nb\x1b[m", "x").message, "\x1b"));
}

TEST_CASE("pages are saved and not run") {
  const support::TempDir workspace;
  Audit audit;
  const LocalExecutor executor = make(audited(in(workspace), audit));
  const CodeResult r = run_code(executor, {{"html", "<!-- filename: site/index.html -->\n<p>&</p>"},
                                           {"CSS", "/* site.css */\np { color: red }"},
                                           {"css", "p { }"}});
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results.empty());
  REQUIRE(r.files.size() == 3);
  CHECK(r.files[0] == workspace / "site/index.html");
  CHECK(support::read_file(r.files[0]) == "<!-- filename: site/index.html -->\n<p>&</p>");
  CHECK(r.files[1] == workspace / "site.css");
  CHECK(ends(r.files[2], ".css"));
  CHECK(audit.commands == Strings{"save '" + r.files[0] + "'", "save '" + r.files[1] + "'",
                                  "save '" + r.files[2] + "'"});
}

TEST_CASE("W-53: a comment names a file only when it says so") {
  struct Name {
    const char* language;
    const char* code;
    const char* file;  // empty: the automatic one
  };
  const Name names[] = {
      {"python", "# any comment\n", ""},
      {"python", "# see main.py\n", ""},
      {"python", "# main.py does it\n", ""},
      {"python", "# https://example.org/main.py\n", ""},
      {"python", "# main.sh\n", ""},
      {"python", "# .py\n", ""},
      {"python", "# a/.py\n", ""},
      {"python", "#\n", ""},
      {"python", "# filename\n", ""},
      {"python", "# filename:\n", ""},
      {"python", "# filename:   \n", ""},
      {"python", "x = 1 # filename: a.py\n", ""},
      {"python", "\n# filename: a.py\n", ""},
      {"python", "\"\"\"\n# filename: a.py\n\"\"\"\n", ""},
      {"python", "# a.py", "a.py"},
      {"python", "# filename: b.py\n", "b.py"},
      {"python", "#filename:b.py\r\n", "b.py"},
      {"python", "  # filename: c.py\n", "c.py"},
      {"python", "# filename: a b.py\n", "a b.py"},
      {"python", "# filename: 'q'.py\n", "'q'.py"},
      {"python", "# filename: data.txt\n", "data.txt"},
      {"python", "# sub/dir/d-1.py\n", "sub/dir/d-1.py"},
      {"python", "# ./e.py\n", "e.py"},
      {"python", "# filename: sub/../f.py\n", "f.py"},
      {"python", "# \xc3\xa4.py\n", "\xc3\xa4.py"},
      {"python", "# filename: -c.py\n", "-c.py"},
      {"python", "#!/usr/bin/env python3\n# filename: g.py\n", "g.py"},
      {"sh", "# h.sh\n", "h.sh"},
      {"bash", "# h.sh\n", "h.sh"},
      {"sh", "# filename: \xff\xfe.sh\n", "\xff\xfe.sh"},
      {"sh", "#!/bin/sh\n", ""},
      {"html", "<!-- a.html -->\n", "a.html"},
      {"html", "<!--a.html--><p>\n", ""},
      {"html", "<!-->\n", ""},
      {"css", "/* a.css */\n", "a.css"},
      {"css", "/*/\n", ""},
  };
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  for (const Name& name : names) {
    const std::string code = name.code;
    CAPTURE(code);
    const CodeResult r = run_code(executor, name.language, code);
    CHECK_MESSAGE(r.succeeded, describe(r));
    REQUIRE(r.files.size() == 1);
    CHECK(support::read_file(r.files[0]) == code);
    if (*name.file) {
      CHECK(r.files[0] == workspace / name.file);
    } else {
      const std::string file = base_name(r.files[0]);
      CHECK(r.files[0] == workspace / file);
      CHECK(begins(file, "tmp_code_"));
      CHECK(file.find('.') == std::string("tmp_code_0123456789abcdef").size());
      CHECK(file.find_first_not_of("0123456789abcdef", 9) == file.find('.'));
    }
  }
  if (!is_installed("node")) return;
  const CodeResult r = run_code(executor, "js", "// lib/a.js\nconsole.log(__filename)");
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].out == workspace / "lib/a.js\n");
}

TEST_CASE("files without a name are told apart by their content") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult one = run_code(executor, {{"sh", "echo 1"}, {"sh", "echo 2"}, {"sh", "echo 1"}});
  REQUIRE_MESSAGE(one.succeeded, describe(one));
  CHECK(one.files[0] != one.files[1]);
  CHECK(one.files[0] == one.files[2]);
  CHECK(names_in(workspace.path()).size() == 2);
  // FNV-1a of the empty string and of "a".
  CHECK(run_code(executor, "css", "").files ==
        Strings{workspace / "tmp_code_cbf29ce484222325.css"});
  CHECK(run_code(executor, "css", "a").files ==
        Strings{workspace / "tmp_code_af63dc4c8601ec8c.css"});
  // Whatever has that name is replaced.
  support::write_file(workspace / "tmp_code_af63dc4c8601ec8c.css", "other");
  CHECK(run_code(executor, "css", "a").succeeded);
  CHECK(support::read_file(workspace / "tmp_code_af63dc4c8601ec8c.css") == "a");
}

TEST_CASE("files without a name go with their code where that is wanted") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  options.remove_unnamed = true;
  const CodeResult shell = run_code(executor, "sh", "ls", options);
  CHECK_MESSAGE(shell.succeeded, describe(shell));
  CHECK(shell.results[0].out == "");
  CHECK(shell.files.empty());
  if (is_installed("python3")) {
    const std::string code = "import sys; print(sys.argv[0]); open('made', 'w'); sys.exit(3)";
    const CodeResult python = run_code(executor, "python", code, options);
    CHECK(python.results[0].exit_code == 3);
    CHECK(begins(python.results[0].out, workspace / "tmp_code_"));
    CHECK(python.files.empty());
    CHECK(run_code(executor, "python", code, options).results[0].out != python.results[0].out);
    // The folder is the one that the file was made in.
    const support::TempDir other;
    options.command.work_dir = workspace.directory("sub");
    const CodeResult moved = run_code(
        executor, "python",
        "import os, sys\nd = os.getcwd()\nos.rename(d, d + '2')\nos.symlink('" + other.path() +
            "', d)\nopen('" + other.path() + "/' + os.path.basename(sys.argv[0]), 'w')",
        options);
    CHECK_MESSAGE(moved.succeeded, describe(moved));
    CHECK(names_in(workspace / "sub2").empty());
    CHECK(names_in(other.path()).size() == 1);
    options.command.work_dir.clear();
    CHECK(names_in(workspace.path()) == Strings{"made", "sub", "sub2"});
  }
  // What has a name stays, and so does what is only saved.
  CHECK(run_code(executor, "sh", "# named.sh\n", options).files == Strings{workspace / "named.sh"});
  CHECK(support::exists(workspace / "named.sh"));
  const CodeResult page = run_code(executor, "css", "a", options);
  CHECK(page.files == Strings{workspace / "tmp_code_af63dc4c8601ec8c.css"});
  CHECK(support::exists(page.files[0]));
}

TEST_CASE("no name leads out of the work_dir") {
  const support::TempDir outside;
  const support::TempDir base;
  const std::string workspace = base.directory("ws");
  base.directory("ws/sub");
  base.file("next.py", "old");
  outside.file("x.py", "old");
  support::make_symlink(outside.path(), workspace + "/link");
  support::make_symlink(outside / "x.py", workspace + "/file.py");
  support::make_symlink(outside / "new.py", workspace + "/dangling.py");
  support::make_symlink("loop.py", workspace + "/loop.py");
  support::make_symlink("../next.py", workspace + "/up.py");
  support::make_symlink(".hidden", workspace + "/seen");
  base.directory("ws/.hidden");
  base.directory("ws/.git/hooks");
  base.directory("ws2");
  Audit audit;
  LocalOptions local;
  local.workspace = workspace;
  local.timeout = safety;
  const LocalExecutor executor = make(audited(local, audit));
  const std::string out = "Filename is not in the workspace: ";
  const std::string dot = "Filename has a part that begins with a dot";
  const std::pair<std::string, std::string> names[] = {
      {"../next.py", out},
      {"/etc/codeexec-test.py", out},
      {"/tmp/test.py", out},
      {outside / "x.py", out},
      {"sub/../../next.py", out},
      {"sub/../../../../../../../../../../etc/codeexec-test.py", out},
      {"../ws2/x.py", out},
      {workspace + "2/x.py", out},
      {"link/x.py", out},
      {"link/new.py", out},
      {"file.py", out},
      {"dangling.py", out},
      {"up.py", out},
      {"link/../next.py", out},
      {"~/x.py", out},
      {"~root/x.py", out},
      {".", out},
      {"sub/..", out},
      {"/", out},
      {workspace, out},
      {"..", out},
      {"loop.py", "Filename cannot be used: "},
      {"new/", "Filename is that of a directory"},
      {"sub", "cannot save the code as "},
      {"sub/", "Filename is that of a directory"},
      {std::string(300, 'x') + ".py", "cannot save the code as "},
      {std::string(5000, 'x') + ".py", "Filename is longer than 4095 bytes"},
      {std::string(1 << 20, 'x') + ".py", "Filename is longer than 4095 bytes"},
      {std::string(2000, 'x') + "/../x.py", ""},
      {std::string("a\0b.py", 6), "the code has a NUL byte (at byte 13)"},
      {".bashrc", dot},
      {".git/hooks/pre-commit", dot},
      {"sub/.x.py", dot},
      {"seen/x.py", dot},
      {".hidden/../.x", dot},
      {workspace + "/.envrc", dot},
      // These are fine.
      {workspace + "/sub/absolute.py", ""},
      {"sub/../.hidden/../x.py", ""},
      {"..x/../y.py", ""},
      {"$(touch injected).py", ""},
      {"`touch injected`; touch injected.py", ""},
      {"\"'\\.py", ""},
      {"a\tb.py", ""},
  };
  for (const auto& [name, message] : names) {
    const std::string shown_name = name.substr(0, 100);
    CAPTURE(shown_name);
    audit = {};
    const CodeResult r = run_code(executor, "python", "# filename: " + name + "\nprint('ran')\n");
    if (message.empty()) {
      CHECK_MESSAGE(r.succeeded, describe(r));
      CHECK(r.files.size() == 1);
      continue;
    }
    CHECK_FALSE(r.succeeded);
    CHECK_MESSAGE(begins(r.message, message), r.message);
    CHECK(r.message.size() < 9000);
    // An attempt is on record.
    const bool asked = !has(message, "NUL");
    CHECK(audit.commands == (asked ? Strings{"save"} : Strings{}));
    if (message == out || message == dot)
      CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
    CHECK(r.results.empty());
    CHECK(r.files.empty());
  }
  CHECK(support::read_file(outside / "x.py") == "old");
  CHECK(names_in(outside.path()) == Strings{"x.py"});
  CHECK(support::read_file(base / "next.py") == "old");
  CHECK(names_in(base.path()) == Strings{"next.py", "ws", "ws2"});
  CHECK(names_in(base / "ws2").empty());
  CHECK(names_in(workspace + "/.hidden").empty());
  CHECK(names_in(workspace + "/.git/hooks").empty());
  CHECK_FALSE(support::exists(workspace + "/injected"));
  CHECK_FALSE(support::exists("injected"));
  CHECK_FALSE(support::exists("/etc/codeexec-test.py"));
}

TEST_CASE("a work_dir is no way to a name with a dot") {
  const support::TempDir place;
  const std::string hooks = place.directory("ws/.git/hooks");
  LocalOptions local;
  local.workspace = place / "ws";
  local.timeout = safety;
  SUBCASE("below the workspace") {}
  SUBCASE("below a root") {
    local.roots = {{place / "ws", codeexec::Permission::write}};
    local.workspace = place / "ws/.git";
  }
  const LocalExecutor executor = make(local);
  CodeOptions options;
  options.command.work_dir = hooks;
  const CodeResult r = run_code(executor, "sh", "# filename: pre-commit\necho ran\n", options);
  CHECK(begins(r.message, "Filename has a part that begins with a dot"));
  CHECK(names_in(hooks).empty());
  // One that nothing looks for does no harm.
  CHECK(output_of(executor, "sh", "echo ran\n", options) == "ran\n");
}

TEST_CASE("a root or a workspace may lie below a name with a dot") {
  const support::TempDir place;
  LocalOptions local;
  local.workspace = place.directory(".cache/ws");
  local.timeout = safety;
  SUBCASE("without roots") {}
  SUBCASE("with one") { local.roots = {{local.workspace, codeexec::Permission::write}}; }
  CHECK(output_of(make(local), "sh", "# filename: a.sh\necho ran\n") == "ran\n");
}

TEST_CASE("a link of an automatic name leads out no more than another") {
  const support::TempDir outside;
  const support::TempDir workspace;
  outside.file("x.css", "old");
  support::make_symlink(outside / "x.css", workspace / "tmp_code_af63dc4c8601ec8c.css");
  const LocalExecutor executor = executor_in(workspace);
  CHECK(begins(run_code(executor, "css", "a").message, "Filename is not in the workspace: "));
  CHECK(support::read_file(outside / "x.css") == "old");
}

TEST_CASE("the work_dir is where files lie and code runs") {
  const support::TempDir workspace;
  const std::string sub = workspace.directory("a/b");
  support::make_symlink("a/b", workspace / "link");
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  for (const std::string& work_dir : Strings{"a/b", "./a/../a/b/", sub, "link"}) {
    options.command.work_dir = work_dir;
    CAPTURE(work_dir);
    CHECK(output_of(executor, "python", "# x.py\nimport os\nprint(os.getcwd())", options) ==
          sub + "\n");
    CHECK(support::exists(sub + "/x.py"));
    CHECK(::unlink((sub + "/x.py").c_str()) == 0);
    CHECK(output_of(executor, "sh", "pwd", options) == sub + "\n");
    // Its own directory is the bound, not the workspace.
    CHECK(begins(run_code(executor, "sh", "# ../x.sh\n", options).message,
                 "Filename is not in the workspace: "));
  }
}

TEST_CASE("a work_dir that is none is refused as for any command, and nothing is saved") {
  const support::TempDir outside;
  const support::TempDir workspace;
  workspace.file("file");
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  local.roots = {{workspace.path(), Permission::write}};
  const LocalExecutor executor = make(local);
  const std::pair<std::string, std::string> cases[] = {
      {outside.path(), "Path validation error: Path not in allowed directories: "},
      {"../" + base_name(outside.path()), "Path validation error: "},
      {"none", "Working directory does not exist: "},
      {"file", "Working directory is not a directory: "},
      {std::string("a\0b", 3), "has a NUL byte"},
      {std::string(5000, 'x'), ""},
  };
  for (const auto& [work_dir, message] : cases) {
    const std::string& wanted = message;
    CAPTURE(wanted);
    CodeOptions options;
    options.command.work_dir = work_dir;
    for (const char* language : {"sh", "python"}) {
      audit = {};
      const CodeResult r = run_code(executor, language, "# a.sh\nexit\n", options);
      CHECK_FALSE(r.succeeded);
      CHECK(r.message == "");
      REQUIRE(r.results.size() == 1);
      CHECK(r.results[0].outcome == Outcome::refused);
      CHECK(r.results[0].rule == "work_dir");
      CHECK_MESSAGE(has(r.results[0].message, message), r.results[0].message);
      CHECK(r.files.empty());
      CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
    }
    audit = {};
    const CodeResult saved = run_code(executor, "css", "a", options);
    CHECK_FALSE(saved.succeeded);
    CHECK_MESSAGE(has(saved.message, message), saved.message);
    CHECK(saved.files.empty());
    CHECK(audit.commands == Strings{"save"});
  }
  CHECK(names_in(workspace.path()) == Strings{"file"});
  CHECK(names_in(outside.path()).empty());
}

TEST_CASE("what may only be read stays as it is") {
  const support::TempDir workspace;
  workspace.directory("read");
  workspace.directory("closed");
  LocalOptions local = in(workspace);
  local.roots = {{workspace.path(), Permission::write},
                 {workspace / "read", Permission::read},
                 {workspace / "closed", Permission::none}};
  const LocalExecutor executor = make(local);
  for (const char* name : {"read/x.sh", "closed/x.sh", "read/new/x.sh"}) {
    const CodeResult r = run_code(executor, "sh", std::string("# ") + name + "\necho ran");
    CHECK(begins(r.message, "cannot save the code as "));
    CHECK(r.results.empty());
  }
  CodeOptions options;
  options.command.work_dir = "read";
  CHECK(begins(run_code(executor, "sh", "echo ran", options).message, "cannot save the code as "));
  options.command.work_dir = "closed";
  const CodeResult closed = run_code(executor, "sh", "echo ran", options);
  REQUIRE(closed.results.size() == 1);
  CHECK(closed.results[0].rule == "work_dir");
  CHECK(names_in(workspace / "read").empty());
  CHECK(names_in(workspace / "closed").empty());
  CHECK(names_in(workspace.path()) == Strings{"closed", "read"});
}
