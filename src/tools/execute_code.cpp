// The tool execute_code: runs the blocks one by one until one fails.
//
// Blocks come from the fences of a Markdown text, or all of the text is one block. Each block is a
// command of its own, with the whole timeout, and is counted by UseCounter.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "code/code.hpp"
#include "executor/executor.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// No text that is meant to be run has more. It bounds the time and the size of an answer.
constexpr std::size_t most_blocks = 100;

// Adds the results of several blocks up to one: the end of the last one, the outputs and times of
// all. Outputs are bounded like those of one command.
class BlockSum {
 public:
  BlockSum(const Executor& executor, const ToolOptions& options, const Command& command)
      : options_(options),
        most_(*command.max_output),
        out_(most_ + longest_line),
        err_(most_ + longest_line) {
    all_.work_dir = command.work_dir.empty() ? executor.workspace() : command.work_dir;
  }

  void add(CodeResult&& run) {
    files_.insert(files_.end(), run.files.begin(), run.files.end());
    constexpr std::size_t most_notes = 20;
    for (Result& result : run.results) {
      // What goes on was fitted by output_so_far().
      if (!run.goes_on && all_.notes.size() < most_notes)
        fit_output(options_, most_, result, false);
      add(std::move(result));
    }
    if (!run.message.empty()) {
      all_.outcome = Outcome::not_started;
      all_.exit_code = -1;
      all_.message = std::move(run.message);
    } else if (run.succeeded && blocks_ == 0) {
      all_.outcome = Outcome::exited;  // it was to be saved, and was
      all_.exit_code = 0;
    }
  }
  void add(Result&& result) {
    ++blocks_;
    out_.add(result.out);
    err_.add(result.err);
    result.wall_time += all_.wall_time;
    add_counts(all_.out_counts, result.out_counts);
    add_counts(all_.err_counts, result.err_counts);
    merge(all_.notes, result.notes);
    merge(all_.changed_files, result.changed_files);
    merge(all_.put_back, result.put_back);
    merge(all_.limits_reached, result.limits_reached);
    all_ = std::move(result);
  }

  // Called once, after all blocks.
  Result& result() {
    OutputCounts cut;
    all_.out = out_.text(&cut);
    all_.out_counts.dropped_bytes += cut.dropped_bytes;
    all_.err = err_.text(&cut);
    all_.err_counts.dropped_bytes += cut.dropped_bytes;
    return all_;
  }
  const std::vector<std::string>& files() const { return files_; }
  std::size_t blocks() const { return blocks_; }

 private:
  // The room for the line that reports a cut, so that the output of one command always fits.
  static constexpr std::size_t longest_line = 256;
  static void add_counts(const OutputCounts& before, OutputCounts& sum) {
    sum.total_bytes += before.total_bytes;
    sum.dropped_bytes += before.dropped_bytes;
    sum.invalid_bytes += before.invalid_bytes;
    sum.redactions += before.redactions;
  }

  // Puts `before` in front of `texts`, each text once.
  static void merge(std::vector<std::string>& before, std::vector<std::string>& texts) {
    std::swap(before, texts);
    for (const std::string& text : before)
      if (!is_one_of(text, texts)) texts.push_back(text);
  }

  const ToolOptions& options_;
  const std::size_t most_;  // of each stream, of a block and of all
  Capture out_;
  Capture err_;
  Result all_ = Result();  // but for the output
  std::vector<std::string> files_ = {};
  std::size_t blocks_ = 0;
};

Expected<std::vector<CodeBlock>> blocks_of(const mcp::Call& call) {
  const std::string& code = argument_text(call, "code");
  const std::string& language = argument_text(call, "language");
  std::vector<CodeBlock> blocks;
  // Code may hold fences, too, in its texts.
  const std::string inferred = language.empty() ? infer_language(code) : language;
  if (inferred.empty() || inferred == "markdown") blocks = extract_code(code);
  if (blocks.empty() && inferred == "markdown")
    return make_error(ErrorCode::invalid_argument, "there is no fenced block in this Markdown");
  if (blocks.empty()) blocks.push_back({inferred, code});
  if (blocks.size() > most_blocks)
    return make_error(ErrorCode::limit, "there are % code blocks, and one call runs % at most",
                      {blocks.size(), most_blocks});
  return blocks;
}

}  // namespace

inline namespace inner {

mcp::ToolResult execute_code(ToolSet& set, const mcp::Call& call) {
  const auto found = blocks_of(call);
  if (!found) return failed(found.error().message);
  const std::vector<CodeBlock>& blocks = *found;
  CodeOptions options;
  options.languages = set.options.languages;
  options.remove_unnamed = true;
  options.command = command_of(call, "");
  options.command.cancel = call.cancel_token();
  const std::size_t most = wanted_output(set, call);
  bound_output(options.command, most);
  listen(options.command, call, {}, &set.executor);
  let_ask(set, options.command, call);
  const auto timeout = options.command.timeout;
  BlockSum sum(set.executor, set.options, options.command);
  Function<void()> ended;
  JobStatus job;  // of the block that goes on in the background
  options.run = [&](Command& command, Result& result) {
    job = run_for_call(set, call, command, no_limit, ended);
    result = job.id.empty() ? job.result : output_so_far(set, job, *command.max_output, nullptr);
    return job.id.empty();
  };
  bool going_on = true;
  for (std::size_t i = 0; i < blocks.size() && going_on; ++i) {
    options.command.timeout = timeout;
    if (!count_time(set, options.command, ended)) {
      sum.add(refused_result(set, call, "running_time", set.use->refusal_of_command()));
      break;
    }
    CodeResult run = run_code(set.executor, {blocks[i]}, options);
    if (!run.goes_on) ended();
    if (run.goes_on && i + 1 < blocks.size())
      run.results.back().notes.push_back(
          concat("it is block % of %: those after it were not run", {i + 1, blocks.size()}));
    for (Result& result : run.results) {
      name_tool(set.options, result);
      add_next_step(set, options.command, result);
    }
    going_on = run.succeeded;
    sum.add(std::move(run));
  }
  const bool full = set.options.full_results;
  Json files = Json::array();
  for (const std::string& file : sum.files()) files.push_back(shown_path(set, file));
  Result& all = sum.result();
  set.tell(all.notes);
  show_as_on_terminal(set.options, all, &set.executor);
  cut_result(set.options, most, all);
  const bool is_running = !job.id.empty();
  Json object = result_json(set.options, all, room_for_texts(call.max_result_bytes()), is_running);
  if (is_running) set_member(object, "shell_id", job.id);
  if (full || files.size() > 0) {
    set_member(object, "code_file", files.size() > 0 ? files[0] : Json());
    set_member(object, "files", std::move(files));
  }
  if (full || sum.blocks() != 1) set_member(object, "blocks", sum.blocks());
  return answer_with(std::move(object));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
