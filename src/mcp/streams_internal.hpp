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

// Finds the top-level "id" in a message that cannot be parsed or kept, in pieces of any size. It
// looks only as far as the message still has the shape of an object.
class IdScanner {
 public:
  void feed(std::string_view bytes) {
    for (const char c : bytes) step(c);
  }

  // The id, or an empty one.
  Id id() const;

 private:
  enum class Expect { object, name, colon, value, nothing };

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void step(char c);

  // A byte order mark may precede the object.
  void begin(char c);

  void begin_string();

  void step_in_string(char c);

  void end_string();

  void step_structure(char c);

  void keep(char c) {
    if (token_.size() <= longest_id) token_ += c;
  }

  Expect expect_ = Expect::object;
  std::size_t depth_ = 0;
  bool broken_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_number_ = false;
  bool keeping_ = false;
  bool is_id_ = false;
  std::string token_ = {};
  std::string found_ = {};
};

// Whether a call that failed is to be made again: it was interrupted, or there was no memory for
// it, which this waits for.
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
  Id skipped_id() const { return scanner_.id(); }
  int error() const { return error_; }

 private:
  static constexpr std::size_t small_buffer = 65536;
  static constexpr std::size_t big_buffer = 4 * small_buffer;

  bool find_newline(std::string_view& line);

  // A last line without newline counts.
  Event last_line(std::string_view& line);

  void strip_byte_order_mark(std::string_view& line);

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

// A thread that can be made without exceptions. `run` must not throw.
template <class F>
int start_own_thread(pthread_t& thread, F run) {
  auto boxed = std::make_unique<F>(std::move(run));
  const auto body = [](void* argument) -> void* {
    const std::unique_ptr<F> mine(static_cast<F*>(argument));
    (*mine)();
    return nullptr;
  };
  const int error = pthread_create(&thread, nullptr, body, boxed.get());
  if (error == 0) boxed.release();
  return error;
}

// Whole lines to one descriptor from many threads; see the head of this section.
class Outbox {
 public:
  // `broken` is cancelled when nobody reads any more.
  Outbox(int fd, std::size_t limit, CancelToken broken)
      : fd_(fd), limit_(limit), broken_(std::move(broken)) {}

  // Starts the writer thread; 0 or an errno.
  int start();

  // Queues a line and writes what can be written at once. Waits while the queue is full.
  void send(std::string line);

  // Queues a line for a write that comes soon: of the next send() or of push().
  void send_later(std::string line);

  // Writes what can be written at once.
  void push();

  // Never waits: drops the line instead when the client is behind.
  void offer(std::string line);

  // True when somebody waits for room and nothing was written since the last question.
  bool stuck();

  // From now on a full queue drops instead of waiting.
  void stop_waiting();

  // Waits until everything is written or the time is over.
  void flush(std::chrono::milliseconds time);

  // Drops what is left. Afterwards the descriptor is not touched any more.
  void close();

 private:
  // After poll() says so, a pipe or socket takes this much without blocking.
  static constexpr std::size_t step = 4096;

  bool fits(std::size_t size, std::size_t limit) const {
    return held_ == 0 || held_ + size <= limit;
  }

  void add(std::string line);

  void discard();

  // Writes the queue unless somebody does already, who then takes the new line along.
  void drain(std::unique_lock<std::mutex>& lock);

  // Writes what is queued; false when the client does not take it all at once, or is gone.
  bool write_part(std::unique_lock<std::mutex>& lock, bool wait);

  // 0, or the errno that ends it all. `done` tells how far it came.
  int write_bytes(std::string_view bytes, std::size_t& done, bool wait);

  // The writer thread.
  void write_what_is_left();

  const int fd_;
  const std::size_t limit_;
  const CancelToken broken_;
  const CancelToken quit_ = {};
  pthread_t writer_ = {};
  bool started_ = false;
  std::mutex mutex_;
  std::condition_variable room_;         // something was written, or the end has come
  std::condition_variable handed_over_;  // the writer thread has to go on
  std::string queue_ = {};
  std::size_t held_ = 0;             // bytes queued or being written
  std::size_t waiting_ = 0;          // threads in send() for want of room
  std::uint64_t written_ = 0;        // bytes so far
  std::uint64_t written_asked_ = 0;  // of them, when stuck() was last asked
  bool writing_ = false;             // somebody takes what is queued
  bool handed_ = false;              // and that is the writer thread
  bool patient_ = true;
  bool closed_ = false;
};

// The replies to one batch, sent together when the last is there.
struct Batch {
  std::mutex mutex = {};
  std::size_t open = 1;   // requests not answered yet, and one for the reading of the batch itself
  std::size_t share = 0;  // bytes of each reply
  std::string replies = {};
};

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
