// The client's end of a connection to an agent: what its thread does.

#include "agent/command_internal.hpp"
#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/messages_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "process/child_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_preface = std::size_t{64} << 10;

}  // namespace

// Adds the pipes of commands and connections that wait for room or have input, under the mutex.
void AgentLink::watch(std::vector<pollfd>& set, std::vector<Watched>& watched,
                      Clock::time_point& deadline) {
  const auto add = [&](RemoteStreams& streams) {
    for (const Channel channel : {Channel::out, Channel::err, Channel::input}) {
      const bool is_input = channel == Channel::input;
      const int fd = is_input ? streams.input_fd() : streams.flow(channel).writer.get();
      const bool is_closing = is_input && streams.source == RemoteStreams::Source::closing;
      // Input is read only while the queue is short: the rest waits in its pipe.
      if (is_input ? fd < 0 || (!is_closing && streams.input_window == 0) ||
                         queue_.size() >= longest_payload
                   : streams.flow(channel).waiting.empty())
        continue;
      set.push_back({fd, is_closing ? short{0} : is_input ? short{POLLIN} : short{POLLOUT}, 0});
      watched.push_back({streams.id, channel});
      if (is_input && !streams.input.empty()) deadline = Clock::now();
    }
  };
  for (const auto& [id, command] : commands_)
    if (command) add(command->streams_);
  for (auto& [id, connection] : connections_) add(connection);
}

// Waits for an event and handles it. False: the link is being destroyed. The mutex is free during
// the wait, so that commands start and end meanwhile: their streams are looked up again by number
// after it, and the set keeps no pointers.
bool AgentLink::pump(int cancel, Clock::time_point deadline) {
  std::vector<pollfd> set;
  std::vector<Watched> watched;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closing_) return false;
    set = {{wake_out_.get(), POLLIN, 0},
           {lost() ? -1 : line_.out.get(), POLLIN, 0},
           {lost() ? -1 : line_.err.get(), POLLIN, 0},
           {lost() || queue_.empty() ? -1 : line_.input.get(), POLLOUT, 0},
           {cancel, POLLIN, 0}};
    if (speaks())
      deadline = std::min(
          {deadline, later(last_heard_, keep_alive_), later(last_sent_, ping_after(keep_alive_))});
    watch(set, watched, deadline);
  }
  wait_for_events(set, deadline);
  const Clock::time_point woke = Clock::now();  // what comes from now on is not read here
  std::unique_lock<std::mutex> lock(mutex_);
  if (closing_) return false;
  char few[4096];
  if (set[0].revents) (void)!::read(wake_out_.get(), few, sizeof few);
  if (set[2].revents && !lost()) {
    const ssize_t size = ::read(line_.err.get(), few, sizeof few);
    if (size > 0) said_.add({few, static_cast<std::size_t>(size)});
    if (size == 0) line_.err.reset();
  }
  if (set[1].revents && !lost()) receive();
  if (set[3].revents && !lost()) flush();
  for (std::size_t i = 0; i < watched.size(); ++i) {
    RemoteStreams* const streams = find(watched[i].id);
    if (!streams) continue;
    const bool is_input = watched[i].channel == Channel::input;
    if (!set[i + 5].revents && !(is_input && !streams->input.empty())) continue;
    if (is_input)
      read_input(*streams);
    else if ((streams->id & connection_bit) != 0)
      serve(*streams);
    else
      streams->flow(watched[i].channel).write();
  }
  check_life(woke);
  if (lost() && !settled_.cancelled()) settle(lock);
  return true;
}

// Sends a sign of life when nothing else was sent for a third of keep_alive, and gives up an agent
// that was silent for all of it. `now` is when the wait ended: what has come since is not read yet,
// and must not count as silence.
void AgentLink::check_life(Clock::time_point now) {
  // Before an agent speaks, connect_timeout holds.
  if (!speaks()) return;
  if (now >= later(last_heard_, keep_alive_))
    return lose("nothing was heard from it for % ms", {keep_alive_.count()});
  if (now < later(last_sent_, ping_after(keep_alive_))) return;
  send(FrameKind::ping, 0, {});
  last_sent_ = now;
}

// Reads once, at most a frame's size: other descriptors get their turn before more is read.
void AgentLink::receive() {
  if (!buffer_) buffer_.reset(new char[longest_payload]);
  const ssize_t size = ::read(line_.out.get(), buffer_.get(), longest_payload);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    // The last words of the transport are in the other pipe.
    char said[4096];
    const ssize_t more = line_.err ? ::read(line_.err.get(), said, sizeof said) : 0;
    if (more > 0) said_.add({said, static_cast<std::size_t>(more)});
    return lose("it was closed at the other end");
  }
  last_heard_ = Clock::now();
  take_bytes({buffer_.get(), static_cast<std::size_t>(size)});
}

// Finds the greeting behind what ssh, a login script or a shell prints, and then hands on frames.
// The search goes on a little before what came last, as the mark may be cut there.
void AgentLink::take_bytes(std::string_view bytes) {
  std::string rest;
  if (!speaks()) {
    const std::size_t from =
        unmarked_.size() - std::min(unmarked_.size(), greeting_mark.size() + 8);
    unmarked_ += bytes;
    if (!upload_.empty() && unmarked_.find(upload_mark, from) != std::string::npos) {
      unmarked_.clear();
      uploaded_ = upload_.size();
      return send(std::exchange(upload_, {}));
    }
    const std::size_t mark = unmarked_.find(greeting_mark, from);
    const std::size_t end = unmarked_.find('\n', mark);
    if (mark == std::string::npos || end == std::string::npos) {
      if (unmarked_.size() > longest_preface) {
        lose("64 KiB came, and no greeting of an agent");
      }
      return;
    }
    said_.add(std::string_view(unmarked_).substr(0, mark));
    const std::size_t number = mark + greeting_mark.size();
    const std::string version = unmarked_.substr(number, end - number);
    if (version != std::to_string(agent_protocol)) {
      life_ = Life::answered;
      greeting_ = Json::object();
      return set_member(*greeting_, "protocol", printable(version));
    }
    life_ = Life::speaking;
    rest = unmarked_.substr(end + 1);
    unmarked_ = {};
    bytes = rest;
  }
  if (!reader_.add(bytes, [this](const Frame& frame) { return !lost() && take_frame(frame); }))
    lose("what came from it is not of this protocol");
}

// False: no agent sends such a frame. A command that was destroyed here may still have frames on
// their way: they are dropped, until its `end` frees its number.
bool AgentLink::take_frame(const Frame& frame) {
  const std::string_view payload = frame.payload;
  if (frame.kind == FrameKind::ping) return frame.id == 0 && (payload.empty() || payload == "\n"sv);
  if (frame.kind == FrameKind::hello) {
    auto greeting = Json::parse(payload);
    if (greeting_ || !greeting || !greeting->is_object()) return false;
    life_ = Life::answered;
    greeting_ = std::move(*greeting);
    return true;
  }
  if (!greeting_) return false;
  if (frame.kind == FrameKind::bye) return has_left_ = frame.id == 0 && payload.empty();
  if ((frame.id & connection_bit) != 0) return take_for_connection(frame);
  const auto at = commands_.find(frame.id);
  if (at == commands_.end()) return false;
  if (!at->second) {
    if (frame.kind == FrameKind::end) commands_.erase(at);
    return true;
  }
  if (!at->second->streams_.running) return false;
  AgentCommand& command = *at->second;
  switch (frame.kind) {
    case FrameKind::out:
      return command.streams_.out.take(payload);
    case FrameKind::err:
      return !command.request_.merge_streams && command.streams_.err.take(payload);
    case FrameKind::started:
      if (!command.request_.waited_for || command.started_ || payload.size() != 4) return false;
      command.started_ = true;
      command.pid_ = static_cast<int>(number_in(payload) & INT_MAX);
      command.begun_.cancel();
      return true;
    case FrameKind::credit:
      return command.streams_.take_credit(frame, Channel::input);
    case FrameKind::input_closed:
      command.streams_.input_reader.reset();
      return payload.empty();
    case FrameKind::session_data:
      command.session_data_ += payload;
      return command.request_.follows_session &&
             command.session_data_.size() <= longest_session_text;
    case FrameKind::end:
      return take_end(command, payload);
    default:
      return false;
  }
}

// A command whose `end` cannot be read has none, and the link is lost: so its outcome is `unknown`.
bool AgentLink::take_end(AgentCommand& command, std::string_view text) {
  const bool ok = read_end(text, command.end_.emplace());
  if (ok)
    command.come_to_an_end();
  else
    command.end_.reset();
  return ok;
}

// The streams of a connection or of a command; null when it has ended meanwhile, as another event
// of the same round may have ended it.
RemoteStreams* AgentLink::find(std::uint32_t id) {
  if (const auto at = connections_.find(id); at != connections_.end()) return &at->second;
  const auto at = commands_.find(id);
  return at != commands_.end() && at->second ? &at->second->streams_ : nullptr;
}

// Moves input of a command or a connection to the agent, as far as it has given credit. An empty
// piece is the end: of a pipe for good; of a socket only of what the proxy sends, whose other
// direction then goes on until it closes, which SIGHUP reports.
void AgentLink::read_input(RemoteStreams& streams) {
  using Source = RemoteStreams::Source;
  if (streams.source == Source::closing) {
    streams.source = Source::nothing;
    return send(FrameKind::signal, streams.id, "\x01"sv);  // SIGHUP
  }
  const std::size_t most = std::min(longest_payload, streams.input_window);
  std::string_view bytes = streams.input.substr(0, most);
  if (bytes.empty()) {
    if (!buffer_) buffer_.reset(new char[longest_payload]);
    const ssize_t size = ::read(streams.input_fd(), buffer_.get(), most);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size > 0) bytes = {buffer_.get(), static_cast<std::size_t>(size)};
  } else {
    streams.input.remove_prefix(bytes.size());
  }
  if (bytes.empty()) streams.input_reader.reset();
  if (bytes.empty() && streams.source == Source::socket) streams.source = Source::closing;
  streams.input_window -= bytes.size();
  send(bytes.empty() ? FrameKind::input_end : FrameKind::input, streams.id, bytes);
}

// Under the mutex. What the pipe does not take at once goes into the queue.
void AgentLink::send(std::string_view bytes) {
  if (lost() || !line_.input) return;
  const bool waits = !queue_.empty();
  queue_.bytes += bytes;
  if (waits) return;
  flush();
  if (!queue_.empty()) wake();
}

// Under the mutex. Once the link is lost nothing is sent, and callers need not ask before.
void AgentLink::send(FrameKind kind, std::uint32_t id, std::string_view payload) {
  std::string frame;
  put_frame(frame, kind, id, payload);
  send(frame);
}

// Writes what the pipe takes. A broken pipe is not the end yet: the agent's last words may still be
// in the other pipe, and they say more than EPIPE.
void AgentLink::flush() {
  const ssize_t size = queue_.write_to(line_.input.get());
  if (size > 0) last_sent_ = Clock::now();
  if (size >= 0 || errno == EAGAIN || errno == EINTR) return;
  // receive() finds the end of the other pipe, too, and the reason with it.
  queue_.clear();
  line_.input.reset();
}

// Has the thread look again. The pipe does not block: when it is full, the thread is about to wake.
void AgentLink::wake() {
  if (wake_in_) (void)!::write(wake_in_.get(), "", 1);
}

// Ends the connection, with the first reason that is known. The commands end in settle(), outside
// of whatever called this. Output that came before still goes to its readers.
void AgentLink::lose(const char* reason, Pieces values) {
  if (lost()) return;
  if (!speaks()) said_.add(unmarked_);
  reason_ = concat(reason, values);
  // The transport may say why, such as that a job was cancelled.
  if (life_ == Life::open && said_.total_bytes() != 0) {
    std::string said(without_line_ends(said_.text()));
    std::replace(said.begin(), said.end(), '\n', ' ');
    append_all(reason_, "; it said: %", {printable(said)});
  }
  life_ = life_ == Life::open ? Life::lost : Life::failed;
  line_.end();
  queue_.clear();
}

// Asks for the reason, once, and ends all commands with it. The question may take an engine
// seconds, so that the mutex is free meanwhile: lost() keeps anything else from happening.
void AgentLink::settle(std::unique_lock<std::mutex>& lock) {
  if (life_ == Life::lost && account_) {
    lock.unlock();
    const std::string cause = account_();
    lock.lock();
    if (!cause.empty()) append_all(reason_, "; %", {cause});
  }
  settled_.cancel();
  connections_.clear();
  for (const auto& [id, command] : commands_) {
    if (!command || !command->streams_.running) continue;
    command->lost_ = true;
    command->come_to_an_end();
  }
}

}  // namespace v0_1
}  // namespace codeexec
