// Json::parse() takes what RFC 8259 takes and nothing else, has the values that the text has, and
// dump() writes them so that they are read again.          sh tests/fuzz/run.sh [seconds] json
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "fuzz.hpp"

namespace {

using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Json;
using codeexec::JsonLimits;

// A second reader, as plain as the grammar. It tells the values as a list of marks and words:
// [ ] { } null true false, #number, $string and :name.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool read() {
    blanks();
    if (!value(0)) return false;
    blanks();
    return at_ == text_.size();
  }
  const std::vector<std::string>& told() const { return told_; }
  std::size_t values() const { return values_; }
  std::size_t depth() const { return depth_; }
  bool has_twins() const { return has_twins_; }  // members with one name
  bool has_lone_surrogate() const { return has_lone_surrogate_; }

 private:
  bool next_is(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool next_is(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  bool value(std::size_t depth) {
    ++values_;
    for (const char* word : {"null", "true", "false"})
      if (next_is(std::string_view(word))) return tell(word);
    if (next_is('"')) return string("$");
    if (next_is('[')) return array(depth + 1);
    if (next_is('{')) return object(depth + 1);
    return number();
  }
  bool array(std::size_t depth) {
    depth_ = std::max(depth_, depth);
    tell("[");
    blanks();
    if (next_is(']')) return tell("]");
    for (;;) {
      blanks();
      if (!value(depth)) return false;
      blanks();
      if (next_is(']')) return tell("]");
      if (!next_is(',')) return false;
    }
  }
  bool object(std::size_t depth) {
    depth_ = std::max(depth_, depth);
    tell("{");
    blanks();
    if (next_is('}')) return tell("}");
    std::set<std::string> names;
    for (;;) {
      blanks();
      if (!next_is('"') || !string(":")) return false;
      has_twins_ = !names.insert(told_.back()).second || has_twins_;
      blanks();
      if (!next_is(':')) return false;
      blanks();
      if (!value(depth)) return false;
      blanks();
      if (next_is('}')) return tell("}");
      if (!next_is(',')) return false;
    }
  }
  bool digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > start;
  }
  bool number() {
    const std::size_t start = at_;
    next_is('-');
    if (!next_is('0') && !digits()) return false;
    if (next_is('.') && !digits()) return false;
    if (next_is('e') || next_is('E')) {
      if (!next_is('-')) next_is('+');
      if (!digits()) return false;
    }
    const std::string written(text_.substr(start, at_ - start));
    return std::isfinite(std::strtod(written.c_str(), nullptr)) && tell("#" + written);
  }
  // Of a \u, whose digits these are, or -1.
  long code_unit() {
    long unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = at_ < text_.size() ? text_[at_++] : '\0';
      const std::size_t digit = std::string_view("0123456789abcdef0123456789ABCDEF").find(c);
      if (c == '\0' || digit == std::string_view::npos) return -1;
      unit = unit * 16 + static_cast<long>(digit % 16);
    }
    return unit;
  }
  static void append(std::string& out, long code) {
    const auto add = [&](long byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return add(code);
    if (code >= 0x10000) add(0xf0 | code >> 18);
    if (code >= 0x10000) add(0x80 | (code >> 12 & 0x3f));
    if (code >= 0x800 && code < 0x10000) add(0xe0 | code >> 12);
    if (code >= 0x800) add(0x80 | (code >> 6 & 0x3f));
    if (code < 0x800) add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  }
  bool escape(std::string& out) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    const std::size_t which = std::string_view("\"\\/bfnrt").find(c);
    if (c != 'u') return which != std::string_view::npos && (out += "\"\\/\b\f\n\r\t"[which], true);
    long code = code_unit();
    if (code < 0) return false;
    const bool high = code >= 0xd800 && code < 0xdc00;
    const std::size_t after = at_;
    if (high && next_is("\\u")) {
      const long low = code_unit();
      if (low < 0) return false;
      if (low >= 0xdc00 && low < 0xe000)
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      else
        at_ = after;
    }
    const bool lone = code >= 0xd800 && code < 0xe000;
    has_lone_surrogate_ = has_lone_surrogate_ || lone;
    append(out, lone ? 0xfffd : code);
    return true;
  }
  bool string(const char* mark) {
    std::string text = mark;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return tell(std::move(text));
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\')
        text += c;
      else if (!escape(text))
        return false;
    }
    return false;
  }
  bool tell(std::string word) {
    told_.push_back(std::move(word));
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  std::size_t depth_ = 0;
  bool has_twins_ = false;
  bool has_lone_surrogate_ = false;
  std::vector<std::string> told_ = {};
};

// Whether a value is what the other reader has told from `at` on.
bool is_told(const Json& value, const std::vector<std::string>& told, std::size_t& at) {
  const std::string& word = told.at(at++);
  switch (value.kind()) {
    case Json::Kind::null:
      return word == "null";
    case Json::Kind::boolean:
      return word == (value.as_bool() ? "true" : "false");
    case Json::Kind::integer:
    case Json::Kind::number: {
      if (word[0] != '#') return false;
      const double real = std::strtod(word.c_str() + 1, nullptr);
      if (value.as_number() != real) return false;
      if (word.find_first_of(".eE") != std::string::npos || std::abs(real) > 1e18) return true;
      return value.is_integer() &&
             value.as_integer() == std::strtoll(word.c_str() + 1, nullptr, 10);
    }
    case Json::Kind::string:
      return word == "$" + value.as_string();
    case Json::Kind::array:
      if (word != "[") return false;
      for (const Json& item : value.items())
        if (!is_told(item, told, at)) return false;
      return told.at(at++) == "]";
    case Json::Kind::object:
      if (word != "{") return false;
      for (const Json::Member& member : value.members())
        if (told.at(at++) != ":" + member.name || !is_told(member.value, told, at)) return false;
      return told.at(at++) == "}";
  }
  return false;
}

void expect_rewritten(const Json& value, std::string_view text) {
  const std::string written = value.dump();
  EXPECT_WITH(codeexec::is_utf8(written), text);
  for (const char c : written) EXPECT_WITH(static_cast<unsigned char>(c) >= 0x20, text);
  for (const char* line_end : {"\x7f", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
    EXPECT_WITH(written.find(line_end) == std::string::npos, text);
  const Expected<Json> again = Json::parse(written);
  EXPECT_WITH(again.has_value(), text);
  EXPECT_WITH(*again == value, text);
  EXPECT_WITH(again->dump() == written, text);
  Json copy = value;
  EXPECT_WITH(copy == value, text);
  const Json moved = std::move(copy);
  EXPECT_WITH(moved == *again, text);
  if (!value.is_number()) return;
  // The number alone, without the way in which it was written.
  const Expected<Json> number = Json::parse(Json(value.as_number()).dump());
  EXPECT_WITH(number && number->as_number() == value.as_number(), text);
}

void expect_error(const codeexec::Error& error, std::string_view text) {
  EXPECT_WITH(error.code == ErrorCode::parse || error.code == ErrorCode::limit, text);
  EXPECT_WITH(error.offset <= text.size(), text);
  EXPECT_WITH(!error.message.empty() && codeexec::is_utf8(error.message), text);
  EXPECT_WITH(error.message.find('\n') == std::string::npos, text);
}

// With a limit it is refused exactly when it is over it.
void expect_limited(std::string_view text, const JsonLimits& limits, bool fits) {
  const Expected<Json> limited = Json::parse(text, limits);
  EXPECT_WITH(limited.has_value() == fits, text);
  if (!limited) expect_error(limited.error(), text);
}

}  // namespace

void fuzz::json(std::string_view text) {
  const Expected<Json> value = Json::parse(text);
  if (!value) expect_error(value.error(), text);
  Reader reader(text);
  const bool is_json = codeexec::is_utf8(text) && reader.read();
  EXPECT_WITH(value.has_value() == (is_json && reader.depth() <= JsonLimits().max_depth), text);

  // Bad bytes are read as what they become; then nothing else may differ.
  JsonLimits lenient;
  lenient.accept_invalid_utf8 = true;
  const Expected<Json> repaired = Json::parse(text, lenient);
  const Expected<Json> repaired_before = Json::parse(codeexec::to_utf8(text));
  EXPECT_WITH(repaired.has_value() == repaired_before.has_value(), text);
  if (repaired) EXPECT_WITH(*repaired == *repaired_before, text);

  if (!value) return;
  expect_rewritten(*value, text);
  std::size_t at = 0;
  EXPECT_WITH(value->has_lone_surrogate() == reader.has_lone_surrogate(), text);
  EXPECT_WITH(reader.has_twins() || is_told(*value, reader.told(), at), text);
  JsonLimits limits;
  limits.unique_names = true;
  expect_limited(text, limits, !reader.has_twins());
  for (const std::size_t most : {1u, 2u, 8u}) {
    limits = JsonLimits();
    limits.max_depth = most;
    expect_limited(text, limits, reader.depth() <= most);
    limits = JsonLimits();
    limits.max_values = most;
    expect_limited(text, limits, reader.values() <= most);
  }
}
