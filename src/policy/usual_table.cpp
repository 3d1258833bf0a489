// What PolicyOptions::allow_usual allows: a row for each command, in the order in which a refusal
// names them.
//
//   Kind::x    what it is, see UsualProgram; plain where nothing is said
//   refuses    options that are refused; a name with a dash is a whole word, and @ any word that
//              begins with it: a file with options
//   options    of one that runs tests, and of some others: all that it may have, without dashes
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
  using Kind = UsualProgram::Kind;
  enum : std::size_t { name_column = 0, refused_column, options_column, columns };
  static constexpr ProgramColumns::TableText<refused_column> refuses(const char* text) {
    return {text};
  }
  static constexpr ProgramColumns::TableText<options_column> options(const char* text) {
    return {text};
  }

  struct Row : ProgramRow<columns> {
    using ProgramRow<columns>::add;
    template <class... More>
    constexpr Row(const char* name, More... more) : ProgramRow<columns>(name) {
      (add(more), ...);
    }
    constexpr void add(Arithmetic) { is_arithmetic = true; }
    constexpr void add(Kind of_program) { kind = of_program; }

    bool is_arithmetic = false;
    Kind kind = Kind::plain;
  };
};

struct UsualRows : UsualColumns {
  static constexpr const char* pytest_options =
      "co collect-only color cov disable-warnings durations exitfirst failed-first ff help k "
      "last-failed lf l m maxfail n no-header no-summary q quiet r rA ra rf rs rx s sw stepwise tb "
      "v verbose version x";
  static constexpr const char* unittest_options = "b c f failfast h k q quiet v verbose";
  static constexpr const char* jest_options =
      "bail ci coverage i passWithNoTests runInBand silent t testNamePattern verbose watchAll";
  static constexpr const char* go_options =
      "bench count cover failfast json p parallel race run short tags timeout v";
  static constexpr const char* cargo_options =
      "all all-features all-targets features lib no-fail-fast no-run p package q quiet release "
      "tests v verbose workspace";
  static constexpr const char* curl_options =
      "I S connect-timeout f fail head i include k m max-time o output s show-error silent v w "
      "write-out";
  static constexpr const char* x509_options =
      "dates enddate fingerprint in issuer noout pubkey serial sha1 sha256 startdate subject text";
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
      {"find", Kind::finds, refuses("-delete -fprint -fprint0 -fprintf -fls")},
      {"rg", refuses("pre hostname-bin z search-zip")},
      {"sort", refuses("T temporary-directory compress-program")},
      {"tree", refuses("R")},
      {"arch"},
      {"b2sum"},
      {"base64"},
      {"column"},
      {"file", refuses("C compile f files-from m magic-file z uncompress")},
      {"free"},
      {"getconf"},
      {"hexdump"},
      {"jq"},
      {"locale"},
      {"lscpu"},
      {"netstat"},
      {"nm", refuses("@ plugin target")},
      {"pgrep"},
      {"ps"},
      {"readelf"},
      {"sha512sum"},
      {"size"},
      {"ss", refuses("K kill D diag")},
      {"strings", refuses("@ T target")},
      {"uptime"},
      {"users"},
      {"wait"},
      {"who"},
      {"lsof", refuses("D")},
      {"objdump", refuses("@ b target")},
      {"xxd"},
      {"cp", refuses("l link s symbolic-link p preserve a archive")},
      {"mkdir", refuses("m mode")},
      {"touch"},
      {"chmod", Kind::mode},
      {"sed", Kind::sed},
      {"awk", Kind::awk},
      {"gawk", Kind::awk},
      {"mawk", Kind::awk},
      {"timeout", Kind::starts},
      {"nohup", Kind::starts},
      {"time", Kind::starts},
      {"env", Kind::starts},
      {"xargs", Kind::repeats},
      {"command", Kind::asks},
      {"curl", Kind::fetches, options(curl_options)},
      {"openssl x509", Kind::listed, options(x509_options)},
      {".", Kind::sources},
      {"source", Kind::sources},
      {"sh", Kind::shell},
      {"bash", Kind::shell},
      {"dash", Kind::shell},
      {"zsh", Kind::shell},
      {"pytest", Kind::listed, options(pytest_options)},
      {"python -m pytest", Kind::listed, options(pytest_options)},
      {"python3 -m pytest", Kind::listed, options(pytest_options)},
      {"python -m unittest", Kind::listed, options(unittest_options)},
      {"python3 -m unittest", Kind::listed, options(unittest_options)},
      {"npm test", Kind::listed, options("s silent if-present")},
      {"npm run test", Kind::listed, options("s silent if-present")},
      {"pnpm test", Kind::listed, options("s silent")},
      {"yarn test", Kind::listed, options("s silent")},
      {"jest", Kind::listed, options(jest_options)},
      {"npx jest", Kind::listed, options(jest_options)},
      {"go test", Kind::listed, options(go_options)},
      {"go vet", Kind::listed, options("v tags")},
      {"cargo test", Kind::listed, options(cargo_options)},
      {"cargo check", Kind::listed, options(cargo_options)},
      {"ctest", Kind::listed, options("E L N R V j output-on-failure parallel verbose")},
  };
};

constexpr auto packed_usual = pack_names<ProgramSource<UsualRows>>();

struct UsualEntry {
  bool counts = false;
  UsualProgram::Kind kind = UsualProgram::Kind::plain;
};
constexpr auto usual_entries = entries_of<UsualRows, UsualEntry>([](const UsualRows::Row& row) {
  return UsualEntry{row.is_arithmetic, row.kind};
});

}  // namespace

inline namespace inner {

bool find_usual(std::string_view name, UsualProgram& program) {
  const NameTable table = packed_usual.table();
  std::size_t row = 0;
  while (row < table.rows && table.name(row) != name) ++row;
  if (row == table.rows) return false;
  program.counts = usual_entries[row].counts;
  program.kind = usual_entries[row].kind;
  program.options = table.at(row, UsualColumns::options_column);
  program.refused = table.at(row, UsualColumns::refused_column);
  return true;
}

std::vector<std::string_view> usual_commands() {
  std::vector<std::string_view> names;
  const NameTable table = packed_usual.table();
  for (std::size_t row = 0; row < table.rows; ++row) names.push_back(table.name(row));
  return names;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
