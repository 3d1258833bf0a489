// A change of a file as a person reads it, and patch(1).

#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) lines.push_back(take_part(text, '\n'));
  return lines;
}

// Lines from `begin` up to `end` for a terminal, each behind `sign`, and at most 400 bytes of each.
void append_lines(std::string& out, char sign, const Lines& lines, std::size_t begin,
                  std::size_t end) {
  for (; begin < end; ++begin) {
    std::string_view line = lines[begin].substr(0, 400);
    out += sign;
    for (bool first = true; first || !line.empty(); first = false)
      append_all(out, {first ? "" : "\t", printable(take_part(line, '\t'))});
    out += lines[begin].size() > 400 ? " ...\n" : "\n";
  }
}

// Lines [begin, end) of one text that stand in the place of those of another one.
struct LineChange {
  std::size_t old_begin = 0;
  std::size_t old_end = 0;
  std::size_t new_begin = 0;
  std::size_t new_end = 0;
};

// Whether two lines are the same there, and the next ones, unless one text ends.
bool agree(const Lines& old, std::size_t i, const Lines& edited, std::size_t j) {
  if (old[i] != edited[j]) return false;
  return i + 1 == old.size() || j + 1 == edited.size() || old[i + 1] == edited[j + 1];
}

// The changes of a text. Edits are few and small: behind each, the texts agree again within some
// lines. Where they do not, all up to what is the same at the end is one change.
std::vector<LineChange> changes_of(const Lines& old, const Lines& edited) {
  constexpr std::size_t window = 60;
  const std::size_t shorter = std::min(old.size(), edited.size());
  std::size_t i = 0;
  while (i < shorter && old[i] == edited[i]) ++i;
  std::size_t j = i;
  std::size_t below = 0;
  while (below < shorter - i && old[old.size() - 1 - below] == edited[edited.size() - 1 - below])
    ++below;
  const std::size_t old_end = old.size() - below;
  const std::size_t new_end = edited.size() - below;
  std::vector<LineChange> changes;
  while (i < old_end || j < new_end) {
    LineChange change = {i, old_end, j, new_end};
    bool is_found = false;
    for (std::size_t sum = 1; sum <= window && !is_found; ++sum)
      for (std::size_t skipped = 0; skipped <= sum && !is_found; ++skipped) {
        const std::size_t old_at = i + skipped;
        const std::size_t new_at = j + sum - skipped;
        if (old_at >= old_end || new_at >= new_end) continue;
        is_found = agree(old, old_at, edited, new_at);
        if (is_found) change = {i, old_at, j, new_at};
      }
    changes.push_back(change);
    i = change.old_end;
    j = change.new_end;
    while (i < old_end && j < new_end && old[i] == edited[j]) {
      ++i;
      ++j;
    }
  }
  return changes;
}

}  // namespace

inline namespace inner {

void append_hunks(std::string& diff, std::string_view old_text, std::string_view edited_text,
                  std::size_t old_line, std::size_t new_line) {
  const Lines old = lines_of(old_text);
  const Lines edited = lines_of(edited_text);
  const std::vector<LineChange> changes = changes_of(old, edited);
  for (std::size_t first = 0; first < changes.size();) {
    std::size_t last = first;  // of the hunk: changes whose context meets
    while (last + 1 < changes.size() &&
           changes[last + 1].old_begin - changes[last].old_end <= 2 * diff_context)
      ++last;
    const std::size_t before = std::min(changes[first].old_begin, diff_context);
    const std::size_t after = std::min(old.size() - changes[last].old_end, diff_context);
    std::size_t at = changes[first].old_begin - before;
    const std::size_t new_at = changes[first].new_begin - before;
    append_all(diff, "@@ -%,% +%,% @@\n",
               {old.empty() ? old_line : old_line + at + 1, changes[last].old_end + after - at,
                new_line + new_at + 1, changes[last].new_end + after - new_at});
    for (; first <= last; ++first) {
      const LineChange& change = changes[first];
      append_lines(diff, ' ', old, at, change.old_begin);
      append_lines(diff, '-', old, change.old_begin, change.old_end);
      append_lines(diff, '+', edited, change.new_begin, change.new_end);
      at = change.old_end;
    }
    append_lines(diff, ' ', old, at, at + after);
  }
}

std::string unified_diff(std::string_view path, std::string_view old_text,
                         std::string_view edited_text) {
  std::string diff = concat("--- %\n+++ %\n", {old_text.empty() ? "/dev/null" : path, path});
  append_hunks(diff, old_text, edited_text, 0, 0);
  return diff;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
