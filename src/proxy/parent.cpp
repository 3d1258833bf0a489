// The proxy that this one goes through, where the world is behind another proxy.
//
//   request of a command      what the parent gets                     function
//   CONNECT, SOCKS5           CONNECT host:port, answered with 2xx     tunnel_request()
//   GET http://host/path      the same again, with the credentials     forwarded()
//   to a name that is direct  nothing                                  serves()
//
// The rules judge names before; the parent resolves them, and no address is judged here then. The
// credentials are the operator's: no command, no record and no error has them.

#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

// The bytes that a part of a URL stands for; a % that begins no byte stays.
std::string from_url(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    const unsigned byte = text[at] == '%' ? read_digits(text, end, 2, 16) : 0;
    const bool is_byte = end == at + 3;
    bytes += is_byte ? static_cast<char>(byte) : text[at];
    at = is_byte ? end : at + 1;
  }
  return bytes;
}

}  // namespace

Expected<ParentProxy> ParentProxy::create(std::string_view url,
                                          const std::vector<std::string>& direct) {
  constexpr std::string_view scheme = "http://";
  constexpr unsigned usual_port = 80;
  ParentProxy parent;
  for (const std::string& entry : direct)
    parent.direct_.push_back(in_lower_case(without_blanks_around(entry)));
  if (url.empty()) return parent;
  // Its text may have a password, so no message has it.
  const Error wrong = make_error(ErrorCode::invalid_argument,
                                 "parent_proxy: it must be http://[USER:PASSWORD@]HOST[:PORT]");
  if (in_lower_case(url.substr(0, scheme.size())) != scheme) return wrong;
  url.remove_prefix(scheme.size());
  url = url.substr(0, url.find('/'));
  const std::size_t at = url.rfind('@');
  if (at != url.npos) {
    const std::string user = from_url(url.substr(0, at));
    parent.authorization_ = concat("Proxy-Authorization: Basic %\r\n",
                                   {to_base64(user.find(':') == user.npos ? user + ":" : user)});
    url.remove_prefix(at + 1);
  }
  parent.address_ = destination_of(url, usual_port);
  if (parent.address_.host.empty()) return wrong;
  return parent;
}

// This host is never behind another proxy. Entries are those of the variable NO_PROXY: a name with
// all below it, an address, either with a port; * is everything.
bool ParentProxy::serves(const Destination& wanted) const {
  if (address_.host.empty() || wanted.host == "localhost" || wanted.host == "::1" ||
      (wanted.literal && starts_with(wanted.host, "127."sv)))
    return false;
  for (const std::string& entry : direct_) {
    if (entry == "*") return false;
    std::string_view name = entry;
    if (starts_with(name, "*."sv)) name.remove_prefix(2);
    if (starts_with(name, "."sv)) name.remove_prefix(1);
    const Destination found = destination_of(name, wanted.port);
    if (found.host.empty() || found.port != wanted.port) continue;
    if (wanted.host == found.host || ends_with(wanted.host, concat(".%", {found.host})))
      return false;
  }
  return true;
}

std::string ParentProxy::tunnel_request(const Destination& wanted) const {
  return concat("CONNECT % HTTP/1.1\r\nHost: %\r\n%\r\n",
                {wanted.text(), wanted.text(), authorization_});
}

// `head` begins with METHOD /path HTTP/1.1.
std::string ParentProxy::forwarded(std::string_view head, const Destination& wanted) const {
  const std::size_t path = head.find(' ') + 1;
  const std::size_t headers = head.find('\n') + 1;
  return concat("%http://%%%%",
                {head.substr(0, path), wanted.text(), head.substr(path, headers - path),
                 authorization_, head.substr(headers)});
}

// RFC 9110, 9.3.6.
const char* ParentProxy::problem_of(std::string_view answer) {
  if (!starts_with(answer, "HTTP/1."sv)) return "the parent proxy does not answer with HTTP/1.1";
  if (answer.substr(8, 2) == " 2") return nullptr;
  if (answer.substr(8, 4) == " 407") return "the parent proxy wants another user or password";
  return "the parent proxy refuses it";
}

#endif

}  // namespace v0_1
}  // namespace codeexec
