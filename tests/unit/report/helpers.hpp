// Helpers that the tests of reports, transcripts and replays share.
#ifndef CODEEXEC_TESTS_UNIT_REPORT_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_REPORT_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"

namespace support {

// Runs commands with an audit log, one server each; the log's path.
inline std::string audit_of(const TempDir& place, const Strings& commands,
                            const Strings& more = {}) {
  const std::string audit = place / "audit";
  const std::string work = place.directory("work");
  for (const std::string& command : commands) {
    Strings arguments = {"--audit-file", audit, "--workspace", work, "--run", command};
    arguments.insert(arguments.begin(), more.begin(), more.end());
    run_program(arguments);
  }
  return audit;
}

// The page of these logs, and what the program said.
struct Page {
  codeexec::ProcessResult said;
  std::string text;
  std::vector<codeexec::Json> records;  // as the page has them
  codeexec::Json summary;
};

// What stands in the block of data with this id.
inline std::string block_of(const std::string& page, const std::string& id) {
  const std::string opening = "<script type=\"application/json\" id=\"" + id + "\">\n";
  const std::size_t begin = page.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page.find("</script>", begin);
  REQUIRE(end != std::string::npos);
  return page.substr(begin + opening.size(), end - begin - opening.size());
}

inline Page page_of(const TempDir& place, Strings logs) {
  Page page;
  logs.insert(logs.begin(), "--report");
  logs.insert(logs.end(), {"--output", place / "page.html"});
  page.said = run_program(logs);
  CHECK(page.said.exit_code == 0);
  CHECK(page.said.err == "");
  page.text = read_file(place / "page.html");
  for (const std::string& line : lines_of(block_of(page.text, "records")))
    page.records.push_back(parsed(line));
  page.summary = parsed(block_of(page.text, "summary"));
  return page;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_REPORT_HELPERS_HPP
