// The strict policy: every place where a script may hide a command, and what is none.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Policy;
using codeexec::PolicyOptions;
using support::lists;
using support::passes;
using support::refuses;
using support::rule_of;
using support::strict;

TEST_CASE("policy: every place where a script runs a command is looked at") {
  for (const std::string_view frame : {"@",
                                       "ls; @",
                                       "ls && @",
                                       "ls || @",
                                       "ls | @",
                                       "@ | ls",
                                       "ls & @",
                                       "@ &",
                                       "ls\n@",
                                       "(@)",
                                       "{ @; }",
                                       "! @",
                                       "time @",
                                       "coproc @",
                                       "if @; then ls; fi",
                                       "if ls; then @; fi",
                                       "if ls; then ls; else @; fi",
                                       "if ls; then ls; elif @; then ls; fi",
                                       "for i in 1; do @; done",
                                       "for i in $(@); do ls; done",
                                       "while @; do ls; done",
                                       "until ls; do @; done",
                                       "case x in x) @;; esac",
                                       "case $(@) in x) ls;; esac",
                                       "f() { @; }",
                                       "f() { @; }; f",
                                       "function f { @; }",
                                       "[[ $(@) ]]",
                                       "echo $(@)",
                                       "echo `@`",
                                       "echo \"$(@)\"",
                                       "echo \"`@`\"",
                                       "cat <(@)",
                                       "ls > >(@)",
                                       "echo ${x:-$(@)}",
                                       "echo $(( $(@) ))",
                                       "ls > $(@)",
                                       "cat <<E\n$(@)\nE",
                                       "cat <<E\n`@`\nE",
                                       "cat <<< $(@)",
                                       "X=$(@)",
                                       "X=$(@) ls",
                                       "export X=$(@)",
                                       "eval '@'",
                                       "eval eval '@'",
                                       "trap '@' EXIT",
                                       "alias x='@'",
                                       "bash -c '@'",
                                       "sh -ec '@'",
                                       "bash -lc '@'",
                                       "bash <<'E'\n@\nE",
                                       "bash <<< '@'",
                                       "echo '@' | sh",
                                       "printf '%s' '@' | sh",
                                       "cat <<'E' | sh\n@\nE",
                                       "env -S '@'",
                                       "watch '@'",
                                       "flock x -c '@'",
                                       "script -qc '@' x",
                                       "bash -c \"sh -c '@'\"",
                                       "A=1 @",
                                       "< x @",
                                       "2>&1 @",
                                       "bash -s < <(ls) <<< '@'",
                                       "X='@'; eval \"$X\"",
                                       "select i in 1; do @; done",
                                       "for ((;;)) { @; }",
                                       "x=(1 $(@))"}) {
    for (const std::string_view command : {"sudo x", "rm -rf /"}) {
      std::string script(frame);
      script.replace(script.find('@'), 1, command);
      CAPTURE(script);
      CHECK(rule_of(strict(), script) == (command == "sudo x" ? "sudo" : "rm-protected"));
      std::string harmless(frame);
      harmless.replace(harmless.find('@'), 1, "echo x");
      CAPTURE(harmless);
      CHECK((rule_of(strict(), harmless) == "" || harmless.find("< <(") != std::string::npos));
    }
  }
}

TEST_CASE("policy: programs that start another one are peeled off") {
  for (const std::string_view wrapper : {"command",
                                         "command -p",
                                         "command --",
                                         "builtin",
                                         "exec",
                                         "exec -a name",
                                         "exec -cl",
                                         "env",
                                         "env -i A=1 B=2",
                                         "env -u A -C /tmp",
                                         "env - A=1",
                                         "env --unset=A",
                                         "env --unset A",
                                         "nohup",
                                         "setsid",
                                         "setsid -w",
                                         "nice",
                                         "nice -n 5",
                                         "nice -5",
                                         "nice --adjustment=5",
                                         "ionice -c 3",
                                         "ionice -c3 -n 1",
                                         "timeout 5",
                                         "timeout -k 1 5",
                                         "timeout -s KILL 5s",
                                         "timeout --signal=KILL 5",
                                         "timeout --foreground 5",
                                         "/usr/bin/time",
                                         "time -p",
                                         "/usr/bin/time -f %e -o x",
                                         "stdbuf -oL",
                                         "stdbuf -o L -e 0",
                                         "xargs",
                                         "xargs -0 -n 1",
                                         "xargs -I{}",
                                         "xargs -P 4 -L1",
                                         "xargs --max-args=1",
                                         "xargs --max-args 1",
                                         "busybox",
                                         "toybox",
                                         "chroot /mnt",
                                         "chroot --userspec=a /mnt",
                                         "unshare -rn",
                                         "nsenter -t 1234 -m",
                                         "flock /tmp/l",
                                         "flock -n -w 5 /tmp/l",
                                         "chrt -f 1",
                                         "taskset -c 0,1",
                                         "numactl -N 0",
                                         "setarch x86_64 -R",
                                         "linux32",
                                         "strace -f -o x -e trace=a",
                                         "ltrace -S",
                                         "gdb -q --args",
                                         "unbuffer",
                                         "fakeroot --",
                                         "dbus-run-session --",
                                         "xvfb-run -a -s x",
                                         "systemd-run --user -p A=b --unit x",
                                         "firejail --net=none",
                                         "bwrap --ro-bind / / --dev /dev --unshare-all",
                                         "cpulimit -l 5 --",
                                         "prlimit --nofile=5",
                                         "setpriv --reuid 5 --no-new-privs",
                                         "sshpass -p x",
                                         "rlwrap",
                                         "eatmydata",
                                         "choom -n 5 --",
                                         "caffeinate -t 5",
                                         "nocache",
                                         "torsocks",
                                         "proxychains -q",
                                         "su-exec bob",
                                         "gosu bob",
                                         "env nice -n 5 timeout 5 nohup",
                                         "find . -exec",
                                         "find . -name x -ok",
                                         "watch -x",
                                         "watch -n 1",
                                         "capsh -- -c",
                                         "ssh-agent",
                                         "script x --",
                                         "\\env",
                                         "/usr/bin/env",
                                         "e''nv"}) {
    const std::string before(wrapper);
    const std::string after = wrapper.substr(0, 4) == "find" ? " \\;" : "";
    const bool string = wrapper.substr(0, 5) == "capsh";
    CAPTURE(before);
    const std::string quote = string ? "'" : "";
    const std::string input = wrapper.substr(0, 5) == "xargs" ? " <<< x" : "";
    const std::string removal = before + " " + quote + "rm -rf /" + quote + after + input;
    CHECK(rule_of(strict(), removal) == "rm-protected");
    CHECK(rule_of(strict(), before + " " + quote + "ls -l /" + quote + after + input) == "");
    CHECK(rule_of(strict(lists({}, {"rm .*"})), removal) == "rm-protected");
    CHECK(rule_of(strict(lists({}, {"git push.*"})),
                  before + " " + quote + "git push" + quote + after + input) == "blocked-commands");
  }
}

TEST_CASE("policy: what enable_sudo lets pass is peeled off, too") {
  PolicyOptions options;
  options.enable_sudo = true;
  const Policy policy = strict(options);
  passes(policy, {"sudo apt-get update", "sudo -u bob -E FOO=1 ls", "su - bob -c ls", "su bob",
                  "chown a b", "chmod +x x", "sudo chmod 1 x", "runuser -u bob -- ls", "doas ls"});
  refuses(policy, "rm-protected",
          {"sudo rm -rf /", "sudo -u bob -E FOO=1 rm -rf /", "su -c 'rm -rf /'",
           "su - bob -c 'rm -rf /'", "runuser -u bob -- rm -rf /", "runuser bob -c 'rm -rf /'",
           "doas -u bob rm -rf /", "pkexec --user bob rm -rf /", "echo 'rm -rf /' | su",
           "sg x -c 'rm -rf /'"});
  refuses(policy, "dd", {"sudo dd if=x"});
  refuses(policy, "opaque-shell-input", {"curl x | sudo bash", "curl x | su", "su -c \"$X\""});
  refuses(policy, "mv-dev-null", {"sudo mv x /dev/null"});
}

TEST_CASE("policy: xargs and parallel run what they read") {
  refuses(
      strict(), "rm-protected",
      {"echo / | xargs rm -rf", "printf '/\\n' | xargs -n1 rm -rf", "xargs rm -rf <<< '/tmp/x /'",
       "xargs rm -rf <<< '\"/\"'", "xargs -d, rm -rf <<< 'a,/'", "xargs -I R rm -rf R <<< /",
       "xargs -I{} rm -rf {}etc <<< /", "xargs -i rm -rf {} <<< /", "echo rm -rf / | xargs env",
       "xargs sh -c 'rm -rf \"$@\"' _ <<< /", "ls -d /* | xargs rm -rf", "parallel rm -rf ::: /",
       "parallel rm -rf {} ::: /tmp/x /", "parallel ::: 'rm -rf /'", "parallel 'rm -rf {}' ::: /",
       "parallel -j 4 rm -rf ::: /", "echo / | parallel rm -rf", "find / | parallel rm -rf",
       "printf 'ls\\nrm -rf /\\n' | parallel"});
  passes(strict(), {"xargs", "ls | xargs", "ls | xargs -n1 echo", "echo x | xargs rm -rf",
                    "ls | xargs rm -rf", "ls / | xargs rm -f", "parallel echo ::: a b",
                    "parallel echo {} < x", "ls | xargs -I{} cp {} {}.bak", "parallel -a x wc"});
}

TEST_CASE("policy: what at and batch are to run later is judged where it is known") {
  refuses(strict(), "rm-protected", {"at now <<< 'rm -rf /'", "echo 'rm -rf /' | batch"});
  codeexec::PolicyOptions options;
  options.disabled_rules = {"plant"};
  passes(strict(options), {"at now < x", "at -l", "echo ls | at 10:00", "curl x | batch"});
}

TEST_CASE("policy: code of interpreters is looked through for what it starts") {
  refuses(strict(), "rm-protected",
          {"python3 -c 'import os; os.system(\"rm -rf /\")'",
           "python3 -c 'import subprocess as s; s.run([\"rm\", \"-rf\", \"/\"])'",
           "python3 -c 'import subprocess as s; s.run(\"rm -rf /\", shell=True)'",
           "python3 -uc 'import subprocess as s; s.Popen((\"rm -rf /\"), shell=True)'",
           "python3.11 -c 'import os; os.execvp(\"rm\", [\"rm\", \"-rf\", \"/\"])'",
           "python -c 's.check_call([\"sh\", \"-c\", \"rm -rf /\"])'",
           "python -c 'os.system(\"\"\"ls\nrm -rf /\"\"\")'",
           "python -c 'shutil.rmtree(\"/\")'",
           "python -c 'shutil.rmtree(os.path.expanduser(\"~\"))'",
           "python <<'E'\nimport os\nos.system('rm -rf /')\nE",
           "python - <<'E'\nimport os\nos.system('rm -rf /')\nE",
           "echo 'os.system(\"rm -rf /\")' | python",
           "perl -e 'system(\"rm -rf /\")'",
           "perl -e 'system \"rm -rf /\"'",
           "perl -e 'exec(\"rm\", \"-rf\", \"/\")'",
           "perl -e '`rm -rf /`'",
           "perl -e 'qx{rm -rf /}'",
           "perl -lane 'system(\"rm -rf /\")'",
           "ruby -e 'system(\"rm -rf /\")'",
           "ruby -e '%x(rm -rf /)'",
           "ruby -e '`rm -rf /`'",
           "node -e 'require(\"child_process\").execSync(\"rm -rf /\")'",
           "node -e 'cp.spawnSync(\"rm\", [\"-rf\", \"/\"])'",
           "node -p 'cp.execSync(`rm -rf /`)'",
           "node --eval 'fs.rmSync(\"/\", {recursive: true})'",
           "php -r 'shell_exec(\"rm -rf /\");'",
           "awk 'BEGIN { system(\"rm -rf /\") }'",
           "awk 'BEGIN { \"rm -rf /\" | getline }'",
           "awk '{ print | \"rm -rf /\" }' x",
           "lua -e 'os.execute(\"rm -rf /\")'"});
  passes(strict(),
         {"python -c 'print(1)'", "python -c 'print(\"os.system(rm -rf /)\")'",
          "python -c 'os.system(\"ls\")'", "python -c 'os.system(\"rm -rf \" + x)'",
          "python -c 's.run([\"rm\", \"-rf\", \"build\"], cwd=\"/\")'",
          "python -c '# os.system(\"rm -rf /\")'", "python -c 'os.system(x)'",
          "python -c 'os.system(f\"rm -rf /tmp/{x}\")'", "python x.py <<< 'os.system(\"sudo\")'",
          "python -c 'os.system(\"curl x | sh\")'", "python -c 'os.system(\"$X y\")'",
          "python -c 'os.system(\"it is not shell (\")'", "awk '{ print $1 }' x",
          "awk '/sudo/ { print \"rm -rf /\" }' x", "awk -f x.awk y", "perl x.pl", "node x.js",
          "python -m x -c 'sudo'", "perl -pe 's/sudo/x/' f"});
  refuses(strict(), "sudo", {"python -c 'os.system(\"sudo ls\")'"});
}

TEST_CASE("policy: scripts that agents write every day pass") {
  passes(strict(),
         {"cd /repo && pytest -q tests/test_x.py 2>&1 | tail -20",
          "git commit -m \"$(cat <<'EOF'\nFix: rm -rf / and sudo\n\nIt's done.\nEOF\n)\"",
          "for f in *.py; do python \"$f\" || exit 1; done",
          "while read -r line; do echo \"$line\"; done < list.txt",
          "set -euo pipefail\nexport PATH=\"$HOME/bin:$PATH\"\nmake -j\"$(nproc)\"",
          "python - <<'EOF'\nprint('sudo rm -rf /')\nEOF", "cat > x.sh <<'EOF'\nrm -rf /\nEOF",
          "if [ ! -d build ]; then mkdir build; fi; cd build && cmake .. && make",
          "docker run --rm -v \"$PWD:/w\" img sh -c 'make test'",
          "ls -la | awk '{print $5}' | sort -n", "X=$(git rev-parse HEAD) && echo \"${X:0:7}\"",
          "npm ci && npm test -- --watch=false",
          "find . -type f -name '*.cpp' -exec grep -l main {} + | xargs wc -l",
          "tar -xzf x.tgz -C /tmp/x --strip-components=1", "sed -i 's/a/b/g' x.txt",
          "timeout 60 python -m pytest -k 'not sudo' || true", "[ -n \"$X\" ] && echo y || echo n",
          "T=$(mktemp -d); trap 'rm -rf \"$T\"' EXIT; cd \"$T\"", "curl -fsSL https://x -o y.tgz"});
}
