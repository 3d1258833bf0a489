// The judge: what a program does with the files that are named to it.

#include "policy/judge_internal.hpp"
#include "policy/policy_internal.hpp"
#include "policy/rules_internal.hpp"
#include "policy/tables_internal.hpp"
#include "policy/wrapper_table_internal.hpp"

#include "base/base_internal.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The arguments of a program that uses files.
struct FileArguments {
  std::vector<Part> operands = {};
  Part directory = {};       // where the operands are written to
  Part archive = {};         // of tar
  bool tree = false;         // -r, or options that are not known
  bool in_place = false;     // sed -i
  bool has_pattern = false;  // a pattern or a mode is given by an option
  bool removes = false;      // shred -u, rsync --delete
  bool only_shows = false;   // -n
  bool packs = false;        // tar -c
  bool unpacks = false;      // tar -x
  bool fetches = false;      // an option of the last column of fetch and unpack
};

}  // namespace inner

namespace {

// tar cf FILE: the first word has letters of options, too.
void take_letters(FileArguments& given, std::string_view letters) {
  given.packs |= letters.find_first_of("cruA") != std::string_view::npos;
  given.unpacks |= letters.find('x') != std::string_view::npos;
}

// HOST:PATH, as rsync and scp have it.
bool is_remote(std::string_view path) {
  const std::size_t colon = path.find(':');
  return colon != std::string_view::npos && colon < path.find('/');
}

}  // namespace

inline namespace inner {

void Judge::judge_files(const FileProgram& program, const Form& form) {
  using Operands = FileProgram::Operands;
  if (program.operands == Operands::git) return check_clean(form);
  if (program.operands == Operands::read && program.writes.empty() && !case_.collecting) return;
  FileArguments given;
  read_arguments(
      form, program.syntax, Order::options_anywhere,
      [&](std::string_view name, const Part& argument) {
        take_option(program, form, given, name, argument);
      },
      [&](const Part& operand) {
        // An unquoted $OPTIONS may hold -r.
        if (operand.text == std::string_view("\0", 1) && operand.word->split) given.tree = true;
        given.operands.push_back(operand);
      });
  use_operands(program, form, given);
}

void Judge::take_option(const FileProgram& program, const Form& form, FileArguments& given,
                        std::string_view name, const Part& argument) {
  if (argument.word && lists_option(program.writes, name))
    use_file(Use::write, argument, false, form);
  else if (argument.word && lists_option(program.reads, name))
    use_file(Use::read, argument, false, form);
  else if (argument.word && lists_option(program.modes, name))
    check_mode(argument, program.operands == FileProgram::Operands::acl, form);
  if (lists_option(program.directory, name)) given.directory = argument;
  given.tree |= lists_option("R a r recursive"sv, name);
  given.in_place |= lists_option("i in-place"sv, name);
  given.has_pattern |= lists_option("e f regexp expression file reference"sv, name);
  given.only_shows |= lists_option("n dry-run"sv, name);
  switch (program.operands) {
    case FileProgram::Operands::shred:
      given.removes |= lists_option("u remove"sv, name);
      return;
    case FileProgram::Operands::sync:
      given.removes |= starts_with(name, "del"sv);
      return;
    case FileProgram::Operands::tar:
      take_letters(given, name.size() == 1 ? name : std::string_view());
      given.packs |= lists_option("create append update catenate concatenate"sv, name);
      given.unpacks |= lists_option("extract get"sv, name);
      if (lists_option("f file"sv, name)) given.archive = argument;
      return;
    case FileProgram::Operands::fetch:
    case FileProgram::Operands::unpack:
      given.fetches |= lists_option(program.modes, name);
      return;
    case FileProgram::Operands::chmod:
      // chmod -x: the mode looks like an option
      given.has_pattern |= "rwxXstugoa,+="sv.find(name) != std::string_view::npos;
      return;
    default:
      return;
  }
}

void Judge::use_operands(const FileProgram& program, const Form& form, FileArguments& given) {
  using Operands = FileProgram::Operands;
  const std::vector<Part>& operands = given.operands;
  const std::size_t count = operands.size();
  const std::size_t behind_pattern = given.has_pattern ? 0 : 1;
  const auto use_all = [&](Use use, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i)
      use_file(use, operands[i], given.tree || form.in_find, form);
  };
  switch (program.operands) {
    case Operands::none:
    case Operands::git:
      return;
    case Operands::read:
      return use_all(Use::read, 0, count);
    case Operands::write:
      return use_all(Use::write, 0, count);
    case Operands::make:
      return use_all(Use::make, 0, count);
    case Operands::change:
      return use_all(Use::change, behind_pattern, count);
    case Operands::chmod:
      for (std::size_t i = 1; i < form.size && given.has_pattern; ++i)
        if (starts_with(form.words[i].text, "-"sv) && !starts_with(form.words[i].text, "--"sv))
          check_mode(part_of(form.words[i]), false, form);
      if (!given.has_pattern && count) check_mode(operands[0], false, form);
      return use_all(Use::chmod, behind_pattern, count);
    case Operands::acl:
      return use_all(Use::chmod, 0, count);
    case Operands::pattern:
      return use_all(Use::read, behind_pattern, count);
    case Operands::sed:
      return use_all(given.in_place ? Use::write : Use::read, behind_pattern, count);
    case Operands::remove:
      return use_all(Use::remove, 0, count);
    case Operands::rm:
      return use_all(given.tree ? Use::remove_tree : Use::remove, 0, count);
    case Operands::shred:
      use_all(Use::write, 0, count);
      return given.removes ? use_all(Use::remove, 0, count) : void();
    case Operands::filter:
      use_all(Use::read, 0, std::min<std::size_t>(count, 1));
      return use_all(Use::write, 1, std::min<std::size_t>(count, 2));
    case Operands::key_value:
      for (const Part& operand : operands) {
        const Part value{operand.text.substr(std::min<std::size_t>(3, operand.text.size())),
                         operand.word};
        if (starts_with(operand.text, "of="sv)) use_file(Use::write, value, false, form);
        if (starts_with(operand.text, "if="sv)) use_file(Use::read, value, false, form);
      }
      return;
    case Operands::patch:
      if (given.directory.word) use_file(Use::write, given.directory, false, form);
      use_all(Use::read, 1, count);
      return write_below(given, 0, std::min<std::size_t>(count, 1), form);
    case Operands::fetch:
    case Operands::unpack:
      if (given.fetches != (program.operands == Operands::fetch)) return;
      for (Part& operand : given.operands) operand.text = base_name(operand.text);
      write_below(given, 0, 0, form);
      return write_below(given, 0, count, form);
    case Operands::tar:
      return use_archive(given, form);
    case Operands::copy:
    case Operands::link:
    case Operands::move:
    case Operands::sync:
      return copy_files(program, form, given);
  }
}

void Judge::copy_files(const FileProgram& program, const Form& form, const FileArguments& given) {
  using Operands = FileProgram::Operands;
  const std::vector<Part>& operands = given.operands;
  const bool moves = program.operands == Operands::move;
  const bool syncs = program.operands == Operands::sync;
  const std::size_t count = operands.size();
  if (!given.directory.word && count < 2) return;
  const std::size_t sources = given.directory.word ? count : count - 1;
  for (std::size_t i = 0; i < sources && program.operands != Operands::link; ++i)
    if (!syncs || !is_remote(operands[i].text))
      use_file(moves ? Use::move : Use::read, operands[i], given.tree || form.in_find, form);
  const Part& target = given.directory.word ? given.directory : operands.back();
  if (syncs && is_remote(target.text)) return;
  use_file(moves ? Use::mv_target : Use::copy_target, target, false, form);
  if (syncs && given.removes && !given.only_shows)
    check_removal(target, path_of(target), false, form);
  // A directory gets files of the same names.
  for (std::size_t i = 0; i < sources; ++i) {
    std::string_view source = operands[i].text;
    while (!syncs && ends_with(source, "/"sv)) source.remove_suffix(1);
    PathText path = path_of(target);
    const std::string_view name = base_name(source);
    if (!name.empty() && name != "."sv && name != ".."sv) path.names.push_back(name);
    check_place(path, target, form);
  }
}

void Judge::write_below(const FileArguments& given, std::size_t first, std::size_t last,
                        const Form& form) {
  const PathText directory = given.directory.word ? path_of(given.directory) : base();
  if (first >= last) check_place(directory, part_of(form.words[0]), form);
  for (std::size_t i = first; i < last; ++i) {
    PathText path = directory;
    enter(path, given.operands[i].text, given.operands[i].home());
    check_place(path, given.operands[i], form);
  }
}

void Judge::use_archive(FileArguments& given, const Form& form) {
  std::size_t members = 0;
  if (form.size > 1 && !starts_with(form.words[1].text, "-"sv) && !given.operands.empty()) {
    const std::string_view letters = given.operands[members++].text;
    take_letters(given, letters);
    if (letters.find('f') != std::string_view::npos && given.operands.size() > 1)
      given.archive = given.operands[members++];
  }
  if (given.archive.word && !is_remote(given.archive.text))
    use_file(given.packs ? Use::write : Use::read, given.archive, false, form);
  if (!given.unpacks) return;
  if (given.directory.word) use_file(Use::write, given.directory, false, form);
  write_below(given, members, given.operands.size(), form);
}

void Judge::check_clean(const Form& form) {
  PathText path = base();
  Wrapper git;
  find_wrapper("git"sv, git);
  const std::size_t i = read_arguments(
      form, git.syntax, Order::stop_at_operand,
      [&](std::string_view name, const Part& argument) {
        if (argument.word && lists_option("C work-tree"sv, name))
          enter(path, argument.text, argument.home());
      },
      ignore_part);
  if (i >= form.size || form.words[i].text != "clean" || !wants(Rule::rm_protected)) return;
  bool only_shows = false;
  const auto on_option = [&](std::string_view name, const Part&) {
    only_shows |= lists_option("n dry-run h help"sv, name);
  };
  read_arguments(form.from(i), {"e", "exclude"}, Order::options_anywhere, on_option, ignore_part);
  if (only_shows || !is_kept(path, true, false)) return;
  record(Rule::rm_protected, form.words[0], form,
         concat({" removes what is in ", shown(text_of(path))}));
}

void Judge::check_mode(const Part& mode, bool acl, const Form& form) {
  if (!wants(Rule::chmod)) return;
  if (mode.glob() || (acl ? is_risky_acl(mode.text) : is_risky_mode(mode.text)))
    record(Rule::chmod, form.words[0], form);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
