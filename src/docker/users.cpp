// Containers of users.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/command_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "files/files.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Containers of users -----------------------------------------------------------------------------
//
// Each user has one container and two executors in it:
//
//   execute_bash            -> User, with the policy   -> the user's script, by bash
//   read_file, write_file,  -> User::files_, without a -> one of the constant scripts below; what
//   artifacts, docstrings      policy                     the user gives are arguments or input
//
// The second is needed since a policy would refuse the library's own scripts. What it does is put
// on the audit log by serve(), in the words of the request, and not as the script.
//
// Files are read and written inside of the container, by programs of its image and as its user: the
// host opens no path that the user names.

constexpr const char* user_workspace = "/workspace";
constexpr std::size_t longest_text = std::size_t{1} << 20;         // that read_file returns
constexpr std::size_t longest_python_file = std::size_t{4} << 20;  // of a Python file
constexpr std::size_t longest_write = std::size_t{64} << 20;

// How the scripts below end, besides 0 and 1.
constexpr int exit_not_there = 44;
constexpr int exit_too_long = 45;

// $1 path, $2 number of the first line, $3 how many or nothing, $4 bytes at most
constexpr const char* read_script = R"sh(
[ -e "$1" ] || { echo "No such file or directory" >&2; exit 44; }
[ -f "$1" ] || { echo "Not a regular file" >&2; exit 1; }
exec <"$1" || exit 1
tail -n "+$2" | if [ "$3" ]; then head -n "$3"; else cat; fi | head -c "$4"
)sh";

// $1 path, $2 bytes that come, $3 something random. A file that is there keeps its rights.
constexpr const char* write_script = R"sh(
f=$1
if [ -L "$f" ]; then f=$(readlink -f -- "$1") || exit 1; fi
case $f in */*) d=${f%/*}/;; *) d=./;; esac
mkdir -p -- "$d" || exit 1
if [ -e "$f" ]; then
  [ -f "$f" ] || { echo "Not a regular file" >&2; exit 1; }
  [ -w "$f" ] || { echo "Permission denied" >&2; exit 1; }
fi
t=$d.codeexec-$3
trap 'rm -f -- "$t"' EXIT
[ ! -e "$f" ] || cp -p -- "$f" "$t" || exit 1
cat >"$t" || exit 1
[ "$(($(wc -c <"$t")))" -eq "$2" ] || { echo "Not all of it has come" >&2; exit 1; }
mv -f -- "$t" "$f"
)sh";

constexpr const char* list_script = R"sh(
cd /artifacts || exit 1
for f in *; do
  [ -f "$f" ] && [ ! -L "$f" ] && s=$(stat -c %s "./$f") && printf '%s/%s\0' "$s" "$f"
done
:
)sh";

// $1 name, $2 bytes at most
constexpr const char* artifact_script = R"sh(
cd /artifacts || exit 1
[ -f "$1" ] && [ ! -L "$1" ] || exit 44
s=$(stat -c %s "./$1") || exit 1
[ "$s" -le "$2" ] || { echo "$s" >&2; exit 45; }
exec cat "./$1"
)sh";

// A name without folders. Hidden files are no artifacts.
// So a name leads to no other folder than /artifacts.
bool is_artifact_name(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// "pkg.module": names of Python with dots between them.
// So it leads to no other folder than one below /tools.
bool is_module_name(std::string_view text) {
  while (true) {
    const std::size_t end = end_of_name(text, 0);
    if (end == 0 || end == text.size()) return end != 0;
    if (text[end] != '.') return false;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

// Commands start in /workspace of the container, and nothing of the host is its workspace. Where
// the gate looks at the disk of the host, it sees /tmp instead.
class UserContainers::User final : public ContainerExecutor {
 public:
  static Expected<std::shared_ptr<User>> create(const UserContainerOptions& options,
                                                const ExecutorWings& wings,
                                                const std::string& user_id);

  // Bash, if the image has one; asked for once.
  Expected<std::string> shell() const;
  // Runs one of the scripts and returns its output, at most `limit` bytes. Errors name `what`.
  Expected<std::string> fetch(const char* script, Pieces words, std::size_t limit,
                              std::string_view what, std::string_view input = {}) const;
  // The same as a request of the user: puts it on the audit log, with its success.
  Expected<std::string> serve(const char* tool, const std::string& subject, const char* script,
                              Pieces words, std::size_t limit, std::string_view what,
                              std::string_view input = {}) const;
  const std::shared_ptr<Container>& container() const { return target_->container; }

 private:
  User() = default;
  Expected<void> place(const Command& command, Admission& admission) const override {
    admission.directory.path = user_workspace;
    admission.result.work_dir = user_workspace;
    auto placed = ContainerExecutor::place(command, admission);
    // Notes for a script of ours are kept for the user's next command, which can show them.
    if (!files_)
      for (std::string& note : admission.result.notes) container()->add_note(std::move(note));
    return placed;
  }

  std::shared_ptr<const User> files_ = {};  // in the same container, without a policy
  mutable std::mutex mutex_ = {};
  mutable std::string shell_ = {};
};

struct UserContainers::State {
  State(const UserContainerOptions& given, const ExecutorWings& of) : options(given), wings(of) {}

  UserContainerOptions options;
  const ExecutorWings wings;
  std::optional<Files> tools = {};
  std::mutex mutex = {};
  std::vector<std::shared_ptr<User>> users = {};

  // Asks no engine.
  Expected<std::shared_ptr<User>> user(const std::string& user_id) {
    if (user_id.empty() || user_id.size() > 1024 || has_nul(user_id))
      return make_error(ErrorCode::invalid_argument,
                        "user_id must have 1 to 1024 bytes, and no NUL among them");
    const std::lock_guard<std::mutex> lock(mutex);
    for (const std::shared_ptr<User>& known : users)
      if (known->options().agent_id == user_id) return known;
    auto made = User::create(options, wings, user_id);
    if (made) users.push_back(*made);
    return made;
  }

  // Unless the user has another container by now.
  // Its next request makes another one.
  void forget(const std::shared_ptr<User>& user) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = find_in(users, user);
    if (found != users.end()) users.erase(found);
  }

  // Of a module below /tools, which may be written with `tools.` before it.
  Expected<std::string> source_of(const std::string& module) const {
    const Error none =
        make_error(ErrorCode::not_found, "Module % not found in /tools", {printable(module)});
    if (!tools || !is_module_name(module)) return none;
    std::string path = module;
    std::replace(path.begin(), path.end(), '.', '/');
    FileRange range;
    range.by_bytes = true;
    range.max_bytes = longest_python_file;
    for (const std::string_view skipped : {""sv, "tools/"sv}) {
      if (!starts_with(path, skipped)) continue;
      for (const char* end : {".py", "/__init__.py"}) {
        auto file = tools->read(concat({path.substr(skipped.size()), end}), range);
        if (!file && file.error().code == ErrorCode::not_found) continue;
        if (!file) return file.failure();
        if (!file->more) return std::move(file->bytes);
        return make_error(ErrorCode::limit, "Module % is too long", {module});
      }
    }
    return none;
  }
};

// Makes both executors of a user around one container. The one for files has no policy, as its
// scripts are this library's own: it is reached by fetch() alone, which no user can give a script.
Expected<std::shared_ptr<UserContainers::User>> UserContainers::User::create(
    const UserContainerOptions& options, const ExecutorWings& wings, const std::string& user_id) {
  ContainerOptions wanted = options.container;
  wanted.agent_id = user_id;
  if (auto ok = complete_options(wanted); !ok) return ok.failure();
  auto container = new_shared<Container>(std::move(wanted));
  EnvironmentOptions variables;
  variables.keep.clear();
  variables.auto_venv = false;
  variables.set = container->options.environment;
  auto environment = Environment::create(variables);
  if (!environment) return environment.failure();

  const std::shared_ptr<User> users[] = {std::shared_ptr<User>(new User),
                                         std::shared_ptr<User>(new User)};
  for (const auto& user : users) {
    const bool for_files = user == users[1];
    ExecutorOptions general;
    general.workspace = "/tmp";
    general.agent_id = user_id;
    if (!for_files) {
      general.policy = options.policy;
      general.policy.enable_sudo = true;  // chmod is harmless where no user can gain rights
      general.audit_file = options.audit_file;
      general.audit_key = options.audit_key;
      general.audit_syslog = options.audit_syslog;
      general.audit_output = options.audit_output;
      general.timeout = options.timeout;
      general.max_timeout = std::max(general.max_timeout, options.timeout);
    }
    const ExecutorWings& needed = for_files ? ExecutorWings() : wings;
    if (auto ok = user->set_up(general, needed, container->options.secrets); !ok)
      return ok.failure();
  }
  auto target = new_shared<Target>(
      std::move(container), CommandSettings(std::move(*environment), "/bin/sh", variables.set));
  for (const auto& user : users) user->target_ = target;
  users[0]->files_ = users[1];
  return users[0];
}

// The lock is held while the container is asked, so that it is asked once.
Expected<std::string> UserContainers::User::shell() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (shell_.empty()) {
    auto found = fetch("command -v bash || echo /bin/sh", {}, 4096, "find a shell");
    if (!found) return found.failure();
    shell_ = without_line_ends(*found);
  }
  return shell_;
}

// Cancels the script when its output is too long. A script ends with 44 for a file that is not
// there and with 45 for one that is too long; stderr has the reason of all other failures.
Expected<std::string> UserContainers::User::fetch(const char* script, Pieces words,
                                                  std::size_t limit, std::string_view what,
                                                  std::string_view input) const {
  for (const std::string& word : words_of(words))
    if (has_nul(word) || word.size() >= PATH_MAX)
      return make_error(ErrorCode::invalid_argument,
                        "Failed: a path has a NUL byte in it, or is longer than any may be");
  Command command = Command::program(words_of({"/bin/sh", "-c", script, "sh"}));
  add_words(command.argv, words);
  command.input = input;
  const CancelToken enough;
  command.cancel = enough;
  std::string out;
  command.on_output = [&out, &enough, limit](Stream stream, std::string_view bytes) {
    if (stream != Stream::out) return;
    out.append(bytes.substr(0, limit + 1 - std::min(limit + 1, out.size())));
    if (out.size() > limit) enough.cancel();
  };
  const Result result = (files_ ? *files_ : *this).run(command);
  const bool exited = result.outcome == Outcome::exited;
  if (out.size() > limit || (exited && result.exit_code == exit_too_long))
    return make_error(
        ErrorCode::limit, "Failed to %: it has % bytes, and % are the most",
        {what,
         exited && !result.err.empty() ? without_line_ends(result.err) : std::string_view("more"),
         limit});
  if (result.succeeded() && result.err.empty()) return out;
  const std::string reason = !exited              ? result.summary()
                             : result.err.empty() ? "No such file or directory"
                                                  : result.err;
  return make_error(
      exited && result.exit_code == exit_not_there ? ErrorCode::not_found : ErrorCode::io, "%",
      {concat("Failed to %: %", {what, printable(without_line_ends(reason))})});
}

// The record has the name of the tool and what it was asked about, as a user would look for it.
Expected<std::string> UserContainers::User::serve(const char* tool, const std::string& subject,
                                                  const char* script, Pieces words,
                                                  std::size_t limit, std::string_view what,
                                                  std::string_view input) const {
  auto done = fetch(script, words, limit, what, input);
  Result result;
  result.command = concat("% %", {tool, shell_word(subject)});
  result.work_dir = user_workspace;
  result.container = container_name();
  result.outcome = Outcome::exited;
  result.exit_code = done ? 0 : 1;
  result.message = done.error().message;
  Command asked;
  asked.caller.tool = tool;
  asked.input = input;
  record(result, asked);
  return done;
}

// Checks and completes once what all users have in common. /workspace and /artifacts are in memory,
// with bounds of their own, and go with the container; the operator's folders are read-only.
Expected<UserContainers> UserContainers::create(const UserContainerOptions& given,
                                                const ExecutorWings& wings) {
  auto state = new_shared<State>(given, wings);
  UserContainerOptions& options = state->options;
  ContainerOptions& container = options.container;
  if (container.image.empty()) container.image = "codeexec/executor:latest";
  if (container.user.empty()) container.user = "1000:1000";
  const std::pair<std::string*, const char*> folders[] = {{&options.tools_dir, "/tools"},
                                                          {&options.skills_dir, "/skills"}};
  for (const auto& [folder, target] : folders) {
    if (folder->empty()) continue;
    auto rules = PathRules::create({{*folder, Permission::read}});
    if (!rules) return with_prefix("%: ", {target}, rules.error());
    *folder = rules->roots()[0].path;
    container.mounts.push_back({*folder, target, Permission::read});
    if (folder == &options.tools_dir) state->tools.emplace(std::move(*rules), *folder);
  }
  container.scratch.push_back({user_workspace, options.workspace_size});
  container.scratch.push_back({"/artifacts", options.artifacts_size});
  // Checked and completed once, for all users.
  if (auto ok = complete_options(container); !ok) return ok.failure();
  UserContainers containers;
  containers.state_ = std::move(state);
  return containers;
}

const UserContainerOptions& UserContainers::options() const noexcept { return state_->options; }

Expected<Result> UserContainers::execute_bash(
    const std::string& user_id, const std::string& script,
    std::optional<std::chrono::milliseconds> timeout) const {
  Command command = Command::shell(script);
  command.timeout = timeout;
  return execute_bash(user_id, std::move(command));
}

// A container that cannot be had is an error here, as the caller has no other use for a Result
// without a command.
Expected<Result> UserContainers::execute_bash(const std::string& user_id, Command command) const {
  const auto user = state_->user(user_id);
  if (!user) return user.failure();
  auto shell = (*user)->shell();
  if (!shell) return shell.failure();
  command.interpreter = std::move(*shell);
  command.work_dir.clear();
  command.caller.tool = "execute_bash";
  Result result = (*user)->run(command);
  if (result.outcome == Outcome::not_started && result.step == "container")
    return make_error(ErrorCode::io, "%", {result.message});
  return result;
}

// One byte more than may be returned is asked for, which shows that there is more.
Expected<std::string> UserContainers::read_file(const std::string& user_id, const std::string& path,
                                                std::uint64_t offset,
                                                std::optional<std::uint64_t> count) const {
  const auto user = state_->user(user_id);
  if (!user) return user.failure();
  // `tail` and `head` of busybox read numbers of 32 bits.
  constexpr std::uint64_t most = 0x7ffffffe;
  return (*user)->serve(
      "read_file", path, read_script,
      {path, std::to_string(std::min(offset, most) + 1),
       count ? std::to_string(std::min(*count, most)) : "", std::to_string(longest_text + 1)},
      longest_text, concat("read file %", {printable(path)}));
}

// The content is the script's input, and its size an argument: a file that came in part is not put
// in the place of the old one.
Expected<std::uint64_t> UserContainers::write_file(const std::string& user_id,
                                                   const std::string& path,
                                                   std::string_view content) const {
  const auto user = state_->user(user_id);
  if (!user) return user.failure();
  const std::string what = concat("write file %", {printable(path)});
  if (content.size() > longest_write)
    return make_error(ErrorCode::limit, "Failed to %: more than % bytes", {what, longest_write});
  const auto written =
      (*user)->serve("write_file", path, write_script,
                     {path, std::to_string(content.size()), random_hex(8)}, 0, what, content);
  if (!written) return written.failure();
  return std::uint64_t{content.size()};
}

// A module is read here, from the folder that the operator has mounted, and a path in the
// container. The source is never run.
Expected<std::string> UserContainers::read_docstring(const std::string& user_id,
                                                     const std::string& module_or_path,
                                                     const std::string& function) const {
  const auto user = state_->user(user_id);
  if (!user) return user.failure();
  const bool is_path =
      module_or_path.find('/') != std::string::npos || ends_with(module_or_path, ".py"sv);
  const auto source =
      is_path
          ? (*user)->serve("read_docstring", module_or_path, read_script,
                           {module_or_path, "1", "", std::to_string(longest_python_file + 1)},
                           longest_python_file, concat("read file %", {printable(module_or_path)}))
          : state_->source_of(module_or_path);
  if (!source) return source.failure();
  auto docstring = python_docstring(*source, function);
  if (docstring) return docstring;
  const std::string place = concat({is_path ? "" : "module ", printable(module_or_path)});
  if (docstring.error().code == ErrorCode::not_found)
    return make_error(ErrorCode::not_found, "Function % not found in %",
                      {printable(function), place});
  return with_prefix("%: ", {place}, docstring.error());
}

// Commands of the user may have put anything there: names that no artifact has are left out.
Expected<std::vector<FileEntry>> UserContainers::list_artifacts(const std::string& user_id) const {
  const auto user = state_->user(user_id);
  if (!user) return user.failure();
  const auto list = (*user)->serve("list_artifacts", "/artifacts", list_script, {}, longest_text,
                                   "list artifacts"sv);
  if (!list) return list.failure();
  TextMap sizes;
  for (std::string_view rest = *list; !rest.empty();) {
    std::string_view name = take_part(rest, '\0');
    const std::string_view size = take_part(name, '/');
    if (is_artifact_name(name)) sizes[std::string(name)] = size;
  }
  std::vector<FileEntry> artifacts;
  for (const auto& [name, size] : sizes) {
    FileEntry& artifact = artifacts.emplace_back();
    artifact.path = name;
    artifact.size = leading_number(size, std::uint64_t{0});
  }
  return artifacts;
}

// The size is checked in the container, before anything is sent, and once more by fetch().
Expected<std::string> UserContainers::get_artifact(const std::string& user_id,
                                                   const std::string& name) const {
  if (!is_artifact_name(name))
    return make_error(ErrorCode::invalid_argument, "Invalid artifact name: %", {in_quotes(name)});
  const auto user = state_->user(user_id);
  if (!user) return user.failure();
  const std::uint64_t limit = state_->options.max_artifact;
  auto bytes =
      (*user)->serve("get_artifact", name, artifact_script, {name, std::to_string(limit)},
                     static_cast<std::size_t>(limit), concat("get artifact %", {printable(name)}));
  if (!bytes && bytes.error().code == ErrorCode::not_found)
    return make_error(ErrorCode::not_found, "Artifact not found: %", {printable(name)});
  return bytes;
}

Expected<void> UserContainers::stop(const std::string& user_id) const {
  const auto user = state_->user(user_id);
  return user ? (*user)->stop() : user.error();
}

// A container that could not be removed stays known, so that it can be tried again.
Expected<void> UserContainers::cleanup(const std::string& user_id) const {
  const auto user = state_->user(user_id);
  if (!user) return user.failure();
  if (auto ok = (*user)->remove(); !ok) return ok;
  state_->forget(*user);
  return {};
}

// All at the same time. If one cannot be removed, all stay known and can be tried again: a
// container that is gone already counts as removed then.
Expected<void> UserContainers::cleanup_all() const {
  std::vector<std::shared_ptr<User>> users;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    users = state_->users;
  }
  std::vector<Container*> containers;
  for (const auto& user : users) containers.push_back(user->container().get());
  if (auto ok = Container::remove_all(containers); !ok) return ok;
  for (const auto& user : users) state_->forget(user);
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
