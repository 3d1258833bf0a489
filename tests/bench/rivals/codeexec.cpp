// This library: run_process() and Process::start().
#include "codeexec.hpp"

#include <optional>

#include "driver.hpp"

using codeexec::Process;
using codeexec::ProcessOptions;

namespace {

ProcessOptions options_for(std::vector<std::string> argv) {
  ProcessOptions options;
  options.argv = std::move(argv);
  return options;
}

}  // namespace

void run() { check(codeexec::run_process(options_for({"/bin/true"})).succeeded()); }

std::string capture() { return codeexec::run_process(options_for({"/bin/echo", "hello"})).out; }

void many() {
  std::vector<Process> all;
  for (int i = 0; i < at_once; ++i) {
    auto started = Process::start(options_for({"/bin/true"}));
    check(started.has_value());
    all.push_back(std::move(*started));
  }
  for (const Process& one : all) check(one.wait().succeeded());
}

int main() { return drive(); }
