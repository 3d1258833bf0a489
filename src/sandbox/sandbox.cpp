// Names, and the check of the options.

#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

const char* name(SandboxMode mode) noexcept {
  switch (mode) {
    case SandboxMode::off:
      return "off";
    case SandboxMode::best_effort:
      return "best_effort";
    case SandboxMode::strict:
      return "strict";
  }
  return "";
}

const char* name(Network network) noexcept {
  switch (network) {
    case Network::host:
      return "host";
    case Network::none:
      return "none";
    case Network::loopback:
      return "loopback";
    case Network::allow:
      return "allow";
  }
  return "";
}

namespace {

Expected<void> check_hidden_paths(const SandboxOptions& options) {
  for (const std::string& path : options.hidden_paths) {
    const auto hidden = canonical_path(path);
    for (const auto* const grants : {&options.writable, &options.readable})
      for (const std::string& grant : *grants) {
        const auto granted = canonical_path(grant);
        if (hidden && granted && codeexec::is_within(*granted, *hidden))
          return make_error(ErrorCode::invalid_argument,
                            "hidden_paths: % is what commands are to reach, or lies around it",
                            {in_quotes(path)});
      }
  }
  return {};
}

}  // namespace

inline namespace inner {

Expected<void> check_sandbox_options(const SandboxOptions& options) {
  for (const auto* list : {&options.writable, &options.readable, &options.replaceable}) {
    if (options.mode == SandboxMode::off) break;  // nothing is granted
    for (const std::string& path : *list) {
      if (!starts_with(path, "/"sv))
        return make_error(ErrorCode::invalid_argument, "grants: % is not an absolute path",
                          {in_quotes(path)});
      if (has_nul(path))
        return make_error(ErrorCode::invalid_argument, "grants: % has a NUL byte",
                          {in_quotes(path)});
    }
  }
  for (const std::string& device : options.devices)
    if (device != "gpu" && (!starts_with(device, "/"sv) || has_nul(device)))
      return make_error(ErrorCode::invalid_argument,
                        "devices: % is neither gpu nor an absolute path", {in_quotes(device)});
  constexpr std::size_t most_protected = 64;
  for (const std::string& path : options.hidden_paths)
    if (!starts_with(path, "/"sv) || has_nul(path) || options.hidden_paths.size() > most_protected)
      return make_error(ErrorCode::invalid_argument,
                        "hidden_paths: % is no absolute path, or one of more than 64",
                        {in_quotes(path)});
  if (auto ok = check_hidden_paths(options); !ok) return ok;
  for (const std::string& path : options.protected_paths) {
    const std::string parts = concat("/%/", {path});
    bool good = options.protected_paths.size() <= most_protected && !has_nul(path);
    for (const char* other : {"//", "/./", "/../"})
      good = good && parts.find(other) == std::string::npos;
    if (!good)
      return make_error(ErrorCode::invalid_argument,
                        "protected_paths: % is no plain relative path, or one of more than 64",
                        {in_quotes(path)});
  }
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  for (const NamedLimit& limit : limit_names) {
    if (options.limits.*limit.value > most)
      return make_error(ErrorCode::invalid_argument, "limits: % is larger than 2^62", {limit.name});
  }
  // The loader of a program needs a descriptor beside the three standard ones.
  constexpr std::uint64_t fewest_files = 4;
  if (options.limits.open_files != no_bound && options.limits.open_files < fewest_files)
    return make_error(ErrorCode::invalid_argument,
                      "limits: open_files below 4 lets no program start");
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
