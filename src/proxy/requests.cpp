// What a client asks the proxy for: HTTP and SOCKS5.
//
// One request for each connection. A head of HTTP that two programs could read in different ways is
// refused: the request goes to the host of its URI, and the server sees that name and no other.
//
//   first byte  then                                        state        function
//   5           fewer methods than announced                incomplete   read_socks_request()
//   5           methods, and no request yet                 greeting     read_socks_request()
//   5           methods and a request                       ready, bad   read_socks_request()
//   a letter    no empty line within 16 KiB                 bad          read_proxy_request()
//   a letter    no empty line yet                           incomplete   read_proxy_request()
//   a letter    a head up to the empty line                 ready, bad   read_http_request()
//   other       -                                           bad          read_proxy_request()

#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

// The problem is read by the client, and recorded.
ProxyRequest bad_request(ProxyRequest::Protocol protocol, const char* problem) {
  ProxyRequest request;
  request.state = ProxyRequest::bad;
  request.protocol = protocol;
  request.problem = problem;
  return request;
}

// RFC 9110, 5.6.2.
bool is_token_char(char c) {
  return is_letter(c) || is_digit(c) || (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c));
}
bool is_token(std::string_view text) { return !text.empty() && all_are(text, is_token_char); }

bool is_uri_char(char c) { return c > ' ' && c < '\x7f' && c != '#'; }
bool is_value_char(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
}

// Reads one header of a request that is forwarded. Returns what is wrong with it, or null.
const char* take_header(std::string_view line, ProxyRequest& request, bool& has_host,
                        bool& has_length) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string name = in_lower_case(line.substr(0, colon));
  if (colon == line.size() || !is_token(name)) return "a header has no name, or is folded";
  const std::string_view value = without_blanks_around(line.substr(colon + 1));
  if (!all_are(value, is_value_char)) return "a header has a control character";
  if (request.tunnel) return nullptr;
  if (name == "host") {
    if (std::exchange(has_host, true)) return "there are two Host headers";
    const Destination host = destination_of(value, 80);
    if (host.host != request.wanted.host || host.port != request.wanted.port)
      return "the Host header is another one than that of the URI";
    return nullptr;
  }
  if (name == "transfer-encoding")
    return "Transfer-Encoding is not supported by this proxy: send a Content-Length";
  if (name == "content-length") {
    constexpr std::size_t most_length_digits = 18;
    if (std::exchange(has_length, true)) return "there are two Content-Length headers";
    if (value.empty() || value.size() > most_length_digits || !all_are(value, is_digit))
      return "the Content-Length is no number";
    request.body = 0;
    for (const char c : value) request.body = request.body * 10 + static_cast<unsigned>(c - '0');
  }
  // These are of one connection.
  static constexpr auto hop_by_hop =
      NameList{"connection", "proxy-*", "keep-alive", "upgrade", "te", "trailer"};
  if (hop_by_hop.match(name)) return nullptr;
  append_all(request.head, {line, "\r\n"});
  return nullptr;
}

// METHOD http://host[:port]/path HTTP/1.x becomes METHOD /path HTTP/1.1 with that host.
const char* take_uri(std::string_view method, std::string_view uri, ProxyRequest& request) {
  constexpr std::string_view scheme = "http://";
  request.tunnel = method == "CONNECT";
  std::string_view path = "/";
  if (!request.tunnel) {
    if (in_lower_case(uri.substr(0, scheme.size())) != scheme)
      return "this is a proxy: it takes CONNECT, and URIs that begin with http://";
    uri.remove_prefix(scheme.size());
    const std::size_t end = std::min(uri.find_first_of("/?"), uri.size());
    path = uri.substr(end);
    uri = uri.substr(0, end);
  }
  request.wanted = destination_of(uri, request.tunnel ? 0 : 80);
  if (request.wanted.host.empty()) return "it names no host, or one in an unusual spelling";
  if (request.tunnel) return nullptr;
  request.body = 0;
  const Destination& wanted = request.wanted;
  const std::string text = wanted.text();
  const std::string_view host =
      std::string_view(text).substr(0, wanted.port == 80 ? text.rfind(':') : text.npos);
  append_all(request.head, "% %% HTTP/1.1\r\nHost: %\r\n",
             {method, starts_with(path, "/"sv) ? "" : "/", path, host});
  return nullptr;
}

// `head` ends with an empty line.
ProxyRequest read_http_request(std::string_view head) {
  ProxyRequest request;
  request.protocol = ProxyRequest::http;
  request.taken = head.size();
  head.remove_suffix(2);
  // Each line ends with a CR and a LF, and neither stands anywhere else.
  for (std::size_t at = 0; (at = head.find_first_of("\r\n", at)) != head.npos; at += 2)
    if (head.substr(at, 2) != "\r\n")
      return bad_request(ProxyRequest::http, "a line does not end with CR and LF");
  const auto next_line = [&head] {
    const std::string_view line = take_part(head, '\n');
    return line.substr(0, line.size() - 1);
  };
  std::string_view line = next_line();
  const std::string_view method = take_part(line, ' ');
  const std::string_view uri = take_part(line, ' ');
  if (!is_token(method) || uri.empty() || !all_are(uri, is_uri_char) ||
      (line != "HTTP/1.1" && line != "HTTP/1.0"))
    return bad_request(ProxyRequest::http, "the first line is not of HTTP/1.1");
  const char* problem = take_uri(method, uri, request);
  bool has_host = false;
  bool has_length = false;
  while (!problem && !head.empty())
    problem = take_header(next_line(), request, has_host, has_length);
  if (problem) return bad_request(ProxyRequest::http, problem);
  if (!request.tunnel) request.head += "Connection: close\r\n\r\n";
  request.state = ProxyRequest::ready;
  return request;
}

// RFC 1928: the methods of the client, then its request. `input` begins with either.
ProxyRequest read_socks_request(std::string_view input) {
  const auto byte = [input](std::size_t at) {
    return at < input.size() ? static_cast<unsigned char>(input[at]) : 0u;
  };
  ProxyRequest request;
  request.protocol = ProxyRequest::socks;
  const auto bad = [&request](const char* problem) {
    request.state = ProxyRequest::bad;
    request.problem = problem;
    return request;
  };
  const std::size_t methods = 2 + byte(1);
  if (input.size() < methods) return request;
  if (input.substr(2, byte(1)).find('\0') == input.npos)
    return bad("SOCKS: it wants to give a password");
  request.state = ProxyRequest::greeting;
  request.taken = methods;
  const std::size_t start = methods;
  if (input.size() < start + 5) return request;
  const unsigned kind = byte(start + 3);
  const std::size_t begin = start + (kind == 3 ? 5 : 4);
  const std::size_t size = kind == 1 ? 4 : kind == 4 ? 16 : byte(start + 4);
  if (byte(start) != 5 || byte(start + 2) != 0 || (kind != 1 && kind != 3 && kind != 4))
    return bad("SOCKS: it is not of version 5");
  if (byte(start + 1) != 1) return bad("SOCKS: only CONNECT is supported");
  if (input.size() < begin + size + 2) return request;
  const std::string_view host = input.substr(begin, size);
  const unsigned port = byte(begin + size) << 8 | byte(begin + size + 1);
  if (kind == 3) {
    // The port comes as a number, and no other.
    if (host.find(':') == host.npos) request.wanted = destination_of(host, port);
  } else {
    SocketAddress address = {};
    address.any.sa_family = kind == 1 ? AF_INET : AF_INET6;
    std::memcpy(kind == 1 ? static_cast<void*>(&address.v4.sin_addr) : &address.v6.sin6_addr,
                host.data(), size);
    request.wanted = {address.text(), port, true};
  }
  if (request.wanted.host.empty() || port == 0)
    return bad("SOCKS: it names no host, or one in an unusual spelling");
  request.taken = begin + size + 2;
  request.state = ProxyRequest::ready;
  return request;
}

}  // namespace

inline namespace inner {

std::string_view without_blanks_around(std::string_view text) {
  while (!text.empty() && is_shell_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_shell_blank(text.back())) text.remove_suffix(1);
  return text;
}

ProxyRequest read_proxy_request(std::string_view input, std::size_t seen) {
  constexpr std::string_view end = "\r\n\r\n";
  if (input.empty()) return {};
  if (input[0] == '\x05') return read_socks_request(input);
  if (!is_letter(input[0]))
    return bad_request(ProxyRequest::unknown, "it is neither HTTP nor SOCKS5");
  const std::size_t found = input.find(end, seen - std::min(seen, end.size() - 1));
  if (found != input.npos) return read_http_request(input.substr(0, found + end.size()));
  if (input.size() >= longest_head)
    return bad_request(ProxyRequest::http, "its head is longer than 16 KiB");
  return {};
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
