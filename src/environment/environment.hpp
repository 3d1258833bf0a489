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

}  // namespace v0_1
}  // namespace codeexec
