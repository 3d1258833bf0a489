// Modes of files, as chmod and setfacl read them.
//
//   mode        others may write   why
//   777, o+w    yes: risky
//   1777, +t    yes, but users remove only their own files: not risky
//   a+w,o-w     no                 clauses count in their order
//   u+s, 4755   no                 risky all the same: it runs as its owner
//   o=u         not known: risky

#include "policy/policy_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr unsigned set_ids = 06000;
constexpr unsigned sticky = 01000;
constexpr unsigned others_write = 02;

// What a mode does, as far as it matters here.
struct ModeEffect {
  bool writable = false;  // for others
  bool sticks = false;    // a directory from which each removes only what is his
  bool risky = false;     // sets a bit, or copies permissions that are not known
};

bool has_any(std::string_view text, std::string_view letters) {
  return text.find_first_of(letters) != std::string_view::npos;
}

void apply_octal(std::string_view digits, ModeEffect& effect) {
  unsigned value = 0;
  for (const char c : digits) value = (value << 3 | (static_cast<unsigned char>(c) & 7U)) & 07777;
  effect.risky |= (value & set_ids) != 0;
  effect.writable |= (value & others_write) != 0;
  effect.sticks |= (value & sticky) != 0;
}

// u+rwx and the like; without u, g, o or a, others get no permission to write.
void apply_symbolic(std::string_view clause, ModeEffect& effect) {
  std::size_t at = std::min(clause.find_first_not_of("ugoa"), clause.size());
  const std::string_view who = clause.substr(0, at);
  const bool to_others = has_any(who, "oa"sv);
  while (at < clause.size()) {
    const char operation = clause[at++];
    const std::size_t end = std::min(clause.find_first_of("+-=", at), clause.size());
    const std::string_view what = clause.substr(at, end - at);
    at = end;
    if (operation == '-') {
      if (has_any(what, "w"sv) && (to_others || who.empty())) effect.writable = false;
      if (has_any(what, "t"sv)) effect.sticks = false;
      continue;
    }
    if (operation == '=' && to_others) effect.writable = false;
    if (!what.empty() && is_digit(what[0])) apply_octal(what, effect);
    effect.risky |= to_others && has_any(what, "ug"sv);
    effect.risky |= has_any(what, "s"sv) && who != "o"sv;
    effect.sticks |= has_any(what, "t"sv);
    effect.writable |= to_others && has_any(what, "w"sv);
  }
}

}  // namespace

inline namespace inner {

bool is_risky_mode(std::string_view mode) {
  if (is_unknown(mode)) return true;
  ModeEffect effect;
  if (!mode.empty() && is_digit(mode[0]))
    apply_octal(mode, effect);
  else
    while (!mode.empty()) apply_symbolic(take_part(mode, ','), effect);
  return effect.risky || (effect.writable && !effect.sticks);
}

bool is_risky_acl(std::string_view entries) {
  if (is_unknown(entries)) return true;
  while (!entries.empty()) {
    std::string_view entry = take_part(entries, ',');
    if (starts_with(entry, "d:"sv) || starts_with(entry, "default:"sv)) take_part(entry, ':');
    // o::rwx, other:rwx or o::7
    if (starts_with(entry, "o"sv) && has_any(entry.substr(entry.rfind(':') + 1), "w2367"sv))
      return true;
  }
  return false;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
