// How what a command made is taken out, and what was there put back.
#pragma once

#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// For the changes of one command. `tree` is how much of a path is the folder that it was searched
// for in, as in LaterFile.
class PutBack {
 public:
  // `kept` is an absolute path, which need not exist; empty: what is taken out stays beside.
  PutBack(const std::string& kept, const std::vector<std::string>& folders)
      : kept_(kept), folders_(folders) {}

  // Each returns what went wrong, or nothing; then a file is where it was.
  std::string take_out(const std::string& path, std::size_t tree);
  // A copy of settings that stay in part.
  std::string keep_text(const std::string& path, std::size_t tree, const LaterFile& file);

  // A folder, or what has a text. False: the folder that it was in is gone as well.
  bool put_back(const std::string& path, const LaterFile& file, std::string& problem);

  // Where the command's versions are now; empty: none was kept.
  const std::string& kept_in() const { return kept_in_; }
  const std::vector<std::string>& beside() const { return beside_; }

 private:
  UniqueFd open_folder(const std::string& path) const;
  UniqueFd make_kept_folder(const std::string& folder);
  std::string rename_beside(int directory, const std::string& path, std::size_t tree);
  std::string write_new(int in, const std::string& name, const LaterFile& file);

  const std::string& kept_;
  const std::vector<std::string>& folders_;
  UniqueFd kept_fd_ = {};
  std::string kept_in_ = {};
  std::vector<std::string> beside_ = {};
};

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
