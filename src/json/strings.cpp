// JSON's strings a word at a time, and members with equal names.

#include "json/json.hpp"
#include "json/json_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The bytes at which a run of a string ends: a quote, a backslash, a control character (U+007F is
// one), and what is not ASCII.
struct JsonRunEnds {
  bool at[256] = {};
  constexpr JsonRunEnds() {
    for (int c = 0; c < 256; ++c) at[c] = c < 0x20 || c == '"' || c == '\\' || c >= 0x7f;
  }
};
constexpr JsonRunEnds json_run_ends;

// True if a run ends at one of the word's eight bytes. Each term sets the high bit of a byte b:
//
//   (b ^ q) - 1   if b is q, a quote or a backslash     b + 1   if b is 0x7f
//   b - 0x20      if b is below 0x20                    b       if b is not ASCII
//
// `& ~b` drops bytes that had the high bit before. A borrow or a carry can spoil the next byte, but
// it comes only from a byte that ends the run.
bool json_word_ends_run(std::uint64_t word) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  constexpr std::uint64_t highs = 0x8080808080808080u;
  const std::uint64_t quote = word ^ (ones * '"');
  const std::uint64_t slash = word ^ (ones * '\\');
  const std::uint64_t found = ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
                              ((word - ones * 0x20) & ~word) | (word + ones) | word;
  return (found & highs) != 0;
}

}  // namespace

inline namespace inner {

const char* json_run(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    if (json_word_ends_run(word)) break;
  }
  while (at != end && !json_run_ends.at[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

Utf8Step json_utf8_step(const char* at, const char* end) {
  return utf8_step(reinterpret_cast<const unsigned char*>(at), static_cast<std::size_t>(end - at));
}

std::vector<const Json::Member*> json_sorted(const Json::Object& members) {
  std::vector<const Json::Member*> sorted;
  sorted.reserve(members.size());
  for (const Json::Member& member : members) sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(), [](const Json::Member* a, const Json::Member* b) {
    const int order = a->name.compare(b->name);
    return order != 0 ? order < 0 : a < b;
  });
  return sorted;
}

void json_keep_last(Json::Object& members) {
  constexpr std::size_t few = 16;
  bool all_differ = members.size() <= few;
  for (std::size_t i = 1; i < members.size() && all_differ; ++i)
    for (std::size_t j = 0; j < i && all_differ; ++j)
      all_differ = members[i].name != members[j].name;
  if (all_differ) return;
  // Members with one name are neighbours now, in the order of the object. The first gets the value
  // of the next one until it has that of the last.
  const auto sorted = json_sorted(members);
  std::string dropped(members.size(), 0);
  const Json::Member* first = sorted[0];
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->name != first->name) {
      first = sorted[i];
      continue;
    }
    const auto later = static_cast<std::size_t>(sorted[i] - members.data());
    members[static_cast<std::size_t>(first - members.data())].value =
        std::move(members[later].value);
    dropped[later] = 1;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) members[kept] = std::move(members[i]);
    ++kept;
  }
  members.resize(kept);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
