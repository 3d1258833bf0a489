// What a program does with the files that are named to it.
//
// The row of a program in file_programs says which of its options take an argument, and what its
// operands are. All arguments are read before an operand is used, as an option behind it may decide
// what it means: `rm a -r`, `cp a -t DIR`.

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

using Operands = FileProgram::Operands;

// HOST:PATH, as rsync and scp have it.
bool is_remote(std::string_view path) {
  const std::size_t colon = path.find(':');
  return colon != std::string_view::npos && colon < path.find('/');
}

// Reads the arguments of one program, and uses the files in them as its row says. Files of options
// are used at once; operands and other options are kept until all have been read.
class OperandReader {
 public:
  OperandReader(Subject& subject, const FileProgram& program, const Form& form)
      : subject_(subject), program_(program), form_(form) {}

  void read() {
    for (Arguments each(form_, program_.syntax, Order::options_anywhere); each.next();) {
      if (each.is_option) {
        use_argument(each.option, each.part);
        note_option(each.option, each.part);
        continue;
      }
      // An unquoted $OPTIONS may hold -r.
      if (each.part.text == std::string_view("\0", 1) && each.part.word->split) given_.tree = true;
      operands_.push_back(each.part);
    }
    use_operands();
  }

 private:
  // What the options say of the operands.
  struct Given {
    Part directory = {};           // where the operands are written to
    Part archive = {};             // of tar
    bool tree = false;             // -r, or options that are not known
    bool in_place = false;         // sed -i
    bool has_pattern = false;      // a pattern or a mode is given by an option
    bool removes = false;          // shred -u, rsync --delete, tar --remove-files, zip -m
    bool removes_sources = false;  // rsync --remove-source-files
    bool symbolic = false;         // ln -s
    bool only_shows = false;       // -n
    bool packs = false;            // tar -c
    bool unpacks = false;          // tar -x
    bool fetches = false;          // an option of the last column of fetch and unpack
  };

  bool is(Operands kind) const { return program_.operands == kind; }
  void use_one(Use use, const Part& part, bool recursive = false) {
    use_file(subject_, use, part, recursive, form_);
  }
  // The operands [first, last), as far as they are there.
  void use_some(Use use, std::size_t first, std::size_t last) {
    last = std::min(last, operands_.size());
    for (std::size_t i = first; i < last; ++i)
      use_one(use, operands_[i], given_.tree || form_.in_find);
  }

  void use_argument(std::string_view name, const Part& argument);
  void note_option(std::string_view name, const Part& argument);
  void note_letters(std::string_view letters);

  void use_operands();
  void use_alike();
  void use_settings();
  void use_archive();
  void use_downloads();
  void use_packed();
  void make_links();
  void copy_files();
  void write_below(std::size_t first, std::size_t last);
  void check_mode(const Part& mode);
  void check_modes();

  Subject& subject_;
  const FileProgram& program_;
  const Form& form_;
  std::vector<Part> operands_ = {};
  Given given_ = {};
};

// options -----------------------------------------------------------------------------------------

void OperandReader::use_argument(std::string_view name, const Part& argument) {
  if (!argument.word) return;
  if (lists_option(program_.writes, name))
    use_one(Use::write, argument);
  else if (lists_option(program_.reads, name))
    use_one(Use::read, argument);
  else if (lists_option(program_.modes, name))
    check_mode(argument);
}

void OperandReader::note_option(std::string_view name, const Part& argument) {
  if (lists_option(program_.directory, name)) given_.directory = argument;
  given_.tree |= abbreviates(name, "R", "a", "r", "recursive");
  given_.in_place |= abbreviates(name, "i", "in-place");
  // The -f of chmod is another one.
  given_.has_pattern |= is(Operands::chmod) || is(Operands::change)
                            ? abbreviates(name, "reference")
                            : abbreviates(name, "e", "f", "regexp", "expression", "file");
  given_.only_shows |= abbreviates(name, "n", "dry-run");
  switch (program_.operands) {
    case Operands::shred:
      given_.removes |= abbreviates(name, "u", "remove");
      return;
    case Operands::sync:
      given_.removes |= starts_with(name, "del"sv);
      given_.removes_sources |= abbreviates(name, "remove-source-files", "remove-sent-files");
      return;
    case Operands::link:
      given_.symbolic |= abbreviates(name, "s", "symbolic");
      return;
    case Operands::pack:
      given_.removes |= lists_option(program_.modes, name);
      return;
    case Operands::tar:
      note_letters(name.size() == 1 ? name : std::string_view());
      given_.packs |= abbreviates(name, "create", "append", "update", "catenate", "concatenate");
      given_.unpacks |= abbreviates(name, "extract", "get");
      given_.removes |= abbreviates(name, "remove-files");
      if (abbreviates(name, "f", "file")) given_.archive = argument;
      return;
    case Operands::fetch:
    case Operands::unpack:
      given_.fetches |= lists_option(program_.modes, name);
      return;
    case Operands::chmod:
      // chmod -x: the mode looks like an option
      given_.has_pattern |= "rwxXstugoa,+="sv.find(name) != std::string_view::npos;
      return;
    default:
      return;
  }
}

// tar cf FILE: the first word has letters of options, too.
void OperandReader::note_letters(std::string_view letters) {
  given_.packs |= letters.find_first_of("cruA") != std::string_view::npos;
  given_.unpacks |= letters.find('x') != std::string_view::npos;
}

// operands ----------------------------------------------------------------------------------------

void OperandReader::use_operands() {
  switch (program_.operands) {
    case Operands::none:
    case Operands::git:
      return;
    case Operands::link:
      copy_files();
      return make_links();
    case Operands::copy:
    case Operands::move:
    case Operands::sync:
      return copy_files();
    case Operands::pack:
    case Operands::pack_command:
      return use_packed();
    case Operands::filter:
      use_some(Use::read, 0, 1);
      return use_some(Use::write, 1, 2);
    case Operands::key_value:
      return use_settings();
    case Operands::patch:
      if (given_.directory.word) use_one(Use::write, given_.directory);
      use_some(Use::read, 1, no_word);
      return write_below(0, std::min<std::size_t>(operands_.size(), 1));
    case Operands::tar:
      return use_archive();
    case Operands::fetch:
    case Operands::unpack:
      return use_downloads();
    case Operands::chmod:
      check_modes();
      return use_alike();
    default:
      return use_alike();
  }
}

// Kinds of programs that do the same with all operands; the first may be a pattern or a mode.
void OperandReader::use_alike() {
  const std::size_t behind_pattern = given_.has_pattern ? 0 : 1;
  switch (program_.operands) {
    case Operands::write:
      return use_some(Use::write, 0, no_word);
    case Operands::make:
      return use_some(Use::make, 0, no_word);
    case Operands::change:
      return use_some(Use::change, behind_pattern, no_word);
    case Operands::chmod:
      return use_some(Use::chmod, behind_pattern, no_word);
    case Operands::acl:
      return use_some(Use::chmod, 0, no_word);
    case Operands::pattern:
      return use_some(Use::read, behind_pattern, no_word);
    case Operands::sed:
      return use_some(given_.in_place ? Use::write : Use::read, behind_pattern, no_word);
    case Operands::remove:
      return use_some(Use::remove, 0, no_word);
    case Operands::rm:
      return use_some(given_.tree ? Use::remove_tree : Use::remove, 0, no_word);
    case Operands::remove_tree:
      return use_some(Use::remove_tree, 0, no_word);
    case Operands::shred:
      use_some(Use::write, 0, no_word);
      if (given_.removes) use_some(Use::remove, 0, no_word);
      return;
    default:
      return use_some(Use::read, 0, no_word);
  }
}

// if=FILE of=FILE
void OperandReader::use_settings() {
  for (const Part& operand : operands_) {
    std::string_view value = operand.text;
    const std::string_view key = take_part(value, '=');
    if (key == "of"sv) use_one(Use::write, {value, operand.word});
    if (key == "if"sv) use_one(Use::read, {value, operand.word});
  }
}

void OperandReader::use_archive() {
  std::size_t members = 0;
  if (form_.size > 1 && !starts_with(form_.words[1].text, "-"sv) && !operands_.empty()) {
    const std::string_view letters = operands_[members++].text;
    note_letters(letters);
    if (letters.find('f') != std::string_view::npos && operands_.size() > 1)
      given_.archive = operands_[members++];
  }
  if (given_.archive.word && !is_remote(given_.archive.text))
    use_one(given_.packs ? Use::write : Use::read, given_.archive);
  if (given_.packs && given_.removes) {
    const PathText directory =
        given_.directory.word ? subject_.path_of(given_.directory) : subject_.base();
    for (std::size_t i = members; i < operands_.size(); ++i)
      check_removal(subject_, operands_[i], subject_.path_from(directory, operands_[i]), true,
                    form_);
  }
  if (!given_.unpacks) return;
  if (given_.directory.word) use_one(Use::write, given_.directory);
  write_below(members, operands_.size());
}

// Files that are put into an archive, and removed then. Options of the command kind are words of
// their own: -sdel. Before the archive, that has a command: rar m.
void OperandReader::use_packed() {
  const bool has_command = is(Operands::pack_command);
  for (std::size_t i = 1; i < form_.size && has_command; ++i) {
    const std::string_view text = form_.words[i].text;
    given_.removes |= starts_with(text, "-"sv) && program_.modes.has(text.substr(1));
  }
  if (has_command && !operands_.empty()) given_.removes |= is_any(operands_[0].text, "m", "mf");
  const std::size_t archive = has_command ? 1 : 0;
  use_some(Use::write, archive, archive + 1);
  use_some(given_.removes ? Use::remove_tree : Use::read, archive + 1, no_word);
}

// Where the new links lead. A single name may be that of a directory, which gets the link.
void OperandReader::make_links() {
  std::size_t sources = operands_.size();
  Part target = given_.directory;
  if (!target.word && sources > 1) target = operands_[--sources];
  const PathText directory = target.word ? subject_.path_of(target, true) : subject_.base();
  // A symbolic link leads on from where it lies.
  PathText from = given_.symbolic ? directory : subject_.base();
  const bool is_name = given_.symbolic && target.word && !given_.directory.word;
  if (is_name && !from.names.empty()) from.names.pop_back();
  for (std::size_t i = 0; i < sources; ++i) {
    const Part& source = operands_[i];
    PathText name = directory;
    const PathText to = subject_.path_from(from, source, true);
    if (to.root == PathText::Root::relative || subject_.in_workspace(to)) continue;
    if (target.word && !given_.directory.word && sources == 1)
      subject_.links.note(subject_.path_of(target), to);
    const std::string_view last = base_name(source.text);
    if (last.empty() || last == "."sv || last == ".."sv) continue;
    name.names.push_back(last);
    subject_.links.note(name, to);
  }
}

// A file from elsewhere gets the last name of its address.
void OperandReader::use_downloads() {
  // fetch writes with such an option, unpack without one.
  if (given_.fetches != is(Operands::fetch)) return;
  for (Part& operand : operands_) operand.text = base_name(operand.text);
  write_below(0, 0);
  write_below(0, operands_.size());
}

void OperandReader::copy_files() {
  const bool moves = is(Operands::move);
  const bool syncs = is(Operands::sync);
  const bool removes = given_.removes_sources && !given_.only_shows;
  if (!given_.directory.word && operands_.size() < 2) return;
  const Part target = given_.directory.word ? given_.directory : operands_.back();
  const std::size_t sources = operands_.size() - (given_.directory.word ? 0 : 1);
  for (std::size_t i = 0; i < sources; ++i) {
    const Part& source = operands_[i];
    if (!is(Operands::link) && !(syncs && is_remote(source.text)))
      use_one(moves || removes ? Use::move : Use::read, source, given_.tree || form_.in_find);
  }
  if (syncs && is_remote(target.text)) return;
  use_one(moves ? Use::mv_target : Use::copy_target, target);
  const PathText path = subject_.path_of(target, true);
  if (syncs && given_.removes && !given_.only_shows)
    check_removal(subject_, target, path, false, form_);
  // A directory gets files of the same names.
  for (std::size_t i = 0; i < sources; ++i) {
    std::string_view source = operands_[i].text;
    // To rsync, a/ is what is in a: there is no name to add.
    while (!syncs && ends_with(source, "/"sv)) source.remove_suffix(1);
    PathText copy = path;
    const std::string_view name = base_name(source);
    if (!name.empty() && name != "."sv && name != ".."sv) copy.names.push_back(name);
    check_place(subject_, copy, target, form_);
    if (!subject_.judged.files) continue;
    const PathText from = subject_.path_of(operands_[i], true);
    if (sources == 1) subject_.copies.note(path, from);
    subject_.copies.note(copy, from);
  }
}

// The operands [first, last) are written, in the directory that is given or in the base. If the
// range is empty, the directory itself is checked.
void OperandReader::write_below(std::size_t first, std::size_t last) {
  const PathText directory =
      given_.directory.word ? subject_.path_of(given_.directory) : subject_.base();
  if (first >= last) check_place(subject_, directory, part_of(form_.words[0]), form_);
  for (std::size_t i = first; i < last; ++i) {
    check_place(subject_, subject_.path_from(directory, operands_[i], true), operands_[i], form_);
  }
}

// modes -------------------------------------------------------------------------------------------

void OperandReader::check_mode(const Part& mode) {
  if (!subject_.judged.wants(Rule::chmod)) return;
  if (mode.glob() || (is(Operands::acl) ? is_risky_acl(mode.text) : is_risky_mode(mode.text)))
    subject_.refuse(Rule::chmod, form_.words[0], form_);
}

// chmod 777 FILE, chmod -x FILE
void OperandReader::check_modes() {
  for (std::size_t i = 1; i < form_.size && given_.has_pattern; ++i)
    if (starts_with(form_.words[i].text, "-"sv) && !starts_with(form_.words[i].text, "--"sv))
      check_mode(part_of(form_.words[i]));
  if (!given_.has_pattern && !operands_.empty()) check_mode(operands_[0]);
}

// git clean removes what is in the directory that git works in.
void check_clean(Subject& subject, const Form& form) {
  PathText path = subject.base();
  Wrapper git;
  find_wrapper("git"sv, git);
  Arguments before(form, git.syntax, Order::stop_at_operand);
  while (before.next())
    if (before.part.word && before.is("C", "work-tree"))
      enter(path, before.part.text, before.part.home());
  const std::size_t i = before.at();
  if (i >= form.size || form.words[i].text != "clean" || !subject.judged.wants(Rule::rm_protected))
    return;
  static constexpr auto longs = NameSet{"exclude"};
  Arguments each(form.from(i), {"e", longs}, Order::options_anywhere);
  while (each.next())
    if (each.is("n", "dry-run", "h", "help")) return;
  if (!subject.is_kept(path, true, false)) return;
  subject.refuse(Rule::rm_protected, form.words[0], form,
                 concat(" removes what is in %", {shown(text_of(path))}));
}

}  // namespace

inline namespace inner {

void judge_files(Subject& subject, const FileProgram& program, const Form& form) {
  if (program.operands == Operands::git) return check_clean(subject, form);
  // No rule refuses to read a file.
  const bool only_reads = program.operands == Operands::read && program.writes.empty();
  if (only_reads && !subject.judged.collected) return;
  OperandReader(subject, program, form).read();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
