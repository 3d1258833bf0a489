// Files on another machine: what is asked there, and what is answered here.

#include "files/files.hpp"
#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Before its texts stand the numbers and the sizes of the texts, in the order of bytes of all
// processors that an agent runs on.
std::string FileMessage::text() const {
  std::uint64_t head[12];
  std::memcpy(head, numbers, sizeof numbers);
  for (int i = 0; i < 4; ++i) head[8 + i] = texts[i].size();
  std::string text(reinterpret_cast<const char*>(head), sizeof head);
  for (const std::string& part : texts) text += part;
  return text;
}

bool FileMessage::take(std::string_view text) {
  std::uint64_t head[12];
  if (text.size() < sizeof head) return false;
  std::memcpy(head, text.data(), sizeof head);
  std::memcpy(numbers, head, sizeof numbers);
  text.remove_prefix(sizeof head);
  for (int i = 0; i < 4; ++i) {
    if (head[8 + i] > text.size()) return false;
    texts[i] = text.substr(0, static_cast<std::size_t>(head[8 + i]));
    text.remove_prefix(texts[i].size());
  }
  return text.empty();
}

void FileMessage::fail(const Error& error) {
  numbers[0] = static_cast<std::uint64_t>(error.code) + 1;
  numbers[1] = static_cast<std::uint64_t>(error.system_error);
  texts[bytes] = error.message;
}

Error FileMessage::error() const {
  Error error;
  constexpr auto last = static_cast<std::uint64_t>(ErrorCode::io);
  error.code = static_cast<ErrorCode>(std::min(numbers[0] - 1, last));
  error.system_error = static_cast<int>(numbers[1] & 0xffff);
  error.message = printable(texts[bytes]);
  return error;
}

FileMessage FileMessage::of(Question question, std::string_view path) {
  FileMessage message;
  message.numbers[0] = question;
  message.texts[FileMessage::path] = path;
  return message;
}

Expected<FileContent> FilesElsewhere::read(std::string_view path, const FileRange& range) const {
  FileMessage message = FileMessage::of(FileMessage::read, path);
  message.numbers[1] = static_cast<std::uint64_t>(range.unit);
  message.numbers[2] = range.offset;
  message.numbers[3] = range.count.value_or(~std::uint64_t{0});
  message.numbers[4] = range.max_bytes;
  if (auto ok = ask(message); !ok) return ok.error();
  FileContent content;
  content.path.swap(message.texts[FileMessage::path]);
  content.bytes.swap(message.texts[FileMessage::bytes]);
  if (content.bytes.size() > range.max_bytes) content.bytes.clear();
  content.size = message.numbers[1];
  content.begin = message.numbers[2];
  content.lines = message.numbers[3];
  content.next = message.numbers[4];
  content.more = (message.numbers[5] & 1) != 0;
  content.cut_line = (message.numbers[5] & 2) != 0;
  content.binary = (message.numbers[5] & 4) != 0;
  if (has_entry("image/png image/jpeg image/gif image/webp"sv, message.texts[FileMessage::folder]))
    content.mime_type.swap(message.texts[FileMessage::folder]);
  return content;
}

Expected<std::string> FilesElsewhere::write(std::string_view path, std::string_view bytes,
                                            const FileWrite& how) const {
  FileMessage message = FileMessage::of(FileMessage::write, path);
  message.numbers[1] = how.make_directories;
  message.numbers[2] = how.only_new;
  message.numbers[3] = how.remove;
  message.texts[FileMessage::folder] = how.below;
  // That there is a byte too many is told there.
  message.texts[FileMessage::bytes] = bytes.substr(0, Files::max_write + 1);
  if (auto ok = ask(message); !ok) return ok.error();
  return std::move(message.texts[FileMessage::path]);
}

Expected<FileList> FilesElsewhere::list(std::string_view path, std::size_t depth) const {
  FileMessage message = FileMessage::of(FileMessage::list, path);
  message.numbers[1] = depth;
  if (auto ok = ask(message); !ok) return ok.error();
  FileList list;
  list.path.swap(message.texts[FileMessage::path]);
  list.more = message.numbers[1] != 0;
  std::string_view rest = message.texts[FileMessage::bytes];
  std::uint64_t head[2];
  while (rest.size() >= sizeof head && list.entries.size() < Files::max_entries) {
    std::memcpy(head, rest.data(), sizeof head);
    rest.remove_prefix(sizeof head);
    FileEntry entry;
    entry.type = static_cast<FileEntry::Type>(head[0] & 3);
    entry.closed = (head[0] & 4) != 0;
    entry.size = head[1];
    entry.path = take_part(rest, '\0');
    entry.modified = take_part(rest, '\0');
    list.entries.push_back(std::move(entry));
  }
  return list;
}

const FilesElsewhere* Files::elsewhere(std::string_view path) const {
  if (!elsewhere_) return nullptr;
  const bool here = is_canonical_form(path) && codeexec::is_within(path, elsewhere_->here);
  return here ? nullptr : elsewhere_;
}

void Files::answer(FileMessage& message) const {
  std::uint64_t* const numbers = message.numbers;
  std::string& path = message.texts[FileMessage::path];
  std::string& folder = message.texts[FileMessage::folder];
  std::string& bytes = message.texts[FileMessage::bytes];
  const std::uint64_t question = std::exchange(numbers[0], 0);
  if (question == FileMessage::read) {
    FileRange range;
    range.unit = static_cast<FileRange::Unit>(numbers[1] & 1);
    range.offset = numbers[2];
    range.count = numbers[3];
    range.max_bytes = static_cast<std::size_t>(numbers[4]);
    auto content = read(path, range);
    if (!content) return message.fail(content.error());
    numbers[1] = content->size;
    numbers[2] = content->begin;
    numbers[3] = content->lines;
    numbers[4] = content->next;
    numbers[5] =
        (content->more ? 1U : 0U) | (content->cut_line ? 2U : 0U) | (content->binary ? 4U : 0U);
    path.swap(content->path);
    folder.swap(content->mime_type);
    bytes.swap(content->bytes);
  } else if (question == FileMessage::write) {
    FileWrite how;
    how.make_directories = numbers[1] != 0;
    how.only_new = numbers[2] != 0;
    how.remove = numbers[3] != 0;
    how.below.swap(folder);
    auto written = write(path, bytes, how);
    bytes.clear();
    if (!written) return message.fail(written.error());
    path.swap(*written);
  } else {
    auto found = list(path, static_cast<std::size_t>(numbers[1]));
    if (!found) return message.fail(found.error());
    numbers[1] = found->more;
    for (const FileEntry& entry : found->entries) {
      const std::uint64_t head[] = {
          static_cast<std::uint64_t>(entry.type) | (entry.closed ? 4U : 0U), entry.size};
      bytes.append(reinterpret_cast<const char*>(head), sizeof head);
      bytes.append(entry.path.c_str(), entry.path.size() + 1);
      bytes.append(entry.modified.c_str(), entry.modified.size() + 1);
    }
    path.swap(found->path);
  }
}

}  // namespace v0_1
}  // namespace codeexec
