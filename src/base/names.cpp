// Looking names up in lists.

#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// From end to end: lists have a few dozen names, most of which differ in size.
bool Names::has(std::string_view name) const {
  for (const std::string_view other : *this)
    if (other == name) return true;
  return false;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
