// Readers together, writers alone, in the order in which they came.
#include <ramie/sync/shared_mutex.hpp>

#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>

namespace ramie {
namespace {

using namespace sync_tests;

class shared : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, shared, settings(), ::testing::PrintToStringParamName());

TEST_P(shared, works_with_the_guards_of_std) {
  const auto use = [] {
    shared_timed_mutex m;
    {
      std::lock_guard guard{m};
    }
    {
      std::shared_lock guard{m};
      std::shared_lock another{m, std::try_to_lock};
      EXPECT_TRUE(another.owns_lock());
      EXPECT_FALSE(m.try_lock());
    }
    std::unique_lock guard{m, 1ms};
    EXPECT_TRUE(guard.owns_lock());
    EXPECT_FALSE(m.try_lock_shared());
  };
  use();
  in_runtime(use);
}

TEST_P(shared, names_misuse) {
  in_runtime([] {
    shared_mutex m;
    EXPECT_THROW(m.unlock(), usage_error);
    EXPECT_THROW(m.unlock_shared(), usage_error);
    m.lock();
    EXPECT_THROW(m.unlock_shared(), usage_error);
    m.unlock();
    m.lock_shared();
    EXPECT_THROW(m.unlock(), usage_error);
    m.unlock_shared();
  });
}

TEST_P(shared, lets_readers_in_together) {
  in_runtime([] {
    shared_mutex m;
    std::atomic<int> inside{0};
    std::vector<join_handle<void>> readers;
    for (int i = 0; i < 5; ++i)
      readers.push_back(spawn([&] {
        std::shared_lock guard{m};
        ++inside;
        await([&] { return inside.load() == 5; });  // ends only if all of them are in
      }));
    for (auto& r : readers) r.join();
  });
}

TEST_P(shared, keeps_writers_alone) {
  runtime rt{options()};
  shared_mutex m;
  long a = 0;
  long b = 0;
  std::atomic<long> writes{0};
  const int turns = rounds(5'000);
  crowd(rt, 6, 2, [&](int who) {
    std::mt19937 random{static_cast<unsigned>(who)};
    for (int i = 0; i < turns; ++i) {
      const bool rest = random() % 32 == 0;
      if (random() % 4 == 0) {
        std::lock_guard guard{m};
        ++a;
        if (rest) this_fiber::yield();
        ++b;
        ++writes;
      } else {
        std::shared_lock guard{m};
        EXPECT_EQ(a, b);
        if (rest) this_fiber::yield();
        EXPECT_EQ(a, b);
      }
    }
  });
  EXPECT_EQ(a, writes.load());
}

TEST_P(shared, keeps_its_order_though_some_give_up) {
  runtime rt{options()};
  shared_timed_mutex m;
  long a = 0;
  long b = 0;
  std::atomic<long> writes{0};
  const int turns = rounds(1'500);
  crowd(rt, 6, 2, [&](int who) {
    std::mt19937 random{static_cast<unsigned>(who)};
    for (int i = 0; i < turns; ++i) {
      const auto patience = std::chrono::microseconds{random() % 40};
      if (random() % 3 == 0) {
        if (!m.try_lock_for(patience)) continue;
        ++a;
        this_fiber::yield();
        ++b;
        ++writes;
        m.unlock();
      } else {
        if (!m.try_lock_shared_for(patience)) continue;
        EXPECT_EQ(a, b);
        this_fiber::yield();
        EXPECT_EQ(a, b);
        m.unlock_shared();
      }
    }
  });
  EXPECT_EQ(a, writes.load());
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST_P(shared, lets_a_writer_in_though_readers_keep_coming) {
  in_runtime([] {
    shared_mutex m;
    std::atomic<bool> over{false};
    std::vector<join_handle<void>> readers;
    // At any time one of them reads: each lets go only when the other has come or is about to.
    for (int i = 0; i < 3; ++i)
      readers.push_back(spawn([&] {
        while (!over) {
          std::shared_lock guard{m};
          this_fiber::yield();
        }
      }));
    for (int i = 0; i < scaled(100); ++i) {
      std::lock_guard guard{m};
    }
    over = true;
    for (auto& r : readers) r.join();
  });
}

TEST_P(shared, lets_readers_in_when_a_writer_before_them_gives_up) {
  in_runtime([] {
    shared_timed_mutex m;
    m.lock_shared();
    auto writer = spawn([&] { return m.try_lock_for(2ms); });
    let_others_run();
    auto reader = spawn([&] {
      std::shared_lock guard{m};
      return true;
    });
    EXPECT_FALSE(writer.join());
    EXPECT_TRUE(reader.join());  // though the first reader is still there
    m.unlock_shared();
  });
}

TEST_P(shared, waits_no_longer_than_told) {
  in_runtime([] {
    shared_timed_mutex m;
    m.lock();
    spawn([&] {
      EXPECT_FALSE(m.try_lock_for(1ms));
      EXPECT_FALSE(m.try_lock_shared_for(1ms));
      EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 1ms));
      EXPECT_FALSE(m.try_lock_shared_until(std::chrono::steady_clock::now()));
    }).join();
    m.unlock();
  });
}

TEST_P(shared, may_be_destroyed_by_who_had_it_last) {
  in_runtime([] {
    for (int round = 0; round < rounds(1'000); ++round) {
      auto m = std::make_unique<shared_mutex>();
      shared_mutex* raw = m.get();
      const bool alone = round % 2 == 0;
      if (alone) m->lock();
      else m->lock_shared();
      auto other = spawn([owned = std::move(m)]() mutable {
        owned->lock();
        owned->unlock();
        owned.reset();
      });
      if (round % 3 == 0) this_fiber::yield();
      if (alone) raw->unlock();
      else raw->unlock_shared();
      other.join();
    }
  });
}

TEST_P(shared, is_got_even_by_a_fiber_that_was_asked_to_stop) {
  in_runtime([] {
    shared_mutex m;
    bool got = false;
    m.lock();
    auto h = spawn([&] {
      std::shared_lock guard{m};
      got = true;
      this_fiber::sleep_for(1h);
    });
    let_others_run();
    h.request_stop();
    m.unlock();
    EXPECT_THROW(h.join(), cancelled);
    std::lock_guard guard{m};
    EXPECT_TRUE(got);
  });
}

}  // namespace
}  // namespace ramie
