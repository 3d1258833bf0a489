// The smallest program that uses the library: does it compile, link and run?
#include <codeexec.hpp>

#include <cstdio>

int main() {
  codeexec::ProcessOptions options;
  options.argv = {"/bin/sh", "-c", "echo hello"};
  const codeexec::ProcessResult result = codeexec::run_process(options);
  std::printf("%s", result.out.c_str());
  return result.out == "hello\n" ? 0 : 1;
}
