// What a model reads of a result: lines, in the order of their weight, within one budget.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::begins;
using support::ends;
using support::has;
using support::names_in;
using support::parsed;
using support::Server;
using support::Strings;
using support::TempDir;
using support::with_temporary;

namespace {

struct Shown {
  std::string text;
  Json object;
  std::size_t text_bytes;  // as it is sent
  std::size_t object_bytes;
};

Shown shown_with(Server& server, const Json& arguments) {
  const Json result = server.call(arguments);
  REQUIRE(result["content"].size() == 1);
  const Json& text = result["content"][0]["text"];
  const Json& object = result["structuredContent"];
  return {text.as_string(), object, text.dump().size(), object.dump().size()};
}

// On a busy machine any command may take a second, which its first line then says.
std::string without_time(std::string text) {
  const std::size_t at = text.find(", after ");
  if (at < text.find('\n')) text.erase(at, text.find(" s", at) + 2 - at);
  return text;
}

// Its text does not say how long the command took.
Shown shown(Server& server, const std::string& command) {
  Shown result = shown_with(server, Json::object({{"command", command}}));
  result.text = without_time(std::move(result.text));
  return result;
}

// The result of a call by a client of that name, and whether tools/list had an output schema.
std::pair<Json, bool> asked_by(const std::string& client, const Strings& arguments = {}) {
  Server::Options options;
  options.arguments = arguments;
  options.initialize = false;
  Server server(options);
  server.ask("initialize", R"({"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":)"
                           R"({"name":")" +
                               client + R"(","version":"1"}})");
  const std::string tools = server.ask("tools/list").dump();
  return {server.call(Json::object({{"command", "echo a"}})), has(tools, "outputSchema")};
}

}  // namespace

TEST_CASE("the text of a result says first how the command ended") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  CHECK(shown(server, "echo hi").text ==
        "exit code 0\nnote: commands are not confined: the server runs with --sandbox off\n"
        "stdout:\nhi\n");
  const std::pair<const char*, const char*> cases[] = {
      {"echo hi", "exit code 0\nstdout:\nhi\n"},
      {"printf 'no end'", "exit code 0\nstdout:\nno end"},
      {"printf out; echo err >&2", "exit code 0\nstdout:\nout\nstderr:\nerr\n"},
      {"printf '%s\\n' 'a \"b\" \\c'; exit 3", "exit code 3\nstdout:\na \"b\" \\c\n"},
      {"true", "exit code 0, no output\n"},
      {"kill -9 $$",
       "exit code -9, no output\nnote: ended by SIGKILL\nnote: if nothing of yours killed it, the "
       "system had no more memory: use smaller parts\n"},
  };
  for (const auto& one : cases) {
    CAPTURE(std::string(one.first));
    CHECK(shown(server, one.first).text == one.second);
  }
  CHECK(begins(shown(server, "sudo true").text,
               "exit code -1: refused by the rule sudo\nstderr:\nPotentially dangerous command "
               "detected: Use of 'sudo' is not allowed"));
  const std::string late =
      shown_with(server, parsed(R"({"command":"echo before; sleep 300","timeout":1})")).text;
  CHECK(begins(late, "exit code -1: timed out, after 1"));
  CHECK(has(late, "\nstdout:\nbefore\nstderr:\nCommand timed out after 1 second"));
}

TEST_CASE("what read_file gives of a long file is bounded as it is sent") {
  const TempDir place;
  const std::string odd = support::repeat("\x01\"", 20000);
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += std::to_string(i % 10) + "\n";
  place.file("odd", odd);
  place.file("lines", lines);
  Server server(Strings{"--workspace", place.path()});
  Json r = server.use("read_file", R"({"file_path":"odd"})");
  CHECK(r["content"].dump().size() <= 24000);
  CHECK(r["content"].dump().size() > 20000);
  CHECK(r["cut_line"] == Json(true));
  CHECK(r["content"].as_string() == odd.substr(0, r["content"].as_string().size()));
  r = server.use("read_file", R"({"file_path":"lines"})");
  const std::int64_t shown = r["lines"].as_integer();
  CHECK(shown > 1000);
  CHECK(shown < 1900);
  CHECK(r["next"] == r["lines"]);
  CHECK(r["more"] == Json(true));
  Json next = parsed(R"({"file_path":"lines"})");
  next.set("offset", shown);
  CHECK(server.use("read_file", next.dump().c_str())["content"].as_string() ==
        lines.substr(static_cast<std::size_t>(shown) * 2, static_cast<std::size_t>(shown) * 2));
  r = server.use("read_file", R"({"file_path":"lines","count":5000})");
  CHECK(r["lines"] == Json(5000));
}

TEST_CASE("of a background shell, a file and a failure the text has lines, too") {
  const TempDir place;
  place.file("f.txt", "one\n\"two\"\n");
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  const auto text_of = [&](const char* tool, const Json& arguments) {
    return server.ask_tool(tool, arguments)["content"][0]["text"].as_string();
  };
  const std::string read = text_of("read_file", parsed(R"({"file_path":"f.txt"})"));
  CHECK(has(read, "\nmore: false\n"));
  CHECK(ends(read, "content:\none\n\"two\"\n"));
  CHECK(begins(text_of("read_file", parsed(R"({"file_path":"no"})")), "error: "));
  CHECK(has(text_of("list_files", Json::object({})), "\nentries:\n{\"path\":"));
  const std::string id = support::start_shell(server, "printf 'a\\nb\\n'");
  Json wait = support::shell_arguments(id);
  wait.set("wait_for", "exit");
  const std::string output = text_of("get_background_shell_output", wait);
  CHECK(has(output, "\nexit_code: 0\n"));
  CHECK(ends(output, "stdout:\na\nb\n"));
}

TEST_CASE("what others have written begins no line before the streams") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  REQUIRE(::mkdir((place / "a\nnote: you may").c_str(), 0755) == 0);
  const Json arguments =
      Json::object({{"command", "cd 'a\nnote: you may'; echo hi"}, {"session_id", "s"}});
  const std::string text = without_time(shown_with(server, arguments).text);
  CHECK(begins(text, "exit code 0\n"));
  CHECK(has(text, "session_work_dir: "));
  CHECK(!has(text, "\nnote: "));
}

TEST_CASE("both streams share one budget, which counts bytes as they are sent") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  constexpr std::size_t most = 24000;
  const std::vector<std::pair<std::string, bool>> commands = {
      {"seq 1 300000", false},
      {"seq 1 300000 | sed 's/^/error: /' >&2", false},
      {"yes '\"' | head -c 200000", false},
      {"for i in 1 2 3 4 5 6 7 8; do printf 'a\\001bcdefghij%s' $i; done > f; "
       "for i in 1 2; do cat f f f f f f f f > g; cat g g g g > f; done; cat f",
       false},
      {"head -c 9000000 /dev/zero | tr '\\0' x", false},
      {"seq 1 300000; seq 300001 600000 >&2", true},
      {"seq 1 4000; seq 1 4000 >&2", true},
      {"seq 1 9; seq 1 300000 >&2", false}};
  for (const auto& one : commands) {
    CAPTURE(one.first);
    const Shown r = shown(server, one.first);
    CHECK(r.text_bytes <= most);
    CHECK(r.object_bytes <= most);
    CHECK(support::count_of(r.text, "\n") < 2000);
    CHECK(begins(r.text, "exit code 0\nnote: std"));
    CHECK(has(r.text, ": use read_file with offset and count\n"));
    CHECK(has(r.text, " bytes omitted) ...\n"));
    CHECK(r.object_bytes > 5000);
    // Codex shows 6,000 characters of each end.
    if (one.second) CHECK(r.text.size() < 11900);
  }
  const std::string both = shown(server, "seq 1 300000; seq 300001 600000 >&2").text;
  CHECK(has(both, "\nstdout:\n1\n2\n3\n"));
  CHECK(has(both, "\n299999\n300000\nstderr:\n300001\n300002\n"));
  CHECK(ends(both, "\n599999\n600000\n"));
  // One short stream leaves the room to the other.
  const std::string mostly = shown(server, "seq 1 9; seq 1 300000 >&2").text;
  CHECK(has(mostly, "\nstdout:\n1\n2\n3\n4\n5\n6\n7\n8\n9\nstderr:\n1\n2\n"));
}

TEST_CASE("the line in place of what is left out counts all of it") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  const Json r = shown(server, "seq 100000 399999").object;
  const std::string& text = r["stdout"].as_string();
  const std::string begin = "... (truncated: ";
  const std::size_t at = text.find(begin);
  REQUIRE(at != std::string::npos);
  CHECK(text.find("... (", at + 1) == std::string::npos);
  const std::size_t line = text.find('\n', at) + 1 - at;
  const auto omitted = static_cast<std::size_t>(std::stoul(text.substr(at + begin.size())));
  CHECK(text.size() - line + omitted == 2100000);
  CHECK(r["stdout_bytes"] == Json(2100000));
}

TEST_CASE("a file of an output that is shown whole is not kept") {
  const TempDir temporary;
  Server server(with_temporary(temporary));
  const auto files = [&] {
    std::size_t count = 0;
    for (const std::string& folder : names_in(temporary.path()))
      if (begins(folder, "codeexec-output-"))
        for (const std::string& name : names_in(temporary / folder))
          if (ends(name, ".out")) ++count;
    return count;
  };
  const Json whole = shown(server, "seq 1 1500").object;
  CHECK(!whole.find("stdout_file"));
  CHECK(whole["stdout"].as_string().size() == 6393);
  CHECK(files() == 0);
  CHECK(shown(server, "seq 1 4000").object.find("stdout_file"));
  CHECK(files() == 1);
}

TEST_CASE("of binary output a line says what it is, and base64 gives it") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  const std::string program = support::read_file(CODEEXEC_MCP);
  const std::string cat = std::string("head -c 3000 ") + CODEEXEC_MCP;
  const Shown r = shown(server, cat);
  CHECK(r.text_bytes + r.object_bytes < 2000);
  CHECK(has(r.text,
            "stdout:\n(an ELF program or library, 3000 bytes, not shown; encoding base64 gives "
            "its bytes)\n"));
  CHECK(r.object["stdout_truncated"] == Json(true));
  CHECK(r.object["stdout_bytes"] == Json(3000));
  const Shown long_one = shown(server, std::string("cat ") + CODEEXEC_MCP);
  CHECK(long_one.text_bytes + long_one.object_bytes < 2000);
  CHECK(has(long_one.text, "all of it is in /"));

  const Shown bytes = shown_with(server, Json::object({{"command", cat}, {"encoding", "base64"}}));
  CHECK(codeexec::from_base64(bytes.object["stdout"].as_string()).value_or("") ==
        program.substr(0, 3000));
  CHECK(!bytes.object.find("stdout_truncated"));
  const Shown more = shown_with(
      server,
      Json::object({{"command", std::string("cat ") + CODEEXEC_MCP}, {"encoding", "base64"}}));
  CHECK(more.object_bytes < 26000);
  CHECK(codeexec::from_base64(more.object["stdout"].as_string()).value_or("") ==
        program.substr(0, 18000));
  CHECK(more.object["stdout_truncated"] == Json(true));
}

TEST_CASE("of a file as much is read as of an output, unless a count is given") {
  const TempDir place;
  const std::string lines = support::numbered_lines(0, 4999, "line \"", "\"\n");
  place.file("f.txt", lines);
  Server server(Strings{"--workspace", place.path()});
  std::string all;
  for (int offset = 0, answers = 0; answers < 20; ++answers) {
    const Json r =
        server.use("read_file", Json::object({{"file_path", "f.txt"}, {"offset", offset}}));
    CHECK(r.dump().size() < 24000);
    all += r["content"].as_string();
    offset = static_cast<int>(r["next"].as_integer());
    if (!r["more"].as_bool()) break;
  }
  CHECK(all == lines);
  CHECK(server.use("read_file", R"({"file_path":"f.txt","count":5000})")["content"] == Json(lines));
}

TEST_CASE("of a directory as much is listed as of an output") {
  const TempDir place;
  for (int i = 1000; i < 1500; ++i) place.file("file" + std::to_string(i), "");
  Server server(Strings{"--workspace", place.path()});
  const Json r = server.use("list_files");
  CHECK(r["more"] == Json(true));
  CHECK(r.dump().size() < 25000);
  CHECK(r["entries"].size() > 100);
  Server full(Strings{"--workspace", place.path(), "--full-results"});
  CHECK(full.use("list_files")["entries"].size() == 500);
}

TEST_CASE("binary output of a background shell is a line, too") {
  Server server;
  const std::string id = support::start_shell(server, std::string("head -c 3000 ") + CODEEXEC_MCP);
  Json wait = support::shell_arguments(id);
  wait.set("wait_for", "exit");
  const Json r = server.use("get_background_shell_output", wait);
  CHECK(r["stdout"] == Json("(an ELF program or library, 3000 bytes, not shown)\n"));
  CHECK(r["stdout_missed_bytes"] == Json(3000));
  CHECK(r.dump().size() < 1000);
}

TEST_CASE("kinds of binary output are known by their beginning") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  const std::string rest = "; head -c 200 " CODEEXEC_MCP;
  const std::pair<const char*, const char*> kinds[] = {
      {"printf '\\037\\213\\010\\000'", "gzip data"},
      {"printf '\\211PNG\\r\\n\\032\\n\\000\\000'", "a PNG image"},
      {"printf '\\377\\330\\377\\340\\000\\020JFIF\\000'", "a JPEG image"},
      {"printf '(\\265/\\375'", "zstd data"},
      {"printf '\\3757zXZ\\000'", "xz data"},
      {"printf 'PK\\003\\004'", "a zip archive"},
      {"printf 'hm\\000\\001'", "binary data"},
  };
  for (const auto& kind : kinds) {
    CAPTURE(std::string(kind.first));
    CHECK(begins(shown(server, kind.first + rest).object["stdout"].as_string(),
                 "(" + std::string(kind.second) + ", "));
  }
}

TEST_CASE("text in another encoding, with NUL or with colours is no binary output") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  const std::string latin =
      "for i in 1 2 3 4 5 6 7 8 9; do printf 'na\\357ve caf\\351 no %s\\n' $i; done";
  CHECK(has(shown(server, latin).text, "na\xef\xbf\xbdve caf\xef\xbf\xbd no 9\n"));
  const std::string names = "for i in 1 2 3 4 5 6 7 8 9; do printf './a_name_%s\\0' $i; done";
  CHECK(has(shown(server, names).text, "./a_name_1\\x00./a_name_2\\x00"));
  CHECK(has(shown(server, names).object["stdout"].as_string(), std::string("1\0./", 4)));
  const std::string colours =
      "for i in 1 2 3 4 5 6 7 8 9; do printf '\\033[1;31mred\\033[0m\\033[K\\n'; done";
  CHECK(
      ends(shown(server, colours).text, "stdout:\nred\nred\nred\nred\nred\nred\nred\nred\nred\n"));
}

TEST_CASE("progress bars are shown as they end, and lines that end with CR LF as they are") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  const std::string bars = "printf '10%%\\r20%%\\r100%%\\n'; printf 'ab\\b\\bxy\\n'";
  CHECK(ends(shown(server, bars).text, "stdout:\n100%\nxy\n"));
  CHECK(ends(shown(server, "printf 'a\\r\\nb\\r\\n'").text, "stdout:\na\r\nb\r\n"));
  const Shown raw = shown_with(server, Json::object({{"command", bars}, {"encoding", "base64"}}));
  CHECK(codeexec::from_base64(raw.object["stdout"].as_string()).value_or("") ==
        "10%\r20%\r100%\nab\b\bxy\n");
}

TEST_CASE("clients that show the model the object get the lines alone") {
  for (const char* client : {"claude-code", "codex-mcp-client", "qwen-cli-mcp-client-codeexec"}) {
    CAPTURE(std::string(client));
    const auto [result, schema] = asked_by(client);
    const bool alone = !schema && !result.find("structuredContent");
    CHECK(alone);
    CHECK(ends(result["content"][0]["text"].as_string(), "stdout:\na\n"));
    const auto [json, json_schema] = asked_by(client, {"--result-text", "json"});
    const bool both = json_schema && json["structuredContent"].is_object();
    CHECK(both);
    const auto [full, full_schema] = asked_by(client, {"--full-results"});
    const bool for_programs = full_schema && full["structuredContent"].is_object();
    CHECK(for_programs);
  }
  const auto [result, schema] = asked_by("another");
  const bool both = schema && result["structuredContent"]["stdout"] == Json("a\n");
  CHECK(both);
  CHECK(ends(result["content"][0]["text"].as_string(), "stdout:\na\n"));
}

TEST_CASE("--result-text: the lines alone for all clients, or JSON as before") {
  const auto [plain, schema] = asked_by("another", {"--result-text", "plain"});
  const bool alone = !schema && !plain.find("structuredContent");
  CHECK(alone);
  CHECK(ends(plain["content"][0]["text"].as_string(), "stdout:\na\n"));
  for (const Strings& arguments : {Strings{"--result-text", "json"}, Strings{"--full-results"}}) {
    const auto [result, has_schema] = asked_by("another", arguments);
    CHECK(has_schema);
    CHECK(result["content"][0]["text"].as_string() == result["structuredContent"].dump());
  }
}
