// A shared library with the implementation in it: it must be position independent.
#include <codeexec.hpp>

bool plugin_says_hello() {
  codeexec::ProcessOptions options;
  options.argv = {"/bin/sh", "-c", "echo hello"};
  return codeexec::run_process(options).out == "hello\n";
}
