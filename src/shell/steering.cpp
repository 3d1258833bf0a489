// The walker: variables that steer programs, reported however they are set.

#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool ShellSteering::steers(std::string_view name) const {
  const auto steers = walk_.budget.options.steers_programs;
  return steers != nullptr && steers(name);
}

void ShellSteering::report(std::string_view name, const ShellValue& value) {
  if (!steers(name)) return;
  if (value.elements.empty()) report_text(name, {});
  for (const ShellText& element : value.elements) report_text(name, element.text);
}

void ShellSteering::report_text(std::string_view name, std::string_view text) {
  if (walk_.budget.stopped()) return;
  walk_.has_start_files = walk_.has_start_files || is_any(name, "BASH_ENV", "ENV");
  ShellNode here;
  here.begin = static_cast<std::uint32_t>(walk_.here_begin);
  here.end = static_cast<std::uint32_t>(walk_.here_end);
  shell::Assignment assignment;
  assignment.name = std::string(name);
  assignment.value.text = std::string(text);
  assignment.value.begin = here.begin;
  assignment.value.end = here.end;
  shell::Command command;
  command.compound = name == unknown_part;
  command.input = *runner_.place.input;
  command.assignments.push_back(std::move(assignment));
  ShellRunner apart(runner_);
  apart.place.keep = nullptr;
  apart.report(here, command);
}

void ShellSteering::store(std::string_view name, const ShellValue& value) {
  walk_.has_start_files = walk_.has_start_files || is_any(name, "BASH_ENV", "ENV");
  // declare -l stores it in small letters.
  if (walk_.scopes.has_attribute(name, 'i') && steers(name))
    for (const ShellText& element : value.elements) report_text(name, in_lower_case(element.text));
  if (walk_.scopes.uses_references()) store_by_reference(value);
}

void ShellSteering::note_reference(std::string_view name) {
  constexpr std::size_t most = 8;
  if (runner_.place.defined || !walk_.scopes.uses_references()) return;
  if (has_nul(name)) name = unknown_part;
  if (name != unknown_part && !steers(name)) return;
  for (const std::string& known : walk_.references)
    if (known == name) return;
  if (walk_.references.size() >= most) name = unknown_part;
  walk_.references.push_back(std::string(name));
  ++walk_.scopes.definitions;
}

void ShellSteering::store_by_reference(const ShellValue& value) {
  for (const ShellText& element : value.elements)
    if (element.known()) note_reference(element.text);
  const std::vector<std::string> references = walk_.references;
  for (const std::string& name : references)
    for (const ShellText& element : value.elements) report_text(name, element.text);
}

void ShellSteering::report_added(std::string_view name, const ShellText& text) {
  const ShellValue value = scalar_value(text);
  report(name, value);
  if (walk_.scopes.uses_references()) store_by_reference(value);
}

void ShellSteering::find_start_files(shell::Command& command) const {
  if (!walk_.has_start_files || runner_.place.starting) return;
  for (const std::string_view name : {"BASH_ENV"sv, "ENV"sv}) {
    const ShellValue& value = walk_.scopes.value_of(name);
    if (value.environment || value.unset || value.elements.empty()) continue;
    if (value.elements[0].text.empty()) continue;
    shell::Assignment start;
    start.name = std::string(name);
    static_cast<ShellText&>(start.value) = value.elements[0];
    start.value.begin = command.begin;
    start.value.end = command.end;
    command.start_files.push_back(std::move(start));
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
