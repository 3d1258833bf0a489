// The judge of a script's simple commands: how strict mode works.
//
// Everything is compiled when the policy is created, so that a bad pattern is found at start-up and
// not by the first command.
//
// The shell room walks over the script and hands each simple command to the judge. It looks at the
// command in all its forms, and gives back the texts that a shell would read next:
//
//   script -> shell::walk() ---- Visit ----> Judge::visit()        judge.cpp
//                  ^                             |
//                  |             each form of the command (see subject_internal.hpp)
//                  |                             |
//                  |        is its name or its request refused?  programs.cpp
//                  |        what does it do with files?          operands.cpp, file_uses.cpp
//                  |        does it start another program?       wrappers.cpp, find.cpp, xargs.cpp
//                  |             with the host in its hands?     host_access.cpp
//                  |             +--> a new form of the command
//                  |        does a shell read a text?            nested_shells.cpp,
//                  |             |                               wrapped_languages.cpp,
//                  +-- payload --+                               interpreters.cpp, code_input.cpp
//
// No objection ends the walk: a syntax error at the end of a script outranks all before it, as
// nothing of the script would run. case_internal.hpp says how the verdict is found.
// What the policy knows about programs stands in the tables; the functions know few names.
//
// The compat rules are the patterns of MassGen's command line server, kept to the letter, false
// alarms ("grep sudo README.md") and gaps ("rm -fr /") included: those who ask for them depend on
// exactly these verdicts.
#pragma once

#include "policy/case_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Judges the commands of one walk over a script. Its findings go to the case; of its own it knows
// which variables the script has set, which links it has made, and
// what of its output is known.
class Judge {
 public:
  explicit Judge(Case& judged) : case_(judged) {}
  void visit(const shell::Visit& visit);
  // After the last visit.
  void finish() const { variables_.finish(case_); }

 private:
  Case& case_;
  UnsetVariables variables_ = {};
  Links links_ = {};
  Links copies_ = {};
  KnownOutput output_ = {};
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
