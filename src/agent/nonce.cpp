// How an agent shows that it has the same folder as its client.

#include "agent/nonce_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The name is random and the file new, through no link: a command in the folder cannot have
// prepared it. Others may read it, as the agent may be another user there; it protects nothing.
Nonce::Nonce(const std::string& folder) {
  auto opened = open_canonical_directory(folder);
  if (!opened) {
    problem_ = opened.error().message;
    return;
  }
  folder_ = std::move(*opened);
  const UniqueFd file(::openat(folder_.get(), name_.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  int error = file ? write_all(file.get(), content_) : errno;
  if (error == 0 && ::fchmod(file.get(), 0644) != 0) error = errno;
  if (error != 0)
    problem_ = concat("cannot make a file in %: %", {in_quotes(folder), errno_text(error)});
  path_ = concat("%/%", {folder, name_});
}

// By the open folder, so that another one that has got its name meanwhile is left alone.
Nonce::~Nonce() {
  if (folder_) ::unlinkat(folder_.get(), name_.c_str(), 0);
}

Json answers_to(const Json& nonces) {
  Json answers = Json::array();
  for (const Json& path : nonces.items()) {
    const auto content = read_whole_file(path.as_string(), 1024, "file"sv);
    answers.push_back(content                                  ? Json(*content)
                      : content.error().system_error == EACCES ? Json()
                                                               : Json(content.error().message));
  }
  return answers;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
