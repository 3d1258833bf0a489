// Calls of kubectl, and what its errors mean.

#include "cluster/kubernetes_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What kubectl says, in lower case, and after a tab what to do about it, a line each. The first
// that is found counts.
constexpr std::string_view kubernetes_troubles =
    "kubectl: not found|kubectl: command not found\tinstall kubectl here, or set PATH\n"
    "exceeded quota\tthe namespace has no room: ask for less (kubernetes_limit), or end others\n"
    "must specify\tthe namespace wants limits (kubernetes_limit)\n"
    "violates podsecurity\tthe namespace allows only pods with less rights\n"
    "forbidden\tthis user may not do that: --doctor prints the Role that is needed\n"
    "unauthorized|must be logged in\tkubectl must log in first\n"
    "context was not found|does not exist\t`kubectl config get-contexts` lists them "
    "(kubernetes_option)\n"
    "namespaces \"\t`kubectl get namespaces` lists them (kubernetes_option)\n"
    "resource mapping not found|doesn't have a resource type\tagent-sandbox v1beta1 is not "
    "installed there\n"
    "unknown flag\t`kubectl options` lists them (kubernetes_option)\n"
    "refused|unable to connect\tnothing answers there: is the cluster up, and the context right?\n"
    "errimageneverpull\tthe node does not have the image, and may not get it\n"
    "errimagepull|imagepullbackoff\tis its name right, and may the node get it?\n"
    "invalidimagename\tan image is called registry/name:tag (kubernetes_image)\n"
    "runasnonroot\tthe image has no such user: it must run as another than root\n"
    "warmpoolnotfound\t`kubectl get sandboxwarmpools` lists them (kubernetes_warm_pool)\n"
    "outof\tthe node has too little of that: ask for less (kubernetes_limit)\n";

}  // namespace

inline namespace inner {

std::vector<std::string> kubectl_words(const KubernetesOptions& options) {
  std::vector<std::string> words = words_of({"kubectl"});
  for (const std::string& word : options.options) words.push_back(concat("--%", {word}));
  return words;
}

ProcessResult call_kubectl(const std::vector<std::string>& words, Pieces more) {
  ProcessOptions call;
  call.argv = words;
  add_words(call.argv, more);
  call.environment = own_variables();
  call.timeout = std::chrono::seconds(30);
  call.max_output = std::size_t{16} << 20;
  return run_process(call);
}

std::string_view kubectl_help(std::string_view said) { return help_in(said, kubernetes_troubles); }

std::string kubectl_trouble(std::string_view said) {
  // Its log of what it tried before stands in front of what it says.
  std::string_view last;
  for (std::string_view rest = said; !rest.empty();) {
    const std::string_view line = take_part(rest, '\n');
    if (!line.empty()) last = line;
  }
  const std::string_view help = kubectl_help(said);
  return concat({printable(utf8_prefix(last, 1000)), help.empty() ? "" : "; ", help});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
