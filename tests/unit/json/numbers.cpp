// Numbers: kept as they are spelled, exact as integers, the nearest as doubles.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Expected;
using codeexec::Json;
using support::echo;
using support::parsed;
using support::rejected;
using namespace std::string_literals;

namespace {

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

}  // namespace

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
