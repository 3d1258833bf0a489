// Sessions, from inside: the script that a shell gets, and how the text is read that it writes.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"
#include "executor/executor_internal.hpp"

using codeexec::ErrorCode;
using codeexec::parse_session_state;
using codeexec::session_script;
using codeexec::Variables;

namespace {

// What such a shell tells, as the wrapper brings it.
std::string told(const std::string& folder, const std::string& before, const std::string& after) {
  return "m\n" + before + "m\n" + folder + "\nm\n" + after + "m\n";
}

}  // namespace

TEST_CASE("the lists of all shells are read") {
  struct Case {
    const char* text;
    Variables variables;
  };
  const Case cases[] = {
      {"", {}},
      // dash and busybox
      {"export A='it'\"'\"'s'\nexport J=''\"'\"\nexport E=''\nexport NOVAL\n",
       {{"A", "it's"}, {"J", "'"}, {"E", ""}}},
      {"export C='x\ny'\nexport D='\001\033\351\377z'\n",
       {{"C", "x\ny"}, {"D", "\001\033\351\377z"}}},
      {"export C='m\nn'\n", {{"C", "m\nn"}}},
      // bash
      {"declare -x B=\"a\\\"b\\$c\\`d\\\\e!\\n\"\ndeclare -ix N=\"5\"\ndeclare -x NOVAL\n",
       {{"B", "a\"b$c`d\\e!\\n"}, {"N", "5"}}},
      {"declare -x D=$'\\001\\E\\351\\377z\\'\\\\\\\"'\ndeclare -x I=$'tab\\there\\r'\n",
       {{"D", "\001\033\351\377z'\\\""}, {"I", "tab\there\r"}}},
      {"declare -rx R=\"1\"\ndeclare -ax L=([0]=\"a b\" [1]=\"c\")\ndeclare -x Z=\"1\"\n",
       {{"Z", "1"}}},
      // ksh93, mksh
      {"export D=$'\\x01\\E\\xe9\\xffz'\nexport J=\\'\nexport F=simple-1/2\nexport H='#x ~ * ('\n",
       {{"D", "\001\033\351\377z"}, {"J", "'"}, {"F", "simple-1/2"}, {"H", "#x ~ * ("}}},
      {"typeset -x -r R=1\ntypeset -x A=$'a\\nb'\n", {{"A", "a\nb"}}},
      // zsh, yash
      {"export A='it'\\''s'\nexport -i10 SHLVL=1\nexport -r R=1\nexport -i N=5\n",
       {{"A", "it's"}, {"SHLVL", "1"}, {"N", "5"}}},
      {"export D=$'\\C-A\\C-[\\M-i\\M-\\C-?z\\C-?'\n", {{"D", "\001\033\351\377z\177"}}},
      {"export a.b=bad\nexport A=it\\'s\nexport 1x=bad\n", {{"A", "it's"}}},
      {"export A=1\nexport A=2\n", {{"A", "1"}, {"A", "2"}}},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.text));
    const auto state = parse_session_state(told("/a b", c.text, "export X=1\n"), "m");
    REQUIRE_MESSAGE(state, state.error().message);
    CHECK(state->work_dir == "/a b");
    CHECK(state->before == c.variables);
    CHECK(state->variables == Variables{{"X", "1"}});
    CHECK(parse_session_state(told("/", "", c.text), "m")->variables == c.variables);
  }
  CHECK(parse_session_state(told("/new\nline\xff", "", ""), "m")->work_dir == "/new\nline\xff");
}

TEST_CASE("what is not such a list is none") {
  for (const char* text : {"export A='",
                           "export A=1",
                           "export A='x'\nexport B=\"",
                           "A=1\n",
                           "echo hello\n",
                           "\n",
                           "export  \nx",
                           "export A=$x\n",
                           "export A=$(id)\n",
                           "export A=`id`\n",
                           "export A=1;id\n",
                           "export A=1 B=2\n",
                           "export A=1 >x\n",
                           "export A=a&b\n",
                           "export A=$'\\q'\n",
                           "export A=$'\\000'\n",
                           "export A=$'\\x'\n",
                           "export A=$'\\777'\n",
                           "export A=$'x\n",
                           "export A=$'\\",
                           "export A=$'\\M-",
                           "export A=$'\\C-\\q'\n",
                           "export A=\\",
                           "declare -x A=(1 2)\n",
                           "readonly A=1\n",
                           "export\tA=1\n"}) {
    CAPTURE(std::string(text));
    const auto state = parse_session_state(told("/", "", text), "m");
    CHECK_FALSE(state);
    CHECK(state.error().code == ErrorCode::parse);
    CHECK_FALSE(parse_session_state(told("/", text, ""), "m"));
  }
  // As many levels as would use up any stack.
  std::string nested = "export A=$'";
  for (int level = 0; level < 1000000; ++level) nested += "\\M-";
  CHECK_FALSE(parse_session_state(told("/", nested + "x'\n", ""), "m"));
  const std::string good = told("/a", "export A=1\n", "export A=2\n");
  REQUIRE(parse_session_state(good, "m"));
  for (const std::string& text :
       {std::string(), "x" + good, "junk\n" + good, good + "x", good + "m\n", good + good,
        good.substr(2), told("a", "", ""), told("", "", ""), told("/\nm", "", ""),
        told("/a\njunk\nm\nm", "", ""), told("/", "", std::string("export A='\0'\n", 13))}) {
    CAPTURE(text);
    CHECK_FALSE(parse_session_state(text, "m"));
  }
  CHECK_FALSE(parse_session_state(good, "n"));
  CHECK_FALSE(parse_session_state(good, ""));
  CHECK_FALSE(parse_session_state("\n\n/a\n\n\n", ""));
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_FALSE(parse_session_state(good.substr(0, size), "m"));
}

TEST_CASE("any bytes are read without harm") {
  const std::string good =
      told("/a", "declare -x A=$'\\001\\C-\\M-x'\nexport B='it'\"'\"'s'\n", "export A=2\n");
  const std::string bytes("'\"\\$ \n=-mx0\0\377(", 14);
  support::Random random;
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (std::size_t changes = 1 + random.below(4); changes > 0; --changes) {
      const std::size_t at = random.below(text.size());
      if (random.below(2) == 0)
        text[at] = bytes[random.below(bytes.size())];
      else
        text.insert(at, 1, bytes[random.below(bytes.size())]);
    }
    const auto state = parse_session_state(text, "m");
    if (!state) continue;
    ++accepted;
    CHECK(support::begins(state->work_dir, "/"));
    for (const auto& variable : state->variables) CHECK_FALSE(variable.first.empty());
  }
  CHECK(accepted > 0);
  CHECK(accepted < 20000);
}

TEST_CASE("a script for sessions is for POSIX shells") {
  for (const char* shell : {"sh", "/bin/sh", "/bin/dash", "bash", "/x/ash", "zsh"})
    CHECK_MESSAGE(!session_script(shell, 3, "m", 1).empty(), shell);
  for (const char* shell : {"", "/bin/", "fish", "/bin/shx", "xsh", "/bin/sh/", "python3"})
    CHECK_MESSAGE(session_script(shell, 3, "m", 1).empty(), shell);
}
