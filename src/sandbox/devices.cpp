// SandboxOptions::devices: which of them may be granted, and what else a GPU needs.

#include "sandbox/builder_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/grants_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

// What drivers make of GPUs, as far as it is there.
constexpr auto gpu_directories = NameList{"/dev", "/dev/nvidia-caps", "/dev/dri"};
constexpr auto gpu_names = NameList{"nvidia*", "nvidia-cap*", "renderD*", "card*", "kfd"};
constexpr auto gpu_settings =
    NameList{"/sys/class/drm", "/sys/class/kfd", "/sys/devices/virtual/kfd", "/sys/dev/char"};

// Subsystems of the kernel whose character devices lead to disks, or to all of the machine.
constexpr auto closed_subsystems =
    NameSet{"block", "bsg", "mtd", "nvme", "nvme-generic", "raw", "scsi_generic", "ubi"};

std::string system_link(dev_t device, const char* name) {
  return real_path_of(concat("/sys/dev/char/%:%/%", {major(device), minor(device), name}));
}

// Memory, ports and logs of the kernel have this major number, beside the harmless ones.
bool is_harmless_memory(dev_t device) {
  constexpr unsigned null_to_urandom[] = {3, 5, 7, 8, 9};
  for (const unsigned known : null_to_urandom)
    if (minor(device) == known) return true;
  return false;
}

// Why a device is not granted, or null.
const char* objection_to_device(const struct stat& status) {
  constexpr unsigned memory_major = 1;
  if (S_ISBLK(status.st_mode)) return "is a disk";
  if (!S_ISCHR(status.st_mode)) return "is no device";
  if (major(status.st_rdev) == memory_major)
    return is_harmless_memory(status.st_rdev) ? nullptr : "is memory of the machine";
  const std::string subsystem = system_link(status.st_rdev, "subsystem");
  return closed_subsystems.has(base_name(subsystem)) ? "leads to a disk" : nullptr;
}

}  // namespace

inline namespace inner {

Expected<void> SandboxPlanner::open_device(const std::string& path) {
  constexpr std::string_view of_grants = "grants: ";
  auto opened = open_grant(path);
  if (!opened) {
    Error error = opened.error();
    error.message.replace(0, of_grants.size(), "devices: ");
    if (state_.options.mode == SandboxMode::strict) return error;
    state_.report.missing.push_back(error.message);
    return {};
  }
  if (const char* const objection = objection_to_device(opened->status))
    return make_error(ErrorCode::invalid_argument, "devices: % %", {in_quotes(path), objection});
  devices_.push_back(std::move(*opened));
  return {};
}

// A GPU that is not there is none, and no error: the report says what there is.
Expected<void> SandboxPlanner::open_devices() {
  for (const std::string& device : state_.options.devices) {
    if (device != "gpu") {
      if (auto opened = open_device(device); !opened) return opened;
      continue;
    }
    for (const std::string_view directory : gpu_directories)
      for (const std::string& path : paths_in(std::string(directory))) {
        struct stat status {};
        if (gpu_names.match(base_name(path)) && ::lstat(path.c_str(), &status) == 0 &&
            S_ISCHR(status.st_mode))
          if (auto opened = open_device(path); !opened) return opened;
      }
  }
  if (state_.options.devices.empty()) return {};
  std::string found;
  for (const OpenedGrant& device : devices_) append_all(found, {" ", device.path});
  state_.report.places.push_back(concat("devices:%", {found.empty() ? " none is here" : found}));
  return {};
}

bool SandboxPlanner::add_devices(Ruleset& ruleset) {
  bool has_gpu = false;
  for (const std::string& device : state_.options.devices) has_gpu = has_gpu || device == "gpu";
  if (has_gpu) {
    ruleset.add_path("/dev/dri", right_read_dir);
    for (const std::string_view path : gpu_settings)
      ruleset.add_path(std::string(path), readable_rights);
  }
  for (const OpenedGrant& device : devices_) {
    UniqueFd file(above_standard_streams(::fcntl(device.fd.get(), F_DUPFD_CLOEXEC, 3)));
    if (!file || !ruleset.add(std::move(file), device.status.st_mode, device_rights, device.path))
      return false;
    const std::string settings =
        has_gpu ? system_link(device.status.st_rdev, "device") : std::string();
    if (!settings.empty()) ruleset.add_path(settings, readable_rights);
  }
  return true;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
