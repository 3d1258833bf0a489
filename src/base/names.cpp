// Looking names up in lists.

#include "base/names_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// From end to end: lists have a few dozen names, most of which differ in size.
bool Names::has(std::string_view name) const {
  for (const std::string_view other : *this)
    if (other.size() == name.size() && (name.empty() || (other[0] == name[0] && other == name)))
      return true;
  return false;
}

bool Names::match(std::string_view name) const {
  for (const std::string_view pattern : *this)
    if (glob_matches(pattern, name)) return true;
  return false;
}

std::size_t find_help(std::string_view said, const NameTable& table) {
  const std::string text = in_lower_case(said);
  for (std::size_t row = 0; row < table.rows; ++row)
    for (const std::string_view known : table.at(row, 0))
      if (text.find(known) != std::string::npos) return row;
  return table.rows;
}

std::string_view help_in(std::string_view said, const NameTable& table) {
  const std::size_t row = find_help(said, table);
  return row < table.rows ? table.at(row, 1).first() : std::string_view();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
