// The judge: verdicts, files, and the forms of a command.

#include "policy/judge_internal.hpp"
#include "policy/policy.hpp"
#include "policy/policy_internal.hpp"
#include "policy/rules_internal.hpp"
#include "policy/tables_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void Judge::visit(const shell::Visit& visit) {
  if (case_.too_complex) return;
  command_ = &visit.command;
  producer_ = visit.producer;
  payloads_ = &visit.payloads;
  has_base_ = false;
  environment_.clear();
  start_file_ = nullptr;
  note_variables();
  if (!case_.posix && !command_->words.empty() && has_entry("[[ (("sv, command_->words[0].text))
    case_.tests.push_back(
        {static_cast<std::uint32_t>(command_->begin), static_cast<std::uint32_t>(command_->end)});
  if (case_.collecting) case_.judgement->commands.push_back(visit.command);

  if (command_->fork_bomb && wants(Rule::fork_bomb))
    record(Rule::fork_bomb, command_->begin, command_->end, shown(join(whole())));
  for (const shell::Redirection& redirection : command_->redirections) redirect(redirection);
  forms_.clear();
  generated_.clear();
  for (const shell::Assignment& assignment : command_->assignments)
    judge_variable(whole(), assignment.value, assignment.name, assignment.value.text);
  if (!command_->words.empty()) forms_.push_back(whole());
  // Judging a form may add others.
  for (const Form& form : forms_) {
    if (case_.too_complex) break;
    // What a function does is told with its body.
    if (!command_->own || form.level) judge_form(form);
    if (!form.code && !case_.terms.blocked.empty()) check_blocked(form);
  }
  if (!command_->tolerant && !command_->holes && !command_->compound && !case_.terms.allows_all())
    check_allowed();
}

// variables that nothing sets ---------------------------------------------------------------------

void Judge::note_variables() {
  for (const shell::Assignment& assignment : command_->assignments)
    set_names_.push_back(hash_of_name(assignment.name));
  if (command_->words.empty()) return;
  const std::string_view name = command_->words[0].text;
  const bool tests = has_entry("[ [[ test"sv, name);
  trapped_ |= name == "trap"sv;
  may_be_set_ |= has_entry("source ."sv, name);
  for (const shell::Word& word : command_->words) {
    if (tests && word.unset) set_names_.push_back(std::uint32_t{word.unset});
    if (name == "set"sv && (word.text == "nounset" || (starts_with(word.text, "-"sv) &&
                                                       word.text.find('u') != std::string::npos)))
      may_be_set_ = true;
  }
}

void Judge::check_unset(const Part& part) {
  constexpr std::size_t most = 16;
  const shell::Word& word = *part.word;
  if (!word.unset || command_->defined || may_be_set_ || unset_.size() == most) return;
  const std::size_t at = word.text.find('\0');
  std::string text = word.text;
  if (at == std::string::npos || text.find('\0', at + 1) != std::string::npos) return;
  text.erase(at, 1);
  PathText path;
  enter(path, text, false);
  const bool sweeping = path.names.size() == 1 && word.glob && sweeps(path.names[0]);
  if (path.root != PathText::Root::slash || (!path.names.empty() && !sweeping)) return;
  if (is_set(word.unset)) return;
  for (std::string_view names = given_variables; !names.empty();)
    if (hash_of_name(take_part(names, ' ')) == word.unset) return;
  unset_.push_back({word.unset, word.begin, word.end,
                    concat({shown(written(word)), " is ", text_of(path), " then"})});
}

bool Judge::is_set(std::uint16_t name) const {
  for (const std::uint32_t known : set_names_)
    if (known == name) return true;
  return false;
}

void Judge::finish() {
  // A handler that stands before an assignment runs after it.
  for (const Unset& unset : unset_)
    if (wants(Rule::rm_unset_variable) && !(trapped_ && is_set(unset.name)))
      record(Rule::rm_unset_variable, unset.begin, unset.end, unset.detail);
}

Form Judge::whole() const {
  Form form;
  form.words = command_->words.data();
  form.size = command_->words.size();
  form.code = command_->tolerant;
  form.holes = command_->holes;
  form.input = &command_->input;
  return form;
}

// verdicts ---------------------------------------------------------------------------------------

std::size_t Judge::rank_of(Rule rule) const {
  if (case_.terms.rules & bit(rule)) return static_cast<std::size_t>(rule);
  // A list of what is blocked would mean nothing if its commands could hide.
  const bool hides = rule == Rule::opaque_shell_input || rule == Rule::unknown_command;
  return hides && !case_.terms.blocked.empty() ? blocked_rank : no_rank;
}

RuleTexts texts_of(Rule rule) {
  RuleTexts result;
  std::string_view rest = all_rule_texts;
  for (std::size_t skipped = 4 * static_cast<std::size_t>(rule); skipped > 0; --skipped)
    take_part(rest, '\0');
  for (const char*& text : result.texts) text = take_part(rest, '\0').data();
  return result;
}

void Judge::record(Rule rule, std::size_t begin, std::size_t end, std::string_view detail) {
  const RuleTexts row = texts_of(rule);
  object(rank_of(rule), row.texts[0],
         concat({"Potentially dangerous command detected: ", row.texts[1], " (", detail, "); ",
                 row.texts[3]}),
         begin, end);
}

void Judge::record(Rule rule, const shell::Word& place, const Form& form,
                   std::string_view follows) {
  record(rule, place.begin, place.end, concat({shown(join(form)), follows}));
}

void Judge::object(std::size_t rank, std::string_view rule, std::string message, std::size_t begin,
                   std::size_t end) {
  case_.rank = rank;
  case_.verdict = refusal(rule, std::move(message), begin, end);
}

void Judge::refuse_opaque(const Form& form, const shell::Word& word, std::string_view why) {
  case_.not_understood();
  if (form.code || form.holes || command_->defined || !wants(Rule::opaque_shell_input)) return;
  record(Rule::opaque_shell_input, word.begin, word.end, concat({shown(written(word)), ": ", why}));
}

void Judge::refuse_unknown(const Form& form) {
  case_.not_understood();
  const shell::Word& word = form.words[0];
  if (form.code || form.holes || command_->defined || !wants(Rule::unknown_command)) return;
  if (case_.posix && (case_.in_test(word.begin, word.end) || is_element(written(word)))) return;
  record(Rule::unknown_command, word.begin, word.end, shown(written(word)));
}

bool Judge::is_element(std::string_view text) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || !is_name(text.substr(0, open))) return false;
  const std::size_t equals = text.find('=', open);
  return equals != std::string_view::npos &&
         (text[equals - 1] == ']' || (text[equals - 1] == '+' && text[equals - 2] == ']'));
}

std::string_view Judge::written(const shell::Word& word) const {
  const std::size_t begin = std::min(word.begin, case_.script.size());
  return case_.script.substr(begin, std::max(word.end, begin) - begin);
}

// paths ------------------------------------------------------------------------------------------

const PathText& Judge::base() {
  if (!has_base_) {
    base_ = {};
    enter(base_, command_->work_dir.text, command_->work_dir.home);
    has_base_ = true;
  }
  return base_;
}

PathText Judge::path_of(const Part& part) {
  PathText path = base();
  enter(path, part.text, part.home());
  return path;
}

bool Judge::is_own_path(const Part& part) {
  if (!is_relative(part) || !case_.terms.blocked.empty() ||
      part.text.find('/') == std::string_view::npos)
    return false;
  const PathText path = path_of(part);
  for (const std::string_view name : path.names)
    if (is_unknown(name)) return false;
  if (path.root == PathText::Root::relative) return path.names[0] != ".."sv;
  return case_.workspace && is_within(path, case_.start);
}

bool Judge::removal_is_protected(const Part& part, const PathText& path) {
  // The directory one is in is removed by its contents: `find . -delete` is `rm -rf *`.
  const bool contents = is_relative(part) && path.names == base().names && path.root == base().root;
  return is_kept(path, contents, part.glob());
}

bool Judge::is_kept(const PathText& path, bool contents, bool glob) const {
  if (case_.workspace && is_within(path, case_.start) &&
      (contents || path.names.size() > case_.start.names.size()))
    return false;
  return is_protected(path, contents, glob);
}

// files ------------------------------------------------------------------------------------------

void Judge::collect_file(FileAccess::Kind kind, const Part& part, const PathText& path,
                         bool recursive) {
  FileAccess file;
  file.kind = kind;
  file.path = text_of(path);
  file.recursive = recursive;
  file.glob = part.glob();
  file.begin = part.word->begin;
  file.end = part.word->end;
  if (is_unknown(file.path))
    case_.not_understood();
  else
    case_.judgement->files.push_back(std::move(file));
}

void Judge::redirect(const shell::Redirection& redirection) {
  const bool reads = redirection.kind == shell::Redirection::Kind::read;
  if (!redirection.writes() && !(reads && case_.collecting)) return;
  use_file(redirection.writes() ? Use::write : Use::read, part_of(redirection.target), false,
           Form());
}

void Judge::use_file(Use use, const Part& part, bool recursive, const Form& form) {
  if (part.text.empty() || part.word->process) return;
  if (use == Use::read && !case_.collecting) return;
  if (part.text == "-"sv && (use == Use::read || use == Use::write)) return;
  const PathText path = path_of(part);
  if (command_->widened && recursive && is_unknown(part.text.substr(0, 1)))
    case_.too_complex = true;
  // A connection, which the network's rules are for.
  if (in_places(path, "/dev/tcp /dev/udp"sv, false)) return;
  switch (use) {
    case Use::mv_target:
      if (is_dev_null(path)) {
        if (wants(Rule::mv_dev_null)) record(Rule::mv_dev_null, *part.word, form);
        break;
      }
      [[fallthrough]];
    case Use::write:
    case Use::make:
    case Use::copy_target:
      if (wants(Rule::device_write) && is_device(path, part.glob()))
        record(Rule::device_write, part.word->begin, part.word->end, writes_to(path, form));
      if (use == Use::write) check_place(path, part, form);
      break;
    case Use::chmod:
      if (recursive && wants(Rule::chmod) && removal_is_protected(part, path))
        record(Rule::chmod, *part.word, form);
      break;
    case Use::remove_tree:
      check_unset(part);
      [[fallthrough]];
    case Use::remove:
    case Use::move:
      check_removal(part, path, use == Use::remove_tree, form);
      break;
    case Use::read:
    case Use::change:
      break;
  }
  // What runs elsewhere has files of its own.
  if (case_.collecting && !form.holes && !command_->holes)
    collect_file(kind_of(use), part, path, recursive);
}

FileAccess::Kind Judge::kind_of(Use use) {
  if (use == Use::read) return FileAccess::Kind::read;
  const bool removes = use == Use::remove || use == Use::remove_tree || use == Use::move;
  return removes ? FileAccess::Kind::remove : FileAccess::Kind::write;
}

std::string Judge::writes_to(const PathText& path, const Form& form) {
  const std::string program = form.size ? shown(join(form)) + " " : std::string();
  return concat({program, "writes to ", shown(text_of(path))});
}

void Judge::check_place(const PathText& path, const Part& part, const Form& form) {
  if (in_places(path, harmless_places, false)) return;
  for (const KeptPlace& place : kept_places)
    if (wants(place.rule) && in_places(path, place.paths, part.glob()))
      record(place.rule, part.word->begin, part.word->end, writes_to(path, form));
}

void Judge::check_removal(const Part& part, const PathText& path, bool tree, const Form& form) {
  if (!wants(Rule::rm_protected) || !removal_is_protected(part, path)) return;
  if (!tree && in_places(path, removable_places, false)) return;
  if (form.tested && in_places(path, scratch_places, false)) return;
  record(Rule::rm_protected, *part.word, form, concat({" removes ", shown(text_of(path))}));
}

// forms ------------------------------------------------------------------------------------------

void Judge::add_form(const Form& form) {
  if (form.size == 0) return;
  if (form.level > max_peeled_levels)
    case_.too_complex = true;
  else
    forms_.push_back(form);
}

void Judge::add_form(Form form, std::vector<shell::Word> words) {
  std::size_t bytes = 0;
  for (const shell::Word& word : words) bytes += word.text.size() + sizeof word;
  if (!case_.charge_bytes(bytes)) return;
  generated_.push_back(std::move(words));
  form.words = generated_.back().data();
  form.size = generated_.back().size();
  add_form(form);
}

void Judge::add_payload(const Form& form, std::string text, bool same_shell,
                        std::size_t first_argument) {
  if (!case_.charge_bytes(text.size() + form.input->text.size())) return;
  shell::Payload payload;
  payload.text = same_shell ? std::move(text) : concat({environment_, text});
  payload.same_shell = same_shell;
  payload.tolerant = form.code;
  payload.holes = form.holes;
  payload.input = *form.input;
  for (std::size_t i = first_argument; i < form.size; ++i)
    payload.arguments.push_back(shell::Word(form.words[i]));
  payloads_->push_back(std::move(payload));
}

void Judge::judge_form(const Form& form) {
  if (!case_.charge_words(form.size)) return;
  const shell::Word& word = form.words[0];
  const std::string_view name = base_name(word.text);
  if (form.roots && is_found(form)) return judge_found(form);
  if (!word.known() || word.process) {
    // "$VENV/bin/python" is some python, whatever the variable holds.
    const bool known_name = name.size() < word.text.size() && !name.empty() && !is_unknown(name);
    const bool blocking = !case_.terms.blocked.empty();
    if ((word.split && blocking) || word.process || !known_name) return refuse_unknown(form);
    // Where nothing comes of $PY, the next word is the command.
    if (word.split) add_form(form.from(1));
  }
  if (word.glob && is_pattern(name)) {
    if (sweeps(name) && is_own_path(part_of(word))) return;
    return judge_pattern(form, name);
  }
  if (!name.empty()) judge_program(form, name);
}

void Judge::judge_pattern(const Form& form, std::string_view pattern) {
  constexpr std::size_t longest = 256;
  constexpr std::size_t cost = 64;
  if (!case_.charge_words(cost)) return;
  bool matched = false;
  const auto try_name = [&](std::string_view name) {
    if (pattern.size() > longest || !glob_matches(pattern, name)) return;
    matched = true;
    if (case_.charge_words(form.size)) judge_program(form, name);
  };
  for (std::string_view table : {refused_programs, file_programs}) {
    while (!table.empty()) {
      std::string_view line = take_part(table, '\n');
      try_name(take_part(line, '|'));
    }
  }
  for (std::string_view table = wrapper_table; !table.empty();) {
    std::string_view line = take_part(table, '\n');
    try_name(take_part(line, ';'));
  }
  for (std::string_view names = shells; !names.empty();) try_name(take_part(names, ' '));
  const bool blocking = !case_.terms.blocked.empty();
  if (blocking || (!matched && form.words[0].text.find('/') == std::string::npos))
    refuse_unknown(form);
}

void Judge::judge_program(const Form& form, std::string_view name) {
  check_refused(form, name);
  FileProgram program;
  if (find_file_program(name, program)) judge_files(program, form);
  if (has_entry("export declare typeset readonly"sv, name))
    for (std::size_t i = 1; i < form.size; ++i) judge_exported(form, form.words[i]);
  Wrapper wrapper;
  const bool loader = starts_with(name, "ld-"sv) && name.find(".so") != std::string_view::npos;
  if (find_wrapper(loader ? "ld.so"sv : name, wrapper)) return peel(wrapper, form);
  if (has_entry(shells, name)) return judge_shell(form);
  const std::size_t version = name.find_last_not_of("0123456789.");
  const std::string_view language = name.substr(0, version + 1);
  if (find_wrapper(language, wrapper) && wrapper.has('Y')) return peel(wrapper, form);
  if (name == "eval"sv) return judge_eval(form);
  if (has_entry("source ."sv, name)) return judge_source(form);
  if (name == "trap"sv) return judge_trap(form);
  if (name == "alias"sv) return judge_alias(form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
