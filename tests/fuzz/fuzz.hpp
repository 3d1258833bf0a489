// What the fuzz targets share. A target is a function that is given bytes and ends the program when
// something does not hold. Each has a file, a name, and a corpus of that name.
#ifndef CODEEXEC_TESTS_FUZZ_HPP
#define CODEEXEC_TESTS_FUZZ_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codeexec.hpp"

namespace fuzz {

// Ends the program with what did not hold, where, and with what it was seen.
[[noreturn]] void fail(const char* file, int line, const char* what, std::string_view detail);

#define EXPECT(condition) EXPECT_WITH(condition, std::string_view())
#define EXPECT_WITH(condition, detail)                                        \
  do {                                                                        \
    if (!(condition)) ::fuzz::fail(__FILE__, __LINE__, #condition, (detail)); \
  } while (false)

// Reads decisions from the front of an input; when it is used up, all are 0.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::size_t byte() {
    if (bytes_.empty()) return 0;
    const char first = bytes_.front();
    bytes_.remove_prefix(1);
    return static_cast<unsigned char>(first);
  }
  std::size_t below(std::size_t bound) { return byte() % bound; }
  // Up to a byte 0xff, or to the end.
  std::string_view part() {
    const std::size_t end = bytes_.find('\xff');
    const std::string_view text = bytes_.substr(0, end);
    bytes_.remove_prefix(end == std::string_view::npos ? bytes_.size() : end + 1);
    return text;
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// Of the header's own code, what reads hostile bytes and has no name outside of it (inside.cpp).
using Variables = std::vector<std::pair<std::string, std::string>>;

// What the words of a command line and the bytes of a configuration file come to.
struct Configured {
  bool ok = false;
  std::string error = {};
  codeexec::PolicyOptions policy = {};
  std::vector<codeexec::Root> roots = {};
  std::chrono::milliseconds timeout = {};
};
Configured read_configuration(std::vector<std::string> words, std::string_view file);

codeexec::ContainerInfo read_health(const codeexec::Json& container);
bool says_orphan(const codeexec::Json& container);
double read_amount(std::string_view text);

std::string own_group(std::string_view groups, std::string_view controller);
std::string group_directory(std::string_view mounts, const std::string& group,
                            std::string_view controller);
// What a terminal shows of output that comes in pieces of so many bytes, and its answers.
codeexec::TerminalScreen screen_after(int rows, int cols, std::string_view output,
                                      std::size_t piece, std::string& answers);
std::string unescaped(std::string_view text);
std::uint64_t counter_in(const std::string& text, std::string_view word);
bool glob_matches(std::string_view pattern, std::string_view text);
std::string_view front_matter(std::string_view text, std::string_view key);
std::string_view name_in_comment(std::string_view code, const std::string& extension);

// The targets.
void code(std::string_view input);
void config(std::string_view input);
void docker(std::string_view input);
void json(std::string_view input);
void mcp(std::string_view input);
void output(std::string_view input);
void place(std::string_view input);
void policy(std::string_view input);
void proxy(std::string_view input);
void regex(std::string_view input);
void session(std::string_view input);
void shell(std::string_view input);
void terminal(std::string_view input);
void text(std::string_view input);

}  // namespace fuzz

#endif  // CODEEXEC_TESTS_FUZZ_HPP
