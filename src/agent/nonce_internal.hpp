// How an agent shows that it has the same folder as its client.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A file in a folder, which shows an agent that it has the same folder. The destructor removes it.
class Nonce {
 public:
  explicit Nonce(const std::string& folder);
  Nonce(const Nonce&) = delete;
  Nonce& operator=(const Nonce&) = delete;
  ~Nonce();
  const std::string& path() const { return path_; }
  const std::string& content() const { return content_; }
  // The reason why there is no such file, or empty.
  const std::string& problem() const { return problem_; }

 private:
  const std::string name_ = ".codeexec-" + random_hex(16);
  const std::string content_ = random_hex(16);
  UniqueFd folder_ = UniqueFd();
  std::string path_ = {};
  std::string problem_ = {};
};

// In the agent: for each path the content of the file, null if this user may not read it, or the
// error.
Json answers_to(const Json& nonces);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
