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

// Of what may have been moved with a folder around it, and is as it was.
std::string movable_identity(std::string_view path, const LaterFile& file) {
  return concat({std::string_view(file.print), base_name(path)});
}

bool lies_below_any(const std::string& path, const std::set<std::string>& folders) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (folders.count(path.substr(0, at)) != 0) return true;
  return false;
}

class LaterKeeper {
 public:
  LaterKeeper(std::vector<std::string> folders, const LocalOptions& options)
      : folders_(std::move(folders)), open_(options.allow_later), folder_(options.put_back_dir) {
    if (folders_.size() > most_folders) folders_.resize(most_folders);
    for (const std::string& folder : folders_)
      if (codeexec::is_within(folder_, folder)) folder_.clear();
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
    explicit Comparison(const std::string& folder) : put_back(folder) {}

    LaterFiles now = {};
    std::set<std::string> searched = {};  // the folders of this look
    std::set<std::string> named = {};
    std::set<std::string> clones = {};   // folders that are new, and work trees
    std::set<std::string> removed = {};  // by the command: repositories, with all in them
    std::set<std::string> taken = {};    // out of their place, with all in them
    std::set<std::string> lost = {};     // identities of what is not where it was
    std::set<std::string> found = {};    // and of what is where nothing was
    PutBack put_back;
    LaterChanges changes = {};
  };

  void look(LaterFiles& files, std::set<std::string>& searched, std::set<std::string>& named);
  void finish(Result& result);
  void compare(Comparison& step);
  // Each returns whether a path stays as it is now, and does what is to be done otherwise.
  // `before` and `now` are null where it is in one of the two looks only.
  bool judge(Comparison& step, const std::string& path, const LaterFile* before,
             const LaterFile* now);
  bool judge_new(Comparison& step, const std::string& path, const LaterFile& now);
  bool judge_gone(Comparison& step, const std::string& path, const LaterFile& before);
  bool judge_other(Comparison& step, const std::string& path, const LaterFile& before,
                   const LaterFile& now);
  bool comes_through(Comparison& step, const std::string& path, const LaterFile& now);
  // Nothing: the file goes as others do, as there are no settings in it that may stay.
  std::optional<bool> judge_settings(Comparison& step, const std::string& path,
                                     const LaterFile* before, const LaterFile& now);
  void take_out(Comparison& step, const std::string& path);
  // False: its folder is gone, so it is as well.
  bool restore(Comparison& step, const std::string& path, const LaterFile& before);
  bool is_open(const std::string& path) const;
  bool is_new_folder(const std::string& path) const;
  bool leads_to_own(const std::string& path, const LaterFile& file) const;
  void report(const Comparison& step, Result& result) const;

  std::mutex mutex_ = {};
  std::vector<std::string> folders_;
  std::vector<std::string> open_;
  std::string folder_;
  LaterEvents events_ = {};
  LaterFiles before_ = {};
  std::set<std::string> searched_ = {};
  std::set<std::string> named_ = {};
  std::size_t running_ = 0;
  bool looked_ = false;
  bool has_to_finish_ = false;  // there was no memory for an end
};

void LaterKeeper::look(LaterFiles& files, std::set<std::string>& searched,
                       std::set<std::string>& named) {
  LaterLook now(folders_, before_, events_);
  files = std::move(now.files);
  searched = std::move(now.searched);
  named = std::move(now.named);
}

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

void LaterKeeper::begin(const std::string& work_dir) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has_to_finish_) {
    Result unused;
    finish(unused);
  }
  const bool is_new = is_new_folder(work_dir);
  if (is_new) folders_.push_back(work_dir);
  if (running_ == 0 && (events_.happened() || !looked_ || is_new)) {
    look(before_, searched_, named_);
    looked_ = true;
  } else if (is_new) {
    LaterFiles now;
    look(now, searched_, named_);
    for (auto& [path, file] : now)
      if (codeexec::is_within(path, work_dir)) before_.emplace(path, std::move(file));
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

void LaterKeeper::take_out(Comparison& step, const std::string& path) {
  std::string problem = step.put_back.take_out(path);
  if (!problem.empty()) step.changes.problems.push_back(std::move(problem));
  step.taken.insert(path);
}

bool LaterKeeper::restore(Comparison& step, const std::string& path, const LaterFile& before) {
  std::string problem;
  const bool has_folder = step.put_back.put_back(path, before, problem);
  if (!problem.empty()) step.changes.problems.push_back(std::move(problem));
  (has_folder ? step.changes.put_back : step.changes.changed).push_back(path);
  return has_folder;
}

std::optional<bool> LaterKeeper::judge_settings(Comparison& step, const std::string& path,
                                                const LaterFile* before, const LaterFile& now) {
  if (!now.is_readable() || (before && !before->is_readable())) return {};
  const bool of_submodule = path.find("/modules/") != std::string::npos;
  std::vector<std::string> names;
  LaterFile safe = now;
  std::string text =
      safe_git_settings(before ? std::string_view(*before->text) : std::string_view(), *now.text,
                        of_submodule, names);
  if (text == *now.text) return true;
  const auto left = read_git_settings(text);
  for (std::string& name : names)
    if (!is_one_of(name, step.changes.settings)) step.changes.settings.push_back(std::move(name));
  if (!before && left && left->empty()) return {};
  safe.text = new_shared<const std::string>(std::move(text));
  std::string problem = step.put_back.keep_copy(path);
  if (!problem.empty()) step.changes.problems.push_back(std::move(problem));
  restore(step, path, safe);
  return false;
}

bool LaterKeeper::leads_to_own(const std::string& path, const LaterFile& file) const {
  return file.is_readable() &&
         leads_to_own_folder(*file.text, path.substr(0, path.rfind('/')), folders_);
}

bool LaterKeeper::comes_through(Comparison& step, const std::string& path, const LaterFile& now) {
  switch (now.role) {
    case LaterRole::hooks:
      return S_ISDIR(now.mode);
    case LaterRole::repository:
      if (S_ISDIR(now.mode)) step.changes.changed.push_back(path);
      return S_ISDIR(now.mode);
    case LaterRole::git_link:
      return leads_to_own(path, now);
    case LaterRole::shared:
      return now.is_readable() && is_any(*now.text, "../..\n", "../..");
    case LaterRole::settings:
      return false;
    case LaterRole::entry:
    case LaterRole::folder:
      if (!lies_below_any(path, step.clones) || path.find("/.git/") != std::string::npos)
        return false;
      step.changes.changed.push_back(path);
      return true;
  }
  return false;
}

bool LaterKeeper::judge_new(Comparison& step, const std::string& path, const LaterFile& now) {
  // What nothing named before may have been there; what names it now is judged itself.
  if (now.is_named && named_.count(path) == 0 && !lies_below_any(path, named_)) return true;
  if (step.lost.count(movable_identity(path, now)) != 0 || comes_through(step, path, now))
    return true;
  if (now.role == LaterRole::settings)
    if (const auto stays = judge_settings(step, path, nullptr, now)) return *stays;
  take_out(step, path);
  step.changes.put_back.push_back(path);
  return false;
}

bool LaterKeeper::judge_gone(Comparison& step, const std::string& path, const LaterFile& before) {
  if (step.found.count(movable_identity(path, before)) != 0) return true;
  if (before.role != LaterRole::repository) return !restore(step, path, before);
  step.removed.insert(path);
  step.changes.changed.push_back(path);
  return true;
}

bool LaterKeeper::judge_other(Comparison& step, const std::string& path, const LaterFile& before,
                              const LaterFile& now) {
  const bool is_same_kind = (before.mode & S_IFMT) == (now.mode & S_IFMT);
  if (is_same_kind && S_ISDIR(now.mode)) return true;
  if (before.role == LaterRole::repository && S_ISDIR(before.mode)) {
    step.removed.insert(path);
    if (comes_through(step, path, now)) return true;
    take_out(step, path);
    step.changes.put_back.push_back(path);
    return false;
  }
  if (before.mode == now.mode && before.text && now.text && *before.text == *now.text) return true;
  if (now.role == LaterRole::settings)
    if (const auto stays = judge_settings(step, path, &before, now)) return *stays;
  if (S_ISREG(before.mode) && !before.text) {
    step.changes.changed.push_back(path);
    step.changes.problems.push_back(concat("% (too large to be put back)", {printable(path)}));
    return true;
  }
  take_out(step, path);
  return !restore(step, path, before);
}

bool LaterKeeper::judge(Comparison& step, const std::string& path, const LaterFile* before,
                        const LaterFile* now) {
  if (before && now && before->print == now->print) return true;
  // What nothing names any more, and what is beyond a bound now, may still be there.
  if (!now && LaterLook::is_there(path, *before)) return false;
  if (lies_below_any(path, step.removed)) return true;
  if (now && lies_below_any(path, step.taken)) return false;
  if (is_open(path)) {
    step.changes.changed.push_back(path);
    return true;
  }
  if (!before) return judge_new(step, path, *now);
  if (!now) return judge_gone(step, path, *before);
  return judge_other(step, path, *before, *now);
}

// Both looks are in the order of their paths, so one pass over both finds what differs. What stays
// is what the next command finds; of the rest, what was there before.
void LaterKeeper::compare(Comparison& step) {
  for (const auto& [path, file] : before_)
    if (step.now.count(path) == 0) step.lost.insert(movable_identity(path, file));
  for (const auto& [path, file] : step.now) {
    if (before_.count(path) != 0) continue;
    step.found.insert(movable_identity(path, file));
    const std::string tree = path.substr(0, path.rfind('/'));
    const bool is_tree =
        ends_with(path, "/.git"sv) && (S_ISDIR(file.mode) || leads_to_own(path, file));
    if (is_tree && searched_.count(tree) == 0) step.clones.insert(tree);
  }
  LaterFiles known;
  auto before = before_.begin();
  auto now = step.now.begin();
  while (before != before_.end() || now != step.now.end()) {
    const bool has_before =
        before != before_.end() && (now == step.now.end() || before->first <= now->first);
    const bool has_now =
        now != step.now.end() && (before == before_.end() || now->first <= before->first);
    const auto& path = has_before ? before->first : now->first;
    const bool stays =
        judge(step, path, has_before ? &before->second : nullptr, has_now ? &now->second : nullptr);
    if (stays ? has_now : has_before)
      known.emplace_hint(known.end(), path, stays ? now->second : before->second);
    if (has_before) ++before;
    if (has_now) ++now;
  }
  before_ = std::move(known);
  searched_ = std::move(step.searched);
  named_ = std::move(step.named);
}

std::string shortened(const std::vector<std::string>& paths) {
  constexpr std::size_t most = 10;
  std::vector<std::string> first(
      paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(paths.size(), most)));
  std::string text = joined(first, ", "sv);
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
      append_all(note, "; the command's version is in %", {step.put_back.kept_in()});
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

// What came through is what the next command finds, also while another one runs.
void LaterKeeper::end(Result& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  finish(result);
}

void LaterKeeper::finish(Result& result) {
  if (!events_.happened() && !has_to_finish_) return;
  has_to_finish_ = true;
  Comparison step(folder_);
  look(step.now, step.searched, step.named);
  compare(step);
  has_to_finish_ = false;
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
  const char* const home = std::getenv("HOME");
  return home && *home == '/' ? concat("%/.local/state/codeexec/put-back", {home}) : std::string();
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
  LocalOptions wanted;
  for (const std::string& path : options.allow_later)
    if (!is_plain_path(path))
      return make_error(ErrorCode::invalid_argument,
                        "allow_later: % is neither a path in a writable root nor an absolute one",
                        {in_quotes(path)});
  wanted.allow_later = options.allow_later;
  wanted.put_back_dir = options.put_back_dir.empty() ? default_folder() : options.put_back_dir;
  if (!wanted.put_back_dir.empty()) {
    auto path = canonical_path(wanted.put_back_dir);
    if (!path) return with_prefix("put_back_dir: ", {}, path.error());
    wanted.put_back_dir = std::move(*path);
    struct stat status {};
    if (::stat(wanted.put_back_dir.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
      return make_error(ErrorCode::invalid_argument, "put_back_dir: % is no directory",
                        {in_quotes(wanted.put_back_dir)});
  }
  auto keeper = new_shared<LaterKeeper>(std::move(folders), wanted);
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
