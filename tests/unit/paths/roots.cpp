// Roots, and opening a work_dir within them.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::ErrorCode;
using codeexec::PathRules;
using codeexec::Permission;
using support::has;
using support::opened;
using support::TempDir;
using support::true_as_ordinary_user;

namespace {

const std::string not_allowed = "Path validation error: Path not in allowed directories: ";

const std::string not_existing = "Working directory does not exist: ";

const std::string not_directory = "Working directory is not a directory: ";

PathRules rules_for(const std::vector<codeexec::Root>& roots) {
  auto rules = PathRules::create(roots);
  REQUIRE_MESSAGE(rules, rules.error().message);
  return *rules;
}

PathRules rules_for(const std::string& root) { return rules_for({{root, Permission::write}}); }

std::string creation_error(const std::string& root) {
  auto rules = PathRules::create({{root, Permission::write}});
  return rules ? "" : rules.error().message;
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

}  // namespace

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
  CHECK(has(creation_error("~"), "/~': No such file or directory"));
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
  auto rules =
      PathRules::create({{temp / "ws", Permission::write}, {temp / "link", Permission::read}});
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
  CHECK(has(opened(rules, std::string(300, 'n'), ws), "File name too long"));
  const std::string huge = opened(rules, std::string(5000000, 'n'), ws);
  CHECK(has(huge, "File name too long"));
  CHECK(huge.size() < 400);
  CHECK(has(opened(rules, std::string(4000, 'n') + std::string(4000, '/'), ws), "too long"));
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
  CHECK(identity(directory->get()) == identity(ws));
  CHECK((::fcntl(directory->get(), F_GETFD) & FD_CLOEXEC) != 0);

  // Its name may come to mean something else: what was judged is what is entered.
  REQUIRE(::rename(ws.c_str(), (temp / "moved").c_str()) == 0);
  support::make_symlink("/", ws);
  const support::DirectoryGuard back(temp.path());
  REQUIRE(::fchdir(directory->get()) == 0);
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
    return directory && directory->get() > 2 && !support::descriptor_is_open(0) &&
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
    std::string path;
    auto directory = rules.open_work_dir(below ? "g/sub" : "g", ws, &path);
    if (!directory) {
      ++refused;
      continue;
    }
    ++entered;
    if (!(identity(directory->get()) == (below ? inside_sub : inside_g))) ++escaped;
    if (!codeexec::is_within(path, ws)) ++escaped;
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
  const auto rules = PathRules::create({{temp / "missing", Permission::read}});
  REQUIRE(!rules);
  CHECK(support::begins(rules.error().message, "read_only: '" + temp / "missing'"));
}
