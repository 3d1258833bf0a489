// Objects, and the value as a thing to build, compare and copy.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Expected;
using codeexec::Json;
using support::echo;
using support::parsed;
using support::rejected;
using support::repeat;
using namespace std::string_literals;
using namespace std::string_view_literals;

// objects -----------------------------------------------------------------------------------------

TEST_CASE("json: of equal names the last value wins, in the place of the first") {
  CHECK(echo("{\"a\":1,\"b\":2,\"a\":3}") == "{\"a\":3,\"b\":2}");
  CHECK(echo("{\"a\":{\"x\":1},\"a\":{\"y\":2}}") == "{\"a\":{\"y\":2}}");
  CHECK(echo("{\"a\":1,\"a\":2,\"b\":3,\"b\":4,\"a\":[5],\"c\":6}") ==
        "{\"a\":[5],\"b\":4,\"c\":6}");
  CHECK(echo("[{\"a\":1,\"a\":2},{\"a\":3}]") == "[{\"a\":2},{\"a\":3}]");
  CHECK(echo("{\"\":1,\"\":2}") == "{\"\":2}");
  CHECK(parsed("{\"id\":1,\"\\u0069d\":2}")["id"].as_integer() == 2);
  CHECK(Json::object({{"a", 1}, {"b", 2}, {"a", 3}}).dump() == "{\"a\":3,\"b\":2}");
}

TEST_CASE("json: the rule for equal names holds for every number of members") {
  for (const std::size_t count : {1u, 2u, 15u, 16u, 17u, 18u, 31u, 33u, 100u, 1000u}) {
    CAPTURE(count);
    std::string text = "{";
    std::string expected = "{";
    for (std::size_t i = 0; i < count; ++i) {
      text += "\"n" + std::to_string(i) + "\":0,";
      expected += "\"n" + std::to_string(i) + "\":" + std::to_string(count - 1 - i) + ",";
    }
    for (std::size_t i = count; i-- > 0;)
      text += "\"n" + std::to_string(i) + "\":" + std::to_string(count - 1 - i) + ",";
    text.back() = '}';
    expected.back() = '}';
    CHECK(echo(text) == expected);
  }
}

TEST_CASE("json: a million members and a million equal names need no quadratic time") {
  // Names of one length that differ in few bits, at either end, and names that are one name. A
  // quadratic way would compare 10^12 names and run for hours; no clock is needed to notice.
  constexpr std::size_t count = 1000000;
  for (const int shape : {0, 1, 2}) {
    CAPTURE(shape);
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) {
      char digits[16];
      std::snprintf(digits, sizeof digits, "%07u", static_cast<unsigned>(i));
      text += '"';
      if (shape == 0) text += "aaaaaaaaaaaaaaaa"s + digits;
      if (shape == 1) text += digits + "aaaaaaaaaaaaaaaa"s;
      if (shape == 2) text += "same";
      text += "\":1,";
    }
    text.back() = '}';
    const Expected<Json> result = Json::parse(text);
    REQUIRE(result.has_value());
    CHECK(result->size() == (shape == 2 ? 1 : count));
    if (shape == 0) CHECK(result->dump() == text);
  }
}

TEST_CASE("json: names that collide under unkeyed hashes need no quadratic time") {
  // "Aa" and "BB" have one hash under the classic polynomial of 31; so have all their 2^17
  // sequences of one length.
  std::string text = "{";
  constexpr unsigned bits = 17;
  for (unsigned i = 0; i < 1u << bits; ++i) {
    text += '"';
    for (unsigned bit = 0; bit < bits; ++bit) text += (i >> bit & 1) != 0 ? "Aa" : "BB";
    text += "\":0,";
  }
  text.back() = '}';
  CHECK(parsed(text).size() == 1u << bits);
}

TEST_CASE("json: long runs of every kind of token are read and written") {
  constexpr std::size_t count = 1000000;
  CHECK(parsed("[" + repeat("0,", count) + "0]").size() == count + 1);
  CHECK(parsed("[" + repeat("[],", count) + "[]]").size() == count + 1);
  CHECK(parsed(repeat(" ", count) + "1" + repeat("\n", count)).as_integer() == 1);
  CHECK(parsed("\"" + repeat("\\u00e9", count) + "\"").as_string() == repeat("\xc3\xa9", count));
  CHECK(parsed("\"" + repeat("\\n", count) + "\"").dump().size() == 2 * count + 2);
  CHECK(parsed("\"" + repeat("\\ud800", count) + "\"").as_string().size() == 3 * count);
  CHECK(parsed("\"" + repeat("\xf0\x9f\x98\x80", count) + "\"").as_string().size() == 4 * count);
  CHECK(rejected(repeat("9", count)).offset == 0);
  CHECK(parsed("0." + repeat("9", count)).as_number() == 1);
  CHECK(parsed("[" + repeat("1e-999,", count / 10) + "0]").size() == count / 10 + 1);
}

// the value ---------------------------------------------------------------------------------------

TEST_CASE("json: a value knows its kind, and reads of another kind give the fallback") {
  const struct {
    Json value;
    Json::Kind kind;
    const char* dump;
  } cases[] = {
      {Json(), Json::Kind::null, "null"},
      {nullptr, Json::Kind::null, "null"},
      {true, Json::Kind::boolean, "true"},
      {false, Json::Kind::boolean, "false"},
      {0, Json::Kind::integer, "0"},
      {-7, Json::Kind::integer, "-7"},
      {7u, Json::Kind::integer, "7"},
      {4294967295u, Json::Kind::integer, "4294967295"},
      {7L, Json::Kind::integer, "7"},
      {7ul, Json::Kind::integer, "7"},
      {7ll, Json::Kind::integer, "7"},
      {7ull, Json::Kind::integer, "7"},
      {std::size_t(7), Json::Kind::integer, "7"},
      {std::int64_t(7), Json::Kind::integer, "7"},
      {7.0, Json::Kind::integer, "7"},
      {7.5, Json::Kind::number, "7.5"},
      {"text", Json::Kind::string, "\"text\""},
      {"text"s, Json::Kind::string, "\"text\""},
      {"text"sv, Json::Kind::string, "\"text\""},
      {Json::array(), Json::Kind::array, "[]"},
      {Json::object(), Json::Kind::object, "{}"},
      {Json::Array{1, "a"}, Json::Kind::array, "[1,\"a\"]"},
      {Json::Object{{"a", 1}}, Json::Kind::object, "{\"a\":1}"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.dump);
    const Json& v = c.value;
    CHECK(v.kind() == c.kind);
    CHECK(v.dump() == c.dump);
    CHECK(v.is_null() == (c.kind == Json::Kind::null));
    CHECK(v.is_bool() == (c.kind == Json::Kind::boolean));
    CHECK(v.is_integer() == (c.kind == Json::Kind::integer));
    CHECK(v.is_number() == (c.kind == Json::Kind::integer || c.kind == Json::Kind::number));
    CHECK(v.is_string() == (c.kind == Json::Kind::string));
    CHECK(v.is_array() == (c.kind == Json::Kind::array));
    CHECK(v.is_object() == (c.kind == Json::Kind::object));
    CHECK(v.as_bool(true) == (c.kind != Json::Kind::boolean || c.dump == "true"s));
    if (!v.is_integer()) CHECK(v.as_integer(-99) == -99);
    if (!v.is_number()) CHECK(v.as_number(-99) == -99);
    if (!v.is_string()) CHECK(v.as_string().empty());
    if (!v.is_array()) CHECK(v.items().empty());
    if (!v.is_object()) CHECK(v.members().empty());
    CHECK(v.size() == v.items().size() + v.members().size());
    CHECK(v["absent"].is_null());
    CHECK(v[99].is_null());
    CHECK(v.find("absent") == nullptr);
  }
  CHECK(Json(7).as_number() == 7);
  CHECK(Json(7.5).as_number() == 7.5);
}

TEST_CASE("json: a pointer is no boolean, and a value is small and moves without throwing") {
  static_assert(!std::is_constructible_v<Json, const int*>);
  static_assert(!std::is_constructible_v<Json, const void*>);
  static_assert(std::is_constructible_v<Json, char*>);
  static_assert(std::is_nothrow_move_constructible_v<Json>);
  static_assert(std::is_nothrow_move_assignable_v<Json>);
  static_assert(std::is_nothrow_destructible_v<Json>);
  static_assert(sizeof(Json) <= 40);
  char text[] = "abc";
  CHECK(Json(text).dump() == "\"abc\"");
}

TEST_CASE("json: set adds at the end or replaces in place, push_back appends") {
  Json object;
  object.set("b", 1).set("a", 2).set("b", 3);
  CHECK(object.dump() == "{\"b\":3,\"a\":2}");
  CHECK(object["a"].as_integer() == 2);
  CHECK(*object.find("b") == Json(3));
  CHECK(object.members()[0].name == "b");
  Json array;
  array.push_back(1).push_back("x").push_back(Json());
  CHECK(array.dump() == "[1,\"x\",null]");
  CHECK(array[1].as_string() == "x");
  CHECK(array[3].is_null());
  array.set("now", "an object");
  CHECK(array.dump() == "{\"now\":\"an object\"}");
  object.push_back(5);
  CHECK(object.dump() == "[5]");
}

TEST_CASE("json: dump_to appends") {
  std::string out = "x:";
  Json::array({1}).dump_to(out);
  Json("a").dump_to(out);
  CHECK(out == "x:[1]\"a\"");
}

TEST_CASE("json: equality is of values; members have no order, items have one") {
  const struct {
    const char* a;
    const char* b;
    bool equal;
  } cases[] = {
      {"1", "1.0", true},
      {"1", "1e0", true},
      {"0", "-0", true},
      {"1", "2", false},
      {"1", "1.5", false},
      {"1.5", "15e-1", true},
      {"1.5", "1.25", false},
      {"9007199254740993", "9007199254740992", false},
      {"9007199254740993", "9007199254740992.0", false},
      {"1e300", "10e299", true},
      {"1e300", "1e301", false},
      {"12345678901234567890", "12345678901234567890.0", true},
      {"1", "\"1\"", false},
      {"1", "true", false},
      {"0", "null", false},
      {"0", "false", false},
      {"true", "true", true},
      {"true", "false", false},
      {"null", "null", true},
      {"\"a\"", "\"\\u0061\"", true},
      {"\"a\"", "\"b\"", false},
      {"[]", "{}", false},
      {"[]", "[]", true},
      {"[]", "[null]", false},
      {"[1,2]", "[1,2]", true},
      {"[1,2]", "[2,1]", false},
      {"[1,2]", "[1,2,3]", false},
      {"{}", "{}", true},
      {"{\"a\":1}", "{\"a\":1}", true},
      {"{\"a\":1}", "{\"b\":1}", false},
      {"{\"a\":1}", "{\"a\":2}", false},
      {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
      {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
      {"{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}", false},
      {"[{\"a\":[1,{\"b\":2}]}]", "[{\"a\":[1,{\"b\":2}]}]", true},
      {"[{\"a\":[1,{\"b\":2}]}]", "[{\"a\":[1,{\"b\":3}]}]", false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.a);
    CAPTURE(c.b);
    CHECK((parsed(c.a) == parsed(c.b)) == c.equal);
    CHECK((parsed(c.b) == parsed(c.a)) == c.equal);
    CHECK((parsed(c.a) != parsed(c.b)) == !c.equal);
  }
}

TEST_CASE("json: a copy is deep") {
  const Json original = parsed("{\"a\":[1,{\"b\":[\"x\",1.50,-0]}],\"c\":{}}");
  Json copy = original;
  CHECK(copy == original);
  CHECK(copy.dump() == original.dump());
  copy.set("a", 1);
  CHECK(original.dump() == "{\"a\":[1,{\"b\":[\"x\",1.50,-0]}],\"c\":{}}");
  CHECK(copy != original);
}

TEST_CASE("json: a long text with escapes, lines and UTF-8 comes back byte by byte") {
  std::mt19937 random(7);
  const std::string_view pieces[] = {"plain text of some length, ",
                                     "\n",
                                     "\t",
                                     "\"",
                                     "\\",
                                     "\r",
                                     "\xc3\xa9",
                                     "\xe6\x97\xa5\xe6\x9c\xac",
                                     "\xf0\x9f\x98\x80",
                                     "\x7f",
                                     "\xc2\x85",
                                     "\xe2\x80\xa8",
                                     "x",
                                     "\x1b[0m",
                                     "\0"sv};
  std::string text;
  while (text.size() < 1 << 20) text += pieces[random() % (sizeof pieces / sizeof *pieces)];
  const Json json = Json::object({{"text", text}});
  const std::string dump = json.dump();
  CHECK(codeexec::is_utf8(dump));
  CHECK(dump.find('\n') == dump.npos);
  CHECK(dump.find('\x7f') == dump.npos);
  CHECK(dump.find("\xe2\x80\xa8") == dump.npos);
  CHECK(parsed(dump)["text"].as_string() == text);
}

TEST_CASE("json: the number of values in a text can be bounded") {
  codeexec::JsonLimits limits;
  limits.max_values = 4;
  CHECK(Json::parse("[1,{\"a\":2}]", limits).has_value());
  const auto more = Json::parse("[1,{\"a\":2},3]", limits);
  REQUIRE(!more);
  CHECK(more.error().code == codeexec::ErrorCode::limit);
  CHECK(more.error().message == "more than 4 values at byte 11");
  CHECK(more.error().offset == 11);
}

TEST_CASE("json: a name that occurs twice can be made an error") {
  codeexec::JsonLimits limits;
  limits.unique_names = true;
  CHECK(Json::parse(R"({"a":1,"b":{"a":2}})", limits).has_value());
  for (const char* text : {R"({"a":1,"a":1})", R"([{"x":{"b":1,"c":2,"b":3}}])"}) {
    const auto json = Json::parse(text, limits);
    REQUIRE(!json);
    CHECK(json.error().code == codeexec::ErrorCode::parse);
    CHECK(json.error().message.find("twice") != std::string::npos);
  }
}
