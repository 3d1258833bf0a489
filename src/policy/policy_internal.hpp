// Words, paths and options of a command, as the rules look at them.
#pragma once

#include "policy/tables_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

inline bool is_unknown(std::string_view text) { return has_nul(text); }

bool is_pattern(std::string_view text);

// Whether a name of a path is a pattern for everything: *, .*, .[!.]*
bool sweeps(std::string_view name);

// Whether a list of names with blanks between them has `name`, or one that it abbreviates.
bool lists_option(std::string_view list, std::string_view name);

// What PolicyOptions::allow_usual allows, for a model to read.
std::string usual_commands();

bool find_file_program(std::string_view name, FileProgram& program);

// Whether a mode, or an access control list, lets others write, or sets setuid or setgid; or may do
// so, as it is not known.
bool is_risky_mode(std::string_view mode);
bool is_risky_acl(std::string_view entries);

// NAME=value, as a word of env or sudo.
bool is_assignment(std::string_view text);

// A word as a POSIX shell reads it back. Unknown parts stay unknown.
void append_quoted(std::string& script, std::string_view word);

// The script that starts a program with these words: bare where they are plain, else quoted.
std::string script_of_argv(const std::vector<std::string>& argv);

// A path as text: what `.`, `..` and doubled slashes come to, without a look at the file system.
struct PathText {
  enum class Root : unsigned char { relative, slash, home };
  Root root = Root::relative;
  std::string_view user = {};                // of home: ~ or ~name
  std::vector<std::string_view> names = {};  // of relative, these may begin with `..`
};

// `home`: a leading ~ stands for a home directory.
void enter(PathText& path, std::string_view text, bool home);

std::string text_of(const PathText& path);

// Whether nobody removes this with all that is below it. `contents`: what is in it, not the
// directory itself, as `/*` has it. `glob`: * ? and [ stand for other names.
bool is_protected(const PathText& path, bool contents, bool glob);

// Whether `path` is `above`, or is below it.
bool is_within(const PathText& path, const PathText& above);

// Whether somebody may keep a project here and remove what is in it, although the directory may lie
// in a protected tree: containers work in /root/x, /usr/src/x and the like.
bool is_workspace(const PathText& path);

bool is_device(const PathText& path, bool glob);

bool is_dev_null(const PathText& path);

// Whether a path is one of these, or is below one; see KeptPlace. `glob`: its names are patterns.
bool in_places(const PathText& path, std::string_view list, bool glob);

// One of the forms of a command: the words of a program and its arguments.
struct Form {
  const shell::Word* words = nullptr;
  std::size_t size = 0;
  unsigned level = 0;    // how many programs were peeled off
  bool in_find = false;  // find runs it for all that is below its roots
  bool tested = false;   // and that passes a test of name, path, time or owner
  // Where find begins; and, with `process` set, the names it looks for.
  const std::vector<shell::Word>* roots = nullptr;
  bool code = false;   // runs out of an interpreter's code
  bool holes = false;  // what is unknown in it is no reason to refuse
  const shell::Input* input = nullptr;

  Form from(std::size_t first) const {
    Form rest = *this;
    first = std::min(first, size);
    rest.words += first;
    rest.size -= first;
    ++rest.level;
    return rest;
  }
};

std::string join(const Form& form);

// A word, or what follows the = or the letter of an option in it.
struct Part {
  std::string_view text = {};
  const shell::Word* word = nullptr;  // null: an option has no argument
  bool home() const { return word->home && text.data() == word->text.data(); }
  bool glob() const { return word->glob && is_pattern(text); }
};

inline Part part_of(const shell::Word& word) { return {word.text, &word}; }

enum class Order { stop_at_operand, options_anywhere };

using OnOption = FunctionRef<void(std::string_view, const Part&)>;
using OnOperand = FunctionRef<void(const Part&)>;

// Reads arguments as getopt_long does. Calls on_option(name, argument) with a letter or a long name
// and on_operand(argument). Gives the index of the word at which it stopped.
std::size_t read_arguments(const Form& form, const Syntax& syntax, Order order, OnOption on_option,
                           OnOperand on_operand);

inline constexpr auto ignore_part = [](const Part&) {};
inline constexpr auto ignore_option = [](std::string_view, const Part&) {};

// What a program does with a file.
enum class Use : unsigned char {
  read,
  write,
  make,
  change,
  chmod,
  copy_target,
  mv_target,
  remove,
  remove_tree,
  move,
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
