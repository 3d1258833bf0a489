// Workspaces that are only in a place: what answers questions about their files.

#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "files/files.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string ground_of(std::string_view workspace, const std::vector<Root>& roots) {
  std::string ground = concat({workspace, {"\0", 1}});
  for (const Root& root : roots) {
    ground += static_cast<char>(root.permission);
    ground.append(root.path.c_str(), root.path.size() + 1);
  }
  return ground;
}

std::vector<Root> roots_in(std::string_view ground, std::string& workspace) {
  std::vector<Root> roots;
  workspace = take_part(ground, '\0');
  while (!ground.empty()) {
    const auto permission = static_cast<Permission>(std::min(ground[0] & 3, 2));
    ground.remove_prefix(1);
    roots.push_back({std::string(take_part(ground, '\0')), permission});
  }
  return roots;
}

std::string at_home(std::string path) {
  const char* const home = std::getenv("HOME");
  if (home && (path == "~" || starts_with(path, "~/"))) path.replace(0, 1, home);
  return path;
}

}  // namespace inner

namespace {

void find_ground(FileMessage& message) {
  std::string workspace;
  PathOptions options;
  options.roots = roots_in(message.texts[FileMessage::place], workspace);
  for (Root& root : options.roots) root.path = at_home(root.path);
  const auto rules = PathRules::create(options);
  if (!rules) return message.fail(rules.error());
  const auto found = PathRules().open_work_dir(at_home(workspace), {});
  if (!found) return message.fail(with_prefix({"workspace: "}, found.error()));
  message.numbers[0] = 0;
  message.texts[FileMessage::place] = ground_of(found->path, rules->roots());
}

void answer_to(FileMessage& message) {
  if (message.numbers[0] == FileMessage::ground) return find_ground(message);
  std::string workspace;
  const PathRules rules =
      PathRules::of_elsewhere(roots_in(message.texts[FileMessage::place], workspace));
  if (message.numbers[0] == FileMessage::changes) return judge_changes(message, rules);
  if (message.numbers[0] != FileMessage::canonical) return Files(rules, workspace).answer(message);
  std::string& path = message.texts[FileMessage::path];
  auto found = canonical_path(path, message.texts[FileMessage::folder]);
  if (!found) return message.fail(found.error());
  message.numbers[0] = 0;
  path.swap(*found);
}

}  // namespace

inline namespace inner {

int answer_question(int in, int out) {
  std::string text;
  char piece[16384];
  for (ssize_t size = 0; (size = ::read(in, piece, sizeof piece)) != 0;) {
    if (size < 0 && errno != EINTR) return 1;
    if (size > 0) text.append(piece, static_cast<std::size_t>(size));
  }
  FileMessage message;
  if (!message.take(text)) return 1;
  answer_to(message);
  return write_all(out, message.text()) == 0 ? 0 : 1;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
