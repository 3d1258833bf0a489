// Writing: whole files or none, with their rights.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sched.h>
#include <sys/resource.h>
#if defined(__linux__)
#include <sys/mount.h>
#endif

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Files;
using codeexec::FileWrite;
using support::files_in;
using support::has;
using support::mode_of;
using support::names_in;
using support::problem;
using support::shape;
using support::status_of;
using support::TempDir;
using support::text_of;

namespace {

// Runs `body` without root's power over files; it returns an empty text or what went wrong.
template <class Body>
std::string as_ordinary_user(Body body) {
  return support::in_other_host([&]() -> std::string {
    if (!support::become_ordinary_user()) return "could not become an ordinary user";
    return body();
  });
}

class UmaskGuard {
 public:
  explicit UmaskGuard(mode_t mask) : old_(::umask(mask)) {}
  ~UmaskGuard() { ::umask(old_); }
  UmaskGuard(const UmaskGuard&) = delete;
  UmaskGuard& operator=(const UmaskGuard&) = delete;

 private:
  mode_t old_;
};

}  // namespace

TEST_CASE("a file is made, with its directories, or replaced as a whole") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const UmaskGuard guard(027);
  const auto path = files.write("a/b/file", "one");
  REQUIRE(path);
  CHECK(*path == temp / "a/b/file");
  CHECK(support::read_file(*path) == "one");
  CHECK(mode_of(*path) == 0640);
  CHECK(mode_of(temp / "a") == 0750);
  CHECK(mode_of(temp / "a/b") == 0750);
  CHECK(files.write(temp / "a/b/file", "2"));
  CHECK(support::read_file(*path) == "2");
  CHECK(files.write("a/b/file", ""));
  CHECK(support::read_file(*path) == "");
  CHECK(names_in(temp / "a/b") == std::vector<std::string>{"file"});

  FileWrite how;
  how.make_directories = false;
  CHECK(has(problem(files.write("c/file", "x", how)), "not_found"));
  CHECK(files.write("a/other", "x", how));
  CHECK(names_in(temp.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("a home directory is not guessed, and no folder named ~ is made") {
  const TempDir temp;
  const Files files = files_in(temp.path());
  for (const char* path : {"~/x", "~/new/x"}) {
    const auto written = files.write(path, "x");
    REQUIRE_FALSE(written);
    CHECK(written.error().code == codeexec::ErrorCode::invalid_argument);
    CHECK_MESSAGE(has(written.error().message, "give an absolute path"), written.error().message);
    CHECK_FALSE(files.read(path));
    CHECK_FALSE(files.list(path));
  }
  CHECK(names_in(temp.path()).empty());
  CHECK(files.write("./~/x", "x"));
  CHECK(files.write("~x", "x"));
}

TEST_CASE("W-54: more than an argument of a command can hold is written, and up to a bound") {
  TempDir temp;
  const Files files = files_in(temp.path());
  std::string large;
  support::Random random;
  while (large.size() < (3u << 20)) large += static_cast<char>(random.below(256));
  REQUIRE(files.write("f", large));
  CHECK(support::read_file(temp / "f") == large);
  const std::string too_large(Files::max_write + 1, 'x');
  CHECK(problem(files.write("new/f", too_large)) ==
        "limit: '" + temp / "new/f" + "': 67108865 bytes are more than 67108864");
  CHECK(problem(files.write("f", too_large)) ==
        "limit: '" + temp / "f" + "': 67108865 bytes are more than 67108864");
  CHECK(support::read_file(temp / "f") == large);
  CHECK(names_in(temp.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("rights stay with a file that is replaced, except set-id bits") {
  TempDir temp;
  const Files files = files_in(temp.path());
  for (const mode_t mode : {0600u, 0644u, 0755u, 0777u, 0640u, 04755u, 02755u, 06711u}) {
    CAPTURE(mode);
    const std::string path = temp.file("f", "old");
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    REQUIRE(files.write("f", "new"));
    CHECK(mode_of(path) == (mode & 0777));
  }
  // Somebody who can change one name of a file does not change what other names mean.
  temp.file("f", "old");
  REQUIRE(::link((temp / "f").c_str(), (temp / "other").c_str()) == 0);
  REQUIRE(files.write("f", "new"));
  CHECK(support::read_file(temp / "other") == "old");
}

TEST_CASE("W-46: what root makes belongs to the owner of the directory") {
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: only root can make files for others");
    return;
  }
  TempDir temp;
  const Files files = files_in(temp.path());
  REQUIRE(files.write("own", "x"));
  CHECK(status_of(temp / "own").st_uid == 0);
  REQUIRE(::mkdir((temp / "theirs").c_str(), 0755) == 0);
  REQUIRE(::chown((temp / "theirs").c_str(), 12345, 54321) == 0);
  REQUIRE(files.write("theirs/new/file", "x"));
  for (const char* name : {"theirs/new", "theirs/new/file"}) {
    CAPTURE(name);
    CHECK(status_of(temp / name).st_uid == 12345);
    CHECK(status_of(temp / name).st_gid == 54321);
  }
}

TEST_CASE("owner and group stay as far as they can be given") {
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: only root can give files away");
    return;
  }
  TempDir temp;
  const std::string path = temp.file("f", "old", 0664);
  REQUIRE(::chown(path.c_str(), 1234, 4321) == 0);
  const Files files = files_in(temp.path());
  REQUIRE(files.write("f", "new"));
  CHECK(status_of(path).st_uid == 1234);
  CHECK(status_of(path).st_gid == 4321);
  CHECK(mode_of(path) == 0664);

  // Somebody else may write it and cannot keep the group, whose rights are not for his own group.
  REQUIRE(::chmod(temp.path().c_str(), 0777) == 0);
  REQUIRE(::chown(path.c_str(), 1234, 4321) == 0);
  REQUIRE(::chmod(path.c_str(), 0676) == 0);
  CHECK(as_ordinary_user([&]() -> std::string { return problem(files.write("f", "newer")); }) ==
        "none");
  CHECK(support::read_file(path) == "newer");
  CHECK(status_of(path).st_uid == 65534);
  CHECK(status_of(path).st_gid == 65534);
  CHECK(mode_of(path) == 0666);
}

TEST_CASE("what the system forbids an ordinary user is told and changes nothing") {
  TempDir temp;
  REQUIRE(::chmod(temp.path().c_str(), 0777) == 0);
  temp.directory("closed");
  temp.file("closed/file", "x");
  temp.file("locked/file", "old");
  temp.file("protected", "old", 0444);
  temp.file("unreadable", "old", 0600);
  temp.file("top/seen", "x");
  temp.file("top/unlisted/file", "x");
  REQUIRE(::chmod((temp / "closed").c_str(), 0700) == 0);
  REQUIRE(::chmod((temp / "locked").c_str(), 0555) == 0);
  if (::geteuid() != 0) {
    REQUIRE(::chmod((temp / "closed").c_str(), 0) == 0);
    REQUIRE(::chmod((temp / "unreadable").c_str(), 0) == 0);
  }
  REQUIRE(::chmod((temp / "top/unlisted").c_str(), 0311) == 0);
  const Files files = files_in(temp.path());
  const std::string went_wrong = as_ordinary_user([&]() -> std::string {
    const std::string denied = ": Permission denied";
    const std::vector<std::pair<std::string, std::string>> pairs = {
        {problem(files.read("closed/file")),
         "permission_denied: '" + temp / "closed/file" + "'" + denied},
        {problem(files.read("unreadable")),
         "permission_denied: '" + temp / "unreadable" + "'" + denied},
        {problem(files.write("protected", "new")),
         "permission_denied: '" + temp / "protected" + "'" + denied},
        {problem(files.write("locked/new", "new")),
         "permission_denied: '" + temp / "locked/new" + "': a file beside it" + denied},
        {problem(files.write("locked/deep/new", "new")),
         "permission_denied: '" + temp / "locked/deep" + "'" + denied},
        {problem(files.write("closed/new", "new")),
         "permission_denied: '" + temp / "closed" + "'" + denied},
        {problem(files.list("closed")), "permission_denied: '" + temp / "closed" + "'" + denied},
        {shape(files.list("top", 2)), "f seen 1, d unlisted closed, more"},
        {shape(files.list("top", 1)), "f seen 1, d unlisted"},
        {text_of(files.read("top/unlisted/file")), "x"},
        {problem(files.write("top/unlisted/file", "y")),
         ::getuid() == 65534 ? "permission_denied: '" + temp / "top/unlisted/file" + "'" + denied
                             : problem(files.write("top/unlisted/file", "y"))}};
    for (const auto& [said, expected] : pairs)
      if (said != expected) return said + " and not " + expected;
    return "";
  });
  CHECK(went_wrong == "");
  CHECK(support::read_file(temp / "protected") == "old");
  CHECK(names_in(temp / "locked") == std::vector<std::string>{"file"});
  REQUIRE(::chmod((temp / "top/unlisted").c_str(), 0755) == 0);
}

TEST_CASE("a link at the end of a path stays, and what it leads to is replaced") {
  TempDir temp;
  temp.file("real/file", "old");
  support::make_symlink("real/file", temp / "link");
  support::make_symlink("real/new", temp / "dangling");
  const Files files = files_in(temp.path());
  const auto path = files.write("link", "new");
  REQUIRE(path);
  CHECK(*path == temp / "real/file");
  CHECK(support::read_file(temp / "real/file") == "new");
  CHECK(S_ISLNK(status_of(temp / "link").st_mode));
  const auto made = files.write("dangling", "made");
  REQUIRE(made);
  CHECK(*made == temp / "real/new");
  CHECK(S_ISLNK(status_of(temp / "dangling").st_mode));
}

TEST_CASE("only_new never replaces anything") {
  TempDir temp;
  temp.file("old", "old");
  temp.directory("dir");
  FileWrite how;
  how.only_new = true;
  const Files files = files_in(temp.path());
  CHECK(problem(files.write("old", "new", how)) ==
        "invalid_argument: '" + temp / "old" + "': exists already");
  CHECK(files.write("old", "new", how).error().system_error == EEXIST);
  CHECK(problem(files.write("dir", "new", how)) ==
        "invalid_argument: '" + temp / "dir" + "': exists already");
  CHECK(support::read_file(temp / "old") == "old");
  const UmaskGuard guard(022);
  REQUIRE(files.write("new", "new", how));
  CHECK(support::read_file(temp / "new") == "new");
  CHECK(mode_of(temp / "new") == 0644);
  CHECK(status_of(temp / "new").st_nlink == 1);
  CHECK(names_in(temp.path()) == std::vector<std::string>{"dir", "new", "old"});
}

TEST_CASE("of many that make the same new file one succeeds") {
  TempDir temp;
  const Files files = files_in(temp.path());
  FileWrite how;
  how.only_new = true;
  for (int round = 0; round < 50; ++round) {
    const std::string name = "f" + std::to_string(round);
    std::atomic<int> ready{0};
    std::atomic<int> winner{-1};
    std::atomic<int> successes{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        ++ready;
        while (ready.load() < 4) {
        }
        if (!files.write(name, std::to_string(t), how)) return;
        winner = t;
        ++successes;
      });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(successes == 1);
    REQUIRE(support::read_file(temp / name) == std::to_string(winner));
  }
  CHECK(names_in(temp.path()).size() == 50);
}

TEST_CASE("a reader sees the old bytes or the new ones and never a part") {
  TempDir temp;
  const std::string a(300000, 'a');
  const std::string b(200000, 'b');
  temp.file("f", a);
  const Files files = files_in(temp.path());
  std::atomic<bool> stop{false};
  std::atomic<int> writes{0};
  std::thread writer([&] {
    while (!stop.load())
      if (files.write("f", ++writes % 2 == 0 ? a : b)) continue;
  });
  int wrong = 0;
  for (int i = 0; i < 20000 && (i < 300 || writes.load() < 50); ++i) {
    const std::string seen = support::read_file(temp / "f");
    if (seen != a && seen != b) ++wrong;
  }
  stop.store(true);
  writer.join();
  CHECK(wrong == 0);
  CHECK(writes.load() >= 50);
  CHECK(names_in(temp.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("the host's limit for the size of files is an error and not a signal") {
  TempDir temp;
  temp.file("f", "old");
  const Files files = files_in(temp.path());
  const std::string went_wrong = support::in_other_host([&]() -> std::string {
    const rlimit limit = {1000, 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit could be set";
    if (!files.write("f", std::string(1000, 'x'))) return "1000 bytes must be possible";
    return problem(files.write("f", std::string(1001, 'x')));
  });
  CHECK(went_wrong ==
        "limit: '" + temp / "f" + "': 1001 bytes are more than the limit for files (ulimit -f)");
  CHECK(support::read_file(temp / "f") == std::string(1000, 'x'));
}

#if defined(__linux__)

TEST_CASE("a full or a read-only file system is told, and the old file stays") {
  TempDir temp;
  temp.directory("mount");
  std::string went_wrong = support::in_other_host([&]() -> std::string {
    const std::string mount = temp / "mount";
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", mount.c_str(), "tmpfs", 0, "size=64k,nr_inodes=8") != 0)
      return "cannot mount";
    const Files files = files_in(mount);
    if (!files.write("f", "old")) return "the first file";
    const std::string full = problem(files.write("f", std::string(200000, 'x')));
    if (full != "limit: '" + mount + "/f': No space left on device") return full;
    if (support::read_file(mount + "/f") != "old") return "the old bytes are gone";
    if (names_in(mount) != std::vector<std::string>{"f"}) return "something was left";
    int made = 0;
    while (made < 20 && files.write("file" + std::to_string(made), "")) ++made;
    const std::string crowded = problem(files.write("one-more", ""));
    if (crowded != "limit: '" + mount + "/one-more': a file beside it: No space left on device")
      return crowded;
    if (::mount(nullptr, mount.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return "cannot remount";
    const std::string read_only = problem(files.write("f", "new"));
    if (read_only != "permission_denied: '" + mount + "/f': Read-only file system")
      return read_only;
    return "";
  });
  if (went_wrong == "cannot mount") {
    MESSAGE("SKIPPED: no file system can be mounted here");
    return;
  }
  CHECK(went_wrong == "");
}

#endif

TEST_CASE("no descriptor is left open, and none is below 3") {
  TempDir temp;
  temp.file("sub/f", "x");
  const Files files = files_in(temp.path());
  FileWrite only_new;
  only_new.only_new = true;
  const int before = support::count_descriptors();
  for (int i = 0; i < 5; ++i) {
    (void)files.read("sub/f");
    (void)files.read("sub");
    (void)files.read("nope");
    (void)files.write("sub/f", "y");
    (void)files.write("new/deep/f", "y");
    (void)files.write("sub/f", "y", only_new);
    (void)files.list(".", 5);
    (void)files.list("sub/f");
  }
  CHECK(support::count_descriptors() == before);
}
