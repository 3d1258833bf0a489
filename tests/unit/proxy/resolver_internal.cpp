// Lookups of names that are slow.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>

#include "../../../src/proxy/proxy_internal.hpp"
#include "../../helpers/support.hpp"

#if defined(__linux__)

using codeexec::Lookup;
using codeexec::Resolver;
using support::comes_true;

namespace {

std::mutex door;
std::condition_variable opened;
bool is_open = false;
std::atomic<int> slow_lookups{0};

}  // namespace

// That of the C library, but a name that begins with "slow." waits for the door.
extern "C" int getaddrinfo(const char* name, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  if (name && std::strncmp(name, "slow.", 5) == 0) {
    ++slow_lookups;
    std::unique_lock<std::mutex> lock(door);
    opened.wait(lock, [] { return is_open; });
    return EAI_AGAIN;
  }
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, port, hints, found);
}

TEST_CASE("slow names of a command hold up no other, and are forgotten with their connections") {
  auto made = Resolver::create();
  REQUIRE(made);
  Resolver& resolver = **made;
  const auto is_done = [&resolver](std::uint64_t key) {
    for (const Lookup& lookup : resolver.take())
      if (lookup.key == key) return true;
    return false;
  };
  constexpr std::uint64_t many = 100;
  for (std::uint64_t key = 1; key <= many; ++key) resolver.ask(key, 1, {"slow.invalid", 80, false});
  CHECK(comes_true([] { return slow_lookups == 4; }));
  resolver.ask(many + 1, 2, {"127.0.0.1", 80, true});
  CHECK(comes_true([&] { return is_done(many + 1); }));
  CHECK(slow_lookups == 4);
  for (std::uint64_t key = 1; key <= many; ++key) resolver.forget(key);
  {
    const std::lock_guard<std::mutex> lock(door);
    is_open = true;
  }
  opened.notify_all();
  resolver.ask(many + 2, 1, {"127.0.0.1", 80, true});
  CHECK(comes_true([&] { return is_done(many + 2); }));
  CHECK(slow_lookups == 4);
  resolver.end();
}

#else

TEST_CASE("proxy: lookups") { MESSAGE("SKIPPED: there is a proxy on Linux only"); }

#endif
