// What leads to an agent of another machine, and what that does besides running commands.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The script for a shell that becomes the agent. If the file is not there, the script writes
// upload_mark and reads the file from the same pipe.
std::string bring_text(std::string_view file);

// Reads a FileMessage from `in`, and writes the answer to `out`. `subject` is JSON: a root list as
// a text, or for a copy what copy_subject() has made. Returns 0, or 1 for what cannot be read or
// written. See AgentWorkspace::question().
int answer_question(std::string_view subject, int in, int out);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
