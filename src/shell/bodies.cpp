// The walker: bodies of functions and loops, and what they did when they ran before.

#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A memory is good for another run if nothing differs that the body has read. So these are not
// remembered:
//
//   a body in an alias, or with a large input      what it reads is not compared
//   a call within a recursion                      it depends on the calls that are running
//   a loop that has made local variables           they are the function's, not its own
//   a body that has changed its surroundings       exec < file, a function, an attribute
//   a body in which a limit was exceeded

ShellSurroundings ShellRunner::surroundings() const {
  const bool flags[] = {
      place.pipeline,      place.background, place.defined,         place.tolerant,
      place.holes,         place.handler,    place.keep != nullptr, place.output->records(),
      !place.file.empty(), place.starting};
  unsigned bits = 2 * place.shells + (walk.names.any_forgotten() ? 1 : 0);
  for (const bool flag : flags) bits = 2 * bits + (flag ? 1 : 0);
  return {*place.input, walk.scopes.definitions, place.producer_id, walk.files.version(), bits};
}

const ShellBodies::Memory* ShellBodies::find(ShellRunner& runner, const Memory& wanted) {
  ShellWalk& walk = runner.walk;
  const auto same = [&](const ShellVariable& left, const ShellVariable& right) {
    if (!(left.values == right.values)) return false;
    walk.budget.charge(left.size());
    return true;
  };
  for (const Memory& memory : memories_[wanted.body]) {
    if (!(memory.here == wanted.here) || !same(memory.given, wanted.given)) continue;
    bool alike = true;
    for (const auto& [name, variable] : memory.read)
      alike = alike && same(variable, walk.scopes.find(name));
    if (alike) return &memory;
  }
  return nullptr;
}

void ShellBodies::remember(std::list<Memory> fresh, std::size_t limit) {
  const Memory& memory = fresh.back();
  const ShellEffects& effects = memory.effects;
  std::list<Memory>& memories = memories_[memory.body];
  std::size_t bytes = sizeof memory + memory.given.size() + memory.output.text.size();
  if (!memory.here.input.script) bytes += memory.here.input.text.size();
  const std::size_t rows = memory.read.size() + effects.changes.size() + effects.between.size();
  bytes += rows * (sizeof(ShellVariable) + sizeof(ShellValue) + sizeof(ShellText));
  for (const auto& [name, variable] : memory.read) bytes += variable.size();
  for (const ShellChanges* const changes : {&effects.changes, &effects.between})
    for (const auto& [name, variable] : *changes) bytes += variable.size();
  if (memory.kept)
    for (const shell::Word& word : memory.kept->words) bytes += sizeof word + word.text.size();
  if (memories.size() == max_memories || bytes_ + bytes > limit) return;
  bytes_ += bytes;
  memories.splice(memories.end(), fresh);
}

ShellEffects ShellBodies::recall(ShellRunner& runner, const Memory& memory) {
  ShellWalk& walk = runner.walk;
  for (const auto& [name, variable] : memory.read)
    walk.scopes.note_read(name, walk.scopes.find(name), variable.used);
  runner.place.output->append(memory.output);
  if (runner.place.keep != nullptr) *runner.place.keep = memory.kept;
  for (const auto& [name, variable] : memory.effects.changes) walk.budget.charge(variable.size());
  return memory.effects;
}

void ShellBodies::record(ShellRunner& runner, ShellRange nodes, std::string_view name,
                         Memory& memory, ShellRecording& recording) {
  ShellScopes& scopes = runner.walk.scopes;
  ShellRunner inner(runner);
  if (runner.place.output->records()) inner.place.output = &memory.output;
  const ShellLeft left = std::exchange(scopes.left, ShellLeft::nothing);
  std::list<ShellScopes::Choice> choices;
  scopes.swap_choices(choices);
  recording.frame = scopes.open_frame(true);
  scopes.begin_recording(recording);
  if (!name.empty()) scopes.set(name, ShellVariable(memory.given));
  for (std::size_t i = 0; i < size(nodes); ++i) inner.run(runner.walk.item(nodes, i));
  scopes.end_recording();
  ShellEffects& effects = memory.effects;
  effects.changes = scopes.take_frame(&effects.between);
  if (scopes.left == ShellLeft::nothing) effects.between.clear();
  // A return ends the loops around it, too.
  if (name == positional_key || scopes.left != ShellLeft::function) scopes.left = left;
  scopes.swap_choices(choices);
  runner.place.output->append(memory.output);
}

ShellEffects ShellBodies::run(ShellRunner& runner, ShellRange nodes, std::string_view name,
                              const ShellVariable& given) {
  ShellWalk& walk = runner.walk;
  const bool function = name == positional_key;
  std::list<Memory> fresh;
  Memory& memory = fresh.emplace_back(walk.budget);
  memory.given = ShellVariable(given);
  memory.body = walk.item(nodes, 0);
  const shell::Input& input = *runner.place.input;
  const bool usable =
      !walk.names.in_alias() && (input.script || input.text.size() <= max_remembered);
  if (usable) {
    memory.here = runner.surroundings();
    if (const Memory* const known = find(runner, memory)) return recall(runner, *known);
  }
  const std::size_t locals = walk.names.locals();
  ShellRecording recording;
  record(runner, nodes, name, memory, recording);
  ShellEffects& effects = memory.effects;
  if (function) {
    walk.names.drop_locals(effects.changes, recording.frame);
    walk.names.drop_locals(effects.between, recording.frame);
  }
  for (const auto& [changed, variable] : effects.changes) {
    const auto read = recording.read.find(changed);
    if (read != recording.read.end() && read->second.used) effects.carried.push_back(changed);
  }
  // Reads of this body count as reads of the body around it.
  for (const auto& [read, variable] : recording.read)
    walk.scopes.note_read(read, variable, variable.used);
  walk.scopes.note_activation(recording.outermost);
  const bool local = !function && walk.names.locals() != locals;
  if (!usable || local || walk.budget.stopped() || recording.outermost < walk.names.calls() ||
      !(runner.surroundings() == memory.here))
    return std::move(effects);
  memory.read = std::move(recording.read);
  if (runner.place.keep != nullptr) memory.kept = *runner.place.keep;
  ShellEffects copy = effects;
  remember(std::move(fresh), walk.budget.options.limits.max_text / 4);
  return copy;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
