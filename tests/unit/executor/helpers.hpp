// Helpers that several tests of the executor section share.
#ifndef CODEEXEC_TESTS_UNIT_EXECUTOR_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_EXECUTOR_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

using Strings = std::vector<std::string>;

inline std::vector<std::string> member_names(const codeexec::Json& object) {
  Strings names;
  for (const codeexec::Json::Member& member : object.members()) names.push_back(member.name);
  return names;
}

inline codeexec::LocalOptions in(const support::TempDir& directory) {
  codeexec::LocalOptions options;
  options.workspace = directory.path();
  return options;
}

// A command that must succeed; its standard output.
inline std::string output_of(const codeexec::LocalExecutor& executor,
                             const codeexec::Command& command) {
  const codeexec::Result r = executor.run(command);
  CHECK_MESSAGE(r.succeeded(), describe(r));
  return r.out;
}

inline std::string output_of(const codeexec::LocalExecutor& executor, const std::string& script) {
  return output_of(executor, codeexec::Command::shell(script));
}

// Whether a note has these words.
inline bool noted(const codeexec::Result& r, std::string_view words) {
  for (const std::string& note : r.notes)
    if (has(note, words)) return true;
  return false;
}

// A sentence of the notes that begins so; empty when there is none.
inline std::string note_of(const codeexec::Result& r, const std::string& begin) {
  for (const std::string& note : r.notes)
    if (begins(note, begin)) return note;
  return {};
}

// A script of at least `size` bytes that prints "end".
inline std::string long_script(std::size_t size) {
  // Long lines: a script may have 4096 commands.
  const std::string line = ": " + std::string(1021, 'x') + "\n";
  std::string script;
  while (script.size() < size) script += line;
  return script + "echo end\n";
}

inline const char* const child = CODEEXEC_TEST_CHILD;

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_EXECUTOR_HELPERS_HPP
