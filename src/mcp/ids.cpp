// Ids of requests, also of those that cannot be parsed.

#include "mcp/mcp_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

bool is_whole(const Json& value) {
  if (value.is_integer()) return true;
  if (!value.is_number()) return false;
  const double number = value.as_number();
  return std::floor(number) == number;
}

}  // namespace

inline namespace inner {

Id id_of(const Json& value) {
  Id id;
  const bool text = value.is_string() && !value.has_lone_surrogate();
  if (!text && !is_whole(value)) return id;
  id.spelling = value.dump();
  if (id.spelling.size() > longest_id) return Id();
  if (text) {
    id.key = concat("s%", {value.as_string()});
  } else {
    id.key = concat("n%", {value.is_integer() ? std::to_string(value.as_integer()) : id.spelling});
  }
  return id;
}

Id IdScanner::id() const {
  if (found_.empty()) return Id();
  const Expected<Json> value = Json::parse(found_);
  return value ? id_of(*value) : Id();
}

void IdScanner::step(char c) {
  if (broken_) return;
  if (in_string_) return step_in_string(c);
  if (in_number_) {
    if (!is_space(c) && c != ',' && c != '}') return keep(c);
    in_number_ = false;
    found_ = token_;
  }
  if (is_space(c)) return;
  if (expect_ == Expect::object) return begin(c);
  if (c == '"') return begin_string();
  step_structure(c);
}

void IdScanner::begin(char c) {
  if (c == '\xef' || c == '\xbb' || c == '\xbf') return;
  broken_ = c != '{';
  depth_ = 1;
  expect_ = Expect::name;
}

void IdScanner::begin_string() {
  in_string_ = true;
  token_ = "\"";
  // Only what is compared or returned is kept.
  keeping_ = depth_ == 1 && (expect_ == Expect::name || (expect_ == Expect::value && is_id_));
}

void IdScanner::step_in_string(char c) {
  if (keeping_) keep(c);
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
    end_string();
  }
}

void IdScanner::end_string() {
  if (depth_ != 1) return;
  if (expect_ == Expect::name) {
    is_id_ = token_ == "\"id\"";
    expect_ = Expect::colon;
  } else if (expect_ == Expect::value) {
    if (is_id_) found_ = token_;
    expect_ = Expect::nothing;
  }
}

void IdScanner::step_structure(char c) {
  if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    broken_ = --depth_ == 0;
  } else if (depth_ != 1) {
    return;
  } else if (c == ',') {
    expect_ = Expect::name;
  } else if (c == ':') {
    expect_ = Expect::value;
  } else if (expect_ == Expect::value && is_id_) {
    expect_ = Expect::nothing;
    in_number_ = true;
    token_.clear();
    keep(c);
  }
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
