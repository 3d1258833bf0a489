// The server, and the streams it moves out of the way.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"
#include "mcp/session_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

// Moves descriptors 0 and 1 away while the server speaks through them, and back again.
class MovedStreams {
 public:
  MovedStreams() = default;
  MovedStreams(const MovedStreams&) = delete;
  MovedStreams& operator=(const MovedStreams&) = delete;
  ~MovedStreams() {
    for (int fd = 0; fd < 2; ++fd)
      if (moved_[fd]) duplicate(moved_[fd].get(), fd);
  }

  // Returns the descriptor to use in place of `fd`, or -1 and errno.
  int take(int fd) {
    if (fd != 0 && fd != 1) return ::fcntl(fd, F_GETFD) < 0 ? -1 : fd;
    if (moved_[fd]) return moved_[fd].get();
    UniqueFd away(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!away) return -1;
    UniqueFd null(above_standard_streams(::open("/dev/null", O_RDWR | O_CLOEXEC)));
    has_null_ = static_cast<bool>(null);
    if (!null) return -1;
    if ((fd == 0 || !duplicate(2, 1)) && !duplicate(null.get(), fd)) return -1;
    moved_[fd] = std::move(away);
    return moved_[fd].get();
  }
  // The error of take(), for the option of that name.
  Error error(const char* option) const {
    return system_error(errno, "ServerOptions::%%", {option, has_null_ ? "" : ": /dev/null"});
  }

 private:
  // EBUSY: another thread is just opening a file under this number.
  static bool duplicate(int from, int to) {
    while (::dup2(from, to) < 0)
      if (errno != EINTR && errno != EBUSY) return false;
    return true;
  }
  UniqueFd moved_[2] = {};
  bool has_null_ = true;
};

}  // namespace

struct Server::State {
  ServerOptions options = ServerOptions();
  Tools tools = {};
  std::atomic<bool> serving{false};
};

Server::Server(ServerOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}

Server::~Server() = default;

Expected<void> Server::add(Tool tool) {
  const auto refuse = [&](std::string_view problem) {
    return make_error(ErrorCode::invalid_argument, "tool %: %", {in_quotes(tool.name), problem});
  };
  if (state_->serving.load()) return refuse("cannot be added while serving"sv);
  const std::string problem = tool_problem(tool);
  if (!problem.empty()) return refuse(problem);
  for (const auto& other : state_->tools)
    if (other->name == tool.name) return refuse("is there already"sv);
  state_->tools.push_back(new_shared<const Tool>(std::move(tool)));
  return {};
}

Expected<void> Server::serve(const CancelToken& stop) {
  const ServerOptions& options = state_->options;
  const auto refuse = [](const char* what) {
    return make_error(ErrorCode::invalid_argument, "ServerOptions::%", {what});
  };
  if (options.name.empty()) return refuse("name must not be empty");
  if (options.max_line == 0) return refuse("max_line must be greater than 0");
  if (options.max_reply < smallest_reply) return refuse("max_reply must be at least 4096");
  if (options.max_concurrent == 0) return refuse("max_concurrent must be greater than 0");
  if (state_->serving.exchange(true))
    return make_error(ErrorCode::invalid_argument, "serve: the server is serving already");
  const Expected<void> result = [&]() -> Expected<void> {
    MovedStreams streams;
    const int in_fd = streams.take(options.in_fd);
    if (in_fd < 0) return streams.error("in_fd");
    const int out_fd = streams.take(options.out_fd);
    if (out_fd < 0) return streams.error("out_fd");
    return std::make_shared<Session>(options, state_->tools, in_fd, out_fd)->run(stop);
  }();
  state_->serving.store(false);
  return result;
}

}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
