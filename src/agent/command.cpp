// One command in a place.

#include "agent/command_internal.hpp"
#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Looks once at what is asked for each command.
CommandSettings::CommandSettings(Environment variables, std::string shell_path,
                                 const Variables& set)
    : environment(std::move(variables)),
      shell(std::move(shell_path)),
      sets_path(sets_variable(set, "PATH"sv)),
      sets_lang(sets_variable(set, "LANG"sv)) {}

// The variables of this host do not count elsewhere, so that only those go there that options or
// the command set. PATH and LANG are in every resolved environment; they go there if somebody set
// them.
Expected<void> AgentCommand::request_for(const Command& command, Executor::Admission& admission,
                                         const CommandSettings& settings, StartRequest& request) {
  // This is checked before any lock: in a fork, a thread that is not here may hold it.
  if (settings.owner != ::getpid())
    return make_error(ErrorCode::unsupported,
                      "this process is a fork of the one that the connection belongs to, and needs "
                      "an executor of its own");
  auto environment = settings.environment.resolve(admission.directory.path, command.environment);
  if (!environment) return environment.failure();
  admission.result.venv = environment->venv;
  request.work_dir = admission.directory.path;
  request.unset = admission.unset;
  const bool sets_path = settings.sets_path || sets_variable(command.environment, "PATH"sv);
  const bool sets_lang = settings.sets_lang || sets_variable(command.environment, "LANG"sv);
  if (!sets_path) request.venv = environment->venv;
  for (std::string& variable : environment->variables)
    if ((sets_path || !starts_with(variable, "PATH="sv)) &&
        (sets_lang || !starts_with(variable, "LANG="sv)))
      request.set.push_back(std::move(variable));

  request.argv = admission.words_to_run(command, settings.shell, environment->prefix);
  if (!admission.admitted()) return {};
  request.follows_session = admission.third == Executor::Admission::Third::session;
  request.has_script = admission.third == Executor::Admission::Third::script;
  if (request.has_script) request.script = command.script;
  std::size_t size = request.script.size();
  for (const auto* texts : {&request.argv, &request.set, &request.unset}) {
    size += total_size(*texts) + texts->size();
    for (const std::string& text : *texts)
      if (has_nul(text))
        return make_error(ErrorCode::invalid_argument,
                          "a command has a NUL byte in it, which no program can be given");
  }
  if (size > longest_request - longest_payload)
    return make_error(ErrorCode::limit, "a command may have at most 64 MiB in a place");
  request.merge_streams = admission.process.merge_streams;
  request.terminal = command.terminal;
  request.has_input = !command.input.empty() || command.keep_input_open;
  const ProcessOptions& process = admission.process;
  request.kill_grace = process.kill_grace;
  // This side keeps the time limit. The agent has a later one, if the connection hangs.
  constexpr std::chrono::milliseconds slack = std::chrono::seconds(1);
  if (process.timeout < no_limit - process.kill_grace - slack)
    request.timeout = process.timeout + process.kill_grace + slack;
  return {};
}

// A command that still runs is killed: nothing here could report its end. Its number stays taken,
// as frames of it may be on their way.
AgentCommand::~AgentCommand() {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  if (!streams_.running) {
    link_->commands_.erase(streams_.id);
    return;
  }
  link_->send(FrameKind::signal, streams_.id, kill_text);
  link_->commands_[streams_.id] = nullptr;
}

// Makes the pipes before it takes a number, so that a shortage of descriptors costs the agent
// nothing. The request goes out in frames that follow each other under one lock, as the agent puts
// together one request at a time. False: it does not run, or not in time; `failure` says why.
bool AgentCommand::launch(bool wait, const std::optional<CancelToken>& cancel,
                          ProcessResult& failure) {
  const auto fail = [&failure](int error, std::string_view what) {
    failure.outcome = Outcome::not_started;
    failure.step = "setup";
    failure.system_error = error;
    failure.message = concat("%: %", {what, errno_text(error)});
    return false;
  };
  if (!make_pipe(streams_.out.reader, streams_.out.writer) ||
      (!request_.merge_streams && !make_pipe(streams_.err.reader, streams_.err.writer)) ||
      (request_.has_input && !make_pipe(streams_.input_reader, input_writer_)))
    return fail(errno, "cannot make the pipes of a command"sv);
  for (const UniqueFd* fd : {&streams_.out.reader, &streams_.out.writer, &streams_.err.reader,
                             &streams_.err.writer, &streams_.input_reader, &input_writer_})
    if (*fd) set_nonblocking(*fd);
  request_.waited_for = wait;
  const std::string text = request_.text();
  std::unique_lock<std::mutex> lock(link_->mutex_);
  if (link_->lost()) {
    lost_ = true;
    report_end(failure);
    failure.outcome = Outcome::not_started;
    failure.step = "place";
    return false;
  }
  do streams_.id = ++link_->last_id_ & ~connection_bit;
  while (streams_.id == 0 || link_->commands_.count(streams_.id) != 0);
  link_->commands_[streams_.id] = this;
  streams_.running = true;
  std::string_view rest = text;
  for (; rest.size() > longest_payload; rest.remove_prefix(longest_payload))
    link_->send(FrameKind::request, streams_.id, rest.substr(0, longest_payload));
  link_->send(FrameKind::start, streams_.id, rest);
  if (!wait) return true;
  wait_for_start(lock, cancel);
  if (!has_begun()) {
    const bool cancelled = cancel && cancel->cancelled();
    failure.outcome = cancelled ? Outcome::cancelled : Outcome::unknown;
    failure.step = "start";
    failure.message = concat("% has not begun it %, and kills it if it does",
                             {link_->name_, cancelled ? "yet" : "in time"});
    return false;
  }
  if (started_ || !end_ || end_->outcome != Outcome::not_started) return true;
  report_end(failure);
  return false;
}

// The mutex is free during the wait: the link's thread needs it to take `started`.
void AgentCommand::wait_for_start(std::unique_lock<std::mutex>& lock,
                                  const std::optional<CancelToken>& cancel,
                                  Clock::time_point deadline) const {
  lock.unlock();
  wait_for_event(begun_, cancel, deadline);
  lock.lock();
}

// Hands bytes of the pipe on, and lets the agent send as many again. Credit is given here and not
// when bytes come, so that an unread stream stops its program and not the link.
void AgentCommand::take(Stream stream, std::string_view bytes,
                        FunctionRef<void(std::string_view)> use) {
  if (bytes.empty()) return;
  use(bytes);
  const Channel channel = stream == Stream::out ? Channel::out : Channel::err;
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  RemoteStreams::Flow& taken = streams_.flow(channel);
  taken.untaken -= std::min(taken.untaken, bytes.size());
  if (!streams_.running) return;
  const std::size_t credit = taken.window.credit(taken.untaken, link_->commands_.size());
  if (credit != 0) link_->send(FrameKind::credit, streams_.id, credit_text(channel, credit));
}

// Bytes that the caller has at hand need no pipe: the link's thread sends them from where they lie.
UniqueFd AgentCommand::take_input(std::string_view& given) {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  streams_.input = std::exchange(given, {});
  if (input_writer_) link_->wake();
  return std::move(input_writer_);
}

// The end alone does not end it: what was printed before may not have been read yet.
bool AgentCommand::ended() const {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  return !streams_.running && streams_.out.untaken == 0 && streams_.err.untaken == 0;
}

// An agent that says `bye` has killed all that it has started, so that nothing is left to be
// measured.
bool AgentCommand::was_lost() const {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  return lost_ && !link_->has_left_;
}

// False for one that has ended: the agent would ignore the signal, and the caller should know.
bool AgentCommand::signal(int number) {
  const char byte = static_cast<char>(number);
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  if (!streams_.running || number <= 0 || number > 64) return false;
  link_->send(FrameKind::signal, streams_.id, {&byte, 1});
  return true;
}

// An agent of an earlier version knows no such frame.
bool AgentCommand::can_resize() const {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  return link_->resizes_;
}

void AgentCommand::resize(TerminalSize size) {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  if (streams_.running)
    link_->send(FrameKind::resize, streams_.id,
                number_bytes(static_cast<std::size_t>(size.rows)) +
                    number_bytes(static_cast<std::size_t>(size.cols)));
}

// Closes the pipes as soon as all output is in them, which ends the wait for it.
void AgentCommand::come_to_an_end() {
  streams_.running = false;
  streams_.input_reader.reset();
  for (RemoteStreams::Flow* const flow : {&streams_.out, &streams_.err}) {
    flow->ended = true;
    flow->write();
  }
  begun_.cancel();
}

// The outcome, by what is known: the agent's own account, a lost connection, or neither after a
// kill. Never a success that was not seen.
void AgentCommand::report_end(ProcessResult& result) const {
  if (lost_) {
    result.outcome = Outcome::unknown;
    result.message =
        concat("the connection to % was lost (%%",
               {link_->name_, link_->reason_,
                request_.waited_for && !started_ ? ") before it was known to have begun"
                                                 : "): what ran there is ended with it"});
    return;
  }
  if (!end_) {
    result.outcome = Outcome::unknown;
    result.message = concat(
        "% has not reported its end in time after it was killed; some of its processes may "
        "still be running",
        {link_->name_});
    return;
  }
  result = *end_;
}

void AgentCommand::finish(ProcessResult& result) {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  report_end(result);
  streams_.input = {};
}

}  // namespace v0_1
}  // namespace codeexec
