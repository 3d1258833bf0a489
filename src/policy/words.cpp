// Words of a command: patterns, options, and words put together again as a script.

#include "policy/policy_internal.hpp"
#include "policy/tables_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool is_pattern(std::string_view text) {
  if (text.find_first_of("*?") != std::string_view::npos) return true;
  const std::size_t open = text.find('[');
  return open != std::string_view::npos && text.find(']', open + 2) != std::string_view::npos;
}

bool sweeps(std::string_view name) {
  if (name.find('*') == std::string_view::npos) return false;
  for (std::size_t i = 0; i < name.size();) {
    if (name[i] == '[') {
      const std::size_t end = glob_bracket(name, i).end;
      if (end == std::string_view::npos) return false;
      i = end;
    } else if (name[i] == '*' || name[i] == '?' || name[i] == '.') {
      ++i;
    } else {
      return false;
    }
  }
  return true;
}

bool lists_option(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::string_view entry = take_part(list, ' ');
    if (entry == name || (name.size() > 1 && entry.size() > 1 && starts_with(entry, name)))
      return true;
  }
  return false;
}

bool is_assignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  return equals != std::string_view::npos && is_name(text.substr(0, equals));
}

void append_quoted(std::string& script, std::string_view word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
    script += word;
    return;
  }
  if (!is_unknown(word)) {
    script += shell_word(word);
    return;
  }
  script += '"';
  for (const char c : word) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') script += '\\';
    script += c;
  }
  script += '"';
}

std::string script_of_argv(const std::vector<std::string>& argv) {
  std::string script;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (i) script += ' ';
    // The name of a program is neither an assignment nor a word of the shell's grammar.
    if (i == 0 && (has_entry(reserved_words, argv[i]) || is_assignment(argv[i])))
      append_all(script, "'%'", {argv[i]});
    else
      append_quoted(script, argv[i]);
  }
  return script;
}

// policy: words -----------------------------------------------------------------------------------

std::string join(const Form& form) {
  std::string text;
  for (std::size_t i = 0; i < form.size; ++i) {
    if (i) text += ' ';
    text += form.words[i].text;
  }
  return text;
}

}  // namespace inner

namespace {

// Whether a long option is followed by its argument.
bool takes_argument(const Syntax& syntax, std::string_view name) {
  if (!starts_with(syntax.longs, "!"sv)) return lists_option(syntax.longs, name);
  return !has_entry(syntax.longs.substr(1), name);
}

}  // namespace

inline namespace inner {

std::size_t read_arguments(const Form& form, const Syntax& syntax, Order order, OnOption on_option,
                           OnOperand on_operand) {
  std::size_t i = 1;
  while (i < form.size) {
    const shell::Word& word = form.words[i];
    const std::string_view text = word.text;
    if (text.size() < 2 || text[0] != '-') {
      if (order == Order::stop_at_operand) return i;
      on_operand(part_of(word));
      ++i;
      continue;
    }
    ++i;
    if (text == "--"sv) {
      if (order == Order::stop_at_operand) return i;
      for (; i < form.size; ++i) on_operand(part_of(form.words[i]));
      return i;
    }
    if (text[1] == '-') {
      const std::size_t equals = text.find('=');
      const std::string_view name = text.substr(2, equals - 2);
      Part argument;
      if (equals != std::string_view::npos) {
        argument = {text.substr(equals + 1), &word};
      } else if (takes_argument(syntax, name) && i < form.size) {
        argument = part_of(form.words[i++]);
      } else if (lists_option(syntax.twice, name) && i + 1 < form.size) {
        argument = part_of(form.words[i]);
        i += 2;
      }
      on_option(name, argument);
      continue;
    }
    for (std::size_t at = 1; at < text.size(); ++at) {
      const std::string_view letter = text.substr(at, 1);
      if (syntax.letters.find(letter) == std::string_view::npos) {
        on_option(letter, Part());
        continue;
      }
      Part argument;
      if (at + 1 < text.size())
        argument = {text.substr(at + 1), &word};
      else if (i < form.size)
        argument = part_of(form.words[i++]);
      on_option(letter, argument);
      break;
    }
  }
  return i;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
