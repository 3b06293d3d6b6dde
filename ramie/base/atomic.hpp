// What the threads of the runtime share and wait with, under one name each, so that the same protocols can run under
// the simulated scheduler of the interleaving tests (docs/design/interleaving.md). In all other builds these are the
// standard library's and the system's own, and nothing else is compiled.
//
// The protocols of sched, fiber, sync, channel and actor use these names only. The floors below, which map memory and
// handle signals, need none of it.
#pragma once

#include <ramie/base/config.hpp>

#if RAMIE_INTERLEAVE
#include <ramie/base/interleave.hpp>
#else
#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace ramie::detail {

template <class T>
using atomic = std::atomic<T>;
template <class T>
using atomic_ref = std::atomic_ref<T>;
using os_mutex = std::mutex;
using os_condition = std::condition_variable;
using os_thread = std::thread;

/// Yields the rest of the time slice.
RAMIE_ALWAYS_INLINE void os_yield() noexcept { ::sched_yield(); }
RAMIE_ALWAYS_INLINE void os_sleep(std::int64_t duration_ns) noexcept {
  const timespec duration{duration_ns / 1'000'000'000, duration_ns % 1'000'000'000};
  ::nanosleep(&duration, nullptr);
}
RAMIE_ALWAYS_INLINE std::chrono::steady_clock::time_point os_now() noexcept { return std::chrono::steady_clock::now(); }

}  // namespace ramie::detail

/// True while the planted bug `name` is switched on, in interleaving tests only.
#define RAMIE_PLANT(name) false
#define RAMIE_UNMONITORED false
#endif
