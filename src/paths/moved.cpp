// A directory of this host that commands have at another path.

#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A path with `..` in it may lead through a link, so it is not taken apart as text.
std::string MovedDirectory::here(std::string_view path, std::string_view base) const {
  std::string text = starts_with(path, "/"sv) ? std::string(path) : concat("%/%", {base, path});
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  if (!is_canonical_form(text) || !codeexec::is_within(text, seen)) return {};
  for (const std::string& other : stays)
    if (codeexec::is_within(text, other)) return {};
  return real + text.substr(seen.size());
}

std::string MovedDirectory::as_seen(std::string path) const {
  if (codeexec::is_within(path, real)) path.replace(0, real.size(), seen);
  return path;
}

Error MovedDirectory::as_seen(Error error) const {
  for (std::size_t at = 0; (at = error.message.find(real, at)) != std::string::npos;)
    error.message.replace(at, real.size(), seen);
  return error;
}

}  // namespace v0_1
}  // namespace codeexec
