// Calls of the engine's program, and what its errors mean.

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
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
      break;
  }
  return "always";
}

const char* name(ContainerNetwork network) noexcept {
  switch (network) {
    case ContainerNetwork::none:
      return "none";
    case ContainerNetwork::bridge:
      return "bridge";
    case ContainerNetwork::host:
      break;
  }
  return "host";
}

inline namespace inner {

// The engine's program ----------------------------------------------------------------------------

void add_option(std::vector<std::string>& words, std::string_view option, Pieces value) {
  words.push_back(std::string(option));
  words.push_back(concat(value));
}

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

// What engines say, in lower case, and what to do about it. The first that is found counts.
struct EngineTrouble {
  std::string_view words;
  ErrorCode code;
  std::string_view help;
};
constexpr std::string_view needs_static =
    "the image cannot run the agent: name a static one (place_agent), which "
    "`cmake --build build --target codeexec-place-static` makes";
constexpr EngineTrouble engine_troubles[] = {
    {"permission denied while trying to connect", ErrorCode::permission_denied,
     "let this user have the engine's socket (group docker), or use a rootless engine"},
    {"context not found", ErrorCode::invalid_argument, "see `docker context ls`"},
    {"resolve docker endpoint", ErrorCode::invalid_argument, "set another context or host"},
    {"annot connect to ", ErrorCode::io, "start the engine, or name another by DOCKER_HOST"},
    {"failed to connect to the docker", ErrorCode::io,
     "start the engine, or name another by DOCKER_HOST"},
    {"already in use", ErrorCode::invalid_argument, "set another agent_id or instance_id"},
    {"such image", ErrorCode::not_found, no_image_help},
    {"image not known", ErrorCode::not_found, no_image_help},
    {"pull access denied", ErrorCode::not_found,
     "check its name, log in to its registry, or build it (sh docker/build.sh)"},
    {"manifest unknown", ErrorCode::not_found, "check the tag of the image"},
    {"toomanyrequests", ErrorCode::limit, "log in to the registry, or wait"},
    {"no such host", ErrorCode::io, "check the network, or build the image (sh docker/build.sh)"},
    {"i/o timeout", ErrorCode::io, "check the network and the engine's proxy"},
    {"is paused", ErrorCode::io, "unpause it; the next command does that, too"},
    {"is not running", ErrorCode::io, "somebody has stopped it; the next command starts it"},
    {"such container", ErrorCode::not_found, "somebody has removed it; the next command makes it"},
    {"memory limit", ErrorCode::invalid_argument, "set memory to 6 MiB or more"},
    {"unknown runtime", ErrorCode::invalid_argument, "`docker info` lists the runtimes it has"},
    {"runtime name", ErrorCode::invalid_argument, "`docker info` lists the runtimes it has"},
    {"select device driver", ErrorCode::unsupported,
     "the engine's machine needs the GPU's toolkit"},
    {"range of cpus", ErrorCode::invalid_argument, "set cpus to no more than that"},
    {"bind source path does not exist", ErrorCode::not_found,
     "mounts are paths of the engine's machine"},
    {"mounts denied", ErrorCode::permission_denied, "share that folder with the engine's machine"},
    {"unable to find user", ErrorCode::invalid_argument, "set user to UID:GID"},
    {"\"sh\": executable file not found", ErrorCode::invalid_argument,
     "the image needs a shell, sh"},
    {"codeexec-mcp failed", ErrorCode::invalid_argument, needs_static},
    {"glibc", ErrorCode::invalid_argument, needs_static},
    {"executable file not found", ErrorCode::invalid_argument, needs_static},
    {"failed to exec pid1", ErrorCode::invalid_argument, needs_static},
    {"container-init binary", ErrorCode::not_found, "install catatonit, which podman needs"},
    {"no space left", ErrorCode::limit, "make room on the engine's disk (`docker system prune`)"},
    {"unknown flag", ErrorCode::unsupported, "this needs docker 20.10 or podman 4"},
};

}  // namespace

inline namespace inner {

std::string engine_words(const ProcessResult& result) {
  constexpr std::size_t longest = 400;
  std::string text;
  std::string_view rest = result.err.empty() ? result.out : result.err;
  while (!rest.empty() && text.size() < longest) {
    std::string_view line = take_part(rest, '\n');
    for (const std::string_view head : {"docker: ", "Error: ", "Error response from daemon: "})
      if (starts_with(line, head)) line.remove_prefix(head.size());
    if (line.empty() || starts_with(line, "Run '"sv) || starts_with(line, "See '"sv)) continue;
    append_all(text, {text.empty() ? "" : " ", line});
  }
  return printable(utf8_prefix(text, longest));
}

bool says(const ProcessResult& result, std::string_view words) {
  return result.err.find(words) != std::string::npos || result.out.find(words) != std::string::npos;
}

Error engine_error(const EngineOptions& engine, const ProcessResult& result,
                   std::string_view what) {
  ErrorCode code = ErrorCode::io;
  std::string reason = engine_words(result);
  std::string_view help;
  if (result.outcome == Outcome::timed_out) {
    reason = concat({"no answer in ",
                     std::chrono::duration_cast<std::chrono::seconds>(
                         result.wall_time + std::chrono::milliseconds(500))
                         .count(),
                     " s"});
    help = "see whether the engine is stuck, or set a longer timeout for it";
  } else if (result.outcome == Outcome::cancelled) {
    reason = "cancelled";
  } else if (result.outcome == Outcome::not_started) {
    reason = result.message;
    if (result.system_error == ENOENT) code = ErrorCode::not_found;
    if (result.system_error == EACCES) code = ErrorCode::permission_denied;
    help = "install docker or podman, or set the engine's program"sv;
  } else {
    const std::string text = in_lower_case(reason);
    for (const EngineTrouble& trouble : engine_troubles) {
      if (text.find(trouble.words) == std::string::npos) continue;
      code = trouble.code;
      help = trouble.help;
      break;
    }
    if (reason.empty())
      reason = result.message.empty() ? concat({"status ", result.exit_code}) : result.message;
  }
  Error error = make_error(code, {"cannot ", what, " (", printable(engine.program), "): ", reason,
                                  help.empty() ? "" : "; ", help});
  error.system_error = result.system_error;
  return error;
}

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

Expected<Json> inspect(const EngineOptions& engine, const char* kind, std::string_view name,
                       const std::optional<CancelToken>& cancel) {
  ProcessOptions call = engine_call(engine, words_of({kind, "inspect", name}), engine.call_timeout);
  call.cancel = cancel;
  call.max_output = std::size_t{16} << 20;
  const ProcessResult result = run_process(call);
  const std::string what = concat({"look at the ", kind, " ", name});
  if (!result.succeeded()) {
    const std::string text = in_lower_case(result.err);
    for (const char* words_of_none : {"no such ", "not known", "no container with"})
      if (result.outcome == Outcome::exited && text.find(words_of_none) != std::string::npos)
        return Json();
    return engine_error(engine, result, what);
  }
  auto parsed = Json::parse(result.out);
  if (parsed && parsed->size() > 0) return parsed;
  return make_error(ErrorCode::io, {"cannot ", what, " (", printable(engine.program),
                                    "): its answer is not understood",
                                    result.message.empty() ? "" : "; ", result.message});
}

const std::string& label_of(const Json& container, std::string_view label) {
  return container["Config"sv]["Labels"sv][label].as_string();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
