// Lines and blanks, and the name of code.
#pragma once

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Without white space at its ends.
std::string_view without_blanks(std::string_view text);

// Takes the next line off a text, without its end: \n, \r\n or \r.
std::string_view take_line(std::string_view& text);

// The name that code gives itself in its first line; empty: none.
std::string_view name_in_comment(std::string_view code, const std::string& extension);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
