// The names that commands may reach over the network.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

// The named sets of ExecutorOptions::allowed_domains, one a line: the name, then its hosts, with a
// blank between them.
std::string_view domain_sets() noexcept;

}  // namespace v0_1
}  // namespace codeexec
