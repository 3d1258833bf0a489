// Keeps what runs later as it is, whatever commands do.
//
//   step    what is done                                            function
//   begin   looks, if something may have changed and none runs      begin()
//   end     looks again; what differs is judged and put back        end()
//
//   before  now      what becomes of it                                              function
//   -       folder   that of a repository stays; what is in it is judged by itself   judge_new()
//   -       file     settings without what starts programs; a file that leads to     judge_new()
//                    the folder of an own submodule or worktree; what a clone has in
//                    a folder of its own; others go
//   file    -        put back, unless its folder is gone, too                        judge_gone()
//   file    another  settings as above; others go, and what was there is put back    judge_other()
//
// What was there before is what no command of this executor was running for: while one runs, what
// another process changes counts as the command's. The lock is held while files are looked at, so
// that two commands that end do not put back each other's work.

#include "later/put_back_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t most_folders = 64;
constexpr std::size_t most_reported = 100;

// What a command has changed, and what became of it.
struct LaterChanges {
  std::vector<std::string> changed = {};
  std::vector<std::string> put_back = {};
  std::vector<std::string> settings = {};  // their names
  std::vector<std::string> problems = {};
};

// Of what may have been moved with the folder that it was found in, and is as it was.
std::string movable_identity(const std::string& path, const LaterFile& file) {
  return concat({std::string_view(file.print), std::string_view(path).substr(file.tree)});
}

bool lies_below_any(const std::string& path, const std::set<std::string>& folders) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (folders.count(path.substr(0, at)) != 0) return true;
  return false;
}

class LaterKeeper {
 public:
  LaterKeeper(std::vector<std::string> folders, std::vector<std::string> open, std::string kept)
      : folders_(std::move(folders)), open_(std::move(open)), kept_(std::move(kept)) {
    if (folders_.size() > most_folders) folders_.resize(most_folders);
  }

  void begin(const std::string& work_dir);
  void end(Result& result);
  // For each begin(), behind its end() or in place of that.
  void leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
  }

 private:
  // The steps of one end.
  struct Comparison {
    Comparison(const std::string& kept, const std::vector<std::string>& folders)
        : put_back(kept, folders) {}

    LaterState now = {};
    std::set<std::string> replaced = {};  // folders that are others than before
    std::set<std::string> clones = {};    // folders that are new, and work trees
    std::set<std::string> removed = {};   // by the command: repositories, with all in them
    std::set<std::string> taken = {};     // out of their place, with all in them
    std::set<std::string> lost = {};      // identities of what is not where it was
    std::set<std::string> found = {};     // and of what came with a new folder
    PutBack put_back;
    LaterChanges changes = {};
    bool has_failed = false;
    std::chrono::nanoseconds begin = thread_time();
  };

  void take(LaterState&& state);
  void finish(Result& result);
  void prepare(Comparison& step) const;
  void take_links(Comparison& step);
  void compare(Comparison& step);
  // Each returns whether a path stays as it is now, and does what is to be done otherwise.
  // `before` and `now` are null where it is in one of the two looks only.
  bool judge(Comparison& step, const std::string& path, const LaterFile* before,
             const LaterFile* now);
  bool judge_new(Comparison& step, const std::string& path, const LaterFile& now);
  bool judge_gone(Comparison& step, const std::string& path, const LaterFile& before);
  bool judge_other(Comparison& step, const std::string& path, const LaterFile& before,
                   const LaterFile& now);
  void thin_out(Comparison& step, const std::string& path, const LaterFile& now);
  bool judge_folder(Comparison& step, const std::string& path, const LaterFile& before,
                    const LaterFile& now);
  bool comes_through(Comparison& step, const std::string& path, const LaterFile& now);
  // Nothing: the file goes as others do, as there are no settings in it that may stay.
  std::optional<bool> judge_settings(Comparison& step, const std::string& path,
                                     const LaterFile* before, const LaterFile& now);
  // Each returns whether that was done.
  bool take_out(Comparison& step, const std::string& path, const LaterFile& now);
  bool restore(Comparison& step, const std::string& path, const LaterFile& before);
  bool is_open(const std::string& path) const;
  bool is_new_folder(const std::string& path) const;
  bool is_new_tree(const Comparison& step, const std::string& tree) const {
    return before_.searched.count(tree) == 0 || step.replaced.count(tree) != 0;
  }
  void report(const Comparison& step, Result& result) const;

  std::mutex mutex_ = {};
  std::vector<std::string> folders_;
  std::vector<std::string> open_;
  std::string kept_;
  LaterEvents events_ = {};
  LaterState before_ = {};
  std::set<std::string> seen_ = {};  // folders that were searched at any time
  std::size_t running_ = 0;
  bool looked_ = false;
  bool has_to_finish_ = false;  // an end was not, or could not put back all
};

// Whether what is searched below one of the folders does not reach that one.
bool LaterKeeper::is_new_folder(const std::string& path) const {
  for (const std::string& folder : folders_) {
    if (!codeexec::is_within(path, folder)) continue;
    const std::string_view below = std::string_view(path).substr(folder.size());
    if (static_cast<std::size_t>(std::count(below.begin(), below.end(), '/')) <=
        LaterLook::max_depth)
      return false;
  }
  return folders_.size() < most_folders;
}

// Folders that were searched once are no clones later on; one that is being made while other
// commands run still is.
void LaterKeeper::take(LaterState&& state) {
  before_ = std::move(state);
  if (running_ > 1 || seen_.size() > 2 * LaterLook::max_folders) return;
  for (const auto& [path, folder] : before_.searched) seen_.insert(path);
}

void LaterKeeper::begin(const std::string& work_dir) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has_to_finish_) {
    Result unused;
    finish(unused);
  }
  const bool is_new = is_new_folder(work_dir);
  if (is_new) folders_.push_back(work_dir);
  if (running_ == 0 && (events_.happened() || !looked_ || is_new)) {
    take(LaterLook(folders_, before_, events_).state);
    looked_ = true;
  } else if (is_new) {
    LaterState now = LaterLook(folders_, before_, events_).state;
    for (auto& [path, file] : now.files)
      if (codeexec::is_within(path, work_dir)) before_.files.emplace(path, std::move(file));
    for (auto& [path, folder] : now.searched)
      if (codeexec::is_within(path, work_dir)) before_.searched.emplace(path, std::move(folder));
  }
  ++running_;
}

bool LaterKeeper::is_open(const std::string& path) const {
  for (const std::string& open : open_) {
    if (open == "."sv) return true;
    if (starts_with(open, "/"sv) && codeexec::is_within(path, open)) return true;
    for (const std::string& folder : folders_)
      if (codeexec::is_within(path, concat("%/%", {folder, open}))) return true;
  }
  return false;
}

bool LaterKeeper::take_out(Comparison& step, const std::string& path, const LaterFile& now) {
  std::string problem = is_one_of(path, folders_)
                            ? concat("% is a folder of commands", {printable(path)})
                            : step.put_back.take_out(path, now.tree);
  const bool is_done = problem.empty();
  if (!is_done) step.changes.problems.push_back(std::move(problem));
  step.has_failed = step.has_failed || !is_done;
  step.taken.insert(path);
  return is_done;
}

bool LaterKeeper::restore(Comparison& step, const std::string& path, const LaterFile& before) {
  if (!S_ISDIR(before.mode) && !before.text) {
    step.changes.changed.push_back(path);
    step.changes.problems.push_back(concat("% (too large to be put back)", {printable(path)}));
    return false;
  }
  std::string problem;
  const bool has_folder = step.put_back.put_back(path, before, problem);
  if (!has_folder) {
    step.changes.changed.push_back(path);
    return false;
  }
  if (problem.empty()) {
    step.changes.put_back.push_back(path);
    return true;
  }
  step.changes.problems.push_back(std::move(problem));
  step.has_failed = true;
  return true;
}

std::optional<bool> LaterKeeper::judge_settings(Comparison& step, const std::string& path,
                                                const LaterFile* before, const LaterFile& now) {
  if (!now.is_readable() || (before && !before->is_readable())) return {};
  const auto is_safe = [&](GitPlace kind, const std::string& value) {
    return is_safe_git_place(step.now, folders_, {path, now.tree, step.begin}, kind, value);
  };
  std::vector<std::string> names;
  std::string text = safe_git_settings(
      before ? std::string_view(*before->text) : std::string_view(), *now.text, is_safe, names);
  if (text == *now.text) return true;
  for (std::string& name : names)
    if (step.changes.settings.size() < most_reported && !is_one_of(name, step.changes.settings))
      step.changes.settings.push_back(std::move(name));
  const auto left = read_git_settings(text);
  if (!before && left && left->empty()) return {};
  std::string problem = step.put_back.keep_text(path, now.tree, now);
  if (!problem.empty()) {
    step.changes.problems.push_back(std::move(problem));
    step.has_failed = true;
    return false;
  }
  LaterFile safe = now;
  safe.text = new_shared<const std::string>(std::move(text));
  const std::size_t problems = step.changes.problems.size();
  restore(step, path, safe);
  // A disk may be full. Without settings git runs nothing of them.
  if (step.changes.problems.size() != problems) take_out(step, path, now);
  return false;
}

bool LaterKeeper::comes_through(Comparison& step, const std::string& path, const LaterFile& now) {
  switch (now.role) {
    case LaterRole::hooks:
      return S_ISDIR(now.mode);
    case LaterRole::repository:
      if (S_ISDIR(now.mode)) step.changes.changed.push_back(path);
      return S_ISDIR(now.mode);
    case LaterRole::git_link:
      return leads_to_own_repository(step.now, path, now);
    case LaterRole::shared:
      return now.is_readable() && is_any(*now.text, "../..\n", "../..");
    case LaterRole::settings:
      return false;
    case LaterRole::entry:
    case LaterRole::folder:
      if (now.is_git || !lies_below_any(path, step.clones)) return false;
      step.changes.changed.push_back(path);
      return true;
  }
  return false;
}

bool LaterKeeper::judge_new(Comparison& step, const std::string& path, const LaterFile& now) {
  const bool is_moved = !now.is_named && is_new_tree(step, path.substr(0, now.tree)) &&
                        step.lost.count(movable_identity(path, now)) != 0;
  if (is_moved || comes_through(step, path, now)) return true;
  if (now.role == LaterRole::settings)
    if (const auto stays = judge_settings(step, path, nullptr, now)) return *stays;
  if (take_out(step, path, now)) step.changes.put_back.push_back(path);
  return false;
}

bool LaterKeeper::judge_gone(Comparison& step, const std::string& path, const LaterFile& before) {
  const std::string tree = path.substr(0, before.tree);
  const bool is_tree_gone = step.now.searched.count(tree) == 0 || step.replaced.count(tree) != 0;
  if (is_tree_gone && step.found.count(movable_identity(path, before)) != 0) return true;
  if (before.role != LaterRole::repository) return !restore(step, path, before);
  step.removed.insert(path);
  step.changes.changed.push_back(path);
  return true;
}

// Of a folder with too many entries, those that were not there before: they go one by one, as what
// was there may be hidden from commands, or too large to be put back.
void LaterKeeper::thin_out(Comparison& step, const std::string& path, const LaterFile& now) {
  constexpr std::size_t most = 20'000;
  std::vector<std::string> names;
  UniqueFd fd = open_later_folder(path, folders_);
  if (!fd) return;
  for_each_entry(std::move(fd), [&names](const char* name) {
    names.emplace_back(name);
    return names.size() < most;
  });
  step.changes.put_back.push_back(path);
  for (const std::string& name : names) {
    const std::string whole = concat("%/%", {path, name});
    if (before_.files.count(whole) == 0 && !ends_with(name, ".sample"sv) && name != "worktrees")
      take_out(step, whole, now);
  }
}

// Its rights count, too: hooks in a folder that cannot be entered do not run.
bool LaterKeeper::judge_folder(Comparison& step, const std::string& path, const LaterFile& before,
                               const LaterFile& now) {
  if (step.now.overfull.count(path) != 0 && before_.overfull.count(path) == 0)
    thin_out(step, path, now);
  return before.mode == now.mode || !restore(step, path, before);
}

bool LaterKeeper::judge_other(Comparison& step, const std::string& path, const LaterFile& before,
                              const LaterFile& now) {
  if (S_ISDIR(before.mode) && S_ISDIR(now.mode)) return judge_folder(step, path, before, now);
  if (before.mode == now.mode && before.text && now.text && *before.text == *now.text) return true;
  if (now.role == LaterRole::settings)
    if (const auto stays = judge_settings(step, path, &before, now)) return *stays;
  const bool was_repository = before.role == LaterRole::repository && S_ISDIR(before.mode);
  if (was_repository) step.removed.insert(path);
  if ((was_repository || before.role == LaterRole::git_link) && comes_through(step, path, now))
    return true;
  if (S_ISREG(before.mode) && !before.text) return !restore(step, path, before);
  if (!take_out(step, path, now)) return false;
  if (!was_repository) return !restore(step, path, before);
  step.changes.put_back.push_back(path);
  return false;
}

bool LaterKeeper::judge(Comparison& step, const std::string& path, const LaterFile* before,
                        const LaterFile* now) {
  const LaterFile& one = before ? *before : *now;
  const bool is_replaced = !step.replaced.empty() &&
                           (step.replaced.count(path) != 0 || lies_below_any(path, step.replaced));
  if (is_replaced && !one.is_named) before = nullptr;
  if (!before && !now) return true;
  const bool is_same = before && now && before->print == now->print;
  const bool leads_away = is_same && now->role == LaterRole::git_link &&
                          leads_to_own_repository(before_, path, *before) &&
                          !leads_to_own_repository(step.now, path, *now);
  const bool is_overfull = is_same && step.now.overfull.count(path) != 0;
  if (is_same && !leads_away && !is_overfull && step.taken.empty()) return true;
  if (lies_below_any(path, step.removed)) return true;
  if (!before && step.taken.count(path) != 0) return false;
  if (lies_below_any(path, step.taken)) {
    if (!before) return false;
    return !restore(step, path, *before);
  }
  if (is_same && !leads_away && !is_overfull) return true;
  // What nothing names any more, and what is beyond a bound now, may still be there.
  if (!now && LaterLook::is_there(path, *before)) return false;
  // What nothing named before may have been there; what names it now is judged itself.
  const bool is_named_first = !before && now->is_named && before_.named.count(path) == 0 &&
                              !lies_below_any(path, before_.named);
  if (is_named_first) return true;
  if (is_open(path)) {
    step.changes.changed.push_back(path);
    return true;
  }
  if (leads_away) {
    if (take_out(step, path, *now)) step.changes.put_back.push_back(path);
    return false;
  }
  if (!before) return judge_new(step, path, *now);
  if (!now) return judge_gone(step, path, *before);
  return judge_other(step, path, *before, *now);
}

// Which folders are others than before, and what was moved with one.
void LaterKeeper::prepare(Comparison& step) const {
  for (const auto& [path, folder] : step.now.searched) {
    const auto known = before_.searched.find(path);
    // What runs later as a whole is judged by its path, whatever folder it is.
    if (known != before_.searched.end() && folder.depth > 0 && before_.files.count(path) == 0 &&
        known->second.identity != folder.identity)
      step.replaced.insert(path);
  }
  for (const auto& [path, file] : before_.files)
    if (step.now.files.count(path) == 0 || lies_below_any(path, step.replaced))
      step.lost.insert(movable_identity(path, file));
  for (const auto& [path, file] : step.now.files) {
    const std::string tree = path.substr(0, file.tree);
    if (file.is_named || !is_new_tree(step, tree)) continue;
    step.found.insert(movable_identity(path, file));
    const bool is_tree =
        ends_with(path, "/.git"sv) && path.size() == file.tree + 5 &&
        (step.now.repositories.count(path) != 0 || leads_to_own_repository(step.now, path, file));
    if (is_tree && (seen_.count(tree) == 0 || step.replaced.count(tree) != 0))
      step.clones.insert(tree);
  }
}

// A folder that has become a link to a deeper one would no longer be searched.
void LaterKeeper::take_links(Comparison& step) {
  for (const auto& [path, folder] : before_.searched) {
    struct stat status {};
    if (step.now.searched.count(path) != 0 || ::lstat(path.c_str(), &status) != 0 ||
        !S_ISLNK(status.st_mode) || is_open(path))
      continue;
    const auto found = canonical_path(path);
    if (found && (!lies_in_one_of(*found, folders_) || step.now.searched.count(*found) != 0))
      continue;
    LaterFile link;
    link.tree = later_folder_of(path).size();
    if (take_out(step, path, link)) step.changes.put_back.push_back(path);
  }
}

// Both looks are in the order of their paths, so one pass over both finds what differs. What stays
// is what the next command finds; of the rest, what was there before.
void LaterKeeper::compare(Comparison& step) {
  for (auto* const paths :
       {&step.replaced, &step.clones, &step.removed, &step.taken, &step.lost, &step.found})
    paths->clear();
  prepare(step);
  take_links(step);
  LaterFiles known;
  auto before = before_.files.begin();
  auto now = step.now.files.begin();
  const auto before_end = before_.files.end();
  const auto now_end = step.now.files.end();
  while (before != before_end || now != now_end) {
    const bool has_before = before != before_end && (now == now_end || before->first <= now->first);
    const bool has_now = now != now_end && (before == before_end || now->first <= before->first);
    const auto& path = has_before ? before->first : now->first;
    const bool stays =
        judge(step, path, has_before ? &before->second : nullptr, has_now ? &now->second : nullptr);
    if (stays ? has_now : has_before)
      known.emplace_hint(known.end(), path, stays ? now->second : before->second);
    if (has_before) ++before;
    if (has_now) ++now;
  }
  step.now.files = std::move(known);
  take(std::move(step.now));
}

std::string shortened(const std::vector<std::string>& paths) {
  constexpr std::size_t most = 10;
  const std::vector<std::string> first(
      paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), most)));
  std::string text = printable(joined(first, ", "sv));
  if (paths.size() > most) append_all(text, " and % more", {paths.size() - most});
  return text;
}

void LaterKeeper::report(const Comparison& step, Result& result) const {
  const auto bounded = [](const std::vector<std::string>& paths) {
    return std::vector<std::string>(
        paths.begin(),
        paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), most_reported)));
  };
  const LaterChanges& changes = step.changes;
  result.changed_files = bounded(changes.changed);
  result.put_back = bounded(changes.put_back);
  if (!changes.changed.empty())
    add_note(
        result.notes,
        "changed during the command, and used outside of the sandbox by the user's own tools: %",
        {shortened(changes.changed)});
  if (!changes.put_back.empty()) {
    std::string note = concat("put back as it was, since the user's own tools run it later: %",
                              {shortened(changes.put_back)});
    if (!changes.settings.empty())
      append_all(note, " (settings that may start programs: %)", {shortened(changes.settings)});
    if (!step.put_back.kept_in().empty())
      append_all(note, "; the command's version is in %", {printable(step.put_back.kept_in())});
    if (!step.put_back.beside().empty())
      append_all(note, "; the command's version is %", {shortened(step.put_back.beside())});
    note +=
        "; the operator can let it through (option allow_later). Where git shows this as a change "
        "now, do not commit that";
    add_note(result.notes, "%", {note});
  }
  if (!changes.problems.empty())
    add_note(result.notes, "what runs later is not as it was: %", {shortened(changes.problems)});
}

void LaterKeeper::end(Result& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  finish(result);
}

// What could not be put back is judged again before the next command, and is not taken for the
// user's.
void LaterKeeper::finish(Result& result) {
  if (!events_.happened() && !has_to_finish_) return;
  has_to_finish_ = true;
  const std::string kept = lies_in_one_of(kept_, folders_) ? std::string() : kept_;
  Comparison step(kept, folders_);
  // What is taken out may have kept others from being seen.
  const bool was_whole = before_.is_whole;
  bool is_whole = true;
  for (int left = 4; left > 0; --left) {
    const std::size_t done = step.changes.put_back.size();
    step.now = LaterLook(folders_, before_, events_).state;
    is_whole = step.now.is_whole && step.now.overfull.size() <= before_.overfull.size();
    compare(step);
    if (is_whole || step.changes.put_back.size() == done) break;
  }
  if (was_whole && !is_whole && !before_.is_whole)
    step.changes.problems.push_back("there is more than can be looked at");
  has_to_finish_ = step.has_failed;
  report(step, result);
}

// One command between begin() and end().
struct LaterCommand {
  LaterCommand() = default;
  LaterCommand(const LaterCommand&) = delete;
  LaterCommand& operator=(const LaterCommand&) = delete;
  ~LaterCommand() {
    if (keeper) keeper->leave();
  }
  std::shared_ptr<LaterKeeper> keeper = {};
};

std::string default_folder() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state && *state == '/') return concat("%/codeexec/put-back", {state});
  // It must be there.
  const char* const home = std::getenv("HOME");
  struct stat status {};
  return home && *home == '/' && ::stat(home, &status) == 0
             ? concat("%/.local/state/codeexec/put-back", {home})
             : std::string();
}

// Relative to a root and in it, or absolute.
bool is_plain_path(std::string_view path) {
  if (path.empty() || has_nul(path)) return false;
  for (std::string_view rest = path; !rest.empty();)
    if (take_part(rest, '/') == ".."sv) return false;
  return true;
}

}  // namespace

Expected<LaterBegin> keep_later(const LocalOptions& options, std::vector<std::string> folders) {
  for (const std::string& path : options.allow_later)
    if (!is_plain_path(path))
      return make_error(ErrorCode::invalid_argument,
                        "allow_later: % is neither a path in a writable root nor an absolute one",
                        {in_quotes(path)});
  std::string kept = options.put_back_dir.empty() ? default_folder() : options.put_back_dir;
  if (!kept.empty()) {
    auto path = canonical_path(kept);
    if (!path) return with_prefix("put_back_dir: ", {}, path.error());
    kept = std::move(*path);
    struct stat status {};
    if (::stat(kept.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
      return make_error(ErrorCode::invalid_argument, "put_back_dir: % is no directory",
                        {in_quotes(kept)});
  }
  const auto keeper =
      new_shared<LaterKeeper>(std::move(folders), options.allow_later, std::move(kept));
  return LaterBegin([keeper](const std::string& work_dir) {
    const auto command = new_shared<LaterCommand>();
    keeper->begin(work_dir);
    command->keeper = keeper;
    return LaterEnd([command](Result& result) {
      LaterCommand last;
      last.keeper = std::exchange(command->keeper, nullptr);
      if (last.keeper) last.keeper->end(result);
    });
  });
}

}  // namespace v0_1
}  // namespace codeexec
