// Programs that are refused for their name, or for what they are asked: a row for each.
//
//   {"swapoff", Rule::disk_tools, any_device, options("a all")},
//
// The rule, then what is refused:
//   options           these options, whatever else is asked
//   words             these as the first operand
//   any_device ...    operands of a kind: RefusedProgram::Operand
//   numbers           these options with the number 0
//   groups            these options with a group whose members may become root
// Without these, the name is enough. And what excuses operands, or the name:
//   excuses           these options
//   excusing_words    these as one of the first two operands
//   needs             that none of these options is there
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
  static constexpr Operand last_device = Operand::last_device;
  static constexpr Operand root_user = Operand::root_user;
  static constexpr Operand root_group = Operand::root_group;
  static constexpr Operand joined_group = Operand::joined_group;
  static constexpr Operand capabilities = Operand::capabilities;

  enum : std::size_t {
    options_column = 3,
    words_column,
    excuses_column,
    excusing_words_column,
    needs_column,
    numbers_column,
    groups_column,
    columns
  };
  static constexpr TableText<options_column> options(const char* text) { return {text}; }
  static constexpr TableText<words_column> words(const char* text) { return {text}; }
  static constexpr TableText<excuses_column> excuses(const char* text) { return {text}; }
  static constexpr TableText<excusing_words_column> excusing_words(const char* text) {
    return {text};
  }
  static constexpr TableText<needs_column> needs(const char* text) { return {text}; }
  static constexpr TableText<numbers_column> numbers(const char* text) { return {text}; }
  static constexpr TableText<groups_column> groups(const char* text) { return {text}; }

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
      {"addgroup", Rule::accounts, joined_group, letters("g"), longs("gid"), numbers("g gid")},
      {"adduser", Rule::accounts, joined_group, letters("GdghksuS"),
       longs("uid gid ingroup home shell gecos comment firstuid lastuid conf"), numbers("u uid"),
       groups("G ingroup")},
      {"at", Rule::plant, letters("fqt"), excuses("l c d r V")},
      {"badblocks", Rule::disk_tools, any_device, letters("bcdeiopt"), needs("w n")},
      {"batch", Rule::plant, letters("fq"), excuses("V")},
      {"blkdiscard", Rule::disk_tools, any_device},
      {"cfdisk", Rule::disk_tools, any_device},
      {"cgdisk", Rule::disk_tools, any_device},
      {"chage", Rule::accounts, root_user, letters("EIMRWdm"),
       longs("expiredate inactive lastday maxdays mindays root warndays"), excuses("l list")},
      // Its modes are judged as those of file_table.cpp.
      {"chmod", Rule::chmod, options("reference")},
      {"chown", Rule::chown},
      {"chpasswd", Rule::accounts, excuses("h help")},
      {"crontab", Rule::plant, letters("u"), excuses("l V T help")},
      {"cryptsetup", Rule::disk_tools, any_device, excuses("help"),
       excusing_words("status luksDump isLuks luksUUID")},
      {"dd", Rule::dd},
      {"deluser", Rule::accounts, root_user},
      {"dmsetup", Rule::disk_tools, words("clear remove remove_all wipe_table")},
      {"doas", Rule::sudo},
      {"dseditgroup", Rule::accounts, root_group, letters("LPSTacdginoprstu"), needs("a")},
      {"dzdo", Rule::sudo},
      {"e2fsck", Rule::disk_tools, any_device, excuses("n V")},
      {"efibootmgr", Rule::disk_tools,
       options("B delete-bootnum O delete-bootorder c create o bootorder")},
      {"fdisk", Rule::disk_tools, any_device, excuses("l list")},
      {"flash_erase", Rule::disk_tools, any_device},
      {"flashcp", Rule::disk_tools, any_device},
      {"flashrom", Rule::disk_tools, letters("cilnoprvwE"), options("w write E erase")},
      {"fsck", Rule::disk_tools, any_device, excuses("N V n")},
      {"gdisk", Rule::disk_tools, any_device, excuses("l")},
      {"gpasswd", Rule::accounts, root_group, letters("AMQad"),
       longs("add administrators delete members root"), needs("A M a add administrators members")},
      {"groupadd", Rule::accounts, letters("KPRUgp"), longs("gid key password prefix root users"),
       numbers("g gid")},
      {"groupmems", Rule::accounts, letters("Radg"), longs("add delete group root"),
       groups("g group"), needs("a add")},
      {"groupmod", Rule::accounts, letters("PRUgnp"),
       longs("gid new-name password prefix root users"), numbers("g gid")},
      {"grub-install", Rule::disk_tools, any_device},
      {"halt", Rule::end_machine, excuses("help")},
      {"hdparm", Rule::disk_tools, any_device,
       needs("dco-restore drq-hsm-error fwdownload make-bad-sector repair-sector "
             "sanitize-block-erase sanitize-crypto-scramble sanitize-overwrite security-disable "
             "security-erase security-erase-enhanced security-set-pass trim-sector-ranges "
             "trim-sector-ranges-stdin write-sector yes-i-know-what-i-am-doing")},
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
      {"lvremove", Rule::disk_tools, any_operand, letters("St"), excuses("t test")},
      {"mdadm", Rule::disk_tools, any_device, options("zero-superblock"),
       excuses("D E F Q V detail examine help misc-help monitor query version")},
      {"mke2fs", Rule::mkfs, any_device},
      // mkfs.ext4 and its like, too.
      {"mkfs", Rule::mkfs, any_device},
      {"mkswap", Rule::disk_tools, any_device},
      {"mount", Rule::mount, any_operand, letters("tLUT"), longs("types"),
       options("a all o options B bind R rbind M move"), excuses("V version help")},
      {"newusers", Rule::accounts, excuses("h help")},
      {"nft", Rule::machine_settings, letters("fDI"), words("flush")},
      {"nvme", Rule::disk_tools,
       words("copy create-ns delete-ns dsm format fw-commit fw-download resv-release sanitize "
             "security-send write write-uncor write-zeroes zns"),
       excuses("h help")},
      {"nwipe", Rule::disk_tools, any_device, options("autonuke")},
      {"parted", Rule::disk_tools, any_device, letters("a"), longs("align"), excuses("l list"),
       excusing_words("print")},
      {"partx", Rule::disk_tools, any_device, needs("a add d delete u update")},
      {"passwd", Rule::accounts, excuses("S h help l lock status")},
      {"pkexec", Rule::sudo},
      {"pkill", Rule::kill_all, unnamed_processes, letters("gGPstuUFrO"),
       longs("signal pgroup group parent session terminal euid uid pidfile ns"),
       excuses("P parent g pgroup s session t terminal F pidfile V version help")},
      {"poweroff", Rule::end_machine, excuses("help")},
      {"pvcreate", Rule::disk_tools, any_device},
      {"pvremove", Rule::disk_tools, any_device},
      {"qemu-img", Rule::device_write, last_device, letters("BFORSTbcfjlmorst"),
       longs("object image-opts target-image-opts output"),
       excusing_words("check compare info map measure")},
      {"reboot", Rule::end_machine, excuses("help")},
      {"resize2fs", Rule::disk_tools, any_device, excuses("P")},
      {"run0", Rule::sudo},
      {"runuser", Rule::su},
      {"scrub", Rule::disk_tools, any_device, letters("DXbps")},
      {"setcap", Rule::accounts, capabilities, letters("n"), excuses("r v")},
      // The entries in a file are not known; those of -m are judged as modes.
      {"setfacl", Rule::chmod, options("M modify-file set-file restore")},
      {"sfdisk", Rule::disk_tools, any_device, options("delete wipe"),
       excuses("l list d dump s show-size F list-free V verify J json")},
      {"sg_format", Rule::disk_tools, any_device},
      {"sg_sanitize", Rule::disk_tools, any_device},
      {"sgdisk", Rule::disk_tools, any_device,
       options("Z zap-all z zap o clear n new d delete t typecode g mbrtogpt l load-backup"),
       excuses("p print i info v verify L list-types")},
      {"shred", Rule::mkfs, any_device},
      {"shutdown", Rule::end_machine, excuses("c help")},
      {"su", Rule::su},
      {"su-rs", Rule::su},
      {"sudo", Rule::sudo},
      {"sudo-rs", Rule::sudo},
      {"sudoedit", Rule::sudo},
      {"swapoff", Rule::disk_tools, any_device, options("a all")},
      {"swapon", Rule::disk_tools, any_device, options("a all"), excuses("s summary show")},
      {"sysctl", Rule::machine_settings, any_assignment, options("w write p load system f")},
      {"systemctl", Rule::end_machine, letters("HMtpPons"),
       longs("host machine type property output signal lines state root"),
       words("reboot poweroff halt kexec rescue emergency isolate"), excuses("help")},
      {"telinit", Rule::end_machine, excuses("help")},
      {"tune2fs", Rule::disk_tools, any_device, excuses("l")},
      {"umount", Rule::mount, any_operand, letters("tO"), longs("types"),
       options("a all A all-targets"), excuses("V version help")},
      {"useradd", Rule::accounts, letters("FGKPRZbcdefgkpsu"),
       longs("base-dir comment gid groups home-dir inactive key expiredate password prefix root "
             "selinux-user shell skel uid"),
       numbers("u uid"), groups("G g gid groups")},
      {"userdel", Rule::accounts, root_user, letters("PR"), longs("prefix root")},
      {"usermod", Rule::accounts, root_user, letters("GPRVWZcdefglpsuvw"),
       longs("add-subgids add-subuids comment expiredate gid groups home inactive login password "
             "prefix root selinux-user shell uid"),
       needs("G U g gid groups l login p password u uid unlock"), numbers("u uid"),
       groups("G g gid groups")},
      {"vgcreate", Rule::disk_tools, any_device},
      {"vgremove", Rule::disk_tools, any_operand, letters("St"), excuses("t test")},
      {"vigr", Rule::accounts},
      {"vipw", Rule::accounts},
      {"visudo", Rule::accounts, letters("fx"), excuses("V c check h help version")},
      {"wipefs", Rule::mkfs, any_device},
      {"xfs_repair", Rule::disk_tools, any_device, excuses("V n")},
      {"zfs", Rule::disk_tools, words("destroy rollback")},
      {"zpool", Rule::disk_tools, words("create destroy labelclear")},
  };
};

constexpr auto packed_refused = pack_names<ProgramSource<RefusedRows>>();
static_assert(packed_refused.is_sorted(), "sort the rows by name, each once");

// What a row says besides its names.
struct RefusedEntry {
  Rule rule = Rule::sudo;
  std::uint16_t operands = 0;
};
constexpr auto refused_entries =
    entries_of<RefusedRows, RefusedEntry>([](const RefusedRows::Row& row) {
      return RefusedEntry{row.rule, static_cast<std::uint16_t>(row.operands)};
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
  program.needs = table.at(row, Columns::needs_column);
  program.numbers = table.at(row, Columns::numbers_column);
  program.groups = table.at(row, Columns::groups_column);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
