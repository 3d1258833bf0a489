// What a shell holds besides its folder and its exported variables.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Reads what a shell says of itself, see Guard::held_by_shell(). The texts are hostile.
Expected<TextMap> read_held(const std::vector<std::string>& told, bool bash,
                            std::vector<std::string>& left_out);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
