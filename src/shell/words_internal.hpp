// From a word of the tree to the fields that a command gets.
#pragma once

#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// An extended glob may match any name, whatever stands in its parentheses: of each name in the path
// that has one, what follows becomes a star. /bin/@(rm) is /bin/*, and a/!(b)c/d is a/*/d.
void widen_extended_globs(std::string& text);

// Builds fields: text is added to the word under construction, and unquoted text of an expansion
// is split at the characters of IFS.
//
//            +---- add_text(), add_unknown() ----+
//            v                                   |
//   no word --> word: `word_`, and `started_` if it is a field even when empty
//            <-- end_field(): the word is added to `out`
class ShellFields {
 public:
  // `single`: an assignment or a redirection, which is one word whatever it contains.
  ShellFields(ShellRunner& runner, std::vector<shell::Word>& out, bool single)
      : runner_(runner), walk_(runner.walk), out_(out), single_(single) {}

 protected:
  void add_text(std::string_view text, bool quoted);
  void add_unknown(bool quoted);
  // The value of an expansion: split into fields when it is not quoted.
  void add_value_text(const ShellText& text, bool quoted);
  // `home`: each ~ at the beginning of a field is a home directory.
  void add_split(std::string_view text, bool home = false);
  void end_field();

  ShellRunner& runner_;
  ShellWalk& walk_;
  std::vector<shell::Word>& out_;
  const bool single_;
  bool started_ = false;
  bool assumed_ = false;     // what is added now
  std::uint32_t begin_ = 0;  // bytes of the script
  std::uint32_t end_ = 0;
  shell::Word word_ = {};
};

// What a parameter stands for.
struct ShellParameter {
  enum class State {
    set,
    unset,
    environment,  // not set by the script
    unknown,      // set to something that is not known
  };
  State state = State::set;
  std::vector<ShellText> elements = {};
  bool all = false;                     // $@ or ${name[@]}: a field for each even in quotes
  std::vector<long long> indexes = {};  // as ShellValue has them
  bool many = false;                    // $@, $*, ${name[@]}, ${name[*]}

  // True if it is one string, and that is known.
  bool is_known_string() const {
    return state == State::set && elements.size() == 1 && elements[0].known() && !elements[0].home;
  }
};

// Reads what ${name}, $1, ${name[i]} and ${!name} stand for, before any operation.
class ShellParameters {
 public:
  explicit ShellParameters(ShellRunner& runner) : runner_(runner), walk_(runner.walk) {}

  ShellParameter read(const ShellPart& part);

 private:
  void read_elements(const ShellValue& value, ShellParameter& parameter);
  ShellParameter positional(std::string_view name);
  ShellParameter count();
  ShellParameter element(const ShellPart& part);
  ShellParameter indirect(const ShellPart& part);

  ShellRunner& runner_;
  ShellWalk& walk_;
};

// Expands words: tildes, parameters and their operations, substitutions, arithmetic, braces. What
// only a run could show becomes an unknown part.
class ShellExpander : ShellFields {
 public:
  using ShellFields::ShellFields;

  // A word may make any number of fields.
  void expand_word(std::uint32_t index);

 private:
  // What is left to do behind an operation on a parameter.
  enum class Left {
    nothing,    // its result has been added
    parameter,  // the parameter, perhaps changed, is to be added
  };

  void expand_parts(ShellRange parts, bool operand);
  // `operand`: part of the word of ${x:-word}, whose unquoted blanks separate fields.
  void expand_part(const ShellPart& part, bool operand);
  void expand_tilde(const ShellPart& part);
  void expand_braces(const ShellWord& word);
  // A ~ that begins a word only after the expansion of braces. `alone`: nothing follows the part.
  void expand_leading_tilde(const ShellPart& part, bool alone);
  void expand_process(const ShellPart& part);
  void expand_arithmetic(const ShellPart& part);

  void expand_parameter(const ShellPart& part);
  void add_parameter(const ShellPart& part, const ShellParameter& parameter);
  // What stands between the elements of "$*".
  std::string joint();

  Left apply_operation(const ShellPart& part, ShellParameter& parameter);
  // ${#name}
  void add_length(const ShellParameter& parameter);
  // ${name-word}, ${name=word}, ${name?word}. `empty`: the operand is used.
  Left apply_default(const ShellPart& part, const ShellParameter& parameter, bool empty);
  // ${name+word}
  void add_alternative(const ShellPart& part, const ShellParameter& parameter, bool empty);
  // The others change each element.
  void edit(const ShellPart& part, ShellParameter& parameter);
  void run_prompt(const ShellParameter& parameter);

  void add_operand(const ShellPart& part);
  // ${name:+word} of a variable that may be set or not: both are reported.
  void add_either(const ShellPart& part);
  // ${name-word} and ${name=word} of a variable that the script does not set.
  void assume_operand(const ShellPart& part);
  // ${name=word} of a variable that is not set: the result is its new value, and is split as such.
  void assign_operand(const ShellPart& part);
  // The variable that such an expansion assigns.
  std::string assigned_name(const ShellPart& part);
  // For the commands in an operand that is not used, as far as the walk knows.
  void walk_operand(const ShellPart& part);
};

// Expands {a,b} and {1..3} into words, before anything else in them is expanded.
class ShellBraces {
 public:
  using Word = std::vector<ShellPart>;
  using Words = std::list<Word>;

  explicit ShellBraces(ShellWalk& walk) : walk_(walk) {}

  Words expand(const ShellWord& word);

 private:
  // A part, or one of the characters { , } of an unquoted text.
  struct Piece {
    ShellPart part = {};
    char mark = 0;
    std::size_t close = 0;  // of a {: where its } is; 0: it is a plain character
    bool comma = false;     // of a {: a comma belongs to it
  };

  void add_pieces(const ShellPart& part);
  Words words(std::size_t from, std::size_t to);
  // {a,b}
  Words list(std::size_t open);
  // {1..3}, {a..e}, {1..9..2}
  Words sequence(std::size_t open);

  ShellWalk& walk_;
  std::vector<Piece> pieces_ = {};
  unsigned depth_ = 0;
  std::size_t at_ = 0;  // of the word, in the script
};

// Changes a value as ${name%pattern} and its like do; false when the result is not known.
bool edit_shell_text(const ShellPart& part, const std::string& operand, ShellBudget& budget,
                     std::string& text);
// ${@:2}, ${name[@]:1:3}. Positional parameters count from 1.
bool take_slice(const ShellPart& part, std::string_view operand, ShellParameter& parameter);

// The characters of IFS.
std::string separators_of(const ShellValue& ifs);
// Where the separator that begins at `at` ends: blanks around another one are part of it. `blank`,
// before: one that is no blank may be in it; after: it has blanks only.
std::size_t skip_separator(std::string_view text, std::size_t at, std::string_view separators,
                           bool& blank);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
