// Json beside nlohmann::json and simdjson on the messages of an MCP server: small ones, and the
// result of a tool with 1 MiB of output inside. All run in turns in this one program. Ends with
// status 1 when ours is slower than nlohmann's anywhere. simdjson only reads, and makes no tree
// that could be changed.
//
//   sh tests/bench/run.sh json
#include "codeexec.hpp"

#include <chrono>
#include <cstdio>
#include <string>

#include "report.hpp"

#if __has_include(<nlohmann/json.hpp>)
#define BENCH_HAS_NLOHMANN 1
#include <nlohmann/json.hpp>
#else
#define BENCH_HAS_NLOHMANN 0
#endif
#if __has_include(<simdjson.h>)
#define BENCH_HAS_SIMDJSON 1
#include <simdjson.h>
#else
#define BENCH_HAS_SIMDJSON 0
#endif

namespace {

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

struct Message {
  const char* name;
  std::string text;
  int rounds;
  int times;
};

// Takes turns: one round of each.
template <class Ours, class Other>
void compare(const std::string& what, const char* rival, const Message& message, Gate gate,
             const Ours& ours, const Other& theirs) {
  Samples a;
  Samples b;
  for (int i = 0; i < message.rounds; ++i) {
    a.add(cost(message.times, ours) / 1000);
    b.add(cost(message.times, theirs) / 1000);
  }
  report(what, "us", a, rival, b, gate);
}

std::string parse_name(const Message& message) { return std::string("parse ") + message.name; }
std::string dump_name(const Message& message) { return std::string("write ") + message.name; }
const char* const rivals[] = {"nlohmann::ordered_json", "nlohmann::json"};

#if BENCH_HAS_NLOHMANN
template <class Rival>
void compare_nlohmann(const Message& message, const char* name) {
  const std::string& text = message.text;
  const Json ours = *Json::parse(text);
  const Rival theirs = Rival::parse(text);
  // The other one sorts by name.
  if (std::strcmp(name, rivals[0]) == 0 && ours.dump() != Json::parse(theirs.dump())->dump())
    fail("different", message.name);
  compare(
      parse_name(message), name, message, {"<=", 1}, [&] { return Json::parse(text)->size(); },
      [&] { return Rival::parse(text).size(); });
  compare(
      dump_name(message), name, message, {"<=", 1}, [&] { return ours.dump().size(); },
      [&] { return theirs.dump().size(); });
}
#endif

void compare_all(const Message& message) {
#if BENCH_HAS_NLOHMANN
  compare_nlohmann<nlohmann::ordered_json>(message, rivals[0]);
  compare_nlohmann<nlohmann::json>(message, rivals[1]);
#else
  for (const char* const rival : rivals)
    for (const std::string& what : {parse_name(message), dump_name(message)})
      skipped(what, rival, "nlohmann/json.hpp is not installed (nlohmann-json3-dev)");
#endif
#if BENCH_HAS_SIMDJSON
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(message.text);
  compare(
      parse_name(message), "simdjson", message, {},
      [&] { return Json::parse(message.text)->size(); },
      [&] {
        simdjson::dom::element document;
        if (parser.parse(padded).get(document) != simdjson::SUCCESS) fail("simdjson", message.name);
        return document.is_object() ? std::size_t{1} : 0;
      });
#else
  skipped(parse_name(message), "simdjson", "simdjson.h is not installed (libsimdjson-dev)");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = has_argument(argc, argv, "--quick");
  const Message messages[] = {
      {"an initialize message", initialize_text, quick ? 31 : 101, 300},
      {"a tools/call message", call_text, quick ? 31 : 101, 300},
      {"a result with 1 MiB of output", result_text(), quick ? 11 : 31, 1},
  };
  for (const Message& message : messages) compare_all(message);
  return finish();
}
