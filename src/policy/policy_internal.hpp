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

// Whether such a list has `name` itself.
bool lists_name(std::string_view list, std::string_view name);

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

// One of the forms of a command: the words of a program and its arguments.
struct Form {
  const shell::Word* words = nullptr;
  std::size_t size = 0;
  unsigned level = 0;    // how many programs were peeled off
  bool in_find = false;  // find runs it for all that is below its roots
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
enum class Use : unsigned char { read, write, change, mv_target, remove, remove_tree, move, wipe };

template <class OnUse>
void use_operands(const FileProgram& program, const Form& form, bool reading, OnUse&& on_use) {
  using Operands = FileProgram::Operands;
  if (program.operands == Operands::read && program.writes.empty() && !reading) return;
  std::vector<Part> operands;
  Part directory;
  bool in_place = false, recursive = form.in_find, has_pattern = false, overwrite = false;
  read_arguments(
      form, program.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (argument.word && lists_option(program.writes, name))
          on_use(Use::write, argument, false);
        else if (argument.word && lists_option(program.reads, name))
          on_use(Use::read, argument, false);
        if (name == "t" || (name.size() > 3 && starts_with("target-directory", name)))
          directory = argument;
        if (lists_option("R a r recursive", name)) recursive = true;
        if (lists_option("i in-place", name)) in_place = true;
        if (name == "e" || name == "f" || name == "regexp" || name == "expression" ||
            name == "file" || name == "reference")
          has_pattern = true;
        if (name == "u") overwrite = true;
        // chmod -x: the mode looks like an option
        if (program.operands == Operands::change && name != "R" &&
            std::string_view("rwxXst").find(name) != std::string_view::npos)
          has_pattern = true;
      },
      [&](const Part& operand) {
        // An unquoted $OPTIONS may hold -r.
        if (operand.text == std::string_view("\0", 1) && operand.word->split) recursive = true;
        operands.push_back(operand);
      });

  const auto use_all = [&](Use use, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) on_use(use, operands[i], recursive);
  };
  const std::size_t count = operands.size();
  switch (program.operands) {
    case Operands::none:
      return;
    case Operands::read:
      return use_all(Use::read, 0, count);
    case Operands::write:
      return use_all(Use::write, 0, count);
    case Operands::change:
      return use_all(Use::change, has_pattern ? 0 : 1, count);
    case Operands::pattern:
      return use_all(Use::read, has_pattern ? 0 : 1, count);
    case Operands::sed:
      return use_all(in_place ? Use::write : Use::read, has_pattern ? 0 : 1, count);
    case Operands::remove:
      return use_all(Use::remove, 0, count);
    case Operands::rm:
      return use_all(recursive ? Use::remove_tree : Use::remove, 0, count);
    case Operands::shred:
      use_all(Use::wipe, 0, count);
      return overwrite ? use_all(Use::remove, 0, count) : void();
    case Operands::filter:
      use_all(Use::read, 0, std::min<std::size_t>(count, 1));
      return use_all(Use::write, 1, std::min<std::size_t>(count, 2));
    case Operands::key_value:
      for (const Part& operand : operands) {
        if (starts_with(operand.text, "of="))
          on_use(Use::write, Part{operand.text.substr(3), operand.word}, false);
        if (starts_with(operand.text, "if="))
          on_use(Use::read, Part{operand.text.substr(3), operand.word}, false);
      }
      return;
    case Operands::copy:
    case Operands::move:
    case Operands::link: {
      const bool moves = program.operands == Operands::move;
      const std::size_t sources = directory.word || count < 2 ? count : count - 1;
      if (program.operands != Operands::link) use_all(moves ? Use::move : Use::read, 0, sources);
      if (directory.word)
        on_use(moves ? Use::mv_target : Use::write, directory, false);
      else if (count > 1)
        on_use(moves ? Use::mv_target : Use::write, operands.back(), false);
      return;
    }
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
