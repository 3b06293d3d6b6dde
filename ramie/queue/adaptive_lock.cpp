#include <ramie/queue/adaptive_lock.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/machine/backoff.hpp>

#include <algorithm>
#include <array>

namespace ramie::detail {

namespace {
constexpr std::uint8_t patience_least = RAMIE_INTERLEAVE ? 1 : 7;  // of a deprived owner; a guess
constexpr std::uint8_t patience_most = RAMIE_INTERLEAVE ? 2 : 15;

constexpr int deprive_rounds = RAMIE_INTERLEAVE ? 3 : 200;  // pauses, some microseconds: a guess

bool is_deprived(const worker_base* owner) noexcept { return (reinterpret_cast<std::uintptr_t>(owner) & 1) != 0; }

}  // namespace

void adaptive_lock::lock_slowly(worker_base* me) noexcept {
  others_.lock();
  if (me != nullptr) me->count_lock();
  if (me == nullptr || !asymmetric_fences) {
    end_ownership(me);
    streak_ = 0;
    return;
  }
  const worker_base* const seen = owner_.load(std::memory_order_relaxed);
  const bool is_mine = seen == deprived(me);
  if (is_mine ? was_owned_ && streak_ == 0 : !is_deprived(seen) || streak_ != 0) me->count_crossed();
  end_ownership(me);
  if (!is_mine) {
    streak_ = 0;
    if (was_owned_ && !RAMIE_PLANT(adaptive_lock_second_owner)) return;
    owner_.store(deprived(me), std::memory_order_relaxed);
  }
  const int patience = me->alone && !was_owned_ && patience_ != endless ? 0 : patience_;
  if (++streak_ >> patience == 0) return;
  // Inside before it is known as the owner: a thread that sees the owner waits for it.
  streak_ = 0;
  was_owned_ = true;
  inside_.store(1, std::memory_order_relaxed);
  held_by_other_ = false;
  owner_.store(me, std::memory_order_relaxed);
  others_.unlock();
}

bool adaptive_lock::try_lock_slowly(worker_base* me) noexcept {
  if (!others_.try_lock()) return false;
  end_ownership(me);
  if (owner_.load(std::memory_order_relaxed) != deprived(me)) streak_ = 0;
  return true;
}

/// B2.
void adaptive_lock::end_ownership(worker_base* me) noexcept {
  if (const worker_base* seen = owner_.load(std::memory_order_relaxed); !is_deprived(seen)) {
    owner_.store(deprived(seen), std::memory_order_relaxed);
    patience_ = std::clamp<std::uint8_t>(patience_ + 1, patience_least, patience_most);
    if (me != nullptr) me->count_seized();
    if (!RAMIE_PLANT(adaptive_lock_no_fence)) heavy_fence();
    for (int round = 0; inside_.load(std::memory_order_acquire) != 0;) pause_a_little(round);
    streak_ = 0;
  }
  held_by_other_ = true;
}

void adaptive_lock::have_no_owner() noexcept {
  const std::lock_guard guard{others_};
  end_ownership(current_worker());
  patience_ = endless;
}

void adaptive_lock::may_be_owned(std::uint8_t patience) noexcept {
  const std::lock_guard guard{others_};
  patience_ = patience;
}

std::size_t adaptive_lock::deprive_all(adaptive_lock* const* all, std::size_t n, const worker_base* to) noexcept {
  struct taken {
    adaptive_lock* lock;
    worker_base* owner;
  };
  std::array<taken, deprived_most> held;
  std::size_t count = 0;
  for (std::size_t i = 0; i < n && count < held.size(); ++i) {
    adaptive_lock* const a = all[i];
    if (a == nullptr) continue;
    const worker_base* const seen = a->owner_.load(std::memory_order_relaxed);
    if (is_deprived(seen) || seen == to || !a->others_.try_lock()) continue;
    worker_base* const owner = a->owner_.load(std::memory_order_relaxed);
    if (is_deprived(owner)) {
      a->others_.unlock();
      continue;
    }
    a->owner_.store(deprived(owner), std::memory_order_relaxed);
    held[count++] = {a, owner};
  }
  if (count == 0) return 0;
  if (!RAMIE_PLANT(deprive_all_no_fence)) heavy_fence();
  for (std::size_t i = 0; i < count; ++i) {
    adaptive_lock& a = *held[i].lock;
    int round = 0;
    while (a.inside_.load(std::memory_order_acquire) != 0 && round++ < deprive_rounds) spin_pause();
    if (round > deprive_rounds) a.owner_.store(held[i].owner, std::memory_order_relaxed);
    a.streak_ = 0;
    a.others_.unlock();
  }
  return count;
}

}  // namespace ramie::detail
