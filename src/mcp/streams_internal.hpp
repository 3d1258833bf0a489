// Ids of requests, the lines that come in, the replies that go out.
#pragma once

#include "mcp/mcp_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

// A request's id as it is echoed, and as it is looked up: 1 and "1" differ, 1 and 1.0 do not.
struct Id {
  std::string spelling = {};  // JSON; empty: not a valid id
  std::string key = {};
};

Id id_of(const Json& value);

// True for a number without a fraction, however large.
bool is_whole(const Json& value);

// Finds the top-level "id" of a message that cannot be parsed or kept. The message comes in pieces
// of any size. Each member of the outermost object is collected without what is nested in it, and a
// member that turns out to be the id is parsed on its own. What follows the object is ignored.
class IdScanner {
 public:
  void feed(std::string_view bytes);

  // The id, or an empty one.
  const Id& id() const { return id_; }

 private:
  // True while the member is shorter than any that can be the id with a valid value.
  bool has_room() const { return member_.size() < longest_id + 64; }

  void end_member();

  std::size_t depth_ = 0;  // of open brackets; 0: before the outermost object
  bool in_string_ = false;
  bool escaped_ = false;
  bool ended_ = false;  // the object has ended, or there is none
  std::string member_ = {};
  Id id_ = {};
};

// True if a system call that failed should be made again: a signal has interrupted it, or there was
// no memory, in which case this waits a millisecond first.
bool may_try_again(int error);

// Splits a descriptor's bytes into lines. The buffer grows to hold the longest line and shrinks
// afterwards; every byte is looked at once. One thread at a time.
class LineReader {
 public:
  enum class Event { line, too_long, end, interrupted, failed };

  // Reading stops when `wake` becomes readable.
  LineReader(int fd, int wake, std::size_t longest) : fd_(fd), wake_(wake), longest_(longest) {}

  // The next line, without its newline, is valid until the next call.
  Event next(std::string_view& line);

  // Whether next() would have a line without reading.
  bool has_line() const {
    return scanned_ != end_ && std::memchr(buffer_.get() + scanned_, '\n', end_ - scanned_);
  }

  // After too_long: the id of the line that was skipped.
  const Id& skipped_id() const { return scanner_.id(); }
  int error() const { return error_; }

 private:
  static constexpr std::size_t small_buffer = 65536;
  static constexpr std::size_t big_buffer = 4 * small_buffer;

  bool find_newline(std::string_view& line);

  // A last line without newline counts.
  Event last_line(std::string_view& line);

  // The line up to `stop`; the next one begins at `next`. Drops a byte order mark before the first.
  std::string_view take_line(std::size_t stop, std::size_t next);

  void skip(std::string_view bytes);

  Event fill();

  Event fail();

  // Moves or copies the rest only after at least as much was consumed or read: linear in all.
  void make_room();

  int fd_;
  int wake_;
  std::size_t longest_;
  std::unique_ptr<char[]> buffer_ = {};
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;    // of the line being collected
  std::size_t scanned_ = 0;  // no newline before this
  std::size_t end_ = 0;
  bool first_ = true;
  bool ended_ = false;
  bool skipping_ = false;
  IdScanner scanner_ = {};
  int error_ = 0;
};

// Starts a thread, without exceptions. `run` must not throw. Returns 0 or an errno.
int start_own_thread(pthread_t& thread, Function<void()> run);

// Writes whole lines to one descriptor, for many threads. A sender adds its line to the queue and
// writes the queue as long as the client takes it at once; the rest is left to the writer thread,
// the only one that waits for the client.
//
//   send() ---> queue ---> write_at_once() ---> client        the mutex is held, nothing blocks
//                 |              ^
//                 |  behind_     | the client reads again
//                 +------> writer thread: poll()              the mutex is not held
//
// While the client is behind, senders only add to the queue. When the queue is full they wait,
// which holds up handlers and then the reader, hence the client: the memory is bounded by `limit`.
class Outbox {
 public:
  // `broken` is cancelled when the client no longer reads.
  Outbox(int fd, std::size_t limit, CancelToken broken)
      : fd_(fd), limit_(limit), broken_(std::move(broken)) {}

  // Starts the writer thread. Returns 0 or an errno.
  int start();

  // Queues a line and writes what can be written at once. Waits while the queue is full.
  void send(std::string line);

  // Queues a line that the next send() or push() writes, so that small lines go out together.
  void send_later(std::string line);

  // Writes what can be written at once.
  void push();

  // Never waits: drops the line if the client is behind.
  void offer(std::string line);

  // True if a thread waits for room and nothing was written since the last call.
  bool stuck();

  // From now on a full queue drops lines; senders no longer wait.
  void stop_waiting();

  // Waits until everything is written or the time is over.
  void flush(std::chrono::milliseconds time);

  // Drops what is left. Afterwards the descriptor is not used any more.
  void close();

 private:
  enum class State {
    open,    // a full queue makes senders wait
    ending,  // a full queue drops lines
    closed,  // nothing is written any more
  };

  // A pipe or socket that poll() reports as writable takes this much without blocking.
  static constexpr std::size_t step = 4096;

  // All of these need the mutex.
  std::size_t held() const { return queue_.size() - written_; }
  bool fits(std::size_t size, std::size_t limit) const {
    return held() == 0 || held() + size <= limit;
  }
  void add(std::string line);
  void write_at_once();
  bool write_step(HeldSignal& guard);
  void end();

  void wait_for_client();  // the writer thread

  const int fd_;
  const std::size_t limit_;
  const CancelToken broken_;
  const CancelToken quit_ = {};
  pthread_t writer_ = {};
  bool started_ = false;
  std::mutex mutex_;
  std::condition_variable room_;    // something was written, or the state has changed
  std::condition_variable needed_;  // the writer thread has to wait for the client, or to end
  State state_ = State::open;
  std::string queue_ = {};
  std::size_t written_ = 0;  // bytes at the front of the queue that are gone already
  bool behind_ = false;      // the client has not taken all at once
  std::size_t waiting_ = 0;  // threads in send() that wait for room
  bool progress_ = false;    // something was written since stuck() was last asked
};

// The replies to one batch. They are sent when no request of it is open any more, nor its reading:
// each has a reference, which it drops once it is answered or cancelled.
struct Batch {
  Batch(Outbox& out, std::size_t bytes) : outbox(out), share(bytes) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();

  Outbox& outbox;
  const std::size_t share;  // bytes of each reply
  std::mutex mutex = {};
  std::string replies = {};
};

// A request that was read, and where its answer goes.
struct Request {
  const Json& params() const { return message["params"sv]; }

  Json message = {};
  Id id = {};
  std::shared_ptr<Batch> batch = {};  // null: answered by a line of its own
  bool modern = false;                // its era
};

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
