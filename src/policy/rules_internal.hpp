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

// Of each rule, in the order of Rule: its RuleInfo (name, message, description), and what to do
// instead, which is the end of the refusal. Each ends with a NUL byte.
inline constexpr char rule_texts[] =
    "sudo\0Use of 'sudo' is not allowed\0refuses sudo, sudoedit, doas and pkexec as commands, not "
    "as words: `which sudo` passes\0run it without\0"
    "su\0Use of 'su' is not allowed\0refuses su and runuser as commands; `python su.py` "
    "passes\0run the command as the user you are\0"
    "chmod\0A mode that others may write by, with setuid or setgid, or not known, and -R of what "
    "the system needs, is not allowed\0refuses chmod, install -m, mkdir -m and setfacl with a mode "
    "by which others may write, that sets setuid or setgid, or is not known before it runs, and "
    "chmod -R of what rm-protected protects; `chmod +x a.sh` and `chmod 1777 d` pass\0give only "
    "what is needed, e.g. chmod u+x FILE\0"
    "chown\0Use of 'chown' is not allowed\0refuses any chown command; chgrp passes\0leave the "
    "owner as it is\0"
    "dd\0Use of 'dd' command is not allowed\0refuses any dd command; `git add dd.txt` passes\0use "
    "cp, head -c or truncate\0"
    "mkfs\0Formatting or wiping disks is not allowed\0refuses mkfs, mkfs.*, mke2fs, wipefs and "
    "shred of a device; of a file they pass\0use an image file in the workspace\0"
    "disk-tools\0Changing disks, partitions or swap is not allowed\0refuses fdisk, sfdisk, sgdisk, "
    "parted, mkswap, blkdiscard, cryptsetup, losetup, swapon and swapoff of a device, or of all; "
    "`sfdisk -l` and image files pass\0use an image file in the workspace\0"
    "mount\0Mounting and unmounting is not allowed\0refuses mount and umount; `mount` and `mount "
    "-l`, which list, pass\0use the files where they are\0"
    "device-write\0Writing to devices is not allowed\0refuses redirections, tee, cp, mv, curl -o "
    "and the like to a path under /dev; null, zero, full, random, urandom, stdin, stdout, stderr, "
    "tty, ptmx, fd/*, pts/*, shm/*, tcp/* and udp/* pass\0write to a file\0"
    "rm-protected\0Removing what the system or its users need is not allowed\0refuses to remove, "
    "by rm, mv, find -delete, git clean, rsync --delete and others, /, anything directly in it, "
    "system directories and what they hold, and home directories; `rm -rf /tmp/x` and `rm -rf "
    "~/project/build` pass\0name only what you made, e.g. ./build\0"
    "rm-unset-variable\0Removing / by a variable that is empty is not allowed\0refuses `rm -rf "
    "\"$x\"/*` where the script sets no x; `rm -rf \"${x:?}\"/*` passes\0write ${NAME:?} for "
    "$NAME\0"
    "mv-dev-null\0Moving files to /dev/null is not allowed\0refuses mv with the destination "
    "/dev/null; `mv a b 2> /dev/null` passes\0use rm\0"
    "fork-bomb\0Fork bombs are not allowed\0refuses the call of a function that starts itself in a "
    "pipeline or in the background\0start a fixed number of processes\0"
    "end-machine\0Stopping or restarting the machine is not allowed\0refuses reboot, halt, "
    "poweroff, shutdown, init 0, telinit, `systemctl reboot` and the like; `shutdown -c` and "
    "`systemctl status x` pass\0end only what you started, with kill PID\0"
    "kill-all\0Ending the processes of others is not allowed\0refuses kill of the process 1 or -1, "
    "killall5, pkill and killall of root's processes or without a name; `kill 1234` and `pkill -f "
    "server` pass\0name what you started: kill PID\0"
    "machine-settings\0Changing settings of the kernel or the firewall is not allowed\0refuses "
    "sysctl -w, writing below /proc/sys, iptables -F and nft flush; `sysctl -a` and `iptables -L` "
    "pass\0only read them\0"
    "plant\0Writing what runs later or lets somebody in is not allowed\0refuses to write accounts, "
    "sudoers, cron, profiles, ssh, pam, udev and systemd files in /etc, ~/.ssh, systemd user units "
    "and autostart, and crontab, at and batch; `crontab -l` and ~/.ssh/known_hosts pass\0keep "
    "files in the workspace and run commands now\0"
    "opaque-shell-input\0Shell input that is not known before it runs is not allowed\0refuses a "
    "shell, eval or source that reads what the script does not tell: `curl x | sh`, `bash -c "
    "\"$(cat x)\"`; `bash build.sh` and `source .venv/bin/activate` pass\0save it to a file and "
    "run `sh FILE`\0"
    "unknown-command\0A command whose name is not known before it runs is not allowed\0refuses "
    "`$TOOL x` and `$(cat x)`, unless the script sets the variable; `\"$VENV/bin/python\" x` "
    "passes\0write the program's name out\0";
inline constexpr std::size_t rule_count = static_cast<std::size_t>(Rule::unknown_command) + 1;
inline constexpr std::string_view all_rule_texts(rule_texts, sizeof rule_texts - 1);

constexpr std::size_t count_texts(std::string_view texts) {
  std::size_t count = 0;
  for (const char c : texts) count += c == '\0' ? 1 : 0;
  return count;
}
static_assert(count_texts(all_rule_texts) == 4 * rule_count, "four texts for each Rule");

// The texts of a rule; those of its RuleInfo come first.
struct RuleTexts {
  const char* texts[4] = {};
};
RuleTexts texts_of(Rule rule);

constexpr std::uint32_t bit(Rule rule) { return std::uint32_t{1} << static_cast<unsigned>(rule); }

// Those that do not apply where PolicyOptions::enable_sudo is set.
inline constexpr std::uint32_t lifted_by_sudo =
    bit(Rule::sudo) | bit(Rule::su) | bit(Rule::chmod) | bit(Rule::chown);

// The rules that have a pattern in compat mode, with it and its message, in MassGen's order and
// words.
inline constexpr Rule compat_rules[] = {Rule::rm_protected, Rule::mv_dev_null, Rule::dd,
                                        Rule::device_write, Rule::fork_bomb,   Rule::sudo,
                                        Rule::su,           Rule::chown,       Rule::chmod};
inline constexpr char compat_texts[] = R"(\brm\s+-rf\s+/)"
                                       "\0"
                                       "Use of 'rm -rf /' is not allowed\0"
                                       R"(\bmv\b.*?\s+/dev/null)"
                                       "\0"
                                       "Moving files to /dev/null is not allowed\0"
                                       R"(\bdd\b)"
                                       "\0"
                                       "Use of 'dd' command is not allowed\0"
                                       R"(>\s*/dev/sd[a-z][1-9]?)"
                                       "\0"
                                       "Overwriting disk blocks directly is not allowed\0"
                                       R"(:\(\)\{\s*:\|\:&\s*\};:)"
                                       "\0"
                                       "Fork bombs are not allowed\0"
                                       R"(\bsudo\b)"
                                       "\0"
                                       "Use of 'sudo' is not allowed\0"
                                       R"(\bsu\b)"
                                       "\0"
                                       "Use of 'su' is not allowed\0"
                                       R"(\bchown\b)"
                                       "\0"
                                       "Use of 'chown' is not allowed\0"
                                       R"(\bchmod\b)"
                                       "\0"
                                       "Use of 'chmod' is not allowed\0";
inline constexpr std::string_view all_compat_texts(compat_texts, sizeof compat_texts - 1);
static_assert(count_texts(all_compat_texts) == 2 * std::size(compat_rules), "two texts for each");

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
