// Wrong command lines and configuration files: each answer names what to write instead.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::ProcessResult;
using support::check_refused;
using support::has;
using support::run_program;
using support::Strings;
using support::TempDir;

namespace {

Strings words_of(const std::string& line) {
  Strings words;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

struct WrongLine {
  const char* line;  // words with a blank between them
  const char* says;
};

constexpr WrongLine wrong_lines[] = {
    {"--allowed_paths .", ": did you mean --allowed-paths?"},
    {"--alowed-paths .", ": did you mean --allowed-paths?"},
    {"--allowed-path .", ": did you mean --allowed-paths?"},
    {"--allow-paths .", ": did you mean --allowed-paths?"},
    {"--AllowedPaths .", ": did you mean --allowed-paths?"},
    {"--allowed-dirs .", ": did you mean --allowed-paths?"},
    {"--paths .", ": use --allowed-paths DIR"},
    {"--readonly .", ": did you mean --read-only?"},
    {"--read_only .", ": did you mean --read-only?"},
    {"--work-space .", ": did you mean --workspace?"},
    {"--worksapce .", ": did you mean --workspace?"},
    {"--cwd .", ": use --workspace DIR"},
    {"--workdir .", ": use --workspace DIR"},
    {"--work-dir .", ": use --workspace DIR"},
    {"--dir .", ": use --workspace DIR, or --allowed-paths DIR..."},
    {"--execution-mode podman",
     ". For podman, use --execution-mode docker --docker-program podman."},
    {"--execution-mode dokcer", "Did you mean docker?"},
    {"--execution-mode Docker", "Did you mean docker?"},
    {"--execution-mode container", ". For container, use --execution-mode docker."},
    {"--execution-mode k8s", ". For k8s, use --execution-mode kubernetes."},
    {"--execution-mode srt", ". For srt, use --execution-mode local --sandbox strict."},
    {"--exec-mode docker", ": did you mean --execution-mode?"},
    {"--mode docker", ": use --execution-mode MODE, or --policy MODE"},
    {"--docker", ": use --execution-mode docker"},
    {"--podman", ": use --execution-mode docker --docker-program podman"},
    {"--image x", ": use --docker-image IMAGE, or --kubernetes-image NAME"},
    {"--docker-img x", ": did you mean --docker-image?"},
    {"--allowed-command ls", ": did you mean --allowed-commands?"},
    {"--allow-commands ls", ": did you mean --allowed-commands?"},
    {"--whitelist ls", ": use --allowed-commands PATTERN..."},
    {"--blacklist ls", ": use --blocked-commands PATTERN..."},
    {"--blocked-command ls", ": did you mean --blocked-commands?"},
    {"--block-commands ls", ": did you mean --blocked-commands?"},
    {"--deny ls", ": use --blocked-commands PATTERN..."},
    {"--disable-rules x", ": did you mean --disable-rule?"},
    {"--ask-command ls", ": did you mean --ask-commands?"},
    {"--ask x", ": use --ask-commands PATTERN..., or --ask-rule NAME..."},
    {"--sandbox none", "; write off"},
    {"--sandbox best", ": did you mean best_effort?"},
    {"--sandbox stict", ": did you mean strict?"},
    {"--sandbx off", ": did you mean --sandbox?"},
    {"--no-sandbox", ": use --sandbox off"},
    {"--network off", "; write none"},
    {"--network nonee", ": did you mean none?"},
    {"--no-network", ": use --network none"},
    {"--netwrk none", ": did you mean --network?"},
    {"--allow-domain x.org", ": did you mean --allow-domains?"},
    {"--allowed-domains x.org", ": did you mean --allow-domains?"},
    {"--domains x", ": use --allow-domains NAME..., or --list-domains"},
    {"--private-homes off", ": did you mean --private-home?"},
    {"--private-home no", "; write off"},
    {"--time-out 5", ": did you mean --timeout?"},
    {"--timeuot 5", ": did you mean --timeout?"},
    {"--max_timeout 5", ": did you mean --max-timeout?"},
    {"--maxtimeout 5", ": did you mean --max-timeout?"},
    {"--max-output 5", ": did you mean --max-output-size?"},
    {"--limit-mem 5", ": did you mean --limit-memory?"},
    {"--memory 5g", ": use --limit-memory SIZE, or --docker-memory-limit SIZE"},
    {"--cpu 5", ": did you mean --limit-cpu?"},
    {"--limit-procs 5", ": did you mean --limit-processes?"},
    {"--env A=B", ": use --set-env NAME=VALUE, or --keep-env NAME"},
    {"--setenv A=B", ": did you mean --set-env?"},
    {"--keep-envs A", ": did you mean --keep-env?"},
    {"--venv x", ": did you mean --venv-path?"},
    {"--background 5", ": use --run-in-background-after SECONDS"},
    {"--disable-tools x", ": did you mean --disable-tool?"},
    {"--disable-tool execute_comand", ": did you mean execute_command?"},
    {"--full-result", ": did you mean --full-results?"},
    {"--audit-log x", ": use --audit-file FILE"},
    {"--audit f", ": use --audit-file FILE"},
    {"--log f", ": use --audit-file FILE"},
    {"--transcripts f", ": did you mean --transcript?"},
    {"--agent x", ": did you mean --agent-id?"},
    {"--user x", ": did you mean --user-id?"},
    {"--credentials {}", ": did you mean --docker-credentials?"},
    {"--run ls -la", ": quote it as one word: --run 'ls -la'"},
    {"--run ls --all",
     ": did you mean --help-all? Or if it belongs to the command, quote that as one word: --run "
     "'ls --all'"},
    {"--check rm -rf /", ": quote it as one word: --check 'rm -rf /'"},
    {"-v", ": use --version"},
    {"-V", ": use --version"},
    {"-c ls", ": use --run COMMAND, or --config FILE"},
    {"-allowed-paths .", ": did you mean --allowed-paths?"},
    {"-run ls", ": did you mean --run?"},
    {"serve", ": without --run and the like it serves"},
    {"start", ": without --run and the like it serves"},
    {"stdio", ": a client starts the server, and speaks to it on standard input"},
    {"--stdio", ": a client starts the server, and speaks to it on standard input"},
    {"--port 80", ": a client starts the server, and speaks to it on standard input"},
    {"--transport http", ": a client starts the server, and speaks to it on standard input"},
    {"--verbose", ": use --doctor"},
    {"--debug", ": use --doctor"},
    {"doctor", ": did you mean --doctor?"},
    {"help", ": did you mean --help?"},
    {"version", ": did you mean --version?"},
    {"run ls", ": did you mean --run?"},
    {"ls -la", "; options begin with --, and a command follows --run: --run 'ls -la'"},
    {"/tmp", "; a folder follows --workspace or --allowed-paths"},
    {".", "; a folder follows --workspace or --allowed-paths"},
    {"--conf x", ": did you mean --config?"},
    {"--write", "is for --client-config"},
    {"--client claude-code", ": did you mean --client-config?"},
    {"--install claude-code", ": use --client-config NAME --write"},
    {"--verion", ": did you mean --version?"},
    {"--hlep", ": did you mean --help?"},
    {"--help-al", ": did you mean --help-all?"},
    {"--list-rule", ": did you mean --list-rules?"},
    {"--rules", ": did you mean --list-rules?"},
    {"--explain", "is for --sandbox-report"},
    {"--output x", "is for --report"},
    {"--sandbox-reports", ": did you mean --sandbox-report?"},
    {"--doctr", ": did you mean --doctor?"},
    {"--frobnicate", "; --help-all lists all"},
    {"--x", "; --help-all lists all"},
    {"--", "; --help-all lists all"},
    {"--place-hosts x", ": did you mean --place-host?"},
    {"--kubernetes-images x", ": did you mean --kubernetes-image?"},
    {"--slurm x", ": use --execution-mode slurm"},
    {"--ssh box", ": use --execution-mode ssh --place-host HOST"},
};

struct WrongFile {
  const char* text;
  const char* says;
};

constexpr WrongFile wrong_files[] = {
    {"{\n  // where\n  \"timeout\": 5\n}\n", "at line 2, column 3; JSON has no comments"},
    {"{\"timeout\": 5 # s\n}", "at line 1, column 15; JSON has no comments"},
    {"{/* a */\"timeout\": 5}", "at line 1, column 2; JSON has no comments"},
    {"{}\n// the end\n", "at line 2, column 1; JSON has no comments"},
    {"\xef\xbb\xbf{\"timeout\":5}", "begins with a byte order mark"},
    {"\xff\xfe{", "the file is UTF-16"},
    {"timeout: 5\n", "looks like YAML or TOML"},
    {"---\ntimeout: 5\n", "looks like YAML or TOML"},
    {"- a\n", "looks like YAML or TOML"},
    {"timeout = 5\n", "looks like YAML or TOML"},
    {"[server]\ntimeout = 5\n", "looks like YAML or TOML"},
    {"{\n \"timeout\": 5,\n}\n", "at line 3, column 1; a comma may not stand before"},
    {"{\"allowed_paths\": [\"/a\", ]}", "at line 1, column 26; a comma may not stand before"},
    {"{'timeout': 5}", "at line 1, column 2; JSON has only double quotes"},
    {"{\"agent_id\": 'x'}", "at line 1, column 14; JSON has only double quotes"},
    {"{\xe2\x80\x9ctimeout\xe2\x80\x9d: 5}", "these are typographic quotes"},
    {"{timeout: 5}", "a name stands in double quotes"},
    {"{\"delete_guard\": True}", "JSON writes true, false and null"},
    {"{\"agent_id\": None}", "JSON writes true, false and null"},
    {"{\"agent_id\": abc}", "a text stands in double quotes"},
    {"{\"timeout\": 5\n \"agent_id\": \"x\"}", "at line 2, column 2; a comma is missing"},
    {"{\"timeout\" = 5}", "a colon stands between a name and its value"},
    {"", "the file is empty"},
    {"  \n", "the file is empty"},
    // Columns are characters; what says enough by itself is left as it is.
    {"{\"agent_id\":\"\xc3\xa4\xc3\xb6\" x}", "at line 1, column 18; a comma"},
    {"{\"timeout\": 5}}", "unexpected text after the value at line 1, column 15\n"},
    {"{\"timeout\": 05}", "expected ',' or '}' at line 1, column 14\n"},
    {"{\"agent_id\":\"a\nb\"}", "control character in a string at line 1, column 15\n"},
    {"{\"timeuot\": 5}", "timeuot: unknown key: did you mean timeout?"},
    {"{\"Allowed-Paths\": [\".\"]}", "unknown key: did you mean allowed_paths?"},
    {"{\"command_line_docker_images\": 1}", "unknown key: did you mean docker_image?"},
    {"{\"run\": \"x\"}", "unknown key: it is an option of the command line only"},
    {"{\"frobnicate\": 1}", "frobnicate: unknown key\n"},
    {"{\"sandbox\": \"none\"}", "; write off"},
};

}  // namespace

TEST_CASE("mistakes: a wrong command line is told what to write") {
  CHECK(std::size(wrong_lines) >= 100);
  for (const WrongLine& wrong : wrong_lines) {
    CAPTURE(wrong.line);
    check_refused(run_program(words_of(wrong.line)), wrong.says);
  }
}

TEST_CASE("mistakes: a wrong configuration file is told where and what to write") {
  const TempDir place;
  for (const WrongFile& wrong : wrong_files) {
    CAPTURE(wrong.text);
    const std::string file = place.file("c.json", wrong.text);
    const ProcessResult r = run_program({"--config", file, "--run", "true"});
    check_refused(r, wrong.says);
    CHECK(has(r.err, file));
  }
  // JSON on the command line, too.
  check_refused(run_program({"--docker-credentials", "{x}"}), "at line 1, column 2; a name stands");
}

TEST_CASE("mistakes: long and hostile names are near to nothing, and take no time") {
  const std::string long_name(100000, 'a');
  check_refused(run_program({"--" + long_name}), "; --help-all lists all");
  check_refused(run_program({"--allowed-paths" + long_name}), "; --help-all lists all");
  check_refused(run_program({"--\xff\xfe\x1b[31m"}), "unknown option");
  check_refused(run_program({"--run", "ls", "-" + long_name}), ": quote it as one word\n");
  check_refused(run_program({"--run", "echo", "it's"}), ": quote it as one word\n");
}
