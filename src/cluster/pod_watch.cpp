// Waiting for a pod, what its status says, and what to do about the errors of kubectl.

#include "cluster/cluster_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "json/json.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_event = std::size_t{4} << 20;

// What kubectl says, and what to do about it.
constexpr HelpRow kubernetes_troubles[] = {
    {"kubectl: not found|kubectl: command not found", "install kubectl here, or set PATH"},
    {"exceeded quota", "the namespace has no room: ask for less (kubernetes_limit), or end others"},
    {"must specify", "the namespace wants limits (kubernetes_limit)"},
    {"violates podsecurity", "the namespace allows only pods with less rights"},
    {"forbidden", "this user may not do that: --doctor prints the Role that is needed"},
    {"unauthorized|must be logged in", "kubectl must log in first"},
    {"context was not found|does not exist",
     "`kubectl config get-contexts` lists them (kubernetes_option)"},
    {"namespaces \"", "`kubectl get namespaces` lists them (kubernetes_option)"},
    {"resource mapping not found|doesn't have a resource type",
     "agent-sandbox v1beta1 is not installed there"},
    {"unknown flag", "`kubectl options` lists them (kubernetes_option)"},
    {"refused|unable to connect",
     "nothing answers there: is the cluster up, and the context right?"},
    {"errimageneverpull", "the node does not have the image, and may not get it"},
    {"errimagepull|imagepullbackoff", "is its name right, and may the node get it?"},
    {"invalidimagename", "an image is called registry/name:tag (kubernetes_image)"},
    {"runasnonroot", "the image has no such user: it must run as another than root"},
    {"warmpoolnotfound", "`kubectl get sandboxwarmpools` lists them (kubernetes_warm_pool)"},
    {"outof", "the node has too little of that: ask for less (kubernetes_limit)"},
};
constexpr auto packed_kubernetes_troubles = pack_help<kubernetes_troubles>();

// Adds "OOMKilled: its message".
void add_reason(std::string& why, const Json& part) {
  const std::string& message = part["message"sv].as_string();
  const std::string reason =
      concat({part["reason"sv].as_string(), message.empty() ? "" : ": ", message});
  if (reason.empty()) return;
  append_all(why, {why.empty() ? "" : "; ", printable(utf8_prefix(reason, 500))});
}

const Json& condition_of(const Json& status, std::string_view type) {
  for (const Json& condition : status["conditions"sv].items())
    if (condition["type"sv].as_string() == type) return condition;
  return status["none"sv];
}

// A container that waits for anything but its start will not come by itself within a command's
// time: an image that cannot be pulled, a crash that repeats. That counts as the end, with its
// reason in `why`.
PodState state_of_pod(const Json& pod, std::string& why) {
  const Json& status = pod["status"sv];
  const std::string& phase = status["phase"sv].as_string();
  const bool deleted = !pod["metadata"sv]["deletionTimestamp"sv].is_null();
  bool ended = deleted || phase == "Failed" || phase == "Succeeded";
  add_reason(why, status);
  add_reason(why, condition_of(status, "DisruptionTarget"));
  for (const char* const list : {"initContainerStatuses", "containerStatuses"})
    for (const Json& container : status[list].items()) {
      const Json& waiting = container["state"sv]["waiting"sv];
      const std::string& reason = waiting["reason"sv].as_string();
      if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing") {
        ended = true;
        add_reason(why, waiting);
      }
      // One that has only ended says no more than its pod does.
      const Json& end = container["state"sv]["terminated"sv];
      if (end["reason"sv].as_string() != "Completed" && end["exitCode"sv].as_integer() != 0)
        add_reason(why, end);
    }
  if (deleted) why = why.empty() ? "it was deleted" : concat("it was deleted: %", {why});
  if (ended && why.empty()) why = "its program has ended";
  if (ended) return pod_ended;
  if (condition_of(status, "Ready")["status"sv].as_string() == "True") return pod_ready;
  add_reason(why, condition_of(status, phase == "Pending" ? "PodScheduled" : "Ready"));
  return pod_waits;
}

// A claim for a pool that is not there will not be served; all else may still come.
PodState state_of_claim(const Json& claim, std::string& why) {
  const Json& ready = condition_of(claim["status"sv], "Ready");
  const std::string& reason = ready["reason"sv].as_string();
  add_reason(why, ready);
  if (!claim["metadata"sv]["deletionTimestamp"sv].is_null() || reason == "WarmPoolNotFound" ||
      reason == "TemplateNotFound" || reason == "ClaimExpired" ||
      condition_of(claim["status"sv], "Finished")["status"sv].as_string() == "True")
    return pod_ended;
  return ready["status"sv].as_string() == "True" ? pod_ready : pod_waits;
}

}  // namespace

inline namespace inner {

std::string_view kubectl_help(std::string_view said) {
  return help_in(said, packed_kubernetes_troubles.table());
}

std::string kubectl_trouble(std::string_view said) {
  // The error is the last line, behind a log of attempts.
  std::string_view last;
  for (std::string_view rest = said; !rest.empty();) {
    const std::string_view line = take_part(rest, '\n');
    if (!line.empty()) last = line;
  }
  const std::string_view help = kubectl_help(said);
  return concat({printable(utf8_prefix(last, 1000)), help.empty() ? "" : "; ", help});
}

// `why` is of this event alone: a reason that has gone is none any more.
PodState PodWatch::look_at(const Json& event) {
  why.clear();
  seen = event["object"sv];
  if (event["type"sv].as_string() == "DELETED") {
    why = "it was deleted";
    return pod_ended;
  }
  return kind == claim_kind ? state_of_claim(seen, why) : state_of_pod(seen, why);
}

// One `kubectl get --watch` after another, until a state of `until` was seen. Each sends the
// present object first, so that nothing is missed between two. An event that is longer than 4 MiB
// is dropped. An object that is not there has ended; any other failure of kubectl is an error.
Expected<PodState> PodWatch::wait(const std::optional<CancelToken>& cancel,
                                  std::chrono::steady_clock::time_point deadline) {
  PodState state = pod_waits;
  // The API server ends a watch now and then.
  while (Clock::now() < deadline) {
    const CancelToken event;
    bool done = false;
    std::string held;
    ProcessOptions call;
    call.argv = kubectl;
    add_words(call.argv, {"get", kind, name, "--watch", "--output-watch-events", "-o", "json"});
    call.environment = own_variables();
    call.on_output = [&](Stream stream, std::string_view bytes) {
      if (stream != Stream::out || done) return;
      held += bytes;
      std::string_view lines = held;
      for (std::size_t end = 0; !done && (end = lines.find('\n')) != std::string_view::npos;) {
        const std::string before = why;
        if (const auto parsed = Json::parse(lines.substr(0, end))) state = look_at(*parsed);
        done = (state & until) != 0;
        if (!done && on_progress && !why.empty() && why != before)
          on_progress(concat("Kubernetes: %: %", {name, why}));
        lines.remove_prefix(end + 1);
      }
      held.erase(0, held.size() - lines.size());
      if (held.size() > longest_event) held.clear();
      if (done) event.cancel();
    };
    auto started =
        Process::start(std::move(call), [event](const ProcessResult&) { event.cancel(); });
    if (!started) return with_prefix("cannot start kubectl: ", {}, started.error());
    const bool heard = wait_for_event(event, cancel, deadline);
    const bool failed = heard && !done && started->wait_for(std::chrono::seconds(1)) &&
                        !started->wait().succeeded();
    const std::string said = started->read(Stream::err, 0).text;
    // When it has gone, its callback no longer writes to `held`, `state` and `done`.
    { const Process last = std::move(*started); }
    if (done) return state;
    if (cancel && cancel->cancelled()) return cancelled_before_start();
    if (failed && said.find("(NotFound)") != std::string::npos) {
      why = "it was deleted";
      return pod_ended;
    }
    if (failed) return make_error(ErrorCode::io, "%", {kubectl_trouble(said)});
  }
  return state;
}

// Empty also where events may not be listed: a message then has one reason less.
std::string last_warning(const std::vector<std::string>& kubectl, const std::string& name) {
  const ProcessResult listed =
      call_cluster(kubectl, {"get", "events", "--sort-by=.lastTimestamp", "--field-selector",
                             concat("type=Warning,involvedObject.name=%", {name}), "-o",
                             "jsonpath={range .items[*]}{.reason}: {.message}{\"\\n\"}{end}"});
  std::string_view lines = without_line_ends(listed.out);
  lines.remove_prefix(std::min(lines.rfind('\n') + 1, lines.size()));
  return listed.succeeded() ? printable(utf8_prefix(lines, 500)) : std::string();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
