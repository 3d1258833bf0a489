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
bool has_match(std::string_view list, std::string_view name, bool glob) {
  glob = glob && is_pattern(name);
  while (!list.empty()) {
    const std::string_view entry = take_part(list, ' ');
    if (entry == name || (glob && glob_matches(name, entry))) return true;
  }
  return false;
}

// How many names lead to the home directory that a path is, or is in; npos: none.
std::size_t names_of_home(const PathText& path) {
  if (path.root == PathText::Root::home) return 0;
  if (path.root != PathText::Root::slash || path.names.empty()) return std::string_view::npos;
  if (path.names[0] == "root"sv) return 1;
  return has_entry(home_parents, path.names[0]) ? 2 : std::string_view::npos;
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
  return top == "usr"sv && count >= 3 && has_entry("src local"sv, path.names[1]);
}

bool is_device(const PathText& path, bool glob) {
  if (path.root != PathText::Root::slash || path.names.empty()) return false;
  const std::string_view top = path.names[0];
  if (top != "dev"sv && !(glob && is_pattern(top) && glob_matches(top, "dev"sv))) return false;
  const std::size_t count = path.names.size();
  if (count >= 2 && has_entry(harmless_device_directories, path.names[1])) return false;
  return count != 2 || !has_entry(harmless_devices, path.names[1]);
}

bool in_places(const PathText& path, std::string_view list, bool glob) {
  while (!list.empty()) {
    std::string_view place = take_part(list, ' ');
    const bool home = take_part(place, '/') == "~";
    std::size_t i = home ? names_of_home(path) : 0;
    if (i > path.names.size() || (!home && path.root != PathText::Root::slash)) continue;
    while (!place.empty() && i < path.names.size()) {
      std::string_view rest = place;
      const std::string_view name = take_part(rest, '/');
      const std::string_view found = path.names[i];
      if (name != found && !glob_matches(name, found) && !(glob && glob_matches(found, name)))
        break;
      place = rest;
      ++i;
    }
    if (place.empty()) return true;
  }
  return false;
}

bool is_dev_null(const PathText& path) {
  return path.root == PathText::Root::slash && path.names.size() == 2 && path.names[0] == "dev"sv &&
         path.names[1] == "null"sv;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
