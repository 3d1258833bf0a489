// Programs that are refused for their name, or for what they are asked.
//
// refused_table.cpp has a row for each. A program is refused when it gets an option that the row
// lists, or an operand that it lists and no excuse: `swapon -s /dev/sda1` only shows something.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

bool is_root_among(std::string_view users) {
  while (!users.empty()) {
    const std::string_view user = take_part(users, ',');
    if (is_any(user, "root", "0")) return true;
  }
  return false;
}

// True if kill sends a signal to the process 1, or to all (-1). The signal 0 only asks. Shells take
// the -1 of `kill -1` for a signal, other programs need not.
bool kills_all(const Form& form) {
  if (form.size == 2 && form.words[1].text == "-1"sv) return true;
  bool has_signal = false;
  for (std::size_t i = 1; i < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    const bool option = !has_signal && text.size() > 1 && text[0] == '-';
    has_signal = true;
    if (is_any(text, "-l", "-L") || starts_with(text, "--list"sv)) return false;
    if (is_any(text, "-s", "-n", "--signal")) {
      if (++i < form.size && form.words[i].text == "0"sv) return false;
    } else if (option) {
      if (is_any(text, "-0", "--signal=0")) return false;
    } else if (is_any(text, "1", "-1")) {
      return true;
    }
  }
  return false;
}

// Compares what a program is asked to do with its row.
class RefusedRequest {
 public:
  RefusedRequest(Subject& subject, const Form& form, const RefusedProgram& program)
      : subject_(subject), form_(form), program_(program) {}

  bool is_refused() {
    refused_ =
        program_.by_name() || (program_.has(RefusedProgram::all_processes) && kills_all(form_));
    for (Arguments each(form_, program_.syntax, Order::options_anywhere); each.next();) {
      if (each.is_option)
        take_option(each.option, each.part);
      else
        take_operand(each.part);
    }
    if (ends_processes() && !named_) refused_ = true;
    return surely_ || (refused_ && !excused_);
  }

 private:
  bool ends_processes() const { return program_.has(RefusedProgram::unnamed_processes); }
  void take_option(std::string_view option, const Part& argument) {
    surely_ |= lists_option(program_.options, option) ||
               (ends_processes() && abbreviates(option, "u", "U", "euid", "uid", "user") &&
                is_root_among(argument.text));
    excused_ |= lists_option(program_.excuses, option);
  }
  void take_operand(const Part& operand) {
    refused_ |= is_refused_operand(operand);
    excused_ |= operands_ < 2 && program_.excusing_words.has(operand.text);
    // A pattern for everything names nothing.
    named_ |= operand.text.find_first_not_of(".*^$+?") != std::string_view::npos;
    ++operands_;
  }
  bool is_refused_operand(const Part& operand) {
    if (program_.has(RefusedProgram::any_operand)) return true;
    if (program_.has(RefusedProgram::any_assignment) &&
        operand.text.find('=') != std::string_view::npos)
      return true;
    if (program_.has(RefusedProgram::any_device) &&
        is_device(subject_.path_of(operand), operand.glob()))
      return true;
    return operands_ == 0 && program_.words.has(operand.text.substr(0, operand.text.find(' ')));
  }

  Subject& subject_;
  const Form& form_;
  const RefusedProgram& program_;

  bool refused_ = false;  // but it may be excused
  bool surely_ = false;   // whatever else it is asked
  bool excused_ = false;
  bool named_ = false;  // processes are named
  std::size_t operands_ = 0;
};

}  // namespace

inline namespace inner {

void check_refused(Subject& subject, const Form& form, std::string_view name) {
  RefusedProgram program;
  if (!find_refused(starts_with(name, "mkfs"sv) ? "mkfs"sv : name, program)) return;
  if (!subject.judged.wants(program.rule)) return;
  if (RefusedRequest(subject, form, program).is_refused())
    subject.refuse(program.rule, form.words[0], form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
