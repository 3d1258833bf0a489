// The search for secrets; the grants of the system and of trees without their secrets.

#include "sandbox/child_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

std::vector<std::string> paths_in(const std::string& directory) {
  std::vector<std::string> paths;
  for_each_entry(directory, [&](const char* entry) {
    paths.push_back(concat("%/%", {directory, entry}));
    return paths.size() < most_paths;
  });
  return paths;
}

std::string real_path_of(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) ? std::string(buffer) : std::string();
}

bool is_above_system(std::string_view path) {
  static constexpr auto directories = NameList{
      "/bin",       "/boot",    "/dev",       "/etc",           "/lib",           "/lib32",
      "/lib64",     "/libx32",  "/proc",      "/run",           "/sbin",          "/sys",
      "/usr/bin",   "/usr/lib", "/usr/lib64", "/usr/local/bin", "/usr/local/lib", "/usr/sbin",
      "/var/cache", "/var/lib", "/var/log",   "/var/run",       "/var/spool",     "/nix/store"};
  for (const std::string_view directory : directories)
    if (codeexec::is_within(directory, path)) return true;
  return false;
}

bool holds_a_home(const std::string& path, const std::string& home) {
  if (codeexec::is_within("/root"sv, path) || (!home.empty() && codeexec::is_within(home, path)))
    return true;
  for (const std::string_view homes : {"/home"sv, "/Users"sv})
    if (codeexec::is_within(homes, path) ||
        (codeexec::is_within(path, homes) && path.size() > homes.size() &&
         path.find('/', homes.size() + 1) == std::string::npos))
      return true;
  for (const char* const entry : {".ssh", ".profile", ".bashrc", ".bash_history"})
    if (::access(concat("%/%", {path, entry}).c_str(), F_OK) == 0) return true;
  return false;
}

std::string own_home() {
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? real_path_of(home) : std::string();
}

bool is_program_file(const std::string& path) {
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd file(above_standard_streams(::open(path.c_str(), flags)));
  char bytes[4] = {};
  if (!file || ::read(file.get(), bytes, sizeof bytes) < 2) return false;
  const std::string_view beginning(bytes, sizeof bytes);
  return starts_with(beginning, "#!"sv) || beginning == "\177ELF";
}

}  // namespace inner

namespace {

// Directories that keep passwords and keys, in a home or wherever else they are.
constexpr auto secret_directories =
    NameList{".ssh",    ".aws",     ".gnupg",    ".kube",        ".docker", ".azure",
             ".gcloud", ".mozilla", ".pki",      ".thunderbird", ".git",    ".password-store",
             ".config", ".local",   ".keyrings", ".cache",       ".vault",  ".terraform.d"};
constexpr auto secret_files =
    NameList{".env",    ".env.*",    "credentials*",     "*.key",      "*.p12",
             "*.pfx",   ".npmrc",    ".pypirc",          ".netrc",     ".pgpass",
             ".my.cnf", ".htpasswd", ".git-credentials", ".yarnrc.yml"};
constexpr auto secret_keys = NameList{"id_*"};
constexpr auto public_keys = NameList{"*.*"};
constexpr auto secret_certificates = NameList{"*.pem"};
// Certificates of the authorities of the world.
constexpr auto public_certificates = NameList{"*cert*", "ca*"};
// Deeper in a tree these are names of source files.
constexpr auto secret_near_top =
    NameList{"_netrc",       "config.json", "config.yml", "config.yaml", "auth.json", "hosts.yml",
             "*credential*", "*secret*",    "*token*",    "*passw*",     "*pgpass*",  "*keystore*",
             "*netrc*",      "*npmrc*",     "*pypirc*",   "*history*",   "*private*"};
// Kept from commands whatever their mode is. A command of root's owns them even without
// capabilities, and a member of a group may read what others may not.
constexpr auto secret_settings = NameList{"shadow",         "shadow-",      "gshadow",
                                          "gshadow-",       "sudoers",      "sudoers.d",
                                          "private",        "docker",       "kubernetes",
                                          "rancher",        "wireguard",    "openvpn",
                                          "ipsec.d",        "ppp",          "letsencrypt",
                                          "NetworkManager", "credstore",    "credstore.encrypted",
                                          "machine-id",     "vault.d",      "opasswd",
                                          "krb5.keytab",    "netrc",        "polkit-1",
                                          "swanctl",        "ipsec.secrets"};

// Names of secrets, as patterns of shells.
struct SecretNames {
  unsigned where;  // of SecretSearch::Place
  bool is_directory_only;
  Names patterns;
  Names exceptions = {};
};

constexpr unsigned in_trees = SecretSearch::near_top | SecretSearch::deep;
constexpr SecretNames secret_names[] = {
    {SecretSearch::prefix | in_trees, true, secret_directories},
    {in_trees, false, secret_files},
    {in_trees, false, secret_keys, public_keys},
    {in_trees, false, secret_certificates, public_certificates},
    {SecretSearch::near_top, false, secret_near_top},
    {SecretSearch::settings, false, secret_settings},
};

// What its owner does not show to everybody is a secret.
bool is_public(const struct stat& status) {
  const mode_t needed = S_ISDIR(status.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
  return (status.st_mode & needed) == needed;
}

}  // namespace

inline namespace inner {

bool SecretSearch::has_secret_name(std::string_view name, Place where, bool is_directory) {
  for (const SecretNames& row : secret_names)
    if ((row.where & where) != 0 && (is_directory || !row.is_directory_only) &&
        row.patterns.match(name) && !row.exceptions.match(name))
      return true;
  return false;
}

bool SecretSearch::is_secret(const std::string& path, const struct stat& status,
                             const struct stat& parent, int depth) const {
  const bool is_directory = S_ISDIR(status.st_mode);
  const std::string_view entry = base_name(path);
  if (of_settings && has_secret_name(entry, settings, is_directory)) return true;
  // What a link leads to is judged by its own rules.
  if (S_ISLNK(status.st_mode)) return false;
  if (of_settings) return !is_public(status);
  const bool is_regular = S_ISREG(status.st_mode);
  if (!is_regular && !is_directory) return true;
  const bool is_hidden = is_directory
                             ? (status.st_mode & S_IXOTH) == 0 && (parent.st_mode & S_IXOTH) != 0
                             : (status.st_mode & S_IROTH) == 0;
  const Place where = depth > 1 ? deep : near_top;
  if (!is_hidden && !has_secret_name(in_lower_case(entry), where, is_directory)) return false;
  // A program that its owner can run is no secret, whatever its name and mode.
  return !is_regular || (status.st_mode & S_IXUSR) == 0 || !is_program_file(path);
}

SecretSearch::Finding SecretSearch::look_into(const std::string& directory, int depth,
                                              std::size_t& budget) const {
  struct stat status {};
  if (depth > deepest || ::lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return Finding::unknown;
  const bool is_shallow = !of_settings && is_installed_part(base_name(directory));
  std::vector<std::string> below;
  std::vector<std::string> paths = paths_in(directory);
  if (paths.size() == most_paths) return Finding::unknown;
  for (std::string& path : paths) {
    struct stat found {};
    if (budget == 0 || ::lstat(path.c_str(), &found) != 0) return Finding::unknown;
    --budget;
    if (is_secret(path, found, status, depth + 1)) return Finding::secret;
    if (!is_shallow && S_ISDIR(found.st_mode)) below.push_back(std::move(path));
  }
  // The entries of this directory came first: a secret that an owner put there is near the top.
  Finding worst = Finding::nothing;
  for (const std::string& path : below) {
    const Finding finding = look_into(path, depth + 1, budget);
    if (finding == Finding::secret) return finding;
    if (finding == Finding::unknown) worst = finding;
  }
  return worst;
}

bool SecretSearch::is_installed_part(std::string_view name) {
  static constexpr auto parts =
      NameSet{"bin",     "candidates", "envs", "include", "installs",     "jmods",      "lib",
              "lib64",   "libexec",    "man",  "modules", "node_modules", "pkg",        "pkgs",
              "plugins", "registry",   "sbin", "share",   "shims",        "toolchains", "versions"};
  return parts.has(name);
}

bool TreeGrants::covers(std::string_view path) const { return lies_in_one_of(path, done_); }

void TreeGrants::add_entries(const std::string& directory, bool of_system) {
  of_system_ = of_system;
  for (const std::string& path : paths_in(directory)) add_entry(path, 0);
  of_system_ = false;
}

void TreeGrants::add_entry(const std::string& path, int depth) {
  if (covers(path) || rules_left_ == 0) return;
  struct stat parent {};
  struct stat status {};
  if (::lstat(path.substr(0, path.rfind('/')).c_str(), &parent) != 0 ||
      ::lstat(path.c_str(), &status) != 0 || search_.is_secret(path, status, parent, depth))
    return;
  if (S_ISDIR(status.st_mode))
    add(path, depth);
  else if (S_ISREG(status.st_mode))
    add_rule(path, readable_rights);
}

void TreeGrants::add_rule(const std::string& path, std::uint64_t rights) {
  if (rules_left_ == 0 || covers(path)) return;
  --rules_left_;
  ruleset_.add_path(path, rights, O_NOFOLLOW);
  done_.push_back(path);
}

void TreeGrants::add(const std::string& path, int depth) {
  if (covers(path)) return;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
  std::size_t budget = std::min(budget_, most_of_one);
  budget_ -= budget;
  const SecretSearch::Finding finding = search_.look_into(path, depth, budget);
  budget_ += budget;
  const bool is_trusted =
      SecretSearch::is_installed_part(base_name(path)) || (of_system_ && status.st_uid == 0);
  if (finding == SecretSearch::Finding::nothing ||
      (finding == SecretSearch::Finding::unknown && is_trusted)) {
    add_rule(path, readable_rights);
  } else if (depth < search_.deepest) {
    for (const std::string& entry : paths_in(path)) add_entry(entry, depth + 1);
  }
}

void SystemGrants::add(const SandboxOptions& options) {
  for (const std::string_view path : readable_system)
    ruleset_.add_path(std::string(path), readable_rights);
  // To list only. A rule reaches down, so the names in all directories below can be listed, too.
  ruleset_.add_path("/etc", right_read_dir);
  add_settings("/etc", 0);
  ruleset_.add_path("/opt", right_read_dir);
  trees_.add_entries("/opt", true);
  for (const char* const device :
       {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"})
    ruleset_.add_path(device, device_rights);
  if (options.terminals) {
    ruleset_.add_path("/dev/ptmx", device_rights);
    ruleset_.add_path("/dev/pts", device_rights | right_read_dir);
  }
  if (options.shared_memory) ruleset_.add_path("/dev/shm", writable_rights);
}

bool SystemGrants::covers(std::string_view path) { return lies_in_one_of(path, readable_system); }

void SystemGrants::add_settings(const std::string& directory, int depth) {
  for (const std::string& path : paths_in(directory)) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || search_.is_secret(path, status, status, depth))
      continue;
    if (S_ISLNK(status.st_mode)) {
      add_link(path);
    } else if (S_ISDIR(status.st_mode)) {
      if (search_.look_into(path, depth + 1, budget_) == SecretSearch::Finding::nothing)
        ruleset_.add_path(path, readable_rights);
      else if (depth < search_.deepest)
        add_settings(path, depth + 1);
    } else if (S_ISREG(status.st_mode)) {
      ruleset_.add_path(path, readable_rights);
    }
  }
}

void SystemGrants::add_link(const std::string& path) {
  const std::string target = real_path_of(path);
  struct stat status {};
  static constexpr auto linked_settings = NameSet{"/run", "/var/lib"};
  if (target.empty() || codeexec::is_within(target, "/etc"sv) || covers(target) ||
      !lies_in_one_of(target, linked_settings))
    return;
  if (::lstat(target.c_str(), &status) == 0 && S_ISREG(status.st_mode) && is_public(status))
    ruleset_.add_path(target, right_read_file);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
