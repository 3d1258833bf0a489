// The texts of the sanitizer's rules: a row for each, in the order of Rule.
//
//   {Rule::x, name("x"), message("..."), description("..."), instead("...")},
//
// A refusal reads "... detected: MESSAGE (the command); INSTEAD". The description is for a person:
// what the rule refuses, and what it lets pass.

#include "policy/rules_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The columns of a row. Each has a type of its own, so that no text can stand in another's place.
struct RuleColumns {
  struct Name {
    const char* text;
  };
  struct Message {
    const char* text;
  };
  struct Description {
    const char* text;
  };
  struct Instead {
    const char* text;
  };
  struct Pattern {
    const char* text;
  };
  static constexpr Name name(const char* text) { return {text}; }
  static constexpr Message message(const char* text) { return {text}; }
  static constexpr Description description(const char* text) { return {text}; }
  static constexpr Instead instead(const char* text) { return {text}; }
  static constexpr Pattern pattern(const char* text) { return {text}; }

  struct Row : RuleTexts {
    constexpr Row(Rule of, Name given, Message says, Description explains, Instead advises)
        : RuleTexts{of, given.text, says.text, explains.text, advises.text} {}
  };
  struct CompatRow : CompatRule {
    constexpr CompatRow(Rule of, Pattern matches, Message says)
        : CompatRule{of, matches.text, says.text} {}
  };
};

struct RuleRows : RuleColumns {
  static constexpr Row rows[] = {
      {Rule::sudo, name("sudo"), message("Use of 'sudo' is not allowed"),
       description("refuses sudo, sudoedit, doas and pkexec as commands, not as words: `which "
                   "sudo` passes"),
       instead("run it without")},
      {Rule::su, name("su"), message("Use of 'su' is not allowed"),
       description("refuses su and runuser as commands; `python su.py` passes"),
       instead("run the command as the user you are")},
      {Rule::chmod, name("chmod"),
       message("A mode that others may write by, with setuid or setgid, or not known, and -R of "
               "what the system needs, is not allowed"),
       description(
           "refuses chmod, install -m, mkdir -m and setfacl with a mode by which others may write, "
           "that sets setuid or setgid, or is not known before it runs, and chmod -R of what "
           "rm-protected protects; `chmod +x a.sh` and `chmod 1777 d` pass"),
       instead("give only what is needed, e.g. chmod u+x FILE")},
      {Rule::chown, name("chown"), message("Use of 'chown' is not allowed"),
       description("refuses any chown command; chgrp passes"), instead("leave the owner as it is")},
      {Rule::dd, name("dd"), message("Use of 'dd' command is not allowed"),
       description("refuses any dd command; `git add dd.txt` passes"),
       instead("use cp, head -c or truncate")},
      {Rule::mkfs, name("mkfs"), message("Formatting or wiping disks is not allowed"),
       description(
           "refuses mkfs, mkfs.*, mke2fs, wipefs and shred of a device; of a file they pass"),
       instead("use an image file in the workspace")},
      {Rule::disk_tools, name("disk-tools"),
       message("Changing disks, partitions or swap is not allowed"),
       description(
           "refuses fdisk, sfdisk, sgdisk, parted, mkswap, blkdiscard, cryptsetup, losetup, "
           "swapon, "
           "swapoff, hdparm --security-erase, nvme format, badblocks -w, mdadm and the like of a "
           "device, or of all; `sfdisk -l`, `hdparm -t` and image files pass"),
       instead("use an image file in the workspace")},
      {Rule::mount, name("mount"), message("Mounting and unmounting is not allowed"),
       description("refuses mount and umount; `mount` and `mount -l`, which list, pass"),
       instead("use the files where they are")},
      {Rule::device_write, name("device-write"), message("Writing to devices is not allowed"),
       description("refuses redirections, tee, cp, mv, curl -o and the like to a path under /dev; "
                   "null, zero, full, random, urandom, stdin, stdout, stderr, tty, ptmx, fd/*, "
                   "pts/*, shm/*, tcp/* and udp/* pass"),
       instead("write to a file")},
      {Rule::rm_protected, name("rm-protected"),
       message("Removing what the system or its users need is not allowed"),
       description("refuses to remove, by rm, mv, find -delete, git clean, rsync --delete and "
                   "others, /, anything directly in it, system directories and what they hold, and "
                   "home directories; `rm -rf /tmp/x` and `rm -rf ~/project/build` pass"),
       instead("name only what you made, e.g. ./build")},
      {Rule::rm_unset_variable, name("rm-unset-variable"),
       message("Removing / by a variable that is empty is not allowed"),
       description(
           "refuses `rm -rf \"$x\"/*` where the script sets no x; `rm -rf \"${x:?}\"/*` passes"),
       instead("write ${NAME:?} for $NAME")},
      {Rule::mv_dev_null, name("mv-dev-null"), message("Moving files to /dev/null is not allowed"),
       description("refuses mv with the destination /dev/null; `mv a b 2> /dev/null` passes"),
       instead("use rm")},
      {Rule::fork_bomb, name("fork-bomb"), message("Fork bombs are not allowed"),
       description(
           "refuses the call of a function that starts itself in a pipeline or in the background"),
       instead("start a fixed number of processes")},
      {Rule::end_machine, name("end-machine"),
       message("Stopping or restarting the machine is not allowed"),
       description("refuses reboot, halt, poweroff, shutdown, init 0, telinit, `systemctl reboot` "
                   "and the like; `shutdown -c` and `systemctl status x` pass"),
       instead("end only what you started, with kill PID")},
      {Rule::kill_all, name("kill-all"), message("Ending the processes of others is not allowed"),
       description("refuses kill of the process 1 or -1, killall5, pkill and killall of root's "
                   "processes or without a name; `kill 1234` and `pkill -f server` pass"),
       instead("name what you started: kill PID")},
      {Rule::machine_settings, name("machine-settings"),
       message("Changing settings of the kernel or the firewall is not allowed"),
       description("refuses sysctl -w, writing below /proc/sys, iptables -F and nft flush; `sysctl "
                   "-a` and `iptables -L` pass"),
       instead("only read them")},
      {Rule::accounts, name("accounts"),
       message("Giving users, groups or programs the rights of root is not allowed"),
       description(
           "refuses a user or group with the number 0, membership in sudo, wheel, docker and the "
           "like, passwd, chpasswd, vipw, visudo, and setcap of what makes root; `useradd bob`, "
           "`passwd -S` and `setcap cap_net_bind_service+ep x` pass"),
       instead("work with the rights that you have")},
      {Rule::host_access, name("host-access"),
       message("Reaching the host around its confinement is not allowed"),
       description(
           "refuses containers with /, a system folder or the engine's socket of the host, or "
           "with its rights (--privileged, --cap-add SYS_ADMIN), nsenter -t 1, machinectl shell "
           "of the host, chroot /proc/1/root, and systemd-run without --user and --scope; `docker "
           "run -v \"$PWD\":/src` passes"),
       instead("mount only your own folders, e.g. -v \"$PWD\":/src")},
      {Rule::plant, name("plant"),
       message("Writing what runs later or lets somebody in is not allowed"),
       description("refuses to write accounts, sudoers, cron, profiles, ssh, pam, udev and systemd "
                   "files in /etc, ~/.ssh, systemd user units and autostart, and crontab, at and "
                   "batch; `crontab -l` and ~/.ssh/known_hosts pass"),
       instead("keep files in the workspace and run commands now")},
      {Rule::opaque_shell_input, name("opaque-shell-input"),
       message("Shell input that is not known before it runs is not allowed"),
       description(
           "refuses a shell, eval or source that reads what the script does not tell: `curl x | "
           "sh`, `bash -c \"$(cat x)\"`; `bash build.sh` and `source .venv/bin/activate` pass"),
       instead("save it to a file, read that, and run it in a command of its own")},
      {Rule::unknown_command, name("unknown-command"),
       message("A command whose name is not known before it runs is not allowed"),
       description("refuses `$TOOL x` and `$(cat x)`, unless the script sets the variable; "
                   "`\"$VENV/bin/python\" x` passes"),
       instead("write the program's name out")},
  };
};

// Each row stands at the place of its rule.
constexpr bool rules_in_order() {
  std::size_t place = 0;
  for (const RuleTexts& row : RuleRows::rows)
    if (static_cast<std::size_t>(row.rule) != place++) return false;
  return place == rule_count;
}
static_assert(rules_in_order(), "a row for each Rule, in the order of the enumerators");

struct CompatRows : RuleColumns {
  static constexpr CompatRow rows[] = {
      {Rule::rm_protected, pattern(R"(\brm\s+-rf\s+/)"),
       message("Use of 'rm -rf /' is not allowed")},
      {Rule::mv_dev_null, pattern(R"(\bmv\b.*?\s+/dev/null)"),
       message("Moving files to /dev/null is not allowed")},
      {Rule::dd, pattern(R"(\bdd\b)"), message("Use of 'dd' command is not allowed")},
      {Rule::device_write, pattern(R"(>\s*/dev/sd[a-z][1-9]?)"),
       message("Overwriting disk blocks directly is not allowed")},
      {Rule::fork_bomb, pattern(R"(:\(\)\{\s*:\|\:&\s*\};:)"),
       message("Fork bombs are not allowed")},
      {Rule::sudo, pattern(R"(\bsudo\b)"), message("Use of 'sudo' is not allowed")},
      {Rule::su, pattern(R"(\bsu\b)"), message("Use of 'su' is not allowed")},
      {Rule::chown, pattern(R"(\bchown\b)"), message("Use of 'chown' is not allowed")},
      {Rule::chmod, pattern(R"(\bchmod\b)"), message("Use of 'chmod' is not allowed")},
  };
};

}  // namespace

inline namespace inner {

const RuleTexts& texts_of(Rule rule) { return RuleRows::rows[static_cast<std::size_t>(rule)]; }

// A row has no members of its own, so rows lie as what they are rows of.
CompatRules compat_rules() {
  static_assert(sizeof(RuleColumns::CompatRow) == sizeof(CompatRule), "rows with nothing besides");
  const CompatRule* const first = CompatRows::rows;
  return {first, first + std::size(CompatRows::rows)};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
