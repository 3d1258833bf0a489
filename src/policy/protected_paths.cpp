// Paths in words: what they lead to, and whether it is protected.
//
// enter() follows a text from a path, as cd does, by the text alone:
//
//   from       text     to                 root
//   (nothing)  a/../b   b                  relative: where the script starts is not known
//   /srv/x     ../y     /srv/y             slash
//   ~          ../y     /home/y            a home directory is most often below /home
//   /srv       ~u/z     ~u/z               home
//   /srv       @/z      @/z                relative, as an unknown part may begin anywhere
//
// is_protected() then looks at the number of names:
//
//   /                                      always protected
//   /etc, /usr/lib/x, /lib64               protected_trees: with all that is below
//   /srv, /data                            each directory of the root; of those in
//                                          protected_contents also /srv/*
//   /home/u, ~, ~u                         homes; ~/x is not
//   /srv/x, a/b                            not protected

#include "policy/policy_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

void descend(PathText& path, std::string_view text) {
  while (!text.empty()) {
    const std::string_view name = take_part(text, '/');
    if (name.empty() || name == "."sv) continue;
    const bool up = name == ".."sv;
    if (!up || (path.root == PathText::Root::relative &&
                (path.names.empty() || path.names.back() == ".."))) {
      path.names.push_back(name);
    } else if (!path.names.empty()) {
      path.names.pop_back();
    } else if (path.root == PathText::Root::home) {
      path.root = PathText::Root::slash;  // above a home is most often /home
      path.names.push_back("home");
    }
  }
}

}  // namespace

inline namespace inner {

void enter(PathText& path, std::string_view text, bool home) {
  if (text.empty()) return;
  const bool at_home = home && text[0] == '~';
  if (at_home || text[0] == '/') {
    path.names.clear();
    path.root = at_home ? PathText::Root::home : PathText::Root::slash;
    if (at_home) {
      path.user = text.substr(0, text.find('/'));
      text.remove_prefix(path.user.size());
    }
  } else if (text[0] == '\0') {
    path = {};  // it may begin anywhere
  }
  descend(path, text);
}

std::string text_of(const PathText& path) {
  std::string text;
  if (path.root == PathText::Root::home) text = path.user;
  for (std::size_t i = 0; i < path.names.size(); ++i) {
    if (i || path.root != PathText::Root::relative) text += '/';
    text += path.names[i];
  }
  if (text.empty()) text = path.root == PathText::Root::slash ? "/" : ".";
  return text;
}

}  // namespace inner

namespace {

// True if a list has a name, or, with `glob`, one that the name is a pattern for.
bool has_match(const Names& list, std::string_view name, bool glob) {
  if (!glob || !is_pattern(name)) return list.has(name);
  for (const std::string_view entry : list)
    if (entry == name || glob_matches(name, entry)) return true;
  return false;
}

// How many names lead to the home directory that a path is, or is in; npos: none.
std::size_t names_of_home(const PathText& path) {
  if (path.root == PathText::Root::home) return 0;
  if (path.root != PathText::Root::slash || path.names.empty()) return std::string_view::npos;
  if (path.names[0] == "root"sv) return 1;
  return home_parents.has(path.names[0]) ? 2 : std::string_view::npos;
}

}  // namespace

inline namespace inner {

bool is_protected(const PathText& path, bool contents, bool glob) {
  std::size_t count = path.names.size();
  if (glob && count && sweeps(path.names[count - 1])) {
    contents = true;
    --count;
  }
  if (path.root == PathText::Root::relative) return false;
  if (path.root == PathText::Root::home || count == 0) return count == 0;
  const std::string_view top = path.names[0];
  if (is_unknown(top) || starts_with(top, "lib"sv) || has_match(protected_trees, top, glob))
    return true;
  if (count == 1) return !contents || has_match(protected_contents, top, glob);
  return count == 2 && has_match(home_parents, top, glob);
}

bool is_within(const PathText& path, const PathText& above) {
  return path.root == above.root && path.user == above.user &&
         path.names.size() >= above.names.size() &&
         std::equal(above.names.begin(), above.names.end(), path.names.begin());
}

bool is_workspace(const PathText& path) {
  if (path.root != PathText::Root::slash || path.names.empty()) return false;
  if (!is_protected(path, true, false)) return true;
  const std::size_t count = path.names.size();
  const std::string_view top = path.names[0];
  if (top == "root"sv) return count >= 2;
  return top == "usr"sv && count >= 3 && is_any(path.names[1], "src", "local");
}

bool is_device(const PathText& path, bool glob) {
  if (path.root != PathText::Root::slash || path.names.empty()) return false;
  const std::string_view top = path.names[0];
  if (top != "dev"sv && !(glob && is_pattern(top) && glob_matches(top, "dev"sv))) return false;
  const std::size_t count = path.names.size();
  if (count >= 2 && harmless_device_directories.has(path.names[1])) return false;
  return count != 2 || !harmless_devices.has(path.names[1]);
}

bool is_dev_null(const PathText& path) {
  return path.root == PathText::Root::slash && path.names.size() == 2 && path.names[0] == "dev"sv &&
         path.names[1] == "null"sv;
}

}  // namespace inner

// paths that the rules know -----------------------------------------------------------------------

namespace {

struct KnownPath {
  constexpr KnownPath(const char* path, PathKind of_path) : text(path), kind(of_path) {}
  // Is not written to.
  constexpr KnownPath(const char* path, Rule refuses) : text(path), rule(refuses) {}

  const char* text;
  PathKind kind = PathKind::kept;
  Rule rule = Rule::plant;  // of what is kept
};

// A row for each path, which stands for what is below it, too. Names may be patterns; ~ is any home
// directory.
constexpr KnownPath known_paths[] = {
    {"/proc/sysrq-trigger", Rule::end_machine},
    {"/proc/1/root", Rule::host_access},
    {"/proc/sys", Rule::machine_settings},
    // Accounts, and who may become another user.
    {"/etc/passwd", Rule::plant},
    {"/etc/shadow", Rule::plant},
    {"/etc/group", Rule::plant},
    {"/etc/gshadow", Rule::plant},
    {"/etc/sudoers*", Rule::plant},
    {"/etc/pam.d", Rule::plant},
    {"/etc/ssh", Rule::plant},
    {"~/.ssh", Rule::plant},
    {"~/.ssh/known_hosts", PathKind::harmless},
    // What runs later, or in each program.
    {"/etc/cron*", Rule::plant},
    {"/var/spool/cron", Rule::plant},
    {"/etc/profile*", Rule::plant},
    {"/etc/environment", Rule::plant},
    {"/etc/bash.bashrc", Rule::plant},
    {"/etc/rc.local", Rule::plant},
    {"/etc/init.d", Rule::plant},
    {"/etc/ld.so.*", Rule::plant},
    {"/etc/udev", Rule::plant},
    {"/etc/systemd", Rule::plant},
    {"~/.config/systemd/user", Rule::plant},
    {"~/.config/autostart", Rule::plant},

    {"/dev/shm/*", PathKind::removable},
    {"/opt/*", PathKind::removable},
    {"/usr/local/*", PathKind::removable},

    {"/tmp", PathKind::scratch},
    {"/var/tmp", PathKind::scratch},
    {"~", PathKind::scratch},

    {"/dev/tcp", PathKind::connection},
    {"/dev/udp", PathKind::connection},
};

// A path as a list of its names; of one in a home directory, the first is ~.
struct PathSource {
  static constexpr std::size_t count = std::size(known_paths);
  static constexpr std::size_t columns = 1;
  static constexpr std::string_view text(std::size_t row, std::size_t) {
    const std::string_view path = known_paths[row].text;
    return path.substr(path[0] == '/' ? 1 : 0);
  }
  static constexpr char separator(std::size_t) { return '/'; }
};
constexpr auto packed_paths = pack_names<PathSource>();

bool is_below(const PathText& path, const Names& known, bool glob) {
  const bool home = known[0] == "~"sv;
  std::size_t i = home ? names_of_home(path) : 0;
  if (i > path.names.size() || (!home && path.root != PathText::Root::slash)) return false;
  std::size_t matched = home ? 1 : 0;
  for (; matched < known.size() && i < path.names.size(); ++matched, ++i) {
    const std::string_view name = known[matched];
    const std::string_view found = path.names[i];
    if (name != found && !glob_matches(name, found) && !(glob && glob_matches(found, name)))
      return false;
  }
  return matched == known.size();
}

}  // namespace

inline namespace inner {

bool is_known_path(const PathText& path, PathKind kind) {
  for (std::size_t row = 0; row < std::size(known_paths); ++row)
    if (known_paths[row].kind == kind && is_below(path, packed_paths.table().at(row, 0), false))
      return true;
  return false;
}

void each_keeper(const PathText& path, bool glob, FunctionRef<void(Rule)> take) {
  for (std::size_t row = 0; row < std::size(known_paths); ++row)
    if (known_paths[row].kind == PathKind::kept &&
        is_below(path, packed_paths.table().at(row, 0), glob))
      take(known_paths[row].rule);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
