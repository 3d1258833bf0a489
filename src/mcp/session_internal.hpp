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
//                                     +--- a person is asked
//                                     v          |
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
  virtual Expected<Json> ask(std::string_view message, const Json& schema,
                             std::chrono::milliseconds timeout) = 0;
  virtual Function<void(std::string_view, const Json&)> announcer() const = 0;
  virtual Expected<std::shared_ptr<const Json>> roots(std::chrono::milliseconds timeout) = 0;
  static Call handle(std::shared_ptr<State> call) { return Call(std::move(call)); }

  std::shared_ptr<const Tool> tool = {};
  const Json* arguments = nullptr;  // in the request
  Json converted = {};              // those that came under another name or as text; null: none
  const Json* meta = nullptr;       // in the request
  std::size_t max_result = 0;
  bool wants_progress = false;
  bool runs_as_task = false;
  std::string request_id = {};  // JSON
  std::string client = {};
  CancelToken cancel = {};
};

inline namespace inner {

class Session;

// A tool as a session knows it.
struct ToolEntry {
  std::shared_ptr<const Tool> tool = {};
  bool quick = false;  // its last call was; needs the pool's mutex
};

// A call of a session.
struct OpenCall : Call::State {
  ~OpenCall() override;
  void notify(double progress, std::optional<double> total, std::string_view text) override;
  Expected<Json> ask(std::string_view message, const Json& schema,
                     std::chrono::milliseconds timeout) override;
  Function<void(std::string_view, const Json&)> announcer() const override;
  Expected<std::shared_ptr<const Json>> roots(std::chrono::milliseconds timeout) override;

  // True for the one caller that may end this call.
  bool finish() {
    const std::lock_guard<std::mutex> lock(mutex);
    return !std::exchange(done, true);
  }

  bool is_done() {
    const std::lock_guard<std::mutex> lock(mutex);
    return done;
  }
  bool is_task() {
    const std::lock_guard<std::mutex> lock(mutex);
    return task;
  }

  // The member of the `_meta` of what is sent about a task of the legacy era; else empty.
  std::string related_task() const;

  // Takes one of the notices that the call may send. False: none is left. Needs the mutex.
  bool may_notify();

  std::shared_ptr<Session> session = {};
  Request request = {};
  bool by_reader = false;              // a short call
  bool can_ask = false;                // the client, a person
  bool has_roots = false;              // the client
  ToolEntry* entry = nullptr;          // in the session
  std::atomic<std::size_t> weight{0};  // bytes that its message takes, about; until it is answered

  std::mutex mutex = {};
  // Answered, cancelled by the client, or the client must ask again: nothing may be sent.
  bool done = false;
  bool task = false;  // the answer was that it is one
  std::optional<double> last_progress = {};
  double notices_left = 32;
  Clock::time_point notices_counted = {};
  std::string progress_token = {};  // JSON; empty: no progress wanted

  // When it becomes a task; max(): never. Needs the mutex of the pool, as the next one.
  Clock::time_point task_at = Clock::time_point::max();
  bool hidden = false;  // cannot be found by its id

  // The task that it has become; needs the mutex of Tasks. In the legacy era the id is there before
  // the call begins.
  std::string task_id = {};
  std::string task_began = {};
  std::string task_changed = {};
  Clock::time_point task_expires = {};
  std::string outcome = {};  // the member that the result is in; empty: it works
  bool tool_failed = false;  // by that result

  // The open question; needs the mutex of Questions.
  std::string question_key = {};  // empty: there is none
  std::string question = {};      // the member of a result that asks it
  Json answer = {};
};

// session -----------------------------------------------------------------------------------------

using CallPtr = std::shared_ptr<OpenCall>;

// Questions of handlers to the client, by a key: the id of our request, or the requestState of the
// modern era. A question is in the table until it is settled, by the reader who has its answer, or
// dropped, by the one who cancels the call or finds that time is over: the first of them wins.
class Questions {
 public:
  Expected<void> add(OpenCall& call, std::string key, std::string question);

  // Waits until the question has left the table. Returns 0, ETIMEDOUT or ECANCELED.
  int wait(OpenCall& call, std::chrono::milliseconds timeout);

  // Calls `settle` with the call that has the open question of this key, if there is one. If it
  // returns true, the question is settled.
  void settle(std::string_view key, FunctionRef<bool(OpenCall&)> settle);

  // The open question of the call, a member of a result, or an empty text.
  std::string question_of(const OpenCall& call);

  // Settles the question of a call with one of these answers, if it is there.
  void answer(const OpenCall& call, const Json& responses);

  void drop(const OpenCall& call);

  // Drops all of them: the client answers no more.
  void end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<OpenCall*> open_ = {};  // their handlers wait, so they live
  bool ended_ = false;
};

// The roots of the client, and the request for them that is open. Who asks, asks for all calls; who
// needs them, waits for the answer.
//
//   state      event                     next state  what happens
//   not asked  begin()                   open        the caller sends the request
//   open       begin(), in time          open        it is asked again after the answer
//   open       begin(), too late         open        the caller sends another; the first is void
//   open       settle(): the answer      answered    the list is kept, and waiters go on with it
//   open       wait() is over            open        the waiter goes on; a late answer counts
//   answered   begin()                   open        the list is kept until the next answer
class Roots {
 public:
  using List = std::shared_ptr<const Json>;

  // True if the caller must send a request with this key. `first`: unless it was asked before.
  bool begin(std::string key, bool first);

  // True if this is the key of the open request, and `message` its answer. With `again`, another
  // one must be sent.
  bool settle(std::string_view key, const Json& message, bool& again);

  // Whether wait() returns at once.
  bool is_settled();

  Expected<List> wait(std::chrono::milliseconds timeout);

  // The client answers no more.
  void end();

 private:
  // Needs the mutex.
  bool is_open() const { return !ended_ && (!key_.empty() || again_); }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string key_ = {};  // of the open request; empty: none is open
  bool again_ = false;
  bool asked_ = false;
  bool ended_ = false;
  Clock::time_point asked_at_ = {};
  List known_ = {};
};

// Calls that have become tasks, of both eras: their client has the id of one in place of the
// result, and asks for it. A task leaves the table an hour after its beginning, or when it has
// ended and others need its place.
class Tasks {
 public:
  Tasks(Outbox& outbox, const ServerOptions& options) : outbox_(outbox), options_(options) {}

  // Gives the call the id of a task. False: there is no place.
  bool add(const CallPtr& call);

  // Adds a call of 2025-11-25 and answers its request with the task, before the call begins. False:
  // there is no place.
  bool begin(const CallPtr& call);

  void remove(const OpenCall& call);

  void end();

  // A task of a client of this era.
  CallPtr find(std::string_view id, bool modern);

  // Those of 2025-11-25, the oldest first.
  std::vector<CallPtr> list();

  // Keeps the answer of a call, the text of a reply, if it is a task that works. `tool_failed`: the
  // result says so. Returns the requests that wait for it.
  std::vector<Id> complete(OpenCall& call, const std::string& text, bool tool_failed);

  // Ends it as cancelled. False: it does not work any more.
  bool cancel(OpenCall& call, std::vector<Id>& requests);

  // Whether the task has ended. If not, the request waits for that; `id` stays if it cannot.
  bool await(const CallPtr& call, Id& id);

  // Answers a request for the result of a task that has ended.
  void send_result(const Id& id, const OpenCall& call);

  // Of the requests that wait.
  bool has_request(const Id& id);
  void remove_request(const Id& id);

  // The members that say how it is; `question` is the open one, or empty.
  std::string describe(const OpenCall& call, std::string_view question);

 private:
  const char* status_of(const OpenCall& call, bool asks) const;
  void drop_expired();
  std::vector<Id> take_requests(const OpenCall& call);

  Outbox& outbox_;
  const ServerOptions& options_;
  std::mutex mutex_ = {};
  std::vector<CallPtr> tasks_ = {};                    // the oldest first
  std::vector<std::pair<Id, CallPtr>> requests_ = {};  // that wait for the end of a task
};

// The clients that listen: the subscriptions of the modern era, and the log level of the other. It
// gives each what it has asked for.
class Listeners {
 public:
  Listeners(Outbox& outbox, const ServerOptions& options) : outbox_(outbox), options_(options) {}

  void set_level(const std::string& level);

  bool has(const Id& id);

  // Adds a subscription and acknowledges what of it is honoured. False: there are too many.
  bool add(const Id& id, const Json& uris);

  void remove(const Id& id);

  // Removes all. Returns the spellings of their ids, by id.
  TextMap end();

  void announce(std::string_view uri, const Json& data);

 private:
  Outbox& outbox_;
  const ServerOptions& options_;
  std::mutex mutex_;
  bool wants_log_ = false;
  TextMap subscriptions_ = {};  // spellings of ids, by id
  TextMap uris_ = {};           // each between newlines, by the spelling of the id
};

// The threads of a session, and the table of calls that wait or run. Gives each thread its next
// task, as the head of this file draws it; what a task does is the session's.
class Pool {
 public:
  struct Thread {
    pthread_t thread = {};
    bool ended = false;
  };

  Pool(Session& session, const ServerOptions& options) : session_(session), options_(options) {}

  // Starts the first threads. Returns 0 or an errno.
  int start();

  // True while the thread has the reader's place.
  bool reads(const Thread& self);

  // Ends the reader's place, as there is no more input. `error`: an errno, or 0.
  void stop_reading(int error);

  // Runs a call that is short, or gives another one to the workers. Returns why it does neither, or
  // an empty text.
  std::string accept(const CallPtr& call);

  bool has(const Id& id);

  // Takes the call out of the table, if it is still there: not if the client has cancelled it.
  void remove(const OpenCall& call);

  // From now on the call cannot be found.
  void hide(OpenCall& call);

  // Gives the call another id, and returns the old one. With an empty id it cannot be found.
  Id readdress(OpenCall& call, Id id);

  // A handler begins to wait for a person, and ends: meanwhile another one may run in its place.
  void begin_waiting(const OpenCall& call);
  void end_waiting();

  // Takes the call with this id out of the table, also if it waits. Null if there is none.
  CallPtr withdraw(const Id& id, bool& was_waiting);

  // The input has ended, and the calls go on.
  bool is_draining();

  // No call begins from now on. `waiting`: those that will not; `open`: with those that run.
  void close(std::vector<CallPtr>& waiting, std::vector<CallPtr>& open);

  void wait_until_quiet(std::chrono::milliseconds time);

  // False if a thread is still in a handler. It is detached, and owns a reference to the session.
  bool join();

  // Why reading has failed: an errno, or 0. After join().
  int read_error() const { return read_error_; }

 private:
  enum class Task { read, run, end };
  enum class Phase {
    reading,   // messages are read and served
    draining,  // the input has ended: calls that run or wait go on
    closing,   // the session ends: all calls are cancelled, and no other begins
  };

  int add_thread(void (Pool::*body)(const Thread&));
  void call_worker();
  void work(const Thread& self);
  Task next_task(const Thread& self, CallPtr& call);
  void run_call(const CallPtr& call);
  void watch_short_calls(const Thread&);
  void make_task(std::unique_lock<std::mutex>& lock, Clock::time_point due);
  std::vector<CallPtr>::iterator find_open(const Id& id);

  Session& session_;
  const ServerOptions& options_;

  std::mutex mutex_;  // guards all that follows
  Phase phase_ = Phase::reading;
  int read_error_ = 0;
  std::vector<CallPtr> waiting_ = {};  // the next one first
  std::vector<CallPtr> open_ = {};     // calls that wait or run

  std::deque<Thread> threads_ = {};  // the watch, then those of the pool
  std::condition_variable work_;     // there is a task
  std::condition_variable quiet_;    // a handler has returned, or a thread has ended
  std::size_t idle_ = 0;             // threads that wait for a task, also those that are called
  std::size_t running_ = 0;          // handlers
  std::size_t asking_ = 0;           // those that wait for a person
  const Thread* reader_ = nullptr;   // the thread that reads; null: the place is free

  std::condition_variable watch_needed_;  // a short call has begun while the watch sleeps
  bool watch_sleeps_ = false;
  CallPtr short_call_ = {};                  // that the reader runs now, or null
  Clock::time_point short_call_began_ = {};  // the last one
};

// The way out of a session: the texts of its replies, and where they go.
class Replies {
 public:
  void send_progress(OpenCall& call, double progress, std::optional<double> total,
                     std::string_view message);

 protected:
  Replies(const ServerOptions& options, int out_fd)
      : options_(options),
        server_info_(server_info_of(options)),
        outbox_(out_fd, options.max_queued, ended_) {}

  std::string modern_list_members() const;
  std::size_t most_bytes(const Request& request) const;
  void reply(const Request& request, std::string_view result);
  void acknowledge(const Request& request, std::string_view members);
  void fail(const Request& request, const RpcError& error);
  void fail(const Request& request, int code, std::string_view message);
  void deliver(Batch* batch, std::string text);
  std::string answer_text(const OpenCall& call, ToolResult& result) const;
  std::string question_text(const OpenCall& call) const;
  void log(std::string_view text);

  const ServerOptions options_;
  const std::string server_info_;
  // The member of `_meta` that all results of the modern era have.
  const std::string own_meta_ = concat("\"%\":%", {server_info_key, server_info_});
  const CancelToken ended_ = {};  // the input has ended or the output is broken
  Outbox outbox_;

 private:
  std::mutex log_mutex_;
};

// The requests about tasks. The session has the calls that become tasks.
class TaskRequests : protected Replies {
 protected:
  using Replies::Replies;

  void on_task_get(Request&& request);
  void on_task_update(Request&& request);
  void on_task_cancel(Request&& request);
  void on_task_result(Request&& request);
  void on_task_list(Request&& request);
  CallPtr task_of(const Request& request);
  void task_changed(const OpenCall& call, const std::vector<Id>& requests = {});

  Questions questions_ = {};
  Tasks tasks_{outbox_, options_};
};

// One serve(): the protocol's state and the descriptors. It reads messages and answers them, on the
// threads of its pool.
class Session : public std::enable_shared_from_this<Session>, private TaskRequests {
 public:
  Session(const ServerOptions& options, const Tools& tools, int in_fd, int out_fd)
      : TaskRequests(options, out_fd),
        input_(in_fd, wake_.descriptor(), options.max_line),
        in_fd_(in_fd),
        out_fd_(out_fd) {
    for (const auto& tool : tools) tools_.push_back({tool});
  }

  Expected<void> run(const CancelToken& stop);

  using Replies::send_progress;

  void release(OpenCall& call) { open_weight_.fetch_sub(call.weight.exchange(0)); }

  Expected<Json> elicit(OpenCall& call, std::string_view message, const Json& schema,
                        std::chrono::milliseconds timeout);

  Expected<Roots::List> roots(OpenCall& call, std::chrono::milliseconds timeout);

  // Answers the request of a call of the modern era with a task, if it is not answered yet.
  void make_task(const CallPtr& call);

  void announce(std::string_view uri, const Json& data) { listeners_.announce(uri, data); }

  // The tasks of the pool's threads: to read until the thread has lost the reader's place, and to
  // run a call and answer it. run_call() is true if the handler was short.
  void read_input(const Pool::Thread& self);
  bool run_call(const CallPtr& call);

 private:
  void wait_for_the_end(const CancelToken& stop);
  void cancel_everything();

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
  // As Call::client() has it.
  std::string client_of(const Request& request) const;
  void on_list(Request&& request);
  void on_listen(Request&& request);
  void on_set_level(Request&& request);
  void on_call(Request&& request);
  void on_retry(Request&& request);
  void on_response(const Json& message);
  void on_notification(std::string_view method, const Json& params);
  void ask_for_roots(bool first);
  Expected<Json> ask(OpenCall& call, const std::string& request, std::chrono::milliseconds timeout);
  bool in_use(const Id& id);
  // Whether the client may have the tasks of 2025-11-25.
  bool has_tasks(const Request& request) const {
    return !request.modern && negotiated_ == newest_legacy_version;
  }
  bool park(OpenCall& call);
  void cancel(const Id& id);
  void refuse_line(const Id& id, int code, std::string_view message);

  // calls
  void answer(const CallPtr& call, ToolResult reply);
  ToolResult invoke(const CallPtr& call);

  std::vector<ToolEntry> tools_ = {};
  const CancelToken wake_ = {};  // ends the reading
  LineReader input_;
  const int in_fd_;
  const int out_fd_;
  Pool pool_{*this, options_};
  Roots roots_ = {};
  Listeners listeners_{outbox_, options_};
  std::atomic<unsigned> asked_{0};             // requests of ours
  std::atomic<std::size_t> open_weight_{0};    // of all calls that are not answered
  std::atomic<bool> has_roots_{false};         // the client of initialize, see Call::roots()
  std::atomic<std::size_t> roots_waiters_{0};  // calls that wait for them

  // Of the reader alone.
  std::string negotiated_ = {};  // version that initialize agreed on; empty: not seen yet
  std::string client_ = {};      // that initialize has named, see Call::client()
  bool can_ask_ = false;         // the client of initialize, see Call::elicit()
  unsigned bad_lines_ = 0;       // in a row
};

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
