// Tests of the environment section: variables, venv and prefix of a command.
#include "codeexec.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "environment/environment_internal.hpp"

extern "C" char** environ;

namespace {

using codeexec::CommandEnvironment;
using codeexec::Environment;
using codeexec::EnvironmentOptions;
using codeexec::ErrorCode;
using support::EnvironmentGuard;
using support::TempDir;

const std::string default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Environment environment_for(const EnvironmentOptions& options) {
  auto environment = Environment::create(options);
  REQUIRE_MESSAGE(environment, environment.error().message);
  return *environment;
}

CommandEnvironment resolved(const EnvironmentOptions& options, std::string_view work_dir = {},
                            const std::vector<std::pair<std::string, std::string>>& extra = {}) {
  auto result = environment_for(options).resolve(work_dir, extra);
  REQUIRE_MESSAGE(result, result.error().message);
  return *result;
}

std::string creation_error(const EnvironmentOptions& options) {
  auto environment = Environment::create(options);
  return environment ? "" : environment.error().message;
}

// The values of a variable, each in brackets: "[x]", or "" when there is none.
std::string value(const CommandEnvironment& environment, const std::string& variable) {
  std::string values;
  for (const std::string& entry : environment.variables)
    if (entry.compare(0, variable.size() + 1, variable + "=") == 0)
      values += "[" + entry.substr(variable.size() + 1) + "]";
  return values;
}

// Another environment for this process, taken away at the end.
class WholeEnvironment {
 public:
  explicit WholeEnvironment(std::vector<std::string> entries) : entries_(std::move(entries)) {
    for (std::string& entry : entries_) pointers_.push_back(&entry[0]);
    pointers_.push_back(nullptr);
    ::environ = pointers_.data();
  }
  WholeEnvironment(const WholeEnvironment&) = delete;
  WholeEnvironment& operator=(const WholeEnvironment&) = delete;
  ~WholeEnvironment() { ::environ = old_; }

 private:
  char** old_ = ::environ;
  std::vector<std::string> entries_;
  std::vector<char*> pointers_ = {};
};

// What `sh -c script` prints in that environment.
std::string shell_output(const CommandEnvironment& environment, const std::string& script) {
  std::vector<std::string> entries = environment.variables;
  std::vector<char*> envp;
  for (std::string& entry : entries) envp.push_back(&entry[0]);
  envp.push_back(nullptr);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], 1);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execle("/bin/sh", "sh", "-c", script.c_str(), static_cast<char*>(nullptr), envp.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace

TEST_CASE("W-21: secrets of the host do not travel") {
  const WholeEnvironment host({"PATH=/bin",
                               "HOME=/h",
                               "USER=u",
                               "LOGNAME=l",
                               "SHELL=/bin/zsh",
                               "LANG=de_DE.UTF-8",
                               "LC_TIME=C",
                               "LC_ALL=",
                               "LANGUAGE=de",
                               "TZ=UTC",
                               "TMPDIR=/t",
                               "TERM=xterm",
                               "COLORTERM=truecolor",
                               "NO_COLOR=1",
                               "FORCE_COLOR=0",
                               "AWS_SECRET_ACCESS_KEY=s3",
                               "OPENAI_API_KEY=sk",
                               "GITHUB_TOKEN=gh",
                               "SSH_AUTH_SOCK=/s",
                               "LD_PRELOAD=/evil.so",
                               "HTTP_PROXY=http://user:pass@proxy",
                               "PATHS=x",
                               "XPATH=x",
                               "LC=x",
                               "PYTHONHOME=/p",
                               "VIRTUAL_ENV=/v",
                               "PWD=/host",
                               "OLDPWD=/old"});
  const CommandEnvironment command = resolved({});
  CHECK(command.variables ==
        std::vector<std::string>{"COLORTERM=truecolor", "FORCE_COLOR=0", "HOME=/h",
                                 "LANG=de_DE.UTF-8", "LANGUAGE=de", "LC_ALL=", "LC_TIME=C",
                                 "LOGNAME=l", "NO_COLOR=1", "PATH=/bin", "SHELL=/bin/zsh",
                                 "TERM=xterm", "TMPDIR=/t", "TZ=UTC", "USER=u"});
  CHECK(command.prefix.empty());
  CHECK(command.venv.empty());
}

TEST_CASE("the keep list takes whole names, or beginnings with a star") {
  const WholeEnvironment host({"PATH=/bin", "LANG=C", "APP_A=1", "APP_=2", "APP=3", "APPLE=4"});
  EnvironmentOptions options;
  options.keep = {"APP_*"};
  CHECK(value(resolved(options), "APP_A") == "[1]");
  CHECK(value(resolved(options), "APP_") == "[2]");
  CHECK(value(resolved(options), "APP") == "");
  CHECK(value(resolved(options), "APPLE") == "");
  options.keep = {"APP"};
  CHECK(value(resolved(options), "APP") == "[3]");
  CHECK(value(resolved(options), "APP_A") == "");
  options.keep = {"*"};
  CHECK(resolved(options).variables.size() == 6);
  options.keep = {};
  CHECK(resolved(options).variables ==
        std::vector<std::string>{"LANG=C.UTF-8", "PATH=" + default_path});
}

TEST_CASE("keep_all passes everything that has a name") {
  const WholeEnvironment host({"PATH=/bin", "LANG=C", "AWS_SECRET_ACCESS_KEY=s3", "=odd",
                               "noequals", "EMPTY=", "EQUALS=a=b", "BASH_FUNC_f%%=() { :; }"});
  EnvironmentOptions options;
  options.keep_all = true;
  CHECK(resolved(options).variables ==
        std::vector<std::string>{"AWS_SECRET_ACCESS_KEY=s3", "BASH_FUNC_f%%=() { :; }",
                                 "EMPTY=", "EQUALS=a=b", "LANG=C", "PATH=/bin"});
}

TEST_CASE("of two variables with one name in the host the first counts, as for getenv") {
  const WholeEnvironment host({"PATH=/first", "LANG=C", "PATH=/second"});
  CHECK(value(resolved({}), "PATH") == "[/first]");
  EnvironmentOptions options;
  options.keep_all = true;
  CHECK(value(resolved(options), "PATH") == "[/first]");
}

TEST_CASE("W-21: a missing or empty PATH is replaced, with and without a venv") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  for (const std::vector<std::string>& entries :
       {std::vector<std::string>{}, std::vector<std::string>{"PATH="}}) {
    const WholeEnvironment host(entries);
    CHECK(value(resolved({}), "PATH") == "[" + default_path + "]");
    CHECK(value(resolved({}, temp / "ws"), "PATH") ==
          "[" + temp / "ws/.venv/bin:" + default_path + "]");
    CHECK(shell_output(resolved({}, temp / "ws"), "ls -d /") == "/\n");
  }
}

TEST_CASE("a host without any environment works") {
  char** const old = ::environ;
  ::environ = nullptr;
  auto environment = Environment::create({});
  ::environ = old;
  REQUIRE(environment);
  CHECK(environment->resolve("")->variables ==
        std::vector<std::string>{"LANG=C.UTF-8", "PATH=" + default_path});
}

TEST_CASE("LANG is C.UTF-8 when neither LANG nor LC_ALL says anything") {
  const auto lang = [](std::vector<std::string> entries) {
    const WholeEnvironment host(std::move(entries));
    return value(resolved({}), "LANG");
  };
  CHECK(lang({}) == "[C.UTF-8]");
  CHECK(lang({"LANG="}) == "[C.UTF-8]");
  CHECK(lang({"LC_ALL="}) == "[C.UTF-8]");
  CHECK(lang({"LC_CTYPE=C"}) == "[C.UTF-8]");
  CHECK(lang({"LANG=C"}) == "[C]");
  CHECK(lang({"LC_ALL=C"}) == "");
  const WholeEnvironment host({});
  EnvironmentOptions options;
  options.set = {{"LC_ALL", "POSIX"}};
  CHECK(value(resolved(options), "LANG") == "");
}

TEST_CASE("set is stronger than what is kept, and its later entries than its earlier") {
  const WholeEnvironment host({"PATH=/bin", "LANG=C", "HOME=/h"});
  EnvironmentOptions options;
  options.set = {{"HOME", "/one"}, {"TOKEN", "t"}, {"HOME", "/two"}, {"EMPTY", ""}, {"PATH", "/p"}};
  const CommandEnvironment command = resolved(options);
  CHECK(value(command, "HOME") == "[/two]");
  CHECK(value(command, "TOKEN") == "[t]");
  CHECK(value(command, "EMPTY") == "[]");
  CHECK(value(command, "PATH") == "[/p]");
}

TEST_CASE("extra is stronger than everything") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  const WholeEnvironment host({"PATH=/bin", "LANG=C", "HOME=/h"});
  EnvironmentOptions options;
  options.set = {{"HOME", "/set"}, {"KEPT", "set"}};
  const CommandEnvironment command = resolved(options, temp / "ws",
                                              {{"HOME", "/extra"},
                                               {"PATH", "/mine"},
                                               {"PWD", "/p"},
                                               {"VIRTUAL_ENV", ""},
                                               {"PYTHONHOME", "/py"},
                                               {"NEW", "a"},
                                               {"NEW", "b"}});
  CHECK(value(command, "HOME") == "[/extra]");
  CHECK(value(command, "KEPT") == "[set]");
  CHECK(value(command, "PATH") == "[/mine]");
  CHECK(value(command, "PWD") == "[/p]");
  CHECK(value(command, "VIRTUAL_ENV") == "[]");
  CHECK(value(command, "PYTHONHOME") == "[/py]");
  CHECK(value(command, "NEW") == "[b]");
}

TEST_CASE("extra of one command is gone in the next") {
  const WholeEnvironment host({"PATH=/bin", "LANG=C"});
  const Environment environment = environment_for({});
  CHECK(value(*environment.resolve("", {{"ONCE", "1"}}), "ONCE") == "[1]");
  CHECK(value(*environment.resolve(""), "ONCE") == "");
}

TEST_CASE("PWD is the work_dir, and absent without one") {
  const WholeEnvironment host({"PATH=/bin", "LANG=C", "PWD=/host"});
  EnvironmentOptions options;
  options.keep_all = true;
  CHECK(value(resolved(options, "/w"), "PWD") == "[/w]");
  CHECK(value(resolved({}, "/w"), "PWD") == "[/w]");
  CHECK(value(resolved({}), "PWD") == "");
}

TEST_CASE("parity 27: the .venv of the work_dir is detected") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  const std::string ws = temp / "ws";
  const WholeEnvironment host({"PATH=/usr/bin:/bin", "LANG=C", "PYTHONHOME=/wrong"});
  EnvironmentOptions options;
  options.keep_all = true;
  const CommandEnvironment command = resolved(options, ws);
  CHECK(command.venv == ws + "/.venv");
  CHECK(value(command, "PATH") == "[" + ws + "/.venv/bin:/usr/bin:/bin]");
  CHECK(value(command, "VIRTUAL_ENV") == "[" + ws + "/.venv]");
  CHECK(value(command, "PYTHONHOME") == "");
  CHECK(command.prefix.empty());
}

TEST_CASE("parity 28: without a .venv nothing changes") {
  TempDir temp;
  const WholeEnvironment host({"PATH=/usr/bin:/bin", "LANG=C", "PYTHONHOME=/right"});
  EnvironmentOptions options;
  options.keep_all = true;
  const CommandEnvironment command = resolved(options, temp.path());
  CHECK(command.venv.empty());
  CHECK(value(command, "PATH") == "[/usr/bin:/bin]");
  CHECK(value(command, "VIRTUAL_ENV") == "");
  CHECK(value(command, "PYTHONHOME") == "[/right]");
}

TEST_CASE("a .venv counts when its bin is a directory") {
  TempDir temp;
  temp.directory("no-bin/.venv/lib");
  temp.file("bin-is-file/.venv/bin");
  temp.file("venv-is-file/.venv");
  temp.directory("links/real/bin");
  support::make_symlink("real", temp / "links/.venv");
  temp.directory("dangling");
  temp.directory("bin-is-link/.venv/real");
  support::make_symlink("real", temp / "bin-is-link/.venv/bin");
  support::make_symlink("nowhere", temp / "dangling/.venv");
  const Environment environment = environment_for({});
  for (const char* place : {"no-bin", "bin-is-file", "venv-is-file", "dangling", "missing"})
    CHECK(environment.resolve(temp / place)->venv == "");
  CHECK(environment.resolve(temp / "links")->venv == temp / "links/.venv");
  CHECK(environment.resolve(temp / "bin-is-link")->venv == temp / "bin-is-link/.venv");
}

TEST_CASE("the disk is looked at for each command") {
  TempDir temp;
  temp.directory("ws");
  const Environment environment = environment_for({});
  CHECK(environment.resolve(temp / "ws")->venv == "");
  temp.directory("ws/.venv/bin");
  CHECK(environment.resolve(temp / "ws")->venv == temp / "ws/.venv");
  support::remove_all(temp / "ws/.venv");
  CHECK(environment.resolve(temp / "ws")->venv == "");
}

TEST_CASE("W-21: from a subdirectory the .venv of the workspace is found") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  temp.directory("ws/sub/deep");
  temp.directory("ws/own/.venv/bin");
  EnvironmentOptions options;
  CHECK(resolved(options, temp / "ws/sub/deep").venv == "");
  options.workspace = temp / "ws";
  CHECK(resolved(options, temp / "ws/sub/deep").venv == temp / "ws/.venv");
  CHECK(resolved(options).venv == temp / "ws/.venv");
  // The nearer one wins.
  CHECK(resolved(options, temp / "ws/own").venv == temp / "ws/own/.venv");
  // A relative workspace stays where it was when the environment was created.
  const support::DirectoryGuard inside(temp.path());
  options.workspace = "ws";
  const Environment environment = environment_for(options);
  const support::DirectoryGuard elsewhere("/");
  CHECK(environment.resolve("/usr")->venv == temp / "ws/.venv");
}

TEST_CASE("W-21: what a workspace puts into .venv/bin is run, unless auto_venv is off") {
  TempDir temp;
  temp.file("ws/.venv/bin/ls", "#!/bin/sh\necho HIJACKED\n", 0755);
  EnvironmentOptions options;
  CHECK(shell_output(resolved(options, temp / "ws"), "ls -d /") == "HIJACKED\n");
  options.auto_venv = false;
  const CommandEnvironment command = resolved(options, temp / "ws");
  CHECK(command.venv == "");
  CHECK(value(command, "VIRTUAL_ENV") == "");
  CHECK(shell_output(command, "ls -d /") == "/\n");
  options.workspace = temp / "ws";
  CHECK(resolved(options, temp / "ws").venv == "");
}

TEST_CASE("an explicit venv wins over .venv, and needs no auto_venv") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  temp.directory("custom/bin");
  EnvironmentOptions options;
  options.venv_path = temp / "custom";
  options.workspace = temp / "ws";
  options.set = {{"PATH", "/set"}};
  for (const bool automatic : {true, false}) {
    options.auto_venv = automatic;
    const CommandEnvironment command = resolved(options, temp / "ws");
    CHECK(command.venv == temp / "custom");
    CHECK(value(command, "PATH") == "[" + temp / "custom/bin:/set]");
    CHECK(value(command, "VIRTUAL_ENV") == "[" + temp / "custom" + "]");
  }
  const support::DirectoryGuard inside(temp.path());
  options.venv_path = "custom/";
  CHECK(resolved(options, "/").venv == temp / "custom");
}

TEST_CASE("an explicit venv that is not there is an error, at the start and later") {
  TempDir temp;
  temp.directory("no-bin");
  EnvironmentOptions options;
  options.venv_path = temp / "nope";
  CHECK(creation_error(options) == "venv_path: '" + temp / "nope" + "' has no 'bin' directory");
  options.venv_path = temp / "no-bin";
  CHECK(creation_error(options) == "venv_path: '" + temp / "no-bin" + "' has no 'bin' directory");
  // The prefix decides, but what is wrong is still told.
  options.command_prefix = "uv run";
  CHECK(creation_error(options) != "");
  options.command_prefix = "";

  temp.directory("ws/.venv/bin");
  options.venv_path = temp.directory("custom/bin").substr(0, (temp / "custom").size());
  const Environment environment = environment_for(options);
  CHECK(environment.resolve(temp / "ws")->venv == temp / "custom");
  support::remove_all(temp / "custom");
  auto gone = environment.resolve(temp / "ws");
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == ErrorCode::not_found);
  CHECK(gone.error().message == "venv_path: '" + temp / "custom" + "' is gone since the start");
}

TEST_CASE("a venv whose path has a colon is not put into PATH") {
  TempDir temp;
  temp.directory("a:b/.venv/bin");
  temp.directory("a:b/venv/bin");
  EnvironmentOptions options;
  CHECK(resolved(options, temp / "a:b").venv == "");
  options.venv_path = temp / "a:b/venv";
  CHECK(creation_error(options) ==
        "venv_path: '" + temp / "a:b/venv" + "' has a ':', which PATH cannot hold");
}

TEST_CASE("a prefix wins over every venv and leaves PATH alone") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  temp.directory("custom/bin");
  const WholeEnvironment host({"PATH=/usr/bin:/bin", "LANG=C", "PYTHONHOME=/right"});
  EnvironmentOptions options;
  options.keep_all = true;
  options.command_prefix = "uv run";
  options.workspace = temp / "ws";
  for (const char* venv : {"", "custom"}) {
    options.venv_path = *venv ? temp / venv : "";
    const CommandEnvironment command = resolved(options, temp / "ws");
    CHECK(command.prefix == "uv run");
    CHECK(command.venv == "");
    CHECK(value(command, "PATH") == "[/usr/bin:/bin]");
    CHECK(value(command, "VIRTUAL_ENV") == "");
    CHECK(value(command, "PYTHONHOME") == "[/right]");
  }
}

TEST_CASE("a prefix is one line of shell words") {
  const auto error = [](std::string prefix) {
    EnvironmentOptions options;
    options.command_prefix = std::move(prefix);
    return creation_error(options);
  };
  CHECK(error("") == "");
  CHECK(error("uv run") == "");
  CHECK(error("conda run -n 'my env'") == "");
  CHECK(error(" ") == "command_prefix: ' ' is blank");
  CHECK(error(" \t ") == "command_prefix: ' \\x09 ' is blank");
  CHECK(error("uv\nrm x") == "command_prefix: 'uv\\x0arm x' has a newline or a NUL byte");
  CHECK(error(std::string("uv\0", 3)) == "command_prefix: 'uv\\x00' has a newline or a NUL byte");
}

TEST_CASE("bad names and values are errors that name the option and the variable") {
  const std::string no_name = "is no variable name: empty, or has '=' or NUL";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "''"}, {"A=B", "'A=B'"}, {"=", "'='"}, {std::string("A\0B", 3), "'A\\x00B'"}};
  for (const auto& [given, shown] : bad) {
    EnvironmentOptions options;
    options.set = {{"GOOD", "1"}, {given, "x"}};
    CHECK(creation_error(options) == "set: " + shown + " " + no_name);
    options.set = {};
    options.keep = {given};
    CHECK(creation_error(options) == "keep: " + shown + " " + no_name);
    auto command = environment_for({}).resolve("", {{given, "x"}});
    REQUIRE_FALSE(command);
    CHECK(command.error().code == ErrorCode::invalid_argument);
    CHECK(command.error().message == "environment: " + shown + " " + no_name);
  }
  EnvironmentOptions options;
  options.set = {{"NAME", std::string("a\0b", 3)}};
  CHECK(creation_error(options) == "set: 'NAME' has a value with a NUL byte in it");
  options.set = {};
  for (const char* pattern : {"A*B", "*A", "A**"}) {
    options.keep = {pattern};
    CHECK(creation_error(options) ==
          "keep: '" + std::string(pattern) + "' has a '*' that is not its last character");
  }
  options.keep = {};
  options.workspace = std::string("/w\0", 3);
  CHECK(creation_error(options) == "workspace: '/w\\x00': has a NUL byte");
}

TEST_CASE("a work_dir that is not absolute is an error") {
  const Environment environment = environment_for({});
  for (const std::string& work_dir :
       {std::string("ws"), std::string("./"), std::string("/w\0", 3)}) {
    auto command = environment.resolve(work_dir);
    REQUIRE_FALSE(command);
    CHECK(command.error().code == ErrorCode::invalid_argument);
  }
}

TEST_CASE("the environment is copied once: later changes of the host do not matter") {
  EnvironmentGuard host("TERM", "before");
  const Environment environment = environment_for({});
  host.set("TERM", "after");
  host.set("LC_LATER", "x");
  CHECK(value(*environment.resolve(""), "TERM") == "[before]");
  CHECK(value(*environment.resolve(""), "LC_LATER") == "");
  CHECK(value(resolved({}), "TERM") == "[after]");
}

TEST_CASE("nothing changes in the host") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  std::vector<std::string> before;
  for (char** entry = ::environ; *entry; ++entry) before.push_back(*entry);
  EnvironmentOptions options;
  options.set = {{"CODEEXEC_TEST", "x"}};
  (void)resolved(options, temp / "ws", {{"CODEEXEC_EXTRA", "y"}});
  std::vector<std::string> after;
  for (char** entry = ::environ; *entry; ++entry) after.push_back(*entry);
  CHECK(before == after);
}

TEST_CASE("a hundred thousand variables are carried") {
  EnvironmentOptions options;
  std::vector<std::pair<std::string, std::string>> extra;
  for (int i = 0; i < 100000; ++i) {
    options.set.push_back({"SET_" + std::to_string(i), "v"});
    extra.push_back({"EXTRA_" + std::to_string(99999 - i), "v"});
  }
  CHECK(resolved(options, "/", extra).variables.size() > 200000);
}

TEST_CASE("many threads resolve at once while the host changes its environment") {
  TempDir temp;
  temp.directory("ws/.venv/bin");
  const Environment environment = environment_for({});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        if (environment.resolve(temp / "ws")->venv != temp / "ws/.venv") ++wrong;
    });
  std::thread changer([&] {
    while (!stop.load()) {
      ::setenv("CODEEXEC_CHANGING", "a longer value each time", 1);
      ::unsetenv("CODEEXEC_CHANGING");
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  changer.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("secrets are kept for commands and told") {
  const WholeEnvironment host({"PATH=/bin", "API_TOKEN=hunter2", "API_TOKEN=second", "OTHER=other",
                               "PEM=line one\nline two\n"});
  EnvironmentOptions options;
  options.secret = {"PEM", "API_TOKEN", "GIVEN", "API_TOKEN"};
  options.set = {{"GIVEN", "given"}, {"GIVEN", "given later"}};
  const std::vector<std::string> expected = {"line one\nline two\n", "hunter2", "given later",
                                             "hunter2"};
  const Environment environment = environment_for(options);
  CHECK(environment.secrets() == expected);
  const CommandEnvironment r = resolved(options, "", {{"API_TOKEN", "of the command"}});
  CHECK(value(r, "PEM") == "[line one\nline two\n]");
  CHECK(value(r, "GIVEN") == "[given later]");
  CHECK(value(r, "API_TOKEN") == "[of the command]");
  CHECK(value(r, "OTHER") == "");
  CHECK(environment_for({}).secrets().empty());
}

TEST_CASE("set is stronger than the host for secrets, too") {
  const WholeEnvironment host({"API_TOKEN=of the host"});
  EnvironmentOptions options;
  options.secret = {"API_TOKEN"};
  options.set = {{"API_TOKEN", "of the operator"}};
  CHECK(environment_for(options).secrets() == std::vector<std::string>{"of the operator"});
  CHECK(value(resolved(options), "API_TOKEN") == "[of the operator]");
}

TEST_CASE("a secret that is missing or cannot be masked is an error that names it") {
  const WholeEnvironment host({"EMPTY=", "SHORT=abc", "LINE=abc\r\n", "FOUR=abcd\n", "A*=abcd"});
  const auto error_of = [](const std::string& variable) {
    EnvironmentOptions options;
    options.keep_all = true;
    options.secret = {"FOUR", variable};
    return creation_error(options);
  };
  CHECK(error_of("FOUR") == "");
  CHECK(error_of("MISSING") ==
        "secret: 'MISSING' is neither a variable of this process nor one of 'set'");
  for (const char* variable : {"EMPTY", "SHORT", "LINE"})
    CHECK(error_of(variable) == "secret: '" + std::string(variable) +
                                    "' has a value of fewer than 4 bytes, which cannot be masked");
  for (const std::string& bad : {std::string(), std::string("A=B"), std::string("A\0B", 3)})
    CHECK(support::has(error_of(bad), "is no variable name: empty, or has '=' or NUL"));
  CHECK(error_of("A*") == "secret: 'A*' has a '*': each secret is named by itself");
  EnvironmentOptions options;
  options.secret = {"MISSING"};
  CHECK(Environment::create(options).error().code == ErrorCode::not_found);
}

TEST_CASE("secrets of more than a mebibyte are an error") {
  EnvironmentOptions options;
  options.set = {{"BIG", std::string(std::size_t{1} << 20, 'x')}, {"MORE", "more"}};
  options.secret = {"BIG"};
  CHECK(creation_error(options) == "");
  options.secret.push_back("MORE");
  CHECK(creation_error(options) == "secret: the values have more than 1048576 bytes");
}
