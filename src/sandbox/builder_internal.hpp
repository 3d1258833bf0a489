// How a policy becomes a plan: the planner, the trials, and what of it is missing.
#pragma once

#include "sandbox/child_internal.hpp"
#include "sandbox/filter_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/namespaces_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

// The features of a report that are missing, and why. A feature without a reason is enforced.
class SandboxGaps {
 public:
  // The first reason stays.
  void add(std::string_view feature, const char* why, Pieces values = {});
  // In place of any reason so far.
  void replace(std::string_view feature, const char* why, Pieces values = {});
  // The feature may be had after all.
  void forget(std::string_view feature) { reason_for(feature).clear(); }

  std::string& reason_for(std::string_view feature);

 private:
  std::vector<std::pair<std::string, std::string>> reasons_ = {};
};

// Sets the limits of a run: in a cgroup where one can be made, else for each process. A limit that
// the kernel then counts otherwise is a gap; the name of what it counts is added to `others`.
void set_limits(SandboxState& state, SandboxGaps& gaps, std::vector<std::string>& others);

// Fills in the plan of a state by what is still wanted. It starts with all that the options ask
// for; each trial that fails takes something away, and that part of the plan is made again.
class SandboxPlanner {
 public:
  SandboxPlanner(SandboxState& state, SandboxGaps& gaps)
      : network(state.options.network), state_(state), gaps_(gaps) {}

  // Opens what is granted. A grant that cannot be had is an error in strict mode, else it is
  // missing in the report.
  Expected<void> open_grants();

  // Opens the devices that are granted, and says in the report which are there.
  //   Errors: invalid_argument for what is none, or must not be granted.
  Expected<void> open_devices();

  // The parts of the plan that every trial has: the ruleset, the mounts, the privileges.
  Expected<void> begin();

  // The parts that differ from trial to trial: namespaces, with one for users or without, and the
  // filter, which depends on them.
  void plan_trial(bool user_namespace);

  // Goes on without a network of the commands' own.
  Expected<void> drop_loopback(std::string_view why);
  // Goes on without Landlock.
  void drop_ruleset(const char* why, Pieces values = {});
  // Goes on without any sandbox. Commands run as with mode off, within their limits.
  void drop_all(const char* why);
  // Makes the namespaces that all commands have in common, and grants what is mounted in them. 0 or
  // a negative errno.
  long make_shared_namespaces();
  bool has_namespaces() const;
  bool maps_users() const;
  // Says in the report which places are the commands' own.
  void report_places();
  // Closes the files of the rules, which are kept for a second ruleset only.
  void forget_rules();
  // Adds the rules of the plan to the report, once it is settled.
  void explain();

  // What is still wanted.
  Network network;
  bool filter = true;
  bool processes = false;           // a process table of their own
  bool mounts = false;              // all but the writable directories is mounted read-only
  bool can_mount = false;           // they are wanted, and there is room for them
  bool places = false;              // a /tmp, a /dev/shm and terminals of their own
  std::string places_problem = {};  // why there are none, though asked for
  int landlock_abi = 0;             // 0: there is no ruleset, for the reason in landlock_problem
  std::string landlock_problem = {};

 private:
  Expected<void> open_one(const std::string& path, bool writable);
  Expected<void> open_device(const std::string& path);
  bool add_devices(Ruleset& ruleset);
  bool lies_in_writable(const std::string& path) const;
  void find_landlock();
  Expected<void> build_ruleset();
  Expected<void> add_grants(Ruleset& ruleset);
  void choose_namespaces(bool user_namespace);
  FilterOptions filter_options() const;
  void build_program();
  void prepare_mounts();
  void add_writable(const char* path, dev_t device, ino_t inode);
  void choose_places();
  void choose_shared(bool user_namespace);
  const char* keep_granted();
  bool keep_in_tmp(const char* path, const struct stat& status, bool is_read_only);
  void grant_place(OwnPlace& place, const char* path, std::uint64_t rights);

  SandboxState& state_;
  SandboxGaps& gaps_;
  std::vector<NamedRule> granted_ = {};  // to be explained
  std::list<OpenedGrant> devices_ = {};
  std::unique_ptr<NamespaceMaker> maker_ = {};
  SandboxPlace tmp_ = {};         // of options.tmp
  std::string tmp_source_ = {};   // its path
  std::string tmp_problem_ = {};  // why /tmp stays the host's
  std::string memory_problem_ = {};
  std::string memory_options_ = {};
  std::string agent_socket_ = {};
  std::string user_maps_[4] = {};
  bool tools_in_tmp_ = false;
  std::size_t rules_of_host_ = 0;    // how many rules there are without those of places
  std::size_t granted_of_host_ = 0;  // and of them to be explained
};

// Tries plans until one holds, and reports what a child of the trial got around.
//
//                +------------------------------------------------------+
//                v                                                      |
//   planner: what is still wanted --> a plan --> trial: a child applies it, attempts the forbidden
//                ^                                 |
//                |   failed in                     v   the next thing that is not wanted any more
//                +-- namespaces ------- root first gets a user namespace; then out go, in turn: the
//                |                      mounts that were not asked for, the places, the mounts, the
//                |                      process table, loopback (the others come back)
//                +-- capabilities, privileges, Landlock or filter ------ that step
//                +-- loopback: 127.0.0.1 does not work ----------------- the network
//                    limits, or no child could be made ------> an error
//                    no child on borrowed memory: an emulator -> nothing is enforced
//                    none -----------------------------------> judged by its breaches
class SandboxFitter {
 public:
  SandboxFitter(SandboxState& state, SandboxPlanner& planner, SandboxGaps& gaps)
      : state_(state), planner_(planner), gaps_(gaps) {}

  // The plan of the state is then one that was tried. Errors: no plan can be.
  Expected<void> fit();

 private:
  enum class Next { try_again, done };

  long run(Trial& trial) const;
  // What follows a trial that made a child or failed to, with the error of either.
  Expected<Next> settle(const Trial& trial, long started);
  Expected<void> leave_out_namespace(long error);
  bool leave_out_step(ConfineStep step, int error);
  void judge(const Trial& trial);
  void judge_files(unsigned breaches);
  void judge_network(unsigned breaches);

  SandboxState& state_;
  SandboxPlanner& planner_;
  SandboxGaps& gaps_;
  bool user_namespace_ = ::geteuid() != 0;  // root needs none, unless that fails
};

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
