#include <ramie/machine/futex.hpp>

#include <ramie/base/atomic.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>

namespace ramie::detail {

namespace {

[[maybe_unused]] constexpr std::int64_t refused_sleep_ns = 1'000'000;

long kernel_wait(const void* word, std::uint32_t expected, const timespec* timeout) noexcept {
#if RAMIE_TSAN
  // ThreadSanitizer keeps a signal back until the thread makes a call that it knows, so no sleep is long.
  constexpr timespec most{.tv_sec = 0, .tv_nsec = 50'000'000};
  const bool cut = timeout == nullptr || timeout->tv_sec > 0 || timeout->tv_nsec > most.tv_nsec;
  const long done = ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, cut ? &most : timeout, nullptr, 0);
  if (done < 0) {
    const int why = errno;
    const timespec none{};
    ::nanosleep(&none, nullptr);
    errno = why;
  }
  return done;
#else
  return ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, nullptr, 0);
#endif
}

long kernel_wake(const void* word, int how_many) noexcept {
  return ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, how_many, nullptr, nullptr, 0);
}

}  // namespace

constinit const futex_calls kernel_futex_calls{kernel_wait, kernel_wake};

namespace {
constinit std::atomic<const futex_calls*> in_use{&kernel_futex_calls};
}  // namespace

void replace_futex_calls(const futex_calls* replacement) noexcept {
  // Release: publishes what the replacement refers to. Pairs with the acquires below.
  in_use.store(replacement != nullptr ? replacement : &kernel_futex_calls, std::memory_order_release);
}

void futex_wait(const atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept {
#if RAMIE_INTERLEAVE
  interleave::wait_on(&word, sizeof word, expected, timeout_ns);
#else
  timespec timeout{};
  if (timeout_ns >= 0) {
    timeout.tv_sec = timeout_ns / 1'000'000'000;
    timeout.tv_nsec = timeout_ns % 1'000'000'000;
  }
  const futex_calls& calls = *in_use.load(std::memory_order_acquire);
  if (calls.wait(&word, expected, timeout_ns >= 0 ? &timeout : nullptr) == 0) return;
  if (errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT) return;  // expected
  os_sleep(timeout_ns >= 0 ? std::min(timeout_ns, refused_sleep_ns) : refused_sleep_ns);
#endif
}

void futex_wake(const atomic<std::uint32_t>& word, int how_many) noexcept {
#if RAMIE_INTERLEAVE
  interleave::wake(&word, how_many);
#else
  static_cast<void>(in_use.load(std::memory_order_acquire)->wake(&word, how_many));
#endif
}

}  // namespace ramie::detail
