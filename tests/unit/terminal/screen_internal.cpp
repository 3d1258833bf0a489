// The screen of a terminal after what a program prints.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>

#include "../../helpers/support.hpp"
#include "terminal/terminal_internal.hpp"

using codeexec::cell_width;
using codeexec::TerminalEmulator;
using codeexec::TerminalScreen;
using codeexec::TerminalSize;
using support::repeat;

namespace {

constexpr TerminalSize small = {4, 10};

std::string place(const TerminalScreen& screen) {
  return std::to_string(screen.cursor_row) + ":" + std::to_string(screen.cursor_col);
}

// The text and the cursor; the bytes come in one piece, and again one by one.
std::string shown(std::string_view bytes, TerminalSize size = small) {
  TerminalEmulator whole(size);
  whole.add(bytes);
  const TerminalScreen screen = whole.screen();
  TerminalEmulator cut(size);
  for (const char& c : bytes) cut.add({&c, 1});
  CHECK(cut.screen().text == screen.text);
  CHECK(place(cut.screen()) == place(screen));
  CHECK(cut.take_answers() == whole.take_answers());
  return screen.text + " " + place(screen);
}

std::string answers_to(std::string_view bytes) {
  TerminalEmulator terminal(small);
  terminal.add(bytes);
  return terminal.take_answers();
}

struct ScreenRow {
  std::string what;
  std::string bytes;
  std::string wanted;
};

void check_rows(std::initializer_list<ScreenRow> rows) {
  for (const ScreenRow& row : rows) {
    CAPTURE(row.what);
    CHECK(shown(row.bytes) == row.wanted);
  }
}

// Four rows of five letters.
const std::string filled = "aaaaa\r\nbbbbb\r\nccccc\r\nddddd";

}  // namespace

TEST_CASE("plain text, control bytes and wrapping") {
  check_rows({
      {"nothing", "", " 1:1"},
      {"text", "abc", "abc 1:4"},
      {"lines", "ab\r\ncd", "ab\ncd 2:3"},
      {"a line feed stays in its column", "ab\ncd", "ab\n  cd 2:5"},
      {"carriage return writes over", "abc\rX", "Xbc 1:2"},
      {"backspace", "abc\bX", "abX 1:4"},
      {"backspace at the edge", "\b\bX", "X 1:2"},
      {"tabs", "a\tb", "a       b 1:10"},
      {"a tab stops at the edge", "a\t\t\tb", "a        b 1:10"},
      {"a full row", "0123456789", "0123456789 1:10"},
      {"one more", "0123456789a", "0123456789\na 2:2"},
      {"the wrap waits, and a carriage return forgets it", "0123456789\rX", "X123456789 1:2"},
      {"and a backspace", "0123456789\bX", "01234567X9 1:10"},
      {"a line feed, too", "0123456789\nX", "0123456789\n         X 2:10"},
      {"scrolling", "1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5 4:2"},
      {"no wrap", "\x1b[?7l0123456789abc", "012345678c 1:10"},
      {"new line mode", "\x1b[20hab\ncd", "ab\ncd 2:3"},
      {"bell, NUL and DEL show nothing",
       std::string("a\a\0\x7f"
                   "b",
                   5),
       "ab 1:3"},
      {"repeated", "a\x1b[3b", "aaaa 1:5"},
      {"nothing to repeat", "\x1b[3b", " 1:1"},
  });
}

TEST_CASE("moving the cursor") {
  check_rows({
      {"to a place", "\x1b[2;3HX", "\n  X 2:4"},
      {"home", "ab\x1b[HX", "Xb 1:2"},
      {"f is H", "\x1b[2;3fX", "\n  X 2:4"},
      {"outside", "\x1b[99;99HX", "\n\n\n         X 4:10"},
      {"0 counts as 1", "\x1b[0;0HX", "X 1:2"},
      {"up, right, down, left", "\x1b[3;3H\x1b[A\x1b[2C\x1b[B\x1b[DX", "\n\n   X 3:5"},
      {"beyond the edges", "\x1b[9A\x1b[9D\x1b[99B\x1b[99C", " 4:10"},
      {"lines down and up", "\x1b[2;5H\x1b[E1\x1b[2F2", "2\n\n1 1:2"},
      {"a column", "abc\x1b[2GX", "aXc 1:3"},
      {"a row", "abc\x1b[3dX", "abc\n\n   X 3:5"},
      {"saved and restored",
       "ab\x1b"
       "7\x1b[3;3H\x1b"
       "8X",
       "abX 1:4"},
      {"with CSI, too", "ab\x1b[s\x1b[3;3H\x1b[uX", "abX 1:4"},
      {"restored without a save",
       "ab\x1b"
       "8X",
       "Xb 1:2"},
      {"index, reverse index, next line",
       "ab\x1b"
       "DX\x1bMY\x1b"
       "EZ",
       "ab Y\nZ X 2:2"},
      {"huge numbers", "\x1b[99999999999999999999;4294967297HX", "\n\n\n         X 4:10"},
      {"many numbers", "\x1b[" + repeat("1;", 1000) + "HX", "X 1:2"},
      {"tabs of its own", "\x1b[3g\x1b[4G\x1bH\r\tX\r\x1b[99G\x1b[ZY", "   Y 1:5"},
      {"tabs forward", "\x1b[IX", "        X 1:10"},
  });
}

TEST_CASE("erasing, inserting and deleting") {
  check_rows({
      {"to the end of the row", filled + "\x1b[2;3H\x1b[K", "aaaaa\nbb\nccccc\nddddd 2:3"},
      {"from its begin", filled + "\x1b[2;3H\x1b[1K", "aaaaa\n   bb\nccccc\nddddd 2:3"},
      {"all of it", filled + "\x1b[2;3H\x1b[2K", "aaaaa\n\nccccc\nddddd 2:3"},
      {"the rest of the screen", filled + "\x1b[2;3H\x1b[J", "aaaaa\nbb 2:3"},
      {"the screen so far", filled + "\x1b[2;3H\x1b[1J", "\n   bb\nccccc\nddddd 2:3"},
      {"the screen", filled + "\x1b[2;3H\x1b[2J", " 2:3"},
      {"what has scrolled out", filled + "\x1b[3J", "aaaaa\nbbbbb\nccccc\nddddd 4:6"},
      {"characters", filled + "\x1b[2;2H\x1b[2X", "aaaaa\nb  bb\nccccc\nddddd 2:2"},
      {"delete", "abcdef\x1b[2G\x1b[2P", "adef 1:2"},
      {"delete all", "abcdef\x1b[2G\x1b[99P", "a 1:2"},
      {"insert blanks", "abcdef\x1b[2G\x1b[2@", "a  bcdef 1:2"},
      {"insert all", "abcdef\x1b[2G\x1b[99@", "a 1:2"},
      {"insert mode", "abc\x1b[2G\x1b[4hXY\x1b[4lZ", "aXYZc 1:5"},
      {"insert lines", filled + "\x1b[2;3H\x1b[2L", "aaaaa\n\n\nbbbbb 2:1"},
      {"delete lines", filled + "\x1b[2;3H\x1b[2M", "aaaaa\nddddd 2:1"},
      {"scroll up", filled + "\x1b[2S", "ccccc\nddddd 4:6"},
      {"scroll down", filled + "\x1b[2T", "\n\naaaaa\nbbbbb 4:6"},
      {"more than there is", filled + "\x1b[9999S", " 4:6"},
      {"reset",
       filled + "\x1b"
                "cX",
       "X 1:2"},
      {"filled to adjust", "\x1b#8", repeat("EEEEEEEEEE\n", 3) + "EEEEEEEEEE 1:1"},
  });
}

TEST_CASE("margins and the origin mode") {
  const std::string margins = filled + "\x1b[2;3r";
  check_rows({
      {"the cursor goes home", margins, "aaaaa\nbbbbb\nccccc\nddddd 1:1"},
      {"only they scroll", margins + "\x1b[3;1H\nX", "aaaaa\nccccc\nX\nddddd 3:2"},
      {"and back", margins + "\x1b[2;1H\x1bMX", "aaaaa\nX\nbbbbb\nddddd 2:2"},
      {"below them nothing scrolls", margins + "\x1b[4;6H\nX", "aaaaa\nbbbbb\nccccc\ndddddX 4:7"},
      {"up stops at them", margins + "\x1b[3;1H\x1b[9AX", "aaaaa\nXbbbb\nccccc\nddddd 2:2"},
      {"unless it is beyond", margins + "\x1b[4;1H\x1b[9BX", "aaaaa\nbbbbb\nccccc\nXdddd 4:2"},
      {"lines come in there", margins + "\x1b[2;1H\x1b[L", "aaaaa\n\nbbbbb\nddddd 2:1"},
      {"and not outside", margins + "\x1b[L\x1b[M", "aaaaa\nbbbbb\nccccc\nddddd 1:1"},
      {"origin", margins + "\x1b[?6hX", "aaaaa\nXbbbb\nccccc\nddddd 2:2"},
      {"and its end", margins + "\x1b[?6h\x1b[9;1HX", "aaaaa\nbbbbb\nXcccc\nddddd 3:2"},
      {"wrong ones change nothing", filled + "\x1b[3;2rX", "aaaaa\nbbbbb\nccccc\ndddddX 4:7"},
      {"none any more", margins + "\x1b[r\x1b[4;1H\n", "bbbbb\nccccc\nddddd 4:1"},
      {"a soft reset", margins + "\x1b[?6h\x1b[!p\x1b[4;1H\n", "bbbbb\nccccc\nddddd 4:1"},
  });
}

TEST_CASE("the alternate screen") {
  const std::string text = "ab\x1b[?1049h";
  check_rows({
      {"begins empty, the cursor where it was", text + "X", "  X 1:4"},
      {"and the other comes back", text + "\x1b[3;3HX\x1b[?1049lc", "abc 1:4"},
      {"twice", text + text + "\x1b[?1049lc", "abc 1:4"},
      {"to leave where it was not", "ab\x1b[?1049lc", "abc 1:4"},
      {"each begins empty", "\x1b[?47hX\x1b[?47l\x1b[?47h", " 1:2"},
      {"1047", "ab\x1b[?1047hX\x1b[?1047lc", "ab c 1:5"},
      {"reset leaves it",
       text + "X\x1b"
              "c",
       " 1:1"},
  });
  TerminalEmulator terminal(small);
  terminal.add("\x1b[?1049h\x1b[?25l\x1b[?1h");
  CHECK(terminal.screen().alternate);
  CHECK(!terminal.screen().cursor_visible);
  CHECK(terminal.screen().application_cursor);
  terminal.add("\x1b[?1049;25h\x1b[?1049l\x1b[?1l\x1b[?25h");
  CHECK(!terminal.screen().alternate);
  CHECK(terminal.screen().cursor_visible);
  CHECK(!terminal.screen().application_cursor);
}

TEST_CASE("characters of one, two and no cells") {
  check_rows({
      {"wide", "\u4e2d\u6587x", "\u4e2d\u6587x 1:6"},
      {"wide at the edge goes to the next row", "012345678\u4e2d", "012345678\n\u4e2d 2:3"},
      {"a mark", "e\u0301x", "e\u0301x 1:3"},
      {"two marks, and not the third", "e\u0301\u0302\u0303x", "e\u0301\u0302x 1:3"},
      {"a mark on a wide one", "\u4e2d\u0301x", "\u4e2d\u0301x 1:4"},
      {"a mark in the last column", "0123456789\u0301", "0123456789\u0301 1:10"},
      {"a mark on nothing", "\u0301x", "x 1:2"},
      {"a mark on a blank", " \u0301x", " \u0301x 1:3"},
      {"the first half is written over", "\u4e2dx\rA", "A x 1:2"},
      {"the second half is written over", "\u4e2dx\x1b[2GA", " Ax 1:3"},
      {"the second half is erased", "\u4e2dx\x1b[2G\x1b[K", " 1:2"},
      {"half is deleted", "\u4e2dxy\x1b[2G\x1b[P", " xy 1:2"},
      {"it is pushed over the edge", "\x1b[9G\u4e2d\r\x1b[@", " 1:1"},
      {"between its halves", "\u4e2d\x1b[2G\x1b[@", " 1:2"},
      {"wrong UTF-8", "a\xff\xe4\xb8z\xc3", "a\ufffd\ufffdz 1:5"},
      {"broken off by a sequence", "\xe4\xb8\x1b[2GX", "\ufffdX 1:3"},
      {"C1 controls are none", "a\u009b2Jb", "a2Jb 1:5"},
      {"lines and boxes", "\x1b(0lqk\x1b(Bq", "\u250c\u2500\u2510q 1:5"},
      {"by shifting", "\x1b)0q\x0eq\x0fq", "q\u2500q 1:4"},
  });
  CHECK(shown("\u4e2dx", {2, 1}) == "\u4e2d\nx 2:1");
  CHECK(cell_width('a') == 1);
  CHECK(cell_width(0x7f) == -1);
  CHECK(cell_width(0xad) == 1);
  CHECK(cell_width(0x300) == 0);
  CHECK(cell_width(0x36f) == 0);
  CHECK(cell_width(0x370) == 1);
  CHECK(cell_width(0x200d) == 0);
  CHECK(cell_width(0xfe0f) == 0);
  CHECK(cell_width(0x1100) == 2);
  CHECK(cell_width(0xac00) == 2);
  CHECK(cell_width(0xff21) == 2);
  CHECK(cell_width(0x1f600) == 2);
  CHECK(cell_width(0x20000) == 2);
  CHECK(cell_width(0x2502) == 1);
  CHECK(cell_width(0xe0100) == 0);
  CHECK(cell_width(0x10ffff) == 1);
}

TEST_CASE("what shows nothing") {
  check_rows({
      {"colours", "\x1b[1;31ma\x1b[38;2;1;2;3mb\x1b[38:5:9mc\x1b[md", "abcd 1:5"},
      {"a title", "a\x1b]0;title\ab\x1b]2;other\x1b\\c", "abc 1:4"},
      {"a title may have UTF-8 in it",
       "\x1b]0;\u4e2d\x9c\x07"
       "a",
       "a 1:2"},
      {"a device control text has bells", "\x1bPa\ab\x1b\\c", "c 1:2"},
      {"others", "\x1b_x\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\a", "a 1:2"},
      {"cancelled",
       "\x1b]0;title\x18"
       "a\x1b[12\x1a"
       "b",
       "ab 1:3"},
      {"a new sequence in a sequence", "\x1b[12\x1b[2GX", " X 1:3"},
      {"control bytes in a sequence act", "ab\x1b[\r2CX", "abX 1:4"},
      {"unknown ones", "\x1b[5~\x1b[>4;2m\x1b[?2004h\x1b[2 q\x1b=\x1b>\x1b%Ga\x1b[=5u", "a 1:2"},
      {"a wrong byte ends one", "\x1b[1\xc3\xa9X", "\ufffdX 1:3"},
  });
  // One that never ends is given up after 1 MiB.
  TerminalEmulator terminal(small);
  terminal.add("\x1b]0;");
  const std::string long_text = repeat("x", 1 << 16);
  for (int i = 0; i < 15; ++i) terminal.add(long_text);
  terminal.add(long_text.substr(2));
  CHECK(terminal.screen().text.empty());
  terminal.add("end");
  CHECK(terminal.screen().text == "end");
}

TEST_CASE("questions are answered") {
  CHECK(answers_to("\x1b[5n") == "\x1b[0n");
  CHECK(answers_to("\x1b[2;3H\x1b[6n") == "\x1b[2;3R");
  CHECK(answers_to("\x1b[2;3r\x1b[?6h\x1b[6n\x1b[?6n") == "\x1b[1;1R\x1b[?1;1R");
  CHECK(answers_to("0123456789\x1b[6n") == "\x1b[1;10R");
  CHECK(answers_to("\x1b[c\x1b[0c\x1bZ") == repeat("\x1b[?1;2c", 3));
  CHECK(answers_to("\x1b[>c") == "\x1b[>0;10;0c");
  CHECK(answers_to("\x1b[18t") == "\x1b[8;4;10t");
  CHECK(answers_to("\x1b[n\x1b[7n\x1b[=c\x1b[t\x1b[?5n").empty());
  CHECK(answers_to("\x1b[6n\x1b"
                   "c") == "\x1b[1;1R");
  CHECK(answers_to(repeat("\x1b[6n", 100000)).size() <= 4096);
}

TEST_CASE("rows that are filled at once") {
  CHECK(shown("\x1b#8\x1b[2;3H\x1b[K\x1b[3;4Hx") == "EEEEEEEEEE\nEE\nEEExEEEEEE\nEEEEEEEEEE 3:5");
  CHECK(shown("\x1b#8\x1b[2;3r\x1b[S\x1b[4;2H\x1b[P") == "EEEEEEEEEE\nEEEEEEEEEE\n\nEEEEEEEEE 4:2");
  CHECK(shown("ab\x1b[2K\x1b[1G\x1b[3Cc\x1b[999b") == "   ccccccc\ncccc 2:5");
  CHECK(shown("\x1b#8\x1b[?47h\x1b[3;2Hy\x1b[?47l") ==
        "EEEEEEEEEE\nEEEEEEEEEE\nEEEEEEEEEE\nEEEEEEEEEE 3:3");
}

// Of the processor, in units of that of plain text: a few bytes can ask for work on all cells. What
// a sanitizer adds is not the same for both.
TEST_CASE("no sequence takes much more time than text of its length") {
  const auto time_of = [](std::string_view sequence, std::size_t bytes) {
    const std::string text = repeat(sequence, bytes / sequence.size());
    TerminalEmulator terminal({TerminalSize::max_rows, TerminalSize::max_cols});
    const std::clock_t begin = std::clock();
    terminal.add(text);
    return static_cast<double>(std::clock() - begin) / static_cast<double>(text.size());
  };
  const double plain = time_of("abc\r\n", 1 << 22);
  for (const char* hostile :
       {"\x1b#8",
        "\x1b"
        "c",
        "a\x1b"
        "c",
        "\x1b[J", "\x1b#8\x1b[J", "\x1b[9999L", "\x1b[9999S", "x\x1b[9999b",
        "\xe4\xb8\x80\x1b[9999b", "\x1b[4h\xe4\xb8\x80\x1b[9999b", "\x1b[?47h\x1b[?47l"}) {
    CAPTURE(hostile);
    const double time = std::min(time_of(hostile, 1 << 16), time_of(hostile, 1 << 16));
    if (!support::address_sanitizer && !support::thread_sanitizer) CHECK(time < 200 * plain);
  }
}

TEST_CASE("any size") {
  for (const TerminalSize size :
       {TerminalSize{1, 1}, TerminalSize{1, 500}, TerminalSize{200, 1}, TerminalSize{200, 500}}) {
    const std::string last = "\x1b[999;999H";
    std::string wanted = std::string(static_cast<std::size_t>(size.rows - 1), '\n') +
                         std::string(static_cast<std::size_t>(size.cols - 1), ' ') + "X " +
                         std::to_string(size.rows) + ":" + std::to_string(size.cols);
    CHECK(shown(last + "X", size) == wanted);
    CHECK(shown(repeat("ab\u4e2d\r\n\x1b[L\x1b[M\x1b[@\x1b[P\t\x1b[9@\x1bM", 300) + "\x1b[2J" +
                    last + "X",
                size) == wanted);
  }
}

namespace {

// What is shown after the bytes, then the size, then more bytes.
std::string resized(std::string_view bytes, TerminalSize size, std::string_view after = "") {
  TerminalEmulator terminal(small);
  terminal.add(bytes);
  terminal.resize(size);
  terminal.add(after);
  const TerminalScreen screen = terminal.screen();
  return screen.text + " " + place(screen);
}

}  // namespace

TEST_CASE("another size cuts and pads, and keeps the cursor on its line") {
  CHECK(resized(filled, {4, 3}) == "aaa\nbbb\nccc\nddd 4:3");
  CHECK(resized(filled, {6, 12}, "\r\nx\x1b[6;12Hy") ==
        "aaaaa\nbbbbb\nccccc\nddddd\nx\n           y 6:12");
  // Rows go from the top only if the cursor's would go at the bottom.
  CHECK(resized(filled, {2, 10}) == "ccccc\nddddd 2:6");
  CHECK(resized(filled + "\x1b[2;3H", {2, 10}) == "aaaaa\nbbbbb 2:3");
  CHECK(resized(filled, {1, 1}) == "d 1:1");
  // What a narrow screen has cut is gone; a line that was full does not wrap any more.
  CHECK(resized("0123456789", {4, 12}, "x") == "012345678x 1:11");
  // The half of a wide character at the edge is blank.
  CHECK(resized("abc\u4e2d", {4, 4}) == "abc 1:4");
  CHECK(resized("abc\u4e2d", {4, 5}) == "abc\u4e2d 1:5");
  // Margins are gone, and saved places are inside.
  CHECK(resized("\x1b[2;3r" + filled, {5, 10}, "\x1b[5;1H\n\nend") == "ddddd\n\n\n\nend 5:4");
  CHECK(resized("\x1b[4;10H\x1b"
                "7\x1b[1;1H",
                {2, 5},
                "\x1b"
                "8x") == "\n    x 2:5");
}

TEST_CASE("another size is that of both screens") {
  // The cursor of the hidden screen keeps its line, too.
  const std::string editor = filled + "\x1b[?1049h\x1b[2J\x1b[1;1Hedit";
  CHECK(resized(editor, {2, 3}) == "edi 1:3");
  CHECK(resized(editor, {2, 3}, "\x1b[?1049lx") == "ccc\nddx 2:3");
  CHECK(resized(editor, {6, 20}, "\x1b[6;20Hz\x1b[?1049lx") == "aaaaa\nbbbbb\nccccc\ndddddx 4:7");
  CHECK(resized("", {30, 90}, "\x1b[18t") == " 1:1");
  TerminalEmulator terminal(small);
  terminal.resize({30, 90});
  terminal.add("\x1b[18t");
  CHECK(terminal.take_answers() == "\x1b[8;30;90t");
}
