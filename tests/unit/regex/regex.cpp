#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using codeexec::ErrorCode;
using codeexec::Regex;
using namespace std::string_view_literals;

namespace {

Regex compiled(std::string_view pattern) {
  auto regex = Regex::compile(pattern);
  CAPTURE(std::string(pattern));
  REQUIRE_MESSAGE(regex.has_value(), regex.error().message);
  return *regex;
}

// "begin..end" of the leftmost match, or "none".
std::string span(const Regex& regex, std::string_view text, std::size_t from = 0) {
  const auto found = regex.find(text, from);
  if (!found) return "none";
  const auto begin = found->data() - text.data();
  return std::to_string(begin) + ".." + std::to_string(begin + std::ptrdiff_t(found->size()));
}

// What Python's re says: re.match, re.fullmatch, and the span of re.search in bytes.
struct Row {
  std::string_view pattern;
  std::string_view text;
  bool match;
  bool full_match;
  const char* found;
};

// Made by CPython 3.11's re module, from str patterns and texts of which these are the bytes (UTF-8
// with surrogateescape). The offsets were translated to bytes.
const Row rows_of_python[] = {
    {""sv, ""sv, true, true, "0..0"},
    {""sv, "abc"sv, true, false, "0..0"},
    {"abc"sv, "abc"sv, true, true, "0..3"},
    {"abc"sv, "xabcx"sv, false, false, "1..4"},
    {"abc"sv, "ab"sv, false, false, "none"},
    {"abc"sv, ""sv, false, false, "none"},
    {"\303\251"sv, "\303\251"sv, true, true, "0..2"},
    {"\303\251"sv, "caf\303\251"sv, false, false, "3..5"},
    {"\303\251"sv, "e"sv, false, false, "none"},
    {"\346\227\245\346\234\254"sv, "x\346\227\245\346\234\254"sv, false, false, "1..7"},
    {"\\u65e5\\U0001f600\\x41"sv, "\346\227\245\360\237\230\200A"sv, true, true, "0..8"},
    {"a\000b"sv, "a\000b"sv, true, true, "0..3"},
    {"a\\0b"sv, "a\000b"sv, true, true, "0..3"},
    {"\\x00"sv, "ab\000"sv, false, false, "2..3"},
    {"\\.\\*\\[\\]\\(\\)\\{\\}\\^\\$\\|\\\\\\-\\/\\ "sv, ".*[](){}^$|\\-/ "sv, true, true, "0..15"},
    {"\\n\\t\\r\\f\\v\\a"sv, "\n\t\015\014\013\007"sv, true, true, "0..6"},
    {"\\012\\101\\07"sv, "\nA\007"sv, true, true, "0..3"},
    {"\\377"sv, "\303\277"sv, true, true, "0..2"},
    {"{"sv, "{"sv, true, true, "0..1"},
    {"a{"sv, "a{"sv, true, true, "0..2"},
    {"a{x}"sv, "a{x}"sv, true, true, "0..4"},
    {"a{1"sv, "a{1"sv, true, true, "0..3"},
    {"a{}"sv, "a{}"sv, true, true, "0..3"},
    {"a{1,x}"sv, "a{1,x}"sv, true, true, "0..6"},
    {"}"sv, "]}"sv, false, false, "1..2"},
    {"]"sv, "a]"sv, false, false, "1..2"},
    {"."sv, "\n"sv, false, false, "none"},
    {"."sv, "a"sv, true, true, "0..1"},
    {"."sv, "\303\251"sv, true, true, "0..2"},
    {"."sv, "\360\237\230\200"sv, true, true, "0..4"},
    {"."sv, "\377"sv, true, true, "0..1"},
    {"."sv, "\000"sv, true, true, "0..1"},
    {"(?s)."sv, "\n"sv, true, true, "0..1"},
    {"a.c"sv, "a\nc"sv, false, false, "none"},
    {"a.c"sv, "abc"sv, true, true, "0..3"},
    {"..."sv, "\303\251\346\227\245\360\237\230\200"sv, true, true, "0..9"},
    {".*"sv, "ab\ncd"sv, true, false, "0..2"},
    {"(?s).*"sv, "ab\ncd"sv, true, true, "0..5"},
    {"(?s:.)b."sv, "\nb\n"sv, false, false, "none"},
    {"(?s:.)b."sv, "\nbx"sv, true, true, "0..3"},
    {"[abc]"sv, "xbx"sv, false, false, "1..2"},
    {"[abc]"sv, "d"sv, false, false, "none"},
    {"[^abc]"sv, "abcd"sv, false, false, "3..4"},
    {"[^abc]"sv, "\n"sv, true, true, "0..1"},
    {"[a-c]+"sv, "xxabcabcd"sv, false, false, "2..8"},
    {"[]a]+"sv, "]a]"sv, true, true, "0..3"},
    {"[^]a]"sv, "a]b"sv, false, false, "2..3"},
    {"[-a]+"sv, "a-b"sv, true, false, "0..2"},
    {"[a-]+"sv, "-a-"sv, true, true, "0..3"},
    {"[a\\-z]+"sv, "-b"sv, true, false, "0..1"},
    {"[\\d.]+"sv, "x1.5y"sv, false, false, "1..4"},
    {"[^\\s]+"sv, " ab "sv, false, false, "1..3"},
    {"[\\w-]+"sv, "!a-b!"sv, false, false, "1..4"},
    {"[\303\251-\303\274]+"sv, "a\303\251\303\255\303\274"sv, false, false, "1..7"},
    {"[^a]"sv, "\303\251"sv, true, true, "0..2"},
    {"[\346\227\245-\351\276\215]"sv, "\346\234\254"sv, true, true, "0..3"},
    {"[\\b]"sv, "a\010"sv, false, false, "1..2"},
    {"[\\n\\x41\\u0042\\101]+"sv, "AB\n"sv, true, true, "0..3"},
    {"[a^]"sv, "^"sv, true, true, "0..1"},
    {"[.*]+"sv, "a.*"sv, false, false, "1..3"},
    {"[^^]"sv, "^x"sv, false, false, "1..2"},
    {"[^\\W]+"sv, "--ab--"sv, false, false, "2..4"},
    {"[^\\D]"sv, "a1"sv, false, false, "1..2"},
    {"[\\S\\s]"sv, "\n"sv, true, true, "0..1"},
    {"[\\\\]"sv, "\\"sv, true, true, "0..1"},
    {"[[]"sv, "["sv, true, true, "0..1"},
    {"[a-\\x63]"sv, "c"sv, true, true, "0..1"},
    {"[\\x30-9]+"sv, "a19"sv, false, false, "1..3"},
    {"\\d+"sv, "a12b"sv, false, false, "1..3"},
    {"\\d+"sv, "x"sv, false, false, "none"},
    {"\\D+"sv, "12ab"sv, false, false, "2..4"},
    {"\\w+"sv, "-ab_1\303\251-"sv, false, false, "1..7"},
    {"\\w+"sv, "\346\227\245\346\234\254 x"sv, true, false, "0..6"},
    {"\\W+"sv, "ab !?"sv, false, false, "2..5"},
    {"\\s+"sv, "a \t\n\015\014\013\034\037b"sv, false, false, "1..9"},
    {"\\s+"sv, "\302\240\342\200\203\343\200\200"sv, true, true, "0..8"},
    {"\\s+"sv, "\302\205"sv, true, true, "0..2"},
    {"\\S+"sv, " a\302\240b"sv, false, false, "1..2"},
    {"(?a)\\w+"sv, "\303\251ab"sv, false, false, "2..4"},
    {"(?a)\\s"sv, "\302\240"sv, false, false, "none"},
    {"(?a)\\s"sv, "\034"sv, false, false, "none"},
    {"(?a)\\W"sv, "\303\251"sv, true, true, "0..2"},
    {"(?a:\\w)\\w"sv, "\303\251a"sv, false, false, "none"},
    {"(?a:\\w)\\w"sv, "a\303\251"sv, true, true, "0..3"},
    {"\\w"sv, "\342\200\234"sv, false, false, "none"},
    {"\\w"sv, "\360\237\230\200"sv, false, false, "none"},
    {"\\w"sv, "\342\202\254"sv, false, false, "none"},
    {"\\w"sv, "\314\201"sv, false, false, "none"},
    {"\\w"sv, "\377"sv, false, false, "none"},
    {"\\w"sv, "\303\227"sv, false, false, "none"},
    {"\\w"sv, "\302\252"sv, true, true, "0..2"},
    {"\\w"sv, "\342\200\224"sv, false, false, "none"},
    {"^a"sv, "ab"sv, true, false, "0..1"},
    {"^a"sv, "ba"sv, false, false, "none"},
    {"^a"sv, "\na"sv, false, false, "none"},
    {"(?m)^a"sv, "b\na"sv, false, false, "2..3"},
    {"(?m)^a"sv, "a"sv, true, true, "0..1"},
    {"a$"sv, "a"sv, true, true, "0..1"},
    {"a$"sv, "a\n"sv, true, false, "0..1"},
    {"a$"sv, "a\n\n"sv, false, false, "none"},
    {"a$"sv, "ab"sv, false, false, "none"},
    {"a$"sv, "ba\n"sv, false, false, "1..2"},
    {"(?m)a$"sv, "a\nb"sv, true, false, "0..1"},
    {"(?m)a$"sv, "b\na\n"sv, false, false, "2..3"},
    {"a\\Z"sv, "a"sv, true, true, "0..1"},
    {"a\\Z"sv, "a\n"sv, false, false, "none"},
    {"a\\Z"sv, "ba"sv, false, false, "1..2"},
    {"\\Aa"sv, "a"sv, true, true, "0..1"},
    {"\\Aa"sv, "\na"sv, false, false, "none"},
    {"(?m)\\Aa"sv, "\na"sv, false, false, "none"},
    {"(?m)\\Aa"sv, "a"sv, true, true, "0..1"},
    {"(?m)\\Z"sv, "a\n"sv, false, false, "2..2"},
    {"$"sv, ""sv, true, true, "0..0"},
    {"$"sv, "\n"sv, true, false, "0..0"},
    {"$"sv, "a\n"sv, false, false, "1..1"},
    {"$"sv, "a\n\n"sv, false, false, "2..2"},
    {"(?m)$"sv, "a\nb"sv, false, false, "1..1"},
    {"^$"sv, ""sv, true, true, "0..0"},
    {"^$"sv, "\n"sv, true, false, "0..0"},
    {"^$"sv, "\n\n"sv, false, false, "none"},
    {"(?m)^$"sv, "a\n\nb"sv, false, false, "2..2"},
    {"\\bdd\\b"sv, "dd"sv, true, true, "0..2"},
    {"\\bdd\\b"sv, "add"sv, false, false, "none"},
    {"\\bdd\\b"sv, "dd.txt"sv, true, false, "0..2"},
    {"\\bdd\\b"sv, "git add dd"sv, false, false, "8..10"},
    {"\\bdd\\b"sv, "ddx"sv, false, false, "none"},
    {"\\bdd\\b"sv, "\303\251dd"sv, false, false, "none"},
    {"\\bdd\\b"sv, "dd_"sv, false, false, "none"},
    {"\\bdd\\b"sv, "-dd-"sv, false, false, "1..3"},
    {"\\bdd\\b"sv, "\342\200\234dd\342\200\235"sv, false, false, "3..5"},
    {"\\Bb\\B"sv, "abc"sv, false, false, "1..2"},
    {"\\Bb\\B"sv, "b"sv, false, false, "none"},
    {"\\b"sv, "  a"sv, false, false, "2..2"},
    {"\\b"sv, ""sv, false, false, "none"},
    {"\\b"sv, "-"sv, false, false, "none"},
    {"\\B"sv, "a"sv, false, false, "none"},
    {"\\B"sv, " a"sv, true, false, "0..0"},
    {"(?a)\\bdd\\b"sv, "\303\251dd"sv, false, false, "2..4"},
    {"a^b"sv, "a^b"sv, false, false, "none"},
    {"a^b"sv, "ab"sv, false, false, "none"},
    {"a$b"sv, "a$b"sv, false, false, "none"},
    {"(^a)"sv, "a"sv, true, true, "0..1"},
    {"(?:^)*a"sv, "a"sv, true, true, "0..1"},
    {"x$|y"sv, "y"sv, true, true, "0..1"},
    {"x$|y"sv, "x\n"sv, true, false, "0..1"},
    {"(a)(b)"sv, "ab"sv, true, true, "0..2"},
    {"(?:a|b)c"sv, "bc"sv, true, true, "0..2"},
    {"(?P<n>a)(?P<m_1>b)"sv, "ab"sv, true, true, "0..2"},
    {"a|ab"sv, "ab"sv, true, true, "0..1"},
    {"ab|a"sv, "ab"sv, true, true, "0..2"},
    {"(a|ab)(c|bcd)"sv, "abcd"sv, true, true, "0..4"},
    {"|a"sv, "a"sv, true, true, "0..0"},
    {"a|"sv, "b"sv, true, false, "0..0"},
    {"(|a)b"sv, "ab"sv, true, true, "0..2"},
    {"()"sv, "x"sv, true, false, "0..0"},
    {"(?:)"sv, "x"sv, true, false, "0..0"},
    {"a||b"sv, "b"sv, true, true, "0..0"},
    {"(?#comment)a(?#x)+"sv, "aa"sv, true, true, "0..2"},
    {"(?#a\\)b)c"sv, "c"sv, true, true, "0..1"},
    {"((((a))))"sv, "a"sv, true, true, "0..1"},
    {"foo|foobar"sv, "foobar"sv, true, true, "0..3"},
    {"(foo|foobar)$"sv, "foobar"sv, true, true, "0..6"},
    {"x*|b"sv, "b"sv, true, true, "0..0"},
    {"a*"sv, "aaa"sv, true, true, "0..3"},
    {"a*"sv, "b"sv, true, false, "0..0"},
    {"a*?"sv, "aaa"sv, true, true, "0..0"},
    {"a+"sv, "baa"sv, false, false, "1..3"},
    {"a+?"sv, "aa"sv, true, true, "0..1"},
    {"a?"sv, "a"sv, true, true, "0..1"},
    {"a?"sv, "b"sv, true, false, "0..0"},
    {"a?\?"sv, "a"sv, true, true, "0..0"},
    {"a{2}"sv, "a"sv, false, false, "none"},
    {"a{2}"sv, "aaa"sv, true, false, "0..2"},
    {"a{2,}"sv, "aaaa"sv, true, true, "0..4"},
    {"a{2,}?"sv, "aaaa"sv, true, true, "0..2"},
    {"a{,2}"sv, "aaa"sv, true, false, "0..2"},
    {"a{1,2}?"sv, "aaa"sv, true, false, "0..1"},
    {"a{0}b"sv, "ab"sv, false, false, "1..2"},
    {"a{,}"sv, "aaa"sv, true, true, "0..3"},
    {"(ab){2}"sv, "ababab"sv, true, false, "0..4"},
    {"(?:ab|c){1,2}"sv, "cabc"sv, true, false, "0..3"},
    {".*?b"sv, "aabab"sv, true, true, "0..3"},
    {".*b"sv, "aabab"sv, true, true, "0..5"},
    {"<.+?>"sv, "<a><b>"sv, true, true, "0..3"},
    {"<.+>"sv, "<a><b>"sv, true, true, "0..6"},
    {"(a*)*"sv, "aab"sv, true, false, "0..2"},
    {"((a*)*)*"sv, "aab"sv, true, false, "0..2"},
    {"(a|b*)*"sv, "aabb"sv, true, true, "0..4"},
    {"(a+)+$"sv, "aaab"sv, false, false, "none"},
    {"(a+)+$"sv, "baaa"sv, false, false, "1..4"},
    {"(|a)+"sv, "aaa"sv, true, true, "0..0"},
    {"(|a)*"sv, "aaa"sv, true, true, "0..0"},
    {"(a?)*?b"sv, "aab"sv, true, true, "0..3"},
    {"(?:)*"sv, "a"sv, true, false, "0..0"},
    {"a{3}{"sv, "aaa{"sv, true, true, "0..4"},
    {"(a{2}){2}"sv, "aaaaa"sv, true, false, "0..4"},
    {"\303\251{2}"sv, "\303\251\303\251"sv, true, true, "0..4"},
    {"\346\227\245+"sv, "\346\227\245\346\227\245\346\234\254"sv, true, false, "0..6"},
    {"(?:a?){3}a{3}"sv, "aaa"sv, true, true, "0..3"},
    {"(?i)AbC"sv, "aBc"sv, true, true, "0..3"},
    {"(?i)[a-c]+"sv, "ABCabc"sv, true, true, "0..6"},
    {"(?i)[^a]"sv, "A"sv, false, false, "none"},
    {"(?i:a)b"sv, "Ab"sv, true, true, "0..2"},
    {"(?i:a)b"sv, "AB"sv, false, false, "none"},
    {"(?i)a(?-i:b)"sv, "Ab"sv, true, true, "0..2"},
    {"(?i)a(?-i:b)"sv, "AB"sv, false, false, "none"},
    {"(?i)[Z-a]+"sv, "zAZa_"sv, true, true, "0..5"},
    {"(?x) a b # comment\n c"sv, "abc"sv, true, true, "0..3"},
    {"(?x)a\\ b[ ]c"sv, "a b c"sv, true, true, "0..5"},
    {"(?x) a * "sv, "aa"sv, true, true, "0..2"},
    {"(?x:a b)c d"sv, "abc d"sv, true, true, "0..5"},
    {"(?im)^b"sv, "a\nB"sv, false, false, "2..3"},
    {"(?s-i:.)"sv, "\n"sv, true, true, "0..1"},
    {"(?i)(?s)A."sv, "a\n"sv, true, true, "0..2"},
    {"(?u)\\w"sv, "\303\251"sv, true, true, "0..2"},
    {"(?i)\303\251"sv, "\303\251"sv, true, true, "0..2"},
    {"(?i)1"sv, "1"sv, true, true, "0..1"},
    {"(?-i:a)"sv, "a"sv, true, true, "0..1"},
    {"a\377b"sv, "a\377b"sv, true, true, "0..3"},
    {"\377"sv, "\376"sv, false, false, "none"},
    {"."sv, "\342\202"sv, true, false, "0..1"},
    {".{2}"sv, "\342\202x"sv, true, false, "0..2"},
    {"[^a]{3}"sv, "\360\237\230"sv, true, true, "0..3"},
    {"\303\251"sv, "\303"sv, false, false, "none"},
    {"\\udcc3"sv, "\303"sv, true, true, "0..1"},
    {"\\W\\D\\S"sv, "\200\201\202"sv, true, true, "0..3"},
    {"python .*"sv, "python x.py"sv, true, true, "0..11"},
    {"python .*"sv, "python"sv, false, false, "none"},
    {"python .*"sv, "python3 x"sv, false, false, "none"},
    {"python .*"sv, " python x"sv, false, false, "1..9"},
    {"python .*"sv, "pythonx"sv, false, false, "none"},
    {"python .*"sv, "python x\nrm -rf /"sv, true, false, "0..8"},
    {"git push.*"sv, "git push"sv, true, true, "0..8"},
    {"git push.*"sv, "git pushx"sv, true, true, "0..9"},
    {"git push.*"sv, "git  push"sv, false, false, "none"},
    {"git push.*"sv, "cd . && git push"sv, false, false, "8..16"},
};

// A pattern that must not compile, with the reason and the byte it is found at.
struct BadPattern {
  std::string_view pattern;
  ErrorCode code;
  std::size_t offset;
  std::string_view reason;
};

const BadPattern bad_patterns[] = {
    {"(", ErrorCode::parse, 0, "missing ), unterminated subpattern"},
    {"a(b", ErrorCode::parse, 1, "missing ), unterminated subpattern"},
    {"(?:a", ErrorCode::parse, 0, "missing ), unterminated subpattern"},
    {"\303\251(", ErrorCode::parse, 2, "missing ), unterminated subpattern"},
    {"a)", ErrorCode::parse, 1, "unbalanced parenthesis"},
    {"*a", ErrorCode::parse, 0, "nothing to repeat"},
    {"+", ErrorCode::parse, 0, "nothing to repeat"},
    {"?", ErrorCode::parse, 0, "nothing to repeat"},
    {"{2}", ErrorCode::parse, 0, "nothing to repeat"},
    {"|*", ErrorCode::parse, 1, "nothing to repeat"},
    {"(*a)", ErrorCode::parse, 1, "nothing to repeat"},
    {"^*", ErrorCode::parse, 1, "nothing to repeat"},
    {"\\b+", ErrorCode::parse, 2, "nothing to repeat"},
    {"$?", ErrorCode::parse, 1, "nothing to repeat"},
    {"(?i)*", ErrorCode::parse, 4, "nothing to repeat"},
    {"a**", ErrorCode::parse, 2, "multiple repeat"},
    {"a*{2}", ErrorCode::parse, 2, "multiple repeat"},
    {"a+?*", ErrorCode::parse, 3, "multiple repeat"},
    {"a{2}{3}", ErrorCode::parse, 4, "multiple repeat"},
    {"a{3,2}", ErrorCode::parse, 1, "min repeat greater than max repeat"},
    {"[a", ErrorCode::parse, 0, "unterminated character set"},
    {"[", ErrorCode::parse, 0, "unterminated character set"},
    {"x[]", ErrorCode::parse, 1, "unterminated character set"},
    {"[^]", ErrorCode::parse, 0, "unterminated character set"},
    {"[a-", ErrorCode::parse, 0, "unterminated character set"},
    {"[b-a]", ErrorCode::parse, 1, "bad character range"},
    {"[\\d-z]", ErrorCode::parse, 1, "bad character range"},
    {"[a-\\w]", ErrorCode::parse, 1, "bad character range"},
    {"a\\", ErrorCode::parse, 1, "bad escape (end of pattern)"},
    {"[\\", ErrorCode::parse, 1, "bad escape (end of pattern)"},
    {"\\q", ErrorCode::parse, 0, "bad escape"},
    {"[\\q]", ErrorCode::parse, 1, "bad escape"},
    {"[\\A]", ErrorCode::parse, 1, "bad escape"},
    {"[\\9]", ErrorCode::parse, 1, "bad escape"},
    {"\\x4", ErrorCode::parse, 0, "incomplete escape"},
    {"\\xg1", ErrorCode::parse, 0, "incomplete escape"},
    {"\\u123", ErrorCode::parse, 0, "incomplete escape"},
    {"\\U0011ffff", ErrorCode::parse, 0, "bad escape"},
    {"\\400", ErrorCode::parse, 0, "octal escape value outside of range 0-0o377"},
    {"(?P<1a>x)", ErrorCode::parse, 4, "bad character in group name"},
    {"(?P<a-b>x)", ErrorCode::parse, 4, "bad character in group name"},
    {"(?P<>x)", ErrorCode::parse, 4, "missing group name"},
    {"(?P<a", ErrorCode::parse, 4, "missing >, unterminated name"},
    {"(?P<a>x)(?P<a>y)", ErrorCode::parse, 12, "redefinition of group name"},
    {"(?Px)", ErrorCode::parse, 0, "unknown extension ?P"},
    {"(?<a>x)", ErrorCode::parse, 0, "unknown extension ?<"},
    {"(?z)", ErrorCode::parse, 0, "unknown flag"},
    {"(?L)a", ErrorCode::parse, 0, "unknown flag"},
    {"(?", ErrorCode::parse, 0, "unexpected end of pattern"},
    {"(?)", ErrorCode::parse, 0, "unknown extension"},
    {"(?i", ErrorCode::parse, 3, "missing -, : or )"},
    {"(?i-", ErrorCode::parse, 4, "missing flag"},
    {"(?-)", ErrorCode::parse, 3, "missing flag"},
    {"(?-i)", ErrorCode::parse, 4, "missing :"},
    {"(?i-i:a)", ErrorCode::parse, 5, "bad inline flags: flag turned on and off"},
    {"(?au:a)", ErrorCode::parse, 4, "bad inline flags: flags 'a' and 'u' are incompatible"},
    {"a(?i)b", ErrorCode::parse, 1, "global flags not at the start of the expression"},
    {"((?i)a)", ErrorCode::parse, 1, "global flags not at the start of the expression"},
    {"|(?i)a", ErrorCode::parse, 1, "global flags not at the start of the expression"},
    {"(?#abc", ErrorCode::parse, 0, "missing ), unterminated comment"},
    {"(?x)#\\", ErrorCode::parse, 5, "bad escape (end of pattern)"},
    {"(a)\\1", ErrorCode::unsupported, 3, "a back-reference cannot be matched in linear time"},
    {"x\\8", ErrorCode::unsupported, 1, "a back-reference cannot be matched in linear time"},
    {"(?P<x>a)(?P=x)", ErrorCode::unsupported, 8,
     "a back-reference cannot be matched in linear time"},
    {"(?=a)", ErrorCode::unsupported, 0, "look-ahead cannot be matched in linear time"},
    {"b(?!a)", ErrorCode::unsupported, 1, "look-ahead cannot be matched in linear time"},
    {"(?<=a)", ErrorCode::unsupported, 0, "look-behind cannot be matched in linear time"},
    {"(?<!a)", ErrorCode::unsupported, 0, "look-behind cannot be matched in linear time"},
    {"(?>a)", ErrorCode::unsupported, 0, "an atomic group cannot be matched in linear time"},
    {"(a)?(?(1)b)", ErrorCode::unsupported, 4,
     "a conditional group cannot be matched in linear time"},
    {"a*+", ErrorCode::unsupported, 2, "a possessive quantifier cannot be matched in linear time"},
    {"a{2}+", ErrorCode::unsupported, 4,
     "a possessive quantifier cannot be matched in linear time"},
    {"\\N{DASH}", ErrorCode::unsupported, 0, "named characters (\\N) are not known"},
    {"a{10001}", ErrorCode::limit, 1, "a repeat count is above 10000"},
    {"a{1,99999999999999999999}", ErrorCode::limit, 1, "a repeat count is above 10000"},
    {"(?:a{1000}){1000}", ErrorCode::limit, 11, "the compiled pattern is too large"},
};

// Generous: the slowest of these takes a few milliseconds when optimized, and a matcher that is
// quadratic or worse takes from minutes to the end of the universe.
constexpr std::chrono::seconds patience{20};

class Stopwatch {
 public:
  ~Stopwatch() { CHECK(std::chrono::steady_clock::now() - start_ < patience); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

TEST_CASE("regex: matches, full matches and spans are those of Python's re") {
  for (const Row& row : rows_of_python) {
    CAPTURE(std::string(row.pattern));
    CAPTURE(std::string(row.text));
    const Regex regex = compiled(row.pattern);
    CHECK(regex.match(row.text) == row.match);
    CHECK(regex.full_match(row.text) == row.full_match);
    CHECK(regex.search(row.text) == (row.found != "none"sv));
    CHECK(span(regex, row.text) == row.found);
  }
}

TEST_CASE("regex: what is no pattern is refused with the reason and its place") {
  for (const BadPattern& bad : bad_patterns) {
    CAPTURE(std::string(bad.pattern));
    const auto regex = Regex::compile(bad.pattern);
    REQUIRE(!regex.has_value());
    CHECK(regex.error().code == bad.code);
    CHECK(regex.error().offset == bad.offset);
    CHECK(regex.error().message ==
          std::string(bad.reason) + " at byte " + std::to_string(bad.offset));
  }
}

TEST_CASE("regex: every repeat count up to the limit works, in a program of bounded size") {
  const Regex regex = compiled("a{10000}");
  CHECK(regex.full_match(std::string(10000, 'a')));
  CHECK(!regex.full_match(std::string(9999, 'a')));
  CHECK(compiled("(?:a{100}){100,200}").full_match(std::string(10000, 'a')));
  // Nothing, however often, takes no room.
  CHECK(compiled("(?:(?:(?:){0,10000}){0,10000}){10000}").full_match(""));
  // The last step counts as well: 9 x 10000 + 9999 + the match.
  CHECK(compiled("(?:a{10000}){9}a{9999}").full_match(std::string(99999, 'a')));
  CHECK(Regex::compile("(?:a{10000}){9}a{9999}b").error().code == ErrorCode::limit);
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep = "(?:" + deep + "){0,2}";
  CHECK(Regex::compile(deep).error().code == ErrorCode::limit);
}

TEST_CASE("regex: groups nest 200 deep and no deeper") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "a" + std::string(depth, ')');
  };
  CHECK(compiled(nested(200)).full_match("a"));
  const auto deeper = Regex::compile(nested(201));
  REQUIRE(!deeper.has_value());
  CHECK(deeper.error().code == ErrorCode::limit);
  CHECK(deeper.error().offset == 200);
  CHECK(Regex::compile(nested(30000)).error().code == ErrorCode::limit);
  CHECK(Regex::compile(std::string(60000, '(')).error().code == ErrorCode::limit);
}

TEST_CASE("regex: a pattern is at most 64 KiB long") {
  CHECK(compiled(std::string(65536, 'a')).full_match(std::string(65536, 'a')));
  CHECK(Regex::compile(std::string(65537, 'a')).error().code == ErrorCode::limit);
  std::string branches = "a";
  while (branches.size() < 65000) branches += "|a";
  branches += "|b";
  CHECK(compiled(branches).full_match("b"));
  CHECK(!compiled(branches).search("c"));
}

TEST_CASE("regex: flags may be given beside the pattern") {
  CHECK(Regex::compile("a[b]", "i")->full_match("AB"));
  CHECK(Regex::compile("a.b", "s")->full_match("a\nb"));
  CHECK(span(*Regex::compile("^b$", "m"), "a\nb\nc") == "2..3");
  CHECK(Regex::compile("^ b$", "mx")->search("a\nb"));
  CHECK(Regex::compile("a(", "i").error().offset == 1);
  CHECK(Regex::compile("a", "L").error().code == ErrorCode::invalid_argument);
  CHECK(compiled("a.b").pattern() == "a.b");
}

TEST_CASE("regex: \\B matches an empty text, as in Python from 3.14 on") {
  CHECK(span(compiled("\\B"), "") == "0..0");
}

TEST_CASE("regex: find starts where it is told and still sees what stands before") {
  const Regex word = compiled("\\bdd");
  CHECK(span(word, "add dd", 1) == "4..6");
  CHECK(span(word, "dd", 0) == "0..2");
  CHECK(span(word, "dd", 1) == "none");
  CHECK(span(compiled("^a"), "aa", 1) == "none");
  CHECK(span(compiled("(?m)^a"), "b\na", 2) == "2..3");
  CHECK(span(compiled("a*"), "aa", 2) == "2..2");
  CHECK(span(compiled("a*"), "aa", 3) == "none");
  CHECK(span(compiled("\\Bx"), "\303\251x", 2) == "2..3");      // behind a letter of two bytes
  CHECK(span(compiled("\\bx"), "\342\202\254x", 3) == "3..4");  // behind a symbol of three
  CHECK(span(compiled("."), "\303\251", 1) == "1..2");          // in the middle: a byte of its own
}

TEST_CASE("regex: a byte of malformed UTF-8 is one character and no letter, digit or space") {
  for (const std::string_view text : {"\200"sv, "\377"sv, "\303"sv, "\340\200"sv, "\355\240\200"sv,
                                      "\360\237\230"sv, "\364\220\200\200"sv, "\300\257"sv}) {
    CAPTURE(text.size());
    CHECK(compiled(".{" + std::to_string(text.size()) + "}").full_match(text));
    CHECK(compiled("[^a]+").full_match(text));
    CHECK(compiled("\\W+").full_match(text));
    CHECK(!compiled("\\w|\\s|\\d").search(text));
    // In a pattern it stands for itself.
    CHECK(compiled(text).full_match(text));
    CHECK(!compiled(text).full_match("a"));
  }
  CHECK(!compiled("\351").search("\303\251"));
  CHECK(!compiled("\303").search("\303\251"));
}

TEST_CASE("regex: an automaton takes linear time where a backtracking matcher never ends") {
  const std::string letters(100000, 'a');
  const std::string then_b = letters + 'b';
  SUBCASE("(a+)+$") {
    const Stopwatch watch;
    CHECK(!compiled("(a+)+$").search(then_b));
    CHECK(!compiled("(a+)+$").match(then_b));
    CHECK(span(compiled("(a+)+$"), letters) == "0..100000");
  }
  SUBCASE("python .*") {
    const Stopwatch watch;
    const std::string command = "python " + std::string(1 << 20, 'x');
    CHECK(compiled("python .*").match(command));
    CHECK(compiled("python .*").full_match(command));
    CHECK(span(compiled("python .*"), command) == "0.." + std::to_string(command.size()));
    CHECK(!compiled("python .*y").match(command));
  }
  SUBCASE("((a*)*)*") {
    const Stopwatch watch;
    CHECK(compiled("((a*)*)*").full_match(letters));
    CHECK(!compiled("((a*)*)*").full_match(then_b));
    CHECK(!compiled("((a*)*)*c").search(then_b));
  }
  SUBCASE("(x+x+)+y") {
    const Stopwatch watch;
    CHECK(!compiled("(x+x+)+y").search(std::string(100000, 'x')));
    CHECK(compiled("(x+x+)+y").search(std::string(100000, 'x') + 'y'));
  }
  SUBCASE("(\\w+\\s?)+$") {
    const Stopwatch watch;
    CHECK(!compiled("(\\w+\\s?)+$").match(letters + "!"));
  }
  SUBCASE("(a?){100}a{100}") {
    const Stopwatch watch;
    CHECK(compiled("(a?){100}a{100}").full_match(std::string(100, 'a')));
    CHECK(!compiled("(a?){100}a{100}").full_match(std::string(99, 'a')));
  }
  SUBCASE("mv with nothing but spaces behind it") {
    const Stopwatch watch;
    CHECK(!compiled("\\bmv\\b.*?\\s+/dev/null").search("mv" + std::string(1 << 20, ' ')));
  }
}

TEST_CASE("regex: one pattern serves many threads") {
  const Regex regex = compiled("(?:ab|a)+c");
  std::vector<int> found(4, 0);
  std::vector<std::thread> threads;
  for (int& count : found)
    threads.emplace_back([&count, copy = regex] {
      for (int i = 0; i < 200; ++i) count += copy.search("xxabaabc") && !copy.search("abab");
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : found) CHECK(count == 200);
}

TEST_CASE("regex: mutilated patterns and texts never crash or hang") {
  const std::string_view pieces[] = {
      "(", ")",  "(?:",   "(?P<n>", "(?i)", "(?x",  "[",   "]",        "[^",   "-",      "\\",
      "*", "+?", "{1,2}", "{",      "}",    "|",    "^",   "$",        "\\b",  "\\d",    "\\x4",
      "a", "b",  ".",     "\303",   "\251", "\377", "#",   "\n",       "(?#",  "\\u12",  "\0"sv,
      ",", "0",  "9999",  "(?=",    "\\1",  ":",    "-i:", "\360\237", "[a-z", "\\w\\W", "?"};
  std::uint64_t state = 7;
  const auto below = [&state](std::size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % bound;
  };
  const Stopwatch watch;
  int usable = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string pattern;
    for (std::size_t n = below(10); n > 0; --n) pattern += pieces[below(std::size(pieces))];
    std::string text;
    for (std::size_t n = below(10); n > 0; --n) text += pieces[below(std::size(pieces))];
    const auto regex = Regex::compile(pattern);
    if (!regex) {
      CHECK(regex.error().offset <= pattern.size());
      continue;
    }
    ++usable;
    const auto found = regex->find(text);
    CHECK(found.has_value() == regex->search(text));
    if (regex->full_match(text)) CHECK(regex->match(text));
    if (regex->match(text)) CHECK((found && found->data() == text.data()));
    if (found) {
      CHECK(found->data() >= text.data());
      CHECK(found->data() + found->size() <= text.data() + text.size());
    }
  }
  CHECK(usable > 1000);
}
