// The subject: one simple command of a script, while it is judged; and what judges it.
//
// A command is judged in all its forms. The first form is the command as it stands; what it starts
// (env, timeout, xargs, find -exec ...) is a form of the same command, one level deeper:
//
//   timeout 5 env A=b sudo id      level 0
//             env A=b sudo id      level 1
//                     sudo id      level 2
//
// A text that it would hand to a shell (bash -c, ssh HOST) is a payload: the walk reads it next,
// and the commands in it become subjects of their own.
//
// The functions below are called with a subject and one of its forms. They refuse what the rules
// forbid, add forms and add payloads, and give nothing back. Each stands in a part about one kind
// of programs; no two parts call each other in a circle.
#pragma once

#include "policy/case_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

inline constexpr std::size_t no_word = static_cast<std::size_t>(-1);

// One simple command while it is judged: its forms, and the payloads that the walk reads next.
// Lives as long as the visit of the command; pointers in its forms lead into it.
struct Subject {
  Subject(Case& of, UnsetVariables& watched, Links& made, Links& copied, KnownOutput& printed,
          const shell::Visit& visit)
      : judged(of),
        command(visit.command),
        producer(visit.producer),
        variables(watched),
        links(made),
        copies(copied),
        output(printed),
        payloads(visit.payloads),
        fetched(visit.fetched),
        changed(visit.changed),
        run(visit.run),
        start_files(visit.command.start_files) {}
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  Case& judged;
  const shell::Command& command;
  const shell::Command* producer;  // the command that writes into its pipe, or null
  UnsetVariables& variables;
  Links& links;
  Links& copies;  // files that the script makes of others: cp, mv, ln
  KnownOutput& output;
  std::vector<shell::Payload>& payloads;
  std::vector<std::string>& fetched;  // see shell::Visit
  std::vector<std::string>& changed;
  std::vector<std::string>& run;
  std::string environment = {};  // assignments that env makes, for the shells it starts
  std::vector<shell::Assignment> start_files;  // what its shells read first: BASH_ENV and ENV
  std::list<Form> forms = {};
  std::list<std::vector<shell::Word>> generated = {};  // words of forms that are not in the script

  // The command as it stands.
  Form whole() const;
  // The form in a file of an earlier command; without a name, where it is.
  Form in_file(const Form& form, std::string_view file) const;

  // Refuses at a word; the message shows the form, and then `follows`.
  void refuse(Rule rule, const shell::Word& place, const Form& form, std::string_view follows = {});
  // Refuses what a shell would read and what is not known before it runs. Passes in code, in holes
  // and in a function's definition.
  // `instead`: what to do; empty: what the rule says.
  void refuse_opaque(const Form& form, const shell::Word& word, std::string_view why,
                     std::string_view instead = {});
  // Refuses a form whose program is not known, with the same exceptions, and two for a POSIX shell.
  // `for_asking`: the rules let it pass, but a command of ask_commands may hide there.
  void refuse_unknown(const Form& form, bool for_asking = false);

  // Where relative paths of the command begin.
  const PathText& base();
  // `last`: what the last name links to, if the script has made that a link.
  PathText path_of(const Part& part, bool last = false) { return path_from(base(), part, last); }
  PathText path_from(const PathText& directory, const Part& part, bool last = false) const;
  // True if it is known to lie below the place where the script starts, or in the project there.
  bool lies_inside(const PathText& path) const;
  // The same of a relative path with a slash.
  bool is_own_path(const Part& part);
  // True if it lies in the project where the script starts.
  bool in_workspace(const PathText& path) const {
    return judged.workspace && is_within(path, judged.start);
  }
  bool removal_is_protected(const Part& part, const PathText& path);
  // `contents`: what is in the directory, not it itself.
  bool is_kept(const PathText& path, bool contents, bool glob) const;

  void add_form(const Form& form);
  // The same, with words that are not in the script.
  void add_form(const Form& form, std::vector<shell::Word>&& words);
  // The words of the form from `first_argument` on are $0, $1 ...
  void add_payload(const Form& form, std::string_view text, bool same_shell,
                   std::size_t first_argument = no_word);

 private:
  bool has_base_ = false;
  PathText base_ = {};
};

inline bool is_relative(const Part& part) {
  return !part.text.empty() && part.text[0] != '/' && !part.home();
}

// True if a text is not known, and has no known part but blanks.
bool is_blank_or_unknown(std::string_view text);
// A word that stands where another one does, for messages.
shell::Word word_like(const shell::Word& place, std::string_view text);
shell::Word unknown_word(const shell::Word& place);
// A word in which `mark` is replaced by the text of another.
shell::Word replace_all(Case& judged, const shell::Word& word, std::string_view mark,
                        const shell::Word& by);
// The form with all its words replaced so.
void add_replaced(Subject& subject, const Form& form, std::string_view mark, const shell::Word& by);

// file_uses.cpp: files ----------------------------------------------------------------------------

void use_redirection(Subject& subject, const shell::Redirection& redirection);
// Judges what a program does with a file, and collects it.
void use_file(Subject& subject, Use use, const Part& part, bool recursive, const Form& form);
// Refuses to write to places that commands do not write to.
void check_place(Subject& subject, const PathText& path, const Part& part, const Form& form);
// `tree`: with all that is below.
void check_removal(Subject& subject, const Part& part, const PathText& path, bool tree,
                   const Form& form);

// operands.cpp, programs.cpp: programs by the tables ----------------------------------------------

void judge_files(Subject& subject, const FileProgram& program, const Form& form);
void check_refused(Subject& subject, const Form& form, std::string_view name);

// host_access.cpp: what opens the host to a container ---------------------------------------------

void check_host_access(Subject& subject, const Wrapper& wrapper, const Form& form);

// nested_shells.cpp: texts that a shell reads -----------------------------------------------------

void judge_shell(Subject& subject, const Form& form);
// A program with a path may be a script, whose shell reads such a file first.
void judge_start_files(Subject& subject, const Form& form);
// eval, source, trap and alias.
void judge_builtin(Subject& subject, const Form& form, std::string_view name);
// What comes in on standard input, as a script. `first`: the index of $1, which stands behind the
// name of the shell.
void read_input(Subject& subject, const Form& form, std::size_t first, bool same_shell);
// A script, with the words from `first` on behind its text.
void run_words(Subject& subject, const Form& form, std::string_view script, std::size_t first,
               const shell::Word& word);
// A script, and the words from `first_argument` on as $0, $1 ...
void run_string(Subject& subject, const Form& form, const Part& part,
                std::size_t first_argument = no_word);
// The argument of an option that is a script, or has one behind a name: ProxyCommand=...
void run_option(Subject& subject, const Form& form, const Part& part);
// A script that may have any holes.
void run_guess(Subject& subject, const Form& form, std::string_view script);

// interpreters.cpp: code in other languages -------------------------------------------------------

void peel_interpreter(Subject& subject, const Wrapper& wrapper, const Form& form);
// What code runs is judged by all rules and by the lists of what is blocked and asked about.
// `page`: see CodePiece; `given`: variables that it is started with, as NAME=VALUE.
void read_code(Subject& subject, Language language, std::string_view code, const Form& form,
               const shell::Word& word, bool page = false,
               const std::vector<std::string_view>& given = {});

// code_input.cpp: code that comes in on standard input --------------------------------------------

// True if standard input is a file that the command names.
bool reads_file(const shell::Command& command);
// True if a program prints what the command reads that has it from elsewhere: curl x | sh
bool is_fed(const Subject& subject);
// Refuses an interpreter that runs what is not known before it runs: `curl x | python3`.
void check_code_input(Subject& subject, const Wrapper& wrapper, const Form& form);

// written_files.cpp: files that the script or an earlier command has written ----------------------

// Calls `take` with each text that a file may have, and what the file is called if an earlier
// command has written it.
void each_text(Subject& subject, const shell::Word& word,
               FunctionRef<void(const shell::Input&, std::string_view)> take);
// The word of `< FILE`, if the form runs what it reads from it and the script has not written it.
const shell::Word* input_file(Subject& subject, const Form& form);
// A program that is such a file is what its first line names, with the file as an argument.
void run_written_file(Subject& subject, const Form& form);
// Notes files that are fetched: their texts are not known from here on.
void note_fetched(Subject& subject, const FileProgram& program, const Form& form);

// wrapped_languages.cpp: programs with a language of their own ------------------------------------

void peel_console(Subject& subject, const Wrapper& wrapper, const Form& form);
void peel_make(Subject& subject, const Wrapper& wrapper, const Form& form);
void peel_sed(Subject& subject, const Wrapper& wrapper, const Form& form);
void peel_tar(Subject& subject, const Wrapper& wrapper, const Form& form);
void peel_screen(Subject& subject, const Wrapper& wrapper, const Form& form);
// What is typed into another terminal.
void peel_keys(Subject& subject, const Wrapper& wrapper, const Form& form);

// git.cpp: what git starts for a setting, an alias or an address ------------------------------

// A setting of git, or of tmux: name=value.
void judge_setting(Subject& subject, const Form& form, std::string_view name,
                   std::string_view value);
// A variable whose name begins with GIT_CONFIG_.
void judge_git_variable(Subject& subject, const Form& form, std::string_view name,
                        std::string_view value);
// What git does under other names. Options with scripts and settings are those of its rows.
void peel_git(Subject& subject, const Wrapper& wrapper, const Form& form);
// git-push, as git has it in its own folder.
void peel_git_program(Subject& subject, const Form& form, std::string_view name);
void peel_git_config(Subject& subject, const Wrapper& wrapper, const Form& form);

// find.cpp, xargs.cpp: programs that repeat a command ---------------------------------------------

// The words of find that name where it begins: [first, last).
struct FindRoots {
  std::size_t first = 1;
  std::size_t last = 1;
};
FindRoots roots_of(const Form& form);
// The word that ends the command of -exec, which begins at the word `i`.
std::size_t end_of_exec(const Form& form, std::size_t i);
// True if find picks what it finds by name, path, time or owner.
bool has_test(const Form& form, std::size_t first);
void peel_find(Subject& subject, const Form& form);
void peel_fd(Subject& subject, const Wrapper& wrapper, const Form& form);
// True if the program is a file that find finds. It may be any program.
bool is_found(const Form& form);
// Refuses it, unless it lies below the workspace.
void judge_found(Subject& subject, const Form& form);
void peel_xargs(Subject& subject, const Wrapper& wrapper, const Form& form);
void peel_parallel(Subject& subject, const Wrapper& wrapper, const Form& form);

// wrappers.cpp: programs that start another one ---------------------------------------------------

void peel(Subject& subject, const Wrapper& wrapper, const Form& whole);
// Judges what such a variable gets: those of git and of pagers, and the functions that shells start
// with.
void judge_variable(Subject& subject, const Form& form, const shell::Word& word,
                    std::string_view name, std::string_view value);

// lists.cpp: the lists of what is blocked and allowed ---------------------------------------------

// The lists of what is blocked and of what is asked about.
void check_listed(Subject& subject, const Form& form);
// The assignments before a command, and its words.
std::string with_assignments(const shell::Command& command, std::string_view words);
// True if a pattern of what is allowed matches the form, whatever its unknown parts are.
bool is_listed_allowed(const Subject& subject, const Form& form);
// True if a run cannot make something else of a word.
inline bool is_certain(const shell::Word& word) {
  return word.known() && !word.assumed && !(word.glob && is_pattern(word.text));
}

// usual.cpp: what is allowed ----------------------------------------------------------------------

void check_allowed(Subject& subject);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
