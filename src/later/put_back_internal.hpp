// How what a command made is taken out, and what was there put back.
#pragma once

#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// For the changes of one command.
class PutBack {
 public:
  // An absolute path, which need not exist; empty: what is taken out stays beside.
  explicit PutBack(std::string folder) : folder_(std::move(folder)) {}

  // Each returns what went wrong, or nothing.
  std::string take_out(const std::string& path);
  std::string keep_copy(const std::string& path);

  // False: the folder that it was in is gone as well.
  bool put_back(const std::string& path, const LaterFile& file, std::string& problem);

  // Where the command's versions are now; empty: none was kept.
  const std::string& kept_in() const { return kept_in_; }
  const std::vector<std::string>& beside() const { return beside_; }

 private:
  std::string open_folder();
  std::string rename_beside(int directory, const std::string& path);

  std::string folder_;
  UniqueFd folder_fd_ = {};
  std::string kept_in_ = {};
  std::vector<std::string> beside_ = {};
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
