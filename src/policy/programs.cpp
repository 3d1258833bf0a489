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

// True if a clause of setcap gives what makes root: cap_setuid+ep, all=eip, =p. Without names, it
// is about all capabilities.
bool gives_root(std::string_view clause) {
  const std::size_t operation = clause.find_first_of("+-=");
  if (operation == std::string_view::npos) return false;
  bool adds = false, gives = false;
  for (const char c : clause.substr(operation)) {
    if (c == '+' || c == '-' || c == '=')
      adds = c != '-';
    else
      gives |= adds && "eipEIP"sv.find(c) != std::string_view::npos;
  }
  if (!gives || operation == 0) return gives;
  const std::string names = in_lower_case(clause.substr(0, operation));
  std::string_view rest = names;
  while (!rest.empty()) {
    std::string_view name = take_part(rest, ',');
    if (starts_with(name, "cap_"sv)) name.remove_prefix(4);
    if (powerful_capabilities.has(name)) return true;
  }
  return false;
}

// The same for what setcap takes: clauses with blanks between them. What it reads, or what is not
// known, may be anything.
bool makes_root(std::string_view capabilities, bool first) {
  if (first && (capabilities == "-"sv || is_unknown(capabilities))) return true;
  while (!capabilities.empty())
    if (gives_root(take_part(capabilities, ' '))) return true;
  return false;
}

bool has_powerful_group(std::string_view groups) {
  while (!groups.empty())
    if (powerful_groups.has(take_part(groups, ','))) return true;
  return false;
}

// True if it only says what it is: `sudo --version`.
bool only_tells(const Form& form, Rule rule) {
  if (form.size != 2) return false;
  const std::string_view asked = form.words[1].text;
  return is_any(asked, "--help", "--version") || (rule == Rule::sudo && is_any(asked, "-V", "-h"));
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
    if (program_.has(RefusedProgram::last_device) && last_.word && names_device(last_))
      refused_ = true;
    return surely_ || (refused_ && !excused_ && needed_);
  }

 private:
  bool ends_processes() const { return program_.has(RefusedProgram::unnamed_processes); }
  void take_option(std::string_view option, const Part& argument) {
    surely_ |= lists_option(program_.options, option) ||
               (ends_processes() && abbreviates(option, "u", "U", "euid", "uid", "user") &&
                is_root_among(argument.text));
    excused_ |= lists_option(program_.excuses, option);
    needed_ |= lists_option(program_.needs, option);
    refused_ |= lists_option(program_.numbers, option) && argument.text == "0"sv;
    refused_ |= lists_option(program_.groups, option) && has_powerful_group(argument.text);
  }
  void take_operand(const Part& operand) {
    last_ = operand;
    refused_ |= is_refused_operand(operand);
    surely_ |= program_.has(RefusedProgram::capabilities) &&
               makes_root(operand.text, operands_ == 0 && !excused_);
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
    if (program_.has(RefusedProgram::any_device) && names_device(operand)) return true;
    if (program_.has(RefusedProgram::root_user) && is_any(operand.text, "root", "0")) return true;
    if ((program_.has(RefusedProgram::root_group) ||
         (program_.has(RefusedProgram::joined_group) && operands_ > 0)) &&
        powerful_groups.has(operand.text))
      return true;
    return operands_ == 0 && program_.words.has(operand.text.substr(0, operand.text.find(' ')));
  }

  bool names_device(const Part& operand) {
    return is_device(subject_.path_of(operand), operand.glob());
  }

  Subject& subject_;
  const Form& form_;
  const RefusedProgram& program_;

  Part last_ = {};        // operand
  bool refused_ = false;  // but it may be excused
  bool surely_ = false;   // whatever else it is asked
  bool excused_ = false;
  bool needed_ = program_.needs.empty();
  bool named_ = false;  // processes are named
  std::size_t operands_ = 0;
};

}  // namespace

inline namespace inner {

void check_refused(Subject& subject, const Form& form, std::string_view name) {
  RefusedProgram program;
  // mkfs.ext4 and fsck.ext4 are rows without the kind.
  const bool formats = starts_with(name, "mkfs"sv), repairs = starts_with(name, "fsck."sv);
  if (!find_refused(formats ? "mkfs"sv : repairs ? "fsck"sv : name, program)) return;
  if (!subject.judged.wants(program.rule) || only_tells(form, program.rule)) return;
  if (RefusedRequest(subject, form, program).is_refused())
    subject.refuse(program.rule, form.words[0], form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
