// Programs that are refused for their name, or for what they are asked: a row for each.
//
//   {"swapoff", Rule::disk_tools, any_device, options("a all")},
//
// The rule, then what is refused:
//   options           these options, whatever else is asked
//   words             these as the first operand
//   any_device ...    operands of a kind: RefusedProgram::Operand
// Without these three, the name is enough. And what excuses operands, or the name:
//   excuses           these options
//   excusing_words    these as one of the first two operands
// letters() and longs() name the options that take an argument, so that it is no operand.

#include "policy/columns_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

struct RefusedColumns : ProgramColumns {
  using Operand = RefusedProgram::Operand;
  static constexpr Operand any_operand = Operand::any_operand;
  static constexpr Operand any_assignment = Operand::any_assignment;
  static constexpr Operand any_device = Operand::any_device;
  static constexpr Operand all_processes = Operand::all_processes;
  static constexpr Operand unnamed_processes = Operand::unnamed_processes;

  enum : std::size_t {
    options_column = 3,
    words_column,
    excuses_column,
    excusing_words_column,
    columns
  };
  static constexpr TableText<options_column> options(const char* text) { return {text}; }
  static constexpr TableText<words_column> words(const char* text) { return {text}; }
  static constexpr TableText<excuses_column> excuses(const char* text) { return {text}; }
  static constexpr TableText<excusing_words_column> excusing_words(const char* text) {
    return {text};
  }

  struct Row : ProgramRow<columns> {
    using ProgramRow<columns>::add;
    template <class... More>
    constexpr Row(const char* name, Rule refused_by, More... more)
        : ProgramRow<columns>(name), rule(refused_by) {
      (add(more), ...);
    }
    constexpr void add(Operand operand) { operands |= operand; }

    Rule rule;
    unsigned operands = 0;
  };
};

struct RefusedRows : RefusedColumns {
  static constexpr Row rows[] = {
      {"at", Rule::plant, letters("fqt"), excuses("l c d r V")},
      {"batch", Rule::plant, letters("fq"), excuses("V")},
      {"blkdiscard", Rule::disk_tools, any_device},
      // Its modes are judged as those of file_table.cpp.
      {"chmod", Rule::chmod, options("reference")},
      {"chown", Rule::chown},
      {"crontab", Rule::plant, letters("u"), excuses("l V T help")},
      {"cryptsetup", Rule::disk_tools, any_device, excuses("help"),
       excusing_words("status luksDump isLuks luksUUID")},
      {"dd", Rule::dd},
      {"doas", Rule::sudo},
      {"fdisk", Rule::disk_tools, any_device, excuses("l list")},
      {"halt", Rule::end_machine, excuses("help")},
      // Its words are runlevels: to halt, and to reboot.
      {"init", Rule::end_machine, words("0 6")},
      {"ip6tables", Rule::machine_settings, options("F flush")},
      {"iptables", Rule::machine_settings, options("F flush")},
      {"kill", Rule::kill_all, all_processes},
      {"killall", Rule::kill_all, unnamed_processes, letters("suoynZ"),
       longs("signal user older-than younger-than ns context"), excuses("l list V version help")},
      {"killall5", Rule::kill_all},
      {"losetup", Rule::disk_tools, any_device, options("D detach-all d detach"),
       excuses("l list a all j associated show")},
      {"mke2fs", Rule::mkfs, any_device},
      // mkfs.ext4 and its like, too.
      {"mkfs", Rule::mkfs, any_device},
      {"mkswap", Rule::disk_tools, any_device},
      {"mount", Rule::mount, any_operand, letters("tLUT"), longs("types"),
       options("a all o options B bind R rbind M move"), excuses("V version help")},
      {"nft", Rule::machine_settings, letters("fDI"), words("flush")},
      {"parted", Rule::disk_tools, any_device, letters("a"), longs("align"), excuses("l list"),
       excusing_words("print")},
      {"pkexec", Rule::sudo},
      {"pkill", Rule::kill_all, unnamed_processes, letters("gGPstuUFrO"),
       longs("signal pgroup group parent session terminal euid uid pidfile ns"),
       excuses("P parent g pgroup s session t terminal F pidfile V version help")},
      {"poweroff", Rule::end_machine, excuses("help")},
      {"reboot", Rule::end_machine, excuses("help")},
      {"run0", Rule::sudo},
      {"runuser", Rule::su},
      // The entries in a file are not known; those of -m are judged as modes.
      {"setfacl", Rule::chmod, options("M modify-file set-file restore")},
      {"sfdisk", Rule::disk_tools, any_device, options("delete wipe"),
       excuses("l list d dump s show-size F list-free V verify J json")},
      {"sgdisk", Rule::disk_tools, any_device,
       options("Z zap-all z zap o clear n new d delete t typecode g mbrtogpt l load-backup"),
       excuses("p print i info v verify L list-types")},
      {"shred", Rule::mkfs, any_device},
      {"shutdown", Rule::end_machine, excuses("c help")},
      {"su", Rule::su},
      {"sudo", Rule::sudo},
      {"sudoedit", Rule::sudo},
      {"swapoff", Rule::disk_tools, any_device, options("a all")},
      {"swapon", Rule::disk_tools, any_device, options("a all"), excuses("s summary show")},
      {"sysctl", Rule::machine_settings, any_assignment, options("w write p load system f")},
      {"systemctl", Rule::end_machine, letters("HMtpPons"),
       longs("host machine type property output signal lines state root"),
       words("reboot poweroff halt kexec rescue emergency isolate"), excuses("help")},
      {"telinit", Rule::end_machine, excuses("help")},
      {"umount", Rule::mount, any_operand, letters("tO"), longs("types"),
       options("a all A all-targets"), excuses("V version help")},
      {"wipefs", Rule::mkfs, any_device},
  };
};

constexpr auto packed_refused = pack_names<ProgramSource<RefusedRows>>();
static_assert(packed_refused.is_sorted(), "sort the rows by name, each once");

// What a row says besides its names.
struct RefusedEntry {
  Rule rule = Rule::sudo;
  unsigned char operands = 0;
};
constexpr auto refused_entries =
    entries_of<RefusedRows, RefusedEntry>([](const RefusedRows::Row& row) {
      return RefusedEntry{row.rule, static_cast<unsigned char>(row.operands)};
    });

}  // namespace

inline namespace inner {

NameTable refused_table() { return packed_refused.table(); }

bool find_refused(std::string_view name, RefusedProgram& program) {
  using Columns = RefusedColumns;
  const NameTable table = refused_table();
  const std::size_t row = table.find(name);
  if (row == table.rows) return false;
  program.rule = refused_entries[row].rule;
  program.operands = refused_entries[row].operands;
  program.syntax = syntax_at(table, row);
  program.options = table.at(row, Columns::options_column);
  program.words = table.at(row, Columns::words_column);
  program.excuses = table.at(row, Columns::excuses_column);
  program.excusing_words = table.at(row, Columns::excusing_words_column);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
