// The corpus of labelled commands (oracle/corpus/README.md).
#ifndef CODEEXEC_TESTS_UNIT_POLICY_CORPUS_HPP
#define CODEEXEC_TESTS_UNIT_POLICY_CORPUS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"

namespace support {

inline std::vector<codeexec::Json> read_lines(const std::string& name) {
  const std::string text = support::read_file(CODEEXEC_CORPUS "/" + name);
  std::vector<codeexec::Json> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto json = codeexec::Json::parse(std::string_view(text).substr(begin, end - begin));
    REQUIRE_MESSAGE(json.has_value(), name, ": ", json.error().message);
    result.push_back(*json);
    begin = end + 1;
  }
  REQUIRE(!result.empty());
  return result;
}

// The first line of commands.jsonl is no row: it holds the patterns of the two lists.
inline const codeexec::Json& header() {
  static const codeexec::Json result = read_lines("commands.jsonl").front();
  return result;
}

inline const std::vector<codeexec::Json>& rows() {
  static const std::vector<codeexec::Json> result = [] {
    std::vector<codeexec::Json> lines = read_lines("commands.jsonl");
    lines.erase(lines.begin());
    return lines;
  }();
  return result;
}

inline std::vector<std::string> strings(const codeexec::Json& array) {
  std::vector<std::string> result;
  for (const codeexec::Json& item : array.items()) result.push_back(item.as_string());
  return result;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_POLICY_CORPUS_HPP
