// Every option of the server program.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::enforces;
using support::FakeEngine;
using support::has;
using support::is_list;
using support::is_number;
using support::key_of;
using support::lines_of;
using support::options_of_help;
using support::parsed;
using support::report_of;
using support::run_command;
using support::run_program;
using support::Strings;
using support::TempDir;

namespace {

// The words of a command line as the value that the configuration file would have.
Json config_value(const std::string& value, const Strings& words) {
  if (value.empty()) return Json(true);
  if (is_number(value) || value == "JSON" || value == "BOOL") return parsed(words.at(0));
  if (!is_list(value)) return Json(words.at(0));
  return support::words_json(words);
}

// What the rows below are about. <name> in their words and commands stands for a path of it, or for
// several options.
class Place {
 public:
  Place() {
    skills.file("s.md", "a skill");
    skills.file("gitconfig", "[user]\nname = Ada\nemail = ada@x\n");
    skills.file("key", "0123456789abcdef", 0600);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", system_log().c_str());
    REQUIRE(::bind(log_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    for (const char* name : {"spill", "venv/bin", "project/.venv/bin", "ro", "workspace"})
      folder.directory(name);
    folder.file("guarded");
    for (const char* name : {"bin", "elsewhere"}) folder.directory(name);
    // What ssh would do on another machine.
    folder.file("bin/ssh", "#!/bin/sh\n[ \"$5\" = box ] && shift 5 && exec sh -c \"$*\"\n", 0755);
    // And what Slurm would: options come first.
    folder.file("bin/salloc",
                "#!/bin/sh\nASKED=\"$*\"\nuntil [ \"$1\" = sh ]; do shift; done\n"
                "echo \"$ASKED\" >\"${0%/*}/asked\"\nSLURM_JOB_ID=7 exec \"$@\"\n",
                0755);
    folder.file(
        "bin/srun",
        "#!/bin/sh\nshift 2\nwhile [ \"${1#--}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n", 0755);
    // A Kubernetes whose pods are this host.
    folder.file("bin/kubectl",
                "#!/bin/sh\nd=${0%/*}\ncase \"$*\" in\n"
                "*--dry-run*) echo '{\"kind\":\"Pod\",\"spec\":{\"hostname\":\"theirs\"}}' ;;\n"
                "*'create -f -') echo \"$*\" >\"$d/asked\"; cat >>\"$d/asked\"; echo made ;;\n"
                "*--watch*) echo '{\"type\":\"ADDED\",\"object\":{\"status\":{\"conditions\":"
                "[{\"type\":\"Ready\",\"status\":\"True\"}]}}}' ;;\n"
                "*exec*) until [ \"$1\" = -- ]; do shift; done; shift; exec \"$@\" ;;\n"
                "*) echo '{\"items\":[]}' ;;\nesac\n",
                0755);
    support::make_symlink(CODEEXEC_MCP, folder / "bin/codeexec-mcp");
    folder.file("elsewhere/agent", "#!/bin/sh\nexport AGENT=\"$0\"\nexec " CODEEXEC_MCP " \"$@\"\n",
                0755);
    variables.set("PATH", ((folder / "bin") + ":" + std::getenv("PATH")).c_str());
    shell_ = folder.file("shell", "#!/bin/sh\necho wrapped\nexec /bin/sh \"$@\"\n", 0755);
  }
  std::string workspace() const { return folder / "workspace"; }
  std::string audit() const { return folder / "audit"; }
  std::string gitconfig() const { return skills / "gitconfig"; }
  std::string system_log() const { return skills / "log"; }
  // The next message to the log of the system; empty when there is none.
  std::string logged() const {
    char text[4096];
    const ssize_t size = ::recv(log_.get(), text, sizeof text, MSG_DONTWAIT);
    return std::string(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  }

  std::string filled(std::string text) const {
    const std::pair<const char*, std::string> paths[] = {
        {"<place>", folder.path()}, {"<skills>", skills.path()}, {"<workspace>", workspace()},
        {"<audit>", audit()},       {"<disk>", disk.path()},     {"<engine>", engine.program()},
        {"<shell>", shell_},        {"<mcp>", CODEEXEC_MCP},     {"<key>", skills / "key"},
        {"<log>", system_log()}};
    for (const auto& [name, path] : paths)
      for (std::size_t at = 0; (at = text.find(name)) != std::string::npos;)
        text.replace(at, std::strlen(name), path);
    return text;
  }
  Strings filled(const Strings& words) const {
    Strings result;
    const auto add = [&](const Strings& more) {
      for (const std::string& word : more) result.push_back(filled(word));
    };
    for (const std::string& word : words) {
      if (word == "<sandbox>")
        add({"--sandbox", "best-effort", "--workspace", "<workspace>"});
      else if (word == "<docker>")
        add(engine.options({"--workspace", "<workspace>"}));
      else if (word == "<user>")
        add({"--user-id", "somebody", "--docker-program", "<engine>", "--tools-path", "<skills>",
             "--skills-path", "<skills>"});
      else
        add({word});
    }
    return result;
  }

  TempDir folder = {};
  TempDir skills = {};
  TempDir disk = TempDir(support::quiet_base());
  FakeEngine engine = {};
  support::EnvironmentGuard variables = {};

 private:
  std::string shell_ = {};
  codeexec::UniqueFd log_ = codeexec::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
};

// What became of the command of a row.
struct Effect {
  const Place& place;
  const ProcessResult& result;
  const Json& object;
  std::string out() const { return object["stdout"].as_string(); }
};

using Seen = bool (*)(const Effect&, const std::string& text);

bool prints(const Effect& o, const std::string& text) {
  return o.object["stdout"] == Json(text + "\n");
}
bool prints_not(const Effect& o, const std::string& text) { return !prints(o, text); }
bool says(const Effect& o, const std::string& text) { return o.object["stderr"] == Json(text); }
bool breaks(const Effect& o, const std::string& text) { return o.object["rule"] == Json(text); }
bool is_cut(const Effect& o, const std::string&) { return o.object["stdout_truncated"].as_bool(); }
bool spills(const Effect& o, const std::string&) { return o.object["stdout_file"].is_string(); }
bool fails(const Effect& o, const std::string&) { return !o.object["success"].as_bool(); }
bool tells(const Effect& o, const std::string& text) { return has(o.object.dump(), text); }
bool records(const Effect& o, const std::string& text) {
  return has(support::read_file(o.place.audit()), text);
}
bool logs_to_the_system(const Effect& o, const std::string& text) {
  return has(o.place.logged(), text);
}
bool has_mode(const Effect& o, const std::string& text) {
  return o.object["sandbox"]["mode"] == Json(text);
}
bool leaves_a_process(const Effect& o, const std::string&) {
  const int pid = std::atoi(o.out().c_str());
  return pid > 1 && ::kill(pid, SIGKILL) == 0;
}
bool keeps_no_files(const Effect& o, const std::string&) {
  return o.object["success"].as_bool() && !o.object.find("put_back");
}
bool keeps_aside(const Effect& o, const std::string&) {
  return has(o.object["notes"].dump(), o.place.folder / "aside") &&
         support::exists(o.place.folder / "aside");
}
// The words that the engine was called with, divided by bars; with "!" in front: not with those.
bool called(const Effect& o, const std::string& text) {
  const std::string calls = o.place.engine.take_calls();
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('|', at), text.size());
    const std::string words = text.substr(at, end - at);
    if (words[0] == '!' ? has(calls, words.substr(1)) : !has(calls, words)) return false;
    at = end + 1;
  }
  return true;
}
bool has_no_packages(const Effect& o, const std::string&) {
  return o.object["outcome"] == Json("not_started") &&
         has(o.object["stderr"].as_string(), "packages");
}
bool leaves_a_log(const Effect& o, const std::string&) {
  const std::string path = o.place.folder / "docker.log";
  return support::exists(path) && ::unlink(path.c_str()) == 0;
}
bool has_no_sudo(const Effect& o, const std::string&) {
  return has(o.result.err, "enable_sudo has no effect") && o.object["rule"] == Json("sudo");
}

// An option, and a command that shows its effect.
struct Row {
  const char* option;
  Strings words;   // its value
  Strings others;  // other options that are needed to see it
  std::string command;
  Seen seen = nullptr;  // null: has no effect in --run
  const char* text = "";
  const char* feature = "";  // of the sandbox, without which there is no effect
};

const Strings user_container = {"--profile", "user-container", "<user>"};
const Strings isolated = {"<sandbox>", "--network", "none"};

const Row rows[] = {
    {"allowed-paths", {"<place>", "<skills>"}, {"--workspace", "/"}, "true", breaks, "work_dir"},
    {"read-only",
     {"<place>/ro", "<skills>"},
     {"--workspace", "<place>"},
     "touch ro/x",
     breaks,
     "read-only"},
    {"workspace", {"<place>"}, {}, "pwd", prints, "<place>"},
    {"timeout", {"0.2"}, {}, "sleep 0.6", says, "Command timed out after 0.2 seconds"},
    {"max-timeout", {"0.2"}, {}, "sleep 0.6", says, "Command timed out after 0.2 seconds"},
    {"idle-timeout",
     {"0.2"},
     {},
     "sleep 0.6",
     says,
     "Command timed out: no output for 0.2 seconds"},
    {"max-output-size", {"2048"}, {}, "seq 1 2000", is_cut},
    {"policy", {"compat"}, {}, "echo dd", breaks, "dd"},
    {"allowed-commands", {"echo.*", "cat.*"}, {}, "true", breaks, "allowed-commands"},
    {"allow-usual", {}, {"--allowed-commands", "git.*"}, "cd / && pwd", prints, "/"},
    {"blocked-commands", {"echo.*", "true.*"}, {}, "true", breaks, "blocked-commands"},
    {"disable-rule",
     {"dd", "su"},
     {},
     "dd if=/dev/null of=/dev/null 2> /dev/null; su --no-such 2> /dev/null; echo x",
     prints,
     "x"},
    {"ask-commands", {"echo.*", "true.*"}, {}, "true", breaks, "ask-commands"},
    {"ask-rule", {"dd", "su"}, {}, "dd if=/dev/null", tells, "needs the approval of a person"},
    {"ask-timeout", {"60"}, {}, "true"},
    {"delete-guard",
     {},
     {"--workspace", "<place>"},
     "test -d guarded && rm guarded",
     breaks,
     "delete-guard"},
    {"sandbox", {"best-effort"}, {"--workspace", "<workspace>"}, "true", has_mode, "best_effort"},
    {"network", {"none"}, {"<sandbox>"}, "echo ${CODEEXEC_NETWORK-}", prints, "none", "network"},
    {"allow-domains",
     {"python", "*.example.org"},
     {"<sandbox>", "--network", "allow"},
     "echo ${CODEEXEC_NETWORK-}",
     prints,
     "allow",
     "network"},
    {"deny-domains",
     {"a.example.org=it is down", "*.b.org:443"},
     {"<sandbox>", "--network", "allow", "--allow-domains", "*.example.org"},
     "curl -sS --noproxy '' http://a.example.org/",
     tells,
     "it is down",
     "network"},
    {"private-home", {"off"}, {"<sandbox>"}, "echo $HOME", prints, "/nonexistent"},
    {"unix-sockets",
     {},
     isolated,
     "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and print \"made\\n\"'",
     prints,
     "made",
     "network"},
    {"no-private-tmp",
     {},
     {"<sandbox>"},
     "touch /dev/shm/codeexec-test-$$ 2> /dev/null || echo closed",
     prints,
     "closed",
     "filesystem"},
    {"shared-memory",
     {},
     {"<sandbox>", "--no-private-tmp"},
     "touch /dev/shm/codeexec-test-$$ && rm /dev/shm/codeexec-test-$$ && echo made",
     prints,
     "made",
     "filesystem"},
    {"devices",
     {"/dev/ptmx"},
     {"<sandbox>", "--no-private-tmp"},
     ": <> /dev/ptmx && echo made",
     prints,
     "made",
     "filesystem"},
    {"terminals",
     {},
     {"<sandbox>", "--no-private-tmp"},
     "test -c /dev/ptmx && : <> /dev/ptmx && echo made",
     prints,
     "made",
     "filesystem"},
    {"pid-namespace",
     {},
     {"<sandbox>"},
     "test $$ -lt 20 && echo new",
     prints,
     "new",
     "pid_namespace"},
    {"protected-paths",
     {"tool", "conf/d"},
     {"<sandbox>"},
     "mkdir -p tool; touch tool/x 2> /dev/null || echo kept",
     prints,
     "kept",
     "protected_paths"},
    {"hidden-paths",
     {"secret", "conf/d"},
     {"<sandbox>"},
     "test -e secret || echo x > secret; cat secret 2> /dev/null || echo hidden",
     prints,
     "hidden",
     "hidden_paths"},
    {"no-supervisor",
     {},
     {"--sandbox", "off"},
     "setsid sleep 300 > /dev/null 2>&1 < /dev/null & echo $!",
     leaves_a_process,
     "",
     "containment"},
    {"no-watch-files", {}, {"<sandbox>"}, "echo x > .envrc", keeps_no_files},
    {"allow-later", {".npmrc"}, {"<sandbox>"}, "echo $$ > .npmrc", keeps_no_files, "", "put_back"},
    {"put-back-dir",
     {"<place>/aside"},
     {"<sandbox>"},
     "echo $$ > .gdbinit",
     keeps_aside,
     "",
     "put_back"},
    {"limit-cpu", {"7"}, {}, "ulimit -t", prints, "7", "cpu_time"},
    {"limit-memory", {"33554432"}, {}, "perl -e '$x = \"a\" x (64 << 20)'", fails, "", "memory"},
    {"limit-address-space", {"2147483648"}, {}, "ulimit -v", prints, "2097152", "address_space"},
    // bash tries again when it cannot fork.
    {"limit-processes",
     {"10"},
     {"--shell", "/bin/sh"},
     "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.2 & done; wait; echo all",
     prints_not,
     "all",
     "processes"},
    {"limit-open-files", {"64"}, {}, "ulimit -n", prints, "64", "open_files"},
    {"limit-file-size",
     {"1048576"},
     {"--shell", "/bin/sh"},
     "ulimit -f",
     prints,
     "2048",
     "file_size"},
    {"limit-disk",
     {"4194304"},
     {"--sandbox", "best-effort", "--workspace", "<disk>"},
     // More than others, who use the same disk, are likely to give back meanwhile.
     "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 20000000 /dev/zero > $i.$$; sleep 0.3; done",
     tells,
     "limits_reached",
     "disk"},
    {"secret-env",
     {"CODEEXEC_TEST_SECRET", "CODEEXEC_TEST_OTHER"},
     {},
     "echo $CODEEXEC_TEST_SECRET",
     prints,
     "[redacted]"},
    {"execution-mode",
     {"docker"},
     {"--docker-program", "<engine>", "--workspace", "<workspace>"},
     "true",
     called,
     "\nexec "},
    {"place-command",
     {"env 'A=b  c' \"<mcp>\" --place"},
     {"--execution-mode", "command", "--workspace", "<workspace>"},
     "echo \"$A\"",
     prints,
     "b  c"},
    {"place-host",
     {"box"},
     {"--execution-mode", "ssh", "--workspace", "<workspace>"},
     "true",
     tells,
     "\"place\":\"box\""},
    {"place-agent-path",
     {"<place>/elsewhere/agent"},
     {"--execution-mode", "ssh", "--place-host", "box", "--workspace", "<workspace>"},
     "echo $AGENT",
     prints,
     "<place>/elsewhere/agent"},
    {"place-workspace",
     {"remote"},
     {"--execution-mode", "ssh", "--place-host", "box", "--workspace", "<workspace>"},
     "true"},
    {"place-copy-files",
     {"1000"},
     {"--execution-mode", "ssh", "--place-host", "box", "--place-workspace", "copy", "--workspace",
      "<workspace>"},
     "true"},
    {"place-copy-size",
     {"1m"},
     {"--execution-mode", "ssh", "--place-host", "box", "--place-workspace", "copy", "--workspace",
      "<workspace>"},
     "true"},
    {"place-copy-exclude",
     {"nothing", "else"},
     {"--execution-mode", "ssh", "--place-host", "box", "--place-workspace", "copy", "--workspace",
      "<workspace>"},
     "true"},
    {"place-copy-gitignore",
     {},
     {"--execution-mode", "ssh", "--place-host", "box", "--place-workspace", "copy", "--workspace",
      "<workspace>"},
     "true"},
    {"place-keep-alive",
     {"5"},
     {"--execution-mode", "ssh", "--place-host", "box", "--workspace", "<workspace>"},
     "true"},
    {"place-start-timeout",
     {"5"},
     {"--execution-mode", "slurm", "--workspace", "<workspace>"},
     "true"},
    {"place-pool", {"2"}, {"--execution-mode", "slurm", "--workspace", "<workspace>"}, "true"},
    {"slurm-option",
     {"mem=4G", "partition=debug"},
     {"--execution-mode", "slurm", "--workspace", "<workspace>"},
     "cat <place>/bin/asked | cut -d ' ' -f 1,2",
     prints,
     "--mem=4G --partition=debug"},
    {"kubernetes-option",
     {"context=lab", "namespace=agents"},
     {"--execution-mode", "kubernetes", "--kubernetes-image", "x", "--workspace", "<workspace>"},
     "head -n 1 <place>/bin/asked",
     prints,
     "--context=lab --namespace=agents create -f -"},
    {"kubernetes-image",
     {"box:2"},
     {"--execution-mode", "kubernetes", "--workspace", "<workspace>"},
     "grep -o box:2 <place>/bin/asked",
     prints,
     "box:2"},
    {"kubernetes-limit",
     {"memory=1Gi", "cpu=2"},
     {"--execution-mode", "kubernetes", "--kubernetes-image", "x", "--workspace", "<workspace>"},
     "grep -o 'limits.*:.1Gi.,.cpu.:.2.},.req' <place>/bin/asked",
     prints,
     "limits\":{\"memory\":\"1Gi\",\"cpu\":\"2\"},\"req"},
    {"kubernetes-claim",
     {"disk"},
     {"--execution-mode", "kubernetes", "--kubernetes-image", "x", "--workspace", "<workspace>"},
     "grep -o claimName.*disk <place>/bin/asked",
     prints,
     "claimName\":\"disk"},
    {"kubernetes-pod-template",
     {"pod.yaml"},
     {"--execution-mode", "kubernetes", "--workspace", "<workspace>"},
     "grep -o theirs <place>/bin/asked",
     prints,
     "theirs"},
    {"kubernetes-warm-pool",
     {"pool"},
     {"--execution-mode", "kubernetes", "--workspace", "<workspace>"},
     "grep -o '\"warmPoolRef[^}]*' <place>/bin/asked",
     prints,
     "\"warmPoolRef\":{\"name\":\"pool\""},
    {"kubernetes-lifetime",
     {"90"},
     {"--execution-mode", "kubernetes", "--kubernetes-image", "x", "--workspace", "<workspace>"},
     "grep -o 'DeadlineSeconds.*' <place>/bin/asked | cut -c 1-19",
     prints,
     "DeadlineSeconds\":90"},
    {"docker-program",
     {"<engine>"},
     {"--execution-mode", "docker", "--docker-host", "unix:///nonexistent", "--workspace",
      "<workspace>"},
     "true",
     called,
     "run -i"},
    {"docker-context", {"far"}, {"<docker>"}, "true", called, "--context far run -i"},
    {"docker-host", {"ssh://far"}, {"<docker>"}, "true", called, "--host ssh://far run -i"},
    {"docker-call-timeout", {"5"}, {"<docker>"}, "true"},
    {"docker-run-timeout", {"5"}, {"<docker>"}, "true"},
    {"docker-pull-timeout", {"5"}, {"<docker>"}, "true"},
    {"docker-start-timeout", {"5"}, {"<docker>"}, "true"},
    {"place-agent", {"<mcp>"}, {"<docker>"}, "true"},
    {"docker-image", {"some/image:1"}, {"<docker>"}, "true", called, " some/image:1 "},
    {"docker-image-policy", {"always"}, {"<docker>"}, "true", called, "pull codeexec"},
    {"docker-network-mode", {"bridge"}, {"<docker>"}, "true", called, "--network bridge"},
    {"docker-network", {"mine"}, {"<docker>"}, "true", called, "--network mine"},
    {"docker-dns", {"9.9.9.9"}, {"<docker>"}, "true", called, "--dns=9.9.9.9"},
    {"docker-add-host", {"a:1.2.3.4"}, {"<docker>"}, "true", called, "--add-host=a:1.2.3.4"},
    {"docker-runtime", {"runsc"}, {"<docker>"}, "true", called, "--runtime=runsc"},
    {"docker-gpus", {"all"}, {"<docker>"}, "true", called, "--gpus=all"},
    {"docker-option",
     {"device=/dev/fuse", "ulimit=nproc=99"},
     {"<docker>"},
     "true",
     called,
     "--device=/dev/fuse --ulimit=nproc=99"},
    {"docker-memory-limit", {"512m"}, {"<docker>"}, "true", called, "--memory 536870912"},
    {"docker-cpu-limit", {"1.5"}, {"<docker>"}, "true", called, "--cpus 1.5"},
    {"docker-pids-limit", {"77"}, {"<docker>"}, "true", called, "--pids-limit 77"},
    {"docker-shm-size", {"32m"}, {"<docker>"}, "true", called, "--shm-size 33554432"},
    {"docker-tmp-size", {"0.25g"}, {"<docker>"}, "true", called, "size=268435456"},
    {"docker-read-only-root", {"false"}, {"<docker>"}, "true", called, "run -i|!--read-only"},
    {"docker-user", {"1234:1235"}, {"<docker>"}, "true", called, "-u 1234:1235"},
    {"docker-mount",
     {"<skills>:/seen:ro", "<place>:rw"},
     {"<docker>"},
     "true",
     called,
     "src=<skills>,dst=/seen,readonly|src=<place>,dst=<place> "},
    {"docker-credentials",
     {R"({"env_vars":["CODEEXEC_TEST_SECRET"]})"},
     {"<docker>"},
     "echo ${CODEEXEC_TEST_SECRET-none}",
     prints,
     "[redacted]"},
    {"docker-packages",
     {R"({"preinstall":{"python":["tabulate>=0.9"]}})"},
     {"<docker>", "--docker-network-mode", "bridge"},
     "true",
     called,
     "tabulate>=0.9"},
    {"docker-packages-required",
     {},
     {"<docker>", "--docker-network-mode", "bridge", "--docker-packages",
      R"({"preinstall":{"python":["x"]}})"},
     "true",
     has_no_packages},
    {"docker-cache", {"mine"}, {"<docker>"}, "true", called, "src=codeexec-cache-mine,dst=/var"},
    {"docker-persistent", {}, {"<docker>"}, "true", called, "run -d"},
    {"docker-log-file", {"<place>/docker.log"}, {"<docker>"}, "true", leaves_a_log},
    {"tools-path", {"<skills>"}, {"<docker>"}, "true", called, ",dst=/tools,readonly"},
    {"skills-path", {"<skills>"}, {"<docker>"}, "true", called, ",dst=/skills,readonly"},
    {"profile", {"user-container"}, {"<user>"}, "true", called, "dst=/tools,readonly"},
    {"workspace-size", {"7m"}, user_container, "true", called, "7340032"},
    {"artifacts-size", {"7m"}, user_container, "true", called, "7340032"},
    {"user-id",
     {"somebody"},
     {"--profile", "user-container", "--docker-program", "<engine>", "--tools-path", "<skills>",
      "--skills-path", "<skills>"},
     "true",
     called,
     "somebody"},
    {"max-artifact-size", {"1m"}, user_container, "true"},
    {"agent-id",
     {"agent 7"},
     {"--audit-file", "<audit>"},
     ": > <audit>",
     records,
     R"("agent_id":"agent 7")"},
    {"instance-id", {"run 3"}, {}, "true"},
    {"enable-sudo", {}, {}, "sudo ls", has_no_sudo},
    {"local-skills-directory",
     {"<skills>"},
     {"--workspace", "<place>"},
     "test -L .agent/skills && cat .agent/skills/s.md && echo; rm -rf .agent",
     prints,
     "a skill"},
    {"command-prefix", {"env 'VIA=a b'"}, {}, "cd / && echo $VIA", prints, "a b"},
    {"venv-path", {"<place>/venv"}, {}, "echo $VIRTUAL_ENV", prints, "<place>/venv"},
    {"no-auto-venv",
     {},
     {"--workspace", "<place>/project"},
     "echo ${VIRTUAL_ENV-none}",
     prints,
     "none"},
    {"no-git-identity", {}, {"<sandbox>"}, "test -e ~/.gitconfig || echo none", prints, "none"},
    {"keep-env",
     {"CODEEXEC_TEST_A", "CODEEXEC_TEST_B*"},
     {},
     "echo $CODEEXEC_TEST_A $CODEEXEC_TEST_BB",
     prints,
     "1 2"},
    {"set-env", {"A=x=y", "B="}, {}, "echo $A ${B-unset}.", prints, "x=y ."},
    {"shell", {"<shell>"}, {}, "echo x", prints, "wrapped\nx"},
    {"audit-file", {"<audit>"}, {}, ": > <audit>", records, "{"},
    {"audit-key",
     {"<key>"},
     {"--audit-file", "<audit>", "--workspace", "<workspace>", "--sandbox", "off"},
     "true",
     records,
     "\"hmac\":\""},
    {"audit-syslog", {"<log>"}, {}, "echo it", logs_to_the_system, "echo it"},
    {"audit-output",
     {"1k"},
     {"--audit-file", "<audit>", "--sandbox", "off"},
     ": > <audit>; seq 1 5000",
     records,
     R"("stdout":"1\n2\n3\n)"},
    {"transcript", {"<audit>"}, {}, ": > <audit>", records, "\n## 20"},
    {"spill-dir", {"<place>/spill"}, {"--max-output-size", "1024"}, "seq 1 2000", spills},
    {"max-concurrent", {"3"}, {}, "true"},
    {"run-in-background-after", {"5"}, {}, "true"},
    {"answer-within", {"5"}, {}, "true"},
    {"max-background-shells", {"3"}, {}, "true"},
    {"max-background-time", {"60"}, {}, "true"},
    {"calls-per-minute", {"30"}, {}, "true"},
    {"running-time", {"60"}, {}, "true"},
    {"disable-tool", {"write_file", "execute_code"}, {}, "true"},
    {"full-results", {}, {}, "true"},
    {"result-text", {"plain"}, {}, "true"},
};

// What the sandbox holds commands to where all of it is asked for.
Json whole_report(const Place& place) {
  Strings asking = place.filled(isolated);
  asking.insert(asking.end(), {"--pid-namespace", "--protected-paths", "x", "--hidden-paths", "x"});
  for (const char* limit : {"cpu", "memory", "address-space", "processes", "open-files", "disk"})
    asking.insert(asking.end(), {std::string("--limit-") + limit, "1000000"});
  asking.insert(asking.end(), {"--limit-file-size", "1000000"});
  return report_of(asking);
}

// Whether the effect is seen with these arguments before the row's own.
bool has_effect(const Row& row, const Place& place, Strings arguments) {
  const Strings others = place.filled(row.others);
  arguments.insert(arguments.end(), others.begin(), others.end());
  arguments.insert(arguments.end(), {"--run", place.filled(row.command)});
  support::write_file(place.audit(), "");
  Strings environment = {"CODEEXEC_TEST_A=1", "CODEEXEC_TEST_BB=2", "CODEEXEC_TEST_SECRET=hunter2",
                         "CODEEXEC_TEST_OTHER=hunter3"};
  // A played container would write it to this machine.
  if (row.option == std::string("no-git-identity"))
    environment.push_back("GIT_CONFIG_GLOBAL=" + place.gitconfig());
  const ProcessResult r = run_program(arguments, "/", environment);
  const Json object = r.out.empty() ? Json() : parsed(r.out);
  CAPTURE(r.out);
  CAPTURE(r.err);
  if (!row.seen) {
    // A user's commands begin in a /workspace, which the played engine does not have.
    CHECK(r.exit_code == (std::string(row.option) == "max-artifact-size" ? 125 : 0));
    return true;
  }
  return row.seen({place, r, object}, place.filled(row.text));
}

}  // namespace

// command line and configuration ------------------------------------------------------------------

TEST_CASE("--version goes to stdout, with status 0, and does nothing else") {
  const ProcessResult version = run_program({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out == "codeexec-mcp " CODEEXEC_VERSION_STRING "\n");
  CHECK(version.err == "");
}

TEST_CASE("every option of --help works from the command line and from the configuration file") {
  const Place place;
  const Json report = whole_report(place);
  std::size_t count = 0;
  for (const auto& option : options_of_help()) {
    const std::string& name = option.first;
    const std::string& value = option.second;
    CAPTURE(name);
    ++count;
    const Row* const row = std::find_if(std::begin(rows), std::end(rows),
                                        [&](const Row& each) { return each.option == name; });
    REQUIRE_MESSAGE(row != std::end(rows), "an option without a test");
    // Where the system cannot do it, there is no effect to be seen.
    if (*row->feature && !enforces(report, row->feature)) {
      MESSAGE("SKIPPED: --" << name << " has no effect here: no " << std::string(row->feature));
      continue;
    }
    REQUIRE(row->words.empty() == value.empty());
    const Strings words = place.filled(row->words);

    Strings arguments = {"--" + name};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const bool without = row->seen && has_effect(*row, place, {});
    CHECK(!without);
    CHECK(has_effect(*row, place, arguments));
    if (words.size() == 1) CHECK(has_effect(*row, place, {"--" + name + "=" + words[0]}));

    const Json setting = config_value(value, words);
    for (const std::string& key : {key_of(name), "command_line_" + key_of(name)}) {
      CAPTURE(key);
      Json config = Json::object();
      config.set(key, setting);
      const std::string file = place.folder.file("config.json", config.dump());
      CHECK(has_effect(*row, place, {"--config", file}));
    }
  }
  CHECK(count == std::size(rows));
}

TEST_CASE("the example configurations are good, and do what their README says") {
  const std::string configs = CODEEXEC_ROOT "/examples/configs/";
  const std::string readme = support::read_file(configs + "README.md");
  const Json list = run_command("ls " + configs + "*.json");
  const Strings files = lines_of(list["stdout"].as_string());
  CHECK(files.size() >= 9);
  for (const std::string& file : files) {
    CAPTURE(file);
    CHECK(has(readme, file.substr(configs.size())));
    // hygiene.examples runs those for this host, as the kernel of this build may not do for them.
    if (parsed(support::read_file(file))["execution_mode"].as_string() != "docker") continue;
    const ProcessResult r = run_program({"--config", file, "--check", "ls"}, CODEEXEC_ROOT);
    CHECK(r.exit_code == 0);
    // An engine with two processors takes no more.
    CHECK(parsed(support::read_file(file))["docker_cpu_limit"].as_number() <= 2);
    // Some of the user's own may not be there.
    for (const std::string& line : lines_of(r.err))
      CHECK_MESSAGE(begins(line, "codeexec-mcp: credentials: "), line);
  }
  const auto rule = [&](const char* file, const char* command) {
    const ProcessResult r =
        run_program({"--config", configs + file, "--check", command}, CODEEXEC_ROOT);
    return parsed(r.out)["rule"].as_string();
  };
  for (const char* command : {"git push", "git push origin main", "gh pr merge 5", "rm -rf build",
                              "gh repo delete x", "cd src && git commit -m x"})
    CHECK_MESSAGE(rule("github_read_only.json", command) == "blocked-commands", command);
  for (const char* command :
       {"git status", "gh issue list", "git log --oneline -5 main -- src",
        "gh pr view 5 --comments", "gh api repos/o/r/pulls --jq=.[].title",
        "gh api -X GET search/code?q=x", "git clone https://github.com/o/r --depth=1",
        "cd r && git log | head -3"})
    CHECK_MESSAGE(rule("github_read_only.json", command) == "", command);
  for (const char* command :
       {"rm x", "gh api -X DELETE repos/o/r", "gh api repos/o/r -XDELETE",
        "gh api repos/o/r -f a=b", "gh release upload v1 file", "gh pr review 5 --approve",
        "git tag -d v1", "git branch -D x", "git log --output=x", "git fetch --upload-pack=touch",
        "git clone -c a=b x", "sh x", "gh alias set x 'api -X DELETE'", "gh extension install x",
        "python3 x.py"})
    CHECK_MESSAGE(rule("github_read_only.json", command) == "allowed-commands", command);
  for (const char* command :
       {"pytest -q", "uv run pytest", "python3 -m pytest tests -k a", "cat x | head",
        "cd tests && grep -rn a .", "git diff --stat main", "cat x > y"})
    CHECK_MESSAGE(rule("verification.json", command) == "", command);
  for (const char* command : {"python3 -c 'print(1)'", "python3 x.py", "uv run python x.py",
                              "rg --pre sh x", "git diff --output=y", "git commit -m x", "cp x y"})
    CHECK_MESSAGE(rule("verification.json", command) == "allowed-commands", command);
  CHECK(parsed(support::read_file(configs + "github_read_only.json"))["blocked_commands"].size() ==
        30);
  CHECK(rule("full_development.json", "sudo apt-get update") == "");
}

namespace {

// The names of an enumeration, and that each leads back to its value.
template <class E>
std::string names_of() {
  std::string names;
  int value = 0;
  for (; *name(static_cast<E>(value)); ++value) {
    const char* const text = name(static_cast<E>(value));
    CHECK(static_cast<int>(codeexec::from_name<E>(text).value_or(static_cast<E>(-1))) == value);
    names += (value > 0 ? " " : "") + std::string(text);
  }
  CHECK_FALSE(codeexec::from_name<E>("x"));
  return names;
}

}  // namespace

TEST_CASE("each enumeration of the library is read from the names that it has") {
  CHECK(names_of<codeexec::SandboxMode>() == "off best_effort strict");
  CHECK(names_of<codeexec::Network>() == "host none loopback allow");
  CHECK(names_of<codeexec::Permission>() == "none read write");
  CHECK(names_of<codeexec::FileEntry::Type>() == "file directory link other");
  CHECK(names_of<codeexec::Outcome>() ==
        "exited signaled timed_out cancelled refused not_started unknown");
  CHECK(names_of<codeexec::PrivateHome>() == "off command executor");
  CHECK(names_of<codeexec::PlaceWorkspace>() == "shared remote copy");
  CHECK(names_of<codeexec::JobState>() == "running stopped failed killed");
  CHECK(names_of<codeexec::Jobs::WaitEnd>() == "matched ended timed_out cancelled");
  CHECK(names_of<codeexec::ImagePolicy>() == "never missing always");
  CHECK(names_of<codeexec::ContainerNetwork>() == "none bridge host");
}
