// The agent: it prepares what a hello asks for.

#include "agent/agent_internal.hpp"
#include "agent/contained_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/messages_internal.hpp"
#include "agent/nonce_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "paths/paths.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// Answers a hello, also one that is refused: the client then has the reason, and closes the
// connection. False: it is none, or of another protocol's form.
bool CommandAgent::greet(std::string_view text) {
  const auto hello = Json::parse(text);
  if (!hello || !(*hello)["protocol"sv].is_integer()) return false;
  greeted_ = true;
  ends_lines_ = (*hello)["lines"sv].as_bool();
  Json answer = Json::object();
  set_member(answer, "protocol", agent_protocol);
  set_member(answer, "version", CODEEXEC_VERSION_STRING);
  set_member(answer, "resizes", true);
  set_member(answer, "connections", true);
  if (const auto ok = settle(*hello, answer); !ok) {
    environment_.reset();  // so that no command starts: see prepare()
    set_member(answer, "error", ok.error().message);
  }
  send(FrameKind::hello, 0, answer.dump());
  return true;
}

// Prepares what a hello asks for, and describes it in the answer. The order matters: the nonces are
// answered before anything of this place may be refused, so that the client can say that its folder
// is another one; the sandbox comes last, as it is made for the workspace that was found. An agent
// that is asked to `prepare` has no other task.
Expected<void> CommandAgent::settle(const Json& hello, Json& answer) {
  const auto refusal = [](const char* why, Pieces values = {}) {
    return make_error(ErrorCode::unsupported, why, values);
  };
  if (hello["protocol"sv].as_integer() != agent_protocol) return refusal("another protocol");
  keep_alive_ = std::chrono::milliseconds(
      std::max<std::int64_t>(1000, hello["keep_alive"sv].as_integer(keep_alive_.count())));
  set_member(answer, "nonces", answers_to(hello["nonces"sv]));
  if (const Json* const wanted = hello.find("prepare"sv)) {
    // A container may have the machine's process table, but never its mounts.
    const Json& mounts = hello["mounts"sv];
    if (mounts.is_string() && mounts.as_string() != own_namespace("mnt"))
      set_member(answer, "lacks", prepare_container(*wanted));
    return {};
  }
  has_proxy_ = hello["connections"sv].as_bool();
  // No other proxy is reached.
  if (has_proxy_)
    for (const std::string& variable : offline_variables(Network::allow))
      ::unsetenv(variable.substr(0, variable.find('=')).c_str());
  contained_ = hello["container"sv].as_bool();
  if (contained_ && !settle_in_container(hello, uid_, gid_))
    return refusal("unable to find user %", {hello["user"sv].as_string()});
  utsname system{};
  if (::uname(&system) == 0) {
    set_member(answer, "machine", system.machine);
    set_member(answer, "host", system.nodename);
  }
  std::string root_list = hello["ground"sv].as_string();
  if (auto ok = settle_workspace(hello, root_list); !ok) return ok;
  set_member(answer, "ground", root_list);
  return settle_sandbox(hello, root_list, answer);
}

// Finds the workspace, and the variables of commands. Where AgentWorkspace is missing, what needs
// it is refused: commands must not run in another folder than the one that was meant.
Expected<void> CommandAgent::settle_workspace(const Json& hello, std::string& root_list) {
  is_remote_ = hello["remote"sv].as_bool();
  EnvironmentOptions variables;
  variables.keep_all = true;
  variables.auto_venv = hello["auto_venv"sv].as_bool();
  if (workspace_) {
    if (auto ok = workspace_->settle(hello, root_list, variables); !ok) return ok;
  } else if (is_remote_ || hello.find("copy"sv)) {
    return make_error(ErrorCode::unsupported,
                      "this agent is for containers: it has no workspace of its own");
  }
  auto environment = Environment::create(variables);
  if (!environment) return environment.failure();
  environment_ = std::move(*environment);
  return {};
}

// Makes the sandbox of commands, and their home where they are in one. A hello without wishes gets
// a strict one, see sandbox_options_from(). What a strict sandbox cannot have here is an error;
// what a best effort lacks is in the report, and the client notes it. Network::allow is never
// lowered: without a network of its own, a command would reach all hosts.
Expected<void> CommandAgent::settle_sandbox(const Json& hello, std::string_view root_list,
                                            Json& answer) {
  SandboxOptions wanted = sandbox_options_from(hello["sandbox"sv]);
  const char* const path = std::getenv("PATH");
  if (path) wanted.search_path = path;
  const char* home = std::getenv("HOME");
  if (wanted.mode != SandboxMode::off) {
    auto folder = PrivateFolder::create("private_home", "codeexec-home-"sv);
    if (!folder) return folder.failure();
    home_ = std::move(*folder);
    home = home_->path().c_str();
    wanted.writable.push_back(home_->path());
    std::string workspace;
    const std::vector<Root> roots = roots_in(root_list, workspace);
    if (roots.empty() && !workspace.empty()) wanted.writable.push_back(workspace);
    for (const Root& root : roots)
      if (root.permission != Permission::none)
        (root.permission == Permission::write ? wanted.writable : wanted.readable)
            .push_back(root.path);
    weak_variables_ = offline_variables(wanted.network);
    add_toolchains(*environment_, weak_variables_);
  }
  set_member(answer, "uid", static_cast<unsigned long long>(::getuid()));
  set_member(answer, "home", home ? home : "");
  auto sandbox = Sandbox::create(wanted);
  if (!sandbox) return with_prefix("sandbox: ", {}, sandbox.error());
  sandbox_ = std::move(*sandbox);
  if (wanted.network == Network::allow && sandbox_.report().network == Network::host)
    return make_error(ErrorCode::unsupported, "network: 'allow' cannot be had: %",
                      {joined(sandbox_.report().missing, "; "sv)});
  set_member(answer, "sandbox", to_json(sandbox_.report()));
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
