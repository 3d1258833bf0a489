// Hidden paths: what commands cannot read in a directory that is granted.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using support::contains;
using support::output_of;
using support::report_of;
using support::run_in;
using support::TempDir;

namespace {

// A writable directory and a readable one, with secrets in both.
struct Secrets {
  TempDir top = TempDir("/var/tmp");
  TempDir tmp = TempDir("/var/tmp");
  std::string ws = top.directory("ws");
  SandboxOptions options = support::options_for(SandboxMode::best_effort, ws);

  Secrets() {
    top.file("ws/file", "secret");
    top.file("ws/other", "other");
    top.file("ws/a/b/deep", "secret");
    top.file("ws/a/beside", "beside");
    top.file("ws/folder/in", "secret");
    top.file("read/file", "secret");
    top.file("read/folder/in", "secret");
    top.file("read/other", "other");
    options.tmp = tmp.path();
    options.readable = {top / "read"};
    for (const char* name : {"ws/file", "ws/a/b/deep", "ws/folder", "read/file", "read/folder"})
      options.hidden_paths.push_back(top / name);
  }

  Sandbox made() const {
    auto sandbox = Sandbox::create(options);
    REQUIRE_MESSAGE(sandbox, sandbox.error().message);
    return *sandbox;
  }
  // As an executor does for each command.
  std::string run(const Sandbox& sandbox, const std::string& script) const {
    CHECK(sandbox.check_grants());
    return output_of(run_in(sandbox, script, ws));
  }
};

bool can_hide() {
  if (!support::has_everything("hidden paths")) return false;
  if (::system("unshare -m true 2> /dev/null || unshare -Um true 2> /dev/null") == 0) return true;
  MESSAGE("SKIPPED: no mount namespaces here");
  return false;
}

const std::string attempt = "try() { \"$@\" 2> /dev/null && echo \"got: $*\"; };";

}  // namespace

TEST_CASE("sandbox: hidden paths cannot be read, changed, moved or linked to") {
  if (!can_hide()) return;
  for (const int kind : {0, 1, 2, 3}) {
    CAPTURE(kind);
    Secrets place;
    place.options.pid_namespace = kind == 1;
    if (kind == 2) place.options.protected_paths = {"other"};
    if (kind == 3) place.options.tmp = {};
    const Sandbox sandbox = place.made();
    CHECK(contains(sandbox.report().enforced, "hidden_paths"));
    CHECK(place.run(sandbox, attempt +
                                 "try cat file; try cat a/b/deep; try cat folder/in; try ls folder;"
                                 "try cat ../read/file; try ls ../read/folder; try cp file copy;"
                                 "try cat /proc/self/cwd/file; try chmod 777 file folder;"
                                 "try ln file hard; try mv file moved; try mv folder moved;"
                                 "try rm -f file; try rmdir folder; try sh -c 'echo x > file';"
                                 "try grep -r secret .; try touch file;"
                                 "cat other ../read/other; echo x > a/beside; cat a/beside") ==
          "otherotherx\n");
    // What lies around one keeps its name, so that it is known by its path.
    CHECK(place.run(sandbox,
                    "for from in a a/b; do perl -e 'rename $ARGV[0], \"c\"' $from; done;"
                    "ls; test -e c || echo kept") == "a\nfile\nfolder\nother\nkept\n");
    for (const char* name : {"ws/file", "ws/a/b/deep", "ws/folder/in", "read/folder/in"})
      CHECK(support::read_file(place.top / name) == "secret");
  }
}

TEST_CASE(
    "sandbox: a hidden path that is replaced, or made later, is hidden from the next command") {
  if (!can_hide()) return;
  for (const bool table : {false, true}) {
    Secrets place;
    place.options.pid_namespace = table;
    place.options.hidden_paths.push_back(place.top / "ws/later");
    place.options.hidden_paths.push_back(place.top / "ws/none/later");
    place.options.hidden_paths.push_back(place.top / "ws/way/later");
    const Sandbox sandbox = place.made();
    CHECK(contains(sandbox.report().enforced, "hidden_paths"));
    const std::string read = "cat file folder/in later 2> /dev/null; ls none";
    CHECK(place.run(sandbox, "mkdir none; " + read) == "");
    for (int i = 0; i < 3; ++i) {
      place.top.file("ws/new", "secret");
      REQUIRE(::rename((place.top / "ws/new").c_str(), (place.top / "ws/file").c_str()) == 0);
      REQUIRE(::rename((place.top / "ws/folder").c_str(),
                       (place.top / ("ws/old" + std::to_string(i))).c_str()) == 0);
      place.top.file("ws/folder/in", "secret");
      if (i == 1) place.top.file("ws/later", "secret");
      CHECK(place.run(sandbox, read) == "");
    }
    // By a link that a command has put on the way.
    CHECK(place.run(sandbox, "mkdir real; ln -s real way; ls real") == "");
    place.top.file("ws/real/later", "secret");
    CHECK(place.run(sandbox, "cat way/later real/later 2> /dev/null || echo hidden") == "hidden\n");
    // Made anew at once, a file often has the number of the one before.
    REQUIRE(::unlink((place.top / "ws/file").c_str()) == 0);
    place.top.file("ws/file", "secret");
    CHECK(place.run(sandbox, read) == "");
    CHECK(place.run(sandbox, "cat other") == "other");
  }
}

TEST_CASE("sandbox: hidden paths in writable directories within each other, and by a link") {
  if (!can_hide()) return;
  Secrets place;
  place.top.file("ws/n/inner/secret", "secret");
  REQUIRE(::symlink("n/inner/secret", (place.ws + "/link").c_str()) == 0);
  place.options.writable.push_back(place.ws + "/n/inner");
  place.options.hidden_paths = {place.ws + "/link"};
  const Sandbox sandbox = place.made();
  CHECK(place.run(sandbox,
                  "cat link n/inner/secret 2> /dev/null; "
                  "perl -e 'rename \"n/inner\", \"m\"; rename \"n\", \"m\"'; ls -d m n "
                  "2> /dev/null; echo x > n/inner/y; cat n/inner/y file") == "n\nx\nsecret");
}

TEST_CASE("sandbox: what hides no path") {
  if (!can_hide()) return;
  Secrets place;
  const auto refusal_of = [&](const std::vector<std::string>& paths) {
    place.options.hidden_paths = paths;
    const auto sandbox = Sandbox::create(place.options);
    return sandbox ? "" : sandbox.error().message;
  };
  for (const std::string& path :
       {place.ws, place.top.path(), std::string("/"), place.ws + "/a/..", place.top / "read"})
    CHECK(support::has(refusal_of({path}), "is what commands are to reach, or lies around it"));
  for (const std::string& path : {std::string(), std::string("file"), std::string("/a\0b", 4)})
    CHECK(support::has(refusal_of({path}), "is no absolute path"));
  CHECK(support::has(refusal_of(std::vector<std::string>(65, place.ws + "/file")), "more than 64"));
  CHECK(refusal_of(std::vector<std::string>(2, place.ws + "/file")) == "");
}

TEST_CASE("sandbox: where paths cannot be hidden, strict refuses and the report says why") {
  if (!can_hide()) return;
  const Secrets place;
  const std::string words = "rw=" + place.ws + " hide=" + place.ws + "/file";
  for (const char* const rules : {"namespaces=EPERM", "open_tree=EPERM", "mount=EPERM"}) {
    CAPTURE(rules);
    const auto lines = support::report_elsewhere(words, rules);
    CHECK(support::is_missing(lines, "hidden_paths"));
    CHECK_FALSE(support::has(support::enforced(lines), "hidden_paths"));
    const auto strict = support::report_elsewhere("strict " + words, rules);
    REQUIRE(strict.size() == 1);
    CHECK(support::has(strict[0], "hidden_paths: "));
  }
  if (!support::is_root("becoming another user")) return;
  if (::system("setpriv --reuid=12345 --regid=12345 --clear-groups unshare -Um true") != 0) {
    MESSAGE("SKIPPED: an ordinary user has no namespaces here");
    return;
  }
  REQUIRE(::chown(place.ws.c_str(), 12345, 12345) == 0);
  REQUIRE(::chmod(place.top.path().c_str(), 0755) == 0);
  CHECK(support::has(support::enforced(support::report_elsewhere("strict uid=12345 " + words)),
                     "hidden_paths "));
}

#else

TEST_CASE("sandbox: hidden paths") { MESSAGE("SKIPPED: there is no sandbox in this build"); }

#endif
