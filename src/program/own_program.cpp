// Where this program is: what clients and MassGen are to start.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Expected<std::string> own_program() {
  auto path = canonical_path("/proc/self/exe");
  if (path && ::access(path->c_str(), X_OK) == 0) return path;
  return make_error(ErrorCode::io, "this program is not there any more: start it again");
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
