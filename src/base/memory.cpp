// What is done when memory runs out.

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool enough_memory(FunctionRef<void()> work) {
#if defined(__cpp_exceptions)
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
#else
  work();
  return true;
#endif
}

void pause_for_memory() { ::poll(nullptr, 0, 10); }

void await_memory(FunctionRef<void()> work) {
  while (!enough_memory(work)) pause_for_memory();
}

void tell_of_memory(std::string& message, std::string_view missing) {
  const auto tell = [&] {
    const char* const before = message.empty() ? "" : "; ";
    message += concat("%%: % missing", {before, out_of_memory, missing});
  };
  if (!enough_memory(tell) && message.empty()) message = out_of_memory;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
