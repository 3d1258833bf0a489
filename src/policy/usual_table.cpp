// What PolicyOptions::allow_usual allows: a row for each command, in the order in which a refusal
// names them.
//
//   refuses    options that are refused; a name with a dash is a whole word
//   counts     some shells read its words as arithmetic, which may run commands: a[$(x)]
//
// Options that write to a file are refused as well: file_table.cpp knows them.

#include "policy/columns_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

struct UsualColumns {
  struct Arithmetic {};
  static constexpr Arithmetic counts = {};
  enum : std::size_t { name_column = 0, refused_column, columns };
  static constexpr ProgramColumns::TableText<refused_column> refuses(const char* text) {
    return {text};
  }

  struct Row : ProgramRow<columns> {
    using ProgramRow<columns>::add;
    template <class... More>
    constexpr Row(const char* name, More... more) : ProgramRow<columns>(name) {
      (add(more), ...);
    }
    constexpr void add(Arithmetic) { is_arithmetic = true; }

    bool is_arithmetic = false;
  };
};

struct UsualRows : UsualColumns {
  static constexpr Row rows[] = {
      {"basename"},
      {"cat"},
      {"cd"},
      {"cksum"},
      {"cmp"},
      {"comm"},
      {"cut"},
      {"df"},
      {"diff"},
      {"dirname"},
      {"du"},
      {"echo"},
      {"egrep"},
      {"expand"},
      {"expr"},
      {"false"},
      {"fgrep"},
      {"fold"},
      {"grep"},
      {"groups"},
      {"head"},
      {"id"},
      {"join"},
      {"ls"},
      {"md5sum"},
      {"nl"},
      {"nproc"},
      {"od"},
      {"paste"},
      {"printenv"},
      {"pwd"},
      {"readlink"},
      {"realpath"},
      {"rev"},
      {"seq"},
      {"sha1sum"},
      {"sha256sum"},
      {"sleep"},
      {"stat"},
      {"tac"},
      {"tail"},
      {"tr"},
      {"true"},
      {"type"},
      {"uname"},
      {"uniq"},
      {"wc"},
      {"which"},
      {"whoami"},
      {":"},
      {"[", counts, refuses("v R")},
      {"break", counts, refuses("v R")},
      {"continue", counts, refuses("v R")},
      {"exit", counts, refuses("v R")},
      {"printf", counts, refuses("v R")},
      {"test", counts, refuses("v R")},
      {"find", refuses("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")},
      {"rg", refuses("pre hostname-bin z search-zip")},
      {"sort", refuses("T temporary-directory compress-program")},
      {"tree", refuses("R")},
  };
};

constexpr auto packed_usual = pack_names<ProgramSource<UsualRows>>();
constexpr auto usual_entries =
    entries_of<UsualRows, bool>([](const UsualRows::Row& row) { return row.is_arithmetic; });

}  // namespace

inline namespace inner {

bool find_usual(std::string_view name, UsualProgram& program) {
  const NameTable table = packed_usual.table();
  std::size_t row = 0;
  while (row < table.rows && table.name(row) != name) ++row;
  if (row == table.rows) return false;
  program.counts = usual_entries[row];
  program.refused = table.at(row, UsualColumns::refused_column);
  return true;
}

std::string usual_commands() {
  std::string text;
  const NameTable table = packed_usual.table();
  for (std::size_t row = 0; row < table.rows; ++row)
    append_all(text, {row ? " " : "", table.name(row)});
  return text;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
