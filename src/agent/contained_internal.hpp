// The agent in a container.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// How often memory has run out in the container of this process.
std::uint64_t oom_kills_here();

// By root in a new container: a name for the uid and gid of its commands, whose home is `home`, or
// empty; `folders` that everybody may write to. Returns which of `programs` are not there.
Json prepare_container(const Json& wanted);

// Sees to capabilities, HOME, USER and .gitconfig, as a hello has it, and finds out what commands
// become. False: there is no such user.
bool settle_in_container(const Json& hello, long& uid, long& gid);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
