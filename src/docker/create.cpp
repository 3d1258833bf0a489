// One container: how it is made, held and set up. See container_internal.hpp for the drawing.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/identity_internal.hpp"
#include "agent/messages_internal.hpp"
#include "agent/nonce_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Reads the answer of the agent that a call starts. The result is empty until the answer is whole;
// then `answered` is cancelled. An agent that prints more than `longest` without one is not heard.
std::shared_ptr<std::optional<Json>> await_answer(ProcessOptions& call,
                                                  const CancelToken& answered) {
  constexpr std::size_t longest = std::size_t{64} << 10;
  auto answer = new_shared<std::optional<Json>>();
  call.max_output = std::size_t{16} << 10;
  call.on_output = [answered, answer, heard = std::string()](Stream stream,
                                                             std::string_view bytes) mutable {
    if (*answer || stream != Stream::out || heard.size() > longest) return;
    heard += bytes;
    *answer = answer_in(heard);
    if (*answer) answered.cancel();
  };
  return answer;
}

}  // namespace

// Tries up to three times: between a look and a `run`, another program may make a container of the
// same name, or remove the one that was found. Such a race is seen as a conflict of names.
Expected<void> Container::make(const std::optional<CancelToken>& cancel) {
  std::unique_lock<std::mutex> lock(mutex);
  const bool may_be_there = made || options.persistent;
  const bool died = holder && holder->done();
  if (died) holder.reset();
  bool replaced = in_use;
  lock.unlock();
  if (died) report(concat("the container % has ended; it is made anew", {name}));
  // Another program may make the same one, or remove it, between two looks.
  constexpr int most_tries = 3;
  for (int tries = 1;; ++tries) {
    Json found;
    if (may_be_there || tries > 1) {
      auto looked = look(cancel);
      if (!looked) return looked.failure();
      found = std::move(*looked);
    }
    if (!found.is_null()) {
      if (!is_own(found)) return foreign();
      auto reused = reuse(found, cancel);
      if (!reused) return reused.failure();
      if (*reused) return {};
      if (auto ok = check_unused(found); !ok) return ok;
      if (auto ok = clear(found["Id"sv].as_string(), cancel); !ok) return ok;
      replaced = true;
    }
    auto created = create(cancel);
    if (created && replaced)
      add_note(
          "the container was made anew: the files in /tmp and all else that was not in a "
          "folder of the host, installed packages and running programs of before are gone");
    if (created) return created;
    if (lower_cpus(created.error().message)) continue;
    const bool is_conflict = created.error().message.find("already in use") != std::string::npos;
    if (!is_conflict) discard(cancel && cancel->cancelled());
    // One that is not persistent is looked for again if an attempt of this program was cancelled:
    // the engine may carry that out between the look and this one.
    if (!is_conflict || !may_be_there || tries == most_tries) return created;
  }
}

// Fails if another program works in the container: it must not be taken away. A program that made
// it is known by the labels; one that has only found it is known by its agent, which is an exec.
Expected<void> Container::check_unused(const Json& found) const {
  const ProgramIdentity own = own_identity();
  if (label_of(found, "codeexec.pid"sv) == own.pid &&
      label_of(found, "codeexec.start"sv) == own.start)
    return {};
  if (!has_other_maker(found, own) && found["ExecIDs"sv].size() == 0) return {};
  return make_error(ErrorCode::invalid_argument,
                    "another program uses the container %, which has other options: end that "
                    "program, give both the same options, or set another agent_id or instance_id",
                    {name});
}

// An engine refuses more processors than its machine has, and says how many these are.
bool Container::lower_cpus(std::string_view refusal) {
  constexpr std::string_view words = "ange of CPUs is from 0.01 to ";
  const std::size_t at = refusal.find(words);
  if (at == std::string_view::npos) return false;
  const int most = leading_number(refusal.substr(at + words.size()), 0);
  if (!(most > 0 && most < cpus)) return false;
  cpus = most;
  report(concat("cpus: the engine's machine has %, fewer than the limit: all of them may be used",
                {most}));
  return true;
}

// Removes the container that has the name. If its removal is under way already, by the engine or by
// another program, waits for the end of that: there is no event for it, so the engine is asked
// again. One that the engine does not remove gives up its name: it would hold up the next for ever.
Expected<void> Container::clear(const std::string& id, const std::optional<CancelToken>& cancel) {
  constexpr std::chrono::milliseconds pause(100);
  const CancelToken never;
  const Clock::time_point deadline = later(Clock::now(), options.engine.call_timeout);
  for (;;) {
    auto removed = ask(words_of({"rm", "-f", id}), "remove", cancel);
    if (removed || removed.error().code == ErrorCode::not_found) return {};
    if (removed.error().message.find("already in progress") == std::string::npos ||
        Clock::now() >= deadline) {
      const std::string other = concat("%-%", {name, id.substr(0, 12)});
      if (!ask(words_of({"rename", id, other}), "rename", cancel)) return removed.failure();
      report(concat("%; it is now called %", {removed.error().message, other}));
      return {};
    }
    wait_for_event(never, cancel, later(Clock::now(), pause));
  }
}

// Takes over a container that is there: wakes, starts and prepares it as it needs. False when it
// has to be made anew: its options are others, it hangs on no input of this program, or it is in a
// state that only `rm` ends, such as dead. What its next command would miss is noted.
Expected<bool> Container::reuse(const Json& found, const std::optional<CancelToken>& cancel) {
  const ContainerInfo health = info_of(found);
  if (label_of(found, "codeexec.cfg"sv) != digits) return false;
  // After `docker restart`, a container no longer hangs on its holder and would stay for ever.
  if (!options.persistent && !(holder && health.started_at == started_at)) return false;
  if (health.status == "paused") {
    auto woken = ask(words_of({"unpause", name}), "wake", cancel);
    if (!woken) return woken.failure();
    report(concat("the container % was paused", {name}));
    return true;
  }
  if (!options.persistent) return health.running;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    started_at = health.running ? health.started_at : std::string();
  }
  if (!health.running) {
    if (health.status != "exited" && health.status != "created" && health.status != "stopped")
      return false;
    if (auto started = ask(words_of({"start", name}), "start", cancel); !started)
      return started.failure();
    report(concat("the container % was started again", {name}));
    if (health.status != "created")
      add_note(
          "the container had been stopped and was started again: the files in /tmp and "
          "running programs of before are gone");
  }
  if (auto ok = set_up(cancel); !ok) return ok.failure();
  if (auto ok = install(cancel); !ok) return ok.failure();
  return true;
}

// Pulls the image as image_policy says. Called after `run` has found no image, or before it with
// ImagePolicy::always.
Expected<void> Container::get_image(const std::optional<CancelToken>& cancel) {
  if (options.image_policy != ImagePolicy::always) {
    auto image = inspect(options.engine, "image", options.image, cancel);
    if (!image) return image.failure();
    if (!image->is_null()) return {};
    if (options.image_policy == ImagePolicy::never)
      return make_error(ErrorCode::not_found,
                        "there is no image %, and image_policy is never: build it (sh "
                        "docker/build.sh%), or pull it",
                        {options.image, options.sudo ? " --sudo" : ""});
  }
  report(concat("pulling the image %", {options.image}));
  auto pulled =
      ask_engine(options.engine, words_of({"pull", options.image}), options.engine.pull_timeout,
                 concat("pull the image %", {options.image}), cancel);
  if (pulled) return {};
  Error error = pulled.error();
  if (options.sudo && ends_with(options.image, "-sudo:latest"sv))
    error.message += ". The sudo image must be built here: sh docker/build.sh --sudo";
  return error;
}

Expected<void> Container::set_up_new(const std::optional<CancelToken>& cancel) {
  auto ok = set_up(cancel);
  if (ok) return ok;
  const auto found = look(cancel);
  if (!found || info_of(*found).running) return ok;
  const ProcessResult logged = run_process(engine_call(
      options.engine, words_of({"logs", "--tail", "5", name}), options.engine.call_timeout));
  if (!logged.succeeded() || engine_words(logged).empty()) return ok;
  return engine_error(options.engine, logged, concat("make the container %", {name}));
}

// Makes the container, lets its agent prepare it, and installs packages. On an error the container
// may be left; make() discards it.
Expected<void> Container::create(const std::optional<CancelToken>& cancel) {
  if (options.image_policy == ImagePolicy::always)
    if (auto ok = get_image(cancel); !ok) return ok;
  // Only podman is given some options in other words.
  bool asks_version = ::geteuid() != 0 || !options.cache.empty();
  for (const Mount& mount : options.mounts)
    asks_version = asks_version || mount.permission == Permission::none;
  std::string version;
  if (asks_version) {
    auto printed = ask_engine(options.engine, words_of({"version"}), options.engine.call_timeout,
                              "ask for the version"sv, cancel);
    if (!printed) return printed.failure();
    version.swap(*printed);
  }
  // A command of an earlier container may have put a link where a directory was.
  for (const Mount& mount : options.mounts) {
    const auto now = canonical_path(mount.source);
    if (!now || *now != mount.source)
      return bad_option_value("mounts"sv, mount.source, " leads elsewhere by now"sv);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    made = true;
    started_at.reset();
  }
  std::vector<std::string> words = words_of({"run", options.persistent ? "-di" : "-i"});
  if (!options.persistent) add_words(words, {"--rm"});
  add_words(words, {"--name", name});
  add_labels(words);
  const std::vector<std::string> more = configuration(version);
  words.insert(words.end(), more.begin(), more.end());
  // A persistent one is made in the background; any other lives as long as this call of `run`.
  const auto begin = [&]() -> Expected<void> {
    if (!options.persistent) return hold(words, cancel);
    auto started = ask_engine(options.engine, words, options.engine.run_timeout,
                              concat("make the container %", {name}), cancel);
    if (!started) return started.failure();
    return {};
  };
  auto begun = begin();
  // Most often the image is there: only a failure is worth a look.
  if (!begun && begun.error().message.find(no_image_help) != std::string::npos) {
    if (auto ok = get_image(cancel); !ok) return ok;
    begun = begin();
  }
  if (!begun) return begun;
  // The agent of hold() has prepared any other one already.
  if (options.persistent)
    if (auto ok = set_up_new(cancel); !ok) return ok;
  log(concat("container % made of % for %, network %",
             {name, options.image, user, network(options)}));
  return install(cancel);
}

// Starts one that lives as long as its standard input is held open, by this process. Its first
// process prepares it, where that is root's.
Expected<void> Container::hold(const std::vector<std::string>& words,
                               const std::optional<CancelToken>& cancel) {
  const std::string what = concat("make the container %", {name});
  const Nonces nonces = make_nonces();
  const CancelToken answered;
  ProcessOptions call = engine_call(options.engine, words, no_limit);
  call.input = preparation(nonces);
  call.keep_input_open = true;
  const auto answer = await_answer(call, answered);
  ProcessResult failure;
  auto started = Process::start(
      std::move(call), [answered](const ProcessResult&) { answered.cancel(); }, &failure);
  if (!started) return engine_error(options.engine, failure, what);
  const Clock::time_point begin = Clock::now();
  // An engine that answers nothing is found by a small call beside it.
  ProcessOptions small =
      engine_call(options.engine, words_of({"version"}), options.engine.call_timeout);
  small.cancel = cancel;
  const ProcessResult version = run_process(small);
  if (version.outcome == Outcome::timed_out) return engine_error(options.engine, version, what);
  if (!wait_for_event(answered, cancel, later(begin, options.engine.run_timeout))) {
    const bool cancelled = cancel && cancel->cancelled();
    failure.outcome = cancelled ? Outcome::cancelled : Outcome::timed_out;
    failure.wall_time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    return engine_error(options.engine, failure, what);
  }
  if (!*answer) return engine_error(options.engine, started->wait(), what);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    holder = std::move(*started);
  }
  return held_by_root() ? check_answer(**answer, nonces, cancel) : set_up(cancel);
}

// Asks an agent that ends after that.
Expected<Json> Container::ask_agent(std::string_view as, const Nonces& nonces,
                                    const std::optional<CancelToken>& cancel) const {
  ProcessOptions call = agent_call(as);
  call.input = preparation(nonces);
  call.timeout = options.start_timeout;
  call.cancel = cancel;
  const auto answer = await_answer(call, {});
  const ProcessResult result = run_process(call);
  if (!*answer)
    return engine_error(options.engine, result, concat("prepare the container %", {name}));
  return std::move(**answer);
}

// Compares the files of make_nonces() with those that the agent found. Root without capabilities
// may not enter a folder, and answers null for it; then an agent of the commands' user is asked.
Expected<void> Container::check_answer(const Json& answer, const Nonces& nonces,
                                       const std::optional<CancelToken>& cancel) {
  if (!answer.find("lacks")) log("not prepared: the engine runs the agent on this machine itself");
  for (const std::string& program : texts_in(answer["lacks"])) {
    add_note(
        concat("the image % has no %, which the credentials that are mounted are for: it needs an "
               "image with it",
               {options.image, printable(program)}));
    report(notes.back());
  }
  std::optional<Json> second;
  std::size_t i = 0;
  for (const Nonce& nonce : nonces) {
    const Json* seen = &answer["nonces"sv][i];
    if (seen->is_null()) {
      if (!second) {
        auto asked = ask_agent(user, nonces, cancel);
        if (!asked) return asked.failure();
        second = std::move(*asked);
      }
      seen = &(*second)["nonces"sv][i];
    }
    ++i;
    if (!seen->is_null() && seen->as_string() != nonce.content())
      return make_error(ErrorCode::invalid_argument,
                        "mounts: the engine's machine has another % than this one, and commands "
                        "would work on that. Let both see the same folder at that path, or use an "
                        "engine of this machine (docker_host, docker_context, $DOCKER_HOST)",
                        {printable(nonce.path().substr(0, nonce.path().rfind('/')))});
  }
  return {};
}

// For a container that its first process has not prepared: another agent, of root's, does it.
Expected<void> Container::set_up(const std::optional<CancelToken>& cancel) {
  const Nonces nonces = make_nonces();
  const auto answer = ask_agent("0:0"sv, nonces, cancel);
  if (!answer) return answer.failure();
  return check_answer(*answer, nonces, cancel);
}

// Installs system, Python and npm packages, in this order. A persistent container has a file that
// says that all were installed, so that it is not done again.
Expected<void> Container::install(const std::optional<CancelToken>& cancel) {
  if (!has_packages(options)) return {};
  const auto by_root = [this](const char* script) {
    return words_of({"exec", "--user", "0:0", name, "sh", "-c", script});
  };
  // A program that died while it installed must not leave a half for a whole.
  if (options.persistent && ask(by_root("[ -e /.codeexec-packages ]"), "look into", cancel))
    return {};
  struct Kind {
    const char* name;
    const char* script;
    std::vector<std::string> ContainerOptions::*packages;
  };
  constexpr Kind kinds[] = {
      {"system",
       "apt-get -q update && exec apt-get -q install -y --no-install-recommends -- \"$@\"",
       &ContainerOptions::system_packages},
      {"python", "exec python3 -m pip install -- \"$@\"", &ContainerOptions::python_packages},
      {"npm", "exec npm install -g -- \"$@\"", &ContainerOptions::npm_packages}};
  bool all = true;
  for (const Kind& kind : kinds) {
    const std::vector<std::string>& wanted = options.*kind.packages;
    if (wanted.empty()) continue;
    const auto done = install(kind.name, kind.script, wanted, cancel);
    if (!done) return done.failure();
    all = all && *done;
  }
  if (options.persistent && all) (void)ask(by_root(": >/.codeexec-packages"), "mark", cancel);
  return {};
}

// Installs as root, so that commands can use the packages and cannot change them.
Expected<bool> Container::install(const char* kind, const char* script,
                                  const std::vector<std::string>& packages,
                                  const std::optional<CancelToken>& cancel) {
  const std::string what = concat("install % packages: %", {kind, joined(packages, " "sv)});
  report(what);
  ProcessOptions call =
      engine_call(options.engine,
                  words_of({"exec", "-i", "--user", "0:0", "-e", "DEBIAN_FRONTEND=noninteractive",
                            "-e", "PIP_BREAK_SYSTEM_PACKAGES=1", "-e",
                            "PIP_ROOT_USER_ACTION=ignore", "-e", "HOME=/root"}),
                  options.package_timeout);
  // The values stand in no argv: the engine's program takes them from its own variables.
  for (const auto& [variable, value] : options.environment) {
    if (variable == "PATH" || variable == "HOME" || starts_with(variable, "DOCKER_"sv) ||
        starts_with(value, cache_folder))
      continue;
    add_words(call.argv, {"-e", variable});
    const std::string start = variable + "=";
    const std::string wanted = start + value;
    bool is_known = false;
    for (std::string& old : call.environment) {
      if (!starts_with(old, start)) continue;
      old = wanted;
      is_known = true;
    }
    if (!is_known) call.environment.push_back(wanted);
  }
  add_words(call.argv, {name, "sh", "-c", install_script, "codeexec", "sh", "-c", script, "sh"});
  call.argv.insert(call.argv.end(), packages.begin(), packages.end());
  call.keep_input_open = true;
  call.secrets = options.secrets;
  call.cancel = cancel;
  const ProcessResult result = run_process(call);
  log(utf8_suffix(result.out, 4096));
  if (result.succeeded()) return true;
  log(utf8_suffix(result.err, 4096));
  Error error = engine_error(options.engine, result, what);
  // The reason of a failure stands at the end of an installer's output.
  if (result.outcome == Outcome::exited)
    error.message =
        concat("cannot % (status %): %",
               {what, result.exit_code,
                printable(utf8_suffix(
                    without_line_ends(result.err.empty() ? result.out : result.err), 400))});
  if (options.packages_required || result.outcome == Outcome::cancelled) return error;
  report(error.message);
  add_note(std::move(error.message));
  return false;
}

}  // namespace v0_1
}  // namespace codeexec
