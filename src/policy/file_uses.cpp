// Files that a command reads, writes or removes: the rules for them, and the list of them.
//
// Programs differ in what they do with a file, the rules only in where it lies. So each part that
// finds a file in a command calls use_file() with one of the uses below.
//
//   use                     refused where
//   read, change            never: the list for Policy::judge() has them
//   write                   it is a device, or a place that commands do not write to
//   make, copy_target       it is a device; the caller checks the places of the files in a copy
//   mv_target               it is /dev/null; else as copy_target
//   chmod                   it is protected, with all that is below
//   remove, move            it is protected
//   remove_tree             it is protected, or would be / if a variable is empty

#include "policy/subject_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

FileAccess::Kind kind_of(Use use) {
  if (use == Use::read) return FileAccess::Kind::read;
  const bool removes = use == Use::remove || use == Use::remove_tree || use == Use::move;
  return removes ? FileAccess::Kind::remove : FileAccess::Kind::write;
}

std::string shown_write(const PathText& path, const Form& form) {
  const std::string program = form.size ? shown(join(form)) + " " : std::string();
  return concat("%writes to %", {program, shown(text_of(path))});
}

void collect_file(Case& judged, Use use, const Part& part, const PathText& path, bool recursive) {
  FileAccess file;
  file.kind = kind_of(use);
  file.path = text_of(path);
  file.recursive = recursive;
  file.glob = part.glob();
  file.begin = part.word->begin;
  file.end = part.word->end;
  if (is_unknown(file.path))
    judged.understood = false;
  else
    judged.collected->files.push_back(std::move(file));
}

void check_use(Subject& subject, Use use, const Part& part, const PathText& path, bool recursive,
               const Form& form) {
  Case& judged = subject.judged;
  switch (use) {
    case Use::mv_target:
      if (is_dev_null(path)) {
        if (judged.wants(Rule::mv_dev_null)) subject.refuse(Rule::mv_dev_null, *part.word, form);
        return;
      }
      [[fallthrough]];
    case Use::write:
    case Use::make:
    case Use::copy_target:
      if (judged.wants(Rule::device_write) && is_device(path, part.glob()))
        judged.refuse(Rule::device_write, part.word->begin, part.word->end,
                      shown_write(path, form));
      if (use == Use::write) check_place(subject, path, part, form);
      return;
    case Use::chmod:
      if (recursive && judged.wants(Rule::chmod) && subject.removal_is_protected(part, path))
        subject.refuse(Rule::chmod, *part.word, form);
      return;
    case Use::remove_tree:
      subject.variables.check_removal(judged, subject.command, part);
      [[fallthrough]];
    case Use::remove:
    case Use::move:
      return check_removal(subject, part, path, use == Use::remove_tree, form);
    case Use::read:
    case Use::change:
      return;
  }
}

}  // namespace

inline namespace inner {

void use_redirection(Subject& subject, const shell::Redirection& redirection) {
  const Part target = part_of(redirection.target);
  if (redirection.writes())
    use_file(subject, Use::write, target, false, Form());
  else if (redirection.kind == shell::Redirection::Kind::read)
    use_file(subject, Use::read, target, false, Form());
}

void use_file(Subject& subject, Use use, const Part& part, bool recursive, const Form& form) {
  if (part.text.empty() || part.word->process) return;
  Case& judged = subject.judged;
  // No rule refuses to read a file.
  if (use == Use::read && !judged.collected) return;
  if (part.text == "-"sv && (use == Use::read || use == Use::write)) return;
  const bool removes = kind_of(use) == FileAccess::Kind::remove;
  const PathText path = subject.path_of(part, !removes);
  if (removes) subject.links.forget(path);
  // The walk gave up on following this variable, and the path may be any.
  if (subject.command.widened && recursive && is_unknown(part.text.substr(0, 1)))
    judged.too_complex = true;
  // A connection, which the network's rules are for.
  if (is_known_path(path, PathKind::connection)) return;
  check_use(subject, use, part, path, recursive, form);
  // Its text is not known any more, if the script has written it; what tee writes the walk knows.
  if (use == Use::write && form.size > 0 && !form.holes && base_name(form.words[0].text) != "tee"sv)
    subject.changed.push_back(std::string(part.text));
  // What runs elsewhere has files of its own.
  if (judged.collected && !form.holes && !subject.command.holes)
    collect_file(judged, use, part, path, recursive);
}

void check_place(Subject& subject, const PathText& path, const Part& part, const Form& form) {
  if (is_known_path(path, PathKind::harmless)) return;
  each_keeper(path, part.glob(), [&](Rule rule) {
    if (subject.judged.wants(rule))
      subject.judged.refuse(rule, part.word->begin, part.word->end, shown_write(path, form));
  });
}

void check_removal(Subject& subject, const Part& part, const PathText& path, bool tree,
                   const Form& form) {
  if (!subject.judged.wants(Rule::rm_protected) || !subject.removal_is_protected(part, path))
    return;
  if (!tree && is_known_path(path, PathKind::removable)) return;
  if (form.tested && is_known_path(path, PathKind::scratch)) return;
  if (form.lenient && (!part.word->known() || part.word->assumed)) return;
  subject.refuse(Rule::rm_protected, *part.word, form,
                 concat(" removes %", {shown(text_of(path))}));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
