// What has to work on every system, in one program without a test framework: it is compiled for
// many, and runs under emulators. Prints one line for each check, "ok: ..." or "FAILED: ...", and
// what the system has of the sandbox ("has: ...", "lacks: ..."). Exit status 1 on failure.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace {

int failures = 0;

void check(const char* what, bool good, const std::string& seen = {}) {
  std::printf("%s: %s%s%s\n", good ? "ok" : "FAILED", what, good || seen.empty() ? "" : ": ",
              good ? "" : seen.c_str());
  if (!good) ++failures;
}

std::string told(const codeexec::Result& result) {
  return result.summary() + " out=" + result.out + " err=" + result.err;
}

// Whether nobody answers to that number any more; a zombie that nobody waits for counts as dead.
bool is_dead(const std::string& pid) {
  const int number = std::atoi(pid.c_str());
  for (int i = 0; number > 0 && i < 500; ++i) {
    if (::kill(number, 0) != 0) return true;
#if defined(__linux__)
    codeexec::ProcessOptions look;
    look.argv = {"/bin/sh", "-c", "read -r _ _ state _ < /proc/" + pid + "/stat; echo $state"};
    if (codeexec::run_process(look).out == "Z\n") return true;
#endif
    ::poll(nullptr, 0, 10);
  }
  return false;
}

void check_data() {
  const std::string text = R"({"a":[1,-0.5,1e300,18446744073709551615],"b":"\u00e9"})";
  const auto parsed = codeexec::Json::parse(text);
  check("json: what is read is written, but for the escape",
        parsed && parsed->dump() == text.substr(0, text.size() - 8) + "\xc3\xa9\"}",
        parsed ? parsed->dump() : parsed.error().message);
  const auto large = codeexec::Json::parse("4294967296.5");
  check("json: numbers above 32 bits", large && large->as_number() > 4294967296.0);
  const auto pattern = codeexec::Regex::compile("(a|b)+c{2,3}");
  check("regex", pattern && pattern->search("xxabacc") && !pattern->search("xxabac"));
  check("base64", codeexec::to_base64("\xff\x01z") == "/wF6");
}

void check_processes(codeexec::LocalExecutor& here) {
  const auto ended = here.run("echo out; echo err >&2; exit 3");
  check("a shell's output and status",
        ended.exit_code == 3 && ended.out == "out\n" && ended.err == "err\n", told(ended));
  const auto killed = here.run("kill -KILL $$");
  check("a signal", !killed.succeeded() && killed.outcome == codeexec::Outcome::signaled,
        told(killed));

  codeexec::Command sort = codeexec::Command::program({"sort", "-r"});
  sort.input = "apple\nbanana\n";
  const auto sorted = here.run(sort);
  check("input, without a shell", sorted.out == "banana\napple\n", told(sorted));

  const auto none = here.run(codeexec::Command::program({"/nonexistent/program"}));
  check("a program that is not there",
        none.outcome == codeexec::Outcome::not_started && !none.message.empty(), told(none));

  const auto flood = here.run("yes | head -c 3000000");
  check("a flood is counted and cut",
        flood.out_counts.total_bytes == 3000000 && flood.out.size() < 3000000,
        told(flood).substr(0, 99));

  codeexec::Command slow =
      codeexec::Command::shell("trap '' TERM; echo $$; while :; do sleep 1; done");
  slow.timeout = std::chrono::milliseconds(1500);
  const auto late = here.run(slow);
  check("a timeout kills what ignores SIGTERM",
        late.outcome == codeexec::Outcome::timed_out && is_dead(late.out), told(late));

  const auto left = here.run("sleep 1000 > /dev/null 2>&1 & echo $!");
  check("what is left in the background is killed", left.succeeded() && is_dead(left.out),
        told(left));

  codeexec::CancelToken enough;
  codeexec::Command ticker = codeexec::Command::shell("while :; do echo tick; sleep 0.05; done");
  ticker.cancel = enough;
  ticker.on_output = [enough](codeexec::Stream, std::string_view) { enough.cancel(); };
  const auto cancelled = here.run(ticker);
  check("output as it comes, and a cancel", cancelled.outcome == codeexec::Outcome::cancelled,
        told(cancelled));
}

// Where the sandbox is claimed it must hold; where it is not, the report has to say so.
void check_sandbox(codeexec::LocalOptions options) {
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  const auto confined = codeexec::LocalExecutor::create(options);
  check("a sandbox as far as it goes", confined.has_value(), confined.error().message);
  if (!confined) return;
  const codeexec::SandboxReport& report = confined->sandbox_report();
  const auto inside = confined->run("echo in > port-smoke && cat port-smoke && rm port-smoke");
  check("sandbox: a command in its workspace", inside.out == "in\n", told(inside));
  bool filesystem = false;
  for (const std::string& feature : report.enforced) {
    std::printf("has: %s\n", feature.c_str());
    filesystem = filesystem || feature == "filesystem";
  }
  for (const std::string& feature : report.missing) std::printf("lacks: %s\n", feature.c_str());
  check("sandbox: the report tells of all", report.enforced.size() + report.missing.size() >= 10);
  const auto outside = confined->run("echo out > /var/tmp/port-smoke-outside");
  const bool held = !outside.succeeded();
  (void)::unlink("/var/tmp/port-smoke-outside");
  check("sandbox: a claim about files is true", held == filesystem, told(outside));
  options.sandbox.mode = codeexec::SandboxMode::strict;
  const auto strict = codeexec::LocalExecutor::create(options);
  check("sandbox: strict is refused when something is missing",
        strict.has_value() == report.missing.empty(), strict.error().message);
}

}  // namespace

int main() {
  check_data();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  char place[] = "/tmp/codeexec-smoke-XXXXXX";
  if (!::mkdtemp(place)) return std::perror("mkdtemp"), 2;
  codeexec::LocalOptions options;
  options.workspace = place;
  options.roots = {{place}};
  options.timeout = std::chrono::seconds(60);
  auto here = codeexec::LocalExecutor::create(options);
  check("an executor", here.has_value(), here.error().message);
  if (here) {
    check_processes(*here);
    check_sandbox(options);
  }
  ::rmdir(place);
  return failures == 0 ? 0 : 1;
}
