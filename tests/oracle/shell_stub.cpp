// The program `w` that the scripts of shell_differential.py call: it writes what it was called with
// to descriptor 8, in one piece. Called as `wi` it also reads its standard input to the end.
//
// A record is its length in 8 hexadecimal digits and then fields, each with a NUL behind it: the
// value of SCRIPT, the directory, the value of E1 or nothing behind a sign, the same of the input,
// and the words.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t most = 65536;
char record[most];
std::size_t size = 8;

void add(const char* text, std::size_t length) {
  if (length > most - 1 - size) std::_Exit(99);
  std::memcpy(record + size, text, length);
  size += length;
}

void add_field(const char* text) { add(text, std::strlen(text) + 1); }

void add_input() {
  add("+", 1);
  for (;;) {
    if (size >= most - 1) std::_Exit(99);
    const ssize_t got = ::read(0, record + size, most - 1 - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  add("", 1);
}

}  // namespace

int main(int argc, char** argv) {
  static char directory[4096];
  const char* const script = std::getenv("SCRIPT");
  const char* const value = std::getenv("E1");
  add_field(script ? script : "");
  add_field(::getcwd(directory, sizeof directory) ? directory : "");
  add(value ? "+" : "-", 1);
  add_field(value ? value : "");
  const char* const slash = std::strrchr(argv[0], '/');
  if (std::strcmp(slash ? slash + 1 : argv[0], "wi") == 0)
    add_input();
  else
    add_field("-");
  for (int i = 0; i < argc; ++i) add_field(argv[i]);
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08zx", size - 8);
  std::memcpy(record, digits, 8);
  // A pipe takes up to 4096 bytes (PIPE_BUF) without another writer in between.
  if (size > 4096) std::_Exit(98);
  return ::write(8, record, size) == static_cast<ssize_t>(size) ? 0 : 97;
}
