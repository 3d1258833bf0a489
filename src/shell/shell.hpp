// Lists the simple commands of a shell script.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

// A simple command that a script would run, such as `X=1 ls -l "$D"`. Its texts are as the command
// gets them: expanded, without quotes. Each part that only a run would know is a single NUL byte,
// which no shell string can contain.
struct SimpleCommand {
  std::vector<std::string> words = {};        // the name and its operands; may be empty
  std::vector<std::string> assignments = {};  // NAME=value in front of it
  std::size_t begin = 0;                      // bytes of the script
  std::size_t end = 0;
};

// Reads a script in the language of bash 5, which has that of POSIX.1-2024 in it. Runs nothing and
// looks at no file. Lists the simple commands in the order in which a shell would come to them: of
// all branches, in functions, substitutions and the strings of eval; once for each value that a
// variable may have. [[ ]] and (( )) are listed as commands of these names. Fails with `parse` for
// what a shell cannot read, and with `limit` beyond 32 levels, 4096 commands as written, 65,536 as
// listed, 262,144 words or 8 MiB of text; `offset` is a byte of the script. Time is linear in the
// script. Any thread may call it.
Expected<std::vector<SimpleCommand>> simple_commands(std::string_view script);

}  // namespace v0_1
}  // namespace codeexec
