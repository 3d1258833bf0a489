// The workspace in a place: the agent finds it, or makes a folder for a copy, and answers questions
// about its files.

#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "agent/agent_internal.hpp"
#include "agent/messages_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "copy/copy_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor_internal.hpp"
#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The subject that the agent's program is asked about: see answer_question().
constexpr const char* question_variable = "CODEEXEC_PLACE_QUESTION";
// The folder of the shell that has brought the agent, which begins there.
constexpr const char* start_variable = "CODEEXEC_PLACE_START";

// Puts the home of the agent's user in place of a `~` at the start.
void look_at_home(std::string& path) {
  const char* const home = std::getenv("HOME");
  if (home && (path == "~"sv || starts_with(path, "~/"sv))) path.replace(0, 1, home);
}

// Makes its paths canonical as they are on this host, so that later ones are compared with what
// they are and not with how they were written. A path that is not there is an error.
Expected<void> find_roots(std::string& root_list) {
  std::string workspace;
  std::vector<Root> roots = roots_in(root_list, workspace);
  look_at_home(workspace);
  for (Root& root : roots) look_at_home(root.path);
  const auto rules = PathRules::create(roots);
  if (!rules) return rules.failure();
  std::string path;
  const auto found = PathRules().open_work_dir(workspace, {}, &path);
  if (!found) return with_prefix("workspace: ", {}, found.error());
  root_list = root_list_of(path, rules->roots());
  return {};
}

}  // namespace

inline namespace inner {

// One question, or for a copy all of them. The rules of paths are made from the roots that were
// canonical when the agent found them, and each path is opened within these: a link that a command
// has made leads no further. What is not as a client sends it ends the program without an answer.
int answer_question(std::string_view subject, int in, int out) {
  const auto known = Json::parse(subject);
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

namespace {

class ServedWorkspace final : public AgentWorkspace {
 public:
  Expected<void> settle(const Json& hello, std::string& root_list,
                        EnvironmentOptions& variables) override;
  std::string question() const override { return concat("%=%", {question_variable, subject_}); }

 private:
  Expected<void> make_copy(bool is_marked, std::string& root_list);

  std::string subject_ = {};  // of questions: a list of roots or a copy, as JSON
  std::shared_ptr<const PrivateFolder> copy_ = {};  // what the workspace lies in
};

// In this order: the paths are found or the copy is made, then questions are about these, and a
// venv is looked up in them. An error is the answer to the hello, and its message names the option.
Expected<void> ServedWorkspace::settle(const Json& hello, std::string& root_list,
                                       EnvironmentOptions& variables) {
  const bool is_remote = hello["remote"sv].as_bool();
  if (is_remote && !hello["found"sv].as_bool())
    if (auto ok = find_roots(root_list); !ok) return ok;
  if (const Json* const copy = hello.find("copy"sv)) {
    if (auto ok = make_copy(hello["marked"sv].as_bool(), root_list); !ok) return ok;
    subject_ = copy_subject(root_list, *copy).dump();
  } else {
    subject_ = Json(root_list).dump();
  }
  if (is_remote) roots_in(root_list, variables.workspace);
  variables.venv_path = hello["venv"sv].as_string();
  look_at_home(variables.venv_path);
  return {};
}

// The workspace becomes a folder of this side, and so do the roots in it or around it.
Expected<void> ServedWorkspace::make_copy(bool is_marked, std::string& root_list) {
  std::string workspace;
  std::vector<Root> roots = roots_in(root_list, workspace);
  const std::string there = workspace;
  auto folder = folder_for_copy(workspace, is_marked);
  if (!folder) return folder.failure();
  copy_ = std::move(*folder);
  for (Root& root : roots)
    root.path = codeexec::is_within(root.path, there) ? workspace + root.path.substr(there.size())
                                                      : workspace;
  root_list = root_list_of(workspace, roots);
  return {};
}

}  // namespace

// Three programs in one, as an agent can count on its own file alone being there: what a shell has
// brought starts in the folder of that shell, a program for questions has a subject, and all else
// is the agent.
int place_main(int in, int out) {
  if (const char* const start = std::getenv(start_variable)) {
    (void)!::chdir(start);
    ::unsetenv(start_variable);
  }
  if (const char* const subject = std::getenv(question_variable))
    return answer_question(subject, in, out);
  ServedWorkspace workspace;
  return CommandAgent(in, out, &workspace).run();
}

}  // namespace v0_1
}  // namespace codeexec
