// Programs that are refused for their name, or for what they are asked.
//
// refused_programs has a row for each. A program is refused when it gets an option that the row
// lists, or an operand that it lists and no excuse: `swapon -s /dev/sda1` only shows something.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

Syntax syntax_of(std::string_view column) {
  Syntax syntax;
  syntax.letters = take_part(column, ' ');
  syntax.longs = column;
  return syntax;
}

// The number of an entry in a list with blanks between them; npos: none.
std::size_t index_of(std::string_view list, std::string_view entry) {
  for (std::size_t i = 0; !list.empty(); ++i)
    if (take_part(list, ' ') == entry) return i;
  return std::string_view::npos;
}

// The columns of a program in a table that is a text; empty: it is not there.
std::string_view row_of(std::string_view table, std::string_view name) {
  while (!table.empty()) {
    const std::string_view line = take_part(table, '\n');
    if (line.size() > name.size() && line[name.size()] == '|' && starts_with(line, name))
      return line.substr(name.size() + 1);
  }
  return {};
}

// The number of the rule with a name; rule_count: none.
std::size_t rule_called(std::string_view name) {
  std::string_view rest = all_rule_texts;
  for (std::size_t i = 0; i < rule_count; ++i) {
    if (take_part(rest, '\0') == name) return i;
    for (int others = 0; others < 3; ++others) take_part(rest, '\0');
  }
  return rule_count;
}

bool is_root_among(std::string_view users) {
  while (!users.empty()) {
    const std::string_view user = take_part(users, ',');
    if (has_entry("root 0"sv, user)) return true;
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
    if (has_entry("-l -L"sv, text) || starts_with(text, "--list"sv)) return false;
    if (has_entry("-s -n --signal"sv, text)) {
      if (++i < form.size && form.words[i].text == "0"sv) return false;
    } else if (option) {
      if (has_entry("-0 --signal=0"sv, text)) return false;
    } else if (has_entry("1 -1"sv, text)) {
      return true;
    }
  }
  return false;
}

// Compares what a program is asked to do with its row in refused_programs. The row's columns are
// read by the constructor, the arguments of the program by is_refused().
class Request {
 public:
  Request(Subject& subject, const Form& form, std::string_view row)
      : subject_(subject),
        form_(form),
        syntax_(syntax_of(take_part(row, '|'))),
        options_(take_part(row, '|')),
        words_(take_part(row, '|')),
        excuses_(row) {}

  bool is_refused() {
    if (words_ == "@kill"sv) refused_ = kills_all(form_);
    if (options_.empty() && words_.empty()) refused_ = true;
    for (Arguments each(form_, syntax_, Order::options_anywhere); each.next();) {
      if (each.is_option)
        take_option(each.option, each.part);
      else
        take_operand(each.part);
    }
    if (ends_processes() && !named_) refused_ = true;
    return surely_ || (refused_ && !excused_);
  }

 private:
  bool ends_processes() const { return words_ == "@processes"sv; }
  void take_option(std::string_view option, const Part& argument) {
    surely_ |= lists_option(options_, option) ||
               (ends_processes() && lists_option("u U euid uid user"sv, option) &&
                is_root_among(argument.text));
    excused_ |= lists_option(excuses_, option);
  }
  void take_operand(const Part& operand) {
    refused_ |= is_refused_operand(operand);
    excused_ |= operands_ < 2 && has_entry(excuses_, concat("+%", {operand.text}));
    // A pattern for everything names nothing.
    named_ |= operand.text.find_first_not_of(".*^$+?") != std::string_view::npos;
    ++operands_;
  }
  bool is_refused_operand(const Part& operand) {
    const std::string_view first_word = operand.text.substr(0, operand.text.find(' '));
    for (std::string_view words = words_; !words.empty();) {
      const std::string_view word = take_part(words, ' ');
      if (word == "/dev"sv) {
        if (is_device(subject_.path_of(operand), operand.glob())) return true;
      } else if (word == "="sv) {
        if (operand.text.find('=') != std::string_view::npos) return true;
      } else if (word == "*"sv || (operands_ == 0 && word == first_word)) {
        return true;
      }
    }
    return false;
  }

  Subject& subject_;
  const Form& form_;
  // The columns of the row.
  const Syntax syntax_;
  const std::string_view options_;
  const std::string_view words_;
  const std::string_view excuses_;

  bool refused_ = false;  // but it may be excused
  bool surely_ = false;   // whatever else it is asked
  bool excused_ = false;
  bool named_ = false;  // processes are named
  std::size_t operands_ = 0;
};

}  // namespace

inline namespace inner {

bool find_file_program(std::string_view name, FileProgram& program) {
  std::string_view row = row_of(file_programs, name);
  if (starts_with(row, "="sv)) row = row_of(file_programs, row.substr(1));
  if (row.empty()) return false;
  const std::size_t kind = index_of(operand_kinds, take_part(row, '|'));
  if (kind == std::string_view::npos) return false;
  program.operands = static_cast<FileProgram::Operands>(kind);
  program.syntax = syntax_of(take_part(row, '|'));
  program.reads = take_part(row, '|');
  program.writes = take_part(row, '|');
  program.directory = take_part(row, '|');
  program.modes = row;
  return true;
}

void check_refused(Subject& subject, const Form& form, std::string_view name) {
  std::string_view row = row_of(refused_programs, starts_with(name, "mkfs"sv) ? "mkfs" : name);
  if (row.empty()) return;
  const std::size_t number = rule_called(take_part(row, '|'));
  const auto rule = static_cast<Rule>(number);
  if (number == rule_count || !subject.judged.wants(rule)) return;
  if (Request(subject, form, row).is_refused()) subject.refuse(rule, form.words[0], form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
