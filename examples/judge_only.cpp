// What a policy says of scripts, and which files they use. Nothing is run.
//
//   c++ -std=c++17 -I. examples/judge_only.cpp -o judge_only -pthread
//   ./judge_only 'ls -l' 'cd /tmp && sudo ls'      a script per argument
//   ./judge_only < scripts.txt                     a script per line
//
// The exit status is 1 if a script is not allowed.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace {

// In quotes and with escapes, as scripts may hold bytes that a terminal acts upon.
std::string quoted(std::string_view text) { return codeexec::Json(text).dump(); }

bool judge(const codeexec::Policy& policy, const std::string& script) {
  const codeexec::Judgement judgement = policy.judge(script, "/work");
  const codeexec::Verdict& verdict = judgement.verdict;
  const char* const answer = verdict.must_ask ? "ask" : verdict.allowed ? "allowed" : "refused";
  std::printf("%-7s %s\n", answer, quoted(script).c_str());
  if (!verdict)
    std::printf("  %s, bytes %zu to %zu: %s\n", verdict.rule.c_str(), verdict.begin, verdict.end,
                quoted(verdict.message).c_str());
  for (const codeexec::FileAccess& file : judgement.files) {
    const char* const uses[] = {"reads", "writes", "removes"};
    std::printf("  %s %s%s\n", uses[static_cast<int>(file.kind)], quoted(file.path).c_str(),
                file.recursive ? " and all below it" : "");
  }
  if (!judgement.complete) std::printf("  only a run would show all files\n");
  return verdict.allowed;
}

}  // namespace

int main(int argc, char** argv) {
  codeexec::PolicyOptions options;
  options.blocked = {"git push.*"};
  options.ask_commands = {"npm publish.*"};
  const auto policy = codeexec::Policy::create(options);
  if (!policy) return std::fprintf(stderr, "%s\n", policy.error().message.c_str()), 2;

  bool good = true;
  for (int i = 1; i < argc; ++i) good = judge(*policy, argv[i]) && good;
  std::string script;
  for (int c = 0; argc == 1 && c != EOF;) {
    c = std::getchar();
    if (c != '\n' && c != EOF) {
      script += static_cast<char>(c);
      continue;
    }
    if (!script.empty()) good = judge(*policy, script) && good;
    script.clear();
  }
  return good ? 0 : 1;
}
