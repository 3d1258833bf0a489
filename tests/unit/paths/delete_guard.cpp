// Which files may be deleted.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::DeleteGuard;
using codeexec::ErrorCode;
using codeexec::is_auto_generated;
using support::TempDir;
using support::true_as_ordinary_user;

namespace {

const std::string delete_hint =
    "': File must be read before deletion. View it with read_file, cat or diff first.";

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
  const std::string several = " unread file(s). Examples: " + c + ", " + d +
                              ". Please read files before deletion, with read_file or cat.";
  CHECK(objection(guard.can_delete_files({d, a, c})) == "Cannot delete 2" + several);
  const DeleteGuard nobody;
  CHECK(objection(nobody.can_delete_files({d, c, b, a})) ==
        "Cannot delete 4 unread file(s). Examples: " + a + ", " + b + ", " + c +
            " (and 1 more). Please read files before deletion, with read_file or cat.");

  CHECK(guard.read_files() == 1);
  CHECK(guard.created_files() == 1);
  guard.mark_created(a);
  guard.mark_read(a);
  guard.mark_read(b);
  CHECK(guard.read_files() == 0);
  CHECK(guard.created_files() == 2);
  // Copies share what they know.
  const DeleteGuard copy = guard;
  copy.clear();
  CHECK(guard.read_files() == 0);
  CHECK(guard.created_files() == 0);
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
  CHECK(guard.read_files() == 1);
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
  CHECK(guard.read_files() + guard.created_files() == DeleteGuard::max_files);
  guard.mark_read("/nonexistent/more");
  CHECK(objection(guard.can_delete(first)) == unread(first));
  CHECK(objection(guard.can_delete(second)) == "");
  CHECK(guard.read_files() + guard.created_files() == DeleteGuard::max_files);
  CHECK(guard.created_files() == 0);

  const DeleteGuard of_long_paths;
  of_long_paths.mark_read(first);
  std::string longest;
  while (longest.size() < 3900) longest += "/" + std::string(250, 'x');
  const std::size_t fit = DeleteGuard::max_path_bytes / (longest.size() + 6);
  for (std::size_t i = 0; i < fit + 10; ++i)
    of_long_paths.mark_read(longest + "/" + std::to_string(10000 + i));
  CHECK(of_long_paths.read_files() <= fit);
  CHECK(of_long_paths.read_files() + 2 > fit);
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
        if (guard.read_files() == 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(guard.can_delete_directory(temp.path()));
}
