// How much of an output a model is shown, and how it gets at the rest.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::LocalExecutor;
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

// The note about a stream; empty when there is none.
std::string note_of(const Json& result, const std::string& stream) {
  for (const Json& note : result["notes"].items())
    if (begins(note.as_string(), stream + " has ")) return note.as_string();
  return {};
}

Json read_lines(Server& server, const Json& path, int offset) {
  return server.use("read_file",
                    Json::object({{"file_path", path}, {"offset", offset}, {"count", 1}}));
}

}  // namespace

TEST_CASE("of long output some 24 kB are shown, and the whole can be read") {
  const TempDir temporary;
  const TempDir workspace;
  for (const Strings& arguments :
       {Strings{"--workspace", workspace.path()},
        Strings{"--workspace", workspace.path(), "--allowed-paths", workspace.path()}}) {
    CAPTURE(arguments.size());
    Server server(with_temporary(temporary, arguments));
    CHECK(has(server.greeting["result"]["instructions"].as_string(), "24000 bytes are shown"));
    const Json r = server.execute("seq 1 300000; seq 1 200 >&2");
    CHECK(r["success"] == Json(true));
    CHECK(r["stdout_bytes"] == Json(1988895));
    CHECK(r["stdout"].as_string().size() < 24000);
    CHECK(begins(r["stdout"].as_string(), "1\n2\n"));
    CHECK(ends(r["stdout"].as_string(), "\n299999\n300000\n"));
    CHECK(server.last_line_size < 50000);
    CHECK(note_of(r, "stdout") ==
          "stdout has 1988895 bytes, and not all of them are here; all of it is in " +
              r["stdout_file"].as_string() + ": use read_file with offset and count");
    CHECK(read_lines(server, r["stdout_file"], 149999)["content"] == Json("150000\n"));
    CHECK(server.execute("sed -n 150000p " + r["stdout_file"].as_string())["stdout"] ==
          Json("150000\n"));
    CHECK(!r.find("stderr_truncated"));
    CHECK(!r.find("stderr_file"));
    CHECK(note_of(r, "stderr").empty());
    struct stat status {};
    const std::string file = r["stdout_file"].as_string();
    REQUIRE(::stat(file.substr(0, file.rfind('/')).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    CHECK(begins(file, temporary.path() + "/codeexec-output-"));
    server.finish();
    CHECK(names_in(temporary.path()).empty());
  }
}

TEST_CASE("a call may ask for less of the output, and not for more than is allowed") {
  Server server(Strings{"--max-output-size", "5000"});
  const auto shown = [&](int most) {
    return server.execute_with(Json::object({{"command", "seq 1 2000"}, {"max_output", most}}));
  };
  const Json little = shown(100);
  CHECK(little["stdout"].as_string().size() < 200);
  CHECK(little["stdout_bytes"] == Json(8893));
  CHECK(read_lines(server, little["stdout_file"], 999)["content"] == Json("1000\n"));
  const Json more = shown(1000000);
  CHECK(more["stdout"].dump().size() > 4500);
  CHECK(more["stdout"].dump().size() < 5100);
  CHECK(has(server.error_of("execute_command", parsed(R"({"command":"true","max_output":0})")),
            "max_output"));
}

TEST_CASE("code and background commands show as much, and their files can be read") {
  const TempDir place;
  Server server(Strings{"--max-output-size", "2000", "--workspace", place.path()});
  server.take_first_note();
  const Json code =
      server.use("execute_code", R"({"code":"```sh\nseq 1 3000\n```\n```sh\nseq 1 3001\n```\n"})");
  CHECK(code["blocks"] == Json(2));
  REQUIRE(code["notes"].size() == 2);
  CHECK(has(code["notes"][0].as_string(), "stdout has 13893 bytes"));
  CHECK(has(code["notes"][1].as_string(), "stdout has 13898 bytes"));
  CHECK(code["stdout"].as_string().size() < 2500);
  CHECK(begins(code["stdout"].as_string(), "1\n2\n"));
  CHECK(ends(code["stdout"].as_string(), "\n3000\n3001\n"));

  const Json shell =
      server.use("start_background_shell", R"({"command":"seq 1 3000; echo end; cat"})");
  Json question = Json::object({{"shell_id", shell["shell_id"]}, {"wait_for", "^end$"}});
  const Json output = server.use("get_background_shell_output", question);
  CHECK(output["status"] == Json("running"));
  CHECK(output["stdout"].as_string().size() < 2200);
  CHECK(ends(output["stdout"].as_string(), "\n3000\nend\n"));
  const std::string note = note_of(output, "stdout");
  REQUIRE(has(note, "all of it is in /"));
  const std::size_t at = note.find('/');
  const std::string file = note.substr(at, note.find(": use", at) - at);
  CHECK(read_lines(server, file, 1499)["content"] == Json("1500\n"));
  // As much of the end as is asked for.
  question.set("tail", 2);
  CHECK(server.use("get_background_shell_output", question)["stdout"] == Json("3000\nend\n"));

  const Json running = server.execute_with(
      parsed(R"({"command":"seq 1 3000; echo end; sleep 300","run_in_background_after":0.5})"));
  REQUIRE(running["outcome"] == Json("running"));
  CHECK(running["stdout"].as_string().size() < 2200);
  CHECK(read_lines(server, running["stdout_file"], 1499)["content"] == Json("1500\n"));
}

TEST_CASE("of a file that has not all of the output the note tells how much it has") {
  const TempDir place;
  Server server(with_temporary(place));
  const std::string command = "head -c 67108865 /dev/zero | tr '\\0' x; echo end >&2; sleep 300";
  const std::string told = "the first 67108864 are in /";
  const Json running =
      server.execute_with(Json::object({{"command", command}, {"run_in_background_after", 0.01}}));
  REQUIRE(running["outcome"] == Json("running"));
  const Json output =
      server.use("get_background_shell_output",
                 Json::object({{"shell_id", running["shell_id"]}, {"wait_for", "end"}}));
  CHECK(has(note_of(output, "stdout"), told));
}

TEST_CASE("a reply without room for its texts is sent all the same") {
  const LocalExecutor here = *LocalExecutor::create({});
  int in[2];
  int out[2];
  REQUIRE(::pipe(in) == 0);
  REQUIRE(::pipe(out) == 0);
  codeexec::mcp::ServerOptions options;
  options.max_reply = 8192;
  options.in_fd = in[0];
  options.out_fd = out[1];
  codeexec::mcp::Server server(options);
  REQUIRE(codeexec::add_execution_tools(server, here));
  const std::string lines =
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}})"
      "\n"
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_command",)"
      R"("arguments":{"command":"seq 1 9999"}}})"
      "\n";
  REQUIRE(::write(in[1], lines.data(), lines.size()) == static_cast<ssize_t>(lines.size()));
  ::close(in[1]);
  CHECK(server.serve());
  ::close(out[1]);
  std::string told;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(out[0], buffer, sizeof buffer)) > 0;)
    told.append(buffer, static_cast<std::size_t>(size));
  ::close(in[0]);
  ::close(out[0]);
  CHECK(has(told, "truncated to fit one reply"));
}

TEST_CASE("without a file the note says so") {
  const auto r = support::run_program({"--max-output-size", "1024", "--run", "seq 1 3000"}, "/");
  const Json result = parsed(r.out);
  CHECK(result["stdout_bytes"] == Json(13893));
  CHECK(result["stdout"].as_string().size() < 1200);
  CHECK(!result.find("stdout_file"));
}

TEST_CASE("a server without a folder for temporary files says so, and goes on") {
  Server::Options options;
  options.environment = {"TMPDIR=/nowhere"};
  Server server(options);
  const Json r = server.execute("seq 1 30000");
  CHECK(!r.find("stdout_file"));
  CHECK(ends(note_of(r, "stdout"), "; send it to a file to read it in parts"));
  CHECK(begins(server.logged(), "codeexec-mcp: private_spill_dir: cannot make a directory in "));
}

TEST_CASE("the files of a killed server are removed by the next, and no others") {
  const TempDir temporary;
  std::string left;
  {
    Server server(with_temporary(temporary));
    left = server.execute("seq 1 300000")["stdout_file"].as_string();
    Server other(with_temporary(temporary));
    CHECK(support::exists(left));
    server.signal(SIGKILL);
    CHECK(server.wait() == -SIGKILL);
    CHECK(support::exists(left));
    Server next(with_temporary(temporary));
    CHECK(!support::exists(left));
    next.finish();
    other.finish();
  }
  CHECK(names_in(temporary.path()).empty());
}
