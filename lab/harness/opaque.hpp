// Keeps the compiler from answering a workload at compile time, at no run-time cost.
#pragma once

/// A function that stays a call: not inlined and not specialised for its arguments.
#if defined(__clang__)
#define RAMIE_LAB_CALL [[gnu::noinline]]
#else
#define RAMIE_LAB_CALL [[gnu::noinline, gnu::noclone]]
#endif

namespace ramie::lab {

/// `value`, unknown to the optimiser from here on. Emits no instruction.
///
/// Around a workload's inputs it stops constant folding. Around the result of a recursive call it keeps that call a
/// call: without it gcc turns the last call of `return f(a) + f(b)` into a loop, and half of the calls that the
/// yardstick should count would not take place.
template <class T>
[[gnu::always_inline]] inline T opaque(T value) noexcept {
  asm("" : "+r"(value));
  return value;
}

/// As opaque(), for the inputs of a run: never merged with an earlier run on the same input.
template <class T>
[[gnu::always_inline]] inline T opaque_input(T value) noexcept {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace ramie::lab
