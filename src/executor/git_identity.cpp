// Settings of git: how they are read, and the name and address that commands make commits with.
//
// git is not asked: it would be a process more for each executor, and it looks around in the folder
// where it runs. Of all that stands in the files nothing but these two is used, as there may be
// tokens.
//
//   file; a later one is stronger                 when                         function
//   /etc/gitconfig                                always                       git_identity()
//   the one that GIT_CONFIG_GLOBAL names          it is set: not the next two  git_identity()
//   $XDG_CONFIG_HOME/git/config, or in ~/.config  otherwise                    git_identity()
//   ~/.gitconfig                                  otherwise                    git_identity()
//   what include.path names, in its place         at most 32 files in all      take()
//
// A file that is missing, too long or not readable counts as an empty one.

#include "executor/executor_internal.hpp"
#include "executor/git_folders_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

std::string_view host_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// Reads the value behind a `=`, and moves `at` to the end of its line.
std::string git_value_at(std::string_view text, std::size_t& at) {
  std::string value;
  std::size_t size = 0;  // without the blanks at its end
  bool quoted = false;
  bool comment = false;
  for (; at < text.size() && text[at] != '\n'; ++at) {
    char c = text[at];
    if (comment) continue;
    if (c == '\\' && at + 1 < text.size()) {
      c = text[++at];
      if (c == '\n') continue;
      value += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      size = value.size();
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '#' || c == ';')) {
      comment = true;
    } else if (quoted || (c != ' ' && c != '\t' && c != '\r')) {
      value += c;
      size = value.size();
    } else if (!value.empty()) {
      value += c;
    }
  }
  value.resize(size);
  return value;
}

}  // namespace

inline namespace inner {

// The text may be hostile: the config of a submodule lies where commands may write. A line without
// a value is passed over.
void for_each_git_setting(std::string_view text,
                          FunctionRef<void(std::string_view, const std::string&)> callback) {
  std::string section;
  for (std::size_t at = 0; at < text.size();) {
    if (" \t\r\n"sv.find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line[0] == '#' || line[0] == ';') {
      at += line.size();
    } else if (line[0] == '[') {
      const std::size_t end = std::min(line.find(']'), line.size());
      section = in_lower_case(line.substr(1, end - 1)) + '.';
      at += end + 1;
    } else {
      const std::size_t equals = std::min(line.find('='), line.size());
      const std::string_view key = line.substr(0, equals);
      at += equals + 1;
      if (equals == line.size()) continue;
      const std::string value = git_value_at(text, at);
      callback(in_lower_case(concat({section, key.substr(0, key.find_first_of(" \t"))})), value);
    }
  }
}

}  // namespace inner

namespace {

class GitConfig {
 public:
  // What later files say is stronger.
  void read(const std::string& path);
  // A file that says the same; empty unless both are known.
  std::string identity() const {
    if (name_.empty() || email_.empty()) return {};
    return concat("[user]\n\tname = %\n\temail = %\n", {name_, email_});
  }

 private:
  void take(std::string_view key, const std::string& value, const std::string& path);

  std::string name_ = {};  // both in quotes
  std::string email_ = {};
  int files_left_ = 32;  // a file may include itself
};

void GitConfig::read(const std::string& path) {
  constexpr std::size_t longest_config = std::size_t{1} << 20;
  if (files_left_-- <= 0) return;
  const auto file = read_whole_file(path, longest_config, "git's settings"sv);
  if (!file) return;
  for_each_git_setting(
      *file, [&](std::string_view key, const std::string& value) { take(key, value, path); });
}

// The value goes into another file of git's, so it is quoted; one with control characters is
// dropped.
void GitConfig::take(std::string_view key, const std::string& value, const std::string& path) {
  constexpr std::size_t longest = 256;
  if (key == "include.path"sv) {
    const bool at_home = starts_with(value, "~/"sv);
    const std::string_view folder =
        at_home ? host_variable("HOME") : std::string_view(path).substr(0, path.rfind('/'));
    return read(starts_with(value, "/"sv)
                    ? value
                    : concat({folder, at_home ? "" : "/", value.substr(at_home)}));
  }
  std::string* const place = key == "user.name"sv    ? &name_
                             : key == "user.email"sv ? &email_
                                                     : nullptr;
  if (!place || value.size() > longest) return;
  std::string quoted = "\"";
  for (const char c : value) {
    if (static_cast<unsigned char>(c) < ' ') return;
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  *place = value.empty() ? value : quoted + '"';
}

}  // namespace

inline namespace inner {

std::string git_identity() {
  const std::string_view home = host_variable("HOME");
  const std::string_view others = host_variable("XDG_CONFIG_HOME");
  GitConfig config;
  config.read("/etc/gitconfig");
  if (const std::string_view given = host_variable("GIT_CONFIG_GLOBAL"); !given.empty()) {
    config.read(std::string(given));
  } else {
    config.read(others.empty() ? concat("%/.config/git/config", {home})
                               : concat("%/git/config", {others}));
    config.read(concat("%/.gitconfig", {home}));
  }
  return config.identity();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
