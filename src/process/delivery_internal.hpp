// How what a started program brings gets to its callbacks, off the thread that watches programs.
//
//   engine thread                            delivery thread
//   put() beat() end()  -->  Mailbox  -->    take(): on_output, on_heartbeat, hashes; after the
//                                            last of it the end of the command, and on_end
//
// A mailbox is bounded. When it is full, the engine reads no more of that command's output until
// take() has made room: a slow callback slows its own command by the pipe, and no other one.
#pragma once

#include "process/process.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// What waits to be delivered of one command. Thread-safe.
class Mailbox {
 public:
  // Of output that waits; one more read of a pipe may come on top.
  static constexpr std::size_t most_bytes = std::size_t{256} << 10;

  struct Piece {
    Stream stream;
    std::size_t size;
  };
  struct Content {
    std::string bytes = {};
    std::vector<Piece> pieces = {};  // of `bytes`, in their order
    bool beat = false;               // a heartbeat is due; two of them are one
    bool has_room = false;           // the engine waits for the room that this makes
    void clear() {
      bytes.clear();
      pieces.clear();
      beat = has_room = false;
    }
    void visit(FunctionRef<void(Stream, std::string_view)> visitor) const;
  };

  void put(Stream stream, std::string_view bytes);
  void beat();
  void end();  // no more will come

  // How many bytes may be put now. 0: the next take() says that there is room.
  std::size_t room();
  // Whether there is something to deliver that no delivery thread knows of yet. It knows from here
  // on, until rest() has returned true.
  bool claim();
  void unclaim();  // the delivery thread does not know of it
  // Takes what waits. The memory of what was taken before is used for what comes next.
  void take(Content& content);
  // Gives back that memory, and that of `content`, as a handle may be kept for long after the end.
  void free(Content& content);
  // Whether there is nothing more to deliver now; claim() says when there is again. `ended`: nor
  // will there ever be, and nothing is claimed any more.
  bool rest(bool& ended);
  // Since when nothing waits to be delivered; now, if something does.
  std::chrono::steady_clock::time_point quiet_since();

 private:
  bool is_empty() const { return content_.pieces.empty() && !content_.beat; }

  std::mutex mutex_ = {};
  Content content_ = {};
  bool ended_ = false;
  bool claimed_ = false;
  std::chrono::steady_clock::time_point quiet_since_ = {};
};

// A thread that does tasks in the order in which they are added.
class TaskThread {
 public:
  // Whether its tasks call back: see in_event_thread().
  enum class Kind { calls_back, other };
  using Task = std::list<Function<void()>>;  // a list of one, or of none once it is added

  explicit TaskThread(Kind kind) : kind_(kind) {}
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  // Does all that was added, then ends the thread and waits for that.
  ~TaskThread();

  // Starts the thread, unless it runs. Returns an errno.
  int begin();
  // Takes no memory, as what has begun must go on without.
  void add(Task&& task) noexcept;
  static Task task(Function<void()> function);

 private:
  static void* thread_main(void* self);
  void loop();

  const Kind kind_;
  std::mutex mutex_ = {};
  std::condition_variable added_ = {};
  Task tasks_ = {};
  pthread_t thread_ = {};
  bool runs_ = false;
  bool ending_ = false;
};

}  // namespace v0_1
}  // namespace codeexec
