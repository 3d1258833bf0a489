// The judge: shells, eval, source, trap and alias, which read text as a script.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/tables_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void Judge::judge_shell(const Form& form) {
  if (start_file_)
    refuse_opaque(form, *start_file_, "a shell would run what is not known before it runs"sv);
  bool has_command = false, from_input = false, reads_only = false;
  std::size_t i = 1;
  for (; i < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    if (text.empty() || (text[0] != '-' && text[0] != '+') || text == "+"sv) break;
    if (has_entry("- --"sv, text)) {
      ++i;
      break;
    }
    if (starts_with(text, "--"sv)) {
      if (has_entry("--version --help"sv, text)) return;
      if (lists_option(shell_syntax.longs, text.substr(2)) && ++i < form.size &&
          check_script_file(form, form.words[i]))
        read_input(form, i, false);
      continue;
    }
    if (is_unknown(text))
      refuse_opaque(form, form.words[i], "its options are not known before it runs"sv);
    for (const char letter : text.substr(1)) {
      const bool on = text[0] == '-';
      if (letter == 'n') reads_only = on;
      has_command |= letter == 'c' && on;
      may_be_set_ |= letter == 'u' && on;
      from_input |= letter == 's' && on;
      i += shell_syntax.letters.find(letter) != std::string_view::npos;
    }
  }
  if (reads_only) return;
  if (has_command) {
    if (i < form.size) run_string(form, part_of(form.words[i]), i + 1);
  } else if (i < form.size && !from_input) {
    if (check_script_file(form, form.words[i])) read_input(form, i, false);
  } else {
    read_input(form, i, false);
  }
}

bool Judge::check_script_file(const Form& form, const shell::Word& word) {
  const std::string text = join_shell_path(command_->work_dir.text, word.text);
  if (has_entry("/dev/stdin /dev/fd/0 /proc/self/fd/0"sv, text)) return true;
  if (word.printed.kind == shell::Input::Kind::known) return true;
  const std::string_view name = base_name(text);
  const bool known_name = name.size() < text.size() && !name.empty() && !is_unknown(name);
  const bool descriptor = starts_with(text, "/dev/fd/"sv) ||
                          (starts_with(text, "/proc/"sv) && text.find("/fd/") != std::string::npos);
  if (word.process || (!word.known() && (word.split || !known_name)) || descriptor)
    refuse_opaque(form, word, "the script is not known before it runs"sv);
  else
    use_file(Use::read, part_of(word), false, form);
  return false;
}

void Judge::read_input(const Form& form, std::size_t first, bool same_shell) {
  const bool prints =
      first < form.size && form.words[first].printed.kind == shell::Input::Kind::known;
  const shell::Input& input = prints ? form.words[first].printed : *form.input;
  if (input.kind == shell::Input::Kind::inherited) return;
  // Nothing at all is known of it, even where parts may be unknown.
  Form fed = form;
  fed.holes = fed.holes && input.kind == shell::Input::Kind::known;
  if (input.kind == shell::Input::Kind::unknown || is_unknown(input.text) || input.glob)
    refuse_opaque(fed, form.words[0], "what it reads is not known before it runs"sv);
  if (input.kind == shell::Input::Kind::unknown || !case_.charge_bytes(input.text.size())) return;
  shell::Payload payload;
  payload.text = input.text;
  payload.same_shell = same_shell;
  payload.tolerant = form.code;
  payload.holes = form.holes;
  if (first < form.size && !same_shell) payload.arguments.push_back(shell::Word(form.words[0]));
  for (std::size_t i = first; i < form.size && !same_shell; ++i)
    payload.arguments.push_back(shell::Word(form.words[i]));
  payloads_->push_back(std::move(payload));
}

bool Judge::is_followed(const Form& form) const {
  const std::vector<shell::Word>& words = command_->words;
  std::size_t i = 0;
  while (i < words.size() && has_entry("command builtin"sv, words[i].text)) ++i;
  return i == form.level && i < words.size() && form.words == &words[i];
}

void Judge::judge_eval(const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i) {
    if (form.words[i].known() && !form.words[i].glob) continue;
    refuse_opaque(form, form.words[i], "part of it is not known before it runs"sv);
    break;
  }
  if (!is_followed(form) && form.size > 1) add_payload(form, join(form.from(1)), true);
}

void Judge::judge_source(const Form& form) {
  const std::size_t i = form.size > 1 && form.words[1].text == "--" ? 2 : 1;
  if (i < form.size && check_script_file(form, form.words[i])) read_input(form, i, true);
}

void Judge::judge_trap(const Form& form) {
  std::size_t i = 1;
  const bool operands = i < form.size && form.words[i].text == "--";
  if (operands) ++i;
  if (i + 1 >= form.size || (!operands && starts_with(form.words[i].text, "-"sv))) return;
  // Unknown parts are expansions to the walk, as `trap "rm -rf $tmp" EXIT` means them.
  if (!is_followed(form)) add_payload(form, form.words[i].text, true);
}

void Judge::judge_alias(const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    if (word.known() || word.text.find('=') == std::string::npos) continue;
    refuse_opaque(form, word, "part of it is not known before it runs"sv);
    return;
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
