// What a walk may spend, how it went, and what commands print.
#pragma once

#include "shell/values_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Counts what a walk spends of shell::Limits, and keeps the outcome. The first limit that is
// exceeded stops the walk: every loop looks at stopped().
class ShellBudget {
 public:
  explicit ShellBudget(const shell::Options& given) : options(given) {}

  bool bash() const { return options.dialect == shell::Dialect::bash; }
  bool stopped() const { return !outcome.complete; }
  void stop(ErrorCode code, std::string_view message, std::size_t at);
  void over_limit(std::size_t most, std::string_view what, std::size_t at) {
    stop(ErrorCode::limit, concat("more than % %", {most, what}), at);
  }

  // Counts bytes of text, and other work as if it were text. False: that was too much.
  bool charge(std::size_t bytes, std::size_t at = 0);
  // Counts bytes now; the next charge() compares them with the limit.
  void add_bytes(std::size_t bytes) { text_bytes_ += bytes; }
  bool out_of_text() const { return text_bytes_ > options.limits.max_text; }
  void count_word(std::size_t at);
  // False: no more commands.
  bool count_command(std::size_t at);
  // Counts the parts of words that braces make. False: too many.
  bool count_braces(std::size_t parts) {
    return (brace_parts_ += parts) <= options.limits.max_words;
  }
  // True if much of a limit is spent: what is left is reported with less detail, to reach the end.
  bool is_scarce() const;

  // Goes one level down. False: that is too deep.
  bool enter(std::size_t at);
  void leave() { --depth; }

  const shell::Options& options;
  shell::Outcome outcome = {};
  unsigned depth = 0;

 private:
  std::size_t commands_ = 0;
  std::size_t words_ = 0;
  std::size_t text_bytes_ = 0;
  std::size_t brace_parts_ = 0;
};

// Records what a list writes to standard output, as far as known. Without a budget it records
// nothing: that is the output that no substitution and no pipe reads.
class ShellPrinted : public ShellText {
 public:
  explicit ShellPrinted(ShellBudget* budget) : budget_(budget) {}

  bool records() const { return budget_ != nullptr; }
  void write(std::string_view bytes);
  void write_unknown();
  void append(const ShellText& other);
  // What stands behind the first `size` bytes may have been written, or not: it becomes unknown.
  void forget(std::size_t size);
  void mark(bool is_assumed, bool has_globs, bool has_home) {
    assumed = assumed || is_assumed;
    glob = glob || has_globs;
    home = home || has_home;
  }

 private:
  ShellBudget* budget_;
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
