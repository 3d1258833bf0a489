// The scenarios of faults.cpp: uses of the library, one function each, and what they share.
#ifndef CODEEXEC_TESTS_FAULTS_SCENARIOS_HPP
#define CODEEXEC_TESTS_FAULTS_SCENARIOS_HPP

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "../helpers/support.hpp"
#include "codeexec.hpp"

namespace faults {

// What a scenario found out.
class Report {
 public:
  explicit Report(int error) : error_(error) {}

  bool is_fault(int error) const { return error_ == error; }
  void problem(const std::string& text) { problems_.push_back(text); }
  void right() { told_ = "no difference"; }
  // A failure was told with these words.
  void told(const std::string& how, const std::string& message, int system_error) {
    told_ = how + ": " + message;
    if (message.empty()) problem(how + " without a message");
    if (!names_error(message, system_error)) problem("the errno is not told: " + told_);
    if (support::has(message, "\n")) problem("the message has more than a line: " + told_);
  }
  void told(const std::string& how, const codeexec::Error& error) {
    told(how, error.message, error.system_error);
  }

  // Of a program, and of a command.
  void judge(const codeexec::ProcessResult& r, bool as_without) { judge(r, as_without, r.message); }
  void judge(const codeexec::Result& r, bool as_without) {
    std::string words = r.message;
    for (const std::string& note : r.notes) words += (words.empty() ? "" : "; ") + note;
    if (r.sandbox)
      for (const std::string& missing : r.sandbox->missing)
        words += (words.empty() ? "missing: " : "; missing: ") + missing;
    judge(r, as_without, words);
  }
  template <class T>
  bool judge(const codeexec::Expected<T>& value, const char* what) {
    if (value) return true;
    told(what, value.error());
    return false;
  }

  const std::string& told() const { return told_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  // The errno, or what it means for what was asked.
  bool names_error(const std::string& message, int system_error) const {
    if (system_error == error_ || support::has(message, std::strerror(error_))) return true;
    for (const char* meaning :
         {"shell must be the path of a program", "a trial got around it",
          "/proc has no lists of children here", "its exit status was lost",
          "there is no cgroup for it",
          // pthread_create() has this errno only.
          "thread: Resource temporarily unavailable",
          "cannot start the thread for processes: Resource temporarily unavailable"})
      if (support::has(message, meaning)) return true;
    return false;
  }
  void judge(const codeexec::ProcessResult& r, bool as_without, const std::string& words) {
    if (as_without) {
      right();
      if (!words.empty()) told_ += " but: " + words;
      return;
    }
    if (r.outcome == codeexec::Outcome::not_started) {
      told("not started", words, r.system_error);
      if (r.step.empty()) problem("a start that failed names no step");
      if (!r.out.empty() || !r.err.empty()) problem("what was not started has output");
      if (r.exit_code != -1 || r.signal != 0) problem("what was not started has a status");
      return;
    }
    const std::string how = std::string(name(r.outcome)) + " " + std::to_string(r.exit_code) +
                            " with " + std::to_string(r.out.size()) + "+" +
                            std::to_string(r.err.size()) + " bytes";
    told_ = how + ": " + words;
    if (words.empty()) problem("wrong without a word: " + how);
  }

  int error_;
  std::string told_ = {};
  std::vector<std::string> problems_ = {};
};

// Directories of a run, which it may fill.
class Place {
 public:
  explicit Place(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  std::string workspace() const { return path_ + "/workspace"; }
  std::string operator/(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

inline codeexec::ProcessOptions program(const Place& place, std::vector<std::string> argv) {
  codeexec::ProcessOptions options;
  options.argv = std::move(argv);
  options.environment = {"PATH=/nonexistent:/usr/local/bin:/usr/bin:/bin"};
  options.work_dir = place.workspace();
  options.timeout = std::chrono::seconds(10);
  return options;
}

inline bool exited(const codeexec::ProcessResult& r, int code, const std::string& out,
                   const std::string& err = {}) {
  return r.outcome == codeexec::Outcome::exited && r.exit_code == code && r.out == out &&
         r.err == err;
}

inline codeexec::LocalOptions local(const Place& place) {
  codeexec::LocalOptions options;
  options.workspace = place.workspace();
  options.roots = {{place.workspace()}};
  options.timeout = std::chrono::seconds(10);
  return options;
}

// Scenarios ---------------------------------------------------------------------------------------

// process_scenarios.cpp
void plain(Place& place, Report& report);
void handles(Place& place, Report& report);
void input(Place& place, Report& report);
void timeout(Place& place, Report& report);
void cancel(Place& place, Report& report);
void background(Place& place, Report& report);
void spill(Place& place, Report& report);
void supervised(Place& place, Report& report);
void supervised_timeout(Place& place, Report& report);
void held(Place& place, Report& report);
void start(Place& place, Report& report);
void abandoned(Place& place, Report& report);

// executor_scenarios.cpp
void become_ordinary(const Place& place);
void strict(Place& place, Report& report);
void best_effort(Place& place, Report& report);
void limits(Place& place, Report& report);
void ordinary_user(Place& place, Report& report);
void audited(Place& place, Report& report);
void session(Place& place, Report& report);
void jobs(Place& place, Report& report);
void code(Place& place, Report& report);
void files(Place& place, Report& report);

// server_scenarios.cpp
void serve(Place& place, Report& report);
void docker(Place& place, Report& report);
void no_docker(Place& place, Report& report);

}  // namespace faults

#endif  // CODEEXEC_TESTS_FAULTS_SCENARIOS_HPP
