#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support.hpp"

// The words of commands are shown like this:   w a <b c> @ ; [X=1] w
// A word with a blank or with nothing in it stands between < and >; @ is an unknown part; commands
// are divided by " ; "; assignments stand in brackets. "!parse" or "!limit" at the end tells that
// the script was not read to its end.

using codeexec::ErrorCode;
namespace shell = codeexec::shell;
using namespace std::string_literals;
using namespace std::string_view_literals;
using shell::Dialect;

namespace {

shell::Options options_of(Dialect dialect) {
  shell::Options options;
  options.dialect = dialect;
  return options;
}

shell::Script parsed(std::string_view script, Dialect dialect = Dialect::bash) {
  return shell::parse(script, options_of(dialect));
}

std::string text_of(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '\0' ? '@' : c;
  if (!result.empty() && result.find_first_of(" \t\n") == std::string::npos) return result;
  return "<" + result + ">";
}

std::string words_of(const shell::Command& command) {
  std::string result;
  const auto add = [&result](const std::string& piece) {
    if (!result.empty()) result += ' ';
    result += piece;
  };
  for (const shell::Assignment& assignment : command.assignments)
    add("[" + assignment.name + "=" + text_of(assignment.value.text) + "]");
  for (const shell::Word& word : command.words) add(text_of(word.text));
  return result;
}

// What was told, and how the reading ended.
std::string ended(std::string shown, const shell::Outcome& outcome) {
  if (outcome.complete) return shown;
  if (!shown.empty()) shown += ' ';
  return shown + (outcome.error.code == ErrorCode::limit ? "!limit" : "!parse");
}

template <class Show>
std::string all(const shell::Script& script, const Show& show) {
  std::string result;
  for (const shell::Command& command : script.commands) {
    if (!result.empty()) result += " ; ";
    result += show(command);
  }
  return ended(result, script);
}

std::string told(std::string_view script, Dialect dialect = Dialect::bash) {
  return all(parsed(script, dialect), words_of);
}

std::string told_by_posix(std::string_view script) { return told(script, Dialect::posix); }

struct Row {
  std::string_view script;
  const char* expected;
};

template <class Show, std::size_t size>
void check(const Row (&rows)[size], const Show& show) {
  for (const Row& row : rows) {
    CAPTURE(std::string(row.script));
    CHECK(show(row.script) == row.expected);
  }
}

template <std::size_t size>
void check(const Row (&rows)[size]) {
  check(rows, [](std::string_view script) { return told(script); });
}

// Both dialects read these alike.
template <std::size_t size>
void check_both(const Row (&rows)[size]) {
  check(rows);
  check(rows, told_by_posix);
}

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

// What the last command reads: "inherited", "unknown" or "=text".
std::string input_of(std::string_view script, Dialect dialect = Dialect::bash) {
  const shell::Script result = parsed(script, dialect);
  if (result.commands.empty()) return "no command";
  const shell::Input& input = result.commands.back().input;
  if (input.kind == shell::Input::Kind::inherited) return "inherited";
  if (input.kind == shell::Input::Kind::unknown) return "unknown";
  std::string text;
  for (const char c : input.text) text += c == '\0' ? '@' : c;
  return "=" + text;
}

// Only the commands `w`, each with its directory: "a:/x ; b:d1".
std::string directories(std::string_view script, std::string_view work_dir = "/x") {
  shell::Options options;
  options.work_dir = std::string(work_dir);
  const shell::Script result = shell::parse(script, options);
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
  const shell::Script result = parsed(script);
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

// The last word of the last command, with the letters of its marks: a)ssumed, g)lob, h)ome, s)plit,
// p)rocess.
std::string marked(std::string_view script, Dialect dialect = Dialect::bash) {
  const shell::Script result = parsed(script, dialect);
  if (result.commands.empty() || result.commands.back().words.empty()) return "no word";
  const shell::Word& word = result.commands.back().words.back();
  std::string marks;
  if (word.assumed) marks += 'a';
  if (word.glob) marks += 'g';
  if (word.home) marks += 'h';
  if (word.split) marks += 's';
  if (word.process) marks += 'p';
  return ended(text_of(word.text) + ":" + marks, result);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

bool contains(const shell::Script& script, std::string_view words) {
  for (const shell::Command& command : script.commands)
    if (words_of(command) == words) return true;
  return false;
}

// What holds of every outcome.
void check_sound(std::string_view text, const shell::Script& script, const shell::Limits& limits) {
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
      sound = sound && command.input.text.empty();
  }
  for (const shell::Definition& each : script.definitions)
    sound = sound && in_range(each.begin, each.end) && !each.name.empty();
  CHECK(sound);
  CHECK(words <= limits.max_words);
  CHECK(bytes <= limits.max_text);
}

}  // namespace

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

// Values ------------------------------------------------------------------------------------------

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
      {"X=(rm -rf /); \"${X[@]}\"", "[X=<rm -rf />] ; rm -rf /"},
      {"printf -v X %s rm; $X a", "printf -v X %s rm ; rm a"},
      {"X=(a\nb # c\n)", "[X=<a b>]"},
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
    const shell::Script result = parsed(script);
    CHECK(result.complete);
    CHECK(contains(result, "w a"));
    CHECK(contains(result, "w b"));
    CHECK(!contains(result, "w c"));
  }
  // What a later turn of a loop would use.
  const shell::Script loop = parsed("X=a; while v; do w $X; X=b; done");
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
    const shell::Script result = parsed(with(rest));
    CHECK(contains(result, "rm -rf /"));
    CHECK(contains(result, "ls -rf /"));
  }
  CHECK(contains(parsed("if v; then Y=1; else Y=2; fi; X=a; X=$X$Y; w $X"), "w a2"));
  CHECK(!contains(parsed("if v; then Y=1; else Y=2; fi; X=a; X=$X$Y; w $X"), "w a12"));
  // What is printed is one of both, not both.
  const shell::Script printed = parsed(with("$(echo $C) -rf /"));
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
  const shell::Script result = parsed("w ${X:+a}/");
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
  const shell::Script trap = parsed("X=b; trap 'w $X' EXIT; X=a");
  CHECK((contains(trap, "w a") || contains(trap, "w @")));
  // An alias holds from the next line on.
  CHECK(contains(parsed("alias q='w a'\nq b", Dialect::posix), "w a b"));
  CHECK(contains(parsed("alias q='rm -rf'\nq /", Dialect::posix), "rm -rf /"));
  CHECK(contains(parsed("alias q='w '\nalias r='a b'\nq r", Dialect::posix), "w a b"));
  CHECK(contains(parsed("shopt -s expand_aliases\nalias q='w a'\nq b"), "w a b"));
}

TEST_CASE("shell: eval of what is not known") {
  const shell::Script result = parsed("eval \"w $X\"; w b");
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
    const shell::Script result = parsed(script);
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
  const shell::Script result = parsed("w a; { w b; (w c); }; w $(w d `w e`)");
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
  const shell::Script result = parsed(script);
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
  const shell::Script result = parsed(script);
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
    const shell::Script result = parsed(bad.script);
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
    const shell::Script result = shell::parse(script, options);
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
    const shell::Script result = shell::parse(script, options);
    CHECK(!result.complete);
    CHECK(result.error.code == ErrorCode::limit);
    CHECK(support::has(result.error.message, what));
    check_sound(script, result, limits);
  };
  shell::Limits limits;
  limits.max_depth = 5;
  check_limit(repeated("( ", 6) + "w" + repeated(" )", 6), limits, "5 levels");
  check_limit(repeated("{ ", 6) + "w; " + repeated("}; ", 6), limits, "5 levels");
  check_limit("w " + repeated("$(w ", 6) + repeated(")", 6), limits, "5 levels");
  check_limit("w " + repeated("\"$(w ", 6) + repeated(")\"", 6), limits, "5 levels");
  check_limit("w " + repeated("${a:-", 6) + repeated("}", 6), limits, "5 levels");
  check_limit("w " + repeated("$((1+", 6) + "1" + repeated("))", 6), limits, "5 levels");
  check_limit(repeated("if w; then ", 6) + "w; " + repeated("fi; ", 6), limits, "5 levels");
  check_limit(repeated("while w; do ", 6) + "w; " + repeated("done; ", 6), limits, "5 levels");
  check_limit(repeated("for i in a; do ", 6) + "w; " + repeated("done; ", 6), limits, "5 levels");
  check_limit(repeated("case a in a) ", 6) + "w; " + repeated("esac; ", 6), limits, "5 levels");
  check_limit(repeated("f() { ", 6) + "w; " + repeated("}; ", 6), limits, "5 levels");
  check_limit("eval eval eval eval eval eval eval w", limits, "5 levels");
  check_limit(
      "f1() { w; }; f2() { f1; }; f3() { f2; }; f4() { f3; }; f5() { f4; }; f6() { f5; }; "
      "f7() { f6; }; f7",
      limits, "5 levels");
  // A substitution is one level, as any other construct is.
  shell::Options five;
  five.limits = limits;
  CHECK(shell::parse("w " + repeated("$(w ", 5) + repeated(")", 5), five).complete);
  CHECK(shell::parse(repeated("( ", 5) + "w" + repeated(" )", 5), five).complete);
  limits.max_depth = 0;
  check_limit("( w )", limits, "0 levels");

  limits = {};
  limits.max_commands = 10;
  check_limit(repeated("w\n", 11), limits, "10 commands");
  check_limit("w; " + repeated("w $(v); ", 10), limits, "10 commands");
  check_limit("f() { w; w; w; }; f; f; f; f", limits, "10 commands");
  limits = {};
  limits.max_words = 10;
  check_limit("w 1 2 3 4 5 6 7 8 9 10", limits, "10 words");
  check_limit("w {1..10}", limits, "10 words");
  check_limit(repeated("w a; ", 6), limits, "10 words");
  limits = {};
  limits.max_text = 1000;
  check_limit("w " + std::string(1001, 'a'), limits, "1000 bytes");
  check_limit("X=" + std::string(600, 'a') + "; w $X; w $X", limits, "1000 bytes");
  check_limit("X=aaaaaaaaaa; " + repeated("X=$X$X; ", 10), limits, "1000 bytes");

  // Just within them.
  const auto complete = [](const std::string& script, const shell::Limits& bounds) {
    shell::Options options;
    options.limits = bounds;
    return shell::parse(script, options).complete;
  };
  limits = {};
  limits.max_commands = 10;
  CHECK(complete(repeated("w\n", 10), limits));
  limits = {};
  limits.max_words = 10;
  CHECK(complete("w 1 2 3 4 5 6 7 8 9", limits));
  CHECK(complete(repeated("( ", 20) + "w" + repeated(" )", 20), {}));
}

TEST_CASE("shell: little text never costs much") {
  const std::string many(20000, 'x');
  const std::string scripts[] = {
      "a=aaaaaaaa; " + repeated("a=$a$a; ", 2000) + "w $a",
      "w " + repeated("{a,b}", 2000),
      "w {1..1000000000}",
      "w {1..100000}{1..100000}",
      repeated("$(", 20000),
      repeated("`", 20001),
      repeated("(", 20000),
      repeated("((", 20000),
      repeated("{ ", 20000),
      repeated("${a:-", 20000),
      repeated("\"$(", 20000),
      repeated("if ", 20000),
      repeated("f() { ", 5000),
      repeated("<<E ", 5000),
      repeated("w <<E\n", 5000),
      repeated("$((", 20000),
      repeated("[[ ( ", 5000),
      repeated("! ", 20000) + "w",
      repeated("X=1 ", 20000) + "w",
      repeated("eval ", 5000) + "w",
      repeated("case a in a) ", 5000),
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
      repeated("for i in 1 2 3 4 5 6 7 8 9 10; do ", 9) + "w $i; " + repeated("done; ", 9),
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
      "set -- " + repeated("a ", 20000) + "; for i; do for j; do w; done; done",
      "alias a='a a'\n" + repeated("a ", 5000),
      "alias a='b b' b='c c' c='d d' d='a a'\na\na\n",
      "IFS=x; X=" + many + "; w $X; w $X; w $X; w $X",
      "X='" + repeated("$X", 5000) + "'; eval \"$X\"",
      "X='eval \"$X$X\"'; eval \"$X\"",
      "trap 'trap \"w a\" EXIT; w' EXIT",
      "X[999999999999]=a; w ${X[999999999999]} ${X[@]}",
      "shift 99999999999999999999; w ${99999999999999999999}",
      "w 99999999999999999999>f",
      "while w; do X=a$X; done; w $X",
      "w ${" + many + "}",
      "w " + repeated("\\\n", 20000),
      repeated("#", 40000),
      repeated("a=$a$b b=$b$a ", 2000) + "; w",
  };
  for (const std::string& script : scripts) {
    for (const Dialect dialect : {Dialect::bash, Dialect::posix})
      check_sound(script, parsed(script, dialect), {});
  }
}

// walk --------------------------------------------------------------------------------------------

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

TEST_CASE("shell: parse tells what walk visits") {
  const std::string_view script =
      "X=a; f() { w $X \"$@\"; }; for i in 1 2; do f $i | v; done; eval 'w b'";
  std::vector<std::string> visited;
  const shell::Outcome outcome = shell::walk(script, {}, [&visited](const shell::Visit& visit) {
    visited.push_back(words_of(visit.command));
  });
  const shell::Script result = parsed(script);
  CHECK(outcome.complete);
  CHECK(result.complete);
  REQUIRE(visited.size() == result.commands.size());
  for (std::size_t i = 0; i < visited.size(); ++i)
    CHECK(visited[i] == words_of(result.commands[i]));
  CHECK(contains(result, "w a 2"));
}
