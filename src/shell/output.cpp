// The walker: what echo, printf, cat, ls -d ... print, for $( ) and pipelines.

#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::write_input(const shell::Input& input) {
  if (input.kind == shell::Input::Kind::known)
    append_output({input.text, false, input.glob, input.home});
  else
    write_unknown();
}

void ShellWalker::run_cat(const shell::Command& command, std::size_t at) {
  if (at + 1 == command.words.size()) write_input(command.input);
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    const shell::Word& word = command.words[i];
    const bool input = word.text == "-";
    if (!input && starts_with(word.text, "-"sv)) return write_unknown();
    write_input(input ? command.input : word.printed);
  }
}

void ShellWalker::run_ls(const shell::Command& command, std::size_t at) {
  if (output_ == nullptr) return;
  const auto is_option = [&](std::size_t i) { return starts_with(command.words[i].text, "-"sv); };
  bool directories = false, named = false;
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    const std::string& text = command.words[i].text;
    named = named || !is_option(i);
    if (!is_option(i)) continue;
    if (text.find_first_not_of("-1AHLUacdrtu") != std::string::npos || text == "--")
      return write_unknown();
    directories = directories || text.find('d') != std::string::npos;
  }
  if (!directories || !named) return write_unknown();
  // Those that are not there are not printed.
  output_->mark({{}, true, true});
  for (std::size_t i = at + 1; i < command.words.size(); ++i) {
    if (is_option(i)) continue;
    write_word(command.words[i]);
    write_output("\n"sv);
  }
}

void ShellWalker::run_pwd(const shell::Command& command, std::size_t at) {
  const ShellValue& directory = value_of(work_dir_key);
  if (at + 1 < command.words.size() || directory.elements.empty() ||
      !is_whole_path(directory.elements[0]))
    return write_unknown();
  const ShellText& path = directory.elements[0];
  append_output({concat({path.text, "\n"}), path.assumed, path.glob, path.home});
}

void ShellWalker::run_path_part(const shell::Command& command, std::size_t at, bool last) {
  if (at + 2 != command.words.size() || starts_with(command.words[at + 1].text, "-"sv))
    return write_unknown();
  shell::Word word = command.words[at + 1];
  const auto trim = [](std::string& text) {
    while (text.size() > 1 && text.back() == '/') text.pop_back();
  };
  trim(word.text);
  const std::size_t slash = word.text.rfind('/');
  const bool above = word.home && slash == std::string::npos;
  if (word.text.empty() || !word.known() || (above && last)) return write_unknown();
  word.home = word.home && !last && !above;
  if (above) {
    word.text = "/home";
    word.assumed = true;
  } else if (last) {
    if (word.text.size() > 1) word.text.erase(0, slash + 1);
  } else {
    word.text = slash == std::string::npos ? "." : word.text.substr(0, slash + 1);
    trim(word.text);
  }
  write_word(word);
  write_output("\n"sv);
}

void ShellWalker::write_word(const shell::Word& word) {
  if (output_ != nullptr) output_->mark({{}, word.assumed, word.glob, word.home});
  write_output(word.text);
}

void ShellWalker::run_echo(const shell::Command& command, std::size_t at) {
  if (output_ == nullptr) return;
  bool escapes = !bash();
  bool ends_line = true;
  std::size_t i = at + 1;
  for (; i < command.words.size(); ++i) {
    const std::string& word = command.words[i].text;
    if (word.size() < 2 || word[0] != '-' || word.find_first_not_of("neE", 1) != std::string::npos)
      break;
    if (word != "-n") outcome_.dialect_dependent = true;
    if (word != "-n" && !bash()) break;
    for (const char c : word.substr(1)) {
      if (c == 'n') ends_line = false;
      if (c != 'n') escapes = c == 'e';
    }
    if (!bash()) {
      ++i;
      break;
    }
  }
  for (bool first = true; i < command.words.size(); ++i, first = false) {
    if (!first) write_output(" "sv);
    shell::Word word = command.words[i];
    if (word.text.find('\\') != std::string::npos) {
      outcome_.dialect_dependent = true;
      std::string text;
      if (escapes && !decode_text(word.text, EscapeStyle::echo, text)) {
        write_output(text);
        return;
      }
      if (escapes) word.text = std::move(text);
    }
    write_word(word);
  }
  if (ends_line) write_output("\n"sv);
}

bool ShellWalker::decode_text(std::string_view source, EscapeStyle style, std::string& text) const {
  for (std::size_t at = 0; at < source.size();) {
    if (source[at] != '\\')
      text += source[at++];
    else if (!decode_escape(source, at, style, options_.dialect, text))
      return false;
  }
  return true;
}

void ShellWalker::run_printf(const shell::Command& command, std::size_t at) {
  std::size_t i = at + 1;
  std::string variable;
  if (i + 1 < command.words.size() && command.words[i].text == "-v") {
    variable = command.words[i + 1].text;
    i += 2;
  } else if (i < command.words.size() && starts_with(command.words[i].text, "-v"sv)) {
    variable = command.words[i++].text.substr(2);
  }
  if (i < command.words.size() && command.words[i].text == "--") ++i;
  if (output_ == nullptr && variable.empty()) return;
  Output printed;
  Output* const outer = std::exchange(output_, &printed);
  if (i < command.words.size()) print(command, i);
  output_ = outer;
  if (!variable.empty()) {
    if (is_name(variable))
      assign(variable,
             scalar_value({std::move(printed.text), printed.assumed, printed.glob, printed.home}));
    else
      assign_unknown(variable);
    return;
  }
  append_output(printed);
}

void ShellWalker::print(const shell::Command& command, std::size_t format_at) {
  const shell::Word& format = command.words[format_at];
  if (!format.known() || format.glob || format.home) return write_unknown();
  if (format.text.find('\\') != std::string::npos) outcome_.dialect_dependent = true;
  std::size_t argument = format_at + 1;
  // Which conversion gets which word is not known behind one that may be several.
  for (std::size_t i = argument; i < command.words.size(); ++i)
    if (command.words[i].split) return write_unknown();
  do {
    const std::size_t before = argument;
    if (!print_once(command, format.text, argument)) return;
    if (argument == before) return;
  } while (argument < command.words.size() && !stopped() &&
           text_bytes_ <= options_.limits.max_text);
}

bool ShellWalker::print_once(const shell::Command& command, std::string_view format,
                             std::size_t& argument) {
  for (std::size_t at = 0; at < format.size();) {
    const char c = format[at];
    if (c == '\\') {
      std::string text;
      if (!decode_escape(format, at, EscapeStyle::format, options_.dialect, text)) return false;
      write_output(text);
    } else if (c != '%') {
      const std::size_t end = std::min(format.find_first_of("\\%", at), format.size());
      write_output(format.substr(at, end - at));
      at = end;
    } else if (at + 1 < format.size() && format[at + 1] == '%') {
      write_output("%"sv);
      at += 2;
    } else {
      const char conversion = at + 1 < format.size() ? format[at + 1] : '\0';
      if (!print_argument(command, conversion, argument)) {
        write_unknown();
        return false;
      }
      at += 2;
    }
  }
  return true;
}

bool ShellWalker::print_argument(const shell::Command& command, char conversion,
                                 std::size_t& argument) {
  const bool given = argument < command.words.size();
  shell::Word word;
  if (given) word = command.words[argument++];
  switch (conversion) {
    case 's':
      write_word(word);
      return true;
    case 'b': {
      std::string text;
      if (!decode_text(word.text, EscapeStyle::b, text)) return false;
      word.text = std::move(text);
      outcome_.dialect_dependent = true;
      write_word(word);
      return true;
    }
    case 'c':
      if (word.glob || word.home) return false;
      word.text = word.text.substr(0, 1);
      write_word(word);
      return true;
    case 'd':
    case 'i': {
      long long number = 0;
      if (given && (!read_integer(word.text, number) || is_padded(word.text))) return false;
      write_output(std::to_string(number));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
