// The program apart from its server: what answers its options, and when.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "cluster/cluster.hpp"
#include "containers/containers_internal.hpp"
#include "docker/docker.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"
#include "places/places_internal.hpp"
#include "program/client_files_internal.hpp"
#include "report/report_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

void begin_program(ServerConfig& config) { config.program = new_shared<ProgramConfig>(); }

// Called as fastmcp it is MassGen's server, or becomes the next program of that name.
Expected<bool> read_call_of_massgen(int argc, char** argv, ServerConfig& config) {
  if (!is_called_fastmcp(argc, argv)) return false;
  if (!starts_massgen_server(argc, argv)) {
    config.invocation.ended = run_next_fastmcp(argv);
    return true;
  }
  if (auto ok = read_massgen_call(argc, argv, config); !ok) return ok.failure();
  return true;
}

Expected<void> settle_program(ServerConfig& config) {
  const ProgramConfig& call = *config.program;
  config.local.sandbox.explain = call.explain || call.doctor;
  config.reach_place = call.doctor || call.sandbox_report;
  return {};
}

// A transcript must not lie where commands may write.
Expected<void> check_transcript(const ServerConfig& config, const Executor& executor) {
  if (config.program->transcript.empty()) return {};
  const auto path = canonical_path(config.program->transcript);
  if (!path) return with_prefix("transcript: ", {}, path.error());
  const PathRules rules = executor.file_rules();
  if (!rules.restricted() || rules.permission(*path) != Permission::write) return {};
  return make_error(ErrorCode::invalid_argument,
                    "transcript: % lies where commands may write: choose a place outside",
                    {in_quotes(*path)});
}

int verify_audit(const ServerConfig& config) {
  AuditProof proof;
  if (const std::string& file = config.local.audit_key; !file.empty()) {
    auto key = read_audit_key(file);
    if (!key) return fail(2, concat("--audit-key: %", {key.error().message}));
    proof.key = std::move(*key);
  }
  proof.last_hash = config.program->last_hash.value_or(std::string());
  bool is_whole = true;
  const auto text = verified_audit(*config.program->verify_audit, proof, is_whole);
  if (!text) return fail(2, text.error().message);
  return print_answer(*text, is_whole ? 0 : 1);
}

// --report. Its findings go where the page does not.
int report(const ProgramConfig& call) {
  const auto text = write_report(call.report, call.output.value_or(std::string()));
  if (!text) return fail(2, text.error().message);
  if (call.output && !print(*text)) return fail(1, "cannot write to standard output");
  if (!call.output) warn(text->substr(0, text->size() - 1));
  return 0;
}

std::optional<int> answer_of_call(const ServerConfig& config) {
  const ProgramConfig& call = *config.program;
  if (call.help_all) return print(call.json ? help_json(config) : help_text(config, true)) ? 0 : 1;
  if (call.verify_audit) return verify_audit(config);
  if (!call.report.empty()) return report(call);
  if (call.client_config) return run_client_config(config);
  if (call.massgen_path) return print_massgen_path();
  return {};
}

// --doctor of what has no executor of its own, and the start of the transcript.
std::optional<int> begin_commands(ServerConfig& config) {
  ProgramConfig& call = *config.program;
  if (config.use == Option::users) {
    if (!call.doctor) return {};
    const auto containers = create_user_containers(config);
    if (!containers) return fail(2, containers.error().message);
    drop_variables(config);
    warn_of_bare_patterns(config);
    return examine_container({ExecutorOptions(), containers->options().container, {}}).print();
  }
  if (call.doctor && config.use == Option::kubernetes) {
    const std::string rights = kubernetes_rights(kubernetes_options(config));
    if (!print(rights)) return fail(1, "cannot write to standard output");
    if (rights.find("FAIL ") != std::string::npos) return 1;
  }
  if (!call.transcript.empty()) {
    if (auto ok = call.written.open(call.transcript); !ok) return fail(2, ok.error().message);
    config.local.on_audit = [&call](const AuditRecord& record) {
      if (const std::string problem = call.written.add(record); !problem.empty()) warn(problem);
    };
  } else if (call.replay) {
    config.local.on_audit = [](const AuditRecord&) {};  // so that output is hashed
  }
  return {};
}

// --doctor, where there is a place or the reason why there is none.
int run_doctor(const ServerConfig& config, const Expected<CommandPlace>& place) {
  if (!place) {
    DoctorReport report;
    report.add("place", false, "%", {place.error().message});
    return report.print();
  }
  DoctorReport report = config.use == Option::docker
                            ? examine_container(container_executor_options(config))
                            : examine_place(config, *place);
  add_clients(report);
  return report.print();
}

std::optional<int> answer_of_program(const ServerStep& step) {
  ServerConfig& config = step.config;
  const ProgramConfig& call = *config.program;
  switch (step.moment) {
    case ServerStep::called:
      return answer_of_call(config);
    case ServerStep::guarded:
      if (call.lists_places()) return list_places(config);
      return {};
    case ServerStep::settled:
      return begin_commands(config);
    case ServerStep::unplaced:
      if (call.doctor && (config.use & Option::places)) return run_doctor(config, *step.place);
      return {};
    case ServerStep::examined:
      if (call.sandbox_report) return print_sandbox_report((*step.place)->sandbox, call);
      if (call.doctor) return run_doctor(config, *step.place);
      return {};
    case ServerStep::ready:
      if (call.replay) return replay(*(*step.place)->executor, *call.replay, call.json, *step.stop);
      return {};
  }
  return {};
}

constexpr Feature program_feature = [] {
  Feature feature;
  feature.options = program_options;
  feature.begin = begin_program;
  feature.read = read_call_of_massgen;
  feature.check_call = check_program_call;
  feature.settle = settle_program;
  feature.answer = answer_of_program;
  feature.check_executor = check_transcript;
  return feature;
}();

}  // namespace

namespace features {

const ServerFeature& program = program_feature;

}  // namespace features

}  // namespace v0_1
}  // namespace codeexec
