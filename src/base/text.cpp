// Text: joining, quoting, numbers, base64.

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Piece::Piece(const char* text) : Piece(std::string_view(text)) {}
Piece::Piece(const std::string& text) : Piece(std::string_view(text)) {}
Piece::Piece(std::string_view text, Kind kind) : kind_(kind), text_(text) {}
Piece::Piece(unsigned long long number) : kind_(Kind::number), number_(number) {}
Piece::Piece(long long number)
    : kind_(number < 0 ? Kind::below_zero : Kind::number),
      number_(static_cast<unsigned long long>(number)) {
  if (number < 0) number_ = 0 - number_;
}

void Piece::append_to(std::string& out) const {
  constexpr std::size_t longest_quote = 200;
  switch (kind_) {
    case Kind::text:
      out += text_;
      break;
    case Kind::in_quotes:
      out += '\'';
      out += printable(utf8_prefix(text_, longest_quote));
      out += text_.size() > longest_quote ? "...'" : "'";
      break;
    case Kind::below_zero:
      out += '-';
      [[fallthrough]];
    case Kind::number:
      out += std::to_string(number_);
  }
}

Piece::operator std::string() const { return concat({*this}); }

void append_all(std::string& text, Pieces pieces) {
  for (const Piece& piece : pieces) piece.append_to(text);
}

void append_all(std::string& text, const char* form, Pieces values) {
  for (const Piece* value = values.begin();; ++value) {
    const char* const mark = std::strchr(form, '%');
    if (!mark || value == values.end()) break;
    text.append(form, mark);
    value->append_to(text);
    form = mark + 1;
  }
  text += form;
}

std::string concat(const char* form, Pieces values) {
  std::size_t size = std::strlen(form);
  for (const Piece& value : values) size += value.size();
  std::string text;
  text.reserve(size);
  append_all(text, form, values);
  return text;
}

std::string concat(Pieces pieces) {
  std::size_t size = 0;
  for (const Piece& piece : pieces) size += piece.size();
  std::string text;
  text.reserve(size);
  append_all(text, pieces);
  return text;
}

void add_words(std::vector<std::string>& words, Pieces more) {
  for (const Piece& word : more) words.push_back(word);
}

std::vector<std::string> words_of(Pieces words) {
  std::vector<std::string> result;
  add_words(result, words);
  return result;
}

void append_hex(std::string& out, unsigned char byte) {
  constexpr char digits[] = "0123456789abcdef";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

std::string random_hex(std::size_t size) {
  unsigned char bytes[32];
  size = std::min(size, sizeof bytes);
  std::string text;
  if (::getentropy(bytes, size) != 0) return text;
  for (std::size_t i = 0; i < size; ++i) append_hex(text, bytes[i]);
  return text;
}

namespace {

// The bytes of the control character that well-formed text begins with, or of the mark that turns
// the direction of text; 0: it begins with none of these.
std::size_t size_of_control(std::string_view text) {
  const auto byte = [text](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  const unsigned second = byte(0) << 8 | byte(1);
  if ((second >= 0xc280 && second < 0xc2a0) || second == 0xd89c) return 2;  // U+80 to 9f, 61c
  const unsigned third = second << 8 | byte(2);
  for (const auto& [first, last] : {std::pair(0xe2808eu, 0xe2808fu),   // U+200e, 200f
                                    std::pair(0xe280a8u, 0xe280aeu),   // U+2028 to 202e
                                    std::pair(0xe281a6u, 0xe281a9u)})  // U+2066 to 2069
    if (third >= first && third <= last) return 3;
  return 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  const std::string whole = to_utf8(text);
  for (std::size_t at = 0; at < whole.size();) {
    std::size_t hidden = size_of_control(std::string_view(whole).substr(at));
    if (hidden == 0) result += whole[at++];
    for (; hidden > 0; --hidden) {
      result += "\\x";
      append_hex(result, static_cast<unsigned char>(whole[at++]));
    }
  }
  return result;
}

Piece in_quotes(std::string_view text) { return Piece(text, Piece::Kind::in_quotes); }

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

std::size_t find_bytes(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return text.npos;
  const char* const begin = text.data() + from;
  const void* const found = ::memmem(begin, text.size() - from, wanted.data(), wanted.size());
  if (!found) return text.npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t line_start(std::string_view text, std::size_t at) {
  return at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
}

std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool all_are(std::string_view text, bool (*test)(char)) {
  for (const char c : text)
    if (!test(c)) return false;
  return true;
}

bool is_name(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) && all_are(text, is_name_char);
}

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  }
  return word + "'";
}

void append_shell_word(std::string& script, std::string_view text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos)
    script += text;
  else
    script += shell_word(text);
}

bool is_assignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  return equals != std::string_view::npos && is_name(text.substr(0, equals));
}

bool is_reserved_word(std::string_view word) {
  static constexpr auto words = NameSet{
      "!",        "[[", "case", "coproc", "do",   "done", "elif",  "else",  "esac", "fi", "for",
      "function", "if", "in",   "select", "then", "time", "until", "while", "{",    "}"};
  return words.has(word);
}

std::string script_of_argv(const std::vector<std::string>& argv) {
  std::string script;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (i) script += ' ';
    // The name of a program is neither an assignment nor a word of the shell's grammar.
    if (i == 0 && (is_reserved_word(argv[i]) || is_assignment(argv[i])))
      append_all(script, "'%'", {argv[i]});
    else
      append_shell_word(script, argv[i]);
  }
  return script;
}

namespace {

// The value of a hexadecimal digit; 16, which no base allows, for what is none.
unsigned hex_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 16;
}

}  // namespace

char escaped_character(char c) {
  switch (c) {
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    case '\\':
      return '\\';
    default:
      return '\0';
  }
}

std::uint32_t read_digits(std::string_view text, std::size_t& at, std::size_t most, unsigned base) {
  std::uint32_t value = 0;
  for (const std::size_t begin = at; at < text.size() && at - begin < most; ++at) {
    const unsigned digit = hex_value(text[at]);
    if (digit >= base) break;
    value = value * base + digit;
  }
  return value;
}

std::string content_digits(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::size_t total_size(const std::vector<std::string>& texts) {
  std::size_t size = 0;
  for (const std::string& text : texts) size += text.size();
  return size;
}

std::string_view without_line_ends(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace inner

std::string to_base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const auto byte = [&](std::size_t k) {
      return k < left ? static_cast<unsigned>(static_cast<unsigned char>(bytes[i + k])) : 0u;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    text += digits[group >> 18];
    text += digits[group >> 12 & 63];
    text += left > 1 ? digits[group >> 6 & 63] : '=';
    text += left > 2 ? digits[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    int value = -1;
    if (c >= 'A' && c <= 'Z') value = c - 'A';
    if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
    if (is_digit(c)) value = c - '0' + 52;
    if (c == '+') value = 62;
    if (c == '/') value = 63;
    if (value < 0 || padding > 0) return {};
    ++digits;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  // What is left over of the last digit stands for nothing, so it must be nothing.
  if (digits % 4 == 1 || (bits & ((std::uint32_t{1} << count) - 1)) != 0) return {};
  if (padding > 0 && (digits + padding) % 4 != 0) return {};
  if (padding > 2) return {};
  return bytes;
}

}  // namespace v0_1
}  // namespace codeexec
