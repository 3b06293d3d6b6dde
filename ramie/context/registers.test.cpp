// Every value that a function may keep in a register across a call survives a switch, however the other side has used
// the registers.
#include <ramie/context/context.hpp>

#include <ramie/context/testing.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>

namespace ramie::detail {
namespace {

using testing::scaled;
using testing::side_stack;

#if defined(__x86_64__)
constexpr int kept_integers = 6;
constexpr int kept_floats = 0;
#else
constexpr int kept_integers = 11;
constexpr int kept_floats = 8;
#endif

struct register_file {
  std::array<std::uint64_t, kept_integers> integers{};
  std::array<std::uint64_t, kept_floats == 0 ? 1 : kept_floats> floats{};
};

// Loads all callee-saved registers from `in`, calls f(argument), and stores them to `out`. Entirely in assembly,
// so that no compiler restores a register in between.
extern "C" void ramie_test_call_with_registers(const register_file* in, register_file* out, void (*f)(void*),
                                               void* argument);

#if defined(__x86_64__)
asm(R"(
        .text
        .p2align 4
        .type   ramie_test_call_with_registers, @function
ramie_test_call_with_registers:
        .cfi_startproc
        endbr64
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        movq    0(%rdi), %rbx
        movq    8(%rdi), %rbp
        movq    16(%rdi), %r12
        movq    24(%rdi), %r13
        movq    32(%rdi), %r14
        movq    40(%rdi), %r15
        movq    %rcx, %rdi
        call    *%rdx
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        movq    %rbx, 0(%rsi)
        movq    %rbp, 8(%rsi)
        movq    %r12, 16(%rsi)
        movq    %r13, 24(%rsi)
        movq    %r14, 32(%rsi)
        movq    %r15, 40(%rsi)
        popq    %r15
        .cfi_adjust_cfa_offset -8
        popq    %r14
        .cfi_adjust_cfa_offset -8
        popq    %r13
        .cfi_adjust_cfa_offset -8
        popq    %r12
        .cfi_adjust_cfa_offset -8
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   ramie_test_call_with_registers, . - ramie_test_call_with_registers
)");
#else
asm(R"(
        .text
        .p2align 4
        .type   ramie_test_call_with_registers, %function
ramie_test_call_with_registers:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-176]!
        .cfi_adjust_cfa_offset 176
        .cfi_offset x30, -168
        .cfi_offset x29, -176
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        str     x1, [sp, #160]
        ldp     x19, x20, [x0]
        ldp     x21, x22, [x0, #16]
        ldp     x23, x24, [x0, #32]
        ldp     x25, x26, [x0, #48]
        ldp     x27, x28, [x0, #64]
        ldr     x29, [x0, #80]
        ldp     d8, d9, [x0, #88]
        ldp     d10, d11, [x0, #104]
        ldp     d12, d13, [x0, #120]
        ldp     d14, d15, [x0, #136]
        mov     x0, x3
        blr     x2
        ldr     x1, [sp, #160]
        stp     x19, x20, [x1]
        stp     x21, x22, [x1, #16]
        stp     x23, x24, [x1, #32]
        stp     x25, x26, [x1, #48]
        stp     x27, x28, [x1, #64]
        str     x29, [x1, #80]
        stp     d8, d9, [x1, #88]
        stp     d10, d11, [x1, #104]
        stp     d12, d13, [x1, #120]
        stp     d14, d15, [x1, #136]
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x29, x30, [sp], #176
        .cfi_adjust_cfa_offset -176
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   ramie_test_call_with_registers, . - ramie_test_call_with_registers
)");
#endif

/// Puts garbage into every register that the compiler lets us name.
RAMIE_NOINLINE void spoil_registers() {
#if defined(__x86_64__)
  asm volatile(
      "movq $-1, %%rax\n\tmovq %%rax, %%rbx\n\tmovq %%rax, %%rcx\n\tmovq %%rax, %%rdx\n\tmovq %%rax, %%rsi\n\tmovq "
      "%%rax, %%rdi\n\t"
      "movq %%rax, %%r8\n\tmovq %%rax, %%r9\n\tmovq %%rax, %%r10\n\tmovq %%rax, %%r11\n\tmovq %%rax, %%r12\n\tmovq "
      "%%rax, %%r13\n\t"
      "movq %%rax, %%r14\n\tmovq %%rax, %%r15\n\t"
      "pcmpeqd %%xmm0, %%xmm0\n\tmovdqa %%xmm0, %%xmm1\n\tmovdqa %%xmm0, %%xmm2\n\tmovdqa %%xmm0, %%xmm3\n\tmovdqa "
      "%%xmm0, %%xmm4\n\t"
      "movdqa %%xmm0, %%xmm5\n\tmovdqa %%xmm0, %%xmm6\n\tmovdqa %%xmm0, %%xmm7\n\tmovdqa %%xmm0, %%xmm8\n\tmovdqa "
      "%%xmm0, %%xmm9\n\t"
      "movdqa %%xmm0, %%xmm10\n\tmovdqa %%xmm0, %%xmm11\n\tmovdqa %%xmm0, %%xmm12\n\tmovdqa %%xmm0, %%xmm13\n\tmovdqa "
      "%%xmm0, %%xmm14\n\t"
      "movdqa %%xmm0, %%xmm15\n\t" ::
          : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
            "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
            "xmm14", "xmm15", "cc");
#else
  asm volatile(
      "mov x0, #-1\n\tmov x1, x0\n\tmov x2, x0\n\tmov x3, x0\n\tmov x4, x0\n\tmov x5, x0\n\tmov x6, x0\n\tmov x7, "
      "x0\n\tmov x8, x0\n\t"
      "mov x9, x0\n\tmov x10, x0\n\tmov x11, x0\n\tmov x12, x0\n\tmov x13, x0\n\tmov x14, x0\n\tmov x15, x0\n\tmov "
      "x16, x0\n\t"
      "mov x17, x0\n\tmov x19, x0\n\tmov x20, x0\n\tmov x21, x0\n\tmov x22, x0\n\tmov x23, x0\n\tmov x24, x0\n\tmov "
      "x25, x0\n\t"
      "mov x26, x0\n\tmov x27, x0\n\tmov x28, x0\n\t"
      "movi v0.16b, #255\n\tmov v1.16b, v0.16b\n\tmov v2.16b, v0.16b\n\tmov v3.16b, v0.16b\n\tmov v4.16b, v0.16b\n\t"
      "mov v5.16b, v0.16b\n\tmov v6.16b, v0.16b\n\tmov v7.16b, v0.16b\n\tmov v8.16b, v0.16b\n\tmov v9.16b, v0.16b\n\t"
      "mov v10.16b, v0.16b\n\tmov v11.16b, v0.16b\n\tmov v12.16b, v0.16b\n\tmov v13.16b, v0.16b\n\tmov v14.16b, "
      "v0.16b\n\t"
      "mov v15.16b, v0.16b\n\tmov v16.16b, v0.16b\n\tmov v20.16b, v0.16b\n\tmov v24.16b, v0.16b\n\tmov v31.16b, "
      "v0.16b\n\t" ::
          : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
            "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v0", "v1", "v2", "v3", "v4",
            "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v20", "v24", "v31", "cc");
#endif
}

TEST(registers, that_a_callee_must_keep_are_kept) {
  std::mt19937_64 random{20260301};
  side_stack side{[](side_stack& self) {
    for (;;) {
      spoil_registers();
      if (self.suspend().word == 0) return;
    }
  }};
  side.resume();
  for (int round = 0; round < scaled(2000); ++round) {
    register_file in;
    register_file out;
    for (auto& r : in.integers) r = random();
    for (auto& r : in.floats) r = kept_floats == 0 ? 0 : random();
    ramie_test_call_with_registers(
        &in, &out, [](void* s) { static_cast<side_stack*>(s)->resume({1, nullptr}); }, &side);
    ASSERT_EQ(in.integers, out.integers) << "round " << round;
    ASSERT_EQ(in.floats, out.floats) << "round " << round;
  }
  side.resume();
}

TEST(registers, are_kept_on_the_stack_that_is_resumed_too) {
  // The same, seen from the fiber: it holds the registers while the thread's stack overwrites them.
  register_file in;
  register_file out;
  std::uint64_t n = 0x0101'0101'0101'0101u;
  for (auto& r : in.integers) r = n += 0x1111;
  for (auto& r : in.floats) r = kept_floats == 0 ? 0 : (n += 0x1111);
  side_stack side{[&](side_stack& self) {
    ramie_test_call_with_registers(&in, &out, [](void* s) { static_cast<side_stack*>(s)->suspend(); }, &self);
  }};
  side.resume();
  spoil_registers();
  side.resume();
  EXPECT_TRUE(side.ended());
  EXPECT_EQ(in.integers, out.integers);
  EXPECT_EQ(in.floats, out.floats);
}

using lanes = std::uint32_t __attribute__((vector_size(16)));

/// Hides from the compiler where a value comes from, so that it must be carried, and in a register if there is one.
template <class T>
RAMIE_ALWAYS_INLINE T opaque(T value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class T>
RAMIE_ALWAYS_INLINE T opaque_vector(T value) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(value));
#else
  asm volatile("" : "+w"(value));
#endif
  return value;
}

TEST(registers, hold_more_live_values_than_there_are_registers) {
  side_stack side{[](side_stack& self) {
    for (;;) {
      spoil_registers();
      if (self.suspend().word == 0) return;
    }
  }};
  side.resume();
  for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(scaled(5000)); ++round) {
    const std::uint64_t a0 = opaque(round), a1 = opaque(round * 3), a2 = opaque(round * 5), a3 = opaque(round * 7),
                        a4 = opaque(round * 11), a5 = opaque(round * 13), a6 = opaque(round * 17),
                        a7 = opaque(round * 19), a8 = opaque(round * 23), a9 = opaque(round * 29),
                        a10 = opaque(round * 31), a11 = opaque(round * 37), a12 = opaque(round * 41),
                        a13 = opaque(round * 43), a14 = opaque(round * 47), a15 = opaque(round * 53);
    const double base = static_cast<double>(round);
    const double d0 = opaque_vector(base * 0.5), d1 = opaque_vector(base * 1.5), d2 = opaque_vector(base * 2.5),
                 d3 = opaque_vector(base * 3.5), d4 = opaque_vector(base * 4.5), d5 = opaque_vector(base * 5.5),
                 d6 = opaque_vector(base * 6.5), d7 = opaque_vector(base * 7.5), d8 = opaque_vector(base * 8.5),
                 d9 = opaque_vector(base * 9.5);
    const auto n = static_cast<std::uint32_t>(round);
    const lanes v0 = opaque_vector(lanes{n, n + 1, n + 2, n + 3}),
                v1 = opaque_vector(lanes{n + 4, n + 5, n + 6, n + 7}),
                v2 = opaque_vector(lanes{n + 8, n + 9, n + 10, n + 11}),
                v3 = opaque_vector(lanes{~n, ~n - 1, ~n - 2, ~n - 3});
    const float f0 = opaque_vector(static_cast<float>(n) * 0.25f), f1 = opaque_vector(static_cast<float>(n) * 0.75f);
    const long double l0 = static_cast<long double>(round) / 3;

    side.resume({1, nullptr});

    ASSERT_EQ(opaque(a0), round);
    ASSERT_EQ(a1 + a2 + a3 + a4 + a5 + a6 + a7, round * (3 + 5 + 7 + 11 + 13 + 17 + 19));
    ASSERT_EQ(a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15, round * (23 + 29 + 31 + 37 + 41 + 43 + 47 + 53));
    ASSERT_EQ(d0 + d1 + d2 + d3 + d4 + d5 + d6 + d7 + d8 + d9, base * 50);
    const lanes sum = v0 + v1 + v2 + v3;
    ASSERT_EQ(sum[0], 2 * n + 12 + n + ~n);
    ASSERT_EQ(sum[1], 2 * n + 15 + n + ~n - 1);
    ASSERT_EQ(sum[2], 2 * n + 18 + n + ~n - 2);
    ASSERT_EQ(sum[3], 2 * n + 21 + n + ~n - 3);
    ASSERT_EQ(f0 + f1, static_cast<float>(n));
    ASSERT_EQ(l0, static_cast<long double>(round) / 3);
  }
  side.resume();
}

/// A frame of unknown size is addressed by the frame pointer alone.
RAMIE_NOINLINE std::uint64_t sum_around_a_switch(side_stack& side, std::size_t n) {
  auto* numbers = static_cast<volatile std::uint64_t*>(__builtin_alloca(n * sizeof(std::uint64_t)));
  for (std::size_t i = 0; i < n; ++i) numbers[i] = i;
  side.resume({1, nullptr});
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += numbers[i];
  return sum;
}

TEST(registers, include_the_frame_pointer) {
  side_stack side{[](side_stack& self) {
    for (;;) {
      spoil_registers();
      if (self.suspend().word == 0) return;
    }
  }};
  side.resume();
  for (std::size_t n = 1; n < 200; ++n) ASSERT_EQ(sum_around_a_switch(side, n), n * (n - 1) / 2);
  side.resume();
}

#if defined(__x86_64__)

// Only code compiled for AVX-512 keeps masks in registers, and only there switch_context declares them clobbered.
#if defined(__AVX512F__)
TEST(registers, include_mask_registers) {
  side_stack side{[](side_stack& self) {
    for (;;) {
      asm volatile("kxnorw %%k0, %%k0, %%k0" ::: "k1");
      asm volatile("kxnorw %%k1, %%k1, %%k1\n\tkxnorw %%k2, %%k2, %%k2\n\tkxnorw %%k7, %%k7, %%k7" ::
                       : "k1", "k2", "k7");
      if (self.suspend().word == 0) return;
    }
  }};
  side.resume();
  for (unsigned round = 1; round < 1000; ++round) {
    auto mask = static_cast<std::uint16_t>(round);
    asm volatile("" : "+k"(mask));
    side.resume({1, nullptr});
    asm volatile("" : "+k"(mask));
    ASSERT_EQ(mask, static_cast<std::uint16_t>(round));
  }
  side.resume();
}
#endif
#endif

}  // namespace
}  // namespace ramie::detail
