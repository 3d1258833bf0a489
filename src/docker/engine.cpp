// Calls of the engine's program, and what its errors mean.
//
// Each call is an argv, bounded in time, and has the variables of this process. Its end is read by
// words: engines have few exit codes, and 1 and 125 stand for nearly everything.

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "base/platform_internal.hpp"
#include "json/json.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

const char* name(ImagePolicy policy) noexcept {
  switch (policy) {
    case ImagePolicy::never:
      return "never";
    case ImagePolicy::missing:
      return "missing";
    case ImagePolicy::always:
      return "always";
  }
  return "";
}

const char* name(ContainerNetwork network) noexcept {
  switch (network) {
    case ContainerNetwork::none:
      return "none";
    case ContainerNetwork::bridge:
      return "bridge";
    case ContainerNetwork::host:
      return "host";
  }
  return "";
}

inline namespace inner {

// The engine's program ----------------------------------------------------------------------------

// An option and its value are two words, so that the value cannot become an option.
void add_option(std::vector<std::string>& words, std::string_view option, const char* form,
                Pieces values) {
  words.push_back(std::string(option));
  words.push_back(concat(form, values));
}

// The engine's program gets the variables of this process, as DOCKER_HOST and its like choose the
// engine. Podman has other words for the same two options.
ProcessOptions engine_call(const EngineOptions& engine, const std::vector<std::string>& arguments,
                           std::chrono::milliseconds timeout) {
  const bool podman = starts_with(base_name(engine.program), "podman"sv);
  ProcessOptions call;
  call.argv.push_back(engine.program);
  if (!engine.context.empty())
    add_words(call.argv, {podman ? "--connection" : "--context", engine.context});
  if (!engine.host.empty()) add_words(call.argv, {podman ? "--url" : "--host", engine.host});
  call.argv.insert(call.argv.end(), arguments.begin(), arguments.end());
  call.environment = own_variables();
  call.timeout = timeout;
  return call;
}

}  // namespace inner

namespace {

// Words of engines, the kind of error that they stand for, and the advice. The first row counts.
struct EngineTrouble {
  ErrorCode code;
  const char* said;  // as of HelpRow
  const char* help;
};
constexpr EngineTrouble engine_troubles[] = {
    {ErrorCode::permission_denied, "permission denied while trying to connect",
     "let this user have the engine's socket (group docker), or use a rootless engine"},
    {ErrorCode::permission_denied, "mounts denied", "share that folder with the engine's machine"},
    {ErrorCode::invalid_argument, "context not found", "see `docker context ls`"},
    {ErrorCode::invalid_argument, "resolve docker endpoint", "set another context or host"},
    {ErrorCode::invalid_argument, "already in use", "set another agent_id or instance_id"},
    {ErrorCode::invalid_argument, "memory limit", "set memory to 6 MiB or more"},
    {ErrorCode::invalid_argument, "unknown runtime|runtime name",
     "`docker info` lists the runtimes it has"},
    {ErrorCode::invalid_argument, "range of cpus", "set cpus to no more than that"},
    {ErrorCode::invalid_argument, "unable to find user", "set user to UID:GID"},
    {ErrorCode::invalid_argument, "\"sh\": executable file not found",
     "the image needs a shell, sh"},
    {ErrorCode::invalid_argument,
     "codeexec-mcp failed|glibc|executable file not found|failed to exec pid1",
     "the image cannot run the agent: name a static one (place_agent), which `cmake --build build "
     "--target codeexec-place-static` makes"},
    {ErrorCode::io, "annot connect to |failed to connect to the docker",
     "start the engine, or name another by DOCKER_HOST"},
    {ErrorCode::io, "no such host", "check the network, or build the image (sh docker/build.sh)"},
    {ErrorCode::io, "i/o timeout", "check the network and the engine's proxy"},
    {ErrorCode::io, "is paused", "unpause it; the next command does that, too"},
    {ErrorCode::io, "is not running", "somebody has stopped it; the next command starts it"},
    {ErrorCode::not_found, "such image|image not known",
     "build it (sh docker/build.sh), or let it be pulled (image_policy)"},
    {ErrorCode::not_found, "pull access denied",
     "check its name, log in to its registry, or build it (sh docker/build.sh)"},
    {ErrorCode::not_found, "manifest unknown", "check the tag of the image"},
    {ErrorCode::not_found, "such container", "somebody has removed it; the next command makes it"},
    {ErrorCode::not_found, "bind source path does not exist",
     "mounts are paths of the engine's machine"},
    {ErrorCode::not_found, "container-init binary", "install catatonit, which podman needs"},
    {ErrorCode::limit, "toomanyrequests", "log in to the registry, or wait"},
    {ErrorCode::limit, "no space left", "make room on the engine's disk (`docker system prune`)"},
    {ErrorCode::unsupported, "select device driver",
     "the engine's machine needs the GPU's toolkit"},
    {ErrorCode::unsupported, "unknown flag", "this needs docker 20.10 or podman 4"},
};
constexpr auto packed_troubles = pack_help<engine_troubles>();
constexpr auto trouble_codes =
    pack_entries<engine_troubles>([](const EngineTrouble& row) { return row.code; });

}  // namespace

inline namespace inner {

// Without the prefixes and the hints of usage that docker adds, on one line, at most 400 bytes.
std::string engine_words(const ProcessResult& result) {
  constexpr std::size_t longest = 400;
  std::string text;
  std::string_view rest = result.err.empty() ? result.out : result.err;
  while (!rest.empty() && text.size() < longest) {
    std::string_view line = take_part(rest, '\n');
    for (const std::string_view head :
         {"docker: "sv, "Error: "sv, "Error response from daemon: "sv})
      if (starts_with(line, head)) line.remove_prefix(head.size());
    if (line.empty() || starts_with(line, "Run '"sv) || starts_with(line, "See '"sv)) continue;
    append_all(text, {text.empty() ? "" : " ", line});
  }
  return printable(utf8_prefix(text, longest));
}

// In either stream, as engines differ in where they write an error.
bool says(const ProcessResult& result, std::string_view words) {
  return result.err.find(words) != std::string::npos || result.out.find(words) != std::string::npos;
}

// The reason is that of the call (no answer, cancelled, not started), or the words of the program.
// The code and the advice follow from the words; unknown words are an error of `io` without advice.
SharedError engine_error(const EngineOptions& engine, const ProcessResult& result,
                         std::string_view what) {
  ErrorCode code = ErrorCode::io;
  std::string reason = engine_words(result);
  std::string_view help;
  if (result.outcome == Outcome::timed_out) {
    reason = concat("no answer in % s", {std::chrono::duration_cast<std::chrono::seconds>(
                                             result.wall_time + std::chrono::milliseconds(500))
                                             .count()});
    help = "see whether the engine is stuck, or set a longer timeout for it";
  } else if (result.outcome == Outcome::cancelled) {
    reason = "cancelled";
  } else if (result.outcome == Outcome::not_started) {
    reason = result.message;
    if (result.system_error == ENOENT) code = ErrorCode::not_found;
    if (result.system_error == EACCES) code = ErrorCode::permission_denied;
    help = "install docker or podman, or set the engine's program"sv;
  } else {
    const NameTable troubles = packed_troubles.table();
    const std::size_t row = find_help(reason, troubles);
    if (row < troubles.rows) {
      code = trouble_codes[row];
      help = troubles.at(row, 1).first();
    }
    if (reason.empty())
      reason = result.message.empty() ? concat("status %", {result.exit_code}) : result.message;
  }
  Error error =
      make_error(code, "cannot % (%): %%%",
                 {what, printable(engine.program), reason, help.empty() ? "" : "; ", help});
  error.system_error = result.system_error;
  return error;
}

// Its standard output; or an error with its words and advice.
Expected<std::string> ask_engine(const EngineOptions& engine,
                                 const std::vector<std::string>& arguments,
                                 std::chrono::milliseconds timeout, std::string_view what,
                                 const std::optional<CancelToken>& cancel) {
  ProcessOptions call = engine_call(engine, arguments, timeout);
  call.cancel = cancel;
  ProcessResult result = run_process(call);
  if (!result.succeeded()) return engine_error(engine, result, what);
  return std::move(result.out);
}

// `inspect` fails for a container that is not there; only its words differ from other failures.
Expected<Json> inspect(const EngineOptions& engine, const char* kind, std::string_view name,
                       const std::optional<CancelToken>& cancel) {
  ProcessOptions call = engine_call(engine, words_of({kind, "inspect", name}), engine.call_timeout);
  call.cancel = cancel;
  call.max_output = std::size_t{16} << 20;
  const ProcessResult result = run_process(call);
  const std::string what = concat("look at the % %", {kind, name});
  if (!result.succeeded()) {
    const std::string text = in_lower_case(result.err);
    for (const char* words_of_none : {"no such ", "not known", "no container with"})
      if (result.outcome == Outcome::exited && text.find(words_of_none) != std::string::npos)
        return Json();
    return engine_error(engine, result, what);
  }
  auto parsed = Json::parse(result.out);
  if (parsed && parsed->size() > 0) return parsed;
  return make_error(
      ErrorCode::io, "cannot % (%): its answer is not understood%%",
      {what, printable(engine.program), result.message.empty() ? "" : "; ", result.message});
}

// Empty without that label.
const std::string& label_of(const Json& container, std::string_view label) {
  return container["Config"sv]["Labels"sv][label].as_string();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
