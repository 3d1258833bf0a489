// What models write: Markdown with blocks of code, code in some language, Python with docstrings.
//                                                          sh tests/fuzz/run.sh [seconds] code
//   The first byte of an input chooses the reader.
#include <algorithm>

#include "fuzz.hpp"

namespace {

using codeexec::CodeBlock;

std::size_t longest_run(std::string_view text, char c) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char each : text) {
    run = each == c ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

void read_markdown(std::string_view text) {
  const std::vector<CodeBlock> blocks = codeexec::extract_code(text);
  std::size_t bytes = 0;
  for (const CodeBlock& block : blocks) {
    EXPECT_WITH(block.code.empty() || block.code.back() == '\n', text);
    EXPECT_WITH(block.language.find_first_of(" \t\n") == std::string::npos, text);
    bytes += block.code.size();
  }
  // Of a tab that is partly indentation, blanks are left: at most four for one.
  EXPECT_WITH(bytes <= text.size() * 4 + blocks.size(), text);
}

// Code between fences is told as it is.
void write_markdown(std::string_view text, bool in_quote, char fence_character) {
  std::string code;
  for (const char c : text)
    if (c != '\r' && c != '\0') code += c;
  if (!code.empty() && code.back() != '\n') code += '\n';
  const std::string fence(std::max<std::size_t>(2, longest_run(code, fence_character)) + 1,
                          fence_character);
  const std::string whole = "Look:\n\n" + fence + "python\n" + code + fence + "\nand so on\n";
  std::string markdown;
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = whole.find('\n', at) + 1;
    markdown += (in_quote ? "> " : "") + whole.substr(at, end - at);
    at = end;
  }
  const std::vector<CodeBlock> blocks = codeexec::extract_code(markdown);
  EXPECT_WITH(blocks.size() == 1, markdown);
  EXPECT_WITH(blocks[0].language == "python" && blocks[0].code == code, markdown);
}

void read_code(std::string_view code) {
  const std::string language = codeexec::infer_language(code);
  const char* const known[] = {"", "sh", "bash", "python", "javascript"};
  EXPECT_WITH(std::find(std::begin(known), std::end(known), language) != std::end(known), code);
  for (const char* extension : {"", "py", "html"}) {
    const std::string_view name = fuzz::name_in_comment(code, extension);
    EXPECT_WITH(name.empty() || code.find(name) < code.size(), code);
    EXPECT_WITH(name.find('\n') == std::string_view::npos, code);
  }
  EXPECT_WITH(fuzz::name_in_comment("# filename: a.py\n" + std::string(code), "py") == "a.py",
              code);
}

void read_python(std::string_view source, std::string_view name) {
  const auto text = codeexec::python_docstring(source, name);
  if (!text) {
    EXPECT_WITH(text.error().offset <= source.size(), source);
    EXPECT_WITH(!text.error().message.empty(), source);
    return;
  }
  // A statement behind it, where it is one, changes nothing.
  const auto longer = codeexec::python_docstring(std::string(source) + "\nzz = 1\n", name);
  EXPECT_WITH(!longer || *longer == *text, source);
}

// As inspect.cleandoc does, of a text without tabs.
std::string cleaned(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  const auto indent = [](const std::string& line) { return line.find_first_not_of(' '); };
  std::size_t margin = std::string::npos;
  for (std::size_t i = 1; i < lines.size(); ++i) margin = std::min(margin, indent(lines[i]));
  lines[0].erase(0, indent(lines[0]));
  for (std::size_t i = 1; i < lines.size() && margin != std::string::npos; ++i)
    lines[i].erase(0, margin);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  while (!lines.empty() && lines.front().empty()) lines.erase(lines.begin());
  std::string result;
  for (const std::string& line : lines) result += (&line == &lines[0] ? "" : "\n") + line;
  return result;
}

void write_python(std::string_view input) {
  std::string text;
  for (const char c : codeexec::to_utf8(input))
    if (std::string_view("\\\"\t\r\v\f").find(c) == std::string_view::npos && c != '\0') text += c;
  const std::string source =
      "import os\n\nclass A(B, c=[\n1]):\n  x: int = 1\n  @p\n"
      "  async def f(self, a=(1, '\\'')) -> \"x\":  # :\n    \"\"\"" +
      text + "\"\"\"\n    return 1\n\ndef f(): 'other'\n";
  const auto got = codeexec::python_docstring(source, "A.f");
  EXPECT_WITH(got && *got == cleaned(text), source);
  const auto other = codeexec::python_docstring(source, "f");
  EXPECT_WITH(other && *other == "other", source);
}

}  // namespace

void fuzz::code(std::string_view input) {
  Bytes bytes(input);
  switch (bytes.below(8)) {
    case 0:
    case 1:
      return read_markdown(bytes.rest());
    case 2:
      return write_markdown(bytes.rest(), false, '`');
    case 3:
      return write_markdown(bytes.rest(), true, '~');
    case 4:
      return read_code(bytes.rest());
    case 5:
      return write_python(bytes.rest());
    default: {
      const std::string_view name = bytes.part();
      return read_python(bytes.rest(), name);
    }
  }
}
