// Jobs of Slurm.
//
// `salloc` asks for a job, waits in the queue with it and holds it: its command, a shell, prints
// the job's number and reads standard input until that ends. `srun` starts the agent as a step of
// the job, beside which others may run.
//
//   state   event                                     next    function
//   none    a command comes                           asked   reach() -> ask_for_job()
//   asked   salloc prints the job's number            runs    reach()
//   asked   salloc ends without one                   none    reach() -> refusal()
//   asked   no number within start_timeout            asked   reach(): it waits in the queue
//   asked   a cancel                                  asked   reach(): the next command waits on
//   runs    a command comes, the job still runs       runs    current()
//   runs    squeue says no, and salloc ends in 5 s    asked   reach() -> ask_for_job()
//   runs    squeue says no, and salloc goes on        runs    reach(): the same way is tried
//   runs    salloc has ended, a command comes         asked   reach() -> ask_for_job()
//   each    ~SlurmJobs()                              none    ends salloc, which gives the job back
//
// What holds: in `asked` and `runs`, holder_ is an salloc whose input is held open; when that ends,
// the job does, however this program ends. heard_ is cancelled once there is a number or there will
// be none; ended_ when salloc has ended, for a pool that keeps the job ready. job_ is set in
// `runs`, and after that until the next command.

#include "cluster/cluster.hpp"
#include "cluster/cluster_internal.hpp"

#include "agent/agent.hpp"
#include "agent/identity_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "executor/executor_internal.hpp"
#include "place/place.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr char holder_script[] = "echo \"$SLURM_JOB_ID\"; exec cat";
constexpr std::string_view comment_start = "codeexec";
constexpr std::string_view name_start = "codeexec-";

// What Slurm says, and what to do about it.
constexpr HelpRow slurm_troubles[] = {
    {"no such file", "install Slurm's programs here, or set PATH"},
    {"invalid partition", "choose one that `sinfo` lists (slurm_option)"},
    {"invalid account", "choose one that `sacctmgr show associations` lists (slurm_option)"},
    {"not available|can not be satisfied", "no node has what is asked for (slurm_option)"},
    {"unable to contact", "its controller does not answer: ask who runs the cluster"},
    {"access", "this user may not do that: ask who runs the cluster"},
    {"unrecognized option", "salloc --help lists them (slurm_option)"},
};
constexpr auto packed_slurm_troubles = pack_help<slurm_troubles>();

class SlurmJobs final : public PlaceEngine {
 public:
  explicit SlurmJobs(const SlurmOptions& options) : options_(options) {}
  ~SlurmJobs() override;
  Expected<Way> reach(const std::optional<CancelToken>& cancel) override;
  Expected<Way> current() override;

 private:
  Way way() const;
  Expected<void> ask_for_job();
  SharedError refusal() const;

  const SlurmOptions options_;
  const pid_t owner_ = ::getpid();  // a fork of the program has no job
  std::optional<Process> holder_ = {};
  CancelToken heard_ = {};  // the job's number, or that there will be none
  CancelToken ended_ = {};  // salloc
  std::string job_ = {};
};

// Its words on one line, and advice where they are known.
SharedError slurm_error(std::string_view what, std::string_view words) {
  std::string said(without_line_ends(words));
  std::replace(said.begin(), said.end(), '\n', ' ');
  const std::string_view help = help_in(said, packed_slurm_troubles.table());
  return make_error(ErrorCode::io, "%: %%%",
                    {what, printable(said), help.empty() ? "" : "; ", help});
}

// The wait is bounded, as a controller that hangs must not hold up the end of this program.
SlurmJobs::~SlurmJobs() {
  if (owner_ != ::getpid() || !holder_) return;
  holder_->close_input();
  // One that still waits for its job reads no input.
  if (!heard_.cancelled()) holder_->signal(SIGTERM);
  (void)holder_->wait_for(std::chrono::seconds(5));
}

// The comment marks whose job it is, for slurm_places(). What salloc reports on the way goes to
// on_progress, line by line.
Expected<void> SlurmJobs::ask_for_job() {
  ProcessOptions call;
  call.argv = with_long_options("salloc", options_.options);
  add_words(
      call.argv,
      {"--kill-command", "--job-name",
       concat({name_start, options_.agent_id.empty() ? "agent" : printable(options_.agent_id)}),
       "--comment", concat("%;%", {comment_start, owner_text(own_identity())}), "sh", "-c",
       holder_script});
  call.environment = own_variables();
  call.keep_input_open = true;
  heard_ = CancelToken();
  ended_ = CancelToken();
  call.on_output = [heard = heard_, progress = options_.on_progress](Stream stream,
                                                                     std::string_view bytes) {
    if (stream == Stream::out && bytes.find('\n') != std::string_view::npos) heard.cancel();
    if (stream == Stream::err && progress)
      while (!bytes.empty()) progress(printable(take_part(bytes, '\n')));
  };
  ProcessResult failure;
  auto started = Process::start(
      std::move(call),
      [heard = heard_, ended = ended_](const ProcessResult&) {
        ended.cancel();
        heard.cancel();
      },
      &failure);
  if (!started)
    return make_error(ErrorCode::not_found, "cannot start salloc: %; %",
                      {failure.message, help_in("no such file"sv, packed_slurm_troubles.table())});
  holder_ = std::move(*started);
  return {};
}

// Why there is no job.
SharedError SlurmJobs::refusal() const {
  return slurm_error("Slurm gives no job", holder_->read(Stream::err, 0).text);
}

// A controller that does not answer says nothing of the job.
Expected<PlaceEngine::Way> SlurmJobs::current() {
  if (job_.empty() || holder_->done()) return PlaceEngine::current();
  const ProcessResult queued = call_cluster({}, {"squeue", "-h", "-j", job_, "-o", "%t"});
  if (queued.succeeded() && queued.out != "R\n") return PlaceEngine::current();
  return way();
}

PlaceEngine::Way SlurmJobs::way() const {
  Way way;
  way.name = concat("Slurm job %", {job_});
  // A task's output is passed on line by line.
  way.whole_lines = true;
  way.transport = words_of({"srun", "--jobid", job_, "--overlap", "--nodes=1", "--ntasks=1",
                            "--export=PATH,HOME,USER,LOGNAME,SHELL,LANG"});
  add_agent(way.transport, options_.agent);
  way.ended = ended_;
  return way;
}

Expected<PlaceEngine::Way> SlurmJobs::reach(const std::optional<CancelToken>& cancel) {
  if (!job_.empty()) {
    if (auto there = current(); there) return there;
    // salloc may be the last one that hears of the end of its job.
    (void)holder_->wait_for(std::chrono::seconds(5));
  }
  if (!holder_ || holder_->done()) {
    holder_.reset();
    job_.clear();
    report_removed(options_.on_progress, slurm_places(true), "", "cancelled Slurm job ");
    if (auto ok = ask_for_job(); !ok) return ok.failure();
  }
  if (!wait_for_event(heard_, cancel, later(Clock::now(), options_.start_timeout))) {
    if (cancel && cancel->cancelled()) return cancelled_before_start();
    return make_error(ErrorCode::io,
                      "Slurm has not started a job in % s: it waits in the queue and stays there; "
                      "try again later",
                      {seconds_text(options_.start_timeout)});
  }
  const std::string printed = holder_->read(Stream::out, 0).text;
  std::string number = printed.substr(0, printed.find_first_not_of("0123456789"));
  if (number.empty()) {
    Error error = refusal();
    holder_.reset();
    return error;
  }
  job_ = std::move(number);
  return way();
}

}  // namespace

Expected<std::vector<FoundPlace>> slurm_places(bool remove_left) {
  const ProgramIdentity own = own_identity();
  // Times are printed as numbers.
  const ProcessResult listed =
      call_cluster({}, {"squeue", "-h", "--me", "-o", "%A;%T;%V;%k;%j"}, {"SLURM_TIME_FORMAT=%s"});
  if (!listed.succeeded()) return slurm_error("Slurm lists no jobs", complaint_of(listed));
  std::vector<FoundPlace> found;
  for (std::string_view rest = listed.out; !rest.empty();) {
    std::string_view line = take_part(rest, '\n');
    FoundPlace place;
    place.name = take_part(line, ';');
    place.state = in_lower_case(take_part(line, ';'));
    const std::string begun(take_part(line, ';'));
    if (take_part(line, ';') != comment_start) continue;
    ProgramIdentity maker = take_owner(line);
    if (starts_with(line, name_start)) place.agent = line.substr(name_start.size());
    const long long since = std::strtoll(begun.c_str(), nullptr, 10);
    place.age = std::chrono::seconds(since > 0 ? ::time(nullptr) - since : -1);
    place.maker_runs = still_runs(maker, own);
    place.host = std::move(maker.host);
    place.pid = std::move(maker.pid);
    if (remove_left && place.maker_runs == false && place.state != "completing") {
      const ProcessResult removed = call_cluster({}, {"scancel", place.name});
      if (!removed.succeeded())
        return slurm_error(concat("Slurm does not cancel job %", {place.name}),
                           complaint_of(removed));
      place.was_removed = true;
    }
    found.push_back(std::move(place));
  }
  return found;
}

Expected<std::shared_ptr<PlaceEngine>> slurm_jobs(const SlurmOptions& options) {
  for (const std::string& word : options.options)
    if (!is_long_option(word))
      return make_error(ErrorCode::invalid_argument,
                        "slurm_option must be an option of salloc without `--` and with its value "
                        "in the same word, such as mem=4G, and not %",
                        {in_quotes(word)});
  if (has_nul(options.agent_id) || has_nul(options.agent))
    return make_error(ErrorCode::invalid_argument, "agent has a NUL byte in it");
  return std::shared_ptr<PlaceEngine>(new_shared<SlurmJobs>(options));
}

}  // namespace v0_1
}  // namespace codeexec
