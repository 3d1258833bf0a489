// What commands have in place of the host's /tmp, /dev/shm and terminals, and their network.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using support::begins;
using support::output_of;
using support::report_elsewhere;
using support::run_in;
using support::TempDir;

namespace {

Sandbox made(const SandboxOptions& options) {
  auto sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  return *sandbox;
}

// What the report says of a place.
std::string place_of(const std::vector<std::string>& lines, const std::string& name) {
  for (const std::string& line : lines)
    if (begins(line, name + ": ")) return line.substr(name.size() + 2);
  return "";
}

struct Place {
  TempDir top = TempDir("/tmp");
  std::string workspace = top.directory("ws");
  TempDir tmp = TempDir("/tmp");
  SandboxOptions options = support::options_for(SandboxMode::best_effort, workspace);

  Place() {
    options.tmp = tmp.path();
    // A directory of PATH that lies in /tmp keeps that as it is.
    options.search_path = {};
  }
};

// Asked of unshare(1), and not of the library.
bool has_places(const Sandbox& sandbox) {
  if (::system("unshare -m true 2> /dev/null || unshare -Um true 2> /dev/null") != 0) {
    MESSAGE("SKIPPED: no mount namespaces here");
    return false;
  }
  for (const char* const name : {"tmp", "shared_memory", "terminals"})
    CHECK(place_of(sandbox.report().places, name) == "own");
  return true;
}

}  // namespace

TEST_CASE("sandbox: commands have a /tmp of their own, which the next one finds as it was left") {
  const TempDir hosts("/tmp");
  hosts.file("secret", "secret");
  const Place place;
  const Sandbox sandbox = made(place.options);
  if (!has_places(sandbox)) return;
  CHECK(output_of(run_in(sandbox,
                         "echo a > /tmp/x; mkdir /tmp/d; echo b > /tmp/d/y; cat /tmp/x")) == "a\n");
  CHECK(output_of(run_in(sandbox, "cat /tmp/x /tmp/d/y")) == "a\nb\n");
  CHECK(support::read_file(place.tmp / "x") == "a\n");
  CHECK(!support::exists("/tmp/x"));
  CHECK(output_of(run_in(sandbox, "cat " + hosts / "secret" + " 2> /dev/null || echo none")) ==
        "none\n");
  const Place other;
  CHECK(output_of(run_in(made(other.options), "cat /tmp/x 2> /dev/null || echo none")) == "none\n");
  const Sandbox copy = sandbox;
  CHECK(output_of(run_in(copy, "cat /tmp/x")) == "a\n");
}

TEST_CASE("sandbox: what is granted below /tmp stays at its path, with the rights it was granted") {
  TempDir books("/tmp");
  books.file("book", "book");
  Place place;
  place.top.file("beside", "beside");
  place.options.readable = {books.path(), place.top.file("read/one", "one")};
  const Sandbox sandbox = made(place.options);
  if (!has_places(sandbox)) return;
  const std::string& ws = place.workspace;
  CHECK(output_of(run_in(sandbox, "pwd; echo c > file; cat " + books / "book", ws)) ==
        ws + "\nbook");
  CHECK(support::read_file(ws + "/file") == "c\n");
  CHECK(output_of(run_in(sandbox, "cat " + place.top / "read/one")) == "one");
  // All of /tmp may be written to, and these may not.
  CHECK(output_of(run_in(sandbox, "echo > " + books / "new" + " || echo > " + books / "book" +
                                      " || echo > " + place.top / "read/one" +
                                      " || echo refused")) == "refused\n");
  CHECK(support::read_file(books / "book") == "book");
  CHECK(support::read_file(place.top / "read/one") == "one");
  // Nor may what lies above them be moved away, or be written to where nobody would look for it.
  const std::string move = "perl -e 'exit !rename $ARGV[0], \"/tmp/z\"' ";
  CHECK(output_of(run_in(sandbox, move + ws + " || " + move + place.top.path() + " || touch " +
                                      place.top / "new" + " || cat " + place.top / "beside" +
                                      " || echo refused")) == "refused\n");
  CHECK(output_of(run_in(sandbox, "cat file", ws)) == "c\n");
}

TEST_CASE("sandbox: commands have shared memory and terminals of their own") {
  const std::string hosts = "/dev/shm/codeexec-test-" + std::to_string(::getpid());
  const int file = ::open(hosts.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  const Place place;
  const Sandbox sandbox = made(place.options);
  if (has_places(sandbox)) {
    CHECK(output_of(run_in(sandbox, "ls -A /dev/shm; echo a > /dev/shm/x; cat /dev/shm/x")) ==
          "a\n");
    CHECK(output_of(run_in(sandbox, "cat /dev/shm/x")) == "a\n");
    CHECK(!support::exists("/dev/shm/x"));
    CHECK(output_of(run_in(sandbox,
                           "perl -e 'print defined shmget(4711, 9, 0x1b6 | 01000) ? 1 : 0'"
                           " && ipcs -m | grep -c 0x00001267")) == "11\n");
    CHECK(output_of(run_in(Sandbox(), "ipcs -m | grep -c 0x00001267")) == "0\nexit 1");
    CHECK(output_of(run_in(sandbox, "ls /dev/pts; exec 3<> /dev/ptmx; ls /dev/pts")) ==
          "ptmx\n0\nptmx\n");
  }
  ::unlink(hosts.c_str());
  ::close(file);
}

TEST_CASE("sandbox: places of their own stay writable where all else is read-only") {
  Place place;
  place.options.pid_namespace = true;
  const Sandbox sandbox = made(place.options);
  if (!has_places(sandbox)) return;
  for (int i = 0; i < 2; ++i)
    CHECK(output_of(run_in(sandbox,
                           "echo a >> /tmp/x; echo b >> /dev/shm/x; exec 3<> /dev/ptmx; "
                           "echo c >> file; cat /tmp/x /dev/shm/x file; ls /proc | grep -c "
                           "'^[0-9]' > count && test $(cat count) -lt 9",
                           place.workspace)) == (i == 0 ? "a\nb\nc\n" : "a\na\nb\nb\nc\nc\n"));
}

TEST_CASE("sandbox: with places of their own, modes and times of files outside stay") {
  Place place;
  TempDir outside("/var/tmp");
  outside.file("file", "x", 0644);
  TempDir other("/var/tmp");
  place.options.writable = {place.workspace, other.directory("root"), other / "root/inner",
                            other.file("alone", "x"), other.directory("gone")};
  other.directory("root/inner");
  const Sandbox sandbox = made(place.options);
  if (!has_places(sandbox)) return;
  CHECK(support::contains(sandbox.report().enforced, "metadata"));
  CHECK(place_of(sandbox.report().places, "metadata") == "");
  REQUIRE(::rmdir((other / "gone").c_str()) == 0);
  other.directory("gone");
  for (const std::string& file :
       {outside / "file", outside.path(), other.path(), other / "gone", std::string("/proc/self"),
        std::string("/dev/null"), std::string("/")}) {
    CAPTURE(file);
    CHECK(output_of(run_in(sandbox,
                           "perl -e 'print utime(1, 1, $ARGV[0]) ? 1 : 0, $!{EROFS} ? 1 "
                           ": 0, chmod(0700, $ARGV[0]) ? 1 : 0, $!{EROFS} ? 1 : 0' " +
                               file)) == "0101");
  }
  for (const std::string& file :
       {place.workspace + "/new", other / "root/new", other / "root/inner/new", other / "alone",
        std::string("/tmp/new"), std::string("/dev/shm/new")}) {
    CAPTURE(file);
    CHECK(output_of(run_in(sandbox, "echo a > " + file + "; chmod 700 " + file + "; touch -d " +
                                        "2001-01-01 " + file + "; stat -c %a " + file)) == "700\n");
  }
  // What lies in another writable directory is no mount of its own.
  CHECK(output_of(run_in(sandbox,
                         "perl -e 'print rename(\"new\", \"inner/moved\")'; rm -r inner; "
                         "ls -A",
                         other / "root")) == "1");
}

TEST_CASE("sandbox: why modes and times of files outside do not stay is in the report") {
  if (!support::has_everything("places of their own")) return;
  Place place;
  const auto metadata_of = [](const std::vector<std::string>& lines) {
    CHECK_FALSE(support::has(support::enforced(lines), "metadata"));
    CHECK_FALSE(support::is_missing(lines, "metadata"));
    return place_of(lines, "place metadata");
  };
  SUBCASE("nothing of it is asked for") {
    place.options.tmp = {};
    const auto report = made(place.options).report();
    CHECK_FALSE(support::contains(report.enforced, "metadata"));
    CHECK(support::missing(report, "metadata") == "");
  }
  SUBCASE("there are too many writable directories") {
    for (int i = 0; i < 32; ++i)
      place.options.writable.push_back(place.top.directory("root" + std::to_string(i)));
    const Sandbox sandbox = made(place.options);
    if (!has_places(sandbox)) return;
    CHECK_FALSE(support::contains(sandbox.report().enforced, "metadata"));
    CHECK(support::missing(sandbox.report(), "metadata") == "");
    CHECK(begins(place_of(sandbox.report().places, "metadata"), "none (there are more than 32"));
    CHECK(output_of(run_in(sandbox, "echo a > /tmp/x; cat /tmp/x", place.workspace)) == "a\n");
  }
  SUBCASE("the kernel lacks what it takes, or refuses it") {
    for (const char* const rules : {"namespaces=EPERM", "mount_setattr=ENOSYS", "open_tree=EPERM"})
      for (const char* const mode : {"", "strict "})
        CHECK(begins(metadata_of(report_elsewhere(
                         std::string(mode) + "none rw=/var/tmp tmp=" + place.tmp.path(), rules)),
                     "none (no namespaces can be made here"));
  }
  SUBCASE("an ordinary user has it where there are user namespaces") {
    if (::geteuid() != 0 ||
        ::system("setpriv --reuid=12345 --regid=12345 --clear-groups unshare -Um true") != 0) {
      MESSAGE("SKIPPED: there is no other user with namespaces here");
      return;
    }
    for (const char* const words : {"none", "loopback", "host pid_namespace", "host protect=x"})
      CHECK(support::has(support::enforced(report_elsewhere(std::string("strict uid=12345 ") +
                                                            words + " tmp=" + place.tmp.path())),
                         "metadata "));
  }
}

TEST_CASE("sandbox: why commands have no places of their own is in the report") {
  if (!support::has_everything("places of their own")) return;
  Place place;
  const auto tmp_of = [](const SandboxOptions& options) {
    return place_of(made(options).report().places, "tmp");
  };
  SUBCASE("they are not asked for") {
    place.options.tmp = {};
    CHECK(made(place.options).report().places.empty());
  }
  SUBCASE("the host's are asked for") {
    place.options.shared_memory = true;
    place.options.terminals = true;
    const Sandbox sandbox = made(place.options);
    CHECK(place_of(sandbox.report().places, "shared_memory") == "the host's");
    CHECK(place_of(sandbox.report().places, "terminals") == "the host's");
  }
  SUBCASE("/tmp is granted") {
    place.options.writable = {"/tmp"};
    CHECK(begins(tmp_of(place.options), "none ("));
    const TempDir hosts("/tmp");
    CHECK(output_of(run_in(place.options, "echo a > " + hosts / "x")) == "");
    CHECK(support::read_file(hosts / "x") == "a\n");
  }
  SUBCASE("tools lie in it") {
    const std::string bin = place.top.directory("tools/bin");
    place.top.file("tools/bin/tool", "#!/bin/sh\necho tool\n", 0755);
    place.options.search_path = bin;
    CHECK(begins(tmp_of(place.options), "none ("));
    CHECK(output_of(run_in(place.options, bin + "/tool")) == "tool\n");
  }
  SUBCASE("the directory is not there") {
    place.options.tmp = place.top / "missing";
    CHECK(begins(tmp_of(place.options), "none ("));
  }
  SUBCASE("there are no namespaces, which strict mode does not refuse") {
    for (const char* const mode : {"", "strict "}) {
      const auto lines =
          report_elsewhere(std::string(mode) + "none tmp=" + place.tmp.path(), "namespaces=EPERM");
      for (const char* const name : {"place tmp", "place shared_memory", "place terminals"})
        CHECK(begins(place_of(lines, name), "none (no namespaces can be made here"));
    }
  }
  SUBCASE("an ordinary user has them where there are user namespaces") {
    if (::geteuid() != 0 ||
        ::system("setpriv --reuid=12345 --regid=12345 --clear-groups unshare -Um true") != 0) {
      MESSAGE("SKIPPED: there is no other user with namespaces here");
      return;
    }
    for (const char* const words : {"none", "loopback pid_namespace"}) {
      const auto lines =
          report_elsewhere(std::string("strict uid=12345 ") + words + " tmp=" + place.tmp.path());
      for (const char* const name : {"place tmp", "place shared_memory", "place terminals"})
        CHECK(place_of(lines, name) == "own");
    }
  }
  SUBCASE("mounts of one kind cannot be made") {
    const auto lines =
        report_elsewhere("none tmp=" + place.tmp.path(), "open_tree=EPERM,mount_setattr=EPERM");
    CHECK(begins(place_of(lines, "place tmp"), "none (Operation not permitted)"));
    CHECK(place_of(lines, "place shared_memory") == "own");
  }
}

TEST_CASE("sandbox: commands have one network where it is in common, and else each its own") {
  Place place;
  place.options.network = codeexec::Network::loopback;
  for (const bool common : {true, false}) {
    place.options.common_network = common;
    const Sandbox sandbox = made(place.options);
    if (sandbox.report().network != codeexec::Network::loopback) {
      MESSAGE("SKIPPED: no network namespaces here");
      return;
    }
    const auto network_of = [](const Sandbox& other) {
      return output_of(run_in(other, "readlink /proc/self/ns/net"));
    };
    const std::string first = network_of(sandbox);
    CHECK(begins(first, "net:["));
    CHECK(first != network_of(Sandbox()));
    CHECK(network_of(made(place.options)) != first);
    // A second command at the same time has another supervisor.
    codeexec::ProcessOptions options;
    options.argv = {"/bin/sh", "-c", "readlink /proc/self/ns/net; read line"};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.sandbox = sandbox;
    options.keep_input_open = true;
    options.timeout = support::safety;
    auto held = codeexec::Process::start(options);
    REQUIRE(held);
    const std::string second = network_of(sandbox);
    CHECK(held->write("\n").has_value());
    const std::string other = held->wait().out;
    CHECK(begins(other, "net:["));
    CHECK((other == second) == common);
    CHECK((first == second) == common);
  }
}

TEST_CASE("sandbox: devices are granted by name, and neither disks nor memory") {
  if (!support::has_everything("devices") || !support::is_root("a device of a test's own")) return;
  Place place;
  const auto node = [&](const std::string& name, mode_t kind, unsigned major, unsigned minor) {
    const std::string path = place.top / name;
    REQUIRE(::mknod(path.c_str(), kind | 0666, makedev(major, minor)) == 0);
    return path;
  };
  // Harmless if it is reached: they are all /dev/zero, but for the last ones, which nothing opens.
  const std::string granted = node("granted", S_IFCHR, 1, 5);
  const std::string other = node("other", S_IFCHR, 1, 5);
  if (output_of(run_in(Sandbox(), "head -c 1 " + granted + " | wc -c")) != "1\n") {
    MESSAGE("SKIPPED: no devices can be used in this directory");
    return;
  }
  place.options.devices = {granted};
  for (const bool table : {false, true}) {
    place.options.pid_namespace = table;
    const Sandbox sandbox = made(place.options);
    CHECK(place_of(sandbox.report().places, "devices") == granted);
    CHECK(output_of(run_in(sandbox, "head -c 2 " + granted + " | wc -c; echo x > " + granted)) ==
          "2\n");
    CHECK(output_of(run_in(sandbox, "head -c 2 " + other + " 2> /dev/null | wc -c")) == "0\n");
  }
  const auto refusal = [&](const std::string& device) {
    place.options.devices = {device};
    const auto sandbox = Sandbox::create(place.options);
    return sandbox ? "none" : sandbox.error().message;
  };
  const auto error = [](const std::string& path, const char* why) {
    return "devices: '" + path + "' " + why;
  };
  std::string path = node("disk", S_IFBLK, 7, 0);
  CHECK(refusal(path) == error(path, "is a disk"));
  for (const unsigned minor : {1u, 2u, 4u, 11u}) {
    path = node("memory" + std::to_string(minor), S_IFCHR, 1, minor);
    CHECK(refusal(path) == error(path, "is memory of the machine"));
  }
  path = place.top.file("file", "x");
  CHECK(refusal(path) == error(path, "is no device"));
  CHECK(refusal("gpus") != "none");
  place.options.devices = {"gpu"};
  CHECK(place_of(made(place.options).report().places, "devices") != "");
}

#else

TEST_CASE("sandbox: places") { MESSAGE("SKIPPED: there is no sandbox in this build"); }

#endif
