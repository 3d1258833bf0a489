// What a client of the proxy asks for has one meaning, however it is written.
//                                                          sh tests/fuzz/run.sh [seconds] proxy
//   An input is a name up to a byte 0xff, then the beginning of a connection.
#include "fuzz.hpp"

#include "proxy/proxy_internal.hpp"

namespace {

using codeexec::Destination;
using codeexec::ProxyRequest;

// What is read as a destination is read again as the same one, and has no other spelling.
void expect_canonical(const Destination& found) {
  if (found.host.empty()) return;
  const std::string text = found.text();
  EXPECT_WITH(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.:[]") == text.npos,
              text);
  EXPECT_WITH(found.port > 0 && found.port < 65536, text);
  const Destination again = codeexec::destination_of(text);
  EXPECT_WITH(again.host == found.host && again.port == found.port, text);
  EXPECT_WITH(again.literal == found.literal, text);
}

// A server can read this head in one way only.
void expect_plain(std::string_view head) {
  EXPECT_WITH(head.size() >= 4 && head.substr(head.size() - 4) == "\r\n\r\n", head);
  EXPECT_WITH(head.find("\r\n\r\n") == head.size() - 4, head);
  std::size_t hosts = 0;
  for (std::size_t at = 0; at < head.size();) {
    const std::size_t end = head.find('\n', at);
    EXPECT_WITH(end != head.npos && end > at && head[end - 1] == '\r', head);
    const std::string_view line = head.substr(at, end - 1 - at);
    EXPECT_WITH(line.find_first_of(std::string_view("\r\0", 2)) == line.npos, head);
    std::string name(line.substr(0, line.find(':')));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (at > 0 && name == "host") ++hosts;
    EXPECT_WITH(name != "transfer-encoding", head);
    at = end + 1;
  }
  EXPECT_WITH(hosts == 1, head);
}

}  // namespace

void fuzz::proxy(std::string_view input) {
  Bytes bytes(input);
  const std::string_view name = bytes.part();
  expect_canonical(codeexec::destination_of(name));
  expect_canonical(codeexec::destination_of(name, 80));
  const auto rules = codeexec::DomainRules::create({std::string(name)});
  // No rule is for more than what is written in it.
  if (rules)
    EXPECT_WITH(!rules->allow(codeexec::destination_of("a.b.c.d.nowhere:4711")) ||
                    name.find("4711") != name.npos,
                name);
  const std::string_view asked = bytes.rest().substr(0, codeexec::longest_head);
  const ProxyRequest request = codeexec::read_proxy_request(asked, 0);
  if (request.state == ProxyRequest::bad) EXPECT(request.problem[0] != '\0');
  if (request.state != ProxyRequest::ready) return;
  EXPECT_WITH(!request.wanted.host.empty() && request.taken <= asked.size(), asked);
  expect_canonical(request.wanted);
  EXPECT_WITH(request.tunnel == request.head.empty(), asked);
  if (!request.tunnel) expect_plain(request.head);
  // It was all that was needed, and nothing less is enough.
  for (std::size_t size = request.taken; size + 2 > request.taken; --size) {
    const ProxyRequest part = codeexec::read_proxy_request(asked.substr(0, size), 0);
    EXPECT_WITH((part.state == ProxyRequest::ready) == (size == request.taken), asked);
    if (size == 0) break;
  }
}
