// Any bytes are a script that shell::walk reads to its end or refuses: within its limits, with all
// offsets inside of the script, and alike each time.   sh tests/fuzz/run.sh [seconds] shell
#include "fuzz.hpp"
#include "shell/script_internal.hpp"

namespace {

namespace shell = codeexec::shell;

shell::Limits small_limits() {
  shell::Limits limits;
  limits.max_depth = 16;
  limits.max_commands = 400;
  limits.max_words = 4000;
  limits.max_text = 40000;
  return limits;
}

void expect_range(std::string_view script, std::size_t begin, std::size_t end) {
  EXPECT(begin <= end);
  EXPECT(end <= script.size());
}

void expect_word(std::string_view script, const shell::Word& word) {
  expect_range(script, word.begin, word.end);
  // Only an unknown part can split further.
  EXPECT(!word.split || !word.known());
}

void expect_command(std::string_view script, const shell::Command& command) {
  expect_range(script, command.begin, command.end);
  for (const shell::Word& word : command.words) expect_word(script, word);
  for (const shell::Assignment& each : command.assignments) {
    EXPECT(!each.name.empty());
    expect_word(script, each.value);
  }
  for (const shell::Redirection& each : command.redirections) {
    EXPECT(each.fd >= -1 && each.fd <= 1023);
    expect_word(script, each.target);
  }
  EXPECT(command.input.kind == shell::Input::Kind::known || command.input.text.size() == 0);
}

// Numbers that tell two readings apart.
struct Totals {
  std::size_t commands = 0;
  std::size_t words = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;
  bool complete = false;
  bool operator==(const Totals& other) const {
    return commands == other.commands && words == other.words && bytes == other.bytes &&
           offset == other.offset && complete == other.complete;
  }
};

// Follows `sh -c STRING` and `. STRING`, so that payloads are read, too.
Totals read(std::string_view script, shell::Dialect dialect) {
  shell::Options options;
  options.dialect = dialect;
  options.limits = small_limits();
  options.work_dir = "/work";
  Totals totals;
  const shell::Outcome outcome = shell::walk(script, options, [&](const shell::Visit& visit) {
    expect_command(script, visit.command);
    if (visit.producer) expect_command(script, *visit.producer);
    const std::vector<shell::Word>& words = visit.command.words;
    ++totals.commands;
    totals.words += words.size();
    for (const shell::Word& word : words) totals.bytes += word.text.size();
    if (words.size() < 2) return;
    const bool same = words[0].text == ".";
    if (!same && words[0].text != "sh") return;
    shell::Payload payload;
    payload.text = words.back().text;
    payload.arguments = words;
    payload.input = visit.command.input;
    payload.same_shell = same;
    payload.tolerant = words.size() % 2 == 0;
    visit.payloads.push_back(payload);
  });
  totals.complete = outcome.complete;
  totals.offset = outcome.error.offset;
  EXPECT(totals.commands <= options.limits.max_commands);
  EXPECT(totals.words <= options.limits.max_words);
  EXPECT(totals.bytes <= options.limits.max_text);
  EXPECT(outcome.error.offset <= script.size());
  EXPECT(outcome.complete == outcome.error.message.empty());
  EXPECT(outcome.error.message.find('\n') == std::string::npos);
  for (const shell::Definition& each : outcome.definitions) {
    EXPECT(!each.name.empty());
    expect_range(script, each.begin, each.end);
  }
  return totals;
}

}  // namespace

void fuzz::shell(std::string_view script) {
  for (const codeexec::shell::Dialect dialect :
       {codeexec::shell::Dialect::bash, codeexec::shell::Dialect::posix})
    EXPECT(read(script, dialect) == read(script, dialect));
}
