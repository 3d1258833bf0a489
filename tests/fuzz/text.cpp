// Small readers of foreign text: UTF-8, base64, patterns of names, the kernel's lists of groups and
// mounts, the front matter of a skill.                     sh tests/fuzz/run.sh [seconds] text
//   The first byte of an input chooses the reader.
#include <algorithm>

#include "fuzz.hpp"

namespace {

// Length of the character at the start by table 3-7 of Unicode, or 0; then `bad` is how many bytes
// are replaced together: as many as could begin a character, at least one.
std::size_t character(std::string_view text, std::size_t& bad) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto is_in = [](unsigned value, unsigned low, unsigned high) {
    return low <= value && value <= high;
  };
  const unsigned lead = byte(0);
  bad = 1;
  if (lead < 0x80) return 1;
  const std::size_t length = is_in(lead, 0xc2, 0xdf)   ? 2
                             : is_in(lead, 0xe0, 0xef) ? 3
                             : is_in(lead, 0xf0, 0xf4) ? 4
                                                       : 0;
  if (length == 0) return 0;
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (!is_in(byte(1), low, high)) return 0;
  for (bad = 2; bad < length; ++bad)
    if (!is_in(byte(bad), 0x80, 0xbf)) return 0;
  return length;
}

void read_utf8(std::string_view text) {
  std::string wanted;
  std::uint64_t invalid = 0;
  std::size_t first_invalid = std::string_view::npos;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t bad = 0;
    const std::size_t good = character(text.substr(i), bad);
    if (good > 0) {
      wanted += text.substr(i, good);
    } else {
      wanted += "\xef\xbf\xbd";
      invalid += bad;
      first_invalid = std::min(first_invalid, i);
    }
    i += good > 0 ? good : bad;
  }
  std::uint64_t counted = 0;
  EXPECT_WITH(codeexec::is_utf8(text) == (invalid == 0), text);
  EXPECT_WITH(codeexec::find_invalid_utf8(text) == first_invalid, text);
  EXPECT_WITH(codeexec::to_utf8(text, &counted) == wanted && counted == invalid, text);
  EXPECT_WITH(codeexec::to_utf8(wanted) == wanted, text);
  for (std::size_t size = 0; size <= std::min<std::size_t>(wanted.size(), 20); ++size) {
    const std::string_view prefix = codeexec::utf8_prefix(wanted, size);
    const std::string_view suffix = codeexec::utf8_suffix(wanted, size);
    EXPECT_WITH(prefix.size() <= size && suffix.size() <= size, text);
    EXPECT_WITH(size - prefix.size() <= 3 && size - suffix.size() <= 3, text);
    EXPECT_WITH(codeexec::is_utf8(prefix) && codeexec::is_utf8(suffix), text);
    EXPECT_WITH(wanted.compare(0, prefix.size(), prefix) == 0, text);
    EXPECT_WITH(wanted.substr(wanted.size() - suffix.size()) == suffix, text);
  }
}

void read_base64(std::string_view text) {
  const std::string written = codeexec::to_base64(text);
  EXPECT_WITH(written.size() == (text.size() + 2) / 3 * 4, text);
  auto read = codeexec::from_base64(written);
  EXPECT_WITH(read && *read == text, text);
  read = codeexec::from_base64(written.substr(0, written.find('=')));
  EXPECT_WITH(read && *read == text, text);
  read = codeexec::from_base64(text);
  if (!read) return;
  EXPECT_WITH(read->size() <= text.size() / 4 * 3 + 2, text);
  std::string without_blanks;
  for (const char c : text)
    if (std::string_view(" \t\r\n=").find(c) == std::string_view::npos) without_blanks += c;
  const std::string again = codeexec::to_base64(*read);
  EXPECT_WITH(without_blanks.size() == again.substr(0, again.find('=')).size(), text);
}

// `*` and `?` alone, tried in every way.
bool has_form(std::string_view pattern, std::string_view name) {
  std::vector<bool> reached(name.size() + 1, false);
  reached[0] = true;
  for (const char c : pattern) {
    std::vector<bool> next(name.size() + 1, false);
    bool any = false;
    for (std::size_t i = 0; i <= name.size(); ++i) {
      any = any || reached[i];
      if (c == '*')
        next[i] = any;
      else if (reached[i] && i < name.size() && (c == '?' || c == name[i]))
        next[i + 1] = true;
    }
    reached = next;
  }
  return reached[name.size()];
}

void read_pattern(std::string_view pattern, std::string_view name) {
  const bool got = fuzz::glob_matches(pattern, name);
  const std::string shown = std::string(pattern) + "\n--- for\n" + std::string(name);
  if (pattern.find('[') == std::string_view::npos)
    EXPECT_WITH(got == has_form(pattern, name), shown);
  EXPECT_WITH(!got || fuzz::glob_matches("*" + std::string(pattern), "xy" + std::string(name)),
              shown);
}

void read_kernel(std::string_view first, std::string_view second) {
  for (const char* controller : {"", "memory", "pids"}) {
    const std::string group = fuzz::own_group(first, controller);
    EXPECT_WITH(group.find('\n') == std::string::npos, first);
    EXPECT_WITH(group.empty() || first.find(group) != std::string_view::npos, first);
    (void)fuzz::group_directory(second, group, controller);
    (void)fuzz::group_directory(second, "/a/b", controller);
  }
  (void)fuzz::counter_in(std::string(first), "oom_kill");
  const std::string line =
      "low 0\n" + std::string(first.substr(0, first.find('\n'))) + "\noom_kill 42\n";
  EXPECT_WITH(first.substr(0, 8) == "oom_kill" || fuzz::counter_in(line, "oom_kill") == 42, first);
  // As the kernel writes what it has to.
  std::string escaped;
  for (const char c : first) {
    if (std::string_view(" \t\n\\").find(c) == std::string_view::npos) {
      escaped += c;
      continue;
    }
    escaped += '\\';
    for (const int digit : {c / 64, c / 8 % 8, c % 8}) escaped += std::to_string(digit);
  }
  EXPECT_WITH(fuzz::unescaped(escaped) == first, first);
  EXPECT_WITH(fuzz::unescaped(first).size() <= first.size(), first);
}

void read_skill(std::string_view text) {
  const std::string_view got = fuzz::front_matter(text, "name");
  EXPECT_WITH(got.empty() || (got.data() >= text.data() && got.find('\n') == got.npos), text);
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  std::string_view bare = line;
  while (!bare.empty() && (bare.front() == ' ' || bare.front() == '\t')) bare.remove_prefix(1);
  while (!bare.empty() && (bare.back() == ' ' || bare.back() == '\t')) bare.remove_suffix(1);
  const std::string whole = "---\nother: x\nname: " + std::string(line) + "\n---\n";
  EXPECT_WITH(fuzz::front_matter(whole, "name") == bare, text);
}

}  // namespace

void fuzz::text(std::string_view input) {
  Bytes bytes(input);
  switch (bytes.below(5)) {
    case 0:
      return read_utf8(bytes.rest());
    case 1:
      return read_base64(bytes.rest());
    case 2: {
      const std::string_view pattern = bytes.part();
      return read_pattern(pattern, bytes.rest());
    }
    case 3: {
      const std::string_view first = bytes.part();
      return read_kernel(first, bytes.rest());
    }
    default:
      return read_skill(bytes.rest());
  }
}
