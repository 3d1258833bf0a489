// Editing a file: exact texts become others, and the difference.
//
//   the file         ....[ a ]......[ b ]...      places, in order, none in another
//   what is written  ....[ A ]......[ B ]...
//   the difference   windows: places with the lines around them; near ones share one

#include "files/files.hpp"
#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t nowhere = std::string_view::npos;

std::size_t line_end(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size() - 1) + 1;
}

std::string with_crlf(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) result += '\r';
    result += text[i];
  }
  return result;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
  line.remove_prefix(begin);
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

// The lines of a file that are most like a text which it does not have.
class NearestLines {
 public:
  NearestLines(std::string_view file, std::string_view wanted) : file_(file) {
    while (!wanted.empty() && wanted_.size() < most_wanted)
      wanted_.push_back(take_part(wanted, '\n'));
    for (std::size_t i = wanted_.size(); i-- > 0;)
      if (const std::string_view line = trimmed(wanted_[i]); !line.empty()) places_[line] = i;
  }

  // Such as "the nearest is at line 3: 'x'". Empty: there is nothing like it.
  std::string text() {
    if (!find_same() && !find_alike()) return {};
    std::string_view rest = file_;
    for (std::size_t line = 0; line < best_; ++line) take_part(rest, '\n');
    std::size_t at = 0;
    std::string_view found = take_part(rest, '\n');
    const std::string_view first = found;
    while (at + 1 < wanted_.size() && same(found, wanted_[at]) && !rest.empty()) {
      found = take_part(rest, '\n');
      ++at;
    }
    if (same(found, wanted_[at])) at = 0;
    if (at == 0) return concat("; the nearest is at line %: %", {best_ + 1, shown(first)});
    return concat("; the nearest is at line %, but its line % is %, not %",
                  {best_ + 1, best_ + at + 1, shown(found), shown(wanted_[at])});
  }

 private:
  static constexpr std::size_t most_wanted = 64;
  static constexpr std::size_t longest_line = 1024;  // that is compared

  // A part of a line might be one of a secret, which no mask would find any more.
  static std::string shown(std::string_view line) {
    constexpr std::size_t longest_shown = 300;
    if (line.size() > longest_shown) return concat("one of % bytes", {line.size()});
    return concat("%", {in_quotes(line)});
  }

  static bool same(std::string_view a, std::string_view b) {
    if (ends_with(a, "\r"sv)) a.remove_suffix(1);
    if (ends_with(b, "\r"sv)) b.remove_suffix(1);
    return a == b;
  }

  // By lines that both have, but for blanks at their ends: each is a vote for a beginning.
  bool find_same() {
    std::string votes(count_line_ends(file_) + most_wanted + 2, '\0');
    std::size_t line = most_wanted;
    int most = 0;
    for (std::string_view rest = file_; !rest.empty(); ++line) {
      const auto place = places_.find(trimmed(take_part(rest, '\n')));
      if (place == places_.end()) continue;
      const int count = ++votes[line - place->second];
      if (count <= most) continue;
      most = count;
      best_ = line - place->second;
    }
    best_ -= std::min(best_, most_wanted);
    return most > 0;
  }

  static std::size_t pair_at(std::string_view line, std::size_t i) {
    const auto byte = [&line](std::size_t at) { return static_cast<unsigned char>(line[at]); };
    return std::size_t{byte(i)} << 8 | byte(i + 1);
  }

  // By pairs of characters of the longest line.
  bool find_alike() {
    std::size_t longest = 0;
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i].size() > wanted_[longest].size()) longest = i;
    const std::string_view line = trimmed(wanted_[longest].substr(0, longest_line));
    std::vector<bool> pairs(std::size_t{1} << 16);
    for (std::size_t i = 0; i + 1 < line.size(); ++i) pairs[pair_at(line, i)] = true;
    std::size_t best_score = 400;  // of 1000
    std::size_t number = 0;
    bool is_found = false;
    for (std::string_view rest = file_; !rest.empty(); ++number) {
      const std::string_view other = trimmed(take_part(rest, '\n').substr(0, longest_line));
      std::size_t common = 0;
      for (std::size_t i = 0; i + 1 < other.size(); ++i)
        if (pairs[pair_at(other, i)]) ++common;
      const std::size_t score =
          2000 * std::min(common, line.size()) / (line.size() + other.size() + 1);
      if (score <= best_score) continue;
      best_score = score;
      is_found = true;
      best_ = number - std::min(number, longest);
    }
    return is_found;
  }

  std::string_view file_;
  std::vector<std::string_view> wanted_ = {};
  std::map<std::string_view, std::size_t> places_ = {};  // of what is in `wanted_`
  std::size_t best_ = 0;
};

// Replacements in a text.
class TextEdit {
 public:
  explicit TextEdit(std::string_view text) : text_(text) {
    const std::size_t crlf = count_crlf();
    has_crlf_ = crlf > 0;
    is_crlf_ = 2 * crlf > count_line_ends(text_);
  }

  // Finds the places of an edit. Returns what is wrong, which `code` is for, or nothing.
  std::string add(const FileEdit& edit, std::size_t number, ErrorCode& code) {
    code = ErrorCode::invalid_argument;
    if (edit.old_text.empty()) return "old_text is empty; write_file writes a whole file";
    if (edit.old_text == edit.new_text) return "new_text is the same as old_text";
    std::string converted;
    std::string_view wanted = edit.old_text;
    std::size_t at = find_bytes(text_, wanted, 0);
    bool is_converted = is_crlf_ && wanted.find('\n') == nowhere;
    if (at == nowhere && has_crlf_) {
      converted = with_crlf(wanted);
      at = find_bytes(text_, converted, 0);
      wanted = converted;
      is_converted = true;
    }
    if (at == nowhere) {
      code = ErrorCode::not_found;
      return concat("old_text is not in it%", {NearestLines(text_, edit.old_text).text()});
    }
    if (!edit.all && find_bytes(text_, wanted, at + 1) != nowhere)
      return concat(
          "old_text is at several places, lines %; give more of the text around one, or "
          "set all",
          {lines_of_places(wanted)});
    std::string_view text = edit.new_text;
    if (is_converted) text = texts_.emplace_back(with_crlf(text));
    // What both texts begin and end with stays: edits may share it.
    const std::size_t shorter = std::min(wanted.size(), text.size());
    std::size_t head = 0;
    while (head < shorter && wanted[head] == text[head]) ++head;
    std::size_t tail = 0;
    while (tail < shorter - head &&
           wanted[wanted.size() - 1 - tail] == text[text.size() - 1 - tail])
      ++tail;
    text = text.substr(head, text.size() - head - tail);
    for (; at != nowhere; at = find_bytes(text_, wanted, at + wanted.size())) {
      if (places_.size() == most_places) {
        code = ErrorCode::limit;
        return concat("there are more than % places to replace", {most_places});
      }
      places_.push_back({at + head, at + wanted.size() - tail, number, text});
      if (!edit.all) break;
    }
    return {};
  }

  // Returns what is wrong, or nothing.
  std::string sort() {
    if (!places_.empty())
      std::qsort(places_.data(), places_.size(), sizeof(EditPlace), compare_places);
    for (std::size_t i = 1; i < places_.size(); ++i) {
      const EditPlace& last = places_[i - 1];
      if (places_[i].begin >= last.end && places_[i].begin != last.begin) continue;
      return concat("edits % and % overlap at line %; make them one",
                    {std::min(last.edit, places_[i].edit), std::max(last.edit, places_[i].edit),
                     count_line_ends(text_.substr(0, places_[i].begin)) + 1});
    }
    return {};
  }

  std::size_t replaced() const { return places_.size(); }

  // Of the new text, at most `most` + 1.
  std::size_t size(std::size_t most) const {
    std::size_t size = text_.size();
    for (const EditPlace& place : places_) size -= place.end - place.begin;
    for (const EditPlace& place : places_)
      if (size <= most) size += place.text.size();
    return std::min(size, most + 1);
  }

  std::string result() const { return replaced_text(0, text_.size(), 0, places_.size()); }

  std::string diff() const {
    std::string diff;
    std::size_t line = 0;  // at `counted`
    std::size_t counted = 0;
    std::size_t added = 0;  // lines; wraps around
    bool is_whole = true;
    for (std::size_t first = 0; first < places_.size() && is_whole;) {
      const std::size_t begin = above(places_[first].begin);
      std::size_t end = 0;
      const std::size_t next = end_of_window(first, end);
      line += count_line_ends(text_.substr(counted, begin - counted));
      counted = begin;
      std::string old(text_.substr(begin, end - begin));
      std::string edited = replaced_text(begin, end, first, next);
      const std::size_t more = count_line_ends(edited) - count_line_ends(old);
      is_whole = cut_window(old) && is_whole;
      is_whole = cut_window(edited) && is_whole;
      append_hunks(diff, old, edited, line, line + added);
      added += more;
      is_whole = is_whole && diff.size() <= Files::max_diff;
      first = next;
    }
    if (is_whole) return diff;
    constexpr std::string_view mark = "...\n";
    constexpr std::size_t most = Files::max_diff - mark.size();
    if (diff.size() > most) diff.resize(diff.rfind('\n', most - 1) + 1);
    return diff += mark;
  }

 private:
  struct EditPlace {
    std::size_t begin;
    std::size_t end;
    std::size_t edit;
    std::string_view text;  // instead of it
  };

  static constexpr std::size_t most_places = 100000;

  static int compare_places(const void* a, const void* b) {
    const std::size_t x = static_cast<const EditPlace*>(a)->begin;
    const std::size_t y = static_cast<const EditPlace*>(b)->begin;
    return x < y ? -1 : x > y ? 1 : 0;
  }

  std::size_t count_crlf() const {
    std::size_t count = 0;
    for (std::size_t i = 1; i < text_.size(); ++i)
      if (text_[i] == '\n' && text_[i - 1] == '\r') ++count;
    return count;
  }

  std::string lines_of_places(std::string_view wanted) const {
    constexpr int most = 10;
    std::string text;
    std::size_t line = 1;
    std::size_t counted = 0;
    std::size_t at = find_bytes(text_, wanted, 0);
    for (int i = 0; i < most && at != nowhere; ++i) {
      line += count_line_ends(text_.substr(counted, at - counted));
      counted = at;
      append_all(text, {i == 0 ? "" : ", ", line});
      // Behind the first the next may begin within it, as that counts, too.
      at = find_bytes(text_, wanted, i == 0 ? at + 1 : at + wanted.size());
    }
    return at == nowhere ? text : text + " and more";
  }

  // Where the lines begin and end that a difference shows around a place.
  std::size_t above(std::size_t at) const {
    at = line_start(text_, at);
    for (std::size_t i = 0; i < diff_context && at > 0; ++i) at = line_start(text_, at - 1);
    return at;
  }
  std::size_t below(std::size_t at) const {
    at = line_end(text_, at);
    for (std::size_t i = 0; i < diff_context && at < text_.size(); ++i) at = line_end(text_, at);
    return at;
  }

  // The first place that does not share the window of this one, and where the window ends. A line
  // is looked at a few times, however many places it has.
  std::size_t end_of_window(std::size_t at, std::size_t& end) const {
    std::size_t line = 0;  // the end of the last place's
    do {
      if (places_[at].end < line) continue;
      line = line_end(text_, places_[at].end);
      end = below(places_[at].end);
    } while (++at < places_.size() &&
             (places_[at].begin <= end || above(places_[at].begin) <= end));
    return at;
  }

  // As lines for a difference, which shows no carriage returns. False: it is too long, and was cut.
  bool cut_window(std::string& text) const {
    constexpr std::size_t longest = std::size_t{64} << 10;
    const bool is_short = text.size() <= longest;
    if (!is_short) text.resize(longest);
    if (!has_crlf_) return is_short;
    std::size_t size = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') text[size++] = text[i];
    text.resize(size);
    return is_short;
  }

  // The text from `begin` to `end` with these places replaced.
  std::string replaced_text(std::size_t begin, std::size_t end, std::size_t first,
                            std::size_t next) const {
    std::string text;
    for (; first < next; ++first) {
      const EditPlace& place = places_[first];
      text += text_.substr(begin, place.begin - begin);
      text += place.text;
      begin = place.end;
    }
    return text += text_.substr(begin, end - begin);
  }

  const std::string_view text_;
  bool has_crlf_ = false;
  bool is_crlf_ = false;  // most lines end so
  std::list<std::string> texts_ = {};
  std::vector<EditPlace> places_ = {};
};

SharedError edit_error(const std::string& path, std::size_t count, std::size_t number,
                       const std::string& what, ErrorCode code) {
  return make_error(code, "%: %%",
                    {in_quotes(path), count > 1 ? concat("edits[%]: ", {number}) : "", what});
}

// The text of a file before an edit.
Expected<std::string> text_to_edit(const FileTarget& target, struct stat& status) {
  const auto fail = [&target](ErrorCode code, const char* what) {
    return make_error(code, "%: %", {in_quotes(target.path), what});
  };
  if (!target.exists) return system_error(ENOENT, "%", {in_quotes(target.path)});
  if (target.old.st_size > static_cast<off_t>(Files::max_edited))
    return fail(ErrorCode::limit, "is longer than 16 MiB, too long to be edited");
  errno = 0;
  auto text =
      read_regular_file(target.directory.get(), target.name.c_str(), Files::max_edited, status);
  if (!text) return system_error(errno == 0 ? EFBIG : errno, "%", {in_quotes(target.path)});
  if (has_nul(*text))
    return fail(ErrorCode::invalid_argument,
                "is no text to be edited: it has NUL bytes, as binary files and UTF-16 have");
  return std::move(*text);
}

}  // namespace

Expected<FileEdited> Files::edit(std::string_view path, const std::vector<FileEdit>& edits) const {
  if (edits.empty() || edits.size() > max_edits)
    return make_error(ErrorCode::invalid_argument, "edits: there must be 1 to % of them",
                      {max_edits});
  if (const FilesElsewhere* const there = elsewhere(path))
    return edit_elsewhere(*there, path, edits);
  if (const std::string here = moved_path(path); !here.empty()) {
    auto edited = Files(rules_, base_).edit(here, edits);
    if (!edited) return moved_->as_seen(edited.error());
    edited->path = moved_->as_seen(std::move(edited->path));
    return edited;
  }
  FileWrite how;
  how.make_directories = false;
  auto target = open_target(rules_, path, base_, 0, how);
  if (!target) return target.failure();
  struct stat before {};
  const auto text = text_to_edit(*target, before);
  if (!text) return text.failure();
  target->old = before;

  TextEdit edit(*text);
  ErrorCode code = ErrorCode::invalid_argument;
  for (std::size_t i = 0; i < edits.size(); ++i)
    if (const std::string wrong = edit.add(edits[i], i, code); !wrong.empty())
      return edit_error(target->path, edits.size(), i, wrong, code);
  if (const std::string wrong = edit.sort(); !wrong.empty())
    return make_error(ErrorCode::invalid_argument, "%: %", {in_quotes(target->path), wrong});
  if (auto ok = check_write_size(target->path, edit.size(max_write)); !ok) return ok.failure();
  Expected<FileEdited> edited = FileEdited();
  edited->replaced = edit.replaced();
  edited->diff = edit.diff();
  const auto put = put_bytes(*target, edit.result(), false, [&] {
    struct stat now {};
    const auto again =
        read_regular_file(target->directory.get(), target->name.c_str(), max_edited, now);
    return again && now.st_ino == before.st_ino && now.st_dev == before.st_dev && *again == *text;
  });
  if (!put) return put.failure();
  edited->path = std::move(target->path);
  return edited;
}

}  // namespace v0_1
}  // namespace codeexec
