// Borrowed callables.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "base/base_internal.hpp"

using codeexec::FunctionRef;

namespace {

int twice(int x) { return 2 * x; }

}  // namespace

TEST_CASE("a FunctionRef calls what it refers to") {
  int calls = 0;
  auto count = [&](int by) { return calls += by; };
  const FunctionRef<int(int)> ref = count;
  CHECK(ref(2) == 2);
  CHECK(ref(3) == 5);
  CHECK(calls == 5);

  const auto constant = [](const std::string& text) { return text.size(); };
  CHECK(FunctionRef<std::size_t(const std::string&)>(constant)("abc") == 3);

  int (*pointer)(int) = twice;
  CHECK(FunctionRef<int(int)>(pointer)(4) == 8);

  // State is that of the referred object, through copies, too.
  struct Counter {
    int n = 0;
    int operator()() { return ++n; }
  } counter;
  FunctionRef<int()> first = counter;
  FunctionRef<int()> second = first;
  first();
  CHECK(second() == 2);
  CHECK(counter.n == 2);
}

TEST_CASE("a FunctionRef passes references and moves") {
  auto append = [](std::string& text, std::unique_ptr<int> by) { text += std::to_string(*by); };
  const FunctionRef<void(std::string&, std::unique_ptr<int>)> ref = append;
  std::string text = "n";
  ref(text, std::make_unique<int>(7));
  CHECK(text == "n7");
}
