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

inline bool json_same(double a, double b) { return !(a < b) && !(a > b); }

bool json_is_int64(double value);

// The exact value of a number that follows JSON's grammar, if it is an integer within int64.
std::optional<std::int64_t> json_read_integer(std::string_view text);

// The first byte in [at, end) that ends a run when reading, or end.
const char* json_run_in(const char* at, const char* end);

// The same when writing, where U+007F counts too.
const char* json_run_out(const char* at, const char* end);

Utf8Step json_utf8_step(const char* at, const char* end);

// Json::set() without a temporary value where it is called, which is in many places.
void set_member(Json& object, const char* name, const char* text);
void set_member(Json& object, const char* name, const std::string& text);
void set_member(Json& object, const char* name, std::string&& text);
void set_member(Json& object, const char* name, bool value);
void set_member(Json& object, const char* name, double value);
void set_member(Json& object, const char* name, long long value);
void set_member(Json& object, const char* name, unsigned long long value);
void set_member(Json& object, const char* name, const Json& value);
void set_member(Json& object, const char* name, Json&& value);
inline void set_member(Json& object, const char* name, int value) {
  set_member(object, name, static_cast<long long>(value));
}
inline void set_member(Json& object, const char* name, long value) {
  set_member(object, name, static_cast<long long>(value));
}
inline void set_member(Json& object, const char* name, unsigned value) {
  set_member(object, name, static_cast<unsigned long long>(value));
}
inline void set_member(Json& object, const char* name, unsigned long value) {
  set_member(object, name, static_cast<unsigned long long>(value));
}

// Of members with one name the last value stays, in the place of the first.
void json_keep_last(Json::Object& members);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
