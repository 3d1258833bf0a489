// The walker: functions and aliases.

#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::define(std::uint32_t index, const ShellNode& node) {
  outcome_.definitions.push_back({std::string(node.name), false, node.begin, node.end});
  const std::string name(node.name);
  std::vector<std::uint32_t>& bodies = functions_[name];
  bool defined = false;
  for (const std::uint32_t body : bodies) defined = defined || body == index;
  if (!defined) {
    bodies.push_back(std::uint32_t{index});
    ++definitions_;
  }
  // In a function, a return before it may have left it out.
  mark_own(name, activations_.empty());
  if (size(node.nodes) == 0) return;
  // The body as it stands; when the function is called, it is told again with its arguments.
  // bash calls this one itself, with what it did not find.
  const bool outer = std::exchange(defined_, node.name != "command_not_found_handle"sv);
  Output* const output = std::exchange(output_, nullptr);
  shell::Input input;
  std::swap(input, input_);
  open_frame();
  assign(positional_key, unknown_array());
  run(item(node.nodes, 0));
  take_frame();
  std::swap(input, input_);
  output_ = output;
  defined_ = outer;
}

void ShellWalker::mark_own(std::string_view name, bool own) {
  // A POSIX shell finds these before a function; a name with a slash is a path to it.
  if (is_special_builtin(name) || name.find('/') != std::string_view::npos) return;
  ShellVariable variable;
  variable.values.push_back(scalar_value({std::string(1, own ? shell_mark() : ' ')}));
  set_variable(concat({"(", name}), std::move(variable));
}

bool ShellWalker::is_own(const shell::Command& command) {
  if (functions_lost_ || command.words.empty()) return false;
  const std::string& name = command.words[0].text;
  if (aliases_.find(name) != aliases_.end()) return false;
  if (defined_ && shells_ == 0 && later_.find(name) != later_.end()) return true;
  if (functions_.find(name) == functions_.end()) return false;
  const std::string key = concat({"(", name});
  const ShellVariable& variable = find_variable(key);
  note_read(key, variable, true);
  return variable.values.size() == 1 && variable.values[0].elements[0].text[0] == shell_mark();
}

void ShellWalker::call(const shell::Command& command, const std::vector<std::uint32_t>& bodies) {
  Activation activation;
  activation.name = command.words[0].text;
  for (std::size_t i = 1; i < command.words.size(); ++i)
    activation.arguments.push_back(command.words[i].text);
  activation.parallel = parallel_;
  activation.frames = frames_.size();
  std::size_t running = 0;
  std::size_t level = 0;
  for (Activation& around : activations_) {
    const std::size_t own_level = level++;
    if (around.name != activation.name) continue;
    if (!recordings_.empty())
      recordings_.back().outermost = std::min(recordings_.back().outermost, own_level);
    if (++running > max_activations || around.arguments == activation.arguments)
      return end_recursion(around);
  }
  ShellValue arguments = empty_array();
  if (running == max_activations) {
    // Recursion with ever new arguments: from here on, with any.
    arguments = unknown_array();
    activation.arguments.clear();
    activation.arguments.push_back(arguments.elements[0].text);
  } else {
    for (std::size_t i = 1; i < command.words.size(); ++i)
      arguments.elements.push_back(text_of(command.words[i]));
  }
  charge(arguments.elements.size());
  ShellVariable given;
  given.values.push_back(std::move(arguments));
  activations_.push_back(std::move(activation));
  shell::Input input = command.input;
  std::swap(input, input_);
  // A body may define another one.
  const std::size_t count = bodies.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t body = bodies[i];
    if (size(node(body).nodes) == 0) continue;
    call_once(body, given);
    if (!activations_.back().recurs) continue;
    // Once more, with what it may find when it has called itself.
    for (const auto& [name, variable] : activations_.back().carried) {
      for (const ShellValue& value : variable.values) add_value(name, value);
      add_value(name, unknown_value_);
    }
    call_once(body, given);
  }
  std::swap(input, input_);
  activations_.pop_back();
}

void ShellWalker::call_once(std::uint32_t function, const ShellVariable& arguments) {
  activations_.back().locals.clear();
  Effects effects = run_body(node(function).nodes, positional_key, arguments);
  Activation& activation = activations_.back();
  for (auto& [name, variable] : effects.changes) {
    if (activation.recurs)
      for (const ShellValue& value : variable.values) merge_value(activation.carried[name], value);
    ShellVariable former = variable.late ? ShellVariable(find_variable(name)) : ShellVariable();
    // What the script had not set would be not known in all that follows.
    if (former.values == initial_variable(name).values) former.values.clear();
    if (former.values.size() + variable.values.size() > max_former) {
      former.values.clear();
      former.values.push_back(ShellValue(unknown_value_));
    }
    set_variable(name, std::move(variable));
    for (const ShellValue& value : former.values) add_value(name, value);
  }
  add_values(effects.between);
}

void ShellWalker::end_recursion(Activation& activation) {
  write_unknown();
  if (activation.recurs)
    for (const auto& [name, variable] : activation.carried) add_value(name, unknown_value_);
  activation.recurs = true;
  std::size_t level = 0;
  for (const Frame& frame : frames_) {
    if (level++ < activation.frames) continue;
    for (const auto& [name, former] : frame.former) {
      charge(1);
      if (name == positional_key) continue;
      ShellVariable& carried = activation.carried[name];
      for (const ShellValue& value : find_variable(name).values) merge_value(carried, value);
    }
  }
}

bool ShellWalker::is_fork_bomb(const shell::Command& command) const {
  if (command.words.empty()) return false;
  for (const Activation& activation : activations_)
    if (activation.name == command.words[0].text && parallel_ > activation.parallel) return true;
  return false;
}

bool ShellWalker::run_alias(const ShellNode& node, const shell::Command& command) {
  if (aliases_.empty() || size(node.words) == 0) return false;
  const auto at = aliases_.find(command.words[0].text);
  if (at == aliases_.end() || syntax_.words[item(node.words, 0)].quoted) return false;
  for (const std::string& running : running_aliases_)
    if (running == at->first) return false;
  if (at->second.find_first_of("#'\"\\`(){}\n") != std::string::npos ||
      at->second.find("<<") != std::string::npos) {
    stop(ErrorCode::parse, "alias that changes how the rest is read"sv, command.begin);
    return true;
  }
  std::string text = at->second;
  bool next_too = !text.empty() && is_shell_blank(text.back());
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    // Behind an alias that ends with a blank, the next word is looked at, too.
    const auto next = next_too ? aliases_.find(command.words[i].text) : aliases_.end();
    next_too =
        next != aliases_.end() && !next->second.empty() && is_shell_blank(next->second.back());
    if (next != aliases_.end()) {
      append_all(text, {" ", next->second});
      continue;
    }
    append_all(text, {" ", shell_word(command.words[i].text)});
  }
  running_aliases_.push_back(at->first);
  run_text(std::move(text), command, true);
  running_aliases_.pop_back();
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
