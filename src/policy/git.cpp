// git as a launcher: what it starts for a setting, an alias, an address, or under another name.
//
//   git -c alias.p='push -f' p       the form git push -f
//   git config alias.p '!ls'; git p  the script ls, where it is set and where it is used
//   GIT_CONFIG_VALUE_0=...           a setting: GIT_CONFIG_KEY_0 is its name
//   git --config-env=alias.p=X p     the value is that of the variable X
//   git-push, git send-pack          the form git push
//   git clone ext::'sh -c ls'        the script sh -c ls

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Commands of git that send what push would send.
constexpr auto pushing_commands = NameSet{"http-push", "receive-pack", "send-pack"};

// The value of a variable that the command sets, as an assignment or as a word of env or export.
bool find_value(const Subject& subject, const Form& form, std::string_view name,
                std::string_view& value) {
  for (const shell::Assignment& assignment : subject.command.assignments) {
    if (assignment.name != name) continue;
    value = assignment.value.text;
    return true;
  }
  for (const Form* each : {&form, subject.forms.empty() ? &form : &subject.forms.front()}) {
    for (std::size_t i = 0; i < each->size; ++i) {
      std::string_view word = each->words[i].text;
      if (word.find('=') == std::string_view::npos || take_part(word, '=') != name) continue;
      value = word;
      return true;
    }
  }
  return false;
}

// ext::COMMAND, in which a % stands before a blank of the command.
void judge_address(Subject& subject, const Form& form, std::string_view address) {
  constexpr std::string_view scheme = "ext::";
  if (!starts_with(address, scheme)) return;
  std::string script;
  for (const char c : address.substr(scheme.size()))
    if (c != '%') script += c;
  run_guess(subject, form, script);
}

// The words of a form of git, with others in place of its first `words`.
void add_git_form(Subject& subject, const Form& form, std::size_t words,
                  std::initializer_list<std::string_view> others) {
  std::vector<shell::Word> made;
  for (const std::string_view other : others) made.push_back(word_like(form.words[0], other));
  for (std::size_t i = words; i < form.size; ++i) made.push_back(shell::Word(form.words[i]));
  subject.add_form(form.from(0), std::move(made));
}

// What an alias stands for, and the words behind it.
void use_alias(Subject& subject, const Form& form, std::string_view alias, std::string_view value) {
  std::string_view first = value;
  if (take_part(first, ' ') == alias) return;
  std::string script =
      starts_with(value, "!"sv) ? std::string(value.substr(1)) : concat("git %", {value});
  for (std::size_t i = 1; i < form.size; ++i) {
    script += ' ';
    append_quoted(script, form.words[i].text);
  }
  run_guess(subject, form, script);
}

}  // namespace

inline namespace inner {

void judge_setting(Subject& subject, const Form& form, std::string_view name,
                   std::string_view value) {
  const std::string key = in_lower_case(name);
  const std::string_view section = std::string_view(key).substr(0, key.find('.'));
  const std::string_view last = std::string_view(key).substr(key.rfind('.') + 1);
  judge_address(subject, form, value);
  // url.ext::COMMAND.insteadOf
  if (section == "url"sv && name.size() > last.size() + 5)
    judge_address(subject, form, name.substr(4, name.size() - last.size() - 5));
  if (section == "alias"sv) {
    constexpr std::size_t most = 64;
    std::map<std::string, std::string, std::less<>>& aliases = subject.judged.git_aliases;
    if (aliases.size() < most && subject.judged.charge_bytes(value.size()))
      aliases[std::string(last)] = std::string(value);
    // One without ! is a command of git.
    if (!starts_with(value, "!"sv)) return run_guess(subject, form, concat("git %", {value}));
  } else if (section != "pager"sv && !command_settings.has(last)) {
    return;
  }
  run_guess(subject, form, value);
}

void judge_git_variable(Subject& subject, const Form& form, std::string_view name,
                        std::string_view value) {
  constexpr std::string_view one = "GIT_CONFIG_VALUE_";
  if (starts_with(name, one)) {
    std::string_view key;
    if (find_value(subject, form, concat("GIT_CONFIG_KEY_%", {name.substr(one.size())}), key) &&
        !is_unknown(key))
      return judge_setting(subject, form, key, value);
    run_guess(subject, form, value);
    return run_guess(subject, form, concat("git %", {value}));
  }
  if (name != "GIT_CONFIG_PARAMETERS"sv) return;
  // 'name=value' 'name'='value'
  std::string setting;
  bool quoted = false;
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const char c = i < value.size() ? value[i] : ' ';
    if (c == '\'') {
      quoted = !quoted;
    } else if (c != ' ' || (quoted && i < value.size())) {
      setting += c;
    } else {
      std::string_view text = setting;
      const std::string_view key = take_part(text, '=');
      if (!key.empty()) judge_setting(subject, form, key, text);
      setting.clear();
    }
  }
}

// Called when the settings of its options have been judged: they may make the alias that follows.
void peel_git(Subject& subject, const Wrapper& wrapper, const Form& form) {
  Arguments each(form, wrapper.syntax, Order::stop_at_operand);
  while (each.next()) {
    if (!each.part.word || !each.has("config-env")) continue;
    std::string_view variable = each.part.text, value;
    const std::string_view name = take_part(variable, '=');
    if (find_value(subject, form, variable, value))
      judge_setting(subject, form, name, value);
    else
      judge_setting(subject, form, name, std::string_view("\0", 1));
  }
  const std::size_t i = each.at();
  if (i >= form.size) return;
  if (!wrapper.has(Wrapper::has_commands)) return add_git_form(subject, form, i, {"git"sv});
  const std::string_view verb = form.words[i].text;
  if (pushing_commands.has(verb)) add_git_form(subject, form, i + 1, {"git"sv, "push"sv});
  const auto& aliases = subject.judged.git_aliases;
  if (const auto alias = aliases.find(in_lower_case(verb)); alias != aliases.end())
    use_alias(subject, form.from(i), alias->first, alias->second);
  for (std::size_t k = i + 1; k < form.size; ++k) {
    std::string_view word = form.words[k].text;
    if (starts_with(word, "--"sv)) take_part(word, '=');
    judge_address(subject, form, word);
  }
}

void peel_git_program(Subject& subject, const Form& form, std::string_view name) {
  add_git_form(subject, form, 1, {"git"sv, name.substr(4)});
}

void peel_git_config(Subject& subject, const Wrapper& wrapper, const Form& form) {
  std::vector<Part> words;
  for (Arguments each(form, wrapper.syntax, Order::options_anywhere); each.next();)
    if (!each.is_option) words.push_back(each.part);
  const std::size_t first = !words.empty() && words[0].text == "set"sv;
  if (words.size() >= first + 2)
    judge_setting(subject, form, words[first].text, words[first + 1].text);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
