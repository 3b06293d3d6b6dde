#include <ramie/sched/adaptive_lock.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/sched/backoff.hpp>

namespace ramie::detail {

namespace {
fork_deque* nobody() noexcept { return reinterpret_cast<fork_deque*>(std::uintptr_t{1}); }  // no worker's address
}  // namespace

void adaptive_lock::lock_slowly(fork_deque* me) noexcept {
  others_.lock();
  if (me != nullptr && asymmetric_fences && owner_.load(std::memory_order_relaxed) == nullptr) {
    // Inside before it is known as the owner: whoever sees the owner waits for it.
    inside_.store(1, std::memory_order_relaxed);
    as_owner_ = true;
    owner_.store(me, std::memory_order_release);
    others_.unlock();
    return;
  }
  end_ownership();
}

bool adaptive_lock::try_lock_slowly() noexcept {
  if (!others_.try_lock()) return false;
  end_ownership();
  return true;
}

void adaptive_lock::end_ownership() noexcept {
  const fork_deque* seen = owner_.load(std::memory_order_acquire);
  if (seen != nobody()) {
    owner_.store(nobody(), std::memory_order_relaxed);
    if (seen != nullptr && !RAMIE_PLANT(adaptive_lock_no_fence)) heavy_fence();
    for (int round = 0; inside_.load(std::memory_order_acquire) != 0;) pause_a_little(round);
  }
  as_owner_ = false;
}

}  // namespace ramie::detail
