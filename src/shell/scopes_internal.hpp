// The variables of a script: scopes whose changes can be taken back, and the choice of a value.
#pragma once

#include "shell/budget_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Keys among the variables that no script can name.
constexpr std::string_view work_dir_key = ".";
constexpr std::string_view positional_key = "@";

// How a body has been left before its end: by break and continue, or by return.
enum class ShellLeft : char { nothing, loop, function };

// What a body that runs has read of what was there before it.
struct ShellRecording {
  ShellVariables read = {};
  std::uint64_t frame = 0;             // that of the body
  std::size_t outermost = 0xffffffff;  // the first of the running functions that it depends on
  ShellRecording* outer = nullptr;     // of the body around it
};

// Keeps the variables. A frame is a stretch of the walk whose assignments can be taken back: a
// subshell drops them, a branch gives them to merge(), which makes values of them that a variable
// may have.
//
//   x=1; if a; then x=2; else y=3; fi          x: {1}
//     open_frame()   x=2   take_frame() -> {x: 2}, and x is {1} again
//     open_frame()   y=3   take_frame() -> {y: 3}
//     merge({x: 2}, {y: 3})                    x: {2, 1}, y: {3, whatever it was}
class ShellScopes {
 public:
  explicit ShellScopes(ShellBudget& budget) : budget_(budget) {}
  ShellScopes(const ShellScopes&) = delete;
  ShellScopes& operator=(const ShellScopes&) = delete;

  // `keeps`: it may be left in the middle, so values that are overwritten are kept, too.
  std::uint64_t open_frame(bool keeps = false);
  // Takes the frame's assignments back and gives them. `between`, when given, gets the values that
  // later assignments of the frame have overwritten, if they were kept.
  ShellChanges take_frame(ShellChanges* between = nullptr);
  std::size_t frames() const { return frames_.size(); }
  // What was changed in frames behind the first `from`, for each of them.
  void for_each_change(std::size_t from, FunctionRef<void(const std::string&)> visit);
  // A number that no frame and no other caller has got.
  std::uint64_t new_id() { return ++last_id_; }

  // Assigns as a script does: minds what declare and readonly have said.
  void assign(std::string_view name, ShellValue&& value);
  void set(std::string_view name, ShellVariable&& variable);
  void set(const ShellChanges& changes);
  void set(ShellChanges&& changes);
  void set_unknown(std::string_view name);
  // Adds values to those that variables may have.
  void add(std::string_view name, const ShellValue& value);
  void add(std::string_view name, const std::vector<ShellValue>& values);
  void add(const ShellChanges& changes);
  // After branches of which one was taken, or none if `maybe_none`.
  void merge(const std::list<ShellChanges>& branches, bool maybe_none);
  // After commands that may have run or not.
  void merge_maybe(const ShellChanges& changes);

  // The variable, or what it is when the script has not set it. read() notes that it was read.
  ShellVariable& find(std::string_view name);
  ShellVariable& read(std::string_view name);
  static ShellVariable initial(std::string_view name);
  // The value in the present choice.
  const ShellValue& value_of(std::string_view name);
  // Calls `report` once for each combination of the values that it asks for.
  void for_each_choice(FunctionRef<void()> report);
  // True if a variable has been read as unknown, as its values are too many to report each.
  bool widened() const { return choices_->widened; }

  // Attributes are letters: 'r' that it keeps its value, 'i' that what is stored is not what is
  // written.
  bool has_attribute(std::string_view name, char attribute) const;
  void set_attribute(std::string_view name, char attribute);
  // After declare -n, any name may stand for another variable.
  void use_references();
  bool uses_references() const { return references_; }

  // Between the two, `recording` gets what is read of what was there before its frame.
  void begin_recording(ShellRecording& recording);
  void end_recording() { recording_ = recording_->outer; }
  // `by_command`: a command has used the value; otherwise it was only read to be merged.
  void note_read(std::string_view name, const ShellVariable& variable, bool by_command);
  // What is recorded depends on this one of the running functions.
  void note_activation(std::size_t level);
  // A variable with several values, and the one that is being looked at.
  struct Choice {
    std::string name = {};
    std::size_t index = 0;
    std::size_t count = 0;
  };
  // A body has choices of its own.
  void swap_choices(std::list<Choice>& choices) { choices_->made.swap(choices); }

  // The value of what is not known.
  const ShellValue unknown = unknown_scalar();
  ShellLeft left = ShellLeft::nothing;
  // Counts changes to functions, aliases and attributes: they change how commands are read.
  std::uint64_t definitions = 0;

 private:
  static constexpr std::size_t max_reports = 16;       // of one command
  static constexpr std::size_t max_remembered = 4096;  // bytes of one variable

  struct Frame {
    std::uint64_t id = 0;
    ShellChanges former = {};  // without values: it was not there
    bool keeps = false;
    ShellChanges between = {};
  };
  // The choices of the command that is reported now.
  struct Choices {
    enum class Reports : char {
      all,   // combinations of all values
      one,   // the values of one variable; the others are not known
      none,  // variables with several values are not known
    };
    std::list<Choice> made = {};
    Reports reports = Reports::all;
    const Choice* only = nullptr;  // of Reports::one: which
    bool widened = false;
  };

  // The variable; without values where it is not there.
  ShellVariable& place_of(std::string_view name);
  // Each value of each variable, with the others not known.
  void report_each(FunctionRef<void()> report);
  bool next_choice();

  ShellBudget& budget_;
  ShellVariables variables_ = {};
  std::list<Frame> frames_ = {};
  std::uint64_t last_id_ = 0;
  Choices none_ = {};  // of what is reported outside of for_each_choice()
  Choices* choices_ = &none_;
  TextMap attributes_ = {};
  bool references_ = false;
  ShellRecording* recording_ = nullptr;  // the innermost
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
