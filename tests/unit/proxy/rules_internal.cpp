// Names, ports, addresses and requests: what is read how, and what is refused.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <sys/resource.h>

#include <cstring>
#include <string>

#include "../../../src/proxy/proxy_internal.hpp"
#include "../../helpers/support.hpp"

#if defined(__linux__)

using codeexec::destination_of;
using codeexec::DomainRules;
using codeexec::ErrorCode;
using codeexec::ParentProxy;
using codeexec::ProxyRequest;
using codeexec::read_proxy_request;
using codeexec::SocketAddress;
using support::begins;
using support::has;
using support::repeat;
using namespace std::string_literals;

namespace {

// "host:port", or "-" for what is no destination.
std::string read_as(const std::string& text, unsigned usual_port = 0) {
  const auto found = destination_of(text, usual_port);
  return found.host.empty() ? "-" : found.text();
}

DomainRules rules_of(const std::vector<std::string>& given) {
  auto rules = DomainRules::create(given);
  REQUIRE_MESSAGE(rules, rules.error().message);
  return *std::move(rules);
}

bool allows(const DomainRules& rules, const std::string& destination) {
  const auto wanted = destination_of(destination);
  return !wanted.host.empty() && rules.allow(wanted);
}

SocketAddress address_of(const std::string& text) {
  SocketAddress address = {};
  address.any.sa_family = AF_INET;
  if (::inet_pton(AF_INET, text.c_str(), &address.v4.sin_addr) == 1) return address;
  address.any.sa_family = AF_INET6;
  REQUIRE_MESSAGE(::inet_pton(AF_INET6, text.c_str(), &address.v6.sin6_addr) == 1, text);
  return address;
}

ProxyRequest read(const std::string& input) { return read_proxy_request(input, 0); }

// The reason why a request is refused; empty: it is not.
std::string problem_of(const std::string& input) {
  const ProxyRequest request = read(input);
  return request.state == ProxyRequest::bad ? request.problem : std::string();
}

}  // namespace

TEST_CASE("a destination has one spelling, and other spellings are refused") {
  struct Row {
    const char* given;
    const char* read;
  };
  const Row rows[] = {
      {"example.org:443", "example.org:443"},
      {"EXAMPLE.Org:443", "example.org:443"},
      {"example.org.:443", "example.org:443"},
      {"xn--bcher-kva.example:1", "xn--bcher-kva.example:1"},
      {"_dmarc.example.org:80", "_dmarc.example.org:80"},
      {"a-b.example.org:65535", "a-b.example.org:65535"},
      {"127.0.0.1:80", "127.0.0.1:80"},
      {"[::1]:80", "[::1]:80"},
      {"[0:0:0:0:0:0:0:1]:80", "[::1]:80"},
      {"[2001:DB8::1]:443", "[2001:db8::1]:443"},
      {"localhost:22", "localhost:22"},
      // Without a port, or with a bad one.
      {"example.org", "-"},
      {"example.org:", "-"},
      {"example.org:0", "-"},
      {"example.org:65536", "-"},
      {"example.org:080000", "-"},
      {"example.org:+80", "-"},
      {"example.org:80 ", "-"},
      {"example.org:80:80", "-"},
      {"[::1]", "-"},
      {"[::1]80", "-"},
      {"[::1", "-"},
      {"::1:80", "-"},
      // Odd names.
      {"", "-"},
      {":80", "-"},
      {".:80", "-"},
      {"..:80", "-"},
      {".example.org:80", "-"},
      {"example..org:80", "-"},
      {"example.org..:80", "-"},
      {"user@example.org:80", "-"},
      {"example.org/x:80", "-"},
      {"exa mple.org:80", "-"},
      {"ex\xc3\xa4mple.org:80", "-"},
      {"example\xef\xbc\x8eorg:80", "-"},
      {"*.example.org:80", "-"},
      {"example.org%00.net:80", "-"},
      // Addresses that the C library reads, and people do not.
      {"2130706433:80", "-"},
      {"0x7f000001:80", "-"},
      {"0x7f.1:80", "-"},
      {"0177.0.0.1:80", "-"},
      {"127.1:80", "-"},
      {"127.0.0.01:80", "-"},
      {"127.0.0.1.:80", "127.0.0.1:80"},
      {"1.2.3.4.5:80", "-"},
      {"256.1.1.1:80", "-"},
      {"example.0x1:80", "-"},
      {"[127.0.0.1]:80", "-"},
      {"[fe80::1%eth0]:80", "-"},
      {"[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80"},
  };
  for (const Row& row : rows) CHECK_MESSAGE(read_as(row.given) == row.read, row.given);
  CHECK(read_as("example.org", 80) == "example.org:80");
  CHECK(read_as("exam\0ple.org:80"s) == "-");
  CHECK(read_as(repeat("a.", 126) + "a:80") != "-");
  CHECK(read_as(repeat("a.", 127) + "a:80") == "-");
  CHECK(read_as(repeat("a", 63) + ".org:80") != "-");
  CHECK(read_as(repeat("a", 64) + ".org:80") == "-");
}

TEST_CASE("rules allow a name, names below one, a port, an address, a set") {
  const DomainRules rules =
      rules_of({"example.org", "*.Example.net.", "github.com:22", "10.1.2.3:8080", "python",
                "[fd00::1]:80", "*.example.com:8443"});
  for (const char* allowed :
       {"example.org:443", "example.org:80", "a.example.net:443", "a.b.example.net:80",
        "github.com:22", "10.1.2.3:8080", "pypi.org:443", "files.pythonhosted.org:443",
        "[fd00:0::1]:80", "x.example.com:8443"})
    CHECK_MESSAGE(allows(rules, allowed), allowed);
  for (const char* refused :
       {"example.org:22", "a.example.org:443", "notexample.org:443", "example.net:443",
        "notexample.net:443", "example.net.evil.com:443", "github.com:443", "10.1.2.3:80",
        "10.1.2.4:8080", "[fd00::2]:80", "registry.npmjs.org:443", "x.example.com:443",
        "example.org.evil.com:443", "fd00::1:80"})
    CHECK_MESSAGE(!allows(rules, refused), refused);
  CHECK(rules.text() ==
        "example.org, *.Example.net., github.com:22, 10.1.2.3:8080, python, [fd00::1]:80, "
        "*.example.com:8443");
}

TEST_CASE("what is denied is denied on any port, and for a reason") {
  const auto rules =
      DomainRules::create({"*.example.org", "10.1.2.3:8080", "python", "other.org:22"},
                          {"bad.Example.org=it is down = use good.example.org", "*.x.example.org",
                           "other.org:443", "python=use the mirror", "10.1.2.3", "93.184.216.34"});
  REQUIRE(rules);
  const auto reason = [&](const char* text) {
    const std::string* const found = rules->denial(destination_of(text));
    return found ? *found : std::string("-");
  };
  CHECK(reason("bad.example.org:443") == "it is down = use good.example.org");
  CHECK(reason("bad.example.org:8443") == "it is down = use good.example.org");
  CHECK(reason("a.x.example.org:80") == "the operator denies it");
  CHECK(reason("pypi.org:443") == "use the mirror");
  CHECK(reason("other.org:443") == "the operator denies it");
  for (const char* other : {"a.bad.example.org:443", "x.example.org:443", "notbad.example.org:443",
                            "other.org:22", "example.org:443"})
    CHECK_MESSAGE(reason(other) == "-", other);
  CHECK_FALSE(rules->allow_address(address_of("10.1.2.3"), 8080));
  CHECK_FALSE(rules->allow_address(address_of("93.184.216.34"), 443));
  CHECK(rules->allow_address(address_of("93.184.216.35"), 443));
  for (const char* wrong : {"", "=reason", "pyton", "*", "https://example.org", "a=b=c"}) {
    const auto made = DomainRules::create({"example.org"}, {wrong});
    REQUIRE_MESSAGE(!made, wrong);
    CHECK(begins(made.error().message, "denied_domains: '"));
  }
}

TEST_CASE("a parent proxy serves what is not direct, and is given its credentials alone") {
  const auto parent = ParentProxy::create(
      "http://user%40x:p%3Aw%zz@Proxy.example.org:3128/",
      {" .corp.example ", "*.dev.example", "host.example:8080", "10.1.2.3", "intra"});
  REQUIRE(parent);
  CHECK(parent->address().text() == "proxy.example.org:3128");
  const auto serves = [&](const char* text) { return parent->serves(destination_of(text)); };
  for (const char* direct :
       {"a.corp.example:443", "corp.example:443", "b.dev.example:80", "host.example:8080",
        "10.1.2.3:443", "localhost:80", "127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "intra:80"})
    CHECK_MESSAGE(!serves(direct), direct);
  for (const char* other : {"example.org:443", "acorp.example:443", "host.example:80",
                            "10.1.2.4:443", "127.example.org:80", "intra.example:80"})
    CHECK_MESSAGE(serves(other), other);
  // printf '%s' 'user@x:p:w%zz' | base64
  const std::string line = "Proxy-Authorization: Basic dXNlckB4OnA6dyV6eg==\r\n";
  CHECK(parent->tunnel_request(destination_of("a.org:443")) ==
        "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:443\r\n" + line + "\r\n");
  CHECK(parent->forwarded("GET /x HTTP/1.1\r\nHost: a.org\r\n\r\n", destination_of("a.org:80")) ==
        "GET http://a.org:80/x HTTP/1.1\r\n" + line + "Host: a.org\r\n\r\n");
  for (const char* wrong : {"https://p:1", "p:3128", "socks5://p:1", "http://", "http://p:0",
                            "http://user:secret@", "http://a b:1"}) {
    const auto made = ParentProxy::create(wrong, {});
    REQUIRE_MESSAGE(!made, wrong);
    CHECK(made.error().message == "parent_proxy: it must be http://[USER:PASSWORD@]HOST[:PORT]");
  }
  CHECK_FALSE(ParentProxy::create("", {})->serves(destination_of("example.org:443")));
  CHECK_FALSE(ParentProxy::create("http://p", {"*"})->serves(destination_of("example.org:443")));
}

TEST_CASE("each set has hosts, and a rule that is none is an error") {
  std::string_view sets = codeexec::domain_sets();
  for (const char* set : {"python", "node", "rust", "go", "debian"}) {
    CHECK(has("\n" + std::string(sets), "\n" + std::string(set) + " "));
    CHECK(DomainRules::create({set}));
  }
  for (const char* wrong :
       {"", "pyton", "*", "*.", "*.*.org", "exa mple.org", "https://example.org", "example.org/",
        "user@example.org", "example.org:0", "example.org:http", "*.1.2.3.4", "127.1", "[::1",
        "::1", "a..b", "ex\xc3\xa4mple.org"}) {
    const auto made = DomainRules::create({"example.org", wrong});
    REQUIRE_MESSAGE(!made, wrong);
    CHECK(made.error().code == ErrorCode::invalid_argument);
    CHECK(begins(made.error().message, "allowed_domains: '" + std::string(wrong) + "' is no "));
  }
}

TEST_CASE("only addresses of the internet are public") {
  for (const char* open :
       {"8.8.8.8", "198.51.100.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1",
        "169.253.1.1", "192.169.0.1", "198.17.0.1", "223.255.255.255", "2606:4700::1111",
        "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"})
    CHECK_MESSAGE(codeexec::is_public_address(address_of(open)), open);
  for (const char* closed : {"0.0.0.0",
                             "0.1.2.3",
                             "10.0.0.1",
                             "100.64.0.1",
                             "100.127.255.255",
                             "127.0.0.1",
                             "127.255.0.1",
                             "169.254.169.254",
                             "172.16.0.1",
                             "172.31.255.255",
                             "192.0.0.192",
                             "192.88.99.1",
                             "192.168.1.1",
                             "198.18.0.1",
                             "198.19.255.255",
                             "224.0.0.1",
                             "239.255.255.250",
                             "240.0.0.1",
                             "255.255.255.255",
                             "168.63.129.16",
                             "::",
                             "::1",
                             "::127.0.0.1",
                             "fe80::1",
                             "fec0::1",
                             "fc00::1",
                             "fd00:ec2::254",
                             "ff02::1",
                             "::ffff:10.0.0.1",
                             "::ffff:127.0.0.1",
                             "64:ff9b::a00:1",
                             "64:ff9b:1::1",
                             "2002:a00:1::1",
                             "2002:7f00:1::",
                             "2001::1",
                             "2001:1ff::1",
                             "100::1",
                             "4000::1"})
    CHECK_MESSAGE(!codeexec::is_public_address(address_of(closed)), closed);
}

TEST_CASE("without a descriptor to look with, no address is known to be another host's") {
  REQUIRE(codeexec::is_public_address(address_of("8.8.8.8")));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool is_public = codeexec::is_public_address(address_of("8.8.8.8"));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(!is_public);
}

TEST_CASE("a literal that is listed is an address that a name may have") {
  const DomainRules rules = rules_of({"intern.example:80", "10.0.0.1:80", "[fd00::1]:80"});
  CHECK(rules.allow_address(address_of("10.0.0.1"), 80));
  CHECK(rules.allow_address(address_of("fd00::1"), 80));
  CHECK(!rules.allow_address(address_of("10.0.0.1"), 81));
  CHECK(!rules.allow_address(address_of("10.0.0.2"), 80));
  CHECK(!rules.allow_address(address_of("::ffff:10.0.0.1"), 80));
}

TEST_CASE("a request of HTTP is rewritten for its server") {
  const ProxyRequest request = read(
      "GET http://Example.org./a?b=c HTTP/1.1\r\nHost: example.ORG\r\nX: 1\r\n"
      "Proxy-Connection: keep-alive\r\nproxy-authorization: Basic eA==\r\nConnection: "
      "keep-alive\r\n\r\nGET http://evil.com/ HTTP/1.1\r\n\r\n");
  REQUIRE(request.state == ProxyRequest::ready);
  CHECK(request.wanted.text() == "example.org:80");
  CHECK(request.head ==
        "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nX: 1\r\nConnection: "
        "close\r\n\r\n");
  CHECK(request.body == 0);
  CHECK(!request.tunnel);
  const ProxyRequest posted =
      read("POST http://[2001:db8::1]:81 HTTP/1.0\r\nContent-Length: 12\r\n\r\nhello world.more");
  REQUIRE(posted.state == ProxyRequest::ready);
  CHECK(posted.head ==
        "POST / HTTP/1.1\r\nHost: [2001:db8::1]:81\r\nContent-Length: 12\r\n"
        "Connection: close\r\n\r\n");
  CHECK(posted.body == 12);
  const ProxyRequest query = read("GET http://example.org?x HTTP/1.1\r\n\r\n");
  CHECK(begins(query.head, "GET /?x HTTP/1.1\r\nHost: example.org\r\n"));
}

TEST_CASE("a CONNECT is a tunnel, and what follows its head goes through it") {
  const std::string head = "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n";
  const ProxyRequest request = read(head + "\x16\x03");
  REQUIRE(request.state == ProxyRequest::ready);
  CHECK(request.wanted.text() == "example.org:443");
  CHECK(request.tunnel);
  CHECK(request.taken == head.size());
  CHECK(request.head.empty());
}

TEST_CASE("a head that could be read in two ways is refused") {
  const std::string line = "GET http://example.org/ HTTP/1.1\r\n";
  struct Row {
    std::string input;
    const char* problem;
  };
  const Row rows[] = {
      {line + "Host: example.org\r\nHost: example.org\r\n\r\n", "two Host"},
      {line + "Host: evil.com\r\n\r\n", "another one"},
      {line + "Host: example.org:81\r\n\r\n", "another one"},
      {line + "Host:\r\n\r\n", "another one"},
      {line + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding"},
      {line + "Transfer-Encoding: identity\r\n\r\n", "Transfer-Encoding"},
      {line + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", "two Content-Length"},
      {line + "Content-Length: +1\r\n\r\n", "no number"},
      {line + "Content-Length: 1, 1\r\n\r\n", "no number"},
      {line + "Content-Length: 99999999999999999999\r\n\r\n", "no number"},
      {line + "Content-Length:\r\n\r\n", "no number"},
      {line + "X: a\r\n folded: b\r\n\r\n", "folded"},
      {line + " X: a\r\n\r\n", "folded"},
      {line + "Host : example.org\r\n\r\n", "no name"},
      {line + "no colon\r\n\r\n", "no name"},
      {line + ": x\r\n\r\n", "no name"},
      {line + "X: a\0b\r\n\r\n"s, "control"},
      {line + "X: a\rb\r\n\r\n", "CR and LF"},
      {line + "X: a\nY: b\r\n\r\n", "CR and LF"},
      {"GET http://example.org/ HTTP/1.1\nHost: x\r\n\r\n", "CR and LF"},
      {"GET  http://example.org/ HTTP/1.1\r\n\r\n", "first line"},
      {"GET http://example.org/ HTTP/1.1 \r\n\r\n", "first line"},
      {"GET http://example.org/ HTTP/2.0\r\n\r\n", "first line"},
      {"GET http://example.org/\r\n\r\n", "first line"},
      {"GET http://example.org/a\x80 HTTP/1.1\r\n\r\n", "first line"},
      {"GET http://example.org/#x HTTP/1.1\r\n\r\n", "first line"},
      {"G@T http://example.org/ HTTP/1.1\r\n\r\n", "first line"},
      {"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "this is a proxy"},
      {"GET https://example.org/ HTTP/1.1\r\n\r\n", "this is a proxy"},
      {"GET ftp://example.org/ HTTP/1.1\r\n\r\n", "this is a proxy"},
      {"GET http://user:pw@example.org/ HTTP/1.1\r\n\r\n", "names no host"},
      {"GET http:///x HTTP/1.1\r\n\r\n", "names no host"},
      {"GET http://0x7f.1/ HTTP/1.1\r\n\r\n", "names no host"},
      {"CONNECT example.org HTTP/1.1\r\n\r\n", "names no host"},
      {"CONNECT http://example.org/ HTTP/1.1\r\n\r\n", "names no host"},
      {"CONNECT example.org:443 HTTP/1.1\r\n X: y\r\n\r\n", "folded"},
      {"\r\n\r\n", "neither"},
      {"\x16\x03\x01\x02", "neither"},
      {"\x04\x01\x00\x50\x01\x02\x03\x04\x00"s, "neither"},
      {"SSH-2.0-x\r\n\r\n", "first line"},
      {std::string(codeexec::longest_head, 'A'), "16 KiB"},
  };
  for (const Row& row : rows)
    CHECK_MESSAGE(has(problem_of(row.input), row.problem), row.input.substr(0, 80));
  CHECK(read("").state == ProxyRequest::incomplete);
  CHECK(read(line + "X: y\r\n").state == ProxyRequest::incomplete);
  CHECK(read(std::string(codeexec::longest_head - 1, 'A')).state == ProxyRequest::incomplete);
}

TEST_CASE("SOCKS5 names a host, and nothing else of it is there") {
  const std::string greeting = "\x05\x01\x00"s;
  const auto named = [](const std::string& name, const std::string& command = "\x05\x01\x00\x03"s) {
    return command + static_cast<char>(name.size()) + name + "\x01\xbb"s;
  };
  CHECK(read("\x05").state == ProxyRequest::incomplete);
  CHECK(read(greeting.substr(0, 2)).state == ProxyRequest::incomplete);
  CHECK(read(greeting).state == ProxyRequest::greeting);
  const std::string whole = greeting + named("Example.org");
  for (std::size_t size = 3; size < whole.size(); ++size)
    CHECK(read(whole.substr(0, size)).state == ProxyRequest::greeting);
  const ProxyRequest request = read(whole + "more");
  REQUIRE(request.state == ProxyRequest::ready);
  CHECK(request.wanted.text() == "example.org:443");
  CHECK(request.taken == whole.size());
  CHECK(read(greeting + "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"s).wanted.text() ==
        "127.0.0.1:80");
  const std::string v6 = "\x05\x01\x00\x04"s + std::string(15, '\0') + "\x01\x00\x50"s;
  CHECK(read(greeting + v6).wanted.text() == "[::1]:80");
  CHECK(read(greeting + v6).wanted.literal);
  for (const std::string& bad :
       {"\x05\x01\x02"s, "\x05\x00"s, greeting + named("example.org", "\x05\x02\x00\x03"s),
        greeting + named("example.org", "\x05\x03\x00\x03"s),
        greeting + named("example.org", "\x04\x01\x00\x03"s),
        greeting + named("example.org", "\x05\x01\x01\x03"s),
        greeting + named("example.org", "\x05\x01\x00\x02"s), greeting + named("example.org:80"),
        greeting + named(""), greeting + named("a\0b"s), greeting + named("127.1"),
        greeting + "\x05\x01\x00\x03\x01x\x00\x00"s})
    CHECK_MESSAGE(begins(problem_of(bad), "SOCKS: "), bad);
}

#else

TEST_CASE("proxy: rules") { MESSAGE("SKIPPED: there is a proxy on Linux only"); }

#endif
