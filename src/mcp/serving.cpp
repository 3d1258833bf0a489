// The session: its beginning, the tasks of its threads, its end.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"
#include "mcp/session_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

// Reads and serves messages until the input ends or the watch has given the place away. Answers of
// the reader go out together: after the last message that has been received.
void Session::read_input(const Pool::Thread& self) {
  using Event = LineReader::Event;
  std::string_view line;
  while (pool_.reads(self)) {
    if (!input_.has_line()) outbox_.push();
    // Messages that were received before the session ended are not served any more.
    const Event event = wake_.cancelled() ? Event::interrupted : input_.next(line);
    if (event == Event::line) {
      on_line(line);
    } else if (event == Event::too_long) {
      on_too_long(input_.skipped_id());
    } else {
      pool_.stop_reading(event == Event::failed ? input_.error() : 0);
      questions_.end();
      roots_.end();
      ended_.cancel();
    }
  }
  outbox_.push();
}

bool Session::run_call(const CallPtr& call) {
  const Clock::time_point start = Clock::now();
  // A task can be cancelled before its turn comes.
  ToolResult reply = call->cancel.cancelled() ? ToolResult::error("Cancelled.") : invoke(call);
  const bool quick = Clock::now() - start < quick_time;
  answer(call, std::move(reply));
  return quick;
}

// The reader reports the end of the input. It cannot while it waits for a client that does not read
// its answers; it is the end, too, if such a client has closed the input and takes nothing more.
void Session::wait_for_the_end(const CancelToken& stop) {
  // A pipe whose other end is closed reports that without being asked.
  pollfd fds[4] = {{stop.descriptor(), POLLIN, 0},
                   {ended_.descriptor(), POLLIN, 0},
                   {out_fd_, 0, 0},
                   {in_fd_, 0, 0}};
  int patience = -1;
  for (;;) {
    const int ready = ::poll(fds, 4, patience);
    if (ready < 0 && !may_try_again(errno)) return;
    if (ready > 0 && (fds[0].revents | fds[1].revents | fds[2].revents) != 0) return;
    if (ready > 0 && fds[3].revents != 0) {
      fds[3].fd = -1;  // known from now on
      patience = static_cast<int>(finish_time.count());
      (void)outbox_.stuck();
    } else if (ready == 0 && outbox_.stuck()) {
      return;
    }
  }
}

// Calls that are cancelled because the server ends are still answered, with what they have.
void Session::cancel_everything() {
  std::vector<CallPtr> waiting;
  std::vector<CallPtr> open;
  pool_.close(waiting, open);
  wake_.cancel();
  outbox_.stop_waiting();
  for (const CallPtr& call : open) call->cancel.cancel();
  questions_.end();
  roots_.end();
  for (const CallPtr& call : waiting) answer(call, ToolResult::error(server_ends));
  for (const auto& [key, id] : listeners_.end())
    deliver(nullptr, reply_text(id, concat("{\"resultType\":\"complete\",\"_meta\":{\"%\":%,%}}",
                                           {subscription_key, id, own_meta_})));
}

Expected<void> Session::run(const CancelToken& stop) {
  if (stop.descriptor() < 0 || ended_.descriptor() < 0 || wake_.descriptor() < 0)
    return system_error(errno, "serve: descriptors");
  int error = outbox_.start();
  if (error == 0) error = pool_.start();
  if (error == 0) wait_for_the_end(stop);
  if (pool_.is_draining() && !stop.cancelled()) pool_.wait_until_quiet(finish_time);
  cancel_everything();
  pool_.wait_until_quiet(cancel_time);
  outbox_.push();
  outbox_.flush(flush_time);
  outbox_.close();
  const bool all = pool_.join();
  tasks_.end();
  if (error != 0) return system_error(error, "serve: thread");
  if (pool_.read_error() != 0) return system_error(pool_.read_error(), "serve: reading in_fd");
  if (!all) return make_error(ErrorCode::limit, "serve: a tool's handler did not return");
  return {};
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
