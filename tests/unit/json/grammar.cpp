// What RFC 8259 allows and forbids, and how deep a text may be. The tables y_ and n_ follow its
// grammar rule by rule; every other expectation names where it comes from.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <pthread.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Error;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Json;
using codeexec::JsonLimits;
using support::echo;
using support::parsed;
using support::rejected;
using support::repeat;
using support::shown;
using namespace std::string_view_literals;

namespace {

// Runs work on a thread whose stack is far too small for recursion on a deep tree.
void on_small_stack(void (*work)()) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<void (**)()>(argument))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

struct Case {
  std::string_view text;
  std::string_view dump;
};

}  // namespace

// grammar -----------------------------------------------------------------------------------------

TEST_CASE("json y_: what RFC 8259 allows is read, and written compactly") {
  const Case cases[] = {
      // structure (section 2)
      {"null", "null"},
      {"true", "true"},
      {"false", "false"},
      {"0", "0"},
      {"\"\"", "\"\""},
      {"[]", "[]"},
      {"{}", "{}"},
      {" \t\r\n[ \t\r\n] \t\r\n", "[]"},
      {" \t\r\n{ \t\r\n} \t\r\n", "{}"},
      {"[ 1 , 2 ]", "[1,2]"},
      {"[\n1\n,\n2\n]\n", "[1,2]"},
      {"{ \"a\" : 1 , \"b\" : 2 }", "{\"a\":1,\"b\":2}"},
      {"[[]]", "[[]]"},
      {"[[],[]]", "[[],[]]"},
      {"[{}]", "[{}]"},
      {"{\"a\":{}}", "{\"a\":{}}"},
      {"{\"a\":[]}", "{\"a\":[]}"},
      {"[[[[[[1]]]]],2]", "[[[[[[1]]]]],2]"},
      {"[null,true,false,1,\"\",[],{}]", "[null,true,false,1,\"\",[],{}]"},
      {"[1,null,null,null,2]", "[1,null,null,null,2]"},
      {"{\"a\":{\"b\":{\"c\":[{\"d\":null}]}}}", "{\"a\":{\"b\":{\"c\":[{\"d\":null}]}}}"},
      {"[true]", "[true]"},
      {"[false]", "[false]"},
      {"[null]", "[null]"},
      // objects (section 4)
      {"{\"\":0}", "{\"\":0}"},
      {"{\"a\":1,\"A\":2}", "{\"a\":1,\"A\":2}"},
      {"{\"b\":1,\"a\":2,\"c\":0}", "{\"b\":1,\"a\":2,\"c\":0}"},
      {"{\"\\u0061\":1}", "{\"a\":1}"},
      {"{\"a\\u0000b\":1}", "{\"a\\u0000b\":1}"},
      {"{\"a\":1,\"a\":2}", "{\"a\":2}"},
      {"{\"a\":1,\"\\u0061\":2}", "{\"a\":2}"},
      {"{\"__proto__\":1}", "{\"__proto__\":1}"},
      // numbers (section 6)
      {"-0", "-0"},
      {"-1", "-1"},
      {"10", "10"},
      {"1.0", "1.0"},
      {"0.0", "0.0"},
      {"-0.0", "-0.0"},
      {"0.10", "0.10"},
      {"1e0", "1e0"},
      {"1E0", "1E0"},
      {"1e+0", "1e+0"},
      {"1e-0", "1e-0"},
      {"1E+2", "1E+2"},
      {"1e00", "1e00"},
      {"0e1", "0e1"},
      {"0e+1", "0e+1"},
      {"0E999999999999", "0E999999999999"},
      {"1.5e-3", "1.5e-3"},
      {"-123.456e+7", "-123.456e+7"},
      {"123e-10000000", "123e-10000000"},
      {"1e-400", "1e-400"},
      {"[0,-0,1]", "[0,-0,1]"},
      {"20e1", "20e1"},
      {"1.7976931348623157e308", "1.7976931348623157e308"},
      {"0.00000000000000000000000000000000000000000000000001",
       "0.00000000000000000000000000000000000000000000000001"},
      // strings (section 7)
      {"\"a\"", "\"a\""},
      {"\" \"", "\" \""},
      {"\"'\"", "\"'\""},
      {"\"/\"", "\"/\""},
      {"\"\\/\"", "\"/\""},
      {"\"\\\"\"", "\"\\\"\""},
      {"\"\\\\\"", "\"\\\\\""},
      {"\"\\b\\f\\n\\r\\t\"", "\"\\b\\f\\n\\r\\t\""},
      {"\"\\u0000\"", "\"\\u0000\""},
      {"\"\\u001f\"", "\"\\u001f\""},
      {"\"\\u0020\"", "\" \""},
      {"\"\\u0041\"", "\"A\""},
      {"\"\\u00e9\"", "\"\xc3\xa9\""},
      {"\"\\u00E9\"", "\"\xc3\xa9\""},
      {"\"\\u20ac\"", "\"\xe2\x82\xac\""},
      {"\"\\uabCD\"", "\"\xea\xaf\x8d\""},
      {"\"\\uD834\\udd1e\"", "\"\xf0\x9d\x84\x9e\""},
      {"\"\\ud800\\udc00\"", "\"\xf0\x90\x80\x80\""},
      {"\"\\udbff\\udfff\"", "\"\xf4\x8f\xbf\xbf\""},
      {"\"\\uffff\"", "\"\xef\xbf\xbf\""},
      {"\"\\ufffd\"", "\"\xef\xbf\xbd\""},
      {"\"\\ufeff\"", "\"\xef\xbb\xbf\""},
      {"\"\\ud7ff\\ue000\"", "\"\xed\x9f\xbf\xee\x80\x80\""},
      {"\"\\\\u0061\"", "\"\\\\u0061\""},
      {"\"\\u005cu0061\"", "\"\\\\u0061\""},
      {"\"\\u0022\"", "\"\\\"\""},
      {"\"// no comment\"", "\"// no comment\""},
      {"\"/* no comment */\"", "\"/* no comment */\""},
      {"\"[1,2]{}:,\"", "\"[1,2]{}:,\""},
      {"\"\xc2\x80\"", "\"\xc2\x80\""},
      {"\"\xc2\xa0\"", "\"\xc2\xa0\""},
      {"\"\xdf\xbf\"", "\"\xdf\xbf\""},
      {"\"\xe0\xa0\x80\"", "\"\xe0\xa0\x80\""},
      {"\"\xef\xbf\xbe\"", "\"\xef\xbf\xbe\""},
      {"\"\xf0\x9f\x98\x80\"", "\"\xf0\x9f\x98\x80\""},
      {"\"\x7f\"", "\"\\u007f\""},
      {"\"\xc2\x85\"", "\"\\u0085\""},
      {"\"\xe2\x80\xa8\"", "\"\\u2028\""},
      {"\"\xe2\x80\xa9\"", "\"\\u2029\""},
      {"\"\xe2\x80\xa7\"", "\"\xe2\x80\xa7\""},
      {"\"\xe2\x80\xaa\"", "\"\xe2\x80\xaa\""},
      {"\"\xc2\x84\"", "\"\xc2\x84\""},
      {"\"\xc2\x86\"", "\"\xc2\x86\""},
  };
  for (const Case& c : cases) {
    CAPTURE(shown(c.text));
    CHECK(shown(echo(c.text)) == shown(c.dump));
    CHECK(echo(c.dump) == c.dump);  // what is written is read again, and written the same
  }
}

TEST_CASE("json n_: what RFC 8259 forbids is rejected, with the byte and what was expected") {
  struct Bad {
    std::string_view text;
    std::size_t offset;
    std::string_view message;
  };
  const Bad cases[] = {
      // nothing, and too much
      {"", 0, "expected a value, but the text ends at byte 0"},
      {" ", 1, "expected a value, but the text ends at byte 1"},
      {"\n\t ", 3, "expected a value, but the text ends at byte 3"},
      {"1 2", 2, "unexpected text after the value at byte 2"},
      {"[]]", 2, "unexpected text after the value at byte 2"},
      {"[][]", 2, "unexpected text after the value at byte 2"},
      {"{}}", 2, "unexpected text after the value at byte 2"},
      {"{}{}", 2, "unexpected text after the value at byte 2"},
      {"{} x", 3, "unexpected text after the value at byte 3"},
      {"null,", 4, "unexpected text after the value at byte 4"},
      {"\"a\"\"b\"", 3, "unexpected text after the value at byte 3"},
      {"[1],", 3, "unexpected text after the value at byte 3"},
      {"{\"a\":1}#", 7, "unexpected text after the value at byte 7"},
      {"{\"a\":1}//", 7, "unexpected text after the value at byte 7"},
      {"nulll", 4, "unexpected text after the value at byte 4"},
      {"[1]\f", 3, "unexpected text after the value at byte 3"},
      {"[1]\v", 3, "unexpected text after the value at byte 3"},
      {"[1]\0"sv, 3, "unexpected text after the value at byte 3"},
      {"\0"sv, 0, "expected a value at byte 0"},
      {"\f[]", 0, "expected a value at byte 0"},
      {"[\v]", 1, "expected a value at byte 1"},
      {"[\xc2\xa0]", 1, "expected a value at byte 1"},
      {"\xe2\x81\xa0[]", 0, "expected a value at byte 0"},
      {"\xef\xbb\xbf{}", 0, "expected a value at byte 0"},
      {"\xff\xfe[\0]\0"sv, 0, "expected a value at byte 0"},
      {"[\0]\0"sv, 1, "expected a value at byte 1"},
      {"/**/1", 0, "expected a value at byte 0"},
      {"[1,/* */2]", 3, "expected a value at byte 3"},
      {"\xff", 0, "expected a value at byte 0"},
      {"<.>", 0, "expected a value at byte 0"},
      {"]", 0, "expected a value at byte 0"},
      {"}", 0, "expected a value at byte 0"},
      {",", 0, "expected a value at byte 0"},
      {":", 0, "expected a value at byte 0"},
      {"'a'", 0, "expected a value at byte 0"},
      {"a", 0, "expected a value at byte 0"},
      {"*", 0, "expected a value at byte 0"},
      {"\\u0031", 0, "expected a value at byte 0"},
      // literals
      {"nul", 3, "expected 'null', but the text ends at byte 3"},
      {"n", 1, "expected 'null', but the text ends at byte 1"},
      {"nUll", 1, "expected 'null' at byte 1"},
      {"tru", 3, "expected 'true', but the text ends at byte 3"},
      {"[tru]", 4, "expected 'true' at byte 4"},
      {"truE", 3, "expected 'true' at byte 3"},
      {"True", 0, "expected a value at byte 0"},
      {"FALSE", 0, "expected a value at byte 0"},
      {"fals", 4, "expected 'false', but the text ends at byte 4"},
      {"[fals\xe5]", 5, "expected 'false' at byte 5"},
      {"[truth]", 4, "expected 'true' at byte 4"},
      {"None", 0, "expected a value at byte 0"},
      {"undefined", 0, "expected a value at byte 0"},
      {"NaN", 0, "expected a value at byte 0"},
      {"nan", 1, "expected 'null' at byte 1"},
      {"Infinity", 0, "expected a value at byte 0"},
      {"[-Infinity]", 2, "expected a digit at byte 2"},
      {"[-NaN]", 2, "expected a digit at byte 2"},
      {"inf", 0, "expected a value at byte 0"},
      // arrays
      {"[", 1, "expected a value, but the text ends at byte 1"},
      {"[1", 2, "expected ',' or ']', but the text ends at byte 2"},
      {"[1,", 3, "expected a value, but the text ends at byte 3"},
      {"[,", 1, "expected a value at byte 1"},
      {"[,]", 1, "expected a value at byte 1"},
      {"[1,]", 3, "expected a value at byte 3"},
      {"[1,,2]", 3, "expected a value at byte 3"},
      {"[,1]", 1, "expected a value at byte 1"},
      {"[1 2]", 3, "expected ',' or ']' at byte 3"},
      {"[1:2]", 2, "expected ',' or ']' at byte 2"},
      {"[1}", 2, "expected ',' or ']' at byte 2"},
      {"[\"a\" \"b\"]", 5, "expected ',' or ']' at byte 5"},
      {"[\"a\":1]", 4, "expected ',' or ']' at byte 4"},
      {"[[1]", 4, "expected ',' or ']', but the text ends at byte 4"},
      {"[3[4]]", 2, "expected ',' or ']' at byte 2"},
      {"[1\n,1\n,1", 8, "expected ',' or ']', but the text ends at byte 8"},
      {"[{}", 3, "expected ',' or ']', but the text ends at byte 3"},
      {"[x", 1, "expected a value at byte 1"},
      {"[a]", 1, "expected a value at byte 1"},
      {"['a']", 1, "expected a value at byte 1"},
      {"[\xff]", 1, "expected a value at byte 1"},
      {"[*]", 1, "expected a value at byte 1"},
      {"[\"\"", 3, "expected ',' or ']', but the text ends at byte 3"},
      {"[\"\",", 4, "expected a value, but the text ends at byte 4"},
      {"[1,\"a\"b]", 6, "expected ',' or ']' at byte 6"},
      // objects
      {"{", 1, "expected a name or '}', but the text ends at byte 1"},
      {"{\"a\"", 4, "expected ':', but the text ends at byte 4"},
      {"{\"a\":", 5, "expected a value, but the text ends at byte 5"},
      {"{\"a\":1", 6, "expected ',' or '}', but the text ends at byte 6"},
      {"{\"a\":1,", 7, "expected a name, but the text ends at byte 7"},
      {"{\"a\":1,}", 7, "expected a name at byte 7"},
      {"{,}", 1, "expected a name or '}' at byte 1"},
      {"{,\"a\":1}", 1, "expected a name or '}' at byte 1"},
      {"{\"a\":1,,\"b\":2}", 7, "expected a name at byte 7"},
      {"{\"a\" 1}", 5, "expected ':' at byte 5"},
      {"{\"a\",1}", 4, "expected ':' at byte 4"},
      {"{\"a\"}", 4, "expected ':' at byte 4"},
      {"{\"a\":}", 5, "expected a value at byte 5"},
      {"{\"a\"::1}", 5, "expected a value at byte 5"},
      {"{\"a\":1 \"b\":2}", 7, "expected ',' or '}' at byte 7"},
      {"{\"a\":1]", 6, "expected ',' or '}' at byte 6"},
      {"{\"a\":[1}", 7, "expected ',' or ']' at byte 7"},
      {"{a:1}", 1, "expected a name or '}' at byte 1"},
      {"{'a':1}", 1, "expected a name or '}' at byte 1"},
      {"{1:1}", 1, "expected a name or '}' at byte 1"},
      {"{null:1}", 1, "expected a name or '}' at byte 1"},
      {"{[]:1}", 1, "expected a name or '}' at byte 1"},
      {"{\"a\":1,2}", 7, "expected a name at byte 7"},
      {"{\"a\":1,b:2}", 7, "expected a name at byte 7"},
      {"{\"a\":\"b\",\"c\"}", 12, "expected ':' at byte 12"},
      {"{\"a\":/*c*/1}", 5, "expected a value at byte 5"},
      {"{\"a\":1:2}", 6, "expected ',' or '}' at byte 6"},
      {"{\"a", 3, "expected '\"', but the text ends at byte 3"},
      {"{:1}", 1, "expected a name or '}' at byte 1"},
      {"{[", 1, "expected a name or '}' at byte 1"},
      {"{\xf0\x9f\x98\x80}", 1, "expected a name or '}' at byte 1"},
      // numbers
      {"-", 1, "expected a digit, but the text ends at byte 1"},
      {"+1", 0, "expected a value at byte 0"},
      {"--1", 1, "expected a digit at byte 1"},
      {"-+1", 1, "expected a digit at byte 1"},
      {"- 1", 1, "expected a digit at byte 1"},
      {"-a", 1, "expected a digit at byte 1"},
      {"01", 1, "unexpected text after the value at byte 1"},
      {"00", 1, "unexpected text after the value at byte 1"},
      {"-01", 2, "unexpected text after the value at byte 2"},
      {"[012]", 2, "expected ',' or ']' at byte 2"},
      {"1.", 2, "expected a digit, but the text ends at byte 2"},
      {"[1.]", 3, "expected a digit at byte 3"},
      {"-1.", 3, "expected a digit, but the text ends at byte 3"},
      {".1", 0, "expected a value at byte 0"},
      {"-.1", 1, "expected a digit at byte 1"},
      {"1.e1", 2, "expected a digit at byte 2"},
      {"0.e1", 2, "expected a digit at byte 2"},
      {"1e", 2, "expected a digit, but the text ends at byte 2"},
      {"1e+", 3, "expected a digit, but the text ends at byte 3"},
      {"[1e-]", 4, "expected a digit at byte 4"},
      {"1ee1", 2, "expected a digit at byte 2"},
      {"1e+-1", 3, "expected a digit at byte 3"},
      {"1e1.5", 3, "unexpected text after the value at byte 3"},
      {"1e1e1", 3, "unexpected text after the value at byte 3"},
      {"1.2.3", 3, "unexpected text after the value at byte 3"},
      {"1..2", 2, "expected a digit at byte 2"},
      {"0x1", 1, "unexpected text after the value at byte 1"},
      {"1a", 1, "unexpected text after the value at byte 1"},
      {"1-", 1, "unexpected text after the value at byte 1"},
      {"1,5", 1, "unexpected text after the value at byte 1"},
      {"1_000", 1, "unexpected text after the value at byte 1"},
      {"1 000", 2, "unexpected text after the value at byte 2"},
      {"0e", 2, "expected a digit, but the text ends at byte 2"},
      {"1f", 1, "unexpected text after the value at byte 1"},
      {"\xef\xbc\x91", 0, "expected a value at byte 0"},
      {"1\xe5", 1, "unexpected text after the value at byte 1"},
      {"1e\xe5", 2, "expected a digit at byte 2"},
      {"1e400", 0, "a number too large for a double at byte 0"},
      {"[-1e400]", 1, "a number too large for a double at byte 1"},
      {"1.7976931348623159e308", 0, "a number too large for a double at byte 0"},
      {"[0,1e99999999999999999999]", 3, "a number too large for a double at byte 3"},
      // strings
      {"\"", 1, "expected '\"', but the text ends at byte 1"},
      {"\"abc", 4, "expected '\"', but the text ends at byte 4"},
      {"\"abcdefgh", 9, "expected '\"', but the text ends at byte 9"},
      {"\"a\\\"", 4, "expected '\"', but the text ends at byte 4"},
      {"\"\\", 2, "expected an escape, but the text ends at byte 2"},
      {"\"\\a\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\x00\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\'\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\0\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\N\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\U0041\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\\n\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\\xf0\x9f\x98\x80\"", 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\\0\""sv, 2, "expected one of \"\\/bfnrtu after a backslash at byte 2"},
      {"\"\\u\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\\u0\"", 4, "expected four hexadecimal digits at byte 4"},
      {"\"\\u00\"", 5, "expected four hexadecimal digits at byte 5"},
      {"\"\\u004\"", 6, "expected four hexadecimal digits at byte 6"},
      {"\"\\u004g\"", 6, "expected four hexadecimal digits at byte 6"},
      {"\"\\u+041\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\\u 041\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\\uD834\\u\"", 9, "expected four hexadecimal digits at byte 9"},
      {"\"\\uD834\\uDd\"", 11, "expected four hexadecimal digits at byte 11"},
      {"\"\\uD834\\x\"", 8, "expected one of \"\\/bfnrtu after a backslash at byte 8"},
      {"\"\\u00", 5, "expected four hexadecimal digits, but the text ends at byte 5"},
      {"\"\\u:041\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\\u/041\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\\u@041\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\\u`041\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\\uG041\"", 3, "expected four hexadecimal digits at byte 3"},
      {"\"\n\"", 1, "control character in a string at byte 1"},
      {"\"a\tb\"", 2, "control character in a string at byte 2"},
      {"\"\0\""sv, 1, "control character in a string at byte 1"},
      {"\"abcdefg\x1f\"", 8, "control character in a string at byte 8"},
      {"{\"a\nb\":1}", 3, "control character in a string at byte 3"},
  };
  for (const Bad& c : cases) {
    CAPTURE(shown(c.text));
    const Error error = rejected(c.text);
    CHECK(error.code == ErrorCode::parse);
    CHECK(error.offset == c.offset);
    CHECK(error.message == c.message);
  }
}

TEST_CASE("json: every control character must be escaped, no other ASCII character need be") {
  for (int c = 0; c < 0x80; ++c) {
    CAPTURE(c);
    for (std::size_t before = 0; before < 10; ++before) {  // every place in a word of eight
      const std::string text =
          "\"" + std::string(before, 'x') + static_cast<char>(c) + "yyyyyyyy\"";
      if (c < 0x20) {
        CHECK(rejected(text).offset == 1 + before);
      } else if (c != '"' && c != '\\') {
        CHECK(parsed(text).as_string() == text.substr(1, text.size() - 2));
      }
    }
  }
}

TEST_CASE("json: no prefix and no single-byte change of a message is read out of bounds") {
  const std::string message =
      "{\"jsonrpc\":\"2.0\",\"id\":-1.5e+3,\"method\":\"a\\ud83d\\ude00\\n\",\"params\":[true,"
      "false,null,{\"\":\"\xf0\x9f\x98\x80\xc3\xa9\"}]}";
  std::size_t good = 0;
  for (std::size_t size = 0; size <= message.size(); ++size) {
    // An exact heap copy, so that a sanitizer sees the first byte beyond.
    const std::vector<char> copy(message.begin(),
                                 message.begin() + static_cast<std::ptrdiff_t>(size));
    const Expected<Json> result = Json::parse({copy.data(), copy.size()});
    if (result) ++good;
    if (!result) CHECK(result.error().offset <= size);
  }
  CHECK(good == 1);
  for (std::size_t i = 0; i < message.size(); ++i) {
    for (int c = 0; c < 256; ++c) {
      std::string changed = message;
      changed[i] = static_cast<char>(c);
      const Expected<Json> result = Json::parse(changed);
      if (!result) continue;
      const std::string dump = result->dump();
      CHECK(echo(dump) == dump);
    }
  }
}

// depth -------------------------------------------------------------------------------------------

TEST_CASE("json: 256 levels are read, 257 are an error of code limit at the bracket") {
  for (const char* open : {"[", "{\"a\":"}) {
    CAPTURE(open);
    const bool array = open[0] == '[';
    const std::string_view close = array ? "]" : "}";
    const std::string_view inner = array ? "" : "0";
    const std::string deepest = repeat(open, 256) + std::string(inner) + repeat(close, 256);
    CHECK(echo(deepest) == deepest);
    const Error error = rejected(repeat(open, 257) + std::string(inner) + repeat(close, 257));
    CHECK(error.code == ErrorCode::limit);
    CHECK(error.offset == 256 * std::strlen(open));
    CHECK(error.message == "nested deeper than 256 levels at byte " + std::to_string(error.offset));
  }
}

TEST_CASE("json: the depth counts open containers, not those that were closed") {
  CHECK(parsed("[" + repeat("[],", 1000) + "{}]").size() == 1001);
  JsonLimits flat;
  flat.max_depth = 0;
  CHECK(parsed("1", flat).as_integer() == 1);
  CHECK(rejected("[]", flat).code == ErrorCode::limit);
  flat.max_depth = 2;
  CHECK(parsed("[[],{\"a\":1},[]]", flat).size() == 3);
  CHECK(rejected("[[],{\"a\":[]}]", flat).code == ErrorCode::limit);
}

TEST_CASE("json: input 100,000 and a million levels deep is an error, not a crash") {
  on_small_stack([] {
    for (const std::size_t depth : {std::size_t(100000), std::size_t(1000000)}) {
      CHECK(rejected(repeat("[", depth)).code == ErrorCode::limit);
      CHECK(rejected(repeat("{\"a\":", depth)).code == ErrorCode::limit);
      CHECK(rejected(repeat("[{\"\":", depth)).code == ErrorCode::limit);
    }
  });
}

TEST_CASE("json: a tree of 100,000 levels is copied, compared, written, read and destroyed") {
  on_small_stack([] {
    constexpr std::size_t depth = 100000;
    Json tree;
    for (std::size_t i = 0; i < depth; ++i) {
      Json outer;
      if (i % 2 == 0) {
        outer.push_back(std::move(tree));
        outer.push_back("x");
      } else {
        outer.set("a", std::move(tree)).set("b", 1);
      }
      tree = std::move(outer);
    }
    const Json copy = tree;
    CHECK(copy == tree);
    const std::string text = tree.dump();
    CHECK(text.size() > depth * 5);
    JsonLimits limits;
    limits.max_depth = depth;
    Expected<Json> again = Json::parse(text, limits);
    REQUIRE(again.has_value());
    CHECK(*again == tree);
    CHECK(again->dump() == text);
    tree = Json(1);
    CHECK(*again != tree);
    CHECK(*again == copy);
  });
}

TEST_CASE("json: a part of a tree can replace the tree that holds it") {
  Json tree = parsed("[[1,[2]],{\"a\":[3]}]");
  tree = tree[0];
  CHECK(tree.dump() == "[1,[2]]");
  tree.push_back(tree);
  CHECK(tree.dump() == "[1,[2],[1,[2]]]");
  Json& self = tree;
  tree = self;
  CHECK(tree.dump() == "[1,[2],[1,[2]]]");
  tree = std::move(self);
  CHECK(tree.dump() == "[1,[2],[1,[2]]]");
  Json object = parsed("{\"a\":{\"b\":1}}");
  object.set("a", object);
  CHECK(object.dump() == "{\"a\":{\"a\":{\"b\":1}}}");
  Json moved = std::move(object);
  CHECK(object.is_null());
  CHECK(moved.size() == 1);
}
