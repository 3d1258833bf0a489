// Files on another machine: what is asked there, and what is answered here.

#include "files/files.hpp"
#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Numbers stand in the order of bytes that all processors have that an agent runs on.
constexpr std::size_t number_size = sizeof(std::uint64_t);

std::string_view bytes_of(const std::uint64_t* numbers, std::size_t count) {
  return {reinterpret_cast<const char*>(numbers), count * number_size};
}

// False: the text is too short.
bool take_numbers(std::string_view& text, std::uint64_t* numbers, std::size_t count) {
  const std::size_t size = count * number_size;
  if (text.size() < size) return false;
  std::memcpy(numbers, text.data(), size);
  text.remove_prefix(size);
  return true;
}

constexpr std::uint64_t FileContent::*const content_numbers[] = {
    &FileContent::size, &FileContent::begin, &FileContent::lines, &FileContent::next};
constexpr bool FileContent::*const content_flags[] = {&FileContent::more, &FileContent::cut_line,
                                                      &FileContent::binary};

constexpr std::uint64_t FileMatches::*const match_numbers[] = {
    &FileMatches::matches, &FileMatches::ignored, &FileMatches::binary, &FileMatches::unreadable};

// The texts of edits, each behind its size and what else there is of it.
std::string bytes_of_edits(const std::vector<FileEdit>& edits) {
  std::string bytes;
  for (const FileEdit& edit : edits) {
    const std::uint64_t head[] = {edit.all, edit.old_text.size(), edit.new_text.size()};
    append_all(bytes, {bytes_of(head, std::size(head)), edit.old_text, edit.new_text});
  }
  return bytes;
}

std::vector<FileEdit> edits_of_bytes(std::string_view bytes) {
  std::vector<FileEdit> edits;
  std::uint64_t head[3];
  while (edits.size() <= Files::max_edits && take_numbers(bytes, head, std::size(head))) {
    FileEdit& edit = edits.emplace_back();
    edit.all = head[0] != 0;
    std::string* const texts[] = {&edit.old_text, &edit.new_text};
    for (int i = 0; i < 2; ++i) {
      *texts[i] = bytes.substr(0, static_cast<std::size_t>(head[i + 1]));
      bytes.remove_prefix(texts[i]->size());
    }
  }
  return edits;
}

}  // namespace

FileMessage::FileMessage(Question question, std::string_view asked) : path(asked) {
  numbers[0] = question;
}

// The numbers, the sizes of the first two texts, and the three texts.
std::string FileMessage::text() const {
  const std::uint64_t sizes[] = {path.size(), extra.size()};
  return concat({bytes_of(numbers, std::size(numbers)), bytes_of(sizes, 2), path, extra, bytes});
}

bool FileMessage::take(std::string_view text) {
  std::uint64_t sizes[2];
  if (!take_numbers(text, numbers, std::size(numbers)) || !take_numbers(text, sizes, 2))
    return false;
  std::string* const parts[] = {&path, &extra};
  for (int i = 0; i < 2; ++i) {
    if (sizes[i] > text.size()) return false;
    *parts[i] = text.substr(0, static_cast<std::size_t>(sizes[i]));
    text.remove_prefix(parts[i]->size());
  }
  bytes = text;
  return true;
}

void FileMessage::fail(const Error& error) {
  numbers[0] = static_cast<std::uint64_t>(error.code) + 1;
  numbers[1] = static_cast<std::uint64_t>(error.system_error);
  bytes = error.message;
}

Error FileMessage::error() const {
  Error error;
  constexpr auto last = static_cast<std::uint64_t>(ErrorCode::io);
  error.code = static_cast<ErrorCode>(std::min(numbers[0] - 1, last));
  error.system_error = static_cast<int>(numbers[1] & 0xffff);
  error.message = printable(bytes);
  return error;
}

inline namespace inner {

Expected<std::string> canonical_elsewhere(const FilesElsewhere& there, std::string_view path,
                                          std::string_view base) {
  FileMessage message(FileMessage::canonical, path);
  message.extra = base;
  if (auto ok = there.ask(message); !ok) return ok.failure();
  return std::move(message.path);
}

Expected<FileContent> read_elsewhere(const FilesElsewhere& there, std::string_view path,
                                     const FileRange& range) {
  FileMessage message(FileMessage::read, path);
  message.numbers[1] = range.by_bytes ? 1 : 0;
  message.numbers[2] = range.offset;
  message.numbers[3] = range.count;
  message.numbers[4] = range.max_bytes;
  if (auto ok = there.ask(message); !ok) return ok.failure();
  Expected<FileContent> found = FileContent();
  FileContent& content = *found;
  content.path.swap(message.path);
  if (message.bytes.size() <= range.max_bytes) content.bytes.swap(message.bytes);
  const std::uint64_t* number = message.numbers;
  for (const auto member : content_numbers) content.*member = *++number;
  std::uint64_t flags = *++number;
  for (const auto member : content_flags) {
    content.*member = (flags & 1) != 0;
    flags >>= 1;
  }
  if (is_any(message.extra, "image/png", "image/jpeg", "image/gif", "image/webp"))
    content.mime_type.swap(message.extra);
  return found;
}

Expected<std::string> write_elsewhere(const FilesElsewhere& there, std::string_view path,
                                      std::string_view bytes, const FileWrite& how) {
  FileMessage message(FileMessage::write, path);
  message.numbers[1] = how.make_directories;
  message.numbers[2] = how.only_new;
  message.numbers[3] = how.remove;
  message.extra = how.below;
  // With one byte too many, the far end refuses it as too long.
  message.bytes = bytes.substr(0, Files::max_write + 1);
  if (auto ok = there.ask(message); !ok) return ok.failure();
  return std::move(message.path);
}

Expected<FileEdited> edit_elsewhere(const FilesElsewhere& there, std::string_view path,
                                    const std::vector<FileEdit>& edits) {
  FileMessage message(FileMessage::edit, path);
  message.bytes = bytes_of_edits(edits);
  if (auto ok = there.ask(message); !ok) return ok.failure();
  Expected<FileEdited> edited = FileEdited();
  edited->path.swap(message.path);
  edited->replaced = message.numbers[1];
  edited->diff = message.bytes.substr(0, Files::max_diff);
  return edited;
}

Expected<FileList> list_elsewhere(const FilesElsewhere& there, std::string_view path,
                                  std::size_t depth) {
  FileMessage message(FileMessage::list, path);
  message.numbers[1] = depth;
  if (auto ok = there.ask(message); !ok) return ok.failure();
  Expected<FileList> found = FileList();
  FileList& list = *found;
  list.path.swap(message.path);
  list.more = message.numbers[1] != 0;
  list.ignored = message.numbers[2];
  std::string_view rest = message.bytes;
  std::uint64_t head[2];
  while (list.entries.size() < Files::max_entries && take_numbers(rest, head, 2)) {
    FileEntry entry;
    entry.type = static_cast<FileEntry::Type>(head[0] & 3);
    entry.closed = (head[0] & 4) != 0;
    entry.size = head[1];
    entry.path = take_part(rest, '\0');
    entry.modified = take_part(rest, '\0');
    list.entries.push_back(std::move(entry));
  }
  return found;
}

Expected<FileMatches> search_elsewhere(const FilesElsewhere& there, std::string_view path,
                                       const FileSearch& search) {
  FileMessage message(FileMessage::search, path);
  message.extra = search.pattern;
  message.bytes = search.glob;
  std::uint64_t* number = message.numbers;
  *++number = search.context;
  *++number = search.files_only;
  *++number = search.max_matches;
  *++number = search.max_bytes;
  *++number = static_cast<std::uint64_t>(search.timeout.count());
  if (auto ok = there.ask(message); !ok) return ok.failure();
  Expected<FileMatches> found = FileMatches();
  FileMatches& matches = *found;
  matches.path.swap(message.path);
  matches.text = message.bytes.substr(0, search.max_bytes);
  number = message.numbers;
  for (const auto member : match_numbers) matches.*member = *++number;
  matches.more = *++number != 0;
  return found;
}

}  // namespace inner

const FilesElsewhere* Files::elsewhere(std::string_view path) const {
  if (!elsewhere_) return nullptr;
  const bool here = is_canonical_form(path) && codeexec::is_within(path, elsewhere_->here);
  return here ? nullptr : elsewhere_;
}

void Files::answer_read(FileMessage& message) const {
  std::uint64_t* number = message.numbers;
  FileRange range;
  range.by_bytes = (number[1] & 1) != 0;
  range.offset = number[2];
  range.count = number[3];
  range.max_bytes = static_cast<std::size_t>(number[4]);
  auto content = read(message.path, range);
  if (!content) return message.fail(content.error());
  for (const auto member : content_numbers) *++number = (*content).*member;
  std::uint64_t bit = 1;
  *++number = 0;
  for (const auto member : content_flags) {
    if ((*content).*member) *number |= bit;
    bit <<= 1;
  }
  message.path.swap(content->path);
  message.extra.swap(content->mime_type);
  message.bytes.swap(content->bytes);
}

void Files::answer_list(FileMessage& message) const {
  auto found = list(message.path, static_cast<std::size_t>(message.numbers[1]));
  if (!found) return message.fail(found.error());
  message.numbers[1] = found->more;
  message.numbers[2] = found->ignored;
  for (const FileEntry& entry : found->entries) {
    const std::uint64_t head[] = {static_cast<std::uint64_t>(entry.type) | (entry.closed ? 4U : 0U),
                                  entry.size};
    append_all(message.bytes, {bytes_of(head, 2), entry.path, "\0"sv, entry.modified, "\0"sv});
  }
  message.path.swap(found->path);
}

void Files::answer_search(FileMessage& message) const {
  FileSearch asked;
  asked.pattern.swap(message.extra);
  asked.glob.swap(message.bytes);
  std::uint64_t* number = message.numbers;
  asked.context = static_cast<std::size_t>(*++number);
  asked.files_only = *++number != 0;
  asked.max_matches = static_cast<std::size_t>(*++number);
  asked.max_bytes = static_cast<std::size_t>(*++number);
  asked.timeout = std::chrono::milliseconds(*++number);
  auto found = search(message.path, asked);
  if (!found) return message.fail(found.error());
  number = message.numbers;
  for (const auto member : match_numbers) *++number = (*found).*member;
  *++number = found->more;
  message.path.swap(found->path);
  message.bytes.swap(found->text);
}

void Files::answer(FileMessage& message) const {
  std::uint64_t* const number = message.numbers;
  const std::uint64_t question = std::exchange(*number, 0);
  if (question == FileMessage::read) return answer_read(message);
  if (question == FileMessage::list) return answer_list(message);
  if (question == FileMessage::search) return answer_search(message);
  if (question == FileMessage::edit) {
    auto edited = edit(message.path, edits_of_bytes(message.bytes));
    if (!edited) return message.fail(edited.error());
    number[1] = edited->replaced;
    message.path.swap(edited->path);
    message.bytes.swap(edited->diff);
    return;
  }
  FileWrite how;
  how.make_directories = number[1] != 0;
  how.only_new = number[2] != 0;
  how.remove = number[3] != 0;
  how.below.swap(message.extra);
  auto found = question == FileMessage::write ? write(message.path, message.bytes, how)
                                              : canonical_path(message.path, how.below);
  message.bytes.clear();
  if (!found) return message.fail(found.error());
  message.path.swap(*found);
}

}  // namespace v0_1
}  // namespace codeexec
