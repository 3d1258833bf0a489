// Searching a tree: which files, and in each the lines with a match.
//
//   TreeSearch      directory -> its names in order -> directories and files that are not left out
//     FileScan      a file in pieces of whole lines -> Regex::Lines -> what is shown of them

#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "files/ignore_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "regex/lines_internal.hpp"
#include "regex/regex.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_shown = 300;  // of a line

// What all files of a search share.
struct SearchState {
  const FileSearch& search;
  const Regex& regex;
  Regex::Lines lines;
  FileMatches found = {};
  Clock::time_point deadline = {};
  bool is_over = false;
  std::string buffer = {};  // of the file that is read
  std::string masked = {};  // the long line that is shown

  // Whether a bound was reached; then it is over.
  bool stop() {
    is_over = is_over || Clock::now() >= deadline || (search.cancel && search.cancel->cancelled());
    return is_over;
  }
  // Adds to what is shown. False: it does not fit any more.
  bool show(std::string_view text) {
    is_over = is_over || text.size() > search.max_bytes - found.text.size();
    if (!is_over) found.text += text;
    return !is_over;
  }
};

// A line as it is shown; of a long one the part around the match.
std::string_view shown_part(SearchState& state, std::string_view line, bool matches) {
  if (ends_with(line, "\r"sv)) line.remove_suffix(1);
  if (line.size() <= longest_shown) return line;
  if (state.search.mask) {
    state.masked = state.search.mask(line);
    line = state.masked;
    if (line.size() <= longest_shown) return line;
  }
  constexpr std::size_t longest_looked_at = std::size_t{64} << 10;
  std::size_t begin = 0;
  if (matches && line.size() <= longest_looked_at)
    if (const auto match = state.regex.find(line))
      begin = static_cast<std::size_t>(match->data() - line.data());
  begin -= std::min(begin, longest_shown / 4);
  begin = std::min(begin, line.size() - longest_shown);
  line = line.substr(begin, longest_shown);
  line.remove_prefix(cut_at_start(line));
  line.remove_suffix(cut_at_end(line));
  return line;
}

// One file: the lines that are shown of it.
class FileScan {
 public:
  // Shown with `before` in front of its path.
  FileScan(SearchState& state, const std::string& before, const std::string& path)
      : state_(state), before_(before), path_(path) {}

  // False: the system says no.
  bool run(int fd, std::uint64_t size) {
    std::string& buffer = state_.buffer;
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size + 1, longest_piece));
    if (buffer.size() < wanted) buffer.resize(wanted);
    std::size_t held = 0;
    while (!is_done_ && !state_.stop()) {
      const ssize_t got = ::read(fd, &buffer[held], buffer.size() - held);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return false;
      const std::string_view fresh(buffer.data() + held, static_cast<std::size_t>(got));
      if (has_nul(fresh)) {
        ++state_.found.binary;
        return true;
      }
      held += fresh.size();
      if (got == 0) {
        scan({buffer.data(), held});
        break;
      }
      if (held == buffer.size()) held = take_piece(held);
    }
    return true;
  }

 private:
  static constexpr std::size_t longest_piece = std::size_t{1} << 20;

  // Looks at the whole lines of a full buffer, and moves what is still needed to its beginning.
  // Returns how much that is. A line that fills the buffer is taken in parts.
  std::size_t take_piece(std::size_t held) {
    char* const bytes = &state_.buffer[0];
    const std::size_t last = std::string_view(bytes, held).rfind('\n');
    const std::size_t whole = last == std::string_view::npos ? held : last + 1;
    const std::string_view piece(bytes, whole);
    ends_torn_ = last == std::string_view::npos;
    scan(piece);
    begins_torn_ = std::exchange(ends_torn_, false);
    std::size_t keep = whole;
    for (std::size_t i = 0; i < state_.search.context && keep > shown_; ++i)
      keep = line_start(piece, keep - 1);
    if (held - keep > held / 2) keep = whole;
    count_lines(piece, keep);
    counted_ = 0;
    at_ = whole - keep;
    has_gap_ = has_gap_ || shown_ < keep;
    shown_ -= std::min(shown_, keep);
    std::memmove(bytes, bytes + keep, held - keep);
    return held - keep;
  }

  // What is before `at_` was looked at.
  void scan(std::string_view text) {
    FileMatches& found = state_.found;
    const FileSearch& search = state_.search;
    while (!is_done_ && state_.lines.find(text, at_, [this] { return state_.stop(); })) {
      if (found.matches == search.max_matches) state_.is_over = true;
      is_done_ = search.files_only || state_.is_over;
      if (state_.is_over) break;
      if (is_done_) {
        if (state_.show(shown_path() + "\n")) ++found.matches;
        break;
      }
      show_context(text, at_);
      std::size_t begin = at_;
      for (std::size_t i = 0; i < search.context && begin > shown_; ++i)
        begin = std::max(line_start(text, begin - 1), shown_);
      begin_lines(begin);
      while (shown_ < at_ && show_line(text, '-')) {
      }
      if (!show_line(text, ':')) break;
      ++found.matches;
      at_ = shown_;
      after_ = search.context;
    }
    show_context(text, text.size());
    is_done_ = is_done_ || state_.is_over;
  }

  std::string shown_path() const { return printable(concat({before_, path_})); }

  void begin_lines(std::size_t begin) {
    if (!has_begun_)
      state_.show(concat({state_.found.text.empty() ? "" : "\n", shown_path(), "\n"}));
    else if (has_gap_ || begin > shown_)
      state_.show(state_.search.context > 0 ? "--\n"sv : ""sv);
    has_begun_ = true;
    has_gap_ = false;
    shown_ = begin;
  }

  // The lines behind the last match.
  void show_context(std::string_view text, std::size_t end) {
    for (; after_ > 0 && shown_ < end; --after_)
      if (!show_line(text, '-')) return;
  }

  // The next line. False: it does not fit any more.
  bool show_line(std::string_view text, char sign) {
    count_lines(text, shown_);
    const std::size_t end = std::min(text.find('\n', shown_), text.size());
    std::string_view line = text.substr(shown_, end - shown_);
    // Half a secret may stand where a line was torn.
    const bool torn = (begins_torn_ && shown_ == 0) || (ends_torn_ && end == text.size());
    if (torn && state_.search.mask) line = "[part of a line of more than 1 MiB]"sv;
    shown_ = std::min(end + 1, text.size());
    return state_.show(concat(
        {lines_ + 1, std::string_view(&sign, 1), shown_part(state_, line, sign == ':'), "\n"}));
  }

  void count_lines(std::string_view text, std::size_t end) {
    lines_ += count_line_ends(text.substr(counted_, end - counted_));
    counted_ = end;
  }

  SearchState& state_;
  const std::string& before_;
  const std::string& path_;
  bool is_done_ = false;
  bool has_begun_ = false;
  bool has_gap_ = false;      // lines before the buffer were not shown
  bool begins_torn_ = false;  // the buffer begins in a line, or ends in one
  bool ends_torn_ = false;
  std::size_t at_ = 0;       // where the search goes on
  std::size_t shown_ = 0;    // behind what is shown, or moved out of the buffer
  std::size_t after_ = 0;    // lines that are still to be shown behind a match
  std::size_t counted_ = 0;  // up to where lines_ counts
  std::size_t lines_ = 0;
};

// A glob for each way through its {a,b}, as lines of rules.
std::string lines_of_glob(std::string_view glob) {
  constexpr std::size_t most = 1000;
  std::vector<std::string> waiting = {std::string(glob)};
  std::string lines;
  for (std::size_t i = 0; i < waiting.size() && waiting.size() < most; ++i) {
    const std::string one = std::move(waiting[i]);
    const std::size_t close = one.find('}');
    const std::size_t open = close == std::string::npos ? close : one.rfind('{', close);
    if (open == std::string::npos) {
      append_all(lines, {one, "\n"});
      continue;
    }
    std::string_view inner = std::string_view(one).substr(open + 1, close - open - 1);
    for (bool first = true; first || !inner.empty(); first = false)
      waiting.push_back(
          concat({one.substr(0, open), take_part(inner, ','), one.substr(close + 1)}));
  }
  return lines;
}

// A directory and all below it.
class TreeSearch {
 public:
  TreeSearch(SearchState& state, const PathRules& rules, const std::string& top,
             const std::string& shown)
      : state_(state), rules_(rules), top_(top), shown_(shown) {
    if (!state.search.glob.empty()) wanted_.add({}, lines_of_glob(state.search.glob));
  }

  void run(UniqueFd fd) {
    const IgnoreRules around = rules_around(rules_, top_, prefix_);
    std::string path;
    search_directory(std::move(fd), path, around, 0);
  }

 private:
  static constexpr int most_depth = 128;  // two descriptors each

  // `path` is from the top, and ends with a slash unless it is empty.
  void search_directory(UniqueFd fd, std::string& path, IgnoreRules ignored, int depth) {
    ignored.read(fd.get(), prefix_ + path);
    std::string names;
    std::vector<const char*> sorted;
    if (!list_names(fd.get(), names, sorted)) {
      ++state_.found.unreadable;
      return;
    }
    const std::size_t size = path.size();
    for (std::size_t i = 0; i < sorted.size() && !state_.stop(); ++i) {
      struct stat status {};
      if (::fstatat(fd.get(), sorted[i], &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      path += sorted[i];
      if (is_searched(sorted[i], path, status.st_mode, ignored)) {
        if (S_ISDIR(status.st_mode))
          enter(fd.get(), sorted[i], path, ignored, depth + 1);
        else
          search_file(fd.get(), sorted[i], path, status);
      }
      path.resize(size);
    }
  }

  // The names in a directory, in order. False: it cannot be read.
  bool list_names(int fd, std::string& names, std::vector<const char*>& sorted) {
    std::size_t count = 0;
    const int error = for_each_entry_in(fd, [&](const char* name) {
      if (left_ == 0) state_.is_over = true;
      if (state_.is_over) return false;
      --left_;
      ++count;
      names.append(name, std::strlen(name) + 1);
      return true;
    });
    for (const char* name = names.data(); count > 0; --count) {
      sorted.push_back(name);
      name += std::strlen(name) + 1;
    }
    if (!sorted.empty())
      std::qsort(sorted.data(), sorted.size(), sizeof(const char*),
                 [](const void* a, const void* b) {
                   return std::strcmp(*static_cast<const char* const*>(a),
                                      *static_cast<const char* const*>(b));
                 });
    return error == 0;
  }

  bool is_searched(const char* name, const std::string& path, mode_t mode,
                   const IgnoreRules& ignored) {
    const bool is_directory = S_ISDIR(mode);
    if (is_directory && is_closed_by_name(name)) return false;
    if (!is_directory && (!S_ISREG(mode) || !is_wanted(path))) return false;
    if (!ignored.empty() && ignored.excludes(prefix_ + path, is_directory)) {
      ++state_.found.ignored;
      return false;
    }
    if (!rules_.restricted()) return true;
    const Root* const root = rules_.deepest_root(concat("%/%", {top_ == "/" ? "" : top_, path}));
    return root && root->permission != Permission::none;
  }
  bool is_wanted(const std::string& path) const {
    return state_.search.glob.empty() || wanted_.excludes(path, false);
  }

  void enter(int in, const char* name, std::string& path, const IgnoreRules& ignored, int depth) {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd fd;
    if (depth < most_depth) fd = UniqueFd(above_standard_streams(::openat(in, name, flags)));
    if (!fd || !check_file_system(fd.get(), path)) {
      ++state_.found.unreadable;
      return;
    }
    path += '/';
    search_directory(std::move(fd), path, ignored, depth);
  }

  void search_file(int in, const char* name, const std::string& path, struct stat& status) {
    const auto fd = open_known_file(in, name, path, status);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (!fd || !FileScan(state_, shown_, path).run(fd->get(), size)) ++state_.found.unreadable;
  }

  SearchState& state_;
  const PathRules& rules_;
  const std::string& top_;
  const std::string& shown_;  // before each path
  std::string prefix_ = {};   // before each path for the rules of what is left out
  IgnoreRules wanted_ = {};
  std::size_t left_ = Files::max_searched;
};

// `as_seen` gives the path that the caller has for one here.
Expected<FileMatches> search_here(const PathRules& rules, const std::string& base,
                                  std::string_view path, const FileSearch& search,
                                  FunctionRef<std::string(std::string)> as_seen) {
  auto regex = Regex::compile(search.pattern);
  if (!regex) return with_prefix("pattern: ", {}, regex.error());
  auto top = permitted_path(rules, path, base, Permission::read);
  if (!top) return top.failure();
  SearchState state{search, *regex, Regex::Lines(*regex)};
  state.deadline =
      Clock::now() + std::min<std::chrono::milliseconds>(search.timeout, std::chrono::hours(1));
  state.found.path = as_seen(*top);
  std::string shown = state.found.path;
  if (codeexec::is_within(shown, base))
    shown.erase(0, base == "/" ? 1 : std::min(shown.size(), base.size() + 1));
  auto directory = open_listed_directory(rules, *top);
  if (directory) {
    if (!shown.empty() && shown.back() != '/') shown += '/';
    TreeSearch(state, rules, *top, shown).run(std::move(*directory));
  } else if (directory.error().code == ErrorCode::invalid_argument && !names_a_directory(path)) {
    const Place place = place_of(*top);
    const auto in = open_canonical_directory(place.directory);
    if (!in) return in.failure();
    struct stat status {};
    const auto fd = open_regular_file(in->get(), place.name.c_str(), *top, status);
    if (!fd) return fd.failure();
    const std::string none;
    FileScan scan(state, shown, none);
    if (!scan.run(fd->get(), static_cast<std::uint64_t>(status.st_size)))
      return system_error(errno, "%", {in_quotes(*top)});
  } else {
    return directory.failure();
  }
  state.found.more = state.is_over;
  return std::move(state.found);
}

}  // namespace

Expected<FileMatches> Files::search(std::string_view path, const FileSearch& search) const {
  constexpr std::size_t most_context = 100;
  if (search.context > most_context)
    return make_error(ErrorCode::invalid_argument, "context: must be at most %", {most_context});
  // Braces make up to 1,000 globs of it.
  constexpr std::size_t longest_glob = 4096;
  if (search.glob.size() > longest_glob)
    return make_error(ErrorCode::invalid_argument, "glob: must be at most % bytes", {longest_glob});
  if (const FilesElsewhere* const there = elsewhere(path))
    return search_elsewhere(*there, path, search);
  const std::string here = moved_path(path);
  if (here.empty())
    return search_here(rules_, base_, path, search, [](std::string found) { return found; });
  auto found = search_here(rules_, base_, here, search,
                           [this](std::string real) { return moved_->as_seen(std::move(real)); });
  if (!found) return moved_->as_seen(found.error());
  return found;
}

}  // namespace v0_1
}  // namespace codeexec
