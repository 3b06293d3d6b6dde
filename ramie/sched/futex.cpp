#include <ramie/sched/futex.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace ramie::detail {

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept {
  timespec timeout{};
  if (timeout_ns >= 0) {
    timeout.tv_sec = timeout_ns / 1'000'000'000;
    timeout.tv_nsec = timeout_ns % 1'000'000'000;
  }
  static_cast<void>(
      ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns >= 0 ? &timeout : nullptr, nullptr, 0));
}

void futex_wake(const std::atomic<std::uint32_t>& word, int how_many) noexcept {
  static_cast<void>(::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, how_many, nullptr, nullptr, 0));
}

}  // namespace ramie::detail
