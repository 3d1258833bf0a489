// The variables of a script: frames whose changes are taken back, branches, choices.

#include "shell/scopes_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A variable knows the frame that has its former value. The first assignment in a frame saves that
// value in the frame; later ones in the same frame do not. So a frame costs as much as it changes:
//
//   variables_   x: {2}, frame 7        frames_   7: former x: {1}, frame 3
//   take_frame()                                  swaps the two
//   variables_   x: {1}, frame 3        result    x: {2}

std::uint64_t ShellScopes::open_frame(bool keeps) {
  frames_.emplace_back();
  frames_.back().keeps = keeps;
  frames_.back().id = new_id();
  return last_id_;
}

ShellChanges ShellScopes::take_frame(ShellChanges* between) {
  std::list<Frame> taken;
  taken.splice(taken.end(), frames_, std::prev(frames_.end()));
  Frame& frame = taken.back();
  if (between != nullptr) *between = std::move(frame.between);
  for (auto& [name, variable] : frame.former) {
    const auto at = variables_.find(name);
    std::swap(variable, at->second);
    if (at->second.values.empty()) variables_.erase(at);
  }
  return std::move(frame.former);
}

void ShellScopes::for_each_change(std::size_t from, FunctionRef<void(const std::string&)> visit) {
  std::size_t level = 0;
  for (const Frame& frame : frames_) {
    if (level++ < from) continue;
    for (const auto& [name, former] : frame.former) visit(name);
  }
}

void ShellScopes::assign(std::string_view name, ShellValue&& value) {
  if (is_name(name)) {
    if (references_ || has_attribute(name, 'i')) value = unknown_scalar();
    if (has_attribute(name, 'r')) return add(name, value);
  }
  ShellVariable variable;
  variable.values.push_back(std::move(value));
  set(name, std::move(variable));
}

ShellVariable& ShellScopes::place_of(std::string_view name) {
  const auto at = variables_.lower_bound(name);
  if (at != variables_.end() && at->first == name) return at->second;
  return variables_.emplace_hint(at, std::string(name), ShellVariable())->second;
}

void ShellScopes::set(std::string_view name, ShellVariable&& variable) {
  ShellVariable& place = place_of(name);
  Frame* const frame = frames_.empty() ? nullptr : &frames_.back();
  variable.late = false;
  if (frame != nullptr) {
    const bool first = place.values.empty() || place.frame != frame->id;
    variable.late = first ? frame->keeps && left != ShellLeft::nothing : place.late;
    if (first || frame->keeps)
      (first ? frame->former : frame->between).emplace_back(std::string(name), std::move(place));
  }
  place = std::move(variable);
  place.frame = frame != nullptr ? frame->id : 0;
}

void ShellScopes::set(const ShellChanges& changes) {
  for (const auto& [name, variable] : changes) set(name, ShellVariable(variable));
}

void ShellScopes::set(ShellChanges&& changes) {
  for (auto& [name, variable] : changes) set(name, std::move(variable));
}

void ShellScopes::set_unknown(std::string_view name) {
  ShellVariable variable;
  variable.values.push_back(ShellValue(unknown));
  set(name, std::move(variable));
}

void ShellScopes::add(std::string_view name, const ShellValue& value) {
  ShellVariable variable = read(name);
  variable.merge(value);
  set(name, std::move(variable));
}

void ShellScopes::add(std::string_view name, const std::vector<ShellValue>& values) {
  for (const ShellValue& value : values) add(name, value);
}

void ShellScopes::add(const ShellChanges& changes) {
  for (const auto& [name, variable] : changes) add(name, variable.values);
}

void ShellScopes::merge(const std::list<ShellChanges>& branches, bool maybe_none) {
  ShellVariables merged;
  // `frame` counts the branches that change a variable.
  for (const ShellChanges& changes : branches)
    for (const auto& [name, variable] : changes) ++merged[name].frame;
  for (const ShellChanges& changes : branches) {
    for (const auto& [name, variable] : changes) {
      ShellVariable& one = merged[name];
      if (one.values.empty() && (maybe_none || one.frame < branches.size()))
        one = ShellVariable(read(name));
      for (const ShellValue& value : variable.values) one.merge(value);
    }
  }
  for (auto& [name, variable] : merged) set(name, std::move(variable));
}

void ShellScopes::merge_maybe(const ShellChanges& changes) {
  std::list<ShellChanges> branches;
  branches.push_back(changes);
  merge(branches, true);
}

ShellVariable& ShellScopes::read(std::string_view name) {
  ShellVariable& variable = find(name);
  note_read(name, variable, false);
  return variable;
}

ShellVariable& ShellScopes::find(std::string_view name) {
  ShellVariable& variable = place_of(name);
  if (variable.values.empty()) variable = initial(name);
  return variable;
}

ShellVariable ShellScopes::initial(std::string_view name) {
  ShellText text;
  text.home = name == "HOME"sv;
  const bool ifs = name == "IFS"sv;
  const bool environment = !text.home && !ifs && name != work_dir_key;
  text.text = environment ? unknown_part : text.home ? "~" : ifs ? " \t\n" : "";
  ShellVariable variable;
  if (name[0] == '+') {
    // A variable of the environment is there or not; see ShellExpander::add_either().
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

bool ShellScopes::has_attribute(std::string_view name, char attribute) const {
  if (attributes_.empty()) return false;
  const auto at = attributes_.find(name);
  return at != attributes_.end() && at->second.find(attribute) != std::string::npos;
}

void ShellScopes::set_attribute(std::string_view name, char attribute) {
  if (!is_name(name) || has_attribute(name, attribute)) return;
  const std::string key(name);
  attributes_[key] += attribute;
  ++definitions;
}

void ShellScopes::use_references() {
  definitions += references_ ? 0 : 1;
  references_ = true;
}

// Choices of values.
//
// `w $x $y` with x in {1, 2} and y in {a, b, c} is reported six times. The list of choices grows
// when a report asks for a variable that is not in it; then it counts like a number, the last
// choice first:
//
//   report    1      2      3      4      5      6
//   x = y =   1 a    1 b    1 c    2 a    2 b    2 c
//
// Behind a limit of reports, only one variable at a time takes its values, and the others are not
// known. Where the budget is scarce, there is one report, in which all of them are not known.

const ShellValue& ShellScopes::value_of(std::string_view name) {
  ShellVariable& variable = find(name);
  note_read(name, variable, true);
  if (references_ && is_name(name)) return unknown;
  if (variable.values.size() == 1) return variable.values[0];
  Choice* choice = nullptr;
  for (Choice& made : choices_->made)
    if (made.name == name) choice = &made;
  if (choice == nullptr) {
    choice = &choices_->made.emplace_back();
    choice->name = std::string(name);
    choice->count = variable.values.size();
  }
  if (choices_->reports == Choices::Reports::none) {
    choices_->widened = true;
    return unknown;
  }
  if (choices_->reports == Choices::Reports::one && choice != choices_->only) return unknown;
  return variable.values[std::min(choice->index, variable.values.size() - 1)];
}

void ShellScopes::for_each_choice(FunctionRef<void()> report) {
  Choices choices;
  Choices* const outer = std::exchange(choices_, &choices);
  if (budget_.is_scarce()) {
    choices.reports = Choices::Reports::none;
    if (!budget_.stopped()) report();
  } else {
    bool more = true;
    for (std::size_t reports = 0; more && reports < max_reports && !budget_.stopped(); ++reports) {
      report();
      more = next_choice();
    }
    if (more) report_each(report);
  }
  choices_ = outer;
}

void ShellScopes::report_each(FunctionRef<void()> report) {
  choices_->reports = Choices::Reports::one;
  for (Choice& choice : choices_->made) choice.index = 0;
  // A report may add choices behind this one.
  for (Choice& choice : choices_->made) {
    choices_->only = &choice;
    for (; choice.index < choice.count && !budget_.stopped(); ++choice.index) report();
  }
}

bool ShellScopes::next_choice() {
  while (!choices_->made.empty()) {
    if (++choices_->made.back().index < choices_->made.back().count) return true;
    choices_->made.pop_back();
  }
  return false;
}

void ShellScopes::begin_recording(ShellRecording& recording) {
  recording.outer = recording_;
  recording_ = &recording;
}

void ShellScopes::note_read(std::string_view name, const ShellVariable& variable, bool by_command) {
  if (recording_ == nullptr) return;
  ShellRecording& recording = *recording_;
  // What was written within the body is no part of what it found.
  if (variable.frame >= recording.frame) return;
  const auto at = recording.read.find(name);
  if (at != recording.read.end()) {
    at->second.used = at->second.used || by_command;
    return;
  }
  // A large variable is noted without values. As no variable is without one, a memory that depends
  // on it is never found again.
  const std::size_t bytes = variable.size();
  const bool large = bytes > max_remembered;
  const std::string key(name);
  ShellVariable& noted = recording.read[key];
  if (!large) noted = ShellVariable(variable);
  noted.frame = variable.frame;
  noted.used = by_command;
  budget_.charge(large ? 1 : bytes);
}

void ShellScopes::note_activation(std::size_t level) {
  if (recording_ != nullptr) recording_->outermost = std::min(recording_->outermost, level);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
