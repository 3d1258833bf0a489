// The judge: programs whose own language starts others: git's settings, editors, make, sed, tar.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// git --------------------------------------------------------------------------------------------

void Judge::judge_setting(const Form& form, std::string_view name, std::string_view value) {
  const std::string key = in_lower_case(name);
  const std::string_view section = std::string_view(key).substr(0, key.find('.'));
  const std::string_view last = std::string_view(key).substr(key.rfind('.') + 1);
  // An alias without ! is a command of git.
  const bool script = section == "alias"sv
                          ? starts_with(value, "!"sv)
                          : section == "pager"sv || has_entry(command_settings, last);
  if (script) run_guess(form, value);
}

void Judge::peel_git_config(const Wrapper& wrapper, const Form& form) {
  std::vector<Part> words;
  read_arguments(form, wrapper.syntax, Order::options_anywhere, ignore_option,
                 [&](const Part& operand) { words.push_back(operand); });
  const std::size_t first = !words.empty() && words[0].text == "set"sv;
  if (words.size() >= first + 2) judge_setting(form, words[first].text, words[first + 1].text);
}

// editors and debuggers --------------------------------------------------------------------------

void Judge::peel_console(const Wrapper& wrapper, const Form& form) {
  const auto take = [&](const Part& script) {
    if (wrapper.has('s')) return run_option(form, script);
    judge_console(form, script);
  };
  for (std::size_t i = 1; i < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    if (starts_with(text, "+"sv)) take({text.substr(1), &form.words[i]});
    if (text.size() < 2 || text[0] != '-') continue;
    std::string_view value = text.substr(1 + (text[1] == '-'));
    const std::string_view name = take_part(value, '=');
    if (has_entry(wrapper.programs, name)) return add_form(form.from(i + 1));
    if (!value.empty() && has_entry(wrapper.scripts, name))
      take({value, &form.words[i]});
    else if (has_entry(wrapper.scripts, name) && i + 1 < form.size)
      take(part_of(form.words[++i]));
    else if (has_entry(wrapper.scripts, text.substr(1, 1)))
      take({text.substr(2), &form.words[i]});
  }
}

void Judge::judge_console(const Form& form, const Part& command) {
  std::string_view text = command.text;
  text.remove_prefix(std::min(text.find_first_not_of(": \t"), text.size()));
  const std::size_t shell = text.find('!');
  if (shell != std::string_view::npos) return run_guess(form, text.substr(shell + 1));
  std::string_view rest = text;
  if (has_entry("shell pipe system terminal term"sv, take_part(rest, ' ')))
    return run_guess(form, rest);
  // :call system('...'), python os.system("...")
  read_code(Language::lua, text, form, *command.word);
}

// make -------------------------------------------------------------------------------------------

bool Judge::is_input(const Part& file, const Form& form) {
  const bool input = has_entry("- /dev/stdin"sv, file.text);
  if (file.word->process || (input && form.input->kind == shell::Input::Kind::unknown))
    refuse_opaque(form, *file.word, "what it reads is not known before it runs"sv);
  return input && form.input->kind == shell::Input::Kind::known;
}

void Judge::peel_make(const Wrapper& wrapper, const Form& form) {
  read_arguments(
      form, wrapper.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (!argument.word) return;
        if (has_entry("eval E"sv, name)) judge_makefile(form, argument.text);
        if (!lists_option("f file makefile"sv, name)) return;
        if (is_input(argument, form)) judge_makefile(form, form.input->text);
      },
      [&](const Part& operand) {
        if (starts_with(operand.text, "SHELL="sv)) run_guess(form, operand.text.substr(6));
      });
}

void Judge::judge_makefile(const Form& form, std::string_view text) {
  if (!case_.charge_bytes(text.size())) return;
  std::string script;  // the commands of all lines, with holes for what make expands
  while (!text.empty()) {
    std::string_view line = take_part(text, '\n');
    // A line of commands begins with a tab; more stand behind the ; of a rule and in $(shell ).
    if (!starts_with(line, "\t"sv)) {
      const std::size_t rule = line.find(':');
      const std::size_t end = rule == std::string_view::npos ? rule : line.find(';', rule);
      const std::size_t assigned = line.find("!=");
      const std::size_t called = line.find("$(shell ");
      if (called != std::string_view::npos)
        append_all(script, {line.substr(called + 8, line.rfind(')') - called - 8), "\n"});
      if (assigned != std::string_view::npos)
        line.remove_prefix(assigned + 2);
      else
        line.remove_prefix(std::min(end, line.size() - 1) + 1);
    }
    line.remove_prefix(std::min(line.find_first_not_of("\t @-+"), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '$' || i + 1 == line.size()) {
        script += line[i];
      } else if (line[++i] == '$') {
        script += '$';
      } else if (starts_with(line.substr(i), "(shell "sv)) {
        script += "$(";
        i += 6;
      } else {
        script += '\0';
        if (line[i] == '(' || line[i] == '{')
          i = std::min(line.find_first_of(")}", i), line.size());
      }
    }
    script += '\n';
  }
  run_guess(form, script);
}

// sed --------------------------------------------------------------------------------------------

void Judge::peel_sed(const Wrapper& wrapper, const Form& form) {
  bool given = false;
  Part first;
  read_arguments(
      form, wrapper.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        given = given || lists_option("e f expression file"sv, name);
        if (argument.word && lists_option("e expression"sv, name)) judge_sed(form, argument);
        if (argument.word && lists_option("f file"sv, name) && is_input(argument, form))
          judge_sed(form, {form.input->text, argument.word});
      },
      [&](const Part& operand) {
        if (!first.word) first = operand;
      });
  if (!given && first.word) judge_sed(form, first);
}

namespace {

// Skips to the end of a part of a sed command, and gives its text.
std::string_view sed_part(std::string_view text, std::size_t& at, char end) {
  const std::size_t begin = at;
  while (at < text.size() && text[at] != end) at += text[at] == '\\' ? 2U : 1U;
  const std::string_view part = text.substr(begin, std::min(at, text.size()) - begin);
  at = std::min(at + 1, text.size());
  return part;
}

// Skips what stands before a command of sed: 1,$!  /x/,+3
void skip_sed_address(std::string_view text, std::size_t& at) {
  while (at < text.size()) {
    const char c = text[at];
    if ("0123456789$,~+!; \t\n{}IM"sv.find(c) != std::string_view::npos) {
      ++at;
    } else if (c == '/' || (c == '\\' && at + 1 < text.size())) {
      at += c == '\\';
      const char end = text[at++];
      sed_part(text, at, end);
    } else {
      return;
    }
  }
}

// What a replacement puts in: & and \1 are of the input, and so is what follows.
std::string sed_replacement(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 1 < text.size();
    i += escaped;
    const bool group = escaped ? is_digit(text[i]) : text[i] == '&';
    result += group ? '\0' : escaped && text[i] == 'n' ? '\n' : text[i];
  }
  if (result.find(' ') != std::string::npos) result += '\0';
  return result;
}

}  // namespace

void Judge::judge_sed(const Form& form, const Part& script) {
  const std::string_view text = script.text;
  for (std::size_t at = 0; skip_sed_address(text, at), at < text.size();) {
    const char command = text[at++];
    std::size_t line = std::min(text.find('\n', at), text.size());
    bool runs = command == 'e';
    std::string run;
    if (command == 's' || command == 'y') {
      const char end = at < text.size() ? text[at++] : '\n';
      sed_part(text, at, end);
      run = sed_part(text, at, end);
      while (at < text.size() && is_name_char(text[at]) && text[at] != 'w')
        runs |= text[at++] == 'e';
      if (at == text.size() || text[at] != 'w') line = at;
    } else if ("eaicrRwWbtT:#"sv.find(command) == std::string_view::npos) {
      continue;
    } else if (command == 'b' || command == 't' || command == 'T' || command == ':') {
      line = std::min(text.find_first_of(";\n}", at), text.size());
    }
    if (command == 'e') run = text.substr(at, line - at);
    if ("aic"sv.find(command) != std::string_view::npos)
      while (line < text.size() && text[line - 1] == '\\')
        line = std::min(text.find('\n', line + 1), text.size());
    if ((command == 'w' || command == 'W' || command == 's') && line > at) {
      std::string_view file = text.substr(at, line - at);
      file.remove_prefix(
          std::min(file.find_first_not_of(command == 's' ? "w " : " "), file.size()));
      use_file(Use::write, {file, script.word}, false, form);
    }
    at = line;
    if (!runs) continue;
    if (command == 's') run = sed_replacement(run);
    run_guess(form, run);
    if (form.input->kind == shell::Input::Kind::known)
      run_guess(form, form.input->text);
    else if (run.find_first_not_of(std::string_view("\0 ", 2)) == std::string::npos)
      refuse_opaque(form, *script.word, "what it runs is not known before it runs"sv);
  }
}

// tar --------------------------------------------------------------------------------------------

void Judge::peel_tar(const Wrapper& wrapper, const Form& form) {
  read_arguments(
      form, wrapper.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        if (argument.word && lists_option(wrapper.scripts, name)) run_option(form, argument);
      },
      ignore_part);
  // Without a dash, the arguments of the letters are the words behind them.
  if (form.size < 2 || starts_with(form.words[1].text, "-"sv)) return;
  std::size_t i = 2;
  for (const char letter : form.words[1].text) {
    if (wrapper.syntax.letters.find(letter) == std::string_view::npos) continue;
    if ((letter == 'I' || letter == 'F') && i < form.size) run_guess(form, form.words[i].text);
    ++i;
  }
}

// terminals --------------------------------------------------------------------------------------

void Judge::peel_nested(const Form& form) {
  for (std::size_t i = 1; i < form.size; ++i) {
    const std::string& text = form.words[i].text;
    const std::string command = concat({"tmux ", text});
    Wrapper verb;
    if (find_wrapper(command, verb)) return peel(verb, form.from(i));
    if (text.find(' ') == std::string::npos) continue;
    run_guess(form, text);
    run_guess(form, command);
  }
}

void Judge::peel_screen(const Wrapper& wrapper, const Form& form) {
  bool commands = false, attaches = false;
  const std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part&) {
        commands |= name == "X"sv;
        attaches |= has_entry("r R x"sv, name);
      },
      ignore_part);
  if (attaches) return;
  const Form rest = form.from(i);
  if (!commands) return add_form(rest);
  if (rest.size < 2) return;
  if (rest.words[0].text == "stuff") return peel_keys(wrapper, rest);
  if (has_entry("exec screen"sv, rest.words[0].text)) add_form(rest.from(1));
}

void Judge::peel_keys(const Wrapper& wrapper, const Form& form) {
  std::string text;
  const std::size_t first =
      read_arguments(form, wrapper.syntax, Order::stop_at_operand, ignore_option, ignore_part);
  for (std::size_t i = first; i < form.size; ++i) {
    std::string_view word = form.words[i].text;
    if (has_entry("Enter KPEnter C-m C-j"sv, word)) word = "^M";
    if (word == "Space"sv) word = " ";
    while (!word.empty()) {
      std::size_t size = 0;
      for (const std::string_view key : {"^M", "^J", "\\n", "\\r", "\\015", "\\012", "\r"})
        if (starts_with(word, key)) size = key.size();
      text += size ? '\n' : word[0];
      word.remove_prefix(std::max<std::size_t>(size, 1));
    }
  }
  if (first < form.size) run_string(form, {text, &form.words[first]});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
