// What commands see, as it is computed for each; which of the host's variables are kept.
#pragma once

#include "environment/environment.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// What one command gets.
struct CommandEnvironment {
  std::vector<std::string> variables = {};  // NAME=value, each name once, in order of the names
  std::string prefix = {};                  // the command_prefix, or empty
  std::string venv = {};                    // the venv in use, or empty
};

// Computes what commands see. Does not change after create(); any thread may use it. Changes
// nothing in the host.
class Environment {
 public:
  // Copies the host's variables, so that a later setenv() of the host cannot race with a command;
  // like getenv(), it must not run while another thread changes them. Fails, and names the option,
  // for names that are empty or have a `=` or NUL in them, values with a NUL, secrets that are not
  // there or cannot be masked, a venv_path without a `bin` directory or with a `:` (which PATH
  // cannot hold), a prefix that is blank or has a newline or NUL.
  static Expected<Environment> create(const EnvironmentOptions& options);

  // The environment of a command in `work_dir`, which must be absolute (or empty: no PWD, no
  // `.venv` of its own). Looks at the disk each time, so a venv made later is found. Each of these
  // steps is stronger than the ones before:
  //   1. what is kept of the host, then `set`
  //   2. PATH (sbin and bin of /usr/local, /usr and /) and LANG=C.UTF-8 (without LC_ALL), when
  //      they are missing or empty
  //   3. PWD is the work_dir
  //   4. with a venv: VIRTUAL_ENV, its `bin` in front of the PATH so far, no PYTHONHOME
  //   5. `extra`, of the command itself
  // The venv is the first that applies: none with a command_prefix, which finds its own; the
  // venv_path (an error when it has gone); with auto_venv the `.venv` of the work_dir, then of the
  // workspace, each when it has a `bin` directory. Bad names in `extra` are errors. There is no
  // limit on the size; the kernel's (E2BIG) is an error when the command starts.
  Expected<CommandEnvironment> resolve(std::string_view work_dir,
                                       const Variables& extra = {}) const;

  // The values of the secret variables, in the order of the option.
  const std::vector<std::string>& secrets() const noexcept { return secrets_; }

 private:
  Expected<void> set_up(const EnvironmentOptions& options);
  Expected<std::string> find_venv(std::string_view work_dir) const;

  Variables variables_ = {};  // after steps 1 and 2
  std::vector<std::string> secrets_ = {};
  std::string venv_path_ = {};
  std::string workspace_ = {};
  std::string prefix_ = {};
  bool auto_venv_ = true;
};

inline namespace inner {

bool is_directory(const std::string& path);

bool is_kept(std::string_view variable, const EnvironmentOptions& options);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
