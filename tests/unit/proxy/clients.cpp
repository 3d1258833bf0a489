// Programs that agents use, through the proxy.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "../../helpers/wire.hpp"
#include "helpers.hpp"

using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Result;
using support::allowing;
using support::contains;
using support::describe;
using support::file_server;
using support::has;
using support::has_program;
using support::has_proxy;
using support::make;
using support::PythonServer;
using support::TempDir;
using support::verdicts;
using Strings = std::vector<std::string>;

#if defined(__linux__)

TEST_CASE("programs ask the proxy by the variables that they are given") {
  if (!has_proxy()) return;
  const TempDir place;
  // Each asks for a name that is not allowed, so that none needs a network here.
  const LocalExecutor executor = make(allowing(place, {"allowed.invalid"}));
  struct Row {
    const char* program;
    const char* script;
    const char* asked;
  };
  const Row rows[] = {
      {"curl", "curl -sS https://curl.invalid/", "curl.invalid:443 refused"},
      {"curl", "curl -sS http://curl.invalid/; false", "curl.invalid:80 refused"},
      {"wget", "wget -q -t 1 http://wget.invalid/", "wget.invalid:80 refused"},
      {"git", "git ls-remote https://git.invalid/x.git", "git.invalid:443 refused"},
      {"pip", "pip download --disable-pip-version-check --retries 0 -i https://pip.invalid/ x",
       "pip.invalid:443 refused"},
      {"npm", "npm view x --registry=https://npm.invalid/ --fetch-retries=0",
       "npm.invalid:443 refused"},
      {"go",
       "printf 'module x\\ngo 1.20\\n' > go.mod; GOFLAGS=-mod=mod GOSUMDB=off "
       "GOPATH=$PWD/go GOCACHE=$PWD/cache GOPROXY=https://go.invalid go get a.example/b@v1.0.0",
       "go.invalid:443 refused"},
      {"cargo",
       "mkdir -p crate/src; cd crate; touch src/lib.rs; printf '[package]\\nname=\"c\"\\n"
       "version=\"0.1.0\"\\n[dependencies]\\nx={version=\"1\",registry=\"r\"}\\n' > "
       "Cargo.toml; CARGO_HOME=$PWD CARGO_NET_RETRY=0 "
       "CARGO_REGISTRIES_R_INDEX=sparse+https://cargo.invalid/ cargo fetch",
       "cargo.invalid:443 refused"},
      {"python3", "python3 -c 'import urllib.request as u; u.urlopen(\"https://py.invalid/\")'",
       "py.invalid:443 refused"},
  };
  for (const Row& row : rows) {
    if (!has_program(row.program)) continue;
    const Result r = executor.run(row.script);
    CHECK_MESSAGE(contains(verdicts(r), row.asked), row.script << ": " << describe(r));
    CHECK(!r.succeeded());
    CHECK_MESSAGE(has(describe(r), "not allowed over the network; the operator allows: allowed."),
                  describe(r));
  }
}

TEST_CASE("packages and repositories come through the proxy") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const TempDir files;
  const PythonServer server(file_server, files.path());
  LocalOptions options = allowing(place, {server.address()});
  // The server is on this host, which NO_PROXY would have programs look for in their own network.
  options.environment.set = {{"NO_PROXY", ""}, {"no_proxy", ""}};
  const LocalExecutor executor = make(options);
  const std::string url = "http://" + server.address();
  if (has_program("pip")) {
    files.file("simple/demo/index.html", "<a href='demo-1.0-py3-none-any.whl'>d</a>");
    const Result made = codeexec::run(
        "cd " + files.path() +
        "/simple/demo && python3 -c \"import zipfile as z\n"
        "w = z.ZipFile('demo-1.0-py3-none-any.whl', 'w'); w.writestr('demo.py', '')\n"
        "d = 'demo-1.0.dist-info/'; w.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: "
        "demo\\nVersion: 1.0\\n')\nw.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nTag: "
        "py3-none-any\\n'); w.writestr(d + 'RECORD', '')\"");
    REQUIRE_MESSAGE(made.succeeded(), describe(made));
    const Result r = executor.run("pip download --disable-pip-version-check -q --no-deps -i " +
                                  url + "/simple demo && ls demo*");
    CHECK_MESSAGE(has(r.out, "demo-1.0-py3-none-any.whl\n"), describe(r));
    CHECK(r.notes.empty());
  }
  if (has_program("npm")) {
    files.file("demo",
               "{\"name\":\"demo\",\"dist-tags\":{\"latest\":\"1.2.3\"},\"versions\":{"
               "\"1.2.3\":{\"name\":\"demo\",\"version\":\"1.2.3\"}}}");
    const Result r = executor.run("npm view demo version --registry=" + url + "/");
    CHECK_MESSAGE(r.out == "1.2.3\n", describe(r));
  }
  if (has_program("git")) {
    const Result made =
        codeexec::run("cd " + files.path() +
                      " && git init -q r && cd r && git -c user.name=n -c user.email=e "
                      "commit -q --allow-empty -m first && git update-server-info");
    REQUIRE_MESSAGE(made.succeeded(), describe(made));
    const Result r =
        executor.run("git clone -q " + url + "/r/.git copy && git -C copy log --format=%s");
    CHECK_MESSAGE(r.out == "first\n", describe(r));
  }
  CHECK(has(server.log(), "GET "));
}

// Run by the next case in a network with a server on 198.51.100.1, with its names in /etc/hosts.
TEST_CASE("proxy: (helper) reaches names" * doctest::skip()) {
  const TempDir place;
  const LocalExecutor executor = make(
      allowing(place, {"site.test", "*.deep.test", "trap.test", "both.test:8080", "ssh.test:22"}));
  Result r = executor.run("curl -sS http://site.test/hello http://A.b.DEEP.test./hello");
  CHECK_MESSAGE(r.out == "hello\nhello\n", describe(r));
  CHECK(verdicts(r) == Strings{"site.test:80 allowed", "a.b.deep.test:80 allowed"});
  // A private address beside one that is public is passed over.
  r = executor.run("curl -sS http://both.test:8080/hello");
  CHECK_MESSAGE(r.out == "hello\n", describe(r));
  for (const char* name : {"trap.test", "own.deep.test", "meta.deep.test", "mapped.deep.test"}) {
    r = executor.run("curl -sS http://" + std::string(name) + "/hello");
    CHECK_MESSAGE(has(r.out, std::string(name) + ":80 is not allowed: its address "), describe(r));
  }
  for (const char* address :
       {"198.51.100.1", "3325256705", "0306.063.0144.1", "[::ffff:198.51.100.1]"}) {
    r = executor.run("curl -sS -p --connect-timeout 5 http://" + std::string(address) + "/hello");
    CHECK_MESSAGE(!r.succeeded(), describe(r));
    CHECK(!has(r.out, "hello"));
  }
  MESSAGE("HELPER DONE");
}

TEST_CASE("names with addresses of the internet are reached, and names that lead elsewhere not") {
  if (!has_proxy() || !has_program("curl") || !has_program("python3") || !has_program("nsenter"))
    return;
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: needs root, for a network of the test's own");
    return;
  }
  const support::Wire wire;
  if (!wire.problem().empty() || !has_program("ip")) {
    MESSAGE("SKIPPED: " << wire.problem());
    return;
  }
  const auto at = [&wire](int end, const std::string& script) {
    std::string line;
    for (const std::string& word : wire.at(end)) line += word + " ";
    return ::system((line + "sh -c '" + script + "'").c_str()) == 0;
  };
  REQUIRE(at(1, "ip addr add 198.51.100.1/32 dev lo"));
  REQUIRE(at(0, "ip route add 198.51.100.1 via 10.97.0.2 && ip addr add 198.51.100.2/32 dev lo"));
  const TempDir files;
  files.file("hello", "hello\n");
  const std::string serve =
      "import http.server, threading\n"
      "h = http.server.SimpleHTTPRequestHandler\n"
      "for p in 80, 8080: threading.Thread(target=http.server.ThreadingHTTPServer(('', p), h)"
      ".serve_forever).start()\n"
      "print(80)\n";
  const PythonServer far(serve, files.path(), wire.at(1));
  const PythonServer near(serve, files.path(), wire.at(0));
  const std::string hosts = files.file(
      "hosts",
      "198.51.100.1 site.test a.b.deep.test\n10.97.0.2 both.test\n198.51.100.1 both.test\n"
      "10.97.0.2 trap.test\n198.51.100.2 own.deep.test\n169.254.169.254 meta.deep.test\n"
      "::ffff:10.97.0.2 mapped.deep.test\n");
  codeexec::ProcessOptions options;
  options.argv = wire.at(0);
  const std::string self = support::real_path("/proc/self/exe");
  for (const std::string& word :
       {std::string("unshare"), std::string("-m"), std::string("sh"), std::string("-c"),
        "mount --bind " + hosts + " /etc/hosts && exec " + self +
            " --no-skip -tc='proxy: (helper) reaches names'"})
    options.argv.push_back(word);
  options.environment = {std::string("PATH=") + std::getenv("PATH"), "HOME=/tmp"};
  const codeexec::ProcessResult r = codeexec::run_process(options);
  CHECK_MESSAGE(r.succeeded(), r.out << r.err);
  CHECK_MESSAGE(has(r.out + r.err, "HELPER DONE"), r.out << r.err);
}

#else

TEST_CASE("proxy: clients") { MESSAGE("SKIPPED: there is a proxy on Linux only"); }

#endif
