// Words of a command: patterns, options, and words put together again as a script.

#include "policy/policy_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool is_pattern(std::string_view text) {
  if (text.find_first_of("*?") != std::string_view::npos) return true;
  const std::size_t open = text.find('[');
  return open != std::string_view::npos && text.find(']', open + 2) != std::string_view::npos;
}

// True if nothing in the name has to be itself: * .* .[!.]* ?* but not a* or *.c.
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

bool is_option_name(std::string_view option, std::string_view name) {
  return option == name || (option.size() > 1 && name.size() > 1 && starts_with(name, option));
}

bool lists_option(const Names& names, std::string_view option) {
  for (const std::string_view name : names)
    if (is_option_name(option, name)) return true;
  return false;
}

void append_quoted(std::string& script, std::string_view word) {
  if (!is_unknown(word)) return append_shell_word(script, word);
  // In double quotes an unknown part stays what it is, and is not split.
  script += '"';
  for (const char c : word) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') script += '\\';
    script += c;
  }
  script += '"';
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

// True if a long option is followed by its argument.
bool takes_argument(const Syntax& syntax, std::string_view name) {
  return syntax.longs_are_switches ? !syntax.longs.has(name) : lists_option(syntax.longs, name);
}

}  // namespace

inline namespace inner {

bool Arguments::next() {
  option = {};
  part = {};
  is_option = true;
  if (letters_.empty()) {
    if (at_ >= size_) return false;
    const shell::Word& word = words_[at_];
    const std::string_view text = word.text;
    is_option = !ended_ && text.size() >= 2 && text[0] == '-';
    if (!is_option && order_ == Order::stop_at_operand) return false;
    ++at_;
    if (!is_option) {
      part = part_of(word);
      return true;
    }
    if (text == "--"sv) {
      ended_ = true;
      return order_ == Order::options_anywhere && next();
    }
    if (text[1] == '-') {
      read_long(text);
      return true;
    }
    letters_ = text.substr(1);
  }
  option = letters_.substr(0, 1);
  letters_.remove_prefix(1);
  if (syntax_.letters.find(option) == std::string_view::npos) return true;
  // What follows the letter is its argument, or the next word is.
  if (!letters_.empty())
    part = {letters_, &words_[at_ - 1]};
  else if (at_ < size_)
    part = part_of(words_[at_++]);
  letters_ = {};
  return true;
}

void Arguments::read_long(std::string_view text) {
  const std::size_t equals = text.find('=');
  option = text.substr(2, equals - 2);
  if (equals != std::string_view::npos) {
    part = {text.substr(equals + 1), &words_[at_ - 1]};
  } else if (takes_argument(syntax_, option) && at_ < size_) {
    part = part_of(words_[at_++]);
  } else if (lists_option(syntax_.twice, option) && at_ + 1 < size_) {
    part = part_of(words_[at_]);
    at_ += 2;
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
