// What the policy knows of programs: rules, paths, wrappers, interpreters, options.
#pragma once

#include "policy/rules_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Lists of names are texts with blanks between the names: rows of pointers would weigh three times
// as much.

// Directories that hold the homes of users.
inline constexpr std::string_view home_parents = "Users home";

// Directories of / with all that is below. All other names that begin with lib count, too.
inline constexpr std::string_view protected_trees =
    "bin boot dev etc lib lib32 lib64 libx32 proc root sbin sys usr";

// Directories of / that may lose single entries, but not all at once (rm -rf /var/*).
inline constexpr std::string_view protected_contents = "Users home media mnt opt run srv var";

// Entries of /dev that anyone may write to, and directories whose entries are such.
inline constexpr std::string_view harmless_devices =
    "full null ptmx random stderr stdin stdout tty urandom zero";
inline constexpr std::string_view harmless_device_directories = "fd pts shm tcp udp";

// Paths that are not written to, with what is below them. ~ stands for any home directory.
struct KeptPlace {
  Rule rule = Rule::plant;
  const char* paths = "";  // blanks between them; names may be patterns
};
inline constexpr KeptPlace kept_places[] = {
    {Rule::end_machine, "/proc/sysrq-trigger"},
    {Rule::machine_settings, "/proc/sys"},
    {Rule::plant,
     "/etc/passwd /etc/shadow /etc/group /etc/gshadow /etc/sudoers* /etc/cron* /etc/profile* "
     "/etc/environment /etc/bash.bashrc /etc/rc.local /etc/init.d /etc/ld.so.* /etc/ssh /etc/pam.d "
     "/etc/udev /etc/systemd /var/spool/cron ~/.ssh ~/.config/systemd/user ~/.config/autostart"},
};
inline constexpr std::string_view harmless_places = "~/.ssh/known_hosts";

// What lies below these may be removed a file at a time.
inline constexpr std::string_view removable_places = "/dev/shm/* /opt/* /usr/local/*";

// What find may remove by name, path, time or owner.
inline constexpr std::string_view scratch_places = "/tmp /var/tmp ~";
inline constexpr std::string_view find_tests =
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -mtime -mmin "
    "-atime -amin -ctime -cmin -used -anewer -cnewer -user -uid -nouser -group -gid -nogroup";

// Variables that commands have although no script sets them.
inline constexpr std::string_view given_variables =
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TERM PWD OLDPWD UID EUID PPID HOSTNAME "
    "HOSTTYPE RANDOM SECONDS";

// The options of a program that take an argument, as getopt_long has them: letters, and long names
// with blanks between them. Behind a ! stand the long names that take none: all others do.
struct Syntax {
  std::string_view letters = {};
  std::string_view longs = {};
  std::string_view twice = {};  // long names that take two
};

// Programs that read shell scripts.
inline constexpr std::string_view shells =
    "ash bash dash ksh ksh93 mksh oksh posh rbash sh yash zsh";
inline constexpr Syntax shell_syntax = {"oO", "rcfile init-file"};

// Languages whose code can start programs.
enum class Language : unsigned char { awk, lua, node, perl, php, python, ruby };
// Functions of these languages that start a program or a shell, and such that remove a directory
// with all it holds. The last part of a name counts: os.system is system.
inline constexpr std::string_view starting_functions =
    "Popen call check_call check_output create_subprocess_exec create_subprocess_shell exec "
    "execFile execFileSync execSync execl execle execlp execlpe execute execv execve execvp "
    "execvpe getoutput getstatusoutput passthru popen proc_open run shell_exec spawn spawnSync "
    "spawnl spawnlp spawnv spawnvp system";
inline constexpr std::string_view removing_functions =
    "removeSync remove_dir_all remove_tree rimraf rm rmSync rm_r rm_rf rmdirSync rmtree";

// Tables of programs are texts, too: a program to the line, with | between its columns and blanks
// between the entries of one. A column at the end may be missing.

// Programs that are refused, with the rule, for their name or for what they are asked:
// name|rule|options with an argument: letters, then long names|options that are refused|
// operands that are refused|options that excuse the operands, or the name.
// Operands: a word stands for itself as the first one, * for any, = for an assignment, /dev for a
// device, @processes for missing names of processes, @kill for the process 1 or -1. Where both
// columns of what is refused are empty, the name is enough. In the last column, +word is one of
// the first two operands.
inline constexpr std::string_view refused_programs =
    "at|plant|fqt|||l c d r V\nbatch|plant|fq|||V\nblkdiscard|disk-tools|||/dev\n"
    "chmod|chmod||reference\nchown|chown\ncrontab|plant|u|||l V T help\n"
    "cryptsetup|disk-tools|||/dev|+status +luksDump +isLuks +luksUUID help\ndd|dd\ndoas|sudo\n"
    "fdisk|disk-tools|||/dev|l list\nhalt|end-machine||||help\ninit|end-machine|||0 6\n"
    "ip6tables|machine-settings||F flush\niptables|machine-settings||F flush\n"
    "kill|kill-all|||@kill\n"
    "killall|kill-all|suoynZ signal user older-than younger-than ns context||@processes|l list V "
    "version help\nkillall5|kill-all\n"
    "losetup|disk-tools||D detach-all d detach|/dev|l list a all j associated show\n"
    "mke2fs|mkfs|||/dev\nmkfs|mkfs|||/dev\nmkswap|disk-tools|||/dev\n"
    "mount|mount|tLUT types|a all o options B bind R rbind M move|*|V version help\n"
    "nft|machine-settings|fDI||flush\nparted|disk-tools|a align||/dev|l list +print\npkexec|sudo\n"
    "pkill|kill-all|gGPstuUFrO signal pgroup group parent session terminal euid uid pidfile "
    "ns||@processes|P parent g pgroup s session t terminal F pidfile V version help\n"
    "poweroff|end-machine||||help\nreboot|end-machine||||help\nrun0|sudo\nrunuser|su\n"
    "setfacl|chmod||M modify-file set-file restore\n"
    "sfdisk|disk-tools||delete wipe|/dev|l list d dump s show-size F list-free V verify J json\n"
    "sgdisk|disk-tools||Z zap-all z zap o clear n new d delete t typecode g mbrtogpt l "
    "load-backup|/dev|p print i info v verify L list-types\nshred|mkfs|||/dev\n"
    "shutdown|end-machine||||c help\nsu|su\nsudo|sudo\nsudoedit|sudo\n"
    "swapoff|disk-tools||a all|/dev\nswapon|disk-tools||a all|/dev|s summary show\n"
    "sysctl|machine-settings||w write p load system f|=\n"
    "systemctl|end-machine|HMtpPons host machine type property output signal lines state "
    "root||reboot poweroff halt kexec rescue emergency isolate|help\ntelinit|end-machine||||help\n"
    "umount|mount|tO types|a all A all-targets|*|V version help\nwipefs|mkfs|||/dev\n";

// What programs do with the files that are named to them.
struct FileProgram {
  enum class Operands : unsigned char {
    none,
    read,
    write,
    make,       // a directory or a pipe
    change,     // the first is an owner, which all others get
    chmod,      // the first is a mode, which all others get
    acl,        // all get modes that options give
    copy,       // the last is written, the others are read
    link,       // the last is written
    move,       // the last is written, the others are removed
    sync,       // as copy; what the sources do not have is removed
    remove,     // a single file
    rm,         // and with -r all that is below
    pattern,    // the first is a pattern, unless an option gives one; the others are read
    sed,        // as pattern; written with -i
    shred,      // written, and removed with -u
    filter,     // the first is read, the second written
    patch,      // the first is written
    key_value,  // if=FILE of=FILE
    tar,        // an archive is written or unpacked
    fetch,      // written in the directory, if an option of the last column is there
    unpack,     // written in the directory, if none of these options is there
    git,        // git clean removes what is in the directory
  };
  Operands operands = Operands::none;
  Syntax syntax = {};
  std::string_view reads = {};      // options whose argument is a file that is read
  std::string_view writes = {};     // options whose argument is a file that is written
  std::string_view directory = {};  // the option that names where the operands are written to
  std::string_view modes = {};      // options whose argument is a mode; see fetch and unpack
};
inline constexpr std::string_view operand_kinds =
    "none read write make change chmod acl copy link move sync remove rm pattern sed shred filter "
    "patch key-value tar fetch unpack git";

// name|operands|options with an argument: letters, then long names|reads|writes|directory|modes;
// where there are only long names, the letters are a -. name|=other: as the other.
inline constexpr std::string_view file_programs =
    "bsdtar|=tar\ncat|read\nchgrp|change|- from reference\nchmod|chmod|- reference\n"
    "chown|change|- from reference\ncmp|read|in ignore-initial bytes\ncomm|read\n"
    "cpio|fetch|CDEFHIMORW directory|||D directory|i extract p pass-through\n"
    "cp|copy|St suffix target-directory|||t target-directory\n"
    "curl|fetch|AbcCdDeEFHKmoPQrtTuUwxXyYz output data header request user user-agent max-time url "
    "form cookie cookie-jar config upload-file dump-header output-dir|T upload-file|o output c "
    "cookie-jar D dump-header output-dir|output-dir|O remote-name remote-name-all J "
    "remote-header-name\ncut|read|bcdf bytes characters delimiter fields\ndd|key-value\n"
    "diff|read|ILUxXSW exclude label unified context width\n"
    "du|read|dBtX max-depth block-size threshold exclude\ned|write|p prompt\n"
    "egrep|pattern|ABCDdefm regexp file max-count context include exclude|f file\n"
    "fgrep|pattern|ABCDdefm regexp file max-count context include exclude|f file\n"
    "file|read|eFfmP|f m\ngit|git\n"
    "grep|pattern|ABCDdefm regexp file max-count context include exclude exclude-dir after-context "
    "before-context|f file\ngsed|=sed\ngtar|=tar\nhead|read|cn bytes lines\n"
    "install|copy|gmoSt group mode owner suffix target-directory|||t target-directory|m mode\n"
    "less|read|bDhjkoOpPtTxyz\nlink|link\nln|link|St suffix target-directory|||t target-directory\n"
    "ls|read|ITw ignore hide width tabsize\nmd5sum|read\nmkdir|make|m mode||||m mode\n"
    "mkfifo|make|m mode\nmore|read|n\nmv|move|St suffix target-directory|||t target-directory\n"
    "nl|read|bdfhilnsvw\nod|read|AjNStw\n"
    "patch|patch|BdDFgiopVYzr directory input output strip reject-file|i input|o output r "
    "reject-file|d directory\nreadlink|read\n"
    "rg|pattern|ABCdefgEjMmrtT regexp file glob type type-not max-count max-depth replace "
    "context|f file\nrm|rm\nrmdir|remove\n"
    "rsync|sync|efBTM rsh filter exclude exclude-from include include-from files-from bwlimit "
    "log-file temp-dir compare-dest copy-dest link-dest backup-dir suffix password-file port "
    "timeout chmod chown max-size min-size partial-dir out-format rsync-path block-size "
    "max-delete||log-file\nscp|copy|cDFiJloPSX\nsed|sed|efl expression file line-length|f file\n"
    "setfacl|acl|mxMXns modify remove set modify-file set-file restore||||m modify s set\n"
    "sha1sum|read\nsha256sum|read\nshred|shred|ns iterations size random-source\n"
    "sort|read|koStT key output buffer-size field-separator temporary-directory||o output\n"
    "sponge|write\nstat|read|ct format printf\nstrings|read|ntTe\ntac|read|s separator\n"
    "tail|read|cns bytes lines sleep-interval pid\n"
    "tar|tar|fCTXbgHIKLNV file directory files-from exclude exclude-from use-compress-program "
    "transform owner group mode mtime to-command checkpoint-action strip-components|||C directory\n"
    "tee|write\ntouch|write|drt date reference time\ntree|read|LPIoHT||o\n"
    "truncate|write|rs reference size\nuniq|filter|fsw skip-fields skip-chars check-chars\n"
    "unlink|remove\nunzip|unpack|dPx||d|d|l t p Z v\nwc|read|- files0-from\n"
    "wget|unpack|aeioOPQtTUwABDIlRX output-document output-file directory-prefix input-file header "
    "user-agent timeout tries|i input-file|O output-document o output-file a P directory-prefix|P "
    "directory-prefix|O output-document spider\nxxd|filter|cglosR\nzcat|read\n";

// What PolicyOptions::allow_usual allows: names|options that are refused; an entry with a dash is a
// whole word. Options that write to a file are refused as well: file_programs knows them. Some
// shells read words of `[` and others in its row as arithmetic, which may run commands: a[$(x)].
inline constexpr std::string_view usual_programs =
    "basename cat cd cksum cmp comm cut df diff dirname du echo egrep expand expr false fgrep fold "
    "grep groups head id join ls md5sum nl nproc od paste printenv pwd readlink realpath rev seq "
    "sha1sum sha256sum sleep stat tac tail tr true type uname uniq wc which whoami :\n"
    "[ break continue exit printf test|v R\n"
    "find|-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls\n"
    "rg|pre hostname-bin z search-zip\n"
    "sort|T temporary-directory compress-program\n"
    "tree|R\n";

// The words that a shell takes for its own grammar where a command may begin.
inline constexpr std::string_view reserved_words =
    "case coproc do done elif else esac fi for function if in select then time until while";

// Bounds of one judgement, besides those of the walk. Wrappers around wrappers, globs that stand
// for many programs, and xargs multiply what there is to look at; a script that needs more is
// refused as too complex.
inline constexpr unsigned max_peeled_levels = 32;
inline constexpr std::size_t max_judged_words = std::size_t{1} << 20;
inline constexpr std::size_t max_generated_bytes = std::size_t{5} << 20;

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
