// The walker: functions and aliases.

#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A word behind an alias: a pattern stays one.
std::string word_behind_alias(const std::string& text) {
  for (const char c : text)
    if (!is_name_char(c) && "./:,+@%=*?[]-"sv.find(c) == std::string_view::npos)
      return shell_word(text);
  return text.empty() ? shell_word(text) : text;
}

}  // namespace

inline namespace inner {

// A function's body is reported twice: where it is defined, with unknown arguments and `defined`
// set, and where it is called, with the arguments of the call. A name may have several bodies, when
// branches define it; a call runs all of them.

// By `unset` and `command` the shell of a session finds its own builtins, where no guard looks.
void ShellNames::define(ShellRunner& runner, std::uint32_t index, const ShellNode& node) {
  ShellScopes& scopes = runner.walk.scopes;
  const std::string name(node.name);
  if (is_any(name, "command", "unset"))
    return runner.walk.budget.stop(
        ErrorCode::parse, "function in place of a builtin that sessions need"sv, node.begin);
  if (!runner.place.held)
    runner.walk.budget.outcome.definitions.push_back({name, false, node.begin, node.end});
  Bodies& bodies = functions_[name];
  if (std::find(bodies.begin(), bodies.end(), index) == bodies.end()) {
    bodies.push_back(std::uint32_t{index});
    ++scopes.definitions;
  }
  // In a function, a return may have come before the definition.
  mark_own(runner, name, activations_.empty());
  if (size(node.nodes) == 0) return;
  // The body as it stands; when the function is called, it is reported again with its arguments.
  // bash calls this one itself, with what it did not find.
  shell::Input input;
  ShellRunner inner(runner);
  inner.place.defined = node.name != "command_not_found_handle"sv;
  inner.place.output = &runner.walk.nowhere;
  inner.place.input = &input;
  scopes.open_frame();
  scopes.assign(positional_key, unknown_array());
  inner.run(runner.walk.item(node.nodes, 0));
  scopes.take_frame();
}

char ShellNames::own_mark(const ShellRunner& runner) {
  return static_cast<char>('0' + runner.place.shells);
}

void ShellNames::mark_own(ShellRunner& runner, std::string_view name, bool own) {
  // A POSIX shell finds these before a function; a name with a slash is a path to it.
  if (is_special_builtin(name) || name.find('/') != std::string_view::npos) return;
  ShellVariable variable;
  variable.values.push_back(scalar_value({std::string(1, own ? own_mark(runner) : ' ')}));
  runner.walk.scopes.set(own_key(name), std::move(variable));
}

void ShellNames::forget(ShellRunner& runner, const std::string& name, bool certain) {
  lost_ = lost_ || !certain;
  if (functions_.find(name) != functions_.end()) mark_own(runner, name, false);
}

bool ShellNames::is_own(ShellRunner& runner, const shell::Command& command) {
  if (lost_ || command.words.empty()) return false;
  const std::string& name = command.words[0].text;
  if (aliases_.find(name) != aliases_.end()) return false;
  if (runner.place.defined && runner.place.shells == 0 && later_.find(name) != later_.end())
    return true;
  if (functions_.find(name) == functions_.end()) return false;
  const std::string key = own_key(name);
  const ShellVariable& variable = runner.walk.scopes.find(key);
  runner.walk.scopes.note_read(key, variable, true);
  return variable.values.size() == 1 && variable.values[0].elements[0].text[0] == own_mark(runner);
}

bool ShellNames::is_fork_bomb(const ShellPlace& place, const shell::Command& command) const {
  if (command.words.empty()) return false;
  for (const Activation& activation : activations_)
    if (activation.name == command.words[0].text && place.parallel > activation.parallel)
      return true;
  return false;
}

bool ShellNames::run_function(ShellRunner& runner, const shell::Command& command) {
  if (functions_.empty()) return false;
  const auto at = functions_.find(command.words[0].text);
  if (at == functions_.end()) return false;
  if (runner.place.defined)
    runner.place.output->write_unknown();
  else
    call(runner, command, at->second);
  return true;
}

// Calls of functions.
//
//   f() { w $1; f "$1$1"; }; f a      running calls of f   the call
//     f a                             0                    is followed with a
//       f aa                          1                    is followed with aa
//         f aaaa                      2                    is followed with aaaa
//           f aaaaaaaa                3: max_activations   is followed with any arguments
//             f ...                   4                    ends: end_recursion()
//
// A call with the arguments of a running one is not followed. When the running call comes to its
// end, its body is run once more, with the values that the call may have left.

void ShellNames::call(const ShellRunner& caller, const shell::Command& command,
                      const Bodies& bodies) {
  ShellScopes& scopes = caller.walk.scopes;
  std::list<Activation> fresh;
  Activation& activation = fresh.emplace_back();
  activation.name = command.words[0].text;
  for (std::size_t i = 1; i < command.words.size(); ++i)
    activation.arguments.push_back(command.words[i].text);
  activation.parallel = caller.place.parallel;
  activation.frames = scopes.frames();
  std::size_t running = 0;
  std::size_t level = 0;
  for (Activation& around : activations_) {
    const std::size_t own_level = level++;
    if (around.name != activation.name) continue;
    scopes.note_activation(own_level);
    if (++running > max_activations || around.arguments == activation.arguments)
      return end_recursion(caller, around);
  }
  ShellValue arguments = empty_array();
  if (running == max_activations) {
    // Recursion with ever new arguments: from here on, with any.
    arguments = unknown_array();
    activation.arguments.clear();
    activation.arguments.push_back(arguments.elements[0].text);
  } else {
    for (std::size_t i = 1; i < command.words.size(); ++i)
      arguments.elements.push_back(command.words[i]);
  }
  caller.walk.budget.charge(arguments.elements.size());
  ShellVariable given;
  given.values.push_back(std::move(arguments));
  activations_.splice(activations_.end(), fresh);
  ShellRunner runner(caller);
  ShellEvaluation(runner).expand_arguments(given.values[0].elements);
  // A body may define another one.
  const std::size_t count = bodies.size();
  ShellInputs inputs(*runner.place.input);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t body = bodies[i];
    if (size(caller.walk.node(body).nodes) == 0) continue;
    call_once(runner, body, given);
    // Once more, with what it may find when it has called itself.
    for (const auto& [name, variable] : activation.carried) {
      scopes.add(name, variable.values);
      scopes.add(name, scopes.unknown);
    }
    if (activation.recurs) call_once(runner, body, given);
    inputs.next();
  }
  inputs.merge(false);
  activations_.pop_back();
}

void ShellNames::call_once(ShellRunner& runner, std::uint32_t function,
                           const ShellVariable& arguments) {
  ShellWalk& walk = runner.walk;
  activations_.back().locals.clear();
  ShellEffects effects =
      walk.bodies.run(runner, walk.node(function).nodes, positional_key, arguments);
  Activation& activation = activations_.back();
  for (auto& [name, variable] : effects.changes) {
    if (activation.recurs)
      for (const ShellValue& value : variable.values) activation.carried[name].merge(value);
    std::vector<ShellValue> former;
    if (variable.late) {
      former = walk.scopes.find(name).values;
      // A former value that the script has not set is left out: with it, the variable would be
      // unknown in all that follows.
      if (former == ShellScopes::initial(name).values) former.clear();
    }
    if (former.size() + variable.values.size() > max_former) {
      former.clear();
      former.push_back(ShellValue(walk.scopes.unknown));
    }
    walk.scopes.set(name, std::move(variable));
    walk.scopes.add(name, former);
  }
  walk.scopes.add(effects.between);
}

void ShellNames::end_recursion(const ShellRunner& caller, Activation& activation) {
  ShellScopes& scopes = caller.walk.scopes;
  caller.place.output->write_unknown();
  if (activation.recurs)
    for (const auto& [name, variable] : activation.carried) scopes.add(name, scopes.unknown);
  activation.recurs = true;
  scopes.for_each_change(activation.frames, [&](const std::string& name) {
    caller.walk.budget.charge(1);
    if (name == positional_key) return;
    ShellVariable& carried = activation.carried[name];
    for (const ShellValue& value : scopes.find(name).values) carried.merge(value);
  });
}

void ShellNames::make_local(ShellScopes& scopes, std::string_view name) {
  if (activations_.empty() || !is_name(name)) return;
  ShellChanges& locals = activations_.back().locals;
  for (const auto& local : locals)
    if (local.first == name) return;
  if (locals.size() < max_locals) locals.emplace_back(std::string(name), scopes.find(name));
}

void ShellNames::drop_locals(ShellChanges& changes, std::uint64_t frame) const {
  // A change that is renamed to positional_key is erased below, as those to the arguments are.
  for (const auto& [name, former] : activations_.back().locals) {
    for (auto& [changed, variable] : changes) {
      if (changed != name) continue;
      variable = ShellVariable(former);
      if (former.frame < frame) changed = positional_key;
    }
  }
  for (auto at = changes.begin(); at != changes.end();)
    at = at->first == positional_key ? changes.erase(at) : std::next(at);
}

// Aliases.
//
// A shell replaces the first word of a command before it parses the rest. Here the command is
// parsed already, so the alias's text and the words behind it are run as a string. That is the same
// where the text begins with the name of a command: what follows are its arguments. Behind a `;` at
// its end the next word is such a name. Of any other alias (an assignment, `!`, `time`, a pipeline,
// quotes) the words behind it might be a command.

bool is_plain_alias(std::string_view text, std::string_view next) {
  constexpr std::string_view others = "_./:,+@%=~*?-$; \t";
  for (const char c : text)
    if (!is_name_char(c) && others.find(c) == std::string_view::npos) return false;
  const std::size_t last = text.find_last_not_of(" \t");
  const bool is_ended = last != std::string_view::npos && last > 0 && text[last] == ';';
  if (is_ended) text = text.substr(0, last);
  for (bool more = true; more;) {
    more = text.find(';') != std::string_view::npos;
    std::string_view command = take_part(text, ';');
    command.remove_prefix(std::min(command.find_first_not_of(" \t"), command.size()));
    const std::string_view name = command.substr(0, command.find_first_of(" \t"));
    if (name.empty() || is_reserved_word(name) || name.find('=') != std::string_view::npos)
      return false;
  }
  return !is_ended || !(is_reserved_word(next) || next.find('=') != std::string_view::npos);
}

void ShellNames::set_alias(ShellScopes& scopes, const std::string& name, std::string value) {
  std::string& alias = aliases_[name];
  if (alias != value) ++scopes.definitions;
  alias = std::move(value);
}

bool ShellNames::run_alias(ShellRunner& runner, const ShellNode& node,
                           const shell::Command& command) {
  const ShellWalk& walk = runner.walk;
  if (aliases_.empty() || size(node.words) == 0) return false;
  const auto at = aliases_.find(command.words[0].text);
  if (at == aliases_.end() || walk.syntax.words[walk.item(node.words, 0)].quoted) return false;
  for (const std::string& running : running_aliases_)
    if (running == at->first) return false;
  const std::string_view word_behind =
      command.words.size() > 1 ? std::string_view(command.words[1].text) : std::string_view();
  if (!is_plain_alias(at->second, word_behind)) {
    runner.walk.budget.stop(ErrorCode::parse, "alias that changes how the rest is read"sv,
                            command.begin);
    return true;
  }
  std::string text = at->second;
  bool next_too = !text.empty() && is_shell_blank(text.back());
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    // Behind an alias that ends with a blank, the next word is looked at, too.
    const auto next = next_too ? aliases_.find(command.words[i].text) : aliases_.end();
    next_too =
        next != aliases_.end() && !next->second.empty() && is_shell_blank(next->second.back());
    if (next != aliases_.end() && !is_plain_alias(next->second)) {
      runner.walk.budget.stop(ErrorCode::parse, "alias that changes how the rest is read"sv,
                              command.begin);
      return true;
    }
    append_all(text, " %",
               {next != aliases_.end() ? next->second : word_behind_alias(command.words[i].text)});
  }
  running_aliases_.push_back(at->first);
  runner.run_text(std::move(text), command, true);
  running_aliases_.pop_back();
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
