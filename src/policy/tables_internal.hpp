// What the policy knows of programs: rules, paths, wrappers, interpreters, options.
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
  device_write,
  rm_protected,
  mv_dev_null,
  fork_bomb,
  opaque_shell_input,
  unknown_command,
};

struct SanitizerRule {
  Rule rule = Rule::sudo;
  RuleInfo info = {};
  bool lifted_by_sudo = false;  // does not apply where PolicyOptions::enable_sudo is set
};

inline constexpr SanitizerRule sanitizer_rules[] = {
    {Rule::sudo,
     {"sudo", "Use of 'sudo' is not allowed",
      "refuses sudo, sudoedit, doas and pkexec as commands, not as words: `which sudo` passes",
      true},
     true},
    {Rule::su,
     {"su", "Use of 'su' is not allowed",
      "refuses su and runuser as commands; `python su.py` passes", true},
     true},
    {Rule::chmod,
     {"chmod", "Use of 'chmod' is not allowed",
      "refuses any chmod command; `git update-index --chmod=+x f` passes", true},
     true},
    {Rule::chown,
     {"chown", "Use of 'chown' is not allowed", "refuses any chown command; chgrp passes", true},
     true},
    {Rule::dd,
     {"dd", "Use of 'dd' command is not allowed", "refuses any dd command; `git add dd.txt` passes",
      true},
     false},
    {Rule::mkfs,
     {"mkfs", "Formatting or wiping disks is not allowed",
      "refuses mkfs, mkfs.*, mke2fs, wipefs, and shred of a device; shred of a file passes", false},
     false},
    {Rule::device_write,
     {"device-write", "Overwriting disk blocks directly is not allowed",
      "refuses redirections, tee, cp, mv and the like to a path under /dev; null, zero, full, "
      "random, urandom, stdin, stdout, stderr, tty, ptmx, fd/*, pts/* and shm/* pass",
      true},
     false},
    {Rule::rm_protected,
     {"rm-protected", "Use of 'rm -rf /' is not allowed",
      "refuses to remove, with what is below, /, anything directly in it, system directories and "
      "what they hold, and home directories; `rm -rf /tmp/x` and `rm -rf ~/project/build` pass",
      true},
     false},
    {Rule::mv_dev_null,
     {"mv-dev-null", "Moving files to /dev/null is not allowed",
      "refuses mv with the destination /dev/null; `mv a b 2> /dev/null` passes", true},
     false},
    {Rule::fork_bomb,
     {"fork-bomb", "Fork bombs are not allowed",
      "refuses the call of a function that starts itself in a pipeline or in the background", true},
     false},
    {Rule::opaque_shell_input,
     {"opaque-shell-input", "Shell input that is not known before it runs is not allowed",
      "refuses a shell, eval or source that reads what the script does not tell: `curl x | sh`, "
      "`bash -c \"$(cat x)\"`; `bash build.sh` and `source .venv/bin/activate` pass",
      false},
     false},
    {Rule::unknown_command,
     {"unknown-command", "A command whose name is not known before it runs is not allowed",
      "refuses `$TOOL x` and `$(cat x)`, unless the script sets the variable; "
      "`\"$VENV/bin/python\" x` passes",
      false},
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
};

// In MassGen's order.
inline constexpr CompatRule compat_rules[] = {
    {Rule::rm_protected, R"(\brm\s+-rf\s+/)"},
    {Rule::mv_dev_null, R"(\bmv\b.*?\s+/dev/null)"},
    {Rule::dd, R"(\bdd\b)"},
    {Rule::device_write, R"(>\s*/dev/sd[a-z][1-9]?)"},
    {Rule::fork_bomb, R"(:\(\)\{\s*:\|\:&\s*\};:)"},
    {Rule::sudo, R"(\bsudo\b)"},
    {Rule::su, R"(\bsu\b)"},
    {Rule::chown, R"(\bchown\b)"},
    {Rule::chmod, R"(\bchmod\b)"},
};

// Tables with a `name` are sorted by it, and searched by halves.
template <class Row, std::size_t size>
constexpr bool sorted_by_name(const Row (&table)[size]) {
  for (std::size_t i = 1; i < size; ++i)
    if (!(table[i - 1].name < table[i].name)) return false;
  return true;
}

template <class Row, std::size_t size>
const Row* find_row(const Row (&table)[size], std::string_view name) {
  const Row* row =
      std::lower_bound(table, table + size, name,
                       [](const Row& entry, std::string_view key) { return entry.name < key; });
  return row != table + size && row->name == name ? row : nullptr;
}

struct Named {
  std::string_view name = {};
};

// Programs that are refused for their name alone.
struct RefusedProgram {
  std::string_view name = {};
  Rule rule = Rule::sudo;
};
inline constexpr RefusedProgram refused_programs[] = {
    {"chmod", Rule::chmod}, {"chown", Rule::chown},   {"dd", Rule::dd},
    {"doas", Rule::sudo},   {"mke2fs", Rule::mkfs},   {"mkfs", Rule::mkfs},
    {"pkexec", Rule::sudo}, {"runuser", Rule::su},    {"su", Rule::su},
    {"sudo", Rule::sudo},   {"sudoedit", Rule::sudo}, {"wipefs", Rule::mkfs},
};
static_assert(sorted_by_name(refused_programs), "sort the rows by name");

// Directories that hold the homes of users.
inline constexpr Named home_parents[] = {{"Users"}, {"home"}};
static_assert(sorted_by_name(home_parents), "sort the rows by name");

// Directories of / with all that is below; lib* stands for lib32, lib64, libx32 and their like.
inline constexpr std::string_view protected_trees[] = {"bin",   "boot",  "dev",    "etc",  "lib",
                                                       "lib32", "lib64", "libx32", "proc", "root",
                                                       "sbin",  "sys",   "usr"};

// Directories of / that may lose single entries, but not all at once (rm -rf /var/*).
inline constexpr Named protected_contents[] = {{"Users"}, {"home"}, {"media"}, {"mnt"},
                                               {"opt"},   {"run"},  {"srv"},   {"var"}};
static_assert(sorted_by_name(protected_contents), "sort the rows by name");

// Entries of /dev that anyone may write to, and directories whose entries are such.
inline constexpr Named harmless_devices[] = {{"full"},    {"null"},  {"ptmx"},   {"random"},
                                             {"stderr"},  {"stdin"}, {"stdout"}, {"tty"},
                                             {"urandom"}, {"zero"}};
static_assert(sorted_by_name(harmless_devices), "sort the rows by name");
inline constexpr Named harmless_device_directories[] = {{"fd"}, {"pts"}, {"shm"}};
static_assert(sorted_by_name(harmless_device_directories), "sort the rows by name");

// The options of a program that take an argument, as getopt_long has them: letters, and long names
// with blanks between them. Behind a ! stand the long names that take none: all others do.
struct Syntax {
  std::string_view letters = {};
  std::string_view longs = {};
  std::string_view twice = {};  // long names that take two
};

// Programs that read shell scripts.
inline constexpr Named shells[] = {{"ash"},  {"bash"}, {"dash"},  {"ksh"}, {"ksh93"}, {"mksh"},
                                   {"oksh"}, {"posh"}, {"rbash"}, {"sh"},  {"yash"},  {"zsh"}};
static_assert(sorted_by_name(shells), "sort the rows by name");
inline constexpr Syntax shell_syntax = {"oO", "rcfile init-file"};

// Programs whose code can start others. Names are without a version: python3.11 is python.
enum class Language : unsigned char { awk, lua, node, perl, php, python, ruby };
struct Interpreter {
  std::string_view name = {};
  Language language = Language::awk;
  Syntax syntax = {};
  std::string_view code = {};  // the options that are followed by code
  bool first_operand = false;  // the code is the first operand where no option gives it
};
inline constexpr Syntax awk_syntax = {"FvfieE", "field-separator assign file include source exec"};
inline constexpr Interpreter interpreters[] = {
    {"awk", Language::awk, awk_syntax, "e source", true},
    {"bun", Language::node, {"er", "eval require"}, "e eval", false},
    {"gawk", Language::awk, awk_syntax, "e source", true},
    {"lua", Language::lua, {"el"}, "e", false},
    {"mawk", Language::awk, awk_syntax, "e source", true},
    {"nawk", Language::awk, awk_syntax, "e source", true},
    {"node", Language::node, {"erC", "eval require import loader conditions"}, "e eval", false},
    {"nodejs", Language::node, {"erC", "eval require import loader conditions"}, "e eval", false},
    {"perl", Language::perl, {"eEMmIxF"}, "e E", false},
    {"php", Language::php, {"rfdBREFcTz", "run define"}, "r run B E R", false},
    {"pypy", Language::python, {"cmWXQ"}, "c", false},
    {"python", Language::python, {"cmWXQ"}, "c", false},
    {"ruby", Language::ruby, {"eIrCEF"}, "e", false},
};
static_assert(sorted_by_name(interpreters), "sort the rows by name");

// Functions of these languages that start a program or a shell, and such that remove a directory
// with all it holds. The last part of a name counts: os.system is system.
inline constexpr Named starting_functions[] = {{"Popen"},
                                               {"call"},
                                               {"check_call"},
                                               {"check_output"},
                                               {"create_subprocess_exec"},
                                               {"create_subprocess_shell"},
                                               {"exec"},
                                               {"execFile"},
                                               {"execFileSync"},
                                               {"execSync"},
                                               {"execl"},
                                               {"execle"},
                                               {"execlp"},
                                               {"execlpe"},
                                               {"execute"},
                                               {"execv"},
                                               {"execve"},
                                               {"execvp"},
                                               {"execvpe"},
                                               {"getoutput"},
                                               {"getstatusoutput"},
                                               {"passthru"},
                                               {"popen"},
                                               {"proc_open"},
                                               {"run"},
                                               {"shell_exec"},
                                               {"spawn"},
                                               {"spawnSync"},
                                               {"spawnl"},
                                               {"spawnlp"},
                                               {"spawnv"},
                                               {"spawnvp"},
                                               {"system"}};
static_assert(sorted_by_name(starting_functions), "sort the rows by name");
inline constexpr Named removing_functions[] = {
    {"removeSync"}, {"remove_dir_all"}, {"remove_tree"}, {"rimraf"},    {"rm"},
    {"rmSync"},     {"rm_r"},           {"rm_rf"},       {"rmdirSync"}, {"rmtree"}};
static_assert(sorted_by_name(removing_functions), "sort the rows by name");

// What programs do with the files that are named to them.
struct FileProgram {
  enum class Operands : unsigned char {
    none,
    read,
    write,
    change,     // the mode or owner of all but the first
    copy,       // the last is written, the others are read
    move,       // the last is written, the others are removed
    link,       // the last is written
    remove,     // a single file
    rm,         // and with -r all that is below
    pattern,    // the first is a pattern, unless an option gives one; the others are read
    sed,        // as pattern; written with -i
    shred,      // written, and removed with -u
    filter,     // the first is read, the second written
    key_value,  // if=FILE of=FILE
  };
  std::string_view name = {};
  Operands operands = Operands::none;
  Syntax syntax = {};
  std::string_view reads = {};   // options whose argument is a file that is read
  std::string_view writes = {};  // options whose argument is a file that is written
};
inline constexpr FileProgram file_programs[] = {
    {"cat", FileProgram::Operands::read},
    {"chgrp", FileProgram::Operands::change, {"", "from reference"}},
    {"chmod", FileProgram::Operands::change, {"", "reference"}},
    {"chown", FileProgram::Operands::change, {"", "from reference"}},
    {"cmp", FileProgram::Operands::read, {"in", "ignore-initial bytes"}},
    {"comm", FileProgram::Operands::read},
    {"cp", FileProgram::Operands::copy, {"St", "suffix target-directory"}},
    {"curl",
     FileProgram::Operands::none,
     {"AbcCdDeEFHKmoPQrtTuUwxXyYz",
      "output data header request user user-agent max-time url form cookie cookie-jar config "
      "upload-file dump-header"},
     "T upload-file",
     "o output c cookie-jar D dump-header"},
    {"cut", FileProgram::Operands::read, {"bcdf", "bytes characters delimiter fields"}},
    {"dd", FileProgram::Operands::key_value},
    {"diff", FileProgram::Operands::read, {"ILUxXSW", "exclude label unified context width"}},
    {"du", FileProgram::Operands::read, {"dBtX", "max-depth block-size threshold exclude"}},
    {"egrep",
     FileProgram::Operands::pattern,
     {"ABCDdefm", "regexp file max-count context include exclude"},
     "f file",
     ""},
    {"fgrep",
     FileProgram::Operands::pattern,
     {"ABCDdefm", "regexp file max-count context include exclude"},
     "f file",
     ""},
    {"file", FileProgram::Operands::read, {"eFfmP"}, "f m", ""},
    {"grep",
     FileProgram::Operands::pattern,
     {"ABCDdefm",
      "regexp file max-count context include exclude exclude-dir after-context "
      "before-context"},
     "f file",
     ""},
    {"head", FileProgram::Operands::read, {"cn", "bytes lines"}},
    {"install", FileProgram::Operands::copy, {"gmoSt", "group mode owner suffix target-directory"}},
    {"less", FileProgram::Operands::read, {"bDhjkoOpPtTxyz"}},
    {"link", FileProgram::Operands::link},
    {"ln", FileProgram::Operands::link, {"St", "suffix target-directory"}},
    {"ls", FileProgram::Operands::read, {"ITw", "ignore hide width tabsize"}},
    {"md5sum", FileProgram::Operands::read},
    {"mkdir", FileProgram::Operands::write, {"m", "mode"}},
    {"mkfifo", FileProgram::Operands::write, {"m", "mode"}},
    {"more", FileProgram::Operands::read, {"n"}},
    {"mv", FileProgram::Operands::move, {"St", "suffix target-directory"}},
    {"nl", FileProgram::Operands::read, {"bdfhilnsvw"}},
    {"od", FileProgram::Operands::read, {"AjNStw"}},
    {"readlink", FileProgram::Operands::read},
    {"rg",
     FileProgram::Operands::pattern,
     {"ABCdefgEjMmrtT", "regexp file glob type type-not max-count max-depth replace context"},
     "f file",
     ""},
    {"rm", FileProgram::Operands::rm},
    {"rmdir", FileProgram::Operands::remove},
    {"sed", FileProgram::Operands::sed, {"efl", "expression file line-length"}, "f file", ""},
    {"sha1sum", FileProgram::Operands::read},
    {"sha256sum", FileProgram::Operands::read},
    {"shred", FileProgram::Operands::shred, {"ns", "iterations size random-source"}},
    {"sort",
     FileProgram::Operands::read,
     {"koStT", "key output buffer-size field-separator temporary-directory"},
     "",
     "o output"},
    {"stat", FileProgram::Operands::read, {"ct", "format printf"}},
    {"strings", FileProgram::Operands::read, {"ntTe"}},
    {"tac", FileProgram::Operands::read, {"s", "separator"}},
    {"tail", FileProgram::Operands::read, {"cns", "bytes lines sleep-interval pid"}},
    {"tee", FileProgram::Operands::write},
    {"touch", FileProgram::Operands::write, {"drt", "date reference time"}},
    {"tree", FileProgram::Operands::read, {"LPIoHT"}, "", "o"},
    {"truncate", FileProgram::Operands::write, {"rs", "reference size"}},
    {"uniq", FileProgram::Operands::filter, {"fsw", "skip-fields skip-chars check-chars"}},
    {"unlink", FileProgram::Operands::remove},
    {"unzip", FileProgram::Operands::none, {"dPx"}, "", "d"},
    {"wc", FileProgram::Operands::read, {"", "files0-from"}},
    {"wget",
     FileProgram::Operands::none,
     {"aeioOPQtTUwABDIlRX",
      "output-document output-file directory-prefix input-file header user-agent timeout tries"},
     "i input-file",
     "O output-document o output-file a P directory-prefix"},
    {"xxd", FileProgram::Operands::filter, {"cglosR"}},
    {"zcat", FileProgram::Operands::read},
};
static_assert(sorted_by_name(file_programs), "sort the rows by name");

// The words that a shell takes for its own grammar where a command may begin.
inline constexpr Named reserved_words[] = {
    {"case"},     {"coproc"}, {"do"}, {"done"},   {"elif"}, {"else"}, {"esac"},  {"fi"},   {"for"},
    {"function"}, {"if"},     {"in"}, {"select"}, {"then"}, {"time"}, {"until"}, {"while"}};
static_assert(sorted_by_name(reserved_words), "sort the rows by name");

// Bounds of one judgement, besides those of the walk. Wrappers around wrappers, globs that stand
// for many programs, and xargs multiply what there is to look at; a script that needs more is
// refused as too complex.
inline constexpr unsigned max_peeled_levels = 32;
inline constexpr std::size_t max_judged_words = std::size_t{1} << 20;
inline constexpr std::size_t max_generated_bytes = std::size_t{4} << 20;

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
