// The walker: bodies of functions and loops, and what they did when they ran before.

#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

ShellWalker::Surroundings ShellWalker::surroundings() const {
  const bool flags[] = {pipeline_, background_, defined_,         tolerant_,
                        holes_,    in_traps_,   keep_ != nullptr, output_ != nullptr};
  unsigned bits = 2 * shells_ + (functions_lost_ ? 1 : 0);
  for (const bool flag : flags) bits = 2 * bits + (flag ? 1 : 0);
  return {input_, definitions_, producer_id_, bits};
}

void ShellWalker::note_read(std::string_view name, const ShellVariable& variable, bool used) {
  if (recordings_.empty()) return;
  Recording& recording = recordings_.back();
  // What was written within the body is no part of what it found.
  if (variable.frame >= recording.frame) return;
  const auto at = recording.read.find(name);
  if (at != recording.read.end()) {
    at->second.used = at->second.used || used;
    return;
  }
  // No variable is without a value: a large one is never found again.
  const std::size_t bytes = size_of(variable);
  const bool large = bytes > max_remembered;
  const std::string key(name);
  ShellVariable& noted = recording.read[key];
  if (!large) noted = ShellVariable(variable);
  noted.frame = variable.frame;
  noted.used = used;
  charge(large ? 1 : bytes);
}

std::size_t ShellWalker::size_of(const ShellVariable& variable) {
  std::size_t bytes = 8;
  for (const ShellValue& value : variable.values)
    for (const ShellText& element : value.elements) bytes += 8 + element.text.size();
  return bytes;
}

const ShellWalker::Memory* ShellWalker::find_memory(const Memory& wanted) {
  const auto same = [this](const ShellVariable& left, const ShellVariable& right) {
    if (!(left.values == right.values)) return false;
    charge(size_of(left));
    return true;
  };
  for (const Memory& memory : memories_[wanted.body]) {
    if (!(memory.here == wanted.here) || !same(memory.given, wanted.given)) continue;
    bool alike = true;
    for (const auto& [name, variable] : memory.read)
      alike = alike && same(variable, find_variable(name));
    if (alike) return &memory;
  }
  return nullptr;
}

ShellWalker::Effects ShellWalker::remember(Memory memory) {
  Effects effects = memory.effects;
  std::list<Memory>& memories = memories_[memory.body];
  std::size_t bytes = sizeof memory + memory.here.input.text.size() + size_of(memory.given) +
                      memory.output.text.size();
  const std::size_t rows = memory.read.size() + effects.changes.size() + effects.between.size();
  bytes += rows * (sizeof(ShellVariable) + sizeof(ShellValue) + sizeof(ShellText));
  for (const auto& [name, variable] : memory.read) bytes += size_of(variable);
  for (const auto& [name, variable] : effects.changes) bytes += size_of(variable);
  for (const auto& [name, variable] : effects.between) bytes += size_of(variable);
  if (memory.kept)
    for (const shell::Word& word : memory.kept->words) bytes += sizeof word + word.text.size();
  if (memories.size() < max_memories && memory_bytes_ + bytes <= options_.limits.max_text / 4) {
    memory_bytes_ += bytes;
    memories.push_back(std::move(memory));
  }
  return effects;
}

ShellWalker::Effects ShellWalker::recall(const Memory& memory) {
  for (const auto& [name, variable] : memory.read)
    note_read(name, find_variable(name), variable.used);
  append_output(memory.output);
  if (keep_ != nullptr) *keep_ = memory.kept;
  for (const auto& [name, variable] : memory.effects.changes) charge(size_of(variable));
  return memory.effects;
}

void ShellWalker::drop_locals(Changes& changes, std::uint64_t frame) const {
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

ShellWalker::Effects ShellWalker::run_body(ShellRange nodes, std::string_view name,
                                           const ShellVariable& given) {
  Memory memory;
  memory.given = ShellVariable(given);
  memory.body = item(nodes, 0);
  const bool usable = running_aliases_.empty() && input_.text.size() <= max_remembered;
  if (usable) memory.here = surroundings();
  if (const Memory* const known = usable ? find_memory(memory) : nullptr) return recall(*known);
  Output* const output = output_;
  if (output != nullptr) output_ = &memory.output;
  const Left left = std::exchange(left_, Left::nothing);
  const std::size_t locals = activations_.empty() ? 0 : activations_.back().locals.size();
  std::vector<Choice> choices;
  choices.swap(choices_);
  open_frame(true);
  recordings_.emplace_back();
  recordings_.back().frame = frames_.back().id;
  if (!name.empty()) set_variable(name, given);
  for (std::size_t i = 0; i < size(nodes); ++i) run(item(nodes, i));
  Recording recording = std::move(recordings_.back());
  recordings_.pop_back();
  Effects& effects = memory.effects;
  effects.changes = take_frame(&effects.between);
  if (left_ == Left::nothing) effects.between.clear();
  // A return ends the loops around it, too.
  const bool function = name == positional_key;
  left_ = function || left_ != Left::function ? left : left_;
  choices_.swap(choices);
  output_ = output;
  append_output(memory.output);
  if (function) {
    drop_locals(effects.changes, recording.frame);
    drop_locals(effects.between, recording.frame);
  }
  for (const auto& [changed, variable] : effects.changes) {
    const auto read = recording.read.find(changed);
    if (read != recording.read.end() && read->second.used) effects.carried.push_back(changed);
  }
  for (const auto& [read, variable] : recording.read) note_read(read, variable, variable.used);
  if (!recordings_.empty())
    recordings_.back().outermost = std::min(recordings_.back().outermost, recording.outermost);
  const bool local =
      !function && !activations_.empty() && activations_.back().locals.size() != locals;
  if (!usable || local || stopped() || recording.outermost < activations_.size() ||
      !(surroundings() == memory.here))
    return std::move(effects);
  memory.read = std::move(recording.read);
  if (keep_ != nullptr) memory.kept = *keep_;
  return remember(std::move(memory));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
