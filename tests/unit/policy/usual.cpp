// What allow_usual allows besides commands that only read: sed and awk that are quiet, what starts
// an allowed command, scripts for a shell, tests.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "helpers.hpp"

using codeexec::Policy;
using support::lists;
using support::passes;
using support::refuses;
using support::strict;

namespace {

Policy usual(std::vector<std::string> patterns = {}) {
  codeexec::PolicyOptions options = lists(std::move(patterns));
  options.allow_usual = true;
  return strict(options);
}

}  // namespace

TEST_CASE("policy: usual: sed that only prints") {
  passes(usual(),
         {"sed -n '1,20p' a", "sed -n -e '/x/p' -e '$=' a", "sed 's/a/b/g' a | head",
          "sed -E 's|a[^b]+|\\1|2p' a", "sed '/^#/d;s/ *$//' a b", "sed -n '/a/,/b/{s/x/y/;p}' a",
          "sed -n '5p;10q' a", "sed -e :a -e '$!{N;ba' -e '}' a", "sed y/abc/xyz/"});
  refuses(usual(), "allowed-commands",
          {"sed -i s/a/b/ a",
           "sed -n -i p a",
           "sed -ni p a",
           "sed --in-place s/a/b/ a",
           "sed --in s/a/b/ a",
           "sed 's/a/b/w out' a",
           "sed 'w out' a",
           "sed -n '1w out' a",
           "sed '1e id' a",
           "sed 's/a/id/e' a",
           "sed 's/a/id/ge' a",
           "sed -f x a",
           "sed -n \"$X\" a",
           "sed -n \"${A}p\" a",
           "sed 's/[/]x/e' a",
           "sed 's/[]/]/x/' a",
           "sed p \"$F\"",
           "sed 's/[/]/e;s/]/x/' a",
           "sed p $X",
           "sed p *",
           "sed '1!W x' a",
           "sed 'r x' a",
           "sed '1a x' a",
           "sed 'sxaxbxw out' a",

           "sed '/a/Ie id' a",
           "sed '\\,x,w out' a",
           "sed p -i a",
           "sed 's/a/b/;w out' a",
           "sed 's/a/b/\nw out' a",

           "./sed p"});
}

TEST_CASE("policy: usual: awk that starts and writes nothing") {
  passes(usual(),
         {"awk '{print $1}' a", "awk -F: '{ print $1, $3 }' a",
          "awk -F '|' 'NR==2 || /a|b/ { s += $3 } END { print s }' a", "awk -v n=3 'NR > n' a",
          "awk '$3 > 100 { print $1 }' a", "awk '{ printf \"%s > %d | x\\n\", $1, $2 }' a",
          "awk 'length($0) > 80' \"$F\"", "ls -l | awk '{ if ($5 > 10) print $9 }'"});
  refuses(usual(), "allowed-commands",
          {"awk 'BEGIN { system(\"id\") }'", "awk '{ print | \"sh\" }' a",
           "awk '{ print > \"out\" }' a", "awk '{ print >> \"out\" }' a",
           "awk '{ printf \"x\" > \"out\" }' a", "awk '{ print $1, $2 > $3 }' a",
           "awk 'BEGIN { \"id\" | getline }'", "awk -f x a", "awk -i inplace '{print}' a",
           "gawk 'BEGIN { f = \"system\"; @f(\"id\") }'", "awk \"{ print $X }\" a", "awk -E x",
           "awk '/\"/ { system(\"id\") }' a", "awk '{ print \"a\" |& \"x\" }' a",
           "awk '{ a = $1 /\"/ 2; system(\"id\") }' a", "awk -lx 1",
           "awk '{ while ((getline l < \"x\") > 0) print l }'"});
}

TEST_CASE("policy: usual: what starts an allowed command") {
  const Policy policy = usual({"python.*", "make( .*)?"});
  passes(policy, {"timeout 60 python x.py", "timeout -k 5 10s make", "timeout 5 ls", "nohup make &",
                  "nohup timeout 5 python x.py > log 2>&1 &", "time make", "env", "env CI=1 make",
                  "env TERM=dumb LANG=C python x.py", "CI=1 python x.py", "LC_ALL=C sort a",
                  "command -v git", "PYTHONUNBUFFERED=1 timeout 5 python x.py", "nosuch --version",
                  "git --help"});
  refuses(policy, "allowed-commands",
          {"timeout 60 rm x",
           "timeout \"$X\" python x",
           "nohup ./x",
           "nohup nohup rm x",
           "env PATH=. make",
           "env LD_PRELOAD=./x ls",
           "env -S 'rm x'",
           "env -i make",
           "env X=1 make",
           "PYTHONPATH=. python x.py",
           "CI=$X python x.py",
           "CI=1 rm x",

           "xargs rm",
           "xargs sort",
           "xargs sh -c id",
           "xargs -I{} cat {}",
           "xargs",
           "xargs -a x cat",
           "xargs find",
           "xargs timeout 5 cat",
           "command rm x",
           "./x --version",
           "a/b --help",
           "rm --version x",
           "time rm x",
           "timeout 5 nohup env CI=1 rm x"});
}

TEST_CASE("policy: usual: each command of a script for a shell needs to be allowed") {
  const Policy policy = usual({"git( .*)?"});
  passes(policy,
         {"bash -lc 'git status'", "/bin/zsh -lc 'git log | head -3'",
          "sh -c 'cd a && git diff > x'", "/usr/bin/bash -c ls", "zsh -lc \"sed -n '1,20p' a\""});
  refuses(
      policy, "allowed-commands",
      {"bash -lc 'git status; rm x'", "/bin/zsh -lc 'rm x'", "sh -c 'env X=1 git log'", "bash x.sh",
       "bash", "sh -s", "./sh -c ls", "/tmp/sh -c ls", "bash -c ls a b", "bash -ic ls",
       "bash --rcfile x -c ls", "echo ls | sh", "bash -c 'f() { ls; }; f'", "bash -c"});
  refuses(policy, "opaque-shell-input", {"bash -lc \"$X\"", "sh -c \"git $X\""});
}

TEST_CASE("policy: usual: tests by their usual options, and what makes files as > does") {
  passes(usual(), {"pytest",
                   "pytest -q tests/test_x.py::T::t",
                   "pytest -xvs -k 'a and b' -n4",
                   "python -m pytest --maxfail=2 --tb=short",
                   "python3 -m unittest -v a.b",
                   "npm test",
                   "npm run test",
                   "go test ./...",
                   "go test -run TestX -count=1 ./a",
                   "cargo test -p x",
                   "ctest --output-on-failure -j4",
                   "npx jest src/a.test.js",
                   "mkdir -p a/b",
                   "touch a",
                   "cp a b",
                   "cp -r a b",
                   "chmod +x a.sh",
                   "ps aux",
                   "file a",
                   "timeout 60 pytest -q"});
  refuses(usual(), "allowed-commands",
          {"pytest -p x",
           "pytest -c x",
           "pytest --rootdir=/",
           "pytest --basetemp=a",
           "pytest $X",
           "pytest -o cache_dir=x",
           "pytest --junitxml=x",
           "python -m pip",
           "python -m",
           "python",
           "python3 x.py",
           "npm run build",
           "npm test -- --x",
           "npm",
           "go test -exec ./x",
           "go test -toolexec=./x",
           "go test -o x",
           "go run x",
           "cargo test --config x",
           "cargo run",
           "ctest -S x",
           "ctest -D X=y",
           "npx x",
           "npx jest --config x",
           "cp -l a b",
           "cp --symb a b",
           "mkdir -m 700 a",
           "chmod 700 a",
           "chmod -R +x a",
           "chmod +x",
           "chmod +x $X",
           "file -C -m x",
           "ss -K",
           "strings -T x a"});
}
