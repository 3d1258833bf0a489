// Which system directories and which parts of a home may be read.

#include "sandbox/child_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

std::vector<std::string> names_in(const std::string& path) {
  constexpr std::size_t most_names = 10000;
  std::vector<std::string> names;
  for_each_entry(path, [&names](const char* entry) {
    names.push_back(entry);
    return names.size() < most_names;
  });
  return names;
}

std::string real_path_of(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) ? std::string(buffer) : std::string();
}

bool lies_in_one_of(std::string_view path, std::string_view directories) {
  while (!directories.empty())
    if (codeexec::is_within(path, take_part(directories, ' '))) return true;
  return false;
}

bool lies_in_one_of(std::string_view path, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories)
    if (codeexec::is_within(path, directory)) return true;
  return false;
}

bool is_above_system(std::string_view path) {
  std::string_view directories =
      "/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /run /sbin /sys /usr/bin /usr/lib "
      "/usr/lib64 /usr/local/bin /usr/local/lib /usr/sbin /var/cache /var/lib /var/log /var/run "
      "/var/spool /nix/store"sv;
  while (!directories.empty())
    if (codeexec::is_within(take_part(directories, ' '), path)) return true;
  return false;
}

bool is_secret_directory(std::string_view name) {
  return is_word_of(name,
                    ".ssh .aws .gnupg .kube .docker .azure .gcloud .mozilla .pki .thunderbird .git "
                    ".password-store .config .local .keyrings .cache .vault .terraform.d");
}

bool holds_a_home(const std::string& path, const std::string& home) {
  if (codeexec::is_within("/root"sv, path) || (!home.empty() && codeexec::is_within(home, path)))
    return true;
  for (const std::string_view homes : {"/home"sv, "/Users"sv})
    if (codeexec::is_within(homes, path) ||
        (codeexec::is_within(path, homes) && path.size() > homes.size() &&
         path.find('/', homes.size() + 1) == std::string::npos))
      return true;
  std::string_view entries = ".ssh .profile .bashrc .bash_history"sv;
  while (!entries.empty())
    if (::access(concat("%/%", {path, take_part(entries, ' ')}).c_str(), F_OK) == 0) return true;
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

bool TreeGrants::covers(std::string_view path) const { return lies_in_one_of(path, done_); }

void TreeGrants::add_entries(const std::string& directory, bool of_system) {
  of_system_ = of_system;
  for (const std::string& entry : names_in(directory)) add_entry(directory, entry, 0);
  of_system_ = false;
}

void TreeGrants::add_entry(const std::string& directory, const std::string& entry, int depth) {
  const std::string path = concat("%/%", {directory, entry});
  if (covers(path) || rules_left_ == 0) return;
  struct stat parent {};
  struct stat status {};
  if (::lstat(directory.c_str(), &parent) != 0 || ::lstat(path.c_str(), &status) != 0 ||
      is_secret(path, entry, status, parent, depth))
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

bool TreeGrants::is_installed_part(std::string_view name) {
  return is_word_of(
      name,
      "bin sbin shims lib lib64 libexec include share man versions toolchains plugins "
      "installs pkgs envs candidates registry pkg node_modules modules jmods");
}

void TreeGrants::add(const std::string& path, int depth) {
  if (covers(path)) return;
  const bool installed = is_installed_part(base_name(path));
  std::size_t budget = std::min(budget_, most_of_one);
  const std::size_t before = budget;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
  const Finding finding = look_into(path, status, depth, budget);
  budget_ -= before - budget;
  const bool trusted = installed || (of_system_ && status.st_uid == 0);
  if (finding == Finding::nothing || (finding == Finding::unknown && trusted)) {
    add_rule(path, readable_rights);
  } else if (depth < deepest) {
    for (const std::string& entry : names_in(path)) add_entry(path, entry, depth + 1);
  }
}

TreeGrants::Finding TreeGrants::look_into(const std::string& directory, const struct stat& status,
                                          int depth, std::size_t& budget) {
  if (depth > deepest) return Finding::unknown;
  const bool installed = is_installed_part(base_name(directory));
  std::list<std::pair<std::string, struct stat>> below;
  for (const std::string& entry : names_in(directory)) {
    if (budget == 0) return Finding::unknown;
    --budget;
    const std::string path = concat("%/%", {directory, entry});
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return Finding::unknown;
    if (is_secret(path, entry, found, status, depth + 1)) return Finding::secret;
    if (!installed && S_ISDIR(found.st_mode)) below.push_back({path, found});
  }
  // Near ones first: what is at hand is what an owner put there.
  Finding worst = Finding::nothing;
  for (const auto& next : below) {
    const Finding finding = look_into(next.first, next.second, depth + 1, budget);
    if (finding == Finding::secret) return finding;
    if (finding == Finding::unknown) worst = finding;
  }
  return worst;
}

bool TreeGrants::is_secret(const std::string& path, const std::string& entry,
                           const struct stat& status, const struct stat& parent, int depth) {
  // What a link leads to is judged by its own rules.
  if (S_ISLNK(status.st_mode)) return false;
  const bool regular = S_ISREG(status.st_mode);
  const bool directory = S_ISDIR(status.st_mode);
  if (!regular && !directory) return true;
  const bool hidden = directory ? (status.st_mode & S_IXOTH) == 0 && (parent.st_mode & S_IXOTH) != 0
                                : (status.st_mode & S_IROTH) == 0;
  if (!hidden && !has_secret_name(in_lower_case(entry), directory, depth)) return false;
  return !regular || (status.st_mode & S_IXUSR) == 0 || !is_program_file(path);
}

bool TreeGrants::has_secret_name(const std::string& name, bool directory, int depth) {
  if (directory && is_secret_directory(name)) return true;
  constexpr std::string_view wholes =
      ".npmrc .pypirc .netrc _netrc .pgpass .my.cnf .htpasswd .env config.json config.yml "
      "auth.json "
      "config.yaml hosts.yml .git-credentials .yarnrc.yml";
  if (is_word_of(name, ".env.* credentials*"sv)) return true;
  if (starts_with(name, "id_"sv) && name.find('.') == std::string::npos) return true;
  if (ends_with(name, ".key"sv) || ends_with(name, ".p12"sv) || ends_with(name, ".pfx"sv))
    return true;
  // But not the certificates of the world's authorities.
  if (ends_with(name, ".pem"sv) && name.find("cert") == std::string::npos &&
      !starts_with(name, "ca"sv))
    return true;
  if (is_word_of(name, wholes) && (depth <= 1 || name[0] == '.')) return true;
  // Parts of names say something of what lies beside tools; deeper ones are source files.
  if (depth > 1) return false;
  std::string_view parts =
      "credential secret token passw pgpass keystore netrc npmrc pypirc history private"sv;
  while (!parts.empty())
    if (name.find(take_part(parts, ' ')) != std::string::npos) return true;
  return false;
}

void SystemGrants::add(const SandboxOptions& options) {
  std::string_view paths = readable_system;
  while (!paths.empty()) ruleset_.add_path(std::string(take_part(paths, ' ')), readable_rights);
  // Names only; rules reach down.
  ruleset_.add_path("/etc", right_read_dir);
  add_settings("/etc", 0);
  ruleset_.add_path("/opt", right_read_dir);
  trees_.add_entries("/opt", true);
  std::string_view devices = "null zero full random urandom tty"sv;
  while (!devices.empty())
    ruleset_.add_path(concat("/dev/%", {take_part(devices, ' ')}), device_rights);
  if (options.terminals) {
    ruleset_.add_path("/dev/ptmx", device_rights);
    ruleset_.add_path("/dev/pts", device_rights | right_read_dir);
  }
  if (options.shared_memory) ruleset_.add_path("/dev/shm", writable_rights);
}

bool SystemGrants::covers(std::string_view path) { return lies_in_one_of(path, readable_system); }

bool SystemGrants::is_secret(std::string_view entry) {
  return is_word_of(
      entry,
      "shadow shadow- gshadow gshadow- sudoers sudoers.d private docker kubernetes rancher "
      "wireguard "
      "openvpn ipsec.d ppp letsencrypt NetworkManager credstore credstore.encrypted machine-id "
      "vault.d opasswd krb5.keytab netrc polkit-1 swanctl ipsec.secrets");
}

bool SystemGrants::is_public(const struct stat& status) {
  const mode_t needed = S_ISDIR(status.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
  return (status.st_mode & needed) == needed;
}

void SystemGrants::add_settings(const std::string& directory, int depth) {
  for (const std::string& entry : names_in(directory)) {
    if (is_secret(entry)) continue;
    const std::string path = concat("%/%", {directory, entry});
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (S_ISLNK(status.st_mode)) {
      add_link(path);
    } else if (S_ISDIR(status.st_mode)) {
      if (!is_public(status)) continue;
      if (is_public_tree(path, depth + 1))
        ruleset_.add_path(path, readable_rights);
      else if (depth < deepest)
        add_settings(path, depth + 1);
    } else if (S_ISREG(status.st_mode) && is_public(status)) {
      ruleset_.add_path(path, readable_rights);
    }
  }
}

void SystemGrants::add_link(const std::string& path) {
  const std::string target = real_path_of(path);
  struct stat status {};
  if (target.empty() || codeexec::is_within(target, "/etc"sv) || covers(target) ||
      !lies_in_one_of(target, "/run /var/lib"sv))
    return;
  if (::lstat(target.c_str(), &status) == 0 && S_ISREG(status.st_mode) && is_public(status))
    ruleset_.add_path(target, right_read_file);
}

bool SystemGrants::is_public_tree(const std::string& directory, int depth) {
  if (depth > deepest) return false;
  for (const std::string& entry : names_in(directory)) {
    struct stat status {};
    const std::string path = concat("%/%", {directory, entry});
    if (budget_ == 0 || is_secret(entry) || ::lstat(path.c_str(), &status) != 0) return false;
    --budget_;
    // What a link leads to is judged by its own rules.
    if (S_ISLNK(status.st_mode)) continue;
    if (!is_public(status)) return false;
    if (S_ISDIR(status.st_mode) && !is_public_tree(path, depth + 1)) return false;
  }
  return true;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
