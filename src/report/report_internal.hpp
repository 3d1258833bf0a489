// What happened, for the operator: audit logs are read, shown as a page, and written as Markdown.
//
//   audit log --AuditReader--> records --+--> verified_audit()   is it as it was written?
//                 |                      +--> write_report()     one page of HTML
//                 |                      +--> --replay           in the room of the program
//                 +--> findings: one line for each line that is cut, changed or no record
//
//   command ends --on_audit--> Transcript    Markdown, while the server runs
//
// This room belongs to the server program and has no public header.
#pragma once

#include "audit/audit_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What an operator has of an audit log besides the file.
struct AuditProof {
  std::string key = {};        // of ExecutorOptions::audit_key
  std::string last_hash = {};  // that it had at its end once
};

// Reads an audit log line by line, in the memory of its longest line (64 MiB at most), and follows
// its chain of hashes. What is wrong becomes a finding, and the next line is read as usual. What is
// appended meanwhile is not read.
class AuditReader {
 public:
  static constexpr std::size_t longest_record = std::size_t{64} << 20;
  static constexpr std::size_t most_findings = 20;  // that are shown; more are counted

  //   Errors: those of the system, which name the file.
  Expected<void> open(const std::string& path, AuditProof proof = {});
  // Goes to the next line and checks its hashes; false at the end, and where reading fails.
  bool next();
  // The record of this line. False when it is none, which is then a finding.
  bool read(Json& record);
  // Looks at what only the end shows. An error when it was not reached.
  Expected<void> finish();

  std::uint64_t number() const { return number_; }  // of the line, from 1
  std::uint64_t bad() const { return bad_; }        // lines with a finding
  // "FILE: line N PROBLEM", each with a line end.
  std::string findings() const;
  // What the chain shows, in one line without the name of the file.
  std::string summary() const;

 private:
  const char* problem();
  const char* problem_of(std::string_view line, const AuditHash& hash);
  void find(std::string_view problem);
  void find_in_file(std::string_view problem);

  std::string path_ = {};
  AuditProof proof_ = {};
  UniqueFd file_ = {};
  std::unique_ptr<InputLines> lines_ = {};
  std::uint64_t number_ = 0;
  std::uint64_t older_ = 0;  // lines from before records had hashes
  std::uint64_t bad_ = 0;
  std::uint64_t last_bad_ = 0;  // the number of a line
  std::uint64_t unproven_ = 0;  // lines whose hash needs a key that is not here
  bool hashed_ = false;         // a record with a hash has come
  bool keyed_ = false;          // a record with a hash of the key has come
  bool has_last_ = false;       // AuditProof::last_hash has come
  bool gap_ = false;            // the hash of the line before is not known
  std::string previous_ = {};   // the hash of the line before
  std::string start_ = {};      // the hash that the first line names
  std::string findings_ = {};
};

// What --verify-audit prints: a line for each bad one, up to AuditReader::most_findings, and a
// summary. `is_whole`: there are none.
Expected<std::string> verified_audit(const std::string& path, AuditProof proof, bool& is_whole);

// Writes a page of HTML with the records of these files, to standard output when `output` is empty.
// Of more than 20,000 lines the last ones are shown. Long texts are cut so that the page has about
// 7 MiB. Returns the findings and a summary, in lines. A file that cannot be read is a finding.
//   Errors: invalid_argument when `output` is one of the files; those of the system.
Expected<std::string> write_report(const std::vector<std::string>& files,
                                   const std::string& output);

// What happens, as Markdown, appended to a file while it happens. Thread-safe, and several programs
// may have one on the same file: each command is one write().
class Transcript {
 public:
  // Makes the file with mode 0600.
  //   Errors: those of the system; invalid_argument when it is no file.
  Expected<void> open(const std::string& path);
  // Returns the first failure to write as a message, otherwise an empty text.
  std::string add(const AuditRecord& record);

 private:
  std::string path_ = {};
  UniqueFd file_ = {};
  std::atomic<bool> failed_{false};
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
