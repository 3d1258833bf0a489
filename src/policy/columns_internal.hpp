// What the rows of the tables of programs are written with.
//
//   {"docker exec", word_before, elsewhere, letters("euw"), longs("env user workdir")},
//
// First the name. Behind it stand, in any order, what a program is (enumerators) and its columns:
// functions of the table, each with its names in a text, with one blank between them. A column that
// is left out is empty. That a column is given twice, or is none of this table, does not compile.
#pragma once

#include "policy/tables_internal.hpp"

#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The columns that each table of programs has.
struct ProgramColumns {
  static constexpr std::size_t name_column = 0;
  static constexpr std::size_t letters_column = 1;
  static constexpr std::size_t longs_column = 2;

  // The text of one column.
  template <std::size_t Column>
  struct TableText {
    const char* text;
  };
  // The row of another program holds for this one, too.
  struct SameAs {
    const char* name;
  };

  // Options that take an argument, as for getopt_long(): "ab" are -a and -b, "all size" are --all
  // and --size.
  static constexpr TableText<letters_column> letters(const char* text) { return {text}; }
  static constexpr TableText<longs_column> longs(const char* text) { return {text}; }
  static constexpr SameAs same_as(const char* name) { return {name}; }
};

// A row as it is written.
template <std::size_t Columns>
struct ProgramRow {
  const char* texts[Columns] = {};  // null: the column is left out
  const char* other = nullptr;      // of same_as()

  constexpr explicit ProgramRow(const char* name) { texts[ProgramColumns::name_column] = name; }

  template <std::size_t Column>
  constexpr void add(ProgramColumns::TableText<Column> column) {
    static_assert(Column < Columns, "no column of this table");
    if (texts[Column]) a_column_is_given_twice();
    texts[Column] = column.text;
  }
  constexpr void add(ProgramColumns::SameAs column) {
    if (other) a_column_is_given_twice();
    other = column.name;
  }

  constexpr std::string_view text(std::size_t column) const {
    return texts[column] ? texts[column] : std::string_view();
  }
  // True if the program takes this as an option with an argument.
  constexpr bool has_option(std::string_view option) const {
    if (option.size() != 1) return has_name(text(ProgramColumns::longs_column), option);
    return text(ProgramColumns::letters_column).find(option) != std::string_view::npos;
  }
  // True if these are all such options.
  constexpr bool has_options(std::string_view options) const {
    bool all = true;
    each_name(options, ' ', [&](std::string_view option) { all = all && has_option(option); });
    return all;
  }
};

// A table of such rows, for pack_names(). The name of a program may have blanks: "docker exec".
template <class Table>
struct ProgramSource {
  static constexpr std::size_t count = std::size(Table::rows);
  static constexpr std::size_t columns = std::size(Table::rows[0].texts);
  static constexpr std::string_view text(std::size_t row, std::size_t column) {
    return Table::rows[row].text(column);
  }
  static constexpr char separator(std::size_t column) { return column == 0 ? '\0' : ' '; }
};

// What a table keeps of its rows besides their names, made by entry(row).
template <class Table, class Entry, class Make>
constexpr auto entries_of(Make entry) {
  std::array<Entry, std::size(Table::rows)> entries = {};
  for (std::size_t row = 0; row < entries.size(); ++row) entries[row] = entry(Table::rows[row]);
  return entries;
}

// The options of a row in a packed table.
inline Syntax syntax_at(const NameTable& table, std::size_t row) {
  Syntax syntax;
  syntax.letters = table.at(row, ProgramColumns::letters_column).first();
  syntax.longs = table.at(row, ProgramColumns::longs_column);
  return syntax;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
