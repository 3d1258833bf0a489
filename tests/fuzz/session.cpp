// What comes out of a container: the marks between what a command writes, and what its shell tells
// of a session. Both are hostile.                          sh tests/fuzz/run.sh [seconds] session
//   The first byte of an input chooses the reader.
#include <algorithm>

#include "fuzz.hpp"

namespace {

using codeexec::detail::parse_session_state;
using fuzz::Framed;
using fuzz::Variables;

constexpr std::string_view mark = "M0";
const std::string id = "i1";

// The stream as the header's comment describes it, all of it at once: a mark is \1, one of PEKXS,
// the id, up to 64 bytes and a newline.
Framed read_plainly(std::string_view bytes) {
  constexpr std::size_t longest_text = 64;
  Framed framed;
  bool tells_session = false;
  const auto give = [&](std::string_view text) {
    std::string& to = tells_session ? framed.session : framed.begun ? framed.output : framed.noise;
    to += text;
  };
  while (!bytes.empty() && framed.end == 0) {
    std::size_t size = std::min(bytes.find('\1'), bytes.size());
    give(bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (bytes.empty()) break;
    const std::string_view letters = "PEKXS";
    size = 1;
    if (size < bytes.size() && letters.find(bytes[size]) != std::string_view::npos) ++size;
    for (const char c : id)
      if (size >= 2 && size < bytes.size() && bytes[size] == c && c == id[size - 2]) ++size;
    const std::size_t prefix = 2 + id.size();
    if (size == prefix) {
      const std::size_t line_end = bytes.substr(0, prefix + longest_text + 1).find('\n', prefix);
      if (line_end != std::string_view::npos) {
        const std::string_view text = bytes.substr(prefix, line_end - prefix);
        framed.told = text.substr(std::min<std::size_t>(1, text.size()));
        if (bytes[1] == 'P')
          framed.begun = true;
        else if (bytes[1] == 'S')
          tells_session = true;
        else
          framed.end = bytes[1];
        bytes.remove_prefix(line_end + 1);
        continue;
      }
      // What may still become a mark is held back.
      if (bytes.size() <= prefix + longest_text) break;
      size = prefix + longest_text;
    } else if (size == bytes.size()) {
      break;
    }
    give(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  constexpr std::size_t most_noise = 4096;
  framed.noise = framed.noise.substr(0, most_noise);
  return framed;
}

void expect_same(const Framed& got, const Framed& wanted, std::string_view input) {
  EXPECT_WITH(got.begun == wanted.begun && got.end == wanted.end, input);
  EXPECT_WITH(got.told == wanted.told, input);
  EXPECT_WITH(got.noise == wanted.noise, input);
  EXPECT_WITH(got.output == wanted.output, input);
  EXPECT_WITH(got.session == wanted.session, input);
}

// In the bytes `~` stands for a mark's beginning, so that there are some.
void read_stream(fuzz::Bytes bytes) {
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 3; ++i) sizes.push_back(1 + bytes.below(70));
  std::string stream;
  for (const char c : bytes.rest()) {
    if (c == '~')
      stream += '\1';
    else if (c == '^')
      stream += id;
    else
      stream += c;
  }
  const Framed wanted = read_plainly(stream);
  expect_same(fuzz::read_framing(id, stream, sizes), wanted, stream);
  expect_same(fuzz::read_framing(id, stream, {1}), wanted, stream);
  expect_same(fuzz::read_framing(id, stream, {2}), wanted, stream);
  expect_same(fuzz::read_framing(id, stream, {100000}), wanted, stream);
}

// As shells write it: in single quotes, in double quotes, in $'..', with backslashes.
std::string quoted(std::string_view value, std::size_t how) {
  std::string word = how == 0 ? "'" : how == 1 ? "\"" : how == 2 ? "$'" : "";
  for (const char c : value) {
    if (how == 0) {
      c == '\'' ? word += "'\\''" : word += c;
    } else if (how == 1) {
      if (std::string_view("$`\"\\").find(c) != std::string_view::npos) word += '\\';
      word += c;
    } else if (how == 2) {
      const auto byte = static_cast<unsigned char>(c);
      word += '\\';
      for (const int digit : {byte / 64, byte / 8 % 8, byte % 8}) word += std::to_string(digit);
    } else {
      (word += '\\') += c;
    }
  }
  return word + (how == 0 || how == 2 ? "'" : how == 1 ? "\"" : "");
}

std::string exports(const Variables& variables, std::size_t how) {
  static const char* const commands[] = {"export ", "declare -x ", "typeset -x ", "export -- "};
  std::string text;
  for (const auto& [name, value] : variables)
    text += commands[how] + name + "=" + quoted(value, how) + "\n";
  return text;
}

std::string message(const std::string& before, const std::string& folder,
                    const std::string& after) {
  const std::string line = std::string(mark) + "\n";
  return line + before + line + folder + "\n" + line + after + line;
}

void expect_state(const codeexec::detail::SessionState& state, std::string_view text) {
  EXPECT_WITH(!state.work_dir.empty() && state.work_dir[0] == '/', text);
  EXPECT_WITH(state.work_dir.find('\0') == std::string::npos, text);
  for (const Variables* variables : {&state.before, &state.variables})
    for (const auto& [name, value] : *variables) {
      EXPECT_WITH(!name.empty() && !(name[0] >= '0' && name[0] <= '9'), text);
      for (const char c : name)
        EXPECT_WITH(
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_',
            text);
      EXPECT_WITH(value.find('\0') == std::string::npos, text);
    }
}

void read_hostile(std::string_view text) {
  const auto state = parse_session_state(text, mark);
  if (!state) {
    EXPECT_WITH(!state.error().message.empty(), text);
    EXPECT_WITH(state.error().code == codeexec::ErrorCode::parse, text);
    return;
  }
  expect_state(*state, text);
  EXPECT_WITH(!parse_session_state(text, "other"), text);
  EXPECT_WITH(!parse_session_state(std::string(text) + "x", mark), text);
  // The same, written anew.
  for (std::size_t how = 0; how < 2; ++how) {
    const auto again = parse_session_state(
        message(exports(state->before, how), state->work_dir, exports(state->variables, how)),
        mark);
    if (!again) continue;  // a value may have a line that is the mark
    EXPECT_WITH(again->work_dir == state->work_dir, text);
    EXPECT_WITH(again->before == state->before && again->variables == state->variables, text);
  }
}

// Whatever values a command has given its variables, they are what is read.
void read_told(fuzz::Bytes bytes) {
  const std::size_t how = bytes.below(4);
  Variables variables;
  for (char letter = 'A'; letter <= 'D'; ++letter) {
    std::string value(bytes.part());
    value.erase(std::remove(value.begin(), value.end(), '\0'), value.end());
    if (value.find(mark) != std::string::npos) return;
    variables.emplace_back(std::string("V_") + letter, value);
  }
  const std::string told = exports(variables, how);
  const auto state = parse_session_state(message("", "/work", told), mark);
  EXPECT_WITH(state.has_value(), told);
  EXPECT_WITH(state->variables == variables, told);
  EXPECT_WITH(state->work_dir == "/work" && state->before.empty(), told);
}

}  // namespace

void fuzz::session(std::string_view input) {
  Bytes bytes(input);
  const std::size_t reader = bytes.below(4);
  if (reader < 2) return read_stream(bytes);
  if (reader == 2) return read_told(bytes);
  // `@` stands for the mark's line.
  std::string text;
  for (const char c : bytes.rest()) c == '@' ? text += std::string(mark) + "\n" : text += c;
  read_hostile(text);
}
