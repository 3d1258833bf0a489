// Json beside nlohmann::json on the messages of an MCP server: small ones, and the result of a tool
// with 1 MiB of output inside. Both run in turns in this one program; a row shows the median of
// many rounds. Exits 1 when ours is slower anywhere.
//
//   c++ -std=c++17 -O2 -I. tests/bench/json.cpp -o bench-json -pthread && ./bench-json

#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace {

using Theirs = nlohmann::ordered_json;
using TheirsSorted = nlohmann::json;
using codeexec::Json;

const char initialize_text[] =
    R"({"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{},)"
    R"("sampling":{},"elicitation":{}},"clientInfo":{"name":"claude-code","version":"1.0.98"}},)"
    R"("jsonrpc":"2.0","id":0})";

const char call_text[] =
    R"({"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"execute_command",)"
    R"("arguments":{"command":"cd src && grep -rn \"TODO\" . | head -20","timeout":30.5,)"
    R"("work_dir":"/home/agent/project","merge":false,"env":["A=1","B=2"]},)"
    R"("_meta":{"progressToken":"p17"}}})";

// What a build prints: lines, some quotes and tabs, now and then a character beyond ASCII.
std::string output_text(std::size_t size) {
  const char* const lines[] = {
      "[ 42%] Building CXX object src/CMakeFiles/core.dir/module.cpp.o\n",
      "src/module.cpp:118:24: warning: unused variable \"count\" [-Wunused-variable]\n",
      "\tat com.example.Main.run(Main.java:42)\n",
      "tests/test_api.py::test_create PASSED                                    [ 12%]\n",
      "src/a.c:10:5: note: in expansion of macro \xe2\x80\x98MAX\xe2\x80\x99\n",
      "caf\xc3\xa9 cr\xc3\xa8me \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\n",
  };
  std::string text;
  for (unsigned i = 0; text.size() < size; ++i) text += lines[(i * 7 + i / 5) % 6];
  return text;
}

std::string result_text() {
  Json content = Json::object();
  content.set("type", "text").set("text", output_text(std::size_t(1) << 20));
  Json result = Json::object();
  result.set("content", Json::array({content})).set("isError", false);
  Json reply = Json::object();
  reply.set("jsonrpc", "2.0").set("id", 17).set("result", result);
  return reply.dump();
}

volatile std::size_t sink = 0;

// Nanoseconds per call, over `times` calls.
template <class Work>
double cost(int times, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) sink = sink + work();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / times;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Runs both in turns; prints a row; true when ours is not slower.
template <class Ours, class Other>
bool row(const char* what, const char* rival, int rounds, int times, const Ours& ours,
         const Other& theirs) {
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < rounds; ++i) {
    a.push_back(cost(times, ours));
    b.push_back(cost(times, theirs));
  }
  const double ratio = median(a) / median(b);
  std::printf("%-28s %-22s %12.0f %12.0f %8.2f\n", what, rival, median(a), median(b), ratio);
  if (ratio <= 1) return true;
  std::printf("SLOWER: %s takes %.2f times as long as %s\n", what, ratio, rival);
  return false;
}

template <class Rival>
bool message(const char* name, const char* rival, const std::string& text, int rounds, int times) {
  const Json ours = *Json::parse(text);
  const Rival theirs = Rival::parse(text);
  if (ours.dump() != Json::parse(theirs.dump())->dump() && rival[0] == 'o') {
    std::printf("DIFFERENT: %s\n", name);
    return false;
  }
  const std::string parse_name = std::string("parse ") + name;
  const std::string dump_name = std::string("dump  ") + name;
  const bool parse_good = row(
      parse_name.c_str(), rival, rounds, times, [&] { return Json::parse(text)->size(); },
      [&] { return Rival::parse(text).size(); });
  const bool dump_good = row(
      dump_name.c_str(), rival, rounds, times, [&] { return ours.dump().size(); },
      [&] { return theirs.dump().size(); });
  return parse_good && dump_good;
}

template <class Rival>
bool all(const char* rival) {
  const bool initialize = message<Rival>("initialize", rival, initialize_text, 101, 300);
  const bool call = message<Rival>("tools/call", rival, call_text, 101, 300);
  const bool result = message<Rival>("result, 1 MiB output", rival, result_text(), 31, 1);
  return initialize && call && result;
}

}  // namespace

int main() {
  std::printf("%-28s %-22s %12s %12s %8s\n", "nanoseconds, medians", "rival", "codeexec", "rival",
              "ratio");
  const bool ordered = all<Theirs>("ordered_json");
  const bool sorted = all<TheirsSorted>("nlohmann::json");
  if (ordered && sorted) return 0;
  std::printf("FAILED: slower than nlohmann in at least one row\n");
  return 1;
}
