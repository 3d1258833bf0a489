// How a row of the tables of wrappers is written.
//
//   {"docker exec", word_before, elsewhere, letters("euw"), longs("env env-file user workdir")},
//
// The name of a program, or of a program and a command of its own, then in any order:
//   Kind::x, Language::x    a program with a function of its own, or an interpreter
//   word_before ...         flags, see WrapperTerms
//   letters, longs          options that take an argument
//   switches                instead of longs(): long options that take none, where most others do
//   longs_with_two          long options that take two arguments
//   scripts                 of these options: those whose argument is a script
//   programs                those whose argument is the program that is started
//   switches_joining        options without an argument: with one, joins_words is the other way
//   only_shows              with one of these options, nothing runs
//   does_as                 its operands are files, with which it does what this program does
//   same_as                 the row of that name holds for this one, too
// Each file has its rows in the order of their names. The compiler checks what it can: see
// wrapper_table.cpp.
#pragma once

#include "policy/columns_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

struct WrapperColumns : ProgramColumns, WrapperTerms {
  enum : std::size_t { longs_with_two_column = 3, scripts_column, programs_column, columns };

  // Columns that are those of others with a flag.
  template <std::size_t Column>
  struct FlaggedText {
    TableText<Column> column;
    std::uint32_t flags;
  };

  // The name of another program.
  struct DoesAs {
    const char* name;
  };

  static constexpr DoesAs does_as(const char* name) { return {name}; }
  static constexpr TableText<longs_with_two_column> longs_with_two(const char* text) {
    return {text};
  }
  static constexpr TableText<scripts_column> scripts(const char* text) { return {text}; }
  static constexpr TableText<programs_column> programs(const char* text) { return {text}; }
  static constexpr FlaggedText<longs_column> switches(const char* text) {
    return {{text}, longs_are_switches};
  }
  static constexpr FlaggedText<programs_column> switches_joining(const char* text) {
    return {{text}, toggles_joining};
  }
  static constexpr FlaggedText<programs_column> only_shows(const char* text) {
    return {{text}, toggles_joining | shows};
  }
};

struct WrapperRow : ProgramRow<WrapperColumns::columns> {
  using ProgramRow<WrapperColumns::columns>::add;
  template <class... Columns>
  constexpr WrapperRow(const char* name, Columns... more)
      : ProgramRow<WrapperColumns::columns>(name) {
    (add(more), ...);
  }
  constexpr void add(WrapperTerms::Flag flag) { flags |= flag; }
  constexpr void add(WrapperTerms::Kind of_program) { kind = of_program; }
  constexpr void add(WrapperColumns::DoesAs other_program) {
    kind = WrapperTerms::Kind::files;
    add(WrapperColumns::TableText<WrapperColumns::programs_column>{other_program.name});
  }
  constexpr void add(Language of_code) {
    kind = WrapperTerms::Kind::interpreter;
    language = of_code;
  }
  template <std::size_t Column>
  constexpr void add(WrapperColumns::FlaggedText<Column> flagged) {
    add(flagged.column);
    flags |= flagged.flags;
  }

  constexpr bool has(WrapperTerms::Flag flag) const { return (flags & flag) != 0; }
  // True if the options of a column take an argument.
  constexpr bool take_arguments(std::size_t column) const {
    bool all = true;
    each_name(text(column), ' ', [&](std::string_view option) {
      const bool is_long = option.size() > 1;
      all = all && has_option(option) != (is_long && has(WrapperTerms::longs_are_switches));
    });
    return all;
  }

  WrapperTerms::Kind kind = WrapperTerms::Kind::plain;
  Language language = Language::awk;
  std::uint32_t flags = 0;
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
