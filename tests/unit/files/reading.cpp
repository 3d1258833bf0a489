// Reading: lines and bytes, bounds, and what is refused.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::FileEntry;
using codeexec::FileRange;
using codeexec::Files;
using support::files_in;
using support::files_with;
using support::has;
using support::problem;
using support::shape;
using support::TempDir;
using support::text_of;

namespace {

FileRange lines(std::uint64_t offset, std::uint64_t count = FileRange::all,
                std::size_t max_bytes = 1 << 18) {
  FileRange range;
  range.offset = offset;
  range.count = count;
  range.max_bytes = max_bytes;
  return range;
}

FileRange bytes(std::uint64_t offset, std::uint64_t count = FileRange::all,
                std::size_t max_bytes = 1 << 18) {
  FileRange range = lines(offset, count, max_bytes);
  range.by_bytes = true;
  return range;
}

}  // namespace

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
    const auto part = files.read("f", lines(0, FileRange::all, max_bytes));
    REQUIRE(part);
    CHECK(part->bytes == "one\n");
    CHECK(part->next == 1);
    CHECK(part->more);
    CHECK_FALSE(part->cut_line);
  }
  CHECK(text_of(files.read("f", lines(0, FileRange::all, 8))) == "one\ntwo\n");
  CHECK(text_of(files.read("f", lines(0, 2, 8))) == "one\ntwo\n");
  CHECK(text_of(files.read("f", lines(0, 2, 7))) == "one\n");
  CHECK(problem(files.read("f", lines(0, FileRange::all, 0))) ==
        "invalid_argument: max_bytes: must be at least 1");
}

TEST_CASE("a line that does not fit is cut, and its rest is read by bytes") {
  TempDir temp;
  temp.file("f", "ab\n0123456789\nend\n");
  const Files files = files_in(temp.path());
  const auto cut = files.read("f", lines(1, FileRange::all, 6));
  REQUIRE(cut);
  CHECK(cut->bytes == "012345");
  CHECK(cut->cut_line);
  CHECK(cut->more);
  CHECK(cut->lines == 1);
  CHECK(cut->next == 2);
  CHECK(text_of(files.read("f", bytes(cut->begin + cut->bytes.size(), 5))) == "6789\n");
  CHECK(text_of(files.read("f", lines(cut->next, FileRange::all, 6))) == "end\n");
  // It fits exactly, but for its line end.
  const auto nearly = files.read("f", lines(1, FileRange::all, 10));
  REQUIRE(nearly);
  CHECK(nearly->bytes == "0123456789");
  CHECK(nearly->cut_line);
  const auto fits = files.read("f", lines(1, FileRange::all, 11));
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
    FileRange range = lines(0, FileRange::all, max_bytes);
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
    range = bytes(0, FileRange::all, max_bytes);
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
  for (const FileRange& range : {lines(0, FileRange::all, 5), bytes(0, FileRange::all, 5)}) {
    const auto part = files.read("f", range);
    REQUIRE(part);
    CHECK(part->bytes == euro);
    CHECK(part->more);
    CHECK_FALSE(part->binary);
  }
  CHECK(files.read("f", bytes(0, FileRange::all, 5))->next == 3);
  // What is asked for is given, and is text all the same.
  const auto part = files.read("f", bytes(1, 7));
  REQUIRE(part);
  CHECK(part->bytes == (euro + euro + euro).substr(1, 7));
  CHECK_FALSE(part->binary);
  // Less than a character is better than nothing for ever.
  const auto one = files.read("f", bytes(0, FileRange::all, 1));
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
    const auto cut = files.read("f", lines(1, FileRange::all, 1000));
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
