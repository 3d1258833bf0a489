// What a copy left out, and why: the notes on it.

#include "copy/tree_internal.hpp"
#include "copy/wire_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A note names the first five, and counts them all: a folder may have thousands.
namespace {

const char* words_of_copy(CopyReport::Kind kind) {
  switch (kind) {
    case CopyReport::conflict:
      return "changed both here and there, so each side keeps its own (remove one of them to have "
             "the other): ";
    case CopyReport::special:
      return "not copied, as it is neither a file nor a folder nor a link: ";
    case CopyReport::unreadable:
      return "not copied, as it cannot be read: ";
    case CopyReport::deep:
      return "not copied, as it lies too deep: ";
    case CopyReport::not_writable:
      return "not changed here, where it may only be read: ";
    case CopyReport::failed:
    case CopyReport::kinds:
      break;
  }
  return "not copied: ";
}

}  // namespace

void CopyNames::add(std::string_view path) {
  constexpr std::size_t shown = 5;
  if (++count <= shown)
    append_all(text, {text.empty() ? "" : ", ", path.empty() ? "." : std::string(in_quotes(path))});
}

// By the errno of a path that was not put. A folder in the way, or a link, was made by a change
// here, and so is a conflict; the first other error stands for all of them.
void CopyReport::add(int number, std::string_view path) {
  if (number == copy_conflict || number == ENOTDIR || number == ELOOP)
    return names[conflict].add(path);
  if (number == EROFS) return names[not_writable].add(path);
  if (error == 0) error = number;
  names[failed].add(path);
}

// The text comes from the other side: it is cut and made printable.
bool CopyReport::take(std::uint64_t kind, std::uint64_t count, std::string_view text) {
  if (kind >= kinds) return false;
  names[kind].count = static_cast<std::size_t>(count);
  names[kind].text = printable(utf8_prefix(text, 1024));
  return true;
}

// What stays left out is said once in the life of a copy, and not with each command: `said` has
// those notes, up to 64 KiB. Conflicts and failures are said each time, as they wait for someone to
// act.
std::string CopyReport::text(std::string_view where, std::string& said) const {
  std::string all;
  for (int kind = 0; kind < kinds; ++kind) {
    const CopyNames& these = names[kind];
    std::string note =
        concat("%: %%", {where, words_of_copy(static_cast<CopyReport::Kind>(kind)), these.text});
    if (these.count > 5) append_all(note, " and % more", {these.count - 5});
    if (kind == failed) append_all(note, ": %", {errno_text(error)});
    const bool stays = kind >= special && kind <= deep;
    if (these.count == 0 || (stays && said.find(note) != std::string::npos)) continue;
    if (stays && said.size() < 65536) said += note;
    append_all(all, {all.empty() ? "" : "; ", note});
  }
  return all;
}

}  // namespace v0_1
}  // namespace codeexec
