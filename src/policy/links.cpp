// Links that a script makes, and where paths lead through them.

#include "policy/case_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A path out of its text.
PathText path_of_text(const std::string& text, PathText::Root root) {
  PathText path;
  enter(path, text, root == PathText::Root::home);
  return path;
}

}  // namespace

inline namespace inner {

void Links::note(const PathText& name, const PathText& target) {
  constexpr std::size_t most = 64;
  constexpr std::size_t most_texts = 1024;
  forget(name);
  if (links_.size() == most || texts_.size() + 2 > most_texts) return;
  const std::string& name_text = *texts_.insert(text_of(name)).first;
  const std::string& target_text = *texts_.insert(text_of(target)).first;
  links_.push_front({path_of_text(name_text, name.root), path_of_text(target_text, target.root)});
}

void Links::forget(const PathText& name) {
  links_.remove_if([&](const Link& link) {
    return link.name.names == name.names && is_within(link.name, name);
  });
}

void Links::follow(PathText& path, bool last) const {
  constexpr int most = 4;  // links on the way of one path
  for (int round = 0; round < most; ++round) {
    const Link* found = nullptr;
    for (const Link& link : links_) {
      const bool inside = path.names.size() > link.name.names.size();
      if (!found && (inside || last) && is_within(path, link.name)) found = &link;
    }
    if (!found) return;
    PathText behind = found->target;
    for (std::size_t i = found->name.names.size(); i < path.names.size(); ++i)
      behind.names.push_back(path.names[i]);
    path = std::move(behind);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
