// The wait word (task/wait_word.hpp) under those who have no reference to the wait: inspectors that hold it and let it
// stand, cancellers that meet another occupant, and wakers beside them. Each program is one contest, many times over.
#include "programs.hpp"

#include <ramie/ramie.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/wait.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// Where the fiber under test waits: what a list of waiters is elsewhere.
struct place {
  detail::spin_lock lock;
  detail::waiter_ref waiter;  // under the lock
  detail::atomic<detail::stack*> where{nullptr};
  detail::atomic<bool> over{false};

  /// Wakes the waiter there until it is over. Counts in `claims`.
  void wake_all(int& claims, bool parked_only) {
    while (!over.load(std::memory_order_acquire)) {
      lock.lock();
      detail::claimed_wait won;
      if (waiter && (!parked_only || detail::is_parked(*waiter.who()))) won = detail::claim(std::exchange(waiter, {}));
      lock.unlock();
      if (!won) {
        detail::os_sleep(200);
        continue;
      }
      ++claims;
      won.go_on();
    }
  }
};

constexpr int rounds = 8;

/// A waker with the lock beside an inspector, who cancels: both claim a fiber that has parked, and it goes on on any
/// worker, where it finds its own variables.
template <int n>
void claim_what_is_parked() {
  runtime rt{workers(n)};
  place at;
  int claims = 0;
  int stops = 0;
  int woken = 0;
  int stopped = 0;
  auto fiber = rt.spawn([&] {
    at.where.store(detail::current_worker()->running, std::memory_order_release);
    int mine = 0;
    for (int i = 0; i < rounds; ++i) {
      at.lock.lock();
      detail::wait pause{detail::wait::kind::cancellable, {"test", {}}, detail::wait::wakers::under_one_lock};
      at.waiter = pause.ref();
      at.lock.unlock();
      ++mine;
      if (pause.suspend() == detail::wake_reason::event) {
        ++woken;
      } else {
        ++stopped;
        const std::lock_guard guard{at.lock};
        at.waiter = {};
      }
      check(mine == i + 1, "its own variable is another's");
    }
    at.over.store(true, std::memory_order_release);
  });
  {
    simulated_thread waker{[&] { at.wake_all(claims, true); }};
    simulated_thread inspector{[&] {
      for (int i = 0; i < 2 * rounds && !at.over.load(std::memory_order_acquire); ++i) {
        detail::stack* const s = at.where.load(std::memory_order_acquire);
        if (s == nullptr || !detail::is_parked(*s)) {
          detail::os_sleep(200);
          continue;
        }
        const detail::inspection here;
        if (detail::inspect_and_cancel(here, *s, [](const void*, const void*) { return true; }, nullptr)) ++stops;
      }
    }};
  }
  fiber.join();
  check(woken == claims && stopped == stops, "a wait was won twice, or by nobody");
}
TEST(a_parked_fiber, is_claimed_by_a_waker_or_an_inspector) {
  expect_sound("claim what is parked", {.seeds = 3000}, claim_what_is_parked<1>);
  expect_sound("claim what is parked, two workers", {.seeds = 3000}, claim_what_is_parked<2>);
}
TEST(a_parked_fiber, that_is_claimed_beside_an_inspector_is_found) {
  expect_found(plant::claimed_beside_inspector, "claimed beside an inspector, parked", {.seeds = 20'000},
               claim_what_is_parked<1>);
}

/// An inspector holds the wait of a fiber that may not have parked yet, reads its task and its wait, and lets it stand;
/// then it is woken, goes on elsewhere, ends, and its memory serves the next.
template <int n>
void let_a_wait_stand() {
  runtime rt{workers(n)};
  place at;
  detail::atomic<int> left{rounds};
  int claims = 0;
  const auto one = [&](auto& self) -> void {
    {
      at.lock.lock();
      detail::wait pause{detail::wait::kind::cancellable, {"test", {}}};
      at.waiter = pause.ref();
      at.lock.unlock();
      at.where.store(detail::current_worker()->running, std::memory_order_release);
      if (pick(3) == 0) detail::os_sleep(pick(3000));  // preempted before it suspends
      check(pause.suspend() == detail::wake_reason::event, "a wait that was let stand was cancelled");
    }
    if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) at.over.store(true, std::memory_order_release);
    else spawn([&self] { self(self); }).detach();
  };
  rt.spawn([&one] { one(one); }).detach();
  {
    simulated_thread waker{[&] { at.wake_all(claims, false); }};
    simulated_thread inspector{[&] {
      for (int i = 0; i < 3 * rounds && !at.over.load(std::memory_order_acquire); ++i) {
        detail::stack* const s = at.where.load(std::memory_order_acquire);
        if (s == nullptr) continue;
        const detail::inspection here;
        if (const std::uint32_t word = pick(2) == 0 ? detail::try_hold_parked(here, *s) : 0; word != 0) {
          check(detail::wait::facts(*s->waiting).site != nullptr, "a wait without a place");
          detail::let_stand(*s, word);
        } else {
          const auto refuse = [](const void*, const void* occupant) {
            check(static_cast<const detail::task*>(occupant)->parent == nullptr, "a strand");
            return false;
          };
          check(!detail::inspect_and_cancel(here, *s, refuse, nullptr), "cancelled although it was refused");
        }
      }
    }};
  }
}
TEST(a_wait, that_an_inspector_lets_stand_goes_on) {
  expect_sound("let a wait stand", {.seeds = 2000}, let_a_wait_stand<1>);
  expect_sound("let a wait stand, two workers", {.seeds = 2000}, let_a_wait_stand<2>);
}

/// What the fiber writes into its wait after it has armed it: the limits of the regions around.
void look_at_a_limited_wait() {
  runtime rt{workers(2)};
  detail::atomic<detail::stack*> where{nullptr};
  detail::atomic<bool> over{false};
  auto fiber = rt.spawn([&] {
    where.store(detail::current_worker()->running, std::memory_order_release);
    with_timeout(1h, [] {
      for (int i = 0; i < rounds; ++i) this_fiber::sleep_for(2us);
    });
    over.store(true, std::memory_order_release);
  });
  {
    simulated_thread inspector{[&] {
      for (int i = 0; i < 6 * rounds && !over.load(std::memory_order_acquire); ++i) {
        detail::stack* const s = where.load(std::memory_order_acquire);
        if (s == nullptr) continue;
        const detail::inspection here;
        const std::uint32_t word = detail::try_hold_parked(here, *s);
        if (word == 0) continue;
        check(detail::wait::facts(*s->waiting).since_ns >= 0, "a wait that began before time");
        detail::let_stand(*s, word);
      }
    }};
  }
  fiber.join();
}
TEST(a_wait, may_be_looked_at_within_limits) {
  expect_sound("look at a limited wait", {.seeds = 2000}, look_at_a_limited_wait);
}

/// A canceller that means one fiber meets its stack when the next one has it.
void cancel_one_occupant() {
  runtime rt{workers(1)};
  detail::atomic<const void*> meant{nullptr};
  detail::atomic<detail::stack*> where{nullptr};
  detail::atomic<bool> over{false};
  auto program = rt.spawn([&] {
    std::array<std::optional<join_handle<void>>, 2 * rounds> all;  // kept, so that no task has another's address
    for (std::size_t i = 0; i < all.size(); i += 2) {
      // The second one runs first, as the newest, and the other one begins on the same stack.
      all[i] = spawn([] { this_fiber::sleep_for(1us); });
      all[i + 1] = spawn([&] {
        where.store(detail::current_worker()->running, std::memory_order_relaxed);
        meant.store(detail::this_task(), std::memory_order_release);
        if (pick(4) != 0) return;
        try {
          this_fiber::sleep_for(1us);
        } catch (const cancelled&) {
        }
      });
      all[i]->join();  // it would throw `cancelled`
    }
    over.store(true, std::memory_order_release);
    for (auto& one : all)
      if (one->joinable()) one->join();
  });
  {
    simulated_thread canceller{[&] {
      while (!over.load(std::memory_order_acquire)) {
        const void* whom = meant.load(std::memory_order_acquire);
        if (whom == nullptr || pick(4) == 0) {
          detail::os_sleep(200);
          continue;
        }
        const detail::inspection here;
        detail::inspect_and_cancel(
            here, *where.load(std::memory_order_relaxed),
            [](const void* context, const void* occupant) { return context == occupant; }, whom);
      }
    }};
  }
  program.join();
}
TEST(a_canceller, reaches_its_own_alone) { expect_sound("cancel one occupant", {.seeds = 3000}, cancel_one_occupant); }

}  // namespace
}  // namespace ramie::interleave
