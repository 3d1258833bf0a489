// The directories of PATH, the prefixes around them, and the programs that they link to.

#include "sandbox/child_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/plan_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

void ToolGrants::add(std::string_view search_path) {
  while (!search_path.empty()) {
    const std::string_view directory = take_part(search_path, ':');
    if (starts_with(directory, "/"sv) && !is_granted(directory)) add_directory(directory);
  }
}

ToolGrants::Place ToolGrants::place_of(const std::string& path) const {
  Place place;
  const auto found = open_by_name(path, [&](const UniqueFd& directory, const std::string& lies_in) {
    if (!link_is_trusted(directory, lies_in)) place.linked = true;
    return !is_granted(lies_in, true);
  });
  if (found) place.path = found->path;
  return place;
}

void ToolGrants::add_directory(std::string_view given) {
  const Place place = place_of(std::string(given));
  const std::string& path = place.path;
  if (path.empty() || is_known(path) || is_never_granted(path)) return;
  if (place.linked && !(is_bin(path) && lies_among_tools(path))) return;
  add_tools(path, place.linked);
  add_targets(path);
}

bool ToolGrants::is_granted(std::string_view path, bool for_writing) const {
  for (const SandboxGrant& grant : grants_)
    if ((grant.writable || !for_writing) && codeexec::is_within(path, grant.path)) return true;
  return false;
}

bool ToolGrants::is_never_granted(const std::string& path) const {
  static constexpr auto of_system = NameSet{"/boot", "/dev", "/etc", "/proc", "/sys"};
  if (is_above_system(path) || lies_in_one_of(path, of_system)) return true;
  if (holds_a_home(path, home_) ||
      SecretSearch::has_secret_name(base_name(path), SecretSearch::prefix, true))
    return true;
  struct stat status {};
  return ::lstat(path.c_str(), &status) != 0 ||
         (S_ISDIR(status.st_mode) && (status.st_mode & (S_IWOTH | S_ISVTX)) != 0);
}

bool ToolGrants::is_bin(const std::string& path) {
  return is_any(base_name(path), "bin", "sbin", "shims", ".bin");
}

bool ToolGrants::lies_among_tools(std::string_view path) {
  static constexpr auto tools = NameSet{
      ".asdf",   ".bin",         ".bun",    ".cabal",      ".cargo",        ".composer",  ".conda",
      ".deno",   ".dotnet",      ".elan",   ".fnm",        ".foundry",      ".fvm",       ".gem",
      ".ghcup",  ".goenv",       ".jenv",   ".juliaup",    ".krew",         ".linuxbrew", ".mise",
      ".n",      ".nodenv",      ".npm",    ".npm-global", ".npm-packages", ".nvm",       ".opam",
      ".pnpm",   ".pnpm-store",  ".poetry", ".proto",      ".pub-cache",    ".pyenv",     ".rbenv",
      ".rustup", ".rvm",         ".sdkman", ".swiftly",    ".tfenv",        ".tox",       ".venv",
      ".venvs",  ".virtualenvs", ".volta",  ".yarn"};
  // What tools keep where other programs keep their data.
  static constexpr auto shared = NameList{".local/bin/*",
                                          ".local/lib/*",
                                          ".local/share/uv/*",
                                          ".local/share/pipx/*",
                                          ".local/share/mise/*",
                                          ".local/share/pnpm/*",
                                          ".local/share/fnm/*",
                                          ".local/share/rtx/*",
                                          ".local/share/virtualenvs/*",
                                          ".local/share/claude/*",
                                          ".local/pipx/*",
                                          ".config/yarn/global/*",
                                          ".config/composer/vendor/*"};
  for (std::size_t at = path.find("/."); at != std::string_view::npos;
       at = path.find("/.", at + 1)) {
    const std::string_view rest = path.substr(at + 1);
    if (!tools.has(rest.substr(0, rest.find('/'))) && !shared.match(concat("%/", {rest})))
      return false;
  }
  return true;
}

bool ToolGrants::is_prefix(const std::string& path) const {
  const auto depth = std::count(path.begin(), path.end(), '/');
  static constexpr auto homes = NameSet{"/Users", "/home"};
  const bool of_users = lies_in_one_of(path, homes);
  return depth >= (of_users ? 3 : 2) && (is_shared_prefix(path) || !is_never_granted(path));
}

void ToolGrants::add_tools(const std::string& directory, bool linked) {
  const std::string prefix = directory.substr(0, directory.rfind('/'));
  trees_.add_directory(directory);
  if (!is_bin(directory) || !is_prefix(prefix)) return;
  const bool is_shared = is_shared_prefix(prefix);
  for (const std::string& path : paths_in(prefix))
    if ((!linked && !is_shared) || is_tool_part(base_name(path))) trees_.add_entry(path);
  if (!linked && !is_shared) ruleset_.add_path(prefix, right_read_dir, O_NOFOLLOW);
  // What is in ~/.cargo/bin are fronts for what is here.
  if (ends_with(prefix, "/.cargo"sv))
    trees_.add_directory(concat("%/.rustup", {prefix.substr(0, prefix.rfind('/'))}));
  // What tools keep in ~/.local/share, beside the data of other programs.
  static constexpr auto parts = NameList{"uv", "pipx", "mise", "pnpm", "virtualenvs"};
  if (!is_shared) return;
  for (const std::string_view part : parts)
    trees_.add_rule(concat("%/share/%", {prefix, part}), readable_rights);
}

bool ToolGrants::is_shared_prefix(const std::string& prefix) {
  const std::string_view last = base_name(prefix);
  return last == "share"sv || SecretSearch::has_secret_name(last, SecretSearch::prefix, true);
}

bool ToolGrants::is_tool_part(std::string_view entry) {
  static constexpr auto parts =
      NameSet{"bin", "include", "lib", "lib64", "libexec", "pyvenv.cfg", "sbin", "shims"};
  return parts.has(entry);
}

void ToolGrants::add_targets(const std::string& directory) {
  for (const std::string& path : paths_in(directory)) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) continue;
    // Most lead to what is known. Only the others are worth the slower walk name by name.
    const std::string quick = real_path_of(path);
    if (quick.empty() || is_known(quick)) continue;
    const std::string target = place_of(path).path;
    if (target.empty() || is_known(target) || !is_tool(target)) continue;
    const std::string parent = target.substr(0, target.rfind('/'));
    const std::string prefix = parent.substr(0, parent.rfind('/'));
    // An interpreter brings its library, anything else is but a file.
    if (is_bin(parent) && !is_never_granted(parent) &&
        ::access(concat("%/lib", {prefix}).c_str(), F_OK) == 0)
      add_tools(parent, true);
    else
      trees_.add_rule(target, readable_rights);
  }
}

bool ToolGrants::is_tool(const std::string& path) const {
  constexpr mode_t shown = S_IXUSR | S_IROTH | S_IXOTH;
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         (status.st_mode & shown) == shown && !is_never_granted(path) && lies_among_tools(path) &&
         is_program_file(path);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
