// Output of a program on a terminal: what it costs to keep the screen, beside a bare loop that
// reads a terminal and throws everything away.
//
//   sh tests/bench/run.sh terminal
//
// --quick: fewer rounds.
#include "codeexec.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "report.hpp"

namespace {

const char* const self = "/proc/self/exe";
constexpr std::size_t total = std::size_t{64} << 20;

// A screen of words in colours, drawn again and again.
std::string redraws() {
  std::string text;
  for (int row = 1; row <= 24; ++row) {
    text += "\x1b[" + std::to_string(row) + ";1H\x1b[38;5;" + std::to_string(row * 7) + "m";
    for (int word = 0; word < 6; ++word)
      text += "word" + std::to_string(row * word) + "\x1b[1;3" + std::to_string(word) + "m ";
    text += "\x1b[K";
  }
  return text;
}

int write_redraws() {
  std::string block;
  while (block.size() < 65536) block += redraws();
  for (std::size_t left = total; left > 0;) {
    const ssize_t size = ::write(1, block.data(), std::min(left, block.size()));
    if (size <= 0) return 1;
    left -= static_cast<std::size_t>(size);
  }
  return 0;
}

double with_screen() {
  codeexec::ProcessOptions options;
  options.argv = {self, "--write"};
  options.terminal = codeexec::TerminalSize();
  options.max_output = 1 << 20;
  options.keep_end_only = true;
  return microseconds([&] {
    const codeexec::ProcessResult result = codeexec::run_process(options);
    if (!result.succeeded()) fail("run_process", result.message);
  });
}

double bare() {
  return microseconds([] {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) fail("posix_openpt");
    const int end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(end, 1);
      ::execl(self, self, "--write", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(end);
    static char buffer[65536];
    while (::read(terminal, buffer, sizeof buffer) > 0) {
    }
    ::close(terminal);
    ::waitpid(pid, nullptr, 0);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--write") == 0) return write_redraws();
  Samples ours;
  Samples theirs;
  for (int round = has_argument(argc, argv, "--quick") ? 3 : 15; round > 0; --round) {
    ours.add(with_screen());
    theirs.add(bare());
  }
  const double bytes = total;  // in a microsecond as many as megabytes in a second
  report("64 MiB of a full-screen program, onto a screen", "MB/s", ours.rate(bytes),
         "a bare loop that reads a terminal", theirs.rate(bytes));
  return finish();
}
