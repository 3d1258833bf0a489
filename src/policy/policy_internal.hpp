// Words, paths and options of a command, as the rules look at them.
#pragma once

#include "policy/tables_internal.hpp"

#include "shell/script_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

inline bool is_unknown(std::string_view text) { return has_nul(text); }

bool is_pattern(std::string_view text);

// True if a name of a path is a pattern for everything: *, .*, .[!.]*
bool sweeps(std::string_view name);

// True if an option is `name`, or abbreviates it: getopt_long takes any beginning of a long name,
// so that --rec is --recursive. A letter is only itself.
bool is_option_name(std::string_view option, std::string_view name);

// True if an option is one of these, or abbreviates one.
bool lists_option(const Names& names, std::string_view option);
template <std::size_t... Sizes>
bool abbreviates(std::string_view option, const char (&... names)[Sizes]) {
  return (is_option_name(option, {names, Sizes - 1}) || ...);
}

// True if a mode, or an access control list, lets others write, or sets setuid or setgid; or may do
// so, as it is not known.
bool is_risky_mode(std::string_view mode);
bool is_risky_acl(std::string_view entries);

// A word as a POSIX shell reads it back. Unknown parts stay unknown.
void append_quoted(std::string& script, std::string_view word);

// A path as text: what `.`, `..` and doubled slashes come to, without a look at the file system.
struct PathText {
  enum class Root : unsigned char { relative, slash, home };
  Root root = Root::relative;
  std::string_view user = {};                // of home: ~ or ~name
  std::vector<std::string_view> names = {};  // of relative, these may begin with `..`
};

// Goes from a path to where a text leads from there, as cd does. `home`: a leading ~ stands for a
// home directory.
void enter(PathText& path, std::string_view text, bool home);

std::string text_of(const PathText& path);

// True if this must not be removed with all that is below it. `contents`: the question is for what
// is in it, not for the directory itself, as with `/*`. `glob`: * ? and [ are those of patterns.
bool is_protected(const PathText& path, bool contents, bool glob);

// True if `path` is `above`, or is below it.
bool is_within(const PathText& path, const PathText& above);

// True if a project may lie here, whose files may be removed, although the directory may lie
// in a protected tree: containers work in /root/x, /usr/src/x and the like.
bool is_workspace(const PathText& path);

bool is_device(const PathText& path, bool glob);

bool is_dev_null(const PathText& path);

// True if a path is one of this kind, or is below one.
bool is_known_path(const PathText& path, PathKind kind);

// Calls `take` with the rule of each path that is kept and that this is, or is below. `glob`: its
// names are patterns.
void each_keeper(const PathText& path, bool glob, FunctionRef<void(Rule)> take);

// One of the forms of a command: the words of a program and its arguments.
struct Form {
  const shell::Word* words = nullptr;
  std::size_t size = 0;
  unsigned level = 0;    // how many programs were peeled off
  bool in_find = false;  // find runs it for all that is below its roots
  bool tested = false;   // and that passes a test of name, path, time or owner
  // Of find: where it begins, and the names that it looks for. The names have Word::process set, to
  // distinguish them.
  const std::vector<shell::Word>* roots = nullptr;
  bool code = false;   // runs out of an interpreter's code
  bool holes = false;  // what is unknown in it is no reason to refuse
  // It stands in this file, which an earlier command has written: see case_internal.hpp. `lenient`:
  // what is unknown in it is no reason to refuse.
  std::string_view file = {};
  bool lenient = false;
  const shell::Input* input = nullptr;

  Form from(std::size_t first) const {
    Form rest = *this;
    first = std::min(first, size);
    rest.words += first;
    rest.size -= first;
    ++rest.level;
    return rest;
  }
  // Holes excuse unknown parts of a text, not a text of which nothing is known.
  Form reading(bool some_is_known) const {
    Form reader = *this;
    reader.holes = holes && some_is_known;
    return reader;
  }
};

std::string join(const Form& form);

// A word, or what follows the = or the letter of an option in it.
struct Part {
  std::string_view text = {};
  const shell::Word* word = nullptr;  // null: an option has no argument
  // True only if the part begins the word.
  bool home() const { return word->home && text.data() == word->text.data(); }
  bool glob() const { return word->glob && is_pattern(text); }
};

inline Part part_of(const shell::Word& word) { return {word.text, &word}; }

enum class Order { stop_at_operand, options_anywhere };

// Reads the arguments of a program one at a time, as getopt_long does:
//
//   tar -C /x -czf a --mode=go b     next()   option   part
//                                    1        C        /x
//                                    2        c        none
//                                    3        z        none
//                                    4        f        a
//                                    5        mode     go
//                                    6        none     b: an operand
//
// With Order::stop_at_operand it ends at the first operand, and at() is that word.
class Arguments {
 public:
  Arguments(const Form& form, const Syntax& syntax, Order order)
      : words_(form.words), size_(form.size), syntax_(syntax), order_(order) {}

  // False: there are no more.
  bool next();
  // The word to go on with.
  std::size_t at() const { return at_; }
  // True if this is one of these options, or abbreviates one. has() knows no abbreviations.
  bool is(const Names& names) const { return is_option && lists_option(names, option); }
  template <std::size_t... Sizes>
  bool is(const char (&... names)[Sizes]) const {
    return is_option && abbreviates(option, names...);
  }
  template <std::size_t... Sizes>
  bool has(const char (&... names)[Sizes]) const {
    return is_option && is_any(option, names...);
  }
  // Reads all that is left; gives at().
  std::size_t skip() {
    while (next()) continue;
    return at_;
  }

  bool is_option = false;
  std::string_view option = {};  // a letter, or a long name
  Part part = {};                // an operand, or what the option has; null: nothing

 private:
  void read_long(std::string_view text);

  const shell::Word* words_;
  std::size_t size_;
  Syntax syntax_;
  Order order_;
  std::size_t at_ = 1;
  std::string_view letters_ = {};  // that follow in the same word
  bool ended_ = false;             // behind --
};

// What a program does with a file; file_uses.cpp says what is refused of each.
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
