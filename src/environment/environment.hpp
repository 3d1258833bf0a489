// The variables, the venv and the prefix of a command.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

// Names and values.
using Variables = std::vector<std::pair<std::string, std::string>>;

// PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_*, LANGUAGE, TZ, TMPDIR, TERM, COLORTERM, NO_COLOR and
// FORCE_COLOR.
std::vector<std::string> usual_variables();

struct EnvironmentOptions {
  // Variables of the host that commands see; a `*` at the end stands for any rest of the name.
  // Everything else stays with the host: any variable may hold a token or a key.
  std::vector<std::string> keep = usual_variables();
  // Commands see every variable of the host, its secrets, too.
  bool keep_all = false;
  // Added, and stronger than what is kept; of two with one name the later counts.
  Variables set = {};
  // Variables whose values are secrets: kept like those of `keep` (no `*` here), and listed by
  // secrets(). Errors are one that neither the host nor `set` has; a value that has fewer than 4
  // bytes, not counting line ends at its end, which could not be masked in the output; and more
  // than 1 MiB of values. A value that a command gives such a variable itself is no secret.
  std::vector<std::string> secret = {};
  // A Python virtual environment for every command. Its `bin` must exist.
  std::string venv_path = {};
  // Without prefix and venv_path: use the `.venv` of the command's work_dir, else the one of the
  // workspace. Its `bin` comes first in PATH, so what an agent puts there is what `ls` means from
  // then on: wanted for an agent's own project, to be switched off for one that is not trusted.
  bool auto_venv = true;
  // Where the second `.venv` is looked for. Empty: nowhere.
  std::string workspace = {};
  // Shell words that go before the whole command line, like "uv run". No newline.
  std::string command_prefix = {};
};

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

}  // namespace v0_1
}  // namespace codeexec
