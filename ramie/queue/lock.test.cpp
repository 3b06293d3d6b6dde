// Mutual exclusion: a non-atomic count under a lock is exact.
#include <ramie/machine/spin_lock.hpp>
#include <ramie/queue/biased_lock.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::hold_until;
using testing::scaled;

TEST(spin_locks, exclude) {
  spin_lock lock;
  std::uint64_t sum = 0;
  std::uint64_t twice = 0;  // written at the other end of the section
  const int rounds = scaled(200'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const std::lock_guard guard{lock};
        ++sum;
        twice = 2 * sum;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sum, 4u * static_cast<unsigned>(rounds));
  EXPECT_EQ(twice, 2 * sum);
}

TEST(spin_locks, try_only_when_free) {
  spin_lock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  bool elsewhere = true;
  std::thread{[&] { elsewhere = lock.try_lock(); }}.join();
  EXPECT_FALSE(elsewhere);
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

// As under SCHED_FIFO it must: a holder of lower priority runs only while the waiter sleeps.
TEST(spin_locks, sleep_where_the_holder_does_not_go_on) {
  spin_lock lock;
  lock.lock();
  std::atomic<int> waiter_id{0};
  std::thread waiter{[&] {
    waiter_id = static_cast<int>(::syscall(SYS_gettid));
    lock.lock();
    lock.unlock();
  }};
  const auto sleeps = [&] {
    std::ifstream stat{"/proc/self/task/" + std::to_string(waiter_id) + "/stat"};
    std::string text;
    std::getline(stat, text);
    const std::size_t end = text.rfind(')');
    return end != std::string::npos && text.substr(end, 3) == ") S";
  };
  hold_until([&] { return waiter_id != 0 && sleeps(); });
  lock.unlock();
  waiter.join();
}

void owner_and_thieves(int thieves) {
  init_fences();
  biased_lock lock;
  std::uint64_t sum = 0;
  int inside = 0;
  std::atomic<bool> overlap{false};
  auto section = [&] {
    if (++inside != 1) overlap.store(true);
    ++sum;
    --inside;
  };
  const int rounds = scaled(2'000'000);
  const int thefts = scaled(20'000);
  std::atomic<int> thieves_left{thieves};
  std::uint64_t by_owner = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < thieves; ++t)
    threads.emplace_back([&] {
      for (int done = 0; done < thefts;) {
        if (lock.try_as_thief(section)) ++done;
        else ::sched_yield();
      }
      thieves_left.fetch_sub(1);
    });
  for (int i = 0; i < rounds || thieves_left.load(std::memory_order_relaxed) != 0; ++i) {
    ++by_owner;
    // Both kinds: sections that return a value and sections that do not.
    if (i % 2 == 0) {
      lock.as_owner(section);
    } else if (lock.as_owner([&] {
                 section();
                 return 7;
               }) != 7) {
      ADD_FAILURE() << "the section's result was lost";
    }
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(overlap.load());
  EXPECT_EQ(sum, by_owner + static_cast<std::uint64_t>(thieves) * static_cast<std::uint64_t>(thefts));
}

TEST(biased_locks, exclude_one_thief) { owner_and_thieves(1); }
TEST(biased_locks, exclude_several_thieves) { owner_and_thieves(4); }

TEST(biased_locks, a_thief_gives_up_while_the_owner_stays_inside) {
  init_fences();
  biased_lock lock;
  bool ran = false;
  bool result = true;
  lock.as_owner([&] { std::thread{[&] { result = lock.try_as_thief([&] { ran = true; }); }}.join(); });
  EXPECT_FALSE(result);
  EXPECT_FALSE(ran);
  // The failed attempt left no trace.
  std::thread{[&] { result = lock.try_as_thief([&] { ran = true; }); }}.join();
  EXPECT_TRUE(result);
  EXPECT_TRUE(ran);
}

TEST(biased_locks, one_thief_at_a_time) {
  init_fences();
  biased_lock lock;
  bool second = true;
  std::thread{[&] {
    const bool first = lock.try_as_thief([&] { std::thread{[&] { second = lock.try_as_thief([] {}); }}.join(); });
    EXPECT_TRUE(first);
  }}.join();
  EXPECT_FALSE(second);
}

TEST(biased_locks, the_owner_waits_for_a_thief_inside) {
  init_fences();
  biased_lock lock;
  std::atomic<bool> thief_inside{false};
  std::atomic<bool> owner_tries{false};
  int steps = 0;
  std::thread thief{[&] {
    const bool stole = lock.try_as_thief([&] {
      thief_inside.store(true);
      hold_until([&] { return owner_tries.load(); });
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
      steps = 1;
    });
    EXPECT_TRUE(stole);
  }};
  hold_until([&] { return thief_inside.load(); });
  owner_tries.store(true);
  lock.as_owner([&] { steps *= 2; });
  thief.join();
  EXPECT_EQ(steps, 2);
}

// The same without membarrier.
TEST(biased_locks, hold_without_membarrier) {
  if (std::getenv("RAMIE_MEMBARRIER") != nullptr) GTEST_SKIP() << "is the child";
  const int status = testing::run_self("RAMIE_MEMBARRIER", "0", "biased_locks.exclude*");
  if (status == 127) GTEST_SKIP() << "this program cannot start itself here";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ramie::detail
