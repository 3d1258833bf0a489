// The bytes of keys.

#include "terminal/terminal.hpp"
#include "terminal/terminal_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A row for each key that has a name, with its bytes as xterm sends them. Those of three bytes that
// begin with ESC [ have O in place of [ when the program wants so.
struct NamedKey {
  char name[10];
  char bytes[6];
};
constexpr NamedKey named_keys[] = {
    {"enter", "\r"},       {"tab", "\t"},         {"shift-tab", "\x1b[Z"}, {"escape", "\x1b"},
    {"esc", "\x1b"},       {"space", " "},        {"backspace", "\x7f"},   {"up", "\x1b[A"},
    {"down", "\x1b[B"},    {"right", "\x1b[C"},   {"left", "\x1b[D"},      {"home", "\x1b[H"},
    {"end", "\x1b[F"},     {"pageup", "\x1b[5~"}, {"pagedown", "\x1b[6~"}, {"insert", "\x1b[2~"},
    {"delete", "\x1b[3~"}, {"f1", "\x1bOP"},      {"f2", "\x1bOQ"},        {"f3", "\x1bOR"},
    {"f4", "\x1bOS"},      {"f5", "\x1b[15~"},    {"f6", "\x1b[17~"},      {"f7", "\x1b[18~"},
    {"f8", "\x1b[19~"},    {"f9", "\x1b[20~"},    {"f10", "\x1b[21~"},     {"f11", "\x1b[23~"},
    {"f12", "\x1b[24~"},
};

bool is_one_character(std::string_view text) {
  return !text.empty() &&
         utf8_step(reinterpret_cast<const unsigned char*>(text.data()), text.size()).good ==
             text.size();
}

// Empty: there is no such key.
std::string bytes_of_key(std::string_view key, bool application_cursor) {
  if (is_one_character(key)) return std::string(key);
  const std::string name = in_lower_case(key);
  if (starts_with(name, "alt-"sv) && !starts_with(name, "alt-alt-"sv)) {
    const std::string rest = bytes_of_key(key.substr(4), application_cursor);
    return rest.empty() ? rest : "\x1b" + rest;
  }
  if (name == "ctrl-space") return std::string(1, '\0');
  // The letters, and @ [ \ ] ^ _ beside them in ASCII.
  if (name.size() == 6 && starts_with(name, "ctrl-"sv)) {
    const char c = is_letter(name[5]) ? static_cast<char>(name[5] - 'a' + 'A') : name[5];
    if (c == '?') return "\x7f";
    if (c >= '@' && c <= '_') return std::string(1, static_cast<char>(c - '@'));
  }
  for (const NamedKey& named : named_keys) {
    if (name != named.name) continue;
    std::string result = named.bytes;
    if (application_cursor && result.size() == 3 && result[1] == '[' && result[2] != 'Z')
      result[1] = 'O';
    return result;
  }
  return {};
}

}  // namespace

Expected<std::string> key_bytes(const std::vector<std::string>& keys,
                                const TerminalScreen& screen) {
  std::string bytes;
  for (const std::string& key : keys) {
    const std::string found = bytes_of_key(key, screen.application_cursor);
    if (found.empty()) {
      std::string known;
      for (const NamedKey& named : named_keys) append_all(known, "%, ", {named.name});
      return make_error(ErrorCode::invalid_argument,
                        "there is no key %: keys are %ctrl-a to ctrl-z, ctrl-space, alt- before "
                        "another key, and single characters",
                        {in_quotes(key), known});
    }
    bytes += found;
  }
  return bytes;
}

}  // namespace v0_1
}  // namespace codeexec
