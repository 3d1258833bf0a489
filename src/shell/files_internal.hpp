// The files that a script writes, with their texts, for commands that run them.
#pragma once

#include "shell/script_internal.hpp"
#include "shell/shell_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A file has each text that the script may have given it, as no branch is certain. What is added to
// it continues the last one, and is a piece of its own besides, as what stands before it may not be
// there. Nothing is taken out again, so that a pointer to a text stays good.
//
//   echo a > f       a
//   echo b >> f      a\nb, and the piece b
//   curl x > f       a\nb, the piece b, or one that is not known
//
// At most max_files files are kept and max_bytes of text. Beyond these, a text is not known; and
// beyond the files, that of any other file.
class ShellFiles {
 public:
  bool empty() const { return files_.empty(); }
  // Another number after each known text of a file that a command may have run before.
  std::uint64_t version() const { return version_; }
  // A command runs the file that this word names.
  void note_run(std::string_view word) {
    if (!has_nul(word)) run_[place_of_name(word)] = true;
  }
  // False: the script has written no file that this path may name, wherever it leads from.
  bool may_have(std::string_view path) const {
    const std::string_view name = base_name(path);
    return written_[place_of_name(name)] || name.empty() || name == "."sv || name == ".."sv ||
           any_.kind == shell::Input::Kind::unknown;
  }
  // The texts of a file, the newest first; null: the script has not written it.
  const shell::Input* find(const std::string& path) const;
  // Gives a file a text, which may be unknown.
  void write(const std::string& path, shell::Input text, bool append);
  // Gives a file all texts that another one has.
  void copy(const std::string& from, const std::string& to);

 private:
  static constexpr std::size_t max_files = 256;
  static constexpr std::size_t max_texts = 64;  // of a file
  static constexpr std::size_t max_bytes = std::size_t{1} << 20;
  static constexpr std::size_t most_places = 4096;
  using Texts = std::list<shell::Input>;

  static std::size_t place_of_name(std::string_view path) {
    return hash_of_name(base_name(path)) % most_places;
  }
  // False: it has this text already.
  bool add(Texts& texts, shell::Input text, bool first);

  std::map<std::string, Texts, std::less<>> files_ = {};
  shell::Input any_ = {};  // once there are too many files
  std::size_t bytes_ = 0;
  std::uint64_t version_ = 0;
  std::bitset<most_places> run_ = {};
  std::bitset<most_places> written_ = {};
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
