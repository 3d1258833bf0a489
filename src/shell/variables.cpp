// The walker: variables, the values they may have, and branches that change them.

#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::open_frame(bool keeps) {
  Frame frame;
  frame.keeps = keeps;
  frame.id = ++last_frame_;
  frames_.push_back(std::move(frame));
}

ShellWalker::Changes ShellWalker::take_frame(Changes* between) {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (between != nullptr) *between = std::move(frame.between);
  Changes changes;
  for (auto& [name, former] : frame.former) {
    const auto at = variables_.find(name);
    changes.emplace_back(name, std::move(at->second));
    if (former)
      at->second = std::move(*former);
    else
      variables_.erase(at);
  }
  return changes;
}

void ShellWalker::assign(std::string_view name, ShellValue value) {
  if (is_name(name)) {
    run_value(name, value);
    if (references_ || has_attribute(name, 'i')) value = scalar_value(unknown_text());
    if (has_attribute(name, 'r')) return add_value(name, std::move(value));
  }
  ShellVariable variable;
  variable.values.push_back(std::move(value));
  set_variable(name, std::move(variable));
}

bool ShellWalker::has_attribute(std::string_view name, char attribute) const {
  if (attributes_.empty()) return false;
  const auto at = attributes_.find(name);
  return at != attributes_.end() && at->second.find(attribute) != std::string::npos;
}

void ShellWalker::set_attribute(std::string_view name, char attribute) {
  if (!is_name(name) || has_attribute(name, attribute)) return;
  attributes_[std::string(name)] += attribute;
  ++definitions_;
}

void ShellWalker::run_value(std::string_view name, const ShellValue& value) {
  const bool expanded = name == "PS4" || name == "BASH_ENV" || name == "ENV";
  for (const ShellText& element : value.elements)
    if (has_substitution(element.text) && (expanded || (bash() && has_subscript(element.text))))
      run_expansion_text(element.text);
}

void ShellWalker::set_variable(std::string_view name, ShellVariable variable) {
  auto at = variables_.find(name);
  const std::uint64_t frame = frames_.empty() ? 0 : frames_.back().id;
  if (at == variables_.end()) {
    if (!frames_.empty()) frames_.back().former.emplace_back(std::string(name), std::nullopt);
    at = variables_.emplace(std::string(name), ShellVariable()).first;
  } else if (frame != 0 && at->second.frame != frame) {
    frames_.back().former.emplace_back(std::string(name), std::move(at->second));
  } else if (frame != 0 && frames_.back().keeps) {
    frames_.back().between.emplace_back(std::string(name), std::move(at->second));
  }
  at->second = std::move(variable);
  at->second.frame = frame;
}

void ShellWalker::set_unknown(std::string_view name) {
  ShellVariable variable;
  variable.values.push_back(scalar_value(unknown_text()));
  set_variable(name, std::move(variable));
}

void ShellWalker::add_values(const Changes& changes) {
  for (const auto& [name, variable] : changes)
    for (const ShellValue& value : variable.values) add_value(name, value);
}

void ShellWalker::add_value(std::string_view name, ShellValue value) {
  ShellVariable variable = variable_of(name);
  merge_value(variable, std::move(value));
  set_variable(name, std::move(variable));
}

void ShellWalker::merge_value(ShellVariable& variable, ShellValue value) {
  if (std::find(variable.values.begin(), variable.values.end(), value) != variable.values.end())
    return;
  if (variable.values.size() < max_values)
    variable.values.push_back(std::move(value));
  else
    variable.values.assign(1, scalar_value(unknown_text()));
}

void ShellWalker::merge(std::vector<Changes> branches, bool maybe_none) {
  std::map<std::string, std::vector<const ShellVariable*>> changed;
  for (const Changes& changes : branches)
    for (const auto& [name, variable] : changes) changed[name].push_back(&variable);
  for (const auto& [name, variables] : changed) {
    ShellVariable merged;
    if (maybe_none || variables.size() < branches.size()) merged = variable_of(name);
    for (const ShellVariable* variable : variables)
      for (const ShellValue& value : variable->values) merge_value(merged, value);
    set_variable(name, std::move(merged));
  }
}

ShellVariable& ShellWalker::variable_of(std::string_view name) {
  ShellVariable& variable = find_variable(name);
  note_read(name, variable, false);
  return variable;
}

ShellVariable& ShellWalker::find_variable(std::string_view name) {
  auto at = variables_.find(name);
  if (at == variables_.end())
    at = variables_.emplace(std::string(name), initial_variable(name)).first;
  return at->second;
}

ShellVariable ShellWalker::initial_variable(std::string_view name) {
  ShellText text = unknown_text();
  bool environment = true;
  if (name == "IFS") text.text = " \t\n";
  if (name == "HOME") text.text = "~";
  if (name == "HOME") text.home = true;
  if (name == work_dir_key) text.text.clear();
  if (name == "IFS" || name == "HOME" || name == work_dir_key) environment = false;
  ShellVariable variable;
  if (name[0] == '+') {
    // Whether a variable of the environment is there; see add_either().
    variable.values.resize(2);
    variable.values[1].unset = true;
    return variable;
  }
  variable.values.push_back(scalar_value(std::move(text)));
  variable.values[0].environment = environment;
  if (name == positional_key) variable.values[0] = array_value();
  return variable;
}

const ShellValue& ShellWalker::value_of(std::string_view name) {
  ShellVariable& variable = find_variable(name);
  note_read(name, variable, true);
  if (references_ && is_name(name)) return unknown_value_;
  if (variable.values.size() == 1) return variable.values[0];
  std::size_t i = 0;
  while (i < choices_.size() && choices_[i].name != name) ++i;
  if (i == choices_.size()) choices_.push_back({std::string(name), 0, variable.values.size()});
  widened_ = widened_ || only_choice_ == no_index;
  if (too_many_choices_ && i != only_choice_) return unknown_value_;
  return variable.values[std::min(choices_[i].index, variable.values.size() - 1)];
}

void ShellWalker::for_each_choice(FunctionRef<void()> tell) {
  std::vector<Choice> outer;
  outer.swap(choices_);
  const bool outer_many = std::exchange(too_many_choices_, false);
  const std::size_t outer_only = std::exchange(only_choice_, 0);
  const bool outer_widened = std::exchange(widened_, false);
  // A script that costs much is told with less detail, so that its end is reached.
  const shell::Limits& limits = options_.limits;
  const bool widens = commands_ > limits.max_commands / 4 || words_ > limits.max_words / 2 ||
                      text_bytes_ > limits.max_text / 2;
  std::size_t told = widens ? max_choices : 0;
  bool more = true;
  for (; more && told < max_choices && !stopped(); ++told) {
    tell();
    more = next_choice();
  }
  too_many_choices_ = more;
  if (widens && !stopped()) {
    only_choice_ = no_index;
    tell();
  } else if (more) {
    // Each value of each variable, with the others not known.
    for (Choice& choice : choices_) choice.index = 0;
    for (only_choice_ = 0; only_choice_ < choices_.size(); ++only_choice_)
      for (std::size_t i = 0; i < choices_[only_choice_].count && !stopped(); ++i) {
        choices_[only_choice_].index = i;
        tell();
      }
  }
  choices_.swap(outer);
  too_many_choices_ = outer_many;
  only_choice_ = outer_only;
  widened_ = outer_widened;
}

bool ShellWalker::next_choice() {
  while (!choices_.empty()) {
    if (++choices_.back().index < choices_.back().count) return true;
    choices_.pop_back();
  }
  return false;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
