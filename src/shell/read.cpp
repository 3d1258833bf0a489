// The walker: read, and what it takes from an input that is known.

#include "shell/builtins_internal.hpp"
#include "shell/words_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// read x y  <<< "a b c"     x: a    y: b c
//
// Of an input of several lines, any line may be the one that is read, as commands before may have
// read some: each name has the values of all lines, and unknown besides. Only where the input is
// that of the command itself (a here-document, a file) is it the first line for certain.

namespace {

// Adds what the names get from a line; `separators` are those of IFS.
void read_line(std::string_view line, const shell::Input& input, std::string_view separators,
               std::vector<ShellVariable>& names) {
  bool blank = false;
  std::size_t at = skip_separator(line, 0, separators, blank);
  for (ShellVariable& name : names) {
    const bool last = &name == &names.back();
    const std::size_t end =
        last ? line.size() : std::min(line.find_first_of(separators, at), line.size());
    std::string_view field = line.substr(at, end - at);
    while (last && !field.empty() && separators.find(field.back()) != std::string_view::npos) {
      // Whether another separator than a blank is kept depends on what stands before it.
      if (is_shell_blank(field.back()))
        field.remove_suffix(1);
      else
        line = field = unknown_part;
    }
    const bool glob = input.glob && has_glob(field);
    name.merge(scalar_value({std::string(field), input.glob, glob, input.home}));
    blank = true;
    at = skip_separator(line, end, separators, blank);
    // The names behind it may get a part of these names of files, or anything.
    if (!glob && !has_nul(field)) continue;
    line = glob ? field : line.substr(line.size() - 1);
    at = 0;
  }
}

}  // namespace

inline namespace inner {

void ShellBuiltin::run_read() {
  for (std::size_t i = at_ + 1; i < words_.size(); ++i) {
    const std::string& word = words_[i].text;
    runner_.assign_unknown(word);
    if (word.size() < 2 || word[0] != '-') continue;
    // A cluster of options: -a and -v may have their name in it, -C its command.
    for (std::size_t from = 2; from < std::min<std::size_t>(word.size(), 8); ++from)
      runner_.assign_unknown(std::string_view(word).substr(from));
    const std::size_t callback = word.find('C');
    if (callback == std::string::npos) continue;
    // It gets the number and the text of a line, too.
    if (callback + 1 < word.size())
      runner_.run_text(concat("% %", {word.substr(callback + 1), unknown_part}), command_, true);
    else if (i + 1 < words_.size())
      runner_.run_text(concat("% %", {words_[i + 1].text, unknown_part}), command_, true);
  }
  // What is read may be evaluated later.
  if (command_.input.kind == shell::Input::Kind::known) {
    std::string text(std::string_view(command_.input.text));
    ShellEvaluation(runner_).expand_subscript(text);
    text.erase(std::remove(text.begin(), text.end(), '\\'), text.end());
    if (text.size() < command_.input.text.size()) ShellEvaluation(runner_).expand_subscript(text);
  }
  runner_.assign_unknown("REPLY"sv);
  runner_.assign_unknown("MAPFILE"sv);
  if (command_.input.kind != shell::Input::Kind::known || command_.input.script) return;
  if (words_[at_].text == "read" && run_known_read()) return;
  // Which part of it a name gets is not known.
  const ShellValue whole = scalar_value({std::string(command_.input.text)});
  for (std::size_t i = at_ + 1; i < words_.size(); ++i)
    ShellSteering(runner_).report(words_[i].text, whole);
}

bool ShellBuiltin::run_known_read() {
  bool raw = false, sure = false;
  for (const shell::Redirection& redirection : command_.redirections)
    sure = sure || (redirection.fd == 0 && redirection.kind != shell::Redirection::Kind::duplicate);
  std::size_t i = at_ + 1;
  for (; i < words_.size() && starts_with(words_[i].text, "-"sv); ++i) {
    const std::string& option = words_[i].text;
    const std::size_t argument = std::min(option.find_first_not_of("-reEs"), option.size());
    raw = raw || option.find('r') < argument;
    // Behind other options than -r and -p it is not sure what is read: they may be words that are
    // no options, or end the reading before the end of the line.
    sure = sure && option.find_first_not_of("-rp") == std::string::npos;
    if (argument == option.size()) continue;
    if (option[argument] != 'p' && option[argument] != 't') return false;
    if (argument + 1 == option.size()) ++i;
  }
  std::vector<std::string_view> names;
  for (; i < words_.size(); ++i) {
    names.push_back(words_[i].text);
    if (!is_name(names.back())) return false;
  }
  std::string separators;
  if (!names.empty()) {
    separators = separators_of(scopes_.value_of("IFS"sv));
  } else {
    names.push_back("REPLY"sv);
    sure = sure && budget_.bash();
  }
  if (has_nul(separators)) return false;
  std::vector<ShellVariable> read(names.size());
  if (!sure)
    for (ShellVariable& variable : read) variable.values.push_back(ShellValue(scopes_.unknown));
  std::string_view rest = command_.input.text;
  do {
    std::string_view line = take_part(rest, '\n');
    budget_.charge(line.size() + 1);
    if (!raw && line.find('\\') != std::string_view::npos) line = unknown_part;
    if (has_nul(line)) line = line.substr(0, line.find('\0') + 1);
    read_line(line, command_.input, separators, read);
  } while (!sure && !rest.empty() && read[0].values.size() < ShellVariable::max_values &&
           !budget_.stopped());
  assign_read(names, read);
  return true;
}

void ShellBuiltin::assign_read(const std::vector<std::string_view>& names,
                               std::vector<ShellVariable>& read) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (read[i].values.size() == 1) {
      runner_.assign(names[i], std::move(read[i].values[0]));
    } else if (!scopes_.has_attribute(names[i], 'r') && !scopes_.has_attribute(names[i], 'i')) {
      // The variable has several values, which are not stored one by one.
      for (const ShellValue& value : read[i].values) runner_.assign(names[i], ShellValue(value));
      scopes_.set(names[i], std::move(read[i]));
    }
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
