// The lock that is free for its first worker: mutual exclusion among the owner, other workers and plain threads.
#include <ramie/queue/adaptive_lock.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::hold_until;
using testing::run_on;
using testing::scaled;
using testing::start;

/// One worker, however slow the machine.
runtime_options lone() {
  runtime_options o = testing::with_workers(1);
  o.spare_workers = 0;
  return o;
}

/// What the lock guards: plain variables, which must stay consistent.
struct guarded {
  adaptive_lock lock;
  std::uint64_t sum = 0;
  int inside = 0;
  std::uint64_t twice = 0;  // written at the other end of the section
  bool overlap = false;

  void section() noexcept {
    if (++inside != 1) overlap = true;
    ++sum;
    twice = 2 * sum;
    --inside;
  }
  void enter(int round) {
    if (round % 4 == 3) {
      while (!lock.try_lock()) ::sched_yield();
      section();
      lock.unlock();
      return;
    }
    if (round % 4 == 1 && lock.try_enter_as_owner(current_worker())) {
      section();
      lock.leave_as_owner();
      return;
    }
    const std::lock_guard guard{lock};
    section();
  }
};

/// `fibers` on a runtime and `threads` beside it, `rounds` sections each. The first fiber owns the lock for a while.
void compete(int workers, int fibers, int threads, int rounds) {
  guarded g;
  scheduler runtime{testing::with_workers(workers)};
  run_on(runtime, [&] {
    for (int i = 0; i < rounds; ++i) g.enter(0);
  });
  ASSERT_EQ(g.sum, static_cast<std::uint64_t>(rounds));
  std::atomic<int> left{fibers};
  for (int f = 0; f < fibers; ++f)
    start(runtime, [&] {
      for (int i = 0; i < rounds; ++i) {
        g.enter(i);
        if (i % 64 == 0) testing::yield_always();
      }
      --left;
    });
  std::vector<std::thread> others;
  for (int t = 0; t < threads; ++t)
    others.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) g.enter(i);
    });
  for (std::thread& t : others) t.join();
  hold_until([&] { return left.load() == 0; });
  runtime.stop();
  const std::lock_guard guard{g.lock};
  EXPECT_EQ(g.sum, static_cast<std::uint64_t>(rounds) * static_cast<std::uint64_t>(1 + fibers + threads));
  EXPECT_EQ(g.twice, 2 * g.sum);
  EXPECT_FALSE(g.overlap);
}

TEST(adaptive_locks, exclude_fibers_of_one_worker) { compete(1, 3, 0, scaled(20'000)); }
TEST(adaptive_locks, exclude_workers) { compete(4, 8, 0, scaled(20'000)); }
TEST(adaptive_locks, exclude_plain_threads) { compete(1, 0, 3, scaled(20'000)); }
TEST(adaptive_locks, exclude_workers_and_plain_threads) { compete(2, 3, 2, scaled(20'000)); }

// The end of ownership is the moment that can go wrong: many locks, each shared for the first time while the
// owner enters and leaves.
TEST(adaptive_locks, end_their_ownership_under_use) {
  scheduler runtime{testing::with_workers(2)};
  const int rounds = scaled(100);
  for (int round = 0; round < rounds; ++round) {
    guarded g;
    std::atomic<bool> owned{false};
    std::atomic<bool> stranger_done{false};
    std::atomic<bool> owner_done{false};
    std::uint64_t by_owner = 0;
    start(runtime, [&] {
      for (int after = 0; after < 20;) {
        g.enter(static_cast<int>(by_owner));
        ++by_owner;
        owned.store(true, std::memory_order_release);
        if (stranger_done.load(std::memory_order_relaxed)) ++after;
      }
      owner_done.store(true, std::memory_order_release);
    });
    hold_until([&] { return owned.load(std::memory_order_acquire); });
    for (int spin = round * 7 % 40; spin > 0; --spin) spin_pause();
    // A plain thread or another worker, in turn; the fiber above occupies its own worker.
    std::uint64_t by_stranger = 0;
    const auto stranger = [&] {
      for (int i = 0; i < 20; ++i) {
        g.enter(round + i);
        ++by_stranger;
      }
      stranger_done.store(true, std::memory_order_release);
    };
    if (round % 2 == 0) {
      stranger();
    } else {
      start(runtime, stranger);
    }
    hold_until([&] { return owner_done.load(std::memory_order_acquire) && stranger_done.load(); });
    ASSERT_EQ(g.sum, by_owner + by_stranger);
    ASSERT_EQ(g.twice, 2 * g.sum);
    ASSERT_FALSE(g.overlap);
  }
  testing::wait_until_empty(runtime);
  runtime.stop();
}

// A thread that takes a lock away from its owner counts it as seized.
TEST(adaptive_locks, are_owned_after_a_streak_of_uses_by_one_worker) {
  init_fences();
  if (!asymmetric_fences) GTEST_SKIP() << "without asymmetric fences no lock has an owner";
  scheduler first{lone()};
  scheduler second{lone()};
  scheduler third{lone()};
  const auto use = [](scheduler& runtime, adaptive_lock& lock, int times, bool alone = false) {
    std::uint64_t seized = 0;
    run_on(runtime, [&] {
      current_worker()->alone = alone;
      const std::uint64_t before = current_worker()->seized.load_relaxed();
      for (int i = 0; i < times; ++i) {
        const std::lock_guard guard{lock};
      }
      seized = current_worker()->seized.load_relaxed() - before;
    });
    return seized;
  };
  adaptive_lock quick;
  use(first, quick, 1);
  EXPECT_EQ(use(second, quick, 1), 1u);

  adaptive_lock patient{4};
  use(first, patient, 15);
  EXPECT_EQ(use(second, patient, 10), 0u);
  use(first, patient, 10);
  EXPECT_EQ(use(second, patient, 15), 0u) << "the streak went on though it was interrupted";
  use(first, patient, 16);
  EXPECT_EQ(use(second, patient, 1), 1u);
  // From now on it takes a longer streak, and nobody else ever owns it.
  EXPECT_EQ(use(second, patient, 10'000), 0u);
  EXPECT_EQ(use(first, patient, 100), 0u);
  EXPECT_EQ(use(second, patient, 1), 0u);
  use(first, patient, 128);
  EXPECT_EQ(use(second, patient, 100'000), 1u);
  EXPECT_EQ(use(first, patient, 255), 0u);
  EXPECT_EQ(use(second, patient, 1), 0u);
  use(first, patient, 256);
  EXPECT_EQ(use(third, patient, 1), 1u);

  adaptive_lock lonely{4};
  use(first, lonely, 1, true);
  EXPECT_EQ(use(second, lonely, 1), 1u);

  // Only the owner can use the owner's entry.
  adaptive_lock fresh;
  const auto enters = [&](scheduler& runtime) {
    bool inside = false;
    run_on(runtime, [&] {
      inside = fresh.try_enter_as_owner(current_worker());
      if (inside) fresh.leave_as_owner();
    });
    return inside;
  };
  EXPECT_FALSE(enters(first));
  EXPECT_FALSE(fresh.try_enter_as_owner(current_worker())) << "a plain thread";
  use(first, fresh, 1);
  EXPECT_TRUE(enters(first));
  EXPECT_FALSE(enters(second));
  use(second, fresh, 1);
  EXPECT_FALSE(enters(first));
  first.stop();
  second.stop();
}

TEST(adaptive_locks, are_taken_from_their_owner_many_at_once) {
  init_fences();
  if (!asymmetric_fences) GTEST_SKIP() << "without asymmetric fences no lock has an owner";
  scheduler first{lone()};
  scheduler second{lone()};
  std::array<adaptive_lock, 5> locks;
  std::array<adaptive_lock*, 6> all{};  // the last is null
  for (std::size_t i = 0; i < locks.size(); ++i) all[i] = &locks[i];
  const auto owned_by = [&](scheduler& runtime) {
    std::size_t n = 0;
    run_on(runtime, [&] {
      for (adaptive_lock& a : locks)
        if (a.try_enter_as_owner(current_worker())) {
          a.leave_as_owner();
          ++n;
        }
    });
    return n;
  };
  const auto use_all = [&](scheduler& runtime) {
    run_on(runtime, [&] {
      for (adaptive_lock& a : locks) {
        const std::lock_guard guard{a};
      }
    });
  };
  adaptive_lock::deprive_all(all.data(), all.size());  // none has an owner
  use_all(first);
  EXPECT_EQ(owned_by(first), 5u);
  adaptive_lock::deprive_all(all.data(), 3);
  EXPECT_EQ(owned_by(first), 2u);
  adaptive_lock::deprive_all(all.data(), all.size());
  EXPECT_EQ(owned_by(first), 0u);
  // The owner needs no longer streak than before. Another worker takes nothing from anybody, and owns nothing.
  std::uint64_t seized = 0;
  run_on(second, [&] {
    const std::uint64_t before = current_worker()->seized.load_relaxed();
    for (adaptive_lock& a : locks) {
      const std::lock_guard guard{a};
    }
    seized = current_worker()->seized.load_relaxed() - before;
  });
  EXPECT_EQ(seized, 0u);
  EXPECT_EQ(owned_by(second), 0u);
  use_all(first);
  EXPECT_EQ(owned_by(first), 5u);
  first.stop();
  second.stop();
}

TEST(adaptive_locks, are_tried_by_others_in_vain_while_held) {
  scheduler runtime{lone()};
  adaptive_lock fresh{4};  // without an owner until the end of the test: a try would wait for an owner
  ASSERT_TRUE(fresh.try_lock());
  bool elsewhere = true;
  std::thread{[&] { elsewhere = fresh.try_lock(); }}.join();
  EXPECT_FALSE(elsewhere);
  fresh.unlock();
  EXPECT_TRUE(fresh.try_lock());
  fresh.unlock();
  run_on(runtime, [&] {
    current_worker()->alone = false;
    fresh.lock();
    std::thread{[&] { elsewhere = fresh.try_lock(); }}.join();
    EXPECT_FALSE(elsewhere);
    fresh.unlock();
    EXPECT_TRUE(fresh.try_lock());
    fresh.unlock();
  });
  runtime.stop();
}

TEST(adaptive_locks, held_by_their_owner_keep_others_waiting) {
  scheduler runtime{testing::with_workers(2)};
  for (int round = 0; round < scaled(200); ++round) {
    adaptive_lock lock;
    std::atomic<bool> held{false};
    std::atomic<bool> waits{false};
    std::atomic<bool> released{false};
    start(runtime, [&] {
      for (int i = 0; i < 3; ++i) {
        lock.lock();
        lock.unlock();
      }
      lock.lock();
      held.store(true);
      hold_until([&] { return waits.load(); });
      for (int spin = 0; spin < 200; ++spin) spin_pause();
      released.store(true, std::memory_order_relaxed);
      lock.unlock();
    });
    hold_until([&] { return held.load(); });
    waits.store(true);
    const std::lock_guard guard{lock};
    ASSERT_TRUE(released.load(std::memory_order_relaxed));
  }
  testing::wait_until_empty(runtime);
  runtime.stop();
}

TEST(adaptive_locks, outlive_their_owners_runtime) {
  guarded g;
  for (int runtimes = 0; runtimes < 5; ++runtimes) {
    scheduler runtime{lone()};
    run_on(runtime, [&] {
      for (int i = 0; i < 100; ++i) g.enter(i);
    });
    if (runtimes == 2) g.enter(0);
    runtime.stop();
  }
  EXPECT_EQ(g.sum, 501u);
  EXPECT_FALSE(g.overlap);
}

TEST(adaptive_locks, exclude_the_workers_of_the_next_runtimes) {
  // Workers have the memory of those before them, in any order, and of more than one runtime.
  guarded g;
  std::uint64_t expected = 0;
  for (int round = 0; round < scaled(100); ++round) {
    const int workers = 1 + round % 4;
    auto beside = round % 3 == 0 ? std::make_unique<scheduler>(lone()) : nullptr;
    scheduler runtime{testing::with_workers(workers)};
    beside.reset();
    run_on(runtime, [&] {
      for (int i = 0; i < 200; ++i) g.enter(0);
    });
    std::atomic<int> left{workers};
    for (int f = 0; f < workers; ++f)
      start(runtime, [&] {
        for (int i = 0; i < 500; ++i) {
          g.enter(0);
          if (i % 64 == 0) testing::yield_always();
        }
        --left;
      });
    hold_until([&] { return left.load() == 0; });
    runtime.stop();
    expected += 200 + 500 * static_cast<std::uint64_t>(workers);
    ASSERT_EQ(g.sum, expected);
    ASSERT_FALSE(g.overlap);
  }
}

TEST(adaptive_locks, do_without_asymmetric_fences) {
  const int status = testing::run_self("RAMIE_MEMBARRIER", "0", "adaptive_locks.e*");
  if (status == 127) GTEST_SKIP() << "this program cannot start itself here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ramie::detail
