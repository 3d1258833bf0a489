// The part of a scenario whose system calls are counted and made to fail; see tracer.hpp.
#ifndef CODEEXEC_TESTS_FAULTS_REGION_HPP
#define CODEEXEC_TESTS_FAULTS_REGION_HPP

#include <signal.h>

#include <utility>

namespace faults {

// Sent by the program to itself, and taken away by the tracer: calls count from the first to the
// second one.
constexpr int mark = SIGUSR2;

// Calls are counted, and one of them fails, from the first one of these on until its end. Later
// ones in the same process do nothing.
class Region {
 public:
  Region() : first_(!std::exchange(used(), true)) {
    if (first_) ::raise(mark);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { end(); }
  void end() {
    if (std::exchange(first_, false)) ::raise(mark);
  }

 private:
  static bool& used() {
    static bool value = false;
    return value;
  }
  bool first_;
};

}  // namespace faults

#endif  // CODEEXEC_TESTS_FAULTS_REGION_HPP
