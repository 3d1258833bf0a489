// The matcher, and the public functions.
//
// The program of `a|ab`, and how it runs over the text "ab":
//
//   0  split 1 3     at 0: follow() goes from 0 to 1 and 3, which consume a character: both are
//   1  one a         ready. The character is an a: 1 arrives at 2, and 3 at 4.
//   2  jump 5        at 1: 2 is followed to 5, a match of "a". 4 is less preferred, and is dropped:
//   3  one a         find() gives "a".
//   4  one b         full_match() ignores a match before the end. It follows 4, too, reads the b,
//   5  match         and matches at 2.
//
// Two lists of threads take turns. `arrived_` has the places behind the last character, the
// preferred ones first. follow() turns each into the places that consume a character, `ready_`.
// The next character sorts out which of these arrive. A place that is reached twice at one position
// counts once, for the thread that came first: so no list is longer than the program.

#include "regex/parser_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Runs a program over one text. Used once.
class Regex::Matcher {
 public:
  Matcher(const Program& program, std::string_view text) : program_(program), text_(text) {}

  // Any match that begins at 0; one that is the whole text if `whole`.
  bool matches_start(bool whole) {
    anchored_ = true;
    whole_ = whole;
    any_will_do_ = true;
    return run(0);
  }
  bool matches_anywhere() {
    any_will_do_ = true;
    return run(0);
  }
  std::optional<std::string_view> first_match(std::size_t from) {
    if (from > text_.size() || !run(from)) return std::nullopt;
    return text_.substr(best_.begin, best_.end - best_.begin);
  }

 private:
  using Kind = Program::Step::Kind;

  // A place in the program that was reached, and where in the text its match began.
  struct Thread {
    std::size_t step = 0;
    std::size_t begin = 0;
  };

  const Program& program_;
  std::string_view text_;
  bool anchored_ = false;
  bool whole_ = false;
  bool any_will_do_ = false;
  bool matched_ = false;
  struct {
    std::size_t begin = 0;
    std::size_t end = 0;
  } best_ = {};
  std::vector<Thread> arrived_ = {};    // after the last character, the preferred first
  std::vector<Thread> ready_ = {};      // at steps that consume a character
  std::vector<std::size_t> seen_ = {};  // by step: the position + 1 at which it was reached
  std::vector<std::size_t> todo_ = {};  // of follow()

  // One turn for each character. A new thread begins at each position, behind all others, as an
  // earlier match is preferred; an anchored one begins at `from` only.
  bool run(std::size_t from) {
    for (std::size_t at = from;;) {
      if (arrived_.empty()) {
        if (matched_ || (anchored_ && at > from) || !skip(at)) return matched_;
        if (seen_.empty()) seen_.resize(program_.steps.size());
      }
      const bool at_end = at == text_.size();
      const RegexChar next = at_end ? RegexChar{} : regex_char_at(text_, at);
      const std::uint32_t holds = program_.has_assertions ? assertions(at, next) : 0;
      ready_.clear();
      bool go_on = true;
      for (std::size_t i = 0; go_on && i < arrived_.size(); ++i)
        go_on = follow(arrived_[i], at, holds);
      if (go_on && !matched_ && (!anchored_ || at == from)) follow({0, at}, at, holds);
      if (at_end || (matched_ && any_will_do_)) return matched_;
      arrived_.clear();
      for (const Thread& thread : ready_)
        if (program_.consumes(program_.steps[thread.step], next.code))
          arrived_.push_back({thread.step + 1, thread.begin});
      at += next.size;
    }
  }

  // Moves to the next byte that can begin a match; false when there is none.
  bool skip(std::size_t& at) const {
    if (!program_.can_skip) return true;
    const auto begins = [this](std::size_t i) {
      return program_.first_byte[static_cast<unsigned char>(text_[i])];
    };
    if (anchored_) return at < text_.size() && begins(at);
    while (at < text_.size() && !begins(at)) ++at;
    return at < text_.size();
  }

  // Goes from a thread's place to all that can be reached without a character. False when this was
  // the match: what is less preferred counts no more.
  bool follow(Thread thread, std::size_t at, std::uint32_t holds) {
    todo_.clear();
    for (std::size_t place = thread.step;;) {
      if (std::exchange(seen_[place], at + 1) != at + 1) {
        const Program::Step& step = program_.steps[place];
        switch (step.kind) {
          case Kind::split:
            todo_.push_back(Program::target(place, step.other));
            place = Program::target(place, step.value);
            continue;
          case Kind::jump:
            place = Program::target(place, step.value);
            continue;
          case Kind::check:
            if ((holds & static_cast<std::uint32_t>(step.value)) == 0) break;
            ++place;
            continue;
          case Kind::match:
            if (whole_ && at != text_.size()) break;
            matched_ = true;
            best_ = {thread.begin, at};
            return false;
          default:
            ready_.push_back({place, thread.begin});
        }
      }
      if (todo_.empty()) return true;
      place = todo_.back();
      todo_.pop_back();
    }
  }

  // The RegexAssertions that hold at `at`, before the character `next`.
  std::uint32_t assertions(std::size_t at, RegexChar next) const {
    const bool start = at == 0;
    const bool end = at == text_.size();
    const RegexChar before = start ? RegexChar{} : regex_char_before(text_, at);
    const bool newline = !end && next.code == '\n';
    std::uint32_t holds =
        edges_between(!start && is_regex_word(before.code), !end && is_regex_word(next.code),
                      !start && is_ascii_word(before.code), !end && is_ascii_word(next.code));
    if (start) holds |= at_text_start;
    if (start || before.code == '\n') holds |= at_line_start;
    if (end) holds |= at_text_end;
    if (end || (newline && at + 1 == text_.size())) holds |= at_last_line_end;
    if (end || newline) holds |= at_line_end;
    return holds;
  }
};

Expected<Regex> Regex::compile(std::string_view pattern, std::string_view flags) {
  if (flags.find_first_not_of("aimsux"sv) != std::string_view::npos)
    return make_error(ErrorCode::invalid_argument, "flags: % has a letter that is none of aimsux",
                      {in_quotes(flags)});
  auto program = Parser(pattern, flags).parse();
  if (!program) return program.failure();
  return Regex(std::move(*program));
}

bool Regex::match(std::string_view text) const {
  return Matcher(*program_, text).matches_start(false);
}

bool Regex::full_match(std::string_view text) const {
  return Matcher(*program_, text).matches_start(true);
}

bool Regex::search(std::string_view text) const {
  return Matcher(*program_, text).matches_anywhere();
}

std::optional<std::string_view> Regex::find(std::string_view text, std::size_t from) const {
  return Matcher(*program_, text).first_match(from);
}

const std::string& Regex::pattern() const noexcept { return program_->pattern; }

}  // namespace v0_1
}  // namespace codeexec
