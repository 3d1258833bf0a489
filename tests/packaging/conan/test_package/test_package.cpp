#include <codeexec.hpp>

#include <cstdio>

int main() {
  const auto here = codeexec::LocalExecutor::create({});
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  const codeexec::Result result = here->run("echo hello");
  std::printf("codeexec %s: %s", CODEEXEC_VERSION_STRING, result.out.c_str());
  return result.out == "hello\n" ? 0 : 1;
}
