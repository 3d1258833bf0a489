// Names that stand in tables: sets of them, and rows with several lists.
//
// A table is written with one row for each thing and with its names as plain texts. The compiler
// cuts the texts up: what a program has of them is one text of all names without anything between
// them, and the number of the byte where each begins. An array of std::string_view would weigh
// three times as much, and each of its pointers would have to be set when a program starts.
//
//   NameSet    a list of names:  constexpr NameSet shells{"ash", "bash", "dash"};
//   NameTable  rows that have a name each and lists of names in further columns; see pack_names()
//   Names      a list out of one of these, to look names up in
#pragma once

#include "base/base.hpp"
#include "base/platform_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A list of names; it borrows them from a table.
class Names {
 public:
  class Iterator {
   public:
    constexpr Iterator(const Names& names, std::size_t at) : names_(&names), at_(at) {}
    constexpr std::string_view operator*() const { return (*names_)[at_]; }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const Names* names_;
    std::size_t at_;
  };

  constexpr Names() = default;
  // Name i is the text from begins[i] to begins[i + 1].
  constexpr Names(const char* text, const std::uint16_t* begins, std::size_t size)
      : text_(text), begins_(begins), size_(size) {}

  constexpr bool empty() const { return size_ == 0; }
  constexpr std::size_t size() const { return size_; }
  constexpr std::string_view operator[](std::size_t at) const {
    return {text_ + begins_[at], static_cast<std::size_t>(begins_[at + 1] - begins_[at])};
  }
  // The first name; empty if there is none.
  constexpr std::string_view first() const { return empty() ? std::string_view() : (*this)[0]; }
  constexpr Iterator begin() const { return {*this, 0}; }
  constexpr Iterator end() const { return {*this, size_}; }

  bool has(std::string_view name) const;

 private:
  const char* text_ = nullptr;
  const std::uint16_t* begins_ = nullptr;
  std::size_t size_ = 0;
};

// The compiler names these functions in its error when a table is wrong: no constant expression
// may call them.
inline void names_must_be_sorted() {}
inline void a_column_is_given_twice() {}
inline void a_blank_is_too_many() {}

// Names in their order, each once.
template <std::size_t Count, std::size_t Bytes>
class NameSet {
 public:
  template <std::size_t... Sizes>
  constexpr NameSet(const char (&... names)[Sizes]) {
    (append({names, Sizes - 1}), ...);
    for (std::size_t i = 1; i < Count; ++i)
      if (!(list()[i - 1] < list()[i])) names_must_be_sorted();
  }
  constexpr operator Names() const { return list(); }
  constexpr Names list() const { return {text_, begins_, Count}; }
  bool has(std::string_view name) const { return list().has(name); }

 private:
  constexpr void append(std::string_view name) {
    std::uint16_t at = begins_[filled_];
    for (const char c : name) text_[at++] = c;
    begins_[++filled_] = at;
  }

  char text_[Bytes] = {};
  std::uint16_t begins_[Count + 1] = {};
  std::uint16_t filled_ = 0;
};

template <std::size_t... Sizes>
NameSet(const char (&... names)[Sizes]) -> NameSet<sizeof...(Sizes), (Sizes + ...)>;

// Rows with a name each, sorted by it, and with lists of names in `columns` columns, of which the
// first has the row's own name.
struct NameTable {
  const char* text = nullptr;
  const std::uint16_t* begins = nullptr;  // as of Names, for all names of the table
  const std::uint16_t* cells = nullptr;   // the first name of each cell, row by row
  std::size_t rows = 0;
  std::size_t columns = 0;

  constexpr Names at(std::size_t row, std::size_t column) const {
    const std::uint16_t* const cell = cells + row * columns + column;
    return {text, begins + cell[0], static_cast<std::size_t>(cell[1] - cell[0])};
  }
  constexpr std::string_view name(std::size_t row) const { return at(row, 0)[0]; }
  // The row of a name; `rows`: there is none.
  constexpr std::size_t find(std::string_view name_of_row) const {
    std::size_t low = 0, high = rows;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const int order = name(middle).compare(name_of_row);
      if (order == 0) return middle;
      if (order < 0)
        low = middle + 1;
      else
        high = middle;
    }
    return rows;
  }
};

// What a NameTable borrows.
template <std::size_t Rows, std::size_t Columns, std::size_t Count, std::size_t Bytes>
struct PackedNames {
  char text[Bytes] = {};
  std::uint16_t begins[Count + 1] = {};
  std::uint16_t cells[Rows * Columns + 1] = {};

  constexpr NameTable table() const { return {text, begins, cells, Rows, Columns}; }
  constexpr bool is_sorted() const {
    for (std::size_t row = 1; row < Rows; ++row)
      if (!(table().name(row - 1) < table().name(row))) return false;
    return true;
  }
};

// Calls `take` with each name of a text, which stand with one `separator` between them. Only while
// the library is compiled: what has names at run time has them in Names.
template <class Take>
constexpr void each_name(std::string_view text, char separator, Take&& take) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size() && !text.empty(); ++i) {
    if (i < text.size() && text[i] != separator) continue;
    take(text.substr(begin, i - begin));
    begin = i + 1;
  }
}

constexpr bool has_name(std::string_view text, std::string_view wanted) {
  bool found = false;
  each_name(text, ' ', [&](std::string_view name) { found = found || name == wanted; });
  return found;
}

// How much room the names of a table need.
struct NameCounts {
  std::size_t names = 0;
  std::size_t bytes = 0;
};

template <class Source>
constexpr NameCounts count_names() {
  NameCounts counts;
  for (std::size_t row = 0; row < Source::count; ++row)
    for (std::size_t column = 0; column < Source::columns; ++column)
      each_name(Source::text(row, column), Source::separator(column), [&](std::string_view name) {
        if (name.empty()) a_blank_is_too_many();
        ++counts.names;
        counts.bytes += name.size();
      });
  return counts;
}

// Makes the table that `Source` describes: `count` rows of `columns` cells; text(row, column)
// has the names of one, and separator(column) stands between its names.
template <class Source>
constexpr auto pack_names() {
  constexpr NameCounts counts = count_names<Source>();
  static_assert(counts.bytes <= 0xffff, "the numbers in a NameTable have 16 bits");
  PackedNames<Source::count, Source::columns, counts.names, counts.bytes> packed;
  std::uint16_t names = 0, bytes = 0;
  for (std::size_t row = 0; row < Source::count; ++row) {
    for (std::size_t column = 0; column < Source::columns; ++column) {
      each_name(Source::text(row, column), Source::separator(column), [&](std::string_view name) {
        for (const char c : name) packed.text[bytes++] = c;
        packed.begins[++names] = bytes;
      });
      packed.cells[row * Source::columns + column + 1] = names;
    }
  }
  return packed;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
