// Output that is no text: a line says what it is.
//
// The text of a stream has U+FFFD where its bytes were not UTF-8; kinds of files are known by what
// is left of their first bytes.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// In `begin` \xff stands for a byte that is not UTF-8.
struct FileKind {
  std::string_view begin;
  std::string_view name;
};
constexpr FileKind file_kinds[] = {
    {"\x7f\x45LF"sv, "an ELF program or library"},
    {"\x1f\xff\b"sv, "gzip data"},
    {"\xffPNG\r\n\x1a\n"sv, "a PNG image"},
    {"\xff\xff\xff\xff\0\x10JFIF\0"sv, "a JPEG image"},
    {"GIF87a"sv, "a GIF image"},
    {"GIF89a"sv, "a GIF image"},
    {"%PDF-"sv, "a PDF document"},
    {"PK\x03\x04"sv, "a zip archive"},
    {"BZh"sv, "bzip2 data"},
    {"\xff\x37zXZ\0"sv, "xz data"},
    {"(\xff/\xff"sv, "zstd data"},
    {"7z\xff\xff'\x1c"sv, "a 7z archive"},
    {"!<arch>\n"sv, "an ar archive"},
    {"SQLite format 3\0"sv, "an SQLite database"},
    {"\0asm"sv, "WebAssembly"},
    {"RIFF"sv, "RIFF data, as WAV and WebP are"},
    {"OggS"sv, "Ogg data"},
    {"ID3"sv, "MP3 audio"},
};

// What is shorter costs little, and may be a few bytes of another encoding.
constexpr std::size_t least_binary = 64;

// As many bytes as the table has, each U+FFFD as there.
std::string beginning_of(std::string_view text) {
  constexpr std::size_t longest = 16;
  std::string begin;
  while (!text.empty() && begin.size() < longest) {
    const bool is_bad = starts_with(text, replacement_character);
    begin += is_bad ? '\xff' : text[0];
    text.remove_prefix(is_bad ? replacement_character.size() : 1);
  }
  return begin;
}

// Of a text of which so many characters stand for no text; of a known kind there may be fewer, as
// such files hold names and other texts.
bool is_no_text(std::string_view text, bool is_known_kind) {
  if (text.size() < least_binary) return false;
  constexpr std::string_view usual = "\t\n\v\f\r\b\a\x1b";
  std::size_t odd = 0;
  std::size_t all = 0;
  for (std::size_t at = 0; at < text.size(); ++at, ++all) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (starts_with(text.substr(at, replacement_character.size()), replacement_character)) {
      ++odd;
      at += replacement_character.size() - 1;
    } else if (c < 0x20 && usual.find(text[at]) == std::string_view::npos) {
      ++odd;
    }
  }
  return odd * (is_known_kind ? 20 : 5) > all;
}

}  // namespace

inline namespace inner {

bool summarize_binary(std::string& text, OutputCounts& counts, std::string_view how_to_see) {
  const std::string begin = beginning_of(text);
  std::string_view what;
  for (const FileKind& kind : file_kinds)
    if (starts_with(begin, kind.begin)) what = kind.name;
  if (!is_no_text(text, !what.empty())) return false;
  if (what.empty()) what = "binary data";
  text = concat("(%, % bytes, not shown%)\n", {what, counts.total_bytes, how_to_see});
  counts.dropped_bytes = counts.total_bytes;
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
