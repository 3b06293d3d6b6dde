// Functions of the program's that are called for what happens in one runtime, or in all.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/scheduler.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace ramie::detail {

/// One of them, with what else it knows.
template <class Extra>
struct watch {
  const scheduler* in;  // null: all
  Extra what;
  std::shared_mutex calls{};  // shared by those that call it
  bool over = false;          // `calls`

  watch(const scheduler* s, Extra w) : in{s}, what{std::move(w)} {}
};

/// A list that is read often and changed seldom.
template <class Extra>
class watches {
 public:
  using entry = std::shared_ptr<watch<Extra>>;

  void add(entry fresh) {
    auto all = std::make_shared<std::vector<entry>>();
    const std::lock_guard guard{lock_};
    if (seen_ != nullptr) *all = *seen_;
    all->push_back(std::move(fresh));
    put(std::move(all));
  }
  /// It is not called any more, and no call is under way, when this returns.
  void remove(const entry& old) noexcept {
    {
      const std::lock_guard after_calls{old->calls};
      old->over = true;
    }
    try {
      auto all = std::make_shared<std::vector<entry>>();
      const std::lock_guard guard{lock_};
      *all = *seen_;
      std::erase(*all, old);
      put(std::move(all));
    } catch (const std::bad_alloc&) {
      // It stays, and does nothing.
    }
  }
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }
  /// Calls `f(what)` of each that concerns an actor whose home that is. The runtime of `home` may have ended.
  template <class F>
  void for_each(const worker* home, F f) {
    std::shared_ptr<const std::vector<entry>> all;
    {
      const std::lock_guard guard{lock_};
      all = seen_;
    }
    if (all == nullptr) return;
    for (const entry& e : *all) {
      const std::shared_lock guard{e->calls};
      if (!e->over && (e->in == nullptr || has(*e->in, home))) f(e->what);
    }
  }

 private:
  /// By address alone: a worker that has ended is not looked at.
  static bool has(const scheduler& s, const worker* w) noexcept {
    for (std::size_t i = 0; i < s.worker_count(); ++i)
      if (&s.at(i) == w) return true;
    return false;
  }
  void put(std::shared_ptr<const std::vector<entry>> all) {
    count_.store(all->size(), std::memory_order_relaxed);
    seen_ = std::move(all);
  }

  os_mutex lock_;
  std::shared_ptr<const std::vector<entry>> seen_;
  atomic<std::size_t> count_{0};
};

}  // namespace ramie::detail
