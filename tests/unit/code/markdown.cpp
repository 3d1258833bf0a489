// What is taken for code in Markdown, and which language it is.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <map>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::CodeBlock;
using codeexec::extract_code;
using codeexec::infer_language;
using support::Strings;

namespace {

// Blocks as one text: "[language]code" each.
std::string shown(const std::vector<CodeBlock>& blocks) {
  std::string text;
  for (const CodeBlock& block : blocks) text += "[" + block.language + "]" + block.code;
  return text;
}

std::string extracted(std::string_view markdown) { return shown(extract_code(markdown)); }

}  // namespace

// Markdown ----------------------------------------------------------------------------------------

TEST_CASE("fenced code blocks are those of CommonMark 0.31.2, section 4.5") {
  struct Example {
    int number;
    const char* markdown;
    const char* blocks;  // the code is nothing that has a language, unless the fence says it
  };
  const Example examples[] = {
      {119, "```\n<\n >\n```\n", "[]<\n >\n"},
      {120, "~~~\n<\n >\n~~~\n", "[]<\n >\n"},
      {121, "``\nfoo\n``\n", ""},
      {122, "```\naaa\n~~~\n```\n", "[]aaa\n~~~\n"},
      {123, "~~~\naaa\n```\n~~~\n", "[]aaa\n```\n"},
      {124, "````\naaa\n```\n``````\n", "[]aaa\n```\n"},
      {125, "~~~~\naaa\n~~~\n~~~~\n", "[]aaa\n~~~\n"},
      {126, "```\n", "[]"},
      {127, "`````\n\n```\naaa\n", "[]\n```\naaa\n"},
      {128, "> ```\n> aaa\n\nbbb\n", "[]aaa\n"},
      {129, "```\n\n  \n```\n", "[]\n  \n"},
      {130, "```\n```\n", "[]"},
      {131, " ```\n aaa\naaa\n```\n", "[]aaa\naaa\n"},
      {132, "  ```\naaa\n  aaa\naaa\n  ```\n", "[]aaa\naaa\naaa\n"},
      {133, "   ```\n   aaa\n    aaa\n  aaa\n   ```\n", "[]aaa\n aaa\naaa\n"},
      {134, "    ```\n    aaa\n    ```\n", ""},
      {135, "```\naaa\n  ```\n", "[]aaa\n"},
      {136, "   ```\naaa\n  ```\n", "[]aaa\n"},
      {137, "```\naaa\n    ```\n", "[]aaa\n    ```\n"},
      {138, "``` ```\naaa\n", ""},
      {139, "~~~~~~\naaa\n~~~ ~~\n", "[]aaa\n~~~ ~~\n"},
      {140, "foo\n```\nbar\n```\nbaz\n", "[]bar\n"},
      {141, "foo\n---\n~~~\nbar\n~~~\n# baz\n", "[]bar\n"},
      {142, "```ruby\ndef foo(x)\n  return 3\nend\n```\n", "[ruby]def foo(x)\n  return 3\nend\n"},
      {143, "~~~~    ruby startline=3 $%@#$\ndef foo(x)\n  return 3\nend\n~~~~~~~\n",
       "[ruby]def foo(x)\n  return 3\nend\n"},
      {144, "````;\n````\n", "[;]"},
      {145, "``` aa ```\nfoo\n", ""},
      {146, "~~~ aa ``` ~~~\nfoo\n~~~\n", "[aa]foo\n"},
      {147, "```\n``` aaa\n```\n", "[]``` aaa\n"},
  };
  for (const Example& example : examples) {
    CAPTURE(example.number);
    CHECK(extracted(example.markdown) == example.blocks);
    // Other line ends change nothing, and the last one may be missing.
    std::string crlf;
    std::string cr;
    for (const char* c = example.markdown; *c; ++c) {
      crlf += *c == '\n' ? "\r\n" : std::string(1, *c);
      cr += *c == '\n' ? '\r' : *c;
    }
    CHECK(extracted(crlf) == example.blocks);
    CHECK(extracted(cr) == example.blocks);
    crlf.resize(crlf.size() - 2);
    CHECK(extracted(crlf) == example.blocks);
  }
}

TEST_CASE("fences in quotes and list items") {
  const std::pair<const char*, const char*> cases[] = {
      {"> ```sh\n> a\n>  b\n>\n> c\n> ```\ntext\n", "[sh]a\n b\n\nc\n"},
      {">```sh\n>a\n>```\n", "[sh]a\n"},
      // A quote that ends, ends its fence; the next line is none of it.
      {"> ```sh\na\n```py\nb\n```\n", "[sh][py]b\n"},
      {"> > ```sh\n> > a\n> ```py\n> b\n", "[sh]a\n[py]b\n"},
      // A quote inside of a fence is code.
      {"```sh\n> a\n```\n", "[sh]> a\n"},
      {"- ```sh\n  a\n    b\n  ```\n- ```py\n  c\n  ```\n", "[sh]a\n  b\n[py]c\n"},
      {"1. text\n\n   ```sh\n   a\n\n   b\n   ```\n2. ```py\n   c\n   ```\n",
       "[sh]a\n\nb\n[py]c\n"},
      {"10) text\n    ```sh\n    a\n    ```\n", "[sh]a\n"},
      {"-\n  ```sh\n  a\n  ```\n", "[sh]a\n"},
      {"- a\n  - b\n    ```sh\n    c\n    ```\n  ```py\n  d\n  ```\n", "[sh]c\n[py]d\n"},
      {"- > ```sh\n  > a\n  > ```\n", "[sh]a\n"},
      {"> - ```sh\n>   a\n>   ```\n", "[sh]a\n"},
      {"-\t```sh\n\ta\n\t b\n\t```\n", "[sh]a\n b\n"},
      // Not enough to be in the item, but still a fence.
      {"10. text\n\n  ```sh\n  a\n  ```\n", "[sh]a\n"},
      // No markers: too many digits, no blank after it, not the first number within a paragraph.
      {"1234567890. ```sh\n", ""},
      {"-```sh\n", ""},
      {"text\n2. ```sh\n", ""},
      {"text\n1. ```sh\n   a\n", "[sh]a\n"},
      {"text\n- ```sh\n  a\n", "[sh]a\n"},
      {"2. ```sh\n   a\n", "[sh]a\n"},
      // After a heading that is underlined, what may not interrupt a paragraph is a list.
      {"text\n===\n2. ```sh\n   a\n", "[sh]a\n"},
      {"text\n-\n2. ```sh\n   a\n", "[sh]a\n"},
      {"- text\n===\n2. ```sh\n   a\n", "[sh]a\n"},
      // A rule, not a list of lists; then indented code.
      {"- - -\n\n      ```sh\n", ""},
      // A list item of nothing ends with a blank line.
      {"-\n\n    ```sh\n", ""},
      // Indented code in a list item's first line is seen as one that is careless.
      {"-     ```sh\n      a\n      ```\n", "[sh]a\n"},
  };
  for (const auto& [markdown, blocks] : cases) {
    const std::string text = markdown;
    CAPTURE(text);
    CHECK(extracted(text) == blocks);
  }
}

TEST_CASE("fences that are indented carelessly") {
  const std::pair<const char*, const char*> cases[] = {
      // In a list item, by any number.
      {"- text\n\n        ```sh\n        a\n          b\n        ```\n\nend\n", "[sh]a\n  b\n"},
      {"1. text\n         ```sh\n         a\n         ```\n", "[sh]a\n"},
      // Right after text.
      {"Run:\n    ```sh\n    a\n    ```\nthen:\n\t```py\n\tb\n\t```\n", "[sh]a\n[py]b\n"},
      // Not after an empty line: that is indented code.
      {"Run:\n\n    ```sh\n    a\n    ```\n", ""},
      {"# Run\n    ```sh\n    a\n    ```\n", ""},
      {"***\n    ```sh\n    a\n    ```\n", ""},
      // Code and the closing fence may be indented less than the item.
      {"1. text\n   ```sh\n   cat <<EOF\nline\nEOF\n   ```\n\nmore\n",
       "[sh]cat <<EOF\nline\nEOF\n"},
      {"1. text\n   ```sh\n   a\n```\n\nmore\n", "[sh]a\n"},
      {"- text\n  ```sh\n  a\n- b\n  ```\n", "[sh]a\n- b\n"},
      // A closing fence may not be indented by four more than its opening one.
      {"   ```sh\n    ```\n   ```\n", "[sh] ```\n"},
  };
  for (const auto& [markdown, blocks] : cases) {
    const std::string text = markdown;
    CAPTURE(text);
    CHECK(extracted(text) == blocks);
  }
}

TEST_CASE("tabs in Markdown are as wide as they look") {
  // A tab after the fence's two columns of indentation reaches to column 4: two of it are code.
  CHECK(extracted("  ```sh\n\ta\n  ```\n") == "[sh]  a\n");
  CHECK(extracted("  ```sh\n \ta\n  ```\n") == "[sh]  a\n");
  CHECK(extracted("```sh\n\ta\t\n```\n") == "[sh]\ta\t\n");
  CHECK(extracted("\t```sh\n") == "");
  CHECK(extracted("```\tsh\tx\n```\n") == "[sh]");
  CHECK(extracted("> ```sh\n>\ta\n> ```\n") == "[sh]  a\n");
}

TEST_CASE("the language of a block is its first word, or guessed") {
  CHECK(extracted("```Python\n```\n") == "[Python]");
  CHECK(extracted("```C#\n```\n") == "[C#]");
  CHECK(extracted("```python title=\"x\"\n```\n") == "[python]");
  CHECK(extracted("```\nimport os\n```\n") == "[python]import os\n");
  CHECK(extracted("```\npip install x\n```\n") == "[sh]pip install x\n");
  CHECK(extracted("```\n#include <x>\n```\n") == "[]#include <x>\n");
}

TEST_CASE("the reference's messages give the reference's blocks") {
  CHECK(extracted("\nHello:\n```\nprint(\"hello\")\n```\n") == "[python]print(\"hello\")\n");
  CHECK(extracted("One:\n```python\ndef f(x):\n    return x\n```\nTwo:\n```python\nf(1)\n```\n") ==
        "[python]def f(x):\n    return x\n[python]f(1)\n");
  CHECK(extracted("\nOne:\n   ```python\n   def f(x):\n       return x\n   ```\n") ==
        "[python]def f(x):\n    return x\n");
  CHECK(extracted("\r\nOne:\r\n``` python\r\ndef f(x):\r\n   return x\r\n```\r\n") ==
        "[python]def f(x):\n   return x\n");
  CHECK(extracted("\nShell:\n```bash\necho 'hello'\n```\n") == "[bash]echo 'hello'\n");
  CHECK(extracted(
            "\nC#:\n```\nusing System;\n\nnamespace A\n{\n    class B\n    {\n    }\n}\n```\n") ==
        "[]using System;\n\nnamespace A\n{\n    class B\n    {\n    }\n}\n");
  CHECK(extracted("\nNo code at all.\n") == "");
}

TEST_CASE("hostile Markdown takes linear time") {
  // Each of these takes minutes when anything is looked at once per line or per container.
  constexpr std::size_t size = std::size_t{1} << 20;
  std::map<std::string, std::string> texts;
  const auto repeated = [](std::string_view piece) {
    std::string text;
    while (text.size() < size) text += piece;
    return text;
  };
  texts["backticks"] = std::string(size, '`');
  texts["backticks and text"] = std::string(size, '`') + "\na\n";
  texts["backticks apart"] = repeated("``` ");
  texts["fences"] = repeated("```\n");
  texts["fences that do not close"] = "`````\n" + repeated("````\n");
  texts["fences of growing length"] = [] {
    std::string text;
    for (std::size_t i = 3; text.size() < size; ++i) text += std::string(i, '`') + " x`\n";
    return text;
  }();
  texts["quotes"] = repeated("> ");
  texts["quotes without blanks"] = repeated(">");
  texts["quote lines"] = repeated(repeated("> ").substr(0, 1000) + "\n");
  texts["items"] = repeated("- ");
  texts["items, then empty lines"] = repeated("- ").substr(0, size / 2) + repeated("\n");
  texts["items, then text"] = repeated("1. ").substr(0, size / 2) + "a\n" + repeated("b\n");
  texts["items apart"] = repeated("* ") + "a";
  texts["blanks"] = std::string(size, ' ') + "```\n";
  texts["tabs"] = std::string(size, '\t') + "```\n";
  texts["info"] = "```" + std::string(size, 'a') + "\n";
  texts["code"] = "```\n" + repeated("\n");
  texts["guesses"] = "```\n" + repeated("# a\n");
  texts["assignments"] = "```\n" + repeated("a=1 ") + repeated("b=1\n");
  texts["parentheses"] = "```\n" + std::string(size, '(');
  texts["dots"] = "```\n" + repeated("a.") + " = ";
  for (const auto& [what, text] : texts) {
    const std::string& name = what;
    CAPTURE(name);
    std::size_t total = 0;
    for (const CodeBlock& block : extract_code(text)) total += block.code.size();
    CHECK(total <= text.size());
  }
  CHECK(extract_code(texts["backticks"]).size() == 1);
  CHECK(extract_code(texts["backticks apart"]).size() == 0);
  CHECK(extract_code(texts["fences"]).size() == size / 8);
}

// languages ---------------------------------------------------------------------------------------

TEST_CASE("the language of code without one") {
  struct Guess {
    const char* language;
    Strings codes;
  };
  const Guess guesses[] = {
      {"sh",
       {"python x.py",
        "python3 -m venv .venv",
        "pip install numpy",
        "ls",
        "ls -la\n",
        "ls; pwd",
        "cd src && make",
        "git status",
        "\n\n# note\nnpm test",
        "./run.sh",
        "echo \"a = 1\"",
        "#!/bin/sh\nx",
        "#!/usr/bin/env sh\nx",
        "if [ -f a ]; then b; fi",
        "for f in *.py; do cat $f; done",
        "while true; do x; done",
        "FOO=$(pwd)\nx",
        "A=\"$B\"",
        "PYTHONPATH=. python x.py",
        "X=1\necho $X",
        "case $x in",
        "export A=1",
        "cat <<EOF\na\nEOF",
        "sudo apt-get update"}},
      {"bash", {"#!/bin/bash\nx", "#!/usr/bin/env bash\nx", "#! /usr/bin/env -S bash -e\n"}},
      {"javascript", {"#!/usr/bin/env node\n"}},
      {"python",
       {"import os",
        "import os.path as p, sys",
        "from a.b import c",
        "from a import (",
        "print(1)",
        "print('a')\n",
        "def f(x):\n  return x",
        "def f(x): return x",
        "def f(\n  a):\n  pass",
        "class A:\n  x = 1",
        "class A(B): pass",
        "async def f():",
        "for i in range(3):\n  print(i)",
        "if x:\n  y()",
        "while True:\n  pass",
        "with open('a') as f:",
        "try:\n  a()",
        "@a.b\ndef f():",
        "@app.get('/x y')\ndef f():",
        "\"\"\"Text.\"\"\"\nx",
        "'''Text.",
        "# note\nx = 1",
        "x = {",
        "a, b = 1, 2",
        "a.b = 3",
        "a[0] = 3",
        "x += 1",
        "x: int = 5",
        "x=1",
        "x=1\ny=2",
        "f(1)",
        "a.b.c(1,",
        "#!/usr/bin/env python3\nx",
        "#!/usr/bin/python\n",
        "assert x",
        "raise X()",
        "x=1\nprint(x)",
        "find = 3",
        "make = f(1)",
        "echo = 1",
        "x = f(a)\n",
        "result = {'a': 1}"}},
      {"",
       {"",
        "\n\n",
        "# nothing\n",
        "using System;",
        "#include <stdio.h>\nint main() {\n}",
        "const x = 1",
        "let x = 1;",
        "function f() {",
        "console.log('a')",
        "x = 5;",
        "import x from 'y'",
        "from here to there",
        "import \"fmt\"",
        "import java.util.List;",
        "def foo(x)\n  3\nend",
        "class A {",
        "class A : public B {",
        "def f(x) {",
        "int x = 5;",
        "SELECT 1",
        "<html>",
        "#!/usr/bin/perl\nx",
        "#!",
        "#!/usr/bin/env",
        "x == 1",
        "Some words of text.",
        "@media (x) {",
        "body {",
        "{\"a\": 1}",
        "- a: b",
        "=",
        "(",
        "@",
        "'",
        "a b = c"}},
  };
  for (const Guess& guess : guesses)
    for (const std::string& code : guess.codes) {
      CAPTURE(code);
      CHECK(infer_language(code) == guess.language);
    }
}
