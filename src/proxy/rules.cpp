// Which names and ports an operator allows, and which are denied whatever is allowed.
//
//   entry               of allowed_domains                 of denied_domains       function
//   example.org         example.org:80, example.org:443    example.org, any port   create()
//   example.org:22      example.org:22                     example.org:22          read()
//   *.example.org       .example.org:80, .example.org:443  .example.org, any port  create()
//   the name of a set   those of each of its hosts         those of each           read()
//
// What a command asks for is hostile text. destination_of() makes one spelling of each host, so
// that allow() compares texts; an address in another spelling is refused.

#include "proxy/proxy.hpp"
#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The hosts of the named sets: a row for each. The rows of a set stand together.
struct SetHost {
  const char* set;
  const char* host;
};
constexpr SetHost set_hosts[] = {
    {"python", "pypi.org"},
    {"python", "files.pythonhosted.org"},
    {"node", "registry.npmjs.org"},
    {"node", "registry.yarnpkg.com"},
    {"node", "nodejs.org"},
    {"rust", "crates.io"},
    {"rust", "index.crates.io"},
    {"rust", "static.crates.io"},
    {"rust", "static.rust-lang.org"},
    {"go", "proxy.golang.org"},
    {"go", "sum.golang.org"},
    {"debian", "deb.debian.org"},
    {"debian", "security.debian.org"},
};

// True if a row is the first of its set.
constexpr bool begins_set(std::size_t row) {
  return row == 0 || std::string_view(set_hosts[row - 1].set) != set_hosts[row].set;
}

constexpr bool sets_stand_together() {
  for (std::size_t row = 0; row < std::size(set_hosts); ++row)
    for (std::size_t before = 0; before < row && begins_set(row); ++before)
      if (std::string_view(set_hosts[before].set) == set_hosts[row].set) return false;
  return true;
}
static_assert(sets_stand_together(), "the rows of a set stand one behind the other");

// The text of domain_sets().
struct SetTexts {
  constexpr void append(std::string_view part) {
    for (const char c : part) text[size++] = c;
  }
  char text[512] = {};
  std::size_t size = 0;
};
constexpr SetTexts make_set_texts() {
  SetTexts texts;
  for (std::size_t row = 0; row < std::size(set_hosts); ++row) {
    if (begins_set(row)) {
      if (row) texts.append("\n");
      texts.append(set_hosts[row].set);
    }
    texts.append(" ");
    texts.append(set_hosts[row].host);
  }
  texts.append("\n");
  return texts;
}
constexpr SetTexts set_texts = make_set_texts();

}  // namespace

std::string_view domain_sets() noexcept { return {set_texts.text, set_texts.size}; }

#if defined(__linux__)

namespace {

bool is_host_char(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; }

// As programs of the C library read addresses, a name whose last part is a number is one.
bool ends_in_number(std::string_view host) {
  std::string_view last = host.substr(host.rfind('.') + 1);
  return all_are(last, is_digit) || starts_with(last, "0x"sv);
}

// ASCII letters, digits, - and _ only: a name that looks like another one is not taken for it.
bool is_host_name(std::string_view host) {
  constexpr std::size_t longest_name = 253;
  constexpr std::size_t longest_label = 63;
  if (host.empty() || host.size() > longest_name || host.back() == '.') return false;
  while (!host.empty()) {
    const std::string_view label = take_part(host, '.');
    if (label.empty() || label.size() > longest_label || !all_are(label, is_host_char))
      return false;
  }
  return true;
}

// An address in its canonical text; empty: it is none.
std::string canonical_address(const std::string& host, int family) {
  unsigned char bytes[16] = {};
  char text[64] = {};
  if (::inet_pton(family, host.c_str(), bytes) != 1) return {};
  const char* const canonical = ::inet_ntop(family, bytes, text, sizeof text);
  return canonical ? canonical : "";
}

// 0: it is none.
unsigned port_of(std::string_view digits) {
  constexpr std::size_t longest = 5;
  if (digits.empty() || digits.size() > longest || !all_are(digits, is_digit)) return 0;
  std::size_t at = 0;
  const unsigned port = read_digits(digits, at, longest, 10);
  return port <= 65535 ? port : 0;
}

}  // namespace

std::string Destination::text() const {
  const bool brackets = host.find(':') != std::string::npos;
  return concat(brackets ? "[%]:%" : "%:%", {host, port});
}

inline namespace inner {

Destination destination_of(std::string_view text, unsigned usual_port) {
  const bool brackets = starts_with(text, "["sv);
  const std::size_t end = brackets ? text.find(']') : text.find(':');
  std::string_view host = text.substr(0, end);
  std::string_view rest = end == text.npos ? ""sv : text.substr(end);
  if (brackets && rest.empty()) return {};
  if (brackets) host.remove_prefix(1), rest.remove_prefix(1);
  Destination found;
  found.port = usual_port;
  if (!rest.empty()) found.port = rest[0] == ':' ? port_of(rest.substr(1)) : 0;
  if (found.port == 0 || has_nul(host)) return {};
  if (!brackets && ends_with(host, "."sv)) host.remove_suffix(1);
  const std::string name = in_lower_case(host);
  found.literal = brackets || ends_in_number(name);
  if (brackets)
    found.host = canonical_address(name, AF_INET6);
  else if (is_host_name(name))
    found.host = found.literal ? canonical_address(name, AF_INET) : name;
  return found;
}

}  // namespace inner

// A rule that begins with a dot is for the names below one, and not for that name.
bool DomainRules::Rule::holds(const Destination& wanted) const {
  if (port != 0 && port != wanted.port) return false;
  return wanted.host == host || (host[0] == '.' && ends_with(wanted.host, host));
}

// Adds the rules of an entry, without a port where it has none. False: it is no entry.
bool DomainRules::read(std::string_view entry, std::vector<Rule>& rules) {
  bool is_set = false;
  for (const SetHost& row : set_hosts)
    if (entry == row.set) is_set = read(row.host, rules);
  // A name without a dot may be a set that is spelled wrong.
  if (is_set || entry.find_first_of(".:") == entry.npos) return is_set;
  const bool below = starts_with(entry, "*."sv);
  const std::string_view name = below ? entry.substr(2) : entry;
  const Destination found = destination_of(name, 80);
  if (found.host.empty() || (below && found.literal)) return false;
  const bool has_port = !destination_of(name).host.empty();
  rules.push_back({concat("%%", {below ? "." : "", found.host}), has_port ? found.port : 0, {}});
  return true;
}

Expected<DomainRules> DomainRules::create(const std::vector<std::string>& allowed,
                                          const std::vector<std::string>& denied) {
  constexpr const char* wrong =
      "%: % is no example.org, *.example.org, example.org:443, 127.0.0.1:8080, [::1]:8080, nor one "
      "of python, node, rust, go, debian";
  DomainRules rules;
  std::vector<Rule> read_rules;
  for (const std::string& entry : allowed) {
    append_all(rules.text_, {rules.text_.empty() ? "" : ", ", entry});
    if (!read(entry, read_rules))
      return make_error(ErrorCode::invalid_argument, wrong, {"allowed_domains", in_quotes(entry)});
  }
  // Programs of the web use these two.
  for (Rule& rule : read_rules)
    if (rule.port != 0) {
      rules.allowed_.push_back(std::move(rule));
    } else {
      rules.allowed_.push_back({rule.host, 80, {}});
      rules.allowed_.push_back({rule.host, 443, {}});
    }
  for (const std::string& entry : denied) {
    std::string_view reason = entry;
    const std::string_view name = take_part(reason, '=');
    const std::size_t first = rules.denied_.size();
    if (!read(name, rules.denied_))
      return make_error(ErrorCode::invalid_argument, wrong, {"denied_domains", in_quotes(name)});
    for (std::size_t i = first; i < rules.denied_.size(); ++i)
      rules.denied_[i].reason = reason.empty() ? "the operator denies it" : reason;
  }
  return rules;
}

bool DomainRules::allow(const Destination& wanted) const {
  for (const Rule& rule : allowed_)
    if (rule.holds(wanted)) return true;
  return false;
}

const std::string* DomainRules::denial(const Destination& wanted) const {
  for (const Rule& rule : denied_)
    if (rule.holds(wanted)) return &rule.reason;
  return nullptr;
}

// Called for each address of an allowed name, before a socket is made for it.
bool DomainRules::allow_address(const SocketAddress& address, unsigned port) const {
  const Destination wanted = {address.text(), port, true};
  return !denial(wanted) && (is_public_address(address) || allow(wanted));
}

#endif

}  // namespace v0_1
}  // namespace codeexec
