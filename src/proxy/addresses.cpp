// Which addresses are those of the internet.

#include "proxy/proxy_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

// The first bits of addresses, in the first 64 of them.
struct AddressRange {
  std::uint64_t bits;
  int count;
};

// IANA's special-purpose registries; multicast; the last one is Azure's server for its machines.
constexpr AddressRange special_v4[] = {{0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10},
                                       {0x7f000000, 8},  {0xa9fe0000, 16}, {0xac100000, 12},
                                       {0xc0000000, 24}, {0xc0586300, 24}, {0xc0a80000, 16},
                                       {0xc6120000, 15}, {0xe0000000, 3},  {0xa83f8110, 32}};

bool is_special_v4(std::uint32_t address) {
  for (const AddressRange& range : special_v4)
    if (address >> (32 - range.count) == range.bits >> (32 - range.count)) return true;
  return false;
}

std::uint64_t big_endian(const unsigned char* bytes, int count) {
  std::uint64_t number = 0;
  for (int i = 0; i < count; ++i) number = number << 8 | bytes[i];
  return number;
}

// Forms that hold an IPv4 address are as special as that one.
bool is_special_v6(const in6_addr& address) {
  const std::uint64_t high = big_endian(address.s6_addr, 8);
  const auto low = static_cast<std::uint32_t>(big_endian(address.s6_addr + 12, 4));
  const std::uint64_t middle = big_endian(address.s6_addr + 8, 4);
  if (high == 0 && middle == 0xffff) return is_special_v4(low);              // ::ffff:0:0/96
  if (high == 0x0064ff9b00000000 && middle == 0) return is_special_v4(low);  // NAT64
  if (high >> 48 == 0x2002) return is_special_v4(static_cast<std::uint32_t>(high >> 16));  // 6to4
  // Special are all others outside of 2000::/3, and 2001::/23 in it: Teredo and other protocols.
  return high >> 61 != 1 || high >> 41 == 0x200100 >> 1;
}

// A datagram socket that is connected to an address of this host has that address itself.
// Connecting sends nothing. Without a descriptor to look with, any address may be this host's.
bool is_own_address(const SocketAddress& address) {
  const UniqueFd fd(::socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno != EAFNOSUPPORT;
  SocketAddress own = {};
  socklen_t size = sizeof own;
  if (::connect(fd.get(), &address.any, address.size()) != 0 ||
      ::getsockname(fd.get(), &own.any, &size) != 0)
    return false;  // without a way there
  return own.text() == address.text();
}

}  // namespace

// The canonical text, so that two addresses are the same if their texts are.
std::string SocketAddress::text() const {
  char text[64] = {};
  const void* const bytes = any.sa_family == AF_INET ? static_cast<const void*>(&v4.sin_addr)
                                                     : static_cast<const void*>(&v6.sin6_addr);
  const char* const written = ::inet_ntop(any.sa_family, bytes, text, sizeof text);
  return written ? written : "";
}

inline namespace inner {

// Called before each connection, as a name may lead to any address: its owner chooses that.
bool is_public_address(const SocketAddress& address) {
  const bool special = address.any.sa_family == AF_INET
                           ? is_special_v4(ntohl(address.v4.sin_addr.s_addr))
                           : is_special_v6(address.v6.sin6_addr);
  return !special && !is_own_address(address);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
