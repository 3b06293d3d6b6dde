#include <ramie/sched/adaptive_lock.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/sched/backoff.hpp>

#include <algorithm>

namespace ramie::detail {

namespace {
constexpr std::uint8_t patience_least = 7;  // of one who was deprived
constexpr std::uint8_t patience_most = 15;

bool is_deprived(const fork_deque* owner) noexcept { return (reinterpret_cast<std::uintptr_t>(owner) & 1) != 0; }
}  // namespace

void adaptive_lock::lock_slowly(fork_deque* me) noexcept {
  others_.lock();
  if (me != nullptr) me->count_lock();
  if (me != nullptr && asymmetric_fences) {
    if (!was_owned_ && owner_.load(std::memory_order_relaxed) != deprived(me)) {
      streak_ = 0;
      owner_.store(deprived(me), std::memory_order_relaxed);
    }
    const int patience = me->alone && !was_owned_ ? 0 : patience_;
    if (owner_.load(std::memory_order_relaxed) == deprived(me) && ++streak_ >> patience != 0) {
      // Inside before it is known as the owner: whoever sees the owner waits for it.
      streak_ = 0;
      was_owned_ = true;
      inside_.store(1, std::memory_order_relaxed);
      as_owner_ = true;
      owner_.store(me, std::memory_order_release);
      others_.unlock();
      return;
    }
  }
  end_ownership(me);
}

bool adaptive_lock::try_lock_slowly(fork_deque* me) noexcept {
  if (!others_.try_lock()) return false;
  end_ownership(me);
  return true;
}

void adaptive_lock::end_ownership(fork_deque* me) noexcept {
  const fork_deque* seen = owner_.load(std::memory_order_acquire);
  if (!is_deprived(seen)) {
    owner_.store(deprived(seen), std::memory_order_relaxed);
    patience_ = std::clamp<std::uint8_t>(patience_ + 1, patience_least, patience_most);
    if (me != nullptr) me->count_seized();
    if (!RAMIE_PLANT(adaptive_lock_no_fence)) heavy_fence();
    for (int round = 0; inside_.load(std::memory_order_acquire) != 0;) pause_a_little(round);
    streak_ = 0;
  } else if (seen != deprived(me)) {
    streak_ = 0;
  }
  as_owner_ = false;
}

}  // namespace ramie::detail
