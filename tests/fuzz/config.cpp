// The server's command line and configuration file: any bytes are settings that hold, or an error
// in one line. Nothing is started.                         sh tests/fuzz/run.sh [seconds] config
//   An input is the words of a command line, each in a line, up to a byte 0xff, then the file.
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "fuzz.hpp"

namespace {

using codeexec::Json;
using fuzz::Configured;

// What the child processes that have been waited for have used: any has touched its memory. Between
// the inputs libFuzzer has children, too, which search for leaks and for names of functions.
long used_by_children() {
  rusage children{};
  EXPECT(::getrusage(RUSAGE_CHILDREN, &children) == 0);
  return children.ru_minflt;
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    // Words of a command line end at a NUL.
    words.emplace_back(text.substr(0, std::min(end, text.find('\0'))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

void expect_error(const Configured& got, std::string_view input) {
  EXPECT_WITH(!got.error.empty() && got.error.find('\n') == std::string::npos, input);
  EXPECT_WITH(codeexec::is_utf8(got.error), input);
}

// What the file says is there: a list that were lost would allow more.
void expect_list(const Json& file, const char* key, const std::vector<std::string>& got,
                 std::string_view input) {
  for (const char* prefix : {"", "command_line_"}) {
    const Json* const list = file.find(std::string(prefix) + key);
    if (!list) continue;
    EXPECT_WITH(list->is_array() && list->size() > 0, input);
    EXPECT_WITH(std::equal(got.begin(), got.end(), list->items().begin(), list->items().end(),
                           [](const std::string& a, const Json& b) { return a == b.as_string(); }),
                input);
  }
}

}  // namespace

void fuzz::config(std::string_view input) {
  Bytes bytes(input);
  const std::vector<std::string> words = words_of(bytes.part());
  const std::string_view file = bytes.rest();
  const bool had_children = has_children();
  const long used_before = used_by_children();
  const Configured got = read_configuration(words, file);
  EXPECT_WITH(had_children || !has_children(), input);
  EXPECT_WITH(used_by_children() == used_before, input);
  if (!got.ok) return expect_error(got, input);
  EXPECT_WITH(got.timeout.count() >= 0, input);

  // It was a file of known keys, each once; with an unknown one, or as a value of a key, it is an
  // error.
  const auto parsed = Json::parse(file);
  EXPECT_WITH(parsed && parsed->is_object(), input);
  Json with_unknown = *parsed;
  with_unknown.set("blocked_command", Json::array({"x"}));
  const Configured refused = read_configuration(words, with_unknown.dump());
  EXPECT_WITH(!refused.ok && refused.error.find("blocked_command") != std::string::npos, input);
  EXPECT_WITH(!read_configuration(words, Json::array({*parsed}).dump()).ok, input);
  std::vector<std::string> twice = words;
  twice.insert(twice.begin(), {"--timeout", "1", "--timeout", "1"});
  EXPECT_WITH(!read_configuration(twice, file).ok, input);
  if (!words.empty()) return;
  expect_list(*parsed, "blocked_commands", got.policy.blocked, input);
  expect_list(*parsed, "allowed_commands", got.policy.allowed, input);
  if (const Json* seconds = parsed->find("timeout"))
    EXPECT_WITH(got.timeout.count() > 0 && seconds->as_number() > 0, input);
  if (const Json* paths = parsed->find("allowed_paths"))
    EXPECT_WITH(got.roots.size() == paths->size() && paths->size() > 0, input);
}
