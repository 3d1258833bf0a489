// simple_commands(): what a script would run, for users of the library.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace {

// Words between < and >, with @ for what is not known; assignments in brackets.
std::string listed(std::string_view script) {
  const auto commands = codeexec::simple_commands(script);
  if (!commands) return commands.error().code == codeexec::ErrorCode::parse ? "!parse" : "!limit";
  std::string result;
  for (const codeexec::SimpleCommand& command : *commands) {
    for (const std::string& text : command.assignments) result += "[" + text + "]";
    for (const std::string& text : command.words) result += "<" + text + ">";
    result += ";";
  }
  for (char& c : result) c = c == '\0' ? '@' : c;
  return result;
}

}  // namespace

TEST_CASE("simple_commands: words, assignments, all branches, functions and substitutions") {
  CHECK(listed("") == "");
  CHECK(listed("X=1 ls -l 'a b' \"$D\"") == "[X=1]<ls><-l><a b><@>;");
  CHECK(listed("a && b || c; d | e &") == "<a>;<b>;<c>;<d>;<e>;");
  CHECK(listed("if a; then b; else c; fi > d") == "<a>;<b>;<c>;");
  CHECK(listed("for i in 1 2; do w $i; done") == "<w><1>;<w><2>;");
  CHECK(listed("f() { w $1; }; f x") == "<w><@>;<f><x>;<w><x>;");
  CHECK(listed("echo $(w) `v`; eval 'u; s'") == "<w>;<v>;<echo><@><@>;<eval><u; s>;<u>;<s>;");
  CHECK(listed("[[ a == b ]]") == "<[[><a><==><b><]]>;");
}

TEST_CASE("simple_commands: places, errors and limits") {
  const auto commands = codeexec::simple_commands("ls; rm  -r x");
  REQUIRE(commands.has_value());
  REQUIRE(commands->size() == 2);
  CHECK((*commands)[1].begin == 4);
  CHECK((*commands)[1].end == 12);
  CHECK(listed("ls; 'a") == "!parse");
  CHECK(listed(std::string_view("a\0b", 3)) == "!parse");
  CHECK(codeexec::simple_commands("ls; )").error().offset == 4);
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "w;";
  CHECK(listed(many) == "!limit");
}
