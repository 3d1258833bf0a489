// The limits of a walk, what commands print, and the values of variables.
//
//   limit          charged for                            what it stops
//   max_depth      constructs, calls, strings in strings  recursion of the parser and the walker
//   max_written    simple commands of the text            (by the parser)
//   max_commands   reports                                calls with ever new values
//   max_words      words of reports; parts of braces      {1..99999}, $@ $@ $@
//   max_text       bytes of words, values and outputs     x=$x$x; and work that is no word

#include "shell/budget_internal.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A script of a few bytes can ask for much: {1..9}{1..9}{1..9}, x=$x$x, a loop in a loop. Each step
// that is not paid by the script's own length is charged here, so that memory is bounded and time
// is linear in the script and in shell::Limits.

void ShellBudget::stop(ErrorCode code, std::string_view message, std::size_t at) {
  if (stopped()) return;
  outcome.complete = false;
  outcome.error = make_error(code, "%", {message}, at);
}

bool ShellBudget::charge(std::size_t bytes, std::size_t at) {
  text_bytes_ += bytes;
  if (!out_of_text()) return true;
  over_limit(options.limits.max_text, "bytes of words"sv, at);
  return false;
}

void ShellBudget::count_word(std::size_t at) {
  if (++words_ > options.limits.max_words) over_limit(options.limits.max_words, "words"sv, at);
}

bool ShellBudget::count_command(std::size_t at) {
  if (++commands_ <= options.limits.max_commands) return true;
  over_limit(options.limits.max_commands, "commands"sv, at);
  return false;
}

bool ShellBudget::is_scarce() const {
  const shell::Limits& limits = options.limits;
  return commands_ > limits.max_commands / 4 || words_ > limits.max_words / 2 ||
         text_bytes_ > limits.max_text / 2;
}

bool ShellBudget::enter(std::size_t at) {
  if (depth < options.limits.max_depth) {
    ++depth;
    return true;
  }
  stop(ErrorCode::limit, too_deep(options), at);
  return false;
}

void ShellPrinted::write(std::string_view bytes) {
  if (!records()) return;
  text += bytes;
  budget_->add_bytes(bytes.size());
}

void ShellPrinted::write_unknown() {
  // One unknown part says as much as two.
  if (text.empty() || text.back() != '\0') write(unknown_part);
}

void ShellPrinted::append(const ShellText& other) {
  std::string_view bytes = other.text;
  if (starts_with(bytes, unknown_part)) {
    write_unknown();
    bytes.remove_prefix(1);
  }
  write(bytes);
  mark(other.assumed, other.glob, other.home);
}

void ShellPrinted::forget(std::size_t size) {
  if (text.size() <= size) return;
  text.resize(size);
  write_unknown();
}

bool ShellValue::is_uncertain(std::size_t count) const {
  for (std::size_t i = 0; i < count && i < elements.size(); ++i)
    if (elements[i].split || (!array && !elements[i].known())) return true;
  return false;
}

std::size_t ShellValue::put(std::string_view subscript, ShellText text) {
  long long number = 0;
  if (!read_decimal(subscript, number) || number < 0 || is_uncertain(elements.size())) {
    *this = unknown_array();
    return 0;
  }
  const auto count = static_cast<long long>(elements.size());
  if (indexes.empty() && number != count)
    for (long long i = 0; i < count; ++i) indexes.push_back(+i);
  const std::size_t passed = indexes.size();
  if (indexes.empty() && number == count) {
    elements.push_back(std::move(text));
    return passed;
  }
  const auto at = std::lower_bound(indexes.begin(), indexes.end(), number);
  if (at != indexes.end() && *at == number) {
    elements[static_cast<std::size_t>(at - indexes.begin())] = std::move(text);
    return passed;
  }
  indexes.push_back(+number);
  elements.push_back(std::move(text));
  for (std::size_t i = passed; i > 0 && indexes[i] < indexes[i - 1]; --i) {
    std::swap(indexes[i], indexes[i - 1]);
    std::swap(elements[i], elements[i - 1]);
  }
  return passed;
}

void ShellVariable::merge(const ShellValue& value) {
  for (const ShellValue& known : values)
    if (known == value) return;
  const bool fits = values.size() < max_values;
  if (!fits) values.clear();
  values.push_back(fits ? ShellValue(value) : unknown_scalar());
}

std::size_t ShellVariable::size() const {
  std::size_t bytes = 8;
  for (const ShellValue& value : values)
    for (const ShellText& element : value.elements) bytes += 8 + element.text.size();
  return bytes;
}

bool read_integer(std::string_view text, long long& value) {
  if (text.empty() || text.size() > 9) return false;
  if (text[0] == '+') text.remove_prefix(1);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

bool is_padded(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0';
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
