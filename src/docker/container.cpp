// One container: the turn, the log, and questions to the engine.
//
// take_turn() and end_turn() are a lock that can be waited for with a cancel token, and that a
// thread may hold while the engine works. `mutex` guards the members and is held for moments only.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/identity_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A container without these labels has an unknown maker.
std::optional<bool> maker_of_container(const Json& container, const ProgramIdentity& own) {
  return still_runs({label_of(container, "codeexec.host"sv), label_of(container, "codeexec.boot"sv),
                     label_of(container, "codeexec.ns"sv), label_of(container, "codeexec.pid"sv),
                     label_of(container, "codeexec.start"sv)},
                    own);
}

bool has_other_maker(const Json& container, const ProgramIdentity& own) {
  return maker_of_container(container, own) == true &&
         label_of(container, "codeexec.pid"sv) != own.pid;
}

// Two texts may come to one plain name, so that names that must differ get digits besides.
std::string plain_name(std::string_view text, std::size_t longest) {
  std::string result;
  for (const char c : text.substr(0, longest))
    result += is_plain(std::string_view(&c, 1), ""sv) || (!result.empty() && (c == '.' || c == '-'))
                  ? c
                  : '-';
  result.erase(0, std::min(result.find_first_not_of('-'), result.size()));
  return result.empty() ? "agent" : result;
}

// Files that commands make in the workspace then belong to its owner.
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

// Members that the engine does not have are empty. Null: there is no container.
ContainerInfo info_of(const Json& container) {
  const Json& state = container["State"sv];
  ContainerInfo info;
  info.id = container["Id"sv].as_string();
  info.created = container["Created"sv].as_string();
  info.exists = !container.is_null();
  info.status = state["Status"sv].as_string();
  info.running = state["Running"sv].as_bool();
  info.exit_code = static_cast<int>(state["ExitCode"sv].as_integer());
  info.error = printable(state["Error"sv].as_string());
  info.started_at = state["StartedAt"sv].as_string();
  info.finished_at = state["FinishedAt"sv].as_string();
  info.oom_killed = state["OOMKilled"sv].as_bool();
  info.pid = static_cast<int>(state["Pid"sv].as_integer());
  return info;
}

// The units of docker and podman: kB is 1000, KiB is 1024. What is no number is 0.
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

// The log masks secrets when an event comes, so that they are never kept.
Container::Container(ContainerOptions given) : ContainerPlan(std::move(given)) {
  events->redactor = Redactor(options.secrets);
}

// The engine removes it, while this waits: a program that ends at once after it must not leave one.
Container::~Container() {
  // A fork of the program has a copy of this object, and no part in the container.
  if (owner != ::getpid() || options.persistent) return;
  if (made && begin_removal()) (void)finish_removal();
}

// Needs the mutex.
bool Container::is_up() const {
  return running && (options.persistent || (holder && !holder->done()));
}

// Waits until no other thread has the turn. Each turn has a token of its own, which is cancelled at
// its end; all that wait are woken, and one of them gets the next turn.
Expected<void> Container::take_turn(const std::optional<CancelToken>& cancel) {
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

// All that wait are woken once the mutex is free, so that none of them stops at it.
void Container::end_turn(bool is_running) {
  std::unique_lock<std::mutex> lock(mutex);
  running = is_running;
  in_use = in_use || is_running;
  busy = false;
  const CancelToken ended = turn_ended;
  lock.unlock();
  ended.cancel();
}

// Asks the engine nothing: that costs the next command some milliseconds, and only that.
void Container::forget() {
  const std::lock_guard<std::mutex> lock(mutex);
  running = false;
}

// Two threads may both find that it is not up. The second waits for the turn, finds it up then, and
// asks the engine nothing.
Expected<void> Container::ensure(const std::optional<CancelToken>& cancel) {
  const auto is_known = [this] {
    const std::lock_guard<std::mutex> lock(mutex);
    return is_up();
  };
  if (is_known()) return {};
  if (auto ok = take_turn(cancel); !ok) return ok;
  Expected<void> done;
  if (!is_known()) {
    done = make(cancel);
    if (!done) report(done.error().message);
  }
  end_turn(done.has_value());
  return done;
}

// Kept until the container is made or found anew, as one that was started again has another one.
Expected<std::string> Container::incarnation(const std::optional<CancelToken>& cancel) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (started_at) return *started_at;
  }
  const auto found = look(cancel);
  if (!found) return found.failure();
  const std::lock_guard<std::mutex> lock(mutex);
  started_at = info_of(*found).started_at;
  return *started_at;
}

// An event may hold lines of a command's output, which must not look like events of ours.
void Container::Log::add(std::string_view event) {
  const std::lock_guard<std::mutex> lock(mutex);
  // Lines after the first have no time, and begin with a blank.
  std::string text = redactor.redact(event);
  std::string_view rest = text;
  std::string entry = utc_timestamp();
  do {
    append_all(entry, " %\n", {printable(take_part(rest, '\n'))});
  } while (!rest.empty());
  lines.add(entry);
}

// For the log and for the user's callback.
void Container::report(std::string_view event) {
  log(event);
  options.on_progress(events->redactor.redact(event));
}

// A bound, as results may not come for long while others use the container.
void Container::add_note(std::string note) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (notes.size() < 16) notes.push_back(std::move(note));
}

// Once: the result that takes them shows them.
std::vector<std::string> Container::take_notes() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(notes, {});
}

// Null: there is none of that name.
Expected<Json> Container::look(const std::optional<CancelToken>& cancel) const {
  auto found = inspect(options.engine, "container", name, cancel);
  if (found && !found->is_null()) return Json((*found)[0]);
  return found;
}

Json to_json(const ContainerInfo& info) {
  return Json::object({{"id", info.id},
                       {"name", info.name},
                       {"image", info.image},
                       {"created", info.created},
                       {"status", info.status},
                       {"running", info.running},
                       {"exit_code", info.exit_code},
                       {"error", info.error},
                       {"started_at", info.started_at},
                       {"finished_at", info.finished_at},
                       {"oom_killed", info.oom_killed},
                       {"pid", info.pid}});
}

// As the engine has it now; `exists` is false where there is none.
Expected<ContainerInfo> Container::info() const {
  const auto found = look();
  if (!found) return found.failure();
  ContainerInfo info = info_of(*found);
  info.name = name;
  info.image = options.image;
  return info;
}

// The engine prints amounts for people: "1.5MiB / 2GiB". They are exact to three digits.
Expected<ContainerInfo> Container::stats() const {
  auto printed = ask_engine(options.engine,
                            words_of({"stats", "--no-stream", "--format",
                                      "{{.CPUPerc}}\t{{.MemUsage}}\t{{.PIDs}}", name}),
                            options.engine.call_timeout, "measure the container");
  if (!printed) return printed.failure();
  std::string_view rest = *printed;
  const auto next = [&rest](char end) {
    const std::string_view field = rest.substr(0, rest.find(end));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    return number_with_unit(field);
  };
  ContainerInfo stats;
  stats.cpu_percent = next('\t');
  stats.memory = static_cast<std::uint64_t>(next('/'));
  stats.memory_limit = static_cast<std::uint64_t>(next('\t'));
  stats.pids = static_cast<std::uint64_t>(next('\n'));
  return stats;
}

}  // namespace v0_1
}  // namespace codeexec
