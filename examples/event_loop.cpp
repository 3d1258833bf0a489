// Commands in the event loop of a program: each Execution has a descriptor to wait on.
//
//   c++ -std=c++17 -I. examples/event_loop.cpp -o event_loop -pthread
//
// Waits with poll(2) and, where its headers are installed, with standalone Asio (Debian:
// libasio-dev). Prints the commands in the order in which they end, which is not that of the start.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#if __has_include(<asio/posix/stream_descriptor.hpp>)
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#endif

namespace {

using Executions = std::vector<codeexec::Execution>;

// Starts two commands. The first one waits for a line of input. Empty if one has not started.
Executions start(const codeexec::Executor& here) {
  codeexec::Command reader = codeexec::Command::shell("read -r word; echo \"then $word\"");
  reader.keep_input_open = true;
  Executions all = {here.start(reader), here.start(codeexec::Command::shell("echo first"))};
  for (const codeexec::Execution& one : all)
    if (one.descriptor() < 0) return std::fputs("a command did not start\n", stderr), Executions();
  return all;
}

// Called when a command has ended. The output of the second one is the input of the first.
void finish(const Executions& all, std::size_t i) {
  const codeexec::Result result = all[i].wait();  // does not block any more
  std::printf("  %s", result.out.c_str());
  if (i == 1 && !all[0].write(result.out)) all[0].cancel();
}

// The descriptor becomes readable when the command has ended. There is nothing to read from it.
bool by_poll(const Executions& all) {
  std::vector<pollfd> waits;
  for (const codeexec::Execution& one : all) waits.push_back({one.descriptor(), POLLIN, 0});
  for (std::size_t left = all.size(); left > 0;) {
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (waits[i].revents == 0) continue;
      finish(all, i);
      waits[i] = {-1, 0, 0};  // poll() leaves it out from now on
      --left;
    }
  }
  return true;
}

#if __has_include(<asio/posix/stream_descriptor.hpp>)
// The descriptor belongs to the Execution: release() keeps Asio from closing it.
void by_asio(const Executions& all) {
  asio::io_context loop;
  std::vector<asio::posix::stream_descriptor> waits;
  for (const codeexec::Execution& one : all) waits.emplace_back(loop, one.descriptor());
  for (std::size_t i = 0; i < all.size(); ++i)
    waits[i].async_wait(asio::posix::stream_descriptor::wait_read,
                        [&all, i](const asio::error_code&) { finish(all, i); });
  loop.run();
  for (asio::posix::stream_descriptor& wait : waits) wait.release();
}
#endif

}  // namespace

int main() {
  auto here = codeexec::LocalExecutor::create({});
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  std::puts("poll:");
  Executions all = start(*here);
  if (all.empty()) return 1;
  if (!by_poll(all)) return std::perror("poll"), 1;
#if __has_include(<asio/posix/stream_descriptor.hpp>)
  std::puts("asio:");
  all = start(*here);
  if (all.empty()) return 1;
  by_asio(all);
#else
  std::puts("asio: its headers are not installed (Debian: libasio-dev)");
#endif
}
