// Pods of Kubernetes.
//
// A shell creates the pod, reads standard input until that ends, and deletes the pod, even if this
// program was killed. `kubectl get --watch` reports when the pod is ready, and `kubectl exec`
// starts the agent in it.
//
//   state   event                                    next    function
//   none    a command comes                          asked   reach() -> make()
//   asked   the holder prints that it was created    made    wait_until_made()
//   asked   Kubernetes refuses it                    none    wait_until_made(): the error
//   asked   no answer within start_timeout           none    wait_until_made() -> forget()
//   made    it is ready                              up      reach() by wait_for()
//   made    it is not ready within start_timeout     made    not_started(): the next one waits on
//   made    it has ended                             none    not_started() -> forget()
//   up      a command comes, and it is still there   up      current(), reach()
//   up      it has ended or is not ready             asked   reach() -> forget(), make(), once
//   each    the holder has ended                     none    reach() -> forget()
//   each    a cancel                                 (same)  the next command goes on from there
//   each    ~KubernetesPods()                        none    forget()
//
// What holds: in `asked`, `made` and `up`, holder_ runs, and the end of its input deletes the pod,
// so that none is left however this program ends. name_ is the object that was created, and pod_
// the pod: the same, or that which a claim was given. was_up_ is true in `up` alone: only a pod
// that was ready before may be replaced by another one without an error, as its image and limits
// are known to be good.

#include "cluster/cluster.hpp"
#include "cluster/cluster_internal.hpp"

#include "agent/agent.hpp"
#include "agent/identity_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "place/place.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Arguments: the pod's name, its kind, kubectl and its options. It prints a line when the pod is
// made. What could not be created is deleted as well, for an answer may be lost on its way.
constexpr char pod_holder[] =
    "n=$1 k=$2; shift 2\n"
    "IFS= read -r o\n"
    "printf '%s\\n' \"$o\" | \"$@\" create -f - && while read -r o; do :; done\n"
    "s=$?\n"
    "\"$@\" delete \"$k\" \"$n\" --now --wait=false --ignore-not-found >/dev/null 2>&1\n"
    "exit $s\n";
// After the connection was lost, for Kubernetes to say why.
constexpr std::chrono::seconds account_time(6);
constexpr std::chrono::seconds current_time(10);

class KubernetesPods final : public PlaceEngine {
 public:
  explicit KubernetesPods(const KubernetesOptions& options)
      : options_(options),
        kubectl_(with_long_options("kubectl", options.options)),
        kind_(options.warm_pool.empty() ? "pod" : claim_kind) {}
  ~KubernetesPods() override;
  Expected<Way> reach(const std::optional<CancelToken>& cancel) override;
  Expected<Way> current() override;

 private:
  using Cancel = std::optional<CancelToken>;
  Way way() const;
  Expected<void> make();
  Expected<void> wait_until_made(const Cancel& cancel, Clock::time_point deadline);
  Expected<PodState> wait_for(const char* kind, std::string& name, const Cancel& cancel,
                              Clock::time_point deadline, std::string& why) const;
  SharedError not_started(PodState state, std::string why);
  void forget();

  const KubernetesOptions options_;
  const std::vector<std::string> kubectl_;
  const char* const kind_;
  const pid_t owner_ = ::getpid();  // a fork of the program has no pod
  std::optional<Process> holder_ = {};
  CancelToken heard_ = {};  // that it was made, or that it will not be
  std::string name_ = {};
  std::string pod_ = {};  // which is name_, or that which a claim has been given
  bool was_up_ = false;
};

KubernetesPods::~KubernetesPods() {
  if (owner_ == ::getpid()) forget();
}

// Has the holder delete what there is, also if that is not known to exist. The wait is bounded:
// kubectl may hang, and the holder goes on without this program.
void KubernetesPods::forget() {
  if (holder_) {
    holder_->close_input();
    (void)holder_->wait_for(std::chrono::seconds(10));
  }
  holder_.reset();
  was_up_ = false;
}

// Starts the holder, and hands it the object on its input, as an argument of a process can be read
// by all users of this host. The name is random, so that a failed attempt is in the way of none.
Expected<void> KubernetesPods::make() {
  name_ = concat("codeexec-%-%", {agent_label(options_.agent_id), random_hex(6)});
  auto object = pod_object(options_, name_);
  if (!object) return object.failure();
  ProcessOptions call;
  call.argv = words_of({"sh", "-c", pod_holder, "sh", name_, kind_});
  call.argv.insert(call.argv.end(), kubectl_.begin(), kubectl_.end());
  call.environment = own_variables();
  call.keep_input_open = true;
  heard_ = CancelToken();
  call.on_output = [heard = heard_](Stream stream, std::string_view) {
    if (stream == Stream::out) heard.cancel();
  };
  auto started =
      Process::start(std::move(call), [heard = heard_](const ProcessResult&) { heard.cancel(); });
  if (!started) return with_prefix("cannot start sh: ", {}, started.error());
  holder_ = std::move(*started);
  *object += '\n';
  return holder_->write(*object);
}

// A cancel leaves the holder running: the pod may come, and the next command takes it.
Expected<void> KubernetesPods::wait_until_made(const Cancel& cancel, Clock::time_point deadline) {
  if (!wait_for_event(heard_, cancel, deadline)) {
    if (cancel && cancel->cancelled()) return cancelled_before_start();
    forget();
    return make_error(ErrorCode::io, "Kubernetes has not answered in % s",
                      {seconds_text(options_.start_timeout)});
  }
  if (holder_->read(Stream::out, 0).next != 0) return {};
  // It has ended, or is about to.
  (void)holder_->wait_for(std::chrono::seconds(10));
  const std::string said = holder_->read(Stream::err, 0).text;
  holder_.reset();
  return make_error(ErrorCode::io, "Kubernetes gives no pod: %", {kubectl_trouble(said)});
}

// Waits until it is ready or has ended. One that was ready before is only looked at.
Expected<PodState> KubernetesPods::wait_for(const char* kind, std::string& name,
                                            const Cancel& cancel, Clock::time_point deadline,
                                            std::string& why) const {
  const int until = pod_ready | pod_ended | (was_up_ ? pod_waits : 0);
  PodWatch watch = {kubectl_, kind, name, until, {}, {}, options_.on_progress};
  auto state = watch.wait(cancel, deadline);
  why = std::move(watch.why);
  if (state && *state == pod_ready && kind == claim_kind) {
    // A sandbox of a pool says which pod it has.
    name = watch.seen["status"sv]["sandbox"sv]["name"sv].as_string();
    const ProcessResult shown =
        call_cluster(kubectl_, {"get", "sandboxes.agents.x-k8s.io", name, "-o",
                                "jsonpath={.metadata.annotations.agents\\.x-k8s\\.io/pod-name}"});
    if (!shown.succeeded())
      return make_error(ErrorCode::io, "%", {kubectl_trouble(complaint_of(shown))});
    if (!shown.out.empty()) name = shown.out;
    return wait_for("pod", name, cancel, deadline, why);
  }
  return state;
}

// The reason is that of the status, or the last warning of its events. A pod that has ended will
// not come back and is deleted; one that waits may only need a node.
SharedError KubernetesPods::not_started(PodState state, std::string why) {
  if (why.empty()) why = last_warning(kubectl_, name_);
  const std::string_view help = kubectl_help(why);
  const bool ended = state == pod_ended;
  if (ended) forget();
  return make_error(
      ErrorCode::io, "Kubernetes pod %%%%%%%%",
      {name_, ended ? " does not start: " : " is not ready after ",
       ended ? "" : seconds_text(options_.start_timeout), ended ? "" : " s: ", why,
       help.empty() ? "" : "; ", help, ended ? "" : "; it stays there: try again later"});
}

// `account` has copies of what it needs: it may be called when this object has gone.
PlaceEngine::Way KubernetesPods::way() const {
  Way way;
  way.name = concat("Kubernetes pod %", {printable(pod_)});
  way.transport = kubectl_;
  add_words(way.transport, {"exec", "-i", "-q", pod_, "--"});
  add_agent(way.transport, options_.agent);
  way.account = [kubectl = kubectl_, pod = pod_] {
    PodWatch watch = {kubectl, "pod", pod, pod_ended};
    const auto now = watch.wait({}, later(Clock::now(), account_time));
    return now && *now != pod_ready ? watch.why : std::string();
  };
  return way;
}

// An API server that does not answer says nothing of the pod.
Expected<PlaceEngine::Way> KubernetesPods::current() {
  if (!was_up_ || holder_->done()) return PlaceEngine::current();
  std::string pod = name_;
  std::string why;
  const auto seen = wait_for(kind_, pod, {}, later(Clock::now(), current_time), why);
  if (seen && *seen != pod_ready) return PlaceEngine::current();
  return way();
}

// Goes through the states above until the pod is up. `again` is only true after a pod that was up,
// so that a wrong image is no endless loop.
Expected<PlaceEngine::Way> KubernetesPods::reach(const Cancel& cancel) {
  const Clock::time_point deadline = later(Clock::now(), options_.start_timeout);
  if (holder_ && holder_->done()) forget();
  std::string why;
  PodState state = pod_waits;
  for (bool again = true; again;) {
    const bool is_new = !holder_;
    if (is_new)
      if (auto ok = make(); !ok) return ok.failure();
    if (auto ok = wait_until_made(cancel, deadline); !ok) return ok.failure();
    if (is_new)
      report_removed(options_.on_progress, kubernetes_places(options_, true),
                     "cannot look for what programs have left: ", "deleted ");
    pod_ = name_;
    const auto seen = wait_for(kind_, pod_, cancel, deadline, why);
    if (!seen) return with_prefix("Kubernetes: ", {}, seen.error());
    state = *seen;
    again = was_up_ && state != pod_ready;
    if (again) forget();
  }
  if (state != pod_ready) return not_started(state, why);
  was_up_ = true;
  return way();
}

}  // namespace

// All objects with the label of this library, of any program of ours; those are deleted whose
// program has ended for sure. One that is on its way out already is left to Kubernetes.
Expected<std::vector<FoundPlace>> kubernetes_places(const KubernetesOptions& options,
                                                    bool remove_left) {
  const std::vector<std::string> kubectl = with_long_options("kubectl", options.options);
  const char* const kind = options.warm_pool.empty() ? "pod" : claim_kind;
  const ProcessResult listed = call_cluster(
      kubectl, {"get", kind, "-l", "app.kubernetes.io/managed-by=codeexec", "-o", "json"});
  const auto list = Json::parse(listed.out);
  if (!listed.succeeded() || !list)
    return make_error(ErrorCode::io, "Kubernetes lists nothing: %",
                      {kubectl_trouble(complaint_of(listed))});
  const ProgramIdentity own = own_identity();
  std::vector<FoundPlace> found;
  for (const Json& item : (*list)["items"sv].items()) {
    const Json& metadata = item["metadata"sv];
    FoundPlace place;
    place.name = metadata["name"sv].as_string();
    place.agent = metadata["labels"sv]["codeexec/agent"sv].as_string();
    place.age = age_since(metadata["creationTimestamp"sv].as_string());
    std::string_view owner = metadata["annotations"sv]["codeexec/owner"sv].as_string();
    ProgramIdentity maker = take_owner(owner);
    place.maker_runs = still_runs(maker, own);
    place.host = std::move(maker.host);
    place.pid = std::move(maker.pid);
    const bool is_going = !metadata["deletionTimestamp"sv].is_null();
    place.state = is_going ? "deleted" : in_lower_case(item["status"sv]["phase"sv].as_string());
    if (remove_left && place.maker_runs == false && !is_going) {
      const ProcessResult removed = call_cluster(
          kubectl, {"delete", kind, place.name, "--now", "--wait=false", "--ignore-not-found"});
      if (!removed.succeeded())
        return make_error(ErrorCode::io, "Kubernetes does not delete %: %",
                          {printable(place.name), kubectl_trouble(complaint_of(removed))});
      place.was_removed = true;
    }
    found.push_back(std::move(place));
  }
  return found;
}

// Checks what can be checked without a cluster. No pod is made here.
Expected<std::shared_ptr<PlaceEngine>> kubernetes_pods(const KubernetesOptions& options) {
  const auto wrong = [](const char* what, Pieces values = {}) {
    return make_error(ErrorCode::invalid_argument, what, values);
  };
  for (const std::string& word : options.options)
    if (!is_long_option(word))
      return wrong(
          "kubernetes_option must be an option of kubectl without `--` and with its value in the "
          "same word, such as context=lab, and not %",
          {in_quotes(word)});
  for (const std::string& limit : options.limits) {
    const std::size_t equals = limit.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == limit.size())
      return wrong("kubernetes_limit must be NAME=QUANTITY, such as memory=1Gi, and not %",
                   {in_quotes(limit)});
  }
  const int kinds =
      !options.image.empty() + !options.pod_template.empty() + !options.warm_pool.empty();
  if (kinds != 1)
    return wrong(
        "a pod needs one of kubernetes_image, kubernetes_pod_template and kubernetes_warm_pool, "
        "and % were given",
        {kinds});
  if (options.image.empty() && (!options.claim.empty() || !options.limits.empty()))
    return wrong("% has no effect without kubernetes_image",
                 {options.claim.empty() ? "kubernetes_limit" : "kubernetes_claim"});
  if (options.lifetime.count() < 1) return wrong("kubernetes_lifetime must be at least 1");
  for (const std::string* text : {&options.image, &options.pod_template, &options.agent})
    if (has_nul(*text)) return wrong("an option of Kubernetes has a NUL byte in it");
  return std::shared_ptr<PlaceEngine>(new_shared<KubernetesPods>(options));
}

}  // namespace v0_1
}  // namespace codeexec
