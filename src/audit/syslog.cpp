// The log of the system: a message for each record, to its local socket.
//
//   <86>1 2026-01-02T03:04:05.678Z HOST codeexec PID audit - {"time":...,"hash":"..."}
//
// RFC 5424: facility 10 (authorisation, private), severity 6 (informational), and 4 (warning) for
// what was refused. The message is one line of JSON, at most 32 KiB of it. A daemon reads datagrams
// or a stream, which then has a line for each message. It may be restarted: what cannot be sent is
// tried once more on a new connection.

#include "audit/audit.hpp"
#include "audit/audit_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Of a command and of code in a message, and of the whole message.
constexpr std::size_t longest_syslog_text = std::size_t{2} << 10;
constexpr std::size_t longest_message = std::size_t{32} << 10;

// A daemon that has gone away is an error, and no SIGPIPE.
#ifdef MSG_NOSIGNAL
constexpr int no_signal = MSG_NOSIGNAL;
bool send_without_signal(int) { return true; }
#else
constexpr int no_signal = 0;
bool send_without_signal(int fd) {
  const int on = 1;
  return ::setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) == 0;
}
#endif

// A name in the header: printable ASCII without blanks, at most 255 of them; "-" for none.
std::string header_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 255))
    if (c > ' ' && c < '\x7f') name += c;
  return name.empty() ? "-" : name;
}

}  // namespace

inline namespace inner {

Expected<void> AuditSyslog::open(const std::string& path) {
  if (path.size() >= sizeof sockaddr_un::sun_path || has_nul(path))
    return make_error(ErrorCode::invalid_argument, "audit_syslog: % is too long, or has a NUL byte",
                      {in_quotes(path)});
  path_ = path;
  if (const int error = connect(); error != 0)
    return system_error(error, "audit_syslog: cannot connect to %", {in_quotes(path)});
  return {};
}

// An errno, or 0.
int AuditSyslog::connect() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  int error = 0;
  for (const int type : {SOCK_DGRAM, SOCK_STREAM}) {
    UniqueFd made(above_standard_streams(::socket(AF_UNIX, type, 0)));
    if (!made) return errno;
    if (::fcntl(made.get(), F_SETFD, FD_CLOEXEC) != 0 ||
        ::fcntl(made.get(), F_SETFL, O_NONBLOCK) != 0 || !send_without_signal(made.get()))
      return errno;
    if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      socket_ = std::move(made);
      is_stream_ = type == SOCK_STREAM;
      return 0;
    }
    error = errno;
    if (error != EPROTOTYPE) break;
  }
  return error;
}

// An errno, or 0. A part of a message in a stream is the end of that connection.
int AuditSyslog::write(std::string_view message) const {
  if (!socket_) return ENOTCONN;
  const ssize_t sent =
      ::send(socket_.get(), message.data(), message.size(), no_signal | MSG_DONTWAIT);
  if (sent < 0) return errno;
  return static_cast<std::size_t>(sent) == message.size() ? 0 : EPIPE;
}

std::string AuditSyslog::send(const AuditRecord& record, const std::string& hash) {
  int error = ENOMEM;
  (void)enough_memory([&] { error = try_send(record, hash); });
  if (error == 0) {
    lost_ = 0;
    return {};
  }
  ++lost_;
  return concat("the audit record could not be sent to %: %",
                {in_quotes(path_), errno_text(error)});
}

// An errno, or 0.
int AuditSyslog::try_send(const AuditRecord& record, const std::string& hash) {
  Json object = audit_json(record, longest_syslog_text, 0);
  if (!hash.empty()) object.set("hash"sv, hash);
  if (lost_ > 0) object.set("lost"sv, lost_);
  const bool refused = record.result->outcome == Outcome::refused;
  std::string message = concat("<%>1 % % codeexec % audit - %",
                               {refused ? 84 : 86, header_name(record.time),
                                header_name(record.host), record.pid, object.dump()});
  message = std::string(utf8_prefix(message, longest_message));
  if (is_stream_) message += '\n';
  int error = write(message);
  const bool full = error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
  if (error != 0 && !full) {
    socket_.reset();
    error = connect();
    if (error == 0) error = write(message);
  }
  return error;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
