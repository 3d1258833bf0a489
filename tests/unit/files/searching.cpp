// Searching a tree by lines, and what a .gitignore leaves out of it and of lists.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Files;
using codeexec::FileSearch;
using support::files_in;
using support::has;
using support::problem;
using support::shape;
using support::TempDir;

namespace {

FileSearch looking_for(std::string pattern, std::string glob = {}) {
  FileSearch search;
  search.pattern = std::move(pattern);
  search.glob = std::move(glob);
  return search;
}

// The text, or "code: message"; with what was left out behind it.
std::string found_by(const codeexec::Expected<codeexec::FileMatches>& found) {
  if (!found) return problem(found);
  std::string text = found->text;
  if (found->ignored > 0) text += "ignored " + std::to_string(found->ignored) + "\n";
  if (found->binary > 0) text += "binary " + std::to_string(found->binary) + "\n";
  if (found->unreadable > 0) text += "unreadable " + std::to_string(found->unreadable) + "\n";
  if (found->more) text += "more\n";
  return text;
}

std::string paths_with(const Files& files, const std::string& glob) {
  FileSearch search = looking_for("", glob);
  search.files_only = true;
  return found_by(files.search(".", search));
}

}  // namespace

TEST_CASE("lines with a match are found, by path, with the lines around them") {
  TempDir temp;
  const Files files = files_in(temp.path());
  temp.file("b/two.c", "int x;\nint main() {\n  return x;\n}\n");
  temp.file("a.c", "1\n2\nx\n4\n5\n6\n7\n8\nx x\n10\nx");
  temp.file("c", "nothing\n");
  temp.file("d\nx", "x\r\ny\r\n");
  auto found = files.search(".", looking_for("x"));
  REQUIRE(found);
  CHECK(found->path == temp.path());
  CHECK(found->matches == 6);
  CHECK(found->text ==
        "a.c\n3:x\n9:x x\n11:x\n\n"
        "b/two.c\n1:int x;\n3:  return x;\n\n"
        "d\\x0ax\n1:x\n");
  FileSearch search = looking_for("^x");
  search.context = 1;
  CHECK(found_by(files.search("a.c", search)) ==
        "a.c\n2-2\n3:x\n4-4\n--\n8-8\n9:x x\n10-10\n11:x\n");
  search.context = 100;
  CHECK(support::lines_of(found_by(files.search("a.c", search))).size() == 12);
  search.context = 101;
  CHECK(has(problem(files.search("a.c", search)), "context"));
  search = looking_for("main|nothing");
  search.files_only = true;
  CHECK(found_by(files.search(temp.path(), search)) == "b/two.c\nc\n");
  CHECK(found_by(files.search("b", looking_for("(?i)INT MAIN"))) == "b/two.c\n2:int main() {\n");
  CHECK(found_by(files.search(".", looking_for("never"))).empty());
  CHECK(found_by(files.search(".", looking_for("x$", "d*"))) == "d\\x0ax\n1:x\n");
  CHECK(has(problem(files.search(".", looking_for("(x"))), "parse: pattern: "));
  CHECK(has(problem(files.search("none", looking_for("x"))), "not_found"));
  CHECK(has(problem(files.search("..", looking_for("x"))), "permission_denied"));

  CHECK(paths_with(files, "*.c") == "a.c\nb/two.c\n");
  CHECK(paths_with(files, "b/*") == "b/two.c\n");
  CHECK(paths_with(files, "**/*.{c,h}") == "a.c\nb/two.c\n");
  CHECK(paths_with(files, "{a,b/t[uvw]o}.c") == "a.c\nb/two.c\n");
  CHECK(paths_with(files, "/*.c") == "a.c\n");
}

TEST_CASE("a search and a list leave out what a .gitignore names, and say how much") {
  TempDir temp;
  temp.file("project/.gitignore", "*.log\n/out/\n");
  temp.file("project/.git/config", "x\n");
  temp.file("project/a.log", "x\n");
  temp.file("project/out/f", "x\n");
  temp.file("project/src/out/f", "x\n");
  temp.file("project/src/.gitignore", "!kept.log\nmade*\n");
  temp.file("project/src/kept.log", "x\n");
  temp.file("project/src/made.c", "x\n");
  temp.file("project/src/node_modules/m.js", "x\n");
  temp.file("project/.hidden", "x\n");
  const Files files = files_in(temp.path());
  CHECK(found_by(files.search("project", looking_for("x"))) ==
        "project/.hidden\n1:x\n\nproject/src/kept.log\n1:x\n\nproject/src/out/f\n1:x\nignored 3\n");
  // The rules of the whole repository count in a part of it; what is asked for itself is searched.
  CHECK(found_by(files.search("project/src", looking_for("x"))) ==
        "project/src/kept.log\n1:x\n\nproject/src/out/f\n1:x\nignored 1\n");
  CHECK(found_by(files.search("project/out", looking_for("x"))) == "project/out/f\n1:x\n");
  CHECK(found_by(files.search("project/a.log", looking_for("x"))) == "project/a.log\n1:x\n");
  // Not those beyond the roots.
  CHECK(found_by(files_in(temp / "project/src").search(".", looking_for("x"))) ==
        "kept.log\n1:x\n\nout/f\n1:x\nignored 1\n");

  const auto list = files.list("project", 3);
  CHECK(
      shape(list) ==
      "d .git closed, f .gitignore 12, f .hidden 2, d src, f src/.gitignore 16, f src/kept.log 2, "
      "d src/node_modules closed, d src/out, f src/out/f 2");
  REQUIRE(list);
  CHECK(list->ignored == 3);
  CHECK(shape(files.list("project/out")) == "f f 2");
}

TEST_CASE("a search leaves out binary files, follows no link and says what it could not read") {
  TempDir temp;
  TempDir outside;
  outside.file("secret", "x\n");
  const Files files = files_in(temp.path());
  temp.file("late", "x\n" + std::string(3 << 20, 'y') + std::string("\0", 1));
  temp.file("wide", std::string("\xff\xfex\0\n\0", 6));
  temp.file("latin", "\xe9 x\n");
  temp.file("bad\xff", "x\n");
  support::make_symlink(outside.path(), temp / "link");
  support::make_symlink("..", temp.directory("loop") + "/up");
  support::make_symlink(outside / "secret", temp / "file_link");
  REQUIRE(::mkfifo((temp / "pipe").c_str(), 0600) == 0);
  const std::string all = found_by(files.search(".", looking_for("x")));
  CHECK_MESSAGE(all == "bad\xef\xbf\xbd\n1:x\n\nlate\n1:x\n\nlatin\n1:\xe9 x\nbinary 2\n", all);
  CHECK(has(problem(files.search("link", looking_for("x"))), "permission_denied"));
  CHECK(has(problem(files.search("pipe", looking_for("x"))), "is a pipe"));
  // A root that forbids a subtree.
  temp.file("no/secret", "x\n");
  const Files some = support::files_with(
      {{temp.path(), codeexec::Permission::read}, {temp / "no", codeexec::Permission::none}},
      temp.path());
  CHECK(!has(found_by(some.search(".", looking_for("x"))), "secret"));
  if (::geteuid() != 0) {
    temp.file("closed/f", "x\n");
    REQUIRE(::chmod((temp / "closed").c_str(), 0) == 0);
    CHECK(has(found_by(files.search(".", looking_for("x"))), "unreadable 1"));
    REQUIRE(::chmod((temp / "closed").c_str(), 0700) == 0);
  }
  const std::string deep = temp / "deep" + support::repeat("/d", 130);
  support::make_directories(deep);
  support::write_file(deep + "/f", "deepest\n");
  CHECK(found_by(files.search("deep", looking_for("deepest"))) == "unreadable 1\n");
}

TEST_CASE("a secret is masked before a part of a long line is shown") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const std::string secret = "KEY0123456789abcdef";
  FileSearch search;
  search.mask = [&](std::string_view line) {
    std::string masked(line);
    for (std::size_t at = masked.find(secret); at != std::string::npos;
         at = masked.find(secret, at))
      masked.replace(at, secret.size(), "***");
    return masked;
  };
  const auto shown = [&](const std::string& line, const char* pattern) {
    temp.file("f", line + "\n");
    search.pattern = pattern;
    return found_by(files.search("f", search));
  };
  const auto leaks = [&](const std::string& text) {
    for (std::size_t at = 0; at + 4 <= secret.size(); ++at)
      if (has(text, secret.substr(at, 4))) return true;
    return false;
  };
  for (const std::size_t before :
       {std::size_t{0}, std::size_t{70}, std::size_t{290}, std::size_t{500}})
    for (const char* const pattern :
         {"x", "y", "KEY012", "def y{3}", "^x* KEY01", "y{290}$", "cdef y*"}) {
      const std::string line =
          support::repeat("x", before) + " " + secret + " " + support::repeat("y", 500);
      CAPTURE(before);
      CAPTURE(pattern);
      const std::string text = shown(line, pattern);
      CHECK_FALSE(leaks(text));
      CHECK(text.size() < 320);
    }
  CHECK(shown(secret + support::repeat("z", 290), "z") ==
        "f\n1:***" + support::repeat("z", 290) + "\n");
  // A line that is more than what is read at once is not shown, as its parts are torn.
  const std::size_t mebibyte = std::size_t{1} << 20;
  const std::string torn = support::repeat("x", mebibyte - 10) + secret + support::repeat("y", 900);
  for (const char* const pattern : {"x{10}K", "f?y", "9a"}) {
    CAPTURE(pattern);
    CHECK_FALSE(leaks(shown(torn, pattern)));
  }
  CHECK(has(shown(torn + "\nnext", "y|next"), "[part of a line of more than 1 MiB]\n2:next\n"));
}

TEST_CASE("a glob of a search is bounded") {
  TempDir temp;
  const Files files = files_in(temp.path());
  temp.file("ab", "x\n");
  FileSearch search = looking_for("x");
  search.glob = "{a,b}{a,b}" + support::repeat("*", 4086);
  CHECK(found_by(files.search(".", search)) == "ab\n1:x\n");
  search.glob += "*";
  CHECK(has(problem(files.search(".", search)), "glob: must be at most 4096 bytes"));
}

TEST_CASE("a search is bounded in matches, bytes, lines and time") {
  TempDir temp;
  const Files files = files_in(temp.path());
  temp.file("long", support::numbered_lines(0, 299999, "row "));
  FileSearch search = looking_for("row");
  search.max_matches = 3;
  CHECK(found_by(files.search(".", search)) == "long\n1:row 0\n2:row 1\n3:row 2\nmore\n");
  search = looking_for("row [0-2]$");
  search.max_matches = 3;
  CHECK(found_by(files.search(".", search)) == "long\n1:row 0\n2:row 1\n3:row 2\n");
  search.max_bytes = 14;
  CHECK(found_by(files.search(".", search)) == "long\n1:row 0\nmore\n");
  // Lines and their numbers hold over the pieces in which a file is read.
  search = looking_for("row 1?99999$|row 7$");
  search.context = 2;
  CHECK(found_by(files.search(".", search)) ==
        "long\n6-row 5\n7-row 6\n8:row 7\n9-row 8\n10-row 9\n--\n99998-row 99997\n99999-row "
        "99998\n100000:row 99999\n100001-row 100000\n100002-row 100001\n--\n199998-row 199997\n"
        "199999-row 199998\n200000:row 199999\n200001-row 200000\n200002-row 200001\n");
  for (int last = 74000; last < 75000; ++last) {  // around the end of a piece
    const std::string number = std::to_string(last);
    const auto found = files.search(".", looking_for("^row " + number + "$"));
    REQUIRE(found);
    REQUIRE(found->text == "long\n" + std::to_string(last + 1) + ":row " + number + "\n");
    last += 99;
  }
  // A line of many pieces.
  temp.file("wide", std::string(5 << 20, 'a') + "needle" + std::string(5 << 20, 'b') + "\nneedle");
  auto found = files.search("wide", looking_for("needle"));
  REQUIRE(found);
  CHECK(found->text.size() < 1000);
  CHECK(support::ends(found->text, "\n2:needle\n"));
  temp.file("middle", std::string(5000, 'a') + "needle" + std::string(5000, 'b'));
  found = files.search("middle", looking_for("needle"));
  REQUIRE(found);
  CHECK(has(found->text, "aneedleb"));
  CHECK(found->text.size() < 400);

  search = looking_for("(a|b)*a(a|b){2000}c");
  search.timeout = std::chrono::milliseconds(1);
  CHECK(has(found_by(files.search("wide", search)), "more"));
  search.timeout = std::chrono::minutes(1);
  search.cancel.emplace();
  search.cancel->cancel();
  CHECK(found_by(files.search(".", search)) == "more\n");
}

TEST_CASE("a search finds the lines that Regex::search finds") {
  TempDir temp;
  const Files files = files_in(temp.path());
  support::Random random(32);
  const char* const atoms[] = {"a",    "b",   "ab",  "[a-c]",       ".",    "\\w",
                               "\\W",  "\\b", "\\B", "^",           "$",    "\xc3\xa9",
                               "[^a]", "\\s", "c",   "(?a:\\w\\b)", "\xe9", "\\Z"};
  const char* const ends[] = {"", "", "", "", "*", "+", "?", "{2}", "{1,3}", "*?"};
  const char* const pieces[] = {"a",  "b",  "c",  " ",    "\xc3\xa9", "\xe9",        "ab",
                                "\r", "\n", "\n", "\r\n", "-",        "\xe2\x82\xac"};
  for (int round = 0; round < 400; ++round) {
    std::string pattern;
    const std::size_t size = 1 + random.below(5);
    for (std::size_t i = 0; i < size; ++i) {
      const bool group = random.below(4) == 0;
      if (group) pattern += "(?:";
      pattern += atoms[random.below(std::size(atoms))];
      if (group && random.below(2) == 0) pattern += std::string("|") + atoms[random.below(4)];
      if (group) pattern += ")";
      const char last = pattern.back();
      const bool repeats = group || (last != '^' && last != '$' && last != 'B' && last != 'Z');
      if (repeats && !support::ends(pattern, "\\b")) pattern += ends[random.below(std::size(ends))];
      if (random.below(6) == 0) pattern += "|";
    }
    const auto regex = codeexec::Regex::compile(pattern);
    if (!regex) continue;
    std::string text;
    for (std::size_t i = random.below(60); i > 0; --i)
      text += pieces[random.below(std::size(pieces))];
    std::string expected;
    std::size_t number = 0;
    for (std::string line : support::lines_of(text)) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      ++number;
      if (regex->search(line)) expected += std::to_string(number) + ":" + line + "\n";
    }
    if (!expected.empty()) expected = "f\n" + expected;
    support::write_file(temp / "f", text);
    CAPTURE(pattern);
    CAPTURE(text);
    REQUIRE(found_by(files.search("f", looking_for(pattern))) == expected);
  }
}
