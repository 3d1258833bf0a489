// The audit log of an executor: its file, and the log of the system.
//
// Each record goes to both as far as the operator wants them, first to the file: what goes to the
// system has the hash that it got there, so that who has that log knows whether the file is
// whole. Under a mutex, as commands end in several threads.

#include "audit/audit.hpp"
#include "audit/audit_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

class AuditRecords final : public AuditLog {
 public:
  Expected<void> open(const ExecutorOptions& options);
  std::string append(const AuditRecord& record) override;

 private:
  std::mutex mutex_ = {};
  std::optional<AuditFile> file_ = {};
  std::optional<AuditSyslog> syslog_ = {};
};

// The file comes last, as opening it makes it.
Expected<void> AuditRecords::open(const ExecutorOptions& options) {
  std::string key;
  if (!options.audit_key.empty()) {
    auto read = read_audit_key(options.audit_key);
    if (!read) return with_prefix("audit_key: ", {}, read.error());
    key = std::move(*read);
  }
  if (!options.audit_syslog.empty()) {
    syslog_.emplace();
    if (auto ok = syslog_->open(options.audit_syslog); !ok) return ok;
  }
  if (options.audit_file.empty()) return {};
  file_.emplace();
  return file_->open(options.audit_file, std::move(key));
}

std::string AuditRecords::append(const AuditRecord& record) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::string note;
  bool is_made = false;
  const auto to_file = [&] {
    const std::string json = to_json(record).dump();
    is_made = true;
    note = file_->append(json);
  };
  if (file_ && !enough_memory(to_file)) {
    if (!is_made) file_->lose_record();
    note = out_of_memory;
  }
  if (!syslog_) return note;
  const std::string other = syslog_->send(record, file_ ? file_->last_hash() : std::string());
  if (!note.empty() && !other.empty()) note += "; ";
  return note + other;
}

}  // namespace

inline namespace inner {

Expected<std::string> read_audit_key(const std::string& path) {
  constexpr std::size_t longest = 4096;
  constexpr std::size_t shortest = 16;
  auto key = read_whole_file(path, longest, "key");
  if (!key) return key;
  if (key->size() < shortest)
    return make_error(ErrorCode::invalid_argument, "% has % bytes: a key needs at least %",
                      {in_quotes(path), key->size(), shortest});
  return key;
}

std::string keyed_sha256(std::string_view key, std::string_view text) {
  if (key.empty()) return sha256(text);
  constexpr std::size_t block_size = 64;
  const auto bytes_of = [](std::string_view digits) {
    const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2)
      bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
    return bytes;
  };
  std::string block = key.size() > block_size ? bytes_of(sha256(key)) : std::string(key);
  block.resize(block_size, '\0');
  const auto padded = [&block](char pad) {
    std::string bytes = block;
    for (char& byte : bytes) byte = static_cast<char>(byte ^ pad);
    return bytes;
  };
  detail::Sha256 inside;
  inside.add(padded('\x36'));
  inside.add(text);
  return sha256(concat({padded('\x5c'), bytes_of(inside.hex())}));
}

}  // namespace inner

Expected<std::shared_ptr<AuditLog>> open_audit_log(const ExecutorOptions& options) {
  auto log = new_shared<AuditRecords>();
  if (auto ok = log->open(options); !ok) return ok.failure();
  return std::shared_ptr<AuditLog>(std::move(log));
}

}  // namespace v0_1
}  // namespace codeexec
