// Helpers that several tests of the json section share.
#ifndef CODEEXEC_TESTS_UNIT_JSON_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_JSON_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "../../helpers/support.hpp"

namespace support {

// The bytes of a text that are no plain ASCII as \xNN, for messages.
inline std::string shown(std::string_view text) {
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
inline codeexec::Json parsed(std::string_view text, const codeexec::JsonLimits& limits = {}) {
  codeexec::Expected<codeexec::Json> result = codeexec::Json::parse(text, limits);
  INFO("text: ", shown(text), " error: ", result.error().message);
  CHECK(result.has_value());
  return result ? std::move(*result) : codeexec::Json();
}

inline codeexec::Error rejected(std::string_view text, const codeexec::JsonLimits& limits = {}) {
  const codeexec::Expected<codeexec::Json> result = codeexec::Json::parse(text, limits);
  INFO("text: ", shown(text));
  CHECK_FALSE(result.has_value());
  return result.error();
}

inline std::string echo(std::string_view text) { return parsed(text).dump(); }

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_JSON_HELPERS_HPP
