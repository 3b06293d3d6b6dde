// Build-wide switches: which sanitizer is on, which attributes the compiler has.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define RAMIE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RAMIE_ASAN 1
#endif
#endif
#ifndef RAMIE_ASAN
#define RAMIE_ASAN 0
#endif

#if RAMIE_INTERLEAVE + 0
// The simulator has the instrumentation, for itself, and not the library that belongs to it.
#define RAMIE_TSAN 0
#elif defined(__SANITIZE_THREAD__)
#define RAMIE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RAMIE_TSAN 1
#endif
#endif
#ifndef RAMIE_TSAN
#define RAMIE_TSAN 0
#endif

// The runtime under the simulated scheduler of the interleaving tests: base/atomic.hpp.
#ifndef RAMIE_INTERLEAVE
#define RAMIE_INTERLEAVE 0
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "ramie runs on x86-64 and aarch64"
#endif
#if !defined(__linux__)
#error "ramie runs on Linux"
#endif

// What must be inlined to be fast (task/suspend.hpp says why) need not be where speed is not measured: the tests'
// builds under sanitizers, and without optimisation, take much less time then.
#if defined(__OPTIMIZE__) && !RAMIE_ASAN && !RAMIE_TSAN
#define RAMIE_ALWAYS_INLINE __attribute__((always_inline)) inline
#define RAMIE_LAMBDA_INLINE __attribute__((always_inline))
#else
#define RAMIE_ALWAYS_INLINE inline
#define RAMIE_LAMBDA_INLINE
#endif
// A function that deliberately reads what other threads change: sanitizers do not instrument it.
#if defined(__clang__)
#define RAMIE_UNWATCHED __attribute__((no_sanitize("address", "thread"), noinline))
#else
#define RAMIE_UNWATCHED __attribute__((no_sanitize_address, no_sanitize_thread, noinline))
#endif
#define RAMIE_NOINLINE __attribute__((noinline))
#define RAMIE_COLD __attribute__((cold, noinline))
