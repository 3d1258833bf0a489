// The table of wrappers: the rows of all files put together, checked, and found by their name.

#include "policy/wrappers_elsewhere_internal.hpp"
#include "policy/wrappers_languages_internal.hpp"
#include "policy/wrappers_projects_internal.hpp"
#include "policy/wrappers_system_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The rows in the order of their names, as find_wrapper() searches by halves.
struct WrapperOrder {
  static constexpr std::size_t count = std::size(ElsewhereRows::rows) +
                                       std::size(LanguageRows::rows) +
                                       std::size(ProjectRows::rows) + std::size(SystemRows::rows);
  const WrapperRow* rows[count] = {};
};

constexpr std::string_view wrapper_name(const WrapperRow& row) { return row.text(0); }

constexpr WrapperOrder merged_wrappers() {
  struct Rest {
    const WrapperRow* next;
    const WrapperRow* end;
  } rests[] = {
      {std::begin(ElsewhereRows::rows), std::end(ElsewhereRows::rows)},
      {std::begin(LanguageRows::rows), std::end(LanguageRows::rows)},
      {std::begin(ProjectRows::rows), std::end(ProjectRows::rows)},
      {std::begin(SystemRows::rows), std::end(SystemRows::rows)},
  };
  WrapperOrder order;
  for (const WrapperRow*& row : order.rows) {
    Rest* least = nullptr;
    for (Rest& rest : rests)
      if (rest.next != rest.end &&
          (!least || wrapper_name(*rest.next) < wrapper_name(*least->next)))
        least = &rest;
    row = least->next++;
  }
  return order;
}

struct WrapperSource {
  static constexpr WrapperOrder order = merged_wrappers();
  static constexpr std::size_t count = WrapperOrder::count;
  static constexpr std::size_t columns = WrapperColumns::columns;
  static constexpr std::string_view text(std::size_t row, std::size_t column) {
    return order.rows[row]->text(column);
  }
  static constexpr char separator(std::size_t column) { return column == 0 ? '\0' : ' '; }
};

constexpr auto packed_wrappers = pack_names<WrapperSource>();
static_assert(packed_wrappers.is_sorted(), "sort the rows of each file by name; each stands once");

// What a row says besides its names.
struct WrapperEntry {
  std::uint32_t flags = 0;
  std::uint16_t row = 0;  // another one for same_as()
  WrapperTerms::Kind kind = WrapperTerms::Kind::plain;
  Language language = Language::awk;
};

constexpr std::array<WrapperEntry, WrapperOrder::count> make_wrapper_entries() {
  std::array<WrapperEntry, WrapperOrder::count> entries = {};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const WrapperRow& row = *WrapperSource::order.rows[i];
    const std::string_view name = row.other ? row.other : wrapper_name(row);
    entries[i] = {row.flags, static_cast<std::uint16_t>(packed_wrappers.table().find(name)),
                  row.kind, row.language};
  }
  return entries;
}
constexpr auto wrapper_entries = make_wrapper_entries();

// checks ------------------------------------------------------------------------------------------

constexpr bool others_are_rows() {
  for (const WrapperRow* row : WrapperSource::order.rows) {
    if (!row->other) continue;
    const std::size_t other = packed_wrappers.table().find(row->other);
    if (other == WrapperOrder::count || WrapperSource::order.rows[other]->other) return false;
    if (row->flags || row->texts[1] || row->texts[2]) return false;
  }
  return true;
}
static_assert(others_are_rows(), "same_as() stands alone, and names a row that has no same_as()");

// "docker exec" is found by the row "docker", if that has commands.
constexpr bool commands_are_found() {
  for (const WrapperRow* row : WrapperSource::order.rows) {
    const std::size_t blank = wrapper_name(*row).rfind(' ');
    if (blank == std::string_view::npos) continue;
    const std::size_t at = packed_wrappers.table().find(wrapper_name(*row).substr(0, blank));
    if (at == WrapperOrder::count) return false;
    const WrapperRow& program = *WrapperSource::order.rows[at];
    if (!program.has(WrapperTerms::has_commands) && !program.has(WrapperTerms::command_list) &&
        program.kind != WrapperTerms::Kind::interpreter)
      return false;
  }
  return true;
}
static_assert(commands_are_found(), "the row of a program with commands has has_commands");

// A console knows its options by scripts() and programs() alone.
constexpr bool wrapper_options_are_known() {
  for (const WrapperRow* row : WrapperSource::order.rows) {
    if (row->kind == WrapperTerms::Kind::console || row->kind == WrapperTerms::Kind::files ||
        row->has(WrapperTerms::optional_arguments))
      continue;
    if (!row->take_arguments(WrapperColumns::scripts_column)) return false;
    if (!row->has(WrapperTerms::toggles_joining) &&
        !row->take_arguments(WrapperColumns::programs_column))
      return false;
  }
  return true;
}
static_assert(wrapper_options_are_known(),
              "an option with a script is in letters() or longs(), too");

}  // namespace

inline namespace inner {

NameTable wrapper_table() { return packed_wrappers.table(); }

bool find_wrapper(std::string_view name, Wrapper& wrapper) {
  const NameTable table = wrapper_table();
  std::size_t row = table.find(name);
  if (row == table.rows) return false;
  row = wrapper_entries[row].row;
  const WrapperEntry& entry = wrapper_entries[row];
  wrapper.name = table.name(row);
  wrapper.kind = entry.kind;
  wrapper.language = entry.language;
  wrapper.flags = entry.flags;
  wrapper.syntax = syntax_at(table, row);
  wrapper.syntax.longs_are_switches = wrapper.has(Wrapper::longs_are_switches);
  wrapper.syntax.twice = table.at(row, WrapperColumns::longs_with_two_column);
  wrapper.scripts = table.at(row, WrapperColumns::scripts_column);
  wrapper.programs = table.at(row, WrapperColumns::programs_column);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
