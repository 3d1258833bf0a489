// The audit log as a file: a chain of hashes.
//
//   step of append()  what is done, and what happens if it fails               function
//   same file?        gone or replaced: it is made anew; a notice              open_file()
//   lock              not to be had in about 200 ms: goes on without it        lock()
//   own last line     shorter, or another line is there: a notice              follow()
//   follow            finds the end and the last hash                          follow()
//   write             this record and those that wait, one write() for each    write_line()
//   keep              those not written wait; above 1 MiB the oldest are lost  append()
//   memory            without it for a step the record waits, or is lost       append()
//
// Of a device all but the last three are left out. What holds: append() takes these steps for one
// record at a time, in the thread that ends the command. A record that fails is a note for the
// caller, and no failure of the command. Other processes write to the file: what is in it is read
// only as the hash of a line, which must have the form of one. The chain shows changes; it does not
// prevent them. Who can write to the file can make a chain of his own from any line on: while this
// program runs, it misses its own last line then; with a key, who lacks it can make none.

#include "audit/audit.hpp"
#include "audit/audit_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

AuditHash audit_hash(std::string_view line) {
  const std::size_t end_size = audit_end.size() + sha256_digits + 2;
  if (line.size() < audit_begin.size() + end_size || !starts_with(line, audit_begin)) return {};
  line.remove_prefix(line.size() - end_size);
  const bool keyed = starts_with(line, keyed_audit_end);
  if ((!keyed && !starts_with(line, audit_end)) || !ends_with(line, "\"}"sv)) return {};
  const std::string_view digits = line.substr(audit_end.size(), sha256_digits);
  if (digits.find_first_not_of("0123456789abcdef") != digits.npos) return {};
  return {digits, keyed};
}

Expected<void> AuditFile::open(const std::string& path, std::string key) {
  key_ = std::move(key);
  const std::string subject = concat("audit_file: %", {in_quotes(path)});
  if (has_nul(path)) return make_error(ErrorCode::invalid_argument, "% has a NUL byte", {subject});
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  path_ = path;
  name_ = path.substr(folder == "." ? 0 : folder.size());
  folder_.reset(above_standard_streams(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!folder_) return system_error(errno, "%", {subject});
  const int error = open_file();
  if (error == EOPNOTSUPP)
    return make_error(ErrorCode::invalid_argument, "% is neither a file nor a device", {subject});
  if (error != 0) return system_error(error, "%", {subject});
  return {};
}

// An errno, or 0. The file that was open before stays when there is no other.
int AuditFile::open_file() {
  UniqueFd fd(above_standard_streams(::openat(
      folder_.get(), name_.c_str(),
      O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0600)));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return errno;
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) return EOPNOTSUPP;
  regular_ = S_ISREG(status.st_mode);
  file_ = std::move(fd);
  size_ = -1;
  own_end_ = -1;
  return 0;
}

// flock(2) has no time limit, and any process that can open the file can hold its lock. So this
// tries a number of times, for about 200 ms, and then goes on without the lock.
bool AuditFile::lock() const {
  constexpr int most_tries = 200;
  for (int i = 0; i < most_tries; ++i) {
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    ::poll(nullptr, 0, 1);
  }
  return false;
}

// Whether our last line still ends where it did, with its hash. What stands before it is in that
// hash, as far as the chain goes.
bool AuditFile::has_own_line() const {
  const std::string wanted = concat("%\"}\n", {own_hash_});
  std::string found(wanted.size(), '\0');
  const auto count = static_cast<off_t>(wanted.size());
  const ssize_t got = ::pread(file_.get(), found.data(), found.size(), own_end_ - count);
  return got == count && found == wanted;
}

// Finds the end of the file, which other processes may have moved, and its last hash. Returns what
// the operator must know of it, or null.
const char* AuditFile::follow() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return nullptr;
  const char* noticed = nullptr;
  if (status.st_size < size_)
    noticed = "the file had become shorter";
  else if (own_end_ >= 0 && !has_own_line())
    noticed = "the last record of this program was not there any more";
  if (noticed) own_end_ = -1;
  if (!noticed && status.st_size == size_) return nullptr;
  size_ = status.st_size;
  cut_ = false;
  // An empty file goes on with what was the last hash elsewhere.
  if (size_ > 0) {
    char end[audit_end.size() + sha256_digits + 3];
    const auto count = std::min<off_t>(size_, sizeof end);
    const ssize_t got = ::pread(file_.get(), end, static_cast<std::size_t>(count), size_ - count);
    std::string_view line(end, got > 0 ? static_cast<std::size_t>(got) : 0);
    cut_ = line.empty() || line.back() != '\n';
    if (!cut_) line.remove_suffix(1);
    previous_ = audit_hash(concat({audit_begin, line})).digits;
  }
  return noticed;
}

// An errno, or 0.
int AuditFile::write_line(std::string_view record) {
  std::string line = concat("%%%\",", {cut_ ? "\n" : "", audit_begin, previous_});
  const std::size_t begin = cut_ ? 1 : 0;
  if (!notice_.empty()) append_all(line, "%%\",", {audit_notice, notice_});
  if (lost_ > 0) append_all(line, "\"lost\":%,", {lost_});
  line += record.substr(1, record.size() - 2);
  std::string hash = keyed_sha256(key_, std::string_view(line).substr(begin));
  append_all(line, "%%\"}\n", {key_.empty() ? audit_end : keyed_audit_end, hash});
  std::string previous = hash;  // once it is written nothing takes memory
  const ssize_t written = write_to_file(file_.get(), line);
  if (written != static_cast<ssize_t>(line.size())) {
    const int error = written < 0 ? errno : ENOSPC;
    // Half a line is taken back, unless others may have written behind it; where it stays, the next
    // line begins behind it.
    if (written > 0 && (!locked_ || ::ftruncate(file_.get(), size_) != 0)) size_ = -1;
    return error;
  }
  if (size_ >= 0) size_ += written;
  // Without the lock others may have written, too, so that it stands elsewhere.
  own_end_ = locked_ ? size_ : -1;
  own_hash_ = std::move(hash);
  previous_ = std::move(previous);
  cut_ = false;
  notice_.clear();
  lost_ = 0;
  return 0;
}

// Without memory for all of it nothing is known of the file but what it will say the next time.
std::string AuditFile::append(std::string_view record) {
  std::string note;
  bool is_kept = false;
  const bool has_memory = enough_memory([&] { note = try_append(record, is_kept); });
  if (std::exchange(locked_, false)) ::flock(file_.get(), LOCK_UN);
  if (has_memory) return note;
  size_ = -1;
  if (!is_kept) lose_record();
  return concat("the audit record could not be written to %: %", {in_quotes(path_), out_of_memory});
}

// A record that was written comes with a note, too, if the file had been replaced or become
// shorter.
std::string AuditFile::try_append(std::string_view record, bool& is_kept) {
  std::string problem;
  int error = 0;
  if (regular_) {
    struct stat here {};
    struct stat named {};
    const bool known = ::fstat(file_.get(), &here) == 0;
    const bool same = known &&
                      ::fstatat(folder_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                      here.st_dev == named.st_dev && here.st_ino == named.st_ino;
    if (!same) {
      notice_ = "the file had been removed or replaced";
      problem = notice_;
      error = open_file();
    }
  }
  locked_ = error == 0 && regular_ && lock();
  if (error == 0 && regular_) {
    if (const char* const noticed = follow()) problem = notice_ = noticed;
  }
  waiting_ += concat("%\n", {record});
  is_kept = true;
  std::string_view rest = waiting_;
  const auto write = [&] {
    while (error == 0 && !rest.empty()) {
      std::string_view after = rest;
      error = write_line(take_part(after, '\n'));
      if (error == 0) rest = after;
    }
  };
  if (!enough_memory(write)) {
    error = ENOMEM;
    size_ = -1;
  }
  for (; rest.size() > max_waiting; ++lost_) take_part(rest, '\n');
  waiting_.erase(0, waiting_.size() - rest.size());
  if (error != 0)
    return concat(
        "the audit record could not be written to %: %",
        {in_quotes(path_), error == EOPNOTSUPP ? "it is no file any more" : errno_text(error)});
  return problem.empty() ? problem : concat("audit log %: %", {in_quotes(path_), problem});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
