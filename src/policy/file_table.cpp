// What programs do with the files that are named to them: a row for each.
//
//   {"cp", Operands::copy, letters("St"), longs("suffix target-directory"),
//    directory("t target-directory")},
//
// What its operands are, then the options that take an argument, and of these again such as name
//   reads, writes     a file that is read, or written
//   directory         where the operands are written to
//   modes             a mode, as that of mkdir
// and options without an argument:
//   fetches           of Operands::fetch: with one of these it writes files
//   only_prints       of Operands::unpack: with one of these it writes none
//   removes           of Operands::pack: with one of these it removes what it has packed

#include "policy/columns_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

struct FileColumns : ProgramColumns {
  using Operands = FileProgram::Operands;

  enum : std::size_t { reads_column = 3, writes_column, directory_column, modes_column, columns };
  static constexpr TableText<reads_column> reads(const char* text) { return {text}; }
  static constexpr TableText<writes_column> writes(const char* text) { return {text}; }
  static constexpr TableText<directory_column> directory(const char* text) { return {text}; }
  static constexpr TableText<modes_column> modes(const char* text) { return {text}; }
  // One column has these four, as no program has two of them.
  static constexpr TableText<modes_column> fetches(const char* text) { return {text}; }
  static constexpr TableText<modes_column> removes(const char* text) { return {text}; }
  static constexpr TableText<modes_column> only_prints(const char* text) { return {text}; }

  struct Row : ProgramRow<columns> {
    using ProgramRow<columns>::add;
    template <class... More>
    constexpr Row(const char* name, More... more) : ProgramRow<columns>(name) {
      (add(more), ...);
    }
    constexpr void add(Operands kind) { operands = kind; }

    Operands operands = Operands::none;
  };
};

struct FileRows : FileColumns {
  static constexpr Row rows[] = {
      {"7z", Operands::pack_command, removes("sdel")},
      {"7za", same_as("7z")},
      {"7zr", same_as("7z")},
      {"7zz", same_as("7z")},
      {"bmaptool", Operands::copy, longs("bmap nobmap bmap-sig fingerprint")},
      {"bsdtar", same_as("tar")},
      {"cat", Operands::read},
      {"chgrp", Operands::change, longs("from reference")},
      {"chmod", Operands::chmod, longs("reference")},
      {"chown", Operands::change, longs("from reference")},
      {"cmp", Operands::read, letters("in"), longs("ignore-initial bytes")},
      {"comm", Operands::read},
      {"cp", Operands::copy, letters("St"), longs("suffix target-directory"),
       directory("t target-directory")},
      {"cpio", Operands::fetch, letters("CDEFHIMORW"), longs("directory"), directory("D directory"),
       fetches("i extract p pass-through")},
      {"curl", Operands::fetch, letters("AbcCdDeEFHKmoPQrtTuUwxXyYz"),
       longs("output data header request user user-agent max-time url form cookie cookie-jar "
             "config upload-file dump-header output-dir connect-timeout write-out"),
       reads("T upload-file"), writes("o output c cookie-jar D dump-header output-dir"),
       directory("output-dir"), fetches("O remote-name remote-name-all J remote-header-name")},
      {"cut", Operands::read, letters("bcdf"), longs("bytes characters delimiter fields")},
      {"dc3dd", Operands::key_value},
      {"dcfldd", Operands::key_value},
      {"dd", Operands::key_value},
      {"ddrescue", Operands::filter, letters("bcDeEgGHiIJKLmOpPqrsTx")},
      {"del-cli", Operands::remove_tree},
      {"diff", Operands::read, letters("ILUxXSW"), longs("exclude label unified context width")},
      {"du", Operands::read, letters("dBtX"), longs("max-depth block-size threshold exclude")},
      {"ed", Operands::write, letters("p"), longs("prompt")},
      {"egrep", Operands::pattern, letters("ABCDdefm"),
       longs("regexp file max-count context include exclude"), reads("f file")},
      {"fgrep", Operands::pattern, letters("ABCDdefm"),
       longs("regexp file max-count context include exclude"), reads("f file")},
      {"file", Operands::read, letters("eFfmP"), reads("f m")},
      {"git", Operands::git},
      {"grep", Operands::pattern, letters("ABCDdefm"),
       longs("regexp file max-count context include exclude exclude-dir after-context "
             "before-context"),
       reads("f file")},
      {"grm", same_as("rm")},
      {"gsed", same_as("sed")},
      {"gtar", same_as("tar")},
      {"head", Operands::read, letters("cn"), longs("bytes lines")},
      {"install", Operands::copy, letters("gmoSt"),
       longs("group mode owner suffix target-directory"), directory("t target-directory"),
       modes("m mode")},
      {"less", Operands::read, letters("bDhjkoOpPtTxyz")},
      {"link", Operands::link},
      {"ln", Operands::link, letters("St"), longs("suffix target-directory"),
       directory("t target-directory")},
      {"ls", Operands::read, letters("ITw"), longs("ignore hide width tabsize")},
      {"md5sum", Operands::read},
      {"mkdir", Operands::make, letters("m"), longs("mode"), modes("m mode")},
      {"mkfifo", Operands::make, letters("m"), longs("mode")},
      {"more", Operands::read, letters("n")},
      {"mv", Operands::move, letters("St"), longs("suffix target-directory"),
       directory("t target-directory")},
      {"nl", Operands::read, letters("bdfhilnsvw")},
      {"od", Operands::read, letters("AjNStw")},
      {"patch", Operands::patch, letters("BdDFgiopVYzr"),
       longs("directory input output strip reject-file"), reads("i input"),
       writes("o output r reject-file"), directory("d directory")},
      {"qemu-img", Operands::key_value},
      {"rar", Operands::pack_command, removes("df dr dw")},
      {"readlink", Operands::read},
      {"rg", Operands::pattern, letters("ABCdefgEjMmrtT"),
       longs("regexp file glob type type-not max-count max-depth replace context"),
       reads("f file")},
      {"rimraf", Operands::remove_tree},
      {"rm", Operands::rm},
      {"rmdir", Operands::remove},
      {"rmtrash", same_as("rimraf")},
      {"rsync", Operands::sync, letters("efBTM"),
       longs(
           "rsh filter exclude exclude-from include include-from files-from bwlimit log-file "
           "temp-dir compare-dest copy-dest link-dest backup-dir suffix password-file port timeout "
           "chmod chown max-size min-size partial-dir out-format rsync-path block-size max-delete"),
       writes("log-file")},
      {"safe-rm", same_as("rm")},
      {"scp", Operands::copy, letters("cDFiJloPSX")},
      {"sed", Operands::sed, letters("efl"), longs("expression file line-length"), reads("f file")},
      {"setfacl", Operands::acl, letters("mxMXns"),
       longs("modify remove set modify-file set-file restore"), modes("m modify s set")},
      {"sha1sum", Operands::read},
      {"sha256sum", Operands::read},
      {"shred", Operands::shred, letters("ns"), longs("iterations size random-source")},
      {"sort", Operands::read, letters("koStT"),
       longs("key output buffer-size field-separator temporary-directory"), writes("o output")},
      {"sponge", Operands::write},
      {"srm", same_as("rimraf")},
      {"stat", Operands::read, letters("ct"), longs("format printf")},
      {"strings", Operands::read, letters("ntTe")},
      {"tac", Operands::read, letters("s"), longs("separator")},
      {"tail", Operands::read, letters("cns"), longs("bytes lines sleep-interval pid")},
      {"tar", Operands::tar, letters("fCTXbgHIKLNV"),
       longs("file directory files-from exclude exclude-from use-compress-program transform owner "
             "group mode mtime to-command checkpoint-action strip-components"),
       directory("C directory")},
      {"tee", Operands::write},
      {"touch", Operands::write, letters("drt"), longs("date reference time")},
      {"trash", same_as("rimraf")},
      {"trash-put", same_as("rimraf")},
      {"tree", Operands::read, letters("LPIoHT"), writes("o")},
      {"truncate", Operands::write, letters("rs"), longs("reference size")},
      {"uniq", Operands::filter, letters("fsw"), longs("skip-fields skip-chars check-chars")},
      {"unlink", Operands::remove},
      {"unzip", Operands::unpack, letters("dPx"), writes("d"), directory("d"),
       only_prints("l t p Z v")},
      {"wc", Operands::read, longs("files0-from")},
      {"wget", Operands::unpack, letters("aeioOPQtTUwABDIlRX"),
       longs("output-document output-file directory-prefix input-file header user-agent timeout "
             "tries"),
       reads("i input-file"), writes("O output-document o output-file a P directory-prefix"),
       directory("P directory-prefix"), only_prints("O output-document spider")},
      {"wipe", same_as("rimraf")},
      {"xxd", Operands::filter, letters("cglosR")},
      {"zcat", Operands::read},
      {"zip", Operands::pack, letters("bnPt"), removes("m move")},
  };
};

constexpr auto packed_files = pack_names<ProgramSource<FileRows>>();
static_assert(packed_files.is_sorted(), "sort the rows by name, each once");

// What a row says besides its names.
struct FileRowEntry {
  FileProgram::Operands operands = FileProgram::Operands::none;
  std::uint16_t row = 0;  // another one for same_as()
};
constexpr auto file_entries = entries_of<FileRows, FileRowEntry>([](const FileRows::Row& row) {
  const std::string_view name = row.other ? row.other : row.text(0);
  return FileRowEntry{row.operands, static_cast<std::uint16_t>(packed_files.table().find(name))};
});

constexpr bool file_options_are_known() {
  using Columns = FileColumns;
  for (const Columns::Row& row : FileRows::rows) {
    using Kind = Columns::Operands;
    const bool takes_modes = row.operands != Kind::fetch && row.operands != Kind::unpack &&
                             row.operands != Kind::pack && row.operands != Kind::pack_command;
    for (const std::size_t column : {Columns::reads_column, Columns::writes_column,
                                     Columns::directory_column, Columns::modes_column})
      if ((column != Columns::modes_column || takes_modes) && !row.has_options(row.text(column)))
        return false;
  }
  return true;
}
static_assert(file_options_are_known(), "an option with a file is in letters() or longs(), too");

}  // namespace

inline namespace inner {

NameTable file_table() { return packed_files.table(); }

bool find_file_program(std::string_view name, FileProgram& program) {
  using Columns = FileColumns;
  const NameTable table = file_table();
  std::size_t row = table.find(name);
  if (row == table.rows) return false;
  row = file_entries[row].row;
  program.operands = file_entries[row].operands;
  program.syntax = syntax_at(table, row);
  program.reads = table.at(row, Columns::reads_column);
  program.writes = table.at(row, Columns::writes_column);
  program.directory = table.at(row, Columns::directory_column);
  program.modes = table.at(row, Columns::modes_column);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
