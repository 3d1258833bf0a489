// What is told of a command beside its words: redirections, input, flags, places and bytes.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

namespace shell = codeexec::shell;
using shell::Dialect;
using support::all;
using support::check;
using support::ended;
using support::input_of;
using support::parsed;
using support::Row;
using support::text_of;
using support::words_of;

namespace {

std::string redirection_of(const shell::Redirection& redirection) {
  using Kind = shell::Redirection::Kind;
  const std::string fd = std::to_string(redirection.fd);
  const std::string target = text_of(redirection.target.text);
  switch (redirection.kind) {
    case Kind::read:
      return fd + "<" + target;
    case Kind::write:
      return fd + ">" + target;
    case Kind::append:
      return fd + ">>" + target;
    case Kind::read_write:
      return fd + "<>" + target;
    case Kind::duplicate:
      return fd + "&" + target;
    case Kind::here_document:
      return fd + "<<" + target;
    case Kind::here_string:
      return fd + "<<<" + target;
  }
  return "?";
}

// "w a (1>file) (2&1) ; ..."
std::string redirected(std::string_view script, Dialect dialect = Dialect::bash) {
  return all(parsed(script, dialect), [](const shell::Command& command) {
    std::string result = words_of(command);
    for (const shell::Redirection& redirection : command.redirections) {
      if (!result.empty()) result += ' ';
      result += "(" + redirection_of(redirection) + ")";
    }
    return result;
  });
}

// Only the commands `w`, each with its directory: "a:/x ; b:d1".
std::string directories(std::string_view script, std::string_view work_dir = "/x") {
  shell::Options options;
  options.work_dir = std::string(work_dir);
  const support::Script result = support::parse(script, options);
  std::string shown;
  for (const shell::Command& command : result.commands) {
    if (command.words.size() < 2 || command.words[0].text != "w") continue;
    if (!shown.empty()) shown += " ; ";
    shown += command.words[1].text + ":" + text_of(command.work_dir.text);
  }
  return ended(shown, result);
}

// The commands `w` with the letters of what they are: p)ipeline, b)ackground, d)efined, f)ork bomb.
std::string flags(std::string_view script) {
  const support::Script result = parsed(script);
  std::string shown;
  for (const shell::Command& command : result.commands) {
    if (command.words.empty()) continue;
    if (!shown.empty()) shown += " ; ";
    shown += words_of(command) + ":";
    if (command.pipeline) shown += 'p';
    if (command.background) shown += 'b';
    if (command.defined) shown += 'd';
    if (command.fork_bomb) shown += 'f';
  }
  return ended(shown, result);
}

// The bytes of the script that each word was written in.
std::string written(std::string_view script) {
  return all(parsed(script), [script](const shell::Command& command) {
    std::string result;
    for (const shell::Word& word : command.words) {
      if (!result.empty()) result += ' ';
      result += "{" + std::string(script.substr(word.begin, word.end - word.begin)) + "}";
    }
    for (const shell::Assignment& each : command.assignments)
      result += "[" +
                std::string(script.substr(each.value.begin, each.value.end - each.value.begin)) +
                "]";
    for (const shell::Redirection& each : command.redirections)
      result += "(" +
                std::string(script.substr(each.target.begin, each.target.end - each.target.begin)) +
                ")";
    return result;
  });
}

std::string commands_written(std::string_view script) {
  return all(parsed(script), [script](const shell::Command& command) {
    return "{" + std::string(script.substr(command.begin, command.end - command.begin)) + "}";
  });
}

}  // namespace

// Redirections ------------------------------------------------------------------------------------

TEST_CASE("shell: redirections") {
  const Row both[] = {
      {"w >f", "w (1>f)"},
      {"w > f a", "w a (1>f)"},
      {">f w a", "w a (1>f)"},
      {"w >>f", "w (1>>f)"},
      {"w >|f", "w (1>f)"},
      {"w <f", "w (0<f)"},
      {"w <>f", "w (0<>f)"},
      {"w 2>f", "w (2>f)"},
      {"w 2 >f", "w 2 (1>f)"},
      {"w a2>f", "w a2 (1>f)"},
      {"w \\2>f", "w 2 (1>f)"},
      {"w '2'>f", "w 2 (1>f)"},
      {"w 2>&1", "w (2&1)"},
      {"w >&2", "w (1&2)"},
      {"w <&3", "w (0&3)"},
      {"w 3<&-", "w (3&-)"},
      {"w 2>&1 >f | v", "w (2&1) (1>f) ; v"},
      {"w >f>g", "w (1>f) (1>g)"},
      {"w 3<>f 4>>g", "w (3<>f) (4>>g)"},
      {">f", "(1>f)"},
      {"w >'a b'", "w (1><a b>)"},
      {"X=f; w >$X", "[X=f] ; w (1>f)"},
      {"w >$X", "w (1>@)"},
      {"w >\"$X/a\"", "w (1>@/a)"},
      {"w <<E\na b\nE", "w (0<<<a b\n>)"},
      {"w 3<<E\na\nE", "w (3<<<a\n>)"},
      {"w <<E\nE", "w (0<<<>)"},
      {"w <<'E'\n$X\nE", "w (0<<<$X\n>)"},
      {"w <<E\n$X\nE", "w (0<<<@\n>)"},
      {"w <<-E\n\ta\n\t\tb\n\tE", "w (0<<<a\nb\n>)"},
      {"w <<A <<B\n1\nA\n2\nB", "w (0<<<1\n>) (0<<<2\n>)"},
      {"w 5000>f", "w (-1>f)"},
      {"w > ", "!parse"},
      {"w > | v", "!parse"},
  };
  check(both, [](std::string_view script) { return redirected(script); });
  check(both, [](std::string_view script) { return redirected(script, Dialect::posix); });
  check(
      {
          {"w &>f", "w (1>f)"},
          {"w >&f", "w (1>f)"},
          {"w &>>f", "w (1>>f)"},
          {"w {fd}>f", "w (-1>f)"},
          {"w {fd}<f a", "w a (-1<f)"},
          {"w {fd} >f", "w {fd} (1>f)"},
          {"w <<<a", "w (0<<<<a>)"},
          {"w <<< 'a b'", "w (0<<<<a b>)"},
          {"w 3<<<a", "w (3<<<<a>)"},
      },
      [](std::string_view script) {
        std::string shown = redirected(script);
        // A word of a here-string without blanks is shown without < and >.
        const std::size_t at = shown.find("<<<a)");
        if (at != std::string::npos) shown.replace(at, 5, "<<<<a>)");
        return shown;
      });
  CHECK(shell::Redirection{shell::Redirection::Kind::write, 1, {}}.writes());
  CHECK(shell::Redirection{shell::Redirection::Kind::append, 1, {}}.writes());
  CHECK(shell::Redirection{shell::Redirection::Kind::read_write, 0, {}}.writes());
  CHECK(!shell::Redirection{shell::Redirection::Kind::read, 0, {}}.writes());
  CHECK(!shell::Redirection{shell::Redirection::Kind::duplicate, 0, {}}.writes());
  CHECK(!shell::Redirection{shell::Redirection::Kind::here_document, 0, {}}.writes());
}

TEST_CASE("shell: redirections of compound commands are not lost") {
  for (const char* const script :
       {"{ w a; } >f", "(w a) >f", "if w a; then w b; fi >f", "while w a; do w b; done >f",
        "for i in a; do w $i; done >f", "case a in a) w a;; esac >f", "f() { w a; } >f; f",
        "{ w a; } 2>&1 >f", "{ { w a; } >f; }"}) {
    CAPTURE(script);
    const support::Script result = parsed(script);
    CHECK(result.complete);
    bool found = false;
    for (const shell::Command& command : result.commands)
      for (const shell::Redirection& each : command.redirections)
        found = found || (each.writes() && each.target.text == "f");
    CHECK(found);
  }
}

// Input -------------------------------------------------------------------------------------------

TEST_CASE("shell: what a command reads") {
  const Row rows[] = {
      {"w", "inherited"},
      {"w <f", "unknown"},
      {"w </dev/null", "="},
      {"w <<E\na\nb\nE", "=a\nb\n"},
      {"w <<'E'\n$X\nE", "=$X\n"},
      {"w <<E\n$X\nE", "=@\n"},
      {"w <<E <<F\na\nE\nb\nF", "=b\n"},
      {"w <<E <f\na\nE", "unknown"},
      {"w <f <<E\na\nE", "=a\n"},
      {"w 3<<E\na\nE", "inherited"},
      {"echo a | w", "=a\n"},
      {"echo 'a  b' c | w", "=a  b c\n"},
      {"echo -n a | w", "=a"},
      {"echo | w", "=\n"},
      {"printf a | w", "=a"},
      {"printf '%s\\n' a b | w", "=a\nb\n"},
      {"printf '%s %s;' a b c | w", "=a b;c ;"},
      {"printf '%%\\t\\101' | w", "=%\tA"},
      {"printf '%b' 'a\\nb' | w", "=a\nb"},
      {"printf %d 12 | w", "=12"},
      {"cat <<E | w\na\nE", "=a\n"},
      {"echo $X | w", "=@\n"},
      {"v | w", "unknown"},
      {"v <<E | w\na\nE", "unknown"},
      {"cat f | w", "unknown"},
      {"echo a | w <f", "unknown"},
      {"echo a | { w; }", "=a\n"},
      {"echo a | (w)", "=a\n"},
      {"{ w; } <<E\na\nE", "=a\n"},
      {"f() { w; }; f <<E\na\nE", "=a\n"},
      {"echo a >f | w", "="},
      {"for i in x; do w; done <<E\na\nE", "=a\n"},
  };
  check(rows, [](std::string_view script) { return input_of(script); });
  check(rows, [](std::string_view script) { return input_of(script, Dialect::posix); });
  check({{"w <<<a", "=a\n"},
         {"w <<< 'a  b'", "=a  b\n"},
         {"w <<< $X", "=@\n"},
         {"echo -e 'a\\tb' | w", "=a\tb\n"},
         {"echo 'a\\tb' | w", "=a\\tb\n"},
         {"v |& w", "unknown"}},
        [](std::string_view script) { return input_of(script); });
  CHECK(input_of("echo 'a\\tb' | w", Dialect::posix) == "=a\tb\n");
  CHECK(input_of("echo -e a | w", Dialect::posix) == "=-e a\n");
  // What a pipe or a redirection into a group leaves for its second command cannot be known.
  CHECK(input_of("echo a | { v; w; }") != "=@");
}

// Flags -------------------------------------------------------------------------------------------

TEST_CASE("shell: the flags of commands") {
  check(
      {
          {"w a", "w a:"},
          {"w a | w b", "w a:p ; w b:p"},
          {"w a; w b | w c", "w a: ; w b:p ; w c:p"},
          {"{ w a; } | w b", "w a:p ; w b:p"},
          {"(w a) | w b", "w a:p ; w b:p"},
          {"w a &", "w a:b"},
          {"w a & w b", "w a:b ; w b:"},
          {"w a && w b &", "w a:b ; w b:b"},
          {"w a; w b &", "w a: ; w b:b"},
          {"{ w a; w b; } &", "w a:b ; w b:b"},
          {"(w a) &", "w a:b"},
          {"w a | w b &", "w a:pb ; w b:pb"},
          {"coproc w a", "w a:b"},
          {"f() { w a; }", "w a:d"},
          {"f() { w a; }; f", "w a:d ; f: ; w a:"},
          {"f() { w a; }; f &", "w a:d ; f:b ; w a:b"},
          {"f() { w a; }; f | w b", "w a:d ; f:p ; w a:p ; w b:p"},
          {"f() { w a & }", "w a:bd"},
          {"if w a; then w b; fi &", "w a:b ; w b:b"},
      },
      flags);
  const auto bomb = [](std::string_view script) {
    for (const shell::Command& command : parsed(script).commands)
      if (command.fork_bomb) return true;
    return false;
  };
  for (const char* const script :
       {":(){ :|:& };:", ":() { : | : & }; :", "f() { f | f; }; f", "f() { f & f; }; f",
        "f() { f & }; f", "bomb() { bomb | bomb & }; bomb", "f() { g; }; g() { f | f & }; f",
        "function f { f | f & }; f", "f() { (f | f) & }; f", "f() { f $1 | f $1 & }; f a",
        "f(){ f|f& }\nf\n", "f() { if true; then f | f; fi; }; f", "eval 'f() { f|f& }; f'",
        "f() { X=f; $X | $X & }; f", "f() { eval 'f | f &'; }; f"}) {
    CAPTURE(script);
    CHECK(bomb(script));
  }
  for (const char* const script :
       {":(){ :|:& }", "f() { w | w & }; f", "f() { g | g & }; g() { w; }; f", "f() { f; }; f",
        "w ':(){ :|:& };:'", "f() { w a; }; f | f & f", "cat <<E\n:(){ :|:& };:\nE"}) {
    CAPTURE(script);
    CHECK(!bomb(script));
  }
}

TEST_CASE("shell: where cd has led") {
  check(
      {
          {"w a", "a:/x"},
          {"cd d; w a", "a:/x/d"},
          {"cd d && w a", "a:/x/d"},
          {"cd d; cd e; w a", "a:/x/d/e"},
          {"cd /y; w a", "a:/y"},
          {"cd d; cd ..; w a", "a:/x"},
          {"cd d/../e/./f//g/; w a", "a:/x/e/f/g"},
          {"cd /; w a", "a:/"},
          {"cd /..; w a", "a:/"},
          {"(cd d; w a); w b", "a:/x/d ; b:/x"},
          {"{ cd d; }; w a", "a:/x/d"},
          {"cd d | w a; w b", "a:/x ; b:/x"},
          {"w a $(cd d; w b); w c", "b:/x/d ; a:/x ; c:/x"},
          {"f() { cd d; }; f; w a", "a:/x/d"},
          {"f() (cd d); f; w a", "a:/x"},
          {"eval 'cd d'; w a", "a:/x/d"},
          {"X=d; cd $X; w a", "a:/x/d"},
          {"cd \"$X\"; w a", "a:@"},
          {"cd \"$X\"; cd /y; w a", "a:/y"},
          {"cd /y/$X; w a", "a:@"},
          {"cd; w a", "a:~"},
          {"cd ~; w a", "a:~"},
          {"cd ~/d; w a", "a:~/d"},
          {"cd $HOME; w a", "a:~"},
          {"cd -- d; w a", "a:/x/d"},
          {"cd -P d; w a", "a:/x/d"},
          {"cd d; cd -; w a", "a:@"},
          {"cd d & w a", "a:/x"},
          {"command cd d; w a", "a:/x/d"},
      },
      [](std::string_view script) { return directories(script); });
  // Without a directory to start from.
  check(
      {
          {"w a", "a:<>"},
          {"cd d; w a", "a:d"},
          {"cd ..; w a", "a:.."},
          {"cd /y; w a", "a:/y"},
          {"(cd /y; w a); w b", "a:/y ; b:<>"},
      },
      [](std::string_view script) { return directories(script, ""); });
  // Either it went there or it did not.
  const std::string either = directories("v && cd d; w a");
  CHECK((support::has(either, "/x/d") || support::has(either, "@")));
  const std::string shown = directories("if v; then cd /; fi; w a");
  CHECK((support::has(shown, "a:/ ") || support::ends(shown, "a:/") || support::has(shown, "@")));
}

TEST_CASE("shell: the depth of commands") {
  const support::Script result = parsed("w a; { w b; (w c); }; w $(w d `w e`)");
  REQUIRE(result.commands.size() == 6);
  CHECK(result.commands[0].depth == 0);
  CHECK(result.commands[1].depth > result.commands[0].depth);
  CHECK(result.commands[2].depth > result.commands[1].depth);
  CHECK(result.commands[3].words[1].text == "e");
  CHECK(result.commands[3].depth > result.commands[4].depth);
  CHECK(result.commands[5].depth == 0);
}

// Offsets -----------------------------------------------------------------------------------------

TEST_CASE("shell: the bytes in which words were written") {
  check(
      {
          {"w 'a b' \"c\"d\\ e", "{w} {'a b'} {\"c\"d\\ e}"},
          {"  w\ta  ;v b", "{w} {a} ; {v} {b}"},
          {"w >'f g' 2>&1", "{w}('f g')(1)"},
          {"X='a b' w", "{w}[X='a b']"},
          {"w ${X:-a} b", "{w} {${X:-a}} {b}"},
          {"if v 1; then\nw  2; fi", "{v} {1} ; {w} {2}"},
          {"w \\\n a", "{w} {a}"},
          {"w $(v a) b", "{v} {a} ; {w} {$(v a)} {b}"},
          {"w \"$(v \"$(u x)\")\"", "{u} {x} ; {v} {\"$(u x)\"} ; {w} {\"$(v \"$(u x)\")\"}"},
          {"X=a; w $X", "[X=a] ; {w} {$X}"},
          {"X='a b'; w $X", "[X='a b'] ; {w} {$X} {$X}"},
          {"w {a,b}", "{w} {{a,b}} {{a,b}}"},
          {"for i in 1; do w $i; done", "{w} {$i}"},
          {"w \xc3\xa9 b", "{w} {\xc3\xa9} {b}"},
      },
      written);
  check(
      {
          {"w a; v b", "{w a} ; {v b}"},
          {"w a >f; v", "{w a >f} ; {v}"},
          {"X=1 w a &", "{X=1 w a}"},
          {"(w a )", "{w a}"},
          {"w a | v", "{w a} ; {v}"},
          {"w $(v x) y", "{v x} ; {w $(v x) y}"},
          {">f w", "{>f w}"},
      },
      commands_written);
}

TEST_CASE("shell: the bytes of a string that a command runs are those of the command") {
  const std::string_view script = "w a; eval 'v b'; w c";
  const support::Script result = parsed(script);
  REQUIRE(result.commands.size() == 4);
  REQUIRE(words_of(result.commands[2]) == "v b");
  for (const shell::Word& word : result.commands[2].words) {
    CHECK(word.begin >= 5);
    CHECK(word.end <= 15);
    CHECK(word.begin < word.end);
  }
  CHECK(result.commands[3].begin == 17);
}

TEST_CASE("shell: definitions") {
  const std::string_view script = "f() { w a; }; alias q='w b'; function_x() (w)";
  const support::Script result = parsed(script);
  REQUIRE(result.definitions.size() == 3);
  CHECK(result.definitions[0].name == "f");
  CHECK(!result.definitions[0].alias);
  CHECK(result.definitions[0].begin == 0);
  CHECK(result.definitions[0].end <= 12);
  CHECK(result.definitions[1].name == "q");
  CHECK(result.definitions[1].alias);
  CHECK(result.definitions[2].name == "function_x");
  CHECK(parsed("w f; f=1; 'f' x").definitions.empty());
  CHECK(parsed("function g { w; }").definitions.size() == 1);
  CHECK(parsed("eval 'f() { w; }'").definitions.size() == 1);
  CHECK(parsed("alias a=1 b=2").definitions.size() == 2);
}
