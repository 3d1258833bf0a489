// Variables that steer programs, however they are set: commands of git and pagers, what a shell at
// a terminal runs by itself, the files that shells read first.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Policy;
using support::after_writing;
using support::lists;
using support::make;
using support::passes;
using support::refuses;
using support::strict;

namespace {

// Ways to give the variable N the text V; both stand in them as they are.
const std::string_view ways[] = {
    "N=V",
    "for N in ls V; do :; done",
    "select N in V; do :; done",
    "read -r N <<< V",
    "IFS=, read -r N x <<< V,1",
    "echo V | while read -r N; do :; done",
    "printf -v N %s V",
    "x=N; printf -v \"$x\" %s V",
    "N=; N+=V",
    "N+=V",
    "export N+=V",
    "declare N=V",
    "typeset -x N=V",
    "f() { local N=V; }; f",
    "x=N; export \"$x=V\"",
    "unset N; : \"${N:=V}\"",
    ": ${N=V}",
    "read -r N < f; : ${N:=V}",
    "x=N; : ${!x:=V}",
    "declare -n r=N; r=V",
    "declare -n r=N; r+=V",
    "declare -n r=N; printf -v r V",
    "declare -n r; r=N; r=V",
    "declare -n a=b; declare -n b=N; a=V",
    "f() { local -n r=$1; r=$2; }; f N V",
    "read -r x < f; declare -n r=$x; r=V",
    "while IFS== read -r k v; do export \"$k=$v\"; done <<< N=V",
    "env N=V bash -i",
};

std::string with(std::string_view way, std::string_view name, std::string_view value) {
  std::string script;
  for (const char c : way)
    script += c == 'N' ? std::string(name) : c == 'V' ? std::string(value) : std::string(1, c);
  return script;
}

}  // namespace

TEST_CASE("policy: a variable that is a command has one judgement, however it is set") {
  const Policy policy = make(lists({}, {"forbidden.*"}));
  for (const std::string_view way : ways) {
    for (const std::string_view name : {"PAGER", "GIT_EXTERNAL_DIFF", "PROMPT_COMMAND"}) {
      const std::string script = with(way, name, "forbidden");
      CAPTURE(script);
      const std::string rule = policy.judge(script).verdict.rule;
      // Besides, its value may be one that is not known.
      const bool unknown = name == "PROMPT_COMMAND" && rule == "opaque-shell-input";
      CHECK((rule == "blocked-commands" || unknown));
    }
  }
  refuses(policy, "blocked-commands",
          {"declare -l PAGER=FORBIDDEN", "declare -l EDITOR; EDITOR=FORBIDDEN",
           "read -r -d '' PAGER <<< forbidden", "read -N 9 EDITOR <<< forbidden",
           "PROMPT_COMMAND=(ls forbidden)", "PROMPT_COMMAND+=(forbidden)",
           "declare -a PROMPT_COMMAND=(ls forbidden)", "PROMPT_COMMAND[2]=forbidden",
           "PROMPT_COMMAND=forb; declare PROMPT_COMMAND+=idden"});
  passes(strict(), {
                       "read -r PAGER <<< less",
                       "for EDITOR in vim nano; do command -v \"$EDITOR\" && break; done",
                       ": \"${EDITOR:=vim}\"; export EDITOR",
                       "PAGER+=less",
                       "f() { local -n out=$1; out='sudo is needed'; }; f message",
                       "declare -n r=x; read -r y < f; r='rm -rf / is bad'",
                       "printf -v GIT_BRANCH %s \"$(git branch --show-current)\"",
                       "while IFS== read -r k v; do export \"$k=$v\"; done < .env",
                       "GIT_ASKPASS=$(mktemp) git fetch",
                       "export PATH+=:/x PYTHONPATH+=:/y",
                   });
}

TEST_CASE("policy: what a shell at a terminal runs by itself is known") {
  refuses(strict(), "opaque-shell-input",
          {
              "PROMPT_COMMAND=$(cat f)",
              "read -r PROMPT_COMMAND < f",
              "mapfile -t PROMPT_COMMAND < f",
              "read -a PROMPT_COMMAND <<< ls",
              "printf -v PROMPT_COMMAND 'ls; %s' \"$(cat f)\"",
              "PROMPT_COMMAND+=$(cat f)",
              "PROMPT_COMMAND=(ls \"$(cat f)\")",
              "declare -n r=PROMPT_COMMAND; r=$(cat f)",
              "f() { local -n r=$1; r=$2; }; f PROMPT_COMMAND \"$(cat f)\"",
              "PROMPT_COMMAND[0]=ls; PROMPT_COMMAND[0]+=x",
              "export PROMPT_COMMAND=\"history -a; $(cat f)\"",
              "PS1=$(cat f)",
              "read -r PS0 < f",
              "printf -v PS1 '%s$(ls)' \"$PS1\"",
              "env PS1=\"$(cat f)\" bash -i",
          });
  refuses(strict(), "sudo",
          {
              "PS1+='$(sudo id)'",
              "for PS0 in '$(sudo id)'; do :; done",
              "read -r PS2 <<< '$(sudo id)'",
              "env PS1='\\w $(sudo id)' bash -i",
              "declare -n r=PS1; r=\"$PS1\"'`sudo id`'",
          });
  passes(strict(), {
                       "export PROMPT_COMMAND=\"history -a; $PROMPT_COMMAND\"",
                       "PROMPT_COMMAND+='; history -a'",
                       "PROMPT_COMMAND+=(my_hook)",
                       "PROMPT_COMMAND=\"${PROMPT_COMMAND:+$PROMPT_COMMAND; }history -a\"",
                       "PS1=\"(venv) ${PS1:-}\"",
                       "export PS1='\\u@\\h:\\w\\$ '",
                       "PS1=\"[$USER \\W]\\\\$ \"",
                       "env PS1='sudo> ' bash -i",
                       "unset PROMPT_COMMAND PS1",
                   });
}

TEST_CASE("policy: a file that a shell reads first is judged as one that is sourced") {
  for (const std::string_view way : ways) {
    const std::string script = "echo forbidden > start; " + with(way, "BASH_ENV", "start") +
                               "; export BASH_ENV; bash x.sh";
    // It holds for that command, or that loop, alone; or what it sets is not known.
    if (support::has(script, "env ") || support::has(script, "local") ||
        support::has(script, "| while") || support::has(script, "r=$x"))
      continue;
    CAPTURE(script);
    CHECK(!make(lists({}, {"forbidden.*"})).judge(script).verdict);
  }
  refuses(strict(), "sudo",
          {
              "echo 'sudo id' > f; BASH_ENV=f bash -c ls",
              "echo 'sudo id' > f; BASH_ENV=f timeout 5 bash x.sh",
              "echo 'sudo id' > f; env BASH_ENV=f bash x.sh",
              "echo 'sudo id' > f; env BASH_ENV=g env -i BASH_ENV=./f nice bash x.sh",
              "export BASH_ENV=f; echo 'sudo id' > f; bash x.sh",
              "echo 'sudo id' > f; export BASH_ENV=f; ./x.sh",
              "echo 'sudo id' > f; export BASH_ENV=f; sh -c 'bash -c :'",
              "echo 'sudo id' > f; f() { local -x BASH_ENV=f; ls | bash -s; }; f",
              "echo 'bash -c \"sudo id\"' > f; BASH_ENV=f bash x.sh",
              "echo 'sudo id' > f; ENV=./f sh",
              "echo 'sudo id' > f; export ENV=./f; sh -i",
              "export BASH_ENV='$(sudo id)'; bash x.sh",
          });
  refuses(strict(), "opaque-shell-input",
          {
              "curl x > f; BASH_ENV=f bash -c ls",
              "curl -o f x; env BASH_ENV=f bash -c ls",
              "export BASH_ENV=$X; bash -c ls",
              "read -r BASH_ENV < f; export BASH_ENV; bash x.sh",
              "declare -n r=BASH_ENV; r=f; bash x.sh",
              "BASH_ENV=$X make; export BASH_ENV=<(ls); bash x.sh",
          });
  passes(strict(), {
                       "echo 'export A=1' > f; BASH_ENV=f bash -c 'echo $A'",
                       "echo 'sudo id' > f; BASH_ENV=f bash -n x.sh",
                       "echo 'sudo id' > f; ENV=f bash deploy.sh",
                       "echo 'sudo id' > prod; ENV=prod npm run build",
                       "export ENV=$X; bash build.sh",
                       "export BASH_ENV=$X; ./x.sh",
                       "export BASH_ENV=f; unset BASH_ENV; bash x.sh",
                       "echo 'bash -c ls' > f; BASH_ENV=f bash x.sh",
                   });
  refuses(strict(), "sudo", {"export BASH_ENV='$PWD/f'; echo 'sudo id' > f; bash x.sh"}, "/work");
  const auto guard = after_writing(strict(), "/work/f", "sudo id\n");
  const auto judged = [&](const char* name, const char* script) {
    return guard->judge_reading(script, {}, "/work", false, {{name, "/work/f"}}).verdict;
  };
  CHECK(judged("BASH_ENV", "bash x.sh").rule == "sudo");
  CHECK(judged("BASH_ENV", "cd /; ./x").rule == "sudo");
  CHECK(judged("ENV", "sh").rule == "sudo");
  CHECK(judged("BASH_ENV", "ls"));
  CHECK(judged("OTHER", "bash x.sh"));
}

TEST_CASE("policy: an allow list is asked for a variable that steers programs") {
  const Policy policy = make(lists({"ls", "read.*", "printf.*", "PATH=/usr/bin"}));
  CHECK(policy.judge("read -r x <<< /tmp; ls").verdict);
  CHECK(policy.judge("printf -v PATH %s /usr/bin; ls").verdict);
  CHECK(!policy.judge("printf -v PATH %s /tmp; ls").verdict);
  CHECK(!policy.judge("read -r PATH < f; ls").verdict);
}
