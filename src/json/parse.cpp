// The strict parser: one loop over the values of a text, without recursion.
//
//         +------------- an item; or a name and a colon --------------+
//         v                                                           |
//   read_value() --- a scalar was read, or a container opened ---> next_place() <---+
//         |                                                         |   |           |
//         | error                                                   |   +- close() -+
//         v                                                         |    a closing bracket
//   Error with the byte                        no container is open |
//   where the text went wrong                                       v
//                                                 only white space may follow
//
// A value is read into its final place, a member or an item of the container that is open. The open
// containers form a chain through their `link`, the innermost one first. A place stays valid while
// it is needed: a vector grows only after the value in its last place is complete.
//
// A string is copied in runs. A run ends at a quote, a backslash, a control character or a byte
// that is not ASCII; the rest of the loop in read_string() says what happens there.
//
//   "        the string ends
//   \        read_escape(); of \u two halves make one code point, and a half alone becomes U+FFFD
//   control  an error, but U+007F is allowed
//   other    one step of UTF-8: good bytes go on with the run, bad ones are an error or U+FFFD

#include "json/json.hpp"
#include "json/json_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

class Json::Parser {
 public:
  Parser(std::string_view text, const JsonLimits& limits)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), limits_(limits) {}

  Expected<Json> run() {
    Json root;
    for (Json* place = &root; place;) {
      if (++values_ > limits_.max_values) {
        fail(concat("more than % values", {limits_.max_values}), ErrorCode::limit);
        return error_;
      }
      if (!read_value(*place)) return error_;
      if (!next_place(place)) return error_;
    }
    skip_space();
    if (at_ == end_) return root;
    fail("unexpected text after the value"sv);
    return error_;
  }

 private:
  bool fail(std::string_view what, ErrorCode code = ErrorCode::parse) {
    const auto offset = static_cast<std::size_t>(at_ - begin_);
    const std::string_view end = at_ == end_ ? ", but the text ends" : "";
    error_ = make_error(code, "%% at byte %", {what, end, offset}, offset);
    return false;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool next_is(char c) const { return at_ != end_ && *at_ == c; }
  bool next_is_digit() const { return at_ != end_ && is_digit(*at_); }

  // Reads a value that holds no other, or opens a container. The first byte says which.
  bool read_value(Json& place) {
    skip_space();
    if (at_ == end_) return fail("expected a value"sv);
    switch (*at_) {
      case '"':
        place.make_string();
        if (!read_string(place.string_)) return false;
        place.lone_surrogate_ = std::exchange(lone_surrogate_, false);
        if (place.lone_surrogate_ && open_) open_->lone_surrogate_ = true;
        return true;
      case '{':
        place.make_object();
        return open(place);
      case '[':
        place.make_array();
        return open(place);
      case 't':
        place.make_boolean(true);
        return read_word("true");
      case 'f':
        place.make_boolean(false);
        return read_word("false");
      case 'n':
        return read_word("null"sv);
      default:
        return read_number(place);
    }
  }

  bool open(Json& place) {
    if (depth_ == limits_.max_depth)
      return fail(concat("nested deeper than % levels", {limits_.max_depth}), ErrorCode::limit);
    ++depth_;
    ++at_;
    place.link() = open_;
    open_ = &place;
    return true;
  }

  bool close() {
    if (open_->is_object()) {
      Object& members = open_->object_.values;
      const std::size_t before = members.size();
      json_keep_last(members);
      if (members.size() != before && limits_.unique_names)
        return fail("a name occurs twice in the object that ends"sv);
    }
    ++at_;
    --depth_;
    Json* const outer = open_->link();
    if (outer) outer->lone_surrogate_ |= open_->lone_surrogate_;
    open_ = outer;
    return true;
  }

  // Reads on after a value or an opening bracket, to the place of the next value. The place is null
  // when the outermost value is complete.
  bool next_place(Json*& place) {
    while (open_) {
      skip_space();
      if (next_is(open_->is_array() ? ']' : '}')) {
        if (!close()) return false;
        continue;
      }
      return open_->is_array() ? next_item(place) : next_member(place);
    }
    place = nullptr;
    return true;
  }

  bool next_item(Json*& place) {
    Array& items = open_->array_.values;
    if (!items.empty()) {
      if (!next_is(',')) return fail("expected ',' or ']'"sv);
      ++at_;
    }
    place = &items.emplace_back();
    return true;
  }

  bool next_member(Json*& place) {
    Object& members = open_->object_.values;
    if (!members.empty()) {
      if (!next_is(',')) return fail("expected ',' or '}'"sv);
      ++at_;
      skip_space();
    }
    if (!next_is('"'))
      return fail(members.empty() ? "expected a name or '}'"sv : "expected a name"sv);
    Member& member = members.emplace_back();
    if (!read_string(member.name)) return false;
    open_->lone_surrogate_ |= std::exchange(lone_surrogate_, false);
    skip_space();
    if (!next_is(':')) return fail("expected ':'"sv);
    ++at_;
    place = &member.value;
    return true;
  }

  bool read_word(std::string_view word) {
    for (const char c : word) {
      if (!next_is(c)) return fail(concat("expected '%'", {word}));
      ++at_;
    }
    return true;
  }

  // Reads one digit or more. Their value, modulo 2^64, goes to `value`.
  bool read_digits(std::uint64_t& value) {
    if (!next_is_digit()) return fail("expected a digit"sv);
    for (; next_is_digit(); ++at_) value = value * 10 + static_cast<std::uint64_t>(*at_ - '0');
    return true;
  }

  // Reads a number. One of at most 18 digits without point and exponent is an integer at once; all
  // others are checked here for their grammar, and converted by make_number().
  bool read_number(Json& place) {
    const char* const start = at_;
    const bool negative = next_is('-');
    if (negative) ++at_;
    if (!next_is_digit()) return fail(negative ? "expected a digit"sv : "expected a value"sv);
    std::uint64_t value = 0;
    const char* const digits = at_;
    if (next_is('0')) {
      ++at_;
    } else if (!read_digits(value)) {
      return false;
    }
    const auto count = at_ - digits;
    std::uint64_t ignored = 0;
    bool whole = true;
    if (next_is('.')) {
      whole = false;
      ++at_;
      if (!read_digits(ignored)) return false;
    }
    if (next_is('e') || next_is('E')) {
      whole = false;
      ++at_;
      if (next_is('+') || next_is('-')) ++at_;
      if (!read_digits(ignored)) return false;
    }
    if (whole && count <= 18 && (value != 0 || !negative)) {
      const auto number = static_cast<std::int64_t>(value);
      place.make_integer(negative ? -number : number);
      return true;
    }
    return make_number(place, start, whole && value != 0);
  }

  // Converts the number between `start` and here: to an integer if its exact value is one within
  // int64, or else to the nearest double. It keeps its spelling, unless `plain` says that an
  // integer with this value is spelled the same.
  bool make_number(Json& place, const char* start, bool plain) {
    const std::string_view text(start, static_cast<std::size_t>(at_ - start));
    if (const auto integer = json_read_integer(text)) {
      place.make_integer(*integer);
      if (!plain) place.spell(text);
      return true;
    }
    const double number = json_read_double(text);
    if (!std::isfinite(number)) {
      at_ = start;
      return fail("a number too large for a double"sv);
    }
    place.make_real(number);
    place.spell(text);
    return true;
  }

  // Reads from the opening quote to after the closing one, into an empty string.
  bool read_string(std::string& out) {
    const char* run = ++at_;
    for (;;) {
      at_ = json_run(at_, end_);
      if (at_ == end_) return fail("expected '\"'"sv);
      const auto c = static_cast<unsigned char>(*at_);
      if (c >= 0x80) {
        const Utf8Step step = json_utf8_step(at_, end_);
        at_ += step.good;
        if (step.good != 0) continue;
        if (!limits_.accept_invalid_utf8) return fail("invalid UTF-8"sv);
        out.append(run, at_).append(replacement_character);
        run = at_ += step.bad;
        continue;
      }
      if (c == 0x7f) {
        ++at_;
        continue;
      }
      if (c < 0x20) return fail("control character in a string"sv);
      out.append(run, at_);
      ++at_;
      if (c == '"') return true;
      if (!read_escape(out)) return false;
      run = at_;
    }
  }

  // Reads what follows a backslash.
  bool read_escape(std::string& out) {
    if (at_ == end_) return fail("expected an escape"sv);
    char c = *at_;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        break;
      case 'n':
        c = '\n';
        break;
      case 't':
        c = '\t';
        break;
      case 'r':
        c = '\r';
        break;
      case 'b':
        c = '\b';
        break;
      case 'f':
        c = '\f';
        break;
      case 'u':
        ++at_;
        return read_unicode_escape(out);
      default:
        return fail("expected one of \"\\/bfnrtu after a backslash"sv);
    }
    ++at_;
    out += c;
    return true;
  }

  bool read_hex(unsigned& code) {
    std::size_t size = 0;
    code = codeexec::read_digits({at_, static_cast<std::size_t>(end_ - at_)}, size, 4, 16);
    at_ += size;
    return size == 4 || fail("expected four hexadecimal digits"sv);
  }

  // Reads what follows \u. A first half of a pair takes the second half with it; a half alone is
  // U+FFFD, and the string remembers it (Json::has_lone_surrogate).
  bool read_unicode_escape(std::string& out) {
    unsigned code = 0;
    if (!read_hex(code)) return false;
    const bool first_half = code >= 0xd800 && code < 0xdc00;
    if (first_half && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
      const char* const behind_first = at_;
      unsigned low = 0;
      at_ += 2;
      if (!read_hex(low)) return false;
      if (low >= 0xdc00 && low < 0xe000) {
        append_utf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), out);
        return true;
      }
      at_ = behind_first;
    }
    if (code >= 0xd800 && code < 0xe000) {
      lone_surrogate_ = true;
      code = 0xfffd;
    }
    append_utf8(code, out);
    return true;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const JsonLimits limits_;
  Json* open_ = nullptr;  // the innermost open container; its link is the next outer one
  std::size_t values_ = 0;
  std::size_t depth_ = 0;
  bool lone_surrogate_ = false;  // in the string that was just read
  Error error_ = {};
};

Expected<Json> Json::parse(std::string_view text, const JsonLimits& limits) {
  return Parser(text, limits).run();
}

}  // namespace v0_1
}  // namespace codeexec
