// Helpers that several tests of the files section share.
#ifndef CODEEXEC_TESTS_UNIT_FILES_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_FILES_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "../../helpers/support.hpp"

namespace support {

inline codeexec::Files files_with(const std::vector<codeexec::Root>& roots,
                                  const std::string& base) {
  auto rules = codeexec::PathRules::create(roots);
  REQUIRE(rules);
  return codeexec::Files(*rules, base);
}

inline codeexec::Files files_in(const std::string& root) {
  return files_with({{root, codeexec::Permission::write}}, root);
}

inline struct stat status_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) fail("lstat", path);
  return status;
}

inline mode_t mode_of(const std::string& path) { return status_of(path).st_mode & 07777; }

// The bytes, or "code: message".
inline std::string text_of(const codeexec::Expected<codeexec::FileContent>& content) {
  if (content) return content->bytes;
  return std::string(codeexec::name(content.error().code)) + ": " + content.error().message;
}

template <class T>
std::string problem(const codeexec::Expected<T>& result) {
  if (result) return "none";
  return std::string(codeexec::name(result.error().code)) + ": " + result.error().message;
}

// Like "d a/, f a/b 3, l c": the entries of a list.
inline std::string shape(const codeexec::Expected<codeexec::FileList>& list) {
  if (!list) return problem(list);
  std::string text;
  for (const codeexec::FileEntry& entry : list->entries) {
    if (!text.empty()) text += ", ";
    text += codeexec::name(entry.type)[0];
    text += " " + entry.path;
    if (entry.type == codeexec::FileEntry::Type::file) text += " " + std::to_string(entry.size);
    if (entry.closed) text += " closed";
  }
  if (list->more) text += ", more";
  return text;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_FILES_HELPERS_HPP
