// What all benchmarks share: a clock, samples with their spread, a rival in Python, gates and rows.
// A row is one number of ours, alone or beside that of a rival from the same run. It is printed for
// people and, into the file that $BENCH_ROWS names, as one line of JSON for report.py.
#ifndef CODEEXEC_TESTS_BENCH_REPORT_HPP
#define CODEEXEC_TESTS_BENCH_REPORT_HPP

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using Time = std::chrono::steady_clock;
using Argv = std::vector<const char*>;  // ends with a null pointer

[[noreturn]] inline void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

[[noreturn]] inline void fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::exit(2);
}

inline char** writable(const Argv& argv) { return const_cast<char**>(argv.data()); }

inline void make_pipe(int (&ends)[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
}

template <class Work>
double microseconds(Work&& work) {
  const auto begin = Time::now();
  work();
  return std::chrono::duration<double, std::micro>(Time::now() - begin).count();
}

// numbers -----------------------------------------------------------------------------------------

// A number, and between which ones most of the others were: the tenth and the ninetieth percentile.
// p95: which 19 of 20 were not above, where that is known.
struct Figure {
  double value = 0;
  double low = 0;
  double high = 0;
  double p95 = std::nan("");
};

inline Figure figure(double value) { return {value, value, value}; }

class Samples {
 public:
  void add(double value) {
    values_.push_back(value);
    sorted_ = false;
  }
  double at(double share) {
    if (values_.empty()) return 0;
    if (!std::exchange(sorted_, true)) std::sort(values_.begin(), values_.end());
    const double place = share * static_cast<double>(values_.size() - 1);
    // Of few values the outer ones.
    return values_[static_cast<std::size_t>(share > 0.5 ? std::ceil(place) : place)];
  }
  double median() { return at(0.5); }
  operator Figure() { return {median(), at(0.1), at(0.9), at(0.95)}; }
  // Of so many units in that time, such as bytes: the rate.
  Figure rate(double units) {
    return {units / median(), units / at(0.9), units / at(0.1), units / at(0.05)};
  }

 private:
  std::vector<double> values_ = {};
  bool sorted_ = false;
};

// Of the medians or, when that is lower, of what the work costs when nobody else had the processor.
inline double best_ratio(Samples& work, Samples& base) {
  return std::min(work.median() / base.median(), work.at(0.1) / base.at(0.1));
}

// rows and gates ----------------------------------------------------------------------------------

// A promise: `value` is at most ("<=") or at least (">=") the limit. Without a value it is about
// the ratio of its row or, when there is no rival, about our number.
struct Gate {
  const char* relation = "";
  double limit = 0;
  double value = std::nan("");
};

inline bool gates_hold = true;

inline std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + '"';
}

inline std::string json_number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::isfinite(value) ? text : "null";
}

inline std::string json_figure(const Figure& figure) {
  return "{\"value\":" + json_number(figure.value) + ",\"low\":" + json_number(figure.low) +
         ",\"high\":" + json_number(figure.high) + ",\"p95\":" + json_number(figure.p95) + "}";
}

inline void write_line(const std::string& line) {
  static std::FILE* const file = [] {
    const char* const path = std::getenv("BENCH_ROWS");
    return path ? std::fopen(path, "ae") : nullptr;
  }();
  if (!file) return;
  std::fprintf(file, "%s\n", line.c_str());
  std::fflush(file);
}

inline bool gate(const std::string& what, double value, const char* relation, double limit) {
  const bool at_most = std::strcmp(relation, "<=") == 0;
  const bool holds = at_most ? value <= limit : value >= limit;
  std::printf("%s: %s = %.3f, must be %s %.2f\n", holds ? "gate" : "GATE FAILED", what.c_str(),
              value, relation, limit);
  std::fflush(stdout);
  if (!holds) gates_hold = false;
  return holds;
}

inline std::string shown(const Figure& figure, const char* unit) {
  char text[128];
  if (figure.low == figure.high)
    std::snprintf(text, sizeof text, "%.4g %s", figure.value, unit);
  else
    std::snprintf(text, sizeof text, "%.4g [%.4g .. %.4g, p95 %.4g] %s", figure.value, figure.low,
                  figure.high, figure.p95, unit);
  return text;
}

// A number of ours beside the one of a rival.
inline void report(const std::string& what, const char* unit, const Figure& ours,
                   const std::string& rival, const Figure& theirs, const Gate& promise = {}) {
  const double ratio = ours.value / theirs.value;
  std::printf("%s: %s", what.c_str(), shown(ours, unit).c_str());
  if (!rival.empty())
    std::printf("; %s: %s; ratio %.3f", rival.c_str(), shown(theirs, unit).c_str(), ratio);
  std::printf("\n");
  std::string line = "{\"what\":" + json_text(what) + ",\"unit\":" + json_text(unit) +
                     ",\"ours\":" + json_figure(ours);
  if (!rival.empty())
    line += ",\"rival\":" + json_text(rival) + ",\"theirs\":" + json_figure(theirs) +
            ",\"ratio\":" + json_number(ratio);
  if (promise.relation[0] != '\0') {
    double value = rival.empty() ? ours.value : ratio;
    if (!std::isnan(promise.value)) value = promise.value;
    std::string name = what;
    if (!rival.empty()) name += " / " + rival;
    const bool holds = gate(name, value, promise.relation, promise.limit);
    line += ",\"gate\":{\"relation\":" + json_text(promise.relation) +
            ",\"limit\":" + json_number(promise.limit) + ",\"value\":" + json_number(value) +
            ",\"holds\":" + (holds ? "true" : "false") + "}";
  }
  std::fflush(stdout);
  write_line(line + "}");
}

// A number that stands alone.
inline void report(const std::string& what, const char* unit, const Figure& ours,
                   const Gate& promise = {}) {
  report(what, unit, ours, "", {}, promise);
}

// A row that this machine cannot have; empty for `rival`, when it is about ours alone.
inline void skipped(const std::string& what, const std::string& rival, const std::string& why) {
  std::printf("SKIPPED: %s%s%s: %s\n", what.c_str(), rival.empty() ? "" : " / ", rival.c_str(),
              why.c_str());
  std::fflush(stdout);
  write_line("{\"what\":" + json_text(what) + ",\"rival\":" + json_text(rival) +
             ",\"skipped\":" + json_text(why) + "}");
}

// The exit status of a benchmark.
inline int finish() {
  std::printf(gates_hold ? "all gates hold\n" : "a gate failed\n");
  return gates_hold ? 0 : 1;
}

inline bool has_argument(int argc, char** argv, const char* argument) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], argument) == 0) return true;
  return false;
}

// a rival in another language ---------------------------------------------------------------------

// A Python program that takes turns with this one: for each line that it is given it prints how
// many microseconds its own work took.
class Python {
 public:
  explicit Python(const std::string& script) {
    int to[2];
    int from[2];
    make_pipe(to);
    make_pipe(from);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    ::posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    const Argv argv = {"python3", "-u", "-c", script.c_str(), nullptr};
    if (::posix_spawnp(&pid_, argv[0], &actions, nullptr, writable(argv), environ) != 0) pid_ = -1;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    input_ = ::fdopen(to[1], "w");
    output_ = ::fdopen(from[0], "r");
  }
  Python(const Python&) = delete;
  Python& operator=(const Python&) = delete;
  ~Python() {
    std::fclose(input_);
    std::fclose(output_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }

  bool there() const { return pid_ > 0; }
  double ask(const char* question = "") {
    std::fprintf(input_, "%s\n", question);
    std::fflush(input_);
    char answer[128];
    if (!std::fgets(answer, sizeof answer, output_)) fail("python3", "it ended");
    return std::strtod(answer, nullptr);
  }

 private:
  pid_t pid_ = -1;
  std::FILE* input_ = nullptr;
  std::FILE* output_ = nullptr;
};

#endif  // CODEEXEC_TESTS_BENCH_REPORT_HPP
