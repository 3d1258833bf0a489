// Text that is typed to a program that runs: the lines that it will read, and whether they are
// known.
#pragma once

#include "policy/case_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What was found in a script that reads an input.
struct ReadVerdict {
  Verdict verdict = {};
  Reader reader = Reader::none;
  bool open = false;         // the input ends in a construct
  bool edits_lines = false;  // see Case
};

// Notes whether a command, or a variable that is set, changes what becomes of typed lines.
void note_editing(Case& judged, const Form& form, std::string_view program);
void note_editing(Case& judged, std::string_view variable);

// Judges what is written to a script that runs, as Guard::judge_typed(). `judge` judges the script
// with an input.
Verdict judge_typed_text(FunctionRef<ReadVerdict(const shell::Input&)> judge, bool terminal,
                         std::string_view text, std::string& typed);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
