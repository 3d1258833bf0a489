// What only the whole program has: its part of the configuration, and the answers to its options.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "docker/docker.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "report/report_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Options of the command line, but for the transcript.
struct ProgramConfig {
  bool help_all = false;
  bool json = false;
  bool doctor = false;
  bool sandbox_report = false;
  bool explain = false;
  bool places = false;
  bool places_remove = false;
  bool massgen_path = false;
  bool only_shell = false;
  bool remove = false;
  std::optional<std::string> client_config = {};
  std::optional<std::string> write = {};  // empty: the client's usual file
  std::optional<std::string> verify_audit = {};
  std::optional<std::string> last_hash = {};
  std::vector<std::string> report = {};  // audit logs
  std::optional<std::string> output = {};
  std::optional<std::string> replay = {};
  std::string transcript = {};
  // Of the command line, as a client is to give them: without the options about the client, and
  // with files as absolute paths.
  std::vector<std::string> words = {};
  Transcript written = {};  // the file of `transcript`

  bool lists_places() const { return places || places_remove; }
};

Rows<Option> program_options();

// Refuses options of the program that exclude each other, or that the settings leave no meaning
// for. Settles ProgramConfig::words.
Expected<void> check_program_call(ServerConfig& config);

// The path of this program. Error: io; one that was replaced since it started has lost its path.
Expected<std::string> own_program();

// Whether this program was called under the name of the program that starts MassGen's servers.
bool is_called_fastmcp(int argc, char** argv);

// Whether a call under that name starts MassGen's code execution server, which this program is then
// itself.
bool starts_massgen_server(int argc, char** argv);

// Reads the arguments of that server into `config`. Errors: those of read_command_line(), and
// invalid_argument for what MassGen's server does not know, or what is not held here.
Expected<void> read_massgen_call(int argc, char** argv, ServerConfig& config);

// Becomes the next program of that name on the PATH. Returns only when there is none: the exit
// status, after a message.
int run_next_fastmcp(char** argv);

// The exit status of --massgen-path.
int print_massgen_path();

// Holds commands to the settings of the sandbox-runtime, in a strict sandbox. `paths` are the
// directories that commands may start in. Nothing that the settings deny is allowed: what cannot be
// held is an error, and what they allow and is not granted is a warning.
Expected<void> apply_srt_settings(const std::string& file, const std::vector<std::string>& paths,
                                  ServerConfig& config);

// All options as JSON, one object for each, in the order of --help-all.
std::string help_json(const ServerConfig& config);

// The lines of --doctor. Each begins with "ok   ", "warn " or "FAIL ", and what is not well ends
// with a remedy. Only FAIL makes the exit status 1: what the operator may well want is a warning.
struct DoctorReport {
  // Adds the line of a subject, and returns `is_well`. The message says what was found, and how to
  // mend what is wrong; empty: the subject says all.
  bool add(std::string_view subject, bool is_well, const char* form = "", Pieces values = {});
  // Adds a warning.
  void doubt(std::string_view subject, const char* form, Pieces values = {});
  void add_line(const char* state, std::string_view subject, std::string_view message);
  // Prints the lines, in colours on a terminal. Returns the exit status.
  int print() const;

  std::string text = {};
  bool all_is_well = true;
};

// Examines whether commands can run in such a container: their engine, image, container, user,
// network and limits. Ends at the first step without which the others make no sense.
DoctorReport examine_container(ContainerExecutorOptions options);

// Of commands that run anywhere else.
DoctorReport examine_place(const ServerConfig& config, const CommandPlace& place);

// What holds commands back there, and what does not, in words of a user; then each feature of the
// sandbox by its name in a report.
void examine_protection(const ServerConfig& config, const CommandPlace& place,
                        DoctorReport& report);

// The exit status of --sandbox-report.
int print_sandbox_report(const SandboxReport& report, const ProgramConfig& call);

// The exit status of --client-config, with --write or --remove.
int run_client_config(const ServerConfig& config);

// The exit status of --places and --places-remove.
int list_places(const ServerConfig& config);

// The exit status of --replay.
int replay(const Executor& executor, const std::string& path, bool as_json,
           const CancelToken& stop);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
