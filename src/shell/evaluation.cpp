// The walker: texts that the shell evaluates by itself.

#include "shell/parser_internal.hpp"
#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Behind the bracket that opens a subscript, or npos.
std::size_t find_subscript(std::string_view text) {
  for (std::size_t open = text.find('['); open != std::string_view::npos;
       open = text.find('[', open + 1))
    if (open > 0 && is_name_char(text[open - 1])) return open + 1;
  return std::string_view::npos;
}

bool has_subscript(std::string_view text) { return find_subscript(text) != std::string_view::npos; }

bool has_expansion(std::string_view text) {
  return text.find_first_of("$`") != std::string_view::npos;
}

bool has_substitution(std::string_view text) {
  return text.find("$(") != std::string_view::npos || text.find('`') != std::string_view::npos;
}

// In a prompt \044 is a dollar sign.
std::string with_octal_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size();) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] == '\\' && next >= '0' && next <= '7')
      decoded += static_cast<char>(read_digits(text, ++at, 3, 8) & 0xff);
    else
      decoded += text[at++];
  }
  return decoded;
}

}  // namespace

inline namespace inner {

void ShellEvaluation::expand(std::string_view text) {
  ShellBudget& budget = walk_.budget;
  if (!budget.charge(text.size()) || !budget.enter(walk_.here_begin)) return;
  walk_.syntax.most_simple = 4 * budget.options.limits.max_written;
  const std::string_view kept = walk_.syntax.keep(std::string(text));
  const auto begin = static_cast<std::uint32_t>(walk_.here_begin);
  const auto end = static_cast<std::uint32_t>(walk_.here_end);
  ShellParser parser(walk_.syntax, budget.options, kept, {begin, end, false}, budget.depth);
  const std::uint32_t word = parser.parse_here_document_body();
  budget.outcome.dialect_dependent |= parser.dialect_dependent();
  if (parser.failed() && parser.error().code == ErrorCode::limit)
    budget.stop(ErrorCode::limit, parser.error().message, walk_.here_begin);
  walk_.scopes.for_each_choice([&] {
    walk_.scopes.open_frame();
    const ShellText made = runner_.expand_single(word);
    walk_.scopes.merge_maybe(walk_.scopes.take_frame());
    // The first bracket is that of what has been evaluated now.
    const std::size_t inner = find_subscript(made.text);
    if (inner == std::string::npos || made.text == kept) return;
    expand_subscript(std::string_view(made.text).substr(inner));
  });
  budget.leave();
}

void ShellEvaluation::expand_if_needed(std::string_view text) {
  if (has_expansion(text)) expand(text);
}

void ShellEvaluation::expand_subscript(std::string_view text) {
  // What variables make of a subscript is evaluated, but only a subscript in it is expanded.
  const bool nested = text.find('[') != text.rfind('[');
  if (has_subscript(text) && (nested || has_substitution(text))) expand_if_needed(text);
}

void ShellEvaluation::expand_lost(std::string_view text) {
  if (!has_substitution(text)) return;
  ShellRunner inner(runner_);
  inner.place.defined = true;
  ShellEvaluation(inner).expand(text);
}

void ShellEvaluation::expand_prompt(std::string_view text) {
  const std::string decoded = with_octal_decoded(text);
  if (decoded != text) expand_if_needed(decoded);
  expand_if_needed(text);
}

void ShellEvaluation::evaluate(std::string_view text) {
  const bool assigns = text.find('=') != std::string_view::npos ||
                       text.find("++") != std::string_view::npos ||
                       text.find("--") != std::string_view::npos;
  expand_if_needed(text);
  for (std::size_t at = 0; at < text.size() && !walk_.budget.stopped();) {
    std::size_t end = at;
    while (end < text.size() && is_name_char(text[end])) ++end;
    if (end > at && is_name_start(text[at])) {
      const std::string_view name = text.substr(at, end - at);
      std::vector<std::string> texts;
      for (const ShellValue& value : walk_.scopes.read(name).values)
        for (const ShellText& element : value.elements)
          if (has_expansion(element.text)) texts.push_back(std::string(element.text));
      for (const std::string& one : texts) expand(one);
      if (assigns) runner_.assign_unknown(name);
    }
    at = std::max(end, at + 1);
  }
}

void ShellEvaluation::expand_words(const shell::Command& command) {
  for (const shell::Word& word : command.words) expand_subscript(word.text);
}

void ShellEvaluation::expand_arguments(const std::vector<ShellText>& arguments) {
  if (walk_.budget.bash())
    for (const ShellText& argument : arguments)
      if (has_subscript(argument.text)) expand_lost(argument.text);
}

void ShellEvaluation::expand_value(std::string_view name, const ShellValue& value) {
  const bool prompt = is_any(name, "PS0", "PS1", "PS2", "PS4", "BASH_ENV", "ENV");
  for (const ShellText& element : value.elements) {
    if (name == "PS4"sv && element.text == unknown_part && !value.environment)
      runner_.run_anything();
    if (prompt)
      expand_prompt(element.text);
    else if (walk_.budget.bash())
      expand_subscript(element.text);
    // declare -l stores it in small letters.
    if (walk_.scopes.has_attribute(name, 'i') && has_subscript(element.text))
      expand_if_needed(in_lower_case(element.text));
    // A reference may be the name of a prompt.
    if (walk_.scopes.uses_references()) expand_lost(element.text);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
