// A server and its features: its configuration, the table of their options, and their modes.

#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

std::vector<const Feature*> server_features(std::initializer_list<const ServerFeature*> of_server) {
  std::vector<const Feature*> features;
  for (const ServerFeature* const feature : of_server)
    features.push_back(static_cast<const Feature*>(feature));
  return features;
}

}  // namespace

inline namespace inner {

ServerConfig::ServerConfig(std::initializer_list<const ServerFeature*> of_server)
    : features(server_features(of_server)) {
  // When the client goes away, commands that ignore SIGTERM must be gone before serve() returns.
  local.kill_grace = std::chrono::milliseconds(300);
  local.shell = usual_shell;
  local.timeout = std::chrono::milliseconds(0);  // not given: the default, or max_timeout if less
  options.add(server_options());
  for (const Feature* const feature : features) {
    if (feature->options) options.add(feature->options());
    if (feature->begin) feature->begin(*this);
  }
}

std::string Option::key() const {
  std::string key(name());
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

void OptionTable::add(Rows<Option> rows) {
  const Option* before = nullptr;
  for (const Option& row : rows) {
    insert(row, before);
    before = &row;
  }
}

// Rows that came behind the same option earlier stay before this one.
void OptionTable::insert(const Option& row, const Option* before) {
  const auto index_of = [this](std::string_view name) {
    const auto found =
        find_where(rows_, [&](const Option* known) { return known->name() == name; });
    return static_cast<std::size_t>(found - rows_.begin());
  };
  if (const std::size_t known = index_of(row.name()); known < rows_.size()) {
    if (rows_[known]->group() == row.group()) {
      rows_[known] = &row;
      return;
    }
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(known));
    anchors_.erase(anchors_.begin() + static_cast<std::ptrdiff_t>(known));
  }
  std::string_view anchor;
  std::size_t at = index_of(row.after());
  if (at < rows_.size()) {
    anchor = row.after();
    for (++at; at < rows_.size() && anchors_[at] == anchor;) ++at;
  } else if (before && before->group() == row.group()) {
    at = index_of(before->name());
    anchor = anchors_[at++];
  } else {
    for (at = rows_.size(); at > 0 && rows_[at - 1]->group() > row.group();) --at;
  }
  rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(at), &row);
  anchors_.insert(anchors_.begin() + static_cast<std::ptrdiff_t>(at), anchor);
}

const Option* OptionTable::find(std::string_view name) const {
  const auto found = find_where(rows_, [&](const Option* row) { return row->name() == name; });
  return found == rows_.end() ? nullptr : *found;
}

const Option* OptionTable::find_key(std::string_view key) const {
  const auto found = find_where(rows_, [&](const Option* row) {
    return row->group() != Option::command_line &&
           (key == row->key() || (!row->other_key().empty() && key == row->other_key()));
  });
  return found == rows_.end() ? nullptr : *found;
}

std::vector<ServerMode> modes_of(const ServerConfig& config) {
  std::vector<ServerMode> modes = {local_mode};
  for (const Feature* const feature : config.features)
    modes.insert(modes.end(), feature->modes.begin(), feature->modes.end());
  return modes;
}

std::string full_help(const Option& option, const ServerConfig& config) {
  std::string text;
  for (const Feature* const feature : config.features)
    for (const OptionNote& note : feature->notes)
      if (note.option == option.name()) text += note.text;
  if (option.name() != mode_option) return concat({option.help(), text});
  std::string in_short, in_full;
  std::vector<std::string_view> more;
  for (const Feature* const feature : config.features) {
    if (!feature->modes_in_short.empty()) more.push_back(feature->modes_in_short);
    if (!feature->modes_in_full.empty()) append_all(in_full, {"; ", feature->modes_in_full});
  }
  for (std::size_t i = 0; i < more.size(); ++i)
    append_all(in_short, {i + 1 < more.size() ? ", " : i == 0 ? " or " : ", or ", more[i]});
  return concat({option.help(), in_short, ". local: on this host", in_full, text});
}

std::vector<std::string> choices_of(const Option& option, const ServerConfig& config) {
  std::vector<std::string> names;
  for (const Choice& choice : option.choices()) add_words(names, {choice.name});
  if (option.name() == mode_option)
    for (const ServerMode& mode : modes_of(config)) add_words(names, {mode.name});
  return names;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
