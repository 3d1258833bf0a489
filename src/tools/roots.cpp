// The roots of the client as folders of commands.
//
//   Call::roots() --the list is new--> RootChooser: each root is checked, and narrowed to what the
//        |                             operator allows
//        |                                  |
//        |                                  v
//        |                             an executor of these folders, or one of the last few
//        v                                  |
//   the ToolSet of before <---none is left--+--> its ToolSet, for this and the next calls
//
// A root is a text of a program that may be wrong or hostile: it opens nothing that --allowed-paths
// does not open, and without these no home directory and no directory of the system.

#include "mcp/mcp.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t most_client_roots = 64;
constexpr std::size_t most_told_roots = 5;  // that are ignored, by a note each
constexpr std::size_t longest_root = 3 * 4096;

// The two digits after a `%`, or -1.
int escaped_byte(std::string_view digits) {
  int byte = -1;
  if (digits.size() < 2) return byte;
  const auto end = std::from_chars(digits.data(), digits.data() + 2, byte, 16);
  return end.ptr == digits.data() + 2 ? byte : -1;
}

// The path of a file URI (RFC 8089). `#` and `?` stand for themselves, as a file has no parts.
Expected<std::string> path_of_uri(std::string_view uri) {
  const auto refuse = [](const char* why) { return make_error(ErrorCode::invalid_argument, why); };
  constexpr std::string_view scheme = "file:";
  if (uri.size() > longest_root) return refuse("it is too long");
  if (in_lower_case(uri.substr(0, scheme.size())) != scheme)
    return refuse("it is no file: URI of this machine");
  uri.remove_prefix(scheme.size());
  if (starts_with(uri, "//"sv)) {
    uri.remove_prefix(2);
    const std::string_view host = uri.substr(0, uri.find('/'));
    if (!host.empty() && in_lower_case(host) != "localhost")
      return refuse("it is on another machine");
    uri.remove_prefix(host.size());
  }
  std::string path;
  while (!uri.empty()) {
    path += take_part(uri, '%');
    if (uri.empty()) break;
    const int byte = escaped_byte(uri);
    if (byte <= 0) return refuse("it has a % without two digits, or a NUL");
    path += static_cast<char>(byte);
    uri.remove_prefix(2);
  }
  if (!starts_with(path, "/"sv)) return refuse("it has no absolute path");
  return path;
}

// The folders that a list of roots opens.
struct ChosenFolders {
  std::vector<Root> roots = {};
  std::vector<std::string> notes = {};
  std::size_t ignored = 0;

  bool has(const std::string& path) const {
    return find_where(roots, [&](const Root& root) { return root.path == path; }) != roots.end();
  }
  void add(const std::string& path, Permission permission) {
    if (!has(path)) roots.push_back({path, permission});
  }
  void ignore(std::string_view root, std::string_view why) {
    constexpr std::size_t longest = 200;
    if (++ignored <= most_told_roots)
      notes.push_back(concat("the client's root '%' is ignored: %",
                             {printable(utf8_prefix(root, longest)), printable(why)}));
  }
};

// What of one root is opened.
class RootChooser {
 public:
  RootChooser(const ServerConfig& config, const PathRules& named)
      : config_(config), named_(named) {}

  ChosenFolders choose(const Json& roots) {
    for (const Json& root : roots.items()) {
      const Json& uri = root["uri"sv];
      if (++seen_ > most_client_roots) break;
      if (const std::string problem = add(uri.as_string()); !problem.empty())
        chosen_.ignore(uri.is_string() ? uri.as_string() : root.dump(), problem);
    }
    if (chosen_.ignored > most_told_roots)
      add_note(chosen_.notes, "% more roots are ignored", {chosen_.ignored - most_told_roots});
    if (seen_ > most_client_roots)
      add_note(chosen_.notes, "of the client's roots the first % count", {most_client_roots});
    return std::move(chosen_);
  }

 private:
  bool is_confined() const { return config_.local.sandbox.mode != SandboxMode::off; }

  // Why the root is ignored, or an empty text.
  std::string add(std::string_view uri) {
    const auto given = path_of_uri(uri);
    if (!given) return given.error().message;
    const auto path = canonical_path(*given);
    if (!path) return path.error().message;
    const auto directory = open_canonical_directory(*path);
    if (!directory)
      return directory.error().system_error == ENOTDIR ? "it is not a directory"
                                                       : errno_text(directory.error().system_error);
#if CODEEXEC_HAS_SANDBOX
    // A command could have put a link there that leads to any place.
    if (is_confined())
      if (const auto grant = open_grant(*given); !grant) return grant.error().message;
#endif
    return add_directory(*path);
  }

  std::string add_directory(const std::string& path) {
    if (const Root* const around = named_.deepest_root(path)) {
      if (around->permission == Permission::none) return "it is not allowed here";
      chosen_.add(path, around->permission);
      return {};
    }
    if (config_.narrows_roots) {
      bool any = false;
      for (const Root& root : named_.roots())
        if (root.permission == Permission::write && codeexec::is_within(root.path, path)) {
          chosen_.add(root.path, root.permission);
          any = true;
        }
      return any ? "" : "it lies outside of --allowed-paths";
    }
    if (is_confined())
      if (const std::string problem = project_problem(path); !problem.empty())
        return concat("it %", {problem});
    chosen_.add(path, Permission::write);
    return {};
  }

  const ServerConfig& config_;
  const PathRules& named_;
  ChosenFolders chosen_ = {};
  std::size_t seen_ = 0;
};

}  // namespace

inline namespace inner {

ClientFolders::ClientFolders(const ServerConfig& config, ExecutorPointer first,
                             Function<Expected<void>(const Executor&)> check)
    : config_(config),
      named_(PathRules::of_canonical(first->paths().roots())),
      check_(std::move(check)),
      shared_(new_shared<SharedTools>(first, config.tools)) {
  // Of the roots of the first executor those that no option names are of the folder it starts in.
  if (!config.narrows_roots) {
    std::vector<Root> roots = named_.roots();
    const auto implied = [](const Root& root) { return root.permission == Permission::write; };
    for (auto at = roots.begin(); at != roots.end();) at = implied(*at) ? roots.erase(at) : at + 1;
    named_ = PathRules::of_canonical(std::move(roots));
  }
  PlaceNotes notes;
  notes.standing = note_of_no_project(config);
  if (config.local.sandbox.mode == SandboxMode::off && (config.use & Option::kernel))
    notes.news.emplace_back("commands are not confined: the server runs with --sandbox off");
  first_ = new_shared<ToolSet>(shared_, std::move(first), std::move(notes));
  current_ = first_;
}

std::shared_ptr<ToolSet> ClientFolders::choose(const mcp::Call& call, bool in_folder) {
  if (!in_folder || !config_.takes_roots) return current();
  constexpr std::chrono::seconds patience{2};
  const auto roots = call.roots(patience);
  if (roots) return take(*roots);
  // What is done for a client that does not ask for it any more must not be done.
  const Error& error = roots.error();
  if (call.cancel_token().cancelled()) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error.code != ErrorCode::unsupported && error.code != ErrorCode::io &&
      !std::exchange(told_silence_, true))
    current_->add_news(concat("the client has not named its roots: commands start in %",
                              {to_utf8(current_->executor.workspace())}));
  return current_;
}

std::shared_ptr<ToolSet> ClientFolders::current() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return current_;
}

std::shared_ptr<ToolSet> ClientFolders::take(const RootList& list) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (list == list_) return current_;
  const bool is_change = std::exchange(list_, list) != nullptr;
  ChosenFolders chosen = RootChooser(config_, named_).choose(*list);
  std::shared_ptr<ToolSet> next = first_;
  if (!chosen.roots.empty()) {
    auto made = set_of(chosen.roots);
    if (made)
      next = std::move(*made);
    else
      add_note(chosen.notes, "the client's roots are ignored: %",
               {printable(made.error().message)});
  }
  for (std::string& note : chosen.notes) next->add_news(std::move(note));
  if (is_change && next != current_)
    next->add_news(concat("the client's roots have changed: commands start in % now",
                          {to_utf8(next->executor.workspace())}));
  current_ = std::move(next);
  return current_;
}

// Without a sandbox and without roots that options name, commands may work anywhere, and the first
// root is where they start.
Expected<std::shared_ptr<ToolSet>> ClientFolders::set_of(const std::vector<Root>& roots) {
  LocalOptions local = config_.local;
  local.workspace = roots[0].path;
  std::string key;
  for (const Root& root : roots) append_all(key, {root.path, "\0"sv});
  const auto known = find_where(sets_, [&](const auto& entry) { return entry.first == key; });
  if (known != sets_.end()) {
    std::rotate(known, known + 1, sets_.end());
    return sets_.back().second;
  }
  if (local.sandbox.mode != SandboxMode::off || config_.narrows_roots) {
    local.roots = roots;
    for (const Root& root : named_.roots())
      if (root.permission != Permission::write &&
          find_where(roots, [&](const Root& one) { return one.path == root.path; }) == roots.end())
        local.roots.push_back(root);
  }
  auto made = LocalExecutor::create(local, config_.wings);
  if (!made) return in_our_words(made.error());
  const ExecutorPointer executor = new_shared<const LocalExecutor>(std::move(*made));
  if (auto ok = check_(*executor); !ok) return ok.failure();
  constexpr std::size_t most_sets = 4;
  if (sets_.size() == most_sets) sets_.erase(sets_.begin());
  sets_.push_back({std::move(key), new_shared<ToolSet>(shared_, executor)});
  return sets_.back().second;
}

std::string describe_folders(const ServerConfig& config, const Executor& executor) {
  std::string text;
  const auto is_missing = [&](const char* tool) { return is_disabled(config.tools, tool); };
  if (!(config.use & Option::kernel) ||
      (is_missing("execute_command") && is_missing("start_background_shell") &&
       is_missing("execute_code")))
    return text;
  if (config.local.sandbox.mode == SandboxMode::off)
    text = " Nothing confines commands: they can do all that the user can.";
  if (const std::string note = note_of_no_project(config); !note.empty())
    append_all(text, " For now %.", {note});
  if (config.takes_roots)
    append_all(text,
               " If the client names roots, these take the place of %, and commands start in the "
               "first.",
               {to_utf8(executor.workspace())});
  return text;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
