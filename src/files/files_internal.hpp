// Places of files, their changes, and Python's tokens.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files.hpp"
#include "paths/elsewhere_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// An error when what is opened here is not data but the kernel's own state.
Expected<void> check_file_system(int fd, const std::string& path);

// Whether the rules give what is wanted.
Expected<void> check_permission(const PathRules& rules, const std::string& path, Permission wanted);

// Where a path leads, as far as the rules allow that.
Expected<std::string> permitted_path(const PathRules& rules, std::string_view path,
                                     std::string_view base, Permission wanted);

// Whether a path as it is written can only be a directory's.
bool names_a_directory(std::string_view path);

// A canonical path in two.
struct Place {
  std::string directory = {};
  std::string name = {};  // empty for the root directory
};

Place place_of(const std::string& path);

SharedError not_regular_error(const std::string& path, mode_t mode);

// A directory that has exactly this canonical path, for reading.
Expected<UniqueFd> open_listed_directory(const PathRules& rules, const std::string& path);

// Opens what is a regular file in an open directory; a pipe is not waited for.
Expected<UniqueFd> open_regular_file(int directory, const char* name, const std::string& path,
                                     struct stat& status);

// The same of what is known to be one, by fstatat().
Expected<UniqueFd> open_known_file(int directory, const char* name, const std::string& path,
                                   struct stat& status);

// A file that is to be replaced or made, in its open directory.
struct FileTarget {
  std::string path = {};
  std::string name = {};
  UniqueFd directory = {};
  bool exists = false;
  struct stat old = {};  // of what is there
  Function<std::string()> refused = {};
};

// Fails where the rules or the system do not permit a file of that size, and with what FileWrite
// forbids.
Expected<FileTarget> open_target(const PathRules& rules, std::string_view path,
                                 std::string_view base, std::size_t size, const FileWrite& how);

Expected<void> check_write_size(const std::string& path, std::size_t size);

// All of the bytes or none. Asks at the last moment whether what is there may be replaced.
Expected<void> put_bytes(const FileTarget& target, std::string_view bytes, bool only_new,
                         FunctionRef<bool()> may_replace);

// Lines around a change that a difference shows.
inline constexpr std::size_t diff_context = 3;

// A unified diff, with at most 400 bytes of each line, without its head. The texts begin behind so
// many lines of two files.
void append_hunks(std::string& diff, std::string_view old_text, std::string_view edited_text,
                  std::size_t old_line, std::size_t new_line);

// The same of whole files, with its head.
std::string unified_diff(std::string_view path, std::string_view old_text,
                         std::string_view edited_text);

inline std::size_t count_line_ends(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

inline bool is_line_break(char c) { return c == '\n' || c == '\r'; }

struct PythonToken {
  enum class Kind { word, text, mark, line_end };
  Kind kind = Kind::line_end;
  std::string_view text = {};
  std::size_t offset = 0;
  bool is_plain = false;  // of a text: neither bytes nor formatted
};

// What stands in front of a quote.
struct PythonPrefix {
  bool is_valid = true;
  bool is_raw = false;
  bool is_bytes = false;
  bool is_formatted = false;
};

PythonPrefix python_prefix(std::string_view text);

// Tokens, in order. After the first error there are only line ends.
class PythonLexer {
 public:
  explicit PythonLexer(std::string_view source);

  const std::optional<Error>& error() const { return error_; }
  std::size_t offset() const { return at_; }
  bool in_brackets() const { return !brackets_.empty(); }

  void fail(std::size_t offset, std::string_view what);

  // Skips lines with nothing on them and measures the next one; false at the end of the source.
  bool next_line(std::size_t& column);

  PythonToken next();

 private:
  // A string with fields in it, while it is read: in its text, in a field or in a field's format.
  struct Formatted {
    enum class Part { text, field, format };
    char quote = '"';
    bool is_triple = false;
    bool is_raw = false;
    Part part = Part::text;
    std::size_t brackets = 0;  // open in a field
    Formatted inside(Part inner) const { return {quote, is_triple, is_raw, inner, 0}; }
  };

  static bool is_quote(char c) { return c == '"' || c == '\''; }
  char peek(std::size_t ahead) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  PythonToken token(PythonToken::Kind kind, std::size_t begin, bool is_plain = false) const {
    return {kind, source_.substr(begin, at_ - begin), begin, is_plain};
  }
  void skip_comment() {
    while (at_ < source_.size() && !is_line_break(source_[at_])) ++at_;
  }
  void take_line_break();
  // A backslash and what it escapes; the end of a line is one thing.
  void take_escape();
  bool at_quotes(char quote, bool is_triple) const {
    return peek(0) == quote && (!is_triple || (peek(1) == quote && peek(2) == quote));
  }

  PythonToken mark();

  PythonToken word();

  // A string that begins at `begin`, of which the prefix was read.
  PythonToken text(std::size_t begin);

  Formatted take_quotes(const PythonPrefix& prefix);

  void skip_text(std::size_t begin, const Formatted& string);

  // As Python 3.12 reads them; what was valid before means the same.
  void skip_formatted(std::size_t begin, const Formatted& start);

  // False where the string cannot go on.
  bool step_in_text(std::vector<Formatted>& open);

  void step_in_field(std::vector<Formatted>& open);

  std::string_view source_;
  std::size_t at_ = 0;
  std::vector<std::size_t> brackets_ = {};  // offsets of those that are open
  std::optional<Error> error_ = {};
};

}  // namespace inner

// A question about files on another machine; it becomes the answer.
struct FileMessage {
  enum Question : std::uint64_t { canonical, read, write, list, edit, search };

  std::uint64_t numbers[6] = {};  // the first is the Question; of an answer 0, or 1 + an ErrorCode
  std::string path = {};
  std::string extra = {};
  std::string bytes = {};

  FileMessage() = default;
  FileMessage(Question question, std::string_view path);
  std::string text() const;
  // False: it is not as text() makes it.
  bool take(std::string_view text);
  void fail(const Error& error);
  Error error() const;
};

inline namespace inner {

// What Files does where the files are elsewhere.
Expected<std::string> canonical_elsewhere(const FilesElsewhere& there, std::string_view path,
                                          std::string_view base);
Expected<FileContent> read_elsewhere(const FilesElsewhere& there, std::string_view path,
                                     const FileRange& range);
Expected<std::string> write_elsewhere(const FilesElsewhere& there, std::string_view path,
                                      std::string_view bytes, const FileWrite& how);
Expected<FileEdited> edit_elsewhere(const FilesElsewhere& there, std::string_view path,
                                    const std::vector<FileEdit>& edits);
Expected<FileList> list_elsewhere(const FilesElsewhere& there, std::string_view path,
                                  std::size_t depth);
Expected<FileMatches> search_elsewhere(const FilesElsewhere& there, std::string_view path,
                                       const FileSearch& search);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
