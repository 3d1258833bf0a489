// The sanitizer's rules: their order and their words.
#pragma once

#include "policy/policy.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The rules in the order of judgement in strict mode.
enum class Rule : unsigned char {
  sudo,
  su,
  chmod,
  chown,
  dd,
  mkfs,
  disk_tools,
  mount,
  device_write,
  rm_protected,
  rm_unset_variable,
  mv_dev_null,
  fork_bomb,
  end_machine,
  kill_all,
  machine_settings,
  plant,
  opaque_shell_input,
  unknown_command,
};

struct SanitizerRule {
  Rule rule = Rule::sudo;
  RuleInfo info = {};
  const char* advice = "";      // what to do instead: the end of the refusal
  bool lifted_by_sudo = false;  // does not apply where PolicyOptions::enable_sudo is set
};

inline constexpr SanitizerRule sanitizer_rules[] = {
    {Rule::sudo,
     {"sudo", "Use of 'sudo' is not allowed",
      "refuses sudo, sudoedit, doas and pkexec as commands, not as words: `which sudo` passes",
      true},
     "run it without",
     true},
    {Rule::su,
     {"su", "Use of 'su' is not allowed",
      "refuses su and runuser as commands; `python su.py` passes", true},
     "run the command as the user you are",
     true},
    {Rule::chmod,
     {"chmod", "A mode that others may write by, or with setuid or setgid, is not allowed",
      "refuses chmod, install -m, mkdir -m and setfacl with a mode by which others may write, that "
      "sets setuid or setgid, or is not known before it runs, and chmod -R of what rm-protected "
      "protects; `chmod +x a.sh` and `chmod 1777 d` pass",
      true},
     "give only what is needed, e.g. chmod u+x FILE",
     true},
    {Rule::chown,
     {"chown", "Use of 'chown' is not allowed", "refuses any chown command; chgrp passes", true},
     "leave the owner as it is",
     true},
    {Rule::dd,
     {"dd", "Use of 'dd' command is not allowed", "refuses any dd command; `git add dd.txt` passes",
      true},
     "use cp, head -c or truncate",
     false},
    {Rule::mkfs,
     {"mkfs", "Formatting or wiping disks is not allowed",
      "refuses mkfs, mkfs.*, mke2fs, wipefs and shred of a device; of a file they pass", false},
     "use an image file in the workspace",
     false},
    {Rule::disk_tools,
     {"disk-tools", "Changing disks, partitions or swap is not allowed",
      "refuses fdisk, sfdisk, sgdisk, parted, mkswap, blkdiscard, cryptsetup, losetup, swapon and "
      "swapoff of a device, or of all; `sfdisk -l` and image files pass",
      false},
     "use an image file in the workspace",
     false},
    {Rule::mount,
     {"mount", "Mounting and unmounting is not allowed",
      "refuses mount and umount; `mount` and `mount -l`, which list, pass", false},
     "use the files where they are",
     false},
    {Rule::device_write,
     {"device-write", "Writing to devices is not allowed",
      "refuses redirections, tee, cp, mv, curl -o and the like to a path under /dev; null, zero, "
      "full, random, urandom, stdin, stdout, stderr, tty, ptmx, fd/*, pts/*, shm/*, tcp/* and "
      "udp/* pass",
      true},
     "write to a file",
     false},
    {Rule::rm_protected,
     {"rm-protected", "Removing what the system or its users need is not allowed",
      "refuses to remove, by rm, mv, find -delete, git clean, rsync --delete and others, /, "
      "anything directly in it, system directories and what they hold, and home directories; "
      "`rm -rf /tmp/x` and `rm -rf ~/project/build` pass",
      true},
     "name only what you made, e.g. ./build",
     false},
    {Rule::rm_unset_variable,
     {"rm-unset-variable", "Removing / by a variable that is empty is not allowed",
      "refuses `rm -rf \"$x\"/*` where the script sets no x; `rm -rf \"${x:?}\"/*` passes", false},
     "write ${NAME:?} for $NAME",
     false},
    {Rule::mv_dev_null,
     {"mv-dev-null", "Moving files to /dev/null is not allowed",
      "refuses mv with the destination /dev/null; `mv a b 2> /dev/null` passes", true},
     "use rm",
     false},
    {Rule::fork_bomb,
     {"fork-bomb", "Fork bombs are not allowed",
      "refuses the call of a function that starts itself in a pipeline or in the background", true},
     "start a fixed number of processes",
     false},
    {Rule::end_machine,
     {"end-machine", "Stopping or restarting the machine is not allowed",
      "refuses reboot, halt, poweroff, shutdown, init 0, telinit, `systemctl reboot` and the like; "
      "`shutdown -c` and `systemctl status x` pass",
      false},
     "end only what you started, with kill PID",
     false},
    {Rule::kill_all,
     {"kill-all", "Ending the processes of others is not allowed",
      "refuses kill of the process 1 or -1, killall5, pkill and killall of root's processes or "
      "without a name; `kill 1234` and `pkill -f server` pass",
      false},
     "name what you started: kill PID",
     false},
    {Rule::machine_settings,
     {"machine-settings", "Changing settings of the kernel or the firewall is not allowed",
      "refuses sysctl -w, writing below /proc/sys, iptables -F and nft flush; `sysctl -a` and "
      "`iptables -L` pass",
      false},
     "only read them",
     false},
    {Rule::plant,
     {"plant", "Writing what runs later or lets somebody in is not allowed",
      "refuses to write accounts, sudoers, cron, profiles, ssh, pam, udev and systemd files in "
      "/etc, ~/.ssh, systemd user units and autostart, and crontab, at and batch; `crontab -l` and "
      "~/.ssh/known_hosts pass",
      false},
     "keep files in the workspace and run commands now",
     false},
    {Rule::opaque_shell_input,
     {"opaque-shell-input", "Shell input that is not known before it runs is not allowed",
      "refuses a shell, eval or source that reads what the script does not tell: `curl x | sh`, "
      "`bash -c \"$(cat x)\"`; `bash build.sh` and `source .venv/bin/activate` pass",
      false},
     "save it to a file and run `sh FILE`",
     false},
    {Rule::unknown_command,
     {"unknown-command", "A command whose name is not known before it runs is not allowed",
      "refuses `$TOOL x` and `$(cat x)`, unless the script sets the variable; "
      "`\"$VENV/bin/python\" x` passes",
      false},
     "write the program's name out",
     false},
};
inline constexpr std::size_t rule_count = std::size(sanitizer_rules);

// Rows are found by their rule's number.
constexpr bool in_order_of_rules() {
  for (std::size_t i = 0; i < rule_count; ++i)
    if (static_cast<std::size_t>(sanitizer_rules[i].rule) != i) return false;
  return true;
}
static_assert(in_order_of_rules(), "sort the rows of sanitizer_rules as the enumerators of Rule");

struct CompatRule {
  Rule rule = Rule::sudo;
  const char* pattern = "";
  const char* message = "";
};

// In MassGen's order and words.
inline constexpr CompatRule compat_rules[] = {
    {Rule::rm_protected, R"(\brm\s+-rf\s+/)", "Use of 'rm -rf /' is not allowed"},
    {Rule::mv_dev_null, R"(\bmv\b.*?\s+/dev/null)", "Moving files to /dev/null is not allowed"},
    {Rule::dd, R"(\bdd\b)", "Use of 'dd' command is not allowed"},
    {Rule::device_write, R"(>\s*/dev/sd[a-z][1-9]?)",
     "Overwriting disk blocks directly is not allowed"},
    {Rule::fork_bomb, R"(:\(\)\{\s*:\|\:&\s*\};:)", "Fork bombs are not allowed"},
    {Rule::sudo, R"(\bsudo\b)", "Use of 'sudo' is not allowed"},
    {Rule::su, R"(\bsu\b)", "Use of 'su' is not allowed"},
    {Rule::chown, R"(\bchown\b)", "Use of 'chown' is not allowed"},
    {Rule::chmod, R"(\bchmod\b)", "Use of 'chmod' is not allowed"},
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
