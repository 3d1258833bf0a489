// The messages between the two sides of a copied workspace.
#pragma once

#include "agent/frames_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A message begins with four numbers: its kind, and with copy_put the mode, 8 bits up; the size;
// the time of modification; the size of the path or the text that follows.
constexpr std::uint64_t copy_note = 1;
constexpr std::uint64_t copy_gone = 2;
constexpr std::uint64_t copy_put = 3;
constexpr std::uint64_t copy_done = 4;
constexpr std::uint64_t copy_failed = 5;

// In place of the size of a piece: that many zeros more than copy_hole; the file cannot be read on.
constexpr std::size_t copy_hole = std::size_t{1} << 24;
constexpr std::size_t copy_broken = 0xffffffff;

constexpr std::uint64_t copy_end = ~std::uint64_t{0};  // in place of the number of a refusal
constexpr int copy_conflict = 0xffff;                  // in place of an errno

}  // namespace inner

// Bytes to and from the other side, in the calling thread.
class CopyWire {
 public:
  CopyWire(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {}

  bool put(std::string_view bytes);
  bool put_numbers(std::initializer_list<std::uint64_t> numbers);
  bool flush();
  bool get(void* bytes, std::size_t size);
  // Some bytes, at most so many; none when the other side has gone.
  std::string_view get_some(std::size_t most);
  // Called with the bytes that were read, for the credit of the command that sends them.
  Function<void(std::string_view)> taken = {};

 private:
  bool fill();

  UniqueFd in_;
  UniqueFd out_;
  std::string sending_ = {};
  std::unique_ptr<char[]> buffer_{new char[longest_payload]};
  std::string_view got_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
