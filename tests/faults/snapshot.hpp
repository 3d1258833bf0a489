// What must be as before when a scenario of faults.cpp has ended: descriptors, threads, signals,
// files and children.
#ifndef CODEEXEC_TESTS_FAULTS_SNAPSHOT_HPP
#define CODEEXEC_TESTS_FAULTS_SNAPSHOT_HPP

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../helpers/support.hpp"
#include "scenarios.hpp"

namespace faults {

inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = ::opendir(path.c_str());
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory))
    if (entry->d_name[0] != '.' || std::strlen(entry->d_name) > 2)
      names.emplace_back(entry->d_name);
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

// What begins with `prefix` in a tree; "" for everything.
inline void find_in(const std::string& path, const std::string& prefix, int depth,
                    std::vector<std::string>& found) {
  for (const std::string& name : names_in(path)) {
    const std::string whole = path + "/" + name;
    if (support::begins(name, prefix)) found.push_back(whole);
    struct stat status {};
    const bool deeper = depth > 0 && ::lstat(whole.c_str(), &status) == 0;
    if (deeper && S_ISDIR(status.st_mode)) find_in(whole, prefix, depth - 1, found);
  }
}

// The directories of the cgroups that this process is in, of either version, where they are usual.
inline const std::vector<std::string>& own_groups() {
  static const std::vector<std::string> groups = [] {
    std::vector<std::string> found;
    for (const std::string& line : support::lines_of(support::read_file("/proc/self/cgroup"))) {
      const std::size_t path = line.find('/');
      const std::size_t name = line.find(':') + 1;
      const std::string controller = line.substr(name, line.find(':', name) - name);
      for (const char* base : {"/sys/fs/cgroup/", "/sys/fs/cgroup/unified/"})
        if (path != std::string::npos) found.push_back(base + controller + line.substr(path));
    }
    return found;
  }();
  return groups;
}

class Snapshot {
 public:
  explicit Snapshot(const Place& place) {
    for (const std::string& fd : names_in("/proc/self/fd")) {
      const std::string target = support::path_of_descriptor(std::atoi(fd.c_str()));
      // The directory itself has been closed again.
      if (!target.empty()) things_.push_back("descriptor " + fd + " -> " + target);
    }
    find_in(place.path(), "", 8, files_);
    for (const std::string& group : own_groups())
      find_in(group, "codeexec-" + std::to_string(::getpid()) + "-", 0, files_);
    for (const std::string& task : names_in("/proc/self/task")) things_.push_back("thread " + task);
    sigset_t set;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &set);
    for (int number = 1; number < NSIG; ++number)
      if (sigismember(&set, number) == 1)
        things_.push_back("blocked signal " + std::to_string(number));
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action {};
      if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_DFL)
        things_.push_back("handler of signal " + std::to_string(number));
    }
    if (::access(".", F_OK) == 0) things_.push_back("in " + support::real_path("."));
    std::sort(things_.begin(), things_.end());
    std::sort(files_.begin(), files_.end());
  }
  // What the other has and this has not, and the other way round; empty when there is nothing.
  std::string difference(const Snapshot& after) const {
    return missing_in(things_, after.things_, "left: ") +
           missing_in(after.things_, things_, "gone: ");
  }
  std::string difference_of_files(const Snapshot& after) const {
    return missing_in(files_, after.files_, "left: ") + missing_in(after.files_, files_, "gone: ");
  }

 private:
  static std::string missing_in(const std::vector<std::string>& list,
                                const std::vector<std::string>& other, const char* what) {
    std::string text;
    for (const std::string& thing : other)
      if (!std::binary_search(list.begin(), list.end(), thing))
        text += (text.empty() ? what : ", ") + thing;
    return text;
  }
  std::vector<std::string> things_ = {};
  std::vector<std::string> files_ = {};
};

// Threads and children that have ended may take a moment to go.
template <class Question>
std::string in_time(Question question) {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!(text = question()).empty() && std::chrono::steady_clock::now() < end)
    ::poll(nullptr, 0, 10);
  return text;
}

inline std::string has_children() {
  siginfo_t info = {};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return {};
  return info.si_pid == 0 ? "a process is left" : "a zombie is left";
}

}  // namespace faults

#endif  // CODEEXEC_TESTS_FAULTS_SNAPSHOT_HPP
