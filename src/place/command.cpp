// One command in a place.

#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

PlaceCommand::~PlaceCommand() {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  link_->commands_.erase(id_);
  if (!running_) return;
  // Nobody waits for its end.
  const char number = SIGKILL;
  std::string frame;
  put_frame(frame, FrameKind::signal, id_, {&number, 1});
  link_->send(frame);
  link_->forgotten_.insert(id_);
}

bool PlaceCommand::launch(bool wait, ProcessResult& failure) {
  const auto fail = [&failure](int error, std::string_view what) {
    failure.outcome = Outcome::not_started;
    failure.step = "setup";
    failure.system_error = error;
    failure.message = concat({what, ": ", errno_text(error)});
    return false;
  };
  if (!make_pipe(out_.reader, out_.writer) ||
      (!request_.merge_streams && !make_pipe(err_.reader, err_.writer)) ||
      (request_.has_input && !make_pipe(input_reader_, input_writer_)))
    return fail(errno, "cannot make the pipes of a command");
  for (const UniqueFd* fd :
       {&out_.reader, &out_.writer, &err_.reader, &err_.writer, &input_reader_, &input_writer_})
    if (*fd) set_nonblocking(*fd);
  request_.waited_for = wait;
  const std::string text = request_.text();
  std::unique_lock<std::mutex> lock(link_->mutex_);
  if (link_->lost_) {
    lost_ = true;
    tell_end(failure);
    failure.outcome = Outcome::not_started;
    failure.step = "place";
    return false;
  }
  do id_ = ++link_->last_id_;
  while (id_ == 0 || link_->commands_.count(id_) != 0 || link_->forgotten_.count(id_) != 0);
  link_->commands_.emplace(id_, this);
  running_ = true;
  std::string frames;
  std::string_view rest = text;
  for (; rest.size() > longest_payload; rest.remove_prefix(longest_payload))
    put_frame(frames, FrameKind::request, id_, rest.substr(0, longest_payload));
  put_frame(frames, FrameKind::start, id_, rest);
  link_->send(frames);
  if (request_.has_input) link_->wake();
  if (!wait) return true;
  while (running_ && !started_) link_->event_.wait(lock);
  if (started_ || !end_ || end_->outcome != Outcome::not_started) return true;
  tell_end(failure);
  return false;
}

void PlaceCommand::take(Stream stream, std::string_view bytes,
                        FunctionRef<void(std::string_view)> use) {
  if (bytes.empty()) return;
  use(bytes);
  const Channel channel = stream == Stream::out ? Channel::out : Channel::err;
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  Flow& taken = flow(channel);
  taken.untaken -= std::min(taken.untaken, bytes.size());
  taken.uncredited += bytes.size();
  if (!running_ || taken.uncredited < stream_window / 4) return;
  taken.window += taken.uncredited;
  std::string frame;
  put_credit(frame, id_, channel, std::exchange(taken.uncredited, 0));
  link_->send(frame);
}

bool PlaceCommand::ended() const {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  return !running_ && out_.untaken == 0 && err_.untaken == 0;
}

bool PlaceCommand::signal(int number) {
  const char byte = static_cast<char>(number);
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  if (!running_ || number <= 0 || number > 64) return false;
  std::string frame;
  put_frame(frame, FrameKind::signal, id_, {&byte, 1});
  link_->send(frame);
  return true;
}

// Its pipes are closed, which whoever waits for it sees, as soon as all is in them.
void PlaceCommand::come_to_an_end() {
  running_ = false;
  input_reader_.reset();
  err_.write(true);
  out_.write(true);
  link_->event_.notify_all();
}

void PlaceCommand::Flow::write(bool ended) {
  if (!waiting.empty() && writer) {
    if (waiting.write_to(writer.get()) < 0 && errno == EPIPE) {
      waiting.clear();
      untaken = 0;
    }
  }
  if (ended && waiting.empty()) writer.reset();
}

void PlaceCommand::tell_end(ProcessResult& result) const {
  if (lost_) {
    result.outcome = Outcome::unknown;
    result.message = concat({"the connection to ", link_->name_, " was lost (", link_->reason_,
                             "): what ran there is ended with it"});
    return;
  }
  if (!end_) {
    result.outcome = Outcome::unknown;
    result.message = concat({link_->name_,
                             " has not told its end in time after it was killed; "
                             "some of its processes may still be running"});
    return;
  }
  result = *end_;
}

void PlaceCommand::finish(ProcessResult& result) {
  const std::lock_guard<std::mutex> lock(link_->mutex_);
  tell_end(result);
}

}  // namespace v0_1
}  // namespace codeexec
