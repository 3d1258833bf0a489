// A session with a client: its calls and its threads.
//
// THREADS
//
//            client                                                         client
//              | lines                                                        ^
//              v                                                              | lines
//   +-----------------------+     calls      +------------------+  answers  +--------+
//   | reader: LineReader,   | -- waiting_ -> | workers: run the | --------> | Outbox |
//   | checks, short answers |                | tools' handlers  |           +--------+
//   +-----------------------+                +------------------+             ^   | if the client
//         ^     |  answers, and results of short calls                        |   v is behind
//         |     +-------------------------------------------------------------+  writer thread
//       watch
//
// The reader and the workers are threads of one pool. A thread without a task takes the first of
// these (next_task): to read, if no thread reads; a call that waits; to sleep until it is called.
// The pool begins with two threads and grows to max_concurrent + 1.
//
// A call goes to a worker, but waking one takes longer than a short call does (10 us in place of 5
// for a round trip). So the reader itself runs a call whose tool took less than `quick_time` the
// last time. Such a call may take long this time, and a client must still be able to cancel it:
//
//                    a thread takes it                  a short call is read
//   free place -------------------------->  reading  ------------------------->  in a short call
//    ^  (reader_: null)                      |   ^   <-------------------------   |
//    |                                       |        the handler has returned    |
//    +------------- input has ended ---------+                                    |
//    +---------------- `watch_time` has passed: the watch frees the place --------+
//
// The thread that lost its place becomes a worker when its handler returns. The watch wakes up
// every millisecond while short calls are read, and sleeps at other times.
//
// serve() itself waits for the end of the input, for `stop`, or for an output that breaks. So it
// returns in time even if a handler does not.
//
// THE LIFE OF A CALL
//
//   read ---> checked ---> waiting ---> running ---> its handler has returned ---> answered
//                |            |            |                                          ^
//                |            |            +-- cancelled by the client: dropped       |
//                |            +--------------- cancelled by the client: dropped       |
//                |            +--------------- the session ends: not called ----------+
//                +---------------------------- bad arguments, or too many calls ------+
//
// When the session ends, the running calls are cancelled, too, but their results are still sent. A
// short call goes from checked to running at once.
//
// `done` decides, under the call's mutex, which end it is: nothing is sent for a call once it is
// set, by the thread that takes its answer for sending or by the one that cancels it. A call leaves
// the table of open requests before its answer is sent, as the client may use the id again at once.
#pragma once

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {

// What a handler may know of its call, which it may keep for longer than the session. The rest of a
// call is an OpenCall: this type is public, so it has no member of an internal type.
struct Call::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;
  virtual void notify(double progress, std::optional<double> total, std::string_view text) = 0;
  static Call handle(std::shared_ptr<State> call) { return Call(std::move(call)); }

  std::shared_ptr<const Tool> tool = {};
  const Json* arguments = nullptr;  // in the request
  Json converted = {};              // those that came under another name or as text; null: none
  const Json* meta = nullptr;       // in the request
  std::size_t max_result = 0;
  std::string progress_token = {};  // JSON; empty: no progress wanted
  std::string request_id = {};      // JSON
  std::string client = {};
  CancelToken cancel = {};
};

inline namespace inner {

class Session;

// A tool as a session knows it.
struct ToolEntry {
  std::shared_ptr<const Tool> tool = {};
  bool quick = false;  // its last call was; needs the session's mutex
};

// A call of a session.
struct OpenCall : Call::State {
  ~OpenCall() override;
  void notify(double progress, std::optional<double> total, std::string_view text) override;

  // True for the one caller that may end this call.
  bool finish() {
    const std::lock_guard<std::mutex> lock(mutex);
    return !std::exchange(done, true);
  }

  // Takes one of the notices that the call may send. False: none is left. Needs the mutex.
  bool may_notify();

  std::shared_ptr<Session> session = {};
  Request request = {};
  bool by_reader = false;              // a short call
  ToolEntry* entry = nullptr;          // in the session
  std::atomic<std::size_t> weight{0};  // bytes that its message takes, about; until it is answered

  std::mutex mutex = {};
  bool done = false;  // answered, or cancelled by the client: nothing more may be sent
  std::optional<double> last_progress = {};
  double notices_left = 32;
  Clock::time_point notices_counted = {};
};

// session -----------------------------------------------------------------------------------------

using CallPtr = std::shared_ptr<OpenCall>;

// One serve(): the protocol's state, the threads and the descriptors. The head of this file draws
// how the threads work together.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const ServerOptions& options, const Tools& tools, int in_fd, int out_fd)
      : options_(options),
        server_info_(server_info_of(options)),
        input_(in_fd, wake_.descriptor(), options.max_line),
        in_fd_(in_fd),
        out_fd_(out_fd),
        outbox_(out_fd, options.max_queued, ended_) {
    for (const auto& tool : tools) tools_.push_back({tool});
  }

  Expected<void> run(const CancelToken& stop);

  void release(OpenCall& call) { open_weight_.fetch_sub(call.weight.exchange(0)); }
  void send_progress(OpenCall& call, double progress, std::optional<double> total,
                     std::string_view message);

 private:
  struct Thread {
    pthread_t thread = {};
    bool ended = false;
  };
  enum class Task { read, run, end };
  enum class Phase {
    reading,   // messages are read and served
    draining,  // the input has ended: calls that run or wait go on
    closing,   // the session ends: all calls are cancelled, and no other begins
  };

  // threads
  int add_thread(void (Session::*body)(const Thread&));
  void call_worker();
  void work(const Thread& self);
  Task next_task(const Thread& self, CallPtr& call);
  void read_input(const Thread& self);
  bool reads(const Thread& self);
  void stop_reading(int error);
  void accept(const CallPtr& call);
  void run_call(const CallPtr& call);
  void watch_short_calls(const Thread&);
  int start_threads();
  void wait_for_the_end(const CancelToken& stop);
  bool input_ended();
  void wait_until_quiet(std::chrono::milliseconds time);
  void cancel_everything();
  bool join_threads();

  // messages; only the reader comes here
  struct Method;
  static const Method* find_method(std::string_view name);
  void on_line(std::string_view line);
  void on_unreadable(std::string_view line, const Error& error);
  void on_too_long(const Id& id);
  void on_batch(Json messages);
  void on_message(Json message, const std::shared_ptr<Batch>& batch);
  void on_request(Request request);
  void on_ping(Request&& request);
  void on_initialize(Request&& request);
  void on_discover(Request&& request);
  void on_list(Request&& request);
  void on_listen(Request&& request);
  void on_call(Request&& request);
  bool in_use(const Id& id);
  std::vector<CallPtr>::iterator find_open(const Id& id);
  void cancel(const Id& id);
  void refuse_line(const Id& id, int code, std::string_view message);

  // replies
  std::string modern_list_members() const;
  std::size_t most_bytes(const Request& request) const;
  void reply(const Request& request, std::string_view result);
  void fail(const Request& request, const RpcError& error);
  void fail(const Request& request, int code, std::string_view message);
  void deliver(Batch* batch, std::string text);
  void answer(const CallPtr& call, const ToolReply& reply);
  std::string answer_text(const OpenCall& call, const ToolReply& reply) const;
  ToolReply invoke(const CallPtr& call);
  void forget(const CallPtr& call);
  void log(std::string_view text);

  const ServerOptions options_;
  std::vector<ToolEntry> tools_ = {};
  const std::string server_info_;
  const CancelToken wake_ = {};   // ends the reading
  const CancelToken ended_ = {};  // the input has ended or the output is broken
  LineReader input_;
  const int in_fd_;
  const int out_fd_;
  Outbox outbox_;
  std::mutex log_mutex_;
  std::atomic<std::size_t> open_weight_{0};  // of all calls that are not answered

  // Of the reader alone.
  std::string negotiated_ = {};  // version that initialize agreed on; empty: not seen yet
  std::string client_ = {};      // that initialize has named, see Call::client()
  unsigned bad_lines_ = 0;       // in a row

  std::mutex mutex_;  // guards all that follows
  Phase phase_ = Phase::reading;
  int read_error_ = 0;
  std::vector<CallPtr> waiting_ = {};  // the next one first
  std::vector<CallPtr> open_ = {};     // calls that wait or run
  TextMap subscriptions_ = {};         // spellings of ids, by id

  std::deque<Thread> threads_ = {};  // the watch, then those of the pool
  std::condition_variable work_;     // there is a task
  std::condition_variable quiet_;    // a handler has returned, or a thread has ended
  std::size_t idle_ = 0;             // threads that wait for a task, also those that are called
  std::size_t running_ = 0;          // handlers
  const Thread* reader_ = nullptr;   // the thread that reads; null: the place is free

  std::condition_variable watch_needed_;  // a short call has begun while the watch sleeps
  bool watch_sleeps_ = false;
  CallPtr short_call_ = {};                  // that the reader runs now, or null
  Clock::time_point short_call_began_ = {};  // the last one
};

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
