// The agent: it starts a command.

#include "agent/agent_internal.hpp"
#include "agent/connections_internal.hpp"
#include "agent/contained_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// Starts a command, or reports by `end` why not: a command that cannot start is no fault of the
// client. False: the number or the request is one that no client sends.
bool CommandAgent::start(std::uint32_t id, std::string_view text) {
  StartRequest request;
  if (id == 0 || (id & connection_bit) != 0 || find(id) || !request.read(text)) return false;
  ProcessOptions options;
  options.on_output = [this, id](Stream stream, std::string_view bytes) {
    pass_on(id, stream, bytes);
  };
  UniqueFd passed;
  UniqueFd folder;
  Running& command = commands_.emplace_back();
  command.id = id;
  if (contained_) command.oom_kills = oom_kills_here();
  command.has_input = command.input_watched = request.has_input;
  auto ready = prepare(request, command, passed, options);
  if (ready && is_remote_ && !options.work_dir.empty()) {
    // The command enters the folder that is checked here, whatever its name leads to later.
    auto opened = PathRules().open_found(options.work_dir);
    if (opened)
      folder = opened.take();
    else
      ready = opened.error();
    options.work_dir_fd = folder.get();
  }
  command.state = new_run(std::move(options));
  State& state = *command.state;
  if (!ready) {
    state.result.message = ready.error().message;
    state.result.system_error = ready.error().system_error;
    state.result.step = "setup";
  }
  // A command has the highest score from its start, which needs no right: if memory runs out in a
  // container, the kernel kills a command and not this agent, which all commands need.
  if (contained_) (void)write_all(oom_score_.get(), "1000"sv);
  const bool started = ready && state.start(false);
  if (contained_) (void)write_all(oom_score_.get(), own_oom_score_);
  if (!started) {
    connections_.remove(id);
    send(FrameKind::end, id, end_text(state.result));
    commands_.pop_back();
    return true;
  }
  state.forget_start();
  if (request.waited_for)
    send(FrameKind::started, id, number_bytes(static_cast<std::size_t>(state.result.pid)));
  return true;
}

// Each group of variables goes over the ones before it: those of the agent, HOME and TMPDIR of the
// sandbox, those of the request. Then what the request unsets is taken out.
Expected<void> CommandAgent::resolve_variables(const StartRequest& request,
                                               ProcessOptions& options) {
  Variables extra;
  const auto add = [&extra](std::string_view name, std::string_view value) {
    extra.push_back({std::string(name), std::string(value)});
  };
  if (home_) {
    add("HOME"sv, home_->path());
    add("TMPDIR"sv, home_->temporary());
  }
  for (std::string_view value : request.set) {
    const std::string_view name = take_part(value, '=');
    add(name, value);
  }
  auto environment = environment_->resolve(request.work_dir, extra);
  if (!environment) return environment.failure();
  for (std::string& variable : environment->variables) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (is_one_of(name, request.unset)) continue;
    if (!request.venv.empty() && name == "PATH"sv)
      variable.insert(name.size() + 1, concat("%/bin:", {request.venv}));
    options.environment.push_back(std::move(variable));
  }
  return {};
}

// Fills in how the command runs. To its variables those for a host without a network are added
// where there are none of their names. The agent's own program, for questions, runs without a
// sandbox: it holds itself to the roots or to the copy.
Expected<void> CommandAgent::prepare(StartRequest& request, Running& command, UniqueFd& passed,
                                     ProcessOptions& options) {
  // A hello was refused, or was there to prepare a container.
  if (!environment_)
    return make_error(ErrorCode::unsupported, "no hello has prepared this agent for commands");
  if (commands_.size() > most_commands)
    return with_message(system_error(EAGAIN, ""), "too many commands run in this place");
  if (request.argv[0].empty() && !workspace_)
    return make_error(ErrorCode::unsupported,
                      "this agent is for containers: it answers no questions about files");
  if (auto ok = resolve_variables(request, options); !ok) return ok;
  options.sandbox = sandbox_;
  if (has_proxy_ && !request.argv[0].empty())
    if (auto ok = give_proxy(command, options); !ok) return ok;
  for (const std::string& variable : weak_variables_)
    if (!value_of(options.environment, std::string_view(variable).substr(0, variable.find('='))))
      options.environment.push_back(variable);
  if (request.argv[0].empty()) {
    request.argv = words_of({"/proc/self/exe", "--place"});
    options.environment.push_back(workspace_->question());
    options.sandbox = {};
  }
  options.argv.swap(request.argv);
  options.work_dir.swap(request.work_dir);
  options.keep_input_open = request.has_input;
  options.merge_streams = request.merge_streams;
  options.terminal = request.terminal;
  options.timeout = request.timeout;
  options.kill_grace = request.kill_grace;
  options.uid = uid_;
  options.gid = gid_;
  options.supervised = true;
  options.max_output = 0;
  if (request.has_script) {
    auto script = anonymous_file(request.script);
    if (!script) return script.failure();
    passed = std::move(*script);
  } else if (request.follows_session) {
    if (auto ok = make_session_pipe(command.session_pipe, passed); !ok) return ok;
  }
  options.pass_fd = passed.get();
  return {};
}

// A command in a sandbox has a network with a socket of its own. All in a container have one
// network, so each gets a port there: which shows whose connection it is. Without a socket the
// command does not start, as it would find no proxy at its port, or another command's.
Expected<void> CommandAgent::give_proxy(Running& command, ProcessOptions& options) {
  if (contained_) {
    unsigned port = 0;
    UniqueFd socket = listen_for_proxy(port);
    if (!socket) return system_error(errno, "network: a socket for the proxy");
    connections_.add(command.id, std::move(socket));
    weak_variables_ = offline_variables(Network::allow, port);
  }
  options.on_listener = [this, id = command.id](UniqueFd listener) {
    connections_.add(id, std::move(listener));
  };
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
