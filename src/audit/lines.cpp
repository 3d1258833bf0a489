// The lines of a file of records.

#include "audit/audit_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool InputLines::next() {
  line_.clear();
  too_long_ = false;
  ended_ = false;
  bool any = false;
  for (;;) {
    if (rest_.empty() && !fill()) return any;
    any = true;
    const std::size_t end = rest_.find('\n');
    const std::string_view piece = rest_.substr(0, end);
    if (line_.size() + piece.size() > longest_)
      too_long_ = true;
    else
      line_ += piece;
    rest_.remove_prefix(std::min(piece.size() + 1, rest_.size()));
    ended_ = end != std::string_view::npos;
    if (ended_) return true;
  }
}

bool InputLines::fill() {
  ssize_t size = -1;
  do
    size = ::read(fd_, buffer_,
                  static_cast<std::size_t>(std::min<std::uint64_t>(sizeof buffer_, left_)));
  while (size < 0 && errno == EINTR);
  if (size < 0) error_ = errno;
  rest_ = std::string_view(buffer_, size < 0 ? 0 : static_cast<std::size_t>(size));
  left_ -= rest_.size();
  return !rest_.empty();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
