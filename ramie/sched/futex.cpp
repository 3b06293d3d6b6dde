#include <ramie/sched/futex.hpp>

#include <ramie/base/atomic.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace ramie::detail {

void futex_wait(const atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept {
#if RAMIE_INTERLEAVE
  interleave::wait_on(&word, sizeof word, expected, timeout_ns);
#else
  timespec timeout{};
  if (timeout_ns >= 0) {
    timeout.tv_sec = timeout_ns / 1'000'000'000;
    timeout.tv_nsec = timeout_ns % 1'000'000'000;
  }
  static_cast<void>(
      ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns >= 0 ? &timeout : nullptr, nullptr, 0));
#endif
}

void futex_wake(const atomic<std::uint32_t>& word, int how_many) noexcept {
#if RAMIE_INTERLEAVE
  interleave::wake(&word, how_many);
#else
  static_cast<void>(::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, how_many, nullptr, nullptr, 0));
#endif
}

}  // namespace ramie::detail
