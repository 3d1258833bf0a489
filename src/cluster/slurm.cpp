// Jobs of Slurm.
//
// `salloc` asks for a job, waits in the queue with it and holds it: its command, a shell, prints
// the job's number and reads standard input until that ends. `srun` starts the agent as a step of
// the job, beside which others may run.

#include "cluster/cluster.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "place/place.hpp"
#include "place/place_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr char holder_script[] = "echo \"$SLURM_JOB_ID\"; exec cat";
constexpr std::string_view comment_start = "codeexec";
constexpr std::chrono::seconds call_timeout(30);

// What Slurm says, in lower case, and what to do about it.
struct SlurmTrouble {
  std::string_view words;
  std::string_view help;
};
constexpr SlurmTrouble slurm_troubles[] = {
    {"no such file", "install Slurm's programs here, or set PATH"},
    {"invalid partition", "choose one that `sinfo` lists (slurm_option)"},
    {"invalid account", "choose one that `sacctmgr show associations` lists (slurm_option)"},
    {"not available", "no node has what is asked for (slurm_option)"},
    {"can not be satisfied", "no node has what is asked for (slurm_option)"},
    {"unable to contact", "its controller does not answer: ask who runs the cluster"},
    {"access", "this user may not do that: ask who runs the cluster"},
    {"unrecognized option", "salloc --help lists them (slurm_option)"},
};

class SlurmJobs final : public PlaceEngine {
 public:
  explicit SlurmJobs(const SlurmOptions& options) : options_(options) {}
  ~SlurmJobs() override;
  Expected<Way> reach(const std::optional<CancelToken>& cancel) override;

 private:
  Expected<void> ask_for_job();
  Error refusal() const;
  void cancel_leftovers() const;
  void report(Pieces what) const;

  const SlurmOptions options_;
  const pid_t owner_ = ::getpid();  // a fork of the program has no job
  std::optional<Process> holder_ = {};
  CancelToken heard_ = {};  // the job's number, or that there will be none
  std::string job_ = {};
};

// The output of one of Slurm's programs; empty when it failed.
std::string asked(const std::vector<std::string>& words) {
  ProcessOptions call;
  call.argv = words;
  call.environment = own_variables();
  call.timeout = call_timeout;
  const ProcessResult result = run_process(call);
  return result.succeeded() ? result.out : std::string();
}

SlurmJobs::~SlurmJobs() {
  if (owner_ != ::getpid() || !holder_) return;
  holder_->close_input();
  // One that still waits for its job reads no input.
  if (!heard_.cancelled()) holder_->signal(SIGTERM);
  (void)holder_->wait_for(std::chrono::seconds(5));
}

void SlurmJobs::report(Pieces what) const {
  if (options_.on_progress) options_.on_progress(concat(what));
}

// Those of programs on this machine that have ended.
void SlurmJobs::cancel_leftovers() const {
  const ProgramIdentity own = own_identity();
  const std::string listed = asked({"squeue", "-h", "--me", "-o", "%A;%k"});
  for (std::string_view rest = listed; !rest.empty();) {
    std::string_view line = take_part(rest, '\n');
    const std::string job(take_part(line, ';'));
    if (take_part(line, ';') != comment_start) continue;
    ProgramIdentity maker;
    for (std::string* const part :
         {&maker.host, &maker.boot, &maker.space, &maker.pid, &maker.start})
      *part = take_part(line, ';');
    if (maker_of(maker, own) != Maker::gone) continue;
    (void)asked({"scancel", job});
    report({"cancelled Slurm job ", job, ", which a program that has ended had left"});
  }
}

Expected<void> SlurmJobs::ask_for_job() {
  const ProgramIdentity own = own_identity();
  ProcessOptions call;
  call.argv = words_of({"salloc"});
  for (const std::string& word : options_.options) call.argv.push_back(concat({"--", word}));
  add_words(
      call.argv,
      {"--kill-command", "--job-name",
       concat({"codeexec-", options_.agent_id.empty() ? "agent" : options_.agent_id}), "--comment",
       concat({comment_start, ";", own.host, ";", own.boot, ";", own.space, ";", own.pid, ";",
               own.start}),
       "sh", "-c", holder_script});
  call.environment = own_variables();
  call.keep_input_open = true;
  heard_ = CancelToken();
  call.on_output = [heard = heard_, progress = options_.on_progress](Stream stream,
                                                                     std::string_view bytes) {
    if (stream == Stream::out && bytes.find('\n') != std::string_view::npos) heard.cancel();
    if (stream == Stream::err && progress)
      while (!bytes.empty()) progress(printable(take_part(bytes, '\n')));
  };
  ProcessResult failure;
  auto started = Process::start(
      std::move(call), [heard = heard_](const ProcessResult&) { heard.cancel(); }, &failure);
  if (!started)
    return make_error(ErrorCode::not_found,
                      {"cannot start salloc: ", failure.message, "; ", slurm_troubles[0].help});
  holder_ = std::move(*started);
  return {};
}

// Why there is no job.
Error SlurmJobs::refusal() const {
  const std::string said = holder_->read(Stream::err, 0).text;
  const std::string text = in_lower_case(said);
  std::string_view help;
  for (const SlurmTrouble& trouble : slurm_troubles)
    if (help.empty() && text.find(trouble.words) != std::string::npos) help = trouble.help;
  return make_error(ErrorCode::io, {"Slurm gives no job: ", printable(without_line_ends(said)),
                                    help.empty() ? "" : "; ", help});
}

Expected<PlaceEngine::Way> SlurmJobs::reach(const std::optional<CancelToken>& cancel) {
  Way way;
  // salloc may be the last one that hears of the end of its job.
  if (!job_.empty() && asked(words_of({"squeue", "-h", "-j", job_, "-o", "%t"})) != "R\n")
    (void)holder_->wait_for(std::chrono::seconds(5));
  if (!holder_ || holder_->done()) {
    holder_.reset();
    job_.clear();
    cancel_leftovers();
    if (auto ok = ask_for_job(); !ok) return ok.error();
  }
  if (!wait_for_event(heard_, cancel, later(Clock::now(), options_.start_timeout))) {
    if (cancel && cancel->cancelled())
      return with_message(system_error(ECANCELED, {}), "cancelled before it was started");
    return make_error(ErrorCode::io,
                      {"Slurm has not started a job in ", seconds_text(options_.start_timeout),
                       " s: it waits in the queue and stays there; try again later"});
  }
  const std::string printed = holder_->read(Stream::out, 0).text;
  std::string number = printed.substr(0, printed.find_first_not_of("0123456789"));
  if (number.empty()) {
    Error error = refusal();
    holder_.reset();
    return error;
  }
  job_ = std::move(number);
  way.name = concat({"Slurm job ", job_});
  // A task's output is passed on line by line.
  way.whole_lines = true;
  way.transport = words_of({"srun", "--jobid", job_, "--overlap", "--nodes=1", "--ntasks=1",
                            "--export=PATH,HOME,USER,LOGNAME,SHELL,LANG"});
  if (options_.agent.empty())
    add_words(way.transport, {"sh"});
  else
    add_words(way.transport, {options_.agent, "--place"});
  return way;
}

}  // namespace

Expected<std::shared_ptr<PlaceEngine>> slurm_jobs(const SlurmOptions& options) {
  for (const std::string& word : options.options)
    if (word.empty() || word[0] < 'a' || word[0] > 'z' || has_nul(word))
      return make_error(ErrorCode::invalid_argument,
                        {"slurm_option must be an option of salloc without `--` and with its value "
                         "in the same word, such as mem=4G, and not ",
                         in_quotes(word)});
  if (has_nul(options.agent_id) || has_nul(options.agent))
    return make_error(ErrorCode::invalid_argument, {"agent has a NUL byte in it"});
  return std::shared_ptr<PlaceEngine>(new_shared<SlurmJobs>(options));
}

}  // namespace v0_1
}  // namespace codeexec
