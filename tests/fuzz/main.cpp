// One program for all targets: it is the target after the last `-` of its own name, so that a link
// to it is another fuzzer.                                          fuzz-json -max_total_time=60
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz.hpp"

namespace {

struct Target {
  const char* name;
  void (*run)(std::string_view input);
};
constexpr Target targets[] = {
    {"code", fuzz::code},         {"config", fuzz::config},   {"docker", fuzz::docker},
    {"json", fuzz::json},         {"mcp", fuzz::mcp},         {"output", fuzz::output},
    {"place", fuzz::place},       {"policy", fuzz::policy},   {"proxy", fuzz::proxy},
    {"regex", fuzz::regex},       {"session", fuzz::session}, {"shell", fuzz::shell},
    {"terminal", fuzz::terminal}, {"text", fuzz::text},
};

const Target* chosen = nullptr;

}  // namespace

void fuzz::fail(const char* file, int line, const char* what, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
  if (!detail.empty())
    std::fprintf(stderr, "--- with\n%.*s\n---\n", static_cast<int>(detail.size()), detail.data());
  std::abort();
}

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  const char* const dash = std::strrchr((*argv)[0], '-');
  for (const Target& target : targets)
    if (dash && std::strcmp(dash + 1, target.name) == 0) chosen = &target;
  if (chosen) return 0;
  std::fprintf(stderr, "call this program by the name of a target:");
  for (const Target& target : targets) std::fprintf(stderr, " fuzz-%s", target.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of its exact size, so that reading behind its end is seen.
  const std::vector<char> bytes(data, data + size);
  chosen->run(std::string_view(bytes.data(), bytes.size()));
  return 0;
}
