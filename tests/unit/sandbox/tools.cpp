// The system and its tools, which are readable, and its secrets, which are not.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using support::options_for;
using support::TempDir;

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

using support::has_everything;
using support::is_root;
using support::output_of;
using support::run_in;

TEST_CASE("sandbox: the system's programs and settings are readable, its secrets are not") {
  if (!has_everything("confinement")) return;
  const SandboxOptions options = options_for(SandboxMode::strict);
  CHECK(output_of(run_in(options,
                         "cat /etc/passwd > /dev/null && ls /etc > /dev/null && "
                         "cat /proc/self/status > /dev/null && echo well")) == "well\n");
  for (const std::string path :
       {"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/etc/machine-id"}) {
    if (!support::exists(path)) continue;
    CAPTURE(path);
    CHECK(output_of(run_in(options, "cat " + path + " || ls " + path)) != "");
    CHECK(run_in(options, "cat " + path).out == "");
  }
  // Nor what its owner keeps from others, whatever its name.
  CHECK(output_of(run_in(options,
                         "for f in $(find /etc -type f ! -perm -o+r); do "
                         "head -c 1 $f && echo $f; done 2>/dev/null; true")) == "");
}

TEST_CASE("sandbox: the prefix of a directory of PATH is readable, but for its secrets") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.file("tool/bin/hello", "#!/bin/sh\ncat \"${0%/bin/*}/lib/text\"\n", 0755);
  directory.file("tool/lib/text", "hello\n");
  directory.file("tool/credentials.toml", "token\n");
  directory.file("tool/settings", "token\n", 0600);
  directory.file("other/bin/deep/program", "#!/bin/sh\necho linked\n", 0755);
  directory.file("other/bin/deep/text", "text\n");
  support::make_symlink(directory / "other/bin/deep/program", directory / "tool/bin/linked");
  support::make_symlink(directory / "other", directory / "tool/elsewhere");
  SandboxOptions options = options_for(SandboxMode::strict);
  options.search_path += ":" + directory / "tool/bin" + "::relative:/none";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("tool/bin/hello") == "hello\n");
  CHECK(run("tool/bin/linked") == "linked\n");
  CHECK(run("cat tool/credentials.toml") == "exit 1");
  CHECK(run("cat tool/settings") == "exit 1");
  CHECK(run("cat other/bin/deep/text") == "exit 1");
  CHECK(run("echo x > tool/lib/text") != "");
}

TEST_CASE("sandbox: a home directory is no prefix of tools") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  const support::EnvironmentGuard home("HOME", directory.path().c_str());
  directory.file("bin/hello", "#!/bin/sh\necho hello\n", 0755);
  directory.file(".local/bin/hi", "#!/bin/sh\necho hi\n", 0755);
  directory.file(".local/lib/text", "text\n");
  directory.file(".local/share/keyrings/secret", "secret\n");
  directory.file("notes", "secret\n");
  SandboxOptions options = options_for(SandboxMode::strict);
  options.search_path += ":" + directory / "bin" + ":" + directory / ".local/bin";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("bin/hello; .local/bin/hi; cat .local/lib/text") == "hello\nhi\ntext\n");
  CHECK(run("cat notes") == "exit 1");
  CHECK(run("cat .local/share/keyrings/secret") == "exit 1");
}

TEST_CASE("sandbox: PATH grants neither a home directory nor a part of the system") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  const support::EnvironmentGuard home("HOME", (directory / "home").c_str());
  directory.file("home/text", "secret\n");
  directory.file("user/.ssh/key", "secret\n");
  SandboxOptions options = options_for(SandboxMode::strict);
  options.search_path +=
      ":/:/etc:/tmp/..:" + directory.path() + ":" + directory / "home" + ":" + directory / "user";
  for (const char* path : {"home/text", "user/.ssh/key"})
    CHECK(output_of(run_in(options, std::string("cat ") + path, directory.path())) == "exit 1");
  CHECK(run_in(options, "ls /; cat /etc/shadow").out == "");
}

TEST_CASE("sandbox: a directory of PATH in a writable grant gets nothing beside") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.directory("work");
  directory.file("outside/bin/text", "secret\n");
  support::make_symlink(directory / "outside/bin", directory / "work/bin");
  SandboxOptions options = options_for(SandboxMode::strict, directory / "work");
  options.search_path += ":" + directory / "work/bin";
  CHECK(output_of(run_in(options, "cat work/bin/text", directory.path())) == "exit 1");
}

TEST_CASE("sandbox: a link in a writable directory decides nothing of what PATH makes readable") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  const std::string hello = "#!/bin/sh\necho hello\n";
  directory.file("away/secret", "secret\n", 0755);
  directory.file("away/program", hello, 0755);
  directory.file("away/tool", hello, 0755);
  directory.file(".aws/tool", hello, 0755);
  directory.directory("work");
  directory.directory("tools");
  support::make_symlink(directory / "away/program", directory / "work/program");
  support::make_symlink(directory / "work/program", directory / "tools/planted");
  support::make_symlink(directory / "away/tool", directory / "tools/tool");
  support::make_symlink(directory / "away/secret", directory / "tools/data");
  support::make_symlink(directory / ".aws/tool", directory / "tools/hidden");
  support::make_symlink(directory / ".aws", directory / "work/bin");
  support::make_symlink(directory / "work", directory / "venv");
  SandboxOptions options = options_for(SandboxMode::strict, directory / "work");
  options.search_path += ":" + directory / "tools" + ":" + directory / "venv/bin";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("tools/tool") == "hello\n");
  CHECK(run("cat away/program") == "exit 1");
  // Nor what another policy may have planted, when it is no program or lies among secrets.
  CHECK(run("cat away/secret") == "exit 1");
  CHECK(run("cat .aws/tool") == "exit 1");
}

TEST_CASE("sandbox: a linked directory of PATH must look like one of tools") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.file("data/text", "secret\n");
  directory.file(".private/bin/text", "secret\n");
  directory.file(".sdkman/java/bin/hello", "#!/bin/sh\necho hello\n", 0755);
  support::make_symlink(directory / "data", directory / "one");
  support::make_symlink(directory / ".private", directory / "two");
  support::make_symlink(directory / ".sdkman/java", directory / "three");
  SandboxOptions options = options_for(SandboxMode::strict);
  if (!is_root("a link that cannot be trusted") && ::access(directory.path().c_str(), W_OK) != 0)
    return;
  options.search_path +=
      ":" + directory / "one" + ":" + directory / "two/bin" + ":" + directory / "three/bin";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("three/bin/hello") == "hello\n");
  CHECK(run("cat data/text") == "exit 1");
  CHECK(run("cat .private/bin/text") == "exit 1");
}

TEST_CASE("sandbox: secrets in the prefix of a directory of PATH, whatever its mode is") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  for (const unsigned mode : {0755U, 0700U}) {
    const std::string tool = "tool" + std::to_string(mode);
    CAPTURE(tool);
    directory.file(tool + "/bin/hello", "#!/bin/sh\necho hello\n", 0755);
    directory.file(tool + "/bin/own", "#!/bin/sh\necho own\n", 0700);
    directory.file(tool + "/data/near/text", "text\n");
    directory.file(tool + "/lib/all/umask", "text\n", 0600);
    for (const char* name : {"/.pgpass", "/id_ecdsa", "/.env.local", "/a/server.key"})
      directory.file(tool + name, "secret\n");
    for (const char* name : {"/a/deep", "/a/b/deeper", "/.git/config", "/settings"})
      directory.file(tool + name, "secret\n", 0600);
    REQUIRE(::chmod((directory / tool).c_str(), mode) == 0);
    SandboxOptions options = options_for(SandboxMode::strict);
    options.search_path += ":" + directory / tool + "/bin";
    const auto run = [&](const std::string& script) {
      return output_of(run_in(options, script, directory / tool));
    };
    CHECK(run("bin/hello; bin/own; cat data/near/text lib/all/umask") ==
          "hello\nown\ntext\ntext\n");
    for (const char* name : {".pgpass", "id_ecdsa", ".env.local", "a/server.key", "a/deep",
                             "a/b/deeper", ".git/config", "settings"}) {
      CAPTURE(name);
      CHECK(run(std::string("cat ") + name) == "exit 1");
    }
  }
}

TEST_CASE("sandbox: a directory that everybody writes to is none of tools") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  for (const unsigned mode : {0757U, 01755U}) {
    const std::string place = "place" + std::to_string(mode);
    directory.file(place + "/text", "secret\n");
    REQUIRE(::chmod((directory / place).c_str(), mode) == 0);
    SandboxOptions options = options_for(SandboxMode::strict);
    options.search_path += ":" + directory / place;
    CHECK(output_of(run_in(options, "cat " + place + "/text", directory.path())) == "exit 1");
  }
}

TEST_CASE("sandbox: shared memory is writable when it was asked for") {
  if (!has_everything("confinement")) return;
  if (!support::exists("/dev/shm")) {
    MESSAGE("SKIPPED: there is no /dev/shm");
    return;
  }
  const std::string file = "/dev/shm/codeexec-test-" + std::to_string(::getpid());
  const std::string script = "echo x > " + file + " && cat " + file + "; rm -f " + file;
  SandboxOptions options = options_for(SandboxMode::strict);
  CHECK(run_in(options, script).out == "");
  options.shared_memory = true;
  CHECK(run_in(options, script).out == "x\n");
}

#else

TEST_CASE("sandbox: the system and its tools") {
  MESSAGE("SKIPPED: there is no sandbox in this build");
}

#endif
