// Listing directories.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/time.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Files;
using support::files_in;
using support::has;
using support::problem;
using support::shape;
using support::TempDir;

TEST_CASE("a directory is listed as deep as is asked for, in the order of paths") {
  TempDir temp;
  temp.file("b/two", "22");
  temp.file("b/deep/three", "333");
  temp.file("b-file", "1");
  temp.file(".hidden", "");
  temp.directory("a");
  temp.file("elsewhere/x", "");
  support::make_symlink("elsewhere", temp / "link");
  support::make_symlink("nowhere", temp / "dangling");
  const Files files = files_in(temp.path());
  CHECK(shape(files.list(".")) ==
        "f .hidden 0, d a, d b, f b-file 1, l dangling, d elsewhere, l link");
  CHECK(shape(files.list(temp.path(), 2)) ==
        "f .hidden 0, d a, d b, f b-file 1, d b/deep, f b/two 2, l dangling, d elsewhere, "
        "f elsewhere/x 0, l link");
  CHECK(has(shape(files.list(".", 3)), "f b/deep/three 3"));
  CHECK(shape(files.list("link")) == "f x 0");
  CHECK(files.list("link")->path == temp / "elsewhere");
  CHECK(shape(files.list("a/")) == "");
  CHECK(shape(files.list("b", ~std::size_t{0})) == "d deep, f deep/three 3, f two 2");
  CHECK(problem(files.list(".", 0)) == "invalid_argument: depth: must be at least 1");
  CHECK(problem(files.list("b-file")) ==
        "invalid_argument: '" + temp / "b-file" + "': is no directory");
}

TEST_CASE("times are told in UTC, also strange ones") {
  TempDir temp;
  const std::string path = temp.file("f", "x");
  const Files files = files_in(temp.path());
  const auto modified = [&](time_t seconds) {
    const timeval times[2] = {{seconds, 0}, {seconds, 0}};
    if (::utimes(path.c_str(), times) != 0) support::fail("utimes", path);
    const auto list = files.list(".");
    return list && list->entries.size() == 1 ? list->entries[0].modified : problem(list);
  };
  CHECK(modified(0) == "1970-01-01T00:00:00Z");
  CHECK(modified(1700000000) == "2023-11-14T22:13:20Z");
  CHECK(modified(-86400) == "1969-12-31T00:00:00Z");
}

TEST_CASE("directories that tools fill are told and not looked into") {
  TempDir temp;
  for (const std::string name : {".git", ".hg", ".svn", "node_modules", "__pycache__", "src"})
    temp.file(name + "/sub/file", "x");
  temp.file("src/node_modules/file", "x");
  const Files files = files_in(temp.path());
  CHECK(shape(files.list(".", 3)) ==
        "d .git closed, d .hg closed, d .svn closed, d __pycache__ closed, d node_modules closed, "
        "d src, d src/node_modules closed, d src/sub, f src/sub/file 1");
  // Where `depth` ends anyway they are like others, and by name they are looked into.
  CHECK(shape(files.list(".")) == "d .git, d .hg, d .svn, d __pycache__, d node_modules, d src");
  CHECK(shape(files.list("node_modules", 2)) == "d sub, f sub/file 1");
}

TEST_CASE("a list is bounded, and the upper levels come first") {
  TempDir temp;
  const std::size_t most = Files::max_entries;
  const auto name = [](std::size_t i) { return "f" + std::to_string(100000 + i); };
  for (std::size_t i = 0; i < most + 50; ++i) temp.file("many/" + name(most + 49 - i), "");
  temp.file("many/a/inner", "");
  temp.file("zz", "");
  const Files files = files_in(temp.path());
  const auto many = files.list("many", 9);
  REQUIRE(many);
  REQUIRE(many->entries.size() == most);
  CHECK(many->more);
  CHECK(many->entries[0].path == "a");
  for (std::size_t i = 1; i < most; ++i) REQUIRE(many->entries[i].path == name(i - 1));
  const auto all = files.list(".", 2);
  REQUIRE(all);
  REQUIRE(all->entries.size() == most);
  CHECK(all->more);
  CHECK(all->entries.front().path == "many");
  CHECK(all->entries.back().path == "zz");

  for (std::size_t i = most - 1; i < most + 50; ++i) ::unlink((temp / "many/" + name(i)).c_str());
  const auto exact = files.list("many", 1);
  REQUIRE(exact);
  CHECK(exact->entries.size() == most);
  CHECK_FALSE(exact->more);
  CHECK(files.list("many", 2)->more);

  temp.directory("top/p");
  temp.file("top/q/r/file", "");
  if (::rename((temp / "many").c_str(), (temp / "top/p/many").c_str()) != 0)
    support::fail("rename", "many");
  const auto levels = files.list("top", 3);
  REQUIRE(levels);
  REQUIRE(levels->entries.size() == most);
  CHECK(levels->more);
  CHECK(levels->entries.back().path == "q/r");
}
