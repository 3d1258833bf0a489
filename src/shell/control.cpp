// The walker: lists, pipelines, branches and loops.
//
// What runs, and what becomes of the variables it changes (see ShellScopes):
//
//   a; b          a, then b                  all changes stay
//   a && b        a, then b                  b's changes may have been made: merged
//   if a; b; c    a, then b and c each from  merged; with what was there before, if there is no
//                 the same state             else
//   case          as if, for all arms        merged
//   while, for    the body, at most twice    merged; see Loops
//   a | b         each in a frame            dropped; the output of a is the input of b
//   ( a )  a &    in a frame                 dropped
//   f() { a; }    in a frame, as `defined`   dropped; a call of f runs it again
//   [[ ]]  (( ))  nothing                    reported as a command of this name
//
// No condition is evaluated: a branch that a run would not take is walked like the others.

#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

shell::Input input_of(ShellPrinted output) {
  shell::Input input = unknown_input();
  input.glob = output.glob;
  input.home = output.home;
  if (output.text == unknown_part) return input;
  input.kind = shell::Input::Kind::known;
  input.text = std::move(output.text);
  return input;
}

ShellPrinted recorder_of(ShellBudget& budget, const std::vector<shell::Redirection>& redirections) {
  for (const shell::Redirection& redirection : redirections)
    if (redirection.fd == 1 && redirection.writes() && !budget.is_scarce() &&
        !starts_with(redirection.target.text, "/dev/"sv))
      return ShellPrinted(&budget);
  return ShellPrinted(nullptr);
}

void ShellRunner::run(std::uint32_t index) {
  if (walk.budget.stopped()) return;
  const ShellNode node = walk.node(index);
  // The kinds up to `pipeline` are no level of their own: what holds them has counted.
  const bool counts = node.kind > ShellNode::Kind::pipeline;
  if (counts && !walk.budget.enter(node.begin)) return;
  walk.here_begin = node.begin;
  walk.here_end = node.end;
  if (node.background)
    run_background(index, node);
  else
    run_foreground(index, node);
  if (counts) walk.budget.leave();
}

void ShellRunner::run_background(std::uint32_t index, const ShellNode& node) {
  shell::Input input = *place.input;
  ShellRunner inner(*this);
  inner.place.input = &input;
  inner.place.background = true;
  ++inner.place.parallel;
  walk.scopes.open_frame();
  inner.run_foreground(index, node);
  walk.scopes.take_frame();
}

void ShellRunner::run_foreground(std::uint32_t index, const ShellNode& node) {
  if (node.kind == ShellNode::Kind::simple) return ShellSimple(*this, node).run();
  if (node.kind == ShellNode::Kind::function) return walk.names.define(*this, index, node);
  if (node.redirections.first == no_index) return run_compound(node);
  // Its redirections hold for everything in it.
  shell::Input input = *place.input;
  ShellInputs inputs(input);
  ShellSimple simple(*this, node);
  std::vector<shell::Redirection> redirections;
  walk.scopes.for_each_choice([&] {
    shell::Command command;
    simple.expand_redirections(command.redirections, input);
    inputs.next();
    command.compound = true;
    report(node, command);
    redirections.insert(redirections.end(), command.redirections.begin(),
                        command.redirections.end());
  });
  inputs.merge(false);
  ShellRunner inner(*this);
  if (redirects_input(redirections)) inner.place.input = &input;
  ShellPrinted printed = recorder_of(walk.budget, redirections);
  const bool redirected = simple.redirects_output();
  if (redirected) inner.place.output = &printed;
  inner.run_compound(node);
  if (redirected) write_redirected(redirections, printed);
}

void ShellRunner::run_compound(const ShellNode& node) {
  switch (node.kind) {
    case ShellNode::Kind::simple:
    case ShellNode::Kind::function:
      return;
    case ShellNode::Kind::list:
      for (std::size_t i = 0; i < size(node.nodes); ++i) run(walk.item(node.nodes, i));
      return;
    case ShellNode::Kind::and_or:
      return run_and_or(node);
    case ShellNode::Kind::pipeline:
      return run_pipeline(node);
    case ShellNode::Kind::subshell:
      return run_subshell(walk.item(node.nodes, 0));
    case ShellNode::Kind::group:
      return run(walk.item(node.nodes, 0));
    case ShellNode::Kind::if_clause:
      return run_if(node);
    case ShellNode::Kind::arithmetic_for:
      walk.scopes.for_each_choice(
          [&] { ShellEvaluation(*this).evaluate(expand_single(walk.item(node.words, 0)).text); });
      return run_rounds(node, ShellVariable());
    case ShellNode::Kind::loop:
      return run_rounds(node, ShellVariable());
    case ShellNode::Kind::for_clause:
      return run_for(node);
    case ShellNode::Kind::case_clause:
      return run_case(node);
    case ShellNode::Kind::coprocess:
      return run_coprocess(node);
    case ShellNode::Kind::condition:
    case ShellNode::Kind::arithmetic:
      return run_test(node);
  }
}

void ShellRunner::run_subshell(std::uint32_t index) {
  shell::Input input = *place.input;
  ShellRunner inner(*this);
  inner.place.input = &input;
  walk.scopes.open_frame();
  inner.run(index);
  walk.scopes.take_frame();
}

// Branches: each runs in a frame, from the same state. merge() gives variables the values of all of
// them, and the former value if it may be that no branch was taken. Their output is unknown.

ShellChanges ShellRunner::run_branch(std::uint32_t index) {
  const std::size_t written = place.output->text.size();
  walk.scopes.open_frame();
  run(index);
  place.output->forget(written);
  return walk.scopes.take_frame();
}

// Lists of && and ||.
//
// a && b || c: b may run, and c may run, so each has a frame. What the first command changes is
// certain. Behind &&, a command finds what those before it have changed; a || begins anew with
// variables that have both values.

void ShellRunner::run_and_or(const ShellNode& node) {
  ShellScopes& scopes = walk.scopes;
  run(walk.item(node.nodes, 0));
  const std::size_t written = place.output->text.size();
  ShellInputs inputs(*place.input);
  // The changes of each command are kept apart: the chain may end behind any of them.
  std::list<ShellChanges> steps;
  scopes.open_frame();
  char before = 0;
  for (std::size_t i = 1; i < size(node.nodes); ++i) {
    const char joint = walk.node(walk.item(node.nodes, i)).joint;
    // Behind a ||, and for the command after that, it is not known which commands have run.
    if (i > 1 && (joint == '|' || before == '|')) {
      inputs.next();
      steps.push_back(scopes.take_frame());
      scopes.merge(steps, true);
      steps.clear();
      scopes.open_frame();
    }
    scopes.open_frame();
    run(walk.item(node.nodes, i));
    ShellChanges changes = scopes.take_frame();
    scopes.set(changes);
    steps.push_back(std::move(changes));
    before = joint;
  }
  place.output->forget(written);
  inputs.next();
  inputs.merge(true);
  steps.push_back(scopes.take_frame());
  scopes.merge(steps, true);
}

void ShellRunner::run_if(const ShellNode& node) {
  const std::size_t count = size(node.nodes);
  std::list<ShellChanges> branches;
  run(walk.item(node.nodes, 0));
  ShellInputs inputs(*place.input);
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    if (i > 0) run(walk.item(node.nodes, i));
    branches.push_back(run_branch(walk.item(node.nodes, i + 1)));
    inputs.next();
  }
  if (count % 2 == 1) {
    branches.push_back(run_branch(walk.item(node.nodes, count - 1)));
    inputs.next();
  }
  inputs.merge(count % 2 == 0);
  walk.scopes.merge(branches, count % 2 == 0);
}

void ShellRunner::run_case(const ShellNode& node) {
  walk.scopes.for_each_choice([&] {
    for (std::size_t i = 0; i < size(node.words) && !walk.budget.stopped(); ++i)
      expand_single(walk.item(node.words, i));
  });
  std::list<ShellChanges> branches;
  ShellInputs inputs(*place.input);
  for (std::size_t i = 0; i < size(node.nodes) && !walk.budget.stopped(); ++i) {
    branches.push_back(run_branch(walk.item(node.nodes, i)));
    inputs.next();
  }
  inputs.merge(true);
  walk.scopes.merge(branches, true);
}

// Loops.
//
//   round 1   the body finds what was before the loop
//   merge     what the body changed has both values: it may run any number of times
//   carried   what the body changed after it had read it is unknown: n=$n$x
//   round 2   the body finds this; further rounds would find no more
//
// A body that carries nothing has one round. A for loop with more values than a variable may have
// is cut into parts, each of which is a loop.

void ShellRunner::run_rounds(const ShellNode& node, const ShellVariable& variable) {
  if (size(node.nodes) == 0) return;
  ShellScopes& scopes = walk.scopes;
  ShellInputs inputs(*place.input);
  for (int rounds = 0; rounds < 2 && !walk.budget.stopped(); ++rounds) {
    const std::size_t written = place.output->text.size();
    const std::uint64_t definitions = scopes.definitions;
    const ShellEffects effects = walk.bodies.run(*this, node.nodes, node.name, variable);
    place.output->forget(written);
    scopes.merge_maybe(effects.changes);
    scopes.add(effects.between);
    for (const std::string& name : effects.carried) scopes.add(name, scopes.unknown);
    inputs.next();
    if (effects.carried.empty() && definitions == scopes.definitions) break;
  }
  inputs.merge(true);
}

void ShellRunner::run_for(const ShellNode& node) {
  // A loop over many words is walked in several parts, so that none of its values is lost.
  std::list<ShellVariable> parts;
  parts.emplace_back();
  const auto add = [&](ShellText text) {
    const bool full = parts.back().values.size() == ShellVariable::max_values;
    if (full && parts.size() < max_parts) parts.emplace_back();
    parts.back().merge(scalar_value(std::move(text)));
  };
  walk.scopes.for_each_choice([&] {
    std::vector<shell::Word> words;
    expand_words(node.words, words);
    for (const shell::Word& word : words) add(word);
    if (node.flag) return;
    const ShellValue arguments = walk.scopes.value_of(positional_key);
    walk.budget.charge(arguments.elements.size());
    for (const ShellText& element : arguments.elements) add(element);
  });
  // Without words the body does not run; it is reported all the same, as that of a function is.
  ShellRunner inner(*this);
  if (parts.front().values.empty()) {
    parts.front().values.push_back(ShellValue(walk.scopes.unknown));
    inner.place.defined = true;
  }
  for (const ShellVariable& part : parts) {
    for (const ShellValue& value : part.values) {
      ShellSteering steering(inner);
      steering.report(node.name, value);
      ShellEvaluation(inner).expand_value(node.name, value);
      for (const ShellText& element : value.elements) steering.note_reference(element.text);
    }
    inner.run_rounds(node, part);
  }
}

void ShellRunner::run_coprocess(const ShellNode& node) {
  shell::Input input = unknown_input();
  ShellRunner inner(*this);
  inner.place.background = true;
  inner.place.input = &input;
  inner.place.output = &walk.nowhere;
  ++inner.place.parallel;
  if (size(node.nodes) > 0) inner.run_subshell(walk.item(node.nodes, 0));
}

void ShellRunner::run_test(const ShellNode& node) {
  const bool numbers = node.kind == ShellNode::Kind::arithmetic;
  const auto plain_word = [&](std::string_view text) {
    shell::Word word;
    word.text = std::string(text);
    word.begin = node.begin;
    word.end = node.end;
    return word;
  };
  walk.scopes.for_each_choice([&] {
    shell::Command command;
    command.words.push_back(plain_word(numbers ? "((" : "[["));
    expand_words(node.words, command.words, true);
    command.words.push_back(plain_word(numbers ? "))" : "]]"));
    report(node, command);
    if (numbers)
      ShellEvaluation(*this).evaluate(command.words[1].text);
    else
      ShellEvaluation(*this).expand_words(command);
  });
}

// Pipelines.
//
//   a  |  cat  |  sh        writer:    the command that ran last in the part before
//   \-------/  \--/         producer:  of the pipe in front of a part; behind a filter, that of
//   a is the producer                  what comes into the filter
//   of both pipes
//
// What a part writes is the input of the next. Every part runs in a frame of its own.

void ShellRunner::run_pipeline(const ShellNode& node) {
  const std::size_t count = size(node.nodes);
  shell::Input input = *place.input;
  ShellRunner inner(*this);
  inner.place.input = &input;
  inner.place.pipeline = true;
  ++inner.place.parallel;
  KeptCommand writer, producer;
  for (std::size_t i = 0; i < count && !walk.budget.stopped(); ++i) {
    const std::uint32_t part = walk.item(node.nodes, i);
    const bool last = i + 1 == count;
    const bool simple = walk.node(part).kind == ShellNode::Kind::simple;
    ShellPrinted output(&walk.budget);
    inner.place.output = last ? place.output : &output;
    inner.place.keep = last ? nullptr : &writer;
    walk.scopes.open_frame();
    inner.run(part);
    const ShellChanges changes = walk.scopes.take_frame();
    // With `shopt -s lastpipe`, bash runs the last command of a pipeline itself.
    if (last && walk.lastpipe) walk.scopes.merge_maybe(changes);
    if (last) return;
    // A filter lets through what was written before it.
    const bool filter = producer != nullptr && writer != nullptr && !writer->words.empty() &&
                        is_any(writer->words[0].text, "awk", "cat", "egrep", "fgrep", "grep",
                               "head", "sed", "sort", "tac", "tail", "tee", "uniq");
    if (!filter) producer = std::move(writer);
    writer.reset();
    inner.place.producer = simple ? producer.get() : nullptr;
    inner.place.producer_id = simple ? walk.scopes.new_id() : 0;
    input = input_of(std::move(output));
  }
}

void ShellRunner::run_apart(std::uint32_t index, ShellPrinted& output, shell::Input input) {
  if (index == no_index || !walk.budget.enter(walk.node(index).begin)) return;
  ShellRunner inner(*this);
  inner.place.input = &input;
  inner.place.output = &output;
  inner.place.producer = nullptr;
  inner.place.producer_id = 0;
  inner.place.keep = nullptr;
  inner.run_subshell(index);
  walk.budget.leave();
}

ShellText ShellRunner::output_of(std::uint32_t index) {
  ShellPrinted output(&walk.budget);
  run_apart(index, output, *place.input);
  while (!output.text.empty() && output.text.back() == '\n') output.text.pop_back();
  return {std::move(output.text), output.assumed, output.glob, output.home};
}

shell::Input ShellRunner::input_from_process(const ShellPart& part) {
  ShellPrinted output(part.output ? nullptr : &walk.budget);
  run_apart(part.node, output, part.output ? unknown_input() : *place.input);
  if (output.text.empty()) return {};
  output.glob = output.glob || output.assumed;
  return input_of(std::move(output));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
