// The judge of a script's simple commands.
//
// Everything is compiled when the policy is created, so that a bad pattern is found at start-up and
// not by the first command.
//
// Strict mode walks over the simple commands of a script. Each is judged in all its forms: as it
// stands, and peeled of the programs that only start another one (env, timeout, xargs, find -exec
// ...). What a program would hand to a shell goes back to the walk as a payload. All hits are
// collected, and the one whose rule comes first is the verdict: a syntax error at the end of a
// script makes what stands before it irrelevant, so nothing can be decided on the way.
// What the policy knows about programs stands in the tables; the functions know no names.
//
// The compat rules are the patterns of MassGen's command line server, kept to the letter, false
// alarms ("grep sudo README.md") and gaps ("rm -fr /") included: whoever asks for them depends on
// exactly these verdicts.
#pragma once

#include "policy/policy.hpp"
#include "policy/policy_internal.hpp"
#include "policy/rules_internal.hpp"
#include "policy/tables_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "regex/regex.hpp"
#include "regex/regex_internal.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

inline Verdict refusal(std::string_view rule, std::string message, std::size_t begin,
                       std::size_t end) {
  Verdict verdict;
  verdict.allowed = false;
  verdict.rule = std::string(rule);
  verdict.message = std::move(message);
  verdict.begin = begin;
  verdict.end = end;
  return verdict;
}

// For a message: what a command is, in one line and not too long.
inline std::string shown(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::string line(utf8_prefix(text, longest));
  std::replace(line.begin(), line.end(), '\0', '?');
  line = printable(line);
  if (text.size() > longest) line += "...";
  return line;
}

// What a policy was compiled to, as far as judging a script needs it.
struct Terms {
  std::uint32_t rules = 0;  // the bits of those in force
  const std::list<Regex>& allowed;
  bool allow_usual = false;
  const std::list<Regex>& blocked;
  std::string_view allowed_message = {};

  bool allows_all() const { return allowed.empty() && !allow_usual; }
};

inline constexpr std::size_t blocked_rank = rule_count;
inline constexpr std::size_t allowed_rank = rule_count + 1;
inline constexpr std::size_t no_rank = rule_count + 2;

// What is known while one script is judged.
struct Case {
  const Terms& terms;
  std::string_view script = {};
  PathText start = {};  // where it will run; relative: not known
  bool workspace = false;
  Judgement* judgement = nullptr;  // to fill, if anybody asks
  bool collecting = false;
  std::size_t rank = no_rank;  // of the verdict: the number of its rule, or one of the above
  Verdict verdict = {};
  std::size_t judged_words = 0;
  std::size_t generated_bytes = 0;
  bool too_complex = false;
  // Where bash has [[ ]] and (( )). A POSIX shell takes parts of it for commands, as `$a == b` in
  // [[ -f x && $a == b ]]: one that is not known there is no reason to refuse an ordinary test.
  std::vector<NumberRange> tests = {};
  bool posix = false;

  bool in_test(std::size_t begin, std::size_t end) const {
    return is_in_ranges(tests, static_cast<std::uint32_t>(begin), end);
  }

  bool charge_words(std::size_t count) {
    judged_words += count + 1;
    if (judged_words > max_judged_words) too_complex = true;
    return !too_complex;
  }
  bool charge_bytes(std::size_t count) {
    generated_bytes += count + 1;
    if (generated_bytes > max_generated_bytes) too_complex = true;
    return !too_complex;
  }
  void not_understood() {
    if (judgement) judgement->complete = false;
  }
};

struct FileArguments;

// Judges the commands of one walk.
class Judge {
 public:
  explicit Judge(Case& judged) : case_(judged) {}
  void visit(const shell::Visit& visit);
  // After the last visit.
  void finish();

 private:
  // What the command tells of variables: assignments, tests, set -u, files that are sourced.
  void note_variables();
  // Whether nothing but / is left of the word where its variable, which nothing sets, is empty.
  void check_unset(const Part& part);
  bool is_set(std::uint16_t name) const;

  Form whole() const;

  // verdicts --------------------------------------------------------------------------------------

  std::size_t rank_of(Rule rule) const;
  bool wants(Rule rule) const { return rank_of(rule) < case_.rank; }
  void record(Rule rule, std::size_t begin, std::size_t end, std::string_view detail);
  // At a word, for a form; the refusal shows the form and what follows.
  void record(Rule rule, const shell::Word& place, const Form& form, std::string_view follows = {});
  void object(std::size_t rank, std::string_view rule, std::string message, std::size_t begin,
              std::size_t end);
  void refuse_opaque(const Form& form, const shell::Word& word, std::string_view why);
  void refuse_unknown(const Form& form);
  // name[subscript]=value, which bash assigns and a POSIX shell would look for as a command.
  static bool is_element(std::string_view text);
  // A word as the script has it.
  std::string_view written(const shell::Word& word) const;

  // paths -----------------------------------------------------------------------------------------

  // Where relative paths of the command begin.
  const PathText& base();
  PathText path_of(const Part& part);
  bool is_relative(const Part& part) const {
    return !part.text.empty() && part.text[0] != '/' && !part.home();
  }
  // Below where the script starts, by a relative path with a slash.
  bool is_own_path(const Part& part);
  bool removal_is_protected(const Part& part, const PathText& path);
  // `contents`: what is in the directory, not it itself.
  bool is_kept(const PathText& path, bool contents, bool glob) const;

  // files -----------------------------------------------------------------------------------------

  void collect_file(FileAccess::Kind kind, const Part& part, const PathText& path, bool recursive);

  void redirect(const shell::Redirection& redirection);

  void use_file(Use use, const Part& part, bool recursive, const Form& form);
  static FileAccess::Kind kind_of(Use use);
  static std::string writes_to(const PathText& path, const Form& form);
  // Places that nobody writes to.
  void check_place(const PathText& path, const Part& part, const Form& form);
  // `tree`: with all that is below.
  void check_removal(const Part& part, const PathText& path, bool tree, const Form& form);

  void judge_files(const FileProgram& program, const Form& form);
  void take_option(const FileProgram& program, const Form& form, FileArguments& given,
                   std::string_view name, const Part& argument);
  void use_operands(const FileProgram& program, const Form& form, FileArguments& given);
  void copy_files(const FileProgram& program, const Form& form, const FileArguments& given);
  // The operands [first, last) in the directory that is given, or what is in it.
  void write_below(const FileArguments& given, std::size_t first, std::size_t last,
                   const Form& form);
  void use_archive(FileArguments& given, const Form& form);
  void check_clean(const Form& form);
  void check_mode(const Part& mode, bool acl, const Form& form);

  // forms -----------------------------------------------------------------------------------------

  void add_form(const Form& form);
  // Words that are not in the script. They live as long as the command is judged.
  void add_form(Form form, std::vector<shell::Word> words);

  void add_payload(const Form& form, std::string text, bool same_shell,
                   std::size_t first_argument = static_cast<std::size_t>(-1));

  void judge_form(const Form& form);

  // A pattern may stand for any of the programs that the tables know.
  void judge_pattern(const Form& form, std::string_view pattern);

  void judge_program(const Form& form, std::string_view name);
  void check_refused(const Form& form, std::string_view name);
  bool is_refused_operand(std::string_view words, const Part& operand, bool first);

  // wrappers --------------------------------------------------------------------------------------

  void peel(const Wrapper& wrapper, Form form);
  // Whether the command reads a file that is named.
  bool reads_file() const;
  void peel_plain(const Wrapper& wrapper, const Form& form);
  // The command from word `i` on, and behind each ; another.
  void peel_verb(const Wrapper& wrapper, Form form, std::size_t i);
  // The command that begins at word `i`.
  void peel_rest(const Wrapper& wrapper, const Form& form, std::size_t i, const Part& program,
                 bool joins);
  void peel_env(const Wrapper& wrapper, const Form& form);
  void peel_capsh(const Form& form);
  void peel_script(const Wrapper& wrapper, const Form& form);
  void peel_runuser(const Wrapper& wrapper, const Form& form);
  void peel_su(const Wrapper& wrapper, const Form& form);

  // Variables that make later commands run something: those of git and of pagers, and the files
  // and functions that shells start with.
  void judge_variable(const Form& form, const shell::Word& word, std::string_view name,
                      std::string_view value);
  void judge_exported(const Form& form, const shell::Word& word);

  // A script, and the words from `first` on as its arguments.
  void run_words(const Form& form, std::string script, std::size_t first, const shell::Word& word);
  // A script, and the words from `first_argument` on as $0, $1 ...
  void run_string(const Form& form, const Part& part,
                  std::size_t first_argument = static_cast<std::size_t>(-1));
  // The argument of an option that is a script, or has one behind a name: ProxyCommand=...
  void run_option(const Form& form, const Part& part);
  // A script that may have any holes.
  void run_guess(Form form, std::string_view script);

  // programs with a language of their own ---------------------------------------------------------

  // A setting of git: name=value.
  void judge_setting(const Form& form, std::string_view name, std::string_view value);
  void peel_git_config(const Wrapper& wrapper, const Form& form);
  // vim and gdb: commands of theirs, of which some are for a shell.
  void peel_console(const Wrapper& wrapper, const Form& form);
  void judge_console(const Form& form, const Part& command);
  // Whether the file that an option names is standard input, and known.
  bool is_input(const Part& file, const Form& form);
  void peel_make(const Wrapper& wrapper, const Form& form);
  void judge_makefile(const Form& form, std::string_view text);
  void peel_sed(const Wrapper& wrapper, const Form& form);
  void judge_sed(const Form& form, const Part& script);
  void peel_tar(const Wrapper& wrapper, const Form& form);
  // Commands of tmux, and strings that hold one, or one for a shell.
  void peel_nested(const Form& form);
  void peel_screen(const Wrapper& wrapper, const Form& form);
  // What is typed into another terminal.
  void peel_keys(const Wrapper& wrapper, const Form& form);

  // find ------------------------------------------------------------------------------------------

  // The words of find that name where it begins: [first, last).
  struct Roots {
    std::size_t first = 1;
    std::size_t last = 1;
  };
  static Roots roots_of(const Form& form);
  // Whether find picks what it finds by name, path, time or owner.
  static bool has_test(const Form& form, std::size_t first);

  void peel_find(const Form& form);
  // Whether the program is what find finds. It may be anything, but not below the workspace.
  static bool is_found(const Form& form);
  void judge_found(const Form& form);
  static std::size_t end_of_exec(const Form& form, std::size_t i);
  // The command of -exec, with the roots for its first {}, and the worst of them for all others.
  void add_exec(const Form& form, std::size_t first, std::size_t last, const Form& roots,
                const shell::Word& worst);

  // The same with {} for a name below a root: a word that is marked as a process.
  void add_found(const Form& form, std::size_t first, std::size_t last, const shell::Word& root,
                 const shell::Word& name);

  // A word in which `mark` is replaced by the text of another.
  shell::Word replace_all(const shell::Word& word, std::string_view mark, const shell::Word& by);

  // xargs and parallel ----------------------------------------------------------------------------

  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

  // The arguments that xargs reads: `lines`: each is one; else blanks, quotes and \ divide them.
  std::vector<std::string> split_input(std::string_view text, bool lines, char delimiter);

  static shell::Word word_like(const shell::Word& place, std::string text);
  // One of the arguments that form's input has.
  static shell::Word item_word(const Form& form, const std::string& item);
  static shell::Word unknown_word(const shell::Word& place);

  // What find or ls -d, which write the arguments, would name of what must stay.
  std::vector<shell::Word> protected_producers();

  void peel_xargs(const Wrapper& wrapper, const Form& form);
  static char delimiter_of(std::string_view text);
  void run_replaced(const Form& command, std::string_view mark, const shell::Word& by);
  void run_with_unknown(const Form& command, std::string_view mark);

  // parallel gives its words, joined, to a shell: once for each argument, which it quotes.
  void peel_parallel(const Wrapper& wrapper, const Form& form);
  void run_parallel(const Form& form, const Form& command, std::string_view mark,
                    const shell::Word& argument);

  // shells ----------------------------------------------------------------------------------------

  void judge_shell(const Form& form);

  // Whether the script is what comes in on standard input.
  bool check_script_file(const Form& form, const shell::Word& word);

  // `first`: the index of $1, which stands behind the name of the shell.
  void read_input(const Form& form, std::size_t first, bool same_shell);

  // The walk follows eval, trap and alias itself, behind `command` and `builtin` as well.
  bool is_followed(const Form& form) const;
  void judge_eval(const Form& form);
  void judge_source(const Form& form);
  void judge_trap(const Form& form);
  void judge_alias(const Form& form);

  // interpreters ----------------------------------------------------------------------------------

  void peel_interpreter(const Wrapper& wrapper, const Form& form);

  // What code runs is judged by the rules for what is dangerous, not by the lists: a best effort.
  void read_code(Language language, std::string_view code, const Form& form,
                 const shell::Word& word);

  // lists -----------------------------------------------------------------------------------------

  void check_blocked(const Form& form);
  bool refuse_blocked(const std::string& text, const Form& form);
  std::string with_assignments(std::string_view words) const;

  void check_allowed();
  // Whether it is a command of usual_programs that only reads or prints.
  bool is_usual() const;

  // What the command may come to; one pattern must match all of it. False: that cannot be told.
  bool texts_to_allow(std::vector<std::string>& texts) const;
  // The command with `guess` for what is not known.
  std::string text_with(std::string_view guess, bool vanish = false) const;

  Case& case_;
  const shell::Command* command_ = nullptr;
  const shell::Command* producer_ = nullptr;
  std::vector<shell::Payload>* payloads_ = nullptr;
  std::string environment_ = {};             // assignments that env makes, for the shells it starts
  const shell::Word* start_file_ = nullptr;  // what shells would start with, if it is not known
  bool has_base_ = false;
  PathText base_ = {};
  std::list<Form> forms_ = {};
  std::list<std::vector<shell::Word>> generated_ = {};

  struct Unset {
    std::uint16_t name = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string detail = {};
  };
  std::list<Unset> unset_ = {};  // what rm -r would remove by variables that nothing sets
  std::vector<std::uint32_t> set_names_ = {};  // assigned or tested so far; see Word::unset
  bool may_be_set_ = false;                    // any variable: a file was sourced, or set -u
  bool trapped_ = false;
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
