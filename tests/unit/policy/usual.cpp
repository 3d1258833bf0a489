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
          {"sed --in s/a/b/ a",
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
           "sed 's/a/b/;w out' a",
           "sed 's/a/b/\nw out' a",

           "./sed p"});
}

TEST_CASE("policy: usual: sed -i changes files in the workspace") {
  const auto passes_at = [](const char* place, const char* command) {
    return usual().judge(command, place, false).verdict.allowed;
  };
  for (const char* const place : {"", "/srv/project"})
    for (const char* const command :
         {"sed -i s/a/b/ a", "sed -n -i p a", "sed -ni p a", "sed --in-place s/a/b/ a b",
          "sed --in-place=.bak s/a/b/ a", "cd lib && sed -i -e s/a/b/ -e 1d ./a ./*.c ../b",
          "sed -i 's/a/b/' src/*.c"})
      CHECK_MESSAGE(passes_at(place, command), std::string(command));
  CHECK(passes_at("/srv/project", "sed -i s/a/b/ /srv/project/a"));
  for (const char* const place : {"", "/srv/project"})
    for (const char* const command :
         {"sed -i s/a/b/ ../a", "sed -i s/a/b/ /srv/other", "cd .. && sed -i s/a/b/ a",
          "cd $X && sed -i s/a/b/ a", "sed -i s/a/b/ a $X", "sed -i s/a/b/ \"$X\"",
          "sed -i s/a/b/ lib/../../a", "sed -i s/a/b/ ~/a", "sed -i s/a/b/ <(ls)",
          // What stands behind the i is kept as the end of a name: the next word is the script.
          "sed -iep 'w out' a", "sed -ies/a/b/ '1e id' a", "sed -i.bak s/a/b/ a",
          "sed --in-place=/tmp/x p a", "sed --in-place=../* p a", "sed -i '' 'w out' a",
          "sed -i 's/a/b/w out' a", "sed -i 1eid a", "sed -i -f x a", "sed -i"})
      CHECK_MESSAGE(!passes_at(place, command), std::string(command));
  // Where no project lies, nothing is a file of the workspace.
  for (const char* const place : {"/", "/etc", "/usr/lib"})
    CHECK_MESSAGE(!passes_at(place, "sed -i s/a/b/ a"), std::string(place));
}

TEST_CASE("policy: usual: awk that starts and writes nothing") {
  passes(usual(),
         {"awk '{print $1}' a", "awk -F: '{ print $1, $3 }' a",
          "awk -F '|' 'NR==2 || /a|b/ { s += $3 } END { print s }' a", "awk -v n=3 'NR > n' a",
          "awk '$3 > 100 { print $1 }' a", "awk '{ printf \"%s > %d | x\\n\", $1, $2 }' a",
          "awk 'length($0) > 80' \"$F\"", "ls -l | awk '{ if ($5 > 10) print $9 }'"});
  refuses(usual(), "allowed-commands",
          {"awk 'BEGIN { system(\"id\") }'", "awk '{ print | \"sort\" }' a",
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
          {"timeout 60 rm x", "timeout \"$X\" python x", "nohup ./x", "nohup nohup rm x",
           "env PATH=. make", "env LD_PRELOAD=./x ls", "env -S 'rm x'", "env -i make",
           "env X=1 make", "PYTHONPATH=. python x.py", "CI=$X python x.py", "CI=1 rm x",

           "command rm x", "./x --version", "a/b --help", "rm --version x", "time rm x",
           "timeout 5 nohup env CI=1 rm x"});
}

TEST_CASE("policy: usual: what find and xargs start is allowed with any words") {
  const Policy policy = usual({"python.*", "git diff"});
  passes(policy, {"xargs cat", "ls | xargs -0 -r -n 1 -P 4 grep -l x",
                  "ls | xargs -I{} echo a {} b", "xargs --max-args=2 head", "xargs timeout 5 cat",
                  "xargs python x.py", "find . -name '*.c' -exec grep -n x {} +",
                  "find . -type f -exec head -n 1 {} \\; -exec wc -l '{}' ';'",
                  "find \"./$X\" -execdir ls -l {} ';' -print", "find . -exec python x.py {} ';'",
                  "find . -exec timeout 5 cat {} ';'"});
  refuses(policy, "allowed-commands",
          {"xargs rm",
           "xargs sort",
           "xargs uniq",
           "xargs sed -n p",
           "xargs chmod +x a",
           "xargs sh -c id",
           "xargs",
           "xargs -a x cat",
           "xargs --process-slot-var=PATH cat",
           "xargs -o cat",

           "xargs find",
           "xargs env CI=1",
           "xargs timeout 5",
           "xargs git diff",
           "xargs xargs rm",
           "find . -exec rm {} +",
           "find . -exec cat {} + -delete",
           "find . -exec cat {} ';' -exec rm {} ';'",
           "find . -exec cat \"$X\" -exec rm {} ';'",
           "find . -exec sort -o {} ';'",
           "find . -exec uniq {} +",
           "find cat -exec {} ';'",
           "find . -exec sed -i 1d {} +",
           "find . -exec sh -c 'ls {}' ';'",
           "find . -exec",
           "find $X -exec cat {} ';'",
           "find . -ok rm {} ';'"});
}

TEST_CASE("policy: usual: curl prints what a server on this host says") {
  passes(usual(),
         {"curl localhost", "curl -s http://localhost:8000/a?b=1", "curl -sSf -m 5 127.0.0.1:80/",
          "curl -o /dev/null -w '%{http_code}' -s 'http://[::1]:1/'",
          "curl -I https://localhost/a/b\"$X\"",
          "curl -s --max-time 5 --connect-timeout 2 http://localhost | jq ."});
  refuses(usual(), "allowed-commands",
          {"curl",
           "curl http://example.com",
           "curl localhost example.com",
           "curl http://localhost.example.com",
           "curl http://localhost@example.com/",
           "curl http://localhost:80@example.com/",
           "curl http://https://localhost/",
           "curl 127.0.0.1.example.com",
           "curl \"localhost$X\"",
           "curl \"http://localhost:$X/\"",
           "curl http://$X/",
           "curl localhost/ $X",
           "curl ${X:-localhost}",
           "curl -L localhost",
           "curl -o a localhost",
           "curl -oa localhost",
           "curl --output a localhost",
           "curl --outp a localhost",
           "curl -O localhost/a",
           "curl -X POST localhost",
           "curl -d x localhost",
           "curl -T a localhost",
           "curl -K a localhost",
           "curl -x evil localhost",
           "curl -w @a localhost",
           "curl -w '%output{a}' localhost",
           "curl -w \"$X\" localhost",
           "curl --unix-socket a localhost",
           "curl --proto file localhost",
           "curl file://localhost/a",
           "curl -sLS localhost",
           "curl --next localhost"});
}

TEST_CASE("policy: usual: a virtual environment, where python may run anything") {
  const Policy policy = usual({"python.*", "pip install .*"});
  passes(policy,
         {". .venv/bin/activate && python x.py", "source venv/bin/activate; pip install x",
          "./.venv/bin/python -m x", ".venv/bin/pip install x", "nohup venv/bin/python x &"});
  refuses(policy, "allowed-commands",
          {". ./activate", ". venv/bin/activate x", ". \"$X/bin/activate\"",
           ". venv/bin/activate.sh", ". x", "venv/bin/x", "venv/bin/pip list", "./python x",
           "/opt/x/bin/python x", "../venv/bin/python x", "~/venv/bin/python x",
           "venv/lib/python x", "PATH=. .venv/bin/python x"});
  // Where python may not run anything, that may not be activated which does.
  for (const char* const pattern : {"git.*", "python x.py", "python -m .*"})
    refuses(usual({pattern}), "allowed-commands",
            {". .venv/bin/activate", "source .venv/bin/activate", ".venv/bin/python x.py"});
}

TEST_CASE("policy: usual: variables of the script's own") {
  passes(usual(), {"n=1", "n=$(ls | wc -l); echo $n", "a_1=x b=$X",
                   "i=1; while [ $i -le 3 ]; do i=$((i+1)); done"});
  refuses(usual(), "allowed-commands",
          {"N=1", "PATH=.", "n=1 N=1", "http_proxy=x", "npm_config_x=1", "path=.", "fpath=.",
           "aliases=x", "dis_aliases=x", "functions=x", "commands=x", "options=x", "n=1 ls",
           "n=$(rm x)", "x='b[$(id)]'; [ x -eq 1 ]", "x='b[`id`]'", "n[1]=x"});
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
                   "xxd a",
                   "xxd -r -p a",
                   "lsof -i :80",
                   "objdump -d a",
                   "openssl x509 -in a -noout -text",
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
           "chmod +x a -v b",
           "chmod +x a $X",
           "xxd a b",
           "xxd -r a b",
           "lsof -D b",
           "nm @a",
           "strings @a",
           "objdump @a",
           "objdump @$X",
           "openssl x509 -in a -out b",
           "openssl x509 -engine x -in a",
           "openssl enc -in a",
           "file -C -m x",
           "ss -K",
           "strings -T x a"});
}
