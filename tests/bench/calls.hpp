// System calls of a program and of the processes that it makes, counted by strace: a number that
// does not depend on how busy the machine is.
#ifndef CODEEXEC_TESTS_BENCH_CALLS_HPP
#define CODEEXEC_TESTS_BENCH_CALLS_HPP

#include <fstream>
#include <set>

#include "report.hpp"

struct Calls {
  double host = 0;    // of the program's first thread
  double others = 0;  // of its threads and processes, until they execute another program
  double stats = 0;   // of the host, those that look at a file
};

// False: there is no strace here, or it may not trace.
inline bool traced(const std::vector<std::string>& words, const std::string& file) {
  std::vector<std::string> all = {"strace", "-f", "-qq", "-s", "0", "-o", file};
  all.insert(all.end(), words.begin(), words.end());
  Argv argv;
  for (const std::string& word : all) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  pid_t pid = -1;
  int status = -1;
  return ::posix_spawnp(&pid, argv[0], nullptr, nullptr, writable(argv), environ) == 0 &&
         ::waitpid(pid, &status, 0) == pid && status == 0;
}

inline Calls calls_in(const std::string& file) {
  Calls calls;
  std::ifstream lines(file);
  std::set<std::string> executed;
  std::string line;
  std::string host;
  while (std::getline(lines, line)) {
    const std::string pid = line.substr(0, line.find(' '));
    const std::size_t begin = line.find_first_not_of(' ', pid.size());
    // Ends of calls that were told before, signals, and ends of processes.
    if (begin == line.npos || line[begin] == '<' || line[begin] == '-' || line[begin] == '+')
      continue;
    const std::string call = line.substr(begin, line.find('(', begin) - begin);
    if (host.empty()) host = pid;
    if (pid == host) {
      ++calls.host;
      if (call.find("stat") != call.npos) ++calls.stats;
    } else if (executed.count(pid) == 0) {
      ++calls.others;
      if (call == "execve") executed.insert(pid);
    }
  }
  return calls;
}

// Of one run of many, when `program` is told by its last word how often it is to do it.
inline bool count_calls(std::vector<std::string> program, const std::string& file, Calls& one) {
  constexpr int few = 3;
  constexpr int many = 23;
  Calls counted[2];
  int times[] = {few, many};
  program.emplace_back();
  for (int i = 0; i < 2; ++i) {
    program.back() = std::to_string(times[i]);
    const bool done = traced(program, file);
    if (done) counted[i] = calls_in(file);
    ::unlink(file.c_str());
    if (!done) return false;
  }
  const auto each = [&](double Calls::*what) {
    return (counted[1].*what - counted[0].*what) / (many - few);
  };
  one = {each(&Calls::host), each(&Calls::others), each(&Calls::stats)};
  return true;
}

#endif  // CODEEXEC_TESTS_BENCH_CALLS_HPP
