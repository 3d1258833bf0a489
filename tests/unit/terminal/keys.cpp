// The bytes of keys.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"

using codeexec::ErrorCode;
using codeexec::key_bytes;
using codeexec::TerminalScreen;
using support::has;

namespace {

std::string bytes_of(const std::vector<std::string>& keys, bool application_cursor = false) {
  TerminalScreen screen;
  screen.application_cursor = application_cursor;
  const auto bytes = key_bytes(keys, screen);
  return bytes ? *bytes : "error: " + bytes.error().message;
}

}  // namespace

TEST_CASE("keys have the bytes that xterm sends") {
  CHECK(bytes_of({}).empty());
  CHECK(bytes_of({"enter", "tab", "escape", "backspace", "space"}) == "\r\t\x1b\x7f ");
  CHECK(bytes_of({"Enter", "ESC"}) == "\r\x1b");
  CHECK(bytes_of({"ctrl-c", "ctrl-D", "Ctrl-[", "ctrl-\\", "ctrl-?"}) == "\x03\x04\x1b\x1c\x7f");
  CHECK(bytes_of({"ctrl-space", "ctrl-@"}) == std::string(2, '\0'));
  CHECK(bytes_of({"up", "home", "f1", "f12", "delete"}) == "\x1b[A\x1b[H\x1bOP\x1b[24~\x1b[3~");
  CHECK(bytes_of({"up", "end", "pageup", "shift-tab"}, true) == "\x1bOA\x1bOF\x1b[5~\x1b[Z");
  CHECK(bytes_of({"alt-x", "alt-X", "alt-enter", "alt-left"}) == "\x1bx\x1bX\x1b\r\x1b\x1b[D");
  CHECK(bytes_of({"g", "G", "-", ";", "=", "\u4e2d"}) == "gG-;=\u4e2d");
}

TEST_CASE("a key that is not there is named, and those that are") {
  for (const char* key : {"", "entr", "ctrl-", "ctrl-1", "ctrl-cc", "alt-", "alt-alt-x", "f13",
                          "ab", "\xff", "enter=", ";"}) {
    CAPTURE(key);
    const auto bytes = key_bytes({"enter", key}, TerminalScreen());
    if (std::string(key) == ";") {
      CHECK(bytes);
      continue;
    }
    REQUIRE(!bytes);
    CHECK(bytes.error().code == ErrorCode::invalid_argument);
    for (const char* known : {"enter", "pagedown", "f12", "ctrl-a to ctrl-z", "alt-"})
      CHECK(has(bytes.error().message, known));
  }
}
