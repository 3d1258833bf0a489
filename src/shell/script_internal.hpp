// What a walk over a script reports: its simple commands, with what is known of their words.
#pragma once

#include "shell/shell.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Reads scripts in the language of POSIX.1-2024, "Shell Command Language", and in that of bash 5,
// runs nothing, looks at no file, and reports every simple command that the script could run: in
// lists, pipelines, background, groups, subshells, compound commands, function bodies, command and
// process substitutions at any depth, arithmetic, parameter expansions, here-documents, and in the
// strings given to eval, trap and alias. Words are expanded as far as the script itself has their
// value: variables it sets, positional parameters, quotes, braces, `$(echo ...)`, `${X:-...}`,
// field splitting. A part that only a run would know is marked as unknown.
//
// All branches are taken: a variable that differs between them has several values, and a command
// that uses it is reported once for each. The effects of functions and loops are remembered: with
// the same arguments and variables, their commands are not reported again. Time is linear in the
// script, memory and results are bounded by Limits; what exceeds them is an error, never a part
// left out in silence.
namespace shell {

// Where the two languages read the same text differently ($'..', &>, <( ), [[ ]], {a,b}, ...).
enum class Dialect { bash, posix };

// A text that copies share, as one input may be that of thousands of commands.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) {
    if (!text.empty()) text_ = new_shared<const std::string>(std::move(text));
  }
  SharedText(const char* text) : SharedText(std::string(text)) {}
  operator std::string_view() const { return text_ ? std::string_view(*text_) : ""; }
  std::size_t size() const { return text_ ? text_->size() : 0; }
  bool operator==(const SharedText& other) const {
    return text_ == other.text_ || std::string_view(*this) == std::string_view(other);
  }

 private:
  std::shared_ptr<const std::string> text_ = {};
};

// What a command reads from its standard input.
struct Input {
  enum class Kind {
    inherited,  // standard input of the script, and not known
    known,      // the text below: a here-document, or what echo, printf, cat or ls -d writes
    unknown,    // a file or the output of another command
  };
  Kind kind = Kind::inherited;
  SharedText text = {};  // of known; unknown parts are NUL bytes, as in Word
  bool glob = false;     // some words of it are names of files that are found, if they are there
  bool home = false;     // each ~ that begins a word is a home directory
  // A shell reads its script from it: what a command in that script reads is the rest of it, and
  // what another shell reads has been read as a script already.
  bool script = false;
  // Of a file: what else it may have, and whether this is a part of its text only.
  const Input* also = nullptr;
  bool piece = false;
  bool added = false;  // stands behind what the file had before the script, which is not known
  // True if it has one text, known or not.
  bool is_certain() const {
    const Input* other = also;
    while (other != nullptr && other->piece) other = other->also;
    return other == nullptr;
  }
  bool operator==(const Input& other) const {
    return kind == other.kind && text == other.text && glob == other.glob && home == other.home &&
           script == other.script && also == other.also && piece == other.piece &&
           added == other.added;
  }
};

// A string that the script makes, and what is known of it. Each part that cannot be known without a
// run is a single NUL byte in `text`, which no shell string can contain.
struct Text {
  std::string text = {};
  bool assumed = false;  // holds only while a variable the script does not set is unset: ${X:-y}
  bool glob = false;     // has unquoted * ? or [, so that it may stand for names of files
  bool home = false;     // begins with a home directory, which `text` has as ~ or ~user
  bool split = false;    // an unknown part is not quoted: it may become several words, or none
  bool operator==(const Text& other) const {
    return text == other.text && assumed == other.assumed && glob == other.glob &&
           home == other.home && split == other.split;
  }
  bool known() const { return !has_nul(text); }
  // True if it is a path that needs no working directory.
  bool is_whole_path() const { return starts_with(text, home ? "~" : "/"); }
};

// A text as a command gets it, after expansion and removal of quotes.
struct Word : Text {
  bool process = false;  // is a process substitution: <( ) or >( )
  // Those that are not 0: hashes of the names of variables that nothing in the script can have set,
  // which are unknown parts of it.
  std::array<std::uint16_t, 4> unset = {};
  std::size_t begin = 0;  // the bytes of the script it was written in; of a string that a command
  std::size_t end = 0;    // runs (eval '...'), the bytes of that command
  // Of <( ), and of a file that the script has written: what can be read from it; null: that is not
  // known. It lives as long as the walk.
  const Input* printed = nullptr;

  std::size_t count_unset() const {
    return static_cast<std::size_t>(std::find(unset.begin(), unset.end(), 0) - unset.begin());
  }
  // With more of them, the others are parts that may be anything.
  void add_unset(std::uint16_t name) {
    for (std::uint16_t& place : unset)
      if (place == 0) {
        place = name;
        return;
      }
  }
};

// NAME=value in front of a command; of an array, the elements with one blank between them; of
// NAME+=value the whole, of NAME[subscript]=value the element.
struct Assignment {
  std::string name = {};
  Word value = {};
};

struct Redirection {
  enum class Kind {
    read,           // <
    write,          // > and >|; also &> and >&name, which mean standard output and error
    append,         // >> and &>>
    read_write,     // <>
    duplicate,      // <& and >& of a number, or - which closes
    here_document,  // << and <<-; the target is the text
    here_string,    // <<<; the target is the text, without the newline that is added
  };
  Kind kind = Kind::read;
  int fd = 0;  // 1 for &>; -1 for {name}> and where the number is beyond 1023
  Word target = {};
  bool writes() const noexcept {
    return kind == Kind::write || kind == Kind::append || kind == Kind::read_write;
  }
};

// A simple command. [[ ]] and (( )) are reported as commands with these names.
struct Command {
  std::vector<Assignment> assignments = {};
  std::vector<Word> words = {};  // empty for assignments or redirections alone
  std::vector<Redirection> redirections = {};
  std::size_t begin = 0;  // bytes of the script
  std::size_t end = 0;
  unsigned depth = 0;  // of lists in compound commands, substitutions, functions and strings
  // Where cd has led it: absolute, or as seen from where the script starts. A NUL byte: not known.
  Word work_dir = {};
  Input input = {};
  bool pipeline = false;    // part of a pipeline of two commands or more
  bool background = false;  // started with &, or in something that was
  bool defined = false;     // in a function's body, where it is defined and not where it is called
  bool tolerant = false;    // in a payload that is
  bool holes = false;       // in a payload that is known in part
  bool widened = false;     // some unknown parts have values, but too many to report each
  bool compound = false;    // no command of its own: the redirections of a compound command
  bool own = false;         // calls a function that the script has surely defined by then
  // BASH_ENV and ENV, where the script has set them: what a shell that it starts reads first. Not
  // in what such a shell reads first.
  std::vector<Assignment> start_files = {};
  bool fork_bomb = false;  // calls a function that is running, in a pipeline or in background of it
  std::string_view file = {};  // Payload::path of the innermost text around it that has one
};

// A function or an alias that the script defines.
struct Definition {
  std::string name = {};
  bool alias = false;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Limits {
  unsigned max_depth = 32;           // nesting of constructs, calls and strings together
  std::size_t max_written = 4096;    // simple commands as written; four times that with strings
  std::size_t max_commands = 65536;  // as reported: once for each value that differs
  std::size_t max_words = std::size_t{1} << 18;  // words of these
  std::size_t max_text = std::size_t{8} << 20;   // bytes of these words, and of all variables
};

struct Options {
  Dialect dialect = Dialect::bash;
  std::string work_dir = {};  // absolute; empty: not known
  Limits limits = {};
  Input input = {};  // standard input of the script
  // Variables that it is started with, which are reported before its first command as assignments
  // of a compound command.
  const std::vector<std::pair<std::string, std::string>>* variables = nullptr;
  // What its shell runs before it: functions, aliases and the like, which have been judged. Of this
  // nothing is reported but the variables that it sets, as those above.
  std::string_view held = {};
  // Variables that decide what programs do: setting one is reported as an assignment, however it is
  // done. Null: there are none.
  bool (*steers_programs)(std::string_view name) = nullptr;
};

// How the reading went.
struct Outcome {
  // False: a syntax error (`parse`) or a limit (`limit`). Commands before it have been reported: a
  // shell may run them.
  bool complete = true;
  Error error = {};  // when not complete; `offset` is a byte of the script
  // Some part reads differently in the other dialect.
  bool dialect_dependent = false;
  // What a shell reads from the input of the script ends in a construct or a here-document: more
  // text could be its rest. Of an error (`parse`): it is only that.
  bool open = false;
  std::vector<Definition> definitions = {};
};

// A string that a command hands to a shell, for walk() to follow.
struct Payload {
  std::string text = {};             // unknown parts are NUL bytes, as in Word
  std::vector<Word> arguments = {};  // $0, $1 ... of a shell of its own
  Input input = {};
  bool same_shell = false;  // as eval: it sees and changes the variables of the script
  bool tolerant = false;    // a syntax error in it ends the payload, not the reading
  bool holes = false;       // as tolerant; the commands in it are marked, too
  bool file = false;        // of a file, which may be run again, also by itself
  bool starts = false;      // a shell reads it before its script
  // The file, if an earlier command has written the text. An error of syntax in it ends the text.
  std::string path = {};
};

// A command that walk() has come to.
struct Visit {
  const Command& command;
  const Command* producer;         // the simple command that writes into its pipe, if one does
  std::vector<Payload>& payloads;  // to fill: what is to be read before the walk goes on
  // To fill: files that get a text which is not known, as seen from the command's directory. Those
  // of `changed` only if the script has written them before.
  std::vector<std::string>& fetched;
  std::vector<std::string>& changed;
  std::vector<std::string>& run;  // to fill: words that name files which the command runs
};

// Reads a script, and hands each command to `visit` when it comes to it: once for each call of the
// function and each round of the loop that it is in. An unterminated quote or substitution, an
// operator out of place and a NUL byte are syntax errors. A here-document that ends with the script
// is not: shells accept it.
Outcome walk(std::string_view script, const Options& options,
             FunctionRef<void(const Visit&)> visit);

}  // namespace shell

// The same for users of the library, without what is known of each word.
SimpleCommand simple_command(const shell::Command& command);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
