#include <ramie/sync/recursive_mutex.hpp>

#include <ramie/sync/testing.hpp>

#include <mutex>

namespace ramie {
namespace {

using namespace sync_tests;

class recursive : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, recursive, settings(), ::testing::PrintToStringParamName());

TEST_P(recursive, lets_its_holder_in_again) {
  const auto use = [] {
    recursive_mutex m;
    {
      std::lock_guard one{m};
      std::lock_guard two{m};
      EXPECT_TRUE(m.try_lock());
      std::thread{[&] { EXPECT_FALSE(m.try_lock()); }}.join();
      m.unlock();
    }
    std::thread{[&] {
      EXPECT_TRUE(m.try_lock());
      m.unlock();
    }}.join();
    EXPECT_THROW(m.unlock(), usage_error);
  };
  use();
  in_runtime(use);
}

TEST_P(recursive, keeps_others_out_until_the_last_unlock) {
  runtime rt{options()};
  recursive_timed_mutex m;
  int inside = 0;
  long count = 0;
  const int turns = rounds(3'000);
  crowd(rt, 5, 2, [&](int who) {
    for (int i = 0; i < turns; ++i) {
      if ((who + i) % 5 == 0 && !m.try_lock_for(10us)) continue;
      if ((who + i) % 5 != 0) m.lock();
      EXPECT_EQ(++inside, 1);
      for (int depth = 0; depth < i % 4; ++depth) m.lock();
      if (i % 32 == 0) this_fiber::yield();
      for (int depth = 0; depth < i % 4; ++depth) m.unlock();
      ++count;
      --inside;
      m.unlock();
    }
  });
  EXPECT_GT(count, 0);
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST_P(recursive, waits_no_longer_than_told) {
  in_runtime([] {
    recursive_timed_mutex m;
    m.lock();
    EXPECT_TRUE(m.try_lock_for(1h));  // held by the caller
    m.unlock();
    spawn([&] {
      EXPECT_FALSE(m.try_lock_for(1ms));
      EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now()));
      EXPECT_THROW(m.unlock(), usage_error);
    }).join();
    m.unlock();
  });
}

}  // namespace
}  // namespace ramie
