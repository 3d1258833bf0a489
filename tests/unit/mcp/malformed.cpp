// Lines and messages that are none.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <thread>

#include "../../helpers/json_support.hpp"
#include "../../helpers/line_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::mcp::ServerOptions;
using support::code_of;
using support::has;
using support::modern;
using support::parsed;
using support::Talk;
using support::text_of;

TEST_CASE("blank lines, carriage returns and a byte order mark are no messages") {
  Talk talk;
  talk.send_bytes("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n");
  CHECK(talk.receive().find("result"));
  talk.send_bytes("\n\r\n  \t \r\n\n");
  talk.check_silent();
  talk.send_bytes(" { \"jsonrpc\" : \"2.0\" , \"id\" : 2 , \"method\" : \"ping\" } \t\r\n");
  CHECK(talk.receive()["id"] == Json(2));
  // Elsewhere it is not white space.
  CHECK(code_of(talk.ask("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")) ==
        -32700);
  CHECK(talk.finish().empty());
}

TEST_CASE("what is not JSON is a parse error, with the id if it can be seen") {
  struct Row {
    const char* line;
    const char* id;  // JSON, or null for none
  };
  const Row rows[] = {
      {"garbage", nullptr},
      {"{", nullptr},
      {"\"", nullptr},
      {R"({"jsonrpc":"2.0","id":7,"method":"ping")", "7"},
      {R"({"jsonrpc":"2.0","id":"a\"b","method":nonsense})", "\"a\\\"b\""},
      {R"({"id":1.0,"method":NaN})", "1.0"},
      {R"({"params":{"id":5,"a":["}","id"]},"id" : -3 ,"method":'ping'})", "-3"},
      {R"({"params":{"id":5}, "method":'ping'})", nullptr},
      {R"({"id":12)", nullptr},   // could be 123
      {R"({"id":"12)", nullptr},  // the same
      {R"({"id":1.5,"method":x})", nullptr},
      {R"({"id":null,"method":x})", nullptr},
      {R"({"id":[1],"method":x})", nullptr},
      {R"({"id":{"id":4},"method":x})", nullptr},
      {R"({"id":true,"method":x})", nullptr},
      {R"({"xid":4,"method":x})", nullptr},
      {R"({"method":"id","x":4,y})", nullptr},
      {R"([{"id":4,"method":x}])", nullptr},
      {R"(}{"id":4,)", nullptr},
      {R"({} {"id":4,"method":"ping"})", nullptr},
      {R"({"method":"ping","id":6}})", "6"},
      {R"({"jsonrpc":"2.0","id":8,"method":"ping"} x)", "8"},
      {R"({"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":1e400}})", "9"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    Talk talk;
    const Json reply = talk.ask(row.line);
    CHECK(code_of(reply) == -32700);
    if (row.id) {
      CHECK(reply["id"].dump() == row.id);
    } else {
      CHECK(!reply.find("id"));
    }
    talk.check_silent();
  }
}

TEST_CASE("bad lines are answered eight times in a row, then only logged") {
  Talk talk;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 30; ++i) talk.send(i % 2 ? "garbage" : "[]");
    for (int i = 0; i < 8; ++i) CHECK(code_of(talk.receive()) == (i % 2 ? -32700 : -32600));
    talk.check_silent();  // a good message: bad ones are answered again
  }
  CHECK(talk.logged().size() == 60);
  CHECK(talk.finish().empty());
}

TEST_CASE("bad lines whose id can be read are answered a thousand times in a row") {
  Talk talk;
  for (int i = 0; i < 20; ++i) talk.send("garbage");
  for (int i = 0; i < 8; ++i) CHECK(code_of(talk.receive()) == -32700);
  for (int i = 0; i < 1000; ++i) {
    talk.send(R"({"jsonrpc":"2.0","id":)" + std::to_string(i) + R"(,"method":"ping")");
    if (i < 992) CHECK(talk.receive()["id"] == Json(i));
  }
  talk.check_silent();
}

TEST_CASE("nesting deeper than 256 is a parse error, even 100,000 levels") {
  Talk talk;
  for (const std::size_t depth : {300u, 100000u}) {
    for (const char* bracket : {"[", "{\"a\":"}) {
      std::string nested;
      for (std::size_t i = 0; i < depth; ++i) nested += bracket;
      const Json reply =
          talk.ask(R"({"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":)" + nested);
      CHECK(code_of(reply) == -32700);
      CHECK(reply["id"] == Json(5));
    }
  }
  talk.check_silent();
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":6,"method":"ping","params":{"x":)" + deep + "}}")
            .find("result"));
}

TEST_CASE("a message of more than a million values is a parse error, whatever it costs in bytes") {
  Talk talk;
  std::string values = "1";
  for (int i = 0; i < 1000000; ++i) values += ",1";
  const Json reply =
      talk.ask(R"({"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":[)" + values + "]}}");
  CHECK(code_of(reply) == -32700);
  CHECK(reply["id"] == Json(5));
  CHECK(has(reply["error"]["message"].as_string(), "more than 1000000 values"));
  talk.check_silent();
}

TEST_CASE("a line over the limit is answered with its id wherever it stands, and skipped") {
  for (const std::size_t limit : {std::size_t(1000), std::size_t(16) << 20}) {
    ServerOptions options;
    options.max_line = limit;
    Talk talk({}, options);
    const std::string filler(limit + (std::size_t(1) << 20), 'x');
    talk.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":")" + filler +
                    "\"}}\n" + R"({"params":{"id":8,"a":")" + filler +
                    R"("},"method":"ping","jsonrpc":"2.0","id":"two"})" + "\n" + "x" + filler +
                    "\n" + R"({"jsonrpc":"2.0","id":3,"method":"ping"})" + "\n");
    Json reply = talk.receive();
    CHECK(code_of(reply) == -32700);
    CHECK(has(reply["error"]["message"].as_string(), std::to_string(limit)));
    CHECK(reply["id"] == Json(1));
    reply = talk.receive();
    CHECK(code_of(reply) == -32700);
    CHECK(reply["id"] == Json("two"));
    reply = talk.receive();
    CHECK(code_of(reply) == -32700);
    CHECK(!reply.find("id"));
    CHECK(talk.receive()["id"] == Json(3));
    talk.send_bytes(filler);  // never ends
    const std::vector<Json> last = talk.finish();
    REQUIRE(last.size() == 1);
    CHECK(code_of(last[0]) == -32700);
  }
}

TEST_CASE("a line of exactly the limit is served, one byte more is not") {
  ServerOptions options;
  options.max_line = 200;
  Talk talk({}, options);
  const auto ping = [](std::size_t size) {
    std::string line = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}})";
    return line.insert(line.size() - 3, size - line.size(), 'x');
  };
  CHECK(talk.ask(ping(200)).find("result"));
  CHECK(code_of(talk.ask(ping(201))) == -32700);
  CHECK(talk.ask(ping(200)).find("result"));
}

TEST_CASE("a line that never ends takes no more memory than the limit allows") {
  const auto resident = [] {  // bytes
    const std::string pages = support::read_file("/proc/self/statm");
    return std::atol(pages.c_str() + pages.find(' ')) * ::sysconf(_SC_PAGESIZE);
  };
  if (!support::exists("/proc/self/statm")) {
    MESSAGE("SKIPPED: no /proc");
    return;
  }
  ServerOptions options;
  options.max_line = std::size_t(1) << 20;
  Talk talk({}, options);
  const std::string part(std::size_t(1) << 20, 'x');
  talk.send_bytes(part);
  const long before = resident();
  for (int i = 0; i < 100; ++i) talk.send_bytes(part);
  CHECK(resident() - before < 50000000);
  CHECK(code_of(talk.ask("")) == -32700);
}

TEST_CASE("messages arrive whole however they are cut") {
  Talk talk;
  const std::string line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
  for (const char byte : line + line) talk.send_bytes(std::string(1, byte));
  CHECK(talk.receive()["id"] == Json(1));
  CHECK(talk.receive()["id"] == Json(1));
  // And a large one among small ones.
  talk.initialize();
  const std::string large(3000000, 'y');
  talk.send_bytes(line + Talk::call_line("2", "echo", R"({"text":")" + large + "\"}") + "\n" +
                  line);
  std::map<std::int64_t, Json> replies;
  for (int i = 0; i < 3; ++i) {
    const Json reply = talk.receive();
    replies[reply["id"].as_integer()] = reply;
  }
  CHECK(text_of(replies[2]) == large);
}

TEST_CASE("invalid UTF-8 is answered with the id and the place") {
  Talk talk;
  const Json reply = talk.ask("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"x\xff\"}");
  CHECK(code_of(reply) == -32700);
  CHECK(reply["id"] == Json(4));
  CHECK(has(reply["error"]["message"].as_string(), "invalid UTF-8 at byte 35"));
  // Overlong, surrogate, above the last code point, cut short.
  for (const char* bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    const Json answer = talk.ask(std::string("{\"params\":{\"a\":\"") + bad +
                                 "\"},\"id\":\"q\",\"method\":\"ping\",\"jsonrpc\":\"2.0\"}");
    CHECK(code_of(answer) == -32700);
    CHECK(answer["id"] == Json("q"));
  }
  // Outside of a string, and in the id itself.
  CHECK(talk.ask("{\"id\":5,\xff}")["id"] == Json(5));
  talk.check_silent();
  CHECK(code_of(talk.ask("\xff")) == -32700);
  // No request: nobody waits for an answer.
  talk.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\xff\"}");
  talk.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}");
  talk.check_silent();
}

TEST_CASE("scalars and arrays are invalid requests") {
  for (const char* line : {"1", "\"x\"", "null", "true", "[]", "[1]",
                           R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])"}) {
    CAPTURE(line);
    Talk talk;
    for (int i = 0; i < 2; ++i) {
      const Json reply = talk.ask(line);
      CHECK(code_of(reply) == -32600);
      CHECK(!reply.find("id"));
      talk.initialize("2025-11-25");
    }
  }
}

TEST_CASE("objects that are no requests are refused, with a usable id") {
  struct Row {
    const char* line;
    const char* id;
  };
  const Row rows[] = {
      {"{}", nullptr},
      {R"({"foo":1})", nullptr},
      {R"({"jsonrpc":"2.0"})", nullptr},
      {R"({"jsonrpc":"2.0","id":1})", "1"},
      {R"({"jsonrpc":"2.0","method":1})", nullptr},
      {R"({"jsonrpc":"2.0","id":"x","method":null})", "\"x\""},
      {R"({"jsonrpc":"1.0","id":2,"method":"ping"})", "2"},
      {R"({"jsonrpc":2.0,"id":2,"method":"ping"})", "2"},
      {R"({"id":2,"method":"ping"})", "2"},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":true,"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":"\ud800","method":"ping"})", nullptr},
  };
  Talk talk;
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const Json reply = talk.ask(row.line);
    CHECK(code_of(reply) == -32600);
    if (row.id) {
      CHECK(reply["id"].dump() == row.id);
    } else {
      CHECK(!reply.find("id"));
    }
    talk.check_silent();
  }
  const Json reply =
      talk.ask(R"({"jsonrpc":"2.0","method":"ping","id":")" + std::string(100000, 'i') + "\"}");
  CHECK(code_of(reply) == -32600);
  CHECK(!reply.find("id"));
}

TEST_CASE("ids come back as they were spelled") {
  Talk talk;
  for (const char* id : {"0", "-1", "1.0", "1e0", "9007199254740993", "9223372036854775807",
                         "123456789012345678901234567890", "\"\"", "\"1\"", "\"a b\"",
                         "\"\xc3\xa4\"", "\"\\u0000\\\"\\\\\""}) {
    const std::string line =
        talk.ask(std::string(R"({"jsonrpc":"2.0","method":"ping","id":)") + id + "}").dump();
    CHECK(line == std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"result":{}})");
  }
}

TEST_CASE("params that are no object are invalid, in both eras") {
  Talk talk;
  for (int i = 0; i < 2; ++i) {
    for (const char* method : {"ping", "tools/list", "tools/call", "server/discover", "no/such"}) {
      for (const char* params : {"[]", "[1]", "1", "\"x\"", "null", "true"}) {
        const Json reply = talk.ask(std::string(R"({"jsonrpc":"2.0","id":3,"method":")") + method +
                                    R"(","params":)" + params + "}");
        CHECK(code_of(reply) == -32602);
        CHECK(reply["id"] == Json(3));
      }
    }
    talk.initialize();
  }
}

TEST_CASE("responses and notifications are never answered") {
  Talk talk;
  talk.initialize();
  for (const char* line : {
           R"({"jsonrpc":"2.0","id":1,"result":{}})",
           R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}})",
           R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}})",
           R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}})",
           R"({"id":1,"result":7})",
           R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
           R"({"jsonrpc":"2.0","method":"notifications/no/such","params":{"a":1}})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled"})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":[]})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}})",
           R"({"jsonrpc":"2.0","method":"notifications/progress","params":7})",
           R"({"jsonrpc":"2.0","method":"ping"})",
           R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}})",
           R"({"jsonrpc":"2.0","method":"initialize"})",
           R"({"jsonrpc":"1.0","method":"ping"})",
           R"({"jsonrpc":"2.0","method":""})",
       })
    talk.send(line);
  talk.check_silent();
  CHECK(talk.finish().empty());
}

TEST_CASE("unknown members of a message are ignored") {
  Talk talk;
  CHECK(talk.ask(R"({"x":1,"jsonrpc":"2.0","id":1,"method":"ping","y":{},"params":{"z":[]}})") ==
        parsed(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"ping","id":2})")["id"] == Json(2));
}

TEST_CASE("a call without a known tool or without an object of arguments is invalid") {
  Talk talk;
  talk.initialize();
  for (const bool in_modern : {false, true}) {
    const auto ask = [&](const std::string& members) {
      return talk.ask(in_modern ? modern("1", "tools/call", members)
                                : R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{)" +
                                      members + "}}");
    };
    for (const char* members :
         {"", R"("arguments":{})", R"("name":null)", R"("name":7)", R"("name":["echo"])",
          R"("name":"echo","arguments":[])", R"("name":"echo","arguments":"x")",
          R"("name":"echo","arguments":null)", R"("name":"echo","arguments":7)"})
      CHECK(code_of(ask(members)) == -32602);
    const Json reply = ask(R"("name":"no\nsuch","arguments":{})");
    CHECK(code_of(reply) == -32602);
    CHECK(has(reply["error"]["message"].as_string(), "Unknown tool: 'no\\x0asuch'"));
    CHECK(code_of(ask(R"("name":"ECHO")")) == -32602);
    CHECK(ask("\"name\":\"" + std::string(100000, 'n') + "\"").dump().size() < 1000);
  }
}

TEST_CASE("tools/list has one page, so that every cursor is invalid") {
  Talk talk;
  talk.initialize();
  for (const char* cursor : {"\"\"", "\"x\"", "null", "7"}) {
    const std::string members = std::string("\"cursor\":") + cursor;
    const Json reply =
        talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{)" + members + "}}");
    CHECK(code_of(reply) == -32602);
    CHECK(has(reply["error"]["message"].as_string(), "cursor"));
    CHECK(code_of(talk.ask(modern("1", "tools/list", members))) == -32602);
  }
  const Json list = talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}})");
  CHECK(!list["result"].find("nextCursor"));
}

TEST_CASE("random bytes never stop the server nor put it out of step") {
  Talk talk;
  std::uint64_t state = 88172645463325252u;
  const auto random = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  const std::string good = modern("1", "tools/call", R"("name":"echo","arguments":{"text":"x"})");
  std::thread writer([&] {
    for (int i = 0; i < 3000; ++i) {
      std::string line = good;
      for (std::uint64_t hits = random() % 4; hits > 0; --hits) {
        line[random() % line.size()] = static_cast<char>(random());
        if (random() % 4 == 0) line.resize(random() % line.size() + 1);
      }
      talk.send(line);
    }
    talk.send(R"({"jsonrpc":"2.0","id":"end","method":"ping"})");
  });
  for (Json reply = talk.receive(); reply["id"] != Json("end"); reply = talk.receive())
    REQUIRE(!reply.is_null());
  writer.join();
}
