// The head and the tail of an output, within a bound.

#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

int open_spill_file(int directory, std::string_view suffix, std::string& name) {
  const std::string random = random_hex(12);
  if (random.empty()) return -1;
  name = concat("codeexec-%%", {random, suffix});
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  return above_standard_streams(::openat(directory, name.c_str(), flags, 0600));
}

}  // namespace inner

const char* name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::exited:
      return "exited";
    case Outcome::signaled:
      return "signaled";
    case Outcome::timed_out:
      return "timed_out";
    case Outcome::cancelled:
      return "cancelled";
    case Outcome::refused:
      return "refused";
    case Outcome::not_started:
      return "not_started";
    case Outcome::unknown:
      return "unknown";
  }
  return "";
}

// The kept bytes lie in one row of blocks: first the head, then the tail as a ring. As long as
// nothing was dropped the position is the offset.
Capture::Capture(std::size_t max_bytes) : Capture(max_bytes, max_bytes / 2) {}

Capture::Capture(std::size_t max_bytes, std::size_t head_bytes)
    : max_bytes_(max_bytes), head_size_(std::min(max_bytes, head_bytes)) {}

std::size_t Capture::position(std::uint64_t offset) const noexcept {
  if (offset < head_size_) return static_cast<std::size_t>(offset);
  return head_size_ + static_cast<std::size_t>((offset - head_size_) % (max_bytes_ - head_size_));
}

// Bytes from a position to the end of its block, of the head or of the ring.
std::size_t Capture::contiguous(std::size_t position) const noexcept {
  const std::size_t block_end = (position / block_size + 1) * block_size;
  const std::size_t part_end = position < head_size_ ? head_size_ : max_bytes_;
  return std::min(block_end, part_end) - position;
}

std::uint64_t Capture::tail_begin() const noexcept {
  if (total_ <= max_bytes_) return std::min<std::uint64_t>(total_, head_size_);
  return total_ - (max_bytes_ - head_size_);
}

// A flood is read as fast as if it were thrown away.
ssize_t Capture::read_from(int fd, std::size_t most) {
  // A read of 64 KiB lies in two blocks at most, and in two parts when the ring begins again.
  constexpr int most_pieces = 4;
  iovec pieces[most_pieces];
  int count = 0;
  for (std::size_t planned = 0; planned < most && count < most_pieces; ++count) {
    std::size_t size = most - planned;
    pieces[count].iov_base = room(total_ + planned, size);
    pieces[count].iov_len = size;
    planned += size;
  }
  const ssize_t size = ::readv(fd, pieces, count);
  if (size > 0) total_ += static_cast<std::uint64_t>(size);
  return size;
}

void Capture::add(std::string_view bytes) {
  const std::size_t tail_size = max_bytes_ - head_size_;
  while (!bytes.empty()) {
    // What the same call would overwrite again is not copied.
    if (total_ >= head_size_ && bytes.size() > tail_size) {
      total_ += bytes.size() - tail_size;
      bytes.remove_prefix(bytes.size() - tail_size);
      if (bytes.empty()) return;
    }
    std::size_t size = bytes.size();
    char* const place = room(total_, size);
    std::memcpy(place, bytes.data(), size);
    total_ += size;
    bytes.remove_prefix(size);
  }
}

// True when so many more bytes fit without overwriting each other, and as many have come already:
// large buffers are only allocated for streams that have shown to be large.
bool Capture::keeps_only_end(std::size_t size) const noexcept {
  return total_ >= std::max(head_size_, size) && max_bytes_ - head_size_ >= size;
}

// Where the byte at an offset goes; `size` is cut down to what is in one piece from there.
char* Capture::room(std::uint64_t offset, std::size_t& size) {
  const std::size_t at = position(offset);
  size = std::min(size, contiguous(at));
  if (at / block_size == 0 && at + size > first_size_) grow_first(at + size);
  while (blocks_.size() <= at / block_size) {
    const std::size_t begin = blocks_.size() * block_size;
    blocks_.push_back(std::unique_ptr<char[]>(new char[std::min(block_size, max_bytes_ - begin)]));
  }
  return blocks_[at / block_size].get() + at % block_size;
}

// At least by half, so that single bytes cost no more.
void Capture::grow_first(std::size_t size) {
  constexpr std::size_t smallest = 64;
  const std::size_t wanted = std::max({smallest, size, first_size_ + first_size_ / 2});
  const std::size_t grown = std::min({wanted, block_size, max_bytes_});
  std::unique_ptr<char[]> block(new char[grown]);
  if (blocks_.empty()) blocks_.push_back(std::unique_ptr<char[]>());
  if (first_size_ > 0) std::memcpy(block.get(), blocks_[0].get(), first_size_);
  blocks_[0] = std::move(block);
  first_size_ = grown;
}

void Capture::visit(std::uint64_t begin, std::uint64_t end,
                    FunctionRef<void(std::string_view)> use) const {
  while (begin < end) {
    const std::size_t at = position(begin);
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(contiguous(at), end - begin));
    use(std::string_view(blocks_[at / block_size].get() + at % block_size, size));
    begin += size;
  }
}

std::string Capture::bytes(std::uint64_t begin, std::uint64_t end) const {
  std::string result;
  result.reserve(static_cast<std::size_t>(end - begin));
  visit(begin, end, [&](std::string_view piece) { result.append(piece); });
  return result;
}

std::string Capture::text(OutputCounts* counts) const {
  std::uint64_t invalid = 0;
  std::uint64_t dropped = 0;
  std::string result;
  if (total_ <= max_bytes_) {
    std::string all = bytes(0, total_);
    result = is_utf8(all) ? std::move(all) : to_utf8(all, &invalid);
  } else {
    const std::string head = bytes(0, head_size_);
    const std::string tail = bytes(tail_begin(), total_);
    const std::size_t head_cut = cut_at_end(head);
    const std::size_t tail_cut = cut_at_start(tail);
    dropped = total_ - max_bytes_ + head_cut + tail_cut;
    const std::string_view head_kept = std::string_view(head).substr(0, head.size() - head_cut);
    const std::string_view tail_kept = std::string_view(tail).substr(tail_cut);
    result =
        concat("%\n... (truncated, exceeded % bytes: % bytes omitted) ...\n%",
               {to_utf8(head_kept, &invalid), max_bytes_, dropped, to_utf8(tail_kept, &invalid)});
  }
  if (counts) {
    counts->total_bytes = total_;
    counts->dropped_bytes = dropped;
    counts->invalid_bytes = invalid;
  }
  return result;
}

std::string Capture::gap(std::uint64_t missed) {
  return concat("\n... (% bytes omitted) ...\n", {missed});
}

// Where the last `count` lines begin of all that is kept from `begin` on, looking no further back
// than needed; a line without its end is one, too. When there are not as many, it is `begin`, and
// `count` is less by those before the last one.
std::uint64_t Capture::last_lines(std::uint64_t begin, std::size_t& count) const {
  if (count == 0 || begin >= total_) return total_;
  // A line end at the very end begins no line.
  std::uint64_t end = total_ - 1;
  while (end > begin) {
    const std::size_t last = position(end - 1);
    const std::size_t part_begin = last < head_size_ ? 0 : head_size_;
    const std::size_t first = std::max(last / block_size * block_size, part_begin);
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(last - first + 1, end - begin));
    const char* const piece = blocks_[last / block_size].get() + (last + 1 - size) % block_size;
    for (std::size_t i = size; i > 0; --i)
      if (piece[i - 1] == '\n' && --count == 0) return end - size + i;
    end -= size;
  }
  return begin;
}

OutputChunk Capture::read(std::uint64_t cursor, bool ended, std::size_t max_lines) const {
  OutputChunk chunk;
  cursor = std::min(cursor, total_);
  const std::uint64_t head_end = std::min<std::uint64_t>(total_, head_size_);
  std::uint64_t resume = std::max(cursor, tail_begin());
  std::uint64_t gap_begin = std::max(cursor, head_end);
  std::string before = cursor < head_end ? bytes(cursor, head_end) : std::string();
  if (max_lines != unbounded) {
    const bool all_kept = resume == gap_begin;
    const std::uint64_t begin = all_kept ? cursor : resume;
    const std::uint64_t first = last_lines(begin, max_lines);
    const auto lines_before = std::count(before.begin(), before.end(), '\n') + 1;
    const bool too_many_before =
        !all_kept && !before.empty() && static_cast<std::size_t>(lines_before) >= max_lines;
    if (first > begin || too_many_before) {
      before.clear();
      gap_begin = cursor;
      resume = first;
    }
  }
  std::string after = bytes(resume, total_);
  if (resume > gap_begin) {
    const std::size_t head_cut = cut_at_end(before);
    const std::size_t tail_cut = resume == tail_begin() ? cut_at_start(after) : 0;
    before.resize(before.size() - head_cut);
    after.erase(0, tail_cut);
    chunk.missed = resume - gap_begin + head_cut + tail_cut;
  } else {
    // A character may lie in both.
    before += after;
    after.clear();
  }
  const std::size_t waiting = ended ? 0 : cut_at_end(after.empty() ? before : after);
  (after.empty() ? before : after).resize((after.empty() ? before : after).size() - waiting);
  chunk.next = total_ - waiting;
  if (chunk.missed > 0)
    before = concat({to_utf8(before), gap(chunk.missed), to_utf8(after)});
  else
    before = to_utf8(before);
  chunk.text = std::move(before);
  return chunk;
}

}  // namespace v0_1
}  // namespace codeexec
