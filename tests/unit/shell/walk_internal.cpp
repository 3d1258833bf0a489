// What walk() visits.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

namespace shell = codeexec::shell;
using codeexec::ErrorCode;
using support::check;
using support::contains;
using support::ended;
using support::parsed;
using support::words_of;

namespace {

// Walks with `sh -c STRING ARGUMENT...` and `run STRING` (the same shell) followed.
std::string walked(std::string_view script, bool tolerant = false) {
  std::string shown;
  const shell::Outcome outcome = shell::walk(script, {}, [&](const shell::Visit& visit) {
    if (!shown.empty()) shown += " ; ";
    shown += words_of(visit.command);
    if (visit.producer) shown += " <- " + words_of(*visit.producer);
    const std::vector<shell::Word>& words = visit.command.words;
    if (words.size() >= 3 && words[0].text == "sh") {
      shell::Payload payload;
      payload.text = words[2].text;
      payload.arguments.assign(words.begin() + 3, words.end());
      payload.tolerant = tolerant;
      visit.payloads.push_back(payload);
    }
    if (words.size() == 2 && words[0].text == "run") {
      shell::Payload payload;
      payload.text = words[1].text;
      payload.same_shell = true;
      payload.tolerant = tolerant;
      visit.payloads.push_back(payload);
    }
    if (words.size() == 1 && words[0].text == "both") {
      visit.payloads.push_back({"w 1; w 2", {}, {}, false, false});
      visit.payloads.push_back({"w 3", {}, {}, false, false});
    }
  });
  return ended(shown, outcome);
}

}  // namespace

TEST_CASE("shell: walk follows the strings it is given") {
  check(
      {
          {"w a; w b", "w a ; w b"},
          {"sh -c 'w a; w b'; w c", "sh -c <w a; w b> ; w a ; w b ; w c"},
          {"sh -c 'sh -c \"w a\"'", "sh -c <sh -c \"w a\"> ; sh -c <w a> ; w a"},
          {"sh -c 'w \"$@\" $0' z 'a b'", "sh -c <w \"$@\" $0> z <a b> ; w <a b> z"},
          {"X=1; run 'w $X; X=2'; w $X", "[X=1] ; run <w $X; X=2> ; w 1 ; [X=2] ; w 2"},
          {"run 'cd /d; f() { w a; }'; f", "run <cd /d; f() { w a; }> ; cd /d ; w a ; f ; w a"},
          {"both; w 4", "both ; w 1 ; w 2 ; w 3 ; w 4"},
          {"echo a | w", "echo a ; w <- echo a"},
          {"v a | w b | u c", "v a ; w b <- v a ; u c <- w b"},
          // A filter lets through what the command before it writes, also behind another pipeline.
          {"v a | cat | w b", "v a ; cat <- v a ; w b <- v a"},
          {"{ v a | w b; u c; } | cat | w d", "v a ; w b <- v a ; u c ; cat ; w d <- u c"},
          {"w; v", "w ; v"},
          {"sh -c \"w $X\"", "sh -c <w @> ; w @"},
          {"sh -c 'w \"a'; w b", "sh -c <w \"a> !parse"},
      },
      [](std::string_view script) { return walked(script); });
  CHECK(walked("sh -c 'w x; w \"a'; w b", true) == "sh -c <w x; w \"a> ; w x ; w b");
  // An exported variable is seen by a shell of its own.
  CHECK(support::has(walked("export X=1; sh -c 'w $X'"), "; w 1"));
  CHECK(support::has(walked("X=1 sh -c 'w $X'"), "; w 1"));
}

TEST_CASE("shell: walk is bounded by depth") {
  int visits = 0;
  const shell::Outcome outcome = shell::walk("w", {}, [&visits](const shell::Visit& visit) {
    ++visits;
    visit.payloads.push_back({"w", {}, {}, false, false});
  });
  CHECK(!outcome.complete);
  CHECK(outcome.error.code == ErrorCode::limit);
  CHECK(support::has(outcome.error.message, "levels"));
  CHECK(visits <= 34);
  CHECK(visits >= 16);

  visits = 0;
  const shell::Outcome wide = shell::walk("w", {}, [&visits](const shell::Visit& visit) {
    ++visits;
    for (int i = 0; i < 4; ++i) visit.payloads.push_back({"w; w", {}, {}, true, true});
  });
  CHECK(!wide.complete);
  CHECK(wide.error.code == ErrorCode::limit);
  CHECK(visits <= 4097);
}

TEST_CASE("shell: parse() of the tests gives what walk() visits") {
  const std::string_view script =
      "X=a; f() { w $X \"$@\"; }; for i in 1 2; do f $i | v; done; eval 'w b'";
  std::vector<std::string> visited;
  const shell::Outcome outcome = shell::walk(script, {}, [&visited](const shell::Visit& visit) {
    visited.push_back(words_of(visit.command));
  });
  const support::Script result = parsed(script);
  CHECK(outcome.complete);
  CHECK(result.complete);
  REQUIRE(visited.size() == result.commands.size());
  for (std::size_t i = 0; i < visited.size(); ++i)
    CHECK(visited[i] == words_of(result.commands[i]));
  CHECK(contains(result, "w a 2"));
}
