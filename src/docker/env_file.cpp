// Files of variables (.env).
//
// There is no standard for these files; docker.hpp says which grammar is read here. Nothing is
// expanded, which a shell would do.
//
//   line:   blanks [export blanks] NAME blanks = value      or empty, or # comment
//   value:  blanks text [blank # comment]
//           blanks 'text' [# comment]       may go over lines
//           blanks "text" [# comment]       likewise, with the escapes \n \r \t \" \\ \$

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::size_t end_of_name(std::string_view text, std::size_t at) {
  if (at == text.size() || !is_name_start(text[at])) return at;
  while (at < text.size() && is_name_char(text[at])) ++at;
  return at;
}

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && is_shell_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_shell_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace inner

namespace {

// Goes through the text once. `at_` is the place of the reader, `end_` the end of its line. A
// quoted value may move both to a later line. With `skipped`, an error leaves out the line it began
// in.
class EnvFileReader {
 public:
  EnvFileReader(std::string_view text, std::vector<std::string>* skipped)
      : text_(text), skipped_(skipped) {}

  // An error in a line ends it, or with `skipped` leaves out that line alone: the first 16 are
  // reported. A quote that is not closed is such a line, and the next one is read as if it were
  // none.
  Expected<Variables> read() {
    if (text_.size() > longest_env_file)
      return make_error(ErrorCode::limit, "longer than % bytes", {longest_env_file});
    if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos)
      return wrong(nul, "has a NUL byte"sv);
    if (starts_with(text_, "\xef\xbb\xbf"sv)) at_ = 3;
    while (at_ < text_.size()) {
      find_line_end();
      const std::size_t following = next_;
      if (auto ok = read_line(); !ok) {
        if (!skipped_) return ok.failure();
        next_ = following;
        if (skipped_->size() < 16) skipped_->push_back(ok.error().message);
      }
      lines_ += newlines_before(next_);
      begin_ = at_ = next_;
    }
    // The last value of each name, where that stood first.
    Variables result;
    for (const std::string& variable : names_) {
      const auto last = values_.find(variable);
      if (last == values_.end()) continue;
      result.push_back({variable, std::move(last->second)});
      values_.erase(last);
    }
    return result;
  }

 private:
  // Never shows the line: what is written wrong may be a secret.
  SharedError wrong(std::size_t at, std::string_view what) const {
    const auto line = std::to_string(lines_ + newlines_before(at) + 1);
    return make_error(ErrorCode::parse, "line % %", {line, what}, at);
  }

  // From the line on that is read.
  std::ptrdiff_t newlines_before(std::size_t end) const {
    const std::string_view part = text_.substr(begin_, end - begin_);
    return std::count(part.begin(), part.end(), '\n');
  }

  // Of the line that at_ is in.
  void find_line_end() {
    end_ = std::min(text_.find('\n', at_), text_.size());
    next_ = end_ + 1;
    if (end_ > at_ && text_[end_ - 1] == '\r') --end_;
  }

  void skip_blanks() {
    while (at_ < end_ && is_shell_blank(text_[at_])) ++at_;
  }

  std::string_view read_name() {
    const std::size_t start = at_;
    at_ = end_of_name(text_, at_);
    return text_.substr(start, at_ - start);
  }

  // A line without a NAME or `=` is an error: a secret must not be left out in silence. `export`
  // alone can be a variable's name.
  Expected<void> read_line() {
    skip_blanks();
    if (at_ == end_ || text_[at_] == '#') return {};
    const std::size_t start = at_;
    std::string_view variable = read_name();
    if (variable == "export"sv && at_ < end_ && is_shell_blank(text_[at_])) {
      skip_blanks();
      if (const std::string_view exported = read_name(); !exported.empty()) variable = exported;
    }
    skip_blanks();
    if (variable.empty() || at_ == end_ || text_[at_] != '=')
      return wrong(start,
                   "is not NAME=value, with a NAME of letters, digits and _ that does not "
                   "begin with a digit");
    ++at_;
    std::string value;
    if (auto ok = read_value(value); !ok) return ok;
    names_.push_back(std::string(variable));
    values_[std::string(variable)] = std::move(value);
    return {};
  }

  // Without quotes, a # begins a comment only behind a blank: it may be a part of a password.
  Expected<void> read_value(std::string& value) {
    const std::size_t start = at_;
    skip_blanks();
    if (at_ < end_ && (text_[at_] == '\'' || text_[at_] == '"')) return read_quoted(value);
    const std::string_view line = text_.substr(0, end_);
    std::size_t comment = start;
    do comment = line.find('#', comment + 1);
    while (comment < end_ && !is_shell_blank(line[comment - 1]));
    value = trim_blanks(line.substr(start, comment - start));
    return {};
  }

  // Up to the closing quote, on whatever line that is. Within single quotes nothing is special;
  // within double ones other escapes stay as they are written, with their backslash.
  Expected<void> read_quoted(std::string& value) {
    const std::size_t start = at_;
    const char quote = text_[at_];
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      char c = text_[at_];
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      if (c == '\r' && next == '\n') continue;
      if (c == '\\' && quote == '"') {
        const bool is_itself = next == '"' || next == '\\' || next == '$';
        if (is_itself || next == 'n' || next == 'r' || next == 't') {
          c = is_itself ? next : escaped_character(next);
          ++at_;
        }
      }
      value += c;
    }
    if (at_ == text_.size()) return wrong(start, "begins a quote that is not closed"sv);
    ++at_;
    find_line_end();
    skip_blanks();
    if (at_ != end_ && text_[at_] != '#') return wrong(at_, "goes on after the closing quote"sv);
    return {};
  }

  std::string_view text_;
  std::vector<std::string>* skipped_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;     // of the line that is read
  std::ptrdiff_t lines_ = 0;  // those before it
  std::size_t end_ = 0;       // of the line, without its line end
  std::size_t next_ = 0;      // where the next line begins
  std::vector<std::string> names_ = {};
  TextMap values_ = {};
};

}  // namespace

Expected<Variables> parse_env_file(std::string_view text, std::vector<std::string>* skipped) {
  return EnvFileReader(text, skipped).read();
}

}  // namespace v0_1
}  // namespace codeexec
