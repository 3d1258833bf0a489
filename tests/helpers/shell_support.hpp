// Helpers for the programs that tell what the shell section reads.
#ifndef CODEEXEC_TESTS_SHELL_SUPPORT_HPP
#define CODEEXEC_TESTS_SHELL_SUPPORT_HPP

#include "codeexec.hpp"

#include <string>

namespace support {

// The letters of a word's marks: a)ssumed, g)lob, h)ome, s)plit, p)rocess.
inline std::string marks_of(const codeexec::shell::Word& word) {
  std::string marks;
  if (word.assumed) marks += 'a';
  if (word.glob) marks += 'g';
  if (word.home) marks += 'h';
  if (word.split) marks += 's';
  if (word.process) marks += 'p';
  return marks;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_SHELL_SUPPORT_HPP
