// Spill files: the complete output of streams that are longer than what is kept.
//
//   step      what is done                                     function, and when
//   options   opens spill_dir, or makes a private folder       set_up_files(), in create()
//   sandbox   refuses one that commands could change         check_out_of_reach(), in create()
//   file      makes it with a random name, mode 0600           the process, as a stream grows
//   count     adds its size; removes the oldest above a bound  bound_spilled(), in conclude()
//   end       removes the private folder and all in it         ~PrivateFolder, the last copy
//
// What holds: commands may read the files and not write them, as far as a sandbox holds them. Only
// files of a private folder are counted and removed; those in the operator's spill_dir stay.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files.hpp"
#include "paths/elsewhere_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Called with what a sandbox or a container lets commands change.
Expected<void> check_out_of_reach(const ExecutorOptions& options,
                                  const std::vector<std::string>& writable) {
  const std::pair<const char*, const std::string&> own[] = {{"spill_dir", options.spill_dir},
                                                            {"audit_file", options.audit_file},
                                                            {"audit_key", options.audit_key}};
  for (const auto& [option, given] : own) {
    if (given.empty()) continue;
    const auto path = canonical_path(given);
    if (!path) return with_prefix("%: ", {option}, path.error());
    for (const std::string& directory : writable)
      if (codeexec::is_within(*path, directory))
        return make_error(ErrorCode::invalid_argument,
                          "%: % lies where commands may write: choose a place outside of %",
                          {option, in_quotes(*path), in_quotes(directory)});
  }
  return {};
}

}  // namespace inner

Expected<void> Executor::Gate::set_up_files() {
  file_rules = paths;
  auto given = usable_directory("spill_dir", options.spill_dir, W_OK | X_OK);
  if (!given) return given.failure();
  options.spill_dir = std::move(*given);
  if (options.spill_dir.empty() && options.private_spill_dir) {
    auto made = PrivateFolder::create("private_spill_dir", "codeexec-output-"sv);
    if (!made) return made.failure();
    private_spill = std::move(*made);
    options.spill_dir = private_spill->path();
  }
  if (options.spill_dir.empty()) return {};
  auto directory = open_canonical_directory(options.spill_dir);
  if (!directory) return with_prefix("spill_dir: ", {}, directory.error());
  spill_directory = std::move(*directory);
  if (elsewhere) elsewhere->here = options.spill_dir;
  if (paths.permission(options.spill_dir) != Permission::none) return {};
  std::vector<Root> wider = paths.roots();
  wider.push_back({options.spill_dir, Permission::read});
  auto rules = elsewhere ? PathRules::of_canonical(wider) : PathRules::create(wider);
  if (!rules) return with_prefix("spill_dir: ", {}, rules.error());
  file_rules = std::move(*rules);
  return {};
}

// The files of this command are the last to go. A file that is gone already is passed over.
void Executor::Gate::bound_spilled(const ProcessResult& ended, Result& told) const {
  if (!private_spill) return;
  std::size_t removed = 0;
  const std::lock_guard<std::mutex> lock(spilled_mutex);
  for (const bool is_err : {false, true}) {
    const std::string& file = is_err ? ended.err_file : ended.out_file;
    if (file.empty()) continue;
    // Counted for each file besides its bytes, so that the number of files is bounded, too.
    constexpr std::uint64_t least = 4096;
    const std::uint64_t size = least + (is_err ? ended.err_counts : ended.out_counts).file_bytes;
    spilled.push_back({std::string(base_name(file)), size});
    spilled_bytes += size;
  }
  for (; spilled_bytes > options.max_spill_total && removed < spilled.size(); ++removed) {
    ::unlinkat(spill_directory.get(), spilled[removed].first.c_str(), 0);
    spilled_bytes -= spilled[removed].second;
  }
  if (removed == 0) return;
  spilled.erase(spilled.begin(), spilled.begin() + static_cast<std::ptrdiff_t>(removed));
  add_note(told.notes,
           "% of the oldest files of long output were removed: all together may have % bytes",
           {removed, options.max_spill_total});
}

PathRules Executor::file_rules() const { return gate_->file_rules; }

}  // namespace v0_1
}  // namespace codeexec
