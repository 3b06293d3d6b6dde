// Claims: the claimed waiter sees what is handed over, exactly one of claims, timeouts, cancellations
// and withdrawals wins, and a thread that meets a held wait spins until it is released.
#include <ramie/task/wait.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using namespace std::chrono_literals;
using testing::hold_until;
using testing::run_on;
using testing::scaled;
using testing::start;

class claims : public ::testing::TestWithParam<bool> {
 protected:
  /// Runs `f` as a fiber, or on this plain thread.
  template <class F>
  void in_either(F f) {
    if (GetParam()) testing::on_two_workers(f);
    else f();
  }
};
INSTANTIATE_TEST_SUITE_P(on, claims, ::testing::Bool(), [](const auto& p) { return p.param ? "fiber" : "thread"; });

/// A place on the waiter's stack where claimers write; published with the wait.
struct offer {
  waiter_ref waiter;
  std::uint64_t value = 0;  // written by the claimer
  claimed_wait claimed;
};

/// Claims the offers that are up, hands a value to each, and resumes the waiter.
struct bringer {
  std::atomic<offer*> up{nullptr};
  std::atomic<int> looking{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> won{0};

  void bring(std::uint64_t value, unsigned seed) {
    std::mt19937 random{seed};
    while (!over.load(std::memory_order_acquire)) {
      // The offer's memory stays while any thread looks.
      looking.fetch_add(1, std::memory_order_seq_cst);
      if (offer* o = up.load(std::memory_order_seq_cst); o != nullptr) {
        if (claimed_wait mine = claim(o->waiter); mine) {
          for (auto spin = random() % 20; spin != 0; --spin) spin_pause();
          o->value += value;
          o->claimed = mine;
          won.fetch_add(1, std::memory_order_relaxed);
          looking.fetch_sub(1, std::memory_order_seq_cst);
          o->claimed.go_on();  // itself part of what goes away then
          continue;
        }
      }
      looking.fetch_sub(1, std::memory_order_seq_cst);
      if (random() % 8 == 0) ::sched_yield();
    }
  }
  void take_down() {
    up.store(nullptr, std::memory_order_seq_cst);
    hold_until([&] { return looking.load(std::memory_order_seq_cst) == 0; });
  }
};

TEST_P(claims, are_won_by_one_and_bring_what_they_bring) {
  const int rounds = scaled(10'000);
  bringer b;
  std::vector<std::thread> all;
  for (unsigned i = 1; i <= 3; ++i) all.emplace_back([&b, i] { b.bring(i, i); });
  std::uint64_t events = 0;
  std::uint64_t others = 0;
  in_either([&] {
    for (int i = 0; i < rounds; ++i) {
      auto mine = std::make_unique<offer>();
      wait pause{wait::kind::uninterruptible};
      mine->waiter = pause.ref();
      b.up.store(mine.get(), std::memory_order_seq_cst);
      bool event = true;
      if (i % 3 == 0) {
        event = pause.suspend() == wake_reason::event;
      } else if (i % 3 == 1) {
        event = pause.suspend_until(steady::now() + std::chrono::microseconds{i % 20}) == wake_reason::event;
      } else if (pause.withdraw()) {
        event = false;
      } else {
        EXPECT_EQ(pause.suspend(), wake_reason::event);
      }
      if (event) ++events;
      else ++others;
      // Claiming alone makes it visible: no further synchronisation.
      const std::uint64_t value = mine->value;
      b.take_down();
      if (event) ASSERT_TRUE(value >= 1 && value <= 3) << value;
      else ASSERT_EQ(value, 0u);
    }
  });
  b.over.store(true, std::memory_order_release);
  for (std::thread& t : all) t.join();
  EXPECT_EQ(events, b.won.load());
  EXPECT_EQ(events + others, static_cast<std::uint64_t>(rounds));
}

TEST_P(claims, of_waits_that_are_over_are_empty) {
  in_either([] {
    wait pause{wait::kind::uninterruptible};
    claimed_wait first = claim(pause.ref());
    ASSERT_TRUE(static_cast<bool>(first));
    EXPECT_FALSE(is_over(pause.ref())) << "held is not over yet";
    first.go_on();
    EXPECT_TRUE(is_over(pause.ref()));
    EXPECT_FALSE(static_cast<bool>(claim(pause.ref())));
    EXPECT_FALSE(wake(pause.ref()));
    EXPECT_EQ(pause.suspend(), wake_reason::event);
  });
}

TEST_P(claims, carry_their_reason) {
  in_either([] {
    for (const wake_reason why : {wake_reason::timeout, wake_reason::cancelled, wake_reason::event}) {
      wait pause{wait::kind::uninterruptible};
      claimed_wait won = claim(pause.ref(), why);
      ASSERT_TRUE(static_cast<bool>(won));
      won.go_on();
      EXPECT_EQ(pause.suspend(), why);
    }
  });
}

TEST_P(claims, hold_others_off_until_they_let_go) {
  in_either([] {
    for (int round = 0; round < scaled(30); ++round) {
      wait pause{wait::kind::uninterruptible};
      const waiter_ref ref = pause.ref();
      claimed_wait held = claim(ref);
      ASSERT_TRUE(static_cast<bool>(held));
      std::atomic<int> answers{0};
      std::atomic<int> begun{0};
      std::thread waker{[&] {
        ++begun;
        if (!wake(ref)) ++answers;
      }};
      std::thread claimer{[&] {
        ++begun;
        if (!claim(ref)) ++answers;
      }};
      hold_until([&] { return begun.load() == 2; });
      EXPECT_EQ(answers.load(), 0);
      held.go_on();
      EXPECT_FALSE(pause.withdraw());
      EXPECT_EQ(pause.suspend(), wake_reason::event);
      waker.join();
      claimer.join();
      EXPECT_EQ(answers.load(), 2);
    }
  });
}

// A fiber that is held while its stop is requested, or its deadline passes, ends its wait by the event.
TEST(claims, beat_what_comes_while_they_hold) {
  scheduler runtime{testing::with_workers(2)};
  for (int round = 0; round < scaled(100); ++round) {
    std::atomic<task*> self{nullptr};
    std::atomic<std::uint64_t> ref{0};
    std::atomic<int> reason{-1};
    std::atomic<bool> stop_is_over{false};
    start(runtime, [&] {
      wait pause{wait::kind::cancellable};
      self.store(current_worker()->running_task());
      ref.store(pause.ref().bits());
      const wake_reason why = pause.suspend_until(steady::now() + 1h);
      reason.store(static_cast<int>(why));
      hold_until([&] { return stop_is_over.load(); });
    });
    hold_until([&] { return ref.load() != 0; });
    claimed_wait held = claim(waiter_ref::from_bits(ref.load()));
    ASSERT_TRUE(static_cast<bool>(held));
    std::thread stopper{[&] {
      request_stop(*self.load());
      stop_is_over.store(true);
    }};
    for (int spin = round % 50; spin > 0; --spin) spin_pause();
    EXPECT_EQ(reason.load(), -1);
    held.go_on();
    hold_until([&] { return reason.load() != -1; });
    EXPECT_EQ(reason.load(), static_cast<int>(wake_reason::event));
    stopper.join();
    testing::wait_until_empty(runtime);
  }
  runtime.stop();
}

TEST(claims, and_stop_requests_race_for_a_wait) {
  scheduler runtime{testing::with_workers(2)};
  int by_claim = 0;
  const int rounds = scaled(1000);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<task*> self{nullptr};
    std::atomic<std::uint64_t> ref{0};
    std::atomic<int> reason{-1};
    std::atomic<bool> may_end{false};
    start(runtime, [&] {
      wait pause{wait::kind::cancellable};
      self.store(current_worker()->running_task());
      ref.store(pause.ref().bits());
      reason.store(static_cast<int>(pause.suspend()));
      hold_until([&] { return may_end.load(); });
    });
    hold_until([&] { return ref.load() != 0; });
    std::atomic<int> stage{0};
    std::thread stopper{[&] {
      stage.store(1);
      request_stop(*self.load());
    }};
    hold_until([&] { return stage.load() == 1; });
    for (int spin = round % 300; spin > 0; --spin) spin_pause();
    claimed_wait mine = claim(waiter_ref::from_bits(ref.load()));
    const bool won = static_cast<bool>(mine);
    if (won) {
      ++by_claim;
      mine.go_on();
    }
    stopper.join();
    hold_until([&] { return reason.load() != -1; });
    ASSERT_EQ(reason.load(), static_cast<int>(won ? wake_reason::event : wake_reason::cancelled));
    may_end.store(true);
    testing::wait_until_empty(runtime);
  }
  runtime.stop();
  RecordProperty("by_claim", by_claim);
}

}  // namespace
}  // namespace ramie::detail
