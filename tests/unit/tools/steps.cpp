// What the notes of a result say to do next.

#include "helpers.hpp"

namespace {

using codeexec::Json;
using support::has;
using support::parsed;
using support::Server;
using support::Strings;
using support::TempDir;

// All notes, each with a bar behind it.
std::string notes_of(const Json& object) {
  std::string all;
  if (const Json* const notes = object.find("notes"))
    for (const Json& note : notes->items()) all += note.as_string() + "|";
  return all;
}

Server::Options in(const TempDir& place, Strings arguments) {
  Server::Options options;
  options.arguments = std::move(arguments);
  options.work_dir = place.path();
  return options;
}

// What bash prints of a command. A plain sh fails, or prints something else.
struct Idiom {
  const char* script;
  const char* printed;  // null: it differs from run to run
};
constexpr Idiom idioms[] = {
    {"echo {1..3}", "1 2 3\n"},
    {"echo {a,b}.c", "a.c b.c\n"},
    {"echo -e 'a\\tb'", "a\tb\n"},
    {"echo hi &> log; cat log", "hi\n"},
    {"echo a &>> more; echo b &>> more; cat more", "a\nb\n"},
    {"echo hi >& log; cat log", "hi\n"},
    {"echo $'a\\tb'", "a\tb\n"},
    {"echo $RANDOM", nullptr},
    {"echo \"x${RANDOM}\"", nullptr},
    {"x=$RANDOM; echo $x", nullptr},
    {"echo $((RANDOM + 1))", nullptr},
    {"echo $BASH_VERSION", nullptr},
    {"((i=1+2)); echo $i", "3\n"},
    {"echo 'x=1' > f; source ./f; echo $x", "1\n"},
    {"a=(x y); echo ${a[1]}", "y\n"},
    {"f() { local a=(1 2); echo ${a[1]}; }; f", "2\n"},
    {"[[ a == a ]] && echo yes || echo no", "yes\n"},
    {"[ a == a ] && echo yes", "yes\n"},
    {"cat <<< hi", "hi\n"},
    {"cat <(echo hi)", "hi\n"},
    {"x=abc; echo ${x^^}", "ABC\n"},
    {"x=abc; echo ${x//a/b}", "bbc\n"},
    {"x=abc; echo ${x:1:1}", "b\n"},
    {"x=y; y=1; echo ${!x}", "1\n"},
    {"x=1; x+=2; echo $x", "12\n"},
    {"mkdir -p d; pushd d > p; echo ok", "ok\n"},
    {"function f { echo hi; }; f", "hi\n"},
    {"let i=1+2; echo $i", "3\n"},
    {"set -o pipefail; false | true; echo $?", "1\n"},
    {"select x in a b; do echo $x; break; done <<< 1 2> p; echo ok", "a\nok\n"},
    {"printf '%q\\n' 'a b'; echo ok", "a\\ b\nok\n"},
    {"printf -v x hi; echo $x", "hi\n"},
    {"echo a b > f; read -a x < f; echo ${#x}", "1\n"},
    {"echo a > f; mapfile -t x < f; echo $x", "a\n"},
    {"for ((i = 0; i < 2; i++)); do echo $i; done", "0\n1\n"},
    {"echo hi |& cat", "hi\n"},
    {"declare x=1; echo $x", "1\n"},
    {"shopt -s nullglob; echo ok", "ok\n"},
    {"trap 'echo e' ERR; false; echo ok", "e\nok\n"},
    {"echo $((2**3))", "8\n"},
    {"i=1; echo $((i++))", "1\n"},
    {"echo $[1+2]", "3\n"},
    {"echo hi > f; echo \"$(<f)\"", "hi\n"},
    {"kill -SIGCONT $$; echo ok", "ok\n"},
};

// What both shells read alike.
constexpr const char* plain_scripts[] = {
    "echo 'a{1..3}' \"$'x'\" '$RANDOM' \\$RANDOM",
    "cat <<'EOF'\n{1..3} $RANDOM &> x [[ a ]]\nEOF",
    "UID=5; echo $UID",
    "ls /etc 2>&1 | wc -l",
    "for i in 1 2; do echo $i; done; x=$((1+2)); echo ${x:-y} ${#x} ${x%%y}",
    "find . -name '*.c' -exec echo {} \\;",
    "grep -E 'a{1,3}' /etc/passwd; true",
    "printf 'a\\n'; [ -n x ] && echo y; (echo a; echo b) | sort",
    "f() { echo hi; }; f; export A=1; env | grep ^A=",
    "echo -n x; echo -- -e; set -e; . /dev/null",
    "while read -r l; do echo $l; done < /etc/passwd | head -n 1",
};

}  // namespace

TEST_CASE("steps: idioms of bash do what they say, as the default shell is bash") {
  const TempDir place;
  Server server(in(place, {}));
  server.take_first_note();
  if (!support::has_bash()) return;
  for (const Idiom& idiom : idioms) {
    CAPTURE(idiom.script);
    const Json object = server.execute(idiom.script);
    CHECK(object["success"] == Json(true));
    if (idiom.printed)
      CHECK(object["stdout"] == Json(idiom.printed));
    else
      CHECK(object["stdout"].as_string().size() > 2);
    CHECK(!has(notes_of(object), "bash"));
  }
}

TEST_CASE("steps: under a plain sh each of them is right, or has a note") {
  const TempDir place;
  Server server(in(place, {"--shell", "/bin/sh"}));
  server.take_first_note();
  const bool is_plain = server.execute("echo $BASH_VERSION")["stdout"] == Json("\n");
  for (const Idiom& idiom : idioms) {
    CAPTURE(idiom.script);
    const Json object = server.execute(idiom.script);
    const bool is_right =
        object["success"].as_bool() && (idiom.printed ? object["stdout"] == Json(idiom.printed)
                                                      : object["stdout"].as_string().size() > 2);
    const std::string notes = notes_of(object);
    CAPTURE(notes);
    if (is_plain && !is_right) CHECK(has(notes, "use `bash -c '...'`"));
    if (!is_plain) CHECK(is_right);
  }
  for (const char* const script : plain_scripts) {
    CAPTURE(script);
    const Json object = server.execute(script);
    CHECK(object["success"] == Json(true));
    CHECK(!has(notes_of(object), "bash"));
  }
  if (!is_plain) return;
  CHECK(has(notes_of(server.execute("true; echo {1..3}; true")), "/bin/sh reads `echo {1..3}` "));
  // Long ones are cut, and hostile ones harmless.
  const std::string note =
      notes_of(server.execute("echo {1..3} \x1b[31m" + std::string(5000, 'x')));
  CHECK(has(note, "reads `echo {1..3} \\x1b[31mxxx"));
  CHECK(note.size() < 300);
}

TEST_CASE("steps: a time that is up, an input that is empty") {
  const TempDir place;
  Server server(in(place, {"--max-timeout", "100"}));
  server.take_first_note();
  const auto after = [&](const char* arguments) {
    return notes_of(server.execute_with(parsed(arguments)));
  };
  CHECK(after(R"({"command":"exec sleep 60","timeout":0.1})") ==
        "pass a longer timeout (at most 100 s), or use start_background_shell|");
  CHECK(after(R"({"command":"exec sleep 60","idle_timeout":0.1})") ==
        "pass a longer idle_timeout (at most 100 s), or use start_background_shell|");
  const std::string empty =
      "its standard input is empty: give it by the argument stdin, or by a here-document|";
  for (const char* const script : {"sh", "cat", "read x", "sort", "echo x > f; sh -"})
    CHECK_MESSAGE(notes_of(server.execute(script)) == empty, script);
  CHECK(notes_of(server.execute("echo 'EOFError: EOF when reading a line' >&2; exit 1")) == empty);
  for (const char* const script :
       {"true", "false", "sh <<E\nE", "cat < /dev/null", "true | cat", "cat f > g", "grep x"})
    CHECK_MESSAGE(notes_of(server.execute(script)) == "", script);
  CHECK(after(R"({"command":"read x","stdin":"y\n"})") == "");
  Server least(Strings{"--max-timeout", "0.1", "--disable-tool", "start_background_shell"});
  least.take_first_note();
  CHECK(notes_of(least.execute("exec sleep 60")) == "do the work in smaller parts|");
}

TEST_CASE("steps: a program that is missing") {
  const TempDir place;
  Server server(in(place, {}));
  server.take_first_note();
  CHECK(has(notes_of(server.execute("no-such-program-xyz")),
            "no-such-program-xyz is not installed here"));
  for (const char* const name : {"env", "ls"}) {
    const std::string note = notes_of(server.execute("PATH=/nowhere; " + std::string(name)));
    CHECK_MESSAGE(has(note, std::string(name) + " is not in the PATH: it is /"), note);
  }
  // Hostile output: a name that a shell would expand is not repeated.
  for (const char* const printed : {"sh: 1: $(id): not found", "sh: `id`: command not found",
                                    ": not found", "x: -r: not found"})
    CHECK(notes_of(server.execute("cat <<'E' >&2; exit 127\n" + std::string(printed) + "\nE")) ==
          "");
  // Of another place this host's folders say nothing.
  Server there(
      in(place, {"--execution-mode", "command", "--place-command", CODEEXEC_MCP " --place"}));
  there.take_first_note();
  const std::string note = notes_of(there.execute("PATH=/nowhere; ls"));
  CHECK(has(note, "ls is not installed here, or not in the PATH"));
}

TEST_CASE("steps: what programs print") {
  const TempDir place;
  Server server(in(place, {}));
  server.take_first_note();
  const auto printed = [&](const std::string& text) {
    return notes_of(server.execute("cat <<'E' >&2; exit 1\n" + text + "\nE"));
  };
  const std::string terminal =
      "execute_command has no terminal: use start_background_shell with terminal: true|";
  CHECK(notes_of(server.execute("tty")) == terminal);
  CHECK(printed("the input device is not a TTY") == terminal);
  CHECK(printed("stty: 'standard input': Inappropriate ioctl for device") == terminal);
  CHECK(has(printed("error: Terminal is dumb, but EDITOR unset"), "git commit -m"));
  CHECK(has(printed("ModuleNotFoundError: No module named 'yaml'"), "bin/pip install pyyaml`"));
  CHECK(has(printed("ModuleNotFoundError: No module named 'a.b'"), "bin/pip install a`"));
  CHECK(printed("ModuleNotFoundError: No module named '$(id)'") == "");
  CHECK(has(printed("Error: Cannot find module 'express'"), "`npm install express`"));
  CHECK(has(printed("Error: Cannot find module './x'"), "there is no file ./x"));
  CHECK(has(printed("MemoryError"), "smaller parts"));
  CHECK(printed("nothing of these") == "");
  const std::string in_use = "OSError: [Errno 98] Address already in use";
  CHECK(has(printed(in_use), "take another one"));
  const std::string id = support::start_shell(server, "sleep 300");
  CHECK(has(printed(in_use), "perhaps a background shell of yours (" + id + ")"));
  CHECK(!has(notes_of(server.execute("echo " + terminal + " not a tty")), "terminal: true"));
  CHECK(has(notes_of(server.execute("kill -9 $$")), "if nothing of yours killed it"));
  const Json code = server.use("execute_code", Json::object({{"code", "tty"}, {"language", "sh"}}));
  CHECK(has(notes_of(code), terminal));
}
