// The chain of records in a file, the log of the system, and what results and records have in
// common as JSON.
#pragma once

#include "audit/audit.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Audit records hold at most this much of a command, and of code.
inline constexpr std::size_t longest_audited_text = std::size_t{16} << 10;

// How the line of a record begins and ends in the audit file; between them stands what
// to_json(AuditRecord) has. See ExecutorOptions::audit_file. A hash that was made with a key has
// another name, of the same length.
inline constexpr std::string_view audit_begin = "{\"previous\":\"";
inline constexpr std::string_view audit_end = ",\"hash\":\"";
inline constexpr std::string_view keyed_audit_end = ",\"hmac\":\"";
static_assert(keyed_audit_end.size() == audit_end.size());
inline constexpr std::size_t sha256_digits = 64;
// What the program that writes the file noticed of it, behind the previous hash.
inline constexpr std::string_view audit_notice = "\"notice\":\"";

// The lines of a descriptor, read in bounded memory: of a longer one `longest` bytes are kept at
// most, and it is skipped to its end. Nothing is read behind `most` bytes.
class InputLines {
 public:
  explicit InputLines(int fd, std::size_t longest, std::uint64_t most = ~std::uint64_t{0})
      : fd_(fd), longest_(longest), left_(most) {}
  // Goes to the next line; false at the end, and where reading fails.
  bool next();
  const std::string& line() const { return line_; }
  bool too_long() const { return too_long_; }  // then the line is not whole
  bool ended() const { return ended_; }        // by a newline
  int error() const { return error_; }         // an errno, or 0

 private:
  bool fill();

  int fd_;
  std::size_t longest_;
  std::uint64_t left_;
  std::string line_ = {};
  bool too_long_ = false;
  bool ended_ = false;
  int error_ = 0;
  std::string_view rest_ = {};
  char buffer_[65536];
};

// The hash that the line of a record ends with; empty when it is not one. `keyed`: of an HMAC.
struct AuditHash {
  std::string_view digits = {};
  bool keyed = false;
};
AuditHash audit_hash(std::string_view line);

// Audit records with at most this much of a command and of code, and of each stream of output.
Json audit_json(const AuditRecord& record, std::size_t longest_text, std::size_t max_output);

// The key of ExecutorOptions::audit_key.
//   Errors: invalid_argument when it is shorter than 16 bytes; those of read_whole_file().
Expected<std::string> read_audit_key(const std::string& path);
// SHA-256 of the text in hexadecimal digits; with a key that is not empty HMAC-SHA-256 (RFC 2104).
std::string keyed_sha256(std::string_view key, std::string_view text);

// The audit log as a file. Several programs may have one on the same file: each line is one write()
// under a lock of the file. For one thread at a time.
class AuditFile {
 public:
  // Accepts only files that take every write at once: a pipe would block the commands, or end the
  // host with SIGPIPE. `key`: see keyed_sha256().
  //   Errors: invalid_argument; io, and others of the system.
  Expected<void> open(const std::string& path, std::string key);
  // Takes the JSON of a record. Returns a note when it could not be kept, or an empty text.
  std::string append(std::string_view record);
  // Counts a record for which there was no memory.
  void lose_record() { ++lost_; }
  // Of the last line that was written; empty before there is one.
  const std::string& last_hash() const { return own_hash_; }

 private:
  // Of records that could not be written; the oldest are dropped.
  static constexpr std::size_t max_waiting = std::size_t{1} << 20;

  // The steps of append(). `is_kept`: the record is among those that wait.
  std::string try_append(std::string_view record, bool& is_kept);
  int open_file();
  bool lock() const;
  const char* follow();
  bool has_own_line() const;
  int write_line(std::string_view record);

  std::string path_ = {};
  std::string name_ = {};
  std::string key_ = {};
  UniqueFd folder_ = {};
  UniqueFd file_ = {};
  bool regular_ = false;
  bool locked_ = false;
  off_t size_ = -1;            // of the file after our last line
  std::string previous_ = {};  // the hash of its last line
  off_t own_end_ = -1;         // where our last line ends; -1: not known
  std::string own_hash_ = {};  // of our last line
  std::string notice_ = {};    // for the next record
  bool cut_ = false;           // its last line has no end
  std::string waiting_ = {};   // one record a line
  std::uint64_t lost_ = 0;
};

// The log of the system, by its socket and in the form of RFC 5424. For one thread at a time.
class AuditSyslog {
 public:
  // Errors: invalid_argument; those of connect().
  Expected<void> open(const std::string& path);
  // A record without output and with short texts, and the hash that it has in the file. Never
  // waits: what the socket does not take is lost, and counted in the next message. Returns a note
  // then.
  std::string send(const AuditRecord& record, const std::string& hash);

 private:
  int try_send(const AuditRecord& record, const std::string& hash);
  int connect();
  int write(std::string_view message) const;

  std::string path_ = {};
  UniqueFd socket_ = {};
  bool is_stream_ = false;
  std::uint64_t lost_ = 0;
};

// Fields that the audit log and the result of the tool have in common.
void set_sandbox_fields(Json& object, const Result& r);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
