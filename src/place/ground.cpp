// The workspace in a place: the agent finds it, or makes a folder for a copy, and answers questions
// about its files.

#include "place/copy_internal.hpp"
#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Makes the folder, with those around it, or takes one that is empty. None where that cannot be.
UniqueFd copy_folder_at(const std::string& path) {
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    (void)::mkdir(path.substr(0, end).c_str(), 0700);
  }
  auto found = open_canonical_directory(path);
  if (!found) return UniqueFd();
  UniqueFd folder(
      above_standard_streams(::openat(found->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0 ||
      (status.st_uid != ::geteuid() && status.st_uid != 0) ||
      ::faccessat(folder.get(), ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0 ||
      ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
    return UniqueFd();
  bool is_empty = true;
  UniqueFd listed(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listed || for_each_entry(std::move(listed), [&](const char*) { return is_empty = false; }))
    return UniqueFd();
  return is_empty ? std::move(folder) : UniqueFd();
}

}  // namespace

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
  std::vector<Root> roots = roots_in(ground, workspace);
  look_at_home(workspace);
  for (Root& root : roots) look_at_home(root.path);
  const auto rules = PathRules::create(roots);
  if (!rules) return rules.failure();
  std::string path;
  const auto found = PathRules().open_work_dir(workspace, {}, &path);
  if (!found) return with_prefix("workspace: ", {}, found.error());
  ground = ground_of(path, rules->roots());
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

Expected<std::shared_ptr<const PrivateFolder>> PrivateFolder::for_copy(std::string& workspace,
                                                                       bool is_marked) {
  if (UniqueFd same = is_marked ? copy_folder_at(workspace) : UniqueFd())
    return new_shared<const PrivateFolder>(workspace, std::move(same));
  const char* const home = std::getenv("HOME");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const auto folders =
      words_of({cache ? cache : "", concat("%/.cache", {home ? home : ""}), "/var/tmp", "/tmp"});
  SharedError problem;
  for (const std::string& folder : folders) {
    if (!starts_with(folder, "/"sv)) continue;
    auto made = create("workspace", "codeexec-copy-"sv, folder.c_str());
    if (!made) {
      problem = made.failure();
      continue;
    }
    workspace = concat("%/%", {(*made)->path(), base_name(workspace)});
    if (::mkdir(workspace.c_str(), 0700) != 0)
      return system_error(errno, "workspace: cannot make %", {in_quotes(workspace)});
    return made;
  }
  return problem;
}

}  // namespace v0_1
}  // namespace codeexec
