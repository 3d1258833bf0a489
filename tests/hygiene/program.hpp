// What each file of the test programs does with the header: it runs a command and looks at it.
#include <cstdio>

#include "codeexec.hpp"

static int runs_a_command(const char* word) {
  codeexec::ProcessOptions options;
  options.argv = {"/bin/sh", "-c", "echo $0", word};
  const codeexec::ProcessResult result = codeexec::run_process(options);
  if (result.succeeded() && result.out == std::string(word) + "\n") return 0;
  std::printf("%s: %s\n", word, result.message.c_str());
  return 1;
}
