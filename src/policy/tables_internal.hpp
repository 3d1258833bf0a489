// What the policy knows of programs: rules, paths, wrappers, interpreters, options.
#pragma once

#include "policy/rules_internal.hpp"

#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Directories that hold the homes of users.
inline constexpr auto home_parents = NameSet{"Users", "home"};

// Directories of / with all that is below. All other names that begin with lib count, too.
inline constexpr auto protected_trees =
    NameSet{"bin",    "boot", "dev",  "etc",  "lib", "lib32", "lib64",
            "libx32", "proc", "root", "sbin", "sys", "usr"};

// Directories of / that may lose single entries, but not all at once (rm -rf /var/*).
inline constexpr auto protected_contents =
    NameSet{"Users", "home", "media", "mnt", "opt", "run", "srv", "var"};

// Entries of /dev that anyone may write to, and directories whose entries are such.
inline constexpr auto harmless_devices = NameSet{"full",  "null",   "ptmx", "random",  "stderr",
                                                 "stdin", "stdout", "tty",  "urandom", "zero"};
inline constexpr auto harmless_device_directories = NameSet{"fd", "pts", "shm", "tcp", "udp"};

// Paths that the rules know. Each stands for what is below it, too.
enum class PathKind : unsigned char {
  kept,        // is not written to: the rule refuses it
  harmless,    // is written to, although it lies in one that is kept
  removable,   // what lies below it may be removed a file at a time
  scratch,     // find may remove what is below it by name, path, time or owner
  connection,  // no file: bash connects to the host and the port that follow
};

// Tests of find that pick what it finds by name, path, time or owner.
inline constexpr auto find_tests =
    NameSet{"-amin",  "-anewer", "-atime", "-cmin",     "-cnewer", "-ctime",      "-gid",
            "-group", "-ilname", "-iname", "-ipath",    "-iregex", "-iwholename", "-lname",
            "-mmin",  "-mtime",  "-name",  "-nogroup",  "-nouser", "-path",       "-regex",
            "-uid",   "-used",   "-user",  "-wholename"};

// Variables that commands have although no script sets them.
inline constexpr auto given_variables =
    NameSet{"EUID",   "HOME",   "HOSTNAME", "HOSTTYPE", "LANG",   "LANGUAGE", "LOGNAME",
            "OLDPWD", "PATH",   "PPID",     "PWD",      "RANDOM", "SECONDS",  "SHELL",
            "TERM",   "TMPDIR", "TZ",       "UID",      "USER"};

// The options of a program that take an argument, as getopt_long has them: letters, and long names.
struct Syntax {
  std::string_view letters = {};
  Names longs = {};
  bool longs_are_switches = false;  // then these take none, and all others do
  Names twice = {};                 // long names that take two
};

// Programs that read shell scripts.
inline constexpr auto shells = NameSet{"ash",  "bash", "dash",  "ksh", "ksh93", "mksh",
                                       "oksh", "posh", "rbash", "sh",  "yash",  "zsh"};
inline constexpr std::string_view shell_letters = "oO";  // that take an argument
inline constexpr auto shell_longs = NameSet{"init-file", "rcfile"};

// Languages whose code can start programs.
enum class Language : unsigned char { awk, lua, m4, node, perl, php, python, r, ruby, tcl };
// Functions of these languages that start a program or a shell, and such that remove a directory
// with all it holds. The last part of a name counts: os.system is system.
inline constexpr auto starting_functions = NameSet{"Command",
                                                   "Popen",
                                                   "call",
                                                   "callCommand",
                                                   "callProcess",
                                                   "capture2",
                                                   "capture2e",
                                                   "capture3",
                                                   "check_call",
                                                   "check_output",
                                                   "cmd",
                                                   "create_subprocess_exec",
                                                   "create_subprocess_shell",
                                                   "exec",
                                                   "execFile",
                                                   "execFileSync",
                                                   "execSync",
                                                   "execa",
                                                   "execaCommand",
                                                   "execaSync",
                                                   "execl",
                                                   "execle",
                                                   "execlp",
                                                   "execlpe",
                                                   "execute",
                                                   "execv",
                                                   "execve",
                                                   "execvp",
                                                   "execvpe",
                                                   "getoutput",
                                                   "getstatusoutput",
                                                   "open2",
                                                   "open3",
                                                   "passthru",
                                                   "pcntl_exec",
                                                   "pipeline",
                                                   "popen",
                                                   "popen2",
                                                   "popen2e",
                                                   "popen3",
                                                   "posix_spawn",
                                                   "posix_spawnp",
                                                   "proc_open",
                                                   "run",
                                                   "shell",
                                                   "shell_exec",
                                                   "spawn",
                                                   "spawnSync",
                                                   "spawnl",
                                                   "spawnle",
                                                   "spawnlp",
                                                   "spawnlpe",
                                                   "spawnv",
                                                   "spawnve",
                                                   "spawnvp",
                                                   "spawnvpe",
                                                   "system",
                                                   "system2"};
inline constexpr auto removing_functions =
    NameSet{"removeSync", "remove_dir_all", "remove_tree", "rimraf",    "rm",
            "rmSync",     "rm_r",           "rm_rf",       "rmdirSync", "rmtree"};

// Groups whose members may become root.
inline constexpr auto powerful_groups =
    NameSet{"admin", "disk", "docker", "incus-admin", "libvirt", "lxd", "shadow", "sudo", "wheel"};

// Capabilities by which a program may become root, without `cap_`.
inline constexpr auto powerful_capabilities =
    NameSet{"all",       "bpf",      "chown",      "dac_override", "dac_read_search", "fowner",
            "mac_admin", "mknod",    "setfcap",    "setgid",       "setpcap",         "setuid",
            "sys_admin", "sys_boot", "sys_chroot", "sys_module",   "sys_ptrace",      "sys_rawio"};

// Programs that are refused for their name, or for what they are asked. The rows stand in
// refused_table.cpp.
struct RefusedProgram {
  // Operands that are refused, besides `words`.
  enum Operand : unsigned {
    any_operand = 1,
    any_assignment = 2,      // NAME=value
    any_device = 4,          // below /dev
    all_processes = 8,       // the process 1 or -1, as kill takes it
    unnamed_processes = 16,  // names of processes are missing, or they are those of root
    last_device = 32,        // the last one is below /dev
    root_user = 64,          // the name of root
    root_group = 128,        // one of powerful_groups
    joined_group = 256,      // the same, as the second one: behind the user who joins it
    capabilities = 512,      // what makes root, as setcap takes it
  };
  Rule rule = Rule::sudo;
  unsigned operands = 0;  // bits of Operand
  Syntax syntax = {};
  Names options = {};         // are refused
  Names words = {};           // are refused as the first operand
  Names excuses = {};         // options that excuse the operands, or the name
  Names excusing_words = {};  // the same, as one of the first two operands
  Names needs = {};           // without one of these options, operands are not refused
  Names numbers = {};         // options that are refused with the number 0
  Names groups = {};          // options that are refused with one of powerful_groups

  bool has(Operand operand) const { return (operands & operand) != 0; }
  // True if the name is enough.
  bool by_name() const {
    return operands == 0 && options.empty() && words.empty() && numbers.empty() && groups.empty();
  }
};

// False: there is no such row. As all find functions here.
bool find_refused(std::string_view name, RefusedProgram& program);
NameTable refused_table();

// What programs do with the files that are named to them. The rows stand in file_table.cpp.
struct FileProgram {
  enum class Operands : unsigned char {
    none,
    read,
    write,
    make,          // a directory or a pipe
    change,        // the first is an owner, which all others get
    chmod,         // the first is a mode, which all others get
    acl,           // all get modes that options give
    copy,          // the last is written, the others are read
    link,          // the last is written
    move,          // the last is written, the others are removed
    sync,          // as copy; what the sources do not have is removed
    remove,        // a single file
    rm,            // and with -r all that is below
    remove_tree,   // with all that is below
    pattern,       // the first is a pattern, unless an option gives one; the others are read
    sed,           // as pattern; written with -i
    shred,         // written, and removed with -u
    filter,        // the first is read, the second written
    patch,         // the first is written
    key_value,     // if=FILE of=FILE
    tar,           // an archive is written or unpacked
    fetch,         // written in the directory, if an option of `modes` is there
    unpack,        // written in the directory, if none of these options is there
    pack,          // the first is an archive; the others are removed with an option of `modes`
    pack_command,  // the same, behind a command
    git,           // git clean removes what is in the directory
  };
  Operands operands = Operands::none;
  Syntax syntax = {};
  Names reads = {};      // options whose argument is a file that is read
  Names writes = {};     // options whose argument is a file that is written
  Names directory = {};  // the option that names where the operands are written to
  Names modes = {};      // options whose argument is a mode; see fetch and unpack
};

bool find_file_program(std::string_view name, FileProgram& program);
NameTable file_table();

// A command that PolicyOptions::allow_usual allows. The rows stand in usual_table.cpp.
struct UsualProgram {
  enum class Kind : unsigned char {
    plain,    // only reads or prints, but for the options in `refused`
    asks,     // where its first word is -v or -V
    mode,     // makes files executable
    awk,      // its code starts and writes nothing
    sed,      // the same
    shell,    // given a script, whose commands are judged
    starts,   // starts what is allowed
    finds,    // starts what is allowed with any words, and else as plain
    repeats,  // the same
    sources,  // reads the file that activates a virtual environment
    listed,   // with no options but `options`: tests, for the most part
    fetches,  // the same, and prints what a server on this host says
  };
  Kind kind = Kind::plain;
  // Some shells read its words as arithmetic, which may run commands: a[$(x)].
  bool counts = false;
  // Options that are refused; a name with a dash is a whole word, and @ begins one. Options that
  // write to a file are refused as well: FileProgram knows them.
  Names refused = {};
  Names options = {};
};

bool find_usual(std::string_view name, UsualProgram& program);

// All their names, for a model to read.
std::vector<std::string_view> usual_commands();

// Bounds of one judgement, besides those of the walk. Wrappers around wrappers, globs that stand
// for many programs, and xargs multiply what there is to look at; a script that needs more is
// refused as too complex.
inline constexpr unsigned max_peeled_levels = 32;
inline constexpr std::size_t max_judged_words = std::size_t{1} << 20;
inline constexpr std::size_t max_generated_bytes = std::size_t{5} << 20;

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
