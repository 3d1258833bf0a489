// The sandbox of an executor, the files that it watches, and secrets.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Network;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using codeexec::SandboxMode;
using std::chrono::seconds;
using support::AuditLog;
using support::begins;
using support::contains;
using support::describe;
using support::has;
using support::in;
using support::make;
using support::note_of;
using support::output_of;
using support::Strings;

namespace {

LocalOptions sandboxed_in(const support::TempDir& directory,
                          SandboxMode mode = SandboxMode::best_effort) {
  LocalOptions options = in(directory);
  options.sandbox.mode = mode;
  return options;
}

// Whether the kernel has what a test is about; says so when it has not.
bool enforces(const LocalExecutor& executor, const std::string& feature) {
  if (contains(executor.sandbox_report().enforced, feature)) return true;
  MESSAGE("SKIPPED: no sandbox here that has " << feature);
  return false;
}

}  // namespace

TEST_CASE("the roots are what a sandboxed command may change and read") {
  const support::TempDir place;
  const std::string write = place.directory("write");
  const std::string read = place.directory("read");
  const std::string other = place.directory("other");
  for (const std::string& directory : {write, read, other})
    place.file(directory.substr(place.path().size() + 1) + "/file", "old");
  const auto check_sees = [&](const LocalOptions& options, const std::string& directory, bool reads,
                              bool writes) {
    const LocalExecutor here = make(options);
    CAPTURE(directory);
    const Result r = here.run("cat " + directory + "/file");
    CHECK(r.out == (reads ? "old" : ""));
    // Not a redirection: that is what the policy knows of.
    here.run("sh -c 'd=$(printf %s " + directory + "); touch $d/new'");
    CHECK(support::exists(directory + "/new") == writes);
    ::unlink((directory + "/new").c_str());
  };
  LocalOptions options;
  options.workspace = write;
  options.sandbox.mode = SandboxMode::best_effort;
  if (!enforces(make(options), "filesystem")) return;
  SUBCASE("without roots it is the workspace") {
    check_sees(options, write, true, true);
    check_sees(options, read, false, false);
  }
  SUBCASE("each root by its permission") {
    options.roots = {{write, Permission::write}, {read, Permission::read}};
    check_sees(options, write, true, true);
    check_sees(options, read, true, false);
    check_sees(options, other, false, false);
  }
  SUBCASE("and what is granted besides") {
    options.roots = {{write, Permission::write}};
    options.sandbox.writable = {other};
    options.sandbox.readable = {read};
    check_sees(options, other, true, true);
    check_sees(options, read, true, false);
  }
  SUBCASE("the control: without a sandbox all of it") {
    options.sandbox.mode = SandboxMode::off;
    check_sees(options, other, true, true);
  }
}

TEST_CASE("file_rules(): what tools may read and write is what commands may") {
  const support::TempDir place;
  const std::string write = place.directory("write");
  const std::string read = place.directory("read");
  const std::string inner = place.directory("write/inner");
  const std::string other = place.directory("other");
  LocalOptions options;
  options.workspace = write;
  const auto check = [&](const LocalExecutor& here, const std::string& path, Permission wanted) {
    CAPTURE(path);
    CHECK(here.file_rules().permission(path) == wanted);
  };
  SUBCASE("without a sandbox as the roots say") {
    const LocalExecutor free = make(options);
    CHECK(!free.file_rules().restricted());
    options.roots = {{write, Permission::write}, {read, Permission::read}};
    const LocalExecutor bound = make(options);
    check(bound, write, Permission::write);
    check(bound, read, Permission::read);
    check(bound, other, Permission::none);
  }
  SUBCASE("a sandbox without roots") {
    options.sandbox.mode = SandboxMode::best_effort;
    options.sandbox.readable = {read, place / "missing"};
    const LocalExecutor here = make(options);
    CHECK(!here.paths().restricted());
    check(here, write, Permission::write);
    check(here, inner, Permission::write);
    check(here, read, Permission::read);
    check(here, other, Permission::none);
    check(here, "/", Permission::none);
    const std::string home = output_of(here, Command::shell("printf %s \"$HOME\""));
    check(here, home, Permission::write);
  }
  SUBCASE("a sandbox with roots") {
    options.sandbox.mode = SandboxMode::best_effort;
    options.roots = {{write, Permission::write}, {inner, Permission::read}};
    options.sandbox.readable = {read};
    options.sandbox.writable = {inner};
    const LocalExecutor here = make(options);
    check(here, write, Permission::write);
    check(here, inner, Permission::read);  // the root is the user's word
    check(here, read, Permission::read);
    check(here, other, Permission::none);
  }
}

TEST_CASE("a sandboxed command can use the venv, the skills and the shell of the options") {
  const support::TempDir place;
  const support::TempDir elsewhere;
  elsewhere.file("venv/bin/tool", "#!/bin/sh\necho tool\n", 0755);
  elsewhere.file("skills/s.md", "a skill\n");
  LocalOptions options = sandboxed_in(place);
  options.environment.venv_path = elsewhere / "venv";
  options.skills_dir = elsewhere / "skills";
  options.shell = elsewhere.file("shell", support::read_file("/bin/sh"), 0755);
  const LocalExecutor here = make(options);
  if (!enforces(here, "filesystem")) return;
  CHECK(output_of(here, "tool; cat .agent/skills/s.md; echo $0") ==
        "tool\na skill\n" + options.shell + "\n");
  // In a writable root they need no grant of their own, which a strict one could not have.
  options.roots = {{place.path(), Permission::write}, {elsewhere.path(), Permission::write}};
  CHECK(output_of(make(options), "tool; cat .agent/skills/s.md") == "tool\na skill\n");
  CHECK(make(options).sandbox_report().missing.size() == here.sandbox_report().missing.size());
  elsewhere.file("secret", "hidden");
  CHECK(here.run("cat " + (elsewhere / "secret")).out == "");
}

TEST_CASE("what a sandboxed command needs is not granted through a link that one could plant") {
  const support::TempDir place;
  const support::TempDir away;
  away.file("bin/secret", "hidden");
  support::make_symlink(away.path(), place / "link");
  const auto refused = [&](const LocalOptions& wanted, const std::string& option) {
    LocalOptions options = wanted;
    options.sandbox.mode = SandboxMode::best_effort;
    const LocalExecutor here = make(options);
    if (!enforces(here, "filesystem")) return;
    CHECK(here.run("cat " + (away / "bin/secret")).out == "");
    CHECK(here.sandbox_report().missing.size() >= 1);
    options.sandbox.mode = SandboxMode::strict;
    const Expected<LocalExecutor> strict = LocalExecutor::create(options);
    REQUIRE(!strict);
    CHECK(begins(strict.error().message, option + ": '" + (place / "link")));
    CHECK(has(strict.error().message, "leads through the symbolic link"));
  };
  LocalOptions options = sandboxed_in(place);
  SUBCASE("a venv") {
    options.environment.venv_path = place / "link";
    refused(options, "venv_path");
  }
  SUBCASE("skills") {
    options.skills_dir = place / "link";
    refused(options, "skills_dir");
  }
  SUBCASE("a root to read") {
    options.roots = {{place.path(), Permission::write}, {place / "link", Permission::read}};
    refused(options, "read_only");
  }
  SUBCASE("nor is a home directory granted for one of them") {
    if (!enforces(make(options), "filesystem")) return;
    const support::EnvironmentGuard home("HOME", away.path().c_str());
    options.skills_dir = away.path();
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    REQUIRE(!made);
    CHECK(begins(made.error().message, "skills_dir: "));
    CHECK(has(made.error().message, "is a home directory"));
  }
}

TEST_CASE("a sandbox that cannot be given its roots is an error that names the option") {
  const support::TempDir place;
  const auto error_of = [](const LocalOptions& options) {
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    REQUIRE(!made);
    CHECK(!has(made.error().message, "\n"));
    return made.error().message;
  };
  for (const SandboxMode mode : {SandboxMode::best_effort, SandboxMode::strict}) {
    LocalOptions options = sandboxed_in(place, mode);
    options.roots = {{"/", Permission::write}};
    CHECK(begins(error_of(options), "allowed_paths: a sandbox cannot be given '/'"));
    options.roots = {{place.path(), Permission::write}, {"/", Permission::read}};
    CHECK(begins(error_of(options), "read_only: a sandbox cannot be given '/'"));
    options.roots = {};
    options.workspace = "/";
    CHECK(begins(error_of(options), "workspace: a sandbox cannot be given '/'"));
    // Where it is cut out, nothing is given.
    options = sandboxed_in(place, mode);
    options.roots = {{place.path(), Permission::write}, {"/", Permission::none}};
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    if (!made) CHECK(!has(made.error().message, "'/'"));
    options.sandbox.writable = {"relative"};
    CHECK(begins(error_of(options), "sandbox: "));
  }
  // Without a sandbox nobody would hold commands to these.
  LocalOptions off = in(place);
  off.sandbox.network = Network::none;
  CHECK(begins(error_of(off), "network: 'none' needs a sandbox"));
  off.sandbox.network = Network::loopback;
  CHECK(begins(error_of(off), "network: 'loopback' needs a sandbox"));
  off.sandbox.network = Network::host;
  CHECK(LocalExecutor::create(off));
  off.sandbox.pid_namespace = true;
  CHECK(begins(error_of(off), "pid_namespace: it needs a sandbox"));
}

TEST_CASE("roots that allow less than one around them are told to be out of the kernel's reach") {
  const support::TempDir place;
  const std::string forbidden = place.directory("forbidden");
  const std::string shown = place.directory("shown");
  const std::string apart = place.directory("apart");
  LocalOptions options = sandboxed_in(place);
  const auto missing_of = [&](SandboxMode mode) {
    options.sandbox.mode = mode;
    Strings told;
    const LocalExecutor here = make(options);
    for (const std::string& missing : here.sandbox_report().missing)
      if (has(missing, "_roots: ")) told.push_back(missing);
    return told;
  };
  const auto strict_error = [&] {
    options.sandbox.mode = SandboxMode::strict;
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    REQUIRE(!made);
    CHECK(made.error().code == ErrorCode::unsupported);
    return made.error().message;
  };
  options.roots = {{place.path(), Permission::write}, {forbidden, Permission::none}};
  CHECK(missing_of(SandboxMode::best_effort) ==
        Strings{"forbidden_roots: '" + forbidden +
                "' in a directory that commands may use: the kernel cannot take it back there"});
  CHECK(begins(strict_error(), "allowed_paths: sandbox strict: '" + forbidden + "'"));
  CHECK(missing_of(SandboxMode::off).empty());
  options.roots = {
      {place.path(), Permission::write}, {shown, Permission::read}, {apart, Permission::read}};
  CHECK(missing_of(SandboxMode::best_effort) ==
        Strings{"read_only_roots: '" + shown + "', '" + apart +
                "' in a directory that commands may change: the kernel cannot take it back there"});
  CHECK(begins(strict_error(), "read_only: sandbox strict: '" + shown + "', '" + apart + "'"));
  options.roots = {{shown, Permission::read},
                   {forbidden, Permission::none},
                   {apart, Permission::write},
                   {place.path(), Permission::none}};
  options.workspace = apart;
  CHECK(missing_of(SandboxMode::best_effort).empty());
}

TEST_CASE("a result says what it was held to, unless it was refused before") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = sandboxed_in(place);
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const Result ran = here.run("true");
  REQUIRE((ran.sandbox != nullptr));
  CHECK(ran.sandbox->mode == SandboxMode::best_effort);
  CHECK((ran.sandbox.get() == &here.sandbox_report()));
  CHECK((here.start(Command::shell("true")).wait().sandbox == ran.sandbox));
  CHECK(!here.run("sudo ls").sandbox);
  CHECK(!here.check(Command::shell("true")).sandbox);
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 3);
  Json expected = Json::object({{"mode", "best_effort"}, {"network", "host"}});
  if (!here.sandbox_report().missing.empty()) {
    Json missing = Json::array();
    for (const std::string& text : here.sandbox_report().missing) missing.push_back(text);
    expected.set("missing", std::move(missing));
  }
  for (std::size_t i = 0; i < 2; ++i) CHECK(records[i]["sandbox"].dump() == expected.dump());
  CHECK(records[2].find("sandbox") == nullptr);

  options.sandbox.mode = SandboxMode::off;
  const LocalExecutor free = make(options);
  const Result unconfined = free.run("true");
  REQUIRE((unconfined.sandbox != nullptr));
  CHECK(unconfined.sandbox->mode == SandboxMode::off);
  CHECK(log.take().at(0).find("sandbox") == nullptr);
  CHECK(begins(free.describe_place(), "The shell is /bin/sh."));
  CHECK(!has(free.describe_place(), "sandbox"));
  const auto& enforced = here.sandbox_report().enforced;
  const bool confined = std::count(enforced.begin(), enforced.end(), "filesystem") == 1;
  CHECK(has(here.describe_place(), "Commands run in a sandbox") == confined);
}

TEST_CASE(
    "a granted path that has become another directory: strict does not run, best_effort tells") {
  const support::TempDir place;
  for (const SandboxMode mode : {SandboxMode::best_effort, SandboxMode::strict}) {
    const std::string granted = place.directory("granted");
    LocalOptions options;
    options.workspace = place.directory("workspace");
    options.roots = {{options.workspace, Permission::write}, {granted, Permission::read}};
    options.sandbox.mode = mode;
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    if (!made || !contains(made->sandbox_report().enforced, "filesystem")) {
      MESSAGE("SKIPPED: no sandbox here that is " << std::string(codeexec::name(mode)));
      continue;
    }
    CHECK(made->run("echo ran").out == "ran\n");
    REQUIRE(::rename(granted.c_str(), (granted + ".old").c_str()) == 0);
    place.directory("granted");
    const Result r = made->run("echo ran");
    const Result started = made->start(Command::shell("echo ran")).wait();
    if (mode == SandboxMode::strict) {
      for (const Result* each : {&r, &started}) {
        CHECK(each->outcome == Outcome::not_started);
        CHECK(each->step == "sandbox");
        CHECK(begins(each->message, "sandbox: "));
        CHECK(has(each->message, granted));
        CHECK(each->out == "");
      }
    } else {
      CHECK(r.out == "ran\n");
      CHECK(has(note_of(r, "sandbox: "), granted));
      CHECK(started.out == "ran\n");
    }
    support::remove_all(granted);
    support::remove_all(granted + ".old");
  }
}

TEST_CASE("without a network, package managers are told not to try, by the weakest variables") {
  const support::TempDir place;
  const Strings variables = {"npm_config_offline",
                             "npm_config_fetch_retries",
                             "pnpm_config_fetch_retries",
                             "PIP_NO_INDEX",
                             "CARGO_NET_OFFLINE",
                             "UV_OFFLINE",
                             "GOPROXY",
                             "HF_HUB_OFFLINE",
                             "CODEEXEC_NETWORK"};
  std::string print = "echo";
  for (const std::string& variable : variables) print += " ${" + variable + "-}";
  LocalOptions options = sandboxed_in(place);
  CHECK(output_of(make(options), print) == "\n");
  options.sandbox.network = Network::none;
  const LocalExecutor none = make(options);
  if (none.sandbox_report().network != Network::none) {
    MESSAGE("SKIPPED: the network cannot be switched off here");
    CHECK(output_of(none, print) == "\n");
    return;
  }
  CHECK(output_of(none, print) == "true 0 0 1 true 1 off 1 none\n");
  options.environment.set = {{"GOPROXY", "file:///cache"}};
  const support::EnvironmentGuard kept("UV_OFFLINE", "0");
  options.environment.keep.push_back("UV_OFFLINE");
  Command command = Command::shell(print);
  command.environment = {{"PIP_NO_INDEX", ""}};
  CHECK(output_of(make(options), command) == "true 0 0 true 0 file:///cache 1 none\n");

  options.sandbox.network = Network::loopback;
  const LocalExecutor loopback = make(options);
  if (loopback.sandbox_report().network != Network::loopback) return;
  CHECK(output_of(loopback, "echo $CODEEXEC_NETWORK ${PIP_NO_INDEX-}") == "loopback\n");
}

TEST_CASE("a command that fails for want of a network is told why") {
  const support::TempDir place;
  LocalOptions options = sandboxed_in(place);
  const std::string begin[] = {"The network is switched off for commands here",
                               "Commands have a 127.0.0.1 of their own here"};
  const auto hint = [&](const LocalExecutor& executor, const std::string& script) {
    const codeexec::Result r = executor.run(script);
    return note_of(r, begin[0]) + note_of(r, begin[1]);
  };
  const std::string resolve = "echo 'curl: (6) Could NOT resolve host: x' >&2; exit 6";
  CHECK(hint(make(options), resolve) == "");
  for (const Network network : {Network::none, Network::loopback}) {
    options.sandbox.network = network;
    const LocalExecutor here = make(options);
    if (here.sandbox_report().network != network) {
      MESSAGE("SKIPPED: no network " << std::string(codeexec::name(network)) << " here");
      continue;
    }
    const std::string told = network == Network::none
                                 ? begin[0] + " (network: none)"
                                 : begin[1] +
                                       ", and nothing else of the network (network: loopback): a "
                                       "server that runs in the background is reached there";
    CHECK(hint(here, resolve) == told);
    for (const char* words :
         {"Temporary failure in name resolution",
          "getaddrinfo EAI_AGAIN registry.npmjs.org",
          "connect: Network is unreachable",
          "npm ERR! code ENOTCACHED",
          "curl: (7) Failed to connect to 192.0.2.1 port 80",
          "dial udp: socket: permission denied",
          "ERROR: No matching distribution found for x",
          "module lookup disabled by GOPROXY=off",
          "you're in offline mode",
          "--offline was specified",
          "Packages were unavailable because the network was disabled",
          "Failed to establish a new connection: [Errno 13]",
          "Error: connect EACCES 192.0.2.1:80",
          "connect ENETUNREACH 192.0.2.1:80 - Local (0.0.0.0:0)",
          "code: 'EACCES',\n  syscall: 'connect'",
          "<urlopen error [Errno 13] Permission denied>",
          "sock = socket(af, socktype)\n\nPermissionError: [Errno 13] Permission denied",
          "Connecting to 192.0.2.1:80... failed: Permission denied.",
          "error: the crate x could not be found in registry index.",
          "client error (Connect): dns error: failed to look up"}) {
      CAPTURE(words);
      CHECK(hint(here, "echo \"" + std::string(words) + "\"; false") == told);
    }
    CHECK(hint(here, "echo Connection refused; false") ==
          (network == Network::loopback ? told : ""));
    CHECK(here.start(Command::shell(resolve)).wait().notes == Strings{told});
    CHECK(hint(here, "echo Error: connect ECONNREFUSED 127.0.0.1:80; false") ==
          (network == Network::loopback ? told : ""));
    for (const char* quiet : {": wget; exit 4", ": curl; exit 6", ": curl; exit 7"})
      CHECK(hint(here, quiet) == told);
    for (const char* other : {": wget; exit 5", "echo >&2; : curl; exit 7", "exit 4"})
      CHECK(hint(here, other) == "");
    CHECK(hint(here, "echo 'Could not resolve host' >&2") == "");
    CHECK(hint(here, "echo 'no such file'; false") == "");
    // The reason stands at the end of a long output.
    CHECK(hint(here, "seq 1 200000; echo EAI_AGAIN; false") == told);
    CHECK(hint(here, "echo EAI_AGAIN; seq 1 200000; false") == "");
  }
}

TEST_CASE("a command that is refused a socket with a path is told so") {
  const support::TempDir place;
  LocalOptions options = sandboxed_in(place);
  const std::string told = "sockets with a path are closed to commands here (option unix_sockets)";
  const auto hint = [&](const std::string& text) {
    const codeexec::Result r = make(options).run("printf '%s\n' \"" + text + "\" >&2; false");
    return note_of(r, told);
  };
  for (const Network network : {Network::host, Network::none}) {
    options.sandbox.network = network;
    if (make(options).sandbox_report().network != network) {
      MESSAGE("SKIPPED: no network " << std::string(codeexec::name(network)) << " here");
      continue;
    }
    for (const char* words :
         {"sock = socket.socket(socket.AF_UNIX)\nPermissionError: [Errno 13] Permission denied",
          "asyncio/unix_events.py, line 313\nPermissionError: [Errno 13] Permission denied",
          "# Failed opening Unix socket: creating socket: Permission denied",
          "dial unix /var/run/docker.sock: socket: permission denied",
          "error connecting to /tmp/tmux-0/default (Permission denied)",
          "socat[7] E socket(1, 1, 0): Permission denied",
          "process_singleton_posix.cc:297] socket() failed: Permission denied (13)",
          "unix_listener: socket: Permission denied",
          "gpg: failed to start agent '/usr/bin/gpg-agent': General error"}) {
      CAPTURE(words);
      CHECK(hint(words) == (network == Network::none ? told : ""));
    }
    CHECK(hint("socket(1, 1, 0): Address already in use") == "");
  }
}

TEST_CASE("a command that the sandbox has refused something is told what is allowed") {
  const support::TempDir place;
  LocalOptions options = sandboxed_in(place);
  options.private_tmp = false;
  const LocalExecutor here = make(options);
  const auto& enforced = here.sandbox_report().enforced;
  if (std::find(enforced.begin(), enforced.end(), "filesystem") == enforced.end()) {
    MESSAGE("SKIPPED: no sandbox here");
    return;
  }
  const auto notes_of = [](const LocalExecutor& executor, const std::string& script) {
    std::string notes;
    for (const std::string& note : executor.run(script).notes) notes += note + "|";
    return notes;
  };
  const auto printed = [&](const std::string& text) {
    return notes_of(here, "printf '%s\n' \"" + text + "\" >&2; false");
  };
  const std::string files =
      "Commands can change files only below " + place.path() +
      " and in $HOME and $TMPDIR (not /tmp), and read only these, the system and its tools "
      "(options allowed_paths, read_only)|";
  const support::TempDir outside;
  const std::string file = outside / "x";
  for (const std::string& script :
       {"touch " + outside / "not-there/x" + " " + file, "echo > " + file, std::string("ls /"),
        std::string("echo 'x: Permission denied'; false")}) {
    CAPTURE(script);
    CHECK(notes_of(here, script) == files);
  }
  CHECK(printed("x: Read-only file system") == files);
  // It may be for another reason, or none.
  CHECK(notes_of(here, "echo echo x > tool; ./tool") == "");
  CHECK(notes_of(here, "ls / 2> error; cat error >&2; true") == "");
  CHECK(notes_of(here, "touch nowhere/x") == "");

  const std::string memory = "/dev/shm is closed to commands here (option shared_memory)|";
  CHECK(printed("sl = self._semlock = _multiprocessing.SemLock(\n\nPermissionError: [Errno 13] "
                "Permission denied") == memory);
  CHECK(printed("self._fd = _posixshmem.shm_open(\nPermissionError: [Errno 13] Permission denied: "
                "'/psm_1'") == memory);
  CHECK(notes_of(here, "echo > /dev/shm/x") == memory);
  const std::string terminals = "commands can make no terminals here (option terminals)|";
  CHECK(printed("script: failed to create pseudo-terminal: Permission denied") == terminals);
  for (const char* text :
       {"OSError: out of pty devices", "l, f = os.openpty()\nPermissionError: Permission denied",
        "You have too many files are open.",
        "create window failed: fork failed: Permission denied"})
    CHECK(printed(text) == terminals);
  for (const char* text :
       {"shmget(key=7, size=56, 03600).", "semget: failed", "sh: 1: cannot fork: no",
        "socket(1, 1, 0): no such thing", "dial unix /run/x: no such file"})
    CHECK(printed(text) == "");
  for (const char* text :
       {"FATAL: Function not implemented\nFailed system call was shmget(key=7, size=56, 03600).",
        "semaphores: Function not implemented\nFailed system call was semget(7, 17, 03600).",
        "fakeroot, while creating message channels: Function not implemented"})
    CHECK(printed(text) ==
          "System V shared memory, semaphores and queues are closed to commands here (option "
          "pid_namespace)|");
  CHECK(printed("perf_event_open(..., 0) failed unexpectedly with error 1") ==
        "perf needs what the kernel counts, which is closed to commands in a sandbox (option "
        "sandbox)|");
  CHECK(printed("java.nio.file.AccessDeniedException: /tmp/x1y") == files);
  const std::string signals =
      "a command can signal only what it has started itself; kill_background_shell ends a "
      "background command|";
  CHECK(notes_of(here, "kill -0 " + std::to_string(::getpid())) == signals);
  CHECK(printed("pkill: killing pid 7 failed: Operation not permitted") == signals);
  CHECK(printed("kill: No such process") == signals);
  CHECK(printed("mount: Operation not permitted") == "");
  CHECK(printed("mktemp: failed: Permission denied\npyenv: cannot rehash: it isn't writable") ==
        "pyenv's own files cannot be changed here: use the pip of a .venv in the workspace|");
  CHECK(printed("*** Please tell me who you are.") ==
        "no user.name and user.email are known here: set them in the repository, with `git "
        "config`|");
  CHECK(printed("sh: 0: Cannot fork") == "");

  options.roots = {{place.path(), Permission::read}, {place.directory("w"), Permission::write}};
  options.private_home = codeexec::PrivateHome::off;
  CHECK(begins(notes_of(make(options), "ls /"),
               "Commands can change files only below " + (place / "w") + ", and read"));
  options = {};
  options.workspace = place.path();
  const LocalExecutor open = make(options);
  const std::string dialect =
      "the shell is a POSIX sh, without [[, source and arrays: use `bash -c '...'`, or "
      "execute_code with language bash|";
  for (const char* text :
       {"[[: not found", "source: not found", "shopt: not found", "declare: not found",
        "typeset: not found", "mapfile: not found", "readarray: not found", "pushd: not found",
        "let: not found", "i++: not found", "set: Illegal option -o pipefail",
        "Syntax error: Bad for loop variable", "Syntax error: redirection unexpected",
        "Syntax error: \\\"(\\\" unexpected", "Bad substitution", "Syntax error: Bad fd number",
        "arithmetic expression: expecting primary: i++"})
    CHECK(notes_of(open, "echo \"sh: 1: " + std::string(text) + "\" >&2; exit 127") == dialect);
  CHECK(notes_of(open, "echo 'Resource: not found'; false") == "");
  options.shell = "/bin/bash";
  if (::access("/bin/bash", X_OK) == 0) CHECK(notes_of(make(options), "echo \"${x y}\"") == "");
  for (const char* text : {"Permission denied", "kill: No such process", "tell me who you are"})
    CHECK(notes_of(open, "echo " + std::string(text) + "; false") == "");
}

TEST_CASE("secrets are masked in everything that is told of a command") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  AuditLog log;
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.on_audit = log.callback();
  options.policy.blocked = {"curl .*"};
  options.max_timeout = seconds(60);
  const LocalExecutor here = make(options);
  const auto told = [](const Result& r) {
    return describe(r) + r.command + r.work_dir + r.err_file + r.out_file;
  };
  Command command = Command::shell("echo $CODEEXEC_TEST_TOKEN; : hunter2-hunter2");
  command.timeout = seconds(100);  // for a note
  for (const Result& r : {here.run(command), here.start(command).wait()}) {
    CHECK(r.out == "[redacted]\n");
    CHECK(r.command == "echo $CODEEXEC_TEST_TOKEN; : [redacted]");
    CHECK(r.notes.size() == 1);
    CHECK(r.out_counts.redactions == 1);
  }
  // Of a refusal, the bytes of the masked command are told.
  const std::string refused = "echo hunter2-hunter2; curl hunter2-hunter2; true";
  for (const Result& r : {here.run(refused), here.check(Command::shell(refused)),
                          here.start(Command::shell(refused)).wait()}) {
    CHECK(r.rule == "blocked-commands");
    CHECK(!has(told(r), "hunter2"));
    CHECK(r.command == "echo [redacted]; curl [redacted]; true");
    CHECK(r.command.substr(r.rule_begin, r.rule_end - r.rule_begin) == "curl [redacted]");
  }
  CHECK(!has(here.judge(Command::shell(refused)).verdict.message, "hunter2"));
  // Where the start fails, and where the message comes from the system.
  for (const Command& failing :
       {Command::program({"/hunter2-hunter2/x"}), Command::program({"hunter2-hunter2"})}) {
    for (const Result& r : {here.run(failing), here.start(failing).wait()}) {
      CHECK(r.outcome == Outcome::not_started);
      CHECK(has(r.message, "[redacted]"));
      CHECK(!has(told(r), "hunter2"));
    }
  }
  Command lost = Command::shell("true");
  lost.work_dir = "/hunter2-hunter2";
  CHECK(has(here.run(lost).message, "[redacted]"));
  const std::vector<Json> records = log.take();
  CHECK(records.size() == 9);
  for (const Json& record : records) {
    CHECK(!has(record.dump(), "hunter2"));
    CHECK(record["command"].is_string());
  }
  CHECK(records[0]["redactions"] == Json(1));
  CHECK(records[1]["redactions"] == Json(1));
  CHECK(records[2].find("redactions") == nullptr);
}

TEST_CASE("secrets are masked in the names of changed files") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  place.directory(".vscode");
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.put_back_dir = support::TempDir().path();
  const std::string script = ": > .vscode/$CODEEXEC_TEST_TOKEN";
  CHECK(make(options).run(script).put_back == Strings{place.path() + "/.vscode/[redacted]"});
  options.allow_later = {"."};
  CHECK(make(options).run(script).changed_files == Strings{place.path() + "/.vscode/[redacted]"});
}
