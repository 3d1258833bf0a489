// Where outputs go whole that are too long to be kept.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Expected<void> check_out_of_reach(const ExecutorOptions& options,
                                  const std::vector<std::string>& writable) {
  const std::pair<const char*, const std::string&> own[] = {{"spill_dir", options.spill_dir},
                                                            {"audit_file", options.audit_file}};
  for (const auto& [option, given] : own) {
    if (given.empty()) continue;
    const auto path = canonical_path(given);
    if (!path) return with_prefix(concat({option, ": "}), path.error());
    for (const std::string& directory : writable)
      if (codeexec::is_within(*path, directory))
        return make_error(ErrorCode::invalid_argument,
                          concat({option, ": ", quoted(*path), " lies where commands may write: ",
                                  "choose a place outside of ", quoted(directory)}));
  }
  return {};
}

}  // namespace inner

Expected<void> Executor::Gate::set_up_files() {
  file_rules = paths;
  if (options.spill_dir.empty()) return {};
  auto directory = open_canonical_directory(options.spill_dir);
  if (!directory) return with_prefix("spill_dir: ", directory.error());
  spill_directory = std::move(*directory);
  if (paths.permission(options.spill_dir) != Permission::none) return {};
  PathOptions wider;
  wider.roots = paths.roots();
  wider.roots.push_back({options.spill_dir, Permission::read});
  auto rules = PathRules::create(wider);
  if (!rules) return with_prefix("spill_dir: ", rules.error());
  file_rules = std::move(*rules);
  return {};
}

PathRules Executor::file_rules() const { return gate_->file_rules; }

}  // namespace v0_1
}  // namespace codeexec
