// The strict policy: what programs print for eval, and names that the workspace's files have.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "helpers.hpp"

using codeexec::Verdict;
using support::lists;
using support::passes;
using support::refuses;
using support::rule_of;
using support::strict;
using namespace std::string_view_literals;

TEST_CASE("policy: what known programs print may be evaluated") {
  passes(strict(),
         {"eval \"$(brew shellenv)\"", "eval \"$(/opt/homebrew/bin/brew shellenv)\"",
          "eval $(dircolors -b)", "source <(kubectl completion bash)", "eval \"$(luarocks path)\"",
          "eval \"$(\"$HOME/.linuxbrew/bin/brew\" 'shellenv' 2> /dev/null)\" && make",
          "opts=$(getopt -o ab: -- \"$@\"); eval set -- \"$opts\"",
          "args=$(getopt -o h --long help -- \"$@\") || exit 1; eval set -- \"${args}\"",
          "eval set -- \"$(getopt -o h -- \"$@\")\"", "eval \"set -- $(getopt -o h -- \"$@\")\""});
}

TEST_CASE("policy: where a form of it can be judged, the refusal of eval names that") {
  struct Row {
    std::string_view script;
    std::string_view advice;
    std::string_view done;  // the advice, followed
  };
  const Row rows[] = {
      {"eval \"$(conda shell.bash hook)\"", "conda run -n NAME COMMAND", "conda run -n x make"},
      {"s=\"$('/opt/conda/bin/conda' 'shell.bash' hook)\"; eval \"$s\"",
       "conda run -n NAME COMMAND", "conda run -n x make"},
      {"eval `ssh-agent -s`", "ssh-agent COMMAND", "ssh-agent sh -c 'ssh-add k; git fetch'"},
      {"eval $(opam env)", "opam exec -- COMMAND", "opam exec -- make"},
      {"eval \"$(direnv hook bash)\"", "direnv exec . COMMAND", "direnv exec . make"},
      {"eval \"$(pyenv init -)\"", "pyenv exec COMMAND", "pyenv exec python a.py"},
      {"eval \"$(mise activate bash)\"", "mise exec -- COMMAND", "mise exec -- make"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.script));
    const Verdict verdict = strict().judge(row.script).verdict;
    CHECK(verdict.rule == "opaque-shell-input");
    CHECK(verdict.message.find(row.advice) != std::string::npos);
    passes(strict(), {row.done});
  }
}

TEST_CASE("policy: what else is evaluated must be known") {
  refuses(strict(), "opaque-shell-input",
          {"eval \"$(brew shellenv; echo x)\"",
           "eval \"$(./brew shellenv)\"",
           "eval \"$(/tmp/brew shellenv)\"",
           "eval \"$(ssh-agent sh -c 'echo x')\"",
           "eval \"$(getopt ab $*)\"",
           "eval \"$(getopt -u -o ab -- \"$@\")\"",
           "x=$(getopt -o a -- \"$@\"); x=$(curl y); eval \"$x\"",
           "x=$(ssh-agent); x+=$(curl y); eval \"$x\"",
           "x=$(ssh-agent); read x; eval \"$x\"",
           "x=$(ssh-agent); for x in $(curl y); do eval \"$x\"; done",
           "eval \"$(conda shell.bash hook)$(curl y)\"",
           "eval \"$(conda run sh -c 'curl x')\"",
           "eval \"$(opam exec -- curl x)\"",
           "source <(curl x)",
           ". <(kubectl get secret x)",
           "eval \"$(kubectl completion bash | sed s/a/b/)\"",
           "eval set -- $opts",
           "alias brew='curl x'; eval \"$(brew shellenv)\"",
           "brew() { curl x; }; eval \"$(brew shellenv)\"",
           "eval \"$(conda shell.bash hook)\"; eval \"$(curl x)\""});
  refuses(strict(), "unknown-command", {"eval \"$(brew shellenv)\"; $(curl x)"});
  // The advice is one that eval can follow.
  const Verdict verdict = strict().judge("eval \"$(curl x)\""sv).verdict;
  CHECK(verdict.message.find("; write out the commands that it is to evaluate") !=
        std::string::npos);
}

TEST_CASE("policy: an assignment that only bash knows is no command") {
  passes(strict(), {"X+=\"$(date)\"", "X+=\"$(date)\"; echo $X", "X+=$Y ls"});
  refuses(strict(), "sudo", {"X+=\"$(sudo id)\""});
}

TEST_CASE("policy: S13: files of the workspace pass with a block list, too") {
  const auto policy = strict(lists({}, {"sudo( .*)?", "git push.*", "rm( .*)?"}));
  passes(policy, {"for t in ./build/tests/*; do \"$t\"; done", "./build/*_test",
                  "for t in build/test_*; do ./$t; done", "$(npm bin)/jest", "./build/* --fast",
                  "\"$(go env GOPATH)/bin/golangci-lint\" run", "./gi? status", "./*/bin/x"});
  // Where a blocked program may hide, it is not known what runs.
  refuses(
      policy, "unknown-command",
      {"./gi? push", "./build/r*m x", "/usr/bin/gi? push", "gi? push", "/usr/bin/*", "$T push"});
  // A path in the workspace is no program of the system.
  CHECK(rule_of(policy, "cd /usr/bin; ./*") == "unknown-command");
  refuses(policy, "blocked-commands", {"./*/git push", "$(npm bin)/rm x", "\"$X/git\" push"});
  refuses(policy, "sudo", {"$(npm bin)/sudo id"});
}

TEST_CASE("policy: a refusal names the nearest of many patterns") {
  const auto policy =
      strict(lists({"a", "b", "c", "d", "e", "f", "h", "i", "git log", "git diff"}));
  CHECK(policy.judge("git push"sv).verdict.message ==
        "Command not in allowed list. Allowed patterns: git log, git diff, a, b, c, d, e, f and 2 "
        "more (not allowed: git push)");
}
