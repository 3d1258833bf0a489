// Files of commands: links, read-only roots, the delete guard, and what earlier ones have written.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "paths/walk_internal.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A command may have put a link in place of any name below the workspace, so none is followed.
Expected<void> link_skills(const std::string& workspace, const std::string& skills_dir) {
  const std::string folder = concat("%/.agent", {workspace == "/" ? "" : workspace});
  const auto root = open_canonical_directory(workspace);
  if (root && ::mkdirat(root->get(), ".agent", 0777) != 0 && errno != EEXIST)
    return system_error(errno, "cannot make % for the skills", {in_quotes(folder)});
  const auto opened = root ? open_canonical_directory(folder) : root.error();
  int error = opened ? 0 : opened.error().system_error;
  if (opened && ::symlinkat(skills_dir.c_str(), opened->get(), "skills") != 0) {
    error = errno;
    struct stat present {};
    struct stat wanted {};
    if (error == EEXIST && ::fstatat(opened->get(), "skills", &present, 0) == 0 &&
        ::stat(skills_dir.c_str(), &wanted) == 0 && present.st_dev == wanted.st_dev &&
        present.st_ino == wanted.st_ino)
      error = 0;
  }
  if (error == 0) return {};
  return system_error(error, "cannot link the skills as %", {in_quotes(folder + "/skills")});
}

}  // namespace inner

namespace {

std::string home_of_user(std::string_view name) {
  for (const SystemUser& user : system_users("/etc/passwd"))
    if (user.name == name) return user.home;
  return {};
}

// The path of an access as the shell will have it: absolute, with `~` replaced.
Expected<std::string> spelled_out(const FileAccess& access, std::string_view work_dir,
                                  FunctionRef<std::string()> own_home) {
  const std::string_view path = access.path;
  if (starts_with(path, "/"sv)) return access.path;
  if (!starts_with(path, "~"sv)) return concat({work_dir == "/"sv ? "" : work_dir, "/"sv, path});
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view user = path.substr(1, end - 1);
  const std::string home = user.empty() ? own_home() : home_of_user(user);
  if (starts_with(home, "/"sv)) return concat({home, path.substr(end)});
  return make_error(ErrorCode::not_found, "that home directory is not known here");
}

// Links are followed here, because the policy does not look at the disk. A deletion removes the
// entry of a directory and not the target of its link.
Expected<Target> find_target(const FileAccess& access, std::string_view work_dir,
                             FunctionRef<std::string()> own_home, WalkBudget& budget) {
  auto path = spelled_out(access, work_dir, own_home);
  if (!path) return path.failure();
  Target target;
  target.access = &access;
  std::vector<std::string> files;
  if (access.glob && has_glob(*path)) {
    auto directory =
        canonical_path(path->substr(0, path->rfind('/', path->find_first_of("*?[")) + 1));
    if (!directory) return directory.failure();
    target.directory = std::move(*directory);
    auto found = expand_glob(*path, budget);
    if (!found) return found.failure();
    files = std::move(*found);
  }
  // A pattern without a match means itself.
  if (files.empty()) files.push_back(std::move(*path));
  for (const std::string& file : files) {
    auto resolved =
        access.kind == FileAccess::Kind::remove ? canonical_entry(file) : canonical_path(file);
    if (!resolved) return resolved.failure();
    target.files.push_back(std::move(*resolved));
  }
  return target;
}

// The read-only path that a change to a canonical path would change: the path itself, or a
// read-only root below it. Empty when there is none. `around`: the change includes everything below
// the path.
std::string protected_place(const PathRules& paths, const std::string& path, bool around) {
  const Root* root = paths.deepest_root(path);
  if (root && root->permission != Permission::write) return path;
  if (!around) return {};
  for (const Root& below : paths.roots())
    if (below.permission != Permission::write && codeexec::is_within(below.path, path))
      return below.path;
  return {};
}

// Of the clock that the kernel dates files by.
timespec file_time() {
  timespec now{};
#if defined(CLOCK_REALTIME_COARSE)
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
#else
  ::clock_gettime(CLOCK_REALTIME, &now);
#endif
  return now;
}

// The text of a file that a command or a tool has written, or a program that was run: one that was
// changed since this program made its first executor, and that commands may write to. Nothing for
// what a person had before, and for what is no text of at most 1 MiB.
struct WrittenFiles {
  PathRules rules;
  std::shared_ptr<const MovedDirectory> moved;
  timespec since;

  std::optional<std::string> operator()(const std::string& seen) const {
    std::string path = moved ? moved->here(seen, "/"sv) : std::string();
    if (path.empty()) path = seen;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !is_new(status)) return {};
    const auto file = canonical_path(path);
    if (!file || (rules.restricted() && rules.permission(*file) != Permission::write)) return {};
    const std::size_t slash = file->rfind('/');
    const auto folder = open_canonical_directory(file->substr(0, std::max<std::size_t>(slash, 1)));
    if (!folder) return {};
    auto text = read_regular_file(folder->get(), file->c_str() + slash + 1, longest, status);
    if (!text || !is_new(status) || has_nul(*text)) return {};
    return text;
  }

 private:
  static constexpr int longest = 1 << 20;

  bool is_new(const struct stat& status) const {
    const timespec& changed = change_time(status);
    return S_ISREG(status.st_mode) && status.st_size <= off_t{longest} &&
           (changed.tv_sec != since.tv_sec ? changed.tv_sec > since.tv_sec
                                           : changed.tv_nsec >= since.tv_nsec);
  }
};

}  // namespace

void Executor::judge_files(const PathRules& rules,
                           std::shared_ptr<const MovedDirectory> moved) const {
  static const timespec first = file_time();
  auto guard = gate_->guard->with_files(WrittenFiles{rules, std::move(moved), first});
  if (guard) gate_->guard = std::move(guard);
}

void Executor::Gate::guard_read_only(const std::list<Target>& targets, Admission& admission) const {
  for (const Target& target : targets) {
    const FileAccess& access = *target.access;
    if (access.kind == FileAccess::Kind::read) continue;
    const bool around = access.kind == FileAccess::Kind::remove || access.recursive;
    std::string place;
    if (!target.directory.empty()) place = protected_place(paths, target.directory, false);
    for (std::size_t i = 0; i < target.files.size() && place.empty(); ++i)
      place = protected_place(paths, target.files[i], around);
    if (place.empty()) continue;
    return admission.reject("read-only", "Command would modify read-only context path: %",
                            {printable(place)}, access.begin, access.end);
  }
}

void Executor::Gate::guard_deletions(const std::list<Target>& targets, Admission& admission) const {
  std::vector<std::string> files;
  // With a slash at the end, so that what lies in a directory comes right after it and need not be
  // walked again.
  std::set<std::string> trees;
  std::size_t begin = std::string::npos;
  std::size_t end = 0;
  for (const Target& target : targets) {
    const FileAccess& access = *target.access;
    if (access.kind != FileAccess::Kind::remove) continue;
    begin = std::min(begin, access.begin);
    end = std::max(end, access.end);
    for (const std::string& file : target.files) {
      struct stat status {};
      if (::lstat(file.c_str(), &status) != 0) continue;
      if (!S_ISDIR(status.st_mode))
        files.push_back(file);
      else if (access.recursive)  // an empty directory at most, otherwise
        trees.insert(concat({file, file == "/" ? "" : "/"}));
    }
  }
  Expected<void> allowed = delete_guard->can_delete_files(files);
  std::string_view walked;
  for (auto tree = trees.begin(); tree != trees.end() && allowed; ++tree) {
    if (!walked.empty() && starts_with(*tree, walked)) continue;
    walked = *tree;
    allowed = delete_guard->can_delete_directory(
        tree->substr(0, std::max<std::size_t>(tree->size() - 1, 1)));
  }
  if (!allowed) admission.reject("delete-guard", "%", {allowed.error().message}, begin, end);
}

// The last check of screen(), with read-only roots or a delete guard.
//
//   the command or a file of it             what follows                         function
//   the text cannot be read                 refused                              check_files()
//   a changed file cannot be resolved       refused                              find_target()
//   a read file cannot be resolved          passed over: it is not remembered    find_target()
//   a change in or around a read-only root  refused, rule "read-only"            guard_read_only()
//   deletes what was not read or made       refused, rule "delete-guard"         guard_deletions()
//   reads or makes a file                   remembered once the command has run  remember()
//
// This looks at the disk before the command runs, and the disk may change until then. It keeps a
// model from mistakes; only a sandbox holds a hostile command.
void Executor::Admission::check_files(const Executor& executor, const Command& command,
                                      const Judgement& judgement) {
  const Gate& gate = *executor.gate_;
  const std::string& work_dir = directory.path;
  const char* const strictest = gate.has_read_only_roots ? "read-only" : "delete-guard";
  const bool unread = !judgement.complete && !guard_of(gate)->can_read(result.command, work_dir);
  if (unread)
    return reject(strictest, "Command was not understood, so which files it changes is not known",
                  {}, 0, result.command.size());
  WalkBudget budget;
  std::list<Target> targets;
  for (const FileAccess& access : judgement.files) {
    const bool reads = access.kind == FileAccess::Kind::read;
    if (reads && !gate.delete_guard) continue;
    const auto own_home = [&] { return executor.home(command, work_dir); };
    auto target = find_target(access, work_dir, own_home, budget);
    if (!target && !reads)
      return reject(strictest, "Command would change %: %",
                    {in_quotes(access.path), target.error().message}, access.begin, access.end);
    if (target) targets.push_back(std::move(*target));
  }
  if (gate.has_read_only_roots) gate.guard_read_only(targets, *this);
  if (!admitted() || !gate.delete_guard) return;
  gate.guard_deletions(targets, *this);
  for (Target& target : targets) {
    if (target.access->kind == FileAccess::Kind::remove) continue;
    const bool reads = target.access->kind == FileAccess::Kind::read;
    std::vector<std::string>& used = reads ? ending.read_files : ending.created_files;
    for (std::string& file : target.files) used.push_back(std::move(file));
  }
}

}  // namespace v0_1
}  // namespace codeexec
