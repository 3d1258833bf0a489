// Names that stand in tables: sets of them, and rows with several lists.
//
// A table is written with one row for each thing and with its names as plain texts. The compiler
// cuts the texts up: what a program has of them is one text of all names without anything between
// them, and the number of the byte where each begins. An array of std::string_view would weigh
// three times as much, and each of its pointers would have to be set when a program starts.
//
//   NameSet    names to look up:  constexpr auto shells = NameSet{"ash", "bash", "dash"};
//   NameList   the same where their order counts, or where they are patterns
//   NameTable  rows with lists of names in several columns; see pack_names()
//   HelpRow    what programs say when they fail, and the advice for each; see pack_help()
//   Names      a list out of one of these, to look names up in
//
// `constexpr NameSet shells{...}` would be the same, but GCC 12 puts that into writable memory.
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
    constexpr Iterator(const char* text, const std::uint16_t* begin) : text_(text), begin_(begin) {}
    constexpr std::string_view operator*() const {
      return {text_ + begin_[0], static_cast<std::size_t>(begin_[1] - begin_[0])};
    }
    constexpr Iterator& operator++() {
      ++begin_;
      return *this;
    }
    constexpr bool operator!=(const Iterator& other) const { return begin_ != other.begin_; }

   private:
    const char* text_;
    const std::uint16_t* begin_;
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
  constexpr Iterator begin() const { return {text_, begins_}; }
  constexpr Iterator end() const { return {text_, begins_ + size_}; }

  bool has(std::string_view name) const;
  // Whether a name matches one of these, which are patterns as of glob_matches().
  bool match(std::string_view name) const;

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

// Names in the order in which they are written.
template <std::size_t Count, std::size_t Bytes>
class NameList {
 public:
  template <std::size_t... Sizes>
  constexpr NameList(const char (&... names)[Sizes]) {
    (append({names, Sizes - 1}), ...);
  }
  constexpr operator Names() const { return list(); }
  constexpr Names list() const { return {text_, begins_, Count}; }
  constexpr Names::Iterator begin() const { return list().begin(); }
  constexpr Names::Iterator end() const { return list().end(); }
  bool has(std::string_view name) const { return list().has(name); }
  bool match(std::string_view name) const { return list().match(name); }

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
NameList(const char (&... names)[Sizes]) -> NameList<sizeof...(Sizes), (Sizes + ...)>;

// Names in the order of the alphabet, each once.
template <std::size_t Count, std::size_t Bytes>
class NameSet : public NameList<Count, Bytes> {
 public:
  template <std::size_t... Sizes>
  constexpr NameSet(const char (&... names)[Sizes]) : NameList<Count, Bytes>(names...) {
    const Names list = this->list();
    for (std::size_t i = 1; i < Count; ++i)
      if (!(list[i - 1] < list[i])) names_must_be_sorted();
  }
};

template <std::size_t... Sizes>
NameSet(const char (&... names)[Sizes]) -> NameSet<sizeof...(Sizes), (Sizes + ...)>;

// As compare() of names, of which most differ in their first bytes. No name of a table is empty.
constexpr int order_of(std::string_view name, std::string_view other) {
  if (other.empty() || name[0] != other[0])
    return other.empty() ||
                   static_cast<unsigned char>(name[0]) > static_cast<unsigned char>(other[0])
               ? 1
               : -1;
  return name.compare(other);
}

// Rows with lists of names in `columns` columns. name() is the first one in the first column;
// find() is for tables that are sorted by it, see PackedNames::is_sorted().
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
      const int order = order_of(name(middle), name_of_row);
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

// What a packed table keeps of its rows besides their names, made by make(row).
template <const auto& Rows, class Make>
constexpr auto pack_entries(Make make) {
  std::array<decltype(make(Rows[0])), std::size(Rows)> entries = {};
  for (std::size_t row = 0; row < entries.size(); ++row) entries[row] = make(Rows[row]);
  return entries;
}

// What a program says when it fails, and what helps then.
struct HelpRow {
  const char* said;  // in lower case; of several texts with a | between them, one is enough
  const char* help;
};

// Makes the table for find_help() and help_in(). The rows may have other members, too.
template <const auto& Rows>
struct HelpSource {
  static constexpr std::size_t count = std::size(Rows);
  static constexpr std::size_t columns = 2;
  static constexpr std::string_view text(std::size_t row, std::size_t column) {
    return column == 0 ? Rows[row].said : Rows[row].help;
  }
  static constexpr char separator(std::size_t column) { return column == 0 ? '|' : '\0'; }
};
template <const auto& Rows>
constexpr auto pack_help() {
  return pack_names<HelpSource<Rows>>();
}

// The first row of which a text is in what was said; table.rows: there is none.
std::size_t find_help(std::string_view said, const NameTable& table);
// What helps; empty: there is no such row.
std::string_view help_in(std::string_view said, const NameTable& table);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
