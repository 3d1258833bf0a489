// Helpers for the tests that read JSON.
#ifndef CODEEXEC_TESTS_JSON_SUPPORT_HPP
#define CODEEXEC_TESTS_JSON_SUPPORT_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace support {

// The value of a text that must be good.
inline codeexec::Json parsed(const std::string& text) {
  const codeexec::Expected<codeexec::Json> value = codeexec::Json::parse(text);
  REQUIRE_MESSAGE(value, text.substr(0, 500));
  return *value;
}

inline codeexec::Json words_json(const std::vector<std::string>& words) {
  codeexec::Json list = codeexec::Json::array();
  for (const std::string& word : words) list.push_back(word);
  return list;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_JSON_SUPPORT_HPP
