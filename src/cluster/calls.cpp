// Calls of the programs of a cluster.

#include "cluster/cluster_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A letter first, so that no value can become another option or an argument.
bool is_long_option(const std::string& word) {
  return !word.empty() && word[0] >= 'a' && word[0] <= 'z' && !has_nul(word);
}

std::vector<std::string> with_long_options(const char* program,
                                           const std::vector<std::string>& options) {
  std::vector<std::string> words = words_of({program});
  for (const std::string& option : options) words.push_back(concat("--%", {option}));
  return words;
}

// A shell is given the agent by bring_text().
void add_agent(std::vector<std::string>& transport, const std::string& agent) {
  if (agent.empty())
    add_words(transport, {"sh"});
  else
    add_words(transport, {agent, "--place"});
}

ProcessResult call_cluster(const std::vector<std::string>& words, Pieces more, Pieces variables) {
  ProcessOptions call;
  call.argv = words;
  add_words(call.argv, more);
  call.environment = words_of(variables);
  for (std::string& variable : own_variables()) call.environment.push_back(std::move(variable));
  call.timeout = std::chrono::seconds(30);
  call.max_output = std::size_t{16} << 20;
  return run_process(call);
}

// Its standard error; for a program that did not start or was killed, why.
const std::string& complaint_of(const ProcessResult& result) {
  return result.err.empty() ? result.message : result.err;
}

void report_removed(const Function<void(std::string_view)>& on_progress,
                    const Expected<std::vector<FoundPlace>>& found, std::string_view trouble,
                    std::string_view removed) {
  if (!on_progress) return;
  if (!found) return on_progress(concat({trouble, found.error().message}));
  for (const FoundPlace& place : *found)
    if (place.was_removed)
      on_progress(
          concat("%%, which a program that has ended had left", {removed, printable(place.name)}));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
