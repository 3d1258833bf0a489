// Containers without a network, and the names that they may reach by the proxy of this side.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../proxy/helpers.hpp"
#include "container_helpers.hpp"
#include "exec_helpers.hpp"

using codeexec::Command;
using codeexec::ContainerExecutorOptions;
using codeexec::Result;
using support::Box;
using support::describe;
using support::file_server;
using support::has;
using support::has_images;
using support::images;
using support::PythonServer;
using support::TempDir;
using support::verdicts;
using Strings = std::vector<std::string>;

namespace {

support::Change allow(Strings domains) {
  return [domains](ContainerExecutorOptions& options) { options.allowed_domains = domains; };
}

}  // namespace

TEST_CASE("a container reaches what is listed, and is told of what is not") {
  if (!has_images()) return;
  const TempDir files;
  files.file("hello", "hello there\n");
  const PythonServer server(file_server, files.path());
  const std::string url = "http://" + server.address() + "/hello";
  const Box box(support::debian_image, allow({server.address(), "python"}));
  CHECK(has(box.executor().describe_place(), "through a proxy that variables such as HTTPS_PROXY"));
  CHECK(has(box.executor().describe_place(), server.address() + ", python"));
  Result r = box.run("curl -sS --noproxy '' " + url + " " + url +
                     " && curl -sS --noproxy '' --socks5-hostname ${https_proxy#http://} " + url);
  CHECK_MESSAGE(r.out == "hello there\nhello there\nhello there\n", describe(r));
  CHECK(r.notes.empty());
  CHECK(verdicts(r) == Strings(3, server.address() + " allowed"));
  r = box.run("curl -sS http://example.com/x");
  REQUIRE_MESSAGE(r.notes.size() == 1, describe(r));
  CHECK(r.notes[0] == "example.com:80 is not allowed over the network; the operator allows: " +
                          server.address() + ", python");
  CHECK(verdicts(r) == Strings{"example.com:80 refused"});
  // By no other way.
  r = box.run(Command::program({"python3", "-c",
                                support::tries_directly(server.port()) +
                                    "import os; print(os.environ['CODEEXEC_NETWORK'])"}));
  CHECK_MESSAGE(r.out == "111\n101\nallow\n", describe(r));
  CHECK(r.connections.empty());
}

TEST_CASE("each command of a container has its own connections, in a session, too") {
  if (!has_images()) return;
  const TempDir files;
  files.file("hello", "hello\n");
  const PythonServer server(file_server, files.path());
  const Box box(support::debian_image, allow({server.address()}));
  const std::string get = "curl -sS --noproxy '' http://" + server.address() + "/hello";
  std::vector<codeexec::Execution> running;
  for (int i = 1; i <= 3; ++i) {
    Command command = Command::shell("echo there; read line; for i in $(seq " + std::to_string(i) +
                                     "); do " + get + "; done");
    command.keep_input_open = true;
    running.push_back(box.executor().start(command));
  }
  for (const auto& execution : running) REQUIRE(support::prints_text(execution, "there\n"));
  std::size_t i = 0;
  for (const auto& execution : running) {
    CHECK(execution.write("go\n"));
    const Result r = execution.wait();
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK(verdicts(r) == Strings(++i, server.address() + " allowed"));
  }
  const codeexec::Session session;
  Command command = Command::shell(get + "; export https_proxy");
  command.session = session;
  for (int k = 0; k < 2; ++k) {
    const Result r = box.run(command);
    CHECK_MESSAGE(r.out == "hello\n", describe(r));
    CHECK(verdicts(r) == Strings{server.address() + " allowed"});
  }
}

TEST_CASE("programs in a container ask the proxy by the variables that they are given") {
  if (!has_images()) return;
  const Box box(support::debian_image, allow({"allowed.invalid"}));
  const std::pair<const char*, const char*> rows[] = {
      {"curl -sS https://curl.invalid/", "curl.invalid:443 refused"},
      {"git ls-remote https://git.invalid/x.git", "git.invalid:443 refused"},
      {"pip download --disable-pip-version-check --retries 0 -i https://pip.invalid/ x",
       "pip.invalid:443 refused"},
      {"python3 -c 'import urllib.request as u; u.urlopen(\"http://py.invalid/\")'",
       "py.invalid:80 refused"}};
  for (const auto& row : rows) {
    CAPTURE(row.first);
    const Result r = box.run(row.first);
    CHECK_FALSE(r.succeeded());
    CHECK_MESSAGE(support::contains(verdicts(r), row.second), describe(r));
  }
}

TEST_CASE("a container with a network of its own has no allowed names") {
  if (!has_images()) return;
  const TempDir workspace;
  ContainerExecutorOptions options;
  options.workspace = workspace.path();
  options.allowed_domains = {"python"};
  options.container.network = codeexec::ContainerNetwork::bridge;
  const auto made = codeexec::ContainerExecutor::create(options);
  REQUIRE(!made);
  CHECK(made.error().code == codeexec::ErrorCode::invalid_argument);
  CHECK(has(made.error().message, "allowed_domains: the container has the network bridge"));
  options.container.network = codeexec::ContainerNetwork::none;
  options.allowed_domains = {"pyton"};
  CHECK(has(codeexec::ContainerExecutor::create(options).error().message, "'pyton' is no "));
}
