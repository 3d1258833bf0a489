// Containers of many agents.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

struct ContainerManager::State {
  EngineOptions engine = EngineOptions();
  std::mutex mutex = {};
  std::map<std::string, ContainerExecutor> executors = {};

  Expected<void> remove(const std::vector<Container>& gone, const std::string& log_dir);
};

ContainerManager::ContainerManager(EngineOptions engine) : state_(new_shared<State>()) {
  state_->engine = std::move(engine);
}

Expected<ContainerExecutor> ContainerManager::executor(const ContainerExecutorOptions& options) {
  ContainerExecutorOptions wanted = options;
  wanted.container.engine = state_->engine;
  auto made = ContainerExecutor::create(wanted);
  if (!made) return made.error();
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto found = state_->executors.find(options.agent_id);
  if (found == state_->executors.end()) {
    state_->executors.emplace(options.agent_id, *made);
    return made;
  }
  const ContainerOptions& old = found->second.container().options();
  const ContainerOptions& asked = made->container().options();
  const char* other = nullptr;
  if (old.image != asked.image) other = "image";
  if (network(old) != network(asked)) other = "network";
  if (found->second.workspace() != made->workspace()) other = "workspace";
  if (!other) return found->second;
  return make_error(ErrorCode::invalid_argument,
                    {"the agent ", in_quotes(options.agent_id), " has a container with another ",
                     other, ": remove that first"});
}

std::vector<std::string> ContainerManager::agents() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<std::string> agents;
  for (const auto& entry : state_->executors) agents.push_back(entry.first);
  return agents;
}

Expected<void> ContainerManager::State::remove(const std::vector<Container>& gone,
                                               const std::string& log_dir) {
  Expected<void> saved;
  for (const Container& container : gone) {
    if (log_dir.empty()) break;
    const std::string& agent = container.options().agent_id;
    std::string folder = plain_name(agent, 100);
    if (folder != agent)
      append_all(folder, {"-", std::string_view(content_digits(agent)).substr(0, 8)});
    auto ok = container.save_log(concat({log_dir, "/", folder, "/docker_container.log"}));
    if (saved && !ok) saved = ok;
  }
  auto removed = Container::remove_all(gone);
  return removed ? saved : removed;
}

Expected<void> ContainerManager::cleanup(const std::string& agent_id, const std::string& log_dir) {
  std::vector<Container> gone;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const auto found = state_->executors.find(agent_id);
    if (found == state_->executors.end()) return {};
    gone.push_back(found->second.container());
    state_->executors.erase(found);
  }
  return state_->remove(gone, log_dir);
}

Expected<void> ContainerManager::cleanup_all(const std::string& log_dir) {
  std::vector<Container> gone;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    for (const auto& entry : state_->executors) gone.push_back(entry.second.container());
    state_->executors.clear();
  }
  return state_->remove(gone, log_dir);
}

Expected<std::size_t> ContainerManager::reap_orphans() const {
  const EngineOptions& engine = state_->engine;
  if (auto ok = check_engine_options(engine); !ok) return ok.error();
  const ProgramIdentity own = own_identity();
  const std::string host = concat({"label=codeexec.host=", own.host});
  auto listed = ask_engine(engine,
                           words_of({"ps", "-a", "-q", "--no-trunc", "--filter",
                                     "label=codeexec.managed=1", "--filter", host}),
                           engine.call_timeout, "list containers");
  if (!listed) return listed.error();
  std::size_t count = 0;
  std::string_view rest = *listed;
  while (!rest.empty()) {
    const std::string id(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(id.size() + 1, rest.size()));
    const auto found = inspect(engine, "container", id);
    if (!found || found->is_null()) continue;
    const Json& container = (*found)[0];
    // One that is meant to outlive its program may go only if it never ran.
    const bool may_go = label_of(container, "codeexec.kind"sv) != "persistent" ||
                        health_of(container).status == "created";
    if (!may_go || !is_orphan(container, own)) continue;
    auto removed =
        ask_engine(engine, words_of({"rm", "-f", id}), engine.call_timeout, "remove a container");
    if (!removed) return removed.error();
    ++count;
  }
  return count;
}

}  // namespace v0_1
}  // namespace codeexec
