// Finding lines in much text.
#pragma once

#include "regex/program_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Finds the lines in which search() finds something: each is a text of its own, without the \n or
// \r\n at its end. For one thread.
//
// Where a match must have a certain text in it, lines without that are never looked at. The others
// are read by a table that is made while they are read: a row for each set of places in the program
// that can be arrived at together, with what follows each ASCII character. A table that has grown
// too large is begun again, so memory stays as it is, and a character never costs more than in a
// search().
class Regex::Lines {
 public:
  explicit Lines(const Regex& regex);

  // Moves `at` from the beginning of a line to the beginning of the next one, or of this, with a
  // match. False: there is none up to the end, or stop() said so. The text ends with a line.
  bool find(std::string_view text, std::size_t& at, FunctionRef<bool()> stop);

 private:
  using Kind = Program::Step::Kind;
  using Row = std::uint32_t;  // where it begins in the table, or one of these

  static constexpr std::size_t columns = 256;
  static constexpr Row first_row = columns;  // at the beginning of a line
  static constexpr Row unknown = 0;          // of \r and bytes beyond ASCII always
  static constexpr Row matched = 1;
  static constexpr std::size_t most_rows = 1000;
  static constexpr std::size_t most_bytes = std::size_t{4} << 20;  // of the sets of all rows
  static constexpr std::uint32_t at_end = ~std::uint32_t{0};       // in place of a character

  // What stands before a place, as far as assertions ask.
  enum class Before : char { start, word, ascii_word, other };

  struct Following {
    Row row = unknown;
    std::uint32_t code = 0;
    Row next = unknown;
  };

  void find_literal();
  Row run(std::string_view text, std::size_t& at, Row& row) const;
  bool scan(std::string_view text, std::size_t& at, FunctionRef<bool()> stop);
  // What follows `row` on a character, or at the end of a line.
  Row follow(Row row, std::uint32_t code, FunctionRef<bool()> stop);
  Row step(Row row, std::uint32_t code);
  Row row_of(Before before);
  void begin_table();
  static Before before_next(std::uint32_t code);
  static std::uint32_t assertions(Before before, std::uint32_t code);

  const std::shared_ptr<const Program> program_;
  std::string literal_ = {};  // that each match has
  bool is_literal_ = false;   // and nothing else
  std::vector<Row> table_ = {};
  std::map<std::string, Row> rows_ = {};       // by their sets
  std::vector<const std::string*> sets_ = {};  // of the rows
  std::vector<Following> following_ = {};      // of characters beyond ASCII
  std::size_t turns_ = 0;                      // how many tables there were
  std::size_t bytes_ = 0;
  std::size_t work_ = 0;  // since stop() was asked
  bool is_stopped_ = false;
  std::vector<std::size_t> seen_ = {};
  std::size_t turn_ = 0;
  std::vector<std::uint32_t> todo_ = {};
  std::vector<std::uint32_t> arrived_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
