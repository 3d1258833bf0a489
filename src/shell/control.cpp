// The walker: lists, pipelines, branches and loops.

#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::write_output(std::string_view text) {
  if (output_ == nullptr) return;
  output_->text += text;
  text_bytes_ += text.size();
}

void ShellWalker::write_unknown() {
  // One unknown part says as much as two.
  if (output_ != nullptr && (output_->text.empty() || output_->text.back() != '\0'))
    write_output(std::string_view("\0", 1));
}

void ShellWalker::append_output(const Output& output) {
  if (output_ == nullptr) return;
  std::string_view text = output.text;
  if (starts_with(text, std::string_view("\0", 1))) {
    write_unknown();
    text.remove_prefix(1);
  }
  write_output(text);
  output_->mark(output);
}

bool ShellWalker::enter(std::size_t at) {
  if (depth_ < options_.limits.max_depth) {
    ++depth_;
    return true;
  }
  stop(ErrorCode::limit, too_deep(options_), at);
  return false;
}

void ShellWalker::run(std::uint32_t index) {
  if (stopped()) return;
  const ShellNode node = syntax_.nodes[index];
  // Lists are held by the constructs that count.
  const bool counts = node.kind > ShellNode::Kind::pipeline;
  if (counts && !enter(node.begin)) return;
  here_begin_ = node.begin;
  here_end_ = node.end;
  if (node.background)
    run_background(index, node);
  else
    run_foreground(index, node);
  if (counts) --depth_;
}

void ShellWalker::run_background(std::uint32_t index, const ShellNode& node) {
  const bool outer = std::exchange(background_, true);
  ++parallel_;
  open_frame();
  run_foreground(index, node);
  take_frame();
  --parallel_;
  background_ = outer;
}

void ShellWalker::run_foreground(std::uint32_t index, const ShellNode& node) {
  if (node.kind == ShellNode::Kind::simple) return run_simple(node);
  if (node.kind == ShellNode::Kind::function) return define(index, node);
  if (size(node.redirections) == 0) return run_compound(node);
  // Its redirections hold for everything in it.
  shell::Input input = input_;
  for_each_choice([&] {
    std::vector<shell::Redirection> redirections;
    expand_redirections(node, redirections, input);
    shell::Command command;
    command.redirections = std::move(redirections);
    command.compound = true;
    tell(node, std::move(command));
  });
  std::swap(input, input_);
  Output* const outer = output_;
  if (redirects_output(node)) output_ = nullptr;
  run_compound(node);
  output_ = outer;
  std::swap(input, input_);
}

void ShellWalker::run_compound(const ShellNode& node) {
  switch (node.kind) {
    case ShellNode::Kind::simple:
    case ShellNode::Kind::function:
      return;
    case ShellNode::Kind::list:
      for (std::size_t i = 0; i < size(node.nodes); ++i) run(item(node.nodes, i));
      return;
    case ShellNode::Kind::and_or:
      return run_and_or(node);
    case ShellNode::Kind::pipeline:
      return run_pipeline(node);
    case ShellNode::Kind::subshell:
      open_frame();
      run(item(node.nodes, 0));
      take_frame();
      return;
    case ShellNode::Kind::group:
      return run(item(node.nodes, 0));
    case ShellNode::Kind::if_clause:
      return run_if(node);
    case ShellNode::Kind::loop:
      return run_loop(node);
    case ShellNode::Kind::for_clause:
      return run_for(node);
    case ShellNode::Kind::arithmetic_for:
      for_each_choice([&] { arithmetic(item(node.words, 0)); });
      return run_loop(node);
    case ShellNode::Kind::case_clause:
      return run_case(node);
    case ShellNode::Kind::coprocess:
      return run_coprocess(node);
    case ShellNode::Kind::condition:
    case ShellNode::Kind::arithmetic:
      return run_test(node);
  }
}

void ShellWalker::forget_output(std::size_t written) {
  if (output_ == nullptr || output_->text.size() <= written) return;
  output_->text.resize(written);
  write_unknown();
}

ShellWalker::Changes ShellWalker::run_branch(std::uint32_t index) {
  const std::size_t written = output_size();
  open_frame();
  run(index);
  forget_output(written);
  return take_frame();
}

void ShellWalker::run_and_or(const ShellNode& node) {
  run(item(node.nodes, 0));
  const std::size_t written = output_size();
  // What each command changes may be what remains: the next one may not run.
  std::list<Changes> steps;
  open_frame();
  char before = 0;
  for (std::size_t i = 1; i < size(node.nodes); ++i) {
    const char joint = this->node(item(node.nodes, i)).joint;
    // Behind ||, and what follows behind &&, it is not known which of those before have run.
    if (i > 1 && (joint == '|' || before == '|')) {
      steps.push_back(take_frame());
      merge(steps, true);
      steps.clear();
      open_frame();
    }
    open_frame();
    run(item(node.nodes, i));
    Changes changes = take_frame();
    for (const auto& [name, variable] : changes) set_variable(name, variable);
    steps.push_back(std::move(changes));
    before = joint;
  }
  forget_output(written);
  steps.push_back(take_frame());
  merge(steps, true);
}

void ShellWalker::merge_one(const Changes& changes) {
  std::list<Changes> branches;
  branches.push_back(changes);
  merge(branches, true);
}

void ShellWalker::run_if(const ShellNode& node) {
  const std::size_t count = size(node.nodes);
  std::list<Changes> branches;
  for (std::size_t i = 0; i + 1 < count; i += 2) {
    run(item(node.nodes, i));
    branches.push_back(run_branch(item(node.nodes, i + 1)));
  }
  if (count % 2 == 1) branches.push_back(run_branch(item(node.nodes, count - 1)));
  merge(branches, count % 2 == 0);
}

void ShellWalker::run_rounds(const ShellNode& node, const ShellVariable& variable) {
  if (size(node.nodes) == 0) return;
  for (int rounds = 0; rounds < 2 && !stopped(); ++rounds) {
    const std::size_t written = output_size();
    const std::uint64_t definitions = definitions_;
    Effects effects = run_body(node.nodes, node.name, variable);
    forget_output(written);
    merge_one(effects.changes);
    add_values(effects.between);
    for (const std::string& name : effects.carried) add_value(name, unknown_value_);
    if (effects.carried.empty() && definitions == definitions_) return;
  }
}

void ShellWalker::run_loop(const ShellNode& node) { run_rounds(node, ShellVariable()); }

void ShellWalker::run_for(const ShellNode& node) {
  // A loop over many words is walked in several parts, so that none of its values is lost.
  std::list<ShellVariable> parts;
  parts.emplace_back();
  const auto add = [&](ShellText text) {
    const bool full = parts.back().values.size() == max_values;
    if (full && parts.size() < max_parts) parts.emplace_back();
    merge_value(parts.back(), scalar_value(std::move(text)));
  };
  for_each_choice([&] {
    std::vector<shell::Word> words;
    Fields fields{words};
    for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
      expand_word(item(node.words, i), fields);
    for (shell::Word& word : words) add(text_of(word));
    if (node.flag) return;
    const ShellValue arguments = value_of(positional_key);
    charge(arguments.elements.size());
    for (const ShellText& element : arguments.elements) add(element);
  });
  // Without words the body does not run; it is told all the same, as that of a function is.
  const bool runs = !parts.front().values.empty();
  if (!runs) parts.front().values.push_back(ShellValue(unknown_value_));
  const bool outer = std::exchange(defined_, defined_ || !runs);
  for (const ShellVariable& part : parts) {
    for (const ShellValue& value : part.values) run_value(node.name, value);
    if (steers_programs(node.name)) tell_assignment(node, node.name, part);
    run_rounds(node, part);
  }
  defined_ = outer;
}

bool ShellWalker::steers_programs(std::string_view name) {
  return has_entry("PATH BASH_ENV ENV IFS"sv, name) || starts_with(name, "LD_"sv) ||
         starts_with(name, "PYTHON"sv) || starts_with(name, "GIT_"sv);
}

void ShellWalker::tell_assignment(const ShellNode& node, std::string_view name,
                                  const ShellVariable& variable) {
  for (const ShellValue& value : variable.values) {
    shell::Command command;
    shell::Assignment assignment;
    assignment.name = std::string(name);
    if (!value.elements.empty()) assignment.value.text = value.elements[0].text;
    assignment.value.begin = node.begin;
    assignment.value.end = node.end;
    command.assignments.push_back(std::move(assignment));
    tell(node, std::move(command));
  }
}

void ShellWalker::run_case(const ShellNode& node) {
  for_each_choice([&] {
    for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
      expand_single(item(node.words, i));
  });
  std::list<Changes> branches;
  for (std::size_t i = 0; i < size(node.nodes) && !stopped(); ++i)
    branches.push_back(run_branch(item(node.nodes, i)));
  merge(branches, true);
}

void ShellWalker::run_coprocess(const ShellNode& node) {
  const bool outer = std::exchange(background_, true);
  const shell::Input input = std::exchange(input_, unknown_input());
  Output* const output = std::exchange(output_, nullptr);
  ++parallel_;
  open_frame();
  if (size(node.nodes) > 0) run(item(node.nodes, 0));
  take_frame();
  --parallel_;
  output_ = output;
  input_ = input;
  background_ = outer;
}

shell::Input ShellWalker::unknown_input() {
  shell::Input input;
  input.kind = shell::Input::Kind::unknown;
  return input;
}

void ShellWalker::run_test(const ShellNode& node) {
  const bool numbers = node.kind == ShellNode::Kind::arithmetic;
  for_each_choice([&] {
    shell::Command command;
    command.words.push_back(plain_word(numbers ? "((" : "[[", node));
    Fields fields{command.words, true};
    for (std::size_t i = 0; i < size(node.words) && !stopped(); ++i)
      expand_word(item(node.words, i), fields);
    command.words.push_back(plain_word(numbers ? "))" : "]]", node));
    const shell::Command told = tell(node, std::move(command));
    if (numbers)
      run_arithmetic_text(told.words[1].text);
    else
      run_subscripts(told);
  });
}

shell::Word ShellWalker::plain_word(std::string_view text, const ShellNode& node) {
  shell::Word word;
  word.text = std::string(text);
  word.begin = node.begin;
  word.end = node.end;
  return word;
}

void ShellWalker::run_pipeline(const ShellNode& node) {
  const std::size_t count = size(node.nodes);
  const bool outer_pipeline = std::exchange(pipeline_, true);
  Output* const outer_output = output_;
  const shell::Input outer_input = input_;
  const shell::Command* const outer_producer = producer_;
  const std::uint64_t outer_producer_id = producer_id_;
  ++parallel_;
  KeptCommand told, producer;
  for (std::size_t i = 0; i < count && !stopped(); ++i) {
    Output output;
    const bool last = i + 1 == count;
    output_ = last ? outer_output : &output;
    keep_ = last ? nullptr : &told;
    const bool simple = this->node(item(node.nodes, i)).kind == ShellNode::Kind::simple;
    open_frame();
    run(item(node.nodes, i));
    // bash can be told to run the last command of a pipeline itself.
    if (last && last_in_shell_)
      merge_one(take_frame());
    else
      take_frame();
    keep_ = nullptr;
    if (last) break;
    // A filter lets through what was written before it.
    const bool filter = producer != nullptr && told != nullptr && !told->words.empty() &&
                        has_entry("awk cat egrep fgrep grep head sed sort tac tail tee uniq"sv,
                                  told->words[0].text);
    if (!filter) producer = std::move(told);
    told.reset();
    producer_ = simple ? producer.get() : nullptr;
    producer_id_ = simple ? ++last_frame_ : 0;
    input_ = input_of(std::move(output));
  }
  --parallel_;
  producer_ = outer_producer;
  producer_id_ = outer_producer_id;
  output_ = outer_output;
  input_ = outer_input;
  pipeline_ = outer_pipeline;
}

shell::Input ShellWalker::input_of(Output output) {
  shell::Input input = unknown_input();
  input.glob = output.glob;
  input.home = output.home;
  if (output.text == std::string_view("\0", 1)) return input;
  input.kind = shell::Input::Kind::known;
  input.text = std::move(output.text);
  return input;
}

ShellText ShellWalker::output_of(std::uint32_t index) {
  Output output;
  run_apart(index, &output, input_);
  while (!output.text.empty() && output.text.back() == '\n') output.text.pop_back();
  return {std::move(output.text), output.assumed, output.glob, output.home};
}

void ShellWalker::run_process(const ShellPart& part, Fields& fields) {
  Output output;
  run_apart(part.node, part.output ? nullptr : &output, part.output ? unknown_input() : input_);
  add_unknown(fields, true);
  fields.word.process = true;
  if (output.text.empty()) return;
  output.glob = output.glob || output.assumed;
  fields.word.printed = input_of(std::move(output));
}

void ShellWalker::run_apart(std::uint32_t index, Output* output, shell::Input input) {
  if (index == no_index || !enter(node(index).begin)) return;
  Output* const outer_output = std::exchange(output_, output);
  const shell::Command* const outer_producer = std::exchange(producer_, nullptr);
  const std::uint64_t outer_producer_id = std::exchange(producer_id_, 0);
  KeptCommand* const outer_keep = std::exchange(keep_, nullptr);
  std::swap(input_, input);
  open_frame();
  run(index);
  take_frame();
  std::swap(input_, input);
  keep_ = outer_keep;
  producer_ = outer_producer;
  producer_id_ = outer_producer_id;
  output_ = outer_output;
  --depth_;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
