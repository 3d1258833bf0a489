// Ids of requests, also of those that cannot be parsed.

#include "mcp/mcp_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

bool is_whole(const Json& value) {
  return value.is_number() &&
         (value.is_integer() || std::floor(value.as_number()) == value.as_number());
}

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

void IdScanner::feed(std::string_view bytes) {
  constexpr std::string_view before_object = " \t\r\n\xef\xbb\xbf";  // with a byte order mark
  for (const char c : bytes) {
    if (ended_) return;
    if (depth_ == 0) {
      if (c == '{') depth_ = 1;
      ended_ = depth_ == 0 && before_object.find(c) == std::string_view::npos;
      continue;
    }
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      ended_ = --depth_ == 0;
    }
    if (ended_ || (depth_ == 1 && c == ',' && !in_string_)) {
      end_member();
    } else if (depth_ == 1 && has_room()) {
      member_ += c;
    }
  }
}

void IdScanner::end_member() {
  if (has_room() && member_.find("\"id\"") != std::string::npos) {
    const Expected<Json> object = Json::parse(concat("{%}", {member_}));
    if (const Json* const id = object ? object->find("id"sv) : nullptr) id_ = id_of(*id);
  }
  member_.clear();
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
