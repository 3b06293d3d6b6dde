#include <ramie/stack/system.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace ramie::detail {

namespace {

// PIDFD_SELF: what the kernel takes for "the calling thread" in place of a pidfd (Linux 6.14). Its memory is that
// of the process. (The value for "this process" was changed after it had been released.)
constexpr int pidfd_self = -10000;

void* map(std::size_t size) noexcept {
  // MAP_STACK asks for no huge pages since Linux 6.7 and for nothing before. A huge page would make a parked fiber cost
  // 2 MiB.
  void* memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int unmap(void* address, std::size_t size) noexcept { return ::munmap(address, size); }

int advise(void* address, std::size_t size, int advice) noexcept { return ::madvise(address, size, advice); }

ssize_t advise_ranges(const iovec* ranges, std::size_t count, int advice) noexcept {
#if defined(SYS_process_madvise)
  static std::atomic<bool> missing{false};
  if (missing.load(std::memory_order_relaxed)) {
    errno = ENOSYS;
    return -1;
  }
  const long done = ::syscall(SYS_process_madvise, pidfd_self, ranges, count, advice, 0);
  // No such call, no such sentinel, advice not for this call, or a sandbox forbids it: trying again will not help.
  if (done < 0 && (errno == ENOSYS || errno == EBADF || errno == EPERM || errno == ESRCH))
    missing.store(true, std::memory_order_relaxed);
  return done;
#else
  static_cast<void>(ranges);
  static_cast<void>(count);
  static_cast<void>(advice);
  errno = ENOSYS;
  return -1;
#endif
}

int protect(void* address, std::size_t size, int protection) noexcept { return ::mprotect(address, size, protection); }

std::size_t max_map_count() noexcept {
  constexpr std::size_t kernel_default = 65530;
  return number_in_file("/proc/sys/vm/max_map_count", kernel_default);
}

constinit std::atomic<const memory_calls*> replaced{nullptr};

}  // namespace

constinit const memory_calls kernel_calls{map, unmap, advise, advise_ranges, protect, max_map_count};

const memory_calls& calls() noexcept {
  const memory_calls* r = replaced.load(std::memory_order_acquire);  // pairs with the release in replace_calls
  return r != nullptr ? *r : kernel_calls;
}

void replace_calls(const memory_calls* replacement) noexcept { replaced.store(replacement, std::memory_order_release); }

std::size_t advise_all(const iovec* ranges, std::size_t count, int advice) noexcept {
  // One call for 64 stacks, not 64: each call that drops pages interrupts every core that runs this process. Measured
  // with a second thread running, 2 vCPU: 15 us a stack one by one, 0.4 us together.
  if (count > 1) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i) size += ranges[i].iov_len;
    const ssize_t done = calls().advise_ranges(ranges, count, advice);
    if (done >= 0 && static_cast<std::size_t>(done) == size) return count;
  }
  // Giving advice twice does no harm, so how far the call above got need not be known.
  for (std::size_t i = 0; i < count; ++i)
    if (calls().advise(ranges[i].iov_base, ranges[i].iov_len, advice) != 0) return i;
  return count;
}

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t number_in_file(const char* path, std::size_t otherwise) noexcept {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return otherwise;
  char text[32];
  const ssize_t size = ::read(file, text, sizeof text);
  ::close(file);
  if (size <= 0 || text[0] < '0' || text[0] > '9') return otherwise;
  std::size_t number = 0;
  for (ssize_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i)
    number = number * 10 + static_cast<std::size_t>(text[i] - '0');
  return number;
}

}  // namespace ramie::detail
