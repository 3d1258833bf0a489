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

// The second one waits for its input, which the end of the first one brings.
Executions start(const codeexec::Executor& here) {
  codeexec::Command second = codeexec::Command::shell("read -r word; echo \"then $word\"");
  second.keep_input_open = true;
  return {here.start(second), here.start(codeexec::Command::shell("echo first"))};
}

void finish(const Executions& all, const codeexec::Execution& ended) {
  const codeexec::Result result = ended.wait();  // does not block, as it has ended
  std::printf("  %s", result.out.c_str());
  if (&ended == &all[1] && !all[0].write(result.out)) all[0].cancel();
}

// The descriptor becomes readable when the command has ended. There is nothing to read from it.
int by_poll(const Executions& all) {
  std::vector<pollfd> waits;
  for (const codeexec::Execution& one : all) waits.push_back({one.descriptor(), POLLIN, 0});
  for (std::size_t left = all.size(); left > 0;) {
    if (::poll(waits.data(), waits.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return 1;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      finish(all, all[i]);
      waits[i].fd = -1;  // poll() leaves it out from now on
      --left;
    }
  }
  return 0;
}

#if __has_include(<asio/posix/stream_descriptor.hpp>)
// The descriptor belongs to the Execution: release() keeps Asio from closing it.
void by_asio(const Executions& all) {
  asio::io_context loop;
  std::vector<asio::posix::stream_descriptor> waits;
  for (const codeexec::Execution& one : all) waits.emplace_back(loop, one.descriptor());
  for (std::size_t i = 0; i < all.size(); ++i)
    waits[i].async_wait(asio::posix::stream_descriptor::wait_read,
                        [&all, i](const asio::error_code&) { finish(all, all[i]); });
  loop.run();
  for (asio::posix::stream_descriptor& wait : waits) wait.release();
}
#endif

}  // namespace

int main() {
  auto here = codeexec::LocalExecutor::create({});
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  std::puts("poll:");
  if (by_poll(start(*here)) != 0) return std::perror("poll"), 1;
#if __has_include(<asio/posix/stream_descriptor.hpp>)
  std::puts("asio:");
  by_asio(start(*here));
#else
  std::puts("asio: its headers are not installed (Debian: libasio-dev)");
#endif
}
