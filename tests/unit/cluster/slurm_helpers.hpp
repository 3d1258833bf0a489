// Helpers for the tests of Slurm: jobs of a real one of one node, helpers/slurm.sh.
#ifndef CODEEXEC_TESTS_CLUSTER_SLURM_HELPERS_HPP
#define CODEEXEC_TESTS_CLUSTER_SLURM_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

#include <mutex>
#include <string>
#include <vector>

namespace support {

using Strings = std::vector<std::string>;

inline bool has_no_slurm() {
  if (std::getenv("CODEEXEC_TEST_SLURM")) return false;
  MESSAGE("SKIPPED: needs CODEEXEC_TEST_SLURM=1 and $SLURM_CONF of a Slurm of the tests");
  return true;
}

inline codeexec::ProcessResult run_words(const Strings& words) {
  codeexec::ProcessOptions options;
  options.argv = words;
  options.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin",
                         std::string("SLURM_CONF=") + std::getenv("SLURM_CONF")};
  options.timeout = safety;
  return codeexec::run_process(options);
}

// Those that are not ended yet.
inline std::string jobs() { return run_words({"squeue", "-h", "-o", "%A"}).out; }

inline bool no_job_is_left() {
  return comes_true([] { return jobs().empty(); });
}

class Jobs {
 public:
  TempDir workspace = {};
  codeexec::SlurmOptions slurm = {};

  Jobs() {
    REQUIRE(no_job_is_left());
    slurm.agent = CODEEXEC_MCP;
    slurm.on_progress = [this](std::string_view what) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_ += std::string(what) + "\n";
    };
  }
  codeexec::PlaceOptions options() const {
    codeexec::PlaceOptions options;
    const auto engine = codeexec::slurm_jobs(slurm);
    REQUIRE_MESSAGE(engine, engine.error().message);
    options.engine = *engine;
    options.workspace = workspace.path();
    options.timeout = 2 * safety;
    return options;
  }
  codeexec::PlaceExecutor executor() const {
    auto made = codeexec::PlaceExecutor::create(options());
    REQUIRE_MESSAGE(made, made.error().message);
    return *std::move(made);
  }
  std::string progress() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }

 private:
  mutable std::mutex mutex_ = {};
  std::string told_ = {};
};

inline std::string number_of(const codeexec::Result& result) {
  const std::string start = "Slurm job ";
  REQUIRE(begins(result.place, start));
  return result.place.substr(start.size());
}

}  // namespace support

#endif  // CODEEXEC_TESTS_CLUSTER_SLURM_HELPERS_HPP
