// Code by language: what is taken for code in Markdown, which language it is, and that running it
// is nothing but running commands: judged, confined, bounded and recorded as those are.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#include <chrono>
#include <map>

#include "executor_support.hpp"
#include "support.hpp"

using codeexec::AuditRecord;
using codeexec::CancelToken;
using codeexec::CodeBlock;
using codeexec::CodeLanguage;
using codeexec::CodeOptions;
using codeexec::CodeResult;
using codeexec::Executor;
using codeexec::Expected;
using codeexec::extract_code;
using codeexec::infer_language;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using codeexec::run_code;
using codeexec::SandboxMode;
using codeexec::Stream;
using std::chrono::seconds;
using support::begins;
using support::ends;
using support::has;
using support::make;

namespace {

// Nothing here takes as long; it only keeps a failing test from hanging.
constexpr seconds safety(60);

using Strings = std::vector<std::string>;

// Blocks as one text: "[language]code" each.
std::string shown(const std::vector<CodeBlock>& blocks) {
  std::string text;
  for (const CodeBlock& block : blocks) text += "[" + block.language + "]" + block.code;
  return text;
}

std::string extracted(std::string_view markdown) { return shown(extract_code(markdown)); }

LocalOptions in(const support::TempDir& directory) {
  LocalOptions options;
  options.workspace = directory.path();
  options.timeout = safety;
  return options;
}

LocalExecutor executor_in(const support::TempDir& directory) { return make(in(directory)); }

std::string describe(const CodeResult& r) {
  std::string text = "message '" + r.message + "'";
  for (const Result& result : r.results)
    text += " | " + result.command.substr(0, 200) + ": " + result.summary() + " out '" +
            result.out.substr(0, 500) + "' err '" + result.err.substr(0, 500) + "'";
  for (const std::string& file : r.files) text += " file " + file;
  return text;
}

// What code prints that must succeed, in one language.
std::string output_of(const Executor& executor, std::string_view language, std::string_view code,
                      const CodeOptions& options = {}) {
  const CodeResult r = run_code(executor, language, code, options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.message == "");
  REQUIRE(r.results.size() == 1);
  CHECK(r.results[0].err == "");
  return r.results[0].out;
}

// False says why a test that needs the program is left out.
bool is_installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (::access((rest.substr(0, end) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.erase(0, end + 1);
  }
  MESSAGE(std::string("SKIPPED: no " + program + " here"));
  return false;
}

// Names of what a directory holds, without its subdirectories, sorted.
Strings names_in(const std::string& path) {
  Strings names;
  DIR* const directory = ::opendir(path.c_str());
  if (!directory) support::fail("opendir", path);
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Collects what the audit log is told.
struct Audit {
  Strings commands = {};
  Strings codes = {};
  std::vector<Outcome> outcomes = {};
};

LocalOptions audited(LocalOptions options, Audit& audit) {
  options.on_audit = [&audit](const AuditRecord& record) {
    audit.commands.push_back(record.result->command);
    audit.codes.push_back(record.code);
    audit.outcomes.push_back(record.result->outcome);
  };
  return options;
}

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

// running -----------------------------------------------------------------------------------------

TEST_CASE("each language runs with its own program") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CHECK(output_of(executor, "sh", "echo ${BASH_VERSION:+bash} sh") == "sh\n");
  CHECK(output_of(executor, "shell", "echo $((6 * 7))") == "42\n");
  CHECK(output_of(executor, "bash", "a=(1 2 3); echo ${#a[@]}") == "3\n");
  for (const char* name : {"python", "Python", "py", "PY", "python3"})
    CHECK(output_of(executor, name, "import sys\nprint(sys.version_info[0])") == "3\n");
  CHECK(output_of(executor, "", "print('guessed')") == "guessed\n");
  CHECK(output_of(executor, "", "echo guessed") == "guessed\n");
}

TEST_CASE("JavaScript runs in node") {
  if (!is_installed("node")) return;
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  for (const char* name : {"javascript", "js", "JavaScript", "node"})
    CHECK(output_of(executor, name, "console.log([1, 2].map(x => x * 2).join())") == "2,4\n");
}

TEST_CASE("a caller adds languages") {
  if (!is_installed("perl")) return;
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  options.languages.push_back({{"Perl", "pl"}, "pl", {"perl", "-w"}, false});
  CHECK(output_of(executor, "PERL", "print 'a' x 3, $^W", options) == "aaa1");
  CHECK(output_of(executor, "pl", "# x.pl\nprint $0", options) == workspace / "x.pl");
  // One in place of all others; no extension.
  options.languages = {{{"words"}, "", {"cat"}, false}};
  const CodeResult r = run_code(executor, "words", "a b\n", options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].out == "a b\n");
  CHECK(base_name(r.files[0]).size() == std::string("tmp_code_0123456789abcdef").size());
  CHECK(run_code(executor, "python", "1", options).message ==
        "unknown language python; known are words");
  // A shell gets its script by -c, where arguments for a file would be wrong.
  options.languages = {{{"sh"}, "sh", {"sh", "-e"}, true}};
  CHECK(has(run_code(executor, "sh", "true", options).message, "a shell takes no arguments"));
}

TEST_CASE("W-53: without blocks there is no crash, and no success") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult r = run_code(executor, extract_code("no code"));
  CHECK(r.message == "no code blocks to execute");
  CHECK_FALSE(r.succeeded);
  CHECK(r.results.empty());
  CHECK(r.files.empty());
}

TEST_CASE("blocks run in their order, up to the first that fails") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult good =
      run_code(executor,
               {{"sh", "echo 1 > a; echo one"}, {"python", "print(open('a').read())"}, {"sh", ""}});
  CHECK_MESSAGE(good.succeeded, describe(good));
  REQUIRE(good.results.size() == 3);
  CHECK(good.results[0].out == "one\n");
  CHECK(good.results[1].out == "1\n\n");
  CHECK(good.files.size() == 3);

  const CodeResult bad =
      run_code(executor, {{"sh", "echo first"}, {"sh", "exit 3"}, {"sh", "touch third"}});
  CHECK_FALSE(bad.succeeded);
  CHECK(bad.message == "");
  REQUIRE(bad.results.size() == 2);
  CHECK(bad.results[0].out == "first\n");
  CHECK(bad.results[1].exit_code == 3);
  CHECK(bad.files.size() == 2);
  CHECK_FALSE(support::exists(workspace / "third"));
}

TEST_CASE("an unknown language stops what comes after it") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult r =
      run_code(executor, {{"sh", "echo first"}, {"C#", "x"}, {"sh", "touch third"}});
  CHECK_FALSE(r.succeeded);
  CHECK(r.message == "unknown language C#; known are sh, bash, python, javascript, html, css");
  CHECK(r.results.size() == 1);
  CHECK(r.files.size() == 1);
  CHECK_FALSE(support::exists(workspace / "third"));

  CHECK(begins(run_code(executor, "", "using System;").message,
               "the language of the code is not known; known are sh, "));
  const std::string longest = run_code(executor, std::string(1 << 20, 'x') + "\n", "x").message;
  CHECK(longest.size() < 1000);
  CHECK_FALSE(has(run_code(executor, "a\nb\x1b[m", "x").message, "\x1b"));
}

TEST_CASE("pages are saved and not run") {
  const support::TempDir workspace;
  Audit audit;
  const LocalExecutor executor = make(audited(in(workspace), audit));
  const CodeResult r = run_code(executor, {{"html", "<!-- filename: site/index.html -->\n<p>&</p>"},
                                           {"CSS", "/* site.css */\np { color: red }"},
                                           {"css", "p { }"}});
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results.empty());
  REQUIRE(r.files.size() == 3);
  CHECK(r.files[0] == workspace / "site/index.html");
  CHECK(support::read_file(r.files[0]) == "<!-- filename: site/index.html -->\n<p>&</p>");
  CHECK(r.files[1] == workspace / "site.css");
  CHECK(ends(r.files[2], ".css"));
  CHECK(audit.commands == Strings{"save '" + r.files[0] + "'", "save '" + r.files[1] + "'",
                                  "save '" + r.files[2] + "'"});
}

TEST_CASE("W-53: a comment names a file only when it says so") {
  struct Name {
    const char* language;
    const char* code;
    const char* file;  // empty: the automatic one
  };
  const Name names[] = {
      {"python", "# any comment\n", ""},
      {"python", "# see main.py\n", ""},
      {"python", "# main.py does it\n", ""},
      {"python", "# https://example.org/main.py\n", ""},
      {"python", "# main.sh\n", ""},
      {"python", "# .py\n", ""},
      {"python", "# a/.py\n", ""},
      {"python", "#\n", ""},
      {"python", "# filename\n", ""},
      {"python", "# filename:\n", ""},
      {"python", "# filename:   \n", ""},
      {"python", "x = 1 # filename: a.py\n", ""},
      {"python", "\n# filename: a.py\n", ""},
      {"python", "\"\"\"\n# filename: a.py\n\"\"\"\n", ""},
      {"python", "# a.py", "a.py"},
      {"python", "# filename: b.py\n", "b.py"},
      {"python", "#filename:b.py\r\n", "b.py"},
      {"python", "  # filename: c.py\n", "c.py"},
      {"python", "# filename: a b.py\n", "a b.py"},
      {"python", "# filename: 'q'.py\n", "'q'.py"},
      {"python", "# filename: data.txt\n", "data.txt"},
      {"python", "# sub/dir/d-1.py\n", "sub/dir/d-1.py"},
      {"python", "# ./e.py\n", "e.py"},
      {"python", "# filename: sub/../f.py\n", "f.py"},
      {"python", "# \xc3\xa4.py\n", "\xc3\xa4.py"},
      {"python", "# filename: -c.py\n", "-c.py"},
      {"python", "#!/usr/bin/env python3\n# filename: g.py\n", "g.py"},
      {"sh", "# h.sh\n", "h.sh"},
      {"bash", "# h.sh\n", "h.sh"},
      {"sh", "# filename: \xff\xfe.sh\n", "\xff\xfe.sh"},
      {"sh", "#!/bin/sh\n", ""},
      {"html", "<!-- a.html -->\n", "a.html"},
      {"html", "<!--a.html--><p>\n", ""},
      {"html", "<!-->\n", ""},
      {"css", "/* a.css */\n", "a.css"},
      {"css", "/*/\n", ""},
  };
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  for (const Name& name : names) {
    const std::string code = name.code;
    CAPTURE(code);
    const CodeResult r = run_code(executor, name.language, code);
    CHECK_MESSAGE(r.succeeded, describe(r));
    REQUIRE(r.files.size() == 1);
    CHECK(support::read_file(r.files[0]) == code);
    if (*name.file) {
      CHECK(r.files[0] == workspace / name.file);
    } else {
      const std::string file = base_name(r.files[0]);
      CHECK(r.files[0] == workspace / file);
      CHECK(begins(file, "tmp_code_"));
      CHECK(file.find('.') == std::string("tmp_code_0123456789abcdef").size());
      CHECK(file.find_first_not_of("0123456789abcdef", 9) == file.find('.'));
    }
  }
  if (!is_installed("node")) return;
  const CodeResult r = run_code(executor, "js", "// lib/a.js\nconsole.log(__filename)");
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].out == workspace / "lib/a.js\n");
}

TEST_CASE("files without a name are told apart by their content") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const CodeResult one = run_code(executor, {{"sh", "echo 1"}, {"sh", "echo 2"}, {"sh", "echo 1"}});
  REQUIRE_MESSAGE(one.succeeded, describe(one));
  CHECK(one.files[0] != one.files[1]);
  CHECK(one.files[0] == one.files[2]);
  CHECK(names_in(workspace.path()).size() == 2);
  // FNV-1a of the empty string and of "a".
  CHECK(run_code(executor, "css", "").files ==
        Strings{workspace / "tmp_code_cbf29ce484222325.css"});
  CHECK(run_code(executor, "css", "a").files ==
        Strings{workspace / "tmp_code_af63dc4c8601ec8c.css"});
  // Whatever has that name is replaced.
  support::write_file(workspace / "tmp_code_af63dc4c8601ec8c.css", "other");
  CHECK(run_code(executor, "css", "a").succeeded);
  CHECK(support::read_file(workspace / "tmp_code_af63dc4c8601ec8c.css") == "a");
}

TEST_CASE("no name leads out of the work_dir") {
  const support::TempDir outside;
  const support::TempDir base;
  const std::string workspace = base.directory("ws");
  base.directory("ws/sub");
  base.file("next.py", "old");
  outside.file("x.py", "old");
  support::make_symlink(outside.path(), workspace + "/link");
  support::make_symlink(outside / "x.py", workspace + "/file.py");
  support::make_symlink(outside / "new.py", workspace + "/dangling.py");
  support::make_symlink("loop.py", workspace + "/loop.py");
  support::make_symlink("../next.py", workspace + "/up.py");
  support::make_symlink(".hidden", workspace + "/seen");
  base.directory("ws/.hidden");
  base.directory("ws/.git/hooks");
  base.directory("ws2");
  Audit audit;
  LocalOptions local;
  local.workspace = workspace;
  local.timeout = safety;
  const LocalExecutor executor = make(audited(local, audit));
  const std::string out = "Filename is not in the workspace: ";
  const std::string dot = "Filename has a part that begins with a dot";
  const std::pair<std::string, std::string> names[] = {
      {"../next.py", out},
      {"/etc/codeexec-test.py", out},
      {"/tmp/test.py", out},
      {outside / "x.py", out},
      {"sub/../../next.py", out},
      {"sub/../../../../../../../../../../etc/codeexec-test.py", out},
      {"../ws2/x.py", out},
      {workspace + "2/x.py", out},
      {"link/x.py", out},
      {"link/new.py", out},
      {"file.py", out},
      {"dangling.py", out},
      {"up.py", out},
      {"link/../next.py", out},
      {"~/x.py", out},
      {"~root/x.py", out},
      {".", out},
      {"sub/..", out},
      {"/", out},
      {workspace, out},
      {"..", out},
      {"loop.py", "Filename cannot be used: "},
      {"new/", "Filename is that of a directory"},
      {"sub", "cannot save the code as "},
      {"sub/", "Filename is that of a directory"},
      {std::string(300, 'x') + ".py", "cannot save the code as "},
      {std::string(5000, 'x') + ".py", "Filename is longer than 4095 bytes"},
      {std::string(1 << 20, 'x') + ".py", "Filename is longer than 4095 bytes"},
      {std::string(2000, 'x') + "/../x.py", ""},
      {std::string("a\0b.py", 6), "the code has a NUL byte (at byte 13)"},
      {".bashrc", dot},
      {".git/hooks/pre-commit", dot},
      {"sub/.x.py", dot},
      {"seen/x.py", dot},
      {".hidden/../.x", dot},
      {workspace + "/.envrc", dot},
      // These are fine.
      {workspace + "/sub/absolute.py", ""},
      {"sub/../.hidden/../x.py", ""},
      {"..x/../y.py", ""},
      {"$(touch injected).py", ""},
      {"`touch injected`; touch injected.py", ""},
      {"\"'\\.py", ""},
      {"a\tb.py", ""},
  };
  for (const auto& [name, message] : names) {
    const std::string shown_name = name.substr(0, 100);
    CAPTURE(shown_name);
    audit = {};
    const CodeResult r = run_code(executor, "python", "# filename: " + name + "\nprint('ran')\n");
    if (message.empty()) {
      CHECK_MESSAGE(r.succeeded, describe(r));
      CHECK(r.files.size() == 1);
      continue;
    }
    CHECK_FALSE(r.succeeded);
    CHECK_MESSAGE(begins(r.message, message), r.message);
    CHECK(r.message.size() < 9000);
    // An attempt is on record.
    const bool asked = !has(message, "NUL");
    CHECK(audit.commands == (asked ? Strings{"save"} : Strings{}));
    if (message == out || message == dot)
      CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
    CHECK(r.results.empty());
    CHECK(r.files.empty());
  }
  CHECK(support::read_file(outside / "x.py") == "old");
  CHECK(names_in(outside.path()) == Strings{"x.py"});
  CHECK(support::read_file(base / "next.py") == "old");
  CHECK(names_in(base.path()) == Strings{"next.py", "ws", "ws2"});
  CHECK(names_in(base / "ws2").empty());
  CHECK(names_in(workspace + "/.hidden").empty());
  CHECK(names_in(workspace + "/.git/hooks").empty());
  CHECK_FALSE(support::exists(workspace + "/injected"));
  CHECK_FALSE(support::exists("injected"));
  CHECK_FALSE(support::exists("/etc/codeexec-test.py"));
}

TEST_CASE("a work_dir is no way to a name with a dot") {
  const support::TempDir place;
  const std::string hooks = place.directory("ws/.git/hooks");
  LocalOptions local;
  local.workspace = place / "ws";
  local.timeout = safety;
  SUBCASE("below the workspace") {}
  SUBCASE("below a root") {
    local.roots = {{place / "ws", codeexec::Permission::write}};
    local.workspace = place / "ws/.git";
  }
  const LocalExecutor executor = make(local);
  CodeOptions options;
  options.command.work_dir = hooks;
  const CodeResult r = run_code(executor, "sh", "# filename: pre-commit\necho ran\n", options);
  CHECK(begins(r.message, "Filename has a part that begins with a dot"));
  CHECK(names_in(hooks).empty());
  // One that nothing looks for does no harm.
  CHECK(output_of(executor, "sh", "echo ran\n", options) == "ran\n");
}

TEST_CASE("a root or a workspace may lie below a name with a dot") {
  const support::TempDir place;
  LocalOptions local;
  local.workspace = place.directory(".cache/ws");
  local.timeout = safety;
  SUBCASE("without roots") {}
  SUBCASE("with one") { local.roots = {{local.workspace, codeexec::Permission::write}}; }
  CHECK(output_of(make(local), "sh", "# filename: a.sh\necho ran\n") == "ran\n");
}

TEST_CASE("a link of an automatic name leads out no more than another") {
  const support::TempDir outside;
  const support::TempDir workspace;
  outside.file("x.css", "old");
  support::make_symlink(outside / "x.css", workspace / "tmp_code_af63dc4c8601ec8c.css");
  const LocalExecutor executor = executor_in(workspace);
  CHECK(begins(run_code(executor, "css", "a").message, "Filename is not in the workspace: "));
  CHECK(support::read_file(outside / "x.css") == "old");
}

TEST_CASE("the work_dir is where files lie and code runs") {
  const support::TempDir workspace;
  const std::string sub = workspace.directory("a/b");
  support::make_symlink("a/b", workspace / "link");
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  for (const std::string& work_dir : Strings{"a/b", "./a/../a/b/", sub, "link"}) {
    options.command.work_dir = work_dir;
    CAPTURE(work_dir);
    CHECK(output_of(executor, "python", "# x.py\nimport os\nprint(os.getcwd())", options) ==
          sub + "\n");
    CHECK(support::exists(sub + "/x.py"));
    CHECK(::unlink((sub + "/x.py").c_str()) == 0);
    CHECK(output_of(executor, "sh", "pwd", options) == sub + "\n");
    // Its own directory is the bound, not the workspace.
    CHECK(begins(run_code(executor, "sh", "# ../x.sh\n", options).message,
                 "Filename is not in the workspace: "));
  }
}

TEST_CASE("a work_dir that is none is refused as for any command, and nothing is saved") {
  const support::TempDir outside;
  const support::TempDir workspace;
  workspace.file("file");
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  local.roots = {{workspace.path(), Permission::write}};
  const LocalExecutor executor = make(local);
  const std::pair<std::string, std::string> cases[] = {
      {outside.path(), "Path validation error: Path not in allowed directories: "},
      {"../" + base_name(outside.path()), "Path validation error: "},
      {"none", "Working directory does not exist: "},
      {"file", "Working directory is not a directory: "},
      {std::string("a\0b", 3), "has a NUL byte"},
      {std::string(5000, 'x'), ""},
  };
  for (const auto& [work_dir, message] : cases) {
    const std::string& wanted = message;
    CAPTURE(wanted);
    CodeOptions options;
    options.command.work_dir = work_dir;
    for (const char* language : {"sh", "python"}) {
      audit = {};
      const CodeResult r = run_code(executor, language, "# a.sh\nexit\n", options);
      CHECK_FALSE(r.succeeded);
      CHECK(r.message == "");
      REQUIRE(r.results.size() == 1);
      CHECK(r.results[0].outcome == Outcome::refused);
      CHECK(r.results[0].rule == "work_dir");
      CHECK_MESSAGE(has(r.results[0].message, message), r.results[0].message);
      CHECK(r.files.empty());
      CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
    }
    audit = {};
    const CodeResult saved = run_code(executor, "css", "a", options);
    CHECK_FALSE(saved.succeeded);
    CHECK_MESSAGE(has(saved.message, message), saved.message);
    CHECK(saved.files.empty());
    CHECK(audit.commands == Strings{"save"});
  }
  CHECK(names_in(workspace.path()) == Strings{"file"});
  CHECK(names_in(outside.path()).empty());
}

TEST_CASE("what may only be read stays as it is") {
  const support::TempDir workspace;
  workspace.directory("read");
  workspace.directory("closed");
  LocalOptions local = in(workspace);
  local.roots = {{workspace.path(), Permission::write},
                 {workspace / "read", Permission::read},
                 {workspace / "closed", Permission::none}};
  const LocalExecutor executor = make(local);
  for (const char* name : {"read/x.sh", "closed/x.sh", "read/new/x.sh"}) {
    const CodeResult r = run_code(executor, "sh", std::string("# ") + name + "\necho ran");
    CHECK(begins(r.message, "cannot save the code as "));
    CHECK(r.results.empty());
  }
  CodeOptions options;
  options.command.work_dir = "read";
  CHECK(begins(run_code(executor, "sh", "echo ran", options).message, "cannot save the code as "));
  options.command.work_dir = "closed";
  const CodeResult closed = run_code(executor, "sh", "echo ran", options);
  REQUIRE(closed.results.size() == 1);
  CHECK(closed.results[0].rule == "work_dir");
  CHECK(names_in(workspace / "read").empty());
  CHECK(names_in(workspace / "closed").empty());
  CHECK(names_in(workspace.path()) == Strings{"closed", "read"});
}

// the gate ----------------------------------------------------------------------------------------

TEST_CASE("a shell's code is judged as the script it is, before anything is written") {
  const support::TempDir workspace;
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  const LocalExecutor executor = make(local);
  for (const char* language : {"sh", "bash"})
    for (const char* code : {"rm -rf /", "echo ok\nsudo rm -rf /\n", "# a.sh\nrm -rf /"}) {
      const std::string text = code;
      CAPTURE(text);
      audit = {};
      const CodeResult r = run_code(executor, {{language, text}, {"sh", "touch second"}});
      CHECK_FALSE(r.succeeded);
      CHECK(r.message == "");
      REQUIRE(r.results.size() == 1);
      CHECK(r.results[0].outcome == Outcome::refused);
      CHECK(r.results[0].rule != "");
      CHECK(r.results[0].command == text);
      CHECK(r.files.empty());
      CHECK(audit.commands == Strings{text});
      CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
    }
  CHECK(names_in(workspace.path()).empty());
}

TEST_CASE("of other languages the policy sees the command line") {
  const support::TempDir workspace;
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  local.policy.allowed = {"^python3 .*"};
  const LocalExecutor executor = make(local);
  const CodeResult r = run_code(executor, "python", "print('rm -rf /')");
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].command == "python3 -u " + r.files[0]);
  CHECK(run_code(executor, "sh", "echo a").results.at(0).outcome == Outcome::refused);

  local.policy.allowed = {"^echo .*"};
  const LocalExecutor strict = make(local);
  audit = {};
  const std::string code = "print('never')\n";
  const CodeResult refused = run_code(strict, "python", "# never.py\n" + code);
  REQUIRE(refused.results.size() == 1);
  CHECK(refused.results[0].outcome == Outcome::refused);
  CHECK(refused.files.empty());
  CHECK_FALSE(support::exists(workspace / "never.py"));
  // A refusal is told with the code, too.
  CHECK(audit.codes == Strings{"# never.py\n" + code});
  CHECK(audit.outcomes == std::vector<Outcome>{Outcome::refused});
}

TEST_CASE("W-53: Python is on the audit log with its code") {
  const support::TempDir workspace;
  Audit audit;
  LocalOptions local = audited(in(workspace), audit);
  local.environment.set = {{"API_KEY", "s3cret-value"}};
  local.environment.secret = {"API_KEY"};
  const LocalExecutor executor = make(local);
  CodeOptions options;
  options.command.tool = "execute_code";
  const std::string code = "x = 's3cret-value'\nprint(x)\n";
  const CodeResult r = run_code(executor, {{"python", code}, {"sh", "echo hi"}}, options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.results[0].out == "[redacted]\n");
  CHECK(audit.commands == Strings{"python3 -u " + r.files[0], "echo hi"});
  CHECK(audit.codes == Strings{"x = '[redacted]'\nprint(x)\n", ""});
  CHECK(support::read_file(r.files[0]) == code);
}

TEST_CASE("files that code leaves may be deleted afterwards") {
  const support::TempDir workspace;
  workspace.file("mine", "x");
  LocalOptions local = in(workspace);
  local.delete_guard = true;
  const LocalExecutor executor = make(local);
  CHECK(output_of(executor, "python", "# made.py\nprint(1)") == "1\n");
  CHECK(run_code(executor, "css", "/* made.css */").succeeded);
  CHECK(output_of(executor, "sh", "rm made.py made.css") == "");
  const CodeResult r = run_code(executor, "sh", "rm mine");
  REQUIRE(r.results.size() == 1);
  CHECK(r.results[0].rule == "delete-guard");
}

TEST_CASE("the command's options hold for each block") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  options.command.environment = {{"GREETING", "hello"}};
  options.command.input = "typed";
  options.command.script = "exit 9";
  options.command.argv = {"false"};
  options.command.interpreter = "false";
  std::string live;
  options.command.on_output = [&live](Stream, std::string_view bytes) { live += bytes; };
  const std::vector<CodeBlock> blocks = {
      {"python", "import os, sys\nprint(os.environ['GREETING'], sys.stdin.read())"},
      {"sh", "echo $GREETING $(cat) >&2"}};
  const CodeResult r = run_code(executor, blocks, options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  REQUIRE(r.results.size() == 2);
  CHECK(r.results[0].out == "hello typed\n");
  CHECK(r.results[1].err == "hello typed\n");
  CHECK(live == "hello typed\nhello typed\n");

  options.command.merge_streams = true;
  const CodeResult merged = run_code(executor, blocks, options);
  CHECK(merged.results.at(1).out == "hello typed\n");

  options.command.timeout = std::chrono::milliseconds(0);
  const CodeResult never = run_code(executor, "sh", "# never.sh\n", options);
  CHECK(never.results.at(0).rule == "timeout");
  CHECK(never.files.empty());

  options.command.timeout = {};
  options.command.cancel = CancelToken();
  options.command.cancel->cancel();
  const CodeResult cancelled = run_code(executor, blocks, options);
  REQUIRE(cancelled.results.size() == 1);
  CHECK(cancelled.results[0].outcome == Outcome::cancelled);
}

TEST_CASE("python3 is that of the virtual environment") {
  const support::TempDir workspace;
  workspace.file(".venv/bin/python3", "#!/bin/sh\necho mine \"$1\"\n", 0755);
  workspace.file(".venv/pyvenv.cfg");
  LocalOptions local = in(workspace);
  local.environment.venv_path = workspace / ".venv";
  const LocalExecutor executor = make(local);
  CHECK(output_of(executor, "python", "print(1)") == "mine -u\n");
}

TEST_CASE("a program that is missing is told") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  CodeOptions options;
  options.languages = {{{"x"}, "x", {"codeexec-no-such-program"}, false}};
  const CodeResult r = run_code(executor, "x", "1", options);
  CHECK_FALSE(r.succeeded);
  REQUIRE(r.results.size() == 1);
  CHECK(r.results[0].outcome == Outcome::not_started);
  CHECK(has(r.results[0].message, "codeexec-no-such-program"));
}

// hostile code ------------------------------------------------------------------------------------

TEST_CASE("W-52: much output before the end does not block") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  constexpr std::size_t size = std::size_t{300} << 10;
  const std::string out = output_of(
      executor, "python", "import sys\nsys.stdout.write('x' * 300 * 1024)\nsys.stdout.flush()");
  CHECK(out == std::string(size, 'x'));
  const CodeResult both = run_code(
      executor, "python",
      "import os\nfor i in range(300):\n  os.write(2, b'e' * 1024)\n  os.write(1, b'o' * 1024)");
  CHECK_MESSAGE(both.succeeded, describe(both));
  CHECK(both.results[0].out == std::string(size, 'o'));
  CHECK(both.results[0].err == std::string(size, 'e'));
  CHECK(output_of(executor, "sh", "head -c 307200 /dev/zero | tr '\\0' x") ==
        std::string(size, 'x'));
}

TEST_CASE("W-53: nothing of code survives its timeout, and what it printed is kept") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const char* const codes[] = {
      "import subprocess, time\n"
      "p = subprocess.Popen(['sh', '-c', 'sleep 1000 & echo $!; wait'], start_new_session=True,\n"
      "                     stdout=subprocess.PIPE, text=True)\n"
      "print('pids', p.pid, p.stdout.readline().strip())\n"
      "time.sleep(1000)\n",
      "sh -c 'sleep 1000 & echo pids $$ $!; wait'"};
  for (const char* code : codes) {
    CodeOptions options;
    options.command.timeout = std::chrono::milliseconds(250);
    CodeResult r;
    // However slow the machine is, at some time the code comes far enough.
    do {
      *options.command.timeout *= 2;
      r = run_code(executor, infer_language(code), code, options);
      REQUIRE(r.results.size() == 1);
      REQUIRE_MESSAGE(r.results[0].outcome == Outcome::timed_out, describe(r));
      CHECK_FALSE(r.succeeded);
    } while (r.results[0].out.empty() && *options.command.timeout < safety);
    int outer = 0;
    int inner = 0;
    REQUIRE(std::sscanf(r.results[0].out.c_str(), "pids %d %d", &outer, &inner) == 2);
    REQUIRE(outer > 1);
    REQUIRE(inner > 1);
    CHECK(support::dies(outer));
    CHECK(support::dies(inner));
  }
}

TEST_CASE("code of any bytes arrives as it is") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  const std::string quoting = "'\"'\"`touch injected`$(touch injected)\\n$HOME%s!!&|;<>*?[]{}~#";
  CHECK(output_of(executor, "python", "print(r'''" + quoting + " ''')") == quoting + " \n");
  CHECK(output_of(executor, "sh", "cat <<'EOF'\n" + quoting + "\nEOF\n") == quoting + "\n");
  CHECK(output_of(executor, "bash", "cat <<'EOF'\n" + quoting + "\nEOF\n") == quoting + "\n");
  CHECK_FALSE(support::exists(workspace / "injected"));
  CHECK(output_of(executor, "sh", "-x 2>/dev/null; echo $?") == "127\n");
  CHECK(output_of(executor, "python", "print('\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80')") ==
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n");
  CHECK(output_of(executor, "python", "# coding: latin-1\nprint(ord('\xe4'))") == "228\n");
  CHECK(output_of(executor, "sh", "printf '\xff\xfe' | od -An -tx1") == " ff fe\n");
  CHECK(output_of(executor, "python", "if True:\r\n    print(1)\r\n") == "1\n");
}

TEST_CASE("a NUL byte in code is an error, and nothing is saved") {
  const support::TempDir workspace;
  const LocalExecutor executor = executor_in(workspace);
  for (const char* language : {"sh", "bash", "python", "html"}) {
    const CodeResult r = run_code(executor, language, std::string("a\0b", 3));
    CHECK(r.message == "the code has a NUL byte (at byte 1)");
    CHECK(r.results.empty());
    CHECK_FALSE(r.succeeded);
  }
  CHECK(names_in(workspace.path()).empty());
}

TEST_CASE("a MiB of code runs") {
  const support::TempDir workspace;
  Audit audit;
  const LocalExecutor executor = make(audited(in(workspace), audit));
  constexpr std::size_t size = std::size_t{1} << 20;
  const std::string text(size, 'x');
  CHECK(output_of(executor, "python", "s = '" + text + "'\nprint(len(s))") == "1048576\n");
  CHECK(audit.codes.at(0).size() > size);
  std::string comments;
  while (comments.size() < size) comments += "# " + std::string(77, 'x') + "\n";
  // Of a shell's code the policy has its own bound, and says so.
  const CodeResult r = run_code(executor, "bash", comments + "echo done");
  REQUIRE(r.results.size() == 1);
  if (r.succeeded)
    CHECK(r.results[0].out == "done\n");
  else
    CHECK_MESSAGE(r.results[0].outcome == Outcome::refused, describe(r));
  CHECK(output_of(executor, "bash", comments.substr(0, size / 4 / 80 * 80) + "echo done") ==
        "done\n");
}

#if defined(__linux__)
TEST_CASE("W-53: code is in the sandbox") {
  const support::TempDir outside;
  const support::TempDir workspace;
  outside.file("secret", "for nobody");
  LocalOptions local = in(workspace);
  local.sandbox.mode = SandboxMode::strict;
  // Python may be anywhere; what is here is whether the sandbox holds it.
  local.environment.set = {{"PATH", "/usr/bin:/bin"}};
  const Expected<LocalExecutor> executor = LocalExecutor::create(local);
  if (!executor) {
    MESSAGE(std::string("SKIPPED: no sandbox here: ").append(executor.error().message));
    return;
  }
  CHECK(output_of(*executor, "sh", "echo a > b; cat b") == "a\n");
  CHECK(run_code(*executor, "sh", "cat " + outside / "secret").results.at(0).exit_code == 1);
  CHECK(begins(run_code(*executor, "css", "/* filename: " + outside / "x.css" + " */\n").message,
               "Filename is not in the workspace: "));
  CHECK(names_in(outside.path()) == Strings{"secret"});
  if (::access("/usr/bin/python3", X_OK) != 0) {
    MESSAGE("SKIPPED: no /usr/bin/python3 here");
    return;
  }
  CHECK(output_of(*executor, "python",
                  "# x.py\nopen('c', 'w').write('d')\nprint(open('c').read())") == "d\n");
  const CodeResult r = run_code(*executor, "python", "open('" + outside / "secret" + "')");
  REQUIRE(r.results.size() == 1);
  CHECK(has(r.results[0].err, "PermissionError"));
  CHECK(r.results[0].sandbox->mode == SandboxMode::strict);
}
#endif
