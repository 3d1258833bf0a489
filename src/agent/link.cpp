// The client's end of a connection to an agent: it is opened and closed.

#include "agent/agent.hpp"
#include "agent/flow_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/messages_internal.hpp"
#include "agent/nonce_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_account = 1024;

// What transports write when they fail, and what to do about it.
constexpr HelpRow place_troubles[] = {
    {"place_agent: ", "the agent cannot be put there"},
    {"host key verification failed",
     "its host key is not known, or another one than before: connect once by hand and compare it"},
    {"permission denied (", "it wants a key that is loaded, and no password can be asked for here"},
    {"could not resolve", "no machine has this name"},
    {"connection refused", "nothing listens there: is it up, and is the port right?"},
    {"timed out", "it does not answer: is it up, and reachable from here?"},
    {"no route to host", "it cannot be reached from here"},
    {"exec format error", "the agent there is for another processor"},
    {"cannot execute", "the agent there is not a program that runs there"},
    {"unknown option", "the agent there is of another version"},
};
constexpr auto packed_place_troubles = pack_help<place_troubles>();
// Not in a container, which has no such options.
constexpr HelpRow no_agent_there[] = {
    {"not found|no such file",
     "there is no such program there: install codeexec-mcp, name it (place_agent_path), or let it "
     "be copied (place_agent)"},
};
constexpr auto packed_no_agent_there = pack_help<no_agent_there>();

struct NamedFact {
  const char* name;
  std::string PlaceFacts::*member;
};
constexpr NamedFact named_facts[] = {{"version", &PlaceFacts::version},
                                     {"machine", &PlaceFacts::machine},
                                     {"host", &PlaceFacts::host},
                                     {"home", &PlaceFacts::home}};

}  // namespace

// A failure after the start of the transport needs no clean-up here: the destructor ends it. The
// thread begins last, so that until then this thread alone touches the link.
Expected<std::shared_ptr<AgentLink>> AgentLink::open(const Wanted& wanted,
                                                     const std::optional<CancelToken>& cancel) {
  const CancellationPause pause;
  auto link = new_shared<AgentLink>(wanted);
  if (auto ok = link->line_.start(wanted.transport); !ok)
    return with_prefix("cannot reach %: ", {wanted.name}, ok.error());
  for (const UniqueFd* fd : {&link->line_.input, &link->line_.out}) widen_pipe(fd->get());
  wanted.meanwhile();
  if (!make_pipe(link->wake_out_, link->wake_in_)) return system_error(errno, "cannot make a pipe");
  set_nonblocking(link->wake_out_);
  set_nonblocking(link->wake_in_);
  if (auto ok = link->greet(wanted, cancel); !ok) return ok.failure();
  if (const int error = start_thread(&link->thread_, thread_main, link.get()); error != 0)
    return system_error(error, "cannot start a thread");
  link->has_thread_ = true;
  return link;
}

// Ends the input of the agent, which then kills all that it has started and ends itself, and so
// does the transport. That gets half a second, as a place that hangs must not hold up the caller;
// what is left of the transport is killed by ~PipedProgram().
AgentLink::~AgentLink() {
  if (owner_ != ::getpid()) {
    has_thread_ = false;
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    line_.input.reset();
  }
  wake();
  if (has_thread_) ::pthread_join(thread_, nullptr);
  if (lost() || !has_thread_) return;
  std::vector<pollfd> set = {{line_.child.exit_event.get(), POLLIN, 0}};
  wait_for_events(set, later(Clock::now(), std::chrono::milliseconds(500)));
}

// The thread may be asking an engine for the reason: to answer before it has would let a caller
// report a loss without its cause, or reconnect while commands of the old connection still end.
bool AgentLink::is_lost() const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!lost()) return false;
  }
  wait_for_event(settled_, {}, Clock::time_point::max());
  return true;
}

// A copy, as the thread may add the cause to it meanwhile.
std::string AgentLink::reason() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

void* AgentLink::thread_main(void* self) {
  auto& link = *static_cast<AgentLink*>(self);
  while (link.pump(-1, Clock::time_point::max())) {
  }
  return nullptr;
}

// The error of an agent that has not answered.
SharedError AgentLink::failure() const {
  std::string said = said_.text();
  std::string_view help = help_in(said, packed_place_troubles.table());
  if (help.empty() && !is_container_) help = help_in(said, packed_no_agent_there.table());
  while (!said.empty() && (said.back() == '\n' || said.back() == '\r')) said.pop_back();
  return make_error(ErrorCode::io, "cannot reach %: %%%%%",
                    {name_, help, help.empty() ? "" : "; ", reason_,
                     said.empty() ? "" : "; it said: ", printable(said)});
}

// Gives a shell at the other end the agent's program, where there is one to give, and waits until
// that speaks. Most often it is there already, and the script alone was sent.
Expected<void> AgentLink::bring(const Wanted& wanted, const std::optional<CancelToken>& cancel) {
  AgentUpload upload;
  if (auto ok = wanted.upload(upload); !ok || upload.script.empty()) return ok;
  upload_ = upload.program;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    send(upload.script);
  }
  if (auto ok = wait_for_agent(wanted, cancel, Life::speaking); !ok) return ok;
  upload_ = {};
  queue_.bytes.shrink_to_fit();
  return {};
}

// Sends the hello, and opens the link when the answer is what was wanted. The nonce lies in the
// workspace while the agent looks for it, and no longer.
Expected<void> AgentLink::greet(const Wanted& wanted, const std::optional<CancelToken>& cancel) {
  if (auto ok = bring(wanted, cancel); !ok) return ok;
  std::optional<Nonce> nonce;
  Json hello = wanted.hello;
  if (!wanted.workspace.empty()) {
    nonce.emplace(wanted.workspace);
    if (!nonce->problem().empty())
      return make_error(ErrorCode::io,
                        "workspace: %, by which % could show that it has the same files",
                        {nonce->problem(), name_});
    set_member(hello, "nonces", list_of({nonce->path()}));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    send(FrameKind::hello, 0, hello.dump());
  }
  if (auto ok = wait_for_agent(wanted, cancel, Life::answered); !ok) return ok;
  if (auto ok = take_greeting(wanted, nonce ? nonce->content() : std::string()); !ok) return ok;
  const std::lock_guard<std::mutex> lock(mutex_);
  said_ = Capture(longest_account);
  if (!lost()) life_ = Life::open;
  return {};
}

// Drives the link in this thread until an agent speaks or has answered, the caller cancels, or the
// time has passed. An agent of another protocol counts as one that has answered: take_greeting()
// then has a better message than that the connection was lost.
Expected<void> AgentLink::wait_for_agent(const Wanted& wanted,
                                         const std::optional<CancelToken>& cancel, Life until) {
  const Clock::time_point start = Clock::now();
  while (life_ < until) {
    if (cancel && cancel->cancelled()) return cancelled_before_start();
    // A copy may take a second more for each 32 kB.
    const Clock::time_point deadline =
        later(start, wanted.connect_timeout + std::chrono::milliseconds(uploaded_ / 32));
    if (Clock::now() >= deadline) {
      const std::lock_guard<std::mutex> lock(mutex_);
      lose("it did not answer within % s", {seconds_text(wanted.connect_timeout)});
      break;
    }
    pump(cancel ? cancel->descriptor() : -1, deadline);
  }
  if (lost() && !greeting_) return failure();
  return {};
}

// Checks the agent's hello, all of which may be untrue: texts are bounded and made printable before
// they go into a message. What only an older agent lacks is an error if it is needed, never
// ignored.
Expected<void> AgentLink::take_greeting(const Wanted& wanted, std::string_view nonce) {
  const Json& answer = *greeting_;
  if (answer["protocol"sv] != Json(agent_protocol))
    return make_error(ErrorCode::unsupported,
                      "the agent in % speaks protocol %, and this program %%",
                      {name_, printable(answer["protocol"sv].dump()), agent_protocol,
                       ": install codeexec-mcp " CODEEXEC_VERSION_STRING " there"});
  if (answer.find("error"))
    return make_error(ErrorCode::unsupported, "the agent in % said: %",
                      {name_, printable(bounded(answer["error"sv]))});
  for (const NamedFact& fact : named_facts) facts_.*fact.member = bounded(answer[fact.name]);
  facts_.uid = static_cast<std::uint64_t>(answer["uid"sv].as_integer());
  facts_.sandbox = sandbox_report_from(answer["sandbox"sv]);
  resizes_ = answer["resizes"sv].as_bool();
  if (wanted.hello["connections"sv].as_bool() && !answer["connections"sv].as_bool())
    return make_error(ErrorCode::unsupported,
                      "network: 'allow' needs an agent of version % in %, which has %",
                      {CODEEXEC_VERSION_STRING, name_, printable(facts_.version)});
  root_list_ = answer["ground"sv].as_string();
  const Json& seen = answer["nonces"sv][0];
  if (!nonce.empty() && seen.as_string() != nonce)
    return make_error(
        ErrorCode::unsupported,
        "workspace: % is not the same folder in % (%): mount it there under the same path, or let "
        "it be only there (place_workspace remote) or copied (place_workspace copy)",
        {in_quotes(wanted.workspace), name_,
         seen.is_string() ? printable(bounded(seen)) : "it may not be looked into"});
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
