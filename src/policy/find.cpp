// find: the files that it removes and writes, and the commands that it starts for what it finds.
//
//   find  /srv ~/old    -name '*.sh'    -delete -fprint out    -exec sh {} ;
//         the roots     tests           actions with files     a command, with {} for a file
//
// fd does the same in other words, and is judged as the find that it could be.
//
// The files that find will find are not known before it runs. An action is judged for the roots
// instead. A command is judged for a protected root if there is one; a shell also for the names
// that the tests ask for, as they may be scripts.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

FindRoots roots_of(const Form& form) {
  FindRoots roots;
  while (roots.first < form.size) {
    const std::string& text = form.words[roots.first].text;
    if (text == "-D")
      ++roots.first;
    else if (!is_any(text, "-H", "-L", "-P", "--") && !starts_with(text, "-O"sv))
      break;
    ++roots.first;
  }
  roots.first = std::min(roots.first, form.size);
  roots.last = roots.first;
  while (roots.last < form.size) {
    const std::string& text = form.words[roots.last].text;
    if (starts_with(text, "-"sv) || is_any(text, "(", "!", ")", ",")) break;
    ++roots.last;
  }
  return roots;
}

std::size_t end_of_exec(const Form& form, std::size_t i) {
  for (; i < form.size; ++i) {
    const std::string& text = form.words[i].text;
    if (text == ";" || (text == "+" && form.words[i - 1].text == "{}")) break;
  }
  return i;
}

bool has_test(const Form& form, std::size_t first) {
  for (std::size_t i = first; i + 1 < form.size; ++i) {
    const std::string_view text = form.words[i].text;
    if ((find_tests.has(text) && !sweeps(form.words[i + 1].text)) || starts_with(text, "-newer"sv))
      return true;
  }
  return false;
}

bool is_found(const Form& form) {
  for (const shell::Word& place : *form.roots) {
    std::string_view name = form.words[0].text;
    if (place.process || !ends_with(name, place.text)) continue;
    name.remove_suffix(place.text.size());
    if (name.empty() || name.back() == '/') return true;
  }
  return false;
}

void judge_found(Subject& subject, const Form& form) {
  const Case& judged = subject.judged;
  for (const shell::Word& place : *form.roots) {
    if (place.process) {
      Form named = form;
      named.roots = nullptr;
      std::vector<shell::Word> words(form.words, form.words + form.size);
      words[0] = word_like(words[0], concat("./%", {place.text}));
      subject.add_form(named, std::move(words));
      continue;
    }
    const Part part = part_of(place);
    const PathText path = subject.path_of(part);
    const bool below = path.root == PathText::Root::relative
                           ? path.names.empty() || path.names[0] != ".."sv
                           : judged.workspace && is_within(path, judged.start);
    if (!below || !is_relative(part) || !place.known()) return subject.refuse_unknown(form);
  }
}

}  // namespace inner

namespace {

// Judges one find command: where it begins, and its actions in their order. Files of actions are
// used as they stand; each -exec becomes a form of the command.
class FindCommand {
 public:
  FindCommand(Subject& subject, const Form& form) : subject_(subject), form_(form), found_(form) {}

  void judge() {
    const FindRoots roots = roots_of(form_);
    starts_ = form_.from(roots.first);
    starts_.size = roots.last - roots.first;
    const shell::Word here = word_like(form_.words[0], ".");
    if (starts_.size == 0) {
      starts_.words = &here;
      starts_.size = 1;
    }
    found_.tested = has_test(form_, roots.last);
    find_worst();
    if (add_places(roots.last)) judge_actions(roots.last);
  }

 private:
  void find_worst();
  bool add_places(std::size_t first);
  void judge_actions(std::size_t i);
  void add_exec(std::size_t first, std::size_t last);
  void add_found(const Form& command, const shell::Word& name);

  Subject& subject_;
  const Form& form_;
  Form starts_ = {};                    // the roots
  const shell::Word* worst_ = nullptr;  // the first root that is protected; else the first
  Form found_;                          // the form, with what is known of what it finds
};

void FindCommand::find_worst() {
  worst_ = &starts_.words[0];
  for (std::size_t i = 0; i < starts_.size; ++i) {
    const Part part = part_of(starts_.words[i]);
    if (part.text.empty() || !subject_.removal_is_protected(part, subject_.path_of(part))) continue;
    worst_ = part.word;
    return;
  }
}

// The roots, and names that are sought: these are marked as a process.
bool FindCommand::add_places(std::size_t first) {
  std::vector<shell::Word> places(starts_.words, starts_.words + starts_.size);
  for (std::size_t i = first; i + 1 < form_.size; ++i) {
    const shell::Word& sought = form_.words[i + 1];
    if ((form_.words[i].text != "-name" && form_.words[i].text != "-iname") ||
        is_pattern(sought.text))
      continue;
    places.push_back(word_like(sought, in_lower_case(sought.text)));
    places.back().process = true;
  }
  if (!subject_.judged.charge_words(places.size())) return false;
  subject_.generated.push_back(std::move(places));
  found_.roots = &subject_.generated.back();
  return true;
}

void FindCommand::judge_actions(std::size_t i) {
  for (; i < form_.size; ++i) {
    const std::string_view text = form_.words[i].text;
    if (text == "-delete") {
      for (std::size_t root = 0; root < starts_.size; ++root)
        use_file(subject_, Use::remove, part_of(starts_.words[root]), true, found_);
    } else if (is_any(text, "-exec", "-execdir", "-ok", "-okdir")) {
      const std::size_t end = end_of_exec(form_, i + 1);
      add_exec(i + 1, end);
      i = end;
    } else if (starts_with(text, "-fprint"sv) || text == "-fls"sv) {
      if (i + 1 < form_.size)
        use_file(subject_, Use::write, part_of(form_.words[++i]), false, form_);
    }
  }
}

// The command of -exec, with the roots for its first {}, and the worst of them for all others.
void FindCommand::add_exec(std::size_t first, std::size_t last) {
  Form command = found_.from(first);
  command.size = std::min(last, form_.size) - std::min(first, form_.size);
  command.in_find = true;
  if (command.size == 0) return;
  std::vector<shell::Word> words;
  bool replaced = false;
  for (std::size_t i = 0; i < command.size; ++i) {
    if (command.words[i].text == "{}" && !replaced) {
      for (std::size_t k = 0; k < starts_.size; ++k) words.push_back(shell::Word(starts_.words[k]));
      replaced = true;
    } else {
      words.push_back(replace_all(subject_.judged, command.words[i], "{}"sv, *worst_));
    }
  }
  subject_.add_form(command, std::move(words));
  // In a script, what is found may be the name of a command.
  if (!shells.has(base_name(command.words[0].text))) return;
  add_found(command, word_like(*worst_, "*"));
  for (const shell::Word& place : *found_.roots)
    if (place.process) add_found(command, place);
}

// The same with {} for a name below the worst root.
void FindCommand::add_found(const Form& command, const shell::Word& name) {
  shell::Word found = word_like(*worst_, concat("%/%", {worst_->text, name.text}));
  found.home = worst_->home;
  add_replaced(subject_, command, "{}"sv, found);
}

// fd [PATTERN [ROOT ...]] -x COMMAND [;]
class FdCommand {
 public:
  FdCommand(Subject& subject, const Wrapper& wrapper, const Form& form)
      : subject_(subject), wrapper_(wrapper), form_(form) {}

  void judge() {
    std::size_t i = 1;
    while (i < form_.size && !starts_command(form_.words[i].text)) ++i;
    if (i == form_.size) return;
    std::size_t end = i + 1;
    while (end < form_.size && form_.words[end].text != ";") ++end;
    // Its own words stand before the command and behind it.
    std::vector<shell::Word> own(form_.words, form_.words + i);
    for (std::size_t k = end + 1; k < form_.size; ++k) own.push_back(shell::Word(form_.words[k]));
    find_.push_back(shell::Word(form_.words[0]));
    add_roots(own);
    add_command(i, end);
    std::size_t bytes = 0;
    for (const shell::Word& word : find_) bytes += word.text.size() + sizeof word;
    if (!subject_.judged.charge_bytes(bytes)) return;
    subject_.generated.push_back(std::move(find_));
    Form made = form_;
    made.words = subject_.generated.back().data();
    made.size = subject_.generated.back().size();
    FindCommand(subject_, made).judge();
  }

 private:
  // -x and -X may stand behind letters that take no argument: -HX.
  static bool starts_command(std::string_view text) {
    text = text.substr(0, text.find('='));
    if (is_any(text, "--exec", "--exec-batch")) return true;
    if (text.size() < 2 || text[0] != '-' || (text.back() | 0x20) != 'x') return false;
    text.remove_prefix(1);
    text.remove_suffix(1);
    return text.find_first_not_of("HIuLsiaFgpl01q") == std::string_view::npos;
  }
  void add(std::string_view text) { find_.push_back(word_like(form_.words[0], text)); }
  void add_roots(const std::vector<shell::Word>& own);
  void add_command(std::size_t i, std::size_t end);

  Subject& subject_;
  const Wrapper& wrapper_;
  const Form& form_;
  std::vector<shell::Word> find_ = {};
};

// Behind the roots, a test stands for all that fd has.
void FdCommand::add_roots(const std::vector<shell::Word>& own) {
  Form form = form_;
  form.words = own.data();
  form.size = own.size();
  std::string base;
  bool tested = false, has_pattern = false, has_roots = false;
  for (Arguments each(form, wrapper_.syntax, Order::options_anywhere); each.next();)
    if (each.is("base-directory", "C") && each.part.word) base = concat("%/", {each.part.text});
  for (Arguments each(form, wrapper_.syntax, Order::options_anywhere); each.next();) {
    const Part& part = each.part;
    tested |= each.is("e", "extension", "S", "size", "o", "owner", "changed-within",
                      "changed-before", "newer", "older");
    if (!part.word || (each.is_option && !each.is("search-path"))) continue;
    if (!each.is_option && !has_pattern) {
      has_pattern = true;
      tested |= part.text.find_first_not_of(".*^$") != std::string_view::npos;
      continue;
    }
    has_roots = true;
    shell::Word root = word_like(
        *part.word, is_relative(part) ? base + std::string(part.text) : std::string(part.text));
    root.home = starts_with(root.text, "~"sv);
    find_.push_back(std::move(root));
  }
  if (!has_roots) {
    add(base.empty() ? "."sv : std::string_view(base));
    find_.back().home = starts_with(base, "~"sv);
  }
  if (tested) {
    add("-newer"sv);
    add("."sv);
  }
}

// The command, with {} for all placeholders that it has.
void FdCommand::add_command(std::size_t i, std::size_t end) {
  add("-exec"sv);
  const std::string& option = form_.words[i].text;
  const std::size_t equals = option.find('=');
  if (equals != std::string::npos) add(std::string_view(option).substr(equals + 1));
  bool placed = false;
  for (std::size_t k = i + 1; k < end; ++k) {
    shell::Word word = form_.words[k];
    for (const std::string_view mark : {"{/}"sv, "{//}"sv, "{.}"sv, "{/.}"sv})
      if (word.text == mark) word.text = "{}";
    placed = placed || word.text.find("{}") != std::string::npos;
    find_.push_back(std::move(word));
  }
  if (!placed) add("{}"sv);
  add(";"sv);
}

}  // namespace

inline namespace inner {

void peel_find(Subject& subject, const Form& form) { FindCommand(subject, form).judge(); }

void peel_fd(Subject& subject, const Wrapper& wrapper, const Form& form) {
  FdCommand(subject, wrapper, form).judge();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
