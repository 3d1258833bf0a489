// The walker: the files that a script writes.

#include "shell/files_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

const shell::Input* ShellFiles::find(const std::string& path) const {
  const auto found = files_.find(path);
  if (found != files_.end()) return &found->second.front();
  return any_.kind == shell::Input::Kind::unknown ? &any_ : nullptr;
}

bool ShellFiles::add(Texts& texts, shell::Input text, bool first) {
  bytes_ += text.text.size();
  if (bytes_ > max_bytes || texts.size() >= max_texts) text = {shell::Input::Kind::unknown};
  for (const shell::Input& other : texts)
    if (other.kind == text.kind && other.piece == text.piece && other.text == text.text)
      return false;
  text.script = false;
  texts.insert(first ? texts.begin() : texts.end(), std::move(text));
  const shell::Input* also = nullptr;
  for (auto each = texts.rbegin(); each != texts.rend(); ++each) {
    each->also = also;
    also = &*each;
  }
  return true;
}

void ShellFiles::write(const std::string& path, shell::Input text, bool append) {
  if (files_.size() == max_files && files_.find(path) == files_.end()) {
    any_.kind = shell::Input::Kind::unknown;
    return;
  }
  written_[place_of_name(path)] = true;
  Texts& texts = files_[path];
  const bool known = text.kind == shell::Input::Kind::known;
  text.added = append && texts.empty();
  const bool was_run = run_[place_of_name(path)] && known && text.text.size() > 0;
  if (!append || !known || texts.empty() || texts.front().kind != text.kind) {
    if (add(texts, std::move(text), true) && was_run) ++version_;
    return;
  }
  if (text.text.size() == 0) return;
  if (was_run) ++version_;
  shell::Input& last = texts.front();
  last.text = concat({std::string_view(last.text), std::string_view(text.text)});
  last.glob = last.glob || text.glob;
  last.home = last.home || text.home;
  bytes_ += last.text.size();
  if (bytes_ > max_bytes) last.kind = shell::Input::Kind::unknown;
  text.piece = true;
  add(texts, std::move(text), false);
}

void ShellFiles::copy(const std::string& from, const std::string& to) {
  const auto found = files_.find(from);
  if (found == files_.end() || from == to) return;
  // Writing to another file moves none of these.
  for (auto text = found->second.rbegin(); text != found->second.rend(); ++text)
    write(to, *text, false);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
