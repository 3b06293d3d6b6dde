// The switch from one stack to another.
//
// A suspended stack keeps three words: stack pointer, frame pointer, and where to resume. The switch is inline assembly
// that declares every other register clobbered, so the compiler saves only those that are live at the place of the
// switch. It resumes by an indirect jump, never by `ret`: the return-stack predictor would be wrong at each switch
// (measured: 10.7-17 ns with `ret`, 2.0 ns with the jump; see docs/design/context.md).
// The control words of x87, SSE (MXCSR) and FPCR are not switched: they belong to the thread.
#pragma once

#include <ramie/base/config.hpp>

#include <cstdint>

namespace ramie::detail {

struct context {
  void* sp = nullptr;
  void* fp = nullptr;
  void* pc = nullptr;
};

/// What travels with a switch, in registers, from the side that leaves to the side that resumes.
struct transfer {
  std::uintptr_t word;  // sched: which stack left, and what to do with it
  void* worker;
};

/// First function on a fresh stack. Must not return.
using context_entry = void (*)(std::uintptr_t word, void* worker) noexcept;

extern "C" void ramie_context_start() noexcept;  // start_<arch>.S; not callable

/// A context that will call `entry` at the top of a stack. `top` must be 16-byte aligned.
RAMIE_ALWAYS_INLINE context fresh_context(char* top, context_entry entry) noexcept {
  return {top, reinterpret_cast<void*>(entry), reinterpret_cast<void*>(&ramie_context_start)};
}

/// Leaves the current stack, saved in `from`, for `to`. Returns when another context switches back, with what it sent.
/// `from` is complete only when the destination runs: it must not be published before.
RAMIE_ALWAYS_INLINE transfer switch_context(context& from, const context& to, transfer sent) noexcept {
#if defined(__x86_64__)
  void* from_register = &from;
  const void* to_register = &to;
  // Between the load of rsp and the jump the frame description would be wrong, so it says "outermost frame" there.
  asm volatile(
      "leaq 1f(%%rip), %%rcx\n\t"
      "movq %%rsp, 0(%%rdi)\n\t"
      "movq %%rbp, 8(%%rdi)\n\t"
      "movq %%rcx, 16(%%rdi)\n\t"
      "movq 16(%%rsi), %%rcx\n\t"
      "movq 8(%%rsi), %%rbp\n\t"
      "movq 0(%%rsi), %%rsp\n\t"
      ".cfi_remember_state\n\t"
      ".cfi_undefined rip\n\t"
      "jmp *%%rcx\n\t"
      ".cfi_restore_state\n"
      "1:\n\t"
      "endbr64\n\t"
      : "+a"(sent.word), "+d"(sent.worker), "+D"(from_register), "+S"(to_register)
      :
      : "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#if defined(__AVX512F__)
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "cc", "memory");
#elif defined(__aarch64__)
  register std::uintptr_t word asm("x0") = sent.word;
  register void* worker asm("x1") = sent.worker;
  register void* from_register asm("x2") = &from;
  register const void* to_register asm("x3") = &to;
  // gcc uses x18 as an ordinary register on Linux, so it is clobbered like the rest. The jump goes by x17: with BTI
  // that may land on any kind of landing pad.
  asm volatile(
      "adr x17, 1f\n\t"
      "mov x16, sp\n\t"
      "stp x16, x29, [x2]\n\t"
      "str x17, [x2, #16]\n\t"
      "ldr x17, [x3, #16]\n\t"
      "ldp x16, x29, [x3]\n\t"
      "mov sp, x16\n\t"
      ".cfi_remember_state\n\t"
      ".cfi_undefined x30\n\t"
      "br x17\n\t"
      ".cfi_restore_state\n"
      "1:\n\t"
      "hint #36\n\t"  // bti j
      : "+r"(word), "+r"(worker), "+r"(from_register), "+r"(to_register)
      :
      : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20",
        "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
        "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
        "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
  sent.word = word;
  sent.worker = worker;
#endif
  return sent;
}

}  // namespace ramie::detail
