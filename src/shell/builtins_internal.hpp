// The commands that the walk knows: builtins, and programs whose output it knows.
#pragma once

#include "shell/runner_internal.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What a command is known as. known_verbs has the names of each.
enum class ShellVerb {
  // ShellPrinter runs these: they print.
  base_name,
  cat,
  copy,  // cp, mv, ln, install
  directory_name,
  echo,
  ls,
  printf,
  pwd,
  tee,
  // ShellBuiltin runs these: they change the shell.
  alias,
  change_directory,
  compgen,
  declare,
  eval,
  exec,
  exit,
  fix,
  hash,
  history,
  leave,
  let,
  pop_directory,
  read,
  set,
  shift,
  silent,
  trap,
  unset,
  none,
};

// A known command, with what the functions that run it need.
struct ShellVerbs {
  ShellVerbs(ShellRunner& runner, const shell::Command& command, std::size_t at)
      : runner_(runner),
        scopes_(runner.walk.scopes),
        budget_(runner.walk.budget),
        output_(*runner.place.output),
        command_(command),
        words_(command.words),
        at_(at) {}

 protected:
  ShellRunner& runner_;
  ShellScopes& scopes_;
  ShellBudget& budget_;
  ShellPrinted& output_;
  const shell::Command& command_;
  const std::vector<shell::Word>& words_;
  std::size_t at_;  // of its name: behind `command` and `builtin`
};

// Does to the shell what a command does that has been reported: to variables, functions, aliases,
// the working directory. Runs the strings that it runs. If it is not known, its output is unknown.
class ShellBuiltin : ShellVerbs {
 public:
  ShellBuiltin(ShellRunner& runner, const shell::Command& command)
      : ShellVerbs(runner, command, name_at(command.words)) {}

  void run();
  // True for exec without a program: what it redirects stays so.
  static bool stays_redirected(const shell::Command& command);

 private:
  // Behind `command`, `builtin` and their options.
  static std::size_t name_at(const std::vector<shell::Word>& words);
  static bool names_variables(ShellVerb verb);
  // command -v NAME, which NAME: what it writes ends in /NAME.
  bool looks_up() const;

  void run_alias();
  void run_cd();
  void set_work_dir(ShellText directory) {
    scopes_.assign(work_dir_key, scalar_value(std::move(directory)));
  }
  // What compgen expands and runs.
  void run_compgen();
  void run_declare();
  bool holds_array(std::string_view name);
  // What a variable is with a text behind what it may be, if it steers programs.
  void report_appended(std::string_view name, const ShellText& text);
  void run_eval();
  // Standard input is another one from here on.
  void run_exec();
  // history -s COMMAND: fc may run it.
  void run_history();
  // hash -p FILE NAME: from here on, NAME is FILE.
  void run_hash();
  // Any operand that can be a name may be assigned anything. That of -C is a command.
  void run_read();
  // What read takes from an input that is known. It may be any line, as other commands may have
  // read those before it, unless the input is that of this command alone.
  // False: that is not known.
  bool run_known_read();
  void assign_read(const std::vector<std::string_view>& names, std::vector<ShellVariable>& read);
  void run_set();
  void run_shift();
  // The handler runs later, or never.
  void run_trap();
  void run_unset();
};

// Runs a command that prints what the walk knows, and records it as the output of its place.
class ShellPrinter : ShellVerbs {
 public:
  using ShellVerbs::ShellVerbs;

  void run(ShellVerb verb);

 private:
  // Null: it is not known.
  void print_input(const shell::Input* input);
  // Prints a word, and marks the output with what is known of it.
  void print_word(const shell::Word& word);
  void run_cat();
  // The files that are written get the texts that the script knows.
  void run_copy();
  void run_tee();
  void run_echo();
  // With -d, the operands that are there.
  void run_ls();
  void run_pwd();
  // dirname PATH, basename PATH
  void run_path_part(bool last);
  // Decodes a string with escapes; false: \c ended the output.
  bool decode_text(std::string_view source, EscapeStyle style, std::string& text) const;

  void run_printf();
  // printf's format, again and again while there are arguments.
  void print(std::size_t format_at);
  // The format once. False: it has ended, or what it prints is not known.
  bool print_once(std::string_view format, std::size_t& argument);
  // False: what it prints is not known.
  bool print_argument(char conversion, std::size_t& argument);
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
