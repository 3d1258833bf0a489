// A ring of io_uring, as far as the attacks need one.
#ifndef CODEEXEC_TESTS_ATTACKS_RING_HPP
#define CODEEXEC_TESTS_ATTACKS_RING_HPP

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "attack.hpp"

namespace attacks {

// The little of io_uring's ABI that is needed here; <linux/io_uring.h> is missing on old systems.
struct SubmissionOffsets {
  std::uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, reserved;
  std::uint64_t address;
};
struct CompletionOffsets {
  std::uint32_t head, tail, ring_mask, ring_entries, overflow, entries, flags, reserved;
  std::uint64_t address;
};
struct RingParameters {
  std::uint32_t sq_entries, cq_entries, flags, cpu, idle, features, wq, reserved[3];
  SubmissionOffsets sq;
  CompletionOffsets cq;
};
struct RingEntry {
  std::uint8_t opcode, flags;
  std::uint16_t priority;
  std::int32_t fd;
  std::uint64_t offset, address;
  std::uint32_t size, operation_flags;
  std::uint64_t user_data, rest[3];
};

class Ring {
 public:
  bool open() {
    RingParameters parameters;
    std::memset(&parameters, 0, sizeof parameters);
    fd_ = static_cast<int>(raw(sys_io_uring_setup, 4U, &parameters));
    if (fd_ < 0) return false;
    sq_ = map(parameters.sq.array + parameters.sq_entries * 4, 0);
    cq_ = map(parameters.cq.entries + parameters.cq_entries * 16, 0x8000000);
    entries_ = map(parameters.sq_entries * sizeof(RingEntry), 0x10000000);
    parameters_ = parameters;
    return sq_ && cq_ && entries_;
  }

  // One operation, and its result: negative is an errno.
  int run(std::uint8_t opcode, int fd, const void* memory, std::uint64_t offset, std::uint32_t size,
          std::uint32_t flags) {
    RingEntry entry;
    std::memset(&entry, 0, sizeof entry);
    entry.opcode = opcode;
    entry.fd = fd;
    entry.address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
    entry.offset = offset;
    entry.size = size;
    entry.operation_flags = flags;
    std::memcpy(entries_, &entry, sizeof entry);
    const std::uint32_t tail = at(sq_, parameters_.sq.tail);
    at(sq_, parameters_.sq.array + (tail & at(sq_, parameters_.sq.ring_mask)) * 4) = 0;
    __atomic_store_n(&at(sq_, parameters_.sq.tail), tail + 1, __ATOMIC_RELEASE);
    if (raw(sys_io_uring_enter, fd_, 1U, 1U, 1U /* wait for it */, 0L, 0L) < 0) return -errno;
    const std::uint32_t head = at(cq_, parameters_.cq.head);
    // A completion is 8 bytes of ours, the result and flags.
    const std::uint32_t place =
        parameters_.cq.entries + (head & at(cq_, parameters_.cq.ring_mask)) * 16;
    const int result = static_cast<int>(at(cq_, place + 8));
    __atomic_store_n(&at(cq_, parameters_.cq.head), head + 1, __ATOMIC_RELEASE);
    return result;
  }

 private:
  char* map(std::size_t size, long offset) const {
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
  static std::uint32_t& at(char* memory, std::uint32_t offset) {
    return *reinterpret_cast<std::uint32_t*>(memory + offset);
  }

  int fd_ = -1;
  char* sq_ = nullptr;
  char* cq_ = nullptr;
  char* entries_ = nullptr;
  RingParameters parameters_ = {};
};

}  // namespace attacks

#endif  // CODEEXEC_TESTS_ATTACKS_RING_HPP
