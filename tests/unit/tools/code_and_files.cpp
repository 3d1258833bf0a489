// The tools for code and files.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::begins;
using support::has;
using support::has_python;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::Server;
using support::seven_keys;
using support::Strings;
using support::TempDir;

// code --------------------------------------------------------------------------------------------

TEST_CASE("code runs from a file, and its tool passes the gate") {
  if (!has_python()) return;
  const TempDir place;
  const std::string audit = place / "audit";
  const std::string workspace = place.directory("workspace");
  Server server(Strings{"--workspace", workspace, "--audit-file", audit});
  const std::string code = "# filename: tools/quote.py\nprint('it\\'s \"$HOME\" `x`')\n";
  Json r = server.use("execute_code", Json::object({{"language", "python"}, {"code", code}}));
  CHECK(begins(names_of(r), seven_keys));
  CHECK(r["success"] == Json(true));
  CHECK(r["stdout"] == Json("it's \"$HOME\" `x`\n"));
  CHECK(r["code_file"] == Json(workspace + "/tools/quote.py"));
  CHECK(r["blocks"].is_null());
  CHECK(support::read_file(workspace + "/tools/quote.py") == code);
  const Strings records = lines_of(support::read_file(audit));
  REQUIRE(records.size() == 2);
  const Json saved = parsed(records[0]);
  CHECK(saved["tool"] == Json("execute_code"));
  CHECK(saved["command"] == Json("save '" + workspace + "/tools/quote.py'"));
  CHECK(saved["input_bytes"] == Json(static_cast<std::int64_t>(code.size())));
  const Json record = parsed(records[1]);
  CHECK(record["tool"] == Json("execute_code"));
  CHECK(record["code"] == Json(code));

  r = server.use("execute_code", Json::object({{"code",
                                                "First:\n```sh\necho one\n```\nthen\n```python\n"
                                                "print('two'); raise SystemExit(5)\n```\n"
                                                "```sh\necho three\n```\n"}}));
  CHECK(r["success"] == Json(false));
  CHECK(r["exit_code"] == Json(5));
  CHECK(r["stdout"] == Json("one\ntwo\n"));
  CHECK(r["blocks"] == Json(2));
  CHECK(r["files"].is_null());

  // What is only saved needs no command.
  r = server.use("execute_code", Json::object({{"language", "html"}, {"code", "<p>x</p>\n"}}));
  CHECK(r["success"] == Json(true));
  CHECK(r["exit_code"] == Json(0));
  CHECK(r["blocks"] == Json(0));
  CHECK(support::read_file(r["code_file"].as_string()) == "<p>x</p>\n");

  CHECK(has(server.error_of("execute_code", parsed(R"({"language":"markdown","code":"no fence"})")),
            "no fenced block"));
  // What looks like code is no Markdown, whatever its texts hold.
  r = server.use("execute_code",
                 Json::object({{"code", "print('''\n```sh\nexit 7\n```\n'''.count('7'))\n"}}));
  CHECK(r["stdout"] == Json("1\n"));

  // A shell's code is a command like any other; nothing was written before it was judged.
  r = server.use("execute_code", Json::object({{"language", "bash"}, {"code", "sudo true"}}));
  CHECK(r["rule"] == Json("sudo"));
  r = server.use("execute_code", Json::object({{"language", "cobol"}, {"code", "STOP RUN."}}));
  CHECK(r["success"] == Json(false));
  CHECK(has(r["stderr"].as_string(), "cobol"));
  r = server.use("execute_code",
                 Json::object({{"language", "python"}, {"code", "# filename: ../x.py\n"}}));
  CHECK(r["success"] == Json(false));
  CHECK(has(r["stderr"].as_string(), "Filename is not in the workspace"));
  CHECK(!support::exists(place / "x.py"));
}

TEST_CASE("code that is only saved is a success") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  const Json r = server.use("execute_code", Json::object({{"language", "html"}, {"code", "<p>"}}));
  CHECK(r["success"] == Json(true));
  CHECK(r["outcome"].is_null());
  CHECK(r["stderr"] == Json(""));
  CHECK(r["blocks"] == Json(0));
  CHECK(r["code_file"].is_string());
}

TEST_CASE("many blocks take no more memory, time and room than they may") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path(), "--max-output-size", "1024"});
  const auto fenced = [](const std::string& code, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "```sh\n" + code + "\n```\n";
    return Json::object({{"code", text}});
  };
  Json r =
      server.use("execute_code", fenced("head -c 2000 /dev/zero | tr '\\0' x; echo y >&2", 50));
  CHECK(r["success"] == Json(true));
  CHECK(r["blocks"] == Json(50));
  CHECK(r["stdout_bytes"] == Json(100000));
  CHECK(r["stdout_truncated"] == Json(true));
  CHECK(r["stdout"].as_string().size() < 5000);
  CHECK(r["stderr"].as_string().size() == 100);
  CHECK(r["stderr_truncated"].is_null());
  CHECK(has(server.error_of("execute_code", fenced("touch ran", 101)), "101 code blocks"));
  CHECK(!support::exists(place / "ran"));

  Server bounded(Strings{"--workspace", place.path(), "--running-time", "1"});
  r = bounded.use("execute_code", fenced("echo begun; sleep 0.4", 20));
  CHECK(r["success"] == Json(false));
  CHECK(r["blocks"].as_number() <= 4);
  CHECK(begins(r["stdout"].as_string(), "begun\n"));
}

// files -------------------------------------------------------------------------------------------

TEST_CASE("files are written, read, listed and searched for docstrings") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path(), "--allowed-paths", place.path()});
  Json r = server.use("write_file",
                      Json::object({{"file_path", "src/m.py"},
                                    {"content", "def f():\n    \"\"\"Says f.\"\"\"\n\nf()\n"}}));
  CHECK(names_of(r) == "success file_path bytes");
  CHECK(r["file_path"] == Json(place / "src/m.py"));
  CHECK(r["bytes"] == Json(32));
  r = server.use("read_file", R"({"file_path":"src/m.py","offset":1,"count":2})");
  CHECK(begins(names_of(r), "file_path content encoding size offset begin lines next more"));
  CHECK(r["content"] == Json("    \"\"\"Says f.\"\"\"\n\n"));
  CHECK(r["lines"] == Json(2));
  CHECK(r["next"] == Json(3));
  CHECK(r["more"] == Json(true));
  r = server.use("read_file", R"({"file_path":"src/m.py","unit":"bytes","offset":28})");
  CHECK(r["content"] == Json("f()\n"));
  r = server.use("list_files", R"({"path":"src"})");
  CHECK(names_of(r) == "path entries more");
  REQUIRE(r["entries"].size() == 1);
  CHECK(names_of(r["entries"][0]) == "path type size modified");
  CHECK(r["entries"][0]["path"] == Json("m.py"));
  CHECK(server.use("list_files")["entries"].size() == 1);
  r = server.use("read_docstring", R"({"file_path":"src/m.py","function_name":"f"})");
  CHECK(r["docstring"] == Json("Says f."));
  CHECK(has(server.error_of("read_docstring",
                            parsed(R"({"file_path":"src/m.py","function_name":"F.by"})")),
            "m.py', 'F.by': "));

  // Binary files as base64, images as images.
  server.use("write_file", R"({"file_path":"b","content":"AP8=","encoding":"base64"})");
  CHECK(support::read_file(place / "b") == std::string("\0\xff", 2));
  CHECK(has(server.error_of("read_file", parsed(R"({"file_path":"b"})")), "base64"));
  CHECK(server.use("read_file", R"({"file_path":"b","encoding":"base64"})")["content"] ==
        Json("AP8="));
  CHECK(has(server.error_of("write_file",
                            parsed(R"({"file_path":"b","content":"!","encoding":"base64"})")),
            "base64"));
  place.file("p.png", std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16));
  const Json image = server.ask_tool("read_file", parsed(R"({"file_path":"p.png"})"));
  CHECK(image["content"][0]["type"] == Json("image"));
  CHECK(image["content"][0]["mimeType"] == Json("image/png"));
}

TEST_CASE("files are edited by exact texts, and searched by lines") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path(), "--allowed-paths", place.path()});
  place.file("src/m.py", "def f():\n    return 1\n\ndef g():\n    return 1\n");
  Json r = server.use("edit_file", parsed(R"({"file_path":"src/m.py","edits":[
      {"old_text":"def f","new_text":"def first"},
      {"old_text":"return 1","new_text":"return 2","all":true}]})"));
  CHECK(names_of(r) == "success file_path replaced diff");
  CHECK(r["file_path"] == Json(place / "src/m.py"));
  CHECK(r["replaced"] == Json(3));
  CHECK(has(r["diff"].as_string(), "-def f():\n-    return 1\n+def first():\n+    return 2\n"));
  // As models write it who know other tools: one edit alone, a list as a text, other names.
  server.use("edit_file", parsed(R"({"file_path":"src/m.py","edits":
      {"old_string":"return 2","new_string":"return 3","replace_all":"true"}})"));
  server.use("edit_file", parsed(R"({"file_path":"src/m.py","edits":
      "[{\"old_text\":\"def first\",\"new_text\":\"def f\"}]"})"));
  CHECK(support::read_file(place / "src/m.py") ==
        "def f():\n    return 3\n\ndef g():\n    return 3\n");
  const auto wrong = [&](const char* edits) {
    return server.error_of(
        "edit_file", parsed(std::string(R"({"file_path":"src/m.py","edits":)") + edits + "}"));
  };
  CHECK(has(wrong(R"([{"old_text":"return 3","new_text":"x"}])"), "lines 2, 5"));
  CHECK(has(wrong(R"([{"old_text":"def h","new_text":"x"}])"), "nearest is at line 1: 'def f():'"));
  CHECK(has(wrong("[]"), "1 to 100"));
  const auto refused = [&](const char* edits) {
    return server
        .ask_tool("edit_file",
                  parsed(std::string(R"({"file_path":"src/m.py","edits":)") + edits + "}"))
        .dump();
  };
  CHECK(has(refused(R"([{"old_text":"x"}])"), "'new_text' is missing"));
  CHECK(has(refused(R"([{"old_text":"x","new_text":1}])"), "'new_text' must be a string"));
  CHECK(has(refused(R"([{"old_text":"x","new_text":"y","line":1}])"), "'line' is unknown"));
  CHECK(has(refused("[1]"), "only objects"));
  CHECK(has(refused("\"x\""), "'edits' must be an array"));

  place.file("src/b", std::string("\0 return", 8));
  r = server.use("search_files", R"({"pattern":"^ *return","context":1})");
  CHECK(names_of(r) == "path matches text binary more");
  CHECK(r["path"] == Json(place.path()));
  CHECK(r["matches"] == Json(2));
  CHECK(r["text"] ==
        Json("src/m.py\n1-def f():\n2:    return 3\n3-\n4-def g():\n5:    return 3\n"));
  CHECK(r["more"] == Json(false));
  r = server.use("search_files",
                 R"({"pattern":"def","path":"src","glob":"*.{py,js}","files_only":true})");
  CHECK(r["text"] == Json("src/m.py\n"));
  CHECK(has(server.error_of("search_files", parsed(R"({"pattern":"a(?=x)b"})")), "linear time"));
}

TEST_CASE("W-54: file tools stay within the roots, mask secrets and are on the audit log") {
  const TempDir place;
  const TempDir outside;
  outside.file("secret", "hidden");
  place.file("ro/file", "old");
  place.file("with_secret", "the key is hunter2!");
  support::make_symlink(outside.path(), place / "link");
  const std::string audit = outside / "audit";
  Server::Options options;
  options.arguments = {"--workspace",  place.path(), "--allowed-paths", place.path(),
                       "--read-only",  place / "ro", "--audit-file",    audit,
                       "--secret-env", "TOKEN",      "--sandbox",       "off"};
  options.environment = {"TOKEN=hunter2"};
  Server server(options);
  const auto error = [&](const std::string& tool, const std::string& path) {
    const bool in_folder = tool == "list_files" || tool == "search_files";
    Json arguments = Json::object({{in_folder ? "path" : "file_path", path}});
    if (tool == "write_file") arguments.set("content", "new");
    if (tool == "search_files") arguments.set("pattern", "hidden");
    if (tool == "edit_file")
      arguments.set("edits", parsed(R"([{"old_text":"hidden","new_text":"new"}])"));
    return server.error_of(tool, arguments);
  };
  std::size_t refusals = 0;
  for (const std::string& path :
       {outside / "secret", place / "link/secret", std::string("../") + "x",
        std::string("x; echo INJECTED"), std::string("/proc/self/environ")}) {
    for (const char* tool :
         {"read_file", "write_file", "edit_file", "read_docstring", "list_files", "search_files"}) {
      // A name with a blank is a name: it can be made.
      if (path[0] == 'x' && std::string(tool) == "write_file") continue;
      CAPTURE(path);
      CAPTURE(std::string(tool));
      CHECK(!has(error(tool, path), "hidden"));
      ++refusals;
    }
  }
  CHECK(support::read_file(outside / "secret") == "hidden");
  CHECK(has(error("write_file", "ro/file"), "read"));
  CHECK(has(error("edit_file", "ro/file"), "read"));
  CHECK(support::read_file(place / "ro/file") == "old");
  CHECK(server.use("read_file", R"({"file_path":"with_secret"})")["content"] ==
        Json("the key is [redacted]!"));
  CHECK(server.finish().empty());
  const Strings records = lines_of(support::read_file(audit));
  REQUIRE(records.size() == refusals + 3);
  CHECK(parsed(records[0])["tool"] == Json("read_file"));
  CHECK(parsed(records[0])["allowed"] == Json(false));
  CHECK(parsed(records.back())["command"] == Json("read_file with_secret"));
  CHECK(parsed(records.back())["outcome"] == Json("exited"));
}

TEST_CASE("secrets are masked in names and in base64, too") {
  const TempDir place;
  place.file("a", "the key is hunter2!");
  place.file("hunter2/b", std::string("x\0", 2));
  place.file("hunter2/m.py", "def f(): 'says f'\n");
  place.file("long", support::repeat("q", 295) + "hunter2" + support::repeat("q", 100) + "\n");
  Server::Options options;
  options.arguments = {"--workspace", place.path(), "--secret-env", "TOKEN"};
  options.environment = {"TOKEN=hunter2"};
  Server server(options);
  const auto told = [&](const std::string& tool, const char* arguments) {
    const std::string answer = server.ask_tool(tool, parsed(arguments)).dump();
    CHECK_MESSAGE(!has(answer, "hunter2"), answer);
    return answer;
  };
  CHECK(has(told("list_files", R"({"depth":2})"), "[redacted]/m.py"));
  CHECK(has(told("read_file", R"({"file_path":"a","encoding":"base64"})"),
            "dGhlIGtleSBpcyBbcmVkYWN0ZWRdIQ=="));
  const std::string id = R"({"file_path":"hunter2/)";
  CHECK(has(told("read_file", (id + R"(b"})").c_str()), "binary"));
  CHECK(has(told("read_file", (id + "m.py\"}").c_str()), "says f"));
  CHECK(has(told("write_file", (id + "c\",\"content\":\"\"}").c_str()), "[redacted]/c"));
  CHECK(has(told("search_files", R"({"pattern":"the key|says"})"), "[redacted]/m.py"));
  CHECK(!has(told("search_files", R"({"pattern":"q{20}"})"), "qhunt"));
  CHECK(has(told("edit_file", R"({"file_path":"a","edits":[{"old_text":"key","new_text":"k"}]})"),
            "+the k is [redacted]!"));
  CHECK(has(told("edit_file", R"({"file_path":"a","edits":[{"old_text":"kex","new_text":"k"}]})"),
            "not in it"));
  CHECK(has(told("read_docstring", (id + "m.py\",\"function_name\":\"f\"}").c_str()), "says f"));
  CHECK(has(told("read_docstring", (id + "m.py\",\"function_name\":\"g\"}").c_str()), "defined"));
  CHECK(has(told("execute_code", R"({"language":"css","code":"/* filename: hunter2/x.css */"})"),
            "[redacted]/x.css"));
}

TEST_CASE("the delete guard knows what the file tools read and made") {
  const TempDir place;
  place.file("a", "x");
  Server server(Strings{"--workspace", place.path(), "--delete-guard"});
  // To see nothing of it is not to read it.
  server.use("read_file", R"({"file_path":"a","count":0})");
  CHECK(server.execute("rm a")["rule"] == Json("delete-guard"));
  server.use("read_file", R"({"file_path":"a"})");
  server.use("write_file", R"({"file_path":"b","content":"y"})");
  CHECK(server.execute("rm a b")["success"] == Json(true));
}
