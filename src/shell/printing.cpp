// The walker: what echo, printf, cat, ls -d ... print, for $( ) and pipelines.

#include "shell/builtins_internal.hpp"

// A command writes into the ShellPrinted of its place. What is written by `$(cat <<EOF ...)` or
// `echo rm -rf / | sh` is read again by the shell, so it must be known as far as possible:
//
//   echo a $X       "a \0\n"       the value of X is not known
//   printf '%s' *   "*", glob      names of files, if there are some
//   ls -d *.c       "*.c\n", glob, assumed
//   date            "\0"           anything; two of them in a row say no more than one
//
// A form that is not understood writes unknown, never nothing.

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellPrinter::run(ShellVerb verb) {
  switch (verb) {
    case ShellVerb::base_name:
      return run_path_part(true);
    case ShellVerb::cat:
      return run_cat();
    case ShellVerb::directory_name:
      return run_path_part(false);
    case ShellVerb::echo:
      return run_echo();
    case ShellVerb::ls:
      return run_ls();
    case ShellVerb::printf:
      return run_printf();
    case ShellVerb::pwd:
      return run_pwd();
    case ShellVerb::copy:
      return run_copy();
    case ShellVerb::tee:
      return run_tee();
    default:
      return;
  }
}

void ShellPrinter::print_input(const shell::Input* input) {
  if (input != nullptr && input->kind == shell::Input::Kind::known && !input->script &&
      input->is_certain())
    output_.append({std::string(input->text), false, input->glob, input->home});
  else
    output_.write_unknown();
}

void ShellPrinter::run_tee() {
  bool append = false;
  for (std::size_t i = at_ + 1; i < words_.size(); ++i)
    append = append || is_any(words_[i].text, "-a", "--append", "-ai", "-ia");
  shell::Input text = command_.input;
  if (text.kind == shell::Input::Kind::inherited || text.script) text = unknown_input();
  for (std::size_t i = at_ + 1; i < words_.size(); ++i)
    if (!starts_with(words_[i].text, "-"sv)) runner_.write_file(words_[i].text, text, append);
  print_input(&command_.input);
}

// Any operand may be the target, or a directory that is; options may say so.
void ShellPrinter::run_copy() {
  for (std::size_t from = at_ + 1; from < words_.size(); ++from) {
    if (words_[from].printed == nullptr) continue;
    const std::string key = runner_.file_key(words_[from].text);
    const std::string name(base_name(words_[from].text));
    for (std::size_t to = at_ + 1; to < words_.size() && !budget_.stopped(); ++to) {
      const std::string& target = words_[to].text;
      if (to == from || target.empty() || target[0] == '-') continue;
      budget_.charge(target.size());
      runner_.walk.files.copy(key, runner_.file_key(target));
      runner_.walk.files.copy(key, runner_.file_key(concat("%/%", {target, name})));
    }
  }
  output_.write_unknown();
}

void ShellPrinter::run_cat() {
  if (at_ + 1 == words_.size()) print_input(&command_.input);
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    const shell::Word& word = words_[i];
    const bool input = word.text == "-";
    if (!input && starts_with(word.text, "-"sv)) return output_.write_unknown();
    print_input(input ? &command_.input : word.printed);
  }
}

void ShellPrinter::run_ls() {
  if (!output_.records()) return;
  const auto is_option = [&](std::size_t i) { return starts_with(words_[i].text, "-"sv); };
  bool directories = false, named = false;
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    const std::string& text = words_[i].text;
    named = named || !is_option(i);
    if (!is_option(i)) continue;
    if (text.find_first_not_of("-1AHLUacdrtu") != std::string::npos || text == "--")
      return output_.write_unknown();
    directories = directories || text.find('d') != std::string::npos;
  }
  if (!directories || !named) return output_.write_unknown();
  // Those that are not there are not printed.
  output_.mark(true, true, false);
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    if (is_option(i)) continue;
    print_word(words_[i]);
    output_.write("\n"sv);
  }
}

void ShellPrinter::run_pwd() {
  const ShellValue& directory = scopes_.value_of(work_dir_key);
  if (at_ + 1 < words_.size() || directory.elements.empty() ||
      !directory.elements[0].is_whole_path())
    return output_.write_unknown();
  const ShellText& path = directory.elements[0];
  output_.append({concat("%\n", {path.text}), path.assumed, path.glob, path.home});
}

void ShellPrinter::run_path_part(bool last) {
  if (at_ + 2 != words_.size() || starts_with(words_[at_ + 1].text, "-"sv))
    return output_.write_unknown();
  shell::Word word = words_[at_ + 1];
  const auto trim = [](std::string& text) {
    while (text.size() > 1 && text.back() == '/') text.pop_back();
  };
  trim(word.text);
  const std::size_t slash = word.text.rfind('/');
  const bool above = word.home && slash == std::string::npos;
  if (word.text.empty() || !word.known() || (above && last)) return output_.write_unknown();
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
  print_word(word);
  output_.write("\n"sv);
}

void ShellPrinter::print_word(const shell::Word& word) {
  output_.mark(word.assumed, word.glob, word.home);
  output_.write(word.text);
}

void ShellPrinter::run_echo() {
  if (!output_.records()) return;
  bool escapes = !budget_.bash();
  bool ends_line = true;
  std::size_t i = at_ + 1;
  for (; i < words_.size(); ++i) {
    const std::string& word = words_[i].text;
    if (word.size() < 2 || word[0] != '-' || word.find_first_not_of("neE", 1) != std::string::npos)
      break;
    if (word != "-n") budget_.outcome.dialect_dependent = true;
    if (word != "-n" && !budget_.bash()) break;
    for (const char c : word.substr(1)) {
      if (c == 'n') ends_line = false;
      if (c != 'n') escapes = c == 'e';
    }
    if (!budget_.bash()) {
      ++i;
      break;
    }
  }
  for (bool first = true; i < words_.size(); ++i, first = false) {
    if (!first) output_.write(" "sv);
    shell::Word word = words_[i];
    if (word.text.find('\\') != std::string::npos) {
      budget_.outcome.dialect_dependent = true;
      std::string text;
      if (escapes && !decode_text(word.text, EscapeStyle::echo, text)) {
        output_.write(text);
        return;
      }
      if (escapes) word.text = std::move(text);
    }
    print_word(word);
  }
  if (ends_line) output_.write("\n"sv);
}

bool ShellPrinter::decode_text(std::string_view source, EscapeStyle style,
                               std::string& text) const {
  for (std::size_t at = 0; at < source.size();) {
    if (source[at] != '\\')
      text += source[at++];
    else if (!decode_escape(source, at, style, budget_.options.dialect, text))
      return false;
  }
  return true;
}

void ShellPrinter::run_printf() {
  std::size_t i = at_ + 1;
  std::string variable;
  if (i + 1 < words_.size() && words_[i].text == "-v") {
    variable = words_[i + 1].text;
    i += 2;
  } else if (i < words_.size() && starts_with(words_[i].text, "-v"sv)) {
    variable = words_[i++].text.substr(2);
  }
  if (i < words_.size() && words_[i].text == "--") ++i;
  if (!output_.records() && variable.empty()) return;
  ShellPrinted printed(&budget_);
  ShellRunner inner(runner_);
  inner.place.output = &printed;
  if (i < words_.size()) ShellPrinter(inner, command_, at_).print(i);
  if (variable.empty()) return output_.append(printed);
  if (has_nul(printed.text))
    for (const shell::Word& word : words_) ShellEvaluation(runner_).expand_lost(word.text);
  ShellEvaluation(runner_).expand_subscript(variable);
  if (is_name(variable))
    runner_.assign(variable, scalar_value(std::move(printed)));
  else
    runner_.assign_unknown(variable);
}

// printf '%s=%d\n' a 1 b 2 goes through the format twice. A format that takes no argument ends
// after one round. Where a conversion is not understood, the rest of the output is unknown.

void ShellPrinter::print(std::size_t format_at) {
  const shell::Word& format = words_[format_at];
  if (!format.known() || format.glob || format.home) return output_.write_unknown();
  if (format.text.find('\\') != std::string::npos) budget_.outcome.dialect_dependent = true;
  std::size_t argument = format_at + 1;
  // Which conversion gets which word is not known behind one that may be several.
  for (std::size_t i = argument; i < words_.size(); ++i)
    if (words_[i].split) return output_.write_unknown();
  do {
    const std::size_t before = argument;
    if (!print_once(format.text, argument)) return;
    if (argument == before) return;
  } while (argument < words_.size() && !budget_.stopped() && !budget_.out_of_text());
}

bool ShellPrinter::print_once(std::string_view format, std::size_t& argument) {
  for (std::size_t at = 0; at < format.size();) {
    const char c = format[at];
    if (c == '\\') {
      std::string text;
      if (!decode_escape(format, at, EscapeStyle::format, budget_.options.dialect, text))
        return false;
      output_.write(text);
    } else if (c != '%') {
      const std::size_t end = std::min(format.find_first_of("\\%", at), format.size());
      output_.write(format.substr(at, end - at));
      at = end;
    } else if (at + 1 < format.size() && format[at + 1] == '%') {
      output_.write("%"sv);
      at += 2;
    } else {
      const char conversion = at + 1 < format.size() ? format[at + 1] : '\0';
      if (!print_argument(conversion, argument)) {
        output_.write_unknown();
        return false;
      }
      at += 2;
    }
  }
  return true;
}

bool ShellPrinter::print_argument(char conversion, std::size_t& argument) {
  const bool given = argument < words_.size();
  shell::Word word;
  if (given) word = words_[argument++];
  switch (conversion) {
    case 's':
      print_word(word);
      return true;
    case 'b': {
      std::string text;
      if (!decode_text(word.text, EscapeStyle::b, text)) return false;
      word.text = std::move(text);
      budget_.outcome.dialect_dependent = true;
      print_word(word);
      return true;
    }
    case 'c':
      if (word.glob || word.home) return false;
      word.text = word.text.substr(0, 1);
      print_word(word);
      return true;
    case 'd':
    case 'i': {
      long long number = 0;
      if (given && (!read_integer(word.text, number) || is_padded(word.text))) return false;
      output_.write(std::string(Piece(number)));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
