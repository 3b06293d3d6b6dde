#include <ramie/sched/adaptive_lock.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/sched/backoff.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace ramie::detail {

namespace {
constexpr std::uint8_t patience_least = RAMIE_INTERLEAVE ? 1 : 7;  // of one who was deprived, or comes second
constexpr std::uint8_t patience_most = RAMIE_INTERLEAVE ? 2 : 15;

constexpr int deprive_rounds = RAMIE_INTERLEAVE ? 3 : 200;

bool is_deprived(const fork_deque* owner) noexcept { return (reinterpret_cast<std::uintptr_t>(owner) & 1) != 0; }

/// The ids of workers that ended are used again: they are inside no lock.
class lock_ids {
 public:
  std::uint16_t take() {
    std::lock_guard guard{lock_};
    free_.reserve(std::size_t{last_} + 1);  // so that none has to be forgotten
    if (!free_.empty()) {
      const std::uint16_t id = free_.back();
      free_.pop_back();
      return id;
    }
    return last_ == UINT16_MAX ? std::uint16_t{0} : ++last_;
  }
  void give(std::uint16_t id) noexcept {
    if (id == 0) return;
    std::lock_guard guard{lock_};
    free_.push_back(id);
  }

 private:
  std::mutex lock_;  // held for a moment only: not an object of the interleaving tests
  std::vector<std::uint16_t> free_;
  std::uint16_t last_ = 0;
};

lock_ids& all_ids() {
  static lock_ids* const ids = new lock_ids;  // workers may end after the program's statics
  return *ids;
}

fork_deque* with(std::uintptr_t bit, const fork_deque* who) noexcept {
  return reinterpret_cast<fork_deque*>(reinterpret_cast<std::uintptr_t>(who) | bit);
}
}  // namespace

lock_identity::lock_identity() : id_{all_ids().take()} {}

lock_identity::~lock_identity() { all_ids().give(id_); }

/// Where `me` may own it; `slots`: nowhere.
std::uint8_t adaptive_lock::slot_for(const fork_deque* me) const noexcept {
  if (me == nullptr || me->lock_id == 0 || !asymmetric_fences) return slots;
  for (std::uint8_t i = 0; i < slots; ++i)
    if (slot_users_[i] == me->lock_id || slot_users_[i] == 0) return i;
  return RAMIE_PLANT(adaptive_lock_slot_taken) ? slots - 1 : slots;
}

bool adaptive_lock::enter_as_second(fork_deque* me) noexcept {
  if (me == nullptr) return false;
  fork_deque* const second = with(second_bit, me);
  if (owner_.load(std::memory_order_relaxed) != second) return false;
  inside_[1].store(1, std::memory_order_relaxed);
  compiler_fence();
  if (owner_.load(std::memory_order_relaxed) != second) [[unlikely]] {
    inside_[1].store(0, std::memory_order_release);
    return false;
  }
  held_in_ = 1;
  me->count_lock();
  return true;
}

void adaptive_lock::lock_slowly(fork_deque* me) noexcept {
  if (enter_as_second(me)) return;
  others_.lock();
  if (me != nullptr) me->count_lock();
  const std::uint8_t slot = slot_for(me);
  if (slot == slots) return end_ownership(me);
  if (const fork_deque* seen = owner_.load(std::memory_order_relaxed); seen != deprived(me)) {
    if (seen != deprived(nullptr)) me->count_crossed();
    end_ownership(me);
    streak_ = 0;
    owner_.store(deprived(me), std::memory_order_relaxed);
  }
  held_in_ = slots;
  const int patience = me->alone && slot_users_[0] == 0 ? 0 : patience_;
  if (++streak_ >> patience == 0) return;
  // Inside before it is known as the owner: whoever sees the owner waits for it.
  streak_ = 0;
  slot_users_[slot] = me->lock_id;
  inside_[slot].store(1, std::memory_order_relaxed);
  held_in_ = slot;
  owner_.store(slot == 0 ? me : with(second_bit, me), std::memory_order_release);
  others_.unlock();
}

bool adaptive_lock::try_lock_slowly(fork_deque* me) noexcept {
  if (enter_as_second(me)) return true;
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
    for (const auto& inside : inside_)
      for (int round = 0; inside.load(std::memory_order_acquire) != 0;) pause_a_little(round);
    streak_ = 0;
  } else if (seen != deprived(me)) {
    streak_ = 0;
  }
  held_in_ = slots;
}

bool adaptive_lock::is_free_of_owners() const noexcept {
  bool is_free = true;
  for (const auto& inside : inside_) is_free = is_free && inside.load(std::memory_order_acquire) == 0;
  return is_free;
}

std::size_t adaptive_lock::deprive_all(adaptive_lock* const* all, std::size_t n, const fork_deque* to) noexcept {
  struct taken {
    adaptive_lock* lock;
    fork_deque* owner;
  };
  std::array<taken, deprived_most> held;
  std::size_t count = 0;
  for (std::size_t i = 0; i < n && count < held.size(); ++i) {
    adaptive_lock* const a = all[i];
    if (a == nullptr) continue;
    const fork_deque* const seen = a->owner_.load(std::memory_order_relaxed);
    if (is_deprived(seen) || (to != nullptr && (seen == to || seen == with(second_bit, to))) || !a->others_.try_lock())
      continue;
    fork_deque* const owner = a->owner_.load(std::memory_order_relaxed);
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
    bool is_free = a.is_free_of_owners();
    for (int round = 0; round < deprive_rounds && !is_free; ++round) {
      spin_pause();
      is_free = a.is_free_of_owners();
    }
    if (is_free) a.owner_.store(deprived(nullptr), std::memory_order_relaxed);
    else a.owner_.store(held[i].owner, std::memory_order_relaxed);
    a.others_.unlock();
  }
  return count;
}

}  // namespace ramie::detail
