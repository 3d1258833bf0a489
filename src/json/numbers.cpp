// JSON's numbers: reading them, and the shortest digits that give them back.
//
// Reading: a number is an integer if its exact value is one within int64, however it is spelled.
// The exponent moves the decimal point by that many digits, so 1.50e1 has two digits before its
// point:
//
//   1.50e1    digits 150, point after 2     15, and only zeros follow: the integer 15
//   12.5      digits 125, point after 2     a 5 follows: not an integer
//   1e3       digits 1, point after 4       three zeros are added: the integer 1000
//
// All other numbers become the nearest double. Writing: the fewest digits that read back as the
// same double, in the forms of JavaScript, by the place of the decimal point:
//
//   point 1 .. 21, after the digits   1230000          digits, zeros
//   point 1 .. 21, inside of them     12.3             digits with a point
//   point -5 .. 0                     0.00000123       "0.", zeros, digits
//   all others                        1.23e-7, 1e+21   one digit, the others after a point

#include "json/json_internal.hpp"

#include "base/base_internal.hpp"

// std::from_chars for double: libstdc++ 11 has it, libc++ 14 to 19 have not. Without it strtod is
// used, under the C locale of the calling thread. std::to_chars for double is in all of them.
#ifndef CODEEXEC_HAS_FLOAT_CHARS
#if defined(__cpp_lib_to_chars)
#define CODEEXEC_HAS_FLOAT_CHARS 1
#else
#define CODEEXEC_HAS_FLOAT_CHARS 0
#endif
#endif

namespace codeexec {
inline namespace v0_1 {

namespace {

// Sets the C locale for this thread while the object lives. The program may have set a locale in
// which the decimal point is a comma.
class JsonCLocale {
 public:
  JsonCLocale() noexcept {
    static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", locale_t());
    if (plain != locale_t()) previous_ = ::uselocale(plain);
  }
  ~JsonCLocale() {
    if (previous_ != locale_t()) ::uselocale(previous_);
  }
  JsonCLocale(const JsonCLocale&) = delete;
  JsonCLocale& operator=(const JsonCLocale&) = delete;

 private:
  locale_t previous_ = locale_t();
};

// The exponent of a number. One that is far longer than any text is cut, so that sums fit.
long long json_exponent(std::string_view text) {
  constexpr long long bound = 1000000000000000;
  if (starts_with(text, "+"sv)) text.remove_prefix(1);
  long long value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) value = starts_with(text, "-"sv) ? -bound : bound;
  return std::clamp(value, -bound, bound);
}

}  // namespace

inline namespace inner {

double json_read_double(std::string_view text) {
#if CODEEXEC_HAS_FLOAT_CHARS
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  // Too small and too large numbers are both out of range here. strtod gives 0 or infinity.
  if (result.ec == std::errc()) return value;
#endif
  const JsonCLocale plain;
  return std::strtod(std::string(text).c_str(), nullptr);
}

void json_append_double(double value, std::string& out) {
  // The fewest digits that read back as the value, as "d.ddde+dd".
  char form[40];
  const auto end =
      std::to_chars(form, form + sizeof form, std::fabs(value), std::chars_format::scientific).ptr;
  const std::string_view text(form, static_cast<std::size_t>(end - form));
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits.append(text.substr(2, e - 2));
  int exponent = 0;
  for (const char c : text.substr(e + 2)) exponent = exponent * 10 + (c - '0');
  if (text[e + 1] == '-') exponent = -exponent;

  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // where the decimal point stands, counted in digits
  const auto zeros = [](int n) { return std::string(static_cast<std::size_t>(n), '0'); };
  if (std::signbit(value)) out += '-';
  if (count <= point && point <= 21) {
    out.append(digits).append(zeros(point - count));
  } else if (0 < point && point <= 21) {
    out.append(digits.insert(static_cast<std::size_t>(point), 1, '.'));
  } else if (-6 < point && point <= 0) {
    out.append("0.").append(zeros(-point)).append(digits);
  } else {
    if (count > 1) digits.insert(1, 1, '.');
    out.append(digits).append(exponent < 0 ? "e-" : "e+");
    out.append(std::to_string(std::abs(exponent)));
  }
}

bool json_is_int64(double value) {
  // Both bounds are powers of two, hence exact.
  return value >= -9223372036854775808.0 && value < 9223372036854775808.0 &&
         json_same(std::trunc(value), value);
}

std::optional<std::int64_t> json_read_integer(std::string_view text) {
  const bool negative = starts_with(text, "-"sv);
  if (negative) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  long long places = static_cast<long long>(point);  // digits before the point, once it is moved
  if (e != std::string_view::npos) places += json_exponent(text.substr(e + 1));

  std::uint64_t value = 0;
  const std::uint64_t largest = static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  const auto append = [&](unsigned digit) {
    if (value > (largest - digit) / 10) return false;
    value = value * 10 + digit;
    return true;
  };
  long long read = 0;
  for (const char c : digits) {
    if (c == '.') continue;
    const auto digit = static_cast<unsigned>(c - '0');
    if (read++ < places ? !append(digit) : digit != 0) return std::nullopt;
  }
  for (; read < places && value != 0; ++read)
    if (!append(0)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
