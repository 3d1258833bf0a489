// Editing: exact texts become others, all of them or none.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::FileEdit;
using codeexec::Files;
using support::files_in;
using support::has;
using support::names_in;
using support::numbered_lines;
using support::problem;
using support::TempDir;

namespace {

using Edits = std::vector<FileEdit>;

// The difference, or "code: message".
std::string difference(const codeexec::Expected<codeexec::FileEdited>& edited) {
  return edited ? edited->diff : problem(edited);
}

}  // namespace

TEST_CASE("an exact text becomes another, and the difference shows it") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const std::string path = temp.file("f", numbered_lines(1, 20, "line "), 0640);
  const auto edited = files.edit("f", Edits{{"line 10\n", "ten\nand more\n"}});
  REQUIRE(edited);
  CHECK(edited->path == path);
  CHECK(edited->replaced == 1);
  CHECK(edited->diff ==
        "@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n-line 10\n+ten\n+and more\n line 11\n"
        " line 12\n line 13\n");
  CHECK(support::read_file(path) ==
        numbered_lines(1, 9, "line ") + "ten\nand more\n" + numbered_lines(11, 20, "line "));
  CHECK(support::mode_of(path) == 0640);
  CHECK(names_in(temp.path()) == std::vector<std::string>{"f"});

  // Several at once, each in the text as it was, in any order; lines count in both texts.
  CHECK(difference(files.edit("f", Edits{{"line 19", "19"}, {"line 1\n", ""}, {"line 2\n", ""}})) ==
        "@@ -1,5 +1,3 @@\n-line 1\n-line 2\n line 3\n line 4\n line 5\n"
        "@@ -17,5 +15,5 @@\n line 16\n line 17\n line 18\n-line 19\n+19\n line 20\n");
  // What both texts of an edit share is not a part of it: edits may have it in common.
  CHECK(
      files.edit("f", Edits{{"line 3\nline 4\n", "3\nline 4\n"}, {"line 4\nline 5", "line 4\n5"}}));
  CHECK(has(support::read_file(path), "3\nline 4\n5\n"));

  support::write_file(path, "a a\na\n");
  CHECK(difference(files.edit("f", Edits{{"a", "bb", true}})) ==
        "@@ -1,2 +1,2 @@\n-a a\n-a\n+bb bb\n+bb\n");
  support::write_file(path, "x");
  CHECK(files.edit(path, Edits{{"x", ""}}));
  CHECK(support::read_file(path).empty());
}

TEST_CASE("an edit that cannot be made changes nothing and says what to do") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const std::string text = "def f(a):\n    return a\n\n\ndef g(a, b):\n    return a\n";
  const std::string path = temp.file("f", text);
  const auto wrong = [&](const Edits& edits) {
    const std::string message = problem(files.edit("f", edits));
    CHECK(support::read_file(path) == text);
    CHECK(names_in(temp.path()) == std::vector<std::string>{"f"});
    return message;
  };
  CHECK(has(wrong({{"    return a\n", "x"}}), "at several places, lines 2, 6; "));
  CHECK(has(wrong({{"", "x"}}), "write_file"));
  CHECK(has(wrong({{"def", "def"}}), "the same"));
  CHECK(has(wrong({}), "1 to 100"));
  CHECK(has(wrong(Edits(101, {"def f", "x"})), "1 to 100"));
  CHECK(has(wrong({{"def f", "x"}, {"ef f(", "y"}}), "edits 0 and 1 overlap at line 1"));
  CHECK(has(wrong({{"f(a)", "f(a, b)"}, {"a):", "a, c):"}}), "overlap"));
  CHECK(has(wrong({{"def f", "x"}, {"nothing like this", "y"}}), "not_found: "));
  CHECK(has(wrong({{"def f", "x"}, {"0123456789", "y"}}), "edits[1]: old_text is not in it"));
  // The nearest: by the lines that are the same, or alike.
  CHECK(has(wrong({{"def g(a, b):\n    return b\n", ""}}),
            "nearest is at line 5, but its line 6 is '    return a', not '    return b'"));
  CHECK(has(wrong({{"  return a\n\n\n def g", ""}}), "at line 2"));
  CHECK(has(wrong({{"def g(a,b)", ""}}), "nearest is at line 5: 'def g(a, b):'"));
  CHECK(!has(wrong({{"0123456789", ""}}), "nearest"));

  support::write_file(path, support::repeat("aa\n", 30));
  CHECK(has(problem(files.edit("f", Edits{{"aa", "b"}})),
            "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more"));
  support::write_file(path, "aaa");
  CHECK(has(problem(files.edit("f", Edits{{"aa", "b"}})), "lines 1, 1;"));
  // No part of a line is shown, as it might be one of a secret that is masked as a whole.
  const std::string long_line(290, 'p');
  temp.file("long", long_line + "SECRET_OF_MANY\n");
  CHECK(has(problem(files.edit("long", Edits{{long_line + "Z", ""}})),
            "nearest is at line 1: one of 304 bytes"));
}

TEST_CASE("line ends stay as they are") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const std::string path = temp.file("f", numbered_lines(1, 6, "line ", "\r\n"));
  const auto edited = files.edit("f", Edits{{"line 2\nline 3", "2\n2b\n3"}, {"line 5", "5\n5b"}});
  REQUIRE_MESSAGE(edited, problem(edited));
  CHECK(support::read_file(path) == "line 1\r\n2\r\n2b\r\n3\r\nline 4\r\n5\r\n5b\r\nline 6\r\n");
  CHECK(!has(edited->diff, "\r"));
  CHECK(has(edited->diff, "-line 3\n"));
  CHECK(files.edit("f", Edits{{"2b\r\n", ""}}));
  CHECK(!has(support::read_file(path), "2b"));
  // Of a text with both, what is found decides.
  support::write_file(path, "a\nb\nc\r\nd\r\ne\r\n");
  CHECK(files.edit("f", Edits{{"a\nb", "1\n2"}, {"c\nd", "3\n4"}}));
  CHECK(support::read_file(path) == "1\n2\n3\r\n4\r\ne\r\n");
  support::write_file(path, "a\nb\n");
  CHECK(files.edit("f", Edits{{"a", "1\n2"}}));
  CHECK(support::read_file(path) == "1\n2\nb\n");
}

TEST_CASE("what is no text of its own is not edited") {
  TempDir temp;
  TempDir outside;
  const Files files = files_in(temp.path());
  const Edits edits = {{"a", "b"}};
  outside.file("f", "a");
  temp.file("wide", std::string("\xff\xfe"
                                "a\0",
                                4));
  temp.file("kept", "a", 0444);
  temp.file("latin", "a \xe9\n");
  support::make_symlink(outside / "f", temp / "out");
  support::make_symlink("latin", temp / "in");
  REQUIRE(::mkfifo((temp / "pipe").c_str(), 0600) == 0);
  CHECK(has(problem(files.edit("wide", edits)), "UTF-16"));
  CHECK(has(problem(files.edit("out", edits)), "permission_denied"));
  CHECK(has(problem(files.edit("pipe", edits)), "is a pipe"));
  CHECK(has(problem(files.edit(".", edits)), "is a directory"));
  CHECK(has(problem(files.edit("none", edits)), "not_found"));
  CHECK(has(problem(files.edit("no/ne", edits)), "not_found"));
  CHECK(!support::exists(temp / "no"));
  CHECK(files.edit("in", edits));
  CHECK(support::read_file(temp / "latin") == "b \xe9\n");
  CHECK(support::read_file(outside / "f") == "a");
  CHECK(has(problem(support::files_with({{temp.path(), codeexec::Permission::read}}, temp.path())
                        .edit("latin", edits)),
            "read_only"));
}

TEST_CASE("edits of hostile sizes take linear time and bounded answers") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const std::size_t most = Files::max_edited;
  const std::string path = temp.file("f", std::string(most, 'a'));
  // A text that nearly matches everywhere.
  const std::string half(most / 2, 'a');
  CHECK(has(problem(files.edit("f", Edits{{half + "b", "x"}})), "not_found"));
  CHECK(has(problem(files.edit("f", Edits{{half, "x"}})), "several"));
  CHECK(has(problem(files.edit("f", Edits{{"a", "b", true}})), "limit: "));
  CHECK(has(problem(files.edit("f", Edits{{std::string(most / 1000, 'a'),
                                           std::string(std::size_t{1} << 17, 'b'), true}})),
            "limit: "));
  CHECK(support::read_file(path).size() == most);
  // Many places in one line, and in many lines.
  support::write_file(path, support::repeat("abcdefgh", 90000));
  auto edited = files.edit("f", Edits{{"cd", "-", true}});
  REQUIRE(edited);
  CHECK(edited->replaced == 90000);
  CHECK(edited->diff.size() <= Files::max_diff);
  support::write_file(path, numbered_lines(1, 90000, "line "));
  edited = files.edit("f", Edits{{"line", "row", true}});
  REQUIRE(edited);
  CHECK(edited->replaced == 90000);
  CHECK(edited->diff.size() <= Files::max_diff);
  CHECK(support::ends(edited->diff, "\n...\n"));
  CHECK(support::begins(support::read_file(path), "row 1\nrow 2\n"));
  support::write_file(path, std::string(most, '\n'));
  CHECK(has(problem(files.edit("f", Edits{{"x\n\n", "y"}})), "not_found"));
  support::write_file(path, std::string(most + 1, 'a'));
  CHECK(has(problem(files.edit("f", Edits{{"aa", "b"}})), "16 MiB"));
}

TEST_CASE("a file that is changed meanwhile stays as it was changed") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const std::string path = temp / "f";
  const std::string text = numbered_lines(1, 200000, "line ");
  // Another one writes when it sees the new file; sometimes it is too late.
  CHECK(support::comes_true([&] {
    support::write_file(path, text);
    std::atomic<bool> is_done{false};
    std::thread other([&] {
      while (!is_done && names_in(temp.path()).size() == 1) std::this_thread::yield();
      support::write_file(path, "changed");
    });
    const auto edited = files.edit("f", Edits{{"line 1\n", "one\n"}});
    is_done = true;
    other.join();
    return has(problem(edited), "io: ") && has(problem(edited), "changed meanwhile");
  }));
  CHECK(support::read_file(path) == "changed");
  CHECK(names_in(temp.path()) == std::vector<std::string>{"f"});
}
