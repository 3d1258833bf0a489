// Strings: escapes, UTF-8 and what is not.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Error;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Json;
using codeexec::JsonLimits;
using support::parsed;
using support::rejected;
using support::shown;
using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

const char replacement[] = "\xef\xbf\xbd";

}  // namespace

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
