// Values: what variables and expansions come to, as far as that is known.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "../../helpers/shell_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

namespace shell = codeexec::shell;
using shell::Dialect;
using support::check;
using support::check_both;
using support::contains;
using support::ended;
using support::input_of;
using support::parsed;
using support::Row;
using support::text_of;
using support::told;
using support::told_by_posix;

namespace {

// The last word of the last command, with the letters of its marks: a)ssumed, g)lob, h)ome, s)plit,
// p)rocess.
std::string marked(std::string_view script, Dialect dialect = Dialect::bash) {
  const support::Script result = parsed(script, dialect);
  if (result.commands.empty() || result.commands.back().words.empty()) return "no word";
  const shell::Word& word = result.commands.back().words.back();
  return ended(text_of(word.text) + ":" + support::marks_of(word), result);
}

}  // namespace

TEST_CASE("shell: of a list only what is unknown splits further") {
  CHECK(marked("set -- $a'b c'; w $*") == "c:");
  CHECK(marked("set -- 'b c'$a; w $*") == "c@:s");
}

TEST_CASE("shell: variables that the script sets") {
  check_both({
      {"X=a; w $X", "[X=a] ; w a"},
      {"X='a b'; w $X", "[X=<a b>] ; w a b"},
      {"X='a b'; w \"$X\"", "[X=<a b>] ; w <a b>"},
      {"X=' a  b '; w x${X}y", "[X=< a  b >] ; w x a b y"},
      {"X=; w $X a", "[X=<>] ; w a"},
      {"X=; w \"$X\" $X''", "[X=<>] ; w <> <>"},
      {"X=a Y=$X; w $X$Y", "[X=a] [Y=a] ; w aa"},
      {"X=a; X=b$X; w $X", "[X=a] ; [X=ba] ; w ba"},
      {"X=rm; $X -rf /", "[X=rm] ; rm -rf /"},
      {"X='rm -rf'; $X /", "[X=<rm -rf>] ; rm -rf /"},
      {"A=r B=m; $A$B x", "[A=r] [B=m] ; rm x"},
      {"X='$Y' Y=b; w $X", "[X=$Y] [Y=b] ; w $Y"},
      {"X='\"a b\"'; w $X", "[X=<\"a b\">] ; w \"a b\""},
      {"X=1; X=2 w $X; w $X", "[X=1] ; [X=2] w 1 ; w 1"},
      {"X=a; (X=b; w $X); w $X", "[X=a] ; [X=b] ; w b ; w a"},
      {"X=a; { X=b; }; w $X", "[X=a] ; [X=b] ; w b"},
      {"X=a; w $(X=b; echo $X)$X", "[X=a] ; [X=b] ; echo b ; w ba"},
      {"export X=a; w $X", "export X=a ; w a"},
      {"X=a; unset X; w ${X-u}", "[X=a] ; unset X ; w u"},
      {"X=a; unset X; w \"$X\"", "[X=a] ; unset X ; w <>"},
      {"X=a; w '$X' \\$X \"\\$X\"", "[X=a] ; w $X $X $X"},
      {"X=a; w ${X}b $X-c", "[X=a] ; w ab a-c"},
      {"w $X", "w @"},
      {"w \"$X\"", "w @"},
      {"w a$X.b", "w a@.b"},
      {"X=$Y; w $X", "[X=@] ; w @"},
      {"X=$(v); w $X", "v ; [X=@] ; w @"},
      {"read X; w $X", "read X ; w @"},
      {"w $? $$ $!", "w @ @ @"},
      {"IFS=,; X=a,b; w $X \"$X\"", "[IFS=,] ; [X=a,b] ; w a b a,b"},
      {"w a${IFS}b", "w a b"},
      {"rm$IFS-rf$IFS/", "rm -rf /"},
      {"IFS=; X='a b'; w $X", "[IFS=<>] ; [X=<a b>] ; w <a b>"},
  });
  check({
      {"X=a; X+=b; w $X", "[X=a] ; [X=ab] ; w ab"},
      {"v && set -- a b; for x; do w $x; done", "v ; set -- a b ; w a ; w b"},
      {"declare X=a; w $X", "declare X=a ; w a"},
      {"X=(a 'b c'); w \"${X[@]}\"", "[X=<a b c>] ; w a <b c>"},
      {"X=(a b); w ${X[1]} ${X[0]} $X", "[X=<a b>] ; w b a a"},
      {"X[1]=(); w ${X[@]}", "[X=<>] ; w @"},
      {"X=(rm -rf /); \"${X[@]}\"", "[X=<rm -rf />] ; rm -rf /"},
      {"printf -v X %s rm; $X a", "printf -v X %s rm ; rm a"},
      {"X=(a\nb # c\n)", "[X=<a b>]"},
      {"read X Y <<< ' a  b c '; w \"$X\" \"$Y\"", "read X Y ; w a <b c>"},
      {"read X Y <<< a; w \"$X\" \"$Y\"", "read X Y ; w a <>"},
      {"read X <<< 'a\\b'; w \"$X\"", "read X ; w @"},
      {"read -r X <<< 'a\\b'; w \"$X\"", "read -r X ; w a\\b"},
      {"IFS=: read X Y <<< 'a::b'; w \"$X\" \"$Y\"", "[IFS=:] read X Y ; w a :b"},
      {"IFS=: read X <<< 'a:'; w \"$X\"", "[IFS=:] read X ; w @"},
      {"read <<< ' a '; w \"$REPLY\"", "read ; w < a >"},
      {"read X Y Z <<< \"a $V b\"; w $X \"$Y\" \"$Z\"", "read X Y Z ; w a @ @"},
      {"read -d x X <<< ab; w \"$X\"", "read -d x X ; w @"},
      {"{ read X; w $X; } <<< a", "read X ; w @ ; w a"},
      {"w $(dirname a/b//) $(dirname b) $(dirname /b)",
       "dirname a/b// ; dirname b ; dirname /b ; w a . /"},
      {"w $(basename a/b//) $(basename b) $(basename /)",
       "basename a/b// ; basename b ; basename / ; w b b /"},
      {"w $(cat <<< a) $(cat - <<< b)", "cat ; cat - ; w a b"},
  });
}

TEST_CASE("shell: positional parameters") {
  check_both({
      {"set -- a 'b c'; w $1 \"$2\"", "set -- a <b c> ; w a <b c>"},
      {"set -- a 'b c'; w \"$@\"", "set -- a <b c> ; w a <b c>"},
      {"set -- a 'b c'; w $@", "set -- a <b c> ; w a b c"},
      {"set -- a 'b c'; w \"$*\"", "set -- a <b c> ; w <a b c>"},
      {"set -- a b; w \"x$@y\"", "set -- a b ; w xa by"},
      {"set -- a b; w $#", "set -- a b ; w 2"},
      {"set -- a b c; shift; w $1", "set -- a b c ; shift ; w b"},
      {"set -- a b; for i; do w $i; done", "set -- a b ; w a ; w b"},
      {"set -- a b; for i in \"$@\"; do w $i; done", "set -- a b ; w a ; w b"},
      {"set -- rm -rf /; \"$@\"", "set -- rm -rf / ; rm -rf /"},
      {"set -- a b c d e f g h i j; w ${10} $10", "set -- a b c d e f g h i j ; w j a0"},
      {"set a b; w $2", "set a b ; w b"},
  });
}

TEST_CASE("shell: parameter expansions") {
  check_both({
      {"w ${X:-a}", "w a"},
      {"w ${X-a b}", "w a b"},
      {"w \"${X-a b}\"", "w <a b>"},
      {"w ${X:-'a b'} ${X:-\"c d\"}", "w <a b> <c d>"},
      {"w \"${X:-'a b'}\"", "w <'a b'>"},
      {"w ${X:-a\\}b}", "w a}b"},
      {"w ${X:-'}'} ${X:-\"}\"}", "w } }"},
      {"X=; w ${X:-a}.${X-b}.", "[X=<>] ; w a.."},
      {"X=c; w ${X:-a} ${X:+b}", "[X=c] ; w c b"},
      {"w ${X:-${Y:-b}}", "w b"},
      {"X=a; w ${X:?no}", "[X=a] ; w a"},
      {"w ${X:-$(echo a)}", "echo a ; w a"},
  });
  CHECK(marked("w ${X:-rm}") == "rm:a");
  CHECK(marked("w \"${X:-rm}\"") == "rm:a");
  CHECK(marked("X=rm; w ${X:-ls}") == "rm:");
  CHECK(marked("unset X; w ${X:-ls}") == "ls:");
  CHECK(marked("w ${X:-a}b") == "ab:a");
  // Whatever is told of these is right or unknown.
  for (const char* const script : {"X=a.b.c; w ${X%.*}", "X=a.b.c; w ${X%.?}"}) {
    CAPTURE(script);
    CHECK((marked(script) == "a.b:" || marked(script) == "@:s"));
  }
  for (const char* const script : {"X=abc; w ${#X}", "w $((1+2))"}) {
    CAPTURE(script);
    CHECK((marked(script) == "3:" || marked(script) == "@:s" || marked(script) == "@:"));
  }
}

TEST_CASE("shell: the output of echo and printf") {
  check_both({
      {"w $(echo a b)", "echo a b ; w a b"},
      {"w \"$(echo a b)\"", "echo a b ; w <a b>"},
      {"$(echo rm) -rf /", "echo rm ; rm -rf /"},
      {"`echo rm` -rf /", "echo rm ; rm -rf /"},
      {"$(printf rm) a", "printf rm ; rm a"},
      {"$(printf %s%s r m) a", "printf %s%s r m ; rm a"},
      {"w \"$(printf '%s\\n' a b)\"", "printf %s\\n a b ; w <a\nb>"},
      {"w $(printf '\\162\\155')", "printf \\162\\155 ; w rm"},
      {"w \"$(echo a; echo b)\"", "echo a ; echo b ; w <a\nb>"},
      {"w \"$(printf 'a\\n\\n')\"x", "printf a\\n\\n ; w ax"},
      {"X=$(echo a); w $X", "echo a ; [X=a] ; w a"},
      {"w $(echo $(echo a))", "echo a ; echo a ; w a"},
      {"w $(cat <<E\na\nE\n)", "cat ; w a"},
      {"w $(true)", "true ; w"},
      {"w $(echo $X)", "echo @ ; w @"},
  });
  check({
      {"w $(echo -e 'r\\x6d')", "echo -e r\\x6d ; w rm"},
      {"w $(printf '\\x72m')", "printf \\x72m ; w rm"},
      {"w $(echo 'a\\tb')", "echo a\\tb ; w a\\tb"},
  });
  CHECK(told_by_posix("w $(echo 'r\\0155')") == "echo r\\0155 ; w rm");
}

TEST_CASE("shell: the marks of words") {
  const Row rows[] = {
      {"w a", "a:"},
      {"w *.c", "*.c:g"},
      {"w '*'.c", "*.c:"},
      {"w \\*", "*:"},
      {"w a?", "a?:g"},
      {"w [ab]", "[ab]:g"},
      {"w \"[ab]\"", "[ab]:"},
      {"X='*'; w $X", "*:g"},
      {"X='*'; w \"$X\"", "*:"},
      {"w ~", "~:h"},
      {"w ~/a", "~/a:h"},
      {"w ~user/a", "~user/a:h"},
      {"w '~'/a", "~/a:"},
      {"w \\~", "~:"},
      {"w a~", "a~:"},
      {"w \"~\"", "~:"},
      {"w $HOME/a", "~/a:h"},
      {"w \"$HOME\"", "~:h"},
      {"w \"${HOME}/a b\"", "<~/a b>:h"},
      {"X=~; w $X", "~:h"},
      {"HOME=/a; w ~/b", "/a/b:"},
      {"w $X", "@:s"},
      {"w \"$X\"", "@:"},
      {"w a$X", "a@:s"},
      {"w \"a$X\"b", "a@b:"},
      {"w $(v)", "@:s"},
      {"w \"$(v)\"", "@:"},
      {"w \"$@\"", "w:"},
      {"w a=~", "a=~:"},
  };
  check(rows, [](std::string_view script) { return marked(script); });
  check(rows, [](std::string_view script) { return marked(script, Dialect::posix); });
  CHECK(support::ends(marked("w <(v a)"), "p"));
  CHECK(support::ends(marked("w >(v a)"), "p"));
}

TEST_CASE("shell: a value from each branch") {
  check_both({
      {"if v; then X=a; else X=b; fi; w $X", "v ; [X=a] ; [X=b] ; w a ; w b"},
      {"if v; then C=ls; else C=rm; fi; $C -rf /", "v ; [C=ls] ; [C=rm] ; ls -rf / ; rm -rf /"},
      {"X=a; if v; then X=b; fi; w $X", "[X=a] ; v ; [X=b] ; w a ; w b"},
      {"for i in a b; do for j in c d; do w $i$j; done; done", "w ac ; w ad ; w bc ; w bd"},
      {"for i in 'a b' c; do w $i; done", "w a b ; w c"},
      {"for i in ls rm; do $i -rf /; done", "ls -rf / ; rm -rf /"},
  });
  // Both values are told, and nothing else.
  for (const char* const script :
       {"X=a; v && X=b; w $X", "X=b; v || X=a; w $X", "case $Q in 1) X=a;; *) X=b;; esac; w $X",
        "X=a; while v; do X=b; done; w $X", "v && { X=a; true; } || X=b; w $X",
        "for i in a b; do X=$i; done; w $X", "X=a; for X in b; do :; done; w $X"}) {
    CAPTURE(script);
    const support::Script result = parsed(script);
    CHECK(result.complete);
    CHECK(contains(result, "w a"));
    CHECK(contains(result, "w b"));
    CHECK(!contains(result, "w c"));
  }
  // What a later turn of a loop would use.
  const support::Script loop = parsed("X=a; while v; do w $X; X=b; done");
  CHECK(contains(loop, "w a"));
  CHECK((contains(loop, "w b") || contains(loop, "w @")));
}

TEST_CASE("shell: each value of a branch is followed on its own") {
  const std::string_view either = "if v; then C=rm; else C=ls; fi; ";
  const auto with = [either](const char* rest) { return std::string(either) + rest; };
  for (const char* const rest :
       {"$C -rf /", "set -- $C; \"$@\" -rf /", "printf -v D %s $C; $D -rf /", "D=$C; $D -rf /",
        "D=r; D=$C; $D -rf /", "export D=$C; $D -rf /", "eval \"$C -rf /\"",
        "f() { $1 -rf /; }; f $C", "for i in $C; do $i -rf /; done", "D=(a $C); ${D[1]} -rf /"}) {
    CAPTURE(rest);
    const support::Script result = parsed(with(rest));
    CHECK(contains(result, "rm -rf /"));
    CHECK(contains(result, "ls -rf /"));
  }
  CHECK(contains(parsed("if v; then Y=1; else Y=2; fi; X=a; X=$X$Y; w $X"), "w a2"));
  CHECK(!contains(parsed("if v; then Y=1; else Y=2; fi; X=a; X=$X$Y; w $X"), "w a12"));
  // What is printed is one of both, not both.
  const support::Script printed = parsed(with("$(echo $C) -rf /"));
  CHECK(!contains(printed, "rm ls -rf /"));
  CHECK((contains(printed, "rm -rf /") || contains(printed, "@ -rf /")));
  CHECK(input_of(with("echo $C | w")) != "=rm\nls\n");
}

TEST_CASE("shell: what a list of && and || leaves behind") {
  for (const char* const script :
       {"C=rm; a || C=ls && $C -rf /", "C=rm; a && C=ls || $C -rf /", "C=ls; a && C=rm; $C -rf /",
        "C=ls; a && C=rm && b && C=ls; $C -rf /", "C=ls; a || C=rm; $C -rf /",
        "C=rm; a || C=ls || b && $C -rf /", "C=ls; a && b || C=rm && $C -rf /"}) {
    CAPTURE(script);
    CHECK(contains(parsed(script), "rm -rf /"));
    CHECK(contains(parsed(script), "ls -rf /"));
  }
  CHECK(told("a && C=b && w $C") == "a ; [C=b] ; w b");
}

TEST_CASE("shell: a variable that may be set or not") {
  const support::Script result = parsed("w ${X:+a}/");
  CHECK(contains(result, "w a/"));
  CHECK(contains(result, "w /"));
  CHECK(contains(parsed("w \"${X+a}\""), "w <>"));
  CHECK(told("w${X=' -rf /'}") == "w -rf /");
  CHECK(marked("w ${X-~}") == "~:ah");
  CHECK(marked("w ${X:-~/a}") == "~/a:ah");
  CHECK(contains(parsed("w ${X:-<(v a)}"), "v a"));
  CHECK(contains(parsed("w ${X:-<(v ${Y:->(u b)})}"), "u b"));
  CHECK(marked("w {a,~}") == "~:h");
  CHECK(marked("w {a,~/b}") == "~/b:h");
}

TEST_CASE("shell: what holds only later or only in a function") {
  CHECK(contains(parsed("C=ls; trap '$C -rf /' EXIT; C=rm"), "rm -rf /"));
  CHECK(contains(parsed("C=rm; f() { local C; C=ls; }; f; $C -rf /"), "rm -rf /"));
  CHECK(contains(parsed("C=rm; f() { local C=ls; }; f; $C -rf /"), "rm -rf /"));
  CHECK(contains(parsed("C=rm; f() { declare C=ls; }; f; $C -rf /"), "rm -rf /"));
  CHECK(contains(parsed("C=ls; f() { C=rm; }; f; $C -rf /"), "rm -rf /"));
  CHECK(told("IFS=,; set -- a b; w \"$*\"") == "[IFS=,] ; set -- a b ; w a,b");
  CHECK(told("IFS=' ,'; X='a , b'; w $X") == "[IFS=< ,>] ; [X=<a , b>] ; w a b");
  CHECK(told("unset IFS; X='a b'; w $X") == "unset IFS ; [X=<a b>] ; w a b");
  CHECK(support::ends(told("set -- a $X b; w \"$@\""), "w a @ b"));
  CHECK(marked("set -- $X; w \"$@\"") == "@:s");
}

TEST_CASE("shell: strings that the shell itself runs") {
  check_both({
      {"eval 'w a; w b'", "eval <w a; w b> ; w a ; w b"},
      {"eval w a b", "eval w a b ; w a b"},
      {"eval \"w 'a b'\"", "eval <w 'a b'> ; w <a b>"},
      {"eval 'X=a'; w $X", "eval X=a ; [X=a] ; w a"},
      {"X='rm -rf /'; eval $X", "[X=<rm -rf />] ; eval rm -rf / ; rm -rf /"},
      {"eval eval w a", "eval eval w a ; eval w a ; w a"},
      {"eval 'f() { w a; }'; f", "eval <f() { w a; }> ; w a ; f ; w a"},
      {"trap 'w a' EXIT", "trap <w a> EXIT ; w a"},
      {"trap - EXIT; w b", "trap - EXIT ; w b"},
  });
  // The handler runs later, with values of then.
  const support::Script trap = parsed("X=b; trap 'w $X' EXIT; X=a");
  CHECK((contains(trap, "w a") || contains(trap, "w @")));
  // An alias holds from the next line on.
  CHECK(contains(parsed("alias q='w a'\nq b", Dialect::posix), "w a b"));
  CHECK(contains(parsed("alias q='rm -rf'\nq /", Dialect::posix), "rm -rf /"));
  CHECK(contains(parsed("alias q='w '\nalias r='a b'\nq r", Dialect::posix), "w a b"));
  CHECK(contains(parsed("shopt -s expand_aliases\nalias q='w a'\nq b"), "w a b"));
  // What stands behind one that ends in a `;` is a command.
  const support::Script two = parsed("alias q='w a; r b;'\nq w 'c d'", Dialect::posix);
  CHECK(two.complete);
  CHECK(contains(two, "w a"));
  CHECK(contains(two, "r b"));
  CHECK(contains(two, "w <c d>"));
  for (const char* const text : {"alias q='w a;'\nq ! w b", "alias q='w a;'\nq X=1 w b",
                                 "alias q='w a;; '\nq w b", "alias q='X=1;'\nq w b"}) {
    CAPTURE(text);
    CHECK_FALSE(parsed(text, Dialect::posix).complete);
  }
}

TEST_CASE("shell: eval of what is not known") {
  const support::Script result = parsed("eval \"w $X\"; w b");
  CHECK(result.complete);
  CHECK(contains(result, "eval <w @>"));
  CHECK(contains(result, "w @"));
  CHECK(contains(result, "w b"));
}

TEST_CASE("shell: assignments in front of a command") {
  check_both({
      {"X=1 w", "[X=1] w"},
      {"X=1 Y='a b' w c", "[X=1] [Y=<a b>] w c"},
      {"X=", "[X=<>]"},
      {"w X=1", "w X=1"},
      {"'X'=1 w", "X=1 w"},
      {"X\\=1 w", "X=1 w"},
      {"1X=1 w", "1X=1 w"},
      {"X-Y=1 w", "X-Y=1 w"},
      {"X=1 >f w", "[X=1] w"},
      {"X=~/a w", "[X=~/a] w"},
      {"X=$(v) w", "v ; [X=@] w"},
  });
}
