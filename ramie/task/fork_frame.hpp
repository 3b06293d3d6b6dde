// A fork job as its fiber and its thief see it. queue/fork_deque.hpp has the protocol.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/word.hpp>

#include <cstdint>

namespace ramie::detail {

struct fork_deque;
struct promoted_job;

/// A fork job, on the stack of the fiber that forked it. `state` holds the function to run until a worker other than
/// the owner has run it (`done`) or the owner waits for that (a waiter reference). A thief reads the function before
/// the owner can find out about the theft: inside `thieves`.
struct fork_frame {
  using function = void (*)(fork_frame&) noexcept;
  static constexpr std::uint64_t done = 1;

  word<std::uint64_t> state;
  word<fork_deque*> deque;
  promoted_job* promoted;  // set with deque == dead_forks; null there: stolen before that

  /// For waiters and wakers.
  [[nodiscard]] atomic_ref<std::uint64_t> shared_state() noexcept {
    return atomic_ref<std::uint64_t>{*reinterpret_cast<std::uint64_t*>(&state)};
  }
};

/// A frame that need not lie on its fiber's stack, but belongs to something that does (a scope).
struct owned_frame : fork_frame {
  void* owner;
};

}  // namespace ramie::detail
