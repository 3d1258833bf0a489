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
  for (auto& [name, variable] : frame.former) {
    const auto at = variables_.find(name);
    std::swap(variable, at->second);
    if (at->second.values.empty()) variables_.erase(at);
  }
  return std::move(frame.former);
}

void ShellWalker::assign(std::string_view name, ShellValue value) {
  if (is_name(name)) {
    run_value(name, value);
    if (references_ || has_attribute(name, 'i')) value = unknown_scalar();
    if (has_attribute(name, 'r')) return add_value(name, std::move(value));
  }
  ShellVariable variable;
  variable.values.push_back(std::move(value));
  set_variable(name, std::move(variable));
}

bool ShellWalker::has_attribute(std::string_view name, char attribute) const {
  if (attributes_.empty()) return false;
  const auto at = attributes_.find(std::string(name));
  return at != attributes_.end() && at->second.find(attribute) != std::string::npos;
}

void ShellWalker::set_attribute(std::string_view name, char attribute) {
  if (!is_name(name) || has_attribute(name, attribute)) return;
  const std::string key(name);
  attributes_[key] += attribute;
  ++definitions_;
}

void ShellWalker::run_value(std::string_view name, const ShellValue& value) {
  const bool expanded = has_entry("PS4 BASH_ENV ENV"sv, name);
  for (const ShellText& element : value.elements)
    if (has_substitution(element.text) && (expanded || (bash() && has_subscript(element.text))))
      run_expansion_text(element.text);
}

void ShellWalker::set_variable(std::string_view name, ShellVariable variable) {
  const std::string key(name);
  ShellVariable& place = variables_[key];
  Frame* const frame = frames_.empty() ? nullptr : &frames_.back();
  variable.late = false;
  if (frame != nullptr) {
    const bool first = place.values.empty() || place.frame != frame->id;
    variable.late = first ? frame->keeps && left_ != Left::nothing : place.late;
    if (first || frame->keeps)
      (first ? frame->former : frame->between).emplace_back(key, std::move(place));
  }
  place = std::move(variable);
  place.frame = frame != nullptr ? frame->id : 0;
}

void ShellWalker::set_unknown(std::string_view name) {
  ShellVariable variable;
  variable.values.push_back(ShellValue(unknown_value_));
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
  for (const ShellValue& known : variable.values)
    if (known == value) return;
  if (variable.values.size() == max_values) {
    variable.values.clear();
    value = unknown_scalar();
  }
  variable.values.push_back(std::move(value));
}

void ShellWalker::merge(const std::list<Changes>& branches, bool maybe_none) {
  ShellVariables merged;
  // `frame` counts the branches that change a variable.
  for (const Changes& changes : branches)
    for (const auto& [name, variable] : changes) ++merged[name].frame;
  for (const Changes& changes : branches) {
    for (const auto& [name, variable] : changes) {
      ShellVariable& one = merged[name];
      if (one.values.empty() && (maybe_none || one.frame < branches.size()))
        one = ShellVariable(variable_of(name));
      for (const ShellValue& value : variable.values) merge_value(one, value);
    }
  }
  for (auto& [name, variable] : merged) set_variable(name, std::move(variable));
}

ShellVariable& ShellWalker::variable_of(std::string_view name) {
  ShellVariable& variable = find_variable(name);
  note_read(name, variable, false);
  return variable;
}

ShellVariable& ShellWalker::find_variable(std::string_view name) {
  const std::string key(name);
  ShellVariable& variable = variables_[key];
  if (variable.values.empty()) variable = initial_variable(name);
  return variable;
}

ShellVariable ShellWalker::initial_variable(std::string_view name) {
  ShellText text;
  text.home = name == "HOME"sv;
  const bool ifs = name == "IFS"sv;
  const bool environment = !text.home && !ifs && name != work_dir_key;
  text.text = environment ? std::string_view("\0", 1) : text.home ? "~" : ifs ? " \t\n" : "";
  ShellVariable variable;
  if (name[0] == '+') {
    // Whether a variable of the environment is there; see add_either().
    variable.values.push_back(ShellValue());
    variable.values.push_back(ShellValue());
    variable.values[1].unset = true;
    return variable;
  }
  variable.values.push_back(scalar_value(std::move(text)));
  variable.values[0].environment = environment;
  if (name == positional_key) variable.values[0] = empty_array();
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
