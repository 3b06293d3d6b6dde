#include <ramie/sched/futex.hpp>
#include <ramie/sched/idle_set.hpp>
#include <ramie/sched/worker.hpp>

#include <algorithm>
#include <mutex>

namespace ramie::detail {

namespace {
void set_token(worker& w) noexcept {
  w.idle.store(false, std::memory_order_release);
  w.wake_token.store(1, std::memory_order_release);
  futex_wake(w.wake_token);
}
}  // namespace

void idle_set::enter(worker& w) noexcept {
  std::lock_guard guard{lock_};
  if (w.searching) {
    w.searching = false;
    --searching_;
  }
  w.idle.store(true, std::memory_order_release);
  sleeping_.push_back(&w);  // within the reserve
  update_hint();
}

bool idle_set::leave(worker& w) noexcept {
  std::lock_guard guard{lock_};
  const auto place = std::find(sleeping_.begin(), sleeping_.end(), &w);
  if (place == sleeping_.end()) return false;
  sleeping_.erase(place);
  w.idle.store(false, std::memory_order_release);
  w.searching = true;
  ++searching_;
  update_hint();
  return true;
}

bool idle_set::wake_one(bool even_if_searched) noexcept {
  worker* w = nullptr;
  {
    std::lock_guard guard{lock_};
    if (sleeping_.empty() || (searching_ > 0 && !even_if_searched)) return false;
    w = sleeping_.back();
    sleeping_.pop_back();
    w->searching = true;  // the sleeper reads it after its token
    ++searching_;
    update_hint();
  }
  set_token(*w);
  return true;
}

void idle_set::wake(worker& w) noexcept {
  {
    std::lock_guard guard{lock_};
    const auto place = std::find(sleeping_.begin(), sleeping_.end(), &w);
    if (place == sleeping_.end()) return;  // awake, or on its way
    sleeping_.erase(place);
    update_hint();
  }
  set_token(w);
}

void idle_set::wake_all() noexcept {
  while (wake_one(true)) {
  }
}

bool idle_set::begin_search(worker& w, std::uint32_t workers) noexcept {
  std::lock_guard guard{lock_};
  if (2 * searching_ >= workers && searching_ > 0) return false;
  w.searching = true;
  ++searching_;
  update_hint();
  return true;
}

bool idle_set::end_search(worker& w) noexcept {
  std::lock_guard guard{lock_};
  w.searching = false;
  --searching_;
  update_hint();
  return searching_ == 0 && !sleeping_.empty();
}

}  // namespace ramie::detail
