// The judge: find, xargs and parallel, which repeat a command.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Judge::Roots Judge::roots_of(const Form& form) {
  Roots roots;
  while (roots.first < form.size) {
    const std::string& text = form.words[roots.first].text;
    if (text == "-D")
      ++roots.first;
    else if (!has_entry("-H -L -P --"sv, text) && !starts_with(text, "-O"sv))
      break;
    ++roots.first;
  }
  roots.first = std::min(roots.first, form.size);
  roots.last = roots.first;
  while (roots.last < form.size) {
    const std::string& text = form.words[roots.last].text;
    if (starts_with(text, "-"sv) || has_entry("( ! ) ,"sv, text)) break;
    ++roots.last;
  }
  return roots;
}

bool Judge::is_found(const Form& form) {
  for (const shell::Word& place : *form.roots) {
    std::string_view name = form.words[0].text;
    if (place.process || !ends_with(name, place.text)) continue;
    name.remove_suffix(place.text.size());
    if (name.empty() || name.back() == '/') return true;
  }
  return false;
}

void Judge::judge_found(const Form& form) {
  for (const shell::Word& place : *form.roots) {
    if (place.process) {
      Form named = form;
      named.roots = nullptr;
      std::vector<shell::Word> words(form.words, form.words + form.size);
      words[0] = word_like(words[0], concat({"./", place.text}));
      add_form(named, std::move(words));
      continue;
    }
    const Part part = part_of(place);
    const PathText path = path_of(part);
    const bool below = path.root == PathText::Root::relative
                           ? path.names.empty() || path.names[0] != ".."sv
                           : case_.workspace && is_within(path, case_.start);
    if (!below || !is_relative(part) || !place.known()) return refuse_unknown(form);
  }
}

bool Judge::has_test(const Form& form, std::size_t first) {
  for (std::size_t i = first; i + 1 < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    if ((has_entry(find_tests, text) && !sweeps(form.words[i + 1].text)) ||
        starts_with(text, "-newer"sv))
      return true;
  }
  return false;
}

void Judge::peel_find(const Form& form) {
  Roots roots = roots_of(form);
  Form start = form.from(roots.first);
  start.size = roots.last - roots.first;
  const shell::Word here = word_like(form.words[0], ".");
  if (start.size == 0) {
    start.words = &here;
    start.size = 1;
  }
  Form found = form;
  found.tested = has_test(form, roots.last);
  const shell::Word* worst = &start.words[0];
  for (std::size_t i = 0; i < start.size; ++i) {
    const Part part = part_of(start.words[i]);
    if (part.text.empty() || !removal_is_protected(part, path_of(part))) continue;
    worst = part.word;
    break;
  }
  std::vector<shell::Word> places(start.words, start.words + start.size);
  for (std::size_t i = roots.last; i + 1 < form.size; ++i) {
    const shell::Word& sought = form.words[i + 1];
    if ((form.words[i].text != "-name" && form.words[i].text != "-iname") ||
        is_pattern(sought.text))
      continue;
    places.push_back(word_like(sought, in_lower_case(sought.text)));
    places.back().process = true;
  }
  if (!case_.charge_words(places.size())) return;
  generated_.push_back(std::move(places));
  found.roots = &generated_.back();
  for (std::size_t i = roots.last; i < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    if (text == "-delete") {
      for (std::size_t root = 0; root < start.size; ++root)
        use_file(Use::remove, part_of(start.words[root]), true, found);
    } else if (has_entry("-exec -execdir -ok -okdir"sv, text)) {
      const std::size_t end = end_of_exec(form, i + 1);
      add_exec(found, i + 1, end, start, *worst);
      i = end;
    } else if (starts_with(text, "-fprint"sv) || text == "-fls"sv) {
      if (i + 1 < form.size) use_file(Use::write, part_of(form.words[++i]), false, form);
    }
  }
}

std::size_t Judge::end_of_exec(const Form& form, std::size_t i) {
  for (; i < form.size; ++i) {
    const std::string& text = form.words[i].text;
    if (text == ";" || (text == "+" && form.words[i - 1].text == "{}")) break;
  }
  return i;
}

void Judge::add_exec(const Form& form, std::size_t first, std::size_t last, const Form& roots,
                     const shell::Word& worst) {
  std::vector<shell::Word> words;
  bool replaced = false;
  for (std::size_t i = first; i < last && i < form.size; ++i) {
    if (form.words[i].text == "{}" && !replaced) {
      for (std::size_t k = 0; k < roots.size; ++k) words.push_back(shell::Word(roots.words[k]));
      replaced = true;
    } else {
      words.push_back(replace_all(form.words[i], "{}"sv, worst));
    }
  }
  if (words.empty()) return;
  Form command = form.from(first);
  command.in_find = true;
  add_form(command, std::move(words));
  // In a script, what is found may be the name of a command.
  if (!has_entry(shells, base_name(form.words[first].text))) return;
  shell::Word all = word_like(worst, "*");
  all.process = true;
  add_found(form, first, last, worst, all);
  for (const shell::Word& place : *form.roots) add_found(form, first, last, worst, place);
}

void Judge::add_found(const Form& form, std::size_t first, std::size_t last,
                      const shell::Word& root, const shell::Word& name) {
  if (!name.process) return;
  shell::Word found = word_like(root, concat({root.text, "/", name.text}));
  found.home = root.home;
  std::vector<shell::Word> words;
  for (std::size_t i = first; i < last && i < form.size; ++i)
    words.push_back(replace_all(form.words[i], "{}", found));
  Form command = form.from(first);
  command.in_find = true;
  add_form(command, std::move(words));
}

shell::Word Judge::replace_all(const shell::Word& word, std::string_view mark,
                               const shell::Word& by) {
  std::size_t at = mark.empty() ? std::string::npos : word.text.find(mark);
  if (at == std::string::npos) return word;
  shell::Word result = by;
  result.begin = word.begin;
  result.end = word.end;
  result.home = by.home && at == 0;
  if (word.text.size() == mark.size()) return result;
  result.text.clear();
  std::size_t from = 0;
  for (; at != std::string::npos; at = word.text.find(mark, from)) {
    if (!case_.charge_bytes(by.text.size())) return word;
    result.text.append(word.text, from, at - from).append(by.text);
    from = at + mark.size();
  }
  result.text.append(word.text, from, std::string::npos);
  return result;
}

// xargs and parallel -----------------------------------------------------------------------------

std::vector<std::string> Judge::split_input(std::string_view text, bool lines, char delimiter) {
  std::vector<std::string> items;
  std::string item;
  bool in_item = false;
  const auto finish = [&] {
    if (in_item && case_.charge_bytes(item.size() + sizeof item)) items.push_back(item);
    item.clear();
    in_item = false;
  };
  for (std::size_t i = 0; i < text.size() && !case_.too_complex; ++i) {
    const char c = text[i];
    const bool plain = delimiter != '\0';
    if (plain ? c == delimiter : lines ? c == '\n' : is_blank(c)) {
      finish();
      continue;
    }
    if (lines && !plain && !in_item && is_blank(c)) continue;
    in_item = true;
    const std::size_t close =
        !plain && (c == '"' || c == '\'') ? text.find(c, i + 1) : std::string_view::npos;
    if (close != std::string_view::npos) {
      item += text.substr(i + 1, close - i - 1);
      i = close;
    } else if (c == '\\' && !plain && i + 1 < text.size()) {
      item += text[++i];
    } else {
      item += c;
    }
  }
  finish();
  return items;
}

shell::Word Judge::word_like(const shell::Word& place, std::string text) {
  shell::Word word;
  word.text = std::move(text);
  word.begin = place.begin;
  word.end = place.end;
  return word;
}

shell::Word Judge::item_word(const Form& form, const std::string& item) {
  shell::Word word = word_like(form.words[0], item);
  word.glob = form.input->glob && is_pattern(item);
  word.home = form.input->home && starts_with(item, "~"sv);
  return word;
}

shell::Word Judge::unknown_word(const shell::Word& place) {
  shell::Word word = word_like(place, std::string(1, '\0'));
  word.split = true;
  return word;
}

std::vector<shell::Word> Judge::protected_producers() {
  std::vector<shell::Word> words;
  if (!producer_ || producer_->words.empty()) return words;
  Form form;
  form.words = producer_->words.data();
  form.size = producer_->words.size();
  const std::string_view name = base_name(form.words[0].text);
  bool tested = false;
  const auto add = [&](const Part& part) {
    if (part.text.empty() || !removal_is_protected(part, path_of(part))) return;
    if (!tested || !in_places(path_of(part), scratch_places, false))
      words.push_back(shell::Word(*part.word));
  };
  if (name == "find"sv) {
    const Roots roots = roots_of(form);
    tested = has_test(form, roots.last);
    for (std::size_t i = roots.first; i < roots.last; ++i) add(part_of(form.words[i]));
    if (roots.first == roots.last) {
      const shell::Word here = word_like(form.words[0], ".");
      add(part_of(here));
    }
  } else if (name == "ls"sv) {
    bool directories = false;
    const auto on_option = [&](std::string_view option, const Part&) {
      directories |= has_entry("d directory"sv, option);
    };
    read_arguments(form, {}, Order::options_anywhere, on_option, ignore_part);
    if (directories) {
      read_arguments(form, {}, Order::options_anywhere, ignore_option, add);
    } else {
      // names of what is in the directory
      shell::Word all = word_like(form.words[0], "*");
      all.glob = true;
      add(part_of(all));
      // and of files, as they are given
      read_arguments(form, {}, Order::options_anywhere, ignore_option, [&](const Part& operand) {
        if (operand.glob()) add(operand);
      });
    }
  }
  return words;
}

void Judge::peel_xargs(const Wrapper& wrapper, const Form& form) {
  std::string_view mark;
  char delimiter = '\0';
  bool from_file = false, nulls = false;
  const std::size_t i = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part& argument) {
        if (name == "I"sv) mark = argument.text;
        if (has_entry("i replace"sv, name)) mark = argument.word ? argument.text : "{}";
        if (has_entry("a arg-file"sv, name)) from_file = true;
        if (has_entry("0 null"sv, name)) nulls = true;
        if (has_entry("d delimiter"sv, name)) delimiter = delimiter_of(argument.text);
      },
      ignore_part);
  if (i >= form.size) return;
  static const shell::Input nothing = {shell::Input::Kind::known, ""};
  Form command = form.from(i);
  const shell::Input& input = *form.input;
  command.input = &nothing;
  std::string text = input.text;
  if (nulls) {
    // A NUL byte may be one, or an unknown part.
    delimiter = '\n';
    std::replace(text.begin(), text.end(), '\0', '\n');
  }
  if (from_file || input.kind == shell::Input::Kind::unknown || is_unknown(input.text)) {
    run_with_unknown(command, mark);
    if (text.empty() || is_unknown(text)) return;
  }
  const std::vector<std::string> items = split_input(text, !mark.empty(), delimiter);
  if (mark.empty()) {
    std::vector<shell::Word> words(command.words, command.words + command.size);
    for (const std::string& item : items) words.push_back(item_word(form, item));
    return add_form(command, std::move(words));
  }
  for (const std::string& item : items) {
    if (!case_.charge_words(command.size)) return;
    run_replaced(command, mark, item_word(form, item));
  }
}

char Judge::delimiter_of(std::string_view text) {
  if (text.size() == 2 && text[0] == '\\') return text[1] == 't' ? '\t' : '\n';
  return text.size() == 1 ? text[0] : '\n';
}

void Judge::run_replaced(const Form& command, std::string_view mark, const shell::Word& by) {
  std::vector<shell::Word> words;
  for (std::size_t i = 0; i < command.size; ++i)
    words.push_back(replace_all(command.words[i], mark, by));
  add_form(command, std::move(words));
}

void Judge::run_with_unknown(const Form& command, std::string_view mark) {
  const std::vector<shell::Word> roots = protected_producers();
  if (!mark.empty()) {
    run_replaced(command, mark, unknown_word(command.words[0]));
    if (!roots.empty()) run_replaced(command, mark, roots[0]);
    return;
  }
  std::vector<shell::Word> words(command.words, command.words + command.size);
  words.push_back(unknown_word(command.words[0]));
  for (const shell::Word& root : roots) words.push_back(shell::Word(root));
  add_form(command, std::move(words));
}

void Judge::peel_parallel(const Wrapper& wrapper, const Form& form) {
  std::string_view mark = "{}";
  bool from_file = false;
  const std::size_t first = read_arguments(
      form, wrapper.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part& argument) {
        if (name == "I"sv) mark = argument.text;
        if (has_entry("a arg-file"sv, name)) from_file = true;
      },
      ignore_part);
  std::size_t last = first;
  while (last < form.size && !starts_with(form.words[last].text, ":::"sv)) ++last;
  Form command = form.from(first);
  command.size = last - std::min(first, last);
  std::vector<shell::Word> arguments;
  bool unknown = from_file;
  if (last < form.size) {
    bool files = false;
    for (std::size_t i = last; i < form.size; ++i) {
      if (starts_with(form.words[i].text, ":::"sv)) {
        files = starts_with(form.words[i].text, "::::"sv);
        unknown |= files;
      } else if (!files) {
        arguments.push_back(shell::Word(form.words[i]));
      }
    }
  } else if (form.input->kind == shell::Input::Kind::unknown || is_unknown(form.input->text)) {
    unknown = true;
  } else {
    for (const std::string& line : split_input(form.input->text, true, '\n'))
      arguments.push_back(item_word(form, line));
  }
  if (unknown) {
    const std::vector<shell::Word> roots = protected_producers();
    for (const shell::Word& root : roots) arguments.push_back(shell::Word(root));
    arguments.push_back(unknown_word(form.words[0]));
  }
  for (const shell::Word& argument : arguments) {
    if (!case_.charge_words(command.size)) return;
    run_parallel(form, command, mark, argument);
  }
}

void Judge::run_parallel(const Form& form, const Form& command, std::string_view mark,
                         const shell::Word& argument) {
  if (command.size == 0) {
    if (!argument.known())
      refuse_opaque(form, argument, "its commands are not known before it runs"sv);
    return add_payload(form, argument.text, false);
  }
  shell::Word quoted_argument = argument;
  quoted_argument.text.clear();
  // A quoted ~ or * would be none.
  if ((argument.home || argument.glob) &&
      argument.text.find_first_of(" \t\n'\"\\$`;&|<>(){}#!") == std::string::npos)
    quoted_argument.text = argument.text;
  else
    append_quoted(quoted_argument.text, argument.text);
  shell::Word script = word_like(command.words[0], join(command));
  if (!case_.charge_bytes(script.text.size())) return;
  if (!mark.empty() && script.text.find(mark) != std::string::npos)
    script = replace_all(script, mark, quoted_argument);
  else
    append_all(script.text, {" ", quoted_argument.text});
  add_payload(form, std::move(script.text), false);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
