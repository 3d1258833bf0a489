// Lines that have a match.
//
//   find()   with a literal_: the next line that has it -> scan()
//            else all lines -> scan()
//   scan()   a look into the table for each character; else follow() -> step() -> row_of()
//   step()   as a turn of Regex::Matcher, for all threads at once and without their order

#include "regex/lines_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

int compare_places_in_program(const void* a, const void* b) {
  const auto x = *static_cast<const std::uint32_t*>(a);
  const auto y = *static_cast<const std::uint32_t*>(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

}  // namespace

Regex::Lines::Lines(const Regex& regex)
    : program_(regex.program_), following_(4096), seen_(program_->steps.size()) {
  find_literal();
  begin_table();
}

// Each match passes a step that no jump leads past. Behind a character that stands there, the next
// step is passed, too, and if nothing else leads to it, nothing is between the two.
void Regex::Lines::find_literal() {
  const std::vector<Program::Step>& steps = program_->steps;
  const std::size_t size = steps.size();
  std::vector<std::ptrdiff_t> passed(size + 1);  // +1 where jumps over begin, -1 where they end
  std::vector<bool> is_target(size);
  for (std::size_t i = 0; i < size; ++i) {
    const bool splits = steps[i].kind == Kind::split;
    if (!splits && steps[i].kind != Kind::jump) continue;
    const std::int32_t offsets[] = {steps[i].value, splits ? steps[i].other : steps[i].value};
    for (const std::int32_t offset : offsets) {
      const std::size_t target = Program::target(i, offset);
      is_target[target] = true;
      if (target <= i + 1) continue;
      ++passed[i + 1];
      --passed[target];
    }
  }
  std::string run;
  std::size_t characters = 0;
  std::ptrdiff_t depth = 0;
  for (std::size_t i = 0; i < size; ++i) {
    depth += passed[i];
    const Program::Step& step = steps[i];
    const auto code = static_cast<std::uint32_t>(step.value);
    const bool is_byte = code >= 0xd800 && code <= 0xdfff;
    const bool counts = step.kind == Kind::one && !is_byte && code != '\n' && code != '\r';
    if (is_target[i] || depth != 0 || (!counts && step.kind != Kind::check)) run.clear();
    if (!counts || depth != 0) continue;
    append_utf8(code, run);
    ++characters;
    if (run.size() > literal_.size()) literal_ = run;
  }
  is_literal_ = characters + 1 == size;
}

bool Regex::Lines::find(std::string_view text, std::size_t& at, FunctionRef<bool()> stop) {
  if (literal_.empty()) return at < text.size() && scan(text, at, stop);
  while (at < text.size()) {
    const std::size_t place = find_bytes(text, literal_, at);
    if (place == text.npos) return false;
    at = std::max(at, line_start(text, place));
    const std::size_t end = std::min(text.find('\n', place), text.size());
    if (is_literal_) return true;
    std::size_t there = 0;
    if (scan(text.substr(at, end - at), there, stop)) return true;
    if (is_stopped_) return false;
    at = end + 1;
  }
  return false;
}

// Goes on by the table as far as it leads, and returns what ends it: `unknown`, also at the end of
// the text, or `matched`.
Regex::Lines::Row Regex::Lines::run(std::string_view text, std::size_t& at, Row& row) const {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = at;
  Row next = unknown;
  while (i < text.size()) {
    const Row* const following = &table_[row];
    next = following[bytes[i]];
    if (next <= matched) break;
    ++i;
    // Most characters of most texts lead back to the same row: looks that do not wait for each
    // other take a quarter of the time.
    const auto stays = [&](std::size_t ahead) { return following[bytes[i + ahead]] == row; };
    if (next == row)
      while (text.size() - i >= 4 && stays(0) && stays(1) && stays(2) && stays(3)) i += 4;
    row = next;
    next = unknown;
  }
  at = i;
  return next;
}

bool Regex::Lines::scan(std::string_view text, std::size_t& at, FunctionRef<bool()> stop) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = at;
  for (Row row = first_row;;) {
    Row next = run(text, i, row);
    std::size_t size = 1;
    if (i == text.size()) {
      if (i == 0 || bytes[i - 1] == '\n') return false;
      next = follow(row, at_end, stop);
    } else if (next == unknown) {
      const RegexChar c = regex_char_at(text, i);
      const bool is_before_end = c.code == '\r' && (i + 1 == text.size() || bytes[i + 1] == '\n');
      const bool is_end = c.code == '\n' || is_before_end;
      next = follow(row, is_end ? at_end : c.code, stop);
      size = is_before_end ? 2 : c.size;
    }
    if (is_stopped_) return false;
    if (next == matched) break;
    row = next;
    i += size;
    if (i > text.size()) return false;
  }
  at = line_start(text, i);
  return true;
}

Regex::Lines::Row Regex::Lines::follow(Row row, std::uint32_t code, FunctionRef<bool()> stop) {
  Following* known = nullptr;
  if (code >= 0x80 && code != at_end) {
    known = &following_[(row / columns * 31 + code) % following_.size()];
    if (known->row == row && known->code == code) return known->next;
  }
  const std::size_t column = code == at_end ? std::size_t{'\n'} : std::size_t{code};
  if (!known && table_[row + column] != unknown) return table_[row + column];
  const std::size_t turns = turns_;
  const Row next = step(row, code);
  // Otherwise the table is another one.
  if (turns == turns_) {
    if (known)
      *known = {row, code, next};
    else if (code != '\r')
      table_[row + column] = next;
  }
  constexpr std::size_t much_work = std::size_t{1} << 20;
  if (work_ > much_work) {
    work_ = 0;
    is_stopped_ = stop();
  }
  return next;
}

// A turn of Regex::Matcher for all threads at once, without their order.
Regex::Lines::Row Regex::Lines::step(Row row, std::uint32_t code) {
  const std::string& set = *sets_[row / columns];
  const auto before = static_cast<Before>(set[0]);
  const std::uint32_t holds = program_->has_assertions ? assertions(before, code) : 0;
  todo_.assign(1, 0);
  todo_.resize(1 + (set.size() - 1) / sizeof(std::uint32_t));
  std::memcpy(todo_.data() + 1, set.data() + 1, set.size() - 1);
  arrived_.clear();
  ++turn_;
  while (!todo_.empty()) {
    const std::size_t at = todo_.back();
    todo_.pop_back();
    if (std::exchange(seen_[at], turn_) == turn_) continue;
    ++work_;
    const Program::Step& step = program_->steps[at];
    switch (step.kind) {
      case Kind::split:
        todo_.push_back(static_cast<std::uint32_t>(Program::target(at, step.other)));
        todo_.push_back(static_cast<std::uint32_t>(Program::target(at, step.value)));
        break;
      case Kind::jump:
        todo_.push_back(static_cast<std::uint32_t>(Program::target(at, step.value)));
        break;
      case Kind::check:
        if ((holds & static_cast<std::uint32_t>(step.value)) != 0)
          todo_.push_back(static_cast<std::uint32_t>(at + 1));
        break;
      case Kind::match:
        return matched;
      default:
        if (code != at_end && program_->consumes(step, code))
          arrived_.push_back(static_cast<std::uint32_t>(at + 1));
    }
  }
  if (code == at_end) return first_row;
  if (!arrived_.empty())
    std::qsort(arrived_.data(), arrived_.size(), sizeof(std::uint32_t), compare_places_in_program);
  return row_of(program_->has_assertions ? before_next(code) : Before::other);
}

// The row of the places in `arrived_`.
Regex::Lines::Row Regex::Lines::row_of(Before before) {
  std::string set(1, static_cast<char>(before));
  set.append(reinterpret_cast<const char*>(arrived_.data()),
             arrived_.size() * sizeof(std::uint32_t));
  const auto known = rows_.find(set);
  if (known != rows_.end()) return known->second;
  if (sets_.size() > most_rows || bytes_ + set.size() > most_bytes) begin_table();
  bytes_ += set.size();
  const auto row = static_cast<Row>(table_.size());
  table_.resize(table_.size() + columns, unknown);
  sets_.push_back(&rows_.emplace(std::move(set), row).first->first);
  return row;
}

void Regex::Lines::begin_table() {
  rows_.clear();
  bytes_ = 0;
  ++turns_;
  for (Following& following : following_) following = Following();
  table_.assign(2 * columns, unknown);  // no row is 0 or 1
  const Before before = program_->has_assertions ? Before::start : Before::other;
  const auto first = rows_.emplace(std::string(1, static_cast<char>(before)), first_row).first;
  sets_.assign(2, &first->first);
}

Regex::Lines::Before Regex::Lines::before_next(std::uint32_t code) {
  if (is_ascii_word(code)) return Before::ascii_word;
  return is_regex_word(code) ? Before::word : Before::other;
}

std::uint32_t Regex::Lines::assertions(Before before, std::uint32_t code) {
  const bool end = code == at_end;
  std::uint32_t holds = edges_between(before == Before::word || before == Before::ascii_word,
                                      !end && is_regex_word(code), before == Before::ascii_word,
                                      !end && is_ascii_word(code));
  if (before == Before::start) holds |= at_text_start | at_line_start;
  if (end) holds |= at_text_end | at_last_line_end | at_line_end;
  return holds;
}

}  // namespace v0_1
}  // namespace codeexec
