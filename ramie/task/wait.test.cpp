// One claim wins each wait: among wakers, timeouts, cancellation and withdrawal; for fibers and for plain threads.
#include <ramie/task/wait.hpp>

#include <ramie/sched/testing.hpp>
#include <ramie/task/timer_queue.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

/// Claims what `occupant` waits for on `s`.
bool wake_cancelled(const inspection& during, stack& s, const void* occupant) {
  return inspect_and_cancel(during, s, [](const void* whom, const void* there) { return whom == there; }, occupant);
}

using namespace std::chrono_literals;
using testing::countdown;
using testing::hold_until;
using testing::run_on;
using testing::scaled;

TEST(waiter_refs, carry_extreme_addresses_and_epochs) {
  constexpr std::uintptr_t addresses[] = {
      0x40, 0x1000, 0x7fff'ffff'ffc0, 0x0000'ffff'ffff'ffc0, 0x5555'5555'5540, 0x2aaa'aaaa'aa80, 0x0000'8000'0000'0000};
  constexpr std::uint32_t epochs[] = {0,      1,       0x3e,      0x3f,      0x40,      0x41,
                                      0xffff, 0x10000, 0x15'5555, 0x2a'aaaa, 0x3f'fffe, 0x3f'ffff};
  for (const std::uintptr_t address : addresses)
    for (const std::uint32_t epoch : epochs) {
      const auto* s = reinterpret_cast<const stack*>(address);  // NOLINT(performance-no-int-to-ptr)
      const waiter_ref ref{s, epoch};
      EXPECT_EQ(ref.who(), s);
      EXPECT_EQ(ref.epoch(), epoch);
      EXPECT_TRUE(static_cast<bool>(ref));
      EXPECT_EQ(waiter_ref::from_bits(ref.bits()).who(), s);
      EXPECT_EQ(waiter_ref::from_bits(ref.bits()).epoch(), epoch);
    }
}

TEST(waiter_refs, keep_the_low_22_bits_of_an_epoch) {
  const auto* s =
      reinterpret_cast<const stack*>(std::uintptr_t{0x7fff'ffff'ffc0});  // NOLINT(performance-no-int-to-ptr)
  EXPECT_EQ((waiter_ref{s, 0x07ff'ffff}.epoch()), 0x3f'ffffu);
  EXPECT_EQ((waiter_ref{s, 0x0040'0000}.epoch()), 0u);
  EXPECT_EQ((waiter_ref{s, 0x0740'0001}.who()), s);
  EXPECT_EQ((waiter_ref::of(s, 0xffff'ffff).epoch()), 0x3f'ffffu);
  EXPECT_EQ((waiter_ref::of(s, 0x0001'2fff).epoch()), 0x4bu);
  EXPECT_EQ((waiter_ref::of(s, 0xffff'ffff).who()), s);
}

TEST(waiter_refs, name_nobody_at_first) {
  EXPECT_FALSE(static_cast<bool>(waiter_ref{}));
  EXPECT_EQ(waiter_ref{}.bits(), 0u);
}

TEST(waits, of_a_descriptor_survive_the_wrap_of_its_epoch) {
  stack s{};
  for (const std::uint32_t epoch : {0x1f'ffffu, 0x3f'ffffu}) {
    s.wait_word.store(epoch << wait_word::epoch_shift | wait_word::armed);
    const waiter_ref ref{&s, epoch};
    EXPECT_TRUE(wake(ref, wake_reason::timeout));
    EXPECT_FALSE(wake(ref));
    EXPECT_EQ(s.wait_word.load() & wait_word::state_mask, wait_word::running);
    EXPECT_EQ(s.wait_word.load() >> wait_word::epoch_shift, (epoch + 1) & 0x3f'ffff);
  }
}

/// A slot where a waiter publishes, one after the other, the wait that it is in.
struct board {
  std::atomic<std::uint64_t> ref{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> won[3] = {};  // by reason

  /// Claims whatever wait is published, with `reason`, until the end. Stale references too: they must do nothing.
  void wake_all_along(wake_reason reason, unsigned seed) {
    std::mt19937 random{seed};
    std::uint64_t old = 0;
    while (!over.load(std::memory_order_acquire)) {
      const std::uint64_t now = ref.load(std::memory_order_acquire);
      if (now != 0 && wake(waiter_ref::from_bits(now), reason))
        won[static_cast<int>(reason)].fetch_add(1, std::memory_order_relaxed);
      if (old != 0 && old != now && wake(waiter_ref::from_bits(old), reason))
        won[static_cast<int>(reason)].fetch_add(1, std::memory_order_relaxed);
      old = now;
      if (random() % 4 == 0) ::sched_yield();
    }
  }
};

class waits : public ::testing::TestWithParam<bool> {
 protected:
  /// Runs `f` as a fiber, or on this plain thread.
  template <class F>
  void in_either(F f) {
    if (GetParam()) testing::on_two_workers(f);
    else f();
  }
};
INSTANTIATE_TEST_SUITE_P(on, waits, ::testing::Bool(), [](const auto& p) { return p.param ? "fiber" : "thread"; });

TEST_P(waits, are_won_by_one_of_many_wakers) {
  const int rounds = scaled(50'000);
  board b;
  std::vector<std::thread> wakers;
  std::uint64_t reasons[3] = {};
  // Three kinds of wakers, so that the reason tells which one won.
  for (unsigned i = 0; i < 3; ++i) wakers.emplace_back([&b, i] { b.wake_all_along(static_cast<wake_reason>(i), i); });
  in_either([&] {
    for (int i = 0; i < rounds; ++i) {
      wait pause{wait::kind::uninterruptible};
      b.ref.store(pause.ref().bits(), std::memory_order_release);
      ++reasons[static_cast<int>(pause.suspend())];
      // Sometimes the reference stays where wakers find it, although the wait is over.
      if (i % 2 == 0) b.ref.store(0, std::memory_order_release);
    }
  });
  b.over.store(true, std::memory_order_release);
  for (std::thread& t : wakers) t.join();
  for (int r = 0; r < 3; ++r) EXPECT_EQ(reasons[r], b.won[r].load()) << "reason " << r;
  EXPECT_EQ(reasons[0] + reasons[1] + reasons[2], static_cast<std::uint64_t>(rounds));
}

TEST_P(waits, that_are_over_cannot_be_won) {
  in_either([] {
    waiter_ref old;
    {
      wait pause{wait::kind::uninterruptible};
      old = pause.ref();
      EXPECT_TRUE(wake(old));
      EXPECT_FALSE(wake(old));
      EXPECT_EQ(pause.suspend(), wake_reason::event);
    }
    EXPECT_FALSE(wake(old));
    wait next{wait::kind::uninterruptible};
    EXPECT_FALSE(wake(old));
    EXPECT_TRUE(next.withdraw());
    EXPECT_FALSE(wake(next.ref()));
  });
}

TEST_P(waits, are_withdrawn_or_won) {
  const int rounds = scaled(100'000);
  board b;
  std::vector<std::thread> wakers;
  for (unsigned i = 0; i < 2; ++i) wakers.emplace_back([&b, i] { b.wake_all_along(wake_reason::event, i); });
  std::uint64_t lost = 0;
  std::uint64_t withdrawn = 0;
  in_either([&] {
    for (int i = 0; i < rounds; ++i) {
      wait pause{wait::kind::uninterruptible};
      b.ref.store(pause.ref().bits(), std::memory_order_release);
      for (int spin = i % 50; spin > 0; --spin) spin_pause();
      if (pause.withdraw()) {
        ++withdrawn;
      } else {
        ++lost;
        EXPECT_EQ(pause.suspend(), wake_reason::event);
      }
    }
  });
  b.over.store(true, std::memory_order_release);
  for (std::thread& t : wakers) t.join();
  EXPECT_EQ(lost, b.won[0].load());
  EXPECT_EQ(lost + withdrawn, static_cast<std::uint64_t>(rounds));
}

TEST_P(waits, end_by_timeout_or_event) {
  const int rounds = scaled(20'000);
  board b;
  std::uint64_t events = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t early = 0;
  std::thread waker{[&] {
    // Wakes after about as long as the wait takes.
    std::uint64_t last = 0;
    std::mt19937 random{5};
    while (!b.over.load(std::memory_order_acquire)) {
      const std::uint64_t now = b.ref.load(std::memory_order_acquire);
      if (now == last) {
        ::sched_yield();
        continue;
      }
      last = now;
      const auto until = steady::now() + std::chrono::microseconds{random() % 60};
      hold_until([&] { return steady::now() >= until; });
      if (wake(waiter_ref::from_bits(now))) b.won[0].fetch_add(1, std::memory_order_relaxed);
    }
  }};
  in_either([&] {
    for (int i = 0; i < rounds; ++i) {
      wait pause{wait::kind::uninterruptible};
      const auto deadline = steady::now() + std::chrono::microseconds{i % 60};
      b.ref.store(pause.ref().bits(), std::memory_order_release);
      if (pause.suspend_until(deadline) == wake_reason::event) {
        ++events;
      } else {
        ++timeouts;
        if (steady::now() < deadline) ++early;
      }
    }
  });
  b.over.store(true, std::memory_order_release);
  waker.join();
  EXPECT_EQ(events, b.won[0].load());
  EXPECT_EQ(events + timeouts, static_cast<std::uint64_t>(rounds));
  EXPECT_EQ(early, 0u);
}

TEST_P(waits, with_a_deadline_in_the_past_end_at_once) {
  in_either([] {
    for (int i = 0; i < 100; ++i) {
      wait pause{wait::kind::uninterruptible};
      EXPECT_EQ(pause.suspend_until(steady::now() - 1h), wake_reason::timeout);
      EXPECT_FALSE(wake(pause.ref()));
    }
  });
}

TEST_P(waits, with_the_earliest_deadline_end_at_once) {
  in_either([] {
    wait pause{wait::kind::uninterruptible};
    EXPECT_EQ(pause.suspend_until(steady::time_point::min()), wake_reason::timeout);
  });
}

TEST_P(waits, with_a_far_deadline_end_by_an_event) {
  in_either([] {
    wait pause{wait::kind::uninterruptible};
    std::thread waker{[ref = pause.ref()] {
      std::this_thread::sleep_for(2ms);
      EXPECT_TRUE(wake(ref));
    }};
    EXPECT_EQ(pause.suspend_until(steady::time_point::max()), wake_reason::event);
    waker.join();
  });
}

TEST(cancellation, ends_a_wait_that_allows_it) {
  scheduler runtime{testing::with_workers(2)};
  std::atomic<task*> self{nullptr};
  std::atomic<int> reason{-1};
  std::atomic<bool> may_end{false};
  testing::start(runtime, [&] {
    self.store(current_worker()->running_task());
    wait pause{wait::kind::cancellable};
    reason.store(static_cast<int>(pause.suspend()));
    hold_until([&] { return may_end.load(); });  // the task must live until request_stop has returned
  });
  hold_until([&] { return self.load() != nullptr; });
  request_stop(*self.load());
  may_end.store(true);
  hold_until([&] { return reason.load() >= 0; });
  EXPECT_EQ(reason.load(), static_cast<int>(wake_reason::cancelled));
  runtime.stop();
}

TEST(cancellation, leaves_other_waits_alone) {
  scheduler runtime{testing::with_workers(2)};
  std::atomic<task*> self{nullptr};
  std::atomic<std::uint64_t> ref{0};
  std::atomic<int> reason{-1};
  std::atomic<int> next_reason{-1};
  testing::start(runtime, [&] {
    wait pause{wait::kind::uninterruptible};
    self.store(current_worker()->running_task());
    ref.store(pause.ref().bits());
    reason.store(static_cast<int>(pause.suspend()));
    // But it is not forgotten: the next cancellable wait ends at once.
    wait next{wait::kind::cancellable};
    next_reason.store(static_cast<int>(next.suspend()));
  });
  hold_until([&] { return ref.load() != 0; });
  request_stop(*self.load());
  EXPECT_EQ(reason.load(), -1);
  EXPECT_TRUE(wake(waiter_ref::from_bits(ref.load())));
  hold_until([&] { return next_reason.load() >= 0; });
  EXPECT_EQ(reason.load(), static_cast<int>(wake_reason::event));
  EXPECT_EQ(next_reason.load(), static_cast<int>(wake_reason::cancelled));
  runtime.stop();
}

TEST(cancellation, and_events_race_for_a_wait) {
  // Each fiber waits once. Event or cancellation, whichever comes first; the waker knows which it was.
  scheduler runtime{testing::with_workers(2)};
  std::uint64_t by_event = 0;
  std::uint64_t by_cancel = 0;
  // On a starved machine a round may take many time slices: then only as many rounds as there is time for.
  const std::int64_t enough_ns = now_ns() + 20'000'000'000;
  int round = 0;
  for (; round < scaled(20'000) && (round < 100 || now_ns() < enough_ns); ++round) {
    std::atomic<task*> self{nullptr};
    std::atomic<std::uint64_t> ref{0};
    std::atomic<int> reason{-1};
    std::atomic<bool> may_end{false};
    std::atomic<bool> ended{false};
    testing::start(runtime, [&] {
      self.store(current_worker()->running_task());
      if (round % 2 != 0)
        for (int spin = round % 500; spin > 0; --spin)
          spin_pause();  // the stop request comes before, while, after it arms
      wait pause{wait::kind::cancellable};
      ref.store(pause.ref().bits());
      reason.store(static_cast<int>(pause.suspend()));
      // The task must live until request_stop has returned.
      hold_until([&] { return may_end.load(); });
      ended.store(true);
    });
    std::atomic<bool> stopped{false};
    std::thread canceller;
    hold_until([&] { return self.load() != nullptr; });
    if (round % 4 == 0) {
      canceller = std::thread{[&] {
        request_stop(*self.load());
        stopped.store(true);
      }};
    } else {
      request_stop(*self.load());
      stopped.store(true);
    }
    hold_until([&] { return ref.load() != 0; });
    const bool won = wake(waiter_ref::from_bits(ref.load()));
    hold_until([&] { return reason.load() >= 0 && stopped.load(); });
    ASSERT_EQ(reason.load(), static_cast<int>(won ? wake_reason::event : wake_reason::cancelled));
    ++(won ? by_event : by_cancel);
    if (canceller.joinable()) canceller.join();
    may_end.store(true);
    hold_until([&] { return ended.load(); });
  }
  EXPECT_GT(by_cancel, 0u);
  EXPECT_EQ(by_event + by_cancel, static_cast<std::uint64_t>(round));
  runtime.stop();
}

TEST(cancellation, cancels_only_the_occupant_that_was_meant) {
  stack s{};
  int someone = 0;
  int other = 0;
  s.occupant.store(&someone);
  s.wait_word.store(5u << wait_word::epoch_shift | wait_word::cancellable | wait_word::armed);
  EXPECT_FALSE(wake_cancelled(inspection{}, s, &other));
  EXPECT_TRUE(wake_cancelled(inspection{}, s, &someone));
  EXPECT_FALSE(wake_cancelled(inspection{}, s, &someone));
}

TEST(inspection, holds_wakers_off_and_gives_way) {
  // A parked fiber that is inspected all the time still gets each of its wake-ups.
  scheduler runtime{testing::with_workers(2)};
  std::atomic<stack*> whose{nullptr};
  std::atomic<bool> over{false};
  std::thread inspector{[&] {
    while (!over.load(std::memory_order_acquire)) {
      if (stack* s = whose.load(); s != nullptr)
        inspect_and_cancel(inspection{}, *s, [](const void*, const void*) { return false; }, nullptr);
    }
  }};
  std::atomic<std::uint64_t> ref{0};
  const int rounds = scaled(20'000);
  std::atomic<int> failed{0};
  std::thread waker{[&] {
    for (std::uint64_t last = 0; !over.load(std::memory_order_acquire);) {
      const std::uint64_t now = ref.load(std::memory_order_acquire);
      if (now != last && now != 0 && !wake(waiter_ref::from_bits(now))) failed.fetch_add(1);
      if (now == last) ::sched_yield();
      last = now;
    }
  }};
  run_on(runtime, [&] {
    for (int i = 0; i < rounds; ++i) {
      wait pause{wait::kind::cancellable};
      whose.store(current_worker()->running);
      ref.store(pause.ref().bits(), std::memory_order_release);
      EXPECT_EQ(pause.suspend(), wake_reason::event);
    }
    whose.store(nullptr);
  });
  over.store(true, std::memory_order_release);
  waker.join();
  inspector.join();
  EXPECT_EQ(failed.load(), 0);
  runtime.stop();
}

}  // namespace
}  // namespace ramie::detail
