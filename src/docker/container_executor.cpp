// The executor of a container.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

ContainerExecutor::Place::Execs::~Execs() {
  if (!has_thread_ || owner_ != ::getpid()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  event_.notify_all();
  ::pthread_join(thread_, nullptr);
}

bool ContainerExecutor::Place::Execs::has_lost_one() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !std::all_of(waiting_.begin(), waiting_.end(),
                      [](const std::shared_ptr<Exec>& exec) { return exec->waits(); });
}

auto ContainerExecutor::Place::Execs::take() -> std::shared_ptr<Exec> {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!waiting_.empty()) {
    std::shared_ptr<Exec> exec = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    if (exec->waits()) return exec;
  }
  return nullptr;
}

void ContainerExecutor::Place::Execs::refill(const Exec::Where& where) {
  if (size_ == 0 || owner_ != ::getpid()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_for_ = where;
    if (!has_thread_) has_thread_ = start_thread(&thread_, thread_main, this) == 0;
  }
  event_.notify_all();
}

void ContainerExecutor::Place::Execs::drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++drops_;
  asked_for_.reset();
  waiting_.clear();
}

void* ContainerExecutor::Place::Execs::thread_main(void* self) {
  static_cast<Execs*>(self)->start_those_asked_for();
  return nullptr;
}

void ContainerExecutor::Place::Execs::start_those_asked_for() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    if (!asked_for_ || waiting_.size() >= size_) {
      asked_for_.reset();
      event_.wait(lock);
      continue;
    }
    const Exec::Where where = *asked_for_;
    const std::size_t drops = drops_;
    lock.unlock();
    auto exec = Exec::start(where);
    lock.lock();
    if (!exec)
      asked_for_.reset();
    else if (drops == drops_)
      waiting_.push_back(std::move(*exec));
  }
}

Expected<ContainerExecutor> ContainerExecutor::create(const ContainerExecutorOptions& options) {
  const CancellationPause pause;
  ContainerExecutor executor;
  ExecutorOptions general = options;
  // What is not mounted is not there.
  if (general.roots.empty())
    general.roots.push_back({general.workspace.empty() ? "." : general.workspace});
  ContainerOptions wanted = options.container;
  wanted.agent_id = options.agent_id;
  for (const Root& root : general.roots) {
    auto path = canonical_path(root.path);
    if (!path) return with_prefix({"allowed_paths: "}, path.error());
    wanted.mounts.push_back({std::move(*path), {}, root.permission});
  }
  if (auto ok = complete_options(wanted); !ok) return ok.error();
  Container container(std::move(wanted));
  if (auto ok = executor.set_up(general, container.options().secrets); !ok) return ok.error();
  std::vector<std::string> writable;
  for (const Mount& mount : container.options().mounts)
    if (mount.permission == Permission::write) writable.push_back(mount.source);
  if (auto ok = check_out_of_reach(general, writable); !ok) return ok.error();

  EnvironmentOptions variables = options.environment;
  variables.keep.clear();
  variables.keep_all = false;
  variables.workspace = executor.workspace();
  variables.set = container.options().environment;
  for (const auto& variable : options.environment.set) variables.set.push_back(variable);
  auto environment = Environment::create(variables);
  if (!environment) return environment.error();
  auto place =
      std::make_shared<Place>(std::move(container), std::move(*environment), options.shell);
  place->sets_path = sets_variable(variables.set, "PATH");
  place->facts = facts_of_shell(options.shell, variables);
  // Where the home cannot be written to, /tmp can be.
  if (const std::string gitconfig = options.git_identity ? git_identity() : ""; !gitconfig.empty())
    place->set_identity =
        concat({"_g=", shell_word(gitconfig),
                " _f=$HOME/.gitconfig\n[ -e \"$_f\" ] || [ \"$GIT_CONFIG_GLOBAL\" ] || "
                "{ printf %s \"$_g\" >\"$_f\" || { _f=/tmp/.gitconfig; printf %s \"$_g\" >$_f && "
                "export GIT_CONFIG_GLOBAL=$_f; }; } 2>/dev/null\n"});
  executor.place_ = std::move(place);
  return executor;
}

const Container& ContainerExecutor::container() const noexcept { return place_->container; }

std::string ContainerExecutor::describe_place() const {
  const ContainerOptions& options = container().options();
  const bool online = network(options) != "none";
  std::vector<std::string> installed;
  for (const auto* list :
       {&options.packages.system, &options.packages.python, &options.packages.npm})
    installed.insert(installed.end(), list->begin(), list->end());
  std::string writable;
  std::string readable;
  for (const Mount& mount : options.mounts) {
    if (mount.permission == Permission::none) continue;
    std::string& list = mount.permission == Permission::write ? writable : readable;
    list += concat({list.empty() ? "" : ", ", mount.target});
  }
  std::string text = concat(
      {place_->facts, " Commands run in a Linux container of the image ", options.image, "."});
  if (starts_with(options.image, "codeexec/runtime"))
    text +=
        " It has Debian's tools, git, gh, curl, ripgrep, compilers for C and C++, Python with pip, "
        "uv, pytest, requests, numpy and pandas, and Node.js with npm.";
  if (!installed.empty())
    text += concat({" Installed when the container is made: ", joined(installed, ", "),
                    "; a result says so when one could not be had."});
  if (!online) text += " The network is switched off: nothing can be downloaded.";
  if (network(options) == "host") text += " The network is the host's.";
  if (!options.sudo)
    text += concat({" There is no sudo: ",
                    online ? "pip and npm install for you alone; for system packages " : "",
                    "ask the user for an image that has what is missing."});
  else
    text +=
        concat({" sudo needs no password",
                online ? ": `sudo apt-get install -y PACKAGE` (not brew, dnf or the like)." : "."});
  text += concat({" Files can be changed ",
                  writable.empty() ? "" : concat({"below ", writable, " and, "}),
                  "until the container goes away, in /tmp",
                  *options.read_only_root ? "; nowhere else." : " and elsewhere in it."});
  if (!readable.empty()) text += concat({" Read-only: ", readable, "."});
  return to_utf8(text);
}

Expected<void> ContainerExecutor::place(const Command& command, Admission& admission) const {
  const Container& container = place_->container;
  const std::string& work_dir = admission.directory.path;
  auto environment = place_->environment.resolve(work_dir, command.environment);
  if (!environment) return environment.error();
  admission.result.venv = environment->venv;
  if (container.options().network == ContainerNetwork::none)
    admission.ending.network = Network::none;

  // The command, as the body of a function that the script calls in a process of its own, and what
  // the script does before.
  std::string body = "_c() {\n";
  std::string prepare;
  const bool sets_path = place_->sets_path || sets_variable(command.environment, "PATH");
  for (const std::string& variable : environment->variables) {
    const std::size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    if (name == "PWD" || (name == "PATH" && !sets_path)) continue;
    body += concat({"export ", name, "=", shell_word(variable.substr(equals + 1)), "\n"});
  }
  if (!environment->venv.empty() && !sets_path)
    body += concat({"export PATH=", shell_word(environment->venv + "/bin"), ":\"$PATH\"\n"});
  for (const std::string& name : admission.unset) body += concat({"unset ", name, "\n"});
  body += place_->set_identity;
  if (command.merge_streams) body += "exec 2>&1\n";

  Third third{};
  const std::vector<std::string> words =
      words_to_run(command, place_->shell, environment->prefix, admission, third);
  if (!admission.admitted()) return {};
  if (third == Third::session) {
    prepare += "_w=/tmp/.codeexec-$_i.s\n";
    body += "exec 3>$_w\n";
  } else if (third == Third::script) {
    body += concat({"printf %s ", shell_word(command.script), " >/tmp/.codeexec-$_i.sh && ",
                    "exec 3</tmp/.codeexec-$_i.sh && rm -f /tmp/.codeexec-$_i.sh || exit 126\n"});
  }
  const bool has_input = !command.input.empty() || command.keep_input_open;
  if (has_input) body += "exec </tmp/.codeexec-$_i; rm -f /tmp/.codeexec-$_i\n";
  body += "exec";
  for (const std::string& word : words) body += concat({" ", shell_word(word)});
  body += "\n}\n";
  if (has_input)
    prepare += "mkfifo -m 600 /tmp/.codeexec-$_i || { printf '\\001X%s:input\\n' $_i; exit; }\n";
  const std::string request = concat({body, prepare, "_r ", shell_word(work_dir), "\n"});
  if (has_nul(request))
    return make_error(ErrorCode::invalid_argument, {"a command has a NUL byte in it"});

  auto exec = begin(request, command.cancel, admission);
  if (!exec) return {};
  for (std::string& note : container.state_->take_notes())
    admission.result.notes.push_back(std::move(note));
  if (has_input)
    if (auto ok = exec->connect_input(); !ok) return ok.error();
  if (command.session) admission.ending.session_text = [exec] { return exec->session_text(); };
  admission.process.carrier = exec;
  admission.process.secrets = container.options().secrets;
  admission.result.container = container.name();
  // The next exec is started when this command has ended: the engine needs a processor for that.
  // One that runs beside other work would let those wait.
  if (command.background || command.keep_input_open) place_->execs->refill(exec->where());
  admission.home = container.state_;
  admission.ending.log = [exec, execs = place_->execs, log = container.state_->events](
                             const Result& told, const ProcessResult& ended) {
    if (exec->container_ended())
      execs->drop();
    else
      execs->refill(exec->where());
    Result result = told;
    static_cast<ProcessResult&>(result) = ended;
    constexpr std::size_t most = 2000;
    std::string event = concat({"$ ", utf8_prefix(result.command, most), "\n", result.summary()});
    for (const std::string* text : {&result.out, &result.err}) {
      if (text->empty()) continue;
      event += text == &result.out ? "\nstdout:\n" : "\nstderr:\n";
      if (text->size() <= 2 * most)
        event += *text;
      else
        event += concat({utf8_prefix(*text, most), "\n...\n", utf8_suffix(*text, most)});
    }
    log->add(event);
  };
  return {};
}

// An exec in which the command has begun; null, and the admission says why.
auto ContainerExecutor::begin(const std::string& request, const std::optional<CancelToken>& cancel,
                              Admission& admission) const -> std::shared_ptr<Exec> {
  constexpr int most_tries = 2;
  // So long is enough for a container that runs; otherwise the engine is asked what is the matter.
  constexpr std::chrono::milliseconds patience = std::chrono::seconds(2);
  const Container& container = place_->container;
  const ContainerOptions& options = container.options();
  if (place_->execs->has_lost_one()) container.state_->forget();
  for (int tries = 1;; ++tries) {
    if (auto ok = container.ensure(cancel); !ok) {
      admission.fail(ok.error(), "container");
      break;
    }
    std::shared_ptr<Exec> exec = place_->execs->take();
    if (!exec) {
      auto started = Exec::start(place_->where());
      if (!started) {
        admission.fail(started.error(), "container");
        break;
      }
      exec = std::move(*started);
    }
    const Clock::time_point began = Clock::now();
    std::string_view rest = request;
    Exec::Start start =
        exec->begin(rest, later(began, std::min(patience, options.start_timeout)), cancel);
    if (start == Exec::Start::slow) {
      container.state_->forget();
      if (auto ok = container.ensure(cancel); !ok) {
        admission.fail(ok.error(), "container");
        break;
      }
      start = exec->begin(rest, later(began, options.start_timeout), cancel);
    }
    if (start == Exec::Start::begun) return exec;
    if (start == Exec::Start::refused || start == Exec::Start::lost) container.state_->forget();
    if (start == Exec::Start::refused && tries < most_tries) continue;
    if (start == Exec::Start::slow)
      admission.fail(
          make_error(ErrorCode::limit, {"the container did not start the command within ",
                                        seconds_text(options.start_timeout), " s (start_timeout)"}),
          "container");
    else
      admission.fail(exec->failure(), exec->failed_step().c_str());
    if (start == Exec::Start::slow || start == Exec::Start::lost)
      admission.result.message += concat({"; ", exec->kill_all()});
    if (start == Exec::Start::cancelled) {
      admission.result.outcome = Outcome::cancelled;
      admission.result.message = "cancelled before it was started";
    }
    break;
  }
  if (cancel && cancel->cancelled()) admission.result.outcome = Outcome::cancelled;
  return nullptr;
}

}  // namespace v0_1
}  // namespace codeexec
