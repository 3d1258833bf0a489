// The walker: goes through the tree in the order of execution.
//
//   ShellWalk ........ what there is once: budget, tree, variables, functions, bodies, traps
//   ShellRunner ...... runs nodes in one place: a ShellPlace says what they are part of
//     ShellSimple .... one simple command: words, assignments, redirections, and what it does
//       ShellExpander  its words             (words_internal.hpp)
//       ShellBuiltin   a builtin             (builtins_internal.hpp)
//       ShellPrinter   what a command prints (builtins_internal.hpp)
//     ShellSteering .. variables that decide what programs do
//   ShellNames ....... functions and aliases, and the calls of functions
//   ShellBodies ...... what bodies of functions and loops did when they ran before
//
// A subshell, the left side of a pipe, a body that is recorded: each is another place, and runs by
// a copy of the runner with that place. So nothing has to be put back behind it.
#pragma once

#include "shell/files_internal.hpp"
#include "shell/scopes_internal.hpp"
#include "shell/tree_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

class ShellRunner;

// A command that may write into a pipe; nothing: it was not reported.
using KeptCommand = std::shared_ptr<const shell::Command>;

// Where commands stand: what they are part of, and where their streams lead.
struct ShellPlace {
  shell::Input* input;   // standard input; exec changes it for all that shares it
  ShellPrinted* output;  // standard output
  const shell::Command* producer = nullptr;  // of `input`
  std::uint64_t producer_id = 0;             // another for each pipe that has one; 0: none
  KeptCommand* keep = nullptr;  // where a command is kept for the one behind it in the pipeline
  unsigned parallel = 0;        // pipelines and background lists around
  unsigned shells = 0;          // started by the script, around it
  // These six are reported with each command: see shell::Command.
  bool pipeline = false;
  bool background = false;
  bool defined = false;
  bool tolerant = false;
  bool holes = false;
  std::string_view file = {};
  bool starting = false;  // in what a shell reads before its script
  bool handler = false;   // in a handler of a trap, when the script has ended
  bool held = false;      // in shell::Options::held
};

// What a body depends on beside variables.
struct ShellSurroundings {
  shell::Input input = {};
  std::uint64_t definitions = 0;
  std::uint64_t producer = 0;
  std::uint64_t files = 0;
  unsigned flags = 0;
  bool operator==(const ShellSurroundings& other) const {
    return flags == other.flags && files == other.files && definitions == other.definitions &&
           producer == other.producer && input == other.input;
  }
};

// What a body did.
struct ShellEffects {
  ShellChanges changes = {};
  ShellChanges between = {};  // values that were overwritten, if it may be left in the middle
  std::vector<std::string> carried = {};  // changed after it had been read
};

// Remembers what bodies of functions and loops did. Where a body would find the same arguments,
// variables and surroundings, it is not run again, as its commands have been reported:
//
//   run() -- find() -- found --> recall(): its effects, and what it printed
//                 \--- not ----> the nodes run in a frame, under a recording of what they read;
//                                remember(), unless it depends on what is not recorded
//
// At most max_memories of one body are kept, and Limits::max_text / 4 bytes for all.
class ShellBodies {
 public:
  // Runs a body, or recalls what it did. The caller has to apply the effects. In the body the
  // variable `name` is `given`: the arguments of a function, or the variable of a for loop.
  ShellEffects run(ShellRunner& runner, ShellRange nodes, std::string_view name,
                   const ShellVariable& given);

 private:
  static constexpr std::size_t max_memories = 64;      // of one body
  static constexpr std::size_t max_remembered = 4096;  // bytes of the input, but of a script

  struct Memory {
    explicit Memory(ShellBudget& budget) : output(&budget) {}
    std::uint32_t body = 0;
    ShellSurroundings here = {};
    ShellVariable given = {};
    ShellVariables read = {};
    ShellEffects effects = {};
    ShellPrinted output;
    KeptCommand kept = {};
  };

  const Memory* find(ShellRunner& runner, const Memory& wanted);
  static ShellEffects recall(ShellRunner& runner, const Memory& memory);
  // Runs the nodes; what they did comes into `memory`.
  static void record(ShellRunner& runner, ShellRange nodes, std::string_view name, Memory& memory,
                     ShellRecording& recording);
  // Moves the one element of `fresh` to the others.
  void remember(std::list<Memory> fresh, std::size_t limit);

  std::map<std::uint32_t, std::list<Memory>> memories_ = {};
  std::size_t bytes_ = 0;
};

// True for the text of an alias each of whose commands begins with a name, so that the words behind
// it are arguments, and which has nothing that changes how these are read. If it ends in a `;`,
// `next`, the first of them, is such a name.
bool is_plain_alias(std::string_view text, std::string_view next = {});

// Keeps the functions and aliases of the script, and calls functions. A recursion is followed
// until a call has the arguments of one that is running, and at most max_activations deep; then
// what the function may change is not known any more.
class ShellNames {
 public:
  // A function that the script defines outside of branches. Bodies that stand before the definition
  // may call it, too.
  void expect(std::string_view name) { later_[std::string(name)]; }
  void define(ShellRunner& runner, std::uint32_t index, const ShellNode& node);
  // After unset -f. `certain`: the name is known.
  void forget(ShellRunner& runner, const std::string& name, bool certain);
  bool any_forgotten() const { return lost_; }
  // True if it calls a function that the script has surely defined by then.
  bool is_own(ShellRunner& runner, const shell::Command& command);
  bool is_fork_bomb(const ShellPlace& place, const shell::Command& command) const;
  // Calls the function of that name. False: there is none.
  bool run_function(ShellRunner& runner, const shell::Command& command);
  // Within a function, what is declared is its own.
  void make_local(ShellScopes& scopes, std::string_view name);
  // How many functions are running, and the local variables of the innermost.
  std::size_t calls() const { return activations_.size(); }
  std::size_t locals() const { return calls() == 0 ? 0 : activations_.back().locals.size(); }
  // Takes what is local to the innermost out of the changes of its body.
  void drop_locals(ShellChanges& changes, std::uint64_t frame) const;

  void set_alias(ShellScopes& scopes, const std::string& name, std::string value);
  // An alias's text, with the rest of the command behind it. False: it is none.
  bool run_alias(ShellRunner& runner, const ShellNode& node, const shell::Command& command);
  bool in_alias() const { return !running_aliases_.empty(); }

 private:
  static constexpr std::size_t max_former = 3;       // values, with those of an early return
  static constexpr std::size_t max_activations = 3;  // of a recursive function
  static constexpr std::size_t max_locals = 64;

  // A function that is running.
  struct Activation {
    std::string name = {};
    std::vector<std::string> arguments = {};
    unsigned parallel = 0;
    ShellChanges locals = {};     // and what they were before
    std::size_t frames = 0;       // around it
    ShellVariables carried = {};  // what it had changed where it called itself
    bool recurs = false;          // such a call was not followed
  };
  using Bodies = std::vector<std::uint32_t>;

  // Whether a name is that of a function differs between branches and subshells. So it is kept as
  // a variable, own_key(): its value is the mark of the shell that has defined the function.
  static void mark_own(ShellRunner& runner, std::string_view name, bool own);
  static std::string own_key(std::string_view name) { return concat("(%", {name}); }
  static char own_mark(const ShellRunner& runner);

  void call(const ShellRunner& caller, const shell::Command& command, const Bodies& bodies);
  void call_once(ShellRunner& runner, std::uint32_t function, const ShellVariable& arguments);
  // A function that calls itself as before: the call is not followed, but what it may change is
  // not known from then on.
  static void end_recursion(const ShellRunner& caller, Activation& activation);

  std::map<std::string, Bodies, std::less<>> functions_ = {};
  std::map<std::string, Bodies, std::less<>> later_ = {};
  bool lost_ = false;  // by unset -f of a name that is not known
  std::list<Activation> activations_ = {};
  TextMap aliases_ = {};
  std::vector<std::string> running_aliases_ = {};
};

// All that there is once in a walk.
struct ShellWalk {
  ShellWalk(const shell::Options& options, FunctionRef<void(const shell::Visit&)> visitor)
      : budget(options), visit(visitor) {}

  const ShellNode& node(std::uint32_t index) const { return syntax.nodes[index]; }
  std::uint32_t item(ShellRange range, std::size_t i) const {
    return syntax.lists[range.begin + i];
  }

  ShellBudget budget;
  FunctionRef<void(const shell::Visit&)> visit;
  ShellSyntax syntax = {};
  ShellScopes scopes{budget};
  ShellNames names = {};
  ShellBodies bodies = {};
  ShellFiles files = {};
  // A text that is parsed.
  struct Parsed {
    std::uint32_t root = no_index;
    bool failed = false;
    bool open = false;
    bool running = false;  // of a file: one that runs itself is not followed
    Error error = {};
  };
  std::map<std::string, Parsed> parsed_files = {};
  struct Trap {
    std::string text = {};
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string_view file = {};
  };
  std::list<Trap> traps = {};
  ShellPrinted nowhere{nullptr};         // output that nothing reads
  std::list<shell::Input> printed = {};  // what can be read from <( )
  // Variables that steer programs and that references may stand for; unknown_part: any.
  std::vector<std::string> references = {};
  bool has_start_files = false;  // the script sets BASH_ENV or ENV
  bool lastpipe = false;       // the word is in the script: a pipeline's end may run in this shell
  std::size_t here_begin = 0;  // the node that runs
  std::size_t here_end = 0;
};

// Runs nodes in one place, taking every branch. What runs elsewhere, runs by a copy of the runner
// whose place differs; only variables are shared.
class ShellRunner {
 public:
  explicit ShellRunner(ShellWalk& shared, shell::Input& input)
      : walk(shared), place{&input, &shared.nowhere} {}

  void run(std::uint32_t index);
  // The same, and takes back what it changes.
  void run_subshell(std::uint32_t index);
  // Runs a string as a script. `tolerant`: a syntax error in it does not end the walk. True: the
  // string ends in a construct, and all before that was run.
  bool run_text(std::string text, const shell::Command& command, bool tolerant);
  // Reports that the shell may run any text here.
  void run_anything();
  // An element of an array that is_command_table().
  void run_table_entry(std::string_view table, std::string_view name, std::string_view value);
  // Handlers see what the variables are in the end, too.
  void run_traps();

  // Reports it, if it steers programs.
  void assign(std::string_view name, ShellValue&& value);
  // The same for an assignment that has been reported.
  void store(std::string_view name, ShellValue&& value);
  // The variable, or the array of name[subscript], has any value from here on.
  void assign_unknown(std::string_view text);

  // The one string that a word makes.
  shell::Word expand_single(std::uint32_t index);
  // The fields that words make.
  void expand_words(ShellRange range, std::vector<shell::Word>& out, bool single = false);
  // What $(list) writes.
  ShellText output_of(std::uint32_t index);
  // Runs the list of a process substitution; gives what can be read from it.
  shell::Input input_from_process(const ShellPart& part);

  // Completes the command and hands it to the visitor; follows what that gives back.
  void report(const ShellNode& node, shell::Command& command);
  void report_held(const shell::Command& command);

  // What a path is called in ShellWalk::files.
  std::string file_key(std::string_view path) const;
  // A file of a known path gets a text. Not where a function is defined: its calls do it.
  void write_file(std::string_view path, shell::Input text, bool append);
  // The files behind > get what was printed. `local`: that is the text of other files, which the
  // script has not written: as those, they are not looked at.
  void write_redirected(const std::vector<shell::Redirection>& redirections,
                        const ShellPrinted& printed, bool local = false);
  // Notes the text of a file that the script has written.
  void find_text(shell::Word& word) const;

  ShellSurroundings surroundings() const;

  ShellWalk& walk;
  ShellPlace place;

 private:
  static constexpr std::size_t max_parts = 16;  // of a loop over more values

  // Runs a text of ours in the place of the node that runs.
  void run_here(std::string text);

  void run_background(std::uint32_t index, const ShellNode& node);
  void run_foreground(std::uint32_t index, const ShellNode& node);
  void run_compound(const ShellNode& node);
  // Runs what may or may not run; gives what it changed.
  ShellChanges run_branch(std::uint32_t index);
  // A command behind && finds what the commands before it have changed. For one behind || it is not
  // known which of them have run.
  void run_and_or(const ShellNode& node);
  void run_if(const ShellNode& node);
  void run_case(const ShellNode& node);
  // Fixed point of a loop: runs its parts until a round changes nothing that the next round reads,
  // but at most twice. What a round changes of that is unknown from then on. `variable` is what
  // that of a for loop has in each round.
  void run_rounds(const ShellNode& node, const ShellVariable& variable);
  void run_for(const ShellNode& node);
  void run_pipeline(const ShellNode& node);
  void run_coprocess(const ShellNode& node);
  // [[ ]] and (( )) run no program, but are reported as commands of these names.
  void run_test(const ShellNode& node);
  // In a shell of its own.
  void run_apart(std::uint32_t index, ShellPrinted& output, shell::Input input);
  // Runs a string that a command hands to a shell.
  void follow(shell::Payload& payload, const shell::Command& command);
  // A file that was run before with the same variables and arguments is not run again.
  void run_file(const std::string& text, const shell::Command& command, bool tolerant);
  ShellWalk::Parsed parse_text(std::string text, const shell::Command& command);
};

// Texts that the shell evaluates by itself, for the commands in them.
//
// bash takes `unset 'a[$(rm x)]'` for a subscript and expands it: the substitution runs. So a text
// that may be expanded so is expanded as if it stood in double quotes. What that makes of it may be
// expanded again, where it has a subscript in it: 'a[b[\$(rm x)]]'.
class ShellEvaluation {
 public:
  explicit ShellEvaluation(ShellRunner& runner) : runner_(runner), walk_(runner.walk) {}

  // Expands a text as in double quotes.
  void expand(std::string_view text);
  // The same, if it has expansions.
  void expand_if_needed(std::string_view text);
  // The same, if it has a subscript, which bash evaluates where it takes a text for a name.
  void expand_subscript(std::string_view text);
  // The same, if it has a substitution: what becomes of the text is not known from here on.
  void expand_lost(std::string_view text);
  // The same for a prompt, where a backslash and digits stand for a character.
  void expand_prompt(std::string_view text);
  // The same for arithmetic: bash evaluates variables in it, and the subscripts they contain.
  void evaluate(std::string_view text);
  // The same for subscripts in words: builtins that take names of variables evaluate them, as in
  // unset 'a[$(command)]'.
  void expand_words(const shell::Command& command);
  // The same for a value: bash evaluates subscripts where it takes values for arithmetic or for a
  // name, and expands some variables by itself.
  void expand_value(std::string_view name, const ShellValue& value);
  // The same for positional parameters, before ${!#} and its like lose them.
  void expand_arguments(const std::vector<ShellText>& arguments);

 private:
  ShellRunner& runner_;
  ShellWalk& walk_;
};

// Variables that steer programs, see shell::Options: reports what they get, however that is done.
//
//   X=a                     reported with the command: ShellRunner::store()
//   export X=a              the same, as a word of it
//   X=(a b), read X, : ${X:=a}, printf -v X a, for X in a ...     ShellRunner::assign()
//   declare -n r=X; r=a     for all that references may stand for, whatever is assigned
class ShellSteering {
 public:
  explicit ShellSteering(const ShellRunner& runner) : runner_(runner), walk_(runner.walk) {}

  // Each text of the value, if the variable is one of them.
  void report(std::string_view name, const ShellValue& value);
  // A text that stands behind what is not known, and that may have been empty.
  void report_added(std::string_view name, const ShellText& text);
  // What else is to be reported where a variable gets a value.
  void store(std::string_view name, const ShellValue& value);
  // A reference may stand for the variable of that name, if it is one of them.
  void note_reference(std::string_view name);
  // What a shell that the command starts reads first.
  void find_start_files(shell::Command& command) const;

 private:
  bool steers(std::string_view name) const;
  void report_text(std::string_view name, std::string_view text);
  // What any variable gets, for those that references may stand for.
  void store_by_reference(const ShellValue& value);

  const ShellRunner& runner_;
  ShellWalk& walk_;
};

// A simple command.
class ShellSimple {
 public:
  ShellSimple(ShellRunner& runner, const ShellNode& node)
      : runner_(runner), walk_(runner.walk), node_(node) {}

  // Reports it once for each choice of values. All start from the same state, and what they change
  // is merged.
  void run();
  void expand_redirections(std::vector<shell::Redirection>& out, shell::Input& input);
  // True if one of the redirections is that of standard output.
  bool redirects_output() const;

 private:
  void run_once();
  void expand_words(std::vector<shell::Word>& out);
  // True if a word is NAME=value, NAME+=value or NAME[subscript]=value.
  bool is_assignment(std::uint32_t word) const;
  // True if an assignment in front of the command is for it alone.
  bool is_temporary(std::string_view name) const;
  void run_assignment(const ShellAssignment& assignment, shell::Command& command);
  // What NAME+=value makes of the variable.
  ShellValue appended(const ShellAssignment& assignment, ShellValue value);
  // What NAME[subscript]=value makes of it.
  ShellValue with_element(const ShellAssignment& assignment, ShellValue value);
  // NAME=(elements), behind those that `array` has.
  ShellValue with_elements(const ShellAssignment& assignment, ShellValue array);
  // An element that is written as [subscript]=text. False: it is not.
  bool put_subscripted(std::uint32_t index, ShellValue& array);
  // What a command that has been reported does to the shell, and what it writes.
  void run_effects(const shell::Command& command);

  ShellRunner& runner_;
  ShellWalk& walk_;
  const ShellNode& node_;
};

inline std::size_t size(ShellRange range) { return range.end - range.begin; }
inline shell::Input unknown_input() {
  shell::Input input;
  input.kind = shell::Input::Kind::unknown;
  return input;
}
// True if standard input is among what is redirected.
inline bool redirects_input(const std::vector<shell::Redirection>& redirections) {
  return std::any_of(redirections.begin(), redirections.end(),
                     [](const shell::Redirection& each) { return each.fd == 0; });
}

// What exec makes of standard input where it is not certain which commands run: each of these
// begins with what was before. What several of them have made of it is not known.
class ShellInputs {
 public:
  explicit ShellInputs(shell::Input& input) : input_(input), before_(input) {}
  // Behind one of them.
  void next() {
    differs_ = differs_ || (any_ && !(input_ == made_));
    made_ = std::exchange(input_, shell::Input(before_));
    any_ = true;
  }
  // Behind all. `maybe_none`: it may be that none has run.
  void merge(bool maybe_none) {
    if (maybe_none) next();
    if (!any_) return;
    input_ = differs_ ? unknown_input() : made_;
    // What another shell reads has been read as a script, whatever it is.
    input_.script = input_.script || before_.script;
  }

 private:
  shell::Input& input_;
  const shell::Input before_;
  shell::Input made_ = {};
  bool any_ = false;
  bool differs_ = false;
};

// True for the arrays of bash that decide what command a name is.
bool is_command_table(std::string_view name);
// What can be read from where this was written.
shell::Input input_of(ShellPrinted output);
// Records what is printed to files behind >, while there is room for it.
ShellPrinted recorder_of(ShellBudget& budget, const std::vector<shell::Redirection>& redirections);
// A builtin that POSIX finds before a function.
bool is_special_builtin(std::string_view name);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
