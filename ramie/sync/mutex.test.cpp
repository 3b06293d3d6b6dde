// One holder at a time, no waiter left out, and the object may be destroyed as soon as it is free.
#include <ramie/sync/mutex.hpp>

#include <ramie/base/testing.hpp>
#include <ramie/sync/testing.hpp>
#include <ramie/worker/worker.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>

namespace ramie {
namespace {

using namespace sync_tests;

template <class Mutex>
class mutexes : public ::testing::Test {};
using kinds = ::testing::Types<mutex, timed_mutex>;
TYPED_TEST_SUITE(mutexes, kinds);

TYPED_TEST(mutexes, work_with_the_guards_of_std) {
  const auto use = [] {
    TypeParam a;
    TypeParam b;
    {
      std::lock_guard guard{a};
    }
    {
      std::unique_lock guard{a, std::defer_lock};
      guard.lock();
      EXPECT_TRUE(guard.owns_lock());
      guard.unlock();
      EXPECT_TRUE(guard.try_lock());
    }
    {
      std::scoped_lock guard{a, b};
    }
    std::lock(a, b);
    a.unlock();
    b.unlock();
  };
  use();
  run(use);
}

TYPED_TEST(mutexes, refuse_a_second_holder) {
  const auto use = [] {
    TypeParam m;
    m.lock();
    std::thread{[&] { EXPECT_FALSE(m.try_lock()); }}.join();
    EXPECT_FALSE(m.try_lock());
    m.unlock();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  };
  use();
  run(use);
}

TYPED_TEST(mutexes, name_a_recursive_lock) {
  const auto use = [] {
    TypeParam m;
    std::lock_guard guard{m};
    EXPECT_TRUE(contains(message_of<usage_error>([&] { m.lock(); }), "already holds"));
  };
  use();
  run(use);
  runtime rt;
  rt.spawn(fiber_options{.name = "twice"}, [] {
      TypeParam m;
      std::lock_guard guard{m};
      EXPECT_TRUE(contains(message_of<usage_error>([&] { m.lock(); }), "\"twice\""));
    }).join();
}

TYPED_TEST(mutexes, name_an_unlock_by_a_stranger) {
  const auto use = [] {
    TypeParam m;
    EXPECT_TRUE(contains(message_of<usage_error>([&] { m.unlock(); }), "does not hold"));
    m.lock();
    std::thread{[&] { EXPECT_THROW(m.unlock(), usage_error); }}.join();
    m.unlock();
    EXPECT_THROW(m.unlock(), usage_error);
  };
  use();
  run([&] {
    use();
    TypeParam m;
    m.lock();
    spawn([&] { EXPECT_THROW(m.unlock(), usage_error); }).join();
    m.unlock();
  });
}

TYPED_TEST(mutexes, name_misuse_when_one_worker_alone_used_them) {
  run({.workers = 1}, [] {
    TypeParam m;
    for (int i = 0; i < 1000; ++i) {
      m.lock();
      m.unlock();
    }
    EXPECT_THROW(m.unlock(), usage_error);
    m.lock();
    EXPECT_FALSE(m.try_lock());
    EXPECT_THROW(m.lock(), usage_error);
    m.unlock();
  });
}

TEST(mutex_death, of_a_held_one_ends_the_process) {
  GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
  EXPECT_DEATH(
      {
        auto m = std::make_unique<mutex>();
        m->lock();
        m.reset();
      },
      "destroyed while it was held");
}

class mutex_in : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, mutex_in, settings(), ::testing::PrintToStringParamName());

TEST_P(mutex_in, keeps_all_but_one_out) {
  runtime rt{options()};
  mutex m;
  long count = 0;
  int inside = 0;
  const int turns = rounds(20'000);
  crowd(rt, 6, 2, [&](int who) {
    std::mt19937 random{static_cast<unsigned>(who)};
    for (int i = 0; i < turns; ++i) {
      std::lock_guard guard{m};
      EXPECT_EQ(++inside, 1);
      ++count;
      if (random() % 64 == 0) this_fiber::yield();  // while it holds the mutex
      --inside;
    }
  });
  EXPECT_EQ(count, 8L * turns);
}

TEST_P(mutex_in, keeps_all_but_one_out_whichever_way_they_come) {
  runtime rt{options()};
  timed_mutex m;
  long count = 0;
  std::atomic<long> got{0};
  const int turns = rounds(4'000);
  crowd(rt, 6, 2, [&](int who) {
    std::mt19937 random{static_cast<unsigned>(who)};
    for (int i = 0; i < turns; ++i) {
      bool mine = true;
      switch (random() % 4) {
        case 0: mine = m.try_lock(); break;
        case 1: mine = m.try_lock_for(std::chrono::microseconds{random() % 30}); break;
        case 2: mine = m.try_lock_until(std::chrono::system_clock::now() + 20us); break;
        default: m.lock(); break;
      }
      if (!mine) continue;
      got.fetch_add(1, std::memory_order_relaxed);
      ++count;
      if (random() % 16 == 0) this_fiber::sleep_for(std::chrono::microseconds{random() % 20});
      m.unlock();
    }
  });
  EXPECT_EQ(count, got.load());
  EXPECT_GT(count, 0);
  EXPECT_TRUE(m.try_lock());  // no trace of the waiters that gave up
  m.unlock();
}

TEST_P(mutex_in, passes_from_its_favourite_to_anybody) {
  // A worker has used it alone for long; then others come, while it is free, held, and held by a fiber that waits.
  for (int round = 0; round < rounds(100); ++round) {
    runtime rt{options()};
    mutex m;
    long count = 0;
    rt.run([&] {
      for (int i = 0; i < 200; ++i) {
        std::lock_guard guard{m};
        ++count;
      }
      std::vector<std::thread> others;
      if (round % 3 != 0) m.lock();
      for (int i = 0; i < 2; ++i)
        others.emplace_back([&] {
          std::lock_guard guard{m};
          ++count;
        });
      std::vector<join_handle<void>> handles;
      for (int i = 0; i < 3; ++i)
        handles.push_back(spawn([&] {
          std::lock_guard guard{m};
          this_fiber::yield();
          ++count;
        }));
      if (round % 3 == 2) this_fiber::sleep_for(50us);
      if (round % 3 != 0) {
        ++count;
        m.unlock();
      } else {
        std::lock_guard guard{m};
        ++count;
      }
      for (auto& h : handles) h.join();
      for (auto& t : others) t.join();
    });
    ASSERT_EQ(count, 206);
  }
}

TEST_P(mutex_in, passes_from_its_favourite_at_any_moment) {
  // A worker becomes the favourite in the 64th acquisition, and at about that time, give or take, another caller comes.
  runtime rt{options()};
  struct trial {
    mutex m;
    long count = 0;
    std::atomic<int> ended{0};
  };
  std::atomic<trial*> now{nullptr};
  std::atomic<bool> over{false};
  std::thread other{[&] {
    std::mt19937 random{7};
    for (const trial* last = nullptr; !over;) {
      trial* t = now.load();
      if (t == last || t == nullptr) {
        std::this_thread::yield();
        continue;
      }
      last = t;
      for (unsigned i = random() % 64; i > 0; --i) detail::spin_pause();
      for (int i = 0; i < 3; ++i) {
        std::lock_guard guard{t->m};
        ++t->count;
      }
      t->ended.store(1);
    }
  }};
  rt.run([&] {
    std::vector<std::unique_ptr<trial>> trials;  // all at addresses of their own
    for (int round = 0; round < rounds(1'000); ++round) {
      trials.push_back(std::make_unique<trial>());
      trial& t = *trials.back();
      now.store(&t);
      for (int i = 0; i < 100; ++i) {
        std::lock_guard guard{t.m};
        ++t.count;
      }
      await([&] { return t.ended.load() == 1; });
      ASSERT_EQ(t.count, 103);
    }
  });
  over = true;
  other.join();
}

TEST_P(mutex_in, may_be_destroyed_by_who_had_it_last) {
  runtime rt{options()};
  rt.run([&] {
    for (int round = 0; round < rounds(2'000); ++round) {
      auto m = std::make_unique<mutex>();
      for (int i = round % 100; i > 0; --i) {  // favoured or not
        m->lock();
        m->unlock();
      }
      m->lock();
      mutex* shared = m.get();
      auto other = spawn([owned = std::move(m)]() mutable {
        owned->lock();
        owned->unlock();
        owned.reset();
      });
      if (round % 2 == 0) this_fiber::yield();
      shared->unlock();  // it may be gone before this returns
      other.join();
    }
  });
}

TEST_P(mutex_in, lets_a_waiter_have_it_though_others_never_rest) {
  // Two fibers take it again and again, and hold it most of the time; one wants it once.
  if (GetParam().workers < 8) GTEST_SKIP() << "those who never rest need workers of their own";
  runtime rt{options()};
  if (rt.options().placement == placement::dedicated)
    GTEST_SKIP() << "those who never rest hold up what is dealt to their workers";
  mutex m;
  std::atomic<bool> over{false};
  std::array<std::atomic<long>, 2> locks{};
  std::vector<join_handle<void>> greedy;
  for (auto& mine : locks)
    greedy.push_back(rt.spawn([&] {
      while (!over.load(std::memory_order_relaxed)) {
        std::lock_guard guard{m};
        for (int k = 0; k < 100; ++k) detail::spin_pause();
        mine.fetch_add(1, std::memory_order_relaxed);
      }
    }));
  for (const auto& l : locks) await([&] { return l != 0; });
  for (int i = 0; i < rounds(50); ++i) rt.spawn([&] { std::lock_guard guard{m}; }).join();
  over = true;
  for (auto& g : greedy) g.join();
}

TEST(mutex_of_many_runtimes, is_favoured_again_and_again) {
  // Long enough for favours after the first, which take 1024 uses in a row. The workers of one runtime get the cells of
  // workers that ended.
  mutex m;
  const int uses = 3000;
  const int runs = scaled(200);
  long used = 0;
  for (int i = 0; i < runs; ++i) {
    run({.workers = 1 + i % 2}, [&] {
      auto use = [&] {
        for (int k = 0; k < uses; ++k) {
          std::lock_guard guard{m};
          ++used;
        }
      };
      auto other = spawn(use);
      if (i % 3 == 0) this_fiber::yield();
      use();
      other.join();
    });
    if (i % 5 == 0) {
      std::lock_guard guard{m};
      ++used;
    }
  }
  EXPECT_EQ(used, long{runs} * 2 * uses + (runs + 4) / 5);
}

TEST(mutex_on_one_worker, passes_a_waiter_over_a_few_times_only) {
  // With several workers, spares included, the scheduler decides when a waiter runs. It is not the same with every
  // placement either.
  run({.workers = 1, .placement = placement::stealing_no_affinity, .spare_workers = 0}, [] {
    mutex m;
    std::atomic<long> turns{0};
    std::atomic<bool> over{false};
    auto greedy = spawn([&] {
      while (!over) {
        std::lock_guard guard{m};
        ++turns;
        this_fiber::yield();  // a caller that comes now finds it locked
      }
    });
    for (int round = 0; round < 50; ++round) {
      let_others_run();
      const long before = turns;
      std::lock_guard guard{m};
      EXPECT_LE(turns - before, 10);  // eight times passed over, then handed over
    }
    over = true;
    greedy.join();
  });
}

TEST_P(mutex_in, waits_no_longer_than_told) {
  in_runtime([] {
    timed_mutex m;
    m.lock();
    auto h = spawn([&] {
      EXPECT_FALSE(m.try_lock_for(-1h));
      EXPECT_FALSE(m.try_lock_for(0s));
      EXPECT_FALSE(m.try_lock_until(std::chrono::steady_clock::time_point::min()));
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_FALSE(m.try_lock_for(3ms));
      EXPECT_GE(std::chrono::steady_clock::now() - begin, 3ms);
      EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 1ms));
    });
    h.join();
    auto patient = spawn([&] { return m.try_lock_for(std::chrono::hours::max()) && (m.unlock(), true); });
    let_others_run();
    m.unlock();
    EXPECT_TRUE(patient.join());
    std::thread{[&] {
      EXPECT_TRUE(m.try_lock_for(0s));
      m.unlock();
    }}.join();
  });
}

TEST_P(mutex_in, is_got_even_by_a_fiber_that_was_asked_to_stop) {
  in_runtime([] {
    mutex m;
    bool got = false;
    m.lock();
    auto h = spawn([&] {
      std::lock_guard guard{m};
      got = true;
      this_fiber::sleep_for(1h);
    });
    let_others_run();
    h.request_stop();
    let_others_run();
    m.unlock();
    EXPECT_THROW(h.join(), cancelled);
    EXPECT_TRUE(got);
    std::lock_guard guard{m};
  });
}

TEST_P(mutex_in, guards_what_runs_while_exceptions_pass) {
  in_runtime([] {
    mutex m;
    int depth = 0;
    struct locking {
      mutex& m;
      int& depth;
      ~locking() {
        std::lock_guard guard{m};
        this_fiber::yield();
        ++depth;
      }
    };
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 10; ++i)
      handles.push_back(spawn([&] {
        const locking at_end{m, depth};
        throw std::runtime_error{"on its way"};
      }));
    for (auto& h : handles) EXPECT_THROW(h.join(), std::runtime_error);
    EXPECT_EQ(depth, 10);
  });
}

TEST_P(mutex_in, serves_two_runtimes_at_once) {
  runtime a{options()};
  runtime b{options()};
  mutex m;
  long count = 0;
  const int turns = rounds(5'000);
  const auto work = [&](int) {
    for (int i = 0; i < turns; ++i) {
      std::lock_guard guard{m};
      ++count;
    }
  };
  std::thread other{[&] { crowd(b, 3, 0, work); }};
  crowd(a, 3, 0, work);
  other.join();
  EXPECT_EQ(count, 6L * turns);
}

}  // namespace
}  // namespace ramie
