// The judge: programs that start another one, such as env, su and watch.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/tables_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void Judge::peel(const Wrapper& wrapper, const Form& form) {
  switch (wrapper.kind) {
    case Wrapper::Kind::plain:
    case Wrapper::Kind::assignments:
    case Wrapper::Kind::lookup:
      return peel_plain(wrapper, form);
    case Wrapper::Kind::env:
      return peel_env(wrapper, form);
    case Wrapper::Kind::flock:
      return peel_flock(wrapper, form);
    case Wrapper::Kind::gdb:
      return peel_gdb(form);
    case Wrapper::Kind::capsh:
      return peel_capsh(form);
    case Wrapper::Kind::find:
      return peel_find(form);
    case Wrapper::Kind::parallel:
      return peel_parallel(wrapper, form);
    case Wrapper::Kind::script:
      return peel_script(wrapper, form);
    case Wrapper::Kind::sg:
      return peel_sg(form);
    case Wrapper::Kind::runuser:
      return peel_runuser(wrapper, form);
    case Wrapper::Kind::su:
      return peel_su(wrapper, form);
    case Wrapper::Kind::at:
      // What it does with input that is not known is not the script's doing.
      if (form.input->kind == shell::Input::Kind::known) read_input(form, form.size, false);
      return;
    case Wrapper::Kind::watch:
    case Wrapper::Kind::entr:
      return peel_watch(wrapper, form);
    case Wrapper::Kind::xargs:
      return peel_xargs(wrapper, form);
  }
}

void Judge::peel_plain(const Wrapper& wrapper, const Form& form) {
  bool looks_up = false;
  std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part&) { looks_up |= name == "v" || name == "V"; },
      ignore_part);
  if (looks_up && wrapper.kind == Wrapper::Kind::lookup) return;
  if (wrapper.kind == Wrapper::Kind::assignments)
    while (i < form.size && is_assignment(form.words[i].text)) ++i;
  add_form(form.from(i + wrapper.operands));
}

void Judge::peel_env(const Wrapper& wrapper, const Form& form) {
  Part script;
  std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part& argument) {
        if (lists_option("S s split-string", name)) script = argument;
      },
      ignore_part);
  if (script.word) return run_words(form, std::string(script.text), i, *script.word);
  // For env, any word with = in it is an assignment.
  for (; i < form.size; ++i) {
    const shell::Word& word = form.words[i];
    const std::size_t equals = word.text.find('=');
    if (word.text != "-" && equals == std::string::npos) break;
    if (equals == std::string::npos) continue;
    const std::string name = word.text.substr(0, equals);
    const std::string value = word.text.substr(equals + 1);
    judge_variable(form, word, name, value);
    if (!is_name(name) || !case_.charge_bytes(word.text.size())) continue;
    environment_ += name + "=";
    append_quoted(environment_, value);
    environment_ += '\n';
  }
  add_form(form.from(i));
}

void Judge::judge_variable(const Form& form, const shell::Word& word, std::string_view name,
                           std::string_view value) {
  const std::string path = join_shell_path(command_->work_dir.text, value);
  const bool runs = name == "BASH_ENV" || name == "ENV";
  if (starts_with(name, "BASH_FUNC_") ||
      (runs && (word.process || is_unknown(value) || starts_with(path, "/dev/") ||
                starts_with(path, "/proc/"))))
    refuse_opaque(form, word, "a shell would run what is not known before it runs");
}

void Judge::run_words(const Form& form, std::string script, std::size_t first,
                      const shell::Word& word) {
  if (is_unknown(script)) refuse_opaque(form, word, "part of it is not known before it runs");
  for (std::size_t i = first; i < form.size; ++i) {
    script += ' ';
    append_quoted(script, form.words[i].text);
  }
  add_payload(form, std::move(script), false);
}

void Judge::run_string(const Form& form, const Part& part, std::size_t first_argument) {
  if (is_unknown(part.text) || part.glob())
    refuse_opaque(form, *part.word, "the script is not known before it runs");
  add_payload(form, std::string(part.text), false, first_argument);
}

void Judge::peel_flock(const Wrapper& wrapper, const Form& form) {
  std::size_t i =
      read_arguments(form, wrapper.syntax, Order::stop_at_operand, ignore_option, ignore_part);
  i += wrapper.operands;
  if (i >= form.size) return;
  const std::string& text = form.words[i].text;
  if (text != "-c" && text != "--command") return add_form(form.from(i));
  if (i + 1 < form.size) run_string(form, part_of(form.words[i + 1]));
}

void Judge::peel_gdb(const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (form.words[i].text == "--args" || form.words[i].text == "-args")
      return add_form(form.from(i + 1));
}

void Judge::peel_capsh(const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (form.words[i].text == "--" || form.words[i].text == "==") return judge_shell(form.from(i));
}

void Judge::peel_script(const Wrapper& wrapper, const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i)
    if (form.words[i].text == "--") return add_form(form.from(i + 1));
  Part script;
  read_arguments(
      form, wrapper.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (lists_option("c command", name)) script = argument;
      },
      [&](const Part& operand) { use_file(Use::write, operand, false, form); });
  if (script.word) run_string(form, script);
}

void Judge::peel_sg(const Form& form) {
  std::size_t i = form.size > 1 && form.words[1].text == "-" ? 3 : 2;
  if (i < form.size && form.words[i].text == "-c") ++i;
  if (i < form.size) run_string(form, part_of(form.words[i]));
}

void Judge::peel_runuser(const Wrapper& wrapper, const Form& form) {
  bool direct = false;
  const std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part&) { direct |= name == "u" || name == "user"; },
      ignore_part);
  if (direct) return add_form(form.from(i));
  peel_su(wrapper, form);
}

void Judge::peel_su(const Wrapper& wrapper, const Form& form) {
  Part script;
  std::size_t operands = 0;
  read_arguments(
      form, wrapper.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (lists_option("c command session-command", name)) script = argument;
      },
      [&](const Part& operand) { operands += operand.text != "-"; });
  if (script.word) return run_string(form, script);
  if (operands <= 1) read_input(form, form.size, false);
}

void Judge::peel_watch(const Wrapper& wrapper, const Form& form) {
  bool joins = wrapper.kind == Wrapper::Kind::watch;
  const std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part&) {
        if (wrapper.kind == Wrapper::Kind::entr && name == "s") joins = true;
        if (wrapper.kind == Wrapper::Kind::watch && (name == "x" || name == "exec")) joins = false;
      },
      ignore_part);
  if (i >= form.size) return;
  if (!joins) return add_form(form.from(i));
  std::string script = join(form.from(i));
  if (is_unknown(script))
    refuse_opaque(form, form.words[i], "the script is not known before it runs");
  add_payload(form, std::move(script), false);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
