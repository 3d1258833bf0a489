// Tests of the files section: reading, writing and listing within the roots, and the docstrings of
// Python sources. What real Python files say is compared in docstring_oracle.py.
#include "codeexec.hpp"
#include "support.hpp"

#include <doctest/doctest.h>

#include <grp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#if defined(__linux__)
#include <sys/mount.h>
#include <sys/syscall.h>
#endif

#include <atomic>
#include <thread>

using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::FileContent;
using codeexec::FileEntry;
using codeexec::FileList;
using codeexec::FileRange;
using codeexec::Files;
using codeexec::FileWrite;
using codeexec::PathOptions;
using codeexec::PathRules;
using codeexec::Permission;
using codeexec::python_docstring;
using codeexec::Root;
using support::has;
using support::TempDir;

namespace {

Files files_with(const std::vector<Root>& roots, const std::string& base) {
  PathOptions options;
  options.roots = roots;
  auto rules = PathRules::create(options);
  REQUIRE(rules);
  return Files(*rules, base);
}

Files files_in(const std::string& root) { return files_with({{root, Permission::write}}, root); }

FileRange lines(std::uint64_t offset, std::optional<std::uint64_t> count = {},
                std::size_t max_bytes = 1 << 18) {
  FileRange range;
  range.offset = offset;
  range.count = count;
  range.max_bytes = max_bytes;
  return range;
}

FileRange bytes(std::uint64_t offset, std::optional<std::uint64_t> count = {},
                std::size_t max_bytes = 1 << 18) {
  FileRange range = lines(offset, count, max_bytes);
  range.unit = FileRange::Unit::bytes;
  return range;
}

// The bytes, or "code: message".
std::string text_of(const Expected<FileContent>& content) {
  if (content) return content->bytes;
  return std::string(codeexec::name(content.error().code)) + ": " + content.error().message;
}

template <class T>
std::string problem(const Expected<T>& result) {
  if (result) return "none";
  return std::string(codeexec::name(result.error().code)) + ": " + result.error().message;
}

// Like "d a/, f a/b 3, l c": the entries of a list.
std::string shape(const Expected<FileList>& list) {
  if (!list) return problem(list);
  std::string text;
  for (const FileEntry& entry : list->entries) {
    if (!text.empty()) text += ", ";
    text += codeexec::name(entry.type)[0];
    text += " " + entry.path;
    if (entry.type == FileEntry::Type::file) text += " " + std::to_string(entry.size);
    if (entry.closed) text += " closed";
  }
  if (list->more) text += ", more";
  return text;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const open = ::opendir(directory.c_str());
  if (!open) support::fail("opendir", directory);
  while (const dirent* entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) support::fail("lstat", path);
  return status;
}

mode_t mode_of(const std::string& path) { return status_of(path).st_mode & 07777; }

// Runs `body` without root's power over files; it returns an empty text or what went wrong.
template <class Body>
std::string as_ordinary_user(Body body) {
  return support::in_other_host([&]() -> std::string {
    if (::geteuid() == 0 &&
        (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0))
      return "could not become an ordinary user";
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

std::string docstring(std::string_view source, std::string_view name) {
  const auto result = python_docstring(source, name);
  if (result) return *result;
  const codeexec::Error& error = result.error();
  const bool is_parse = error.code == ErrorCode::parse;
  return std::string(codeexec::name(error.code)) +
         (is_parse ? " " + std::to_string(error.offset) : "") + ": " + error.message;
}

}  // namespace

// reading -----------------------------------------------------------------------------------------

TEST_CASE("lines are read from an offset, as many as are asked for") {
  TempDir temp;
  temp.file("f", "one\ntwo\nthree\n");
  const Files files = files_in(temp.path());
  const auto all = files.read("f");
  REQUIRE(all);
  CHECK(all->path == temp / "f");
  CHECK(all->bytes == "one\ntwo\nthree\n");
  CHECK(all->size == 14);
  CHECK(all->begin == 0);
  CHECK(all->lines == 3);
  CHECK(all->next == 3);
  CHECK_FALSE(all->more);
  CHECK_FALSE(all->cut_line);
  CHECK_FALSE(all->binary);
  CHECK(all->mime_type.empty());

  const auto second = files.read(temp / "f", lines(1, 1));
  REQUIRE(second);
  CHECK(second->bytes == "two\n");
  CHECK(second->begin == 4);
  CHECK(second->lines == 1);
  CHECK(second->next == 2);
  CHECK(second->more);

  const auto last = files.read("f", lines(2, 1));
  REQUIRE(last);
  CHECK(last->bytes == "three\n");
  CHECK_FALSE(last->more);
  CHECK(text_of(files.read("f", lines(1, 100))) == "two\nthree\n");

  const auto none = files.read("f", lines(1, 0));
  REQUIRE(none);
  CHECK(none->bytes.empty());
  CHECK(none->next == 1);
  CHECK(none->more);
}

TEST_CASE("the last line may lack its line end, and carriage returns are bytes like others") {
  TempDir temp;
  temp.file("f", "a\r\nb");
  const Files files = files_in(temp.path());
  const auto all = files.read("f");
  REQUIRE(all);
  CHECK(all->bytes == "a\r\nb");
  CHECK(all->lines == 2);
  CHECK(all->next == 2);
  CHECK(text_of(files.read("f", lines(1))) == "b");
}

TEST_CASE("bytes are read from an offset, as many as are asked for") {
  TempDir temp;
  temp.file("f", "0123456789");
  const Files files = files_in(temp.path());
  const auto part = files.read("f", bytes(3, 4));
  REQUIRE(part);
  CHECK(part->bytes == "3456");
  CHECK(part->begin == 3);
  CHECK(part->next == 7);
  CHECK(part->more);
  CHECK(part->lines == 1);
  CHECK_FALSE(part->cut_line);
  const auto rest = files.read("f", bytes(7, 3));
  REQUIRE(rest);
  CHECK(rest->bytes == "789");
  CHECK_FALSE(rest->more);
  const auto none = files.read("f", bytes(3, 0));
  REQUIRE(none);
  CHECK(none->bytes.empty());
  CHECK(none->next == 3);
  CHECK(none->more);
}

TEST_CASE("W-54: an offset beyond the end gives nothing and tells where the end is") {
  TempDir temp;
  temp.file("ends", "a\nb\n");
  temp.file("open", "a\nb");
  temp.file("empty");
  const Files files = files_in(temp.path());
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const std::uint64_t offset : {std::uint64_t{2}, std::uint64_t{3}, huge / 2, huge}) {
    CAPTURE(offset);
    for (const std::string name : {"ends", "open"}) {
      CAPTURE(name);
      const auto by_lines = files.read(name, lines(offset, 5));
      REQUIRE(by_lines);
      CHECK(by_lines->bytes.empty());
      CHECK(by_lines->begin == by_lines->size);
      CHECK(by_lines->next == 2);
      CHECK(by_lines->lines == 0);
      CHECK_FALSE(by_lines->more);
      const auto by_bytes = files.read(name, bytes(offset == 2 ? 4 : offset + (offset < huge)));
      REQUIRE(by_bytes);
      CHECK(by_bytes->bytes.empty());
      CHECK(by_bytes->begin == by_bytes->size);
      CHECK(by_bytes->next == by_bytes->size);
      CHECK_FALSE(by_bytes->more);
    }
  }
  for (const FileRange& range : {lines(0), lines(9), bytes(0), bytes(9)}) {
    const auto empty = files.read("empty", range);
    REQUIRE(empty);
    CHECK(empty->bytes.empty());
    CHECK(empty->begin == 0);
    CHECK(empty->next == 0);
    CHECK_FALSE(empty->more);
    CHECK_FALSE(empty->binary);
  }
}

TEST_CASE("W-54: a missing file is an error, with a count, too") {
  TempDir temp;
  const Files files = files_in(temp.path());
  const std::string missing = "not_found: '" + temp / "nope" + "': No such file or directory";
  CHECK(text_of(files.read("nope")) == missing);
  CHECK(text_of(files.read("nope", lines(0, 5))) == missing);
  CHECK(text_of(files.read("nope", bytes(0, 5))) == missing);
  CHECK(problem(files.list("nope")) == missing);
}

TEST_CASE("only whole lines are given where max_bytes is too small for all") {
  TempDir temp;
  temp.file("f", "one\ntwo\nthree\nfour\n");
  const Files files = files_in(temp.path());
  for (const std::size_t max_bytes : {4u, 5u, 7u}) {
    const auto part = files.read("f", lines(0, {}, max_bytes));
    REQUIRE(part);
    CHECK(part->bytes == "one\n");
    CHECK(part->next == 1);
    CHECK(part->more);
    CHECK_FALSE(part->cut_line);
  }
  CHECK(text_of(files.read("f", lines(0, {}, 8))) == "one\ntwo\n");
  CHECK(text_of(files.read("f", lines(0, 2, 8))) == "one\ntwo\n");
  CHECK(text_of(files.read("f", lines(0, 2, 7))) == "one\n");
  CHECK(problem(files.read("f", lines(0, {}, 0))) ==
        "invalid_argument: max_bytes: must be at least 1");
}

TEST_CASE("a line that does not fit is cut, and its rest is read by bytes") {
  TempDir temp;
  temp.file("f", "ab\n0123456789\nend\n");
  const Files files = files_in(temp.path());
  const auto cut = files.read("f", lines(1, {}, 6));
  REQUIRE(cut);
  CHECK(cut->bytes == "012345");
  CHECK(cut->cut_line);
  CHECK(cut->more);
  CHECK(cut->lines == 1);
  CHECK(cut->next == 2);
  CHECK(text_of(files.read("f", bytes(cut->begin + cut->bytes.size(), 5))) == "6789\n");
  CHECK(text_of(files.read("f", lines(cut->next, {}, 6))) == "end\n");
  // It fits exactly, but for its line end.
  const auto nearly = files.read("f", lines(1, {}, 10));
  REQUIRE(nearly);
  CHECK(nearly->bytes == "0123456789");
  CHECK(nearly->cut_line);
  const auto fits = files.read("f", lines(1, {}, 11));
  REQUIRE(fits);
  CHECK(fits->bytes == "0123456789\n");
  CHECK_FALSE(fits->cut_line);
}

TEST_CASE("whoever follows `next` reads every byte once") {
  TempDir temp;
  support::Random random;
  const Files files = files_in(temp.path());
  for (int round = 0; round < 40; ++round) {
    std::string content;
    // Some are longer than a buffer.
    const std::size_t size = random.below(round % 4 == 0 ? 300000 : 2000);
    const std::size_t longest = 1 + random.below(200);
    while (content.size() < size) {
      content.append(random.below(longest), 'x');
      content += random.below(5) == 0 ? "\xc3\xa9\n" : "\n";
    }
    if (random.below(2) == 0) content += "open";
    temp.file("f", content);
    const std::size_t max_bytes = longest + 4 + random.below(round % 4 == 0 ? 100000 : 400);
    std::string by_lines;
    std::string by_bytes;
    FileRange range = lines(0, {}, max_bytes);
    for (bool more = true; more;) {
      const auto part = files.read("f", range);
      REQUIRE(part);
      REQUIRE(part->begin == by_lines.size());
      REQUIRE(part->bytes.size() <= max_bytes);
      REQUIRE_FALSE(part->binary);
      by_lines += part->bytes;
      range.offset = part->next;
      more = part->more;
    }
    CHECK(by_lines == content);
    range = bytes(0, {}, max_bytes);
    for (bool more = true; more;) {
      const auto part = files.read("f", range);
      REQUIRE(part);
      REQUIRE(part->bytes.size() <= max_bytes);
      REQUIRE_FALSE(part->binary);
      by_bytes += part->bytes;
      range.offset = part->next;
      more = part->more;
    }
    CHECK(by_bytes == content);
  }
}

TEST_CASE("W-54: sizes and offsets count bytes, and max_bytes cuts no character in two") {
  TempDir temp;
  const std::string euro = "\xe2\x82\xac";
  temp.file("f", euro + euro + euro);
  const Files files = files_in(temp.path());
  const auto all = files.read("f");
  REQUIRE(all);
  CHECK(all->size == 9);
  CHECK(all->bytes.size() == 9);
  for (const FileRange& range : {lines(0, {}, 5), bytes(0, {}, 5)}) {
    const auto part = files.read("f", range);
    REQUIRE(part);
    CHECK(part->bytes == euro);
    CHECK(part->more);
    CHECK_FALSE(part->binary);
  }
  CHECK(files.read("f", bytes(0, {}, 5))->next == 3);
  // What is asked for is given, and is text all the same.
  const auto part = files.read("f", bytes(1, 7));
  REQUIRE(part);
  CHECK(part->bytes == (euro + euro + euro).substr(1, 7));
  CHECK_FALSE(part->binary);
  // Less than a character is better than nothing for ever.
  const auto one = files.read("f", bytes(0, {}, 1));
  REQUIRE(one);
  CHECK(one->bytes.size() == 1);
  CHECK(one->next == 1);
}

TEST_CASE("what has a NUL or is not UTF-8 is binary") {
  TempDir temp;
  temp.file("nul", std::string("a\0b", 3));
  temp.file("latin", "caf\xe9\n");
  temp.file("cut", "caf\xc3");
  temp.file("tail", "\xa9 text");
  temp.file("text", "caf\xc3\xa9\n");
  temp.file("late", std::string(1000, 'a') + "\n\xff\n");
  const Files files = files_in(temp.path());
  const auto is_binary = [&](const char* name, const FileRange& range = {}) {
    const auto content = files.read(name, range);
    REQUIRE(content);
    return content->binary;
  };
  CHECK(is_binary("nul"));
  CHECK(is_binary("latin"));
  CHECK(is_binary("cut"));
  CHECK(is_binary("cut", bytes(0)));
  CHECK(is_binary("tail", bytes(0)));
  CHECK_FALSE(is_binary("tail", bytes(1)));
  CHECK_FALSE(is_binary("text"));
  CHECK_FALSE(is_binary("text", bytes(0, 4)));
  CHECK_FALSE(is_binary("text", bytes(4)));
  CHECK_FALSE(is_binary("late", lines(0, 1)));
  CHECK(is_binary("late"));
}

TEST_CASE("images are known by their first bytes, whichever part is read") {
  TempDir temp;
  temp.file("png", "\x89PNG\r\n\x1a\n and more");
  temp.file("jpeg", "\xff\xd8\xff\xe0 JFIF");
  temp.file("gif", "GIF89a and more");
  temp.file("old.gif", "GIF87a and more");
  temp.file("webp", std::string("RIFF\x24\0\0\0WEBPVP8 ", 16));
  temp.file("wave.webp", std::string("RIFF\x24\0\0\0WAVEfmt ", 16));
  temp.file("short.webp", "RIFF1234");
  temp.file("text.png", "no image");
  const Files files = files_in(temp.path());
  const auto type = [&](const char* name, const FileRange& range = {}) {
    const auto content = files.read(name, range);
    REQUIRE(content);
    return content->mime_type;
  };
  CHECK(type("png") == "image/png");
  CHECK(type("png", bytes(10)) == "image/png");
  CHECK(type("jpeg", lines(7)) == "image/jpeg");
  CHECK(type("gif") == "image/gif");
  CHECK(type("old.gif") == "image/gif");
  CHECK(type("webp") == "image/webp");
  CHECK(type("wave.webp").empty());
  CHECK(type("short.webp").empty());
  CHECK(type("text.png").empty());
}

TEST_CASE("a huge line costs no more memory than what is returned") {
  TempDir temp;
  const std::string path = temp.file("f", "start\n");
  // One line of NULs, which take no room on the disk.
  const off_t size = off_t{1} << 27;
  REQUIRE(::truncate(path.c_str(), size) == 0);
  const Files files = files_in(temp.path());
  const std::string went_wrong = support::in_other_host([&]() -> std::string {
    const std::string pages = support::read_file("/proc/self/statm");
    const rlim_t now = std::strtoull(pages.c_str(), nullptr, 10) * 4096;
    const rlimit limit = {now + (32u << 20), now + (32u << 20)};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return "no limit could be set";
    const auto beyond = files.read("f", lines(5));
    if (!beyond || beyond->next != 2) return "beyond: " + problem(beyond);
    const auto cut = files.read("f", lines(1, {}, 1000));
    if (!cut || !cut->cut_line || cut->bytes.size() != 1000) return "cut: " + problem(cut);
    const auto end = files.read("f", bytes((std::uint64_t{1} << 27) - 5));
    if (!end || end->bytes.size() != 5 || end->more) return "end: " + problem(end);
    return "";
  });
  CHECK(went_wrong == "");
}

TEST_CASE("lines are counted up to a bound, and bytes are read beyond it") {
  TempDir temp;
  const std::string path = temp.file("f");
  const auto size = static_cast<off_t>(Files::max_scan + 3);
  if (::truncate(path.c_str(), size) != 0) {
    MESSAGE("SKIPPED: no files of 1 GiB here");
    return;
  }
  const Files files = files_in(temp.path());
  CHECK(problem(files.read("f", lines(1))) ==
        "limit: '" + path +
            "': line 1 lies beyond the first 1073741824 bytes; read that part by "
            "bytes");
  const auto end = files.read("f", bytes(Files::max_scan));
  REQUIRE(end);
  CHECK(end->bytes.size() == 3);
}

TEST_CASE("what is no regular file is refused without being opened") {
  TempDir temp;
  temp.directory("dir");
  const std::string pipe = temp / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string socket = temp / "socket";
  REQUIRE(socket.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, socket.c_str(), socket.size());
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const Files files = files_with({}, temp.path());
  const auto refusal = [](const std::string& path, const char* what) {
    return "invalid_argument: '" + path + "': " + what + ", no regular file";
  };
  CHECK(problem(files.read("dir")) == refusal(temp / "dir", "is a directory"));
  CHECK(problem(files.read("/")) == refusal("/", "is a directory"));
  CHECK(problem(files.read("pipe")) == refusal(pipe, "is a pipe"));
  CHECK(problem(files.read("socket")) == refusal(socket, "is a socket"));
  CHECK(problem(files.read("/dev/zero")) == refusal("/dev/zero", "is a device"));
  CHECK(problem(files.write("dir", "x")) == refusal(temp / "dir", "is a directory"));
  CHECK(problem(files.write("pipe", "x")) == refusal(pipe, "is a pipe"));
  CHECK(problem(files.write("socket", "x")) == refusal(socket, "is a socket"));
  CHECK(problem(files.list("pipe")) == "invalid_argument: '" + pipe + "': is no directory");
  CHECK(shape(files.list(".")) == "d dir, o pipe, o socket");
  ::close(listener);
}

#if defined(__linux__)
TEST_CASE("nothing is read of /proc and /sys, where this program's own memory is") {
  TempDir temp;
  const Files files = files_with({}, temp.path());
  support::make_symlink("/proc/self/environ", temp / "link");
  const std::string own = "/proc/" + std::to_string(::getpid());
  const std::string closed = ": is the kernel's (/proc, /sys and their like), which is closed";
  CHECK(problem(files.read("/proc/self/environ")) ==
        "permission_denied: '" + own + "/environ'" + closed);
  for (const std::string& path :
       {own + "/environ", own + "/maps", own + "/mem", std::string("/proc/version"),
        std::string("/proc/thread-self/environ"), temp / "link",
        std::string("/sys/kernel/mm/transparent_hugepage/enabled"),
        std::string("/sys/devices/system/cpu/online")}) {
    CAPTURE(path);
    if (!support::exists(path)) continue;
    const auto content = files.read(path, bytes(0, 100));
    CHECK_FALSE(content);
    CHECK(has(problem(content), closed));
  }
  CHECK(has(problem(files.list("/proc")), closed));
  CHECK(has(problem(files.list("/sys")), closed));
  CHECK(has(problem(files.write("/proc/self/comm", "x")), closed));
  CHECK(has(problem(files.write("/sys/new/file", "x")), closed));
  const auto root = files.list("/", 2);
  REQUIRE(root);
  for (const FileEntry& entry : root->entries) {
    CHECK_FALSE(support::begins(entry.path, "proc/"));
    CHECK_FALSE(support::begins(entry.path, "sys/"));
  }
}
#endif

// the roots ---------------------------------------------------------------------------------------

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

// writing -----------------------------------------------------------------------------------------

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

// listing -----------------------------------------------------------------------------------------

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

// docstrings --------------------------------------------------------------------------------------

TEST_CASE("docstrings of modules, functions, classes and methods") {
  const char* const source =
      "#!/usr/bin/env python3\n"
      "# -*- coding: utf-8 -*-\n"
      "'''Module.\n"
      "\n"
      "   Indented.\n"
      "   '''\n"
      "import os  # 'not this'\n"
      "def f(a, b='def g(): \"x\"', *, c: int = (1, {2: 3})) -> 'str':\n"
      "    # a comment first\n"
      "\n"
      "    \"\"\"F.\"\"\"\n"
      "    def inner():\n"
      "        'Inner.'\n"
      "async  def  g(x=lambda y: y):\n"
      "    r'G\\n'\n"
      "class C(Base, metaclass=M):\n"
      "\t'C.'\n"
      "\tx = '''\n"
      "def fake():\n"
      "    \"no\"\n"
      "'''\n"
      "\t@property\n"
      "\t@decorate(lambda: {'a': 1})\n"
      "        def method(self): return 1\n"
      "\tclass Inner:\n"
      "\t\tdef deep(self):\n"
      "\t\t\tu'Deep.'\n"
      "def none(): pass\n"
      "def one_line(): 'One.'; return 1\n"
      "def generic[T: (int, str) = lambda: 1](x: T) -> lambda: 1: 'Generic.'\n";
  CHECK(docstring(source, "") == "Module.\n\nIndented.");
  CHECK(docstring(source, "f") == "F.");
  CHECK(docstring(source, "g") == "G\\n");
  CHECK(docstring(source, "C") == "C.");
  CHECK(docstring(source, "C.method") == "");
  CHECK(docstring(source, "C.Inner") == "");
  CHECK(docstring(source, "C.Inner.deep") == "Deep.");
  CHECK(docstring(source, "none") == "");
  CHECK(docstring(source, "one_line") == "One.");
  CHECK(docstring(source, "generic") == "Generic.");
  const std::string missing = "not_found: no function or class of this name is defined";
  for (const char* name : {"nope", "f.inner", "inner", "fake", "C.fake", "C.f", "f.", ".f", "C..x",
                           ".", "C.Inner.deep.x", "method", "Inner", "os", "F", "C.method.x"}) {
    CAPTURE(name);
    CHECK(docstring(source, name) == missing);
  }
  CHECK(docstring("", "") == "");
  CHECK(docstring("# nothing", "") == "");
  CHECK(docstring("", "f") == missing);
}

TEST_CASE("the last definition counts, and those in other blocks do") {
  CHECK(docstring("def f(): 'a'\ndef f(): 'b'\n", "f") == "b");
  CHECK(docstring("def f(): 'a'\ndef f(): pass\n", "f") == "");
  CHECK(docstring("if x:\n  def f(): 'a'\nelse:\n  def f(): 'b'\n", "f") == "b");
  CHECK(docstring("try:\n  def f(): 'a'\nexcept (A, B) as e:\n  pass\nfinally:\n  pass\n", "f") ==
        "a");
  CHECK(docstring("with a as b, c:\n  for x in y:\n    while z:\n      def f(): 'a'\n", "f") ==
        "a");
  CHECK(docstring("match x:\n  case {'a': 1}:\n    def f(): 'a'\n", "f") == "a");
  CHECK(docstring("class C:\n  def f(): 'a'\nclass C:\n  pass\n", "C.f") ==
        "not_found: no function or class of this name is defined");
  CHECK(docstring("class C:\n  def f(): 'a'\ndef C():\n  def f(): 'b'\n", "C.f") ==
        "not_found: no function or class of this name is defined");
  CHECK(docstring("class C:\n  def f(): 'a'\nclass D:\n  def f(): 'b'\n", "C.f") == "a");
  CHECK(docstring("class C:\n  if x:\n    def f(): 'a'\n  y = 1\n", "C.f") == "a");
  // A property has the text of its getter.
  const char* const property =
      "class C:\n"
      "  @property\n"
      "  def x(self): 'Getter.'\n"
      "  @x.setter\n"
      "  @other\n"
      "  def x(self, v): 'Setter.'\n"
      "  @x.deleter\n"
      "  def x(self): pass\n"
      "  @y.setter\n"
      "  def z(self): 'Z.'\n"
      "  @f.register\n"
      "  def w(self): 'W.'\n";
  CHECK(docstring(property, "C.x") == "Getter.");
  CHECK(docstring(property, "C.z") == "Z.");
  CHECK(docstring(property, "C.w") == "W.");
}

TEST_CASE("which first statements are docstrings") {
  const std::pair<const char*, const char*> cases[] = {
      {"'a'", "a"},
      {"'a' # comment", "a"},
      {"'a' 'b'\"c\"", "abc"},
      {"'a' \\\n  'b'", "ab"},
      {"('a'\n 'b')", "ab"},
      {"(('a')); x", "a"},
      {"'a';", "a"},
      {"r'\\n' '\\n.'", "\\n\n."},
      {"U'a'", "a"},
      {"'''a''' '''b'''", "ab"},
      {"''''a'''", "'a"},
      {"''", ""},
      {"''''''", ""},
      {"'''a\\\nb'''", "ab"},
      {"b'a'", ""},
      {"f'a'", ""},
      {"rb'a'", ""},
      {"'a' f'b'", ""},
      {"t'a'", ""},
      {"'a', 'b'", ""},
      {"('a',)", ""},
      {"('a') ('b')", ""},
      {"('a') 'b'", ""},
      {"'a'.upper()", ""},
      {"'a' + 'b'", ""},
      {"'a' if x else 'b'", ""},
      {"'a'[0]", ""},
      {"x = 'a'", ""},
      {"()", ""},
      {"x", ""},
      {"...", ""},
      {"not 'a'", ""},
  };
  for (const auto& [statement, expected] : cases) {
    const std::string shown = statement;
    CAPTURE(shown);
    const std::string wanted = expected;
    CHECK(docstring(shown, "") == wanted);
    CHECK(docstring("def f(): " + shown + "\n", "f") == wanted);
    CHECK(docstring("class f:\n  " + shown + "\n  pass\n", "f") == wanted);
    CHECK(docstring("class f:\r\n\r\n  " + shown + "\r\n  pass", "f") == wanted);
  }
  CHECK(docstring("def f():\n  x\n  'a'\n", "f") == "");
  CHECK(docstring("x\n'a'\n", "") == "");
}

TEST_CASE("escapes are read as Python reads them") {
  CHECK(docstring(R"('\a\b\f\v\\\'\"')", "") == "\a\b\f\v\\'\"");
  CHECK(docstring(R"('.\tb\n\r.')", "") == ".       b\n\r.");
  CHECK(docstring(R"('\x41\u00e9\U0001f600\101\7\1234')", "") ==
        "A\xc3\xa9\xf0\x9f\x98\x80"
        "A\aS4");
  CHECK(docstring(R"('\777\xff')", "") == "\xc7\xbf\xc3\xbf");
  CHECK(docstring(R"('\q\N{DASH}\8')", "") == R"(\q\N{DASH}\8)");
  CHECK(docstring(R"('\ud83d')", "") == "\xef\xbf\xbd");
  CHECK(docstring(R"(r'\x\u\'')", "") == R"(\x\u\')");
  CHECK(docstring("'\xff'", "") == "\xef\xbf\xbd");
  for (const char* bad : {R"('\x4')", R"('\xg0')", R"('\u123')", R"('\U00110000')", R"('\U123')"}) {
    CAPTURE(std::string(bad));
    CHECK(docstring("x = 1\ndef f(): " + std::string(bad), "f") ==
          "parse 15: line 2: a string with an escape that is not whole");
  }
}

TEST_CASE("docstrings are cleaned as inspect.cleandoc does") {
  CHECK(docstring("'''  a\n      b\n\n        c\n    '''", "") == "a\nb\n\n  c");
  CHECK(docstring("'''\n\n    a\n\tb\n\n'''", "") == "a\n    b");
  CHECK(docstring("'''a\r\n  b\r  c'''", "") == "a\nb\nc");
  CHECK(docstring("'''a\n \xc3\xa9\tb\n '''", "") == "a\n\xc3\xa9      b");
  CHECK(docstring("'''   '''", "") == "");
  CHECK(docstring("'''a\n   \n  '''", "") == "a\n   \n  ");
}

TEST_CASE("strings, brackets and comments do not confuse the reader") {
  const std::string def = "\ndef f():\n  'F.'\n";
  for (const char* before : {"x = f'{a[\"b\"]}'",
                             "x = f'{{'",
                             "x = f'}}{x!r:>{w}.{p}}'",
                             "x = f'{x:%H:%M}'",
                             "x = f'{f\"{1}\"}'",
                             "x = f'{'a' + f'{b}'}'",
                             "x = f'''{\n1 # '''\n}'''",
                             "x = f'\\N{DASH}{x}'",
                             "x = rf'\\{x}'",
                             "x = f'\\{x}'",
                             "x = f'{(lambda: 1)()}'",
                             "x = f'{ {1: 2}[1] }'",
                             "x = f'{x=}'",
                             "x = f'{x:{{1:\n2}[1]}}'",
                             "x = '#' # '",
                             "x = '\\''",
                             "x = r'\\' '",
                             "x = '\\\n'",
                             "x = (1, # )\n[2], {3: '}'})",
                             "x = 1 if y else 0or\"a\"",
                             "x \\\n = 1",
                             "if x: y = 1",
                             "x: int = 3",
                             "x = lambda: 1",
                             "x = y[1:2]",
                             "print('''\ndef f():\n''')",
                             "@a.b(c)\nclass C: pass",
                             "async def h():\n  async with a: pass",
                             "\x0c",
                             "if x:\n\ty\n        z",
                             "if x:\n  y\n    # deeper comment\n # other\n  z",
                             "x = 1;",
                             "def g(): return 1; x = 2",
                             "class \xc3\xa9t\xc3\xa9: pass",
                             "if (y := 1): pass",
                             "if x:\n  \\\n  y\n  z\n",
                             "x = rb'\\'' + Rb'' + bR'\\\\'",
                             "x = f'{x!r}' 'a'",
                             "x = f\"{x:{'a'}}\""}) {
    CAPTURE(std::string(before));
    CHECK(docstring(before + def, "f") == "F.");
    CHECK(docstring("\xef\xbb\xbf" + (before + def), "f") == "F.");
  }
}

TEST_CASE("what is not understood is an error with its place") {
  const std::pair<const char*, const char*> cases[] = {
      {"x = (1", "parse 4: line 1: a bracket that is never closed"},
      {"y\nx = [(1)", "parse 6: line 2: a bracket that is never closed"},
      {"x = 1)", "parse 5: line 1: a bracket that was not opened"},
      {"x = (1]", "parse 6: line 1: a bracket that was not opened"},
      {"x = 'a", "parse 4: line 1: a string that is never closed"},
      {"x = 'a\n'", "parse 4: line 1: a string that is never closed"},
      {"\r\n\nx = '''a", "parse 7: line 3: a string that is never closed"},
      {"x = f'{a", "parse 4: line 1: a string that is never closed"},
      {"x = f'{a:'", "parse 4: line 1: a string that is never closed"},
      {"x = f'{a:'}'", "parse 4: line 1: a string that is never closed"},
      {"x = f'{\"a\n\"}'", "parse 7: line 1: a string that is never closed"},
      {"x = 'a\\", "parse 4: line 1: a string that is never closed"},
      {"x \\ y", "parse 2: line 1: a backslash that does not end its line"},
      {"x \\", "parse 2: line 1: a backslash that does not end its line"},
      {"if x:\ny", "parse 6: line 2: an indented line was expected"},
      {"if x:\n", "parse 6: line 2: an indented line was expected"},
      {"  x", "parse 2: line 1: an indentation that no line above has"},
      {"if x:\n    y\n  z", "parse 14: line 3: an indentation that no line above has"},
      {"x = 1\n  y", "parse 8: line 2: an indentation that no line above has"},
      {"def f(x)\n", "parse 0: line 1: a definition without a colon"},
      {"def (x): pass", "parse 0: line 1: a definition without a name"},
      {"class", "parse 0: line 1: a definition without a name"},
      {"x = 1 ? 2", "parse 6: line 1: a character that Python does not know"},
  };
  for (const auto& [source, expected] : cases) {
    const std::string shown = source;
    CAPTURE(shown);
    const std::string said = docstring(shown, "g");
    const std::string wanted = expected;
    CHECK(said == wanted);
  }
  CHECK(docstring(std::string_view("x = 1\0", 6), "g") == "parse 5: line 1: a NUL byte");
}

TEST_CASE("W-54: a docstring is read and nothing of the module runs") {
  TempDir temp;
  const std::string proof = temp / "proof";
  const std::string source = "'Module.'\nopen(" + ("'" + proof + "'") +
                             ", 'w').write('run')\nraise SystemExit(1)\n"
                             "def f(x=open('" +
                             proof + "', 'w')):\n  'F.'\n";
  CHECK(docstring(source, "f") == "F.");
  CHECK(docstring(source, "") == "Module.");
  CHECK_FALSE(support::exists(proof));
}

TEST_CASE("docstrings: no input makes it crash, hang or take more than linear time") {
  const std::string source =
      "'''M'''\nclass C(A, metaclass=B):\n  \"C\\x41\"\n  @x.setter\n  def f(self, a=f'{b!r:{c}}"
      "{f\"{d}\"}', *e) -> lambda: 1:\n    ('F' \\\n     'G')\n    if x:\n\ty = [1, {2: (3)}]\n"
      "  async def g(): r'G'; pass\nmatch x:\n  case _: pass\n";
  CHECK(docstring(source, "C.f") == "FG");
  for (std::size_t size = 0; size <= source.size(); ++size)
    for (const char* name : {"", "C", "C.f", "C.g"})
      (void)python_docstring(std::string(source.substr(0, size)), name);
  support::Random random;
  constexpr char pieces[] = "'\"\\{}()[]:;@#\n\r\t fFrRbBxuN0._=,defclassasynclambda\xc3\xa9";
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "" : source;
    const std::size_t edits = 1 + random.below(40);
    for (std::size_t i = 0; i < edits; ++i)
      text.insert(random.below(text.size() + 1), 1, pieces[random.below(sizeof pieces - 1)]);
    const auto result = python_docstring(text, round % 3 == 0 ? "" : "C.f");
    if (!result && result.error().code == ErrorCode::parse)
      REQUIRE(result.error().offset <= text.size());
  }
  // What nests or repeats a million times. A square of that would not end.
  const std::size_t many = 1000000;
  const auto repeated = [&](const std::string& piece) {
    std::string text;
    while (text.size() < many) text += piece;
    return text;
  };
  for (const char* piece : {"(", "f'{", "f'{x:{", "'a' ", "\\\n", "\n ", "@x.setter\n", "'",
                            "f'{f'", "lambda ", "if x:\n", "def f(): 'a'\n", "#", "\r", "\t"})
    (void)python_docstring(repeated(piece), "f");
  std::string deep;
  for (std::size_t i = 0; i < 1000; ++i) deep += std::string(i, ' ') + "if x:\n";
  deep += std::string(1000, ' ') + "def f(): 'deep'\n";
  CHECK(docstring(deep, "f") == "deep");
}
