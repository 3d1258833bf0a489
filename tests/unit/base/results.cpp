// Results, callbacks, descriptors and cancellation.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include "../../helpers/support.hpp"

using codeexec::CancelToken;
using codeexec::Error;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Function;
using codeexec::UniqueFd;

namespace {

Error some_error(std::string message) {
  Error error;
  error.code = ErrorCode::limit;
  error.message = std::move(message);
  return error;
}

struct ChildEnd {
  int status = 0;
  std::string err = {};
};

// Runs the function in a child process; what it wrote to standard error, and how it ended.
template <class F>
ChildEnd in_child(F function) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // The test runner's handlers and core files have no business here.
    std::signal(SIGABRT, SIG_DFL);
    const rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(ends[1], 2);
    ::close(ends[0]);
    ::close(ends[1]);
    ::_exit(function() ? 0 : 1);
  }
  ::close(ends[1]);
  ChildEnd end;
  char buffer[1024];
  for (;;) {
    const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    end.err.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  while (::waitpid(pid, &end.status, 0) < 0 && errno == EINTR) {
  }
  return end;
}

template <class F>
bool aborts_saying(F function, const std::string& text) {
  const ChildEnd end = in_child([&] {
    function();
    return true;
  });
  return WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
         end.err.find(text) != std::string::npos;
}

bool is_readable(int fd, int timeout_ms = 0) {
  pollfd entry = {fd, POLLIN, 0};
  int count = 0;
  do {
    count = ::poll(&entry, 1, timeout_ms);
  } while (count < 0 && errno == EINTR);
  return count == 1 && (entry.revents & POLLIN) != 0;
}

constexpr int hang_guard_ms = 20000;

}  // namespace

// Error, Expected ---------------------------------------------------------------------------------

TEST_CASE("every error code has a name of its own") {
  const std::vector<std::pair<ErrorCode, std::string>> names = {
      {ErrorCode::invalid_argument, "invalid_argument"},
      {ErrorCode::not_found, "not_found"},
      {ErrorCode::permission_denied, "permission_denied"},
      {ErrorCode::parse, "parse"},
      {ErrorCode::limit, "limit"},
      {ErrorCode::unsupported, "unsupported"},
      {ErrorCode::io, "io"},
  };
  for (const auto& [code, expected] : names) {
    CHECK(std::string(name(code)) == expected);
    CHECK(*codeexec::from_name<ErrorCode>(expected) == code);
  }
  CHECK(*codeexec::from_name<ErrorCode>("not-found") == ErrorCode::not_found);
  CHECK(std::string(name(static_cast<ErrorCode>(7))) == "");
  CHECK(std::string(name(static_cast<ErrorCode>(-1))) == "");
  for (const char* unknown : {"", "parse ", "PARSE", "pars", "parse\nlimit"}) {
    const auto code = codeexec::from_name<ErrorCode>(unknown);
    CHECK_FALSE(code);
    CHECK(code.error().code == ErrorCode::invalid_argument);
    CHECK(support::has(code.error().message,
                       "' is not one of invalid_argument, not_found, permission_denied, parse, "
                       "limit, unsupported, io"));
  }
}

TEST_CASE("the version is the one that the implementation was compiled with") {
  CHECK(std::string(codeexec::version()) == CODEEXEC_VERSION_STRING);
}

TEST_CASE("an Expected holds a value or an error") {
  const Expected<int> good = 5;
  CHECK(good);
  CHECK(good.has_value());
  CHECK(*good == 5);
  CHECK(good.error().message.empty());

  const Expected<int> bad = some_error("no");
  CHECK_FALSE(bad);
  CHECK_FALSE(bad.has_value());
  CHECK(bad.error().message == "no");
  CHECK(bad.error().code == ErrorCode::limit);
}

TEST_CASE("the value of an Expected can be changed, moved out, and reached through") {
  Expected<std::string> text = std::string("abc");
  *text += "d";
  CHECK(text->size() == 4);
  const Expected<std::string>& constant = text;
  CHECK(constant->size() == 4);
  CHECK(*constant == "abcd");
  const std::string taken = *std::move(text);
  CHECK(taken == "abcd");

  Expected<std::unique_ptr<int>> moveable = std::make_unique<int>(7);
  const std::unique_ptr<int> pointer = *std::move(moveable);
  CHECK(*pointer == 7);
  Expected<std::unique_ptr<int>> other = std::make_unique<int>(8);
  const std::unique_ptr<int> moved = other.take();
  CHECK(*moved == 8);
  CHECK(other.has_value());
  CHECK(*other == nullptr);
}

TEST_CASE("an Expected can stand for another value when it failed") {
  const Expected<std::string> good = std::string("abc");
  CHECK(good.value_or("other") == "abc");
  CHECK(*good == "abc");
  CHECK(Expected<std::string>(some_error("no")).value_or("other") == "other");
  auto moved = Expected<std::unique_ptr<int>>(std::make_unique<int>(7)).value_or(nullptr);
  CHECK(*moved == 7);
  moved = Expected<std::unique_ptr<int>>(some_error("no")).value_or(nullptr);
  CHECK(moved == nullptr);
}

TEST_CASE("an Expected of nothing is success or an error") {
  const Expected<void> good;
  CHECK(good);
  CHECK(good.has_value());
  const Expected<void> bad = some_error("no");
  CHECK_FALSE(bad);
  CHECK_FALSE(bad.has_value());
  CHECK(bad.error().message == "no");
}

TEST_CASE("using the value of a failed Expected ends the program with its message") {
  const std::string text = "codeexec: the value of a failed Expected was used; its error is: why";
  CHECK(aborts_saying(
      [] {
        Expected<std::string> e = some_error("why");
        (void)*e;
      },
      text));
  CHECK(aborts_saying(
      [] {
        Expected<std::string> e = some_error("why");
        (void)e->size();
      },
      text));
  CHECK(aborts_saying(
      [] {
        const Expected<std::string> e = some_error("why");
        (void)*e;
      },
      text));
  CHECK(aborts_saying(
      [] {
        const Expected<std::string> e = some_error("why");
        (void)e->size();
      },
      text));
  CHECK(aborts_saying([] { (void)*Expected<std::string>(some_error("why")); }, text));
  CHECK(aborts_saying([] { (void)Expected<std::string>(some_error("why")).take(); }, text));
  CHECK_FALSE(aborts_saying(
      [] {
        Expected<std::string> e = std::string();
        (void)*e;
      },
      text));
}

// Function ----------------------------------------------------------------------------------------

namespace {

int doubled(int x) { return 2 * x; }

}  // namespace

TEST_CASE("an empty Function does nothing") {
  const Function<int(int)> empty;
  CHECK_FALSE(empty);
  CHECK(empty(5) == 0);
  const Function<void()> null = nullptr;
  CHECK_FALSE(null);
  null();
  const Function<std::string()> text;
  CHECK(text() == "");
}

TEST_CASE("a Function keeps its callable, and copies share it") {
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = alive;
  {
    Function<int(int)> first = [kept = std::move(alive)](int by) { return *kept += by; };
    CHECK(first);
    Function<int(int)> second = first;
    CHECK(first(2) == 2);
    CHECK(second(3) == 5);
    first = nullptr;
    CHECK_FALSE(first);
    CHECK(second(1) == 6);
    Function<int(int)> third = std::move(second);
    CHECK(third(1) == 7);
    CHECK_FALSE(watch.expired());
  }
  CHECK(watch.expired());
  CHECK(Function<int(int)>(doubled)(4) == 8);
}

TEST_CASE("a Function holds callables that only move") {
  auto number = std::make_unique<int>(3);
  const Function<int()> function = [number = std::move(number)] { return *number; };
  CHECK(function() == 3);
}

// UniqueFd ----------------------------------------------------------------------------------------

TEST_CASE("a UniqueFd closes its descriptor exactly once") {
  const auto open_one = [] { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); };
  const int fd = open_one();
  {
    UniqueFd owner(fd);
    CHECK(owner);
    CHECK(owner.get() == fd);
    UniqueFd next = std::move(owner);
    CHECK_FALSE(owner);
    CHECK(owner.get() == -1);
    CHECK(next.get() == fd);
    CHECK(support::descriptor_is_open(fd));
  }
  CHECK_FALSE(support::descriptor_is_open(fd));

  UniqueFd empty;
  CHECK_FALSE(empty);
  CHECK(empty.get() == -1);

  const int first = open_one();
  const int second = open_one();
  UniqueFd a(first);
  UniqueFd b(second);
  a = std::move(b);
  CHECK_FALSE(support::descriptor_is_open(first));
  CHECK(a.get() == second);
  CHECK(b.get() == -1);
  UniqueFd& itself = a;
  a = std::move(itself);
  CHECK(a.get() == second);
  CHECK(support::descriptor_is_open(second));
  const int third = open_one();
  a.reset(third);
  CHECK_FALSE(support::descriptor_is_open(second));
  CHECK(a.release() == third);
  CHECK_FALSE(a);
  CHECK(support::descriptor_is_open(third));
  a.reset(third);
  a.reset();
  CHECK_FALSE(support::descriptor_is_open(third));
}

TEST_CASE("descriptor 0 is a descriptor") {
  UniqueFd zero(0);
  CHECK(zero);
  CHECK(zero.release() == 0);
}

// CancelToken -------------------------------------------------------------------------------------

TEST_CASE("a token is cancelled once and for all, for all its copies") {
  const CancelToken token;
  const CancelToken copy = token;
  const CancelToken other;
  CHECK_FALSE(token.cancelled());
  CHECK_FALSE(copy.cancelled());
  copy.cancel();
  CHECK(token.cancelled());
  CHECK(copy.cancelled());
  token.cancel();
  CHECK(token.cancelled());
  CHECK_FALSE(other.cancelled());
}

TEST_CASE("a token's descriptor becomes readable, whether asked for before or after") {
  const CancelToken before;
  const int fd = before.descriptor();
  REQUIRE(fd >= 0);
  CHECK(before.descriptor() == fd);
  CHECK_FALSE(is_readable(fd));
  before.cancel();
  CHECK(is_readable(fd));
  before.cancel();
  CHECK(is_readable(fd));

  const CancelToken after;
  after.cancel();
  CHECK(is_readable(after.descriptor()));
}

TEST_CASE(
    "a token's descriptor is shared, not inherited, does not block, and ends with the token") {
  int fd = -1;
  {
    const CancelToken token;
    fd = token.descriptor();
    REQUIRE(fd > 2);
    const CancelToken copy = token;
    CHECK(copy.descriptor() == fd);
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK(support::descriptor_is_open(fd));
  }
  CHECK_FALSE(support::descriptor_is_open(fd));
}

TEST_CASE("a token without a descriptor costs none, and keeps working when none is left") {
  const int before = support::count_descriptors();
  const std::vector<CancelToken> tokens(100);
  CHECK(support::count_descriptors() == before);

  const ChildEnd end = in_child([] {
    const rlimit none = {0, 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const CancelToken token;
    if (token.descriptor() != -1 || token.cancelled()) return false;
    token.cancel();
    return token.cancelled() && token.descriptor() == -1;
  });
  CHECK(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 0);
}

TEST_CASE("a token's descriptor stays off the standard streams when those are closed") {
  const ChildEnd end = in_child([] {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
    const CancelToken token;
    return token.descriptor() > 2 && !support::descriptor_is_open(0) &&
           !support::descriptor_is_open(1) && !support::descriptor_is_open(2);
  });
  CHECK(end.status == 0);
}

TEST_CASE("cancelling wakes a thread that waits on the descriptor") {
  const CancelToken token;
  std::atomic<bool> waiting{false};
  bool woken = false;
  std::thread waiter([&] {
    const int fd = token.descriptor();
    waiting.store(true);
    woken = is_readable(fd, hang_guard_ms);
  });
  while (!waiting.load()) std::this_thread::yield();
  token.cancel();
  waiter.join();
  CHECK(woken);
}

TEST_CASE("cancel and descriptor race from many threads without losing the signal") {
  for (int round = 0; round < 200; ++round) {
    const CancelToken token;
    std::atomic<int> unready{0};
    std::atomic<int> missed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t, mine = token] {
        ++unready;
        while (unready.load() < 6) std::this_thread::yield();
        if (t % 2 == 0) {
          mine.cancel();
          if (!mine.cancelled()) ++missed;
        } else if (!is_readable(mine.descriptor(), hang_guard_ms)) {
          ++missed;
        }
      });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(missed.load() == 0);
    REQUIRE(is_readable(token.descriptor()));
  }
}
