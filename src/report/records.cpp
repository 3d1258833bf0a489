// Reading audit logs: lines, the chain of hashes, records.

#include "report/report_internal.hpp"

#include "audit/audit_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Expected<void> AuditReader::open(const std::string& path, AuditProof proof) {
  path_ = path;
  proof_ = std::move(proof);
  file_.reset(above_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)));
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0)
    return system_error(errno, "cannot open %", {in_quotes(path)});
  const auto size = static_cast<std::uint64_t>(status.st_size);
  lines_ = std::make_unique<InputLines>(file_.get(), longest_record,
                                        S_ISREG(status.st_mode) ? size : ~std::uint64_t{0});
  return {};
}

bool AuditReader::next() {
  if (!lines_->next()) return false;
  ++number_;
  if (const char* const found = problem()) find(found);
  return true;
}

// What the hashes say of the line, or null. Each record has the hash of the one before it and its
// own, so that a change breaks the chain there. Lines without hashes may stand before the first
// record that has them, and nowhere else. Behind a line without a hash nothing can be compared.
const char* AuditReader::problem() {
  const std::string_view line = lines_->line();
  if (!hashed_ && lines_->ended() && !starts_with(line, audit_begin)) {
    ++older_;
    return nullptr;
  }
  const bool first = number_ == 1;
  const bool compares = !first && !gap_;
  hashed_ = true;
  const AuditHash hash = audit_hash(line);
  gap_ = !lines_->ended() || lines_->too_long() || hash.digits.empty();
  if (gap_) return "is cut, or is no record of this log";
  std::string_view told = line.substr(audit_begin.size(), sha256_digits);
  if (told[0] == '"') told = {};
  if (first) start_ = told;
  const bool follows = told == previous_;
  previous_ = hash.digits;
  if (previous_ == proof_.last_hash) has_last_ = true;
  if (const char* const found = problem_of(line, hash)) return found;
  if (compares && !follows)
    return "does not follow the line before it: lines were taken out, put in or exchanged there";
  // A log that was moved away begins anew with a notice, which its first line names.
  const std::string_view behind = line.substr(audit_begin.size() + told.size());
  if (!first && starts_with(behind, "\","sv) && starts_with(behind.substr(2), audit_notice))
    return "says that the log was replaced, shortened or changed before it was written";
  return nullptr;
}

// Of a line by itself. Once there is a key, lines have its hashes: one that has none was written by
// who does not have it.
const char* AuditReader::problem_of(std::string_view line, const AuditHash& hash) {
  if (hash.keyed && proof_.key.empty()) {
    ++unproven_;
    return nullptr;
  }
  const bool lacks_key = keyed_ && !hash.keyed;
  if (hash.keyed) keyed_ = true;
  const std::size_t body = line.size() - hash.digits.size() - audit_end.size() - 2;
  const std::string_view key = hash.keyed ? std::string_view(proof_.key) : std::string_view();
  if (keyed_sha256(key, line.substr(0, body)) != hash.digits)
    return hash.keyed ? "was changed after it had been written, or was written with another key"
                      : "was changed after it had been written";
  return lacks_key ? "was written without the key" : nullptr;
}

void AuditReader::find(std::string_view problem) {
  if (last_bad_ == number_) return;
  last_bad_ = number_;
  if (++bad_ <= most_findings)
    append_all(findings_, "%: line % %\n", {printable(path_), number_, problem});
}

// Of the file as a whole. It is shown however many lines were bad.
void AuditReader::find_in_file(std::string_view problem) {
  ++bad_;
  append_all(findings_, "%: %\n", {printable(path_), problem});
}

// The limits keep a hostile line from taking more memory than a few times its own.
bool AuditReader::read(Json& record) {
  JsonLimits limits;
  limits.max_depth = 16;
  limits.max_values = 10000;
  limits.accept_invalid_utf8 = true;
  if (lines_->too_long()) {
    find(concat("is longer than % bytes", {longest_record}));
    return false;
  }
  auto value = Json::parse(lines_->line(), limits);
  if (value && (*value)["time"sv].is_string() && (*value)["outcome"sv].is_string()) {
    record = std::move(*value);
    return true;
  }
  find(concat("is no record: %", {value ? "it has no time and outcome" : value.error().message}));
  return false;
}

Expected<void> AuditReader::finish() {
  if (lines_->error() != 0)
    return system_error(lines_->error(), "cannot read %", {in_quotes(path_)});
  if (!proof_.key.empty() && !keyed_) find_in_file("no record of it was written with the key");
  if (!proof_.last_hash.empty() && !has_last_)
    find_in_file(
        "no record of it has the given last hash: its end was cut off, or it was replaced");
  return {};
}

std::string AuditReader::findings() const {
  if (bad_ <= most_findings) return findings_;
  return concat("%%: and % more lines\n", {findings_, printable(path_), bad_ - most_findings});
}

// The hashes do not show that the end of a log was cut off when no program wrote to it. So the last
// hash is printed: an operator can keep it elsewhere and give it as AuditProof::last_hash.
std::string AuditReader::summary() const {
  const std::string older =
      older_ > 0 ? concat(", after % lines without a hash", {older_}) : std::string();
  const std::string bad = bad_ > 0 ? concat("% bad lines, and ", {bad_}) : std::string();
  const std::string unproven =
      unproven_ > 0 ? concat(", of which % need --audit-key to be checked", {unproven_})
                    : std::string();
  return concat(
      "%% records as they were written%%%%%%",
      {bad, number_ - older_ - std::min(bad_, number_ - older_), unproven, older,
       start_.empty() ? "" : ", the first after a record that is not here and has the hash ",
       start_, previous_.empty() ? "" : "; the last hash is ", previous_});
}

Expected<std::string> verified_audit(const std::string& path, AuditProof proof, bool& is_whole) {
  AuditReader reader;
  if (auto ok = reader.open(path, std::move(proof)); !ok) return ok.failure();
  while (reader.next()) {
  }
  if (auto ok = reader.finish(); !ok) return ok.failure();
  is_whole = reader.bad() == 0;
  return concat("%%: %\n", {reader.findings(), printable(path), reader.summary()});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
