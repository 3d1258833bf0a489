// Read-only roots and the delete guard.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using support::has;
using support::in;
using support::make;
using support::Strings;

// read-only roots ---------------------------------------------------------------------------------

namespace {

// A workspace with read-only parts.
struct ReadOnlyPlace {
  ReadOnlyPlace() {
    place.file("ws/ro/file", "precious");
    place.file("ws/ro/deep/file", "precious");
    place.file("ws/.ref/file", "precious");
    place.file("ws/a", "a");
    place.file("ws/b", "b");
    place.file("ws/sub/c", "c");
    place.directory("ws/ro/out");
    support::make_symlink("ro", place / "ws/link");
    support::make_symlink("ro/file", place / "ws/to_file");
    support::make_symlink("../ro", place / "ws/sub/up");
    support::make_symlink(ws, place / "ws/self");
    options.workspace = ws;
    options.roots = {{ws, Permission::write},
                     {ws + "/ro", Permission::read},
                     {ws + "/.ref", Permission::read},
                     {ws + "/ro/out", Permission::write}};
    options.environment.set = {{"HOME", ws}};
  }
  support::TempDir place = {};
  std::string ws = place / "ws";
  LocalOptions options = {};
};

}  // namespace

TEST_CASE("W-50: a script that would change a read-only root is refused, with the path") {
  const ReadOnlyPlace at;
  const std::string ro = at.ws + "/ro";
  const LocalExecutor here = make(at.options);
  // Script and what of it is refused, below the workspace.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"echo x > ro/new", "ro/new"},
      {"echo x >> ro/file", "ro/file"},
      {"cat a 2>&1 > ro/file", "ro/file"},
      {"cat a > " + ro + "/file", "ro/file"},
      {"echo x | tee ro/file", "ro/file"},
      {"tee ro/file < a", "ro/file"},
      {"cp -f a ro/new", "ro/new"},
      {"cp a b ro", "ro"},
      {"sed -i s/p/q/ ro/file", "ro/file"},
      {"truncate -s0 ro/file", "ro/file"},
      {"ln -sf a ro/file", "ro/file"},
      {"mkdir -p ro/d", "ro/d"},
      {"touch ro/new", "ro/new"},
      {"mv a ro/new", "ro/new"},
      {"mv ro/file a", "ro/file"},
      {"rm ro/file", "ro/file"},
      {"rm -f ro/deep/../file", "ro/file"},
      {"rm -rf ro", "ro"},
      {"rmdir ro", "ro"},
      {"true; touch a && (rm b; touch ro/new)", "ro/new"},
      {"cd ro && touch new", "ro/new"},
      {"sh -c 'touch ro/new'", "ro/new"},
      {"env X=1 touch ro/new", "ro/new"},
      {"find ro -name file -delete", "ro"},
      {"touch sub/../ro/new", "ro/new"},
      // Through symbolic links.
      {"touch link/new", "ro/new"},
      {"echo x > to_file", "ro/file"},
      {"rm link/file", "ro/file"},
      {"touch sub/up/new", "ro/new"},
      {"rm self/ro/file", "ro/file"},
      {"touch /proc/self/root" + ro + "/new", "ro/new"},
      // All around a read-only root.
      {"rm -rf " + at.ws, "ro"},
      {"rm -rf .", "ro"},
      {"mv " + at.ws + " " + at.ws + "2", "ro"},
      // Patterns: what they stand for, and where that can be at all.
      {"rm -rf *", "ro"},
      {"rm -rf " + at.ws + "/*", "ro"},
      {"rm -rf r?", "ro"},
      {"rm -rf [!a-q]o", "ro"},
      {"rm */file", "ro/file"},
      {"rm ro/*", "ro"},
      {"rm ro/no*such", "ro"},
      {"touch ro/*", "ro"},
      {"rm -rf .r*", ".ref"},
      {"rm -rf .*f", ".ref"},
      {"rm -rf ro*", "ro"},
      {"rm -rf [p-s]o", "ro"},
      // Home.
      {"touch ~/ro/new", "ro/new"},
      {"touch \"$HOME/ro/new\"", "ro/new"}};
  for (const auto& each : cases) {
    const std::string& script = each.first;
    CAPTURE(script);
    const Result r = here.check(Command::shell(script));
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.rule == "read-only");
    CHECK(r.message == "Command would modify read-only context path: " + at.ws + "/" + each.second);
    CHECK(r.rule_begin < r.rule_end);
    CHECK(r.rule_end <= script.size());
  }
  CHECK(here.run("echo x > ro/new; echo ran").out.empty());
  CHECK(!support::exists(ro + "/new"));
  const Result argv = here.run(Command::program({"touch", ro + "/new file"}));
  CHECK(argv.rule == "read-only");
  CHECK(argv.command.substr(argv.rule_begin, argv.rule_end - argv.rule_begin) ==
        "'" + ro + "/new file'");
  // Where the range is exact.
  const Result exact = here.run("echo x > ro/new");
  CHECK(has(exact.command.substr(exact.rule_begin, exact.rule_end - exact.rule_begin), "ro/new"));
}

TEST_CASE("W-49: what changes nothing read-only is not refused") {
  const ReadOnlyPlace at;
  const LocalExecutor here = make(at.options);
  for (const std::string& script :
       Strings{"cat ro/file", "cat link/file > copy", "cp ro/file sub/copy",
               std::string("echo > " + at.ws + "/ro2"), "touch ro2/x", "rm -f rox/*", "rm -f sub/*",
               "rm -rf sub/*", "rm a*", "rm -rf ?re[f]", "rm -rf [a-q]o", "rm */nosuch",
               "touch */nosuch", "rm -rf r", "rm -rf o*", "echo ro/file", "echo '> ro/file'",
               "grep -r 'rm ro' .", "touch ro/out/x", "rm -rf ro/out/x", "echo x > /dev/null",
               "cat a 2> /dev/null",
               // The link goes, not what it leads to.
               "rm link", "rm to_file",
               // The false alarms of the reference.
               "python train.py --model gpt-4", "ruff format .", "transform x", "warm up",
               "docker rm x", "echo " + at.ws + "/ro/path", "for i in 1; do echo $i; done",
               "/usr/bin/python3 x.py", "touch \"$(mktemp)\""}) {
    const Result r = here.check(Command::shell(script));
    CHECK_MESSAGE(r.rule == "", script << ": " << r.rule << ": " << r.message);
  }
}

TEST_CASE("read-only roots: the deepest root decides, and work_dir counts") {
  const ReadOnlyPlace at;
  const LocalExecutor here = make(at.options);
  Command command = Command::shell("touch x");
  command.work_dir = "ro";
  CHECK(here.check(command).rule == "read-only");
  command.work_dir = "link/deep";
  CHECK(here.check(command).rule == "read-only");
  command.work_dir = "ro/out";
  CHECK(here.check(command).rule == "");
  command.script = "touch ../x";
  CHECK(here.check(command).rule == "read-only");
  command.script = "touch ../../x";
  CHECK(here.check(command).rule == "");
  // Nothing may be changed where not even reading is allowed.
  LocalOptions options = at.options;
  options.roots = {{at.ws, Permission::write}, {at.ws + "/ro", Permission::none}};
  CHECK(make(options).check(Command::shell("touch ro/x")).rule == "read-only");
  // Outside of all roots is another matter.
  CHECK(here.check(Command::shell("touch /tmp/codeexec-nothing")).rule == "");
}

TEST_CASE("read-only roots: a home directory that is not known is none to write to") {
  const ReadOnlyPlace at;
  LocalOptions options = at.options;
  options.environment.set = {};
  options.environment.keep = {"PATH"};
  const LocalExecutor here = make(options);
  CHECK(here.check(Command::shell("touch ~/x")).rule == "read-only");
  CHECK(here.check(Command::shell("cat ~/x")).rule == "");
  CHECK(here.check(Command::shell("touch ~nobody-like-this/x")).rule == "read-only");
  Command command = Command::shell("touch ~/x");
  command.environment = {{"HOME", at.ws}};
  CHECK(here.check(command).rule == "");
  command.environment = {{"HOME", at.ws + "/ro"}};
  CHECK(here.check(command).rule == "read-only");
  CHECK(has(here.check(Command::shell("touch ~roo/x")).message, "is not known here"));
  // root's home is what /etc/passwd says.
  options.roots.push_back({"/root", Permission::read});
  if (::access("/root", R_OK | X_OK) != 0) {
    MESSAGE("SKIPPED: /root cannot be read here");
    return;
  }
  CHECK(make(options).check(Command::shell("touch ~root/x")).message ==
        "Command would modify read-only context path: /root/x");
}

TEST_CASE("the file guard with the compat policy: what cannot be read is refused") {
  const ReadOnlyPlace at;
  LocalOptions options = at.options;
  options.policy.compat = true;
  const auto rule_of = [](const LocalExecutor& here, const char* script) {
    return here.check(Command::shell(script)).rule;
  };
  const LocalExecutor read_only = make(options);
  CHECK(rule_of(read_only, "touch ro/x") == "read-only");
  CHECK(rule_of(read_only, "touch x") == "");
  CHECK(rule_of(read_only, "rm -fr / --no-such-option") == "read-only");
  CHECK(rule_of(read_only, "echo dd") == "dd");
  for (const char* script : {"echo 'open", "touch ro/x; fi", "echo $(", "cat <<'A' $(\nA"})
    CHECK(rule_of(read_only, script) == "read-only");
  CHECK(read_only.check(Command::shell("echo 'open")).message ==
        "Command was not understood, so which files it changes is not known");
  CHECK(rule_of(read_only, "cat \"$(mktemp)\"; $TOOL x | sh") == "");
  options.roots = {};
  CHECK(rule_of(make(options), "echo 'open") == "");
  options.delete_guard = true;
  CHECK(rule_of(make(options), "echo 'open") == "delete-guard");
  CHECK(rule_of(make(options), "rm a") == "delete-guard");
}

// the delete guard --------------------------------------------------------------------------------

namespace {

std::string unread(const std::string& path) {
  return "Cannot delete '" + path +
         "': File must be read before deletion. View it with read_file, cat or diff first.";
}

}  // namespace

TEST_CASE("delete guard: what no command has read or made is not deleted") {
  const support::TempDir place;
  for (const char* name : {"a", "b", "c", "d", "e", "sub/f", "sub/g", "build/h", "i.pyc"})
    place.file(name, name);
  LocalOptions options = in(place);
  options.delete_guard = true;
  const LocalExecutor here = make(options);
  const auto refused = [&](const std::string& script, const std::string& message) {
    const Result r = here.run(script);
    CHECK_MESSAGE(r.rule == "delete-guard", script);
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.message == message);
    CHECK(r.rule_begin < r.rule_end);
    CHECK(r.rule_end <= script.size());
  };
  refused("rm a", unread(place / "a"));
  refused("rm -f ./a", unread(place / "a"));
  refused("rm " + (place / "a"), unread(place / "a"));
  refused("cat a && rm a", unread(place / "a"));  // it was not read before this was written
  CHECK(support::read_file(place / "a") == "a");

  CHECK(here.run("cat a").succeeded());
  refused("rm a b", unread(place / "b"));
  refused("rm a b c d e",
          "Cannot delete 4 unread file(s). Examples: " + place / "b" + ", " + (place / "c") + ", " +
              (place / "d") +
              " (and 1 more). Please read files before deletion, with read_file or cat.");
  refused("rm ?", "Cannot delete 4 unread file(s). Examples: " + place / "b" + ", " +
                      (place / "c") + ", " + (place / "d") +
                      " (and 1 more). Please read files before deletion, with read_file or cat.");
  CHECK(here.run("rm a").succeeded());
  CHECK(!support::exists(place / "a"));

  refused("rm -rf sub", "Cannot delete directory '" + place / "sub" +
                            "': Contains 2 unread file(s). Examples: f, g. Please read files "
                            "before deletion.");
  // These take no file with them.
  CHECK(here.check(Command::shell("rmdir sub; rm sub")).rule == "");
  CHECK(here.run("cat sub/f").succeeded());
  refused("rm -rf s*", "Cannot delete directory '" + place / "sub" +
                           "': Contains 1 unread file(s). Examples: g. Please read files before "
                           "deletion.");
  CHECK(here.run("cat sub/* > all").succeeded());
  CHECK(here.run("rm -rf sub").succeeded());
  CHECK(!support::exists(place / "sub"));

  // What was made may go; what is auto-generated or not there, too.
  CHECK(here.run("rm all").succeeded());
  CHECK(here.run("echo x > new; mkdir -p dir; touch dir/x").succeeded());
  CHECK(here.run("rm -r new dir").succeeded());
  CHECK(here.run("rm i.pyc").succeeded());
  refused("rm build/h", unread(place / "build/h"));
  CHECK(here.run("rm -rf build").succeeded());
  CHECK(here.run("rm -f missing; rm -rf missing").succeeded());
  CHECK(here.run("echo x > once; rm once").succeeded());
  // A pattern that stands for no file means itself.
  place.file("[x]");
  refused("rm [x]", unread(place / "[x]"));
  // A move takes a file away, too.
  refused("mv b elsewhere", unread(place / "b"));
}

TEST_CASE("delete guard: only what has run counts, and start() counts like run()") {
  const support::TempDir place;
  for (const char* name : {"a", "b", "c"}) place.file(name);
  LocalOptions options = in(place);
  options.delete_guard = true;
  options.policy.blocked = {"cat a"};
  const LocalExecutor here = make(options);
  const auto may = [&](const char* script) {
    return here.check(Command::shell(script)).rule.empty();
  };
  here.run("cat a");
  here.check(Command::shell("cat b"));
  CHECK(!may("rm a"));
  CHECK(!may("rm b"));
  CHECK(here.run(Command::program({"/nonexistent/cat", "b"})).outcome == Outcome::not_started);
  here.run("cat later");
  place.file("later");
  CHECK(!may("rm b"));
  CHECK(!may("rm later"));
  here.start(Command::shell("cat b")).wait();
  CHECK(may("rm b"));
  // A copy has the same memory, another executor its own.
  const LocalExecutor copy = here;
  copy.run("cat c");
  CHECK(may("rm c"));
  CHECK(make(options).check(Command::shell("rm c")).rule == "delete-guard");
  // Other tools may tell what they read.
  REQUIRE(here.delete_guard());
  here.delete_guard()->mark_read(place / "a");
  CHECK(may("rm a"));
  CHECK(make(in(place)).delete_guard() == nullptr);
  CHECK(make(in(place)).check(Command::shell("rm a b c")).rule == "");
}

TEST_CASE("a pattern that may stand for too many files is refused") {
  const support::TempDir place;
  const std::string full = place.directory("full");
  support::fill_directory(full, codeexec::DeleteGuard::max_entries + 1);
  LocalOptions options = in(place);
  options.delete_guard = true;
  const LocalExecutor here = make(options);
  const Result r = here.check(Command::shell("rm full/*x"));
  CHECK(r.rule == "delete-guard");
  CHECK(r.message == "Command would change '" + full +
                         "/*x': there are more than 100000 entries, too many to be checked");
  CHECK(here.check(Command::shell("cat full/*x")).rule == "");
}

TEST_CASE("delete guard: the entries of all the trees are looked at once") {
  const support::TempDir place;
  std::string script = "rm -rf";
  std::string path = "d";
  for (int i = 0; i < 60; ++i) {
    support::fill_directory(place.directory(path), 50, ".log");
    script += " " + path;
    path += "/d";
  }
  LocalOptions options = in(place);
  options.delete_guard = true;
  const LocalExecutor here = make(options);
  CHECK(here.check(Command::shell(script)).rule == "");
  place.file("d/d/d/precious");
  CHECK(here.check(Command::shell(script)).rule == "delete-guard");
  CHECK(here.check(Command::shell("rm -rf d/d/d/d d-x d")).rule == "delete-guard");
  CHECK(here.check(Command::shell("rm -rf d/d/d/d")).rule == "");
}
