// --sandbox-report, with --explain.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/server_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// --explain: the report and its rules under the names that these begin with.
std::string explained(const SandboxReport& report) {
  std::string text = concat("mode %, network %, Landlock ABI %\n",
                            {name(report.mode), name(report.network), report.landlock_abi});
  for (const std::string& feature : report.missing)
    append_all(text, "missing: %\n", {printable(feature)});
  for (const std::string& place : report.places) append_all(text, "%\n", {printable(place)});
  if (report.rules.empty()) text += "there are no rules: nothing is enforced here\n";
  std::string_view heading;
  for (const std::string& rule : report.rules) {
    std::string_view left = rule;
    const std::string_view feature = take_part(left, ':');
    if (feature != heading) append_all(text, "\n%\n", {printable(feature)});
    heading = feature;
    text += ' ';  // and the blank that the rule begins with
    add_wrapped(text, printable(left), 4);
  }
  return text;
}

}  // namespace

inline namespace inner {

// The status is 1 if something is missing.
int print_sandbox_report(const SandboxReport& report, const ProgramConfig& call) {
  Json object;
  set_member(object, "mode", name(report.mode));
  set_member(object, "network", name(report.network));
  set_member(object, "landlock_abi", report.landlock_abi);
  set_member(object, "enforced", list_of(report.enforced));
  set_member(object, "missing", list_of(report.missing));
  if (!report.places.empty()) set_member(object, "places", list_of(report.places));
  if (call.explain) set_member(object, "rules", list_of(report.rules));
  const bool as_text = call.explain && !call.json;
  return print_answer(as_text ? explained(report) : object.dump() + "\n",
                      report.missing.empty() ? 0 : 1);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
