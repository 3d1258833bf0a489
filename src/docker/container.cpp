// One container: its life, its health, its log.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Maker maker_of_container(const Json& container, const ProgramIdentity& own) {
  return maker_of({label_of(container, "codeexec.host"sv), label_of(container, "codeexec.boot"sv),
                   label_of(container, "codeexec.ns"sv), label_of(container, "codeexec.pid"sv),
                   label_of(container, "codeexec.start"sv)},
                  own);
}

bool has_other_maker(const Json& container, const ProgramIdentity& own) {
  return maker_of_container(container, own) == Maker::running &&
         label_of(container, "codeexec.pid"sv) != own.pid;
}

std::string plain_name(std::string_view text, std::size_t longest) {
  std::string result;
  for (const char c : text.substr(0, longest))
    result += is_plain(std::string_view(&c, 1), ""sv) || (!result.empty() && (c == '.' || c == '-'))
                  ? c
                  : '-';
  result.erase(0, std::min(result.find_first_not_of('-'), result.size()));
  return result.empty() ? "agent" : result;
}

std::string user_of(const ContainerOptions& options) {
  if (!options.user.empty()) return options.user;
  uid_t user = ::geteuid();
  gid_t group = ::getegid();
  for (const Mount& mount : options.mounts) {
    struct stat status {};
    if (mount.permission != Permission::write || ::stat(mount.source.c_str(), &status) != 0)
      continue;
    user = status.st_uid;
    group = status.st_gid;
    break;
  }
  return concat("%:%", {user, group});
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

ContainerHealth health_of(const Json& container) {
  const Json& state = container["State"sv];
  ContainerHealth health;
  health.exists = !container.is_null();
  health.status = state["Status"sv].as_string();
  health.running = state["Running"sv].as_bool();
  health.exit_code = static_cast<int>(state["ExitCode"sv].as_integer());
  health.error = printable(state["Error"sv].as_string());
  health.started_at = state["StartedAt"sv].as_string();
  health.finished_at = state["FinishedAt"sv].as_string();
  health.oom_killed = state["OOMKilled"sv].as_bool();
  health.pid = static_cast<int>(state["Pid"sv].as_integer());
  return health;
}

double number_with_unit(std::string_view text) {
  text = text.substr(std::min(text.find_first_not_of(" /"), text.size()));
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = Json::parse(text.substr(0, end));
  double value = number ? number->as_number() : 0;
  const std::string_view unit = text.substr(end);
  const double step = unit.size() > 1 && unit[1] == 'i' ? 1024 : 1000;
  const std::size_t power =
      unit.empty() ? 0 : std::string_view("BKMGT").find(unit[0] == 'k' ? 'K' : unit[0]);
  for (std::size_t i = 0; power <= 4 && i < power; ++i) value *= step;
  constexpr double most = 1e18;
  return std::min(value, most);
}

}  // namespace inner

Container::State::State(ContainerOptions given)
    : options(std::move(given)),
      name(concat(
          "codeexec-%-%",
          {plain_name(options.agent_id, 24),
           options.persistent ? content_digits(concat({options.agent_id, std::string_view("\0", 1),
                                                       options.instance_id}))
                                    .substr(0, 8)
                              : random_hex(4)})),
      user(user_of(options)) {
  std::vector<std::string> words = configuration({});
  const PackageOptions& packages = options.packages;
  for (const auto* list : {&packages.system, &packages.python, &packages.npm}) {
    words.insert(words.end(), list->begin(), list->end());
    words.emplace_back();
  }
  words.push_back(wanted_there().dump());
  words.emplace_back(CODEEXEC_VERSION_STRING);
  digits = content_digits(joined(words, "\n"sv));
  events->redactor = Redactor(options.secrets);
}

Container::State::~State() {
  // A fork of the program has a copy of this object, and no part in the container.
  if (owner != ::getpid() || options.persistent) return;
  if (made && begin_removal()) (void)finish_removal();
}

Container::Container(ContainerOptions options) : state_(new_shared<State>(std::move(options))) {}

const ContainerOptions& Container::options() const noexcept { return state_->options; }

const std::string& Container::name() const noexcept { return state_->name; }

// Needs the mutex.
bool Container::State::is_up() const {
  return running && (options.persistent || (lifeline && !lifeline->done()));
}

Expected<void> Container::State::take_turn(const std::optional<CancelToken>& cancel) {
  std::unique_lock<std::mutex> lock(mutex);
  while (busy) {
    const CancelToken ended = turn_ended;
    lock.unlock();
    if (!wait_for_event(ended, cancel, Clock::time_point::max()))
      return make_error(ErrorCode::io, "waiting for the container %: cancelled", {name});
    lock.lock();
  }
  busy = true;
  turn_ended = CancelToken();
  return {};
}

void Container::State::end_turn(bool is_running) {
  std::unique_lock<std::mutex> lock(mutex);
  running = is_running;
  in_use = in_use || is_running;
  busy = false;
  const CancelToken ended = turn_ended;
  lock.unlock();
  ended.cancel();
}

void Container::State::forget() {
  const std::lock_guard<std::mutex> lock(mutex);
  running = false;
}

Expected<void> Container::State::ensure(const std::optional<CancelToken>& cancel) {
  const auto is_known = [this] {
    const std::lock_guard<std::mutex> lock(mutex);
    return is_up();
  };
  if (is_known()) return {};
  if (auto ok = take_turn(cancel); !ok) return ok;
  Expected<void> done;
  if (!is_known()) {
    done = make(cancel);
    if (!done) tell(done.error().message);
  }
  end_turn(done.has_value());
  return done;
}

Expected<std::string> Container::State::incarnation(const std::optional<CancelToken>& cancel) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (started_at) return *started_at;
  }
  const auto found = look(cancel);
  if (!found) return found.failure();
  const std::lock_guard<std::mutex> lock(mutex);
  started_at = health_of(*found).started_at;
  return *started_at;
}

ProcessOptions Container::State::incarnation_call() const {
  return engine_call(options.engine,
                     words_of({"container", "inspect", "--format",
                               "{{if .State.Running}}{{json .State.StartedAt}}{{end}}", name}),
                     options.engine.call_timeout);
}

void Container::State::Log::add(std::string_view event) {
  const std::lock_guard<std::mutex> lock(mutex);
  // Lines of an event after its first are indented, so that none can pass for another event.
  std::string text = redactor.redact(event);
  std::string_view rest = text;
  std::string told = utc_timestamp();
  do {
    append_all(told, " %\n", {printable(take_part(rest, '\n'))});
  } while (!rest.empty());
  lines.add(told);
}

void Container::State::tell(std::string_view event) {
  log(event);
  options.on_progress(events->redactor.redact(event));
}

void Container::State::add_note(std::string note) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (notes.size() < 16) notes.push_back(std::move(note));
}

std::vector<std::string> Container::State::take_notes() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(notes, {});
}

Expected<Json> Container::State::look(const std::optional<CancelToken>& cancel) const {
  auto found = inspect(options.engine, "container", name, cancel);
  if (found && !found->is_null()) return Json((*found)[0]);
  return found;
}

// A /tmp that is a directory of the host is left as it is.
bool Container::State::has_own_tmp() const {
  return std::none_of(options.mounts.begin(), options.mounts.end(),
                      [](const Mount& mount) { return mount.target == "/tmp"; });
}

Expected<void> Container::ensure(const std::optional<CancelToken>& cancel) const {
  return state_->ensure(cancel);
}

Expected<ContainerHealth> Container::health() const {
  auto found = state_->look();
  if (!found) return found.failure();
  return health_of(*found);
}

Json ContainerInfo::to_json() const {
  return Json::object({{"id", id},
                       {"name", name},
                       {"image", image},
                       {"created", created},
                       {"status", health.status},
                       {"running", health.running},
                       {"exit_code", health.exit_code},
                       {"error", health.error},
                       {"started_at", health.started_at},
                       {"finished_at", health.finished_at},
                       {"oom_killed", health.oom_killed},
                       {"pid", health.pid}});
}

Expected<ContainerInfo> Container::info() const {
  auto found = state_->look();
  if (!found) return found.failure();
  ContainerInfo info;
  info.id = (*found)["Id"sv].as_string();
  info.name = state_->name;
  info.image = state_->options.image;
  info.created = (*found)["Created"sv].as_string();
  info.health = health_of(*found);
  return info;
}

Expected<ContainerStats> Container::stats() const {
  auto told = ask_engine(state_->options.engine,
                         words_of({"stats", "--no-stream", "--format",
                                   "{{.CPUPerc}}\t{{.MemUsage}}\t{{.PIDs}}", state_->name}),
                         state_->options.engine.call_timeout, "measure the container");
  if (!told) return told.failure();
  std::string_view rest = *told;
  const auto next = [&rest](char end) {
    const std::string_view field = rest.substr(0, rest.find(end));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    return number_with_unit(field);
  };
  ContainerStats stats;
  stats.cpu_percent = next('\t');
  stats.memory = static_cast<std::uint64_t>(next('/'));
  stats.memory_limit = static_cast<std::uint64_t>(next('\t'));
  stats.pids = static_cast<std::uint64_t>(next('\n'));
  return stats;
}

Expected<void> Container::stop() const {
  return state_->options.persistent ? state_->stop() : remove();
}

Expected<void> Container::remove() const { return remove_all({*this}); }

Expected<void> Container::remove_all(const std::vector<Container>& containers) {
  // In one order for all callers, because each holds the turns of all.
  std::vector<State*> states;
  for (const Container& container : containers) {
    State* const state = container.state_.get();
    std::size_t at = 0;
    while (at < states.size() && std::less<State*>()(states[at], state)) ++at;
    if (at == states.size() || states[at] != state)
      states.insert(states.begin() + static_cast<std::ptrdiff_t>(at), state);
  }
  for (State* const state : states) (void)state->begin_removal();
  Expected<void> result;
  for (State* const state : states) {
    auto removed = state->finish_removal();
    if (result) result = std::move(removed);
  }
  return result;
}

Expected<void> Container::save_log(const std::string& path) const { return state_->save_log(path); }

void Container::log(std::string_view event) const { state_->log(event); }

}  // namespace v0_1
}  // namespace codeexec
