// What it costs to judge a command: commands that agents run, scripts of growing size, and inputs
// made to be slow. A row is the median of many rounds.
//
//   sh tests/bench/run.sh shell
//
// --quick: fewer rounds. Ends with status 1 and a line "GATE FAILED: ..." when a promise is not
// kept.
#include "codeexec.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"

namespace {

using codeexec::Policy;

const char* const commands[] = {
    "ls -la",
    "cd /repo && pytest -q tests/test_x.py 2>&1 | tail -20",
    "git status --short && git diff --stat HEAD~1",
    "git add -A && git commit -m 'Fix the parser: handle \"quotes\" and $variables'",
    "grep -rn \"TODO\" --include='*.py' src/ | head -50",
    "find . -name '*.pyc' -not -path './.git/*' -print0 | xargs -0 rm -f",
    "python -m pip install -q -r requirements.txt 2>&1 | tail -5",
    "sed -n '120,180p' src/server/handlers.cpp",
    "sed -i 's/old_name/new_name/g' src/*.py && grep -c new_name src/*.py",
    "mkdir -p build && cd build && cmake -DCMAKE_BUILD_TYPE=Release .. && make -j\"$(nproc)\"",
    "export PATH=\"$HOME/.local/bin:$PATH\"; which uv || echo missing",
    "for f in src/*.ts; do echo \"== $f\"; wc -l \"$f\"; done",
    "if [ -f package.json ]; then npm ci --silent && npm test; else echo 'no package.json'; fi",
    "python3 - <<'EOF'\nimport json\nprint(json.load(open('a.json'))['version'])\nEOF",
    "cat > src/config.yaml <<EOF\nname: demo\nversion: ${VERSION:-1.0}\nEOF",
    "curl -sS -X POST -H 'Content-Type: application/json' -d '{\"a\": [1, 2]}' localhost:8080/api",
    "docker compose up -d && sleep 3 && docker compose logs --tail=50 web",
    "timeout 60 ./build/tests/unit --filter='Parser.*' > out.log 2>&1; echo \"exit: $?\"",
    "awk -F, '{ sum += $3 } END { print sum }' data.csv | tee total.txt",
    "tar -czf /tmp/backup.tgz --exclude=node_modules . && rm -rf ./dist /tmp/old-build",
    "bash -lc 'source .venv/bin/activate && ruff check . && mypy --strict pkg'",
    "ps aux | grep -v grep | grep server | awk '{print $2}' | xargs -r kill",
};

// A script as a person writes one, of about `size` bytes.
std::string realistic(std::size_t size) {
  const std::string lines[] = {
      "set -euo pipefail\n",
      "# build the release and run what is fast\n",
      "ROOT=$(cd \"$(dirname \"$0\")/..\" && pwd)\n",
      "build_dir=\"${BUILD_DIR:-$ROOT/build}\"\n",
      "log() { printf '%s: %s\\n' \"$(date +%T)\" \"$*\" >&2; }\n",
      "if [ ! -d \"$build_dir\" ]; then\n  mkdir -p \"$build_dir\"\nfi\n",
      "for file in \"$ROOT\"/src/*.cpp \"$ROOT\"/tests/*.cpp; do\n"
      "  clang-format --dry-run -Werror \"$file\" || failed=1\ndone\n",
      "cmake -S \"$ROOT\" -B \"$build_dir\" -DCMAKE_BUILD_TYPE=Release > configure.log 2>&1\n",
      "case \"${1:-all}\" in\n  all | build) make -C \"$build_dir\" -j4 ;;\n"
      "  clean) rm -rf \"$build_dir\" ;;\n  *) log 'unknown option'; exit 2 ;;\nesac\n",
      "cat > version.txt <<EOF\nversion: 1.2\nbuilt in $build_dir by $(whoami)\nEOF\n",
      "git log --oneline -n 20 | grep -v '^merge' | while read -r line; do echo \"- $line\"; "
      "done\n",
      "grep -q 'needle' haystack.txt && echo 'found it' || echo \"it's not there\"\n",
  };
  std::string script;
  for (unsigned i = 0; script.size() < size; ++i) script += lines[(i * 5 + i / 7) % 12];
  return script;
}

std::string repeated(std::string_view piece, std::size_t size) {
  std::string text;
  while (text.size() < size) text += piece;
  return text;
}

volatile std::size_t sink = 0;

template <class Work>
double nanoseconds(int times, const Work& work) {
  const auto begin = Time::now();
  for (int i = 0; i < times; ++i) sink = sink + work();
  const std::chrono::duration<double, std::nano> spent = Time::now() - begin;
  return spent.count() / times;
}

template <class Work>
double median(int rounds, int times, const Work& work) {
  Samples samples;
  for (int i = 0; i < rounds; ++i) samples.add(nanoseconds(times, work));
  return samples.median();
}

// The number of commands, which is 0 for what cannot be read.
std::size_t read(std::string_view script) {
  const auto commands = codeexec::simple_commands(script);
  return commands ? commands->size() : 0;
}

Policy strict() {
  codeexec::Expected<Policy> policy = Policy::create({});
  if (!policy) {
    std::fprintf(stderr, "%s\n", policy.error().message.c_str());
    std::exit(2);
  }
  return *policy;
}

std::string shown(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, 60)) line += c == '\n' ? ' ' : c;
  return line;
}

void judge_commands(const Policy& policy, int rounds) {
  std::printf("%-62s %10s %10s\n", "nanoseconds, medians", "parse", "verdict");
  Samples verdicts;
  for (const char* const command : commands) {
    const double parse = median(rounds, 100, [&] { return read(command); });
    const double verdict = median(rounds, 100, [&] {
      return policy.judge(command, "/repo", false).verdict.allowed ? 1u : 0u;
    });
    verdicts.add(verdict / 1000);
    std::printf("%-62s %10.0f %10.0f\n", shown(command).c_str(), parse, verdict);
  }
  report("judge a command, of those that agents write", "us", verdicts, {"<=", 5});
}

// Whether time grows with the size, and not faster.
void grow(int rounds) {
  std::printf("\n%-62s %10s %10s\n", "a realistic script", "ms", "ratio");
  double first = 0;
  double previous = 0;
  int doublings = 0;
  for (std::size_t size = std::size_t{4} << 10; size <= std::size_t{128} << 10; size *= 2) {
    const std::string script = realistic(size);
    const auto commands = codeexec::simple_commands(script);
    if (!commands) {
      std::printf("GATE FAILED: %s\n", commands.error().message.c_str());
      gates_hold = false;
      return;
    }
    const double ms = median(rounds, 1, [&] { return read(script); }) / 1e6;
    const double ratio = previous > 0 ? ms / previous : 0;
    if (previous > 0)
      ++doublings;
    else
      first = ms;
    std::printf("%6zu KiB, %6zu commands %38s %10.3f %10.2f\n", size >> 10, commands->size(), "",
                ms, ratio);
    previous = ms;
  }
  // 2 is linear; caches and the machine add to it.
  report("time to read a script of twice the size", "times",
         figure(std::pow(previous / first, 1.0 / doublings)), {"<=", 2.7});
}

void judge_script(const Policy& policy, int rounds) {
  const std::string script = realistic(std::size_t{64} << 10);
  Samples times;
  for (int i = 0; i < rounds; ++i)
    times.add(
        nanoseconds(1, [&] { return policy.judge(script, {}, false).verdict.allowed ? 1u : 0u; }) /
        1e6);
  const codeexec::Verdict verdict = policy.judge(script).verdict;
  std::printf("\n64 KiB of a realistic script, verdict: %s\n",
              verdict.allowed ? "allowed" : verdict.message.c_str());
  report("judge a realistic script of 64 KiB", "ms", times, {"<=", 5});
}

void judge_attacks(const Policy& policy, int rounds) {
  std::printf("\n%-40s %10s %10s  %s\n", "64 KiB made to be slow, milliseconds", "parse", "verdict",
              "");
  constexpr std::size_t size = std::size_t{64} << 10;
  struct Attack {
    const char* name;
    std::string script;
  };
  const Attack attacks[] = {
      {"$(", repeated("$(", size)},
      {"a $(", repeated("a $(", size)},
      {";", repeated(";", size)},
      {"w;", repeated("w;", size)},
      {"w newline", repeated("w\n", size)},
      {"'", repeated("'", size)},
      {"''", repeated("'' ", size)},
      {"\"", repeated("\"", size)},
      {"\"$a\"", "w " + repeated("\"$a\"", size)},
      {"a=$a$a;", "a=aa;" + repeated("a=$a$a;", size)},
      {"a=$a$b b=$b$a;", "a=1;b=2;" + repeated("a=$a$b b=$b$a;", size)},
      {"{a,b}", "w " + repeated("{a,b}", size)},
      {"{a,", "w " + repeated("{a,", size)},
      {"{", "w " + repeated("{", size)},
      {"{1..99999}", "w " + repeated("{1..99999}", size)},
      {"nested backquotes", repeated("`\\`\\\\\\`", size)},
      {"`", repeated("`", size)},
      {"<<E", "w " + repeated("<<E ", size)},
      {"w <<E newline", repeated("w <<E\n", size)},
      {"w <<E newline E newline", repeated("w <<E\nx\nE\n", size)},
      {"<<E, backslashes", "w <<E\n" + repeated("x\\\n", size)},
      {"((((", repeated("((((", size)},
      {"( ( ( (", repeated("( ", size)},
      {"((a) ((a)", repeated("((a) ", size)},
      {"$((", "w " + repeated("$((", size)},
      {"${a:-", "w " + repeated("${a:-", size)},
      {"${a:-b}", "w " + repeated("${a:-b}", size)},
      {"if", repeated("if ", size)},
      {"f(){", repeated("f(){ ", size)},
      {"f() { f; f; }", "f() { " + repeated("f;", size) + " }; f"},
      {"chain of functions",
       [] {
         std::string script = "f0() { w; }; ";
         for (int i = 1; script.size() < size; ++i) {
           const std::string inner = "f" + std::to_string(i - 1) + "; ";
           script += "f" + std::to_string(i) + "() { " + inner + inner + "}; ";
         }
         return script + "f900";
       }()},
      {"if v; then a=1; fi;", repeated("if v; then a=$a$b; b=$a; else a=x; fi; ", size) + "w $a"},
      {"v && a=N;",
       [] {
         std::string script;
         for (int i = 0; script.size() < size; ++i)
           script += "v && a" + std::to_string(i % 50) + "=" + std::to_string(i) + "; ";
         script += "w ";
         for (int i = 0; i < 50; ++i) script += "$a" + std::to_string(i);
         return script;
       }()},
      {"for i in 1 2; do", repeated("for i in 1 2; do ", size)},
      {"nested loops",
       "for a in 1 2 3 4;do " + repeated("for b in 1 2 3 4;do w $a;done;", size) + "done"},
      {"case a in a)", repeated("case a in a) ", size)},
      {"eval", repeated("eval ", size)},
      {"X=\"eval $X\"; eval $X", "X=w;" + repeated("X=\"eval $X\";", size) + "eval $X"},
      {"alias", repeated("alias a=b b=c c=a\na\n", size)},
      {"[[ (", repeated("[[ ( ", size)},
      {"# comment", repeated("#", size)},
      {"backslash newline", "w " + repeated("\\\n", size)},
      {"long word", "w " + repeated("a", size)},
      {"many words", "w " + repeated("a ", size)},
      {"set -- ...; $@$@", "set -- " + repeated("a ", size / 2) + ";" + repeated("w $@;", 1000)},
      {"IFS", "IFS=a;X=" + repeated("ab", size / 2) + ";" + repeated("w $X;", size / 2)},
      {"trap", repeated("trap 'w $a' EXIT;", size)},
      {"cd", repeated("cd a;", size) + "w"},
      {"v && cd", repeated("v && cd a;", size) + "w"},
      {"echo | sh", repeated("echo 'w' | sh;", size)},
      {"sh -c", repeated("sh -c 'w a';", size)},
      {"arrays", repeated("a=(1 2 3 $a);", size) + "w ${a[@]}"},
      {"a+=x", repeated("a+=xxxxxxxx;", size) + "w $a"},
      {"${a%x}", "a=" + repeated("x", size / 2) + ";" + repeated("b=${a%*x};", size / 2)},
      {"${a//x/yy}", "a=" + repeated("x", size / 2) + ";" + repeated("a=${a//x/yy};", size / 2)},
      {"printf", "printf '%s\\n' " + repeated("a ", size) + "| w"},
      {"printf widths", repeated("printf '%9999s' a | w;", size)},
      {"extended globs", "w " + repeated("@(", size)},
      {"0xff", repeated("\xff", size)},
  };
  double worst = 0;
  for (const Attack& attack : attacks) {
    const double parse = median(rounds, 1, [&] { return read(attack.script); }) / 1e6;
    const double ms =
        median(rounds, 1,
               [&] { return policy.judge(attack.script, {}, false).verdict.allowed ? 1u : 0u; }) /
        1e6;
    worst = std::max({worst, parse, ms});
    const codeexec::Verdict verdict = policy.judge(attack.script).verdict;
    std::printf("%-40s %10.3f %10.3f  %s\n", attack.name, parse, ms,
                verdict.allowed ? "allowed" : verdict.rule.c_str());
  }
  report("judge 64 KiB made to be slow, the worst of all kinds", "ms", figure(worst), {"<=", 100});
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = has_argument(argc, argv, "--quick");
  const Policy policy = strict();
  judge_commands(policy, quick ? 21 : 101);
  judge_script(policy, quick ? 11 : 31);
  grow(quick ? 5 : 15);
  judge_attacks(policy, quick ? 3 : 7);
  return finish();
}
