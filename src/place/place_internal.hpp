// What leads to an agent of another machine, and what that does besides running commands.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The script for a shell that becomes the agent. If the file is not there, the script writes
// bring_mark and reads the file from the same pipe.
std::string bring_text(std::string_view file);

// Reads a FileMessage from one descriptor, and writes the answer to the other. The ground is a text
// in JSON. Returns 0, or 1. See AgentWorkspace::question().
int answer_question(std::string_view ground, int in, int out);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
