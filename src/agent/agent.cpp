// The agent: its life, its connection to the client, and the orders of that.

#include "agent/agent.hpp"
#include "agent/agent_internal.hpp"
#include "agent/contained_internal.hpp"
#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// The greeting goes out before anything was heard, so that a client finds it behind what a login
// prints. `bye` is written only if the queue is empty: in the middle of another frame it would be
// read as a part of that. It is lost if the pipe is full; the client then takes the commands for
// lost.
int CommandAgent::run() {
#if defined(__linux__)
  // Afterwards the file belongs to root.
  constexpr char oom_file[] = "/proc/self/oom_score_adj";
  if (const auto text = read_whole_file(oom_file, 16, "file"sv)) own_oom_score_ = *text;
  oom_score_.reset(above_standard_streams(::open(oom_file, O_WRONLY | O_CLOEXEC)));
  // Commands run as the same user. They must not read this program's memory and variables, nor
  // write to its descriptors, through /proc.
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
  const int flags = ::fcntl(out_, F_GETFL);
  ::fcntl(out_, F_SETFL, flags | O_NONBLOCK);
  for (const int fd : {in_, out_}) widen_pipe(fd);
  queue_.bytes = concat("%%\n", {greeting_mark, agent_protocol});
  flush();
  loop();
  std::string bye;
  put_frame(bye, FrameKind::bye, 0, {});
  if (queue_.empty()) (void)write_to_pipe(out_, bye);
  ::fcntl(out_, F_SETFL, flags);
  if (problem_.empty()) return 0;
  std::fprintf(stderr, "codeexec place: %s\n", problem_.c_str());
  return 1;
}

// Each round: room for output, a wait for any descriptor, then connections, the orders, the
// commands. Orders come before commands, so that a kill is not held up by a flood. A command is
// reported and forgotten once it is over(): no process of it is left, and all its output is queued.
void CommandAgent::loop() {
  std::vector<pollfd> set;
  while (!ending_ || !commands_.empty()) {
    const bool full = queue_.size() > 4 * queue_limit;
    set.clear();
    set.push_back({ending_ ? -1 : in_, full ? short{0} : short{POLLIN}, 0});
    set.push_back({ending_ || queue_.empty() ? -1 : out_, POLLOUT, 0});
    // Before the hello there is no deadline: a client that has gone ends the pipe.
    Clock::time_point deadline =
        ending_ || !greeted_
            ? Clock::time_point::max()
            : std::min(later(last_heard_, keep_alive_), later(last_sent_, ping_after(keep_alive_)));
    // The first command becomes the last one, so that each gets its share of the room.
    if (commands_.size() > 1) commands_.splice(commands_.end(), commands_, commands_.begin());
    const std::size_t polled = commands_.size();
    for (Running& command : commands_) {
      make_room(command);
      command.state->add_descriptors(set);
      deadline = std::min(deadline, command.state->deadline());
    }
    deadline = std::min(deadline, connections_.watch(set, room(), commands_.size()));
    // The commands have not looked at kill_asked yet.
    if (std::exchange(killing_, false)) deadline = Clock::now();
    wait_for_events(set, deadline);
    const Clock::time_point woke = Clock::now();
    connections_.serve(set, bytes_.get());
    if (set[0].revents) receive();
    std::size_t left = polled;
    for (auto at = commands_.begin(); left > 0; --left) {
      Running& command = *at;
      command.state->step(set, buffer_);
      if (!command.state->over()) {
        if (command.input_watched) watch_input(command);
        ++at;
        continue;
      }
      ProcessResult& result = command.state->result;
      if (contained_ && oom_kills_here() > command.oom_kills && result.limits_reached.empty())
        result.limits_reached.push_back("memory");
      if (command.session_pipe) {
        const std::string data = read_session_text(command.session_pipe);
        for (std::size_t i = 0; i < data.size(); i += longest_payload)
          send(FrameKind::session_data, command.id,
               std::string_view(data).substr(i, longest_payload));
      }
      connections_.remove(command.id);
      send(FrameKind::end, command.id, end_text(result));
      at = commands_.erase(at);
    }
    if (ending_) continue;
    // What has come since the wait is not read yet.
    if (woke >= later(last_heard_, keep_alive_))
      end("nothing was heard for the time of keep_alive");
    stay_heard();
  }
}

// A stream is read only as far as the client has room for it and the queue has: a program that
// floods waits in its own pipe, and costs no memory here. The output of a command that is killed
// with the connection is dropped.
void CommandAgent::make_room(Running& command) {
  const std::size_t most = room() == 0 ? 0 : longest_payload;
  for (const Stream stream : {Stream::out, Stream::err})
    command.state->room(stream) =
        ending_ ? longest_payload : std::min(most, command.credit[stream == Stream::out ? 0 : 1]);
}

// Reads once in a round. What is not of the protocol ends the agent, and is not skipped: nothing
// after it could be trusted to be where a frame begins.
void CommandAgent::receive() {
  const ssize_t size = ::read(in_, bytes_.get(), longest_payload);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) return end(size < 0 ? "the input cannot be read" : nullptr);
  last_heard_ = Clock::now();
  if (!reader_.add({bytes_.get(), static_cast<std::size_t>(size)}, [this](const Frame& frame) {
        // Many that come at once may take long to start.
        if (frame.kind == FrameKind::start) stay_heard();
        return !ending_ && take(frame);
      }))
    end("what came in is not of this protocol");
}

// Kills all commands, with the first reason that was found. They get room for their output again,
// as one that waits for room would not be seen to end.
void CommandAgent::end(const char* why) {
  if (ending_) return;
  ending_ = killing_ = true;
  if (why) problem_ = why;
  connections_.clear();
  for (Running& command : commands_) {
    command.state->kill_asked.store(true);
    make_room(command);
  }
}

// Null for a command that has ended: orders for it may have been on their way.
auto CommandAgent::find(std::uint32_t id) -> Running* {
  for (Running& command : commands_)
    if (command.id == id) return &command;
  return nullptr;
}

// Carries out a frame. False: no client sends such a frame, and the agent ends. An order for a
// command that has just ended is ignored: the client could not know.
bool CommandAgent::take(const Frame& frame) {
  const std::string_view payload = frame.payload;
  if (frame.kind == FrameKind::ping) return true;
  if (frame.kind == FrameKind::hello) return !greeted_ && greet(payload);
  if (!greeted_) return false;
  if (frame.kind == FrameKind::request || frame.kind == FrameKind::start) {
    if (!request_.empty() && frame.id != request_id_) return false;
    if (request_.size() + payload.size() > longest_request) return false;
    request_id_ = frame.id;
    request_ += payload;
    if (frame.kind == FrameKind::request) return true;
    const std::string request = std::exchange(request_, {});
    return start(frame.id, request);
  }
  if ((frame.id & connection_bit) != 0) return connections_.take(frame);
  Running* const command = find(frame.id);
  const auto is = [&frame](FrameKind kind, std::size_t size) {
    return frame.kind == kind && frame.payload.size() == size;
  };
  if (frame.kind == FrameKind::input) {
    if (!command) return true;
    if (!command->has_input || !command->input_window.use(payload.size())) return false;
    command->state->give_input(payload);
    return true;
  }
  if (is(FrameKind::input_end, 0)) {
    if (command) command->state->end_input();
    return true;
  }
  if (is(FrameKind::resize, 8)) {
    const TerminalSize size = {static_cast<int>(number_in(payload) & INT_MAX),
                               static_cast<int>(number_in(payload.substr(4)) & INT_MAX)};
    if (command && command->state->resize(size)) command->state->apply_size();
    return size.is_valid();
  }
  if (is(FrameKind::signal, 1)) {
    const int number = static_cast<unsigned char>(payload[0]);
    if (!command || number == 0 || number > 64) return number <= 64;
    if (number == SIGKILL)
      command->state->kill_asked.store(true);
    else
      command->state->signal_tree(number);
    return true;
  }
  Channel channel{};
  std::size_t bytes = 0;
  if (frame.kind != FrameKind::credit || !read_credit(frame, channel, bytes)) return false;
  if (!command) return true;
  if (channel == Channel::input) return false;
  std::size_t& credit = command->credit[channel == Channel::out ? 0 : 1];
  if (bytes > most_window - credit) return false;
  credit += bytes;
  return true;
}

// Called while a command's output is read, which its room bounds: so the credit cannot fall below
// 0.
void CommandAgent::pass_on(std::uint32_t id, Stream stream, std::string_view bytes) {
  Running* const command = find(id);
  if (!command || ending_) return;
  const std::size_t which = stream == Stream::out ? 0 : 1;
  command->credit[which] -= bytes.size();
  command->state->room(stream) -= bytes.size();
  send(which == 0 ? FrameKind::out : FrameKind::err, id, bytes);
}

// Reports how much of the input the program has read, and when it reads no more.
void CommandAgent::watch_input(Running& command) {
  const State& state = *command.state;
  if (!state.takes_input()) {
    command.input_watched = false;
    return send(FrameKind::input_closed, command.id, {});
  }
  const std::size_t credit = command.input_window.credit(state.waiting_input(), commands_.size());
  if (credit != 0) send(FrameKind::credit, command.id, credit_text(Channel::input, credit));
}

// Adds a frame to the queue; flush() writes it. A transport that holds back what ends in no newline
// gets one after each frame, in a ping.
void CommandAgent::send(FrameKind kind, std::uint32_t id, std::string_view payload) {
  if (ending_) return;
  put_frame(queue_.bytes, kind, id, payload);
  if (ends_lines_) put_frame(queue_.bytes, FrameKind::ping, 0, "\n"sv);
}

void CommandAgent::stay_heard() {
  if (Clock::now() >= later(last_sent_, ping_after(keep_alive_))) send(FrameKind::ping, 0, {});
  flush();
}

// Writes what the pipe takes; the loop goes on with the rest when there is room.
void CommandAgent::flush() {
  if (ending_ || queue_.empty()) return;
  const ssize_t size = queue_.write_to(out_);
  if (size > 0)
    last_sent_ = Clock::now();
  else if (size < 0 && errno != EAGAIN && errno != EINTR)
    end("nobody reads the output");
}

int agent_main(int in, int out) { return CommandAgent(in, out, nullptr).run(); }

}  // namespace v0_1
}  // namespace codeexec
