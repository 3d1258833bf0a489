// What a model sees of an output that was made for a terminal.

#include "helpers.hpp"

namespace {

using codeexec::Json;
using support::Fifo;
using support::Server;
using support::Strings;
using support::TempDir;

std::string octal(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    char byte[8];
    std::snprintf(byte, sizeof byte, "\\%03o", static_cast<unsigned>(c) & 0xffu);
    escaped += byte;
  }
  return escaped;
}

TEST_CASE("escape sequences and overwritten lines are shown as a terminal shows them") {
  struct Print {
    std::string printed;
    std::string shown;
  };
  const Print prints[] = {{"plain\n", "plain\n"},
                          {"10%\r20%\r100%\n", "100%\n"},
                          {"downloading\rdone\n", "doneloading\n"},
                          {"downloading\r\x1b[Kdone\n", "done\n"},
                          {"downloading\x1b[2K\rdone\n", "done\n"},
                          {"50%\r", "50%"},
                          {"ab\b\bxy\bz\n", "xz\n"},
                          {"\b\b\rok\n", "ok\n"},
                          {"\xc3\xa4\xe2\x82\xac\rxy\n", "xy\n"},
                          {"ab\r\xe2\x82\xac\n",
                           "\xe2\x82\xac"
                           "b\n"},
                          {"\x1b[1;31mred\x1b[0m and \x1b[38;5;7mgrey\x1b[m\n", "red and grey\n"},
                          {"\x1b]0;a title\x07text\n", "text\n"},
                          {"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"},
                          {"\x1bPq#0\x1b\\x\x1b(By\x1b=z\x1b"
                           "7\n",
                           "xyz\n"},
                          {"\x1b[2J\x1b[H\x1b[?25lx\x1b[?25h\n", "x\n"},
                          {"bell\x07\n", "bell\n"},
                          // A line's end is left as it is.
                          {"a\r\nb\r\n", "a\r\nb\r\n"},
                          {"a\rb\r\nc", "b\r\nc"},
                          // What is no whole sequence takes no line with it.
                          {"\x1b[31\nnext\n", "\nnext\n"},
                          {"\x1b]0;never ends\nnext\n", "0;never ends\nnext\n"},
                          {"x\x1b", "x"},
                          {"x\x1b[3", "x"},
                          {"\x1b\xc3\xa4\n", "\xc3\xa4\n"}};
  Server server;
  for (const Print& row : prints) {
    CAPTURE(row.printed);
    const std::string command = "printf '" + octal(row.printed) + "'";
    const Json r = server.execute(command + "; " + command + " >&2");
    CHECK(r["stdout"] == Json(row.shown));
    CHECK(r["stderr"] == Json(row.shown));
  }
  const Json code = server.use(
      "execute_code", Json::object({{"language", "sh"}, {"code", "printf 'a\\rb\\033[0mc\\n'"}}));
  CHECK(code["stdout"] == Json("bc\n"));
  const Json raw = server.execute_with(
      Json::object({{"command", "printf '\\033[1mx\\r\\n'"}, {"encoding", "base64"}}));
  CHECK(raw["stdout"] == Json("G1sxbXgNCg=="));
}

TEST_CASE("long lines of progress take linear time") {
  Server server(Strings{"--max-output-size", "4000000"});
  const Json r = server.execute(
      "yes \"$(printf 'xy\\033[2K\\033]\\b\\r')\" | head -n 100000 | tr -d '\\n'; echo end");
  CHECK(support::ends(r["stdout"].as_string(), "end\n"));
  CHECK(r["execution_time"].as_number() < 30);
}

TEST_CASE("a sequence that comes in two pieces is not torn") {
  const TempDir place;
  Fifo go(place / "go");
  Server server;
  const Json shell =
      server.use("start_background_shell",
                 Json::object({{"command", "printf 'a\\nb\\033[3'; read x < " + go.path() +
                                               "; printf '1mc\\033[0m\\n'"}}));
  const Json first = server.use(
      "get_background_shell_output",
      Json::object({{"shell_id", shell["shell_id"]}, {"wait_for", "b"}, {"timeout", 60}}));
  CHECK(first["stdout"] == Json("a\nb"));
  go.write_text("go\n");
  const Json rest =
      server.use("get_background_shell_output", Json::object({{"shell_id", shell["shell_id"]},
                                                              {"since", first["next"]},
                                                              {"wait_for", "exit"},
                                                              {"timeout", 60}}));
  CHECK(rest["stdout"] == Json("c\n"));
}

TEST_CASE("a secret that only a terminal shows whole is masked") {
  Server::Options options;
  options.arguments = {"--secret-env", "TOKEN"};
  options.environment = {"TOKEN=hunter2hunter2"};
  Server server(options);
  const Json r = server.execute("printf 'x hunter2\\033[0mhunter2 y\\n'");
  CHECK(r["stdout"] == Json("x [redacted] y\n"));
}

TEST_CASE("commands are told that there is no terminal, unless the operator says otherwise") {
  const std::string print = "echo $NO_COLOR $TERM $PAGER $GIT_PAGER";
  const auto printed = [&](Strings arguments) {
    return support::run_command(print, std::move(arguments), "/",
                                {"TERM=xterm", "PAGER=less"})["stdout"]
        .as_string();
  };
  CHECK(printed({}) == "1 dumb cat cat\n");
  CHECK(printed({"--set-env", "TERM=vt100", "NO_COLOR=", "GIT_PAGER=more"}) == "vt100 cat more\n");
  CHECK(printed({"--keep-env", "PAGER"}) == "1 dumb less cat\n");
}

}  // namespace
