// mcp::Server with an echo tool beside a canned replier, which reads a line and writes a line and
// knows nothing of JSON: the floor of any server. Both are this program in another mode, started
// and spoken to the same way through pipes, in turns. Then beside echo servers on the official
// TypeScript SDK and on FastMCP, and the server with all of its tools beside MassGen's. run.sh
// installs those and names them: BENCH_TS_SERVER, BENCH_FASTMCP_SERVER and BENCH_MASSGEN_SERVER are
// the words of a command each, or BENCH_..._LACKS says why there is none. What the servers log goes
// into the file BENCH_LOG.
//
//   sh tests/bench/run.sh mcp
//
// --quick: fewer rounds. Ends with status 1 and a line "GATE FAILED: ..." when a promise is not
// kept.
#include "codeexec.hpp"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report.hpp"

namespace {

using codeexec::mcp::Call;
using codeexec::mcp::Parameter;
using codeexec::mcp::Server;
using codeexec::mcp::ServerOptions;
using codeexec::mcp::Tool;
using codeexec::mcp::ToolResult;

// the servers -------------------------------------------------------------------------------------

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(fd, bytes.data(), bytes.size());
    if (size <= 0) std::_Exit(3);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

// Answers every line that has an "id" with the reply of the echo tool.
int canned() {
  std::vector<char> buffer(1 << 16);
  std::string pending;
  std::string reply;
  for (;;) {
    const ssize_t size = ::read(0, buffer.data(), buffer.size());
    if (size <= 0) return 0;
    pending.append(buffer.data(), static_cast<std::size_t>(size));
    std::size_t start = 0;
    for (std::size_t end; (end = pending.find('\n', start)) != std::string::npos; start = end + 1) {
      const std::size_t id = pending.find("\"id\":", start);
      if (id == std::string::npos || id > end) continue;
      reply = "{\"jsonrpc\":\"2.0\",\"id\":";
      reply.append(pending, id + 5, pending.find_first_of(",}", id) - id - 5);
      reply += ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}\n";
      write_all(1, reply);
    }
    pending.erase(0, start);
  }
}

int server() {
  Server served((ServerOptions()));
  Tool echo;
  echo.name = "echo";
  Parameter text;
  text.name = "text";
  text.required = true;
  echo.parameters.push_back(text);
  echo.handler = [](const Call& call) {
    return ToolResult::text(call.argument("text").as_string());
  };
  return served.add(std::move(echo)) && served.serve() ? 0 : 1;
}

// the client --------------------------------------------------------------------------------------

using Words = std::vector<std::string>;

const char hello[] =
    "{\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}},\"jsonrpc\":\"2.0\",\"id\":0}\n";

class Peer {
 public:
  explicit Peer(const Words& argv) {
    int to[2];
    int from[2];
    make_pipe(to);
    make_pipe(from);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    // What the rivals log.
    if (const char* const log = std::getenv("BENCH_LOG"))
      posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    std::vector<char*> arguments;
    for (const std::string& argument : argv)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    if (::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
      fail("cannot start", argv[0]);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    in_ = to[1];
    out_ = from[0];
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    ::close(in_);
    ::close(out_);
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  void send(std::string_view text) { write_all(in_, text); }

  // Waits for at least one more line; the number of lines that came.
  int receive() {
    for (;;) {
      const ssize_t size = read_some();
      const int lines = static_cast<int>(std::count(buffer_, buffer_ + size, '\n'));
      if (lines > 0) return lines;
    }
  }

  // Waits for the first reply. MassGen's server prints other lines before it.
  void greet() {
    send(hello);
    std::string text = "\n";
    for (std::size_t reply = text.npos; reply == text.npos || text.back() != '\n';) {
      text.append(buffer_, static_cast<std::size_t>(read_some()));
      reply = text.find("\n{");
    }
    send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
  }

  std::uint64_t received() const { return received_; }

  // The bytes of one answer.
  std::size_t answer(const std::string& line) {
    send(line);
    std::size_t size = 0;
    do size += static_cast<std::size_t>(read_some());
    while (buffer_[last_ - 1] != '\n');
    return size;
  }

  // One line that contains the words, or it ends here.
  void expect(const char* words) {
    const std::string text(buffer_, static_cast<std::size_t>(read_some()));
    if (text.find(words) == std::string::npos) fail("a server answered", text);
  }

  // KiB that are resident now.
  double resident() const {
    const std::string path = "/proc/" + std::to_string(pid_) + "/status";
    std::FILE* file = std::fopen(path.c_str(), "r");
    char line[256];
    double result = 0;
    while (file && std::fgets(line, sizeof line, file))
      if (std::strncmp(line, "VmRSS:", 6) == 0) result = std::atof(line + 6);
    if (file) std::fclose(file);
    return result;
  }

 private:
  ssize_t read_some() {
    pollfd wait = {out_, POLLIN, 0};
    if (::poll(&wait, 1, 120000) == 0) fail("a server", "no answer in two minutes");
    const ssize_t size = ::read(out_, buffer_, sizeof buffer_);
    if (size <= 0) fail("a server", "it ended");
    last_ = size;
    received_ += static_cast<std::uint64_t>(size);
    return size;
  }

  pid_t pid_ = 0;
  int in_ = -1;
  int out_ = -1;
  ssize_t last_ = 0;  // bytes that came last
  std::uint64_t received_ = 0;
  char buffer_[65536];
};

std::string call_line(int id) {
  return "{\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":"
         "\"hello\"}},\"jsonrpc\":\"2.0\",\"id\":" +
         std::to_string(id) + "}\n";
}

// The words are those of JSON.
std::string line_for(const std::string& command, int id) {
  return "{\"method\":\"tools/call\",\"params\":{\"name\":\"execute_command\",\"arguments\":"
         "{\"command\":\"" +
         command + "\"}},\"jsonrpc\":\"2.0\",\"id\":" + std::to_string(id) + "}\n";
}

std::string command_line(int id) { return line_for("true", id); }

// measuring ---------------------------------------------------------------------------------------

double first_reply(const Words& argv) {
  std::optional<Peer> peer;
  const double time = microseconds([&] {
    peer.emplace(argv);
    peer->greet();
  });
  return time / 1000;
}

using Line = std::string (*)(int id);

void round_trips(Peer& peer, Line call, int count, Samples& samples) {
  for (int i = 1; i <= count; ++i) {
    const std::string line = call(i);
    samples.add(microseconds([&] {
      peer.send(line);
      peer.receive();
    }));
  }
}

// Calls per second with 16 in flight.
double flood(Peer& peer, int count) {
  int sent = 0;
  int received = 0;
  std::string lines;
  const double time = microseconds([&] {
    while (received < count) {
      lines.clear();
      while (sent < count && sent - received < 16) lines += call_line(++sent);
      if (!lines.empty()) peer.send(lines);
      received += peer.receive();
    }
  });
  return count / time * 1e6;
}

// Keeps this thread, and the processes that it starts, on the processor where it is.
class OneProcessor {
 public:
  explicit OneProcessor(bool wanted) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    const int cpu = ::sched_getcpu();
    if (!wanted || cpu < 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(cpu), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_ = {};
};

// Another server, and how much of everything it is asked for.
struct Rival {
  std::string name;
  Words argv;
  int starts;
  int rounds;
  int trips;  // in each round
  int flood;  // calls in each round
};

struct Gates {
  Gate start = {};
  Gate trip = {};
  Gate flood = {};
  Gate memory = {};
};

const char start_name[] = "server: start to first reply";
const char trip_name[] = "server: round trip of a trivial tool, on one processor";
const char flood_name[] = "server: calls per second, 16 in flight";
const char memory_name[] = "server: resident memory after calls";

void compare_starts(const std::string& what, const Words& ours, const Rival& rival,
                    const Gate& gate) {
  Samples a;
  Samples b;
  for (int i = 0; i < rival.starts; ++i) {
    a.add(first_reply(ours));
    b.add(first_reply(rival.argv));
  }
  report(what, "ms", a, rival.name, b, gate);
}

// On one processor, where the work counts and not the luck of the placement, or as it comes. (A
// client and a server that the system has put on two idle processors wake each other by interrupts,
// which takes 40 us in a virtual machine, whoever they are.)
void compare_round_trips(const Words& ours, const Rival& rival, bool pinned, const Gate& gate) {
  const OneProcessor here(pinned);
  Peer server(ours);
  Peer other(rival.argv);
  Samples a;
  Samples b;
  Samples warm_up;
  for (Peer* peer : {&server, &other}) {
    peer->greet();
    round_trips(*peer, call_line, std::min(500, 2 * rival.trips), warm_up);
  }
  for (int i = 0; i < rival.rounds; ++i) {
    round_trips(server, call_line, rival.trips, a);
    round_trips(other, call_line, rival.trips, b);
  }
  const char* const what =
      pinned ? trip_name : "server: round trip of a trivial tool, placed freely";
  report(what, "us", a, rival.name, b, gate);
  if (pinned && rival.trips >= 100)
    report("server: the slowest in a hundred of these round trips", "us", figure(a.at(0.99)),
           rival.name, figure(b.at(0.99)));
}

void compare_floods(const Words& ours, const Rival& rival, const Gates& gates) {
  Peer server(ours);
  Peer other(rival.argv);
  for (Peer* peer : {&server, &other}) {
    peer->greet();
    flood(*peer, rival.flood);
  }
  Samples a;
  Samples b;
  for (int i = 0; i < std::max(3, rival.rounds / 5); ++i) {
    a.add(flood(server, rival.flood));
    b.add(flood(other, rival.flood));
  }
  report(flood_name, "calls/s", a, rival.name, b, gates.flood);
  Gate memory = gates.memory;
  if (memory.relation[0] != '\0') memory.value = server.resident();
  report(memory_name, "KiB", figure(server.resident()), rival.name, figure(other.resident()),
         memory);
}

void compare(const Words& ours, const Rival& rival, const Gates& gates = {}) {
  compare_starts(start_name, ours, rival, gates.start);
  compare_round_trips(ours, rival, true, gates.trip);
  compare_floods(ours, rival, gates);
}

// The words of the variable; none when it is not set.
Words words_of(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  Words words;
  std::string text = value ? value : "";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.erase(0, std::min(end + 1, text.size()));
  }
  return words;
}

std::string lacks(const std::string& variable) {
  const char* const why = std::getenv((variable + "_LACKS").c_str());
  return why && *why ? why : variable + "_SERVER is not set";
}

void compare_echo(const Words& ours, const std::string& variable, Rival rival,
                  const Gates& gates = {}) {
  rival.argv = words_of(variable + "_SERVER");
  if (!rival.argv.empty()) return compare(ours, rival, gates);
  for (const char* const what : {start_name, trip_name, flood_name, memory_name})
    skipped(what, rival.name, lacks(variable));
}

// What a client pays for, as it puts it into its model's context: bytes of the whole answer.
struct Answered {
  const char* name;
  std::string command;
  double most;  // bytes of ours
};

std::vector<Answered> answered_commands() {
  std::string document = "cat > /dev/null <<'END'\\n";
  while (document.size() < 10000) document += "one of the lines of a text in a here-document\\n";
  return {{"bytes of the answer to `true`", "true", 420},
          {"bytes of the answer to `seq 1 300000`", "seq 1 300000", 84000},
          {"bytes of the answer to a here-document of 10 kB", document + "END", 1200}};
}

void compare_answers(const Words& ours, const Words& theirs, const std::string& rival) {
  Peer server(ours);
  server.greet();
  std::optional<Peer> other;
  if (!theirs.empty()) {
    other.emplace(theirs);
    other->greet();
  }
  for (const Answered& asked : answered_commands()) {
    const std::string line = line_for(asked.command, 1);
    const auto size = static_cast<double>(server.answer(line));
    const Gate gate = {"<=", asked.most, size};
    if (other)
      report(asked.name, "bytes", figure(size), rival,
             figure(static_cast<double>(other->answer(line))), gate);
    else
      report(asked.name, "bytes", figure(size), gate);
  }
  if (!other) skipped("bytes of an answer", rival, lacks("BENCH_MASSGEN"));
}

// Bursts of results of many MB, and what the server has of them a moment after.
void measure_bursts(const char* self, int bursts) {
  constexpr int at_once = 16;
  Peer server(
      {self, "--mcp", "--workspace", "/tmp", "--sandbox", "off", "--max-output-size", "4m"});
  server.greet();
  for (int burst = 0; burst < bursts; ++burst) {
    std::string lines;
    for (int id = 1; id <= at_once; ++id)
      lines += line_for("head -c 3000000 /dev/zero | tr '\\\\0' x", id);
    server.send(lines);
    for (int left = at_once; left > 0;) left -= server.receive();
  }
  const std::uint64_t least = std::uint64_t{3000000} * at_once * static_cast<unsigned>(bursts);
  if (server.received() < least) fail("the server", "its results have less than 3 MB");
  report("server with all tools: resident memory after " + std::to_string(bursts) +
             " bursts of 16 results of 3 MB",
         "KiB", figure(server.resident()), {"<=", 25600});
}

// Both run a command in a directory that they are told to stay in.
void compare_commands(const char* self, Rival rival) {
  const std::string start = "server with all tools: start to first reply";
  const std::string in_sandbox = "execute_command true, by the server, in its sandbox";
  const std::string without = "execute_command true, by the server, without a sandbox";
  const std::string memory = "server with all tools: resident memory after calls";
  const Words ours = {self, "--mcp", "--workspace", "/tmp", "--allowed-paths", "/tmp"};
  Words bare = ours;
  bare.insert(bare.end(), {"--sandbox", "off"});
  rival.argv = words_of("BENCH_MASSGEN_SERVER");
  compare_answers(ours, rival.argv, rival.name);
  if (rival.argv.empty()) {
    for (const std::string& what : {start, in_sandbox, without, memory})
      skipped(what, rival.name, lacks("BENCH_MASSGEN"));
    return;
  }
  compare_starts(start, ours, rival, {});
  Peer server(ours);
  Peer free_server(bare);
  Peer other(rival.argv);
  for (Peer* peer : {&server, &free_server, &other}) {
    peer->greet();
    peer->send(command_line(1));
    peer->expect("success");
  }
  Samples a;
  Samples b;
  Samples c;
  for (int i = 0; i < rival.rounds; ++i) {
    round_trips(server, command_line, rival.trips, a);
    round_trips(free_server, command_line, rival.trips, b);
    round_trips(other, command_line, rival.trips, c);
  }
  report(in_sandbox, "us", a, rival.name, c);
  report(without, "us", b, rival.name, c);
  report(memory, "KiB", figure(server.resident()), rival.name, figure(other.resident()));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--canned") return canned();
  if (mode == "--server") return server();
  if (mode == "--mcp") return codeexec::server_main(argc - 1, argv + 1);
  const bool quick = has_argument(argc, argv, "--quick");
  const Words ours = {argv[0], "--server"};
  const Rival floor = {
      "a canned replier", {argv[0], "--canned"}, quick ? 15 : 60, quick ? 15 : 60, 200, 5000};
  compare(ours, floor, {{"<=", 2}, {"<=", 2}, {}, {"<=", 5120}});
  compare_round_trips(ours, floor, false, {});
  compare_echo(ours, "BENCH_TS",
               {"TypeScript SDK echo server", {}, quick ? 3 : 9, quick ? 15 : 60, 100, 5000},
               {{}, {}, {">=", 3}, {}});
  compare_echo(ours, "BENCH_FASTMCP",
               {"FastMCP echo server", {}, quick ? 2 : 5, quick ? 5 : 15, 40, quick ? 200 : 500});
  compare_commands(argv[0],
                   {"MassGen's server", {}, quick ? 2 : 5, quick ? 3 : 15, quick ? 5 : 20, 0});
  measure_bursts(argv[0], quick ? 10 : 60);
  return finish();
}
