// Canonical paths.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::ErrorCode;
using codeexec::PathRules;
using codeexec::Permission;
using support::has;
using support::opened;
using support::TempDir;

namespace {

std::string canonical(std::string_view path, std::string_view base = {}) {
  auto result = codeexec::canonical_path(path, base);
  return result ? *result : "error: " + result.error().message;
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
  CHECK(has(canonical(temp / "loop"), "loop': Too many levels of symbolic links"));
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
  CHECK(has(canonical(temp / "l41"), "Too many levels of symbolic links"));
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
  CHECK(has(canonical(temp / "three"), "File name too long"));
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
