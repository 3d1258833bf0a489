// Judges commands by their text; starts nothing.
#pragma once

#include "base/base.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

// A guard against mistakes and cheap attacks, not a boundary: a program that is allowed can still
// do what it likes. What must not happen is for the sandbox or a container to prevent.
struct PolicyOptions {
  // False, the strict mode: the script is parsed, and each of its simple commands is judged: by the
  // sanitizer's rules and `blocked` in every form it has (its name without the directory, what env,
  // timeout, xargs or find -exec would start, the strings given to sh -c or eval), by `allowed`
  // only as it stands: not what env or xargs would start, but each command in a string for a shell
  // needs a pattern, too. A pattern must match the whole of a command. What cannot be understood is
  // refused.
  // True, the compat mode: the verdicts of MassGen's command line server, for those who depend on
  // them: what is judged is the text of the script; the sanitizer's patterns may match anywhere in
  // it, `allowed` and `blocked` only at its start (and need not reach its end, as with Python's
  // re.match).
  bool compat = false;

  // In strict mode: `allowed` and `blocked` judge the text of the script, too, as in compat mode.
  // So nothing is allowed that these lists refuse there.
  bool compat_lists = false;

  std::vector<std::string> allowed = {};  // patterns (see Regex); none: all may run
  // Besides `allowed`, and alone when that is empty: commands in their usual forms. These read or
  // print, by these names:
  //   : [ arch b2sum base64 basename break cat cd cksum cmp column comm continue cut df diff
  //   dirname du echo egrep exit expand expr false fgrep file find fold free getconf grep groups
  //   head hexdump id join jq locale ls lscpu lsof md5sum netstat nl nm nproc objdump od paste
  //   pgrep printenv printf ps pwd readelf readlink realpath rev rg seq sha1sum sha256sum sha512sum
  //   size sleep sort ss stat strings tac tail test tr tree true type uname uniq uptime users wait
  //   wc which who whoami xxd, `openssl x509`, `command -v`, and any program of the system with
  //   --version or --help alone
  // Not with words that have them write or start something (sort -o, sort --compress-program,
  // uniq IN OUT, find -delete, rg --pre, printf -v, nm @FILE ...), nor with words that may become
  // such words in a run: but in [, test and printf a word that is not known passes. Besides:
  //   sed, awk          whose code writes and starts nothing; sed -i only for files below the
  //                     directory where the script starts
  //   curl              that prints what a server on this host says: GET of localhost
  //   cp, mkdir, touch  and chmod +x, as the targets of redirections are not judged, either
  //   timeout, nohup    what they start must be allowed, by this or by a pattern; so it is behind
  //   time, env         variables that change how a program prints, as CI=1 or LC_ALL=C
  //   find -exec, xargs what they start must be allowed with whatever words they add to it
  //   sh -lc SCRIPT     and bash, dash and zsh, also of /bin: each command in it must be allowed
  //   pytest, go test,  and `python -m pytest|unittest`, `npm test`, jest, `cargo test`, ctest with
  //   ...               their usual options. They run what lies in the workspace
  //   . X/bin/activate  and X/bin/python of the workspace for `python`, where a pattern allows
  //                     python with any words, which may run any file as well
  //   name=value        alone, of a variable in small letters that programs do not look at
  // Strict mode only.
  bool allow_usual = false;
  std::vector<std::string> blocked = {};         // patterns; what they match is refused
  std::vector<std::string> disabled_rules = {};  // names of Policy::rules() to switch off
  bool enable_sudo = false;  // switches sudo, su, chown and chmod off; only for containers
  // What a person must approve, see Verdict::must_ask: commands that match one of these patterns,
  // as `blocked` matches; and what these rules of Policy::rules() would refuse. Any other refusal
  // of the script wins. With `blocked`, opaque-shell-input and unknown-command refuse in any case:
  // a blocked command could hide there. A rule that enable_sudo switches off is asked about, too.
  std::vector<std::string> ask_commands = {};
  std::vector<std::string> ask_rules = {};
  // Of patterns of these lists, each with the text of its pattern: why, for the model to read in a
  // refusal or question of `blocked` and `ask_commands`; commands that it must match, in any of the
  // forms that are judged, and such that it must not. create() tries them.
  std::vector<std::pair<std::string, std::string>> reasons = {};
  std::vector<std::pair<std::string, std::string>> must_match = {};
  std::vector<std::pair<std::string, std::string>> must_not_match = {};
  std::size_t max_command_bytes = std::size_t{16} << 20;  // longer commands are refused
};

// What a policy says to one command.
struct Verdict {
  bool allowed = true;
  // Not allowed, but a person may allow it. All that is said of refusals below holds for it, too.
  bool must_ask = false;
  // Of a refusal: the name of a rule of Policy::rules(), or "allowed-commands",
  // "blocked-commands", "ask-commands", "syntax", "nul-byte", "command-too-long",
  // "command-too-complex" or "typed-text".
  std::string rule = {};
  std::string message = {};  // of a refusal: complete, for the model to read
  // Of a refusal: the bytes of the command that caused it; all of it when no allowed pattern
  // matches.
  std::size_t begin = 0;
  std::size_t end = 0;
  explicit operator bool() const noexcept { return allowed; }
};

// A rule that is there without being configured.
struct RuleInfo {
  const char* name = "";         // stable, for PolicyOptions::disabled_rules and Verdict::rule
  const char* message = "";      // the reason in the refusal
  const char* description = "";  // for a person: what it refuses, and what it lets pass
  bool compat = false;           // has a pattern in compat mode, too
};

// A file that a command would use, as far as its words and redirections show.
struct FileAccess {
  enum class Kind { read, write, remove };  // write: create, change or truncate
  Kind kind = Kind::read;
  // Without `.`, `..` and doubled slashes. Absolute where the working directory is known, else
  // relative to it; `~` and `~user` at its start are home directories. A pattern (glob) is kept.
  std::string path = {};
  bool recursive = false;  // all below it, too
  bool glob = false;
  std::size_t begin = 0;  // bytes of the script
  std::size_t end = 0;
};

// What a policy finds in a script.
struct Judgement {
  Verdict verdict = {};
  // As simple_commands() lists them, and those of strings that other programs run (sh -c '...').
  std::vector<SimpleCommand> commands = {};
  std::vector<FileAccess> files = {};
  // Files that shells, interpreters and their paths run; as FileAccess::path. Some may be named
  // more than once.
  std::vector<std::string> runs = {};
  // True if all of it was understood; if not, some may be missing in `files`.
  bool complete = true;
};

// What judges the commands of an executor before they start. Policy does it by their text; a
// program may bring its own, see ExecutorWings. Members are called from any thread, of several at
// the same time.
class Guard {
 public:
  virtual ~Guard() = default;
  // Says whether a script for the shell may run, and, `in_full`, which commands and files are in
  // it; otherwise these may be missing. `work_dir`, absolute, is where it will run.
  virtual Judgement judge(std::string_view script, std::string_view work_dir,
                          bool in_full) const = 0;
  // The same for a script that will read `input` from its standard input; empty: nothing, or what
  // is not known. What its programs run of that is judged as if the script had it. `variables`:
  // what earlier commands of its session have exported, as if the script began with that.
  virtual Judgement judge_reading(std::string_view script, std::string_view,
                                  std::string_view work_dir, bool in_full,
                                  const std::vector<std::pair<std::string, std::string>>&) const {
    return judge(script, work_dir, in_full);
  }
  // Judges what is written to the standard input of a script that runs, before it is handed on;
  // what is refused must not be. `terminal`: a terminal edits it. `typed` is what was written
  // before, as far as this function needs it and leaves it there; the caller keeps it with the
  // command. A verdict that must ask is a refusal here.
  virtual Verdict judge_typed(std::string_view, std::string_view, bool, std::string_view,
                              std::string&) const {
    return {};
  }
  // A guard that judges as this one, and knows files that earlier commands have written: `text_of`
  // gives the text of one, by its absolute path, and nothing for any other file. It is called from
  // any thread. Null: this guard looks at no files.
  virtual std::shared_ptr<const Guard> with_files(
      const Function<std::optional<std::string>(const std::string&)>&) const {
    return {};
  }
  // Of sessions: what a shell holds besides its folder and its exported variables. It is given as
  // the shell prints it: options, aliases, variables, functions, of bash or of a POSIX shell; any
  // of it may be forged. Gives for each thing the text that a later shell runs to have it, by a
  // key: 1, 2 (a function), 3 (a variable), 4 (an alias) or 5, and its name. Shells run them in
  // this order. The last argument gets the names of what is not kept.
  virtual Expected<std::vector<std::pair<std::string, std::string>>> held_by_shell(
      const std::vector<std::string>&, bool, std::vector<std::string>&) const {
    return std::vector<std::pair<std::string, std::string>>();
  }
  // A guard that judges as this one, and knows that the shell runs such texts before each script,
  // which have been judged by then. Null: this guard cannot, and no session holds such things.
  virtual std::shared_ptr<const Guard> with_held(const std::string&) const { return {}; }
  // Asked for a script that may run and whose Judgement is not complete, where files must be known:
  // false when it cannot be read as a shell reads it. The script is then refused.
  virtual bool can_read(std::string_view script, std::string_view work_dir) const = 0;
  // Says whether a program may run that is given this code in a file. `argv`: the program and its
  // options, without the file. Judged as the script that gives it the same code in a here-string.
  virtual Judgement judge_code(const std::vector<std::string>& argv, std::string_view code,
                               std::string_view work_dir) const {
    std::string script;
    const auto add = [&script](std::string_view word) {
      script += '\'';
      for (const char c : word) {
        if (c == '\'') script += "'\\'";
        script += c;
      }
      script += "' ";
    };
    for (const std::string& word : argv) add(word);
    script += "<<< ";
    add(code);
    return judge(script, work_dir, false);
  }

 protected:
  Guard() = default;
  Guard(const Guard&) = default;
  Guard& operator=(const Guard&) = default;
};

// Compiled options. Immutable: copies share it, and any thread may use it without a lock.
class Policy final : public Guard {
 public:
  // Fails when a pattern is none, or a rule is unknown. The message names the configuration key
  // (allowed_commands, blocked_commands, ask_commands, disabled_rules, ask_rules), the value and
  // the place in it. Fails also for a rule of ask_rules that is in disabled_rules, or has no
  // pattern in compat mode; for allow_usual in compat mode, which judges a script by its first
  // words; and for a pattern that contradicts its examples, or that is in no list.
  static Expected<Policy> create(const PolicyOptions& options);

  // Judges a script for the shell. In this order, and the first refusal stands: length, NUL bytes,
  // syntax, the sanitizer's rules, blocked patterns, allowed patterns (compat: no syntax, allowed
  // before blocked); then the first question, of a rule or of a pattern. Linear in the size of the
  // script. `work_dir`, absolute, is where it will run; with it, relative paths in the script are
  // judged for what they are. Commands and files are listed for refused scripts, too; with
  // `in_full` false they are not, which is faster.
  Judgement judge(std::string_view script, std::string_view work_dir = {},
                  bool in_full = true) const override;

  // Judges also what a shell, xargs or an interpreter in the script would read from its standard
  // input, in strict mode. An input of more than 1 MiB is one that is not known. The variables have
  // been allowed before: they are judged for what programs would run because of them.
  Judgement judge_reading(
      std::string_view script, std::string_view input, std::string_view work_dir = {},
      bool in_full = true,
      const std::vector<std::pair<std::string, std::string>>& variables = {}) const override;

  // In strict mode: what a shell or an interpreter in the script reads is judged with all that was
  // read before. 64 KiB are kept, and more is refused. On a terminal a line must be whole,
  // and known: rule "typed-text".
  Verdict judge_typed(std::string_view script, std::string_view work_dir, bool terminal,
                      std::string_view text, std::string& typed) const override;

  // Judges a program that is started without a shell, by the script that would start the same: its
  // words quoted for a POSIX shell where they must be, one space between them. The verdict's range
  // refers to that text.
  Judgement judge(const std::vector<std::string>& argv, std::string_view work_dir = {},
                  bool in_full = true) const;

  // In strict mode: a file of an earlier command that a shell, an interpreter or its path runs is
  // judged as if the script had written it. But where nothing has to be allowed, it is refused only
  // for what it surely does; and what is too much to be judged is as if there was no text. At most
  // 16 files are looked at for a script.
  std::shared_ptr<const Guard> with_files(
      const Function<std::optional<std::string>(const std::string&)>& text_of) const override;

  // Functions are kept that are one function and no more, aliases without quotes and substitutions,
  // variables whose values nothing evaluates, and options that neither end nor hide anything.
  Expected<std::vector<std::pair<std::string, std::string>>> held_by_shell(
      const std::vector<std::string>& reported, bool bash,
      std::vector<std::string>& left_out) const override;

  // In strict mode; of what is held, the variables are judged as those of judge_reading(), and
  // functions and aliases where they are called. In compat mode the text of the script is all.
  std::shared_ptr<const Guard> with_held(const std::string& held) const override;

  // In strict mode a script that cannot be read is refused; in compat mode it may run.
  bool can_read(std::string_view script, std::string_view work_dir) const override;

  // In strict mode what the code would start is judged, as far as its text shows it: by the rules
  // and by the patterns of what is blocked and asked about. `allowed` is for the command alone.
  Judgement judge_code(const std::vector<std::string>& argv, std::string_view code,
                       std::string_view work_dir) const override;

  // The sanitizer's rules in the order of judgement.
  static std::vector<RuleInfo> rules();

 private:
  struct Compiled;
  explicit Policy(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
  Function<std::optional<std::string>(const std::string&)> text_of_ = {};
  std::string held_ = {};
};

// Policy::create(), for ExecutorWings.
Expected<std::shared_ptr<const Guard>> create_guard(const PolicyOptions& options);

}  // namespace v0_1
}  // namespace codeexec
