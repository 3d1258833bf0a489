// Reading a range of a file.

#include "files/files.hpp"
#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Expected<UniqueFd> open_regular_file(int directory, const char* name, const std::string& path,
                                     struct stat& status) {
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return system_error(errno, "%", {in_quotes(path)});
  if (!S_ISREG(status.st_mode)) return not_regular_error(path, status.st_mode);
  return open_known_file(directory, name, path, status);
}

Expected<UniqueFd> open_known_file(int directory, const char* name, const std::string& path,
                                   struct stat& status) {
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  UniqueFd fd(above_standard_streams(::openat(directory, name, flags)));
  if (!fd && (errno == ELOOP || errno == EMLINK)) return not_regular_error(path, S_IFLNK);
  if (!fd || ::fstat(fd.get(), &status) != 0) return system_error(errno, "%", {in_quotes(path)});
  if (!S_ISREG(status.st_mode)) return not_regular_error(path, status.st_mode);
  if (auto ok = check_file_system(fd.get(), path); !ok) return ok.failure();
  return fd;
}

}  // namespace inner

namespace {

constexpr std::size_t file_buffer = 65536;

// Reads at any place of a file and keeps the first error.
class FileReader {
 public:
  explicit FileReader(int fd) : fd_(fd) {}

  // Fewer than `size` bytes only at the end of the file, or after an error.
  std::size_t read(std::uint64_t offset, char* to, std::size_t size) {
    std::size_t done = 0;
    while (done < size && error_ == 0) {
      const auto at = static_cast<off_t>(offset + done);
      // No file is longer than an off_t can hold.
      if (at < 0 || static_cast<std::uint64_t>(at) != offset + done) break;
      const ssize_t got = ::pread(fd_, to + done, size - done, at);
      if (got < 0 && errno == EINTR) continue;
      // The range would end where no file can.
      if (got < 0 && (errno == EOVERFLOW || errno == EINVAL)) break;
      if (got < 0) error_ = errno;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  bool has_byte(std::uint64_t offset) {
    char byte = 0;
    return read(offset, &byte, 1) == 1;
  }
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
};

struct LineStart {
  std::uint64_t offset = 0;  // of its first byte
  std::uint64_t line = 0;    // its number, or that of all lines when there are not so many
  bool is_too_far = false;   // not within max_scan
};

// Where a line begins; the end of the file when there is no such line.
LineStart find_line(FileReader& reader, std::uint64_t wanted) {
  LineStart found;
  std::string buffer(file_buffer, '\0');
  bool is_open = false;  // the bytes before found.offset do not end with a line end
  while (found.line < wanted) {
    found.is_too_far = found.offset >= Files::max_scan && reader.has_byte(found.offset);
    if (found.is_too_far) return found;
    const std::size_t size = reader.read(found.offset, &buffer[0], buffer.size());
    if (size == 0) break;
    const char* at = buffer.data();
    const char* const end = at + size;
    while (at < end && found.line < wanted) {
      const void* const newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      is_open = !newline;
      at = newline ? static_cast<const char*>(newline) + 1 : end;
      if (newline) ++found.line;
    }
    found.offset += static_cast<std::uint64_t>(at - buffer.data());
  }
  if (found.line < wanted && is_open) ++found.line;
  return found;
}

std::uint64_t count_lines(std::string_view bytes) {
  return count_line_ends(bytes) + (bytes.empty() || bytes.back() == '\n' ? 0 : 1);
}

// Takes a character off the end that is not whole, unless there is nothing else.
void drop_cut_character(std::string& bytes) {
  const std::size_t cut = cut_at_end(bytes);
  if (cut < bytes.size()) bytes.resize(bytes.size() - cut);
}

// Reads from content.begin on what the range asks for, and sets bytes, more and cut_line.
void read_range(FileReader& reader, const FileRange& range, FileContent& content) {
  const bool by_lines = !range.by_bytes;
  const std::uint64_t count = range.count;
  // One byte more is read, to see whether there is more.
  std::size_t most = std::min(range.max_bytes, ~std::size_t{0} - 1);
  if (!by_lines && count < most) most = static_cast<std::size_t>(count);
  std::string& bytes = content.bytes;
  const std::uint64_t left = content.size > content.begin ? content.size - content.begin : 0;
  if (count > 0) bytes.reserve(left < most ? static_cast<std::size_t>(left) + 1 : most + 1);

  std::uint64_t lines = 0;
  while (bytes.size() <= most && (!by_lines || lines < count)) {
    const std::size_t before = bytes.size();
    const std::size_t size = std::min(file_buffer, most + 1 - before);
    bytes.resize(before + size);
    bytes.resize(before + reader.read(content.begin + before, &bytes[before], size));
    if (bytes.size() == before) break;
    if (!by_lines) continue;
    std::size_t end = bytes.find('\n', before);
    while (end != std::string::npos && ++lines < count) end = bytes.find('\n', end + 1);
    if (end != std::string::npos) bytes.resize(end + 1);
  }
  if (bytes.size() <= most) {
    content.more = reader.has_byte(content.begin + bytes.size());
    return;
  }
  content.more = true;
  if (!by_lines) {
    bytes.resize(most);
    if (count > most) drop_cut_character(bytes);
    return;
  }
  const std::size_t last_end = bytes.rfind('\n', most - 1);
  content.cut_line = last_end == std::string::npos;
  bytes.resize(content.cut_line ? most : last_end + 1);
  if (content.cut_line) drop_cut_character(bytes);
}

bool is_binary(const FileContent& content, bool by_bytes) {
  std::string_view text = content.bytes;
  if (has_nul(text)) return true;
  if (by_bytes && content.begin > 0) text.remove_prefix(cut_at_start(text));
  if (content.more) text.remove_suffix(cut_at_end(text));
  return !is_utf8(text);
}

std::string_view image_type(std::string_view start) {
  if (starts_with(start, "\x89PNG\r\n\x1a\n"sv)) return "image/png";
  if (starts_with(start, "\xff\xd8\xff"sv)) return "image/jpeg"sv;
  if (starts_with(start, "GIF87a"sv) || starts_with(start, "GIF89a"sv)) return "image/gif";
  if (starts_with(start, "RIFF"sv) && start.size() >= 12 && start.substr(8, 4) == "WEBP"sv)
    return "image/webp"sv;
  return {};
}

}  // namespace

Expected<FileContent> Files::read(std::string_view path, const FileRange& range) const {
  if (const FilesElsewhere* const there = elsewhere(path))
    return read_elsewhere(*there, path, range);
  if (const std::string here = moved_path(path); !here.empty()) {
    auto found = Files(rules_, base_).read(here, range);
    if (!found) return moved_->as_seen(found.error());
    found->path = moved_->as_seen(std::move(found->path));
    return found;
  }
  if (range.max_bytes == 0)
    return make_error(ErrorCode::invalid_argument, "max_bytes: must be at least 1");
  auto place = permitted_path(rules_, path, base_, Permission::read);
  if (!place) return place.failure();
  if (names_a_directory(path)) return not_regular_error(*place, S_IFDIR);
  const Place in = place_of(*place);
  const auto directory = open_canonical_directory(in.directory);
  if (!directory) return system_error(directory.error().system_error, "%", {in_quotes(*place)});
  if (in.name.empty()) return not_regular_error(*place, S_IFDIR);
  struct stat status {};
  const auto fd = open_regular_file(directory->get(), in.name.c_str(), *place, status);
  if (!fd) return fd.failure();

  FileReader reader(fd->get());
  FileContent content;
  content.path = std::move(*place);
  content.size = static_cast<std::uint64_t>(status.st_size);
  const bool by_lines = !range.by_bytes;
  if (by_lines) {
    const LineStart start = find_line(reader, range.offset);
    if (start.is_too_far)
      return make_error(ErrorCode::limit,
                        "%: line % lies beyond the first % bytes; read that part by bytes",
                        {in_quotes(content.path), range.offset, max_scan});
    content.begin = start.offset;
    content.next = start.line;
    if (start.line == range.offset) read_range(reader, range, content);
  } else {
    content.begin = range.offset;
    read_range(reader, range, content);
    if (content.bytes.empty() && !content.more)
      content.begin = std::min(content.begin, content.size);
  }
  content.lines = count_lines(content.bytes);
  const std::uint64_t end = content.begin + content.bytes.size();
  content.next = by_lines ? content.next + content.lines : end;
  // What was seen is there, whatever the system says of a size.
  content.size = std::max(content.size, end + (content.more ? 1 : 0));
  content.binary = is_binary(content, range.by_bytes);
  char start[12];
  content.mime_type = image_type({start, reader.read(0, start, sizeof start)});
  if (reader.error() != 0) return system_error(reader.error(), "%", {in_quotes(content.path)});
  return content;
}

}  // namespace v0_1
}  // namespace codeexec
