// Tests of the paths section: canonical paths, roots, opening a work_dir, and which files may be
// deleted.
#include "codeexec.hpp"

#include <doctest/doctest.h>
#include <grp.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "support.hpp"

namespace {

using codeexec::DeleteGuard;
using codeexec::ErrorCode;
using codeexec::is_auto_generated;
using codeexec::OpenDirectory;
using codeexec::PathOptions;
using codeexec::PathRules;
using codeexec::Permission;
using support::TempDir;

const std::string not_allowed = "Path validation error: Path not in allowed directories: ";
const std::string not_existing = "Working directory does not exist: ";
const std::string not_directory = "Working directory is not a directory: ";

PathRules rules_for(const std::vector<codeexec::Root>& roots) {
  PathOptions options;
  options.roots = roots;
  auto rules = PathRules::create(options);
  REQUIRE_MESSAGE(rules, rules.error().message);
  return *rules;
}

PathRules rules_for(const std::string& root) { return rules_for({{root, Permission::write}}); }

std::string creation_error(const std::string& root) {
  PathOptions options;
  options.roots = {{root, Permission::write}};
  auto rules = PathRules::create(options);
  return rules ? "" : rules.error().message;
}

// What open_work_dir() says: the error's message, or the path with "ok " in front.
std::string opened(const PathRules& rules, std::string_view work_dir, std::string_view base) {
  auto directory = rules.open_work_dir(work_dir, base);
  return directory ? "ok " + directory->path : directory.error().message;
}

std::string canonical(std::string_view path, std::string_view base = {}) {
  auto result = codeexec::canonical_path(path, base);
  return result ? *result : "error: " + result.error().message;
}

struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Identity& other) const {
    return device == other.device && inode == other.inode;
  }
};

Identity identity(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) support::fail("fstat", "descriptor");
  return {status.st_dev, status.st_ino};
}

Identity identity(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) support::fail("lstat", path);
  return {status.st_dev, status.st_ino};
}

// Runs the function in a child process without root's power over files, and tells whether it
// returned true there.
template <class F>
bool true_as_ordinary_user(F function) {
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::geteuid() == 0 &&
        (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0))
      ::_exit(2);
    ::_exit(function() ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 0;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("is_within compares whole names") {
  CHECK(codeexec::is_within("/ws", "/ws"));
  CHECK(codeexec::is_within("/ws/a", "/ws"));
  CHECK(codeexec::is_within("/ws/a/b", "/ws/a"));
  CHECK_FALSE(codeexec::is_within("/ws2", "/ws"));
  CHECK_FALSE(codeexec::is_within("/ws2/a", "/ws"));
  CHECK_FALSE(codeexec::is_within("/w", "/ws"));
  CHECK_FALSE(codeexec::is_within("/", "/ws"));
  CHECK_FALSE(codeexec::is_within("/a/ws", "/ws"));
  CHECK(codeexec::is_within("/", "/"));
  CHECK(codeexec::is_within("/anything", "/"));
  CHECK_FALSE(codeexec::is_within("relative", "/"));
  CHECK_FALSE(codeexec::is_within("", "/"));
  CHECK_FALSE(codeexec::is_within("/ws", ""));
}

TEST_CASE("permissions have names") {
  CHECK(std::string(name(Permission::none)) == "none");
  CHECK(std::string(name(Permission::read)) == "read");
  CHECK(std::string(name(Permission::write)) == "write");
}

TEST_CASE("canonical_path resolves like Python's Path.resolve, missing names included") {
  TempDir temp;
  temp.directory("ws/d/sub");
  temp.file("ws/file");
  support::make_symlink("missing", temp / "ws/dangling");
  support::make_symlink("d", temp / "ws/link");
  support::make_symlink("d/sub", temp / "ws/deep");
  support::make_symlink(temp.path() + "/ws/d/../nope", temp / "ws/absolute");
  const std::string ws = temp / "ws";

  // The right column is what Python 3.11 answers.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ws},
      {"/", ws},
      {"/.", ws},
      {"/./d/.//sub/", ws + "/d/sub"},
      {"/nope", ws + "/nope"},
      {"/nope/../d", ws + "/d"},
      {"/nope/x/../../link", ws + "/d"},
      {"/file/..", ws},
      {"/file/x", ws + "/file/x"},
      {"/file/../d", ws + "/d"},
      {"/dangling", ws + "/missing"},
      {"/dangling/../d", ws + "/d"},
      {"/absolute/x", ws + "/nope/x"},
      {"/deep/..", ws + "/d"},
      {"/deep/../..", ws},
      {"/link/./sub//", ws + "/d/sub"},
      {"/~", ws + "/~"},
      {"/ d", ws + "/ d"},
      {"/..", temp.path()},
  };
  for (const auto& entry : cases) {
    const std::string& suffix = entry.first;
    const std::string& expected = entry.second;
    CAPTURE(suffix);
    CHECK(canonical(ws + suffix) == expected);
    if (suffix.size() > 1) CHECK(canonical(suffix.substr(1), ws) == expected);
  }
  CHECK(canonical("/") == "/");
  CHECK(canonical("//") == "/");
  CHECK(canonical("/../..") == "/");
  CHECK(canonical("/../../nope-here") == "/nope-here");
}

TEST_CASE("canonical_path takes relative paths from the base, or from the current directory") {
  TempDir temp;
  temp.directory("a/b");
  support::DirectoryGuard inside(temp / "a");
  CHECK(canonical("b") == temp / "a/b");
  CHECK(canonical(".") == temp / "a");
  CHECK(canonical("b", "..") == temp / "b");
  CHECK(canonical("b", temp.path()) == temp / "b");
  CHECK(canonical("/b", temp.path()) == "/b");
}

TEST_CASE("canonical_path agrees with realpath() wherever that has an answer") {
  TempDir temp;
  const char* names[] = {"a", "b", "c", "..", ".", "", "l1", "l2", "l3", "l4"};
  temp.directory("a/a/a");
  temp.directory("a/b/c");
  temp.directory("b/c");
  temp.directory("c");
  const char* targets[] = {"a", "../a", "a/b", "../b/../a", "l1", "l2/a", "..", "."};
  support::Random random;
  for (const char* place : {"", "a/", "a/a/", "a/b/", "b/", "c/"})
    for (const char* link : {"l1", "l2", "l3", "l4"}) {
      const std::string target = targets[random.below(8)];
      const std::string path = temp / (std::string(place) + link);
      support::make_symlink(random.below(4) == 0 ? temp / target : target, path);
    }

  int answered = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string path = temp.path();
    for (std::size_t parts = 1 + random.below(7); parts > 0; --parts)
      path += "/" + std::string(names[random.below(10)]);
    char expected[PATH_MAX];
    if (!::realpath(path.c_str(), expected)) continue;
    ++answered;
    const std::string result = canonical(path);
    if (result != expected) {
      CAPTURE(path);
      CHECK(result == std::string(expected));
    }
  }
  CHECK(answered > 2000);
}

TEST_CASE("canonical_path refuses what no path can be") {
  TempDir temp;
  support::make_symlink("loop", temp / "loop");
  support::make_symlink("pong", temp / "ping");
  support::make_symlink("ping", temp / "pong");
  const auto code = [](std::string_view path) {
    auto result = codeexec::canonical_path(path);
    REQUIRE_FALSE(result);
    return result.error().code;
  };
  CHECK(code("") == ErrorCode::invalid_argument);
  CHECK(code(std::string_view("/a\0b", 4)) == ErrorCode::invalid_argument);
  CHECK(code(temp / "loop") == ErrorCode::invalid_argument);
  CHECK(code(temp / "ping/x") == ErrorCode::invalid_argument);
  CHECK(code("/" + std::string(4095, 'x')) == ErrorCode::limit);
  CHECK(code(std::string(10000000, '/') + "x") == ErrorCode::limit);
  CHECK(contains(canonical(temp / "loop"), "loop': Too many levels of symbolic links"));
  CHECK_FALSE(codeexec::canonical_path("a", std::string_view("/\0", 2)));
  CHECK(canonical("/" + std::string(4094, '/')) == "/");
}

TEST_CASE("canonical_path follows 40 links and no more") {
  TempDir temp;
  temp.directory("end");
  support::make_symlink("end", temp / "l1");
  for (int i = 2; i <= 41; ++i)
    support::make_symlink("l" + std::to_string(i - 1), temp / ("l" + std::to_string(i)));
  CHECK(canonical(temp / "l40") == temp / "end");
  CHECK(contains(canonical(temp / "l41"), "Too many levels of symbolic links"));
}

TEST_CASE("canonical_path bounds the text of links, not only their number") {
  TempDir temp;
  std::string dots;
  while (dots.size() < 1500) dots += "./";
  temp.directory("d");
  support::make_symlink(dots + "d", temp / "one");
  support::make_symlink(dots + "one", temp / "two");
  support::make_symlink(dots + "two", temp / "three");
  CHECK(canonical(temp / "two") == temp / "d");
  CHECK(contains(canonical(temp / "three"), "File name too long"));
}

TEST_CASE("without roots every directory is allowed") {
  TempDir temp;
  auto rules = PathRules::create({});
  REQUIRE(rules);
  CHECK_FALSE(rules->restricted());
  CHECK(rules->roots().empty());
  CHECK(rules->permission("/etc") == Permission::write);
  CHECK(opened(*rules, temp.path(), "/") == "ok " + temp.path());
  CHECK(opened(*rules, "", temp.path()) == "ok " + temp.path());
  CHECK(opened(*rules, "/", temp.path()) == "ok /");
}

TEST_CASE("an empty work_dir and an empty base mean the current directory") {
  TempDir temp;
  temp.directory("sub");
  support::DirectoryGuard inside(temp.path());
  auto rules = PathRules::create({});
  REQUIRE(rules);
  CHECK(opened(*rules, "", "") == "ok " + temp.path());
  CHECK(opened(*rules, "sub", "") == "ok " + temp / "sub");
  CHECK(opened(rules_for("/usr"), "", "") == not_allowed + temp.path());
}

TEST_CASE("roots are made canonical when the rules are created") {
  TempDir temp;
  temp.directory("real/inner");
  support::make_symlink("real", temp / "link");
  const PathRules rules = rules_for({{temp / "link/./inner/..//", Permission::read}});
  REQUIRE(rules.roots().size() == 1);
  CHECK(rules.restricted());
  CHECK(rules.roots()[0].path == temp / "real");
  CHECK(rules.roots()[0].permission == Permission::read);

  support::DirectoryGuard inside(temp.path());
  const PathRules relative = rules_for("real");
  support::DirectoryGuard elsewhere("/");
  CHECK(relative.roots()[0].path == temp / "real");
  CHECK(opened(relative, "inner", temp / "real") == "ok " + temp / "real/inner");
}

TEST_CASE("a bad root is an error that names the option and the path") {
  TempDir temp;
  temp.file("file");
  support::make_symlink("nowhere", temp / "dangling");
  CHECK(creation_error(temp / "nope") ==
        "allowed_paths: '" + temp / "nope" + "': No such file or directory");
  CHECK(creation_error(temp / "file") == "allowed_paths: '" + temp / "file" + "': Not a directory");
  CHECK(creation_error(temp / "dangling") ==
        "allowed_paths: '" + temp / "nowhere" + "': No such file or directory");
  CHECK(creation_error("") == "allowed_paths: the path is empty");
  CHECK(creation_error(std::string("/tmp\0/x", 7)) ==
        "allowed_paths: '/tmp\\x00/x': has a NUL byte");
  // `~` is a name like any other.
  CHECK(contains(creation_error("~"), "/~': No such file or directory"));
}

TEST_CASE("a root that cannot be read is an error") {
  TempDir temp;
  ::chmod(temp.path().c_str(), 0755);
  ::chmod(temp.directory("closed").c_str(), 0);
  ::chmod(temp.directory("unlisted").c_str(), 0711);
  ::chmod(temp.directory("not-entered").c_str(), 0644);
  ::chmod(temp.directory("open").c_str(), 0755);
  const std::string denied = "': Permission denied";
  CHECK(true_as_ordinary_user([&] {
    return ::geteuid() != 0 && creation_error(temp / "open").empty() &&
           creation_error(temp / "closed") == "allowed_paths: '" + temp / "closed" + denied;
  }));
  if (::geteuid() != 0) return;  // the owner's own bits differ in the cases below
  CHECK(true_as_ordinary_user([&] {
    return creation_error(temp / "unlisted") == "allowed_paths: '" + temp / "unlisted" + denied &&
           creation_error(temp / "not-entered") ==
               "allowed_paths: '" + temp / "not-entered" + denied;
  }));
}

TEST_CASE("a root listed twice counts once, unless the permissions differ") {
  TempDir temp;
  temp.directory("ws");
  support::make_symlink("ws", temp / "link");
  CHECK(rules_for({{temp / "ws"}, {temp / "link"}}).roots().size() == 1);
  PathOptions options;
  options.roots = {{temp / "ws", Permission::write}, {temp / "link", Permission::read}};
  auto rules = PathRules::create(options);
  REQUIRE_FALSE(rules);
  CHECK(rules.error().code == ErrorCode::invalid_argument);
  CHECK(rules.error().message ==
        "allowed_paths: '" + temp / "ws" + "': listed with different permissions");
}

TEST_CASE("the deepest root decides, whatever the order") {
  TempDir temp;
  temp.directory("ws/data/private/public");
  temp.directory("ws2");
  std::vector<codeexec::Root> roots = {
      {temp / "ws", Permission::write},
      {temp / "ws/data", Permission::read},
      {temp / "ws/data/private", Permission::none},
      {temp / "ws/data/private/public", Permission::write},
  };
  for (int turn = 0; turn < 4; ++turn) {
    const PathRules rules = rules_for(roots);
    CHECK(rules.permission(temp / "ws") == Permission::write);
    CHECK(rules.permission(temp / "ws/src/deep") == Permission::write);
    CHECK(rules.permission(temp / "ws/data") == Permission::read);
    CHECK(rules.permission(temp / "ws/data/x") == Permission::read);
    CHECK(rules.permission(temp / "ws/database") == Permission::write);
    CHECK(rules.permission(temp / "ws/data/private") == Permission::none);
    CHECK(rules.permission(temp / "ws/data/private/x") == Permission::none);
    CHECK(rules.permission(temp / "ws/data/private/public/x") == Permission::write);
    CHECK(rules.permission(temp / "ws2") == Permission::none);
    CHECK(rules.permission(temp.path()) == Permission::none);
    CHECK(rules.permission("/") == Permission::none);
    CHECK(opened(rules, "ws/data", temp.path()) == "ok " + temp / "ws/data");
    CHECK(opened(rules, "ws/data/private", temp.path()) == not_allowed + temp / "ws/data/private");
    std::rotate(roots.begin(), roots.begin() + 1, roots.end());
  }
}

TEST_CASE("a path that is not canonical in form has no permission") {
  TempDir temp;
  temp.directory("ws");
  const PathRules rules = rules_for(temp / "ws");
  const std::string ws = temp / "ws";
  for (const std::string& path :
       {ws + "/..", ws + "/../etc", ws + "/a/../../etc", ws + "/.", ws + "/", ws + "//a",
        ws + "/a/", std::string(), std::string("ws"), "/" + ws, ws + std::string("/a\0", 3)}) {
    CAPTURE(path);
    CHECK(rules.permission(path) == Permission::none);
  }
  CHECK(rules.permission(ws + "/...") == Permission::write);
  CHECK(rules.permission(ws + "/.a/a..") == Permission::write);
}

TEST_CASE("the root directory as a root allows everything") {
  TempDir temp;
  const PathRules rules = rules_for({{"/", Permission::read}, {temp.path(), Permission::write}});
  CHECK(rules.permission("/") == Permission::read);
  CHECK(rules.permission("/etc") == Permission::read);
  CHECK(rules.permission(temp / "x") == Permission::write);
  CHECK(opened(rules, "/", temp.path()) == "ok /");
  CHECK(opened(rules, "../..", "/usr") == "ok /");
}

TEST_CASE("a work_dir is empty, relative or absolute, and errors have the reference's texts") {
  TempDir temp;
  temp.directory("ws/sub");
  temp.file("ws/file");
  const std::string ws = temp / "ws";
  const PathRules rules = rules_for(ws);
  CHECK(opened(rules, "", ws) == "ok " + ws);
  CHECK(opened(rules, ".", ws) == "ok " + ws);
  CHECK(opened(rules, "sub", ws) == "ok " + ws + "/sub");
  CHECK(opened(rules, "./sub/../sub//", ws) == "ok " + ws + "/sub");
  CHECK(opened(rules, ws + "/sub", "/") == "ok " + ws + "/sub");
  CHECK(opened(rules, "nope", ws) == not_existing + ws + "/nope");
  CHECK(opened(rules, "nope/deeper", ws) == not_existing + ws + "/nope/deeper");
  CHECK(opened(rules, "file", ws) == not_directory + ws + "/file");
  CHECK(opened(rules, "file/below", ws) == not_existing + ws + "/file/below");
  CHECK(opened(rules, "~", ws) == not_existing + ws + "/~");
  CHECK(opened(rules, "..", ws) == not_allowed + temp.path());
  CHECK(opened(rules, "/etc", ws) == not_allowed + "/etc");
  CHECK(opened(rules, "/", ws) == not_allowed + "/");
  // Outside wins over missing.
  CHECK(opened(rules, "../nope", ws) == not_allowed + temp / "nope");
  CHECK(opened(rules, "sub/../../nope/x", ws) == not_allowed + temp / "nope/x");
  // And a base outside is outside.
  CHECK(opened(rules, "", "/usr") == not_allowed + "/usr");
}

TEST_CASE("errors carry a code and an errno") {
  TempDir temp;
  temp.file("ws/file");
  const std::string ws = temp / "ws";
  const PathRules rules = rules_for(ws);
  auto outside = rules.open_work_dir("/etc", ws);
  CHECK(outside.error().code == ErrorCode::permission_denied);
  auto missing = rules.open_work_dir("nope", ws);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().system_error == ENOENT);
  auto file = rules.open_work_dir("file", ws);
  CHECK(file.error().code == ErrorCode::not_found);
  CHECK(file.error().system_error == ENOTDIR);
}

TEST_CASE("a root does not allow its namesakes") {
  TempDir temp;
  for (const char* place : {"ws", "ws2", "ws-old", "w", "ws.d"}) temp.directory(place);
  const PathRules rules = rules_for(temp / "ws");
  for (const char* place : {"ws2", "ws-old", "w", "ws.d"})
    CHECK(opened(rules, place, temp.path()) == not_allowed + temp / place);
  CHECK(opened(rules, "ws", temp.path()) == "ok " + temp / "ws");
}

TEST_CASE("symbolic links are judged by where they lead") {
  TempDir temp;
  temp.directory("ws/sub");
  temp.directory("outside/deep");
  const std::string ws = temp / "ws";
  support::make_symlink("/etc", ws + "/etc");
  support::make_symlink("../outside", ws + "/up");
  support::make_symlink("sub", ws + "/inner");
  support::make_symlink("etc", ws + "/twice");
  support::make_symlink("../outside/nope", ws + "/dangling-out");
  support::make_symlink("nope", ws + "/dangling-in");
  support::make_symlink("loop", ws + "/loop");
  support::make_symlink("../ws/sub", temp / "outside/back");
  support::make_symlink("/proc/self/root", ws + "/magic");
  const PathRules rules = rules_for(ws);
  CHECK(opened(rules, "etc", ws) == not_allowed + "/etc");
  CHECK(opened(rules, "twice", ws) == not_allowed + "/etc");
  CHECK(opened(rules, "up", ws) == not_allowed + temp / "outside");
  CHECK(opened(rules, "up/deep", ws) == not_allowed + temp / "outside/deep");
  CHECK(opened(rules, "up/..", ws) == not_allowed + temp.path());
  CHECK(opened(rules, "dangling-out", ws) == not_allowed + temp / "outside/nope");
  CHECK(opened(rules, "dangling-in", ws) == not_existing + ws + "/nope");
  CHECK(opened(rules, "inner", ws) == "ok " + ws + "/sub");
  CHECK(opened(rules, "up/back", ws) == "ok " + ws + "/sub");
  CHECK(opened(rules, temp / "outside/back", "/") == "ok " + ws + "/sub");
  CHECK(opened(rules, "loop", ws) ==
        "Path validation error: 'loop': Too many levels of symbolic links");
#if defined(__linux__)
  CHECK(opened(rules, "magic", ws) == not_allowed + "/");
#endif
}

TEST_CASE("hostile work_dirs get a clear line of text") {
  TempDir temp;
  const std::string ws = temp.directory("ws");
  const PathRules rules = rules_for(ws);
  CHECK(opened(rules, std::string_view("a\0b", 3), ws) ==
        "Path validation error: 'a\\x00b': has a NUL byte");
  CHECK(opened(rules, "../a\nb\x1b[2J", ws) == not_allowed + temp / "a\\x0ab\\x1b[2J");
  CHECK(opened(rules, "a\xff", ws) == not_existing + ws + "/a\xef\xbf\xbd");
  CHECK(contains(opened(rules, std::string(300, 'n'), ws), "File name too long"));
  const std::string huge = opened(rules, std::string(5000000, 'n'), ws);
  CHECK(contains(huge, "File name too long"));
  CHECK(huge.size() < 400);
  CHECK(contains(opened(rules, std::string(4000, 'n') + std::string(4000, '/'), ws), "too long"));
}

TEST_CASE("names with any bytes can be opened") {
  TempDir temp;
  const PathRules rules = rules_for(temp.path());
  for (const std::string& directory :
       {std::string("new\nline"), std::string("\xff\xfe"), std::string(" "), std::string("-rf"),
        std::string("a:b"), std::string("..."), std::string("\\x"), std::string(255, 'n')}) {
    CAPTURE(directory);
    temp.directory(directory);
    CHECK(opened(rules, directory, temp.path()) == "ok " + temp / directory);
  }
}

TEST_CASE("a fifo or a device as work_dir is refused at once") {
  TempDir temp;
  REQUIRE(::mkfifo((temp / "fifo").c_str(), 0600) == 0);
  const PathRules rules = rules_for({{temp.path()}, {"/dev"}});
  CHECK(opened(rules, "fifo", temp.path()) == not_directory + temp / "fifo");
  CHECK(opened(rules, "/dev/null", temp.path()) == not_directory + "/dev/null");
}

TEST_CASE(
    "a directory that may not be entered is a clear error, one that may not be listed is fine") {
  TempDir temp;
  ::chmod(temp.path().c_str(), 0755);
  ::chmod(temp.directory("closed/inner").c_str(), 0755);
  ::chmod((temp / "closed").c_str(), 0600);
  ::chmod(temp.directory("unlisted").c_str(), 0311);
  const PathRules rules = rules_for(temp.path());
  CHECK(true_as_ordinary_user([&] {
    const std::string cannot = "Working directory cannot be entered: '";
    const std::string denied = "': Permission denied";
    return opened(rules, "closed", temp.path()) == cannot + temp / "closed" + denied &&
           opened(rules, "closed/inner", temp.path()) == cannot + temp / "closed/inner" + denied &&
           opened(rules, "unlisted", temp.path()) == "ok " + temp / "unlisted";
  }));
}

TEST_CASE("the descriptor is the directory, enters it, and is not inherited") {
  TempDir temp;
  const std::string ws = temp.directory("ws");
  const PathRules rules = rules_for(ws);
  auto directory = rules.open_work_dir("", ws);
  REQUIRE(directory);
  CHECK(identity(directory->fd.get()) == identity(ws));
  CHECK((::fcntl(directory->fd.get(), F_GETFD) & FD_CLOEXEC) != 0);

  // Its name may come to mean something else: what was judged is what is entered.
  REQUIRE(::rename(ws.c_str(), (temp / "moved").c_str()) == 0);
  support::make_symlink("/", ws);
  const support::DirectoryGuard back(temp.path());
  REQUIRE(::fchdir(directory->fd.get()) == 0);
  CHECK(support::real_path(".") == temp / "moved");
}

TEST_CASE("descriptors neither leak nor land on the standard streams") {
  TempDir temp;
  temp.file("ws/file");
  support::make_symlink("/etc", temp / "ws/out");
  const std::string ws = temp / "ws";
  const int before = support::count_descriptors();
  {
    const PathRules rules = rules_for(ws);
    for (int i = 0; i < 50; ++i)
      for (const char* work_dir : {"", "nope", "file", "out", "/etc", "a/b/c"})
        (void)opened(rules, work_dir, ws);
    CHECK(creation_error(ws + "/file") != "");
  }
  CHECK(support::count_descriptors() == before);

  const PathRules rules = rules_for(ws);
  const auto opens_above = [&] {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
    auto directory = rules.open_work_dir("", ws);
    return directory && directory->fd.get() > 2 && !support::descriptor_is_open(0) &&
           !support::descriptor_is_open(1) && !support::descriptor_is_open(2);
  };
  ::chmod(temp.path().c_str(), 0755);
  CHECK(true_as_ordinary_user(opens_above));
}

TEST_CASE("a root that goes away or becomes a link later is not left") {
  TempDir temp;
  const std::string ws = temp.directory("ws");
  temp.directory("ws/sub");
  const PathRules rules = rules_for(ws);
  REQUIRE(::rename(ws.c_str(), (temp / "gone").c_str()) == 0);
  CHECK(opened(rules, "", ws) == not_existing + ws);
  CHECK(opened(rules, "sub", ws) == not_existing + ws + "/sub");
  support::make_symlink("/usr", ws);
  CHECK(opened(rules, "", ws) == not_allowed + "/usr");
  CHECK(opened(rules, "bin", ws).compare(0, not_allowed.size(), not_allowed) == 0);
  ::unlink(ws.c_str());
  temp.directory("ws");
  CHECK(opened(rules, "", ws) == "ok " + ws);
}

TEST_CASE("a directory swapped for a link while it is opened never leads out of the roots") {
  TempDir temp;
  const std::string ws = temp.directory("ws");
  temp.directory("ws/g/sub");
  temp.directory("outside/sub");
  support::make_symlink("../outside", temp / "ws/link");
  const Identity inside_g = identity(ws + "/g");
  const Identity inside_sub = identity(ws + "/g/sub");
  const PathRules rules = rules_for(ws);

  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    const std::string g = ws + "/g";
    const std::string link = ws + "/link";
    const std::string aside = ws + "/aside";
    while (!stop.load()) {
      // g is the directory, nothing, the link, nothing, the directory, ...
      ::rename(g.c_str(), aside.c_str());
      ::rename(link.c_str(), g.c_str());
      ::rename(g.c_str(), link.c_str());
      ::rename(aside.c_str(), g.c_str());
    }
  });
  int entered = 0;
  int refused = 0;
  int escaped = 0;
  for (int i = 0; i < 400000 && (i < 20000 || entered < 1000 || refused < 1000); ++i) {
    const bool below = i % 2 == 1;
    auto directory = rules.open_work_dir(below ? "g/sub" : "g", ws);
    if (!directory) {
      ++refused;
      continue;
    }
    ++entered;
    if (!(identity(directory->fd.get()) == (below ? inside_sub : inside_g))) ++escaped;
    if (!codeexec::is_within(directory->path, ws)) ++escaped;
  }
  stop.store(true);
  swapper.join();
  CHECK(escaped == 0);
  CHECK(entered >= 1000);
  CHECK(refused >= 1000);
}

TEST_CASE("one set of rules serves many threads") {
  TempDir temp;
  temp.directory("ws/sub");
  const std::string ws = temp / "ws";
  const PathRules rules = rules_for(ws);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (opened(rules, "sub", ws) != "ok " + ws + "/sub") ++wrong;
        if (opened(rules, "..", ws) != not_allowed + temp.path()) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("deepest_root tells the root that decides, and none outside of all") {
  TempDir temp;
  temp.directory("ws/ro");
  const std::string ws = temp / "ws";
  const PathRules rules = rules_for({{ws, Permission::write}, {ws + "/ro", Permission::read}});
  REQUIRE(rules.deepest_root(ws + "/ro/x"));
  CHECK(rules.deepest_root(ws + "/ro/x")->path == ws + "/ro");
  CHECK(rules.deepest_root(ws + "/ro2")->path == ws);
  CHECK(rules.deepest_root(ws)->path == ws);
  CHECK(rules.deepest_root(temp.path()) == nullptr);
  CHECK(rules.deepest_root(ws + "/ro/../x") == nullptr);
  CHECK(rules_for(std::vector<codeexec::Root>{}).deepest_root("/") == nullptr);
}

TEST_CASE("a bad read-only root is an error that names read_only") {
  TempDir temp;
  PathOptions options;
  options.roots = {{temp / "missing", Permission::read}};
  const auto rules = PathRules::create(options);
  REQUIRE(!rules);
  CHECK(support::begins(rules.error().message, "read_only: '" + temp / "missing'"));
}

// which files may be deleted ----------------------------------------------------------------------

namespace {

const std::string delete_hint =
    "': File must be read before deletion. Use read (including read_multimodal_files) or diff "
    "tools to view the file first.";

std::string unread(const std::string& path) { return "Cannot delete '" + path + delete_hint; }

// "" when it may be deleted, else why not.
std::string objection(const codeexec::Expected<void>& answer) {
  if (answer) return {};
  CHECK(!answer.error().message.empty());
  return answer.error().message;
}

}  // namespace

TEST_CASE("W-51: what is auto-generated is told by whole names, at the right place of the path") {
  for (const char* path : {"/ws/__pycache__",
                           "/ws/a/__pycache__/m.cpython-311.pyc",
                           "/ws/__pycache__/deep/x",
                           "/ws/.pytest_cache/v/cache",
                           "/ws/.mypy_cache/x",
                           "/ws/.ruff_cache/x",
                           "/ws/.tox/py/x",
                           "/ws/.nox/x",
                           "/ws/.next/server/app.js",
                           "/ws/.nuxt/x",
                           "/ws/node_modules",
                           "/ws/node_modules/a/dist/index.js",
                           "/ws/p/node_modules/a.c",
                           "/ws/dist",
                           "/ws/p/build",
                           "/ws/x.egg-info",
                           "/ws/.coverage",
                           "/ws/.DS_Store",
                           "/ws/p/Thumbs.db",
                           "/ws/a.pyc",
                           "/ws/a.pyo",
                           "/ws/a.log",
                           "/ws/.a.swp",
                           "/ws/.a.swo",
                           "/ws/a.c~",
                           "/ws/.log"}) {
    CAPTURE(path);
    CHECK(is_auto_generated(path));
    CHECK(is_auto_generated(path, "/ws"));
  }
  for (const char* path : {"/ws/build/src/main.c",
                           "/ws/dist/x.js",
                           "/ws/x.egg-info/PKG-INFO",
                           "/ws/foo.coverage",
                           "/ws/x.next",
                           "/ws/x.next/y",
                           "/ws/my__pycache__",
                           "/ws/node_modules2/x",
                           "/ws/xnode_modules",
                           "/ws/.coverage/x",
                           "/ws/a.pyc/x",
                           "/ws/a.log/x",
                           "/ws/a~/x",
                           "/ws/builds",
                           "/ws/rebuild",
                           "/ws/a.pycx",
                           "/ws/DS_Store",
                           "/ws/a.swpx",
                           "/ws/pyc",
                           "/ws/log",
                           "/ws",
                           "/",
                           "",
                           "/ws/thumbs.db"}) {
    CAPTURE(path);
    CHECK_FALSE(is_auto_generated(path));
    CHECK_FALSE(is_auto_generated(path, "/ws"));
  }
  // Names above the root do not count, nor does the root's own.
  CHECK(is_auto_generated("/x/node_modules/ws/a.c"));
  CHECK_FALSE(is_auto_generated("/x/node_modules/ws/a.c", "/x/node_modules/ws"));
  CHECK_FALSE(is_auto_generated("/x/node_modules/a.c", "/x/node_modules"));
  CHECK(is_auto_generated("/x/node_modules/ws/node_modules/a.c", "/x/node_modules/ws"));
  CHECK_FALSE(is_auto_generated("/x/build", "/x/build"));
  CHECK(is_auto_generated("/x/node_modules/a.c", "/y"));
  CHECK(is_auto_generated("/x/node_modules/a.c", "/x/node"));
}

TEST_CASE("the delete guard: a file may go when it was read or made, with the reference's texts") {
  TempDir temp;
  const std::string a = temp.file("a.txt", "a");
  const std::string b = temp.file("b.txt", "b");
  const std::string c = temp.file("c.txt", "c");
  const std::string d = temp.file("d.txt", "d");
  const DeleteGuard guard;
  for (const std::string& file : {a, b, c})
    CHECK(objection(guard.can_delete(file)) == unread(file));
  CHECK(guard.can_delete(a).error().code == ErrorCode::permission_denied);
  CHECK(objection(guard.can_delete(temp / "missing")) == "");

  guard.mark_read(a);
  guard.mark_created(b);
  CHECK(objection(guard.can_delete(a)) == "");
  CHECK(objection(guard.can_delete(b)) == "");
  CHECK(objection(guard.can_delete(c)) == unread(c));
  CHECK(objection(guard.can_delete_files({a, b, c})) == unread(c));
  CHECK(objection(guard.can_delete_files({a, b})) == "");
  CHECK(objection(guard.can_delete_files({})) == "");
  const std::string several =
      " unread file(s). Examples: " + c + ", " + d +
      ". Please read files before deletion using Read or read_multimodal_files.";
  CHECK(objection(guard.can_delete_files({d, a, c})) == "Cannot delete 2" + several);
  const DeleteGuard nobody;
  CHECK(objection(nobody.can_delete_files({d, c, b, a})) ==
        "Cannot delete 4 unread file(s). Examples: " + a + ", " + b + ", " + c +
            " (and 1 more). Please read files before deletion using Read or "
            "read_multimodal_files.");

  auto stats = guard.stats();
  CHECK(stats.read_files == 1);
  CHECK(stats.created_files == 1);
  CHECK(stats.total_tracked == 2);
  guard.mark_created(a);
  guard.mark_read(a);
  guard.mark_read(b);
  stats = guard.stats();
  CHECK(stats.read_files == 0);
  CHECK(stats.created_files == 2);
  CHECK(stats.total_tracked == 2);
  // Copies share what they know.
  const DeleteGuard copy = guard;
  copy.clear();
  CHECK(guard.stats().total_tracked == 0);
  CHECK(guard.stats().created_files == 0);
  CHECK(objection(guard.can_delete(a)) == unread(a));
}

TEST_CASE("the delete guard: files are known by what they are, links are deleted as links") {
  TempDir temp;
  const std::string file = temp.file("d/file", "x");
  support::make_symlink("d/file", temp / "link");
  support::make_symlink("d", temp / "dir");
  support::make_symlink("nowhere", temp / "dangling");
  REQUIRE(::mkfifo((temp / "fifo").c_str(), 0600) == 0);
  const DeleteGuard guard;
  for (const char* name : {"link", "dangling", "dir", "fifo"})
    CHECK(objection(guard.can_delete(temp / name)) == "");
  CHECK(objection(guard.can_delete(temp / "dir/file")) == unread(file));
  CHECK(objection(guard.can_delete(temp / "d/./../d//file")) == unread(file));
  CHECK(objection(guard.can_delete_directory(temp / "dir")) == "");
  guard.mark_read(temp / "link");
  CHECK(objection(guard.can_delete(temp / "dir/file")) == "");
  CHECK(guard.stats().total_tracked == 1);
  // Hostile names stay one line.
  const std::string odd = temp.file("a\nb\x1b", "x");
  CHECK(objection(guard.can_delete(odd)) == unread(temp / "a\\x0ab\\x1b"));
  CHECK(!guard.can_delete(std::string("/a\0b", 4)));
  CHECK(!guard.can_delete(""));
}

TEST_CASE("W-51: the delete guard asks for every file but the auto-generated ones") {
  TempDir temp;
  const std::string ws = temp.directory("node_modules/build/ws");
  const DeleteGuard guard({ws});
  for (const char* name : {"main.c", "build/src/main.c", "foo.coverage", "x.next", "build2"})
    CHECK(objection(guard.can_delete(temp.file("node_modules/build/ws/" + std::string(name)))) ==
          unread(ws + "/" + name));
  for (const char* name : {"a.pyc", "node_modules/x.js", ".coverage", "a.log", "build/a.log"})
    CHECK(objection(guard.can_delete(temp.file("node_modules/build/ws/" + std::string(name)))) ==
          "");
  // A file is not what is said of directories, nor the other way round.
  CHECK(objection(guard.can_delete(temp.file("node_modules/build/ws/dist"))) ==
        unread(ws + "/dist"));
  temp.file("node_modules/build/ws/old.log/notes");
  CHECK(objection(guard.can_delete_directory(ws + "/old.log")) != "");
  // Outside of the roots all names count.
  CHECK(objection(guard.can_delete(temp.file("node_modules/other.c"))) == "");
}

TEST_CASE("the delete guard: a directory may go when each file in it may") {
  TempDir temp;
  const std::string top = temp.directory("top");
  const DeleteGuard guard({temp.path()});
  CHECK(objection(guard.can_delete_directory(top)) == "");
  CHECK(objection(guard.can_delete_directory(temp / "missing")) == "");
  const std::string b = temp.file("top/sub/b");
  const auto refused = [&](const std::string& rest) {
    return "Cannot delete directory '" + top + "': Contains " + rest +
           ". Please read files before deletion.";
  };
  CHECK(objection(guard.can_delete_directory(top)) == refused("1 unread file(s). Examples: sub/b"));
  CHECK(guard.can_delete_directory(top).error().code == ErrorCode::permission_denied);
  guard.mark_read(b);
  CHECK(objection(guard.can_delete_directory(top)) == "");
  for (const char* name : {"top/e", "top/sub/deep/c", "top/a", "top/z/d", "top/sub/b2"})
    temp.file(name);
  CHECK(objection(guard.can_delete_directory(top)) ==
        refused("5 unread file(s). Examples: a, e, sub/b2 (and 2 more)"));
  // Generated trees and files do not count; `build` inside of what goes does, link targets do not.
  TempDir other;
  other.file("precious");
  temp.file("all/node_modules/x/y.js");
  temp.file("all/p/__pycache__/m.pyc");
  temp.file("all/a.log");
  support::make_symlink(other.path(), temp / "all/link");
  CHECK(objection(guard.can_delete_directory(temp / "all")) == "");
  temp.file("all/build/main.c");
  CHECK(support::has(objection(guard.can_delete_directory(temp / "all")), "build/main.c"));
  CHECK(objection(guard.can_delete_directory(temp / "all/build")) == "");
  CHECK(objection(guard.can_delete_directory(temp / "all/node_modules/x")) == "");
}

TEST_CASE("the delete guard: a directory that cannot be looked into does not go") {
  const bool holds = true_as_ordinary_user([] {
    TempDir temp;
    temp.directory("top/closed");
    if (::chmod((temp / "top/closed").c_str(), 0) != 0) return false;
    const auto answer = DeleteGuard().can_delete_directory(temp / "top");
    return !answer && support::has(answer.error().message, "Permission denied");
  });
  CHECK(holds);
}

TEST_CASE("the delete guard: a directory of too many entries does not go") {
  TempDir temp;
  support::fill_directory(temp.directory("top"), DeleteGuard::max_entries, ".log");
  const DeleteGuard guard;
  CHECK(objection(guard.can_delete_directory(temp / "top")) == "");
  temp.file("top/one.log");
  const auto answer = guard.can_delete_directory(temp / "top");
  CHECK(objection(answer) == "Cannot delete directory '" + (temp / "top") +
                                 "': there are more than 100000 entries, too many to be checked");
  CHECK(answer.error().code == ErrorCode::limit);
}

TEST_CASE("the delete guard: a directory of too many bytes of names does not go") {
  TempDir temp;
  std::string name = "top";
  while (name.size() < 3700) name += "/" + std::string(240, 'x');
  support::fill_directory(temp.directory(name), DeleteGuard::max_entry_bytes / name.size() + 1,
                          ".log");
  const auto answer = DeleteGuard().can_delete_directory(temp / "top");
  REQUIRE(!answer);
  CHECK(answer.error().code == ErrorCode::limit);
}

TEST_CASE("the delete guard forgets the oldest files beyond its bounds") {
  TempDir temp;
  const std::string first = temp.file("first");
  const std::string second = temp.file("second");
  const DeleteGuard guard;
  guard.mark_created(first);
  guard.mark_read(second);
  for (std::size_t i = 0; i + 2 < DeleteGuard::max_files; ++i)
    guard.mark_read("/nonexistent/" + std::to_string(i));
  CHECK(objection(guard.can_delete(first)) == "");
  CHECK(guard.stats().total_tracked == DeleteGuard::max_files);
  guard.mark_read("/nonexistent/more");
  CHECK(objection(guard.can_delete(first)) == unread(first));
  CHECK(objection(guard.can_delete(second)) == "");
  CHECK(guard.stats().total_tracked == DeleteGuard::max_files);
  CHECK(guard.stats().created_files == 0);

  const DeleteGuard of_long_paths;
  of_long_paths.mark_read(first);
  std::string longest;
  while (longest.size() < 3900) longest += "/" + std::string(250, 'x');
  const std::size_t fit = DeleteGuard::max_path_bytes / (longest.size() + 6);
  for (std::size_t i = 0; i < fit + 10; ++i)
    of_long_paths.mark_read(longest + "/" + std::to_string(10000 + i));
  CHECK(of_long_paths.stats().total_tracked <= fit);
  CHECK(of_long_paths.stats().total_tracked + 2 > fit);
  CHECK(objection(of_long_paths.can_delete(first)) == unread(first));
}

TEST_CASE("one delete guard serves many threads") {
  TempDir temp;
  const DeleteGuard guard;
  std::vector<std::string> files;
  for (int i = 0; i < 200; ++i) files.push_back(temp.file("f" + std::to_string(i)));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < files.size(); i += 8) {
        if (guard.can_delete(files[i])) ++wrong;
        guard.mark_read(files[i]);
        if (!guard.can_delete(files[i])) ++wrong;
        if (guard.stats().total_tracked == 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(guard.can_delete_directory(temp.path()));
}
