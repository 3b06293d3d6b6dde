#include <ramie/machine/fence.hpp>
#include <ramie/machine/futex.hpp>
#include <ramie/worker/event_source.hpp>
#include <ramie/worker/idle_set.hpp>
#include <ramie/worker/worker.hpp>

#include <algorithm>
#include <mutex>

namespace ramie::detail {

namespace {
constexpr std::size_t looked_at_most = 16;  // sleepers, for one nearby: a guess
}  // namespace

void set_token(worker& w) noexcept {
  w.idle.store(false, std::memory_order_relaxed);
  w.wake_token.store(1, std::memory_order_release);
  if (!RAMIE_PLANT(source_wake_no_fence)) full_fence();  // E3
  if (event_source* s = w.sleeps_in.load(std::memory_order_acquire); s != nullptr) s->interrupt();
  else futex_wake(w.wake_token);
}

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
  w.idle.store(false, std::memory_order_relaxed);
  w.searching = true;
  ++searching_;
  update_hint();
  return true;
}

bool idle_set::wake_one(bool even_if_searched, const worker* near) noexcept {
  worker* w = nullptr;
  {
    std::lock_guard guard{lock_};
    if (sleeping_.empty() || (searching_ > 0 && !even_if_searched)) return false;
    auto place = sleeping_.end() - 1;
    // Without a topology all places are unknown, and so the last one is as near as any.
    if (near != nullptr) {
      const std::uint16_t cache = near->last_place().cache;
      const auto few = static_cast<std::ptrdiff_t>(std::min(sleeping_.size(), looked_at_most));
      const auto found = std::find_if(sleeping_.rbegin(), sleeping_.rbegin() + few,
                                      [&](const worker* s) { return s->last_place().cache == cache; });
      if (found != sleeping_.rbegin() + few) place = found.base() - 1;
    }
    w = *place;
    sleeping_.erase(place);
    w->searching = true;  // the sleeper reads it after its token
    ++searching_;
    update_hint();
  }
  set_token(*w);
  return true;
}

bool idle_set::wake(worker& w) noexcept {
  {
    std::lock_guard guard{lock_};
    const auto place = std::find(sleeping_.begin(), sleeping_.end(), &w);
    if (place == sleeping_.end()) return false;
    sleeping_.erase(place);
    update_hint();
  }
  set_token(w);
  return true;
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
