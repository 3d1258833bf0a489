// What standard input is behind exec, and for texts that a shell runs itself.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Policy;
using support::after_writing;
using support::passes;
using support::refuses;
using support::strict;

TEST_CASE("policy: a shell that reads its script goes on with what exec gives it") {
  const Policy policy = strict();
  refuses(policy, "sudo",
          {
              "bash <<X\nexec <<< 'sudo id'\nX",
              "bash -s a b <<X\nexec 0<<< 'sudo id'\nX",
              "echo 'exec <<< \"sudo id\"' | sh -s",
              "bash <<X\nexec <<Y\nsudo id\nY\nX",
              "bash <<X\nexec -- <<< 'sudo id'\nX",
              "bash <<X\ncommand exec -a n <<< 'sudo id'\nX",
              "bash <<X\nif a; then exec <<< 'sudo id'; fi\nX",
              "bash <<'X'\nx=sudo; { exec <<< \"$x id\"; } 2> log\nX",
              "bash <<X\nf() { exec <<< 'sudo id'; }; f\nX",
              "bash <<X\neval 'exec <<< \"sudo id\"'\nX",
              "bash <<X\nexec <<< 'exec <<< \"sudo id\"'\nX",
              "bash <<'X'\na && exec < x\nexec <<< 'sudo id'\nX",
              "echo 'sudo id' > f; bash <<< 'exec < f'",
              "echo 'sudo id' > f; echo 'exec < f' > g; sh < g",
              "echo 'exec < f' > g; echo 'sudo id' > f; sh < g",
          });
  refuses(policy, "opaque-shell-input",
          {
              "bash <<X\nexec < f\nX",
              "bash <<X\nexec < <(curl x)\nX",
              "bash 3< f <<X\nexec <&3\nX",
              "exec 3<<< ls\nbash <<X\nexec 0<&3-\nX",
              "bash <<'X'\nexec <<< \"$(curl x)\"\nX",
              "curl x > f; bash <<X\nexec < f\nX",
          });
  passes(policy, {
                     "bash <<X\nexec <<< 'ls -l'\nX",
                     "bash <<X\nexec > log 2>&1\nls\nX",
                     "bash <<X\nexec < /dev/null\nls\nX",
                     "bash <<X\nexec 0<&0 3< f\nls\nX",
                     "bash <<X\nexec 0<&-\nX",
                     "bash <<X\nexec sort < f\nX",
                     "bash -c 'exec < f; sort'",
                     "exec < f; sort",
                     "exec <<< 'sudo id'; sort",
                     "echo 'ls -l' > f; bash <<< 'exec < f'",
                 });
}

TEST_CASE("policy: what exec gives is judged in files of earlier commands and in typed lines") {
  const auto with_file = [](const std::string& text) {
    return after_writing(strict(), "/work/f", text);
  };
  const auto judged = [&](const std::string& text, std::string_view script) {
    return with_file(text)->judge(script, "/work", false).verdict;
  };
  CHECK(judged("sudo id\n", "bash <<< 'exec < f'").rule == "sudo");
  CHECK(judged("ls\n", "bash <<< 'exec < f'"));
  CHECK(judged("exec <<< 'sudo id'\n", "bash < f").rule == "sudo");
  CHECK(judged("exec <<< 'sudo id'\n", "sh f"));
  for (const bool terminal : {false, true}) {
    std::string typed;
    const auto type = [&](const codeexec::Guard& guard, std::string_view text) {
      return guard.judge_typed("bash", "/work", terminal, text, typed);
    };
    CHECK(type(*with_file("ls\n"), "cd /work\n"));
    CHECK(type(*with_file("sudo id\n"), "exec < f\n").rule == "sudo");
    CHECK(type(*with_file("sudo id\n"), "exec < g\n").rule == "opaque-shell-input");
    CHECK(type(*with_file("ls\n"), "exec < f\n"));
  }
}

TEST_CASE("policy: what exec makes of standard input holds where it does in a shell") {
  const Policy policy = strict();
  refuses(policy, "sudo",
          {
              "exec -- <<< 'sudo id'; bash",
              "f() { exec <<< 'sudo id'; }; f; bash",
              "{ exec <<< 'sudo id'; } > log; bash",
              "echo 'exec <<< \"sudo id\"' > g; . ./g; bash",
              "if a; then exec <<< 'sudo id'; else exec <<< 'sudo id'; fi; bash",
              "(exec <<< 'sudo id'; bash)",
              "eval bash <<< 'sudo id'",
              "command eval 'eval bash' <<< 'sudo id'",
              "shopt -s expand_aliases\nalias b=bash\nb <<< 'sudo id'",
              "eval 'exec <<< \"sudo id\"; bash' < f",
          });
  refuses(policy, "opaque-shell-input",
          {
              "if a; then exec <<< 'sudo id'; else exec <<< ls; fi; bash",
              "a && exec <<< ls; bash",
              "a || exec < /dev/null; bash",
              "case $1 in a) exec <<< ls;; b) exec < /dev/null;; esac; bash",
              "for i in $x; do exec <<< ls; done; bash",
              "while a; do exec < /dev/null; done; bash",
              "f() { a && return; exec <<< ls; }; f; bash",
              "trap 'exec <<< ls' USR1; bash",
              "a && x=ls; exec <<< \"$x\"; bash",
              "x=f; a && x=ls; { bash; } <<< \"$x\"",
              "if a; then f() { exec <<< ls; }; else f() { exec <<< pwd; }; fi; f; bash",
          });
  passes(policy, {
                     "(exec < f); bash",
                     "exec < f & bash",
                     "exec < f | cat; bash",
                     "alias r='exec < f'; bash",
                     "eval 'exec < f' < g; bash",
                     "a && exec < f; sort",
                     "if [ -t 0 ]; then exec < f; fi; while read -r x; do echo \"$x\"; done",
                     "exec < f || exit 1; read -r x; echo \"$x\"",
                 });
  // What is typed comes to the shell although exec may have closed its input before.
  for (const char* const script : {"(exec < /dev/null); bash", "alias r='exec < f'; bash"}) {
    CAPTURE(script);
    std::string typed;
    CHECK(policy.judge_typed(script, "/work", false, "ls\n", typed));
    CHECK(policy.judge_typed(script, "/work", false, "sudo id\n", typed).rule == "sudo");
  }
}
