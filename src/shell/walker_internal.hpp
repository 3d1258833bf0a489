// The walker: from the tree to the simple commands.
#pragma once

#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Goes through a tree as a shell would.
class ShellWalker {
 public:
  ShellWalker(const shell::Options& options, FunctionRef<void(const shell::Visit&)> visit)
      : options_(options), visit_(visit) {}

  shell::Outcome walk(std::string_view script);

 private:
  // Keys among the variables that no script can name.
  static constexpr std::string_view work_dir_key = ".";
  static constexpr std::string_view positional_key = "@";
  static constexpr std::size_t max_values = 16;        // of one variable; more: not known
  static constexpr std::size_t max_choices = 16;       // tellings of one command
  static constexpr std::size_t max_parts = 16;         // of a loop over more values
  static constexpr std::size_t max_former = 3;         // values after an early return
  static constexpr std::size_t max_activations = 3;    // of a recursive function
  static constexpr std::size_t max_memories = 64;      // of one body
  static constexpr std::size_t max_remembered = 4096;  // bytes of one variable

  bool bash() const { return options_.dialect == shell::Dialect::bash; }
  bool stopped() const { return !outcome_.complete; }
  void stop(ErrorCode code, std::string_view message, std::size_t at);
  void over_limit(std::size_t most, std::string_view what, std::size_t at) {
    stop(ErrorCode::limit, concat({"more than ", most, " ", what}), at);
  }
  const ShellNode& node(std::uint32_t index) const { return syntax_.nodes[index]; }
  std::uint32_t item(ShellRange range, std::size_t i) const {
    return syntax_.lists[range.begin + i];
  }
  static std::size_t size(ShellRange range) { return range.end - range.begin; }

  // variables -------------------------------------------------------------------------------------

  // What a branch has changed.
  using Changes = std::list<std::pair<std::string, ShellVariable>>;
  // A stretch of the walk whose assignments can be taken back.
  struct Frame {
    std::uint64_t id = 0;
    Changes former = {};  // without values: it was not there
    bool keeps = false;   // the values that are overwritten, in `between`
    Changes between = {};
  };

  // `keeps`: it may be left in the middle.
  void open_frame(bool keeps = false);
  // Takes the frame's assignments back and gives what they were; `between`, when given, what they
  // had been before, if it was kept.
  Changes take_frame(Changes* between = nullptr);

  void assign(std::string_view name, ShellValue value);
  // What declare and readonly have said of variables: 'r' that they keep their value, 'i' that what
  // is stored is not what is written.
  bool has_attribute(std::string_view name, char attribute) const;
  void set_attribute(std::string_view name, char attribute);
  void use_references() {
    definitions_ += references_ ? 0 : 1;
    references_ = true;
  }
  // bash evaluates subscripts in values, where it takes them for arithmetic or for a name, and
  // expands some variables by itself.
  void run_value(std::string_view name, const ShellValue& value);
  void set_variable(std::string_view name, ShellVariable variable);
  void set_unknown(std::string_view name);
  // Values that variables may have after all.
  void add_values(const Changes& changes);
  // Adds a value to those a variable may have.
  void add_value(std::string_view name, ShellValue value);
  static void merge_value(ShellVariable& variable, ShellValue value);
  // After branches of which one was taken, or none if `maybe_none`.
  void merge(const std::list<Changes>& branches, bool maybe_none);

  // The variable, or what it is when the script has not set it. Counts as reading it.
  ShellVariable& variable_of(std::string_view name);
  ShellVariable& find_variable(std::string_view name);
  static ShellVariable initial_variable(std::string_view name);

  // A variable with several values, and the one that is being looked at.
  struct Choice {
    std::string name = {};
    std::size_t index = 0;
    std::size_t count = 0;
  };

  // The value in the present choice.
  const ShellValue& value_of(std::string_view name);

  // Calls `tell` once for each combination of the values that it asks for.
  void for_each_choice(FunctionRef<void()> tell);
  bool next_choice();

  // expansion -------------------------------------------------------------------------------------

  // Words under construction.
  struct Fields {
    std::vector<shell::Word>& out;
    bool single = false;  // an assignment or a redirection: one word whatever it contains
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    shell::Word word = {};
    bool started = false;
    bool assumed = false;  // what is added now
  };

  void add_text(Fields& fields, std::string_view text, bool quoted);
  void add_unknown(Fields& fields, bool quoted);
  // Counts work that is not seen in the words as if it were text.
  void charge(std::size_t amount);
  void end_field(Fields& fields);

  // The value of an expansion: split into fields when it is not quoted.
  void add_value_text(Fields& fields, const ShellText& text, bool quoted);
  // `home`: each ~ at the beginning of a field is a home directory.
  void add_split(Fields& fields, std::string_view text, bool home = false);
  static std::string separators_of(const ShellValue& ifs);
  // Where the separator that begins at `at` ends: blanks around another one are part of it.
  // `blank`: what may be in it, then whether it has nothing else.
  static std::size_t skip_separator(std::string_view text, std::size_t at,
                                    std::string_view separators, bool& blank);

  void expand_word(std::uint32_t index, Fields& fields);
  void expand_parts(ShellRange parts, Fields& fields);

  // `operand`: part of the word of ${x:-word}, whose unquoted blanks separate fields.
  void expand_part(const ShellPart& part, Fields& fields, bool operand);

  void expand_tilde(const ShellPart& part, Fields& fields);

  // The one string that a word makes.
  ShellText expand_single(std::uint32_t index);
  static ShellText text_of(const shell::Word& word) {
    return {word.text, word.assumed, word.glob, word.home, word.split};
  }

  // {a,b} and {1..3} ------------------------------------------------------------------------------

  // A part, or one of the characters { , } of an unquoted text.
  struct BracePiece {
    ShellPart part = {};
    char mark = 0;
    std::size_t close = 0;  // of a {: where its } is; 0: it is a plain character
    bool comma = false;     // of a {: a comma belongs to it
  };
  using BraceWord = std::vector<ShellPart>;
  using BraceWords = std::list<BraceWord>;

  void expand_braces(const ShellWord& word, Fields& fields);
  // A ~ that begins a word only after the expansion of braces. `alone`: nothing follows the part.
  void expand_leading_tilde(const ShellPart& part, bool alone, Fields& fields);
  static void add_brace_pieces(const ShellPart& part, std::vector<BracePiece>& pieces);

  BraceWords brace_words(const std::vector<BracePiece>& pieces, std::size_t from, std::size_t to,
                         std::size_t at);
  BraceWords brace_list(const std::vector<BracePiece>& pieces, std::size_t open, std::size_t at);
  // {1..3}, {a..e}, {1..9..2}
  BraceWords brace_sequence(const std::vector<BracePiece>& pieces, std::size_t open);
  static bool read_integer(std::string_view text, long long& value);
  // In arithmetic, a 0 in front makes a number octal.
  static bool read_decimal(std::string_view text, long long& value) {
    return !is_padded(text) && read_integer(text, value);
  }
  static bool is_padded(std::string_view text);
  static std::string padded_number(long long value, std::size_t width);

  // parameters ------------------------------------------------------------------------------------

  // What a parameter stands for.
  struct Parameter {
    enum class State {
      set,
      unset,
      environment,  // not set by the script
      unknown,      // set to something that is not known
    };
    State state = State::set;
    std::vector<ShellText> elements = {};
    bool all = false;  // $@ or ${name[@]}: a field for each element even in quotes
    std::vector<long long> indexes = {};  // as ShellValue has them
    bool many = false;                    // $@, $*, ${name[@]}, ${name[*]}
  };

  void expand_parameter(const ShellPart& part, Fields& fields);

  void add_parameter(const ShellPart& part, const Parameter& parameter, Fields& fields);
  // What stands between the elements of "$*".
  std::string joint();
  static bool is_whole(std::string_view name) { return has_entry("PWD # ? $ ! -"sv, name); }

  Parameter read_parameter(const ShellPart& part);

  void read_elements(const ShellValue& value, Parameter& parameter);

  static bool is_whole_path(const ShellText& text) {
    return starts_with(text.text, text.home ? "~" : "/");
  }
  Parameter positional_parameter(std::string_view name);
  Parameter count_parameter();

  Parameter element_parameter(const ShellPart& part);

  Parameter indirect_parameter(const ShellPart& part);

  // Applies ${#name} or the operation. True: the result has been added.
  bool apply_operation(const ShellPart& part, Parameter& parameter, Fields& fields);

  // Whether the operand means the same with and without its quotes, and with and without extglob.
  bool is_plain_pattern(const ShellPart& part, const ShellText& operand) const;
  void add_operand(const ShellPart& part, Fields& fields);
  // ${name:+word} of a variable that may be set or not: both are told.
  void add_either(const ShellPart& part, Fields& fields);
  void assume_operand(const ShellPart& part, Fields& fields);
  // For the commands in an operand that is not used, as far as the walk can tell.
  void walk_operand(const ShellPart& part);

  // Changes `text` as the operation says; false when that is not known.
  bool edit(const ShellPart& part, const std::string& operand, std::string& text);
  // Only patterns of plain characters and stars at the far end: what names are cut with.
  static bool remove_match(const ShellPart& part, std::string_view pattern, std::string& text);
  bool replace(const ShellPart& part, std::string_view operand, std::string& text);
  // ${@:2}, ${name[@]:1:3}. Positional parameters count from 1.
  static bool take_slice(const ShellPart& part, std::string_view operand, Parameter& parameter);
  static bool take_substring(std::string_view operand, std::string& text);
  static bool is_ascii(std::string_view text) {
    for (const char c : text)
      if ((c & 0x80) != 0) return false;
    return true;
  }

  // The value of arithmetic that is a number as it stands; else nothing. Variables in it are
  // evaluated, and bash runs the substitutions in the subscripts they contain.
  std::string arithmetic(std::uint32_t index);
  void run_arithmetic_text(std::string_view text);
  void run_arithmetic_value(std::string_view name);
  static bool has_subscript(std::string_view text);
  static bool has_substitution(std::string_view text) {
    return text.find("$(") != std::string_view::npos || text.find('`') != std::string_view::npos;
  }
  // Builtins that take names of variables evaluate the subscripts in them: unset 'a[$(command)]'.
  void run_subscripts(const shell::Command& command);
  // ${name@P}: the value is expanded as a prompt.
  void run_prompt(const Parameter& parameter) {
    for (const ShellText& element : parameter.elements) run_expansion_text(element.text);
  }

  // running ---------------------------------------------------------------------------------------

  // What a list writes to standard output, as far as known.
  struct Output {
    std::string text = {};
    bool assumed = false;
    bool glob = false;
    bool home = false;
    void mark(const Output& other) {
      assumed = assumed || other.assumed;
      glob = glob || other.glob;
      home = home || other.home;
    }
  };
  void write_output(std::string_view text);
  std::size_t output_size() const { return output_ == nullptr ? 0 : output_->text.size(); }
  void write_unknown();
  void append_output(const Output& output);

  bool enter(std::size_t at);

  void run(std::uint32_t index);
  void run_background(std::uint32_t index, const ShellNode& node);
  void run_foreground(std::uint32_t index, const ShellNode& node);

  void run_compound(const ShellNode& node);

  // What came after the first `written` bytes of output may have been written, or not.
  void forget_output(std::size_t written);
  // Runs what may or may not run; gives what it changed.
  Changes run_branch(std::uint32_t index);

  // After &&, commands run in a state that knows all before them; after ||, that of the failure of
  // some of them.
  void run_and_or(const ShellNode& node);
  void merge_one(const Changes& changes);

  void run_if(const ShellNode& node);

  // Runs a loop's parts until nothing new can come of another round: what a round changes and an
  // earlier part of the next one reads is not known from then on. `variable` is what that of a for
  // loop has in each round.
  void run_rounds(const ShellNode& node, const ShellVariable& variable);
  void run_loop(const ShellNode& node);

  void run_for(const ShellNode& node);

  // Variables that decide which program or library runs: setting them is told as an assignment,
  // however it is done.
  static bool steers_programs(std::string_view name);
  void tell_assignment(const ShellNode& node, std::string_view name, const ShellVariable& variable);
  void run_case(const ShellNode& node);

  void run_coprocess(const ShellNode& node);
  static shell::Input unknown_input();

  // [[ ]] and (( )) run no program, but are told as commands of these names.
  void run_test(const ShellNode& node);
  static shell::Word plain_word(std::string_view text, const ShellNode& node);

  void run_pipeline(const ShellNode& node);

  static shell::Input input_of(Output output);
  // $(list): what it writes.
  ShellText output_of(std::uint32_t index);
  // The word of a process substitution, of which only the name is not known.
  void run_process(const ShellPart& part, Fields& fields);
  // In a shell of its own.
  void run_apart(std::uint32_t index, Output* output, shell::Input input);

  // what bodies did ------------------------------------------------------------------------------

  // What a body of a function or a loop did. Where it would find the same, it is not run again: its
  // commands have been told.
  struct Effects {
    Changes changes = {};
    Changes between = {};  // values that were overwritten, if it may be left in the middle
    std::vector<std::string> carried = {};  // changed after it had been read
  };
  // What a body depends on beside variables.
  struct Surroundings {
    shell::Input input = {};
    std::uint64_t definitions = 0;
    std::uint64_t producer = 0;
    unsigned flags = 0;
    bool operator==(const Surroundings& other) const {
      return flags == other.flags && definitions == other.definitions &&
             producer == other.producer && input.kind == other.input.kind &&
             input.text == other.input.text && input.glob == other.input.glob &&
             input.home == other.input.home;
    }
  };
  Surroundings surroundings() const;
  // A command that may write into a pipe; nothing: it was not told.
  using KeptCommand = std::shared_ptr<const shell::Command>;
  // A body that runs, and what it has read of what was there before it.
  struct Recording {
    ShellVariables read = {};
    std::uint64_t frame = 0;
    std::size_t outermost = no_index;  // the first of the activations that it depends on
  };
  struct Memory {
    std::uint32_t body = 0;
    Surroundings here = {};
    ShellVariable given = {};
    ShellVariables read = {};
    Effects effects = {};
    Output output = {};
    KeptCommand kept = {};
  };
  // Runs a body, or recalls what it did; its effects are not there yet. `name` has `given` in it:
  // a function's arguments, or what the variable of a for loop has.
  Effects run_body(ShellRange nodes, std::string_view name, const ShellVariable& given);
  const Memory* find_memory(const Memory& wanted);
  Effects recall(const Memory& memory);
  // Forgets it at once where the bounds are reached: max_memories, and Limits::max_text for all.
  Effects remember(Memory memory);
  // `used`: by a command, not only to be merged.
  void note_read(std::string_view name, const ShellVariable& variable, bool used);
  static std::size_t size_of(const ShellVariable& variable);
  // Takes what is local to the function out of its changes.
  void drop_locals(Changes& changes, std::uint64_t frame) const;

  // functions and aliases -------------------------------------------------------------------------

  void define(std::uint32_t index, const ShellNode& node);
  // Whether a name is that of a function is kept like a variable, as branches and subshells have
  // it: its value is the mark of the shell that has defined it.
  void mark_own(std::string_view name, bool own);
  bool is_own(const shell::Command& command);
  char shell_mark() const { return static_cast<char>('0' + shells_); }

  // A function that is running.
  struct Activation {
    std::string name = {};
    std::vector<std::string> arguments = {};
    unsigned parallel = 0;
    Changes locals = {};          // and what they were before
    std::size_t frames = 0;       // around it
    ShellVariables carried = {};  // what it had changed where it called itself
    bool recurs = false;          // such a call was not followed
  };

  void call(const shell::Command& command, const std::vector<std::uint32_t>& bodies);
  void call_once(std::uint32_t function, const ShellVariable& arguments);
  // A function that calls itself as before: the call is not followed, but what it may change is
  // not known from then on.
  void end_recursion(Activation& activation);
  bool is_fork_bomb(const shell::Command& command) const;

  // simple commands -------------------------------------------------------------------------------

  void run_simple(const ShellNode& node);

  void run_simple_once(const ShellNode& node);
  static bool is_special_builtin(std::string_view name);
  // Whether an assignment in front of the command is for it alone.
  bool is_temporary(const ShellNode& node, std::string_view name) const;

  void run_assignment(const ShellAssignment& assignment, shell::Command& command);
  // NAME+=value and NAME[subscript]=value.
  ShellValue appended(const ShellAssignment& assignment, ShellValue value);
  // NAME=(elements), behind those that `array` has.
  ShellValue with_elements(const ShellAssignment& assignment, ShellValue array);
  // An index that is not known makes all of them unknown.
  void put_element(ShellValue& array, std::string_view index, ShellText text);
  static bool is_uncertain(const ShellValue& value, std::size_t count);

  void expand_redirections(const ShellNode& node, std::vector<shell::Redirection>& out,
                           shell::Input& input);
  static bool is_descriptor(std::string_view text);
  static void read_from(const shell::Redirection& redirection, shell::Input& input);
  bool redirects_output(const ShellNode& node) const;

  // Completes the command and hands it to the visitor; follows what that gives back.
  shell::Command tell(const ShellNode& node, shell::Command command);

  // Runs a string as a script.
  void follow(shell::Payload payload, const shell::Command& command);

  void run_text(std::string text, const shell::Command& command, bool tolerant);

  // For the substitutions in a string that is expanded.
  void run_expansion_text(const std::string& text);

  // What a command that has been told does to the shell, and what it writes.
  void run_effects(const ShellNode& node, const shell::Command& command);
  static bool writes_elsewhere(const shell::Command& command);
  // command -v NAME, which NAME: what it writes ends in /NAME.
  static bool looks_up(const shell::Command& command);

  bool run_function(const shell::Command& command);

  // An alias's text, with the rest of the command behind it.
  bool run_alias(const ShellNode& node, const shell::Command& command);

  enum class Builtin {
    alias,
    base_name,
    cat,
    change_directory,
    declare,
    compgen,
    directory_name,
    echo,
    eval,
    exec,
    exit,
    hash,
    leave,
    let,
    ls,
    pop_directory,
    printf,
    pwd,
    read,
    set,
    shift,
    silent,
    tee,
    trap,
    unset,
    none,
  };
  // What the walk knows of commands: those that change the shell, and those whose output it can
  // tell.
  static Builtin builtin_of(std::string_view name);

  static bool names_variables(Builtin builtin);
  void run_builtin(const shell::Command& command, std::size_t at);

  void run_eval(const shell::Command& command, std::size_t at);

  // Handlers see what the variables are in the end, too.
  void run_traps();
  // The handler runs later, or never.
  void run_trap(const shell::Command& command, std::size_t at);

  void run_alias_definitions(const shell::Command& command, std::size_t at);

  void set_work_dir(ShellText directory) {
    assign(work_dir_key, scalar_value(std::move(directory)));
  }
  void run_cd(const shell::Command& command, std::size_t at);

  // Within a function, what is declared is its own.
  void make_local(std::string_view name);
  void run_declare(const shell::Command& command, std::size_t at);

  void run_unset(const shell::Command& command, std::size_t at);
  // The variable, or the array of name[subscript], has any value from here on.
  void assign_unknown(std::string_view text);
  // Any operand that can be a name may be assigned anything. That of -C is a command.
  void run_read(const shell::Command& command, std::size_t at);
  // What read takes from an input that is known: of each line, as others may have taken those
  // before it, unless the input is its own.
  void run_known_read(const shell::Command& command, std::size_t at);
  // Adds what the names get from a line; `separators` are those of IFS.
  static void read_line(std::string_view line, const shell::Input& input,
                        std::string_view separators, std::vector<ShellVariable>& names);
  // What compgen expands and runs.
  void run_compgen(const shell::Command& command, std::size_t at);
  // hash -p FILE NAME: from here on, NAME is FILE.
  void run_hash(const shell::Command& command, std::size_t at);
  void set_alias(const std::string& name, std::string value);
  void run_set(const shell::Command& command, std::size_t at);
  void run_shift(const shell::Command& command, std::size_t at);

  // output ----------------------------------------------------------------------------------------

  void write_input(const shell::Input& input);
  void run_cat(const shell::Command& command, std::size_t at);
  // With -d, the operands that are there.
  void run_ls(const shell::Command& command, std::size_t at);
  void run_pwd(const shell::Command& command, std::size_t at);
  // dirname PATH, basename PATH
  void run_path_part(const shell::Command& command, std::size_t at, bool last);
  // A word as it is printed; what it stands for is not always known.
  void write_word(const shell::Word& word);

  void run_echo(const shell::Command& command, std::size_t at);
  // Decodes a string with escapes; false: \c ended the output.
  bool decode_text(std::string_view source, EscapeStyle style, std::string& text) const;

  void run_printf(const shell::Command& command, std::size_t at);
  // printf's format, again and again while there are arguments.
  void print(const shell::Command& command, std::size_t format_at);
  bool print_once(const shell::Command& command, std::string_view format, std::size_t& argument);
  // False: what it prints is not known.
  bool print_argument(const shell::Command& command, char conversion, std::size_t& argument);

  const shell::Options& options_;
  FunctionRef<void(const shell::Visit&)> visit_;
  shell::Outcome outcome_ = {};
  ShellSyntax syntax_ = {};

  ShellVariables variables_ = {};
  std::list<Frame> frames_ = {};
  std::uint64_t last_frame_ = 0;
  std::vector<Choice> choices_ = {};
  bool too_many_choices_ = false;
  std::size_t only_choice_ = 0;  // that is made, where there are too many
  bool widened_ = false;         // a variable has been read as unknown for that
  std::map<std::string, std::string> attributes_ = {};
  // By break and continue, or by return.
  enum class Left : char { nothing, loop, function };
  Left left_ = Left::nothing;
  // Counts functions, aliases and attributes: what changes how commands are read.
  std::uint64_t definitions_ = 0;
  std::list<Recording> recordings_ = {};
  std::map<std::uint32_t, std::list<Memory>> memories_ = {};
  std::size_t memory_bytes_ = 0;
  bool references_ = false;  // declare -n: an assignment may go to another variable than it says
  const ShellValue unknown_value_ = unknown_scalar();

  std::map<std::string, std::vector<std::uint32_t>, std::less<>> functions_ = {};
  // Those that the script itself defines, outside of branches: other functions may call them.
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> later_ = {};
  bool functions_lost_ = false;  // by unset -f of a name that is not known
  unsigned shells_ = 0;          // started by the script, around what runs
  std::map<std::string, std::string> aliases_ = {};
  std::vector<std::string> running_aliases_ = {};
  struct Trap {
    std::string text = {};
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::list<Trap> traps_ = {};
  bool in_traps_ = false;
  std::list<Activation> activations_ = {};

  shell::Input input_ = {};
  Output* output_ = nullptr;                  // where standard output goes, if anybody asks
  const shell::Command* producer_ = nullptr;  // of input_
  std::uint64_t producer_id_ = 0;             // no two commands share one
  KeptCommand* keep_ = nullptr;               // where the next command is kept for the one behind
  bool last_in_shell_ = false;                // the script speaks of lastpipe
  bool pipeline_ = false;
  bool background_ = false;
  bool defined_ = false;
  bool tolerant_ = false;
  bool holes_ = false;
  unsigned parallel_ = 0;  // pipelines and background lists around
  unsigned depth_ = 0;
  unsigned brace_depth_ = 0;
  std::size_t here_begin_ = 0;  // the node that runs
  std::size_t here_end_ = 0;

  std::size_t commands_ = 0;
  std::size_t words_ = 0;
  std::size_t text_bytes_ = 0;
  std::size_t brace_parts_ = 0;
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
