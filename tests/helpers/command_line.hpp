// Command lines of the server, read without a server.
#ifndef CODEEXEC_TESTS_HELPERS_COMMAND_LINE_HPP
#define CODEEXEC_TESTS_HELPERS_COMMAND_LINE_HPP

#include <string>
#include <utility>
#include <vector>

#include "tools/server_internal.hpp"

namespace support {

// Reads the words into `config`. The error; empty: there is none.
inline std::string read_options(codeexec::ServerConfig& config, std::vector<std::string> words) {
  words.insert(words.begin(), "server");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto ok = codeexec::read_command_line(static_cast<int>(words.size()), argv.data(), config);
  return ok ? std::string() : ok.error().message;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_HELPERS_COMMAND_LINE_HPP
