// Docstrings of Python sources. What real Python files say is compared in
// oracle/docstring_oracle.py.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"

using codeexec::ErrorCode;
using codeexec::python_docstring;
using support::TempDir;

namespace {

std::string docstring(std::string_view source, std::string_view name) {
  const auto result = python_docstring(source, name);
  if (result) return *result;
  const codeexec::Error& error = result.error();
  const bool is_parse = error.code == ErrorCode::parse;
  return std::string(codeexec::name(error.code)) +
         (is_parse ? " " + std::to_string(error.offset) : "") + ": " + error.message;
}

}  // namespace

TEST_CASE("docstrings of modules, functions, classes and methods") {
  const char* const source =
      "#!/usr/bin/env python3\n"
      "# -*- coding: utf-8 -*-\n"
      "'''Module.\n"
      "\n"
      "   Indented.\n"
      "   '''\n"
      "import os  # 'not this'\n"
      "def f(a, b='def g(): \"x\"', *, c: int = (1, {2: 3})) -> 'str':\n"
      "    # a comment first\n"
      "\n"
      "    \"\"\"F.\"\"\"\n"
      "    def inner():\n"
      "        'Inner.'\n"
      "async  def  g(x=lambda y: y):\n"
      "    r'G\\n'\n"
      "class C(Base, metaclass=M):\n"
      "\t'C.'\n"
      "\tx = '''\n"
      "def fake():\n"
      "    \"no\"\n"
      "'''\n"
      "\t@property\n"
      "\t@decorate(lambda: {'a': 1})\n"
      "        def method(self): return 1\n"
      "\tclass Inner:\n"
      "\t\tdef deep(self):\n"
      "\t\t\tu'Deep.'\n"
      "def none(): pass\n"
      "def one_line(): 'One.'; return 1\n"
      "def generic[T: (int, str) = lambda: 1](x: T) -> lambda: 1: 'Generic.'\n";
  CHECK(docstring(source, "") == "Module.\n\nIndented.");
  CHECK(docstring(source, "f") == "F.");
  CHECK(docstring(source, "g") == "G\\n");
  CHECK(docstring(source, "C") == "C.");
  CHECK(docstring(source, "C.method") == "");
  CHECK(docstring(source, "C.Inner") == "");
  CHECK(docstring(source, "C.Inner.deep") == "Deep.");
  CHECK(docstring(source, "none") == "");
  CHECK(docstring(source, "one_line") == "One.");
  CHECK(docstring(source, "generic") == "Generic.");
  const std::string missing = "not_found: no function or class of this name is defined";
  for (const char* name : {"nope", "f.inner", "inner", "fake", "C.fake", "C.f", "f.", ".f", "C..x",
                           ".", "C.Inner.deep.x", "method", "Inner", "os", "F", "C.method.x"}) {
    CAPTURE(name);
    CHECK(docstring(source, name) == missing);
  }
  CHECK(docstring("", "") == "");
  CHECK(docstring("# nothing", "") == "");
  CHECK(docstring("", "f") == missing);
}

TEST_CASE("the last definition counts, and those in other blocks do") {
  CHECK(docstring("def f(): 'a'\ndef f(): 'b'\n", "f") == "b");
  CHECK(docstring("def f(): 'a'\ndef f(): pass\n", "f") == "");
  CHECK(docstring("if x:\n  def f(): 'a'\nelse:\n  def f(): 'b'\n", "f") == "b");
  CHECK(docstring("try:\n  def f(): 'a'\nexcept (A, B) as e:\n  pass\nfinally:\n  pass\n", "f") ==
        "a");
  CHECK(docstring("with a as b, c:\n  for x in y:\n    while z:\n      def f(): 'a'\n", "f") ==
        "a");
  CHECK(docstring("match x:\n  case {'a': 1}:\n    def f(): 'a'\n", "f") == "a");
  CHECK(docstring("class C:\n  def f(): 'a'\nclass C:\n  pass\n", "C.f") ==
        "not_found: no function or class of this name is defined");
  CHECK(docstring("class C:\n  def f(): 'a'\ndef C():\n  def f(): 'b'\n", "C.f") ==
        "not_found: no function or class of this name is defined");
  CHECK(docstring("class C:\n  def f(): 'a'\nclass D:\n  def f(): 'b'\n", "C.f") == "a");
  CHECK(docstring("class C:\n  if x:\n    def f(): 'a'\n  y = 1\n", "C.f") == "a");
  // A property has the text of its getter.
  const char* const property =
      "class C:\n"
      "  @property\n"
      "  def x(self): 'Getter.'\n"
      "  @x.setter\n"
      "  @other\n"
      "  def x(self, v): 'Setter.'\n"
      "  @x.deleter\n"
      "  def x(self): pass\n"
      "  @y.setter\n"
      "  def z(self): 'Z.'\n"
      "  @f.register\n"
      "  def w(self): 'W.'\n";
  CHECK(docstring(property, "C.x") == "Getter.");
  CHECK(docstring(property, "C.z") == "Z.");
  CHECK(docstring(property, "C.w") == "W.");
}

TEST_CASE("which first statements are docstrings") {
  const std::pair<const char*, const char*> cases[] = {
      {"'a'", "a"},
      {"'a' # comment", "a"},
      {"'a' 'b'\"c\"", "abc"},
      {"'a' \\\n  'b'", "ab"},
      {"('a'\n 'b')", "ab"},
      {"(('a')); x", "a"},
      {"'a';", "a"},
      {"r'\\n' '\\n.'", "\\n\n."},
      {"U'a'", "a"},
      {"'''a''' '''b'''", "ab"},
      {"''''a'''", "'a"},
      {"''", ""},
      {"''''''", ""},
      {"'''a\\\nb'''", "ab"},
      {"b'a'", ""},
      {"f'a'", ""},
      {"rb'a'", ""},
      {"'a' f'b'", ""},
      {"t'a'", ""},
      {"'a', 'b'", ""},
      {"('a',)", ""},
      {"('a') ('b')", ""},
      {"('a') 'b'", ""},
      {"'a'.upper()", ""},
      {"'a' + 'b'", ""},
      {"'a' if x else 'b'", ""},
      {"'a'[0]", ""},
      {"x = 'a'", ""},
      {"()", ""},
      {"x", ""},
      {"...", ""},
      {"not 'a'", ""},
  };
  for (const auto& [statement, expected] : cases) {
    const std::string shown = statement;
    CAPTURE(shown);
    const std::string wanted = expected;
    CHECK(docstring(shown, "") == wanted);
    CHECK(docstring("def f(): " + shown + "\n", "f") == wanted);
    CHECK(docstring("class f:\n  " + shown + "\n  pass\n", "f") == wanted);
    CHECK(docstring("class f:\r\n\r\n  " + shown + "\r\n  pass", "f") == wanted);
  }
  CHECK(docstring("def f():\n  x\n  'a'\n", "f") == "");
  CHECK(docstring("x\n'a'\n", "") == "");
}

TEST_CASE("escapes are read as Python reads them") {
  CHECK(docstring(R"('\a\b\f\v\\\'\"')", "") == "\a\b\f\v\\'\"");
  CHECK(docstring(R"('.\tb\n\r.')", "") == ".       b\n\r.");
  CHECK(docstring(R"('\x41\u00e9\U0001f600\101\7\1234')", "") ==
        "A\xc3\xa9\xf0\x9f\x98\x80"
        "A\aS4");
  CHECK(docstring(R"('\777\xff')", "") == "\xc7\xbf\xc3\xbf");
  CHECK(docstring(R"('\q\N{DASH}\8')", "") == R"(\q\N{DASH}\8)");
  CHECK(docstring(R"('\ud83d')", "") == "\xef\xbf\xbd");
  CHECK(docstring(R"(r'\x\u\'')", "") == R"(\x\u\')");
  CHECK(docstring("'\xff'", "") == "\xef\xbf\xbd");
  for (const char* bad : {R"('\x4')", R"('\xg0')", R"('\u123')", R"('\U00110000')", R"('\U123')"}) {
    CAPTURE(std::string(bad));
    CHECK(docstring("x = 1\ndef f(): " + std::string(bad), "f") ==
          "parse 15: line 2: a string with an escape that is not whole");
  }
}

TEST_CASE("docstrings are cleaned as inspect.cleandoc does") {
  CHECK(docstring("'''  a\n      b\n\n        c\n    '''", "") == "a\nb\n\n  c");
  CHECK(docstring("'''\n\n    a\n\tb\n\n'''", "") == "a\n    b");
  CHECK(docstring("'''a\r\n  b\r  c'''", "") == "a\nb\nc");
  CHECK(docstring("'''a\n \xc3\xa9\tb\n '''", "") == "a\n\xc3\xa9      b");
  CHECK(docstring("'''   '''", "") == "");
  CHECK(docstring("'''a\n   \n  '''", "") == "a\n   \n  ");
}

TEST_CASE("strings, brackets and comments do not confuse the reader") {
  const std::string def = "\ndef f():\n  'F.'\n";
  for (const char* before : {"x = f'{a[\"b\"]}'",
                             "x = f'{{'",
                             "x = f'}}{x!r:>{w}.{p}}'",
                             "x = f'{x:%H:%M}'",
                             "x = f'{f\"{1}\"}'",
                             "x = f'{'a' + f'{b}'}'",
                             "x = f'''{\n1 # '''\n}'''",
                             "x = f'\\N{DASH}{x}'",
                             "x = rf'\\{x}'",
                             "x = f'\\{x}'",
                             "x = f'{(lambda: 1)()}'",
                             "x = f'{ {1: 2}[1] }'",
                             "x = f'{x=}'",
                             "x = f'{x:{{1:\n2}[1]}}'",
                             "x = '#' # '",
                             "x = '\\''",
                             "x = r'\\' '",
                             "x = '\\\n'",
                             "x = (1, # )\n[2], {3: '}'})",
                             "x = 1 if y else 0or\"a\"",
                             "x \\\n = 1",
                             "if x: y = 1",
                             "x: int = 3",
                             "x = lambda: 1",
                             "x = y[1:2]",
                             "print('''\ndef f():\n''')",
                             "@a.b(c)\nclass C: pass",
                             "async def h():\n  async with a: pass",
                             "\x0c",
                             "if x:\n\ty\n        z",
                             "if x:\n  y\n    # deeper comment\n # other\n  z",
                             "x = 1;",
                             "def g(): return 1; x = 2",
                             "class \xc3\xa9t\xc3\xa9: pass",
                             "if (y := 1): pass",
                             "if x:\n  \\\n  y\n  z\n",
                             "x = rb'\\'' + Rb'' + bR'\\\\'",
                             "x = f'{x!r}' 'a'",
                             "x = f\"{x:{'a'}}\""}) {
    CAPTURE(std::string(before));
    CHECK(docstring(before + def, "f") == "F.");
    CHECK(docstring("\xef\xbb\xbf" + (before + def), "f") == "F.");
  }
}

TEST_CASE("what is not understood is an error with its place") {
  const std::pair<const char*, const char*> cases[] = {
      {"x = (1", "parse 4: line 1: a bracket that is never closed"},
      {"y\nx = [(1)", "parse 6: line 2: a bracket that is never closed"},
      {"x = 1)", "parse 5: line 1: a bracket that was not opened"},
      {"x = (1]", "parse 6: line 1: a bracket that was not opened"},
      {"x = 'a", "parse 4: line 1: a string that is never closed"},
      {"x = 'a\n'", "parse 4: line 1: a string that is never closed"},
      {"\r\n\nx = '''a", "parse 7: line 3: a string that is never closed"},
      {"x = f'{a", "parse 4: line 1: a string that is never closed"},
      {"x = f'{a:'", "parse 4: line 1: a string that is never closed"},
      {"x = f'{a:'}'", "parse 4: line 1: a string that is never closed"},
      {"x = f'{\"a\n\"}'", "parse 7: line 1: a string that is never closed"},
      {"x = 'a\\", "parse 4: line 1: a string that is never closed"},
      {"x \\ y", "parse 2: line 1: a backslash that does not end its line"},
      {"x \\", "parse 2: line 1: a backslash that does not end its line"},
      {"if x:\ny", "parse 6: line 2: an indented line was expected"},
      {"if x:\n", "parse 6: line 2: an indented line was expected"},
      {"  x", "parse 2: line 1: an indentation that no line above has"},
      {"if x:\n    y\n  z", "parse 14: line 3: an indentation that no line above has"},
      {"x = 1\n  y", "parse 8: line 2: an indentation that no line above has"},
      {"def f(x)\n", "parse 0: line 1: a definition without a colon"},
      {"def (x): pass", "parse 0: line 1: a definition without a name"},
      {"class", "parse 0: line 1: a definition without a name"},
      {"x = 1 ? 2", "parse 6: line 1: a character that Python does not know"},
  };
  for (const auto& [source, expected] : cases) {
    const std::string shown = source;
    CAPTURE(shown);
    const std::string said = docstring(shown, "g");
    const std::string wanted = expected;
    CHECK(said == wanted);
  }
  CHECK(docstring(std::string_view("x = 1\0", 6), "g") == "parse 5: line 1: a NUL byte");
}

TEST_CASE("W-54: a docstring is read and nothing of the module runs") {
  TempDir temp;
  const std::string proof = temp / "proof";
  const std::string source = "'Module.'\nopen(" + ("'" + proof + "'") +
                             ", 'w').write('run')\nraise SystemExit(1)\n"
                             "def f(x=open('" +
                             proof + "', 'w')):\n  'F.'\n";
  CHECK(docstring(source, "f") == "F.");
  CHECK(docstring(source, "") == "Module.");
  CHECK_FALSE(support::exists(proof));
}

TEST_CASE("docstrings: no input makes it crash, hang or take more than linear time") {
  const std::string source =
      "'''M'''\nclass C(A, metaclass=B):\n  \"C\\x41\"\n  @x.setter\n  def f(self, a=f'{b!r:{c}}"
      "{f\"{d}\"}', *e) -> lambda: 1:\n    ('F' \\\n     'G')\n    if x:\n\ty = [1, {2: (3)}]\n"
      "  async def g(): r'G'; pass\nmatch x:\n  case _: pass\n";
  CHECK(docstring(source, "C.f") == "FG");
  for (std::size_t size = 0; size <= source.size(); ++size)
    for (const char* name : {"", "C", "C.f", "C.g"})
      (void)python_docstring(std::string(source.substr(0, size)), name);
  support::Random random;
  constexpr char pieces[] = "'\"\\{}()[]:;@#\n\r\t fFrRbBxuN0._=,defclassasynclambda\xc3\xa9";
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "" : source;
    const std::size_t edits = 1 + random.below(40);
    for (std::size_t i = 0; i < edits; ++i)
      text.insert(random.below(text.size() + 1), 1, pieces[random.below(sizeof pieces - 1)]);
    const auto result = python_docstring(text, round % 3 == 0 ? "" : "C.f");
    if (!result && result.error().code == ErrorCode::parse)
      REQUIRE(result.error().offset <= text.size());
  }
  // What nests or repeats a million times. A square of that would not end.
  const std::size_t many = 1000000;
  const auto repeated = [&](const std::string& piece) {
    std::string text;
    while (text.size() < many) text += piece;
    return text;
  };
  for (const char* piece : {"(", "f'{", "f'{x:{", "'a' ", "\\\n", "\n ", "@x.setter\n", "'",
                            "f'{f'", "lambda ", "if x:\n", "def f(): 'a'\n", "#", "\r", "\t"})
    (void)python_docstring(repeated(piece), "f");
  std::string deep;
  for (std::size_t i = 0; i < 1000; ++i) deep += std::string(i, ' ') + "if x:\n";
  deep += std::string(1000, ' ') + "def f(): 'deep'\n";
  CHECK(docstring(deep, "f") == "deep");
}
