// Which of the host's variables are kept.
#pragma once

#include "environment/environment.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool is_directory(const std::string& path);

bool is_kept(std::string_view variable, const EnvironmentOptions& options);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
