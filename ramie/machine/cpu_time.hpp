// How long threads have run.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>

namespace ramie::detail {

/// What the thread has had of the processors; 0 if the system does not say. It must not have been joined.
inline std::int64_t cpu_time_ns(pthread_t thread) noexcept {
  clockid_t clock;
  timespec used{};
  if (::pthread_getcpuclockid(thread, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace ramie::detail
