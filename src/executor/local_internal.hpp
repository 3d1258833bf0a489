// This host as a place for commands.
#pragma once

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/git_folders_internal.hpp"
#include "executor/network_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "files/files.hpp"
#include "paths/paths.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

struct LocalExecutor::Place {
  using Home = PrivateFolder;  // for HOME and TMPDIR to lead to

  // That commands have as /tmp; null: none. It goes after the sandbox.
  std::shared_ptr<const PrivateFolder> tmp = {};
  std::shared_ptr<const MovedDirectory> moved = {};
  Environment environment;
  std::string shell;
  std::string skills_dir;
  Sandbox sandbox = {};
  std::shared_ptr<const SandboxReport> report = {};
  std::vector<std::string> writable = {};         // what the sandbox grants
  std::vector<std::string> protected_paths = {};  // below each of these
  std::vector<std::string> hidden_paths = {};     // canonical
  std::string gaps = {};  // the note on what is missing that options asked for
  std::vector<std::string> weak_variables = {};  // that any other setting of them replaces
  std::shared_ptr<CommandNetwork> network = {};  // with Network::allow, else null
  std::shared_ptr<ProxyPorts> ports = new_shared<ProxyPorts>();
  GitFolders git = {};  // outside of these
  LaterBegin later = {};
  bool (*runs_later)(std::string_view path) = nullptr;  // of what is kept; null: nothing is
  std::vector<std::string> allow_later = {};
  mutable std::mutex skills_mutex = {};
  mutable bool skills_linked = false;
  // The directory that all private homes are, or lie in. Null: there are none.
  std::shared_ptr<const Home> homes = {};
  bool home_per_command = false;
  bool gives_home = true;
  bool gives_temporary = true;
  std::string gitconfig = {};  // of each private home; empty: none
  bool supervised = true;
  PathRules file_rules = PathRules();
  std::string facts = {};  // for describe_place()

  bool sandboxed() const { return report->mode != SandboxMode::off; }

  Place(Environment variables, std::string shell_path, std::string skills)
      : environment(std::move(variables)),
        shell(std::move(shell_path)),
        skills_dir(std::move(skills)) {}

  // What commands may do in the repositories of linked worktrees. Empty: there are none.
  std::string about_git() const;
  // What they have besides the roots, for a sentence of describe_place().
  const char* about_tmp() const;
  Expected<void> make_homes(const LocalOptions& options);
  // Makes a directory for SandboxOptions::tmp. Returns why there is none, or nothing.
  std::string make_tmp(SandboxOptions& wanted);
  // Keeps it if commands have it.
  void settle_tmp(const SandboxReport& known, const SandboxOptions& wanted);
  // The sandbox for what the options and the executor's roots imply.
  Expected<void> make_sandbox(const LocalOptions& options, const ExecutorWings& wings,
                              const Executor& executor);
  Expected<void> make_later(const LocalOptions& options, const ExecutorWings& wings,
                            SandboxReport& known);
  // The weak variables of a command whose proxy listens on a port.
  std::vector<std::string> port_variables(std::uint16_t port) const;
  // Hands the command over to the sandbox.
  void confine(Admission& admission) const;
  // Of a write by a tool for files: see PathRules::keep().
  Function<std::string()> watch(const std::string& directory) const;
  // Puts into a new home what is in it from the start.
  Expected<void> furnish(const Home& home) const;
  Expected<PathRules> make_file_rules(const PathRules& paths,
                                      const std::vector<std::string>& readable) const;
  Expected<std::shared_ptr<const Home>> next_home() const;
  Expected<CommandEnvironment> resolve(const Command& command, std::string_view work_dir,
                                       const Home* home) const;
};

}  // namespace v0_1
}  // namespace codeexec
