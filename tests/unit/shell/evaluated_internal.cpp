// What bash expands once more: subscripts, arithmetic, prompts, the arrays of aliases.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using support::check;
using support::contains;
using support::parsed;
using support::told;
using support::told_by_posix;

namespace {

// True if the script is read to its end and the command `w` is in it.
bool runs_w(std::string_view script) {
  const auto result = parsed(script);
  return result.complete && contains(result, "w");
}

}  // namespace

TEST_CASE("shell: quotes in a subscript are none") {
  check({
      {"echo ${a['$(w)']}", "w ; echo @"},
      {"echo \"${a['$(w)']}\"", "w ; echo @"},
      {"echo ${a[$'$(w)']}", "w ; echo @"},
      {"echo ${a[b['`w`']]}", "w ; echo @"},
      {"a['$(w)']=1", "w ; [a=1]"},
      {"a=(['$(w)']=1)", "w ; [a=@]"},
      {"a=('$(w)')", "[a=$(w)]"},
      {"a=([1]='$(w)')", "[a=$(w)]"},
      {"exec {a['$(w)']}>f", "w ; exec {a[$(w)]}"},
      {"echo {a['$(w)']} >f", "echo {a[$(w)]}"},
      {"echo a['$(w)']", "echo a[$(w)]"},
  });
}

TEST_CASE("shell: a subscript in front of = is read up to its bracket") {
  check({
      {"a[1 + 2]=3; w", "[a=3] ; w"},
      {"a[ # ]=1; w", "[a=1] ; w"},
      {"a['x y']=1 w", "[a=1] w"},
      {"a[$(w ')')]=1", "w ) ; [a=1]"},
      {"a[1]b c", "a[1]b c"},
      // bash takes what is in the brackets for a part of the word.
      {"a[1 ; w ]", "!parse"},
      {"a[1 ; w", "!parse"},
  });
  CHECK(told_by_posix("a[1 ; w") == "a[1 ; w");
}

TEST_CASE("shell: texts that are evaluated") {
  for (const std::string_view script : {
           "x='a[$(w)]'; echo $((x))",
           "x='a[b[\\$(w)]]'; ((x))",
           "x='qa[$(w)]'; y=${x#?}; ((y))",
           "set -- 'a[$(w)]'; echo ${!1}",
           "printf -v 'a[$(w)]' x",
           "printf -va['$(w)'] x",
           "read x <<< 'a[\\$(w)]'; ((x))",
           "mapfile x <<< 'a[$(w)]'",
           "f() { local -n r=$1; r=1; }; f 'a[$(w)]'",
           "f() { local -i x=$1; }; f 'a[0 + $(w)]'",
           "declare -l x; x='A[$(W)]'",
           "x='$(w)'; echo ${x@P}",
           "x='\\044(w)'; echo ${x@P}",
           "y='$(w)'; x=y; echo \"${!x@P}\"",
           "PS4='$(w)'",
           "declare -n r=PS4; r='$(w)'",
           "history -s w",
           "jobs -x eval w",
           "BASH_ALIASES[q]=w\nq",
           "BASH_CMDS[q]=w\nq",
           "declare -a a='(b $(w))'",
           "a=(); declare a='(`w`)'",
           "set -- 'a[$(w)]'; ((${!#}))",
           "f() { ((${@: -1})); }; f 'a[$(w)]'",
           "echo $[ a[$(w)] ]",
       }) {
    CAPTURE(std::string(script));
    CHECK(runs_w(script));
  }
  for (const std::string_view script : {
           "x='$(w)'",
           "echo 'a[$(w)]'",
           "[ -n '$(w)' ]",
           "read x <<< '$(w)'",
           "printf '%s' 'a[$(w)]'",
           "x='$(w)'; echo \"$x\"",
           "history -p w",
           "declare a='($(w))'",
           "BASH_ALIASES[q]=()",
           "jobs w",
       }) {
    CAPTURE(std::string(script));
    CHECK_FALSE(runs_w(script));
  }
}

TEST_CASE("shell: what may run any text") {
  check({
      {"fc -s", "fc -s ; @"},
      {"fc -l", "fc -l"},
      {"set -o histexpand", "set -o histexpand ; @"},
      {"set -o pipefail", "set -o pipefail"},
      {"read x; echo ${x@P}", "read x ; @ ; echo @"},
      {"PS4=$(w)", "w ; @ ; [PS4=@]"},
      {"mapfile -tC w x <<< a", "mapfile -tC w x ; w @"},
      {"BASH_ALIASES=([q]=w)", "alias -- @=@ ; @ ; [BASH_ALIASES=@]"},
  });
}

TEST_CASE("shell: an alias of a reserved word") {
  check({
      {"alias if='w; if'\nif a; then b; fi", "alias <if=w; if> !parse"},
      {"alias iff='w'", "alias iff=w ; w"},
  });
}

TEST_CASE("shell: operands that are assignments are not split") {
  check({
      {"x='a b'; export y=$x; w $y", "[x=<a b>] ; export <y=a b> ; w a b"},
      {"x='a b'; export $x", "[x=<a b>] ; export a b"},
  });
  CHECK(told_by_posix("x='a b'; export y=$x") == "[x=<a b>] ; export y=a b");
  CHECK(parsed("x='a b'; export y=$x").dialect_dependent);
  CHECK_FALSE(parsed("x=a; export y=$x").dialect_dependent);
}

TEST_CASE("shell: an evaluated text that makes itself is bounded") {
  CHECK(told("x='a[$x]'; ((x))") != "");
  CHECK(told("x='a[$y]' y='b[$x]$x$x'; ((x)); echo ${a[y]}") != "");
  std::string deep = "\\$(w)";
  for (int i = 0; i < 500; ++i) deep = "a[" + deep + "]";
  CHECK(contains(parsed("x='" + deep + "'; ((x))"), "w"));
}
