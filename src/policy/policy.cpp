// The policy: its options, the compat rules, and the public functions.
//
//   judge()
//     check_form()       too long, or a NUL byte: refused, and nothing else is looked at
//     strict:            judge_walks(), and check_starts() with compat_lists
//       walk_once()        as bash reads the script
//       walk_once()        as a POSIX shell does, if a part reads differently there
//       not_read()         a syntax error or a limit outranks what the judge has found
//     compat:            check_compat(): patterns over the text, in MassGen's order. The walk runs
//                        as well, if commands and files are asked for; its verdict is dropped

#include "policy/judge_internal.hpp"
#include "policy/typed_internal.hpp"

#include "shell/held_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The patterns of one option. `key` is what the operator calls it.
Expected<void> compile_patterns(std::string_view key, const std::vector<std::string>& patterns,
                                std::string_view flags, std::list<Regex>& compiled) {
  for (const std::string& pattern : patterns) {
    Expected<Regex> regex = Regex::compile(pattern, flags);
    if (!regex) {
      Error error = regex.error();
      error.message = concat("%: invalid pattern %: %", {key, in_quotes(pattern), error.message});
      return error;
    }
    compiled.push_back(*std::move(regex));
  }
  return {};
}

Expected<void> check_rule_names(std::string_view key, const std::vector<std::string>& names) {
  const std::vector<RuleInfo>& rules = Policy::rules();
  std::string listed;
  for (const RuleInfo& rule : rules) append_all(listed, {listed.empty() ? "" : ", ", rule.name});
  for (const std::string& wanted : names)
    if (find_where(rules, [&](const RuleInfo& rule) { return rule.name == wanted; }) == rules.end())
      return make_error(ErrorCode::invalid_argument, "%: no rule is called %; there are %",
                        {key, in_quotes(wanted), listed});
  return {};
}

// An operator who sets an option relies on it: one that would have no effect is an error.
Expected<void> check_ask_rules(const PolicyOptions& options) {
  if (auto names = check_rule_names("ask_rules"sv, options.ask_rules); !names) return names;
  for (const RuleInfo& rule : Policy::rules()) {
    if (!is_one_of(rule.name, options.ask_rules)) continue;
    const bool off = is_one_of(rule.name, options.disabled_rules);
    if (off || (options.compat && !rule.compat))
      return make_error(ErrorCode::invalid_argument, "ask_rules: % %",
                        {in_quotes(rule.name), off ? "is in disabled_rules, too: leave one out"
                                                   : "has no pattern in compat mode: use strict"});
  }
  return {};
}

std::uint32_t bits_of(const std::vector<std::string>& names) {
  std::uint32_t bits = 0, next = 1;
  for (const RuleInfo& rule : Policy::rules()) {
    if (is_one_of(rule.name, names)) bits |= next;
    next <<= 1;
  }
  return bits;
}

// What a script reads. Beyond this size it is not looked at, and a shell must not read it.
// `longest`: of what is looked at.
shell::Input known_input(std::string_view text, std::size_t longest) {
  shell::Input input;
  input.kind = shell::Input::Kind::known;
  if (text.size() <= longest)
    input.text = std::string(text);
  else
    input.kind = shell::Input::Kind::unknown;
  return input;
}

}  // namespace

struct Policy::Compiled {
  bool compat = false;
  std::uint32_t rules = 0;          // strict: the bits of those in force
  std::list<Regex> sanitizer = {};  // compat: of those in force
  std::list<Regex> allowed = {};
  bool allow_usual = false;
  std::list<Regex> blocked = {};
  // In strict mode with compat_lists: the same, for the start of the script.
  std::list<Regex> starts_allowed = {};
  std::list<Regex> starts_blocked = {};
  std::uint32_t ask_rules = 0;  // of `rules`
  std::list<Regex> asked = {};
  std::vector<std::pair<std::string, std::string>> reasons = {};
  std::vector<std::string> allowed_patterns = {};
  std::size_t max_command_bytes = 0;

  // Each of these gives a refusal, or an allowing verdict when it has no objection.
  Verdict check_form(std::string_view script) const {
    if (script.size() > max_command_bytes)
      return refusal(
          "command-too-long"sv,
          concat("Command is longer than % bytes (max_command_bytes)", {max_command_bytes}),
          max_command_bytes, script.size());
    const std::size_t nul = script.find('\0');
    if (nul != std::string_view::npos)
      return refusal(
          "nul-byte"sv,
          concat("Command contains a NUL byte (at byte %), which no command can contain", {nul}),
          nul, nul + 1);
    return {};
  }

  // A question stands only where nothing refuses.
  Verdict check_compat(std::string_view script) const {
    Verdict question;
    if (Verdict verdict = check_sanitizer(script, question); !verdict) return verdict;
    if (Verdict verdict = check_allowed(script, allowed); !verdict) return verdict;
    if (Verdict verdict = check_list(script, false, blocked); !verdict) return verdict;
    return question ? check_list(script, true, asked) : question;
  }
  // With compat_lists, which may be empty.
  Verdict check_starts(std::string_view script) const {
    Verdict verdict = check_allowed(script, starts_allowed);
    return verdict ? check_list(script, false, starts_blocked) : verdict;
  }
  Verdict check_sanitizer(std::string_view script, Verdict& question) const {
    auto regex = sanitizer.begin();
    for (const CompatRule& compat_rule : compat_rules()) {
      const Rule rule = compat_rule.rule;
      if (!(rules & bit(rule))) continue;
      const auto found = regex++->find(script);
      if (!found) continue;
      const std::size_t begin = static_cast<std::size_t>(found->data() - script.data());
      Verdict verdict =
          refusal(texts_of(rule).name,
                  concat("Potentially dangerous command detected: %", {compat_rule.message}), begin,
                  begin + found->size());
      verdict.must_ask = (ask_rules & bit(rule)) != 0;
      if (!verdict.must_ask) return verdict;
      if (question) question = std::move(verdict);
    }
    return {};
  }
  Verdict check_allowed(std::string_view script, const std::list<Regex>& patterns) const {
    if (patterns.empty()) return {};
    for (const Regex& regex : patterns)
      if (regex.match(script)) return {};
    return refusal("allowed-commands"sv, not_allowed_message(allowed_patterns, allow_usual, script),
                   0, script.size());
  }
  Verdict check_list(std::string_view script, bool asks, const std::list<Regex>& patterns) const {
    for (const Regex& regex : patterns) {
      if (!regex.match(script)) continue;
      // A match at the start is the leftmost one.
      const auto found = regex.find(script);
      std::string message = concat("%'%'", {listed_message(asks), regex.pattern()});
      append_reason(message, reasons, regex.pattern());
      Verdict verdict =
          refusal(listed_name(asks), std::move(message), 0, found ? found->size() : script.size());
      verdict.must_ask = asks;
      return verdict;
    }
    return {};
  }

  // The pattern with that text, and the key of its list; null: no list has it.
  const Regex* find_pattern(std::string_view text, std::string_view& key) const {
    const std::pair<const std::list<Regex>*, std::string_view> lists[] = {
        {&blocked, "blocked_commands"}, {&asked, "ask_commands"}, {&allowed, "allowed_commands"}};
    for (const auto& [list, name] : lists) {
      key = name;
      for (const Regex& regex : *list)
        if (regex.pattern() == text) return &regex;
    }
    key = "allowed_commands, blocked_commands, ask_commands"sv;
    return nullptr;
  }
  // True if a pattern matches an example as it would match that command: one that allows, if it is
  // the only one; one that refuses, in any form of the command.
  bool matches(const Regex& regex, bool allows, const std::string& command) const {
    Compiled only;
    only.max_command_bytes = command.size();
    (allows ? only.allowed : only.blocked).push_back(regex);
    Judgement judgement;
    if (compat)
      judgement.verdict = only.check_compat(command);
    else
      only.check_strict(command, {}, {{}, {}}, false, judgement);
    return allows ? judgement.verdict.allowed : judgement.verdict.rule == listed_name(false);
  }
  Expected<void> check_examples(const PolicyOptions& options) const {
    for (const auto* examples : {&options.must_match, &options.must_not_match, &options.reasons}) {
      for (const auto& [pattern, text] : *examples) {
        std::string_view key;
        const Regex* const regex = find_pattern(pattern, key);
        const bool allows = key == "allowed_commands"sv;
        const bool is_reason = examples == &options.reasons;
        const bool wanted = examples == &options.must_match;
        if (!regex || (is_reason && allows))
          return make_error(
              ErrorCode::invalid_argument, "%: % has %, and %",
              {key, in_quotes(pattern), is_reason ? "a reason" : "an example",
               regex ? "only refusals and questions show one" : "is in none of these lists"});
        if (!is_reason && matches(*regex, allows, text) != wanted)
          return make_error(ErrorCode::invalid_argument, "%: % % match its example %",
                            {key, in_quotes(pattern), wanted ? "does not" : "must not and does",
                             in_quotes(text)});
      }
    }
    return {};
  }

  // What a script does beside what its text says.
  struct Setting {
    std::string_view work_dir = {};
    const FileTexts& texts;
    const std::vector<std::pair<std::string, std::string>>* variables = nullptr;
    std::string_view held = {};
  };
  // `of_code`: it stands for code, and the allow list is not asked.
  void check_strict(std::string_view script, std::string_view input, const Setting& setting,
                    bool in_full, Judgement& judgement, bool of_code = false) const {
    const Terms terms = this->terms(of_code);
    // The code of a command may be as long as a command.
    constexpr std::size_t longest_input = std::size_t{1} << 20;
    shell::Options options;
    if (!input.empty())
      options.input = known_input(input, of_code ? max_command_bytes : longest_input);
    options.variables = setting.variables;
    options.held = setting.held;
    EarlierFiles found(setting.texts);
    EarlierFiles* files = setting.texts ? &found : nullptr;
    do {
      judgement.commands.clear();
      judgement.files.clear();
      judgement.runs.clear();
      Case judged = {terms, script};
      judged.collected = in_full ? &judgement : nullptr;
      judged.files = files;
      judgement.verdict = judge_walks(judged, options, setting.work_dir);
      judgement.complete = judged.understood;
    } while (are_too_much(files, judgement.verdict));
  }
  // What a script runs that reads this.
  ReadVerdict check_reading(std::string_view script, const Setting& setting,
                            const shell::Input& input) const {
    const Terms terms = this->terms();
    shell::Options options;
    options.input = input;
    options.held = setting.held;
    EarlierFiles found(setting.texts);
    EarlierFiles* files = setting.texts ? &found : nullptr;
    ReadVerdict read;
    do {
      Case judged = {terms, script};
      judged.may_go_on = true;
      judged.files = files;
      read.verdict = judge_walks(judged, options, setting.work_dir);
      read.reader = judged.reader;
      read.open = judged.open;
      read.edits_lines = judged.edits_lines;
    } while (are_too_much(files, read.verdict));
    return read;
  }
  // False: nothing that a command does would be refused or asked about.
  bool judges_anything() const {
    return rules != 0 || !blocked.empty() || !asked.empty() || !terms().allows_all();
  }

 private:
  Terms terms(bool of_code = false) const {
    static const std::list<Regex> none = {};
    return {rules,
            of_code ? none : allowed,
            !of_code && allow_usual,
            blocked,
            allowed_patterns,
            ask_rules,
            asked,
            &reasons};
  }
  // True, and drops the files, if it is these that cannot be judged: then the script is, without.
  static bool are_too_much(EarlierFiles*& files, const Verdict& verdict) {
    if (!files || !files->any() || verdict.rule != "command-too-complex") return false;
    files = nullptr;
    return true;
  }
  // As bash reads the script, and once more as a POSIX shell does where that makes a difference.
  Verdict judge_walks(Case& judged, shell::Options& options, std::string_view work_dir) const {
    options.dialect = shell::Dialect::bash;
    options.steers_programs = steers_programs;
    if (starts_with(work_dir, "/"sv)) {
      options.work_dir = std::string(work_dir);
      if (!is_unknown(work_dir)) enter(judged.start, work_dir, false);
      judged.workspace = is_workspace(judged.start);
    }
    const shell::Outcome outcome = walk_once(judged, options);
    if (judged.too_complex || !outcome.complete) judged.understood = false;
    judged.open = outcome.open;
    const bool goes_on = judged.may_go_on && outcome.open && outcome.error.code == ErrorCode::parse;
    // What a file surely does stands, although the rest of it is too much.
    const bool found = judged.files && judged.files->any() && judged.rank < no_rank;
    const bool limit = !outcome.complete && outcome.error.code == ErrorCode::limit;
    if (found && (limit || judged.too_complex)) return std::move(judged.verdict);
    if (!outcome.complete && !goes_on) return not_read(outcome.error, judged.script);
    if (outcome.dialect_dependent && !judged.too_complex) {
      options.dialect = judged.dialect = shell::Dialect::posix;
      judged.collected = nullptr;
      sort_ranges(judged.tests);
      const shell::Outcome other = walk_once(judged, options);
      // What a POSIX shell cannot read it does not run; what it runs before has been judged.
      if (!other.complete && other.error.code == ErrorCode::limit)
        return not_read(other.error, judged.script);
    }
    if (judged.too_complex)
      return refusal("command-too-complex"sv,
                     "Command is too complex to be judged; split it into several", 0,
                     judged.script.size());
    return std::move(judged.verdict);
  }
  shell::Outcome walk_once(Case& judged, const shell::Options& options) const {
    Judge judge(judged);
    shell::Outcome outcome = shell::walk(
        judged.script, options, [&judge](const shell::Visit& visit) { judge.visit(visit); });
    judge.finish();
    // A name that the script defines may mean anything from then on.
    if (!judged.terms.allows_all() && !outcome.definitions.empty() && allowed_rank < judged.rank) {
      const shell::Definition& definition = outcome.definitions.front();
      judged.refuse_as(allowed_rank, "allowed-commands",
                       concat("% (not allowed: it defines the %%)",
                              {not_allowed_message(allowed_patterns, allow_usual, definition.name),
                               definition.alias ? "alias " : "function ", shown(definition.name)}),
                       definition.begin, definition.end);
    }
    return outcome;
  }
  static Verdict not_read(const Error& error, std::string_view script) {
    const bool limit = error.code == ErrorCode::limit;
    const std::size_t at = std::min(error.offset, script.size());
    return refusal(
        limit ? "command-too-complex" : "syntax",
        concat("%% (at byte %)%",
               {limit ? "Command is too complex to be judged: " : "Command cannot be understood: ",
                printable(error.message), at, limit ? "; split it into several" : ""}),
        at, std::min(at + 1, script.size()));
  }
};

Expected<Policy> Policy::create(const PolicyOptions& options) {
  auto names = check_rule_names("disabled_rules"sv, options.disabled_rules);
  if (names) names = check_ask_rules(options);
  if (!names) return names.failure();
  const bool compat = options.compat;
  if (compat && options.allow_usual)
    return make_error(ErrorCode::invalid_argument,
                      "allow_usual: compat judges a script by its first words: use strict");
  auto compiled = new_shared<Compiled>();
  compiled->compat = compat;
  compiled->ask_rules = bits_of(options.ask_rules);
  compiled->rules = all_rules & ~bits_of(options.disabled_rules);
  if (options.enable_sudo) compiled->rules &= ~lifted_by_sudo;
  compiled->rules |= compiled->ask_rules;
  for (const CompatRule& rule : compat_rules()) {
    if (!compat || !(compiled->rules & bit(rule.rule))) continue;
    Expected<Regex> regex = Regex::compile(rule.pattern);
    if (!regex) return regex.error();
    compiled->sanitizer.push_back(*std::move(regex));
  }

  const std::string_view how = compat ? ""sv : "s"sv;
  auto done = compile_patterns("allowed_commands"sv, options.allowed, how, compiled->allowed);
  if (done) done = compile_patterns("blocked_commands"sv, options.blocked, how, compiled->blocked);
  if (done) done = compile_patterns("ask_commands"sv, options.ask_commands, how, compiled->asked);
  if (done && options.compat_lists && !compat) {
    done = compile_patterns("allowed_commands"sv, options.allowed, {}, compiled->starts_allowed);
    if (done)
      done = compile_patterns("blocked_commands"sv, options.blocked, {}, compiled->starts_blocked);
  }
  if (!done) return done.error();

  compiled->allowed_patterns = options.allowed;
  compiled->allow_usual = options.allow_usual;
  compiled->max_command_bytes = options.max_command_bytes;
  if (auto examples = compiled->check_examples(options); !examples) return examples.failure();
  compiled->reasons = options.reasons;
  return Policy(std::move(compiled));
}

Judgement Policy::judge(std::string_view script, std::string_view work_dir, bool in_full) const {
  return judge_reading(script, {}, work_dir, in_full);
}

Judgement Policy::judge_reading(
    std::string_view script, std::string_view input, std::string_view work_dir, bool in_full,
    const std::vector<std::pair<std::string, std::string>>& variables) const {
  Judgement judgement;
  judgement.verdict = compiled_->check_form(script);
  judgement.complete = judgement.verdict.allowed;
  if (!judgement.verdict) return judgement;
  const bool compat = compiled_->compat;
  if (in_full || !compat)
    compiled_->check_strict(script, input, {work_dir, text_of_, &variables, held_}, in_full,
                            judgement);
  if (compat)
    judgement.verdict = compiled_->check_compat(script);
  else if (judgement.verdict || judgement.verdict.must_ask)
    if (Verdict verdict = compiled_->check_starts(script); !verdict)
      judgement.verdict = std::move(verdict);
  return judgement;
}

Verdict Policy::judge_typed(std::string_view script, std::string_view work_dir, bool terminal,
                            std::string_view text, std::string& typed) const {
  if (compiled_->compat || !compiled_->judges_anything()) return {};
  return judge_typed_text(
      [&](const shell::Input& input) {
        return compiled_->check_reading(script, {work_dir, text_of_, nullptr, held_}, input);
      },
      terminal, text, typed);
}

bool Policy::can_read(std::string_view script, std::string_view work_dir) const {
  Compiled only_syntax;
  only_syntax.max_command_bytes = compiled_->max_command_bytes;
  if (!only_syntax.check_form(script)) return false;
  Judgement judgement;
  only_syntax.check_strict(script, {}, {work_dir, {}}, false, judgement);
  return judgement.verdict.allowed;
}

Judgement Policy::judge_code(const std::vector<std::string>& argv, std::string_view code,
                             std::string_view work_dir) const {
  Judgement judgement;
  if (compiled_->compat) return judgement;
  judgement.verdict = compiled_->check_form(code);
  if (!judgement.verdict) return judgement;
  compiled_->check_strict(script_of_argv(argv), code, {work_dir, text_of_}, false, judgement, true);
  return judgement;
}

Expected<std::vector<std::pair<std::string, std::string>>> Policy::held_by_shell(
    const std::vector<std::string>& reported, bool bash, std::vector<std::string>& left_out) const {
  auto held = read_held(reported, bash, left_out);
  if (!held) return held.failure();
  std::vector<std::pair<std::string, std::string>> texts;
  for (auto& [key, text] : *held) texts.push_back({key, std::move(text)});
  return texts;
}

std::shared_ptr<const Guard> Policy::with_held(const std::string& held) const {
  auto policy = new_shared<Policy>(*this);
  policy->held_ = held;
  return policy;
}

std::shared_ptr<const Guard> Policy::with_files(
    const Function<std::optional<std::string>(const std::string&)>& text_of) const {
  auto policy = new_shared<Policy>(*this);
  policy->text_of_ = text_of;
  return policy;
}

Expected<std::shared_ptr<const Guard>> create_guard(const PolicyOptions& options) {
  auto policy = Policy::create(options);
  if (!policy) return policy.failure();
  return std::shared_ptr<const Guard>(new_shared<const Policy>(std::move(*policy)));
}

Judgement Policy::judge(const std::vector<std::string>& argv, std::string_view work_dir,
                        bool in_full) const {
  return judge(script_of_argv(argv), work_dir, in_full);
}

std::vector<RuleInfo> Policy::rules() {
  std::vector<RuleInfo> infos(rule_count);
  std::uint32_t compat = 0;
  for (const CompatRule& rule : compat_rules()) compat |= bit(rule.rule);
  for (std::size_t i = 0; i < rule_count; ++i) {
    const auto rule = static_cast<Rule>(i);
    const RuleTexts& texts = texts_of(rule);
    infos[i] = {texts.name, texts.message, texts.description, (compat & bit(rule)) != 0};
  }
  return infos;
}

}  // namespace v0_1
}  // namespace codeexec
