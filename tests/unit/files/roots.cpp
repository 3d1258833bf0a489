// No path leads out of the roots, whatever is exchanged meanwhile.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Files;
using codeexec::Permission;
using support::files_in;
using support::files_with;
using support::has;
using support::names_in;
using support::problem;
using support::shape;
using support::TempDir;
using support::text_of;

TEST_CASE("no path leads out of the roots") {
  TempDir temp;
  const std::string ws = temp.directory("ws");
  temp.file("outside/secret", "secret");
  temp.file("ws2/secret", "secret");
  temp.file("ws/in/file", "inside");
  support::make_symlink("../outside", ws + "/rel");
  support::make_symlink(temp / "outside", ws + "/abs");
  support::make_symlink("rel", ws + "/chain");
  support::make_symlink("../outside/secret", ws + "/file");
  support::make_symlink("../outside/new", ws + "/dangling");
  support::make_symlink("in", ws + "/within");
  support::make_symlink("in/file", ws + "/file-within");
  const Files files = files_in(ws);
  const auto denied = [](const std::string& path) {
    return "permission_denied: '" + path + "': not in the allowed directories (allowed_paths)";
  };
  const std::string secret = temp / "outside/secret";
  for (const std::string& path :
       {secret, std::string("../outside/secret"), std::string("in/../../outside/secret"),
        std::string("nope/../../outside/secret"), std::string("rel/secret"),
        std::string("abs/secret"), std::string("chain/secret"), std::string("file"),
        ws + "/../outside/secret", std::string("./rel/./secret")}) {
    CAPTURE(path);
    CHECK(problem(files.read(path)) == denied(secret));
    CHECK(problem(files.write(path, "x")) == denied(secret));
  }
  CHECK(problem(files.read("../ws2/secret")) == denied(temp / "ws2/secret"));
  CHECK(problem(files.read("/etc/evil")) == denied("/etc/evil"));
  CHECK(problem(files.read("/etc/passwd")) == denied("/etc/passwd"));
  CHECK(problem(files.write("dangling", "x")) == denied(temp / "outside/new"));
  CHECK(problem(files.write("rel/deep/er", "x")) == denied(temp / "outside/deep/er"));
  CHECK(problem(files.list("..")) == denied(temp.path()));
  CHECK(problem(files.list("rel")) == denied(temp / "outside"));
  CHECK(problem(files.list("/")) == denied("/"));
  CHECK(names_in(temp / "outside") == std::vector<std::string>{"secret"});
  CHECK(support::read_file(secret) == "secret");

  CHECK(text_of(files.read("within/file")) == "inside");
  CHECK(text_of(files.read("file-within")) == "inside");
  CHECK(text_of(files.read("in/../in/./file")) == "inside");
  CHECK(text_of(files.read(ws + "/in//file")) == "inside");
}

TEST_CASE("a root that may be read is not changed, and one that is closed is not read") {
  TempDir temp;
  temp.file("ws/ro/file", "old");
  temp.file("ws/none/file", "old");
  temp.file("ws/none/open/file", "open");
  const std::string ws = temp / "ws";
  const Files files = files_with({{ws, Permission::write},
                                  {ws + "/ro", Permission::read},
                                  {ws + "/none", Permission::none},
                                  {ws + "/none/open", Permission::write}},
                                 ws);
  const std::string read_only = "may be read and not changed (read_only)";
  const std::string denied = "not in the allowed directories (allowed_paths)";
  CHECK(text_of(files.read("ro/file")) == "old");
  for (const std::string name : {"ro/file", "ro/new", "ro/deep/new"})
    CHECK(problem(files.write(name, "x")) ==
          "permission_denied: '" + ws + "/" + name + "': " + read_only);
  CHECK(names_in(ws + "/ro") == std::vector<std::string>{"file"});
  CHECK(problem(files.read("none/file")) == "permission_denied: '" + ws + "/none/file': " + denied);
  CHECK(problem(files.write("none/new", "x")) ==
        "permission_denied: '" + ws + "/none/new': " + denied);
  CHECK(problem(files.list("none")) == "permission_denied: '" + ws + "/none': " + denied);
  CHECK(text_of(files.read("none/open/file")) == "open");
  CHECK(files.write("none/open/file", "new"));
  CHECK(shape(files.list(".", 3)) == "d none closed, d ro, f ro/file 3, more");
  CHECK(shape(files.list("none/open")) == "f file 3");
}

TEST_CASE("a root that has gone is not made again in a directory that does not belong to it") {
  TempDir temp;
  const std::string ws = temp.directory("a/ws");
  const Files files = files_in(ws);
  support::remove_all(ws);
  CHECK(has(problem(files.write(ws, "x")), "permission_denied: '" + temp / "a" + "': not in"));
  CHECK(has(problem(files.write("file", "x")), "permission_denied: '" + temp / "a" + "': not in"));
  support::remove_all(temp / "a");
  CHECK(has(problem(files.write("file", "x")), "permission_denied: '" + temp.path() + "': not in"));
  CHECK(names_in(temp.path()).empty());
  CHECK(has(problem(files.read("file")), "not_found"));
}

TEST_CASE("paths that name no file are errors") {
  TempDir temp;
  temp.file("file", "x");
  const Files files = files_in(temp.path());
  const std::string nul("a\0b", 3);
  CHECK(problem(files.read("")) == "invalid_argument: the path is empty");
  CHECK(problem(files.write("", "x")) == "invalid_argument: the path is empty");
  CHECK(problem(files.list("")) == "invalid_argument: the path is empty");
  CHECK(problem(files.read(nul)) == "invalid_argument: 'a\\x00b': has a NUL byte");
  CHECK(problem(files.write(nul, "x")) == "invalid_argument: 'a\\x00b': has a NUL byte");
  for (const std::string path : {"file/", "file/.", "new/", "new/.", ".", "new/sub/.."}) {
    CAPTURE(path);
    CHECK(has(problem(files.read(path)), "is a directory, no regular file"));
    CHECK(has(problem(files.write(path, "y")), "is a directory, no regular file"));
  }
  CHECK(has(problem(files.read("file/below")), "not_found"));
  CHECK(has(problem(files.write("file/below", "x")), "not_found: '" + temp / "file"));
  CHECK(has(problem(files.write("file/below/deep", "x")), "Not a directory"));
  CHECK(has(problem(files.read(std::string(300, 'n'))), "limit"));
  CHECK(has(problem(files.write(std::string(300, 'n'), "x")), "limit"));
  CHECK(has(problem(files.write(std::string(5000, 'n'), "x")), "limit"));
  CHECK(names_in(temp.path()) == std::vector<std::string>{"file"});
  CHECK(support::read_file(temp / "file") == "x");
}

TEST_CASE("W-54: a path is never a command line") {
  TempDir temp;
  const Files files = files_in(temp.path());
  std::vector<std::string> written;
  for (const std::string name :
       {"x; echo INJECTED", "$(touch pwned)", "`touch pwned`", "a && touch pwned", "a\ntouch pwned",
        "' \" \\", "-rf", "~", "*", "a|b", "${HOME}", "> pwned"}) {
    CAPTURE(name);
    CHECK(problem(files.read(name)) == "not_found: " + [&] {
      std::string shown = temp / name;
      const std::size_t line = shown.find('\n');
      if (line != std::string::npos) shown.replace(line, 1, "\\x0a");
      return "'" + shown + "': No such file or directory";
    }());
    const auto path = files.write(name, name);
    REQUIRE(path);
    CHECK(*path == temp / name);
    CHECK(text_of(files.read(name)) == name);
    written.push_back(name);
  }
  std::sort(written.begin(), written.end());
  CHECK(names_in(temp.path()) == written);
  const auto list = files.list(".");
  REQUIRE(list);
  REQUIRE(list->entries.size() == written.size());
  for (std::size_t i = 0; i < written.size(); ++i) CHECK(list->entries[i].path == written[i]);
}

TEST_CASE("a directory exchanged for a link meanwhile never leads out") {
  TempDir temp;
  const std::string ws = temp.directory("ws");
  temp.file("ws/g/file", "inside");
  temp.file("ws/plain", "inside");
  temp.file("outside/file", "outside");
  temp.file("outside/only-outside", "outside");
  support::make_symlink("../outside", ws + "/link");
  support::make_symlink("../outside/file", ws + "/file-link");
  const Files files = files_in(ws);

  std::atomic<bool> stop{false};
  const auto swap_for_ever = [&](const std::string& real, const std::string& link) {
    const std::string aside = real + "-aside";
    while (!stop.load()) {
#if defined(__linux__) && defined(SYS_renameat2)
      constexpr unsigned exchange = 2;  // RENAME_EXCHANGE: there is always one of the two
      if (::syscall(SYS_renameat2, AT_FDCWD, real.c_str(), AT_FDCWD, link.c_str(), exchange) == 0)
        continue;
#endif
      ::rename(real.c_str(), aside.c_str());
      ::rename(link.c_str(), real.c_str());
      ::rename(real.c_str(), link.c_str());
      ::rename(aside.c_str(), real.c_str());
    }
  };
  std::thread directories([&] { swap_for_ever(ws + "/g", ws + "/link"); });
  std::thread plain_files([&] { swap_for_ever(ws + "/plain", ws + "/file-link"); });
  int worked = 0;
  int refused = 0;
  int escaped = 0;
  for (int i = 0; i < 200000 && (i < 30000 || worked < 500 || refused < 500); ++i) {
    bool ok = false;
    // A write waits for the disk, so there are fewer of them.
    if (i % 100 == 99) {
      ok = bool(files.write(i % 200 == 99 ? "g/file" : "g/new/file", "inside"));
    } else if (i % 3 == 0) {
      const auto content = files.read("g/file");
      ok = bool(content);
      if (ok && content->bytes == "outside") ++escaped;
    } else if (i % 3 == 1) {
      const auto content = files.read("plain");
      ok = bool(content);
      if (ok && content->bytes != "inside") ++escaped;
    } else {
      const auto list = files.list("g");
      ok = bool(list);
      if (ok && has(shape(list), "only-outside")) ++escaped;
    }
    ++(ok ? worked : refused);
  }
  stop.store(true);
  directories.join();
  plain_files.join();
  CHECK(escaped == 0);
  CHECK(worked >= 500);
  CHECK(refused >= 500);
  CHECK(names_in(temp / "outside") == std::vector<std::string>{"file", "only-outside"});
  CHECK(support::read_file(temp / "outside/file") == "outside");
}

TEST_CASE("a directory exchanged for a link while it is made never leads out") {
  TempDir temp;
  const std::string ws = temp.directory("ws");
  temp.directory("outside");
  temp.directory("aside");
  const Files files = files_in(ws);
  std::atomic<bool> stop{false};
  std::thread swapper([&] {
    const std::string made = ws + "/made";
    for (int i = 0; !stop.load(); ++i) {
      if (::rename(made.c_str(), (temp / "aside" + "/" + std::to_string(i)).c_str()) != 0) continue;
      if (::symlink("../outside", made.c_str()) == 0) ::unlink(made.c_str());
    }
  });
  for (int i = 0; i < 400; ++i) (void)files.write("made/deep/file", "x");
  stop.store(true);
  swapper.join();
  CHECK(names_in(temp / "outside").empty());
}
