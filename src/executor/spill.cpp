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

Expected<void> check_spill_dir(const std::string& spill_dir,
                               const std::vector<std::string>& writable) {
  for (const std::string& path : writable)
    if (codeexec::is_within(spill_dir, path))
      return make_error(
          ErrorCode::invalid_argument,
          concat({"spill_dir: ", quoted(spill_dir), " lies where commands may write; ",
                  "name a directory outside of ", quoted(path)}));
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
