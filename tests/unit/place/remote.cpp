// Workspaces that are only in the place. Its agent has a mount namespace of its own, in which other
// files lie under the paths of this host, so that a test fails where this host's are used.

#include "../../helpers/place_support.hpp"
#include "../../helpers/server_support.hpp"

#include <atomic>
#include <thread>

using codeexec::Command;
using codeexec::Error;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::FileContent;
using codeexec::FileEntry;
using codeexec::FileList;
using codeexec::FileRange;
using codeexec::Files;
using codeexec::Json;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::ProcessOptions;
using codeexec::Result;
using namespace support;

namespace {

// What the place has under `seen` lies here under `real`.
class Remote {
 public:
  TempDir real = {};
  TempDir seen = {};
  PlaceOptions options = {};

  Remote() {
    real.directory("ws");
    options = place_options(workspace());
    options.workspace_mode = codeexec::PlaceWorkspace::remote;
    options.transport = words();
  }
  std::string workspace() const { return seen / "ws"; }
  std::string there(const std::string& file) const { return real / ("ws/" + file); }
  Strings words() const {
    return {"unshare",
            "-rm",
            "sh",
            "-c",
            "mount --bind \"$0\" \"$1\" && cd \"$1\" && HOME=$1 exec \"$2\" --place",
            real.path(),
            seen.path(),
            CODEEXEC_MCP};
  }
  // Other files here, under the paths that the place has.
  void decoy() const {
    make_directories(workspace() + "/sub/.venv/bin");
    write_file(workspace() + "/file", "of this host\n");
    write_file(workspace() + "/code.py", "def f():\n  \"of this host\"\n");
  }

  static bool is_missing() {
    ProcessOptions probe;
    probe.argv = {"unshare", "-rm", "sh", "-c", "mount --bind /usr /mnt"};
    probe.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
    if (codeexec::run_process(probe).succeeded()) return false;
    MESSAGE("SKIPPED: this system lets nobody have a mount namespace");
    return true;
  }
};

std::string text_of(const Error& error) {
  return std::string(name(error.code)) + " " + std::to_string(error.system_error) + " " +
         error.message;
}

std::string as_text(const Expected<FileContent>& content) {
  if (!content) return text_of(content.error());
  std::string text = content->path + "|" + content->bytes + "|" + content->mime_type;
  for (const std::uint64_t number : {content->size, content->begin, content->lines, content->next})
    text += "|" + std::to_string(number);
  for (const bool flag : {content->more, content->cut_line, content->binary})
    text += flag ? "|yes" : "|no";
  return text;
}

std::string as_text(const Expected<FileList>& list) {
  if (!list) return text_of(list.error());
  std::string text = list->path + (list->more ? " more" : "");
  for (const FileEntry& entry : list->entries)
    text += "\n" + entry.path + " " + name(entry.type) + " " + std::to_string(entry.size) + " " +
            entry.modified + (entry.closed ? " closed" : "");
  return text;
}

std::string as_text(const Expected<std::string>& path) {
  return path ? *path : text_of(path.error());
}

codeexec::FileWrite removal() {
  codeexec::FileWrite how;
  how.remove = true;
  return how;
}

// The files of `real`, as if they lay where the place has them.
std::string moved(std::string text, const Remote& place) {
  const std::string& from = place.real.path();
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos;)
    text.replace(at, from.size(), place.seen.path());
  return text;
}

}  // namespace

TEST_CASE("remote: commands run where the workspace is, which is not here") {
  if (Remote::is_missing()) return;
  Remote place;
  make_directories(place.there("sub"));
  write_file(place.there("file"), "of the place\n");
  const PlaceExecutor there = make_place(place.options);
  CHECK(!exists(place.workspace()));
  CHECK(there.workspace() == place.workspace());
  CHECK(there.facts().workspace == place.workspace());
  CHECK(has(there.describe_place(), "only there"));
  const Result r = there.run("pwd; cat file; echo made > new");
  CHECK_MESSAGE(r.out == place.workspace() + "\nof the place\n", describe(r));
  CHECK(r.work_dir == place.workspace());
  CHECK(read_file(place.there("new")) == "made\n");
  Command command = Command::shell("pwd");
  for (const std::string& work_dir : {std::string("sub"), place.workspace() + "/sub/../sub"}) {
    command.work_dir = work_dir;
    const Result below = there.run(command);
    CHECK_MESSAGE(below.out == place.workspace() + "/sub\n", describe(below));
    CHECK(below.work_dir == place.workspace() + "/sub");
  }
  command.work_dir = "nowhere";
  const Result none = there.run(command);
  CHECK(none.outcome == Outcome::not_started);
  CHECK(none.message == "Working directory does not exist: " + place.workspace() + "/nowhere");
  command.work_dir = "file";
  CHECK(has(there.run(command).message, "Working directory is not a directory: "));
  command.work_dir = std::string("a\0b", 3);
  CHECK(has(there.run(command).message, "has a NUL byte"));
  // A session keeps a folder of the place.
  command.work_dir.clear();
  command.session.emplace();
  command.script = "cd sub && export A=b";
  CHECK(there.run(command).succeeded());
  CHECK(command.session->work_dir() == place.workspace() + "/sub");
  command.script = "pwd; echo $A";
  CHECK(there.run(command).out == place.workspace() + "/sub\nb\n");
}

TEST_CASE("remote: paths of options mean the place's") {
  if (Remote::is_missing()) return;
  Remote place;
  for (const char* workspace : {"~/ws", "ws", "./ws/../ws", ""}) {
    CAPTURE(workspace);
    place.options.workspace = workspace;
    const PlaceExecutor there = make_place(place.options);
    const std::string want = *workspace ? place.workspace() : place.seen.path();
    CHECK(there.workspace() == want);
    CHECK(there.run("pwd").out == want + "\n");
  }
  make_directories(place.workspace() + "/only-here");
  place.options.workspace = place.workspace() + "/only-here";
  CHECK(has(place_error(place.options).message,
            "workspace: Working directory does not exist: " + place.options.workspace));
  place.options.workspace = place.workspace();
  place.options.roots = {{place.workspace() + "/only-here"}};
  CHECK(has(place_error(place.options).message, "allowed_paths: "));
  place.options.roots.clear();
  place.options.workspace = "\xff";
  CHECK(!place_error(place.options).message.empty());
  place.options.workspace.clear();
  place.options.delete_guard = true;
  CHECK(has(place_error(place.options).message, "delete_guard"));
}

TEST_CASE("remote: files of this host under the same paths are not used") {
  if (Remote::is_missing()) return;
  Remote place;
  place.decoy();
  write_file(place.there("file"), "of the place\n");
  write_file(place.there("code.py"), "def f():\n  \"of the place\"\n");
  make_symlink("/usr", place.workspace() + "/away");
  make_directories(place.there("away"));
  place.options.roots = {{place.workspace()}};
  const PlaceExecutor there = make_place(place.options);
  const Files files = there.files();
  CHECK(as_text(files.read("file")) ==
        place.workspace() + "/file|of the place\n||13|0|1|1|no|no|no");
  const auto list = files.list(".");
  REQUIRE(list);
  REQUIRE(list->entries.size() == 3);
  CHECK(list->entries[0].type == FileEntry::Type::directory);
  CHECK(list->entries[0].path == "away");
  REQUIRE(files.write("file", "written\n"));
  CHECK(read_file(place.workspace() + "/file") == "of this host\n");
  CHECK(read_file(place.there("file")) == "written\n");
  REQUIRE(files.write("code.py", "", removal()));
  CHECK(exists(place.workspace() + "/code.py"));
  CHECK(!exists(place.there("code.py")));
  Command command = Command::shell("pwd");
  command.work_dir = "away";
  CHECK(there.run(command).out == place.workspace() + "/away\n");
  CHECK(*there.canonical("away", place.workspace()) == place.workspace() + "/away");
  command.work_dir = "sub";  // is only here
  CHECK(has(there.run(command).message, "Working directory does not exist: "));
}

TEST_CASE("remote: files are edited and searched there, as on a host") {
  if (Remote::is_missing()) return;
  Remote place;
  const std::string text = "one\ntwo\nthree\n";
  write_file(place.there("text"), text);
  write_file(place.there("other"), "two\n");
  write_file(place.there(".gitignore"), "left*\n");
  write_file(place.there("left"), "two\n");
  place.options.roots = {{place.workspace()}};
  const PlaceExecutor remote = make_place(place.options);
  const Files files = remote.files();
  const auto list = files.list(".");
  REQUIRE(list);
  CHECK(list->entries.size() == 3);
  CHECK(list->ignored == 1);

  codeexec::FileSearch search;
  search.pattern = "two";
  search.context = 1;
  search.max_matches = 1;
  const auto found = files.search(".", search);
  REQUIRE_MESSAGE(found, found.error().message);
  CHECK(found->path == place.workspace());
  CHECK(found->text == "other\n1:two\n");
  CHECK(found->matches == 1);
  CHECK(found->ignored == 1);
  CHECK(found->more);
  search.glob = "t*";
  search.files_only = true;
  CHECK(files.search(".", search)->text == "text\n");
  search.pattern = "(";
  CHECK(has(files.search(".", search).error().message, "pattern: "));

  const auto edited =
      files.edit("text", {{"one\n", std::string(20000, 'x') + "\n"}, {"e", "E", true}});
  CHECK(!edited);
  const auto better = files.edit("text", {{"one\n", "1\n"}, {"three", "3"}});
  REQUIRE_MESSAGE(better, better.error().message);
  CHECK(better->replaced == 2);
  CHECK(better->path == place.workspace() + "/text");
  CHECK(better->diff == "@@ -1,3 +1,3 @@\n-one\n-two\n-three\n+1\n+two\n+3\n");
  CHECK(read_file(place.there("text")) == "1\ntwo\n3\n");
  const auto none = files.edit("text", {{"four", "4"}});
  REQUIRE(!none);
  CHECK(none.error().code == codeexec::ErrorCode::not_found);
}

TEST_CASE("remote: files are read, written and listed as on a host") {
  if (Remote::is_missing()) return;
  Remote place;
  const std::string bytes = "one\ntwo\n\nfour \xc3\xa4\n" + std::string(5000, 'x') + "\nlast";
  write_file(place.there("text"), bytes);
  write_file(place.there("binary"), std::string("\x89PNG\r\n\x1a\n\0\xff\xfe", 11));
  write_file(place.there("empty"), "");
  write_file(place.there("odd \xff\nname"), "x");
  write_file(place.there("kept"), "x", 0444);
  make_directories(place.there("deep/er/est"));
  make_directories(place.there("node_modules/x"));
  make_directories(place.there("shut"));
  make_symlink("text", place.there("link"));
  make_symlink("/etc", place.there("outside"));
  REQUIRE(::mkfifo(place.there("pipe").c_str(), 0600) == 0);
  place.options.roots = {{place.workspace()}};
  codeexec::LocalOptions here;
  here.workspace = place.real / "ws";
  here.roots = {{here.workspace}};
  here.sandbox.mode = codeexec::SandboxMode::off;
  const PlaceExecutor remote = make_place(place.options);
  const auto local = make(here);
  const Files there = remote.files();
  const Files files = local.files();

  FileRange range;
  for (const char* path :
       {"text", "link", "binary", "empty", "odd \xff\nname", "deep", "pipe", "none",
        "outside/passwd", "/etc/passwd", "../x", "shut/x", "", "text/", "~/x", "/proc/1/mem"})
    for (const bool by_bytes : {false, true})
      for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}})
        for (const std::size_t most : {std::size_t{0}, std::size_t{3}, std::size_t{4000}}) {
          CAPTURE(path);
          range.by_bytes = by_bytes;
          range.offset = std::min<std::uint64_t>(offset, 1u << 30);
          range.max_bytes = most;
          range.count = offset == 2 ? 2 : FileRange::all;
          CHECK(as_text(there.read(path, range)) == moved(as_text(files.read(path, range)), place));
        }
  CHECK(as_text(there.read(std::string("a\0b", 3))) == as_text(files.read(std::string("a\0b", 3))));
  range = {};
  range.by_bytes = true;
  range.offset = ~std::uint64_t{0};
  CHECK(there.read("text", range)->bytes.empty());

  for (const char* path : {".", "", "deep", "text", "none", "shut", "/", "outside", "link"})
    for (const std::size_t depth : {0U, 1U, 2U, 99U}) {
      CAPTURE(path);
      CHECK(as_text(there.list(path, depth)) == moved(as_text(files.list(path, depth)), place));
    }

  codeexec::FileWrite how;
  for (const char* path :
       {"text", "link", "new/er/file", "none/", "deep", "pipe", "outside/x", "/etc/x", "", "kept"})
    for (const bool only_new : {true, false})
      for (const bool make : {false, true}) {
        CAPTURE(path);
        how.only_new = only_new;
        how.make_directories = make;
        const std::string content = std::string(path) + '\0' + "\xff\n";
        remove_all(place.there("new"));
        const std::string want = moved(as_text(files.write(path, content, how)), place);
        const bool made = exists(place.there("new/er/file"));
        remove_all(place.there("new"));
        CHECK(as_text(there.write(path, content, how)) == want);
        CHECK(exists(place.there("new/er/file")) == made);
        if (made) CHECK(read_file(place.there("new/er/file")) == content);
      }
  for (const char* path : {"text", "none", "deep", "/etc/passwd-none"}) {
    CAPTURE(path);
    const std::string want = moved(as_text(there.write(path, "", removal())), place);
    if (std::string(path) == "text") write_file(place.there("text"), "again");
    CHECK(moved(as_text(files.write(path, "", removal())), place) == want);
  }
  how = {};
  how.below = place.workspace() + "/deep";
  CHECK(there.write(place.workspace() + "/deep/in", "x", how));
  CHECK(exists(place.there("deep/in")));
  CHECK(there.write(place.workspace() + "/out", "x", how).error().code ==
        ErrorCode::permission_denied);
  CHECK(!exists(place.there("out")));
}

TEST_CASE("remote: large files come and go while commands run") {
  if (Remote::is_missing()) return;
  Remote place;
  const PlaceExecutor there = make_place(place.options);
  std::string bytes(std::size_t{20} << 20, 'x');
  for (std::size_t i = 0; i < bytes.size(); i += 4099) bytes[i] = static_cast<char>(i / 4099);
  const Files files = there.files();
  std::atomic<bool> over{false};
  std::string wrong;
  std::size_t rounds = 0;
  std::thread writer([&] {
    FileRange range;
    range.by_bytes = true;
    range.max_bytes = bytes.size();
    for (rounds = 0; rounds < 3 && wrong.empty(); ++rounds) {
      if (auto ok = files.write("large", bytes); !ok) wrong = ok.error().message;
      const auto read = files.read("large", range);
      if (!read || read->bytes != bytes) wrong += "not the same";
    }
    over = true;
  });
  std::size_t ran = 0;
  while (!over) {
    const Result r = there.run("echo hi");
    CHECK_MESSAGE(r.out == "hi\n", describe(r));
    ++ran;
  }
  writer.join();
  CHECK(wrong == "");
  CHECK(ran > 3);
  CHECK(read_file(place.there("large")) == bytes);
  const auto long_one = files.write("x", std::string(Files::max_write + 1, 'x'));
  REQUIRE(!long_one);
  CHECK(long_one.error().code == ErrorCode::limit);
  CHECK(files.write("most", std::string(Files::max_write, 'x')));
  // More at once than the place takes.
  std::vector<std::thread> many;
  std::atomic<int> written{0};
  for (int i = 0; i < 12; ++i)
    many.emplace_back([&, i] {
      if (files.write("many" + std::to_string(i), std::to_string(i))) ++written;
    });
  for (std::thread& one : many) one.join();
  CHECK(written == 12);
}

TEST_CASE("remote: roots are judged by the files of the place") {
  if (Remote::is_missing()) return;
  Remote place;
  make_directories(place.real / "kept");
  write_file(place.real / "kept/file", "x");
  make_symlink("../kept", place.there("link"));
  make_symlink("/", place.there("root"));
  make_directories(place.workspace() + "/link");  // here it is none
  make_directories(place.workspace() + "/root/usr");
  const std::string kept = place.seen / "kept";
  place.options.roots = {{"ws"}, {"~/kept", Permission::read}};
  const Error error = place_error(place.options);
  CHECK(has(error.message, "read_only: nothing would keep commands from " + kept));
  CHECK(error.code == ErrorCode::unsupported);
  place.options.sandbox.hidden_paths = {"file"};
  CHECK(has(place_error(place.options).message, "hidden_paths: not in a place"));
  place.options.sandbox.hidden_paths.clear();
  place.options.roots[1].path = "ws/../kept";
  place.options.sandbox.mode = codeexec::SandboxMode::best_effort;
  const auto made = PlaceExecutor::create(place.options);
  if (!made && has(made.error().message, "a sandbox must hold there")) {
    MESSAGE("SKIPPED: no kernel's sandbox here");
    return;
  }
  REQUIRE_MESSAGE(made, made.error().message);
  const PlaceExecutor& there = *made;
  REQUIRE(there.paths().roots().size() == 2);
  CHECK(there.paths().roots()[1].path == kept);
  const Result changed = there.run(
      "echo y > ../kept/file; rm -r ../kept; touch link/new; rm link/*; "
      "echo z > ~/none; rm link; echo y > new; cat ../kept/file");
  CHECK_MESSAGE(changed.out == "x", describe(changed));
  CHECK(read_file(place.real / "kept/file") == "x");
  CHECK(names_in(place.real / "kept") == Strings{"file"});
  CHECK(!exists(place.there("link")));
  CHECK(read_file(place.there("new")) == "y\n");
  Command command = Command::shell("pwd");
  command.work_dir = "root/usr";
  const Result outside = there.run(command);
  CHECK(outside.message == "Path validation error: Path not in allowed directories: /usr");
  CHECK(there.check(command).rule == "work_dir");
  make_symlink("../kept", place.there("link"));
  CHECK(there.files().read("link/file"));
  for (const char* path : {"../kept/new", "link/new"})
    CHECK(there.files().write(path, "x").error().message ==
          "'" + kept + "/new': may be read and not changed (read_only)");
  CHECK(there.files().read("/etc/passwd").error().code == ErrorCode::permission_denied);
  CHECK(there.files().read("root/etc/passwd").error().code == ErrorCode::permission_denied);
}

TEST_CASE("remote: a folder that commands could change all the same is not read-only") {
  if (Remote::is_missing()) return;
  Remote place;
  make_directories(place.there("kept"));
  place.options.sandbox.mode = codeexec::SandboxMode::best_effort;
  for (const Permission permission : {Permission::read, Permission::none}) {
    place.options.roots = {{"ws"}, {"ws/kept", permission}};
    CHECK(has(place_error(place.options).message,
              "read_only: nothing would keep commands from " + place.workspace() + "/kept"));
  }
}

TEST_CASE("remote: a virtual environment is that of the place") {
  if (Remote::is_missing()) return;
  Remote place;
  place.decoy();
  make_directories(place.there("sub"));
  make_directories(place.there(".venv/bin"));
  make_directories(place.real / "other/bin");
  const std::string venv = place.workspace() + "/.venv";
  const std::string script = "echo $VIRTUAL_ENV; echo ${PATH%%:*}";
  Command command = Command::shell(script);
  command.work_dir = "sub";
  {
    const PlaceExecutor there = make_place(place.options);
    const Result r = there.run(command);
    CHECK_MESSAGE(r.out == venv + "\n" + venv + "/bin\n", describe(r));
    CHECK(r.venv.empty());
    command.environment = {{"PATH", "/usr/bin:/bin"}};
    CHECK(there.run(command).out == venv + "\n/usr/bin\n");
  }
  command.environment.clear();
  place.options.environment.set = {{"PATH", "/bin"}};
  CHECK(make_place(place.options).run(command).out == venv + "\n/bin\n");
  place.options.environment.set.clear();
  place.options.environment.venv_path = "~/other";
  place.options.environment.venv_path = place.seen / "other";
  CHECK(make_place(place.options).run(command).out ==
        place.seen / "other\n" + (place.seen / "other/bin\n"));
  place.options.environment.venv_path = place.workspace() + "/sub/.venv";
  CHECK(has(place_error(place.options).message, "venv_path: "));
  place.options.environment.venv_path.clear();
  place.options.environment.auto_venv = false;
  CHECK(make_place(place.options).run("echo $VIRTUAL_ENV").out == "\n");
}

TEST_CASE("remote: a lost connection is made anew, to the same folder") {
  if (Remote::is_missing()) return;
  Remote place;
  make_directories(place.there("first"));
  make_directories(place.there("second"));
  make_symlink("first", place.there("link"));
  place.options.workspace = place.workspace() + "/link";
  const PlaceExecutor there = make_place(place.options);
  CHECK(there.workspace() == place.workspace() + "/first");
  ::kill(agent_of(there), SIGKILL);
  const Stopwatch watch;
  while (!there.files().write("f", "x") && watch.soon()) ::poll(nullptr, 0, 2);
  CHECK(read_file(place.there("first/f")) == "x");
  // What the option named then counts, whatever it names now.
  REQUIRE(::unlink(place.there("link").c_str()) == 0);
  make_symlink("second", place.there("link"));
  ::kill(agent_of(there), SIGKILL);
  Result r = there.run("pwd");
  while (r.outcome == Outcome::unknown && watch.soon()) r = there.run("pwd");
  CHECK_MESSAGE(r.out == place.workspace() + "/first\n", describe(r));
}

TEST_CASE("remote: a folder that becomes a link after it was judged is not entered") {
  if (Remote::is_missing()) return;
  Remote place;
  make_directories(place.there("sub"));
  place.options.roots = {{place.workspace()}};
  const PlaceExecutor there = make_place(place.options);
  // The workspace itself is judged when the connection is made.
  REQUIRE(::rename(place.there("").c_str(), (place.real / "old").c_str()) == 0);
  Result r = there.run("pwd");
  CHECK(r.outcome == Outcome::not_started);
  CHECK(has(r.message, "Working directory does not exist: " + place.workspace()));
  make_symlink("old", place.real / "ws");
  r = there.run("pwd");
  CHECK(r.outcome == Outcome::not_started);
  CHECK(!r.message.empty());
}

TEST_CASE("remote: the server's tools work there") {
  if (Remote::is_missing()) return;
  Remote place;
  place.decoy();
  write_file(place.there("code.py"), "def f():\n  \"of the place\"\n");
  std::string command;
  for (const std::string& word : place.words()) command += "'" + word + "' ";
  const Strings options = {"--execution-mode",  "command",
                           "--place-command",   command,
                           "--workspace",       place.workspace(),
                           "--place-workspace", "remote",
                           "--allowed-paths",   place.workspace(),
                           "--sandbox",         "off",
                           "--max-output-size", "2000"};
  Server server(options);
  CHECK(has(server.greeting["result"]["instructions"].as_string(), "only there"));
  server.use("write_file", R"({"file_path":"dir/f","content":"text\n"})");
  CHECK(read_file(place.there("dir/f")) == "text\n");
  CHECK(server.execute("cat dir/f")["stdout"] == Json("text\n"));
  CHECK(server.use("read_file", R"({"file_path":"dir/f"})")["content"] == Json("text\n"));
  CHECK(
      server.use("read_docstring", R"({"file_path":"code.py","function_name":"f"})")["docstring"] ==
      Json("of the place"));
  const Json list = server.use("list_files", R"({"path":"dir"})");
  CHECK(list["entries"][0]["path"] == Json("f"));
  CHECK(list["path"] == Json(place.workspace() + "/dir"));
  const Json code = server.use(
      "execute_code",
      Json::object({{"code", "# filename: dir/run.py\nimport os; print(os.getcwd(), __file__)"},
                    {"language", "python"}}));
  CHECK(code["stdout"] == Json(place.workspace() + " " + place.workspace() + "/dir/run.py\n"));
  CHECK(exists(place.there("dir/run.py")));
  const Json unnamed =
      server.use("execute_code", Json::object({{"code", "print(6 * 7)"}, {"language", "python"}}));
  CHECK(unnamed["stdout"] == Json("42\n"));
  CHECK(names_in(place.real / "ws") == Strings{"code.py", "dir"});
  CHECK(names_in(place.workspace()) == Strings{"code.py", "file", "sub"});
  // Long output is here, and is read here.
  const Json flood = server.execute("yes | head -c 9000");
  const std::string file = flood["stdout_file"].as_string();
  REQUIRE(!file.empty());
  CHECK(server.use("read_file", Json::object({{"file_path", file}}))["size"] == Json(9000));
  CHECK(server.finish().empty());
  Strings doctor = options;
  doctor.push_back("--doctor");
  CHECK(has(run_program(doctor).out, "ok   workspace: " + place.workspace() + " is only there"));
}

TEST_CASE("remote: a shared workspace that is not the same names the ways out") {
  if (Remote::is_missing()) return;
  Remote place;
  place.decoy();
  place.options.workspace_mode = codeexec::PlaceWorkspace::shared;
  const std::string message = place_error(place.options).message;
  CHECK(has(message, "is not the same folder in box"));
  CHECK(has(message, "mount it there under the same path"));
  CHECK(has(message, "place_workspace remote"));
}
