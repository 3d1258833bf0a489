// --transcript: a session as Markdown.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "helpers.hpp"

using support::begins;
using support::check_refused;
using support::count_of;
using support::has;
using support::read_file;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

// What a command adds to a transcript.
std::string told_of(const std::string& command, Strings more = {},
                    const Strings& environment = {}) {
  const TempDir place;
  more.insert(more.end(),
              {"--transcript", place / "t.md", "--workspace", place.path(), "--run", command});
  run_program(more, "/", environment);
  return read_file(place / "t.md");
}

}  // namespace

TEST_CASE("a transcript has the command, how it ended, and its output") {
  const std::string text = told_of("echo out; echo err >&2; exit 3", {"--agent-id", "a`1"});
  CHECK(begins(text, "\n## 20"));
  CHECK(has(text, " run: exited with status 3 in "));
  CHECK(has(text, "\nagent `a'1`, in `/"));
  CHECK(has(text, "\n```sh\necho out; echo err >&2; exit 3\n```\n"));
  CHECK(has(text, "\nstdout, 4 bytes:\n\n```text\nout\n```\n"));
  CHECK(has(text, "\nstderr, 4 bytes:\n\n```text\nerr\n```\n"));

  const std::string refused = told_of("sudo true");
  CHECK(has(refused, " run: refused by sudo\n"));
  CHECK(has(refused, "\n```sh\nsudo true\n```\n"));
  CHECK_FALSE(has(refused, "stdout"));
}

TEST_CASE("no text ends its fence or reaches a terminal, and long output is cut") {
  const std::string text =
      told_of("echo '````' '`````'; printf '\\033[31m\\n```\\n# no heading\\n'");
  CHECK(has(text, "\n``````sh\necho '````' '`````'"));
  CHECK(has(text, "\n``````text\n```` `````\n\\x1b[31m\n```\n# no heading\n``````\n"));
  CHECK(text.find('\x1b') == std::string::npos);
  // The other set of controls, and what turns the direction of text.
  CHECK(has(told_of("printf 'a\\302\\2332J\\tb\\nc\\342\\200\\256d\\303\\251\\n'"),
            "\na\\xc2\\x9b2J\tb\nc\\xe2\\x80\\xaed\xc3\xa9\n"));

  const std::string longer = told_of("seq 100000");
  CHECK(longer.size() < 4096);
  CHECK(has(longer, "\n1\n2\n"));
  CHECK(has(longer, " bytes omitted) ...\n"));
  CHECK(has(longer, "\n100000\n```\n"));
}

TEST_CASE("secrets are masked in a transcript") {
  const std::string text =
      told_of("echo $KEY; echo hush-hush", {"--secret-env", "KEY"}, {"KEY=hush-hush"});
  CHECK_FALSE(has(text, "hush-hush"));
  CHECK(count_of(text, "[redacted]") == 3);
}

TEST_CASE("a server appends to its transcript, which only its user may read") {
  const TempDir place;
  const std::string file = place / "t.md";
  for (int i = 0; i < 2; ++i) {
    Server server({"--transcript", file, "--workspace", place.path()});
    server.use("execute_command", R"({"command":"echo one","session_id":"s1"})");
    CHECK(count_of(read_file(file), "\n## ") == static_cast<std::size_t>(2 * i + 1));
    server.use("write_file", R"({"file_path":"a","content":"abc"})");
    CHECK(server.finish().empty());
  }
  const std::string text = read_file(file);
  CHECK(count_of(text, "session `s1`") == 2);
  CHECK(count_of(text, " write_file: ") == 2);
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a transcript that cannot be written is reported once, and the server goes on") {
  const TempDir place;
  Server server({"--transcript", "/dev/full", "--workspace", place.path()});
  for (int i = 0; i < 3; ++i)
    CHECK(server.use("execute_command", R"({"command":"echo one"})")["stdout"] ==
          codeexec::Json("one\n"));
  CHECK(server.finish().empty());
  const std::string said = server.logged();
  CHECK(count_of(said, "the transcript '/dev/full' could not be written: No space left") == 1);
  CHECK(count_of(said, "\n") == 1);

  check_refused(run_program({"--transcript", place / "no/t", "--run", "true"}), "transcript: ");
  check_refused(run_program({"--transcript", place.path(), "--run", "true"}), "transcript: ");
  check_refused(
      run_program({"--transcript", place / "t", "--allowed-paths", place.path(), "--run", "true"}),
      "transcript: ");
}
