// Workspaces that are only in a place: how they are found, and what answers questions about files.

#include "place/copy_internal.hpp"
#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string ground_of(std::string_view workspace, const std::vector<Root>& roots) {
  std::string ground(workspace);
  for (const Root& root : roots) {
    const char permission = static_cast<char>('0' + static_cast<int>(root.permission));
    append_all(ground, {"\0"sv, std::string_view(&permission, 1), root.path});
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

void look_at_home(std::string& path) {
  const char* const home = std::getenv("HOME");
  if (home && (path == "~"sv || starts_with(path, "~/"sv))) path.replace(0, 1, home);
}

Expected<void> find_ground(std::string& ground) {
  std::string workspace;
  PathOptions options;
  options.roots = roots_in(ground, workspace);
  look_at_home(workspace);
  for (Root& root : options.roots) look_at_home(root.path);
  const auto rules = PathRules::create(options);
  if (!rules) return rules.failure();
  const auto found = PathRules().open_work_dir(workspace, {});
  if (!found) return with_prefix("workspace: ", {}, found.error());
  ground = ground_of(found->path, rules->roots());
  return {};
}

int answer_question(std::string_view ground, int in, int out) {
  const auto known = Json::parse(ground);
  if (known && known->is_array()) return serve_copy(*known, in, out);
  std::string text;
  char piece[16384];
  for (ssize_t size = 0; (size = ::read(in, piece, sizeof piece)) != 0;) {
    if (size < 0 && errno != EINTR) return 1;
    if (size > 0) text.append(piece, static_cast<std::size_t>(size));
  }
  FileMessage message;
  if (!known || !message.take(text)) return 1;
  std::string workspace;
  std::vector<Root> roots = roots_in(known->as_string(), workspace);
  Files(PathRules::of_canonical(std::move(roots)), std::move(workspace)).answer(message);
  return write_all(out, message.text()) == 0 ? 0 : 1;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
