// Helpers for the tests of the server program, run as a client would run it.
#ifndef CODEEXEC_TESTS_SERVER_SUPPORT_HPP
#define CODEEXEC_TESTS_SERVER_SUPPORT_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "fake_engine.hpp"
#include "json_support.hpp"
#include "line_support.hpp"
#include "support.hpp"

namespace support {

// Far above what anything here takes; only a hang comes near.
constexpr int patience_ms = 400000;

using Strings = std::vector<std::string>;

inline std::string names_of(const codeexec::Json& object) {
  std::string names;
  for (const codeexec::Json::Member& member : object.members())
    names += (names.empty() ? "" : " ") + member.name;
  return names;
}

// Runs a program to its end, with $PATH and these variables.
inline codeexec::ProcessResult run_argv(Strings argv, const std::string& work_dir,
                                        const Strings& environment, const std::string& input = {}) {
  codeexec::ProcessOptions options;
  options.argv = std::move(argv);
  const char* const path = std::getenv("PATH");
  options.environment = {std::string("PATH=") + (path ? path : "/usr/bin:/bin")};
  options.environment.insert(options.environment.end(), environment.begin(), environment.end());
  options.work_dir = work_dir;
  options.input = input;
  options.max_output = std::size_t{64} << 20;
  options.timeout = std::chrono::milliseconds(patience_ms);
  codeexec::ProcessResult result = codeexec::run_process(options);
  REQUIRE_MESSAGE(result.outcome == codeexec::Outcome::exited, result.message);
  return result;
}

// Most tests are about something else than where commands may work, and start the server in `/`:
// their commands are not confined, unless the arguments say where they work.
inline Strings unconfined(const Strings& arguments) {
  // A first word that is no option stays the first.
  if (!arguments.empty() && !begins(arguments[0], "--")) return arguments;
  Strings all = {"--sandbox=off"};
  std::string before;
  for (const std::string& argument : arguments) {
    for (const char* const says :
         {"--sandbox", "--allowed-paths", "--profile", "--config", "--client-config"})
      if (argument == says || begins(argument, std::string(says) + "=")) return arguments;
    if (argument == "--execution-mode=docker" ||
        (before == "--execution-mode" && argument == "docker"))
      return arguments;
    all.push_back(before = argument);
  }
  return all;
}

// Runs the server's program to its end, with these arguments and no others.
inline codeexec::ProcessResult run_bare(const Strings& arguments, const std::string& work_dir = "/",
                                        const Strings& more_environment = {},
                                        const std::string& input = {}) {
  Strings argv = {CODEEXEC_MCP};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Strings environment = more_environment;
  environment.emplace_back("HOME=/nonexistent");  // unless there is one: the first counts
  return run_argv(std::move(argv), work_dir, environment, input);
}

// The same, of commands that are not confined.
inline codeexec::ProcessResult run_program(const Strings& arguments,
                                           const std::string& work_dir = "/",
                                           const Strings& more_environment = {},
                                           const std::string& input = {}) {
  return run_bare(unconfined(arguments), work_dir, more_environment, input);
}

// What --run prints for the command.
inline codeexec::Json run_command(const std::string& command, Strings arguments = {},
                                  const std::string& work_dir = "/",
                                  const Strings& more_environment = {}) {
  arguments.insert(arguments.end(), {"--run", command});
  const codeexec::ProcessResult r = run_program(arguments, work_dir, more_environment);
  CHECK(r.err == "");
  REQUIRE(ends(r.out, "}\n"));
  CHECK(lines_of(r.out).size() == 1);
  return parsed(r.out);
}

// Checks that the program refused to start with one line that names what is wrong.
inline void check_refused(const codeexec::ProcessResult& r, const std::string& named) {
  CAPTURE(r.err);
  CHECK(r.exit_code == 2);
  CHECK(r.out == "");
  CHECK(begins(r.err, "codeexec-mcp: "));
  CHECK(ends(r.err, "\n"));
  CHECK(lines_of(r.err).size() == 1);
  CHECK(codeexec::is_utf8(r.err));
  CAPTURE(named);
  CHECK(has(r.err, named));
}

// A server on two pipes, and its client.
class Server {
 public:
  struct Options {
    Strings arguments = {};
    Strings wrapper = {};  // goes before the program
    std::string program = CODEEXEC_MCP;
    std::string work_dir = "/";
    Strings environment = {};
    bool initialize = true;
    bool confined = false;         // as the arguments say, see unconfined()
    std::vector<int> closed = {};  // descriptors that the server does not have
  };

  explicit Server(Strings arguments = {}) {
    Options options;
    options.arguments = std::move(arguments);
    start(options);
  }
  explicit Server(const Options& options) { start(options); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    close_input();
    close_output();
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(log_);
  }

  pid_t pid() const { return pid_; }

  void send(const std::string& line) {
    send_all(to_, line);
    if (line.empty() || line.back() != '\n') send("\n");
  }

  // The next line without its newline; empty when the stream has ended.
  std::string receive_line() { return lines_.next(from_); }

  // The next message; null when the stream has ended. Everything on the stream must be one.
  codeexec::Json receive() {
    const std::string line = receive_line();
    last_line_size = line.size();
    if (line.empty()) return codeexec::Json();
    codeexec::Json message = parsed(line);
    CHECK(message["jsonrpc"] == codeexec::Json("2.0"));
    return message;
  }

  static std::string call_line(const codeexec::Json& id, const codeexec::Json& arguments,
                               const codeexec::Json& meta = {},
                               const std::string& tool = "execute_command") {
    codeexec::Json params = codeexec::Json::object({{"name", tool}, {"arguments", arguments}});
    if (!meta.is_null()) params.set("_meta", meta);
    return codeexec::Json::object({{"jsonrpc", "2.0"},
                                   {"id", id},
                                   {"method", "tools/call"},
                                   {"params", std::move(params)}})
        .dump();
  }

  codeexec::Json ask(const std::string& method, const std::string& params = "{}") {
    const std::string id = std::to_string(++last_id_);
    send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" + params +
         "}");
    codeexec::Json reply = receive();
    CHECK(reply["id"] == parsed(id));
    return reply;
  }

  // The result of a call of execute_command.
  codeexec::Json call(const codeexec::Json& arguments) {
    const codeexec::Json id(++last_id_);
    send(call_line(id, arguments));
    const codeexec::Json reply = receive();
    CHECK(reply["id"] == id);
    REQUIRE(reply["result"].is_object());
    return reply["result"];
  }

  // The object that another tool gives; of its errors the message alone.
  codeexec::Json use(const std::string& tool, const char* arguments = "{}") {
    return use(tool, parsed(arguments));
  }
  codeexec::Json use(const std::string& tool, const codeexec::Json& arguments) {
    return object_of(ask_tool(tool, arguments));
  }
  std::string error_of(const std::string& tool, const codeexec::Json& arguments) {
    const codeexec::Json result = ask_tool(tool, arguments);
    CHECK(result["isError"] == codeexec::Json(true));
    REQUIRE(result["content"].size() == 1);
    // What the schema of the arguments refuses has no object.
    if (!result.find("structuredContent")) return result["content"][0]["text"].as_string();
    CHECK(begins(names_of(result["structuredContent"]), "success error"));
    CHECK(result["structuredContent"]["success"] == codeexec::Json(false));
    return result["structuredContent"]["error"].as_string();
  }
  codeexec::Json ask_tool(const std::string& tool, const codeexec::Json& arguments) {
    const codeexec::Json id(++last_id_);
    send(call_line(id, arguments, {}, tool));
    const codeexec::Json reply = receive();
    CHECK(reply["id"] == id);
    REQUIRE(reply["result"].is_object());
    return reply["result"];
  }

  // The object of a call that is no error of the tool; a text that is JSON must be equal.
  codeexec::Json execute_with(const codeexec::Json& arguments) {
    return object_of(call(arguments));
  }
  codeexec::Json execute(const std::string& command) {
    return execute_with(codeexec::Json::object({{"command", command}}));
  }
  static codeexec::Json object_of(const codeexec::Json& result) {
    CHECK(!result["isError"].as_bool());
    REQUIRE(result["content"].size() == 1);
    CHECK(result["content"][0]["type"] == codeexec::Json("text"));
    const codeexec::Json& object = result["structuredContent"];
    REQUIRE(object.is_object());
    const std::string& text = result["content"][0]["text"].as_string();
    CHECK(!text.empty());
    if (begins(text, "{\"")) CHECK(text == object.dump());
    return object;
  }

  // Runs a command that nothing depends on, for the note that the first one has when commands are
  // not confined.
  void take_first_note() {
    CHECK(execute("true")["notes"].dump() ==
          R"(["commands are not confined: the server runs with --sandbox off"])");
  }

  void ping() { CHECK(ask("ping")["result"].is_object()); }

  void cancel(const codeexec::Json& id) {
    send(codeexec::Json::object({{"jsonrpc", "2.0"},
                                 {"method", "notifications/cancelled"},
                                 {"params", codeexec::Json::object({{"requestId", id}})}})
             .dump());
  }

  void close_input() { close_one(to_); }
  void close_output() { close_one(from_); }
  void signal(int number) { REQUIRE(::kill(pid_, number) == 0); }

  // Waits for the end of the server: its exit status, or minus the signal's number.
  int wait() {
    REQUIRE(pid_ > 0);
    REQUIRE_MESSAGE(dies(pid_), "the server does not end");
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Ends the input and gives everything the server still had to say.
  std::vector<codeexec::Json> finish() {
    close_input();
    std::vector<codeexec::Json> messages;
    for (codeexec::Json message = receive(); !message.is_null(); message = receive())
      messages.push_back(message);
    const int status = wait();
    CHECK_MESSAGE(status == 0, logged());
    return messages;
  }
  std::string logged() const { return read_file(directory_ / "log"); }

  codeexec::Json greeting = {};
  std::size_t last_line_size = 0;

 private:
  static void close_one(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }

  void start(const Options& options) {
    int to[2];
    int from[2];
    REQUIRE(::pipe2(to, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(from, O_CLOEXEC) == 0);
    log_ = ::open((directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(log_ >= 0);
    Strings words = options.wrapper;
    words.push_back(options.program);
    const Strings given = options.confined ? options.arguments : unconfined(options.arguments);
    words.insert(words.end(), given.begin(), given.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(&word[0]);
    argv.push_back(nullptr);
    const char* path = std::getenv("PATH");
    Strings variables = {std::string("PATH=") + (path ? path : "/usr/bin:/bin")};
    variables.insert(variables.end(), options.environment.begin(), options.environment.end());
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(&variable[0]);
    environment.push_back(nullptr);

    pid_ = ::fork();
    if (pid_ == 0) {
      if (::dup2(to[0], 0) != 0 || ::dup2(from[1], 1) != 1 || ::dup2(log_, 2) != 2) ::_exit(97);
      for (const int fd : options.closed) ::close(fd);
      if (::chdir(options.work_dir.c_str()) != 0) ::_exit(97);
      ::execvpe(argv[0], argv.data(), environment.data());
      ::_exit(97);
    }
    REQUIRE(pid_ > 0);
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
    if (!options.initialize) return;
    // A server that does not start must not end the program that tests it.
    const auto before = ::signal(SIGPIPE, SIG_IGN);
    greeting = ask("initialize", R"({"protocolVersion":"2025-06-18","capabilities":{},)"
                                 R"("clientInfo":{"name":"test","version":"1"}})");
    REQUIRE_MESSAGE(!greeting.is_null(), "the server did not start: ", logged());
    send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    ::signal(SIGPIPE, before);
  }

  TempDir directory_ = {};
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  int log_ = -1;
  int last_id_ = 1000;
  LineReader lines_{patience_ms};
};

}  // namespace support

#endif  // CODEEXEC_TESTS_SERVER_SUPPORT_HPP
