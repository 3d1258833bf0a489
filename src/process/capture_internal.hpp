// What is kept of a stream, and what is masked in it.
#pragma once

#include "process/process.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Keeps the beginning and the end of a stream of any length in at most `max_bytes` of memory (in
// blocks of up to 64 KiB, allocated as data arrives). Not thread-safe.
class Capture {
 public:
  // Half of max_bytes (rounded down) is kept from the start, the rest from the end.
  explicit Capture(std::size_t max_bytes);
  // So many bytes are kept from the start (at most max_bytes); with 0 it is a ring.
  Capture(std::size_t max_bytes, std::size_t head_bytes);
  void add(std::string_view bytes);
  // Adds what one readv() gives, at most `most` bytes, without a copy. Its result, and errno.
  ssize_t read_from(int fd, std::size_t most);
  std::uint64_t total_bytes() const noexcept { return total_; }

  // What is kept, as well-formed UTF-8: each maximal invalid subpart is one U+FFFD, no character is
  // cut in two. When bytes were dropped, this line stands in their place:
  //   "\n... (truncated, exceeded <max_bytes> bytes: <n> bytes omitted) ...\n"
  // Sets the first three of `counts`, when given.
  std::string text(OutputCounts* counts = nullptr) const;

  // What came after the first `cursor` bytes, see OutputChunk, whose `file` is left empty.
  OutputChunk read(std::uint64_t cursor, bool ended, std::size_t max_lines = unbounded) const;
  // What stands in the text of read() for bytes that are missing.
  static std::string gap(std::uint64_t missed);

  // Calls `use` with the kept bytes from offset `begin` to `end` of the stream, piece by piece.
  void visit(std::uint64_t begin, std::uint64_t end, FunctionRef<void(std::string_view)> use) const;

 private:
  friend class Process;
  static constexpr std::size_t block_size = 65536;
  bool keeps_only_end(std::size_t size) const noexcept;
  char* room(std::uint64_t offset, std::size_t& size);
  void grow_first(std::size_t size);
  std::size_t position(std::uint64_t offset) const noexcept;
  std::size_t contiguous(std::size_t position) const noexcept;
  std::uint64_t tail_begin() const noexcept;
  std::uint64_t last_lines(std::uint64_t begin, std::size_t& count) const;
  std::string bytes(std::uint64_t begin, std::uint64_t end) const;

  std::size_t max_bytes_ = 0;
  std::size_t head_size_ = 0;
  std::uint64_t total_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_ = {};
  std::size_t first_size_ = 0;  // of the first block, which grows: most streams are short
};

// Masks secrets in a stream that comes in pieces. Every byte that is part of an occurrence goes;
// occurrences that overlap become one mask, those that only touch one each. Line ends at the end of
// a secret do not count as part of it: `echo` prints them, `$(...)` does not. Linear in the bytes,
// whatever the secrets are (Aho-Corasick). Takes about 20 bytes of memory for each byte of all
// secrets, shared by copies, and holds back at most the longest one. Not thread-safe; a copy goes
// on with a stream of its own.
class Redactor {
 public:
  static constexpr std::size_t min_size = 4;  // shorter ones are left out: they would hit by chance
  // Bytes of all secrets together. Options that take secrets refuse more. A Redactor works with up
  // to 4 GiB, and takes the memory.
  static constexpr std::size_t max_total = std::size_t{1} << 20;
  static constexpr std::string_view mask = "[redacted]";

  // Masks nothing.
  Redactor() = default;
  explicit Redactor(const std::vector<std::string>& secrets);
  bool empty() const noexcept { return !table_; }

  // What is known of the stream so far that was not returned before: `bytes`, after what was held
  // back because a secret might have begun there. No byte is held back longer than that. Valid
  // until the next call, and as long as `bytes` are: most of it is part of them.
  std::string_view add(std::string_view bytes);
  // The rest, at the end of the stream. What is added later begins another.
  std::string_view finish();
  // Masks returned so far.
  std::uint64_t count() const noexcept { return count_; }

  // A whole text at once.
  std::string redact(std::string_view text) const;

 private:
  struct Table;
  std::string_view scan(std::string_view piece);
  void found(std::uint64_t begin, std::uint64_t end);
  void settle(std::uint64_t limit, std::string_view piece);
  void give(std::uint64_t end, std::string_view piece);

  // Offsets count bytes from the start of the stream.
  std::shared_ptr<const Table> table_ = {};
  std::size_t state_ = 0;           // of the automaton
  std::uint64_t position_ = 0;      // bytes taken
  std::uint64_t decided_ = 0;       // bytes before this one were returned or masked
  std::uint64_t masked_until_ = 0;  // the end of what the last returned mask stands for
  // To be masked, from the first to before the second byte; in order, not overlapping.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans_ = {};
  std::size_t first_span_ = 0;  // those before it are done
  std::string held_ = {};       // the last bytes taken: all that are not decided, or more
  std::string out_ = {};
  std::uint64_t count_ = 0;
};

}  // namespace v0_1
}  // namespace codeexec
