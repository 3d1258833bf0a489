// Words and constructs: which simple commands a script is made of.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using support::check;
using support::check_both;
using support::parsed;
using support::told;
using support::told_by_posix;

// The words of commands are shown like this:   w a <b c> @ ; [X=1] w
// A word with a blank or with nothing in it stands between < and >; @ is an unknown part; commands
// are divided by " ; "; assignments stand in brackets. "!parse" or "!limit" at the end tells that
// the script was not read to its end.

// Words -------------------------------------------------------------------------------------------

TEST_CASE("shell: words and quotes") {
  check_both({
      {"", ""},
      {"  \n\n\t ", ""},
      {"# only a comment", ""},
      {"w", "w"},
      {"w a b", "w a b"},
      {"  w\ta  b  ", "w a b"},
      {"w 'a b'", "w <a b>"},
      {"w \"a b\"", "w <a b>"},
      {"w a\\ b", "w <a b>"},
      {"w ''", "w <>"},
      {"w \"\" ''a", "w <> a"},
      {"w 'a'\"b\"c\\d", "w abcd"},
      {"w 'a'\\''b'", "w a'b"},
      {"w \\'a \\\"b", "w 'a \"b"},
      {"w \"\\$\\`\\\"\\\\\\a\"", "w $`\"\\\\a"},
      {"w '$X `q` $(q) \\ \"'", "w <$X `q` $(q) \\ \">"},
      {"w \"'\"", "w '"},
      {"w 'a\nb'", "w <a\nb>"},
      {"w a\\\nb", "w ab"},
      {"w \"a\\\nb\"", "w ab"},
      {"w 'a\\\nb'", "w <a\\\nb>"},
      {"w a \\\n b", "w a b"},
      {"w\\\n a", "w a"},
      {"w a#b \\#c '#'d", "w a#b #c #d"},
      {"w a # b 'c", "w a"},
      {"w a #c\nw b", "w a ; w b"},
      {"w a;#c\nw b", "w a ; w b"},
      {"w a # c \\\nw b", "w a ; w b"},
      {"w a\\", "w a\\"},
      {"w =a a=b -x=y", "w =a a=b -x=y"},
      {"w $ a$ \"$\" $. $/", "w $ a$ $ $. $/"},
      {"w a\r", "w a\r"},
      {"'w' \"a\"", "w a"},
      {"\\w a", "w a"},
      {"w'' a", "w a"},
      {"'' a", "<> a"},
      {"w if then fi { } ! in", "w if then fi { } ! in"},
      {"'if' a", "if a"},
      {"\\while a", "while a"},
  });
}

TEST_CASE("shell: quotes of bash") {
  check({
      {"w $'a\\nb'", "w <a\nb>"},
      {"w $'\\x41\\101\\u0042\\U43\\e\\t'x", "w <AABC\x1b\tx>"},
      {"w $'a\\'b' c", "w a'b c"},
      {"w $'\\\"\\\\\\?\\q'", "w \"\\?\\q"},
      {"w $'\\cA\\a\\b\\f\\v\\r'", "w \x01\a\b\f\v\r"},
      {"w $'\\xe9\\u20ac'", "w \xe9\xe2\x82\xac"},
      {"w $'a\\0b'c d", "w ac d"},
      {"w $''", "w <>"},
      {"w \"$'a'\"", "w $'a'"},
      {"w $\"a b\"", "w <a b>"},
      {"$'\\x72\\x6d' a", "rm a"},
      {"$'w' a", "w a"},
  });
  check({{"w $'a\\nb' $\"c\"", "w $a\\nb $c"}}, told_by_posix);
}

TEST_CASE("shell: braces") {
  check({
      {"w {a,b}", "w a b"},
      {"w x{a,b}y", "w xay xby"},
      {"w {a,b}{c,d}", "w ac ad bc bd"},
      {"w {a,{b,c}}", "w a b c"},
      {"w {,a}", "w a"},
      {"w x{,a}", "w x xa"},
      {"w {a} {} {a,b", "w {a} {} {a,b"},
      {"w '{a,b}' \\{a,b} {a\\,b} \"{a,b}\"", "w {a,b} {a,b} {a,b} {a,b}"},
      {"w {a,'b,c'}", "w a b,c"},
      {"w {1..3} {3..1} {a..c}", "w 1 2 3 3 2 1 a b c"},
      {"w {01..03} {1..7..3} {-1..1}", "w 01 02 03 1 4 7 -1 0 1"},
      {"w {1..} {1...3} {1..a}", "w {1..} {1...3} {1..a}"},
      {"w {w,x}=1", "w w=1 x=1"},
      {"{w,a} b", "w a b"},
      {"{rm,-rf,/}", "rm -rf /"},
      {"X={a,b}; w $X", "[X={a,b}] ; w {a,b}"},
      {"X='{a,b}'; w $X", "[X={a,b}] ; w {a,b}"},
      {"X=1; w {$X,b}", "[X=1] ; w 1 b"},
      {"w {a b,c}", "w {a b,c}"},
      {"w ${X:-{a,b}}", "w {a,b}"},
  });
  check({{"w {a,b} {1..3}", "w {a,b} {1..3}"}}, told_by_posix);
  CHECK(parsed("w {a,b}").dialect_dependent);
}

// Constructs --------------------------------------------------------------------------------------

TEST_CASE("shell: lists and pipelines") {
  check_both({
      {"w a; w b", "w a ; w b"},
      {"w a;w b;", "w a ; w b"},
      {"w a\nw b\n\n\nw c", "w a ; w b ; w c"},
      {"w a & w b", "w a ; w b"},
      {"w a&", "w a"},
      {"w a && w b || w c", "w a ; w b ; w c"},
      {"w a &&\n\n w b", "w a ; w b"},
      {"w a &&# c\n w b", "w a ; w b"},
      {"w a | w b | w c", "w a ; w b ; w c"},
      {"w a |\n\n w b", "w a ; w b"},
      {"! w a", "w a"},
      {"! w a | w b && ! w c", "w a ; w b ; w c"},
      {"w a\n;", "w a !parse"},
  });
  check({{"w a |& w b", "w a ; w b"}});
}

TEST_CASE("shell: groups and compound commands") {
  check_both({
      {"{ w a; }", "w a"},
      {"{ w a; w b\n}; w c", "w a ; w b ; w c"},
      {"{\nw a\n}", "w a"},
      {"(w a)", "w a"},
      {"( w a; w b ) ; w c", "w a ; w b ; w c"},
      {"( (w a); { w b; } )", "w a ; w b"},
      {"if w a; then w b; fi", "w a ; w b"},
      {"if w a; then w b; else w c; fi", "w a ; w b ; w c"},
      {"if w a; then w b; elif w c; then w d; else w e; fi", "w a ; w b ; w c ; w d ; w e"},
      {"if w a\nthen\nw b\nfi\nw c", "w a ; w b ; w c"},
      {"if (w a) then w b; fi", "w a ; w b"},
      {"if { w a; } then w b; fi", "w a ; w b"},
      {"while w a; do w b; done", "w a ; w b"},
      {"until w a\ndo\nw b\ndone\nw c", "w a ; w b ; w c"},
      {"for i in a b; do w $i; done", "w a ; w b"},
      {"for i in a b\ndo\nw $i\ndone; w c", "w a ; w b ; w c"},
      {"for i\nin a\ndo w $i; done", "w a"},
      {"for i in; do w no; done; w a", "w no ; w a"},
      {"for i; do w b; done", "w b"},
      {"case a in a) w 1;; esac", "w 1"},
      {"case a in (a|b) w 1;; *) w 2; esac", "w 1 ; w 2"},
      {"case a in\na)\nw 1\n;;\nb) ;;\nesac\nw c", "w 1 ; w c"},
      {"case a in esac; w b", "w b"},
      {"case $(w in) in a) w 1;; esac", "w in ; w 1"},
      {"case a in `w in`) w 1;; esac", "w in ; w 1"},
      {"case a in 'b;;') w 1;; \\)) w 2;; esac", "w 1 ; w 2"},
      {"if w a; then for i in x; do case $i in x) w $i;; esac; done; fi", "w a ; w x"},
      {"{ w a; } > f", "w a"},
      {"w a; }", "w a !parse"},
      {"( w a", "!parse"},
      {"{ w a; ", "!parse"},
      {"if w a; then w b", "!parse"},
      {"if w a; fi", "!parse"},
      {"w a && else w b", "!parse"},
      {"w a | then", "!parse"},
      {"! fi", "!parse"},
      {"w 1\n( w a", "w 1 !parse"},
  });
}

TEST_CASE("shell: compound commands of bash") {
  check({
      {"[[ a == b ]]", "[[ a == b ]]"},
      {"[[ a == b && -f c ]]; w d", "[[ a == b -f c ]] ; w d"},
      {"[[ $(w in) ]]", "w in ; [[ @ ]]"},
      {"[[ a =~ ^(b|c)$ ]] && w d", "[[ a =~ ^(b|c)$ ]] ; w d"},
      {"if [[ a ]]; then w b; fi", "[[ a ]] ; w b"},
      {"for ((i=0; i<3; i++)); do w a; done", "w a"},
      {"for i in a b; { w $i; }", "w a ; w b"},
      {"select i in a b; do w $i; done", "w a ; w b"},
      {"coproc w a; w b", "w a ; w b"},
      {"coproc { w a; }; w b", "w a ; w b"},
      {"coproc N { w a; }", "w a"},
      {"time w a", "w a"},
      {"time -p w a | w b", "w a ; w b"},
      {"! time w a", "w a"},
      {"case a in a) w 1;& b) w 2;;& c) w 3;; esac", "w 1 ; w 2 ; w 3"},
      {"( (w a); w b )", "w a ; w b"},
      {"((w a); w b)", "w a ; w b"},
  });
  // (( )) is told, and what is substituted inside of it.
  CHECK(support::begins(told("((x = 1 + 1)); w a"), "(("));
  CHECK(support::begins(told("(( $(w in) > 1 )) && w a"), "w in ; (("));
  CHECK(support::begins(told("for ((i=$(w in);;)); do w a; done"), "w in ; "));
  CHECK(support::ends(told("((x++)); w a"), " ; w a"));
}

TEST_CASE("shell: functions are told when defined and when called") {
  check_both({
      {"f() { w a; }", "w a"},
      {"f() { w a; }; f", "w a ; f ; w a"},
      {"f() { w $1; }; f a; f b", "w @ ; f a ; w a ; f b ; w b"},
      {"f() (w a); f", "w a ; f ; w a"},
      {"f()\n{\nw a\n}\nf", "w a ; f ; w a"},
      {"f() for i in a; do w $i; done; f", "w a ; f ; w a"},
      {"f() { w \"$@\"; }; f 'a b' c", "w @ ; f <a b> c ; w <a b> c"},
      {"f() { w $#; }; f a b", "w @ ; f a b ; w 2"},
      {"f() { X=b; }; X=a; f; w $X", "[X=b] ; [X=a] ; f ; [X=b] ; w b"},
      {"f() (X=b); X=a; f; w $X", "[X=b] ; [X=a] ; f ; [X=b] ; w a"},
      {"f() { set -- z; w $1; }; set -- a; f b; w $1",
       "set -- z ; w z ; set -- a ; f b ; set -- z ; w z ; w a"},
  });
  check({
      {"function f { w a; }; f", "w a ; f ; w a"},
      {"function f() { w a; }; f", "w a ; f ; w a"},
      {"function f-g\n(w a)\nf-g", "w a ; f-g ; w a"},
      {"f() [[ a ]]; f", "[[ a ]] ; f ; [[ a ]]"},
      {"f() { local X=b; w $X; }; X=a; f; w $X",
       "local X=b ; w b ; [X=a] ; f ; local X=b ; w b ; w a"},
  });
}

TEST_CASE("shell: substitutions at any depth") {
  check_both({
      {"w $(v a)", "v a ; w @"},
      {"w `v a`", "v a ; w @"},
      {"w \"$(v \"$(u \"a b\")\")\"", "u <a b> ; v @ ; w @"},
      {"w `v \\`u a\\``", "u a ; v @ ; w @"},
      {"w \"`v \\\"a b\\\"`\"", "v <a b> ; w @"},
      {"w `v \\\\\\`a`", "v `a ; w @"},
      {"w $(v a; u b | t c)", "v a ; u b ; t c ; w @"},
      {"w $(v ')' \")\" \\) # )\n)", "v ) ) ) ; w @"},
      {"w $( (v a) )", "v a ; w @"},
      {"w $(case a in a) v 1;; esac)", "v 1 ; w @"},
      {"w $(cat <<E\n) $(v a)\nE\n)", "v a ; cat ; w ) @"},
      {"X=$(v a)", "v a ; [X=@]"},
      {"w ${X:-$(v a)}", "v a ; w @"},
      {"w ${X:-`v a`}", "v a ; w @"},
      {"w ${X#$(v a)}", "v a ; w @"},
      {"w $((1 + $(v a)))", "v a ; w @"},
      {"w $((1 + `v a`))", "v a ; w @"},
      {"w > $(v a)", "v a ; w"},
      {"for i in $(v a); do w b; done", "v a ; w b"},
      {"$(v a)", "v a ; @"},
      {"w $()", "w"},
      {"w a`:`b", ": ; w ab"},
      {"w ${X:-${Y:-${Z:-$(v a)}}}", "v a ; w @"},
      {"w \"${X:-\"$(v 'a b')\"}\"", "v <a b> ; w @"},
      {"w ${X:-'$(v a)'}", "w <$(v a)>"},
      {"cat <<E\n$(v a) `v b` ${X:-$(v c)}\nE", "v a ; v b ; v c ; cat"},
      {"cat <<'E'\n$(v a) `v b`\nE", "cat"},
      {"cat <<\"E\"\n`v a`\nE\nw b", "cat ; w b"},
      {"cat <<E\n\\$(v a) \\`v b\\`\nE\nw b", "cat ; w b"},
  });
  check({
      {"w <(v a)", "v a ; w @"},
      {"w >(v a)", "v a ; w @"},
      {"w < <(v a)", "v a ; w"},
      {"v a > >(w b)", "w b ; v a"},
      {"w $[1 + $(v a)]", "v a ; w @"},
      {"w ${X/a/$(v a)}", "v a ; w @"},
      {"w ${X:$(v a)}", "v a ; w @"},
      {"X=($(v a) b)", "v a ; [X=<@ b>]"},
      {"X[$(v)]=b; w c", "v ; [X=b] ; w c"},
      {"w <<< $(v a)", "v a ; w"},
      {"w $((v a); u b)", "v a ; u b ; w @"},
      {"w `cat <<'E'\n$(v a)\nE\n`", "cat ; w $(v a)"},
  });
}

TEST_CASE("shell: a here-document body is no command") {
  check_both({
      {"cat <<E\nrm -rf /\nE\nw a", "cat ; w a"},
      {"cat <<E; w a\nx\nE\nw b", "cat ; w a ; w b"},
      {"cat <<A <<B; w a\n1\nA\n2\nB\nw b", "cat ; w a ; w b"},
      {"cat <<-E\n\tx\n\tE\nw b", "cat ; w b"},
      {"cat <<-E\n x\n E\nw b\nE\nw c", "cat ; w c"},
      {"cat <<E\nx\n E\nE \nE\nw b", "cat ; w b"},
      {"cat <<'E F'\nx\nE F\nw b", "cat ; w b"},
      {"cat <<E\nx", "cat"},
      {"cat <<E\nx\nE", "cat"},
      {"cat <<E", "cat"},
      {"cat <<E |\nx\nE\nw b", "cat ; w b"},
      {"{ cat <<E\nx\nE\n}; w b", "cat ; w b"},
      {"if cat <<E; then w a; fi\nx\nE\nw b", "cat ; w a ; w b"},
      {"cat <<E\n'\nE\nw b", "cat ; w b"},
      {"cat <<E\n\"\nE\nw b", "cat ; w b"},
      {"cat <<\\E\n`\nE\nw b", "cat ; w b"},
      {"cat <<E\nx\\\nE\nE\nw b", "cat ; w b"},
      {"cat << # c\nE", "!parse"},
  });
}
