// The walker: strings that are run, and what a command is reported with.

#include "shell/parser_internal.hpp"
#include "shell/runner_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Ends the walk if a text could not be read.
void note_text_error(ShellBudget& budget, const ShellWalk::Parsed& parsed, bool tolerant) {
  if (!parsed.failed || budget.stopped()) return;
  if (tolerant && parsed.error.code != ErrorCode::limit) return;
  shell::Outcome& outcome = budget.outcome;
  outcome.complete = false;
  outcome.error = parsed.error;
  outcome.error.message = concat("in the string that this command runs: %", {parsed.error.message});
}

}  // namespace

inline namespace inner {

// A command is handed to the visitor at once. The visitor may give strings that the command runs,
// as `sh -c STRING`; each is parsed into the same tree, and run before the walk goes on.

void ShellRunner::report(const ShellNode& node, shell::Command& command) {
  ShellBudget& budget = walk.budget;
  if (budget.stopped()) return;
  if (place.held) return report_held(command);
  command.begin = node.begin;
  command.end = node.end;
  command.depth = budget.depth;
  command.pipeline = place.pipeline;
  command.background = place.background;
  command.defined = place.defined;
  command.tolerant = place.tolerant;
  command.holes = place.holes;
  command.file = place.file;
  command.widened = walk.scopes.widened();
  const ShellValue& directory = walk.scopes.value_of(work_dir_key);
  if (!directory.elements.empty()) {
    budget.charge(directory.elements[0].text.size());
    static_cast<ShellText&>(command.work_dir) = directory.elements[0];
    command.work_dir.glob = command.work_dir.split = false;
  }
  ShellSteering(*this).find_start_files(command);
  command.own = walk.names.is_own(*this, command);
  command.fork_bomb = walk.names.is_fork_bomb(place, command);
  if (!budget.count_command(command.begin)) return;
  if (place.keep != nullptr) *place.keep = new_shared<shell::Command>(command);
  std::vector<shell::Payload> payloads;
  std::vector<std::string> fetched, changed, run;
  walk.visit({command, place.producer, payloads, fetched, changed, run});
  for (const std::string& word : run) walk.files.note_run(word);
  for (const std::string& path : fetched) write_file(path, unknown_input(), false);
  for (const std::string& path : changed)
    if (walk.files.find(file_key(path)) != nullptr) write_file(path, unknown_input(), false);
  for (shell::Payload& payload : payloads)
    if (!budget.stopped()) follow(payload, command);
}

// Not the assignments in functions, which their calls report.
void ShellRunner::report_held(const shell::Command& command) {
  if (place.defined || command.assignments.empty()) return;
  shell::Command shown;
  shown.assignments = command.assignments;
  shown.compound = true;
  ShellRunner before(*this);
  before.place.held = false;
  before.report({}, shown);
}

// Files that the script writes ------------------------------------------------------------------

std::string ShellRunner::file_key(std::string_view path) const {
  const ShellValue& directory = walk.scopes.value_of(work_dir_key);
  return join_shell_path(directory.elements.empty() ? "" : directory.elements[0].text, path);
}

void ShellRunner::write_file(std::string_view path, shell::Input text, bool append) {
  if (place.defined || starts_with(path, "/dev/"sv)) return;
  const std::string key = file_key(path);
  if (!has_nul(key)) walk.files.write(key, std::move(text), append);
}

void ShellRunner::write_redirected(const std::vector<shell::Redirection>& redirections,
                                   const ShellPrinted& printed, bool local) {
  for (const shell::Redirection& redirection : redirections) {
    const std::string& path = redirection.target.text;
    if (!redirection.writes() || redirection.target.process) continue;
    if (local && walk.files.find(file_key(path)) == nullptr) continue;
    const bool known = redirection.fd == 1 && printed.records();
    write_file(path, known ? input_of(printed) : unknown_input(),
               redirection.kind == shell::Redirection::Kind::append);
  }
}

void ShellRunner::find_text(shell::Word& word) const {
  if (word.process || !word.known() || walk.files.empty()) return;
  // A directory of several is chosen before the values of other variables, whatever the word is.
  walk.scopes.value_of(work_dir_key);
  if (walk.files.may_have(word.text)) word.printed = walk.files.find(file_key(word.text));
}

// `sh -c STRING name a b` is a shell of its own: $0 is name, $1 and $2 are a and b, and what it
// changes ends with it. `eval` and the like are in the same shell, and write where it writes.

void ShellRunner::follow(shell::Payload& payload, const shell::Command& command) {
  ShellScopes& scopes = walk.scopes;
  ShellRunner inner(*this);
  if (!payload.same_shell || !(payload.input == *place.input)) inner.place.input = &payload.input;
  inner.place.tolerant = place.tolerant || payload.tolerant;
  inner.place.holes = place.holes || payload.holes;
  inner.place.starting = place.starting || payload.starts;
  if (!payload.path.empty()) {
    if ((payload.file && payload.path == place.file) || !walk.budget.charge(payload.path.size()))
      return;
    inner.place.file = walk.syntax.keep(std::move(payload.path));
  }
  const bool tolerant = inner.place.tolerant || inner.place.holes;
  if (payload.same_shell) {
    inner.run_text(std::move(payload.text), command, tolerant);
    return;
  }
  inner.place.output = &walk.nowhere;
  ++inner.place.shells;
  scopes.open_frame();
  ShellValue arguments = empty_array();
  for (std::size_t i = 1; i < payload.arguments.size(); ++i)
    arguments.elements.push_back(payload.arguments[i]);
  if (!payload.arguments.empty()) scopes.assign("0"sv, scalar_value(payload.arguments[0]));
  ShellEvaluation(inner).expand_arguments(arguments.elements);
  scopes.assign(positional_key, std::move(arguments));
  if (payload.file) {
    inner.run_file(payload.text, command, tolerant);
  } else {
    const bool open = inner.run_text(std::move(payload.text), command, tolerant);
    if (payload.input.script && !place.input->script)
      walk.budget.outcome.open = walk.budget.outcome.open || open;
  }
  scopes.take_frame();
}

void ShellRunner::run_file(const std::string& text, const shell::Command& command, bool tolerant) {
  if (!walk.budget.enter(command.begin)) return;
  const auto [at, is_new] = walk.parsed_files.try_emplace(text);
  ShellWalk::Parsed& parsed = at->second;
  if (is_new) parsed = parse_text(text, command);
  if (!parsed.running && parsed.root != no_index) {
    const ShellRange nodes = walk.node(parsed.root).nodes;
    const ShellLeft left = walk.scopes.left;
    parsed.running = true;
    if (size(nodes) > 0) walk.bodies.run(*this, nodes, {}, ShellVariable());
    parsed.running = false;
    walk.scopes.left = left;
  }
  note_text_error(walk.budget, parsed, tolerant || has_nul(text) || !place.file.empty());
  walk.budget.leave();
}

bool ShellRunner::run_text(std::string text, const shell::Command& command, bool tolerant) {
  if (!walk.budget.enter(command.begin)) return false;
  // What unknown parts make of a string is not for the parser to say.
  tolerant = tolerant || has_nul(text) || !place.file.empty();
  const ShellWalk::Parsed parsed = parse_text(std::move(text), command);
  if (parsed.root != no_index) run(parsed.root);
  const bool open = parsed.open && !walk.budget.stopped();
  note_text_error(walk.budget, parsed, tolerant);
  walk.budget.leave();
  return open;
}

ShellWalk::Parsed ShellRunner::parse_text(std::string text, const shell::Command& command) {
  const ShellBudget& budget = walk.budget;
  // The limit is for the script and all strings together. A string counts each time it is run.
  walk.syntax.most_simple = 4 * budget.options.limits.max_written;
  walk.syntax.texts.push_back(std::move(text));
  const auto begin = static_cast<std::uint32_t>(command.begin);
  const auto end = static_cast<std::uint32_t>(command.end);
  ShellParser parser(walk.syntax, budget.options, walk.syntax.texts.back(), {begin, end, false},
                     budget.depth);
  ShellWalk::Parsed parsed;
  parsed.root = parser.parse();
  parsed.failed = parser.failed();
  parsed.open = parser.open();
  parsed.error = parser.error();
  shell::Outcome& outcome = walk.budget.outcome;
  outcome.dialect_dependent = outcome.dialect_dependent || parser.dialect_dependent();
  return parsed;
}

void ShellRunner::run_here(std::string text) {
  shell::Command command;
  command.begin = walk.here_begin;
  command.end = walk.here_end;
  run_text(std::move(text), command, true);
}

void ShellRunner::run_anything() { run_here(std::string(unknown_part)); }

// BASH_ALIASES[name]=text is `alias name=text`, and BASH_CMDS[name]=path is `hash -p path name`.

bool is_command_table(std::string_view name) { return is_any(name, "BASH_ALIASES", "BASH_CMDS"); }

void ShellRunner::run_table_entry(std::string_view table, std::string_view name,
                                  std::string_view value) {
  if (table == "BASH_ALIASES"sv)
    run_here(concat("alias -- %", {shell_word(concat("%=%", {name, value}))}));
  else
    run_here(concat("hash -p % %", {shell_word(value), shell_word(name)}));
}

void ShellRunner::assign(std::string_view name, ShellValue&& value) {
  if (is_name(name)) ShellSteering(*this).report(name, value);
  store(name, std::move(value));
}

void ShellRunner::store(std::string_view name, ShellValue&& value) {
  if (is_name(name)) {
    ShellSteering(*this).store(name, value);
    ShellEvaluation(*this).expand_value(name, value);
  }
  if (walk.budget.bash() && is_command_table(name))
    run_table_entry(name, unknown_part, unknown_part);
  walk.scopes.assign(name, std::move(value));
}

void ShellRunner::assign_unknown(std::string_view text) {
  const std::string_view name = text.substr(0, text.find('['));
  if (is_name(name)) assign(name, unknown_scalar());
}

void ShellRunner::run_traps() {
  ShellRunner inner(*this);
  inner.place.handler = true;
  for (const ShellWalk::Trap& trap : walk.traps) {
    if (walk.budget.stopped()) return;
    shell::Command command;
    command.begin = trap.begin;
    command.end = trap.end;
    inner.place.file = trap.file;
    inner.run_text(trap.text, command, false);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
