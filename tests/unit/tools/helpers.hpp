// Helpers that several tests of the server program share.
#ifndef CODEEXEC_TESTS_UNIT_TOOLS_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_TOOLS_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>

#include <algorithm>

#include "../../helpers/server_support.hpp"

namespace support {

// A named pipe that commands write to, so that the test knows when they are so far.
class Fifo {
 public:
  explicit Fifo(const std::string& path) : path_(path) {
    REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
    fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd_ >= 0);
  }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;
  ~Fifo() { ::close(fd_); }
  const std::string& path() const { return path_; }

  std::string read_line() {
    std::string line;
    for (;;) {
      pollfd wanted = {fd_, POLLIN, 0};
      REQUIRE_MESSAGE(::poll(&wanted, 1, patience_ms) == 1, "no command wrote to the pipe");
      char byte = 0;
      REQUIRE(::read(fd_, &byte, 1) == 1);
      if (byte == '\n') return line;
      line += byte;
    }
  }
  pid_t read_pid() { return std::atoi(read_line().c_str()); }
  void write_text(const std::string& text) {
    REQUIRE(::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }

 private:
  std::string path_;
  int fd_ = -1;
};

// What --sandbox-report prints.
inline codeexec::Json report_of(Strings arguments, const std::string& work_dir = "/") {
  arguments.push_back("--sandbox-report");
  const codeexec::ProcessResult r = run_program(arguments, work_dir);
  CHECK(r.err == "");
  CHECK(lines_of(r.out).size() == 1);
  const codeexec::Json report = parsed(r.out);
  CHECK(r.exit_code == (report["missing"].size() > 0 ? 1 : 0));
  return report;
}

inline bool enforces(const codeexec::Json& report, const std::string& feature) {
  for (const codeexec::Json& name : report["enforced"].items())
    if (name == codeexec::Json(feature)) return true;
  return false;
}

// Whether the kernel keeps commands within their folders; says so when not.
inline bool confines() {
  const codeexec::ProcessResult r = run_bare({"--sandbox-report"}, "/tmp");
  if (enforces(parsed(r.out), "filesystem")) return true;
  MESSAGE("SKIPPED: no sandbox here");
  return false;
}

// The options that a configuration file has, too: name and what help calls the value ("" for none).
inline std::vector<std::pair<std::string, std::string>> options_of_help() {
  const codeexec::ProcessResult help = run_program({"--help-all", "--json"});
  CHECK(help.exit_code == 0);
  CHECK(help.err == "");
  std::vector<std::pair<std::string, std::string>> options;
  const codeexec::Json rows = parsed(help.out);
  for (const codeexec::Json& row : rows.items())
    if (row["modes"].size() > 0)
      options.emplace_back(row["option"].as_string(), row["value"].as_string());
  CHECK(options.size() > 100);
  return options;
}

inline std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

inline bool is_list(const std::string& value) { return ends(value, "..."); }

inline bool is_number(const std::string& value) {
  return value == "SECONDS" || value == "N" || value == "CPUS";
}

// A command that tells its process number and then runs until somebody ends it.
inline std::string endless(const Fifo& fifo) {
  return "sleep 300 & echo $! > " + fifo.path() + "; wait";
}

inline const std::string seven_keys =
    "success exit_code stdout stderr execution_time command work_dir";

inline const std::string all_keys = seven_keys +
                                    " outcome timed_out stdout_bytes stderr_bytes stdout_truncated "
                                    "stderr_truncated";

// A command that was refused or could not run, in the reference's form.
inline void check_failure(const codeexec::Json& object, const std::string& stderr_text) {
  CHECK(begins(names_of(object), seven_keys));
  CHECK(object["success"] == codeexec::Json(false));
  CHECK(object["exit_code"] == codeexec::Json(-1));
  CHECK(object["stdout"] == codeexec::Json(""));
  CHECK(object["stderr"].as_string() == stderr_text);
}

// False after saying that it is missing.
inline bool has_program(const std::string& name) {
  if (run_command("command -v " + name)["success"].as_bool()) return true;
  MESSAGE("SKIPPED: there is no program called " << name);
  return false;
}

// Where --shell auto looks for bash; false after saying that there is none.
inline bool has_bash() {
  for (const char* const bash : {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
                                 "/opt/homebrew/bin/bash", "/run/current-system/sw/bin/bash"})
    if (exists(bash)) return true;
  MESSAGE("SKIPPED: no bash here");
  return false;
}

// Python for the parity tests; false after saying that it is missing.
inline bool has_python() {
  if (run_command("python --version")["success"].as_bool()) return true;
  MESSAGE("SKIPPED: there is no program called python");
  return false;
}

inline Server::Options with_temporary(const TempDir& temporary, const Strings& arguments = {}) {
  Server::Options options;
  options.arguments = arguments;
  options.environment = {"TMPDIR=" + temporary.path()};
  return options;
}

// Starts a command in the background; its shell_id.
inline std::string start_shell(Server& server, const std::string& command) {
  const codeexec::Json shell =
      server.use("start_background_shell", codeexec::Json::object({{"command", command}}));
  return shell["shell_id"].as_string();
}

inline codeexec::Json shell_arguments(const std::string& id) {
  return codeexec::Json::object({{"shell_id", id}});
}

// For write_background_shell.
inline codeexec::Json typing(const std::string& id, const std::string& input,
                             const Strings& keys = {}) {
  codeexec::Json arguments = shell_arguments(id);
  if (!input.empty()) arguments.set("input", input);
  if (!keys.empty()) arguments.set("keys", words_json(keys));
  return arguments;
}

inline codeexec::Json wait_for_shell(Server& server, const std::string& id,
                                     const std::string& pattern, const std::string& since = "") {
  codeexec::Json arguments = shell_arguments(id);
  arguments.set("wait_for", pattern);
  arguments.set("since", since);
  arguments.set("timeout", patience_ms / 1000);
  // One call waits no longer than a client may.
  const Stopwatch watch;
  codeexec::Json output;
  do output = server.use("get_background_shell_output", arguments);
  while (output["wait"] == codeexec::Json("timed_out") && watch.soon());
  return output;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_TOOLS_HELPERS_HPP
