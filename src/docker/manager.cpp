// Containers of many agents, and the list of all containers that programs of ours have made.
//
// The manager keeps the executors in the order of their agents. The lock is held for looking up and
// changing that list, never while an engine works.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/agent.hpp"
#include "agent/identity_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

struct ContainerManager::State {
  EngineOptions engine = EngineOptions();
  std::mutex mutex = {};
  std::vector<ContainerExecutor> executors = {};  // by their agents, of which each has one

  // The executor of an agent, or where it belongs: the list is in order.
  auto find(const std::string& agent) {
    return find_where(executors, [&agent](const ContainerExecutor& known) {
      return known.options().agent_id >= agent;
    });
  }
};

// All executors of a manager use this engine, whatever their options name.
ContainerManager::ContainerManager(EngineOptions engine) : state_(new_shared<State>()) {
  state_->engine = std::move(engine);
}

// An executor is made for each request, to check and complete the options; it makes no container.
// If the agent has one already, the new one is dropped.
Expected<ContainerExecutor> ContainerManager::executor(const ContainerExecutorOptions& options,
                                                       const ExecutorWings& wings) {
  ContainerExecutorOptions wanted = options;
  wanted.container.engine = state_->engine;
  auto made = ContainerExecutor::create(wanted, wings);
  if (!made) return made;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto found = state_->find(options.agent_id);
  if (found == state_->executors.end() || found->options().agent_id != options.agent_id) {
    state_->executors.insert(found, *made);
    return made;
  }
  const ContainerOptions& old = found->container_options();
  const ContainerOptions& asked = made->container_options();
  const char* other = nullptr;
  if (old.image != asked.image) other = "image";
  if (network(old) != network(asked)) other = "network";
  if (found->workspace() != made->workspace()) other = "workspace";
  if (!other) return *found;
  return make_error(ErrorCode::invalid_argument,
                    "the agent % has a container with another %: remove that first",
                    {in_quotes(options.agent_id), other});
}

// In the order of their names.
std::vector<std::string> ContainerManager::agents() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::vector<std::string> agents;
  for (const ContainerExecutor& executor : state_->executors)
    agents.push_back(executor.options().agent_id);
  return agents;
}

// Saves all logs first, then removes all containers at the same time.
Expected<void> ContainerManager::remove(const std::vector<ContainerExecutor>& gone,
                                        const std::string& log_dir) {
  Expected<void> saved;
  std::vector<Container*> containers;
  for (const ContainerExecutor& executor : gone) {
    containers.push_back(executor.target_->container.get());
    if (log_dir.empty()) continue;
    const std::string& agent = executor.options().agent_id;
    std::string folder = plain_name(agent, 100);
    if (folder != agent)
      append_all(folder, "-%", {std::string_view(content_digits(agent)).substr(0, 8)});
    auto ok = executor.save_log(concat("%/%/docker_container.log", {log_dir, folder}));
    if (saved && !ok) saved = ok;
  }
  auto removed = Container::remove_all(containers);
  return removed ? saved : removed;
}

// An agent without a container is no error: it may have been removed by the end of its work.
Expected<void> ContainerManager::cleanup(const std::string& agent_id, const std::string& log_dir) {
  std::vector<ContainerExecutor> gone;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const auto found = state_->find(agent_id);
    if (found == state_->executors.end() || found->options().agent_id != agent_id) return {};
    gone.push_back(*found);
    state_->executors.erase(found);
  }
  return remove(gone, log_dir);
}

// Takes all of them off the list first, so that who asks meanwhile gets a new container.
Expected<void> ContainerManager::cleanup_all(const std::string& log_dir) {
  std::vector<ContainerExecutor> gone;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    std::swap(gone, state_->executors);
  }
  return remove(gone, log_dir);
}

// Those of programs that were killed together with what holds their containers.
Expected<std::size_t> ContainerManager::reap_orphans() const {
  const auto places = container_places(state_->engine, true);
  if (!places) return places.failure();
  std::size_t count = 0;
  for (const FoundPlace& place : *places) count += place.was_removed ? 1 : 0;
  return count;
}

// Each container is asked for by its id: its name may be taken by another one meanwhile. One that
// goes away between the list and the question is left out.
Expected<std::vector<FoundPlace>> container_places(const EngineOptions& engine, bool remove_left) {
  if (auto ok = check_engine_options(engine); !ok) return ok.failure();
  const ProgramIdentity own = own_identity();
  auto listed = ask_engine(
      engine, words_of({"ps", "-a", "-q", "--no-trunc", "--filter", "label=codeexec.managed=1"}),
      engine.call_timeout, "list containers");
  if (!listed) return listed.failure();
  std::vector<FoundPlace> places;
  for (std::string_view rest = *listed; !rest.empty();) {
    const std::string id(take_part(rest, '\n'));
    const auto found = inspect(engine, "container", id);
    if (!found || found->is_null()) continue;
    const Json& container = (*found)[0];
    const std::string& name = container["Name"sv].as_string();
    const bool persistent = label_of(container, "codeexec.kind"sv) == "persistent";
    FoundPlace place;
    place.name = name.substr(starts_with(name, "/") ? 1 : 0);
    place.agent = label_of(container, "codeexec.user"sv);
    place.age = age_since(container["Created"sv].as_string());
    place.host = label_of(container, "codeexec.host"sv);
    place.pid = label_of(container, "codeexec.pid"sv);
    place.maker_runs = maker_of_container(container, own);
    place.state = info_of(container).status;
    // A persistent container outlives its program; it is removed only if it never ran.
    if (remove_left && place.maker_runs == false && (!persistent || place.state == "created")) {
      auto removed =
          ask_engine(engine, words_of({"rm", "-f", id}), engine.call_timeout, "remove a container");
      if (!removed) return removed.failure();
      place.was_removed = true;
    }
    if (persistent) place.state += ", persistent";
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace v0_1
}  // namespace codeexec
