// What is left, and what is told, when the connection, the agent or the server goes at any moment,
// which is a byte of what they say to each other.

#include "../../helpers/place_support.hpp"

#include <atomic>

using codeexec::Command;
using codeexec::Outcome;
using codeexec::PlaceExecutor;
using codeexec::Result;
using namespace support;

namespace {

// Transports whose first arguments are the agent, a fifo, a file for its number, and how many bytes
// pass. dd hands on each byte by itself. What begins "exec dd" is gone after the last one.
constexpr const char* begins_with_fifo = "rm -f \"$1\"; mkfifo \"$1\"; exec 4<&0; ";
constexpr const char* cut_to_agent =
    "\"$0\" --place <\"$1\" 4<&- & echo $! >\"$2\"; exec dd bs=1 count=\"$3\" <&4 >\"$1\" 4<&-";
constexpr const char* cut_from_agent =
    "\"$0\" --place <&4 >\"$1\" 4<&- & echo $! >\"$2\"; exec dd bs=1 count=\"$3\" <\"$1\" 4<&-";
constexpr const char* agent_killed_by_order =
    "\"$0\" --place <\"$1\" 4<&- & echo $! >\"$2\"; exec 5>\"$1\"; "
    "dd bs=1 count=\"$3\" <&4 >&5; kill -9 $!";
constexpr const char* agent_killed_by_answer =
    "\"$0\" --place <&4 >\"$1\" 4<&- & echo $! >\"$2\"; "
    "{ dd bs=1 count=\"$3\"; kill -9 $!; } <\"$1\"";
constexpr const char* server_killed_by_order =
    "\"$0\" --place <\"$1\" 4<&- & echo $! >\"$2\"; exec 5>\"$1\"; dd bs=1 count=\"$3\" <&4 >&5; ";
constexpr const char* server_killed_by_answer =
    "\"$0\" --place <&4 >\"$1\" 4<&- & echo $! >\"$2\"; dd bs=1 count=\"$3\" <\"$1\"; ";
// Unless it has gone before.
constexpr const char* kill_server =
    "read -r _ _ _ parent _ </proc/$$/stat; [ $parent != $PPID ] || kill -9 $PPID";

// One moment.
struct Moment {
  TempDir workspace = {};
  codeexec::PlaceOptions options = place_options(workspace.path());
  // Of no other process here.
  const std::string mark = [] {
    static std::atomic<int> count{0};
    return std::to_string(600 + ++count) + "." + std::to_string(::getpid());
  }();
  // A command with a child that has left it, which ends by itself when it has read its input.
  const std::string script = "echo >> runs; setsid sleep " + mark +
                             " & for i in 1 2 3 4 5 6 7 8 9; do echo begin; done; "
                             "read line; echo got $line; echo > ended; exit 3";
  const std::string input = repeat("x", 500) + "\n";
  const std::string output = repeat("begin\n", 9) + "got " + input;

  Moment(const std::string& way, int bytes) {
    options.transport = {"sh",
                         "-c",
                         begins_with_fifo + way,
                         CODEEXEC_MCP,
                         workspace / "fifo",
                         workspace / "agent",
                         std::to_string(bytes)};
  }

  // None of the command's processes, and no agent.
  bool nothing_left() const {
    if (exists(workspace / "agent") && !read_file(workspace / "agent").empty() &&
        !dies(pid_in(read_file(workspace / "agent"))))
      return false;
    const Stopwatch watch;
    while (runs_now()) {
      if (!watch.soon()) return false;
      ::poll(nullptr, 0, 2);
    }
    return true;
  }

 private:
  bool runs_now() const {
    for (const std::string& name : names_in("/proc")) {
      const std::string path = "/proc/" + name + "/cmdline";
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::FILE* const file = std::fopen(path.c_str(), "re");
      if (!file) continue;
      char text[512];
      const std::size_t size = std::fread(text, 1, sizeof text, file);
      std::fclose(file);
      if (std::string(text, size).find(mark) != std::string::npos) return true;
    }
    return false;
  }
};

// All kinds of ends that there were.
struct Seen {
  int unreached = 0;
  int lost = 0;
  int ended = 0;
};

void check_moment(const std::string& way, int bytes, Seen& seen) {
  const Moment moment(way, bytes);
  CAPTURE(bytes);
  {
    const auto there = PlaceExecutor::create(moment.options);
    if (!there) {
      ++seen.unreached;
      CHECK(begins(there.error().message, "cannot reach box: "));
      CHECK(!exists(moment.workspace / "runs"));
    } else {
      Command command = Command::shell(moment.script);
      command.input = moment.input;
      const Result r = there->run(command);
      CAPTURE(r.message);
      if (r.outcome == Outcome::exited) {
        ++seen.ended;
        CHECK(r.exit_code == 3);
        CHECK(r.out == moment.output);
        CHECK(exists(moment.workspace / "ended"));
      } else {
        ++seen.lost;
        CHECK((r.outcome == Outcome::unknown || r.outcome == Outcome::not_started));
        CHECK(r.exit_code == -1);
        CHECK(!r.message.empty());
        CHECK(begins(moment.output, r.out));
        if (r.outcome == Outcome::not_started) CHECK(!exists(moment.workspace / "runs"));
      }
    }
  }
  CHECK(moment.nothing_left());
  // It was never begun again. One that was killed at once may not have come to write its line.
  if (exists(moment.workspace / "runs")) CHECK(begins("\n", read_file(moment.workspace / "runs")));
}

// Up to where nothing more is said.
constexpr int last_moment = 2000;

}  // namespace

TEST_CASE("moments: whenever connection or agent go, nothing is left and no result lies") {
  if (!has_supervisor()) return;
  for (const char* way :
       {cut_to_agent, cut_from_agent, agent_killed_by_order, agent_killed_by_answer}) {
    CAPTURE(std::string(way));
    Seen seen;
    for (int bytes = 1; bytes < last_moment; bytes += 67) check_moment(way, bytes, seen);
    CHECK(seen.unreached > 0);
    CHECK(seen.lost > 0);
    CHECK(seen.ended > 0);
  }
}

TEST_CASE("moments: whenever the server is killed, nothing is left") {
  for (const char* way : {server_killed_by_order, server_killed_by_answer}) {
    CAPTURE(std::string(way));
    int begun = 0;
    for (int bytes = 1; bytes < last_moment; bytes += 67) {
      CAPTURE(bytes);
      const Moment moment(std::string(way) + kill_server, bytes);
      std::string transport;
      for (const std::string& word : moment.options.transport) transport += "'" + word + "' ";
      codeexec::ProcessOptions options;
      options.argv = {
          CODEEXEC_MCP,  "--execution-mode",      "command", "--place-command", transport,
          "--workspace", moment.workspace.path(), "--run",   moment.script};
      options.environment = {"PATH=/usr/bin:/bin"};
      const codeexec::ProcessResult r = codeexec::run_process(options);
      if (r.outcome == Outcome::signaled && exists(moment.workspace / "runs")) ++begun;
      if (r.outcome == Outcome::exited) CHECK(has(r.out, "\"exit_code\":3"));
      CHECK(moment.nothing_left());
    }
    if (way == server_killed_by_answer) CHECK(begun > 0);
  }
}
