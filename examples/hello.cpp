// The smallest useful program: run one command, print what became of it.
//
//   c++ -std=c++17 -I. examples/hello.cpp -o hello -pthread
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>

int main() {
  codeexec::Result r = codeexec::run("echo hello; echo oops >&2; exit 3");
  std::printf("%s\n%s%s", r.summary().c_str(), r.out.c_str(), r.err.c_str());
}
