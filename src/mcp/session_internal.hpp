// A session with a client: its calls and its threads.
//
// Threads take turns (leader and followers). One of them, the leader, reads. It answers by itself
// what takes no time; when it has read a tools/call it wakes a follower to go on reading and runs
// the handler itself. Waking costs more than a short call (17 us instead of 7 for a round trip), so
// nobody is woken for a tool whose last call took microseconds: the leader reads on afterwards.
// Against the call that takes longer this time, one idle thread keeps watch for as long as such
// calls come in, and takes over the reading from one that has not ended within a millisecond or
// two. When nothing comes in no thread wakes up.
//
// Replies are whole lines. Who has one writes it, as long as the client takes it at once; while
// somebody is writing, others only add to the queue. What the client does not take at once goes to
// the writer thread, the only one that ever waits for the client. A queue that is full holds up the
// handlers and then the leader, hence the client: memory stays bounded.
//
// Nothing is sent for a call once it is `done`, which is set, under the call's mutex, when its
// answer is taken for sending or when the client cancels it. A call leaves the table of open
// requests before its answer is sent, because the client may use the id again at once.
//
// serve() itself only waits: for the end of input, `stop`, or a reader who went away. It can thus
// return in time even if a handler does not.
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

// What a handler may know of its call.
struct Call::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;
  virtual void notify(double progress, std::optional<double> total, std::string_view text) = 0;

  std::shared_ptr<const Tool> tool = {};
  Json message = {};  // owns what the next two point to
  const Json* arguments = nullptr;
  Json converted = {};  // those that came under another name or as text; null: none
  const Json* meta = nullptr;
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
  void notify(double progress, std::optional<double> total, std::string_view text) override;

  std::shared_ptr<Session> session = {};
  std::shared_ptr<Batch> batch = {};  // null: answered by a line of its own
  bool more_follow = false;           // the client has sent more already
  ToolEntry* entry = nullptr;
  Id id = {};
  bool modern = false;
  std::size_t max_reply = 0;
  std::atomic<std::size_t> weight{0};  // bytes that its message takes, about; until it is answered

  ~OpenCall() override;

  std::mutex mutex = {};
  bool done = false;  // answered, or cancelled by the client: nothing more may be sent
  std::optional<double> last_progress = {};
  double notices_left = 32;
  Clock::time_point notices_counted = {};

  // True for the one who may end this call.
  bool finish() {
    const std::lock_guard<std::mutex> lock(mutex);
    return !std::exchange(done, true);
  }

  // A bucket of 32 notices that fills with 20 in a second. Needs the mutex.
  bool may_notify() {
    const Clock::time_point now = Clock::now();
    if (last_progress) {
      const std::chrono::duration<double> passed = now - notices_counted;
      notices_left = std::min(32.0, notices_left + 20 * passed.count());
    }
    notices_counted = now;
    if (notices_left < 1) return false;
    notices_left -= 1;
    return true;
  }
};

// session -----------------------------------------------------------------------------------------

using CallPtr = std::shared_ptr<OpenCall>;

// One serve(): the protocol's state, the threads and the descriptors.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const ServerOptions& options, const Tools& tools, int in_fd, int out_fd)
      : options_(options),
        server_info_(server_info_of(options)),
        reader_(in_fd, wake_.descriptor(), options.max_line),
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
  // One of the threads that take turns.
  struct Worker {
    pthread_t thread = {};
    bool ended = false;
  };

  // threads
  int add_worker();
  void work(Worker& self);
  void rest(std::unique_lock<std::mutex>& lock);
  void run_call(std::unique_lock<std::mutex>& lock, const CallPtr& call);
  bool call_a_thread();
  CallPtr lead();
  CallPtr take_waiting();
  void wait_for_the_end(const CancelToken& stop);
  void wait_until_quiet(std::chrono::milliseconds time);
  void cancel_everything();
  bool join_workers();

  // messages; only the leader comes here
  CallPtr on_line(std::string_view line);
  void on_unreadable(std::string_view line, const Error& error);
  void on_too_long(const Id& id);
  void on_batch(Json messages);
  CallPtr on_message(Json message, const std::shared_ptr<Batch>& batch);
  void on_notification(const Json& message);
  CallPtr on_request(Json message, Id id, const std::shared_ptr<Batch>& batch);
  CallPtr on_modern_request(Json message, Id id, const std::shared_ptr<Batch>& batch);
  CallPtr on_legacy_request(Json message, Id id, const std::shared_ptr<Batch>& batch);
  void on_initialize(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch);
  void on_list(const Json& params, const Id& id, bool modern, const std::shared_ptr<Batch>& batch);
  void on_listen(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch);
  CallPtr on_call(Json message, Id id, bool modern, const std::shared_ptr<Batch>& batch);
  CallPtr dispatch(CallPtr call);
  void cancel(const std::string& key);
  void refuse_line(const Id& id, int code, std::string_view message);

  // replies
  std::string discover_result() const;
  std::string list_result(bool modern) const;
  void reply(const std::shared_ptr<Batch>& batch, std::string_view id, std::string_view result);
  void fail(const std::shared_ptr<Batch>& batch, std::string_view id, const RpcError& error);
  void fail(const std::shared_ptr<Batch>& batch, std::string_view id, int code,
            std::string_view message);
  void deliver(const std::shared_ptr<Batch>& batch, std::string text);
  static void count_up(const std::shared_ptr<Batch>& batch);
  void count_down(Batch& batch);
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
  LineReader reader_;
  const int in_fd_;
  const int out_fd_;
  Outbox outbox_;
  std::mutex log_mutex_;

  // Of the leader alone.
  std::string negotiated_ = {};  // by initialize; empty: not seen yet
  std::string client_ = {};      // told by initialize, see Call::client()
  unsigned bad_lines_ = 0;       // in a row

  std::mutex mutex_;
  std::condition_variable work_;   // a thread is called
  std::condition_variable quiet_;  // a thread has ended, or no handler is running any more
  std::deque<Worker> workers_ = {};
  std::size_t idle_ = 0;
  std::size_t called_ = 0;  // idle ones that have been called and are not here yet
  std::size_t running_ = 0;
  bool leading_ = false;
  bool watched_ = false;           // an idle thread keeps watch
  std::uint64_t quick_calls_ = 0;  // run in the hope that they are short
  std::uint64_t calls_seen_ = 0;   // of them, by the watch
  bool input_ended_ = false;
  bool closing_ = false;
  int read_error_ = 0;
  std::atomic<std::size_t> open_weight_{0};   // of all calls that are not answered
  std::vector<CallPtr> waiting_ = {};         // the next one first
  std::map<std::string, CallPtr> open_ = {};  // calls by id
  TextMap subscriptions_ = {};                // spellings by id
};

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
