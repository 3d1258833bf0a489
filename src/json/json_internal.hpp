// What the parser, the writer and the value share: numbers, strings, equal names.
#pragma once

#include "json/json.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The double nearest to a number that follows JSON's grammar; infinite when none is near.
double json_read_double(std::string_view text);

// A finite double as JavaScript's Number::toString lays it out (ECMA-262, 6.1.6.1.20), with -0.
void json_append_double(double value, std::string& out);

// Equality of doubles, without the compiler's warning.
inline bool json_same(double a, double b) { return !(a < b) && !(a > b); }

// True if the value is an integer within int64.
bool json_is_int64(double value);

// The exact value of a number that follows JSON's grammar, if it is an integer within int64.
std::optional<std::int64_t> json_read_integer(std::string_view text);

// The first byte in [at, end) at which a run of a string ends, or end. Before it there are only
// bytes that are the same in a string and in its spelling.
const char* json_run(const char* at, const char* end);

// One step of UTF-8 at the byte `at`: how many bytes are good, or bad.
Utf8Step json_utf8_step(const char* at, const char* end);

Json list_of(const std::vector<std::string>& texts);

// Json::set() for each type of value. The temporary Json is made here, and not in the many places
// that call it, which makes them smaller.
void set_member(Json& object, const char* name, const char* text);
void set_member(Json& object, const char* name, const std::string& text);
void set_member(Json& object, const char* name, std::string&& text);
void set_member(Json& object, const char* name, bool value);
void set_member(Json& object, const char* name, double value);
void set_member(Json& object, const char* name, long long value);
void set_member(Json& object, const char* name, unsigned long long value);
void set_member(Json& object, const char* name, const Json& value);
void set_member(Json& object, const char* name, Json&& value);
[[maybe_unused]] inline void set_member(Json& object, const char* name, int value) {
  set_member(object, name, static_cast<long long>(value));
}
[[maybe_unused]] inline void set_member(Json& object, const char* name, long value) {
  set_member(object, name, static_cast<long long>(value));
}
[[maybe_unused]] inline void set_member(Json& object, const char* name, unsigned value) {
  set_member(object, name, static_cast<unsigned long long>(value));
}
[[maybe_unused]] inline void set_member(Json& object, const char* name, unsigned long value) {
  set_member(object, name, static_cast<unsigned long long>(value));
}

// "line 3, column 5" of text[offset], counted from 1. Columns are characters.
std::string line_and_column(std::string_view text, std::size_t offset);

// The error of a text that a person wrote, with the line and the column in place of the byte, and
// what to change where it is a usual mistake: comments, a comma too much, single quotes, YAML.
SharedError json_file_error(std::string_view text, const Error& error);

// The members by name; those with one name stay in their order.
std::vector<const Json::Member*> json_sorted(const Json::Object& members);

// Of members with one name the last value stays, in the place of the first.
void json_keep_last(Json::Object& members);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
