// Scripts with functions and loops: what they hide is found, and they are not too complex.
#include <doctest/doctest.h>
#include <ftw.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../helpers/support.hpp"
#include "codeexec.hpp"
#include "helpers.hpp"

using codeexec::Policy;
using codeexec::Verdict;
using support::passes;
using support::repeat;
using support::strict;

namespace {

std::vector<std::string> scripts_found;

// nftw() takes a plain function.
int note_script(const char* path, const struct stat* status, int kind, struct FTW*) {
  constexpr long longest = 1 << 20;
  const bool small = kind == FTW_F && status->st_size > 4 && status->st_size <= longest;
  const std::string_view name = path;
  const bool named = name.size() > 3 && name.substr(name.size() - 3) == ".sh";
  if (small && (named || (status->st_mode & 0111) != 0)) scripts_found.emplace_back(path);
  return 0;
}

// What the file holds, if it begins like a script and can be read.
std::string script_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (file.get() != '#' || file.get() != '!') return {};
  return "#!" + std::string(std::istreambuf_iterator<char>(file), {});
}

// Whether the first line names a shell.
bool is_shell_script(const std::string& text) {
  if (text.substr(0, 2) != "#!") return false;
  std::string line = text.substr(2, std::min<std::size_t>(text.find('\n'), 100) - 2);
  for (const std::string_view shell : {"/sh", "/bash", "/dash", "env sh", "env bash"}) {
    const std::size_t at = line.find(shell);
    if (at == std::string::npos) continue;
    const std::size_t end = at + shell.size();
    if (end == line.size() || line[end] == ' ') return true;
  }
  return false;
}

void check_script(const Policy& policy, const std::string& path, const std::string& text) {
  const Verdict verdict = policy.judge(text, "/work").verdict;
  if (verdict.rule != "command-too-complex") return;
  // More commands as written than the limit.
  CHECK_MESSAGE(support::has(verdict.message, "more than 4096 commands"), path, ": ",
                verdict.message);
}

constexpr std::string_view helpers =
    "log() { echo \"$@\"; }\n"
    "die() { log \"$@\"; exit 1; }\n"
    "run() { log \"+ $*\"; \"$@\" || die \"$1\"; }\n"
    "build() { run mkdir -p \"out/$1\"; run cp a \"out/$1/$2\"; run cp b \"out/$1/$2\"; "
    "log \"built $1 $2\"; }\n"
    "check() { [ -d \"out/$1\" ] || die \"no out/$1\"; for f in a b; do "
    "[ -f \"out/$1/$2/$f\" ] || die \"no $f in out/$1/$2\"; done; "
    "run rm -rf \"out/$1/$2/tmp\"; }\n"
    "for os in linux mac win; do for arch in x86 arm; do for m in debug release; do\n"
    "  log \"== $os $arch $m\"; build $os $arch-$m; check $os $arch-$m\n"
    "  run ./test.sh --os \"$os\" \"$arch-$m\"\n"
    "done; done; done\n"
    "log done\n";

std::size_t commands_told(std::string_view script) {
  const auto commands = codeexec::simple_commands(script);
  REQUIRE(commands.has_value());
  return commands->size();
}

}  // namespace

TEST_CASE("policy: helpers and loops cost about what is written") {
  passes(strict(), {helpers});
  CHECK(commands_told(helpers) < 1500);
  // Twice the calls, with the same arguments: nothing new but the calls.
  const std::string call = "build linux x86-debug\n";
  const std::string script = std::string(helpers) + repeat(call, 100);
  CHECK(commands_told(script) < commands_told(helpers) + 110);
  std::string tower = "f0() { echo \"$x\"; }\n";
  for (int i = 1; i < 25; ++i) {
    const std::string below = "f" + std::to_string(i - 1);
    tower += "f" + std::to_string(i) + "() { " + below + "; " + below + "; " + below + "; }\n";
  }
  CHECK(commands_told(tower + "f24") < 500);
  passes(strict(), {tower + "f24"});
}

TEST_CASE("policy: what a helper does with other values is found") {
  const Policy policy = strict();
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"rm-protected", "for x in a /; do rm -rf \"$x\"; done"},
      {"rm-protected", "for x in a b c d e f g h i j k l m n o p q r s /; do rm -rf $x; done"},
      {"rm-protected", "f() { for x; do rm -rf $x; done; }; f 1 2 3 4 5 6 7 8 9 a b c d e f g h /"},
      {"rm-protected", "for a in 1 2 3 4 ''; do for b in 1 2 3 4 /; do rm -rf $b$a; done; done"},
      {"sudo", "f() { \"$@\"; }; f echo; f sudo id"},
      {"sudo", "f() { shift; \"$@\"; }; f a echo; f a sudo id"},
      {"sudo", "f() { set -- sudo id; g \"$@\"; }; g() { \"$@\"; }; g ls; f echo"},
      {"rm-protected", "f() { rm -rf \"$1\"; }; f a; f b; f /"},
      {"rm-protected", "x=a; f() { rm -rf \"$x\"; }; f; x=b; f; x=/; f"},
      {"rm-protected", "f() { for b in 1 2; do rm -rf \"$c\"; done; }; c=a; f; c=/; f"},
      {"rm-protected", "f() { rm -rf *; }; f; cd /; f"},
      {"sudo", "f() { $1; }; f ls; IFS=,; f sudo,id"},
      {"sudo", "f() { sh; }; echo ls | f; echo 'sudo id' | f"},
      {"rm-protected", "f() { xargs rm -rf; }; find . | f; find / | f"},
      {"rm-protected", "f() { find /; }; f; f | xargs rm -rf"},
      {"sudo", "f() { g; }; g() { ls; }; f; g() { sudo id; }; f"},
      {"sudo", "f() { g; }; f\nalias g='sudo id'\nf"},
      {"sudo", "x=sudo; f() { local x=echo; }; f; $x id"},
      {"sudo", "x=sudo; f() { for i in 1; do local x=echo; done; }; f a; f b; $x id"},
      {"sudo", "f() { x=sudo; return; x=echo; }; f; $x id"},
      {"fork-bomb", "f() { g; }; g() { f | f; }; g; f"},
      // A function that calls itself finds what it has changed.
      {"unknown-command", "x=echo; f() { $x id; x=$y; f; }; f"},
      {"sudo", "x=echo; f() { $x id; x=sudo; f; }; f"},
      {"sudo", "x=echo; f() { f; $x id; x=sudo; }; f"},
      {"sudo", "x=echo; f() { $x id; x=sudo; f; x=echo; }; f"},
      {"sudo", "x=echo; f() { $x id; ( x=sudo; f ); }; f"},
      {"sudo", "x=echo; f() { $x id; g; }; g() { x=sudo; f; }; f"},
      {"sudo", "f() { [ $1 = 0 ] && return; $2 id; f $(($1 - 1)) sudo; }; f 3 echo"},
  };
  for (const auto& [rule, text] : cases) {
    const std::string script(text);
    CAPTURE(script);
    CHECK(policy.judge(script).verdict.rule == rule);
  }
  passes(policy, {
                     "f() { echo \"$1\"; }; f ls; f 'sudo id'",
                     "step() { name=$1; shift; \"$@\"; }; step one make; step two cc -c a.c",
                     "f() { [ \"$1\" = 0 ] && return; echo $1; f $(($1 - 1)); }; f 3",
                     "x=a; for i in 1 2; do if c; then CC=gcc; fi; done; make CC=$CC",
                 });
}

TEST_CASE("policy: scripts that double their work at each level are refused or judged to the end") {
  const Policy policy = strict();
  const auto refused = [&policy](const std::string& script) {
    CAPTURE(script.substr(0, 100));
    CHECK(!policy.judge(script).verdict.allowed);
  };
  for (const std::string_view body : {"f%d \"$@\" a; f%d \"$@\" b;", "x=$x$1; f%d a; f%d b;",
                                      "echo $1 | f%d $1a; echo b | f%d $1b;"}) {
    std::string script = "f0() { echo \"$@\" \"$x\"; cat; }\n";
    for (int i = 1; i < 22; ++i) {
      std::string text(body);
      for (std::size_t at = text.find("%d"); at != std::string::npos; at = text.find("%d"))
        text.replace(at, 2, std::to_string(i - 1));
      script += "f" + std::to_string(i) + "() { " + text + " }\n";
    }
    refused(script + "f21 x\nsudo id");
    refused(script + "f21 x\nfor y in a /; do rm -rf \"$y\"; done");
  }
  refused("f() { " + repeat("f \"$@\" a; ", 30) + " }; f x; sudo id");
  refused(repeat("for i in 1 2 3; do ", 15) + "x=$x$i; " + repeat("done; ", 15) + "sudo id");
}

TEST_CASE("policy: no script of this system is too complex") {
  for (const char* const root : {"/usr", "/etc", "/lib"})
    ::nftw(root, note_script, 32, FTW_PHYS | FTW_MOUNT);
  std::sort(scripts_found.begin(), scripts_found.end());
  const Policy policy = strict();
  std::size_t judged = 0;
  for (const std::string& path : scripts_found) {
    const std::string text = script_in(path);
    if (!is_shell_script(text)) continue;
    check_script(policy, path, text);
    ++judged;
  }
  MESSAGE("scripts judged: ", judged);
  check_script(policy, "tests/run.sh", support::read_file(CODEEXEC_ROOT "/tests/run.sh"));
}
