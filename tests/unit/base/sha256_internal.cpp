// SHA-256: in plain C++, and by the processor's instructions where it has some.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

#include "base/base_internal.hpp"

using codeexec::fast_sha256;
using codeexec::plain_sha256;
using codeexec::sha256;
using codeexec::Sha256Blocks;
using codeexec::detail::Sha256;

namespace {

std::string hash_of(Sha256Blocks form, std::string_view bytes, std::size_t chunk = 1u << 30) {
  Sha256 hash(form);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(chunk, bytes.size())))
    hash.add(bytes.substr(0, chunk));
  return hash.hex();
}

// Bytes i % 251; the hashes are of Python's hashlib.
struct Known {
  std::size_t size;
  const char* hash;
};

constexpr Known known[] = {
    {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
    {55, "463eb28e72f82e0a96c0a4cc53690c571281131f672aa229e0d45ae59b598b59"},
    {56, "da2ae4d6b36748f2a318f23e7ab1dfdf45acdc9d049bd80e59de82a60895f562"},
    {63, "29af2686fd53374a36b0846694cc342177e428d1647515f078784d69cdb9e488"},
    {64, "fdeab9acf3710362bd2658cdc9a29e8f9c757fcf9811603a8c447cd1d9151108"},
    {65, "4bfd2c8b6f1eec7a2afeb48b934ee4b2694182027e6d0fc075074f2fabb31781"},
    {111, "60780e9451bdc43cf4530ffc95cbb0c4eb24dae2c39f55f334d679e076c08065"},
    {112, "09373f127d34e61dbbaa8bc4499c87074f2ddb10e1b465f506d7d70a15011979"},
    {119, "da18797ed7c3a777f0847f429724a2d8cd5138e6ed2895c3fa1a6d39d18f7ec6"},
    {120, "f52b23db1fbb6ded89ef42a23ce0c8922c45f25c50b568a93bf1c075420bbb7c"},
    {127, "92ca0fa6651ee2f97b884b7246a562fa71250fedefe5ebf270d31c546bfea976"},
    {128, "471fb943aa23c511f6f72f8d1652d9c880cfa392ad80503120547703e56a2be5"},
    {1048576, "631b84027d6b9e52b539c4e8373622d23032dfadc64d60af87339c9037e4f769"},
};

std::string bytes_of(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

// Null: this processor has none, or this compiler knows none.
bool skip_instructions() {
  if (fast_sha256()) return false;
  MESSAGE("skipped: no instructions for SHA-256 here");
  return true;
}

void check_known(Sha256Blocks form) {
  CHECK(hash_of(form, "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash_of(form, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  for (const Known& one : known) {
    CAPTURE(one.size);
    const std::string bytes = bytes_of(one.size);
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{63}, std::size_t{64},
                                    std::size_t{65}, std::size_t{4099}, bytes.size() + 1})
      CHECK(hash_of(form, bytes, chunk) == one.hash);
  }
}

}  // namespace

TEST_CASE("SHA-256 in plain C++ gives what is known") { check_known(plain_sha256()); }

TEST_CASE("SHA-256 by instructions gives what is known") {
  if (skip_instructions()) return;
  check_known(fast_sha256());
}

TEST_CASE("a hash takes the plain form where there are no instructions") {
  const std::string bytes = bytes_of(100'000);
  CHECK(hash_of(nullptr, bytes) == hash_of(plain_sha256(), bytes));
  CHECK(sha256(bytes) == hash_of(plain_sha256(), bytes));
}

TEST_CASE("both forms of SHA-256 are equal for all lengths, places in memory and cuts") {
  if (skip_instructions()) return;
  REQUIRE((fast_sha256() != plain_sha256()));
  std::mt19937 random(20'261'127);  // the same numbers each time
  std::string bytes(10'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (int round = 0; round < 2'000; ++round) {
    const std::size_t size = round < 300 ? static_cast<std::size_t>(round) : random() % 9'000;
    const std::size_t from = random() % 1'000;
    const std::size_t chunk = 1 + random() % 700;
    CAPTURE(size);
    CAPTURE(from);
    CAPTURE(chunk);
    const std::string_view part = std::string_view(bytes).substr(from, size);
    REQUIRE(hash_of(fast_sha256(), part, chunk) == hash_of(plain_sha256(), part));
  }
}
