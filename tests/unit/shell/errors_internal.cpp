// Dialects, what is no script, and limits.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

namespace shell = codeexec::shell;
using codeexec::ErrorCode;
using shell::Dialect;
using support::options_of;
using support::parsed;
using support::repeat;
using support::told;
using support::told_by_posix;
using namespace std::string_view_literals;

namespace {

// What holds of every outcome.
void check_sound(std::string_view text, const support::Script& script,
                 const shell::Limits& limits) {
  CAPTURE(std::string(text.substr(0, 200)));
  const auto in_range = [&text](std::size_t begin, std::size_t end) {
    return begin <= end && end <= text.size();
  };
  CHECK(script.commands.size() <= limits.max_commands);
  CHECK(script.error.offset <= text.size());
  if (script.complete) {
    CHECK(script.error.message.empty());
  } else {
    CHECK(!script.error.message.empty());
    CHECK(script.error.message.find('\n') == std::string::npos);
    CHECK((script.error.code == ErrorCode::parse || script.error.code == ErrorCode::limit));
  }
  std::size_t words = 0;
  std::size_t bytes = 0;
  bool sound = true;
  for (const shell::Command& command : script.commands) {
    sound = sound && in_range(command.begin, command.end) && command.depth <= limits.max_depth;
    for (const shell::Word& word : command.words) {
      sound = sound && in_range(word.begin, word.end);
      bytes += word.text.size();
    }
    for (const shell::Assignment& each : command.assignments)
      sound = sound && in_range(each.value.begin, each.value.end) && !each.name.empty();
    for (const shell::Redirection& each : command.redirections)
      sound = sound && in_range(each.target.begin, each.target.end) && each.fd >= -1;
    words += command.words.size();
    if (command.input.kind != shell::Input::Kind::known)
      sound = sound && command.input.text.size() == 0;
  }
  for (const shell::Definition& each : script.definitions)
    sound = sound && in_range(each.begin, each.end) && !each.name.empty();
  CHECK(sound);
  CHECK(words <= limits.max_words);
  CHECK(bytes <= limits.max_text);
}

}  // namespace

// Dialects ----------------------------------------------------------------------------------------

TEST_CASE("shell: what the dialects read differently") {
  struct Pair {
    const char* script;
    const char* bash;
    const char* posix;
  };
  const Pair pairs[] = {
      {"w {a,b}", "w a b", "w {a,b}"},
      {"w $'a'", "w a", "w $a"},
      {"w $\"a\"", "w a", "w $a"},
      {"w a &>f", "w a", "w a ;"},
      {"w a |& v", "w a ; v", "!parse"},
      {"w <<< a", "w", "!parse"},
      {"w <(v)", "v ; w @", "!parse"},
      {"[[ a ]]", "[[ a ]]", "[[ a ]]"},
      {"X=a; X+=b; w $X", "[X=a] ; [X=ab] ; w ab", "[X=a] ; X+=b ; w a"},
      {"function f { w a; }", "w a", "function f { w a !parse"},
      {"X=(a)", "[X=a]", "[X=<>] !parse"},
      {"time w a", "w a", "time w a"},
      {"echo 'a\\tb' | w", "echo a\\tb ; w", "echo a\\tb ; w"},
  };
  for (const Pair& pair : pairs) {
    CAPTURE(pair.script);
    std::string posix = told_by_posix(pair.script);
    // &> is a & and a redirection alone.
    if (posix == "w a ; ") posix = "w a ;";
    CHECK(told(pair.script) == pair.bash);
    CHECK(posix == pair.posix);
    CHECK(parsed(pair.script).dialect_dependent);
  }
  for (const char* const script :
       {"w a", "w 'a b' \"$X\" ${X:-a}", "if w; then v; fi", "cat <<E\n$X\nE", "f() { w; }; f",
        "w a >f 2>&1", "for i in a; do w $i; done", "w {} a}b {a}", "w '{a,b}' \"$'a'\" '[[' x",
        "w $(v `u`) $((1 + 1))", "cd d && w -x 2>&1 | v -20", "echo a b | w"}) {
    CAPTURE(script);
    CHECK(!parsed(script).dialect_dependent);
    CHECK(told(script) == told_by_posix(script));
  }
}

// Errors ------------------------------------------------------------------------------------------

TEST_CASE("shell: syntax errors") {
  struct Bad {
    std::string_view script;
    const char* before;  // what has been told
  };
  const Bad scripts[] = {
      {"w 'a", ""},
      {"w \"a", ""},
      {"w a; w 'b", "w a"},
      {"w $(v", "v"},
      {"w `v", ""},
      {"w \"$(v\"", ""},
      {"w ${X", ""},
      {"w ${X:-'a}", ""},
      {"w $((1", ""},
      {"w &&", "w"},
      {"w |", "w"},
      {"w ||", "w"},
      {"&& w", ""},
      {"| w", ""},
      {"; w", ""},
      {"w ;; w", "w"},
      {"w (", ""},
      {"w )", "w"},
      {")", ""},
      {"}", ""},
      {"(", ""},
      {"()", ""},
      {"{ w", "w"},
      {"{ w; )", "w"},
      {"( w; }", ""},
      {"fi", ""},
      {"then w", ""},
      {"do w; done", ""},
      {"done", ""},
      {"esac", ""},
      {"if w; then", "w"},
      {"if then w; fi", ""},
      {"while w; done", "w"},
      {"for", ""},
      {"for i in a; w; done", ""},
      {"for i a; do w; done", ""},
      {"case a in a) w", "w"},
      {"case", ""},
      {"case a", ""},
      {"f() w;  f() {", ""},
      {"f( a", ""},
      {"w > ", ""},
      {"w > ;", ""},
      {"w <<", ""},
      {"w 2>&", ""},
      {"w\0a"sv, ""},
      {"\0"sv, ""},
      {"w a\0"sv, ""},
      {"w a\nw 'b\n", "w a"},
  };
  for (const Bad& bad : scripts) {
    CAPTURE(std::string(bad.script));
    const support::Script result = parsed(bad.script);
    check_sound(bad.script, result, {});
    CHECK(!result.complete);
    CHECK(result.error.code == ErrorCode::parse);
    CHECK(!parsed(bad.script, Dialect::posix).complete);
  }
  // Bash tells a line before it reads the next one.
  CHECK(told("w a\nw b\nw 'c") == "w a ; w b !parse");
  CHECK(parsed("w a\nw b\nfi").error.offset == 8);
  CHECK(parsed("w a\nw 'b").error.offset == 6);
  CHECK(parsed("w a\0b"sv).error.offset == 3);
  CHECK(parsed("w a; )").error.offset == 5);
  for (const char* const script : {"[[ a", "[[ a ]", "((1)", "X=(a", "X=( a", "w <(v", "w <<<",
                                   "coproc", "function f (", "w $((a+$(b c)", "w <<E\n$(v"}) {
    CAPTURE(script);
    check_sound(script, parsed(script), {});
    CHECK(!parsed(script).complete);
  }
}

TEST_CASE("shell: every beginning of a script is read or refused soundly") {
  const std::string_view script =
      "X=a; if w \"$X\" | v ${Y:-`u 'q' \\`t\\``}; then f() { w $(cat <<E\n$X\nE\n) & }; else\n"
      "for i in {1..3} $'a\\'b'; do case $i in (a|b) [[ $i =~ (x) ]];; esac; done; fi >f 2>&1\n"
      "eval 'w \"$@\"'; arr=(1 2); ((x++)); w <(v) <<< z $((1+2)) # end";
  REQUIRE(parsed(script).complete);
  for (std::size_t size = 0; size <= script.size(); ++size) {
    const std::string_view part = script.substr(0, size);
    for (const Dialect dialect : {Dialect::bash, Dialect::posix})
      check_sound(part, parsed(part, dialect), {});
  }
  for (std::size_t i = 0; i < script.size(); ++i) {
    for (const char c : {'\'', '"', '`', '(', ')', '{', '}', '$', '\\', ';', '\n', '<', '\0'}) {
      std::string changed(script);
      changed[i] = c;
      check_sound(changed, parsed(changed), {});
    }
  }
}

TEST_CASE("shell: random scripts are read or refused soundly") {
  const char* const pieces[] = {
      "w",    " ",       "\n",  ";",     "&",         "|",      "(",    ")",    "{",
      "}",    "<",       ">",   "$",     "`",         "'",      "\"",   "\\",   "#",
      "if",   "then",    "fi",  "do",    "done",      "for",    "case", "in",   "e",
      "esac", "[[",      "]]",  "((",    "))",        "$(",     "${",   "X=",   "$X",
      "<<E",  "\nE\n",   "f()", "eval ", "cd ",       "{a,b}",  "$'",   "\xff", "\xc3\xa9",
      "&>",   "<(",      "!",   "while", "function ", "alias ", "*",    "~",    "=",
      ":-",   "set -- ", "$@",  "echo ", "printf "};
  support::Random random;
  shell::Limits limits;
  limits.max_commands = 500;
  limits.max_words = 2000;
  limits.max_text = 10000;
  limits.max_depth = 12;
  for (int round = 0; round < 20000; ++round) {
    std::string script;
    for (std::size_t length = random.below(24); length > 0; --length)
      script += pieces[random.below(sizeof pieces / sizeof *pieces)];
    shell::Options options = options_of(random.below(2) ? Dialect::bash : Dialect::posix);
    options.limits = limits;
    const support::Script result = support::parse(script, options);
    check_sound(script, result, limits);
  }
}

TEST_CASE("shell: bytes that are not UTF-8 are kept") {
  CHECK(told("w \xff\xc3 'a\x80'") == "w \xff\xc3 a\x80");
  CHECK(told("w \xef\xbb\xbf") == "w \xef\xbb\xbf");
  CHECK(told("X=\xfe; w $X") == "[X=\xfe] ; w \xfe");
  // A no-break space is no blank.
  CHECK(told("w\xc2\xa0"
             "a") ==
        "w\xc2\xa0"
        "a");
}

// Limits ------------------------------------------------------------------------------------------

TEST_CASE("shell: limits are errors that name the limit") {
  const auto check_limit = [](std::string_view script, const shell::Limits& limits,
                              const char* what) {
    CAPTURE(std::string(script.substr(0, 100)));
    shell::Options options;
    options.limits = limits;
    const support::Script result = support::parse(script, options);
    CHECK(!result.complete);
    CHECK(result.error.code == ErrorCode::limit);
    CHECK(support::has(result.error.message, what));
    check_sound(script, result, limits);
  };
  shell::Limits limits;
  limits.max_depth = 5;
  check_limit(repeat("( ", 6) + "w" + repeat(" )", 6), limits, "5 levels");
  check_limit(repeat("{ ", 6) + "w; " + repeat("}; ", 6), limits, "5 levels");
  check_limit("w " + repeat("$(w ", 6) + repeat(")", 6), limits, "5 levels");
  check_limit("w " + repeat("\"$(w ", 6) + repeat(")\"", 6), limits, "5 levels");
  check_limit("w " + repeat("${a:-", 6) + repeat("}", 6), limits, "5 levels");
  check_limit("w " + repeat("$((1+", 6) + "1" + repeat("))", 6), limits, "5 levels");
  check_limit(repeat("if w; then ", 6) + "w; " + repeat("fi; ", 6), limits, "5 levels");
  check_limit(repeat("while w; do ", 6) + "w; " + repeat("done; ", 6), limits, "5 levels");
  check_limit(repeat("for i in a; do ", 6) + "w; " + repeat("done; ", 6), limits, "5 levels");
  check_limit(repeat("case a in a) ", 6) + "w; " + repeat("esac; ", 6), limits, "5 levels");
  check_limit(repeat("f() { ", 6) + "w; " + repeat("}; ", 6), limits, "5 levels");
  check_limit("eval eval eval eval eval eval eval w", limits, "5 levels");
  check_limit(
      "f1() { w; }; f2() { f1; }; f3() { f2; }; f4() { f3; }; f5() { f4; }; f6() { f5; }; "
      "f7() { f6; }; f7",
      limits, "5 levels");
  // A substitution is one level, as any other construct is.
  shell::Options five;
  five.limits = limits;
  CHECK(support::parse("w " + repeat("$(w ", 5) + repeat(")", 5), five).complete);
  CHECK(support::parse(repeat("( ", 5) + "w" + repeat(" )", 5), five).complete);
  limits.max_depth = 0;
  check_limit("( w )", limits, "0 levels");

  limits = {};
  limits.max_commands = 10;
  check_limit(repeat("w\n", 11), limits, "10 commands");
  check_limit("w; " + repeat("w $(v); ", 10), limits, "10 commands");
  check_limit("f() { w $1; w $1; w $1; }; f 1; f 2; f 3", limits, "10 commands");
  limits = {};
  limits.max_written = 10;
  check_limit(repeat("w\n", 11), limits, "10 commands");
  check_limit("w $(" + repeat("w;", 10) + ")", limits, "10 commands");
  check_limit(repeat("eval 'w; w; w; w'; ", 9), limits, "40 commands");
  limits = {};
  limits.max_words = 10;
  check_limit("w 1 2 3 4 5 6 7 8 9 10", limits, "10 words");
  check_limit("w {1..10}", limits, "10 words");
  check_limit(repeat("w a; ", 6), limits, "10 words");
  limits = {};
  limits.max_text = 1000;
  check_limit("w " + std::string(1001, 'a'), limits, "1000 bytes");
  check_limit("X=" + std::string(600, 'a') + "; w $X; w $X", limits, "1000 bytes");
  check_limit("X=aaaaaaaaaa; " + repeat("X=$X$X; ", 10), limits, "1000 bytes");

  // Just within them.
  const auto complete = [](const std::string& script, const shell::Limits& bounds) {
    shell::Options options;
    options.limits = bounds;
    return support::parse(script, options).complete;
  };
  limits = {};
  limits.max_commands = 10;
  CHECK(complete(repeat("w\n", 10), limits));
  // What is the same in each call is told once.
  CHECK(complete("f() { w; w; w; }; f; f; f; f", limits));
  limits = {};
  limits.max_written = 10;
  CHECK(complete("f() { for i in 1 2 3 4 5 6 7 8; do w $i $1; done; }; f 1; f 2; f 3", limits));
  limits = {};
  limits.max_words = 10;
  CHECK(complete("w 1 2 3 4 5 6 7 8 9", limits));
  CHECK(complete(repeat("( ", 20) + "w" + repeat(" )", 20), {}));
}

TEST_CASE("shell: little text never costs much") {
  const std::string many(20000, 'x');
  const std::string scripts[] = {
      "a=aaaaaaaa; " + repeat("a=$a$a; ", 2000) + "w $a",
      "w " + repeat("{a,b}", 2000),
      "w {1..1000000000}",
      "w {1..100000}{1..100000}",
      repeat("$(", 20000),
      repeat("`", 20001),
      repeat("(", 20000),
      repeat("((", 20000),
      repeat("{ ", 20000),
      repeat("${a:-", 20000),
      repeat("\"$(", 20000),
      repeat("if ", 20000),
      repeat("f() { ", 5000),
      repeat("<<E ", 5000),
      repeat("w <<E\n", 5000),
      repeat("$((", 20000),
      repeat("[[ ( ", 5000),
      repeat("! ", 20000) + "w",
      repeat("X=1 ", 20000) + "w",
      repeat("eval ", 5000) + "w",
      repeat("case a in a) ", 5000),
      "f() { f; f; }; f",
      "f() { g; g; }; g() { f; f; }; f",
      "f1() { w; w; }; " +
          [] {
            std::string chain;
            for (int i = 2; i < 25; ++i) {
              const std::string inner = "f" + std::to_string(i - 1);
              chain += "f" + std::to_string(i) + "() { " + inner + "; " + inner + "; }; ";
            }
            return chain + "f24";
          }(),
      repeat("for i in 1 2 3 4 5 6 7 8 9 10; do ", 9) + "w $i; " + repeat("done; ", 9),
      [] {
        std::string script;
        for (int i = 0; i < 40; ++i)
          script +=
              "if v; then a" + std::to_string(i) + "=1; else a" + std::to_string(i) + "=2; fi\n";
        script += "w ";
        for (int i = 0; i < 40; ++i) script += "$a" + std::to_string(i);
        return script;
      }(),
      "printf '%1000000000s' a | w",
      "printf '%s\\n' {1..60000} | w; printf '%s\\n' {1..60000} | w",
      "w $(printf '%*s' 1000000000 a)",
      "set -- " + repeat("a ", 20000) + "; for i; do for j; do w; done; done",
      "alias a='a a'\n" + repeat("a ", 5000),
      "alias a='b b' b='c c' c='d d' d='a a'\na\na\n",
      "IFS=x; X=" + many + "; w $X; w $X; w $X; w $X",
      "X='" + repeat("$X", 5000) + "'; eval \"$X\"",
      "X='eval \"$X$X\"'; eval \"$X\"",
      "trap 'trap \"w a\" EXIT; w' EXIT",
      "X[999999999999]=a; w ${X[999999999999]} ${X[@]}",
      "shift 99999999999999999999; w ${99999999999999999999}",
      "w 99999999999999999999>f",
      "while w; do X=a$X; done; w $X",
      "w ${" + many + "}",
      "w " + repeat("\\\n", 20000),
      repeat("#", 40000),
      repeat("a=$a$b b=$b$a ", 2000) + "; w",
  };
  for (const std::string& script : scripts) {
    for (const Dialect dialect : {Dialect::bash, Dialect::posix})
      check_sound(script, parsed(script, dialect), {});
  }
}
