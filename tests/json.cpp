// The json section, through its public interface. The tables y_, n_ and i_ follow RFC 8259's
// grammar rule by rule; every other expectation names where it comes from.
#include "codeexec.hpp"

#include <doctest/doctest.h>
#include <pthread.h>

#include <cfloat>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using codeexec::Error;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Json;
using codeexec::JsonLimits;

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

const char replacement[] = "\xef\xbf\xbd";

// The bytes of a text that are no plain ASCII as \xNN, for messages.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 200)) {
    if (c >= ' ' && c <= '~') {
      result += c;
      continue;
    }
    char form[8];
    std::snprintf(form, sizeof form, "\\x%02x", static_cast<unsigned>(c) & 0xffu);
    result += form;
  }
  return result;
}

// The value of a text that must be good; null and a failed check otherwise.
Json parsed(std::string_view text, const JsonLimits& limits = {}) {
  Expected<Json> result = Json::parse(text, limits);
  INFO("text: ", shown(text), " error: ", result.error().message);
  CHECK(result.has_value());
  return result ? std::move(*result) : Json();
}

Error rejected(std::string_view text, const JsonLimits& limits = {}) {
  const Expected<Json> result = Json::parse(text, limits);
  INFO("text: ", shown(text));
  CHECK_FALSE(result.has_value());
  return result.error();
}

std::string echo(std::string_view text) { return parsed(text).dump(); }

std::string repeat(std::string_view text, std::size_t times) {
  std::string result;
  result.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

// The words of a text, at single spaces.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result(1);
  for (const char c : text) {
    if (c == ' ') {
      result.emplace_back();
    } else {
      result.back() += c;
    }
  }
  return result;
}

double from_bits(std::uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

std::uint64_t to_bits(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

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

class LocaleGuard {
 public:
  explicit LocaleGuard(const char* name) : set_(std::setlocale(LC_ALL, name) != nullptr) {}
  ~LocaleGuard() { std::setlocale(LC_ALL, "C"); }
  LocaleGuard(const LocaleGuard&) = delete;
  LocaleGuard& operator=(const LocaleGuard&) = delete;
  bool set() const { return set_; }

 private:
  bool set_;
};

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

// numbers -----------------------------------------------------------------------------------------

TEST_CASE("json: a number is written back exactly as it was spelled") {
  const std::string long_digits = "1" + std::string(300, '0') + "." + std::string(300, '7');
  const std::string numbers =
      "0 -0 0.0 -0.0 1.0 1.00 1e0 1E0 1e+0 1e-0 1E+00 100e-2 0.1 0.10 1e5 1E5 1e05 1e21 "
      "1e+21 1000000000000000000000 9007199254740993 9007199254740993.0 "
      "12345678901234567890 -12345678901234567890 9223372036854775807 9223372036854775808 "
      "-9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 "
      "1e-400 0e5 1.7976931348623157e308 5e-324 4.9e-324 2.2250738585072014e-308 "
      "-2.2250738585072014e-308 -2.22507385850720141e-308 3.141592653589793238462643383279 "
      "123456789012345678 1234567890123456789 -123456789012345678 999999999999999999 "
      "1000000000000000000 0.000001 1e-6 1e-7 0.0000001 " +
      long_digits;
  for (const std::string& number : words(numbers)) {
    CAPTURE(number);
    CHECK(echo(number) == number);
    CHECK(echo("[" + number + "]") == "[" + number + "]");
    const Json original = parsed(number);
    const Json copy = original;  // NOLINT: the copy is what is tested
    CHECK(copy.dump() == number);
    CHECK(copy == original);
    Json assigned = parsed("\"text\"");
    assigned = original;
    CHECK(assigned.dump() == number);
    Json moved = std::move(assigned);
    CHECK(moved.dump() == number);
  }
}

TEST_CASE("json: int64 is exact, from end to end") {
  const std::int64_t edges[] = {0,
                                1,
                                -1,
                                9,
                                10,
                                99,
                                2147483647,
                                -2147483648LL,
                                4294967296LL,
                                9007199254740991LL,
                                9007199254740992LL,
                                9007199254740993LL,
                                -9007199254740993LL,
                                999999999999999999LL,
                                1000000000000000000LL,
                                -999999999999999999LL,
                                -1000000000000000000LL,
                                std::numeric_limits<std::int64_t>::max(),
                                std::numeric_limits<std::int64_t>::min()};
  for (const std::int64_t edge : edges) {
    for (int delta = -3; delta <= 3; ++delta) {
      std::int64_t value = 0;
      if (__builtin_add_overflow(edge, std::int64_t(delta), &value)) continue;
      CAPTURE(value);
      const Json json = parsed(std::to_string(value));
      CHECK(json.kind() == Json::Kind::integer);
      CHECK(json.as_integer() == value);
      CHECK(json.dump() == std::to_string(value));
      CHECK(Json(static_cast<long long>(value)).dump() == std::to_string(value));
      CHECK(Json(static_cast<long long>(value)) == json);
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const auto value = static_cast<std::int64_t>(random()) >> (random() % 64);
    CHECK(parsed(std::to_string(value)).as_integer() == value);
  }
}

TEST_CASE("json: an integer beyond int64 is a number, the nearest double, and keeps its digits") {
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "12345678901234567890",
                           "100000000000000000000", "18446744073709551615"}) {
    CAPTURE(text);
    const Json json = parsed(text);
    CHECK(json.kind() == Json::Kind::number);
    CHECK_FALSE(json.is_integer());
    CHECK(json.is_number());
    CHECK(json.as_integer(7) == 7);
    CHECK(json.as_number() == std::strtod(text, nullptr));
    CHECK(json.dump() == text);
  }
  CHECK(Json(18446744073709551615ull).dump() == "18446744073709551615");
  CHECK(Json(18446744073709551615ull).kind() == Json::Kind::number);
  CHECK(Json(9223372036854775807ull).kind() == Json::Kind::integer);
  CHECK(Json(9223372036854775808ull).dump() == "9223372036854775808");
}

TEST_CASE("json: 1.0 and 1e0 are integers, fractions are not") {
  const struct {
    const char* text;
    std::int64_t value;
  } integers[] = {{"1.0", 1},
                  {"1e0", 1},
                  {"1e+2", 100},
                  {"2500E-2", 25},
                  {"-1E+18", -1000000000000000000},
                  {"10e-1", 1},
                  {"1.5e1", 15},
                  {"-0", 0},
                  {"-0.0", 0},
                  {"0e9", 0},
                  {"-2.00", -2},
                  {"1e18", 1000000000000000000},
                  {"0.1e1", 1},
                  {"-9223372036854775808.0", std::numeric_limits<std::int64_t>::min()},
                  {"9223372036854775807.000", std::numeric_limits<std::int64_t>::max()},
                  {"9007199254740993.0", 9007199254740993},
                  {"0.00012e5", 12},
                  {"0.9007199254740993e16", 9007199254740993},
                  {"0e-99999999999999999999", 0},
                  {"0E99999999999999999999", 0},
                  {"92233720368547758070000e-4", std::numeric_limits<std::int64_t>::max()}};
  for (const auto& c : integers) {
    CAPTURE(c.text);
    const Json json = parsed(c.text);
    CHECK(json.is_integer());
    CHECK(json.is_number());
    CHECK(json.kind() == Json::Kind::integer);
    CHECK(json.as_integer(77) == c.value);
    CHECK(json.dump() == c.text);
    CHECK(json == Json(static_cast<long long>(c.value)));
  }
  // Numbers whose nearest double is an integer, but which are none themselves, are not either.
  for (const char* text :
       {"1.5", "0.1", "-0.5", "1e-1", "1e19", "9223372036854775808.0", "1e300", "5e-324", "1e-400",
        "1.000000000000000005", "9007199254740993.5", "-9223372036854775809",
        "-9223372036854775809.0", "0.99999999999999999999", "10e18", "15e-1",
        "1e-99999999999999999999999999", "92233720368547758070000000000000e-12"}) {
    CAPTURE(text);
    const Json json = parsed(text);
    CHECK_FALSE(json.is_integer());
    CHECK(json.kind() == Json::Kind::number);
    CHECK(json.as_integer(77) == 77);
  }
  CHECK(std::signbit(parsed("-0").as_number()));
  CHECK(std::signbit(parsed("-0.0").as_number()));
  CHECK(std::signbit(parsed("-1e-400").as_number()));
  CHECK_FALSE(std::signbit(parsed("0").as_number()));
}

TEST_CASE("json: numbers become the nearest double") {
  // Halfway cases and others that sloppy readers get wrong.
  for (const char* text :
       {"0.1",
        "0.3",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "9007199254740993.0",
        "9007199254740992.99999999999999999999",
        "9007199254740993.00000000000000000001",
        "1e23",
        "8.5e22",
        "1.7976931348623158e308",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "6.631236846766476e-316",
        "3.2378839133029012895883524125015321748630094e-319",
        "5e-324",
        "1e-323",
        "123456.789e3",
        "0.000000000000000000000000000000000000000000000000000000000000000001234567890123456",
        "7.0420557077594588669468784357561207962098443483187940792729600000e59",
        "1.00000005960464477550",
        "1448997445238699",
        "1.448997445238699e15"}) {
    CAPTURE(text);
    CHECK(to_bits(parsed(text).as_number()) == to_bits(std::strtod(text, nullptr)));
  }
  const std::string tiny = "0." + std::string(5000, '0') + "1e5001";
  CHECK(parsed(tiny).as_number() == 1);
  const std::string huge = "1" + std::string(5000, '0') + "e-5000";
  CHECK(parsed(huge).as_number() == 1);
  CHECK(parsed("1e-5000").as_number() == 0);
  CHECK(parsed("0e99999").as_number() == 0);
  CHECK(parsed("0." + std::string(400, '0') + "1").as_number() == 0);
  CHECK(rejected("1" + std::string(400, '0')).message ==
        "a number too large for a double at byte 0");
}

TEST_CASE("json: doubles are written as JavaScript writes them") {
  const struct {
    double value;
    const char* text;
  } cases[] = {
      {0.0, "0"},
      {-0.0, "-0"},
      {1.0, "1"},
      {-1.0, "-1"},
      {0.1, "0.1"},
      {0.5, "0.5"},
      {1.5, "1.5"},
      {-2.75, "-2.75"},
      {123456.789, "123456.789"},
      {100.0, "100"},
      {1e15, "1000000000000000"},
      {1e18, "1000000000000000000"},
      {1e19, "10000000000000000000"},
      {1e20, "100000000000000000000"},
      {123456789012345680000.0, "123456789012345680000"},
      {1e21, "1e+21"},
      {1.5e21, "1.5e+21"},
      {-1e21, "-1e+21"},
      {1e22, "1e+22"},
      {1e23, "1e+23"},
      {1e100, "1e+100"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {0.001, "0.001"},
      {0.000001, "0.000001"},
      {0.0000012345, "0.0000012345"},
      {0.0000001, "1e-7"},
      {1.5e-7, "1.5e-7"},
      {5e-324, "5e-324"},
      {2.2250738585072014e-308, "2.2250738585072014e-308"},
      {9007199254740993.0, "9007199254740992"},
      {4.35, "4.35"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1.0 / 3, "0.3333333333333333"},
      {2.0 / 3, "0.6666666666666666"},
      {9223372036854775808.0, "9223372036854776000"},
      {18446744073709551616.0, "18446744073709552000"},
  };
  for (const auto& c : cases) {
    CHECK(Json(c.value).dump() == c.text);
    CHECK(to_bits(parsed(c.text).as_number()) == to_bits(c.value));
  }
  CHECK(Json(0.1f).dump() == "0.10000000149011612");
}

TEST_CASE("json: NaN and the infinities become null") {
  CHECK(Json(std::nan("")).is_null());
  CHECK(Json(HUGE_VAL).is_null());
  CHECK(Json(-HUGE_VAL).dump() == "null");
  CHECK(Json::array({Json(HUGE_VAL)}).dump() == "[null]");
}

TEST_CASE("json: every double comes back, whatever its bits, through the fewest digits") {
  std::mt19937_64 random(20240607);
  std::vector<std::uint64_t> patterns;
  for (std::uint64_t exponent = 0; exponent < 0x7ff; ++exponent)  // every exponent
    for (const std::uint64_t fraction :
         {std::uint64_t(0), std::uint64_t(1), (std::uint64_t(1) << 52) - 1, random() >> 12})
      patterns.push_back(exponent << 52 | fraction | (random() & (std::uint64_t(1) << 63)));
  for (int i = 0; i < 10000; ++i) patterns.push_back(random());
  for (int i = 1; i < 2000; ++i) patterns.push_back(to_bits(i / 100.0));
  for (int i = -40; i < 40; ++i) patterns.push_back(to_bits(9007199254740992.0 + 2 * i));
  std::size_t longer = 0;
  std::size_t changed = 0;
  for (const std::uint64_t bits : patterns) {
    const double value = from_bits(bits);
    if (!std::isfinite(value)) continue;
    const std::string text = Json(value).dump();
    const Expected<Json> back = Json::parse(text);
    if (!back || to_bits(back->as_number()) != bits || back->dump() != text) ++changed;
    // The reference: the first precision at which printf's form reads back as the same.
    char form[40];
    int precision = 0;
    do std::snprintf(form, sizeof form, "%.*e", precision++, value);
    while (to_bits(std::strtod(form, nullptr)) != bits);
    std::size_t digits = 0;
    std::size_t zeros = 0;
    for (const char c : text.substr(0, text.find('e'))) {
      if (c < '0' || c > '9' || (digits == 0 && c == '0')) continue;
      ++digits;
      zeros = c == '0' ? zeros + 1 : 0;
    }
    // Without the zeros that only fill a place; an integer within int64 is written in full.
    if (std::fabs(value) < 9e15 && digits - zeros > static_cast<std::size_t>(precision)) ++longer;
    if (std::fabs(value) > 1e19 && digits - zeros > static_cast<std::size_t>(precision)) ++longer;
  }
  CHECK(changed == 0);
  CHECK(longer == 0);
}

TEST_CASE("json: a locale with a decimal comma changes nothing") {
  const LocaleGuard german("de_DE.UTF-8");
  if (!german.set()) {
    MESSAGE("SKIPPED: no locale de_DE.UTF-8");
    return;
  }
  char probe[16];
  std::snprintf(probe, sizeof probe, "%.1f", 1.5);
  REQUIRE(probe == "1,5"s);  // the locale is in force
  CHECK(parsed("1.5").as_number() == 1.5);
  CHECK(parsed("1e-400").as_number() == 0);
  CHECK(parsed("2.5e-310").as_number() == 2.5e-310);
  CHECK(Json(1.5).dump() == "1.5");
  CHECK(Json(1234567.25).dump() == "1234567.25");
  CHECK(Json(1.5e300).dump() == "1.5e+300");
  CHECK(Json(12345678).dump() == "12345678");
  CHECK(rejected("1,5").offset == 1);
  CHECK(rejected("1e400").offset == 0);
  std::snprintf(probe, sizeof probe, "%.1f", 1.5);
  CHECK(probe == "1,5"s);  // and still is
}

// strings -----------------------------------------------------------------------------------------

TEST_CASE("json: every code point is read from its escape and from its bytes, and comes back") {
  const Json strings = [] {
    Json result = Json::array();
    std::string text = "[";
    for (unsigned code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 61) {
      if (code >= 0xd800 && code < 0xe000) continue;
      char escape[20];
      if (code < 0x10000) {
        std::snprintf(escape, sizeof escape, "\\u%04x", code);
      } else {
        std::snprintf(escape, sizeof escape, "\\u%04X\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                      0xdc00 + ((code - 0x10000) & 0x3ff));
      }
      text += "\"" + std::string(escape) + "\",";
    }
    text.back() = ']';
    return parsed(text);
  }();
  CHECK_FALSE(strings.has_lone_surrogate());
  std::size_t index = 0;
  std::size_t wrong = 0;
  for (unsigned code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 61) {
    if (code >= 0xd800 && code < 0xe000) continue;
    std::string utf8;
    if (code < 0x80) {
      utf8 = {static_cast<char>(code)};
    } else if (code < 0x800) {
      utf8 = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    } else if (code < 0x10000) {
      utf8 = {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    } else {
      utf8 = {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
              static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    }
    const Json& string = strings[index++];
    if (string.as_string() != utf8) ++wrong;
    const bool escaped = code < 0x20 || code == '"' || code == '\\' || code == 0x7f ||
                         code == 0x85 || code == 0x2028 || code == 0x2029;
    const std::string dump = Json(utf8).dump();
    if (!escaped && dump != "\"" + utf8 + "\"") ++wrong;
    if (escaped && (dump.size() < 4 || dump[1] != '\\')) ++wrong;
    const Expected<Json> back = Json::parse(dump);
    if (!back || back->as_string() != utf8) ++wrong;
  }
  CHECK(index == strings.size());
  CHECK(wrong == 0);
}

TEST_CASE("json: the writer's escapes are the short ones of RFC 8259, else \\u00 and lower case") {
  std::string all;
  for (int c = 0; c < 0x20; ++c) all += static_cast<char>(c);
  all += "\"\\/\x7f";
  CHECK(Json(all).dump() ==
        "\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e"
        "\\u000f\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a"
        "\\u001b\\u001c\\u001d\\u001e\\u001f\\\"\\\\/\\u007f\"");
  CHECK(Json("a\xc2\x85\xe2\x80\xa8\xe2\x80\xa9z").dump() == "\"a\\u0085\\u2028\\u2029z\"");
  CHECK(Json::object({{"a\n\"\x7f", 1}}).dump() == "{\"a\\n\\\"\\u007f\":1}");
}

TEST_CASE("json: an escape is found at every place in a word of eight bytes") {
  for (const std::string_view special : {"\""sv, "\\"sv, "\n"sv, "\0"sv, "\x1f"sv, "\x7f"sv,
                                         "\xc2\x85"sv, "\xe2\x80\xa8"sv, "\xff"sv, "\xc3\xa9"sv}) {
    for (std::size_t before = 0; before < 20; ++before) {
      for (std::size_t after = 0; after < 10; ++after) {
        const std::string text =
            std::string(before, '~') + std::string(special) + std::string(after, ' ');
        const std::string dump = Json(text).dump();
        const std::string expected = special == "\xff" ? codeexec::to_utf8(text) : text;
        CHECK(parsed(dump).as_string() == expected);
        for (const char c : dump) CHECK_FALSE((c >= 0 && c < 0x20));
      }
    }
  }
}

TEST_CASE("json: NUL stays inside strings and names") {
  const std::string text("a\0b", 3);
  const Json json = Json::object({{text, text}});
  CHECK(json.dump() == "{\"a\\u0000b\":\"a\\u0000b\"}");
  const Json back = parsed(json.dump());
  CHECK(back[text].as_string() == text);
  CHECK(back["a"].is_null());
}

TEST_CASE("json: ill-formed UTF-8 is rejected at its first byte, in values and names") {
  const struct {
    std::string_view bytes;
    std::size_t at;  // offset of the bad sequence in the bytes
  } cases[] = {
      {"\x80", 0},  // continuation alone
      {"\xbf", 0},
      {"a\x80", 1},
      {"\xc0\x80", 0},  // overlong, 2 bytes
      {"\xc0\xaf", 0},
      {"\xc1\xbf", 0},
      {"\xe0\x80\x80", 0},  // overlong, 3 bytes
      {"\xe0\x80\xaf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xf0\x80\x80\x80", 0},  // overlong, 4 bytes
      {"\xf0\x80\x80\xaf", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"\xed\xa0\x80", 0},  // surrogates
      {"\xed\xad\xbf", 0},
      {"\xed\xae\x80", 0},
      {"\xed\xbf\xbf", 0},
      {"\xed\xa0\xbd\xed\xb8\x80", 0},
      {"\xf4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xf5\x80\x80\x80", 0},
      {"\xf7\xbf\xbf\xbf", 0},
      {"\xf8\x88\x80\x80\x80", 0},
      {"\xfc\x84\x80\x80\x80\x80", 0},
      {"\xfe", 0},
      {"\xff", 0},
      {"\xc3", 0},  // cut short by the quote
      {"\xe2\x82", 0},
      {"\xe2", 0},
      {"\xf0\x9f\x98", 0},
      {"\xf0\x9f", 0},
      {"\xf0", 0},
      {"\xc3\x28", 0},  // cut short by another character
      {"\xe2\x28\xa1", 0},
      {"\xe2\x82\x28", 0},
      {"\xf0\x28\x8c\xbc", 0},
      {"\xf0\x90\x28\xbc", 0},
      {"\xf0\x28\x8c\x28", 0},
      {"\xc3\xc3\xa9", 0},
      {"\xe9", 0},  // Latin-1
      {"caf\xe9 noir", 3},
      {"\xc3\xa9\xff", 2},  // after good ones
      {"\xe6\x97\xa5\xf0\x9f\x98\x80\xa0", 7},
      {"12345678\xff", 8},
      {"1234567\xff", 7},
  };
  for (const auto& c : cases) {
    CAPTURE(shown(c.bytes));
    const std::string value = "[\"" + std::string(c.bytes) + "\"]";
    const Error error = rejected(value);
    CHECK(error.code == ErrorCode::parse);
    CHECK(error.offset == 2 + c.at);
    CHECK(error.message == "invalid UTF-8 at byte " + std::to_string(2 + c.at));
    CHECK(rejected("{\"" + std::string(c.bytes) + "\":1}").offset == 2 + c.at);
    CHECK_FALSE(codeexec::is_utf8(c.bytes));

    // Leniently it is what the decoder of the base section makes of it, and never a surrogate flag.
    JsonLimits lenient;
    lenient.accept_invalid_utf8 = true;
    const Json json = parsed(value, lenient);
    CHECK(json[0].as_string() == codeexec::to_utf8(c.bytes));
    CHECK_FALSE(json.has_lone_surrogate());

    // A string that the program built is written in the same way.
    CHECK(Json(c.bytes).dump() == Json(codeexec::to_utf8(c.bytes)).dump());
    CHECK(codeexec::is_utf8(Json::object({{std::string(c.bytes), c.bytes}}).dump()));
  }
}

TEST_CASE("json: the edges of well-formed UTF-8 are accepted") {
  for (const std::string_view bytes :
       {"\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv, "\xe0\xbf\xbf"sv, "\xe1\x80\x80"sv,
        "\xec\xbf\xbf"sv, "\xed\x80\x80"sv, "\xed\x9f\xbf"sv, "\xee\x80\x80"sv, "\xef\xbf\xbf"sv,
        "\xef\xbf\xbd"sv, "\xf0\x90\x80\x80"sv, "\xf0\xbf\xbf\xbf"sv, "\xf1\x80\x80\x80"sv,
        "\xf3\xbf\xbf\xbf"sv, "\xf4\x80\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    CAPTURE(shown(bytes));
    CHECK(parsed("\"" + std::string(bytes) + "\"").as_string() == bytes);
  }
}

TEST_CASE("json: all two-byte strings agree with the UTF-8 check of the base section") {
  std::size_t wrong = 0;
  for (unsigned pair = 0; pair < 0x10000; ++pair) {
    const char bytes[] = {static_cast<char>(pair >> 8), static_cast<char>(pair & 0xff)};
    const std::string_view text(bytes, 2);
    if (text.find_first_of("\"\\") != text.npos) continue;
    bool control = false;
    for (const char c : text) control = control || (c >= 0 && c < 0x20);
    const bool good = Json::parse("\"" + std::string(text) + "\"").has_value();
    if (good != (codeexec::is_utf8(text) && !control)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("json: leniently, bad bytes outside a string are still an error") {
  JsonLimits lenient;
  lenient.accept_invalid_utf8 = true;
  CHECK(rejected("[1,\xff]", lenient).offset == 3);
  CHECK(rejected("\xff", lenient).offset == 0);
  CHECK(rejected("\"\xff\n\"", lenient).offset == 2);
  CHECK(rejected("\"\xff", lenient).offset == 2);
  CHECK(parsed("{\"x\":\"\xff\xfe\",\"id\":17}", lenient)["id"].as_integer() == 17);
  CHECK(parsed("{\"\xff\":1}", lenient)[replacement].as_integer() == 1);
  CHECK(parsed("\"a\xe2\x82\\n\xf0\x9f\xe9z\"", lenient).as_string() ==
        "a"s + replacement + "\n" + replacement + replacement + "z");
}

TEST_CASE("json: a surrogate escape without partner is U+FFFD and flagged, up to the root") {
  const struct {
    const char* text;
    std::string value;
  } lone[] = {
      {"\"\\ud800\"", replacement},
      {"\"\\uDFFF\"", replacement},
      {"\"\\udbff\"", replacement},
      {"\"\\udc00\"", replacement},
      {"\"a\\ud800b\"", "a"s + replacement + "b"},
      {"\"\\ud800\\n\"", replacement + "\n"s},
      {"\"\\ud800\\\\\"", replacement + "\\"s},
      {"\"\\ud800\\u0041\"", replacement + "A"s},
      {"\"\\ud800\\ud800\"", replacement + std::string(replacement)},
      {"\"\\ud800\\ud800\\udc00\"", replacement + "\xf0\x90\x80\x80"s},
      {"\"\\udc00\\ud800\"", replacement + std::string(replacement)},
      {"\"\\udc00\\udc00\"", replacement + std::string(replacement)},
      {"\"\\ud83d\\ude00\\ude00\"", "\xf0\x9f\x98\x80"s + replacement},
      {"\"\\ud800\\ue000\"", replacement + "\xee\x80\x80"s},
      {"\"\\ud800\\udbff\"", replacement + std::string(replacement)},
  };
  for (const auto& c : lone) {
    CAPTURE(c.text);
    const Json json = parsed(c.text);
    CHECK(json.as_string() == c.value);
    CHECK(json.has_lone_surrogate());
    CHECK(codeexec::is_utf8(json.dump()));
    const std::string text = c.text;
    const Json tree = parsed("[1,{\"a\":[{\"b\":" + text + "}],\"c\":\"x\"},\"y\",[2]]");
    CHECK(tree.has_lone_surrogate());
    CHECK(tree[1].has_lone_surrogate());
    CHECK(tree[1]["a"][0]["b"].has_lone_surrogate());
    CHECK_FALSE(tree[0].has_lone_surrogate());
    CHECK_FALSE(tree[1]["c"].has_lone_surrogate());
    CHECK_FALSE(tree[2].has_lone_surrogate());
    CHECK_FALSE(tree[3].has_lone_surrogate());
    const Json name = parsed("[[{" + text + ":1,\"a\":2}],[{\"z\":0}]]");
    CHECK(name.has_lone_surrogate());
    CHECK(name[0].has_lone_surrogate());
    CHECK(name[0][0].has_lone_surrogate());
    CHECK_FALSE(name[0][0]["a"].has_lone_surrogate());
    CHECK_FALSE(name[1].has_lone_surrogate());
  }
  CHECK_FALSE(parsed("\"\\ud83d\\ude00\"").has_lone_surrogate());
  CHECK_FALSE(parsed("\"\\ufffd\"").has_lone_surrogate());
  CHECK_FALSE(parsed("\"\xef\xbf\xbd\"").has_lone_surrogate());
  CHECK_FALSE(parsed("\"\\\\ud800\"").has_lone_surrogate());
}

TEST_CASE("json: the surrogate flag travels with copies, moves and containers") {
  const Json lone = parsed("\"\\ud800\"");
  Json copy = lone;
  CHECK(copy.has_lone_surrogate());
  Json moved = std::move(copy);
  CHECK(moved.has_lone_surrogate());
  CHECK_FALSE(copy.has_lone_surrogate());
  moved = Json("plain");
  CHECK_FALSE(moved.has_lone_surrogate());
  CHECK(Json::array({1, lone}).has_lone_surrogate());
  CHECK(Json::object({{"a", lone}}).has_lone_surrogate());
  CHECK(Json().push_back(lone).has_lone_surrogate());
  CHECK(Json().set("a", Json::array({lone})).has_lone_surrogate());
  CHECK_FALSE(Json::array({1, "a"}).has_lone_surrogate());
}

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
